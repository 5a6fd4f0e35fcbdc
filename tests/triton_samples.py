"""Kernels as Triton 3.9 prints them, written for these tests and checked with its own parser."""

ADD = """\
#loc = loc("kernels/add.py":4:1)
module {
  tt.func public @add(%x_ptr: !tt.ptr<f32> {tt.divisibility = 16 : i32} loc("x_ptr"(#loc)), \
%arg1: !tt.ptr<f32> {tt.divisibility = 16 : i32} loc("y_ptr"(#loc)), \
%out_ptr: !tt.ptr<f32> loc("out_ptr"(#loc)), %n: i32 loc("n"(#loc))) \
attributes {noinline = false} {
    %c64_i32 = arith.constant 64 : i32 loc(#loc1)
    %pid = tt.get_program_id x : i32 loc(#loc2)
    %0 = arith.muli %pid, %c64_i32 : i32 loc(#loc2)
    %1 = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32> loc(#loc2)
    %2 = tt.splat %0 : i32 -> tensor<64xi32> loc(#loc2)
    %3 = arith.addi %2, %1 : tensor<64xi32> loc(#loc2)
    %4 = tt.splat %n : i32 -> tensor<64xi32> loc(#loc2)
    %5 = arith.cmpi slt, %3, %4 : tensor<64xi32> loc(#loc2)
    %6 = tt.splat %x_ptr : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>> loc(#loc2)
    %7 = tt.addptr %6, %3 : tensor<64x!tt.ptr<f32>>, tensor<64xi32> loc(#loc2)
    %8 = tt.load %7, %5 : tensor<64x!tt.ptr<f32>> loc(#loc2)
    %9 = tt.splat %arg1 : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>> loc(#loc2)
    %10 = tt.addptr %9, %3 : tensor<64x!tt.ptr<f32>>, tensor<64xi32> loc(#loc2)
    %11 = tt.load %10, %5 {cachePolicy = #tt.cache_policy<cache_modifier = cg, eviction_policy = \
evict_last>} : tensor<64x!tt.ptr<f32>> loc(#loc2)
    %12 = arith.addf %8, %11 : tensor<64xf32> loc(#loc2)
    %13 = tt.splat %out_ptr : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
    %14 = tt.addptr %13, %3 : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
    tt.store %14, %12, %5 : tensor<64x!tt.ptr<f32>>
    tt.return loc(#loc)
  } loc(#loc)
} loc(#loc)
#loc1 = loc(unknown)
#loc2 = loc("sum"("kernels/add.py":7:12))
"""

SOFTMAX = """\
module {
  tt.func public @softmax(%out: !tt.ptr<f32>, %x: !tt.ptr<f32>, %stride: i32, %rows: i32, \
%columns: i32) attributes {noinline = false} {
    %least = arith.constant dense<0xFF800000> : tensor<64xf32>
    %first = tt.get_program_id x : i32
    %step = tt.get_num_programs x : i32
    %i = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
    %n = tt.splat %columns : i32 -> tensor<64xi32>
    %mask = arith.cmpi slt, %i, %n : tensor<64xi32>
    scf.for %row = %first to %rows step %step  : i32 {
      %0 = arith.muli %row, %stride : i32
      %1 = tt.addptr %x, %0 : !tt.ptr<f32>, i32
      %2 = tt.splat %1 : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
      %3 = tt.addptr %2, %i : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
      %4 = tt.load %3, %mask, %least : tensor<64x!tt.ptr<f32>>
      %5 = "tt.reduce"(%4) <{axis = 0 : i32}> ({
      ^bb0(%a: f32, %b: f32):
        %12 = arith.maxnumf %a, %b : f32
        tt.reduce.return %12 : f32
      }) : (tensor<64xf32>) -> f32
      %6 = tt.splat %5 : f32 -> tensor<64xf32>
      %7 = arith.subf %4, %6 : tensor<64xf32>
      %8 = math.exp %7 : tensor<64xf32>
      %9 = "tt.reduce"(%8) <{axis = 0 : i32}> ({
      ^bb0(%a: f32, %b: f32):
        %12 = arith.addf %a, %b : f32
        tt.reduce.return %12 : f32
      }) : (tensor<64xf32>) -> f32
      %10 = tt.splat %9 : f32 -> tensor<64xf32>
      %11 = arith.divf %8, %10 : tensor<64xf32>
      %13 = tt.addptr %out, %0 : !tt.ptr<f32>, i32
      %14 = tt.splat %13 : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
      %15 = tt.addptr %14, %i : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
      tt.store %15, %11, %mask : tensor<64x!tt.ptr<f32>>
    } {tt.num_stages = 2 : i32}
    tt.return
  }
}
"""

