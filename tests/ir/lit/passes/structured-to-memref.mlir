// RUN: proton-opt --pipeline='structured-to-memref{disjoint=true},canonicalize,cse' %s | filecheck %s
// RUN: proton-opt --pipeline='structured-to-memref{disjoint=false},canonicalize,cse' %s | filecheck %s --check-prefix=OVERLAP
// RUN: proton-opt --pipeline='structured-to-memref{disjoint=true}' %s | filecheck %s --check-prefix=RAW

// CHECK-DAG: #[[MAP_D0_D0:.*]] = affine_map<(d0) -> (d0)>
#id = affine_map<(d0) -> (d0)>

// A whole block that nothing writes is read in place; if the arrays may overlap it is copied.

// OVERLAP-LABEL: func.func @in_place(
// OVERLAP: memref.alloc() : memref<8xf32>
// OVERLAP: %[[V:.*]] = memref.reinterpret_cast
// OVERLAP: memref.copy %[[V]], %[[B:.*]] : memref<8xf32, strided<[1]>> to memref<8xf32>
// OVERLAP: bufferization.to_tensor %[[B]]
// CHECK-LABEL: func.func @in_place(
// CHECK-SAME: %{{.*}}: !llvm.ptr, %{{.*}}: !llvm.ptr, %[[A2:arg[0-9]+]]: memref<8xf32>
// CHECK: %[[V0:.*]] = builtin.unrealized_conversion_cast %{{.*}} : !llvm.struct<(ptr, ptr, i64)> to memref<f32>
// CHECK-NEXT: %[[V1:.*]] = memref.reinterpret_cast %[[V0]] to offset: [0], sizes: [8], strides: [1] : memref<f32> to memref<8xf32, strided<[1]>>
// CHECK-NEXT: %[[V2:.*]] = memref.cast %[[V1]] : memref<8xf32, strided<[1]>> to memref<8xf32, strided<[1], offset: ?>>
// CHECK-NEXT: %[[V3:.*]] = bufferization.to_tensor %[[V2]] restrict : memref<8xf32, strided<[1], offset: ?>> to tensor<8xf32>
// CHECK-NEXT: bufferization.materialize_in_destination %[[V3]] in restrict writable %[[A2]] : (tensor<8xf32>, memref<8xf32>) -> ()
func.func @in_place(%p: !llvm.ptr, %q: !llvm.ptr, %o: memref<8xf32>) attributes {tt.kernel, proton.written = array<i64: 1>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %t = "tts.make_tptr"(%p, %c1, %c0) {gathers = array<i64: 0>, wraps = array<i64: 0>, order = array<i64: 0>, operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>} : (!llvm.ptr, index, index) -> !tts.tptr<tensor<8xf32>>
  %x = "tts.load"(%t) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0>} : (!tts.tptr<tensor<8xf32>>) -> tensor<8xf32>
  bufferization.materialize_in_destination %x in restrict writable %o : (tensor<8xf32>, memref<8xf32>) -> ()
  return
}

// What the kernel writes is copied, whatever the launcher has checked.

// CHECK-LABEL: func.func @written_memory_is_copied(
// CHECK: %[[B:.*]] = memref.alloc() : memref<8xf32>
// CHECK: memref.copy %{{.*}}, %[[B]]
// CHECK: bufferization.to_tensor %[[B]]
func.func @written_memory_is_copied(%p: !llvm.ptr, %i: i64, %o: memref<8xf32>) attributes {tt.kernel, proton.written = array<i64: 0>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %q = llvm.getelementptr %p[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f32
  %t = "tts.make_tptr"(%q, %c1, %c0) {gathers = array<i64: 0>, wraps = array<i64: 0>, order = array<i64: 0>, operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>} : (!llvm.ptr, index, index) -> !tts.tptr<tensor<8xf32>>
  %x = "tts.load"(%t) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0>} : (!tts.tptr<tensor<8xf32>>) -> tensor<8xf32>
  bufferization.materialize_in_destination %x in restrict writable %o : (tensor<8xf32>, memref<8xf32>) -> ()
  return
}

// So is everything where a store may go anywhere, and what comes from nobody's argument.

// CHECK-LABEL: func.func @unknown_writes(
// CHECK: memref.copy
// CHECK: return
func.func @unknown_writes(%p: !llvm.ptr, %o: memref<8xf32>) attributes {tt.kernel, proton.written = array<i64: -1>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %t = "tts.make_tptr"(%p, %c1, %c0) {gathers = array<i64: 0>, wraps = array<i64: 0>, order = array<i64: 0>, operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>} : (!llvm.ptr, index, index) -> !tts.tptr<tensor<8xf32>>
  %x = "tts.load"(%t) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0>} : (!tts.tptr<tensor<8xf32>>) -> tensor<8xf32>
  bufferization.materialize_in_destination %x in restrict writable %o : (tensor<8xf32>, memref<8xf32>) -> ()
  return
}

// CHECK-LABEL: func.func @unknown_reads(
// CHECK: memref.copy
// CHECK: return
func.func @unknown_reads(%a: i64, %q: !llvm.ptr, %o: memref<8xf32>) attributes {tt.kernel, proton.written = array<i64: 1>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %p = llvm.inttoptr %a : i64 to !llvm.ptr
  %t = "tts.make_tptr"(%p, %c1, %c0) {gathers = array<i64: 0>, wraps = array<i64: 0>, order = array<i64: 0>, operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>} : (!llvm.ptr, index, index) -> !tts.tptr<tensor<8xf32>>
  %x = "tts.load"(%t) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0>} : (!tts.tptr<tensor<8xf32>>) -> tensor<8xf32>
  bufferization.materialize_in_destination %x in restrict writable %o : (tensor<8xf32>, memref<8xf32>) -> ()
  return
}

// A kernel that writes nothing may read anything in place.

// CHECK-LABEL: func.func @nothing_is_written(
// CHECK-NOT: memref.copy
// CHECK: return
// OVERLAP-LABEL: func.func @nothing_is_written(
// OVERLAP-NOT: memref.copy
// OVERLAP: return
func.func @nothing_is_written(%a: i64, %o: memref<8xf32>) attributes {tt.kernel, proton.written = array<i64>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %p = llvm.inttoptr %a : i64 to !llvm.ptr
  %t = "tts.make_tptr"(%p, %c1, %c0) {gathers = array<i64: 0>, wraps = array<i64: 0>, order = array<i64: 0>, operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>} : (!llvm.ptr, index, index) -> !tts.tptr<tensor<8xf32>>
  %x = "tts.load"(%t) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0>} : (!tts.tptr<tensor<8xf32>>) -> tensor<8xf32>
  bufferization.materialize_in_destination %x in restrict writable %o : (tensor<8xf32>, memref<8xf32>) -> ()
  return
}

// A block that a mask may cut: a buffer is filled, with `other` behind the mask.

