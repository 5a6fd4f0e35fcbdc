// RUN: proton-opt --pipeline='expand-math' %s | filecheck %s

// exp: the argument is reduced by multiples of ln2 in two parts, and the power is put back in
// two steps.

// CHECK-LABEL: func.func @exp(
// CHECK-SAME: %[[X:.*]]: f32)
// CHECK-DAG: %[[LOW:.*]] = arith.constant -1.040000e+02 : f32
// CHECK: %[[IS_LOW:.*]] = arith.cmpf olt, %[[X]], %[[LOW]] : f32
// CHECK: %[[X1:.*]] = arith.select %[[IS_LOW]], %{{.*}}, %[[X]] : f32
// CHECK: %[[HIGH:.*]] = arith.constant 8.900000e+01 : f32
// CHECK: %[[IS_HIGH:.*]] = arith.cmpf ogt, %[[X1]], %[[HIGH]] : f32
// CHECK: %[[X2:.*]] = arith.select %[[IS_HIGH]], %{{.*}}, %[[X1]] : f32
// CHECK: %[[LOG2E:.*]] = arith.constant 1.442695{{.*}} : f32
// CHECK: %[[ROUND:.*]] = arith.constant 0x4B400000 : f32
// CHECK: %[[SHIFTED:.*]] = math.fma %[[X2]], %[[LOG2E]], %[[ROUND]] : f32
// CHECK: %[[BITS:.*]] = arith.bitcast %[[SHIFTED]] : f32 to i32
// CHECK: %[[ROUND_BITS:.*]] = arith.constant 1262485504 : i32
// CHECK: %[[POWER:.*]] = arith.subi %[[BITS]], %[[ROUND_BITS]] : i32
// CHECK: %[[ROUNDED:.*]] = arith.subf %[[SHIFTED]], %{{.*}} : f32
// CHECK: %[[LN2:.*]] = arith.constant -0.693145{{.*}} : f32
// CHECK: %[[R0:.*]] = math.fma %[[ROUNDED]], %[[LN2]], %[[X2]] : f32
// CHECK: %[[R:.*]] = math.fma %[[ROUNDED]], %{{.*}}, %[[R0]] : f32
// CHECK-COUNT-4: math.fma
// CHECK: %[[SQUARE:.*]] = arith.mulf %[[R]], %[[R]] : f32
// CHECK: math.fma %{{.*}}, %[[SQUARE]], %[[R]] : f32
// CHECK: %[[E:.*]] = arith.addf
// CHECK: arith.shrsi %[[POWER]], %{{.*}} : i32
// CHECK: arith.shli
// CHECK: %[[FIRST:.*]] = arith.bitcast %{{.*}} : i32 to f32
// CHECK: arith.shli
// CHECK: %[[SECOND:.*]] = arith.bitcast %{{.*}} : i32 to f32
// CHECK: %[[P:.*]] = arith.mulf %[[E]], %[[FIRST]] : f32
// CHECK-NEXT: %[[Q:.*]] = arith.mulf %[[P]], %[[SECOND]] : f32
// CHECK-NEXT: return %[[Q]]
func.func @exp(%x: f32) -> f32 {
  %y = math.exp %x : f32
  return %y : f32
}

// CHECK-LABEL: func.func @exp2(
// CHECK: arith.constant -1.510000e+02 : f32
// CHECK: arith.constant 1.290000e+02 : f32
// CHECK: arith.constant 0.693147{{.*}} : f32
// CHECK-COUNT-5: math.fma
// CHECK-NOT: math.exp2
// CHECK: return
func.func @exp2(%x: f32) -> f32 {
  %y = math.exp2 %x : f32
  return %y : f32
}

// log and log2: zero, infinity and NaN, and what is below zero come last.

// CHECK-LABEL: func.func @log(
// CHECK-SAME: %[[X:.*]]: f32)
// CHECK-COUNT-10: math.fma
// CHECK-NOT: math.log
// CHECK: %[[ZERO:.*]] = arith.constant 0.000000e+00 : f32
// CHECK: %[[INF:.*]] = arith.constant 0x7F800000 : f32
// CHECK: %[[MINUS_INF:.*]] = arith.constant 0xFF800000 : f32
// CHECK: %[[AT_ZERO:.*]] = arith.cmpf oeq, %[[X]], %[[ZERO]] : f32
// CHECK: %[[R1:.*]] = arith.select %[[AT_ZERO]], %[[MINUS_INF]], %{{.*}} : f32
// CHECK: %[[AT_INF:.*]] = arith.cmpf ueq, %[[X]], %[[INF]] : f32
// CHECK: %[[R2:.*]] = arith.select %[[AT_INF]], %[[X]], %[[R1]] : f32
// CHECK: %[[NAN:.*]] = arith.constant 0x7FC00000 : f32
// CHECK: %[[BELOW:.*]] = arith.cmpf olt, %[[X]], %[[ZERO]] : f32
// CHECK: %[[R3:.*]] = arith.select %[[BELOW]], %[[NAN]], %[[R2]] : f32
// CHECK-NEXT: return %[[R3]]
func.func @log(%x: f32) -> f32 {
  %y = math.log %x : f32
  return %y : f32
}

// CHECK-LABEL: func.func @log2(
// CHECK: math.fma
// CHECK-NOT: math.log2
// CHECK: return
func.func @log2(%x: f32) -> f32 {
  %y = math.log2 %x : f32
  return %y : f32
}

// CHECK-LABEL: func.func @inside_of_a_loop(
// CHECK: scf.for
// CHECK: math.fma
// CHECK: memref.store
func.func @inside_of_a_loop(%m: memref<8xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  scf.for %i = %c0 to %c8 step %c1 {
    %x = memref.load %m[%i] : memref<8xf32>
    %y = math.exp %x : f32
    memref.store %y, %m[%i] : memref<8xf32>
  }
  return
}

// Other types and other functions are the library's, or a later pass's.

// CHECK-LABEL: func.func @others_stay(
// CHECK-NEXT: math.exp %{{.*}} : f64
// CHECK-NEXT: math.log %{{.*}} : f64
// CHECK-NEXT: math.exp %{{.*}} : f16
// CHECK-NEXT: math.exp %{{.*}} : vector<4xf32>
// CHECK-NEXT: math.sin %{{.*}} : f32
// CHECK-NEXT: math.sqrt %{{.*}} : f32
// CHECK-NEXT: return
func.func @others_stay(%x: f64, %h: f16, %v: vector<4xf32>, %y: f32) {
  %0 = math.exp %x : f64
  %1 = math.log %x : f64
  %2 = math.exp %h : f16
  %3 = math.exp %v : vector<4xf32>
  %4 = math.sin %y : f32
  %5 = math.sqrt %y : f32
  return
}
