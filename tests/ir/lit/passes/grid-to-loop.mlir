// RUN: proton-opt --pipeline='grid-to-loop{noalias=true}' %s --split-input-file | filecheck %s
// RUN: proton-opt --pipeline='grid-to-loop{noalias=false}' %s --split-input-file | filecheck %s --check-prefix=ALIAS

// The kernel becomes internal, as NAME__program; NAME__range runs programs [first, last), x
// fastest.

// ALIAS-NOT: llvm.noalias
// CHECK: func.func @plain__program(%{{.*}}: !llvm.ptr {llvm.noalias}, %{{[^:]*}}: i32, %{{[^:]*}}: !llvm.ptr {llvm.noalias}, %{{[^:]*}}: i32, %{{[^:]*}}: i32, %{{[^:]*}}: i32, %{{[^:]*}}: i32, %{{[^:]*}}: i32, %{{[^:]*}}: i32) attributes
// CHECK-SAME: llvm.linkage = #llvm.linkage<internal>, llvm.passthrough = ["nounwind", ["prefer-vector-width", "512"], "alwaysinline"]
// CHECK: func.func @plain__range(
// CHECK-SAME: %[[P:[^:]*]]: !llvm.ptr {llvm.noalias}, %[[N:[^:]*]]: i32, %[[Q:[^:]*]]: !llvm.ptr {llvm.noalias}, %[[X:[^:]*]]: i32, %[[Y:[^:]*]]: i32, %[[Z:[^:]*]]: i32, %[[FIRST:[^:]*]]: i64, %[[LAST:[^:]*]]: i64) attributes {llvm.passthrough = ["nounwind", ["prefer-vector-width", "512"]]}
// CHECK-NEXT: %[[ONE:.*]] = arith.constant 1 : i64
// CHECK-NEXT: scf.for %[[I:.*]] = %[[FIRST]] to %[[LAST]] step %[[ONE]] : i64 {
// CHECK-NEXT: %[[LINEAR:.*]] = arith.trunci %[[I]] : i64 to i32
// CHECK-NEXT: %[[ROWS:.*]] = arith.divui %[[LINEAR]], %[[X]] : i32
// CHECK-NEXT: %[[PX:.*]] = arith.remui %[[LINEAR]], %[[X]] : i32
// CHECK-NEXT: %[[PY:.*]] = arith.remui %[[ROWS]], %[[Y]] : i32
// CHECK-NEXT: %[[PZ:.*]] = arith.divui %[[ROWS]], %[[Y]] : i32
// CHECK-NEXT: func.call @plain__program(%[[P]], %[[N]], %[[Q]], %[[PX]], %[[PY]], %[[PZ]], %[[X]], %[[Y]], %[[Z]])
// CHECK-NEXT: }
// CHECK-NEXT: return
func.func @plain(%p: !llvm.ptr, %n: i32, %q: !llvm.ptr, %x: i32, %y: i32, %z: i32, %nx: i32, %ny: i32, %nz: i32) attributes {tt.kernel, proton.abi = ["program_x", "program_y", "program_z", "grid_x", "grid_y", "grid_z"]} {
  return
}

// -----
// Extras come behind `last`: the status word, the profile buffer (of which each program has a
// block), the thread and the flush function. They are not the user's, so they may alias.

// CHECK: func.func @extras__range(
// CHECK-SAME: %[[P:[^:]*]]: !llvm.ptr {llvm.noalias}, %[[X:[^:]*]]: i32, %[[Y:[^:]*]]: i32, %[[Z:[^:]*]]: i32, %[[FIRST:[^:]*]]: i64, %[[LAST:[^:]*]]: i64, %[[STATUS:[^:]*]]: !llvm.ptr, %[[PROFILE:[^:]*]]: !llvm.ptr, %[[THREAD:[^:]*]]: i32, %[[FLUSH:[^:]*]]: !llvm.ptr) attributes
// CHECK: scf.for %[[I:.*]] = %[[FIRST]] to %[[LAST]]
// CHECK: %[[PX:.*]] = arith.remui
// CHECK: %[[BYTES:.*]] = arith.constant 192 : i64
// CHECK: %[[OFFSET:.*]] = arith.muli %[[I]], %[[BYTES]] : i64
// CHECK: %[[BLOCK:.*]] = llvm.getelementptr %[[PROFILE]][%[[OFFSET]]] : (!llvm.ptr, i64) -> !llvm.ptr, i8
// CHECK: func.call @extras__program(%[[P]], %[[PX]], %{{[^,]*}}, %{{[^,]*}}, %[[X]], %[[Y]], %[[Z]], %[[STATUS]], %[[BLOCK]], %[[THREAD]], %[[FLUSH]])
func.func @extras(%p: !llvm.ptr, %x: i32, %y: i32, %z: i32, %nx: i32, %ny: i32, %nz: i32, %status: !llvm.ptr, %profile: !llvm.ptr, %thread: i32, %flush: !llvm.ptr) attributes {tt.kernel, proton.profile = {capacity = 2 : i64, clock_bits = 64 : i64, optimized_out = [], payload_slots = 0 : i64, sample_programs = 1 : i64, sampled_units = 0 : i64, scopes = [], strategy = "circular", unit_warps = 1 : i64, units = 1 : i64}, proton.abi = ["program_x", "program_y", "program_z", "grid_x", "grid_y", "grid_z", "status", "profile", "thread", "flush"]} {
  return
}

