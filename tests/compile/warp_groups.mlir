// c = a b, of fp16, by two groups of warps. Warps 4 to 7 copy blocks of a and b to two buffers, and
// wait for one to be empty before they fill it again; warps 0 to 3 multiply what is full, and store.
// full[i] waits for one arrival and the bytes, empty[i] for the 128 threads that read. Warps 4 to 7 meet
// in each turn: one that was two phases behind would wait for ever.

#acc = #ttg.linear<[[0, 1], [8, 0], [0, 8], [0, 16], [0, 32], [0, 64]], [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], [[16, 0], [32, 0]], []>
#left = #ttg.shared<[[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
#right = #ttg.shared<[[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0], [0, 64]]>
#words = #ttg.shared<[]>
!lefts = !ttg.mutable_memdesc<[2, 64, 64], f16, #left>
!rights = !ttg.mutable_memdesc<[2, 64, 128], f16, #right>
!left = !ttg.mutable_memdesc<[64, 64], f16, #left>
!right = !ttg.mutable_memdesc<[64, 128], f16, #right>
!barriers = !ttg.mutable_memdesc<[2, 1], i64, #words>
!barrier = !ttg.mutable_memdesc<[1], i64, #words>
!map_a = !ttng.tensormap<tensor<64x64xf16>, "zero">
!map_b = !ttng.tensormap<tensor<64x128xf16>, "zero">
!sums = tensor<64x128xf32, #acc>
module attributes {"ttg.num-warps" = 8 : i32} {
  func.func @product$(%a: !tt.ptr<f16> {tt.divisibility = 16 : i32, tt.element = "fp16", tt.name = "a"}, %b: !tt.ptr<f16> {tt.divisibility = 16 : i32, tt.element = "fp16", tt.name = "b"}, %c: !tt.ptr<f16> {tt.divisibility = 16 : i32, tt.element = "fp16", tt.name = "c"}, %m: i32 {tt.divisibility = 16 : i32, tt.name = "m"}, %n: i32 {tt.divisibility = 16 : i32, tt.name = "n"}, %k: i32 {tt.divisibility = 16 : i32, tt.name = "k"}) attributes {tt.kernel} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c2 = arith.constant 2 : i32
    %c64 = arith.constant 64 : i32
    %c128 = arith.constant 128 : i32
    %true = arith.constant true
    %n_long = arith.extsi %n : i32 to i64
    %k_long = arith.extsi %k : i32 to i64
    %map_a = "ttng.tensor_map"(%a, %m, %k, %k_long) {operandSegmentSizes = array<i32: 1, 2, 1, 0>} : (!tt.ptr<f16>, i32, i32, i64) -> !map_a
    %map_b = "ttng.tensor_map"(%b, %k, %n, %n_long) {operandSegmentSizes = array<i32: 1, 2, 1, 0>} : (!tt.ptr<f16>, i32, i32, i64) -> !map_b
    %map_c = "ttng.tensor_map"(%c, %m, %n, %n_long) {operandSegmentSizes = array<i32: 1, 2, 1, 0>} : (!tt.ptr<f16>, i32, i32, i64) -> !map_b
    %x = "tt.get_program_id"() {axis = 0 : i32} : () -> i32
    %y = "tt.get_program_id"() {axis = 1 : i32} : () -> i32
    %row = arith.muli %x, %c64 : i32
    %column = arith.muli %y, %c128 : i32
    %lefts = "ttg.local_reserve"() : () -> !lefts
    %rights = "ttg.local_reserve"() : () -> !rights
    %full = "ttg.local_reserve"() : () -> !barriers
    %empty = "ttg.local_reserve"() : () -> !barriers
    "ttng.init_barrier"(%full) {count = 1 : i32} : (!barriers) -> ()
    "ttng.init_barrier"(%empty) {count = 128 : i32} : (!barriers) -> ()
    "ttng.fence_async_shared"() : () -> ()
    "ttg.warp_specialize"() ({
      %zero = arith.constant dense<0.0> : !sums
      %out = "ttg.local_reserve"() : () -> !right
      %r:3 = scf.for %i = %c0 to %k step %c64 iter_args(%acc = %zero, %at = %c0, %phase = %c0) -> (!sums, i32, i32) : i32 {
        %is_full = "ttg.memdesc_index"(%full, %at) : (!barriers, i32) -> !barrier
        "ttng.wait_barrier"(%is_full, %phase) : (!barrier, i32) -> ()
        %left = "ttg.memdesc_index"(%lefts, %at) : (!lefts, i32) -> !left
        %right = "ttg.memdesc_index"(%rights, %at) : (!rights, i32) -> !right
        %d = "ttng.warp_group_dot"(%left, %right, %acc) {imprecise = 0 : i32, operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (!left, !right, !sums) -> !sums
        %s = "ttng.warp_group_dot_wait"(%d) {pendings = 0 : i32} : (!sums) -> !sums
        %is_empty = "ttg.memdesc_index"(%empty, %at) : (!barriers, i32) -> !barrier
        "ttng.arrive_barrier"(%is_empty) : (!barrier) -> ()
        %next = arith.xori %at, %c1 : i32
        %after = arith.xori %phase, %at : i32
        scf.yield %s, %next, %after : !sums, i32, i32
      }
      %narrow = arith.truncf %r#0 : !sums to tensor<64x128xf16, #acc>
      "ttg.local_store"(%narrow, %out) : (tensor<64x128xf16, #acc>, !right) -> ()
      "ttng.fence_async_shared"() : () -> ()
      "ttng.async_tma_copy_local_to_global"(%map_c, %out, %row, %column) {operandSegmentSizes = array<i32: 1, 1, 2>, reduction = "none"} : (!map_b, !right, i32, i32) -> ()
      "ttng.tma_store_wait"() {landed = false, pendings = 0 : i32} : () -> ()
      "ttg.warp_return"() : () -> ()
    }, {
      %r:2 = scf.for %i = %c0 to %k step %c64 iter_args(%at = %c0, %phase = %c1) -> (i32, i32) : i32 {
        %is_empty = "ttg.memdesc_index"(%empty, %at) : (!barriers, i32) -> !barrier
        "ttng.wait_barrier"(%is_empty, %phase) : (!barrier, i32) -> ()
        "ttg.barrier"() : () -> ()
        %is_full = "ttg.memdesc_index"(%full, %at) : (!barriers, i32) -> !barrier
        "ttng.barrier_expect"(%is_full, %true) {bytes = 24576 : i32, operandSegmentSizes = array<i32: 1, 1, 0>} : (!barrier, i1) -> ()
        %left = "ttg.memdesc_index"(%lefts, %at) : (!lefts, i32) -> !left
        "ttng.async_tma_copy_global_to_local"(%map_a, %is_full, %left, %true, %row, %i) {operandSegmentSizes = array<i32: 1, 1, 1, 1, 2>} : (!map_a, !barrier, !left, i1, i32, i32) -> ()
        %right = "ttg.memdesc_index"(%rights, %at) : (!rights, i32) -> !right
        "ttng.async_tma_copy_global_to_local"(%map_b, %is_full, %right, %true, %i, %column) {operandSegmentSizes = array<i32: 1, 1, 1, 1, 2>} : (!map_b, !barrier, !right, i1, i32, i32) -> ()
        %next = arith.xori %at, %c1 : i32
        %after = arith.xori %phase, %at : i32
        scf.yield %next, %after : i32, i32
      }
      "ttg.warp_return"() : () -> ()
    }) {warps = 4 : i32} : () -> ()
    "ttng.inval_barrier"(%full) : (!barriers) -> ()
    "ttng.inval_barrier"(%empty) : (!barriers) -> ()
    return
  }
}
