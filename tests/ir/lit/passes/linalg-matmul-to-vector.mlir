// RUN: proton-opt --pipeline='linalg-matmul-to-vector{vector-bits=256}' %s | filecheck %s --check-prefixes=CHECK,AVX2
// RUN: proton-opt --pipeline='linalg-matmul-to-vector{vector-bits=512}' %s | filecheck %s --check-prefixes=CHECK,AVX512

// A tile of 4 rows by 2 AVX2 registers (4 rows by 4 AVX-512 registers) stays in registers while
// k runs; loops over columns, rows and k, in this order.

// CHECK-LABEL: func.func @floats(
// CHECK-SAME: %[[A:[a-z0-9]+]]: memref<16x24xf32>, %[[B:[a-z0-9]+]]: memref<24x64xf32>, %[[C:[a-z0-9]+]]: memref<16x64xf32>)
// CHECK-NOT: memref.alloc
// CHECK-NEXT: %[[DEPTH:.*]] = arith.constant 24 : index
// CHECK-NEXT: %[[COLUMNS:.*]] = arith.constant 64 : index
// CHECK-NEXT: %[[C0:.*]] = arith.constant 0 : index
// AVX2-NEXT: %[[WIDTH:.*]] = arith.constant 16 : index
// AVX512-NEXT: %[[WIDTH:.*]] = arith.constant 64 : index
// CHECK-NEXT: scf.for %[[J:.*]] = %[[C0]] to %[[COLUMNS]] step %[[WIDTH]] {
// CHECK-NEXT: %[[ROWS:.*]] = arith.constant 16 : index
// CHECK-NEXT: %[[C0I:.*]] = arith.constant 0 : index
// CHECK-NEXT: %[[HEIGHT:.*]] = arith.constant 4 : index
// CHECK-NEXT: scf.for %[[I:.*]] = %[[C0I]] to %[[ROWS]] step %[[HEIGHT]] {
// CHECK: %[[I1:.*]] = arith.addi %[[I]], %{{.*}} : index
// CHECK-COUNT-4: vector.load %[[C]]
// CHECK-NOT: vector.load
// CHECK: %[[C0K:.*]] = arith.constant 0 : index
// CHECK-NEXT: %[[C1:.*]] = arith.constant 1 : index
// CHECK: %[[R:.*]]:4 = scf.for %[[K:.*]] = %[[C0K]] to %[[DEPTH]] step %[[C1]] iter_args(
// AVX2-NEXT: %[[LINE:.*]] = vector.load %[[B]][%[[K]], %[[J]]] : memref<24x64xf32>, vector<16xf32>
// AVX512-NEXT: %[[LINE:.*]] = vector.load %[[B]][%[[K]], %[[J]]] : memref<24x64xf32>, vector<64xf32>
// CHECK-NEXT: %[[X:.*]] = memref.load %[[A]][%[[I1]], %[[K]]] : memref<16x24xf32>
// CHECK-NEXT: %[[F:.*]] = vector.broadcast %[[X]] : f32 to vector<{{16|64}}xf32>
// CHECK-NEXT: %[[S:.*]] = vector.fma %[[F]], %[[LINE]], %{{.*}} : vector<{{16|64}}xf32>
// CHECK-COUNT-3: vector.fma
// CHECK-NOT: vector.fma
// CHECK: scf.yield %[[S]],
// CHECK: vector.store %[[R]]#0, %[[C]][%[[I1]], %[[J]]]
// CHECK: vector.store %[[R]]#3, %[[C]]
// CHECK-NOT: linalg
// CHECK: return
func.func @floats(%a: memref<16x24xf32>, %b: memref<24x64xf32>, %c: memref<16x64xf32>) {
  linalg.matmul ins(%a, %b : memref<16x24xf32>, memref<24x64xf32>) outs(%c : memref<16x64xf32>)
  return
}

// A deep tile begins with 0 and is added to the result at its end.

