// RUN: proton-opt --pipeline='place-records' %s | filecheck %s
#id = affine_map<(d0) -> (d0)>

// CHECK-LABEL: func.func @one_run(
// CHECK-NEXT: arith.constant
// CHECK-NEXT: "proton.record"() {kinds = [], members = ["a"], names = [], operandSegmentSizes = array<i32: 0, 0>, phase = "start", scope = "a"}
// CHECK-NEXT: memref.store
// CHECK-NEXT: arith.addf
// CHECK-NEXT: memref.store
// CHECK-NEXT: "proton.record"() {kinds = [], names = [], operandSegmentSizes = array<i32: 0, 0>, phase = "end", scope = "a"}
// CHECK-NEXT: return
func.func @one_run(%m: memref<8xf32>, %x: f32) attributes {tt.kernel, proton.scopes = ["a"]} {
  %c0 = arith.constant 0 : index
  memref.store %x, %m[%c0] : memref<8xf32> loc("scope:a")
  %y = arith.addf %x, %x : f32
  memref.store %y, %m[%c0] : memref<8xf32> loc("scope:a")
  return
}

// CHECK-LABEL: func.func @adjacent_runs(
// CHECK: phase = "start", scope = "a"
// CHECK-NEXT: memref.store
// CHECK-NEXT: phase = "end", scope = "a"
// CHECK-NEXT: phase = "start", scope = "b"
// CHECK-NEXT: memref.store
// CHECK-NEXT: phase = "end", scope = "b"
// CHECK-NEXT: phase = "start", scope = "a"
// CHECK-NEXT: memref.store
// CHECK-NEXT: phase = "end", scope = "a"
// CHECK-NEXT: return
func.func @adjacent_runs(%m: memref<8xf32>, %x: f32) attributes {tt.kernel, proton.scopes = ["a", "b"]} {
  %c0 = arith.constant 0 : index
  memref.store %x, %m[%c0] : memref<8xf32> loc("scope:a")
  memref.store %x, %m[%c0] : memref<8xf32> loc("scope:b")
  memref.store %x, %m[%c0] : memref<8xf32> loc("scope:a")
  return
}

// Work of no scope stands between two runs.

// CHECK-LABEL: func.func @unscoped_work(
// CHECK: phase = "start", scope = "a"
// CHECK-NEXT: memref.store
// CHECK-NEXT: phase = "end", scope = "a"
// CHECK-NEXT: memref.store
// CHECK-NEXT: phase = "start", scope = "a"
// CHECK-NEXT: memref.store
// CHECK-NEXT: phase = "end", scope = "a"
// CHECK-NEXT: return
func.func @unscoped_work(%m: memref<8xf32>, %x: f32) attributes {tt.kernel, proton.scopes = ["a"]} {
  %c0 = arith.constant 0 : index
  memref.store %x, %m[%c0] : memref<8xf32> loc("scope:a")
  memref.store %x, %m[%c0] : memref<8xf32>
  memref.store %x, %m[%c0] : memref<8xf32> loc("scope:a")
  return
}

// The outer scope is around its inner ones, and around work of its own.

// CHECK-LABEL: func.func @nested(
// CHECK: phase = "start", scope = "a"
// CHECK-NEXT: phase = "start", scope = "a/b"
// CHECK-NEXT: memref.store
// CHECK-NEXT: phase = "end", scope = "a/b"
// CHECK-NEXT: memref.store
// CHECK-NEXT: phase = "start", scope = "a/c"
// CHECK-NEXT: phase = "start", scope = "a/c/d"
// CHECK-NEXT: memref.store
// CHECK-NEXT: phase = "end", scope = "a/c/d"
// CHECK-NEXT: phase = "end", scope = "a/c"
// CHECK-NEXT: phase = "end", scope = "a"
// CHECK-NEXT: return
func.func @nested(%m: memref<8xf32>, %x: f32) attributes {tt.kernel, proton.scopes = ["a", "a/b", "a/c", "a/c/d"]} {
  %c0 = arith.constant 0 : index
  memref.store %x, %m[%c0] : memref<8xf32> loc("scope:a/b")
  memref.store %x, %m[%c0] : memref<8xf32> loc("scope:a")
  memref.store %x, %m[%c0] : memref<8xf32> loc("scope:a/c/d")
  return
}

