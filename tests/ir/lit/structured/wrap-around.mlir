// RUN: proton-opt --pipeline='rewrite-tensor-pointer,rewrite-tensor-descriptor-to-pointer,canonicalize,cse,triton-to-structured,canonicalize,cse' %s | filecheck %s

// Remainders wrap around in either dimension, or both. Each function is of the kernel above it.

// Wraps around by rows:
//     r, c = tl.arange(0, 4), tl.arange(0, 8)
//     x = tl.load(p + ((r + n) % m)[:, None] * s + c[None, :])

// CHECK-LABEL: func.func @wraps_around_by_rows(
// CHECK: "tts.make_tptr"(%arg0, %{{.*}}, %c1, %{{.*}}, %c0, %{{.*}}) {gathers = array<i64: 0, 0>, {{.*}}order = array<i64: 1, 0>, wraps = array<i64: 1, 0>}
// CHECK: "tts.load"(%{{.*}}) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0>}
func.func @wraps_around_by_rows(%arg0: !tt.ptr<f32>, %arg1: i32, %arg2: i32, %arg3: i32) attributes {tt.kernel} {
  %0 = "tt.make_range"() {end = 4 : i32, start = 0 : i32} : () -> tensor<4xi32>
  %1 = "tt.make_range"() {end = 8 : i32, start = 0 : i32} : () -> tensor<8xi32>
  %2 = "tt.splat"(%arg1) : (i32) -> tensor<4xi32>
  %3 = arith.addi %0, %2 : tensor<4xi32>
  %4 = "tt.splat"(%arg2) : (i32) -> tensor<4xi32>
  %5 = arith.remsi %3, %4 : tensor<4xi32>
  %6 = "tt.expand_dims"(%5) {axis = 1 : i32} : (tensor<4xi32>) -> tensor<4x1xi32>
  %7 = "tt.splat"(%arg3) : (i32) -> tensor<4x1xi32>
  %8 = arith.muli %6, %7 : tensor<4x1xi32>
  %9 = "tt.splat"(%arg0) : (!tt.ptr<f32>) -> tensor<4x1x!tt.ptr<f32>>
  %10 = "tt.addptr"(%9, %8) : (tensor<4x1x!tt.ptr<f32>>, tensor<4x1xi32>) -> tensor<4x1x!tt.ptr<f32>>
  %11 = "tt.expand_dims"(%1) {axis = 0 : i32} : (tensor<8xi32>) -> tensor<1x8xi32>
  %12 = "tt.broadcast"(%10) : (tensor<4x1x!tt.ptr<f32>>) -> tensor<4x8x!tt.ptr<f32>>
  %13 = "tt.broadcast"(%11) : (tensor<1x8xi32>) -> tensor<4x8xi32>
  %14 = "tt.addptr"(%12, %13) : (tensor<4x8x!tt.ptr<f32>>, tensor<4x8xi32>) -> tensor<4x8x!tt.ptr<f32>>
  %15 = "tt.load"(%14) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<4x8x!tt.ptr<f32>>) -> tensor<4x8xf32>
  return
}

// Wraps around by columns:
//     r, c = tl.arange(0, 4), tl.arange(0, 8)
//     x = tl.load(p + r[:, None] * s + ((c + n) % m)[None, :])

