// RUN: proton-opt --pipeline='structured-to-memref' %s --split-input-file --verify-diagnostics
// What no buffer holds is refused, with the pass that makes integers of it.

func.func @pointers(%p: !tt.ptr<!tt.ptr<f32>>, %i: index) attributes {tt.kernel} {
  %q = "tts.make_tptr"(%p, %i, %i) {gathers = array<i64: 0>, wraps = array<i64: 0>, order = array<i64: 0>, operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>} : (!tt.ptr<!tt.ptr<f32>>, index, index) -> !tts.tptr<tensor<4x!tt.ptr<f32>>>
  // expected-error@+1 {{tts.load of a block of !tt.ptr<f32>, which no buffer holds}}
  %x = "tts.load"(%q) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0>} : (!tts.tptr<tensor<4x!tt.ptr<f32>>>) -> tensor<4x!tt.ptr<f32>>
  return
}

// -----
func.func @float8(%p: !tt.ptr<f8E5M2>, %i: index, %x: tensor<4xf8E5M2>) attributes {tt.kernel} {
  %q = "tts.make_tptr"(%p, %i, %i) {gathers = array<i64: 0>, wraps = array<i64: 0>, order = array<i64: 0>, operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>} : (!tt.ptr<f8E5M2>, index, index) -> !tts.tptr<tensor<4xf8E5M2>>
  // expected-error@+1 {{tts.store of a block of f8E5M2, which no buffer holds}}
  "tts.store"(%q, %x) {operandSegmentSizes = array<i32: 1, 1, 0, 0, 0>} : (!tts.tptr<tensor<4xf8E5M2>>, tensor<4xf8E5M2>) -> ()
  return
}
