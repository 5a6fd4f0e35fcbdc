// RUN: proton-opt --pipeline='split-batched-dot' %s | filecheck %s

// Matrices lie along the last dimension while they are taken apart, even ones first.

// CHECK-LABEL: func.func @four(
// CHECK-SAME: %[[A:arg0]]: tensor<4x16x8xf16>, %[[B:arg1]]: tensor<4x8x2xf16>, %[[C:arg2]]: tensor<4x16x2xf32>)
// CHECK: %[[AT:.*]] = "tt.trans"(%[[A]]) {order = array<i64: 1, 2, 0>} : (tensor<4x16x8xf16>) -> tensor<16x8x4xf16>
// CHECK: %[[AP:.*]] = "tt.reshape"(%[[AT]]) : (tensor<16x8x4xf16>) -> tensor<16x8x2x2xf16>
// CHECK: %[[AS:.*]]:2 = "tt.split"(%[[AP]])
// CHECK: %[[A02:.*]] = "tt.reshape"(%[[AS]]#0) : (tensor<16x8x2xf16>) -> tensor<16x8x1x2xf16>
// CHECK: %[[AE:.*]]:2 = "tt.split"(%[[A02]])
// CHECK: %[[A0:.*]] = "tt.reshape"(%[[AE]]#0) : (tensor<16x8x1xf16>) -> tensor<16x8xf16>
// CHECK: "tt.dot"(%[[A0]], %{{.*}}, %{{.*}}) {inputPrecision = "ieee", maxNumImpreciseAcc = 8 : i32} : (tensor<16x8xf16>, tensor<8x2xf16>, tensor<16x2xf32>) -> tensor<16x2xf32>
// CHECK: "tt.dot"
// CHECK: "tt.dot"
// CHECK: "tt.dot"
// CHECK: %[[D:.*]] = "tt.join"
// CHECK: %[[DJ:.*]] = "tt.reshape"(%{{.*}}) : (tensor<16x2x2x2xf32>) -> tensor<16x2x4xf32>
// CHECK: "tt.trans"(%[[DJ]]) {order = array<i64: 2, 0, 1>} : (tensor<16x2x4xf32>) -> tensor<4x16x2xf32>
func.func @four(%a: tensor<4x16x8xf16>, %b: tensor<4x8x2xf16>, %c: tensor<4x16x2xf32>) -> tensor<4x16x2xf32> {
  %d = "tt.dot"(%a, %b, %c) {inputPrecision = "ieee", maxNumImpreciseAcc = 8 : i32} : (tensor<4x16x8xf16>, tensor<4x8x2xf16>, tensor<4x16x2xf32>) -> tensor<4x16x2xf32>
  return %d : tensor<4x16x2xf32>
}

// CHECK-LABEL: func.func @one_pair(
// CHECK-NEXT: %[[D:.*]] = "tt.dot"(%arg0, %arg0, %arg0)
// CHECK-NEXT: return %[[D]]
func.func @one_pair(%a: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %d = "tt.dot"(%a, %a, %a) {inputPrecision = "tf32", maxNumImpreciseAcc = 0 : i32} : (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %d : tensor<4x4xf32>
}