// What was fused is one slice, with the names in the order of the source, not of the ops.

// CHECK-LABEL: func.func @fused(
// CHECK-NEXT: "proton.record"() {kinds = [], members = ["b", "a"], names = [], operandSegmentSizes = array<i32: 0, 0>, phase = "start", scope = "b + a"}
// CHECK-NEXT: linalg.generic
// CHECK: phase = "end", scope = "b + a"
// CHECK-NEXT: return
func.func @fused(%m: memref<8xf32>, %o: memref<8xf32>) attributes {tt.kernel, proton.scopes = ["b", "a"]} {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%m : memref<8xf32>) outs(%o : memref<8xf32>) {
  ^bb0(%l: f32, %k: f32):
    %t = arith.addf %l, %l : f32 loc("scope:a")
    %u = arith.mulf %t, %t : f32 loc("scope:b")
    linalg.yield %u : f32 loc("scope:a")
  } loc("scope:a")
  return
}

// CHECK-LABEL: func.func @fused_inside_of_a_scope(
// CHECK: phase = "start", scope = "a"}
// CHECK-NEXT: "proton.record"() {{.*}}members = ["a/x", "a/y"], {{.*}}phase = "start", scope = "a/x + y"}
// CHECK-NEXT: memref.store
// CHECK-NEXT: phase = "end", scope = "a/x + y"
// CHECK-NEXT: phase = "end", scope = "a"
func.func @fused_inside_of_a_scope(%m: memref<8xf32>, %x: f32) attributes {tt.kernel, proton.scopes = ["a", "a/x", "a/y"]} {
  %c0 = arith.constant 0 : index
  memref.store %x, %m[%c0] : memref<8xf32> loc(fused["scope:a/y", "scope:a/x"])
  return
}

// A call's location is the scope of the callee, or else that of the call.

// CHECK-LABEL: func.func @through_calls(
// CHECK: scope = "in"
// CHECK-NEXT: memref.store
// CHECK: scope = "out"
// CHECK-NEXT: memref.store
func.func @through_calls(%m: memref<8xf32>, %x: f32) attributes {tt.kernel, proton.scopes = ["in", "out"]} {
  %c0 = arith.constant 0 : index
  memref.store %x, %m[%c0] : memref<8xf32> loc(callsite("scope:in"("f.py":1:1) at "scope:out"("f.py":9:1)))
  memref.store %x, %m[%c0] : memref<8xf32> loc(callsite("f.py":1:1 at "scope:out"("f.py":9:1)))
  return
}

// A loop that is of no scope has the records inside, one of a scope has them outside.

// CHECK-LABEL: func.func @loops(
// CHECK: scf.for
// CHECK-NEXT: phase = "start", scope = "a"
// CHECK-NEXT: memref.store
// CHECK-NEXT: phase = "end", scope = "a"
// CHECK-NEXT: }
// CHECK-NEXT: phase = "start", scope = "b"
// CHECK-NEXT: scf.for
// CHECK-NEXT: memref.store
// CHECK-NEXT: phase = "start", scope = "b/c"
// CHECK-NEXT: memref.store
// CHECK-NEXT: phase = "end", scope = "b/c"
// CHECK-NEXT: }
// CHECK-NEXT: phase = "end", scope = "b"
// CHECK-NEXT: return
func.func @loops(%m: memref<8xf32>, %x: f32, %n: index) attributes {tt.kernel, proton.scopes = ["a", "b", "b/c"]} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    memref.store %x, %m[%i] : memref<8xf32> loc("scope:a")
  }
  scf.for %i = %c0 to %n step %c1 {
    memref.store %x, %m[%i] : memref<8xf32> loc("scope:b")
    memref.store %x, %m[%i] : memref<8xf32> loc("scope:b/c")
  } loc("scope:b")
  return
}

