// RUN: proton-opt --pipeline='triton-arith-to-linalg,linalg-fuse-elementwise-ops,canonicalize,cse,triton-dot-to-linalg' %s | filecheck %s

// An operand that was computed and then reshaped is computed once, before the product.

// CHECK-LABEL: func.func @reshaped(
// CHECK: %[[A:.*]] = linalg.generic
// CHECK: arith.addf
// CHECK: %[[R:.*]] = tensor.collapse_shape %[[A]]
// CHECK: linalg.matmul ins(%[[R]], %{{.*}} : tensor<4x8xf32>, tensor<8x4xf32>)
func.func @reshaped(%x: tensor<4x2x4xf32>, %b: tensor<8x4xf32>, %c: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %one = arith.constant dense<1.0> : tensor<4x2x4xf32>
  %a = arith.addf %x, %one : tensor<4x2x4xf32>
  %r = "tt.reshape"(%a) {allow_reorder = false} : (tensor<4x2x4xf32>) -> tensor<4x8xf32>
  %d = "tt.dot"(%r, %b, %c) {inputPrecision = "ieee", maxNumImpreciseAcc = 0 : i32} : (tensor<4x8xf32>, tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %d : tensor<4x4xf32>
}
