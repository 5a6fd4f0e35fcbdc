// RUN: proton-opt --pipeline='convert-proton-gpu-to-llvm' %s | filecheck %s

// Offsets of header fields are those of docs/buffer-format.md: magic 0, version 4, state 6,
// program 8, 12, 16, hardware 20, thread 24, units 28, capacity 32, payload_slots 36,
// clock_start 40, clock_end 56; clock_bits 72; the count of records at 128, the records at 144. The magic is
// written last: a block that has it has a whole header.

// CHECK-LABEL: func.func @header(
// CHECK-SAME: %[[X:[^:]*]]: i32, %[[Y:[^:]*]]: i32, %[[Z:[^:]*]]: i32, %[[BLOCK:[^:]*]]: !llvm.ptr, %[[THREAD:[^:]*]]: i32)
// CHECK: %[[COUNT:.*]] = llvm.alloca %{{.*}} x i64 : (i32) -> !llvm.ptr
// CHECK-NEXT: %[[ZERO:.*]] = arith.constant 0 : i64
// CHECK-NEXT: llvm.store %[[ZERO]], %[[COUNT]] : i64, !llvm.ptr
// CHECK-NEXT: %[[P:.*]] = llvm.getelementptr %[[BLOCK]][8] : (!llvm.ptr) -> !llvm.ptr, i8
// CHECK-NEXT: llvm.store %[[X]], %[[P]] : i32, !llvm.ptr
// CHECK-NEXT: %[[P:.*]] = llvm.getelementptr %[[BLOCK]][12]
// CHECK-NEXT: llvm.store %[[Y]], %[[P]] : i32, !llvm.ptr
// CHECK-NEXT: %[[P:.*]] = llvm.getelementptr %[[BLOCK]][16]
// CHECK-NEXT: llvm.store %[[Z]], %[[P]] : i32, !llvm.ptr
// CHECK-NEXT: %[[P:.*]] = llvm.getelementptr %[[BLOCK]][24]
// CHECK-NEXT: llvm.store %[[THREAD]], %[[P]] : i32, !llvm.ptr
// CHECK-NEXT: %[[VERSION:.*]] = arith.constant 3 : i16
// CHECK-NEXT: %[[P:.*]] = llvm.getelementptr %[[BLOCK]][4]
// CHECK-NEXT: llvm.store %[[VERSION]], %[[P]] : i16, !llvm.ptr
// CHECK-NEXT: %[[STARTED:.*]] = arith.constant 1 : i16
// CHECK-NEXT: %[[P:.*]] = llvm.getelementptr %[[BLOCK]][6]
// CHECK-NEXT: llvm.store %[[STARTED]], %[[P]] : i16, !llvm.ptr
// CHECK-NEXT: %[[UNITS:.*]] = arith.constant 1 : i32
// CHECK-NEXT: %[[P:.*]] = llvm.getelementptr %[[BLOCK]][28]
// CHECK-NEXT: llvm.store %[[UNITS]], %[[P]] : i32, !llvm.ptr
// CHECK-NEXT: %[[CAPACITY:.*]] = arith.constant 3 : i32
// CHECK-NEXT: %[[P:.*]] = llvm.getelementptr %[[BLOCK]][32]
// CHECK-NEXT: llvm.store %[[CAPACITY]], %[[P]] : i32, !llvm.ptr
// CHECK-NEXT: %[[SLOTS:.*]] = arith.constant 2 : i32
// CHECK-NEXT: %[[P:.*]] = llvm.getelementptr %[[BLOCK]][36]
// CHECK-NEXT: llvm.store %[[SLOTS]], %[[P]] : i32, !llvm.ptr
// CHECK-NEXT: %[[BITS:.*]] = arith.constant 64 : i32
// CHECK-NEXT: %[[P:.*]] = llvm.getelementptr %[[BLOCK]][72]
// CHECK-NEXT: llvm.store %[[BITS]], %[[P]] : i32, !llvm.ptr
// CHECK-NEXT: %[[R:.*]] = llvm.inline_asm has_side_effects "rdtscp", "={ax},={dx},={cx},~{memory},
// CHECK-NEXT: %[[LOW32:.*]] = llvm.extractvalue %[[R]][0]
// CHECK-NEXT: %[[LOW:.*]] = arith.extui %[[LOW32]] : i32 to i64
// CHECK-NEXT: %[[HIGH32:.*]] = llvm.extractvalue %[[R]][1]
// CHECK-NEXT: %[[HIGH:.*]] = arith.extui %[[HIGH32]] : i32 to i64
// CHECK-NEXT: %[[C32:.*]] = arith.constant 32 : i64
// CHECK-NEXT: %[[SHIFTED:.*]] = arith.shli %[[HIGH]], %[[C32]] : i64
// CHECK-NEXT: %[[NOW:.*]] = arith.ori %[[LOW]], %[[SHIFTED]] : i64
// CHECK-NEXT: %[[AUX:.*]] = llvm.extractvalue %[[R]][2]
// CHECK-NEXT: %[[MASK:.*]] = arith.constant 4095 : i32
// CHECK-NEXT: %[[CORE:.*]] = arith.andi %[[AUX]], %[[MASK]] : i32
// CHECK-NEXT: %[[P:.*]] = llvm.getelementptr %[[BLOCK]][20]
// CHECK-NEXT: llvm.store %[[CORE]], %[[P]] : i32, !llvm.ptr
// CHECK-NEXT: %[[P:.*]] = llvm.getelementptr %[[BLOCK]][40]
// CHECK-NEXT: llvm.store %[[NOW]], %[[P]] : i64, !llvm.ptr
// CHECK-NEXT: %[[MAGIC:.*]] = arith.constant 1314148944 : i32
// CHECK-NEXT: %[[P:.*]] = llvm.getelementptr %[[BLOCK]][0]
// CHECK-NEXT: llvm.store %[[MAGIC]], %[[P]] : i32, !llvm.ptr
// CHECK-NEXT: %[[WRITTEN:.*]] = llvm.load %[[COUNT]] : !llvm.ptr -> i64
// CHECK-NEXT: %[[P:.*]] = llvm.getelementptr %[[BLOCK]][128]
// CHECK-NEXT: llvm.store %[[WRITTEN]], %[[P]] : i64, !llvm.ptr
// CHECK-NEXT: llvm.inline_asm has_side_effects "rdtsc", "={ax},={dx},~{memory},
// CHECK: %[[END:.*]] = arith.ori
// CHECK-NEXT: %[[P:.*]] = llvm.getelementptr %[[BLOCK]][56]
// CHECK-NEXT: llvm.store %[[END]], %[[P]] : i64, !llvm.ptr
// CHECK-NEXT: %[[FINISHED:.*]] = arith.constant 2 : i16
// CHECK-NEXT: %[[P:.*]] = llvm.getelementptr %[[BLOCK]][6]
// CHECK-NEXT: llvm.store %[[FINISHED]], %[[P]] : i16, !llvm.ptr
// CHECK-NEXT: return
func.func @header(%x: i32, %y: i32, %z: i32, %profile: !llvm.ptr, %thread: i32) attributes {tt.kernel, proton.abi = ["program_x", "program_y", "program_z", "profile", "thread"], proton.profile = {capacity = 3 : i64, clock_bits = 64 : i64, optimized_out = [], payload_slots = 2 : i64, sample_programs = 1 : i64, sampled_units = 0 : i64, scopes = [], strategy = "circular", unit_warps = 1 : i64, units = 1 : i64}} {
  %s = "proton_gpu.init"() : () -> !proton_gpu.segment
  "proton_gpu.finalize"(%s) : (!proton_gpu.segment) -> ()
  return
}