// A scope whose work is gone has no record.

// CHECK-LABEL: func.func @optimized_out(
// CHECK-NOT: "proton.record"
// CHECK: return
func.func @optimized_out(%x: f32) attributes {tt.kernel, proton.scopes = ["a"]} {
  %y = arith.addf %x, %x : f32 loc("scope:a")
  return
}

// A scalar's initialisation goes with the run behind it, its load with the run before it.

// CHECK-LABEL: func.func @glue_of_scalars(
// CHECK: phase = "start", scope = "a"
// CHECK-NEXT: memref.store {{.*}} memref<f32>
// CHECK-NEXT: memref.store {{.*}} memref<8xf32>
// CHECK-NEXT: memref.load {{.*}} memref<f32>
// CHECK-NEXT: phase = "end", scope = "a"
// CHECK-NEXT: phase = "start", scope = "b"
// CHECK-NEXT: memref.store {{.*}} memref<f32>
// CHECK-NEXT: memref.store {{.*}} memref<8xf32>
// CHECK-NEXT: phase = "end", scope = "b"
// CHECK-NEXT: memref.load
// CHECK-NEXT: return
func.func @glue_of_scalars(%m: memref<8xf32>, %s: memref<f32>, %x: f32) attributes {tt.kernel, proton.scopes = ["a", "b", "c"]} {
  %c0 = arith.constant 0 : index
  memref.store %x, %s[] : memref<f32> loc("scope:a")
  memref.store %x, %m[%c0] : memref<8xf32> loc("scope:a")
  %y = memref.load %s[] : memref<f32> loc("scope:a")
  memref.store %x, %s[] : memref<f32> loc("scope:b")
  memref.store %x, %m[%c0] : memref<8xf32> loc("scope:b")
  %z = memref.load %s[] : memref<f32> loc("scope:c")
  return
}

// The choice of a view goes with the run behind it, the write-back of a cut block with the one
// before it; there is no record inside of them.

// CHECK-LABEL: func.func @glue_of_views(
// CHECK: phase = "start", scope = "a"
// CHECK-NEXT: scf.if
// CHECK-NOT: proton.record
// CHECK: } else {
// CHECK-NOT: proton.record
// CHECK: linalg.generic
// CHECK-NOT: proton.record
// CHECK: scf.if
// CHECK-NEXT: } else {
// CHECK-NEXT: memref.store
// CHECK-NEXT: }
// CHECK-NEXT: phase = "end", scope = "a"
func.func @glue_of_views(%m: memref<8xf32>, %o: memref<8xf32>, %x: f32, %c: i1) attributes {tt.kernel, proton.scopes = ["a"]} {
  %c0 = arith.constant 0 : index
  %v = scf.if %c -> (memref<8xf32>) {
    scf.yield %m : memref<8xf32>
  } else {
    %b = memref.alloc() : memref<8xf32>
    memref.store %x, %b[%c0] : memref<8xf32> loc("scope:a")
    scf.yield %b : memref<8xf32>
  } loc("scope:a")
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%v : memref<8xf32>) outs(%o : memref<8xf32>) {
  ^bb0(%l: f32, %k: f32):
    %t = arith.addf %l, %l : f32 loc("scope:a")
    linalg.yield %t : f32 loc("scope:a")
  } loc("scope:a")
  scf.if %c {
  } else {
    memref.store %x, %o[%c0] : memref<8xf32> loc("scope:a")
  } loc("scope:a")
  return
}

// A view that no neighbour takes is a run of its own: reading a cut block takes time. The work
// that reads it in place is of both scopes.

