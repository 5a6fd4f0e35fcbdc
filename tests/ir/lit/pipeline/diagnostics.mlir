// RUN: not proton-opt %s --split-input-file > %t.out 2> %t.err
// RUN: filecheck %s --input-file %t.err --check-prefix=ERR
// RUN: filecheck %s --input-file %t.out --check-prefix=OUT
// RUN: not proton-opt %s --split-input-file --verify-diagnostics 2>&1 | filecheck %s --check-prefix=VERIFY
// A piece that fails does not keep the others from being printed; lines are those of the file.

// OUT: func.func @good
// OUT-NOT: func.func @bad
// ERR: diagnostics.mlir:20:8: error: 'tt.get_program_id' axis must lie in [0, 2], got 7
// VERIFY: diagnostics.mlir:14: expected error "no such text" was not seen
// VERIFY: unexpected: {{.*}}diagnostics.mlir:20:8: error: 'tt.get_program_id' axis must lie
func.func @good() {
  // expected-error@+1 {{no such text}}
  %0 = "tt.get_program_id"() {axis = 0 : i32} : () -> i32
  return
}

// -----
func.func @bad() {
  %0 = "tt.get_program_id"() {axis = 7 : i32} : () -> i32
  return
}
