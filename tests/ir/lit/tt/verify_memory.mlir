// RUN: proton-opt %s --split-input-file --verify-diagnostics
// Each rule of the verifiers of loads, stores, atomics and reductions, broken once.

func.func @load_of_number(%p: i64) {
  // expected-error@+1 {{'tt.load' operand 0 must be pointers, got i64}}
  %0 = "tt.load"(%p) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (i64) -> i64
  return
}
// -----
func.func @load_type(%p: !tt.ptr<f32>) {
  // expected-error@+1 {{'tt.load' result must be of f32, got f16}}
  %0 = "tt.load"(%p) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (!tt.ptr<f32>) -> f16
  return
}
// -----
func.func @load_mask(%p: tensor<4x!tt.ptr<f32>>, %m: tensor<8xi1>) {
  // expected-error@+1 {{'tt.load' mask must have shape (4,), got (8,)}}
  %0 = "tt.load"(%p, %m) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>, volatile = false} : (tensor<4x!tt.ptr<f32>>, tensor<8xi1>) -> tensor<4xf32>
  return
}
// -----
func.func @store_to_number(%p: i64, %v: f32) {
  // expected-error@+1 {{'tt.store' operand 0 must be pointers, got i64}}
  "tt.store"(%p, %v) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>} : (i64, f32) -> ()
  return
}
// -----
func.func @store_type(%p: !tt.ptr<f32>, %v: i32) {
  // expected-error@+1 {{'tt.store' value must be of f32, got i32}}
  "tt.store"(%p, %v) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>} : (!tt.ptr<f32>, i32) -> ()
  return
}
// -----
func.func @store_mask(%p: tensor<4x!tt.ptr<f32>>, %v: tensor<4xf32>, %m: i1) {
  // expected-error@+1 {{'tt.store' mask must have shape (4,), got ()}}
  "tt.store"(%p, %v, %m) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 1>} : (tensor<4x!tt.ptr<f32>>, tensor<4xf32>, i1) -> ()
  return
}
// -----
func.func @rmw_op(%p: !tt.ptr<i32>, %v: i32) {
  // expected-error@+1 {{'tt.atomic_rmw' rmw_op must be one of}}
  %0 = "tt.atomic_rmw"(%p, %v) {rmw_op = "nand", sem = "relaxed", scope = "gpu", operandSegmentSizes = array<i32: 1, 1, 0>} : (!tt.ptr<i32>, i32) -> i32
  return
}
// -----
func.func @rmw_sem(%p: !tt.ptr<i32>, %v: i32) {
  // expected-error@+1 {{'tt.atomic_rmw' sem must be one of}}
  %0 = "tt.atomic_rmw"(%p, %v) {rmw_op = "add", sem = "seq_cst", scope = "gpu", operandSegmentSizes = array<i32: 1, 1, 0>} : (!tt.ptr<i32>, i32) -> i32
  return
}
// -----
func.func @rmw_scope(%p: !tt.ptr<i32>, %v: i32) {
  // expected-error@+1 {{'tt.atomic_rmw' scope must be one of}}
  %0 = "tt.atomic_rmw"(%p, %v) {rmw_op = "add", sem = "relaxed", scope = "warp", operandSegmentSizes = array<i32: 1, 1, 0>} : (!tt.ptr<i32>, i32) -> i32
  return
}
// -----
func.func @rmw_type(%p: !tt.ptr<i32>, %v: i64) {
  // expected-error@+1 {{'tt.atomic_rmw' value must be of i32, got i64}}
  %0 = "tt.atomic_rmw"(%p, %v) {rmw_op = "add", sem = "relaxed", scope = "gpu", operandSegmentSizes = array<i32: 1, 1, 0>} : (!tt.ptr<i32>, i64) -> i64
  return
}
// -----
func.func @cas_sem(%p: !tt.ptr<i32>, %v: i32) {
  // expected-error@+1 {{'tt.atomic_cas' sem must be one of}}
  %0 = "tt.atomic_cas"(%p, %v, %v) {sem = "none", scope = "gpu"} : (!tt.ptr<i32>, i32, i32) -> i32
  return
}
// -----
func.func @cas_pointer(%p: i64, %v: i32) {
  // expected-error@+1 {{'tt.atomic_cas' operand 0 must be pointers, got i64}}
  %0 = "tt.atomic_cas"(%p, %v, %v) {sem = "relaxed", scope = "gpu"} : (i64, i32, i32) -> i32
  return
}
// -----
func.func @reduce_axis(%x: tensor<4xf32>) {
  // expected-error@+1 {{'tt.reduce' axis must lie in [0, 1), got 1}}
  %0 = "tt.reduce"(%x) ({
  ^bb0(%a: f32, %b: f32):
    "tt.reduce_return"(%a) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (f32) -> ()
  }) {axis = 1 : i32, operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (tensor<4xf32>) -> f32
  return
}
// -----
func.func @reduce_shapes(%x: tensor<4xf32>, %y: tensor<8xf32>) {
  // expected-error@+1 {{'tt.reduce' all sources must have one shape}}
  %0:2 = "tt.reduce"(%x, %y) ({
  ^bb0(%a: f32, %b: f32, %c: f32, %d: f32):
    "tt.reduce_return"(%a, %b) {operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0>} : (f32, f32) -> ()
  }) {axis = 0 : i32, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0>} : (tensor<4xf32>, tensor<8xf32>) -> (f32, f32)
  return
}
// -----
func.func @reduce_region(%x: tensor<4xf32>) {
  // expected-error@+1 {{'tt.reduce' the region's arguments must be (f32, f32), got (f32)}}
  %0 = "tt.reduce"(%x) ({
  ^bb0(%a: f32):
    "tt.reduce_return"(%a) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (f32) -> ()
  }) {axis = 0 : i32, operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (tensor<4xf32>) -> f32
  return
}
// -----
func.func @load_shape(%p: tensor<4x!tt.ptr<f32>>) {
  // expected-error@+1 {{'tt.load' result must have shape (4,), got ()}}
  %0 = "tt.load"(%p) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<4x!tt.ptr<f32>>) -> f32
  return
}
// -----
func.func @load_other(%p: tensor<4x!tt.ptr<f32>>, %m: tensor<4xi1>, %o: f32) {
  // expected-error@+1 {{'tt.load' other must have shape (4,), got ()}}
  %0 = "tt.load"(%p, %m, %o) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 1>, volatile = false} : (tensor<4x!tt.ptr<f32>>, tensor<4xi1>, f32) -> tensor<4xf32>
  return
}
// -----
func.func @load_mask_type(%p: tensor<4x!tt.ptr<f32>>, %m: tensor<4xi32>) {
  // expected-error@+1 {{'tt.load' mask must be of i1, got i32}}
  %0 = "tt.load"(%p, %m) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>, volatile = false} : (tensor<4x!tt.ptr<f32>>, tensor<4xi32>) -> tensor<4xf32>
  return
}
// -----
func.func @load_cache(%p: tensor<4x!tt.ptr<f32>>) {
  // expected-error@+1 {{'tt.load' cache must be one of}}
  %0 = "tt.load"(%p) {cache = ".zz", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<4x!tt.ptr<f32>>) -> tensor<4xf32>
  return
}
// -----
func.func @load_evict(%p: tensor<4x!tt.ptr<f32>>) {
  // expected-error@+1 {{'tt.load' evict must be one of}}
  %0 = "tt.load"(%p) {cache = "", evict = "evict_all", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<4x!tt.ptr<f32>>) -> tensor<4xf32>
  return
}
// -----
func.func @store_cache(%p: tensor<4x!tt.ptr<f32>>, %v: tensor<4xf32>) {
  // expected-error@+1 {{'tt.store' cache must be one of}}
  "tt.store"(%p, %v) {cache = "ca", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<4x!tt.ptr<f32>>, tensor<4xf32>) -> ()
  return
}
// -----
func.func @store_evict(%p: tensor<4x!tt.ptr<f32>>, %v: tensor<4xf32>) {
  // expected-error@+1 {{'tt.store' evict must be one of}}
  "tt.store"(%p, %v) {cache = "", evict = "last", operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<4x!tt.ptr<f32>>, tensor<4xf32>) -> ()
  return
}
// -----
func.func @store_shape(%p: tensor<4x!tt.ptr<f32>>, %v: f32) {
  // expected-error@+1 {{'tt.store' value must have shape (4,), got ()}}
  "tt.store"(%p, %v) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<4x!tt.ptr<f32>>, f32) -> ()
  return
}
// -----
func.func @rmw_result(%p: !tt.ptr<i32>, %v: i32) {
  // expected-error@+1 {{'tt.atomic_rmw' result must be of i32, got i64}}
  %0 = "tt.atomic_rmw"(%p, %v) {rmw_op = "add", sem = "relaxed", scope = "gpu", operandSegmentSizes = array<i32: 1, 1, 0>} : (!tt.ptr<i32>, i32) -> i64
  return
}
// -----
func.func @rmw_mask(%p: !tt.ptr<i32>, %v: i32, %m: tensor<4xi1>) {
  // expected-error@+1 {{'tt.atomic_rmw' mask must have shape (), got (4,)}}
  %0 = "tt.atomic_rmw"(%p, %v, %m) {rmw_op = "add", sem = "relaxed", scope = "gpu", operandSegmentSizes = array<i32: 1, 1, 1>} : (!tt.ptr<i32>, i32, tensor<4xi1>) -> i32
  return
}
// -----
func.func @cas_scope(%p: !tt.ptr<i32>, %v: i32) {
  // expected-error@+1 {{'tt.atomic_cas' scope must be one of}}
  %0 = "tt.atomic_cas"(%p, %v, %v) {sem = "relaxed", scope = "warp"} : (!tt.ptr<i32>, i32, i32) -> i32
  return
}
// -----
func.func @cas_cmp(%p: !tt.ptr<i32>, %v: i32, %c: i64) {
  // expected-error@+1 {{'tt.atomic_cas' cmp must be of i32, got i64}}
  %0 = "tt.atomic_cas"(%p, %c, %v) {sem = "relaxed", scope = "gpu"} : (!tt.ptr<i32>, i64, i32) -> i32
  return
}
// -----
func.func @cas_result(%p: !tt.ptr<i32>, %v: i32) {
  // expected-error@+1 {{'tt.atomic_cas' result must have shape (), got (4,)}}
  %0 = "tt.atomic_cas"(%p, %v, %v) {sem = "relaxed", scope = "gpu"} : (!tt.ptr<i32>, i32, i32) -> tensor<4xi32>
  return
}
// -----
func.func @reduce_nothing() {
  // expected-error@+1 {{'tt.reduce' must have a source, got none}}
  "tt.reduce"() ({
  ^bb0():
    "tt.reduce_return"() {operandSegmentSizes = array<i32: 0, 0, 0, 0, 0, 0, 0, 0>} : () -> ()
  }) {axis = 0 : i32, operandSegmentSizes = array<i32: 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 0, 0, 0, 0, 0, 0, 0, 0>} : () -> ()
  return
}
// -----
func.func @reduce_result_shape(%x: tensor<4x8xf32>) {
  // expected-error@+1 {{'tt.reduce' results must be (tensor<8xf32>), got (tensor<4xf32>)}}
  %0 = "tt.reduce"(%x) ({
  ^bb0(%a: f32, %b: f32):
    "tt.reduce_return"(%a) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (f32) -> ()
  }) {axis = 0 : i32, operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (tensor<4x8xf32>) -> (tensor<4xf32>)
  return
}
// -----
func.func @reduce_result_element(%x: tensor<4xf32>) {
  // expected-error@+1 {{'tt.reduce' results must be (f32), got (f64)}}
  %0 = "tt.reduce"(%x) ({
  ^bb0(%a: f32, %b: f32):
    "tt.reduce_return"(%a) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (f32) -> ()
  }) {axis = 0 : i32, operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (tensor<4xf32>) -> (f64)
  return
}
// -----
func.func @reduce_result_count(%x: tensor<4xf32>) {
  // expected-error@+1 {{'tt.reduce' results must be (f32, f32), got (f32)}}
  %0 = "tt.reduce"(%x, %x) ({
  ^bb0(%a: f32, %b: f32, %c: f32, %d: f32):
    "tt.reduce_return"(%a, %b) {operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0>} : (f32, f32) -> ()
  }) {axis = 0 : i32, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (tensor<4xf32>, tensor<4xf32>) -> (f32)
  return
}
// -----
func.func @reduce_argument_type(%x: tensor<4xf32>) {
  // expected-error@+1 {{the region's arguments must be (f32, f32), got (f32, i32)}}
  %0 = "tt.reduce"(%x) ({
  ^bb0(%a: f32, %b: i32):
    "tt.reduce_return"(%a) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (f32) -> ()
  }) {axis = 0 : i32, operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (tensor<4xf32>) -> (f32)
  return
}
// -----
func.func @reduce_returned_type(%x: tensor<4xf32>, %i: i32) {
  // expected-error@+1 {{the region's values must be (f32), got (i32)}}
  %0 = "tt.reduce"(%x) ({
  ^bb0(%a: f32, %b: f32):
    "tt.reduce_return"(%i) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (i32) -> ()
  }) {axis = 0 : i32, operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (tensor<4xf32>) -> (f32)
  return
}
// -----
func.func @reduce_without_end(%x: tensor<4xf32>) {
  // expected-error@+1 {{'tt.reduce' the region must end with tt.reduce_return}}
  %0 = "tt.reduce"(%x) ({
  ^bb0(%a: f32, %b: f32):
    "ub.unreachable"() : () -> ()
  }) {axis = 0 : i32, operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (tensor<4xf32>) -> f32
  return
}
// -----
func.func @reduce_without_region(%x: tensor<4xf32>) {
  // expected-error@+1 {{'tt.reduce' the region must have one block, got 0}}
  %0 = "tt.reduce"(%x) ({}) {axis = 0 : i32, operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (tensor<4xf32>) -> f32
  return
}
// -----
func.func @reduce_of_nine(%x: tensor<4xf32>) {
  // expected-error@+1 {{'operandSegmentSizes' attribute for specifying operand segments must have 8 elements}}
  "tt.reduce_return"(%x, %x, %x, %x, %x, %x, %x, %x, %x) {operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 1, 1, 1, 1>} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> ()
}
