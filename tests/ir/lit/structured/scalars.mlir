// RUN: proton-opt --pipeline='rewrite-tensor-pointer,rewrite-tensor-descriptor-to-pointer,canonicalize,cse,triton-to-structured,canonicalize,cse' %s | filecheck %s

// Scalars, and pointers that come from elsewhere. Each function is of the kernel above it.

// Scalar load:
//     x = tl.load(p + n)

// CHECK-LABEL: func.func @scalar_load(
// CHECK: "tt.load"(%{{.*}})
func.func @scalar_load(%arg0: !tt.ptr<f32>, %arg1: i32) attributes {tt.kernel} {
  %0 = "tt.addptr"(%arg0, %arg1) : (!tt.ptr<f32>, i32) -> !tt.ptr<f32>
  %1 = "tt.load"(%0) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (!tt.ptr<f32>) -> f32
  return
}

// One place for all:
//     x = tl.load(p + n + tl.zeros((8,), tl.int32))

// CHECK-LABEL: func.func @one_place_for_all(
// CHECK: "tts.make_tptr"(%{{.*}}, %c0, %c0) {gathers = array<i64: 0>, {{.*}}order = array<i64: 0>, wraps = array<i64: 0>}
// CHECK: "tts.load"(%{{.*}}) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0>}
func.func @one_place_for_all(%arg0: !tt.ptr<f32>, %arg1: i32) attributes {tt.kernel} {
  %0 = "tt.addptr"(%arg0, %arg1) : (!tt.ptr<f32>, i32) -> !tt.ptr<f32>
  %cst = arith.constant dense<0> : tensor<8xi32>
  %1 = "tt.splat"(%0) : (!tt.ptr<f32>) -> tensor<8x!tt.ptr<f32>>
  %2 = "tt.addptr"(%1, %cst) : (tensor<8x!tt.ptr<f32>>, tensor<8xi32>) -> tensor<8x!tt.ptr<f32>>
  %3 = "tt.load"(%2) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<8x!tt.ptr<f32>>) -> tensor<8xf32>
  return
}

// Rows without a stride:
//     x = tl.load(p + tl.zeros((4, 1), tl.int32) + tl.arange(0, 8)[None, :])

// CHECK-LABEL: func.func @rows_without_a_stride(
// CHECK: "tts.make_tptr"(%arg0, %c0, %c1, %c0, %c0) {gathers = array<i64: 0, 0>, {{.*}}order = array<i64: 1, 0>, wraps = array<i64: 0, 0>}
// CHECK: "tts.load"(%{{.*}}) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0>}
func.func @rows_without_a_stride(%arg0: !tt.ptr<f32>) attributes {tt.kernel} {
  %cst = arith.constant dense<0> : tensor<4x1xi32>
  %0 = "tt.splat"(%arg0) : (!tt.ptr<f32>) -> tensor<4x1x!tt.ptr<f32>>
  %1 = "tt.addptr"(%0, %cst) : (tensor<4x1x!tt.ptr<f32>>, tensor<4x1xi32>) -> tensor<4x1x!tt.ptr<f32>>
  %2 = "tt.make_range"() {end = 8 : i32, start = 0 : i32} : () -> tensor<8xi32>
  %3 = "tt.expand_dims"(%2) {axis = 0 : i32} : (tensor<8xi32>) -> tensor<1x8xi32>
  %4 = "tt.broadcast"(%1) : (tensor<4x1x!tt.ptr<f32>>) -> tensor<4x8x!tt.ptr<f32>>
  %5 = "tt.broadcast"(%3) : (tensor<1x8xi32>) -> tensor<4x8xi32>
  %6 = "tt.addptr"(%4, %5) : (tensor<4x8x!tt.ptr<f32>>, tensor<4x8xi32>) -> tensor<4x8x!tt.ptr<f32>>
  %7 = "tt.load"(%6) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<4x8x!tt.ptr<f32>>) -> tensor<4x8xf32>
  return
}

