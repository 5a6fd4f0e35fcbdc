// RUN: proton-opt --pipeline='rewrite-tensor-descriptor-to-pointer' %s | filecheck %s

!row = !tt.tensordesc<tensor<8xf32>, "zero">
!block = !tt.tensordesc<tensor<4x16xf16>, "nan">
!line = !tt.tensordesc<tensor<1x16xi32>, "zero">

// Every dimension is checked, on both sides.

// CHECK-LABEL: func.func @load(
// CHECK-SAME: %[[BASE:.*]]: !tt.ptr<f16>, %[[M:arg1]]: i32, %[[N:arg2]]: i32, %[[S:arg3]]: i64, %[[I:arg4]]: i32)
// CHECK: %[[SIZE:.*]] = arith.extsi %[[M]] : i32 to i64
// CHECK: %[[AT:.*]] = arith.extsi %[[I]] : i32 to i64
// CHECK: %[[DOWN:.*]] = arith.muli %[[AT]], %[[S]]
// CHECK: "tt.addptr"(%[[BASE]], %[[DOWN]])
// CHECK: %[[PTRS:.*]] = "tt.addptr"(%{{.*}}, %{{.*}}) : (tensor<4x16x!tt.ptr<f16>>, tensor<4x16xi64>)
// CHECK: arith.cmpi slt
// CHECK: arith.cmpi sge
// CHECK: arith.cmpi slt
// CHECK: arith.cmpi sge
// CHECK: %[[MASK:.*]] = arith.andi %{{.*}}, %{{.*}} : tensor<4x16xi1>
// CHECK: %[[PAD:.*]] = arith.constant dense<0x7E00> : tensor<4x16xf16>
// CHECK: "tt.load"(%[[PTRS]], %[[MASK]], %[[PAD]]) {cache = ".cg", evict = "evict_last", operandSegmentSizes = array<i32: 1, 1, 1>, volatile = false}
func.func @load(%base: !tt.ptr<f16>, %m: i32, %n: i32, %s: i64, %i: i32) -> tensor<4x16xf16> {
  %one = arith.constant 1 : i64
  %d = "tt.make_tensor_descriptor"(%base, %m, %n, %s, %one) {operandSegmentSizes = array<i32: 1, 2, 2>} : (!tt.ptr<f16>, i32, i32, i64, i64) -> !block
  %x = "tt.descriptor_load"(%d, %i, %i) {cache = ".cg", evict = "evict_last", operandSegmentSizes = array<i32: 1, 2>} : (!block, i32, i32) -> tensor<4x16xf16>
  return %x : tensor<4x16xf16>
}

// A kernel takes the parts of a descriptor that the host made; what is known of it is known of them.

// CHECK-LABEL: func.func @argument(
// CHECK-SAME: %[[BASE:.*]]: !tt.ptr<f16> {tt.divisibility = 16 : i32, tt.element = "fp16", tt.name = "x"}, %[[M:arg1]]: i32, %{{.*}}: i32 {tt.divisibility = 16 : i32}, %[[S:arg3]]: i64 {tt.divisibility = 8 : i32}, %[[X:.*]]: tensor<4x16xf16>)
// CHECK: %[[I:.*]] = arith.addi %[[M]], %[[M]] : i32
// CHECK: %[[CUT:.*]] = arith.trunci %[[S]] : i64 to i32
// CHECK: "tt.store"(%{{.*}}, %[[X]], %{{.*}}) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 1>}
// CHECK: "tt.load"
// CHECK-NOT: descriptor
// CHECK: return
func.func @argument(%d: !block {tt.name = "x", tt.element = "fp16", tt.divisibility = 16 : i32}, %x: tensor<4x16xf16>) attributes {tt.kernel} {
  %m = "tt.descriptor_size"(%d) {axis = 0 : i32} : (!block) -> i32
  %i = arith.addi %m, %m : i32
  %s = "tt.descriptor_stride"(%d) {axis = 0 : i32} : (!block) -> i64
  %j = arith.trunci %s : i64 to i32
  "tt.descriptor_store"(%d, %x, %i, %j) {operandSegmentSizes = array<i32: 1, 1, 2>} : (!block, tensor<4x16xf16>, i32, i32) -> ()
  %y = "tt.descriptor_load"(%d, %i, %j) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 2>} : (!block, i32, i32) -> tensor<4x16xf16>
  return
}

