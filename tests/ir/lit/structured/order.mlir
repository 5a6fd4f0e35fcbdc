// RUN: proton-opt --pipeline='rewrite-tensor-pointer,rewrite-tensor-descriptor-to-pointer,canonicalize,cse,triton-to-structured,canonicalize,cse' %s | filecheck %s

// `order` names the dense dimension first. Each function is of the kernel above it.

// Order of rows:
//     x = tl.load(p + tl.arange(0, 4)[:, None] * s + tl.arange(0, 8)[None, :])

// CHECK-LABEL: func.func @order_of_rows(
// CHECK: "tts.make_tptr"(%arg0, %{{.*}}, %c1, %c0, %c0) {gathers = array<i64: 0, 0>, {{.*}}order = array<i64: 1, 0>, wraps = array<i64: 0, 0>}
// CHECK: "tts.load"(%{{.*}}) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0>}
func.func @order_of_rows(%arg0: !tt.ptr<f32>, %arg1: i32) attributes {tt.kernel} {
  %0 = "tt.make_range"() {end = 4 : i32, start = 0 : i32} : () -> tensor<4xi32>
  %1 = "tt.expand_dims"(%0) {axis = 1 : i32} : (tensor<4xi32>) -> tensor<4x1xi32>
  %2 = "tt.splat"(%arg1) : (i32) -> tensor<4x1xi32>
  %3 = arith.muli %1, %2 : tensor<4x1xi32>
  %4 = "tt.splat"(%arg0) : (!tt.ptr<f32>) -> tensor<4x1x!tt.ptr<f32>>
  %5 = "tt.addptr"(%4, %3) : (tensor<4x1x!tt.ptr<f32>>, tensor<4x1xi32>) -> tensor<4x1x!tt.ptr<f32>>
  %6 = "tt.make_range"() {end = 8 : i32, start = 0 : i32} : () -> tensor<8xi32>
  %7 = "tt.expand_dims"(%6) {axis = 0 : i32} : (tensor<8xi32>) -> tensor<1x8xi32>
  %8 = "tt.broadcast"(%5) : (tensor<4x1x!tt.ptr<f32>>) -> tensor<4x8x!tt.ptr<f32>>
  %9 = "tt.broadcast"(%7) : (tensor<1x8xi32>) -> tensor<4x8xi32>
  %10 = "tt.addptr"(%8, %9) : (tensor<4x8x!tt.ptr<f32>>, tensor<4x8xi32>) -> tensor<4x8x!tt.ptr<f32>>
  %11 = "tt.load"(%10) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<4x8x!tt.ptr<f32>>) -> tensor<4x8xf32>
  return
}

// Order of columns:
//     x = tl.load(p + tl.arange(0, 4)[:, None] + tl.arange(0, 8)[None, :] * s)

// CHECK-LABEL: func.func @order_of_columns(
// CHECK: "tts.make_tptr"(%arg0, %c1, %{{.*}}, %c0, %c0) {gathers = array<i64: 0, 0>, {{.*}}order = array<i64: 0, 1>, wraps = array<i64: 0, 0>}
// CHECK: "tts.load"(%{{.*}}) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0>}
func.func @order_of_columns(%arg0: !tt.ptr<f32>, %arg1: i32) attributes {tt.kernel} {
  %0 = "tt.make_range"() {end = 4 : i32, start = 0 : i32} : () -> tensor<4xi32>
  %1 = "tt.expand_dims"(%0) {axis = 1 : i32} : (tensor<4xi32>) -> tensor<4x1xi32>
  %2 = "tt.splat"(%arg0) : (!tt.ptr<f32>) -> tensor<4x1x!tt.ptr<f32>>
  %3 = "tt.addptr"(%2, %1) : (tensor<4x1x!tt.ptr<f32>>, tensor<4x1xi32>) -> tensor<4x1x!tt.ptr<f32>>
  %4 = "tt.make_range"() {end = 8 : i32, start = 0 : i32} : () -> tensor<8xi32>
  %5 = "tt.expand_dims"(%4) {axis = 0 : i32} : (tensor<8xi32>) -> tensor<1x8xi32>
  %6 = "tt.splat"(%arg1) : (i32) -> tensor<1x8xi32>
  %7 = arith.muli %5, %6 : tensor<1x8xi32>
  %8 = "tt.broadcast"(%3) : (tensor<4x1x!tt.ptr<f32>>) -> tensor<4x8x!tt.ptr<f32>>
  %9 = "tt.broadcast"(%7) : (tensor<1x8xi32>) -> tensor<4x8xi32>
  %10 = "tt.addptr"(%8, %9) : (tensor<4x8x!tt.ptr<f32>>, tensor<4x8xi32>) -> tensor<4x8x!tt.ptr<f32>>
  %11 = "tt.load"(%10) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<4x8x!tt.ptr<f32>>) -> tensor<4x8xf32>
  return
}

// Order of three dimensions:
//     i, j, k = tl.arange(0, 2)[:, None, None], tl.arange(0, 4)[None, :, None], tl.arange(0, 8)
//     x = tl.load(p + i * s + j + k[None, None, :] * m)

