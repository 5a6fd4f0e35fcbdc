// RUN: proton-opt --pipeline='triton-pointers-to-llvm,canonicalize,cse' %s | filecheck %s

// The kernel's arguments: the program's place and the grid come behind the user's.

// CHECK-LABEL: func.func @program_ids_become_arguments(
// CHECK-SAME: %[[P:.*]]: !llvm.ptr {tt.name = "p"}, %[[X:arg1]]: i32, %[[Y:arg2]]: i32, %[[Z:arg3]]: i32, %[[NX:arg4]]: i32, %[[NY:arg5]]: i32, %[[NZ:arg6]]: i32)
// CHECK-SAME: proton.abi = ["program_x", "program_y", "program_z", "grid_x", "grid_y", "grid_z"]
// CHECK-NEXT: llvm.store %[[X]], %[[P]] : i32, !llvm.ptr
// CHECK-NEXT: llvm.store %[[Y]], %[[P]] : i32, !llvm.ptr
// CHECK-NEXT: llvm.store %[[Z]], %[[P]] : i32, !llvm.ptr
// CHECK-NEXT: llvm.store %[[NX]], %[[P]] : i32, !llvm.ptr
// CHECK-NEXT: llvm.store %[[NZ]], %[[P]] : i32, !llvm.ptr
func.func @program_ids_become_arguments(%p: !tt.ptr<i32> {tt.name = "p"}) attributes {tt.kernel} {
  %x = "tt.get_program_id"() {axis = 0 : i32} : () -> i32
  %y = "tt.get_program_id"() {axis = 1 : i32} : () -> i32
  %z = "tt.get_program_id"() {axis = 2 : i32} : () -> i32
  %nx = "tt.get_num_programs"() {axis = 0 : i32} : () -> i32
  %nz = "tt.get_num_programs"() {axis = 2 : i32} : () -> i32
  "tt.store"(%p, %x) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>} : (!tt.ptr<i32>, i32) -> ()
  "tt.store"(%p, %y) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>} : (!tt.ptr<i32>, i32) -> ()
  "tt.store"(%p, %z) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>} : (!tt.ptr<i32>, i32) -> ()
  "tt.store"(%p, %nx) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>} : (!tt.ptr<i32>, i32) -> ()
  "tt.store"(%p, %nz) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>} : (!tt.ptr<i32>, i32) -> ()
  return
}

// CHECK-LABEL: func.func @scalar_addresses(
// CHECK-SAME: %[[A0:arg[0-9]+]]: !llvm.ptr, %{{.*}}: !llvm.ptr, %{{.*}}: i32, %[[A3:arg[0-9]+]]: i64
// CHECK: %[[V0:.*]] = llvm.getelementptr %[[A0]][%{{.*}}] : (!llvm.ptr, i64) -> !llvm.ptr, f32
// CHECK-NEXT: %[[V1:.*]] = llvm.getelementptr %[[V0]][%[[A3]]] : (!llvm.ptr, i64) -> !llvm.ptr, f32
// CHECK: %[[V2:.*]] = llvm.getelementptr %[[V1]][%{{.*}}] : (!llvm.ptr, i64) -> !llvm.ptr, f32
// CHECK-NEXT: %[[V3:.*]] = llvm.load %[[V2]] : !llvm.ptr -> f32
// CHECK-NEXT: llvm.store %[[V3]], %[[V2]] : f32, !llvm.ptr
func.func @scalar_addresses(%p: !tt.ptr<f32>, %q: !tt.ptr<i64>, %i: i32, %j: i64, %k: index) attributes {tt.kernel} {
  %a = "tt.addptr"(%p, %i) : (!tt.ptr<f32>, i32) -> !tt.ptr<f32>
  %b = "tt.addptr"(%a, %j) : (!tt.ptr<f32>, i64) -> !tt.ptr<f32>
  %c = "tt.addptr"(%b, %k) : (!tt.ptr<f32>, index) -> !tt.ptr<f32>
  %x = "tt.load"(%c) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (!tt.ptr<f32>) -> f32
  "tt.store"(%c, %x) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>} : (!tt.ptr<f32>, f32) -> ()
  return
}

// CHECK-LABEL: func.func @scalar_load_with_mask(
// CHECK-SAME: %[[A0:arg[0-9]+]]: !llvm.ptr, %[[A1:arg[0-9]+]]: i1, %[[A2:arg[0-9]+]]: f32
// CHECK-DAG: %[[CST:.*]] = arith.constant 0.000000e+00 : f32
// CHECK: %{{.*}}:2 = scf.if %[[A1]] -> (f32, f32) {
// CHECK-NEXT: %[[V0:.*]] = llvm.load %[[A0]] : !llvm.ptr -> f32
// CHECK-NEXT: scf.yield %[[V0]], %[[V0]] : f32, f32
// CHECK-NEXT: } else {
// CHECK-NEXT: scf.yield %[[CST]], %[[A2]] : f32, f32
// CHECK: scf.if %[[A1]] {
// CHECK-NEXT: llvm.store %{{.*}}, %[[A0]] : f32, !llvm.ptr
func.func @scalar_load_with_mask(%p: !tt.ptr<f32>, %m: i1, %y: f32) attributes {tt.kernel} {
  %x = "tt.load"(%p, %m) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>, volatile = false} : (!tt.ptr<f32>, i1) -> f32
  %z = "tt.load"(%p, %m, %y) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 1>, volatile = false} : (!tt.ptr<f32>, i1, f32) -> f32
  %s = arith.addf %x, %z : f32
  "tt.store"(%p, %s, %m) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 1>} : (!tt.ptr<f32>, f32, i1) -> ()
  return
}

// A tensor of pointers is one of i64 addresses, in bytes.

