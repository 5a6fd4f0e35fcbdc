// RUN: proton-opt --pipeline='triton-nvidia-gpu-create-tensor-maps' %s | filecheck %s
// RUN: proton-opt --pipeline='triton-nvidia-gpu-create-tensor-maps,allocate-tensor-maps,allocate-global-scratch,allocate-shared-memory,membar' %s | filecheck %s --check-prefix=PLACES

#row = #ttg.shared<[[1], [2], [4], [8], [16], [32]]>
!map = !ttng.tensormap<tensor<64xf32>, "zero">
!block = !ttg.mutable_memdesc<[64], f32, #row>

module attributes {"ttg.num-warps" = 2 : i32} {

// Both are made before one is used, each by a warp. The loop makes them again: what it stores must
// have been read. The map of arguments is the host's.

// CHECK-LABEL: func.func @made(
// CHECK: "ttng.tensor_map"(%{{.*}}, %[[N:arg[0-9]+]])
// CHECK: scf.for
// CHECK: "ttng.tma_store_wait"() {landed = false, pendings = 0 : i32}
// CHECK-NEXT: "ttg.barrier"()
// CHECK-NEXT: %[[P:.*]] = "ttg.local_reserve"() : () -> !ttg.mutable_memdesc<[32], i32
// CHECK-NEXT: %[[Q:.*]] = "ttg.local_reserve"()
// CHECK-NEXT: %[[FIRST:.*]] = "ttng.tensormap_create"(%[[P]], %{{.*}}, %[[N]]) {{.*}}warp = 0
// CHECK-NEXT: %[[SECOND:.*]] = "ttng.tensormap_create"(%[[Q]], %{{.*}}, %[[N]]) {{.*}}warp = 1
// CHECK-NEXT: "ttg.barrier"()
// CHECK-NEXT: scf.if
// CHECK-NEXT: "ttng.async_tma_copy_local_to_global"(%[[FIRST]],
// CHECK: "ttng.async_tma_copy_local_to_global"(%[[SECOND]],

// Nothing stores by this one: threads have waited for all that was loaded.
// CHECK-NOT: "ttng.tma_store_wait"
// CHECK: %[[THIRD:.*]] = "ttng.tensormap_create"({{.*}}warp = 0
// CHECK-NEXT: "ttg.barrier"()
// CHECK-NEXT: "ttng.async_tma_copy_global_to_local"(%[[THIRD]],

// A place for each, and 16 bytes behind all of them; both ends of a warp's work are in shared
// memory of its own, so no further barrier.

// PLACES-LABEL: func.func @made(
// PLACES-SAME: !ttng.tensormap<tensor<64xf32>, "zero"> {ttng.by_value}, %{{.*}}: !llvm.ptr<1>
// PLACES-SAME: proton.abi = ["tensor_map", "global_scratch"]
// PLACES-SAME: ttg.global_scratch_memory_size = 512 : i32
// PLACES: "ttg.barrier"()
// PLACES: "ttg.local_reserve"() {ttg.offset = [[A:.*]] : i32}
// PLACES: "ttg.local_reserve"()
// PLACES-NEXT: "ttng.tensormap_create"({{.*}}ttg.global_scratch_memory_offsets = array<i32: 0, 384>
// PLACES-NEXT: "ttng.tensormap_create"({{.*}}ttg.global_scratch_memory_offsets = array<i32: 128, 400>
// PLACES-NEXT: "ttg.barrier"()
// PLACES-NEXT: scf.if
// PLACES: "ttng.tensormap_create"({{.*}}ttg.global_scratch_memory_offsets = array<i32: 256, 416>
func.func @made(%x: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %table: !tt.ptr<i64>, %n: i32, %is: i1) attributes {tt.kernel} {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %memory = "ttg.local_reserve"() : () -> !block
  %barrier = "ttg.local_reserve"() : () -> !ttg.mutable_memdesc<[1], i64, #ttg.shared<[]>>
  %known = "ttng.tensor_map"(%x, %n) {operandSegmentSizes = array<i32: 1, 1, 0, 0>} : (!tt.ptr<f32>, i32) -> !map
  "ttng.async_tma_copy_local_to_global"(%known, %memory, %zero) {operandSegmentSizes = array<i32: 1, 1, 1>, reduction = "none"} : (!map, !block, i32) -> ()
  scf.for %i = %zero to %n step %one : i32 {
    %a = "tt.addptr"(%table, %i) : (!tt.ptr<i64>, i32) -> !tt.ptr<i64>
    %b = "tt.load"(%a) {cache = "", evict = "", volatile = false, operandSegmentSizes = array<i32: 1, 0, 0>} : (!tt.ptr<i64>) -> i64
    %p = "tt.int_to_ptr"(%b) : (i64) -> !tt.ptr<f32>
    %first = "ttng.tensor_map"(%p, %n) {operandSegmentSizes = array<i32: 1, 1, 0, 0>} : (!tt.ptr<f32>, i32) -> !map
    %q = "tt.addptr"(%p, %n) : (!tt.ptr<f32>, i32) -> !tt.ptr<f32>
    %second = "ttng.tensor_map"(%q, %n) {operandSegmentSizes = array<i32: 1, 1, 0, 0>} : (!tt.ptr<f32>, i32) -> !map
    scf.if %is {
      "ttng.async_tma_copy_local_to_global"(%first, %memory, %zero) {operandSegmentSizes = array<i32: 1, 1, 1>, reduction = "none"} : (!map, !block, i32) -> ()
    }
    "ttng.async_tma_copy_local_to_global"(%second, %memory, %zero) {operandSegmentSizes = array<i32: 1, 1, 1>, reduction = "none"} : (!map, !block, i32) -> ()
    %third = "ttng.tensor_map"(%p, %i) {operandSegmentSizes = array<i32: 1, 1, 0, 0>} : (!tt.ptr<f32>, i32) -> !map
    "ttng.async_tma_copy_global_to_local"(%third, %barrier, %memory, %is, %zero) {operandSegmentSizes = array<i32: 1, 1, 1, 1, 1>} : (!map, !ttg.mutable_memdesc<[1], i64, #ttg.shared<[]>>, !block, i1, i32) -> ()
  }
  return
}
}
