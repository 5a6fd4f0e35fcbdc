// RUN: proton-opt --pipeline='drop-dead-values' %s | filecheck %s
// RUN: proton-opt --pipeline='drop-dead-values,canonicalize' %s | filecheck %s --check-prefix=DROPPED

// The second value is asked for by itself alone, the third decides how often an inner loop runs.
// CHECK-LABEL: func.func @a_reduction_for_nobody
// CHECK: scf.for {{.*}} iter_args(%[[A:.*]] = %{{.*}}, %[[B:.*]] = %{{.*}}, %[[C:.*]] = %{{.*}})
// CHECK: %[[SUM:.*]] = arith.addi %[[A]]
// CHECK: scf.yield %[[SUM]], %[[B]], %{{.*}} :
// DROPPED-LABEL: func.func @a_reduction_for_nobody
// DROPPED-NOT: maxsi
// DROPPED-COUNT-2: scf.for
// DROPPED: return
func.func @a_reduction_for_nobody(%n: i32, %p: !tt.ptr<i32>) -> i32 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r:3 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %c0, %b = %c0, %c = %c1) -> (i32, i32, i32) : i32 {
    %s = arith.addi %a, %i : i32
    %t = arith.maxsi %b, %s : i32
    %d = arith.muli %c, %i : i32
    scf.for %j = %c0 to %d step %c1 : i32 {
      "tt.store"(%p, %j) {operandSegmentSizes = array<i32: 1, 1, 0>, cache = "", evict = ""} : (!tt.ptr<i32>, i32) -> ()
    }
    scf.yield %s, %t, %d : i32, i32, i32
  }
  return %r#0 : i32
}

// A dead value of an outer loop keeps nothing of an inner one or of a branch alive; what bounds a
// loop and is carried as well stays.
// CHECK-LABEL: func.func @nested
// CHECK: scf.for {{.*}} iter_args(%[[A:.*]] = %{{.*}}, %[[B:.*]] = %{{.*}})
// CHECK: scf.for {{.*}} iter_args(%[[C:.*]] = %[[A]])
// CHECK: scf.yield %[[C]] : i32
// CHECK: scf.yield %[[A]], %{{.*}} : i32, i32
// DROPPED-LABEL: func.func @nested
// DROPPED-NOT: scf.if
// DROPPED-NOT: muli
// DROPPED: return
func.func @nested(%n: i32) -> i32 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %n, %b = %n) -> (i32, i32) : i32 {
    %t = scf.for %j = %c0 to %b step %c1 iter_args(%c = %a) -> (i32) : i32 {
      %u = arith.muli %c, %j : i32
      scf.yield %u : i32
    }
    %even = arith.cmpi eq, %i, %c1 : i32
    %v = scf.if %even -> (i32) {
      scf.yield %t : i32
    } else {
      scf.yield %a : i32
    }
    %e = arith.subi %b, %c1 : i32
    scf.yield %v, %e : i32, i32
  }
  return %r#1 : i32
}

// The condition of a `while` is asked for, and what it is computed of.
// CHECK-LABEL: func.func @a_condition
// CHECK: scf.for {{.*}} iter_args(%[[A:.*]] = %{{.*}})
// CHECK: %[[B:.*]] = arith.addi %[[A]]
// CHECK: scf.yield %[[B]] : i32
func.func @a_condition(%n: i32, %p: !tt.ptr<i32>) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%a = %c0) -> (i32) : i32 {
    %b = arith.addi %a, %i : i32
    scf.while : () -> () {
      %x = "tt.load"(%p) {operandSegmentSizes = array<i32: 1, 0, 0>, cache = "", evict = "", volatile = true} : (!tt.ptr<i32>) -> i32
      %go = arith.cmpi slt, %x, %b : i32
      scf.condition(%go)
    } do {
      scf.yield
    }
    scf.yield %b : i32
  }
  return
}
