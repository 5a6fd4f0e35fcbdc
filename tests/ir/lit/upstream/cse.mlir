// RUN: proton-opt %s --pipeline=cse | filecheck %s
// Upstream CSE knows by their effects which of our ops it may merge or drop.

// CHECK-LABEL: func.func @equal_ranges_merge
// CHECK: %[[R:.*]] = "tt.make_range"
// CHECK-NOT: "tt.make_range"
// CHECK: arith.addi %[[R]], %[[R]]
func.func @equal_ranges_merge() -> tensor<4xi32> {
  %0 = "tt.make_range"() {start = 0 : i32, end = 4 : i32} : () -> tensor<4xi32>
  %1 = "tt.make_range"() {start = 0 : i32, end = 4 : i32} : () -> tensor<4xi32>
  %2 = arith.addi %0, %1 : tensor<4xi32>
  return %2 : tensor<4xi32>
}

// CHECK-LABEL: func.func @different_ranges_stay
// CHECK-COUNT-2: "tt.make_range"
func.func @different_ranges_stay() -> tensor<4xi32> {
  %0 = "tt.make_range"() {start = 0 : i32, end = 4 : i32} : () -> tensor<4xi32>
  %1 = "tt.make_range"() {start = 4 : i32, end = 8 : i32} : () -> tensor<4xi32>
  %2 = arith.addi %0, %1 : tensor<4xi32>
  return %2 : tensor<4xi32>
}

// CHECK-LABEL: func.func @a_dead_range_goes
// CHECK-NOT: "tt.make_range"
// CHECK: return
func.func @a_dead_range_goes() {
  %0 = "tt.make_range"() {start = 0 : i32, end = 4 : i32} : () -> tensor<4xi32>
  return
}

// A load has no declared effects, so nothing may touch it: it might trap, or be volatile.
// CHECK-LABEL: func.func @loads_stay
// CHECK-COUNT-2: "tt.load"
func.func @loads_stay(%p: !tt.ptr<f32>) -> f32 {
  %dead = "tt.load"(%p) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (!tt.ptr<f32>) -> f32
  %0 = "tt.load"(%p) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (!tt.ptr<f32>) -> f32
  return %0 : f32
}

// CHECK-LABEL: func.func @records_stay
// CHECK: phase = "start"
// CHECK: phase = "end"
func.func @records_stay() {
  "proton.record"() {scope = "s", phase = "start", names = [], kinds = [], operandSegmentSizes = array<i32: 0, 0>} : () -> ()
  "proton.record"() {scope = "s", phase = "end", names = [], kinds = [], operandSegmentSizes = array<i32: 0, 0>} : () -> ()
  return
}

// Two clock reads are two values, however equal the ops look.
// CHECK-LABEL: func.func @clock_reads_stay
// CHECK-COUNT-2: "proton_gpu.read_counter"
func.func @clock_reads_stay() -> i64 {
  %0 = "proton_gpu.read_counter"() : () -> i64
  %1 = "proton_gpu.read_counter"() : () -> i64
  %2 = arith.subi %1, %0 : i64
  return %2 : i64
}

// CHECK-LABEL: func.func @equal_reductions_merge
// CHECK-COUNT-1: "tt.reduce"(
// CHECK-NOT: "tt.reduce"(
// CHECK: return
func.func @equal_reductions_merge(%x: tensor<4xf32>) -> (f32, f32) {
  %0 = "tt.reduce"(%x) ({
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    "tt.reduce_return"(%s) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (f32) -> ()
  }) {axis = 0 : i32, operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (tensor<4xf32>) -> f32
  %1 = "tt.reduce"(%x) ({
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    "tt.reduce_return"(%s) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (f32) -> ()
  }) {axis = 0 : i32, operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (tensor<4xf32>) -> f32
  return %0, %1 : f32, f32
}
