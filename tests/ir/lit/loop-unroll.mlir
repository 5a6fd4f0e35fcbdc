// RUN: proton-opt --pipeline='tt-loop-unroll' %s | filecheck %s
// RUN: proton-opt --pipeline='tt-loop-unroll' --debuginfo %s | filecheck %s --check-prefix=LOC

// CHECK-LABEL: func.func @a_known_multiple_needs_no_second_loop
// CHECK-DAG: %[[LOWER:.*]] = arith.constant 0 : i32
// CHECK-DAG: %[[UPPER:.*]] = arith.constant 7 : i32
// CHECK-DAG: %[[STEP:.*]] = arith.constant 2 : i32
// CHECK: %[[GROUP:.*]] = arith.muli %[[STEP]], %{{.*}} : i32
// CHECK-NEXT: %[[R:.*]]:2 = scf.for %[[I:.*]] = %[[LOWER]] to %[[UPPER]] step %[[GROUP]] iter_args(%[[A:.*]] = %arg0, %[[B:.*]] = %arg1) -> (i32, i32) : i32 {
// CHECK-NEXT: %[[X:.*]] = arith.addi %[[A]], %[[I]] : i32
// CHECK-NEXT: %[[J:.*]] = arith.addi %[[I]], %[[STEP]] : i32
// CHECK-NEXT: %[[Y:.*]] = arith.addi %[[B]], %[[J]] : i32
// CHECK-NEXT: scf.yield %[[X]], %[[Y]] : i32, i32
// CHECK-NEXT: }
// CHECK-NOT: loop_unroll_factor
// CHECK-NEXT: return %[[R]]#0, %[[R]]#1
// LOC-LABEL: func.func @a_known_multiple_needs_no_second_loop
// LOC: scf.for
// LOC-NEXT: arith.addi {{.*}} loc(#[[BODY:.*]])
// LOC-NEXT: arith.addi {{.*}} loc(#[[LOOP:.*]])
// LOC-NEXT: arith.addi {{.*}} loc(#[[BODY]])
// LOC: } loc(#[[LOOP]])
func.func @a_known_multiple_needs_no_second_loop(%x: i32, %y: i32) -> (i32, i32) {
  %c0 = arith.constant 0 : i32
  %c7 = arith.constant 7 : i32
  %c2 = arith.constant 2 : i32
  %r:2 = scf.for %i = %c0 to %c7 step %c2 iter_args(%a = %x, %b = %y) -> (i32, i32) : i32 {
    %s = arith.addi %a, %i : i32 loc("scope:body")
    scf.yield %b, %s : i32, i32
  } {tt.loop_unroll_factor = 2 : i32} loc("scope:loop")
  return %r#0, %r#1 : i32, i32
}

