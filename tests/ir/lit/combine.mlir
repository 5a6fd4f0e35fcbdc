// RUN: proton-opt --pipeline='tt-combine' %s | filecheck %s
// RUN: proton-opt --pipeline='tt-combine' --debuginfo %s | filecheck %s --check-prefix=LOC

// The sum of a product and a tensor

// CHECK-LABEL: func.func @a_sum_becomes_the_accumulator
// CHECK-SAME: (%[[A:.*]]: tensor<16x8xf16>, %[[B:.*]]: tensor<8x4xf16>, %[[ACC:.*]]: tensor<16x4xf32>)
// CHECK: %[[D:.*]] = "tt.dot"(%[[A]], %[[B]], %[[ACC]]) {inputPrecision = "ieee", maxNumImpreciseAcc = 0 : i32}
// CHECK-NEXT: return %[[D]]
// LOC-LABEL: func.func @a_sum_becomes_the_accumulator
// LOC: "tt.dot"{{.*}}loc(#[[DOT:.*]])
func.func @a_sum_becomes_the_accumulator(%a: tensor<16x8xf16>, %b: tensor<8x4xf16>, %acc: tensor<16x4xf32>) -> tensor<16x4xf32> {
  %zero = arith.constant dense<0.0> : tensor<16x4xf32>
  %d = "tt.dot"(%a, %b, %zero) {inputPrecision = "ieee", maxNumImpreciseAcc = 0 : i32} : (tensor<16x8xf16>, tensor<8x4xf16>, tensor<16x4xf32>) -> tensor<16x4xf32> loc("scope:dot")
  %r = arith.addf %d, %acc : tensor<16x4xf32> loc("scope:add")
  return %r : tensor<16x4xf32>
}

// CHECK-LABEL: func.func @a_dot_moves_behind_its_new_accumulator
// CHECK: %[[ACC:.*]] = arith.muli
// CHECK-NEXT: "tt.dot"({{.*}}, %[[ACC]])
// CHECK-NEXT: return
func.func @a_dot_moves_behind_its_new_accumulator(%a: tensor<4x4xi8>, %x: tensor<4x4xi32>) -> tensor<4x4xi32> {
  %c = arith.constant 0 : i32
  %zero = "tt.splat"(%c) : (i32) -> tensor<4x4xi32>
  %d = "tt.dot"(%a, %a, %zero) {inputPrecision = "ieee", maxNumImpreciseAcc = 0 : i32} : (tensor<4x4xi8>, tensor<4x4xi8>, tensor<4x4xi32>) -> tensor<4x4xi32>
  %acc = arith.muli %x, %x : tensor<4x4xi32>
  %r = arith.addi %acc, %d : tensor<4x4xi32>
  return %r : tensor<4x4xi32>
}

