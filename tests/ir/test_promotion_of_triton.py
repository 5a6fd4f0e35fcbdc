"""The types in which two operands meet, held against what Triton's own front end makes of them:
`promotion.json`, which `scripts/record_promotion.py` writes."""

import json
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import proton.language as tl
from proton.base.errors import CompilationError
from proton.dialect.context import mlir_context
from proton.dialect.mlir import Operation, Value, func, ir
from proton.dialect.walk import defining_op
from proton.frontend.arithmetic import binary
from proton.frontend.builder import to_ir
from proton.frontend.rules import RULES
from proton.language.value import tensor
from tests.ir.promotion_cases import FUNCTIONS, OPERATORS, chain, type_name

TABLE = json.loads((Path(__file__).parent / "promotion.json").read_text())
CASTS = tuple(
    "arith.ext arith.trunc arith.sitofp arith.uitofp arith.fpto arith.bitcast tt.fp_to_fp".split()
)
RULED = SimpleNamespace(
    **{name: RULES[getattr(tl, name)] for name in (*FUNCTIONS,) if getattr(tl, name) in RULES}
)


@pytest.fixture(autouse=True)
def context() -> Iterator[None]:
    with mlir_context(), ir.Location.unknown(), warnings.catch_warnings():
        yield


def outcome(op: str, left: Any, right: Any) -> str:
    """What the front end makes of a case, as a line of the table."""
    types = [getattr(tl, side) for side in (left, right) if isinstance(side, str)]
    module = ir.Module.create()
    with ir.InsertionPoint(module.body):
        function = func.FuncOp("f", ir.FunctionType.get([to_ir(type_) for type_ in types], []))
        block = function.add_entry_block()
    values = iter(tensor(*pair) for pair in zip(block.arguments, types, strict=True))
    sides = [next(values) if isinstance(side, str) else side for side in (left, right)]
    with ir.InsertionPoint(block):
        try:
            result = FUNCTIONS[op](RULED, *sides) if op in FUNCTIONS else binary(op, *sides)
        except CompilationError:
            return "refused"
    return f"{type_name(tl, result.dtype)} | {_final(list(block.operations)[-1].operation)}"


def _final(op: Operation) -> str:
    name = op.name
    if "predicate" in op.attributes:
        name += f" {ir.IntegerAttr(op.attributes['predicate']).value}"
    return " | ".join([name, *map(_casts, op.operands)])


def _casts(value: Value) -> str:
    found = []
    while (op := defining_op(value)) is not None and op.name.startswith(CASTS):
        found.append((op.name, str(value.type)))
        value = op.operands[0]
    return chain(found, "argument" if op is None else "constant")


@pytest.mark.parametrize("op", [*OPERATORS, *FUNCTIONS])
def test_operands_meet_where_they_do_in_triton(op: str) -> None:
    # Triton's types of arithmetic on one 8-bit format are ours, too; its back ends make no code of
    # it, and it is done in fp16 here.
    def shown(line: str, *sides: Any) -> str:
        formats = {side for side in sides if isinstance(side, str)}
        is_float8 = len(formats) == 1 and "float8" in formats.pop()
        return line.split(" | ")[0] if is_float8 or op == "clamp" else line  # two ops here

    different = [
        f"{left} {op} {right}: {found}, in Triton {line}"
        for line, cases in TABLE[op].items()
        for left, right in cases
        if (found := shown(outcome(op, left, right), left, right)) != shown(line, left, right)
    ]
    assert not different, "\n".join(different)
