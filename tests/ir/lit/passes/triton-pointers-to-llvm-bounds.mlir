// RUN: proton-opt %s --pipeline='triton-pointers-to-llvm{check-bounds=true}' | filecheck %s
// An access happens where its address lies in the array that its argument points to; the table
// describes arrays from word 5 on, two words an argument. A loaded pointer is not checked.

// CHECK-LABEL: func.func @kernel(%arg0: i64, %arg1: !llvm.ptr
// CHECK-SAME: %[[TABLE:arg8]]: !llvm.ptr) attributes
// CHECK-SAME: "bounds"
// CHECK-SAME: proton.bounds = [{arguments = array<i64: 1>, column = {{[0-9]+}} : i64, file = "{{.*}}", kind = "load", line = {{[0-9]+}} : i64}]
// CHECK: llvm.getelementptr %[[TABLE]][56]
// CHECK: %[[LOW:.*]] = llvm.load
// CHECK: llvm.getelementptr %[[TABLE]][64]
// CHECK: %[[SIZE:.*]] = llvm.load
// CHECK: %[[PLACE:.*]] = llvm.ptrtoint %arg1
// CHECK: %[[FIRST:.*]] = arith.subi %[[PLACE]], %[[LOW]]
// CHECK: %[[FOUR:.*]] = arith.constant 4 : i64
// CHECK: %[[BEHIND:.*]] = arith.addi %[[FIRST]], %[[FOUR]]
// CHECK: arith.cmpi ult, %[[FIRST]], %[[SIZE]]
// CHECK: arith.cmpi ule, %[[BEHIND]], %[[SIZE]]
// CHECK: scf.if
// CHECK-NEXT: llvm.load %arg1 : !llvm.ptr -> f32
// CHECK: } else {
// CHECK: llvm.cmpxchg {{.*}} monotonic monotonic
// CHECK: llvm.inttoptr
// CHECK-NEXT: llvm.store
func.func @kernel(%address: i64, %x: !tt.ptr<f32>) attributes {tt.kernel} {
  %value = "tt.load"(%x) {cache = "", evict = "", volatile = false, operandSegmentSizes = array<i32: 1, 0, 0>} : (!tt.ptr<f32>) -> f32
  %pointer = "tt.int_to_ptr"(%address) : (i64) -> !tt.ptr<f32>
  "tt.store"(%pointer, %value) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>} : (!tt.ptr<f32>, f32) -> ()
  return
}
