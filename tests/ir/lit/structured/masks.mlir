// RUN: proton-opt --pipeline='rewrite-tensor-pointer,rewrite-tensor-descriptor-to-pointer,canonicalize,cse,triton-to-structured,canonicalize,cse' %s | filecheck %s

// A mask is a box as far as it is one; the rest is asked element by element. Each function is of the kernel above it.

// Upper and lower bounds:
//     r, c = tl.arange(0, 4)[:, None], tl.arange(0, 8)[None, :]
//     x = tl.load(p + r * 8 + c, mask=(r >= n) & (r < m) & (c < m) & (c > n))

// CHECK-LABEL: func.func @upper_and_lower_bounds(
// CHECK: "tts.make_tptr"(%arg0, %c8, %c1, %c0, %c0) {gathers = array<i64: 0, 0>, {{.*}}order = array<i64: 1, 0>, wraps = array<i64: 0, 0>}
// CHECK: "tts.load"(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}) {operandSegmentSizes = array<i32: 1, 2, 2, 0, 0>}
func.func @upper_and_lower_bounds(%arg0: !tt.ptr<f32>, %arg1: i32, %arg2: i32) attributes {tt.kernel} {
  %0 = "tt.make_range"() {end = 4 : i32, start = 0 : i32} : () -> tensor<4xi32>
  %1 = "tt.expand_dims"(%0) {axis = 1 : i32} : (tensor<4xi32>) -> tensor<4x1xi32>
  %2 = "tt.make_range"() {end = 8 : i32, start = 0 : i32} : () -> tensor<8xi32>
  %3 = "tt.expand_dims"(%2) {axis = 0 : i32} : (tensor<8xi32>) -> tensor<1x8xi32>
  %c8_i32 = arith.constant 8 : i32
  %4 = "tt.splat"(%c8_i32) : (i32) -> tensor<4x1xi32>
  %5 = arith.muli %1, %4 : tensor<4x1xi32>
  %6 = "tt.splat"(%arg0) : (!tt.ptr<f32>) -> tensor<4x1x!tt.ptr<f32>>
  %7 = "tt.addptr"(%6, %5) : (tensor<4x1x!tt.ptr<f32>>, tensor<4x1xi32>) -> tensor<4x1x!tt.ptr<f32>>
  %8 = "tt.broadcast"(%7) : (tensor<4x1x!tt.ptr<f32>>) -> tensor<4x8x!tt.ptr<f32>>
  %9 = "tt.broadcast"(%3) : (tensor<1x8xi32>) -> tensor<4x8xi32>
  %10 = "tt.addptr"(%8, %9) : (tensor<4x8x!tt.ptr<f32>>, tensor<4x8xi32>) -> tensor<4x8x!tt.ptr<f32>>
  %11 = "tt.splat"(%arg1) : (i32) -> tensor<4x1xi32>
  %12 = arith.cmpi sge, %1, %11 : tensor<4x1xi32>
  %13 = "tt.splat"(%arg2) : (i32) -> tensor<4x1xi32>
  %14 = arith.cmpi slt, %1, %13 : tensor<4x1xi32>
  %15 = arith.andi %12, %14 : tensor<4x1xi1>
  %16 = "tt.splat"(%arg2) : (i32) -> tensor<1x8xi32>
  %17 = arith.cmpi slt, %3, %16 : tensor<1x8xi32>
  %18 = "tt.broadcast"(%15) : (tensor<4x1xi1>) -> tensor<4x8xi1>
  %19 = "tt.broadcast"(%17) : (tensor<1x8xi1>) -> tensor<4x8xi1>
  %20 = arith.andi %18, %19 : tensor<4x8xi1>
  %21 = "tt.splat"(%arg1) : (i32) -> tensor<1x8xi32>
  %22 = arith.cmpi sgt, %3, %21 : tensor<1x8xi32>
  %23 = "tt.broadcast"(%22) : (tensor<1x8xi1>) -> tensor<4x8xi1>
  %24 = arith.andi %20, %23 : tensor<4x8xi1>
  %25 = "tt.load"(%10, %24) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>, volatile = false} : (tensor<4x8x!tt.ptr<f32>>, tensor<4x8xi1>) -> tensor<4x8xf32>
  return
}

