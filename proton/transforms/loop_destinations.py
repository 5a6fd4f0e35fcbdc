"""Makes each loop write what it carries into one buffer, so that no iteration allocates.

One-shot bufferization keeps a carried tensor in place when the loop yields a value that is
computed in the carried buffer itself. This pass arranges that: an elementwise result takes the
carried tensor as its destination, anything else is copied into it at the end of the body.
Splat constants become fills, so that no table of equal numbers reaches the object code.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

from proton.dialect.linalg import copy_into, filled
from proton.dialect.mlir import ir
from proton.dialect.walk import all_ops, before, defining_op, replace, users
from proton.passes import Pass, register


@register
@dataclass(frozen=True)
class LoopDestinations(Pass):
    """Gives the tensors that loops carry one buffer each."""

    name: ClassVar[str] = "loop-destinations"

    def run(self, module: Any) -> None:
        for op in all_ops(module):
            if op.name == "arith.constant" and isinstance(op.results[0].type, ir.RankedTensorType):
                _splat_to_fill(op)
        for op in all_ops(module):
            if op.name == "scf.for":
                block = op.regions[0].blocks[0]
                _redirect(block, list(block.arguments)[1:])
            elif op.name == "scf.while":
                block = op.regions[1].blocks[0]
                _redirect(block, list(block.arguments))


def _splat_to_fill(op: Any) -> None:
    attribute = op.attributes["value"]
    if attribute.is_splat:
        with before(op):
            replace(op, [filled(attribute.get_splat_value(), op.results[0].type)])


def _redirect(block: Any, arguments: list[Any]) -> None:
    """Makes the block's yielded tensors end up in its arguments' buffers."""
    terminator = list(block.operations)[-1].operation
    for position, argument in enumerate(arguments):
        if not isinstance(argument.type, ir.RankedTensorType):
            continue
        value = terminator.operands[position]
        if _is_in(value, argument):
            continue
        producer = defining_op(value)
        if _can_take_destination(producer, value, block):
            producer.operands[len(producer.operands) - 1] = argument
        else:
            with before(terminator):
                terminator.operands[position] = copy_into(value, argument)


def _is_in(value: Any, argument: Any) -> bool:
    """Whether a value is computed in the argument's buffer, through destination operands."""
    while value != argument:
        producer = defining_op(value)
        if producer is None or producer.name not in ("linalg.matmul", "linalg.copy"):
            return False
        value = producer.operands[len(producer.operands) - 1]
    return True


def _can_take_destination(producer: Any, value: Any, block: Any) -> bool:
    """Whether an op is a generic of this block that ignores what its destination held."""
    if producer is None or producer.name != "linalg.generic" or producer.block != block:
        return False
    if len(producer.results) != 1 or len(users(value)) != 1:
        return False
    body = producer.regions[0].blocks[0]
    return not any(True for _ in list(body.arguments)[-1].uses)
