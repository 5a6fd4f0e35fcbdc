// RUN: proton-opt --pipeline='allocate-shared-memory,ttg-to-llvm{target=cuda:90}' %s | filecheck %s

#wide = #ttg.linear<[[0, 1], [0, 2], [0, 4]], [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0]], [], []>
#narrow = #ttg.linear<[[4, 0], [8, 0], [16, 0]], [[0, 1], [0, 2], [0, 4], [1, 0], [2, 0]], [], []>
#rows = #ttg.shared<[[0, 1], [0, 2], [0, 4], [1, 0], [2, 0], [4, 0], [8, 0], [16, 0]]>
!rows = !ttg.mutable_memdesc<[32, 8], f16, #rows>

module attributes {"ttg.num-warps" = 1 : i32} {

// 16 bytes of each thread, or zeros, by one instruction that goes on; a group, and the wait for it.

// CHECK-LABEL: func.func @wide(
// CHECK: %[[YES:.*]] = llvm.extractelement
// CHECK: %[[IGNORED:.*]] = llvm.xor %[[YES]], %{{.*}} : i1
// CHECK: llvm.inline_asm has_side_effects "cp.async.cg.shared.global [$0], [$1], 16, $2;", "r,l,b" %{{.*}}, %{{.*}}, %[[IGNORED]]
// CHECK: "cp.async.commit_group;"
// CHECK: "cp.async.wait_group 0;"
func.func @wide(%x: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %yes: i1) {
  %i = "tt.make_range"() {start = 0 : i32, end = 8 : i32} : () -> tensor<8xi32, #ttg.linear<[[1], [2], [4]], [[0], [0], [0], [0], [0]], [], []>>
  %r = "tt.expand_dims"(%i) {axis = 0 : i32} : (tensor<8xi32, #ttg.linear<[[1], [2], [4]], [[0], [0], [0], [0], [0]], [], []>>) -> tensor<1x8xi32, #ttg.linear<[[0, 1], [0, 2], [0, 4]], [[0, 0], [0, 0], [0, 0], [0, 0], [0, 0]], [], []>>
  %o = "tt.broadcast"(%r) : (tensor<1x8xi32, #ttg.linear<[[0, 1], [0, 2], [0, 4]], [[0, 0], [0, 0], [0, 0], [0, 0], [0, 0]], [], []>>) -> tensor<32x8xi32, #wide>
  %b = "tt.splat"(%x) : (!tt.ptr<f16>) -> tensor<32x8x!tt.ptr<f16>, #wide>
  %p = "tt.addptr"(%b, %o) : (tensor<32x8x!tt.ptr<f16>, #wide>, tensor<32x8xi32, #wide>) -> tensor<32x8x!tt.ptr<f16>, #wide>
  %m = "tt.splat"(%yes) : (i1) -> tensor<32x8xi1, #wide>
  %d = "ttg.local_reserve"() : () -> !rows
  %t = "ttg.async_copy_global_to_local"(%p, %d, %m) {operandSegmentSizes = array<i32: 1, 1, 1>} : (tensor<32x8x!tt.ptr<f16>, #wide>, !rows, tensor<32x8xi1, #wide>) -> !ttg.async_token
  %g = "ttg.async_commit_group"(%t) {operandSegmentSizes = array<i32: 1, 0>} : (!ttg.async_token) -> !ttg.async_token
  "ttg.async_wait"(%g) {pendings = 0 : i32} : (!ttg.async_token) -> ()
  return
}

// Two bytes are too few for a copy that goes on: they are loaded, and stored.

// CHECK-LABEL: func.func @narrow(
// CHECK-NOT: cp.async
// CHECK: %[[X:.*]] = llvm.inline_asm has_side_effects "@$2 ld.global.b16 $0, [$1];"
// CHECK-NEXT: llvm.store %[[X]], %{{.*}} {alignment = 2 : i64} : i16, !llvm.ptr<3>
func.func @narrow(%p: tensor<32x8x!tt.ptr<f16>, #narrow>, %m: tensor<32x8xi1, #narrow>) {
  %d = "ttg.local_reserve"() : () -> !rows
  %t = "ttg.async_copy_global_to_local"(%p, %d, %m) {operandSegmentSizes = array<i32: 1, 1, 1>} : (tensor<32x8x!tt.ptr<f16>, #narrow>, !rows, tensor<32x8xi1, #narrow>) -> !ttg.async_token
  return
}
}
