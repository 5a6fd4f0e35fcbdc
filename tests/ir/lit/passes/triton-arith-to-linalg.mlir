// RUN: proton-opt --pipeline='triton-arith-to-linalg,canonicalize,cse,triton-dot-to-linalg' %s | filecheck %s
// RUN: proton-opt --pipeline='triton-arith-to-linalg,triton-dot-to-linalg' %s | filecheck %s --check-prefix=COPIES

// CHECK-DAG: #[[MAP_D0_D0:.*]] = affine_map<(d0) -> (d0)>
// CHECK-DAG: #[[MAP_D0D1:.*]] = affine_map<(d0, d1) -> ()>
// CHECK-DAG: #[[MAP_D0_D01:.*]] = affine_map<(d0) -> (d0, 1)>
// CHECK-DAG: #[[MAP_D0:.*]] = affine_map<(d0) -> ()>
// CHECK-DAG: #[[MAP_D0D1_D1:.*]] = affine_map<(d0, d1) -> (d1)>
// CHECK-DAG: #[[MAP_D0D1_D0D1:.*]] = affine_map<(d0, d1) -> (d0, d1)>
// CHECK-DAG: #[[MAP_D0D1D2_D0D2:.*]] = affine_map<(d0, d1, d2) -> (d0, d2)>
// CHECK-DAG: #[[MAP_D0D1D2_D0D1D2:.*]] = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
// CHECK-DAG: #[[MAP_D0D1_D00:.*]] = affine_map<(d0, d1) -> (d0, 0)>
// CHECK-DAG: #[[MAP_D0D1_00:.*]] = affine_map<(d0, d1) -> (0, 0)>
// CHECK-DAG: #[[MAP_D0D1D2_D1D2D0:.*]] = affine_map<(d0, d1, d2) -> (d1, d2, d0)>
// CHECK-DAG: #[[MAP_D0D1_D0:.*]] = affine_map<(d0, d1) -> (d0)>
// CHECK-DAG: #[[MAP_D0_D00:.*]] = affine_map<(d0) -> (d0, 0)>

// CHECK-LABEL: func.func @make_range(
// CHECK-DAG: %[[C4_I32:.*]] = arith.constant 4 : i32
// CHECK: %[[V0:.*]] = tensor.empty() : tensor<8xi32>
// CHECK-NEXT: %[[V1:.*]] = linalg.generic {indexing_maps = [#[[MAP_D0_D0]]], iterator_types = ["parallel"]} outs(%[[V0]] : tensor<8xi32>) {
// CHECK-NEXT: ^bb0(%{{.*}}: i32):
// CHECK-NEXT: %[[V2:.*]] = linalg.index 0 : index
// CHECK-NEXT: %[[V3:.*]] = arith.index_cast %[[V2]] : index to i32
// CHECK-NEXT: %[[V4:.*]] = arith.addi %[[V3]], %[[C4_I32]] : i32
// CHECK-NEXT: linalg.yield %[[V4]] : i32
// CHECK-NEXT: } -> tensor<8xi32>
// CHECK-NEXT: return %[[V1]] : tensor<8xi32>
// CHECK-NEXT: }
func.func @make_range() -> tensor<8xi32> {
  %r = "tt.make_range"() {start = 4 : i32, end = 12 : i32} : () -> tensor<8xi32>
  return %r : tensor<8xi32>
}

// CHECK-LABEL: func.func @make_range_from_zero(
// CHECK: %[[V0:.*]] = tensor.empty() : tensor<8xi32>
// CHECK-NEXT: %[[V1:.*]] = linalg.generic {indexing_maps = [#[[MAP_D0_D0]]], iterator_types = ["parallel"]} outs(%[[V0]] : tensor<8xi32>) {
// CHECK-NEXT: ^bb0(%{{.*}}: i32):
// CHECK-NEXT: %[[V2:.*]] = linalg.index 0 : index
// CHECK-NEXT: %[[V3:.*]] = arith.index_cast %[[V2]] : index to i32
// CHECK-NEXT: linalg.yield %[[V3]] : i32
// CHECK-NEXT: } -> tensor<8xi32>
// CHECK-NEXT: return %[[V1]] : tensor<8xi32>
// CHECK-NEXT: }
func.func @make_range_from_zero() -> tensor<8xi32> {
  %r = "tt.make_range"() {start = 0 : i32, end = 8 : i32} : () -> tensor<8xi32>
  return %r : tensor<8xi32>
}

// A range that is compared is a table.

