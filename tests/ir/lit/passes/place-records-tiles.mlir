// RUN: proton-opt --pipeline='place-records{work=tiles}' %s | filecheck %s
// Records around ops on tiles; arithmetic of indices is not work, nor is what only records use.
#row = #ttg.linear<[], [[1], [2], [4], [8], [16]], [[32], [64]], []>

// CHECK-LABEL: func.func @load_and_store(
// CHECK: "tt.splat"
// CHECK-NEXT: "tt.addptr"
// CHECK-NEXT: "proton.record"() {kinds = [], members = ["load"], names = [], operandSegmentSizes = array<i32: 0, 0>, phase = "start", scope = "load"}
// CHECK-NEXT: "tt.load"
// CHECK-NEXT: phase = "end", scope = "load"
// CHECK-NEXT: phase = "start", scope = "store"
// CHECK-NEXT: arith.addf
// CHECK-NEXT: "tt.store"
// CHECK-NEXT: phase = "end", scope = "store"
// CHECK-NEXT: return
module attributes {"ttg.num-warps" = 4 : i32} {
func.func @load_and_store(%p: !tt.ptr<f32>) attributes {tt.kernel, proton.scopes = ["load", "store"]} {
  %i = "tt.make_range"() {start = 0 : i32, end = 128 : i32} : () -> tensor<128xi32, #row> loc("scope:load")
  %s = "tt.splat"(%p) : (!tt.ptr<f32>) -> tensor<128x!tt.ptr<f32>, #row> loc("scope:load")
  %a = "tt.addptr"(%s, %i) : (tensor<128x!tt.ptr<f32>, #row>, tensor<128xi32, #row>) -> tensor<128x!tt.ptr<f32>, #row> loc("scope:load")
  %x = "tt.load"(%a) {cache = "", evict = "", volatile = false, operandSegmentSizes = array<i32: 1, 0, 0>} : (tensor<128x!tt.ptr<f32>, #row>) -> tensor<128xf32, #row> loc("scope:load")
  %y = arith.addf %x, %x : tensor<128xf32, #row> loc("scope:store")
  "tt.store"(%a, %y) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<128x!tt.ptr<f32>, #row>, tensor<128xf32, #row>) -> () loc("scope:store")
  return
}

// Payload is computed in front of its scope; the placeholder goes when the record is placed.

// CHECK-LABEL: func.func @payload(
// CHECK: scf.for
// CHECK-NEXT: arith.sitofp
// CHECK-NEXT: arith.mulf
// CHECK-NEXT: %[[F:.*]] = arith.extf
// CHECK-NEXT: %[[BITS:.*]] = arith.bitcast %[[F]]
// CHECK-NEXT: "proton.record"(%[[BITS]]) {kinds = ["float"], members = ["turn"], names = ["half"], operandSegmentSizes = array<i32: 1, 0>, phase = "start", scope = "turn"}
// CHECK-NEXT: arith.mulf
// CHECK-NEXT: phase = "end", scope = "turn"
// CHECK-NEXT: scf.yield
func.func @payload(%x: tensor<128xf32, #row>, %n: i32) -> tensor<128xf32, #row> attributes {tt.kernel, proton.scopes = ["turn"]} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %half = arith.constant 0.5 : f32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%v = %x) -> (tensor<128xf32, #row>) : i32 {
    %f = arith.sitofp %i : i32 to f32 loc("scope:turn")
    %h = arith.mulf %f, %half : f32 loc("scope:turn")
    %w = arith.extf %h : f32 to f64 loc("scope:turn")
    %b = arith.bitcast %w : f64 to i64 loc("scope:turn")
    "proton.record"(%b) {scope = "turn", phase = "start", names = ["half"], kinds = ["float"], operandSegmentSizes = array<i32: 1, 0>} : (i64) -> ()
    %m = arith.mulf %v, %v : tensor<128xf32, #row> loc("scope:turn")
    scf.yield %m : tensor<128xf32, #row>
  }
  return %r : tensor<128xf32, #row>
}

// Memory that is only reserved is no work: no slice.

// CHECK-LABEL: func.func @named(
// CHECK-NEXT: "ttg.local_reserve"
// CHECK-NEXT: "tt.splat"
// CHECK-NEXT: phase = "start", scope = "store"
// CHECK-NEXT: "tt.store"
// CHECK-NEXT: phase = "end", scope = "store"
// CHECK-NEXT: return
func.func @named(%p: !tt.ptr<f32>, %x: tensor<128xf32, #row>) attributes {tt.kernel, proton.scopes = ["load", "store"]} {
  %m = "ttg.local_reserve"() : () -> !ttg.mutable_memdesc<[2, 128], f32, #ttg.shared<[[1], [2], [4], [8], [16], [32], [64]]>> loc("scope:load")
  %s = "tt.splat"(%p) : (!tt.ptr<f32>) -> tensor<128x!tt.ptr<f32>, #row> loc("scope:store")
  "tt.store"(%s, %x) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<128x!tt.ptr<f32>, #row>, tensor<128xf32, #row>) -> () loc("scope:store")
  return
}
}
