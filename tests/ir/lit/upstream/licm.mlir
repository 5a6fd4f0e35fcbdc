// RUN: proton-opt %s --pipeline=loop-invariant-code-motion | filecheck %s
// Invariant arithmetic leaves the loop; a load, which might trap, and a record stay. The splat
// stays, too: the bindings have no way to declare an op speculatable.

// CHECK-LABEL: func.func @invariant
// CHECK: arith.mulf
// CHECK: scf.for
// CHECK: "proton.record"
// CHECK: "tt.splat"
// CHECK: "tt.load"
func.func @invariant(%p: tensor<4x!tt.ptr<f32>>, %x: f32, %n: i32) -> tensor<4xf32> {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %init = arith.constant dense<0.0> : tensor<4xf32>
  %r = scf.for %i = %zero to %n step %one iter_args(%acc = %init) -> (tensor<4xf32>) : i32 {
    "proton.record"() {scope = "s", phase = "start", names = [], kinds = [], operandSegmentSizes = array<i32: 0, 0>} : () -> ()
    %y = arith.mulf %x, %x : f32
    %s = "tt.splat"(%y) : (f32) -> tensor<4xf32>
    %v = "tt.load"(%p) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<4x!tt.ptr<f32>>) -> tensor<4xf32>
    %a = arith.addf %v, %s : tensor<4xf32>
    %b = arith.addf %acc, %a : tensor<4xf32>
    scf.yield %b : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}