// CHECK-LABEL: func.func @a_view_of_its_own(
// CHECK: phase = "start", scope = "load"
// CHECK-NEXT: scf.if
// CHECK: phase = "end", scope = "load"
// CHECK-NEXT: memref.store {{.*}} memref<8xf32>
// CHECK-NEXT: phase = "start", scope = "load + add"
// CHECK-NEXT: linalg.generic
// CHECK: phase = "end", scope = "load + add"
func.func @a_view_of_its_own(%m: memref<8xf32>, %o: memref<8xf32>, %x: f32, %c: i1) attributes {tt.kernel, proton.scopes = ["load", "add"]} {
  %c0 = arith.constant 0 : index
  %v = scf.if %c -> (memref<8xf32>) {
    scf.yield %m : memref<8xf32>
  } else {
    %b = memref.alloc() : memref<8xf32>
    memref.store %x, %b[%c0] : memref<8xf32> loc("scope:load")
    scf.yield %b : memref<8xf32>
  } loc("scope:load")
  memref.store %x, %o[%c0] : memref<8xf32>
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%v : memref<8xf32>) outs(%o : memref<8xf32>) {
  ^bb0(%l: f32, %k: f32):
    %t = arith.addf %l, %l : f32 loc("scope:add")
    linalg.yield %t : f32 loc("scope:add")
  } loc("scope:add")
  return
}

// Payload comes from the record that the front end left, if its values are there before the
// work; then that record goes.

// CHECK-LABEL: func.func @payload(
// CHECK-SAME: %[[N:[a-z0-9]+]]: i64, %[[K:[a-z0-9]+]]: i64)
// CHECK-NEXT: arith.constant
// CHECK-NEXT: "proton.record"(%[[N]]) {kinds = ["int"], members = ["a"], names = ["n"], operandSegmentSizes = array<i32: 1, 0>, phase = "start", scope = "a"}
// CHECK-NEXT: memref.store
// CHECK-NEXT: phase = "end", scope = "a"
// CHECK-NEXT: "proton.record"() {{.*}}phase = "start", scope = "late"
// CHECK-NEXT: memref.store
// CHECK-NEXT: phase = "end", scope = "late"
// CHECK-NEXT: "proton.mark"() {{.*}}mark = "here"
// CHECK-NEXT: return
func.func @payload(%m: memref<8xf32>, %x: f32, %n: i64, %k: i64) attributes {tt.kernel, proton.scopes = ["a", "late"]} {
  %c0 = arith.constant 0 : index
  "proton.record"(%n) {scope = "a", phase = "start", names = ["n"], kinds = ["int"], operandSegmentSizes = array<i32: 1, 0>} : (i64) -> ()
  memref.store %x, %m[%c0] : memref<8xf32> loc("scope:a")
  memref.store %x, %m[%c0] : memref<8xf32> loc("scope:late")
  "proton.record"(%k) {scope = "late", phase = "start", names = ["k"], kinds = ["int"], operandSegmentSizes = array<i32: 1, 0>} : (i64) -> ()
  "proton.mark"() {mark = "here", names = [], kinds = [], operandSegmentSizes = array<i32: 0, 0>} : () -> ()
  return
}

// The payload of each member of a fused slice, in the same order.

// CHECK-LABEL: func.func @payload_of_a_fused_slice(
// CHECK-SAME: %[[N:[a-z0-9]+]]: i64, %[[K:[a-z0-9]+]]: i64)
// CHECK: "proton.record"(%[[K]], %[[N]]) {kinds = ["int", "int"], members = ["a", "b"], names = ["k", "n"], operandSegmentSizes = array<i32: 2, 0>, phase = "start", scope = "a + b"}
func.func @payload_of_a_fused_slice(%m: memref<8xf32>, %x: f32, %n: i64, %k: i64) attributes {tt.kernel, proton.scopes = ["a", "b"]} {
  %c0 = arith.constant 0 : index
  "proton.record"(%n) {scope = "b", phase = "start", names = ["n"], kinds = ["int"], operandSegmentSizes = array<i32: 1, 0>} : (i64) -> ()
  "proton.record"(%k) {scope = "a", phase = "start", names = ["k"], kinds = ["int"], operandSegmentSizes = array<i32: 1, 0>} : (i64) -> ()
  memref.store %x, %m[%c0] : memref<8xf32> loc(fused["scope:b", "scope:a"])
  return
}

