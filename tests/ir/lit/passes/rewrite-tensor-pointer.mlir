// RUN: proton-opt --pipeline='rewrite-tensor-pointer' %s | filecheck %s

!row = !tt.ptr<tensor<8xf32>>
!block = !tt.ptr<tensor<4x8xf16>>

// Offsets by strides are a scalar; what does not depend on them is a block of its own.

// CHECK-LABEL: func.func @whole(
// CHECK-SAME: %[[BASE:.*]]: !tt.ptr<f16>, %[[N:arg1]]: i64, %[[S:arg2]]: i64, %[[I:arg3]]: i32, %[[J:arg4]]: i32)
// CHECK: %[[I64:.*]] = arith.extsi %[[I]] : i32 to i64
// CHECK: %[[J64:.*]] = arith.extsi %[[J]] : i32 to i64
// CHECK: %[[DOWN:.*]] = arith.muli %[[I64]], %[[S]]
// CHECK: %[[ROW:.*]] = "tt.addptr"(%[[BASE]], %[[DOWN]])
// CHECK: %[[RIGHT:.*]] = arith.muli %[[J64]], %{{.*}}
// CHECK: %[[FIRST:.*]] = "tt.addptr"(%[[ROW]], %[[RIGHT]])
// CHECK: %[[PLACES:.*]] = arith.addi %{{.*}}, %{{.*}} : tensor<4x8xi64>
// CHECK: %[[PTRS:.*]] = "tt.splat"(%[[FIRST]])
// CHECK: %[[AT:.*]] = "tt.addptr"(%[[PTRS]], %[[PLACES]])
// CHECK-NOT: arith.cmpi
// CHECK: "tt.load"(%[[AT]]) {cache = ".cg", evict = "evict_first", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = true}
// CHECK-NEXT: return
func.func @whole(%base: !tt.ptr<f16>, %n: i64, %s: i64, %i: i32, %j: i32) {
  %one = arith.constant 1 : i64
  %p = "tt.make_tensor_ptr"(%base, %n, %n, %s, %one, %i, %j) {order = array<i32: 1, 0>, operandSegmentSizes = array<i32: 1, 2, 2, 2>} : (!tt.ptr<f16>, i64, i64, i64, i64, i32, i32) -> !block
  %x = "tt.load"(%p) {cache = ".cg", evict = "evict_first", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = true} : (!block) -> tensor<4x8xf16>
  return
}

// A checked dimension has a lower and an upper bound, and a block gets what it asks for outside.