// -----
// Scratch is allocated once for the range, on a cache line, and freed behind it.

// CHECK-DAG: func.func private @aligned_alloc(i64, i64) -> !llvm.ptr
// CHECK-DAG: func.func private @free(!llvm.ptr)
// CHECK: func.func @scratch__range(
// CHECK-SAME: %{{[^:]*}}: i32, %{{[^:]*}}: i32, %{{[^:]*}}: i32, %[[FIRST:[^:]*]]: i64, %[[LAST:[^:]*]]: i64) attributes
// CHECK-NEXT: %[[ALIGNMENT:.*]] = arith.constant 64 : i64
// CHECK-NEXT: %[[SIZE:.*]] = arith.constant 131072 : i64
// CHECK-NEXT: %[[S:.*]] = call @aligned_alloc(%[[ALIGNMENT]], %[[SIZE]]) : (i64, i64) -> !llvm.ptr
// CHECK: scf.for
// CHECK: func.call @scratch__program(%{{.*}}, %[[S]])
// CHECK: }
// CHECK-NEXT: call @free(%[[S]]) : (!llvm.ptr) -> ()
// CHECK-NEXT: return
func.func @scratch(%x: i32, %y: i32, %z: i32, %nx: i32, %ny: i32, %nz: i32, %scratch: !llvm.ptr) attributes {tt.kernel, proton.scratch_bytes = 131072 : i64, proton.abi = ["program_x", "program_y", "program_z", "grid_x", "grid_y", "grid_z", "scratch"]} {
  return
}

// -----
// Two kernels share the declarations.

// CHECK-COUNT-1: func.func private @aligned_alloc
// CHECK-NOT: func.func private @aligned_alloc
// CHECK: func.func @one__range(
// CHECK: func.call @one__program(
// CHECK: func.func @two__range(
// CHECK: func.call @two__program(
func.func @one(%x: i32, %y: i32, %z: i32, %nx: i32, %ny: i32, %nz: i32, %scratch: !llvm.ptr) attributes {tt.kernel, proton.scratch_bytes = 64 : i64, proton.abi = ["program_x", "program_y", "program_z", "grid_x", "grid_y", "grid_z", "scratch"]} {
  return
}
func.func @two(%x: i32, %y: i32, %z: i32, %nx: i32, %ny: i32, %nz: i32, %scratch: !llvm.ptr) attributes {tt.kernel, proton.scratch_bytes = 64 : i64, proton.abi = ["program_x", "program_y", "program_z", "grid_x", "grid_y", "grid_z", "scratch"]} {
  return
}

// -----
// A kernel's name may be that of the C function which it needs: the two are kept apart.

// CHECK: module {
// CHECK-NOT: @free(%
// CHECK: func.func private @free(!llvm.ptr)
// CHECK-NOT: @free(%
// CHECK: func.func @free__program(
// CHECK-SAME: llvm.linkage = #llvm.linkage<internal>
// CHECK-NOT: @free(%
// CHECK: func.func @free__range(
// CHECK: %[[S:.*]] = call @aligned_alloc(
// CHECK: func.call @free__program(%{{.*}}, %[[S]])
// CHECK-NEXT: }
// CHECK-NEXT: call @free(%[[S]]) : (!llvm.ptr) -> ()
// CHECK-NEXT: return
// CHECK-NOT: @free(%
func.func @free(%x: i32, %y: i32, %z: i32, %nx: i32, %ny: i32, %nz: i32, %scratch: !llvm.ptr) attributes {tt.kernel, proton.scratch_bytes = 64 : i64, proton.abi = ["program_x", "program_y", "program_z", "grid_x", "grid_y", "grid_z", "scratch"]} {
  return
}

// -----
// CHECK: func.func @not_a_kernel()
// CHECK-NOT: __{{range|program}}
func.func @not_a_kernel() {
  return
}
