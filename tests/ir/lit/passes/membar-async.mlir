// RUN: proton-opt --pipeline='allocate-shared-memory,membar' %s | filecheck %s
// What a copy writes that goes on is there when its token has been waited for, and for other
// threads when all have met after that.

#a = #ttg.linear<[], [[1], [2], [4], [8], [16]], [[32], [64]], []>
#b = #ttg.linear<[], [[4], [8], [16], [32], [64]], [[1], [2]], []>
!buffers = !ttg.mutable_memdesc<[2, 8, 8], f32, #ttg.shared<[[0, 1], [0, 2], [0, 4], [1, 0], [2, 0], [4, 0]]>>
!buffer = !ttg.mutable_memdesc<[8, 8], f32, #ttg.shared<[[0, 1], [0, 2], [0, 4], [1, 0], [2, 0], [4, 0]]>>
!token = !ttg.async_token
!pointers = tensor<8x8x!tt.ptr<f32>>
!tile = tensor<8x8xf32>

module attributes {"ttg.num-warps" = 4 : i32} {

// A barrier does not wait for a copy: the one that is needed stands behind the wait.

// CHECK-LABEL: func.func @behind_the_wait(
// CHECK: "ttg.async_copy_global_to_local"
// CHECK-NEXT: "ttg.barrier"
// CHECK-NEXT: "ttg.async_wait"
// CHECK-NEXT: "ttg.barrier"
// CHECK-NEXT: "ttg.local_load"
func.func @behind_the_wait(%p: !pointers) {
  %buffer = "ttg.local_reserve"() : () -> !buffer
  %token = "ttg.async_copy_global_to_local"(%p, %buffer) {operandSegmentSizes = array<i32: 1, 1, 0>} : (!pointers, !buffer) -> !token
  "ttg.barrier"() : () -> ()
  "ttg.async_wait"(%token) {pendings = 0 : i32} : (!token) -> ()
  %x = "ttg.local_load"(%buffer) : (!buffer) -> !tile
  return
}

// A copy writes over what threads may still read; the copy into the other part does not.

// CHECK-LABEL: func.func @over_what_is_read(
// CHECK: "ttg.local_load"
// CHECK-NEXT: "ttg.async_copy_global_to_local"
// CHECK-NEXT: "ttg.barrier"
// CHECK-NEXT: "ttg.async_copy_global_to_local"
func.func @over_what_is_read(%p: !pointers) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %buffers = "ttg.local_reserve"() : () -> !buffers
  %first = "ttg.memdesc_index"(%buffers, %c0) : (!buffers, i32) -> !buffer
  %second = "ttg.memdesc_index"(%buffers, %c1) : (!buffers, i32) -> !buffer
  %x = "ttg.local_load"(%first) : (!buffer) -> !tile
  %t = "ttg.async_copy_global_to_local"(%p, %second) {operandSegmentSizes = array<i32: 1, 1, 0>} : (!pointers, !buffer) -> !token
  %u = "ttg.async_copy_global_to_local"(%p, %first) {operandSegmentSizes = array<i32: 1, 1, 0>} : (!pointers, !buffer) -> !token
  return
}

// A wait for one token does not bring what another copy writes.

// CHECK-LABEL: func.func @the_other_token(
// CHECK: "ttg.async_wait"
// CHECK-NEXT: "ttg.local_load"
// CHECK-NEXT: "ttg.async_wait"
// CHECK-NEXT: "ttg.barrier"
// CHECK-NEXT: "ttg.local_load"
func.func @the_other_token(%p: !pointers) {
  %one = "ttg.local_reserve"() : () -> !buffer
  %two = "ttg.local_reserve"() : () -> !buffer
  %three = "ttg.local_reserve"() : () -> !buffer
  %t = "ttg.async_copy_global_to_local"(%p, %one) {operandSegmentSizes = array<i32: 1, 1, 0>} : (!pointers, !buffer) -> !token
  %u = "ttg.async_copy_global_to_local"(%p, %two) {operandSegmentSizes = array<i32: 1, 1, 0>} : (!pointers, !buffer) -> !token
  "ttg.async_wait"(%u) {pendings = 0 : i32} : (!token) -> ()
  %x = "ttg.local_load"(%three) : (!buffer) -> !tile
  "ttg.async_wait"(%t) {pendings = 0 : i32} : (!token) -> ()
  %y = "ttg.local_load"(%one) : (!buffer) -> !tile
  return
}

