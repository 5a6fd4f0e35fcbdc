// RUN: proton-opt --pipeline='rewrite-tensor-pointer,rewrite-tensor-descriptor-to-pointer,canonicalize,cse,triton-to-structured,canonicalize,cse' %s | filecheck %s

// Pointers that loops carry. Each function is of the kernel above it.

// Loop in a branch:
//     ptrs = p + tl.arange(0, 8)
//     if n > 3:
//         for _ in range(n):
//             ptrs += 8
//     x = tl.load(ptrs)

// CHECK-LABEL: func.func @loop_in_a_branch(
// CHECK: scf.if %{{.*}} -> (index)
// CHECK: scf.for %arg2 = %c0_i32 to %arg1 step %c1_i32 iter_args(%arg3 = %c0) -> (index)  : i32
// CHECK: scf.yield %{{.*}} : index
// CHECK: scf.yield %{{.*}} : index
// CHECK: } else
// CHECK: scf.yield %c0 : index
// CHECK: "tts.make_tptr"(%{{.*}}, %c1, %c0) {gathers = array<i64: 0>, {{.*}}order = array<i64: 0>, wraps = array<i64: 0>}
// CHECK: "tts.load"(%{{.*}}) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0>}
func.func @loop_in_a_branch(%arg0: !tt.ptr<f32>, %arg1: i32) attributes {tt.kernel} {
  %0 = "tt.make_range"() {end = 8 : i32, start = 0 : i32} : () -> tensor<8xi32>
  %1 = "tt.splat"(%arg0) : (!tt.ptr<f32>) -> tensor<8x!tt.ptr<f32>>
  %2 = "tt.addptr"(%1, %0) : (tensor<8x!tt.ptr<f32>>, tensor<8xi32>) -> tensor<8x!tt.ptr<f32>>
  %c3_i32 = arith.constant 3 : i32
  %3 = arith.cmpi sgt, %arg1, %c3_i32 : i32
  %4 = scf.if %3 -> (tensor<8x!tt.ptr<f32>>) {
    %c0_i32 = arith.constant 0 : i32
    %c1_i32 = arith.constant 1 : i32
    %6 = scf.for %arg2 = %c0_i32 to %arg1 step %c1_i32 iter_args(%arg3 = %2) -> (tensor<8x!tt.ptr<f32>>)  : i32 {
      %c8_i32 = arith.constant 8 : i32
      %7 = "tt.splat"(%c8_i32) : (i32) -> tensor<8xi32>
      %8 = "tt.addptr"(%arg3, %7) : (tensor<8x!tt.ptr<f32>>, tensor<8xi32>) -> tensor<8x!tt.ptr<f32>>
      scf.yield %8 : tensor<8x!tt.ptr<f32>>
    }
    scf.yield %6 : tensor<8x!tt.ptr<f32>>
  } else {
    scf.yield %2 : tensor<8x!tt.ptr<f32>>
  }
  %5 = "tt.load"(%4) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<8x!tt.ptr<f32>>) -> tensor<8xf32>
  return
}

// Loop that swaps arrays:
//     a, b = p + tl.arange(0, 8), o + tl.arange(0, 8)
//     for _ in range(n):
//         tl.store(b, tl.load(a))
//         a, b = b, a

