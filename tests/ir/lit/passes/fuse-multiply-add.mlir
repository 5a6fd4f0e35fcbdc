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

// Halves round once, too.

// CHECK-LABEL: func.func @halves(
// CHECK-SAME: %[[X:.*]]: tensor<8xf16>, %[[B:.*]]: bf16
// CHECK: %[[K:.*]] = math.fma %[[X]], %[[X]], %[[X]] : tensor<8xf16>
// CHECK: %[[L:.*]] = math.fma %[[B]], %[[B]], %[[B]] : bf16
// CHECK: return %[[K]], %[[L]]
func.func @halves(%x: tensor<8xf16>, %b: bf16) -> (tensor<8xf16>, bf16) {
  %h = arith.mulf %x, %x : tensor<8xf16>
  %k = arith.addf %h, %x : tensor<8xf16>
  %j = arith.mulf %b, %b : bf16
  %l = arith.addf %j, %b : bf16
  return %k, %l : tensor<8xf16>, bf16
}

// A product that is used elsewhere would be computed twice; integers are no floats.

// CHECK-LABEL: func.func @untouched(
// CHECK-NOT: math.fma
// CHECK: return
func.func @untouched(%a: f32, %b: f32, %i: i32) -> (f32, f32, f32, i32) {
  %p = arith.mulf %a, %b : f32
  %s = arith.addf %p, %a : f32
  %q = arith.mulf %a, %a : f32
  %t = arith.addf %q, %q : f32
  %j = arith.muli %i, %i : i32
  %l = arith.addi %j, %i : i32
  return %p, %s, %t, %l : f32, f32, f32, i32
}