// CHECK-LABEL: func.func @order_of_three_dimensions(
// CHECK: "tts.make_tptr"(%arg0, %{{.*}}, %c1, %{{.*}}, %c0, %c0, %c0) {gathers = array<i64: 0, 0, 0>, {{.*}}order = array<i64: 1, 2, 0>, wraps = array<i64: 0, 0, 0>}
// CHECK: "tts.load"(%{{.*}}) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0>}
func.func @order_of_three_dimensions(%arg0: !tt.ptr<f32>, %arg1: i32, %arg2: i32) attributes {tt.kernel} {
  %0 = "tt.make_range"() {end = 2 : i32, start = 0 : i32} : () -> tensor<2xi32>
  %1 = "tt.expand_dims"(%0) {axis = 1 : i32} : (tensor<2xi32>) -> tensor<2x1xi32>
  %2 = "tt.expand_dims"(%1) {axis = 2 : i32} : (tensor<2x1xi32>) -> tensor<2x1x1xi32>
  %3 = "tt.make_range"() {end = 4 : i32, start = 0 : i32} : () -> tensor<4xi32>
  %4 = "tt.expand_dims"(%3) {axis = 0 : i32} : (tensor<4xi32>) -> tensor<1x4xi32>
  %5 = "tt.expand_dims"(%4) {axis = 2 : i32} : (tensor<1x4xi32>) -> tensor<1x4x1xi32>
  %6 = "tt.make_range"() {end = 8 : i32, start = 0 : i32} : () -> tensor<8xi32>
  %7 = "tt.splat"(%arg1) : (i32) -> tensor<2x1x1xi32>
  %8 = arith.muli %2, %7 : tensor<2x1x1xi32>
  %9 = "tt.splat"(%arg0) : (!tt.ptr<f32>) -> tensor<2x1x1x!tt.ptr<f32>>
  %10 = "tt.addptr"(%9, %8) : (tensor<2x1x1x!tt.ptr<f32>>, tensor<2x1x1xi32>) -> tensor<2x1x1x!tt.ptr<f32>>
  %11 = "tt.broadcast"(%10) : (tensor<2x1x1x!tt.ptr<f32>>) -> tensor<2x4x1x!tt.ptr<f32>>
  %12 = "tt.broadcast"(%5) : (tensor<1x4x1xi32>) -> tensor<2x4x1xi32>
  %13 = "tt.addptr"(%11, %12) : (tensor<2x4x1x!tt.ptr<f32>>, tensor<2x4x1xi32>) -> tensor<2x4x1x!tt.ptr<f32>>
  %14 = "tt.expand_dims"(%6) {axis = 0 : i32} : (tensor<8xi32>) -> tensor<1x8xi32>
  %15 = "tt.expand_dims"(%14) {axis = 1 : i32} : (tensor<1x8xi32>) -> tensor<1x1x8xi32>
  %16 = "tt.splat"(%arg2) : (i32) -> tensor<1x1x8xi32>
  %17 = arith.muli %15, %16 : tensor<1x1x8xi32>
  %18 = "tt.broadcast"(%13) : (tensor<2x4x1x!tt.ptr<f32>>) -> tensor<2x4x8x!tt.ptr<f32>>
  %19 = "tt.broadcast"(%17) : (tensor<1x1x8xi32>) -> tensor<2x4x8xi32>
  %20 = "tt.addptr"(%18, %19) : (tensor<2x4x8x!tt.ptr<f32>>, tensor<2x4x8xi32>) -> tensor<2x4x8x!tt.ptr<f32>>
  %21 = "tt.load"(%20) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<2x4x8x!tt.ptr<f32>>) -> tensor<2x4x8xf32>
  return
}

// Order without a dense dimension:
//     x = tl.load(p + tl.arange(0, 4)[:, None] * s + tl.arange(0, 8)[None, :] * m)

// CHECK-LABEL: func.func @order_without_a_dense_dimension(
// CHECK: "tts.make_tptr"(%arg0, %{{.*}}, %{{.*}}, %c0, %c0) {gathers = array<i64: 0, 0>, {{.*}}order = array<i64: 1, 0>, wraps = array<i64: 0, 0>}
// CHECK: "tts.load"(%{{.*}}) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0>}
func.func @order_without_a_dense_dimension(%arg0: !tt.ptr<f32>, %arg1: i32, %arg2: i32) attributes {tt.kernel} {
  %0 = "tt.make_range"() {end = 4 : i32, start = 0 : i32} : () -> tensor<4xi32>
  %1 = "tt.expand_dims"(%0) {axis = 1 : i32} : (tensor<4xi32>) -> tensor<4x1xi32>
  %2 = "tt.splat"(%arg1) : (i32) -> tensor<4x1xi32>
  %3 = arith.muli %1, %2 : tensor<4x1xi32>
  %4 = "tt.splat"(%arg0) : (!tt.ptr<f32>) -> tensor<4x1x!tt.ptr<f32>>
  %5 = "tt.addptr"(%4, %3) : (tensor<4x1x!tt.ptr<f32>>, tensor<4x1xi32>) -> tensor<4x1x!tt.ptr<f32>>
  %6 = "tt.make_range"() {end = 8 : i32, start = 0 : i32} : () -> tensor<8xi32>
  %7 = "tt.expand_dims"(%6) {axis = 0 : i32} : (tensor<8xi32>) -> tensor<1x8xi32>
  %8 = "tt.splat"(%arg2) : (i32) -> tensor<1x8xi32>
  %9 = arith.muli %7, %8 : tensor<1x8xi32>
  %10 = "tt.broadcast"(%5) : (tensor<4x1x!tt.ptr<f32>>) -> tensor<4x8x!tt.ptr<f32>>
  %11 = "tt.broadcast"(%9) : (tensor<1x8xi32>) -> tensor<4x8xi32>
  %12 = "tt.addptr"(%10, %11) : (tensor<4x8x!tt.ptr<f32>>, tensor<4x8xi32>) -> tensor<4x8x!tt.ptr<f32>>
  %13 = "tt.load"(%12) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<4x8x!tt.ptr<f32>>) -> tensor<4x8xf32>
  return
}
