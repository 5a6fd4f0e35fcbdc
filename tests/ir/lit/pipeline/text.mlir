// RUN: proton-opt %s --pipeline='canonicalize,cse' | filecheck %s
// RUN: proton-opt %s --pipeline='func.func(canonicalize{max-iterations=1},cse), symbol-dce' | filecheck %s --check-prefixes=CHECK,SYMBOL
// RUN: not proton-opt %s --pipeline='no-such-pass' 2>&1 | filecheck %s --check-prefix=UNKNOWN
// RUN: not proton-opt %s --pipeline='func.func(cse' 2>&1 | filecheck %s --check-prefix=BROKEN
// RUN: proton-opt %s --debuginfo | filecheck %s --check-prefix=LOCATION
// RUN: proton-opt - -o %t < %s
// RUN: filecheck %s --input-file %t --check-prefix=WRITTEN

// UNKNOWN: pass no-such-pass failed
// UNKNOWN: 'no-such-pass' does not refer to a registered pass
// BROKEN: pass func.func(cse failed

// CHECK-LABEL: func.func @kept
// CHECK-NEXT: "tt.get_program_id"
// CHECK-NOT: "tt.get_program_id"
// WRITTEN-LABEL: func.func @kept
// WRITTEN-COUNT-2: "tt.get_program_id"
// LOCATION: "tt.get_program_id"() {axis = 0 : i32} : () -> i32 loc(
func.func @kept() -> i32 {
  %0 = "tt.get_program_id"() {axis = 0 : i32} : () -> i32
  %1 = "tt.get_program_id"() {axis = 0 : i32} : () -> i32
  %2 = arith.addi %0, %1 : i32
  return %2 : i32
}

// SYMBOL-NOT: func.func private @dead
func.func private @dead() { return }
