// RUN: proton-opt --pipeline='rewrite-tensor-pointer,rewrite-tensor-descriptor-to-pointer,canonicalize,cse,triton-to-structured,canonicalize,cse' %s | filecheck %s

// Pointers that a condition chooses. Each function is of the kernel above it.

// Select of arrays:
//     x = tl.load(tl.where(n > 0, p + tl.arange(0, 8), o + tl.arange(0, 8)))

// CHECK-LABEL: func.func @select_of_arrays(
// CHECK: "tts.make_tptr"(%{{.*}}, %c1, %c0) {gathers = array<i64: 0>, {{.*}}order = array<i64: 0>, wraps = array<i64: 0>}
// CHECK: "tts.load"(%{{.*}}) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0>}
func.func @select_of_arrays(%arg0: !tt.ptr<f32>, %arg1: !tt.ptr<f32>, %arg2: i32) attributes {tt.kernel} {
  %c0_i32 = arith.constant 0 : i32
  %0 = arith.cmpi sgt, %arg2, %c0_i32 : i32
  %1 = "tt.make_range"() {end = 8 : i32, start = 0 : i32} : () -> tensor<8xi32>
  %2 = "tt.splat"(%arg0) : (!tt.ptr<f32>) -> tensor<8x!tt.ptr<f32>>
  %3 = "tt.addptr"(%2, %1) : (tensor<8x!tt.ptr<f32>>, tensor<8xi32>) -> tensor<8x!tt.ptr<f32>>
  %4 = "tt.make_range"() {end = 8 : i32, start = 0 : i32} : () -> tensor<8xi32>
  %5 = "tt.splat"(%arg1) : (!tt.ptr<f32>) -> tensor<8x!tt.ptr<f32>>
  %6 = "tt.addptr"(%5, %4) : (tensor<8x!tt.ptr<f32>>, tensor<8xi32>) -> tensor<8x!tt.ptr<f32>>
  %7 = "tt.splat"(%0) : (i1) -> tensor<8xi1>
  %8 = arith.select %7, %3, %6 : tensor<8xi1>, tensor<8x!tt.ptr<f32>>
  %9 = "tt.load"(%8) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<8x!tt.ptr<f32>>) -> tensor<8xf32>
  return
}

// Select of strides:
//     i = tl.arange(0, 8)
//     x = tl.load(tl.where(n > 0, p + i, p + i * 2))

// CHECK-LABEL: func.func @select_of_strides(
// CHECK: "tts.make_tptr"(%arg0, %{{.*}}, %c0) {gathers = array<i64: 0>, {{.*}}order = array<i64: 0>, wraps = array<i64: 0>}
// CHECK: "tts.load"(%{{.*}}) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0>}
func.func @select_of_strides(%arg0: !tt.ptr<f32>, %arg1: i32) attributes {tt.kernel} {
  %0 = "tt.make_range"() {end = 8 : i32, start = 0 : i32} : () -> tensor<8xi32>
  %c0_i32 = arith.constant 0 : i32
  %1 = arith.cmpi sgt, %arg1, %c0_i32 : i32
  %2 = "tt.splat"(%arg0) : (!tt.ptr<f32>) -> tensor<8x!tt.ptr<f32>>
  %3 = "tt.addptr"(%2, %0) : (tensor<8x!tt.ptr<f32>>, tensor<8xi32>) -> tensor<8x!tt.ptr<f32>>
  %c2_i32 = arith.constant 2 : i32
  %4 = "tt.splat"(%c2_i32) : (i32) -> tensor<8xi32>
  %5 = arith.muli %0, %4 : tensor<8xi32>
  %6 = "tt.splat"(%arg0) : (!tt.ptr<f32>) -> tensor<8x!tt.ptr<f32>>
  %7 = "tt.addptr"(%6, %5) : (tensor<8x!tt.ptr<f32>>, tensor<8xi32>) -> tensor<8x!tt.ptr<f32>>
  %8 = "tt.splat"(%1) : (i1) -> tensor<8xi1>
  %9 = arith.select %8, %3, %7 : tensor<8xi1>, tensor<8x!tt.ptr<f32>>
  %10 = "tt.load"(%9) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<8x!tt.ptr<f32>>) -> tensor<8xf32>
  return
}

