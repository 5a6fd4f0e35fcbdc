// RUN: proton-opt --pipeline='compact-iterations{arch=90}' %s | filecheck %s
module attributes {"ttg.num-warps" = 4 : i32} {
// Turns of 64 x 64 x 64 multiply-adds are long: each 64 of them write their records, 64 of one, two for
// each lane, and behind the loop what is left is written.

// CHECK-LABEL: func.func @long(
// CHECK-SAME: iteration_bytes = 512 : i64, iterations = 1024 : i64
// CHECK: %[[L:.*]] = "proton_gpu.begin_iterations"(%{{.*}}) {iterations = 64 : i32, slots = 1 : i32, words = 2 : i32}
// CHECK: scf.for
// CHECK: "tt.dot"
// CHECK: "proton_gpu.keep_readings"
// CHECK-NEXT: "proton_gpu.end_iteration"(%[[L]])
// CHECK-NEXT: %[[N:.*]] = "proton_gpu.kept_iterations"(%[[L]])
// CHECK-NEXT: %[[MOST:.*]] = arith.constant 64 : i32
// CHECK-NEXT: %[[FULL:.*]] = arith.cmpi eq, %[[N]], %[[MOST]]
// CHECK-NEXT: scf.if %[[FULL]] {
// CHECK-NEXT: %[[K:.*]]:2 = "proton_gpu.kept_records"(%[[L]])
// CHECK-COUNT-2: "proton_gpu.kept_readings"(%[[L]], {{.*}}) {ends = [1 : i32], starts = [0 : i32]}
// CHECK-COUNT-2: "proton_gpu.write_record"(%[[L]],
// CHECK-NEXT: "proton_gpu.forget_iterations"(%[[L]])
// CHECK-NEXT: }
// CHECK-NEXT: scf.yield
// CHECK: "proton_gpu.end_iterations"(%[[L]])
// CHECK-NEXT: %[[M:.*]] = "proton_gpu.kept_iterations"(%[[L]])
// CHECK: %[[SOME:.*]] = arith.cmpi ne, %[[M]],
// CHECK-NEXT: scf.if %[[SOME]] {
// CHECK-COUNT-2: "proton_gpu.write_record"(%[[L]],
// CHECK-NEXT: "proton_gpu.forget_iterations"(%[[L]])
// CHECK-NEXT: }
// CHECK-NEXT: "proton_gpu.finalize"
func.func @long(%n: i32, %a: tensor<64x64xf16>, %c: tensor<64x64xf32>, %profile: !llvm.ptr<1>) attributes {tt.kernel, proton.abi = ["profile"], ttg.shared = 5120 : i32, proton.profile = {capacity = 64 : i64, clock_bits = 32 : i64, optimized_out = [], payload_slots = 0 : i64, ring = 1024 : i64, sample_programs = 1 : i64, sampled_units = 15 : i64, scopes = [], strategy = "circular", unit_warps = 1 : i64, units = 4 : i64}} {
  %lower = arith.constant 0 : i32
  %step = arith.constant 1 : i32
  %s = "proton_gpu.init"() : () -> !proton_gpu.segment
    %r = scf.for %i = %lower to %n step %step iter_args(%sum = %c) -> (tensor<64x64xf32>) : i32 {
      %t0 = "proton_gpu.read_counter"() : () -> i64
      %d = "tt.dot"(%a, %a, %sum) {inputPrecision = "ieee", maxNumImpreciseAcc = 0 : i32} : (tensor<64x64xf16>, tensor<64x64xf16>, tensor<64x64xf32>) -> tensor<64x64xf32>
      %t1 = "proton_gpu.read_counter"() : () -> i64
      "proton_gpu.circular_record"(%s, %t0, %t1, %i) {scope_id = 4 : i32, kind = 0 : i32, operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0>} : (!proton_gpu.segment, i64, i64, i32) -> ()
      scf.yield %d : tensor<64x64xf32>
    }
  "proton_gpu.finalize"(%s) : (!proton_gpu.segment) -> ()
  return
}

// The readings of two records and more are a batch where the iterations follow from the number of
// the turn alone: the profile says how. In the second loop one does not.

// CHECK-LABEL: func.func @batches(
// CHECK-SAME: iteration_bytes = 512 : i64
// CHECK-SAME{LITERAL}: loops = [[[4, 0, 1, 1, 0], [5, 1, 2, 1, 2], [4, 1, 2, 0, -1]]]
// CHECK: "proton_gpu.begin_iterations"(%{{.*}}) {iterations = 16 : i32, slots = 3 : i32, words = 4 : i32}
// CHECK: scf.if
// CHECK-NEXT: %[[ZERO:.*]] = arith.constant 0 : i32
// CHECK-NEXT: "proton_gpu.write_batch"(%{{.*}}, %[[ZERO]]) {number = 0 : i32}
// CHECK-NEXT: "proton_gpu.forget_iterations"
// CHECK: "proton_gpu.end_iterations"
// CHECK: scf.if
// CHECK: "proton_gpu.write_batch"(%{{.*}}, %{{.*}}) {number = 0 : i32}
// CHECK-NEXT: "proton_gpu.forget_iterations"
// CHECK: scf.if
// CHECK-NEXT: "proton_gpu.kept_records"
// CHECK-NOT: write_batch
func.func @batches(%n: i32, %a: tensor<64x64xf16>, %c: tensor<64x64xf32>, %profile: !llvm.ptr<1>) attributes {tt.kernel, proton.abi = ["profile"], ttg.shared = 5120 : i32, proton.profile = {capacity = 64 : i64, clock_bits = 32 : i64, optimized_out = [], payload_slots = 0 : i64, ring = 1024 : i64, sample_programs = 1 : i64, sampled_units = 15 : i64, scopes = [], strategy = "circular", unit_warps = 1 : i64, units = 4 : i64}} {
  %lower = arith.constant 0 : i32
  %step = arith.constant 2 : i32
  %none = arith.constant -1 : i32
  %two = arith.constant 2 : i64
  %s = "proton_gpu.init"() : () -> !proton_gpu.segment
  %r = scf.for %i = %lower to %n step %step iter_args(%sum = %c) -> (tensor<64x64xf32>) : i32 {
    %t0 = "proton_gpu.read_counter"() : () -> i64
    %d = "tt.dot"(%a, %a, %sum) {inputPrecision = "ieee", maxNumImpreciseAcc = 0 : i32} : (tensor<64x64xf16>, tensor<64x64xf16>, tensor<64x64xf32>) -> tensor<64x64xf32>
    %t1 = "proton_gpu.read_counter"() : () -> i64
    %passed = arith.subi %i, %lower : i32
    %number = arith.divsi %passed, %step : i32
    "proton_gpu.circular_record"(%s, %t0, %t1, %number) {scope_id = 4 : i32, kind = 0 : i32, operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0>} : (!proton_gpu.segment, i64, i64, i32) -> ()
    %t2 = "proton_gpu.read_counter"() : () -> i64
    %wide = arith.extsi %number : i32 to i64
    %ahead = arith.addi %wide, %two : i64
    %later = arith.trunci %ahead : i64 to i32
    "proton_gpu.circular_record"(%s, %t1, %t2, %later) {scope_id = 5 : i32, kind = 0 : i32, operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0>} : (!proton_gpu.segment, i64, i64, i32) -> ()
    "proton_gpu.circular_record"(%s, %t1, %t2, %none) {scope_id = 4 : i32, kind = 0 : i32, operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0>} : (!proton_gpu.segment, i64, i64, i32) -> ()
    scf.yield %d : tensor<64x64xf32>
  }
  %r2 = scf.for %i = %lower to %n step %step iter_args(%sum = %r) -> (tensor<64x64xf32>) : i32 {
    %t0 = "proton_gpu.read_counter"() : () -> i64
    %d = "tt.dot"(%a, %a, %sum) {inputPrecision = "ieee", maxNumImpreciseAcc = 0 : i32} : (tensor<64x64xf16>, tensor<64x64xf16>, tensor<64x64xf32>) -> tensor<64x64xf32>
    %t1 = "proton_gpu.read_counter"() : () -> i64
    %passed = arith.subi %i, %lower : i32
    %number = arith.divsi %passed, %step : i32
    "proton_gpu.circular_record"(%s, %t0, %t1, %number) {scope_id = 4 : i32, kind = 0 : i32, operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0>} : (!proton_gpu.segment, i64, i64, i32) -> ()
    %t2 = "proton_gpu.read_counter"() : () -> i64
    %sum_of = arith.addi %number, %n : i32
    "proton_gpu.circular_record"(%s, %t1, %t2, %sum_of) {scope_id = 5 : i32, kind = 0 : i32, operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0>} : (!proton_gpu.segment, i64, i64, i32) -> ()
    scf.yield %d : tensor<64x64xf32>
  }
  "proton_gpu.finalize"(%s) : (!proton_gpu.segment) -> ()
  return
}

// Arithmetic beside the product: its threads are not idle.

// CHECK-LABEL: func.func @busy(
// CHECK: "proton_gpu.begin_iterations"(%{{.*}}) {iterations = 64 : i32, slots = 1 : i32, words = 2 : i32}
// CHECK-NOT: kept_turns
func.func @busy(%n: i32, %a: tensor<64x64xf16>, %c: tensor<64x64xf32>, %profile: !llvm.ptr<1>) attributes {tt.kernel, proton.abi = ["profile"], ttg.shared = 5120 : i32, proton.profile = {capacity = 64 : i64, clock_bits = 32 : i64, optimized_out = [], payload_slots = 0 : i64, ring = 1024 : i64, sample_programs = 1 : i64, sampled_units = 15 : i64, scopes = [], strategy = "circular", unit_warps = 1 : i64, units = 4 : i64}} {
  %lower = arith.constant 0 : i32
  %step = arith.constant 1 : i32
  %s = "proton_gpu.init"() : () -> !proton_gpu.segment
    %r = scf.for %i = %lower to %n step %step iter_args(%sum = %c) -> (tensor<64x64xf32>) : i32 {
      %t0 = "proton_gpu.read_counter"() : () -> i64
      %d = "tt.dot"(%a, %a, %sum) {inputPrecision = "ieee", maxNumImpreciseAcc = 0 : i32} : (tensor<64x64xf16>, tensor<64x64xf16>, tensor<64x64xf32>) -> tensor<64x64xf32>
      %t1 = "proton_gpu.read_counter"() : () -> i64
      "proton_gpu.circular_record"(%s, %t0, %t1, %i) {scope_id = 4 : i32, kind = 0 : i32, operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0>} : (!proton_gpu.segment, i64, i64, i32) -> ()
      %e = arith.mulf %d, %d : tensor<64x64xf32>
      scf.yield %e : tensor<64x64xf32>
    }
  "proton_gpu.finalize"(%s) : (!proton_gpu.segment) -> ()
  return
}

// A kernel that has its ring buffer in global memory keeps these readings in shared memory, too, in
// nested loops as well.

// CHECK-LABEL: func.func @global(
// CHECK-SAME: iteration_bytes = 512 : i64, iterations = 5120 : i64
// CHECK-SAME: ttg.shared = 7168 : i32
// CHECK: "proton_gpu.kept_iterations"
func.func @global(%n: i32, %a: tensor<64x64xf16>, %c: tensor<64x64xf32>, %profile: !llvm.ptr<1>) attributes {tt.kernel, proton.abi = ["profile"], ttg.shared = 5120 : i32, proton.profile = {capacity = 64 : i64, clock_bits = 32 : i64, optimized_out = [], payload_slots = 0 : i64, sample_programs = 1 : i64, sampled_units = 15 : i64, scopes = [], strategy = "circular", unit_warps = 1 : i64, units = 4 : i64}} {
  %lower = arith.constant 0 : i32
  %step = arith.constant 1 : i32
  %s = "proton_gpu.init"() : () -> !proton_gpu.segment
  scf.for %j = %lower to %n step %step : i32 {
    %r = scf.for %i = %lower to %n step %step iter_args(%sum = %c) -> (tensor<64x64xf32>) : i32 {
      %t0 = "proton_gpu.read_counter"() : () -> i64
      %d = "tt.dot"(%a, %a, %sum) {inputPrecision = "ieee", maxNumImpreciseAcc = 0 : i32} : (tensor<64x64xf16>, tensor<64x64xf16>, tensor<64x64xf32>) -> tensor<64x64xf32>
      %t1 = "proton_gpu.read_counter"() : () -> i64
      "proton_gpu.circular_record"(%s, %t0, %t1, %i) {scope_id = 4 : i32, kind = 0 : i32, operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0>} : (!proton_gpu.segment, i64, i64, i32) -> ()
      scf.yield %d : tensor<64x64xf32>
    }
  }
  "proton_gpu.finalize"(%s) : (!proton_gpu.segment) -> ()
  return
}

// Short turns of such a kernel run in chunks of 64 records, which write them at their end. An
// iteration is counted from the beginning of the loop.

// CHECK-LABEL: func.func @short(
// CHECK-SAME: iteration_bytes = 512 : i64, iterations = 5120 : i64
// CHECK-SAME: ttg.shared = 7168 : i32
// CHECK: scf.for
// CHECK: scf.for unsigned %[[CHUNK:.*]] = %{{.*}} to %{{.*}} step
// CHECK: %[[FIRST:.*]] = arith.muli %[[CHUNK]],
// CHECK: "proton_gpu.begin_iterations"(%{{.*}}) {iterations = 64 : i32, slots = 1 : i32, words = 2 : i32}
// CHECK: scf.for
// CHECK: "proton_gpu.keep_readings"
// CHECK: "proton_gpu.end_iterations"
// CHECK-NEXT: "proton_gpu.kept_records"
// CHECK: %[[NUMBER:.*]] = arith.addi %[[FIRST]],
// CHECK-NEXT: "proton_gpu.write_record"({{.*}}, %[[NUMBER]])
// CHECK: "proton_gpu.forget_iterations"
// CHECK: "proton_gpu.finalize"
func.func @short(%n: i32, %a: tensor<64x64xf16>, %c: tensor<64x64xf32>, %profile: !llvm.ptr<1>) attributes {tt.kernel, proton.abi = ["profile"], ttg.shared = 5120 : i32, proton.profile = {capacity = 64 : i64, clock_bits = 32 : i64, optimized_out = [], payload_slots = 0 : i64, sample_programs = 1 : i64, sampled_units = 15 : i64, scopes = [], strategy = "circular", unit_warps = 1 : i64, units = 4 : i64}} {
  %lower = arith.constant 0 : i32
  %step = arith.constant 1 : i32
  %s = "proton_gpu.init"() : () -> !proton_gpu.segment
  scf.for %j = %lower to %n step %step : i32 {
    %r = scf.for %i = %lower to %n step %step iter_args(%sum = %c) -> (tensor<64x64xf32>) : i32 {
      %d0 = arith.subi %i, %lower : i32
      %number = arith.divsi %d0, %step : i32
      %t0 = "proton_gpu.read_counter"() : () -> i64
      %d = arith.addf %sum, %sum : tensor<64x64xf32>
      %t1 = "proton_gpu.read_counter"() : () -> i64
      "proton_gpu.circular_record"(%s, %t0, %t1, %number) {scope_id = 4 : i32, kind = 0 : i32, operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0>} : (!proton_gpu.segment, i64, i64, i32) -> ()
      scf.yield %d : tensor<64x64xf32>
    }
  }
  "proton_gpu.finalize"(%s) : (!proton_gpu.segment) -> ()
  return
}

// Nor do loops of several records write them themselves whose turns are short.

// CHECK-LABEL: func.func @alone(
// CHECK: scf.for unsigned
// CHECK: "proton_gpu.begin_iterations"(%{{.*}}) {iterations = 32 : i32, slots = 2 : i32, words = 2 : i32}
// CHECK-NOT: kept_turns
func.func @alone(%n: i32, %a: tensor<64x64xf16>, %c: tensor<64x64xf32>, %profile: !llvm.ptr<1>) attributes {tt.kernel, proton.abi = ["profile"], ttg.shared = 5120 : i32, proton.profile = {capacity = 64 : i64, clock_bits = 32 : i64, optimized_out = [], payload_slots = 0 : i64, sample_programs = 1 : i64, sampled_units = 15 : i64, scopes = [], strategy = "circular", unit_warps = 1 : i64, units = 4 : i64}} {
  %lower = arith.constant 0 : i32
  %step = arith.constant 1 : i32
  %s = "proton_gpu.init"() : () -> !proton_gpu.segment
  %r = scf.for %i = %lower to %n step %step iter_args(%sum = %c) -> (tensor<64x64xf32>) : i32 {
    %t0 = "proton_gpu.read_counter"() : () -> i64
    %d = arith.addf %sum, %sum : tensor<64x64xf32>
    %t1 = "proton_gpu.read_counter"() : () -> i64
    "proton_gpu.circular_record"(%s, %t0, %t1, %i) {scope_id = 4 : i32, kind = 0 : i32, operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0>} : (!proton_gpu.segment, i64, i64, i32) -> ()
    "proton_gpu.circular_record"(%s, %t1, %t1, %i) {scope_id = 5 : i32, kind = 0 : i32, operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0>} : (!proton_gpu.segment, i64, i64, i32) -> ()
    scf.yield %d : tensor<64x64xf32>
  }
  "proton_gpu.finalize"(%s) : (!proton_gpu.segment) -> ()
  return
}

// Fewer turns are kept where more would leave fewer programs on an SM.

// CHECK-LABEL: func.func @tight(
// CHECK-SAME: iteration_bytes = 128 : i64, iterations = 56576 : i64
// CHECK-SAME: ttg.shared = 57088 : i32
// CHECK: "proton_gpu.begin_iterations"(%{{.*}}) {iterations = 16 : i32, slots = 1 : i32, words = 2 : i32}
func.func @tight(%n: i32, %a: tensor<64x64xf16>, %c: tensor<64x64xf32>, %profile: !llvm.ptr<1>) attributes {tt.kernel, proton.abi = ["profile"], ttg.shared = 56576 : i32, proton.profile = {capacity = 64 : i64, clock_bits = 32 : i64, optimized_out = [], payload_slots = 0 : i64, sample_programs = 1 : i64, sampled_units = 15 : i64, scopes = [], strategy = "circular", unit_warps = 1 : i64, units = 4 : i64}} {
  %lower = arith.constant 0 : i32
  %step = arith.constant 1 : i32
  %s = "proton_gpu.init"() : () -> !proton_gpu.segment
  scf.for %j = %lower to %n step %step : i32 {
    %r = scf.for %i = %lower to %n step %step iter_args(%sum = %c) -> (tensor<64x64xf32>) : i32 {
      %t0 = "proton_gpu.read_counter"() : () -> i64
      %d = "tt.dot"(%a, %a, %sum) {inputPrecision = "ieee", maxNumImpreciseAcc = 0 : i32} : (tensor<64x64xf16>, tensor<64x64xf16>, tensor<64x64xf32>) -> tensor<64x64xf32>
      %t1 = "proton_gpu.read_counter"() : () -> i64
      "proton_gpu.circular_record"(%s, %t0, %t1, %i) {scope_id = 4 : i32, kind = 0 : i32, operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0>} : (!proton_gpu.segment, i64, i64, i32) -> ()
      scf.yield %d : tensor<64x64xf32>
    }
  }
  "proton_gpu.finalize"(%s) : (!proton_gpu.segment) -> ()
  return
}

// Where four programs take all of an SM's memory, and fewer would be on it, registers keep the turns,
// one in each lane.

// CHECK-LABEL: func.func @full(
// CHECK-SAME: ttg.shared = 57344 : i32
// CHECK: "proton_gpu.begin_iterations"(%{{.*}}) {iterations = 32 : i32, slots = 1 : i32, words = 2 : i32}
func.func @full(%n: i32, %a: tensor<64x64xf16>, %c: tensor<64x64xf32>, %profile: !llvm.ptr<1>) attributes {tt.kernel, proton.abi = ["profile"], ttg.shared = 57344 : i32, proton.profile = {capacity = 64 : i64, clock_bits = 32 : i64, optimized_out = [], payload_slots = 0 : i64, sample_programs = 1 : i64, sampled_units = 15 : i64, scopes = [], strategy = "circular", unit_warps = 1 : i64, units = 4 : i64}} {
  %lower = arith.constant 0 : i32
  %step = arith.constant 1 : i32
  %s = "proton_gpu.init"() : () -> !proton_gpu.segment
  scf.for %j = %lower to %n step %step : i32 {
    %r = scf.for %i = %lower to %n step %step iter_args(%sum = %c) -> (tensor<64x64xf32>) : i32 {
      %t0 = "proton_gpu.read_counter"() : () -> i64
      %d = "tt.dot"(%a, %a, %sum) {inputPrecision = "ieee", maxNumImpreciseAcc = 0 : i32} : (tensor<64x64xf16>, tensor<64x64xf16>, tensor<64x64xf32>) -> tensor<64x64xf32>
      %t1 = "proton_gpu.read_counter"() : () -> i64
      "proton_gpu.circular_record"(%s, %t0, %t1, %i) {scope_id = 4 : i32, kind = 0 : i32, operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0>} : (!proton_gpu.segment, i64, i64, i32) -> ()
      scf.yield %d : tensor<64x64xf32>
    }
  }
  "proton_gpu.finalize"(%s) : (!proton_gpu.segment) -> ()
  return
}
}
