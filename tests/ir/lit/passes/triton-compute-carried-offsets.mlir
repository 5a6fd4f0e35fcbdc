// RUN: proton-opt --pipeline='triton-compute-carried-offsets,canonicalize,cse' %s | filecheck %s

!offsets = tensor<64xi32>

// Constant steps, of loops of constant steps.

// CHECK-LABEL: func.func @constant(
// CHECK: scf.for %[[I:.*]] = %{{.*}} to %arg1 step %c32_i32 : i32
// CHECK: %[[N:.*]] = arith.divui %[[I]], %c32_i32
// CHECK-NEXT: %[[S:.*]] = arith.muli %[[N]], %c-48_i32
// CHECK-NEXT: %[[T:.*]] = "tt.splat"(%[[S]])
// CHECK-NEXT: %[[O:.*]] = arith.addi %arg0, %[[T]]
// CHECK-NEXT: call @take(%[[O]])
func.func private @take(!offsets)
func.func @constant(%init: !offsets, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c32 = arith.constant 32 : i32
  %step = arith.constant dense<-48> : !offsets
  %r = scf.for %i = %c0 to %n step %c32 iter_args(%o = %init) -> !offsets : i32 {
    func.call @take(%o) : (!offsets) -> ()
    %p = arith.addi %o, %step : !offsets
    scf.yield %p : !offsets
  }
  return
}

// A scalar's, in a loop whose numbers are wider. The other carried values stay.

// CHECK-LABEL: func.func @scalar(
// CHECK: %[[R:.*]] = scf.for %[[I:.*]] = %arg2 to %arg3 step %c1_i64 iter_args(%[[C:.*]] = %arg1) -> (i32) : i64
// CHECK: %[[N:.*]] = arith.subi %[[I]], %arg2
// CHECK-NEXT: %[[M:.*]] = arith.trunci %[[N]] : i64 to i32
// CHECK-NEXT: %[[S:.*]] = arith.muli %[[M]], %arg1
// CHECK: return %[[R]]
func.func @scalar(%init: !offsets, %by: i32, %a: i64, %b: i64) -> i32 {
  %c1 = arith.constant 1 : i64
  %step = "tt.splat"(%by) : (i32) -> !offsets
  %r:2 = scf.for %i = %a to %b step %c1 iter_args(%o = %init, %c = %by) -> (!offsets, i32) : i64 {
    func.call @take(%o) : (!offsets) -> ()
    %p = arith.addi %step, %o : !offsets
    %d = arith.addi %c, %c : i32
    scf.yield %p, %d : !offsets, i32
  }
  return %r#1 : i32
}

// Steps of the loop's own, what is asked for behind it, and steps of it that are not known.

// CHECK-LABEL: func.func @stays(
// CHECK: scf.for {{.*}} -> (tensor<64xi32>, tensor<64xi32>)
// CHECK: scf.for {{.*}} -> (tensor<64xi32>)
// CHECK: return
func.func @stays(%init: !offsets, %n: i32) -> !offsets {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %one = arith.constant dense<1> : !offsets
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%o = %init, %q = %init) -> (!offsets, !offsets) : i32 {
    func.call @take(%o) : (!offsets) -> ()
    func.call @take(%q) : (!offsets) -> ()
    %own = "tt.splat"(%i) : (i32) -> !offsets
    %p = arith.addi %o, %own : !offsets
    %s = arith.addi %q, %one : !offsets
    scf.yield %p, %s : !offsets, !offsets
  }
  %t = scf.for %i = %c0 to %n step %n iter_args(%o = %init) -> !offsets : i32 {
    func.call @take(%o) : (!offsets) -> ()
    %p = arith.addi %o, %one : !offsets
    scf.yield %p : !offsets
  }
  return %r#1 : !offsets
}
