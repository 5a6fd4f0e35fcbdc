// RUN: proton-opt --pipeline=expand-float8 %s | filecheck %s
// 8-bit floats are bytes: in memory, through pointers, in loops; conversions are integer arithmetic.

// CHECK-LABEL: func.func @moves(%arg0: !tt.ptr<i8>, %arg1: tensor<4x!tt.ptr<i8>>, %arg2: tensor<4xi1>)
// CHECK-NEXT: %[[C:.*]] = arith.constant dense<60> : tensor<4xi8>
// CHECK-NEXT: %[[X:.*]] = "tt.load"(%arg1, %arg2, %[[C]]) {{.*}} -> tensor<4xi8>
// CHECK-NEXT: "tt.store"(%arg1, %[[X]])
// CHECK-NEXT: return
func.func @moves(%p: !tt.ptr<f8E4M3FN>, %q: tensor<4x!tt.ptr<f8E4M3FN>>, %m: tensor<4xi1>) attributes {tt.kernel} {
  %c = arith.constant dense<1.5> : tensor<4xf8E4M3FN>
  %x = "tt.load"(%q, %m, %c) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 1>, volatile = false} : (tensor<4x!tt.ptr<f8E4M3FN>>, tensor<4xi1>, tensor<4xf8E4M3FN>) -> tensor<4xf8E4M3FN>
  %b = arith.bitcast %x : tensor<4xf8E4M3FN> to tensor<4xi8>
  %f = arith.bitcast %b : tensor<4xi8> to tensor<4xf8E4M3FN>
  "tt.store"(%q, %f) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<4x!tt.ptr<f8E4M3FN>>, tensor<4xf8E4M3FN>) -> ()
  return
}

// CHECK-LABEL: func.func @converts(%arg0: i8, %arg1: tensor<4xf16>, %arg2: !tt.ptr<i8>)
// The scalar in place, the tensor in a generic.
// CHECK-DAG: arith.mulf %{{.*}}, %{{.*}} : f32
// CHECK: linalg.generic
// CHECK: arith.extf %{{.*}} : f16 to f32
// CHECK: arith.trunci %{{.*}} : i32 to i8
// CHECK: linalg.yield %{{.*}} : i8
func.func @converts(%x: f8E5M2, %y: tensor<4xf16>, %p: !tt.ptr<f8E5M2>) attributes {tt.kernel} {
  %0 = arith.extf %x : f8E5M2 to f64
  %1 = "tt.fp_to_fp"(%y) {rounding = "rtne"} : (tensor<4xf16>) -> tensor<4xf8E5M2>
  %2 = "tt.splat"(%x) : (f8E5M2) -> tensor<1xf8E5M2>
  return
}