# The place of the largest element, and sums from the end on.
ARGMAX = """\
module {
  tt.func public @argmax(%x: !tt.ptr<f32>, %out: !tt.ptr<i32>, %sums: !tt.ptr<f32>) \
attributes {noinline = false} {
    %i = tt.make_range {end = 32 : i32, start = 0 : i32} : tensor<32xi32>
    %0 = tt.splat %x : !tt.ptr<f32> -> tensor<32x!tt.ptr<f32>>
    %1 = tt.addptr %0, %i : tensor<32x!tt.ptr<f32>>, tensor<32xi32>
    %2 = tt.load %1 : tensor<32x!tt.ptr<f32>>
    %3:2 = "tt.reduce"(%2, %i) <{axis = 0 : i32}> ({
    ^bb0(%a: f32, %p: i32, %b: f32, %q: i32):
      %8 = arith.cmpf ogt, %a, %b : f32
      %9 = arith.select %8, %a, %b : f32
      %10 = arith.select %8, %p, %q : i32
      tt.reduce.return %9, %10 : f32, i32
    }) : (tensor<32xf32>, tensor<32xi32>) -> (f32, i32)
    tt.store %out, %3#1 : !tt.ptr<i32>
    %4 = "tt.scan"(%2) <{axis = 0 : i32, reverse = true}> ({
    ^bb0(%a: f32, %b: f32):
      %8 = arith.addf %a, %b : f32
      tt.scan.return %8 : f32
    }) : (tensor<32xf32>) -> tensor<32xf32>
    %5 = tt.splat %sums : !tt.ptr<f32> -> tensor<32x!tt.ptr<f32>>
    %6 = tt.addptr %5, %i : tensor<32x!tt.ptr<f32>>, tensor<32xi32>
    tt.store %6, %4 : tensor<32x!tt.ptr<f32>>
    tt.return
  }
}
"""

