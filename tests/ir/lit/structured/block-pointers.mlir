// RUN: proton-opt --pipeline='rewrite-tensor-pointer,rewrite-tensor-descriptor-to-pointer,canonicalize,cse,triton-to-structured,canonicalize,cse' %s | filecheck %s

// Block pointers and tensor descriptors are pointers and boxes. Each function is of the kernel above it.

// Block pointer:
//     b = tl.make_block_ptr(p, (n, m), (s, 1), (n, 8), (4, 8), (1, 0))
//     x = tl.load(b)

// CHECK-LABEL: func.func @block_pointer(
// CHECK: "tts.make_tptr"(%{{.*}}, %{{.*}}, %c1, %c0, %c0) {gathers = array<i64: 0, 0>, {{.*}}order = array<i64: 1, 0>, wraps = array<i64: 0, 0>}
// CHECK: "tts.load"(%{{.*}}) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0>}
func.func @block_pointer(%arg0: !tt.ptr<f32>, %arg1: i32, %arg2: i32, %arg3: i32) attributes {tt.kernel} {
  %0 = arith.extsi %arg1 : i32 to i64
  %1 = arith.extsi %arg2 : i32 to i64
  %2 = arith.extsi %arg3 : i32 to i64
  %c1_i32 = arith.constant 1 : i32
  %3 = arith.extsi %c1_i32 : i32 to i64
  %c8_i32 = arith.constant 8 : i32
  %4 = "tt.make_tensor_ptr"(%arg0, %0, %1, %2, %3, %arg1, %c8_i32) {operandSegmentSizes = array<i32: 1, 2, 2, 2>, order = array<i32: 1, 0>} : (!tt.ptr<f32>, i64, i64, i64, i64, i32, i32) -> !tt.ptr<tensor<4x8xf32>>
  %5 = "tt.load"(%4) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (!tt.ptr<tensor<4x8xf32>>) -> tensor<4x8xf32>
  return
}

// Block pointer with checks:
//     b = tl.make_block_ptr(p, (n, m), (s, 1), (0, 8), (4, 8), (1, 0))
//     x = tl.load(b, boundary_check=(0, 1), padding_option="zero")

// CHECK-LABEL: func.func @block_pointer_with_checks(
// CHECK: "tts.make_tptr"(%{{.*}}, %{{.*}}, %c1, %c0, %c0) {gathers = array<i64: 0, 0>, {{.*}}order = array<i64: 1, 0>, wraps = array<i64: 0, 0>}
// CHECK: "tts.load"(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}) {operandSegmentSizes = array<i32: 1, 2, 0, 1, 0>}
func.func @block_pointer_with_checks(%arg0: !tt.ptr<f32>, %arg1: i32, %arg2: i32, %arg3: i32) attributes {tt.kernel} {
  %0 = arith.extsi %arg1 : i32 to i64
  %1 = arith.extsi %arg2 : i32 to i64
  %2 = arith.extsi %arg3 : i32 to i64
  %c1_i32 = arith.constant 1 : i32
  %3 = arith.extsi %c1_i32 : i32 to i64
  %c0_i32 = arith.constant 0 : i32
  %c8_i32 = arith.constant 8 : i32
  %4 = "tt.make_tensor_ptr"(%arg0, %0, %1, %2, %3, %c0_i32, %c8_i32) {operandSegmentSizes = array<i32: 1, 2, 2, 2>, order = array<i32: 1, 0>} : (!tt.ptr<f32>, i64, i64, i64, i64, i32, i32) -> !tt.ptr<tensor<4x8xf32>>
  %5 = "tt.load"(%4) {boundaryCheck = array<i32: 0, 1>, cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, padding = "zero", volatile = false} : (!tt.ptr<tensor<4x8xf32>>) -> tensor<4x8xf32>
  return
}

