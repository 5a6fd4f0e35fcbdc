// RUN: proton-opt %s | proton-opt | filecheck %s
// Every op of proton and proton_gpu, printed, parsed and printed again.

// CHECK-LABEL: func.func @proton
func.func @proton(%x: i64, %y: i64) {
  // CHECK: "proton.record"(%{{.*}}, %{{.*}}) {kinds = ["int", "int"], names = ["x", "y"], operandSegmentSizes = array<i32: 2, 0>, phase = "start", scope = "a/b"} : (i64, i64) -> ()
  "proton.record"(%x, %y) {scope = "a/b", phase = "start", names = ["x", "y"], kinds = ["int", "int"], operandSegmentSizes = array<i32: 2, 0>} : (i64, i64) -> ()
  // CHECK: "proton.mark"() {kinds = [], mark = "here", names = [], operandSegmentSizes = array<i32: 0, 0>} : () -> ()
  "proton.mark"() {mark = "here", names = [], kinds = [], operandSegmentSizes = array<i32: 0, 0>} : () -> ()
  // CHECK: "proton.record"() {kinds = [], names = [], operandSegmentSizes = array<i32: 0, 0>, phase = "end", scope = "a/b"} : () -> ()
  "proton.record"() {scope = "a/b", phase = "end", names = [], kinds = [], operandSegmentSizes = array<i32: 0, 0>} : () -> ()
  return
}

// CHECK-LABEL: func.func @events
func.func @events() {
  // CHECK: "proton.event"() {event = "tile", phase = "start"} : () -> ()
  "proton.event"() {event = "tile", phase = "start"} : () -> ()
  // CHECK: "proton.event"() {event = "tile", phase = "end"} : () -> ()
  "proton.event"() {event = "tile", phase = "end"} : () -> ()
  return
}

// Each of them under a condition.

// CHECK-LABEL: func.func @conditions
func.func @conditions(%i: i32, %x: i64, %c: i1) {
  // CHECK: "proton.record"(%{{.*}}, %{{.*}}) {kinds = ["int"], names = ["x"], operandSegmentSizes = array<i32: 1, 1>, phase = "start", scope = "a"} : (i64, i1) -> ()
  "proton.record"(%x, %c) {scope = "a", phase = "start", names = ["x"], kinds = ["int"], operandSegmentSizes = array<i32: 1, 1>} : (i64, i1) -> ()
  // CHECK: "proton.record"(%{{.*}}) {kinds = [], names = [], operandSegmentSizes = array<i32: 0, 1>, phase = "end", scope = "a"} : (i1) -> ()
  "proton.record"(%c) {scope = "a", phase = "end", names = [], kinds = [], operandSegmentSizes = array<i32: 0, 1>} : (i1) -> ()
  // CHECK: "proton.mark"(%{{.*}}) {kinds = [], mark = "here", names = [], operandSegmentSizes = array<i32: 0, 1>} : (i1) -> ()
  "proton.mark"(%c) {mark = "here", names = [], kinds = [], operandSegmentSizes = array<i32: 0, 1>} : (i1) -> ()
  %s = "proton_gpu.init"() : () -> !proton_gpu.segment
  %t = "proton_gpu.read_counter"() : () -> i64
  // CHECK: "proton_gpu.circular_record"({{.*}}) {kind = 1 : i32, operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 1>, scope_id = 3 : i32} : (!proton_gpu.segment, i64, i64, i32, i64, i1) -> ()
  "proton_gpu.circular_record"(%s, %t, %t, %i, %x, %c) {scope_id = 3 : i32, kind = 1 : i32, operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 1>} : (!proton_gpu.segment, i64, i64, i32, i64, i1) -> ()
  // CHECK: "proton_gpu.flush_record"({{.*}}) {kind = 1 : i32, operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 1>, scope_id = 0 : i32} : (!proton_gpu.segment, i64, i64, i32, i1) -> ()
  "proton_gpu.flush_record"(%s, %t, %t, %i, %c) {scope_id = 0 : i32, kind = 1 : i32, operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 1>} : (!proton_gpu.segment, i64, i64, i32, i1) -> ()
  // CHECK: "proton_gpu.counting_record"(%{{.*}}, %{{.*}}) {kind = 1 : i32, operandSegmentSizes = array<i32: 1, 1>, scope_id = 0 : i32} : (!proton_gpu.segment, i1) -> ()
  "proton_gpu.counting_record"(%s, %c) {scope_id = 0 : i32, kind = 1 : i32, operandSegmentSizes = array<i32: 1, 1>} : (!proton_gpu.segment, i1) -> ()
  return
}

