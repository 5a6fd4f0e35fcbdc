// RUN: proton-opt --pipeline='rewrite-tensor-pointer,rewrite-tensor-descriptor-to-pointer,canonicalize,cse,triton-to-structured,canonicalize,cse' %s | filecheck %s

// Offsets from memory, in one dimension or several. Each function is of the kernel above it.

// Rows from memory:
//     r = tl.load(q + tl.arange(0, 4))
//     x = tl.load(p + r[:, None] * s + tl.arange(0, 8)[None, :])

// CHECK-LABEL: func.func @rows_from_memory(
// CHECK: "tts.make_tptr"(%arg1, %c1, %c0) {gathers = array<i64: 0>, {{.*}}order = array<i64: 0>, wraps = array<i64: 0>}
// CHECK: "tts.load"(%{{.*}}) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0>}
// CHECK: "tts.make_tptr"(%arg0, %c0, %c1, %c0, %c0, %{{.*}}) {gathers = array<i64: 1, 0>, {{.*}}order = array<i64: 1, 0>, wraps = array<i64: 0, 0>}
// CHECK: "tts.load"(%{{.*}}) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0>}
func.func @rows_from_memory(%arg0: !tt.ptr<f32>, %arg1: !tt.ptr<i32>, %arg2: i32) attributes {tt.kernel} {
  %0 = "tt.make_range"() {end = 4 : i32, start = 0 : i32} : () -> tensor<4xi32>
  %1 = "tt.splat"(%arg1) : (!tt.ptr<i32>) -> tensor<4x!tt.ptr<i32>>
  %2 = "tt.addptr"(%1, %0) : (tensor<4x!tt.ptr<i32>>, tensor<4xi32>) -> tensor<4x!tt.ptr<i32>>
  %3 = "tt.load"(%2) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<4x!tt.ptr<i32>>) -> tensor<4xi32>
  %4 = "tt.expand_dims"(%3) {axis = 1 : i32} : (tensor<4xi32>) -> tensor<4x1xi32>
  %5 = "tt.splat"(%arg2) : (i32) -> tensor<4x1xi32>
  %6 = arith.muli %4, %5 : tensor<4x1xi32>
  %7 = "tt.splat"(%arg0) : (!tt.ptr<f32>) -> tensor<4x1x!tt.ptr<f32>>
  %8 = "tt.addptr"(%7, %6) : (tensor<4x1x!tt.ptr<f32>>, tensor<4x1xi32>) -> tensor<4x1x!tt.ptr<f32>>
  %9 = "tt.make_range"() {end = 8 : i32, start = 0 : i32} : () -> tensor<8xi32>
  %10 = "tt.expand_dims"(%9) {axis = 0 : i32} : (tensor<8xi32>) -> tensor<1x8xi32>
  %11 = "tt.broadcast"(%8) : (tensor<4x1x!tt.ptr<f32>>) -> tensor<4x8x!tt.ptr<f32>>
  %12 = "tt.broadcast"(%10) : (tensor<1x8xi32>) -> tensor<4x8xi32>
  %13 = "tt.addptr"(%11, %12) : (tensor<4x8x!tt.ptr<f32>>, tensor<4x8xi32>) -> tensor<4x8x!tt.ptr<f32>>
  %14 = "tt.load"(%13) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<4x8x!tt.ptr<f32>>) -> tensor<4x8xf32>
  return
}

// Columns from memory:
//     c = tl.load(q + tl.arange(0, 8))
//     x = tl.load(p + tl.arange(0, 4)[:, None] * s + c[None, :])

