// RUN: proton-opt --pipeline='fuse-multiply-add' %s | filecheck %s

// CHECK-LABEL: func.func @left(
// CHECK-SAME: %[[A:.*]]: f32, %[[B:.*]]: f32, %[[C:.*]]: f32
// CHECK-NEXT: %[[R:.*]] = math.fma %[[A]], %[[B]], %[[C]] : f32
// CHECK-NEXT: return %[[R]]
func.func @left(%a: f32, %b: f32, %c: f32) -> f32 {
  %p = arith.mulf %a, %b : f32
  %s = arith.addf %p, %c : f32
  return %s : f32
}

// CHECK-LABEL: func.func @right_of_a_tensor(
// CHECK-SAME: %[[A:.*]]: tensor<4xf64>, %[[B:.*]]: tensor<4xf64>, %[[C:.*]]: tensor<4xf64>
// CHECK-NEXT: math.fma %[[A]], %[[B]], %[[C]] : tensor<4xf64>
// CHECK-NOT: arith
// CHECK: return
func.func @right_of_a_tensor(%a: tensor<4xf64>, %b: tensor<4xf64>, %c: tensor<4xf64>) -> tensor<4xf64> {
  %p = arith.mulf %a, %b : tensor<4xf64>
  %s = arith.addf %c, %p : tensor<4xf64>
  return %s : tensor<4xf64>
}

// a b - c

// CHECK-LABEL: func.func @minus(
// CHECK-SAME: %[[A:.*]]: f32, %[[B:.*]]: f32, %[[C:.*]]: f32
// CHECK-NEXT: %[[N:.*]] = arith.negf %[[C]]
// CHECK-NEXT: math.fma %[[A]], %[[B]], %[[N]]
func.func @minus(%a: f32, %b: f32, %c: f32) -> f32 {
  %p = arith.mulf %a, %b : f32
  %s = arith.subf %p, %c : f32
  return %s : f32
}

// c - a b

// CHECK-LABEL: func.func @subtracted(
// CHECK-SAME: %[[A:.*]]: f32, %[[B:.*]]: f32, %[[C:.*]]: f32
// CHECK-NEXT: %[[N:.*]] = arith.negf %[[A]]
// CHECK-NEXT: math.fma %[[N]], %[[B]], %[[C]]
func.func @subtracted(%a: f32, %b: f32, %c: f32) -> f32 {
  %p = arith.mulf %a, %b : f32
  %s = arith.subf %c, %p : f32
  return %s : f32
}

// Of two products one is rounded.

// CHECK-LABEL: func.func @two_products(
// CHECK: %[[Q:.*]] = arith.mulf
// CHECK: math.fma %{{.*}}, %{{.*}}, %[[Q]]
// CHECK-NOT: arith
// CHECK: return
func.func @two_products(%a: f32, %b: f32, %c: f32) -> f32 {
  %p = arith.mulf %a, %b : f32
  %q = arith.mulf %b, %c : f32
  %s = arith.addf %p, %q : f32
  return %s : f32
}

// A product that is used elsewhere would be computed twice; halves and integers are no fp32.

// CHECK-LABEL: func.func @untouched(
// CHECK-NOT: math.fma
// CHECK: return
func.func @untouched(%a: f32, %b: f32, %x: f16, %i: i32) -> (f32, f32, f32, f16, i32) {
  %p = arith.mulf %a, %b : f32
  %s = arith.addf %p, %a : f32
  %q = arith.mulf %a, %a : f32
  %t = arith.addf %q, %q : f32
  %h = arith.mulf %x, %x : f16
  %k = arith.addf %h, %x : f16
  %j = arith.muli %i, %i : i32
  %l = arith.addi %j, %i : i32
  return %p, %s, %t, %k, %l : f32, f32, f32, f16, i32
}

// A product that is used elsewhere is computed again where its factors are there anyway: another
// op takes them behind the addition, or they are outside of its loop. It goes where all do so.

// CHECK-LABEL: func.func @held(
// CHECK-SAME: %[[A:.*]]: f32, %[[B:.*]]: f32, %[[C:.*]]: f32
// CHECK-NEXT: math.fma %[[A]], %[[B]], %[[C]]
// CHECK-NEXT: %[[S:.*]] = arith.addf %[[A]], %[[B]]
// CHECK-NEXT: arith.mulf %[[A]], %[[B]]
// CHECK-NOT: math.fma
// CHECK: return
func.func @held(%a: f32, %b: f32, %c: f32) -> (f32, f32, f32, f32) {
  %p = arith.mulf %a, %b : f32
  %s = arith.addf %p, %c : f32
  %t = arith.addf %a, %b : f32
  %q = arith.mulf %a, %b : f32
  %u = arith.addf %q, %c : f32
  return %s, %t, %q, %u : f32, f32, f32, f32
}

// CHECK-LABEL: func.func @held_by_a_loop(
// CHECK: scf.for
// CHECK-NEXT: math.fma
// CHECK-NEXT: %[[M:.*]] = arith.negf
// CHECK-NEXT: math.fma %[[M]]
// CHECK-NEXT: scf.yield
func.func @held_by_a_loop(%a: f32, %b: f32, %n: i32) -> (f32, f32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%x = %a, %y = %b) -> (f32, f32) : i32 {
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %p, %x : f32
    %t = arith.subf %y, %p : f32
    scf.yield %s, %t : f32, f32
  }
  return %r#0, %r#1 : f32, f32
}
