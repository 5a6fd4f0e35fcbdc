// RUN: proton-opt --pipeline='mark-written' %s | filecheck %s

// CHECK-LABEL: func.func @a_store
// CHECK-SAME: proton.written = array<i64: 2>
func.func @a_store(%a: !tt.ptr<f32>, %n: i32, %b: !tt.ptr<f32>) attributes {tt.kernel} {
  %x = "tt.load"(%a) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (!tt.ptr<f32>) -> f32
  %p = "tt.addptr"(%b, %n) : (!tt.ptr<f32>, i32) -> !tt.ptr<f32>
  "tt.store"(%p, %x) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>} : (!tt.ptr<f32>, f32) -> ()
  return
}

// CHECK-LABEL: func.func @nothing_is_written
// CHECK-SAME: proton.written = array<i64>
func.func @nothing_is_written(%a: !tt.ptr<f32>) attributes {tt.kernel} {
  %x = "tt.load"(%a) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (!tt.ptr<f32>) -> f32
  return
}

// CHECK-LABEL: func.func @atomics_write
// CHECK-SAME: proton.written = array<i64: 0, 1>
func.func @atomics_write(%a: !tt.ptr<i32>, %b: !tt.ptr<i32>, %c: !tt.ptr<i32>, %x: i32) attributes {tt.kernel} {
  %0 = "tt.atomic_cas"(%b, %x, %x) {sem = "relaxed", scope = "gpu"} : (!tt.ptr<i32>, i32, i32) -> i32
  %1 = "tt.atomic_rmw"(%a, %x) {rmw_op = "add", sem = "relaxed", scope = "gpu", operandSegmentSizes = array<i32: 1, 1, 0>} : (!tt.ptr<i32>, i32) -> i32
  return
}

// CHECK-LABEL: func.func @through_shapes
// CHECK-SAME: proton.written = array<i64: 1>
func.func @through_shapes(%a: !tt.ptr<f32>, %b: !tt.ptr<i32>, %x: tensor<4x2xf32>) attributes {tt.kernel} {
  %0 = "tt.bitcast"(%b) : (!tt.ptr<i32>) -> !tt.ptr<f32>
  %1 = "tt.splat"(%0) : (!tt.ptr<f32>) -> tensor<4x!tt.ptr<f32>>
  %2 = "tt.expand_dims"(%1) {axis = 1 : i32} : (tensor<4x!tt.ptr<f32>>) -> tensor<4x1x!tt.ptr<f32>>
  %3 = "tt.broadcast"(%2) : (tensor<4x1x!tt.ptr<f32>>) -> tensor<4x2x!tt.ptr<f32>>
  "tt.store"(%3, %x) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<4x2x!tt.ptr<f32>>, tensor<4x2xf32>) -> ()
  return
}

// CHECK-LABEL: func.func @either_of_two
// CHECK-SAME: proton.written = array<i64: 0, 1, 2>
func.func @either_of_two(%a: !tt.ptr<f32>, %b: !tt.ptr<f32>, %c: !tt.ptr<f32>, %cond: i1, %x: f32) attributes {tt.kernel} {
  %p = arith.select %cond, %c, %a : !tt.ptr<f32>
  %q = scf.if %cond -> (!tt.ptr<f32>) {
    scf.yield %b : !tt.ptr<f32>
  } else {
    scf.yield %p : !tt.ptr<f32>
  }
  "tt.store"(%q, %x) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>} : (!tt.ptr<f32>, f32) -> ()
  return
}

// Two pointers that change places at each iteration of a loop.

// CHECK-LABEL: func.func @swapped_by_a_loop
// CHECK-SAME: proton.written = array<i64: 0, 1>
func.func @swapped_by_a_loop(%a: !tt.ptr<f32>, %b: !tt.ptr<f32>, %c: !tt.ptr<f32>, %n: i32, %x: f32) attributes {tt.kernel} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r:3 = scf.for %i = %c0 to %n step %c1 iter_args(%p = %a, %q = %b, %s = %c) -> (!tt.ptr<f32>, !tt.ptr<f32>, !tt.ptr<f32>) : i32 {
    "tt.store"(%p, %x) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>} : (!tt.ptr<f32>, f32) -> ()
    scf.yield %q, %p, %s : !tt.ptr<f32>, !tt.ptr<f32>, !tt.ptr<f32>
  }
  return
}

// CHECK-LABEL: func.func @behind_a_loop
// CHECK-SAME: proton.written = array<i64: 1>
func.func @behind_a_loop(%a: !tt.ptr<f32>, %b: !tt.ptr<f32>, %n: i32, %x: f32) attributes {tt.kernel} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%p = %a, %q = %b) -> (!tt.ptr<f32>, !tt.ptr<f32>) : i32 {
    %next = "tt.addptr"(%q, %i) : (!tt.ptr<f32>, i32) -> !tt.ptr<f32>
    scf.yield %p, %next : !tt.ptr<f32>, !tt.ptr<f32>
  }
  "tt.store"(%r#1, %x) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>} : (!tt.ptr<f32>, f32) -> ()
  return
}

