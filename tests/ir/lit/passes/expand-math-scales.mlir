// RUN: proton-opt --pipeline='expand-math{scales=true}' %s | filecheck %s
// The power of two is put back by one instruction.

// CHECK-LABEL: func.func @exponentials
// CHECK-COUNT-2: llvm.intr.ldexp(%{{.*}}, %{{.*}}) : (f32, i32) -> f32
// CHECK-NOT: math.exp
func.func @exponentials(%x: f32) -> (f32, f32) {
  %a = math.exp %x : f32
  %b = math.exp2 %x : f32
  return %a, %b : f32, f32
}
