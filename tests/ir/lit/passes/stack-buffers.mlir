// RUN: proton-opt --pipeline='stack-buffers' %s | filecheck %s

// A small buffer is on the stack, in the entry block, wherever it was allocated.

// CHECK-LABEL: func.func @small(
// CHECK-NOT: proton.scratch_bytes
// CHECK-NEXT: %[[B:.*]] = memref.alloca() {alignment = 64 : i64} : memref<8xf32>
// CHECK: scf.for
// CHECK-NEXT: memref.store %{{.*}}, %[[B]][%{{.*}}]
// CHECK-NOT: memref.alloc()
// CHECK: return
func.func @small(%x: f32, %n: index) attributes {tt.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    %b = memref.alloc() : memref<8xf32>
    memref.store %x, %b[%c0] : memref<8xf32>
  }
  return
}

// More than 64 KiB is in scratch: an argument, and its size on the kernel.

// CHECK-LABEL: func.func @large(
// CHECK-SAME: %{{.*}}: f32, %[[SCRATCH:.*]]: !llvm.ptr)
// CHECK-SAME: proton.abi = ["scratch"], proton.scratch_bytes = 65600 : i64
// CHECK-NOT: memref.alloc
// CHECK: %[[P:.*]] = llvm.getelementptr %[[SCRATCH]][0] : (!llvm.ptr) -> !llvm.ptr, i8
// CHECK: llvm.insertvalue %[[P]], %{{.*}}[0]
// CHECK: llvm.insertvalue %[[P]], %{{.*}}[1]
// CHECK: %[[B:.*]] = memref.reinterpret_cast %{{.*}} to offset: [0], sizes: [16385], strides: [1] : memref<f32> to memref<16385xf32>
// CHECK: memref.store %{{.*}}, %[[B]]
func.func @large(%x: f32) attributes {tt.kernel} {
  %c0 = arith.constant 0 : index
  %b = memref.alloc() : memref<16385xf32>
  memref.store %x, %b[%c0] : memref<16385xf32>
  return
}

// CHECK-LABEL: func.func @exactly_64_kib(
// CHECK: memref.alloca() {alignment = 64 : i64} : memref<128x128xf32>
// CHECK-NOT: llvm.getelementptr
// CHECK: return
func.func @exactly_64_kib(%x: f32) attributes {tt.kernel} {
  %b = memref.alloc() : memref<128x128xf32>
  return
}

// Two in scratch lie behind each other, each on a cache line; one argument for both.

// CHECK-LABEL: func.func @two_large(
// CHECK-SAME: proton.abi = ["program_x", "scratch"], proton.scratch_bytes = 196672 : i64
// CHECK-DAG: %[[SECOND:.*]] = llvm.getelementptr %{{.*}}[65600] : (!llvm.ptr) -> !llvm.ptr, i8
// CHECK-DAG: memref.reinterpret_cast %{{.*}} to offset: [0], sizes: [128, 256], strides: [256, 1] : memref<f32> to memref<128x256xf32>
// CHECK-DAG: %[[FIRST:.*]] = llvm.getelementptr %{{.*}}[0] : (!llvm.ptr) -> !llvm.ptr, i8
// CHECK-DAG: memref.reinterpret_cast %{{.*}} to offset: [0], sizes: [65537], strides: [1] : memref<i8> to memref<65537xi8>
func.func @two_large(%x: i32) attributes {tt.kernel, proton.abi = ["program_x"]} {
  %a = memref.alloc() : memref<65537xi8>
  %b = memref.alloc() : memref<128x256xf32>
  return
}

// The stack holds half a MiB of buffers; the ninth of 64 KiB does not fit.

// CHECK-LABEL: func.func @too_many(
// CHECK-SAME: proton.scratch_bytes = 65536 : i64
// CHECK-DAG: memref.reinterpret_cast {{.*}} sizes: [16384]
// CHECK-COUNT-8: memref.alloca() {alignment = 64 : i64} : memref<16384xf32>
// CHECK-NOT: memref.alloca
// CHECK: return
func.func @too_many() attributes {tt.kernel} {
  %0 = memref.alloc() : memref<16384xf32>
  %1 = memref.alloc() : memref<16384xf32>
  %2 = memref.alloc() : memref<16384xf32>
  %3 = memref.alloc() : memref<16384xf32>
  %4 = memref.alloc() : memref<16384xf32>
  %5 = memref.alloc() : memref<16384xf32>
  %6 = memref.alloc() : memref<16384xf32>
  %7 = memref.alloc() : memref<16384xf32>
  %8 = memref.alloc() : memref<16384xf32>
  return
}

// A function that a kernel calls takes scratch behind the kernel's own, and less of the stack.

// CHECK-LABEL: func.func @caller(
// CHECK-SAME: %[[SCRATCH:.*]]: !llvm.ptr)
// CHECK-SAME: proton.scratch_bytes = 196672 : i64
// CHECK: %[[BEHIND:.*]] = llvm.getelementptr %[[SCRATCH]][131072] : (!llvm.ptr) -> !llvm.ptr, i8
// CHECK-NEXT: call @callee(%[[BEHIND]])
func.func @caller() attributes {tt.kernel} {
  %b = memref.alloc() : memref<32768xf32>
  func.call @callee() : () -> ()
  return
}

// CHECK-LABEL: func.func private @callee(
// CHECK-SAME: %[[OWN:.*]]: !llvm.ptr)
// CHECK-NOT: proton.scratch_bytes
// CHECK: llvm.getelementptr %[[OWN]][0]
// CHECK: memref.reinterpret_cast {{.*}} sizes: [16400]
// CHECK-COUNT-1: memref.alloca
// CHECK-NOT: memref.alloca
// CHECK: return
func.func private @callee() attributes {tt.noinline = true} {
  %b = memref.alloc() : memref<16400xf32>
  %c = memref.alloc() : memref<8192xf32>
  return
}
