// RUN: proton-opt --pipeline='triton-nvidia-gpu-tensor-descriptor-to-tma{target=cuda:90},rewrite-tensor-descriptor-to-pointer,canonicalize,cse' %s | filecheck %s
// RUN: proton-opt --pipeline='triton-nvidia-gpu-tensor-descriptor-to-tma{device=false target=cuda:90}' %s | filecheck %s --check-prefix=HOST
// RUN: proton-opt --pipeline='triton-nvidia-gpu-tensor-descriptor-to-tma{target=cuda:80}' %s | filecheck %s --check-prefix=HOST

// HOST-NOT: ttng

!block = !tt.tensordesc<tensor<64x32xf16>, "zero">

// Of addresses, sizes and strides from memory: the map stands where the descriptor is made, as does
// the store's; what it is made of is checked there. What is written has another address than what
// is read.

// CHECK-LABEL: func.func @grouped(
// CHECK: scf.for
// CHECK: %[[X:.*]] = "tt.int_to_ptr"
// CHECK: "ttng.tensor_check"(%[[X]], %[[M:.*]], %[[N:.*]], %[[S:.*]]) {message = "", operandSegmentSizes = array<i32: 1, 2, 1>}
// CHECK: %[[FROM:.*]] = "ttng.tensor_map"(%[[X]], %[[M]], %[[N]], %[[S]]) {operandSegmentSizes = array<i32: 1, 2, 1, 0>}
// CHECK: %[[Y:.*]] = "tt.int_to_ptr"
// CHECK: %[[TO:.*]] = "ttng.tensor_map"(%[[Y]], %[[M]], %[[N]], %[[S]])
// CHECK: scf.for
// CHECK: %[[V:.*]] = "ttng.tma_load"(%[[FROM]],
// CHECK: "ttng.tma_store"(%[[TO]], %[[V]],
func.func @grouped(%table: !tt.ptr<i64>, %sizes: !tt.ptr<i32>, %n: i32) attributes {tt.kernel} {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %unit = arith.constant 1 : i64
  %step = arith.constant 32 : i32
  scf.for %g = %zero to %n step %one : i32 {
    %p = "tt.addptr"(%table, %g) : (!tt.ptr<i64>, i32) -> !tt.ptr<i64>
    %q = "tt.addptr"(%p, %n) : (!tt.ptr<i64>, i32) -> !tt.ptr<i64>
    %r = "tt.addptr"(%sizes, %g) : (!tt.ptr<i32>, i32) -> !tt.ptr<i32>
    %m = "tt.load"(%r) {cache = "", evict = "", volatile = false, operandSegmentSizes = array<i32: 1, 0, 0>} : (!tt.ptr<i32>) -> i32
    %a = "tt.load"(%p) {cache = "", evict = "", volatile = false, operandSegmentSizes = array<i32: 1, 0, 0>} : (!tt.ptr<i64>) -> i64
    %b = "tt.load"(%q) {cache = "", evict = "", volatile = false, operandSegmentSizes = array<i32: 1, 0, 0>} : (!tt.ptr<i64>) -> i64
    %s = arith.extsi %m : i32 to i64
    %x = "tt.int_to_ptr"(%a) : (i64) -> !tt.ptr<f16>
    %from = "tt.make_tensor_descriptor"(%x, %n, %m, %s, %unit) {operandSegmentSizes = array<i32: 1, 2, 2>} : (!tt.ptr<f16>, i32, i32, i64, i64) -> !block
    %y = "tt.int_to_ptr"(%b) : (i64) -> !tt.ptr<f16>
    %to = "tt.make_tensor_descriptor"(%y, %n, %m, %s, %unit) {operandSegmentSizes = array<i32: 1, 2, 2>} : (!tt.ptr<f16>, i32, i32, i64, i64) -> !block
    scf.for %k = %zero to %n step %step : i32 {
      %v = "tt.descriptor_load"(%from, %zero, %zero) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 2>} : (!block, i32, i32) -> tensor<64x32xf16>
      "tt.descriptor_store"(%to, %v, %zero, %k) {operandSegmentSizes = array<i32: 1, 1, 2>} : (!block, tensor<64x32xf16>, i32, i32) -> ()
    }
  }
  return
}

// Pointers: one access of a map does not pay for it, be it in no loop or in one that makes the
// descriptor; and the loads of one address are of one array, which is written here.

