// RUN: proton-opt --pipeline='tritongpu-coalesce{target=cuda:90}' %s | filecheck %s

#one = #ttg.linear<[[32], [64]], [[1], [2], [4], [8], [16]], [], []>
#one64 = #ttg.linear<[[32]], [[1], [2], [4], [8], [16]], [], []>
#one256 = #ttg.linear<[[32], [64], [128]], [[1], [2], [4], [8], [16]], [], []>
#one512 = #ttg.linear<[[32], [64], [128], [256]], [[1], [2], [4], [8], [16]], [], []>
#rows = #ttg.linear<[[2, 0], [4, 0], [8, 0], [16, 0], [0, 32]], [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16]], [], []>
#tall = #ttg.linear<[[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [32, 0]], [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16]], [], []>
#one32 = #ttg.linear<[], [[1], [2], [4], [8], [16]], [], []>
#one16 = #ttg.linear<[], [[1], [2], [4], [8], [0]], [], []>
#square = #ttg.linear<[[1, 0], [2, 0], [4, 0], [8, 0]], [[16, 0], [0, 1], [0, 2], [0, 4], [0, 8]], [], []>

module attributes {"ttg.num-warps" = 1 : i32} {

// Four floats in a row in each thread: 16 bytes.

// CHECK-LABEL: func.func @contiguous(
// CHECK: %[[P:.*]] = "tt.addptr"
// CHECK: %[[Q:.*]] = "ttg.convert_layout"(%[[P]]) : {{.*}} -> tensor<128x!tt.ptr<f32>, #ttg.linear<{{..}}1], [2]], {{..}}4], [8], [16], [32], [64]], [], []>>
// CHECK: %[[Y:.*]] = "tt.load"(%[[Q]])
// CHECK-SAME: -> tensor<128xf32, #ttg.linear<{{..}}1], [2]], {{.*}}
// CHECK: %[[X:.*]] = "ttg.convert_layout"(%[[Y]]) : {{.*}} -> tensor<128xf32, #ttg.linear<{{..}}32], [64]], {{.*}}
// CHECK: math.exp %[[X]]
func.func @contiguous(%x: !tt.ptr<f32> {tt.divisibility = 16 : i32}) {
  %i = "tt.make_range"() {start = 0 : i32, end = 128 : i32} : () -> tensor<128xi32, #one>
  %s = "tt.splat"(%x) : (!tt.ptr<f32>) -> tensor<128x!tt.ptr<f32>, #one>
  %p = "tt.addptr"(%s, %i) : (tensor<128x!tt.ptr<f32>, #one>, tensor<128xi32, #one>) -> tensor<128x!tt.ptr<f32>, #one>
  %v = "tt.load"(%p) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<128x!tt.ptr<f32>, #one>) -> tensor<128xf32, #one>
  %e = math.exp %v : tensor<128xf32, #one>
  return
}

// A pointer that is a multiple of 8 bytes only: two floats.

// CHECK-LABEL: func.func @aligned_to_8(
// CHECK: "tt.load"({{.*}} -> tensor<256xf32, #ttg.linear<{{..}}1], [64], [128]], {{..}}2], [4], [8], [16], [32]], [], []>>
func.func @aligned_to_8(%x: !tt.ptr<f32> {tt.divisibility = 8 : i32}) {
  %i = "tt.make_range"() {start = 0 : i32, end = 256 : i32} : () -> tensor<256xi32, #one256>
  %s = "tt.splat"(%x) : (!tt.ptr<f32>) -> tensor<256x!tt.ptr<f32>, #one256>
  %p = "tt.addptr"(%s, %i) : (tensor<256x!tt.ptr<f32>, #one256>, tensor<256xi32, #one256>) -> tensor<256x!tt.ptr<f32>, #one256>
  %v = "tt.load"(%p) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<256x!tt.ptr<f32>, #one256>) -> tensor<256xf32, #one256>
  return
}

// 16 bytes are sixteen elements.

// CHECK-LABEL: func.func @bytes(
// CHECK: "tt.store"({{.*}} : (tensor<512x!tt.ptr<i8>, #ttg.linear<{{..}}1], [2], [4], [8]], {{..}}16], {{.*}}
func.func @bytes(%x: !tt.ptr<i8> {tt.divisibility = 16 : i32}, %v: tensor<512xi8, #one512>) {
  %i = "tt.make_range"() {start = 0 : i32, end = 512 : i32} : () -> tensor<512xi32, #one512>
  %s = "tt.splat"(%x) : (!tt.ptr<i8>) -> tensor<512x!tt.ptr<i8>, #one512>
  %p = "tt.addptr"(%s, %i) : (tensor<512x!tt.ptr<i8>, #one512>, tensor<512xi32, #one512>) -> tensor<512x!tt.ptr<i8>, #one512>
  "tt.store"(%p, %v) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<512x!tt.ptr<i8>, #one512>, tensor<512xi8, #one512>) -> ()
  return
}

// Columns that wrap around at any number, of rows as far apart: lanes follow the columns, and take
// an element each.

// CHECK-LABEL: func.func @wrapped_columns(
// CHECK: "tt.load"({{.*}} -> tensor<64x32xf32, #ttg.linear<{{..}}32, 0], {{.*}}, {{..}}1, 0], [2, 0], [4, 0], [8, 0], [16, 0]], [], []>>
func.func @wrapped_columns(%x: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %n: i32) {
  %i = "tt.make_range"() {start = 0 : i32, end = 64 : i32} : () -> tensor<64xi32>
  %j = "tt.make_range"() {start = 0 : i32, end = 32 : i32} : () -> tensor<32xi32>
  %s = "tt.splat"(%n) : (i32) -> tensor<64xi32>
  %t = "tt.splat"(%n) : (i32) -> tensor<32xi32>
  %w = arith.remsi %i, %s : tensor<64xi32>
  %k = arith.muli %j, %t : tensor<32xi32>
  %ie = "tt.expand_dims"(%w) {axis = 1 : i32} : (tensor<64xi32>) -> tensor<64x1xi32>
  %je = "tt.expand_dims"(%k) {axis = 0 : i32} : (tensor<32xi32>) -> tensor<1x32xi32>
  %ib = "tt.broadcast"(%ie) : (tensor<64x1xi32>) -> tensor<64x32xi32>
  %jb = "tt.broadcast"(%je) : (tensor<1x32xi32>) -> tensor<64x32xi32>
  %o = arith.addi %ib, %jb : tensor<64x32xi32>
  %l = "ttg.convert_layout"(%o) : (tensor<64x32xi32>) -> tensor<64x32xi32, #tall>
  %b = "tt.splat"(%x) : (!tt.ptr<f32>) -> tensor<64x32x!tt.ptr<f32>, #tall>
  %p = "tt.addptr"(%b, %l) : (tensor<64x32x!tt.ptr<f32>, #tall>, tensor<64x32xi32, #tall>) -> tensor<64x32x!tt.ptr<f32>, #tall>
  %v = "tt.load"(%p) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<64x32x!tt.ptr<f32>, #tall>) -> tensor<64x32xf32, #tall>
  return
}

// Contiguous along dim0: lanes follow it.

// CHECK-LABEL: func.func @columns(
// CHECK: "tt.load"({{.*}} -> tensor<32x64xf32, #ttg.linear<{{..}}1, 0], [2, 0], {{.*}}], {{..}}4, 0], [8, 0], [16, 0], [0, 1], [0, 2]], [], []>>
func.func @columns(%x: !tt.ptr<f32> {tt.divisibility = 16 : i32}) {
  %i = "tt.make_range"() {start = 0 : i32, end = 32 : i32} : () -> tensor<32xi32>
  %j = "tt.make_range"() {start = 0 : i32, end = 64 : i32} : () -> tensor<64xi32>
  %k = arith.constant dense<32> : tensor<64xi32>
  %jk = arith.muli %j, %k : tensor<64xi32>
  %i1 = "tt.expand_dims"(%i) {axis = 1 : i32} : (tensor<32xi32>) -> tensor<32x1xi32>
  %j1 = "tt.expand_dims"(%jk) {axis = 0 : i32} : (tensor<64xi32>) -> tensor<1x64xi32>
  %i2 = "tt.broadcast"(%i1) : (tensor<32x1xi32>) -> tensor<32x64xi32, #rows>
  %j2 = "tt.broadcast"(%j1) : (tensor<1x64xi32>) -> tensor<32x64xi32, #rows>
  %o = arith.addi %i2, %j2 : tensor<32x64xi32, #rows>
  %s = "tt.splat"(%x) : (!tt.ptr<f32>) -> tensor<32x64x!tt.ptr<f32>, #rows>
  %p = "tt.addptr"(%s, %o) : (tensor<32x64x!tt.ptr<f32>, #rows>, tensor<32x64xi32, #rows>) -> tensor<32x64x!tt.ptr<f32>, #rows>
  %v = "tt.load"(%p) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<32x64x!tt.ptr<f32>, #rows>) -> tensor<32x64xf32, #rows>
  return
}

// A load that could be one element wide joins a wider one of its shape: what is combined here does
// not move. A store does not: 4 bytes of each 16 would be written at once. The mask goes along.

// CHECK-LABEL: func.func @together(
// CHECK: "tt.load"({{.*}} -> tensor<128xf32, #ttg.linear<{{..}}1], [2]], {{.*}}
// CHECK: "tt.load"({{.*}} -> tensor<128xf32, #ttg.linear<{{..}}1], [2]], {{.*}}
// CHECK: "tt.store"
// CHECK-SAME: (tensor<128x!tt.ptr<f32>, #ttg.linear<{{..}}32], [64]], {{.*}}
// CHECK: %[[M:.*]] = "ttg.convert_layout"(%{{.*}}) : (tensor<128xi1, {{.*}} -> tensor<128xi1, #ttg.linear<{{..}}1], [2]], {{.*}}
// CHECK: "tt.store"(%{{.*}}, %{{.*}}, %[[M]])
// CHECK-SAME: (tensor<128x!tt.ptr<f32>, #ttg.linear<{{..}}1], [2]], {{.*}}
func.func @together(%x: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %y: !tt.ptr<f32>, %m: tensor<128xi1, #one>, %g: tensor<128x!tt.ptr<f32>, #one>) {
  %i = "tt.make_range"() {start = 0 : i32, end = 128 : i32} : () -> tensor<128xi32, #one>
  %s = "tt.splat"(%x) : (!tt.ptr<f32>) -> tensor<128x!tt.ptr<f32>, #one>
  %p = "tt.addptr"(%s, %i) : (tensor<128x!tt.ptr<f32>, #one>, tensor<128xi32, #one>) -> tensor<128x!tt.ptr<f32>, #one>
  %v = "tt.load"(%p) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<128x!tt.ptr<f32>, #one>) -> tensor<128xf32, #one>
  %t = "tt.splat"(%y) : (!tt.ptr<f32>) -> tensor<128x!tt.ptr<f32>, #one>
  %q = "tt.addptr"(%t, %i) : (tensor<128x!tt.ptr<f32>, #one>, tensor<128xi32, #one>) -> tensor<128x!tt.ptr<f32>, #one>
  %w = "tt.load"(%q) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<128x!tt.ptr<f32>, #one>) -> tensor<128xf32, #one>
  %u = arith.addf %v, %w : tensor<128xf32, #one>
  "tt.store"(%q, %u, %m) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 1>} : (tensor<128x!tt.ptr<f32>, #one>, tensor<128xf32, #one>, tensor<128xi1, #one>) -> ()
  // What is scattered has gaps in any layout.
  "tt.store"(%g, %u, %m) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 1>} : (tensor<128x!tt.ptr<f32>, #one>, tensor<128xf32, #one>, tensor<128xi1, #one>) -> ()
  return
}

// Nothing to gain: addresses that are not consecutive, an atomic, a scalar, and a tensor that
// already lies as it should.

// CHECK-LABEL: func.func @untouched(
// CHECK-NOT: ttg.convert_layout
// CHECK: return
func.func @untouched(%p: tensor<64x!tt.ptr<f32>, #one64>, %x: !tt.ptr<f32>, %v: tensor<64xf32, #one64>) {
  %a = "tt.load"(%p) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<64x!tt.ptr<f32>, #one64>) -> tensor<64xf32, #one64>
  %b = "tt.atomic_rmw"(%p, %v) {rmw_op = "fadd", sem = "relaxed", scope = "gpu", operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<64x!tt.ptr<f32>, #one64>, tensor<64xf32, #one64>) -> tensor<64xf32, #one64>
  %c = "tt.load"(%x) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (!tt.ptr<f32>) -> f32
  return
}

// Two elements have each address, and these lie side by side: a thread has 16 of the elements, one
// access. A load of a loop of which nothing is known goes along the same dimension, to be computed
// with.

// CHECK-LABEL: func.func @in_steps(
// CHECK: "tt.load"({{.*}} -> tensor<32x16xi8, #ttg.linear<{{..}}1, 0], [2, 0], [4, 0], [8, 0]], {{..}}16, 0], [0, 1], [0, 2], [0, 4], [0, 8]], {{.*}}
// CHECK: "tt.load"({{.*}} -> tensor<32x16xi8, #ttg.linear<{{..}}1, 0], [2, 0], [4, 0], [8, 0]], {{..}}16, 0], [0, 1], [0, 2], [0, 4], [0, 8]], {{.*}}
func.func @in_steps(%x: !tt.ptr<i8> {tt.divisibility = 16 : i32}, %n: i32 {tt.divisibility = 16 : i32}, %q: tensor<32x16x!tt.ptr<i8>, #square>) {
  %two = arith.constant dense<2> : tensor<32x1xi32, #square>
  %k = "tt.make_range"() {start = 0 : i32, end = 32 : i32} : () -> tensor<32xi32, #one32>
  %j = "tt.make_range"() {start = 0 : i32, end = 16 : i32} : () -> tensor<16xi32, #one16>
  %down = "tt.expand_dims"(%k) {axis = 1 : i32} : (tensor<32xi32, #one32>) -> tensor<32x1xi32, #square>
  %across = "tt.expand_dims"(%j) {axis = 0 : i32} : (tensor<16xi32, #one16>) -> tensor<1x16xi32, #square>
  %byte = arith.divsi %down, %two : tensor<32x1xi32, #square>
  %s = "tt.splat"(%n) : (i32) -> tensor<1x16xi32, #square>
  %row = arith.muli %across, %s : tensor<1x16xi32, #square>
  %a = "tt.broadcast"(%byte) : (tensor<32x1xi32, #square>) -> tensor<32x16xi32, #square>
  %b = "tt.broadcast"(%row) : (tensor<1x16xi32, #square>) -> tensor<32x16xi32, #square>
  %at = arith.addi %a, %b : tensor<32x16xi32, #square>
  %base = "tt.splat"(%x) : (!tt.ptr<i8>) -> tensor<32x16x!tt.ptr<i8>, #square>
  %p = "tt.addptr"(%base, %at) : (tensor<32x16x!tt.ptr<i8>, #square>, tensor<32x16xi32, #square>) -> tensor<32x16x!tt.ptr<i8>, #square>
  %v = "tt.load"(%p) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<32x16x!tt.ptr<i8>, #square>) -> tensor<32x16xi8, #square>
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  scf.for %t = %zero to %n step %one : i32 {
    %w = "tt.load"(%q) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<32x16x!tt.ptr<i8>, #square>) -> tensor<32x16xi8, #square>
    %u = arith.addi %v, %w : tensor<32x16xi8, #square>
  }
  return
}
}
