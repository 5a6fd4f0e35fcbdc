"""How many turns loops have whose bounds are a known number apart."""

import pytest

from proton.analysis.loop_iterations import iterations_of
from proton.dialect.context import mlir_context
from proton.dialect.mlir import ir
from proton.dialect.walk import ops_named

LOOPS = {
    "%zero to %ten step %one": 10,
    "%one to %ten step %three": 3,
    "%zero to %ten step %three": 4,
    "%ten to %one step %one": 0,
    "%begin to %end step %one": 4,
    "%begin to %behind step %three": 5,
    "%n to %begin step %one": None,
    "%zero to %n step %one": None,
    "%zero to %ten step %n": None,
    "%zero to %ten step %zero": None,
    "%less to %n step %one": 3,
    "%n to %less step %one": 0,
    "%square to %end step %one": None,
}
TEXT = """
func.func @f(%n: i32) {{
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %three = arith.constant 3 : i32
  %four = arith.constant 4 : i32
  %ten = arith.constant 10 : i32
  %begin = arith.muli %n, %four : i32
  %next = arith.addi %one, %n : i32
  %end = arith.muli %four, %next : i32
  %behind = arith.addi %end, %ten : i32
  %less = arith.subi %n, %three : i32
  %square = arith.muli %n, %n : i32
  scf.for %i = {bounds} : i32 {{
  }}
  return
}}
"""


@pytest.mark.parametrize(("bounds", "turns"), LOOPS.items())
def test_iterations(bounds: str, turns: int | None) -> None:
    with mlir_context():
        module = ir.Module.parse(TEXT.format(bounds=bounds))
        (loop,) = ops_named(module, "scf.for")
        assert iterations_of(loop) == turns
