// RUN: proton-opt --pipeline='copy-next-iteration' %s | filecheck %s
// RUN: proton-opt --pipeline='copy-next-iteration{in-place=true}' %s | filecheck %s --check-prefix=BOTH
// RUN: proton-opt --pipeline='copy-next-iteration{in-order=true}' %s | filecheck %s --check-prefix=ORDER

// The first turn copies its block, and each turn's tiles that of the next one, into two buffers.

// CHECK-LABEL: func.func @product(
// CHECK-NOT: memref.alloc() : memref<16x32xf32>
// CHECK: memref.alloc() : memref<2x16x32xf32>
// CHECK: scf.for %[[I:.*]] = %[[FIRST:.*]] to %[[N:.*]] step %[[STEP:[a-z0-9_]*]] iter_args(%[[AT:.*]] = %{{.*}}) -> (index)
// CHECK: %[[PASSED:.*]] = arith.subi %[[I]], %[[FIRST]] : index
// CHECK: %[[IS_LATER:.*]] = arith.cmpi ne, %[[PASSED]], %{{.*}} : index
// CHECK: %[[NUMBER:.*]] = arith.divui %[[PASSED]], %[[STEP]] : index
// CHECK: %[[THIS:.*]] = arith.remui %[[NUMBER]], %{{.*}} : index
// CHECK: %[[OTHER:.*]] = arith.subi %{{.*}}, %[[THIS]] : index
// CHECK: arith.muli %[[THIS]], %{{.*}} : index
// CHECK: memref.reinterpret_cast %{{.*}} sizes: [16, 32], strides: [32, 1] {proton.copied_ahead}
// CHECK: %[[HALF:.*]] = memref.cast
// CHECK: arith.muli %[[OTHER]], %{{.*}} : index
// CHECK: memref.reinterpret_cast %{{.*}} sizes: [16, 32], strides: [32, 1] {proton.copied_ahead}
// CHECK: %[[NEXT:.*]] = memref.cast
// CHECK: %[[LEFT:.*]] = arith.subi %[[N]], %[[I]] : index
// CHECK: %[[GOES_ON:.*]] = arith.cmpi ugt, %[[LEFT]], %[[STEP]] : index
// CHECK: %[[THEN:.*]] = arith.select %[[GOES_ON]], %{{.*}}, %[[AT]] : index
// CHECK: %[[BLOCK:.*]] = memref.reinterpret_cast %{{.*}} to offset: [%[[THEN]]], sizes: [16, 32], strides: [64, 1] {proton.copied_ahead}
// CHECK: %[[MISSING:.*]] = arith.xori %[[IS_LATER]]
// CHECK: scf.if %[[MISSING]] {
// CHECK-NEXT: linalg.copy ins(%{{.*}}) outs(%[[HALF]]
// CHECK: scf.for
// CHECK: scf.for
// CHECK: scf.if %[[GOES_ON]] {
// CHECK: llvm.inline_asm has_side_effects "movl $$2, %ecx; 1: prefetcht0
// CHECK: %[[PART:.*]] = vector.load %[[BLOCK]][%{{.*}}] : {{.*}}, vector<32xf32>
// CHECK: vector.store %[[PART]], %[[NEXT]][%{{.*}}]
// CHECK: vector.load %[[HALF]]
// CHECK: vector.store %{{.*}}
// CHECK: return
func.func @product(%x: memref<f32>, %n: index) attributes {tt.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c16 = arith.constant 16 : index
  %c32 = arith.constant 32 : index
  %block = memref.alloc() : memref<16x32xf32>
  %c = memref.alloc() : memref<16x64xf32>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%at = %c0) -> (index) {
    %view = memref.reinterpret_cast %x to offset: [%at], sizes: [16, 32], strides: [64, 1] : memref<f32> to memref<16x32xf32, strided<[64, 1], offset: ?>>
    linalg.copy ins(%view : memref<16x32xf32, strided<[64, 1], offset: ?>>) outs(%block : memref<16x32xf32>)
    scf.for %j = %c0 to %c32 step %c16 {
      scf.for %k = %c0 to %c16 step %c8 {
        %line = vector.load %block[%k, %j] : memref<16x32xf32>, vector<16xf32>
        vector.store %line, %c[%k, %j] : memref<16x64xf32>, vector<16xf32>
      } {proton.tile_loop}
    }
    %jump = arith.addi %at, %c32 : index
    scf.yield %jump : index
  }
  return
}

// A block that may be cut is copied ahead where it is whole. One that is read in place is left so,
// or by the option is copied for all turns but the first, if its rows lie a multiple of 8 KiB apart.