// CHECK-LABEL: func.func @checked(
// CHECK-SAME: %{{.*}}: !tt.ptr<f32>, %[[N:arg1]]: i64, %[[I:arg2]]: i32, %[[D:arg3]]: i32)
// CHECK: %[[NEXT:.*]] = arith.addi %[[I]], %[[D]] : i32
// CHECK: %[[OFFSET:.*]] = arith.extsi %[[NEXT]] : i32 to i64
// CHECK: %[[AHEAD:.*]] = arith.muli %[[OFFSET]], %{{.*}} : i64
// CHECK: %[[FIRST:.*]] = "tt.splat"(%[[AHEAD]])
// CHECK: %[[PLACES:.*]] = arith.addi %[[FIRST]], %{{.*}} : tensor<8xi64>
// CHECK: %[[ALL:.*]] = "tt.splat"(%arg0)
// CHECK: %[[AT:.*]] = "tt.addptr"(%[[ALL]], %[[PLACES]]) : (tensor<8x!tt.ptr<f32>>, tensor<8xi64>)
// CHECK: %[[START:.*]] = "tt.splat"(%[[OFFSET]])
// CHECK: %[[INDEX:.*]] = arith.addi %[[START]], %{{.*}} : tensor<8xi64>
// CHECK: %[[END:.*]] = "tt.splat"(%[[N]])
// CHECK: %[[BELOW:.*]] = arith.cmpi slt, %[[INDEX]], %[[END]]
// CHECK: %[[ABOVE:.*]] = arith.cmpi sge, %[[INDEX]], %{{.*}}
// CHECK: %[[MASK:.*]] = arith.andi %[[ABOVE]], %[[BELOW]]
// CHECK: %[[NAN:.*]] = arith.constant dense<0x7FC00000> : tensor<8xf32>
// CHECK: %[[X:.*]] = "tt.load"(%[[AT]], %[[MASK]], %[[NAN]])
// CHECK: "tt.store"(%{{.*}}, %[[X]], %{{.*}})
// CHECK-NOT: tensor_ptr
// CHECK: return
func.func @checked(%base: !tt.ptr<f32>, %n: i64, %i: i32, %d: i32) {
  %p = "tt.make_tensor_ptr"(%base, %n, %n, %i) {order = array<i32: 0>, operandSegmentSizes = array<i32: 1, 1, 1, 1>} : (!tt.ptr<f32>, i64, i64, i32) -> !row
  %q = "tt.advance"(%p, %d) {operandSegmentSizes = array<i32: 1, 1>} : (!row, i32) -> !row
  %x = "tt.load"(%q) {boundaryCheck = array<i32: 0>, padding = "nan", cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (!row) -> tensor<8xf32>
  "tt.store"(%p, %x) {boundaryCheck = array<i32: 0>, cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>} : (!row, tensor<8xf32>) -> ()
  return
}

// An offset that cannot be negative has no lower bound.

// CHECK-LABEL: func.func @not_negative(
// CHECK: arith.cmpi slt
// CHECK-NOT: arith.cmpi
// CHECK: return
func.func @not_negative(%base: !tt.ptr<f32>, %n: i64) {
  %size = arith.constant 8 : i32
  %pid = "tt.get_program_id"() {axis = 0 : i32} : () -> i32
  %i = arith.muli %pid, %size : i32
  %p = "tt.make_tensor_ptr"(%base, %n, %n, %i) {order = array<i32: 0>, operandSegmentSizes = array<i32: 1, 1, 1, 1>} : (!tt.ptr<f32>, i64, i64, i32) -> !row
  %x = "tt.load"(%p) {boundaryCheck = array<i32: 0>, cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (!row) -> tensor<8xf32>
  return
}

// Loops, branches and functions hand on the parts; what else they carry stays in its place.

// CHECK-LABEL: func.func @loops(
// CHECK: %[[FOR:.*]]:6 = scf.for %{{.*}} iter_args(%[[A:.*]] = %{{.*}}, %[[B:.*]] = %arg0, %[[N:.*]] = %arg1, %{{.*}} = %arg1, %[[O:.*]] = %arg2, %{{.*}} = %{{.*}}) -> (f32, !tt.ptr<f32>, i64, i64, i32, i32)
// CHECK: %[[MOVED:.*]] = arith.addi %[[O]], %arg2 : i32
// CHECK: scf.yield %[[A]], %[[B]], %[[N]], %{{.*}}, %[[MOVED]], %{{.*}} : f32, !tt.ptr<f32>, i64, i64, i32, i32
// CHECK: %[[WHILE:.*]]:4 = scf.while (%{{.*}} = %[[FOR]]#1, %{{.*}} = %[[FOR]]#2, %{{.*}} = %[[FOR]]#3, %{{.*}} = %[[FOR]]#4)
// CHECK: scf.condition(%{{.*}}) %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} : !tt.ptr<f32>, i64, i64, i32
// CHECK: %[[IF:.*]]:4 = scf.if
// CHECK: scf.yield %[[WHILE]]#0, %[[WHILE]]#1, %[[WHILE]]#2, %[[WHILE]]#3
// CHECK: "tt.int_to_ptr"
// CHECK: %[[SELECT:.*]] = arith.select %arg3, %[[IF]]#3, %arg2 : i32
// CHECK: %[[CALL:.*]]:5 = call @callee(%{{.*}}, %{{.*}}, %{{.*}}, %[[SELECT]], %arg2) : (!tt.ptr<f32>, i64, i64, i32, i32) -> (i32, !tt.ptr<f32>, i64, i64, i32)
// CHECK: arith.extsi %[[CALL]]#4
// CHECK: "tt.load"(%{{.*}}) {cache = ""
func.func @loops(%base: !tt.ptr<f32>, %n: i64, %i: i32, %c: i1) {
  %p = "tt.make_tensor_ptr"(%base, %n, %n, %i) {order = array<i32: 0>, operandSegmentSizes = array<i32: 1, 1, 1, 1>} : (!tt.ptr<f32>, i64, i64, i32) -> !row
  %f = arith.constant 0.0 : f32
  %zero = arith.constant 0 : i32
  %q:3 = scf.for %k = %zero to %i step %i iter_args(%a = %f, %b = %p, %d = %zero) -> (f32, !row, i32) : i32 {
    %m = "tt.advance"(%b, %i) {operandSegmentSizes = array<i32: 1, 1>} : (!row, i32) -> !row
    scf.yield %a, %m, %k : f32, !row, i32
  }
  %r = scf.while (%a = %q#1) : (!row) -> !row {
    scf.condition(%c) %a : !row
  } do {
  ^bb0(%a: !row):
    scf.yield %a : !row
  }
  %s = scf.if %c -> !row {
    scf.yield %r : !row
  } else {
    %poison = ub.poison : !row
    scf.yield %poison : !row
  }
  %t = arith.select %c, %s, %p : !row
  %u:2 = func.call @callee(%t, %i) : (!row, i32) -> (i32, !row)
  %x = "tt.load"(%u#1) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (!row) -> tensor<8xf32>
  return
}

// CHECK-LABEL: func.func private @callee(
// CHECK-SAME: %arg0: !tt.ptr<f32>, %arg1: i64, %arg2: i64, %arg3: i32, %arg4: i32) -> (i32, !tt.ptr<f32>, i64, i64, i32)
// CHECK-NEXT: return %arg4, %arg0, %arg1, %arg2, %arg3
func.func private @callee(%p: !row, %i: i32) -> (i32, !row) {
  return %i, %p : i32, !row
}

// In a loop the offset goes to the base, and the places leave the loop.

// CHECK-LABEL: func.func @row_in_loop(
// CHECK: scf.for
// CHECK: %[[AHEAD:.*]] = arith.muli %{{.*}}, %{{.*}} : i64
// CHECK: %[[FIRST:.*]] = "tt.addptr"(%{{.*}}, %[[AHEAD]]) : (!tt.ptr<f32>, i64)
// CHECK: "tt.splat"(%[[FIRST]])
func.func @row_in_loop(%base: !tt.ptr<f32>, %n: i64, %i: i32) {
  %zero = arith.constant 0 : i32
  scf.for %k = %zero to %i step %i : i32 {
    %p = "tt.make_tensor_ptr"(%base, %n, %n, %k) {order = array<i32: 0>, operandSegmentSizes = array<i32: 1, 1, 1, 1>} : (!tt.ptr<f32>, i64, i64, i32) -> !row
    %x = "tt.load"(%p) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (!row) -> tensor<8xf32>
  }
  return
}

// Ordinary accesses stay.

// CHECK-LABEL: func.func @ordinary(
// CHECK-NEXT: %[[X:.*]] = "tt.load"(%arg0) {
// CHECK-NEXT: "tt.store"(%arg0, %[[X]]) {
// CHECK-NEXT: return
func.func @ordinary(%p: !tt.ptr<f32>) {
  %x = "tt.load"(%p) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (!tt.ptr<f32>) -> f32
  "tt.store"(%p, %x) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>} : (!tt.ptr<f32>, f32) -> ()
  return
}