MATMUL = """\
module {
  tt.func public @matmul(%a: !tt.ptr<f32>, %b: !tt.ptr<f32>, %c: !tt.ptr<f32>, %K: i32) \
attributes {noinline = false} {
    %zeros = arith.constant dense<0.000000e+00> : tensor<16x16xf32>
    %c0_i32 = arith.constant 0 : i32
    %c16_i32 = arith.constant 16 : i32
    %by16 = arith.constant dense<16> : tensor<16x1xi32>
    %i = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32>
    %row = tt.expand_dims %i {axis = 1 : i32} : tensor<16xi32> -> tensor<16x1xi32>
    %column = tt.expand_dims %i {axis = 0 : i32} : tensor<16xi32> -> tensor<1x16xi32>
    %columns = tt.broadcast %column : tensor<1x16xi32> -> tensor<16x16xi32>
    %0 = tt.splat %K : i32 -> tensor<16x1xi32>
    %1 = arith.muli %row, %0 : tensor<16x1xi32>
    %2 = tt.broadcast %1 : tensor<16x1xi32> -> tensor<16x16xi32>
    %3 = arith.addi %2, %columns : tensor<16x16xi32>
    %4 = tt.splat %a : !tt.ptr<f32> -> tensor<16x16x!tt.ptr<f32>>
    %as = tt.addptr %4, %3 : tensor<16x16x!tt.ptr<f32>>, tensor<16x16xi32>
    %5 = arith.muli %row, %by16 : tensor<16x1xi32>
    %6 = tt.broadcast %5 : tensor<16x1xi32> -> tensor<16x16xi32>
    %7 = arith.addi %6, %columns : tensor<16x16xi32>
    %8 = tt.splat %b : !tt.ptr<f32> -> tensor<16x16x!tt.ptr<f32>>
    %bs = tt.addptr %8, %7 : tensor<16x16x!tt.ptr<f32>>, tensor<16x16xi32>
    %sum = scf.for %k = %c0_i32 to %K step %c16_i32 iter_args(%acc = %zeros) -> \
(tensor<16x16xf32>)  : i32 {
      %9 = tt.splat %k : i32 -> tensor<16x16xi32>
      %10 = tt.addptr %as, %9 : tensor<16x16x!tt.ptr<f32>>, tensor<16x16xi32>
      %11 = tt.load %10 : tensor<16x16x!tt.ptr<f32>>
      %12 = arith.muli %k, %c16_i32 : i32
      %13 = tt.splat %12 : i32 -> tensor<16x16xi32>
      %14 = tt.addptr %bs, %13 : tensor<16x16x!tt.ptr<f32>>, tensor<16x16xi32>
      %15 = tt.load %14 : tensor<16x16x!tt.ptr<f32>>
      %16 = tt.dot %11, %15, %acc : tensor<16x16xf32> * tensor<16x16xf32> -> tensor<16x16xf32>
      scf.yield %16 : tensor<16x16xf32>
    }
    %17 = tt.splat %c : !tt.ptr<f32> -> tensor<16x16x!tt.ptr<f32>>
    %18 = tt.addptr %17, %7 : tensor<16x16x!tt.ptr<f32>>, tensor<16x16xi32>
    tt.store %18, %sum : tensor<16x16x!tt.ptr<f32>>
    tt.return
  }
}
"""

# Returns in two places, which Triton has as branches between blocks.
RETURNS = """\
module {
  tt.func public @returns(%x: !tt.ptr<f32>, %n: i32) attributes {noinline = false} {
    %c1_i32 = arith.constant 1 : i32
    %c7_i32 = arith.constant 7 : i32
    %one = arith.constant 1.000000e+00 : f32
    %two = arith.constant 2.000000e+00 : f32
    %pid = tt.get_program_id x : i32
    %0 = arith.cmpi sge, %pid, %n : i32
    cf.cond_br %0, ^bb1, ^bb2
  ^bb1:  // pred: ^bb0
    tt.return
  ^bb2:  // pred: ^bb0
    %1 = tt.addptr %x, %pid : !tt.ptr<f32>, i32
    tt.store %1, %one : !tt.ptr<f32>
    %2 = arith.cmpi eq, %n, %c7_i32 : i32
    cf.cond_br %2, ^bb3, ^bb4
  ^bb3:  // pred: ^bb2
    tt.return
  ^bb4:  // pred: ^bb2
    tt.store %1, %two : !tt.ptr<f32>
    tt.return
  }
}
"""