// A record is 24 bytes and its payload: start 0, end 8, tag 16, iteration 20, payload 24. With
// as many slots as records, nothing wraps: the record's number is its slot.

// CHECK-LABEL: func.func @without_wrap(
// CHECK-SAME: %[[I:[^:]*]]: i32, %[[N:[^:]*]]: i64, %{{[^:]*}}: i32, %{{[^:]*}}: i32, %{{[^:]*}}: i32, %[[BLOCK:[^:]*]]: !llvm.ptr,
// CHECK: "rdtscp"
// CHECK: "rdtsc"
// CHECK: %[[T:.*]] = arith.ori
// CHECK: %[[NUMBER:.*]] = llvm.load %[[COUNT:.*]] : !llvm.ptr -> i64
// CHECK-NEXT: %[[ONE:.*]] = arith.constant 1 : i64
// CHECK-NEXT: %[[NEXT:.*]] = arith.addi %[[NUMBER]], %[[ONE]] : i64
// CHECK-NEXT: llvm.store %[[NEXT]], %[[COUNT]] : i64, !llvm.ptr
// CHECK-NEXT: %[[BYTES:.*]] = arith.constant 40 : i64
// CHECK-NEXT: %[[OFFSET:.*]] = arith.muli %[[NUMBER]], %[[BYTES]] : i64
// CHECK-NEXT: %[[SEGMENT:.*]] = llvm.getelementptr %[[BLOCK]][144] : (!llvm.ptr) -> !llvm.ptr, i8
// CHECK-NEXT: %[[PLACE:.*]] = llvm.getelementptr %[[SEGMENT]][%[[OFFSET]]] : (!llvm.ptr, i64) -> !llvm.ptr, i8
// CHECK-NEXT: %[[P:.*]] = llvm.getelementptr %[[PLACE]][0] : (!llvm.ptr) -> !llvm.ptr, i8
// CHECK-NEXT: llvm.store %[[T]], %[[P]] : i64, !llvm.ptr
// CHECK-NEXT: %[[P:.*]] = llvm.getelementptr %[[PLACE]][8]
// CHECK-NEXT: llvm.store %[[U:.*]], %[[P]] : i64, !llvm.ptr
// CHECK-NEXT: %[[TAG:.*]] = arith.constant 5 : i32
// CHECK-NEXT: %[[P:.*]] = llvm.getelementptr %[[PLACE]][16]
// CHECK-NEXT: llvm.store %[[TAG]], %[[P]] : i32, !llvm.ptr
// CHECK-NEXT: %[[P:.*]] = llvm.getelementptr %[[PLACE]][20]
// CHECK-NEXT: llvm.store %[[I]], %[[P]] : i32, !llvm.ptr
// CHECK-NEXT: %[[P:.*]] = llvm.getelementptr %[[PLACE]][24]
// CHECK-NEXT: llvm.store %[[N]], %[[P]] : i64, !llvm.ptr
// CHECK-NEXT: %[[P:.*]] = llvm.getelementptr %[[PLACE]][32]
// CHECK-NEXT: llvm.store %[[N]], %[[P]] : i64, !llvm.ptr

