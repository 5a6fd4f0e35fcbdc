// RUN: proton-opt %s --split-input-file --verify-diagnostics
// The rule of each record op, broken once, and a segment that is none.

func.func @circular(%s: !proton_gpu.segment, %t: i64, %i: i32) {
  // expected-error@+1 {{'proton_gpu.circular_record' scope_id must lie in [0,}}
  "proton_gpu.circular_record"(%s, %t, %t, %i) {scope_id = -1 : i32, kind = 1 : i32, operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0>} : (!proton_gpu.segment, i64, i64, i32) -> ()
  return
}
// -----
func.func @flush(%s: !proton_gpu.segment, %t: i64, %i: i32) {
  // expected-error@+1 {{'proton_gpu.flush_record' scope_id must lie in [0,}}
  "proton_gpu.flush_record"(%s, %t, %t, %i) {scope_id = 2147483647 : i32, kind = 1 : i32, operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0>} : (!proton_gpu.segment, i64, i64, i32) -> ()
  return
}
// -----
func.func @counting(%s: !proton_gpu.segment) {
  // expected-error@+1 {{'proton_gpu.counting_record' scope_id must lie in [0,}}
  "proton_gpu.counting_record"(%s) {scope_id = -5 : i32, kind = 1 : i32, operandSegmentSizes = array<i32: 1, 0>} : (!proton_gpu.segment) -> ()
  return
}
// -----
func.func @keep_readings(%l: !proton_gpu.iterations, %t: i64) {
  // expected-error@+1 {{'proton_gpu.keep_readings' keeps 1, 2 or 4 readings at once, got 3}}
  "proton_gpu.keep_readings"(%l, %t, %t, %t) {first = 0 : i32, operandSegmentSizes = array<i32: 1, 3>} : (!proton_gpu.iterations, i64, i64, i64) -> ()
  return
}

// -----

func.func @write_record(%l: !proton_gpu.iterations, %i: i32, %t: i64, %b: i1) {
  // expected-error@+1 {{'proton_gpu.write_record' kinds must have 2 entries, got 1}}
  "proton_gpu.write_record"(%l, %i, %i, %b, %t, %t, %i, %i) {scope_ids = [0 : i32, 1 : i32], kinds = [0 : i32], operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 1, 2>} : (!proton_gpu.iterations, i32, i32, i1, i64, i64, i32, i32) -> ()
  return
}
// -----
func.func @finalize(%s: i64) {
  // expected-error@+1 {{expected base type 'proton_gpu.segment'}}
  "proton_gpu.finalize"(%s) : (i64) -> ()
  return
}
// -----
func.func @clock_width() {
  // expected-error@+1 {{expected 'i64' but got 'i32'}}
  %0 = "proton_gpu.read_counter"() : () -> i32
  return
}
// -----
func.func @payload_type(%s: !proton_gpu.segment, %t: i64, %i: i32, %x: f64) {
  // expected-error@+1 {{expected 'i64' but got 'f64'}}
  "proton_gpu.circular_record"(%s, %t, %t, %i, %x) {scope_id = 1 : i32, kind = 1 : i32, operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 0>} : (!proton_gpu.segment, i64, i64, i32, f64) -> ()
  return
}
// -----
func.func @optimization_barrier(%x: f32) {
  // expected-error@+1 {{'proton_gpu.optimization_barrier' result must have type f32, got i32}}
  %0 = "proton_gpu.optimization_barrier"(%x) : (f32) -> i32
  return
}
// -----
func.func @condition_type(%s: !proton_gpu.segment, %t: i64, %i: i32) {
  // expected-error@+1 {{expected 'i1' but got 'i32'}}
  "proton_gpu.counting_record"(%s, %i) {scope_id = 1 : i32, kind = 1 : i32, operandSegmentSizes = array<i32: 1, 1>} : (!proton_gpu.segment, i32) -> ()
  return
}