// CHECK-LABEL: func.func @make_range_compared(
// CHECK-DAG: arith.constant dense<[4, 5, 6, 7]> : tensor<4xi32>
// CHECK-NOT: linalg.index
// CHECK: arith.cmpi slt
func.func @make_range_compared(%x: tensor<8x4xi32>) -> tensor<8x4xi1> {
  %r = "tt.make_range"() {start = 4 : i32, end = 8 : i32} : () -> tensor<4xi32>
  %e = "tt.expand_dims"(%r) {axis = 0 : i32} : (tensor<4xi32>) -> tensor<1x4xi32>
  %b = "tt.broadcast"(%e) : (tensor<1x4xi32>) -> tensor<8x4xi32>
  %c = arith.cmpi slt, %b, %x : tensor<8x4xi32>
  return %c : tensor<8x4xi1>
}

// CHECK-LABEL: func.func @splat(
// CHECK-SAME: %[[A0:arg[0-9]+]]: f32
// CHECK: %[[V0:.*]] = tensor.empty() : tensor<4x8xf32>
// CHECK-NEXT: %[[V1:.*]] = linalg.generic {indexing_maps = [#[[MAP_D0D1]], #[[MAP_D0D1_D0D1]]], iterator_types = ["parallel", "parallel"]} ins(%[[A0]] : f32) outs(%[[V0]] : tensor<4x8xf32>) {
// CHECK-NEXT: ^bb0(%[[V2:[a-z0-9_]+]]: f32, %{{.*}}: f32):
// CHECK-NEXT: linalg.yield %[[V2]] : f32
// CHECK-NEXT: } -> tensor<4x8xf32>
// CHECK-NEXT: return %[[V1]] : tensor<4x8xf32>
// CHECK-NEXT: }
func.func @splat(%x: f32) -> tensor<4x8xf32> {
  %r = "tt.splat"(%x) : (f32) -> tensor<4x8xf32>
  return %r : tensor<4x8xf32>
}

// CHECK-LABEL: func.func @expand_dims(
// CHECK-SAME: %[[A0:arg[0-9]+]]: tensor<8x4xf32>
// CHECK: %[[V0:.*]] = tensor.empty() : tensor<8x1x4xf32>
// CHECK-NEXT: %[[V1:.*]] = linalg.generic {indexing_maps = [#[[MAP_D0D1D2_D0D2]], #[[MAP_D0D1D2_D0D1D2]]], iterator_types = ["parallel", "parallel", "parallel"]} ins(%[[A0]] : tensor<8x4xf32>) outs(%[[V0]] : tensor<8x1x4xf32>) {
// CHECK-NEXT: ^bb0(%[[V2:[a-z0-9_]+]]: f32, %{{.*}}: f32):
// CHECK-NEXT: linalg.yield %[[V2]] : f32
// CHECK-NEXT: } -> tensor<8x1x4xf32>
// CHECK-NEXT: return %[[V1]] : tensor<8x1x4xf32>
// CHECK-NEXT: }
func.func @expand_dims(%x: tensor<8x4xf32>) -> tensor<8x1x4xf32> {
  %r = "tt.expand_dims"(%x) {axis = 1 : i32} : (tensor<8x4xf32>) -> tensor<8x1x4xf32>
  return %r : tensor<8x1x4xf32>
}

// CHECK-LABEL: func.func @broadcast(
// CHECK-SAME: %[[A0:arg[0-9]+]]: tensor<4x1xf32>
// CHECK: %[[V0:.*]] = tensor.empty() : tensor<4x8xf32>
// CHECK-NEXT: %[[V1:.*]] = linalg.generic {indexing_maps = [#[[MAP_D0D1_D00]], #[[MAP_D0D1_D0D1]]], iterator_types = ["parallel", "parallel"]} ins(%[[A0]] : tensor<4x1xf32>) outs(%[[V0]] : tensor<4x8xf32>) {
// CHECK-NEXT: ^bb0(%[[V2:[a-z0-9_]+]]: f32, %{{.*}}: f32):
// CHECK-NEXT: linalg.yield %[[V2]] : f32
// CHECK-NEXT: } -> tensor<4x8xf32>
// CHECK-NEXT: return %[[V1]] : tensor<4x8xf32>
// CHECK-NEXT: }
func.func @broadcast(%x: tensor<4x1xf32>) -> tensor<4x8xf32> {
  %r = "tt.broadcast"(%x) : (tensor<4x1xf32>) -> tensor<4x8xf32>
  return %r : tensor<4x8xf32>
}

