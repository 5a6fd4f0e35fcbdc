// RUN: proton-opt --pipeline='annotate-loops' %s | filecheck %s
// Short innermost loops with records are unrolled; a variable of the records is no work.

// CHECK-DAG: #[[U8:.*]] = #llvm.loop_unroll<count = 8 : i32>
// CHECK-DAG: #[[U4:.*]] = #llvm.loop_unroll<count = 4 : i32>
// CHECK-DAG: #[[NONE:.*]] = #llvm.loop_unroll<runtimeDisable = true>
// CHECK-DAG: #[[EIGHT:.*]] = #llvm.loop_annotation<unroll = #[[U8]]>
// CHECK-DAG: #[[FOUR:.*]] = #llvm.loop_annotation<unroll = #[[U4]]>
// CHECK-DAG: #[[PLAIN:.*]] = #llvm.loop_annotation<unroll = #[[NONE]]>

// CHECK-LABEL: llvm.func @short(
// CHECK: llvm.br ^bb1(%{{.*}} : i32) {loop_annotation = #[[EIGHT]]}
llvm.func @short(%n: i32, %p: !llvm.ptr<1>) {
  %0 = llvm.mlir.constant(0 : i32) : i32
  %1 = llvm.mlir.constant(1 : i32) : i32
  %v = llvm.alloca %1 x i32 : (i32) -> !llvm.ptr
  llvm.br ^bb1(%0 : i32)
^bb1(%i: i32):
  %more = llvm.icmp "slt" %i, %n : i32
  llvm.cond_br %more, ^bb2, ^bb3
^bb2:
  %t = llvm.inline_asm has_side_effects "mov.u32 $0, %clock; // proton", "=r" : () -> i32
  llvm.store %t, %v : i32, !llvm.ptr
  llvm.store %i, %p : i32, !llvm.ptr<1>
  %next = llvm.add %i, %1 : i32
  llvm.br ^bb1(%next : i32)
^bb3:
  llvm.return
}

// Without records a loop of unknown length is the assembler's affair, and so is the outer one of two.

// CHECK-LABEL: llvm.func @outer_and_plain(
// CHECK: llvm.br ^bb3(%{{.*}} : i32) {loop_annotation = #[[PLAIN]]}
// CHECK: llvm.br ^bb1(%{{.*}} : i32) {loop_annotation = #[[PLAIN]]}
// CHECK: llvm.return
llvm.func @outer_and_plain(%n: i32, %p: !llvm.ptr<1>) {
  %0 = llvm.mlir.constant(0 : i32) : i32
  %1 = llvm.mlir.constant(1 : i32) : i32
  llvm.br ^bb1(%0 : i32)
^bb1(%i: i32):
  %more = llvm.icmp "slt" %i, %n : i32
  llvm.cond_br %more, ^bb2, ^bb6
^bb2:
  %t = llvm.inline_asm has_side_effects "mov.u32 $0, %clock; // proton", "=r" : () -> i32
  llvm.br ^bb3(%0 : i32)
^bb3(%j: i32):
  %again = llvm.icmp "slt" %j, %n : i32
  llvm.cond_br %again, ^bb4, ^bb5
^bb4:
  llvm.store %j, %p : i32, !llvm.ptr<1>
  %following = llvm.add %j, %1 : i32
  llvm.br ^bb3(%following : i32)
^bb5:
  %next = llvm.add %i, %1 : i32
  llvm.br ^bb1(%next : i32)
^bb6:
  llvm.return
}

// Twenty stores and five instructions of the loop: 25 * 4 = 100, 25 * 8 = 200.