# A call that stays, one that does not, and a block that nothing leads to, as the first level has.
CALLS = """\
module {
  tt.func public @calls(%x: !tt.ptr<f32>, %n: i32) attributes {noinline = false} {
    %i = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32>
    %0 = tt.splat %x : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>
    %1 = tt.addptr %0, %i : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
    %2 = tt.load %1 : tensor<16x!tt.ptr<f32>>
    %3:2 = tt.call @"lib.both__i32_i32"(%n, %n) : (i32, i32) -> (i32, i32)
    %4 = arith.subi %3#0, %3#1 : i32
    %5 = arith.sitofp %4 : i32 to f32
    %6 = tt.call @lib.total(%2) : (tensor<16xf32>) -> f32
    %7 = arith.addf %5, %6 : f32
    tt.store %x, %7 : !tt.ptr<f32>
    tt.return
  }
  tt.func private @"lib.both__i32_i32"(%x: i32, %n: i32) -> (i32, i32) \
attributes {noinline = true} {
    %0 = arith.muli %x, %n : i32
    %1 = arith.addi %x, %n : i32
    tt.return %0, %1 : i32, i32
  }
  tt.func private @lib.total(%input: tensor<16xf32>) -> f32 attributes {noinline = false} {
    %0 = "tt.reduce"(%input) <{axis = 0 : i32}> ({
    ^bb0(%arg1: f32, %arg2: f32):
      %2 = tt.call @lib.sum(%arg1, %arg2) : (f32, f32) -> f32
      tt.reduce.return %2 : f32
    }) : (tensor<16xf32>) -> f32
    tt.return %0 : f32
  ^bb1:  // no predecessors
    %1 = ub.poison : f32
    tt.return %1 : f32
  }
  tt.func private @lib.sum(%a: f32, %b: f32) -> f32 attributes {noinline = false} {
    %0 = arith.addf %a, %b : f32
    tt.return %0 : f32
  }
}
"""

# How long the sequence n, n / 2 or 3 n + 1, ... is, for each program.
WHILE = """\
module {
  tt.func public @collatz(%out: !tt.ptr<i64>) attributes {noinline = false} {
    %c0_i64 = arith.constant 0 : i64
    %c1_i64 = arith.constant 1 : i64
    %c2_i64 = arith.constant 2 : i64
    %c3_i64 = arith.constant 3 : i64
    %pid = tt.get_program_id x : i32
    %0 = arith.extsi %pid : i32 to i64
    %1 = arith.addi %0, %c1_i64 : i64
    %2:2 = scf.while (%n = %1, %steps = %c0_i64) : (i64, i64) -> (i64, i64) {
      %4 = arith.cmpi ne, %n, %c1_i64 : i64
      scf.condition(%4) %n, %steps : i64, i64
    } do {
    ^bb0(%n: i64, %steps: i64):
      %4 = arith.andi %n, %c1_i64 : i64
      %5 = arith.cmpi eq, %4, %c0_i64 : i64
      %6 = scf.if %5 -> (i64) {
        %8 = arith.divsi %n, %c2_i64 : i64
        scf.yield %8 : i64
      } else {
        %8 = arith.muli %n, %c3_i64 : i64
        %9 = arith.addi %8, %c1_i64 : i64
        scf.yield %9 : i64
      }
      %7 = arith.addi %steps, %c1_i64 : i64
      scf.yield %6, %7 : i64, i64
    }
    %3 = tt.addptr %out, %pid : !tt.ptr<i64>, i32
    tt.store %3, %2#1 : !tt.ptr<i64>
    tt.return
  }
}
"""

# Descriptors: one that the host makes, with what Triton passes besides, and one of the kernel's.
DESCRIPTORS = """\
module {
  tt.func public @blocks(%d: !tt.tensordesc<8x16xf32>, %d.shape.0: i32, %d.shape.1: i32, \
%d.stride.0: i64, %d.stride.1: i64, %x: !tt.ptr<f32>, %M: i32, %N: i32) \
attributes {noinline = false} {
    %c0_i32 = arith.constant 0 : i32
    %c4_i32 = arith.constant 4 : i32
    %c1_i64 = arith.constant 1 : i64
    %0 = arith.extsi %N : i32 to i64
    %1 = tt.make_tensor_descriptor %x, [%M, %N], [%0, %c1_i64] {padding = 1 : i32} : <f32>, \
<8x16xf32>
    %2 = tt.descriptor_load %1[%c4_i32, %c4_i32] : !tt.tensordesc<8x16xf32> -> tensor<8x16xf32>
    %3 = arith.sitofp %d.shape.1 : i32 to f32
    %4 = tt.splat %3 : f32 -> tensor<8x16xf32>
    %5 = arith.addf %2, %4 : tensor<8x16xf32>
    tt.descriptor_store %d[%c0_i32, %c4_i32], %5 : !tt.tensordesc<8x16xf32>, tensor<8x16xf32>
    tt.descriptor_reduce add, %1[%c0_i32, %c0_i32], %2 : !tt.tensordesc<8x16xf32>, \
tensor<8x16xf32>
    tt.return
  }
}
"""