// Base from memory:
//     x = tl.load(tl.load(pp + n) + tl.arange(0, 8))

// CHECK-LABEL: func.func @base_from_memory(
// CHECK: "tt.load"(%{{.*}})
// CHECK: "tts.make_tptr"(%{{.*}}, %c1, %c0) {gathers = array<i64: 0>, {{.*}}order = array<i64: 0>, wraps = array<i64: 0>}
// CHECK: "tts.load"(%{{.*}}) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0>}
func.func @base_from_memory(%arg0: !tt.ptr<!tt.ptr<f32>>, %arg1: i32) attributes {tt.kernel} {
  %0 = "tt.addptr"(%arg0, %arg1) : (!tt.ptr<!tt.ptr<f32>>, i32) -> !tt.ptr<!tt.ptr<f32>>
  %1 = "tt.load"(%0) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (!tt.ptr<!tt.ptr<f32>>) -> !tt.ptr<f32>
  %2 = "tt.make_range"() {end = 8 : i32, start = 0 : i32} : () -> tensor<8xi32>
  %3 = "tt.splat"(%1) : (!tt.ptr<f32>) -> tensor<8x!tt.ptr<f32>>
  %4 = "tt.addptr"(%3, %2) : (tensor<8x!tt.ptr<f32>>, tensor<8xi32>) -> tensor<8x!tt.ptr<f32>>
  %5 = "tt.load"(%4) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<8x!tt.ptr<f32>>) -> tensor<8xf32>
  return
}

// Base from memory in a loop:
//     for i in range(n):
//         x = tl.load(tl.load(pp + i) + tl.arange(0, 8))

// CHECK-LABEL: func.func @base_from_memory_in_a_loop(
// CHECK: scf.for %arg2 = %c0_i32 to %arg1 step %c1_i32  : i32
// CHECK: "tt.load"(%{{.*}})
// CHECK: "tts.make_tptr"(%{{.*}}, %c1, %c0) {gathers = array<i64: 0>, {{.*}}order = array<i64: 0>, wraps = array<i64: 0>}
// CHECK: "tts.load"(%{{.*}}) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0>}
func.func @base_from_memory_in_a_loop(%arg0: !tt.ptr<!tt.ptr<f32>>, %arg1: i32) attributes {tt.kernel} {
  %c0_i32 = arith.constant 0 : i32
  %c1_i32 = arith.constant 1 : i32
  scf.for %arg2 = %c0_i32 to %arg1 step %c1_i32  : i32 {
    %0 = "tt.addptr"(%arg0, %arg2) : (!tt.ptr<!tt.ptr<f32>>, i32) -> !tt.ptr<!tt.ptr<f32>>
    %1 = "tt.load"(%0) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (!tt.ptr<!tt.ptr<f32>>) -> !tt.ptr<f32>
    %2 = "tt.make_range"() {end = 8 : i32, start = 0 : i32} : () -> tensor<8xi32>
    %3 = "tt.splat"(%1) : (!tt.ptr<f32>) -> tensor<8x!tt.ptr<f32>>
    %4 = "tt.addptr"(%3, %2) : (tensor<8x!tt.ptr<f32>>, tensor<8xi32>) -> tensor<8x!tt.ptr<f32>>
    %5 = "tt.load"(%4) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<8x!tt.ptr<f32>>) -> tensor<8xf32>
  }
  return
}

// Block of pointers from memory:
//     x = tl.load(tl.load(pp + tl.arange(0, 8)))