// CHECK-LABEL: func.func @loop_that_swaps_arrays(
// CHECK: scf.for %arg3 = %c0_i32 to %arg2 step %c1_i32 iter_args(%arg4 = %arg0, %arg5 = %arg1) -> (!tt.ptr<f32>, !tt.ptr<f32>)  : i32
// CHECK: "tts.make_tptr"(%{{.*}}, %c1, %c0) {gathers = array<i64: 0>, {{.*}}order = array<i64: 0>, wraps = array<i64: 0>}
// CHECK: "tts.load"(%{{.*}}) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0>}
// CHECK: "tts.make_tptr"(%{{.*}}, %c1, %c0) {gathers = array<i64: 0>, {{.*}}order = array<i64: 0>, wraps = array<i64: 0>}
// CHECK: "tts.store"(%{{.*}}, %{{.*}}) {operandSegmentSizes = array<i32: 1, 1, 0, 0, 0>}
// CHECK: scf.yield %arg5, %arg4 : !tt.ptr<f32>, !tt.ptr<f32>
func.func @loop_that_swaps_arrays(%arg0: !tt.ptr<f32>, %arg1: !tt.ptr<f32>, %arg2: i32) attributes {tt.kernel} {
  %0 = "tt.make_range"() {end = 8 : i32, start = 0 : i32} : () -> tensor<8xi32>
  %1 = "tt.splat"(%arg0) : (!tt.ptr<f32>) -> tensor<8x!tt.ptr<f32>>
  %2 = "tt.addptr"(%1, %0) : (tensor<8x!tt.ptr<f32>>, tensor<8xi32>) -> tensor<8x!tt.ptr<f32>>
  %3 = "tt.make_range"() {end = 8 : i32, start = 0 : i32} : () -> tensor<8xi32>
  %4 = "tt.splat"(%arg1) : (!tt.ptr<f32>) -> tensor<8x!tt.ptr<f32>>
  %5 = "tt.addptr"(%4, %3) : (tensor<8x!tt.ptr<f32>>, tensor<8xi32>) -> tensor<8x!tt.ptr<f32>>
  %c0_i32 = arith.constant 0 : i32
  %c1_i32 = arith.constant 1 : i32
  %6:2 = scf.for %arg3 = %c0_i32 to %arg2 step %c1_i32 iter_args(%arg4 = %2, %arg5 = %5) -> (tensor<8x!tt.ptr<f32>>, tensor<8x!tt.ptr<f32>>)  : i32 {
    %7 = "tt.load"(%arg4) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<8x!tt.ptr<f32>>) -> tensor<8xf32>
    "tt.store"(%arg5, %7) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<8x!tt.ptr<f32>>, tensor<8xf32>) -> ()
    scf.yield %arg5, %arg4 : tensor<8x!tt.ptr<f32>>, tensor<8x!tt.ptr<f32>>
  }
  return
}

// Loop that changes a stride:
//     a, b = p + tl.arange(0, 8) * s, o + tl.arange(0, 8)
//     for _ in range(n):
//         x = tl.load(a)
//         a, b = b, a

// CHECK-LABEL: func.func @loop_that_changes_a_stride(
// CHECK: scf.for %arg4 = %c0_i32 to %arg2 step %c1_i32 iter_args(%arg5 = %arg0, %arg6 = %{{.*}}, %arg7 = %arg1, %arg8 = %c1) -> (!tt.ptr<f32>, index, !tt.ptr<f32>, index)  : i32
// CHECK: "tts.make_tptr"(%{{.*}}, %arg6, %c0) {gathers = array<i64: 0>, {{.*}}order = array<i64: 0>, wraps = array<i64: 0>}
// CHECK: "tts.load"(%{{.*}}) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0>}
// CHECK: scf.yield %arg7, %arg8, %arg5, %arg6 : !tt.ptr<f32>, index, !tt.ptr<f32>, index
func.func @loop_that_changes_a_stride(%arg0: !tt.ptr<f32>, %arg1: !tt.ptr<f32>, %arg2: i32, %arg3: i32) attributes {tt.kernel} {
  %0 = "tt.make_range"() {end = 8 : i32, start = 0 : i32} : () -> tensor<8xi32>
  %1 = "tt.splat"(%arg3) : (i32) -> tensor<8xi32>
  %2 = arith.muli %0, %1 : tensor<8xi32>
  %3 = "tt.splat"(%arg0) : (!tt.ptr<f32>) -> tensor<8x!tt.ptr<f32>>
  %4 = "tt.addptr"(%3, %2) : (tensor<8x!tt.ptr<f32>>, tensor<8xi32>) -> tensor<8x!tt.ptr<f32>>
  %5 = "tt.make_range"() {end = 8 : i32, start = 0 : i32} : () -> tensor<8xi32>
  %6 = "tt.splat"(%arg1) : (!tt.ptr<f32>) -> tensor<8x!tt.ptr<f32>>
  %7 = "tt.addptr"(%6, %5) : (tensor<8x!tt.ptr<f32>>, tensor<8xi32>) -> tensor<8x!tt.ptr<f32>>
  %c0_i32 = arith.constant 0 : i32
  %c1_i32 = arith.constant 1 : i32
  %8:2 = scf.for %arg4 = %c0_i32 to %arg2 step %c1_i32 iter_args(%arg5 = %4, %arg6 = %7) -> (tensor<8x!tt.ptr<f32>>, tensor<8x!tt.ptr<f32>>)  : i32 {
    %9 = "tt.load"(%arg5) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<8x!tt.ptr<f32>>) -> tensor<8xf32>
    scf.yield %arg6, %arg5 : tensor<8x!tt.ptr<f32>>, tensor<8x!tt.ptr<f32>>
  }
  return
}

