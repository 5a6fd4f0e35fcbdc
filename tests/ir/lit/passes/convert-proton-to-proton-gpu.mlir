// RUN: proton-opt --pipeline='convert-proton-to-proton-gpu' %s | filecheck %s --check-prefixes=CHECK,CIRCULAR
// RUN: proton-opt --pipeline='convert-proton-to-proton-gpu{strategy=flush}' %s | filecheck %s --check-prefixes=CHECK,FLUSH
// RUN: proton-opt --pipeline='convert-proton-to-proton-gpu{strategy=counting}' %s | filecheck %s --check-prefix=COUNTING

// A scope's start reads the clock, its end writes the record with both edges and the payload.

// CHECK-LABEL: func.func @one_scope(
// CHECK-SAME: %[[P:.*]]: !llvm.ptr, %[[X:.*]]: f32, %[[N:.*]]: i64)
// CHECK-SAME: proton.table = {optimized_out = [], scopes = [{ahead = false, file = "k.py", fused = false, kind = "slice", line = 7 : i64, name = "inner", path = "outer/inner", payload = {{\[\[}}"n", "int"{{\]\]}}, pendings = 0 : i64, piece = 0 : i64, queue = "", visit = 0 : i64, waits = false, work = ""}]}
// CHECK-NEXT: %[[S:.*]] = "proton_gpu.init"() : () -> !proton_gpu.segment
// CHECK-NEXT: %[[T0:.*]] = "proton_gpu.read_counter"() : () -> i64
// CHECK-NEXT: llvm.store %[[X]], %[[P]]
// CHECK-NEXT: %[[T1:.*]] = "proton_gpu.read_counter"() : () -> i64
// CHECK-NEXT: %[[NONE:.*]] = arith.constant -1 : i32
// CIRCULAR-NEXT: "proton_gpu.circular_record"(%[[S]], %[[T0]], %[[T1]], %[[NONE]], %[[N]]) {kind = 0 : i32, operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 0>, scope_id = 0 : i32}
// FLUSH-NEXT: "proton_gpu.flush_record"(%[[S]], %[[T0]], %[[T1]], %[[NONE]], %[[N]]) {kind = 0 : i32, operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 0>, scope_id = 0 : i32}
// CHECK-NEXT: "proton_gpu.finalize"(%[[S]])
// CHECK-NEXT: return

// COUNTING-LABEL: func.func @one_scope(
// COUNTING: %[[S:.*]] = "proton_gpu.init"()
// COUNTING: llvm.store
// COUNTING: "proton_gpu.counting_record"(%[[S]]) {kind = 0 : i32, operandSegmentSizes = array<i32: 1, 0>, scope_id = 0 : i32}
// COUNTING-NEXT: "proton_gpu.finalize"(%[[S]])
func.func @one_scope(%p: !llvm.ptr, %x: f32, %n: i64) attributes {tt.kernel} {
  "proton.record"(%n) {scope = "outer/inner", phase = "start", names = ["n"], kinds = ["int"], operandSegmentSizes = array<i32: 1, 0>} : (i64) -> () loc("k.py":7:3)
  llvm.store %x, %p : f32, !llvm.ptr
  "proton.record"() {scope = "outer/inner", phase = "end", names = [], kinds = [], operandSegmentSizes = array<i32: 0, 0>} : () -> ()
  return
}

// Edges with nothing between them are one read: of nested scopes, and of adjacent ones. What
// is free (arithmetic on scalars, views) does not count as something.

