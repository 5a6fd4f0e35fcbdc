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
// -----
!row = !tt.tensordesc<tensor<8xf32>, "zero">
func.func @descriptor_rank(%p: !tt.ptr<f32>, %n: i32, %s: i64) {
  // expected-error@+1 {{'tt.make_tensor_descriptor' shape must have 1 entries, got 2}}
  %0 = "tt.make_tensor_descriptor"(%p, %n, %n, %s) {operandSegmentSizes = array<i32: 1, 2, 1>} : (!tt.ptr<f32>, i32, i32, i64) -> !row
  return
}
// -----
!row = !tt.tensordesc<tensor<8xf32>, "one">
func.func @descriptor_padding(%p: !tt.ptr<f32>, %n: i32, %s: i64) {
  // expected-error@+1 {{padding must be one of ('zero', 'nan'), got one}}
  %0 = "tt.make_tensor_descriptor"(%p, %n, %s) {operandSegmentSizes = array<i32: 1, 1, 1>} : (!tt.ptr<f32>, i32, i64) -> !row
  return
}
// -----
!row = !tt.tensordesc<tensor<8xf32>, "zero">
func.func @descriptor_base(%p: !tt.ptr<f16>, %n: i32, %s: i64) {
  // expected-error@+1 {{base must have type !tt.ptr<f32>, got !tt.ptr<f16>}}
  %0 = "tt.make_tensor_descriptor"(%p, %n, %s) {operandSegmentSizes = array<i32: 1, 1, 1>} : (!tt.ptr<f16>, i32, i64) -> !row
  return
}
// -----
func.func @descriptor_result(%p: !tt.ptr<f32>, %n: i32, %s: i64) {
  // expected-error@+1 {{result must be a tensor descriptor, got f32}}
  %0 = "tt.make_tensor_descriptor"(%p, %n, %s) {operandSegmentSizes = array<i32: 1, 1, 1>} : (!tt.ptr<f32>, i32, i64) -> f32
  return
}
// -----
func.func @no_descriptor(%p: !tt.ptr<f32>, %i: i32) {
  // expected-error@+1 {{operand 0 must be a tensor descriptor, got !tt.ptr<f32>}}
  %0 = "tt.descriptor_load"(%p, %i) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1>} : (!tt.ptr<f32>, i32) -> tensor<8xf32>
  return
}
// -----
!row = !tt.tensordesc<tensor<8xf32>, "zero">
func.func @descriptor_block(%d: !row, %i: i32) {
  // expected-error@+1 {{result must have shape (8,), got (4,)}}
  %0 = "tt.descriptor_load"(%d, %i) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1>} : (!row, i32) -> tensor<4xf32>
  return
}
// -----
!row = !tt.tensordesc<tensor<8xf32>, "zero">
func.func @descriptor_indices(%d: !row, %x: tensor<8xf32>, %i: i32) {
  // expected-error@+1 {{indices must have 1 entries, got 2}}
  "tt.descriptor_store"(%d, %x, %i, %i) {operandSegmentSizes = array<i32: 1, 1, 2>} : (!row, tensor<8xf32>, i32, i32) -> ()
  return
}
// -----
!row = !tt.tensordesc<tensor<8xf32>, "zero">
func.func @descriptor_kind(%d: !row, %x: tensor<8xf32>, %i: i32) {
  // expected-error@+1 {{kind must be one of ('add', 'min', 'max', 'and', 'or', 'xor'), got "sub"}}
  "tt.descriptor_reduce"(%d, %x, %i) {kind = "sub", is_unsigned = false, operandSegmentSizes = array<i32: 1, 1, 1>} : (!row, tensor<8xf32>, i32) -> ()
  return
}
// -----
!images = !tt.tensordesc_im2col<tensor<16x32xf16>, "nan", 4 : i32>
func.func @pixels(%d: !images, %i: i32) -> tensor<16x32xf16> {
  %n = "tt.descriptor_size"(%d) {axis = 3 : i32} : (!images) -> i32
  %0 = "tt.descriptor_load"(%d, %i, %n, %i, %i, %i, %i) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 6>} : (!images, i32, i32, i32, i32, i32, i32) -> tensor<16x32xf16>
  return %0 : tensor<16x32xf16>
}
// -----
!images = !tt.tensordesc_im2col<tensor<16x32xf16>, "zero", 3 : i32>
func.func @pixels_without_an_offset(%d: !images, %i: i32) {
  // expected-error@+1 {{indices must have 4 entries, got 3}}
  %0 = "tt.descriptor_load"(%d, %i, %i, %i) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 3>} : (!images, i32, i32, i32) -> tensor<16x32xf16>
  return
}
// -----
!images = !tt.tensordesc_im2col<tensor<16x32xf16>, "zero", 6 : i32>
func.func @images_of_six_dimensions(%d: !images) {
  // expected-error@+1 {{images have 3 to 5 dimensions, and blocks 2, got 6 and [16, 32]}}
  %0 = "tt.descriptor_size"(%d) {axis = 1 : i32} : (!images) -> i32
  return
}
// -----
!images = !tt.tensordesc_im2col<tensor<16x32xf16>, "zero", 3 : i32>
func.func @pixels_are_not_stored(%d: !images, %x: tensor<16x32xf16>, %i: i32) {
  // expected-error@+1 {{operand 0 must be a descriptor of tiles, got !tt.tensordesc_im2col<}}
  "tt.descriptor_store"(%d, %x, %i, %i, %i, %i) {operandSegmentSizes = array<i32: 1, 1, 4>} : (!images, tensor<16x32xf16>, i32, i32, i32, i32) -> ()
  return
}
// -----
!row = !tt.tensordesc<tensor<8xf32>, "zero">
func.func @gathers_no_rows(%d: !row, %r: tensor<8xi32>, %i: i32) {
  // expected-error@+1 {{the descriptor's block must be one row, got [8]}}
  %0 = "tt.descriptor_gather"(%d, %r, %i) : (!row, tensor<8xi32>, i32) -> tensor<8x8xf32>
  return
}
// -----
!line = !tt.tensordesc<tensor<1x8xf32>, "zero">
func.func @scatters_other_rows(%d: !line, %r: tensor<8xi32>, %i: i32, %x: tensor<4x8xf32>) {
  // expected-error@+1 {{src must have shape (8, 8), got (4, 8)}}
  "tt.descriptor_scatter"(%d, %r, %i, %x) : (!line, tensor<8xi32>, i32, tensor<4x8xf32>) -> ()
  return
}
// -----
!row = !tt.tensordesc<tensor<8xf32>, "zero">
func.func @descriptor_axis(%d: !row) {
  // expected-error@+1 {{axis must lie in [0, 1), got 1}}
  %0 = "tt.descriptor_size"(%d) {axis = 1 : i32} : (!row) -> i32
  return
}
