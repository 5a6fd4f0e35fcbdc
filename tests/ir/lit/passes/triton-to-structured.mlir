// RUN: proton-opt --pipeline='triton-to-structured,canonicalize,cse' %s | filecheck %s

// CHECK-LABEL: func.func @contiguous(
// CHECK-SAME: %[[A0:arg[0-9]+]]: !tt.ptr<f32>
// CHECK-DAG: %[[C0:.*]] = arith.constant 0 : index
// CHECK-DAG: %[[C1:.*]] = arith.constant 1 : index
// CHECK: %[[V0:.*]] = arith.index_cast %{{.*}} : i32 to index
// CHECK-NEXT: %[[V1:.*]] = "tt.addptr"(%[[A0]], %[[V0]]) : (!tt.ptr<f32>, index) -> !tt.ptr<f32>
// CHECK-NEXT: %[[V2:.*]] = "tts.make_tptr"(%[[V1]], %[[C1]], %[[C0]]) {gathers = array<i64: 0>, operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>, order = array<i64: 0>, wraps = array<i64: 0>} : {{.*}} -> !tts.tptr<tensor<8xf32>>
// CHECK-NEXT: %[[V3:.*]] = "tts.load"(%[[V2]]) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0>} : {{.*}} -> tensor<8xf32>
// CHECK-NEXT: "tts.store"(%[[V2]], %[[V3]]) {operandSegmentSizes = array<i32: 1, 1, 0, 0, 0>}
func.func @contiguous(%p: !tt.ptr<f32>, %pid: i32, %n: i32) attributes {tt.kernel} {
  %r = "tt.make_range"() {start = 0 : i32, end = 8 : i32} : () -> tensor<8xi32>
  %c8 = arith.constant 8 : i32
  %start = arith.muli %pid, %c8 : i32
  %s = "tt.splat"(%start) : (i32) -> tensor<8xi32>
  %o = arith.addi %s, %r : tensor<8xi32>
  %ps = "tt.splat"(%p) : (!tt.ptr<f32>) -> tensor<8x!tt.ptr<f32>>
  %q = "tt.addptr"(%ps, %o) : (tensor<8x!tt.ptr<f32>>, tensor<8xi32>) -> tensor<8x!tt.ptr<f32>>
  %x = "tt.load"(%q) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<8x!tt.ptr<f32>>) -> tensor<8xf32>
  "tt.store"(%q, %x) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<8x!tt.ptr<f32>>, tensor<8xf32>) -> ()
  return
}

// CHECK-LABEL: func.func @strided_2d(
// CHECK-SAME: %[[A0:arg[0-9]+]]: !tt.ptr<f32>, %[[A1:arg[0-9]+]]: i32, %[[A2:arg[0-9]+]]: i32
// CHECK-DAG: %[[C0:.*]] = arith.constant 0 : index
// CHECK-DAG: %[[C16:.*]] = arith.constant 16 : index
// CHECK: %[[V0:.*]] = arith.index_cast %[[A2]] : i32 to index
// CHECK-NEXT: %[[V1:.*]] = arith.muli %[[V0]], %[[C16]] : index
// CHECK-NEXT: %[[V2:.*]] = "tt.addptr"(%[[A0]], %[[V1]]) : (!tt.ptr<f32>, index) -> !tt.ptr<f32>
// CHECK-NEXT: %[[V3:.*]] = arith.index_cast %[[A1]] : i32 to index
// CHECK-NEXT: %[[V4:.*]] = "tts.make_tptr"(%[[V2]], %[[V3]], %[[V0]], %[[C0]], %[[C0]]) {gathers = array<i64: 0, 0>, operandSegmentSizes = array<i32: 1, 2, 2, 0, 0>, order = array<i64: 1, 0>, wraps = array<i64: 0, 0>} : {{.*}} -> !tts.tptr<tensor<4x8xf32>>
// CHECK-NEXT: %[[V5:.*]] = "tts.load"(%[[V4]]) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0>} : {{.*}} -> tensor<4x8xf32>
// CHECK-NEXT: "tts.store"(%[[V4]], %[[V5]]) {operandSegmentSizes = array<i32: 1, 1, 0, 0, 0>}
func.func @strided_2d(%p: !tt.ptr<f32>, %row: i32, %col: i32) attributes {tt.kernel} {
  %r = "tt.make_range"() {start = 0 : i32, end = 4 : i32} : () -> tensor<4xi32>
  %r1 = "tt.expand_dims"(%r) {axis = 1 : i32} : (tensor<4xi32>) -> tensor<4x1xi32>
  %rs = "tt.splat"(%row) : (i32) -> tensor<4x1xi32>
  %r2 = arith.muli %r1, %rs : tensor<4x1xi32>
  %r3 = "tt.broadcast"(%r2) : (tensor<4x1xi32>) -> tensor<4x8xi32>
  %c = "tt.make_range"() {start = 16 : i32, end = 24 : i32} : () -> tensor<8xi32>
  %c1 = "tt.expand_dims"(%c) {axis = 0 : i32} : (tensor<8xi32>) -> tensor<1x8xi32>
  %cs = "tt.splat"(%col) : (i32) -> tensor<1x8xi32>
  %c2 = arith.muli %c1, %cs : tensor<1x8xi32>
  %c3 = "tt.broadcast"(%c2) : (tensor<1x8xi32>) -> tensor<4x8xi32>
  %o = arith.addi %r3, %c3 : tensor<4x8xi32>
  %ps = "tt.splat"(%p) : (!tt.ptr<f32>) -> tensor<4x8x!tt.ptr<f32>>
  %q = "tt.addptr"(%ps, %o) : (tensor<4x8x!tt.ptr<f32>>, tensor<4x8xi32>) -> tensor<4x8x!tt.ptr<f32>>
  %x = "tt.load"(%q) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<4x8x!tt.ptr<f32>>) -> tensor<4x8xf32>
  "tt.store"(%q, %x) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<4x8x!tt.ptr<f32>>, tensor<4x8xf32>) -> ()
  return
}

// CHECK-LABEL: func.func @column_major(
// CHECK-SAME: %[[A0:arg[0-9]+]]: !tt.ptr<f32>, %[[A1:arg[0-9]+]]: i32
// CHECK-DAG: %[[C0:.*]] = arith.constant 0 : index
// CHECK-DAG: %[[C1:.*]] = arith.constant 1 : index
// CHECK: %[[V0:.*]] = arith.index_cast %[[A1]] : i32 to index
// CHECK-NEXT: %[[V1:.*]] = "tts.make_tptr"(%[[A0]], %[[C1]], %[[V0]], %[[C0]], %[[C0]]) {gathers = array<i64: 0, 0>, operandSegmentSizes = array<i32: 1, 2, 2, 0, 0>, order = array<i64: 0, 1>, wraps = array<i64: 0, 0>} : {{.*}} -> !tts.tptr<tensor<4x8xf32>>
// CHECK-NEXT: %[[V2:.*]] = "tts.load"(%[[V1]]) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0>} : {{.*}} -> tensor<4x8xf32>
// CHECK-NEXT: "tts.store"(%[[V1]], %[[V2]]) {operandSegmentSizes = array<i32: 1, 1, 0, 0, 0>}
func.func @column_major(%p: !tt.ptr<f32>, %row: i32) attributes {tt.kernel} {
  %c = "tt.make_range"() {start = 0 : i32, end = 4 : i32} : () -> tensor<4xi32>
  %c1 = "tt.expand_dims"(%c) {axis = 1 : i32} : (tensor<4xi32>) -> tensor<4x1xi32>
  %c3 = "tt.broadcast"(%c1) : (tensor<4x1xi32>) -> tensor<4x8xi32>
  %r = "tt.make_range"() {start = 0 : i32, end = 8 : i32} : () -> tensor<8xi32>
  %r1 = "tt.expand_dims"(%r) {axis = 0 : i32} : (tensor<8xi32>) -> tensor<1x8xi32>
  %rs = "tt.splat"(%row) : (i32) -> tensor<1x8xi32>
  %r2 = arith.muli %r1, %rs : tensor<1x8xi32>
  %r3 = "tt.broadcast"(%r2) : (tensor<1x8xi32>) -> tensor<4x8xi32>
  %o = arith.addi %r3, %c3 : tensor<4x8xi32>
  %ps = "tt.splat"(%p) : (!tt.ptr<f32>) -> tensor<4x8x!tt.ptr<f32>>
  %q = "tt.addptr"(%ps, %o) : (tensor<4x8x!tt.ptr<f32>>, tensor<4x8xi32>) -> tensor<4x8x!tt.ptr<f32>>
  %x = "tt.load"(%q) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<4x8x!tt.ptr<f32>>) -> tensor<4x8xf32>
  "tt.store"(%q, %x) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<4x8x!tt.ptr<f32>>, tensor<4x8xf32>) -> ()
  return
}

// CHECK-LABEL: func.func @transposed(
// CHECK-SAME: %[[A0:arg[0-9]+]]: !tt.ptr<f32>
// CHECK-DAG: %[[C0:.*]] = arith.constant 0 : index
// CHECK-DAG: %[[C8:.*]] = arith.constant 8 : index
// CHECK-DAG: %[[C1:.*]] = arith.constant 1 : index
// CHECK: %[[V0:.*]] = "tts.make_tptr"(%[[A0]], %[[C1]], %[[C8]], %[[C0]], %[[C0]]) {gathers = array<i64: 0, 0>, operandSegmentSizes = array<i32: 1, 2, 2, 0, 0>, order = array<i64: 0, 1>, wraps = array<i64: 0, 0>} : {{.*}} -> !tts.tptr<tensor<8x4xf32>>
// CHECK-NEXT: %[[V1:.*]] = "tts.load"(%[[V0]]) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0>} : {{.*}} -> tensor<8x4xf32>
// CHECK-NEXT: "tts.store"(%[[V0]], %[[V1]]) {operandSegmentSizes = array<i32: 1, 1, 0, 0, 0>}
func.func @transposed(%p: !tt.ptr<f32>) attributes {tt.kernel} {
  %r = "tt.make_range"() {start = 0 : i32, end = 4 : i32} : () -> tensor<4xi32>
  %r1 = "tt.expand_dims"(%r) {axis = 1 : i32} : (tensor<4xi32>) -> tensor<4x1xi32>
  %k = arith.constant dense<8> : tensor<4x1xi32>
  %r2 = arith.muli %r1, %k : tensor<4x1xi32>
  %r3 = "tt.broadcast"(%r2) : (tensor<4x1xi32>) -> tensor<4x8xi32>
  %c = "tt.make_range"() {start = 0 : i32, end = 8 : i32} : () -> tensor<8xi32>
  %c1 = "tt.expand_dims"(%c) {axis = 0 : i32} : (tensor<8xi32>) -> tensor<1x8xi32>
  %c3 = "tt.broadcast"(%c1) : (tensor<1x8xi32>) -> tensor<4x8xi32>
  %o = arith.addi %r3, %c3 : tensor<4x8xi32>
  %ps = "tt.splat"(%p) : (!tt.ptr<f32>) -> tensor<4x8x!tt.ptr<f32>>
  %q = "tt.addptr"(%ps, %o) : (tensor<4x8x!tt.ptr<f32>>, tensor<4x8xi32>) -> tensor<4x8x!tt.ptr<f32>>
  %t = "tt.trans"(%q) {order = array<i64: 1, 0>} : (tensor<4x8x!tt.ptr<f32>>) -> tensor<8x4x!tt.ptr<f32>>
  %x = "tt.load"(%t) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<8x4x!tt.ptr<f32>>) -> tensor<8x4xf32>
  "tt.store"(%t, %x) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<8x4x!tt.ptr<f32>>, tensor<8x4xf32>) -> ()
  return
}

