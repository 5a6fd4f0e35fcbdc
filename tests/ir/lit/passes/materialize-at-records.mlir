// RUN: proton-opt --pipeline='materialize-at-records' %s | filecheck %s

// A tensor that crosses a record is copied in front of it; uses before stay.

// CHECK-LABEL: func.func @a_tensor_that_crosses(
// CHECK-NEXT: %[[Y:.*]] = arith.addf
// CHECK-NEXT: %[[Z:.*]] = arith.mulf %[[Y]], %[[Y]]
// CHECK-NEXT: %[[C:.*]] = bufferization.alloc_tensor() copy(%[[Y]]) : tensor<8xf32>
// CHECK-NEXT: phase = "start"
// CHECK-NEXT: %[[W:.*]] = arith.addf %[[C]], %[[C]]
// CHECK-NEXT: phase = "end"
// CHECK-NEXT: return
func.func @a_tensor_that_crosses(%x: tensor<8xf32>) attributes {tt.kernel} {
  %y = arith.addf %x, %x : tensor<8xf32>
  %z = arith.mulf %y, %y : tensor<8xf32>
  "proton.record"() {scope = "a", phase = "start", names = [], kinds = [], operandSegmentSizes = array<i32: 0, 0>} : () -> ()
  %w = arith.addf %y, %y : tensor<8xf32>
  "proton.record"() {scope = "a", phase = "end", names = [], kinds = [], operandSegmentSizes = array<i32: 0, 0>} : () -> ()
  return
}

// Once, in front of the first record that it crosses.

// CHECK-LABEL: func.func @a_tensor_that_crosses_two(
// CHECK: phase = "start"
// CHECK-NEXT: %[[Y:.*]] = arith.addf
// CHECK-NEXT: %[[C:.*]] = bufferization.alloc_tensor() copy(%[[Y]])
// CHECK-NEXT: phase = "end"
// CHECK-NEXT: arith.mulf %[[C]], %[[C]]
// CHECK-NEXT: phase = "start", scope = "b"
// CHECK-NEXT: arith.mulf %[[C]], %[[C]]
// CHECK-NOT: alloc_tensor
// CHECK: return
func.func @a_tensor_that_crosses_two(%x: tensor<8xf32>) attributes {tt.kernel} {
  "proton.record"() {scope = "a", phase = "start", names = [], kinds = [], operandSegmentSizes = array<i32: 0, 0>} : () -> ()
  %y = arith.addf %x, %x : tensor<8xf32>
  "proton.record"() {scope = "a", phase = "end", names = [], kinds = [], operandSegmentSizes = array<i32: 0, 0>} : () -> ()
  %z = arith.mulf %y, %y : tensor<8xf32>
  "proton.record"() {scope = "b", phase = "start", names = [], kinds = [], operandSegmentSizes = array<i32: 0, 0>} : () -> ()
  %w = arith.mulf %y, %y : tensor<8xf32>
  "proton.record"() {scope = "b", phase = "end", names = [], kinds = [], operandSegmentSizes = array<i32: 0, 0>} : () -> ()
  return
}

// CHECK-LABEL: func.func @used_inside_of_a_loop_behind_it(
// CHECK: %[[C:.*]] = bufferization.alloc_tensor() copy(
// CHECK-NEXT: phase = "start"
// CHECK: scf.for
// CHECK-NEXT: arith.addf %[[C]], %[[C]]
func.func @used_inside_of_a_loop_behind_it(%x: tensor<8xf32>, %n: index) attributes {tt.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %y = arith.addf %x, %x : tensor<8xf32>
  "proton.record"() {scope = "a", phase = "start", names = [], kinds = [], operandSegmentSizes = array<i32: 0, 0>} : () -> ()
  scf.for %i = %c0 to %n step %c1 {
    %w = arith.addf %y, %y : tensor<8xf32>
  }
  "proton.record"() {scope = "a", phase = "end", names = [], kinds = [], operandSegmentSizes = array<i32: 0, 0>} : () -> ()
  return
}

// CHECK-LABEL: func.func @inside_of_a_loop(
// CHECK: scf.for
// CHECK-NEXT: %[[Y:.*]] = arith.addf
// CHECK-NEXT: %[[C:.*]] = bufferization.alloc_tensor() copy(%[[Y]])
// CHECK-NEXT: phase = "start"
// CHECK-NEXT: arith.mulf %[[C]], %[[C]]
func.func @inside_of_a_loop(%x: tensor<8xf32>, %n: index) attributes {tt.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    %y = arith.addf %x, %x : tensor<8xf32>
    "proton.record"() {scope = "a", phase = "start", names = [], kinds = [], operandSegmentSizes = array<i32: 0, 0>} : () -> ()
    %w = arith.mulf %y, %y : tensor<8xf32>
    "proton.record"() {scope = "a", phase = "end", names = [], kinds = [], operandSegmentSizes = array<i32: 0, 0>} : () -> ()
  }
  return
}

// Scalars, empty tensors, arguments, and what is used before the record only: nothing to do.

// CHECK-LABEL: func.func @nothing_crosses(
// CHECK-NOT: alloc_tensor
// CHECK: return
func.func @nothing_crosses(%x: tensor<8xf32>, %s: f32) attributes {tt.kernel} {
  %e = tensor.empty() : tensor<8xf32>
  %t = arith.addf %s, %s : f32
  %y = arith.addf %x, %x : tensor<8xf32>
  %z = arith.addf %y, %x : tensor<8xf32>
  "proton.record"() {scope = "a", phase = "start", names = [], kinds = [], operandSegmentSizes = array<i32: 0, 0>} : () -> ()
  %f = linalg.fill ins(%t : f32) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  %w = arith.addf %x, %x : tensor<8xf32>
  "proton.record"() {scope = "a", phase = "end", names = [], kinds = [], operandSegmentSizes = array<i32: 0, 0>} : () -> ()
  return
}

// CHECK-LABEL: func.func @no_records(
// CHECK-NOT: alloc_tensor
// CHECK: return
func.func @no_records(%x: tensor<8xf32>) attributes {tt.kernel} {
  %y = arith.addf %x, %x : tensor<8xf32>
  %z = arith.mulf %y, %y : tensor<8xf32>
  return
}