// A mark's kind is in bits 28 to 31 of the tag.

// CHECK-NOT: arith.remui
// CHECK: arith.constant 268435462 : i32
// CHECK-NOT: arith.remui
// CHECK: return
func.func @without_wrap(%i: i32, %n: i64, %x: i32, %y: i32, %z: i32, %profile: !llvm.ptr, %thread: i32) attributes {tt.kernel, proton.abi = ["program_x", "program_y", "program_z", "profile", "thread"], proton.profile = {capacity = 2 : i64, clock_bits = 64 : i64, optimized_out = [], payload_slots = 2 : i64, sample_programs = 1 : i64, sampled_units = 0 : i64, scopes = [], strategy = "circular", unit_warps = 1 : i64, units = 1 : i64}} {
  %s = "proton_gpu.init"() : () -> !proton_gpu.segment
  %t = "proton_gpu.read_counter"() : () -> i64
  %u = "proton_gpu.read_counter"() : () -> i64
  "proton_gpu.circular_record"(%s, %t, %u, %i, %n, %n) {scope_id = 5 : i32, kind = 0 : i32, operandSegmentSizes = array<i32: 1, 1, 1, 1, 2, 0>} : (!proton_gpu.segment, i64, i64, i32, i64, i64) -> ()
  "proton_gpu.circular_record"(%s, %t, %t, %i, %n, %n) {scope_id = 6 : i32, kind = 1 : i32, operandSegmentSizes = array<i32: 1, 1, 1, 1, 2, 0>} : (!proton_gpu.segment, i64, i64, i32, i64, i64) -> ()
  "proton_gpu.finalize"(%s) : (!proton_gpu.segment) -> ()
  return
}

// More records than slots: the slot is the number's remainder.

// CHECK-LABEL: func.func @with_wrap(
// CHECK: %[[NUMBER:.*]] = llvm.load %[[COUNT:.*]] : !llvm.ptr -> i64
// CHECK-NEXT: %[[ONE:.*]] = arith.constant 1 : i64
// CHECK-NEXT: %[[NEXT:.*]] = arith.addi %[[NUMBER]], %[[ONE]] : i64
// CHECK-NEXT: llvm.store %[[NEXT]], %[[COUNT]] : i64, !llvm.ptr
// CHECK-NEXT: %[[SIZE:.*]] = arith.constant 2 : i64
// CHECK-NEXT: %[[SLOT:.*]] = arith.remui %[[NUMBER]], %[[SIZE]] : i64
// CHECK-NEXT: %[[BYTES:.*]] = arith.constant 24 : i64
// CHECK-NEXT: arith.muli %[[SLOT]], %[[BYTES]] : i64
// CHECK-COUNT-2: arith.remui
// CHECK-NOT: arith.remui
// CHECK: return
func.func @with_wrap(%i: i32, %x: i32, %y: i32, %z: i32, %profile: !llvm.ptr, %thread: i32) attributes {tt.kernel, proton.abi = ["program_x", "program_y", "program_z", "profile", "thread"], proton.profile = {capacity = 2 : i64, clock_bits = 64 : i64, optimized_out = [], payload_slots = 0 : i64, sample_programs = 1 : i64, sampled_units = 0 : i64, scopes = [], strategy = "circular", unit_warps = 1 : i64, units = 1 : i64}} {
  %s = "proton_gpu.init"() : () -> !proton_gpu.segment
  %t = "proton_gpu.read_counter"() : () -> i64
  "proton_gpu.circular_record"(%s, %t, %t, %i) {scope_id = 0 : i32, kind = 0 : i32, operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0>} : (!proton_gpu.segment, i64, i64, i32) -> ()
  "proton_gpu.circular_record"(%s, %t, %t, %i) {scope_id = 0 : i32, kind = 0 : i32, operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0>} : (!proton_gpu.segment, i64, i64, i32) -> ()
  "proton_gpu.circular_record"(%s, %t, %t, %i) {scope_id = 0 : i32, kind = 0 : i32, operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0>} : (!proton_gpu.segment, i64, i64, i32) -> ()
  "proton_gpu.finalize"(%s) : (!proton_gpu.segment) -> ()
  return
}