// CHECK-LABEL: func.func @reductions(
// CHECK: "tt.atomic_rmw"({{.*}}rmw_op = "fmax", scope = "gpu", sem = "relaxed"
// CHECK: "tt.atomic_rmw"({{.*}}rmw_op = "umin", scope = "gpu", sem = "relaxed"
// CHECK: "tt.atomic_rmw"({{.*}}rmw_op = "xor", scope = "gpu", sem = "relaxed"
func.func @reductions(%f: !row, %u: !line, %x: tensor<8xf32>, %y: tensor<1x16xi32>, %i: i32) {
  "tt.descriptor_reduce"(%f, %x, %i) {kind = "max", is_unsigned = false, operandSegmentSizes = array<i32: 1, 1, 1>} : (!row, tensor<8xf32>, i32) -> ()
  "tt.descriptor_reduce"(%u, %y, %i, %i) {kind = "min", is_unsigned = true, operandSegmentSizes = array<i32: 1, 1, 2>} : (!line, tensor<1x16xi32>, i32, i32) -> ()
  "tt.descriptor_reduce"(%u, %y, %i, %i) {kind = "xor", is_unsigned = true, operandSegmentSizes = array<i32: 1, 1, 2>} : (!line, tensor<1x16xi32>, i32, i32) -> ()
  return
}

// CHECK-LABEL: func.func @rows(
// CHECK-SAME: %[[BASE:.*]]: !tt.ptr<i32>, %{{.*}}: i32, %{{.*}}: i32, %[[S:arg3]]: i64, %[[R:arg4]]: tensor<8xi32>, %[[C:arg5]]: i32)
// CHECK: %[[ROWS:.*]] = arith.extsi %[[R]] : tensor<8xi32> to tensor<8xi64>
// CHECK: %[[STRIDE:.*]] = "tt.splat"(%[[S]])
// CHECK: arith.muli %[[ROWS]], %[[STRIDE]]
// CHECK: %[[ALL:.*]] = "tt.splat"(%[[BASE]]) : (!tt.ptr<i32>) -> tensor<8x16x!tt.ptr<i32>>
// CHECK: %[[X:.*]] = "tt.load"(%{{.*}}, %{{.*}}, %{{.*}})
// CHECK: "tt.store"(%{{.*}}, %[[X]], %{{.*}})
func.func @rows(%d: !line, %rows: tensor<8xi32>, %column: i32) {
  %x = "tt.descriptor_gather"(%d, %rows, %column) : (!line, tensor<8xi32>, i32) -> tensor<8x16xi32>
  "tt.descriptor_scatter"(%d, %rows, %column, %x) : (!line, tensor<8xi32>, i32, tensor<8x16xi32>) -> ()
  return
}

// Of images there are the corners of the bounding box and the steps besides, from which a load
// computes its pixels, and the host a map.

!images = !tt.tensordesc_im2col<tensor<8x16xf16>, "zero", 3 : i32>
!map = !ttng.tensormap_im2col<tensor<8x16xf16>, "zero", 3 : i32>
// CHECK-LABEL: func.func @images(
// CHECK-SAME: %[[BASE:.*]]: !tt.ptr<f16> {tt.divisibility = 16 : i32, tt.element = "fp16", tt.name = "x"}, %[[N:arg1]]: i32, %[[W:arg2]]: i32, %[[C:arg3]]: i32 {tt.divisibility = 16 : i32}, %[[SN:arg4]]: i64 {tt.divisibility = 8 : i32}, %[[SW:arg5]]: i64 {tt.divisibility = 8 : i32}, %[[LOW:arg6]]: i32, %[[HIGH:arg7]]: i32, %[[STEP:arg8]]: i32, %[[I:arg9]]: i32)
// CHECK: %[[STEPS:.*]] = arith.extsi %[[STEP]] : i32 to i64
// CHECK: arith.divsi %{{.*}}, %[[STEPS]] : i64
// CHECK: arith.remsi %{{.*}}, %{{.*}} : tensor<8xi64>
// CHECK: %[[PLACES:.*]] = arith.addi %{{.*}}, %{{.*}} : tensor<8x16xi64>
// CHECK: %[[PTRS:.*]] = "tt.addptr"(%{{.*}}, %[[PLACES]])
// CHECK: %[[MASK:.*]] = arith.andi %{{.*}}, %{{.*}} : tensor<8x16xi1>
// CHECK: "tt.load"(%[[PTRS]], %[[MASK]], %{{.*}})
// CHECK: "ttng.tensor_map"(%[[BASE]], %[[N]], %[[W]], %[[C]], %[[SN]], %[[SW]], %[[LOW]], %[[HIGH]], %[[STEP]]) {operandSegmentSizes = array<i32: 1, 3, 2, 3>}
func.func @images(%d: !images {tt.name = "x", tt.element = "fp16", tt.divisibility = 16 : i32}, %i: i32) attributes {tt.kernel} {
  %x = "tt.descriptor_load"(%d, %i, %i, %i, %i) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 4>} : (!images, i32, i32, i32, i32) -> tensor<8x16xf16>
  %t = "ttng.tensor_map"(%d) {operandSegmentSizes = array<i32: 1, 0, 0, 0>} : (!images) -> !map
  "ttng.prefetch_tensor_map"(%t) : (!map) -> ()
  return
}