// CHECK-LABEL: func.func @cut_block(
// CHECK-SAME: %[[A0:arg[0-9]+]]: !llvm.ptr, %[[A1:arg[0-9]+]]: index, %[[A2:arg[0-9]+]]: index, %[[A3:arg[0-9]+]]: index, %[[A4:arg[0-9]+]]: f32, %[[A5:arg[0-9]+]]: memref<4x8xf32>
// CHECK-DAG: %[[C0_I64:.*]] = arith.constant 0 : i64
// CHECK: %[[V0:.*]] = llvm.mlir.poison : !llvm.struct<(ptr, ptr, i64)>
// CHECK-NEXT: %[[C8:.*]] = arith.constant 8 : index
// CHECK-NEXT: %[[C0:.*]] = arith.constant 0 : index
// CHECK-NEXT: %[[C1:.*]] = arith.constant 1 : index
// CHECK-NEXT: %[[C4:.*]] = arith.constant 4 : index
// CHECK-NEXT: %[[V1:.*]] = arith.cmpi eq, %[[A1]], %[[C4]] : index
// CHECK-NEXT: %[[V2:.*]] = arith.cmpi eq, %[[A2]], %[[C8]] : index
// CHECK-NEXT: %[[V3:.*]] = arith.andi %[[V1]], %[[V2]] : i1
// CHECK-NEXT: %[[V4:.*]] = scf.if %[[V3]] -> (memref<4x8xf32, strided<[?, 1], offset: ?>>) {
// CHECK-NEXT: %[[V5:.*]] = llvm.insertvalue %[[A0]], %[[V0]][0] : !llvm.struct<(ptr, ptr, i64)>
// CHECK-NEXT: %[[V6:.*]] = llvm.insertvalue %[[A0]], %[[V5]][1] : !llvm.struct<(ptr, ptr, i64)>
// CHECK-NEXT: %[[V7:.*]] = llvm.insertvalue %[[C0_I64]], %[[V6]][2] : !llvm.struct<(ptr, ptr, i64)>
// CHECK-NEXT: %[[V8:.*]] = builtin.unrealized_conversion_cast %[[V7]] : !llvm.struct<(ptr, ptr, i64)> to memref<f32>
// CHECK-NEXT: %[[V9:.*]] = memref.reinterpret_cast %[[V8]] to offset: [0], sizes: [4, 8], strides: [%[[A3]], 1] : memref<f32> to memref<4x8xf32, strided<[?, 1]>>
// CHECK-NEXT: %[[V10:.*]] = memref.cast %[[V9]] : memref<4x8xf32, strided<[?, 1]>> to memref<4x8xf32, strided<[?, 1], offset: ?>>
// CHECK-NEXT: scf.yield %[[V10]] : memref<4x8xf32, strided<[?, 1], offset: ?>>
// CHECK-NEXT: } else {
// CHECK-NEXT: %[[V11:.*]] = memref.alloc() : memref<4x8xf32>
// CHECK-NEXT: linalg.fill ins(%[[A4]] : f32) outs(%[[V11]] : memref<4x8xf32>)
// CHECK-NEXT: %[[COUNT:.*]] = arith.maxsi %[[A2]], %[[C0]] : index
// CHECK-NEXT: %[[SIZE:.*]] = arith.muli %[[COUNT]], %[[C4]] : index
// CHECK-NEXT: %[[BYTES:.*]] = arith.index_cast %[[SIZE]] : index to i64
// CHECK: %[[BUFFER:.*]] = llvm.inttoptr
// CHECK-NEXT: scf.for %[[A6:arg[0-9]+]] = %[[C0]] to %[[A1]] step %[[C1]] {
// CHECK-NEXT: %[[OFFSET:.*]] = arith.muli %[[A6]], %[[A3]] : index
// CHECK-NEXT: %[[ROW:.*]] = arith.muli %[[A6]], %[[C8]] : index
// CHECK-NEXT: %[[WIDE_ROW:.*]] = arith.index_cast %[[ROW]] : index to i64
// CHECK-NEXT: %[[TO:.*]] = llvm.getelementptr %[[BUFFER]][%[[WIDE_ROW]]]
// CHECK-NEXT: %[[WIDE:.*]] = arith.index_cast %[[OFFSET]] : index to i64
// CHECK-NEXT: %[[FROM:.*]] = llvm.getelementptr %[[A0]][%[[WIDE]]]
// CHECK-NEXT: "llvm.intr.memcpy"(%[[TO]], %[[FROM]], %[[BYTES]])
// CHECK-NEXT: }
// CHECK-NEXT: %[[V10]] = memref.cast %[[V11]] : memref<4x8xf32> to memref<4x8xf32, strided<[?, 1], offset: ?>>
// CHECK-NEXT: scf.yield %[[V10]] : memref<4x8xf32, strided<[?, 1], offset: ?>>
// CHECK-NEXT: }
// CHECK-NEXT: %[[V13:.*]] = bufferization.to_tensor %[[V4]] restrict : memref<4x8xf32, strided<[?, 1], offset: ?>> to tensor<4x8xf32>
// CHECK-NEXT: bufferization.materialize_in_destination %[[V13]] in restrict writable %[[A5]] : (tensor<4x8xf32>, memref<4x8xf32>) -> ()
// CHECK-NEXT: return
// CHECK-NEXT: }
func.func @cut_block(%p: !llvm.ptr, %n: index, %m: index, %row: index, %y: f32, %o: memref<4x8xf32>) attributes {tt.kernel, proton.written = array<i64>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %t = "tts.make_tptr"(%p, %row, %c1, %c0, %c0) {gathers = array<i64: 0, 0>, wraps = array<i64: 0, 0>, order = array<i64: 1, 0>, operandSegmentSizes = array<i32: 1, 2, 2, 0, 0>} : (!llvm.ptr, index, index, index, index) -> !tts.tptr<tensor<4x8xf32>>
  %x = "tts.load"(%t, %n, %m, %y) {operandSegmentSizes = array<i32: 1, 2, 0, 1, 0>} : (!tts.tptr<tensor<4x8xf32>>, index, index, f32) -> tensor<4x8xf32>
  bufferization.materialize_in_destination %x in restrict writable %o : (tensor<4x8xf32>, memref<4x8xf32>) -> ()
  return
}

// A mask may begin behind the first element: the block is whole where it does not, and what is read
// begins where it does.

// CHECK-LABEL: func.func @begins_later(
// CHECK-SAME: %{{.*}}: !llvm.ptr, %[[END:arg[0-9]+]]: index, %[[START:arg[0-9]+]]: index
// CHECK-DAG: %[[STARTS:.*]] = arith.cmpi eq, %[[START]], %c0
// CHECK-DAG: %[[ENDS:.*]] = arith.cmpi eq, %[[END]], %c8
// CHECK: %[[WHOLE:.*]] = arith.andi %[[ENDS]], %[[STARTS]] : i1
// CHECK: scf.if %[[WHOLE]]
// CHECK: } else {
// CHECK: arith.subi %[[END]], %[[START]] : index
// CHECK: %[[FIRST:.*]] = arith.index_cast %[[START]] : index to i64
// CHECK-NEXT: %[[TO:.*]] = llvm.getelementptr %{{.*}}[%[[FIRST]]]
// CHECK-NEXT: %[[FROM:.*]] = llvm.getelementptr %{{.*}}[%[[FIRST]]]
// CHECK-NEXT: "llvm.intr.memcpy"(%[[TO]], %[[FROM]],
func.func @begins_later(%p: !llvm.ptr, %end: index, %start: index, %o: memref<8xf32>) attributes {tt.kernel, proton.written = array<i64>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %t = "tts.make_tptr"(%p, %c1, %c0) {gathers = array<i64: 0>, wraps = array<i64: 0>, order = array<i64: 0>, operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>} : (!llvm.ptr, index, index) -> !tts.tptr<tensor<8xf32>>
  %x = "tts.load"(%t, %end, %start) {operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>} : (!tts.tptr<tensor<8xf32>>, index, index) -> tensor<8xf32>
  bufferization.materialize_in_destination %x in restrict writable %o : (tensor<8xf32>, memref<8xf32>) -> ()
  return
}

// Without `other` that is 0.

// CHECK-LABEL: func.func @cut_block_of_zeros(
// CHECK: %[[ZERO:.*]] = arith.constant 0 : i16
// CHECK: %[[B:.*]] = memref.alloc() : memref<8xi16>
// CHECK: linalg.fill ins(%[[ZERO]] : i16) outs(%[[B]] : memref<8xi16>)
func.func @cut_block_of_zeros(%p: !llvm.ptr, %n: index, %o: memref<8xi16>) attributes {tt.kernel, proton.written = array<i64>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %t = "tts.make_tptr"(%p, %c1, %c0) {gathers = array<i64: 0>, wraps = array<i64: 0>, order = array<i64: 0>, operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>} : (!llvm.ptr, index, index) -> !tts.tptr<tensor<8xi16>>
  %x = "tts.load"(%t, %n) {operandSegmentSizes = array<i32: 1, 1, 0, 0, 0>} : (!tts.tptr<tensor<8xi16>>, index) -> tensor<8xi16>
  bufferization.materialize_in_destination %x in restrict writable %o : (tensor<8xi16>, memref<8xi16>) -> ()
  return
}

// A mask that is known to be full cuts nothing.

// CHECK-LABEL: func.func @full_mask(
// CHECK-NOT: scf.if
// CHECK-NOT: memref.alloc
// CHECK: return
func.func @full_mask(%p: !llvm.ptr, %o: memref<8xf32>) attributes {tt.kernel, proton.written = array<i64>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %t = "tts.make_tptr"(%p, %c1, %c0) {gathers = array<i64: 0>, wraps = array<i64: 0>, order = array<i64: 0>, operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>} : (!llvm.ptr, index, index) -> !tts.tptr<tensor<8xf32>>
  %x = "tts.load"(%t, %c8) {operandSegmentSizes = array<i32: 1, 1, 0, 0, 0>} : (!tts.tptr<tensor<8xf32>>, index) -> tensor<8xf32>
  bufferization.materialize_in_destination %x in restrict writable %o : (tensor<8xf32>, memref<8xf32>) -> ()
  return
}

// The right factor of a product is packed, though it could be read in place.

