// RUN: proton-opt --pipeline='store-last-iteration' %s | filecheck %s

// A large block of whole lines goes past the caches in the last turn, where each of its rows begins
// with a line, and the blocks of all programs have a MiB. A fence comes before what follows the loop.

// CHECK-LABEL: func.func @streamed(
// CHECK: %[[WIDE:.*]] = arith.index_cast %strides#0 : index to i64
// CHECK: %[[STEP:.*]] = arith.muli %[[WIDE]], %{{.*}} : i64
// CHECK: %[[NUMBER:.*]] = llvm.ptrtoint
// CHECK: %[[BITS:.*]] = arith.ori %[[NUMBER]], %[[STEP]] : i64
// CHECK: %[[C63:.*]] = arith.constant 63 : i64
// CHECK: %[[REST:.*]] = arith.andi %[[BITS]], %[[C63]] : i64
// CHECK: %[[ALIGNED:.*]] = arith.cmpi eq, %[[REST]]
// CHECK: %[[X:.*]] = arith.extui %arg6 : i32 to i64
// CHECK-NEXT: %[[Y:.*]] = arith.extui %arg7 : i32 to i64
// CHECK-NEXT: %[[Z:.*]] = arith.extui %arg8 : i32 to i64
// CHECK-NEXT: %[[XY:.*]] = arith.muli %[[X]], %[[Y]] : i64
// CHECK-NEXT: %[[XYZ:.*]] = arith.muli %[[XY]], %[[Z]] : i64
// CHECK-NEXT: %[[C16:.*]] = arith.constant 16 : i64
// CHECK-NEXT: %[[MANY:.*]] = arith.cmpi uge, %[[XYZ]], %[[C16]] : i64
// CHECK-NEXT: %[[SUITS:.*]] = arith.andi %[[ALIGNED]], %[[MANY]] : i1
// CHECK: scf.for
// CHECK: %[[LAST:.*]] = arith.cmpi ule
// CHECK: arith.select %[[LAST]], %{{.*}} : !llvm.ptr
// CHECK: %[[TO:.*]] = memref.reinterpret_cast {{.*}} {proton.copied_ahead}
// CHECK: %[[STREAMED:.*]] = arith.andi %[[LAST]], %[[SUITS]] : i1
// CHECK: scf.if %[[STREAMED]] {
// CHECK-NEXT: vector.store %[[ONE:.*]], %[[TO]][%[[K:.*]], %[[J:.*]]] {alignment = 64 : i64, nontemporal = true}
// CHECK-NEXT: vector.store %[[OTHER:.*]], %[[TO]][%[[K1:.*]], %[[J]]] {alignment = 64 : i64, nontemporal = true}
// CHECK-NEXT: } else {
// CHECK-NEXT: vector.store %[[ONE]], %[[TO]][%[[K]], %[[J]]] :
// CHECK-NEXT: vector.store %[[OTHER]], %[[TO]][%[[K1]], %[[J]]] :
// CHECK-NEXT: }
// CHECK: llvm.inline_asm has_side_effects "sfence", "~{memory}"
// CHECK: linalg.copy
// CHECK: return
func.func @streamed(%out: memref<f32>, %n: index, %stride: index, %px: i32, %py: i32, %pz: i32, %gx: i32, %gy: i32, %gz: i32) attributes {tt.kernel, proton.abi = ["program_x", "program_y", "program_z", "grid_x", "grid_y", "grid_z"]} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c16 = arith.constant 16 : index
  %c128 = arith.constant 128 : index
  %zero = arith.constant 0.0 : f32
  %line = arith.constant dense<1.0> : vector<16xf32>
  %c = memref.alloc() : memref<128x128xf32>
  linalg.fill ins(%zero : f32) outs(%c : memref<128x128xf32>)
  scf.for %i = %c0 to %n step %c16 {
    scf.for %j = %c0 to %c128 step %c16 {
      scf.for %k = %c0 to %c128 step %c2 {
        %k1 = arith.addi %k, %c1 : index
        %sum = vector.load %c[%k, %j] : memref<128x128xf32>, vector<16xf32>
        %sum1 = vector.load %c[%k1, %j] : memref<128x128xf32>, vector<16xf32>
        %more = arith.addf %sum, %line : vector<16xf32>
        %more1 = arith.addf %sum1, %line : vector<16xf32>
        vector.store %more, %c[%k, %j] : memref<128x128xf32>, vector<16xf32>
        vector.store %more1, %c[%k1, %j] : memref<128x128xf32>, vector<16xf32>
      } {proton.tile_loop}
    }
  }
  %view = memref.reinterpret_cast %out to offset: [0], sizes: [128, 128], strides: [%stride, 1] : memref<f32> to memref<128x128xf32, strided<[?, 1]>>
  linalg.copy ins(%c : memref<128x128xf32>) outs(%view : memref<128x128xf32, strided<[?, 1]>>)
  return
}

// Not one whose tiles write half a line.

// CHECK-LABEL: func.func @halves(
// CHECK: arith.select
// CHECK-NOT: nontemporal
// CHECK-NOT: sfence
// CHECK: return
func.func @halves(%out: memref<f32>, %n: index, %px: i32, %py: i32, %pz: i32, %gx: i32, %gy: i32, %gz: i32) attributes {tt.kernel, proton.abi = ["program_x", "program_y", "program_z", "grid_x", "grid_y", "grid_z"]} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c16 = arith.constant 16 : index
  %c128 = arith.constant 128 : index
  %zero = arith.constant 0.0 : f32
  %half = arith.constant dense<1.0> : vector<8xf32>
  %c = memref.alloc() : memref<128x128xf32>
  linalg.fill ins(%zero : f32) outs(%c : memref<128x128xf32>)
  scf.for %i = %c0 to %n step %c16 {
    scf.for %j = %c0 to %c128 step %c8 {
      scf.for %k = %c0 to %c128 step %c1 {
        %sum = vector.load %c[%k, %j] : memref<128x128xf32>, vector<8xf32>
        %more = arith.addf %sum, %half : vector<8xf32>
        vector.store %more, %c[%k, %j] : memref<128x128xf32>, vector<8xf32>
      } {proton.tile_loop}
    }
  }
  %view = memref.reinterpret_cast %out to offset: [0], sizes: [128, 128], strides: [128, 1] : memref<f32> to memref<128x128xf32>
  linalg.copy ins(%c : memref<128x128xf32>) outs(%view : memref<128x128xf32>)
  return
}