// CHECK-LABEL: func.func @tensors_of_pointers(
// CHECK-SAME: %[[A0:arg[0-9]+]]: !llvm.ptr, %[[A1:arg[0-9]+]]: tensor<4xi32>
// CHECK-DAG: %[[C4:.*]] = arith.constant 4 : index
// CHECK-DAG: %[[C1:.*]] = arith.constant 1 : index
// CHECK-DAG: %[[C0:.*]] = arith.constant 0 : index
// CHECK-DAG: %[[CST:.*]] = arith.constant dense<2> : tensor<4xi64>
// CHECK: %[[V0:.*]] = llvm.ptrtoint %[[A0]] : !llvm.ptr to i64
// CHECK-NEXT: %[[V1:.*]] = "tt.splat"(%[[V0]]) : (i64) -> tensor<4xi64>
// CHECK-NEXT: %[[V2:.*]] = arith.extsi %[[A1]] : tensor<4xi32> to tensor<4xi64>
// CHECK-NEXT: %[[V3:.*]] = arith.muli %[[V2]], %[[CST]] : tensor<4xi64>
// CHECK-NEXT: %[[V4:.*]] = arith.addi %[[V1]], %[[V3]] : tensor<4xi64>
// CHECK-NEXT: %[[V5:.*]] = memref.alloc() : memref<4xf16>
// CHECK-NEXT: scf.for %[[A8:arg[0-9]+]] = %[[C0]] to %[[C4]] step %[[C1]] {
// CHECK-NEXT: %[[V6:.*]] = tensor.extract %[[V4]][%[[A8]]] : tensor<4xi64>
// CHECK-NEXT: %[[V7:.*]] = llvm.inttoptr %[[V6]] : i64 to !llvm.ptr
// CHECK-NEXT: %[[V8:.*]] = llvm.load %[[V7]] : !llvm.ptr -> f16
// CHECK-NEXT: memref.store %[[V8]], %[[V5]][%[[A8]]] : memref<4xf16>
// CHECK-NEXT: }
// CHECK-NEXT: %[[V9:.*]] = bufferization.to_tensor %[[V5]] restrict : memref<4xf16> to tensor<4xf16>
// CHECK-NEXT: scf.for %[[A8]] = %[[C0]] to %[[C4]] step %[[C1]] {
// CHECK-NEXT: %[[V6]] = tensor.extract %[[V9]][%[[A8]]] : tensor<4xf16>
// CHECK-NEXT: %[[V10:.*]] = tensor.extract %[[V4]][%[[A8]]] : tensor<4xi64>
// CHECK-NEXT: %[[V7]] = llvm.inttoptr %[[V10]] : i64 to !llvm.ptr
// CHECK-NEXT: llvm.store %[[V6]], %[[V7]] : f16, !llvm.ptr
// CHECK-NEXT: }
// CHECK-NEXT: return
// CHECK-NEXT: }
func.func @tensors_of_pointers(%p: !tt.ptr<f16>, %o: tensor<4xi32>) attributes {tt.kernel} {
  %ps = "tt.splat"(%p) : (!tt.ptr<f16>) -> tensor<4x!tt.ptr<f16>>
  %q = "tt.addptr"(%ps, %o) : (tensor<4x!tt.ptr<f16>>, tensor<4xi32>) -> tensor<4x!tt.ptr<f16>>
  %x = "tt.load"(%q) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (tensor<4x!tt.ptr<f16>>) -> tensor<4xf16>
  "tt.store"(%q, %x) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<4x!tt.ptr<f16>>, tensor<4xf16>) -> ()
  return
}

// An i1 takes a byte.

// CHECK-LABEL: func.func @bytes_of_a_bit(
// CHECK-SAME: %[[A0:arg[0-9]+]]: tensor<4xi64>, %[[A1:arg[0-9]+]]: tensor<4xi64>, %[[A2:arg[0-9]+]]: tensor<4xi1>
// CHECK-DAG: %[[C4:.*]] = arith.constant 4 : index
// CHECK-DAG: %[[C1:.*]] = arith.constant 1 : index
// CHECK-DAG: %[[C0:.*]] = arith.constant 0 : index
// CHECK: %[[V0:.*]] = arith.addi %[[A0]], %[[A1]] : tensor<4xi64>
// CHECK-NEXT: scf.for %[[A9:arg[0-9]+]] = %[[C0]] to %[[C4]] step %[[C1]] {
// CHECK-NEXT: %[[V1:.*]] = tensor.extract %[[A2]][%[[A9]]] : tensor<4xi1>
// CHECK-NEXT: %[[V2:.*]] = tensor.extract %[[V0]][%[[A9]]] : tensor<4xi64>
// CHECK-NEXT: %[[V3:.*]] = llvm.inttoptr %[[V2]] : i64 to !llvm.ptr
// CHECK-NEXT: llvm.store %[[V1]], %[[V3]] : i1, !llvm.ptr
// CHECK-NEXT: }
// CHECK-NEXT: return
// CHECK-NEXT: }
func.func @bytes_of_a_bit(%q: tensor<4x!tt.ptr<i1>>, %o: tensor<4xi64>, %x: tensor<4xi1>) attributes {tt.kernel} {
  %r = "tt.addptr"(%q, %o) : (tensor<4x!tt.ptr<i1>>, tensor<4xi64>) -> tensor<4x!tt.ptr<i1>>
  "tt.store"(%r, %x) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<4x!tt.ptr<i1>>, tensor<4xi1>) -> ()
  return
}

