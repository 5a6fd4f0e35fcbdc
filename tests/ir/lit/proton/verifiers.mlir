// RUN: proton-opt %s --split-input-file --verify-diagnostics
// Each rule of the proton verifiers, broken once. Those of proton_gpu stand in proton_gpu.mlir.

func.func @phase() {
  // expected-error@+1 {{'proton.record' phase must be one of}}
  "proton.record"() {scope = "load", phase = "begin", names = [], kinds = [], operandSegmentSizes = array<i32: 0, 0>} : () -> ()
  return
}
// -----
func.func @payload_at_the_end(%x: i64) {
  // expected-error@+1 {{only a start carries payload, got 1 values}}
  "proton.record"(%x) {scope = "load", phase = "end", names = ["x"], kinds = ["int"], operandSegmentSizes = array<i32: 1, 0>} : (i64) -> ()
  return
}
// -----
func.func @record_names(%x: i64) {
  // expected-error@+1 {{'proton.record' names must have 1 entries, got 0}}
  "proton.record"(%x) {scope = "load", phase = "start", names = [], kinds = [], operandSegmentSizes = array<i32: 1, 0>} : (i64) -> ()
  return
}
// -----
func.func @mark_names() {
  // expected-error@+1 {{'proton.mark' names must have 0 entries, got 2}}
  "proton.mark"() {mark = "here", names = ["x", "y"], kinds = ["int", "int"], operandSegmentSizes = array<i32: 0, 0>} : () -> ()
  return
}
// -----
func.func @record_kinds(%x: i64) {
  // expected-error@+1 {{'proton.record' kinds must have 1 entries, got 0}}
  "proton.record"(%x) {scope = "load", phase = "start", names = ["x"], kinds = [], operandSegmentSizes = array<i32: 1, 0>} : (i64) -> ()
  return
}
// -----
func.func @mark_kinds(%x: i64) {
  // expected-error@+1 {{'proton.mark' kinds must be of ('int', 'float'), got}}
  "proton.mark"(%x) {mark = "here", names = ["x"], kinds = ["f64"], operandSegmentSizes = array<i32: 1, 0>} : (i64) -> ()
  return
}
// -----
func.func @payload_type(%x: f64) {
  // expected-error@+1 {{expected 'i64' but got 'f64'}}
  "proton.record"(%x) {scope = "load", phase = "start", names = ["x"], kinds = ["float"], operandSegmentSizes = array<i32: 1, 0>} : (f64) -> ()
  return
}
// -----
func.func @condition_type(%x: i64) {
  // expected-error@+1 {{expected 'i1' but got 'i64'}}
  "proton.record"(%x) {scope = "load", phase = "start", names = [], kinds = [], operandSegmentSizes = array<i32: 0, 1>} : (i64) -> ()
  return
}
// -----
func.func @mark_condition_type(%x: i64) {
  // expected-error@+1 {{expected 'i1' but got 'i64'}}
  "proton.mark"(%x) {mark = "here", names = [], kinds = [], operandSegmentSizes = array<i32: 0, 1>} : (i64) -> ()
  return
}
// -----
func.func @event_phase() {
  // expected-error@+1 {{'proton.event' phase must be one of}}
  "proton.event"() {event = "tile", phase = "begin"} : () -> ()
  return
}
