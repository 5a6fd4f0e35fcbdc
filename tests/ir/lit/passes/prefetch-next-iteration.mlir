// RUN: proton-opt --pipeline='prefetch-next-iteration' %s | filecheck %s

// The next turn's row is fetched in equal shares, lines 0 to 31 and 32 to 63, before each loop of
// this turn. In the last turn it is that turn's own.

// CHECK-LABEL: func.func @rows(
// CHECK: scf.for %[[I:.*]] = %{{.*}} to %[[N:.*]] step %[[STEP:.*]] {
// CHECK-NEXT: %[[J:.*]] = arith.addi %[[I]], %[[STEP]] : index
// CHECK: %[[LEFT:.*]] = arith.subi %[[N]], %[[I]]
// CHECK: %[[GOES_ON:.*]] = arith.cmpi ugt, %[[LEFT]], %[[STEP]]
// CHECK: %[[THEN:.*]] = arith.select %[[GOES_ON]], %[[J]], %[[I]] : index
// CHECK: memref.reinterpret_cast %{{.*}} to offset: [%[[THEN]]], sizes: [1024]
// CHECK: %[[AT:.*]] = arith.constant 0 : index
// CHECK: arith.muli %[[AT]], %{{.*}} : index
// CHECK: llvm.inline_asm has_side_effects "movl $$32, %ecx; 1: prefetcht0 ($0); addq $$64, $0; decl %ecx; jnz 1b", "=r,0,~{rcx},~{flags}"
// CHECK: linalg.generic
// CHECK: %[[AT:.*]] = arith.constant 1 : index
// CHECK: arith.muli %[[AT]], %{{.*}} : index
// CHECK: "movl $$32, %ecx; 1: prefetcht0
// CHECK: linalg.generic
// CHECK-NOT: prefetcht
// CHECK: return
func.func @rows(%x: memref<f32>, %out: memref<1024xf32>, %n: index) attributes {tt.kernel} {
  %c0 = arith.constant 0 : index
  %step = arith.constant 1024 : index
  scf.for %i = %c0 to %n step %step {
    %row = memref.reinterpret_cast %x to offset: [%i], sizes: [1024], strides: [1] : memref<f32> to memref<1024xf32, strided<[1], offset: ?>>
    linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%row : memref<1024xf32, strided<[1], offset: ?>>) outs(%out : memref<1024xf32>) {
    ^bb0(%a: f32, %b: f32):
      %s = arith.addf %a, %b : f32
      linalg.yield %s : f32
    }
    linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} outs(%out : memref<1024xf32>) {
    ^bb0(%b: f32):
      %s = arith.addf %b, %b : f32
      linalg.yield %s : f32
    }
  }
  return
}

// A product's tiles share the fetches of what the next turn copies; its address is carried, and
// is computed before the copy. 32 lines for 4 tiles: 8 for each, in 4 rows of 2.

// CHECK-LABEL: func.func @product(
// CHECK: scf.for %{{.*}} iter_args(%[[AT:.*]] = %{{.*}}) -> (index)
// CHECK-NEXT: %[[JUMP:.*]] = arith.addi %[[AT]], %{{.*}} : index
// CHECK: %[[THEN:.*]] = arith.select %{{.*}}, %[[JUMP]], %[[AT]] : index
// CHECK: memref.reinterpret_cast %{{.*}} to offset: [%[[THEN]]], sizes: [16, 32]
// CHECK: linalg.copy
// CHECK: scf.for %[[COLUMN:.*]] =
// CHECK: scf.for %[[ROW:.*]] =
// CHECK-NEXT: %[[C:.*]] = arith.divui %[[COLUMN]]
// CHECK-NEXT: %[[R:.*]] = arith.divui %[[ROW]]
// CHECK: %[[ROWS:.*]] = arith.constant 4 : index
// CHECK: arith.muli %{{.*}}, %[[ROWS]] : index
// CHECK: scf.for
// CHECK: llvm.inline_asm has_side_effects "movl $$2, %ecx; 1: prefetcht0
// CHECK: memref.store
// CHECK-NOT: prefetcht
// CHECK: return
func.func @product(%x: memref<f32>, %block: memref<16x32xf32>, %c: memref<16x32xf32>, %tile: f32, %n: index) attributes {tt.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c16 = arith.constant 16 : index
  %c32 = arith.constant 32 : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%at = %c0) -> (index) {
    %view = memref.reinterpret_cast %x to offset: [%at], sizes: [16, 32], strides: [64, 1] : memref<f32> to memref<16x32xf32, strided<[64, 1], offset: ?>>
    linalg.copy ins(%view : memref<16x32xf32, strided<[64, 1], offset: ?>>) outs(%block : memref<16x32xf32>)
    scf.for %j = %c0 to %c32 step %c16 {
      scf.for %k = %c0 to %c16 step %c8 {
        memref.store %tile, %c[%k, %j] : memref<16x32xf32>
      } {proton.tile_loop}
    }
    %jump = arith.addi %at, %c32 : index
    scf.yield %jump : index
  }
  return
}

// Not what is written, what all turns read, what is small, or what comes from memory.

// CHECK-LABEL: func.func @others(
// CHECK-NOT: prefetcht
// CHECK: return
func.func @others(%x: memref<f32>, %table: memref<?xindex>, %out: memref<128xf32>, %n: index) attributes {tt.kernel} {
  %c0 = arith.constant 0 : index
  %step = arith.constant 1024 : index
  scf.for %i = %c0 to %n step %step {
    %found = memref.load %table[%i] : memref<?xindex>
    %read = memref.reinterpret_cast %x to offset: [%found], sizes: [1024], strides: [1] : memref<f32> to memref<1024xf32, strided<[1], offset: ?>>
    %same = memref.reinterpret_cast %x to offset: [0], sizes: [1024], strides: [1] : memref<f32> to memref<1024xf32, strided<[1]>>
    %small = memref.reinterpret_cast %x to offset: [%i], sizes: [128], strides: [1] : memref<f32> to memref<128xf32, strided<[1], offset: ?>>
    %written = memref.reinterpret_cast %x to offset: [%i], sizes: [1024], strides: [1] : memref<f32> to memref<1024xf32, strided<[1], offset: ?>>
    linalg.copy ins(%small : memref<128xf32, strided<[1], offset: ?>>) outs(%out : memref<128xf32>)
    linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%read, %same : memref<1024xf32, strided<[1], offset: ?>>, memref<1024xf32, strided<[1]>>) outs(%written : memref<1024xf32, strided<[1], offset: ?>>) {
    ^bb0(%a: f32, %b: f32, %c: f32):
      %s = arith.addf %a, %b : f32
      linalg.yield %s : f32
    }
  }
  return
}