// Select by element stays:
//     i = tl.arange(0, 8)
//     x = tl.load(tl.where(i % 2 == 0, p + i, o + i))

// CHECK-LABEL: func.func @select_by_element_stays(
// CHECK: "tt.load"(%{{.*}})
func.func @select_by_element_stays(%arg0: !tt.ptr<f32>, %arg1: !tt.ptr<f32>, %arg2: i32) attributes {tt.kernel} {
  %0 = "tt.make_range"() {end = 8 : i32, start = 0 : i32} : () -> tensor<8xi32>
  %c2_i32 = arith.constant 2 : i32
  %1 = "tt.splat"(%c2_i32) : (i32) -> tensor<8xi32>
  %2 = arith.remsi %0, %1 : tensor<8xi32>
  %c0_i32 = arith.constant 0 : i32
  %3 = "tt.splat"(%c0_i32) : (i32) -> tensor<8xi32>
  %4 = arith.cmpi eq, %2, %3 : tensor<8xi32>
  %5 = "tt.splat"(%arg0) : (!tt.ptr<f32>) -> tensor<8x!tt.ptr<f32>>
  %6 = "tt.addptr"(%5, %0) : (tensor<8x!tt.ptr<f32>>, tensor<8xi32>) -> tensor<8x!tt.ptr<f32>>
  %7 = "tt.splat"(%arg1) : (!tt.ptr<f32>) -> tensor<8x!tt.ptr<f32>>
  %8 = "tt.addptr"(%7, %0) : (tensor<8x!tt.ptr<f32>>, tensor<8xi32>) -> tensor<8x!tt.ptr<f32>>
  %9 = arith.select %4, %6, %8 : tensor<8xi1>, tensor<8x!tt.ptr<f32>>
  %10 = "tt.load"(%9) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<8x!tt.ptr<f32>>) -> tensor<8xf32>
  return
}

// Branch of arrays:
//     if n > 0:
//         ptrs = p + tl.arange(0, 8)
//     else:
//         ptrs = o + tl.arange(0, 8) + 4
//     x = tl.load(ptrs)

// CHECK-LABEL: func.func @branch_of_arrays(
// CHECK: "tts.make_tptr"(%{{.*}}, %c1, %c0) {gathers = array<i64: 0>, {{.*}}order = array<i64: 0>, wraps = array<i64: 0>}
// CHECK: "tts.load"(%{{.*}}) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0>}
func.func @branch_of_arrays(%arg0: !tt.ptr<f32>, %arg1: !tt.ptr<f32>, %arg2: i32) attributes {tt.kernel} {
  %c0_i32 = arith.constant 0 : i32
  %0 = arith.cmpi sgt, %arg2, %c0_i32 : i32
  %1 = scf.if %0 -> (tensor<8x!tt.ptr<f32>>) {
    %3 = "tt.make_range"() {end = 8 : i32, start = 0 : i32} : () -> tensor<8xi32>
    %4 = "tt.splat"(%arg0) : (!tt.ptr<f32>) -> tensor<8x!tt.ptr<f32>>
    %5 = "tt.addptr"(%4, %3) : (tensor<8x!tt.ptr<f32>>, tensor<8xi32>) -> tensor<8x!tt.ptr<f32>>
    scf.yield %5 : tensor<8x!tt.ptr<f32>>
  } else {
    %3 = "tt.make_range"() {end = 8 : i32, start = 0 : i32} : () -> tensor<8xi32>
    %4 = "tt.splat"(%arg1) : (!tt.ptr<f32>) -> tensor<8x!tt.ptr<f32>>
    %5 = "tt.addptr"(%4, %3) : (tensor<8x!tt.ptr<f32>>, tensor<8xi32>) -> tensor<8x!tt.ptr<f32>>
    %c4_i32 = arith.constant 4 : i32
    %6 = "tt.splat"(%c4_i32) : (i32) -> tensor<8xi32>
    %7 = "tt.addptr"(%5, %6) : (tensor<8x!tt.ptr<f32>>, tensor<8xi32>) -> tensor<8x!tt.ptr<f32>>
    scf.yield %7 : tensor<8x!tt.ptr<f32>>
  }
  %2 = "tt.load"(%1) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<8x!tt.ptr<f32>>) -> tensor<8xf32>
  return
}