// CHECK-LABEL: func.func @deep(
// CHECK-SAME: %[[C:[a-z0-9]+]]: memref<4x16xf32>)
// CHECK: %[[ZERO:.*]] = arith.constant dense<0.000000e+00> : vector<16xf32>
// CHECK-NOT: vector.load
// CHECK: %[[R:.*]]:4 = scf.for {{.*}} iter_args(%{{.*}} = %[[ZERO]], %{{.*}} = %[[ZERO]], %{{.*}} = %[[ZERO]], %{{.*}} = %[[ZERO]])
// CHECK: scf.yield
// CHECK: %[[WAS:.*]] = vector.load %[[C]]
// CHECK-COUNT-3: vector.load %[[C]]
// CHECK: %[[SUM:.*]] = arith.addf %[[WAS]], %[[R]]#0 : vector<16xf32>
// CHECK: vector.store %[[SUM]], %[[C]]
// CHECK: return
func.func @deep(%a: memref<4x64xf32>, %b: memref<64x16xf32>, %c: memref<4x16xf32>) {
  linalg.matmul ins(%a, %b : memref<4x64xf32>, memref<64x16xf32>) outs(%c : memref<4x16xf32>)
  return
}

// CHECK-LABEL: func.func @deep_integers(
// CHECK: arith.constant dense<0> : vector<8xi32>
// CHECK: scf.yield
// CHECK: arith.addi
// CHECK: vector.store
// CHECK: return
func.func @deep_integers(%a: memref<2x64xi32>, %b: memref<64x8xi32>, %c: memref<2x8xi32>) {
  linalg.matmul ins(%a, %b : memref<2x64xi32>, memref<64x8xi32>) outs(%c : memref<2x8xi32>)
  return
}

// Parts of blocks, of which the first so many columns and rows are taken: the tile's loop is as deep.

// CHECK-LABEL: func.func @parts(
// CHECK-SAME: %[[A:[a-z0-9]+]]: memref<4x64xf32>, %[[B:[a-z0-9]+]]: memref<64x16xf32>, %{{[a-z0-9]+}}: memref<4x16xf32>, %[[N:[a-z0-9]+]]: index
// CHECK-NOT: memref.subview
// CHECK: arith.constant dense<0.000000e+00> : vector<16xf32>
// CHECK: scf.for %{{.*}} = %{{.*}} to %[[N]] step %{{.*}} iter_args(
// CHECK: vector.load %[[B]]
// CHECK: memref.load %[[A]]
// CHECK: return
func.func @parts(%a: memref<4x64xf32>, %b: memref<64x16xf32>, %c: memref<4x16xf32>, %n: index) {
  %d = memref.subview %a[0, 0] [4, %n] [1, 1] : memref<4x64xf32> to memref<4x?xf32, strided<[64, 1]>>
  %e = memref.subview %b[0, 0] [%n, 16] [1, 1] : memref<64x16xf32> to memref<?x16xf32, strided<[16, 1]>>
  linalg.matmul ins(%d, %e : memref<4x?xf32, strided<[64, 1]>>, memref<?x16xf32, strided<[16, 1]>>) outs(%c : memref<4x16xf32>)
  return
}

// Fewer rows and columns than a tile has: one vector of all columns, and as many rows.

// CHECK-LABEL: func.func @small_shapes(
// CHECK-COUNT-2: vector.load {{.*}} : memref<2x4xf32>, vector<4xf32>
// CHECK-NOT: vector.load {{.*}} : memref<2x4xf32>
// CHECK: vector.load {{.*}} : memref<8x4xf32>, vector<4xf32>
// CHECK-COUNT-2: vector.fma
// CHECK-NOT: vector.fma
// CHECK: return
func.func @small_shapes(%a: memref<2x8xf32>, %b: memref<8x4xf32>, %c: memref<2x4xf32>) {
  linalg.matmul ins(%a, %b : memref<2x8xf32>, memref<8x4xf32>) outs(%c : memref<2x4xf32>)
  return
}

// Wider elements fill a register sooner.

// CHECK-LABEL: func.func @doubles(
// AVX2: vector<8xf64>
// AVX512: vector<32xf64>
// CHECK: return
func.func @doubles(%a: memref<16x16xf64>, %b: memref<16x32xf64>, %c: memref<16x32xf64>) {
  linalg.matmul ins(%a, %b : memref<16x16xf64>, memref<16x32xf64>) outs(%c : memref<16x32xf64>)
  return
}

// Integers have no fused multiply-add.

