// RUN: proton-opt %s | filecheck %s
// The operands of one variadic group may differ in type: a reduction of values with their
// indices, a payload of integers and floats.

// CHECK-LABEL: func.func @reduce_with_index
// CHECK: "tt.reduce_return"(%{{.*}}, %{{.*}}) {{.*}} : (f32, i32) -> ()
// CHECK: : (tensor<4xf32>, tensor<4xi32>) -> (f32, i32)
func.func @reduce_with_index(%x: tensor<4xf32>, %i: tensor<4xi32>) -> i32 {
  %0:2 = "tt.reduce"(%x, %i) ({
  ^bb0(%a: f32, %b: i32, %c: f32, %d: i32):
    "tt.reduce_return"(%a, %d) {operandSegmentSizes = array<i32: 2>} : (f32, i32) -> ()
  }) {axis = 0 : i32, operandSegmentSizes = array<i32: 2>, resultSegmentSizes = array<i32: 2>} : (tensor<4xf32>, tensor<4xi32>) -> (f32, i32)
  return %0#1 : i32
}

// CHECK-LABEL: func.func @payload
// CHECK: "proton.record"(%{{.*}}, %{{.*}}) {{.*}} : (i64, f64) -> ()
func.func @payload(%x: i64, %y: f64) {
  "proton.record"(%x, %y) {scope = "a", phase = "start", names = ["x", "y"], operandSegmentSizes = array<i32: 2>} : (i64, f64) -> ()
  return
}

// CHECK-LABEL: func.func @circular_record
// CHECK: "proton_gpu.circular_record"({{.*}} : (!proton_gpu.segment, i64, i64, i32, i64, f64) -> ()
func.func @circular_record(%s: !proton_gpu.segment, %t: i64, %i: i32, %x: f64) {
  "proton_gpu.circular_record"(%s, %t, %t, %i, %t, %x) {scope_id = 3 : i32, kind = 1 : i32, operandSegmentSizes = array<i32: 1, 1, 1, 1, 2>} : (!proton_gpu.segment, i64, i64, i32, i64, f64) -> ()
  return
}
