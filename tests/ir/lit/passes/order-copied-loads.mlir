// RUN: proton-opt --pipeline='order-copied-loads' %s | filecheck %s

#whole = #ttg.linear<[], [[1], [2], [4], [8], [16]], [[32], [64]], []>
#copies = #ttg.linear<[], [[1], [2], [4], [8], [16]], [[0], [0]], []>

module attributes {"ttg.num-warps" = 4 : i32} {

// All threads load the scalar, one stores it; what is loaded behind that is new.

// CHECK-LABEL: func.func @scalar(
// CHECK-NEXT: "tt.load"(%arg0)
// CHECK-NEXT: "tt.splat"
// CHECK-NEXT: "ttg.barrier"
// CHECK-NEXT: "tt.store"(%arg0
// CHECK-NEXT: "ttg.barrier"
// CHECK-NEXT: "tt.load"(%arg0)
// CHECK-NEXT: return
func.func @scalar(%p: !tt.ptr<i32>, %n: i32) -> (tensor<128xi32, #whole>, i32) {
  %x = "tt.load"(%p) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (!tt.ptr<i32>) -> i32
  %t = "tt.splat"(%x) : (i32) -> tensor<128xi32, #whole>
  "tt.store"(%p, %n) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>} : (!tt.ptr<i32>, i32) -> ()
  %y = "tt.load"(%p) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (!tt.ptr<i32>) -> i32
  return %t, %y : tensor<128xi32, #whole>, i32
}

// Nobody waits where the author has them meet, for another argument, for what only the thread that
// stores uses, and where there are no copies.

// CHECK-LABEL: func.func @others(
// CHECK-NOT: "ttg.barrier"
// CHECK: return
func.func @others(%p: !tt.ptr<i32>, %q: !tt.ptr<i32>, %few: tensor<32x!tt.ptr<i32>, #copies>, %many: tensor<128x!tt.ptr<i32>, #whole>) -> (i32, tensor<128xi32, #whole>) {
  %x = "tt.load"(%p) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (!tt.ptr<i32>) -> i32
  "tt.store"(%q, %x) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>} : (!tt.ptr<i32>, i32) -> ()
  "tt.debug_barrier"() : () -> ()
  "tt.store"(%p, %x) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>} : (!tt.ptr<i32>, i32) -> ()
  %y = "tt.load"(%few) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<32x!tt.ptr<i32>, #copies>) -> tensor<32xi32, #copies>
  %z = arith.addi %y, %y : tensor<32xi32, #copies>
  "tt.store"(%few, %z) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<32x!tt.ptr<i32>, #copies>, tensor<32xi32, #copies>) -> ()
  %w = "tt.load"(%many) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<128x!tt.ptr<i32>, #whole>) -> tensor<128xi32, #whole>
  "tt.store"(%many, %w) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<128x!tt.ptr<i32>, #whole>, tensor<128xi32, #whole>) -> ()
  return %x, %w : i32, tensor<128xi32, #whole>
}

// Where a loop leads back, its store comes before its load, and its load before its store.

// CHECK-LABEL: func.func @loop(
// CHECK: scf.for
// CHECK-NEXT: "ttg.barrier"
// CHECK-NEXT: "tt.load"
// CHECK-NEXT: "tt.splat"
// CHECK-NEXT: "ttg.barrier"
// CHECK-NEXT: "tt.store"
func.func @loop(%p: !tt.ptr<i32>, %n: i32, %one: i32) {
  scf.for %i = %one to %n step %one : i32 {
    %x = "tt.load"(%p) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (!tt.ptr<i32>) -> i32
    %t = "tt.splat"(%x) : (i32) -> tensor<128xi32, #whole>
    "tt.store"(%p, %n) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>} : (!tt.ptr<i32>, i32) -> ()
  }
  return
}

// What a loop or a branch passes on to the thread that stores is that thread's alone; what decides
// is not, nor what is used behind the loop.

