// RUN: not proton-opt --pipeline='convert-triton-to-tritongpu{num-warps=3}' %s 2>&1 | filecheck %s
// RUN: not proton-opt --pipeline='convert-triton-to-tritongpu{num-warps=64}' %s 2>&1 | filecheck %s --check-prefix=MANY

// CHECK: error: num_warps must be a power of two up to 32, got 3
// CHECK: hint: pass num_warps=4 or another power of two to the launch
// MANY: error: num_warps must be a power of two up to 32, got 64
func.func @kernel() {
  return
}
