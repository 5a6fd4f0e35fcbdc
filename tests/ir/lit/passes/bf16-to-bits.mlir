// RUN: proton-opt %s --pipeline='bf16-to-bits' | filecheck %s
// bf16 is moved and chosen as bits, widened by a shift; atomics still take a number.

// CHECK-LABEL: func.func @kernel
// CHECK: %[[BUFFER:.*]] = memref.alloca() : memref<4xi16>
// CHECK: %[[ONE:.*]] = arith.constant 16256 : i16
// CHECK: %[[X:.*]] = llvm.load %arg0 : !llvm.ptr -> i16
// CHECK: %[[Y:.*]] = scf.if %arg1 -> (i16)
// CHECK: memref.store %[[Y]], %[[BUFFER]][%arg2] : memref<4xi16>
// CHECK: %[[BITS:.*]] = arith.extui %[[Y]] : i16 to i32
// CHECK: %[[HIGH:.*]] = arith.shli %[[BITS]], %{{.*}} : i32
// CHECK: %[[WIDE:.*]] = arith.bitcast %[[HIGH]] : i32 to f32
// CHECK: arith.extf %[[WIDE]] : f32 to f64
// CHECK: %[[SIGN:.*]] = arith.constant -32768 : i16
// CHECK: %[[MINUS:.*]] = arith.xori %[[Y]], %[[SIGN]] : i16
// CHECK: %[[NUMBER:.*]] = arith.bitcast %[[MINUS]] : i16 to bf16
// CHECK: %[[OLD:.*]] = llvm.atomicrmw fadd %arg0, %[[NUMBER]] monotonic : !llvm.ptr, bf16
// CHECK: %[[OLD_BITS:.*]] = arith.bitcast %[[OLD]] : bf16 to i16
// CHECK: llvm.store %[[OLD_BITS]], %arg0 : i16
func.func @kernel(%p: !llvm.ptr, %c: i1, %i: index) -> f64 attributes {tt.kernel} {
  %buffer = memref.alloca() : memref<4xbf16>
  %one = arith.constant 1.0 : bf16
  %x = llvm.load %p : !llvm.ptr -> bf16
  %y = scf.if %c -> bf16 {
    scf.yield %one : bf16
  } else {
    scf.yield %x : bf16
  }
  memref.store %y, %buffer[%i] : memref<4xbf16>
  %wide = arith.extf %y : bf16 to f64
  %minus = arith.negf %y : bf16
  %old = llvm.atomicrmw fadd %p, %minus monotonic : !llvm.ptr, bf16
  llvm.store %old, %p : bf16, !llvm.ptr
  return %wide : f64
}
