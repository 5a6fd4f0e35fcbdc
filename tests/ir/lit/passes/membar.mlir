// RUN: proton-opt --pipeline='allocate-shared-memory,membar' %s | filecheck %s
// A product reads its operands in shared memory; an exchange (a conversion between warps) writes
// its scratch memory, has a barrier inside, and reads it.

#a = #ttg.linear<[], [[1], [2], [4], [8], [16]], [[32], [64]], []>
#b = #ttg.linear<[], [[4], [8], [16], [32], [64]], [[1], [2]], []>
#acc = #ttg.linear<[[0, 4]], [[0, 1], [0, 2], [1, 0], [2, 0], [4, 0]], [[0, 0], [0, 0]], []>
!square = !ttg.memdesc<[8, 8], f32, #ttg.shared<[[0, 1], [0, 2], [0, 4], [1, 0], [2, 0], [4, 0]]>>

module attributes {"ttg.num-warps" = 4 : i32} {

// Read after write: one barrier for both operands. Write after read: the exchange takes the bytes
// of the operands.

// CHECK-LABEL: func.func @read_after_write_after_read(
// CHECK-NEXT: "ttg.local_alloc"
// CHECK-NEXT: "ttg.local_alloc"
// CHECK-NEXT: "ttg.barrier"
// CHECK-NEXT: "ttg.dot"
// CHECK-NEXT: "ttg.barrier"
// CHECK-NEXT: "ttg.convert_layout"
// CHECK-NEXT: return
func.func @read_after_write_after_read(%x: tensor<128xf32, #a>, %s: tensor<8x8xf32, #acc>) {
  %p = "ttg.local_alloc"(%s) : (tensor<8x8xf32, #acc>) -> !square
  %q = "ttg.local_alloc"(%s) : (tensor<8x8xf32, #acc>) -> !square
  %d = "ttg.dot"(%p, %q, %s) : (!square, !square, tensor<8x8xf32, #acc>) -> tensor<8x8xf32, #acc>
  %0 = "ttg.convert_layout"(%x) : (tensor<128xf32, #a>) -> tensor<128xf32, #b>
  return
}

// The second exchange writes what the first one reads.

// CHECK-LABEL: func.func @exchanges(
// CHECK-NEXT: "ttg.convert_layout"
// CHECK-NEXT: "ttg.barrier"
// CHECK-NEXT: "ttg.convert_layout"
// CHECK-NEXT: return
func.func @exchanges(%x: tensor<128xf32, #a>) {
  %0 = "ttg.convert_layout"(%x) : (tensor<128xf32, #a>) -> tensor<128xf32, #b>
  %1 = "ttg.convert_layout"(%0) : (tensor<128xf32, #b>) -> tensor<128xf32, #a>
  return
}

// The barrier inside of an exchange is enough for what was written before it.

// CHECK-LABEL: func.func @barrier_inside(
// CHECK-NEXT: "ttg.local_alloc"
// CHECK-NEXT: "ttg.convert_layout"
// CHECK-NEXT: "ttg.dot"
// CHECK-NEXT: return
func.func @barrier_inside(%x: tensor<128xf32, #a>, %s: tensor<8x8xf32, #acc>) {
  %p = "ttg.local_alloc"(%s) : (tensor<8x8xf32, #acc>) -> !square
  %0 = "ttg.convert_layout"(%x) : (tensor<128xf32, #a>) -> tensor<128xf32, #b>
  %d = "ttg.dot"(%p, %p, %s) : (!square, !square, tensor<8x8xf32, #acc>) -> tensor<8x8xf32, #acc>
  return
}

// Reads after reads, other bytes, and a barrier that the author wrote: no barrier of ours.

// CHECK-LABEL: func.func @not_needed(
// CHECK-NEXT: "ttg.local_alloc"
// CHECK-NEXT: "ttg.barrier"
// CHECK-NEXT: "ttg.dot"
// CHECK-NEXT: "ttg.dot"
// CHECK-NEXT: "ttg.local_alloc"
// CHECK-NEXT: "ttg.dot"
// CHECK-NEXT: "ttg.barrier"
// CHECK-NEXT: "ttg.dot"
// CHECK-NEXT: return
func.func @not_needed(%s: tensor<8x8xf32, #acc>) {
  %p = "ttg.local_alloc"(%s) : (tensor<8x8xf32, #acc>) -> !square
  "tt.debug_barrier"() : () -> ()
  %d = "ttg.dot"(%p, %p, %s) : (!square, !square, tensor<8x8xf32, #acc>) -> tensor<8x8xf32, #acc>
  %e = "ttg.dot"(%p, %p, %s) : (!square, !square, tensor<8x8xf32, #acc>) -> tensor<8x8xf32, #acc>
  %q = "ttg.local_alloc"(%s) : (tensor<8x8xf32, #acc>) -> !square
  %f = "ttg.dot"(%p, %p, %s) : (!square, !square, tensor<8x8xf32, #acc>) -> tensor<8x8xf32, #acc>
  %g = "ttg.dot"(%p, %q, %s) : (!square, !square, tensor<8x8xf32, #acc>) -> tensor<8x8xf32, #acc>
  return
}

// A loop comes back: the exchange writes what that of the iteration before reads.

// CHECK-LABEL: func.func @loop(
// CHECK: scf.for
// CHECK-NEXT: "ttg.barrier"
// CHECK-NEXT: "ttg.convert_layout"
// CHECK-NEXT: }
func.func @loop(%x: tensor<128xf32, #a>, %n: i32) {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  scf.for %i = %zero to %n step %one : i32 {
    %0 = "ttg.convert_layout"(%x) : (tensor<128xf32, #a>) -> tensor<128xf32, #b>
  }
  return
}

// A loop that only reads needs one barrier, before its first read.

// CHECK-LABEL: func.func @loop_reads(
// CHECK: "ttg.local_alloc"
// CHECK-NEXT: "ttg.convert_layout"
// CHECK-NEXT: scf.for
// CHECK-NEXT: "ttg.dot"
// CHECK-NEXT: }
func.func @loop_reads(%x: tensor<128xf32, #a>, %s: tensor<8x8xf32, #acc>, %n: i32) {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %p = "ttg.local_alloc"(%s) : (tensor<8x8xf32, #acc>) -> !square
  %0 = "ttg.convert_layout"(%x) : (tensor<128xf32, #a>) -> tensor<128xf32, #b>
  scf.for %i = %zero to %n step %one : i32 {
    %d = "ttg.dot"(%p, %p, %s) : (!square, !square, tensor<8x8xf32, #acc>) -> tensor<8x8xf32, #acc>
  }
  return
}

// A branch that may not be taken leaves things as they were.

// CHECK-LABEL: func.func @branch(
// CHECK: "ttg.convert_layout"
// CHECK-NEXT: scf.if
// CHECK-NEXT: "ttg.barrier"
// CHECK-NEXT: }
// CHECK-NEXT: "ttg.barrier"
// CHECK-NEXT: "ttg.convert_layout"
func.func @branch(%x: tensor<128xf32, #a>, %c: i1) {
  %0 = "ttg.convert_layout"(%x) : (tensor<128xf32, #a>) -> tensor<128xf32, #b>
  scf.if %c {
    "tt.debug_barrier"() : () -> ()
  }
  %1 = "ttg.convert_layout"(%x) : (tensor<128xf32, #a>) -> tensor<128xf32, #b>
  return
}

// With a barrier on both sides there is none behind it.

// CHECK-LABEL: func.func @both_branches(
// CHECK: } else {
// CHECK-NEXT: "ttg.barrier"
// CHECK-NEXT: }
// CHECK-NEXT: "ttg.convert_layout"
func.func @both_branches(%x: tensor<128xf32, #a>, %c: i1) {
  %0 = "ttg.convert_layout"(%x) : (tensor<128xf32, #a>) -> tensor<128xf32, #b>
  scf.if %c {
    "tt.debug_barrier"() : () -> ()
  } else {
    "tt.debug_barrier"() : () -> ()
  }
  %1 = "ttg.convert_layout"(%x) : (tensor<128xf32, #a>) -> tensor<128xf32, #b>
  return
}

// A callee touches its memory before it meets: its callers put a barrier between two calls. Only
// of a callee that meets first they know that there is nothing to wait for.

// CHECK-LABEL: func.func private @exchange(
// CHECK-NEXT: "ttg.convert_layout"
func.func private @exchange(%x: tensor<128xf32, #a>) {
  %0 = "ttg.convert_layout"(%x) : (tensor<128xf32, #a>) -> tensor<128xf32, #b>
  return
}

// CHECK-LABEL: func.func private @meets_first(
func.func private @meets_first(%x: tensor<128xf32, #a>) {
  "tt.debug_barrier"() : () -> ()
  %0 = "ttg.convert_layout"(%x) : (tensor<128xf32, #a>) -> tensor<128xf32, #b>
  return
}

// CHECK-LABEL: func.func private @no_memory(
func.func private @no_memory() {
  return
}

// CHECK-LABEL: func.func @calls(
// CHECK-NEXT: call @exchange
// CHECK-NEXT: call @no_memory
// CHECK-NEXT: "ttg.barrier"
// CHECK-NEXT: call @exchange
// CHECK-NEXT: call @meets_first
// CHECK-NEXT: "ttg.barrier"
// CHECK-NEXT: "ttg.convert_layout"
// CHECK-NEXT: return
func.func @calls(%x: tensor<128xf32, #a>) attributes {tt.kernel} {
  func.call @exchange(%x) : (tensor<128xf32, #a>) -> ()
  func.call @no_memory() : () -> ()
  func.call @exchange(%x) : (tensor<128xf32, #a>) -> ()
  func.call @meets_first(%x) : (tensor<128xf32, #a>) -> ()
  %0 = "ttg.convert_layout"(%x) : (tensor<128xf32, #a>) -> tensor<128xf32, #b>
  return
}

// What is written ahead of loops is waited for ahead of the outermost one.

// CHECK-LABEL: func.func @nested_loops_read(
// CHECK: "ttg.local_alloc"
// CHECK-NEXT: "ttg.barrier"
// CHECK-NEXT: scf.for
// CHECK-NEXT: scf.for
// CHECK-NEXT: "ttg.dot"
// CHECK-NOT: "ttg.barrier"
// CHECK: return
func.func @nested_loops_read(%x: tensor<8x8xf32, #acc>, %n: i32) {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %0 = "ttg.local_alloc"(%x) : (tensor<8x8xf32, #acc>) -> !square
  scf.for %i = %zero to %n step %one : i32 {
    scf.for %j = %zero to %n step %one : i32 {
      %1 = "ttg.dot"(%0, %0, %x) : (!square, !square, tensor<8x8xf32, #acc>) -> tensor<8x8xf32, #acc>
    }
  }
  return
}

}
