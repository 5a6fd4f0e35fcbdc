// RUN: proton-opt %s --pipeline='outline-loops{loops=1}' | filecheck %s
// Each loop goes to a function of its own: buffers and scalars are passed, constants and views
// made anew; a view that a branch chose is passed as its address and stride.

// CHECK-LABEL: func.func @kernel(
// CHECK: %[[BUFFER:.*]] = memref.alloca() : memref<8xf32>
// CHECK: %[[SUM:.*]] = call @[[FIRST:kernel__loops[0-9]+]](%arg1, %[[BUFFER]]) : (f32, memref<8xf32>) -> f32
// CHECK: %[[VIEW:.*]] = scf.if %arg2 -> (memref<8xf32, strided<[?], offset: ?>>)
// CHECK: memref.extract_strided_metadata %[[VIEW]]
// CHECK: call @[[SECOND:kernel__loops[0-9]+]](%{{.*}}, %{{.*}}, %[[SUM]]) : (!llvm.ptr, index, f32) -> ()
// CHECK: call @[[THIRD:kernel__loops[0-9]+]](
// CHECK: return

// CHECK: func.func private @[[FIRST]](%arg0: f32, %arg1: memref<8xf32>) -> f32
// CHECK-SAME: llvm.linkage = #llvm.linkage<internal>, llvm.passthrough = ["noinline"]
// CHECK-DAG: arith.constant 8 : index
// CHECK: %[[RESULT:.*]] = scf.for
// CHECK: return %[[RESULT]] : f32
// CHECK: func.func private @[[SECOND]](%arg0: !llvm.ptr, %arg1: index, %arg2: f32)
// CHECK: memref.reinterpret_cast %{{.*}} to offset: [0], sizes: [8], strides: [%arg1]
// CHECK: scf.for
func.func @kernel(%p: !llvm.ptr, %x: f32, %c: i1, %s: index) attributes {tt.kernel} {
  %buffer = memref.alloca() : memref<8xf32>
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %eight = arith.constant 8 : index
  %sum = scf.for %i = %zero to %eight step %one iter_args(%a = %x) -> f32 {
    memref.store %a, %buffer[%i] : memref<8xf32>
    %b = arith.addf %a, %x : f32
    scf.yield %b : f32
  }
  %view = scf.if %c -> memref<8xf32, strided<[?], offset: ?>> {
    %cast = memref.cast %buffer : memref<8xf32> to memref<8xf32, strided<[?], offset: ?>>
    scf.yield %cast : memref<8xf32, strided<[?], offset: ?>>
  } else {
    %other = memref.reinterpret_cast %buffer to offset: [%zero], sizes: [8], strides: [%s] : memref<8xf32> to memref<8xf32, strided<[?], offset: ?>>
    scf.yield %other : memref<8xf32, strided<[?], offset: ?>>
  }
  scf.for %i = %zero to %eight step %one {
    memref.store %sum, %view[%i] : memref<8xf32, strided<[?], offset: ?>>
  }
  scf.for %i = %zero to %eight step %one {
    memref.store %x, %view[%i] : memref<8xf32, strided<[?], offset: ?>>
  }
  return
}