// CHECK-LABEL: func.func @gather_with_mask_and_other(
// CHECK-SAME: %[[A0:arg[0-9]+]]: tensor<4x8xi64>, %[[A1:arg[0-9]+]]: tensor<4x8xi1>, %[[A2:arg[0-9]+]]: tensor<4x8xf32>
// CHECK-DAG: %[[C8:.*]] = arith.constant 8 : index
// CHECK-DAG: %[[C4:.*]] = arith.constant 4 : index
// CHECK-DAG: %[[C1:.*]] = arith.constant 1 : index
// CHECK-DAG: %[[C0:.*]] = arith.constant 0 : index
// CHECK: %[[V0:.*]] = memref.alloc() : memref<4x8xf32>
// CHECK-NEXT: scf.for %[[A9:arg[0-9]+]] = %[[C0]] to %[[C4]] step %[[C1]] {
// CHECK-NEXT: scf.for %[[A10:arg[0-9]+]] = %[[C0]] to %[[C8]] step %[[C1]] {
// CHECK-NEXT: %[[V1:.*]] = tensor.extract %[[A1]][%[[A9]], %[[A10]]] : tensor<4x8xi1>
// CHECK-NEXT: %[[V2:.*]] = scf.if %[[V1]] -> (f32) {
// CHECK-NEXT: %[[V3:.*]] = tensor.extract %[[A0]][%[[A9]], %[[A10]]] : tensor<4x8xi64>
// CHECK-NEXT: %[[V4:.*]] = llvm.inttoptr %[[V3]] : i64 to !llvm.ptr
// CHECK-NEXT: %[[V5:.*]] = llvm.load %[[V4]] : !llvm.ptr -> f32
// CHECK-NEXT: scf.yield %[[V5]] : f32
// CHECK-NEXT: } else {
// CHECK-NEXT: %[[V3]] = tensor.extract %[[A2]][%[[A9]], %[[A10]]] : tensor<4x8xf32>
// CHECK-NEXT: scf.yield %[[V3]] : f32
// CHECK-NEXT: }
// CHECK-NEXT: memref.store %[[V2]], %[[V0]][%[[A9]], %[[A10]]] : memref<4x8xf32>
// CHECK-NEXT: }
// CHECK-NEXT: }
// CHECK-NEXT: %[[V6:.*]] = bufferization.to_tensor %[[V0]] restrict : memref<4x8xf32> to tensor<4x8xf32>
// CHECK-NEXT: scf.for %[[A9]] = %[[C0]] to %[[C4]] step %[[C1]] {
// CHECK-NEXT: scf.for %[[A10]] = %[[C0]] to %[[C8]] step %[[C1]] {
// CHECK-NEXT: %[[V1]] = tensor.extract %[[V6]][%[[A9]], %[[A10]]] : tensor<4x8xf32>
// CHECK-NEXT: %[[V3]] = tensor.extract %[[A0]][%[[A9]], %[[A10]]] : tensor<4x8xi64>
// CHECK-NEXT: %[[V2]] = llvm.inttoptr %[[V3]] : i64 to !llvm.ptr
// CHECK-NEXT: llvm.store %[[V1]], %[[V2]] : f32, !llvm.ptr
// CHECK-NEXT: }
// CHECK-NEXT: }
// CHECK-NEXT: return
// CHECK-NEXT: }
func.func @gather_with_mask_and_other(%q: tensor<4x8x!tt.ptr<f32>>, %m: tensor<4x8xi1>, %y: tensor<4x8xf32>) attributes {tt.kernel} {
  %x = "tt.load"(%q, %m, %y) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 1>, volatile = false} : (tensor<4x8x!tt.ptr<f32>>, tensor<4x8xi1>, tensor<4x8xf32>) -> tensor<4x8xf32>
  "tt.store"(%q, %x) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<4x8x!tt.ptr<f32>>, tensor<4x8xf32>) -> ()
  return
}

// CHECK-LABEL: func.func @gather_with_mask(
// CHECK-SAME: %[[A0:arg[0-9]+]]: tensor<4xi64>, %[[A1:arg[0-9]+]]: tensor<4xi1>
// CHECK-DAG: %[[C0_I32:.*]] = arith.constant 0 : i32
// CHECK-DAG: %[[C4:.*]] = arith.constant 4 : index
// CHECK-DAG: %[[C1:.*]] = arith.constant 1 : index
// CHECK-DAG: %[[C0:.*]] = arith.constant 0 : index
// CHECK: %[[V0:.*]] = memref.alloc() : memref<4xi32>
// CHECK-NEXT: scf.for %[[A8:arg[0-9]+]] = %[[C0]] to %[[C4]] step %[[C1]] {
// CHECK-NEXT: %[[V1:.*]] = tensor.extract %[[A1]][%[[A8]]] : tensor<4xi1>
// CHECK-NEXT: %[[V2:.*]] = scf.if %[[V1]] -> (i32) {
// CHECK-NEXT: %[[V3:.*]] = tensor.extract %[[A0]][%[[A8]]] : tensor<4xi64>
// CHECK-NEXT: %[[V4:.*]] = llvm.inttoptr %[[V3]] : i64 to !llvm.ptr
// CHECK-NEXT: %[[V5:.*]] = llvm.load %[[V4]] : !llvm.ptr -> i32
// CHECK-NEXT: scf.yield %[[V5]] : i32
// CHECK-NEXT: } else {
// CHECK-NEXT: scf.yield %[[C0_I32]] : i32
// CHECK-NEXT: }
// CHECK-NEXT: memref.store %[[V2]], %[[V0]][%[[A8]]] : memref<4xi32>
// CHECK-NEXT: }
// CHECK-NEXT: %[[V6:.*]] = bufferization.to_tensor %[[V0]] restrict : memref<4xi32> to tensor<4xi32>
// CHECK-NEXT: scf.for %[[A8]] = %[[C0]] to %[[C4]] step %[[C1]] {
// CHECK-NEXT: %[[V1]] = tensor.extract %[[V6]][%[[A8]]] : tensor<4xi32>
// CHECK-NEXT: %[[V3]] = tensor.extract %[[A0]][%[[A8]]] : tensor<4xi64>
// CHECK-NEXT: %[[V2]] = llvm.inttoptr %[[V3]] : i64 to !llvm.ptr
// CHECK-NEXT: llvm.store %[[V1]], %[[V2]] : i32, !llvm.ptr
// CHECK-NEXT: }
// CHECK-NEXT: return
// CHECK-NEXT: }
func.func @gather_with_mask(%q: tensor<4x!tt.ptr<i32>>, %m: tensor<4xi1>) attributes {tt.kernel} {
  %x = "tt.load"(%q, %m) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>, volatile = false} : (tensor<4x!tt.ptr<i32>>, tensor<4xi1>) -> tensor<4xi32>
  "tt.store"(%q, %x) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<4x!tt.ptr<i32>>, tensor<4xi32>) -> ()
  return
}

// CHECK-LABEL: func.func @scatter_with_mask(
// CHECK-SAME: %[[A0:arg[0-9]+]]: tensor<4xi64>, %[[A1:arg[0-9]+]]: tensor<4xi1>, %[[A2:arg[0-9]+]]: tensor<4xi32>
// CHECK-DAG: %[[C0:.*]] = arith.constant 0 : index
// CHECK-DAG: %[[C1:.*]] = arith.constant 1 : index
// CHECK-DAG: %[[C4:.*]] = arith.constant 4 : index
// CHECK: scf.for %[[A9:arg[0-9]+]] = %[[C0]] to %[[C4]] step %[[C1]] {
// CHECK-NEXT: %[[V0:.*]] = tensor.extract %[[A1]][%[[A9]]] : tensor<4xi1>
// CHECK-NEXT: scf.if %[[V0]] {
// CHECK-NEXT: %[[V1:.*]] = tensor.extract %[[A2]][%[[A9]]] : tensor<4xi32>
// CHECK-NEXT: %[[V2:.*]] = tensor.extract %[[A0]][%[[A9]]] : tensor<4xi64>
// CHECK-NEXT: %[[V3:.*]] = llvm.inttoptr %[[V2]] : i64 to !llvm.ptr
// CHECK-NEXT: llvm.store %[[V1]], %[[V3]] : i32, !llvm.ptr
// CHECK-NEXT: }
// CHECK-NEXT: }
// CHECK-NEXT: return
// CHECK-NEXT: }
func.func @scatter_with_mask(%q: tensor<4x!tt.ptr<i32>>, %m: tensor<4xi1>, %x: tensor<4xi32>) attributes {tt.kernel} {
  "tt.store"(%q, %x, %m) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 1>} : (tensor<4x!tt.ptr<i32>>, tensor<4xi32>, tensor<4xi1>) -> ()
  return
}

