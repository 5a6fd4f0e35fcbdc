// RUN: proton-opt --pipeline='fork-unsampled' %s | filecheck %s
// RUN: proton-opt --pipeline='fork-unsampled{programs=false}' %s | filecheck %s

// A kernel that records is there twice: with its records, and without any.

// CHECK-LABEL: func.func @kernel(
// CHECK-SAME: %[[P:.*]]: !llvm.ptr, %[[X:.*]]: f32)
// CHECK-NEXT: %[[SAMPLED:.*]] = "proton_gpu.sampled"() : () -> i1
// CHECK-NEXT: scf.if %[[SAMPLED]] {
// CHECK-NEXT: "proton.record"(){{.*}}phase = "start", scope = "a"
// CHECK-NEXT: call @records(%[[P]], %[[X]])
// CHECK-NEXT: call @plain(%[[P]], %[[X]])
// CHECK-NEXT: "proton.record"(){{.*}}phase = "end", scope = "a"
// CHECK-NEXT: "proton.mark"
// CHECK-NEXT: } else {
// CHECK-NEXT: call @records__unsampled(%[[P]], %[[X]])
// CHECK-NEXT: call @plain(%[[P]], %[[X]])
// CHECK-NEXT: }
// CHECK-NEXT: return
func.func @kernel(%p: !llvm.ptr, %x: f32) attributes {tt.kernel} {
  "proton.record"() {scope = "a", phase = "start", names = [], kinds = [], operandSegmentSizes = array<i32: 0, 0>} : () -> ()
  func.call @records(%p, %x) : (!llvm.ptr, f32) -> ()
  func.call @plain(%p, %x) : (!llvm.ptr, f32) -> ()
  "proton.record"() {scope = "a", phase = "end", names = [], kinds = [], operandSegmentSizes = array<i32: 0, 0>} : () -> ()
  "proton.mark"() {mark = "b", names = [], kinds = [], operandSegmentSizes = array<i32: 0, 0>} : () -> ()
  return
}

// So is a function that records, or that calls one which does.

// CHECK-LABEL: func.func private @records__unsampled(
// CHECK-NEXT: call @inner__unsampled(
// CHECK-NEXT: return
// CHECK-LABEL: func.func private @records(
// CHECK-NEXT: call @inner(
func.func private @records(%p: !llvm.ptr, %x: f32) {
  func.call @inner(%p, %x) : (!llvm.ptr, f32) -> ()
  return
}

// CHECK-LABEL: func.func private @inner__unsampled(
// CHECK-NEXT: llvm.store
// CHECK-NEXT: return
// CHECK-LABEL: func.func private @inner(
// CHECK-COUNT-2: proton.record
func.func private @inner(%p: !llvm.ptr, %x: f32) {
  "proton.record"() {scope = "c", phase = "start", names = [], kinds = [], operandSegmentSizes = array<i32: 0, 0>} : () -> ()
  llvm.store %x, %p : f32, !llvm.ptr
  "proton.record"() {scope = "c", phase = "end", names = [], kinds = [], operandSegmentSizes = array<i32: 0, 0>} : () -> ()
  return
}

// What has no records stays as it is.

// CHECK-LABEL: func.func private @plain(
// CHECK-NEXT: llvm.store
// CHECK-LABEL: func.func @other(
// CHECK-NEXT: call @plain(
func.func private @plain(%p: !llvm.ptr, %x: f32) {
  llvm.store %x, %p : f32, !llvm.ptr
  return
}
func.func @other(%p: !llvm.ptr, %x: f32) attributes {tt.kernel} {
  func.call @plain(%p, %x) : (!llvm.ptr, f32) -> ()
  return
}
// CHECK-NOT: plain__unsampled
