// RUN: proton-opt %s --split-input-file --verify-diagnostics
// Each rule of the tt verifiers, broken once.

func.func @program_id_axis() {
  // expected-error@+1 {{'tt.get_program_id' axis must lie in [0, 2], got 3}}
  %0 = "tt.get_program_id"() {axis = 3 : i32} : () -> i32
  return
}
// -----
func.func @num_programs_axis() {
  // expected-error@+1 {{'tt.get_num_programs' axis must lie in [0, 2], got -1}}
  %0 = "tt.get_num_programs"() {axis = -1 : i32} : () -> i32
  return
}
// -----
func.func @range_size() {
  // expected-error@+1 {{end - start must be a power of two, got 6}}
  %0 = "tt.make_range"() {start = 2 : i32, end = 8 : i32} : () -> tensor<6xi32>
  return
}
// -----
func.func @range_empty() {
  // expected-error@+1 {{end - start must be a power of two, got 0}}
  %0 = "tt.make_range"() {start = 4 : i32, end = 4 : i32} : () -> tensor<0xi32>
  return
}
// -----
func.func @range_shape() {
  // expected-error@+1 {{result must have shape (4,), got (8,)}}
  %0 = "tt.make_range"() {start = 0 : i32, end = 4 : i32} : () -> tensor<8xi32>
  return
}
// -----
func.func @splat_type(%x: f16) {
  // expected-error@+1 {{operand of type f16 cannot fill tensor<4xf32>}}
  %0 = "tt.splat"(%x) : (f16) -> tensor<4xf32>
  return
}
// -----
func.func @unsplat_size(%x: tensor<1x2xf32>) {
  // expected-error@+1 {{operand must have one element, got shape (1, 2)}}
  %0 = "tt.unsplat"(%x) : (tensor<1x2xf32>) -> f32
  return
}
// -----
func.func @addptr_of_number(%x: i64, %i: i32) {
  // expected-error@+1 {{operand 0 must be pointers, got i64}}
  %0 = "tt.addptr"(%x, %i) : (i64, i32) -> i64
  return
}
// -----
func.func @addptr_result(%p: !tt.ptr<f32>, %i: i32) {
  // expected-error@+1 {{result must have type !tt.ptr<f32>, got !tt.ptr<f16>}}
  %0 = "tt.addptr"(%p, %i) : (!tt.ptr<f32>, i32) -> !tt.ptr<f16>
  return
}
// -----
func.func @addptr_shapes(%p: !tt.ptr<f32>, %i: tensor<4xi32>) {
  // expected-error@+1 {{offset must have shape (), got (4,)}}
  %0 = "tt.addptr"(%p, %i) : (!tt.ptr<f32>, tensor<4xi32>) -> !tt.ptr<f32>
  return
}
// -----
func.func @broadcast_size(%x: tensor<2x4xf32>) {
  // expected-error@+1 {{shape (2, 4) cannot be broadcast to (4, 4)}}
  %0 = "tt.broadcast"(%x) : (tensor<2x4xf32>) -> tensor<4x4xf32>
  return
}
// -----
func.func @expand_dims_axis(%x: tensor<4xf32>) {
  // expected-error@+1 {{axis must lie in [0, 1], got 2}}
  %0 = "tt.expand_dims"(%x) {axis = 2 : i32} : (tensor<4xf32>) -> tensor<4x1xf32>
  return
}
// -----
func.func @expand_dims_shape(%x: tensor<4xf32>) {
  // expected-error@+1 {{result must have shape (1, 4), got (4, 1)}}
  %0 = "tt.expand_dims"(%x) {axis = 0 : i32} : (tensor<4xf32>) -> tensor<4x1xf32>
  return
}
// -----
func.func @reshape_count(%x: tensor<4x2xf32>) {
  // expected-error@+1 {{number of elements must stay, got (4, 2) to (4,)}}
  %0 = "tt.reshape"(%x) : (tensor<4x2xf32>) -> tensor<4xf32>
  return
}
// -----
func.func @trans_order(%x: tensor<4x2xf32>) {
  // expected-error@+1 {{order must permute 2 dimensions, got (0, 0)}}
  %0 = "tt.trans"(%x) {order = array<i64: 0, 0>} : (tensor<4x2xf32>) -> tensor<4x4xf32>
  return
}
// -----
func.func @trans_shape(%x: tensor<4x2xf32>) {
  // expected-error@+1 {{result must have shape (2, 4), got (4, 2)}}
  %0 = "tt.trans"(%x) {order = array<i64: 1, 0>} : (tensor<4x2xf32>) -> tensor<4x2xf32>
  return
}
// -----
func.func @join_shape(%x: tensor<4xf32>) {
  // expected-error@+1 {{result must have shape (4, 2), got (2, 4)}}
  %0 = "tt.join"(%x, %x) : (tensor<4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
  return
}
// -----
func.func @split_shape(%x: tensor<4x4xf32>) {
  // expected-error@+1 {{the last dimension must have size 2, got shape (4, 4)}}
  %0:2 = "tt.split"(%x) : (tensor<4x4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  return
}
// -----
func.func @dot_inner(%a: tensor<4x8xf32>, %b: tensor<4x16xf32>, %c: tensor<4x16xf32>) {
  // expected-error@+1 {{shapes must be (M, K), (K, N), (M, N), got (4, 8), (4, 16), (4, 16)}}
  %0 = "tt.dot"(%a, %b, %c) {inputPrecision = "ieee", maxNumImpreciseAcc = 0 : i32}
    : (tensor<4x8xf32>, tensor<4x16xf32>, tensor<4x16xf32>) -> tensor<4x16xf32>
  return
}
// -----
func.func @dot_scaled_type(%a: tensor<32x32xf16>, %c: tensor<32x32xf32>) {
  // expected-error@+1 {{'tt.dot_scaled' result must have type tensor<32x32xf32>, got tensor<32x32xf16>}}
  %0 = "tt.dot_scaled"(%a, %a, %c) {lhs = "fp16", lhs_k_pack = true, operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>, rhs = "fp16", rhs_k_pack = true}
    : (tensor<32x32xf16>, tensor<32x32xf16>, tensor<32x32xf32>) -> tensor<32x32xf16>
  return
}
// -----
func.func @fp4_axis(%a: tensor<8xi8>) {
  // expected-error@+1 {{axis must lie in [0, 1), got 1}}
  %0 = "tt.fp4_to_fp"(%a) {axis = 1 : i32} : (tensor<8xi8>) -> tensor<16xbf16>
  return
}
// -----
func.func @fp4_shape(%a: tensor<8xi8>) {
  // expected-error@+1 {{bytes of tensor<8xi8> give [16] numbers of fp16 or bf16, not tensor<8xbf16>}}
  %0 = "tt.fp4_to_fp"(%a) {axis = 0 : i32} : (tensor<8xi8>) -> tensor<8xbf16>
  return
}
// -----
func.func @dot_rank(%a: tensor<4xf32>) {
  // expected-error@+1 {{shapes must be (M, K), (K, N), (M, N), got (4,), (4,), (4,)}}
  %0 = "tt.dot"(%a, %a, %a) {inputPrecision = "ieee", maxNumImpreciseAcc = 0 : i32}
    : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return
}
// -----
func.func @range_element() {
  // expected-error@+1 {{'tt.make_range' result must be of i32, got i64}}
  %0 = "tt.make_range"() {start = 0 : i32, end = 4 : i32} : () -> tensor<4xi64>
  return
}
// -----
func.func @splat_to_scalar(%x: f32) {
  // expected-error@+1 {{operand of type f32 cannot fill f32}}
  %0 = "tt.splat"(%x) : (f32) -> f32
  return
}
// -----
func.func @unsplat_type(%x: tensor<1x1xf32>) {
  // expected-error@+1 {{'tt.unsplat' result must have type f32, got f16}}
  %0 = "tt.unsplat"(%x) : (tensor<1x1xf32>) -> f16
  return
}
// -----
func.func @broadcast_element(%x: tensor<1x4xf32>) {
  // expected-error@+1 {{'tt.broadcast' result must be of f32, got i32}}
  %0 = "tt.broadcast"(%x) : (tensor<1x4xf32>) -> tensor<4x4xi32>
  return
}
// -----
func.func @broadcast_rank(%x: tensor<4xf32>) {
  // expected-error@+1 {{shape (4,) cannot be broadcast to (4, 4)}}
  %0 = "tt.broadcast"(%x) : (tensor<4xf32>) -> tensor<4x4xf32>
  return
}
// -----
func.func @expand_dims_element(%x: tensor<4xf32>) {
  // expected-error@+1 {{'tt.expand_dims' result must be of f32, got f16}}
  %0 = "tt.expand_dims"(%x) {axis = 0 : i32} : (tensor<4xf32>) -> tensor<1x4xf16>
  return
}
// -----
func.func @reshape_element(%x: tensor<4x2xf32>) {
  // expected-error@+1 {{'tt.reshape' result must be of f32, got i32}}
  %0 = "tt.reshape"(%x) : (tensor<4x2xf32>) -> tensor<8xi32>
  return
}
// -----
func.func @trans_element(%x: tensor<4x2xf32>) {
  // expected-error@+1 {{'tt.trans' result must be of f32, got f64}}
  %0 = "tt.trans"(%x) {order = array<i64: 1, 0>} : (tensor<4x2xf32>) -> tensor<2x4xf64>
  return
}
// -----
func.func @join_operands(%x: tensor<4xf32>, %y: tensor<4xf16>) {
  // expected-error@+1 {{'tt.join' rhs must have type tensor<4xf32>, got tensor<4xf16>}}
  %0 = "tt.join"(%x, %y) : (tensor<4xf32>, tensor<4xf16>) -> tensor<4x2xf32>
  return
}
// -----
func.func @join_element(%x: tensor<4xf32>) {
  // expected-error@+1 {{'tt.join' result must be of f32, got f16}}
  %0 = "tt.join"(%x, %x) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4x2xf16>
  return
}
// -----
func.func @split_result(%x: tensor<4x2xf32>) {
  // expected-error@+1 {{'tt.split' result must have shape (4,), got (8,)}}
  %0:2 = "tt.split"(%x) : (tensor<4x2xf32>) -> (tensor<4xf32>, tensor<8xf32>)
  return
}
// -----
func.func @split_element(%x: tensor<4x2xf32>) {
  // expected-error@+1 {{'tt.split' result must be of f32, got f16}}
  %0:2 = "tt.split"(%x) : (tensor<4x2xf32>) -> (tensor<4xf16>, tensor<4xf32>)
  return
}
// -----
func.func @dot_result(%a: tensor<4x4xf32>) {
  // expected-error@+1 {{'tt.dot' result must have type tensor<4x4xf32>, got tensor<4x4xf64>}}
  %0 = "tt.dot"(%a, %a, %a) {inputPrecision = "ieee", maxNumImpreciseAcc = 0 : i32} : (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf64>
  return
}
// -----
func.func @dot_precision(%a: tensor<4x4xf32>) {
  // expected-error@+1 {{'tt.dot' inputPrecision must be one of}}
  %0 = "tt.dot"(%a, %a, %a) {inputPrecision = "tf16", maxNumImpreciseAcc = 0 : i32} : (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return
}
// -----
func.func @int_to_ptr_shape(%x: tensor<4xi64>) {
  // expected-error@+1 {{'tt.int_to_ptr' result must have shape (4,), got ()}}
  %0 = "tt.int_to_ptr"(%x) : (tensor<4xi64>) -> !tt.ptr<f32>
  return
}
// -----
func.func @ptr_to_int_shape(%x: !tt.ptr<f32>) {
  // expected-error@+1 {{'tt.ptr_to_int' result must have shape (), got (4,)}}
  %0 = "tt.ptr_to_int"(%x) : (!tt.ptr<f32>) -> tensor<4xi64>
  return
}
// -----
func.func @bitcast_shape(%x: tensor<4x!tt.ptr<f32>>) {
  // expected-error@+1 {{'tt.bitcast' result must have shape (4,), got (8,)}}
  %0 = "tt.bitcast"(%x) : (tensor<4x!tt.ptr<f32>>) -> tensor<8x!tt.ptr<i32>>
  return
}
// -----
func.func @fp_to_fp_shape(%x: tensor<4xf32>) {
  // expected-error@+1 {{'tt.fp_to_fp' result must have shape (4,), got ()}}
  %0 = "tt.fp_to_fp"(%x) {rounding = "rtz"} : (tensor<4xf32>) -> f16
  return
}
// -----
func.func @fp_to_fp_rounding(%x: f32) {
  // expected-error@+1 {{'tt.fp_to_fp' rounding must be one of ('rtne', 'rtz'), got}}
  %0 = "tt.fp_to_fp"(%x) {rounding = "up"} : (f32) -> f16
  return
}
// -----
func.func @mulhiui_type(%x: i32, %y: i64) {
  // expected-error@+1 {{'tt.mulhiui' result must have type i64, got i32}}
  %0 = "tt.mulhiui"(%x, %y) : (i32, i64) -> i32
  return
}
// -----
func.func @precise_sqrt_type(%x: f32) {
  // expected-error@+1 {{'tt.precise_sqrt' result must have type f32, got f64}}
  %0 = "tt.precise_sqrt"(%x) : (f32) -> f64
  return
}
// -----
func.func @precise_divf_type(%x: f32) {
  // expected-error@+1 {{'tt.precise_divf' result must have type f32, got f64}}
  %0 = "tt.precise_divf"(%x, %x) : (f32, f32) -> f64
  return
}
// -----
func.func @assert_type(%x: i32) {
  // expected-error@+1 {{'tt.assert' condition must be of i1, got i32}}
  "tt.assert"(%x) {message = "here"} : (i32) -> ()
  return
}
