// RUN: proton-opt --pipeline='tritongpu-optimize-thread-locality' %s | filecheck %s

#four = #ttg.linear<[[1], [2]], [[4], [8], [16], [32], [64]], [], []>
#lanes = #ttg.linear<[], [[1], [2], [4], [8], [16]], [], []>

module attributes {"ttg.num-warps" = 1 : i32} {

// A thread adds up its four elements in the loop; threads meet once, behind it.

// CHECK-LABEL: func.func @sum(
// CHECK-SAME: %{{.*}}: tensor<128xf32, {{.*}}>, %[[INIT:.*]]: f32
// CHECK: %[[ZERO:.*]] = arith.constant dense<0.000000e+00> : tensor<32xf32
// CHECK: %[[R:.*]]:2 = scf.for {{.*}} iter_args(%[[OLD:.*]] = %[[INIT]], %[[PART:.*]] = %[[ZERO]])
// CHECK: %[[SPLIT:.*]] = "tt.reshape"({{.*}} -> tensor<32x4xf32, #ttg.linear<{{..}}0, 1], [0, 2]], {{..}}1, 0], [2, 0], [4, 0], [8, 0], [16, 0]], [], []>>
// CHECK: %[[OWN:.*]] = "tt.reduce"(%[[SPLIT]])
// CHECK: axis = 1 : i32
// CHECK: %[[ADDED:.*]] = arith.addf %[[PART]], %[[OWN]]
// CHECK-NEXT: scf.yield %[[OLD]], %[[ADDED]]
// CHECK: %[[WHOLE:.*]] = "tt.reduce"(%[[R]]#1)
// CHECK: axis = 0 : i32
// CHECK: %[[TOTAL:.*]] = arith.addf %[[INIT]], %[[WHOLE]] : f32
// CHECK-NEXT: return %[[TOTAL]]
func.func @sum(%x: tensor<128xf32, #four>, %init: f32, %n: i32) -> f32 {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %r = scf.for %i = %zero to %n step %one iter_args(%sum = %init) -> (f32) : i32 {
    %t = "tt.reduce"(%x) ({
    ^bb0(%a: f32, %b: f32):
      %s = arith.addf %a, %b : f32
      "tt.reduce_return"(%s) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (f32) -> ()
    }) {axis = 0 : i32, operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (tensor<128xf32, #four>) -> f32
    %u = arith.addf %sum, %t : f32
    scf.yield %u : f32
  }
  return %r : f32
}

// The neutral element is that of the combination.

// CHECK-LABEL: func.func @maximum(
// CHECK: arith.constant dense<0xFF800000> : tensor<32xf32
// CHECK: scf.for
// CHECK: arith.maxnumf
// CHECK: scf.yield
func.func @maximum(%x: tensor<128xf32, #four>, %init: f32, %n: i32) -> f32 {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %r = scf.for %i = %zero to %n step %one iter_args(%sum = %init) -> (f32) : i32 {
    %t = "tt.reduce"(%x) ({
    ^bb0(%a: f32, %b: f32):
      %s = arith.maxnumf %a, %b : f32
      "tt.reduce_return"(%s) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (f32) -> ()
    }) {axis = 0 : i32, operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (tensor<128xf32, #four>) -> f32
    %u = arith.maxnumf %sum, %t : f32
    scf.yield %u : f32
  }
  return %r : f32
}

// A thread has one element only: there is nothing to add up first.

// CHECK-LABEL: func.func @one_element_a_thread(
// CHECK-NOT: tt.reshape
// CHECK: return
func.func @one_element_a_thread(%x: tensor<32xf32, #lanes>, %init: f32, %n: i32) -> f32 {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %r = scf.for %i = %zero to %n step %one iter_args(%sum = %init) -> (f32) : i32 {
    %t = "tt.reduce"(%x) ({
    ^bb0(%a: f32, %b: f32):
      %s = arith.addf %a, %b : f32
      "tt.reduce_return"(%s) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (f32) -> ()
    }) {axis = 0 : i32, operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (tensor<32xf32, #lanes>) -> f32
    %u = arith.addf %sum, %t : f32
    scf.yield %u : f32
  }
  return %r : f32
}

// The sum so far is read in the loop.

// CHECK-LABEL: func.func @total_is_used(
// CHECK-NOT: tt.reshape
// CHECK: return
func.func @total_is_used(%x: tensor<128xf32, #four>, %p: !tt.ptr<f32>, %init: f32, %n: i32) -> f32 {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %r = scf.for %i = %zero to %n step %one iter_args(%sum = %init) -> (f32) : i32 {
    %t = "tt.reduce"(%x) ({
    ^bb0(%a: f32, %b: f32):
      %s = arith.addf %a, %b : f32
      "tt.reduce_return"(%s) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (f32) -> ()
    }) {axis = 0 : i32, operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (tensor<128xf32, #four>) -> f32
    %u = arith.addf %sum, %t : f32
    "tt.store"(%p, %u) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>} : (!tt.ptr<f32>, f32) -> ()
    scf.yield %u : f32
  }
  return %r : f32
}

// A sum of maxima is not a sum of parts.

// CHECK-LABEL: func.func @sum_of_maxima(
// CHECK-NOT: tt.reshape
// CHECK: return
func.func @sum_of_maxima(%x: tensor<128xf32, #four>, %init: f32, %n: i32) -> f32 {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %r = scf.for %i = %zero to %n step %one iter_args(%sum = %init) -> (f32) : i32 {
    %t = "tt.reduce"(%x) ({
    ^bb0(%a: f32, %b: f32):
      %s = arith.maxnumf %a, %b : f32
      "tt.reduce_return"(%s) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (f32) -> ()
    }) {axis = 0 : i32, operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (tensor<128xf32, #four>) -> f32
    %u = arith.addf %sum, %t : f32
    scf.yield %u : f32
  }
  return %r : f32
}

// Subtraction of a sum is none either.

// CHECK-LABEL: func.func @difference(
// CHECK-NOT: tt.reshape
// CHECK: return
func.func @difference(%x: tensor<128xf32, #four>, %init: f32, %n: i32) -> f32 {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %r = scf.for %i = %zero to %n step %one iter_args(%sum = %init) -> (f32) : i32 {
    %t = "tt.reduce"(%x) ({
    ^bb0(%a: f32, %b: f32):
      %s = arith.addf %a, %b : f32
      "tt.reduce_return"(%s) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (f32) -> ()
    }) {axis = 0 : i32, operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (tensor<128xf32, #four>) -> f32
    %u = arith.subf %sum, %t : f32
    scf.yield %u : f32
  }
  return %r : f32
}
}
