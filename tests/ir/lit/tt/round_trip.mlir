// RUN: proton-opt %s | proton-opt | filecheck %s
// Every op of tt, printed, parsed and printed again.

// CHECK-LABEL: func.func @programs_and_shapes
func.func @programs_and_shapes(%x: f32, %one: tensor<1x1xf32>) {
  // CHECK: "tt.get_program_id"() {axis = 0 : i32} : () -> i32
  %pid = "tt.get_program_id"() {axis = 0 : i32} : () -> i32
  // CHECK: "tt.get_num_programs"() {axis = 2 : i32} : () -> i32
  %num = "tt.get_num_programs"() {axis = 2 : i32} : () -> i32
  // CHECK: "tt.make_range"() {end = 8 : i32, start = 4 : i32} : () -> tensor<4xi32>
  %range = "tt.make_range"() {start = 4 : i32, end = 8 : i32} : () -> tensor<4xi32>
  // CHECK: "tt.splat"(%{{.*}}) : (f32) -> tensor<4xf32>
  %s = "tt.splat"(%x) : (f32) -> tensor<4xf32>
  // CHECK: "tt.unsplat"(%{{.*}}) : (tensor<1x1xf32>) -> f32
  %u = "tt.unsplat"(%one) : (tensor<1x1xf32>) -> f32
  // CHECK: "tt.expand_dims"(%{{.*}}) {axis = 1 : i32} : (tensor<4xf32>) -> tensor<4x1xf32>
  %e = "tt.expand_dims"(%s) {axis = 1 : i32} : (tensor<4xf32>) -> tensor<4x1xf32>
  // CHECK: "tt.broadcast"(%{{.*}}) : (tensor<4x1xf32>) -> tensor<4x2xf32>
  %b = "tt.broadcast"(%e) : (tensor<4x1xf32>) -> tensor<4x2xf32>
  // CHECK: "tt.trans"(%{{.*}}) {order = array<i64: 1, 0>} : (tensor<4x2xf32>) -> tensor<2x4xf32>
  %t = "tt.trans"(%b) {order = array<i64: 1, 0>} : (tensor<4x2xf32>) -> tensor<2x4xf32>
  // CHECK: "tt.reshape"(%{{.*}}) : (tensor<2x4xf32>) -> tensor<8xf32>
  %r = "tt.reshape"(%t) : (tensor<2x4xf32>) -> tensor<8xf32>
  // CHECK: "tt.join"(%{{.*}}, %{{.*}}) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4x2xf32>
  %j = "tt.join"(%s, %s) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4x2xf32>
  // CHECK: %{{.*}}:2 = "tt.split"(%{{.*}}) : (tensor<4x2xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  %h:2 = "tt.split"(%j) : (tensor<4x2xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  return
}