# Sums of rows: a layout of the rows, that of what is left of it, and a third one for the store.
ROW_SUMS = """\
#blocked = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], \
order = [1, 0]}>
#blocked1 = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], \
order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, \
ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @row_sums(%x: !tt.ptr<f32> {tt.divisibility = 16 : i32}, \
%out: !tt.ptr<f32> {tt.divisibility = 16 : i32}) attributes {noinline = false} {
    %by64 = arith.constant dense<64> : tensor<32x1xi32, #blocked>
    %i = tt.make_range {end = 32 : i32, start = 0 : i32} : \
tensor<32xi32, #ttg.slice<{dim = 1, parent = #blocked}>>
    %j = tt.make_range {end = 64 : i32, start = 0 : i32} : \
tensor<64xi32, #ttg.slice<{dim = 0, parent = #blocked}>>
    %0 = tt.expand_dims %i {axis = 1 : i32} : \
tensor<32xi32, #ttg.slice<{dim = 1, parent = #blocked}>> -> tensor<32x1xi32, #blocked>
    %1 = tt.expand_dims %j {axis = 0 : i32} : \
tensor<64xi32, #ttg.slice<{dim = 0, parent = #blocked}>> -> tensor<1x64xi32, #blocked>
    %2 = arith.muli %0, %by64 : tensor<32x1xi32, #blocked>
    %3 = tt.broadcast %2 : tensor<32x1xi32, #blocked> -> tensor<32x64xi32, #blocked>
    %4 = tt.broadcast %1 : tensor<1x64xi32, #blocked> -> tensor<32x64xi32, #blocked>
    %5 = arith.addi %3, %4 : tensor<32x64xi32, #blocked>
    %6 = tt.splat %x : !tt.ptr<f32> -> tensor<32x64x!tt.ptr<f32>, #blocked>
    %7 = tt.addptr %6, %5 : tensor<32x64x!tt.ptr<f32>, #blocked>, tensor<32x64xi32, #blocked>
    %8 = tt.load %7 : tensor<32x64x!tt.ptr<f32>, #blocked>
    %9 = "tt.reduce"(%8) <{axis = 1 : i32}> ({
    ^bb0(%a: f32, %b: f32):
      %15 = arith.addf %a, %b : f32
      tt.reduce.return %15 : f32
    }) : (tensor<32x64xf32, #blocked>) -> \
tensor<32xf32, #ttg.slice<{dim = 1, parent = #blocked}>>
    %10 = ttg.convert_layout %9 : tensor<32xf32, #ttg.slice<{dim = 1, parent = #blocked}>> -> \
tensor<32xf32, #blocked1>
    %11 = tt.make_range {end = 32 : i32, start = 0 : i32} : tensor<32xi32, #blocked1>
    %12 = tt.splat %out : !tt.ptr<f32> -> tensor<32x!tt.ptr<f32>, #blocked1>
    %13 = tt.addptr %12, %11 : tensor<32x!tt.ptr<f32>, #blocked1>, tensor<32xi32, #blocked1>
    tt.store %13, %10 : tensor<32x!tt.ptr<f32>, #blocked1>
    tt.return
  }
}
"""

