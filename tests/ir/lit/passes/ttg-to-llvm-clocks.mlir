// RUN: proton-opt --pipeline='ttg-to-llvm{target=cuda:90}' %s | filecheck %s
// A barrier takes effect some cycles after it was issued: a reading of the clock that only pure ops
// part from one stands behind a barrier of the warp.

module attributes {"ttg.num-warps" = 4 : i32} {
// Not ahead of one, nor behind another reading.
// CHECK-LABEL: func.func @ahead(
// CHECK: %clock64
// CHECK-NOT: bar.warp.sync
// CHECK: %clock; // proton
// CHECK-NEXT: nvvm.barrier
// CHECK: nvvm.bar.warp.sync
// CHECK: %clock; // proton
// CHECK-NOT: bar.warp.sync
// CHECK: %clock; // proton
// CHECK: return
func.func @ahead(%x: i32, %profile: !llvm.ptr<1>) attributes {tt.kernel, proton.abi = ["profile"], proton.profile = {capacity = 0 : i64, clock_bits = 32 : i64, optimized_out = [], payload_slots = 0 : i64, sample_programs = 1 : i64, sampled_units = 15 : i64, scopes = [], strategy = "counting", unit_warps = 1 : i64, units = 4 : i64}} {
  %s = "proton_gpu.init"() : () -> !proton_gpu.segment
  %t0 = "proton_gpu.read_counter"() : () -> i64
  "ttg.barrier"() : () -> ()
  %y = arith.addi %x, %x : i32
  %t1 = "proton_gpu.read_counter"() : () -> i64
  %t2 = "proton_gpu.read_counter"() : () -> i64
  "proton_gpu.finalize"(%s) : (!proton_gpu.segment) -> ()
  return
}

// The barrier of the last turn, and behind the loop.
// CHECK-LABEL: func.func @last_turn(
// CHECK: scf.for
// CHECK: nvvm.bar.warp.sync
// CHECK: %clock; // proton
// CHECK: nvvm.barrier
// CHECK: }
// CHECK: nvvm.bar.warp.sync
// CHECK: %clock; // proton
// CHECK: return
func.func @last_turn(%n: i32, %profile: !llvm.ptr<1>) attributes {tt.kernel, proton.abi = ["profile"], proton.profile = {capacity = 0 : i64, clock_bits = 32 : i64, optimized_out = [], payload_slots = 0 : i64, sample_programs = 1 : i64, sampled_units = 15 : i64, scopes = [], strategy = "counting", unit_warps = 1 : i64, units = 4 : i64}} {
  %s = "proton_gpu.init"() : () -> !proton_gpu.segment
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  scf.for %i = %c0 to %n step %c1 : i32 {
    %t0 = "proton_gpu.read_counter"() : () -> i64
    "ttg.barrier"() : () -> ()
  }
  %t1 = "proton_gpu.read_counter"() : () -> i64
  "proton_gpu.finalize"(%s) : (!proton_gpu.segment) -> ()
  return
}

// A branch that ends with one may have been taken.
// CHECK-LABEL: func.func @branch(
// CHECK: scf.if
// CHECK: nvvm.barrier
// CHECK: }
// CHECK: nvvm.bar.warp.sync
// CHECK: %clock; // proton
// CHECK: return
func.func @branch(%c: i1, %profile: !llvm.ptr<1>) attributes {tt.kernel, proton.abi = ["profile"], proton.profile = {capacity = 0 : i64, clock_bits = 32 : i64, optimized_out = [], payload_slots = 0 : i64, sample_programs = 1 : i64, sampled_units = 15 : i64, scopes = [], strategy = "counting", unit_warps = 1 : i64, units = 4 : i64}} {
  %s = "proton_gpu.init"() : () -> !proton_gpu.segment
  scf.if %c {
    "ttg.barrier"() : () -> ()
  }
  %t0 = "proton_gpu.read_counter"() : () -> i64
  "proton_gpu.finalize"(%s) : (!proton_gpu.segment) -> ()
  return
}

}
