// RUN: proton-opt --pipeline='widen-scans' %s | filecheck %s

// CHECK-LABEL: func.func @sums(
// CHECK: %[[W:.*]] = arith.extf %{{.*}} : tensor<64xbf16> to tensor<64xf32>
// CHECK: %[[S:.*]] = "tt.scan"(%[[W]])
// CHECK: ^bb0(%[[A:.*]]: f32, %[[B:.*]]: f32):
// CHECK-NEXT: arith.addf %[[A]], %[[B]] : f32
// CHECK: (tensor<64xf32>) -> tensor<64xf32>
// CHECK: arith.truncf %[[S]] : tensor<64xf32> to tensor<64xbf16>
func.func @sums(%x: tensor<64xbf16>) -> tensor<64xbf16> {
  %0 = "tt.scan"(%x) ({
  ^bb0(%a: bf16, %b: bf16):
    %s = arith.addf %a, %b : bf16
    "tt.scan_return"(%s) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (bf16) -> ()
  }) {axis = 0 : i32, operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>, reverse = false} : (tensor<64xbf16>) -> tensor<64xbf16>
  return %0 : tensor<64xbf16>
}

// What chooses does not round, and stays as it is.

// CHECK-LABEL: func.func @maxima(
// CHECK-NOT: arith.extf
// CHECK: return
func.func @maxima(%x: tensor<64xf16>) -> tensor<64xf16> {
  %0 = "tt.scan"(%x) ({
  ^bb0(%a: f16, %b: f16):
    %s = arith.maxnumf %a, %b : f16
    "tt.scan_return"(%s) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (f16) -> ()
  }) {axis = 0 : i32, operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>, reverse = false} : (tensor<64xf16>) -> tensor<64xf16>
  return %0 : tensor<64xf16>
}