// CHECK-LABEL: func.func @columns_from_memory(
// CHECK: "tts.make_tptr"(%arg1, %c1, %c0) {gathers = array<i64: 0>, {{.*}}order = array<i64: 0>, wraps = array<i64: 0>}
// CHECK: "tts.load"(%{{.*}}) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0>}
// CHECK: "tts.make_tptr"(%arg0, %{{.*}}, %c0, %c0, %c0, %{{.*}}) {gathers = array<i64: 0, 1>, {{.*}}order = array<i64: 1, 0>, wraps = array<i64: 0, 0>}
// CHECK: "tts.load"(%{{.*}}) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0>}
func.func @columns_from_memory(%arg0: !tt.ptr<f32>, %arg1: !tt.ptr<i32>, %arg2: i32) attributes {tt.kernel} {
  %0 = "tt.make_range"() {end = 8 : i32, start = 0 : i32} : () -> tensor<8xi32>
  %1 = "tt.splat"(%arg1) : (!tt.ptr<i32>) -> tensor<8x!tt.ptr<i32>>
  %2 = "tt.addptr"(%1, %0) : (tensor<8x!tt.ptr<i32>>, tensor<8xi32>) -> tensor<8x!tt.ptr<i32>>
  %3 = "tt.load"(%2) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<8x!tt.ptr<i32>>) -> tensor<8xi32>
  %4 = "tt.make_range"() {end = 4 : i32, start = 0 : i32} : () -> tensor<4xi32>
  %5 = "tt.expand_dims"(%4) {axis = 1 : i32} : (tensor<4xi32>) -> tensor<4x1xi32>
  %6 = "tt.splat"(%arg2) : (i32) -> tensor<4x1xi32>
  %7 = arith.muli %5, %6 : tensor<4x1xi32>
  %8 = "tt.splat"(%arg0) : (!tt.ptr<f32>) -> tensor<4x1x!tt.ptr<f32>>
  %9 = "tt.addptr"(%8, %7) : (tensor<4x1x!tt.ptr<f32>>, tensor<4x1xi32>) -> tensor<4x1x!tt.ptr<f32>>
  %10 = "tt.expand_dims"(%3) {axis = 0 : i32} : (tensor<8xi32>) -> tensor<1x8xi32>
  %11 = "tt.broadcast"(%9) : (tensor<4x1x!tt.ptr<f32>>) -> tensor<4x8x!tt.ptr<f32>>
  %12 = "tt.broadcast"(%10) : (tensor<1x8xi32>) -> tensor<4x8xi32>
  %13 = "tt.addptr"(%11, %12) : (tensor<4x8x!tt.ptr<f32>>, tensor<4x8xi32>) -> tensor<4x8x!tt.ptr<f32>>
  %14 = "tt.load"(%13) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<4x8x!tt.ptr<f32>>) -> tensor<4x8xf32>
  return
}

// Rows and columns from memory stay:
//     r, c = tl.load(q + tl.arange(0, 4)), tl.load(q + tl.arange(0, 8))
//     x = tl.load(p + r[:, None] * s + c[None, :])

// CHECK-LABEL: func.func @rows_and_columns_from_memory_stay(
// CHECK: "tts.make_tptr"(%arg1, %c1, %c0) {gathers = array<i64: 0>, {{.*}}order = array<i64: 0>, wraps = array<i64: 0>}
// CHECK: "tts.load"(%{{.*}}) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0>}
// CHECK: "tts.make_tptr"(%arg1, %c1, %c0) {gathers = array<i64: 0>, {{.*}}order = array<i64: 0>, wraps = array<i64: 0>}
// CHECK: "tts.load"(%{{.*}}) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0>}
// CHECK: "tt.load"(%{{.*}})
func.func @rows_and_columns_from_memory_stay(%arg0: !tt.ptr<f32>, %arg1: !tt.ptr<i32>, %arg2: i32) attributes {tt.kernel} {
  %0 = "tt.make_range"() {end = 4 : i32, start = 0 : i32} : () -> tensor<4xi32>
  %1 = "tt.splat"(%arg1) : (!tt.ptr<i32>) -> tensor<4x!tt.ptr<i32>>
  %2 = "tt.addptr"(%1, %0) : (tensor<4x!tt.ptr<i32>>, tensor<4xi32>) -> tensor<4x!tt.ptr<i32>>
  %3 = "tt.load"(%2) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<4x!tt.ptr<i32>>) -> tensor<4xi32>
  %4 = "tt.make_range"() {end = 8 : i32, start = 0 : i32} : () -> tensor<8xi32>
  %5 = "tt.splat"(%arg1) : (!tt.ptr<i32>) -> tensor<8x!tt.ptr<i32>>
  %6 = "tt.addptr"(%5, %4) : (tensor<8x!tt.ptr<i32>>, tensor<8xi32>) -> tensor<8x!tt.ptr<i32>>
  %7 = "tt.load"(%6) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<8x!tt.ptr<i32>>) -> tensor<8xi32>
  %8 = "tt.expand_dims"(%3) {axis = 1 : i32} : (tensor<4xi32>) -> tensor<4x1xi32>
  %9 = "tt.splat"(%arg2) : (i32) -> tensor<4x1xi32>
  %10 = arith.muli %8, %9 : tensor<4x1xi32>
  %11 = "tt.splat"(%arg0) : (!tt.ptr<f32>) -> tensor<4x1x!tt.ptr<f32>>
  %12 = "tt.addptr"(%11, %10) : (tensor<4x1x!tt.ptr<f32>>, tensor<4x1xi32>) -> tensor<4x1x!tt.ptr<f32>>
  %13 = "tt.expand_dims"(%7) {axis = 0 : i32} : (tensor<8xi32>) -> tensor<1x8xi32>
  %14 = "tt.broadcast"(%12) : (tensor<4x1x!tt.ptr<f32>>) -> tensor<4x8x!tt.ptr<f32>>
  %15 = "tt.broadcast"(%13) : (tensor<1x8xi32>) -> tensor<4x8xi32>
  %16 = "tt.addptr"(%14, %15) : (tensor<4x8x!tt.ptr<f32>>, tensor<4x8xi32>) -> tensor<4x8x!tt.ptr<f32>>
  %17 = "tt.load"(%16) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<4x8x!tt.ptr<f32>>) -> tensor<4x8xf32>
  return
}

