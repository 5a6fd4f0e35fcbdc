// RUN: proton-opt --pipeline='store-last-iteration' %s | filecheck %s
// RUN: proton-opt --pipeline='store-last-iteration{in-order=true}' %s | filecheck %s --check-prefix=ORDER

// The first turn's tiles add to a row of zeros, the last one's write the memory. What is stored is
// that row where there was no turn.

// CHECK-LABEL: func.func @product(
// CHECK-SAME: %[[OUT:.*]]: memref<f32>, %[[N:.*]]: index
// CHECK: %[[SUMS:.*]] = memref.alloc() : memref<16x32xf32>
// CHECK-NOT: linalg.fill {{.*}} outs(%[[SUMS]]
// CHECK: memref.reinterpret_cast %[[OUT]] {{.*}} strides: [64, 1]
// CHECK: %[[RUNS:.*]] = arith.cmpi slt, %[[FIRST:.*]], %[[N]] : index
// CHECK: %[[ROW:.*]] = memref.alloc() : memref<32xf32>
// CHECK: linalg.fill ins(%{{.*}}) outs(%[[ROW]]
// CHECK: memref.reinterpret_cast {{.*}} sizes: [16, 32], strides: [%{{.*}}, 1]
// CHECK: scf.for %[[I:.*]] = %[[FIRST]] to %[[N]] step %[[STEP:[a-z0-9_]*]] {
// CHECK: %[[IS_FIRST:.*]] = arith.cmpi eq, %[[I]], %[[FIRST]]
// CHECK: %[[LEFT:.*]] = arith.subi %[[N]], %[[I]]
// CHECK: %[[IS_LAST:.*]] = arith.cmpi ule, %[[LEFT]], %[[STEP]]
// CHECK: arith.select %[[IS_FIRST]], %{{.*}} : !llvm.ptr
// CHECK: %[[FROM:.*]] = memref.reinterpret_cast {{.*}} {proton.copied_ahead}
// CHECK: arith.select %[[IS_LAST]], %{{.*}} : !llvm.ptr
// CHECK: %[[TO:.*]] = memref.reinterpret_cast {{.*}} {proton.copied_ahead}
// CHECK: vector.load %[[FROM]]
// CHECK: vector.store %{{.*}}, %[[TO]]
// CHECK: arith.select %[[RUNS]], %{{.*}} : !llvm.ptr
// CHECK: %[[MADE:.*]] = memref.reinterpret_cast
// CHECK: %[[IS_LEFT:.*]] = arith.xori %[[RUNS]]
// CHECK: scf.if %[[IS_LEFT]] {
// CHECK: linalg.copy ins(%[[MADE]]
// CHECK: return
func.func @product(%out: memref<f32>, %n: index) attributes {tt.kernel} {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %c16 = arith.constant 16 : index
  %c32 = arith.constant 32 : index
  %zero = arith.constant 0.0 : f32
  %line = arith.constant dense<1.0> : vector<16xf32>
  %c = memref.alloc() : memref<16x32xf32>
  linalg.fill ins(%zero : f32) outs(%c : memref<16x32xf32>)
  scf.for %i = %c0 to %n step %c16 {
    scf.for %j = %c0 to %c32 step %c16 {
      scf.for %k = %c0 to %c16 step %c8 {
        %sum = vector.load %c[%k, %j] : memref<16x32xf32>, vector<16xf32>
        %more = arith.addf %sum, %line : vector<16xf32>
        vector.store %more, %c[%k, %j] : memref<16x32xf32>, vector<16xf32>
      } {proton.tile_loop}
    }
  }
  %view = memref.reinterpret_cast %out to offset: [0], sizes: [16, 32], strides: [64, 1] : memref<f32> to memref<16x32xf32, strided<[64, 1]>>
  linalg.copy ins(%c : memref<16x32xf32>) outs(%view : memref<16x32xf32, strided<[64, 1]>>)
  return
}

// Where the mask may cut the block, the last turn writes it if it is whole, and otherwise, or where
// there was no turn, the buffer is what is written from. Tiles of which nothing is stored multiply nothing.

