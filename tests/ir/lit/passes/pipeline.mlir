// RUN: proton-opt --pipeline='strip-records,canonicalize,cse,tt-combine,tt-reorder-broadcast,canonicalize,cse,loop-invariant-code-motion,sccp,tt-loop-unroll,canonicalize,cse,symbol-dce,mark-written,triton-to-structured,canonicalize,cse,loop-invariant-code-motion,guard-division,triton-pointers-to-llvm,triton-arith-to-linalg,linalg-fuse-elementwise-ops,canonicalize,cse,structured-to-memref{disjoint=true},loop-destinations,canonicalize,cse,one-shot-bufferize,canonicalize,cse,memref-copy-to-linalg,linalg-matmul-to-vector,stack-buffers,grid-to-loop{noalias=true},func.func(convert-linalg-to-loops),fold-memref-alias-ops,expand-strided-metadata,expand-math,expand-narrow-floats,canonicalize,cse,convert-vector-to-scf{full-unroll=1},lower-affine,loop-invariant-code-motion,convert-scf-to-cf,convert-math-to-llvm,convert-math-to-libm,convert-vector-to-llvm,finalize-memref-to-llvm,convert-func-to-llvm{use-bare-ptr-memref-call-conv=1},convert-arith-to-llvm,convert-index-to-llvm,convert-cf-to-llvm,convert-ub-to-llvm,reconcile-unrealized-casts,canonicalize,cse' %s -o %t.plain
// RUN: filecheck %s --input-file %t.plain --check-prefix=ONLY
// RUN: filecheck %s --input-file %t.plain --check-prefix=PLAIN
// RUN: proton-opt --pipeline='detach-records,canonicalize,cse,tt-combine,tt-reorder-broadcast,canonicalize,cse,loop-invariant-code-motion,sccp,tt-loop-unroll,canonicalize,cse,symbol-dce,mark-written,triton-to-structured,canonicalize,cse,loop-invariant-code-motion,guard-division,triton-pointers-to-llvm,triton-arith-to-linalg,linalg-fuse-elementwise-ops,canonicalize,cse,structured-to-memref{disjoint=true},loop-destinations,canonicalize,cse,one-shot-bufferize,canonicalize,cse,memref-copy-to-linalg,place-records,convert-proton-to-proton-gpu,allocate-profile,linalg-matmul-to-vector,stack-buffers,convert-proton-gpu-to-llvm,grid-to-loop{noalias=true},func.func(convert-linalg-to-loops),fold-memref-alias-ops,expand-strided-metadata,expand-math,expand-narrow-floats,canonicalize,cse,convert-vector-to-scf{full-unroll=1},lower-affine,loop-invariant-code-motion,convert-scf-to-cf,convert-math-to-llvm,convert-math-to-libm,convert-vector-to-llvm,finalize-memref-to-llvm,convert-func-to-llvm{use-bare-ptr-memref-call-conv=1},convert-arith-to-llvm,convert-index-to-llvm,convert-cf-to-llvm,convert-ub-to-llvm,reconcile-unrealized-casts,canonicalize,cse' %s -o %t.schedule
// RUN: filecheck %s --input-file %t.schedule --check-prefix=ONLY
// RUN: filecheck %s --input-file %t.schedule --check-prefix=SCHEDULE
// RUN: proton-opt --pipeline='detach-records{placement=program},canonicalize,cse,tt-combine,tt-reorder-broadcast,canonicalize,cse,loop-invariant-code-motion,sccp,tt-loop-unroll,canonicalize,cse,symbol-dce,mark-written,triton-to-structured,canonicalize,cse,loop-invariant-code-motion,guard-division,triton-pointers-to-llvm,triton-arith-to-linalg,materialize-at-records,linalg-fuse-elementwise-ops,canonicalize,cse,structured-to-memref{disjoint=true},loop-destinations,canonicalize,cse,one-shot-bufferize,canonicalize,cse,memref-copy-to-linalg,convert-proton-to-proton-gpu,allocate-profile,linalg-matmul-to-vector,stack-buffers,convert-proton-gpu-to-llvm,grid-to-loop{noalias=true},func.func(convert-linalg-to-loops),fold-memref-alias-ops,expand-strided-metadata,expand-math,expand-narrow-floats,canonicalize,cse,convert-vector-to-scf{full-unroll=1},lower-affine,loop-invariant-code-motion,convert-scf-to-cf,convert-math-to-llvm,convert-math-to-libm,convert-vector-to-llvm,finalize-memref-to-llvm,convert-func-to-llvm{use-bare-ptr-memref-call-conv=1},convert-arith-to-llvm,convert-index-to-llvm,convert-cf-to-llvm,convert-ub-to-llvm,reconcile-unrealized-casts,canonicalize,cse' %s -o %t.program
// RUN: filecheck %s --input-file %t.program --check-prefix=ONLY
// RUN: filecheck %s --input-file %t.program --check-prefix=PROGRAM
// The recipe of proton/backends/cpu/pipeline.py, from ttir to llvm: nothing but `llvm.` is left.