// CHECK-LABEL: func.func @packed_for_matmul(
// CHECK: %[[A:.*]] = memref.alloc() : memref<8x8xf32>
// CHECK: memref.copy %{{.*}}, %[[A]]
// CHECK: %[[X:.*]] = bufferization.to_tensor %[[A]] restrict
// CHECK: linalg.matmul ins(%[[X]], %[[X]] :
func.func @packed_for_matmul(%p: !llvm.ptr, %row: index, %acc: tensor<8x8xf32>, %o: memref<8x8xf32>) attributes {tt.kernel, proton.written = array<i64>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %t = "tts.make_tptr"(%p, %row, %c1, %c0, %c0) {gathers = array<i64: 0, 0>, wraps = array<i64: 0, 0>, order = array<i64: 1, 0>, operandSegmentSizes = array<i32: 1, 2, 2, 0, 0>} : (!llvm.ptr, index, index, index, index) -> !tts.tptr<tensor<8x8xf32>>
  %x = "tts.load"(%t) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0>} : (!tts.tptr<tensor<8x8xf32>>) -> tensor<8x8xf32>
  %y = linalg.matmul ins(%x, %x : tensor<8x8xf32>, tensor<8x8xf32>) outs(%acc : tensor<8x8xf32>) -> tensor<8x8xf32>
  bufferization.materialize_in_destination %y in restrict writable %o : (tensor<8x8xf32>, memref<8x8xf32>) -> ()
  return
}

// The left factor is read in place where its rows are contiguous, and copied elsewhere.

// CHECK-LABEL: func.func @left_factors(
// CHECK: %[[V:.*]] = memref.reinterpret_cast {{.*}} sizes: [8, 4], strides: [%{{.*}}, 1]
// CHECK-NOT: memref.copy
// CHECK: %[[A:.*]] = bufferization.to_tensor %{{.*}} restrict
// CHECK: linalg.matmul ins(%[[A]],
// CHECK: %[[B:.*]] = memref.alloc() : memref<8x4xf32>
// CHECK: memref.copy %{{.*}}, %[[B]]
// CHECK: %[[C:.*]] = bufferization.to_tensor %[[B]] restrict
// CHECK: linalg.matmul ins(%[[C]],
func.func @left_factors(%p: !llvm.ptr, %row: index, %b: tensor<4x8xf32>, %acc: tensor<8x8xf32>, %o: memref<8x8xf32>) attributes {tt.kernel, proton.written = array<i64>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %t = "tts.make_tptr"(%p, %row, %c1, %c0, %c0) {gathers = array<i64: 0, 0>, wraps = array<i64: 0, 0>, order = array<i64: 1, 0>, operandSegmentSizes = array<i32: 1, 2, 2, 0, 0>} : (!llvm.ptr, index, index, index, index) -> !tts.tptr<tensor<8x4xf32>>
  %x = "tts.load"(%t) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0>} : (!tts.tptr<tensor<8x4xf32>>) -> tensor<8x4xf32>
  %y = linalg.matmul ins(%x, %b : tensor<8x4xf32>, tensor<4x8xf32>) outs(%acc : tensor<8x8xf32>) -> tensor<8x8xf32>
  %s = "tts.make_tptr"(%p, %row, %row, %c0, %c0) {gathers = array<i64: 0, 0>, wraps = array<i64: 0, 0>, order = array<i64: 1, 0>, operandSegmentSizes = array<i32: 1, 2, 2, 0, 0>} : (!llvm.ptr, index, index, index, index) -> !tts.tptr<tensor<8x4xf32>>
  %u = "tts.load"(%s) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0>} : (!tts.tptr<tensor<8x4xf32>>) -> tensor<8x4xf32>
  %z = linalg.matmul ins(%u, %b : tensor<8x4xf32>, tensor<4x8xf32>) outs(%y : tensor<8x8xf32>) -> tensor<8x8xf32>
  bufferization.materialize_in_destination %z in restrict writable %o : (tensor<8x8xf32>, memref<8x8xf32>) -> ()
  return
}

// A product of two blocks that one mask cuts is as deep as it leaves them, and their buffers need
// no zeros elsewhere.

// CHECK-LABEL: func.func @cut_factors(
// CHECK-SAME: %[[N:[a-z0-9]+]]: index, %{{[a-z0-9]+}}: tensor<8x8xf32>
// CHECK-NOT: linalg.fill
// CHECK: %[[A:.*]] = tensor.extract_slice %{{.*}}[0, 0] [8, %[[N]]] [1, 1] : tensor<8x16xf32> to tensor<8x?xf32>
// CHECK: %[[B:.*]] = tensor.extract_slice %{{.*}}[0, 0] [%[[N]], 8] [1, 1] : tensor<16x8xf32> to tensor<?x8xf32>
// CHECK: linalg.matmul ins(%[[A]], %[[B]] :
// CHECK: return
func.func @cut_factors(%p: !llvm.ptr, %row: index, %n: index, %acc: tensor<8x8xf32>, %o: memref<8x8xf32>) attributes {tt.kernel, proton.written = array<i64>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %zero = arith.constant 0.0 : f32
  %s = "tts.make_tptr"(%p, %row, %c1, %c0, %c0) {gathers = array<i64: 0, 0>, wraps = array<i64: 0, 0>, order = array<i64: 1, 0>, operandSegmentSizes = array<i32: 1, 2, 2, 0, 0>} : (!llvm.ptr, index, index, index, index) -> !tts.tptr<tensor<8x16xf32>>
  %t = "tts.make_tptr"(%p, %row, %c1, %c0, %c0) {gathers = array<i64: 0, 0>, wraps = array<i64: 0, 0>, order = array<i64: 1, 0>, operandSegmentSizes = array<i32: 1, 2, 2, 0, 0>} : (!llvm.ptr, index, index, index, index) -> !tts.tptr<tensor<16x8xf32>>
  %a = "tts.load"(%s, %c8, %n, %zero) {operandSegmentSizes = array<i32: 1, 2, 0, 1, 0>} : (!tts.tptr<tensor<8x16xf32>>, index, index, f32) -> tensor<8x16xf32>
  %b = "tts.load"(%t, %n, %c8, %zero) {operandSegmentSizes = array<i32: 1, 2, 0, 1, 0>} : (!tts.tptr<tensor<16x8xf32>>, index, index, f32) -> tensor<16x8xf32>
  %y = linalg.matmul ins(%a, %b : tensor<8x16xf32>, tensor<16x8xf32>) outs(%acc : tensor<8x8xf32>) -> tensor<8x8xf32>
  bufferization.materialize_in_destination %y in restrict writable %o : (tensor<8x8xf32>, memref<8x8xf32>) -> ()
  return
}

// Not where a mask cuts one of them alone, or leaves something else than zeros; a buffer of which
// other rows or columns are cut has zeros there, and so has one that is read otherwise.

