// RUN: proton-opt --pipeline='triton-licm' %s | filecheck %s

// Invariant tile ops and arithmetic leave the loop; a load as well, where nothing writes: masked
// by whether the loop runs at all.

// CHECK-LABEL: func.func @reads_only(
// CHECK-SAME: %{{.*}}: !tt.ptr<f32>, %[[N:.*]]: i32
// CHECK: %[[ZERO:.*]] = arith.constant 0
// CHECK: "tt.splat"
// CHECK: %[[RUNS:.*]] = arith.cmpi slt, %[[ZERO]], %[[N]] : i32
// CHECK: %[[ALL:.*]] = "tt.splat"(%[[RUNS]]) : (i1) -> tensor<4xi1>
// CHECK: "tt.load"(%{{.*}}, %[[ALL]]) {{.*}}operandSegmentSizes = array<i32: 1, 1, 0>
// CHECK: math.exp
// CHECK: scf.for
// CHECK-NOT: tt.load
// CHECK: return
func.func @reads_only(%x: !tt.ptr<f32>, %n: i32, %init: tensor<4xf32>) -> tensor<4xf32> {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %r = scf.for %i = %zero to %n step %one iter_args(%acc = %init) -> (tensor<4xf32>) : i32 {
    %p = "tt.splat"(%x) : (!tt.ptr<f32>) -> tensor<4x!tt.ptr<f32>>
    %v = "tt.load"(%p) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<4x!tt.ptr<f32>>) -> tensor<4xf32>
    %e = math.exp %v : tensor<4xf32>
    %a = arith.addf %acc, %e : tensor<4xf32>
    scf.yield %a : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}

// A mask and a value for what is masked off go along.

// CHECK-LABEL: func.func @masked(
// CHECK: %[[RUNS:.*]] = arith.cmpi
// CHECK: %[[ALL:.*]] = "tt.splat"(%[[RUNS]])
// CHECK: %[[BOTH:.*]] = arith.andi %[[ALL]], %[[M:.*]] : tensor<4xi1>
// CHECK: "tt.load"(%{{.*}}, %[[BOTH]], %{{.*}}) {{.*}}operandSegmentSizes = array<i32: 1, 1, 1>
// CHECK: scf.for
func.func @masked(%p: tensor<4x!tt.ptr<f32>>, %m: tensor<4xi1>, %o: tensor<4xf32>, %n: i32) -> tensor<4xf32> {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %r = scf.for %i = %zero to %n step %one iter_args(%acc = %o) -> (tensor<4xf32>) : i32 {
    %v = "tt.load"(%p, %m, %o) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 1>, volatile = false} : (tensor<4x!tt.ptr<f32>>, tensor<4xi1>, tensor<4xf32>) -> tensor<4xf32>
    %a = arith.addf %acc, %v : tensor<4xf32>
    scf.yield %a : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}

// Unsigned bounds: an unsigned comparison.

// CHECK-LABEL: func.func @scalar_load_of_an_unsigned_loop(
// CHECK: %[[RUNS:.*]] = arith.cmpi ult
// CHECK-NEXT: "tt.load"(%{{.*}}, %[[RUNS]])
// CHECK-NEXT: scf.for unsigned
func.func @scalar_load_of_an_unsigned_loop(%p: !tt.ptr<f32>, %n: i32) -> f32 {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %f = arith.constant 0.0 : f32
  %r = scf.for unsigned %i = %zero to %n step %one iter_args(%acc = %f) -> (f32) : i32 {
    %v = "tt.load"(%p) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (!tt.ptr<f32>) -> f32
    %a = arith.addf %acc, %v : f32
    scf.yield %a : f32
  }
  return %r : f32
}

// Out of both loops.

// CHECK-LABEL: func.func @nested(
// CHECK: math.exp
// CHECK: scf.for
// CHECK: math.log
// CHECK: scf.for
// CHECK-NOT: math
// CHECK: return
func.func @nested(%x: f32, %n: i32) -> f32 {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %r = scf.for %i = %zero to %n step %one iter_args(%b = %x) -> (f32) : i32 {
    %s = scf.for %j = %zero to %n step %one iter_args(%c = %b) -> (f32) : i32 {
      %e = math.exp %x : f32
      %l = math.log %b : f32
      %d = arith.addf %e, %l : f32
      %a = arith.addf %c, %d : f32
      scf.yield %a : f32
    }
    scf.yield %s : f32
  }
  return %r : f32
}