// CHECK-LABEL: func.func @a_dot_with_an_accumulator_of_its_own_stays
// CHECK: arith.addf
func.func @a_dot_with_an_accumulator_of_its_own_stays(%a: tensor<4x4xf32>, %x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %one = arith.constant dense<1.0> : tensor<4x4xf32>
  %d = "tt.dot"(%a, %a, %one) {inputPrecision = "ieee", maxNumImpreciseAcc = 0 : i32} : (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %r = arith.addf %d, %x : tensor<4x4xf32>
  return %r : tensor<4x4xf32>
}

// CHECK-LABEL: func.func @a_dot_with_two_uses_stays
// CHECK: arith.addf
func.func @a_dot_with_two_uses_stays(%a: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %zero = arith.constant dense<0.0> : tensor<4x4xf32>
  %d = "tt.dot"(%a, %a, %zero) {inputPrecision = "ieee", maxNumImpreciseAcc = 0 : i32} : (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %r = arith.addf %d, %d : tensor<4x4xf32>
  return %r : tensor<4x4xf32>
}

// CHECK-LABEL: func.func @a_dot_stays_outside_of_a_loop
// CHECK: "tt.dot"
// CHECK: scf.for
// CHECK: arith.addf
func.func @a_dot_stays_outside_of_a_loop(%a: tensor<4x4xf32>, %n: index) -> tensor<4x4xf32> {
  %zero = arith.constant dense<0.0> : tensor<4x4xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %d = "tt.dot"(%a, %a, %zero) {inputPrecision = "ieee", maxNumImpreciseAcc = 0 : i32} : (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> tensor<4x4xf32> {
    %s = arith.addf %acc, %d : tensor<4x4xf32>
    scf.yield %s : tensor<4x4xf32>
  }
  return %r : tensor<4x4xf32>
}

// Chains of pointers

// CHECK-LABEL: func.func @constant_offsets_add_up
// CHECK: %[[SUM:.*]] = arith.constant 12 : i32
// CHECK: %[[Q:.*]] = "tt.addptr"(%arg0, %[[SUM]])
// CHECK: return %[[Q]]
func.func @constant_offsets_add_up(%p: !tt.ptr<f32>) -> !tt.ptr<f32> {
  %a = arith.constant 5 : i32
  %b = arith.constant 7 : i32
  %q = "tt.addptr"(%p, %a) : (!tt.ptr<f32>, i32) -> !tt.ptr<f32>
  %r = "tt.addptr"(%q, %b) : (!tt.ptr<f32>, i32) -> !tt.ptr<f32>
  return %r : !tt.ptr<f32>
}

// CHECK-LABEL: func.func @constant_offsets_of_tensors_add_up
// CHECK: %[[SUM:.*]] = arith.constant dense<-2> : tensor<4xi32>
// CHECK: "tt.addptr"(%arg0, %[[SUM]]) {tt.divisibility = array<i64: 8>}
func.func @constant_offsets_of_tensors_add_up(%p: tensor<4x!tt.ptr<f32>>) -> tensor<4x!tt.ptr<f32>> {
  %a = arith.constant dense<5> : tensor<4xi32>
  %c = arith.constant -7 : i32
  %b = "tt.splat"(%c) : (i32) -> tensor<4xi32>
  %q = "tt.addptr"(%p, %a) : (tensor<4x!tt.ptr<f32>>, tensor<4xi32>) -> tensor<4x!tt.ptr<f32>>
  %r = "tt.addptr"(%q, %b) {tt.divisibility = array<i64: 8>} : (tensor<4x!tt.ptr<f32>>, tensor<4xi32>) -> tensor<4x!tt.ptr<f32>>
  return %r : tensor<4x!tt.ptr<f32>>
}

// CHECK-LABEL: func.func @constant_offsets_whose_sum_overflows_stay
// CHECK: "tt.addptr"
// CHECK-NEXT: "tt.addptr"
func.func @constant_offsets_whose_sum_overflows_stay(%p: !tt.ptr<f32>) -> !tt.ptr<f32> {
  %a = arith.constant 2147483647 : i32
  %b = arith.constant 1 : i32
  %q = "tt.addptr"(%p, %a) : (!tt.ptr<f32>, i32) -> !tt.ptr<f32>
  %r = "tt.addptr"(%q, %b) : (!tt.ptr<f32>, i32) -> !tt.ptr<f32>
  return %r : !tt.ptr<f32>
}

// CHECK-LABEL: func.func @the_least_number_is_a_sum_that_fits
// CHECK: %[[SUM:.*]] = arith.constant -2147483648 : i32
// CHECK-NEXT: "tt.addptr"(%arg0, %[[SUM]])
func.func @the_least_number_is_a_sum_that_fits(%p: !tt.ptr<f32>) -> !tt.ptr<f32> {
  %a = arith.constant -2147483647 : i32
  %b = arith.constant -1 : i32
  %q = "tt.addptr"(%p, %a) : (!tt.ptr<f32>, i32) -> !tt.ptr<f32>
  %r = "tt.addptr"(%q, %b) : (!tt.ptr<f32>, i32) -> !tt.ptr<f32>
  return %r : !tt.ptr<f32>
}

// CHECK-LABEL: func.func @offsets_of_i64_add_up
// CHECK: %[[SUM:.*]] = arith.addi %arg1, %arg2 : i64
// CHECK: "tt.addptr"(%arg0, %[[SUM]])
func.func @offsets_of_i64_add_up(%p: !tt.ptr<f32>, %a: i64, %b: i64) -> !tt.ptr<f32> {
  %q = "tt.addptr"(%p, %a) : (!tt.ptr<f32>, i64) -> !tt.ptr<f32>
  %r = "tt.addptr"(%q, %b) : (!tt.ptr<f32>, i64) -> !tt.ptr<f32>
  return %r : !tt.ptr<f32>
}

// CHECK-LABEL: func.func @unknown_offsets_of_i32_stay
// CHECK: "tt.addptr"
// CHECK-NEXT: "tt.addptr"
func.func @unknown_offsets_of_i32_stay(%p: !tt.ptr<f32>, %a: i32, %b: i32) -> !tt.ptr<f32> {
  %q = "tt.addptr"(%p, %a) : (!tt.ptr<f32>, i32) -> !tt.ptr<f32>
  %r = "tt.addptr"(%q, %b) : (!tt.ptr<f32>, i32) -> !tt.ptr<f32>
  return %r : !tt.ptr<f32>
}

// CHECK-LABEL: func.func @a_pointer_with_two_uses_stays
// CHECK-NOT: arith.addi
// CHECK: return
func.func @a_pointer_with_two_uses_stays(%p: !tt.ptr<f32>, %a: i64, %b: i64) -> (!tt.ptr<f32>, !tt.ptr<f32>) {
  %q = "tt.addptr"(%p, %a) : (!tt.ptr<f32>, i64) -> !tt.ptr<f32>
  %r = "tt.addptr"(%q, %b) : (!tt.ptr<f32>, i64) -> !tt.ptr<f32>
  return %q, %r : !tt.ptr<f32>, !tt.ptr<f32>
}

// CHECK-LABEL: func.func @offsets_of_two_types_stay
// CHECK: "tt.addptr"
// CHECK-NEXT: "tt.addptr"
func.func @offsets_of_two_types_stay(%p: !tt.ptr<f32>, %a: i64) -> !tt.ptr<f32> {
  %b = arith.constant 1 : i32
  %q = "tt.addptr"(%p, %a) : (!tt.ptr<f32>, i64) -> !tt.ptr<f32>
  %r = "tt.addptr"(%q, %b) : (!tt.ptr<f32>, i32) -> !tt.ptr<f32>
  return %r : !tt.ptr<f32>
}

// Loads under a select

// CHECK-LABEL: func.func @a_select_becomes_the_other_of_its_load
// CHECK-SAME: (%[[P:.*]]: tensor<4x!tt.ptr<f32>>, %[[M:.*]]: tensor<4xi1>, %[[X:.*]]: tensor<4xf32>)
// CHECK-NEXT: %[[L:.*]] = "tt.load"(%[[P]], %[[M]], %[[X]]) {cache = ".ca", evict = "", operandSegmentSizes = array<i32: 1, 1, 1>, volatile = false}
// CHECK-NEXT: return %[[L]]
func.func @a_select_becomes_the_other_of_its_load(%p: tensor<4x!tt.ptr<f32>>, %m: tensor<4xi1>, %x: tensor<4xf32>) -> tensor<4xf32> {
  %l = "tt.load"(%p, %m) {cache = ".ca", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>, volatile = false} : (tensor<4x!tt.ptr<f32>>, tensor<4xi1>) -> tensor<4xf32>
  %r = arith.select %m, %l, %x : tensor<4xi1>, tensor<4xf32>
  return %r : tensor<4xf32>
}

// CHECK-LABEL: func.func @a_late_splat_moves_before_the_load
// CHECK: %[[X:.*]] = "tt.splat"(%arg3)
// CHECK-NEXT: %[[L:.*]] = "tt.load"({{.*}}, %[[X]])
// CHECK-NEXT: return %[[L]]
func.func @a_late_splat_moves_before_the_load(%p: tensor<4x!tt.ptr<f32>>, %m: tensor<4xi1>, %o: tensor<4xf32>, %s: f32) -> tensor<4xf32> {
  %l = "tt.load"(%p, %m, %o) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 1>, volatile = false} : (tensor<4x!tt.ptr<f32>>, tensor<4xi1>, tensor<4xf32>) -> tensor<4xf32>
  %x = "tt.splat"(%s) : (f32) -> tensor<4xf32>
  %r = arith.select %m, %l, %x : tensor<4xi1>, tensor<4xf32>
  return %r : tensor<4xf32>
}

// CHECK-LABEL: func.func @a_value_computed_after_the_load_keeps_the_select
// CHECK: arith.select
func.func @a_value_computed_after_the_load_keeps_the_select(%p: tensor<4x!tt.ptr<f32>>, %m: tensor<4xi1>, %o: tensor<4xf32>) -> tensor<4xf32> {
  %l = "tt.load"(%p, %m) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>, volatile = false} : (tensor<4x!tt.ptr<f32>>, tensor<4xi1>) -> tensor<4xf32>
  %x = arith.addf %o, %o : tensor<4xf32>
  %r = arith.select %m, %l, %x : tensor<4xi1>, tensor<4xf32>
  return %r : tensor<4xf32>
}

// CHECK-LABEL: func.func @a_splat_of_a_late_value_keeps_the_select
// CHECK: arith.select
func.func @a_splat_of_a_late_value_keeps_the_select(%p: tensor<4x!tt.ptr<f32>>, %m: tensor<4xi1>, %o: f32) -> tensor<4xf32> {
  %l = "tt.load"(%p, %m) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>, volatile = false} : (tensor<4x!tt.ptr<f32>>, tensor<4xi1>) -> tensor<4xf32>
  %s = arith.addf %o, %o : f32
  %x = "tt.splat"(%s) : (f32) -> tensor<4xf32>
  %r = arith.select %m, %l, %x : tensor<4xi1>, tensor<4xf32>
  return %r : tensor<4xf32>
}