// CHECK-LABEL: func.func @integers(
// CHECK: %[[LINE:.*]] = vector.load {{.*}} : memref<4x8xi32>, vector<8xi32>
// CHECK: %[[F:.*]] = vector.broadcast %{{.*}} : i32 to vector<8xi32>
// CHECK-NEXT: %[[P:.*]] = arith.muli %[[F]], %[[LINE]] : vector<8xi32>
// CHECK-NEXT: arith.addi %{{.*}}, %[[P]] : vector<8xi32>
// CHECK-NOT: vector.fma
// CHECK: return
func.func @integers(%a: memref<2x4xi32>, %b: memref<4x8xi32>, %c: memref<2x8xi32>) {
  linalg.matmul ins(%a, %b : memref<2x4xi32>, memref<4x8xi32>) outs(%c : memref<2x8xi32>)
  return
}

// Rows that are not contiguous are packed first; a result like that is copied back.

// CHECK-LABEL: func.func @strided(
// CHECK-SAME: %[[A:[a-z0-9]+]]: memref<4x8xf32, strided<[1, 4]>>, %[[B:[a-z0-9]+]]: memref<8x8xf32, strided<[1, 8]>>, %[[C:[a-z0-9]+]]: memref<4x8xf32, strided<[?, ?]>>)
// CHECK: %[[PB:.*]] = memref.alloc() : memref<8x8xf32>
// CHECK-NEXT: linalg.copy ins(%[[B]] : {{.*}}) outs(%[[PB]] :
// CHECK: %[[PC:.*]] = memref.alloc() : memref<4x8xf32>
// CHECK-NEXT: linalg.copy ins(%[[C]] : {{.*}}) outs(%[[PC]] :
// CHECK: vector.load %[[PC]]
// CHECK: vector.load %[[PB]]
// CHECK: memref.load %[[A]]
// CHECK: vector.store %{{.*}}, %[[PC]]
// CHECK: linalg.copy ins(%[[PC]] : {{.*}}) outs(%[[C]] :
func.func @strided(%a: memref<4x8xf32, strided<[1, 4]>>, %b: memref<8x8xf32, strided<[1, 8]>>, %c: memref<4x8xf32, strided<[?, ?]>>) {
  linalg.matmul ins(%a, %b : memref<4x8xf32, strided<[1, 4]>>, memref<8x8xf32, strided<[1, 8]>>) outs(%c : memref<4x8xf32, strided<[?, ?]>>)
  return
}

// Rows of a larger array are contiguous enough.

// CHECK-LABEL: func.func @rows_of_a_larger_array(
// CHECK-NOT: memref.alloc
// CHECK: return
func.func @rows_of_a_larger_array(%a: memref<4x8xf32>, %b: memref<8x8xf32, strided<[?, 1], offset: ?>>, %c: memref<4x8xf32>) {
  linalg.matmul ins(%a, %b : memref<4x8xf32>, memref<8x8xf32, strided<[?, 1], offset: ?>>) outs(%c : memref<4x8xf32>)
  return
}

// Rows of the left factor that are a dynamic number of elements apart have opaque addresses.

// CHECK-LABEL: func.func @left_factor_in_place(
// CHECK: memref.extract_strided_metadata
// CHECK-COUNT-8: llvm.inline_asm "", "=r,0"
// CHECK-NOT: llvm.inline_asm
// CHECK: scf.for {{.*}} iter_args(
// CHECK: %[[P:.*]] = llvm.getelementptr
// CHECK-NEXT: %[[X:.*]] = llvm.load %[[P]] : !llvm.ptr -> f32
// CHECK-NEXT: vector.broadcast %[[X]]
// CHECK-NOT: memref.load
// CHECK: return
func.func @left_factor_in_place(%a: memref<8x8xf32, strided<[?, 1], offset: ?>>, %b: memref<8x8xf32>, %c: memref<8x8xf32>) {
  linalg.matmul ins(%a, %b : memref<8x8xf32, strided<[?, 1], offset: ?>>, memref<8x8xf32>) outs(%c : memref<8x8xf32>)
  return
}

// CHECK-LABEL: func.func @other_ops_stay(
// CHECK-NEXT: linalg.copy
// CHECK-NEXT: return
func.func @other_ops_stay(%a: memref<4x8xf32>, %b: memref<4x8xf32>) {
  linalg.copy ins(%a : memref<4x8xf32>) outs(%b : memref<4x8xf32>)
  return
}
