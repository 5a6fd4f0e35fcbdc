// RUN: proton-opt --pipeline='expand-narrow-floats,cse' %s | filecheck %s

// CHECK-LABEL: func.func @f32_to_bf16(
// CHECK-SAME: %[[A0:arg[0-9]+]]: f32
// CHECK: %[[V0:.*]] = arith.bitcast %[[A0]] : f32 to i32
// CHECK-NEXT: %[[C16_I32:.*]] = arith.constant 16 : i32
// CHECK-NEXT: %[[V1:.*]] = arith.shrui %[[V0]], %[[C16_I32]] : i32
// CHECK-NEXT: %[[C1_I32:.*]] = arith.constant 1 : i32
// CHECK-NEXT: %[[V2:.*]] = arith.andi %[[V1]], %[[C1_I32]] : i32
// CHECK-NEXT: %[[C32767_I32:.*]] = arith.constant 32767 : i32
// CHECK-NEXT: %[[V3:.*]] = arith.addi %[[V2]], %[[C32767_I32]] : i32
// CHECK-NEXT: %[[V4:.*]] = arith.addi %[[V0]], %[[V3]] : i32
// CHECK-NEXT: %[[V5:.*]] = arith.shrui %[[V4]], %[[C16_I32]] : i32
// CHECK-NEXT: %[[V6:.*]] = arith.trunci %[[V5]] : i32 to i16
// CHECK-NEXT: %[[V7:.*]] = arith.cmpf uno, %[[A0]], %[[A0]] : f32
// CHECK-NEXT: %[[C32704_I16:.*]] = arith.constant 32704 : i16
// CHECK-NEXT: %[[V8:.*]] = arith.select %[[V7]], %[[C32704_I16]], %[[V6]] : i16
// CHECK-NEXT: %[[V9:.*]] = arith.bitcast %[[V8]] : i16 to bf16
// CHECK-NEXT: return %[[V9]] : bf16
// CHECK-NEXT: }
func.func @f32_to_bf16(%x: f32) -> bf16 {
  %y = arith.truncf %x : f32 to bf16
  return %y : bf16
}

// Through f32, rounded to odd.

// CHECK-LABEL: func.func @f64_to_f16(
// CHECK-SAME: %[[A0:arg[0-9]+]]: f64
// CHECK: %[[V0:.*]] = arith.truncf %[[A0]] : f64 to f32
// CHECK-NEXT: %[[V1:.*]] = arith.extf %[[V0]] : f32 to f64
// CHECK-NEXT: %[[V2:.*]] = arith.cmpf one, %[[V1]], %[[A0]] : f64
// CHECK-NEXT: %[[V3:.*]] = math.absf %[[V1]] : f64
// CHECK-NEXT: %[[V4:.*]] = math.absf %[[A0]] : f64
// CHECK-NEXT: %[[V5:.*]] = arith.cmpf ogt, %[[V3]], %[[V4]] : f64
// CHECK-NEXT: %[[V6:.*]] = arith.bitcast %[[V0]] : f32 to i32
// CHECK-NEXT: %[[V7:.*]] = arith.extui %[[V5]] : i1 to i32
// CHECK-NEXT: %[[V8:.*]] = arith.subi %[[V6]], %[[V7]] : i32
// CHECK-NEXT: %[[V9:.*]] = arith.extui %[[V2]] : i1 to i32
// CHECK-NEXT: %[[V10:.*]] = arith.ori %[[V8]], %[[V9]] : i32
// CHECK-NEXT: %[[V11:.*]] = arith.bitcast %[[V10]] : i32 to f32
// CHECK-NEXT: %[[V12:.*]] = arith.truncf %[[V11]] : f32 to f16
// CHECK-NEXT: return %[[V12]] : f16
// CHECK-NEXT: }
func.func @f64_to_f16(%x: f64) -> f16 {
  %y = arith.truncf %x : f64 to f16
  return %y : f16
}

// CHECK-LABEL: func.func @arithmetic_of_bf16(
// CHECK-SAME: %[[X:.*]]: bf16
// CHECK: %[[W:.*]] = arith.extf %[[X]] : bf16 to f32
// CHECK: %[[S:.*]] = arith.addf %[[W]], %[[W]] fastmath<reassoc> : f32
// CHECK-NEXT: arith.bitcast %[[S]] : f32 to i32
// CHECK: arith.bitcast %{{.*}} : i16 to bf16
// CHECK: arith.subf %{{.*}}, %{{.*}} : f32
// CHECK: arith.mulf %{{.*}}, %{{.*}} : f32
// CHECK: arith.divf %{{.*}}, %{{.*}} : f32
// CHECK: arith.cmpf olt, %{{.*}}, %[[W]] : f32
// CHECK-NEXT: return
func.func @arithmetic_of_bf16(%x: bf16) -> i1 {
  %a = arith.addf %x, %x fastmath<reassoc> : bf16
  %b = arith.subf %a, %x : bf16
  %c = arith.mulf %b, %x : bf16
  %d = arith.divf %c, %x : bf16
  %e = arith.cmpf olt, %d, %x : bf16
  return %e : i1
}

