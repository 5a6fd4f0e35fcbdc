// RUN: not proton-opt --pipeline='pin-records' %s 2>&1 | filecheck %s

// CHECK: 'a' is in a noinline function, where nothing is recorded on a GPU
func.func @not_a_kernel() {
  "proton.record"() {scope = "a", phase = "start", names = [], kinds = [], operandSegmentSizes = array<i32: 0>} : () -> ()
  "proton.record"() {scope = "a", phase = "end", names = [], kinds = [], operandSegmentSizes = array<i32: 0>} : () -> ()
  return
}