// ONLY-NOT: {{[ "](tt|tts|scf|arith|math|memref|linalg|tensor|vector|cf|func|affine|bufferization|builtin|index|ub|proton_gpu)\.[a-z_]+[" (]}}
// ONLY-NOT: {{"proton\.|unrealized_conversion_cast}}
// ONLY: llvm.func internal @add__program(
// ONLY-NOT: {{[ "](tt|tts|scf|arith|math|memref|linalg|tensor|vector|cf|func|affine|bufferization|builtin|index|ub|proton_gpu)\.[a-z_]+[" (]}}
// ONLY-NOT: {{"proton\.|unrealized_conversion_cast}}
// ONLY: llvm.func @add__range(%{{.*}}: !llvm.ptr {llvm.noalias}
// ONLY-NOT: {{[ "](tt|tts|scf|arith|math|memref|linalg|tensor|vector|cf|func|affine|bufferization|builtin|index|ub|proton_gpu)\.[a-z_]+[" (]}}
// ONLY-NOT: {{"proton\.|unrealized_conversion_cast}}
// ONLY: llvm.call @add__program(
// ONLY-NOT: {{[ "](tt|tts|scf|arith|math|memref|linalg|tensor|vector|cf|func|affine|bufferization|builtin|index|ub|proton_gpu)\.[a-z_]+[" (]}}
// ONLY-NOT: {{"proton\.|unrealized_conversion_cast}}
// ONLY: llvm.return
// ONLY-NOT: {{[ "](tt|tts|scf|arith|math|memref|linalg|tensor|vector|cf|func|affine|bufferization|builtin|index|ub|proton_gpu)\.[a-z_]+[" (]}}
// ONLY-NOT: {{"proton\.|unrealized_conversion_cast}}

// Without instrumentation no clock is read.

// PLAIN-NOT: rdtsc
// PLAIN: llvm.func @add__range(
// PLAIN-NOT: rdtsc

// By the schedule the work is one slice: a read before and one after it, and those of the block.

// SCHEDULE: llvm.func internal @add__program(
// SCHEDULE: "rdtscp"
// SCHEDULE: "rdtsc"
// SCHEDULE-NOT: rdtsc
// SCHEDULE: llvm.fadd
// SCHEDULE: "rdtsc"
// SCHEDULE: "rdtsc"
// SCHEDULE-NOT: rdtsc
// SCHEDULE: llvm.func @add__range(
// SCHEDULE-NOT: rdtsc

// In the order of the program there are two; they share an edge.

// PROGRAM: llvm.func internal @add__program(
// PROGRAM: "rdtscp"
// PROGRAM: "rdtsc"
// PROGRAM: llvm.load %{{.*}} : !llvm.ptr -> f32
// PROGRAM: "rdtsc"
// PROGRAM: llvm.fadd
// PROGRAM: "rdtsc"
// PROGRAM: llvm.func @add__range(
// PROGRAM-NOT: rdtsc
module {
  func.func @add(%x: !tt.ptr<f32>, %y: !tt.ptr<f32>, %out: !tt.ptr<f32>, %n: i32) attributes {tt.kernel} {
    %size = arith.constant 128 : i32
    %pid = "tt.get_program_id"() {axis = 0 : i32} : () -> i32
    %start = arith.muli %pid, %size : i32
    %range = "tt.make_range"() {start = 0 : i32, end = 128 : i32} : () -> tensor<128xi32>
    %starts = "tt.splat"(%start) : (i32) -> tensor<128xi32>
    %offsets = arith.addi %starts, %range : tensor<128xi32>
    %ns = "tt.splat"(%n) : (i32) -> tensor<128xi32>
    %mask = arith.cmpi slt, %offsets, %ns : tensor<128xi32>
    "proton.record"() {scope = "load", phase = "start", names = [], kinds = [], operandSegmentSizes = array<i32: 0, 0>} : () -> ()
    %xs = "tt.splat"(%x) : (!tt.ptr<f32>) -> tensor<128x!tt.ptr<f32>> loc("scope:load")
    %xp = "tt.addptr"(%xs, %offsets) : (tensor<128x!tt.ptr<f32>>, tensor<128xi32>) -> tensor<128x!tt.ptr<f32>> loc("scope:load")
    %a = "tt.load"(%xp, %mask) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>, volatile = false} : (tensor<128x!tt.ptr<f32>>, tensor<128xi1>) -> tensor<128xf32> loc("scope:load")
    %ys = "tt.splat"(%y) : (!tt.ptr<f32>) -> tensor<128x!tt.ptr<f32>> loc("scope:load")
    %yp = "tt.addptr"(%ys, %offsets) : (tensor<128x!tt.ptr<f32>>, tensor<128xi32>) -> tensor<128x!tt.ptr<f32>> loc("scope:load")
    %b = "tt.load"(%yp, %mask) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>, volatile = false} : (tensor<128x!tt.ptr<f32>>, tensor<128xi1>) -> tensor<128xf32> loc("scope:load")
    "proton.record"() {scope = "load", phase = "end", names = [], kinds = [], operandSegmentSizes = array<i32: 0, 0>} : () -> ()
    "proton.record"() {scope = "store", phase = "start", names = [], kinds = [], operandSegmentSizes = array<i32: 0, 0>} : () -> ()
    %sum = arith.addf %a, %b : tensor<128xf32> loc("scope:store")
    %outs = "tt.splat"(%out) : (!tt.ptr<f32>) -> tensor<128x!tt.ptr<f32>> loc("scope:store")
    %outp = "tt.addptr"(%outs, %offsets) : (tensor<128x!tt.ptr<f32>>, tensor<128xi32>) -> tensor<128x!tt.ptr<f32>> loc("scope:store")
    "tt.store"(%outp, %sum, %mask) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 1>} : (tensor<128x!tt.ptr<f32>>, tensor<128xf32>, tensor<128xi1>) -> () loc("scope:store")
    "proton.record"() {scope = "store", phase = "end", names = [], kinds = [], operandSegmentSizes = array<i32: 0, 0>} : () -> ()
    return
  }
}
