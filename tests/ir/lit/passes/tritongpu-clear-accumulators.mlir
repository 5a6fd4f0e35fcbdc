// RUN: proton-opt --pipeline='tritongpu-clear-accumulators,cse' %s | filecheck %s

#acc = #ttg.linear<[[0, 1], [8, 0], [0, 8], [0, 16], [0, 32]], [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], [[16, 0], [32, 0]], []>
#k_major = #ttg.shared<[[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
!memory = !ttg.memdesc<[64, 64], f16, #k_major>
!sum = tensor<64x64xf32, #acc>
module attributes {"ttg.num-warps" = 4 : i32} {
func.func private @take(!sum)

// One loop over all tiles: a branch takes the accumulator, which is zero in the next iteration.
// The loop may end anywhere.

// CHECK-LABEL: func.func @behind(
// CHECK: %[[ANY:.*]] = ub.poison
// CHECK: %[[R:.*]]:2 = scf.for {{.*}} iter_args(%[[ACC:.*]] = %[[ANY]], %[[ADDS:.*]] = %false)
// CHECK: %[[D:.*]] = "ttng.warp_group_dot"(%{{.*}}, %{{.*}}, %[[ACC]], %[[ADDS]])
// CHECK: %[[W:.*]] = "ttng.warp_group_dot_wait"(%[[D]])
// CHECK: %[[LAST:.*]] = arith.cmpi eq
// CHECK-NEXT: scf.if %[[LAST]]
// CHECK-NEXT: %[[IN:.*]] = "ttng.warp_group_dot_wait"(%[[W]]) {pendings = 0 : i32}
// CHECK-NEXT: call @take(%[[IN]])
// CHECK-NEXT: call @take(%[[IN]])
// CHECK: %[[MORE:.*]] = arith.xori %[[LAST]], %true
// CHECK-NEXT: scf.yield %[[W]], %[[MORE]]
// CHECK: %[[Z:.*]] = scf.if %[[R]]#1
// CHECK-NEXT: scf.yield %[[R]]#0
// CHECK: "ttng.zeros"()
// CHECK: return %[[Z]]
func.func @behind(%a: !memory, %b: !memory, %n: i32, %m: i32) -> !sum {
  %zero = arith.constant dense<0.0> : !sum
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> !sum : i32 {
    %d = "ttng.warp_group_dot"(%a, %b, %acc) {imprecise = 0 : i32, operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (!memory, !memory, !sum) -> !sum
    %e = "ttng.warp_group_dot_wait"(%d) {pendings = 0 : i32} : (!sum) -> !sum
    %last = arith.cmpi eq, %i, %m : i32
    %next = arith.select %last, %zero, %e : !sum
    scf.if %last {
      func.call @take(%e) : (!sum) -> ()
      func.call @take(%e) : (!sum) -> ()
    }
    scf.yield %next : !sum
  }
  return %r : !sum
}

// A tensor of one condition, chosen the other way around, and sums that do not begin at zero.

// CHECK-LABEL: func.func @begun(
// CHECK: scf.for {{.*}} iter_args(%[[ACC:.*]] = %arg4, %[[ADDS:.*]] = %true)
// CHECK: "ttng.warp_group_dot"(%{{.*}}, %{{.*}}, %[[ACC]], %[[ADDS]])
// CHECK: %[[W:.*]] = "ttng.warp_group_dot_wait"
// CHECK: %[[MORE:.*]] = arith.cmpi ne
// CHECK-NOT: arith.select
// CHECK: scf.yield %[[W]], %[[MORE]]
func.func @begun(%a: !memory, %b: !memory, %n: i32, %m: i32, %start: !sum) {
  %zero = arith.constant dense<0.0> : !sum
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %start) -> !sum : i32 {
    %d = "ttng.warp_group_dot"(%a, %b, %acc) {imprecise = 0 : i32, operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (!memory, !memory, !sum) -> !sum
    %e = "ttng.warp_group_dot_wait"(%d) {pendings = 0 : i32} : (!sum) -> !sum
    %more = arith.cmpi ne, %i, %m : i32
    %all = "tt.splat"(%more) : (i1) -> tensor<64x64xi1, #acc>
    %next = arith.select %all, %e, %zero : tensor<64x64xi1, #acc>, !sum
    scf.yield %next : !sum
  }
  return
}

// Cleared ahead of the dot, and where a product is asked for first.

// CHECK-LABEL: func.func @ahead(
// CHECK: scf.for {{.*}} iter_args(%[[ACC:.*]] = %{{.*}}) ->
// CHECK: %[[FIRST:.*]] = arith.cmpi eq
// CHECK: %[[ADDS:.*]] = arith.xori %[[FIRST]], %true
// CHECK-NEXT: "ttng.warp_group_dot"(%{{.*}}, %{{.*}}, %[[ACC]], %[[ADDS]])
// CHECK-NOT: arith.select
// CHECK: return
func.func @ahead(%a: !memory, %b: !memory, %n: i32, %m: i32) -> !sum {
  %zero = arith.constant dense<0.0> : !sum
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> !sum : i32 {
    %first = arith.cmpi eq, %i, %m : i32
    %old = arith.select %first, %zero, %acc : !sum
    %d = "ttng.warp_group_dot"(%a, %b, %old) {imprecise = 0 : i32, operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (!memory, !memory, !sum) -> !sum
    %e = "ttng.warp_group_dot_wait"(%d) {pendings = 0 : i32} : (!sum) -> !sum
    scf.yield %e : !sum
  }
  return %r : !sum
}

// What something else takes, what threads add up, and other values than zero stay as they are.

// CHECK-LABEL: func.func @stays(
// CHECK: %[[R:.*]]:3 = scf.for
// CHECK-COUNT-3: "ttng.warp_group_dot"({{[^,]*}}, {{[^,]*}}, {{[^,)]*}})
// CHECK-COUNT-3: arith.select
// CHECK: return
func.func @stays(%a: !memory, %b: !memory, %n: i32, %m: i32) {
  %zero = arith.constant dense<0.0> : !sum
  %one = arith.constant dense<1.0> : !sum
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r:3 = scf.for %i = %c0 to %n step %c1 iter_args(%x = %zero, %y = %zero, %z = %zero) -> (!sum, !sum, !sum) : i32 {
    %last = arith.cmpi eq, %i, %m : i32
    func.call @take(%x) : (!sum) -> ()
    %xd = "ttng.warp_group_dot"(%a, %b, %x) {imprecise = 0 : i32, operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (!memory, !memory, !sum) -> !sum
    %xe = "ttng.warp_group_dot_wait"(%xd) {pendings = 0 : i32} : (!sum) -> !sum
    %yd = "ttng.warp_group_dot"(%a, %b, %y) {imprecise = 32 : i32, operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (!memory, !memory, !sum) -> !sum
    %ye = "ttng.warp_group_dot_wait"(%yd) {pendings = 0 : i32} : (!sum) -> !sum
    %zd = "ttng.warp_group_dot"(%a, %b, %z) {imprecise = 0 : i32, operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (!memory, !memory, !sum) -> !sum
    %ze = "ttng.warp_group_dot_wait"(%zd) {pendings = 0 : i32} : (!sum) -> !sum
    %xn = arith.select %last, %zero, %xe : !sum
    %yn = arith.select %last, %zero, %ye : !sum
    %zn = arith.select %last, %one, %ze : !sum
    scf.yield %xn, %yn, %zn : !sum, !sum, !sum
  }
  return
}
}