// CHECK-LABEL: func.func @each_atomic(
// CHECK-SAME: %[[P:.*]]: !llvm.ptr, %[[X:.*]]: i32, %[[Q:.*]]: !llvm.ptr, %[[Y:.*]]: f32
// CHECK: llvm.atomicrmw xchg %[[P]], %[[X]] monotonic : !llvm.ptr, i32
// CHECK-NEXT: llvm.atomicrmw add %[[P]], %[[X]] acquire
// CHECK-NEXT: llvm.atomicrmw _and %[[P]], %[[X]] release
// CHECK-NEXT: llvm.atomicrmw _or %[[P]], %[[X]] acq_rel
// CHECK-NEXT: llvm.atomicrmw _xor %[[P]], %[[X]] monotonic
// CHECK-NEXT: llvm.atomicrmw max %[[P]], %[[X]]
// CHECK-NEXT: llvm.atomicrmw min %[[P]], %[[X]]
// CHECK-NEXT: llvm.atomicrmw umax %[[P]], %[[X]]
// CHECK-NEXT: llvm.atomicrmw umin %[[P]], %[[X]]
// CHECK-NEXT: llvm.atomicrmw fadd %[[Q]], %[[Y]] monotonic : !llvm.ptr, f32
// CHECK-NEXT: llvm.atomicrmw fmax %[[Q]], %[[Y]]
// CHECK-NEXT: llvm.atomicrmw fmin %[[Q]], %[[Y]]
// CHECK-NEXT: return
func.func @each_atomic(%p: !tt.ptr<i32>, %x: i32, %q: !tt.ptr<f32>, %y: f32) attributes {tt.kernel} {
  %0 = "tt.atomic_rmw"(%p, %x) {rmw_op = "xchg", sem = "relaxed", scope = "gpu", operandSegmentSizes = array<i32: 1, 1, 0>} : (!tt.ptr<i32>, i32) -> i32
  %1 = "tt.atomic_rmw"(%p, %x) {rmw_op = "add", sem = "acquire", scope = "gpu", operandSegmentSizes = array<i32: 1, 1, 0>} : (!tt.ptr<i32>, i32) -> i32
  %2 = "tt.atomic_rmw"(%p, %x) {rmw_op = "and", sem = "release", scope = "gpu", operandSegmentSizes = array<i32: 1, 1, 0>} : (!tt.ptr<i32>, i32) -> i32
  %3 = "tt.atomic_rmw"(%p, %x) {rmw_op = "or", sem = "acq_rel", scope = "gpu", operandSegmentSizes = array<i32: 1, 1, 0>} : (!tt.ptr<i32>, i32) -> i32
  %4 = "tt.atomic_rmw"(%p, %x) {rmw_op = "xor", sem = "relaxed", scope = "gpu", operandSegmentSizes = array<i32: 1, 1, 0>} : (!tt.ptr<i32>, i32) -> i32
  %5 = "tt.atomic_rmw"(%p, %x) {rmw_op = "max", sem = "relaxed", scope = "gpu", operandSegmentSizes = array<i32: 1, 1, 0>} : (!tt.ptr<i32>, i32) -> i32
  %6 = "tt.atomic_rmw"(%p, %x) {rmw_op = "min", sem = "relaxed", scope = "gpu", operandSegmentSizes = array<i32: 1, 1, 0>} : (!tt.ptr<i32>, i32) -> i32
  %7 = "tt.atomic_rmw"(%p, %x) {rmw_op = "umax", sem = "relaxed", scope = "gpu", operandSegmentSizes = array<i32: 1, 1, 0>} : (!tt.ptr<i32>, i32) -> i32
  %8 = "tt.atomic_rmw"(%p, %x) {rmw_op = "umin", sem = "relaxed", scope = "gpu", operandSegmentSizes = array<i32: 1, 1, 0>} : (!tt.ptr<i32>, i32) -> i32
  %9 = "tt.atomic_rmw"(%q, %y) {rmw_op = "fadd", sem = "relaxed", scope = "gpu", operandSegmentSizes = array<i32: 1, 1, 0>} : (!tt.ptr<f32>, f32) -> f32
  %10 = "tt.atomic_rmw"(%q, %y) {rmw_op = "fmax", sem = "relaxed", scope = "gpu", operandSegmentSizes = array<i32: 1, 1, 0>} : (!tt.ptr<f32>, f32) -> f32
  %11 = "tt.atomic_rmw"(%q, %y) {rmw_op = "fmin", sem = "relaxed", scope = "gpu", operandSegmentSizes = array<i32: 1, 1, 0>} : (!tt.ptr<f32>, f32) -> f32
  return
}