// CHECK-LABEL: func.func @carried(
// CHECK-NOT: "ttg.barrier"
// CHECK: return
func.func @carried(%p: !tt.ptr<i32>, %n: i32, %one: i32, %is_last: i1) {
  %sum = scf.for %i = %one to %n step %one iter_args(%last = %one) -> (i32) : i32 {
    %at = "tt.addptr"(%p, %i) : (!tt.ptr<i32>, i32) -> !tt.ptr<i32>
    %x = "tt.load"(%at) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (!tt.ptr<i32>) -> i32
    %y = arith.addi %last, %x : i32
    %z = scf.if %is_last -> (i32) {
      scf.yield %y : i32
    } else {
      scf.yield %x : i32
    }
    "tt.store"(%at, %z) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>} : (!tt.ptr<i32>, i32) -> ()
    scf.yield %z : i32
  }
  "tt.store"(%p, %sum) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>} : (!tt.ptr<i32>, i32) -> ()
  return
}

// CHECK-LABEL: func.func @decides(
// CHECK: "tt.load"
// CHECK: "ttg.barrier"
// CHECK-NEXT: "tt.store"
func.func @decides(%p: !tt.ptr<i32>, %n: i32, %one: i32) {
  scf.for %i = %one to %n step %one : i32 {
    %x = "tt.load"(%p) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (!tt.ptr<i32>) -> i32
    scf.for %j = %one to %x step %one : i32 {
      "tt.store"(%p, %n) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>} : (!tt.ptr<i32>, i32) -> ()
    }
  }
  return
}

// CHECK-LABEL: func.func @behind(
// CHECK: "tt.load"
// CHECK-NEXT: "ttg.barrier"
// CHECK-NEXT: "tt.store"
func.func @behind(%p: !tt.ptr<i32>, %n: i32, %one: i32) -> tensor<128xi32, #whole> {
  %last = scf.for %i = %one to %n step %one iter_args(%before = %one) -> (i32) : i32 {
    %x = "tt.load"(%p) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (!tt.ptr<i32>) -> i32
    "tt.store"(%p, %before) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>} : (!tt.ptr<i32>, i32) -> ()
    scf.yield %x : i32
  }
  %t = "tt.splat"(%last) : (i32) -> tensor<128xi32, #whole>
  return %t : tensor<128xi32, #whole>
}

// What a loop passes on counts where something else takes it, too: here an address.

// CHECK-LABEL: func.func @addressed(
// CHECK: "tt.load"
// CHECK: "ttg.barrier"
// CHECK-NEXT: "tt.store"
func.func @addressed(%p: !tt.ptr<i32>, %q: !tt.ptr<i32>, %n: i32, %one: i32) {
  %last = scf.for %i = %one to %n step %one iter_args(%before = %one) -> (i32) : i32 {
    %x = "tt.load"(%p) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (!tt.ptr<i32>) -> i32
    %at = "tt.addptr"(%q, %x) : (!tt.ptr<i32>, i32) -> !tt.ptr<i32>
    %y = "tt.load"(%at) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (!tt.ptr<i32>) -> i32
    %z = arith.addi %y, %before : i32
    "tt.store"(%p, %z) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>} : (!tt.ptr<i32>, i32) -> ()
    scf.yield %x : i32
  }
  return
}

// CHECK-LABEL: func.func @yielded_and_loaded(
// CHECK: "tt.load"
// CHECK-NEXT: "tt.load"
// CHECK-NEXT: "ttg.barrier"
// CHECK-NEXT: "tt.store"
func.func @yielded_and_loaded(%p: !tt.ptr<!tt.ptr<i32>>, %r: !tt.ptr<i32>, %n: i32, %one: i32) {
  %last = scf.for %i = %one to %n step %one iter_args(%before = %r) -> (!tt.ptr<i32>) : i32 {
    %x = "tt.load"(%p) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (!tt.ptr<!tt.ptr<i32>>) -> !tt.ptr<i32>
    %y = "tt.load"(%x) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (!tt.ptr<i32>) -> i32
    "tt.store"(%p, %before) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>} : (!tt.ptr<!tt.ptr<i32>>, !tt.ptr<i32>) -> ()
    scf.yield %x : !tt.ptr<i32>
  }
  return
}

}
