"""Runs the integer scalars of a kernel's IR in Python: what it stores, in order.

Enough of `arith`, `scf` and `tt` to tell whether control flow means what the source says, with
no back end. Arithmetic is exact: the kernels keep their numbers small.
"""

import operator
from collections.abc import Callable
from typing import Any

from proton.dialect.mlir import ir

_COMPARE = (
    operator.eq,
    operator.ne,
    operator.lt,
    operator.le,
    operator.gt,
    operator.ge,
    operator.lt,
    operator.le,
    operator.gt,
    operator.ge,
)
_ARITHMETIC: dict[str, Callable[..., Any]] = {
    "arith.addi": operator.add,
    "arith.subi": operator.sub,
    "arith.muli": operator.mul,
    "arith.andi": operator.and_,
    "arith.ori": operator.or_,
    "arith.xori": lambda a, b: (a ^ b) & 1 if isinstance(a, bool) else a ^ b,
    "arith.divsi": lambda a, b: int(a / b),  # towards zero; the numbers are small
    "arith.remsi": lambda a, b: a - b * int(a / b),
    "arith.maxsi": max,
    "arith.minsi": min,
    "arith.ceildivsi": lambda a, b: -(-a // b),
    "arith.extsi": lambda a: a,
    "arith.extui": int,
    "arith.trunci": lambda a: a,
    "arith.select": lambda c, a, b: a if c else b,
}


def stored_values(module: Any, arguments: list[int]) -> list[int]:
    """The values that the kernel stores when its integer parameters are `arguments`.

    Pointer parameters come first and are given no argument.
    """
    function = module.body.operations[0]
    block = function.regions[0].blocks[0]
    pointers = len(block.arguments) - len(arguments)
    values = dict(zip(block.arguments, [0] * pointers + arguments, strict=True))
    interpreter = ScalarInterpreter(values)
    interpreter.run(block)
    return interpreter.stored


class ScalarInterpreter:
    """The values of a kernel as it runs, and what it has stored."""

    def __init__(self, values: dict[Any, Any]) -> None:
        self.values, self.stored = values, []

    def run(self, block: Any, arguments: tuple[Any, ...] = ()) -> list[Any]:
        """Runs a block; the operands of its terminator."""
        self.values.update(zip(block.arguments, arguments, strict=False))
        for op in block.operations:
            operands = [self.values[value] for value in op.operands]
            name = op.operation.name
            if name in ("scf.yield", "scf.condition", "func.return"):
                return operands
            results = self.step(name, op.operation, operands)
            self.values.update(zip(op.results, results, strict=True))
        return []

    def step(self, name: str, op: Any, operands: list[Any]) -> list[Any]:
        """The results of one op."""
        match name:
            case "arith.constant":
                return [ir.IntegerAttr(op.attributes["value"]).value]
            case "arith.cmpi":
                predicate = ir.IntegerAttr(op.attributes["predicate"]).value
                return [_COMPARE[predicate](*operands)]
            case "tt.store":
                self.stored.append(int(operands[1]))
                return []
            case "scf.if":
                region = op.regions[0 if operands[0] else 1]
                return self.run(region.blocks[0]) if list(region.blocks) else []
            case "scf.for":
                return self.loop(op, *operands)
            case "scf.while":
                return self.while_loop(op, operands)
            case _:
                return [_ARITHMETIC[name](*operands)]

    def loop(self, op: Any, start: int, stop: int, step: int, *carried: Any) -> list[Any]:
        values = list(carried)
        for index in range(start, stop, step):
            values = self.run(op.regions[0].blocks[0], (index, *values))
        return values

    def while_loop(self, op: Any, carried: list[Any]) -> list[Any]:
        while True:
            goes_on, *carried = self.run(op.regions[0].blocks[0], tuple(carried))
            if not goes_on:
                return carried
            carried = self.run(op.regions[1].blocks[0], tuple(carried))
