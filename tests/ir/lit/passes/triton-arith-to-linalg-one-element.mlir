// RUN: proton-opt --pipeline='triton-arith-to-linalg,canonicalize,cse' %s | filecheck %s

// One element is the result.

// CHECK-LABEL: func.func @one_element_without_an_identity(
// CHECK-SAME: %[[X:.*]]: tensor<1x8xf32>)
// CHECK-NEXT: %[[S:.*]] = tensor.extract_slice %[[X]][0, 0] [1, 8] [1, 1] : tensor<1x8xf32> to tensor<8xf32>
// CHECK-NEXT: return %[[S]]
func.func @one_element_without_an_identity(%x: tensor<1x8xf32>) -> tensor<8xf32> {
  %r = "tt.reduce"(%x) ({
  ^bb0(%a: f32, %b: f32):
    %s = arith.subf %a, %b : f32
    "tt.reduce_return"(%s) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (f32) -> ()
  }) {axis = 0 : i32, operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (tensor<1x8xf32>) -> tensor<8xf32>
  return %r : tensor<8xf32>
}