// CHECK-LABEL: func.func @wraps_around_by_columns(
// CHECK: "tts.make_tptr"(%arg0, %{{.*}}, %c1, %c0, %{{.*}}, %{{.*}}) {gathers = array<i64: 0, 0>, {{.*}}order = array<i64: 1, 0>, wraps = array<i64: 0, 1>}
// CHECK: "tts.load"(%{{.*}}) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0>}
func.func @wraps_around_by_columns(%arg0: !tt.ptr<f32>, %arg1: i32, %arg2: i32, %arg3: i32) attributes {tt.kernel} {
  %0 = "tt.make_range"() {end = 4 : i32, start = 0 : i32} : () -> tensor<4xi32>
  %1 = "tt.make_range"() {end = 8 : i32, start = 0 : i32} : () -> tensor<8xi32>
  %2 = "tt.expand_dims"(%0) {axis = 1 : i32} : (tensor<4xi32>) -> tensor<4x1xi32>
  %3 = "tt.splat"(%arg3) : (i32) -> tensor<4x1xi32>
  %4 = arith.muli %2, %3 : tensor<4x1xi32>
  %5 = "tt.splat"(%arg0) : (!tt.ptr<f32>) -> tensor<4x1x!tt.ptr<f32>>
  %6 = "tt.addptr"(%5, %4) : (tensor<4x1x!tt.ptr<f32>>, tensor<4x1xi32>) -> tensor<4x1x!tt.ptr<f32>>
  %7 = "tt.splat"(%arg1) : (i32) -> tensor<8xi32>
  %8 = arith.addi %1, %7 : tensor<8xi32>
  %9 = "tt.splat"(%arg2) : (i32) -> tensor<8xi32>
  %10 = arith.remsi %8, %9 : tensor<8xi32>
  %11 = "tt.expand_dims"(%10) {axis = 0 : i32} : (tensor<8xi32>) -> tensor<1x8xi32>
  %12 = "tt.broadcast"(%6) : (tensor<4x1x!tt.ptr<f32>>) -> tensor<4x8x!tt.ptr<f32>>
  %13 = "tt.broadcast"(%11) : (tensor<1x8xi32>) -> tensor<4x8xi32>
  %14 = "tt.addptr"(%12, %13) : (tensor<4x8x!tt.ptr<f32>>, tensor<4x8xi32>) -> tensor<4x8x!tt.ptr<f32>>
  %15 = "tt.load"(%14) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<4x8x!tt.ptr<f32>>) -> tensor<4x8xf32>
  return
}

// Wraps around in both dimensions:
//     r, c = tl.arange(0, 4), tl.arange(0, 8)
//     x = tl.load(p + ((r + n) % m)[:, None] * s + ((c + m) % n)[None, :])

// CHECK-LABEL: func.func @wraps_around_in_both_dimensions(
// CHECK: "tts.make_tptr"(%arg0, %{{.*}}, %c1, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}) {gathers = array<i64: 0, 0>, {{.*}}order = array<i64: 1, 0>, wraps = array<i64: 1, 1>}
// CHECK: "tts.load"(%{{.*}}) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0>}
func.func @wraps_around_in_both_dimensions(%arg0: !tt.ptr<f32>, %arg1: i32, %arg2: i32, %arg3: i32) attributes {tt.kernel} {
  %0 = "tt.make_range"() {end = 4 : i32, start = 0 : i32} : () -> tensor<4xi32>
  %1 = "tt.make_range"() {end = 8 : i32, start = 0 : i32} : () -> tensor<8xi32>
  %2 = "tt.splat"(%arg1) : (i32) -> tensor<4xi32>
  %3 = arith.addi %0, %2 : tensor<4xi32>
  %4 = "tt.splat"(%arg2) : (i32) -> tensor<4xi32>
  %5 = arith.remsi %3, %4 : tensor<4xi32>
  %6 = "tt.expand_dims"(%5) {axis = 1 : i32} : (tensor<4xi32>) -> tensor<4x1xi32>
  %7 = "tt.splat"(%arg3) : (i32) -> tensor<4x1xi32>
  %8 = arith.muli %6, %7 : tensor<4x1xi32>
  %9 = "tt.splat"(%arg0) : (!tt.ptr<f32>) -> tensor<4x1x!tt.ptr<f32>>
  %10 = "tt.addptr"(%9, %8) : (tensor<4x1x!tt.ptr<f32>>, tensor<4x1xi32>) -> tensor<4x1x!tt.ptr<f32>>
  %11 = "tt.splat"(%arg2) : (i32) -> tensor<8xi32>
  %12 = arith.addi %1, %11 : tensor<8xi32>
  %13 = "tt.splat"(%arg1) : (i32) -> tensor<8xi32>
  %14 = arith.remsi %12, %13 : tensor<8xi32>
  %15 = "tt.expand_dims"(%14) {axis = 0 : i32} : (tensor<8xi32>) -> tensor<1x8xi32>
  %16 = "tt.broadcast"(%10) : (tensor<4x1x!tt.ptr<f32>>) -> tensor<4x8x!tt.ptr<f32>>
  %17 = "tt.broadcast"(%15) : (tensor<1x8xi32>) -> tensor<4x8xi32>
  %18 = "tt.addptr"(%16, %17) : (tensor<4x8x!tt.ptr<f32>>, tensor<4x8xi32>) -> tensor<4x8x!tt.ptr<f32>>
  %19 = "tt.load"(%18) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<4x8x!tt.ptr<f32>>) -> tensor<4x8xf32>
  return
}