// CHECK-LABEL: func.func @otherwise_cut_factors(
// CHECK-COUNT-4: linalg.fill
// CHECK-NOT: linalg.fill
// CHECK: linalg.matmul ins(%{{.*}} : tensor<8x16xf32>, tensor<16x8xf32>)
// CHECK: linalg.matmul ins(%{{.*}} : tensor<8x16xf32>, tensor<16x8xf32>)
// CHECK: tensor.extract_slice %{{.*}} : tensor<8x16xf32> to tensor<8x?xf32>
// CHECK: linalg.matmul ins(%{{.*}} : tensor<8x?xf32>, tensor<?x8xf32>)
// CHECK: return
func.func @otherwise_cut_factors(%p: !llvm.ptr, %row: index, %n: index, %m: index, %acc: tensor<8x8xf32>, %o: memref<8x8xf32>, %q: memref<16x8xf32>) attributes {tt.kernel, proton.written = array<i64>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c16 = arith.constant 16 : index
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %s = "tts.make_tptr"(%p, %row, %c1, %c0, %c0) {gathers = array<i64: 0, 0>, wraps = array<i64: 0, 0>, order = array<i64: 1, 0>, operandSegmentSizes = array<i32: 1, 2, 2, 0, 0>} : (!llvm.ptr, index, index, index, index) -> !tts.tptr<tensor<8x16xf32>>
  %t = "tts.make_tptr"(%p, %row, %c1, %c0, %c0) {gathers = array<i64: 0, 0>, wraps = array<i64: 0, 0>, order = array<i64: 1, 0>, operandSegmentSizes = array<i32: 1, 2, 2, 0, 0>} : (!llvm.ptr, index, index, index, index) -> !tts.tptr<tensor<16x8xf32>>
  %full = "tts.load"(%s, %c8, %c16, %zero) {operandSegmentSizes = array<i32: 1, 2, 0, 1, 0>} : (!tts.tptr<tensor<8x16xf32>>, index, index, f32) -> tensor<8x16xf32>
  %ones = "tts.load"(%s, %c8, %n, %one) {operandSegmentSizes = array<i32: 1, 2, 0, 1, 0>} : (!tts.tptr<tensor<8x16xf32>>, index, index, f32) -> tensor<8x16xf32>
  %rows = "tts.load"(%s, %m, %n, %zero) {operandSegmentSizes = array<i32: 1, 2, 0, 1, 0>} : (!tts.tptr<tensor<8x16xf32>>, index, index, f32) -> tensor<8x16xf32>
  %b = "tts.load"(%t, %n, %c8, %zero) {operandSegmentSizes = array<i32: 1, 2, 0, 1, 0>} : (!tts.tptr<tensor<16x8xf32>>, index, index, f32) -> tensor<16x8xf32>
  %c = "tts.load"(%t, %n, %c8, %zero) {operandSegmentSizes = array<i32: 1, 2, 0, 1, 0>} : (!tts.tptr<tensor<16x8xf32>>, index, index, f32) -> tensor<16x8xf32>
  %x = linalg.matmul ins(%full, %b : tensor<8x16xf32>, tensor<16x8xf32>) outs(%acc : tensor<8x8xf32>) -> tensor<8x8xf32>
  %y = linalg.matmul ins(%ones, %b : tensor<8x16xf32>, tensor<16x8xf32>) outs(%x : tensor<8x8xf32>) -> tensor<8x8xf32>
  %z = linalg.matmul ins(%rows, %c : tensor<8x16xf32>, tensor<16x8xf32>) outs(%y : tensor<8x8xf32>) -> tensor<8x8xf32>
  bufferization.materialize_in_destination %z in restrict writable %o : (tensor<8x8xf32>, memref<8x8xf32>) -> ()
  bufferization.materialize_in_destination %c in restrict writable %q : (tensor<16x8xf32>, memref<16x8xf32>) -> ()
  return
}

// Rows of the right one that are an even number of cache lines get a free line after them.

// CHECK-LABEL: func.func @padded_right_factor(
// CHECK-DAG: %[[W:.*]] = memref.alloc() : memref<4x48xf32>
// CHECK-DAG: %[[S:.*]] = memref.subview %[[W]][0, 0] [4, 32] [1, 1] : memref<4x48xf32> to memref<4x32xf32, strided<[48, 1]>>
// CHECK: memref.copy %{{.*}}, %[[S]]
// CHECK: %[[B:.*]] = bufferization.to_tensor %[[S]] restrict
// CHECK: linalg.matmul ins(%{{.*}}, %[[B]] :
func.func @padded_right_factor(%p: !llvm.ptr, %row: index, %a: tensor<8x4xf32>, %acc: tensor<8x32xf32>, %o: memref<8x32xf32>) attributes {tt.kernel, proton.written = array<i64>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %t = "tts.make_tptr"(%p, %row, %c1, %c0, %c0) {gathers = array<i64: 0, 0>, wraps = array<i64: 0, 0>, order = array<i64: 1, 0>, operandSegmentSizes = array<i32: 1, 2, 2, 0, 0>} : (!llvm.ptr, index, index, index, index) -> !tts.tptr<tensor<4x32xf32>>
  %b = "tts.load"(%t) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0>} : (!tts.tptr<tensor<4x32xf32>>) -> tensor<4x32xf32>
  %y = linalg.matmul ins(%a, %b : tensor<8x4xf32>, tensor<4x32xf32>) outs(%acc : tensor<8x32xf32>) -> tensor<8x32xf32>
  bufferization.materialize_in_destination %y in restrict writable %o : (tensor<8x32xf32>, memref<8x32xf32>) -> ()
  return
}

// A buffer is row-major: it cannot stand in for a column-major block, which is copied.

// CHECK-LABEL: func.func @column_major(
// CHECK: %[[B:.*]] = memref.alloc() : memref<4x8xf32>
// CHECK: %[[V:.*]] = memref.reinterpret_cast {{.*}} sizes: [4, 8], strides: [1, %{{.*}}]
// CHECK: memref.copy %{{.*}}, %[[B]] : memref<4x8xf32, strided<[1, ?]{{.*}}>> to memref<4x8xf32>
func.func @column_major(%p: !llvm.ptr, %col: index, %o: memref<4x8xf32>) attributes {tt.kernel, proton.written = array<i64>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %t = "tts.make_tptr"(%p, %c1, %col, %c0, %c0) {gathers = array<i64: 0, 0>, wraps = array<i64: 0, 0>, order = array<i64: 0, 1>, operandSegmentSizes = array<i32: 1, 2, 2, 0, 0>} : (!llvm.ptr, index, index, index, index) -> !tts.tptr<tensor<4x8xf32>>
  %x = "tts.load"(%t) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0>} : (!tts.tptr<tensor<4x8xf32>>) -> tensor<4x8xf32>
  bufferization.materialize_in_destination %x in restrict writable %o : (tensor<4x8xf32>, memref<4x8xf32>) -> ()
  return
}

// Whole if (size - 1) * stride is less than what is left of the parent behind the first element.
// Elements that follow each other go through a positive parent, or are copied.

