"""Kernels on blocks of tensors, products of operands with scales, and groups of warps, as Triton
prints them. MOVE, DESCRIBE and SCALED are those of tests/cpu/test_triton_ir_blocks.py; GROUPS was
written for these tests, and checked with Triton's parser."""

# Triton 3.6, the text of its first level: later versions have no block pointers.
MOVE = """\
module {
  tt.func public @move(%x_ptr: !tt.ptr<f32>, %y_ptr: !tt.ptr<f32>, %M: i32, %N: i32, \
%K: i32) attributes {noinline = false} {
    %at = tt.get_program_id x : i32
    %at_0 = arith.constant 16 : i32
    %at_1 = arith.constant 16 : i32
    %at_2 = arith.extsi %at : i32 to i64
    %at_3 = arith.extsi %at_1 : i32 to i64
    %at_4 = arith.muli %at_2, %at_3 : i64
    %at_5 = arith.constant 2147483647 : i64
    %at_6 = arith.constant -2147483648 : i64
    %at_7 = arith.cmpi sle, %at_4, %at_5 : i64
    %at_8 = arith.cmpi sge, %at_4, %at_6 : i64
    %at_9 = arith.andi %at_7, %at_8 : i1
    %at_10 = arith.muli %at, %at_1 : i32
    %x = arith.extsi %M : i32 to i64
    %x_11 = arith.extsi %N : i32 to i64
    %x_12 = arith.extsi %N : i32 to i64
    %x_13 = arith.constant 1 : i64
    %x_14 = arith.constant 0 : i32
    %x_15 = tt.make_tensor_ptr %x_ptr, [%x, %x_11], [%x_12, %x_13], [%at_10, \
%x_14] {order = array<i32: 1, 0>} : <tensor<16x32xf32>>
    %y = arith.extsi %N : i32 to i64
    %y_16 = arith.extsi %M : i32 to i64
    %y_17 = arith.extsi %M : i32 to i64
    %y_18 = arith.constant 1 : i64
    %y_19 = arith.constant 0 : i32
    %y_20 = tt.make_tensor_ptr %y_ptr, [%y, %y_16], [%y_17, %y_18], [%y_19, \
%at_10] {order = array<i32: 0, 1>} : <tensor<32x16xf32>>
    %c0_i32 = arith.constant 0 : i32
    %c32_i32 = arith.constant 32 : i32
    %0 = arith.bitcast %c0_i32 : i32 to i32
    %1 = arith.bitcast %K : i32 to i32
    %2 = arith.bitcast %c32_i32 : i32 to i32
    %3 = ub.poison : i32
    %y_21:2 = scf.for %k = %0 to %1 step %2 iter_args(%x_22 = %x_15, %y_23 = %y_20) -> (\
!tt.ptr<tensor<16x32xf32>>, !tt.ptr<tensor<32x16xf32>>)  : i32 {
      %a = tt.load %x_22 {boundaryCheck = array<i32: 0, 1>, padding = 1 : i32} : \
!tt.ptr<tensor<16x32xf32>>
      %b = tt.load %y_23 cacheModifier = cg {boundaryCheck = array<i32: 0, 1>, padding = 2 : \
i32} : !tt.ptr<tensor<32x16xf32>>
      %4 = tt.trans %a {order = array<i32: 1, 0>} : tensor<16x32xf32> -> tensor<32x16xf32>
      %c2_i32 = arith.constant 2 : i32
      %cst = arith.constant 2.000000e+00 : f32
      %cst_24 = arith.constant dense<2.000000e+00> : tensor<32x16xf32>
      %5 = arith.mulf %4, %cst_24 : tensor<32x16xf32>
      %6 = arith.addf %5, %b : tensor<32x16xf32>
      tt.store %y_23, %6 evictionPolicy = evict_first {boundaryCheck = array<i32: 0, 1>} : \
!tt.ptr<tensor<32x16xf32>>
      %x_25 = arith.constant 0 : i32
      %x_26 = arith.constant 32 : i32
      %x_27 = tt.advance %x_22, [%x_25, %x_26] : <tensor<16x32xf32>>
      %y_28 = arith.constant 32 : i32
      %y_29 = arith.constant 0 : i32
      %y_30 = tt.advance %y_23, [%y_28, %y_29] : <tensor<32x16xf32>>
      scf.yield %x_27, %y_30 : !tt.ptr<tensor<16x32xf32>>, !tt.ptr<tensor<32x16xf32>>
    }
    tt.return
  }
}
"""