// While loop that moves:
//     ptrs = p + tl.arange(0, 8)
//     while n > 0:
//         x = tl.load(ptrs)
//         ptrs += n
//         n -= 1
//     y = tl.load(ptrs)

// CHECK-LABEL: func.func @while_loop_that_moves(
// CHECK: scf.while (%arg2 = %c0, %arg3 = %arg1) : (index, i32) -> (index, i32)
// CHECK: scf.condition(%{{.*}}) %arg2, %arg3 : index, i32
// CHECK: "tts.make_tptr"(%{{.*}}, %c1, %c0) {gathers = array<i64: 0>, {{.*}}order = array<i64: 0>, wraps = array<i64: 0>}
// CHECK: "tts.load"(%{{.*}}) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0>}
// CHECK: scf.yield %{{.*}}, %{{.*}} : index, i32
// CHECK: "tts.make_tptr"(%{{.*}}, %c1, %c0) {gathers = array<i64: 0>, {{.*}}order = array<i64: 0>, wraps = array<i64: 0>}
// CHECK: "tts.load"(%{{.*}}) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0>}
func.func @while_loop_that_moves(%arg0: !tt.ptr<f32>, %arg1: i32) attributes {tt.kernel} {
  %0 = "tt.make_range"() {end = 8 : i32, start = 0 : i32} : () -> tensor<8xi32>
  %1 = "tt.splat"(%arg0) : (!tt.ptr<f32>) -> tensor<8x!tt.ptr<f32>>
  %2 = "tt.addptr"(%1, %0) : (tensor<8x!tt.ptr<f32>>, tensor<8xi32>) -> tensor<8x!tt.ptr<f32>>
  %3:2 = scf.while (%arg2 = %2, %arg3 = %arg1) : (tensor<8x!tt.ptr<f32>>, i32) -> (tensor<8x!tt.ptr<f32>>, i32) {
    %c0_i32 = arith.constant 0 : i32
    %5 = arith.cmpi sgt, %arg3, %c0_i32 : i32
    scf.condition(%5) %arg2, %arg3 : tensor<8x!tt.ptr<f32>>, i32
  } do {
  ^bb0(%arg2: tensor<8x!tt.ptr<f32>>, %arg3: i32):
    %5 = "tt.load"(%arg2) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<8x!tt.ptr<f32>>) -> tensor<8xf32>
    %6 = "tt.splat"(%arg3) : (i32) -> tensor<8xi32>
    %7 = "tt.addptr"(%arg2, %6) : (tensor<8x!tt.ptr<f32>>, tensor<8xi32>) -> tensor<8x!tt.ptr<f32>>
    %c1_i32 = arith.constant 1 : i32
    %8 = arith.subi %arg3, %c1_i32 : i32
    scf.yield %7, %8 : tensor<8x!tt.ptr<f32>>, i32
  }
  %4 = "tt.load"(%3#0) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<8x!tt.ptr<f32>>) -> tensor<8xf32>
  return
}

// While loop that swaps:
//     a, b = p + tl.arange(0, 8), o + tl.arange(0, 8)
//     while n > 0:
//         tl.store(b, tl.load(a))
//         a, b = b, a
//         n -= 1