// Block pointer with one check:
//     b = tl.make_block_ptr(p, (n, m), (s, 1), (0, 0), (4, 8), (1, 0))
//     x = tl.load(b, boundary_check=(1,), padding_option="zero")

// CHECK-LABEL: func.func @block_pointer_with_one_check(
// CHECK: "tts.make_tptr"(%{{.*}}, %{{.*}}, %c1, %c0, %c0) {gathers = array<i64: 0, 0>, {{.*}}order = array<i64: 1, 0>, wraps = array<i64: 0, 0>}
// CHECK: "tts.load"(%{{.*}}, %c4, %{{.*}}, %{{.*}}) {operandSegmentSizes = array<i32: 1, 2, 0, 1, 0>}
func.func @block_pointer_with_one_check(%arg0: !tt.ptr<f32>, %arg1: i32, %arg2: i32, %arg3: i32) attributes {tt.kernel} {
  %0 = arith.extsi %arg1 : i32 to i64
  %1 = arith.extsi %arg2 : i32 to i64
  %2 = arith.extsi %arg3 : i32 to i64
  %c1_i32 = arith.constant 1 : i32
  %3 = arith.extsi %c1_i32 : i32 to i64
  %c0_i32 = arith.constant 0 : i32
  %c0_i32_0 = arith.constant 0 : i32
  %4 = "tt.make_tensor_ptr"(%arg0, %0, %1, %2, %3, %c0_i32, %c0_i32_0) {operandSegmentSizes = array<i32: 1, 2, 2, 2>, order = array<i32: 1, 0>} : (!tt.ptr<f32>, i64, i64, i64, i64, i32, i32) -> !tt.ptr<tensor<4x8xf32>>
  %5 = "tt.load"(%4) {boundaryCheck = array<i32: 1>, cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, padding = "zero", volatile = false} : (!tt.ptr<tensor<4x8xf32>>) -> tensor<4x8xf32>
  return
}

// Block pointer of columns:
//     b = tl.make_block_ptr(p, (n, m), (1, s), (0, 0), (4, 8), (0, 1))
//     x = tl.load(b)

// CHECK-LABEL: func.func @block_pointer_of_columns(
// CHECK: "tts.make_tptr"(%{{.*}}, %c1, %{{.*}}, %c0, %c0) {gathers = array<i64: 0, 0>, {{.*}}order = array<i64: 0, 1>, wraps = array<i64: 0, 0>}
// CHECK: "tts.load"(%{{.*}}) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0>}
func.func @block_pointer_of_columns(%arg0: !tt.ptr<f32>, %arg1: i32, %arg2: i32, %arg3: i32) attributes {tt.kernel} {
  %0 = arith.extsi %arg1 : i32 to i64
  %1 = arith.extsi %arg2 : i32 to i64
  %c1_i32 = arith.constant 1 : i32
  %2 = arith.extsi %c1_i32 : i32 to i64
  %3 = arith.extsi %arg3 : i32 to i64
  %c0_i32 = arith.constant 0 : i32
  %c0_i32_0 = arith.constant 0 : i32
  %4 = "tt.make_tensor_ptr"(%arg0, %0, %1, %2, %3, %c0_i32, %c0_i32_0) {operandSegmentSizes = array<i32: 1, 2, 2, 2>, order = array<i32: 0, 1>} : (!tt.ptr<f32>, i64, i64, i64, i64, i32, i32) -> !tt.ptr<tensor<4x8xf32>>
  %5 = "tt.load"(%4) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (!tt.ptr<tensor<4x8xf32>>) -> tensor<4x8xf32>
  return
}

// Block pointer that advances:
//     b = tl.make_block_ptr(p, (n, m), (s, 1), (0, 0), (4, 8), (1, 0))
//     for _ in range(n):
//         x = tl.load(b)
//         b = tl.advance(b, (0, 8))

