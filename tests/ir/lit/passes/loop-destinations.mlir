// RUN: proton-opt --pipeline='loop-destinations' %s | filecheck %s
#id = affine_map<(d0) -> (d0)>

// CHECK-LABEL: func.func @a_splat_becomes_a_fill
// CHECK-NEXT: %[[X:.*]] = arith.constant 2.500000e+00 : f32
// CHECK-NEXT: %[[E:.*]] = tensor.empty() : tensor<8xf32>
// CHECK-NEXT: %[[F:.*]] = linalg.fill ins(%[[X]] : f32) outs(%[[E]] : tensor<8xf32>)
// CHECK-NEXT: return %[[F]]
func.func @a_splat_becomes_a_fill() -> tensor<8xf32> {
  %x = arith.constant dense<2.5> : tensor<8xf32>
  return %x : tensor<8xf32>
}

// CHECK-LABEL: func.func @a_table_and_a_scalar_stay
// CHECK-NEXT: arith.constant dense<[1, 2]> : tensor<2xi32>
// CHECK-NEXT: arith.constant 3 : i32
// CHECK-NEXT: return
func.func @a_table_and_a_scalar_stay() -> (tensor<2xi32>, i32) {
  %x = arith.constant dense<[1, 2]> : tensor<2xi32>
  %y = arith.constant 3 : i32
  return %x, %y : tensor<2xi32>, i32
}

// CHECK-LABEL: func.func @an_elementwise_result_is_written_to_the_carried_buffer
// CHECK: scf.for {{.*}} iter_args(%[[ACC:.*]] = %{{.*}})
// CHECK-NEXT: tensor.empty
// CHECK-NEXT: %[[R:.*]] = linalg.generic {{.*}} ins(%[[ACC]], {{.*}}) outs(%[[ACC]] : tensor<8xf32>)
// CHECK: scf.yield %[[R]] : tensor<8xf32>
func.func @an_elementwise_result_is_written_to_the_carried_buffer(%a: tensor<8xf32>, %x: tensor<8xf32>, %n: index) -> tensor<8xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %a) -> tensor<8xf32> {
    %e = tensor.empty() : tensor<8xf32>
    %s = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]} ins(%acc, %x : tensor<8xf32>, tensor<8xf32>) outs(%e : tensor<8xf32>) {
    ^bb0(%l: f32, %m: f32, %o: f32):
      %t = arith.addf %l, %m : f32
      linalg.yield %t : f32
    } -> tensor<8xf32>
    scf.yield %s : tensor<8xf32>
  }
  return %r : tensor<8xf32>
}

// A product accumulates in the carried buffer already.

// CHECK-LABEL: func.func @a_product_stays
// CHECK: scf.for {{.*}} iter_args(%[[ACC:.*]] = %{{.*}})
// CHECK-NEXT: %[[R:.*]] = linalg.matmul {{.*}} outs(%[[ACC]] :
// CHECK-NEXT: scf.yield %[[R]]
func.func @a_product_stays(%a: tensor<8x8xf32>, %x: tensor<8x8xf32>, %n: index) -> tensor<8x8xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %a) -> tensor<8x8xf32> {
    %s = linalg.matmul ins(%x, %x : tensor<8x8xf32>, tensor<8x8xf32>) outs(%acc : tensor<8x8xf32>) -> tensor<8x8xf32>
    scf.yield %s : tensor<8x8xf32>
  }
  return %r : tensor<8x8xf32>
}

// What needs its own destination, or is used elsewhere too, is copied at the end of the body.