DESCRIBE = """\
module {
  tt.func public @describe(%x_ptr: !tt.ptr<f32>, %y_ptr: !tt.ptr<f32>, %rows_ptr: !tt.ptr<i32>, \
%M: i32, %N: i32) attributes {noinline = false} {
    %cst = arith.constant dense<2.000000e+00> : tensor<8x32xf32>
    %c0_i32 = arith.constant 0 : i32
    %c8_i32 = arith.constant 8 : i32
    %c4_i32 = arith.constant 4 : i32
    %c16_i32 = arith.constant 16 : i32
    %c1_i64 = arith.constant 1 : i64
    %x = arith.extsi %N : i32 to i64
    %x_0 = tt.make_tensor_descriptor %x_ptr, [%M, %N], [%x, %c1_i64] : <f32>, <16x32xf32>
    %y = tt.make_tensor_descriptor %y_ptr, [%M, %N], [%x, %c1_i64] {padding = 2 : i32} : <f32>, \
<16x32xf32>
    %row = tt.make_tensor_descriptor %y_ptr, [%M, %N], [%x, %c1_i64] : <f32>, <1x32xf32>
    %a = tt.get_program_id x : i32
    %a_1 = arith.muli %a, %c16_i32 : i32
    %a_2 = tt.descriptor_load %x_0[%a_1, %c4_i32] : !tt.tensordesc<16x32xf32> -> \
tensor<16x32xf32>
    %b = tt.descriptor_load %y[%a_1, %c8_i32] : !tt.tensordesc<16x32xf32> -> tensor<16x32xf32>
    %rows = tt.make_range {end = 8 : i32, start = 0 : i32} : tensor<8xi32>
    %rows_3 = tt.splat %rows_ptr : !tt.ptr<i32> -> tensor<8x!tt.ptr<i32>>
    %rows_4 = tt.addptr %rows_3, %rows : tensor<8x!tt.ptr<i32>>, tensor<8xi32>
    %rows_5 = tt.load %rows_4 : tensor<8x!tt.ptr<i32>>
    %c = tt.descriptor_gather %row[%rows_5, %c4_i32] : (!tt.tensordesc<1x32xf32>, tensor<8xi32>, \
i32) -> tensor<8x32xf32>
    %0 = arith.addf %a_2, %b : tensor<16x32xf32>
    tt.descriptor_store %x_0[%c0_i32, %c0_i32], %0 : !tt.tensordesc<16x32xf32>, tensor<16x32xf32>
    tt.descriptor_reduce add, %x_0[%c4_i32, %c4_i32], %a_2 : !tt.tensordesc<16x32xf32>, \
tensor<16x32xf32>
    %1 = arith.mulf %c, %cst : tensor<8x32xf32>
    tt.descriptor_scatter %row[%rows_5, %c8_i32], %1 : !tt.tensordesc<1x32xf32>, tensor<8xi32>, \
i32, tensor<8x32xf32>
    tt.return
  }
}
"""

