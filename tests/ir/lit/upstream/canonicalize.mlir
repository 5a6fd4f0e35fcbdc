// RUN: proton-opt %s --pipeline=canonicalize | filecheck %s
// RUN: proton-opt %s --pipeline=trivial-dce | filecheck %s --check-prefix=DCE

// CHECK-LABEL: func.func @dead_pure_ops_go
// CHECK-NEXT: return
// DCE-LABEL: func.func @dead_pure_ops_go
// DCE-NEXT: return
func.func @dead_pure_ops_go(%p: !tt.ptr<f32>, %x: tensor<4x2xf32>) {
  %pid = "tt.get_program_id"() {axis = 0 : i32} : () -> i32
  %q = "tt.addptr"(%p, %pid) : (!tt.ptr<f32>, i32) -> !tt.ptr<f32>
  %s = "tt.splat"(%q) : (!tt.ptr<f32>) -> tensor<4x!tt.ptr<f32>>
  %t = "tt.trans"(%x) {order = array<i64: 1, 0>} : (tensor<4x2xf32>) -> tensor<2x4xf32>
  %h:2 = "tt.split"(%x) : (tensor<4x2xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  return
}

// CHECK-LABEL: func.func @stores_and_assertions_stay
// CHECK: "tt.store"
// CHECK: "tt.assert"
// DCE-LABEL: func.func @stores_and_assertions_stay
// DCE: "tt.store"
// DCE: "tt.assert"
func.func @stores_and_assertions_stay(%p: !tt.ptr<f32>, %x: f32, %c: i1) {
  "tt.store"(%p, %x) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>} : (!tt.ptr<f32>, f32) -> ()
  "tt.assert"(%c) {message = "c"} : (i1) -> ()
  return
}

// CHECK-LABEL: func.func @an_atomic_whose_result_is_dead_stays
// CHECK: "tt.atomic_rmw"
// CHECK: "tt.atomic_cas"
// DCE-LABEL: func.func @an_atomic_whose_result_is_dead_stays
// DCE: "tt.atomic_rmw"
// DCE: "tt.atomic_cas"
func.func @an_atomic_whose_result_is_dead_stays(%p: !tt.ptr<i32>, %x: i32) {
  %0 = "tt.atomic_rmw"(%p, %x) {rmw_op = "add", sem = "relaxed", scope = "gpu", operandSegmentSizes = array<i32: 1, 1, 0>} : (!tt.ptr<i32>, i32) -> i32
  %1 = "tt.atomic_cas"(%p, %x, %x) {sem = "relaxed", scope = "gpu"} : (!tt.ptr<i32>, i32, i32) -> i32
  return
}
