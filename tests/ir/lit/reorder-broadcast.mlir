// RUN: proton-opt --pipeline='tt-reorder-broadcast,canonicalize' %s | filecheck %s
// RUN: proton-opt --pipeline='tt-reorder-broadcast' --debuginfo %s | filecheck %s --check-prefix=LOC

// CHECK-LABEL: func.func @splats_are_added_as_scalars
// CHECK-NEXT: %[[S:.*]] = arith.addi %arg0, %arg1 overflow<nsw> : i32
// CHECK-NEXT: %[[R:.*]] = "tt.splat"(%[[S]]) : (i32) -> tensor<4x8xi32>
// CHECK-NEXT: return %[[R]]
// LOC-LABEL: func.func @splats_are_added_as_scalars
// LOC: arith.addi {{.*}} : i32 loc(#[[ADD:.*]])
// LOC: "tt.splat"{{.*}} loc(#[[ADD]])
func.func @splats_are_added_as_scalars(%a: i32, %b: i32) -> tensor<4x8xi32> {
  %x = "tt.splat"(%a) : (i32) -> tensor<4x8xi32> loc("scope:splat")
  %y = "tt.splat"(%b) : (i32) -> tensor<4x8xi32> loc("scope:splat")
  %r = arith.addi %x, %y overflow<nsw> : tensor<4x8xi32> loc("scope:add")
  return %r : tensor<4x8xi32>
}

// CHECK-LABEL: func.func @chains_of_splats_are_scalar_to_the_end
// CHECK: %[[C:.*]] = arith.constant 2.000000e+00 : f32
// CHECK-NEXT: %[[M:.*]] = arith.mulf %arg0, %[[C]] fastmath<contract> : f32
// CHECK-NEXT: %[[A:.*]] = math.absf %[[M]] : f32
// CHECK-NEXT: %[[L:.*]] = arith.cmpf ogt, %[[A]], %arg0 : f32
// CHECK-NEXT: %[[S:.*]] = arith.select %[[L]], %[[A]], %arg0 : f32
// CHECK-NEXT: %[[T:.*]] = arith.truncf %[[S]] : f32 to f16
// CHECK-NEXT: %[[R:.*]] = "tt.splat"(%[[T]]) : (f16) -> tensor<8xf16>
// CHECK-NEXT: return %[[R]]
func.func @chains_of_splats_are_scalar_to_the_end(%a: f32) -> tensor<8xf16> {
  %c = arith.constant dense<2.0> : tensor<8xf32>
  %x = "tt.splat"(%a) : (f32) -> tensor<8xf32>
  %m = arith.mulf %x, %c fastmath<contract> : tensor<8xf32>
  %b = math.absf %m : tensor<8xf32>
  %l = arith.cmpf ogt, %b, %x : tensor<8xf32>
  %s = arith.select %l, %b, %x : tensor<8xi1>, tensor<8xf32>
  %t = arith.truncf %s : tensor<8xf32> to tensor<8xf16>
  return %t : tensor<8xf16>
}

// CHECK-LABEL: func.func @a_pointer_moves_as_a_scalar
// CHECK-NEXT: %[[Q:.*]] = "tt.addptr"(%arg0, %arg1) : (!tt.ptr<f32>, i32) -> !tt.ptr<f32>
// CHECK-NEXT: "tt.splat"(%[[Q]]) : (!tt.ptr<f32>) -> tensor<8x!tt.ptr<f32>>
func.func @a_pointer_moves_as_a_scalar(%p: !tt.ptr<f32>, %n: i32) -> tensor<8x!tt.ptr<f32>> {
  %x = "tt.splat"(%p) : (!tt.ptr<f32>) -> tensor<8x!tt.ptr<f32>>
  %y = "tt.splat"(%n) : (i32) -> tensor<8xi32>
  %q = "tt.addptr"(%x, %y) : (tensor<8x!tt.ptr<f32>>, tensor<8xi32>) -> tensor<8x!tt.ptr<f32>>
  return %q : tensor<8x!tt.ptr<f32>>
}