// CHECK-LABEL: func.func @cut(
// CHECK-SAME: %[[M:[a-z0-9]+]]: index, %[[K:[a-z0-9]+]]: index)
// CHECK: %[[FULL:.*]] = arith.cmpi eq, %[[M]], %{{.*}} {proton.stored_extent = 0 : i64}
// CHECK: %[[WHOLE:.*]] = arith.andi %[[FULL]], %{{.*}} : i1
// CHECK: %[[IS_LAST:.*]] = arith.cmpi ule
// CHECK: %[[WRITES:.*]] = arith.andi %[[IS_LAST]], %[[WHOLE]]
// CHECK: arith.select %[[WRITES]], %{{.*}} : !llvm.ptr
// CHECK: scf.for %[[J:[a-z0-9]*]] = %{{.*}} {
// CHECK: scf.for %[[I:[a-z0-9]*]] = %{{.*}} {
// CHECK: %[[IN_ROWS:.*]] = arith.cmpi slt, %[[I]], %[[M]] : index
// CHECK: %[[DEPTH:.*]] = arith.select %[[IN_ROWS]], %[[K]], %{{.*}} : index
// CHECK: scf.for %{{.*}} to %[[DEPTH]] step
// CHECK: proton.tile_loop
// CHECK: %[[SUMS:.*]] = memref.reinterpret_cast
// CHECK-NOT: linalg.copy
// CHECK: %[[WRITTEN:.*]] = arith.andi %{{.*}}, %[[WHOLE]]
// CHECK: %[[READ:.*]] = memref.cast %[[SUMS]]
// CHECK: scf.if %[[WRITTEN]] {
// CHECK: } else {
// CHECK: memref.load %[[READ]]
// CHECK: return
func.func @cut(%out: memref<f32>, %n: index, %stride: index, %other: i1, %m: index, %depth: index) attributes {tt.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c16 = arith.constant 16 : index
  %c32 = arith.constant 32 : index
  %zero = arith.constant 0.0 : f32
  %line = arith.constant dense<1.0> : vector<16xf32>
  %c = memref.alloc() : memref<16x32xf32>
  %own = memref.alloc() : memref<16x32xf32>
  linalg.fill ins(%zero : f32) outs(%c : memref<16x32xf32>)
  scf.for %i = %c0 to %n step %c16 {
    scf.for %j = %c0 to %c32 step %c16 {
      scf.for %k = %c0 to %c16 step %c8 {
        %sum = vector.load %c[%k, %j] : memref<16x32xf32>, vector<16xf32>
        %product = scf.for %l = %c0 to %depth step %c1 iter_args(%total = %sum) -> (vector<16xf32>) {
          %more = arith.addf %total, %line : vector<16xf32>
          scf.yield %more : vector<16xf32>
        }
        vector.store %product, %c[%k, %j] : memref<16x32xf32>, vector<16xf32>
      } {proton.tile_loop}
    }
  }
  %full = arith.cmpi eq, %m, %c16 {proton.stored_extent = 0 : i64} : index
  %whole = arith.andi %full, %other : i1
  %target = scf.if %whole -> (memref<16x32xf32, strided<[?, 1], offset: ?>>) {
    %view = memref.reinterpret_cast %out to offset: [%n], sizes: [16, 32], strides: [%stride, 1] : memref<f32> to memref<16x32xf32, strided<[?, 1], offset: ?>>
    scf.yield %view : memref<16x32xf32, strided<[?, 1], offset: ?>>
  } else {
    %cast = memref.cast %own : memref<16x32xf32> to memref<16x32xf32, strided<[?, 1], offset: ?>>
    scf.yield %cast : memref<16x32xf32, strided<[?, 1], offset: ?>>
  }
  linalg.copy ins(%c : memref<16x32xf32>) outs(%target : memref<16x32xf32, strided<[?, 1], offset: ?>>)
  scf.if %whole {
  } else {
    %element = memref.load %target[%c0, %c0] : memref<16x32xf32, strided<[?, 1], offset: ?>>
    memref.store %element, %out[] : memref<f32>
  }
  return
}

// Not where memory is read between, where the address comes from there, where sums begin with
// something else or are used otherwise.