// CHECK-LABEL: func.func @wrap_around(
// CHECK-SAME: %[[A0:arg[0-9]+]]: !llvm.ptr, %[[A1:arg[0-9]+]]: index, %[[A2:arg[0-9]+]]: index, %[[A3:arg[0-9]+]]: memref<8xf32>
// CHECK-DAG: %[[C8:.*]] = arith.constant 8 : index
// CHECK-DAG: %[[C0_I64:.*]] = arith.constant 0 : i64
// CHECK: %[[V0:.*]] = llvm.mlir.poison : !llvm.struct<(ptr, ptr, i64)>
// CHECK-NEXT: %[[C7:.*]] = arith.constant 7 : index
// CHECK-NEXT: %[[C1:.*]] = arith.constant 1 : index
// CHECK-NEXT: %[[C0:.*]] = arith.constant 0 : index
// CHECK-NEXT: %[[V1:.*]] = arith.cmpi eq, %[[A2]], %[[C0]] : index
// CHECK-NEXT: %[[V2:.*]] = arith.select %[[V1]], %[[C1]], %[[A2]] : index
// CHECK-NEXT: %[[V3:.*]] = arith.remsi %[[A1]], %[[V2]] : index
// CHECK-NEXT: %[[V4:.*]] = arith.index_cast %[[V3]] : index to i64
// CHECK-NEXT: %[[V5:.*]] = llvm.getelementptr %[[A0]][%[[V4]]] : (!llvm.ptr, i64) -> !llvm.ptr, f32
// CHECK-NEXT: %[[V6:.*]] = arith.subi %[[V2]], %[[V3]] : index
// CHECK-NEXT: %[[LAST:.*]] = arith.addi %[[V3]], %[[C7]] : index
// CHECK-NEXT: %[[FITS:.*]] = arith.cmpi sgt, %[[V6]], %[[C7]] : index
// CHECK-NEXT: %[[ABOVE:.*]] = arith.cmpi sge, %[[LAST]], %[[C0]] : index
// CHECK-NEXT: %[[SAME_SIDE:.*]] = arith.cmpi sge, %[[A1]], %[[V3]] : index
// CHECK-NEXT: %[[BOTH:.*]] = arith.andi %[[FITS]], %[[ABOVE]] : i1
// CHECK-NEXT: %[[V8:.*]] = arith.andi %[[BOTH]], %[[SAME_SIDE]] : i1
// CHECK-NEXT: %[[V11:.*]] = scf.if %[[V8]] -> (memref<8xf32, strided<[1], offset: ?>>) {
// CHECK-NEXT: %[[V12:.*]] = llvm.insertvalue %[[V5]], %[[V0]][0] : !llvm.struct<(ptr, ptr, i64)>
// CHECK-NEXT: %[[V13:.*]] = llvm.insertvalue %[[V5]], %[[V12]][1] : !llvm.struct<(ptr, ptr, i64)>
// CHECK-NEXT: %[[V14:.*]] = llvm.insertvalue %[[C0_I64]], %[[V13]][2] : !llvm.struct<(ptr, ptr, i64)>
// CHECK-NEXT: %[[V15:.*]] = builtin.unrealized_conversion_cast %[[V14]] : !llvm.struct<(ptr, ptr, i64)> to memref<f32>
// CHECK-NEXT: %[[V16:.*]] = memref.reinterpret_cast %[[V15]] to offset: [0], sizes: [8], strides: [1] : memref<f32> to memref<8xf32, strided<[1]>>
// CHECK-NEXT: %[[V17:.*]] = memref.cast %[[V16]] : memref<8xf32, strided<[1]>> to memref<8xf32, strided<[1], offset: ?>>
// CHECK-NEXT: scf.yield %[[V17]] : memref<8xf32, strided<[1], offset: ?>>
// CHECK-NEXT: } else {
// CHECK-NEXT: %[[V18:.*]] = memref.alloc() : memref<8xf32>
// CHECK: %[[NEXT:.*]] = arith.addi %[[A1]], %[[C1]] : index
// CHECK-NEXT: %[[POSITIVE:.*]] = arith.cmpi sgt, %[[NEXT]], %[[C0]] : index
// CHECK-NEXT: %[[END:.*]] = arith.select %[[POSITIVE]], %{{.*}}, %[[C1]] : index
// CHECK-NEXT: %[[ROOM:.*]] = arith.subi %[[END]], %[[V3]] : index
// CHECK-NEXT: %[[MIDDLE:.*]] = arith.minsi %[[ROOM]], %[[C8]] : index
// CHECK-NEXT: %[[NUMBER:.*]] = arith.addi %[[A1]], %[[MIDDLE]] : index
// CHECK-NEXT: %[[REST:.*]] = arith.remsi %[[NUMBER]], %[[V2]] : index
// CHECK-NEXT: %[[COUNT:.*]] = arith.maxsi %[[MIDDLE]], %[[C0]] : index
// CHECK-NEXT: %[[SIZE:.*]] = arith.muli %[[COUNT]], %{{.*}} : index
// CHECK-NEXT: %[[BYTES:.*]] = arith.index_cast %[[SIZE]] : index to i64
// CHECK: %[[BUFFER:.*]] = llvm.inttoptr
// CHECK-NEXT: "llvm.intr.memcpy"(%[[BUFFER]], %[[V5]], %[[BYTES]])
// CHECK-NEXT: scf.for %[[A5:arg[0-9]+]] = %[[MIDDLE]] to %[[C8]] step %[[C1]] iter_args(%[[HERE:arg[0-9]+]] = %[[REST]]) -> (index) {
// CHECK: %[[TO:.*]] = llvm.getelementptr %[[BUFFER]]
// CHECK-NEXT: %[[WIDE2:.*]] = arith.index_cast %[[HERE]] : index to i64
// CHECK-NEXT: %[[FROM:.*]] = llvm.getelementptr %[[A0]][%[[WIDE2]]]
// CHECK-NEXT: "llvm.intr.memcpy"(%[[TO]], %[[FROM]], %c4_i64)
// CHECK-NOT: remsi
// CHECK: %[[THERE:.*]] = arith.cmpi eq, %{{.*}}, %{{.*}} : index
// CHECK: %[[FOLLOWING:.*]] = arith.select %[[THERE]]
// CHECK-NEXT: scf.yield %[[FOLLOWING]] : index
// CHECK-NEXT: }
// CHECK-NEXT: %[[V17]] = memref.cast %[[V18]] : memref<8xf32> to memref<8xf32, strided<[1], offset: ?>>
// CHECK-NEXT: scf.yield %[[V17]] : memref<8xf32, strided<[1], offset: ?>>
// CHECK-NEXT: }
// CHECK-NEXT: %[[V20:.*]] = bufferization.to_tensor %[[V11]] restrict : memref<8xf32, strided<[1], offset: ?>> to tensor<8xf32>
// CHECK-NEXT: bufferization.materialize_in_destination %[[V20]] in restrict writable %[[A3]] : (tensor<8xf32>, memref<8xf32>) -> ()
// CHECK-NEXT: return
// CHECK-NEXT: }
func.func @wrap_around(%p: !llvm.ptr, %offset: index, %n: index, %o: memref<8xf32>) attributes {tt.kernel, proton.written = array<i64>} {
  %c1 = arith.constant 1 : index
  %t = "tts.make_tptr"(%p, %c1, %offset, %n) {gathers = array<i64: 0>, wraps = array<i64: 1>, order = array<i64: 0>, operandSegmentSizes = array<i32: 1, 1, 1, 1, 0>} : (!llvm.ptr, index, index, index) -> !tts.tptr<tensor<8xf32>>
  %x = "tts.load"(%t) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0>} : (!tts.tptr<tensor<8xf32>>) -> tensor<8xf32>
  bufferization.materialize_in_destination %x in restrict writable %o : (tensor<8xf32>, memref<8xf32>) -> ()
  return
}

// The elementwise op that makes a value for a store alone writes to memory itself.

// CHECK-LABEL: func.func @direct_store(
// CHECK-SAME: %[[A0:arg[0-9]+]]: !llvm.ptr, %[[A1:arg[0-9]+]]: tensor<8xf32>
// CHECK-DAG: %[[C0_I64:.*]] = arith.constant 0 : i64
// CHECK: %[[V0:.*]] = llvm.mlir.poison : !llvm.struct<(ptr, ptr, i64)>
// CHECK-NEXT: %[[V1:.*]] = llvm.insertvalue %[[A0]], %[[V0]][0] : !llvm.struct<(ptr, ptr, i64)>
// CHECK-NEXT: %[[V2:.*]] = llvm.insertvalue %[[A0]], %[[V1]][1] : !llvm.struct<(ptr, ptr, i64)>
// CHECK-NEXT: %[[V3:.*]] = llvm.insertvalue %[[C0_I64]], %[[V2]][2] : !llvm.struct<(ptr, ptr, i64)>
// CHECK-NEXT: %[[V4:.*]] = builtin.unrealized_conversion_cast %[[V3]] : !llvm.struct<(ptr, ptr, i64)> to memref<f32>
// CHECK-NEXT: %[[V5:.*]] = memref.reinterpret_cast %[[V4]] to offset: [0], sizes: [8], strides: [1] : memref<f32> to memref<8xf32, strided<[1]>>
// CHECK-NEXT: %[[V6:.*]] = memref.cast %[[V5]] : memref<8xf32, strided<[1]>> to memref<8xf32, strided<[1], offset: ?>>
// CHECK-NEXT: %[[V7:.*]] = bufferization.to_tensor %[[V6]] restrict writable : memref<8xf32, strided<[1], offset: ?>> to tensor<8xf32>
// CHECK-NEXT: %[[V8:.*]] = linalg.generic {indexing_maps = [#[[MAP_D0_D0]], #[[MAP_D0_D0]]], iterator_types = ["parallel"]} ins(%[[A1]] : tensor<8xf32>) outs(%[[V7]] : tensor<8xf32>) {
// CHECK-NEXT: ^bb0(%[[V9:[a-z0-9_]+]]: f32, %{{.*}}: f32):
// CHECK-NEXT: %[[V10:.*]] = arith.addf %[[V9]], %[[V9]] : f32
// CHECK-NEXT: linalg.yield %[[V10]] : f32
// CHECK-NEXT: } -> tensor<8xf32>
// CHECK-NEXT: bufferization.materialize_in_destination %[[V8]] in restrict writable %[[V6]] : (tensor<8xf32>, memref<8xf32, strided<[1], offset: ?>>) -> ()
// CHECK-NEXT: return
// CHECK-NEXT: }
func.func @direct_store(%q: !llvm.ptr, %x: tensor<8xf32>) attributes {tt.kernel, proton.written = array<i64: 0>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %e = tensor.empty() : tensor<8xf32>
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : tensor<8xf32>) outs(%e : tensor<8xf32>) {
  ^bb0(%l: f32, %o: f32):
    %t = arith.addf %l, %l : f32
    linalg.yield %t : f32
  } -> tensor<8xf32>
  %u = "tts.make_tptr"(%q, %c1, %c0) {gathers = array<i64: 0>, wraps = array<i64: 0>, order = array<i64: 0>, operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>} : (!llvm.ptr, index, index) -> !tts.tptr<tensor<8xf32>>
  "tts.store"(%u, %y) {operandSegmentSizes = array<i32: 1, 1, 0, 0, 0>} : (!tts.tptr<tensor<8xf32>>, tensor<8xf32>) -> ()
  return
}

// With a mask: to memory, or to a buffer of which the unmasked part is written back.

