// RUN: proton-opt %s | proton-opt | filecheck %s
// Every op of tts, printed, parsed and printed again; the operands of each group stay apart.

// CHECK-LABEL: func.func @tts
func.func @tts(%p: !tt.ptr<f32>, %i: index, %n: index, %x: f32, %r: tensor<?xi64>, %m: tensor<4x8xi1>) {
  // CHECK: %[[P:.*]] = "tts.make_tptr"(%[[B:.*]], %[[I:.*]], %[[I]], %[[I]], %[[I]], %[[N:.*]]) {gathers = array<i64: 0, 0>, operandSegmentSizes = array<i32: 1, 2, 2, 1, 0>, order = array<i64: 1, 0>, wraps = array<i64: 0, 1>} : (!tt.ptr<f32>, index, index, index, index, index) -> !tts.tptr<tensor<4x8xf32>>
  %q = "tts.make_tptr"(%p, %i, %i, %i, %i, %n) {gathers = array<i64: 0, 0>, wraps = array<i64: 0, 1>, order = array<i64: 1, 0>, operandSegmentSizes = array<i32: 1, 2, 2, 1, 0>} : (!tt.ptr<f32>, index, index, index, index, index) -> !tts.tptr<tensor<4x8xf32>>
  // CHECK: %[[V:.*]] = "tts.load"(%[[P]]) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0>} : (!tts.tptr<tensor<4x8xf32>>) -> tensor<4x8xf32>
  %v = "tts.load"(%q) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0>} : (!tts.tptr<tensor<4x8xf32>>) -> tensor<4x8xf32>
  // CHECK: %[[W:.*]] = "tts.load"(%[[P]], %[[I]], %[[N]], %{{.*}}) {operandSegmentSizes = array<i32: 1, 2, 0, 1, 0>} : (!tts.tptr<tensor<4x8xf32>>, index, index, f32) -> tensor<4x8xf32>
  %w = "tts.load"(%q, %i, %n, %x) {operandSegmentSizes = array<i32: 1, 2, 0, 1, 0>} : (!tts.tptr<tensor<4x8xf32>>, index, index, f32) -> tensor<4x8xf32>
  // CHECK: "tts.store"(%[[P]], %[[V]], %[[I]], %[[N]]) {operandSegmentSizes = array<i32: 1, 1, 2, 0, 0>} : (!tts.tptr<tensor<4x8xf32>>, tensor<4x8xf32>, index, index) -> ()
  "tts.store"(%q, %v, %i, %n) {operandSegmentSizes = array<i32: 1, 1, 2, 0, 0>} : (!tts.tptr<tensor<4x8xf32>>, tensor<4x8xf32>, index, index) -> ()
  // CHECK: "tts.store"(%[[P]], %[[W]]) {operandSegmentSizes = array<i32: 1, 1, 0, 0, 0>} : (!tts.tptr<tensor<4x8xf32>>, tensor<4x8xf32>) -> ()
  "tts.store"(%q, %w) {operandSegmentSizes = array<i32: 1, 1, 0, 0, 0>} : (!tts.tptr<tensor<4x8xf32>>, tensor<4x8xf32>) -> ()
  // CHECK: "tts.make_tptr"(%[[B]], %[[I]], %[[I]], %[[I]], %[[I]], %[[R:.*]]) {gathers = array<i64: 1, 0>, operandSegmentSizes = array<i32: 1, 2, 2, 0, 1>, order = array<i64: 1, 0>, wraps = array<i64: 0, 0>}
  %s = "tts.make_tptr"(%p, %i, %i, %i, %i, %r) {gathers = array<i64: 1, 0>, wraps = array<i64: 0, 0>, order = array<i64: 1, 0>, operandSegmentSizes = array<i32: 1, 2, 2, 0, 1>} : (!tt.ptr<f32>, index, index, index, index, tensor<?xi64>) -> !tts.tptr<tensor<4x8xf32>>
  // CHECK: "tts.load"(%{{.*}}, %[[M:.*]]) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 1>}
  %y = "tts.load"(%s, %m) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 1>} : (!tts.tptr<tensor<4x8xf32>>, tensor<4x8xi1>) -> tensor<4x8xf32>
  // CHECK: "tts.store"(%{{.*}}, %{{.*}}, %[[M]]) {operandSegmentSizes = array<i32: 1, 1, 0, 0, 1>}
  "tts.store"(%s, %y, %m) {operandSegmentSizes = array<i32: 1, 1, 0, 0, 1>} : (!tts.tptr<tensor<4x8xf32>>, tensor<4x8xf32>, tensor<4x8xi1>) -> ()
  return
}