// CHECK-LABEL: func.func @not_worth_it(
// CHECK-NOT: ttng
// CHECK: return
func.func @not_worth_it(%table: !tt.ptr<i64>, %out: !tt.ptr<f16>, %n: i32) attributes {tt.kernel} {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %unit = arith.constant 1 : i64
  %s = arith.constant 64 : i64
  %a = "tt.load"(%table) {cache = "", evict = "", volatile = false, operandSegmentSizes = array<i32: 1, 0, 0>} : (!tt.ptr<i64>) -> i64
  %x = "tt.int_to_ptr"(%a) : (i64) -> !tt.ptr<f16>
  %d = "tt.make_tensor_descriptor"(%x, %n, %n, %s, %unit) {operandSegmentSizes = array<i32: 1, 2, 2>} : (!tt.ptr<f16>, i32, i32, i64, i64) -> !block
  %v = "tt.descriptor_load"(%d, %zero, %zero) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 2>} : (!block, i32, i32) -> tensor<64x32xf16>
  scf.for %g = %zero to %n step %one : i32 {
    %p = "tt.addptr"(%table, %g) : (!tt.ptr<i64>, i32) -> !tt.ptr<i64>
    %b = "tt.load"(%p) {cache = "", evict = "", volatile = false, operandSegmentSizes = array<i32: 1, 0, 0>} : (!tt.ptr<i64>) -> i64
    %y = "tt.int_to_ptr"(%b) : (i64) -> !tt.ptr<f16>
    %e = "tt.make_tensor_descriptor"(%y, %n, %n, %s, %unit) {operandSegmentSizes = array<i32: 1, 2, 2>} : (!tt.ptr<f16>, i32, i32, i64, i64) -> !block
    "tt.descriptor_store"(%e, %v, %zero, %zero) {operandSegmentSizes = array<i32: 1, 1, 2>} : (!block, tensor<64x32xf16>, i32, i32) -> ()
  }
  %c = "tt.load"(%table) {cache = "", evict = "", volatile = false, operandSegmentSizes = array<i32: 1, 0, 0>} : (!tt.ptr<i64>) -> i64
  %z = "tt.int_to_ptr"(%c) : (i64) -> !tt.ptr<f16>
  %f = "tt.make_tensor_descriptor"(%z, %n, %n, %s, %unit) {operandSegmentSizes = array<i32: 1, 2, 2>} : (!tt.ptr<f16>, i32, i32, i64, i64) -> !block
  scf.for %g = %zero to %n step %one : i32 {
    %w = "tt.descriptor_load"(%d, %g, %zero) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 2>} : (!block, i32, i32) -> tensor<64x32xf16>
    "tt.descriptor_store"(%f, %w, %g, %zero) {operandSegmentSizes = array<i32: 1, 1, 2>} : (!block, tensor<64x32xf16>, i32, i32) -> ()
  }
  return
}

// What is computed from arguments has to be known to be aligned, and is not checked: here one address
// is, and one is not.

// CHECK-LABEL: func.func @from_arguments(
// CHECK-NOT: "ttng.tensor_check"
// CHECK: %[[MAP:.*]] = "ttng.tensor_map"(
// CHECK-NOT: "ttng.tensor_map"
// CHECK: "tt.load"
// CHECK: "ttng.tma_load"(%[[MAP]],
// CHECK: return
func.func @from_arguments(%x: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %out: !tt.ptr<f16>, %n: i32, %k: i32 {tt.divisibility = 16 : i32}) -> tensor<64x32xf16> attributes {tt.kernel} {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %unit = arith.constant 1 : i64
  %empty = arith.constant dense<0.0> : tensor<64x32xf16>
  %s = arith.constant 64 : i64
  %pid = "tt.get_program_id"() {axis = 0 : i32} : () -> i32
  %off = arith.muli %pid, %n : i32
  %p = "tt.addptr"(%x, %off) : (!tt.ptr<f16>, i32) -> !tt.ptr<f16>
  %d = "tt.make_tensor_descriptor"(%p, %n, %n, %s, %unit) {operandSegmentSizes = array<i32: 1, 2, 2>} : (!tt.ptr<f16>, i32, i32, i64, i64) -> !block
  %far = arith.muli %pid, %k : i32
  %q = "tt.addptr"(%x, %far) : (!tt.ptr<f16>, i32) -> !tt.ptr<f16>
  %e = "tt.make_tensor_descriptor"(%q, %n, %n, %s, %unit) {operandSegmentSizes = array<i32: 1, 2, 2>} : (!tt.ptr<f16>, i32, i32, i64, i64) -> !block
  %r = scf.for %g = %zero to %n step %one iter_args(%t = %empty) -> (tensor<64x32xf16>) : i32 {
    %v = "tt.descriptor_load"(%d, %g, %zero) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 2>} : (!block, i32, i32) -> tensor<64x32xf16>
    %w = "tt.descriptor_load"(%e, %g, %zero) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 2>} : (!block, i32, i32) -> tensor<64x32xf16>
    %tv = arith.addf %t, %v : tensor<64x32xf16>
    %tw = arith.addf %tv, %w : tensor<64x32xf16>
    scf.yield %tw : tensor<64x32xf16>
  }
  return %r : tensor<64x32xf16>
}

// One of two, by a branch: the map is made of the parts that were chosen, before the loop.

// CHECK-LABEL: func.func @chosen(
// CHECK: %[[P:.*]] = scf.if
// CHECK: %[[MAP:.*]] = "ttng.tensor_map"(%[[P]],
// CHECK: scf.for
// CHECK: "ttng.tma_load"(%[[MAP]],
func.func @chosen(%x: !block, %table: !tt.ptr<i64>, %n: i32, %is: i1) -> tensor<64x32xf16> attributes {tt.kernel} {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %unit = arith.constant 1 : i64
  %s = arith.constant 64 : i64
  %empty = arith.constant dense<0.0> : tensor<64x32xf16>
  %d = scf.if %is -> (!block) {
    scf.yield %x : !block
  } else {
    %a = "tt.load"(%table) {cache = "", evict = "", volatile = false, operandSegmentSizes = array<i32: 1, 0, 0>} : (!tt.ptr<i64>) -> i64
    %p = "tt.int_to_ptr"(%a) : (i64) -> !tt.ptr<f16>
    %e = "tt.make_tensor_descriptor"(%p, %n, %n, %s, %unit) {operandSegmentSizes = array<i32: 1, 2, 2>} : (!tt.ptr<f16>, i32, i32, i64, i64) -> !block
    scf.yield %e : !block
  }
  %r = scf.for %g = %zero to %n step %one iter_args(%t = %empty) -> (tensor<64x32xf16>) : i32 {
    %v = "tt.descriptor_load"(%d, %g, %zero) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 2>} : (!block, i32, i32) -> tensor<64x32xf16>
    %tv = arith.addf %t, %v : tensor<64x32xf16>
    scf.yield %tv : tensor<64x32xf16>
  }
  return %r : tensor<64x32xf16>
}
