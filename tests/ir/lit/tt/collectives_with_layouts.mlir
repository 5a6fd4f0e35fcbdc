// RUN: proton-opt %s | filecheck %s
// Where a tensor has a layout, the result of a reduction or scan may have another.

// CHECK-LABEL: func.func @layouts
// CHECK: "tt.reduce"
// CHECK: (tensor<32x4xf32, #ttg.linear<{{.*}}>>) -> tensor<32xf32, #ttg.linear<{{.*}}>>
// CHECK: "tt.scan"
func.func @layouts(%x: tensor<32x4xf32, #ttg.linear<[[0, 1], [0, 2]], [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0]], [], []>>) {
  %0 = "tt.reduce"(%x) ({
  ^bb0(%a: f32, %b: f32):
    "tt.reduce_return"(%a) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (f32) -> ()
  }) {axis = 1 : i32, operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (tensor<32x4xf32, #ttg.linear<[[0, 1], [0, 2]], [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0]], [], []>>) -> tensor<32xf32, #ttg.linear<[[0], [0]], [[1], [2], [4], [8], [16]], [], []>>
  %1 = "tt.scan"(%x) ({
  ^bb0(%a: f32, %b: f32):
    "tt.scan_return"(%a) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (f32) -> ()
  }) {axis = 1 : i32, reverse = false, operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (tensor<32x4xf32, #ttg.linear<[[0, 1], [0, 2]], [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0]], [], []>>) -> tensor<32x4xf32, #ttg.linear<[[0, 1], [0, 2]], [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0]], [], []>>
  return
}