// Payload of a loop's body is found from inside of the loop's loops; the last one before counts.

// CHECK-LABEL: func.func @payload_in_a_loop(
// CHECK-SAME: %[[N:[a-z0-9]+]]: i64, %[[K:[a-z0-9]+]]: i64)
// CHECK: scf.for
// CHECK-NEXT: scf.for
// CHECK-NEXT: "proton.record"(%[[K]]) {{.*}}phase = "start", scope = "a"
// CHECK-NEXT: memref.store
func.func @payload_in_a_loop(%m: memref<8xf32>, %x: f32, %e: index, %n: i64, %k: i64) attributes {tt.kernel, proton.scopes = ["a"]} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %e step %c1 {
    "proton.record"(%n) {scope = "a", phase = "start", names = ["n"], kinds = ["int"], operandSegmentSizes = array<i32: 1, 0>} : (i64) -> ()
    "proton.record"(%k) {scope = "a", phase = "start", names = ["k"], kinds = ["int"], operandSegmentSizes = array<i32: 1, 0>} : (i64) -> ()
    scf.for %j = %c0 to %e step %c1 {
      memref.store %x, %m[%j] : memref<8xf32> loc("scope:a")
    }
  }
  return
}

// CHECK-LABEL: func.func @no_scopes(
// CHECK-NOT: proton.record
// CHECK: return
func.func @no_scopes(%m: memref<8xf32>, %x: f32) attributes {tt.kernel, proton.scopes = []} {
  %c0 = arith.constant 0 : index
  memref.store %x, %m[%c0] : memref<8xf32> loc("scope:a")
  return
}

// A scope's condition stands at the end of its run; a scope that is entered again begins another.

// CHECK-LABEL: func.func @conditions(
// CHECK-SAME: %{{.*}}: memref<8xf32>, %{{.*}}: f32, %[[C:.*]]: i1, %[[D:.*]]: i1)
// CHECK: "proton.record"() {{.*}}phase = "start", scope = "a"
// CHECK-NEXT: memref.store
// CHECK-NEXT: memref.store
// CHECK-NEXT: "proton.record"(%[[C]]) {{.*}}array<i32: 0, 1>, phase = "end", scope = "a"
// CHECK-NEXT: "proton.record"() {{.*}}phase = "start", scope = "a"
// CHECK-NEXT: memref.store
// CHECK-NEXT: "proton.record"(%[[D]]) {{.*}}array<i32: 0, 1>, phase = "end", scope = "a"
// CHECK-NEXT: "proton.record"() {{.*}}phase = "start", scope = "a"
// CHECK-NEXT: memref.store
// CHECK-NEXT: "proton.record"() {{.*}}array<i32: 0, 0>, phase = "end", scope = "a"
// CHECK-NEXT: return
func.func @conditions(%m: memref<8xf32>, %x: f32, %c: i1, %d: i1) attributes {tt.kernel, proton.scopes = ["a"]} {
  %c0 = arith.constant 0 : index
  "proton.record"(%c) {scope = "a", phase = "start", names = [], kinds = [], operandSegmentSizes = array<i32: 0, 1>} : (i1) -> ()
  memref.store %x, %m[%c0] : memref<8xf32> loc("scope:a")
  memref.store %x, %m[%c0] : memref<8xf32> loc("scope:a")
  "proton.record"(%d) {scope = "a", phase = "start", names = [], kinds = [], operandSegmentSizes = array<i32: 0, 1>} : (i1) -> ()
  memref.store %x, %m[%c0] : memref<8xf32> loc("scope:a")
  "proton.record"() {scope = "a", phase = "start", names = [], kinds = [], operandSegmentSizes = array<i32: 0, 0>} : () -> ()
  memref.store %x, %m[%c0] : memref<8xf32> loc("scope:a")
  return
}

