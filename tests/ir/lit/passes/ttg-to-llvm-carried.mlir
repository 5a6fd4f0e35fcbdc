// RUN: proton-opt --pipeline='allocate-shared-memory,ttg-to-llvm{target=cuda:90},canonicalize' %s | filecheck %s

#four = #ttg.linear<[[1], [2], [128], [256]], [[4], [8], [16], [32], [64]], [], []>

module attributes {"ttg.num-warps" = 1 : i32} {

// Four accesses of 16 bytes: of sixteen pointers four are carried, and of sixteen offsets those that
// are added to them. The pointers behind the loop are those at its end, the first ones where it did
// not run.

// CHECK-LABEL: func.func @accesses(
// CHECK: %[[FOR:.*]]:2 = scf.for {{.*}} iter_args(%[[P:.*]] = %{{.*}}, %[[O:.*]] = %{{.*}}) -> (vector<4x!llvm.ptr<1>>, vector<4xi32>)
// CHECK: %[[P0:.*]] = llvm.extractelement %[[P]][%[[I:.*]] : i32] : vector<4x!llvm.ptr<1>>
// CHECK: %[[O0:.*]] = llvm.extractelement %[[O]][%[[I]] : i32] : vector<4xi32>
// CHECK: %[[A:.*]] = llvm.getelementptr %[[P0]][%[[O0]]] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
// CHECK-COUNT-4: llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xf32>
// CHECK: %[[NEXT_O:.*]] = arith.addi %[[O]], %{{.*}} : vector<4xi32>
// CHECK: %[[NEXT_P:.*]] = llvm.getelementptr %[[P]][%{{.*}}] : (vector<4x!llvm.ptr<1>>, vector<4xi32>) -> vector<4x!llvm.ptr<1>>, f32
// CHECK: scf.yield %[[NEXT_P]], %[[NEXT_O]]
// CHECK: llvm.extractelement %[[FOR]]#0[
// CHECK-COUNT-4: llvm.store %{{.*}} {alignment = 16 : i64} : vector<4xf32>, !llvm.ptr<1>
func.func @accesses(%x: !tt.ptr<f32> {tt.divisibility = 16 : i32, tt.element = "fp32"}, %n: i32) attributes {tt.kernel} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %step = arith.constant dense<512> : tensor<512xi32, #four>
  %one = arith.constant dense<1.0> : tensor<512xf32, #four>
  %i = "tt.make_range"() {start = 0 : i32, end = 512 : i32} : () -> tensor<512xi32, #four>
  %s = "tt.splat"(%x) : (!tt.ptr<f32>) -> tensor<512x!tt.ptr<f32>, #four>
  %e:2 = scf.for %k = %c0 to %n step %c1 iter_args(%p = %s, %o = %i) -> (tensor<512x!tt.ptr<f32>, #four>, tensor<512xi32, #four>) : i32 {
    %q = "tt.addptr"(%p, %o) : (tensor<512x!tt.ptr<f32>, #four>, tensor<512xi32, #four>) -> tensor<512x!tt.ptr<f32>, #four>
    %v = "tt.load"(%q) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<512x!tt.ptr<f32>, #four>) -> tensor<512xf32, #four>
    "tt.store"(%q, %v) {cache = ".cs", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<512x!tt.ptr<f32>, #four>, tensor<512xf32, #four>) -> ()
    %m = arith.addi %o, %step : tensor<512xi32, #four>
    %r = "tt.addptr"(%p, %step) : (tensor<512x!tt.ptr<f32>, #four>, tensor<512xi32, #four>) -> tensor<512x!tt.ptr<f32>, #four>
    scf.yield %r, %m : tensor<512x!tt.ptr<f32>, #four>, tensor<512xi32, #four>
  }
  %z = "tt.addptr"(%e#0, %i) : (tensor<512x!tt.ptr<f32>, #four>, tensor<512xi32, #four>) -> tensor<512x!tt.ptr<f32>, #four>
  "tt.store"(%z, %one) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<512x!tt.ptr<f32>, #four>, tensor<512xf32, #four>) -> ()
  return
}

// Numbers of which all are wanted stay what they are.

// CHECK-LABEL: func.func @sums(
// CHECK: scf.for {{.*}} iter_args(%[[SUM:.*]] = %{{.*}}) -> (vector<16xi32>)
// CHECK: arith.xori %[[SUM]], %{{.*}} : vector<16xi32>
func.func @sums(%x: tensor<512xi32, #four>, %n: i32) -> tensor<512xi32, #four> {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %e = scf.for %k = %c0 to %n step %c1 iter_args(%s = %x) -> (tensor<512xi32, #four>) : i32 {
    %r = arith.xori %s, %x : tensor<512xi32, #four>
    scf.yield %r : tensor<512xi32, #four>
  }
  return %e : tensor<512xi32, #four>
}
}
