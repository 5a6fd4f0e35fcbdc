// RUN: proton-opt %s --split-input-file --verify-diagnostics
// Each rule of the verifiers of scans, histograms, gathers, prints and externs, broken once.

func.func @scan_axis(%x: tensor<4xf32>) {
  // expected-error@+1 {{'tt.scan' axis must lie in [0, 1), got 1}}
  %0 = "tt.scan"(%x) ({
  ^bb0(%a: f32, %b: f32):
    "tt.scan_return"(%a) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (f32) -> ()
  }) {axis = 1 : i32, reverse = false, operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (tensor<4xf32>) -> tensor<4xf32>
  return
}
// -----
func.func @scan_result(%x: tensor<4xf32>) {
  // expected-error@+1 {{'tt.scan' results must be (tensor<4xf32>), got (f32)}}
  %0 = "tt.scan"(%x) ({
  ^bb0(%a: f32, %b: f32):
    "tt.scan_return"(%a) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (f32) -> ()
  }) {axis = 0 : i32, reverse = false, operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (tensor<4xf32>) -> f32
  return
}
// -----
func.func @scan_end(%x: tensor<4xf32>) {
  // expected-error@+1 {{'tt.scan' the region must end with tt.scan_return}}
  %0 = "tt.scan"(%x) ({
  ^bb0(%a: f32, %b: f32):
    "tt.reduce_return"(%a) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (f32) -> ()
  }) {axis = 0 : i32, reverse = false, operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (tensor<4xf32>) -> tensor<4xf32>
  return
}
// -----
func.func @scan_without_direction(%x: tensor<4xf32>) {
  // expected-error@+1 {{'tt.scan' needs the attribute reverse}}
  %0 = "tt.scan"(%x) ({
  ^bb0(%a: f32, %b: f32):
    "tt.scan_return"(%a) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (f32) -> ()
  }) {axis = 0 : i32, operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (tensor<4xf32>) -> tensor<4xf32>
  return
}
// -----
func.func @histogram_of_floats(%x: tensor<4xf32>) {
  // expected-error@+1 {{'tt.histogram' operand 0 must be a row of integers, got tensor<4xf32>}}
  %0 = "tt.histogram"(%x) {operandSegmentSizes = array<i32: 1, 0>} : (tensor<4xf32>) -> tensor<8xi32>
  return
}
// -----
func.func @histogram_of_rows(%x: tensor<4x2xi32>) {
  // expected-error@+1 {{'tt.histogram' operand 0 must be a row of integers, got tensor<4x2xi32>}}
  %0 = "tt.histogram"(%x) {operandSegmentSizes = array<i32: 1, 0>} : (tensor<4x2xi32>) -> tensor<8xi32>
  return
}
// -----
func.func @histogram_shape(%x: tensor<4xi32>) {
  // expected-error@+1 {{'tt.histogram' result must have one dimension, got (8, 1)}}
  %0 = "tt.histogram"(%x) {operandSegmentSizes = array<i32: 1, 0>} : (tensor<4xi32>) -> tensor<8x1xi32>
  return
}
// -----
func.func @histogram_element(%x: tensor<4xi32>) {
  // expected-error@+1 {{'tt.histogram' result must be of i32, got i64}}
  %0 = "tt.histogram"(%x) {operandSegmentSizes = array<i32: 1, 0>} : (tensor<4xi32>) -> tensor<8xi64>
  return
}
// -----
func.func @histogram_mask(%x: tensor<4xi32>, %m: tensor<8xi1>) {
  // expected-error@+1 {{'tt.histogram' mask must have shape (4,), got (8,)}}
  %0 = "tt.histogram"(%x, %m) {operandSegmentSizes = array<i32: 1, 1>} : (tensor<4xi32>, tensor<8xi1>) -> tensor<8xi32>
  return
}
// -----
func.func @gather_axis(%x: tensor<4xf32>, %i: tensor<8xi32>) {
  // expected-error@+1 {{'tt.gather' axis must lie in [0, 1), got 1}}
  %0 = "tt.gather"(%x, %i) {axis = 1 : i32} : (tensor<4xf32>, tensor<8xi32>) -> tensor<8xf32>
  return
}
// -----
func.func @gather_sizes(%x: tensor<4x2xf32>, %i: tensor<8x4xi32>) {
  // expected-error@+1 {{'tt.gather' only sizes along axis 0 may differ, got (4, 2) and (8, 4)}}
  %0 = "tt.gather"(%x, %i) {axis = 0 : i32} : (tensor<4x2xf32>, tensor<8x4xi32>) -> tensor<8x4xf32>
  return
}
// -----
func.func @gather_index(%x: tensor<4xf32>, %i: tensor<8xf32>) {
  // expected-error@+1 {{'tt.gather' index must be integers, got f32}}
  %0 = "tt.gather"(%x, %i) {axis = 0 : i32} : (tensor<4xf32>, tensor<8xf32>) -> tensor<8xf32>
  return
}
// -----
func.func @gather_result(%x: tensor<4xf32>, %i: tensor<8xi32>) {
  // expected-error@+1 {{'tt.gather' result must have shape (8,), got (4,)}}
  %0 = "tt.gather"(%x, %i) {axis = 0 : i32} : (tensor<4xf32>, tensor<8xi32>) -> tensor<4xf32>
  return
}
// -----
func.func @print_flags(%x: tensor<4xf32>) {
  // expected-error@+1 {{'tt.print' signed must have 1 flags, got 2}}
  "tt.print"(%x) {hex = false, operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>, prefix = "", signed = array<i32: 0, 0>} : (tensor<4xf32>) -> ()
  return
}
// -----
func.func @extern_of_nothing() {
  // expected-error@+1 {{'tt.extern_elementwise' must have an operand, got none}}
  %0 = "tt.extern_elementwise"() {libname = "", libpath = "", operandSegmentSizes = array<i32: 0, 0, 0, 0>, pure = true, symbol = "f"} : () -> f32
  return
}
// -----
func.func @extern_with_effects(%x: f32) {
  // expected-error@+1 {{'tt.extern_elementwise' pure must be true: functions with effects are not supported}}
  %0 = "tt.extern_elementwise"(%x) {libname = "", libpath = "", operandSegmentSizes = array<i32: 1, 0, 0, 0>, pure = false, symbol = "f"} : (f32) -> f32
  return
}
// -----
func.func @extern_shape(%x: f32) {
  // expected-error@+1 {{'tt.extern_elementwise' operand must have shape (4,), got ()}}
  %0 = "tt.extern_elementwise"(%x) {libname = "", libpath = "", operandSegmentSizes = array<i32: 1, 0, 0, 0>, pure = true, symbol = "f"} : (f32) -> tensor<4xf32>
  return
}
