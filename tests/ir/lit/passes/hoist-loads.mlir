// RUN: proton-opt --pipeline='hoist-loads{target=cuda:90}' %s | filecheck %s

#one = #ttg.linear<[], [[1], [2], [4], [8], [16]], [[32]], []>
#two = #ttg.linear<[], [[2], [4], [8], [16], [32]], [[1]], []>
#lanes = #ttg.linear<[], [[2], [1], [4], [8], [16]], [[32]], []>

module attributes {"ttg.num-warps" = 2 : i32} {
// Loads and what their addresses are made of go ahead of an exchange; their order stays.

// CHECK-LABEL: func.func @ahead(
// CHECK: scf.for
// CHECK-NEXT: "tt.load"(%arg0)
// CHECK-NEXT: %[[P:.*]] = "tt.addptr"(%arg1, %arg2)
// CHECK-NEXT: "tt.load"(%[[P]])
// CHECK-NEXT: "tt.load"(%arg1)
// CHECK-NEXT: "ttg.convert_layout"
// CHECK-NEXT: math.exp
func.func @ahead(%p: tensor<64x!tt.ptr<f32>, #one>, %q: tensor<64x!tt.ptr<f32>, #two>, %o: tensor<64xi32, #two>, %first: index, %n: index, %step: index) {
  scf.for %it = %first to %n step %step {
    %x = "tt.load"(%p) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<64x!tt.ptr<f32>, #one>) -> tensor<64xf32, #one>
    %y = "ttg.convert_layout"(%x) : (tensor<64xf32, #one>) -> tensor<64xf32, #two>
    %e = math.exp %y : tensor<64xf32, #two>
    %r = "tt.addptr"(%q, %o) : (tensor<64x!tt.ptr<f32>, #two>, tensor<64xi32, #two>) -> tensor<64x!tt.ptr<f32>, #two>
    %z = "tt.load"(%r) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<64x!tt.ptr<f32>, #two>) -> tensor<64xf32, #two>
    %w = "tt.load"(%q) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<64x!tt.ptr<f32>, #two>) -> tensor<64xf32, #two>
  }
  return
}

// What waits for the exchange, or for a load behind it that does, stays; so does a volatile load,
// and what is behind that.

// CHECK-LABEL: func.func @waits(
// CHECK: scf.for
// CHECK-NEXT: "ttg.convert_layout"
// CHECK-NEXT: "tt.addptr"
// CHECK-NEXT: "tt.load"
// CHECK-NEXT: "tt.addptr"
// CHECK-NEXT: "tt.load"
// CHECK-NEXT: "tt.load"{{.*}}volatile = true
// CHECK-NEXT: "tt.load"{{.*}}volatile = false
func.func @waits(%p: tensor<64x!tt.ptr<i32>, #two>, %i: tensor<64xi32, #one>, %first: index, %n: index, %step: index) {
  scf.for %it = %first to %n step %step {
    %j = "ttg.convert_layout"(%i) : (tensor<64xi32, #one>) -> tensor<64xi32, #two>
    %q = "tt.addptr"(%p, %j) : (tensor<64x!tt.ptr<i32>, #two>, tensor<64xi32, #two>) -> tensor<64x!tt.ptr<i32>, #two>
    %x = "tt.load"(%q) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<64x!tt.ptr<i32>, #two>) -> tensor<64xi32, #two>
    %r = "tt.addptr"(%p, %x) : (tensor<64x!tt.ptr<i32>, #two>, tensor<64xi32, #two>) -> tensor<64x!tt.ptr<i32>, #two>
    %y = "tt.load"(%r) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<64x!tt.ptr<i32>, #two>) -> tensor<64xi32, #two>
    %z = "tt.load"(%p) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = true} : (tensor<64x!tt.ptr<i32>, #two>) -> tensor<64xi32, #two>
    %w = "tt.load"(%p) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<64x!tt.ptr<i32>, #two>) -> tensor<64xi32, #two>
  }
  return
}

// Nothing passes a store, and a conversion by shuffles is no meeting.

// CHECK-LABEL: func.func @stays(
// CHECK: scf.for
// CHECK-NEXT: "ttg.convert_layout"
// CHECK-NEXT: "tt.store"
// CHECK-NEXT: "tt.load"
// CHECK-NEXT: "ttg.convert_layout"
// CHECK-NEXT: "tt.load"
func.func @stays(%p: tensor<64x!tt.ptr<f32>, #two>, %x: tensor<64xf32, #one>, %first: index, %n: index, %step: index) {
  scf.for %it = %first to %n step %step {
    %y = "ttg.convert_layout"(%x) : (tensor<64xf32, #one>) -> tensor<64xf32, #two>
    "tt.store"(%p, %y) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<64x!tt.ptr<f32>, #two>, tensor<64xf32, #two>) -> ()
    %z = "tt.load"(%p) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<64x!tt.ptr<f32>, #two>) -> tensor<64xf32, #two>
    %s = "ttg.convert_layout"(%x) : (tensor<64xf32, #one>) -> tensor<64xf32, #lanes>
    %w = "tt.load"(%p) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<64x!tt.ptr<f32>, #two>) -> tensor<64xf32, #two>
  }
  return
}

// Nor does a load move where each runs once.

// CHECK-LABEL: func.func @once(
// CHECK-NEXT: "ttg.convert_layout"
// CHECK-NEXT: "tt.load"
func.func @once(%p: tensor<64x!tt.ptr<f32>, #two>, %x: tensor<64xf32, #one>) {
  %y = "ttg.convert_layout"(%x) : (tensor<64xf32, #one>) -> tensor<64xf32, #two>
  %z = "tt.load"(%p) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<64x!tt.ptr<f32>, #two>) -> tensor<64xf32, #two>
  return
}

// One whose addresses are the same in each iteration is in the cache.

// CHECK-LABEL: func.func @same(
// CHECK: scf.for
// CHECK-NEXT: "ttg.convert_layout"
// CHECK-NEXT: "tt.load"
func.func @same(%p: !tt.ptr<f32>, %x: tensor<64xf32, #one>, %first: index, %n: index, %step: index) {
  %q = "tt.splat"(%p) : (!tt.ptr<f32>) -> tensor<64x!tt.ptr<f32>, #two>
  scf.for %it = %first to %n step %step {
    %y = "ttg.convert_layout"(%x) : (tensor<64xf32, #one>) -> tensor<64xf32, #two>
    %z = "tt.load"(%q) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<64x!tt.ptr<f32>, #two>) -> tensor<64xf32, #two>
  }
  return
}
}
