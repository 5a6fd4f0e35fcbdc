// RUN: proton-opt --pipeline='allocate-tensor-maps' %s | filecheck %s

!map = !ttng.tensormap<tensor<64x32xf16>, "zero">

// Two maps of one tensor are one argument, which is prefetched before anything else.

// CHECK-LABEL: func.func @maps(
// CHECK-SAME: %[[M:arg3]]: !ttng.tensormap<tensor<64x32xf16>, "zero"> {ttng.by_value}
// CHECK-NEXT: "ttng.prefetch_tensor_map"(%[[M]])
// CHECK-NOT: ttng.prefetch_tensor_map
// CHECK: "ttng.tma_load"(%[[M]],
// CHECK: "ttng.tma_load"(%[[M]],
func.func @maps(%x: !tt.ptr<f16> {tt.divisibility = 16 : i32, tt.element = "fp16", tt.name = "x"}, %n: i32 {tt.element = "i32", tt.name = "n"}, %s: i64 {tt.element = "i64", tt.name = "s"}) attributes {tt.kernel} {
  %i = arith.constant 0 : i32
  %a = "ttng.tensor_map"(%x, %n, %n, %s) {operandSegmentSizes = array<i32: 1, 2, 1, 0>} : (!tt.ptr<f16>, i32, i32, i64) -> !map
  %v = "ttng.tma_load"(%a, %i, %i) {operandSegmentSizes = array<i32: 1, 2>} : (!map, i32, i32) -> tensor<64x32xf16>
  %b = "ttng.tensor_map"(%x, %n, %n, %s) {operandSegmentSizes = array<i32: 1, 2, 1, 0>} : (!tt.ptr<f16>, i32, i32, i64) -> !map
  %w = "ttng.tma_load"(%b, %i, %i) {operandSegmentSizes = array<i32: 1, 2>} : (!map, i32, i32) -> tensor<64x32xf16>
  return
}

// CHECK-LABEL: func.func @none(
// CHECK-NEXT: return
func.func @none(%n: i32) attributes {tt.kernel} {
  return
}
