// RUN: proton-opt --pipeline='across-control-flow' %s --split-input-file | filecheck %s

// What each turn computes anew is computed ahead of the loop, and a constant goes along branches.
// CHECK-LABEL: func.func @loop
// CHECK: arith.muli
// CHECK: scf.for
// CHECK-NOT: arith.muli
// CHECK: return
func.func @loop(%n: index, %a: i32) -> i32 {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %first = arith.constant 7 : i32
  %sum = scf.for %i = %zero to %n step %one iter_args(%carried = %first) -> (i32) {
    %square = arith.muli %a, %a : i32
    %next = arith.addi %carried, %square : i32
    scf.yield %next : i32
  }
  return %sum : i32
}

// CHECK-LABEL: func.func @branch
// CHECK: %[[SEVEN:.*]] = arith.constant 7 : i32
// CHECK: return %[[SEVEN]]
func.func @branch(%c: i1) -> i32 {
  %seven = arith.constant 7 : i32
  %found = scf.if %c -> (i32) {
    scf.yield %seven : i32
  } else {
    scf.yield %seven : i32
  }
  return %found : i32
}

// -----

// Without control flow nothing is done, although there is something to fold.
// CHECK-LABEL: func.func @straight
// CHECK: arith.addi
func.func @straight() -> i32 {
  %seven = arith.constant 7 : i32
  %sum = arith.addi %seven, %seven : i32
  return %sum : i32
}
