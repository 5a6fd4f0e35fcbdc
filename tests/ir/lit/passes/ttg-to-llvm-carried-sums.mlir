// RUN: proton-opt --pipeline='allocate-shared-memory,ttg-to-llvm{target=cuda:90},canonicalize' %s | filecheck %s

#sums = #ttg.linear<[[0, 1], [8, 0], [0, 8], [0, 16], [0, 32], [0, 64]], [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], [[16, 0], [32, 0]], []>

module attributes {"ttg.num-warps" = 4 : i32} {

// The sums of a product are carried one by one, and are a vector again behind the loop.

// CHECK-LABEL: func.func @product(
// CHECK: %[[ZERO:.*]] = llvm.mlir.constant(0.000000e+00 : f32) : f32
// CHECK: %[[FOR:.*]]:64 = scf.for {{.*}} iter_args(%[[FIRST:[^ ]*]] = %[[ZERO]],
// CHECK-NOT: vector
// CHECK: %[[WAIT:.*]] = llvm.inline_asm has_side_effects "{{.*}}// wait{{.*}}"{{.*}} %[[FIRST]],
// CHECK: %[[NEXT:.*]] = llvm.extractvalue %[[WAIT]][0]
// CHECK: scf.yield %[[NEXT]],
// CHECK: }
// CHECK: vector.from_elements %[[FOR]]#0, {{.*}}, %[[FOR]]#63 : vector<64xf32>
func.func @product(%n: i32) -> tensor<64x128xf32, #sums> {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zeros = arith.constant dense<0.0> : tensor<64x128xf32, #sums>
  %e = scf.for %k = %c0 to %n step %c1 iter_args(%s = %zeros) -> (tensor<64x128xf32, #sums>) : i32 {
    %w = "ttng.warp_group_dot_wait"(%s) {pendings = 0 : i32} : (tensor<64x128xf32, #sums>) -> tensor<64x128xf32, #sums>
    scf.yield %w : tensor<64x128xf32, #sums>
  }
  return %e : tensor<64x128xf32, #sums>
}
// So they are where a condition leaves them as they were. LLVM then takes no iteration out of it.

// CHECK-LABEL: func.func @product_of_some(
// CHECK: %[[FOR:.*]]:64 = scf.for {{.*}} iter_args(%[[FIRST:[^ ]*]] = %{{[^,]*}},
// CHECK-NOT: vector
// CHECK: %[[IF:.*]]:64 = scf.if
// CHECK: %[[WAIT:.*]] = llvm.inline_asm has_side_effects "{{.*}}// wait{{.*}}"{{.*}} %[[FIRST]],
// CHECK: %[[NEXT:.*]] = llvm.extractvalue %[[WAIT]][0]
// CHECK: scf.yield %[[NEXT]],
// CHECK: } else {
// CHECK: scf.yield %[[FIRST]],
// CHECK: }
// CHECK: scf.yield %[[IF]]#0, {{.*}}, %[[IF]]#63 :
// CHECK: } {llvm.loop_annotation = #{{.*}}}
// CHECK: vector.from_elements %[[FOR]]#0, {{.*}}, %[[FOR]]#63 : vector<64xf32>
func.func @product_of_some(%n: i32, %some: i1) -> tensor<64x128xf32, #sums> {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zeros = arith.constant dense<0.0> : tensor<64x128xf32, #sums>
  %e = scf.for %k = %c0 to %n step %c1 iter_args(%s = %zeros) -> (tensor<64x128xf32, #sums>) : i32 {
    %r = scf.if %some -> (tensor<64x128xf32, #sums>) {
      %w = "ttng.warp_group_dot_wait"(%s) {pendings = 0 : i32} : (tensor<64x128xf32, #sums>) -> tensor<64x128xf32, #sums>
      scf.yield %w : tensor<64x128xf32, #sums>
    } else {
      scf.yield %s : tensor<64x128xf32, #sums>
    }
    scf.yield %r : tensor<64x128xf32, #sums>
  }
  return %e : tensor<64x128xf32, #sums>
}

// A loop around it carries what the inner one does. Who looks at the sums by another condition has
// a vector of them.

// CHECK-LABEL: func.func @product_in_two_loops(
// CHECK: %[[OUTER:.*]]:64 = scf.for {{.*}} iter_args(%[[FIRST:[^ ]*]] = %{{[^,]*}},
// CHECK-NOT: vector
// CHECK: %[[INNER:.*]]:64 = scf.for {{.*}} iter_args(%{{[^ ]*}} = %[[FIRST]],
// CHECK-NOT: vector
// CHECK: scf.yield %{{.*}}#0, {{.*}}, %{{.*}}#63 :
// CHECK: %[[WAIT:.*]] = llvm.inline_asm has_side_effects "{{.*}}// wait{{.*}}"{{.*}} %[[INNER]]#0,
// CHECK: vector.from_elements %[[OUTER]]#0, {{.*}}, %[[OUTER]]#63 : vector<64xf32>
func.func @product_in_two_loops(%n: i32, %some: i1) -> tensor<64x128xf32, #sums> {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zeros = arith.constant dense<0.0> : tensor<64x128xf32, #sums>
  %e = scf.for %k = %c0 to %n step %c1 iter_args(%s = %zeros) -> (tensor<64x128xf32, #sums>) : i32 {
    %i = scf.for %j = %c0 to %n step %c1 iter_args(%t = %s) -> (tensor<64x128xf32, #sums>) : i32 {
      %r = scf.if %some -> (tensor<64x128xf32, #sums>) {
        %w = "ttng.warp_group_dot_wait"(%t) {pendings = 0 : i32} : (tensor<64x128xf32, #sums>) -> tensor<64x128xf32, #sums>
        scf.yield %w : tensor<64x128xf32, #sums>
      } else {
        scf.yield %t : tensor<64x128xf32, #sums>
      }
      scf.yield %r : tensor<64x128xf32, #sums>
    }
    %o = "ttng.warp_group_dot_wait"(%i) {pendings = 0 : i32} : (tensor<64x128xf32, #sums>) -> tensor<64x128xf32, #sums>
    scf.yield %o : tensor<64x128xf32, #sums>
  }
  return %e : tensor<64x128xf32, #sums>
}

// CHECK-LABEL: func.func @product_that_is_looked_at(
// CHECK: scf.for {{.*}} -> (vector<64xf32>)
func.func @product_that_is_looked_at(%n: i32, %some: i1, %p: !tt.ptr<f32>) -> tensor<64x128xf32, #sums> {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zeros = arith.constant dense<0.0> : tensor<64x128xf32, #sums>
  %ones = arith.constant dense<1.0> : tensor<64x128xf32, #sums>
  %at = "tt.splat"(%p) : (!tt.ptr<f32>) -> tensor<64x128x!tt.ptr<f32>, #sums>
  %e = scf.for %k = %c0 to %n step %c1 iter_args(%s = %zeros) -> (tensor<64x128xf32, #sums>) : i32 {
    %r = scf.if %some -> (tensor<64x128xf32, #sums>) {
      scf.yield %s : tensor<64x128xf32, #sums>
    } else {
      scf.yield %ones : tensor<64x128xf32, #sums>
    }
    "tt.store"(%at, %r) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<64x128x!tt.ptr<f32>, #sums>, tensor<64x128xf32, #sums>) -> ()
    %w = "ttng.warp_group_dot_wait"(%s) {pendings = 0 : i32} : (tensor<64x128xf32, #sums>) -> tensor<64x128xf32, #sums>
    scf.yield %w : tensor<64x128xf32, #sums>
  }
  return %e : tensor<64x128xf32, #sums>
}
}
