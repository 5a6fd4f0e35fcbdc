// RUN: proton-opt --pipeline='triton-nvidia-gpu-tensor-descriptor-to-tma{target=cuda:90}' %s | filecheck %s

// Threads that meet may read what others wrote, by another argument: TMA would not see it.

!block = !tt.tensordesc<tensor<64x32xf16>, "zero">

// CHECK-LABEL: func.func @met(
// CHECK-NOT: ttng
func.func @met(%x: !block, %y: !block) attributes {tt.kernel} {
  %zero = arith.constant 0 : i32
  "tt.debug_barrier"() : () -> ()
  %a = "tt.descriptor_load"(%x, %zero, %zero) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 2>} : (!block, i32, i32) -> tensor<64x32xf16>
  "tt.descriptor_store"(%y, %a, %zero, %zero) {operandSegmentSizes = array<i32: 1, 1, 2>} : (!block, tensor<64x32xf16>, i32, i32) -> ()
  return
}
