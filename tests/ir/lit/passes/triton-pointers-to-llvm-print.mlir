// RUN: proton-opt --pipeline=triton-pointers-to-llvm %s | filecheck %s
// A print is a call of printf for each element; a percent sign of the prefix stays one.

// CHECK: llvm.mlir.global internal constant @text_0("pid (%u, %u, %u) idx (%1u) 100%%: %d\0A\00")
// CHECK: llvm.func @printf(!llvm.ptr, ...) -> i32
// CHECK-LABEL: func.func @prints
// CHECK: scf.for
// CHECK: %[[X:.*]] = tensor.extract %arg0
// CHECK: %[[WIDE:.*]] = arith.extsi %[[X]] : i8 to i32
// CHECK: llvm.call @printf(%{{.*}}, %arg1, %arg2, %arg3, %{{.*}}, %[[WIDE]])
// CHECK: call @fflush
func.func @prints(%x: tensor<8xi8>) attributes {tt.kernel} {
  "tt.print"(%x) {hex = false, operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>, prefix = " 100%: ", signed = array<i32: 1>} : (tensor<8xi8>) -> ()
  return
}