// CHECK-LABEL: func.func @mask_less(
// CHECK-SAME: %[[A0:arg[0-9]+]]: !tt.ptr<f32>, %{{.*}}: i32, %[[A2:arg[0-9]+]]: i32
// CHECK-DAG: %[[C8:.*]] = arith.constant 8 : index
// CHECK-DAG: %[[C0:.*]] = arith.constant 0 : index
// CHECK-DAG: %[[C1:.*]] = arith.constant 1 : index
// CHECK: %[[V0:.*]] = arith.index_cast %{{.*}} : i32 to index
// CHECK-NEXT: %[[V1:.*]] = "tt.addptr"(%[[A0]], %[[V0]]) : (!tt.ptr<f32>, index) -> !tt.ptr<f32>
// CHECK-NEXT: %[[V2:.*]] = "tts.make_tptr"(%[[V1]], %[[C1]], %[[C0]]) {gathers = array<i64: 0>, operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>, order = array<i64: 0>, wraps = array<i64: 0>} : {{.*}} -> !tts.tptr<tensor<8xf32>>
// CHECK-NEXT: %[[V3:.*]] = arith.index_cast %[[A2]] : i32 to index
// CHECK-NEXT: %[[V4:.*]] = arith.subi %[[V3]], %[[V0]] : index
// CHECK-NEXT: %[[V5:.*]] = arith.minsi %[[V4]], %[[C8]] : index
// CHECK-NEXT: %[[V6:.*]] = arith.maxsi %[[V5]], %[[C0]] : index
// CHECK-NEXT: %[[V7:.*]] = "tts.load"(%[[V2]], %[[V6]]) {operandSegmentSizes = array<i32: 1, 1, 0, 0, 0>} : {{.*}} -> tensor<8xf32>
// CHECK-NEXT: "tts.store"(%[[V2]], %[[V7]], %[[V6]]) {operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>}
func.func @mask_less(%p: !tt.ptr<f32>, %pid: i32, %n: i32) attributes {tt.kernel} {
  %r = "tt.make_range"() {start = 0 : i32, end = 8 : i32} : () -> tensor<8xi32>
  %c8 = arith.constant 8 : i32
  %start = arith.muli %pid, %c8 : i32
  %s = "tt.splat"(%start) : (i32) -> tensor<8xi32>
  %o = arith.addi %s, %r : tensor<8xi32>
  %ps = "tt.splat"(%p) : (!tt.ptr<f32>) -> tensor<8x!tt.ptr<f32>>
  %q = "tt.addptr"(%ps, %o) : (tensor<8x!tt.ptr<f32>>, tensor<8xi32>) -> tensor<8x!tt.ptr<f32>>
  %ns = "tt.splat"(%n) : (i32) -> tensor<8xi32>
  %m = arith.cmpi slt, %o, %ns : tensor<8xi32>
  %x = "tt.load"(%q, %m) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>, volatile = false} : (tensor<8x!tt.ptr<f32>>, tensor<8xi1>) -> tensor<8xf32>
  "tt.store"(%q, %x, %m) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 1>} : (tensor<8x!tt.ptr<f32>>, tensor<8xf32>, tensor<8xi1>) -> ()
  return
}

// CHECK-LABEL: func.func @mask_less_or_equal(
// CHECK-SAME: %[[A0:arg[0-9]+]]: !tt.ptr<f32>, %{{.*}}: i32, %[[A2:arg[0-9]+]]: i32
// CHECK-DAG: %[[C8:.*]] = arith.constant 8 : index
// CHECK-DAG: %[[C0:.*]] = arith.constant 0 : index
// CHECK-DAG: %[[C1:.*]] = arith.constant 1 : index
// CHECK: %[[V0:.*]] = arith.index_cast %{{.*}} : i32 to index
// CHECK-NEXT: %[[V1:.*]] = "tt.addptr"(%[[A0]], %[[V0]]) : (!tt.ptr<f32>, index) -> !tt.ptr<f32>
// CHECK-NEXT: %[[V2:.*]] = "tts.make_tptr"(%[[V1]], %[[C1]], %[[C0]]) {gathers = array<i64: 0>, operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>, order = array<i64: 0>, wraps = array<i64: 0>} : {{.*}} -> !tts.tptr<tensor<8xf32>>
// CHECK-NEXT: %[[V3:.*]] = arith.index_cast %[[A2]] : i32 to index
// CHECK-NEXT: %[[V4:.*]] = arith.subi %[[V3]], %[[V0]] : index
// CHECK-NEXT: %[[V5:.*]] = arith.addi %[[V4]], %[[C1]] : index
// CHECK-NEXT: %[[V6:.*]] = arith.minsi %[[V5]], %[[C8]] : index
// CHECK-NEXT: %[[V7:.*]] = arith.maxsi %[[V6]], %[[C0]] : index
// CHECK-NEXT: %[[V8:.*]] = "tts.load"(%[[V2]], %[[V7]]) {operandSegmentSizes = array<i32: 1, 1, 0, 0, 0>} : {{.*}} -> tensor<8xf32>
// CHECK-NEXT: "tts.store"(%[[V2]], %[[V8]], %[[V7]]) {operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>}
func.func @mask_less_or_equal(%p: !tt.ptr<f32>, %pid: i32, %n: i32) attributes {tt.kernel} {
  %r = "tt.make_range"() {start = 0 : i32, end = 8 : i32} : () -> tensor<8xi32>
  %c8 = arith.constant 8 : i32
  %start = arith.muli %pid, %c8 : i32
  %s = "tt.splat"(%start) : (i32) -> tensor<8xi32>
  %o = arith.addi %s, %r : tensor<8xi32>
  %ps = "tt.splat"(%p) : (!tt.ptr<f32>) -> tensor<8x!tt.ptr<f32>>
  %q = "tt.addptr"(%ps, %o) : (tensor<8x!tt.ptr<f32>>, tensor<8xi32>) -> tensor<8x!tt.ptr<f32>>
  %ns = "tt.splat"(%n) : (i32) -> tensor<8xi32>
  %m = arith.cmpi sle, %o, %ns : tensor<8xi32>
  %x = "tt.load"(%q, %m) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>, volatile = false} : (tensor<8x!tt.ptr<f32>>, tensor<8xi1>) -> tensor<8xf32>
  "tt.store"(%q, %x, %m) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 1>} : (tensor<8x!tt.ptr<f32>>, tensor<8xf32>, tensor<8xi1>) -> ()
  return
}

// CHECK-LABEL: func.func @mask_swapped(
// CHECK-SAME: %[[A0:arg[0-9]+]]: !tt.ptr<f32>, %{{.*}}: i32, %[[A2:arg[0-9]+]]: i32
// CHECK-DAG: %[[C8:.*]] = arith.constant 8 : index
// CHECK-DAG: %[[C0:.*]] = arith.constant 0 : index
// CHECK-DAG: %[[C1:.*]] = arith.constant 1 : index
// CHECK: %[[V0:.*]] = arith.index_cast %{{.*}} : i32 to index
// CHECK-NEXT: %[[V1:.*]] = "tt.addptr"(%[[A0]], %[[V0]]) : (!tt.ptr<f32>, index) -> !tt.ptr<f32>
// CHECK-NEXT: %[[V2:.*]] = "tts.make_tptr"(%[[V1]], %[[C1]], %[[C0]]) {gathers = array<i64: 0>, operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>, order = array<i64: 0>, wraps = array<i64: 0>} : {{.*}} -> !tts.tptr<tensor<8xf32>>
// CHECK-NEXT: %[[V3:.*]] = arith.index_cast %[[A2]] : i32 to index
// CHECK-NEXT: %[[V4:.*]] = arith.subi %[[V3]], %[[V0]] : index
// CHECK-NEXT: %[[V5:.*]] = arith.minsi %[[V4]], %[[C8]] : index
// CHECK-NEXT: %[[V6:.*]] = arith.maxsi %[[V5]], %[[C0]] : index
// CHECK-NEXT: %[[V7:.*]] = "tts.load"(%[[V2]], %[[V6]]) {operandSegmentSizes = array<i32: 1, 1, 0, 0, 0>} : {{.*}} -> tensor<8xf32>
// CHECK-NEXT: "tts.store"(%[[V2]], %[[V7]], %[[V6]]) {operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>}
func.func @mask_swapped(%p: !tt.ptr<f32>, %pid: i32, %n: i32) attributes {tt.kernel} {
  %r = "tt.make_range"() {start = 0 : i32, end = 8 : i32} : () -> tensor<8xi32>
  %c8 = arith.constant 8 : i32
  %start = arith.muli %pid, %c8 : i32
  %s = "tt.splat"(%start) : (i32) -> tensor<8xi32>
  %o = arith.addi %s, %r : tensor<8xi32>
  %ps = "tt.splat"(%p) : (!tt.ptr<f32>) -> tensor<8x!tt.ptr<f32>>
  %q = "tt.addptr"(%ps, %o) : (tensor<8x!tt.ptr<f32>>, tensor<8xi32>) -> tensor<8x!tt.ptr<f32>>
  %ns = "tt.splat"(%n) : (i32) -> tensor<8xi32>
  %m = arith.cmpi sgt, %ns, %o : tensor<8xi32>
  %x = "tt.load"(%q, %m) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>, volatile = false} : (tensor<8x!tt.ptr<f32>>, tensor<8xi1>) -> tensor<8xf32>
  "tt.store"(%q, %x, %m) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 1>} : (tensor<8x!tt.ptr<f32>>, tensor<8xf32>, tensor<8xi1>) -> ()
  return
}