// CHECK-LABEL: func.func @memory
func.func @memory(%p: !tt.ptr<f32>, %q: tensor<4x!tt.ptr<i32>>, %m: tensor<4xi1>, %v: tensor<4xi32>, %c: i1) {
  // CHECK: "tt.addptr"(%{{.*}}, %{{.*}}) : (tensor<4x!tt.ptr<i32>>, tensor<4xi32>) -> tensor<4x!tt.ptr<i32>>
  %a = "tt.addptr"(%q, %v) : (tensor<4x!tt.ptr<i32>>, tensor<4xi32>) -> tensor<4x!tt.ptr<i32>>
  // CHECK: "tt.load"(%{{.*}}, %[[M:.*]], %[[V:.*]]) {cache = ".ca", evict = "evict_last", operandSegmentSizes = array<i32: 1, 1, 1>, volatile = true}
  %l = "tt.load"(%a, %m, %v) {cache = ".ca", evict = "evict_last", operandSegmentSizes = array<i32: 1, 1, 1>, volatile = true} : (tensor<4x!tt.ptr<i32>>, tensor<4xi1>, tensor<4xi32>) -> tensor<4xi32>
  // CHECK: "tt.load"(%{{.*}}) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (!tt.ptr<f32>) -> f32
  %k = "tt.load"(%p) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (!tt.ptr<f32>) -> f32
  // CHECK: "tt.store"(%{{.*}}, %{{.*}}, %[[M]]) {cache = ".wb", evict = "", operandSegmentSizes = array<i32: 1, 1, 1>}
  "tt.store"(%a, %l, %m) {cache = ".wb", evict = "", operandSegmentSizes = array<i32: 1, 1, 1>} : (tensor<4x!tt.ptr<i32>>, tensor<4xi32>, tensor<4xi1>) -> ()
  // CHECK: "tt.atomic_rmw"(%{{.*}}, %{{.*}}, %[[M]]) {operandSegmentSizes = array<i32: 1, 1, 1>, rmw_op = "umax", scope = "sys", sem = "acquire"}
  %w = "tt.atomic_rmw"(%a, %v, %m) {rmw_op = "umax", sem = "acquire", scope = "sys", operandSegmentSizes = array<i32: 1, 1, 1>} : (tensor<4x!tt.ptr<i32>>, tensor<4xi32>, tensor<4xi1>) -> tensor<4xi32>
  // CHECK: "tt.atomic_cas"(%{{.*}}, %{{.*}}, %{{.*}}) {scope = "cta", sem = "release"}
  %s = "tt.atomic_cas"(%a, %v, %w) {sem = "release", scope = "cta"} : (tensor<4x!tt.ptr<i32>>, tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  // CHECK: "tt.assert"(%{{.*}}) {message = "here"} : (i1) -> ()
  "tt.assert"(%c) {message = "here"} : (i1) -> ()
  return
}

// CHECK-LABEL: func.func @arithmetic
func.func @arithmetic(%p: !tt.ptr<f32>, %x: f32, %i: i32, %a: tensor<4x8xf16>, %b: tensor<8x2xf16>, %c: tensor<4x2xf32>) {
  // CHECK: "tt.ptr_to_int"(%{{.*}}) : (!tt.ptr<f32>) -> i64
  %0 = "tt.ptr_to_int"(%p) : (!tt.ptr<f32>) -> i64
  // CHECK: "tt.int_to_ptr"(%{{.*}}) : (i64) -> !tt.ptr<f16>
  %1 = "tt.int_to_ptr"(%0) : (i64) -> !tt.ptr<f16>
  // CHECK: "tt.bitcast"(%{{.*}}) : (!tt.ptr<f16>) -> !tt.ptr<i16>
  %2 = "tt.bitcast"(%1) : (!tt.ptr<f16>) -> !tt.ptr<i16>
  // CHECK: "tt.fp_to_fp"(%{{.*}}) {rounding = "rtz"} : (f32) -> f16
  %3 = "tt.fp_to_fp"(%x) {rounding = "rtz"} : (f32) -> f16
  // CHECK: "tt.mulhiui"(%{{.*}}, %{{.*}}) : (i32, i32) -> i32
  %4 = "tt.mulhiui"(%i, %i) : (i32, i32) -> i32
  // CHECK: "tt.precise_sqrt"(%{{.*}}) : (f32) -> f32
  %5 = "tt.precise_sqrt"(%x) : (f32) -> f32
  // CHECK: "tt.precise_divf"(%{{.*}}, %{{.*}}) : (f32, f32) -> f32
  %6 = "tt.precise_divf"(%x, %x) : (f32, f32) -> f32
  // CHECK: "tt.dot"(%{{.*}}, %{{.*}}, %{{.*}}) {inputPrecision = "tf32x3", maxNumImpreciseAcc = 0 : i32} : (tensor<4x8xf16>, tensor<8x2xf16>, tensor<4x2xf32>) -> tensor<4x2xf32>
  %7 = "tt.dot"(%a, %b, %c) {inputPrecision = "tf32x3", maxNumImpreciseAcc = 0 : i32} : (tensor<4x8xf16>, tensor<8x2xf16>, tensor<4x2xf32>) -> tensor<4x2xf32>
  // CHECK: "tt.dot_scaled"(%{{.*}}, %{{.*}}, %{{.*}}) {lhs = "fp16", lhs_k_pack = true, operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>, rhs = "fp16", rhs_k_pack = true} : (tensor<4x8xf16>, tensor<8x2xf16>, tensor<4x2xf32>) -> tensor<4x2xf32>
  %scaled = "tt.dot_scaled"(%a, %b, %c) {lhs = "fp16", lhs_k_pack = true, operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>, rhs = "fp16", rhs_k_pack = true} : (tensor<4x8xf16>, tensor<8x2xf16>, tensor<4x2xf32>) -> tensor<4x2xf32>
  %bytes = arith.constant dense<1> : tensor<4x8xi8>
  // CHECK: "tt.fp4_to_fp"(%{{.*}}) {axis = 1 : i32} : (tensor<4x8xi8>) -> tensor<4x16xbf16>
  %numbers = "tt.fp4_to_fp"(%bytes) {axis = 1 : i32} : (tensor<4x8xi8>) -> tensor<4x16xbf16>
  // CHECK: %{{.*}}:2 = "tt.reduce"(%{{.*}}, %{{.*}}) ({
  // CHECK-NEXT: ^bb0(%[[A:.*]]: f32, %[[B:.*]]: f32, %{{.*}}: f32, %[[D:.*]]: f32):
  // CHECK-NEXT: "tt.reduce_return"(%[[A]], %[[D]]) {operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0>} : (f32, f32) -> ()
  // CHECK-NEXT: }) {axis = 1 : i32, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0>} : (tensor<4x2xf32>, tensor<4x2xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  %8:2 = "tt.reduce"(%c, %7) ({
  ^bb0(%q: f32, %r: f32, %s: f32, %t: f32):
    "tt.reduce_return"(%q, %t) {operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0>} : (f32, f32) -> ()
  }) {axis = 1 : i32, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0>} : (tensor<4x2xf32>, tensor<4x2xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  return
}

