// RUN: proton-opt --pipeline='triton-nvidia-gpu-fence-insertion' %s | filecheck %s

// Threads fence what they wrote before they meet. The conversion has a barrier of its own, and what
// it moves goes through other memory, so none follows.

#regs = #ttg.linear<[[0, 1], [0, 2], [0, 4], [32, 0]], [[0, 8], [0, 16], [0, 32], [1, 0], [2, 0]], [[4, 0], [8, 0], [16, 0]], []>
#acc = #ttg.linear<[[0, 1], [8, 0], [0, 8], [0, 16], [0, 32]], [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], [[16, 0], [32, 0], [64, 0]], []>
#other = #ttg.linear<[[0, 1], [0, 2], [0, 4], [32, 0], [64, 0]], [[0, 8], [0, 16], [0, 32], [1, 0], [2, 0]], [[4, 0], [8, 0], [16, 0]], []>
#right = #ttg.shared<[[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
#left = #ttg.shared<[[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0], [64, 0]]>
!rows = !ttg.memdesc<[128, 64], f16, #left>
!tile = tensor<64x64xf16, #regs>
!memory = !ttg.memdesc<[64, 64], f16, #right>
!sum = tensor<128x64xf32, #acc>
!weights = tensor<128x64xf16, #acc>
!moved = tensor<128x64xf16, #other>