// CHECK-LABEL: func.func @a_second_loop_runs_the_rest
// CHECK-SAME: (%[[P:.*]]: !tt.ptr<i32>, %[[LOWER:.*]]: i32, %[[UPPER:.*]]: i32, %[[STEP:.*]]: i32)
// CHECK: %[[FOUR:.*]] = arith.constant 4 : i32
// CHECK: %[[GROUP:.*]] = arith.muli %[[STEP]], %[[FOUR]] : i32
// CHECK: %[[END:.*]] = arith.maxsi %[[LOWER]], %[[UPPER]] : i32
// CHECK: %[[WAY:.*]] = arith.subi %[[END]], %[[LOWER]] : i32
// CHECK: %[[TRIPS:.*]] = arith.divui %{{.*}}, %[[STEP]] : i32
// CHECK: %[[REST:.*]] = arith.remui %[[TRIPS]], %{{.*}} : i32
// CHECK: %[[SPLIT:.*]] = arith.addi %[[LOWER]], %{{.*}} : i32
// CHECK: %[[M:.*]] = scf.for %{{.*}} = %[[LOWER]] to %[[SPLIT]] step %[[GROUP]] iter_args(%{{.*}} = %[[P]])
// CHECK-NEXT: "tt.store"
// CHECK-NEXT: "tt.addptr"
// CHECK-NEXT: arith.addi
// CHECK-NEXT: "tt.store"
// CHECK-NEXT: "tt.addptr"
// CHECK-NEXT: arith.addi
// CHECK-NEXT: "tt.store"
// CHECK-NEXT: "tt.addptr"
// CHECK-NEXT: arith.addi
// CHECK-NEXT: "tt.store"
// CHECK-NEXT: "tt.addptr"
// CHECK: scf.yield
// CHECK: %[[R:.*]] = scf.for %{{.*}} = %[[SPLIT]] to %[[UPPER]] step %[[STEP]] iter_args(%{{.*}} = %[[M]])
// CHECK-NEXT: "tt.store"
// CHECK-NEXT: "tt.addptr"
// CHECK: scf.yield
// CHECK: return %[[R]]
func.func @a_second_loop_runs_the_rest(%p: !tt.ptr<i32>, %lower: i32, %upper: i32, %step: i32) -> !tt.ptr<i32> {
  %r = scf.for %i = %lower to %upper step %step iter_args(%q = %p) -> !tt.ptr<i32> : i32 {
    "tt.store"(%q, %i) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>} : (!tt.ptr<i32>, i32) -> ()
    %n = "tt.addptr"(%q, %step) : (!tt.ptr<i32>, i32) -> !tt.ptr<i32>
    scf.yield %n : !tt.ptr<i32>
  } {tt.loop_unroll_factor = 4 : i32, tt.num_stages = 3 : i32}
  return %r : !tt.ptr<i32>
}

// CHECK-LABEL: func.func @a_known_rest_is_a_second_loop
// CHECK: scf.for
// CHECK-NEXT: "tt.store"
// CHECK-NEXT: arith.addi
// CHECK-NEXT: "tt.store"
// CHECK-NEXT: }
// CHECK: scf.for
// CHECK-NEXT: "tt.store"
// CHECK-NEXT: }
// CHECK: return
func.func @a_known_rest_is_a_second_loop(%p: !tt.ptr<index>) {
  %c0 = arith.constant 0 : index
  %c5 = arith.constant 5 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %c5 step %c1 {
    "tt.store"(%p, %i) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>} : (!tt.ptr<index>, index) -> ()
  } {tt.loop_unroll_factor = 2 : i32}
  return
}

// CHECK-LABEL: func.func @an_unsigned_loop_has_an_unsigned_way
// CHECK: arith.maxui
// CHECK: scf.for unsigned
// CHECK: scf.for unsigned
func.func @an_unsigned_loop_has_an_unsigned_way(%p: !tt.ptr<i32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  scf.for unsigned %i = %c0 to %n step %c1 : i32 {
    "tt.store"(%p, %i) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>} : (!tt.ptr<i32>, i32) -> ()
  } {tt.loop_unroll_factor = 2 : i32}
  return
}

// CHECK-LABEL: func.func @known_bounds_without_a_sign_are_not_negative
// CHECK: scf.for unsigned
// CHECK-NEXT: "tt.store"
// CHECK-NEXT: arith.addi
// CHECK-NEXT: "tt.store"
func.func @known_bounds_without_a_sign_are_not_negative(%p: !tt.ptr<i32>) {
  %c0 = arith.constant 0 : i32
  %large = arith.constant -6 : i32
  %c1 = arith.constant 1 : i32
  scf.for unsigned %i = %c0 to %large step %c1 : i32 {
    "tt.store"(%p, %i) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>} : (!tt.ptr<i32>, i32) -> ()
  } {tt.loop_unroll_factor = 2 : i32}
  return
}