// CHECK-LABEL: func.func @proton_gpu
func.func @proton_gpu(%i: i32, %x: i64) {
  // CHECK: %[[S:.*]] = "proton_gpu.init"() : () -> !proton_gpu.segment
  %s = "proton_gpu.init"() : () -> !proton_gpu.segment
  // CHECK: %[[T:.*]] = "proton_gpu.read_counter"() : () -> i64
  %t = "proton_gpu.read_counter"() : () -> i64
  // CHECK: "proton_gpu.attach"() : () -> !proton_gpu.segment
  %attached = "proton_gpu.attach"() : () -> !proton_gpu.segment
  // CHECK: "proton_gpu.optimization_barrier"(%[[T]]) : (i64) -> i64
  %q = "proton_gpu.optimization_barrier"(%t) : (i64) -> i64
  // CHECK: "proton_gpu.circular_record"(%[[S]], %[[T]], %[[T]], %{{.*}}, %{{.*}}) {kind = 1 : i32, operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 0>, scope_id = 3 : i32}
  "proton_gpu.circular_record"(%s, %t, %t, %i, %x) {scope_id = 3 : i32, kind = 1 : i32, operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 0>} : (!proton_gpu.segment, i64, i64, i32, i64) -> ()
  // CHECK: "proton_gpu.flush_record"(%[[S]], %[[T]], %[[T]], %{{.*}}) {kind = 1 : i32, operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0>, scope_id = 0 : i32}
  "proton_gpu.flush_record"(%s, %t, %t, %i) {scope_id = 0 : i32, kind = 1 : i32, operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0>} : (!proton_gpu.segment, i64, i64, i32) -> ()
  // CHECK: "proton_gpu.counting_record"(%[[S]]) {kind = 1 : i32, operandSegmentSizes = array<i32: 1, 0>, scope_id = 0 : i32}
  "proton_gpu.counting_record"(%s) {scope_id = 0 : i32, kind = 1 : i32, operandSegmentSizes = array<i32: 1, 0>} : (!proton_gpu.segment) -> ()
  // CHECK: %[[L:.*]] = "proton_gpu.begin_iterations"(%[[S]]) {iterations = 8 : i32, slots = 2 : i32, words = 4 : i32} : (!proton_gpu.segment) -> !proton_gpu.iterations
  %l = "proton_gpu.begin_iterations"(%s) {iterations = 8 : i32, slots = 2 : i32, words = 4 : i32} : (!proton_gpu.segment) -> !proton_gpu.iterations
  // CHECK: "proton_gpu.keep_readings"(%[[L]], %[[T]], %[[T]]) {first = 2 : i32, operandSegmentSizes = array<i32: 1, 2>} : (!proton_gpu.iterations, i64, i64) -> ()
  "proton_gpu.keep_readings"(%l, %t, %t) {first = 2 : i32, operandSegmentSizes = array<i32: 1, 2>} : (!proton_gpu.iterations, i64, i64) -> ()
  // CHECK: "proton_gpu.end_iteration"(%[[L]]) : (!proton_gpu.iterations) -> ()
  "proton_gpu.end_iteration"(%l) : (!proton_gpu.iterations) -> ()
  // CHECK: "proton_gpu.kept_iterations"(%[[L]]) : (!proton_gpu.iterations) -> i32
  %n = "proton_gpu.kept_iterations"(%l) : (!proton_gpu.iterations) -> i32
  // CHECK: "proton_gpu.end_iterations"(%[[L]]) : (!proton_gpu.iterations) -> ()
  "proton_gpu.end_iterations"(%l) : (!proton_gpu.iterations) -> ()
  // CHECK: %[[K:.*]]:2 = "proton_gpu.kept_records"(%[[L]]) : (!proton_gpu.iterations) -> (i32, i32)
  %k:2 = "proton_gpu.kept_records"(%l) : (!proton_gpu.iterations) -> (i32, i32)
  // CHECK: %[[R:.*]]:2 = "proton_gpu.kept_readings"(%[[L]], %[[K]]#0, %[[K]]#1) {ends = [1 : i32, 2 : i32], starts = [0 : i32, 1 : i32]} : (!proton_gpu.iterations, i32, i32) -> (i64, i64)
  %r:2 = "proton_gpu.kept_readings"(%l, %k#0, %k#1) {ends = [1 : i32, 2 : i32], starts = [0 : i32, 1 : i32]} : (!proton_gpu.iterations, i32, i32) -> (i64, i64)
  %w = arith.cmpi ult, %k#0, %k#1 : i32
  // CHECK: "proton_gpu.write_record"(%[[L]], %[[K]]#0, %[[K]]#1, %{{.*}}, %[[R]]#0, %[[R]]#1, %{{.*}}) {kinds = [0 : i32], operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 1, 1>, scope_ids = [1 : i32]}
  "proton_gpu.write_record"(%l, %k#0, %k#1, %w, %r#0, %r#1, %i) {kinds = [0 : i32], operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 1, 1>, scope_ids = [1 : i32]} : (!proton_gpu.iterations, i32, i32, i1, i64, i64, i32) -> ()
  // CHECK: "proton_gpu.write_batch"(%[[L]], %{{.*}}) {number = 0 : i32} : (!proton_gpu.iterations, i32) -> ()
  "proton_gpu.write_batch"(%l, %i) {number = 0 : i32} : (!proton_gpu.iterations, i32) -> ()
  // CHECK: "proton_gpu.forget_iterations"(%[[L]]) : (!proton_gpu.iterations) -> ()
  "proton_gpu.forget_iterations"(%l) : (!proton_gpu.iterations) -> ()
  // CHECK: "proton_gpu.write_pending"() : () -> ()
  "proton_gpu.write_pending"() : () -> ()
  // CHECK: "proton_gpu.sched_barrier"() : () -> ()
  "proton_gpu.sched_barrier"() : () -> ()
  // CHECK: "proton_gpu.sampled"() : () -> i1
  %sampled = "proton_gpu.sampled"() : () -> i1
  // CHECK: "proton_gpu.finalize"(%[[S]]) : (!proton_gpu.segment) -> ()
  "proton_gpu.finalize"(%s) : (!proton_gpu.segment) -> ()
  return
}