// CHECK-LABEL: func.func @a_result_with_two_uses_is_copied
// CHECK: scf.for {{.*}} iter_args(%[[ACC:.*]] = %{{.*}}, %[[OLD:.*]] = %{{.*}})
// CHECK: %[[E:.*]] = tensor.empty
// CHECK-NEXT: %[[S:.*]] = linalg.generic {{.*}} outs(%[[E]] : tensor<8xf32>)
// CHECK: %[[C:.*]] = linalg.copy ins(%[[S]] : tensor<8xf32>) outs(%[[ACC]] : tensor<8xf32>)
// CHECK-NEXT: %[[D:.*]] = linalg.copy ins(%[[S]] : tensor<8xf32>) outs(%[[OLD]] : tensor<8xf32>)
// CHECK-NEXT: scf.yield %[[C]], %[[D]]
func.func @a_result_with_two_uses_is_copied(%a: tensor<8xf32>, %n: index) -> tensor<8xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %a, %old = %a) -> (tensor<8xf32>, tensor<8xf32>) {
    %e = tensor.empty() : tensor<8xf32>
    %s = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%acc : tensor<8xf32>) outs(%e : tensor<8xf32>) {
    ^bb0(%l: f32, %o: f32):
      %t = arith.addf %l, %l : f32
      linalg.yield %t : f32
    } -> tensor<8xf32>
    scf.yield %s, %s : tensor<8xf32>, tensor<8xf32>
  }
  return %r#0 : tensor<8xf32>
}

// CHECK-LABEL: func.func @a_reduction_keeps_its_destination
// CHECK: scf.for {{.*}} iter_args(%[[ACC:.*]] = %{{.*}})
// CHECK: %[[S:.*]] = linalg.generic {{.*}} outs(%[[INIT:.*]] : tensor<8xf32>)
// CHECK: %[[C:.*]] = linalg.copy ins(%[[S]] : {{.*}}) outs(%[[ACC]] :
// CHECK-NEXT: scf.yield %[[C]]
func.func @a_reduction_keeps_its_destination(%a: tensor<8xf32>, %init: tensor<8xf32>, %x: tensor<8x4xf32>, %n: index) -> tensor<8xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %a) -> tensor<8xf32> {
    %s = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<8x4xf32>) outs(%init : tensor<8xf32>) {
    ^bb0(%l: f32, %o: f32):
      %t = arith.addf %o, %l : f32
      linalg.yield %t : f32
    } -> tensor<8xf32>
    scf.yield %s : tensor<8xf32>
  }
  return %r : tensor<8xf32>
}

// Two tensors that change places: both are saved before either is written.

// CHECK-LABEL: func.func @a_swap_is_copied
// CHECK: scf.for {{.*}} iter_args(%[[P:arg[0-9]+]] = %{{.*}}, %[[Q:arg[0-9]+]] = %{{.*}})
// CHECK: %[[C:.*]] = linalg.copy ins(%[[Q]] : {{.*}}) outs(%[[E:[0-9]+]] :
// CHECK: %[[D:.*]] = linalg.copy ins(%[[P]] : {{.*}}) outs(%[[F:[0-9]+]] :
// CHECK-NEXT: %[[C2:.*]] = linalg.copy ins(%[[C]] : {{.*}}) outs(%[[P]] :
// CHECK-NEXT: %[[D2:.*]] = linalg.copy ins(%[[D]] : {{.*}}) outs(%[[Q]] :
// CHECK-NEXT: scf.yield %[[C2]], %[[D2]]
func.func @a_swap_is_copied(%a: tensor<8xf32>, %b: tensor<8xf32>, %n: index) -> tensor<8xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%p = %a, %q = %b) -> (tensor<8xf32>, tensor<8xf32>) {
    scf.yield %q, %p : tensor<8xf32>, tensor<8xf32>
  }
  return %r#0 : tensor<8xf32>
}

// CHECK-LABEL: func.func @a_value_from_outside_is_copied
// CHECK-SAME: (%[[A:arg0]]: tensor<8xf32>, %[[B:arg1]]: tensor<8xf32>,
// CHECK: scf.for {{.*}} iter_args(%[[ACC:arg[0-9]+]] = %[[A]], %[[K:arg[0-9]+]] = %{{.*}})
// CHECK-NEXT: %[[K2:.*]] = arith.addi %[[K]]
// CHECK: %[[C:.*]] = linalg.copy ins(%{{.*}} : {{.*}}) outs(%[[ACC]] :
// CHECK-NEXT: scf.yield %[[C]], %[[K2]]
func.func @a_value_from_outside_is_copied(%a: tensor<8xf32>, %b: tensor<8xf32>, %n: index) -> tensor<8xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %a, %k = %c0) -> (tensor<8xf32>, index) {
    %k2 = arith.addi %k, %c1 : index
    scf.yield %b, %k2 : tensor<8xf32>, index
  }
  return %r#0 : tensor<8xf32>
}