// CHECK-LABEL: func.func @while_loop_that_swaps(
// CHECK: scf.while (%arg3 = %arg0, %arg4 = %arg1, %arg5 = %arg2) : (!tt.ptr<f32>, !tt.ptr<f32>, i32) -> (!tt.ptr<f32>, !tt.ptr<f32>, i32)
// CHECK: scf.condition(%{{.*}}) %arg3, %arg4, %arg5 : !tt.ptr<f32>, !tt.ptr<f32>, i32
// CHECK: "tts.make_tptr"(%{{.*}}, %c1, %c0) {gathers = array<i64: 0>, {{.*}}order = array<i64: 0>, wraps = array<i64: 0>}
// CHECK: "tts.load"(%{{.*}}) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0>}
// CHECK: "tts.make_tptr"(%{{.*}}, %c1, %c0) {gathers = array<i64: 0>, {{.*}}order = array<i64: 0>, wraps = array<i64: 0>}
// CHECK: "tts.store"(%{{.*}}, %{{.*}}) {operandSegmentSizes = array<i32: 1, 1, 0, 0, 0>}
// CHECK: scf.yield %arg4, %arg3, %{{.*}} : !tt.ptr<f32>, !tt.ptr<f32>, i32
func.func @while_loop_that_swaps(%arg0: !tt.ptr<f32>, %arg1: !tt.ptr<f32>, %arg2: i32) attributes {tt.kernel} {
  %0 = "tt.make_range"() {end = 8 : i32, start = 0 : i32} : () -> tensor<8xi32>
  %1 = "tt.splat"(%arg0) : (!tt.ptr<f32>) -> tensor<8x!tt.ptr<f32>>
  %2 = "tt.addptr"(%1, %0) : (tensor<8x!tt.ptr<f32>>, tensor<8xi32>) -> tensor<8x!tt.ptr<f32>>
  %3 = "tt.make_range"() {end = 8 : i32, start = 0 : i32} : () -> tensor<8xi32>
  %4 = "tt.splat"(%arg1) : (!tt.ptr<f32>) -> tensor<8x!tt.ptr<f32>>
  %5 = "tt.addptr"(%4, %3) : (tensor<8x!tt.ptr<f32>>, tensor<8xi32>) -> tensor<8x!tt.ptr<f32>>
  %6:3 = scf.while (%arg3 = %2, %arg4 = %5, %arg5 = %arg2) : (tensor<8x!tt.ptr<f32>>, tensor<8x!tt.ptr<f32>>, i32) -> (tensor<8x!tt.ptr<f32>>, tensor<8x!tt.ptr<f32>>, i32) {
    %c0_i32 = arith.constant 0 : i32
    %7 = arith.cmpi sgt, %arg5, %c0_i32 : i32
    scf.condition(%7) %arg3, %arg4, %arg5 : tensor<8x!tt.ptr<f32>>, tensor<8x!tt.ptr<f32>>, i32
  } do {
  ^bb0(%arg3: tensor<8x!tt.ptr<f32>>, %arg4: tensor<8x!tt.ptr<f32>>, %arg5: i32):
    %7 = "tt.load"(%arg3) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<8x!tt.ptr<f32>>) -> tensor<8xf32>
    "tt.store"(%arg4, %7) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<8x!tt.ptr<f32>>, tensor<8xf32>) -> ()
    %c1_i32 = arith.constant 1 : i32
    %8 = arith.subi %arg5, %c1_i32 : i32
    scf.yield %arg4, %arg3, %8 : tensor<8x!tt.ptr<f32>>, tensor<8x!tt.ptr<f32>>, i32
  }
  return
}

// While loop of places from memory stays:
//     ptrs = p + tl.arange(0, 8)
//     while n > 0:
//         ptrs += tl.load(q + tl.arange(0, 8))
//         x = tl.load(ptrs)
//         n -= 1

// CHECK-LABEL: func.func @while_loop_of_places_from_memory_stays(
// CHECK: scf.while (%arg3 = %{{.*}}, %arg4 = %arg2) : (tensor<8x!tt.ptr<f32>>, i32) -> (tensor<8x!tt.ptr<f32>>, i32)
// CHECK: scf.condition(%{{.*}}) %arg3, %arg4 : tensor<8x!tt.ptr<f32>>, i32
// CHECK: "tts.make_tptr"(%arg1, %c1, %c0) {gathers = array<i64: 0>, {{.*}}order = array<i64: 0>, wraps = array<i64: 0>}
// CHECK: "tts.load"(%{{.*}}) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0>}
// CHECK: "tt.load"(%{{.*}})
// CHECK: scf.yield %{{.*}}, %{{.*}} : tensor<8x!tt.ptr<f32>>, i32
func.func @while_loop_of_places_from_memory_stays(%arg0: !tt.ptr<f32>, %arg1: !tt.ptr<i32>, %arg2: i32) attributes {tt.kernel} {
  %0 = "tt.make_range"() {end = 8 : i32, start = 0 : i32} : () -> tensor<8xi32>
  %1 = "tt.splat"(%arg0) : (!tt.ptr<f32>) -> tensor<8x!tt.ptr<f32>>
  %2 = "tt.addptr"(%1, %0) : (tensor<8x!tt.ptr<f32>>, tensor<8xi32>) -> tensor<8x!tt.ptr<f32>>
  %3:2 = scf.while (%arg3 = %2, %arg4 = %arg2) : (tensor<8x!tt.ptr<f32>>, i32) -> (tensor<8x!tt.ptr<f32>>, i32) {
    %c0_i32 = arith.constant 0 : i32
    %4 = arith.cmpi sgt, %arg4, %c0_i32 : i32
    scf.condition(%4) %arg3, %arg4 : tensor<8x!tt.ptr<f32>>, i32
  } do {
  ^bb0(%arg3: tensor<8x!tt.ptr<f32>>, %arg4: i32):
    %4 = "tt.make_range"() {end = 8 : i32, start = 0 : i32} : () -> tensor<8xi32>
    %5 = "tt.splat"(%arg1) : (!tt.ptr<i32>) -> tensor<8x!tt.ptr<i32>>
    %6 = "tt.addptr"(%5, %4) : (tensor<8x!tt.ptr<i32>>, tensor<8xi32>) -> tensor<8x!tt.ptr<i32>>
    %7 = "tt.load"(%6) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<8x!tt.ptr<i32>>) -> tensor<8xi32>
    %8 = "tt.addptr"(%arg3, %7) : (tensor<8x!tt.ptr<f32>>, tensor<8xi32>) -> tensor<8x!tt.ptr<f32>>
    %9 = "tt.load"(%8) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<8x!tt.ptr<f32>>) -> tensor<8xf32>
    %c1_i32 = arith.constant 1 : i32
    %10 = arith.subi %arg4, %c1_i32 : i32
    scf.yield %8, %10 : tensor<8x!tt.ptr<f32>>, i32
  }
  return
}

