// RUN: proton-opt --pipeline='tritongpu-place-local-loads{target=cuda:90}' %s | filecheck %s

// A row was copied with an element to a thread, and is wanted in all rows of a product's sums: it is
// read so, while the product is under way, and its mask is computed so.

#acc = #ttg.linear<[[0, 1], [8, 0], [0, 8], [0, 16], [0, 32]], [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], [[16, 0], [32, 0]], []>
#row = #ttg.linear<[], [[1], [2], [4], [8], [16]], [[32], [0]], []>
#rows = #ttg.linear<[], [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16]], [[0, 32], [0, 0]], []>
#of_acc = #ttg.linear<[[0, 1], [0, 0], [0, 8], [0, 16], [0, 32]], [[0, 2], [0, 4], [0, 0], [0, 0], [0, 0]], [[0, 0], [0, 0]], []>
#wanted = #ttg.linear<[[1], [0], [8], [16], [32]], [[2], [4], [0], [0], [0]], [[0], [0]], []>
#few = #ttg.linear<[[1], [0], [8]], [[2], [4], [16], [32], [0]], [[0], [0]], []>
#many = #ttg.linear<[[1], [2], [4], [8], [16], [32]], [[0], [0], [0], [0], [0]], [[0], [0]], []>
#line = #ttg.shared<[[1], [2], [4], [8], [16], [32]]>
!memory = !ttg.mutable_memdesc<[64], f32, #line>
!buffers = !ttg.mutable_memdesc<[2, 64], f32, #line>
!sum = tensor<64x64xf32, #acc>
module attributes {"ttg.num-warps" = 4 : i32} {

// CHECK-LABEL: func.func @masked(
// CHECK: %[[M:.*]] = "ttg.memdesc_index"(%arg0, %arg1)
// CHECK: %[[X:.*]] = "ttg.local_load"(%[[M]]) : (!{{.*}}) -> tensor<64xf32, #ttg.linear<{{\[\[}}1], [0], [8], [16], [32]]
// CHECK: "ttng.warp_group_dot_wait"
// CHECK: %[[Y:.*]] = arith.select %{{.*}}, %[[X]], %{{.*}} : tensor<64xi1, #ttg.linear<{{\[\[}}1], [0], [8], [16], [32]]
// CHECK: "tt.expand_dims"(%[[Y]])
// CHECK-NOT: ttg.convert_layout
// CHECK-NOT: ttg.local_load
// CHECK: return
func.func @masked(%b: !buffers, %i: i32, %n: i32, %e: !sum) -> !sum {
  %inf = arith.constant dense<0x7F800000> : tensor<64xf32, #row>
  %s = "ttng.warp_group_dot_wait"(%e) {pendings = 0 : i32} : (!sum) -> !sum
  %k = "tt.make_range"() {start = 0 : i32, end = 64 : i32} : () -> tensor<64xi32, #row>
  %last = "tt.splat"(%n) : (i32) -> tensor<64xi32, #row>
  %inside = arith.cmpi slt, %k, %last : tensor<64xi32, #row>
  %m = "ttg.memdesc_index"(%b, %i) : (!buffers, i32) -> !memory
  %x = "ttg.local_load"(%m) : (!memory) -> tensor<64xf32, #row>
  %y = arith.select %inside, %x, %inf : tensor<64xi1, #row>, tensor<64xf32, #row>
  %r = "tt.expand_dims"(%y) {axis = 0 : i32} : (tensor<64xf32, #row>) -> tensor<1x64xf32, #rows>
  %c = "ttg.convert_layout"(%r) : (tensor<1x64xf32, #rows>) -> tensor<1x64xf32, #of_acc>
  %w = "tt.broadcast"(%c) : (tensor<1x64xf32, #of_acc>) -> !sum
  %d = arith.subf %s, %w : !sum
  return %d : !sum
}

// A row that is used twice is read once again, and erased once.

// CHECK-LABEL: func.func @twice(
// CHECK: %[[X:.*]] = "ttg.local_load"(%arg0) : (!{{.*}}) -> tensor<64xi32, #ttg.linear<{{\[\[}}1], [0], [8]
// CHECK-NEXT: %[[Y:.*]] = arith.cmpi sgt, %[[X]], %[[X]]
// CHECK-NEXT: %[[Z:.*]] = arith.select %[[Y]], %[[X]], %[[X]]
// CHECK-NEXT: return %[[Z]]
func.func @twice(%m: !ttg.mutable_memdesc<[64], i32, #line>) -> tensor<64xi32, #wanted> {
  %x = "ttg.local_load"(%m) : (!ttg.mutable_memdesc<[64], i32, #line>) -> tensor<64xi32, #row>
  %y = arith.cmpi sgt, %x, %x : tensor<64xi32, #row>
  %z = arith.select %y, %x, %x : tensor<64xi1, #row>, tensor<64xi32, #row>
  %c = "ttg.convert_layout"(%z) : (tensor<64xi32, #row>) -> tensor<64xi32, #wanted>
  return %c : tensor<64xi32, #wanted>
}

// Few elements of a function take less time than an exchange.

// CHECK-LABEL: func.func @few(
// CHECK-NEXT: %[[X:.*]] = "ttg.local_load"(%arg0) : (!{{.*}}) -> tensor<64xf32, #ttg.linear<{{\[\[}}1], [0], [8]
// CHECK-NEXT: %[[Y:.*]] = math.exp2 %[[X]]
// CHECK-NEXT: return %[[Y]]
func.func @few(%m: !memory) -> tensor<64xf32, #few> {
  %x = "ttg.local_load"(%m) : (!memory) -> tensor<64xf32, #row>
  %y = math.exp2 %x : tensor<64xf32, #row>
  %c = "ttg.convert_layout"(%y) : (tensor<64xf32, #row>) -> tensor<64xf32, #few>
  return %c : tensor<64xf32, #few>
}

// More are not computed by every thread again, and nothing is read ahead of what is written.

// CHECK-LABEL: func.func @left(
// CHECK: "ttng.warp_group_dot_wait"
// CHECK-NEXT: "ttg.local_store"
// CHECK-NEXT: "ttg.local_load"
// CHECK-NEXT: math.exp2
// CHECK-NEXT: "ttg.convert_layout"
func.func @left(%m: !memory, %z: tensor<64xf32, #row>, %e: !sum) -> (!sum, tensor<64xf32, #many>) {
  %s = "ttng.warp_group_dot_wait"(%e) {pendings = 0 : i32} : (!sum) -> !sum
  "ttg.local_store"(%z, %m) : (tensor<64xf32, #row>, !memory) -> ()
  %x = "ttg.local_load"(%m) : (!memory) -> tensor<64xf32, #row>
  %y = math.exp2 %x : tensor<64xf32, #row>
  %c = "ttg.convert_layout"(%y) : (tensor<64xf32, #row>) -> tensor<64xf32, #many>
  return %s, %c : !sum, tensor<64xf32, #many>
}

// What is read waits in memory while threads exchange something else, but not until that is
// written.

// CHECK-LABEL: func.func @behind(
// CHECK-NEXT: "ttg.convert_layout"
// CHECK-NEXT: %[[X:.*]] = "ttg.local_load"
// CHECK-NEXT: arith.addf %[[X]]
// CHECK-LABEL: func.func @written(
// CHECK-NEXT: "ttg.convert_layout"
// CHECK-NEXT: "ttg.local_load"
// CHECK-NEXT: "ttg.local_store"
// CHECK-NEXT: arith.addf
func.func @behind(%m: !memory, %z: tensor<64xf32, #row>) -> tensor<64xf32, #wanted> {
  %x = "ttg.local_load"(%m) : (!memory) -> tensor<64xf32, #wanted>
  %c = "ttg.convert_layout"(%z) : (tensor<64xf32, #row>) -> tensor<64xf32, #wanted>
  %y = arith.addf %x, %c : tensor<64xf32, #wanted>
  return %y : tensor<64xf32, #wanted>
}
func.func @written(%m: !memory, %z: tensor<64xf32, #row>) -> tensor<64xf32, #wanted> {
  %x = "ttg.local_load"(%m) : (!memory) -> tensor<64xf32, #wanted>
  %c = "ttg.convert_layout"(%z) : (tensor<64xf32, #row>) -> tensor<64xf32, #wanted>
  "ttg.local_store"(%z, %m) : (tensor<64xf32, #row>, !memory) -> ()
  %y = arith.addf %x, %c : tensor<64xf32, #wanted>
  return %y : tensor<64xf32, #wanted>
}
}