// CHECK-LABEL: func.func @atomics_of_a_tensor_with_mask(
// CHECK-SAME: %[[A0:arg[0-9]+]]: tensor<4xi64>, %[[A1:arg[0-9]+]]: tensor<4xf32>, %[[A2:arg[0-9]+]]: tensor<4xi1>
// CHECK-DAG: %[[CST:.*]] = arith.constant 0.000000e+00 : f32
// CHECK-DAG: %[[C4:.*]] = arith.constant 4 : index
// CHECK-DAG: %[[C1:.*]] = arith.constant 1 : index
// CHECK-DAG: %[[C0:.*]] = arith.constant 0 : index
// CHECK: %[[V0:.*]] = memref.alloc() : memref<4xf32>
// CHECK-NEXT: scf.for %[[A9:arg[0-9]+]] = %[[C0]] to %[[C4]] step %[[C1]] {
// CHECK-NEXT: %[[V1:.*]] = tensor.extract %[[A2]][%[[A9]]] : tensor<4xi1>
// CHECK-NEXT: %[[V2:.*]] = scf.if %[[V1]] -> (f32) {
// CHECK-NEXT: %[[V3:.*]] = tensor.extract %[[A0]][%[[A9]]] : tensor<4xi64>
// CHECK-NEXT: %[[V4:.*]] = llvm.inttoptr %[[V3]] : i64 to !llvm.ptr
// CHECK-NEXT: %[[V5:.*]] = tensor.extract %[[A1]][%[[A9]]] : tensor<4xf32>
// CHECK-NEXT: %[[V6:.*]] = llvm.atomicrmw fadd %[[V4]], %[[V5]] acq_rel : !llvm.ptr, f32
// CHECK-NEXT: scf.yield %[[V6]] : f32
// CHECK-NEXT: } else {
// CHECK-NEXT: scf.yield %[[CST]] : f32
// CHECK-NEXT: }
// CHECK-NEXT: memref.store %[[V2]], %[[V0]][%[[A9]]] : memref<4xf32>
// CHECK-NEXT: }
// CHECK-NEXT: %[[V7:.*]] = bufferization.to_tensor %[[V0]] restrict : memref<4xf32> to tensor<4xf32>
// CHECK-NEXT: scf.for %[[A9]] = %[[C0]] to %[[C4]] step %[[C1]] {
// CHECK-NEXT: %[[V1]] = tensor.extract %[[V7]][%[[A9]]] : tensor<4xf32>
// CHECK-NEXT: %[[V3]] = tensor.extract %[[A0]][%[[A9]]] : tensor<4xi64>
// CHECK-NEXT: %[[V2]] = llvm.inttoptr %[[V3]] : i64 to !llvm.ptr
// CHECK-NEXT: llvm.store %[[V1]], %[[V2]] : f32, !llvm.ptr
// CHECK-NEXT: }
// CHECK-NEXT: return
// CHECK-NEXT: }
func.func @atomics_of_a_tensor_with_mask(%q: tensor<4x!tt.ptr<f32>>, %x: tensor<4xf32>, %m: tensor<4xi1>) attributes {tt.kernel} {
  %0 = "tt.atomic_rmw"(%q, %x, %m) {rmw_op = "fadd", sem = "acq_rel", scope = "gpu", operandSegmentSizes = array<i32: 1, 1, 1>} : (tensor<4x!tt.ptr<f32>>, tensor<4xf32>, tensor<4xi1>) -> tensor<4xf32>
  "tt.store"(%q, %0) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<4x!tt.ptr<f32>>, tensor<4xf32>) -> ()
  return
}

// The failure's ordering is the success's, less its release.

// CHECK-LABEL: func.func @compare_and_swap(
// CHECK-SAME: %[[A0:arg[0-9]+]]: !llvm.ptr, %[[A1:arg[0-9]+]]: i32, %[[A2:arg[0-9]+]]: i32
// CHECK: %[[V0:.*]] = llvm.cmpxchg %[[A0]], %[[A1]], %[[A2]] acq_rel acquire : !llvm.ptr, i32
// CHECK-NEXT: %[[V1:.*]] = llvm.extractvalue %[[V0]][0] : !llvm.struct<(i32, i1)>
// CHECK-NEXT: %[[V2:.*]] = llvm.cmpxchg %[[A0]], %[[A2]], %[[V1]] release monotonic : !llvm.ptr, i32
// CHECK-NEXT: %[[V3:.*]] = llvm.extractvalue %[[V2]][0] : !llvm.struct<(i32, i1)>
// CHECK-NEXT: %[[V4:.*]] = llvm.cmpxchg %[[A0]], %[[A2]], %[[V3]] monotonic monotonic : !llvm.ptr, i32
// CHECK-NEXT: %[[V5:.*]] = llvm.extractvalue %[[V4]][0] : !llvm.struct<(i32, i1)>
// CHECK-NEXT: %[[V6:.*]] = llvm.cmpxchg %[[A0]], %[[A2]], %[[V5]] acquire acquire : !llvm.ptr, i32
// CHECK-NEXT: %[[V7:.*]] = llvm.extractvalue %[[V6]][0] : !llvm.struct<(i32, i1)>
// CHECK-NEXT: llvm.store %[[V7]], %[[A0]] : i32, !llvm.ptr
// CHECK-NEXT: return
// CHECK-NEXT: }
func.func @compare_and_swap(%p: !tt.ptr<i32>, %c: i32, %v: i32) attributes {tt.kernel} {
  %0 = "tt.atomic_cas"(%p, %c, %v) {sem = "acq_rel", scope = "gpu"} : (!tt.ptr<i32>, i32, i32) -> i32
  %1 = "tt.atomic_cas"(%p, %v, %0) {sem = "release", scope = "gpu"} : (!tt.ptr<i32>, i32, i32) -> i32
  %2 = "tt.atomic_cas"(%p, %v, %1) {sem = "relaxed", scope = "gpu"} : (!tt.ptr<i32>, i32, i32) -> i32
  %3 = "tt.atomic_cas"(%p, %v, %2) {sem = "acquire", scope = "gpu"} : (!tt.ptr<i32>, i32, i32) -> i32
  "tt.store"(%p, %3) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>} : (!tt.ptr<i32>, i32) -> ()
  return
}

// Floats are compared and swapped by their bits.

// CHECK-LABEL: func.func @compare_and_swap_of_floats(
// CHECK-SAME: %[[A0:arg[0-9]+]]: !llvm.ptr, %[[A1:arg[0-9]+]]: f32, %[[A2:arg[0-9]+]]: f32
// CHECK: %[[V0:.*]] = arith.bitcast %[[A1]] : f32 to i32
// CHECK-NEXT: %[[V1:.*]] = arith.bitcast %[[A2]] : f32 to i32
// CHECK-NEXT: %[[V2:.*]] = llvm.cmpxchg %[[A0]], %[[V0]], %[[V1]] monotonic monotonic : !llvm.ptr, i32
// CHECK-NEXT: %[[V3:.*]] = llvm.extractvalue %[[V2]][0] : !llvm.struct<(i32, i1)>
// CHECK-NEXT: %[[V4:.*]] = arith.bitcast %[[V3]] : i32 to f32
// CHECK-NEXT: llvm.store %[[V4]], %[[A0]] : f32, !llvm.ptr
// CHECK-NEXT: return
// CHECK-NEXT: }
func.func @compare_and_swap_of_floats(%p: !tt.ptr<f32>, %c: f32, %v: f32) attributes {tt.kernel} {
  %0 = "tt.atomic_cas"(%p, %c, %v) {sem = "relaxed", scope = "gpu"} : (!tt.ptr<f32>, f32, f32) -> f32
  "tt.store"(%p, %0) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>} : (!tt.ptr<f32>, f32) -> ()
  return
}

// The number of the first assertion that fails goes to the status word, an argument behind the
// grid: what is there already stays.

