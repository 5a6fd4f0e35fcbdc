// RUN: proton-opt --pipeline='triton-to-structured,canonicalize,cse' %s | filecheck %s

// Pointers that go from loop to loop are one index all the way.

// CHECK-LABEL: func.func @nested_loops(
// CHECK-SAME: %[[P:arg0]]: !tt.ptr<f32>, %[[N:arg1]]: i32, %[[STEP:arg2]]: i32
// CHECK-DAG: %[[C0:.*]] = arith.constant 0 : index
// CHECK-DAG: %[[C1:.*]] = arith.constant 1 : index
// CHECK-DAG: %[[C8:.*]] = arith.constant 8 : index
// CHECK: %[[E:.*]] = scf.for {{.*}} iter_args(%[[OUTER:.*]] = %[[C0]]) -> (index)
// CHECK-NEXT: %[[F:.*]] = scf.for {{.*}} iter_args(%[[INNER:.*]] = %[[OUTER]]) -> (index)
// CHECK-NEXT: %[[B:.*]] = "tt.addptr"(%[[P]], %[[INNER]])
// CHECK-NEXT: %[[Q:.*]] = "tts.make_tptr"(%[[B]], %[[C1]], %[[C0]])
// CHECK-NEXT: "tts.load"(%[[Q]])
// CHECK-NEXT: "tts.store"(%[[Q]],
// CHECK-NEXT: %[[NEXT:.*]] = arith.addi %[[INNER]], %[[C8]] : index
// CHECK-NEXT: scf.yield %[[NEXT]] : index
// CHECK: %[[S:.*]] = arith.index_cast %[[STEP]] : i32 to index
// CHECK-NEXT: %[[NEXT2:.*]] = arith.addi %[[F]], %[[S]] : index
// CHECK-NEXT: scf.yield %[[NEXT2]] : index
// CHECK: %[[LAST:.*]] = arith.addi %[[E]], %[[C8]] : index
// CHECK-NEXT: %[[B2:.*]] = "tt.addptr"(%[[P]], %[[LAST]])
// CHECK-NEXT: "tts.make_tptr"(%[[B2]], %[[C1]], %[[C0]])
func.func @nested_loops(%p: !tt.ptr<f32>, %n: i32, %step: i32) attributes {tt.kernel} {
  %r = "tt.make_range"() {start = 0 : i32, end = 8 : i32} : () -> tensor<8xi32>
  %ps = "tt.splat"(%p) : (!tt.ptr<f32>) -> tensor<8x!tt.ptr<f32>>
  %q0 = "tt.addptr"(%ps, %r) : (tensor<8x!tt.ptr<f32>>, tensor<8xi32>) -> tensor<8x!tt.ptr<f32>>
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %st = "tt.splat"(%step) : (i32) -> tensor<8xi32>
  %k = arith.constant dense<8> : tensor<8xi32>
  %e = scf.for %i = %c0 to %n step %c1 iter_args(%q1 = %q0) -> (tensor<8x!tt.ptr<f32>>) : i32 {
    %f = scf.for %j = %c0 to %n step %c1 iter_args(%q = %q1) -> (tensor<8x!tt.ptr<f32>>) : i32 {
      %x = "tt.load"(%q) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<8x!tt.ptr<f32>>) -> tensor<8xf32>
      "tt.store"(%q, %x) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<8x!tt.ptr<f32>>, tensor<8xf32>) -> ()
      %next = "tt.addptr"(%q, %k) : (tensor<8x!tt.ptr<f32>>, tensor<8xi32>) -> tensor<8x!tt.ptr<f32>>
      scf.yield %next : tensor<8x!tt.ptr<f32>>
    }
    %next = "tt.addptr"(%f, %st) : (tensor<8x!tt.ptr<f32>>, tensor<8xi32>) -> tensor<8x!tt.ptr<f32>>
    scf.yield %next : tensor<8x!tt.ptr<f32>>
  }
  %q = "tt.addptr"(%e, %k) : (tensor<8x!tt.ptr<f32>>, tensor<8xi32>) -> tensor<8x!tt.ptr<f32>>
  %x = "tt.load"(%q) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<8x!tt.ptr<f32>>) -> tensor<8xf32>
  "tt.store"(%q, %x) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<8x!tt.ptr<f32>>, tensor<8xf32>) -> ()
  return
}

// So are integers, cut to their width at every loop: an inner loop starts from the cut one.

// CHECK-LABEL: func.func @nested_integers(
// CHECK-SAME: %[[P:arg0]]: !tt.ptr<f32>
// CHECK-DAG: %[[C0:.*]] = arith.constant 0 : index
// CHECK-DAG: %[[C1:.*]] = arith.constant 1 : index
// CHECK-DAG: %[[C8:.*]] = arith.constant 8 : index
// CHECK: scf.for {{.*}} iter_args(%[[OUTER:.*]] = %[[C0]]) -> (index)
// CHECK-NEXT: %[[CUT:.*]] = arith.index_cast %[[OUTER]] : index to i32
// CHECK-NEXT: %[[O:.*]] = arith.index_cast %[[CUT]] : i32 to index
// CHECK-NEXT: scf.for {{.*}} iter_args(%[[INNER:.*]] = %[[O]]) -> (index)
// CHECK-NEXT: %[[CUT2:.*]] = arith.index_cast %[[INNER]] : index to i32
// CHECK-NEXT: %[[I:.*]] = arith.index_cast %[[CUT2]] : i32 to index
// CHECK-NEXT: %[[B:.*]] = "tt.addptr"(%[[P]], %[[I]])
// CHECK-NEXT: %[[Q:.*]] = "tts.make_tptr"(%[[B]], %[[C1]], %[[C0]])
// CHECK-NEXT: "tts.load"(%[[Q]])
// CHECK-NEXT: "tts.store"(%[[Q]],
// CHECK-NEXT: %[[NEXT:.*]] = arith.addi %[[I]], %[[C8]] : index
// CHECK-NEXT: scf.yield %[[NEXT]] : index
// CHECK-NEXT: }
// CHECK-NEXT: %[[NEXT2:.*]] = arith.addi %[[O]], %[[C8]] : index
// CHECK-NEXT: scf.yield %[[NEXT2]] : index
func.func @nested_integers(%p: !tt.ptr<f32>, %n: i32, %m: i32) attributes {tt.kernel} {
  %r = "tt.make_range"() {start = 0 : i32, end = 8 : i32} : () -> tensor<8xi32>
  %ps = "tt.splat"(%p) : (!tt.ptr<f32>) -> tensor<8x!tt.ptr<f32>>
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %k = arith.constant dense<8> : tensor<8xi32>
  %e = scf.for %i = %c0 to %n step %c1 iter_args(%o = %r) -> (tensor<8xi32>) : i32 {
    %f = scf.for %j = %c0 to %m step %c1 iter_args(%u = %o) -> (tensor<8xi32>) : i32 {
      %q = "tt.addptr"(%ps, %u) : (tensor<8x!tt.ptr<f32>>, tensor<8xi32>) -> tensor<8x!tt.ptr<f32>>
      %x = "tt.load"(%q) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<8x!tt.ptr<f32>>) -> tensor<8xf32>
      "tt.store"(%q, %x) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<8x!tt.ptr<f32>>, tensor<8xf32>) -> ()
      %v = arith.addi %u, %k : tensor<8xi32>
      scf.yield %v : tensor<8xi32>
    }
    %g = arith.addi %o, %k : tensor<8xi32>
    scf.yield %g : tensor<8xi32>
  }
  return
}
