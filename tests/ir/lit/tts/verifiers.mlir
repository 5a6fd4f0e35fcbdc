// RUN: proton-opt %s --split-input-file --verify-diagnostics
// Each rule of the tts verifiers, broken once.

func.func @base(%p: tensor<4x!tt.ptr<f32>>, %i: index) {
  // expected-error@+1 {{'tts.make_tptr' base must be a pointer}}
  %0 = "tts.make_tptr"(%p, %i, %i) {gathers = array<i64: 0>, wraps = array<i64: 0>, order = array<i64: 0>, operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>} : (tensor<4x!tt.ptr<f32>>, index, index) -> !tts.tptr<tensor<4xf32>>
  return
}
// -----
func.func @entries(%p: !tt.ptr<f32>, %i: index) {
  // expected-error@+1 {{strides, offsets, wraps and gathers must have 2 entries, got 2, 1, 2 and 2}}
  %0 = "tts.make_tptr"(%p, %i, %i, %i) {gathers = array<i64: 0, 0>, wraps = array<i64: 0, 0>, order = array<i64: 1, 0>, operandSegmentSizes = array<i32: 1, 2, 1, 0, 0>} : (!tt.ptr<f32>, index, index, index) -> !tts.tptr<tensor<4x4xf32>>
  return
}
// -----
func.func @parents(%p: !tt.ptr<f32>, %i: index) {
  // expected-error@+1 {{parents must have 1 entries, got 0}}
  %0 = "tts.make_tptr"(%p, %i, %i) {gathers = array<i64: 0>, wraps = array<i64: 1>, order = array<i64: 0>, operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>} : (!tt.ptr<f32>, index, index) -> !tts.tptr<tensor<4xf32>>
  return
}
// -----
func.func @order(%p: !tt.ptr<f32>, %i: index) {
  // expected-error@+1 {{order must permute 1 dimensions, got [1]}}
  %0 = "tts.make_tptr"(%p, %i, %i) {gathers = array<i64: 0>, wraps = array<i64: 0>, order = array<i64: 1>, operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>} : (!tt.ptr<f32>, index, index) -> !tts.tptr<tensor<4xf32>>
  return
}
// -----
func.func @load_dims(%p: !tts.tptr<tensor<4x4xf32>>, %i: index) {
  // expected-error@+1 {{'tts.load' dims must have 0 or 2 entries, got 1}}
  %0 = "tts.load"(%p, %i) {operandSegmentSizes = array<i32: 1, 1, 0, 0, 0>} : (!tts.tptr<tensor<4x4xf32>>, index) -> tensor<4x4xf32>
  return
}
// -----
func.func @load_starts(%p: !tts.tptr<tensor<4x4xf32>>, %i: index) {
  // expected-error@+1 {{'tts.load' starts must have 0 or 2 entries, got 1}}
  %0 = "tts.load"(%p, %i, %i, %i) {operandSegmentSizes = array<i32: 1, 2, 1, 0, 0>} : (!tts.tptr<tensor<4x4xf32>>, index, index, index) -> tensor<4x4xf32>
  return
}
// -----
func.func @load_type(%p: !tts.tptr<tensor<4xf32>>) {
  // expected-error@+1 {{'tts.load' result must have type tensor<4xf32>, got tensor<8xf32>}}
  %0 = "tts.load"(%p) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0>} : (!tts.tptr<tensor<4xf32>>) -> tensor<8xf32>
  return
}
// -----
func.func @store_dims(%p: !tts.tptr<tensor<4xf32>>, %v: tensor<4xf32>, %i: index) {
  // expected-error@+1 {{'tts.store' dims must have 0 or 1 entries, got 2}}
  "tts.store"(%p, %v, %i, %i) {operandSegmentSizes = array<i32: 1, 1, 2, 0, 0>} : (!tts.tptr<tensor<4xf32>>, tensor<4xf32>, index, index) -> ()
  return
}
// -----
func.func @store_type(%p: !tts.tptr<tensor<4xf32>>, %v: tensor<4xf16>) {
  // expected-error@+1 {{'tts.store' value must have type tensor<4xf32>, got tensor<4xf16>}}
  "tts.store"(%p, %v) {operandSegmentSizes = array<i32: 1, 1, 0, 0, 0>} : (!tts.tptr<tensor<4xf32>>, tensor<4xf16>) -> ()
  return
}
// -----
func.func @load_other(%p: !tts.tptr<tensor<4xf32>>, %x: f16) {
  // expected-error@+1 {{'tts.load' other must have type f32, got f16}}
  %0 = "tts.load"(%p, %x) {operandSegmentSizes = array<i32: 1, 0, 0, 1, 0>} : (!tts.tptr<tensor<4xf32>>, f16) -> tensor<4xf32>
  return
}

// -----

func.func @make_tptr_indices(%p: !tt.ptr<f32>, %i: index) {
  // expected-error@+1 {{indices must have 1 entries, got 0}}
  %q = "tts.make_tptr"(%p, %i, %i) {gathers = array<i64: 1>, wraps = array<i64: 0>, order = array<i64: 0>, operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>} : (!tt.ptr<f32>, index, index) -> !tts.tptr<tensor<4xf32>>
  return
}

// -----

func.func @make_tptr_row(%p: !tt.ptr<f32>, %i: index, %r: tensor<?xi32>) {
  // expected-error@+1 {{a row of indices must have type tensor<?xi64>, got tensor<?xi32>}}
  %q = "tts.make_tptr"(%p, %i, %i, %r) {gathers = array<i64: 1>, wraps = array<i64: 0>, order = array<i64: 0>, operandSegmentSizes = array<i32: 1, 1, 1, 0, 1>} : (!tt.ptr<f32>, index, index, tensor<?xi32>) -> !tts.tptr<tensor<4xf32>>
  return
}

// -----

func.func @load_mask(%q: !tts.tptr<tensor<4xf32>>, %m: tensor<8xi1>) {
  // expected-error@+1 {{'tts.load' mask must have type tensor<4xi1>, got tensor<8xi1>}}
  %x = "tts.load"(%q, %m) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 1>} : (!tts.tptr<tensor<4xf32>>, tensor<8xi1>) -> tensor<4xf32>
  return
}

// -----

func.func @store_mask(%q: !tts.tptr<tensor<4xf32>>, %x: tensor<4xf32>, %m: tensor<4xi8>) {
  // expected-error@+1 {{'tts.store' mask must have type tensor<4xi1>, got tensor<4xi8>}}
  "tts.store"(%q, %x, %m) {operandSegmentSizes = array<i32: 1, 1, 0, 0, 1>} : (!tts.tptr<tensor<4xf32>>, tensor<4xf32>, tensor<4xi8>) -> ()
  return
}
