// RUN: not proton-opt --pipeline='convert-proton-to-proton-gpu' %s 2>&1 | filecheck %s

// CHECK: error: a record holds at most 16 payload values, and a has 17
func.func @too_much_payload(%n: i64) attributes {tt.kernel} {
  "proton.mark"(%n, %n, %n, %n, %n, %n, %n, %n, %n, %n, %n, %n, %n, %n, %n, %n, %n) {mark = "a", names = ["n", "n", "n", "n", "n", "n", "n", "n", "n", "n", "n", "n", "n", "n", "n", "n", "n"], kinds = ["int", "int", "int", "int", "int", "int", "int", "int", "int", "int", "int", "int", "int", "int", "int", "int", "int"], operandSegmentSizes = array<i32: 17>} : (i64, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64) -> ()
  return
}
