// RUN: proton-opt --pipeline='tritongpu-combine-tensor-select-and-if' %s | filecheck %s

// A selection before the branch, used in it and after it.

// CHECK-LABEL: func.func @before(
// CHECK-SAME: %[[C:.*]]: i1, %[[A:.*]]: tensor<4xf32>, %[[B:.*]]: tensor<4xf32>)
// CHECK-NOT: arith.select
// CHECK: %[[R:.*]]:2 = scf.if %[[C]] -> (tensor<4xf32>, tensor<4xf32>)
// CHECK-NEXT: %[[E:.*]] = math.exp %[[A]]
// CHECK-NEXT: scf.yield %[[E]], %[[A]]
// CHECK: else
// CHECK-NEXT: %[[L:.*]] = math.log %[[B]]
// CHECK-NEXT: scf.yield %[[L]], %[[B]]
// CHECK: arith.addf %[[R]]#0, %[[R]]#1
func.func @before(%c: i1, %a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32> {
  %v = arith.select %c, %a, %b : tensor<4xf32>
  %r = scf.if %c -> (tensor<4xf32>) {
    %e = math.exp %v : tensor<4xf32>
    scf.yield %e : tensor<4xf32>
  } else {
    %l = math.log %v : tensor<4xf32>
    scf.yield %l : tensor<4xf32>
  }
  %s = arith.addf %r, %v : tensor<4xf32>
  return %s : tensor<4xf32>
}

// One behind it, and a branch that had no else.

// CHECK-LABEL: func.func @behind(
// CHECK-SAME: %[[C:.*]]: i1, %[[A:.*]]: tensor<4xf32>, %[[B:.*]]: tensor<4xf32>
// CHECK: %[[R:.*]] = scf.if %[[C]] -> (tensor<4xf32>)
// CHECK: "tt.store"
// CHECK-NEXT: scf.yield %[[A]]
// CHECK: else
// CHECK-NEXT: scf.yield %[[B]]
// CHECK-NOT: arith.select
// CHECK: return %[[R]]
func.func @behind(%c: i1, %a: tensor<4xf32>, %b: tensor<4xf32>, %p: !tt.ptr<f32>, %x: f32) -> tensor<4xf32> {
  scf.if %c {
    "tt.store"(%p, %x) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>} : (!tt.ptr<f32>, f32) -> ()
  }
  %v = arith.select %c, %a, %b : tensor<4xf32>
  return %v : tensor<4xf32>
}

// Used between the two: it has to be there before the branch.

// CHECK-LABEL: func.func @used_before(
// CHECK: %[[V:.*]] = arith.select
// CHECK-NEXT: %[[E:.*]] = math.exp %[[V]]
// CHECK-NEXT: scf.if
func.func @used_before(%c: i1, %a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32> {
  %v = arith.select %c, %a, %b : tensor<4xf32>
  %e = math.exp %v : tensor<4xf32>
  %r = scf.if %c -> (tensor<4xf32>) {
    scf.yield %e : tensor<4xf32>
  } else {
    scf.yield %v : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}

// Behind the branch, and made of what comes after it, or of its result.

// CHECK-LABEL: func.func @not_ready(
// CHECK: scf.if
// CHECK: arith.select
// CHECK: arith.select
func.func @not_ready(%c: i1, %a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32> {
  %r = scf.if %c -> (tensor<4xf32>) {
    scf.yield %a : tensor<4xf32>
  } else {
    scf.yield %b : tensor<4xf32>
  }
  %e = math.exp %a : tensor<4xf32>
  %v = arith.select %c, %e, %b : tensor<4xf32>
  %w = arith.select %c, %r, %v : tensor<4xf32>
  return %w : tensor<4xf32>
}

// Another condition; a condition of its own for every element; a scalar, which costs nothing.

// CHECK-LABEL: func.func @other(
// CHECK-COUNT-3: arith.select
// CHECK: scf.if
func.func @other(%c: i1, %d: i1, %m: tensor<4xi1>, %a: tensor<4xf32>, %b: tensor<4xf32>, %x: f32, %y: f32) -> (tensor<4xf32>, tensor<4xf32>, f32) {
  %v = arith.select %d, %a, %b : tensor<4xf32>
  %w = arith.select %m, %a, %b : tensor<4xi1>, tensor<4xf32>
  %s = arith.select %c, %x, %y : f32
  %r = scf.if %c -> (tensor<4xf32>) {
    scf.yield %v : tensor<4xf32>
  } else {
    scf.yield %w : tensor<4xf32>
  }
  return %r, %v, %s : tensor<4xf32>, tensor<4xf32>, f32
}

// A branch in another block than the selection.

// CHECK-LABEL: func.func @deeper(
// CHECK: arith.select
// CHECK: scf.for
// CHECK: scf.if
func.func @deeper(%c: i1, %a: tensor<4xf32>, %b: tensor<4xf32>, %n: i32) -> tensor<4xf32> {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %v = arith.select %c, %a, %b : tensor<4xf32>
  %r = scf.for %i = %zero to %n step %one iter_args(%k = %a) -> (tensor<4xf32>) : i32 {
    %t = scf.if %c -> (tensor<4xf32>) {
      scf.yield %v : tensor<4xf32>
    } else {
      scf.yield %k : tensor<4xf32>
    }
    scf.yield %t : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}
