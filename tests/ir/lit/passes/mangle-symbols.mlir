// RUN: proton-opt --pipeline='mangle-symbols' %s | filecheck %s
// Functions that have a body get symbols that no C function, no function of libdevice and no word
// of PTX has; what is declared keeps its name.

// CHECK: func.func private @helper__1$(
// CHECK: func.func private @erff(f32) -> f32
// CHECK: func.func @gr$f6$_$24$31$(
// CHECK: call @helper__1$(
// CHECK: call @erff(
func.func private @helper__1(%x: f32) -> f32 {
  return %x : f32
}
func.func private @erff(f32) -> f32
func.func @"grö_$31"(%x: f32) attributes {tt.kernel} {
  %0 = func.call @helper__1(%x) : (f32) -> f32
  %1 = func.call @erff(%0) : (f32) -> f32
  return
}
