// RUN: proton-opt --pipeline='allocate-shared-memory' %s | filecheck %s

#a = #ttg.linear<[], [[1], [2], [4], [8], [16]], [[32], [64]], []>
#b = #ttg.linear<[], [[4], [8], [16], [32], [64]], [[1], [2]], []>
#c = #ttg.linear<[], [[2], [1], [4], [8], [16]], [[32], [64]], []>
#acc = #ttg.linear<[[0, 4]], [[0, 1], [0, 2], [1, 0], [2, 0], [4, 0]], [[0, 0], [0, 0]], []>
!square = !ttg.memdesc<[8, 8], f32, #ttg.shared<[[0, 1], [0, 2], [0, 4], [1, 0], [2, 0], [4, 0]]>>

module attributes {"ttg.num-warps" = 4 : i32} {

// Two exchanges, one after the other, have the same bytes.

// CHECK-LABEL: func.func @one_after_the_other(
// CHECK-SAME: ttg.shared = 512 : i32
// CHECK-COUNT-2: "ttg.convert_layout"(%{{.*}}) {ttg.offset = 0 : i32}
func.func @one_after_the_other(%x: tensor<128xf32, #a>) attributes {tt.kernel} {
  %0 = "ttg.convert_layout"(%x) : (tensor<128xf32, #a>) -> tensor<128xf32, #b>
  %1 = "ttg.convert_layout"(%0) : (tensor<128xf32, #b>) -> tensor<128xf32, #a>
  return
}

// Both operands of a product are alive at it; the exchange between them is over when the second
// is made, and gives it its bytes.

// CHECK-LABEL: func.func @alive_together(
// CHECK-SAME: ttg.shared = 768 : i32
// CHECK: "ttg.local_alloc"(%{{.*}}) {ttg.offset = 512 : i32}
// CHECK-NEXT: "ttg.convert_layout"(%{{.*}}) {ttg.offset = 0 : i32}
// CHECK-NEXT: "ttg.local_alloc"(%{{.*}}) {ttg.offset = 0 : i32}
// CHECK-NEXT: "ttg.dot"
// CHECK-NEXT: "ttg.convert_layout"(%{{.*}}) {ttg.offset = 0 : i32}
func.func @alive_together(%x: tensor<128xf32, #a>, %s: tensor<8x8xf32, #acc>) {
  %p = "ttg.local_alloc"(%s) : (tensor<8x8xf32, #acc>) -> !square
  %0 = "ttg.convert_layout"(%x) : (tensor<128xf32, #a>) -> tensor<128xf32, #b>
  %q = "ttg.local_alloc"(%s) : (tensor<8x8xf32, #acc>) -> !square
  %d = "ttg.dot"(%p, %q, %s) : (!square, !square, tensor<8x8xf32, #acc>) -> tensor<8x8xf32, #acc>
  %1 = "ttg.convert_layout"(%x) : (tensor<128xf32, #a>) -> tensor<128xf32, #b>
  return
}

// Made before a loop and used in it: alive until the loop ends, behind its use, too.

// CHECK-LABEL: func.func @loop(
// CHECK-SAME: ttg.shared = 768 : i32
// CHECK: "ttg.local_alloc"(%{{.*}}) {ttg.offset = 512 : i32}
// CHECK: "ttg.convert_layout"(%{{.*}}) {ttg.offset = 0 : i32}
func.func @loop(%x: tensor<128xf32, #a>, %s: tensor<8x8xf32, #acc>, %n: i32) {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %p = "ttg.local_alloc"(%s) : (tensor<8x8xf32, #acc>) -> !square
  scf.for %i = %zero to %n step %one : i32 {
    %d = "ttg.dot"(%p, %p, %s) : (!square, !square, tensor<8x8xf32, #acc>) -> tensor<8x8xf32, #acc>
    %0 = "ttg.convert_layout"(%x) : (tensor<128xf32, #a>) -> tensor<128xf32, #b>
  }
  return
}

// Two branches never run together.

// CHECK-LABEL: func.func @branches(
// CHECK-SAME: ttg.shared = 512 : i32
func.func @branches(%x: tensor<128xf32, #a>, %c: i1) {
  scf.if %c {
    %0 = "ttg.convert_layout"(%x) : (tensor<128xf32, #a>) -> tensor<128xf32, #b>
  } else {
    %1 = "ttg.convert_layout"(%x) : (tensor<128xf32, #a>) -> tensor<128xf32, #b>
  }
  return
}

// A kernel's calls: each callee lies above what the caller keeps, and both use the same bytes. The
// one that is called from two depths has two places.

// CHECK-LABEL: func.func private @small(
// CHECK-SAME: ttg.shared = 512 : i32
func.func private @small(%x: tensor<128xf32, #a>) -> tensor<128xf32, #b> {
  %0 = "ttg.convert_layout"(%x) : (tensor<128xf32, #a>) -> tensor<128xf32, #b>
  return %0 : tensor<128xf32, #b>
}

// CHECK-LABEL: func.func private @deep(
// CHECK-SAME: ttg.shared = 768 : i32
// CHECK: "ttg.local_alloc"(%{{.*}}) {ttg.offset = 512 : i32}
// CHECK: call @small(%{{.*}}) {ttg.offset = 0 : i32}
func.func private @deep(%x: tensor<128xf32, #a>, %s: tensor<8x8xf32, #acc>) {
  %p = "ttg.local_alloc"(%s) : (tensor<8x8xf32, #acc>) -> !square
  %0 = func.call @small(%x) : (tensor<128xf32, #a>) -> tensor<128xf32, #b>
  %d = "ttg.dot"(%p, %p, %s) : (!square, !square, tensor<8x8xf32, #acc>) -> tensor<8x8xf32, #acc>
  return
}

// CHECK-LABEL: func.func @kernel(
// CHECK-SAME: ttg.shared = 1024 : i32
// CHECK: "ttg.local_alloc"(%{{.*}}) {ttg.offset = 768 : i32}
// CHECK: call @deep(%{{.*}}) {ttg.offset = 0 : i32}
// CHECK: call @small(%{{.*}}) {ttg.offset = 0 : i32}
func.func @kernel(%x: tensor<128xf32, #a>, %s: tensor<8x8xf32, #acc>) attributes {tt.kernel} {
  %p = "ttg.local_alloc"(%s) : (tensor<8x8xf32, #acc>) -> !square
  func.call @deep(%x, %s) : (tensor<128xf32, #a>, tensor<8x8xf32, #acc>) -> ()
  %0 = func.call @small(%x) : (tensor<128xf32, #a>) -> tensor<128xf32, #b>
  %d = "ttg.dot"(%p, %p, %s) : (!square, !square, tensor<8x8xf32, #acc>) -> tensor<8x8xf32, #acc>
  return
}

// No shared memory: a conversion within warps, arithmetic, a reduction within a warp, an atomic
// whose result nobody reads, and a call of such a function.

// CHECK-LABEL: func.func private @none(
// CHECK-SAME: ttg.shared = 0 : i32
// CHECK-NOT: ttg.offset
// CHECK: return
func.func private @none(%x: tensor<128xf32, #a>, %p: !tt.ptr<f32>, %v: f32) {
  %0 = "ttg.convert_layout"(%x) : (tensor<128xf32, #a>) -> tensor<128xf32, #c>
  %1 = arith.addf %x, %x : tensor<128xf32, #a>
  %2 = "tt.atomic_rmw"(%p, %v) {rmw_op = "fadd", sem = "relaxed", scope = "gpu", operandSegmentSizes = array<i32: 1, 1, 0>} : (!tt.ptr<f32>, f32) -> f32
  return
}

// CHECK-LABEL: func.func @calls_none(
// CHECK-SAME: ttg.shared = 0 : i32
// CHECK-NOT: ttg.offset
// CHECK: return
func.func @calls_none(%x: tensor<128xf32, #a>, %p: !tt.ptr<f32>, %v: f32) attributes {tt.kernel} {
  func.call @none(%x, %p, %v) : (tensor<128xf32, #a>, !tt.ptr<f32>, f32) -> ()
  return
}
}
