module {
  func.func @collectives(%arg0: !tt.ptr<f32> {tt.element = "fp32", tt.name = "x"}, %arg1: !tt.ptr<f8E4M3FN> {tt.element = "fp8e4nv", tt.name = "q"}, %arg2: !tt.ptr<f32> {tt.element = "fp32", tt.name = "out"}, %arg3: i32 {tt.name = "n"}) attributes {tt.kernel} {
    %0 = "tt.make_range"() {end = 64 : i32, start = 0 : i32} : () -> tensor<64xi32>
    %1 = "tt.splat"(%arg3) : (i32) -> tensor<64xi32>
    %2 = arith.cmpi slt, %0, %1 : tensor<64xi32>
    %3 = "tt.splat"(%arg0) : (!tt.ptr<f32>) -> tensor<64x!tt.ptr<f32>>
    %4 = "tt.addptr"(%3, %0) : (tensor<64x!tt.ptr<f32>>, tensor<64xi32>) -> tensor<64x!tt.ptr<f32>>
    %cst = arith.constant 0.000000e+00 : f32
    %5 = "tt.splat"(%cst) : (f32) -> tensor<64xf32>
    %6 = "tt.load"(%4, %2, %5) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 1>, volatile = false} : (tensor<64x!tt.ptr<f32>>, tensor<64xi1>, tensor<64xf32>) -> tensor<64xf32>
    %7 = "tt.scan"(%6) ({
    ^bb0(%arg4: f32, %arg5: f32):
      %23 = arith.addf %arg4, %arg5 : f32
      "tt.scan_return"(%23) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (f32) -> ()
    }) {axis = 0 : i32, operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>, reverse = true} : (tensor<64xf32>) -> tensor<64xf32>
    %8:2 = "tt.scan"(%6, %0) ({
    ^bb0(%arg4: f32, %arg5: i32, %arg6: f32, %arg7: i32):
      %23 = arith.cmpf ogt, %arg6, %arg4 : f32
      %24 = arith.select %23, %arg6, %arg4 : f32
      %25 = arith.cmpf ogt, %arg6, %arg4 : f32
      %26 = arith.select %25, %arg7, %arg5 : i32
      "tt.scan_return"(%24, %26) {operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0>} : (f32, i32) -> ()
    }) {axis = 0 : i32, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0>, reverse = false} : (tensor<64xf32>, tensor<64xi32>) -> (tensor<64xf32>, tensor<64xi32>)
    %9 = "tt.histogram"(%8#1, %2) {operandSegmentSizes = array<i32: 1, 1>} : (tensor<64xi32>, tensor<64xi1>) -> tensor<16xi32>
    %10 = "tt.gather"(%6, %8#1) {axis = 0 : i32} : (tensor<64xf32>, tensor<64xi32>) -> tensor<64xf32>
    %cst_0 = arith.constant 2.000000e+00 : f32
    %11 = "tt.splat"(%cst_0) : (f32) -> tensor<64xf32>
    %12 = "tt.extern_elementwise"(%7, %11) {libname = "libdevice", libpath = "", operandSegmentSizes = array<i32: 1, 1, 0, 0>, pure = true, symbol = "__nv_powf"} : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
    %13 = arith.addf %10, %12 : tensor<64xf32>
    "tt.print"(%9, %arg3) {hex = false, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0>, prefix = " counts: ", signed = array<i32: 1, 1>} : (tensor<16xi32>, i32) -> ()
    "tt.debug_barrier"() : () -> ()
    %14 = "tt.splat"(%arg1) : (!tt.ptr<f8E4M3FN>) -> tensor<64x!tt.ptr<f8E4M3FN>>
    %15 = "tt.addptr"(%14, %0) : (tensor<64x!tt.ptr<f8E4M3FN>>, tensor<64xi32>) -> tensor<64x!tt.ptr<f8E4M3FN>>
    %16 = "tt.fp_to_fp"(%13) {rounding = "rtne"} : (tensor<64xf32>) -> tensor<64xf8E4M3FN>
    "tt.store"(%15, %16, %2) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 1>} : (tensor<64x!tt.ptr<f8E4M3FN>>, tensor<64xf8E4M3FN>, tensor<64xi1>) -> ()
    %17 = "tt.splat"(%arg2) : (!tt.ptr<f32>) -> tensor<64x!tt.ptr<f32>>
    %18 = "tt.addptr"(%17, %0) : (tensor<64x!tt.ptr<f32>>, tensor<64xi32>) -> tensor<64x!tt.ptr<f32>>
    %19 = "tt.splat"(%arg1) : (!tt.ptr<f8E4M3FN>) -> tensor<64x!tt.ptr<f8E4M3FN>>
    %20 = "tt.addptr"(%19, %0) : (tensor<64x!tt.ptr<f8E4M3FN>>, tensor<64xi32>) -> tensor<64x!tt.ptr<f8E4M3FN>>
    %21 = "tt.load"(%20) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<64x!tt.ptr<f8E4M3FN>>) -> tensor<64xf8E4M3FN>
    %22 = arith.extf %21 : tensor<64xf8E4M3FN> to tensor<64xf32>
    "tt.store"(%18, %22, %2) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 1>} : (tensor<64x!tt.ptr<f32>>, tensor<64xf32>, tensor<64xi1>) -> ()
    return
  }
}