// Two of three dimensions from memory:
//     a, b = tl.load(q + tl.arange(0, 4)), tl.load(q + tl.arange(0, 2))
//     k = tl.arange(0, 8)[None, None, :]
//     x = tl.load(p + a[:, None, None] * s + b[None, :, None] + k)

// CHECK-LABEL: func.func @two_of_three_dimensions_from_memory(
// CHECK: "tts.make_tptr"(%arg1, %c1, %c0) {gathers = array<i64: 0>, {{.*}}order = array<i64: 0>, wraps = array<i64: 0>}
// CHECK: "tts.load"(%{{.*}}) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0>}
// CHECK: "tts.make_tptr"(%arg1, %c1, %c0) {gathers = array<i64: 0>, {{.*}}order = array<i64: 0>, wraps = array<i64: 0>}
// CHECK: "tts.load"(%{{.*}}) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0>}
// CHECK: "tts.make_tptr"(%arg0, %c0, %c0, %c1, %c0, %c0, %c0, %{{.*}}, %{{.*}}) {gathers = array<i64: 1, 1, 0>, {{.*}}order = array<i64: 2, 1, 0>, wraps = array<i64: 0, 0, 0>}
// CHECK: "tts.load"(%{{.*}}) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0>}
func.func @two_of_three_dimensions_from_memory(%arg0: !tt.ptr<f32>, %arg1: !tt.ptr<i32>, %arg2: i32) attributes {tt.kernel} {
  %0 = "tt.make_range"() {end = 4 : i32, start = 0 : i32} : () -> tensor<4xi32>
  %1 = "tt.splat"(%arg1) : (!tt.ptr<i32>) -> tensor<4x!tt.ptr<i32>>
  %2 = "tt.addptr"(%1, %0) : (tensor<4x!tt.ptr<i32>>, tensor<4xi32>) -> tensor<4x!tt.ptr<i32>>
  %3 = "tt.load"(%2) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<4x!tt.ptr<i32>>) -> tensor<4xi32>
  %4 = "tt.make_range"() {end = 2 : i32, start = 0 : i32} : () -> tensor<2xi32>
  %5 = "tt.splat"(%arg1) : (!tt.ptr<i32>) -> tensor<2x!tt.ptr<i32>>
  %6 = "tt.addptr"(%5, %4) : (tensor<2x!tt.ptr<i32>>, tensor<2xi32>) -> tensor<2x!tt.ptr<i32>>
  %7 = "tt.load"(%6) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<2x!tt.ptr<i32>>) -> tensor<2xi32>
  %8 = "tt.make_range"() {end = 8 : i32, start = 0 : i32} : () -> tensor<8xi32>
  %9 = "tt.expand_dims"(%8) {axis = 0 : i32} : (tensor<8xi32>) -> tensor<1x8xi32>
  %10 = "tt.expand_dims"(%9) {axis = 1 : i32} : (tensor<1x8xi32>) -> tensor<1x1x8xi32>
  %11 = "tt.expand_dims"(%3) {axis = 1 : i32} : (tensor<4xi32>) -> tensor<4x1xi32>
  %12 = "tt.expand_dims"(%11) {axis = 2 : i32} : (tensor<4x1xi32>) -> tensor<4x1x1xi32>
  %13 = "tt.splat"(%arg2) : (i32) -> tensor<4x1x1xi32>
  %14 = arith.muli %12, %13 : tensor<4x1x1xi32>
  %15 = "tt.splat"(%arg0) : (!tt.ptr<f32>) -> tensor<4x1x1x!tt.ptr<f32>>
  %16 = "tt.addptr"(%15, %14) : (tensor<4x1x1x!tt.ptr<f32>>, tensor<4x1x1xi32>) -> tensor<4x1x1x!tt.ptr<f32>>
  %17 = "tt.expand_dims"(%7) {axis = 0 : i32} : (tensor<2xi32>) -> tensor<1x2xi32>
  %18 = "tt.expand_dims"(%17) {axis = 2 : i32} : (tensor<1x2xi32>) -> tensor<1x2x1xi32>
  %19 = "tt.broadcast"(%16) : (tensor<4x1x1x!tt.ptr<f32>>) -> tensor<4x2x1x!tt.ptr<f32>>
  %20 = "tt.broadcast"(%18) : (tensor<1x2x1xi32>) -> tensor<4x2x1xi32>
  %21 = "tt.addptr"(%19, %20) : (tensor<4x2x1x!tt.ptr<f32>>, tensor<4x2x1xi32>) -> tensor<4x2x1x!tt.ptr<f32>>
  %22 = "tt.broadcast"(%21) : (tensor<4x2x1x!tt.ptr<f32>>) -> tensor<4x2x8x!tt.ptr<f32>>
  %23 = "tt.broadcast"(%10) : (tensor<1x1x8xi32>) -> tensor<4x2x8xi32>
  %24 = "tt.addptr"(%22, %23) : (tensor<4x2x8x!tt.ptr<f32>>, tensor<4x2x8xi32>) -> tensor<4x2x8x!tt.ptr<f32>>
  %25 = "tt.load"(%24) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<4x2x8x!tt.ptr<f32>>) -> tensor<4x2x8xf32>
  return
}