// A pipeline of two buffers: each turn waits for the copy of the turn before. The token is carried.
// What the last turn began is waited for behind the loop.

// CHECK-LABEL: func.func @pipelined(
// CHECK: scf.for
// CHECK: "ttg.async_wait"
// CHECK-NEXT: "ttg.memdesc_index"
// CHECK-NEXT: "ttg.barrier"
// CHECK-NEXT: "ttg.local_load"
// CHECK: "ttg.barrier"
// CHECK-NEXT: "ttg.async_copy_global_to_local"
// CHECK: scf.yield
// CHECK: "ttg.async_wait"
// CHECK-NEXT: "ttg.barrier"
// CHECK-NEXT: "ttg.local_load"
func.func @pipelined(%p: !pointers, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %buffers = "ttg.local_reserve"() : () -> !buffers
  %first = "ttg.memdesc_index"(%buffers, %c0) : (!buffers, i32) -> !buffer
  %begun = "ttg.async_copy_global_to_local"(%p, %first) {operandSegmentSizes = array<i32: 1, 1, 0>} : (!pointers, !buffer) -> !token
  %last = scf.for %i = %c0 to %n step %c1 iter_args(%token = %begun) -> !token : i32 {
    "ttg.async_wait"(%token) {pendings = 0 : i32} : (!token) -> ()
    %this = "ttg.memdesc_index"(%buffers, %i) : (!buffers, i32) -> !buffer
    %x = "ttg.local_load"(%this) : (!buffer) -> !tile
    %j = arith.addi %i, %c1 : i32
    %next = "ttg.memdesc_index"(%buffers, %j) : (!buffers, i32) -> !buffer
    %new = "ttg.async_copy_global_to_local"(%p, %next) {operandSegmentSizes = array<i32: 1, 1, 0>} : (!pointers, !buffer) -> !token
    scf.yield %new : !token
  }
  "ttg.async_wait"(%last) {pendings = 0 : i32} : (!token) -> ()
  %x = "ttg.local_load"(%first) : (!buffer) -> !tile
  return
}

// Groups of warps that run at once: each has its own barriers, and all meet before and behind.

// CHECK-LABEL: func.func @two_groups(
// CHECK: "ttg.local_store"
// CHECK-NEXT: "ttg.warp_specialize"() ({
// CHECK-NEXT: "ttg.local_load"
// CHECK-NEXT: "ttg.barrier"
// CHECK-NEXT: "ttg.local_store"
// CHECK-NEXT: "ttg.warp_return"
// CHECK: "ttg.local_load"
// CHECK-NEXT: "ttg.warp_return"
// CHECK: }) {warps = 2 : i32} : () -> ()
// CHECK-NEXT: "ttg.local_load"
func.func @two_groups(%x: !tile) {
  %one = "ttg.local_reserve"() : () -> !buffer
  %two = "ttg.local_reserve"() : () -> !buffer
  "ttg.local_store"(%x, %one) : (!tile, !buffer) -> ()
  "ttg.warp_specialize"() ({
    %y = "ttg.local_load"(%one) : (!buffer) -> !tile
    "ttg.local_store"(%x, %one) : (!tile, !buffer) -> ()
    "ttg.warp_return"() : () -> ()
  }, {
    %y = "ttg.local_load"(%two) : (!buffer) -> !tile
    "ttg.warp_return"() : () -> ()
  }) {warps = 2 : i32} : () -> ()
  %z = "ttg.local_load"(%one) : (!buffer) -> !tile
  return
}
}
