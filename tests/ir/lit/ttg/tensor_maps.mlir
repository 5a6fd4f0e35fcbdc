// RUN: proton-opt --split-input-file --verify-diagnostics %s

// Maps that the kernel makes: 128 bytes of shared memory, and all sizes and strides but the last.

#words = #ttg.shared<[[1], [2], [4], [8], [16]]>
!map = !ttng.tensormap<tensor<16x32xf16>, "zero">
func.func @whole(%memory: !ttg.mutable_memdesc<[32], i32, #words>, %p: !tt.ptr<f16>, %n: i32, %s: i64) -> !map {
  "ttng.tensor_check"(%p, %n, %n, %s) {message = "", operandSegmentSizes = array<i32: 1, 2, 1>} : (!tt.ptr<f16>, i32, i32, i64) -> ()
  %t = "ttng.tensormap_create"(%memory, %p, %n, %n, %s) {warp = 0 : i32, operandSegmentSizes = array<i32: 1, 1, 2, 1>} : (!ttg.mutable_memdesc<[32], i32, #words>, !tt.ptr<f16>, i32, i32, i64) -> !map
  return %t : !map
}

// -----

#words = #ttg.shared<[[1], [2], [4], [8], [16]]>
!map = !ttng.tensormap<tensor<16x32xf16>, "zero">
func.func @sizes(%memory: !ttg.mutable_memdesc<[32], i32, #words>, %p: !tt.ptr<f16>, %n: i32) {
  // expected-error@+1 {{2 sizes and 1 strides, got 1 and 0}}
  %t = "ttng.tensormap_create"(%memory, %p, %n) {warp = 0 : i32, operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (!ttg.mutable_memdesc<[32], i32, #words>, !tt.ptr<f16>, i32) -> !map
  return
}

// -----

#words = #ttg.shared<[[1], [2], [4], [8]]>
!map = !ttng.tensormap<tensor<16xf16>, "zero">
func.func @memory(%memory: !ttg.mutable_memdesc<[16], i32, #words>, %p: !tt.ptr<f16>, %n: i32) {
  // expected-error@+1 {{memory must be !ttg.mutable_memdesc<[32], i32}}
  %t = "ttng.tensormap_create"(%memory, %p, %n) {warp = 0 : i32, operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (!ttg.mutable_memdesc<[16], i32, #words>, !tt.ptr<f16>, i32) -> !map
  return
}

// -----

#words = #ttg.shared<[[1], [2], [4], [8], [16]]>
func.func @result(%memory: !ttg.mutable_memdesc<[32], i32, #words>, %p: !tt.ptr<f16>, %n: i32) {
  // expected-error@+1 {{result must be a tensor map of tiles, got i32}}
  %t = "ttng.tensormap_create"(%memory, %p, %n) {warp = 0 : i32, operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (!ttg.mutable_memdesc<[32], i32, #words>, !tt.ptr<f16>, i32) -> i32
  return
}

// -----

func.func @checked(%p: !tt.ptr<f16>, %n: i32) {
  // expected-error@+1 {{1 strides for 2 sizes, got 0}}
  "ttng.tensor_check"(%p, %n, %n) {message = "", operandSegmentSizes = array<i32: 1, 2, 0>} : (!tt.ptr<f16>, i32, i32) -> ()
  return
}