// Rows from two tables:
//     i = tl.arange(0, 4)
//     a, b = tl.load(q + i)[:, None], tl.load(q + 4 + i)[:, None]
//     x = tl.load(p + a * s + b + tl.arange(0, 8)[None, :])

// CHECK-LABEL: func.func @rows_from_two_tables(
// CHECK: "tts.make_tptr"(%arg1, %c1, %c0) {gathers = array<i64: 0>, {{.*}}order = array<i64: 0>, wraps = array<i64: 0>}
// CHECK: "tts.load"(%{{.*}}) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0>}
// CHECK: "tts.make_tptr"(%{{.*}}, %c1, %c0) {gathers = array<i64: 0>, {{.*}}order = array<i64: 0>, wraps = array<i64: 0>}
// CHECK: "tts.load"(%{{.*}}) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0>}
// CHECK: "tts.make_tptr"(%arg0, %c0, %c1, %c0, %c0, %{{.*}}) {gathers = array<i64: 1, 0>, {{.*}}order = array<i64: 1, 0>, wraps = array<i64: 0, 0>}
// CHECK: "tts.load"(%{{.*}}) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0>}
func.func @rows_from_two_tables(%arg0: !tt.ptr<f32>, %arg1: !tt.ptr<i32>, %arg2: i32) attributes {tt.kernel} {
  %0 = "tt.make_range"() {end = 4 : i32, start = 0 : i32} : () -> tensor<4xi32>
  %1 = "tt.splat"(%arg1) : (!tt.ptr<i32>) -> tensor<4x!tt.ptr<i32>>
  %2 = "tt.addptr"(%1, %0) : (tensor<4x!tt.ptr<i32>>, tensor<4xi32>) -> tensor<4x!tt.ptr<i32>>
  %3 = "tt.load"(%2) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<4x!tt.ptr<i32>>) -> tensor<4xi32>
  %4 = "tt.expand_dims"(%3) {axis = 1 : i32} : (tensor<4xi32>) -> tensor<4x1xi32>
  %c4_i32 = arith.constant 4 : i32
  %5 = "tt.addptr"(%arg1, %c4_i32) : (!tt.ptr<i32>, i32) -> !tt.ptr<i32>
  %6 = "tt.splat"(%5) : (!tt.ptr<i32>) -> tensor<4x!tt.ptr<i32>>
  %7 = "tt.addptr"(%6, %0) : (tensor<4x!tt.ptr<i32>>, tensor<4xi32>) -> tensor<4x!tt.ptr<i32>>
  %8 = "tt.load"(%7) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<4x!tt.ptr<i32>>) -> tensor<4xi32>
  %9 = "tt.expand_dims"(%8) {axis = 1 : i32} : (tensor<4xi32>) -> tensor<4x1xi32>
  %10 = "tt.splat"(%arg2) : (i32) -> tensor<4x1xi32>
  %11 = arith.muli %4, %10 : tensor<4x1xi32>
  %12 = "tt.splat"(%arg0) : (!tt.ptr<f32>) -> tensor<4x1x!tt.ptr<f32>>
  %13 = "tt.addptr"(%12, %11) : (tensor<4x1x!tt.ptr<f32>>, tensor<4x1xi32>) -> tensor<4x1x!tt.ptr<f32>>
  %14 = "tt.addptr"(%13, %9) : (tensor<4x1x!tt.ptr<f32>>, tensor<4x1xi32>) -> tensor<4x1x!tt.ptr<f32>>
  %15 = "tt.make_range"() {end = 8 : i32, start = 0 : i32} : () -> tensor<8xi32>
  %16 = "tt.expand_dims"(%15) {axis = 0 : i32} : (tensor<8xi32>) -> tensor<1x8xi32>
  %17 = "tt.broadcast"(%14) : (tensor<4x1x!tt.ptr<f32>>) -> tensor<4x8x!tt.ptr<f32>>
  %18 = "tt.broadcast"(%16) : (tensor<1x8xi32>) -> tensor<4x8xi32>
  %19 = "tt.addptr"(%17, %18) : (tensor<4x8x!tt.ptr<f32>>, tensor<4x8xi32>) -> tensor<4x8x!tt.ptr<f32>>
  %20 = "tt.load"(%19) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<4x8x!tt.ptr<f32>>) -> tensor<4x8xf32>
  return
}