// CHECK-LABEL: func.func @direct_store_of_a_cut_block(
// CHECK-SAME: %[[A0:arg[0-9]+]]: !llvm.ptr, %[[A1:arg[0-9]+]]: tensor<8xf32>, %[[A2:arg[0-9]+]]: index
// CHECK-DAG: %[[C0_I64:.*]] = arith.constant 0 : i64
// CHECK-DAG: %[[C4:.*]] = arith.constant 4 : index
// CHECK: %[[V0:.*]] = llvm.mlir.poison : !llvm.struct<(ptr, ptr, i64)>
// CHECK-DAG: %[[C8:.*]] = arith.constant 8 : index
// CHECK-DAG: %[[C0:.*]] = arith.constant 0 : index
// CHECK: %[[V1:.*]] = arith.cmpi eq, %[[A2]], %[[C8]] {proton.stored_extent = 0 : i64} : index
// CHECK-NEXT: %[[V2:.*]] = scf.if %[[V1]] -> (memref<8xf32, strided<[1], offset: ?>>) {
// CHECK-NEXT: %[[V3:.*]] = llvm.insertvalue %[[A0]], %[[V0]][0] : !llvm.struct<(ptr, ptr, i64)>
// CHECK-NEXT: %[[V4:.*]] = llvm.insertvalue %[[A0]], %[[V3]][1] : !llvm.struct<(ptr, ptr, i64)>
// CHECK-NEXT: %[[V5:.*]] = llvm.insertvalue %[[C0_I64]], %[[V4]][2] : !llvm.struct<(ptr, ptr, i64)>
// CHECK-NEXT: %[[V6:.*]] = builtin.unrealized_conversion_cast %[[V5]] : !llvm.struct<(ptr, ptr, i64)> to memref<f32>
// CHECK-NEXT: %[[V7:.*]] = memref.reinterpret_cast %[[V6]] to offset: [0], sizes: [8], strides: [1] : memref<f32> to memref<8xf32, strided<[1]>>
// CHECK-NEXT: %[[V8:.*]] = memref.cast %[[V7]] : memref<8xf32, strided<[1]>> to memref<8xf32, strided<[1], offset: ?>>
// CHECK-NEXT: scf.yield %[[V8]] : memref<8xf32, strided<[1], offset: ?>>
// CHECK-NEXT: } else {
// CHECK-NEXT: %[[V9:.*]] = memref.alloc() : memref<8xf32>
// CHECK-NEXT: %[[V8]] = memref.cast %[[V9]] : memref<8xf32> to memref<8xf32, strided<[1], offset: ?>>
// CHECK-NEXT: scf.yield %[[V8]] : memref<8xf32, strided<[1], offset: ?>>
// CHECK-NEXT: }
// CHECK-NEXT: %[[V10:.*]] = bufferization.to_tensor %[[V2]] restrict writable : memref<8xf32, strided<[1], offset: ?>> to tensor<8xf32>
// CHECK-NEXT: %[[V11:.*]] = linalg.generic {indexing_maps = [#[[MAP_D0_D0]], #[[MAP_D0_D0]]], iterator_types = ["parallel"]} ins(%[[A1]] : tensor<8xf32>) outs(%[[V10]] : tensor<8xf32>) {
// CHECK-NEXT: ^bb0(%[[V12:[a-z0-9_]+]]: f32, %{{.*}}: f32):
// CHECK-NEXT: %[[V3]] = arith.addf %[[V12]], %[[V12]] : f32
// CHECK-NEXT: linalg.yield %[[V3]] : f32
// CHECK-NEXT: } -> tensor<8xf32>
// CHECK-NEXT: bufferization.materialize_in_destination %[[V11]] in restrict writable %[[V2]] : (tensor<8xf32>, memref<8xf32, strided<[1], offset: ?>>) -> ()
// CHECK-NEXT: scf.if %[[V1]] {
// CHECK-NEXT: } else {
// CHECK-NEXT: %[[COUNT:.*]] = arith.maxsi %[[A2]], %[[C0]] : index
// CHECK-NEXT: %[[BYTES:.*]] = arith.muli %[[COUNT]], %[[C4]] : index
// CHECK-NEXT: %[[SIZE:.*]] = arith.index_cast %[[BYTES]] : index to i64
// CHECK: memref.extract_aligned_pointer_as_index %[[V2]]
// CHECK: %[[FROM:.*]] = llvm.getelementptr
// CHECK-NEXT: "llvm.intr.memcpy"(%[[A0]], %[[FROM]], %[[SIZE]])
// CHECK-NEXT: }
// CHECK-NEXT: return
// CHECK-NEXT: }
func.func @direct_store_of_a_cut_block(%q: !llvm.ptr, %x: tensor<8xf32>, %n: index) attributes {tt.kernel, proton.written = array<i64: 0>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %e = tensor.empty() : tensor<8xf32>
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : tensor<8xf32>) outs(%e : tensor<8xf32>) {
  ^bb0(%l: f32, %o: f32):
    %t = arith.addf %l, %l : f32
    linalg.yield %t : f32
  } -> tensor<8xf32>
  %u = "tts.make_tptr"(%q, %c1, %c0) {gathers = array<i64: 0>, wraps = array<i64: 0>, order = array<i64: 0>, operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>} : (!llvm.ptr, index, index) -> !tts.tptr<tensor<8xf32>>
  "tts.store"(%u, %y, %n) {operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>} : (!tts.tptr<tensor<8xf32>>, tensor<8xf32>, index) -> ()
  return
}

// What has no elementwise op of its own is copied by one (which the canonicalizer folds: the
// value itself is materialized then, as a copy).

// RAW-LABEL: func.func @copied_store(
// RAW: %[[M:.*]] = scf.if
// RAW: %[[D:.*]] = bufferization.to_tensor %[[M]] restrict writable
// RAW-NEXT: %[[C:.*]] = linalg.generic {{.*}} ins(%arg1 : tensor<8xf32>) outs(%[[D]] : tensor<8xf32>) {
// RAW-NEXT: ^bb0(%[[E:[a-z0-9_]+]]: f32, %{{.*}}: f32):
// RAW-NEXT: linalg.yield %[[E]] : f32
// RAW-NEXT: } -> tensor<8xf32>
// RAW-NEXT: bufferization.materialize_in_destination %[[C]] in restrict writable %[[M]]
// CHECK-LABEL: func.func @copied_store(
// CHECK-SAME: %[[A0:arg[0-9]+]]: !llvm.ptr, %[[A1:arg[0-9]+]]: tensor<8xf32>, %[[A2:arg[0-9]+]]: index, %[[A3:arg[0-9]+]]: index
// CHECK-DAG: %[[C1:.*]] = arith.constant 1 : index
// CHECK-DAG: %[[C0:.*]] = arith.constant 0 : index
// CHECK-DAG: %[[C8:.*]] = arith.constant 8 : index
// CHECK-DAG: %[[C0_I64:.*]] = arith.constant 0 : i64
// CHECK-DAG: %[[V0:.*]] = llvm.mlir.poison : !llvm.struct<(ptr, ptr, i64)>
// CHECK: %[[V1:.*]] = arith.cmpi eq, %[[A2]], %[[C8]] {proton.stored_extent = 0 : i64} : index
// CHECK-NEXT: %[[V2:.*]] = scf.if %[[V1]] -> (memref<8xf32, strided<[?], offset: ?>>) {
// CHECK-NEXT: %[[V3:.*]] = llvm.insertvalue %[[A0]], %[[V0]][0] : !llvm.struct<(ptr, ptr, i64)>
// CHECK-NEXT: %[[V4:.*]] = llvm.insertvalue %[[A0]], %[[V3]][1] : !llvm.struct<(ptr, ptr, i64)>
// CHECK-NEXT: %[[V5:.*]] = llvm.insertvalue %[[C0_I64]], %[[V4]][2] : !llvm.struct<(ptr, ptr, i64)>
// CHECK-NEXT: %[[V6:.*]] = builtin.unrealized_conversion_cast %[[V5]] : !llvm.struct<(ptr, ptr, i64)> to memref<f32>
// CHECK-NEXT: %[[V7:.*]] = memref.reinterpret_cast %[[V6]] to offset: [0], sizes: [8], strides: [%[[A3]]] : memref<f32> to memref<8xf32, strided<[?]>>
// CHECK-NEXT: %[[V8:.*]] = memref.cast %[[V7]] : memref<8xf32, strided<[?]>> to memref<8xf32, strided<[?], offset: ?>>
// CHECK-NEXT: scf.yield %[[V8]] : memref<8xf32, strided<[?], offset: ?>>
// CHECK-NEXT: } else {
// CHECK-NEXT: %[[V9:.*]] = memref.alloc() : memref<8xf32>
// CHECK-NEXT: %[[V10:.*]] = memref.cast %[[V9]] : memref<8xf32> to memref<8xf32, strided<[?], offset: ?>>
// CHECK-NEXT: scf.yield %[[V10]] : memref<8xf32, strided<[?], offset: ?>>
// CHECK-NEXT: }
// CHECK-NEXT: bufferization.materialize_in_destination %[[A1]] in restrict writable %[[V2]] : (tensor<8xf32>, memref<8xf32, strided<[?], offset: ?>>) -> ()
// CHECK-NEXT: scf.if %[[V1]] {
// CHECK-NEXT: } else {
// CHECK-NEXT: scf.for %[[A4:arg[0-9]+]] = %[[C0]] to %[[A2]] step %[[C1]] {
// CHECK-NEXT: %[[V11:.*]] = arith.muli %[[A4]], %[[A3]] : index
// CHECK-NEXT: %[[V12:.*]] = arith.index_cast %[[V11]] : index to i64
// CHECK-NEXT: %[[V13:.*]] = llvm.getelementptr %[[A0]][%[[V12]]] : (!llvm.ptr, i64) -> !llvm.ptr, f32
// CHECK-NEXT: %[[V14:.*]] = memref.load %[[V2]][%[[A4]]] : memref<8xf32, strided<[?], offset: ?>>
// CHECK-NEXT: llvm.store %[[V14]], %[[V13]] : f32, !llvm.ptr
// CHECK-NEXT: }
// CHECK-NEXT: }
// CHECK-NEXT: return
// CHECK-NEXT: }
func.func @copied_store(%q: !llvm.ptr, %x: tensor<8xf32>, %n: index, %col: index) attributes {tt.kernel, proton.written = array<i64: 0>} {
  %c0 = arith.constant 0 : index
  %u = "tts.make_tptr"(%q, %col, %c0) {gathers = array<i64: 0>, wraps = array<i64: 0>, order = array<i64: 0>, operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>} : (!llvm.ptr, index, index) -> !tts.tptr<tensor<8xf32>>
  "tts.store"(%u, %x, %n) {operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>} : (!tts.tptr<tensor<8xf32>>, tensor<8xf32>, index) -> ()
  return
}