// Mask that is true:
//     x = tl.load(p + tl.arange(0, 8), mask=True)

// CHECK-LABEL: func.func @mask_that_is_true(
// CHECK: "tts.make_tptr"(%arg0, %c1, %c0) {gathers = array<i64: 0>, {{.*}}order = array<i64: 0>, wraps = array<i64: 0>}
// CHECK: "tts.load"(%{{.*}}, %c8) {operandSegmentSizes = array<i32: 1, 1, 0, 0, 0>}
func.func @mask_that_is_true(%arg0: !tt.ptr<f32>) attributes {tt.kernel} {
  %0 = "tt.make_range"() {end = 8 : i32, start = 0 : i32} : () -> tensor<8xi32>
  %1 = "tt.splat"(%arg0) : (!tt.ptr<f32>) -> tensor<8x!tt.ptr<f32>>
  %2 = "tt.addptr"(%1, %0) : (tensor<8x!tt.ptr<f32>>, tensor<8xi32>) -> tensor<8x!tt.ptr<f32>>
  %true = arith.constant true
  %3 = "tt.splat"(%true) : (i1) -> tensor<8xi1>
  %4 = "tt.load"(%2, %3) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>, volatile = false} : (tensor<8x!tt.ptr<f32>>, tensor<8xi1>) -> tensor<8xf32>
  return
}

// Mask that is false:
//     x = tl.load(p + tl.arange(0, 8), mask=False, other=3.0)

// CHECK-LABEL: func.func @mask_that_is_false(
// CHECK: "tts.make_tptr"(%arg0, %c1, %c0) {gathers = array<i64: 0>, {{.*}}order = array<i64: 0>, wraps = array<i64: 0>}
// CHECK: "tts.load"(%{{.*}}, %c0, %{{.*}}) {operandSegmentSizes = array<i32: 1, 1, 0, 1, 0>}
func.func @mask_that_is_false(%arg0: !tt.ptr<f32>) attributes {tt.kernel} {
  %0 = "tt.make_range"() {end = 8 : i32, start = 0 : i32} : () -> tensor<8xi32>
  %1 = "tt.splat"(%arg0) : (!tt.ptr<f32>) -> tensor<8x!tt.ptr<f32>>
  %2 = "tt.addptr"(%1, %0) : (tensor<8x!tt.ptr<f32>>, tensor<8xi32>) -> tensor<8x!tt.ptr<f32>>
  %false = arith.constant false
  %3 = "tt.splat"(%false) : (i1) -> tensor<8xi1>
  %cst = arith.constant 3.000000e+00 : f32
  %4 = "tt.splat"(%cst) : (f32) -> tensor<8xf32>
  %5 = "tt.load"(%2, %3, %4) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 1>, volatile = false} : (tensor<8x!tt.ptr<f32>>, tensor<8xi1>, tensor<8xf32>) -> tensor<8xf32>
  return
}

// Mask of a condition and a bound:
//     i = tl.arange(0, 8)
//     x = tl.load(p + i, mask=(n > m) & (i < n))

// CHECK-LABEL: func.func @mask_of_a_condition_and_a_bound(
// CHECK: "tts.make_tptr"(%arg0, %c1, %c0) {gathers = array<i64: 0>, {{.*}}order = array<i64: 0>, wraps = array<i64: 0>}
// CHECK: "tts.load"(%{{.*}}, %{{.*}}) {operandSegmentSizes = array<i32: 1, 1, 0, 0, 0>}
func.func @mask_of_a_condition_and_a_bound(%arg0: !tt.ptr<f32>, %arg1: i32, %arg2: i32) attributes {tt.kernel} {
  %0 = "tt.make_range"() {end = 8 : i32, start = 0 : i32} : () -> tensor<8xi32>
  %1 = "tt.splat"(%arg0) : (!tt.ptr<f32>) -> tensor<8x!tt.ptr<f32>>
  %2 = "tt.addptr"(%1, %0) : (tensor<8x!tt.ptr<f32>>, tensor<8xi32>) -> tensor<8x!tt.ptr<f32>>
  %3 = arith.cmpi sgt, %arg1, %arg2 : i32
  %4 = "tt.splat"(%arg1) : (i32) -> tensor<8xi32>
  %5 = arith.cmpi slt, %0, %4 : tensor<8xi32>
  %6 = "tt.splat"(%3) : (i1) -> tensor<8xi1>
  %7 = arith.andi %6, %5 : tensor<8xi1>
  %8 = "tt.load"(%2, %7) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>, volatile = false} : (tensor<8x!tt.ptr<f32>>, tensor<8xi1>) -> tensor<8xf32>
  return
}

