// RUN: proton-opt --pipeline='tritongpu-carry-base-pointers' %s | filecheck %s

// 16 addresses of a thread are not worth it where a program has 8 warps.

// CHECK: scf.for {{.*}} -> (tensor<128x32x!tt.ptr<f16>
// CHECK-NOT: ttg.recomputed

#eight = #ttg.linear<[[8, 0], [16, 0], [32, 0], [64, 0]], [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16]], [[1, 0], [2, 0], [4, 0]], []>
module attributes {"ttg.num-warps" = 8 : i32} {
func.func @eight(%x: !tt.ptr<f16>, %o: tensor<128x32xi32, #eight>, %v: tensor<128x32xf16, #eight>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %step = arith.constant dense<64> : tensor<128x32xi32, #eight>
  %s = "tt.splat"(%x) : (!tt.ptr<f16>) -> tensor<128x32x!tt.ptr<f16>, #eight>
  %p = "tt.addptr"(%s, %o) : (tensor<128x32x!tt.ptr<f16>, #eight>, tensor<128x32xi32, #eight>) -> tensor<128x32x!tt.ptr<f16>, #eight>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%a = %p) -> tensor<128x32x!tt.ptr<f16>, #eight> : i32 {
    "tt.store"(%a, %v) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<128x32x!tt.ptr<f16>, #eight>, tensor<128x32xf16, #eight>) -> ()
    %d = "tt.addptr"(%a, %step) : (tensor<128x32x!tt.ptr<f16>, #eight>, tensor<128x32xi32, #eight>) -> tensor<128x32x!tt.ptr<f16>, #eight>
    scf.yield %d : tensor<128x32x!tt.ptr<f16>, #eight>
  }
  return
}
}