// CHECK-LABEL: func.func @assertions(
// CHECK-SAME: %[[C:.*]]: i1, %[[T:.*]]: tensor<4xi1>, {{.*}}, %[[STATUS:.*]]: !llvm.ptr)
// CHECK-SAME: proton.abi = ["program_x", "program_y", "program_z", "grid_x", "grid_y", "grid_z", "status"], proton.assertions = ["one", "two"]
// CHECK-DAG: %[[C0:.*]] = arith.constant 0 : i64
// CHECK-DAG: %[[C1:.*]] = arith.constant 1 : i64
// CHECK-DAG: %[[C2:.*]] = arith.constant 2 : i64
// CHECK: scf.if %[[C]] {
// CHECK-NEXT: } else {
// CHECK-NEXT: %[[BEFORE:.*]] = llvm.load %[[STATUS]] : !llvm.ptr -> i64
// CHECK-NEXT: %[[NONE:.*]] = arith.cmpi eq, %[[BEFORE]], %[[C0]] : i64
// CHECK-NEXT: %[[FIRST:.*]] = arith.select %[[NONE]], %[[C1]], %[[BEFORE]] : i64
// CHECK-NEXT: llvm.store %[[FIRST]], %[[STATUS]] : i64, !llvm.ptr
// CHECK-NEXT: }
// CHECK-NEXT: scf.for %[[I:.*]] = %{{.*}} to %{{.*}} step
// CHECK-NEXT: %[[E:.*]] = tensor.extract %[[T]][%[[I]]]
// CHECK-NEXT: scf.if %[[E]] {
// CHECK-NEXT: } else {
// CHECK-NEXT: %[[BEFORE2:.*]] = llvm.load %[[STATUS]] : !llvm.ptr -> i64
// CHECK-NEXT: %[[NONE2:.*]] = arith.cmpi eq, %[[BEFORE2]], %[[C0]] : i64
// CHECK-NEXT: %[[FIRST2:.*]] = arith.select %[[NONE2]], %[[C2]], %[[BEFORE2]] : i64
// CHECK-NEXT: llvm.store %[[FIRST2]], %[[STATUS]] : i64, !llvm.ptr
func.func @assertions(%c: i1, %t: tensor<4xi1>) attributes {tt.kernel} {
  "tt.assert"(%c) {message = "one"} : (i1) -> ()
  "tt.assert"(%t) {message = "two"} : (tensor<4xi1>) -> ()
  return
}

// CHECK-LABEL: func.func @integers_and_pointers(
// CHECK-SAME: %[[A0:arg[0-9]+]]: !llvm.ptr, %[[A1:arg[0-9]+]]: tensor<4xi64>, %[[A2:arg[0-9]+]]: tensor<1xi64>, %[[A3:arg[0-9]+]]: tensor<4xi32>, %[[A4:arg[0-9]+]]: i32
// CHECK-DAG: %[[C4:.*]] = arith.constant 4 : index
// CHECK-DAG: %[[C1:.*]] = arith.constant 1 : index
// CHECK-DAG: %[[C0:.*]] = arith.constant 0 : index
// CHECK: %[[V0:.*]] = llvm.ptrtoint %[[A0]] : !llvm.ptr to i64
// CHECK-NEXT: %[[V1:.*]] = arith.addi %[[V0]], %[[V0]] : i64
// CHECK-NEXT: %[[V2:.*]] = llvm.inttoptr %[[V1]] : i64 to !llvm.ptr
// CHECK-NEXT: llvm.store %[[A4]], %[[V2]] : i32, !llvm.ptr
// CHECK-NEXT: %[[V3:.*]] = "tt.unsplat"(%[[A2]]) : (tensor<1xi64>) -> i64
// CHECK-NEXT: %[[V4:.*]] = llvm.inttoptr %[[V3]] : i64 to !llvm.ptr
// CHECK-NEXT: llvm.store %[[A4]], %[[V4]] : i32, !llvm.ptr
// CHECK-NEXT: %[[V5:.*]] = arith.addi %[[A1]], %[[A1]] : tensor<4xi64>
// CHECK-NEXT: scf.for %[[A11:arg[0-9]+]] = %[[C0]] to %[[C4]] step %[[C1]] {
// CHECK-NEXT: %[[V6:.*]] = tensor.extract %[[A3]][%[[A11]]] : tensor<4xi32>
// CHECK-NEXT: %[[V7:.*]] = tensor.extract %[[V5]][%[[A11]]] : tensor<4xi64>
// CHECK-NEXT: %[[V8:.*]] = llvm.inttoptr %[[V7]] : i64 to !llvm.ptr
// CHECK-NEXT: llvm.store %[[V6]], %[[V8]] : i32, !llvm.ptr
// CHECK-NEXT: }
// CHECK-NEXT: return
// CHECK-NEXT: }
func.func @integers_and_pointers(%p: !tt.ptr<f32>, %q: tensor<4x!tt.ptr<f32>>, %one: tensor<1x!tt.ptr<i32>>, %x: tensor<4xi32>, %y: i32) attributes {tt.kernel} {
  %i = "tt.ptr_to_int"(%p) : (!tt.ptr<f32>) -> i64
  %j = arith.addi %i, %i : i64
  %r = "tt.int_to_ptr"(%j) : (i64) -> !tt.ptr<f32>
  %s = "tt.bitcast"(%r) : (!tt.ptr<f32>) -> !tt.ptr<i32>
  "tt.store"(%s, %y) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>} : (!tt.ptr<i32>, i32) -> ()
  %u = "tt.unsplat"(%one) : (tensor<1x!tt.ptr<i32>>) -> !tt.ptr<i32>
  "tt.store"(%u, %y) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>} : (!tt.ptr<i32>, i32) -> ()
  %qi = "tt.ptr_to_int"(%q) : (tensor<4x!tt.ptr<f32>>) -> tensor<4xi64>
  %qj = arith.addi %qi, %qi : tensor<4xi64>
  %qp = "tt.int_to_ptr"(%qj) : (tensor<4xi64>) -> tensor<4x!tt.ptr<f32>>
  %qb = "tt.bitcast"(%qp) : (tensor<4x!tt.ptr<f32>>) -> tensor<4x!tt.ptr<i32>>
  "tt.store"(%qb, %x) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<4x!tt.ptr<i32>>, tensor<4xi32>) -> ()
  return
}

// A pointer in memory takes 8 bytes: a scalar is one again when it is read.

