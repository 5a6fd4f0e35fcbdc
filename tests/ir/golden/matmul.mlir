module {
  func.func @matmul(%arg0: !tt.ptr<f16> {tt.element = "fp16", tt.name = "a"}, %arg1: !tt.ptr<f16> {tt.element = "fp16", tt.name = "b"}, %arg2: !tt.ptr<f16> {tt.element = "fp16", tt.name = "c"}, %arg3: i32 {tt.name = "K"}, %arg4: i32 {tt.name = "stride_a"}, %arg5: i32 {tt.name = "stride_b"}, %arg6: i32 {tt.name = "stride_c"}) attributes {tt.kernel} {
    %0 = "tt.make_range"() {end = 32 : i32, start = 0 : i32} : () -> tensor<32xi32>
    %1 = "tt.make_range"() {end = 32 : i32, start = 0 : i32} : () -> tensor<32xi32>
    %2 = "tt.make_range"() {end = 32 : i32, start = 0 : i32} : () -> tensor<32xi32>
    %3 = "tt.expand_dims"(%0) {axis = 1 : i32} : (tensor<32xi32>) -> tensor<32x1xi32>
    %4 = "tt.splat"(%arg4) : (i32) -> tensor<32x1xi32>
    %5 = arith.muli %3, %4 : tensor<32x1xi32>
    %6 = "tt.splat"(%arg0) : (!tt.ptr<f16>) -> tensor<32x1x!tt.ptr<f16>>
    %7 = "tt.addptr"(%6, %5) : (tensor<32x1x!tt.ptr<f16>>, tensor<32x1xi32>) -> tensor<32x1x!tt.ptr<f16>>
    %8 = "tt.expand_dims"(%2) {axis = 0 : i32} : (tensor<32xi32>) -> tensor<1x32xi32>
    %9 = "tt.broadcast"(%7) : (tensor<32x1x!tt.ptr<f16>>) -> tensor<32x32x!tt.ptr<f16>>
    %10 = "tt.broadcast"(%8) : (tensor<1x32xi32>) -> tensor<32x32xi32>
    %11 = "tt.addptr"(%9, %10) : (tensor<32x32x!tt.ptr<f16>>, tensor<32x32xi32>) -> tensor<32x32x!tt.ptr<f16>>
    %12 = "tt.expand_dims"(%2) {axis = 1 : i32} : (tensor<32xi32>) -> tensor<32x1xi32>
    %13 = "tt.splat"(%arg5) : (i32) -> tensor<32x1xi32>
    %14 = arith.muli %12, %13 : tensor<32x1xi32>
    %15 = "tt.splat"(%arg1) : (!tt.ptr<f16>) -> tensor<32x1x!tt.ptr<f16>>
    %16 = "tt.addptr"(%15, %14) : (tensor<32x1x!tt.ptr<f16>>, tensor<32x1xi32>) -> tensor<32x1x!tt.ptr<f16>>
    %17 = "tt.expand_dims"(%1) {axis = 0 : i32} : (tensor<32xi32>) -> tensor<1x32xi32>
    %18 = "tt.broadcast"(%16) : (tensor<32x1x!tt.ptr<f16>>) -> tensor<32x32x!tt.ptr<f16>>
    %19 = "tt.broadcast"(%17) : (tensor<1x32xi32>) -> tensor<32x32xi32>
    %20 = "tt.addptr"(%18, %19) : (tensor<32x32x!tt.ptr<f16>>, tensor<32x32xi32>) -> tensor<32x32x!tt.ptr<f16>>
    %cst = arith.constant dense<0.000000e+00> : tensor<32x32xf32>
    %c31_i32 = arith.constant 31 : i32
    %21 = arith.addi %arg3, %c31_i32 : i32
    %c32_i32 = arith.constant 32 : i32
    %22 = arith.divsi %21, %c32_i32 : i32
    %c0_i32 = arith.constant 0 : i32
    %c1_i32 = arith.constant 1 : i32
    %23:3 = scf.for %arg7 = %c0_i32 to %22 step %c1_i32 iter_args(%arg8 = %cst, %arg9 = %11, %arg10 = %20) -> (tensor<32x32xf32>, tensor<32x32x!tt.ptr<f16>>, tensor<32x32x!tt.ptr<f16>>)  : i32 {
      %34 = "tt.load"(%arg9) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<32x32x!tt.ptr<f16>>) -> tensor<32x32xf16>
      %35 = "tt.load"(%arg10) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<32x32x!tt.ptr<f16>>) -> tensor<32x32xf16>
      %36 = "tt.dot"(%34, %35, %arg8) {inputPrecision = "tf32", maxNumImpreciseAcc = 0 : i32} : (tensor<32x32xf16>, tensor<32x32xf16>, tensor<32x32xf32>) -> tensor<32x32xf32>
      %c32_i32_0 = arith.constant 32 : i32
      %37 = "tt.splat"(%c32_i32_0) : (i32) -> tensor<32x32xi32>
      %38 = "tt.addptr"(%arg9, %37) : (tensor<32x32x!tt.ptr<f16>>, tensor<32x32xi32>) -> tensor<32x32x!tt.ptr<f16>>
      %c32_i32_1 = arith.constant 32 : i32
      %39 = arith.muli %c32_i32_1, %arg5 : i32
      %40 = "tt.splat"(%39) : (i32) -> tensor<32x32xi32>
      %41 = "tt.addptr"(%arg10, %40) : (tensor<32x32x!tt.ptr<f16>>, tensor<32x32xi32>) -> tensor<32x32x!tt.ptr<f16>>
      scf.yield %36, %38, %41 : tensor<32x32xf32>, tensor<32x32x!tt.ptr<f16>>, tensor<32x32x!tt.ptr<f16>>
    }
    %24 = "tt.expand_dims"(%0) {axis = 1 : i32} : (tensor<32xi32>) -> tensor<32x1xi32>
    %25 = "tt.splat"(%arg6) : (i32) -> tensor<32x1xi32>
    %26 = arith.muli %24, %25 : tensor<32x1xi32>
    %27 = "tt.splat"(%arg2) : (!tt.ptr<f16>) -> tensor<32x1x!tt.ptr<f16>>
    %28 = "tt.addptr"(%27, %26) : (tensor<32x1x!tt.ptr<f16>>, tensor<32x1xi32>) -> tensor<32x1x!tt.ptr<f16>>
    %29 = "tt.expand_dims"(%1) {axis = 0 : i32} : (tensor<32xi32>) -> tensor<1x32xi32>
    %30 = "tt.broadcast"(%28) : (tensor<32x1x!tt.ptr<f16>>) -> tensor<32x32x!tt.ptr<f16>>
    %31 = "tt.broadcast"(%29) : (tensor<1x32xi32>) -> tensor<32x32xi32>
    %32 = "tt.addptr"(%30, %31) : (tensor<32x32x!tt.ptr<f16>>, tensor<32x32xi32>) -> tensor<32x32x!tt.ptr<f16>>
    %33 = arith.truncf %23#0 : tensor<32x32xf32> to tensor<32x32xf16>
    "tt.store"(%32, %33) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<32x32x!tt.ptr<f16>>, tensor<32x32xf16>) -> ()
    return
  }
}