// CHECK-LABEL: func.func @mask_swapped_or_equal(
// CHECK-SAME: %[[A0:arg[0-9]+]]: !tt.ptr<f32>, %{{.*}}: i32, %[[A2:arg[0-9]+]]: i32
// CHECK-DAG: %[[C8:.*]] = arith.constant 8 : index
// CHECK-DAG: %[[C0:.*]] = arith.constant 0 : index
// CHECK-DAG: %[[C1:.*]] = arith.constant 1 : index
// CHECK: %[[V0:.*]] = arith.index_cast %{{.*}} : i32 to index
// CHECK-NEXT: %[[V1:.*]] = "tt.addptr"(%[[A0]], %[[V0]]) : (!tt.ptr<f32>, index) -> !tt.ptr<f32>
// CHECK-NEXT: %[[V2:.*]] = "tts.make_tptr"(%[[V1]], %[[C1]], %[[C0]]) {gathers = array<i64: 0>, operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>, order = array<i64: 0>, wraps = array<i64: 0>} : {{.*}} -> !tts.tptr<tensor<8xf32>>
// CHECK-NEXT: %[[V3:.*]] = arith.index_cast %[[A2]] : i32 to index
// CHECK-NEXT: %[[V4:.*]] = arith.subi %[[V3]], %[[V0]] : index
// CHECK-NEXT: %[[V5:.*]] = arith.addi %[[V4]], %[[C1]] : index
// CHECK-NEXT: %[[V6:.*]] = arith.minsi %[[V5]], %[[C8]] : index
// CHECK-NEXT: %[[V7:.*]] = arith.maxsi %[[V6]], %[[C0]] : index
// CHECK-NEXT: %[[V8:.*]] = "tts.load"(%[[V2]], %[[V7]]) {operandSegmentSizes = array<i32: 1, 1, 0, 0, 0>} : {{.*}} -> tensor<8xf32>
// CHECK-NEXT: "tts.store"(%[[V2]], %[[V8]], %[[V7]]) {operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>}
func.func @mask_swapped_or_equal(%p: !tt.ptr<f32>, %pid: i32, %n: i32) attributes {tt.kernel} {
  %r = "tt.make_range"() {start = 0 : i32, end = 8 : i32} : () -> tensor<8xi32>
  %c8 = arith.constant 8 : i32
  %start = arith.muli %pid, %c8 : i32
  %s = "tt.splat"(%start) : (i32) -> tensor<8xi32>
  %o = arith.addi %s, %r : tensor<8xi32>
  %ps = "tt.splat"(%p) : (!tt.ptr<f32>) -> tensor<8x!tt.ptr<f32>>
  %q = "tt.addptr"(%ps, %o) : (tensor<8x!tt.ptr<f32>>, tensor<8xi32>) -> tensor<8x!tt.ptr<f32>>
  %ns = "tt.splat"(%n) : (i32) -> tensor<8xi32>
  %m = arith.cmpi sge, %ns, %o : tensor<8xi32>
  %x = "tt.load"(%q, %m) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>, volatile = false} : (tensor<8x!tt.ptr<f32>>, tensor<8xi1>) -> tensor<8xf32>
  "tt.store"(%q, %x, %m) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 1>} : (tensor<8x!tt.ptr<f32>>, tensor<8xf32>, tensor<8xi1>) -> ()
  return
}

// CHECK-LABEL: func.func @mask_2d(
// CHECK-SAME: %[[A0:arg[0-9]+]]: !tt.ptr<f32>, %[[A1:arg[0-9]+]]: i32, %[[A2:arg[0-9]+]]: i32
// CHECK-DAG: %[[C4:.*]] = arith.constant 4 : index
// CHECK-DAG: %[[C0:.*]] = arith.constant 0 : index
// CHECK-DAG: %[[C1:.*]] = arith.constant 1 : index
// CHECK-DAG: %[[C8:.*]] = arith.constant 8 : index
// CHECK: %[[V0:.*]] = "tts.make_tptr"(%[[A0]], %[[C8]], %[[C1]], %[[C0]], %[[C0]]) {gathers = array<i64: 0, 0>, operandSegmentSizes = array<i32: 1, 2, 2, 0, 0>, order = array<i64: 1, 0>, wraps = array<i64: 0, 0>} : {{.*}} -> !tts.tptr<tensor<4x8xf32>>
// CHECK-NEXT: %[[V1:.*]] = arith.index_cast %[[A1]] : i32 to index
// CHECK-NEXT: %[[V2:.*]] = arith.minsi %[[V1]], %[[C4]] : index
// CHECK-NEXT: %[[V3:.*]] = arith.maxsi %[[V2]], %[[C0]] : index
// CHECK-NEXT: %[[V4:.*]] = arith.minsi %[[V3]], %[[C4]] : index
// CHECK-NEXT: %[[V5:.*]] = arith.index_cast %[[A2]] : i32 to index
// CHECK-NEXT: %[[V6:.*]] = arith.minsi %[[V5]], %[[C8]] : index
// CHECK-NEXT: %[[V7:.*]] = arith.maxsi %[[V6]], %[[C0]] : index
// CHECK-NEXT: %[[V8:.*]] = arith.minsi %[[V7]], %[[C8]] : index
// CHECK-NEXT: %[[V9:.*]] = "tts.load"(%[[V0]], %[[V4]], %[[V8]]) {operandSegmentSizes = array<i32: 1, 2, 0, 0, 0>} : {{.*}} -> tensor<4x8xf32>
// CHECK-NEXT: "tts.store"(%[[V0]], %[[V9]], %[[V4]], %[[V8]]) {operandSegmentSizes = array<i32: 1, 1, 2, 0, 0>}
func.func @mask_2d(%p: !tt.ptr<f32>, %m: i32, %n: i32) attributes {tt.kernel} {
  %r = "tt.make_range"() {start = 0 : i32, end = 4 : i32} : () -> tensor<4xi32>
  %r1 = "tt.expand_dims"(%r) {axis = 1 : i32} : (tensor<4xi32>) -> tensor<4x1xi32>
  %k = arith.constant dense<8> : tensor<4x1xi32>
  %r2 = arith.muli %r1, %k : tensor<4x1xi32>
  %r3 = "tt.broadcast"(%r2) : (tensor<4x1xi32>) -> tensor<4x8xi32>
  %c = "tt.make_range"() {start = 0 : i32, end = 8 : i32} : () -> tensor<8xi32>
  %c1 = "tt.expand_dims"(%c) {axis = 0 : i32} : (tensor<8xi32>) -> tensor<1x8xi32>
  %c3 = "tt.broadcast"(%c1) : (tensor<1x8xi32>) -> tensor<4x8xi32>
  %o = arith.addi %r3, %c3 : tensor<4x8xi32>
  %ps = "tt.splat"(%p) : (!tt.ptr<f32>) -> tensor<4x8x!tt.ptr<f32>>
  %q = "tt.addptr"(%ps, %o) : (tensor<4x8x!tt.ptr<f32>>, tensor<4x8xi32>) -> tensor<4x8x!tt.ptr<f32>>
  %ms = "tt.splat"(%m) : (i32) -> tensor<4x1xi32>
  %m1 = arith.cmpi slt, %r1, %ms : tensor<4x1xi32>
  %ns = "tt.splat"(%n) : (i32) -> tensor<1x8xi32>
  %m2 = arith.cmpi slt, %c1, %ns : tensor<1x8xi32>
  %m3 = "tt.broadcast"(%m1) : (tensor<4x1xi1>) -> tensor<4x8xi1>
  %m4 = "tt.broadcast"(%m2) : (tensor<1x8xi1>) -> tensor<4x8xi1>
  %m5 = arith.andi %m3, %m4 : tensor<4x8xi1>
  %x = "tt.load"(%q, %m5) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>, volatile = false} : (tensor<4x8x!tt.ptr<f32>>, tensor<4x8xi1>) -> tensor<4x8xf32>
  "tt.store"(%q, %x, %m5) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 1>} : (tensor<4x8x!tt.ptr<f32>>, tensor<4x8xf32>, tensor<4x8xi1>) -> ()
  return
}

// CHECK-LABEL: func.func @mask_of_a_scalar(
// CHECK-SAME: %[[A0:arg[0-9]+]]: !tt.ptr<f32>, %[[A1:arg[0-9]+]]: i1
// CHECK-DAG: %[[C8:.*]] = arith.constant 8 : index
// CHECK-DAG: %[[C0:.*]] = arith.constant 0 : index
// CHECK-DAG: %[[C1:.*]] = arith.constant 1 : index
// CHECK: %[[V0:.*]] = "tts.make_tptr"(%[[A0]], %[[C1]], %[[C0]]) {gathers = array<i64: 0>, operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>, order = array<i64: 0>, wraps = array<i64: 0>} : {{.*}} -> !tts.tptr<tensor<8xf32>>
// CHECK-NEXT: %[[V1:.*]] = arith.select %[[A1]], %[[C8]], %[[C0]] : index
// CHECK-NEXT: %[[V2:.*]] = "tts.load"(%[[V0]], %[[V1]]) {operandSegmentSizes = array<i32: 1, 1, 0, 0, 0>} : {{.*}} -> tensor<8xf32>
// CHECK-NEXT: "tts.store"(%[[V0]], %[[V2]], %[[V1]]) {operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>}
func.func @mask_of_a_scalar(%p: !tt.ptr<f32>, %c: i1) attributes {tt.kernel} {
  %o = "tt.make_range"() {start = 0 : i32, end = 8 : i32} : () -> tensor<8xi32>
  %ps = "tt.splat"(%p) : (!tt.ptr<f32>) -> tensor<8x!tt.ptr<f32>>
  %q = "tt.addptr"(%ps, %o) : (tensor<8x!tt.ptr<f32>>, tensor<8xi32>) -> tensor<8x!tt.ptr<f32>>
  %m = "tt.splat"(%c) : (i1) -> tensor<8xi1>
  %x = "tt.load"(%q, %m) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>, volatile = false} : (tensor<8x!tt.ptr<f32>>, tensor<8xi1>) -> tensor<8xf32>
  "tt.store"(%q, %x, %m) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 1>} : (tensor<8x!tt.ptr<f32>>, tensor<8xf32>, tensor<8xi1>) -> ()
  return
}

// A lower bound is the element that the block starts with, from 0 to its size.

