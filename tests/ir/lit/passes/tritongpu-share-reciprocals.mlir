// RUN: proton-opt --pipeline='tritongpu-share-reciprocals' %s | filecheck %s

#each = #ttg.linear<[[1], [2]], [[4], [8], [16], [32], [64]], [], []>
#two = #ttg.linear<[[1]], [[2], [4], [8], [16], [32]], [], []>
#tile = #ttg.linear<[[1, 0], [0, 1], [0, 2]], [[0, 4], [0, 8], [0, 16], [2, 0], [4, 0]], [], []>
#row = #ttg.linear<[[1, 0], [0, 0], [0, 0]], [[0, 0], [0, 0], [0, 0], [2, 0], [4, 0]], [], []>

// Both divisions by a number multiply by its reciprocal, which is a normal number, and by the power
// of two that made it one.

// CHECK-LABEL: func.func @number(
// CHECK-SAME: %[[X:.*]]: tensor<128xf32, #{{.*}}>, %[[Y:.*]]: f32)
// CHECK: %[[SIZE:.*]] = math.absf %[[Y]] : f32
// CHECK: %[[LARGE:.*]] = arith.cmpf ogt, %[[SIZE]], %{{.*}} : f32
// CHECK: %[[DOWN:.*]] = arith.select %[[LARGE]], %{{.*}}, %{{.*}} : f32
// CHECK: %[[SMALL:.*]] = arith.cmpf olt, %[[SIZE]], %{{.*}} : f32
// CHECK: %[[SCALE:.*]] = arith.select %[[SMALL]], %{{.*}}, %[[DOWN]] : f32
// CHECK: %[[SCALED:.*]] = arith.mulf %[[Y]], %[[SCALE]] : f32
// CHECK: %[[R:.*]] = arith.divf %{{.*}}, %[[SCALED]] fastmath<arcp> : f32
// CHECK: %[[RS:.*]] = "tt.splat"(%[[R]])
// CHECK: %[[SS:.*]] = "tt.splat"(%[[SCALE]])
// CHECK: %[[P:.*]] = arith.mulf %[[X]], %[[RS]]
// CHECK-NEXT: %[[Q:.*]] = arith.mulf %[[P]], %[[SS]]
// CHECK-NEXT: %[[P2:.*]] = arith.mulf %[[Q]], %[[RS]]
// CHECK-NEXT: %[[Q2:.*]] = arith.mulf %[[P2]], %[[SS]]
// CHECK-NEXT: return %[[Q2]]
func.func @number(%x: tensor<128xf32, #each>, %y: f32) -> tensor<128xf32, #each> {
  %d = "tt.splat"(%y) : (f32) -> tensor<128xf32, #each>
  %a = arith.divf %x, %d : tensor<128xf32, #each>
  %b = arith.divf %a, %d : tensor<128xf32, #each>
  return %b : tensor<128xf32, #each>
}

// Of a row a thread has four elements, and two rows.

