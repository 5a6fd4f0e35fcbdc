// RUN: proton-opt --pipeline='triton-arith-to-linalg,canonicalize,cse' %s | filecheck %s

// KEEP: .
func.func @make_range() -> tensor<8xi32> {
  %r = "tt.make_range"() {start = 4 : i32, end = 12 : i32} : () -> tensor<8xi32>
  return %r : tensor<8xi32>
}

// KEEP: .
func.func @make_range_from_zero() -> tensor<8xi32> {
  %r = "tt.make_range"() {start = 0 : i32, end = 8 : i32} : () -> tensor<8xi32>
  return %r : tensor<8xi32>
}

// KEEP: .
func.func @splat(%x: f32) -> tensor<4x8xf32> {
  %r = "tt.splat"(%x) : (f32) -> tensor<4x8xf32>
  return %r : tensor<4x8xf32>
}

// KEEP: .
func.func @expand_dims(%x: tensor<8x4xf32>) -> tensor<8x1x4xf32> {
  %r = "tt.expand_dims"(%x) {axis = 1 : i32} : (tensor<8x4xf32>) -> tensor<8x1x4xf32>
  return %r : tensor<8x1x4xf32>
}

// KEEP: .
func.func @broadcast(%x: tensor<4x1xf32>) -> tensor<4x8xf32> {
  %r = "tt.broadcast"(%x) : (tensor<4x1xf32>) -> tensor<4x8xf32>
  return %r : tensor<4x8xf32>
}

// KEEP: .
func.func @broadcast_both(%x: tensor<1x1xf32>) -> tensor<4x8xf32> {
  %r = "tt.broadcast"(%x) : (tensor<1x1xf32>) -> tensor<4x8xf32>
  return %r : tensor<4x8xf32>
}

// Dimension d of the result is dimension order[d] of the source.

// KEEP: .
func.func @trans(%x: tensor<2x4x8xf32>) -> tensor<8x2x4xf32> {
  %r = "tt.trans"(%x) {order = array<i64: 2, 0, 1>} : (tensor<2x4x8xf32>) -> tensor<8x2x4xf32>
  return %r : tensor<8x2x4xf32>
}

// KEEP: .
func.func @reshape(%x: tensor<2x8xf32>) -> tensor<4x4xf32> {
  %r = "tt.reshape"(%x) : (tensor<2x8xf32>) -> tensor<4x4xf32>
  return %r : tensor<4x4xf32>
}

// KEEP: .
func.func @reshape_to_one_dimension(%x: tensor<2x8xf32>) -> tensor<16xf32> {
  %r = "tt.reshape"(%x) : (tensor<2x8xf32>) -> tensor<16xf32>
  return %r : tensor<16xf32>
}

// KEEP: .
func.func @reshape_from_one_dimension(%x: tensor<16xf32>) -> tensor<2x8xf32> {
  %r = "tt.reshape"(%x) : (tensor<16xf32>) -> tensor<2x8xf32>
  return %r : tensor<2x8xf32>
}