// Wraps around by a constant:
//     x = tl.load(p + (n + tl.arange(0, 8)) % 5)

// CHECK-LABEL: func.func @wraps_around_by_a_constant(
// CHECK: "tts.make_tptr"(%arg0, %c1, %{{.*}}, %c5) {gathers = array<i64: 0>, {{.*}}order = array<i64: 0>, wraps = array<i64: 1>}
// CHECK: "tts.load"(%{{.*}}) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0>}
func.func @wraps_around_by_a_constant(%arg0: !tt.ptr<f32>, %arg1: i32) attributes {tt.kernel} {
  %0 = "tt.make_range"() {end = 8 : i32, start = 0 : i32} : () -> tensor<8xi32>
  %1 = "tt.splat"(%arg1) : (i32) -> tensor<8xi32>
  %2 = arith.addi %1, %0 : tensor<8xi32>
  %c5_i32 = arith.constant 5 : i32
  %3 = "tt.splat"(%c5_i32) : (i32) -> tensor<8xi32>
  %4 = arith.remsi %2, %3 : tensor<8xi32>
  %5 = "tt.splat"(%arg0) : (!tt.ptr<f32>) -> tensor<8x!tt.ptr<f32>>
  %6 = "tt.addptr"(%5, %4) : (tensor<8x!tt.ptr<f32>>, tensor<8xi32>) -> tensor<8x!tt.ptr<f32>>
  %7 = "tt.load"(%6) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<8x!tt.ptr<f32>>) -> tensor<8xf32>
  return
}

// Wrapped pointers move in a loop:
//     r, c = tl.arange(0, 4), tl.arange(0, 8)
//     ptrs = p + ((r + n) % m)[:, None] * s + c[None, :]
//     for _ in range(n):
//         x = tl.load(ptrs)
//         ptrs += 8