// CHECK-LABEL: func.func @block_of_pointers_from_memory(
// CHECK: "tts.make_tptr"(%arg0, %c1, %c0) {gathers = array<i64: 0>, {{.*}}order = array<i64: 0>, wraps = array<i64: 0>}
// CHECK: "tts.load"(%{{.*}}) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0>}
// CHECK: "tt.load"(%{{.*}})
func.func @block_of_pointers_from_memory(%arg0: !tt.ptr<!tt.ptr<f32>>) attributes {tt.kernel} {
  %0 = "tt.make_range"() {end = 8 : i32, start = 0 : i32} : () -> tensor<8xi32>
  %1 = "tt.splat"(%arg0) : (!tt.ptr<!tt.ptr<f32>>) -> tensor<8x!tt.ptr<!tt.ptr<f32>>>
  %2 = "tt.addptr"(%1, %0) : (tensor<8x!tt.ptr<!tt.ptr<f32>>>, tensor<8xi32>) -> tensor<8x!tt.ptr<!tt.ptr<f32>>>
  %3 = "tt.load"(%2) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<8x!tt.ptr<!tt.ptr<f32>>>) -> tensor<8x!tt.ptr<f32>>
  %4 = "tt.load"(%3) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<8x!tt.ptr<f32>>) -> tensor<8xf32>
  return
}

// Base from an integer:
//     x = tl.load(n.to(tl.int64).to(tl.pointer_type(tl.float32)) + tl.arange(0, 8))

// CHECK-LABEL: func.func @base_from_an_integer(
// CHECK: "tts.make_tptr"(%{{.*}}, %c1, %c0) {gathers = array<i64: 0>, {{.*}}order = array<i64: 0>, wraps = array<i64: 0>}
// CHECK: "tts.load"(%{{.*}}) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0>}
func.func @base_from_an_integer(%arg0: i32) attributes {tt.kernel} {
  %0 = arith.extsi %arg0 : i32 to i64
  %1 = "tt.int_to_ptr"(%0) : (i64) -> !tt.ptr<f32>
  %2 = "tt.make_range"() {end = 8 : i32, start = 0 : i32} : () -> tensor<8xi32>
  %3 = "tt.splat"(%1) : (!tt.ptr<f32>) -> tensor<8x!tt.ptr<f32>>
  %4 = "tt.addptr"(%3, %2) : (tensor<8x!tt.ptr<f32>>, tensor<8xi32>) -> tensor<8x!tt.ptr<f32>>
  %5 = "tt.load"(%4) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<8x!tt.ptr<f32>>) -> tensor<8xf32>
  return
}

// Reshaped pointers:
//     ptrs = p + tl.arange(0, 8) * s
//     x = tl.load(tl.reshape(ptrs, (1, 8)))

// CHECK-LABEL: func.func @reshaped_pointers(
// CHECK: "tts.make_tptr"(%arg0, %c0, %{{.*}}, %c0, %c0) {gathers = array<i64: 0, 0>, {{.*}}order = array<i64: 1, 0>, wraps = array<i64: 0, 0>}
// CHECK: "tts.load"(%{{.*}}) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0>}
func.func @reshaped_pointers(%arg0: !tt.ptr<f32>, %arg1: i32) attributes {tt.kernel} {
  %0 = "tt.make_range"() {end = 8 : i32, start = 0 : i32} : () -> tensor<8xi32>
  %1 = "tt.splat"(%arg1) : (i32) -> tensor<8xi32>
  %2 = arith.muli %0, %1 : tensor<8xi32>
  %3 = "tt.splat"(%arg0) : (!tt.ptr<f32>) -> tensor<8x!tt.ptr<f32>>
  %4 = "tt.addptr"(%3, %2) : (tensor<8x!tt.ptr<f32>>, tensor<8xi32>) -> tensor<8x!tt.ptr<f32>>
  %5 = "tt.reshape"(%4) : (tensor<8x!tt.ptr<f32>>) -> tensor<1x8x!tt.ptr<f32>>
  %6 = "tt.load"(%5) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<1x8x!tt.ptr<f32>>) -> tensor<1x8xf32>
  return
}

// Shifted offsets:
//     x = tl.load(p + (tl.arange(0, 8) << 2))