// Inside a scope without one: its own slice is not cut.

// CHECK-LABEL: func.func @conditions_inside(
// CHECK-SAME: %[[C:[a-z0-9]*]]: i1, %[[D:[a-z0-9]*]]: i1)
// CHECK: "proton.record"() {{.*}}phase = "start", scope = "a"
// CHECK-NEXT: "proton.record"() {{.*}}phase = "start", scope = "a/b"
// CHECK-NEXT: memref.store
// CHECK-NEXT: "proton.record"(%[[C]]) {{.*}}phase = "end", scope = "a/b"
// CHECK-NEXT: "proton.record"() {{.*}}phase = "start", scope = "a/b"
// CHECK-NEXT: memref.store
// CHECK-NEXT: "proton.record"(%[[D]]) {{.*}}phase = "end", scope = "a/b"
// CHECK-NEXT: "proton.record"() {{.*}}phase = "end", scope = "a"
// CHECK-NEXT: return
func.func @conditions_inside(%m: memref<8xf32>, %x: f32, %c: i1, %d: i1) attributes {tt.kernel, proton.scopes = ["a", "a/b"]} {
  %c0 = arith.constant 0 : index
  "proton.record"(%c) {scope = "a/b", phase = "start", names = [], kinds = [], operandSegmentSizes = array<i32: 0, 1>} : (i1) -> ()
  memref.store %x, %m[%c0] : memref<8xf32> loc("scope:a/b")
  "proton.record"(%d) {scope = "a/b", phase = "start", names = [], kinds = [], operandSegmentSizes = array<i32: 0, 1>} : (i1) -> ()
  memref.store %x, %m[%c0] : memref<8xf32> loc("scope:a/b")
  return
}

// Work of several scopes is kept where that of any is; one without a condition always is. The
// second of two `a` that stand before one run has not its condition alone.

// CHECK-LABEL: func.func @conditions_of_fused_work(
// CHECK-SAME: %[[C:[a-z0-9]*]]: i1, %[[D:[a-z0-9]*]]: i1, %[[E:[a-z0-9]*]]: i1)
// CHECK: memref.store
// CHECK-NEXT: %[[CD:.*]] = arith.ori %[[C]], %[[D]] : i1
// CHECK-NEXT: %[[ANY:.*]] = arith.ori %[[CD]], %[[E]] : i1
// CHECK-NEXT: "proton.record"(%[[ANY]]) {{.*}}phase = "end", scope = "a + b"
// CHECK: memref.store
// CHECK-NEXT: "proton.record"() {{.*}}array<i32: 0, 0>, phase = "end", scope = "b + c"
// CHECK-NEXT: return
func.func @conditions_of_fused_work(%m: memref<8xf32>, %x: f32, %c: i1, %d: i1, %e: i1) attributes {tt.kernel, proton.scopes = ["a", "b", "c"]} {
  %c0 = arith.constant 0 : index
  "proton.record"(%c) {scope = "a", phase = "start", names = [], kinds = [], operandSegmentSizes = array<i32: 0, 1>} : (i1) -> ()
  "proton.record"(%d) {scope = "a", phase = "start", names = [], kinds = [], operandSegmentSizes = array<i32: 0, 1>} : (i1) -> ()
  "proton.record"(%e) {scope = "b", phase = "start", names = [], kinds = [], operandSegmentSizes = array<i32: 0, 1>} : (i1) -> ()
  memref.store %x, %m[%c0] : memref<8xf32> loc(fused["scope:a", "scope:b"])
  "proton.record"(%c) {scope = "b", phase = "start", names = [], kinds = [], operandSegmentSizes = array<i32: 0, 1>} : (i1) -> ()
  memref.store %x, %m[%c0] : memref<8xf32> loc(fused["scope:b", "scope:c"])
  return
}