// CHECK-LABEL: func.func @cut(
// CHECK: scf.for
// CHECK: %[[IS_LATER:.*]] = arith.cmpi ne
// CHECK: %[[WHOLE_LATER:.*]] = arith.cmpi sle
// CHECK: %[[COPIES:.*]] = arith.andi %{{.*}}, %[[WHOLE_LATER]] : i1
// CHECK: %[[IN_PLACE:.*]] = scf.if
// CHECK: %[[COPIED:.*]] = arith.andi %[[IS_LATER]], %[[WHOLE:.*]] : i1
// CHECK: %[[MISSING:.*]] = arith.xori %[[COPIED]]
// CHECK: scf.if %[[MISSING]] {
// CHECK-NEXT: scf.if %[[WHOLE]] {
// CHECK: scf.for
// CHECK: scf.for
// CHECK: scf.if %[[COPIES]] {
// CHECK-NOT: scf.if
// CHECK: vector.load %[[IN_PLACE]]
// CHECK: return

// BOTH-LABEL: func.func @cut(
// BOTH-COUNT-2: memref.alloc() : memref<2x16x32xf32>
// BOTH: scf.for
// BOTH: %[[IS_LATER:.*]] = arith.cmpi ne
// BOTH: arith.constant 2048 : index
// BOTH: %[[REST:.*]] = arith.remui
// BOTH: %[[CROWDED:.*]] = arith.cmpi eq, %[[REST]]
// BOTH: %[[IN_PLACE:.*]] = scf.if
// BOTH: arith.andi %[[IS_LATER]]
// BOTH: linalg.copy
// BOTH: %[[AHEAD:.*]] = arith.andi %[[IS_LATER]], %[[CROWDED]] : i1
// BOTH: %[[COPIED:.*]] = arith.andi %[[AHEAD]], %{{.*}} : i1
// BOTH: llvm.getelementptr
// BOTH: arith.select %[[COPIED]], %{{.*}} : !llvm.ptr
// BOTH: arith.select %[[COPIED]], %{{.*}} : index
// BOTH: %[[READ:.*]] = memref.reinterpret_cast {{.*}} {proton.copied_ahead}
// BOTH: %[[CAST:.*]] = memref.cast %[[READ]]
// BOTH: scf.for
// BOTH: scf.for
// BOTH: arith.xori %[[CROWDED]]
// BOTH: scf.if
// BOTH: llvm.inline_asm {{.*}}prefetcht1
// BOTH: scf.if
// BOTH: llvm.inline_asm {{.*}}prefetcht0
// BOTH: scf.if
// BOTH: llvm.inline_asm {{.*}}prefetcht0
// BOTH: vector.load %[[CAST]]
// BOTH: return
func.func @cut(%x: memref<f32>, %n: index, %stride: index, %from: !llvm.ptr) attributes {tt.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c16 = arith.constant 16 : index
  %c32 = arith.constant 32 : index
  %zero = arith.constant 0.0 : f32
  %block = memref.alloc() : memref<16x32xf32>
  %own = memref.alloc() : memref<16x32xf32>
  %c = memref.alloc() : memref<16x32xf32>
  scf.for %i = %c0 to %n step %c16 {
    %end = arith.addi %i, %c16 : index
    %whole = arith.cmpi sle, %end, %n : index
    %a = scf.if %whole -> (memref<16x32xf32, strided<[?, 1], offset: ?>>) {
      %view = memref.reinterpret_cast %x to offset: [%i], sizes: [16, 32], strides: [%stride, 1] : memref<f32> to memref<16x32xf32, strided<[?, 1], offset: ?>>
      scf.yield %view : memref<16x32xf32, strided<[?, 1], offset: ?>>
    } else {
      linalg.fill ins(%zero : f32) outs(%own : memref<16x32xf32>)
      %cast = memref.cast %own : memref<16x32xf32> to memref<16x32xf32, strided<[?, 1], offset: ?>>
      scf.yield %cast : memref<16x32xf32, strided<[?, 1], offset: ?>>
    }
    scf.if %whole {
      %view = memref.reinterpret_cast %x to offset: [%end], sizes: [16, 32], strides: [64, 1] : memref<f32> to memref<16x32xf32, strided<[64, 1], offset: ?>>
      linalg.copy ins(%view : memref<16x32xf32, strided<[64, 1], offset: ?>>) outs(%block : memref<16x32xf32>)
    } else {
      %number = memref.extract_aligned_pointer_as_index %block : memref<16x32xf32> -> index
      %wide = arith.index_cast %number : index to i64
      %address = llvm.inttoptr %wide : i64 to !llvm.ptr
      %row = llvm.getelementptr %address[%wide] : (!llvm.ptr, i64) -> !llvm.ptr, f32
      linalg.fill ins(%zero : f32) outs(%block : memref<16x32xf32>)
      "llvm.intr.memcpy"(%row, %from, %wide) <{isVolatile = false}> : (!llvm.ptr, !llvm.ptr, i64) -> ()
    }
    scf.for %j = %c0 to %c32 step %c16 {
      scf.for %k = %c0 to %c16 step %c8 {
        %left = vector.load %a[%k, %j] : memref<16x32xf32, strided<[?, 1], offset: ?>>, vector<16xf32>
        %right = vector.load %block[%k, %j] : memref<16x32xf32>, vector<16xf32>
        %sum = arith.addf %left, %right : vector<16xf32>
        vector.store %sum, %c[%k, %j] : memref<16x32xf32>, vector<16xf32>
      } {proton.tile_loop}
    }
  }
  return
}