// For in while:
//     ptrs = p + tl.arange(0, 8)
//     while n > 0:
//         for _ in range(n):
//             x = tl.load(ptrs)
//             ptrs += 8
//         n -= 1

// CHECK-LABEL: func.func @for_in_while(
// CHECK: scf.while (%arg2 = %c0, %arg3 = %arg1) : (index, i32) -> (index, i32)
// CHECK: scf.condition(%{{.*}}) %arg2, %arg3 : index, i32
// CHECK: scf.for %arg4 = %c0_i32 to %arg3 step %c1_i32 iter_args(%arg5 = %arg2) -> (index)  : i32
// CHECK: "tts.make_tptr"(%{{.*}}, %c1, %c0) {gathers = array<i64: 0>, {{.*}}order = array<i64: 0>, wraps = array<i64: 0>}
// CHECK: "tts.load"(%{{.*}}) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0>}
// CHECK: scf.yield %{{.*}} : index
// CHECK: scf.yield %{{.*}}, %{{.*}} : index, i32
func.func @for_in_while(%arg0: !tt.ptr<f32>, %arg1: i32) attributes {tt.kernel} {
  %0 = "tt.make_range"() {end = 8 : i32, start = 0 : i32} : () -> tensor<8xi32>
  %1 = "tt.splat"(%arg0) : (!tt.ptr<f32>) -> tensor<8x!tt.ptr<f32>>
  %2 = "tt.addptr"(%1, %0) : (tensor<8x!tt.ptr<f32>>, tensor<8xi32>) -> tensor<8x!tt.ptr<f32>>
  %3:2 = scf.while (%arg2 = %2, %arg3 = %arg1) : (tensor<8x!tt.ptr<f32>>, i32) -> (tensor<8x!tt.ptr<f32>>, i32) {
    %c0_i32 = arith.constant 0 : i32
    %4 = arith.cmpi sgt, %arg3, %c0_i32 : i32
    scf.condition(%4) %arg2, %arg3 : tensor<8x!tt.ptr<f32>>, i32
  } do {
  ^bb0(%arg2: tensor<8x!tt.ptr<f32>>, %arg3: i32):
    %c0_i32 = arith.constant 0 : i32
    %c1_i32 = arith.constant 1 : i32
    %4 = scf.for %arg4 = %c0_i32 to %arg3 step %c1_i32 iter_args(%arg5 = %arg2) -> (tensor<8x!tt.ptr<f32>>)  : i32 {
      %6 = "tt.load"(%arg5) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<8x!tt.ptr<f32>>) -> tensor<8xf32>
      %c8_i32 = arith.constant 8 : i32
      %7 = "tt.splat"(%c8_i32) : (i32) -> tensor<8xi32>
      %8 = "tt.addptr"(%arg5, %7) : (tensor<8x!tt.ptr<f32>>, tensor<8xi32>) -> tensor<8x!tt.ptr<f32>>
      scf.yield %8 : tensor<8x!tt.ptr<f32>>
    }
    %c1_i32_0 = arith.constant 1 : i32
    %5 = arith.subi %arg3, %c1_i32_0 : i32
    scf.yield %4, %5 : tensor<8x!tt.ptr<f32>>, i32
  }
  return
}