// CHECK-LABEL: func.func @shared_edges(
// CHECK-SAME: path = "a/b"{{.*}}path = "a"{{.*}}path = "c"
// CHECK: %[[T0:.*]] = "proton_gpu.read_counter"()
// CHECK-NOT: read_counter
// CHECK: llvm.store
// CHECK-NEXT: %[[T1:.*]] = "proton_gpu.read_counter"()
// CIRCULAR: circular_record"(%{{.*}}, %[[T0]], %[[T1]], %{{.*}}) {{.*}}scope_id = 0
// CIRCULAR: circular_record"(%{{.*}}, %[[T0]], %[[T1]], %{{.*}}) {{.*}}scope_id = 1
// CHECK-NOT: read_counter
// CHECK: arith.addf
// CHECK-NEXT: llvm.store
// CHECK-NEXT: %[[T2:.*]] = "proton_gpu.read_counter"()
// CIRCULAR: circular_record"(%{{.*}}, %[[T1]], %[[T2]], %{{.*}}) {{.*}}scope_id = 2
// CHECK-NOT: read_counter
// CHECK: return
func.func @shared_edges(%p: !llvm.ptr, %x: f32) attributes {tt.kernel} {
  "proton.record"() {scope = "a", phase = "start", names = [], kinds = [], operandSegmentSizes = array<i32: 0, 0>} : () -> ()
  "proton.record"() {scope = "a/b", phase = "start", names = [], kinds = [], operandSegmentSizes = array<i32: 0, 0>} : () -> ()
  llvm.store %x, %p : f32, !llvm.ptr
  "proton.record"() {scope = "a/b", phase = "end", names = [], kinds = [], operandSegmentSizes = array<i32: 0, 0>} : () -> ()
  "proton.record"() {scope = "a", phase = "end", names = [], kinds = [], operandSegmentSizes = array<i32: 0, 0>} : () -> ()
  %y = arith.addf %x, %x : f32
  "proton.record"() {scope = "c", phase = "start", names = [], kinds = [], operandSegmentSizes = array<i32: 0, 0>} : () -> ()
  llvm.store %y, %p : f32, !llvm.ptr
  "proton.record"() {scope = "c", phase = "end", names = [], kinds = [], operandSegmentSizes = array<i32: 0, 0>} : () -> ()
  return
}

// CHECK-LABEL: func.func @work_between_scopes(
// CHECK-COUNT-4: "proton_gpu.read_counter"
// CHECK-NOT: "proton_gpu.read_counter"
// CHECK: return
func.func @work_between_scopes(%p: !llvm.ptr, %x: f32) attributes {tt.kernel} {
  "proton.record"() {scope = "a", phase = "start", names = [], kinds = [], operandSegmentSizes = array<i32: 0, 0>} : () -> ()
  llvm.store %x, %p : f32, !llvm.ptr
  "proton.record"() {scope = "a", phase = "end", names = [], kinds = [], operandSegmentSizes = array<i32: 0, 0>} : () -> ()
  llvm.store %x, %p : f32, !llvm.ptr
  "proton.record"() {scope = "c", phase = "start", names = [], kinds = [], operandSegmentSizes = array<i32: 0, 0>} : () -> ()
  llvm.store %x, %p : f32, !llvm.ptr
  "proton.record"() {scope = "c", phase = "end", names = [], kinds = [], operandSegmentSizes = array<i32: 0, 0>} : () -> ()
  return
}

// The iteration counts from 0, in the innermost loop around the scope.

