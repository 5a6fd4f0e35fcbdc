// RUN: proton-opt --pipeline='tritongpu-unroll-short-loops' %s | filecheck %s

#row = #ttg.linear<[[1], [2]], [[4], [8], [16], [32], [64]], [], []>

// CHECK: #[[FULL:.*]] = #llvm.loop_unroll<full = true>
// CHECK: #[[WRITTEN_OUT:.*]] = #llvm.loop_annotation<unroll = #[[FULL]]>

// CHECK-LABEL: func.func @two_iterations_that_load
// CHECK: } {llvm.loop_annotation = #[[WRITTEN_OUT]]}
func.func @two_iterations_that_load(%p: tensor<128x!tt.ptr<f32>, #row>, %x: tensor<128xf32, #row>) -> tensor<128xf32, #row> {
  %c0 = arith.constant 0 : i32
  %c100 = arith.constant 100 : i32
  %c200 = arith.constant 200 : i32
  %r = scf.for %i = %c0 to %c200 step %c100 iter_args(%acc = %x) -> tensor<128xf32, #row> : i32 {
    %l = "tt.load"(%p) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<128x!tt.ptr<f32>, #row>) -> tensor<128xf32, #row>
    %s = arith.addf %acc, %l : tensor<128xf32, #row>
    scf.yield %s : tensor<128xf32, #row>
  }
  return %r : tensor<128xf32, #row>
}

// CHECK-LABEL: func.func @nine_iterations_stay
// CHECK-NOT: llvm.loop_annotation
func.func @nine_iterations_stay(%p: tensor<128x!tt.ptr<f32>, #row>, %x: tensor<128xf32, #row>) -> tensor<128xf32, #row> {
  %c0 = arith.constant 0 : i32
  %c100 = arith.constant 100 : i32
  %c801 = arith.constant 801 : i32
  %r = scf.for %i = %c0 to %c801 step %c100 iter_args(%acc = %x) -> tensor<128xf32, #row> : i32 {
    %l = "tt.load"(%p) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<128x!tt.ptr<f32>, #row>) -> tensor<128xf32, #row>
    %s = arith.addf %acc, %l : tensor<128xf32, #row>
    scf.yield %s : tensor<128xf32, #row>
  }
  return %r : tensor<128xf32, #row>
}

// CHECK-LABEL: func.func @a_loop_without_loads_stays
// CHECK-NOT: llvm.loop_annotation
func.func @a_loop_without_loads_stays(%x: tensor<128xf32, #row>) -> tensor<128xf32, #row> {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  %r = scf.for %i = %c0 to %c2 step %c1 iter_args(%acc = %x) -> tensor<128xf32, #row> : i32 {
    %s = arith.mulf %acc, %acc : tensor<128xf32, #row>
    scf.yield %s : tensor<128xf32, #row>
  }
  return %r : tensor<128xf32, #row>
}