// CHECK-LABEL: func.func @the_condition_of_a_select_may_be_a_scalar
// CHECK-NEXT: %[[S:.*]] = arith.select %arg0, %arg1, %arg2 : f32
// CHECK-NEXT: "tt.splat"(%[[S]])
func.func @the_condition_of_a_select_may_be_a_scalar(%c: i1, %a: f32, %b: f32) -> tensor<8xf32> {
  %x = "tt.splat"(%a) : (f32) -> tensor<8xf32>
  %y = "tt.splat"(%b) : (f32) -> tensor<8xf32>
  %r = arith.select %c, %x, %y : tensor<8xf32>
  return %r : tensor<8xf32>
}

// CHECK-LABEL: func.func @both_results_of_an_op_are_splat
// CHECK-NEXT: %[[LOW:.*]], %[[HIGH:.*]] = arith.mului_extended %arg0, %arg1 : i32
// CHECK-DAG: "tt.splat"(%[[LOW]])
// CHECK-DAG: "tt.splat"(%[[HIGH]])
func.func @both_results_of_an_op_are_splat(%a: i32, %b: i32) -> (tensor<8xi32>, tensor<8xi32>) {
  %x = "tt.splat"(%a) : (i32) -> tensor<8xi32>
  %y = "tt.splat"(%b) : (i32) -> tensor<8xi32>
  %low, %high = arith.mului_extended %x, %y : tensor<8xi32>
  return %low, %high : tensor<8xi32>, tensor<8xi32>
}

// CHECK-LABEL: func.func @a_splat_beside_another_tensor_stays
// CHECK: %[[X:.*]] = "tt.splat"
// CHECK-NEXT: arith.addf %[[X]], %arg1 : tensor<8xf32>
func.func @a_splat_beside_another_tensor_stays(%a: f32, %y: tensor<8xf32>) -> tensor<8xf32> {
  %x = "tt.splat"(%a) : (f32) -> tensor<8xf32>
  %r = arith.addf %x, %y : tensor<8xf32>
  return %r : tensor<8xf32>
}

// CHECK-LABEL: func.func @a_hint_about_a_shape_keeps_its_op
// CHECK: arith.addi {{.*}} {tt.divisibility = array<i64: 16>} : tensor<8xi32>
func.func @a_hint_about_a_shape_keeps_its_op(%a: i32) -> tensor<8xi32> {
  %x = "tt.splat"(%a) : (i32) -> tensor<8xi32>
  %r = arith.addi %x, %x {tt.divisibility = array<i64: 16>} : tensor<8xi32>
  return %r : tensor<8xi32>
}

// CHECK-LABEL: func.func @a_table_stays
// CHECK: arith.addi {{.*}} : tensor<2xi32>
func.func @a_table_stays(%a: i32) -> tensor<2xi32> {
  %t = arith.constant dense<[1, 2]> : tensor<2xi32>
  %x = "tt.splat"(%a) : (i32) -> tensor<2xi32>
  %r = arith.addi %x, %t : tensor<2xi32>
  return %r : tensor<2xi32>
}