// A value that is only loaded has no op to write it.

// RAW-LABEL: func.func @a_loaded_value_is_copied(
// RAW: %[[X:.*]] = bufferization.to_tensor %{{.*}} restrict :
// RAW: %[[D:.*]] = bufferization.to_tensor %[[M:.*]] restrict writable
// RAW-NEXT: %[[C:.*]] = linalg.generic {{.*}} ins(%[[X]] : tensor<8xf32>) outs(%[[D]] : tensor<8xf32>) {
// RAW-NEXT: ^bb0(%[[E:[a-z0-9_]+]]: f32, %{{.*}}: f32):
// RAW-NEXT: linalg.yield %[[E]] : f32
// RAW-NEXT: } -> tensor<8xf32>
// RAW-NEXT: bufferization.materialize_in_destination %[[C]] in restrict writable %[[M]]
// CHECK-LABEL: func.func @a_loaded_value_is_copied(
// CHECK-SAME: %[[P:arg[0-9]+]]: !llvm.ptr, %[[Q:arg[0-9]+]]: !llvm.ptr
// CHECK-NOT: memref.alloc
// CHECK: %[[X:.*]] = bufferization.to_tensor %{{.*}} restrict :
// CHECK-NEXT: llvm.insertvalue %[[Q]],
// CHECK: %[[V:.*]] = memref.reinterpret_cast
// CHECK-NEXT: %[[D:.*]] = memref.cast %[[V]]
// CHECK-NEXT: bufferization.materialize_in_destination %[[X]] in restrict writable %[[D]]
// CHECK-NEXT: return
func.func @a_loaded_value_is_copied(%p: !llvm.ptr, %q: !llvm.ptr) attributes {tt.kernel, proton.written = array<i64: 1>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %t = "tts.make_tptr"(%p, %c1, %c0) {gathers = array<i64: 0>, wraps = array<i64: 0>, order = array<i64: 0>, operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>} : (!llvm.ptr, index, index) -> !tts.tptr<tensor<8xf32>>
  %u = "tts.make_tptr"(%q, %c1, %c0) {gathers = array<i64: 0>, wraps = array<i64: 0>, order = array<i64: 0>, operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>} : (!llvm.ptr, index, index) -> !tts.tptr<tensor<8xf32>>
  %x = "tts.load"(%t) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0>} : (!tts.tptr<tensor<8xf32>>) -> tensor<8xf32>
  "tts.store"(%u, %x) {operandSegmentSizes = array<i32: 1, 1, 0, 0, 0>} : (!tts.tptr<tensor<8xf32>>, tensor<8xf32>) -> ()
  return
}

// Nor can an op write to the memory of two stores.

// RAW-LABEL: func.func @a_value_of_two_stores_is_copied(
// RAW: %[[OWN:.*]] = tensor.empty() : tensor<8xf32>
// RAW-NEXT: %[[X:.*]] = linalg.generic {{.*}} outs(%[[OWN]] : tensor<8xf32>) {
// RAW: arith.addf
// RAW: %[[D:.*]] = bufferization.to_tensor %[[M:.*]] restrict writable
// RAW-NEXT: %[[C:.*]] = linalg.generic {{.*}} ins(%[[X]] : tensor<8xf32>) outs(%[[D]] : tensor<8xf32>) {
// RAW-NEXT: ^bb0(%[[E:[a-z0-9_]+]]: f32, %{{.*}}: f32):
// RAW-NEXT: linalg.yield %[[E]] : f32
// RAW-NEXT: } -> tensor<8xf32>
// RAW-NEXT: bufferization.materialize_in_destination %[[C]] in restrict writable %[[M]]
// RAW: %[[D2:.*]] = bufferization.to_tensor %[[M2:.*]] restrict writable
// RAW-NEXT: %[[C2:.*]] = linalg.generic {{.*}} ins(%[[X]] : tensor<8xf32>) outs(%[[D2]] : tensor<8xf32>) {
// RAW-NEXT: ^bb0(%[[E2:[a-z0-9_]+]]: f32, %{{.*}}: f32):
// RAW-NEXT: linalg.yield %[[E2]] : f32
// RAW-NEXT: } -> tensor<8xf32>
// RAW-NEXT: bufferization.materialize_in_destination %[[C2]] in restrict writable %[[M2]]
// CHECK-LABEL: func.func @a_value_of_two_stores_is_copied(
// CHECK-SAME: %[[P:arg[0-9]+]]: !llvm.ptr, %[[Q:arg[0-9]+]]: !llvm.ptr
// CHECK: %[[OWN:.*]] = tensor.empty() : tensor<8xf32>
// CHECK-NEXT: %[[X:.*]] = linalg.generic {{.*}} outs(%[[OWN]] : tensor<8xf32>) {
// CHECK: llvm.insertvalue %[[P]],
// CHECK: bufferization.materialize_in_destination %[[X]] in restrict writable
// CHECK-NEXT: llvm.insertvalue %[[Q]],
// CHECK: bufferization.materialize_in_destination %[[X]] in restrict writable
// CHECK-NEXT: return
func.func @a_value_of_two_stores_is_copied(%p: !llvm.ptr, %q: !llvm.ptr, %x: tensor<8xf32>) attributes {tt.kernel, proton.written = array<i64: 0, 1>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %e = tensor.empty() : tensor<8xf32>
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : tensor<8xf32>) outs(%e : tensor<8xf32>) {
  ^bb0(%l: f32, %o: f32):
    %t = arith.addf %l, %l : f32
    linalg.yield %t : f32
  } -> tensor<8xf32>
  %t = "tts.make_tptr"(%p, %c1, %c0) {gathers = array<i64: 0>, wraps = array<i64: 0>, order = array<i64: 0>, operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>} : (!llvm.ptr, index, index) -> !tts.tptr<tensor<8xf32>>
  %u = "tts.make_tptr"(%q, %c1, %c0) {gathers = array<i64: 0>, wraps = array<i64: 0>, order = array<i64: 0>, operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>} : (!llvm.ptr, index, index) -> !tts.tptr<tensor<8xf32>>
  "tts.store"(%t, %y) {operandSegmentSizes = array<i32: 1, 1, 0, 0, 0>} : (!tts.tptr<tensor<8xf32>>, tensor<8xf32>) -> ()
  "tts.store"(%u, %y) {operandSegmentSizes = array<i32: 1, 1, 0, 0, 0>} : (!tts.tptr<tensor<8xf32>>, tensor<8xf32>) -> ()
  return
}

// A store is in place whatever the order of the dimensions: a row-major buffer can be cast to the
// type of the column-major block, as none of its strides is static.

