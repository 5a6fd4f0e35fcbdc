// RUN: proton-opt --pipeline='convert-triton-to-tritongpu{num-warps=2}' %s | filecheck %s

// CHECK: module attributes {"ttg.num-warps" = 2 : i32}

// Every tensor gets one element a thread, lanes before warps, and registers for what is left over.

// CHECK-LABEL: func.func @elementwise(
// CHECK-SAME: %{{.*}}: tensor<128xf32, #ttg.linear<{{..}}64]], {{..}}1], [2], [4], [8], [16]], {{..}}32]], []>>)
// CHECK-SAME: -> tensor<128xf32, #ttg.linear<{{..}}64]], {{..}}1], [2], [4], [8], [16]], {{..}}32]], []>>
// CHECK-NOT: ttg.convert_layout
// CHECK: arith.constant dense<1.000000e+00> : tensor<128xf32, #ttg.linear<{{..}}64]], {{.*}}
// CHECK-NOT: ttg.convert_layout
// CHECK: arith.addf {{.*}} : tensor<128xf32, #ttg.linear<{{..}}64]], {{.*}}
// CHECK-NOT: ttg.convert_layout
// CHECK: return
func.func @elementwise(%x: tensor<128xf32>) -> tensor<128xf32> {
  %one = arith.constant dense<1.0> : tensor<128xf32>
  %y = arith.addf %x, %one : tensor<128xf32>
  return %y : tensor<128xf32>
}

// A block that is smaller than the program: lanes and warps that are left over hold copies.

// CHECK-LABEL: func.func @small(
// CHECK-SAME: tensor<8xf32, #ttg.linear<[], {{..}}1], [2], [4], [0], [0]], {{..}}0]], []>>
func.func @small(%x: tensor<8xf32>) {
  return
}

// The operand of expand_dims has to lie where the result's elements lie.