// CHECK-LABEL: func.func @wrapped_pointers_move_in_a_loop(
// CHECK: scf.for %arg4 = %c0_i32 to %arg1 step %c1_i32 iter_args(%arg5 = %c0) -> (index)  : i32
// CHECK: "tts.make_tptr"(%{{.*}}, %{{.*}}, %c1, %{{.*}}, %c0, %{{.*}}) {gathers = array<i64: 0, 0>, {{.*}}order = array<i64: 1, 0>, wraps = array<i64: 1, 0>}
// CHECK: "tts.load"(%{{.*}}) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0>}
// CHECK: scf.yield %{{.*}} : index
func.func @wrapped_pointers_move_in_a_loop(%arg0: !tt.ptr<f32>, %arg1: i32, %arg2: i32, %arg3: i32) attributes {tt.kernel} {
  %0 = "tt.make_range"() {end = 4 : i32, start = 0 : i32} : () -> tensor<4xi32>
  %1 = "tt.make_range"() {end = 8 : i32, start = 0 : i32} : () -> tensor<8xi32>
  %2 = "tt.splat"(%arg1) : (i32) -> tensor<4xi32>
  %3 = arith.addi %0, %2 : tensor<4xi32>
  %4 = "tt.splat"(%arg2) : (i32) -> tensor<4xi32>
  %5 = arith.remsi %3, %4 : tensor<4xi32>
  %6 = "tt.expand_dims"(%5) {axis = 1 : i32} : (tensor<4xi32>) -> tensor<4x1xi32>
  %7 = "tt.splat"(%arg3) : (i32) -> tensor<4x1xi32>
  %8 = arith.muli %6, %7 : tensor<4x1xi32>
  %9 = "tt.splat"(%arg0) : (!tt.ptr<f32>) -> tensor<4x1x!tt.ptr<f32>>
  %10 = "tt.addptr"(%9, %8) : (tensor<4x1x!tt.ptr<f32>>, tensor<4x1xi32>) -> tensor<4x1x!tt.ptr<f32>>
  %11 = "tt.expand_dims"(%1) {axis = 0 : i32} : (tensor<8xi32>) -> tensor<1x8xi32>
  %12 = "tt.broadcast"(%10) : (tensor<4x1x!tt.ptr<f32>>) -> tensor<4x8x!tt.ptr<f32>>
  %13 = "tt.broadcast"(%11) : (tensor<1x8xi32>) -> tensor<4x8xi32>
  %14 = "tt.addptr"(%12, %13) : (tensor<4x8x!tt.ptr<f32>>, tensor<4x8xi32>) -> tensor<4x8x!tt.ptr<f32>>
  %c0_i32 = arith.constant 0 : i32
  %c1_i32 = arith.constant 1 : i32
  %15 = scf.for %arg4 = %c0_i32 to %arg1 step %c1_i32 iter_args(%arg5 = %14) -> (tensor<4x8x!tt.ptr<f32>>)  : i32 {
    %16 = "tt.load"(%arg5) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<4x8x!tt.ptr<f32>>) -> tensor<4x8xf32>
    %c8_i32 = arith.constant 8 : i32
    %17 = "tt.splat"(%c8_i32) : (i32) -> tensor<4x8xi32>
    %18 = "tt.addptr"(%arg5, %17) : (tensor<4x8x!tt.ptr<f32>>, tensor<4x8xi32>) -> tensor<4x8x!tt.ptr<f32>>
    scf.yield %18 : tensor<4x8x!tt.ptr<f32>>
  }
  return
}

// Wraps around under a mask:
//     i = tl.arange(0, 8)
//     x = tl.load(p + (i + n) % m, mask=i < n)

// CHECK-LABEL: func.func @wraps_around_under_a_mask(
// CHECK: "tts.make_tptr"(%arg0, %c1, %{{.*}}, %{{.*}}) {gathers = array<i64: 0>, {{.*}}order = array<i64: 0>, wraps = array<i64: 1>}
// CHECK: "tts.load"(%{{.*}}, %{{.*}}) {operandSegmentSizes = array<i32: 1, 1, 0, 0, 0>}
func.func @wraps_around_under_a_mask(%arg0: !tt.ptr<f32>, %arg1: i32, %arg2: i32) attributes {tt.kernel} {
  %0 = "tt.make_range"() {end = 8 : i32, start = 0 : i32} : () -> tensor<8xi32>
  %1 = "tt.splat"(%arg1) : (i32) -> tensor<8xi32>
  %2 = arith.addi %0, %1 : tensor<8xi32>
  %3 = "tt.splat"(%arg2) : (i32) -> tensor<8xi32>
  %4 = arith.remsi %2, %3 : tensor<8xi32>
  %5 = "tt.splat"(%arg0) : (!tt.ptr<f32>) -> tensor<8x!tt.ptr<f32>>
  %6 = "tt.addptr"(%5, %4) : (tensor<8x!tt.ptr<f32>>, tensor<8xi32>) -> tensor<8x!tt.ptr<f32>>
  %7 = "tt.splat"(%arg1) : (i32) -> tensor<8xi32>
  %8 = arith.cmpi slt, %0, %7 : tensor<8xi32>
  %9 = "tt.load"(%6, %8) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>, volatile = false} : (tensor<8x!tt.ptr<f32>>, tensor<8xi1>) -> tensor<8xf32>
  return
}

