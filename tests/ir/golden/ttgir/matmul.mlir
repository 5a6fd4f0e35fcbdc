// -----// after convert-triton-to-tritongpu //----- //
#linear = #ttg.linear<[[2, 0], [4, 0], [8, 0], [16, 0], [32, 0]], [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16]], [[0, 32], [1, 0]], []>
#linear1 = #ttg.linear<[], [[1], [2], [4], [8], [16]], [[32], [0]], []>
#linear2 = #ttg.linear<[], [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0]], [[32, 0], [0, 0]], []>
#linear3 = #ttg.linear<[], [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16]], [[0, 32], [0, 0]], []>
#linear4 = #ttg.linear<[[2, 0], [4, 0], [8, 0], [16, 0], [32, 0]], [[0, 0], [0, 0], [0, 0], [0, 0], [0, 0]], [[0, 0], [1, 0]], []>
module attributes {"ttg.num-warps" = 4 : i32} {
  func.func @matmul$(%arg0: !tt.ptr<f16> {tt.divisibility = 16 : i32, tt.element = "fp16", tt.name = "a"}, %arg1: !tt.ptr<f16> {tt.divisibility = 16 : i32, tt.element = "fp16", tt.name = "b"}, %arg2: !tt.ptr<f16> {tt.divisibility = 16 : i32, tt.element = "fp16", tt.name = "c"}, %arg3: i32 {tt.divisibility = 16 : i32, tt.name = "K"}, %arg4: i32 {tt.divisibility = 16 : i32, tt.name = "stride_a"}, %arg5: i32 {tt.divisibility = 16 : i32, tt.name = "stride_b"}, %arg6: i32 {tt.divisibility = 16 : i32, tt.name = "stride_c"}) attributes {tt.kernel} {
    %cst = arith.constant dense<0.000000e+00> : tensor<64x64xf32, #linear>
    %c63_i32 = arith.constant 63 : i32
    %c64_i32 = arith.constant 64 : i32
    %c0_i32 = arith.constant 0 : i32
    %c1_i32 = arith.constant 1 : i32
    %cst_0 = arith.constant dense<64> : tensor<64x64xi32, #linear>
    %0 = "tt.make_range"() {end = 64 : i32, start = 0 : i32} : () -> tensor<64xi32, #linear1>
    %1 = "tt.expand_dims"(%0) {axis = 1 : i32} : (tensor<64xi32, #linear1>) -> tensor<64x1xi32, #linear2>
    %2 = "tt.splat"(%arg4) : (i32) -> tensor<64x1xi32, #linear2>
    %3 = arith.muli %1, %2 : tensor<64x1xi32, #linear2>
    %4 = "tt.splat"(%arg0) : (!tt.ptr<f16>) -> tensor<64x1x!tt.ptr<f16>, #linear2>
    %5 = "tt.addptr"(%4, %3) : (tensor<64x1x!tt.ptr<f16>, #linear2>, tensor<64x1xi32, #linear2>) -> tensor<64x1x!tt.ptr<f16>, #linear2>
    %6 = "tt.expand_dims"(%0) {axis = 0 : i32} : (tensor<64xi32, #linear1>) -> tensor<1x64xi32, #linear3>
    %7 = "ttg.convert_layout"(%5) : (tensor<64x1x!tt.ptr<f16>, #linear2>) -> tensor<64x1x!tt.ptr<f16>, #linear4>
    %8 = "tt.broadcast"(%7) : (tensor<64x1x!tt.ptr<f16>, #linear4>) -> tensor<64x64x!tt.ptr<f16>, #linear>
    %9 = "tt.broadcast"(%6) : (tensor<1x64xi32, #linear3>) -> tensor<64x64xi32, #linear>
    %10 = "tt.addptr"(%8, %9) : (tensor<64x64x!tt.ptr<f16>, #linear>, tensor<64x64xi32, #linear>) -> tensor<64x64x!tt.ptr<f16>, #linear>
    %11 = "tt.splat"(%arg5) : (i32) -> tensor<64x1xi32, #linear2>
    %12 = arith.muli %1, %11 : tensor<64x1xi32, #linear2>
    %13 = "tt.splat"(%arg1) : (!tt.ptr<f16>) -> tensor<64x1x!tt.ptr<f16>, #linear2>
    %14 = "tt.addptr"(%13, %12) : (tensor<64x1x!tt.ptr<f16>, #linear2>, tensor<64x1xi32, #linear2>) -> tensor<64x1x!tt.ptr<f16>, #linear2>
    %15 = "ttg.convert_layout"(%14) : (tensor<64x1x!tt.ptr<f16>, #linear2>) -> tensor<64x1x!tt.ptr<f16>, #linear4>
    %16 = "tt.broadcast"(%15) : (tensor<64x1x!tt.ptr<f16>, #linear4>) -> tensor<64x64x!tt.ptr<f16>, #linear>
    %17 = "tt.addptr"(%16, %9) : (tensor<64x64x!tt.ptr<f16>, #linear>, tensor<64x64xi32, #linear>) -> tensor<64x64x!tt.ptr<f16>, #linear>
    %18 = arith.addi %arg3, %c63_i32 : i32
    %19 = arith.divsi %18, %c64_i32 : i32
    %20 = arith.muli %arg5, %c64_i32 : i32
    %21:3 = scf.for %arg7 = %c0_i32 to %19 step %c1_i32 iter_args(%arg8 = %cst, %arg9 = %10, %arg10 = %17) -> (tensor<64x64xf32, #linear>, tensor<64x64x!tt.ptr<f16>, #linear>, tensor<64x64x!tt.ptr<f16>, #linear>)  : i32 {
      %30 = "tt.load"(%arg9) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<64x64x!tt.ptr<f16>, #linear>) -> tensor<64x64xf16, #linear>
      %31 = "tt.load"(%arg10) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<64x64x!tt.ptr<f16>, #linear>) -> tensor<64x64xf16, #linear>
      %32 = "tt.dot"(%30, %31, %arg8) {inputPrecision = "tf32", maxNumImpreciseAcc = 0 : i32} : (tensor<64x64xf16, #linear>, tensor<64x64xf16, #linear>, tensor<64x64xf32, #linear>) -> tensor<64x64xf32, #linear>
      %33 = "tt.addptr"(%arg9, %cst_0) : (tensor<64x64x!tt.ptr<f16>, #linear>, tensor<64x64xi32, #linear>) -> tensor<64x64x!tt.ptr<f16>, #linear>
      %34 = "tt.splat"(%20) : (i32) -> tensor<64x64xi32, #linear>
      %35 = "tt.addptr"(%arg10, %34) : (tensor<64x64x!tt.ptr<f16>, #linear>, tensor<64x64xi32, #linear>) -> tensor<64x64x!tt.ptr<f16>, #linear>
      scf.yield %32, %33, %35 : tensor<64x64xf32, #linear>, tensor<64x64x!tt.ptr<f16>, #linear>, tensor<64x64x!tt.ptr<f16>, #linear>
    }
    %22 = "tt.splat"(%arg6) : (i32) -> tensor<64x1xi32, #linear2>
    %23 = arith.muli %1, %22 : tensor<64x1xi32, #linear2>
    %24 = "tt.splat"(%arg2) : (!tt.ptr<f16>) -> tensor<64x1x!tt.ptr<f16>, #linear2>
    %25 = "tt.addptr"(%24, %23) : (tensor<64x1x!tt.ptr<f16>, #linear2>, tensor<64x1xi32, #linear2>) -> tensor<64x1x!tt.ptr<f16>, #linear2>
    %26 = "ttg.convert_layout"(%25) : (tensor<64x1x!tt.ptr<f16>, #linear2>) -> tensor<64x1x!tt.ptr<f16>, #linear4>
    %27 = "tt.broadcast"(%26) : (tensor<64x1x!tt.ptr<f16>, #linear4>) -> tensor<64x64x!tt.ptr<f16>, #linear>
    %28 = "tt.addptr"(%27, %9) : (tensor<64x64x!tt.ptr<f16>, #linear>, tensor<64x64xi32, #linear>) -> tensor<64x64x!tt.ptr<f16>, #linear>
    %29 = arith.truncf %21#0 : tensor<64x64xf32, #linear> to tensor<64x64xf16, #linear>
    "tt.store"(%28, %29) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<64x64x!tt.ptr<f16>, #linear>, tensor<64x64xf16, #linear>) -> ()
    return
  }
}

// -----// after tritongpu-coalesce{target=cuda:90} //----- //
#linear = #ttg.linear<[[2, 0], [4, 0], [8, 0], [16, 0], [32, 0]], [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16]], [[0, 32], [1, 0]], []>
#linear1 = #ttg.linear<[], [[1], [2], [4], [8], [16]], [[32], [0]], []>
#linear2 = #ttg.linear<[], [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0]], [[32, 0], [0, 0]], []>
#linear3 = #ttg.linear<[], [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16]], [[0, 32], [0, 0]], []>
#linear4 = #ttg.linear<[[2, 0], [4, 0], [8, 0], [16, 0], [32, 0]], [[0, 0], [0, 0], [0, 0], [0, 0], [0, 0]], [[0, 0], [1, 0]], []>
#linear5 = #ttg.linear<[[0, 1], [0, 2], [0, 4], [16, 0], [32, 0]], [[0, 8], [0, 16], [0, 32], [1, 0], [2, 0]], [[4, 0], [8, 0]], []>
module attributes {"ttg.num-warps" = 4 : i32} {
  func.func @matmul$(%arg0: !tt.ptr<f16> {tt.divisibility = 16 : i32, tt.element = "fp16", tt.name = "a"}, %arg1: !tt.ptr<f16> {tt.divisibility = 16 : i32, tt.element = "fp16", tt.name = "b"}, %arg2: !tt.ptr<f16> {tt.divisibility = 16 : i32, tt.element = "fp16", tt.name = "c"}, %arg3: i32 {tt.divisibility = 16 : i32, tt.name = "K"}, %arg4: i32 {tt.divisibility = 16 : i32, tt.name = "stride_a"}, %arg5: i32 {tt.divisibility = 16 : i32, tt.name = "stride_b"}, %arg6: i32 {tt.divisibility = 16 : i32, tt.name = "stride_c"}) attributes {tt.kernel} {
    %cst = arith.constant dense<0.000000e+00> : tensor<64x64xf32, #linear>
    %c63_i32 = arith.constant 63 : i32
    %c64_i32 = arith.constant 64 : i32
    %c0_i32 = arith.constant 0 : i32
    %c1_i32 = arith.constant 1 : i32
    %cst_0 = arith.constant dense<64> : tensor<64x64xi32, #linear>
    %0 = "tt.make_range"() {end = 64 : i32, start = 0 : i32} : () -> tensor<64xi32, #linear1>
    %1 = "tt.expand_dims"(%0) {axis = 1 : i32} : (tensor<64xi32, #linear1>) -> tensor<64x1xi32, #linear2>
    %2 = "tt.splat"(%arg4) : (i32) -> tensor<64x1xi32, #linear2>
    %3 = arith.muli %1, %2 : tensor<64x1xi32, #linear2>
    %4 = "tt.splat"(%arg0) : (!tt.ptr<f16>) -> tensor<64x1x!tt.ptr<f16>, #linear2>
    %5 = "tt.addptr"(%4, %3) : (tensor<64x1x!tt.ptr<f16>, #linear2>, tensor<64x1xi32, #linear2>) -> tensor<64x1x!tt.ptr<f16>, #linear2>
    %6 = "tt.expand_dims"(%0) {axis = 0 : i32} : (tensor<64xi32, #linear1>) -> tensor<1x64xi32, #linear3>
    %7 = "ttg.convert_layout"(%5) : (tensor<64x1x!tt.ptr<f16>, #linear2>) -> tensor<64x1x!tt.ptr<f16>, #linear4>
    %8 = "tt.broadcast"(%7) : (tensor<64x1x!tt.ptr<f16>, #linear4>) -> tensor<64x64x!tt.ptr<f16>, #linear>
    %9 = "tt.broadcast"(%6) : (tensor<1x64xi32, #linear3>) -> tensor<64x64xi32, #linear>
    %10 = "tt.addptr"(%8, %9) : (tensor<64x64x!tt.ptr<f16>, #linear>, tensor<64x64xi32, #linear>) -> tensor<64x64x!tt.ptr<f16>, #linear>
    %11 = "tt.splat"(%arg5) : (i32) -> tensor<64x1xi32, #linear2>
    %12 = arith.muli %1, %11 : tensor<64x1xi32, #linear2>
    %13 = "tt.splat"(%arg1) : (!tt.ptr<f16>) -> tensor<64x1x!tt.ptr<f16>, #linear2>
    %14 = "tt.addptr"(%13, %12) : (tensor<64x1x!tt.ptr<f16>, #linear2>, tensor<64x1xi32, #linear2>) -> tensor<64x1x!tt.ptr<f16>, #linear2>
    %15 = "ttg.convert_layout"(%14) : (tensor<64x1x!tt.ptr<f16>, #linear2>) -> tensor<64x1x!tt.ptr<f16>, #linear4>
    %16 = "tt.broadcast"(%15) : (tensor<64x1x!tt.ptr<f16>, #linear4>) -> tensor<64x64x!tt.ptr<f16>, #linear>
    %17 = "tt.addptr"(%16, %9) : (tensor<64x64x!tt.ptr<f16>, #linear>, tensor<64x64xi32, #linear>) -> tensor<64x64x!tt.ptr<f16>, #linear>
    %18 = arith.addi %arg3, %c63_i32 : i32
    %19 = arith.divsi %18, %c64_i32 : i32
    %20 = arith.muli %arg5, %c64_i32 : i32
    %21:3 = scf.for %arg7 = %c0_i32 to %19 step %c1_i32 iter_args(%arg8 = %cst, %arg9 = %10, %arg10 = %17) -> (tensor<64x64xf32, #linear>, tensor<64x64x!tt.ptr<f16>, #linear>, tensor<64x64x!tt.ptr<f16>, #linear>)  : i32 {
      %32 = "ttg.convert_layout"(%arg9) : (tensor<64x64x!tt.ptr<f16>, #linear>) -> tensor<64x64x!tt.ptr<f16>, #linear5>
      %33 = "tt.load"(%32) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<64x64x!tt.ptr<f16>, #linear5>) -> tensor<64x64xf16, #linear5>
      %34 = "ttg.convert_layout"(%33) : (tensor<64x64xf16, #linear5>) -> tensor<64x64xf16, #linear>
      %35 = "ttg.convert_layout"(%arg10) : (tensor<64x64x!tt.ptr<f16>, #linear>) -> tensor<64x64x!tt.ptr<f16>, #linear5>
      %36 = "tt.load"(%35) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<64x64x!tt.ptr<f16>, #linear5>) -> tensor<64x64xf16, #linear5>
      %37 = "ttg.convert_layout"(%36) : (tensor<64x64xf16, #linear5>) -> tensor<64x64xf16, #linear>
      %38 = "tt.dot"(%34, %37, %arg8) {inputPrecision = "tf32", maxNumImpreciseAcc = 0 : i32} : (tensor<64x64xf16, #linear>, tensor<64x64xf16, #linear>, tensor<64x64xf32, #linear>) -> tensor<64x64xf32, #linear>
      %39 = "tt.addptr"(%arg9, %cst_0) : (tensor<64x64x!tt.ptr<f16>, #linear>, tensor<64x64xi32, #linear>) -> tensor<64x64x!tt.ptr<f16>, #linear>
      %40 = "tt.splat"(%20) : (i32) -> tensor<64x64xi32, #linear>
      %41 = "tt.addptr"(%arg10, %40) : (tensor<64x64x!tt.ptr<f16>, #linear>, tensor<64x64xi32, #linear>) -> tensor<64x64x!tt.ptr<f16>, #linear>
      scf.yield %38, %39, %41 : tensor<64x64xf32, #linear>, tensor<64x64x!tt.ptr<f16>, #linear>, tensor<64x64x!tt.ptr<f16>, #linear>
    }
    %22 = "tt.splat"(%arg6) : (i32) -> tensor<64x1xi32, #linear2>
    %23 = arith.muli %1, %22 : tensor<64x1xi32, #linear2>
    %24 = "tt.splat"(%arg2) : (!tt.ptr<f16>) -> tensor<64x1x!tt.ptr<f16>, #linear2>
    %25 = "tt.addptr"(%24, %23) : (tensor<64x1x!tt.ptr<f16>, #linear2>, tensor<64x1xi32, #linear2>) -> tensor<64x1x!tt.ptr<f16>, #linear2>
    %26 = "ttg.convert_layout"(%25) : (tensor<64x1x!tt.ptr<f16>, #linear2>) -> tensor<64x1x!tt.ptr<f16>, #linear4>
    %27 = "tt.broadcast"(%26) : (tensor<64x1x!tt.ptr<f16>, #linear4>) -> tensor<64x64x!tt.ptr<f16>, #linear>
    %28 = "tt.addptr"(%27, %9) : (tensor<64x64x!tt.ptr<f16>, #linear>, tensor<64x64xi32, #linear>) -> tensor<64x64x!tt.ptr<f16>, #linear>
    %29 = arith.truncf %21#0 : tensor<64x64xf32, #linear> to tensor<64x64xf16, #linear>
    %30 = "ttg.convert_layout"(%28) : (tensor<64x64x!tt.ptr<f16>, #linear>) -> tensor<64x64x!tt.ptr<f16>, #linear5>
    %31 = "ttg.convert_layout"(%29) : (tensor<64x64xf16, #linear>) -> tensor<64x64xf16, #linear5>
    "tt.store"(%30, %31) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<64x64x!tt.ptr<f16>, #linear5>, tensor<64x64xf16, #linear5>) -> ()
    return
  }
}

// -----// after tritongpu-accelerate-matmul{target=cuda:90} //----- //
#linear = #ttg.linear<[[2, 0], [4, 0], [8, 0], [16, 0], [32, 0]], [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16]], [[0, 32], [1, 0]], []>
#linear1 = #ttg.linear<[], [[1], [2], [4], [8], [16]], [[32], [0]], []>
#linear2 = #ttg.linear<[], [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0]], [[32, 0], [0, 0]], []>
#linear3 = #ttg.linear<[], [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16]], [[0, 32], [0, 0]], []>
#linear4 = #ttg.linear<[[2, 0], [4, 0], [8, 0], [16, 0], [32, 0]], [[0, 0], [0, 0], [0, 0], [0, 0], [0, 0]], [[0, 0], [1, 0]], []>
#linear5 = #ttg.linear<[[0, 1], [0, 2], [0, 4], [16, 0], [32, 0]], [[0, 8], [0, 16], [0, 32], [1, 0], [2, 0]], [[4, 0], [8, 0]], []>
#linear6 = #ttg.linear<[[0, 1], [8, 0], [0, 8], [0, 16], [0, 32]], [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], [[16, 0], [32, 0]], []>
#shared = #ttg.shared<[[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
!memdesc = !ttg.memdesc<[64, 64], f16, #shared>
module attributes {"ttg.num-warps" = 4 : i32} {
  func.func @matmul$(%arg0: !tt.ptr<f16> {tt.divisibility = 16 : i32, tt.element = "fp16", tt.name = "a"}, %arg1: !tt.ptr<f16> {tt.divisibility = 16 : i32, tt.element = "fp16", tt.name = "b"}, %arg2: !tt.ptr<f16> {tt.divisibility = 16 : i32, tt.element = "fp16", tt.name = "c"}, %arg3: i32 {tt.divisibility = 16 : i32, tt.name = "K"}, %arg4: i32 {tt.divisibility = 16 : i32, tt.name = "stride_a"}, %arg5: i32 {tt.divisibility = 16 : i32, tt.name = "stride_b"}, %arg6: i32 {tt.divisibility = 16 : i32, tt.name = "stride_c"}) attributes {tt.kernel} {
    %cst = arith.constant dense<0.000000e+00> : tensor<64x64xf32, #linear>
    %c63_i32 = arith.constant 63 : i32
    %c64_i32 = arith.constant 64 : i32
    %c0_i32 = arith.constant 0 : i32
    %c1_i32 = arith.constant 1 : i32
    %cst_0 = arith.constant dense<64> : tensor<64x64xi32, #linear>
    %0 = "tt.make_range"() {end = 64 : i32, start = 0 : i32} : () -> tensor<64xi32, #linear1>
    %1 = "tt.expand_dims"(%0) {axis = 1 : i32} : (tensor<64xi32, #linear1>) -> tensor<64x1xi32, #linear2>
    %2 = "tt.splat"(%arg4) : (i32) -> tensor<64x1xi32, #linear2>
    %3 = arith.muli %1, %2 : tensor<64x1xi32, #linear2>
    %4 = "tt.splat"(%arg0) : (!tt.ptr<f16>) -> tensor<64x1x!tt.ptr<f16>, #linear2>
    %5 = "tt.addptr"(%4, %3) : (tensor<64x1x!tt.ptr<f16>, #linear2>, tensor<64x1xi32, #linear2>) -> tensor<64x1x!tt.ptr<f16>, #linear2>
    %6 = "tt.expand_dims"(%0) {axis = 0 : i32} : (tensor<64xi32, #linear1>) -> tensor<1x64xi32, #linear3>
    %7 = "ttg.convert_layout"(%5) : (tensor<64x1x!tt.ptr<f16>, #linear2>) -> tensor<64x1x!tt.ptr<f16>, #linear4>
    %8 = "tt.broadcast"(%7) : (tensor<64x1x!tt.ptr<f16>, #linear4>) -> tensor<64x64x!tt.ptr<f16>, #linear>
    %9 = "tt.broadcast"(%6) : (tensor<1x64xi32, #linear3>) -> tensor<64x64xi32, #linear>
    %10 = "tt.addptr"(%8, %9) : (tensor<64x64x!tt.ptr<f16>, #linear>, tensor<64x64xi32, #linear>) -> tensor<64x64x!tt.ptr<f16>, #linear>
    %11 = "tt.splat"(%arg5) : (i32) -> tensor<64x1xi32, #linear2>
    %12 = arith.muli %1, %11 : tensor<64x1xi32, #linear2>
    %13 = "tt.splat"(%arg1) : (!tt.ptr<f16>) -> tensor<64x1x!tt.ptr<f16>, #linear2>
    %14 = "tt.addptr"(%13, %12) : (tensor<64x1x!tt.ptr<f16>, #linear2>, tensor<64x1xi32, #linear2>) -> tensor<64x1x!tt.ptr<f16>, #linear2>
    %15 = "ttg.convert_layout"(%14) : (tensor<64x1x!tt.ptr<f16>, #linear2>) -> tensor<64x1x!tt.ptr<f16>, #linear4>
    %16 = "tt.broadcast"(%15) : (tensor<64x1x!tt.ptr<f16>, #linear4>) -> tensor<64x64x!tt.ptr<f16>, #linear>
    %17 = "tt.addptr"(%16, %9) : (tensor<64x64x!tt.ptr<f16>, #linear>, tensor<64x64xi32, #linear>) -> tensor<64x64x!tt.ptr<f16>, #linear>
    %18 = arith.addi %arg3, %c63_i32 : i32
    %19 = arith.divsi %18, %c64_i32 : i32
    %20 = arith.muli %arg5, %c64_i32 : i32
    %21:3 = scf.for %arg7 = %c0_i32 to %19 step %c1_i32 iter_args(%arg8 = %cst, %arg9 = %10, %arg10 = %17) -> (tensor<64x64xf32, #linear>, tensor<64x64x!tt.ptr<f16>, #linear>, tensor<64x64x!tt.ptr<f16>, #linear>)  : i32 {
      %32 = "ttg.convert_layout"(%arg9) : (tensor<64x64x!tt.ptr<f16>, #linear>) -> tensor<64x64x!tt.ptr<f16>, #linear5>
      %33 = "tt.load"(%32) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<64x64x!tt.ptr<f16>, #linear5>) -> tensor<64x64xf16, #linear5>
      %34 = "ttg.convert_layout"(%33) : (tensor<64x64xf16, #linear5>) -> tensor<64x64xf16, #linear>
      %35 = "ttg.convert_layout"(%arg10) : (tensor<64x64x!tt.ptr<f16>, #linear>) -> tensor<64x64x!tt.ptr<f16>, #linear5>
      %36 = "tt.load"(%35) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<64x64x!tt.ptr<f16>, #linear5>) -> tensor<64x64xf16, #linear5>
      %37 = "ttg.convert_layout"(%36) : (tensor<64x64xf16, #linear5>) -> tensor<64x64xf16, #linear>
      %38 = "ttg.local_alloc"(%36) : (tensor<64x64xf16, #linear5>) -> !memdesc
      %39 = "ttg.local_alloc"(%33) : (tensor<64x64xf16, #linear5>) -> !memdesc
      %40 = "ttg.convert_layout"(%arg8) : (tensor<64x64xf32, #linear>) -> tensor<64x64xf32, #linear6>
      %41 = "ttng.warp_group_dot"(%39, %38, %40) {imprecise = 0 : i32, operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (!memdesc, !memdesc, tensor<64x64xf32, #linear6>) -> tensor<64x64xf32, #linear6>
      %42 = "ttng.warp_group_dot_wait"(%41) {pendings = 0 : i32} : (tensor<64x64xf32, #linear6>) -> tensor<64x64xf32, #linear6>
      %43 = "ttg.convert_layout"(%42) : (tensor<64x64xf32, #linear6>) -> tensor<64x64xf32, #linear>
      %44 = "tt.addptr"(%arg9, %cst_0) : (tensor<64x64x!tt.ptr<f16>, #linear>, tensor<64x64xi32, #linear>) -> tensor<64x64x!tt.ptr<f16>, #linear>
      %45 = "tt.splat"(%20) : (i32) -> tensor<64x64xi32, #linear>
      %46 = "tt.addptr"(%arg10, %45) : (tensor<64x64x!tt.ptr<f16>, #linear>, tensor<64x64xi32, #linear>) -> tensor<64x64x!tt.ptr<f16>, #linear>
      scf.yield %43, %44, %46 : tensor<64x64xf32, #linear>, tensor<64x64x!tt.ptr<f16>, #linear>, tensor<64x64x!tt.ptr<f16>, #linear>
    }
    %22 = "tt.splat"(%arg6) : (i32) -> tensor<64x1xi32, #linear2>
    %23 = arith.muli %1, %22 : tensor<64x1xi32, #linear2>
    %24 = "tt.splat"(%arg2) : (!tt.ptr<f16>) -> tensor<64x1x!tt.ptr<f16>, #linear2>
    %25 = "tt.addptr"(%24, %23) : (tensor<64x1x!tt.ptr<f16>, #linear2>, tensor<64x1xi32, #linear2>) -> tensor<64x1x!tt.ptr<f16>, #linear2>
    %26 = "ttg.convert_layout"(%25) : (tensor<64x1x!tt.ptr<f16>, #linear2>) -> tensor<64x1x!tt.ptr<f16>, #linear4>
    %27 = "tt.broadcast"(%26) : (tensor<64x1x!tt.ptr<f16>, #linear4>) -> tensor<64x64x!tt.ptr<f16>, #linear>
    %28 = "tt.addptr"(%27, %9) : (tensor<64x64x!tt.ptr<f16>, #linear>, tensor<64x64xi32, #linear>) -> tensor<64x64x!tt.ptr<f16>, #linear>
    %29 = arith.truncf %21#0 : tensor<64x64xf32, #linear> to tensor<64x64xf16, #linear>
    %30 = "ttg.convert_layout"(%28) : (tensor<64x64x!tt.ptr<f16>, #linear>) -> tensor<64x64x!tt.ptr<f16>, #linear5>
    %31 = "ttg.convert_layout"(%29) : (tensor<64x64xf16, #linear>) -> tensor<64x64xf16, #linear5>
    "tt.store"(%30, %31) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<64x64x!tt.ptr<f16>, #linear5>, tensor<64x64xf16, #linear5>) -> ()
    return
  }
}

// -----// after tritongpu-remove-layout-conversions //----- //
#linear = #ttg.linear<[[0, 1], [8, 0], [0, 8], [0, 16], [0, 32]], [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], [[16, 0], [32, 0]], []>
#linear1 = #ttg.linear<[[0, 1], [0, 2], [0, 4], [16, 0], [32, 0]], [[0, 8], [0, 16], [0, 32], [1, 0], [2, 0]], [[4, 0], [8, 0]], []>
#linear2 = #ttg.linear<[[1], [2], [4]], [[8], [16], [32], [0], [0]], [[0], [0]], []>
#linear3 = #ttg.linear<[[16], [32]], [[0], [0], [0], [1], [2]], [[4], [8]], []>
#linear4 = #ttg.linear<[[16, 0], [32, 0]], [[0, 0], [0, 0], [0, 0], [1, 0], [2, 0]], [[4, 0], [8, 0]], []>
#linear5 = #ttg.linear<[[0, 1], [0, 2], [0, 4]], [[0, 8], [0, 16], [0, 32], [0, 0], [0, 0]], [[0, 0], [0, 0]], []>
#shared = #ttg.shared<[[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
!memdesc = !ttg.memdesc<[64, 64], f16, #shared>
module attributes {"ttg.num-warps" = 4 : i32} {
  func.func @matmul$(%arg0: !tt.ptr<f16> {tt.divisibility = 16 : i32, tt.element = "fp16", tt.name = "a"}, %arg1: !tt.ptr<f16> {tt.divisibility = 16 : i32, tt.element = "fp16", tt.name = "b"}, %arg2: !tt.ptr<f16> {tt.divisibility = 16 : i32, tt.element = "fp16", tt.name = "c"}, %arg3: i32 {tt.divisibility = 16 : i32, tt.name = "K"}, %arg4: i32 {tt.divisibility = 16 : i32, tt.name = "stride_a"}, %arg5: i32 {tt.divisibility = 16 : i32, tt.name = "stride_b"}, %arg6: i32 {tt.divisibility = 16 : i32, tt.name = "stride_c"}) attributes {tt.kernel} {
    %cst = arith.constant dense<0.000000e+00> : tensor<64x64xf32, #linear>
    %c63_i32 = arith.constant 63 : i32
    %c64_i32 = arith.constant 64 : i32
    %c0_i32 = arith.constant 0 : i32
    %c1_i32 = arith.constant 1 : i32
    %cst_0 = arith.constant dense<64> : tensor<64x64xi32, #linear1>
    %0 = "tt.make_range"() {end = 64 : i32, start = 0 : i32} : () -> tensor<64xi32, #linear2>
    %1 = "tt.make_range"() {end = 64 : i32, start = 0 : i32} : () -> tensor<64xi32, #linear3>
    %2 = "tt.expand_dims"(%1) {axis = 1 : i32} : (tensor<64xi32, #linear3>) -> tensor<64x1xi32, #linear4>
    %3 = "tt.splat"(%arg4) : (i32) -> tensor<64x1xi32, #linear4>
    %4 = arith.muli %2, %3 : tensor<64x1xi32, #linear4>
    %5 = "tt.splat"(%arg0) : (!tt.ptr<f16>) -> tensor<64x1x!tt.ptr<f16>, #linear4>
    %6 = "tt.addptr"(%5, %4) : (tensor<64x1x!tt.ptr<f16>, #linear4>, tensor<64x1xi32, #linear4>) -> tensor<64x1x!tt.ptr<f16>, #linear4>
    %7 = "tt.expand_dims"(%0) {axis = 0 : i32} : (tensor<64xi32, #linear2>) -> tensor<1x64xi32, #linear5>
    %8 = "tt.broadcast"(%6) : (tensor<64x1x!tt.ptr<f16>, #linear4>) -> tensor<64x64x!tt.ptr<f16>, #linear1>
    %9 = "tt.broadcast"(%7) : (tensor<1x64xi32, #linear5>) -> tensor<64x64xi32, #linear1>
    %10 = "tt.addptr"(%8, %9) : (tensor<64x64x!tt.ptr<f16>, #linear1>, tensor<64x64xi32, #linear1>) -> tensor<64x64x!tt.ptr<f16>, #linear1>
    %11 = "tt.splat"(%arg5) : (i32) -> tensor<64x1xi32, #linear4>
    %12 = arith.muli %2, %11 : tensor<64x1xi32, #linear4>
    %13 = "tt.splat"(%arg1) : (!tt.ptr<f16>) -> tensor<64x1x!tt.ptr<f16>, #linear4>
    %14 = "tt.addptr"(%13, %12) : (tensor<64x1x!tt.ptr<f16>, #linear4>, tensor<64x1xi32, #linear4>) -> tensor<64x1x!tt.ptr<f16>, #linear4>
    %15 = "tt.broadcast"(%14) : (tensor<64x1x!tt.ptr<f16>, #linear4>) -> tensor<64x64x!tt.ptr<f16>, #linear1>
    %16 = "tt.addptr"(%15, %9) : (tensor<64x64x!tt.ptr<f16>, #linear1>, tensor<64x64xi32, #linear1>) -> tensor<64x64x!tt.ptr<f16>, #linear1>
    %17 = arith.addi %arg3, %c63_i32 : i32
    %18 = arith.divsi %17, %c64_i32 : i32
    %19 = arith.muli %arg5, %c64_i32 : i32
    %20:3 = scf.for %arg7 = %c0_i32 to %18 step %c1_i32 iter_args(%arg8 = %cst, %arg9 = %10, %arg10 = %16) -> (tensor<64x64xf32, #linear>, tensor<64x64x!tt.ptr<f16>, #linear1>, tensor<64x64x!tt.ptr<f16>, #linear1>)  : i32 {
      %29 = "tt.load"(%arg9) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<64x64x!tt.ptr<f16>, #linear1>) -> tensor<64x64xf16, #linear1>
      %30 = "tt.load"(%arg10) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<64x64x!tt.ptr<f16>, #linear1>) -> tensor<64x64xf16, #linear1>
      %31 = "ttg.local_alloc"(%30) : (tensor<64x64xf16, #linear1>) -> !memdesc
      %32 = "ttg.local_alloc"(%29) : (tensor<64x64xf16, #linear1>) -> !memdesc
      %33 = "ttng.warp_group_dot"(%32, %31, %arg8) {imprecise = 0 : i32, operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (!memdesc, !memdesc, tensor<64x64xf32, #linear>) -> tensor<64x64xf32, #linear>
      %34 = "ttng.warp_group_dot_wait"(%33) {pendings = 0 : i32} : (tensor<64x64xf32, #linear>) -> tensor<64x64xf32, #linear>
      %35 = "tt.addptr"(%arg9, %cst_0) : (tensor<64x64x!tt.ptr<f16>, #linear1>, tensor<64x64xi32, #linear1>) -> tensor<64x64x!tt.ptr<f16>, #linear1>
      %36 = "tt.splat"(%19) : (i32) -> tensor<64x64xi32, #linear1>
      %37 = "tt.addptr"(%arg10, %36) : (tensor<64x64x!tt.ptr<f16>, #linear1>, tensor<64x64xi32, #linear1>) -> tensor<64x64x!tt.ptr<f16>, #linear1>
      scf.yield %34, %35, %37 : tensor<64x64xf32, #linear>, tensor<64x64x!tt.ptr<f16>, #linear1>, tensor<64x64x!tt.ptr<f16>, #linear1>
    }
    %21 = "tt.splat"(%arg6) : (i32) -> tensor<64x1xi32, #linear4>
    %22 = arith.muli %2, %21 : tensor<64x1xi32, #linear4>
    %23 = "tt.splat"(%arg2) : (!tt.ptr<f16>) -> tensor<64x1x!tt.ptr<f16>, #linear4>
    %24 = "tt.addptr"(%23, %22) : (tensor<64x1x!tt.ptr<f16>, #linear4>, tensor<64x1xi32, #linear4>) -> tensor<64x1x!tt.ptr<f16>, #linear4>
    %25 = "tt.broadcast"(%24) : (tensor<64x1x!tt.ptr<f16>, #linear4>) -> tensor<64x64x!tt.ptr<f16>, #linear1>
    %26 = "tt.addptr"(%25, %9) : (tensor<64x64x!tt.ptr<f16>, #linear1>, tensor<64x64xi32, #linear1>) -> tensor<64x64x!tt.ptr<f16>, #linear1>
    %27 = arith.truncf %20#0 : tensor<64x64xf32, #linear> to tensor<64x64xf16, #linear>
    %28 = "ttg.convert_layout"(%27) : (tensor<64x64xf16, #linear>) -> tensor<64x64xf16, #linear1>
    "tt.store"(%26, %28) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<64x64x!tt.ptr<f16>, #linear1>, tensor<64x64xf16, #linear1>) -> ()
    return
  }
}

// -----// after tritongpu-schedule-loops{target=cuda:90} //----- //
#linear = #ttg.linear<[[0, 1], [8, 0], [0, 8], [0, 16], [0, 32]], [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], [[16, 0], [32, 0]], []>
#linear1 = #ttg.linear<[[0, 1], [0, 2], [0, 4], [16, 0], [32, 0]], [[0, 8], [0, 16], [0, 32], [1, 0], [2, 0]], [[4, 0], [8, 0]], []>
#linear2 = #ttg.linear<[[1], [2], [4]], [[8], [16], [32], [0], [0]], [[0], [0]], []>
#linear3 = #ttg.linear<[[16], [32]], [[0], [0], [0], [1], [2]], [[4], [8]], []>
#linear4 = #ttg.linear<[[16, 0], [32, 0]], [[0, 0], [0, 0], [0, 0], [1, 0], [2, 0]], [[4, 0], [8, 0]], []>
#linear5 = #ttg.linear<[[0, 1], [0, 2], [0, 4]], [[0, 8], [0, 16], [0, 32], [0, 0], [0, 0]], [[0, 0], [0, 0]], []>
#shared = #ttg.shared<[[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
!mutable_memdesc = !ttg.mutable_memdesc<[3, 64, 64], f16, #shared>
!mutable_memdesc1 = !ttg.mutable_memdesc<[64, 64], f16, #shared>
module attributes {"ttg.num-warps" = 4 : i32} {
  func.func @matmul$(%arg0: !tt.ptr<f16> {tt.divisibility = 16 : i32, tt.element = "fp16", tt.name = "a"}, %arg1: !tt.ptr<f16> {tt.divisibility = 16 : i32, tt.element = "fp16", tt.name = "b"}, %arg2: !tt.ptr<f16> {tt.divisibility = 16 : i32, tt.element = "fp16", tt.name = "c"}, %arg3: i32 {tt.divisibility = 16 : i32, tt.name = "K"}, %arg4: i32 {tt.divisibility = 16 : i32, tt.name = "stride_a"}, %arg5: i32 {tt.divisibility = 16 : i32, tt.name = "stride_b"}, %arg6: i32 {tt.divisibility = 16 : i32, tt.name = "stride_c"}) attributes {proton.schedule = ["test_goldens.py:51: stages 3, groups 1\0A  0  tt.load  test_goldens.py:52  3 buffers\0A  0  tt.load  test_goldens.py:52  3 buffers\0A  2  wait for copies\0A  2  ttng.warp_group_dot  test_goldens.py:52\0A  3  ttng.warp_group_dot_wait  test_goldens.py:52  1 under way\0A  0  tt.addptr  test_goldens.py:53\0A  0  tt.addptr  test_goldens.py:54\0A  0  begin copies"], tt.kernel} {
    %cst = arith.constant dense<0.000000e+00> : tensor<64x64xf32, #linear>
    %c63_i32 = arith.constant 63 : i32
    %c64_i32 = arith.constant 64 : i32
    %c0_i32 = arith.constant 0 : i32
    %c1_i32 = arith.constant 1 : i32
    %cst_0 = arith.constant dense<64> : tensor<64x64xi32, #linear1>
    %0 = "tt.make_range"() {end = 64 : i32, start = 0 : i32} : () -> tensor<64xi32, #linear2>
    %1 = "tt.make_range"() {end = 64 : i32, start = 0 : i32} : () -> tensor<64xi32, #linear3>
    %2 = "tt.expand_dims"(%1) {axis = 1 : i32} : (tensor<64xi32, #linear3>) -> tensor<64x1xi32, #linear4>
    %3 = "tt.splat"(%arg4) : (i32) -> tensor<64x1xi32, #linear4>
    %4 = arith.muli %2, %3 : tensor<64x1xi32, #linear4>
    %5 = "tt.splat"(%arg0) : (!tt.ptr<f16>) -> tensor<64x1x!tt.ptr<f16>, #linear4>
    %6 = "tt.addptr"(%5, %4) : (tensor<64x1x!tt.ptr<f16>, #linear4>, tensor<64x1xi32, #linear4>) -> tensor<64x1x!tt.ptr<f16>, #linear4>
    %7 = "tt.expand_dims"(%0) {axis = 0 : i32} : (tensor<64xi32, #linear2>) -> tensor<1x64xi32, #linear5>
    %8 = "tt.broadcast"(%6) : (tensor<64x1x!tt.ptr<f16>, #linear4>) -> tensor<64x64x!tt.ptr<f16>, #linear1>
    %9 = "tt.broadcast"(%7) : (tensor<1x64xi32, #linear5>) -> tensor<64x64xi32, #linear1>
    %10 = "tt.addptr"(%8, %9) : (tensor<64x64x!tt.ptr<f16>, #linear1>, tensor<64x64xi32, #linear1>) -> tensor<64x64x!tt.ptr<f16>, #linear1>
    %11 = "tt.splat"(%arg5) : (i32) -> tensor<64x1xi32, #linear4>
    %12 = arith.muli %2, %11 : tensor<64x1xi32, #linear4>
    %13 = "tt.splat"(%arg1) : (!tt.ptr<f16>) -> tensor<64x1x!tt.ptr<f16>, #linear4>
    %14 = "tt.addptr"(%13, %12) : (tensor<64x1x!tt.ptr<f16>, #linear4>, tensor<64x1xi32, #linear4>) -> tensor<64x1x!tt.ptr<f16>, #linear4>
    %15 = "tt.broadcast"(%14) : (tensor<64x1x!tt.ptr<f16>, #linear4>) -> tensor<64x64x!tt.ptr<f16>, #linear1>
    %16 = "tt.addptr"(%15, %9) : (tensor<64x64x!tt.ptr<f16>, #linear1>, tensor<64x64xi32, #linear1>) -> tensor<64x64x!tt.ptr<f16>, #linear1>
    %17 = arith.addi %arg3, %c63_i32 : i32
    %18 = arith.divsi %17, %c64_i32 : i32
    %19 = arith.muli %arg5, %c64_i32 : i32
    %20 = "tt.splat"(%19) : (i32) -> tensor<64x64xi32, #linear1>
    %21 = "ttg.local_reserve"() : () -> !mutable_memdesc
    %22 = "ttg.local_reserve"() : () -> !mutable_memdesc
    %23 = arith.cmpi slt, %c0_i32, %18 : i32
    %24 = arith.subi %18, %c0_i32 : i32
    %c0_i32_1 = arith.constant 0 : i32
    %25 = "tt.splat"(%23) : (i1) -> tensor<64x64xi1, #linear1>
    %26 = "ttg.memdesc_index"(%21, %c0_i32_1) : (!mutable_memdesc, i32) -> !mutable_memdesc1
    %27 = "ttg.async_copy_global_to_local"(%10, %26, %25) {operandSegmentSizes = array<i32: 1, 1, 1>, proton.iteration = 0 : i32} : (tensor<64x64x!tt.ptr<f16>, #linear1>, !mutable_memdesc1, tensor<64x64xi1, #linear1>) -> !ttg.async_token
    %28 = "tt.splat"(%23) : (i1) -> tensor<64x64xi1, #linear1>
    %29 = "ttg.memdesc_index"(%22, %c0_i32_1) : (!mutable_memdesc, i32) -> !mutable_memdesc1
    %30 = "ttg.async_copy_global_to_local"(%16, %29, %28) {operandSegmentSizes = array<i32: 1, 1, 1>, proton.iteration = 0 : i32} : (tensor<64x64x!tt.ptr<f16>, #linear1>, !mutable_memdesc1, tensor<64x64xi1, #linear1>) -> !ttg.async_token
    %31 = "ttg.async_commit_group"(%27, %30) {operandSegmentSizes = array<i32: 2, 0>, proton.iteration = 0 : i32} : (!ttg.async_token, !ttg.async_token) -> !ttg.async_token
    %32 = "tt.addptr"(%10, %cst_0) : (tensor<64x64x!tt.ptr<f16>, #linear1>, tensor<64x64xi32, #linear1>) -> tensor<64x64x!tt.ptr<f16>, #linear1>
    %33 = "tt.addptr"(%16, %20) : (tensor<64x64x!tt.ptr<f16>, #linear1>, tensor<64x64xi32, #linear1>) -> tensor<64x64x!tt.ptr<f16>, #linear1>
    %34 = arith.addi %c0_i32, %c1_i32 : i32
    %35 = arith.cmpi ugt, %24, %c1_i32 : i32
    %36 = arith.andi %23, %35 : i1
    %c1_i32_2 = arith.constant 1 : i32
    %37 = "tt.splat"(%36) : (i1) -> tensor<64x64xi1, #linear1>
    %38 = "ttg.memdesc_index"(%21, %c1_i32_2) : (!mutable_memdesc, i32) -> !mutable_memdesc1
    %39 = "ttg.async_copy_global_to_local"(%32, %38, %37) {operandSegmentSizes = array<i32: 1, 1, 1>, proton.iteration = 1 : i32} : (tensor<64x64x!tt.ptr<f16>, #linear1>, !mutable_memdesc1, tensor<64x64xi1, #linear1>) -> !ttg.async_token
    %40 = "tt.splat"(%36) : (i1) -> tensor<64x64xi1, #linear1>
    %41 = "ttg.memdesc_index"(%22, %c1_i32_2) : (!mutable_memdesc, i32) -> !mutable_memdesc1
    %42 = "ttg.async_copy_global_to_local"(%33, %41, %40) {operandSegmentSizes = array<i32: 1, 1, 1>, proton.iteration = 1 : i32} : (tensor<64x64x!tt.ptr<f16>, #linear1>, !mutable_memdesc1, tensor<64x64xi1, #linear1>) -> !ttg.async_token
    %43 = "ttg.async_commit_group"(%39, %42) {operandSegmentSizes = array<i32: 2, 0>, proton.iteration = 1 : i32} : (!ttg.async_token, !ttg.async_token) -> !ttg.async_token
    %44 = "tt.addptr"(%32, %cst_0) : (tensor<64x64x!tt.ptr<f16>, #linear1>, tensor<64x64xi32, #linear1>) -> tensor<64x64x!tt.ptr<f16>, #linear1>
    %45 = "tt.addptr"(%33, %20) : (tensor<64x64x!tt.ptr<f16>, #linear1>, tensor<64x64xi32, #linear1>) -> tensor<64x64x!tt.ptr<f16>, #linear1>
    %46 = arith.addi %34, %c1_i32 : i32
    %47 = arith.addi %c1_i32, %c1_i32 : i32
    %c2_i32 = arith.constant 2 : i32
    %c0_i32_3 = arith.constant 0 : i32
    %48:9 = scf.for %arg7 = %c0_i32 to %18 step %c1_i32 iter_args(%arg8 = %cst, %arg9 = %10, %arg10 = %16, %arg11 = %44, %arg12 = %45, %arg13 = %31, %arg14 = %43, %arg15 = %c2_i32, %arg16 = %c0_i32_3) -> (tensor<64x64xf32, #linear>, tensor<64x64x!tt.ptr<f16>, #linear1>, tensor<64x64x!tt.ptr<f16>, #linear1>, tensor<64x64x!tt.ptr<f16>, #linear1>, tensor<64x64x!tt.ptr<f16>, #linear1>, !ttg.async_token, !ttg.async_token, i32, i32)  : i32 {
      "ttg.async_wait"(%arg13) {pendings = 1 : i32} : (!ttg.async_token) -> ()
      %58 = "ttg.memdesc_index"(%21, %arg16) : (!mutable_memdesc, i32) -> !mutable_memdesc1
      %59 = "ttg.memdesc_index"(%22, %arg16) : (!mutable_memdesc, i32) -> !mutable_memdesc1
      %60 = "ttng.warp_group_dot"(%58, %59, %arg8) {imprecise = 0 : i32, operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (!mutable_memdesc1, !mutable_memdesc1, tensor<64x64xf32, #linear>) -> tensor<64x64xf32, #linear>
      %61 = "ttng.warp_group_dot_wait"(%60) {pendings = 1 : i32} : (tensor<64x64xf32, #linear>) -> tensor<64x64xf32, #linear>
      %62 = "tt.addptr"(%arg9, %cst_0) : (tensor<64x64x!tt.ptr<f16>, #linear1>, tensor<64x64xi32, #linear1>) -> tensor<64x64x!tt.ptr<f16>, #linear1>
      %63 = "tt.addptr"(%arg10, %20) : (tensor<64x64x!tt.ptr<f16>, #linear1>, tensor<64x64xi32, #linear1>) -> tensor<64x64x!tt.ptr<f16>, #linear1>
      %c2_i32_4 = arith.constant 2 : i32
      %64 = arith.muli %c1_i32, %c2_i32_4 : i32
      %65 = arith.subi %18, %arg7 : i32
      %66 = arith.cmpi ugt, %65, %64 : i32
      %67 = arith.addi %arg7, %64 : i32
      %68 = "tt.splat"(%66) : (i1) -> tensor<64x64xi1, #linear1>
      %69 = "ttg.memdesc_index"(%21, %arg15) : (!mutable_memdesc, i32) -> !mutable_memdesc1
      %70 = "ttg.async_copy_global_to_local"(%arg11, %69, %68) {operandSegmentSizes = array<i32: 1, 1, 1>, proton.ahead = 2 : i32} : (tensor<64x64x!tt.ptr<f16>, #linear1>, !mutable_memdesc1, tensor<64x64xi1, #linear1>) -> !ttg.async_token
      %71 = "tt.splat"(%66) : (i1) -> tensor<64x64xi1, #linear1>
      %72 = "ttg.memdesc_index"(%22, %arg15) : (!mutable_memdesc, i32) -> !mutable_memdesc1
      %73 = "ttg.async_copy_global_to_local"(%arg12, %72, %71) {operandSegmentSizes = array<i32: 1, 1, 1>, proton.ahead = 2 : i32} : (tensor<64x64x!tt.ptr<f16>, #linear1>, !mutable_memdesc1, tensor<64x64xi1, #linear1>) -> !ttg.async_token
      %74 = "ttg.async_commit_group"(%70, %73) {operandSegmentSizes = array<i32: 2, 0>, proton.ahead = 2 : i32} : (!ttg.async_token, !ttg.async_token) -> !ttg.async_token
      %75 = "tt.addptr"(%arg11, %cst_0) : (tensor<64x64x!tt.ptr<f16>, #linear1>, tensor<64x64xi32, #linear1>) -> tensor<64x64x!tt.ptr<f16>, #linear1>
      %76 = "tt.addptr"(%arg12, %20) : (tensor<64x64x!tt.ptr<f16>, #linear1>, tensor<64x64xi32, #linear1>) -> tensor<64x64x!tt.ptr<f16>, #linear1>
      %c1_i32_5 = arith.constant 1 : i32
      %77 = arith.addi %arg15, %c1_i32_5 : i32
      %c3_i32 = arith.constant 3 : i32
      %78 = arith.cmpi eq, %77, %c3_i32 : i32
      %c0_i32_6 = arith.constant 0 : i32
      %79 = arith.select %78, %c0_i32_6, %77 : i32
      %c1_i32_7 = arith.constant 1 : i32
      %80 = arith.addi %arg16, %c1_i32_7 : i32
      %c3_i32_8 = arith.constant 3 : i32
      %81 = arith.cmpi eq, %80, %c3_i32_8 : i32
      %c0_i32_9 = arith.constant 0 : i32
      %82 = arith.select %81, %c0_i32_9, %80 : i32
      scf.yield %61, %62, %63, %75, %76, %arg14, %74, %79, %82 : tensor<64x64xf32, #linear>, tensor<64x64x!tt.ptr<f16>, #linear1>, tensor<64x64x!tt.ptr<f16>, #linear1>, tensor<64x64x!tt.ptr<f16>, #linear1>, tensor<64x64x!tt.ptr<f16>, #linear1>, !ttg.async_token, !ttg.async_token, i32, i32
    }
    "ttg.async_wait"(%48#6) {pendings = 0 : i32} : (!ttg.async_token) -> ()
    %49 = "tt.splat"(%arg6) : (i32) -> tensor<64x1xi32, #linear4>
    %50 = arith.muli %2, %49 : tensor<64x1xi32, #linear4>
    %51 = "tt.splat"(%arg2) : (!tt.ptr<f16>) -> tensor<64x1x!tt.ptr<f16>, #linear4>
    %52 = "tt.addptr"(%51, %50) : (tensor<64x1x!tt.ptr<f16>, #linear4>, tensor<64x1xi32, #linear4>) -> tensor<64x1x!tt.ptr<f16>, #linear4>
    %53 = "tt.broadcast"(%52) : (tensor<64x1x!tt.ptr<f16>, #linear4>) -> tensor<64x64x!tt.ptr<f16>, #linear1>
    %54 = "tt.addptr"(%53, %9) : (tensor<64x64x!tt.ptr<f16>, #linear1>, tensor<64x64xi32, #linear1>) -> tensor<64x64x!tt.ptr<f16>, #linear1>
    %55 = "ttng.warp_group_dot_wait"(%48#0) {pendings = 0 : i32} : (tensor<64x64xf32, #linear>) -> tensor<64x64xf32, #linear>
    %56 = arith.truncf %55 : tensor<64x64xf32, #linear> to tensor<64x64xf16, #linear>
    %57 = "ttg.convert_layout"(%56) : (tensor<64x64xf16, #linear>) -> tensor<64x64xf16, #linear1>
    "tt.store"(%54, %57) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<64x64x!tt.ptr<f16>, #linear1>, tensor<64x64xf16, #linear1>) -> ()
    return
  }
}

// -----// after triton-nvidia-gpu-fence-insertion //----- //
#linear = #ttg.linear<[[0, 1], [8, 0], [0, 8], [0, 16], [0, 32]], [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], [[16, 0], [32, 0]], []>
#linear1 = #ttg.linear<[[0, 1], [0, 2], [0, 4], [16, 0], [32, 0]], [[0, 8], [0, 16], [0, 32], [1, 0], [2, 0]], [[4, 0], [8, 0]], []>
#linear2 = #ttg.linear<[[1], [2], [4]], [[8], [16], [32], [0], [0]], [[0], [0]], []>
#linear3 = #ttg.linear<[[16], [32]], [[0], [0], [0], [1], [2]], [[4], [8]], []>
#linear4 = #ttg.linear<[[16, 0], [32, 0]], [[0, 0], [0, 0], [0, 0], [1, 0], [2, 0]], [[4, 0], [8, 0]], []>
#linear5 = #ttg.linear<[[0, 1], [0, 2], [0, 4]], [[0, 8], [0, 16], [0, 32], [0, 0], [0, 0]], [[0, 0], [0, 0]], []>
#shared = #ttg.shared<[[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
!mutable_memdesc = !ttg.mutable_memdesc<[3, 64, 64], f16, #shared>
!mutable_memdesc1 = !ttg.mutable_memdesc<[64, 64], f16, #shared>
module attributes {"ttg.num-warps" = 4 : i32} {
  func.func @matmul$(%arg0: !tt.ptr<f16> {tt.divisibility = 16 : i32, tt.element = "fp16", tt.name = "a"}, %arg1: !tt.ptr<f16> {tt.divisibility = 16 : i32, tt.element = "fp16", tt.name = "b"}, %arg2: !tt.ptr<f16> {tt.divisibility = 16 : i32, tt.element = "fp16", tt.name = "c"}, %arg3: i32 {tt.divisibility = 16 : i32, tt.name = "K"}, %arg4: i32 {tt.divisibility = 16 : i32, tt.name = "stride_a"}, %arg5: i32 {tt.divisibility = 16 : i32, tt.name = "stride_b"}, %arg6: i32 {tt.divisibility = 16 : i32, tt.name = "stride_c"}) attributes {proton.schedule = ["test_goldens.py:51: stages 3, groups 1\0A  0  tt.load  test_goldens.py:52  3 buffers\0A  0  tt.load  test_goldens.py:52  3 buffers\0A  2  wait for copies\0A  2  ttng.warp_group_dot  test_goldens.py:52\0A  3  ttng.warp_group_dot_wait  test_goldens.py:52  1 under way\0A  0  tt.addptr  test_goldens.py:53\0A  0  tt.addptr  test_goldens.py:54\0A  0  begin copies"], tt.kernel} {
    %c3_i32 = arith.constant 3 : i32
    %c2_i32 = arith.constant 2 : i32
    %cst = arith.constant dense<0.000000e+00> : tensor<64x64xf32, #linear>
    %c63_i32 = arith.constant 63 : i32
    %c64_i32 = arith.constant 64 : i32
    %c0_i32 = arith.constant 0 : i32
    %c1_i32 = arith.constant 1 : i32
    %cst_0 = arith.constant dense<64> : tensor<64x64xi32, #linear1>
    %0 = "tt.make_range"() {end = 64 : i32, start = 0 : i32} : () -> tensor<64xi32, #linear2>
    %1 = "tt.make_range"() {end = 64 : i32, start = 0 : i32} : () -> tensor<64xi32, #linear3>
    %2 = "tt.expand_dims"(%1) {axis = 1 : i32} : (tensor<64xi32, #linear3>) -> tensor<64x1xi32, #linear4>
    %3 = "tt.splat"(%arg4) : (i32) -> tensor<64x1xi32, #linear4>
    %4 = arith.muli %2, %3 : tensor<64x1xi32, #linear4>
    %5 = "tt.splat"(%arg0) : (!tt.ptr<f16>) -> tensor<64x1x!tt.ptr<f16>, #linear4>
    %6 = "tt.addptr"(%5, %4) : (tensor<64x1x!tt.ptr<f16>, #linear4>, tensor<64x1xi32, #linear4>) -> tensor<64x1x!tt.ptr<f16>, #linear4>
    %7 = "tt.expand_dims"(%0) {axis = 0 : i32} : (tensor<64xi32, #linear2>) -> tensor<1x64xi32, #linear5>
    %8 = "tt.broadcast"(%6) : (tensor<64x1x!tt.ptr<f16>, #linear4>) -> tensor<64x64x!tt.ptr<f16>, #linear1>
    %9 = "tt.broadcast"(%7) : (tensor<1x64xi32, #linear5>) -> tensor<64x64xi32, #linear1>
    %10 = "tt.addptr"(%8, %9) : (tensor<64x64x!tt.ptr<f16>, #linear1>, tensor<64x64xi32, #linear1>) -> tensor<64x64x!tt.ptr<f16>, #linear1>
    %11 = "tt.splat"(%arg5) : (i32) -> tensor<64x1xi32, #linear4>
    %12 = arith.muli %2, %11 : tensor<64x1xi32, #linear4>
    %13 = "tt.splat"(%arg1) : (!tt.ptr<f16>) -> tensor<64x1x!tt.ptr<f16>, #linear4>
    %14 = "tt.addptr"(%13, %12) : (tensor<64x1x!tt.ptr<f16>, #linear4>, tensor<64x1xi32, #linear4>) -> tensor<64x1x!tt.ptr<f16>, #linear4>
    %15 = "tt.broadcast"(%14) : (tensor<64x1x!tt.ptr<f16>, #linear4>) -> tensor<64x64x!tt.ptr<f16>, #linear1>
    %16 = "tt.addptr"(%15, %9) : (tensor<64x64x!tt.ptr<f16>, #linear1>, tensor<64x64xi32, #linear1>) -> tensor<64x64x!tt.ptr<f16>, #linear1>
    %17 = arith.addi %arg3, %c63_i32 : i32
    %18 = arith.divsi %17, %c64_i32 : i32
    %19 = arith.muli %arg5, %c64_i32 : i32
    %20 = "tt.splat"(%19) : (i32) -> tensor<64x64xi32, #linear1>
    %21 = "ttg.local_reserve"() : () -> !mutable_memdesc
    %22 = "ttg.local_reserve"() : () -> !mutable_memdesc
    %23 = arith.cmpi sgt, %18, %c0_i32 : i32
    %24 = "tt.splat"(%23) : (i1) -> tensor<64x64xi1, #linear1>
    %25 = "ttg.memdesc_index"(%21, %c0_i32) : (!mutable_memdesc, i32) -> !mutable_memdesc1
    %26 = "ttg.async_copy_global_to_local"(%10, %25, %24) {operandSegmentSizes = array<i32: 1, 1, 1>, proton.iteration = 0 : i32} : (tensor<64x64x!tt.ptr<f16>, #linear1>, !mutable_memdesc1, tensor<64x64xi1, #linear1>) -> !ttg.async_token
    %27 = "ttg.memdesc_index"(%22, %c0_i32) : (!mutable_memdesc, i32) -> !mutable_memdesc1
    %28 = "ttg.async_copy_global_to_local"(%16, %27, %24) {operandSegmentSizes = array<i32: 1, 1, 1>, proton.iteration = 0 : i32} : (tensor<64x64x!tt.ptr<f16>, #linear1>, !mutable_memdesc1, tensor<64x64xi1, #linear1>) -> !ttg.async_token
    %29 = "ttg.async_commit_group"(%26, %28) {operandSegmentSizes = array<i32: 2, 0>, proton.iteration = 0 : i32} : (!ttg.async_token, !ttg.async_token) -> !ttg.async_token
    %30 = "tt.addptr"(%10, %cst_0) : (tensor<64x64x!tt.ptr<f16>, #linear1>, tensor<64x64xi32, #linear1>) -> tensor<64x64x!tt.ptr<f16>, #linear1>
    %31 = "tt.addptr"(%16, %20) : (tensor<64x64x!tt.ptr<f16>, #linear1>, tensor<64x64xi32, #linear1>) -> tensor<64x64x!tt.ptr<f16>, #linear1>
    %32 = arith.cmpi ugt, %18, %c1_i32 : i32
    %33 = arith.andi %23, %32 : i1
    %34 = "tt.splat"(%33) : (i1) -> tensor<64x64xi1, #linear1>
    %35 = "ttg.memdesc_index"(%21, %c1_i32) : (!mutable_memdesc, i32) -> !mutable_memdesc1
    %36 = "ttg.async_copy_global_to_local"(%30, %35, %34) {operandSegmentSizes = array<i32: 1, 1, 1>, proton.iteration = 1 : i32} : (tensor<64x64x!tt.ptr<f16>, #linear1>, !mutable_memdesc1, tensor<64x64xi1, #linear1>) -> !ttg.async_token
    %37 = "ttg.memdesc_index"(%22, %c1_i32) : (!mutable_memdesc, i32) -> !mutable_memdesc1
    %38 = "ttg.async_copy_global_to_local"(%31, %37, %34) {operandSegmentSizes = array<i32: 1, 1, 1>, proton.iteration = 1 : i32} : (tensor<64x64x!tt.ptr<f16>, #linear1>, !mutable_memdesc1, tensor<64x64xi1, #linear1>) -> !ttg.async_token
    %39 = "ttg.async_commit_group"(%36, %38) {operandSegmentSizes = array<i32: 2, 0>, proton.iteration = 1 : i32} : (!ttg.async_token, !ttg.async_token) -> !ttg.async_token
    %40 = "tt.addptr"(%30, %cst_0) : (tensor<64x64x!tt.ptr<f16>, #linear1>, tensor<64x64xi32, #linear1>) -> tensor<64x64x!tt.ptr<f16>, #linear1>
    %41 = "tt.addptr"(%31, %20) : (tensor<64x64x!tt.ptr<f16>, #linear1>, tensor<64x64xi32, #linear1>) -> tensor<64x64x!tt.ptr<f16>, #linear1>
    %42 = ub.poison : tensor<64x64xf32, #linear>
    %43:7 = scf.for %arg7 = %c0_i32 to %18 step %c1_i32 iter_args(%arg8 = %42, %arg9 = %40, %arg10 = %41, %arg11 = %29, %arg12 = %39, %arg13 = %c2_i32, %arg14 = %c0_i32) -> (tensor<64x64xf32, #linear>, tensor<64x64x!tt.ptr<f16>, #linear1>, tensor<64x64x!tt.ptr<f16>, #linear1>, !ttg.async_token, !ttg.async_token, i32, i32)  : i32 {
      "ttg.async_wait"(%arg11) {pendings = 1 : i32} : (!ttg.async_token) -> ()
      %55 = "ttg.memdesc_index"(%21, %arg14) : (!mutable_memdesc, i32) -> !mutable_memdesc1
      %56 = "ttg.memdesc_index"(%22, %arg14) : (!mutable_memdesc, i32) -> !mutable_memdesc1
      %57 = arith.cmpi ne, %arg7, %c0_i32 : i32
      "ttng.fence_async_shared"() : () -> ()
      %58 = "ttng.warp_group_dot"(%55, %56, %arg8, %57) {imprecise = 0 : i32, operandSegmentSizes = array<i32: 1, 1, 1, 1>} : (!mutable_memdesc1, !mutable_memdesc1, tensor<64x64xf32, #linear>, i1) -> tensor<64x64xf32, #linear>
      %59 = "ttng.warp_group_dot_wait"(%58) {pendings = 1 : i32} : (tensor<64x64xf32, #linear>) -> tensor<64x64xf32, #linear>
      %60 = arith.subi %18, %arg7 : i32
      %61 = arith.cmpi ugt, %60, %c2_i32 : i32
      %62 = "tt.splat"(%61) : (i1) -> tensor<64x64xi1, #linear1>
      %63 = "ttg.memdesc_index"(%21, %arg13) : (!mutable_memdesc, i32) -> !mutable_memdesc1
      %64 = "ttg.async_copy_global_to_local"(%arg9, %63, %62) {operandSegmentSizes = array<i32: 1, 1, 1>, proton.ahead = 2 : i32} : (tensor<64x64x!tt.ptr<f16>, #linear1>, !mutable_memdesc1, tensor<64x64xi1, #linear1>) -> !ttg.async_token
      %65 = "ttg.memdesc_index"(%22, %arg13) : (!mutable_memdesc, i32) -> !mutable_memdesc1
      %66 = "ttg.async_copy_global_to_local"(%arg10, %65, %62) {operandSegmentSizes = array<i32: 1, 1, 1>, proton.ahead = 2 : i32} : (tensor<64x64x!tt.ptr<f16>, #linear1>, !mutable_memdesc1, tensor<64x64xi1, #linear1>) -> !ttg.async_token
      %67 = "ttg.async_commit_group"(%64, %66) {operandSegmentSizes = array<i32: 2, 0>, proton.ahead = 2 : i32} : (!ttg.async_token, !ttg.async_token) -> !ttg.async_token
      %68 = "tt.addptr"(%arg9, %cst_0) : (tensor<64x64x!tt.ptr<f16>, #linear1>, tensor<64x64xi32, #linear1>) -> tensor<64x64x!tt.ptr<f16>, #linear1>
      %69 = "tt.addptr"(%arg10, %20) : (tensor<64x64x!tt.ptr<f16>, #linear1>, tensor<64x64xi32, #linear1>) -> tensor<64x64x!tt.ptr<f16>, #linear1>
      %70 = arith.addi %arg13, %c1_i32 : i32
      %71 = arith.cmpi eq, %70, %c3_i32 : i32
      %72 = arith.select %71, %c0_i32, %70 : i32
      %73 = arith.addi %arg14, %c1_i32 : i32
      %74 = arith.cmpi eq, %73, %c3_i32 : i32
      %75 = arith.select %74, %c0_i32, %73 : i32
      scf.yield %59, %68, %69, %arg12, %67, %72, %75 : tensor<64x64xf32, #linear>, tensor<64x64x!tt.ptr<f16>, #linear1>, tensor<64x64x!tt.ptr<f16>, #linear1>, !ttg.async_token, !ttg.async_token, i32, i32
    }
    "ttg.async_wait"(%43#4) {pendings = 0 : i32} : (!ttg.async_token) -> ()
    %44 = "tt.splat"(%arg6) : (i32) -> tensor<64x1xi32, #linear4>
    %45 = arith.muli %2, %44 : tensor<64x1xi32, #linear4>
    %46 = "tt.splat"(%arg2) : (!tt.ptr<f16>) -> tensor<64x1x!tt.ptr<f16>, #linear4>
    %47 = "tt.addptr"(%46, %45) : (tensor<64x1x!tt.ptr<f16>, #linear4>, tensor<64x1xi32, #linear4>) -> tensor<64x1x!tt.ptr<f16>, #linear4>
    %48 = "tt.broadcast"(%47) : (tensor<64x1x!tt.ptr<f16>, #linear4>) -> tensor<64x64x!tt.ptr<f16>, #linear1>
    %49 = "tt.addptr"(%48, %9) : (tensor<64x64x!tt.ptr<f16>, #linear1>, tensor<64x64xi32, #linear1>) -> tensor<64x64x!tt.ptr<f16>, #linear1>
    %50 = "ttng.warp_group_dot_wait"(%43#0) {pendings = 0 : i32} : (tensor<64x64xf32, #linear>) -> tensor<64x64xf32, #linear>
    %51 = arith.cmpi slt, %c0_i32, %18 : i32
    %52 = scf.if %51 -> (tensor<64x64xf32, #linear>) {
      scf.yield %50 : tensor<64x64xf32, #linear>
    } else {
      %55 = "ttng.zeros"() : () -> tensor<64x64xf32, #linear>
      scf.yield %55 : tensor<64x64xf32, #linear>
    }
    %53 = arith.truncf %52 : tensor<64x64xf32, #linear> to tensor<64x64xf16, #linear>
    %54 = "ttg.convert_layout"(%53) : (tensor<64x64xf16, #linear>) -> tensor<64x64xf16, #linear1>
    "tt.store"(%49, %54) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<64x64x!tt.ptr<f16>, #linear1>, tensor<64x64xf16, #linear1>) -> ()
    return
  }
}