// CHECK-LABEL: func.func @what_stays_the_same_is_not_copied
// CHECK: scf.for {{.*}} iter_args(%[[ACC:.*]] = %{{.*}})
// CHECK-NEXT: scf.yield %[[ACC]]
func.func @what_stays_the_same_is_not_copied(%a: tensor<8xf32>, %n: index) -> tensor<8xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %a) -> tensor<8xf32> {
    scf.yield %acc : tensor<8xf32>
  }
  return %r : tensor<8xf32>
}

// CHECK-LABEL: func.func @a_while_loop_writes_its_body_s_buffers
// CHECK: } do {
// CHECK-NEXT: ^bb0(%[[ACC:.*]]: tensor<8xf32>):
// CHECK: linalg.generic {{.*}} ins(%[[ACC]] : {{.*}}) outs(%[[ACC]] :
func.func @a_while_loop_writes_its_body_s_buffers(%a: tensor<8xf32>, %c: i1) -> tensor<8xf32> {
  %r = scf.while (%p = %a) : (tensor<8xf32>) -> tensor<8xf32> {
    scf.condition(%c) %p : tensor<8xf32>
  } do {
  ^bb0(%p: tensor<8xf32>):
    %e = tensor.empty() : tensor<8xf32>
    %s = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%p : tensor<8xf32>) outs(%e : tensor<8xf32>) {
    ^bb0(%l: f32, %o: f32):
      %t = arith.addf %l, %l : f32
      linalg.yield %t : f32
    } -> tensor<8xf32>
    scf.yield %s : tensor<8xf32>
  }
  return %r : tensor<8xf32>
}

// What is read again after its new value is there must not be overwritten by it.

// CHECK-LABEL: func.func @an_argument_that_is_read_later_is_not_overwritten
// CHECK: scf.for {{.*}} iter_args(%[[ACC:arg[0-9]+]] = %{{.*}})
// CHECK: %[[E:.*]] = tensor.empty
// CHECK-NEXT: %[[S:.*]] = linalg.generic {{.*}} outs(%[[E]] : tensor<8xf32>)
// CHECK: linalg.generic {{.*}} ins(%[[ACC]] : {{.*}}) outs(%{{.*}} : tensor<8xf32>)
// CHECK: %[[C:.*]] = linalg.copy ins(%[[S]] : {{.*}}) outs(%[[ACC]] :
// CHECK-NEXT: scf.yield %[[C]]
func.func @an_argument_that_is_read_later_is_not_overwritten(%a: tensor<8xf32>, %m: memref<8xf32>, %n: index) -> tensor<8xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %a) -> tensor<8xf32> {
    %e = tensor.empty() : tensor<8xf32>
    %s = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%acc : tensor<8xf32>) outs(%e : tensor<8xf32>) {
    ^bb0(%l: f32, %o: f32):
      %t = arith.addf %l, %l : f32
      linalg.yield %t : f32
    } -> tensor<8xf32>
    %f = tensor.empty() : tensor<8xf32>
    %u = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%acc : tensor<8xf32>) outs(%f : tensor<8xf32>) {
    ^bb0(%l: f32, %o: f32):
      %t = arith.mulf %l, %l : f32
      linalg.yield %t : f32
    } -> tensor<8xf32>
    bufferization.materialize_in_destination %u in restrict writable %m : (tensor<8xf32>, memref<8xf32>) -> ()
    scf.yield %s : tensor<8xf32>
  }
  return %r : tensor<8xf32>
}

// What both results of a branch would share: the two carried buffers would be one.

