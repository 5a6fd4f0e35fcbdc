// RUN: proton-opt --pipeline='tritongpu-schedule-loops{num-stages=3 target=cuda:90}' %s | filecheck %s

// Three buffers for each operand; the copies of two iterations begin ahead of the loop, those of
// iteration i + 2 behind the wait for product i - 1, which goes on into iteration i. What is carried
// for the copies is two iterations ahead of %p and %q, which nothing asks for any more.

#regs = #ttg.linear<[[0, 1], [0, 2], [0, 4], [16, 0], [32, 0]], [[0, 8], [0, 16], [0, 32], [1, 0], [2, 0]], [[4, 0], [8, 0]], []>
#acc = #ttg.linear<[[0, 1], [8, 0], [0, 8], [0, 16], [0, 32]], [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], [[16, 0], [32, 0]], []>
#k_major = #ttg.shared<[[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
!pointers = tensor<64x64x!tt.ptr<f16>, #regs>
!tile = tensor<64x64xf16, #regs>
!memory = !ttg.memdesc<[64, 64], f16, #k_major>
!sum = tensor<64x64xf32, #acc>

module attributes {"ttg.num-warps" = 4 : i32} {

// CHECK-LABEL: func.func @matmul(
// CHECK: %[[A:.*]] = "ttg.local_reserve"() : () -> !ttg.mutable_memdesc<[3, 64, 64], f16
// CHECK: %[[B:.*]] = "ttg.local_reserve"() : () -> !ttg.mutable_memdesc<[3, 64, 64], f16
// CHECK: arith.cmpi slt, %{{.*}}, %[[N:.*]] : i32
// CHECK-COUNT-2: "ttg.async_copy_global_to_local"
// CHECK: "ttg.async_commit_group"
// CHECK-COUNT-2: "ttg.async_copy_global_to_local"
// CHECK: "ttg.async_commit_group"
// CHECK: scf.for %[[I:.*]] = %{{.*}} to %[[N]]
// CHECK: "ttg.async_wait"(%{{.*}}) {pendings = 1 : i32}
// CHECK: %[[THIS:.*]] = "ttg.memdesc_index"(%[[A]],
// CHECK: %[[D:.*]] = "ttng.warp_group_dot"(%[[THIS]],
// CHECK: "ttng.warp_group_dot_wait"(%[[D]]) {pendings = 1 : i32}
// CHECK: %[[LEFT:.*]] = arith.subi %[[N]], %[[I]] : i32
// CHECK: arith.cmpi ugt, %[[LEFT]], %{{.*}} : i32
// CHECK-COUNT-2: "ttg.async_copy_global_to_local"
// CHECK: "ttg.async_commit_group"
// CHECK: scf.yield
// CHECK: "ttg.async_wait"(%{{.*}}) {pendings = 0 : i32}
// CHECK: "ttng.warp_group_dot_wait"(%{{.*}}) {pendings = 0 : i32}
// CHECK-NOT: tt.load
func.func @matmul(%x: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %n: i32, %zero: !sum) -> !sum {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %step = arith.constant dense<64> : tensor<64x64xi32, #regs>
  %i = "tt.make_range"() {start = 0 : i32, end = 64 : i32} : () -> tensor<64xi32, #ttg.linear<[[1], [2], [4]], [[8], [16], [32], [0], [0]], [[0], [0]], []>>
  %row = "tt.expand_dims"(%i) {axis = 0 : i32} : (tensor<64xi32, #ttg.linear<[[1], [2], [4]], [[8], [16], [32], [0], [0]], [[0], [0]], []>>) -> tensor<1x64xi32, #ttg.linear<[[0, 1], [0, 2], [0, 4]], [[0, 8], [0, 16], [0, 32], [0, 0], [0, 0]], [[0, 0], [0, 0]], []>>
  %offsets = "tt.broadcast"(%row) : (tensor<1x64xi32, #ttg.linear<[[0, 1], [0, 2], [0, 4]], [[0, 8], [0, 16], [0, 32], [0, 0], [0, 0]], [[0, 0], [0, 0]], []>>) -> tensor<64x64xi32, #regs>
  %base = "tt.splat"(%x) : (!tt.ptr<f16>) -> !pointers
  %start = "tt.addptr"(%base, %offsets) : (!pointers, tensor<64x64xi32, #regs>) -> !pointers
  %r:3 = scf.for %k = %c0 to %n step %c1 iter_args(%sum = %zero, %p = %start, %q = %start) -> (!sum, !pointers, !pointers) : i32 {
    %a = "tt.load"(%p) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (!pointers) -> !tile
    %b = "tt.load"(%q) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (!pointers) -> !tile
    %am = "ttg.local_alloc"(%a) : (!tile) -> !memory
    %bm = "ttg.local_alloc"(%b) : (!tile) -> !memory
    %d = "ttng.warp_group_dot"(%am, %bm, %sum) {imprecise = 0 : i32, operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (!memory, !memory, !sum) -> !sum
    %w = "ttng.warp_group_dot_wait"(%d) {pendings = 0 : i32} : (!sum) -> !sum
    %p2 = "tt.addptr"(%p, %step) : (!pointers, tensor<64x64xi32, #regs>) -> !pointers
    %q2 = "tt.addptr"(%q, %step) : (!pointers, tensor<64x64xi32, #regs>) -> !pointers
    scf.yield %w, %p2, %q2 : !sum, !pointers, !pointers
  }
  return %r#0 : !sum
}

// A loop that stores where it loads is left alone: the load of the next iteration may need the store
// of this one.

// CHECK-LABEL: func.func @in_place(
// CHECK-NOT: ttg.async
// CHECK: return
func.func @in_place(%x: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %n: i32, %offsets: tensor<64x64xi32, #regs>) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %base = "tt.splat"(%x) : (!tt.ptr<f16>) -> !pointers
  scf.for %k = %c0 to %n step %c1 : i32 {
    %s = "tt.splat"(%k) : (i32) -> tensor<64x64xi32, #regs>
    %p = "tt.addptr"(%base, %s) : (!pointers, tensor<64x64xi32, #regs>) -> !pointers
    %a = "tt.load"(%p) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (!pointers) -> !tile
    "tt.store"(%p, %a) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>} : (!pointers, !tile) -> ()
  } {tt.num_stages = 3 : i32}
  return
}

// The bounds of an unsigned loop are compared as such, here and in the loop.

// CHECK-LABEL: func.func @unsigned(
// CHECK: arith.cmpi ult, %{{.*}}, %[[N:.*]] : i32
// CHECK: "ttg.async_copy_global_to_local"
// CHECK: scf.for unsigned
// CHECK: arith.cmpi ugt
// CHECK: "ttg.local_load"
func.func @unsigned(%x: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %n: i32, %zero: !tile) -> !tile {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %i = "tt.make_range"() {start = 0 : i32, end = 64 : i32} : () -> tensor<64xi32, #ttg.linear<[[1], [2], [4]], [[8], [16], [32], [0], [0]], [[0], [0]], []>>
  %row = "tt.expand_dims"(%i) {axis = 0 : i32} : (tensor<64xi32, #ttg.linear<[[1], [2], [4]], [[8], [16], [32], [0], [0]], [[0], [0]], []>>) -> tensor<1x64xi32, #ttg.linear<[[0, 1], [0, 2], [0, 4]], [[0, 8], [0, 16], [0, 32], [0, 0], [0, 0]], [[0, 0], [0, 0]], []>>
  %offsets = "tt.broadcast"(%row) : (tensor<1x64xi32, #ttg.linear<[[0, 1], [0, 2], [0, 4]], [[0, 8], [0, 16], [0, 32], [0, 0], [0, 0]], [[0, 0], [0, 0]], []>>) -> tensor<64x64xi32, #regs>
  %step = arith.constant dense<64> : tensor<64x64xi32, #regs>
  %base = "tt.splat"(%x) : (!tt.ptr<f16>) -> !pointers
  %start = "tt.addptr"(%base, %offsets) : (!pointers, tensor<64x64xi32, #regs>) -> !pointers
  %r:2 = scf.for unsigned %k = %c0 to %n step %c1 iter_args(%sum = %zero, %p = %start) -> (!tile, !pointers) : i32 {
    %a = "tt.load"(%p) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (!pointers) -> !tile
    %s = arith.addf %sum, %a : !tile
    %p2 = "tt.addptr"(%p, %step) : (!pointers, tensor<64x64xi32, #regs>) -> !pointers
    scf.yield %s, %p2 : !tile, !pointers
  } {tt.num_stages = 2 : i32}
  return %r#0 : !tile
}

// A block that both loops read goes to shared memory behind the copies of the first, which do not
// wait for its load. The rest of a range, which may be empty, is behind a branch with its copies.

// CHECK-LABEL: func.func @rest(
// CHECK-SAME: %[[Z:[^:]*]]: tensor<64x64xf32
// CHECK: %[[A:.*]] = "tt.load"
// CHECK-NOT: ttg.local_alloc
// CHECK-COUNT-2: "ttg.async_commit_group"
// CHECK: "ttg.local_alloc"(%[[A]])
// CHECK-NEXT: scf.for %{{.*}} to %[[WHOLE:.*]] step
// CHECK: ttng.warp_group_dot
// CHECK: scf.yield
// CHECK: %[[SUM:.*]] = "ttng.warp_group_dot_wait"(%{{.*}}) {pendings = 0 : i32}
// CHECK-NOT: ttg.async_copy
// CHECK: %[[ANY:.*]] = arith.cmpi slt, %[[WHOLE]], %[[N:.*]] : i32
// CHECK: %[[ALL:.*]] = scf.if %[[ANY]]
// CHECK-COUNT-2: "ttg.async_commit_group"
// CHECK: scf.for %{{.*}} = %[[WHOLE]] to %[[N]] step
// CHECK: %[[MORE:.*]] = "ttng.warp_group_dot_wait"(%{{.*}}) {pendings = 0 : i32}
// CHECK: scf.yield %[[MORE]]
// CHECK: else
// CHECK-NEXT: scf.yield %[[SUM]]
// CHECK: return %[[ALL]]
func.func @rest(%x: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %whole: i32, %n: i32, %zero: !sum) -> !sum {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %i = "tt.make_range"() {start = 0 : i32, end = 64 : i32} : () -> tensor<64xi32, #ttg.linear<[[1], [2], [4]], [[8], [16], [32], [0], [0]], [[0], [0]], []>>
  %c64 = arith.constant 64 : i32
  %row = "tt.expand_dims"(%i) {axis = 0 : i32} : (tensor<64xi32, #ttg.linear<[[1], [2], [4]], [[8], [16], [32], [0], [0]], [[0], [0]], []>>) -> tensor<1x64xi32, #ttg.linear<[[0, 1], [0, 2], [0, 4]], [[0, 8], [0, 16], [0, 32], [0, 0], [0, 0]], [[0, 0], [0, 0]], []>>
  %offsets = "tt.broadcast"(%row) : (tensor<1x64xi32, #ttg.linear<[[0, 1], [0, 2], [0, 4]], [[0, 8], [0, 16], [0, 32], [0, 0], [0, 0]], [[0, 0], [0, 0]], []>>) -> tensor<64x64xi32, #regs>
  %base = "tt.splat"(%x) : (!tt.ptr<f16>) -> !pointers
  %start = "tt.addptr"(%base, %offsets) : (!pointers, tensor<64x64xi32, #regs>) -> !pointers
  %a = "tt.load"(%start) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (!pointers) -> !tile
  %am = "ttg.local_alloc"(%a) : (!tile) -> !memory
  %first = scf.for %k = %c0 to %whole step %c1 iter_args(%sum = %zero) -> (!sum) : i32 {
    %far = arith.muli %k, %c64 : i32
    %s = "tt.splat"(%far) : (i32) -> tensor<64x64xi32, #regs>
    %p = "tt.addptr"(%start, %s) : (!pointers, tensor<64x64xi32, #regs>) -> !pointers
    %b = "tt.load"(%p) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (!pointers) -> !tile
    %bm = "ttg.local_alloc"(%b) : (!tile) -> !memory
    %d = "ttng.warp_group_dot"(%am, %bm, %sum) {imprecise = 0 : i32, operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (!memory, !memory, !sum) -> !sum
    %w = "ttng.warp_group_dot_wait"(%d) {pendings = 0 : i32} : (!sum) -> !sum
    scf.yield %w : !sum
  }
  %r = scf.for %k = %whole to %n step %c1 iter_args(%sum = %first) -> (!sum) : i32 {
    %far = arith.muli %k, %c64 : i32
    %s = "tt.splat"(%far) : (i32) -> tensor<64x64xi32, #regs>
    %p = "tt.addptr"(%start, %s) : (!pointers, tensor<64x64xi32, #regs>) -> !pointers
    %b = "tt.load"(%p) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (!pointers) -> !tile
    %bm = "ttg.local_alloc"(%b) : (!tile) -> !memory
    %d = "ttng.warp_group_dot"(%am, %bm, %sum) {imprecise = 0 : i32, operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (!memory, !memory, !sum) -> !sum
    %w = "ttng.warp_group_dot_wait"(%d) {pendings = 0 : i32} : (!sum) -> !sum
    scf.yield %w : !sum
  }
  return %r : !sum
}
}
