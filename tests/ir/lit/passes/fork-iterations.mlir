// RUN: proton-opt --pipeline='fork-iterations{every=8}' %s | filecheck %s

// Of a loop with records there is a body for each distance that they are ahead, and one without.

// CHECK-LABEL: func.func @ahead(
// CHECK: %[[LOOP:.*]] = scf.for %[[I:.*]] = %[[LOWER:.*]] to {{.*}} step %[[STEP:.*]] iter_args(%[[S:.*]] = {{.*}})
// CHECK: %[[N:.*]] = arith.divsi
// CHECK: %[[LATER:.*]] = arith.addi %[[N]]
// CHECK: %[[R:.*]] = arith.remui %[[N]]
// CHECK: %[[IS:.*]] = arith.cmpi eq, %[[R]]
// CHECK: arith.remui %[[LATER]]
// CHECK: %[[IS_AHEAD:.*]] = arith.cmpi eq
// CHECK: %[[F:.*]] = scf.if %[[IS]] -> (f32) {
// CHECK-NOT: scope = "copy"
// CHECK: "proton.record"(){{.*}}phase = "start"{{.*}}scope = "dot"
// CHECK-NEXT: arith.addf
// CHECK-NEXT: "proton.record"(){{.*}}phase = "end"{{.*}}scope = "dot"
// CHECK: } else {
// CHECK: scf.if %[[IS_AHEAD]] -> (f32) {
// CHECK: "proton.record"({{.*}}phase = "start"{{.*}}scope = "copy"
// CHECK: llvm.store
// CHECK: "proton.record"(){{.*}}phase = "end"{{.*}}scope = "copy"
// CHECK-NOT: scope = "dot"
// CHECK: } else {
// CHECK-NOT: proton.record
// CHECK: llvm.store
// CHECK-NEXT: arith.addf
// CHECK-NOT: proton.record
// CHECK: return
func.func @ahead(%p: !llvm.ptr, %x: f32, %n: i32, %number: i64) -> f32 attributes {tt.kernel} {
  %lower = arith.constant 0 : i32
  %step = arith.constant 1 : i32
  %r = scf.for %i = %lower to %n step %step iter_args(%s = %x) -> (f32) : i32 {
    "proton.record"(%number) {scope = "copy", phase = "start", names = ["#iteration"], kinds = ["int"], proton.ahead = 2 : i32, operandSegmentSizes = array<i32: 1, 0>} : (i64) -> ()
    llvm.store %s, %p : f32, !llvm.ptr
    "proton.record"() {scope = "copy", phase = "end", names = [], kinds = [], operandSegmentSizes = array<i32: 0, 0>} : () -> ()
    "proton.record"() {scope = "dot", phase = "start", names = [], kinds = [], operandSegmentSizes = array<i32: 0, 0>} : () -> ()
    %t = arith.addf %s, %x : f32
    "proton.record"() {scope = "dot", phase = "end", names = [], kinds = [], operandSegmentSizes = array<i32: 0, 0>} : () -> ()
    scf.yield %t : f32
  }
  return %r : f32
}

// What is eight iterations ahead is of the same ones as what is not.

// CHECK-LABEL: func.func @alike(
// CHECK-COUNT-1: scf.if
// CHECK-NOT: scf.if
// CHECK: return
func.func @alike(%p: !llvm.ptr, %x: f32, %n: i32, %number: i64) attributes {tt.kernel} {
  %lower = arith.constant 0 : i32
  %step = arith.constant 1 : i32
  scf.for %i = %lower to %n step %step : i32 {
    "proton.record"(%number) {scope = "copy", phase = "start", names = ["#iteration"], kinds = ["int"], proton.ahead = 8 : i32, operandSegmentSizes = array<i32: 1, 0>} : (i64) -> ()
    llvm.store %x, %p : f32, !llvm.ptr
    "proton.record"() {scope = "copy", phase = "end", names = [], kinds = [], operandSegmentSizes = array<i32: 0, 0>} : () -> ()
    "proton.record"() {scope = "dot", phase = "start", names = [], kinds = [], operandSegmentSizes = array<i32: 0, 0>} : () -> ()
    llvm.store %x, %p : f32, !llvm.ptr
    "proton.record"() {scope = "dot", phase = "end", names = [], kinds = [], operandSegmentSizes = array<i32: 0, 0>} : () -> ()
  }
  return
}

// A dot that is under way where an iteration ends is of both: no branch may give its accumulator on.

// CHECK-LABEL: func.func @under_way(
// CHECK-NOT: scf.if
// CHECK: return
#acc = #ttg.linear<[[0, 1], [8, 0], [0, 8], [0, 16], [0, 32]], [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], [[16, 0], [32, 0]], []>
!acc = tensor<64x64xf32, #acc>
func.func @under_way(%sum: !acc, %n: i32) -> !acc attributes {tt.kernel} {
  %lower = arith.constant 0 : i32
  %step = arith.constant 1 : i32
  %r = scf.for %i = %lower to %n step %step iter_args(%s = %sum) -> (!acc) : i32 {
    "proton.record"() {scope = "dot", phase = "start", names = [], kinds = [], operandSegmentSizes = array<i32: 0, 0>} : () -> ()
    %w = "ttng.warp_group_dot_wait"(%s) {pendings = 1 : i32} : (!acc) -> !acc
    "proton.record"() {scope = "dot", phase = "end", names = [], kinds = [], operandSegmentSizes = array<i32: 0, 0>} : () -> ()
    scf.yield %w : !acc
  }
  return %r : !acc
}