// CHECK-LABEL: func.func @mask_with_a_lower_bound(
// CHECK-SAME: %arg1: i32, %[[N:.*]]: i32)
// CHECK-DAG: %[[ALL:.*]] = arith.constant 8 : index
// CHECK: %[[FIRST:.*]] = arith.index_cast %{{.*}} : i32 to index
// CHECK: %[[PTR:.*]] = "tts.make_tptr"(
// CHECK: %[[BOUND:.*]] = arith.index_cast %[[N]] : i32 to index
// CHECK: %[[AHEAD:.*]] = arith.subi %[[BOUND]], %[[FIRST]] : index
// CHECK: %[[MOST:.*]] = arith.minsi %[[AHEAD]], %[[ALL]] : index
// CHECK: %[[START:.*]] = arith.maxsi %[[MOST]], %c0{{.*}} : index
// CHECK: "tts.load"(%[[PTR]], %[[ALL]], %[[START]]) {operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>}
// CHECK: "tts.store"({{.*}}operandSegmentSizes = array<i32: 1, 1, 1, 1, 0>
func.func @mask_with_a_lower_bound(%p: !tt.ptr<f32>, %pid: i32, %n: i32) attributes {tt.kernel} {
  %r = "tt.make_range"() {start = 0 : i32, end = 8 : i32} : () -> tensor<8xi32>
  %c8 = arith.constant 8 : i32
  %start = arith.muli %pid, %c8 : i32
  %s = "tt.splat"(%start) : (i32) -> tensor<8xi32>
  %o = arith.addi %s, %r : tensor<8xi32>
  %ps = "tt.splat"(%p) : (!tt.ptr<f32>) -> tensor<8x!tt.ptr<f32>>
  %q = "tt.addptr"(%ps, %o) : (tensor<8x!tt.ptr<f32>>, tensor<8xi32>) -> tensor<8x!tt.ptr<f32>>
  %ns = "tt.splat"(%n) : (i32) -> tensor<8xi32>
  %m = arith.cmpi sge, %o, %ns : tensor<8xi32>
  %x = "tt.load"(%q, %m) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>, volatile = false} : (tensor<8x!tt.ptr<f32>>, tensor<8xi1>) -> tensor<8xf32>
  "tt.store"(%q, %x, %m) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 1>} : (tensor<8x!tt.ptr<f32>>, tensor<8xf32>, tensor<8xi1>) -> ()
  return
}

// CHECK-LABEL: func.func @mask_with_both_bounds(
// CHECK: %[[END:.*]] = arith.minsi %{{.*}}, %{{.*}} : index
// CHECK: %[[START:.*]] = arith.maxsi %{{.*}}, %{{.*}} : index
// CHECK: "tts.load"({{.*}}operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>
// CHECK: "tts.store"({{.*}}operandSegmentSizes = array<i32: 1, 1, 1, 1, 0>
func.func @mask_with_both_bounds(%p: !tt.ptr<f32>, %pid: i32, %n: i32) attributes {tt.kernel} {
  %r = "tt.make_range"() {start = 0 : i32, end = 8 : i32} : () -> tensor<8xi32>
  %c8 = arith.constant 8 : i32
  %start = arith.muli %pid, %c8 : i32
  %s = "tt.splat"(%start) : (i32) -> tensor<8xi32>
  %o = arith.addi %s, %r : tensor<8xi32>
  %ps = "tt.splat"(%p) : (!tt.ptr<f32>) -> tensor<8x!tt.ptr<f32>>
  %q = "tt.addptr"(%ps, %o) : (tensor<8x!tt.ptr<f32>>, tensor<8xi32>) -> tensor<8x!tt.ptr<f32>>
  %ns = "tt.splat"(%n) : (i32) -> tensor<8xi32>
  %m1 = arith.cmpi slt, %o, %ns : tensor<8xi32>
  %z = arith.constant dense<4> : tensor<8xi32>
  %m2 = arith.cmpi sle, %z, %o : tensor<8xi32>
  %m = arith.andi %m1, %m2 : tensor<8xi1>
  %x = "tt.load"(%q, %m) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>, volatile = false} : (tensor<8x!tt.ptr<f32>>, tensor<8xi1>) -> tensor<8xf32>
  "tt.store"(%q, %x, %m) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 1>} : (tensor<8x!tt.ptr<f32>>, tensor<8xf32>, tensor<8xi1>) -> ()
  return
}

// CHECK-LABEL: func.func @mask_with_a_stride
// CHECK-NOT: tt.load
// CHECK: "tts.load"({{.*}}, %[[M:.*]]) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 1>}
// CHECK-NEXT: "tts.store"({{.*}}, %[[M]]) {operandSegmentSizes = array<i32: 1, 1, 0, 0, 1>}
func.func @mask_with_a_stride(%p: !tt.ptr<f32>, %pid: i32, %n: i32) attributes {tt.kernel} {
  %r = "tt.make_range"() {start = 0 : i32, end = 8 : i32} : () -> tensor<8xi32>
  %c8 = arith.constant 8 : i32
  %start = arith.muli %pid, %c8 : i32
  %s = "tt.splat"(%start) : (i32) -> tensor<8xi32>
  %o = arith.addi %s, %r : tensor<8xi32>
  %ps = "tt.splat"(%p) : (!tt.ptr<f32>) -> tensor<8x!tt.ptr<f32>>
  %q = "tt.addptr"(%ps, %o) : (tensor<8x!tt.ptr<f32>>, tensor<8xi32>) -> tensor<8x!tt.ptr<f32>>
  %z = arith.constant dense<2> : tensor<8xi32>
  %o2 = arith.muli %o, %z : tensor<8xi32>
  %ns = "tt.splat"(%n) : (i32) -> tensor<8xi32>
  %m = arith.cmpi slt, %o2, %ns : tensor<8xi32>
  %x = "tt.load"(%q, %m) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>, volatile = false} : (tensor<8x!tt.ptr<f32>>, tensor<8xi1>) -> tensor<8xf32>
  "tt.store"(%q, %x, %m) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 1>} : (tensor<8x!tt.ptr<f32>>, tensor<8xf32>, tensor<8xi1>) -> ()
  return
}

// CHECK-LABEL: func.func @unsigned_mask
// CHECK-NOT: tt.load
// CHECK: "tts.load"({{.*}}, %[[M:.*]]) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 1>}
// CHECK-NEXT: "tts.store"({{.*}}, %[[M]]) {operandSegmentSizes = array<i32: 1, 1, 0, 0, 1>}
func.func @unsigned_mask(%p: !tt.ptr<f32>, %pid: i32, %n: i32) attributes {tt.kernel} {
  %r = "tt.make_range"() {start = 0 : i32, end = 8 : i32} : () -> tensor<8xi32>
  %c8 = arith.constant 8 : i32
  %start = arith.muli %pid, %c8 : i32
  %s = "tt.splat"(%start) : (i32) -> tensor<8xi32>
  %o = arith.addi %s, %r : tensor<8xi32>
  %ps = "tt.splat"(%p) : (!tt.ptr<f32>) -> tensor<8x!tt.ptr<f32>>
  %q = "tt.addptr"(%ps, %o) : (tensor<8x!tt.ptr<f32>>, tensor<8xi32>) -> tensor<8x!tt.ptr<f32>>
  %ns = "tt.splat"(%n) : (i32) -> tensor<8xi32>
  %m = arith.cmpi ult, %o, %ns : tensor<8xi32>
  %x = "tt.load"(%q, %m) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>, volatile = false} : (tensor<8x!tt.ptr<f32>>, tensor<8xi1>) -> tensor<8xf32>
  "tt.store"(%q, %x, %m) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 1>} : (tensor<8x!tt.ptr<f32>>, tensor<8xf32>, tensor<8xi1>) -> ()
  return
}

// CHECK-LABEL: func.func @any_mask
// CHECK-NOT: tt.load
// CHECK: "tts.load"({{.*}}, %[[M:.*]]) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 1>}
// CHECK-NEXT: "tts.store"({{.*}}, %[[M]]) {operandSegmentSizes = array<i32: 1, 1, 0, 0, 1>}
func.func @any_mask(%p: !tt.ptr<f32>, %m: tensor<8xi1>) attributes {tt.kernel} {
  %o = "tt.make_range"() {start = 0 : i32, end = 8 : i32} : () -> tensor<8xi32>
  %ps = "tt.splat"(%p) : (!tt.ptr<f32>) -> tensor<8x!tt.ptr<f32>>
  %q = "tt.addptr"(%ps, %o) : (tensor<8x!tt.ptr<f32>>, tensor<8xi32>) -> tensor<8x!tt.ptr<f32>>
  %x = "tt.load"(%q, %m) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>, volatile = false} : (tensor<8x!tt.ptr<f32>>, tensor<8xi1>) -> tensor<8xf32>
  "tt.store"(%q, %x, %m) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 1>} : (tensor<8x!tt.ptr<f32>>, tensor<8xf32>, tensor<8xi1>) -> ()
  return
}

// CHECK-LABEL: func.func @uniform_other(
// CHECK-SAME: %[[A0:arg[0-9]+]]: !tt.ptr<f32>, %{{.*}}: i32, %[[A2:arg[0-9]+]]: i32, %[[A3:arg[0-9]+]]: f32
// CHECK-DAG: %[[C8:.*]] = arith.constant 8 : index
// CHECK-DAG: %[[C0:.*]] = arith.constant 0 : index
// CHECK-DAG: %[[C1:.*]] = arith.constant 1 : index
// CHECK: %[[V0:.*]] = arith.index_cast %{{.*}} : i32 to index
// CHECK-NEXT: %[[V1:.*]] = "tt.addptr"(%[[A0]], %[[V0]]) : (!tt.ptr<f32>, index) -> !tt.ptr<f32>
// CHECK-NEXT: %[[V2:.*]] = "tts.make_tptr"(%[[V1]], %[[C1]], %[[C0]]) {gathers = array<i64: 0>, operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>, order = array<i64: 0>, wraps = array<i64: 0>} : {{.*}} -> !tts.tptr<tensor<8xf32>>
// CHECK-NEXT: %[[V3:.*]] = arith.index_cast %[[A2]] : i32 to index
// CHECK-NEXT: %[[V4:.*]] = arith.subi %[[V3]], %[[V0]] : index
// CHECK-NEXT: %[[V5:.*]] = arith.minsi %[[V4]], %[[C8]] : index
// CHECK-NEXT: %[[V6:.*]] = arith.maxsi %[[V5]], %[[C0]] : index
// CHECK-NEXT: %[[V7:.*]] = "tts.load"(%[[V2]], %[[V6]], %[[A3]]) {operandSegmentSizes = array<i32: 1, 1, 0, 1, 0>} : {{.*}} -> tensor<8xf32>
// CHECK-NEXT: "tts.store"(%[[V2]], %[[V7]]) {operandSegmentSizes = array<i32: 1, 1, 0, 0, 0>}
func.func @uniform_other(%p: !tt.ptr<f32>, %pid: i32, %n: i32, %y: f32) attributes {tt.kernel} {
  %r = "tt.make_range"() {start = 0 : i32, end = 8 : i32} : () -> tensor<8xi32>
  %c8 = arith.constant 8 : i32
  %start = arith.muli %pid, %c8 : i32
  %s = "tt.splat"(%start) : (i32) -> tensor<8xi32>
  %o = arith.addi %s, %r : tensor<8xi32>
  %ps = "tt.splat"(%p) : (!tt.ptr<f32>) -> tensor<8x!tt.ptr<f32>>
  %q = "tt.addptr"(%ps, %o) : (tensor<8x!tt.ptr<f32>>, tensor<8xi32>) -> tensor<8x!tt.ptr<f32>>
  %ns = "tt.splat"(%n) : (i32) -> tensor<8xi32>
  %m = arith.cmpi slt, %o, %ns : tensor<8xi32>
  %ys = "tt.splat"(%y) : (f32) -> tensor<8xf32>
  %x = "tt.load"(%q, %m, %ys) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 1>, volatile = false} : (tensor<8x!tt.ptr<f32>>, tensor<8xi1>, tensor<8xf32>) -> tensor<8xf32>
  "tt.store"(%q, %x) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<8x!tt.ptr<f32>>, tensor<8xf32>) -> ()
  return
}