// CHECK-LABEL: func.func @another_mask_keeps_the_select
// CHECK: arith.select
func.func @another_mask_keeps_the_select(%p: tensor<4x!tt.ptr<f32>>, %m: tensor<4xi1>, %n: tensor<4xi1>, %x: tensor<4xf32>) -> tensor<4xf32> {
  %l = "tt.load"(%p, %m, %x) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 1>, volatile = false} : (tensor<4x!tt.ptr<f32>>, tensor<4xi1>, tensor<4xf32>) -> tensor<4xf32>
  %r = arith.select %n, %l, %x : tensor<4xi1>, tensor<4xf32>
  return %r : tensor<4xf32>
}

// CHECK-LABEL: func.func @a_load_with_two_uses_keeps_the_select
// CHECK: arith.select
func.func @a_load_with_two_uses_keeps_the_select(%p: tensor<4x!tt.ptr<f32>>, %m: tensor<4xi1>, %x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %l = "tt.load"(%p, %m, %x) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 1>, volatile = false} : (tensor<4x!tt.ptr<f32>>, tensor<4xi1>, tensor<4xf32>) -> tensor<4xf32>
  %r = arith.select %m, %l, %x : tensor<4xi1>, tensor<4xf32>
  return %l, %r : tensor<4xf32>, tensor<4xf32>
}