// Three loops:
//     ptrs = p + tl.arange(0, 8)
//     for _ in range(n):
//         for _ in range(n):
//             for _ in range(n):
//                 x = tl.load(ptrs)
//                 ptrs += 8
//             ptrs += 2
//         ptrs -= n

// CHECK-LABEL: func.func @three_loops(
// CHECK: scf.for %arg2 = %c0_i32 to %arg1 step %c1_i32 iter_args(%arg3 = %c0) -> (index)  : i32
// CHECK: scf.for %arg4 = %c0_i32 to %arg1 step %c1_i32 iter_args(%arg5 = %arg3) -> (index)  : i32
// CHECK: scf.for %arg6 = %c0_i32 to %arg1 step %c1_i32 iter_args(%arg7 = %arg5) -> (index)  : i32
// CHECK: "tts.make_tptr"(%{{.*}}, %c1, %c0) {gathers = array<i64: 0>, {{.*}}order = array<i64: 0>, wraps = array<i64: 0>}
// CHECK: "tts.load"(%{{.*}}) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0>}
// CHECK: scf.yield %{{.*}} : index
// CHECK: scf.yield %{{.*}} : index
// CHECK: scf.yield %{{.*}} : index
func.func @three_loops(%arg0: !tt.ptr<f32>, %arg1: i32) attributes {tt.kernel} {
  %0 = "tt.make_range"() {end = 8 : i32, start = 0 : i32} : () -> tensor<8xi32>
  %1 = "tt.splat"(%arg0) : (!tt.ptr<f32>) -> tensor<8x!tt.ptr<f32>>
  %2 = "tt.addptr"(%1, %0) : (tensor<8x!tt.ptr<f32>>, tensor<8xi32>) -> tensor<8x!tt.ptr<f32>>
  %c0_i32 = arith.constant 0 : i32
  %c1_i32 = arith.constant 1 : i32
  %3 = scf.for %arg2 = %c0_i32 to %arg1 step %c1_i32 iter_args(%arg3 = %2) -> (tensor<8x!tt.ptr<f32>>)  : i32 {
    %c0_i32_0 = arith.constant 0 : i32
    %c1_i32_1 = arith.constant 1 : i32
    %4 = scf.for %arg4 = %c0_i32_0 to %arg1 step %c1_i32_1 iter_args(%arg5 = %arg3) -> (tensor<8x!tt.ptr<f32>>)  : i32 {
      %c0_i32_3 = arith.constant 0 : i32
      %c1_i32_4 = arith.constant 1 : i32
      %8 = scf.for %arg6 = %c0_i32_3 to %arg1 step %c1_i32_4 iter_args(%arg7 = %arg5) -> (tensor<8x!tt.ptr<f32>>)  : i32 {
        %11 = "tt.load"(%arg7) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<8x!tt.ptr<f32>>) -> tensor<8xf32>
        %c8_i32 = arith.constant 8 : i32
        %12 = "tt.splat"(%c8_i32) : (i32) -> tensor<8xi32>
        %13 = "tt.addptr"(%arg7, %12) : (tensor<8x!tt.ptr<f32>>, tensor<8xi32>) -> tensor<8x!tt.ptr<f32>>
        scf.yield %13 : tensor<8x!tt.ptr<f32>>
      }
      %c2_i32 = arith.constant 2 : i32
      %9 = "tt.splat"(%c2_i32) : (i32) -> tensor<8xi32>
      %10 = "tt.addptr"(%8, %9) : (tensor<8x!tt.ptr<f32>>, tensor<8xi32>) -> tensor<8x!tt.ptr<f32>>
      scf.yield %10 : tensor<8x!tt.ptr<f32>>
    }
    %c0_i32_2 = arith.constant 0 : i32
    %5 = arith.subi %c0_i32_2, %arg1 : i32
    %6 = "tt.splat"(%5) : (i32) -> tensor<8xi32>
    %7 = "tt.addptr"(%4, %6) : (tensor<8x!tt.ptr<f32>>, tensor<8xi32>) -> tensor<8x!tt.ptr<f32>>
    scf.yield %7 : tensor<8x!tt.ptr<f32>>
  }
  return
}