// CHECK-LABEL: func.func @constant_other(
// CHECK-SAME: %[[A0:arg[0-9]+]]: !tt.ptr<f32>, %{{.*}}: i32, %[[A2:arg[0-9]+]]: i32
// CHECK-DAG: %[[CST:.*]] = arith.constant 0xFF800000 : f32
// CHECK-DAG: %[[C8:.*]] = arith.constant 8 : index
// CHECK-DAG: %[[C0:.*]] = arith.constant 0 : index
// CHECK-DAG: %[[C1:.*]] = arith.constant 1 : index
// CHECK: %[[V0:.*]] = arith.index_cast %{{.*}} : i32 to index
// CHECK-NEXT: %[[V1:.*]] = "tt.addptr"(%[[A0]], %[[V0]]) : (!tt.ptr<f32>, index) -> !tt.ptr<f32>
// CHECK-NEXT: %[[V2:.*]] = "tts.make_tptr"(%[[V1]], %[[C1]], %[[C0]]) {gathers = array<i64: 0>, operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>, order = array<i64: 0>, wraps = array<i64: 0>} : {{.*}} -> !tts.tptr<tensor<8xf32>>
// CHECK-NEXT: %[[V3:.*]] = arith.index_cast %[[A2]] : i32 to index
// CHECK-NEXT: %[[V4:.*]] = arith.subi %[[V3]], %[[V0]] : index
// CHECK-NEXT: %[[V5:.*]] = arith.minsi %[[V4]], %[[C8]] : index
// CHECK-NEXT: %[[V6:.*]] = arith.maxsi %[[V5]], %[[C0]] : index
// CHECK-NEXT: %[[V7:.*]] = "tts.load"(%[[V2]], %[[V6]], %[[CST]]) {operandSegmentSizes = array<i32: 1, 1, 0, 1, 0>} : {{.*}} -> tensor<8xf32>
// CHECK-NEXT: "tts.store"(%[[V2]], %[[V7]]) {operandSegmentSizes = array<i32: 1, 1, 0, 0, 0>}
func.func @constant_other(%p: !tt.ptr<f32>, %pid: i32, %n: i32) attributes {tt.kernel} {
  %r = "tt.make_range"() {start = 0 : i32, end = 8 : i32} : () -> tensor<8xi32>
  %c8 = arith.constant 8 : i32
  %start = arith.muli %pid, %c8 : i32
  %s = "tt.splat"(%start) : (i32) -> tensor<8xi32>
  %o = arith.addi %s, %r : tensor<8xi32>
  %ps = "tt.splat"(%p) : (!tt.ptr<f32>) -> tensor<8x!tt.ptr<f32>>
  %q = "tt.addptr"(%ps, %o) : (tensor<8x!tt.ptr<f32>>, tensor<8xi32>) -> tensor<8x!tt.ptr<f32>>
  %ns = "tt.splat"(%n) : (i32) -> tensor<8xi32>
  %m = arith.cmpi slt, %o, %ns : tensor<8xi32>
  %ys = arith.constant dense<0xFF800000> : tensor<8xf32>
  %x = "tt.load"(%q, %m, %ys) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 1>, volatile = false} : (tensor<8x!tt.ptr<f32>>, tensor<8xi1>, tensor<8xf32>) -> tensor<8xf32>
  "tt.store"(%q, %x) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<8x!tt.ptr<f32>>, tensor<8xf32>) -> ()
  return
}

// CHECK-LABEL: func.func @other_that_varies_is_selected(
// CHECK-SAME: %[[A0:arg[0-9]+]]: !tt.ptr<f32>, %{{.*}}: i32, %[[A2:arg[0-9]+]]: i32, %[[A3:arg[0-9]+]]: tensor<8xf32>
// CHECK-DAG: %[[C8:.*]] = arith.constant 8 : index
// CHECK-DAG: %[[C0:.*]] = arith.constant 0 : index
// CHECK-DAG: %[[C1:.*]] = arith.constant 1 : index
// CHECK: %[[V0:.*]] = arith.cmpi slt, %{{.*}}, %{{.*}} : tensor<8xi32>
// CHECK-NEXT: %[[V1:.*]] = arith.index_cast %{{.*}} : i32 to index
// CHECK-NEXT: %[[V2:.*]] = "tt.addptr"(%[[A0]], %[[V1]]) : (!tt.ptr<f32>, index) -> !tt.ptr<f32>
// CHECK-NEXT: %[[V3:.*]] = "tts.make_tptr"(%[[V2]], %[[C1]], %[[C0]]) {gathers = array<i64: 0>, operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>, order = array<i64: 0>, wraps = array<i64: 0>} : {{.*}} -> !tts.tptr<tensor<8xf32>>
// CHECK-NEXT: %[[V4:.*]] = arith.index_cast %[[A2]] : i32 to index
// CHECK-NEXT: %[[V5:.*]] = arith.subi %[[V4]], %[[V1]] : index
// CHECK-NEXT: %[[V6:.*]] = arith.minsi %[[V5]], %[[C8]] : index
// CHECK-NEXT: %[[V7:.*]] = arith.maxsi %[[V6]], %[[C0]] : index
// CHECK-NEXT: %[[V8:.*]] = "tts.load"(%[[V3]], %[[V7]]) {operandSegmentSizes = array<i32: 1, 1, 0, 0, 0>} : {{.*}} -> tensor<8xf32>
// CHECK-NEXT: %[[V9:.*]] = arith.select %[[V0]], %[[V8]], %[[A3]] : tensor<8xi1>, tensor<8xf32>
// CHECK-NEXT: "tts.store"(%[[V3]], %[[V9]]) {operandSegmentSizes = array<i32: 1, 1, 0, 0, 0>}
func.func @other_that_varies_is_selected(%p: !tt.ptr<f32>, %pid: i32, %n: i32, %ys: tensor<8xf32>) attributes {tt.kernel} {
  %r = "tt.make_range"() {start = 0 : i32, end = 8 : i32} : () -> tensor<8xi32>
  %c8 = arith.constant 8 : i32
  %start = arith.muli %pid, %c8 : i32
  %s = "tt.splat"(%start) : (i32) -> tensor<8xi32>
  %o = arith.addi %s, %r : tensor<8xi32>
  %ps = "tt.splat"(%p) : (!tt.ptr<f32>) -> tensor<8x!tt.ptr<f32>>
  %q = "tt.addptr"(%ps, %o) : (tensor<8x!tt.ptr<f32>>, tensor<8xi32>) -> tensor<8x!tt.ptr<f32>>
  %ns = "tt.splat"(%n) : (i32) -> tensor<8xi32>
  %m = arith.cmpi slt, %o, %ns : tensor<8xi32>
  %x = "tt.load"(%q, %m, %ys) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 1>, volatile = false} : (tensor<8x!tt.ptr<f32>>, tensor<8xi1>, tensor<8xf32>) -> tensor<8xf32>
  "tt.store"(%q, %x) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<8x!tt.ptr<f32>>, tensor<8xf32>) -> ()
  return
}

// Without a mask there is nothing for `other` to fill.

// CHECK-LABEL: func.func @other_without_mask
// CHECK: %[[T:.*]] = "tts.make_tptr"(
// CHECK-NEXT: %[[X:.*]] = "tts.load"(%[[T]]) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0>}
// CHECK-NEXT: "tts.store"(%[[T]], %[[X]]) {operandSegmentSizes = array<i32: 1, 1, 0, 0, 0>}
func.func @other_without_mask(%p: !tt.ptr<f32>, %y: tensor<8xf32>) attributes {tt.kernel} {
  %r = "tt.make_range"() {start = 0 : i32, end = 8 : i32} : () -> tensor<8xi32>
  %ps = "tt.splat"(%p) : (!tt.ptr<f32>) -> tensor<8x!tt.ptr<f32>>
  %q = "tt.addptr"(%ps, %r) : (tensor<8x!tt.ptr<f32>>, tensor<8xi32>) -> tensor<8x!tt.ptr<f32>>
  %x = "tt.load"(%q, %y) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 1>, volatile = false} : (tensor<8x!tt.ptr<f32>>, tensor<8xf32>) -> tensor<8xf32>
  "tt.store"(%q, %x) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<8x!tt.ptr<f32>>, tensor<8xf32>) -> ()
  return
}

