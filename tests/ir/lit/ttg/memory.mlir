// RUN: proton-opt %s | proton-opt | filecheck %s
// Every op and type of ttg_memory.py, printed, parsed and printed again.

!buffers = !ttg.mutable_memdesc<[2, 4], f32, #ttg.shared<[[1], [2]]>>
!buffer = !ttg.mutable_memdesc<[4], f32, #ttg.shared<[[1], [2]]>>

// CHECK-LABEL: func.func @ops
func.func @ops(%p: tensor<4x!tt.ptr<f32>>, %i: i32) {
  // CHECK: %[[ALL:.*]] = "ttg.local_reserve"() : () -> !ttg.mutable_memdesc<[2, 4], f32, #ttg.shared<{{..}}1], [2]]>>
  %all = "ttg.local_reserve"() : () -> !buffers
  // CHECK: %[[ONE:.*]] = "ttg.memdesc_index"(%[[ALL]], %{{.*}}) : ({{.*}}, i32) -> !ttg.mutable_memdesc<[4], f32, {{.*}}>
  %one = "ttg.memdesc_index"(%all, %i) : (!buffers, i32) -> !buffer
  // CHECK: %[[T:.*]] = "ttg.async_copy_global_to_local"(%{{.*}}, %[[ONE]]) {{.*}} -> !ttg.async_token
  %t = "ttg.async_copy_global_to_local"(%p, %one) {operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<4x!tt.ptr<f32>>, !buffer) -> !ttg.async_token
  // CHECK: "ttg.async_wait"(%[[T]]) {{.*}} : (!ttg.async_token) -> ()
  "ttg.async_wait"(%t) {pendings = 0 : i32} : (!ttg.async_token) -> ()
  // CHECK: %[[X:.*]] = "ttg.local_load"(%[[ONE]]) : {{.*}} -> tensor<4xf32>
  %x = "ttg.local_load"(%one) : (!buffer) -> tensor<4xf32>
  // CHECK: "ttg.warp_specialize"() ({
  "ttg.warp_specialize"() ({
    // CHECK: "ttg.local_store"(%[[X]], %[[ONE]])
    "ttg.local_store"(%x, %one) : (tensor<4xf32>, !buffer) -> ()
    // CHECK: "ttg.warp_return"() : () -> ()
    "ttg.warp_return"() : () -> ()
  }, {
    "ttg.warp_return"() : () -> ()
  }) {warps = 2 : i32} : () -> ()
  return
}
