// RUN: proton-opt --pipeline='allocate-shared-memory,ttg-to-llvm{target=cuda:90}' %s | filecheck %s

#four = #ttg.linear<[[1], [2]], [[4], [8], [16], [32], [64]], [[0], [0]], []>
#two = #ttg.linear<[[1]], [[2], [4], [8], [16], [32]], [[64], [0]], []>
#lanes = #ttg.linear<[], [[1], [2], [4], [8], [16]], [[32], [64]], []>
#swapped = #ttg.linear<[], [[2], [1], [4], [8], [16]], [[32], [64]], []>
#warps = #ttg.linear<[], [[4], [8], [16], [32], [64]], [[1], [2]], []>

module attributes {"ttg.num-warps" = 4 : i32} {

// CHECK: llvm.mlir.global external @global_smem() {addr_space = 3 : i32, alignment = 1024 : i64} : !llvm.array<0 x i8>

// A block whose mask is one for every four elements: 16 bytes under a predicate, no branch.
// Warps hold copies, and one of them stores.

// CHECK-LABEL: func.func @masked(
// CHECK-SAME: %[[X:.*]]: !llvm.ptr<1> {llvm.align = 16 : i32}, %[[N:.*]]: i32
// CHECK-NOT: llvm.cond_br
// CHECK: llvm.inline_asm has_side_effects "@$5 ld.global.v4.b32 {$0, $1, $2, $3}, [$4];", "=f,=f,=f,=f,l,b,0,1,2,3"
// CHECK: llvm.inline_asm has_side_effects "@$5 st.global.v4.b32 [$0], {$1, $2, $3, $4};", "l,f,f,f,f,b"
// CHECK-NOT: llvm.inline_asm
// CHECK: return
func.func @masked(%x: !tt.ptr<f32> {tt.divisibility = 16 : i32, tt.element = "fp32"}, %n: i32 {tt.divisibility = 16 : i32}) attributes {tt.kernel} {
  %i = "tt.make_range"() {start = 0 : i32, end = 128 : i32} : () -> tensor<128xi32, #four>
  %k = "tt.splat"(%n) : (i32) -> tensor<128xi32, #four>
  %m = arith.cmpi slt, %i, %k : tensor<128xi32, #four>
  %s = "tt.splat"(%x) : (!tt.ptr<f32>) -> tensor<128x!tt.ptr<f32>, #four>
  %p = "tt.addptr"(%s, %i) : (tensor<128x!tt.ptr<f32>, #four>, tensor<128xi32, #four>) -> tensor<128x!tt.ptr<f32>, #four>
  %v = "tt.load"(%p, %m) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>, volatile = false} : (tensor<128x!tt.ptr<f32>, #four>, tensor<128xi1, #four>) -> tensor<128xf32, #four>
  "tt.store"(%p, %v, %m) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 1>} : (tensor<128x!tt.ptr<f32>, #four>, tensor<128xf32, #four>, tensor<128xi1, #four>) -> ()
  return
}

// Without a mask a load is LLVM's own.

// CHECK-LABEL: func.func @plain(
// CHECK: llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xf32>
// CHECK-NOT: llvm.inline_asm
// CHECK: return
func.func @plain(%x: !tt.ptr<f32> {tt.divisibility = 16 : i32, tt.element = "fp32"}) attributes {tt.kernel} {
  %i = "tt.make_range"() {start = 0 : i32, end = 128 : i32} : () -> tensor<128xi32, #four>
  %s = "tt.splat"(%x) : (!tt.ptr<f32>) -> tensor<128x!tt.ptr<f32>, #four>
  %p = "tt.addptr"(%s, %i) : (tensor<128x!tt.ptr<f32>, #four>, tensor<128xi32, #four>) -> tensor<128x!tt.ptr<f32>, #four>
  %v = "tt.load"(%p) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<128x!tt.ptr<f32>, #four>) -> tensor<128xf32, #four>
  return
}

// A mask that may change at any element, or a pointer of unknown alignment: one element each. Where
// it is known that no address wraps around, the four have the first one's.

// CHECK-LABEL: func.func @narrow(
// CHECK: llvm.inline_asm has_side_effects "@$2 ld.global.b32 $0, [$1];", "=f,l,b,0" %[[FIRST:[0-9a-z]+]],
// CHECK: llvm.inline_asm has_side_effects "@$2 ld.global.b32 $0, [$1+4];", "=f,l,b,0" %[[FIRST]],
// CHECK: llvm.inline_asm has_side_effects "@$2 ld.global.b32 $0, [$1+8];", "=f,l,b,0" %[[FIRST]],
// CHECK: llvm.inline_asm has_side_effects "@$2 ld.global.b32 $0, [$1+12];", "=f,l,b,0" %[[FIRST]],
// CHECK-COUNT-4: llvm.load %{{.*}} {alignment = 4 : i64} : !llvm.ptr<1> -> vector<1xf32>
// CHECK: return
func.func @narrow(%x: !tt.ptr<f32> {tt.divisibility = 16 : i32, tt.element = "fp32"}, %y: !tt.ptr<f32>, %n: i32) attributes {tt.kernel} {
  %i = "tt.make_range"() {start = 0 : i32, end = 128 : i32} : () -> tensor<128xi32, #four>
  %k = "tt.splat"(%n) : (i32) -> tensor<128xi32, #four>
  %m = arith.cmpi slt, %i, %k : tensor<128xi32, #four>
  %s = "tt.splat"(%x) : (!tt.ptr<f32>) -> tensor<128x!tt.ptr<f32>, #four>
  %p = "tt.addptr"(%s, %i) : (tensor<128x!tt.ptr<f32>, #four>, tensor<128xi32, #four>) -> tensor<128x!tt.ptr<f32>, #four>
  %v = "tt.load"(%p, %m) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>, volatile = false} : (tensor<128x!tt.ptr<f32>, #four>, tensor<128xi1, #four>) -> tensor<128xf32, #four>
  %t = "tt.splat"(%y) : (!tt.ptr<f32>) -> tensor<128x!tt.ptr<f32>, #four>
  %q = "tt.addptr"(%t, %i) : (tensor<128x!tt.ptr<f32>, #four>, tensor<128xi32, #four>) -> tensor<128x!tt.ptr<f32>, #four>
  %w = "tt.load"(%q) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<128x!tt.ptr<f32>, #four>) -> tensor<128xf32, #four>
  return
}

// Lanes of a warp exchange by shuffles, registers of a thread by renaming.

// CHECK-LABEL: func.func @shuffle(
// CHECK: nvvm.shfl.sync idx
// CHECK-NOT: global_smem
// CHECK-NOT: nvvm.barrier
// CHECK: return
func.func @shuffle(%x: tensor<128xf32, #lanes>) -> tensor<128xf32, #swapped> {
  %0 = "ttg.convert_layout"(%x) : (tensor<128xf32, #lanes>) -> tensor<128xf32, #swapped>
  return %0 : tensor<128xf32, #swapped>
}

// Warps exchange through shared memory: store, meet, load.

// CHECK-LABEL: func.func @exchange(
// CHECK-SAME: ttg.shared = 512 : i32
// CHECK-NOT: nvvm.shfl
// CHECK: llvm.store %{{.*}} : vector<1xf32>, !llvm.ptr<3>
// CHECK: nvvm.barrier
// CHECK: llvm.load %{{.*}} : !llvm.ptr<3> -> vector<1xf32>
// CHECK: return
func.func @exchange(%x: tensor<128xf32, #lanes>) -> tensor<128xf32, #warps> {
  %0 = "ttg.convert_layout"(%x) : (tensor<128xf32, #lanes>) -> tensor<128xf32, #warps>
  return %0 : tensor<128xf32, #warps>
}

// A function that is called takes the address of its shared memory last; a kernel has the symbol.

// CHECK-LABEL: func.func @caller(
// CHECK: %[[BASE:.*]] = llvm.mlir.addressof @global_smem : !llvm.ptr<3>
// CHECK: call @exchange(%{{.*}}, %[[BASE]])
func.func @caller(%x: tensor<128xf32, #lanes>) attributes {tt.kernel} {
  %0 = func.call @exchange(%x) : (tensor<128xf32, #lanes>) -> tensor<128xf32, #warps>
  return
}

// A reduction: registers, a butterfly of five steps, warps through shared memory.

// CHECK-LABEL: func.func @reduce(
// CHECK: arith.addf
// CHECK-COUNT-5: nvvm.shfl.sync bfly
// CHECK-NOT: nvvm.shfl.sync bfly
// CHECK: !llvm.ptr<3>
// CHECK: nvvm.barrier
// CHECK: return
func.func @reduce(%x: tensor<128xf32, #two>) -> f32 {
  %t = "tt.reduce"(%x) ({
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    "tt.reduce_return"(%s) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (f32) -> ()
  }) {axis = 0 : i32, operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (tensor<128xf32, #two>) -> f32
  return %t : f32
}

// One warp holds it all, and the others copies: nobody has to meet.

// CHECK-LABEL: func.func @reduce_in_a_warp(
// CHECK-COUNT-5: nvvm.shfl.sync bfly
// CHECK-NOT: nvvm.barrier
// CHECK: return
func.func @reduce_in_a_warp(%x: tensor<32xf32, #ttg.linear<[], [[1], [2], [4], [8], [16]], [[0], [0]], []>>) -> f32 {
  %t = "tt.reduce"(%x) ({
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    "tt.reduce_return"(%s) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (f32) -> ()
  }) {axis = 0 : i32, operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (tensor<32xf32, #ttg.linear<[], [[1], [2], [4], [8], [16]], [[0], [0]], []>>) -> f32
  return %t : f32
}

// Arithmetic stays what it is: one op on the registers of a thread.

// CHECK-LABEL: func.func @arithmetic(
// CHECK-SAME: %[[X:.*]]: vector<4xf32>, %[[S:.*]]: f32
// CHECK-NEXT: %[[Y:.*]] = arith.addf %[[X]], %[[X]] : vector<4xf32>
// CHECK-NEXT: arith.mulf %[[S]], %[[S]] : f32
// CHECK-NEXT: return %[[Y]]
func.func @arithmetic(%x: tensor<128xf32, #four>, %s: f32) -> tensor<128xf32, #four> {
  %y = arith.addf %x, %x : tensor<128xf32, #four>
  %t = arith.mulf %s, %s : f32
  return %y : tensor<128xf32, #four>
}
}
