// RUN: proton-opt %s --pipeline='drop-no-wrap-flags' | filecheck %s
// Address arithmetic may wrap around: strides may be negative. Everything else stays.

// CHECK-LABEL: llvm.func @kernel
// CHECK-NOT: overflow
// CHECK-NOT: inbounds
// CHECK: %[[ROW:.*]] = llvm.mul %arg1, %arg2 : i64
// CHECK: %[[PLACE:.*]] = llvm.sub %[[ROW]], %arg2 : i64
// CHECK: %[[WIDE:.*]] = llvm.shl %[[PLACE]], %arg1 : i64
// CHECK: %[[NARROW:.*]] = llvm.trunc %[[WIDE]] : i64 to i32
// CHECK: %[[SUM:.*]] = llvm.add %[[NARROW]], %[[NARROW]] {mine = 1 : i32} : i32
// CHECK: llvm.getelementptr %arg0[%[[PLACE]], 1] : (!llvm.ptr, i64) -> !llvm.ptr, !llvm.struct<(i32, f32)>
// CHECK: llvm.fadd %arg3, %arg3 {fastmathFlags = #llvm.fastmath<reassoc>} : f32
llvm.func @kernel(%p: !llvm.ptr, %i: i64, %s: i64, %x: f32) -> i32 {
  %row = llvm.mul %i, %s overflow<nsw, nuw> : i64
  %place = llvm.sub %row, %s overflow<nsw> : i64
  %wide = llvm.shl %place, %i overflow<nuw> : i64
  %narrow = llvm.trunc %wide overflow<nsw> : i64 to i32
  %sum = llvm.add %narrow, %narrow overflow<nsw> {mine = 1 : i32} : i32
  %address = llvm.getelementptr inbounds|nuw %p[%place, 1] : (!llvm.ptr, i64) -> !llvm.ptr, !llvm.struct<(i32, f32)>
  %y = llvm.fadd %x, %x {fastmathFlags = #llvm.fastmath<reassoc>} : f32
  llvm.store %y, %address : f32, !llvm.ptr
  llvm.return %sum : i32
}