// CHECK-LABEL: func.func @block_pointer_that_advances(
// CHECK: scf.for %arg4 = %c0_i32 to %arg1 step %c1_i32 iter_args(%arg5 = %c0_i32) -> (i32)  : i32
// CHECK: "tts.make_tptr"(%{{.*}}, %{{.*}}, %c1, %c0, %c0) {gathers = array<i64: 0, 0>, {{.*}}order = array<i64: 1, 0>, wraps = array<i64: 0, 0>}
// CHECK: "tts.load"(%{{.*}}) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0>}
// CHECK: scf.yield %{{.*}} : i32
func.func @block_pointer_that_advances(%arg0: !tt.ptr<f32>, %arg1: i32, %arg2: i32, %arg3: i32) attributes {tt.kernel} {
  %0 = arith.extsi %arg1 : i32 to i64
  %1 = arith.extsi %arg2 : i32 to i64
  %2 = arith.extsi %arg3 : i32 to i64
  %c1_i32 = arith.constant 1 : i32
  %3 = arith.extsi %c1_i32 : i32 to i64
  %c0_i32 = arith.constant 0 : i32
  %c0_i32_0 = arith.constant 0 : i32
  %4 = "tt.make_tensor_ptr"(%arg0, %0, %1, %2, %3, %c0_i32, %c0_i32_0) {operandSegmentSizes = array<i32: 1, 2, 2, 2>, order = array<i32: 1, 0>} : (!tt.ptr<f32>, i64, i64, i64, i64, i32, i32) -> !tt.ptr<tensor<4x8xf32>>
  %c0_i32_1 = arith.constant 0 : i32
  %c1_i32_2 = arith.constant 1 : i32
  %5 = scf.for %arg4 = %c0_i32_1 to %arg1 step %c1_i32_2 iter_args(%arg5 = %4) -> (!tt.ptr<tensor<4x8xf32>>)  : i32 {
    %6 = "tt.load"(%arg5) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (!tt.ptr<tensor<4x8xf32>>) -> tensor<4x8xf32>
    %c0_i32_3 = arith.constant 0 : i32
    %c8_i32 = arith.constant 8 : i32
    %7 = "tt.advance"(%arg5, %c0_i32_3, %c8_i32) {operandSegmentSizes = array<i32: 1, 2>} : (!tt.ptr<tensor<4x8xf32>>, i32, i32) -> !tt.ptr<tensor<4x8xf32>>
    scf.yield %7 : !tt.ptr<tensor<4x8xf32>>
  }
  return
}

// Store of a block pointer:
//     b = tl.make_block_ptr(p, (n, m), (s, 1), (0, 0), (4, 8), (1, 0))
//     tl.store(b, tl.zeros((4, 8), tl.float32), boundary_check=(0,))

// CHECK-LABEL: func.func @store_of_a_block_pointer(
// CHECK: "tts.make_tptr"(%{{.*}}, %{{.*}}, %c1, %c0, %c0) {gathers = array<i64: 0, 0>, {{.*}}order = array<i64: 1, 0>, wraps = array<i64: 0, 0>}
// CHECK: "tts.store"(%{{.*}}, %{{.*}}, %{{.*}}, %c8) {operandSegmentSizes = array<i32: 1, 1, 2, 0, 0>}
func.func @store_of_a_block_pointer(%arg0: !tt.ptr<f32>, %arg1: i32, %arg2: i32, %arg3: i32) attributes {tt.kernel} {
  %0 = arith.extsi %arg1 : i32 to i64
  %1 = arith.extsi %arg2 : i32 to i64
  %2 = arith.extsi %arg3 : i32 to i64
  %c1_i32 = arith.constant 1 : i32
  %3 = arith.extsi %c1_i32 : i32 to i64
  %c0_i32 = arith.constant 0 : i32
  %c0_i32_0 = arith.constant 0 : i32
  %4 = "tt.make_tensor_ptr"(%arg0, %0, %1, %2, %3, %c0_i32, %c0_i32_0) {operandSegmentSizes = array<i32: 1, 2, 2, 2>, order = array<i32: 1, 0>} : (!tt.ptr<f32>, i64, i64, i64, i64, i32, i32) -> !tt.ptr<tensor<4x8xf32>>
  %cst = arith.constant dense<0.000000e+00> : tensor<4x8xf32>
  "tt.store"(%4, %cst) {boundaryCheck = array<i32: 0>, cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>} : (!tt.ptr<tensor<4x8xf32>>, tensor<4x8xf32>) -> ()
  return
}

