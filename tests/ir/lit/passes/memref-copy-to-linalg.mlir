// RUN: proton-opt --pipeline='memref-copy-to-linalg' %s | filecheck %s

// CHECK-LABEL: func.func @source_and_target_keep_their_order
// CHECK-SAME: (%[[A:.*]]: memref<4x8xf32>, %[[B:.*]]: memref<4x8xf32, strided<[?, ?], offset: ?>>)
// CHECK-NOT: memref.copy
// CHECK: linalg.copy ins(%[[A]] : memref<4x8xf32>) outs(%[[B]] : memref<4x8xf32, strided<[?, ?], offset: ?>>)
// CHECK-NOT: memref.copy
func.func @source_and_target_keep_their_order(%a: memref<4x8xf32>, %b: memref<4x8xf32, strided<[?, ?], offset: ?>>) {
  memref.copy %a, %b : memref<4x8xf32> to memref<4x8xf32, strided<[?, ?], offset: ?>>
  return
}

// CHECK-LABEL: func.func @the_place_stays
// CHECK: memref.store
// CHECK-NEXT: scf.if
// CHECK-NEXT: linalg.copy
// CHECK-NEXT: }
// CHECK-NEXT: memref.load
// CHECK-NOT: memref.copy
func.func @the_place_stays(%a: memref<f32>, %b: memref<f32>, %c: i1, %x: f32) -> f32 {
  memref.store %x, %a[] : memref<f32>
  scf.if %c {
    memref.copy %a, %b : memref<f32> to memref<f32>
  }
  %y = memref.load %b[] : memref<f32>
  return %y : f32
}