// Where the work is not in the block of the condition nor in one around it, it is kept.

// CHECK-LABEL: func.func @conditions_elsewhere(
// CHECK: memref.store
// CHECK-NEXT: "proton.record"() {{.*}}array<i32: 0, 0>, phase = "end", scope = "a"
// CHECK-NEXT: scf.if
// CHECK-NOT: proton
// CHECK: return
func.func @conditions_elsewhere(%m: memref<8xf32>, %x: f32, %c: i1) attributes {tt.kernel, proton.scopes = ["a"]} {
  %c0 = arith.constant 0 : index
  memref.store %x, %m[%c0] : memref<8xf32> loc("scope:a")
  scf.if %c {
    "proton.record"(%c) {scope = "a", phase = "start", names = [], kinds = [], operandSegmentSizes = array<i32: 0, 1>} : (i1) -> ()
  }
  return
}

// Loops over register tiles are one piece of work: of the shares that they copy and of what they
// read in place, too, and no records stand in them.

// CHECK-LABEL: func.func @tiles(
// CHECK: members = ["share", "load", "dot"]{{.*}} phase = "start", scope = "share + load + dot"
// CHECK-NEXT: scf.for
// CHECK-NOT: proton.record
// CHECK: proton.tile_loop
// CHECK: phase = "end", scope = "share + load + dot"
// CHECK-NOT: proton.record
// CHECK: return
func.func @tiles(%m: memref<16x16xf32>, %o: memref<16x16xf32>) attributes {tt.kernel, proton.scopes = ["share", "load", "dot"]} {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %c16 = arith.constant 16 : index
  %v = memref.cast %m : memref<16x16xf32> to memref<16x16xf32, strided<[?, 1], offset: ?>>
  %w = memref.subview %v[0, 0] [16, 8] [1, 1] : memref<16x16xf32, strided<[?, 1], offset: ?>> to memref<16x8xf32, strided<[?, 1], offset: ?>> loc("scope:load")
  scf.for %j = %c0 to %c16 step %c8 {
    scf.for %i = %c0 to %c16 step %c8 {
      %p = vector.load %o[%i, %j] : memref<16x16xf32>, vector<8xf32> loc("scope:share")
      vector.store %p, %o[%i, %j] : memref<16x16xf32>, vector<8xf32> loc("scope:share")
      %l = vector.load %w[%i, %c0] : memref<16x8xf32, strided<[?, 1], offset: ?>>, vector<8xf32> loc("scope:dot")
      vector.store %l, %o[%i, %j] : memref<16x16xf32>, vector<8xf32> loc("scope:dot")
    } {proton.tile_loop} loc("scope:dot")
  } loc("scope:dot")
  return
}

// What follows a return under a condition is the else of an if: no glue, it has scopes inside.

// CHECK-LABEL: func.func @after_a_return(
// CHECK: scf.if
// CHECK-NEXT: } else {
// CHECK-NEXT: phase = "start", scope = "a"
// CHECK-NEXT: memref.store
// CHECK-NEXT: phase = "end", scope = "a"
// CHECK-NEXT: phase = "start", scope = "b"
// CHECK-NEXT: memref.store
// CHECK-NEXT: phase = "end", scope = "b"
func.func @after_a_return(%m: memref<8xf32>, %x: f32, %c: i1) attributes {tt.kernel, proton.scopes = ["a", "b"]} {
  %c0 = arith.constant 0 : index
  scf.if %c {
  } else {
    memref.store %x, %m[%c0] : memref<8xf32> loc("scope:a")
    memref.store %x, %m[%c0] : memref<8xf32> loc("scope:b")
  }
  return
}
