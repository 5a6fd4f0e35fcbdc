// RUN: proton-opt --pipeline='allocate-profile' %s | filecheck %s
// RUN: proton-opt --pipeline='allocate-profile{capacity=16}' %s | filecheck %s --check-prefix=SIXTEEN
// RUN: proton-opt --pipeline='allocate-profile{strategy=counting}' %s | filecheck %s --check-prefix=COUNTING
// RUN: proton-opt --pipeline='allocate-profile{units=4 clock-bits=32 capacity=5}' %s | filecheck %s --check-prefix=GPU
// RUN: proton-opt --pipeline='allocate-profile{units=4 clock-bits=32 arch=90 buffer=auto}' %s | filecheck %s --check-prefix=AUTO
// RUN: proton-opt --pipeline='allocate-profile{units=4 clock-bits=32 arch=90 buffer=shared}' %s | filecheck %s --check-prefix=SHARED
// RUN: proton-opt --pipeline='allocate-profile{units=4 clock-bits=32 arch=86 buffer=auto}' %s | filecheck %s --check-prefix=AMPERE
// RUN: proton-opt --pipeline='allocate-profile{strategy=flush capacity=4}' %s | filecheck %s --check-prefix=FLUSH

// As many records as the kernel makes, or what was asked for.

// CHECK-LABEL: func.func @one_record(
// CHECK-SAME: %{{[^:]*}}: !llvm.ptr, %{{[^:]*}}: i32, %{{[^:]*}}: !llvm.ptr, %{{[^:]*}}: i32) attributes {proton.abi = ["program_x", "profile", "thread"]
// CHECK-SAME: proton.profile = {capacity = 1 : i64, clock_bits = 64 : i64, optimized_out = [], payload_slots = 0 : i64, sample_programs = 1 : i64, sampled_units = 0 : i64, scopes = {{.*}}, strategy = "circular", unit_warps = 1 : i64, units = 1 : i64}

// SIXTEEN-LABEL: func.func @one_record(
// SIXTEEN-SAME: proton.profile = {capacity = 16 : i64, clock_bits = 64 : i64, optimized_out = [], payload_slots = 0 : i64, sample_programs = 1 : i64, sampled_units = 0 : i64, scopes = {{.*}}, strategy = "circular", unit_warps = 1 : i64, units = 1 : i64}

// COUNTING-LABEL: func.func @one_record(
// COUNTING-SAME: proton.abi = ["program_x", "profile", "thread"]
// COUNTING-SAME: proton.profile = {capacity = 0 : i64, clock_bits = 64 : i64, optimized_out = [], payload_slots = 0 : i64, sample_programs = 1 : i64, sampled_units = 0 : i64, scopes = {{.*}}, strategy = "counting", unit_warps = 1 : i64, units = 1 : i64}

// A warp of a GPU has 8 records (5, rounded up).

// GPU-LABEL: func.func @one_record(
// GPU-SAME: !llvm.ptr<1>) attributes {proton.abi = ["program_x", "profile"]
// GPU-SAME: proton.profile = {capacity = 8 : i64, clock_bits = 32 : i64, optimized_out = [], payload_slots = 0 : i64, sample_programs = 1 : i64, sampled_units = 15 : i64, scopes = {{.*}}, strategy = "circular", unit_warps = 1 : i64, units = 4 : i64}

// One record is stored to global memory: nothing waits for it. In shared memory its ring lies at the
// end of what the kernel uses (20 bytes, padded to 32).

// AUTO-LABEL: func.func @one_record(
// AUTO-SAME: capacity = 1 : i64, {{.*}}payload_slots = 0 : i64, sample_programs = 1 : i64, sampled_units = 15 : i64
// AUTO-SAME: ttg.shared = 20 : i32
// SHARED-LABEL: func.func @one_record(
// SHARED-SAME: capacity = 1 : i64, {{.*}}payload_slots = 0 : i64, ring = 32 : i64, sample_programs = 1 : i64, sampled_units = 15 : i64
// SHARED-SAME: ttg.shared = 96 : i32

// The host's function is an argument.

// FLUSH-LABEL: func.func @one_record(
// FLUSH-SAME: %{{[^:]*}}: !llvm.ptr, %{{[^:]*}}: i32, %{{[^:]*}}: !llvm.ptr, %{{[^:]*}}: i32, %{{[^:]*}}: !llvm.ptr) attributes {proton.abi = ["program_x", "profile", "thread", "flush"]
// FLUSH-SAME: capacity = 4 : i64, {{.*}}strategy = "flush"
func.func @one_record(%p: !llvm.ptr, %x: i32) attributes {tt.kernel, ttg.shared = 20 : i32, proton.abi = ["program_x"], proton.table = {optimized_out = [], scopes = [{file = "", fused = false, kind = "slice", line = 0 : i64, name = "s", path = "s", payload = []}]}} {
  %c = arith.constant 0 : i32
  %s = "proton_gpu.init"() : () -> !proton_gpu.segment
  %t = "proton_gpu.read_counter"() : () -> i64
  "proton_gpu.circular_record"(%s, %t, %t, %c) {scope_id = 0 : i32, kind = 0 : i32, operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0>} : (!proton_gpu.segment, i64, i64, i32) -> ()
  "proton_gpu.finalize"(%s) : (!proton_gpu.segment) -> ()
  return
}

// The widest payload decides for all: 2 * (24 + 16) + 136 = 216 -> 256.

// CHECK-LABEL: func.func @payload(
// CHECK-SAME: proton.profile = {capacity = 2 : i64, clock_bits = 64 : i64, optimized_out = ["gone"], payload_slots = 2 : i64, sample_programs = 1 : i64, sampled_units = 0 : i64, scopes = {{.*}}, strategy = "circular", unit_warps = 1 : i64, units = 1 : i64}