// CHECK-LABEL: func.func @wrap_around(
// CHECK-SAME: %[[A0:arg[0-9]+]]: !tt.ptr<f32>, %[[A1:arg[0-9]+]]: i32, %[[A2:arg[0-9]+]]: i32
// CHECK-DAG: %[[C1:.*]] = arith.constant 1 : index
// CHECK: %[[V0:.*]] = arith.index_cast %[[A2]] : i32 to index
// CHECK-NEXT: %[[V1:.*]] = arith.index_cast %[[A1]] : i32 to index
// CHECK-NEXT: %[[V2:.*]] = "tts.make_tptr"(%[[A0]], %[[C1]], %[[V1]], %[[V0]]) {gathers = array<i64: 0>, operandSegmentSizes = array<i32: 1, 1, 1, 1, 0>, order = array<i64: 0>, wraps = array<i64: 1>} : {{.*}} -> !tts.tptr<tensor<8xf32>>
// CHECK-NEXT: %[[V3:.*]] = "tts.load"(%[[V2]]) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0>} : {{.*}} -> tensor<8xf32>
// CHECK-NEXT: "tts.store"(%[[V2]], %[[V3]]) {operandSegmentSizes = array<i32: 1, 1, 0, 0, 0>}
func.func @wrap_around(%p: !tt.ptr<f32>, %pid: i32, %n: i32) attributes {tt.kernel} {
  %r = "tt.make_range"() {start = 0 : i32, end = 8 : i32} : () -> tensor<8xi32>
  %s = "tt.splat"(%pid) : (i32) -> tensor<8xi32>
  %o = arith.addi %s, %r : tensor<8xi32>
  %ns = "tt.splat"(%n) : (i32) -> tensor<8xi32>
  %w = arith.remsi %o, %ns : tensor<8xi32>
  %ps = "tt.splat"(%p) : (!tt.ptr<f32>) -> tensor<8x!tt.ptr<f32>>
  %q = "tt.addptr"(%ps, %w) : (tensor<8x!tt.ptr<f32>>, tensor<8xi32>) -> tensor<8x!tt.ptr<f32>>
  %x = "tt.load"(%q) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<8x!tt.ptr<f32>>) -> tensor<8xf32>
  "tt.store"(%q, %x) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<8x!tt.ptr<f32>>, tensor<8xf32>) -> ()
  return
}

// CHECK-LABEL: func.func @scaled_wrap_around(
// CHECK-SAME: %[[A0:arg[0-9]+]]: !tt.ptr<f32>, %[[A1:arg[0-9]+]]: i32, %[[A2:arg[0-9]+]]: i32, %[[A3:arg[0-9]+]]: i32
// CHECK: %[[V0:.*]] = arith.index_cast %[[A2]] : i32 to index
// CHECK-NEXT: %[[V1:.*]] = arith.index_cast %[[A3]] : i32 to index
// CHECK-NEXT: %[[V2:.*]] = arith.muli %[[V0]], %[[V1]] : index
// CHECK-NEXT: %[[V3:.*]] = arith.index_cast %[[A1]] : i32 to index
// CHECK-NEXT: %[[V4:.*]] = arith.muli %[[V3]], %[[V1]] : index
// CHECK-NEXT: %[[V5:.*]] = "tts.make_tptr"(%[[A0]], %[[V1]], %[[V4]], %[[V2]]) {gathers = array<i64: 0>, operandSegmentSizes = array<i32: 1, 1, 1, 1, 0>, order = array<i64: 0>, wraps = array<i64: 1>} : {{.*}} -> !tts.tptr<tensor<8xf32>>
// CHECK-NEXT: %[[V6:.*]] = "tts.load"(%[[V5]]) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0>} : {{.*}} -> tensor<8xf32>
// CHECK-NEXT: "tts.store"(%[[V5]], %[[V6]]) {operandSegmentSizes = array<i32: 1, 1, 0, 0, 0>}
func.func @scaled_wrap_around(%p: !tt.ptr<f32>, %pid: i32, %n: i32, %stride: i32) attributes {tt.kernel} {
  %r = "tt.make_range"() {start = 0 : i32, end = 8 : i32} : () -> tensor<8xi32>
  %s = "tt.splat"(%pid) : (i32) -> tensor<8xi32>
  %o = arith.addi %s, %r : tensor<8xi32>
  %ns = "tt.splat"(%n) : (i32) -> tensor<8xi32>
  %w0 = arith.remsi %o, %ns : tensor<8xi32>
  %st = "tt.splat"(%stride) : (i32) -> tensor<8xi32>
  %w = arith.muli %w0, %st : tensor<8xi32>
  %ps = "tt.splat"(%p) : (!tt.ptr<f32>) -> tensor<8x!tt.ptr<f32>>
  %q = "tt.addptr"(%ps, %w) : (tensor<8x!tt.ptr<f32>>, tensor<8xi32>) -> tensor<8x!tt.ptr<f32>>
  %x = "tt.load"(%q) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<8x!tt.ptr<f32>>) -> tensor<8xf32>
  "tt.store"(%q, %x) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<8x!tt.ptr<f32>>, tensor<8xf32>) -> ()
  return
}

// CHECK-LABEL: func.func @remainder_of_a_uniform_value(
// CHECK-SAME: %[[A0:arg[0-9]+]]: !tt.ptr<f32>, %[[A1:arg[0-9]+]]: i32, %[[A2:arg[0-9]+]]: i32
// CHECK-DAG: %[[C1:.*]] = arith.constant 1 : index
// CHECK-DAG: %[[C0:.*]] = arith.constant 0 : index
// CHECK: %[[V0:.*]] = arith.index_cast %[[A1]] : i32 to index
// CHECK-NEXT: %[[V1:.*]] = arith.index_cast %[[A2]] : i32 to index
// CHECK-NEXT: %[[V2:.*]] = arith.cmpi eq, %[[V1]], %[[C0]] : index
// CHECK-NEXT: %[[V3:.*]] = arith.select %[[V2]], %[[C1]], %[[V1]] : index
// CHECK-NEXT: %[[V4:.*]] = arith.remsi %[[V0]], %[[V3]] : index
// CHECK-NEXT: %[[V5:.*]] = "tt.addptr"(%[[A0]], %[[V4]]) : (!tt.ptr<f32>, index) -> !tt.ptr<f32>
// CHECK-NEXT: %[[V6:.*]] = "tts.make_tptr"(%[[V5]], %[[C1]], %[[C0]]) {gathers = array<i64: 0>, operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>, order = array<i64: 0>, wraps = array<i64: 0>} : {{.*}} -> !tts.tptr<tensor<8xf32>>
// CHECK-NEXT: %[[V7:.*]] = "tts.load"(%[[V6]]) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0>} : {{.*}} -> tensor<8xf32>
// CHECK-NEXT: "tts.store"(%[[V6]], %[[V7]]) {operandSegmentSizes = array<i32: 1, 1, 0, 0, 0>}
func.func @remainder_of_a_uniform_value(%p: !tt.ptr<f32>, %pid: i32, %n: i32) attributes {tt.kernel} {
  %r = "tt.make_range"() {start = 0 : i32, end = 8 : i32} : () -> tensor<8xi32>
  %s = "tt.splat"(%pid) : (i32) -> tensor<8xi32>
  %ns = "tt.splat"(%n) : (i32) -> tensor<8xi32>
  %w = arith.remsi %s, %ns : tensor<8xi32>
  %o = arith.addi %w, %r : tensor<8xi32>
  %ps = "tt.splat"(%p) : (!tt.ptr<f32>) -> tensor<8x!tt.ptr<f32>>
  %q = "tt.addptr"(%ps, %o) : (tensor<8x!tt.ptr<f32>>, tensor<8xi32>) -> tensor<8x!tt.ptr<f32>>
  %x = "tt.load"(%q) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<8x!tt.ptr<f32>>) -> tensor<8xf32>
  "tt.store"(%q, %x) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<8x!tt.ptr<f32>>, tensor<8xf32>) -> ()
  return
}

// CHECK-LABEL: func.func @remainder_of_a_sum_stays
// CHECK-NOT: tts
// CHECK: "tt.load"
// CHECK-NEXT: "tt.store"
func.func @remainder_of_a_sum_stays(%p: !tt.ptr<f32>, %pid: i32, %n: i32) attributes {tt.kernel} {
  %r = "tt.make_range"() {start = 0 : i32, end = 4 : i32} : () -> tensor<4xi32>
  %r1 = "tt.expand_dims"(%r) {axis = 1 : i32} : (tensor<4xi32>) -> tensor<4x1xi32>
  %r3 = "tt.broadcast"(%r1) : (tensor<4x1xi32>) -> tensor<4x8xi32>
  %c = "tt.make_range"() {start = 0 : i32, end = 8 : i32} : () -> tensor<8xi32>
  %c1 = "tt.expand_dims"(%c) {axis = 0 : i32} : (tensor<8xi32>) -> tensor<1x8xi32>
  %c3 = "tt.broadcast"(%c1) : (tensor<1x8xi32>) -> tensor<4x8xi32>
  %o = arith.addi %r3, %c3 : tensor<4x8xi32>
  %ns = "tt.splat"(%n) : (i32) -> tensor<4x8xi32>
  %w = arith.remsi %o, %ns : tensor<4x8xi32>
  %ps = "tt.splat"(%p) : (!tt.ptr<f32>) -> tensor<4x8x!tt.ptr<f32>>
  %q = "tt.addptr"(%ps, %w) : (tensor<4x8x!tt.ptr<f32>>, tensor<4x8xi32>) -> tensor<4x8x!tt.ptr<f32>>
  %x = "tt.load"(%q) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<4x8x!tt.ptr<f32>>) -> tensor<4x8xf32>
  "tt.store"(%q, %x) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<4x8x!tt.ptr<f32>>, tensor<4x8xf32>) -> ()
  return
}

// CHECK-LABEL: func.func @sum_of_remainders_stays
// CHECK-NOT: tts
// CHECK: "tt.load"
// CHECK-NEXT: "tt.store"
func.func @sum_of_remainders_stays(%p: !tt.ptr<f32>, %pid: i32, %n: i32) attributes {tt.kernel} {
  %r = "tt.make_range"() {start = 0 : i32, end = 8 : i32} : () -> tensor<8xi32>
  %s = "tt.splat"(%pid) : (i32) -> tensor<8xi32>
  %ns = "tt.splat"(%n) : (i32) -> tensor<8xi32>
  %w = arith.remsi %r, %ns : tensor<8xi32>
  %w2 = arith.remsi %r, %s : tensor<8xi32>
  %o = arith.addi %w, %w2 : tensor<8xi32>
  %ps = "tt.splat"(%p) : (!tt.ptr<f32>) -> tensor<8x!tt.ptr<f32>>
  %q = "tt.addptr"(%ps, %o) : (tensor<8x!tt.ptr<f32>>, tensor<8xi32>) -> tensor<8x!tt.ptr<f32>>
  %x = "tt.load"(%q) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<8x!tt.ptr<f32>>) -> tensor<8xf32>
  "tt.store"(%q, %x) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<8x!tt.ptr<f32>>, tensor<8xf32>) -> ()
  return
}