// CHECK-LABEL: func.func @regions_are_copied_and_inner_loops_are_unrolled_first
// CHECK: scf.for %[[I:.*]] = %arg1
// CHECK-NEXT: scf.if
// CHECK: scf.for %[[K:.*]] =
// CHECK: "tt.store"(%arg0, %[[I]])
// CHECK: "tt.store"(%arg0, %[[I]])
// CHECK: "tt.store"(%arg0, %[[I]])
// CHECK: } else {
// CHECK: %[[J:.*]] = arith.addi %[[I]], %{{.*}} : i32
// CHECK-NEXT: scf.if
// CHECK: scf.for
// CHECK: "tt.store"(%arg0, %[[J]])
// CHECK: "tt.store"(%arg0, %[[J]])
// CHECK: "tt.store"(%arg0, %[[J]])
// CHECK: } else {
// CHECK: scf.for
// CHECK-NOT: loop_unroll_factor
// CHECK: return
func.func @regions_are_copied_and_inner_loops_are_unrolled_first(%p: !tt.ptr<i32>, %m: i32, %n: i32, %c: i1) {
  %c1 = arith.constant 1 : i32
  %c3 = arith.constant 3 : i32
  %c0 = arith.constant 0 : i32
  scf.for %i = %m to %n step %c1 : i32 {
    scf.if %c {
      scf.for %j = %c0 to %c3 step %c1 : i32 {
        "tt.store"(%p, %i) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>} : (!tt.ptr<i32>, i32) -> ()
      } {tt.loop_unroll_factor = 3 : i32}
    } else {
      "tt.store"(%p, %n) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>} : (!tt.ptr<i32>, i32) -> ()
    }
  } {tt.loop_unroll_factor = 2 : i32}
  return
}

// CHECK-LABEL: func.func @fewer_iterations_than_copies_stay_a_loop
// CHECK: scf.for
// CHECK-NEXT: "tt.store"
// CHECK-NEXT: }
// CHECK-NOT: loop_unroll_factor
// CHECK-NOT: scf.for
// CHECK: return
func.func @fewer_iterations_than_copies_stay_a_loop(%p: !tt.ptr<i32>) {
  %c0 = arith.constant 0 : i32
  %c3 = arith.constant 3 : i32
  %c1 = arith.constant 1 : i32
  scf.for %i = %c0 to %c3 step %c1 : i32 {
    "tt.store"(%p, %i) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>} : (!tt.ptr<i32>, i32) -> ()
  } {tt.loop_unroll_factor = 4 : i32}
  return
}

// CHECK-LABEL: func.func @a_loop_that_does_not_ask_stays
// CHECK: scf.for
// CHECK-NEXT: "tt.store"
// CHECK-NEXT: }
// CHECK-NOT: scf.for
// CHECK: return
func.func @a_loop_that_does_not_ask_stays(%p: !tt.ptr<i32>) {
  %c0 = arith.constant 0 : i32
  %c4 = arith.constant 4 : i32
  %c1 = arith.constant 1 : i32
  scf.for %i = %c0 to %c4 step %c1 : i32 {
    "tt.store"(%p, %i) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>} : (!tt.ptr<i32>, i32) -> ()
  }
  return
}

// CHECK-LABEL: func.func @a_group_of_steps_that_overflows_leaves_the_loop
// CHECK: scf.for
// CHECK-NEXT: "tt.store"
// CHECK-NEXT: } {tt.loop_unroll_factor = 2 : i32}
// CHECK-NEXT: return
func.func @a_group_of_steps_that_overflows_leaves_the_loop(%p: !tt.ptr<i32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %big = arith.constant 1073741824 : i32
  scf.for %i = %c0 to %n step %big : i32 {
    "tt.store"(%p, %i) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>} : (!tt.ptr<i32>, i32) -> ()
  } {tt.loop_unroll_factor = 2 : i32}
  return
}

// LOC-DAG: #[[BODY]] = loc("scope:body")
// LOC-DAG: #[[LOOP]] = loc("scope:loop")