// Wraps around where it gathers:
//     r, c = tl.load(q + tl.arange(0, 4)), tl.arange(0, 8)
//     x = tl.load(p + r[:, None] * m + ((c + n) % m)[None, :])

// CHECK-LABEL: func.func @wraps_around_where_it_gathers(
// CHECK: "tts.make_tptr"(%arg1, %c1, %c0) {gathers = array<i64: 0>, {{.*}}order = array<i64: 0>, wraps = array<i64: 0>}
// CHECK: "tts.load"(%{{.*}}) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0>}
// CHECK: "tts.make_tptr"(%arg0, %c0, %c1, %c0, %{{.*}}, %{{.*}}, %{{.*}}) {gathers = array<i64: 1, 0>, {{.*}}order = array<i64: 1, 0>, wraps = array<i64: 0, 1>}
// CHECK: "tts.load"(%{{.*}}) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0>}
func.func @wraps_around_where_it_gathers(%arg0: !tt.ptr<f32>, %arg1: !tt.ptr<i32>, %arg2: i32, %arg3: i32) attributes {tt.kernel} {
  %0 = "tt.make_range"() {end = 4 : i32, start = 0 : i32} : () -> tensor<4xi32>
  %1 = "tt.splat"(%arg1) : (!tt.ptr<i32>) -> tensor<4x!tt.ptr<i32>>
  %2 = "tt.addptr"(%1, %0) : (tensor<4x!tt.ptr<i32>>, tensor<4xi32>) -> tensor<4x!tt.ptr<i32>>
  %3 = "tt.load"(%2) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<4x!tt.ptr<i32>>) -> tensor<4xi32>
  %4 = "tt.make_range"() {end = 8 : i32, start = 0 : i32} : () -> tensor<8xi32>
  %5 = "tt.expand_dims"(%3) {axis = 1 : i32} : (tensor<4xi32>) -> tensor<4x1xi32>
  %6 = "tt.splat"(%arg3) : (i32) -> tensor<4x1xi32>
  %7 = arith.muli %5, %6 : tensor<4x1xi32>
  %8 = "tt.splat"(%arg0) : (!tt.ptr<f32>) -> tensor<4x1x!tt.ptr<f32>>
  %9 = "tt.addptr"(%8, %7) : (tensor<4x1x!tt.ptr<f32>>, tensor<4x1xi32>) -> tensor<4x1x!tt.ptr<f32>>
  %10 = "tt.splat"(%arg2) : (i32) -> tensor<8xi32>
  %11 = arith.addi %4, %10 : tensor<8xi32>
  %12 = "tt.splat"(%arg3) : (i32) -> tensor<8xi32>
  %13 = arith.remsi %11, %12 : tensor<8xi32>
  %14 = "tt.expand_dims"(%13) {axis = 0 : i32} : (tensor<8xi32>) -> tensor<1x8xi32>
  %15 = "tt.broadcast"(%9) : (tensor<4x1x!tt.ptr<f32>>) -> tensor<4x8x!tt.ptr<f32>>
  %16 = "tt.broadcast"(%14) : (tensor<1x8xi32>) -> tensor<4x8xi32>
  %17 = "tt.addptr"(%15, %16) : (tensor<4x8x!tt.ptr<f32>>, tensor<4x8xi32>) -> tensor<4x8x!tt.ptr<f32>>
  %18 = "tt.load"(%17) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<4x8x!tt.ptr<f32>>) -> tensor<4x8xf32>
  return
}
