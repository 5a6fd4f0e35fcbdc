// RUN: proton-opt --pipeline='allocate-shared-memory,ttg-to-llvm{target=cuda:90}' %s | filecheck %s
// A record is stored behind the next reading of the clock, or at the end; before there is any, it
// is one of no scope.

module attributes {"ttg.num-warps" = 4 : i32} {
// CHECK-LABEL: func.func @one_record(
// CHECK: llvm.inline_asm has_side_effects "mov.u32 $0, %smid; // proton"
// CHECK: llvm.inline_asm has_side_effects "mov.u64 $0, %globaltimer; // proton"
// CHECK: llvm.inline_asm has_side_effects "mov.u64 $0, %clock64; // proton"
// CHECK: "st.global.v4.b32 [$0], {$1, $2, $3, $4}; // proton", "l,r,r,r,r"
// CHECK: "st.global.v2.b32 [$0], {$1, $2}; // proton", "l,r,r"
// CHECK: "st.global.v4.b32 [$0], {$1, $2, $3, $4}; // proton", "l,r,r,r,r"
// CHECK: %[[START:.*]] = llvm.inline_asm has_side_effects "mov.u32 $0, %clock; // proton", "=r"
// CHECK-NOT: st.global
// CHECK: %[[END:.*]] = llvm.inline_asm has_side_effects "mov.u32 $0, %clock; // proton", "=r"
// CHECK-NOT: st.global
// CHECK: llvm.store %[[START]], %[[PENDING_START:.*]] {alignment
// CHECK: llvm.store %[[END]], %[[PENDING_END:.*]] {alignment
// CHECK: %[[NEXT:.*]] = llvm.inline_asm has_side_effects "mov.u32 $0, %clock; // proton", "=r"
// CHECK: %[[S:.*]] = llvm.load %[[PENDING_START]]
// CHECK: %[[E:.*]] = llvm.load %[[PENDING_END]]
// CHECK: llvm.inline_asm has_side_effects "@$5 st.global.v4.b32 [$0], {$1, $2, $3, $4}; // proton", "l,r,r,r,r,b" %{{.*}}, %[[S]], %[[E]],
// CHECK-NOT: st.global.v4
// CHECK: nvvm.barrier
// CHECK: return
func.func @one_record(%x: i32, %profile: !llvm.ptr<1>) attributes {tt.kernel, proton.abi = ["profile"], proton.profile = {capacity = 4 : i64, clock_bits = 32 : i64, optimized_out = [], payload_slots = 0 : i64, sample_programs = 1 : i64, sampled_units = 15 : i64, scopes = [], strategy = "circular", unit_warps = 1 : i64, units = 4 : i64}} {
  %s = "proton_gpu.init"() : () -> !proton_gpu.segment
  %t0 = "proton_gpu.read_counter"() : () -> i64
  %t1 = "proton_gpu.read_counter"() : () -> i64
  "proton_gpu.circular_record"(%s, %t0, %t1, %x) {scope_id = 0 : i32, kind = 0 : i32, operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0>} : (!proton_gpu.segment, i64, i64, i32) -> ()
  %t2 = "proton_gpu.read_counter"() : () -> i64
  "proton_gpu.finalize"(%s) : (!proton_gpu.segment) -> ()
  return
}

// CHECK-LABEL: func.func @counted(
// CHECK-NOT: "@$5 st.global
// CHECK: "@$2 st.global.b64 [$0], $1; // proton"
func.func @counted(%profile: !llvm.ptr<1>) attributes {tt.kernel, proton.abi = ["profile"], proton.profile = {capacity = 0 : i64, clock_bits = 32 : i64, optimized_out = [], payload_slots = 0 : i64, sample_programs = 1 : i64, sampled_units = 15 : i64, scopes = [], strategy = "counting", unit_warps = 1 : i64, units = 4 : i64}} {
  %s = "proton_gpu.init"() : () -> !proton_gpu.segment
  %t0 = "proton_gpu.read_counter"() : () -> i64
  "proton_gpu.counting_record"(%s) {scope_id = 0 : i32, kind = 0 : i32, operandSegmentSizes = array<i32: 1, 0>} : (!proton_gpu.segment) -> ()
  "proton_gpu.finalize"(%s) : (!proton_gpu.segment) -> ()
  return
}

// Two records that end at one reading: the first is stored when the second is made.
// CHECK-LABEL: func.func @one_reading(
// CHECK: %clock; // proton
// CHECK: %clock; // proton
// CHECK: "@$5 st.global.v4.b32
// CHECK: "@$5 st.global.v4.b32
// CHECK-NOT: "@$5 st.global
// CHECK: nvvm.barrier
func.func @one_reading(%x: i32, %profile: !llvm.ptr<1>) attributes {tt.kernel, proton.abi = ["profile"], proton.profile = {capacity = 4 : i64, clock_bits = 32 : i64, optimized_out = [], payload_slots = 0 : i64, sample_programs = 1 : i64, sampled_units = 15 : i64, scopes = [], strategy = "circular", unit_warps = 1 : i64, units = 4 : i64}} {
  %s = "proton_gpu.init"() : () -> !proton_gpu.segment
  %t0 = "proton_gpu.read_counter"() : () -> i64
  %t1 = "proton_gpu.read_counter"() : () -> i64
  "proton_gpu.circular_record"(%s, %t0, %t1, %x) {scope_id = 0 : i32, kind = 0 : i32, operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0>} : (!proton_gpu.segment, i64, i64, i32) -> ()
  "proton_gpu.circular_record"(%s, %t0, %t1, %x) {scope_id = 1 : i32, kind = 0 : i32, operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0>} : (!proton_gpu.segment, i64, i64, i32) -> ()
  "proton_gpu.finalize"(%s) : (!proton_gpu.segment) -> ()
  return
}

// A ring in shared memory is copied to the block at the end.
// CHECK-LABEL: func.func @ring(
// CHECK: "@$5 st.shared.v4.b32 [$0], {$1, $2, $3, $4}; // proton", "r,r,r,r,r,b"
// CHECK: "@$2 st.global.b64 [$0], $1; // proton"
// CHECK: nvvm.bar.warp.sync
// CHECK: scf.for
// CHECK: "ld.shared.v4.b32 {$0, $1, $2, $3}, [$4]; // proton"
// CHECK: "st.global.v4.b32 [$0], {$1, $2, $3, $4}; // proton", "l,r,r,r,r"
// CHECK: nvvm.barrier
func.func @ring(%x: i32, %profile: !llvm.ptr<1>) attributes {tt.kernel, proton.abi = ["profile"], proton.profile = {capacity = 4 : i64, clock_bits = 32 : i64, optimized_out = [], payload_slots = 0 : i64, ring = 64 : i64, sample_programs = 1 : i64, sampled_units = 15 : i64, scopes = [], strategy = "circular", unit_warps = 1 : i64, units = 4 : i64}} {
  %s = "proton_gpu.init"() : () -> !proton_gpu.segment
  %t0 = "proton_gpu.read_counter"() : () -> i64
  %t1 = "proton_gpu.read_counter"() : () -> i64
  "proton_gpu.circular_record"(%s, %t0, %t1, %x) {scope_id = 0 : i32, kind = 0 : i32, operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0>} : (!proton_gpu.segment, i64, i64, i32) -> ()
  "proton_gpu.finalize"(%s) : (!proton_gpu.segment) -> ()
  return
}

// A header is written while the first copies are under way, with the times of before; what goes to
// shared memory may wait for a load.
// CHECK-LABEL: func.func @behind_copies(
// CHECK: %[[TIMER:.*]] = llvm.inline_asm has_side_effects "mov.u64 $0, %globaltimer; // proton"
// CHECK: %[[CLOCK:.*]] = llvm.inline_asm has_side_effects "mov.u64 $0, %clock64; // proton"
// CHECK-NOT: smid
// CHECK: cp.async
// CHECK-NOT: st.shared
// CHECK: scf.if
// CHECK: %smid
// CHECK: "st.global.b64 [$0], $1; // proton", "l,l" %{{.*}}, %[[CLOCK]]
// CHECK: "st.global.b64 [$0], $1; // proton", "l,l" %{{.*}}, %[[TIMER]]
// CHECK: llvm.store %{{.*}} : vector<4xf32>, !llvm.ptr<3>
func.func @behind_copies(%p: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %x: tensor<512xf32, #ttg.linear<[[1], [2]], [[4], [8], [16], [32], [64]], [[128], [256]], []>>, %profile: !llvm.ptr<1>) attributes {tt.kernel, proton.abi = ["profile"], proton.profile = {capacity = 0 : i64, clock_bits = 32 : i64, optimized_out = [], payload_slots = 0 : i64, sample_programs = 1 : i64, sampled_units = 15 : i64, scopes = [], strategy = "counting", unit_warps = 1 : i64, units = 4 : i64}} {
  %s = "proton_gpu.init"() : () -> !proton_gpu.segment
  %i = "tt.make_range"() {start = 0 : i32, end = 512 : i32} : () -> tensor<512xi32, #ttg.linear<[[1], [2]], [[4], [8], [16], [32], [64]], [[128], [256]], []>>
  %b = "tt.splat"(%p) : (!tt.ptr<f32>) -> tensor<512x!tt.ptr<f32>, #ttg.linear<[[1], [2]], [[4], [8], [16], [32], [64]], [[128], [256]], []>>
  %a = "tt.addptr"(%b, %i) : (tensor<512x!tt.ptr<f32>, #ttg.linear<[[1], [2]], [[4], [8], [16], [32], [64]], [[128], [256]], []>>, tensor<512xi32, #ttg.linear<[[1], [2]], [[4], [8], [16], [32], [64]], [[128], [256]], []>>) -> tensor<512x!tt.ptr<f32>, #ttg.linear<[[1], [2]], [[4], [8], [16], [32], [64]], [[128], [256]], []>>
  %m = "ttg.local_reserve"() : () -> !ttg.mutable_memdesc<[512], f32, #ttg.shared<[[1], [2], [4], [8], [16], [32], [64], [128], [256]]>>
  %c = "ttg.async_copy_global_to_local"(%a, %m) {operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<512x!tt.ptr<f32>, #ttg.linear<[[1], [2]], [[4], [8], [16], [32], [64]], [[128], [256]], []>>, !ttg.mutable_memdesc<[512], f32, #ttg.shared<[[1], [2], [4], [8], [16], [32], [64], [128], [256]]>>) -> !ttg.async_token
  %g = "ttg.async_commit_group"(%c) {operandSegmentSizes = array<i32: 1, 0>} : (!ttg.async_token) -> !ttg.async_token
  %y = "ttg.local_alloc"(%x) : (tensor<512xf32, #ttg.linear<[[1], [2]], [[4], [8], [16], [32], [64]], [[128], [256]], []>>) -> !ttg.memdesc<[512], f32, #ttg.shared<[[1], [2], [4], [8], [16], [32], [64], [128], [256]]>>
  "ttg.async_wait"(%g) {pendings = 0 : i32} : (!ttg.async_token) -> ()
  "proton_gpu.finalize"(%s) : (!proton_gpu.segment) -> ()
  return
}
}