// In a loop any number of records wraps.

// CHECK-LABEL: func.func @in_a_loop(
// CHECK: scf.for
// CHECK: arith.constant 256 : i64
// CHECK-NEXT: arith.remui
func.func @in_a_loop(%i: i32, %n: index, %x: i32, %y: i32, %z: i32, %profile: !llvm.ptr, %thread: i32) attributes {tt.kernel, proton.abi = ["program_x", "program_y", "program_z", "profile", "thread"], proton.profile = {capacity = 256 : i64, clock_bits = 64 : i64, optimized_out = [], payload_slots = 0 : i64, sample_programs = 1 : i64, sampled_units = 0 : i64, scopes = [], strategy = "circular", unit_warps = 1 : i64, units = 1 : i64}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %s = "proton_gpu.init"() : () -> !proton_gpu.segment
  scf.for %j = %c0 to %n step %c1 {
    %t = "proton_gpu.read_counter"() : () -> i64
    "proton_gpu.circular_record"(%s, %t, %t, %i) {scope_id = 0 : i32, kind = 0 : i32, operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0>} : (!proton_gpu.segment, i64, i64, i32) -> ()
  }
  "proton_gpu.finalize"(%s) : (!proton_gpu.segment) -> ()
  return
}

// Counting: no record, no place for one.

// CHECK-LABEL: func.func @counting(
// CHECK: %[[NUMBER:.*]] = llvm.load %[[COUNT:.*]] : !llvm.ptr -> i64
// CHECK-NEXT: %[[ONE:.*]] = arith.constant 1 : i64
// CHECK-NEXT: %[[NEXT:.*]] = arith.addi %[[NUMBER]], %[[ONE]] : i64
// CHECK-NEXT: llvm.store %[[NEXT]], %[[COUNT]] : i64, !llvm.ptr
// CHECK-NOT: [144]
// CHECK: [128]
func.func @counting(%x: i32, %y: i32, %z: i32, %profile: !llvm.ptr, %thread: i32) attributes {tt.kernel, proton.abi = ["program_x", "program_y", "program_z", "profile", "thread"], proton.profile = {capacity = 0 : i64, clock_bits = 64 : i64, optimized_out = [], payload_slots = 0 : i64, sample_programs = 1 : i64, sampled_units = 0 : i64, scopes = [], strategy = "counting", unit_warps = 1 : i64, units = 1 : i64}} {
  %s = "proton_gpu.init"() : () -> !proton_gpu.segment
  "proton_gpu.counting_record"(%s) {scope_id = 0 : i32, kind = 0 : i32, operandSegmentSizes = array<i32: 1, 0>} : (!proton_gpu.segment) -> ()
  "proton_gpu.finalize"(%s) : (!proton_gpu.segment) -> ()
  return
}

// The record that fills the segment hands it over: flush(block, first number, segment, bytes).