// CHECK-LABEL: func.func @a_select_in_another_block_stays
// CHECK: scf.if
// CHECK-NEXT: arith.select
func.func @a_select_in_another_block_stays(%p: !tt.ptr<f32>, %m: i1, %n: i1, %x: f32) -> f32 {
  %l = "tt.load"(%p, %m) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>, volatile = false} : (!tt.ptr<f32>, i1) -> f32
  %r = scf.if %n -> f32 {
    %s = arith.select %m, %l, %x : f32
    scf.yield %s : f32
  } else {
    scf.yield %x : f32
  }
  return %r : f32
}

// CHECK-LABEL: func.func @a_volatile_load_keeps_the_select
// CHECK-NEXT: "tt.load"
// CHECK-NEXT: arith.select
func.func @a_volatile_load_keeps_the_select(%p: !tt.ptr<f32>, %m: i1, %x: f32) -> f32 {
  %l = "tt.load"(%p, %m) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>, volatile = true} : (!tt.ptr<f32>, i1) -> f32
  %r = arith.select %m, %l, %x : f32
  return %r : f32
}

// Changes of shape

// CHECK-LABEL: func.func @a_splat_of_a_constant_is_a_constant
// CHECK: %[[C:.*]] = arith.constant dense<2.500000e+00> : tensor<4x8xf32>
// CHECK: return %[[C]]
func.func @a_splat_of_a_constant_is_a_constant() -> tensor<4x8xf32> {
  %c = arith.constant 2.5 : f32
  %s = "tt.splat"(%c) : (f32) -> tensor<4x8xf32>
  return %s : tensor<4x8xf32>
}