SCALED = """\
module {
  tt.func public @scaled(%a_ptr: !tt.ptr<i8>, %a_scale_ptr: !tt.ptr<f8E4M3FN>, \
%b_ptr: !tt.ptr<f8E5M2>, %b_scale_ptr: !tt.ptr<f8E4M3FN>, \
%c_ptr: !tt.ptr<f32>) attributes {noinline = false} {
    %c = arith.constant dense<0.000000e+00> : tensor<32x32xf32>
    %cst = arith.constant dense<4> : tensor<32x1xi32>
    %b = arith.constant dense<32> : tensor<64x1xi32>
    %cst_0 = arith.constant dense<32> : tensor<32x1xi32>
    %0 = tt.make_range {end = 32 : i32, start = 0 : i32} : tensor<32xi32>
    %1 = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
    %2 = tt.make_range {end = 4 : i32, start = 0 : i32} : tensor<4xi32>
    %a = tt.expand_dims %0 {axis = 1 : i32} : tensor<32xi32> -> tensor<32x1xi32>
    %a_1 = arith.muli %a, %cst_0 : tensor<32x1xi32>
    %a_2 = tt.splat %a_ptr : !tt.ptr<i8> -> tensor<32x1x!tt.ptr<i8>>
    %a_3 = tt.addptr %a_2, %a_1 : tensor<32x1x!tt.ptr<i8>>, tensor<32x1xi32>
    %a_4 = tt.expand_dims %0 {axis = 0 : i32} : tensor<32xi32> -> tensor<1x32xi32>
    %a_5 = tt.broadcast %a_3 : tensor<32x1x!tt.ptr<i8>> -> tensor<32x32x!tt.ptr<i8>>
    %a_6 = tt.broadcast %a_4 : tensor<1x32xi32> -> tensor<32x32xi32>
    %a_7 = tt.addptr %a_5, %a_6 : tensor<32x32x!tt.ptr<i8>>, tensor<32x32xi32>
    %a_8 = tt.load %a_7 : tensor<32x32x!tt.ptr<i8>>
    %b_9 = tt.expand_dims %1 {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
    %b_10 = arith.muli %b_9, %b : tensor<64x1xi32>
    %b_11 = tt.splat %b_ptr : !tt.ptr<f8E5M2> -> tensor<64x1x!tt.ptr<f8E5M2>>
    %b_12 = tt.addptr %b_11, %b_10 : tensor<64x1x!tt.ptr<f8E5M2>>, tensor<64x1xi32>
    %b_13 = tt.broadcast %b_12 : tensor<64x1x!tt.ptr<f8E5M2>> -> tensor<64x32x!tt.ptr<f8E5M2>>
    %b_14 = tt.broadcast %a_4 : tensor<1x32xi32> -> tensor<64x32xi32>
    %b_15 = tt.addptr %b_13, %b_14 : tensor<64x32x!tt.ptr<f8E5M2>>, tensor<64x32xi32>
    %b_16 = tt.load %b_15 : tensor<64x32x!tt.ptr<f8E5M2>>
    %a_scale = arith.muli %a, %cst : tensor<32x1xi32>
    %a_scale_17 = tt.splat %a_scale_ptr : !tt.ptr<f8E4M3FN> -> tensor<32x1x!tt.ptr<f8E4M3FN>>
    %a_scale_18 = tt.addptr %a_scale_17, %a_scale : tensor<32x1x!tt.ptr<f8E4M3FN>>, \
tensor<32x1xi32>
    %a_scale_19 = tt.expand_dims %2 {axis = 0 : i32} : tensor<4xi32> -> tensor<1x4xi32>
    %a_scale_20 = tt.broadcast %a_scale_18 : tensor<32x1x!tt.ptr<f8E4M3FN>> -> \
tensor<32x4x!tt.ptr<f8E4M3FN>>
    %a_scale_21 = tt.broadcast %a_scale_19 : tensor<1x4xi32> -> tensor<32x4xi32>
    %a_scale_22 = tt.addptr %a_scale_20, %a_scale_21 : tensor<32x4x!tt.ptr<f8E4M3FN>>, \
tensor<32x4xi32>
    %a_scale_23 = tt.load %a_scale_22 : tensor<32x4x!tt.ptr<f8E4M3FN>>
    %b_scale = tt.splat %b_scale_ptr : !tt.ptr<f8E4M3FN> -> tensor<32x1x!tt.ptr<f8E4M3FN>>
    %b_scale_24 = tt.addptr %b_scale, %a_scale : tensor<32x1x!tt.ptr<f8E4M3FN>>, tensor<32x1xi32>
    %b_scale_25 = tt.broadcast %b_scale_24 : tensor<32x1x!tt.ptr<f8E4M3FN>> -> \
tensor<32x4x!tt.ptr<f8E4M3FN>>
    %b_scale_26 = tt.addptr %b_scale_25, %a_scale_21 : tensor<32x4x!tt.ptr<f8E4M3FN>>, \
tensor<32x4xi32>
    %b_scale_27 = tt.load %b_scale_26 : tensor<32x4x!tt.ptr<f8E4M3FN>>
    %c_28 = tt.dot_scaled %a_8 scale %a_scale_23, %b_16 scale %b_scale_27, \
%c lhs = e2m1 rhs = e5m2 {fastMath = false} : tensor<32x32xi8>, \
tensor<32x4xf8E4M3FN> * tensor<64x32xf8E5M2>, tensor<32x4xf8E4M3FN> -> tensor<32x32xf32>
    %d = tt.trans %a_8 {order = array<i32: 1, 0>} : tensor<32x32xi8> -> tensor<32x32xi8>
    %d_29 = tt.dot_scaled %a_8 scale %a_scale_23, %d, \
%c_28 lhs = e2m1 rhs = e2m1 {fastMath = false} : tensor<32x32xi8>, \
tensor<32x4xf8E4M3FN> * tensor<32x32xi8> -> tensor<32x32xf32>
    %3 = tt.splat %c_ptr : !tt.ptr<f32> -> tensor<32x1x!tt.ptr<f32>>
    %4 = tt.addptr %3, %a_1 : tensor<32x1x!tt.ptr<f32>>, tensor<32x1xi32>
    %5 = tt.broadcast %4 : tensor<32x1x!tt.ptr<f32>> -> tensor<32x32x!tt.ptr<f32>>
    %6 = tt.addptr %5, %a_6 : tensor<32x32x!tt.ptr<f32>>, tensor<32x32xi32>
    tt.store %6, %d_29 : tensor<32x32x!tt.ptr<f32>>
    tt.return
  }
}
"""

