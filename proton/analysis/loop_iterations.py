"""How many iterations a loop has, where its bounds are a known number apart."""

from collections import Counter

from proton.dialect import by_name, isa
from proton.dialect.emit import number_of
from proton.dialect.mlir import Operation, Value, arith
from proton.dialect.regions import ForLoop
from proton.dialect.walk import defining_op

_SIGNS = by_name({arith.AddIOp: 1, arith.SubIOp: -1})  # of the second operand


def iterations_of(loop: Operation) -> int | None:
    """Iterations of an `scf.for` whose bounds are the same sum of values but for a constant, as
    `range(i * 4, (i + 1) * 4)` has, and do not wrap around; None where that is not so."""
    lower, upper, step_value = ForLoop(loop).bounds
    step = number_of(step_value)
    if step is None or step <= 0:
        return None
    terms: Counter[Value | None] = Counter()
    _add(terms, upper, 1)
    _add(terms, lower, -1)
    distance = terms.pop(None, 0)
    return None if any(terms.values()) else max(0, -(-distance // step))


def _add(terms: "Counter[Value | None]", value: Value, factor: int) -> None:
    """Adds a multiple of a value, as one of those that it is the sum of; None stands for 1."""
    number, op = number_of(value), defining_op(value)
    if number is not None:
        terms[None] += factor * number
    elif op is not None and op.name in _SIGNS:
        _add(terms, op.operands[0], factor)
        _add(terms, op.operands[1], factor * _SIGNS[op.name])
    elif isa(op, arith.MulIOp):
        first, second = op.operands
        scale = number_of(second)
        if scale is None:
            first, scale = second, number_of(first)
        if scale is None:
            terms[value] += factor
        else:
            _add(terms, first, factor * scale)
    else:
        terms[value] += factor