// CHECK-LABEL: func.func @changes_of_shape_of_a_splat_are_one_splat
// CHECK: %[[S:.*]] = "tt.splat"(%arg0) : (!tt.ptr<f32>) -> tensor<8x2x4x!tt.ptr<f32>>
// CHECK-NEXT: return %[[S]]
func.func @changes_of_shape_of_a_splat_are_one_splat(%p: !tt.ptr<f32>) -> tensor<8x2x4x!tt.ptr<f32>> {
  %s = "tt.splat"(%p) : (!tt.ptr<f32>) -> tensor<4x!tt.ptr<f32>>
  %e = "tt.expand_dims"(%s) {axis = 1 : i32} : (tensor<4x!tt.ptr<f32>>) -> tensor<4x1x!tt.ptr<f32>>
  %b = "tt.broadcast"(%e) : (tensor<4x1x!tt.ptr<f32>>) -> tensor<4x16x!tt.ptr<f32>>
  %r = "tt.reshape"(%b) : (tensor<4x16x!tt.ptr<f32>>) -> tensor<2x4x8x!tt.ptr<f32>>
  %t = "tt.trans"(%r) {order = array<i64: 2, 0, 1>} : (tensor<2x4x8x!tt.ptr<f32>>) -> tensor<8x2x4x!tt.ptr<f32>>
  return %t : tensor<8x2x4x!tt.ptr<f32>>
}

// CHECK-LABEL: func.func @changes_of_shape_of_a_constant_are_one_constant
// CHECK: %[[C:.*]] = arith.constant dense<true> : tensor<8x4xi1>
// CHECK-NEXT: return %[[C]]
func.func @changes_of_shape_of_a_constant_are_one_constant() -> tensor<8x4xi1> {
  %c = arith.constant dense<true> : tensor<4x1xi1>
  %b = "tt.broadcast"(%c) : (tensor<4x1xi1>) -> tensor<4x8xi1>
  %t = "tt.trans"(%b) {order = array<i64: 1, 0>} : (tensor<4x8xi1>) -> tensor<8x4xi1>
  return %t : tensor<8x4xi1>
}

// CHECK-LABEL: func.func @shapes_of_other_tensors_change
// CHECK: "tt.expand_dims"
// CHECK-NEXT: "tt.broadcast"
// CHECK-NEXT: "tt.trans"
// CHECK-NEXT: "tt.reshape"
func.func @shapes_of_other_tensors_change() -> tensor<16xi32> {
  %c = arith.constant dense<[1, 2, 3, 4]> : tensor<4xi32>
  %e = "tt.expand_dims"(%c) {axis = 1 : i32} : (tensor<4xi32>) -> tensor<4x1xi32>
  %b = "tt.broadcast"(%e) : (tensor<4x1xi32>) -> tensor<4x4xi32>
  %t = "tt.trans"(%b) {order = array<i64: 1, 0>} : (tensor<4x4xi32>) -> tensor<4x4xi32>
  %r = "tt.reshape"(%t) : (tensor<4x4xi32>) -> tensor<16xi32>
  return %r : tensor<16xi32>
}

// CHECK-LABEL: func.func @two_permutations_are_one
// CHECK: %[[T:.*]] = "tt.trans"(%arg0) {order = array<i64: 3, 1, 0, 2>} : (tensor<2x4x8x16xf32>) -> tensor<16x4x2x8xf32>
// CHECK: return %[[T]]
func.func @two_permutations_are_one(%x: tensor<2x4x8x16xf32>) -> tensor<16x4x2x8xf32> {
  %a = "tt.trans"(%x) {order = array<i64: 1, 2, 3, 0>} : (tensor<2x4x8x16xf32>) -> tensor<4x8x16x2xf32>
  %b = "tt.trans"(%a) {order = array<i64: 2, 0, 3, 1>} : (tensor<4x8x16x2xf32>) -> tensor<16x4x2x8xf32>
  return %b : tensor<16x4x2x8xf32>
}

// CHECK-LABEL: func.func @permutations_that_undo_each_other_go
// CHECK: return %arg0
func.func @permutations_that_undo_each_other_go(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %a = "tt.trans"(%x) {order = array<i64: 1, 0>} : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %b = "tt.trans"(%a) {order = array<i64: 1, 0>} : (tensor<4x4xf32>) -> tensor<4x4xf32>
  return %b : tensor<4x4xf32>
}

// CHECK-LABEL: func.func @a_permutation_that_keeps_the_type_stays
// CHECK: %[[T:.*]] = "tt.trans"(%arg0)
// CHECK-NEXT: return %[[T]]
func.func @a_permutation_that_keeps_the_type_stays(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %a = "tt.trans"(%x) {order = array<i64: 1, 0>} : (tensor<4x4xf32>) -> tensor<4x4xf32>
  return %a : tensor<4x4xf32>
}