// CHECK-LABEL: func.func @pointer_to_a_pointer(
// CHECK-SAME: %[[P:arg[0-9]+]]: !llvm.ptr, %[[I:arg[0-9]+]]: i32, %[[X:arg[0-9]+]]: f32
// CHECK: %[[AT:.*]] = arith.extsi %[[I]] : i32 to i64
// CHECK-NEXT: %[[Q:.*]] = llvm.getelementptr %[[P]][%[[AT]]] : (!llvm.ptr, i64) -> !llvm.ptr, !llvm.ptr
// CHECK-NEXT: %[[R:.*]] = llvm.load %[[Q]] : !llvm.ptr -> !llvm.ptr
// CHECK-NEXT: %[[S:.*]] = llvm.getelementptr %[[R]][%[[AT]]] : (!llvm.ptr, i64) -> !llvm.ptr, f32
// CHECK-NEXT: llvm.store %[[X]], %[[S]] : f32, !llvm.ptr
// CHECK-NEXT: llvm.store %[[S]], %[[P]] : !llvm.ptr, !llvm.ptr
// CHECK-NEXT: return
func.func @pointer_to_a_pointer(%p: !tt.ptr<!tt.ptr<f32>>, %i: i32, %x: f32) attributes {tt.kernel} {
  %q = "tt.addptr"(%p, %i) : (!tt.ptr<!tt.ptr<f32>>, i32) -> !tt.ptr<!tt.ptr<f32>>
  %r = "tt.load"(%q) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 0>, volatile = false} : (!tt.ptr<!tt.ptr<f32>>) -> !tt.ptr<f32>
  %s = "tt.addptr"(%r, %i) : (!tt.ptr<f32>, i32) -> !tt.ptr<f32>
  "tt.store"(%s, %x) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>} : (!tt.ptr<f32>, f32) -> ()
  "tt.store"(%p, %s) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>} : (!tt.ptr<!tt.ptr<f32>>, !tt.ptr<f32>) -> ()
  return
}

// CHECK-LABEL: func.func @pointer_to_a_pointer_or_another(
// CHECK-SAME: %[[P:arg[0-9]+]]: !llvm.ptr, %[[M:arg[0-9]+]]: i1, %[[O:arg[0-9]+]]: !llvm.ptr, %[[X:arg[0-9]+]]: f32
// CHECK: %[[R:.*]] = scf.if %[[M]] -> (!llvm.ptr) {
// CHECK-NEXT: %[[L:.*]] = llvm.load %[[P]] : !llvm.ptr -> !llvm.ptr
// CHECK-NEXT: scf.yield %[[L]] : !llvm.ptr
// CHECK-NEXT: } else {
// CHECK-NEXT: scf.yield %[[O]] : !llvm.ptr
// CHECK-NEXT: }
// CHECK-NEXT: llvm.store %[[X]], %[[R]] : f32, !llvm.ptr
// CHECK-NEXT: return
func.func @pointer_to_a_pointer_or_another(%p: !tt.ptr<!tt.ptr<f32>>, %m: i1, %o: !tt.ptr<f32>, %x: f32) attributes {tt.kernel} {
  %r = "tt.load"(%p, %m, %o) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 1>, volatile = false} : (!tt.ptr<!tt.ptr<f32>>, i1, !tt.ptr<f32>) -> !tt.ptr<f32>
  "tt.store"(%r, %x) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>} : (!tt.ptr<f32>, f32) -> ()
  return
}

// In a tensor it is an i64 address, as it is elsewhere; the offsets scale by 8, then by 4.

// CHECK-LABEL: func.func @pointers_to_pointers(
// CHECK-SAME: %[[P:arg[0-9]+]]: !llvm.ptr, %[[O:arg[0-9]+]]: tensor<4xi32>, %[[M:arg[0-9]+]]: tensor<4xi1>, %[[X:arg[0-9]+]]: tensor<4xf32>
// CHECK-DAG: %[[EIGHT:.*]] = arith.constant dense<8> : tensor<4xi64>
// CHECK-DAG: %[[FOUR:.*]] = arith.constant dense<4> : tensor<4xi64>
// CHECK-DAG: %[[NULL:.*]] = arith.constant 0 : i64
// CHECK: %[[A:.*]] = llvm.ptrtoint %[[P]] : !llvm.ptr to i64
// CHECK-NEXT: %[[B:.*]] = "tt.splat"(%[[A]]) : (i64) -> tensor<4xi64>
// CHECK-NEXT: %[[W:.*]] = arith.extsi %[[O]] : tensor<4xi32> to tensor<4xi64>
// CHECK-NEXT: %[[BYTES:.*]] = arith.muli %[[W]], %[[EIGHT]] : tensor<4xi64>
// CHECK-NEXT: %[[Q:.*]] = arith.addi %[[B]], %[[BYTES]] : tensor<4xi64>
// CHECK-NEXT: %[[BUFFER:.*]] = memref.alloc() : memref<4xi64>
// CHECK-NEXT: scf.for %[[I:arg[0-9]+]] =
// CHECK-NEXT: %[[E:.*]] = tensor.extract %[[M]][%[[I]]] : tensor<4xi1>
// CHECK-NEXT: %[[V:.*]] = scf.if %[[E]] -> (i64) {
// CHECK-NEXT: %[[AT:.*]] = tensor.extract %[[Q]][%[[I]]] : tensor<4xi64>
// CHECK-NEXT: %[[PLACE:.*]] = llvm.inttoptr %[[AT]] : i64 to !llvm.ptr
// CHECK-NEXT: %[[L:.*]] = llvm.load %[[PLACE]] : !llvm.ptr -> i64
// CHECK-NEXT: scf.yield %[[L]] : i64
// CHECK-NEXT: } else {
// CHECK-NEXT: scf.yield %[[NULL]] : i64
// CHECK-NEXT: }
// CHECK-NEXT: memref.store %[[V]], %[[BUFFER]][%[[I]]] : memref<4xi64>
// CHECK-NEXT: }
// CHECK-NEXT: %[[R:.*]] = bufferization.to_tensor %[[BUFFER]] restrict : memref<4xi64> to tensor<4xi64>
// CHECK-NEXT: %[[BYTES2:.*]] = arith.muli %[[W]], %[[FOUR]] : tensor<4xi64>
// CHECK-NEXT: %[[S:.*]] = arith.addi %[[R]], %[[BYTES2]] : tensor<4xi64>
// CHECK-NEXT: scf.for %[[J:arg[0-9]+]] =
// CHECK-NEXT: %[[E2:.*]] = tensor.extract %[[M]][%[[J]]] : tensor<4xi1>
// CHECK-NEXT: scf.if %[[E2]] {
// CHECK-NEXT: %[[XE:.*]] = tensor.extract %[[X]][%[[J]]] : tensor<4xf32>
// CHECK-NEXT: %[[SE:.*]] = tensor.extract %[[S]][%[[J]]] : tensor<4xi64>
// CHECK-NEXT: %[[SP:.*]] = llvm.inttoptr %[[SE]] : i64 to !llvm.ptr
// CHECK-NEXT: llvm.store %[[XE]], %[[SP]] : f32, !llvm.ptr
// CHECK-NEXT: }
// CHECK-NEXT: }
// CHECK-NEXT: scf.for %[[K:arg[0-9]+]] =
// CHECK-NEXT: %[[SV:.*]] = tensor.extract %[[S]][%[[K]]] : tensor<4xi64>
// CHECK-NEXT: %[[QE:.*]] = tensor.extract %[[Q]][%[[K]]] : tensor<4xi64>
// CHECK-NEXT: %[[QP:.*]] = llvm.inttoptr %[[QE]] : i64 to !llvm.ptr
// CHECK-NEXT: llvm.store %[[SV]], %[[QP]] : i64, !llvm.ptr
// CHECK-NEXT: }
// CHECK-NEXT: return
func.func @pointers_to_pointers(%p: !tt.ptr<!tt.ptr<f32>>, %o: tensor<4xi32>, %m: tensor<4xi1>, %x: tensor<4xf32>) attributes {tt.kernel} {
  %ps = "tt.splat"(%p) : (!tt.ptr<!tt.ptr<f32>>) -> tensor<4x!tt.ptr<!tt.ptr<f32>>>
  %q = "tt.addptr"(%ps, %o) : (tensor<4x!tt.ptr<!tt.ptr<f32>>>, tensor<4xi32>) -> tensor<4x!tt.ptr<!tt.ptr<f32>>>
  %r = "tt.load"(%q, %m) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>, volatile = false} : (tensor<4x!tt.ptr<!tt.ptr<f32>>>, tensor<4xi1>) -> tensor<4x!tt.ptr<f32>>
  %s = "tt.addptr"(%r, %o) : (tensor<4x!tt.ptr<f32>>, tensor<4xi32>) -> tensor<4x!tt.ptr<f32>>
  "tt.store"(%s, %x, %m) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 1>} : (tensor<4x!tt.ptr<f32>>, tensor<4xf32>, tensor<4xi1>) -> ()
  "tt.store"(%q, %s) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<4x!tt.ptr<!tt.ptr<f32>>>, tensor<4x!tt.ptr<f32>>) -> ()
  return
}

