// RUN: proton-opt --pipeline='name-called-scopes' --debuginfo %s | filecheck %s
// RUN: proton-opt --pipeline='name-called-scopes{auto=true}' %s | filecheck %s --check-prefix=AUTO

// Each scope that a function is called in has a copy of it, and of what it calls.

// CHECK-LABEL: func.func @kernel(
// CHECK: call @leaf(%{{.*}}) {{.*}}
// CHECK: call @[[MIDDLE:middle__in.*]](%
// CHECK: call @[[MIDDLE]](%
// CHECK: call @[[LEAF:leaf__in.*]](%
// CHECK: call @silent(
// AUTO-LABEL: func.func @kernel(
// AUTO: call @silent__
func.func @kernel(%x: f32) attributes {tt.kernel} {
  func.call @leaf(%x) : (f32) -> () loc("a.py":1:1)
  func.call @middle(%x) : (f32) -> () loc("scope:outer"("a.py":2:1))
  func.call @middle(%x) : (f32) -> () loc("scope:outer"("a.py":3:1))
  func.call @leaf(%x) : (f32) -> () loc("scope:outer"("a.py":4:1))
  func.call @silent(%x) : (f32) -> () loc("scope:outer"("a.py":5:1))
  return
}

// The scopes of a copy are inside of those around it, and what is in none is in those.

// CHECK: func.func private @[[MIDDLE]](
// CHECK-SAME: proton.scopes_around = "outer"
// CHECK: call @[[INNER:leaf__in.*]](%{{.*}}) {{.*}} loc(#[[PLACE:.*]])
// CHECK: arith.negf %{{.*}} loc(#[[PLAIN:.*]])
func.func private @middle(%x: f32) attributes {tt.noinline = true} {
  func.call @leaf(%x) : (f32) -> () loc("scope:inner"("a.py":9:1))
  %y = arith.negf %x : f32 loc("a.py":10:1)
  return
}

// CHECK: func.func private @[[INNER]](
// CHECK-SAME: proton.scopes_around = "outer/inner"
// CHECK: "proton.record"(){{.*}} scope = "outer/inner/own"
// CHECK: "proton.mark"(){{.*}} mark = "outer/inner/here"
// CHECK: func.func private @[[LEAF]](
// CHECK-SAME: proton.scopes_around = "outer"
// CHECK: "proton.record"(){{.*}} scope = "outer/own"
// CHECK: func.func private @leaf(
// CHECK-NOT: proton.scopes_around
// CHECK: "proton.record"(){{.*}} scope = "own"
func.func private @leaf(%x: f32) attributes {tt.noinline = true} {
  "proton.record"() {phase = "start", scope = "own", names = [], kinds = [], operandSegmentSizes = array<i32: 0, 0>} : () -> ()
  "proton.mark"() {mark = "here", names = [], kinds = [], operandSegmentSizes = array<i32: 0, 0>} : () -> ()
  "proton.record"() {phase = "end", scope = "own", names = [], kinds = [], operandSegmentSizes = array<i32: 0, 0>} : () -> ()
  return
}

// One that records nothing has no copies.

// CHECK: func.func private @silent(
// CHECK-DAG: #[[PLACE]] = loc("scope:outer/inner"(
// CHECK-DAG: #[[PLAIN]] = loc("scope:outer"(
func.func private @silent(%x: f32) attributes {tt.noinline = true} {
  return
}