// CHECK-LABEL: func.func @rows(
// CHECK: arith.divf %{{.*}}, %{{.*}} fastmath<arcp> : tensor<8x1xf32
// CHECK: "tt.broadcast"
// CHECK-NEXT: "tt.broadcast"
// CHECK: arith.mulf %{{.*}} : tensor<8x32xf32
// CHECK-NEXT: arith.mulf %{{.*}} : tensor<8x32xf32
// CHECK-NOT: divf
// CHECK: return
func.func @rows(%x: tensor<8x32xf32, #tile>, %y: tensor<8x1xf32, #row>) -> tensor<8x32xf32, #tile> {
  %d = "tt.broadcast"(%y) : (tensor<8x1xf32, #row>) -> tensor<8x32xf32, #tile>
  %q = arith.divf %x, %d : tensor<8x32xf32, #tile>
  return %q : tensor<8x32xf32, #tile>
}

// Two elements, halves, and fp64 are divided, and so are elements by elements.

// CHECK-LABEL: func.func @others(
// CHECK-NOT: arcp
// CHECK: return
func.func @others(%x: tensor<64xf32, #two>, %h: tensor<128xf16, #each>, %w: tensor<128xf64, #each>, %y: f32, %z: f16, %v: f64) -> (tensor<64xf32, #two>, tensor<128xf16, #each>, tensor<128xf64, #each>) {
  %d = "tt.splat"(%y) : (f32) -> tensor<64xf32, #two>
  %a = arith.divf %x, %d : tensor<64xf32, #two>
  %b = arith.divf %a, %x : tensor<64xf32, #two>
  %e = "tt.splat"(%z) : (f16) -> tensor<128xf16, #each>
  %c = arith.divf %h, %e : tensor<128xf16, #each>
  %f = "tt.splat"(%v) : (f64) -> tensor<128xf64, #each>
  %g = arith.divf %w, %f : tensor<128xf64, #each>
  return %b, %c, %g : tensor<64xf32, #two>, tensor<128xf16, #each>, tensor<128xf64, #each>
}

// The first turn would wait for what was loaded: not where a loop has waited before, or the turn
// loads the divisor itself.

// CHECK-LABEL: func.func @loops(
// CHECK: scf.for
// CHECK: arith.divf %{{.*}}, %{{.*}} : tensor
// CHECK: fastmath<arcp>
// CHECK: scf.for
// CHECK-NOT: divf %{{.*}} : tensor
// CHECK: scf.for
// CHECK: "tt.load"
// CHECK: fastmath<arcp>
// CHECK-NOT: divf
// CHECK: return
func.func @loops(%x: tensor<128xf32, #each>, %p: !tt.ptr<f32>, %n: i32, %zero: i32, %step: i32) -> tensor<128xf32, #each> {
  %one = arith.constant 1.0 : f32
  %y = "tt.load"(%p) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (!tt.ptr<f32>) -> f32
  %z = arith.addf %y, %one : f32
  %d = "tt.splat"(%z) : (f32) -> tensor<128xf32, #each>
  %a = scf.for %i = %zero to %n step %step iter_args(%c = %x) -> (tensor<128xf32, #each>) : i32 {
    %q = arith.divf %c, %d : tensor<128xf32, #each>
    scf.yield %q : tensor<128xf32, #each>
  }
  %e = "tt.splat"(%z) : (f32) -> tensor<128xf32, #each>
  %b = scf.for %i = %zero to %n step %step iter_args(%c = %a) -> (tensor<128xf32, #each>) : i32 {
    %q = arith.divf %c, %e : tensor<128xf32, #each>
    scf.yield %q : tensor<128xf32, #each>
  }
  %f = scf.for %i = %zero to %n step %step iter_args(%c = %b) -> (tensor<128xf32, #each>) : i32 {
    %v = "tt.load"(%p) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (!tt.ptr<f32>) -> f32
    %g = "tt.splat"(%v) : (f32) -> tensor<128xf32, #each>
    %q = arith.divf %c, %g : tensor<128xf32, #each>
    scf.yield %q : tensor<128xf32, #each>
  }
  return %f : tensor<128xf32, #each>
}

// A power of two has an exact reciprocal, which is a factor; three has none, nor has one that is
// too large.

// CHECK-LABEL: func.func @constants(
// CHECK: %[[K:.*]] = arith.constant dense<-1.250000e-01>
// CHECK-NEXT: arith.mulf %{{.*}}, %[[K]]
// CHECK-NEXT: arith.divf
// CHECK-NEXT: arith.divf
// CHECK-NEXT: %[[H:.*]] = arith.constant 5.000000e-01
// CHECK-NEXT: arith.mulf %{{.*}}, %[[H]] : f32
// CHECK-NEXT: return
func.func @constants(%x: tensor<128xf32, #each>, %y: f32) -> (tensor<128xf32, #each>, f32) {
  %eight = arith.constant dense<-8.0> : tensor<128xf32, #each>
  %three = arith.constant dense<3.0> : tensor<128xf32, #each>
  %large = arith.constant dense<0x7F000000> : tensor<128xf32, #each>
  %two = arith.constant 2.0 : f32
  %a = arith.divf %x, %eight : tensor<128xf32, #each>
  %b = arith.divf %a, %three : tensor<128xf32, #each>
  %c = arith.divf %b, %large : tensor<128xf32, #each>
  %d = arith.divf %y, %two : f32
  return %c, %d : tensor<128xf32, #each>, f32
}