// CHECK-LABEL: func.func @others(
// CHECK-NOT: arith.select
// CHECK: return
func.func @others(%out: memref<f32>, %in: memref<16x32xf32>, %table: memref<?xindex>, %n: index) attributes {tt.kernel} {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %c16 = arith.constant 16 : index
  %c32 = arith.constant 32 : index
  %zero = arith.constant 0.0 : f32
  %line = arith.constant dense<1.0> : vector<16xf32>
  %view = memref.reinterpret_cast %out to offset: [0], sizes: [16, 32], strides: [64, 1] : memref<f32> to memref<16x32xf32, strided<[64, 1]>>
  %a = memref.alloc() : memref<16x32xf32>
  linalg.fill ins(%zero : f32) outs(%a : memref<16x32xf32>)
  scf.for %i = %c0 to %n step %c16 {
    scf.for %j = %c0 to %c32 step %c16 {
      scf.for %k = %c0 to %c16 step %c8 {
        vector.store %line, %a[%k, %j] : memref<16x32xf32>, vector<16xf32>
      } {proton.tile_loop}
    }
  }
  %found = memref.load %table[%c0] : memref<?xindex>
  linalg.copy ins(%a : memref<16x32xf32>) outs(%view : memref<16x32xf32, strided<[64, 1]>>)
  %b = memref.alloc() : memref<16x32xf32>
  linalg.fill ins(%zero : f32) outs(%b : memref<16x32xf32>)
  scf.for %i = %c0 to %n step %c16 {
    scf.for %j = %c0 to %c32 step %c16 {
      scf.for %k = %c0 to %c16 step %c8 {
        vector.store %line, %b[%k, %j] : memref<16x32xf32>, vector<16xf32>
      } {proton.tile_loop}
    }
    %at = memref.load %table[%i] : memref<?xindex>
  }
  linalg.copy ins(%b : memref<16x32xf32>) outs(%view : memref<16x32xf32, strided<[64, 1]>>)
  %c = memref.alloc() : memref<16x32xf32>
  linalg.copy ins(%in : memref<16x32xf32>) outs(%c : memref<16x32xf32>)
  scf.for %i = %c0 to %n step %c16 {
    scf.for %j = %c0 to %c32 step %c16 {
      scf.for %k = %c0 to %c16 step %c8 {
        vector.store %line, %c[%k, %j] : memref<16x32xf32>, vector<16xf32>
      } {proton.tile_loop}
    }
  }
  linalg.copy ins(%c : memref<16x32xf32>) outs(%view : memref<16x32xf32, strided<[64, 1]>>)
  return
}

// Where records say when the store begins as well, but for `in-order`.

// CHECK-LABEL: func.func @recorded(
// CHECK: arith.select
// CHECK: "proton.record"
// CHECK: scf.if
// CHECK: linalg.copy
// CHECK: "proton.record"
// CHECK: return

// ORDER-LABEL: func.func @product(
// ORDER: arith.select
// ORDER-LABEL: func.func @recorded(
// ORDER-NOT: arith.select
// ORDER: return
func.func @recorded(%out: memref<f32>, %n: index) attributes {tt.kernel} {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %c16 = arith.constant 16 : index
  %c32 = arith.constant 32 : index
  %zero = arith.constant 0.0 : f32
  %line = arith.constant dense<1.0> : vector<16xf32>
  %view = memref.reinterpret_cast %out to offset: [0], sizes: [16, 32], strides: [64, 1] : memref<f32> to memref<16x32xf32, strided<[64, 1]>>
  %d = memref.alloc() : memref<16x32xf32>
  linalg.fill ins(%zero : f32) outs(%d : memref<16x32xf32>)
  scf.for %i = %c0 to %n step %c16 {
    scf.for %j = %c0 to %c32 step %c16 {
      scf.for %k = %c0 to %c16 step %c8 {
        vector.store %line, %d[%k, %j] : memref<16x32xf32>, vector<16xf32>
      } {proton.tile_loop}
    }
  }
  "proton.record"() {kinds = [], names = [], operandSegmentSizes = array<i32: 0, 0>, phase = "start", scope = "store"} : () -> ()
  linalg.copy ins(%d : memref<16x32xf32>) outs(%view : memref<16x32xf32, strided<[64, 1]>>)
  "proton.record"() {kinds = [], names = [], operandSegmentSizes = array<i32: 0, 0>, phase = "end", scope = "store"} : () -> ()
  return
}