module attributes {"ttg.num-warps" = 8 : i32} {

// CHECK-LABEL: func.func @conversion(
// CHECK: "ttg.local_alloc"
// CHECK-NEXT: "ttng.fence_async_shared"
// CHECK-NEXT: "ttg.convert_layout"
// CHECK-NEXT: "ttng.warp_group_dot"
func.func @conversion(%v: !tile, %w: !moved, %zero: !sum) -> !sum {
  %m = "ttg.local_alloc"(%v) : (!tile) -> !memory
  %h = "ttg.convert_layout"(%w) : (!moved) -> !weights
  %d = "ttng.warp_group_dot"(%h, %m, %zero) {imprecise = 0 : i32, operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (!weights, !memory, !sum) -> !sum
  %s = "ttng.warp_group_dot_wait"(%d) {pendings = 0 : i32} : (!sum) -> !sum
  return %s : !sum
}

// What is written later has a fence of its own where threads have met in between: no barrier stands
// between the second write and the product that reads what the first one wrote.

// CHECK-LABEL: func.func @two(
// CHECK: "ttg.local_alloc"
// CHECK-NEXT: "ttng.fence_async_shared"
// CHECK-NEXT: "ttg.convert_layout"
// CHECK-NEXT: "ttg.local_alloc"
// CHECK-NEXT: "ttng.fence_async_shared"
// CHECK-NEXT: "ttng.warp_group_dot"
// CHECK-NOT: "ttng.fence_async_shared"
// CHECK: return
func.func @two(%v: !tile, %x: !tile, %w: !moved, %zero: !sum) -> !sum {
  %m = "ttg.local_alloc"(%v) : (!tile) -> !memory
  %h = "ttg.convert_layout"(%w) : (!moved) -> !weights
  %n = "ttg.local_alloc"(%x) : (!tile) -> !memory
  %d = "ttng.warp_group_dot"(%h, %m, %zero) {imprecise = 0 : i32, operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (!weights, !memory, !sum) -> !sum
  %s = "ttng.warp_group_dot_wait"(%d) {pendings = 0 : i32} : (!sum) -> !sum
  %e = "ttng.warp_group_dot"(%h, %n, %s) {imprecise = 0 : i32, operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (!weights, !memory, !sum) -> !sum
  %t = "ttng.warp_group_dot_wait"(%e) {pendings = 0 : i32} : (!sum) -> !sum
  return %t : !sum
}

// What was written ahead of a loop is fenced there: the first product may have met the others before
// the loop writes, and the second loop writes nothing.

// CHECK-LABEL: func.func @loops(
// CHECK: "ttg.local_alloc"
// CHECK-NEXT: "ttng.fence_async_shared"
// CHECK-NEXT: scf.for
// CHECK: "ttg.local_alloc"
// CHECK-NEXT: "ttng.fence_async_shared"
// CHECK: scf.yield
// CHECK: "ttg.local_alloc"
// CHECK-NEXT: "ttng.fence_async_shared"
// CHECK-NEXT: scf.for
// CHECK-NOT: "ttng.fence_async_shared"
// CHECK: return
func.func @loops(%v: !tile, %x: !tile, %h: !weights, %zero: !sum, %n: index) -> !sum {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = "ttg.local_alloc"(%v) : (!tile) -> !memory
  %a = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %zero) -> !sum {
    %k = "ttg.local_alloc"(%x) : (!tile) -> !memory
    %d = "ttng.warp_group_dot"(%h, %m, %sum) {imprecise = 0 : i32, operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (!weights, !memory, !sum) -> !sum
    %s = "ttng.warp_group_dot_wait"(%d) {pendings = 0 : i32} : (!sum) -> !sum
    %e = "ttng.warp_group_dot"(%h, %k, %s) {imprecise = 0 : i32, operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (!weights, !memory, !sum) -> !sum
    %t = "ttng.warp_group_dot_wait"(%e) {pendings = 0 : i32} : (!sum) -> !sum
    scf.yield %t : !sum
  }
  %o = "ttg.local_alloc"(%x) : (!tile) -> !memory
  %b = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %a) -> !sum {
    %d = "ttng.warp_group_dot"(%h, %o, %sum) {imprecise = 0 : i32, operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (!weights, !memory, !sum) -> !sum
    %s = "ttng.warp_group_dot_wait"(%d) {pendings = 0 : i32} : (!sum) -> !sum
    scf.yield %s : !sum
  }
  return %b : !sum
}

// A product that reads what the loop writes meets the others behind that, so one fence is for both.

// CHECK-LABEL: func.func @both(
// CHECK: "ttg.local_alloc"
// CHECK-NEXT: "ttg.convert_layout"
// CHECK-NEXT: scf.for
// CHECK-NEXT: "ttg.local_alloc"
// CHECK-NEXT: "ttng.fence_async_shared"
// CHECK-NEXT: "ttng.warp_group_dot"
// CHECK-NOT: "ttng.fence_async_shared"
// CHECK: return
func.func @both(%w: !moved, %x: !tile, %zero: !sum, %n: index) -> (!sum, !weights) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %q = "ttg.local_alloc"(%w) : (!moved) -> !rows
  %h = "ttg.convert_layout"(%w) : (!moved) -> !weights
  %a = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %zero) -> !sum {
    %k = "ttg.local_alloc"(%x) : (!tile) -> !memory
    %d = "ttng.warp_group_dot"(%q, %k, %sum) {imprecise = 0 : i32, operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (!rows, !memory, !sum) -> !sum
    %s = "ttng.warp_group_dot_wait"(%d) {pendings = 0 : i32} : (!sum) -> !sum
    scf.yield %s : !sum
  }
  return %a, %h : !sum, !weights
}

// What is written at the end of an iteration is fenced there, for the next one.

// CHECK-LABEL: func.func @at_the_end(
// CHECK: scf.for
// CHECK-NEXT: "ttng.warp_group_dot"
// CHECK: "ttg.local_store"
// CHECK-NEXT: "ttng.fence_async_shared"
// CHECK-NEXT: scf.yield
func.func @at_the_end(%v: !tile, %h: !weights, %zero: !sum, %n: index) -> !sum {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = "ttg.local_reserve"() : () -> !ttg.mutable_memdesc<[64, 64], f16, #right>
  %a = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %zero) -> !sum {
    %d = "ttng.warp_group_dot"(%h, %m, %sum) {imprecise = 0 : i32, operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (!weights, !ttg.mutable_memdesc<[64, 64], f16, #right>, !sum) -> !sum
    %s = "ttng.warp_group_dot_wait"(%d) {pendings = 0 : i32} : (!sum) -> !sum
    "ttg.local_store"(%v, %m) : (!tile, !ttg.mutable_memdesc<[64, 64], f16, #right>) -> ()
    scf.yield %s : !sum
  }
  return %a : !sum
}
}
