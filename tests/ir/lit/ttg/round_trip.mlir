// RUN: proton-opt %s | proton-opt | filecheck %s
// Every op, type and attribute of ttg, printed, parsed and printed again.

#lanes = #ttg.linear<[], [[0, 1], [0, 2], [1, 0], [2, 0], [4, 0]], [], []>
#rows = #ttg.linear<[[0, 1], [0, 2]], [[1, 0], [2, 0], [4, 0], [0, 0], [0, 0]], [[0, 0]], []>
#plain = #ttg.shared<[[0, 1], [0, 2], [1, 0], [2, 0], [4, 0]]>
#swizzled = #ttg.shared<[[0, 1], [0, 2], [1, 0], [2, 1], [4, 2]]>

// CHECK-LABEL: func.func @memory
// CHECK-SAME: !ttg.memdesc<[4, 8], bf16, #ttg.shared<{{..}}1, 0], [2, 0], [0, 1], [0, 2], [0, 4]]>>
func.func @memory(%a: !ttg.memdesc<[4, 8], bf16, #ttg.shared<[[1, 0], [2, 0], [0, 1], [0, 2], [0, 4]]>>) {
  return
}

// CHECK-LABEL: func.func @ops
// CHECK-SAME: %[[X:.*]]: tensor<8x4xf32, #ttg.linear<[], {{..}}0, 1], [0, 2], [1, 0], [2, 0], [4, 0]], [], []>>,
// CHECK-SAME: %[[ACC:.*]]: tensor<8x8xf32>
func.func @ops(%x: tensor<8x4xf32, #lanes>, %acc: tensor<8x8xf32>) {
  // CHECK: %[[C:.*]] = "ttg.convert_layout"(%[[X]]) : (tensor<8x4xf32, {{.*}}>) -> tensor<8x4xf32, #ttg.linear<{{..}}0, 1], [0, 2]], {{..}}1, 0], [2, 0], [4, 0], [0, 0], [0, 0]], {{..}}0, 0]], []>>
  %c = "ttg.convert_layout"(%x) : (tensor<8x4xf32, #lanes>) -> tensor<8x4xf32, #rows>
  %n = "tt.reshape"(%x) : (tensor<8x4xf32, #lanes>) -> tensor<16x2xf32>
  // CHECK: "ttg.swap"(%{{.*}}) {axis = 1 : i32} : (tensor<16x2xf32>) -> tensor<16x2xf32>
  %s = "ttg.swap"(%n) {axis = 1 : i32} : (tensor<16x2xf32>) -> tensor<16x2xf32>
  // CHECK: %[[A:.*]] = "ttg.local_alloc"(%[[C]]) : {{.*}} -> !ttg.memdesc<[8, 4], f32, #ttg.shared<{{..}}0, 1], [0, 2], [1, 0], [2, 1], [4, 2]]>>
  %a = "ttg.local_alloc"(%c) : (tensor<8x4xf32, #rows>) -> !ttg.memdesc<[8, 4], f32, #swizzled>
  %t = "tt.trans"(%x) {order = array<i64: 1, 0>} : (tensor<8x4xf32, #lanes>) -> tensor<4x8xf32>
  // CHECK: %[[B:.*]] = "ttg.local_alloc"(%{{.*}}) : (tensor<4x8xf32>) -> !ttg.memdesc<[4, 8], f32, #ttg.shared<{{..}}1, 0], {{.*}}
  %b = "ttg.local_alloc"(%t) : (tensor<4x8xf32>) -> !ttg.memdesc<[4, 8], f32, #ttg.shared<[[1, 0], [2, 0], [0, 1], [0, 2], [0, 4]]>>
  // CHECK: "ttg.barrier"() : () -> ()
  "ttg.barrier"() : () -> ()
  // CHECK: "ttg.dot"(%[[A]], %[[B]], %[[ACC]]) : ({{.*}}) -> tensor<8x8xf32>
  %d = "ttg.dot"(%a, %b, %acc) : (!ttg.memdesc<[8, 4], f32, #swizzled>, !ttg.memdesc<[4, 8], f32, #ttg.shared<[[1, 0], [2, 0], [0, 1], [0, 2], [0, 4]]>>, tensor<8x8xf32>) -> tensor<8x8xf32>
  // CHECK: "ttg.set_auto_layout"(%[[ACC]]) : (tensor<8x8xf32>) -> tensor<8x8xf32, #ttg.linear<{{.*}}>>
  %l = "ttg.set_auto_layout"(%acc) : (tensor<8x8xf32>) -> tensor<8x8xf32, #ttg.linear<[[0, 4]], [[0, 1], [0, 2], [1, 0], [2, 0], [4, 0]], [], []>>
  return
}
