// RUN: proton-opt --pipeline='start-partitions' %s | filecheck %s

// A call of a partition begins it: what it takes lies in a frame. Other calls stay.

// CHECK-LABEL: func.func @kernel(
// CHECK: %[[FRAME:.*]] = llvm.alloca
// CHECK: llvm.store %arg0
// CHECK: llvm.store %arg1
// CHECK: %[[ENTRY:.*]] = llvm.mlir.addressof @send$ : !llvm.ptr
// CHECK-DAG: %[[F:.*]] = llvm.ptrtoint %[[ENTRY]]
// CHECK-DAG: %[[A:.*]] = llvm.ptrtoint %[[FRAME]]
// CHECK: call @proton_partitions_start(%arg0, %[[F]], %[[A]])
// CHECK-NOT: call @send(
// CHECK: call @other(
// CHECK-LABEL: llvm.func internal @send$(
// CHECK: llvm.load
// CHECK: llvm.load
// CHECK: call @send(
module {
  func.func @kernel(%scheduler: i64, %x: !llvm.ptr) attributes {tt.kernel} {
    call @send(%scheduler, %x) : (i64, !llvm.ptr) -> ()
    call @other(%scheduler) : (i64) -> ()
    return
  }
  func.func private @send(%scheduler: i64, %x: !llvm.ptr) attributes {proton.partition = 1 : i32, tt.noinline = true} {
    return
  }
  func.func private @other(%scheduler: i64) attributes {tt.noinline = true} {
    return
  }
}