// Where the loop writes, loads stay; addresses leave.

// CHECK-LABEL: func.func @writes(
// CHECK: "tt.splat"
// CHECK: scf.for
// CHECK: "tt.load"
// CHECK: "tt.store"
func.func @writes(%x: !tt.ptr<f32>, %n: i32) {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  scf.for %i = %zero to %n step %one : i32 {
    %p = "tt.splat"(%x) : (!tt.ptr<f32>) -> tensor<4x!tt.ptr<f32>>
    %v = "tt.load"(%p) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<4x!tt.ptr<f32>>) -> tensor<4xf32>
    %e = math.exp %v : tensor<4xf32>
    "tt.store"(%p, %e) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<4x!tt.ptr<f32>>, tensor<4xf32>) -> ()
  }
  return
}

// A write in a loop inside of this one, a call, and a barrier count.

// CHECK-LABEL: func.func @writes_deep_inside(
// CHECK: scf.for
// CHECK-NEXT: "tt.load"
func.func @writes_deep_inside(%p: !tt.ptr<f32>, %n: i32, %c: i1) {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  scf.for %i = %zero to %n step %one : i32 {
    %v = "tt.load"(%p) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (!tt.ptr<f32>) -> f32
    scf.if %c {
      "tt.store"(%p, %v) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>} : (!tt.ptr<f32>, f32) -> ()
    }
  }
  return
}

// CHECK-LABEL: func.func @calls(
// CHECK: scf.for
// CHECK-NEXT: "tt.load"
func.func @calls(%p: !tt.ptr<f32>, %n: i32, %c: i1) {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  scf.for %i = %zero to %n step %one : i32 {
    %v = "tt.load"(%p) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (!tt.ptr<f32>) -> f32
    func.call @writes(%p, %n) : (!tt.ptr<f32>, i32) -> ()
  }
  return
}

// CHECK-LABEL: func.func @barrier(
// CHECK: scf.for
// CHECK-NEXT: "tt.load"
func.func @barrier(%p: !tt.ptr<f32>, %n: i32, %c: i1) {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  scf.for %i = %zero to %n step %one : i32 {
    %v = "tt.load"(%p) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (!tt.ptr<f32>) -> f32
    "tt.debug_barrier"() : () -> ()
  }
  return
}

// Nothing passes a volatile load.

// CHECK-LABEL: func.func @behind_a_volatile_load(
// CHECK: scf.for
// CHECK-NEXT: "tt.load"(%arg0){{.*}}volatile = true
// CHECK-NEXT: "tt.load"(%arg1)
func.func @behind_a_volatile_load(%p: !tt.ptr<i32>, %q: !tt.ptr<i32>, %n: i32) -> i32 {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %r = scf.for %i = %zero to %n step %one iter_args(%acc = %zero) -> (i32) : i32 {
    %v = "tt.load"(%p) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = true} : (!tt.ptr<i32>) -> i32
    %w = "tt.load"(%q) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (!tt.ptr<i32>) -> i32
    %s = arith.addi %v, %w : i32
    scf.yield %s : i32
  }
  return %r : i32
}

// A volatile load, a division (the loop may not run, and the divisor be zero), and what depends
// on the iteration.

// CHECK-LABEL: func.func @stays(
// CHECK: scf.for
// CHECK-NEXT: "tt.load"
// CHECK-NEXT: arith.divsi
// CHECK-NEXT: arith.remui
// CHECK-NEXT: arith.addi
func.func @stays(%p: !tt.ptr<i32>, %n: i32, %d: i32) -> i32 {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %r = scf.for %i = %zero to %n step %one iter_args(%acc = %zero) -> (i32) : i32 {
    %v = "tt.load"(%p) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = true} : (!tt.ptr<i32>) -> i32
    %q = arith.divsi %n, %d : i32
    %m = arith.remui %n, %d : i32
    %s = arith.addi %i, %m : i32
    scf.yield %s : i32
  }
  return %r : i32
}

// CHECK-LABEL: func.func @asked_not_to(
// CHECK: scf.for
// CHECK-NEXT: arith.muli
func.func @asked_not_to(%p: !tt.ptr<i32>, %n: i32) {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  scf.for %i = %zero to %n step %one : i32 {
    %m = arith.muli %n, %n : i32
    "tt.store"(%p, %m) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>} : (!tt.ptr<i32>, i32) -> ()
  } {tt.disable_licm}
  return
}