// Mask that is partly a box:
//     i = tl.arange(0, 8)
//     x = tl.load(p + i, mask=(i < n) & (i % 3 != 1))

// CHECK-LABEL: func.func @mask_that_is_partly_a_box(
// CHECK: "tts.make_tptr"(%arg0, %c1, %c0) {gathers = array<i64: 0>, {{.*}}order = array<i64: 0>, wraps = array<i64: 0>}
// CHECK: "tts.load"(%{{.*}}, %{{.*}}, %{{.*}}) {operandSegmentSizes = array<i32: 1, 1, 0, 0, 1>}
func.func @mask_that_is_partly_a_box(%arg0: !tt.ptr<f32>, %arg1: i32) attributes {tt.kernel} {
  %0 = "tt.make_range"() {end = 8 : i32, start = 0 : i32} : () -> tensor<8xi32>
  %1 = "tt.splat"(%arg0) : (!tt.ptr<f32>) -> tensor<8x!tt.ptr<f32>>
  %2 = "tt.addptr"(%1, %0) : (tensor<8x!tt.ptr<f32>>, tensor<8xi32>) -> tensor<8x!tt.ptr<f32>>
  %3 = "tt.splat"(%arg1) : (i32) -> tensor<8xi32>
  %4 = arith.cmpi slt, %0, %3 : tensor<8xi32>
  %c3_i32 = arith.constant 3 : i32
  %5 = "tt.splat"(%c3_i32) : (i32) -> tensor<8xi32>
  %6 = arith.remsi %0, %5 : tensor<8xi32>
  %c1_i32 = arith.constant 1 : i32
  %7 = "tt.splat"(%c1_i32) : (i32) -> tensor<8xi32>
  %8 = arith.cmpi ne, %6, %7 : tensor<8xi32>
  %9 = arith.andi %4, %8 : tensor<8xi1>
  %10 = "tt.load"(%2, %9) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>, volatile = false} : (tensor<8x!tt.ptr<f32>>, tensor<8xi1>) -> tensor<8xf32>
  return
}

// Mask of either:
//     i = tl.arange(0, 8)
//     x = tl.load(p + i, mask=(i < n) | (i > m), other=1.0)

// CHECK-LABEL: func.func @mask_of_either(
// CHECK: "tts.make_tptr"(%arg0, %c1, %c0) {gathers = array<i64: 0>, {{.*}}order = array<i64: 0>, wraps = array<i64: 0>}
// CHECK: "tts.load"(%{{.*}}, %{{.*}}, %{{.*}}) {operandSegmentSizes = array<i32: 1, 0, 0, 1, 1>}
func.func @mask_of_either(%arg0: !tt.ptr<f32>, %arg1: i32, %arg2: i32) attributes {tt.kernel} {
  %0 = "tt.make_range"() {end = 8 : i32, start = 0 : i32} : () -> tensor<8xi32>
  %1 = "tt.splat"(%arg0) : (!tt.ptr<f32>) -> tensor<8x!tt.ptr<f32>>
  %2 = "tt.addptr"(%1, %0) : (tensor<8x!tt.ptr<f32>>, tensor<8xi32>) -> tensor<8x!tt.ptr<f32>>
  %3 = "tt.splat"(%arg1) : (i32) -> tensor<8xi32>
  %4 = arith.cmpi slt, %0, %3 : tensor<8xi32>
  %5 = "tt.splat"(%arg2) : (i32) -> tensor<8xi32>
  %6 = arith.cmpi sgt, %0, %5 : tensor<8xi32>
  %7 = arith.ori %4, %6 : tensor<8xi1>
  %cst = arith.constant 1.000000e+00 : f32
  %8 = "tt.splat"(%cst) : (f32) -> tensor<8xf32>
  %9 = "tt.load"(%2, %7, %8) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 1>, volatile = false} : (tensor<8x!tt.ptr<f32>>, tensor<8xi1>, tensor<8xf32>) -> tensor<8xf32>
  return
}