// KEEP: .
func.func @join(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4x2xf32> {
  %r = "tt.join"(%x, %y) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4x2xf32>
  return %r : tensor<4x2xf32>
}

// KEEP: .
func.func @split(%x: tensor<4x2xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %r:2 = "tt.split"(%x) : (tensor<4x2xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  return %r#0, %r#1 : tensor<4xf32>, tensor<4xf32>
}

// KEEP: .
func.func @unsplat(%x: tensor<1x1xf32>) -> f32 {
  %r = "tt.unsplat"(%x) : (tensor<1x1xf32>) -> f32
  return %r : f32
}

// The operands are widened to the accumulator's type.

// KEEP: generic|arith.ext|yield|matmul|return
func.func @dot_of_halves(%a: tensor<4x8xf16>, %b: tensor<8x2xf16>, %c: tensor<4x2xf32>) -> tensor<4x2xf32> {
  %r = "tt.dot"(%a, %b, %c) {input_precision = "ieee"} : (tensor<4x8xf16>, tensor<8x2xf16>, tensor<4x2xf32>) -> tensor<4x2xf32>
  return %r : tensor<4x2xf32>
}

// KEEP: .
func.func @dot_of_singles(%a: tensor<4x8xf32>, %b: tensor<8x2xf32>, %c: tensor<4x2xf32>) -> tensor<4x2xf32> {
  %r = "tt.dot"(%a, %b, %c) {input_precision = "ieee"} : (tensor<4x8xf32>, tensor<8x2xf32>, tensor<4x2xf32>) -> tensor<4x2xf32>
  return %r : tensor<4x2xf32>
}

// KEEP: extsi|matmul
func.func @dot_of_integers(%a: tensor<4x8xi8>, %b: tensor<8x2xi8>, %c: tensor<4x2xi32>) -> tensor<4x2xi32> {
  %r = "tt.dot"(%a, %b, %c) {input_precision = "ieee"} : (tensor<4x8xi8>, tensor<8x2xi8>, tensor<4x2xi32>) -> tensor<4x2xi32>
  return %r : tensor<4x2xi32>
}

// An accumulator that is narrow is f32 while it accumulates.

// KEEP: extf|matmul|truncf
func.func @dot_with_a_narrow_accumulator(%a: tensor<4x8xf16>, %b: tensor<8x2xf16>, %c: tensor<4x2xf16>) -> tensor<4x2xf16> {
  %r = "tt.dot"(%a, %b, %c) {input_precision = "ieee"} : (tensor<4x8xf16>, tensor<8x2xf16>, tensor<4x2xf16>) -> tensor<4x2xf16>
  return %r : tensor<4x2xf16>
}

// A sum starts at -0.0, its identity; the accumulator comes first, and it may be reassociated.

// KEEP: .
func.func @sum(%x: tensor<4x8xf32>) -> tensor<4xf32> {
  %r = "tt.reduce"(%x) ({
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    "tt.reduce_return"(%s) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (f32) -> ()
  }) {axis = 1 : i32, operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (tensor<4x8xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// To a scalar, along the first axis; NaN is the identity of maxnumf.

// KEEP: .
func.func @maximum_to_a_scalar(%x: tensor<8xf32>) -> f32 {
  %r = "tt.reduce"(%x) ({
  ^bb0(%a: f32, %b: f32):
    %s = arith.maxnumf %a, %b : f32
    "tt.reduce_return"(%s) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (f32) -> ()
  }) {axis = 0 : i32, operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (tensor<8xf32>) -> f32
  return %r : f32
}

// CHECK-LABEL: func.func @identities_of_integers(
// CHECK-DAG: arith.constant -128 : i8
// CHECK-DAG: arith.constant 127 : i8
// CHECK-DAG: arith.constant true
// CHECK-DAG: arith.constant 1 : i8
// CHECK-COUNT-4: linalg.fill
func.func @identities_of_integers(%x: tensor<8xi8>, %y: tensor<8xi1>) -> (i8, i8, i1, i8) {
  %0 = "tt.reduce"(%x) ({
  ^bb0(%a: i8, %b: i8):
    %s = arith.maxsi %a, %b : i8
    "tt.reduce_return"(%s) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (i8) -> ()
  }) {axis = 0 : i32, operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (tensor<8xi8>) -> i8
  %1 = "tt.reduce"(%x) ({
  ^bb0(%a: i8, %b: i8):
    %s = arith.minsi %a, %b : i8
    "tt.reduce_return"(%s) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (i8) -> ()
  }) {axis = 0 : i32, operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (tensor<8xi8>) -> i8
  %2 = "tt.reduce"(%y) ({
  ^bb0(%a: i1, %b: i1):
    %s = arith.andi %a, %b : i1
    "tt.reduce_return"(%s) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (i1) -> ()
  }) {axis = 0 : i32, operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (tensor<8xi1>) -> i1
  %3 = "tt.reduce"(%x) ({
  ^bb0(%a: i8, %b: i8):
    %s = arith.muli %a, %b : i8
    "tt.reduce_return"(%s) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (i8) -> ()
  }) {axis = 0 : i32, operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (tensor<8xi8>) -> i8
  return %0, %1, %2, %3 : i8, i8, i1, i8
}

// A combination that has no known identity starts from the first element.

// KEEP: .
func.func @no_identity(%x: tensor<4x8xf32>) -> tensor<8xf32> {
  %r = "tt.reduce"(%x) ({
  ^bb0(%a: f32, %b: f32):
    %s = arith.mulf %a, %b : f32
    %t = arith.addf %s, %a : f32
    "tt.reduce_return"(%t) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (f32) -> ()
  }) {axis = 0 : i32, operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (tensor<4x8xf32>) -> tensor<8xf32>
  return %r : tensor<8xf32>
}

// One element is the result.

// KEEP: .
func.func @one_element_without_an_identity(%x: tensor<1x8xf32>) -> tensor<8xf32> {
  %r = "tt.reduce"(%x) ({
  ^bb0(%a: f32, %b: f32):
    %s = arith.subf %a, %b : f32
    "tt.reduce_return"(%s) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (f32) -> ()
  }) {axis = 0 : i32, operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (tensor<1x8xf32>) -> tensor<8xf32>
  return %r : tensor<8xf32>
}

// KEEP: .
func.func @tuple(%x: tensor<8xf32>, %y: tensor<8xi32>) -> (f32, i32) {
  %r:2 = "tt.reduce"(%x, %y) ({
  ^bb0(%a: f32, %i: i32, %b: f32, %j: i32):
    %c = arith.cmpf ogt, %a, %b : f32
    %s = arith.select %c, %a, %b : f32
    %k = arith.select %c, %i, %j : i32
    "tt.reduce_return"(%s, %k) {operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0>} : (f32, i32) -> ()
  }) {axis = 0 : i32, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0>} : (tensor<8xf32>, tensor<8xi32>) -> (f32, i32)
  return %r#0, %r#1 : f32, i32
}

// KEEP: .
func.func @elementwise_becomes_generic(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = math.exp %x : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// KEEP: .
func.func @scalars_stay(%x: f32, %i: i32) -> (f32, f32, i32) {
  %0 = "tt.precise_sqrt"(%x) : (f32) -> f32
  %1 = "tt.precise_divf"(%x, %0) : (f32, f32) -> f32
  %2 = "tt.mulhiui"(%i, %i) : (i32, i32) -> i32
  return %0, %1, %2 : f32, f32, i32
}

// To nearest, and one bit back where that went away from zero.

// KEEP: .
func.func @round_to_zero(%x: f32) -> f16 {
  %0 = "tt.fp_to_fp"(%x) {rounding = "rtz"} : (f32) -> f16
  return %0 : f16
}

// Each user of an index-like tensor gets its own.

// CHECK-LABEL: func.func @cheap_producers_are_copied(
// CHECK-COUNT-2: linalg.index
// CHECK-NOT: linalg.index
// CHECK: return
func.func @cheap_producers_are_copied(%x: tensor<8xi32>) -> (tensor<8xi32>, tensor<8xi32>) {
  %r = "tt.make_range"() {start = 0 : i32, end = 8 : i32} : () -> tensor<8xi32>
  %a = arith.divsi %x, %r : tensor<8xi32>
  %b = arith.divsi %r, %x : tensor<8xi32>
  return %a, %b : tensor<8xi32>, tensor<8xi32>
}
