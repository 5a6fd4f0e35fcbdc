// RUN: proton-opt --pipeline='strip-records' %s | filecheck %s

// CHECK-LABEL: func.func @records_and_marks_go
// CHECK-NEXT: return
func.func @records_and_marks_go() attributes {tt.kernel} {
  "proton.record"() {scope = "a", phase = "start", names = [], kinds = [], operandSegmentSizes = array<i32: 0, 0>} : () -> ()
  "proton.mark"() {mark = "here", names = [], kinds = [], operandSegmentSizes = array<i32: 0, 0>} : () -> ()
  "proton.record"() {scope = "a", phase = "end", names = [], kinds = [], operandSegmentSizes = array<i32: 0, 0>} : () -> ()
  return
}

// What computed a payload is for others to clean up; what is measured stays.

// CHECK-LABEL: func.func @the_rest_stays
// CHECK-SAME: (%[[P:.*]]: !tt.ptr<i64>, %[[X:.*]]: i64)
// CHECK-NEXT: %[[Y:.*]] = arith.addi %[[X]], %[[X]]
// CHECK-NEXT: "tt.store"(%[[P]], %[[Y]])
// CHECK-NEXT: return
func.func @the_rest_stays(%p: !tt.ptr<i64>, %x: i64) attributes {tt.kernel} {
  %y = arith.addi %x, %x : i64
  "proton.record"(%y) {scope = "a", phase = "start", names = ["y"], kinds = ["int"], operandSegmentSizes = array<i32: 1, 0>} : (i64) -> ()
  "tt.store"(%p, %y) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>} : (!tt.ptr<i64>, i64) -> ()
  "proton.mark"(%y) {mark = "here", names = ["y"], kinds = ["int"], operandSegmentSizes = array<i32: 1, 0>} : (i64) -> ()
  "proton.record"() {scope = "a", phase = "end", names = [], kinds = [], operandSegmentSizes = array<i32: 0, 0>} : () -> ()
  return
}

// CHECK-LABEL: func.func @in_a_loop
// CHECK: scf.for
// CHECK-NOT: proton
// CHECK: return
func.func @in_a_loop(%n: index) attributes {tt.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    "proton.record"() {scope = "a", phase = "start", names = [], kinds = [], operandSegmentSizes = array<i32: 0, 0>} : () -> ()
    scf.for %j = %c0 to %n step %c1 {
      "proton.mark"() {mark = "here", names = [], kinds = [], operandSegmentSizes = array<i32: 0, 0>} : () -> ()
    }
    "proton.record"() {scope = "a", phase = "end", names = [], kinds = [], operandSegmentSizes = array<i32: 0, 0>} : () -> ()
  }
  return
}

// CHECK-LABEL: func.func @events
// CHECK-NEXT: return
func.func @events() attributes {tt.kernel} {
  "proton.event"() {event = "tile", phase = "start"} : () -> ()
  return
}