// Not where the loop writes memory, where something else reads the block, where its address comes
// from memory or stays, or where a row is no power of two of lines.

// CHECK-LABEL: func.func @others(
// CHECK-NOT: memref<2x
// CHECK-NOT: copied_ahead
// CHECK: return
func.func @others(%x: memref<f32>, %out: memref<16x32xf32>, %table: memref<?xindex>, %n: index, %to: !llvm.ptr, %source: !llvm.ptr, %size: i64) attributes {tt.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c16 = arith.constant 16 : index
  %c32 = arith.constant 32 : index
  %one = arith.constant 1.0 : f32
  %block0 = memref.alloc() : memref<16x32xf32>
  %block1 = memref.alloc() : memref<16x32xf32>
  %block2 = memref.alloc() : memref<16x32xf32>
  %block3 = memref.alloc() : memref<16x32xf32>
  %block4 = memref.alloc() : memref<16x32xf32>
  %long = memref.alloc() : memref<16x48xf32>
  %c = memref.alloc() : memref<16x32xf32>
  scf.for %i = %c0 to %n step %c16 {
    %view = memref.reinterpret_cast %x to offset: [%i], sizes: [16, 32], strides: [64, 1] : memref<f32> to memref<16x32xf32, strided<[64, 1], offset: ?>>
    linalg.copy ins(%view : memref<16x32xf32, strided<[64, 1], offset: ?>>) outs(%block0 : memref<16x32xf32>)
    scf.for %j = %c0 to %c32 step %c16 {
      scf.for %k = %c0 to %c16 step %c8 {
        %line = vector.load %block0[%k, %j] : memref<16x32xf32>, vector<16xf32>
        vector.store %line, %out[%k, %j] : memref<16x32xf32>, vector<16xf32>
      } {proton.tile_loop}
    }
  }
  scf.for %i = %c0 to %n step %c16 {
    %view = memref.reinterpret_cast %x to offset: [%i], sizes: [16, 32], strides: [64, 1] : memref<f32> to memref<16x32xf32, strided<[64, 1], offset: ?>>
    linalg.copy ins(%view : memref<16x32xf32, strided<[64, 1], offset: ?>>) outs(%block1 : memref<16x32xf32>)
    memref.store %one, %block1[%c1, %c1] : memref<16x32xf32>
    scf.for %j = %c0 to %c32 step %c16 {
      scf.for %k = %c0 to %c16 step %c8 {
        %line = vector.load %block1[%k, %j] : memref<16x32xf32>, vector<16xf32>
        vector.store %line, %c[%k, %j] : memref<16x32xf32>, vector<16xf32>
      } {proton.tile_loop}
    }
  }
  scf.for %i = %c0 to %n step %c16 {
    %found = memref.load %table[%i] : memref<?xindex>
    %from = memref.reinterpret_cast %x to offset: [%found], sizes: [16, 32], strides: [64, 1] : memref<f32> to memref<16x32xf32, strided<[64, 1], offset: ?>>
    linalg.copy ins(%from : memref<16x32xf32, strided<[64, 1], offset: ?>>) outs(%block2 : memref<16x32xf32>)
    scf.for %j = %c0 to %c32 step %c16 {
      scf.for %k = %c0 to %c16 step %c8 {
        %line = vector.load %block2[%k, %j] : memref<16x32xf32>, vector<16xf32>
        vector.store %line, %c[%k, %j] : memref<16x32xf32>, vector<16xf32>
      } {proton.tile_loop}
    }
  }
  scf.for %i = %c0 to %n step %c16 {
    %same = memref.reinterpret_cast %x to offset: [0], sizes: [16, 32], strides: [64, 1] : memref<f32> to memref<16x32xf32, strided<[64, 1]>>
    %odd = memref.reinterpret_cast %x to offset: [%i], sizes: [16, 48], strides: [64, 1] : memref<f32> to memref<16x48xf32, strided<[64, 1], offset: ?>>
    linalg.copy ins(%same : memref<16x32xf32, strided<[64, 1]>>) outs(%block3 : memref<16x32xf32>)
    linalg.copy ins(%odd : memref<16x48xf32, strided<[64, 1], offset: ?>>) outs(%long : memref<16x48xf32>)
    scf.for %j = %c0 to %c32 step %c16 {
      scf.for %k = %c0 to %c16 step %c8 {
        %line = vector.load %block3[%k, %j] : memref<16x32xf32>, vector<16xf32>
        %other = vector.load %long[%k, %j] : memref<16x48xf32>, vector<16xf32>
        %sum = arith.addf %line, %other : vector<16xf32>
        vector.store %sum, %c[%k, %j] : memref<16x32xf32>, vector<16xf32>
      } {proton.tile_loop}
    }
  }
  scf.for %i = %c0 to %n step %c16 {
    %view = memref.reinterpret_cast %x to offset: [%i], sizes: [16, 32], strides: [64, 1] : memref<f32> to memref<16x32xf32, strided<[64, 1], offset: ?>>
    linalg.copy ins(%view : memref<16x32xf32, strided<[64, 1], offset: ?>>) outs(%block4 : memref<16x32xf32>)
    "llvm.intr.memcpy"(%to, %source, %size) <{isVolatile = false}> : (!llvm.ptr, !llvm.ptr, i64) -> ()
    scf.for %j = %c0 to %c32 step %c16 {
      scf.for %k = %c0 to %c16 step %c8 {
        %line = vector.load %block4[%k, %j] : memref<16x32xf32>, vector<16xf32>
        vector.store %line, %c[%k, %j] : memref<16x32xf32>, vector<16xf32>
      } {proton.tile_loop}
    }
  }
  return
}

