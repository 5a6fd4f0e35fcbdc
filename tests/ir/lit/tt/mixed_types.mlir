// RUN: proton-opt %s | filecheck %s
// The sources of a reduction may differ in type, as values and their indices do.

// CHECK-LABEL: func.func @reduce_with_index
// CHECK: "tt.reduce_return"(%{{.*}}, %{{.*}}) {{.*}} : (f32, i32) -> ()
// CHECK: : (tensor<4xf32>, tensor<4xi32>) -> (f32, i32)
func.func @reduce_with_index(%x: tensor<4xf32>, %i: tensor<4xi32>) -> i32 {
  %0:2 = "tt.reduce"(%x, %i) ({
  ^bb0(%a: f32, %b: i32, %c: f32, %d: i32):
    "tt.reduce_return"(%a, %d) {operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0>} : (f32, i32) -> ()
  }) {axis = 0 : i32, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0>} : (tensor<4xf32>, tensor<4xi32>) -> (f32, i32)
  return %0#1 : i32
}

// CHECK-LABEL: func.func @reduce_of_eight
// CHECK: -> (f32, i32, f16, i1, f64, i64, i8, bf16)
func.func @reduce_of_eight(%0: tensor<4xf32>, %1: tensor<4xi32>, %2: tensor<4xf16>, %3: tensor<4xi1>, %4: tensor<4xf64>, %5: tensor<4xi64>, %6: tensor<4xi8>, %7: tensor<4xbf16>) {
  %8:8 = "tt.reduce"(%0, %1, %2, %3, %4, %5, %6, %7) ({
  ^bb0(%a: f32, %b: i32, %c: f16, %d: i1, %e: f64, %f: i64, %g: i8, %h: bf16, %i: f32, %j: i32, %k: f16, %l: i1, %m: f64, %n: i64, %o: i8, %p: bf16):
    "tt.reduce_return"(%a, %j, %c, %l, %e, %n, %g, %p) {operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 1, 1, 1>} : (f32, i32, f16, i1, f64, i64, i8, bf16) -> ()
  }) {axis = 0 : i32, operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 1, 1, 1>, resultSegmentSizes = array<i32: 1, 1, 1, 1, 1, 1, 1, 1>} : (tensor<4xf32>, tensor<4xi32>, tensor<4xf16>, tensor<4xi1>, tensor<4xf64>, tensor<4xi64>, tensor<4xi8>, tensor<4xbf16>) -> (f32, i32, f16, i1, f64, i64, i8, bf16)
  return
}