// CHECK-LABEL: func.func @expand_dims(
// CHECK-SAME: %[[X:.*]]: tensor<64xf32
// CHECK-NEXT: %[[C:.*]] = "ttg.convert_layout"(%[[X]]) : {{.*}} -> tensor<64xf32, #ttg.linear<[], {{..}}1], [2], [4], [8], [16]], {{..}}32]], []>>
// CHECK-NEXT: "tt.expand_dims"(%[[C]]) {{.*}} -> tensor<1x64xf32, #ttg.linear<[], {{..}}0, 1], [0, 2], [0, 4], [0, 8], [0, 16]], {{..}}0, 32]], []>>
func.func @expand_dims(%x: tensor<64xf32, #ttg.linear<[], [[2], [1], [4], [8], [16]], [[32]], []>>) {
  %y = "tt.expand_dims"(%x) {axis = 0 : i32} : (tensor<64xf32, #ttg.linear<[], [[2], [1], [4], [8], [16]], [[32]], []>>) -> tensor<1x64xf32>
  return
}

// CHECK-LABEL: func.func @broadcast(
// CHECK: %[[C:.*]] = "ttg.convert_layout"(%{{.*}}) : {{.*}} -> tensor<4x1xf32, #ttg.linear<{{..}}2, 0]], {{..}}0, 0], [0, 0], [0, 0], [0, 0], [0, 0]], {{..}}1, 0]], []>>
// CHECK-NEXT: "tt.broadcast"(%[[C]])
func.func @broadcast(%x: tensor<4x1xf32>) {
  %y = "tt.broadcast"(%x) : (tensor<4x1xf32>) -> tensor<4x32xf32>
  return
}

// A reduction leaves its result where its operand lay; users see the default layout.

// CHECK-LABEL: func.func @reduce(
// CHECK: %[[R:.*]] = "tt.reduce"
// CHECK: -> tensor<4xf32, #ttg.linear<{{..}}2]], {{..}}0], [0], [0], [0], [0]], {{..}}1]], []>>
// CHECK-NEXT: %[[C:.*]] = "ttg.convert_layout"(%[[R]]) : {{.*}} -> tensor<4xf32, #ttg.linear<[], {{..}}1], [2], [0], [0], [0]], {{..}}0]], []>>
// CHECK-NEXT: math.exp %[[C]]
func.func @reduce(%x: tensor<4x32xf32>) {
  %r = "tt.reduce"(%x) ({
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    "tt.reduce_return"(%s) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (f32) -> ()
  }) {axis = 1 : i32, operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (tensor<4x32xf32>) -> tensor<4xf32>
  %e = math.exp %r : tensor<4xf32>
  return
}

// A scan wants runs in threads, then lanes, then warps.

// CHECK-LABEL: func.func @scan(
// CHECK: %[[C:.*]] = "ttg.convert_layout"(%{{.*}}) : {{.*}} -> tensor<128xf32, #ttg.linear<{{..}}1]], {{..}}2], [4], [8], [16], [32]], {{..}}64]], []>>
// CHECK-NEXT: "tt.scan"(%[[C]])
// CHECK: "ttg.convert_layout"
func.func @scan(%x: tensor<128xf32>) {
  %r = "tt.scan"(%x) ({
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    "tt.scan_return"(%s) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (f32) -> ()
  }) {axis = 0 : i32, reverse = false, operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (tensor<128xf32>) -> tensor<128xf32>
  %e = math.exp %r : tensor<128xf32>
  return
}

// CHECK-LABEL: func.func @join_and_split(
// CHECK: %[[J:.*]] = "tt.join"
// CHECK-SAME: -> tensor<64x2xf32, #ttg.linear<{{..}}0, 1]], {{..}}1, 0], [2, 0], [4, 0], [8, 0], [16, 0]], {{..}}32, 0]], []>>
// CHECK-NEXT: %[[D:.*]] = "ttg.convert_layout"(%[[J]])
// CHECK-NEXT: %[[S:.*]] = "ttg.convert_layout"(%[[D]]) : {{.*}} -> tensor<64x2xf32, #ttg.linear<{{..}}0, 1]], {{..}}1, 0], {{.*}}
// CHECK-NEXT: "tt.split"(%[[S]])
func.func @join_and_split(%x: tensor<64xf32>) {
  %j = "tt.join"(%x, %x) : (tensor<64xf32>, tensor<64xf32>) -> tensor<64x2xf32>
  %a, %b = "tt.split"(%j) : (tensor<64x2xf32>) -> (tensor<64xf32>, tensor<64xf32>)
  return
}

// What becomes of a product is decided later.

// CHECK-LABEL: func.func @dot(
// CHECK: "tt.dot"(%{{.*}}) {{.*}} : (tensor<4x2xf32, #ttg.linear<{{.*}}
// CHECK: return
func.func @dot(%a: tensor<4x2xf32>, %b: tensor<2x4xf32>, %acc: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %d = "tt.dot"(%a, %b, %acc) {inputPrecision = "ieee", maxNumImpreciseAcc = 0 : i32} : (tensor<4x2xf32>, tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %d : tensor<4x4xf32>
}

// Carried values of a loop are block arguments, and get layouts as well.

// CHECK-LABEL: func.func @loop(
// CHECK: scf.for {{.*}} -> (tensor<64xf32, #ttg.linear<[], {{.*}}>>)
// CHECK-NOT: ttg.convert_layout
// CHECK: return
func.func @loop(%x: tensor<64xf32>, %n: i32) {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %r = scf.for %i = %zero to %n step %one iter_args(%a = %x) -> (tensor<64xf32>) : i32 {
    %b = arith.addf %a, %x : tensor<64xf32>
    scf.yield %b : tensor<64xf32>
  }
  return
}

// What has a layout keeps it, and scalars have none.

// CHECK-LABEL: func.func @untouched(
// CHECK-SAME: %{{.*}}: tensor<64xf32, #ttg.linear<[], {{..}}2], [1], [4], [8], [16]], {{..}}32]], []>>, %{{.*}}: f32)
// CHECK-NEXT: arith.addf %{{.*}} : f32
// CHECK-NEXT: math.exp %{{.*}} : tensor<64xf32, #ttg.linear<[], {{..}}2], [1], {{.*}}
// CHECK-NEXT: return
func.func @untouched(%x: tensor<64xf32, #ttg.linear<[], [[2], [1], [4], [8], [16]], [[32]], []>>, %s: f32) {
  %a = arith.addf %s, %s : f32
  %b = math.exp %x : tensor<64xf32, #ttg.linear<[], [[2], [1], [4], [8], [16]], [[32]], []>>
  return
}
