// RUN: proton-opt --pipeline='tritongpu-swap-neighbours' %s | filecheck %s

// Of 2 x 2 x 32 elements a thread has the first bit, lanes the last ones, and two warps the second.
#all = #ttg.linear<[[1, 0, 0]], [[0, 0, 1], [0, 0, 2], [0, 0, 4], [0, 0, 8], [0, 0, 16]], [[0, 1, 0]], []>
#first = #ttg.linear<[], [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16]], [[1, 0]], []>
#without = #ttg.linear<[], [[0, 0, 1], [0, 0, 2], [0, 0, 4], [0, 0, 8], [0, 0, 16]], [[0, 1, 0]], []>
#second = #ttg.linear<[[1, 0]], [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16]], [[0, 0]], []>
#with = #ttg.linear<[[1, 0, 0]], [[0, 0, 1], [0, 0, 2], [0, 0, 4], [0, 0, 8], [0, 0, 16]], [[0, 0, 0]], []>

module attributes {"ttg.num-warps" = 2 : i32} {

// CHECK-LABEL: func.func @own(
// CHECK-SAME: %[[X:.*]]: tensor
// CHECK: %[[Y:.*]] = "ttg.swap"(%[[X]]) {axis = 0 : i32}
// CHECK: return %[[Y]]
func.func @own(%x: tensor<2x2x32xi32, #all>) -> tensor<2x2x32xi32, #all> {
  %r = "tt.reduce"(%x) ({
  ^bb0(%p: i32, %q: i32):
    %s = arith.xori %p, %q : i32
    "tt.reduce_return"(%s) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (i32) -> ()
  }) {axis = 0 : i32, operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (tensor<2x2x32xi32, #all>) -> tensor<2x32xi32, #first>
  %e = "tt.expand_dims"(%r) {axis = 0 : i32} : (tensor<2x32xi32, #first>) -> tensor<1x2x32xi32, #without>
  %b = "tt.broadcast"(%e) : (tensor<1x2x32xi32, #without>) -> tensor<2x2x32xi32, #all>
  %y = arith.xori %x, %b : tensor<2x2x32xi32, #all>
  return %y : tensor<2x2x32xi32, #all>
}

// The other way round.

// CHECK-LABEL: func.func @swapped_operands(
// CHECK: "ttg.swap"
func.func @swapped_operands(%x: tensor<2x2x32xi32, #all>) -> tensor<2x2x32xi32, #all> {
  %r = "tt.reduce"(%x) ({
  ^bb0(%p: i32, %q: i32):
    %s = arith.xori %p, %q : i32
    "tt.reduce_return"(%s) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (i32) -> ()
  }) {axis = 0 : i32, operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (tensor<2x2x32xi32, #all>) -> tensor<2x32xi32, #first>
  %e = "tt.expand_dims"(%r) {axis = 0 : i32} : (tensor<2x32xi32, #first>) -> tensor<1x2x32xi32, #without>
  %b = "tt.broadcast"(%e) : (tensor<1x2x32xi32, #without>) -> tensor<2x2x32xi32, #all>
  %y = arith.xori %b, %x : tensor<2x2x32xi32, #all>
  return %y : tensor<2x2x32xi32, #all>
}

// A sum, the pairs of another value, and a partner that another warp has stay.

// CHECK-LABEL: func.func @sum(
// CHECK-NOT: ttg.swap
func.func @sum(%x: tensor<2x2x32xi32, #all>) -> tensor<2x2x32xi32, #all> {
  %r = "tt.reduce"(%x) ({
  ^bb0(%p: i32, %q: i32):
    %s = arith.addi %p, %q : i32
    "tt.reduce_return"(%s) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (i32) -> ()
  }) {axis = 0 : i32, operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (tensor<2x2x32xi32, #all>) -> tensor<2x32xi32, #first>
  %e = "tt.expand_dims"(%r) {axis = 0 : i32} : (tensor<2x32xi32, #first>) -> tensor<1x2x32xi32, #without>
  %b = "tt.broadcast"(%e) : (tensor<1x2x32xi32, #without>) -> tensor<2x2x32xi32, #all>
  %y = arith.xori %x, %b : tensor<2x2x32xi32, #all>
  return %y : tensor<2x2x32xi32, #all>
}

// CHECK-LABEL: func.func @other_value(
// CHECK-NOT: ttg.swap
func.func @other_value(%x: tensor<2x2x32xi32, #all>, %z: tensor<2x2x32xi32, #all>) -> tensor<2x2x32xi32, #all> {
  %r = "tt.reduce"(%x) ({
  ^bb0(%p: i32, %q: i32):
    %s = arith.xori %p, %q : i32
    "tt.reduce_return"(%s) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (i32) -> ()
  }) {axis = 0 : i32, operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (tensor<2x2x32xi32, #all>) -> tensor<2x32xi32, #first>
  %e = "tt.expand_dims"(%r) {axis = 0 : i32} : (tensor<2x32xi32, #first>) -> tensor<1x2x32xi32, #without>
  %b = "tt.broadcast"(%e) : (tensor<1x2x32xi32, #without>) -> tensor<2x2x32xi32, #all>
  %y = arith.xori %z, %b : tensor<2x2x32xi32, #all>
  return %y : tensor<2x2x32xi32, #all>
}

// CHECK-LABEL: func.func @other_warp(
// CHECK-NOT: ttg.swap
func.func @other_warp(%x: tensor<2x2x32xi32, #all>) -> tensor<2x2x32xi32, #all> {
  %r = "tt.reduce"(%x) ({
  ^bb0(%p: i32, %q: i32):
    %s = arith.xori %p, %q : i32
    "tt.reduce_return"(%s) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (i32) -> ()
  }) {axis = 1 : i32, operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (tensor<2x2x32xi32, #all>) -> tensor<2x32xi32, #second>
  %e = "tt.expand_dims"(%r) {axis = 1 : i32} : (tensor<2x32xi32, #second>) -> tensor<2x1x32xi32, #with>
  %b = "tt.broadcast"(%e) : (tensor<2x1x32xi32, #with>) -> tensor<2x2x32xi32, #all>
  %y = arith.xori %x, %b : tensor<2x2x32xi32, #all>
  return %y : tensor<2x2x32xi32, #all>
}

}
