// RUN: proton-opt --pipeline='tritongpu-carry-base-pointers' %s | filecheck %s

// 16 addresses of a thread are worth it where a program has 4 warps.

// CHECK: scf.for {{.*}} -> (!tt.ptr<f16>)
// CHECK: ttg.recomputed

#four = #ttg.linear<[[4, 0], [8, 0], [16, 0], [32, 0]], [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16]], [[1, 0], [2, 0]], []>
module attributes {"ttg.num-warps" = 4 : i32} {
func.func @four(%x: !tt.ptr<f16>, %o: tensor<64x32xi32, #four>, %v: tensor<64x32xf16, #four>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %step = arith.constant dense<64> : tensor<64x32xi32, #four>
  %s = "tt.splat"(%x) : (!tt.ptr<f16>) -> tensor<64x32x!tt.ptr<f16>, #four>
  %p = "tt.addptr"(%s, %o) : (tensor<64x32x!tt.ptr<f16>, #four>, tensor<64x32xi32, #four>) -> tensor<64x32x!tt.ptr<f16>, #four>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%a = %p) -> tensor<64x32x!tt.ptr<f16>, #four> : i32 {
    "tt.store"(%a, %v) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<64x32x!tt.ptr<f16>, #four>, tensor<64x32xf16, #four>) -> ()
    %d = "tt.addptr"(%a, %step) : (tensor<64x32x!tt.ptr<f16>, #four>, tensor<64x32xi32, #four>) -> tensor<64x32x!tt.ptr<f16>, #four>
    scf.yield %d : tensor<64x32x!tt.ptr<f16>, #four>
  }
  return
}

// As many, which a scalar moves ahead of the access.

// CHECK-LABEL: func.func @moved(
// CHECK: scf.for {{.*}} -> (!tt.ptr<f16>)
// CHECK: ttg.recomputed
func.func @moved(%x: !tt.ptr<f16>, %o: tensor<64x32xi32, #four>, %v: tensor<64x32xf16, #four>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %step = arith.constant dense<64> : tensor<64x32xi32, #four>
  %s = "tt.splat"(%x) : (!tt.ptr<f16>) -> tensor<64x32x!tt.ptr<f16>, #four>
  %p = "tt.addptr"(%s, %o) : (tensor<64x32x!tt.ptr<f16>, #four>, tensor<64x32xi32, #four>) -> tensor<64x32x!tt.ptr<f16>, #four>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%a = %p) -> tensor<64x32x!tt.ptr<f16>, #four> : i32 {
    %m = "tt.splat"(%n) : (i32) -> tensor<64x32xi32, #four>
    %b = "tt.addptr"(%a, %m) : (tensor<64x32x!tt.ptr<f16>, #four>, tensor<64x32xi32, #four>) -> tensor<64x32x!tt.ptr<f16>, #four>
    "tt.store"(%b, %v) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<64x32x!tt.ptr<f16>, #four>, tensor<64x32xf16, #four>) -> ()
    %d = "tt.addptr"(%a, %step) : (tensor<64x32x!tt.ptr<f16>, #four>, tensor<64x32xi32, #four>) -> tensor<64x32x!tt.ptr<f16>, #four>
    scf.yield %d : tensor<64x32x!tt.ptr<f16>, #four>
  }
  return
}
}
