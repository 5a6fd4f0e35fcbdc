// RUN: proton-opt --pipeline='tritongpu-schedule-loops{num-stages=3 target=cuda:90},triton-nvidia-gpu-fence-insertion' %s | filecheck %s

// Two warp groups take turns. What each has copied for the next iteration it tells the other when the
// scores are there, of which one group of copies is left under way ahead of the loop, and none in it.
// The copies of iteration i + 2 begin behind the second product, and no barrier of all is in the loop.

#regs = #ttg.linear<[[0, 1], [0, 2], [0, 4], [32, 0]], [[0, 8], [0, 16], [0, 32], [1, 0], [2, 0]], [[4, 0], [8, 0], [16, 0]], []>
#acc = #ttg.linear<[[0, 1], [8, 0], [0, 8], [0, 16], [0, 32]], [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], [[16, 0], [32, 0], [64, 0]], []>
#other = #ttg.linear<[[0, 1], [0, 2], [0, 4], [32, 0], [64, 0]], [[0, 8], [0, 16], [0, 32], [1, 0], [2, 0]], [[4, 0], [8, 0], [16, 0]], []>
#left = #ttg.shared<[[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0], [64, 0]]>
#right = #ttg.shared<[[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
!pointers = tensor<64x64x!tt.ptr<f16>, #regs>
!tile = tensor<64x64xf16, #regs>
!memory = !ttg.memdesc<[64, 64], f16, #right>
!rows = !ttg.memdesc<[128, 64], f16, #left>
!sum = tensor<128x64xf32, #acc>
!weights = tensor<128x64xf16, #acc>

