// RUN: proton-opt --pipeline='tritongpu-reorder-instructions' %s | filecheck %s

#one = #ttg.linear<[[32]], [[1], [2], [4], [8], [16]], [], []>
#two = #ttg.linear<[[1]], [[2], [4], [8], [16], [32]], [], []>

// A chain of conversions sinks to its first use; a load does not wait.

// CHECK-LABEL: func.func @chain(
// CHECK-NEXT: %[[V:.*]] = "tt.load"
// CHECK-NEXT: %[[E:.*]] = math.exp
// CHECK-NEXT: %[[W:.*]] = arith.extf %[[V]]
// CHECK-NEXT: %[[C:.*]] = "ttg.convert_layout"(%[[W]])
// CHECK-NEXT: arith.addf %[[C]], %[[E]]
func.func @chain(%p: tensor<64x!tt.ptr<f16>, #one>, %x: tensor<64xf32, #two>) -> tensor<64xf32, #two> {
  %v = "tt.load"(%p) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<64x!tt.ptr<f16>, #one>) -> tensor<64xf16, #one>
  %w = arith.extf %v : tensor<64xf16, #one> to tensor<64xf32, #one>
  %c = "ttg.convert_layout"(%w) : (tensor<64xf32, #one>) -> tensor<64xf32, #two>
  %e = math.exp %x : tensor<64xf32, #two>
  %a = arith.addf %c, %e : tensor<64xf32, #two>
  return %a : tensor<64xf32, #two>
}

// Before a loop that uses it, not into it.

// CHECK-LABEL: func.func @loop(
// CHECK: %[[E:.*]] = math.exp
// CHECK-NEXT: %[[C:.*]] = "ttg.convert_layout"
// CHECK-NEXT: scf.for
// CHECK-NEXT: arith.addf %{{.*}}, %[[C]]
func.func @loop(%x: tensor<64xf32, #one>, %y: tensor<64xf32, #two>, %n: i32) -> tensor<64xf32, #two> {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %c = "ttg.convert_layout"(%x) : (tensor<64xf32, #one>) -> tensor<64xf32, #two>
  %e = math.exp %y : tensor<64xf32, #two>
  %r = scf.for %i = %zero to %n step %one iter_args(%k = %e) -> (tensor<64xf32, #two>) : i32 {
    %a = arith.addf %k, %c : tensor<64xf32, #two>
    scf.yield %a : tensor<64xf32, #two>
  }
  return %r : tensor<64xf32, #two>
}

// A conversion to a narrower type, one of a scalar, other arithmetic, and what nobody uses stay.

// CHECK-LABEL: func.func @stays(
// CHECK-NEXT: arith.truncf
// CHECK-NEXT: arith.extf
// CHECK-NEXT: math.log
// CHECK-NEXT: "ttg.convert_layout"
// CHECK-NEXT: math.exp
func.func @stays(%x: tensor<64xf32, #one>, %s: f16) -> (tensor<64xf16, #one>, f32, tensor<64xf32, #one>, tensor<64xf32, #one>) {
  %t = arith.truncf %x : tensor<64xf32, #one> to tensor<64xf16, #one>
  %w = arith.extf %s : f16 to f32
  %l = math.log %x : tensor<64xf32, #one>
  %c = "ttg.convert_layout"(%x) : (tensor<64xf32, #one>) -> tensor<64xf32, #two>
  %e = math.exp %x : tensor<64xf32, #one>
  return %t, %w, %l, %e : tensor<64xf16, #one>, f32, tensor<64xf32, #one>, tensor<64xf32, #one>
}
