// RUN: proton-opt --pipeline=triton-arith-to-linalg %s | filecheck %s
// A scan is a loop along the axis, for each place off it, that carries what came before.

// CHECK-LABEL: func.func @scan
// CHECK: %[[BUFFER:.*]] = memref.alloc() : memref<4x8xf32>
// CHECK: scf.for %[[ROW:.*]] =
// CHECK: %[[LAST:.*]] = arith.subi
// CHECK: %[[FIRST:.*]] = tensor.extract %arg0[%[[ROW]], %[[LAST]]]
// CHECK: memref.store %[[FIRST]], %[[BUFFER]]
// CHECK: scf.for {{.*}} iter_args(%[[BEFORE:.*]] = %[[FIRST]]) -> (f32)
// CHECK: %[[X:.*]] = tensor.extract %arg0
// CHECK: %[[SUM:.*]] = arith.addf %[[BEFORE]], %[[X]] : f32
// CHECK: memref.store %[[SUM]], %[[BUFFER]]
// CHECK: scf.yield %[[SUM]] : f32
// CHECK: bufferization.to_tensor %[[BUFFER]]
func.func @scan(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0 = "tt.scan"(%x) ({
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    "tt.scan_return"(%s) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (f32) -> ()
  }) {axis = 1 : i32, reverse = true, operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}