// 16 * 40 + 136 = 776 -> 832

// SIXTEEN-LABEL: func.func @payload(
// COUNTING-LABEL: func.func @payload(
// COUNTING-SAME: proton.profile = {capacity = 0 : i64, clock_bits = 64 : i64, optimized_out = ["gone"], payload_slots = 2 : i64, sample_programs = 1 : i64, sampled_units = 0 : i64, scopes = {{.*}}, strategy = "counting", unit_warps = 1 : i64, units = 1 : i64}
func.func @payload(%n: i64) attributes {tt.kernel, proton.table = {optimized_out = ["gone"], scopes = [{file = "", fused = false, kind = "slice", line = 0 : i64, name = "s", path = "s", payload = []}, {file = "", fused = false, kind = "slice", line = 0 : i64, name = "s", path = "s", payload = [["n", "int"], ["m", "int"]]}]}} {
  %c = arith.constant 0 : i32
  %s = "proton_gpu.init"() : () -> !proton_gpu.segment
  %t = "proton_gpu.read_counter"() : () -> i64
  "proton_gpu.circular_record"(%s, %t, %t, %c) {scope_id = 0 : i32, kind = 0 : i32, operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0>} : (!proton_gpu.segment, i64, i64, i32) -> ()
  "proton_gpu.circular_record"(%s, %t, %t, %c, %n, %n) {scope_id = 1 : i32, kind = 0 : i32, operandSegmentSizes = array<i32: 1, 1, 1, 1, 2, 0>} : (!proton_gpu.segment, i64, i64, i32, i64, i64) -> ()
  "proton_gpu.finalize"(%s) : (!proton_gpu.segment) -> ()
  return
}

// In a loop, nobody knows how many: 256 * 24 + 136 = 6280 -> 6336.

// On a GPU as many as leave an SM its 16 programs of 128 threads: (228 KiB / 16 - 1 KiB) / (4 * 16
// bytes) = 212 -> 128; where 50,000 bytes are used, its 4: (228 KiB / 4 - 1 KiB - 50,000) / 64 =
// 114 -> 64. With 100 KiB there is no room: 2 programs, 100 KiB / 2 - 1 KiB - 50,000 = 176 bytes.

// AUTO-LABEL: func.func @in_a_loop(
// AUTO-SAME: capacity = 128 : i64, {{.*}}payload_slots = 0 : i64, ring = 0 : i64, sample_programs = 1 : i64, sampled_units = 15 : i64
// AUTO-SAME: ttg.shared = 8192 : i32
// AUTO-LABEL: func.func @much_is_used(
// AUTO-SAME: capacity = 64 : i64, {{.*}}payload_slots = 0 : i64, ring = 50000 : i64, sample_programs = 1 : i64, sampled_units = 15 : i64
// SHARED-LABEL: func.func @much_is_used(
// SHARED-SAME: ring = 50000 : i64, sample_programs = 1 : i64, sampled_units = 15 : i64
// AMPERE-LABEL: func.func @much_is_used(
// AMPERE-SAME: capacity = 64 : i64, {{.*}}payload_slots = 0 : i64, sample_programs = 1 : i64, sampled_units = 15 : i64
// AMPERE-SAME: ttg.shared = 50000 : i32

// CHECK-LABEL: func.func @in_a_loop(
// CHECK-SAME: capacity = 256 : i64
// SIXTEEN-LABEL: func.func @in_a_loop(
// SIXTEEN-SAME: capacity = 16 : i64
func.func @in_a_loop(%n: index, %c: i1) attributes {tt.kernel, proton.table = {optimized_out = [], scopes = [{file = "", fused = false, kind = "slice", line = 0 : i64, name = "s", path = "s", payload = []}]}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %i = arith.constant 0 : i32
  %s = "proton_gpu.init"() : () -> !proton_gpu.segment
  scf.for %j = %c0 to %n step %c1 {
    scf.if %c {
      %t = "proton_gpu.read_counter"() : () -> i64
      "proton_gpu.circular_record"(%s, %t, %t, %i) {scope_id = 0 : i32, kind = 0 : i32, operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0>} : (!proton_gpu.segment, i64, i64, i32) -> ()
    }
  }
  "proton_gpu.finalize"(%s) : (!proton_gpu.segment) -> ()
  return
}

func.func @much_is_used(%n: index) attributes {tt.kernel, ttg.shared = 50000 : i32, proton.table = {optimized_out = [], scopes = [{file = "", fused = false, kind = "slice", line = 0 : i64, name = "s", path = "s", payload = []}]}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %i = arith.constant 0 : i32
  %s = "proton_gpu.init"() : () -> !proton_gpu.segment
  scf.for %j = %c0 to %n step %c1 {
    %t = "proton_gpu.read_counter"() : () -> i64
    "proton_gpu.circular_record"(%s, %t, %t, %i) {scope_id = 0 : i32, kind = 0 : i32, operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0>} : (!proton_gpu.segment, i64, i64, i32) -> ()
  }
  "proton_gpu.finalize"(%s) : (!proton_gpu.segment) -> ()
  return
}

// CHECK-LABEL: func.func @no_records(
// CHECK-SAME: %{{[^:]*}}: !llvm.ptr) attributes {proton.abi = ["program_x"], tt.kernel}
// FLUSH-LABEL: func.func @no_records(
// FLUSH-SAME: %{{[^:]*}}: !llvm.ptr) attributes {proton.abi = ["program_x"], tt.kernel}
func.func @no_records(%p: !llvm.ptr) attributes {tt.kernel, proton.abi = ["program_x"]} {
  return
}
