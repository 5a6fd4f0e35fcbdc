// RUN: proton-opt %s --split-input-file --verify-diagnostics
// Each rule of the ttg verifiers, broken once.

func.func @convert_scalar(%x: f32) {
  // expected-error@+1 {{'ttg.convert_layout' operand must be a tensor, got f32}}
  %0 = "ttg.convert_layout"(%x) : (f32) -> f32
  return
}
// -----
func.func @convert_shape(%x: tensor<8xf32>) {
  // expected-error@+1 {{'ttg.convert_layout' result must have shape (8,), got (4,)}}
  %0 = "ttg.convert_layout"(%x) : (tensor<8xf32>) -> tensor<4xf32>
  return
}
// -----
func.func @convert_element(%x: tensor<8xf32>) {
  // expected-error@+1 {{'ttg.convert_layout' result must be of f32, got f16}}
  %0 = "ttg.convert_layout"(%x) : (tensor<8xf32>) -> tensor<8xf16>
  return
}
// -----
func.func @alloc_result(%x: tensor<8xf32>) {
  // expected-error@+1 {{'ttg.local_alloc' result must be a !ttg.memdesc, got tensor<8xf32>}}
  %0 = "ttg.local_alloc"(%x) : (tensor<8xf32>) -> tensor<8xf32>
  return
}
// -----
func.func @alloc_shape(%x: tensor<8xf32>) {
  // expected-error@+1 {{'ttg.local_alloc' operand must have shape (4,), got (8,)}}
  %0 = "ttg.local_alloc"(%x) : (tensor<8xf32>) -> !ttg.memdesc<[4], f32, #ttg.shared<[[1], [2]]>>
  return
}
// -----
func.func @alloc_element(%x: tensor<4xf32>) {
  // expected-error@+1 {{'ttg.local_alloc' operand must be of f16, got f32}}
  %0 = "ttg.local_alloc"(%x) : (tensor<4xf32>) -> !ttg.memdesc<[4], f16, #ttg.shared<[[1], [2]]>>
  return
}
// -----
!a = !ttg.memdesc<[2, 2], f32, #ttg.shared<[[0, 1], [1, 0]]>>
func.func @dot_operand(%a: !a, %b: tensor<2x2xf32>, %acc: tensor<2x2xf32>) {
  // expected-error@+1 {{'ttg.dot' operands lie in shared memory, got tensor<2x2xf32>}}
  %0 = "ttg.dot"(%a, %b, %acc) : (!a, tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  return
}
// -----
!a = !ttg.memdesc<[2, 2], f32, #ttg.shared<[[0, 1], [1, 0]]>>
!b = !ttg.memdesc<[4, 2], f32, #ttg.shared<[[0, 1], [1, 0], [2, 0]]>>
func.func @dot_inner(%a: !a, %b: !b, %acc: tensor<2x2xf32>) {
  // expected-error@+1 {{'ttg.dot' shapes must be (M, K), (K, N), (M, N), got (2, 2), (4, 2), (2, 2)}}
  %0 = "ttg.dot"(%a, %b, %acc) : (!a, !b, tensor<2x2xf32>) -> tensor<2x2xf32>
  return
}
// -----
!a = !ttg.memdesc<[2, 2], f32, #ttg.shared<[[0, 1], [1, 0]]>>
func.func @dot_accumulator(%a: !a, %acc: tensor<2x4xf32>) {
  // expected-error@+1 {{'ttg.dot' shapes must be (M, K), (K, N), (M, N), got (2, 2), (2, 2), (2, 4)}}
  %0 = "ttg.dot"(%a, %a, %acc) : (!a, !a, tensor<2x4xf32>) -> tensor<2x4xf32>
  return
}
// -----
!a = !ttg.memdesc<[2, 2], f32, #ttg.shared<[[0, 1], [1, 0]]>>
func.func @dot_result(%a: !a, %acc: tensor<2x2xf32>) {
  // expected-error@+1 {{'ttg.dot' the result has acc's type}}
  %0 = "ttg.dot"(%a, %a, %acc) : (!a, !a, tensor<2x2xf32>) -> tensor<2x2xf16>
  return
}
// -----
!a = !ttg.memdesc<[2], f32, #ttg.shared<[[1]]>>
func.func @dot_rank(%a: !a, %acc: tensor<2x2xf32>) {
  // expected-error@+1 {{'ttg.dot' shapes must be (M, K), (K, N), (M, N), got (2,), (2,), (2, 2)}}
  %0 = "ttg.dot"(%a, %a, %acc) : (!a, !a, tensor<2x2xf32>) -> tensor<2x2xf32>
  return
}
// -----
func.func @store_to_constant(%x: tensor<4xf32>, %d: !ttg.memdesc<[4], f32, #ttg.shared<[[1], [2]]>>) {
  // expected-error@+1 {{'ttg.local_store' what is written must be a !ttg.mutable_memdesc, got !ttg.memdesc<}}
  "ttg.local_store"(%x, %d) : (tensor<4xf32>, !ttg.memdesc<[4], f32, #ttg.shared<[[1], [2]]>>) -> ()
  return
}
// -----
func.func @load_shape(%d: !ttg.memdesc<[4], f32, #ttg.shared<[[1], [2]]>>) {
  // expected-error@+1 {{'ttg.local_load' result must have shape (4,), got (8,)}}
  %x = "ttg.local_load"(%d) : (!ttg.memdesc<[4], f32, #ttg.shared<[[1], [2]]>>) -> tensor<8xf32>
  return
}
// -----
func.func @index_shape(%d: !ttg.mutable_memdesc<[2, 4], f32, #ttg.shared<[[1], [2]]>>, %i: i32) {
  // expected-error@+1 {{'ttg.memdesc_index' the result must be one of the 2 parts, got}}
  %p = "ttg.memdesc_index"(%d, %i) : (!ttg.mutable_memdesc<[2, 4], f32, #ttg.shared<[[1], [2]]>>, i32) -> !ttg.mutable_memdesc<[2], f32, #ttg.shared<[[1]]>>
  return
}
// -----
func.func @copy_type(%p: tensor<4x!tt.ptr<f16>>, %d: !ttg.mutable_memdesc<[4], f32, #ttg.shared<[[1], [2]]>>) {
  // expected-error@+1 {{'ttg.async_copy_global_to_local' tensor<4x!tt.ptr<f16>> does not point to what}}
  %t = "ttg.async_copy_global_to_local"(%p, %d) {operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<4x!tt.ptr<f16>>, !ttg.mutable_memdesc<[4], f32, #ttg.shared<[[1], [2]]>>) -> !ttg.async_token
  return
}

// -----
func.func @swap_four(%x: tensor<4x8xi32>) {
  // expected-error@+1 {{'ttg.swap' axis 0 of (4, 8) must have two elements}}
  %0 = "ttg.swap"(%x) {axis = 0 : i32} : (tensor<4x8xi32>) -> tensor<4x8xi32>
  return
}
// -----
func.func @swap_element(%x: tensor<2xi32>) {
  // expected-error@+1 {{'ttg.swap' operand and result must be one type of tensor, got tensor<2xi32>}}
  %0 = "ttg.swap"(%x) {axis = 0 : i32} : (tensor<2xi32>) -> tensor<2xi16>
  return
}
