// RUN: proton-opt --pipeline='convert-proton-to-proton-gpu' %s --split-input-file --verify-diagnostics

func.func @no_end() attributes {tt.kernel} {
  // expected-error@+1 {{scope 'a' does not start and end in one block}}
  "proton.record"() {scope = "a", phase = "start", names = [], kinds = [], operandSegmentSizes = array<i32: 0, 0>} : () -> ()
  return
}

// -----
func.func @no_start() attributes {tt.kernel} {
  // expected-error@+1 {{scope 'a' does not start and end in one block}}
  "proton.record"() {scope = "a", phase = "end", names = [], kinds = [], operandSegmentSizes = array<i32: 0, 0>} : () -> ()
  return
}

// -----
func.func @crossed() attributes {tt.kernel} {
  "proton.record"() {scope = "a", phase = "start", names = [], kinds = [], operandSegmentSizes = array<i32: 0, 0>} : () -> ()
  "proton.record"() {scope = "b", phase = "start", names = [], kinds = [], operandSegmentSizes = array<i32: 0, 0>} : () -> ()
  // expected-error@+1 {{scope 'a' does not start and end in one block}}
  "proton.record"() {scope = "a", phase = "end", names = [], kinds = [], operandSegmentSizes = array<i32: 0, 0>} : () -> ()
  "proton.record"() {scope = "b", phase = "end", names = [], kinds = [], operandSegmentSizes = array<i32: 0, 0>} : () -> ()
  return
}

// -----
func.func @in_another_block(%c: i1) attributes {tt.kernel} {
  "proton.record"() {scope = "a", phase = "start", names = [], kinds = [], operandSegmentSizes = array<i32: 0, 0>} : () -> ()
  scf.if %c {
    // expected-error@+1 {{scope 'a' does not start and end in one block}}
    "proton.record"() {scope = "a", phase = "end", names = [], kinds = [], operandSegmentSizes = array<i32: 0, 0>} : () -> ()
  }
  return
}
