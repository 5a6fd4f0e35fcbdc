// RUN: proton-opt --pipeline='hoist-copy-addresses' %s | filecheck %s

// In a warp group's turn the addresses that only copies take go ahead of the product, in their order,
// and scalars of the loop that they are made of are known behind the wait for the turn only. What a
// store takes, too, what a load has given and what the product gives stay behind it.

#regs = #ttg.linear<[[0, 1], [0, 2], [0, 4], [32, 0]], [[0, 8], [0, 16], [0, 32], [1, 0], [2, 0]], [[4, 0], [8, 0], [16, 0]], []>
#acc = #ttg.linear<[[0, 1], [8, 0], [0, 8], [0, 16], [0, 32]], [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], [[16, 0], [32, 0], [64, 0]], []>
#right = #ttg.shared<[[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
!pointers = tensor<64x64x!tt.ptr<f16>, #regs>
!offsets = tensor<64x64xi32, #regs>
!memory = !ttg.memdesc<[64, 64], f16, #right>
!buffer = !ttg.mutable_memdesc<[64, 64], f16, #right>
!sum = tensor<128x64xf32, #acc>
!weights = tensor<128x64xf16, #acc>

module attributes {"ttg.num-warps" = 8 : i32} {

// CHECK-LABEL: func.func @turns(
// CHECK-SAME: %[[N:[a-z0-9]+]]: i32, %[[STEP:[a-z0-9]+]]: i32, %[[ONCE:[a-z0-9]+]]: i32
// CHECK: scf.for %[[I:[a-z0-9]+]] =
// CHECK: "ttng.order_wait"
// CHECK-NEXT: %[[NEXT:.*]] = arith.muli %[[I]], %[[STEP]]
// CHECK-NEXT: %[[KNOWN:.*]] = "proton_gpu.optimization_barrier"(%[[NEXT]])
// CHECK-NEXT: %[[OFFSETS:.*]] = "tt.splat"(%[[KNOWN]])
// CHECK-NEXT: %[[ALL:.*]] = "tt.splat"(%[[ONCE]])
// CHECK-NEXT: %[[SUM:.*]] = arith.addi %[[OFFSETS]], %[[ALL]]
// CHECK-NEXT: %[[K:.*]] = "tt.addptr"(%[[KS:.*]], %[[SUM]])
// CHECK-NEXT: %[[O:.*]] = "ttng.warp_group_dot"
// CHECK-NEXT: "proton_gpu.read_counter"
// CHECK-NEXT: %[[ROWS:.*]] = "tt.load"
// CHECK-NEXT: %[[V:.*]] = "tt.addptr"(%[[KS]], %[[ROWS]])
// CHECK-NEXT: %[[SHOWN:.*]] = "tt.splat"(%[[I]])
// CHECK-NEXT: %[[W:.*]] = "tt.addptr"(%[[KS]], %[[SHOWN]])
// CHECK-NEXT: "ttg.async_copy_global_to_local"(%[[K]]
// CHECK-NEXT: "ttg.async_copy_global_to_local"(%[[V]]
// CHECK-NEXT: "ttg.async_copy_global_to_local"(%[[W]]
// CHECK: "ttng.warp_group_dot_wait"(%[[O]])
func.func @turns(%n: i32, %step: i32, %once: i32, %ks: !pointers, %indices: tensor<64x64x!tt.ptr<i32>, #regs>, %h: !weights, %v: !memory, %b: !buffer, %zero: !sum) -> !sum {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  "ttng.order_begin"() : () -> ()
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %zero) -> (!sum) : i32 {
    "ttng.order_wait"() : () -> ()
    %e = "ttng.warp_group_dot"(%h, %v, %sum) {imprecise = 0 : i32, operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (!weights, !memory, !sum) -> !sum
    %t = "proton_gpu.read_counter"() : () -> i64
    %next = arith.muli %i, %step : i32
    %offsets = "tt.splat"(%next) : (i32) -> !offsets
    %all = "tt.splat"(%once) : (i32) -> !offsets
    %places = arith.addi %offsets, %all : !offsets
    %rows = "tt.load"(%indices) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<64x64x!tt.ptr<i32>, #regs>) -> !offsets
    %k = "tt.addptr"(%ks, %places) : (!pointers, !offsets) -> !pointers
    %indirect = "tt.addptr"(%ks, %rows) : (!pointers, !offsets) -> !pointers
    %shown = "tt.splat"(%i) : (i32) -> !offsets
    %also = "tt.addptr"(%ks, %shown) : (!pointers, !offsets) -> !pointers
    %x = "ttg.async_copy_global_to_local"(%k, %b) {operandSegmentSizes = array<i32: 1, 1, 0>} : (!pointers, !buffer) -> !ttg.async_token
    %y = "ttg.async_copy_global_to_local"(%indirect, %b) {operandSegmentSizes = array<i32: 1, 1, 0>} : (!pointers, !buffer) -> !ttg.async_token
    %z = "ttg.async_copy_global_to_local"(%also, %b) {operandSegmentSizes = array<i32: 1, 1, 0>} : (!pointers, !buffer) -> !ttg.async_token
    %g = "ttg.async_commit_group"(%x, %y, %z) {operandSegmentSizes = array<i32: 3, 0>} : (!ttg.async_token, !ttg.async_token, !ttg.async_token) -> !ttg.async_token
    "tt.print"(%shown) {hex = false, operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>, prefix = "x", signed = array<i32: 1>} : (!offsets) -> ()
    %o = "ttng.warp_group_dot_wait"(%e) {pendings = 0 : i32} : (!sum) -> !sum
    "ttng.order_pass"() : () -> ()
    scf.yield %o : !sum
  }
  "ttng.order_end"() : () -> ()
  return %r : !sum
}

// Without turns products are issued beside what the warps compute: nothing moves.

// CHECK-LABEL: func.func @alone(
// CHECK: "ttng.warp_group_dot"
// CHECK-NEXT: "tt.splat"
func.func @alone(%i: i32, %ks: !pointers, %h: !weights, %v: !memory, %b: !buffer, %zero: !sum) -> !sum {
  %e = "ttng.warp_group_dot"(%h, %v, %zero) {imprecise = 0 : i32, operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (!weights, !memory, !sum) -> !sum
  %offsets = "tt.splat"(%i) : (i32) -> !offsets
  %k = "tt.addptr"(%ks, %offsets) : (!pointers, !offsets) -> !pointers
  %x = "ttg.async_copy_global_to_local"(%k, %b) {operandSegmentSizes = array<i32: 1, 1, 0>} : (!pointers, !buffer) -> !ttg.async_token
  %o = "ttng.warp_group_dot_wait"(%e) {pendings = 0 : i32} : (!sum) -> !sum
  return %o : !sum
}
}
