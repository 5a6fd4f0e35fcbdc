// RUN: proton-opt --pipeline='structured-to-memref{disjoint=true},canonicalize,cse' %s | filecheck %s
// RUN: proton-opt --pipeline='structured-to-memref,triton-pointers-to-llvm,canonicalize,cse' %s | filecheck %s --check-prefix=BOTH

// Where a dimension gathers, each row is read from its own place, at once, and never in place.

// CHECK-LABEL: func.func @gathers(
// CHECK-SAME: %[[P:.*]]: !llvm.ptr, %[[ROWS:.*]]: tensor<4xi64>, %[[N:.*]]: index
// CHECK-NOT: scf.if
// CHECK: %[[B:.*]] = memref.alloc() : memref<4x8xf32>
// CHECK: linalg.fill
// CHECK: %[[SIZE:.*]] = arith.muli %{{.*}}, %c4 : index
// CHECK: %[[BYTES:.*]] = arith.index_cast %[[SIZE]] : index to i64
// CHECK: scf.for %[[I:.*]] = %c0 to %c4 step %c1 {
// CHECK: %[[ROW:.*]] = tensor.extract %[[ROWS]][%[[I]]] : tensor<4xi64>
// CHECK-NOT: scf.for
// CHECK: %[[FROM:.*]] = llvm.getelementptr %[[P]][%[[ROW]]]
// CHECK: "llvm.intr.memcpy"(%{{.*}}, %[[FROM]], %[[BYTES]])
func.func @gathers(%p: !llvm.ptr, %rows: tensor<4xi64>, %n: index, %o: memref<4x8xf32>) attributes {tt.kernel, proton.written = array<i64>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %r = tensor.cast %rows : tensor<4xi64> to tensor<?xi64>
  %t = "tts.make_tptr"(%p, %c0, %c1, %c0, %c0, %r) {gathers = array<i64: 1, 0>, wraps = array<i64: 0, 0>, order = array<i64: 1, 0>, operandSegmentSizes = array<i32: 1, 2, 2, 0, 1>} : (!llvm.ptr, index, index, index, index, tensor<?xi64>) -> !tts.tptr<tensor<4x8xf32>>
  %x = "tts.load"(%t, %c4, %n) {operandSegmentSizes = array<i32: 1, 2, 0, 0, 0>} : (!tts.tptr<tensor<4x8xf32>>, index, index) -> tensor<4x8xf32>
  bufferization.materialize_in_destination %x in restrict writable %o : (tensor<4x8xf32>, memref<4x8xf32>) -> ()
  return
}

// A mask that is no box chooses between memory and `other`, so that a vector's load is masked.

// CHECK-LABEL: func.func @chooses(
// CHECK-SAME: %[[P:.*]]: !llvm.ptr, %[[M:.*]]: tensor<8xi1>, %[[OTHER:.*]]: f32
// CHECK-NOT: linalg.fill
// CHECK: scf.for %[[I:.*]] = %c0 to %c8 step %c1 {
// CHECK: %[[TRUE:.*]] = tensor.extract %[[M]][%[[I]]] : tensor<8xi1>
// CHECK-NEXT: %[[V:.*]] = scf.if %[[TRUE]] -> (f32) {
// CHECK: llvm.load
// CHECK: } else {
// CHECK-NEXT: scf.yield %[[OTHER]] : f32
// CHECK: memref.store %[[V]]
func.func @chooses(%p: !llvm.ptr, %m: tensor<8xi1>, %y: f32, %o: memref<8xf32>) attributes {tt.kernel, proton.written = array<i64>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %t = "tts.make_tptr"(%p, %c1, %c0) {gathers = array<i64: 0>, wraps = array<i64: 0>, order = array<i64: 0>, operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>} : (!llvm.ptr, index, index) -> !tts.tptr<tensor<8xf32>>
  %x = "tts.load"(%t, %y, %m) {operandSegmentSizes = array<i32: 1, 0, 0, 1, 1>} : (!tts.tptr<tensor<8xf32>>, f32, tensor<8xi1>) -> tensor<8xf32>
  bufferization.materialize_in_destination %x in restrict writable %o : (tensor<8xf32>, memref<8xf32>) -> ()
  return
}

// A store asks for each element, too.

// CHECK-LABEL: func.func @stores(
// CHECK-SAME: %{{.*}}: !llvm.ptr, %[[M:.*]]: tensor<8xi1>
// CHECK: scf.for %[[I:.*]] = %c0 to %c8 step %c1 {
// CHECK: %[[V:.*]] = memref.load
// CHECK: %[[TRUE:.*]] = tensor.extract %[[M]][%[[I]]]
// CHECK-NEXT: scf.if %[[TRUE]] {
// CHECK-NEXT: llvm.store %[[V]]
func.func @stores(%p: !llvm.ptr, %m: tensor<8xi1>, %x: tensor<8xf32>) attributes {tt.kernel, proton.written = array<i64: 0>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %t = "tts.make_tptr"(%p, %c1, %c0) {gathers = array<i64: 0>, wraps = array<i64: 0>, order = array<i64: 0>, operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>} : (!llvm.ptr, index, index) -> !tts.tptr<tensor<8xf32>>
  "tts.store"(%t, %x, %m) {operandSegmentSizes = array<i32: 1, 1, 0, 0, 1>} : (!tts.tptr<tensor<8xf32>>, tensor<8xf32>, tensor<8xi1>) -> ()
  return
}

// Pointers of `tt` are cast, until `triton-pointers-to-llvm` makes addresses of them, and where
// nobody has noted what a kernel writes, that may be anything: what it loads is copied.

// CHECK-LABEL: func.func @before_pointers(
// CHECK-SAME: %[[P:.*]]: !tt.ptr<f32>
// CHECK: builtin.unrealized_conversion_cast %[[P]] : !tt.ptr<f32> to !llvm.ptr
// CHECK: memref.copy
// BOTH-LABEL: func.func @before_pointers(
// BOTH-SAME: %[[P:.*]]: !llvm.ptr, %{{.*}}: memref<8xf32>
// BOTH: llvm.insertvalue %[[P]]
// BOTH-NOT: !llvm.ptr to
// BOTH: memref.copy
func.func @before_pointers(%p: !tt.ptr<f32>, %o: memref<8xf32>) attributes {tt.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %t = "tts.make_tptr"(%p, %c1, %c0) {gathers = array<i64: 0>, wraps = array<i64: 0>, order = array<i64: 0>, operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>} : (!tt.ptr<f32>, index, index) -> !tts.tptr<tensor<8xf32>>
  %x = "tts.load"(%t) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0>} : (!tts.tptr<tensor<8xf32>>) -> tensor<8xf32>
  bufferization.materialize_in_destination %x in restrict writable %o : (tensor<8xf32>, memref<8xf32>) -> ()
  return
}