// CHECK-LABEL: func.func @broadcast_both(
// CHECK-SAME: %[[A0:arg[0-9]+]]: tensor<1x1xf32>
// CHECK: %[[V0:.*]] = tensor.empty() : tensor<4x8xf32>
// CHECK-NEXT: %[[V1:.*]] = linalg.generic {indexing_maps = [#[[MAP_D0D1_00]], #[[MAP_D0D1_D0D1]]], iterator_types = ["parallel", "parallel"]} ins(%[[A0]] : tensor<1x1xf32>) outs(%[[V0]] : tensor<4x8xf32>) {
// CHECK-NEXT: ^bb0(%[[V2:[a-z0-9_]+]]: f32, %{{.*}}: f32):
// CHECK-NEXT: linalg.yield %[[V2]] : f32
// CHECK-NEXT: } -> tensor<4x8xf32>
// CHECK-NEXT: return %[[V1]] : tensor<4x8xf32>
// CHECK-NEXT: }
func.func @broadcast_both(%x: tensor<1x1xf32>) -> tensor<4x8xf32> {
  %r = "tt.broadcast"(%x) : (tensor<1x1xf32>) -> tensor<4x8xf32>
  return %r : tensor<4x8xf32>
}

// Dimension d of the result is dimension order[d] of the source.

// CHECK-LABEL: func.func @trans(
// CHECK-SAME: %[[A0:arg[0-9]+]]: tensor<2x4x8xf32>
// CHECK: %[[V0:.*]] = tensor.empty() : tensor<8x2x4xf32>
// CHECK-NEXT: %[[V1:.*]] = linalg.generic {indexing_maps = [#[[MAP_D0D1D2_D1D2D0]], #[[MAP_D0D1D2_D0D1D2]]], iterator_types = ["parallel", "parallel", "parallel"]} ins(%[[A0]] : tensor<2x4x8xf32>) outs(%[[V0]] : tensor<8x2x4xf32>) {
// CHECK-NEXT: ^bb0(%[[V2:[a-z0-9_]+]]: f32, %{{.*}}: f32):
// CHECK-NEXT: linalg.yield %[[V2]] : f32
// CHECK-NEXT: } -> tensor<8x2x4xf32>
// CHECK-NEXT: return %[[V1]] : tensor<8x2x4xf32>
// CHECK-NEXT: }
func.func @trans(%x: tensor<2x4x8xf32>) -> tensor<8x2x4xf32> {
  %r = "tt.trans"(%x) {order = array<i64: 2, 0, 1>} : (tensor<2x4x8xf32>) -> tensor<8x2x4xf32>
  return %r : tensor<8x2x4xf32>
}

// CHECK-LABEL: func.func @reshape(
// CHECK-SAME: %[[A0:arg[0-9]+]]: tensor<2x8xf32>
// CHECK: %[[V0:.*]] = tensor.collapse_shape %[[A0]] [[0, 1]] : tensor<2x8xf32> into tensor<16xf32>
// CHECK-NEXT: %[[V1:.*]] = tensor.expand_shape %[[V0]] [[0, 1]] output_shape [4, 4] : tensor<16xf32> into tensor<4x4xf32>
// CHECK-NEXT: return %[[V1]] : tensor<4x4xf32>
// CHECK-NEXT: }
func.func @reshape(%x: tensor<2x8xf32>) -> tensor<4x4xf32> {
  %r = "tt.reshape"(%x) : (tensor<2x8xf32>) -> tensor<4x4xf32>
  return %r : tensor<4x4xf32>
}

// CHECK-LABEL: func.func @reshape_to_one_dimension(
// CHECK-SAME: %[[A0:arg[0-9]+]]: tensor<2x8xf32>
// CHECK: %[[V0:.*]] = tensor.collapse_shape %[[A0]] [[0, 1]] : tensor<2x8xf32> into tensor<16xf32>
// CHECK-NEXT: return %[[V0]] : tensor<16xf32>
// CHECK-NEXT: }
func.func @reshape_to_one_dimension(%x: tensor<2x8xf32>) -> tensor<16xf32> {
  %r = "tt.reshape"(%x) : (tensor<2x8xf32>) -> tensor<16xf32>
  return %r : tensor<16xf32>
}

// CHECK-LABEL: func.func @reshape_from_one_dimension(
// CHECK-SAME: %[[A0:arg[0-9]+]]: tensor<16xf32>
// CHECK: %[[V0:.*]] = tensor.expand_shape %[[A0]] [[0, 1]] output_shape [2, 8] : tensor<16xf32> into tensor<2x8xf32>
// CHECK-NEXT: return %[[V0]] : tensor<2x8xf32>
// CHECK-NEXT: }
func.func @reshape_from_one_dimension(%x: tensor<16xf32>) -> tensor<2x8xf32> {
  %r = "tt.reshape"(%x) : (tensor<16xf32>) -> tensor<2x8xf32>
  return %r : tensor<2x8xf32>
}