// Behind a record as well, but for `in-order`; the share has the scope of the copy.

// CHECK-LABEL: func.func @recorded(
// CHECK: memref.alloc() : memref<2x16x32xf32>
// CHECK: "proton.record"() {{.*}} scope = "load"
// CHECK: scf.if
// CHECK-NEXT: linalg.copy
// CHECK: "proton.record"() {{.*}} scope = "load"
// CHECK: "proton.record"() {{.*}} scope = "dot"
// CHECK: scf.for
// CHECK: llvm.inline_asm has_side_effects
// CHECK: "proton.record"() {{.*}} scope = "dot"
// CHECK: return

// ORDER-LABEL: func.func @product(
// ORDER: memref<2x16x32xf32>
// ORDER-LABEL: func.func @recorded(
// ORDER-NOT: memref<2x
// ORDER-NOT: copied_ahead
// ORDER: return
func.func @recorded(%x: memref<f32>, %n: index) attributes {tt.kernel} {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %c16 = arith.constant 16 : index
  %c32 = arith.constant 32 : index
  %block = memref.alloc() : memref<16x32xf32>
  %c = memref.alloc() : memref<16x32xf32>
  scf.for %i = %c0 to %n step %c16 {
    %view = memref.reinterpret_cast %x to offset: [%i], sizes: [16, 32], strides: [64, 1] : memref<f32> to memref<16x32xf32, strided<[64, 1], offset: ?>>
    "proton.record"() {kinds = [], names = [], operandSegmentSizes = array<i32: 0, 0>, phase = "start", scope = "load"} : () -> ()
    linalg.copy ins(%view : memref<16x32xf32, strided<[64, 1], offset: ?>>) outs(%block : memref<16x32xf32>)
    "proton.record"() {kinds = [], names = [], operandSegmentSizes = array<i32: 0, 0>, phase = "end", scope = "load"} : () -> ()
    "proton.record"() {kinds = [], names = [], operandSegmentSizes = array<i32: 0, 0>, phase = "start", scope = "dot"} : () -> ()
    scf.for %j = %c0 to %c32 step %c16 {
      scf.for %k = %c0 to %c16 step %c8 {
        %line = vector.load %block[%k, %j] : memref<16x32xf32>, vector<16xf32>
        vector.store %line, %c[%k, %j] : memref<16x32xf32>, vector<16xf32>
      } {proton.tile_loop}
    }
    "proton.record"() {kinds = [], names = [], operandSegmentSizes = array<i32: 0, 0>, phase = "end", scope = "dot"} : () -> ()
  }
  return
}