// `other` without a mask is nothing.

// CHECK-LABEL: func.func @other_without_mask(
// CHECK-SAME: %[[P:arg[0-9]+]]: !llvm.ptr
// CHECK-NEXT: %[[X:.*]] = llvm.load %[[P]] : !llvm.ptr -> f32
// CHECK-NEXT: llvm.store %[[X]], %[[P]] : f32, !llvm.ptr
// CHECK-NEXT: return
func.func @other_without_mask(%p: !tt.ptr<f32>, %y: f32) attributes {tt.kernel} {
  %x = "tt.load"(%p, %y) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 0, 1>, volatile = false} : (!tt.ptr<f32>, f32) -> f32
  "tt.store"(%p, %x) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>} : (!tt.ptr<f32>, f32) -> ()
  return
}

// CHECK-LABEL: func.func @carried_pointers(
// CHECK-SAME: %[[A0:arg[0-9]+]]: !llvm.ptr, %{{.*}}: tensor<4xi64>, %[[A2:arg[0-9]+]]: i32, %[[A3:arg[0-9]+]]: f32, %[[A4:arg[0-9]+]]: i1
// CHECK-DAG: %[[C0_I32:.*]] = arith.constant 0 : i32
// CHECK-DAG: %[[C1_I32:.*]] = arith.constant 1 : i32
// CHECK: %[[V0:.*]] = scf.for %[[A11:arg[0-9]+]] = %[[C0_I32]] to %[[A2]] step %[[C1_I32]] iter_args(%[[A12:arg[0-9]+]] = %[[A0]]) -> (!llvm.ptr)  : i32 {
// CHECK-NEXT: %[[V1:.*]] = arith.extsi %[[A11]] : i32 to i64
// CHECK-NEXT: %[[V2:.*]] = llvm.getelementptr %[[A12]][%[[V1]]] : (!llvm.ptr, i64) -> !llvm.ptr, f32
// CHECK-NEXT: %[[V3:.*]] = arith.select %[[A4]], %[[V2]], %[[A12]] : !llvm.ptr
// CHECK-NEXT: scf.yield %[[V3]] : !llvm.ptr
// CHECK-NEXT: }
// CHECK-NEXT: llvm.store %[[A3]], %[[V0]] : f32, !llvm.ptr
// CHECK-NEXT: return
// CHECK-NEXT: }
func.func @carried_pointers(%p: !tt.ptr<f32>, %q: tensor<4x!tt.ptr<f32>>, %n: i32, %x: f32, %c: i1) attributes {tt.kernel} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %p, %b = %q) -> (!tt.ptr<f32>, tensor<4x!tt.ptr<f32>>) : i32 {
    %d = "tt.addptr"(%a, %i) : (!tt.ptr<f32>, i32) -> !tt.ptr<f32>
    %e = scf.if %c -> (!tt.ptr<f32>) {
      scf.yield %d : !tt.ptr<f32>
    } else {
      scf.yield %p : !tt.ptr<f32>
    }
    %f = arith.select %c, %e, %a : !tt.ptr<f32>
    scf.yield %f, %b : !tt.ptr<f32>, tensor<4x!tt.ptr<f32>>
  }
  "tt.store"(%r#0, %x) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>} : (!tt.ptr<f32>, f32) -> ()
  return
}

// CHECK-LABEL: func.func @not_a_kernel(
// CHECK-SAME: %{{.*}}: !tt.ptr<i32>)
// CHECK-NEXT: "tt.get_program_id"
// CHECK-NEXT: "tt.store"
func.func @not_a_kernel(%p: !tt.ptr<i32>) {
  %x = "tt.get_program_id"() {axis = 0 : i32} : () -> i32
  "tt.store"(%p, %x) {cache = "", evict = "", operandSegmentSizes = array<i32: 1, 1, 0>} : (!tt.ptr<i32>, i32) -> ()
  return
}
