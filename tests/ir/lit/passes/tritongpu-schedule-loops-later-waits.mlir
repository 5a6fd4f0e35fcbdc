// RUN: proton-opt --pipeline='tritongpu-schedule-loops{num-stages=1 target=cuda:90}' %s | filecheck %s

#acc = #ttg.linear<[[0, 1], [8, 0], [0, 8], [0, 16], [0, 32]], [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], [[16, 0], [32, 0]], []>
#block = #ttg.linear<[[4, 0], [8, 0], [16, 0], [32, 0], [0, 32]], [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16]], [[1, 0], [2, 0]], []>
#k_major = #ttg.shared<[[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
!memory = !ttg.memdesc<[64, 64], f16, #k_major>
!sum = tensor<64x64xf32, #acc>
!pointers = tensor<64x64x!tt.ptr<f16>, #block>
!values = tensor<64x64xf16, #block>
module attributes {"ttg.num-warps" = 4 : i32} {

// What is loaded waits in registers until the product before has read its operands. Their memory is
// in use when the next iteration begins: it is made ahead of the loop.

// CHECK-LABEL: func.func @loads(
// CHECK: %[[B:.*]] = "ttg.local_alloc"(%arg1)
// CHECK: %[[M:.*]] = "ttg.local_reserve"() : () -> !ttg.mutable_memdesc<[64, 64], f16, {{.*}}
// CHECK: %[[R:.*]] = scf.for {{.*}} iter_args(%[[ACC:.*]] = %arg2)
// CHECK-NEXT: %[[A:.*]] = "tt.load"
// CHECK-NEXT: %[[S:.*]] = "ttng.warp_group_dot_wait"(%[[ACC]]) {pendings = 0 : i32}
// CHECK-NEXT: "ttg.local_store"(%[[A]], %[[M]])
// CHECK-NEXT: %[[E:.*]] = "ttng.warp_group_dot"(%[[M]], %[[B]], %[[S]])
// CHECK-NEXT: scf.yield %[[E]]
// CHECK: %[[D:.*]] = "ttng.warp_group_dot_wait"(%[[R]]) {pendings = 0 : i32}
// CHECK-NEXT: return %[[D]]
func.func @loads(%p: !pointers, %v: !values, %sum: !sum, %n: i32) -> !sum {
  %b = "ttg.local_alloc"(%v) : (!values) -> !memory
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %sum) -> !sum : i32 {
    %a = "tt.load"(%p) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (!pointers) -> !values
    %m = "ttg.local_alloc"(%a) : (!values) -> !memory
    %e = "ttng.warp_group_dot"(%m, %b, %acc) {imprecise = 0 : i32, operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (!memory, !memory, !sum) -> !sum
    %d = "ttng.warp_group_dot_wait"(%e) {pendings = 0 : i32} : (!sum) -> !sum
    scf.yield %d : !sum
  }
  return %r : !sum
}

// Nothing is deferred where the loop itself reads the sums.

// CHECK-LABEL: func.func @read(
// CHECK: scf.for
// CHECK: "ttg.local_alloc"
// CHECK-NEXT: %[[E:.*]] = "ttng.warp_group_dot"
// CHECK-NEXT: "ttng.warp_group_dot_wait"(%[[E]])
func.func @read(%p: !pointers, %v: !values, %sum: !sum, %n: i32) -> !sum {
  %b = "ttg.local_alloc"(%v) : (!values) -> !memory
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %sum) -> !sum : i32 {
    %a = "tt.load"(%p) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (!pointers) -> !values
    %m = "ttg.local_alloc"(%a) : (!values) -> !memory
    %e = "ttng.warp_group_dot"(%m, %b, %acc) {imprecise = 0 : i32, operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (!memory, !memory, !sum) -> !sum
    %d = "ttng.warp_group_dot_wait"(%e) {pendings = 0 : i32} : (!sum) -> !sum
    %x = math.exp2 %d : !sum
    scf.yield %x : !sum
  }
  return %r : !sum
}

// Two dots whose operands are stored go on until then, the first one as long as the second is ahead.

// CHECK-LABEL: func.func @two(
// CHECK: scf.for {{.*}} iter_args(%[[X:.*]] = %arg2, %[[Y:.*]] = %arg2)
// CHECK-NEXT: %[[A:.*]] = "tt.load"
// CHECK-NEXT: %[[S:.*]] = "ttng.warp_group_dot_wait"(%[[X]]) {pendings = 1 : i32}
// CHECK-NEXT: %[[T:.*]] = "ttng.warp_group_dot_wait"(%[[Y]]) {pendings = 0 : i32}
// CHECK-NEXT: "ttg.local_store"(%[[A]],
// CHECK-NEXT: %[[E:.*]] = "ttng.warp_group_dot"({{.*}}, %[[S]])
// CHECK-NEXT: %[[F:.*]] = "ttng.warp_group_dot"({{.*}}, %[[T]])
// CHECK-NEXT: scf.yield %[[E]], %[[F]]
// CHECK-COUNT-2: "ttng.warp_group_dot_wait"({{.*}}) {pendings = 0 : i32}
// CHECK: return
func.func @two(%p: !pointers, %v: !values, %sum: !sum, %n: i32) -> (!sum, !sum) {
  %b = "ttg.local_alloc"(%v) : (!values) -> !memory
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%x = %sum, %y = %sum) -> (!sum, !sum) : i32 {
    %a = "tt.load"(%p) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (!pointers) -> !values
    %m = "ttg.local_alloc"(%a) : (!values) -> !memory
    %e = "ttng.warp_group_dot"(%m, %b, %x) {imprecise = 0 : i32, operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (!memory, !memory, !sum) -> !sum
    %f = "ttng.warp_group_dot"(%b, %m, %y) {imprecise = 0 : i32, operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (!memory, !memory, !sum) -> !sum
    %s = "ttng.warp_group_dot_wait"(%e) {pendings = 0 : i32} : (!sum) -> !sum
    %t = "ttng.warp_group_dot_wait"(%f) {pendings = 0 : i32} : (!sum) -> !sum
    scf.yield %s, %t : !sum, !sum
  }
  return %r#0, %r#1 : !sum, !sum
}

// Without a load ahead there is nothing to be gained.

// CHECK-LABEL: func.func @no_load(
// CHECK: scf.for
// CHECK-NEXT: "ttg.local_alloc"
// CHECK: "ttng.warp_group_dot_wait"
// CHECK-NEXT: scf.yield
func.func @no_load(%a: !values, %v: !values, %sum: !sum, %n: i32) -> !sum {
  %b = "ttg.local_alloc"(%v) : (!values) -> !memory
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %sum) -> !sum : i32 {
    %m = "ttg.local_alloc"(%a) : (!values) -> !memory
    %e = "ttng.warp_group_dot"(%m, %b, %acc) {imprecise = 0 : i32, operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (!memory, !memory, !sum) -> !sum
    %d = "ttng.warp_group_dot_wait"(%e) {pendings = 0 : i32} : (!sum) -> !sum
    scf.yield %d : !sum
  }
  return %r : !sum
}

// Memory that others may write while a product reads it.

// CHECK-LABEL: func.func @others(
// CHECK: "ttng.warp_group_dot"
// CHECK-NEXT: "ttng.warp_group_dot_wait"
// CHECK-NEXT: "ttg.local_store"
// CHECK-NEXT: scf.yield
func.func @others(%p: !pointers, %b: !ttg.mutable_memdesc<[64, 64], f16, #k_major>, %sum: !sum, %n: i32) -> !sum {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %sum) -> !sum : i32 {
    %a = "tt.load"(%p) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (!pointers) -> !values
    %m = "ttg.local_alloc"(%a) : (!values) -> !memory
    %e = "ttng.warp_group_dot"(%m, %b, %acc) {imprecise = 0 : i32, operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (!memory, !ttg.mutable_memdesc<[64, 64], f16, #k_major>, !sum) -> !sum
    %d = "ttng.warp_group_dot_wait"(%e) {pendings = 0 : i32} : (!sum) -> !sum
    "ttg.local_store"(%a, %b) : (!values, !ttg.mutable_memdesc<[64, 64], f16, #k_major>) -> ()
    scf.yield %d : !sum
  }
  return %r : !sum
}

// The registers of a product under way stay where they are: no branch and no call comes meanwhile.

// CHECK-LABEL: func.func @branch(
// CHECK: scf.for
// CHECK: "ttng.warp_group_dot_wait"
// CHECK-NEXT: scf.yield
// CHECK-NEXT: }
func.func @branch(%p: !pointers, %v: !values, %sum: !sum, %n: i32, %which: i1) -> !sum {
  %b = "ttg.local_alloc"(%v) : (!values) -> !memory
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %sum) -> !sum : i32 {
    %l = "tt.load"(%p) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (!pointers) -> !values
    %a = scf.if %which -> !values {
      %x = math.exp2 %l : !values
      scf.yield %x : !values
    } else {
      scf.yield %l : !values
    }
    %m = "ttg.local_alloc"(%a) : (!values) -> !memory
    %e = "ttng.warp_group_dot"(%m, %b, %acc) {imprecise = 0 : i32, operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (!memory, !memory, !sum) -> !sum
    %d = "ttng.warp_group_dot_wait"(%e) {pendings = 0 : i32} : (!sum) -> !sum
    scf.yield %d : !sum
  }
  return %r : !sum
}
}