// CHECK-LABEL: func.func @gather_stays
// CHECK-NOT: tts
// CHECK: "tt.load"
// CHECK-NEXT: "tt.store"
func.func @gather_stays(%p: !tt.ptr<f32>, %o: tensor<8xi32>) attributes {tt.kernel} {
  %ps = "tt.splat"(%p) : (!tt.ptr<f32>) -> tensor<8x!tt.ptr<f32>>
  %q = "tt.addptr"(%ps, %o) : (tensor<8x!tt.ptr<f32>>, tensor<8xi32>) -> tensor<8x!tt.ptr<f32>>
  %x = "tt.load"(%q) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<8x!tt.ptr<f32>>) -> tensor<8xf32>
  "tt.store"(%q, %x) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<8x!tt.ptr<f32>>, tensor<8xf32>) -> ()
  return
}

// CHECK-LABEL: func.func @product_of_ranges_stays
// CHECK-NOT: tts
// CHECK: "tt.load"
// CHECK-NEXT: "tt.store"
func.func @product_of_ranges_stays(%p: !tt.ptr<f32>) attributes {tt.kernel} {
  %r = "tt.make_range"() {start = 0 : i32, end = 8 : i32} : () -> tensor<8xi32>
  %o = arith.muli %r, %r : tensor<8xi32>
  %ps = "tt.splat"(%p) : (!tt.ptr<f32>) -> tensor<8x!tt.ptr<f32>>
  %q = "tt.addptr"(%ps, %o) : (tensor<8x!tt.ptr<f32>>, tensor<8xi32>) -> tensor<8x!tt.ptr<f32>>
  %x = "tt.load"(%q) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<8x!tt.ptr<f32>>) -> tensor<8xf32>
  "tt.store"(%q, %x) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<8x!tt.ptr<f32>>, tensor<8xf32>) -> ()
  return
}

// CHECK-LABEL: func.func @division_stays
// CHECK-NOT: tts
// CHECK: "tt.load"
// CHECK-NEXT: "tt.store"
func.func @division_stays(%p: !tt.ptr<f32>) attributes {tt.kernel} {
  %r = "tt.make_range"() {start = 0 : i32, end = 8 : i32} : () -> tensor<8xi32>
  %k = arith.constant dense<2> : tensor<8xi32>
  %o = arith.divsi %r, %k : tensor<8xi32>
  %ps = "tt.splat"(%p) : (!tt.ptr<f32>) -> tensor<8x!tt.ptr<f32>>
  %q = "tt.addptr"(%ps, %o) : (tensor<8x!tt.ptr<f32>>, tensor<8xi32>) -> tensor<8x!tt.ptr<f32>>
  %x = "tt.load"(%q) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<8x!tt.ptr<f32>>) -> tensor<8xf32>
  "tt.store"(%q, %x) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<8x!tt.ptr<f32>>, tensor<8xf32>) -> ()
  return
}

// CHECK-LABEL: func.func @scalars_stay
// CHECK-NOT: tts
// CHECK: "tt.load"
// CHECK-NEXT: "tt.store"
func.func @scalars_stay(%p: !tt.ptr<f32>) attributes {tt.kernel} {
  %x = "tt.load"(%p) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (!tt.ptr<f32>) -> f32
  "tt.store"(%p, %x) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>} : (!tt.ptr<f32>, f32) -> ()
  return
}

// CHECK-LABEL: func.func @negative_stride(
// CHECK-SAME: %[[A0:arg[0-9]+]]: !tt.ptr<f32>
// CHECK-DAG: %[[C0:.*]] = arith.constant 0 : index
// CHECK-DAG: %[[CM1:.*]] = arith.constant -1 : index
// CHECK-DAG: %[[C7:.*]] = arith.constant 7 : index
// CHECK: %[[V0:.*]] = "tt.addptr"(%[[A0]], %[[C7]]) : (!tt.ptr<f32>, index) -> !tt.ptr<f32>
// CHECK-NEXT: %[[V1:.*]] = "tts.make_tptr"(%[[V0]], %[[CM1]], %[[C0]]) {gathers = array<i64: 0>, operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>, order = array<i64: 0>, wraps = array<i64: 0>} : {{.*}} -> !tts.tptr<tensor<8xf32>>
// CHECK-NEXT: %[[V2:.*]] = "tts.load"(%[[V1]]) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0>} : {{.*}} -> tensor<8xf32>
// CHECK-NEXT: "tts.store"(%[[V1]], %[[V2]]) {operandSegmentSizes = array<i32: 1, 1, 0, 0, 0>}
func.func @negative_stride(%p: !tt.ptr<f32>) attributes {tt.kernel} {
  %r = "tt.make_range"() {start = 0 : i32, end = 8 : i32} : () -> tensor<8xi32>
  %k = arith.constant dense<7> : tensor<8xi32>
  %o = arith.subi %k, %r : tensor<8xi32>
  %ps = "tt.splat"(%p) : (!tt.ptr<f32>) -> tensor<8x!tt.ptr<f32>>
  %q = "tt.addptr"(%ps, %o) : (tensor<8x!tt.ptr<f32>>, tensor<8xi32>) -> tensor<8x!tt.ptr<f32>>
  %x = "tt.load"(%q) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<8x!tt.ptr<f32>>) -> tensor<8xf32>
  "tt.store"(%q, %x) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<8x!tt.ptr<f32>>, tensor<8xf32>) -> ()
  return
}

// CHECK-LABEL: func.func @a_carried_pointer_is_an_index(
// CHECK-SAME: %[[A0:arg[0-9]+]]: !tt.ptr<f32>, %[[A1:arg[0-9]+]]: i32, %[[A2:arg[0-9]+]]: i32
// CHECK-DAG: %[[C1:.*]] = arith.constant 1 : index
// CHECK-DAG: %[[C0:.*]] = arith.constant 0 : index
// CHECK-DAG: %[[C1_I32:.*]] = arith.constant 1 : i32
// CHECK-DAG: %[[C0_I32:.*]] = arith.constant 0 : i32
// CHECK: %{{.*}} = scf.for %[[A3:arg[0-9]+]] = %[[C0_I32]] to %[[A1]] step %[[C1_I32]] iter_args(%[[A4:arg[0-9]+]] = %[[C0]]) -> (index)  : i32 {
// CHECK-NEXT: %[[V0:.*]] = "tt.addptr"(%[[A0]], %[[A4]]) : (!tt.ptr<f32>, index) -> !tt.ptr<f32>
// CHECK-NEXT: %[[V1:.*]] = "tts.make_tptr"(%[[V0]], %[[C1]], %[[C0]]) {gathers = array<i64: 0>, operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>, order = array<i64: 0>, wraps = array<i64: 0>} : {{.*}} -> !tts.tptr<tensor<8xf32>>
// CHECK-NEXT: %[[V2:.*]] = "tts.load"(%[[V1]]) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0>} : {{.*}} -> tensor<8xf32>
// CHECK-NEXT: "tts.store"(%[[V1]], %[[V2]]) {operandSegmentSizes = array<i32: 1, 1, 0, 0, 0>}
// CHECK-NEXT: %[[V3:.*]] = arith.index_cast %[[A2]] : i32 to index
// CHECK-NEXT: %[[V4:.*]] = arith.addi %[[A4]], %[[V3]] : index
// CHECK-NEXT: scf.yield %[[V4]] : index
func.func @a_carried_pointer_is_an_index(%p: !tt.ptr<f32>, %n: i32, %step: i32) attributes {tt.kernel} {
  %r = "tt.make_range"() {start = 0 : i32, end = 8 : i32} : () -> tensor<8xi32>
  %ps = "tt.splat"(%p) : (!tt.ptr<f32>) -> tensor<8x!tt.ptr<f32>>
  %q0 = "tt.addptr"(%ps, %r) : (tensor<8x!tt.ptr<f32>>, tensor<8xi32>) -> tensor<8x!tt.ptr<f32>>
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %st = "tt.splat"(%step) : (i32) -> tensor<8xi32>
  %e = scf.for %i = %c0 to %n step %c1 iter_args(%q = %q0) -> (tensor<8x!tt.ptr<f32>>) : i32 {
    %x = "tt.load"(%q) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<8x!tt.ptr<f32>>) -> tensor<8xf32>
    "tt.store"(%q, %x) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<8x!tt.ptr<f32>>, tensor<8xf32>) -> ()
    %next = "tt.addptr"(%q, %st) : (tensor<8x!tt.ptr<f32>>, tensor<8xi32>) -> tensor<8x!tt.ptr<f32>>
    scf.yield %next : tensor<8x!tt.ptr<f32>>
  }
  return
}

// CHECK-LABEL: func.func @a_carried_pointer_that_gathers_stays
// CHECK-NOT: tts
// CHECK: "tt.load"
// CHECK-NEXT: "tt.store"
func.func @a_carried_pointer_that_gathers_stays(%p: !tt.ptr<f32>, %n: i32, %d: tensor<8xi32>) attributes {tt.kernel} {
  %r = "tt.make_range"() {start = 0 : i32, end = 8 : i32} : () -> tensor<8xi32>
  %ps = "tt.splat"(%p) : (!tt.ptr<f32>) -> tensor<8x!tt.ptr<f32>>
  %q0 = "tt.addptr"(%ps, %r) : (tensor<8x!tt.ptr<f32>>, tensor<8xi32>) -> tensor<8x!tt.ptr<f32>>
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %e = scf.for %i = %c0 to %n step %c1 iter_args(%q = %q0) -> (tensor<8x!tt.ptr<f32>>) : i32 {
    %x = "tt.load"(%q) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<8x!tt.ptr<f32>>) -> tensor<8xf32>
    "tt.store"(%q, %x) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<8x!tt.ptr<f32>>, tensor<8xf32>) -> ()
    %next = "tt.addptr"(%q, %d) : (tensor<8x!tt.ptr<f32>>, tensor<8xi32>) -> tensor<8x!tt.ptr<f32>>
    scf.yield %next : tensor<8x!tt.ptr<f32>>
  }
  return
}

