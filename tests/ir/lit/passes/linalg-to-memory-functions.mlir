// RUN: proton-opt --pipeline='linalg-to-memory-functions' %s | filecheck %s

// Rows that follow each other without a gap are one row.

// CHECK-LABEL: func.func @whole(
// CHECK-NOT: scf.for
// CHECK: %[[BYTES:.*]] = arith.constant 8192 : i64
// CHECK: %[[ZERO:.*]] = arith.constant 0 : i8
// CHECK: "llvm.intr.memset"(%{{.*}}, %[[ZERO]], %[[BYTES]]) <{isVolatile = false}>
// CHECK: %[[BYTES2:.*]] = arith.constant 8192 : i64
// CHECK: "llvm.intr.memcpy"(%{{.*}}, %{{.*}}, %[[BYTES2]]) <{isVolatile = false}>
// CHECK-NOT: linalg
// CHECK: return
func.func @whole(%a: memref<16x128xf32>, %b: memref<16x128xf32>) {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%a : memref<16x128xf32>)
  linalg.copy ins(%a : memref<16x128xf32>) outs(%b : memref<16x128xf32>)
  return
}

// Others have a call each; the strides are those of each side.

// CHECK-LABEL: func.func @rows(
// CHECK: memref.extract_strided_metadata %{{.*}} : memref<16x128xi16, strided<[?, 1], offset: ?>>
// CHECK: %[[FROM:.*]] = llvm.getelementptr
// CHECK-NOT: memref.extract_strided_metadata
// CHECK: %[[TO:.*]] = llvm.inttoptr
// CHECK: scf.for %[[I:[a-z0-9]*]] =
// CHECK: %[[OFFSET:.*]] = arith.muli %[[I]], %{{.*}}#0 : index
// CHECK: %[[WIDE:.*]] = arith.index_cast %[[OFFSET]]
// CHECK: %[[SOURCE:.*]] = llvm.getelementptr %[[FROM]][%[[WIDE]]]
// CHECK: %[[SIZE:.*]] = arith.constant 144 : index
// CHECK: %[[OFFSET2:.*]] = arith.muli %[[I]], %[[SIZE]] : index
// CHECK: %[[WIDE2:.*]] = arith.index_cast %[[OFFSET2]]
// CHECK: %[[TARGET:.*]] = llvm.getelementptr %[[TO]][%[[WIDE2]]]
// CHECK: %[[BYTES:.*]] = arith.constant 256 : i64
// CHECK: "llvm.intr.memcpy"(%[[TARGET]], %[[SOURCE]], %[[BYTES]])
// CHECK-NOT: linalg
// CHECK: return
func.func @rows(%a: memref<16x128xi16, strided<[?, 1], offset: ?>>, %b: memref<16x128xi16, strided<[144, 1]>>) {
  linalg.copy ins(%a : memref<16x128xi16, strided<[?, 1], offset: ?>>) outs(%b : memref<16x128xi16, strided<[144, 1]>>)
  return
}

// Not fills with what has bits, rows with gaps or of a few bytes, and copies that convert.

// CHECK-LABEL: func.func @others(
// CHECK-NOT: llvm.intr
// CHECK-COUNT-3: linalg.fill
// CHECK-COUNT-3: linalg.copy
// CHECK: return
func.func @others(%a: memref<16x128xf32>, %b: memref<16x128xf32, strided<[1, 16]>>, %c: memref<16x8xf32, strided<[64, 1]>>, %d: memref<16x8xf32>, %e: memref<16x128xf64>, %x: f32) {
  %one = arith.constant 1.0 : f32
  %negative = arith.constant -0.0 : f32
  linalg.fill ins(%one : f32) outs(%a : memref<16x128xf32>)
  linalg.fill ins(%negative : f32) outs(%a : memref<16x128xf32>)
  linalg.fill ins(%x : f32) outs(%a : memref<16x128xf32>)
  linalg.copy ins(%a : memref<16x128xf32>) outs(%b : memref<16x128xf32, strided<[1, 16]>>)
  linalg.copy ins(%d : memref<16x8xf32>) outs(%c : memref<16x8xf32, strided<[64, 1]>>)
  linalg.copy ins(%a : memref<16x128xf32>) outs(%e : memref<16x128xf64>)
  return
}