// CHECK-LABEL: func.func @iterations(
// CHECK-SAME: %[[LOW:[a-z0-9]+]]: i32, %[[HIGH:[a-z0-9]+]]: i32, %[[STEP:[a-z0-9]+]]: i32, %[[N:[a-z0-9]+]]: index
// CHECK: scf.for %[[I:.*]] = %[[LOW]] to %[[HIGH]] step %[[STEP]] : i32 {
// CHECK: scf.for %[[J:.*]] = %[[C0:.*]] to %[[N]] step %[[C1:.*]] {
// CHECK: scf.if
// CIRCULAR: %[[D:.*]] = arith.subi %[[J]], %[[C0]] : index
// CIRCULAR-NEXT: %[[Q:.*]] = arith.divsi %[[D]], %[[C1]] : index
// CIRCULAR-NEXT: %[[K:.*]] = arith.index_cast %[[Q]] : index to i32
// CIRCULAR-NEXT: circular_record"(%{{.*}}, %{{.*}}, %{{.*}}, %[[K]]) {{.*}}scope_id = 0
// CIRCULAR: %[[D2:.*]] = arith.subi %[[I]], %[[LOW]] : i32
// CIRCULAR-NEXT: %[[Q2:.*]] = arith.divsi %[[D2]], %[[STEP]] : i32
// CIRCULAR-NEXT: circular_record"(%{{.*}}, %{{.*}}, %{{.*}}, %[[Q2]]) {{.*}}scope_id = 1
func.func @iterations(%low: i32, %high: i32, %step: i32, %n: index, %p: !llvm.ptr, %x: f32, %c: i1) attributes {tt.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %low to %high step %step : i32 {
    "proton.record"() {scope = "a", phase = "start", names = [], kinds = [], operandSegmentSizes = array<i32: 0, 0>} : () -> ()
    scf.for %j = %c0 to %n step %c1 {
      scf.if %c {
        "proton.record"() {scope = "a/b", phase = "start", names = [], kinds = [], operandSegmentSizes = array<i32: 0, 0>} : () -> ()
        llvm.store %x, %p : f32, !llvm.ptr
        "proton.record"() {scope = "a/b", phase = "end", names = [], kinds = [], operandSegmentSizes = array<i32: 0, 0>} : () -> ()
      }
    }
    "proton.record"() {scope = "a", phase = "end", names = [], kinds = [], operandSegmentSizes = array<i32: 0, 0>} : () -> ()
  }
  return
}

// A 64-bit loop variable is cut to 32 bits; a while loop does not count.

// CHECK-LABEL: func.func @other_loops(
// CHECK: scf.for
// CIRCULAR: arith.divsi %{{.*}} : i64
// CIRCULAR-NEXT: %[[K:.*]] = arith.trunci %{{.*}} : i64 to i32
// CIRCULAR-NEXT: circular_record"(%{{.*}}, %{{.*}}, %{{.*}}, %[[K]])
// CHECK: scf.while
// CIRCULAR: %[[NONE:.*]] = arith.constant -1 : i32
// CIRCULAR-NEXT: circular_record"(%{{.*}}, %{{.*}}, %{{.*}}, %[[NONE]])
func.func @other_loops(%n: i64, %p: !llvm.ptr, %x: f32, %c: i1) attributes {tt.kernel} {
  %c1 = arith.constant 1 : i64
  scf.for %i = %c1 to %n step %c1 : i64 {
    "proton.record"() {scope = "a", phase = "start", names = [], kinds = [], operandSegmentSizes = array<i32: 0, 0>} : () -> ()
    llvm.store %x, %p : f32, !llvm.ptr
    "proton.record"() {scope = "a", phase = "end", names = [], kinds = [], operandSegmentSizes = array<i32: 0, 0>} : () -> ()
  }
  scf.while : () -> () {
    scf.condition(%c)
  } do {
    "proton.record"() {scope = "b", phase = "start", names = [], kinds = [], operandSegmentSizes = array<i32: 0, 0>} : () -> ()
    llvm.store %x, %p : f32, !llvm.ptr
    "proton.record"() {scope = "b", phase = "end", names = [], kinds = [], operandSegmentSizes = array<i32: 0, 0>} : () -> ()
    scf.yield
  }
  return
}

// A mark is a record whose edges are one, of kind 1.

// CHECK-LABEL: func.func @marks(
// CHECK-SAME: %[[N:.*]]: i64)
// CHECK-SAME: fused = false, kind = "mark", {{.*}} name = "here", path = "a/here", payload = {{\[\[}}"n", "int"{{\]\]}}
// CHECK: %[[T:.*]] = "proton_gpu.read_counter"()
// CIRCULAR: circular_record"(%{{.*}}, %[[T]], %[[T]], %{{.*}}, %[[N]]) {kind = 1 : i32, {{.*}}scope_id = 0
// FLUSH: flush_record"(%{{.*}}, %[[T]], %[[T]], %{{.*}}, %[[N]]) {kind = 1 : i32, {{.*}}scope_id = 0
// COUNTING-LABEL: func.func @marks(
// COUNTING: counting_record"(%{{.*}}) {kind = 1 : i32, operandSegmentSizes = array<i32: 1, 0>, scope_id = 0 : i32}
func.func @marks(%n: i64) attributes {tt.kernel} {
  "proton.mark"(%n) {mark = "a/here", names = ["n"], kinds = ["int"], operandSegmentSizes = array<i32: 1, 0>} : (i64) -> ()
  return
}