// Mask of three dimensions:
//     i, j, k = tl.arange(0, 2)[:, None, None], tl.arange(0, 4)[None, :, None], tl.arange(0, 8)
//     x = tl.load(p + i * 32 + j * 8 + k[None, None, :], mask=(i < n) & (j < m) & (k < n)[None, None, :])

// CHECK-LABEL: func.func @mask_of_three_dimensions(
// CHECK: "tts.make_tptr"(%arg0, %c32, %c8, %c1, %c0, %c0, %c0) {gathers = array<i64: 0, 0, 0>, {{.*}}order = array<i64: 2, 1, 0>, wraps = array<i64: 0, 0, 0>}
// CHECK: "tts.load"(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}) {operandSegmentSizes = array<i32: 1, 3, 0, 0, 0>}
func.func @mask_of_three_dimensions(%arg0: !tt.ptr<f32>, %arg1: i32, %arg2: i32) attributes {tt.kernel} {
  %0 = "tt.make_range"() {end = 2 : i32, start = 0 : i32} : () -> tensor<2xi32>
  %1 = "tt.expand_dims"(%0) {axis = 1 : i32} : (tensor<2xi32>) -> tensor<2x1xi32>
  %2 = "tt.expand_dims"(%1) {axis = 2 : i32} : (tensor<2x1xi32>) -> tensor<2x1x1xi32>
  %3 = "tt.make_range"() {end = 4 : i32, start = 0 : i32} : () -> tensor<4xi32>
  %4 = "tt.expand_dims"(%3) {axis = 0 : i32} : (tensor<4xi32>) -> tensor<1x4xi32>
  %5 = "tt.expand_dims"(%4) {axis = 2 : i32} : (tensor<1x4xi32>) -> tensor<1x4x1xi32>
  %6 = "tt.make_range"() {end = 8 : i32, start = 0 : i32} : () -> tensor<8xi32>
  %c32_i32 = arith.constant 32 : i32
  %7 = "tt.splat"(%c32_i32) : (i32) -> tensor<2x1x1xi32>
  %8 = arith.muli %2, %7 : tensor<2x1x1xi32>
  %9 = "tt.splat"(%arg0) : (!tt.ptr<f32>) -> tensor<2x1x1x!tt.ptr<f32>>
  %10 = "tt.addptr"(%9, %8) : (tensor<2x1x1x!tt.ptr<f32>>, tensor<2x1x1xi32>) -> tensor<2x1x1x!tt.ptr<f32>>
  %c8_i32 = arith.constant 8 : i32
  %11 = "tt.splat"(%c8_i32) : (i32) -> tensor<1x4x1xi32>
  %12 = arith.muli %5, %11 : tensor<1x4x1xi32>
  %13 = "tt.broadcast"(%10) : (tensor<2x1x1x!tt.ptr<f32>>) -> tensor<2x4x1x!tt.ptr<f32>>
  %14 = "tt.broadcast"(%12) : (tensor<1x4x1xi32>) -> tensor<2x4x1xi32>
  %15 = "tt.addptr"(%13, %14) : (tensor<2x4x1x!tt.ptr<f32>>, tensor<2x4x1xi32>) -> tensor<2x4x1x!tt.ptr<f32>>
  %16 = "tt.expand_dims"(%6) {axis = 0 : i32} : (tensor<8xi32>) -> tensor<1x8xi32>
  %17 = "tt.expand_dims"(%16) {axis = 1 : i32} : (tensor<1x8xi32>) -> tensor<1x1x8xi32>
  %18 = "tt.broadcast"(%15) : (tensor<2x4x1x!tt.ptr<f32>>) -> tensor<2x4x8x!tt.ptr<f32>>
  %19 = "tt.broadcast"(%17) : (tensor<1x1x8xi32>) -> tensor<2x4x8xi32>
  %20 = "tt.addptr"(%18, %19) : (tensor<2x4x8x!tt.ptr<f32>>, tensor<2x4x8xi32>) -> tensor<2x4x8x!tt.ptr<f32>>
  %21 = "tt.splat"(%arg1) : (i32) -> tensor<2x1x1xi32>
  %22 = arith.cmpi slt, %2, %21 : tensor<2x1x1xi32>
  %23 = "tt.splat"(%arg2) : (i32) -> tensor<1x4x1xi32>
  %24 = arith.cmpi slt, %5, %23 : tensor<1x4x1xi32>
  %25 = "tt.broadcast"(%22) : (tensor<2x1x1xi1>) -> tensor<2x4x1xi1>
  %26 = "tt.broadcast"(%24) : (tensor<1x4x1xi1>) -> tensor<2x4x1xi1>
  %27 = arith.andi %25, %26 : tensor<2x4x1xi1>
  %28 = "tt.splat"(%arg1) : (i32) -> tensor<8xi32>
  %29 = arith.cmpi slt, %6, %28 : tensor<8xi32>
  %30 = "tt.expand_dims"(%29) {axis = 0 : i32} : (tensor<8xi1>) -> tensor<1x8xi1>
  %31 = "tt.expand_dims"(%30) {axis = 1 : i32} : (tensor<1x8xi1>) -> tensor<1x1x8xi1>
  %32 = "tt.broadcast"(%27) : (tensor<2x4x1xi1>) -> tensor<2x4x8xi1>
  %33 = "tt.broadcast"(%31) : (tensor<1x1x8xi1>) -> tensor<2x4x8xi1>
  %34 = arith.andi %32, %33 : tensor<2x4x8xi1>
  %35 = "tt.load"(%20, %34) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>, volatile = false} : (tensor<2x4x8x!tt.ptr<f32>>, tensor<2x4x8xi1>) -> tensor<2x4x8xf32>
  return
}