// CHECK-LABEL: func.func @column_major_store(
// CHECK-SAME: %[[A0:arg[0-9]+]]: !llvm.ptr, %[[A1:arg[0-9]+]]: tensor<4x8xf32>, %[[N:arg[0-9]+]]: index, %[[COL:arg[0-9]+]]: index
// CHECK: %[[WHOLE:.*]] = arith.cmpi eq, %[[N]], %{{.*}} : index
// CHECK-NEXT: %[[M:.*]] = scf.if %[[WHOLE]] -> (memref<4x8xf32, strided<[?, ?], offset: ?>>) {
// CHECK: %[[V:.*]] = memref.reinterpret_cast {{.*}} to offset: [0], sizes: [4, 8], strides: [1, %[[COL]]] : memref<f32> to memref<4x8xf32, strided<[1, ?]>>
// CHECK-NEXT: %[[CV:.*]] = memref.cast %[[V]] : memref<4x8xf32, strided<[1, ?]>> to memref<4x8xf32, strided<[?, ?], offset: ?>>
// CHECK-NEXT: scf.yield %[[CV]]
// CHECK-NEXT: } else {
// CHECK-NEXT: %[[B:.*]] = memref.alloc() : memref<4x8xf32>
// CHECK-NEXT: %[[CB:.*]] = memref.cast %[[B]] : memref<4x8xf32> to memref<4x8xf32, strided<[?, ?], offset: ?>>
// CHECK-NEXT: scf.yield %[[CB]]
// CHECK-NEXT: }
// CHECK-NEXT: %[[D:.*]] = bufferization.to_tensor %[[M]] restrict writable
// CHECK-NEXT: %[[Y:.*]] = linalg.generic {{.*}} ins(%[[A1]] : tensor<4x8xf32>) outs(%[[D]] : tensor<4x8xf32>) {
// CHECK: bufferization.materialize_in_destination %[[Y]] in restrict writable %[[M]]
// CHECK-NEXT: scf.if %[[WHOLE]] {
// CHECK-NEXT: } else {
// CHECK-NEXT: scf.for %[[I:arg[0-9]+]] = %{{.*}} to %[[N]] step
// CHECK-NEXT: scf.for %[[J:arg[0-9]+]] =
// CHECK-NEXT: %[[JS:.*]] = arith.muli %[[J]], %[[COL]] : index
// CHECK-NEXT: %[[IJ:.*]] = arith.addi %[[I]], %[[JS]] : index
// CHECK-NEXT: %[[AT:.*]] = arith.index_cast %[[IJ]] : index to i64
// CHECK-NEXT: %[[PLACE:.*]] = llvm.getelementptr %[[A0]][%[[AT]]] : (!llvm.ptr, i64) -> !llvm.ptr, f32
// CHECK-NEXT: %[[E:.*]] = memref.load %[[M]][%[[I]], %[[J]]]
// CHECK-NEXT: llvm.store %[[E]], %[[PLACE]] : f32, !llvm.ptr
func.func @column_major_store(%q: !llvm.ptr, %x: tensor<4x8xf32>, %n: index, %col: index) attributes {tt.kernel, proton.written = array<i64: 0>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %e = tensor.empty() : tensor<4x8xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%l: f32, %o: f32):
    %t = arith.addf %l, %l : f32
    linalg.yield %t : f32
  } -> tensor<4x8xf32>
  %u = "tts.make_tptr"(%q, %c1, %col, %c0, %c0) {gathers = array<i64: 0, 0>, wraps = array<i64: 0, 0>, order = array<i64: 0, 1>, operandSegmentSizes = array<i32: 1, 2, 2, 0, 0>} : (!llvm.ptr, index, index, index, index) -> !tts.tptr<tensor<4x8xf32>>
  "tts.store"(%u, %y, %n, %c8) {operandSegmentSizes = array<i32: 1, 1, 2, 0, 0>} : (!tts.tptr<tensor<4x8xf32>>, tensor<4x8xf32>, index, index) -> ()
  return
}

// With records in program order a producer stays where it is, in a buffer of its own.

// RAW-LABEL: func.func @program_order(
// RAW: %[[X:.*]] = linalg.generic
// RAW: arith.addf
// RAW: "proton.mark"
// RAW: %[[D:.*]] = bufferization.to_tensor %[[M:.*]] restrict writable
// RAW-NEXT: %[[C:.*]] = linalg.generic {{.*}} ins(%[[X]] : tensor<8xf32>) outs(%[[D]] : tensor<8xf32>) {
// RAW-NEXT: ^bb0(%[[E:[a-z0-9_]+]]: f32, %{{.*}}: f32):
// RAW-NEXT: linalg.yield %[[E]] : f32
// RAW-NEXT: } -> tensor<8xf32>
// RAW-NEXT: bufferization.materialize_in_destination %[[C]] in restrict writable %[[M]]
// CHECK-LABEL: func.func @program_order(
// CHECK: %[[OWN:.*]] = tensor.empty() : tensor<8xf32>
// CHECK-NEXT: %[[X:.*]] = linalg.generic {{.*}} outs(%[[OWN]] : tensor<8xf32>) {
// CHECK: "proton.mark"
// CHECK: %[[V:.*]] = memref.reinterpret_cast
// CHECK-NEXT: %[[D:.*]] = memref.cast %[[V]]
// CHECK-NEXT: bufferization.materialize_in_destination %[[X]] in restrict writable %[[D]]
// CHECK-NEXT: return
func.func @program_order(%q: !llvm.ptr, %x: tensor<8xf32>) attributes {tt.kernel, proton.written = array<i64: 0>, proton.program_order} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %e = tensor.empty() : tensor<8xf32>
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : tensor<8xf32>) outs(%e : tensor<8xf32>) {
  ^bb0(%l: f32, %o: f32):
    %t = arith.addf %l, %l : f32
    linalg.yield %t : f32
  } -> tensor<8xf32>
  "proton.mark"() {mark = "here", names = [], kinds = [], operandSegmentSizes = array<i32: 0, 0>} : () -> ()
  %u = "tts.make_tptr"(%q, %c1, %c0) {gathers = array<i64: 0>, wraps = array<i64: 0>, order = array<i64: 0>, operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>} : (!llvm.ptr, index, index) -> !tts.tptr<tensor<8xf32>>
  "tts.store"(%u, %y) {operandSegmentSizes = array<i32: 1, 1, 0, 0, 0>} : (!tts.tptr<tensor<8xf32>>, tensor<8xf32>) -> ()
  return
}

// A reduction's result has a buffer of its own.

// RAW-LABEL: func.func @a_reduction_is_copied(
// RAW: %[[X:.*]] = linalg.generic {{.*}} outs(%arg2 : tensor<8xf32>) {
// RAW: arith.addf
// RAW: %[[D:.*]] = bufferization.to_tensor %[[M:.*]] restrict writable
// RAW-NEXT: %[[C:.*]] = linalg.generic {{.*}} ins(%[[X]] : tensor<8xf32>) outs(%[[D]] : tensor<8xf32>) {
// RAW-NEXT: ^bb0(%[[E:[a-z0-9_]+]]: f32, %{{.*}}: f32):
// RAW-NEXT: linalg.yield %[[E]] : f32
// RAW-NEXT: } -> tensor<8xf32>
// RAW-NEXT: bufferization.materialize_in_destination %[[C]] in restrict writable %[[M]]
// CHECK-LABEL: func.func @a_reduction_is_copied(
// CHECK-SAME: %[[INIT:arg[0-9]+]]: tensor<8xf32>)
// CHECK: %[[X:.*]] = linalg.generic {{.*}} outs(%[[INIT]] : tensor<8xf32>) {
// CHECK: %[[V:.*]] = memref.reinterpret_cast
// CHECK-NEXT: %[[D:.*]] = memref.cast %[[V]]
// CHECK-NEXT: bufferization.materialize_in_destination %[[X]] in restrict writable %[[D]]
// CHECK-NEXT: return
func.func @a_reduction_is_copied(%q: !llvm.ptr, %x: tensor<8x4xf32>, %init: tensor<8xf32>) attributes {tt.kernel, proton.written = array<i64: 0>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %y = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<8x4xf32>) outs(%init : tensor<8xf32>) {
  ^bb0(%l: f32, %o: f32):
    %t = arith.addf %o, %l : f32
    linalg.yield %t : f32
  } -> tensor<8xf32>
  %u = "tts.make_tptr"(%q, %c1, %c0) {gathers = array<i64: 0>, wraps = array<i64: 0>, order = array<i64: 0>, operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>} : (!llvm.ptr, index, index) -> !tts.tptr<tensor<8xf32>>
  "tts.store"(%u, %y) {operandSegmentSizes = array<i32: 1, 1, 0, 0, 0>} : (!tts.tptr<tensor<8xf32>>, tensor<8xf32>) -> ()
  return
}
