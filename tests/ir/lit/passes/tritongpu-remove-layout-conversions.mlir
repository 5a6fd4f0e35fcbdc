// RUN: proton-opt --pipeline='tritongpu-remove-layout-conversions' %s | filecheck %s

#one = #ttg.linear<[[32], [64]], [[1], [2], [4], [8], [16]], [], []>
#four = #ttg.linear<[[1], [2]], [[4], [8], [16], [32], [64]], [], []>
#lanes = #ttg.linear<[], [[1], [2], [4], [8], [16]], [], []>
#copies = #ttg.linear<[[1], [2], [4]], [[8], [16], [0], [0], [0]], [], []>
#joined = #ttg.linear<[[0, 1]], [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0]], [], []>

module attributes {"ttg.num-warps" = 1 : i32} {

// Forward: what is computed from a load is computed where the load left it.

// CHECK-LABEL: func.func @forward(
// CHECK-NOT: ttg.convert_layout
// CHECK: %[[X:.*]] = "tt.load"
// CHECK-NEXT: %[[E:.*]] = math.exp %[[X]] : tensor<128xf32, #ttg.linear<{{..}}1], [2]], {{.*}}
// CHECK-NEXT: "tt.store"(%{{.*}}, %[[E]])
// CHECK-NOT: ttg.convert_layout
// CHECK: return
func.func @forward(%p: tensor<128x!tt.ptr<f32>, #four>) {
  %x = "tt.load"(%p) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<128x!tt.ptr<f32>, #four>) -> tensor<128xf32, #four>
  %c = "ttg.convert_layout"(%x) : (tensor<128xf32, #four>) -> tensor<128xf32, #one>
  %e = math.exp %c : tensor<128xf32, #one>
  %d = "ttg.convert_layout"(%e) : (tensor<128xf32, #one>) -> tensor<128xf32, #four>
  "tt.store"(%p, %d) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<128x!tt.ptr<f32>, #four>, tensor<128xf32, #four>) -> ()
  return
}

// Backward: addresses and masks are computed in the layout of the access, and a constant, too.

// CHECK-LABEL: func.func @backward(
// CHECK-NOT: ttg.convert_layout
// CHECK: arith.constant dense<7> : tensor<128xi32, #ttg.linear<{{..}}1], [2]], {{.*}}
// CHECK: "tt.make_range"() {{.*}} -> tensor<128xi32, #ttg.linear<{{..}}1], [2]], {{.*}}
// CHECK: arith.cmpi slt, {{.*}} : tensor<128xi32, #ttg.linear<{{..}}1], [2]], {{.*}}
// CHECK-NOT: ttg.convert_layout
// CHECK: return
func.func @backward(%x: !tt.ptr<f32>) {
  %k = arith.constant dense<7> : tensor<128xi32, #one>
  %i = "tt.make_range"() {start = 0 : i32, end = 128 : i32} : () -> tensor<128xi32, #one>
  %m = arith.cmpi slt, %i, %k : tensor<128xi32, #one>
  %s = "tt.splat"(%x) : (!tt.ptr<f32>) -> tensor<128x!tt.ptr<f32>, #one>
  %p = "tt.addptr"(%s, %i) : (tensor<128x!tt.ptr<f32>, #one>, tensor<128xi32, #one>) -> tensor<128x!tt.ptr<f32>, #one>
  %q = "ttg.convert_layout"(%p) : (tensor<128x!tt.ptr<f32>, #one>) -> tensor<128x!tt.ptr<f32>, #four>
  %n = "ttg.convert_layout"(%m) : (tensor<128xi1, #one>) -> tensor<128xi1, #four>
  %v = "tt.load"(%q, %n) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>, volatile = false} : (tensor<128x!tt.ptr<f32>, #four>, tensor<128xi1, #four>) -> tensor<128xf32, #four>
  return
}

// What is widened moves before it is. Of a sum the layout is that of its store, where one operand
// has it: the other one moves, and not the result, too.

// CHECK-LABEL: func.func @widened(
// CHECK: %[[X:.*]] = "tt.load"{{.*}} -> tensor<128xf16, {{.*}}
// CHECK: %[[C:.*]] = "ttg.convert_layout"(%[[X]]) : {{.*}} -> tensor<128xf16, #ttg.linear<{{..}}1], [2]], {{.*}}
// CHECK: %[[E:.*]] = arith.extf %[[C]] : {{.*}}
// CHECK-NOT: ttg.convert_layout
// CHECK: %[[S:.*]] = arith.addf %[[E]], %{{.*}} : tensor<128xf32, #ttg.linear<{{..}}1], [2]], {{.*}}
// CHECK-NOT: ttg.convert_layout
// CHECK: "tt.store"(%{{.*}}, %[[S]])
func.func @widened(%p: tensor<128x!tt.ptr<f16>, #one>, %q: tensor<128x!tt.ptr<f32>, #four>) {
  %x = "tt.load"(%p) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<128x!tt.ptr<f16>, #one>) -> tensor<128xf16, #one>
  %y = "tt.load"(%q) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<128x!tt.ptr<f32>, #four>) -> tensor<128xf32, #four>
  %w = arith.extf %x : tensor<128xf16, #one> to tensor<128xf32, #one>
  %c = "ttg.convert_layout"(%y) : (tensor<128xf32, #four>) -> tensor<128xf32, #one>
  %s = arith.addf %w, %c : tensor<128xf32, #one>
  %d = "ttg.convert_layout"(%s) : (tensor<128xf32, #one>) -> tensor<128xf32, #four>
  "tt.store"(%q, %d) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<128x!tt.ptr<f32>, #four>, tensor<128xf32, #four>) -> ()
  return
}

// A loop carries its sum in the layout of what it adds: no conversion in the loop, none after it.

// CHECK-LABEL: func.func @loop(
// CHECK-NOT: ttg.convert_layout
// CHECK: scf.for {{.*}} -> (tensor<128xf32, #ttg.linear<{{..}}1], [2]], {{.*}}>)
// CHECK-NOT: ttg.convert_layout
// CHECK: "tt.store"
func.func @loop(%p: tensor<128x!tt.ptr<f32>, #four>, %n: i32) {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %init = arith.constant dense<0.0> : tensor<128xf32, #one>
  %r = scf.for %i = %zero to %n step %one iter_args(%acc = %init) -> (tensor<128xf32, #one>) : i32 {
    %x = "tt.load"(%p) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<128x!tt.ptr<f32>, #four>) -> tensor<128xf32, #four>
    %c = "ttg.convert_layout"(%x) : (tensor<128xf32, #four>) -> tensor<128xf32, #one>
    %a = arith.addf %acc, %c : tensor<128xf32, #one>
    scf.yield %a : tensor<128xf32, #one>
  }
  %d = "ttg.convert_layout"(%r) : (tensor<128xf32, #one>) -> tensor<128xf32, #four>
  "tt.store"(%p, %d) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<128x!tt.ptr<f32>, #four>, tensor<128xf32, #four>) -> ()
  return
}

// A pointer that only the loop advances has the layout of the access in it.

// CHECK-LABEL: func.func @carried_pointer(
// CHECK-NOT: ttg.convert_layout
// CHECK: scf.for {{.*}} -> (tensor<128x!tt.ptr<f32>, #ttg.linear<{{..}}1], [2]], {{.*}}>)
// CHECK-NOT: ttg.convert_layout
// CHECK: return
func.func @carried_pointer(%x: !tt.ptr<f32>, %n: i32) {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %step = arith.constant dense<128> : tensor<128xi32, #one>
  %i = "tt.make_range"() {start = 0 : i32, end = 128 : i32} : () -> tensor<128xi32, #one>
  %s = "tt.splat"(%x) : (!tt.ptr<f32>) -> tensor<128x!tt.ptr<f32>, #one>
  %p = "tt.addptr"(%s, %i) : (tensor<128x!tt.ptr<f32>, #one>, tensor<128xi32, #one>) -> tensor<128x!tt.ptr<f32>, #one>
  %r = scf.for %j = %zero to %n step %one iter_args(%a = %p) -> (tensor<128x!tt.ptr<f32>, #one>) : i32 {
    %q = "ttg.convert_layout"(%a) : (tensor<128x!tt.ptr<f32>, #one>) -> tensor<128x!tt.ptr<f32>, #four>
    %v = "tt.load"(%q) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<128x!tt.ptr<f32>, #four>) -> tensor<128xf32, #four>
    "tt.store"(%q, %v) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<128x!tt.ptr<f32>, #four>, tensor<128xf32, #four>) -> ()
    %b = "tt.addptr"(%a, %step) : (tensor<128x!tt.ptr<f32>, #one>, tensor<128xi32, #one>) -> tensor<128x!tt.ptr<f32>, #one>
    scf.yield %b : tensor<128x!tt.ptr<f32>, #one>
  }
  return
}

// A branch: the side that is a constant is made in the layout of the side that is loaded.

// CHECK-LABEL: func.func @branch(
// CHECK-NOT: ttg.convert_layout
// CHECK: arith.constant dense<0.000000e+00> : tensor<128xf32, #ttg.linear<{{..}}1], [2]], {{.*}}
// CHECK: scf.if {{.*}} -> (tensor<128xf32, #ttg.linear<{{..}}1], [2]], {{.*}}>)
// CHECK-NOT: ttg.convert_layout
// CHECK: "tt.store"
func.func @branch(%p: tensor<128x!tt.ptr<f32>, #four>, %c: i1) {
  %zero = arith.constant dense<0.0> : tensor<128xf32, #one>
  %r = scf.if %c -> (tensor<128xf32, #one>) {
    %x = "tt.load"(%p) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<128x!tt.ptr<f32>, #four>) -> tensor<128xf32, #four>
    %y = "ttg.convert_layout"(%x) : (tensor<128xf32, #four>) -> tensor<128xf32, #one>
    scf.yield %y : tensor<128xf32, #one>
  } else {
    scf.yield %zero : tensor<128xf32, #one>
  }
  %d = "ttg.convert_layout"(%r) : (tensor<128xf32, #one>) -> tensor<128xf32, #four>
  "tt.store"(%p, %d) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<128x!tt.ptr<f32>, #four>, tensor<128xf32, #four>) -> ()
  return
}

// Both halves of a join lie alike, where the result's elements lie.

// CHECK-LABEL: func.func @join(
// CHECK: %[[C:.*]] = "ttg.convert_layout"(%{{.*}}) : {{.*}} -> tensor<32xf32, #ttg.linear<[], {{..}}1], {{.*}}
// CHECK-NEXT: "tt.join"(%[[C]], %{{.*}}) : (tensor<32xf32, #ttg.linear<[], {{.*}}>>, tensor<32xf32, #ttg.linear<[], {{.*}}>>) -> tensor<32x2xf32, #ttg.linear<{{..}}0, 1]], {{..}}1, 0], {{.*}}
func.func @join(%a: tensor<32xf32, #copies>, %b: tensor<32xf32, #lanes>) {
  %c = "ttg.convert_layout"(%a) : (tensor<32xf32, #copies>) -> tensor<32xf32, #lanes>
  %j = "tt.join"(%c, %b) : (tensor<32xf32, #lanes>, tensor<32xf32, #lanes>) -> tensor<32x2xf32, #joined>
  return
}

// What must move: loaded in one layout, stored in another. One conversion, and it is not computed
// again: neither a load nor an exponential is cheap.

// CHECK-LABEL: func.func @kept(
// CHECK: %[[X:.*]] = "tt.load"
// CHECK-NOT: "tt.load"
// CHECK: %[[E:.*]] = math.exp %[[X]] : tensor<128xf32, #ttg.linear<{{..}}1], [2]], {{.*}}
// CHECK-NEXT: %[[C:.*]] = "ttg.convert_layout"(%[[E]]) : {{.*}} -> tensor<128xf32, #ttg.linear<{{..}}32], [64]], {{.*}}
// CHECK-NEXT: "tt.store"(%{{.*}}, %[[C]])
// CHECK-NEXT: return
func.func @kept(%p: tensor<128x!tt.ptr<f32>, #four>, %q: tensor<128x!tt.ptr<f32>, #one>) {
  %x = "tt.load"(%p) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<128x!tt.ptr<f32>, #four>) -> tensor<128xf32, #four>
  %c = "ttg.convert_layout"(%x) : (tensor<128xf32, #four>) -> tensor<128xf32, #one>
  %e = math.exp %c : tensor<128xf32, #one>
  "tt.store"(%q, %e) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<128x!tt.ptr<f32>, #one>, tensor<128xf32, #one>) -> ()
  return
}

// An argument has the layout it has.

// CHECK-LABEL: func.func @argument(
// CHECK: "ttg.convert_layout"
// CHECK: "tt.store"
func.func @argument(%p: tensor<128x!tt.ptr<f32>, #four>, %x: tensor<128xf32, #one>) {
  %c = "ttg.convert_layout"(%x) : (tensor<128xf32, #one>) -> tensor<128xf32, #four>
  "tt.store"(%p, %c) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<128x!tt.ptr<f32>, #four>, tensor<128xf32, #four>) -> ()
  return
}

// A while loop keeps the layouts of what it carries, and of what its body yields.

// CHECK-LABEL: func.func @while(
// CHECK: "ttg.convert_layout"
// CHECK: scf.while {{.*}} -> tensor<128xf32, #ttg.linear<{{..}}32], [64]], {{.*}}
// CHECK: %[[X:.*]] = "tt.load"
// CHECK-NEXT: %[[E:.*]] = math.exp %[[X]] : tensor<128xf32, #ttg.linear<{{..}}1], [2]], {{.*}}
// CHECK-NEXT: %[[Y:.*]] = "ttg.convert_layout"(%[[E]]) : {{.*}} -> tensor<128xf32, #ttg.linear<{{..}}32], [64]], {{.*}}
// CHECK-NEXT: scf.yield %[[Y]]
// CHECK: "ttg.convert_layout"
// CHECK: "tt.store"
func.func @while(%p: tensor<128x!tt.ptr<f32>, #four>, %c: i1) {
  %x = "tt.load"(%p) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<128x!tt.ptr<f32>, #four>) -> tensor<128xf32, #four>
  %y = "ttg.convert_layout"(%x) : (tensor<128xf32, #four>) -> tensor<128xf32, #one>
  %r = scf.while (%a = %y) : (tensor<128xf32, #one>) -> tensor<128xf32, #one> {
    scf.condition(%c) %a : tensor<128xf32, #one>
  } do {
  ^bb0(%a: tensor<128xf32, #one>):
    %z = "tt.load"(%p) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<128x!tt.ptr<f32>, #four>) -> tensor<128xf32, #four>
    %k = "ttg.convert_layout"(%z) : (tensor<128xf32, #four>) -> tensor<128xf32, #one>
    %e = math.exp %k : tensor<128xf32, #one>
    scf.yield %e : tensor<128xf32, #one>
  }
  %d = "ttg.convert_layout"(%r) : (tensor<128xf32, #one>) -> tensor<128xf32, #four>
  "tt.store"(%p, %d) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<128x!tt.ptr<f32>, #four>, tensor<128xf32, #four>) -> ()
  return
}

// Addresses that follow from data are read where they are: by a loaded index, and by what a bisection
// chose. Offsets where data says so are no gather: lanes follow each other.

// CHECK-LABEL: func.func @gathered(
// CHECK-NOT: ttg.convert_layout
// CHECK: return
func.func @gathered(%p: tensor<128x!tt.ptr<i32>, #four>, %t: !tt.ptr<f32>, %q: tensor<128x!tt.ptr<f32>, #four>) {
  %i = "tt.load"(%p) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<128x!tt.ptr<i32>, #four>) -> tensor<128xi32, #four>
  %s = "tt.splat"(%t) : (!tt.ptr<f32>) -> tensor<128x!tt.ptr<f32>, #four>
  %a = "tt.addptr"(%s, %i) : (tensor<128x!tt.ptr<f32>, #four>, tensor<128xi32, #four>) -> tensor<128x!tt.ptr<f32>, #four>
  %b = "ttg.convert_layout"(%a) : (tensor<128x!tt.ptr<f32>, #four>) -> tensor<128x!tt.ptr<f32>, #one>
  %x = "tt.load"(%b) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<128x!tt.ptr<f32>, #one>) -> tensor<128xf32, #one>
  %y = "ttg.convert_layout"(%x) : (tensor<128xf32, #one>) -> tensor<128xf32, #four>
  "tt.store"(%q, %y) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<128x!tt.ptr<f32>, #four>, tensor<128xf32, #four>) -> ()
  return
}

// CHECK-LABEL: func.func @bisected(
// CHECK-NOT: ttg.convert_layout
// CHECK: return
func.func @bisected(%p: tensor<128x!tt.ptr<f32>, #four>, %t: !tt.ptr<f32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %low = arith.constant dense<0> : tensor<128xi32, #four>
  %high = arith.constant dense<255> : tensor<128xi32, #four>
  %half = arith.constant dense<1> : tensor<128xi32, #four>
  %v = "tt.load"(%p) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<128x!tt.ptr<f32>, #four>) -> tensor<128xf32, #four>
  %s = "tt.splat"(%t) : (!tt.ptr<f32>) -> tensor<128x!tt.ptr<f32>, #four>
  %r:2 = scf.for %k = %c0 to %n step %c1 iter_args(%l = %low, %h = %high) -> (tensor<128xi32, #four>, tensor<128xi32, #four>) : i32 {
    %sum = arith.addi %l, %h : tensor<128xi32, #four>
    %m = arith.shrui %sum, %half : tensor<128xi32, #four>
    %a = "tt.addptr"(%s, %m) : (tensor<128x!tt.ptr<f32>, #four>, tensor<128xi32, #four>) -> tensor<128x!tt.ptr<f32>, #four>
    %b = "ttg.convert_layout"(%a) : (tensor<128x!tt.ptr<f32>, #four>) -> tensor<128x!tt.ptr<f32>, #one>
    %x = "tt.load"(%b) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<128x!tt.ptr<f32>, #one>) -> tensor<128xf32, #one>
    %y = "ttg.convert_layout"(%x) : (tensor<128xf32, #one>) -> tensor<128xf32, #four>
    %g = arith.cmpf ogt, %v, %y : tensor<128xf32, #four>
    %l2 = arith.select %g, %m, %l : tensor<128xi1, #four>, tensor<128xi32, #four>
    %h2 = arith.select %g, %h, %m : tensor<128xi1, #four>, tensor<128xi32, #four>
    scf.yield %l2, %h2 : tensor<128xi32, #four>, tensor<128xi32, #four>
  }
  %f = arith.sitofp %r#0 : tensor<128xi32, #four> to tensor<128xf32, #four>
  "tt.store"(%p, %f) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<128x!tt.ptr<f32>, #four>, tensor<128xf32, #four>) -> ()
  return
}

// CHECK-LABEL: func.func @chosen_offsets(
// CHECK: "tt.load"{{.*}} -> tensor<128xf32, #ttg.linear<{{..}}1], [2]], {{.*}}
// CHECK: "tt.load"{{.*}} -> tensor<128xf32, #ttg.linear<{{..}}32], [64]], {{.*}}
func.func @chosen_offsets(%p: tensor<128x!tt.ptr<f32>, #four>, %t: !tt.ptr<f32>) {
  %zero = arith.constant dense<0> : tensor<128xi32, #four>
  %v = "tt.load"(%p) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<128x!tt.ptr<f32>, #four>) -> tensor<128xf32, #four>
  %g = arith.cmpf ogt, %v, %v : tensor<128xf32, #four>
  %i = "tt.make_range"() {start = 0 : i32, end = 128 : i32} : () -> tensor<128xi32, #four>
  %o = arith.select %g, %i, %zero : tensor<128xi1, #four>, tensor<128xi32, #four>
  %s = "tt.splat"(%t) : (!tt.ptr<f32>) -> tensor<128x!tt.ptr<f32>, #four>
  %a = "tt.addptr"(%s, %o) : (tensor<128x!tt.ptr<f32>, #four>, tensor<128xi32, #four>) -> tensor<128x!tt.ptr<f32>, #four>
  %b = "ttg.convert_layout"(%a) : (tensor<128x!tt.ptr<f32>, #four>) -> tensor<128x!tt.ptr<f32>, #one>
  %x = "tt.load"(%b) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<128x!tt.ptr<f32>, #one>) -> tensor<128xf32, #one>
  %y = "ttg.convert_layout"(%x) : (tensor<128xf32, #one>) -> tensor<128xf32, #four>
  "tt.store"(%p, %y) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<128x!tt.ptr<f32>, #four>, tensor<128xf32, #four>) -> ()
  return
}

// Pointers at several distances from others: these move once, and not each of them.

// CHECK-LABEL: func.func @distances(
// CHECK: "ttg.convert_layout"
// CHECK-NOT: ttg.convert_layout
// CHECK: return
func.func @distances(%p: tensor<128x!tt.ptr<i32>, #four>, %t: !tt.ptr<f32>, %v: tensor<128xf32, #one>) {
  %one = arith.constant dense<1> : tensor<128xi32, #four>
  %two = arith.constant dense<2> : tensor<128xi32, #four>
  %i = "tt.load"(%p) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<128x!tt.ptr<i32>, #four>) -> tensor<128xi32, #four>
  %s = "tt.splat"(%t) : (!tt.ptr<f32>) -> tensor<128x!tt.ptr<f32>, #four>
  %a = "tt.addptr"(%s, %i) : (tensor<128x!tt.ptr<f32>, #four>, tensor<128xi32, #four>) -> tensor<128x!tt.ptr<f32>, #four>
  %b = "tt.addptr"(%a, %one) : (tensor<128x!tt.ptr<f32>, #four>, tensor<128xi32, #four>) -> tensor<128x!tt.ptr<f32>, #four>
  %c = "tt.addptr"(%a, %two) : (tensor<128x!tt.ptr<f32>, #four>, tensor<128xi32, #four>) -> tensor<128x!tt.ptr<f32>, #four>
  %d = "ttg.convert_layout"(%b) : (tensor<128x!tt.ptr<f32>, #four>) -> tensor<128x!tt.ptr<f32>, #one>
  "tt.store"(%d, %v) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<128x!tt.ptr<f32>, #one>, tensor<128xf32, #one>) -> ()
  %e = "ttg.convert_layout"(%c) : (tensor<128x!tt.ptr<f32>, #four>) -> tensor<128x!tt.ptr<f32>, #one>
  "tt.store"(%e, %v) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<128x!tt.ptr<f32>, #one>, tensor<128xf32, #one>) -> ()
  return
}
}
