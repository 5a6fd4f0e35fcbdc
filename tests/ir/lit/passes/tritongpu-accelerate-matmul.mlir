// RUN: proton-opt --pipeline='convert-triton-to-tritongpu{num-warps=4},tritongpu-accelerate-matmul{target=cuda:90}' %s | filecheck %s
// RUN: proton-opt --pipeline='convert-triton-to-tritongpu{num-warps=4},tritongpu-accelerate-matmul{target=cuda:80}' %s | filecheck %s --check-prefix=AMPERE

// Four warps and 64 rows: a warp group. What was not loaded is multiplied from registers on the left,
// and from swizzled memory on the right: 64 numbers of 16 bits are a row of 128 bytes, in which chunks
// of 8 move with the row.

// CHECK-LABEL: func.func @warp_group(
// CHECK: %[[B:.*]] = "ttg.local_alloc"(%arg1) : {{.*}} -> !ttg.memdesc<[64, 64], f16, #ttg.shared<{{..}}1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [32, 0], [8, 1], [16, 2], [32, 4], [0, 8], [0, 16], [0, 32]]>>
// CHECK: %[[A:.*]] = "ttg.convert_layout"(%arg0) : {{.*}} -> tensor<64x64xf16, #ttg.linear<{{..}}0, 1], [8, 0], [0, 8], [0, 16], [0, 32]], {{..}}0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], {{..}}16, 0], [32, 0]], []>>
// CHECK: %[[D:.*]] = "ttng.warp_group_dot"(%[[A]], %[[B]], %{{.*}}) {imprecise = 0 : i32, operandSegmentSizes = array<i32: 1, 1, 1, 0>}
// CHECK: "ttng.warp_group_dot_wait"(%[[D]]) {pendings = 0 : i32}
// CHECK-NOT: tt.dot

// An older chip: each warp by itself, both sides in registers.

// AMPERE-LABEL: func.func @warp_group(
// AMPERE: "ttng.mma_sync"(%{{.*}}, %{{.*}}, %{{.*}}) : (tensor<64x64xf16, #ttg.linear<{{..}}0, 1], [8, 0], [0, 8], {{.*}}
// AMPERE-NOT: tt.dot
func.func @warp_group(%a: tensor<64x64xf16>, %b: tensor<64x64xf16>, %acc: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %d = "tt.dot"(%a, %b, %acc) {inputPrecision = "ieee", maxNumImpreciseAcc = 0 : i32} : (tensor<64x64xf16>, tensor<64x64xf16>, tensor<64x64xf32>) -> tensor<64x64xf32>
  return %d : tensor<64x64xf32>
}

// A transposed operand is memory that is read the other way round.

// CHECK-LABEL: func.func @transposed(
// CHECK: %[[M:.*]] = "ttg.local_alloc"(%{{.*}}) : {{.*}} -> !ttg.memdesc<[128, 64], f16, {{.*}}
// CHECK: %[[B:.*]] = "ttg.memdesc_trans"(%[[M]]) : {{.*}} -> !ttg.memdesc<[64, 128], f16, {{.*}}
// CHECK: "ttng.warp_group_dot"(%{{.*}}, %[[B]], %{{.*}})
func.func @transposed(%a: tensor<64x64xf16>, %b: tensor<128x64xf16>, %acc: tensor<64x128xf32>) -> tensor<64x128xf32> {
  %t = "tt.trans"(%b) {order = array<i64: 1, 0>} : (tensor<128x64xf16>) -> tensor<64x128xf16>
  %d = "tt.dot"(%a, %t, %acc) {inputPrecision = "ieee", maxNumImpreciseAcc = 0 : i32} : (tensor<64x64xf16>, tensor<64x128xf16>, tensor<64x128xf32>) -> tensor<64x128xf32>
  return %d : tensor<64x128xf32>
}

// Too few rows for a warp group; fp8 is multiplied as fp16 where there are no instructions for it.

// CHECK-LABEL: func.func @few_rows(
// CHECK-NOT: arith.extf
// CHECK: "ttng.mma_sync"(%{{.*}}) : (tensor<32x32xf8E5M2, {{.*}}
// AMPERE-LABEL: func.func @few_rows(
// AMPERE: arith.extf %arg0
// AMPERE: "ttng.mma_sync"(%{{.*}}) : (tensor<32x32xf16, {{.*}}
func.func @few_rows(%a: tensor<32x32xf8E5M2>, %b: tensor<32x32xf8E5M2>, %acc: tensor<32x32xf32>) -> tensor<32x32xf32> {
  %d = "tt.dot"(%a, %b, %acc) {inputPrecision = "ieee", maxNumImpreciseAcc = 0 : i32} : (tensor<32x32xf8E5M2>, tensor<32x32xf8E5M2>, tensor<32x32xf32>) -> tensor<32x32xf32>
  return %d : tensor<32x32xf32>
}

// fp32 is rounded to tf32 only where that is allowed; tf32x3 is three products.

// CHECK-LABEL: func.func @ieee(
// CHECK-NOT: ttng.
// CHECK: "ttg.dot"
func.func @ieee(%a: tensor<64x64xf32>, %b: tensor<64x64xf32>, %acc: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %d = "tt.dot"(%a, %b, %acc) {inputPrecision = "ieee", maxNumImpreciseAcc = 0 : i32} : (tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  return %d : tensor<64x64xf32>
}
// CHECK-LABEL: func.func @tf32x3(
// CHECK-COUNT-3: "ttng.warp_group_dot"(
// CHECK-NOT: "ttng.warp_group_dot"(
// CHECK: return
func.func @tf32x3(%a: tensor<64x64xf32>, %b: tensor<64x64xf32>, %acc: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %d = "tt.dot"(%a, %b, %acc) {inputPrecision = "tf32x3", maxNumImpreciseAcc = 0 : i32} : (tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  return %d : tensor<64x64xf32>
}

// Nothing fits: an inner size of 8.

// CHECK-LABEL: func.func @shallow(
// CHECK-NOT: ttng.
// CHECK: "ttg.dot"
func.func @shallow(%a: tensor<64x8xf16>, %b: tensor<8x64xf16>, %acc: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %d = "tt.dot"(%a, %b, %acc) {inputPrecision = "tf32", maxNumImpreciseAcc = 0 : i32} : (tensor<64x8xf16>, tensor<8x64xf16>, tensor<64x64xf32>) -> tensor<64x64xf32>
  return %d : tensor<64x64xf32>
}

// Warp groups do not multiply fp64.

// CHECK-LABEL: func.func @doubles(
// CHECK-NOT: ttng.warp_group_dot
// CHECK: "ttng.mma_sync"
func.func @doubles(%a: tensor<64x64xf64>, %b: tensor<64x64xf64>, %acc: tensor<64x64xf64>) -> tensor<64x64xf64> {
  %d = "tt.dot"(%a, %b, %acc) {inputPrecision = "tf32", maxNumImpreciseAcc = 0 : i32} : (tensor<64x64xf64>, tensor<64x64xf64>, tensor<64x64xf64>) -> tensor<64x64xf64>
  return %d : tensor<64x64xf64>
}
