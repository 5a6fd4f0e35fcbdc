module {
  func.func @softmax_rows(%arg0: !tt.ptr<f32> {tt.element = "fp32", tt.name = "x"}, %arg1: !tt.ptr<f32> {tt.element = "fp32", tt.name = "out"}, %arg2: i32 {tt.name = "stride"}, %arg3: i32 {tt.name = "n_rows"}, %arg4: i32 {tt.name = "n_columns"}) attributes {tt.kernel} {
    %0 = "tt.make_range"() {end = 256 : i32, start = 0 : i32} : () -> tensor<256xi32>
    %1 = "tt.splat"(%arg4) : (i32) -> tensor<256xi32>
    %2 = arith.cmpi slt, %0, %1 : tensor<256xi32>
    %3 = "tt.get_program_id"() {axis = 0 : i32} : () -> i32
    %4 = "tt.get_num_programs"() {axis = 0 : i32} : () -> i32
    scf.for %arg5 = %3 to %arg3 step %4  : i32 {
      %5 = arith.muli %arg5, %arg2 : i32
      %6 = "tt.addptr"(%arg0, %5) : (!tt.ptr<f32>, i32) -> !tt.ptr<f32>
      %7 = "tt.splat"(%6) : (!tt.ptr<f32>) -> tensor<256x!tt.ptr<f32>>
      %8 = "tt.addptr"(%7, %0) : (tensor<256x!tt.ptr<f32>>, tensor<256xi32>) -> tensor<256x!tt.ptr<f32>>
      %cst = arith.constant 0xFF800000 : f32
      %9 = "tt.splat"(%cst) : (f32) -> tensor<256xf32>
      %10 = "tt.load"(%8, %2, %9) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 1>, volatile = false} : (tensor<256x!tt.ptr<f32>>, tensor<256xi1>, tensor<256xf32>) -> tensor<256xf32>
      %11 = "tt.reduce"(%10) ({
      ^bb0(%arg6: f32, %arg7: f32):
        %22 = arith.maxnumf %arg6, %arg7 : f32
        "tt.reduce_return"(%22) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (f32) -> ()
      }) {axis = 0 : i32, operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (tensor<256xf32>) -> f32
      %12 = "tt.splat"(%11) : (f32) -> tensor<256xf32>
      %13 = arith.subf %10, %12 : tensor<256xf32>
      %14 = math.exp %13 : tensor<256xf32>
      %15 = arith.muli %arg5, %arg2 : i32
      %16 = "tt.addptr"(%arg1, %15) : (!tt.ptr<f32>, i32) -> !tt.ptr<f32>
      %17 = "tt.splat"(%16) : (!tt.ptr<f32>) -> tensor<256x!tt.ptr<f32>>
      %18 = "tt.addptr"(%17, %0) : (tensor<256x!tt.ptr<f32>>, tensor<256xi32>) -> tensor<256x!tt.ptr<f32>>
      %19 = "tt.reduce"(%14) ({
      ^bb0(%arg6: f32, %arg7: f32):
        %22 = arith.addf %arg6, %arg7 : f32
        "tt.reduce_return"(%22) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (f32) -> ()
      }) {axis = 0 : i32, operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (tensor<256xf32>) -> f32
      %20 = "tt.splat"(%19) : (f32) -> tensor<256xf32>
      %21 = arith.divf %14, %20 : tensor<256xf32>
      "tt.store"(%18, %21, %2) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 1>} : (tensor<256x!tt.ptr<f32>>, tensor<256xf32>, tensor<256xi1>) -> ()
    } {tt.num_stages = 2 : i32}
    return
  }
}