// CHECK-LABEL: func.func @two_reshapes_are_one
// CHECK: %[[R:.*]] = "tt.reshape"(%arg0) : (tensor<4x8xf32>) -> tensor<2x16xf32>
// CHECK: return %[[R]], %arg0
func.func @two_reshapes_are_one(%x: tensor<4x8xf32>) -> (tensor<2x16xf32>, tensor<4x8xf32>) {
  %a = "tt.reshape"(%x) : (tensor<4x8xf32>) -> tensor<32xf32>
  %b = "tt.reshape"(%a) : (tensor<32xf32>) -> tensor<2x16xf32>
  %c = "tt.reshape"(%a) : (tensor<32xf32>) -> tensor<4x8xf32>
  return %b, %c : tensor<2x16xf32>, tensor<4x8xf32>
}

// CHECK-LABEL: func.func @two_broadcasts_are_one
// CHECK: %[[R:.*]] = "tt.broadcast"(%arg0) : (tensor<1x1xf32>) -> tensor<4x8xf32>
// CHECK: return %[[R]]
func.func @two_broadcasts_are_one(%x: tensor<1x1xf32>) -> tensor<4x8xf32> {
  %a = "tt.broadcast"(%x) : (tensor<1x1xf32>) -> tensor<1x8xf32>
  %b = "tt.broadcast"(%a) : (tensor<1x8xf32>) -> tensor<4x8xf32>
  return %b : tensor<4x8xf32>
}

// CHECK-LABEL: func.func @two_new_dimensions_stay
// CHECK: "tt.expand_dims"
// CHECK-NEXT: "tt.expand_dims"
func.func @two_new_dimensions_stay(%x: tensor<4xf32>) -> tensor<4x1x1xf32> {
  %a = "tt.expand_dims"(%x) {axis = 1 : i32} : (tensor<4xf32>) -> tensor<4x1xf32>
  %b = "tt.expand_dims"(%a) {axis = 1 : i32} : (tensor<4x1xf32>) -> tensor<4x1x1xf32>
  return %b : tensor<4x1x1xf32>
}

// CHECK-LABEL: func.func @what_changes_nothing_goes
// CHECK-NEXT: return %arg0, %arg0, %arg0
func.func @what_changes_nothing_goes(%x: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>) {
  %a = "tt.broadcast"(%x) : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %b = "tt.reshape"(%x) : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %c = "tt.trans"(%x) {order = array<i64: 0, 1>} : (tensor<4x4xf32>) -> tensor<4x4xf32>
  return %a, %b, %c : tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>
}

// Unused loads

// CHECK-LABEL: func.func @loads_that_nobody_uses_go
// CHECK-NOT: "tt.load"
// CHECK: return
func.func @loads_that_nobody_uses_go(%p: !tt.ptr<!tt.ptr<f32>>) {
  %q = "tt.load"(%p) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (!tt.ptr<!tt.ptr<f32>>) -> !tt.ptr<f32>
  %x = "tt.load"(%q) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (!tt.ptr<f32>) -> f32
  return
}

// CHECK-LABEL: func.func @a_volatile_load_stays
// CHECK: "tt.load"
func.func @a_volatile_load_stays(%p: !tt.ptr<f32>) {
  %x = "tt.load"(%p) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = true} : (!tt.ptr<f32>) -> f32
  return
}

// CHECK-LABEL: func.func @a_load_that_is_stored_stays
// CHECK: "tt.load"
func.func @a_load_that_is_stored_stays(%p: !tt.ptr<f32>) {
  %x = "tt.load"(%p) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (!tt.ptr<f32>) -> f32
  "tt.store"(%p, %x) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>} : (!tt.ptr<f32>, f32) -> ()
  return
}

// Masks that are known

// CHECK-LABEL: func.func @a_mask_of_trues_goes
// CHECK: %[[L:.*]] = "tt.load"(%arg0) {cache = "", evict = "evict_first", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = true}
// CHECK: "tt.store"(%arg0, %[[L]]) {cache = ".wt", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>}
func.func @a_mask_of_trues_goes(%p: tensor<4x!tt.ptr<f32>>, %x: tensor<4xf32>) {
  %true = arith.constant true
  %m = "tt.splat"(%true) : (i1) -> tensor<4xi1>
  %l = "tt.load"(%p, %m, %x) {cache = "", evict = "evict_first", operandSegmentSizes = array<i32: 1, 1, 1>, volatile = true} : (tensor<4x!tt.ptr<f32>>, tensor<4xi1>, tensor<4xf32>) -> tensor<4xf32>
  "tt.store"(%p, %l, %m) {cache = ".wt", evict = "", operandSegmentSizes = array<i32: 1, 1, 1>} : (tensor<4x!tt.ptr<f32>>, tensor<4xf32>, tensor<4xi1>) -> ()
  return
}