// CHECK-LABEL: func.func @scalars_and_products_stay
// CHECK: arith.addf %arg0, %arg0 : f32
// CHECK: "tt.dot"(%[[X:.*]], %[[X]], %[[X]])
func.func @scalars_and_products_stay(%a: f32) -> (f32, tensor<4x4xf32>) {
  %s = arith.addf %a, %a : f32
  %x = "tt.splat"(%a) : (f32) -> tensor<4x4xf32>
  %d = "tt.dot"(%x, %x, %x) {inputPrecision = "ieee", maxNumImpreciseAcc = 0 : i32} : (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %s, %d : f32, tensor<4x4xf32>
}

// Broadcasts

// CHECK-LABEL: func.func @broadcasts_from_one_shape_are_added_before
// CHECK-NEXT: %[[S:.*]] = arith.addf %arg0, %arg1 fastmath<reassoc> : tensor<8x1xf32>
// CHECK-NEXT: %[[R:.*]] = "tt.broadcast"(%[[S]]) : (tensor<8x1xf32>) -> tensor<8x4xf32>
// CHECK-NEXT: return %[[R]]
func.func @broadcasts_from_one_shape_are_added_before(%a: tensor<8x1xf32>, %b: tensor<8x1xf32>) -> tensor<8x4xf32> {
  %x = "tt.broadcast"(%a) : (tensor<8x1xf32>) -> tensor<8x4xf32>
  %y = "tt.broadcast"(%b) : (tensor<8x1xf32>) -> tensor<8x4xf32>
  %r = arith.addf %x, %y fastmath<reassoc> : tensor<8x4xf32>
  return %r : tensor<8x4xf32>
}

// CHECK-LABEL: func.func @splats_and_constants_go_along_with_a_broadcast
// CHECK: %[[C:.*]] = arith.constant dense<3> : tensor<1x4xi32>
// CHECK-NEXT: %[[N:.*]] = "tt.splat"(%arg1) : (i32) -> tensor<1x4xi32>
// CHECK-NEXT: %[[M:.*]] = arith.muli %arg0, %[[N]] : tensor<1x4xi32>
// CHECK-NEXT: %[[L:.*]] = arith.cmpi slt, %[[M]], %[[C]] : tensor<1x4xi32>
// CHECK-NEXT: %[[R:.*]] = "tt.broadcast"(%[[L]]) : (tensor<1x4xi1>) -> tensor<8x4xi1>
// CHECK-NEXT: return %[[R]]
func.func @splats_and_constants_go_along_with_a_broadcast(%a: tensor<1x4xi32>, %n: i32) -> tensor<8x4xi1> {
  %c = arith.constant dense<3> : tensor<8x4xi32>
  %x = "tt.broadcast"(%a) : (tensor<1x4xi32>) -> tensor<8x4xi32>
  %y = "tt.splat"(%n) : (i32) -> tensor<8x4xi32>
  %m = arith.muli %x, %y : tensor<8x4xi32>
  %l = arith.cmpi slt, %m, %c : tensor<8x4xi32>
  return %l : tensor<8x4xi1>
}

// CHECK-LABEL: func.func @a_pointer_moves_before_its_broadcast
// CHECK: %[[P:.*]] = "tt.splat"(%arg0) : (!tt.ptr<f32>) -> tensor<8x1x!tt.ptr<f32>>
// CHECK: %[[Q:.*]] = "tt.addptr"(%[[P]], %arg1) : (tensor<8x1x!tt.ptr<f32>>, tensor<8x1xi32>) -> tensor<8x1x!tt.ptr<f32>>
// CHECK: "tt.broadcast"(%[[Q]]) : (tensor<8x1x!tt.ptr<f32>>) -> tensor<8x4x!tt.ptr<f32>>
func.func @a_pointer_moves_before_its_broadcast(%p: !tt.ptr<f32>, %n: tensor<8x1xi32>) -> tensor<8x4x!tt.ptr<f32>> {
  %x = "tt.splat"(%p) : (!tt.ptr<f32>) -> tensor<8x4x!tt.ptr<f32>>
  %y = "tt.broadcast"(%n) : (tensor<8x1xi32>) -> tensor<8x4xi32>
  %q = "tt.addptr"(%x, %y) : (tensor<8x4x!tt.ptr<f32>>, tensor<8x4xi32>) -> tensor<8x4x!tt.ptr<f32>>
  return %q : tensor<8x4x!tt.ptr<f32>>
}

// CHECK-LABEL: func.func @broadcasts_from_two_shapes_stay
// CHECK: arith.addi {{.*}} : tensor<8x4xi32>
func.func @broadcasts_from_two_shapes_stay(%a: tensor<8x1xi32>, %b: tensor<1x4xi32>) -> tensor<8x4xi32> {
  %x = "tt.broadcast"(%a) : (tensor<8x1xi32>) -> tensor<8x4xi32>
  %y = "tt.broadcast"(%b) : (tensor<1x4xi32>) -> tensor<8x4xi32>
  %r = arith.addi %x, %y : tensor<8x4xi32>
  return %r : tensor<8x4xi32>
}

// LOC: #[[ADD]] = loc("scope:add")