// Rows that are divided:
//     r = (n + tl.arange(0, 4)) // 3
//     x = tl.load(p + r[:, None] * s + tl.arange(0, 8)[None, :])

// CHECK-LABEL: func.func @rows_that_are_divided(
// CHECK: "tts.make_tptr"(%arg0, %c0, %c1, %c0, %c0, %{{.*}}) {gathers = array<i64: 1, 0>, {{.*}}order = array<i64: 1, 0>, wraps = array<i64: 0, 0>}
// CHECK: "tts.load"(%{{.*}}) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0>}
func.func @rows_that_are_divided(%arg0: !tt.ptr<f32>, %arg1: i32, %arg2: i32) attributes {tt.kernel} {
  %0 = "tt.make_range"() {end = 4 : i32, start = 0 : i32} : () -> tensor<4xi32>
  %1 = "tt.splat"(%arg1) : (i32) -> tensor<4xi32>
  %2 = arith.addi %1, %0 : tensor<4xi32>
  %c3_i32 = arith.constant 3 : i32
  %3 = "tt.splat"(%c3_i32) : (i32) -> tensor<4xi32>
  %4 = arith.divsi %2, %3 : tensor<4xi32>
  %5 = "tt.expand_dims"(%4) {axis = 1 : i32} : (tensor<4xi32>) -> tensor<4x1xi32>
  %6 = "tt.splat"(%arg2) : (i32) -> tensor<4x1xi32>
  %7 = arith.muli %5, %6 : tensor<4x1xi32>
  %8 = "tt.splat"(%arg0) : (!tt.ptr<f32>) -> tensor<4x1x!tt.ptr<f32>>
  %9 = "tt.addptr"(%8, %7) : (tensor<4x1x!tt.ptr<f32>>, tensor<4x1xi32>) -> tensor<4x1x!tt.ptr<f32>>
  %10 = "tt.make_range"() {end = 8 : i32, start = 0 : i32} : () -> tensor<8xi32>
  %11 = "tt.expand_dims"(%10) {axis = 0 : i32} : (tensor<8xi32>) -> tensor<1x8xi32>
  %12 = "tt.broadcast"(%9) : (tensor<4x1x!tt.ptr<f32>>) -> tensor<4x8x!tt.ptr<f32>>
  %13 = "tt.broadcast"(%11) : (tensor<1x8xi32>) -> tensor<4x8xi32>
  %14 = "tt.addptr"(%12, %13) : (tensor<4x8x!tt.ptr<f32>>, tensor<4x8xi32>) -> tensor<4x8x!tt.ptr<f32>>
  %15 = "tt.load"(%14) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<4x8x!tt.ptr<f32>>) -> tensor<4x8xf32>
  return
}

// Rows that are clamped:
//     r = tl.minimum(n + tl.arange(0, 4), 9)
//     x = tl.load(p + r[:, None] * s + tl.arange(0, 8)[None, :])

// CHECK-LABEL: func.func @rows_that_are_clamped(
// CHECK: "tts.make_tptr"(%arg0, %c0, %c1, %c0, %c0, %{{.*}}) {gathers = array<i64: 1, 0>, {{.*}}order = array<i64: 1, 0>, wraps = array<i64: 0, 0>}
// CHECK: "tts.load"(%{{.*}}) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0>}
func.func @rows_that_are_clamped(%arg0: !tt.ptr<f32>, %arg1: i32, %arg2: i32) attributes {tt.kernel} {
  %0 = "tt.make_range"() {end = 4 : i32, start = 0 : i32} : () -> tensor<4xi32>
  %1 = "tt.splat"(%arg1) : (i32) -> tensor<4xi32>
  %2 = arith.addi %1, %0 : tensor<4xi32>
  %c9_i32 = arith.constant 9 : i32
  %3 = "tt.splat"(%c9_i32) : (i32) -> tensor<4xi32>
  %4 = arith.minsi %2, %3 : tensor<4xi32>
  %5 = "tt.expand_dims"(%4) {axis = 1 : i32} : (tensor<4xi32>) -> tensor<4x1xi32>
  %6 = "tt.splat"(%arg2) : (i32) -> tensor<4x1xi32>
  %7 = arith.muli %5, %6 : tensor<4x1xi32>
  %8 = "tt.splat"(%arg0) : (!tt.ptr<f32>) -> tensor<4x1x!tt.ptr<f32>>
  %9 = "tt.addptr"(%8, %7) : (tensor<4x1x!tt.ptr<f32>>, tensor<4x1xi32>) -> tensor<4x1x!tt.ptr<f32>>
  %10 = "tt.make_range"() {end = 8 : i32, start = 0 : i32} : () -> tensor<8xi32>
  %11 = "tt.expand_dims"(%10) {axis = 0 : i32} : (tensor<8xi32>) -> tensor<1x8xi32>
  %12 = "tt.broadcast"(%9) : (tensor<4x1x!tt.ptr<f32>>) -> tensor<4x8x!tt.ptr<f32>>
  %13 = "tt.broadcast"(%11) : (tensor<1x8xi32>) -> tensor<4x8xi32>
  %14 = "tt.addptr"(%12, %13) : (tensor<4x8x!tt.ptr<f32>>, tensor<4x8xi32>) -> tensor<4x8x!tt.ptr<f32>>
  %15 = "tt.load"(%14) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<4x8x!tt.ptr<f32>>) -> tensor<4x8xf32>
  return
}

