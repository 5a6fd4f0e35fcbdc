// RUN: proton-opt --pipeline='convert-proton-to-proton-gpu,allocate-profile{units=4}' %s | filecheck %s
// A function that is called records into its caller's segment, by numbers of one table; how often
// is not known, so a warp has room for 64.

// CHECK-LABEL: func.func @kernel(
// CHECK-SAME: proton.profile = {capacity = 64 : i64,
// CHECK-SAME: proton.table = {optimized_out = ["gone"], scopes = [{{.*}} name = "a", {{.*}} name = "b", {{.*}}]}
// CHECK-NEXT: %[[S:.*]] = "proton_gpu.init"
// CHECK: "proton_gpu.circular_record"(%[[S]], {{.*}} scope_id = 0 : i32}
// CHECK: "proton_gpu.finalize"(%[[S]])
func.func @kernel(%p: !llvm.ptr, %x: f32) attributes {tt.kernel, proton.scopes = ["a"]} {
  "proton.record"() {scope = "a", phase = "start", names = [], kinds = [], operandSegmentSizes = array<i32: 0, 0>} : () -> ()
  func.call @called(%p, %x) : (!llvm.ptr, f32) -> ()
  "proton.record"() {scope = "a", phase = "end", names = [], kinds = [], operandSegmentSizes = array<i32: 0, 0>} : () -> ()
  return
}

// CHECK-LABEL: func.func private @called(
// CHECK-NEXT: %[[S:.*]] = "proton_gpu.attach"
// CHECK: "proton_gpu.circular_record"(%[[S]], {{.*}} scope_id = 1 : i32}
// CHECK-NOT: "proton_gpu.finalize"
// CHECK: return
func.func private @called(%p: !llvm.ptr, %x: f32) attributes {proton.scopes = ["b", "gone"]} {
  "proton.record"() {scope = "b", phase = "start", names = [], kinds = [], operandSegmentSizes = array<i32: 0, 0>} : () -> ()
  llvm.store %x, %p : f32, !llvm.ptr
  "proton.record"() {scope = "b", phase = "end", names = [], kinds = [], operandSegmentSizes = array<i32: 0, 0>} : () -> ()
  return
}
