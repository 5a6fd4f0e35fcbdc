// RUN: proton-opt --pipeline='convert-proton-to-proton-gpu' %s --verify-diagnostics

func.func @too_much_payload(%n: i64) attributes {tt.kernel} {
  // expected-error@+1 {{a record holds at most 16 payload values, and a has 17}}
  "proton.mark"(%n, %n, %n, %n, %n, %n, %n, %n, %n, %n, %n, %n, %n, %n, %n, %n, %n) {mark = "a", names = ["n", "n", "n", "n", "n", "n", "n", "n", "n", "n", "n", "n", "n", "n", "n", "n", "n"], kinds = ["int", "int", "int", "int", "int", "int", "int", "int", "int", "int", "int", "int", "int", "int", "int", "int", "int"], operandSegmentSizes = array<i32: 17, 0>} : (i64, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64) -> ()
  return
}