// CHECK-LABEL: func.func @collectives
func.func @collectives(%x: tensor<4x2xf32>, %i: tensor<4x2xi32>, %v: tensor<8xi32>, %m: tensor<8xi1>, %j: tensor<16x2xi64>) {
  // CHECK: %{{.*}}:2 = "tt.scan"(%{{.*}}, %{{.*}}) ({
  // CHECK-NEXT: ^bb0(%[[A:.*]]: f32, %{{.*}}: i32, %{{.*}}: f32, %[[D:.*]]: i32):
  // CHECK-NEXT: "tt.scan_return"(%[[A]], %[[D]]) {operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0>} : (f32, i32) -> ()
  // CHECK-NEXT: }) {axis = 0 : i32, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0>, reverse = true} : (tensor<4x2xf32>, tensor<4x2xi32>) -> (tensor<4x2xf32>, tensor<4x2xi32>)
  %0:2 = "tt.scan"(%x, %i) ({
  ^bb0(%a: f32, %b: i32, %c: f32, %d: i32):
    "tt.scan_return"(%a, %d) {operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0>} : (f32, i32) -> ()
  }) {axis = 0 : i32, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0>, reverse = true} : (tensor<4x2xf32>, tensor<4x2xi32>) -> (tensor<4x2xf32>, tensor<4x2xi32>)
  // CHECK: "tt.histogram"(%{{.*}}, %{{.*}}) {operandSegmentSizes = array<i32: 1, 1>} : (tensor<8xi32>, tensor<8xi1>) -> tensor<16xi32>
  %1 = "tt.histogram"(%v, %m) {operandSegmentSizes = array<i32: 1, 1>} : (tensor<8xi32>, tensor<8xi1>) -> tensor<16xi32>
  // CHECK: "tt.gather"(%{{.*}}, %{{.*}}) {axis = 0 : i32} : (tensor<4x2xf32>, tensor<16x2xi64>) -> tensor<16x2xf32>
  %2 = "tt.gather"(%x, %j) {axis = 0 : i32} : (tensor<4x2xf32>, tensor<16x2xi64>) -> tensor<16x2xf32>
  return
}

// CHECK-LABEL: func.func @debugging
func.func @debugging(%x: tensor<4xf32>, %i: i32) {
  // CHECK: "tt.print"(%{{.*}}, %{{.*}}) {hex = true, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0>, prefix = "x: ", signed = array<i32: 0, 1>} : (tensor<4xf32>, i32) -> ()
  "tt.print"(%x, %i) {hex = true, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0>, prefix = "x: ", signed = array<i32: 0, 1>} : (tensor<4xf32>, i32) -> ()
  // CHECK: "tt.special_register"() {register = "globaltimer"} : () -> i64
  %timer = "tt.special_register"() {register = "globaltimer"} : () -> i64
  // CHECK: "tt.debug_barrier"() : () -> ()
  "tt.debug_barrier"() : () -> ()
  // CHECK: "tt.grid_dependency"() {kind = "wait"} : () -> ()
  "tt.grid_dependency"() {kind = "wait"} : () -> ()
  // CHECK: "tt.extern_elementwise"(%{{.*}}, %{{.*}}) {libname = "libdevice", libpath = "", operandSegmentSizes = array<i32: 1, 1, 0, 0>, pure = true, symbol = "__nv_powf"} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %0 = "tt.extern_elementwise"(%x, %x) {libname = "libdevice", libpath = "", operandSegmentSizes = array<i32: 1, 1, 0, 0>, pure = true, symbol = "__nv_powf"} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return
}