# Sums of blocks whose addresses lie in memory: the kernel makes their maps, the host the other one.
TOTAL = """\
#blocked = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], \
order = [1, 0]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 32}>
#shared1 = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", \
"ttg.threads-per-warp" = 32 : i32, "ttng.two-ctas" = false} {
  tt.func public @total(%addresses_ptr: !tt.ptr<i64>, \
%out_ptr: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %count: i32, %M: i32, \
%N: i32) attributes {noinline = false} {
    %cst = arith.constant dense<0.000000e+00> : tensor<32x32xf32, #blocked>
    %c1_i32 = arith.constant 1 : i32
    %c0_i32 = arith.constant 0 : i32
    %c32_i32 = arith.constant 32 : i32
    %c4_i64 = arith.constant 4 : i64
    %true = arith.constant true
    %out = arith.extsi %N : i32 to i64
    %out_0 = ttg.global_scratch_alloc {alignment = 128 : i32, nbytes = 128 : i32} : !tt.ptr<i8>
    %out_1 = arith.muli %out, %c4_i64 : i64
    ttng.tensormap_create %out_0, %out_ptr, [%c32_i32, %c32_i32], [%N, %M], [%out_1], [%c1_i32, \
%c1_i32] {elem_type = 7 : i32, fill_mode = 0 : i32, interleave_layout = 0 : i32, \
swizzle_mode = 3 : i32} : (!tt.ptr<i8>, !tt.ptr<f32>, i32, i32, i32, i32, i64, i32, i32) -> ()
    ttng.tensormap_fenceproxy_acquire %out_0 : !tt.ptr<i8>
    %out_2 = ttng.reinterpret_tensor_descriptor %out_0 : \
!tt.ptr<i8> to !tt.tensordesc<32x32xf32, #shared>
    %acc = scf.for %n = %c0_i32 to %count step %c1_i32 iter_args(%acc_3 = %cst) -> (\
tensor<32x32xf32, #blocked>)  : i32 {
      %address = tt.addptr %addresses_ptr, %n : !tt.ptr<i64>, i32
      %address_4 = tt.load %address : !tt.ptr<i64>
      %address_5 = tt.int_to_ptr %address_4 : i64 -> !tt.ptr<f32>
      %part = ttg.global_scratch_alloc {alignment = 128 : i32, nbytes = 128 : i32} : !tt.ptr<i8>
      ttng.tensormap_create %part, %address_5, [%c32_i32, %c32_i32], [%N, %M], [%out_1], \
[%c1_i32, %c1_i32] {elem_type = 7 : i32, fill_mode = 1 : i32, interleave_layout = 0 : i32, \
swizzle_mode = 3 : i32} : (!tt.ptr<i8>, !tt.ptr<f32>, i32, i32, i32, i32, i64, i32, i32) -> ()
      ttng.tensormap_fenceproxy_acquire %part : !tt.ptr<i8>
      %part_6 = ttng.reinterpret_tensor_descriptor %part : \
!tt.ptr<i8> to !tt.tensordesc<32x32xf32, #shared>
      %acc_7 = ttg.local_alloc : () -> !ttg.memdesc<32x32xf32, #shared, #smem, mutable>
      %acc_8 = ttg.local_alloc : () -> !ttg.memdesc<1xi64, #shared1, #smem, mutable>
      ttng.init_barrier %acc_8, 1 : !ttg.memdesc<1xi64, #shared1, #smem, mutable>
      ttng.barrier_expect %acc_8, 4096, %true : !ttg.memdesc<1xi64, #shared1, #smem, mutable>
      ttng.async_tma_copy_global_to_local %part_6[%c0_i32, %c0_i32] %acc_7, %acc_8, %true : \
!tt.tensordesc<32x32xf32, #shared>, !ttg.memdesc<1xi64, #shared1, #smem, mutable> -> \
!ttg.memdesc<32x32xf32, #shared, #smem, mutable>
      ttng.wait_barrier %acc_8, %c0_i32 : !ttg.memdesc<1xi64, #shared1, #smem, mutable>
      ttng.inval_barrier %acc_8 : !ttg.memdesc<1xi64, #shared1, #smem, mutable>
      %acc_9 = ttg.local_load %acc_7 : !ttg.memdesc<32x32xf32, #shared, #smem, mutable> -> \
tensor<32x32xf32, #blocked>
      %acc_10 = arith.addf %acc_3, %acc_9 : tensor<32x32xf32, #blocked>
      scf.yield %acc_10 : tensor<32x32xf32, #blocked>
    }
    %0 = ttg.local_alloc %acc : (tensor<32x32xf32, #blocked>) -> !ttg.memdesc<32x32xf32, \
#shared, #smem>
    ttng.fence_async_shared {bCluster = false}
    ttng.async_tma_copy_local_to_global %out_2[%c0_i32, %c0_i32] %0 : !tt.tensordesc<32x32xf32, \
#shared>, !ttg.memdesc<32x32xf32, #shared, #smem>
    ttng.async_tma_store_wait {pendings = 0 : i32}
    tt.return
  }
}
"""