// Descriptor:
//     d = tl.make_tensor_descriptor(p, [n, m], [s, 1], [4, 8])
//     x = d.load([n, m])

// CHECK-LABEL: func.func @descriptor(
// CHECK: "tts.make_tptr"(%{{.*}}, %{{.*}}, %c1, %c0, %c0) {gathers = array<i64: 0, 0>, {{.*}}order = array<i64: 1, 0>, wraps = array<i64: 0, 0>}
// CHECK: "tts.load"(%{{.*}}, %c0, %c0, %{{.*}}, %{{.*}}, %{{.*}}) {operandSegmentSizes = array<i32: 1, 2, 2, 1, 0>}
func.func @descriptor(%arg0: !tt.ptr<f32>, %arg1: i32, %arg2: i32, %arg3: i32) attributes {tt.kernel} {
  %0 = arith.extsi %arg3 : i32 to i64
  %c1_i32 = arith.constant 1 : i32
  %1 = arith.extsi %c1_i32 : i32 to i64
  %2 = "tt.make_tensor_descriptor"(%arg0, %arg1, %arg2, %0, %1) {operandSegmentSizes = array<i32: 1, 2, 2>} : (!tt.ptr<f32>, i32, i32, i64, i64) -> !tt.tensordesc<tensor<4x8xf32>, "zero">
  %3 = "tt.descriptor_load"(%2, %arg1, %arg2) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 2>} : (!tt.tensordesc<tensor<4x8xf32>, "zero">, i32, i32) -> tensor<4x8xf32>
  return
}

// Store of a descriptor:
//     d = tl.make_tensor_descriptor(p, [n, m], [s, 1], [4, 8])
//     d.store([n, 0], tl.zeros((4, 8), tl.float32))

// CHECK-LABEL: func.func @store_of_a_descriptor(
// CHECK: "tts.make_tptr"(%{{.*}}, %{{.*}}, %c1, %c0, %c0) {gathers = array<i64: 0, 0>, {{.*}}order = array<i64: 1, 0>, wraps = array<i64: 0, 0>}
// CHECK: "tts.store"(%{{.*}}, %{{.*}}, %c0, %{{.*}}, %{{.*}}, %c0) {operandSegmentSizes = array<i32: 1, 1, 2, 2, 0>}
func.func @store_of_a_descriptor(%arg0: !tt.ptr<f32>, %arg1: i32, %arg2: i32, %arg3: i32) attributes {tt.kernel} {
  %0 = arith.extsi %arg3 : i32 to i64
  %c1_i32 = arith.constant 1 : i32
  %1 = arith.extsi %c1_i32 : i32 to i64
  %2 = "tt.make_tensor_descriptor"(%arg0, %arg1, %arg2, %0, %1) {operandSegmentSizes = array<i32: 1, 2, 2>} : (!tt.ptr<f32>, i32, i32, i64, i64) -> !tt.tensordesc<tensor<4x8xf32>, "zero">
  %cst = arith.constant dense<0.000000e+00> : tensor<4x8xf32>
  %c0_i32 = arith.constant 0 : i32
  "tt.descriptor_store"(%2, %cst, %arg1, %c0_i32) {operandSegmentSizes = array<i32: 1, 1, 2>} : (!tt.tensordesc<tensor<4x8xf32>, "zero">, tensor<4x8xf32>, i32, i32) -> ()
  return
}
