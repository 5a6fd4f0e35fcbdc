// RUN: proton-opt --pipeline='triton-nvidia-gpu-tensor-descriptor-to-tma{target=cuda:90},rewrite-tensor-descriptor-to-pointer' %s | filecheck %s

!block = !tt.tensordesc<tensor<64x32xf16>, "zero">
!nan = !tt.tensordesc<tensor<64x32xf16>, "nan">

// Of an argument, and of a descriptor that is made of arguments. A store's map has no NaN.

// CHECK-LABEL: func.func @copies(
// CHECK-SAME: %[[X:.*]]: !tt.ptr<f16> {{{.*}}}, %[[M:arg1]]: i32, %[[N:arg2]]: i32 {{{.*}}}, %[[S:arg3]]: i64 {{{.*}}}, %[[Y:arg4]]: !tt.ptr<f16>
// CHECK: %[[FROM:.*]] = "ttng.tensor_map"(%[[X]], %[[M]], %[[N]], %[[S]]) {{.*}} -> !ttng.tensormap<tensor<64x32xf16>, "nan">
// CHECK: %[[V:.*]] = "ttng.tma_load"(%[[FROM]], %{{.*}}, %{{.*}})
// CHECK: %[[TO:.*]] = "ttng.tensor_map"(%[[Y]], %{{.*}}, %{{.*}}, %{{.*}}) {{.*}} -> !ttng.tensormap<tensor<64x32xf16>, "zero">
// CHECK: "ttng.tma_store"(%[[TO]], %[[V]], %{{.*}}, %{{.*}})
// CHECK-NOT: "tt.load"
// CHECK: return
func.func @copies(%x: !nan {tt.divisibility = 16 : i32}, %y: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %n: i32 {tt.divisibility = 16 : i32}, %i: i32) attributes {tt.kernel} {
  %one = arith.constant 1 : i64
  %step = arith.constant 32 : i32
  %j = arith.muli %i, %step : i32
  %s = arith.extsi %n : i32 to i64
  %d = "tt.make_tensor_descriptor"(%y, %n, %n, %s, %one) {operandSegmentSizes = array<i32: 1, 2, 2>} : (!tt.ptr<f16>, i32, i32, i64, i64) -> !nan
  %v = "tt.descriptor_load"(%x, %i, %j) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 2>} : (!nan, i32, i32) -> tensor<64x32xf16>
  "tt.descriptor_store"(%d, %v, %i, %i) {operandSegmentSizes = array<i32: 1, 1, 2>} : (!nan, tensor<64x32xf16>, i32, i32) -> ()
  return
}

// A load whose rows may begin anywhere, one of a tensor whose rows may, and one of an array that the
// kernel writes are pointers.

// CHECK-LABEL: func.func @pointers(
// CHECK: "tt.load"
// CHECK: "tt.load"
// CHECK: "tt.load"
// CHECK: "tt.store"
// CHECK-NOT: ttng
// CHECK: return
func.func @pointers(%x: !block, %y: !block, %p: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %n: i32, %i: i32) attributes {tt.kernel} {
  %one = arith.constant 1 : i64
  %zero = arith.constant 0 : i32
  %s = arith.extsi %n : i32 to i64
  %d = "tt.make_tensor_descriptor"(%p, %n, %n, %s, %one) {operandSegmentSizes = array<i32: 1, 2, 2>} : (!tt.ptr<f16>, i32, i32, i64, i64) -> !block
  %a = "tt.descriptor_load"(%x, %i, %i) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 2>} : (!block, i32, i32) -> tensor<64x32xf16>
  %b = "tt.descriptor_load"(%d, %i, %zero) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 2>} : (!block, i32, i32) -> tensor<64x32xf16>
  %c = "tt.descriptor_load"(%y, %i, %zero) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 2>} : (!block, i32, i32) -> tensor<64x32xf16>
  %ab = arith.addf %a, %b : tensor<64x32xf16>
  %abc = arith.addf %ab, %c : tensor<64x32xf16>
  "tt.descriptor_store"(%y, %abc, %i, %zero) {operandSegmentSizes = array<i32: 1, 1, 2>} : (!block, tensor<64x32xf16>, i32, i32) -> ()
  return
}

// A reduction is a store that combines. TMA compares signed integers by a map that says so; it does
// not compare fp32.

!ints = !tt.tensordesc<tensor<32x32xi32>, "zero">
!floats = !tt.tensordesc<tensor<32x32xf32>, "zero">

// CHECK-LABEL: func.func @reductions(
// CHECK: "ttng.tensor_map"({{.*}} -> !ttng.tensormap<tensor<32x32xsi32>, "zero">
// CHECK: "ttng.tma_store"({{.*}} reduction = "max"
// CHECK: "ttng.tensor_map"({{.*}} -> !ttng.tensormap<tensor<32x32xi32>, "zero">
// CHECK: "ttng.tma_store"({{.*}} reduction = "umax"
// CHECK: "ttng.tma_store"({{.*}} reduction = "fadd"
// CHECK: "tt.atomic_rmw"({{.*}} rmw_op = "fmax"
// CHECK: return
func.func @reductions(%x: !ints, %y: !floats, %z: !floats, %a: tensor<32x32xi32>, %b: tensor<32x32xf32>, %i: i32) attributes {tt.kernel} {
  "tt.descriptor_reduce"(%x, %a, %i, %i) {kind = "max", is_unsigned = false, operandSegmentSizes = array<i32: 1, 1, 2>} : (!ints, tensor<32x32xi32>, i32, i32) -> ()
  "tt.descriptor_reduce"(%x, %a, %i, %i) {kind = "max", is_unsigned = true, operandSegmentSizes = array<i32: 1, 1, 2>} : (!ints, tensor<32x32xi32>, i32, i32) -> ()
  "tt.descriptor_reduce"(%y, %b, %i, %i) {kind = "add", is_unsigned = false, operandSegmentSizes = array<i32: 1, 1, 2>} : (!floats, tensor<32x32xf32>, i32, i32) -> ()
  "tt.descriptor_reduce"(%z, %b, %i, %i) {kind = "max", is_unsigned = false, operandSegmentSizes = array<i32: 1, 1, 2>} : (!floats, tensor<32x32xf32>, i32, i32) -> ()
  return
}