// Rows from memory under their own mask:
//     r, c = tl.load(q + tl.arange(0, 4)), tl.arange(0, 8)
//     x = tl.load(p + r[:, None] * s + c[None, :], mask=(r >= 0)[:, None] & (c < n)[None, :])

// CHECK-LABEL: func.func @rows_from_memory_under_their_own_mask(
// CHECK: "tts.make_tptr"(%arg1, %c1, %c0) {gathers = array<i64: 0>, {{.*}}order = array<i64: 0>, wraps = array<i64: 0>}
// CHECK: "tts.load"(%{{.*}}) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0>}
// CHECK: "tts.make_tptr"(%arg0, %c0, %c1, %c0, %c0, %{{.*}}) {gathers = array<i64: 1, 0>, {{.*}}order = array<i64: 1, 0>, wraps = array<i64: 0, 0>}
// CHECK: "tts.load"(%{{.*}}, %c4, %{{.*}}, %{{.*}}) {operandSegmentSizes = array<i32: 1, 2, 0, 0, 1>}
func.func @rows_from_memory_under_their_own_mask(%arg0: !tt.ptr<f32>, %arg1: !tt.ptr<i32>, %arg2: i32, %arg3: i32) attributes {tt.kernel} {
  %0 = "tt.make_range"() {end = 4 : i32, start = 0 : i32} : () -> tensor<4xi32>
  %1 = "tt.splat"(%arg1) : (!tt.ptr<i32>) -> tensor<4x!tt.ptr<i32>>
  %2 = "tt.addptr"(%1, %0) : (tensor<4x!tt.ptr<i32>>, tensor<4xi32>) -> tensor<4x!tt.ptr<i32>>
  %3 = "tt.load"(%2) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<4x!tt.ptr<i32>>) -> tensor<4xi32>
  %4 = "tt.make_range"() {end = 8 : i32, start = 0 : i32} : () -> tensor<8xi32>
  %5 = "tt.expand_dims"(%3) {axis = 1 : i32} : (tensor<4xi32>) -> tensor<4x1xi32>
  %6 = "tt.splat"(%arg2) : (i32) -> tensor<4x1xi32>
  %7 = arith.muli %5, %6 : tensor<4x1xi32>
  %8 = "tt.splat"(%arg0) : (!tt.ptr<f32>) -> tensor<4x1x!tt.ptr<f32>>
  %9 = "tt.addptr"(%8, %7) : (tensor<4x1x!tt.ptr<f32>>, tensor<4x1xi32>) -> tensor<4x1x!tt.ptr<f32>>
  %10 = "tt.expand_dims"(%4) {axis = 0 : i32} : (tensor<8xi32>) -> tensor<1x8xi32>
  %11 = "tt.broadcast"(%9) : (tensor<4x1x!tt.ptr<f32>>) -> tensor<4x8x!tt.ptr<f32>>
  %12 = "tt.broadcast"(%10) : (tensor<1x8xi32>) -> tensor<4x8xi32>
  %13 = "tt.addptr"(%11, %12) : (tensor<4x8x!tt.ptr<f32>>, tensor<4x8xi32>) -> tensor<4x8x!tt.ptr<f32>>
  %c0_i32 = arith.constant 0 : i32
  %14 = "tt.splat"(%c0_i32) : (i32) -> tensor<4xi32>
  %15 = arith.cmpi sge, %3, %14 : tensor<4xi32>
  %16 = "tt.expand_dims"(%15) {axis = 1 : i32} : (tensor<4xi1>) -> tensor<4x1xi1>
  %17 = "tt.splat"(%arg3) : (i32) -> tensor<8xi32>
  %18 = arith.cmpi slt, %4, %17 : tensor<8xi32>
  %19 = "tt.expand_dims"(%18) {axis = 0 : i32} : (tensor<8xi1>) -> tensor<1x8xi1>
  %20 = "tt.broadcast"(%16) : (tensor<4x1xi1>) -> tensor<4x8xi1>
  %21 = "tt.broadcast"(%19) : (tensor<1x8xi1>) -> tensor<4x8xi1>
  %22 = arith.andi %20, %21 : tensor<4x8xi1>
  %23 = "tt.load"(%13, %22) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>, volatile = false} : (tensor<4x8x!tt.ptr<f32>>, tensor<4x8xi1>) -> tensor<4x8xf32>
  return
}