// CHECK-LABEL: func.func @join(
// CHECK-SAME: %[[A0:arg[0-9]+]]: tensor<4xf32>, %[[A1:arg[0-9]+]]: tensor<4xf32>
// CHECK-DAG: %[[C0:.*]] = arith.constant 0 : index
// CHECK: %[[V0:.*]] = tensor.empty() : tensor<4x2xf32>
// CHECK-NEXT: %[[V1:.*]] = linalg.generic {indexing_maps = [#[[MAP_D0D1_D0]], #[[MAP_D0D1_D0]], #[[MAP_D0D1_D0D1]]], iterator_types = ["parallel", "parallel"]} ins(%[[A0]], %[[A1]] : tensor<4xf32>, tensor<4xf32>) outs(%[[V0]] : tensor<4x2xf32>) {
// CHECK-NEXT: ^bb0(%[[V2:[a-z0-9_]+]]: f32, %[[V3:[a-z0-9_]+]]: f32, %{{.*}}: f32):
// CHECK-NEXT: %[[V4:.*]] = linalg.index 1 : index
// CHECK-NEXT: %[[V5:.*]] = arith.cmpi eq, %[[V4]], %[[C0]] : index
// CHECK-NEXT: %[[V6:.*]] = arith.select %[[V5]], %[[V2]], %[[V3]] : f32
// CHECK-NEXT: linalg.yield %[[V6]] : f32
// CHECK-NEXT: } -> tensor<4x2xf32>
// CHECK-NEXT: return %[[V1]] : tensor<4x2xf32>
// CHECK-NEXT: }
func.func @join(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4x2xf32> {
  %r = "tt.join"(%x, %y) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4x2xf32>
  return %r : tensor<4x2xf32>
}

// CHECK-LABEL: func.func @split(
// CHECK-SAME: %[[A0:arg[0-9]+]]: tensor<4x2xf32>
// CHECK: %[[V0:.*]] = tensor.empty() : tensor<4xf32>
// CHECK-NEXT: %[[V1:.*]] = linalg.generic {indexing_maps = [#[[MAP_D0_D00]], #[[MAP_D0_D0]]], iterator_types = ["parallel"]} ins(%[[A0]] : tensor<4x2xf32>) outs(%[[V0]] : tensor<4xf32>) {
// CHECK-NEXT: ^bb0(%[[V2:[a-z0-9_]+]]: f32, %[[V3:[a-z0-9_]+]]: f32):
// CHECK-NEXT: linalg.yield %[[V2]] : f32
// CHECK-NEXT: } -> tensor<4xf32>
// CHECK-NEXT: %[[V4:.*]] = linalg.generic {indexing_maps = [#[[MAP_D0_D01]], #[[MAP_D0_D0]]], iterator_types = ["parallel"]} ins(%[[A0]] : tensor<4x2xf32>) outs(%[[V0]] : tensor<4xf32>) {
// CHECK-NEXT: ^bb0(%[[V2]]: f32, %[[V3]]: f32):
// CHECK-NEXT: linalg.yield %[[V2]] : f32
// CHECK-NEXT: } -> tensor<4xf32>
// CHECK-NEXT: return %[[V1]], %[[V4]] : tensor<4xf32>, tensor<4xf32>
// CHECK-NEXT: }
func.func @split(%x: tensor<4x2xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %r:2 = "tt.split"(%x) : (tensor<4x2xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  return %r#0, %r#1 : tensor<4xf32>, tensor<4xf32>
}

// CHECK-LABEL: func.func @unsplat(
// CHECK-SAME: %[[A0:arg[0-9]+]]: tensor<1x1xf32>
// CHECK-DAG: %[[C0:.*]] = arith.constant 0 : index
// CHECK: %[[V0:.*]] = tensor.extract %[[A0]][%[[C0]], %[[C0]]] : tensor<1x1xf32>
// CHECK-NEXT: return %[[V0]] : f32
// CHECK-NEXT: }
func.func @unsplat(%x: tensor<1x1xf32>) -> f32 {
  %r = "tt.unsplat"(%x) : (tensor<1x1xf32>) -> f32
  return %r : f32
}

// The operands are widened to the accumulator's type.

// CHECK-LABEL: func.func @dot_of_halves(
// CHECK-SAME: %[[A0:arg[0-9]+]]: tensor<4x8xf16>, %[[A1:arg[0-9]+]]: tensor<8x2xf16>, %[[A2:arg[0-9]+]]: tensor<4x2xf32>
// CHECK: %[[V0:.*]] = linalg.generic {indexing_maps = [#[[MAP_D0D1_D0D1]], #[[MAP_D0D1_D0D1]]], iterator_types = ["parallel", "parallel"]} ins(%[[A0]] : tensor<4x8xf16>) outs(%{{.*}} : tensor<4x8xf32>) {
// CHECK: %[[V1:.*]] = arith.extf %{{.*}} : f16 to f32
// CHECK-NEXT: linalg.yield %[[V1]] : f32
// CHECK: %[[V2:.*]] = linalg.generic {indexing_maps = [#[[MAP_D0D1_D0D1]], #[[MAP_D0D1_D0D1]]], iterator_types = ["parallel", "parallel"]} ins(%[[A1]] : tensor<8x2xf16>) outs(%{{.*}} : tensor<8x2xf32>) {
// CHECK: %[[V1]] = arith.extf %{{.*}} : f16 to f32
// CHECK-NEXT: linalg.yield %[[V1]] : f32
// CHECK: %[[V3:.*]] = linalg.matmul ins(%[[V0]], %[[V2]] : tensor<4x8xf32>, tensor<8x2xf32>) outs(%[[A2]] : tensor<4x2xf32>) -> tensor<4x2xf32>
// CHECK-NEXT: return %[[V3]] : tensor<4x2xf32>
func.func @dot_of_halves(%a: tensor<4x8xf16>, %b: tensor<8x2xf16>, %c: tensor<4x2xf32>) -> tensor<4x2xf32> {
  %r = "tt.dot"(%a, %b, %c) {inputPrecision = "ieee", maxNumImpreciseAcc = 0 : i32} : (tensor<4x8xf16>, tensor<8x2xf16>, tensor<4x2xf32>) -> tensor<4x2xf32>
  return %r : tensor<4x2xf32>
}

// CHECK-LABEL: func.func @dot_of_singles(
// CHECK-SAME: %[[A0:arg[0-9]+]]: tensor<4x8xf32>, %[[A1:arg[0-9]+]]: tensor<8x2xf32>, %[[A2:arg[0-9]+]]: tensor<4x2xf32>
// CHECK: %[[V0:.*]] = linalg.matmul ins(%[[A0]], %[[A1]] : tensor<4x8xf32>, tensor<8x2xf32>) outs(%[[A2]] : tensor<4x2xf32>) -> tensor<4x2xf32>
// CHECK-NEXT: return %[[V0]] : tensor<4x2xf32>
// CHECK-NEXT: }
func.func @dot_of_singles(%a: tensor<4x8xf32>, %b: tensor<8x2xf32>, %c: tensor<4x2xf32>) -> tensor<4x2xf32> {
  %r = "tt.dot"(%a, %b, %c) {inputPrecision = "ieee", maxNumImpreciseAcc = 0 : i32} : (tensor<4x8xf32>, tensor<8x2xf32>, tensor<4x2xf32>) -> tensor<4x2xf32>
  return %r : tensor<4x2xf32>
}

// CHECK-LABEL: func.func @dot_of_integers(
// CHECK-SAME: %{{.*}}: tensor<4x8xi8>, %{{.*}}: tensor<8x2xi8>, %[[A2:arg[0-9]+]]: tensor<4x2xi32>
// CHECK: %[[V0:.*]] = arith.extsi %{{.*}} : i8 to i32
// CHECK: %[[V0]] = arith.extsi %{{.*}} : i8 to i32
// CHECK: %{{.*}} = linalg.matmul ins(%{{.*}}, %{{.*}} : tensor<4x8xi32>, tensor<8x2xi32>) outs(%[[A2]] : tensor<4x2xi32>) -> tensor<4x2xi32>
func.func @dot_of_integers(%a: tensor<4x8xi8>, %b: tensor<8x2xi8>, %c: tensor<4x2xi32>) -> tensor<4x2xi32> {
  %r = "tt.dot"(%a, %b, %c) {inputPrecision = "ieee", maxNumImpreciseAcc = 0 : i32} : (tensor<4x8xi8>, tensor<8x2xi8>, tensor<4x2xi32>) -> tensor<4x2xi32>
  return %r : tensor<4x2xi32>
}

// An accumulator that is narrow is f32 while it accumulates.

// CHECK-LABEL: func.func @dot_with_a_narrow_accumulator(
// CHECK: %[[V0:.*]] = arith.extf %{{.*}} : f16 to f32
// CHECK: %[[V0]] = arith.extf %{{.*}} : f16 to f32
// CHECK: %[[V0]] = arith.extf %{{.*}} : f16 to f32
// CHECK: %{{.*}} = linalg.matmul ins(%{{.*}}, %{{.*}} : tensor<4x8xf32>, tensor<8x2xf32>) outs(%{{.*}} : tensor<4x2xf32>) -> tensor<4x2xf32>
// CHECK: %[[V0]] = arith.truncf %{{.*}} : f32 to f16
func.func @dot_with_a_narrow_accumulator(%a: tensor<4x8xf16>, %b: tensor<8x2xf16>, %c: tensor<4x2xf16>) -> tensor<4x2xf16> {
  %r = "tt.dot"(%a, %b, %c) {inputPrecision = "ieee", maxNumImpreciseAcc = 0 : i32} : (tensor<4x8xf16>, tensor<8x2xf16>, tensor<4x2xf16>) -> tensor<4x2xf16>
  return %r : tensor<4x2xf16>
}

// A sum starts at -0.0, its identity; the accumulator comes first, and it may be reassociated.

// CHECK-LABEL: func.func @sum(
// CHECK-SAME: %[[A0:arg[0-9]+]]: tensor<4x8xf32>
// CHECK-DAG: %[[CST:.*]] = arith.constant -0.000000e+00 : f32
// CHECK: %[[V0:.*]] = tensor.empty() : tensor<4xf32>
// CHECK-NEXT: %[[V1:.*]] = linalg.fill ins(%[[CST]] : f32) outs(%[[V0]] : tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: %[[V2:.*]] = linalg.generic {indexing_maps = [#[[MAP_D0D1_D0D1]], #[[MAP_D0D1_D0]]], iterator_types = ["parallel", "reduction"]} ins(%[[A0]] : tensor<4x8xf32>) outs(%[[V1]] : tensor<4xf32>) {
// CHECK-NEXT: ^bb0(%[[V3:[a-z0-9_]+]]: f32, %[[V4:[a-z0-9_]+]]: f32):
// CHECK-NEXT: %[[V5:.*]] = arith.addf %[[V4]], %[[V3]] fastmath<reassoc> : f32
// CHECK-NEXT: linalg.yield %[[V5]] : f32
// CHECK-NEXT: } -> tensor<4xf32>
// CHECK-NEXT: return %[[V2]] : tensor<4xf32>
// CHECK-NEXT: }
func.func @sum(%x: tensor<4x8xf32>) -> tensor<4xf32> {
  %r = "tt.reduce"(%x) ({
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    "tt.reduce_return"(%s) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (f32) -> ()
  }) {axis = 1 : i32, operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (tensor<4x8xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// To a scalar, along the first axis; by integers in the order of the numbers, NaNs lowest.

// CHECK-LABEL: func.func @maximum_to_a_scalar(
// CHECK-SAME: %[[A0:arg[0-9]+]]: tensor<8xf32>
// CHECK-DAG: %[[NANS:.*]] = arith.constant 8388607 : i32
// CHECK-DAG: %[[LARGEST:.*]] = arith.constant 2147483647 : i32
// CHECK-DAG: %[[SIGN:.*]] = arith.constant 31 : i32
// CHECK-DAG: %[[LOSER:.*]] = arith.constant -2147483648 : i32
// CHECK: %[[INIT:.*]] = linalg.fill ins(%[[LOSER]] : i32)
// CHECK: %[[KEY:.*]] = linalg.generic {{.*}} iterator_types = ["reduction"]} ins(%[[A0]] : tensor<8xf32>) outs(%[[INIT]] : tensor<i32>) {
// CHECK-NEXT: ^bb0(%[[IN:[a-z0-9_]+]]: f32, %[[OUT:[a-z0-9_]+]]: i32):
// CHECK-NEXT: %[[BITS:.*]] = arith.bitcast %[[IN]] : f32 to i32
// CHECK-NEXT: %[[NEGATIVE:.*]] = arith.shrsi %[[BITS]], %[[SIGN]] : i32
// CHECK-NEXT: %[[MASK:.*]] = arith.andi %[[NEGATIVE]], %[[LARGEST]] : i32
// CHECK-NEXT: %[[ORDERED:.*]] = arith.xori %[[BITS]], %[[MASK]] : i32
// CHECK-NEXT: %[[MOVED:.*]] = arith.addi %[[ORDERED]], %[[NANS]] : i32
// CHECK-NEXT: %[[MAX:.*]] = arith.maxsi %[[OUT]], %[[MOVED]] : i32
// CHECK-NEXT: linalg.yield %[[MAX]] : i32
// CHECK: ins(%[[KEY]] : tensor<i32>)
// CHECK: arith.subi %{{.*}}, %[[NANS]] : i32
// CHECK: arith.bitcast %{{.*}} : i32 to f32
// CHECK: tensor.extract
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

// CHECK-LABEL: func.func @no_identity(
// CHECK-SAME: %[[A0:arg[0-9]+]]: tensor<4x8xf32>
// CHECK: %[[V0:.*]] = tensor.extract_slice %[[A0]][0, 0] [1, 8] [1, 1] : tensor<4x8xf32> to tensor<8xf32>
// CHECK-NEXT: %[[V1:.*]] = tensor.extract_slice %[[A0]][1, 0] [3, 8] [1, 1] : tensor<4x8xf32> to tensor<3x8xf32>
// CHECK-NEXT: %[[V2:.*]] = linalg.generic {indexing_maps = [#[[MAP_D0D1_D0D1]], #[[MAP_D0D1_D1]]], iterator_types = ["reduction", "parallel"]} ins(%[[V1]] : tensor<3x8xf32>) outs(%[[V0]] : tensor<8xf32>) {
// CHECK-NEXT: ^bb0(%[[V3:[a-z0-9_]+]]: f32, %[[V4:[a-z0-9_]+]]: f32):
// CHECK-NEXT: %[[V5:.*]] = arith.mulf %[[V4]], %[[V3]] fastmath<reassoc> : f32
// CHECK-NEXT: %[[V6:.*]] = arith.addf %[[V5]], %[[V4]] fastmath<reassoc> : f32
// CHECK-NEXT: linalg.yield %[[V6]] : f32
// CHECK-NEXT: } -> tensor<8xf32>
// CHECK-NEXT: return %[[V2]] : tensor<8xf32>
// CHECK-NEXT: }
func.func @no_identity(%x: tensor<4x8xf32>) -> tensor<8xf32> {
  %r = "tt.reduce"(%x) ({
  ^bb0(%a: f32, %b: f32):
    %s = arith.mulf %a, %b : f32
    %t = arith.addf %s, %a : f32
    "tt.reduce_return"(%t) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (f32) -> ()
  }) {axis = 0 : i32, operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (tensor<4x8xf32>) -> tensor<8xf32>
  return %r : tensor<8xf32>
}

// CHECK-LABEL: func.func @tuple(
// CHECK-SAME: %[[A0:arg[0-9]+]]: tensor<8xf32>, %[[A1:arg[0-9]+]]: tensor<8xi32>
// CHECK: %[[V0:.*]] = tensor.extract_slice %[[A0]][0] [1] [1] : tensor<8xf32> to tensor<f32>
// CHECK-NEXT: %[[V1:.*]] = tensor.extract_slice %[[A1]][0] [1] [1] : tensor<8xi32> to tensor<i32>
// CHECK-NEXT: %[[V2:.*]] = tensor.extract_slice %[[A0]][1] [7] [1] : tensor<8xf32> to tensor<7xf32>
// CHECK-NEXT: %[[V3:.*]] = tensor.extract_slice %[[A1]][1] [7] [1] : tensor<8xi32> to tensor<7xi32>
// CHECK-NEXT: %[[V4:.*]]:2 = linalg.generic {indexing_maps = [#[[MAP_D0_D0]], #[[MAP_D0_D0]], #[[MAP_D0]], #[[MAP_D0]]], iterator_types = ["reduction"]} ins(%[[V2]], %[[V3]] : tensor<7xf32>, tensor<7xi32>) outs(%[[V0]], %[[V1]] : tensor<f32>, tensor<i32>) {
// CHECK-NEXT: ^bb0(%[[V5:[a-z0-9_]+]]: f32, %[[V6:[a-z0-9_]+]]: i32, %[[V7:[a-z0-9_]+]]: f32, %[[V8:[a-z0-9_]+]]: i32):
// CHECK-NEXT: %[[V9:.*]] = arith.cmpf ogt, %[[V7]], %[[V5]] : f32
// CHECK-NEXT: %[[V10:.*]] = arith.select %[[V9]], %[[V7]], %[[V5]] : f32
// CHECK-NEXT: %[[V11:.*]] = arith.select %[[V9]], %[[V8]], %[[V6]] : i32
// CHECK-NEXT: linalg.yield %[[V10]], %[[V11]] : f32, i32
// CHECK-NEXT: } -> (tensor<f32>, tensor<i32>)
// CHECK-NEXT: %[[V12:.*]] = tensor.extract %[[V4]]#0[] : tensor<f32>
// CHECK-NEXT: %[[V13:.*]] = tensor.extract %[[V4]]#1[] : tensor<i32>
// CHECK-NEXT: return %[[V12]], %[[V13]] : f32, i32
// CHECK-NEXT: }
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

// CHECK-LABEL: func.func @elementwise_becomes_generic(
// CHECK-SAME: %[[A0:arg[0-9]+]]: tensor<8xf32>
// CHECK: %[[V0:.*]] = linalg.generic {indexing_maps = [#[[MAP_D0_D0]], #[[MAP_D0_D0]]], iterator_types = ["parallel"]} ins(%[[A0]] : tensor<8xf32>) outs(%[[A0]] : tensor<8xf32>) {
// CHECK-NEXT: ^bb0(%[[V1:[a-z0-9_]+]]: f32, %{{.*}}: f32):
// CHECK-NEXT: %[[V2:.*]] = math.exp %[[V1]] : f32
// CHECK-NEXT: linalg.yield %[[V2]] : f32
// CHECK-NEXT: } -> tensor<8xf32>
// CHECK-NEXT: return %[[V0]] : tensor<8xf32>
// CHECK-NEXT: }
func.func @elementwise_becomes_generic(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = math.exp %x : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// CHECK-LABEL: func.func @scalars_stay(
// CHECK-SAME: %[[A0:arg[0-9]+]]: f32, %[[A1:arg[0-9]+]]: i32
// CHECK-DAG: %[[C32_I64:.*]] = arith.constant 32 : i64
// CHECK: %[[V0:.*]] = math.sqrt %[[A0]] : f32
// CHECK-NEXT: %[[V1:.*]] = arith.divf %[[A0]], %[[V0]] : f32
// CHECK-NEXT: %[[V2:.*]] = arith.extui %[[A1]] : i32 to i64
// CHECK-NEXT: %[[V3:.*]] = arith.muli %[[V2]], %[[V2]] : i64
// CHECK-NEXT: %[[V4:.*]] = arith.shrui %[[V3]], %[[C32_I64]] : i64
// CHECK-NEXT: %[[V5:.*]] = arith.trunci %[[V4]] : i64 to i32
// CHECK-NEXT: return %[[V0]], %[[V1]], %[[V5]] : f32, f32, i32
// CHECK-NEXT: }
func.func @scalars_stay(%x: f32, %i: i32) -> (f32, f32, i32) {
  %0 = "tt.precise_sqrt"(%x) : (f32) -> f32
  %1 = "tt.precise_divf"(%x, %0) : (f32, f32) -> f32
  %2 = "tt.mulhiui"(%i, %i) : (i32, i32) -> i32
  return %0, %1, %2 : f32, f32, i32
}

// To nearest, and one bit back where that went away from zero.

// CHECK-LABEL: func.func @round_to_zero(
// CHECK-SAME: %[[A0:arg[0-9]+]]: f32
// CHECK: %[[V0:.*]] = arith.truncf %[[A0]] : f32 to f16
// CHECK-NEXT: %[[V1:.*]] = arith.extf %[[V0]] : f16 to f32
// CHECK-NEXT: %[[V2:.*]] = math.absf %[[V1]] : f32
// CHECK-NEXT: %[[V3:.*]] = math.absf %[[A0]] : f32
// CHECK-NEXT: %[[V4:.*]] = arith.cmpf ogt, %[[V2]], %[[V3]] : f32
// CHECK-NEXT: %[[V5:.*]] = arith.bitcast %[[V0]] : f16 to i16
// CHECK-NEXT: %[[V6:.*]] = arith.extui %[[V4]] : i1 to i16
// CHECK-NEXT: %[[V7:.*]] = arith.subi %[[V5]], %[[V6]] : i16
// CHECK-NEXT: %[[V8:.*]] = arith.bitcast %[[V7]] : i16 to f16
// CHECK-NEXT: return %[[V8]] : f16
// CHECK-NEXT: }
func.func @round_to_zero(%x: f32) -> f16 {
  %0 = "tt.fp_to_fp"(%x) {rounding = "rtz"} : (f32) -> f16
  return %0 : f16
}

// Each user of an index-like tensor gets its own.

// COPIES-LABEL: func.func @cheap_producers_are_copied(
// COPIES: linalg.index
// COPIES: linalg.index
// COPIES-NOT: linalg.index
// COPIES: return
// CHECK-LABEL: func.func @cheap_producers_are_copied(
func.func @cheap_producers_are_copied(%x: tensor<8xi32>) -> (tensor<8xi32>, tensor<8xi32>) {
  %r = "tt.make_range"() {start = 0 : i32, end = 8 : i32} : () -> tensor<8xi32>
  %a = arith.divsi %x, %r : tensor<8xi32>
  %b = arith.divsi %r, %x : tensor<8xi32>
  return %a, %b : tensor<8xi32>, tensor<8xi32>
}

// What computes is not.

// COPIES-LABEL: func.func @others_are_not_copied(
// COPIES: arith.divsi
// COPIES-NOT: arith.divsi
// COPIES: return
// CHECK-LABEL: func.func @others_are_not_copied(
func.func @others_are_not_copied(%x: tensor<8xi32>) -> (tensor<8xi32>, tensor<8xi32>) {
  %r = arith.divsi %x, %x : tensor<8xi32>
  %a = arith.addi %x, %r : tensor<8xi32>
  %b = arith.subi %r, %x : tensor<8xi32>
  return %a, %b : tensor<8xi32>, tensor<8xi32>
}
