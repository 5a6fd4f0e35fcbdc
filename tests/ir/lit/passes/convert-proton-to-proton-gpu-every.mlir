// RUN: proton-opt --pipeline='convert-proton-to-proton-gpu{every=4}' %s | filecheck %s
// RUN: proton-opt --pipeline='convert-proton-to-proton-gpu{strategy=counting every=4}' %s | filecheck %s --check-prefix=COUNTING

// In a loop each fourth iteration is kept, where its condition holds, too; elsewhere everything.

// CHECK-LABEL: func.func @sampled(
// CHECK-SAME: %[[LOW:[a-z0-9]+]]: i32, %[[HIGH:[a-z0-9]+]]: i32, %[[STEP:[a-z0-9]+]]: i32, %[[C:[a-z0-9]+]]: i1)
// CHECK: %[[NONE:.*]] = arith.constant -1 : i32
// CHECK-NEXT: circular_record"(%{{.*}}, %{{.*}}, %{{.*}}, %[[NONE]]) {{.*}}array<i32: 1, 1, 1, 1, 0, 0>, scope_id = 0
// CHECK: scf.for %[[I:.*]] = %[[LOW]] to %[[HIGH]] step %[[STEP]]
// CHECK: %[[D:.*]] = arith.subi %[[I]], %[[LOW]] : i32
// CHECK-NEXT: %[[N:.*]] = arith.divsi %[[D]], %[[STEP]] : i32
// CHECK-NEXT: %[[FOUR:.*]] = arith.constant 4 : i32
// CHECK-NEXT: %[[REST:.*]] = arith.remui %[[N]], %[[FOUR]] : i32
// CHECK-NEXT: %[[ZERO:.*]] = arith.constant 0 : i32
// CHECK-NEXT: %[[KEPT:.*]] = arith.cmpi eq, %[[REST]], %[[ZERO]] : i32
// CHECK-NEXT: circular_record"(%{{.*}}, %{{.*}}, %{{.*}}, %[[N]], %[[KEPT]]) {{.*}}scope_id = 1
// CHECK: %[[KEPT2:.*]] = arith.cmpi eq
// CHECK-NEXT: %[[BOTH:.*]] = arith.andi %[[C]], %[[KEPT2]] : i1
// CHECK-NEXT: circular_record"(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %[[BOTH]]) {kind = 1
// CHECK: scf.while
// CHECK: %[[NONE2:.*]] = arith.constant -1 : i32
// CHECK-NEXT: circular_record"(%{{.*}}, %{{.*}}, %{{.*}}, %[[NONE2]]) {{.*}}array<i32: 1, 1, 1, 1, 0, 0>, scope_id = 3

// COUNTING-LABEL: func.func @sampled(
// COUNTING: counting_record"(%{{.*}}) {{.*}}scope_id = 0
// COUNTING: %[[KEPT:.*]] = arith.cmpi eq
// COUNTING-NEXT: counting_record"(%{{.*}}, %[[KEPT]]) {{.*}}scope_id = 1
func.func @sampled(%p: !llvm.ptr, %x: f32, %low: i32, %high: i32, %step: i32, %c: i1) attributes {tt.kernel} {
  "proton.record"() {scope = "a", phase = "start", names = [], kinds = [], operandSegmentSizes = array<i32: 0, 0>} : () -> ()
  llvm.store %x, %p : f32, !llvm.ptr
  "proton.record"() {scope = "a", phase = "end", names = [], kinds = [], operandSegmentSizes = array<i32: 0, 0>} : () -> ()
  scf.for %i = %low to %high step %step : i32 {
    "proton.record"() {scope = "b", phase = "start", names = [], kinds = [], operandSegmentSizes = array<i32: 0, 0>} : () -> ()
    llvm.store %x, %p : f32, !llvm.ptr
    "proton.record"() {scope = "b", phase = "end", names = [], kinds = [], operandSegmentSizes = array<i32: 0, 0>} : () -> ()
    "proton.mark"(%c) {mark = "here", names = [], kinds = [], operandSegmentSizes = array<i32: 0, 1>} : (i1) -> ()
    scf.while : () -> () {
      scf.condition(%c)
    } do {
      "proton.record"() {scope = "d", phase = "start", names = [], kinds = [], operandSegmentSizes = array<i32: 0, 0>} : () -> ()
      llvm.store %x, %p : f32, !llvm.ptr
      "proton.record"() {scope = "d", phase = "end", names = [], kinds = [], operandSegmentSizes = array<i32: 0, 0>} : () -> ()
      scf.yield
    }
  }
  return
}

// Of events nothing is left out: their halves may be in different loops.

// CHECK-LABEL: func.func @events(
// CHECK: scf.for
// CHECK: circular_record"{{.*}}) {kind = 2 : i32, operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0>
func.func @events(%n: index) attributes {tt.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    "proton.event"() {event = "tile", phase = "start"} : () -> ()
  }
  return
}
