// RUN: proton-opt --pipeline='tritongpu-schedule-loops{num-stages=1 target=cuda:90},triton-nvidia-gpu-fence-insertion' %s | filecheck %s

// Two products are issued, then the first is waited for while the second goes on. One fence is enough
// for both: nothing is written between them.

#acc = #ttg.linear<[[0, 1], [8, 0], [0, 8], [0, 16], [0, 32]], [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], [[16, 0], [32, 0]], []>
#k_major = #ttg.shared<[[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
!memory = !ttg.memdesc<[64, 64], f16, #k_major>
!sum = tensor<64x64xf32, #acc>
module attributes {"ttg.num-warps" = 4 : i32} {

// CHECK-LABEL: func.func @two(
// CHECK: "ttng.fence_async_shared"
// CHECK-NEXT: %[[E:.*]] = "ttng.warp_group_dot"(%arg0, %arg1, %arg2)
// CHECK-NEXT: %[[F:.*]] = "ttng.warp_group_dot"(%arg1, %arg0, %arg2)
// CHECK-NEXT: %[[S:.*]] = "ttng.warp_group_dot_wait"(%[[E]]) {pendings = 1 : i32}
// CHECK-NEXT: %[[X:.*]] = math.exp2 %[[S]]
// CHECK-NEXT: %[[O:.*]] = "ttng.warp_group_dot_wait"(%[[F]]) {pendings = 0 : i32}
// CHECK-NEXT: arith.mulf %[[O]], %[[X]]
func.func @two(%q: !memory, %k: !memory, %acc: !sum) -> !sum {
  %e = "ttng.warp_group_dot"(%q, %k, %acc) {imprecise = 0 : i32, operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (!memory, !memory, !sum) -> !sum
  %s = "ttng.warp_group_dot_wait"(%e) {pendings = 0 : i32} : (!sum) -> !sum
  %f = "ttng.warp_group_dot"(%k, %q, %acc) {imprecise = 0 : i32, operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (!memory, !memory, !sum) -> !sum
  %o = "ttng.warp_group_dot_wait"(%f) {pendings = 0 : i32} : (!sum) -> !sum
  %x = math.exp2 %s : !sum
  %r = arith.mulf %o, %x : !sum
  return %r : !sum
}

// Behind a wait for all products none is under way: the numbers say so.

// CHECK-LABEL: func.func @carried(
// CHECK: %[[E:.*]] = "ttng.warp_group_dot"(%arg0, %arg1, %arg2)
// CHECK: %[[F:.*]] = "ttng.warp_group_dot"(%arg1, %arg0, %arg3)
// CHECK-NEXT: %[[O:.*]] = "ttng.warp_group_dot_wait"(%[[F]]) {pendings = 0 : i32}
// CHECK-NEXT: %[[S:.*]] = "ttng.warp_group_dot_wait"(%[[E]]) {pendings = 0 : i32}
// CHECK-NEXT: return %[[S]], %[[O]]
func.func @carried(%q: !memory, %k: !memory, %one: !sum, %other: !sum) -> (!sum, !sum) {
  %e = "ttng.warp_group_dot"(%q, %k, %one) {imprecise = 0 : i32, operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (!memory, !memory, !sum) -> !sum
  %s = "ttng.warp_group_dot_wait"(%e) {pendings = 0 : i32} : (!sum) -> !sum
  %f = "ttng.warp_group_dot"(%k, %q, %other) {imprecise = 0 : i32, operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (!memory, !memory, !sum) -> !sum
  %o = "ttng.warp_group_dot_wait"(%f) {pendings = 0 : i32} : (!sum) -> !sum
  return %s, %o : !sum, !sum
}

// What is written to memory meanwhile may be what a product reads.

// CHECK-LABEL: func.func @written(
// CHECK: %[[E:.*]] = "ttng.warp_group_dot"
// CHECK-NEXT: %[[S:.*]] = "ttng.warp_group_dot_wait"(%[[E]]) {pendings = 0 : i32}
// CHECK-NEXT: "ttg.local_store"
// CHECK-NEXT: "ttng.fence_async_shared"
// CHECK-NEXT: "ttng.warp_group_dot"
func.func @written(%q: !memory, %m: !ttg.mutable_memdesc<[64, 64], f16, #k_major>, %x: tensor<64x64xf16, #acc>, %acc: !sum) -> !sum {
  %e = "ttng.warp_group_dot"(%q, %m, %acc) {imprecise = 0 : i32, operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (!memory, !ttg.mutable_memdesc<[64, 64], f16, #k_major>, !sum) -> !sum
  %s = "ttng.warp_group_dot_wait"(%e) {pendings = 0 : i32} : (!sum) -> !sum
  "ttg.local_store"(%x, %m) : (tensor<64x64xf16, #acc>, !ttg.mutable_memdesc<[64, 64], f16, #k_major>) -> ()
  %f = "ttng.warp_group_dot"(%q, %m, %s) {imprecise = 0 : i32, operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (!memory, !ttg.mutable_memdesc<[64, 64], f16, #k_major>, !sum) -> !sum
  %o = "ttng.warp_group_dot_wait"(%f) {pendings = 0 : i32} : (!sum) -> !sum
  return %o : !sum
}
}