# c = a @ b of 64 x 64 by `wgmma`: a is copied to shared memory as it goes, b is stored there.
PRODUCT = """\
#blocked = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], \
order = [1, 0]}>
#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], \
instrShape = [16, 64, 16]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, \
ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @product(%a: !tt.ptr<f16> {tt.divisibility = 16 : i32}, \
%b: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %c: !tt.ptr<f32> {tt.divisibility = 16 : i32}) \
attributes {noinline = false} {
    %c0_i32 = arith.constant 0 : i32
    %zeros = arith.constant dense<0.000000e+00> : tensor<64x64xf32, #mma>
    %by64 = arith.constant dense<64> : tensor<64x1xi32, #blocked>
    %i = tt.make_range {end = 64 : i32, start = 0 : i32} : \
tensor<64xi32, #ttg.slice<{dim = 1, parent = #blocked}>>
    %j = tt.make_range {end = 64 : i32, start = 0 : i32} : \
tensor<64xi32, #ttg.slice<{dim = 0, parent = #blocked}>>
    %0 = tt.expand_dims %i {axis = 1 : i32} : \
tensor<64xi32, #ttg.slice<{dim = 1, parent = #blocked}>> -> tensor<64x1xi32, #blocked>
    %1 = tt.expand_dims %j {axis = 0 : i32} : \
tensor<64xi32, #ttg.slice<{dim = 0, parent = #blocked}>> -> tensor<1x64xi32, #blocked>
    %2 = arith.muli %0, %by64 : tensor<64x1xi32, #blocked>
    %3 = tt.broadcast %2 : tensor<64x1xi32, #blocked> -> tensor<64x64xi32, #blocked>
    %4 = tt.broadcast %1 : tensor<1x64xi32, #blocked> -> tensor<64x64xi32, #blocked>
    %5 = arith.addi %3, %4 : tensor<64x64xi32, #blocked>
    %6 = tt.splat %a : !tt.ptr<f16> -> tensor<64x64x!tt.ptr<f16>, #blocked>
    %7 = tt.addptr %6, %5 : tensor<64x64x!tt.ptr<f16>, #blocked>, tensor<64x64xi32, #blocked>
    %8 = tt.splat %b : !tt.ptr<f16> -> tensor<64x64x!tt.ptr<f16>, #blocked>
    %9 = tt.addptr %8, %5 : tensor<64x64x!tt.ptr<f16>, #blocked>, tensor<64x64xi32, #blocked>
    %as = ttg.local_alloc : () -> !ttg.memdesc<2x64x64xf16, #shared, #smem, mutable>
    %a0 = ttg.memdesc_index %as[%c0_i32] : !ttg.memdesc<2x64x64xf16, #shared, #smem, mutable> -> \
!ttg.memdesc<64x64xf16, #shared, #smem, mutable>
    %10 = ttg.async_copy_global_to_local %7, %a0 {contiguity = 8 : i32} : \
tensor<64x64x!tt.ptr<f16>, #blocked> -> <64x64xf16, #shared, #smem, mutable>
    %11 = ttg.async_commit_group tokens %10
    %12 = tt.load %9 : tensor<64x64x!tt.ptr<f16>, #blocked>
    %b0 = ttg.local_alloc %12 : (tensor<64x64xf16, #blocked>) -> \
!ttg.memdesc<64x64xf16, #shared, #smem>
    %13 = ttg.async_wait %11 {num = 0 : i32}
    ttng.fence_async_shared {bCluster = false}
    %14 = ttng.warp_group_dot %a0, %b0, %zeros {inputPrecision = 0 : i32, isAsync = true} : \
!ttg.memdesc<64x64xf16, #shared, #smem, mutable> * !ttg.memdesc<64x64xf16, #shared, #smem> -> \
tensor<64x64xf32, #mma>
    %15:3 = ttng.warp_group_dot_wait %14, %a0, %b0 {pendings = 0 : i32} : \
tensor<64x64xf32, #mma>, !ttg.memdesc<64x64xf16, #shared, #smem, mutable>, \
!ttg.memdesc<64x64xf16, #shared, #smem>
    %16 = ttg.convert_layout %15#0 : tensor<64x64xf32, #mma> -> tensor<64x64xf32, #blocked>
    ttg.local_dealloc %as : !ttg.memdesc<2x64x64xf16, #shared, #smem, mutable>
    %17 = tt.splat %c : !tt.ptr<f32> -> tensor<64x64x!tt.ptr<f32>, #blocked>
    %18 = tt.addptr %17, %5 : tensor<64x64x!tt.ptr<f32>, #blocked>, tensor<64x64xi32, #blocked>
    tt.store %18, %16 : tensor<64x64x!tt.ptr<f32>, #blocked>
    tt.return
  }
}
"""

