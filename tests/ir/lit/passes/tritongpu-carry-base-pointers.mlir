// RUN: proton-opt --pipeline='tritongpu-carry-base-pointers,canonicalize,cse' %s | filecheck %s

#block = #ttg.linear<[[4, 0], [8, 0], [16, 0], [32, 0], [64, 0]], [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16]], [[1, 0], [2, 0]], []>
#column = #ttg.linear<[[4, 0], [8, 0], [16, 0], [32, 0], [64, 0]], [[0, 0], [0, 0], [0, 0], [0, 0], [0, 0]], [[1, 0], [2, 0]], []>
#row = #ttg.linear<[], [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16]], [[0, 0], [0, 0]], []>
#few = #ttg.linear<[[4, 0], [8, 0]], [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16]], [[1, 0], [2, 0]], []>
!offsets = tensor<128x32xi32, #block>
!pointers = tensor<128x32x!tt.ptr<f16>, #block>
module attributes {"ttg.num-warps" = 4 : i32} {

// 32 addresses of a thread: 64 registers. What it has one of is added to the pointer first, and moves
// with it. Steps are scalars of the loop or of one iteration.

// CHECK-LABEL: func.func @many(
// CHECK-DAG: %[[ROWS:.*]] = "tt.broadcast"(%arg1) : (tensor<128x1xi32, {{.*}}) -> tensor<128x32xi32, {{.*}}
// CHECK-DAG: %[[COLUMNS:.*]] = "tt.broadcast"(%arg2) : (tensor<1x32xi32, {{.*}}) -> tensor<128x32xi32, {{.*}}
// CHECK: %[[R:.*]] = scf.for %[[I:.*]] = {{.*}} iter_args(%[[BASE:.*]] = %arg0) -> (!tt.ptr<f16>)
// CHECK-NEXT: %[[S:.*]] = "tt.splat"(%[[BASE]])
// CHECK-NEXT: %[[Q:.*]] = "tt.addptr"(%[[S]], %[[COLUMNS]]) :
// CHECK-NEXT: %[[P:.*]] = "tt.addptr"(%[[Q]], %[[ROWS]]) {ttg.recomputed} :
// CHECK-NEXT: "tt.load"(%[[P]])
// CHECK-NEXT: %[[ONE:.*]] = "tt.addptr"(%[[BASE]], %{{.*}}) : (!tt.ptr<f16>, i32) -> !tt.ptr<f16>
// CHECK-NEXT: %[[TWO:.*]] = "tt.addptr"(%[[ONE]], %[[I]]) : (!tt.ptr<f16>, i32) -> !tt.ptr<f16>
// CHECK-NEXT: scf.yield %[[TWO]] : !tt.ptr<f16>
// CHECK: %[[S:.*]] = "tt.splat"(%[[R]])
// CHECK-NEXT: %[[Q:.*]] = "tt.addptr"(%[[S]], %[[COLUMNS]]) :
// CHECK-NEXT: %[[P:.*]] = "tt.addptr"(%[[Q]], %[[ROWS]]) {ttg.recomputed} :
// CHECK-NEXT: return %[[P]]
func.func @many(%x: !tt.ptr<f16>, %rows: tensor<128x1xi32, #column>, %columns: tensor<1x32xi32, #row>, %n: i32) -> !pointers {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %step = arith.constant dense<-64> : !offsets
  %s = "tt.splat"(%x) : (!tt.ptr<f16>) -> tensor<128x1x!tt.ptr<f16>, #column>
  %t = "tt.addptr"(%s, %rows) : (tensor<128x1x!tt.ptr<f16>, #column>, tensor<128x1xi32, #column>) -> tensor<128x1x!tt.ptr<f16>, #column>
  %u = "tt.broadcast"(%t) : (tensor<128x1x!tt.ptr<f16>, #column>) -> !pointers
  %b = "tt.broadcast"(%columns) : (tensor<1x32xi32, #row>) -> !offsets
  %p = "tt.addptr"(%u, %b) : (!pointers, !offsets) -> !pointers
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%q = %p) -> !pointers : i32 {
    %v = "tt.load"(%q) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (!pointers) -> tensor<128x32xf16, #block>
    %m = "tt.splat"(%i) : (i32) -> !offsets
    %y = "tt.addptr"(%q, %m) : (!pointers, !offsets) -> !pointers
    %z = "tt.addptr"(%y, %step) : (!pointers, !offsets) -> !pointers
    scf.yield %z : !pointers
  }
  return %r : !pointers
}

// Elements that move apart from each other, offsets of 64 bits, and pointers that have no one base.

// CHECK-LABEL: func.func @apart(
// CHECK: scf.for {{.*}} -> (tensor<128x32x!tt.ptr<f16>, {{.*}}>, tensor<128x32x!tt.ptr<f16>, {{.*}}>, tensor<128x32x!tt.ptr<f16>, {{.*}}>)
// CHECK-NOT: ttg.recomputed
// CHECK: return
func.func @apart(%x: !tt.ptr<f16>, %o: !offsets, %wide: tensor<128x32xi64, #block>, %any: !pointers, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %step = arith.constant dense<64> : !offsets
  %s = "tt.splat"(%x) : (!tt.ptr<f16>) -> !pointers
  %p = "tt.addptr"(%s, %o) : (!pointers, !offsets) -> !pointers
  %w = "tt.addptr"(%s, %wide) : (!pointers, tensor<128x32xi64, #block>) -> !pointers
  %r:3 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %p, %b = %w, %c = %any) -> (!pointers, !pointers, !pointers) : i32 {
    %va = "tt.load"(%a) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (!pointers) -> tensor<128x32xf16, #block>
    %vb = "tt.load"(%b) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (!pointers) -> tensor<128x32xf16, #block>
    %vc = "tt.load"(%c) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (!pointers) -> tensor<128x32xf16, #block>
    %d = "tt.addptr"(%a, %o) : (!pointers, !offsets) -> !pointers
    %e = "tt.addptr"(%b, %step) : (!pointers, !offsets) -> !pointers
    %f = "tt.addptr"(%c, %step) : (!pointers, !offsets) -> !pointers
    scf.yield %d, %e, %f : !pointers, !pointers, !pointers
  }
  return
}

// Four addresses that nothing is loaded from to registers are carried as they are: they are there
// when the iteration begins.

// CHECK-LABEL: func.func @few(
// CHECK: scf.for {{.*}} -> (tensor<16x32x!tt.ptr<f16>, {{.*}}>)
// CHECK-NOT: ttg.recomputed
// CHECK: return
func.func @few(%x: !tt.ptr<f16>, %o: tensor<16x32xi32, #few>, %v: tensor<16x32xf16, #few>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %step = arith.constant dense<64> : tensor<16x32xi32, #few>
  %s = "tt.splat"(%x) : (!tt.ptr<f16>) -> tensor<16x32x!tt.ptr<f16>, #few>
  %p = "tt.addptr"(%s, %o) : (tensor<16x32x!tt.ptr<f16>, #few>, tensor<16x32xi32, #few>) -> tensor<16x32x!tt.ptr<f16>, #few>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%a = %p) -> tensor<16x32x!tt.ptr<f16>, #few> : i32 {
    "tt.store"(%a, %v) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<16x32x!tt.ptr<f16>, #few>, tensor<16x32xf16, #few>) -> ()
    %d = "tt.addptr"(%a, %step) : (tensor<16x32x!tt.ptr<f16>, #few>, tensor<16x32xi32, #few>) -> tensor<16x32x!tt.ptr<f16>, #few>
    scf.yield %d : tensor<16x32x!tt.ptr<f16>, #few>
  }
  return
}

// Registers are for loads that are under way at once.

// CHECK-LABEL: func.func @waited(
// CHECK: scf.for {{.*}} iter_args(%[[BASE:.*]] = %arg0) -> (!tt.ptr<f16>)
// CHECK-NEXT: %[[S:.*]] = "tt.splat"(%[[BASE]])
// CHECK-NEXT: %[[P:.*]] = "tt.addptr"(%[[S]], %arg1) {ttg.recomputed}
// CHECK-NEXT: "tt.load"(%[[P]])
// CHECK: return
func.func @waited(%x: !tt.ptr<f16>, %o: tensor<16x32xi32, #few>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %step = arith.constant dense<64> : tensor<16x32xi32, #few>
  %s = "tt.splat"(%x) : (!tt.ptr<f16>) -> tensor<16x32x!tt.ptr<f16>, #few>
  %p = "tt.addptr"(%s, %o) : (tensor<16x32x!tt.ptr<f16>, #few>, tensor<16x32xi32, #few>) -> tensor<16x32x!tt.ptr<f16>, #few>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%a = %p) -> tensor<16x32x!tt.ptr<f16>, #few> : i32 {
    %v = "tt.load"(%a) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<16x32x!tt.ptr<f16>, #few>) -> tensor<16x32xf16, #few>
    %d = "tt.addptr"(%a, %step) : (tensor<16x32x!tt.ptr<f16>, #few>, tensor<16x32xi32, #few>) -> tensor<16x32x!tt.ptr<f16>, #few>
    scf.yield %d : tensor<16x32x!tt.ptr<f16>, #few>
  }
  return
}
}
