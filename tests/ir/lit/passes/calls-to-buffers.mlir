// RUN: proton-opt --pipeline='calls-to-buffers' %s | filecheck %s

// The caller makes buffers for what it gives and gets; scalars stay as they are, and what passes
// have added stays last.

// CHECK-LABEL: func.func @caller(
// CHECK-SAME: %[[X:.*]]: tensor<8xf32>, %[[S:.*]]: i32, %[[PID:.*]]: i32)
// CHECK: %[[IN:.*]] = memref.alloc() : memref<8xf32>
// CHECK-NEXT: bufferization.materialize_in_destination %[[X]] in restrict writable %[[IN]]
// CHECK-NEXT: %[[OUT:.*]] = memref.alloc() : memref<4x2xi1>
// CHECK-NEXT: %[[N:.*]] = call @callee(%[[IN]], %[[S]], %[[OUT]], %[[PID]]) : (memref<8xf32>, i32, memref<4x2xi1>, i32) -> i32
// CHECK-NEXT: %[[T:.*]] = bufferization.to_tensor %[[OUT]] restrict
// CHECK-NEXT: tensor.extract %[[T]]
func.func @caller(%x: tensor<8xf32>, %s: i32, %pid: i32) attributes {tt.kernel, proton.abi = ["program_x"]} {
  %c0 = arith.constant 0 : index
  %n, %t = func.call @callee(%x, %s, %pid) : (tensor<8xf32>, i32, i32) -> (i32, tensor<4x2xi1>)
  %e = tensor.extract %t[%c0, %c0] : tensor<4x2xi1>
  return
}

// CHECK-LABEL: func.func private @callee(
// CHECK-SAME: %[[IN:.*]]: memref<8xf32>, %[[S:.*]]: i32, %[[OUT:.*]]: memref<4x2xi1>, %[[PID:.*]]: i32) -> i32
// CHECK: %[[X:.*]] = bufferization.to_tensor %[[IN]] restrict
// CHECK: %[[N:.*]] = arith.addi %[[S]], %[[PID]]
// CHECK: tensor.extract %[[X]]
// CHECK: %[[T:.*]] = tensor.empty
// CHECK-NEXT: bufferization.materialize_in_destination %[[T]] in restrict writable %[[OUT]]
// CHECK-NEXT: return %[[N]] : i32
func.func private @callee(%x: tensor<8xf32>, %s: i32, %pid: i32) -> (i32, tensor<4x2xi1>) attributes {tt.noinline = true, proton.abi = ["program_x"]} {
  %n = arith.addi %s, %pid : i32
  %c0 = arith.constant 0 : index
  %e = tensor.extract %x[%c0] : tensor<8xf32>
  %t = tensor.empty() : tensor<4x2xi1>
  return %n, %t : i32, tensor<4x2xi1>
}

// A function that takes and gives no tensors is left alone.

// CHECK-LABEL: func.func private @scalars(%{{.*}}: f32) -> f32
// CHECK-NEXT: return
func.func private @scalars(%x: f32) -> f32 attributes {tt.noinline = true} {
  return %x : f32
}