// Branch of strides:
//     ptrs = p + tl.arange(0, 8)
//     if n > 0:
//         ptrs = p + tl.arange(0, 8) * s
//     x = tl.load(ptrs)

// CHECK-LABEL: func.func @branch_of_strides(
// CHECK: scf.if %{{.*}} -> (index)
// CHECK: scf.yield %{{.*}} : index
// CHECK: } else
// CHECK: scf.yield %c1 : index
// CHECK: "tts.make_tptr"(%{{.*}}, %{{.*}}, %c0) {gathers = array<i64: 0>, {{.*}}order = array<i64: 0>, wraps = array<i64: 0>}
// CHECK: "tts.load"(%{{.*}}) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0>}
func.func @branch_of_strides(%arg0: !tt.ptr<f32>, %arg1: i32, %arg2: i32) attributes {tt.kernel} {
  %0 = "tt.make_range"() {end = 8 : i32, start = 0 : i32} : () -> tensor<8xi32>
  %1 = "tt.splat"(%arg0) : (!tt.ptr<f32>) -> tensor<8x!tt.ptr<f32>>
  %2 = "tt.addptr"(%1, %0) : (tensor<8x!tt.ptr<f32>>, tensor<8xi32>) -> tensor<8x!tt.ptr<f32>>
  %c0_i32 = arith.constant 0 : i32
  %3 = arith.cmpi sgt, %arg1, %c0_i32 : i32
  %4 = scf.if %3 -> (tensor<8x!tt.ptr<f32>>) {
    %6 = "tt.make_range"() {end = 8 : i32, start = 0 : i32} : () -> tensor<8xi32>
    %7 = "tt.splat"(%arg2) : (i32) -> tensor<8xi32>
    %8 = arith.muli %6, %7 : tensor<8xi32>
    %9 = "tt.splat"(%arg0) : (!tt.ptr<f32>) -> tensor<8x!tt.ptr<f32>>
    %10 = "tt.addptr"(%9, %8) : (tensor<8x!tt.ptr<f32>>, tensor<8xi32>) -> tensor<8x!tt.ptr<f32>>
    scf.yield %10 : tensor<8x!tt.ptr<f32>>
  } else {
    scf.yield %2 : tensor<8x!tt.ptr<f32>>
  }
  %5 = "tt.load"(%4) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<8x!tt.ptr<f32>>) -> tensor<8xf32>
  return
}

// Branch of places from memory stays:
//     ptrs = p + tl.arange(0, 8)
//     if n > 0:
//         ptrs = p + tl.load(q + tl.arange(0, 8))
//     x = tl.load(ptrs)