// CHECK-LABEL: func.func @a_mask_of_falses_takes_the_access_with_it
// CHECK-NOT: "tt.load"
// CHECK-NOT: "tt.store"
// CHECK: return %arg1
func.func @a_mask_of_falses_takes_the_access_with_it(%p: !tt.ptr<f32>, %x: f32) -> f32 {
  %m = arith.constant false
  %l = "tt.load"(%p, %m, %x) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 1>, volatile = false} : (!tt.ptr<f32>, i1, f32) -> f32
  "tt.store"(%p, %l, %m) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 1>} : (!tt.ptr<f32>, f32, i1) -> ()
  return %l : f32
}

// CHECK-LABEL: func.func @a_mask_that_varies_stays
// CHECK: "tt.load"(%arg0, %[[M:.*]]) {{.*}}array<i32: 1, 1, 0>
// CHECK: "tt.store"(%arg0, {{.*}}, %[[M]]) {{.*}}array<i32: 1, 1, 1>
func.func @a_mask_that_varies_stays(%p: tensor<4x!tt.ptr<f32>>) {
  %m = arith.constant dense<[true, true, false, true]> : tensor<4xi1>
  %l = "tt.load"(%p, %m) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>, volatile = false} : (tensor<4x!tt.ptr<f32>>, tensor<4xi1>) -> tensor<4xf32>
  "tt.store"(%p, %l, %m) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 1>} : (tensor<4x!tt.ptr<f32>>, tensor<4xf32>, tensor<4xi1>) -> ()
  return
}

// CHECK-LABEL: func.func @a_load_of_nothing_without_other_stays
// CHECK: "tt.load"(%arg0, %{{.*}})
func.func @a_load_of_nothing_without_other_stays(%p: !tt.ptr<f32>) -> f32 {
  %m = arith.constant false
  %l = "tt.load"(%p, %m) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>, volatile = false} : (!tt.ptr<f32>, i1) -> f32
  return %l : f32
}

// CHECK-LABEL: func.func @a_volatile_load_of_nothing_stays
// CHECK: "tt.load"(%arg0, %{{.*}}, %arg1)
func.func @a_volatile_load_of_nothing_stays(%p: !tt.ptr<f32>, %x: f32) -> f32 {
  %m = arith.constant false
  %l = "tt.load"(%p, %m, %x) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 1>, volatile = true} : (!tt.ptr<f32>, i1, f32) -> f32
  return %l : f32
}

// Reductions

// CHECK-LABEL: func.func @a_choice_of_the_larger_is_a_maximum
// CHECK: %[[M:.*]] = arith.maximumf %[[A:.*]], %[[B:.*]] : f32
// CHECK-NEXT: "tt.reduce_return"(%[[M]])
func.func @a_choice_of_the_larger_is_a_maximum(%x: tensor<8xf32>) -> f32 {
  %r = "tt.reduce"(%x) ({
  ^bb0(%a: f32, %b: f32):
    %larger = arith.cmpf ogt, %a, %b : f32
    %nan = arith.cmpf uno, %a, %a : f32
    %c = arith.ori %larger, %nan : i1
    %s = arith.select %c, %a, %b : f32
    "tt.reduce_return"(%s) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (f32) -> ()
  }) {axis = 0 : i32, operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (tensor<8xf32>) -> f32
  return %r : f32
}

// CHECK-LABEL: func.func @a_choice_that_loses_some_nans_stays
// CHECK-NOT: arith.max
// CHECK: return
func.func @a_choice_that_loses_some_nans_stays(%x: tensor<8xf32>) -> f32 {
  %r = "tt.reduce"(%x) ({
  ^bb0(%a: f32, %b: f32):
    %larger = arith.cmpf ogt, %a, %b : f32
    %s = arith.select %larger, %a, %b : f32
    "tt.reduce_return"(%s) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (f32) -> ()
  }) {axis = 0 : i32, operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (tensor<8xf32>) -> f32
  return %r : f32
}

// The locations of the first function

// LOC: #[[DOT]] = loc("scope:dot")
