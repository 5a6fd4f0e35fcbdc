// RUN: proton-opt --pipeline='tritongpu-coalesce{target=cuda:90}' %s | filecheck %s

#any = #ttg.linear<[[2, 0], [4, 0], [8, 0], [16, 0]], [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16]], [[0, 32], [1, 0]], []>
#more = #ttg.linear<[[2, 0], [4, 0], [8, 0], [16, 0], [32, 0]], [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16]], [[0, 32], [1, 0]], []>

module attributes {"ttg.num-warps" = 4 : i32} {

// Rows that begin anywhere, one element an access: a thread has both of a row that are 32 apart, which
// share an address, and warps have other rows.

// CHECK-LABEL: func.func @rows(
// CHECK: "tt.load"({{.*}} -> tensor<32x64xf16, #ttg.linear<{{..}}4, 0], [8, 0], [16, 0], [0, 32]], {{..}}0, 1], [0, 2], [0, 4], [0, 8], [0, 16]], {{..}}1, 0], [2, 0]], []>>
func.func @rows(%x: !tt.ptr<f16>, %n: i32) {
  %i = "tt.make_range"() {start = 0 : i32, end = 32 : i32} : () -> tensor<32xi32>
  %j = "tt.make_range"() {start = 0 : i32, end = 64 : i32} : () -> tensor<64xi32>
  %k = "tt.splat"(%n) : (i32) -> tensor<32xi32>
  %ik = arith.muli %i, %k : tensor<32xi32>
  %i1 = "tt.expand_dims"(%ik) {axis = 1 : i32} : (tensor<32xi32>) -> tensor<32x1xi32>
  %j1 = "tt.expand_dims"(%j) {axis = 0 : i32} : (tensor<64xi32>) -> tensor<1x64xi32>
  %i2 = "tt.broadcast"(%i1) : (tensor<32x1xi32>) -> tensor<32x64xi32, #any>
  %j2 = "tt.broadcast"(%j1) : (tensor<1x64xi32>) -> tensor<32x64xi32, #any>
  %o = arith.addi %i2, %j2 : tensor<32x64xi32, #any>
  %s = "tt.splat"(%x) : (!tt.ptr<f16>) -> tensor<32x64x!tt.ptr<f16>, #any>
  %p = "tt.addptr"(%s, %o) : (tensor<32x64x!tt.ptr<f16>, #any>, tensor<32x64xi32, #any>) -> tensor<32x64x!tt.ptr<f16>, #any>
  %v = "tt.load"(%p) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<32x64x!tt.ptr<f16>, #any>) -> tensor<32x64xf16, #any>
  return
}

// Columns that are anywhere, too: nothing is a constant apart, and warps go along the row.

// CHECK-LABEL: func.func @scattered(
// CHECK: "tt.load"({{.*}} -> tensor<64x64xf16, #ttg.linear<{{..}}2, 0], [4, 0], [8, 0], [16, 0], [32, 0]], {{..}}0, 1], [0, 2], [0, 4], [0, 8], [0, 16]], {{..}}0, 32], [1, 0]], []>>
func.func @scattered(%x: !tt.ptr<f16>, %o: tensor<64x64xi32, #more>) {
  %s = "tt.splat"(%x) : (!tt.ptr<f16>) -> tensor<64x64x!tt.ptr<f16>, #more>
  %p = "tt.addptr"(%s, %o) : (tensor<64x64x!tt.ptr<f16>, #more>, tensor<64x64xi32, #more>) -> tensor<64x64x!tt.ptr<f16>, #more>
  %v = "tt.load"(%p) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<64x64x!tt.ptr<f16>, #more>) -> tensor<64x64xf16, #more>
  return
}
}
