// RUN: proton-opt --pipeline='detach-records' %s | filecheck %s --check-prefixes=CHECK,SCHEDULE
// RUN: proton-opt --pipeline='detach-records{placement=program}' %s | filecheck %s --check-prefixes=CHECK,PROGRAM

// Paths are noted once each, in the order of the source; only records with payload stay.

// SCHEDULE-LABEL: func.func @scopes
// SCHEDULE-SAME: attributes {proton.scope_lines = {{.*}}, proton.scopes = ["b", "b/inner", "a"], tt.kernel}
// SCHEDULE-NEXT: "proton.record"({{.*}}) {kinds = ["int"], names = ["x"], operandSegmentSizes = array<i32: 1, 0>, phase = "start", scope = "b/inner"}
// SCHEDULE-NEXT: "proton.mark"() {{.*}}mark = "here"
// SCHEDULE-NEXT: return

// PROGRAM-LABEL: func.func @scopes
// PROGRAM-SAME: attributes {proton.program_order, proton.scope_lines = {{.*}}, proton.scopes = ["b", "b/inner", "a"], tt.kernel}
// PROGRAM-NEXT: phase = "start", scope = "b"}
// PROGRAM-NEXT: phase = "start", scope = "b/inner"}
// PROGRAM-NEXT: phase = "end", scope = "b/inner"}
// PROGRAM-NEXT: phase = "end", scope = "b"}
// PROGRAM-NEXT: mark = "here"
// PROGRAM-NEXT: phase = "start", scope = "a"}
// PROGRAM-NEXT: phase = "end", scope = "a"}
// PROGRAM-NEXT: phase = "start", scope = "b"}
// PROGRAM-NEXT: phase = "end", scope = "b"}
// PROGRAM-NEXT: return
func.func @scopes(%x: i64) attributes {tt.kernel} {
  "proton.record"() {scope = "b", phase = "start", names = [], kinds = [], operandSegmentSizes = array<i32: 0, 0>} : () -> ()
  "proton.record"(%x) {scope = "b/inner", phase = "start", names = ["x"], kinds = ["int"], operandSegmentSizes = array<i32: 1, 0>} : (i64) -> ()
  "proton.record"() {scope = "b/inner", phase = "end", names = [], kinds = [], operandSegmentSizes = array<i32: 0, 0>} : () -> ()
  "proton.record"() {scope = "b", phase = "end", names = [], kinds = [], operandSegmentSizes = array<i32: 0, 0>} : () -> ()
  "proton.mark"() {mark = "here", names = [], kinds = [], operandSegmentSizes = array<i32: 0, 0>} : () -> ()
  "proton.record"() {scope = "a", phase = "start", names = [], kinds = [], operandSegmentSizes = array<i32: 0, 0>} : () -> ()
  "proton.record"() {scope = "a", phase = "end", names = [], kinds = [], operandSegmentSizes = array<i32: 0, 0>} : () -> ()
  "proton.record"() {scope = "b", phase = "start", names = [], kinds = [], operandSegmentSizes = array<i32: 0, 0>} : () -> ()
  "proton.record"() {scope = "b", phase = "end", names = [], kinds = [], operandSegmentSizes = array<i32: 0, 0>} : () -> ()
  return
}

// CHECK-LABEL: func.func @in_a_loop
// CHECK-SAME: proton.scopes = ["loop"]
// SCHEDULE-NOT: proton.record
// PROGRAM: scf.for
// PROGRAM-NEXT: phase = "start", scope = "loop"
// PROGRAM-NEXT: phase = "end", scope = "loop"
// CHECK: return
func.func @in_a_loop(%n: index) attributes {tt.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    "proton.record"() {scope = "loop", phase = "start", names = [], kinds = [], operandSegmentSizes = array<i32: 0, 0>} : () -> ()
    "proton.record"() {scope = "loop", phase = "end", names = [], kinds = [], operandSegmentSizes = array<i32: 0, 0>} : () -> ()
  }
  return
}

// A kernel without annotations stays as it is; one whose annotations are no scopes has an empty list.

// CHECK-LABEL: func.func @no_scopes() attributes {tt.kernel}
func.func @no_scopes() attributes {tt.kernel} {
  return
}

// What a kernel calls has its own scopes; without any it stays as it is.

// CHECK-LABEL: func.func @called
// SCHEDULE-SAME: attributes {proton.scope_lines = {{.*}}, proton.scopes = ["a"]}
// SCHEDULE-NEXT: return
// PROGRAM-SAME: attributes {proton.program_order, proton.scope_lines = {{.*}}, proton.scopes = ["a"]}
// PROGRAM-NEXT: "proton.record"
func.func @called() {
  "proton.record"() {scope = "a", phase = "start", names = [], kinds = [], operandSegmentSizes = array<i32: 0, 0>} : () -> ()
  "proton.record"() {scope = "a", phase = "end", names = [], kinds = [], operandSegmentSizes = array<i32: 0, 0>} : () -> ()
  return
}

// CHECK-LABEL: func.func @called_without_scopes() {
func.func @called_without_scopes() {
  return
}

// A scope with a condition anywhere keeps all its starts: they say which of them a slice is of.

// CHECK-LABEL: func.func @conditions
// CHECK-SAME: proton.scopes = ["a", "b"]
// SCHEDULE-NEXT: "proton.record"(%{{.*}}) {{.*}}array<i32: 0, 1>, phase = "start", scope = "a"}
// SCHEDULE-NEXT: "proton.record"() {{.*}}array<i32: 0, 0>, phase = "start", scope = "a"}
// SCHEDULE-NEXT: return
// PROGRAM-COUNT-6: "proton.record"
// PROGRAM-NEXT: return
func.func @conditions(%c: i1) attributes {tt.kernel} {
  "proton.record"(%c) {scope = "a", phase = "start", names = [], kinds = [], operandSegmentSizes = array<i32: 0, 1>} : (i1) -> ()
  "proton.record"() {scope = "a", phase = "end", names = [], kinds = [], operandSegmentSizes = array<i32: 0, 0>} : () -> ()
  "proton.record"() {scope = "b", phase = "start", names = [], kinds = [], operandSegmentSizes = array<i32: 0, 0>} : () -> ()
  "proton.record"() {scope = "b", phase = "end", names = [], kinds = [], operandSegmentSizes = array<i32: 0, 0>} : () -> ()
  "proton.record"() {scope = "a", phase = "start", names = [], kinds = [], operandSegmentSizes = array<i32: 0, 0>} : () -> ()
  "proton.record"() {scope = "a", phase = "end", names = [], kinds = [], operandSegmentSizes = array<i32: 0, 0>} : () -> ()
  return
}

// Events stay, as marks do; a function that only has events is one with records.

// CHECK-LABEL: func.func @events
// SCHEDULE-SAME: attributes {proton.scope_lines = [], proton.scopes = []}
// CHECK-NEXT: "proton.event"() {event = "tile", phase = "start"}
func.func @events() {
  "proton.event"() {event = "tile", phase = "start"} : () -> ()
  return
}
