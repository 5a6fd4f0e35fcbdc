// RUN: proton-opt --pipeline='store-operands-early{target=cuda:90}' %s | filecheck %s

// Of a warp: blocks of 32 x 64 in fp32 are 64 registers of a thread, of 64 x 64 128.
#half = #ttg.linear<[[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32]], [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0]], [], []>
#full = #ttg.linear<[[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [32, 0]], [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0]], [], []>
#shared = #ttg.shared<[[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 0], [2, 0], [4, 0], [8, 0], [16, 0]]>
#shared_full = #ttg.shared<[[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [32, 0]]>
!half = !ttg.memdesc<[32, 64], f32, #shared>
!changed = !ttg.mutable_memdesc<[32, 64], f32, #shared>
!full = !ttg.memdesc<[64, 64], f32, #shared_full>

module attributes {"ttg.num-warps" = 1 : i32} {

// %x waits while %y and %z are alive: 320 registers. What is read again later stays, as does what
// waits for its store when there is room.

// CHECK-LABEL: func.func @crowded(
// CHECK-NEXT: %[[X:.*]] = math.exp
// CHECK-NEXT: %[[M:.*]] = "ttg.local_alloc"(%[[X]])
// CHECK-NEXT: %[[Y:.*]] = math.exp
// CHECK-NEXT: %[[Z:.*]] = math.exp
// CHECK-NEXT: %[[S:.*]] = arith.addf %[[Y]], %[[Z]]
// CHECK-NEXT: %[[L:.*]] = "ttg.local_load"(%[[M]])
// CHECK-NEXT: "ttg.local_alloc"(%[[S]])
// CHECK-NEXT: return %[[L]]
func.func @crowded(%a: tensor<32x64xf32, #half>, %b: tensor<64x64xf32, #full>) -> (tensor<32x64xf32, #half>, !full) {
  %x = math.exp %a : tensor<32x64xf32, #half>
  %y = math.exp %b : tensor<64x64xf32, #full>
  %z = math.exp %b : tensor<64x64xf32, #full>
  %s = arith.addf %y, %z : tensor<64x64xf32, #full>
  %m = "ttg.local_alloc"(%x) : (tensor<32x64xf32, #half>) -> !half
  %l = "ttg.local_load"(%m) : (!half) -> tensor<32x64xf32, #half>
  %n = "ttg.local_alloc"(%s) : (tensor<64x64xf32, #full>) -> !full
  return %l, %n : tensor<32x64xf32, #half>, !full
}

// CHECK-LABEL: func.func @has_room(
// CHECK: arith.addf
// CHECK-NEXT: "ttg.local_alloc"
func.func @has_room(%a: tensor<32x64xf32, #half>, %b: tensor<32x64xf32, #half>) -> (tensor<32x64xf32, #half>, !half) {
  %x = math.exp %a : tensor<32x64xf32, #half>
  %y = math.exp %b : tensor<32x64xf32, #half>
  %z = math.exp %b : tensor<32x64xf32, #half>
  %s = arith.addf %y, %z : tensor<32x64xf32, #half>
  %m = "ttg.local_alloc"(%x) : (tensor<32x64xf32, #half>) -> !half
  return %s, %m : tensor<32x64xf32, #half>, !half
}

// CHECK-LABEL: func.func @read_again(
// CHECK: arith.addf
// CHECK-NEXT: "ttg.local_alloc"
func.func @read_again(%a: tensor<32x64xf32, #half>, %b: tensor<64x64xf32, #full>) -> (tensor<32x64xf32, #half>, tensor<64x64xf32, #full>, !half) {
  %x = math.exp %a : tensor<32x64xf32, #half>
  %y = math.exp %b : tensor<64x64xf32, #full>
  %z = math.exp %b : tensor<64x64xf32, #full>
  %s = arith.addf %y, %z : tensor<64x64xf32, #full>
  %m = "ttg.local_alloc"(%x) : (tensor<32x64xf32, #half>) -> !half
  %w = math.log %x : tensor<32x64xf32, #half>
  return %w, %s, %m : tensor<32x64xf32, #half>, tensor<64x64xf32, #full>, !half
}

// What makes a block wider goes with its store.

// CHECK-LABEL: func.func @widened(
// CHECK-NEXT: %[[X:.*]] = arith.truncf
// CHECK-NEXT: %[[W:.*]] = arith.extf %[[X]]
// CHECK-NEXT: "ttg.local_alloc"(%[[W]])
// CHECK-NEXT: math.exp
func.func @widened(%a: tensor<32x64xf32, #half>, %b: tensor<64x64xf32, #full>) -> (tensor<64x64xf32, #full>, !half) {
  %x = arith.truncf %a : tensor<32x64xf32, #half> to tensor<32x64xf16, #half>
  %y = math.exp %b : tensor<64x64xf32, #full>
  %z = math.exp %b : tensor<64x64xf32, #full>
  %s = arith.addf %y, %z : tensor<64x64xf32, #full>
  %w = arith.extf %x : tensor<32x64xf16, #half> to tensor<32x64xf32, #half>
  %m = "ttg.local_alloc"(%w) : (tensor<32x64xf32, #half>) -> !half
  return %s, %m : tensor<64x64xf32, #full>, !half
}

// %b goes through registers to memory while %y is alive, and %a need not be. With room it stays; so
// it does behind what writes memory.

// CHECK-LABEL: func.func @copied(
// CHECK-NEXT: %[[Y:.*]] = math.exp
// CHECK-NEXT: %[[B:.*]] = "ttg.local_load"(%arg2)
// CHECK-NEXT: %[[M:.*]] = "ttg.local_alloc"(%[[B]])
// CHECK-NEXT: %[[A:.*]] = "ttg.local_load"(%arg1)
// CHECK-NEXT: arith.mulf %[[A]], %[[A]]
func.func @copied(%x: tensor<64x64xf32, #full>, %a: !full, %b: !half) -> (tensor<64x64xf32, #full>, !half) {
  %y = math.exp %x : tensor<64x64xf32, #full>
  %l = "ttg.local_load"(%a) : (!full) -> tensor<64x64xf32, #full>
  %z = arith.mulf %l, %l : tensor<64x64xf32, #full>
  %r = "ttg.local_load"(%b) : (!half) -> tensor<32x64xf32, #half>
  %m = "ttg.local_alloc"(%r) : (tensor<32x64xf32, #half>) -> !half
  %s = arith.addf %z, %y : tensor<64x64xf32, #full>
  return %s, %m : tensor<64x64xf32, #full>, !half
}

// CHECK-LABEL: func.func @copied_with_room(
// CHECK-NEXT: "ttg.local_load"(%arg1)
func.func @copied_with_room(%x: tensor<64x64xf32, #full>, %a: !half, %b: !half) -> (tensor<32x64xf32, #half>, !half) {
  %l = "ttg.local_load"(%a) : (!half) -> tensor<32x64xf32, #half>
  %r = "ttg.local_load"(%b) : (!half) -> tensor<32x64xf32, #half>
  %m = "ttg.local_alloc"(%r) : (tensor<32x64xf32, #half>) -> !half
  return %l, %m : tensor<32x64xf32, #half>, !half
}

// CHECK-LABEL: func.func @copied_behind_a_write(
// CHECK: %[[A:.*]] = "ttg.local_load"(%arg1)
// CHECK-NEXT: "ttg.local_store"(%{{.*}}, %arg2)
// CHECK-NEXT: %[[B:.*]] = "ttg.local_load"(%arg2)
func.func @copied_behind_a_write(%x: tensor<64x64xf32, #full>, %a: !full, %b: !changed, %h: tensor<32x64xf32, #half>) -> (tensor<64x64xf32, #full>, !half) {
  %y = math.exp %x : tensor<64x64xf32, #full>
  %l = "ttg.local_load"(%a) : (!full) -> tensor<64x64xf32, #full>
  "ttg.local_store"(%h, %b) : (tensor<32x64xf32, #half>, !changed) -> ()
  %r = "ttg.local_load"(%b) : (!changed) -> tensor<32x64xf32, #half>
  %m = "ttg.local_alloc"(%r) : (tensor<32x64xf32, #half>) -> !half
  %s = arith.addf %l, %y : tensor<64x64xf32, #full>
  return %s, %m : tensor<64x64xf32, #full>, !half
}
}
