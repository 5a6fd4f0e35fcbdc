// RUN: proton-opt --pipeline='allocate-shared-memory' %s | filecheck %s
// Buffers of copies that go on, and of groups of warps that run at once. A buffer here has 256
// bytes, and so has each exchange.

#a = #ttg.linear<[], [[1], [2], [4], [8], [16]], [[32]], []>
#b = #ttg.linear<[], [[2], [4], [8], [16], [32]], [[1]], []>
!buffer = !ttg.mutable_memdesc<[8, 8], f32, #ttg.shared<[[0, 1], [0, 2], [0, 4], [1, 0], [2, 0], [4, 0]]>>
!token = !ttg.async_token
!pointers = tensor<8x8x!tt.ptr<f32>>
!tile = tensor<8x8xf32>

module attributes {"ttg.num-warps" = 2 : i32} {

// Nobody names the buffer any more, but the copy is under way until the wait: the exchange before
// it has bytes of its own, the one behind has not.

// CHECK-LABEL: func.func @until_the_wait(
// CHECK-SAME: ttg.shared = 512
// CHECK: "ttg.local_reserve"() {ttg.offset = [[BUFFER:.*]] : i32}
// CHECK: "ttg.convert_layout"
// CHECK-SAME: ttg.offset = [[OTHER:.*]] : i32
// CHECK: "ttg.async_wait"
// CHECK: "ttg.convert_layout"
// CHECK-SAME: ttg.offset = 0 : i32
func.func @until_the_wait(%p: !pointers, %x: tensor<64xf32, #a>) {
  %buffer = "ttg.local_reserve"() : () -> !buffer
  %token = "ttg.async_copy_global_to_local"(%p, %buffer) {operandSegmentSizes = array<i32: 1, 1, 0>} : (!pointers, !buffer) -> !token
  %0 = "ttg.convert_layout"(%x) : (tensor<64xf32, #a>) -> tensor<64xf32, #b>
  "ttg.async_wait"(%token) {pendings = 0 : i32} : (!token) -> ()
  %1 = "ttg.convert_layout"(%x) : (tensor<64xf32, #a>) -> tensor<64xf32, #b>
  return
}

// One behind the other they share bytes; at once they do not.

// CHECK-LABEL: func.func @in_turn(
// CHECK-SAME: ttg.shared = 256
func.func @in_turn(%x: tensor<64xf32, #a>) {
  %0 = "ttg.convert_layout"(%x) : (tensor<64xf32, #a>) -> tensor<64xf32, #b>
  %1 = "ttg.convert_layout"(%x) : (tensor<64xf32, #a>) -> tensor<64xf32, #b>
  return
}

// CHECK-LABEL: func.func @at_once(
// CHECK-SAME: ttg.shared = 512
func.func @at_once(%x: tensor<64xf32, #a>) {
  "ttg.warp_specialize"() ({
    %0 = "ttg.convert_layout"(%x) : (tensor<64xf32, #a>) -> tensor<64xf32, #b>
    %1 = "ttg.convert_layout"(%x) : (tensor<64xf32, #a>) -> tensor<64xf32, #b>
    "ttg.warp_return"() : () -> ()
  }, {
    %0 = "ttg.convert_layout"(%x) : (tensor<64xf32, #a>) -> tensor<64xf32, #b>
    "ttg.warp_return"() : () -> ()
  }) {warps = 2 : i32} : () -> ()
  return
}

// A buffer whose last use is in the first group is in use as long as the second one runs.

// CHECK-LABEL: func.func @beside_the_last_use(
// CHECK-SAME: ttg.shared = 512
func.func @beside_the_last_use(%x: tensor<64xf32, #a>, %y: !tile) {
  %buffer = "ttg.local_reserve"() : () -> !buffer
  "ttg.warp_specialize"() ({
    "ttg.local_store"(%y, %buffer) : (!tile, !buffer) -> ()
    "ttg.warp_return"() : () -> ()
  }, {
    %0 = "ttg.convert_layout"(%x) : (tensor<64xf32, #a>) -> tensor<64xf32, #b>
    "ttg.warp_return"() : () -> ()
  }) {warps = 2 : i32} : () -> ()
  return
}
}