// CHECK-LABEL: func.func @shifted_offsets(
// CHECK: "tts.make_tptr"(%arg0, %c4, %c0) {gathers = array<i64: 0>, {{.*}}order = array<i64: 0>, wraps = array<i64: 0>}
// CHECK: "tts.load"(%{{.*}}) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0>}
func.func @shifted_offsets(%arg0: !tt.ptr<f32>) attributes {tt.kernel} {
  %0 = "tt.make_range"() {end = 8 : i32, start = 0 : i32} : () -> tensor<8xi32>
  %c2_i32 = arith.constant 2 : i32
  %1 = "tt.splat"(%c2_i32) : (i32) -> tensor<8xi32>
  %2 = arith.shli %0, %1 : tensor<8xi32>
  %3 = "tt.splat"(%arg0) : (!tt.ptr<f32>) -> tensor<8x!tt.ptr<f32>>
  %4 = "tt.addptr"(%3, %2) : (tensor<8x!tt.ptr<f32>>, tensor<8xi32>) -> tensor<8x!tt.ptr<f32>>
  %5 = "tt.load"(%4) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<8x!tt.ptr<f32>>) -> tensor<8xf32>
  return
}

// Offsets of 64 bits:
//     x = tl.load(p + (n.to(tl.int64) * 5 + tl.arange(0, 8)))

// CHECK-LABEL: func.func @offsets_of_64_bits(
// CHECK: "tts.make_tptr"(%{{.*}}, %c1, %c0) {gathers = array<i64: 0>, {{.*}}order = array<i64: 0>, wraps = array<i64: 0>}
// CHECK: "tts.load"(%{{.*}}) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0>}
func.func @offsets_of_64_bits(%arg0: !tt.ptr<f32>, %arg1: i32) attributes {tt.kernel} {
  %0 = arith.extsi %arg1 : i32 to i64
  %c5_i64 = arith.constant 5 : i64
  %1 = arith.muli %0, %c5_i64 : i64
  %2 = "tt.make_range"() {end = 8 : i32, start = 0 : i32} : () -> tensor<8xi32>
  %3 = arith.extsi %2 : tensor<8xi32> to tensor<8xi64>
  %4 = "tt.splat"(%1) : (i64) -> tensor<8xi64>
  %5 = arith.addi %4, %3 : tensor<8xi64>
  %6 = "tt.splat"(%arg0) : (!tt.ptr<f32>) -> tensor<8x!tt.ptr<f32>>
  %7 = "tt.addptr"(%6, %5) : (tensor<8x!tt.ptr<f32>>, tensor<8xi64>) -> tensor<8x!tt.ptr<f32>>
  %8 = "tt.load"(%7) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<8x!tt.ptr<f32>>) -> tensor<8xf32>
  return
}

// Offsets that count down:
//     x = tl.load(p + (n - 2 * tl.arange(0, 8)))

// CHECK-LABEL: func.func @offsets_that_count_down(
// CHECK: "tts.make_tptr"(%{{.*}}, %c-2, %c0) {gathers = array<i64: 0>, {{.*}}order = array<i64: 0>, wraps = array<i64: 0>}
// CHECK: "tts.load"(%{{.*}}) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0>}
func.func @offsets_that_count_down(%arg0: !tt.ptr<f32>, %arg1: i32) attributes {tt.kernel} {
  %0 = "tt.make_range"() {end = 8 : i32, start = 0 : i32} : () -> tensor<8xi32>
  %c2_i32 = arith.constant 2 : i32
  %1 = "tt.splat"(%c2_i32) : (i32) -> tensor<8xi32>
  %2 = arith.muli %1, %0 : tensor<8xi32>
  %3 = "tt.splat"(%arg1) : (i32) -> tensor<8xi32>
  %4 = arith.subi %3, %2 : tensor<8xi32>
  %5 = "tt.splat"(%arg0) : (!tt.ptr<f32>) -> tensor<8x!tt.ptr<f32>>
  %6 = "tt.addptr"(%5, %4) : (tensor<8x!tt.ptr<f32>>, tensor<8xi32>) -> tensor<8x!tt.ptr<f32>>
  %7 = "tt.load"(%6) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<8x!tt.ptr<f32>>) -> tensor<8xf32>
  return
}