// CHECK-LABEL: func.func @branch_of_places_from_memory_stays(
// CHECK: scf.if %{{.*}} -> (tensor<8x!tt.ptr<f32>>)
// CHECK: "tts.make_tptr"(%arg1, %c1, %c0) {gathers = array<i64: 0>, {{.*}}order = array<i64: 0>, wraps = array<i64: 0>}
// CHECK: "tts.load"(%{{.*}}) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0>}
// CHECK: scf.yield %{{.*}} : tensor<8x!tt.ptr<f32>>
// CHECK: } else
// CHECK: scf.yield %{{.*}} : tensor<8x!tt.ptr<f32>>
// CHECK: "tt.load"(%{{.*}})
func.func @branch_of_places_from_memory_stays(%arg0: !tt.ptr<f32>, %arg1: !tt.ptr<i32>, %arg2: i32) attributes {tt.kernel} {
  %0 = "tt.make_range"() {end = 8 : i32, start = 0 : i32} : () -> tensor<8xi32>
  %1 = "tt.splat"(%arg0) : (!tt.ptr<f32>) -> tensor<8x!tt.ptr<f32>>
  %2 = "tt.addptr"(%1, %0) : (tensor<8x!tt.ptr<f32>>, tensor<8xi32>) -> tensor<8x!tt.ptr<f32>>
  %c0_i32 = arith.constant 0 : i32
  %3 = arith.cmpi sgt, %arg2, %c0_i32 : i32
  %4 = scf.if %3 -> (tensor<8x!tt.ptr<f32>>) {
    %6 = "tt.make_range"() {end = 8 : i32, start = 0 : i32} : () -> tensor<8xi32>
    %7 = "tt.splat"(%arg1) : (!tt.ptr<i32>) -> tensor<8x!tt.ptr<i32>>
    %8 = "tt.addptr"(%7, %6) : (tensor<8x!tt.ptr<i32>>, tensor<8xi32>) -> tensor<8x!tt.ptr<i32>>
    %9 = "tt.load"(%8) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<8x!tt.ptr<i32>>) -> tensor<8xi32>
    %10 = "tt.splat"(%arg0) : (!tt.ptr<f32>) -> tensor<8x!tt.ptr<f32>>
    %11 = "tt.addptr"(%10, %9) : (tensor<8x!tt.ptr<f32>>, tensor<8xi32>) -> tensor<8x!tt.ptr<f32>>
    scf.yield %11 : tensor<8x!tt.ptr<f32>>
  } else {
    scf.yield %2 : tensor<8x!tt.ptr<f32>>
  }
  %5 = "tt.load"(%4) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<8x!tt.ptr<f32>>) -> tensor<8xf32>
  return
}

// Branch in a loop:
//     ptrs = p + tl.arange(0, 8)
//     for i in range(n):
//         if i > 3:
//             ptrs += 8
//         x = tl.load(ptrs)

// CHECK-LABEL: func.func @branch_in_a_loop(
// CHECK: scf.for %arg3 = %c0_i32 to %arg2 step %c1_i32 iter_args(%arg4 = %c0) -> (index)  : i32
// CHECK: scf.if %{{.*}} -> (index)
// CHECK: scf.yield %{{.*}} : index
// CHECK: } else
// CHECK: scf.yield %arg4 : index
// CHECK: "tts.make_tptr"(%{{.*}}, %c1, %c0) {gathers = array<i64: 0>, {{.*}}order = array<i64: 0>, wraps = array<i64: 0>}
// CHECK: "tts.load"(%{{.*}}) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0>}
// CHECK: scf.yield %{{.*}} : index
func.func @branch_in_a_loop(%arg0: !tt.ptr<f32>, %arg1: !tt.ptr<f32>, %arg2: i32) attributes {tt.kernel} {
  %0 = "tt.make_range"() {end = 8 : i32, start = 0 : i32} : () -> tensor<8xi32>
  %1 = "tt.splat"(%arg0) : (!tt.ptr<f32>) -> tensor<8x!tt.ptr<f32>>
  %2 = "tt.addptr"(%1, %0) : (tensor<8x!tt.ptr<f32>>, tensor<8xi32>) -> tensor<8x!tt.ptr<f32>>
  %c0_i32 = arith.constant 0 : i32
  %c1_i32 = arith.constant 1 : i32
  %3 = scf.for %arg3 = %c0_i32 to %arg2 step %c1_i32 iter_args(%arg4 = %2) -> (tensor<8x!tt.ptr<f32>>)  : i32 {
    %c3_i32 = arith.constant 3 : i32
    %4 = arith.cmpi sgt, %arg3, %c3_i32 : i32
    %5 = scf.if %4 -> (tensor<8x!tt.ptr<f32>>) {
      %c8_i32 = arith.constant 8 : i32
      %7 = "tt.splat"(%c8_i32) : (i32) -> tensor<8xi32>
      %8 = "tt.addptr"(%arg4, %7) : (tensor<8x!tt.ptr<f32>>, tensor<8xi32>) -> tensor<8x!tt.ptr<f32>>
      scf.yield %8 : tensor<8x!tt.ptr<f32>>
    } else {
      scf.yield %arg4 : tensor<8x!tt.ptr<f32>>
    }
    %6 = "tt.load"(%5) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<8x!tt.ptr<f32>>) -> tensor<8xf32>
    scf.yield %5 : tensor<8x!tt.ptr<f32>>
  }
  return
}
