// RUN: proton-opt --pipeline='number-iterations' %s | filecheck %s
// Starts and marks of loops that ask to be unrolled get the number of their iteration.

// CHECK-LABEL: func.func @unrolled(
// CHECK: scf.for %[[I:.*]] = %[[LOWER:.*]] to %{{.*}} step
// CHECK-NEXT: %[[WAY:.*]] = arith.subi %[[I]], %[[LOWER]] : i32
// CHECK-NEXT: %[[TURN:.*]] = arith.divsi %[[WAY]], %{{.*}} : i32
// CHECK-NEXT: %[[NUMBER:.*]] = arith.extsi %[[TURN]] : i32 to i64
// CHECK-NEXT: "proton.record"(%arg3, %[[NUMBER]]) {{.*}}kinds = ["int", "int"], names = ["n", "#iteration"]{{.*}}phase = "start", scope = "a"
// CHECK-NEXT: "proton.record"() {{.*}}phase = "end", scope = "a"
// CHECK: "proton.mark"(%{{.*}}) {{.*}}mark = "m", names = ["#iteration"]
// CHECK-LABEL: func.func @plain(
// CHECK-NOT: arith
// CHECK: return
func.func @unrolled(%lower: i32, %upper: i32, %step: i32, %n: i64) {
  scf.for %i = %lower to %upper step %step : i32 {
    "proton.record"(%n) {scope = "a", phase = "start", names = ["n"], kinds = ["int"], operandSegmentSizes = array<i32: 1, 0>} : (i64) -> ()
    "proton.record"() {scope = "a", phase = "end", names = [], kinds = [], operandSegmentSizes = array<i32: 0, 0>} : () -> ()
    "proton.mark"() {mark = "m", names = [], kinds = [], operandSegmentSizes = array<i32: 0, 0>} : () -> ()
  } {tt.loop_unroll_factor = 4 : i32}
  return
}

// The loop around counts, not the one that is unrolled around that.

func.func @plain(%lower: i32, %upper: i32, %step: i32) {
  scf.for %i = %lower to %upper step %step : i32 {
    scf.for %j = %lower to %upper step %step : i32 {
      "proton.mark"() {mark = "m", names = [], kinds = [], operandSegmentSizes = array<i32: 0, 0>} : () -> ()
    }
  } {tt.loop_unroll_factor = 2 : i32}
  return
}