// The same scope has one id; with another payload it is another scope.

// CHECK-LABEL: func.func @ids(
// CIRCULAR: circular_record"{{.*}}scope_id = 0
// CIRCULAR: circular_record"{{.*}}scope_id = 0
// CIRCULAR: circular_record"{{.*}}scope_id = 1
func.func @ids(%p: !llvm.ptr, %x: f32, %n: i64) attributes {tt.kernel} {
  "proton.record"() {scope = "a", phase = "start", names = [], kinds = [], operandSegmentSizes = array<i32: 0, 0>} : () -> ()
  llvm.store %x, %p : f32, !llvm.ptr
  "proton.record"() {scope = "a", phase = "end", names = [], kinds = [], operandSegmentSizes = array<i32: 0, 0>} : () -> ()
  "proton.record"() {scope = "a", phase = "start", names = [], kinds = [], operandSegmentSizes = array<i32: 0, 0>} : () -> ()
  llvm.store %x, %p : f32, !llvm.ptr
  "proton.record"() {scope = "a", phase = "end", names = [], kinds = [], operandSegmentSizes = array<i32: 0, 0>} : () -> ()
  "proton.record"(%n) {scope = "a", phase = "start", names = ["n"], kinds = ["int"], operandSegmentSizes = array<i32: 1, 0>} : (i64) -> ()
  llvm.store %x, %p : f32, !llvm.ptr
  "proton.record"() {scope = "a", phase = "end", names = [], kinds = [], operandSegmentSizes = array<i32: 0, 0>} : () -> ()
  return
}

// Scopes that were written but have no work left are told; members of a fused one have it.

// CHECK-LABEL: func.func @optimized_out(
// CHECK-SAME: optimized_out = ["c"]
// CHECK-SAME: fused = true, kind = "slice", {{.*}} name = "a + b", path = "a + b"
func.func @optimized_out(%p: !llvm.ptr, %x: f32) attributes {tt.kernel, proton.scopes = ["a", "c", "b"]} {
  "proton.record"() {scope = "a + b", phase = "start", members = ["a", "b"], names = [], kinds = [], operandSegmentSizes = array<i32: 0, 0>} : () -> ()
  llvm.store %x, %p : f32, !llvm.ptr
  "proton.record"() {scope = "a + b", phase = "end", names = [], kinds = [], operandSegmentSizes = array<i32: 0, 0>} : () -> ()
  return
}

// So are those of a kernel that has no record left: it is one that leaves its times and no records.

// CHECK-LABEL: func.func @all_emptied(
// CHECK-SAME: proton.table = {optimized_out = ["a"], scopes = []}
// CHECK-NEXT: %[[S:.*]] = "proton_gpu.init"
// CHECK-NEXT: llvm.store
// CHECK-NEXT: "proton_gpu.finalize"(%[[S]])
func.func @all_emptied(%p: !llvm.ptr, %x: f32) attributes {tt.kernel, proton.scopes = ["a"]} {
  llvm.store %x, %p : f32, !llvm.ptr
  return
}

// CHECK-LABEL: func.func @no_records(
// CHECK-NOT: proton
// CHECK: return
// COUNTING-LABEL: func.func @no_records(
func.func @no_records(%p: !llvm.ptr, %x: f32) attributes {tt.kernel} {
  llvm.store %x, %p : f32, !llvm.ptr
  return
}

// A condition, at either end of a scope or on a mark, is that of the record.

