// RUN: proton-opt --pipeline='allocate-profile' %s | filecheck %s
// RUN: proton-opt --pipeline='allocate-profile{capacity=16}' %s | filecheck %s --check-prefix=SIXTEEN
// RUN: proton-opt --pipeline='allocate-profile{strategy=counting}' %s | filecheck %s --check-prefix=COUNTING
// RUN: proton-opt --pipeline='allocate-profile{units=4 clock-bits=32 capacity=5}' %s | filecheck %s --check-prefix=GPU
// RUN: proton-opt --pipeline='allocate-profile{units=4 clock-bits=32 arch=90 buffer=auto}' %s | filecheck %s --check-prefix=AUTO
// RUN: proton-opt --pipeline='allocate-profile{units=4 clock-bits=32 arch=90 buffer=shared}' %s | filecheck %s --check-prefix=SHARED
// RUN: proton-opt --pipeline='allocate-profile{units=4 clock-bits=32 arch=86 buffer=auto}' %s | filecheck %s --check-prefix=AMPERE
// RUN: proton-opt --pipeline='allocate-profile{strategy=flush capacity=4}' %s | filecheck %s --check-prefix=FLUSH

// A block is a header of 128 bytes, 8 for the count, and 24 + 8 * slots for each record, in
// whole cache lines of 64 bytes. One record without payload: 8 is padded to 16: 128 + 16 + 24 = 168 -> 192.

// CHECK-LABEL: func.func @one_record(
// CHECK-SAME: %{{[^:]*}}: !llvm.ptr, %{{[^:]*}}: i32, %{{[^:]*}}: !llvm.ptr, %{{[^:]*}}: i32) attributes {proton.abi = ["program_x", "profile", "thread"]
// CHECK-SAME: proton.block_bytes = 192 : i64
// CHECK-SAME: \22strategy\22: \22circular\22, \22capacity\22: 1, \22payload_slots\22: 0, \22units\22: 1, \22unit_warps\22: 1, \22clock_bits\22: 64, \22block_bytes\22: 192}"

// 16 * 24 + 144 = 528 -> 576

// SIXTEEN-LABEL: func.func @one_record(
// SIXTEEN-SAME: proton.block_bytes = 576 : i64
// SIXTEEN-SAME: \22capacity\22: 16, \22payload_slots\22: 0, \22units\22: 1, \22unit_warps\22: 1, \22clock_bits\22: 64, \22block_bytes\22: 576}"

// 144 -> 192

// COUNTING-LABEL: func.func @one_record(
// COUNTING-SAME: proton.abi = ["program_x", "profile", "thread"]
// COUNTING-SAME: proton.block_bytes = 192 : i64
// COUNTING-SAME: \22strategy\22: \22counting\22, \22capacity\22: 0, \22payload_slots\22: 0, \22units\22: 1, \22unit_warps\22: 1, \22clock_bits\22: 64, \22block_bytes\22: 192}"

// 4 * 24 + 144 = 240 -> 256, and the host's function is an argument

// With four warps of a GPU 128 + 4 * 8 + 4 warps of 8 records (5, rounded up) of 16 bytes = 672 -> 704

// GPU-LABEL: func.func @one_record(
// GPU-SAME: !llvm.ptr<1>) attributes {proton.abi = ["program_x", "profile"]
// GPU-SAME: proton.block_bytes = 704 : i64
// GPU-SAME: \22capacity\22: 8, \22payload_slots\22: 0, \22units\22: 4, \22unit_warps\22: 1, \22clock_bits\22: 32, \22block_bytes\22: 704, \22ring\22: null, \22sampled_units\22: 15, \22sample_programs\22: 1}"

// One record is stored to global memory: nothing waits for it. In shared memory its ring lies at the
// end of what the kernel uses (20 bytes, padded to 32).

// AUTO-LABEL: func.func @one_record(
// AUTO-SAME: \22capacity\22: 1,
// AUTO-SAME: \22ring\22: null, \22sampled_units\22: 15, \22sample_programs\22: 1}"
// AUTO-SAME: ttg.shared = 20 : i32
// SHARED-LABEL: func.func @one_record(
// SHARED-SAME: \22capacity\22: 1,
// SHARED-SAME: \22ring\22: 32, \22sampled_units\22: 15, \22sample_programs\22: 1}"
// SHARED-SAME: ttg.shared = 96 : i32