// CHECK-LABEL: func.func @flush(
// CHECK-SAME: %[[BLOCK:[^:,]*]]: !llvm.ptr, %{{[^:,]*}}: i32, %[[HOST:[^:,]*]]: !llvm.ptr)
// CHECK: %[[NUMBER:.*]] = llvm.load %[[COUNT:.*]] : !llvm.ptr -> i64
// CHECK-NEXT: %[[ONE:.*]] = arith.constant 1 : i64
// CHECK-NEXT: %[[NEXT:.*]] = arith.addi %[[NUMBER]], %[[ONE]] : i64
// CHECK-NEXT: llvm.store %[[NEXT]], %[[COUNT]] : i64, !llvm.ptr
// CHECK: arith.remui %[[NUMBER]],
// CHECK: %[[SIZE:.*]] = arith.constant 4 : i64
// CHECK-NEXT: %[[USED:.*]] = arith.remui %[[NEXT]], %[[SIZE]] : i64
// CHECK-NEXT: %[[ZERO:.*]] = arith.constant 0 : i64
// CHECK-NEXT: %[[FULL:.*]] = arith.cmpi eq, %[[USED]], %[[ZERO]] : i64
// CHECK-NEXT: scf.if %[[FULL]] {
// CHECK-NEXT: %[[FIRST:.*]] = arith.subi %[[NEXT]], %[[SIZE]] : i64
// CHECK-NEXT: %[[SEGMENT:.*]] = llvm.getelementptr %[[BLOCK]][144]
// CHECK-NEXT: %[[BYTES:.*]] = arith.constant 128 : i64
// CHECK-NEXT: llvm.call %[[HOST]](%[[BLOCK]], %[[FIRST]], %[[SEGMENT]], %[[BYTES]]) : !llvm.ptr, (!llvm.ptr, i64, !llvm.ptr, i64) -> ()
// CHECK-NEXT: }
func.func @flush(%i: i32, %n: i64, %j: index, %x: i32, %y: i32, %z: i32, %profile: !llvm.ptr, %thread: i32, %flush: !llvm.ptr) attributes {tt.kernel, proton.abi = ["program_x", "program_y", "program_z", "profile", "thread", "flush"], proton.profile = {capacity = 4 : i64, clock_bits = 64 : i64, optimized_out = [], payload_slots = 1 : i64, sample_programs = 1 : i64, sampled_units = 0 : i64, scopes = [], strategy = "flush", unit_warps = 1 : i64, units = 1 : i64}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %s = "proton_gpu.init"() : () -> !proton_gpu.segment
  scf.for %k = %c0 to %j step %c1 {
    %t = "proton_gpu.read_counter"() : () -> i64
    "proton_gpu.flush_record"(%s, %t, %t, %i, %n) {scope_id = 0 : i32, kind = 0 : i32, operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 0>} : (!proton_gpu.segment, i64, i64, i32, i64) -> ()
  }
  "proton_gpu.finalize"(%s) : (!proton_gpu.segment) -> ()
  return
}

// CHECK-LABEL: func.func @not_instrumented(
// CHECK-NEXT: return
func.func @not_instrumented(%x: i32, %y: i32, %z: i32, %profile: !llvm.ptr, %thread: i32) attributes {tt.kernel} {
  return
}

// Under a condition nothing is written, nor counted.

// CHECK-LABEL: func.func @conditions(
// CHECK-SAME: %[[C:[a-z0-9]*]]: i1,
// CHECK: scf.if %[[C]] {
// CHECK-NEXT: %[[NUMBER:.*]] = llvm.load %[[COUNT:.*]] : !llvm.ptr -> i64
// CHECK-NEXT: %[[ONE:.*]] = arith.constant 1 : i64
// CHECK-NEXT: %[[NEXT:.*]] = arith.addi %[[NUMBER]], %[[ONE]] : i64
// CHECK-NEXT: llvm.store %[[NEXT]], %[[COUNT]] : i64, !llvm.ptr
// CHECK-COUNT-4: llvm.store
// CHECK-NEXT: } else {
// CHECK-NEXT: }
// CHECK-NEXT: %[[WRITTEN:.*]] = llvm.load %[[COUNT]]
// CHECK: return
func.func @conditions(%c: i1, %i: i32, %x: i32, %y: i32, %z: i32, %profile: !llvm.ptr, %thread: i32) attributes {tt.kernel, proton.abi = ["program_x", "program_y", "program_z", "profile", "thread"], proton.profile = {capacity = 2 : i64, clock_bits = 64 : i64, optimized_out = [], payload_slots = 0 : i64, sample_programs = 1 : i64, sampled_units = 0 : i64, scopes = [], strategy = "circular", unit_warps = 1 : i64, units = 1 : i64}} {
  %s = "proton_gpu.init"() : () -> !proton_gpu.segment
  %t = "proton_gpu.read_counter"() : () -> i64
  "proton_gpu.circular_record"(%s, %t, %t, %i, %c) {scope_id = 0 : i32, kind = 0 : i32, operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 1>} : (!proton_gpu.segment, i64, i64, i32, i1) -> ()
  "proton_gpu.finalize"(%s) : (!proton_gpu.segment) -> ()
  return
}
