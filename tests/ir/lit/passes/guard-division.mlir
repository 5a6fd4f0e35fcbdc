// RUN: proton-opt --pipeline='guard-division' %s | filecheck %s

// CHECK-LABEL: func.func @signed(
// CHECK-SAME: %[[A0:arg[0-9]+]]: i32, %[[A1:arg[0-9]+]]: i32
// CHECK-DAG: %[[C0_I32:.*]] = arith.constant 0 : i32
// CHECK: %[[V0:.*]] = arith.cmpi eq, %[[A1]], %[[C0_I32]] : i32
// CHECK-NEXT: %[[CM2147483648_I32:.*]] = arith.constant -2147483648 : i32
// CHECK-NEXT: %[[V1:.*]] = arith.cmpi eq, %[[A0]], %[[CM2147483648_I32]] : i32
// CHECK-NEXT: %[[CM1_I32:.*]] = arith.constant -1 : i32
// CHECK-NEXT: %[[V2:.*]] = arith.cmpi eq, %[[A1]], %[[CM1_I32]] : i32
// CHECK-NEXT: %[[V3:.*]] = arith.andi %[[V1]], %[[V2]] : i1
// CHECK-NEXT: %[[V4:.*]] = arith.ori %[[V0]], %[[V3]] : i1
// CHECK-NEXT: %[[C1_I32:.*]] = arith.constant 1 : i32
// CHECK-NEXT: %[[V5:.*]] = arith.select %[[V4]], %[[C1_I32]], %[[A1]] : i32
// CHECK-NEXT: %[[V6:.*]] = arith.divsi %[[A0]], %[[V5]] : i32
// CHECK-NEXT: return %[[V6]] : i32
// CHECK-NEXT: }
func.func @signed(%x: i32, %y: i32) -> i32 {
  %r = arith.divsi %x, %y : i32
  return %r : i32
}

// CHECK-LABEL: func.func @unsigned_tensors(
// CHECK-SAME: %[[A0:arg[0-9]+]]: tensor<4xi8>, %[[A1:arg[0-9]+]]: tensor<4xi8>
// CHECK-DAG: %[[CST:.*]] = arith.constant dense<0> : tensor<4xi8>
// CHECK: %[[V0:.*]] = arith.cmpi eq, %[[A1]], %[[CST]] : tensor<4xi8>
// CHECK-NEXT: %[[CST_0:.*]] = arith.constant dense<1> : tensor<4xi8>
// CHECK-NEXT: %[[V1:.*]] = arith.select %[[V0]], %[[CST_0]], %[[A1]] : tensor<4xi1>, tensor<4xi8>
// CHECK-NEXT: %[[V2:.*]] = arith.remui %[[A0]], %[[V1]] : tensor<4xi8>
// CHECK-NEXT: return %[[V2]] : tensor<4xi8>
// CHECK-NEXT: }
func.func @unsigned_tensors(%x: tensor<4xi8>, %y: tensor<4xi8>) -> tensor<4xi8> {
  %r = arith.remui %x, %y : tensor<4xi8>
  return %r : tensor<4xi8>
}

// CHECK-LABEL: func.func @each_kind_is_guarded(
// CHECK: %[[A:.*]] = arith.select
// CHECK-NEXT: arith.divsi %{{.*}}, %[[A]] : i64
// CHECK: %[[B:.*]] = arith.select
// CHECK-NEXT: arith.remsi %{{.*}}, %[[B]] : i64
// CHECK: %[[C:.*]] = arith.select
// CHECK-NEXT: arith.divui %{{.*}}, %[[C]] : i64
// CHECK: %[[D:.*]] = arith.select
// CHECK-NEXT: arith.remui %{{.*}}, %[[D]] : i64
func.func @each_kind_is_guarded(%x: i64, %y: i64) {
  %a = arith.divsi %x, %y : i64
  %b = arith.remsi %x, %y : i64
  %c = arith.divui %x, %y : i64
  %d = arith.remui %x, %y : i64
  return
}

// CHECK-LABEL: func.func @safe_constants_stay(
// CHECK-NOT: arith.select
// CHECK: return
func.func @safe_constants_stay(%x: i32, %v: tensor<4xi32>) {
  %c7 = arith.constant 7 : i32
  %k = arith.constant dense<-2> : tensor<4xi32>
  %a = arith.divsi %x, %c7 : i32
  %b = arith.remsi %v, %k : tensor<4xi32>
  return
}

// CHECK-LABEL: func.func @constants_that_trap(
// CHECK-COUNT-4: arith.select
// CHECK: return
func.func @constants_that_trap(%x: i32, %v: tensor<2xi32>) {
  %c0 = arith.constant 0 : i32
  %cm1 = arith.constant -1 : i32
  %k = arith.constant dense<0> : tensor<2xi32>
  %t = arith.constant dense<[1, 0]> : tensor<2xi32>
  %a = arith.divui %x, %c0 : i32
  %b = arith.divsi %x, %cm1 : i32
  %c = arith.divsi %v, %k : tensor<2xi32>
  %d = arith.divsi %v, %t : tensor<2xi32>
  return
}

// CHECK-LABEL: func.func @floats_stay(
// CHECK-NEXT: arith.divf
// CHECK-NEXT: return
func.func @floats_stay(%x: f32, %y: f32) {
  %a = arith.divf %x, %y : f32
  return
}