// A while loop that hands on its pointers as they are stores through one of them.

// CHECK-LABEL: func.func @in_a_while
// CHECK-SAME: proton.written = array<i64: 1>
func.func @in_a_while(%a: !tt.ptr<f32>, %b: !tt.ptr<f32>, %c: !tt.ptr<f32>, %n: i32, %x: f32) attributes {tt.kernel} {
  %c1 = arith.constant 1 : i32
  %r:3 = scf.while (%p = %a, %q = %b, %i = %n) : (!tt.ptr<f32>, !tt.ptr<f32>, i32) -> (!tt.ptr<f32>, !tt.ptr<f32>, i32) {
    %more = arith.cmpi sgt, %i, %c1 : i32
    scf.condition(%more) %p, %q, %i : !tt.ptr<f32>, !tt.ptr<f32>, i32
  } do {
  ^bb0(%p: !tt.ptr<f32>, %q: !tt.ptr<f32>, %i: i32):
    "tt.store"(%q, %x) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>} : (!tt.ptr<f32>, f32) -> ()
    %less = arith.subi %i, %c1 : i32
    scf.yield %p, %q, %less : !tt.ptr<f32>, !tt.ptr<f32>, i32
  }
  return
}

// CHECK-LABEL: func.func @swapped_by_a_while
// CHECK-SAME: proton.written = array<i64: 0, 1>
func.func @swapped_by_a_while(%a: !tt.ptr<f32>, %b: !tt.ptr<f32>, %c: !tt.ptr<f32>, %n: i32, %x: f32) attributes {tt.kernel} {
  %c1 = arith.constant 1 : i32
  %r:3 = scf.while (%p = %a, %q = %b, %i = %n) : (!tt.ptr<f32>, !tt.ptr<f32>, i32) -> (!tt.ptr<f32>, !tt.ptr<f32>, i32) {
    %more = arith.cmpi sgt, %i, %c1 : i32
    scf.condition(%more) %p, %q, %i : !tt.ptr<f32>, !tt.ptr<f32>, i32
  } do {
  ^bb0(%p: !tt.ptr<f32>, %q: !tt.ptr<f32>, %i: i32):
    "tt.store"(%q, %x) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>} : (!tt.ptr<f32>, f32) -> ()
    %less = arith.subi %i, %c1 : i32
    scf.yield %q, %p, %less : !tt.ptr<f32>, !tt.ptr<f32>, i32
  }
  return
}

// A pointer that is made from an integer may point anywhere: -1.

// CHECK-LABEL: func.func @anywhere
// CHECK-SAME: proton.written = array<i64: -1, 0>
func.func @anywhere(%a: !tt.ptr<f32>, %x: f32) attributes {tt.kernel} {
  %i = "tt.ptr_to_int"(%a) : (!tt.ptr<f32>) -> i64
  %p = "tt.int_to_ptr"(%i) : (i64) -> !tt.ptr<f32>
  "tt.store"(%p, %x) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>} : (!tt.ptr<f32>, f32) -> ()
  "tt.store"(%a, %x) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>} : (!tt.ptr<f32>, f32) -> ()
  return
}

// What a function writes that kernels call is any memory for it: its arguments may be one array.

// CHECK-LABEL: func.func @not_a_kernel
// CHECK-SAME: proton.written = array<i64: -1, 0>
// CHECK: return
func.func @not_a_kernel(%a: !tt.ptr<f32>, %x: f32) {
  "tt.store"(%a, %x) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>} : (!tt.ptr<f32>, f32) -> ()
  return
}

// What a function writes that a kernel calls is the kernel's; a pointer that it gives points where
// what it takes does.

// CHECK-LABEL: func.func @caller
// CHECK-SAME: proton.written = array<i64: 0, 2>
func.func @caller(%a: !tt.ptr<f32>, %b: !tt.ptr<f32>, %c: !tt.ptr<f32>, %x: f32) attributes {tt.kernel} {
  %p = func.call @writes(%b, %c, %x) : (!tt.ptr<f32>, !tt.ptr<f32>, f32) -> !tt.ptr<f32>
  %q = func.call @passes(%a) : (!tt.ptr<f32>) -> !tt.ptr<f32>
  "tt.store"(%q, %x) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>} : (!tt.ptr<f32>, f32) -> ()
  %y = "tt.load"(%p) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (!tt.ptr<f32>) -> f32
  return
}
func.func private @writes(%a: !tt.ptr<f32>, %b: !tt.ptr<f32>, %x: f32) -> !tt.ptr<f32> attributes {tt.noinline = true} {
  %p = func.call @passes(%b) : (!tt.ptr<f32>) -> !tt.ptr<f32>
  "tt.store"(%p, %x) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>} : (!tt.ptr<f32>, f32) -> ()
  return %a : !tt.ptr<f32>
}
func.func private @passes(%a: !tt.ptr<f32>) -> !tt.ptr<f32> attributes {tt.noinline = true} {
  return %a : !tt.ptr<f32>
}
