"""Runs integer tile IR in numpy and shows every value to a check, as often as it is computed.

Enough of `tt`, `arith`, `scf` and `func` for claims about integers and addresses. Pointers are
their addresses in bytes; numbers are exact.
"""

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from proton.dialect.diagnostics import element_of, shape_of
from proton.dialect.mlir import ir
from proton.dialect.tt import pointee_of

Check = Callable[[Any, np.ndarray], None]


def _quotient(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    result: np.ndarray = np.sign(a) * np.sign(b) * (np.abs(a) // np.abs(b))
    return result


_COMPARE = [operator.eq, operator.ne] + [
    operator.lt,
    operator.le,
    operator.gt,
    operator.ge,
] * 2
_ARITHMETIC: dict[str, Callable[..., Any]] = {
    "addi": operator.add,
    "subi": operator.sub,
    "muli": operator.mul,
    "divsi": _quotient,
    "remsi": lambda a, b: a - b * _quotient(a, b),
    "divui": operator.floordiv,
    "remui": operator.mod,
    "shli": operator.lshift,
    "shrui": operator.rshift,
    "andi": operator.and_,
    "ori": operator.or_,
    "xori": operator.xor,
    "minsi": np.minimum,
    "maxsi": np.maximum,
    "minui": lambda a, b: np.minimum(a.astype(np.uint32), b.astype(np.uint32)).astype(np.int32),
    "maxui": lambda a, b: np.maximum(a.astype(np.uint32), b.astype(np.uint32)).astype(np.int32),
    "extsi": lambda a: a,
    "select": np.where,
}


class TileInterpreter:
    """`check(value, numbers)` sees every value of every function that `run` comes through."""

    def __init__(self, module: Any, check: Check) -> None:
        self.functions = {
            ir.StringAttr(f.operation.attributes["sym_name"]).value: f.operation
            for f in module.body.operations
        }
        self.check = check
        self.values: dict[Any, np.ndarray] = {}

    def run(self, name: str, arguments: list[Any]) -> list[np.ndarray]:
        """Calls a function; its results."""
        block = self.functions[name].regions[0].blocks[0]
        return self._block(block, [np.asarray(a, np.int64) for a in arguments])

    def _set(self, value: Any, numbers: Any) -> None:
        self.values[value] = np.asarray(numbers)
        self.check(value, self.values[value])

    def _block(self, block: Any, arguments: list[np.ndarray]) -> list[np.ndarray]:
        for argument, numbers in zip(block.arguments, arguments, strict=True):
            self._set(argument, numbers)
        for view in block.operations:
            op = view.operation
            operands = [self.values[value] for value in op.operands]
            if op.name in ("func.return", "scf.yield"):
                return operands
            for result, numbers in zip(op.results, self._op(op, operands), strict=True):
                self._set(result, numbers)
        return []

    def _op(self, op: Any, operands: list[np.ndarray]) -> list[Any]:
        dialect, _, name = op.name.partition(".")
        if dialect == "arith" and name in _ARITHMETIC:
            return [_ARITHMETIC[name](*operands)]
        shape = shape_of(op.results[0]) if len(op.results) else ()
        match op.name:
            case "arith.constant":
                value = op.attributes["value"]
                if isinstance(value, ir.DenseElementsAttr):
                    value = value.get_splat_value()
                return [np.full(shape, int(value.value))]
            case "arith.trunci":
                half = 1 << (element_of(op.results[0]).width - 1)
                return [(operands[0] + half) % (2 * half) - half]
            case "arith.extui":
                return [operands[0] % (1 << element_of(op.operands[0]).width)]
            case "arith.cmpi":
                return [_COMPARE[ir.IntegerAttr(op.attributes["predicate"]).value](*operands)]
            case "tt.make_range":
                start = ir.IntegerAttr(op.attributes["start"]).value
                return [np.arange(start, start + shape[0])]
            case "tt.splat" | "tt.broadcast":
                return [np.broadcast_to(operands[0], shape)]
            case "tt.expand_dims" | "tt.reshape":
                return [operands[0].reshape(shape)]
            case "tt.trans":
                return [operands[0].transpose(list(ir.DenseI64ArrayAttr(op.attributes["order"])))]
            case "tt.addptr":
                size = pointee_of(op.operands[0]).width // 8
                return [operands[0] + operands[1] * size]
            case "scf.for":
                return self._for(op, operands)
            case "scf.if":
                return self._block(op.regions[0 if operands[0] else 1].blocks[0], [])
            case "func.call":
                return self.run(ir.FlatSymbolRefAttr(op.attributes["callee"]).value, operands)
        raise NotImplementedError(op.name)

    def _for(self, op: Any, operands: list[np.ndarray]) -> list[np.ndarray]:
        lower, upper, step, *carried = operands
        for number in range(int(lower), int(upper), int(step)):
            carried = self._block(op.regions[0].blocks[0], [np.asarray(number), *carried])
        return carried