// CHECK-LABEL: func.func @conditions(
// CHECK-SAME: %[[C:[a-z0-9]*]]: i1, %[[D:[a-z0-9]*]]: i1, %[[N:[a-z0-9]*]]: i64)
// CIRCULAR: circular_record"(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %[[N]], %[[C]]) {kind = 0 : i32, operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 1>, scope_id = 0
// CIRCULAR: circular_record"(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %[[D]]) {kind = 0 : i32, operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 1>, scope_id = 1
// CIRCULAR: circular_record"(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %[[D]]) {kind = 1 : i32, operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 1>, scope_id = 2
// FLUSH: flush_record"(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %[[N]], %[[C]]) {kind = 0 : i32, operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 1>
// COUNTING-LABEL: func.func @conditions(
// COUNTING-SAME: %[[C:[a-z0-9]*]]: i1, %[[D:[a-z0-9]*]]: i1, %[[N:[a-z0-9]*]]: i64)
// COUNTING: counting_record"(%{{.*}}, %[[C]]) {kind = 0 : i32, operandSegmentSizes = array<i32: 1, 1>, scope_id = 0
// COUNTING: counting_record"(%{{.*}}, %[[D]]) {kind = 0
// COUNTING: counting_record"(%{{.*}}, %[[D]]) {kind = 1
func.func @conditions(%p: !llvm.ptr, %x: f32, %c: i1, %d: i1, %n: i64) attributes {tt.kernel} {
  "proton.record"(%n, %c) {scope = "a", phase = "start", names = ["n"], kinds = ["int"], operandSegmentSizes = array<i32: 1, 1>} : (i64, i1) -> ()
  llvm.store %x, %p : f32, !llvm.ptr
  "proton.record"() {scope = "a", phase = "end", names = [], kinds = [], operandSegmentSizes = array<i32: 0, 0>} : () -> ()
  "proton.record"(%c) {scope = "b", phase = "start", names = [], kinds = [], operandSegmentSizes = array<i32: 0, 1>} : (i1) -> ()
  llvm.store %x, %p : f32, !llvm.ptr
  "proton.record"(%d) {scope = "b", phase = "end", names = [], kinds = [], operandSegmentSizes = array<i32: 0, 1>} : (i1) -> ()
  "proton.mark"(%d) {mark = "here", names = [], kinds = [], operandSegmentSizes = array<i32: 0, 1>} : (i1) -> ()
  return
}

// The edges of an event are instants of kinds 2 and 3, and of one scope wherever they are.

// CHECK-LABEL: func.func @events(
// CHECK-SAME: fused = false, kind = "event", {{.*}} name = "tile", path = "tile", payload = [], {{.*}}name = "other"
// CHECK: scf.for
// CHECK: %[[T:.*]] = "proton_gpu.read_counter"()
// CIRCULAR: circular_record"(%{{.*}}, %[[T]], %[[T]], %{{.*}}) {kind = 2 : i32, {{.*}}scope_id = 0
// FLUSH: flush_record"(%{{.*}}, %[[T]], %[[T]], %{{.*}}) {kind = 2 : i32, {{.*}}scope_id = 0
// CHECK: scf.if
// CIRCULAR: circular_record"{{.*}}) {kind = 3 : i32, {{.*}}scope_id = 0
// CIRCULAR: circular_record"{{.*}}) {kind = 3 : i32, {{.*}}scope_id = 1
// COUNTING-LABEL: func.func @events(
// COUNTING: counting_record"(%{{.*}}) {kind = 2 : i32, {{.*}}scope_id = 0
// COUNTING: counting_record"(%{{.*}}) {kind = 3 : i32, {{.*}}scope_id = 0
func.func @events(%n: index, %c: i1) attributes {tt.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    "proton.event"() {event = "tile", phase = "start"} : () -> ()
  }
  scf.if %c {
    "proton.event"() {event = "tile", phase = "end"} : () -> ()
  }
  "proton.event"() {event = "other", phase = "end"} : () -> ()
  return
}