module attributes {"ttg.num-warps" = 8 : i32} {

// CHECK-LABEL: func.func @attention(
// CHECK: %[[K:.*]] = "ttg.local_reserve"() : () -> !ttg.mutable_memdesc<[3, 64, 64], f16
// CHECK: %[[V:.*]] = "ttg.local_reserve"() : () -> !ttg.mutable_memdesc<[3, 64, 64], f16
// CHECK-COUNT-2: "ttg.async_commit_group"
// CHECK: %[[FULL:.*]] = "ttg.local_reserve"() : () -> !ttg.mutable_memdesc<[3, 1], i64
// CHECK: "ttng.init_barrier"(%[[FULL]]) {count = 8 : i32}
// CHECK: %[[FIRST:.*]] = "ttg.memdesc_index"(%[[FULL]],
// CHECK: "ttng.arrive_with_copies"(%[[FIRST]]) {pendings = 1 : i32}
// CHECK: "ttng.order_begin"
// CHECK: scf.for
// CHECK-NOT: "ttg.async_wait"
// CHECK: %[[OWN:.*]] = "ttg.memdesc_index"(%[[FULL]], %[[READ:[a-z0-9]+]])
// CHECK: "ttng.wait_barrier"(%[[OWN]],
// CHECK-NOT: fence_async_shared
// CHECK: %[[KEYS:.*]] = "ttg.memdesc_index"(%[[K]], %[[READ]])
// CHECK: %[[S:.*]] = "ttng.warp_group_dot"(%{{.*}}, %[[KEYS]],
// CHECK-NEXT: "ttng.order_pass"
// CHECK: "ttng.warp_group_dot_wait"(%[[S]]) {pendings = 0 : i32}
// CHECK: %[[NEXT:.*]] = arith.select
// CHECK-NEXT: %[[FOLLOWING:.*]] = "ttg.memdesc_index"(%[[FULL]], %[[NEXT]])
// CHECK-NEXT: "ttng.arrive_with_copies"(%[[FOLLOWING]]) {pendings = 0 : i32}
// CHECK: math.exp2
// CHECK: "ttng.order_wait"
// CHECK-NEXT: %[[O:.*]] = "ttng.warp_group_dot"
// CHECK-COUNT-2: "ttg.async_copy_global_to_local"
// CHECK: "ttg.async_commit_group"
// CHECK: "ttng.warp_group_dot_wait"(%[[O]]) {pendings = 0 : i32}
// CHECK: scf.yield
// CHECK-NEXT: }
// CHECK-NEXT: "ttng.order_end"
// CHECK-NEXT: "ttg.barrier"
// CHECK-NEXT: "ttng.inval_barrier"(%[[FULL]])
// CHECK: "ttg.async_wait"(%{{.*}}) {pendings = 0 : i32}
func.func @attention(%x: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %y: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %n: i32, %q: !rows, %zero: !sum) -> !sum {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c64 = arith.constant dense<64> : tensor<64x64xi32, #regs>
  %columns = "tt.make_range"() {end = 64 : i32, start = 0 : i32} : () -> tensor<64xi32, #ttg.linear<[[1], [2], [4], [0]], [[8], [16], [32], [0], [0]], [[0], [0], [0]], []>>
  %row = "tt.expand_dims"(%columns) {axis = 0 : i32} : (tensor<64xi32, #ttg.linear<[[1], [2], [4], [0]], [[8], [16], [32], [0], [0]], [[0], [0], [0]], []>>) -> tensor<1x64xi32, #ttg.linear<[[0, 1], [0, 2], [0, 4], [0, 0]], [[0, 8], [0, 16], [0, 32], [0, 0], [0, 0]], [[0, 0], [0, 0], [0, 0]], []>>
  %places = "tt.broadcast"(%row) : (tensor<1x64xi32, #ttg.linear<[[0, 1], [0, 2], [0, 4], [0, 0]], [[0, 8], [0, 16], [0, 32], [0, 0], [0, 0]], [[0, 0], [0, 0], [0, 0]], []>>) -> tensor<64x64xi32, #regs>
  %xs = "tt.splat"(%x) : (!tt.ptr<f16>) -> !pointers
  %ys = "tt.splat"(%y) : (!tt.ptr<f16>) -> !pointers
  %k0 = "tt.addptr"(%xs, %places) : (!pointers, tensor<64x64xi32, #regs>) -> !pointers
  %v0 = "tt.addptr"(%ys, %places) : (!pointers, tensor<64x64xi32, #regs>) -> !pointers
  %result:3 = scf.for %i = %c0 to %n step %c1 iter_args(%sums = %zero, %ks = %k0, %vs = %v0) -> (!sum, !pointers, !pointers) : i32 {
      %k = "tt.load"(%ks) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (!pointers) -> !tile
      %keys = "ttg.local_alloc"(%k) : (!tile) -> !memory
      %d = "ttng.warp_group_dot"(%q, %keys, %zero) {imprecise = 0 : i32, operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (!rows, !memory, !sum) -> !sum
      %s = "ttng.warp_group_dot_wait"(%d) {pendings = 0 : i32} : (!sum) -> !sum
      %w = math.exp2 %s : !sum
      %h = arith.truncf %w : !sum to !weights
      %v = "tt.load"(%vs) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (!pointers) -> !tile
      %values = "ttg.local_alloc"(%v) : (!tile) -> !memory
      %e = "ttng.warp_group_dot"(%h, %values, %sums) {imprecise = 0 : i32, operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (!weights, !memory, !sum) -> !sum
      %o = "ttng.warp_group_dot_wait"(%e) {pendings = 0 : i32} : (!sum) -> !sum
      %next_k = "tt.addptr"(%ks, %c64) : (!pointers, tensor<64x64xi32, #regs>) -> !pointers
      %next_v = "tt.addptr"(%vs, %c64) : (!pointers, tensor<64x64xi32, #regs>) -> !pointers
      scf.yield %o, %next_k, %next_v : !sum, !pointers, !pointers
  }
  return %result#0 : !sum
}

// Where nothing is computed between the products there is nothing to do meanwhile.

// CHECK-LABEL: func.func @products(
// CHECK-NOT: order_
// CHECK: return
func.func @products(%x: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %y: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %n: i32, %q: !rows, %zero: !sum) -> !sum {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c64 = arith.constant dense<64> : tensor<64x64xi32, #regs>
  %columns = "tt.make_range"() {end = 64 : i32, start = 0 : i32} : () -> tensor<64xi32, #ttg.linear<[[1], [2], [4], [0]], [[8], [16], [32], [0], [0]], [[0], [0], [0]], []>>
  %row = "tt.expand_dims"(%columns) {axis = 0 : i32} : (tensor<64xi32, #ttg.linear<[[1], [2], [4], [0]], [[8], [16], [32], [0], [0]], [[0], [0], [0]], []>>) -> tensor<1x64xi32, #ttg.linear<[[0, 1], [0, 2], [0, 4], [0, 0]], [[0, 8], [0, 16], [0, 32], [0, 0], [0, 0]], [[0, 0], [0, 0], [0, 0]], []>>
  %places = "tt.broadcast"(%row) : (tensor<1x64xi32, #ttg.linear<[[0, 1], [0, 2], [0, 4], [0, 0]], [[0, 8], [0, 16], [0, 32], [0, 0], [0, 0]], [[0, 0], [0, 0], [0, 0]], []>>) -> tensor<64x64xi32, #regs>
  %xs = "tt.splat"(%x) : (!tt.ptr<f16>) -> !pointers
  %ys = "tt.splat"(%y) : (!tt.ptr<f16>) -> !pointers
  %k0 = "tt.addptr"(%xs, %places) : (!pointers, tensor<64x64xi32, #regs>) -> !pointers
  %v0 = "tt.addptr"(%ys, %places) : (!pointers, tensor<64x64xi32, #regs>) -> !pointers
  %result:3 = scf.for %i = %c0 to %n step %c1 iter_args(%sums = %zero, %ks = %k0, %vs = %v0) -> (!sum, !pointers, !pointers) : i32 {
      %k = "tt.load"(%ks) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (!pointers) -> !tile
      %keys = "ttg.local_alloc"(%k) : (!tile) -> !memory
      %d = "ttng.warp_group_dot"(%q, %keys, %zero) {imprecise = 0 : i32, operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (!rows, !memory, !sum) -> !sum
      %s = "ttng.warp_group_dot_wait"(%d) {pendings = 0 : i32} : (!sum) -> !sum
      %h = arith.truncf %s : !sum to !weights
      %v = "tt.load"(%vs) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (!pointers) -> !tile
      %values = "ttg.local_alloc"(%v) : (!tile) -> !memory
      %e = "ttng.warp_group_dot"(%h, %values, %sums) {imprecise = 0 : i32, operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (!weights, !memory, !sum) -> !sum
      %o = "ttng.warp_group_dot_wait"(%e) {pendings = 0 : i32} : (!sum) -> !sum
      %next_k = "tt.addptr"(%ks, %c64) : (!pointers, tensor<64x64xi32, #regs>) -> !pointers
      %next_v = "tt.addptr"(%vs, %c64) : (!pointers, tensor<64x64xi32, #regs>) -> !pointers
      scf.yield %o, %next_k, %next_v : !sum, !pointers, !pointers
  }
  return %result#0 : !sum
}

// The copies of two stages would be waited for by the one group as soon as the other has begun them.

// CHECK-LABEL: func.func @two_stages(
// CHECK-NOT: order_
// CHECK: return
func.func @two_stages(%x: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %y: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %n: i32, %q: !rows, %zero: !sum) -> !sum {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c64 = arith.constant dense<64> : tensor<64x64xi32, #regs>
  %columns = "tt.make_range"() {end = 64 : i32, start = 0 : i32} : () -> tensor<64xi32, #ttg.linear<[[1], [2], [4], [0]], [[8], [16], [32], [0], [0]], [[0], [0], [0]], []>>
  %row = "tt.expand_dims"(%columns) {axis = 0 : i32} : (tensor<64xi32, #ttg.linear<[[1], [2], [4], [0]], [[8], [16], [32], [0], [0]], [[0], [0], [0]], []>>) -> tensor<1x64xi32, #ttg.linear<[[0, 1], [0, 2], [0, 4], [0, 0]], [[0, 8], [0, 16], [0, 32], [0, 0], [0, 0]], [[0, 0], [0, 0], [0, 0]], []>>
  %places = "tt.broadcast"(%row) : (tensor<1x64xi32, #ttg.linear<[[0, 1], [0, 2], [0, 4], [0, 0]], [[0, 8], [0, 16], [0, 32], [0, 0], [0, 0]], [[0, 0], [0, 0], [0, 0]], []>>) -> tensor<64x64xi32, #regs>
  %xs = "tt.splat"(%x) : (!tt.ptr<f16>) -> !pointers
  %ys = "tt.splat"(%y) : (!tt.ptr<f16>) -> !pointers
  %k0 = "tt.addptr"(%xs, %places) : (!pointers, tensor<64x64xi32, #regs>) -> !pointers
  %v0 = "tt.addptr"(%ys, %places) : (!pointers, tensor<64x64xi32, #regs>) -> !pointers
  %result:3 = scf.for %i = %c0 to %n step %c1 iter_args(%sums = %zero, %ks = %k0, %vs = %v0) -> (!sum, !pointers, !pointers) : i32 {
      %k = "tt.load"(%ks) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (!pointers) -> !tile
      %keys = "ttg.local_alloc"(%k) : (!tile) -> !memory
      %d = "ttng.warp_group_dot"(%q, %keys, %zero) {imprecise = 0 : i32, operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (!rows, !memory, !sum) -> !sum
      %s = "ttng.warp_group_dot_wait"(%d) {pendings = 0 : i32} : (!sum) -> !sum
      %w = math.exp2 %s : !sum
      %h = arith.truncf %w : !sum to !weights
      %v = "tt.load"(%vs) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (!pointers) -> !tile
      %values = "ttg.local_alloc"(%v) : (!tile) -> !memory
      %e = "ttng.warp_group_dot"(%h, %values, %sums) {imprecise = 0 : i32, operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (!weights, !memory, !sum) -> !sum
      %o = "ttng.warp_group_dot_wait"(%e) {pendings = 0 : i32} : (!sum) -> !sum
      %next_k = "tt.addptr"(%ks, %c64) : (!pointers, tensor<64x64xi32, #regs>) -> !pointers
      %next_v = "tt.addptr"(%vs, %c64) : (!pointers, tensor<64x64xi32, #regs>) -> !pointers
      scf.yield %o, %next_k, %next_v : !sum, !pointers, !pointers
  } {tt.num_stages = 2 : i32}
  return %result#0 : !sum
}

// All warps meet where data crosses from one to another.

// CHECK-LABEL: func.func @meeting(
// CHECK-NOT: order_
// CHECK: return
func.func @meeting(%x: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %y: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %n: i32, %q: !rows, %zero: !sum) -> !sum {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c64 = arith.constant dense<64> : tensor<64x64xi32, #regs>
  %columns = "tt.make_range"() {end = 64 : i32, start = 0 : i32} : () -> tensor<64xi32, #ttg.linear<[[1], [2], [4], [0]], [[8], [16], [32], [0], [0]], [[0], [0], [0]], []>>
  %row = "tt.expand_dims"(%columns) {axis = 0 : i32} : (tensor<64xi32, #ttg.linear<[[1], [2], [4], [0]], [[8], [16], [32], [0], [0]], [[0], [0], [0]], []>>) -> tensor<1x64xi32, #ttg.linear<[[0, 1], [0, 2], [0, 4], [0, 0]], [[0, 8], [0, 16], [0, 32], [0, 0], [0, 0]], [[0, 0], [0, 0], [0, 0]], []>>
  %places = "tt.broadcast"(%row) : (tensor<1x64xi32, #ttg.linear<[[0, 1], [0, 2], [0, 4], [0, 0]], [[0, 8], [0, 16], [0, 32], [0, 0], [0, 0]], [[0, 0], [0, 0], [0, 0]], []>>) -> tensor<64x64xi32, #regs>
  %xs = "tt.splat"(%x) : (!tt.ptr<f16>) -> !pointers
  %ys = "tt.splat"(%y) : (!tt.ptr<f16>) -> !pointers
  %k0 = "tt.addptr"(%xs, %places) : (!pointers, tensor<64x64xi32, #regs>) -> !pointers
  %v0 = "tt.addptr"(%ys, %places) : (!pointers, tensor<64x64xi32, #regs>) -> !pointers
  %result:3 = scf.for %i = %c0 to %n step %c1 iter_args(%sums = %zero, %ks = %k0, %vs = %v0) -> (!sum, !pointers, !pointers) : i32 {
      %k = "tt.load"(%ks) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (!pointers) -> !tile
      %keys = "ttg.local_alloc"(%k) : (!tile) -> !memory
      %d = "ttng.warp_group_dot"(%q, %keys, %zero) {imprecise = 0 : i32, operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (!rows, !memory, !sum) -> !sum
      %s = "ttng.warp_group_dot_wait"(%d) {pendings = 0 : i32} : (!sum) -> !sum
      %t = "ttg.convert_layout"(%s) : (!sum) -> tensor<128x64xf32, #other>
      %u = math.exp2 %t : tensor<128x64xf32, #other>
      %w = "ttg.convert_layout"(%u) : (tensor<128x64xf32, #other>) -> !sum
      %h = arith.truncf %w : !sum to !weights
      %v = "tt.load"(%vs) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (!pointers) -> !tile
      %values = "ttg.local_alloc"(%v) : (!tile) -> !memory
      %e = "ttng.warp_group_dot"(%h, %values, %sums) {imprecise = 0 : i32, operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (!weights, !memory, !sum) -> !sum
      %o = "ttng.warp_group_dot_wait"(%e) {pendings = 0 : i32} : (!sum) -> !sum
      %next_k = "tt.addptr"(%ks, %c64) : (!pointers, tensor<64x64xi32, #regs>) -> !pointers
      %next_v = "tt.addptr"(%vs, %c64) : (!pointers, tensor<64x64xi32, #regs>) -> !pointers
      scf.yield %o, %next_k, %next_v : !sum, !pointers, !pointers
  }
  return %result#0 : !sum
}
}