// CHECK-LABEL: func.func @a_tensor_that_a_branch_gives_twice_is_copied
// CHECK: scf.for {{.*}} iter_args(%[[P:arg[0-9]+]] = %{{.*}}, %[[Q:arg[0-9]+]] = %{{.*}})
// CHECK: scf.if
// CHECK: scf.yield %[[S:.*]], %[[S]] :
// CHECK: } else {
// CHECK: %[[C:.*]] = linalg.copy ins(%[[Q]] : {{.*}}) outs(%{{.*}} :
// CHECK-NEXT: scf.yield %[[P]], %[[C]]
func.func @a_tensor_that_a_branch_gives_twice_is_copied(%a: tensor<8xf32>, %b: tensor<8xf32>, %c: i1, %n: index) -> tensor<8xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%p = %a, %q = %b) -> (tensor<8xf32>, tensor<8xf32>) {
    %s:2 = scf.if %c -> (tensor<8xf32>, tensor<8xf32>) {
      %e = tensor.empty() : tensor<8xf32>
      %t = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%p : tensor<8xf32>) outs(%e : tensor<8xf32>) {
      ^bb0(%l: f32, %o: f32):
        %u = arith.addf %l, %l : f32
        linalg.yield %u : f32
      } -> tensor<8xf32>
      scf.yield %t, %t : tensor<8xf32>, tensor<8xf32>
    } else {
      scf.yield %p, %q : tensor<8xf32>, tensor<8xf32>
    }
    scf.yield %s#0, %s#1 : tensor<8xf32>, tensor<8xf32>
  }
  return %r#0 : tensor<8xf32>
}

// Accumulators that only one way of a branch changes stay where they are.

// CHECK-LABEL: func.func @what_a_branch_leaves_is_not_copied
// CHECK: scf.if
// CHECK-NOT: linalg.copy
// CHECK: } else {
// CHECK-NEXT: scf.yield
// CHECK: return
func.func @what_a_branch_leaves_is_not_copied(%a: tensor<8xf32>, %b: tensor<8xf32>, %c: i1, %n: index) -> tensor<8xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%p = %a, %q = %b) -> (tensor<8xf32>, tensor<8xf32>) {
    %s:2 = scf.if %c -> (tensor<8xf32>, tensor<8xf32>) {
      %e = tensor.empty() : tensor<8xf32>
      %t = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%p : tensor<8xf32>) outs(%e : tensor<8xf32>) {
      ^bb0(%l: f32, %o: f32):
        %u = arith.addf %l, %l : f32
        linalg.yield %u : f32
      } -> tensor<8xf32>
      %v = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%q : tensor<8xf32>) outs(%e : tensor<8xf32>) {
      ^bb0(%l: f32, %o: f32):
        %u = arith.mulf %l, %l : f32
        linalg.yield %u : f32
      } -> tensor<8xf32>
      scf.yield %t, %v : tensor<8xf32>, tensor<8xf32>
    } else {
      scf.yield %p, %q : tensor<8xf32>, tensor<8xf32>
    }
    scf.yield %s#0, %s#1 : tensor<8xf32>, tensor<8xf32>
  }
  return %r#0 : tensor<8xf32>
}

// Memory that is read alone: what is carried would be in it, and nobody could write that.

// CHECK-LABEL: func.func @a_branch_that_reads_memory_copies_it
// CHECK: %[[T:.*]] = bufferization.to_tensor %{{.*}} restrict :
// CHECK: %[[C:.*]] = linalg.copy ins(%{{.*}} outs(%{{.*}} :
// CHECK-NEXT: scf.yield %[[C]]
// CHECK: bufferization.to_tensor %{{.*}} restrict writable
// CHECK-NOT: linalg.copy
// CHECK: } else {
func.func @a_branch_that_reads_memory_copies_it(%a: tensor<8xf32>, %m: memref<2x4xf32>, %o: memref<8xf32>, %c: i1, %n: index) -> tensor<8xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%p = %a) -> tensor<8xf32> {
    %s = scf.if %c -> tensor<8xf32> {
      %t = bufferization.to_tensor %m restrict : memref<2x4xf32> to tensor<2x4xf32>
      %u = tensor.collapse_shape %t [[0, 1]] : tensor<2x4xf32> into tensor<8xf32>
      scf.yield %u : tensor<8xf32>
    } else {
      scf.yield %p : tensor<8xf32>
    }
    %v = scf.if %c -> tensor<8xf32> {
      %t = bufferization.to_tensor %o restrict writable : memref<8xf32> to tensor<8xf32>
      scf.yield %t : tensor<8xf32>
    } else {
      scf.yield %s : tensor<8xf32>
    }
    scf.yield %v : tensor<8xf32>
  }
  return %r : tensor<8xf32>
}
