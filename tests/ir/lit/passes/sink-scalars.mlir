// RUN: proton-opt --pipeline='sink-scalars' %s | filecheck %s

// A chain that begins with a load moves behind the loop as one, in its order; the load stays.

// CHECK-LABEL: func.func @chain(
// CHECK: %[[X:.*]] = "tt.load"
// CHECK-NEXT: scf.for
// CHECK: }
// CHECK-NEXT: %[[Y:.*]] = arith.subf %[[X]], %arg1
// CHECK-NEXT: %[[Z:.*]] = math.tanh %[[Y]]
// CHECK-NEXT: "tt.store"(%arg0, %[[Z]])
func.func @chain(%p: !tt.ptr<f32>, %m: f32, %n: i32, %one: i32) {
  %x = "tt.load"(%p) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (!tt.ptr<f32>) -> f32
  %y = arith.subf %x, %m : f32
  %z = math.tanh %y : f32
  scf.for %i = %one to %n step %one : i32 {
    "tt.debug_barrier"() : () -> ()
  }
  "tt.store"(%p, %z) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>} : (!tt.ptr<f32>, f32) -> ()
  return
}

// What the loop uses stays in front of it, as its bound does, and what no load is part of.

// CHECK-LABEL: func.func @needed(
// CHECK: %[[X:.*]] = "tt.load"
// CHECK-NEXT: arith.addi %[[X]], %arg1
// CHECK-NEXT: arith.muli %[[X]], %arg1
// CHECK-NEXT: arith.muli %arg1, %arg2
// CHECK-NEXT: scf.for
func.func @needed(%p: !tt.ptr<i32>, %n: i32, %one: i32) -> (i32, i32, i32) {
  %x = "tt.load"(%p) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (!tt.ptr<i32>) -> i32
  %bound = arith.addi %x, %n : i32
  %inside = arith.muli %x, %n : i32
  %known = arith.muli %n, %one : i32
  %sum = scf.for %i = %one to %bound step %one iter_args(%s = %one) -> (i32) : i32 {
    %t = arith.addi %s, %inside : i32
    scf.yield %t : i32
  }
  return %sum, %inside, %known : i32, i32, i32
}

// Between two loops: it moves as far as it is not needed, and a division by what may be zero stays.

// CHECK-LABEL: func.func @two(
// CHECK: %[[X:.*]] = "tt.load"
// CHECK-NEXT: %[[Q:.*]] = arith.divsi %arg1, %[[X]]
// CHECK-NEXT: scf.for
// CHECK: }
// CHECK-NEXT: %[[Y:.*]] = arith.addi %[[X]], %arg1
// CHECK-NEXT: scf.for {{.*}} to %[[Y]]
// CHECK: return %[[Q]]
func.func @two(%p: !tt.ptr<i32>, %n: i32, %one: i32) -> i32 {
  %x = "tt.load"(%p) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (!tt.ptr<i32>) -> i32
  %q = arith.divsi %n, %x : i32
  %y = arith.addi %x, %n : i32
  scf.for %i = %one to %n step %one : i32 {
    "tt.debug_barrier"() : () -> ()
  }
  scf.for %i = %one to %y step %one : i32 {
    "tt.debug_barrier"() : () -> ()
  }
  return %q : i32
}

// A branch gives what it has loaded, and zero where it loads nothing.

// CHECK-LABEL: func.func @branch(
// CHECK: %[[IF:.*]]:2 = scf.if %arg1
// CHECK: %[[ZERO:.*]] = arith.constant 0.0
// CHECK: scf.yield %{{.*}}, %[[ZERO]]
// CHECK: else
// CHECK: %[[X:.*]] = "tt.load"
// CHECK: scf.yield %{{.*}}, %[[X]]
// CHECK: scf.for
// CHECK: }
// CHECK-NEXT: %[[Y:.*]] = arith.subf %[[IF]]#1, %arg2
// CHECK-NEXT: %[[S:.*]] = arith.select %arg1, %arg2, %[[Y]]
// CHECK-NEXT: "tt.store"(%arg0, %[[S]])
func.func @branch(%p: !tt.ptr<f32>, %c: i1, %m: f32, %n: i32, %one: i32) {
  %y = scf.if %c -> (f32) {
    scf.yield %m : f32
  } else {
    %x = "tt.load"(%p) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (!tt.ptr<f32>) -> f32
    %z = arith.subf %x, %m : f32
    scf.yield %z : f32
  }
  scf.for %i = %one to %n step %one : i32 {
    "tt.debug_barrier"() : () -> ()
  }
  "tt.store"(%p, %y) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>} : (!tt.ptr<f32>, f32) -> ()
  return
}

// No loop, no waiting: as it was. Nor does a branch change whose result the loop carries.

// CHECK-LABEL: func.func @as_it_was(
// CHECK: %[[IF:.*]] = scf.if %arg1 -> (f32)
// CHECK: arith.subf
// CHECK-NEXT: scf.yield
// CHECK: %[[OTHER:.*]] = scf.if %arg1 -> (f32)
// CHECK: arith.mulf
// CHECK-NEXT: scf.yield
// CHECK-NOT: arith.select
// CHECK: return
func.func @as_it_was(%p: !tt.ptr<f32>, %c: i1, %m: f32, %n: i32, %one: i32) -> f32 {
  %y = scf.if %c -> (f32) {
    scf.yield %m : f32
  } else {
    %x = "tt.load"(%p) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (!tt.ptr<f32>) -> f32
    %z = arith.subf %x, %m : f32
    scf.yield %z : f32
  }
  %s = scf.for %i = %one to %n step %one iter_args(%t = %y) -> (f32) : i32 {
    %u = arith.addf %t, %t : f32
    scf.yield %u : f32
  }
  %v = scf.if %c -> (f32) {
    scf.yield %m : f32
  } else {
    %x = "tt.load"(%p) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (!tt.ptr<f32>) -> f32
    %z = arith.mulf %x, %s : f32
    scf.yield %z : f32
  }
  return %v : f32
}