// Mask of loaded bits:
//     i = tl.arange(0, 8)
//     tl.store(p + i, tl.zeros((8,), tl.float32), mask=tl.load(q + i) > 0)

// CHECK-LABEL: func.func @mask_of_loaded_bits(
// CHECK: "tts.make_tptr"(%arg1, %c1, %c0) {gathers = array<i64: 0>, {{.*}}order = array<i64: 0>, wraps = array<i64: 0>}
// CHECK: "tts.load"(%{{.*}}) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0>}
// CHECK: "tts.make_tptr"(%arg0, %c1, %c0) {gathers = array<i64: 0>, {{.*}}order = array<i64: 0>, wraps = array<i64: 0>}
// CHECK: "tts.store"(%{{.*}}, %{{.*}}, %{{.*}}) {operandSegmentSizes = array<i32: 1, 1, 0, 0, 1>}
func.func @mask_of_loaded_bits(%arg0: !tt.ptr<f32>, %arg1: !tt.ptr<i32>) attributes {tt.kernel} {
  %0 = "tt.make_range"() {end = 8 : i32, start = 0 : i32} : () -> tensor<8xi32>
  %1 = "tt.splat"(%arg0) : (!tt.ptr<f32>) -> tensor<8x!tt.ptr<f32>>
  %2 = "tt.addptr"(%1, %0) : (tensor<8x!tt.ptr<f32>>, tensor<8xi32>) -> tensor<8x!tt.ptr<f32>>
  %cst = arith.constant dense<0.000000e+00> : tensor<8xf32>
  %3 = "tt.splat"(%arg1) : (!tt.ptr<i32>) -> tensor<8x!tt.ptr<i32>>
  %4 = "tt.addptr"(%3, %0) : (tensor<8x!tt.ptr<i32>>, tensor<8xi32>) -> tensor<8x!tt.ptr<i32>>
  %5 = "tt.load"(%4) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<8x!tt.ptr<i32>>) -> tensor<8xi32>
  %c0_i32 = arith.constant 0 : i32
  %6 = "tt.splat"(%c0_i32) : (i32) -> tensor<8xi32>
  %7 = arith.cmpi sgt, %5, %6 : tensor<8xi32>
  "tt.store"(%2, %cst, %7) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 1>} : (tensor<8x!tt.ptr<f32>>, tensor<8xf32>, tensor<8xi1>) -> ()
  return
}
