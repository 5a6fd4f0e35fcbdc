// RUN: proton-opt --verify-diagnostics --split-input-file %s

func.func @ranks(%p: !tt.ptr<f32>, %n: i64, %i: i32) {
  // expected-error@+1 {{'tt.make_tensor_ptr' strides must have 2 entries, got 1}}
  %0 = "tt.make_tensor_ptr"(%p, %n, %n, %n, %i, %i) {order = array<i32: 1, 0>, operandSegmentSizes = array<i32: 1, 2, 1, 2>} : (!tt.ptr<f32>, i64, i64, i64, i32, i32) -> !tt.ptr<tensor<4x8xf32>>
  return
}
// -----
func.func @order(%p: !tt.ptr<f32>, %n: i64, %i: i32) {
  // expected-error@+1 {{order must permute 1 dimensions, got [1]}}
  %0 = "tt.make_tensor_ptr"(%p, %n, %n, %i) {order = array<i32: 1>, operandSegmentSizes = array<i32: 1, 1, 1, 1>} : (!tt.ptr<f32>, i64, i64, i32) -> !tt.ptr<tensor<8xf32>>
  return
}
// -----
func.func @element(%p: !tt.ptr<f16>, %n: i64, %i: i32) {
  // expected-error@+1 {{base must have type !tt.ptr<f32>, got !tt.ptr<f16>}}
  %0 = "tt.make_tensor_ptr"(%p, %n, %n, %i) {order = array<i32: 0>, operandSegmentSizes = array<i32: 1, 1, 1, 1>} : (!tt.ptr<f16>, i64, i64, i32) -> !tt.ptr<tensor<8xf32>>
  return
}
// -----
func.func @no_block(%p: !tt.ptr<f32>, %n: i64, %i: i32) {
  // expected-error@+1 {{result must be a pointer to a block, got !tt.ptr<f32>}}
  %0 = "tt.make_tensor_ptr"(%p, %n, %n, %i) {order = array<i32: 0>, operandSegmentSizes = array<i32: 1, 1, 1, 1>} : (!tt.ptr<f32>, i64, i64, i32) -> !tt.ptr<f32>
  return
}
// -----
func.func @advance_no_block(%p: !tt.ptr<f32>, %i: i32) {
  // expected-error@+1 {{operand 0 must be a pointer to a block}}
  %0 = "tt.advance"(%p, %i) {operandSegmentSizes = array<i32: 1, 1>} : (!tt.ptr<f32>, i32) -> !tt.ptr<f32>
  return
}
// -----
func.func @advance_rank(%p: !tt.ptr<tensor<8xf32>>, %i: i32) {
  // expected-error@+1 {{offsets must have 1 entries, got 2}}
  %0 = "tt.advance"(%p, %i, %i) {operandSegmentSizes = array<i32: 1, 2>} : (!tt.ptr<tensor<8xf32>>, i32, i32) -> !tt.ptr<tensor<8xf32>>
  return
}
// -----
func.func @loaded(%p: !tt.ptr<tensor<8xf32>>) {
  // expected-error@+1 {{'tt.load' result must have type tensor<8xf32>, got tensor<4xf32>}}
  %0 = "tt.load"(%p) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (!tt.ptr<tensor<8xf32>>) -> tensor<4xf32>
  return
}
// -----
func.func @masked(%p: !tt.ptr<tensor<8xf32>>, %x: tensor<8xf32>, %m: tensor<8xi1>) {
  // expected-error@+1 {{'tt.store' a pointer to a block takes neither mask nor other}}
  "tt.store"(%p, %x, %m) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 1>} : (!tt.ptr<tensor<8xf32>>, tensor<8xf32>, tensor<8xi1>) -> ()
  return
}
