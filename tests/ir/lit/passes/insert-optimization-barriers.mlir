// RUN: proton-opt --pipeline='insert-optimization-barriers' %s | filecheck %s
// Data that crosses a reading passes through a barrier on both of its sides; indices, masks and
// constants do not.

// CHECK-LABEL: func.func @two_readings(
// CHECK: %[[M:.*]] = arith.mulf
// CHECK-NEXT: %[[L:.*]] = "proton_gpu.optimization_barrier"(%[[M]]) : (f32) -> f32
// CHECK-NEXT: "proton_gpu.read_counter"
// CHECK-NEXT: %[[E:.*]] = "proton_gpu.optimization_barrier"(%[[L]]) : (f32) -> f32
// CHECK-NEXT: %[[Y:.*]] = "proton_gpu.optimization_barrier"(%arg1) : (f32) -> f32
// CHECK-NEXT: %[[C:.*]] = arith.constant
// CHECK-NEXT: %[[S:.*]] = arith.addf %[[E]], %[[Y]]
// CHECK-NEXT: %[[T:.*]] = arith.addf %[[S]], %[[C]]
// CHECK-NEXT: %[[I:.*]] = arith.addi %arg2, %arg2
// CHECK-NEXT: %[[L2:.*]] = "proton_gpu.optimization_barrier"(%[[T]]) : (f32) -> f32
// CHECK-NEXT: "proton_gpu.read_counter"
// CHECK-NEXT: %[[E2:.*]] = "proton_gpu.optimization_barrier"(%[[L]]) : (f32) -> f32
// CHECK-NEXT: %[[T2:.*]] = "proton_gpu.optimization_barrier"(%[[L2]]) : (f32) -> f32
// CHECK-NEXT: arith.divf %[[E2]], %[[T2]]
// CHECK-NEXT: arith.addi %[[I]], %[[I]]
func.func @two_readings(%x: f32, %y: f32, %i: i32) -> (f32, i32) attributes {tt.kernel} {
  %m = arith.mulf %x, %x : f32
  %0 = "proton_gpu.read_counter"() : () -> i64
  %c = arith.constant 2.0 : f32
  %s = arith.addf %m, %y : f32
  %t = arith.addf %s, %c : f32
  %j = arith.addi %i, %i : i32
  %1 = "proton_gpu.read_counter"() : () -> i64
  %d = arith.divf %m, %t : f32
  %k = arith.addi %j, %j : i32
  return %d, %k : f32, i32
}

// Integers that were loaded are data; what a loop uses inside of it counts as used where it is.

// CHECK-LABEL: func.func @loaded(
// CHECK: %[[X:.*]] = "tt.load"
// CHECK-NEXT: %[[L:.*]] = "proton_gpu.optimization_barrier"(%[[X]]) : (i32) -> i32
// CHECK-NEXT: "proton_gpu.read_counter"
// CHECK-NEXT: %[[E:.*]] = "proton_gpu.optimization_barrier"(%[[L]]) : (i32) -> i32
// CHECK: scf.for
// CHECK-NEXT: arith.muli %{{.*}}, %[[E]]
func.func @loaded(%p: !tt.ptr<i32>, %n: i32) -> i32 attributes {tt.kernel} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %x = "tt.load"(%p) {cache = "", evict = "", volatile = false, operandSegmentSizes = array<i32: 1, 0, 0>} : (!tt.ptr<i32>) -> i32
  %0 = "proton_gpu.read_counter"() : () -> i64
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%v = %c1) -> (i32) : i32 {
    %m = arith.muli %v, %x : i32
    scf.yield %m : i32
  }
  return %r : i32
}

// A loop's scope takes from outside what the scope around the loop has a barrier on.

// CHECK-LABEL: func.func @nested(
// CHECK: "proton_gpu.read_counter"
// CHECK-NEXT: %[[OUTER:.*]] = "proton_gpu.optimization_barrier"(%arg0) : (f32) -> f32
// CHECK: scf.for
// CHECK: "proton_gpu.read_counter"
// CHECK-NEXT: "proton_gpu.optimization_barrier"
// CHECK-NEXT: %[[INNER:.*]] = "proton_gpu.optimization_barrier"(%[[OUTER]]) : (f32) -> f32
// CHECK: arith.mulf %{{.*}}, %[[INNER]]
func.func @nested(%x: f32, %n: i32) -> f32 attributes {tt.kernel} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %one = arith.constant 1.0 : f32
  %0 = "proton_gpu.read_counter"() : () -> i64
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%v = %one) -> (f32) : i32 {
    %1 = "proton_gpu.read_counter"() : () -> i64
    %m = arith.mulf %v, %x : f32
    %2 = "proton_gpu.read_counter"() : () -> i64
    scf.yield %m : f32
  }
  %3 = "proton_gpu.read_counter"() : () -> i64
  return %r : f32
}