// Store to rows from memory:
//     r = tl.load(q + tl.arange(0, 4))
//     tl.store(p + r[:, None] * s + tl.arange(0, 8)[None, :], tl.zeros((4, 8), tl.float32))

// CHECK-LABEL: func.func @store_to_rows_from_memory(
// CHECK: "tts.make_tptr"(%arg1, %c1, %c0) {gathers = array<i64: 0>, {{.*}}order = array<i64: 0>, wraps = array<i64: 0>}
// CHECK: "tts.load"(%{{.*}}) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0>}
// CHECK: "tts.make_tptr"(%arg0, %c0, %c1, %c0, %c0, %{{.*}}) {gathers = array<i64: 1, 0>, {{.*}}order = array<i64: 1, 0>, wraps = array<i64: 0, 0>}
// CHECK: "tts.store"(%{{.*}}, %{{.*}}) {operandSegmentSizes = array<i32: 1, 1, 0, 0, 0>}
func.func @store_to_rows_from_memory(%arg0: !tt.ptr<f32>, %arg1: !tt.ptr<i32>, %arg2: i32) attributes {tt.kernel} {
  %0 = "tt.make_range"() {end = 4 : i32, start = 0 : i32} : () -> tensor<4xi32>
  %1 = "tt.splat"(%arg1) : (!tt.ptr<i32>) -> tensor<4x!tt.ptr<i32>>
  %2 = "tt.addptr"(%1, %0) : (tensor<4x!tt.ptr<i32>>, tensor<4xi32>) -> tensor<4x!tt.ptr<i32>>
  %3 = "tt.load"(%2) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<4x!tt.ptr<i32>>) -> tensor<4xi32>
  %4 = "tt.expand_dims"(%3) {axis = 1 : i32} : (tensor<4xi32>) -> tensor<4x1xi32>
  %5 = "tt.splat"(%arg2) : (i32) -> tensor<4x1xi32>
  %6 = arith.muli %4, %5 : tensor<4x1xi32>
  %7 = "tt.splat"(%arg0) : (!tt.ptr<f32>) -> tensor<4x1x!tt.ptr<f32>>
  %8 = "tt.addptr"(%7, %6) : (tensor<4x1x!tt.ptr<f32>>, tensor<4x1xi32>) -> tensor<4x1x!tt.ptr<f32>>
  %9 = "tt.make_range"() {end = 8 : i32, start = 0 : i32} : () -> tensor<8xi32>
  %10 = "tt.expand_dims"(%9) {axis = 0 : i32} : (tensor<8xi32>) -> tensor<1x8xi32>
  %11 = "tt.broadcast"(%8) : (tensor<4x1x!tt.ptr<f32>>) -> tensor<4x8x!tt.ptr<f32>>
  %12 = "tt.broadcast"(%10) : (tensor<1x8xi32>) -> tensor<4x8xi32>
  %13 = "tt.addptr"(%11, %12) : (tensor<4x8x!tt.ptr<f32>>, tensor<4x8xi32>) -> tensor<4x8x!tt.ptr<f32>>
  %cst = arith.constant dense<0.000000e+00> : tensor<4x8xf32>
  "tt.store"(%13, %cst) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<4x8x!tt.ptr<f32>>, tensor<4x8xf32>) -> ()
  return
}

// Rows from memory in a loop:
//     r = tl.load(q + tl.arange(0, 4))
//     ptrs = p + r[:, None] * s + tl.arange(0, 8)[None, :]
//     for _ in range(n):
//         x = tl.load(ptrs)
//         ptrs += 8

