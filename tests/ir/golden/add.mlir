module {
  func.func @add(%arg0: !tt.ptr<f32> {tt.element = "fp32", tt.name = "x"}, %arg1: !tt.ptr<f32> {tt.element = "fp32", tt.name = "y"}, %arg2: !tt.ptr<f32> {tt.element = "fp32", tt.name = "out"}, %arg3: i32 {tt.name = "n"}) attributes {tt.kernel} {
    %0 = "tt.get_program_id"() {axis = 0 : i32} : () -> i32
    %c1024_i32 = arith.constant 1024 : i32
    %1 = arith.muli %0, %c1024_i32 : i32
    %2 = "tt.make_range"() {end = 1024 : i32, start = 0 : i32} : () -> tensor<1024xi32>
    %3 = "tt.splat"(%1) : (i32) -> tensor<1024xi32>
    %4 = arith.addi %3, %2 : tensor<1024xi32>
    %5 = "tt.splat"(%arg3) : (i32) -> tensor<1024xi32>
    %6 = arith.cmpi slt, %4, %5 : tensor<1024xi32>
    %7 = arith.extsi %arg3 : i32 to i64
    "proton.record"(%7) {kinds = ["int"], names = ["n"], operandSegmentSizes = array<i32: 1, 0>, phase = "start", scope = "load"} : (i64) -> ()
    %8 = "tt.splat"(%arg0) : (!tt.ptr<f32>) -> tensor<1024x!tt.ptr<f32>>
    %9 = "tt.addptr"(%8, %4) : (tensor<1024x!tt.ptr<f32>>, tensor<1024xi32>) -> tensor<1024x!tt.ptr<f32>>
    %10 = "tt.load"(%9, %6) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>, volatile = false} : (tensor<1024x!tt.ptr<f32>>, tensor<1024xi1>) -> tensor<1024xf32>
    %11 = "tt.splat"(%arg1) : (!tt.ptr<f32>) -> tensor<1024x!tt.ptr<f32>>
    %12 = "tt.addptr"(%11, %4) : (tensor<1024x!tt.ptr<f32>>, tensor<1024xi32>) -> tensor<1024x!tt.ptr<f32>>
    %cst = arith.constant 1.000000e+00 : f32
    %13 = "tt.splat"(%cst) : (f32) -> tensor<1024xf32>
    %14 = "tt.load"(%12, %6, %13) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 1>, volatile = false} : (tensor<1024x!tt.ptr<f32>>, tensor<1024xi1>, tensor<1024xf32>) -> tensor<1024xf32>
    "proton.record"() {kinds = [], names = [], operandSegmentSizes = array<i32: 0, 0>, phase = "end", scope = "load"} : () -> ()
    "proton.record"() {kinds = [], names = [], operandSegmentSizes = array<i32: 0, 0>, phase = "start", scope = "store"} : () -> ()
    %15 = "tt.splat"(%arg2) : (!tt.ptr<f32>) -> tensor<1024x!tt.ptr<f32>>
    %16 = "tt.addptr"(%15, %4) : (tensor<1024x!tt.ptr<f32>>, tensor<1024xi32>) -> tensor<1024x!tt.ptr<f32>>
    %17 = arith.addf %10, %14 : tensor<1024xf32>
    "tt.store"(%16, %17, %6) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 1>} : (tensor<1024x!tt.ptr<f32>>, tensor<1024xf32>, tensor<1024xi1>) -> ()
    "proton.record"() {kinds = [], names = [], operandSegmentSizes = array<i32: 0, 0>, phase = "end", scope = "store"} : () -> ()
    return
  }
}
