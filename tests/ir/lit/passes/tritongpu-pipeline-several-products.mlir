// RUN: proton-opt --pipeline='tritongpu-pipeline{num-stages=2 arch=90}' %s | filecheck %s

// Attention: the second product of an iteration goes on until the next one has issued its first. It
// is waited for ahead of the copies, which write what it reads: beside the first one where products
// alone take its sum, else with it, as ptxas has each product wait that is read beside another.

#regs = #ttg.linear<[[0, 1], [0, 2], [0, 4], [16, 0], [32, 0]], [[0, 8], [0, 16], [0, 32], [1, 0], [2, 0]], [[4, 0], [8, 0]], []>
#acc = #ttg.linear<[[0, 1], [8, 0], [0, 8], [0, 16], [0, 32]], [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], [[16, 0], [32, 0]], []>
#k_major = #ttg.shared<[[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
!pointers = tensor<64x64x!tt.ptr<f16>, #regs>
!tile = tensor<64x64xf16, #regs>
!memory = !ttg.memdesc<[64, 64], f16, #k_major>
!sum = tensor<64x64xf32, #acc>
!half = tensor<64x64xf16, #acc>

module attributes {"ttg.num-warps" = 4 : i32} {

// CHECK-LABEL: func.func @added(
// CHECK: scf.for {{.*}} iter_args(%[[ACC:.*]] = %arg3,
// CHECK: "ttg.async_wait"
// CHECK: %[[E:.*]] = "ttng.warp_group_dot"(%arg2,
// CHECK-NEXT: %[[LATE:.*]] = "ttng.warp_group_dot_wait"(%[[ACC]]) {pendings = 1 : i32}
// CHECK: "ttg.async_copy_global_to_local"
// CHECK: "ttg.async_commit_group"
// CHECK: "ttng.warp_group_dot_wait"(%[[E]]) {pendings = 0 : i32}
// CHECK: %[[F:.*]] = "ttng.warp_group_dot"(%{{.*}}, %{{.*}}, %[[LATE]])
// CHECK-NOT: ttng.warp_group_dot_wait
// CHECK: scf.yield %[[F]],
// CHECK: "ttng.warp_group_dot_wait"(%{{.*}}) {pendings = 0 : i32}
func.func @added(%x: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %n: i32, %q: !memory, %start: !sum, %zero: !sum) -> !sum {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %i = "tt.make_range"() {start = 0 : i32, end = 64 : i32} : () -> tensor<64xi32, #ttg.linear<[[1], [2], [4]], [[8], [16], [32], [0], [0]], [[0], [0]], []>>
  %row = "tt.expand_dims"(%i) {axis = 0 : i32} : (tensor<64xi32, #ttg.linear<[[1], [2], [4]], [[8], [16], [32], [0], [0]], [[0], [0]], []>>) -> tensor<1x64xi32, #ttg.linear<[[0, 1], [0, 2], [0, 4]], [[0, 8], [0, 16], [0, 32], [0, 0], [0, 0]], [[0, 0], [0, 0]], []>>
  %offsets = "tt.broadcast"(%row) : (tensor<1x64xi32, #ttg.linear<[[0, 1], [0, 2], [0, 4]], [[0, 8], [0, 16], [0, 32], [0, 0], [0, 0]], [[0, 0], [0, 0]], []>>) -> tensor<64x64xi32, #regs>
  %r = scf.for %k = %c0 to %n step %c64 iter_args(%sum = %start) -> (!sum) : i32 {
    %p = "tt.addptr"(%x, %k) : (!tt.ptr<f16>, i32) -> !tt.ptr<f16>
    %base = "tt.splat"(%p) : (!tt.ptr<f16>) -> !pointers
    %place = "tt.addptr"(%base, %offsets) : (!pointers, tensor<64x64xi32, #regs>) -> !pointers
    %v = "tt.load"(%place) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (!pointers) -> !tile
    %vm = "ttg.local_alloc"(%v) : (!tile) -> !memory
    %e = "ttng.warp_group_dot"(%q, %vm, %zero) {imprecise = 0 : i32, operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (!memory, !memory, !sum) -> !sum
    %s = "ttng.warp_group_dot_wait"(%e) {pendings = 0 : i32} : (!sum) -> !sum
    %w = arith.truncf %s : !sum to !half
    %f = "ttng.warp_group_dot"(%w, %vm, %sum) {imprecise = 0 : i32, operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (!half, !memory, !sum) -> !sum
    %t = "ttng.warp_group_dot_wait"(%f) {pendings = 0 : i32} : (!sum) -> !sum
    scf.yield %t : !sum
  }
  return %r : !sum
}

// CHECK-LABEL: func.func @scaled(
// CHECK: scf.for {{.*}} iter_args(%[[ACC:.*]] = %arg3,
// CHECK: "ttng.warp_group_dot"(%arg2,
// CHECK-NEXT: %[[LATE:.*]] = "ttng.warp_group_dot_wait"(%[[ACC]]) {pendings = 0 : i32}
// CHECK: arith.mulf %[[LATE]],
// CHECK-NOT: ttng.warp_group_dot_wait
// CHECK: scf.yield
func.func @scaled(%x: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %n: i32, %q: !memory, %start: !sum, %zero: !sum) -> !sum {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %i = "tt.make_range"() {start = 0 : i32, end = 64 : i32} : () -> tensor<64xi32, #ttg.linear<[[1], [2], [4]], [[8], [16], [32], [0], [0]], [[0], [0]], []>>
  %row = "tt.expand_dims"(%i) {axis = 0 : i32} : (tensor<64xi32, #ttg.linear<[[1], [2], [4]], [[8], [16], [32], [0], [0]], [[0], [0]], []>>) -> tensor<1x64xi32, #ttg.linear<[[0, 1], [0, 2], [0, 4]], [[0, 8], [0, 16], [0, 32], [0, 0], [0, 0]], [[0, 0], [0, 0]], []>>
  %offsets = "tt.broadcast"(%row) : (tensor<1x64xi32, #ttg.linear<[[0, 1], [0, 2], [0, 4]], [[0, 8], [0, 16], [0, 32], [0, 0], [0, 0]], [[0, 0], [0, 0]], []>>) -> tensor<64x64xi32, #regs>
  %r = scf.for %k = %c0 to %n step %c64 iter_args(%sum = %start) -> (!sum) : i32 {
    %p = "tt.addptr"(%x, %k) : (!tt.ptr<f16>, i32) -> !tt.ptr<f16>
    %base = "tt.splat"(%p) : (!tt.ptr<f16>) -> !pointers
    %place = "tt.addptr"(%base, %offsets) : (!pointers, tensor<64x64xi32, #regs>) -> !pointers
    %v = "tt.load"(%place) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (!pointers) -> !tile
    %vm = "ttg.local_alloc"(%v) : (!tile) -> !memory
    %e = "ttng.warp_group_dot"(%q, %vm, %zero) {imprecise = 0 : i32, operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (!memory, !memory, !sum) -> !sum
    %s = "ttng.warp_group_dot_wait"(%e) {pendings = 0 : i32} : (!sum) -> !sum
    %w = arith.truncf %s : !sum to !half
    %scaled = arith.mulf %sum, %s : !sum
    %f = "ttng.warp_group_dot"(%w, %vm, %scaled) {imprecise = 0 : i32, operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (!half, !memory, !sum) -> !sum
    %t = "ttng.warp_group_dot_wait"(%f) {pendings = 0 : i32} : (!sum) -> !sum
    scf.yield %t : !sum
  }
  return %r : !sum
}
}
