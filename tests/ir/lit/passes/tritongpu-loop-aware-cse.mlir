// RUN: proton-opt --pipeline='tritongpu-loop-aware-cse' %s | filecheck %s

// Two pointers that start equal and advance alike are one.

// CHECK-LABEL: func.func @alike(
// CHECK: scf.for {{.*}} iter_args(%[[P:.*]] = %{{.*}}) -> (!tt.ptr<f32>) : i32 {
// CHECK-COUNT-2: "tt.load"(%[[P]])
// CHECK: %[[NEXT:.*]] = "tt.addptr"(%[[P]], %{{.*}})
// CHECK-NEXT: scf.yield %[[NEXT]] : !tt.ptr<f32>
func.func @alike(%x: !tt.ptr<f32>, %n: i32, %y: !tt.ptr<f32>) {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %r:2 = scf.for %i = %zero to %n step %one iter_args(%p = %x, %q = %x) -> (!tt.ptr<f32>, !tt.ptr<f32>) : i32 {
    %a = "tt.load"(%p) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (!tt.ptr<f32>) -> f32
    "tt.store"(%y, %a) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>} : (!tt.ptr<f32>, f32) -> ()
    %b = "tt.load"(%q) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (!tt.ptr<f32>) -> f32
    "tt.store"(%y, %b) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>} : (!tt.ptr<f32>, f32) -> ()
    %p2 = "tt.addptr"(%p, %n) : (!tt.ptr<f32>, i32) -> !tt.ptr<f32>
    %q2 = "tt.addptr"(%q, %n) : (!tt.ptr<f32>, i32) -> !tt.ptr<f32>
    scf.yield %p2, %q2 : !tt.ptr<f32>, !tt.ptr<f32>
  }
  return
}

// They are equal in the end as well.

// CHECK-LABEL: func.func @results(
// CHECK: %[[R:.*]] = scf.for {{.*}} -> (i32) : i32
// CHECK: return %[[R]], %[[R]] : i32, i32
func.func @results(%x: i32, %n: i32) -> (i32, i32) {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %r:2 = scf.for %i = %zero to %n step %one iter_args(%p = %x, %q = %x) -> (i32, i32) : i32 {
    %p2 = arith.muli %p, %n : i32
    %p3 = arith.addi %p2, %i : i32
    %q2 = arith.muli %q, %n : i32
    %q3 = arith.addi %q2, %i : i32
    scf.yield %p3, %q3 : i32, i32
  }
  return %r#0, %r#1 : i32, i32
}

// CSE itself runs too.

// CHECK-LABEL: func.func @no_loop(
// CHECK-COUNT-1: "tt.splat"
// CHECK-NOT: "tt.splat"
// CHECK: arith.addf %[[S:.*]], %[[S]]
func.func @no_loop(%x: f32) -> tensor<4xf32> {
  %a = "tt.splat"(%x) : (f32) -> tensor<4xf32>
  %b = "tt.splat"(%x) : (f32) -> tensor<4xf32>
  %c = arith.addf %a, %b : tensor<4xf32>
  return %c : tensor<4xf32>
}

// Different starts, different steps, different attributes, loads, or one value that
// the other becomes: two values.

// CHECK-LABEL: func.func @starts(
// CHECK: %[[R:.*]]:2 = scf.for
// CHECK: return %[[R]]#0, %[[R]]#1
func.func @starts(%x: i32, %y: i32, %n: i32) -> (i32, i32) {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %r:2 = scf.for %i = %zero to %n step %one iter_args(%p = %x, %q = %y) -> (i32, i32) : i32 {
    %p2 = arith.muli %p, %n : i32
    %q2 = arith.muli %q, %n : i32
    scf.yield %p2, %q2 : i32, i32
  }
  return %r#0, %r#1 : i32, i32
}

// CHECK-LABEL: func.func @steps(
// CHECK: %[[R:.*]]:2 = scf.for
// CHECK: return %[[R]]#0, %[[R]]#1
func.func @steps(%x: i32, %n: i32) -> (i32, i32) {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %r:2 = scf.for %i = %zero to %n step %one iter_args(%p = %x, %q = %x) -> (i32, i32) : i32 {
    %p2 = arith.addi %p, %n : i32
    %q2 = arith.subi %q, %n : i32
    scf.yield %p2, %q2 : i32, i32
  }
  return %r#0, %r#1 : i32, i32
}

// CHECK-LABEL: func.func @comparisons(
// CHECK: %[[R:.*]]:2 = scf.for
// CHECK: return %[[R]]#0, %[[R]]#1
func.func @comparisons(%x: i1, %n: i32) -> (i1, i1) {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %r:2 = scf.for %i = %zero to %n step %one iter_args(%p = %x, %q = %x) -> (i1, i1) : i32 {
    %p2 = arith.cmpi slt, %i, %one : i32
    %q2 = arith.cmpi sle, %i, %one : i32
    scf.yield %p2, %q2 : i1, i1
  }
  return %r#0, %r#1 : i1, i1
}

// CHECK-LABEL: func.func @loads(
// CHECK: %[[R:.*]]:2 = scf.for
// CHECK: return %[[R]]#0, %[[R]]#1
func.func @loads(%p: !tt.ptr<i32>, %x: i32, %n: i32) -> (i32, i32) {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %r:2 = scf.for %i = %zero to %n step %one iter_args(%a = %x, %b = %x) -> (i32, i32) : i32 {
    %a2 = "tt.load"(%p) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (!tt.ptr<i32>) -> i32
    "tt.store"(%p, %i) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>} : (!tt.ptr<i32>, i32) -> ()
    %b2 = "tt.load"(%p) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (!tt.ptr<i32>) -> i32
    scf.yield %a2, %b2 : i32, i32
  }
  return %r#0, %r#1 : i32, i32
}

// CHECK-LABEL: func.func @delayed(
// CHECK: %[[R:.*]]:2 = scf.for
// CHECK: return %[[R]]#0, %[[R]]#1
func.func @delayed(%x: i32, %n: i32) -> (i32, i32) {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %r:2 = scf.for %i = %zero to %n step %one iter_args(%p = %x, %q = %x) -> (i32, i32) : i32 {
    %p2 = arith.addi %p, %i : i32
    scf.yield %p2, %p : i32, i32
  }
  return %r#0, %r#1 : i32, i32
}