// CHECK-LABEL: func.func @a_carried_mask_index(
// CHECK-SAME: %[[A0:arg[0-9]+]]: !tt.ptr<f32>, %[[A1:arg[0-9]+]]: i32, %[[A2:arg[0-9]+]]: i32
// CHECK-DAG: %[[C8:.*]] = arith.constant 8 : index
// CHECK-DAG: %[[C1:.*]] = arith.constant 1 : index
// CHECK-DAG: %[[C0:.*]] = arith.constant 0 : index
// CHECK-DAG: %[[C1_I32:.*]] = arith.constant 1 : i32
// CHECK-DAG: %[[C0_I32:.*]] = arith.constant 0 : i32
// CHECK: %{{.*}} = scf.for %[[A3:arg[0-9]+]] = %[[C0_I32]] to %[[A1]] step %[[C1_I32]] iter_args(%[[A4:arg[0-9]+]] = %[[C0]]) -> (index)  : i32 {
// CHECK-NEXT: %[[CUT:.*]] = arith.index_cast %[[A4]] : index to i32
// CHECK-NEXT: %[[AT:.*]] = arith.index_cast %[[CUT]] : i32 to index
// CHECK-NEXT: %[[V0:.*]] = "tt.addptr"(%[[A0]], %[[AT]]) : (!tt.ptr<f32>, index) -> !tt.ptr<f32>
// CHECK-NEXT: %[[V1:.*]] = "tts.make_tptr"(%[[V0]], %[[C1]], %[[C0]]) {gathers = array<i64: 0>, operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>, order = array<i64: 0>, wraps = array<i64: 0>} : {{.*}} -> !tts.tptr<tensor<8xf32>>
// CHECK-NEXT: %[[V2:.*]] = arith.index_cast %[[A2]] : i32 to index
// CHECK-NEXT: %[[V3:.*]] = arith.subi %[[V2]], %[[AT]] : index
// CHECK-NEXT: %[[V4:.*]] = arith.minsi %[[V3]], %[[C8]] : index
// CHECK-NEXT: %[[V5:.*]] = arith.maxsi %[[V4]], %[[C0]] : index
// CHECK-NEXT: %[[V6:.*]] = "tts.load"(%[[V1]], %[[V5]]) {operandSegmentSizes = array<i32: 1, 1, 0, 0, 0>} : {{.*}} -> tensor<8xf32>
// CHECK-NEXT: "tts.store"(%[[V1]], %[[V6]], %[[V5]]) {operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>}
// CHECK-NEXT: %[[V7:.*]] = arith.addi %[[AT]], %[[C8]] : index
// CHECK-NEXT: scf.yield %[[V7]] : index
func.func @a_carried_mask_index(%p: !tt.ptr<f32>, %n: i32, %m: i32) attributes {tt.kernel} {
  %r = "tt.make_range"() {start = 0 : i32, end = 8 : i32} : () -> tensor<8xi32>
  %ps = "tt.splat"(%p) : (!tt.ptr<f32>) -> tensor<8x!tt.ptr<f32>>
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %k = arith.constant dense<8> : tensor<8xi32>
  %ms = "tt.splat"(%m) : (i32) -> tensor<8xi32>
  %e = scf.for %i = %c0 to %n step %c1 iter_args(%o = %r) -> (tensor<8xi32>) : i32 {
    %q = "tt.addptr"(%ps, %o) : (tensor<8x!tt.ptr<f32>>, tensor<8xi32>) -> tensor<8x!tt.ptr<f32>>
    %b = arith.cmpi slt, %o, %ms : tensor<8xi32>
    %x = "tt.load"(%q, %b) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>, volatile = false} : (tensor<8x!tt.ptr<f32>>, tensor<8xi1>) -> tensor<8xf32>
    "tt.store"(%q, %x, %b) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 1>} : (tensor<8x!tt.ptr<f32>>, tensor<8xf32>, tensor<8xi1>) -> ()
    %next = arith.addi %o, %k : tensor<8xi32>
    scf.yield %next : tensor<8xi32>
  }
  return
}

// A dividend with a large factor overflows its 32 bits on purpose; an index would not.

// CHECK-LABEL: func.func @remainder_of_a_hash_stays
// CHECK-NOT: tts
// CHECK: "tt.load"
// CHECK-NEXT: "tt.store"
func.func @remainder_of_a_hash_stays(%p: !tt.ptr<f32>, %pid: i32, %n: i32) attributes {tt.kernel} {
  %r = "tt.make_range"() {start = 0 : i32, end = 8 : i32} : () -> tensor<8xi32>
  %s = "tt.splat"(%pid) : (i32) -> tensor<8xi32>
  %o = arith.addi %s, %r : tensor<8xi32>
  %k = arith.constant dense<2654435> : tensor<8xi32>
  %h = arith.muli %o, %k : tensor<8xi32>
  %ns = "tt.splat"(%n) : (i32) -> tensor<8xi32>
  %w = arith.remsi %h, %ns : tensor<8xi32>
  %ps = "tt.splat"(%p) : (!tt.ptr<f32>) -> tensor<8x!tt.ptr<f32>>
  %q = "tt.addptr"(%ps, %w) : (tensor<8x!tt.ptr<f32>>, tensor<8xi32>) -> tensor<8x!tt.ptr<f32>>
  %x = "tt.load"(%q) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<8x!tt.ptr<f32>>) -> tensor<8xf32>
  "tt.store"(%q, %x) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<8x!tt.ptr<f32>>, tensor<8xf32>) -> ()
  return
}

// What a loop multiplies must wrap in the tensor's own width, so it is not carried as an index.

// CHECK-LABEL: func.func @a_carried_random_number_stays
// CHECK-NOT: -> (index)
// CHECK: %[[E:.*]] = scf.for {{.*}} iter_args(%[[X:.*]] = %{{.*}}) -> (tensor<8xi32>)
// CHECK-NEXT: %[[T:.*]] = arith.muli %[[X]], %{{.*}} : tensor<8xi32>
// CHECK-NEXT: %[[U:.*]] = arith.addi %[[T]], %{{.*}} : tensor<8xi32>
// CHECK-NEXT: %[[V:.*]] = arith.remsi %[[U]], %{{.*}} : tensor<8xi32>
// CHECK-NEXT: scf.yield %[[V]] : tensor<8xi32>
// CHECK: "tts.store"(%{{.*}}, %[[E]])
func.func @a_carried_random_number_stays(%p: !tt.ptr<i32>, %n: i32) attributes {tt.kernel} {
  %r = "tt.make_range"() {start = 0 : i32, end = 8 : i32} : () -> tensor<8xi32>
  %ps = "tt.splat"(%p) : (!tt.ptr<i32>) -> tensor<8x!tt.ptr<i32>>
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %a = arith.constant dense<1103515245> : tensor<8xi32>
  %b = arith.constant dense<12345> : tensor<8xi32>
  %m = arith.constant dense<65536> : tensor<8xi32>
  %seed = arith.constant dense<42> : tensor<8xi32>
  %q = "tt.addptr"(%ps, %r) : (tensor<8x!tt.ptr<i32>>, tensor<8xi32>) -> tensor<8x!tt.ptr<i32>>
  %e = scf.for %i = %c0 to %n step %c1 iter_args(%x = %seed) -> (tensor<8xi32>) : i32 {
    %t = arith.muli %x, %a : tensor<8xi32>
    %u = arith.addi %t, %b : tensor<8xi32>
    %v = arith.remsi %u, %m : tensor<8xi32>
    scf.yield %v : tensor<8xi32>
  }
  "tt.store"(%q, %e) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<8x!tt.ptr<i32>>, tensor<8xi32>) -> ()
  return
}

// Nor what moves by something that the loop changes.

// CHECK-LABEL: func.func @a_carried_sum_of_products_stays
// CHECK-NOT: tts
// CHECK: scf.for {{.*}} -> (tensor<8xi32>, tensor<8xi32>)
// CHECK-NOT: tts
// CHECK: "tt.load"
// CHECK-NEXT: "tt.store"
func.func @a_carried_sum_of_products_stays(%p: !tt.ptr<f32>, %n: i32) attributes {tt.kernel} {
  %r = "tt.make_range"() {start = 0 : i32, end = 8 : i32} : () -> tensor<8xi32>
  %ps = "tt.splat"(%p) : (!tt.ptr<f32>) -> tensor<8x!tt.ptr<f32>>
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %one = arith.constant dense<1> : tensor<8xi32>
  %k = arith.constant dense<3> : tensor<8xi32>
  %e:2 = scf.for %i = %c0 to %n step %c1 iter_args(%x = %one, %y = %r) -> (tensor<8xi32>, tensor<8xi32>) : i32 {
    %q = "tt.addptr"(%ps, %y) : (tensor<8x!tt.ptr<f32>>, tensor<8xi32>) -> tensor<8x!tt.ptr<f32>>
    %v = "tt.load"(%q) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<8x!tt.ptr<f32>>) -> tensor<8xf32>
    "tt.store"(%q, %v) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<8x!tt.ptr<f32>>, tensor<8xf32>) -> ()
    %x2 = arith.muli %x, %k : tensor<8xi32>
    %y2 = arith.addi %y, %x : tensor<8xi32>
    scf.yield %x2, %y2 : tensor<8xi32>, tensor<8xi32>
  }
  return
}

// A bit is no number: the sum of two is not the sum of two indices.

// CHECK-LABEL: func.func @a_carried_bit_stays
// CHECK: scf.for {{.*}} iter_args(%[[M:.*]] = %{{.*}}) -> (tensor<8xi1>)
// CHECK: "tts.load"(%{{.*}}, %[[M]])
// CHECK-NEXT: "tts.store"(%{{.*}}, %{{.*}}, %[[M]])
// CHECK-NEXT: %[[NEXT:.*]] = arith.addi %[[M]], %{{.*}} : tensor<8xi1>
// CHECK-NEXT: scf.yield %[[NEXT]] : tensor<8xi1>
func.func @a_carried_bit_stays(%p: !tt.ptr<f32>, %n: i32, %c: i1, %d: i1) attributes {tt.kernel} {
  %r = "tt.make_range"() {start = 0 : i32, end = 8 : i32} : () -> tensor<8xi32>
  %ps = "tt.splat"(%p) : (!tt.ptr<f32>) -> tensor<8x!tt.ptr<f32>>
  %q = "tt.addptr"(%ps, %r) : (tensor<8x!tt.ptr<f32>>, tensor<8xi32>) -> tensor<8x!tt.ptr<f32>>
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %cs = "tt.splat"(%c) : (i1) -> tensor<8xi1>
  %ds = "tt.splat"(%d) : (i1) -> tensor<8xi1>
  %e = scf.for %i = %c0 to %n step %c1 iter_args(%m = %cs) -> (tensor<8xi1>) : i32 {
    %x = "tt.load"(%q, %m) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>, volatile = false} : (tensor<8x!tt.ptr<f32>>, tensor<8xi1>) -> tensor<8xf32>
    "tt.store"(%q, %x, %m) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 1>} : (tensor<8x!tt.ptr<f32>>, tensor<8xf32>, tensor<8xi1>) -> ()
    %next = arith.addi %m, %ds : tensor<8xi1>
    scf.yield %next : tensor<8xi1>
  }
  return
}
