// RUN: proton-opt --pipeline='llvm-to-gpu-module' %s | filecheck %s
// RUN: proton-opt --pipeline='llvm-to-gpu-module{max-registers=40}' %s | filecheck %s --check-prefix=BOUND

module attributes {"ttg.num-warps" = 8 : i32} {

// CHECK: module attributes {gpu.container_module, "ttg.num-warps" = 8 : i32}
// CHECK: gpu.module @kernel {
// CHECK: llvm.mlir.global external @global_smem()
llvm.mlir.global external @global_smem() {addr_space = 3 : i32} : !llvm.array<0 x i8>

// What is only declared has nothing to be said of.

// CHECK: llvm.func @__nv_asinf(f32) -> f32{{$}}
llvm.func @__nv_asinf(f32) -> f32

// A kernel: as many threads as warps have; registers where they are bounded. The marks of earlier
// levels are gone, those of the back end stay.

// CHECK: llvm.func @kernel(%{{.*}}: !llvm.ptr<1>) attributes {nvvm.kernel, nvvm.maxntid = array<i32: 256>, ttg.shared = 64 : i32}
// BOUND: llvm.func @kernel(%{{.*}}: !llvm.ptr<1>) attributes {nvvm.kernel, nvvm.maxnreg = 40 : i32, nvvm.maxntid = array<i32: 256>, ttg.shared = 64 : i32}
llvm.func @kernel(%p: !llvm.ptr<1>) attributes {tt.kernel, ttg.shared = 64 : i32, proton.note = "gone"} {
  llvm.call @helper() : () -> ()
  llvm.return
}

// A function that is called is internal, stays a call, and is no kernel.

// CHECK: llvm.func internal @helper() attributes {passthrough = ["noinline"]}
// BOUND: llvm.func internal @helper() attributes {passthrough = ["noinline"]}
llvm.func @helper() {
  llvm.return
}
}
