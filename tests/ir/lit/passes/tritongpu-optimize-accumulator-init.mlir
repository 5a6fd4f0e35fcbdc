// RUN: proton-opt --pipeline='tritongpu-optimize-accumulator-init' %s | filecheck %s

// Sums that begin at zero are overwritten by the first product of the loop. Where there is none, they
// are zeroed in a branch of its own.

#acc = #ttg.linear<[[0, 1], [8, 0], [0, 8], [0, 16], [0, 32]], [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], [[16, 0], [32, 0]], []>
#k_major = #ttg.shared<[[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
!memory = !ttg.memdesc<[64, 64], f16, #k_major>
!sum = tensor<64x64xf32, #acc>
module attributes {"ttg.num-warps" = 4 : i32} {

// CHECK-LABEL: func.func @pipelined(
// CHECK: %[[ANY:.*]] = ub.poison
// CHECK: %[[R:.*]] = scf.for %[[I:.*]] = %[[LOWER:.*]] to %[[UPPER:.*]] step {{.*}} iter_args(%[[ACC:.*]] = %[[ANY]])
// CHECK: %[[ADDS:.*]] = arith.cmpi ne, %[[I]], %[[LOWER]]
// CHECK-NEXT: "ttng.warp_group_dot"(%{{.*}}, %{{.*}}, %[[ACC]], %[[ADDS]]) {{.*}} array<i32: 1, 1, 1, 1>
// CHECK: %[[S:.*]] = "ttng.warp_group_dot_wait"(%[[R]]) {pendings = 0 : i32}
// CHECK-NEXT: %[[RAN:.*]] = arith.cmpi slt, %[[LOWER]], %[[UPPER]]
// CHECK-NEXT: %[[T:.*]] = scf.if %[[RAN]]
// CHECK-NEXT: scf.yield %[[S]]
// CHECK-NEXT: } else {
// CHECK-NEXT: %[[Z:.*]] = "ttng.zeros"()
// CHECK-NEXT: scf.yield %[[Z]]
// CHECK: return %[[T]]
func.func @pipelined(%a: !memory, %b: !memory, %lower: i32, %upper: i32, %step: i32) -> !sum {
  %zero = arith.constant dense<0.0> : !sum
  %r = scf.for %i = %lower to %upper step %step iter_args(%acc = %zero) -> !sum : i32 {
    %d = "ttng.warp_group_dot"(%a, %b, %acc) {imprecise = 0 : i32, operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (!memory, !memory, !sum) -> !sum
    %e = "ttng.warp_group_dot_wait"(%d) {pendings = 1 : i32} : (!sum) -> !sum
    scf.yield %e : !sum
  }
  %s = "ttng.warp_group_dot_wait"(%r) {pendings = 0 : i32} : (!sum) -> !sum
  return %s : !sum
}

// A loop that is known to run needs no zeros at all.

// CHECK-LABEL: func.func @runs(
// CHECK: %[[R:.*]] = scf.for
// CHECK-NOT: scf.if
// CHECK: return %[[R]]
func.func @runs(%a: !memory, %b: !memory) -> !sum {
  %zero = arith.constant dense<0.0> : !sum
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c8 = arith.constant 8 : i32
  %r = scf.for %i = %c0 to %c8 step %c1 iter_args(%acc = %zero) -> !sum : i32 {
    %d = "ttng.warp_group_dot"(%a, %b, %acc) {imprecise = 0 : i32, operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (!memory, !memory, !sum) -> !sum
    %e = "ttng.warp_group_dot_wait"(%d) {pendings = 0 : i32} : (!sum) -> !sum
    scf.yield %e : !sum
  }
  return %r : !sum
}

// Sums that do not begin at zero, that something else reads, or that are added up outside of the
// instruction, stay as they are.

// CHECK-LABEL: func.func @stays(
// CHECK-NOT: ub.poison
// CHECK-NOT: arith.cmpi
// CHECK: return
func.func @stays(%a: !memory, %b: !memory, %lower: i32, %upper: i32, %step: i32, %start: !sum) -> (!sum, !sum, !sum) {
  %zero = arith.constant dense<0.0> : !sum
  %r:3 = scf.for %i = %lower to %upper step %step iter_args(%x = %start, %y = %zero, %z = %zero) -> (!sum, !sum, !sum) : i32 {
    %d = "ttng.warp_group_dot"(%a, %b, %x) {imprecise = 0 : i32, operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (!memory, !memory, !sum) -> !sum
    %e = "ttng.warp_group_dot_wait"(%d) {pendings = 0 : i32} : (!sum) -> !sum
    %half = arith.mulf %y, %y : !sum
    %f = "ttng.warp_group_dot"(%a, %b, %y) {imprecise = 0 : i32, operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (!memory, !memory, !sum) -> !sum
    %g = "ttng.warp_group_dot_wait"(%f) {pendings = 0 : i32} : (!sum) -> !sum
    %h = arith.addf %g, %half : !sum
    %j = "ttng.warp_group_dot"(%a, %b, %z) {imprecise = 32 : i32, operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (!memory, !memory, !sum) -> !sum
    %k = "ttng.warp_group_dot_wait"(%j) {pendings = 0 : i32} : (!sum) -> !sum
    scf.yield %e, %h, %k : !sum, !sum, !sum
  }
  return %r#0, %r#1, %r#2 : !sum, !sum, !sum
}
}
