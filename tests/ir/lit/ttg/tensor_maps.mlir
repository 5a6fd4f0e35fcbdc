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

// -----

// In im2col mode there are three numbers for each dimension of pixels, and offsets behind indices.

#lay = #ttg.shared<[[0, 1], [0, 2], [0, 4], [0, 8], [1, 0], [2, 0], [4, 0]]>
#one = #ttg.shared<[]>
!map = !ttng.tensormap_im2col<tensor<8x16xf16>, "zero", 3 : i32>
!memory = !ttg.mutable_memdesc<[8, 16], f16, #lay>
!barrier = !ttg.mutable_memdesc<[1], i64, #one>
func.func @pixels(%p: !tt.ptr<f16>, %n: i32, %s: i64, %b: !barrier, %m: !memory, %c: i1) {
  %t = "ttng.tensor_map"(%p, %n, %n, %n, %s, %s, %n, %n, %n) {operandSegmentSizes = array<i32: 1, 3, 2, 3>} : (!tt.ptr<f16>, i32, i32, i32, i64, i64, i32, i32, i32) -> !map
  "ttng.async_tma_copy_global_to_local"(%t, %b, %m, %c, %n, %n, %n, %n) {operandSegmentSizes = array<i32: 1, 1, 1, 1, 4>} : (!map, !barrier, !memory, i1, i32, i32, i32, i32) -> ()
  // expected-error@+1 {{4 indices, got 3}}
  "ttng.async_tma_copy_global_to_local"(%t, %b, %m, %c, %n, %n, %n) {operandSegmentSizes = array<i32: 1, 1, 1, 1, 3>} : (!map, !barrier, !memory, i1, i32, i32, i32) -> ()
  return
}

// -----

!map = !ttng.tensormap_im2col<tensor<8x16xf16>, "zero", 3 : i32>
func.func @numbers_of_pixels(%p: !tt.ptr<f16>, %n: i32, %s: i64) {
  // expected-error@+1 {{3 sizes, 2 strides and 3 of pixels, got 3, 2 and 0}}
  %t = "ttng.tensor_map"(%p, %n, %n, %n, %s, %s) {operandSegmentSizes = array<i32: 1, 3, 2, 0>} : (!tt.ptr<f16>, i32, i32, i32, i64, i64) -> !map
  return
}

// -----

!map = !ttng.tensormap_im2col<tensor<8x16xf16>, "zero", 2 : i32>
func.func @images_of_two_dimensions(%p: !tt.ptr<f16>, %n: i32, %s: i64) {
  // expected-error@+1 {{images have 3 to 5 dimensions, and blocks 2, got 2 and [8, 16]}}
  %t = "ttng.tensor_map"(%p, %n, %n, %s) {operandSegmentSizes = array<i32: 1, 2, 1, 0>} : (!tt.ptr<f16>, i32, i32, i64) -> !map
  return
}

// -----

!map = !ttng.tensormap_im2col<tensor<8x16xf16>, "zero", 3 : i32>
func.func @of_tiles(%d: !tt.tensordesc<tensor<8x16xf16>, "zero">) {
  // expected-error@+1 {{tensordesc<tensor<8x16xf16>, "zero"> is not what !ttng.tensormap_im2col<}}
  %t = "ttng.tensor_map"(%d) {operandSegmentSizes = array<i32: 1, 0, 0, 0>} : (!tt.tensordesc<tensor<8x16xf16>, "zero">) -> !map
  return
}

// -----

!map = !ttng.tensormap_im2col<tensor<8x16xf16>, "zero", 3 : i32>
func.func @loaded(%t: !map, %n: i32) {
  // expected-error@+1 {{a map of tiles, got !ttng.tensormap_im2col<}}
  %x = "ttng.tma_load"(%t, %n, %n, %n, %n) {operandSegmentSizes = array<i32: 1, 4>} : (!map, i32, i32, i32, i32) -> tensor<8x16xf16>
  return
}

// -----

#words = #ttg.shared<[[1], [2], [4], [8], [16]]>
!map = !ttng.tensormap_im2col<tensor<8x16xf16>, "zero", 3 : i32>
func.func @made(%memory: !ttg.mutable_memdesc<[32], i32, #words>, %p: !tt.ptr<f16>, %n: i32, %s: i64) {
  // expected-error@+1 {{result must be a tensor map of tiles, got !ttng.tensormap_im2col<}}
  %t = "ttng.tensormap_create"(%memory, %p, %n, %n, %s) {warp = 0 : i32, operandSegmentSizes = array<i32: 1, 1, 2, 1>} : (!ttg.mutable_memdesc<[32], i32, #words>, !tt.ptr<f16>, i32, i32, i64) -> !map
  return
}