// FLUSH-LABEL: func.func @one_record(
// FLUSH-SAME: %{{[^:]*}}: !llvm.ptr, %{{[^:]*}}: i32, %{{[^:]*}}: !llvm.ptr, %{{[^:]*}}: i32, %{{[^:]*}}: !llvm.ptr) attributes {proton.abi = ["program_x", "profile", "thread", "flush"]
// FLUSH-SAME: proton.block_bytes = 256 : i64
// FLUSH-SAME: \22strategy\22: \22flush\22, \22capacity\22: 4
func.func @one_record(%p: !llvm.ptr, %x: i32) attributes {tt.kernel, ttg.shared = 20 : i32, proton.abi = ["program_x"], proton.table = "{\22scopes\22: [{\22payload\22: []}], \22emptied\22: []}"} {
  %c = arith.constant 0 : i32
  %s = "proton_gpu.init"() : () -> !proton_gpu.segment
  %t = "proton_gpu.read_counter"() : () -> i64
  "proton_gpu.circular_record"(%s, %t, %t, %c) {scope_id = 0 : i32, kind = 0 : i32, operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0>} : (!proton_gpu.segment, i64, i64, i32) -> ()
  "proton_gpu.finalize"(%s) : (!proton_gpu.segment) -> ()
  return
}

// The widest payload decides for all: 2 * (24 + 16) + 136 = 216 -> 256.

// CHECK-LABEL: func.func @payload(
// CHECK-SAME: proton.block_bytes = 256 : i64
// CHECK-SAME: \22emptied\22: [\22gone\22], \22strategy\22: \22circular\22, \22capacity\22: 2, \22payload_slots\22: 2, \22units\22: 1, \22unit_warps\22: 1, \22clock_bits\22: 64, \22block_bytes\22: 256}"

// 16 * 40 + 136 = 776 -> 832

// SIXTEEN-LABEL: func.func @payload(
// SIXTEEN-SAME: proton.block_bytes = 832 : i64
// COUNTING-LABEL: func.func @payload(
// COUNTING-SAME: \22capacity\22: 0, \22payload_slots\22: 2, \22units\22: 1, \22unit_warps\22: 1, \22clock_bits\22: 64, \22block_bytes\22: 192}"
func.func @payload(%n: i64) attributes {tt.kernel, proton.table = "{\22scopes\22: [{\22payload\22: []}, {\22payload\22: [[\22n\22, \22int\22], [\22m\22, \22int\22]]}], \22emptied\22: [\22gone\22]}"} {
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
// AUTO-SAME: \22capacity\22: 128,
// AUTO-SAME: \22ring\22: 0, \22sampled_units\22: 15, \22sample_programs\22: 1}"
// AUTO-SAME: ttg.shared = 8192 : i32
// AUTO-LABEL: func.func @much_is_used(
// AUTO-SAME: \22capacity\22: 64,
// AUTO-SAME: \22ring\22: 50000, \22sampled_units\22: 15, \22sample_programs\22: 1}"
// SHARED-LABEL: func.func @much_is_used(
// SHARED-SAME: \22ring\22: 50000, \22sampled_units\22: 15, \22sample_programs\22: 1}"
// AMPERE-LABEL: func.func @much_is_used(
// AMPERE-SAME: \22capacity\22: 64,
// AMPERE-SAME: \22ring\22: null, \22sampled_units\22: 15, \22sample_programs\22: 1}"
// AMPERE-SAME: ttg.shared = 50000 : i32

// CHECK-LABEL: func.func @in_a_loop(
// CHECK-SAME: proton.block_bytes = 6336 : i64
// CHECK-SAME: \22capacity\22: 256
// SIXTEEN-LABEL: func.func @in_a_loop(
// SIXTEEN-SAME: \22capacity\22: 16
func.func @in_a_loop(%n: index, %c: i1) attributes {tt.kernel, proton.table = "{\22scopes\22: [{\22payload\22: []}], \22emptied\22: []}"} {
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

func.func @much_is_used(%n: index) attributes {tt.kernel, ttg.shared = 50000 : i32, proton.table = "{\22scopes\22: [{\22payload\22: []}], \22emptied\22: []}"} {
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
