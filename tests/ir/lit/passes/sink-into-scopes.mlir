// RUN: proton-opt --pipeline='sink-into-scopes' %s | filecheck %s

// Indices of a scope stand ahead of the wait for a loop's last product, and go to the rest of the
// scope behind it, in their order. Those of no scope, of another one, and those that something ahead
// of the wait takes stay where they are.

#acc = #ttg.linear<[[0, 1], [8, 0], [0, 8], [0, 16], [0, 32]], [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], [[16, 0], [32, 0]], []>
!sum = tensor<64x64xf32, #acc>
!index = tensor<64x64xi32, #acc>
!mask = tensor<64x64xi1, #acc>
#at = loc("kernel.py":1:1)
#store = loc("scope:store"(#at))
#other = loc("scope:other"(#at))
module attributes {"ttg.num-warps" = 4 : i32} {

// CHECK-LABEL: func.func @product(
// CHECK: scf.for
// CHECK: %[[NONE:.*]] = arith.addi %[[I:.*]], %[[I]]
// CHECK-NEXT: %[[OTHER:.*]] = arith.subi %[[I]], %[[NONE]]
// CHECK-NEXT: %[[SHOWN:.*]] = arith.xori %[[I]], %[[OTHER]]
// CHECK-NEXT: "tt.print"(%[[SHOWN]])
// CHECK-NEXT: %[[S:.*]] = "ttng.warp_group_dot_wait"
// CHECK-NEXT: %[[A:.*]] = arith.muli %[[I]], %[[NONE]]
// CHECK-NEXT: %[[B:.*]] = arith.addi %[[A]], %[[SHOWN]]
// CHECK-NEXT: arith.truncf %[[S]]
func.func @product(%n: i32, %i: !index, %sum: !sum) -> (tensor<64x64xf16, #acc>, !index, !index) {
  %lower = arith.constant 0 : i32
  %step = arith.constant 1 : i32
  %r = scf.for %k = %lower to %n step %step iter_args(%s = %sum) -> (!sum) : i32 {
    scf.yield %s : !sum
  }
  %none = arith.addi %i, %i : !index
  %a = arith.muli %i, %none : !index loc(#store)
  %other = arith.subi %i, %none : !index loc(#other)
  %shown = arith.xori %i, %other : !index loc(#store)
  "tt.print"(%shown) {hex = false, operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>, prefix = "x", signed = array<i32: 1>} : (!index) -> ()
  %b = arith.addi %a, %shown : !index loc(#store)
  %w = "ttng.warp_group_dot_wait"(%r) {pendings = 0 : i32} : (!sum) -> !sum
  %h = arith.truncf %w : !sum to tensor<64x64xf16, #acc> loc(#store)
  return %h, %b, %other : tensor<64x64xf16, #acc>, !index, !index
}

// A wait in a loop, which has none ahead of it: its threads have time until then.

// CHECK-LABEL: func.func @turn(
// CHECK: arith.muli
// CHECK-NEXT: "ttng.warp_group_dot_wait"
func.func @turn(%i: !index, %sum: !sum) -> (tensor<64x64xf16, #acc>, !index) {
  %a = arith.muli %i, %i : !index loc(#store)
  %w = "ttng.warp_group_dot_wait"(%sum) {pendings = 0 : i32} : (!sum) -> !sum
  %h = arith.truncf %w : !sum to tensor<64x64xf16, #acc> loc(#store)
  return %h, %a : tensor<64x64xf16, #acc>, !index
}

// A mask there, with what is computed for it alone, moves; an index that has another use stays.

// CHECK-LABEL: func.func @mask(
// CHECK-NEXT: %[[A:.*]] = arith.muli
// CHECK-NEXT: %[[W:.*]] = "ttng.warp_group_dot_wait"
// CHECK-NEXT: %[[B:.*]] = arith.addi %[[A]]
// CHECK-NEXT: %[[M:.*]] = arith.cmpi sge, %[[A]], %[[B]]
// CHECK-NEXT: arith.select %[[M]], %[[W]]
func.func @mask(%i: !index, %sum: !sum, %none: !sum) -> (!sum, !index) {
  %a = arith.muli %i, %i : !index loc(#store)
  %b = arith.addi %a, %i : !index loc(#store)
  %m = arith.cmpi sge, %a, %b : !index loc(#store)
  %w = "ttng.warp_group_dot_wait"(%sum) {pendings = 0 : i32} : (!sum) -> !sum
  %h = arith.select %m, %w, %none : !mask, !sum loc(#store)
  return %h, %a : !sum, !index
}
}