// CHECK-LABEL: func.func @rows_from_memory_in_a_loop(
// CHECK: "tts.make_tptr"(%arg1, %c1, %c0) {gathers = array<i64: 0>, {{.*}}order = array<i64: 0>, wraps = array<i64: 0>}
// CHECK: "tts.load"(%{{.*}}) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0>}
// CHECK: scf.for %arg4 = %c0_i32 to %arg3 step %c1_i32 iter_args(%arg5 = %c0) -> (index)  : i32
// CHECK: "tts.make_tptr"(%{{.*}}, %c0, %c1, %c0, %c0, %{{.*}}) {gathers = array<i64: 1, 0>, {{.*}}order = array<i64: 1, 0>, wraps = array<i64: 0, 0>}
// CHECK: "tts.load"(%{{.*}}) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0>}
// CHECK: scf.yield %{{.*}} : index
func.func @rows_from_memory_in_a_loop(%arg0: !tt.ptr<f32>, %arg1: !tt.ptr<i32>, %arg2: i32, %arg3: i32) attributes {tt.kernel} {
  %0 = "tt.make_range"() {end = 4 : i32, start = 0 : i32} : () -> tensor<4xi32>
  %1 = "tt.splat"(%arg1) : (!tt.ptr<i32>) -> tensor<4x!tt.ptr<i32>>
  %2 = "tt.addptr"(%1, %0) : (tensor<4x!tt.ptr<i32>>, tensor<4xi32>) -> tensor<4x!tt.ptr<i32>>
  %3 = "tt.load"(%2) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<4x!tt.ptr<i32>>) -> tensor<4xi32>
  %4 = "tt.expand_dims"(%3) {axis = 1 : i32} : (tensor<4xi32>) -> tensor<4x1xi32>
  %5 = "tt.splat"(%arg2) : (i32) -> tensor<4x1xi32>
  %6 = arith.muli %4, %5 : tensor<4x1xi32>
  %7 = "tt.splat"(%arg0) : (!tt.ptr<f32>) -> tensor<4x1x!tt.ptr<f32>>
  %8 = "tt.addptr"(%7, %6) : (tensor<4x1x!tt.ptr<f32>>, tensor<4x1xi32>) -> tensor<4x1x!tt.ptr<f32>>
  %9 = "tt.make_range"() {end = 8 : i32, start = 0 : i32} : () -> tensor<8xi32>
  %10 = "tt.expand_dims"(%9) {axis = 0 : i32} : (tensor<8xi32>) -> tensor<1x8xi32>
  %11 = "tt.broadcast"(%8) : (tensor<4x1x!tt.ptr<f32>>) -> tensor<4x8x!tt.ptr<f32>>
  %12 = "tt.broadcast"(%10) : (tensor<1x8xi32>) -> tensor<4x8xi32>
  %13 = "tt.addptr"(%11, %12) : (tensor<4x8x!tt.ptr<f32>>, tensor<4x8xi32>) -> tensor<4x8x!tt.ptr<f32>>
  %c0_i32 = arith.constant 0 : i32
  %c1_i32 = arith.constant 1 : i32
  %14 = scf.for %arg4 = %c0_i32 to %arg3 step %c1_i32 iter_args(%arg5 = %13) -> (tensor<4x8x!tt.ptr<f32>>)  : i32 {
    %15 = "tt.load"(%arg5) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<4x8x!tt.ptr<f32>>) -> tensor<4x8xf32>
    %c8_i32 = arith.constant 8 : i32
    %16 = "tt.splat"(%c8_i32) : (i32) -> tensor<4x8xi32>
    %17 = "tt.addptr"(%arg5, %16) : (tensor<4x8x!tt.ptr<f32>>, tensor<4x8xi32>) -> tensor<4x8x!tt.ptr<f32>>
    scf.yield %17 : tensor<4x8x!tt.ptr<f32>>
  }
  return
}

// Gather of one dimension stays:
//     x = tl.load(p + tl.load(q + tl.arange(0, 8)))

// CHECK-LABEL: func.func @gather_of_one_dimension_stays(
// CHECK: "tts.make_tptr"(%arg1, %c1, %c0) {gathers = array<i64: 0>, {{.*}}order = array<i64: 0>, wraps = array<i64: 0>}
// CHECK: "tts.load"(%{{.*}}) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0>}
// CHECK: "tt.load"(%{{.*}})
func.func @gather_of_one_dimension_stays(%arg0: !tt.ptr<f32>, %arg1: !tt.ptr<i32>) attributes {tt.kernel} {
  %0 = "tt.make_range"() {end = 8 : i32, start = 0 : i32} : () -> tensor<8xi32>
  %1 = "tt.splat"(%arg1) : (!tt.ptr<i32>) -> tensor<8x!tt.ptr<i32>>
  %2 = "tt.addptr"(%1, %0) : (tensor<8x!tt.ptr<i32>>, tensor<8xi32>) -> tensor<8x!tt.ptr<i32>>
  %3 = "tt.load"(%2) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<8x!tt.ptr<i32>>) -> tensor<8xi32>
  %4 = "tt.splat"(%arg0) : (!tt.ptr<f32>) -> tensor<8x!tt.ptr<f32>>
  %5 = "tt.addptr"(%4, %3) : (tensor<8x!tt.ptr<f32>>, tensor<8xi32>) -> tensor<8x!tt.ptr<f32>>
  %6 = "tt.load"(%5) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<8x!tt.ptr<f32>>) -> tensor<8xf32>
  return
}
