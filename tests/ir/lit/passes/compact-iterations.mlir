// RUN: proton-opt --pipeline='compact-iterations' %s | filecheck %s
// RUN: proton-opt --pipeline='compact-iterations,ttg-to-llvm{target=cuda:90}' %s | filecheck %s --check-prefix=LLVM
// A loop keeps readings alone, each once; its records are written at the end. 64 records are 22 turns
// of 3, rounded up to 32, of two readings: 32 * 8 = 256 bytes of each of 4 units behind the kernel's
// own 1024.

module attributes {"ttg.num-warps" = 4 : i32} {
// CHECK-LABEL: func.func @three(
// CHECK-SAME: iteration_bytes = 256 : i64, iterations = 1024 : i64
// CHECK-SAME: ttg.shared = 2048 : i32
// CHECK-NOT: ring =
// CHECK: %[[L:.*]] = "proton_gpu.begin_iterations"(%{{.*}}) {iterations = 32 : i32, slots = 3 : i32, words = 2 : i32}
// CHECK: scf.for
// CHECK: %[[T0:.*]] = "proton_gpu.read_counter"
// CHECK: %[[T1:.*]] = "proton_gpu.read_counter"
// CHECK: "proton_gpu.keep_readings"(%[[L]], %[[T0]], %[[T1]]) {first = 0 : i32,
// CHECK-NOT: keep_readings
// CHECK: "proton_gpu.end_iteration"(%[[L]])
// CHECK: "proton_gpu.end_iterations"(%[[L]])
// CHECK: %[[LAST:.*]] = "proton_gpu.read_counter"
// CHECK: "proton_gpu.circular_record"(%{{.*}}, %[[LAST]], %[[LAST]],
// CHECK: %[[KEPT:.*]]:2 = "proton_gpu.kept_records"(%[[L]])
// Two for each lane are all that a ring buffer of 64 has: no loop.
// CHECK-NOT: scf.for
// CHECK: %[[TURN:.*]] = arith.divui
// CHECK: %[[R:.*]]:2 = "proton_gpu.kept_readings"(%[[L]], %[[TURN]], %[[SLOT:.*]]) {ends = [1 : i32, 1 : i32, 1 : i32], starts = [0 : i32, 1 : i32, 0 : i32]}
// CHECK-COUNT-1: "proton_gpu.kept_readings"
// CHECK-NOT: "proton_gpu.kept_readings"
// The number of the turn, the next one, and the loop's variable: 5 + 2 * turn.
// CHECK: %[[NEXT:.*]] = arith.addi %[[TURN]],
// CHECK: %[[TIMES:.*]] = arith.muli %[[TURN]],
// CHECK: %[[INDEX:.*]] = arith.addi %{{.*}}, %[[TIMES]]
// CHECK: "proton_gpu.write_record"(%[[L]], %[[TURN]], %[[SLOT]], %{{.*}}, %[[R]]#0, %[[R]]#1, %[[TURN]], %[[NEXT]], %[[INDEX]]) {kinds = [0 : i32, 1 : i32, 0 : i32], operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 1, 3>, scope_ids = [4 : i32, 5 : i32, 6 : i32]}
// CHECK: "proton_gpu.forget_iterations"(%[[L]])
// CHECK: "proton_gpu.finalize"

// In the loop one store of 8 bytes, at the end of the turn; at the end ones of 16, ahead of the
// number of records.
// LLVM-LABEL: func.func @three(
// LLVM: scf.for
// LLVM-COUNT-2: "mov.u32 $0, %clock; // proton"
// LLVM: "@$3 st.shared.v2.b32 [$0], {$1, $2}; // proton"
// LLVM-NEXT: llvm.load
// LLVM-NEXT: llvm.mlir.constant
// LLVM-NEXT: llvm.add
// LLVM-NEXT: llvm.store
// LLVM-NEXT: }
// LLVM: nvvm.bar.warp.sync
// LLVM-NOT: scf.for
// LLVM-COUNT-4: "ld.shared.b32 $0, [$1]; // proton"
// LLVM-NOT: ld.shared
// LLVM-COUNT-2: "@$5 st.global.v4.b32 [$0], {$1, $2, $3, $4}; // proton"
// LLVM: nvvm.bar.warp.sync
// LLVM: "@$2 st.global.b64 [$0], $1; // proton"
func.func @three(%n: i32, %profile: !llvm.ptr<1>) attributes {tt.kernel, proton.abi = ["profile"], ttg.shared = 5120 : i32, proton.profile = {capacity = 64 : i64, clock_bits = 32 : i64, optimized_out = [], payload_slots = 0 : i64, ring = 1024 : i64, sample_programs = 1 : i64, sampled_units = 15 : i64, scopes = [], strategy = "circular", unit_warps = 1 : i64, units = 4 : i64}} {
  %c = arith.constant -1 : i32
  %c1 = arith.constant 1 : i32
  %lower = arith.constant 5 : i32
  %step = arith.constant 2 : i32
  %s = "proton_gpu.init"() : () -> !proton_gpu.segment
  scf.for %i = %lower to %n step %step : i32 {
    %t0 = "proton_gpu.read_counter"() : () -> i64
    %t1 = "proton_gpu.read_counter"() : () -> i64
    %d = arith.subi %i, %lower : i32
    %number = arith.divsi %d, %step : i32
    "proton_gpu.circular_record"(%s, %t0, %t1, %number) {scope_id = 4 : i32, kind = 0 : i32, operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0>} : (!proton_gpu.segment, i64, i64, i32) -> ()
    %next = arith.addi %number, %c1 : i32
    "proton_gpu.circular_record"(%s, %t1, %t1, %next) {scope_id = 5 : i32, kind = 1 : i32, operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0>} : (!proton_gpu.segment, i64, i64, i32) -> ()
    "proton_gpu.circular_record"(%s, %t0, %t1, %i) {scope_id = 6 : i32, kind = 0 : i32, operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0>} : (!proton_gpu.segment, i64, i64, i32) -> ()
  }
  %t = "proton_gpu.read_counter"() : () -> i64
  "proton_gpu.circular_record"(%s, %t, %t, %c) {scope_id = 0 : i32, kind = 0 : i32, operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0>} : (!proton_gpu.segment, i64, i64, i32) -> ()
  "proton_gpu.finalize"(%s) : (!proton_gpu.segment) -> ()
  return
}

// Of two loops the first one's records are written before the second begins.

// CHECK-LABEL: func.func @two(
// One record of a turn stays pending until the next reading of the clock.
// LLVM-LABEL: func.func @two(
// LLVM: scf.for
// LLVM: "mov.u32 $0, %clock; // proton"
// LLVM: "@$2 st.shared.b32 [$0], $1; // proton"
// LLVM: }
// LLVM: "@$2 st.shared.b32 [$0], $1; // proton"
// LLVM: nvvm.bar.warp.sync
// CHECK: "proton_gpu.end_iterations"(%[[A:.*]]) :
// CHECK: "proton_gpu.forget_iterations"(%[[A]])
// CHECK: scf.if
// CHECK: "proton_gpu.begin_iterations"
// CHECK: "proton_gpu.forget_iterations"
// CHECK: "proton_gpu.finalize"
func.func @two(%n: i32, %b: i1, %profile: !llvm.ptr<1>) attributes {tt.kernel, proton.abi = ["profile"], ttg.shared = 5120 : i32, proton.profile = {capacity = 64 : i64, clock_bits = 32 : i64, optimized_out = [], payload_slots = 0 : i64, ring = 1024 : i64, sample_programs = 1 : i64, sampled_units = 15 : i64, scopes = [], strategy = "circular", unit_warps = 1 : i64, units = 4 : i64}} {
  %lower = arith.constant 0 : i32
  %step = arith.constant 1 : i32
  %s = "proton_gpu.init"() : () -> !proton_gpu.segment
  scf.for %i = %lower to %n step %step : i32 {
    %t0 = "proton_gpu.read_counter"() : () -> i64
    "proton_gpu.circular_record"(%s, %t0, %t0, %i) {scope_id = 4 : i32, kind = 0 : i32, operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0>} : (!proton_gpu.segment, i64, i64, i32) -> ()
  }
  scf.if %b {
    scf.for %i = %lower to %n step %step : i32 {
      %t0 = "proton_gpu.read_counter"() : () -> i64
      "proton_gpu.circular_record"(%s, %t0, %t0, %i) {scope_id = 4 : i32, kind = 0 : i32, operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0>} : (!proton_gpu.segment, i64, i64, i32) -> ()
    }
  }
  "proton_gpu.finalize"(%s) : (!proton_gpu.segment) -> ()
  return
}

// Nine readings of eight records that follow each other: two stores of four, and one. Words are
// rounded up to the widest store.

// CHECK-LABEL: func.func @eight(
// CHECK: "proton_gpu.begin_iterations"(%{{.*}}) {iterations = 8 : i32, slots = 8 : i32, words = 12 : i32}
// CHECK-COUNT-4: "proton_gpu.read_counter"
// CHECK-NEXT: "proton_gpu.keep_readings"(%{{.*}}) {first = 0 : i32, operandSegmentSizes = array<i32: 1, 4>}
// CHECK-COUNT-4: "proton_gpu.read_counter"
// CHECK-NEXT: "proton_gpu.keep_readings"(%{{.*}}) {first = 4 : i32, operandSegmentSizes = array<i32: 1, 4>}
// CHECK-NEXT: "proton_gpu.read_counter"
// CHECK-NEXT: "proton_gpu.keep_readings"(%{{.*}}) {first = 8 : i32, operandSegmentSizes = array<i32: 1, 1>}
// CHECK-NEXT: "proton_gpu.end_iteration"
func.func @eight(%n: i32, %profile: !llvm.ptr<1>) attributes {tt.kernel, proton.abi = ["profile"], ttg.shared = 5120 : i32, proton.profile = {capacity = 64 : i64, clock_bits = 32 : i64, optimized_out = [], payload_slots = 0 : i64, ring = 1024 : i64, sample_programs = 1 : i64, sampled_units = 15 : i64, scopes = [], strategy = "circular", unit_warps = 1 : i64, units = 4 : i64}} {
  %lower = arith.constant 0 : i32
  %step = arith.constant 1 : i32
  %s = "proton_gpu.init"() : () -> !proton_gpu.segment
  scf.for %i = %lower to %n step %step : i32 {
    %t0 = "proton_gpu.read_counter"() : () -> i64
    %t1 = "proton_gpu.read_counter"() : () -> i64
    "proton_gpu.circular_record"(%s, %t0, %t1, %i) {scope_id = 0 : i32, kind = 0 : i32, operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0>} : (!proton_gpu.segment, i64, i64, i32) -> ()
    %t2 = "proton_gpu.read_counter"() : () -> i64
    "proton_gpu.circular_record"(%s, %t1, %t2, %i) {scope_id = 1 : i32, kind = 0 : i32, operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0>} : (!proton_gpu.segment, i64, i64, i32) -> ()
    %t3 = "proton_gpu.read_counter"() : () -> i64
    "proton_gpu.circular_record"(%s, %t2, %t3, %i) {scope_id = 2 : i32, kind = 0 : i32, operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0>} : (!proton_gpu.segment, i64, i64, i32) -> ()
    %t4 = "proton_gpu.read_counter"() : () -> i64
    "proton_gpu.circular_record"(%s, %t3, %t4, %i) {scope_id = 3 : i32, kind = 0 : i32, operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0>} : (!proton_gpu.segment, i64, i64, i32) -> ()
    %t5 = "proton_gpu.read_counter"() : () -> i64
    "proton_gpu.circular_record"(%s, %t4, %t5, %i) {scope_id = 4 : i32, kind = 0 : i32, operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0>} : (!proton_gpu.segment, i64, i64, i32) -> ()
    %t6 = "proton_gpu.read_counter"() : () -> i64
    "proton_gpu.circular_record"(%s, %t5, %t6, %i) {scope_id = 5 : i32, kind = 0 : i32, operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0>} : (!proton_gpu.segment, i64, i64, i32) -> ()
    %t7 = "proton_gpu.read_counter"() : () -> i64
    "proton_gpu.circular_record"(%s, %t6, %t7, %i) {scope_id = 6 : i32, kind = 0 : i32, operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0>} : (!proton_gpu.segment, i64, i64, i32) -> ()
    %t8 = "proton_gpu.read_counter"() : () -> i64
    "proton_gpu.circular_record"(%s, %t7, %t8, %i) {scope_id = 7 : i32, kind = 0 : i32, operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0>} : (!proton_gpu.segment, i64, i64, i32) -> ()
  }
  "proton_gpu.finalize"(%s) : (!proton_gpu.segment) -> ()
  return
}

// A loop in another one, a condition, a payload, a branch, and an iteration that is carried: as they
// were, and what else is in the kernel, too.

// CHECK-LABEL: func.func @nested(
// CHECK-SAME: ring = 1024
// CHECK-NOT: _turn
func.func @nested(%n: i32, %profile: !llvm.ptr<1>) attributes {tt.kernel, proton.abi = ["profile"], ttg.shared = 5120 : i32, proton.profile = {capacity = 64 : i64, clock_bits = 32 : i64, optimized_out = [], payload_slots = 0 : i64, ring = 1024 : i64, sample_programs = 1 : i64, sampled_units = 15 : i64, scopes = [], strategy = "circular", unit_warps = 1 : i64, units = 4 : i64}} {
  %lower = arith.constant 0 : i32
  %step = arith.constant 1 : i32
  %s = "proton_gpu.init"() : () -> !proton_gpu.segment
  scf.for %j = %lower to %n step %step : i32 {
    scf.for %i = %lower to %n step %step : i32 {
      %t0 = "proton_gpu.read_counter"() : () -> i64
      "proton_gpu.circular_record"(%s, %t0, %t0, %i) {scope_id = 4 : i32, kind = 0 : i32, operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0>} : (!proton_gpu.segment, i64, i64, i32) -> ()
    }
  }
  "proton_gpu.finalize"(%s) : (!proton_gpu.segment) -> ()
  return
}

// CHECK-LABEL: func.func @condition(
// CHECK-NOT: _turn
func.func @condition(%n: i32, %b: i1, %profile: !llvm.ptr<1>) attributes {tt.kernel, proton.abi = ["profile"], ttg.shared = 5120 : i32, proton.profile = {capacity = 64 : i64, clock_bits = 32 : i64, optimized_out = [], payload_slots = 0 : i64, ring = 1024 : i64, sample_programs = 1 : i64, sampled_units = 15 : i64, scopes = [], strategy = "circular", unit_warps = 1 : i64, units = 4 : i64}} {
  %lower = arith.constant 0 : i32
  %step = arith.constant 1 : i32
  %s = "proton_gpu.init"() : () -> !proton_gpu.segment
  scf.for %i = %lower to %n step %step : i32 {
    %t0 = "proton_gpu.read_counter"() : () -> i64
    "proton_gpu.circular_record"(%s, %t0, %t0, %i) {scope_id = 4 : i32, kind = 0 : i32, operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0>} : (!proton_gpu.segment, i64, i64, i32) -> ()
  }
  scf.for %i = %lower to %n step %step : i32 {
    %t0 = "proton_gpu.read_counter"() : () -> i64
    "proton_gpu.circular_record"(%s, %t0, %t0, %i, %b) {scope_id = 4 : i32, kind = 0 : i32, operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 1>} : (!proton_gpu.segment, i64, i64, i32, i1) -> ()
  }
  "proton_gpu.finalize"(%s) : (!proton_gpu.segment) -> ()
  return
}

// CHECK-LABEL: func.func @payload(
// CHECK-NOT: _turn
func.func @payload(%n: i32, %x: i64, %profile: !llvm.ptr<1>) attributes {tt.kernel, proton.abi = ["profile"], ttg.shared = 5120 : i32, proton.profile = {capacity = 64 : i64, clock_bits = 32 : i64, optimized_out = [], payload_slots = 0 : i64, ring = 1024 : i64, sample_programs = 1 : i64, sampled_units = 15 : i64, scopes = [], strategy = "circular", unit_warps = 1 : i64, units = 4 : i64}} {
  %lower = arith.constant 0 : i32
  %step = arith.constant 1 : i32
  %s = "proton_gpu.init"() : () -> !proton_gpu.segment
  scf.for %i = %lower to %n step %step : i32 {
    %t0 = "proton_gpu.read_counter"() : () -> i64
    "proton_gpu.circular_record"(%s, %t0, %t0, %i, %x) {scope_id = 4 : i32, kind = 0 : i32, operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 0>} : (!proton_gpu.segment, i64, i64, i32, i64) -> ()
  }
  "proton_gpu.finalize"(%s) : (!proton_gpu.segment) -> ()
  return
}

// CHECK-LABEL: func.func @branch(
// CHECK-NOT: _turn
func.func @branch(%n: i32, %b: i1, %profile: !llvm.ptr<1>) attributes {tt.kernel, proton.abi = ["profile"], ttg.shared = 5120 : i32, proton.profile = {capacity = 64 : i64, clock_bits = 32 : i64, optimized_out = [], payload_slots = 0 : i64, ring = 1024 : i64, sample_programs = 1 : i64, sampled_units = 15 : i64, scopes = [], strategy = "circular", unit_warps = 1 : i64, units = 4 : i64}} {
  %lower = arith.constant 0 : i32
  %step = arith.constant 1 : i32
  %s = "proton_gpu.init"() : () -> !proton_gpu.segment
  scf.for %i = %lower to %n step %step : i32 {
    scf.if %b {
      %t0 = "proton_gpu.read_counter"() : () -> i64
      "proton_gpu.circular_record"(%s, %t0, %t0, %i) {scope_id = 4 : i32, kind = 0 : i32, operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0>} : (!proton_gpu.segment, i64, i64, i32) -> ()
    }
  }
  "proton_gpu.finalize"(%s) : (!proton_gpu.segment) -> ()
  return
}

// CHECK-LABEL: func.func @carried(
// CHECK-NOT: _turn
func.func @carried(%n: i32, %profile: !llvm.ptr<1>) attributes {tt.kernel, proton.abi = ["profile"], ttg.shared = 5120 : i32, proton.profile = {capacity = 64 : i64, clock_bits = 32 : i64, optimized_out = [], payload_slots = 0 : i64, ring = 1024 : i64, sample_programs = 1 : i64, sampled_units = 15 : i64, scopes = [], strategy = "circular", unit_warps = 1 : i64, units = 4 : i64}} {
  %lower = arith.constant 0 : i32
  %step = arith.constant 1 : i32
  %s = "proton_gpu.init"() : () -> !proton_gpu.segment
  %last = scf.for %i = %lower to %n step %step iter_args(%k = %lower) -> (i32) : i32 {
    %t0 = "proton_gpu.read_counter"() : () -> i64
    "proton_gpu.circular_record"(%s, %t0, %t0, %k) {scope_id = 4 : i32, kind = 0 : i32, operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0>} : (!proton_gpu.segment, i64, i64, i32) -> ()
    %next = arith.xori %k, %i : i32
    scf.yield %next : i32
  }
  "proton_gpu.finalize"(%s) : (!proton_gpu.segment) -> ()
  return
}
}
