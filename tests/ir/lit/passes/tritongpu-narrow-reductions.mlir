// RUN: proton-opt --pipeline='tritongpu-narrow-reductions' %s | filecheck %s

#row = #ttg.linear<[[0, 1], [0, 2]], [[0, 4], [0, 8], [0, 16], [1, 0], [2, 0]], [], []>
#flat = #ttg.linear<[[1], [2]], [[4], [8], [16], [32], [64]], [], []>
#sum = #ttg.linear<[], [[0], [0], [0], [1], [2]], [], []>

module attributes {"ttg.num-warps" = 1 : i32} {

// CHECK-LABEL: func.func @widened_for_the_largest(
// CHECK: %[[A:.*]] = math.absf %{{.*}} : tensor<128xbf16
// CHECK: %[[R:.*]] = "tt.reshape"(%[[A]]) : (tensor<128xbf16{{.*}} -> tensor<4x32xbf16
// CHECK: %[[M:.*]] = "tt.reduce"(%[[R]])
// CHECK: arith.maxnumf {{.*}} : bf16
// CHECK: -> tensor<4xbf16
// CHECK: arith.extf %[[M]] : tensor<4xbf16, {{.*}} to tensor<4xf32
func.func @widened_for_the_largest(%x: tensor<128xbf16, #flat>) -> tensor<4xf32, #sum> {
  %w = arith.extf %x : tensor<128xbf16, #flat> to tensor<128xf32, #flat>
  %a = math.absf %w : tensor<128xf32, #flat>
  %r = "tt.reshape"(%a) : (tensor<128xf32, #flat>) -> tensor<4x32xf32, #row>
  %m = "tt.reduce"(%r) ({
  ^bb0(%p: f32, %q: f32):
    %z = arith.maxnumf %p, %q : f32
    "tt.reduce_return"(%z) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (f32) -> ()
  }) {axis = 1 : i32, operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (tensor<4x32xf32, #row>) -> tensor<4xf32, #sum>
  return %m : tensor<4xf32, #sum>
}

// Sums round, and what is widened for something else, too, is there already.

// CHECK-LABEL: func.func @rounded(
// CHECK: "tt.reduce"
// CHECK: arith.addf {{.*}} : f32
func.func @rounded(%x: tensor<4x32xf16, #row>) -> tensor<4xf32, #sum> {
  %w = arith.extf %x : tensor<4x32xf16, #row> to tensor<4x32xf32, #row>
  %m = "tt.reduce"(%w) ({
  ^bb0(%p: f32, %q: f32):
    %z = arith.addf %p, %q : f32
    "tt.reduce_return"(%z) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (f32) -> ()
  }) {axis = 1 : i32, operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (tensor<4x32xf32, #row>) -> tensor<4xf32, #sum>
  return %m : tensor<4xf32, #sum>
}

// CHECK-LABEL: func.func @wanted_elsewhere(
// CHECK: "tt.reduce"
// CHECK: arith.minimumf {{.*}} : f32
func.func @wanted_elsewhere(%x: tensor<4x32xf16, #row>) -> (tensor<4xf32, #sum>, tensor<4x32xf32, #row>) {
  %w = arith.extf %x : tensor<4x32xf16, #row> to tensor<4x32xf32, #row>
  %m = "tt.reduce"(%w) ({
  ^bb0(%p: f32, %q: f32):
    %z = arith.minimumf %p, %q : f32
    "tt.reduce_return"(%z) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (f32) -> ()
  }) {axis = 1 : i32, operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (tensor<4x32xf32, #row>) -> tensor<4xf32, #sum>
  return %m, %w : tensor<4xf32, #sum>, tensor<4x32xf32, #row>
}
// What no op was given has no wide form to look for.

// CHECK-LABEL: func.func @of_a_constant(
// CHECK: "tt.reduce"
// CHECK: arith.minimumf {{.*}} : f32
func.func @of_a_constant() -> tensor<4xf32, #sum> {
  %w = arith.constant dense<1.0> : tensor<4x32xf32, #row>
  %m = "tt.reduce"(%w) ({
  ^bb0(%p: f32, %q: f32):
    %z = arith.minimumf %p, %q : f32
    "tt.reduce_return"(%z) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (f32) -> ()
  }) {axis = 1 : i32, operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (tensor<4x32xf32, #row>) -> tensor<4xf32, #sum>
  return %m : tensor<4xf32, #sum>
}
}