# c = a @ b by a group of warps that copies blocks, and one that multiplies them.
GROUPS = """\
#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], \
instrShape = [16, 64, 16]}>
#words = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", \
"ttg.threads-per-warp" = 32 : i32} {
  tt.func public @groups(%a: !tt.tensordesc<64x64xf16, #shared>, %b: !tt.tensordesc<64x64xf16, \
#shared>, %c: !tt.tensordesc<64x64xf16, #shared>, %K: i32) attributes {noinline = false} {
    %c0_i32 = arith.constant 0 : i32
    %c1_i32 = arith.constant 1 : i32
    %c64_i32 = arith.constant 64 : i32
    %true = arith.constant true
    %as = ttg.local_alloc : () -> !ttg.memdesc<2x64x64xf16, #shared, #smem, mutable>
    %bs = ttg.local_alloc : () -> !ttg.memdesc<2x64x64xf16, #shared, #smem, mutable>
    %full = ttg.local_alloc : () -> !ttg.memdesc<2x1xi64, #words, #smem, mutable>
    %empty = ttg.local_alloc : () -> !ttg.memdesc<2x1xi64, #words, #smem, mutable>
    %0 = ttg.memdesc_index %full[%c0_i32] : !ttg.memdesc<2x1xi64, #words, #smem, mutable> -> \
!ttg.memdesc<1xi64, #words, #smem, mutable>
    ttng.init_barrier %0, 1 : !ttg.memdesc<1xi64, #words, #smem, mutable>
    %1 = ttg.memdesc_index %full[%c1_i32] : !ttg.memdesc<2x1xi64, #words, #smem, mutable> -> \
!ttg.memdesc<1xi64, #words, #smem, mutable>
    ttng.init_barrier %1, 1 : !ttg.memdesc<1xi64, #words, #smem, mutable>
    %2 = ttg.memdesc_index %empty[%c0_i32] : !ttg.memdesc<2x1xi64, #words, #smem, mutable> -> \
!ttg.memdesc<1xi64, #words, #smem, mutable>
    ttng.init_barrier %2, 128 : !ttg.memdesc<1xi64, #words, #smem, mutable>
    %3 = ttg.memdesc_index %empty[%c1_i32] : !ttg.memdesc<2x1xi64, #words, #smem, mutable> -> \
!ttg.memdesc<1xi64, #words, #smem, mutable>
    ttng.init_barrier %3, 128 : !ttg.memdesc<1xi64, #words, #smem, mutable>
    ttg.barrier local
    ttg.warp_specialize(%as, %bs, %full, %empty, %c, \
%K) attributes {requestedRegisters = array<i32: 232>}
    default {
      %4:2 = scf.for %k = %c0_i32 to %K step %c64_i32 iter_args(%at = %c0_i32, \
%phase = %c1_i32) -> (i32, i32)  : i32 {
        %5 = ttg.memdesc_index %empty[%at] : !ttg.memdesc<2x1xi64, #words, #smem, mutable> -> \
!ttg.memdesc<1xi64, #words, #smem, mutable>
        ttng.wait_barrier %5, %phase {async_task_id = array<i32: 0>} : !ttg.memdesc<1xi64, \
#words, #smem, mutable>
        %6 = ttg.memdesc_index %full[%at] : !ttg.memdesc<2x1xi64, #words, #smem, mutable> -> \
!ttg.memdesc<1xi64, #words, #smem, mutable>
        ttng.barrier_expect %6, 16384 {async_task_id = array<i32: 0>}, %true : \
!ttg.memdesc<1xi64, #words, #smem, mutable>
        %7 = ttg.memdesc_index %as[%at] : !ttg.memdesc<2x64x64xf16, #shared, #smem, mutable> -> \
!ttg.memdesc<64x64xf16, #shared, #smem, mutable>
        ttng.async_tma_copy_global_to_local %a[%c0_i32, %k] %7, %6, \
%true {async_task_id = array<i32: 0>} : !tt.tensordesc<64x64xf16, #shared>, !ttg.memdesc<1xi64, \
#words, #smem, mutable> -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
        %8 = ttg.memdesc_index %bs[%at] : !ttg.memdesc<2x64x64xf16, #shared, #smem, mutable> -> \
!ttg.memdesc<64x64xf16, #shared, #smem, mutable>
        ttng.async_tma_copy_global_to_local %b[%k, %c0_i32] %8, %6, %true : \
!tt.tensordesc<64x64xf16, #shared>, !ttg.memdesc<1xi64, #words, #smem, mutable> -> \
!ttg.memdesc<64x64xf16, #shared, #smem, mutable>
        %9 = arith.xori %at, %c1_i32 : i32
        %10 = arith.xori %phase, %at : i32
        scf.yield {async_task_id = array<i32: 0>} %9, %10 : i32, i32
      } {async_task_id = array<i32: 0>, tt.num_stages = 0 : i32}
      ttg.warp_yield
    }
    partition0(%as_0: !ttg.memdesc<2x64x64xf16, #shared, #smem, mutable>, \
%bs_1: !ttg.memdesc<2x64x64xf16, #shared, #smem, mutable>, %full_2: !ttg.memdesc<2x1xi64, \
#words, #smem, mutable>, %empty_3: !ttg.memdesc<2x1xi64, #words, #smem, mutable>, \
%c_4: !tt.tensordesc<64x64xf16, #shared>, %K_5: i32) num_warps(4) {
      %c0_i32_6 = arith.constant 0 : i32
      %c1_i32_7 = arith.constant 1 : i32
      %c64_i32_8 = arith.constant 64 : i32
      %zeros = arith.constant dense<0.000000e+00> : tensor<64x64xf32, #mma>
      %4:3 = scf.for %k = %c0_i32_6 to %K_5 step %c64_i32_8 iter_args(%acc = %zeros, \
%at = %c0_i32_6, %phase = %c0_i32_6) -> (tensor<64x64xf32, #mma>, i32, i32)  : i32 {
        %7 = ttg.memdesc_index %full_2[%at] : !ttg.memdesc<2x1xi64, #words, #smem, mutable> -> \
!ttg.memdesc<1xi64, #words, #smem, mutable>
        ttng.wait_barrier %7, %phase : !ttg.memdesc<1xi64, #words, #smem, mutable>
        %8 = ttg.memdesc_index %as_0[%at] : !ttg.memdesc<2x64x64xf16, #shared, #smem, \
mutable> -> !ttg.memdesc<64x64xf16, #shared, #smem>
        %9 = ttg.memdesc_index %bs_1[%at] : !ttg.memdesc<2x64x64xf16, #shared, #smem, \
mutable> -> !ttg.memdesc<64x64xf16, #shared, #smem>
        %10 = ttng.warp_group_dot %8, %9, %acc {inputPrecision = 0 : i32} : \
!ttg.memdesc<64x64xf16, #shared, #smem> * !ttg.memdesc<64x64xf16, #shared, #smem> -> \
tensor<64x64xf32, #mma>
        %11 = ttg.memdesc_index %empty_3[%at] : !ttg.memdesc<2x1xi64, #words, #smem, mutable> -> \
!ttg.memdesc<1xi64, #words, #smem, mutable>
        ttng.arrive_barrier %11, 128 {async_task_id = array<i32: 1>} : !ttg.memdesc<1xi64, \
#words, #smem, mutable>
        %12 = arith.xori %at, %c1_i32_7 : i32
        %13 = arith.xori %phase, %at : i32
        scf.yield %10, %12, %13 : tensor<64x64xf32, #mma>, i32, i32
      }
      %5 = arith.truncf %4#0 : tensor<64x64xf32, #mma> to tensor<64x64xf16, #mma>
      %6 = ttg.local_alloc %5 : (tensor<64x64xf16, #mma>) -> !ttg.memdesc<64x64xf16, #shared, \
#smem>
      ttng.fence_async_shared {bCluster = false}
      ttng.async_tma_copy_local_to_global %c_4[%c0_i32_6, %c0_i32_6] %6 : \
!tt.tensordesc<64x64xf16, #shared>, !ttg.memdesc<64x64xf16, #shared, #smem>
      ttng.async_tma_store_wait {pendings = 0 : i32}
      ttg.warp_return
    } : (!ttg.memdesc<2x64x64xf16, #shared, #smem, mutable>, !ttg.memdesc<2x64x64xf16, #shared, \
#smem, mutable>, !ttg.memdesc<2x1xi64, #words, #smem, mutable>, !ttg.memdesc<2x1xi64, #words, \
#smem, mutable>, !tt.tensordesc<64x64xf16, #shared>, i32) -> ()
    ttng.inval_barrier %0 : !ttg.memdesc<1xi64, #words, #smem, mutable>
    tt.return
  }
}
"""