# Twice a block, by TMA there and back.
TWICE = """\
#blocked = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], \
order = [1, 0]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 32}>
#shared1 = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, \
ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @twice(%d: !tt.tensordesc<16x32xf32, #shared>, %d.shape.0: i32, \
%d.shape.1: i32, %d.stride.0: i64, %d.stride.1: i64, %row: i32) attributes {noinline = false} {
    %c0_i32 = arith.constant 0 : i32
    %true = arith.constant true
    %a = ttg.local_alloc : () -> !ttg.memdesc<16x32xf32, #shared, #smem, mutable>
    %bar = ttg.local_alloc : () -> !ttg.memdesc<1xi64, #shared1, #smem, mutable>
    ttng.init_barrier %bar, 1 : !ttg.memdesc<1xi64, #shared1, #smem, mutable>
    ttng.barrier_expect %bar, 2048, %true : !ttg.memdesc<1xi64, #shared1, #smem, mutable>
    ttng.async_tma_copy_global_to_local %d[%row, %c0_i32] %a, %bar, %true : \
!tt.tensordesc<16x32xf32, #shared>, !ttg.memdesc<1xi64, #shared1, #smem, mutable> -> \
!ttg.memdesc<16x32xf32, #shared, #smem, mutable>
    ttng.wait_barrier %bar, %c0_i32 deps %a : !ttg.memdesc<1xi64, #shared1, #smem, mutable>, \
!ttg.memdesc<16x32xf32, #shared, #smem, mutable>
    ttng.inval_barrier %bar : !ttg.memdesc<1xi64, #shared1, #smem, mutable>
    %0 = ttg.local_load %a : !ttg.memdesc<16x32xf32, #shared, #smem, mutable> -> \
tensor<16x32xf32, #blocked>
    %1 = arith.addf %0, %0 : tensor<16x32xf32, #blocked>
    %2 = arith.sitofp %d.stride.1 : i64 to f32
    %3 = tt.splat %2 : f32 -> tensor<16x32xf32, #blocked>
    %4 = arith.mulf %1, %3 : tensor<16x32xf32, #blocked>
    %5 = ttg.local_alloc %4 : (tensor<16x32xf32, #blocked>) -> \
!ttg.memdesc<16x32xf32, #shared, #smem>
    ttng.fence_async_shared {bCluster = false}
    ttng.async_tma_copy_local_to_global %d[%row, %c0_i32] %5 : \
!tt.tensordesc<16x32xf32, #shared>, !ttg.memdesc<16x32xf32, #shared, #smem>
    ttng.async_tma_store_wait {pendings = 0 : i32}
    tt.return
  }
}
"""

# A kernel with the statements of a table row; what they take is there.
_AROUND = """\
#blocked = #ttg.blocked<{{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], \
order = [0]}}>
module attributes {{"ttg.num-warps" = 4 : i32}} {{
  tt.func public @around(%p: !tt.ptr<f32>, %q: !tt.ptr<i32>, %n: i32, %s: f32, %c: i1, \
%desc: !tt.tensordesc<1x32xf32>) attributes {{noinline = false}} {{
    %i = tt.make_range {{end = 64 : i32, start = 0 : i32}} : tensor<64xi32>
    %m = arith.constant dense<true> : tensor<64xi1>
    %x = arith.constant dense<1.500000e+00> : tensor<64xf32>
    %ps = tt.splat %p : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
    %qs = tt.splat %q : !tt.ptr<i32> -> tensor<64x!tt.ptr<i32>>
{body}
    tt.return
  }}
}}
"""


def around(body: str) -> str:
    """A kernel with some ops in its middle: %p, %q, %n, %s, %c, %desc are its arguments, %i, %m,
    %x, %ps, %qs tiles of 64."""
    return _AROUND.format(body=body)
