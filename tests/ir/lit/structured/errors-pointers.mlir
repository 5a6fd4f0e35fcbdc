// RUN: proton-opt --pipeline='triton-pointers-to-llvm' %s --split-input-file --verify-diagnostics
// Block pointers and descriptors are no addresses yet; the error names the pass that makes some.

func.func @block_pointer(%arg0: !tt.ptr<f32>, %arg1: i32, %arg2: i32, %arg3: i32) attributes {tt.kernel} {
  %0 = arith.extsi %arg1 : i32 to i64
  %1 = arith.extsi %arg2 : i32 to i64
  %2 = arith.extsi %arg3 : i32 to i64
  %c1_i32 = arith.constant 1 : i32
  %3 = arith.extsi %c1_i32 : i32 to i64
  %c8_i32 = arith.constant 8 : i32
  // expected-error@+1 {{tt.make_tensor_ptr of !tt.ptr<tensor<4x8xf32>>, which is no address yet}}
  %4 = "tt.make_tensor_ptr"(%arg0, %0, %1, %2, %3, %arg1, %c8_i32) {operandSegmentSizes = array<i32: 1, 2, 2, 2>, order = array<i32: 1, 0>} : (!tt.ptr<f32>, i64, i64, i64, i64, i32, i32) -> !tt.ptr<tensor<4x8xf32>>
  %5 = "tt.load"(%4) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (!tt.ptr<tensor<4x8xf32>>) -> tensor<4x8xf32>
  return
}

// -----
func.func @descriptor(%arg0: !tt.ptr<f32>, %arg1: i32, %arg2: i32, %arg3: i32) attributes {tt.kernel} {
  %0 = arith.extsi %arg3 : i32 to i64
  %c1_i32 = arith.constant 1 : i32
  %1 = arith.extsi %c1_i32 : i32 to i64
  // expected-error@+1 {{tt.make_tensor_descriptor of !tt.tensordesc}}
  %2 = "tt.make_tensor_descriptor"(%arg0, %arg1, %arg2, %0, %1) {operandSegmentSizes = array<i32: 1, 2, 2>} : (!tt.ptr<f32>, i32, i32, i64, i64) -> !tt.tensordesc<tensor<4x8xf32>, "zero">
  %3 = "tt.descriptor_load"(%2, %arg1, %arg2) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 2>} : (!tt.tensordesc<tensor<4x8xf32>, "zero">, i32, i32) -> tensor<4x8xf32>
  return
}