// CHECK-LABEL: func.func @maximum_of_bf16(
// CHECK-SAME: %[[A0:arg[0-9]+]]: bf16, %[[A1:arg[0-9]+]]: bf16
// CHECK: %[[V0:.*]] = arith.extf %[[A0]] : bf16 to f32
// CHECK-NEXT: %[[V1:.*]] = arith.extf %[[A1]] : bf16 to f32
// CHECK-NEXT: %[[V2:.*]] = arith.cmpf ogt, %[[V0]], %[[V1]] : f32
// CHECK-NEXT: %[[V3:.*]] = arith.select %[[V2]], %[[A0]], %[[A1]] : bf16
// CHECK-NEXT: %[[V4:.*]] = arith.cmpf uno, %[[V1]], %[[V1]] : f32
// CHECK-NEXT: %[[V5:.*]] = arith.select %[[V4]], %[[A0]], %[[V3]] : bf16
// CHECK-NEXT: return %[[V5]] : bf16
// CHECK-NEXT: }
func.func @maximum_of_bf16(%x: bf16, %y: bf16) -> bf16 {
  %a = arith.maxnumf %x, %y : bf16
  return %a : bf16
}

// CHECK-LABEL: func.func @minimum_of_bf16_with_nan(
// CHECK-SAME: %[[A0:arg[0-9]+]]: bf16, %[[A1:arg[0-9]+]]: bf16
// CHECK: %[[V0:.*]] = arith.extf %[[A0]] : bf16 to f32
// CHECK-NEXT: %[[V1:.*]] = arith.extf %[[A1]] : bf16 to f32
// CHECK-NEXT: %[[V2:.*]] = arith.cmpf ult, %[[V0]], %[[V1]] : f32
// CHECK-NEXT: %[[V3:.*]] = arith.select %[[V2]], %[[A0]], %[[A1]] : bf16
// CHECK-NEXT: %[[V4:.*]] = arith.cmpf uno, %[[V1]], %[[V1]] : f32
// CHECK-NEXT: %[[V5:.*]] = arith.select %[[V4]], %[[A1]], %[[V3]] : bf16
// CHECK-NEXT: return %[[V5]] : bf16
// CHECK-NEXT: }
func.func @minimum_of_bf16_with_nan(%x: bf16, %y: bf16) -> bf16 {
  %a = arith.minimumf %x, %y : bf16
  return %a : bf16
}

// CHECK-LABEL: func.func @integers_and_bf16(
// CHECK: %[[W:.*]] = arith.extf %{{.*}} : bf16 to f32
// CHECK-NEXT: llvm.call_intrinsic "llvm.fptosi.sat"(%[[W]]) : (f32) -> i32
// CHECK-NEXT: %[[D:.*]] = arith.sitofp %{{.*}} : i32 to f64
// CHECK-NEXT: arith.truncf %[[D]] : f64 to f32
func.func @integers_and_bf16(%x: bf16, %i: i32) -> (i32, bf16) {
  %0 = arith.fptosi %x : bf16 to i32
  %1 = arith.sitofp %i : i32 to bf16
  return %0, %1 : i32, bf16
}

// Saturated: `arith` leaves open what is outside of the integer's range. 8 bits are the low byte.

// CHECK-LABEL: func.func @f64_to_u8(
// CHECK: %[[W:.*]] = llvm.call_intrinsic "llvm.fptoui.sat"(%{{.*}}) : (f64) -> i16
// CHECK-NEXT: arith.trunci %[[W]] : i16 to i8
func.func @f64_to_u8(%x: f64) -> i8 {
  %0 = arith.fptoui %x : f64 to i8
  return %0 : i8
}

// CHECK-LABEL: func.func @fma_of_f16(
// CHECK: %[[F:.*]] = math.fma %{{.*}}, %{{.*}}, %{{.*}} : f64
// CHECK-NEXT: %[[N:.*]] = arith.truncf %[[F]] : f64 to f32
// CHECK: arith.truncf %{{.*}} : f32 to f16
func.func @fma_of_f16(%x: f16) -> f16 {
  %0 = math.fma %x, %x, %x : f16
  return %0 : f16
}

// CHECK-LABEL: func.func @others_stay(
// CHECK-NEXT: arith.addf %{{.*}}, %{{.*}} : f16
// CHECK-NEXT: arith.truncf %{{.*}} : f32 to f16
// CHECK-NEXT: arith.truncf %{{.*}} : f64 to f32
// CHECK-NEXT: arith.extf %{{.*}} : bf16 to f32
// CHECK-NEXT: math.fma %{{.*}} : f32
// CHECK-NEXT: arith.sitofp %{{.*}} : i32 to f16
// CHECK-NEXT: return
func.func @others_stay(%h: f16, %x: f32, %d: f64, %b: bf16, %i: i32) -> (f16, f16, f32, f32, f32, f16) {
  %0 = arith.addf %h, %h : f16
  %1 = arith.truncf %x : f32 to f16
  %2 = arith.truncf %d : f64 to f32
  %3 = arith.extf %b : bf16 to f32
  %4 = math.fma %x, %x, %x : f32
  %5 = arith.sitofp %i : i32 to f16
  return %0, %1, %2, %3, %4, %5 : f16, f16, f32, f32, f32, f16
}