// CHECK-LABEL: llvm.func @longer(
// CHECK: llvm.br ^bb1(%{{.*}} : i32) {loop_annotation = #[[FOUR]]}
llvm.func @longer(%n: i32, %p: !llvm.ptr<1>) {
  %0 = llvm.mlir.constant(0 : i32) : i32
  %1 = llvm.mlir.constant(1 : i32) : i32
  llvm.br ^bb1(%0 : i32)
^bb1(%i: i32):
  %more = llvm.icmp "slt" %i, %n : i32
  llvm.cond_br %more, ^bb2, ^bb3
^bb2:
  %t = llvm.inline_asm has_side_effects "mov.u32 $0, %clock; // proton", "=r" : () -> i32
  llvm.store volatile %i, %p : i32, !llvm.ptr<1>
  llvm.store volatile %i, %p : i32, !llvm.ptr<1>
  llvm.store volatile %i, %p : i32, !llvm.ptr<1>
  llvm.store volatile %i, %p : i32, !llvm.ptr<1>
  llvm.store volatile %i, %p : i32, !llvm.ptr<1>
  llvm.store volatile %i, %p : i32, !llvm.ptr<1>
  llvm.store volatile %i, %p : i32, !llvm.ptr<1>
  llvm.store volatile %i, %p : i32, !llvm.ptr<1>
  llvm.store volatile %i, %p : i32, !llvm.ptr<1>
  llvm.store volatile %i, %p : i32, !llvm.ptr<1>
  llvm.store volatile %i, %p : i32, !llvm.ptr<1>
  llvm.store volatile %i, %p : i32, !llvm.ptr<1>
  llvm.store volatile %i, %p : i32, !llvm.ptr<1>
  llvm.store volatile %i, %p : i32, !llvm.ptr<1>
  llvm.store volatile %i, %p : i32, !llvm.ptr<1>
  llvm.store volatile %i, %p : i32, !llvm.ptr<1>
  llvm.store volatile %i, %p : i32, !llvm.ptr<1>
  llvm.store volatile %i, %p : i32, !llvm.ptr<1>
  llvm.store volatile %i, %p : i32, !llvm.ptr<1>
  llvm.store volatile %i, %p : i32, !llvm.ptr<1>
  %next = llvm.add %i, %1 : i32
  llvm.br ^bb1(%next : i32)
^bb3:
  llvm.return
}

// Optimization barriers are not in the code without records, however much they take; accesses are.

// CHECK-LABEL: llvm.func @barrier_and_access(
// CHECK: llvm.br ^bb1(%{{.*}} : i32) {loop_annotation = #[[EIGHT]]}
// CHECK: llvm.br ^bb4(%{{.*}} : i32) {loop_annotation = #[[FOUR]]}
llvm.func @barrier_and_access(%n: i32, %p: !llvm.ptr<1>) {
  %0 = llvm.mlir.constant(0 : i32) : i32
  %1 = llvm.mlir.constant(1 : i32) : i32
  llvm.br ^bb1(%0 : i32)
^bb1(%i: i32):
  %more = llvm.icmp "slt" %i, %n : i32
  llvm.cond_br %more, ^bb2, ^bb3
^bb2:
  %t = llvm.inline_asm has_side_effects "mov.u32 $0, %clock; // proton", "=r" : () -> i32
  %k = llvm.inline_asm has_side_effects "", "=r,0,r,r,r,r,r,r,r,r,r,r,r,r,r,r,r,r" %i, %i, %i, %i, %i, %i, %i, %i, %i, %i, %i, %i, %i, %i, %i, %i, %i : (i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32) -> i32
  llvm.store %k, %p : i32, !llvm.ptr<1>
  %next = llvm.add %i, %1 : i32
  llvm.br ^bb1(%next : i32)
^bb3:
  llvm.br ^bb4(%0 : i32)
^bb4(%j: i32):
  %again = llvm.icmp "slt" %j, %n : i32
  llvm.cond_br %again, ^bb5, ^bb6
^bb5:
  %u = llvm.inline_asm has_side_effects "mov.u32 $0, %clock; // proton", "=r" : () -> i32
  llvm.inline_asm has_side_effects "st.global.v2.b32 [$0], {$1, $2};", "l,r,r,r,r,r,r,r,r,r,r,r,r,r,r,r,r" %p, %j, %j, %j, %j, %j, %j, %j, %j, %j, %j, %j, %j, %j, %j, %j, %j : (!llvm.ptr<1>, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32) -> ()
  %following = llvm.add %j, %1 : i32
  llvm.br ^bb4(%following : i32)
^bb6:
  llvm.return
}
