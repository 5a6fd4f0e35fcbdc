"""Makes each loop write what it carries into one buffer, so that no iteration allocates.

One-shot bufferization keeps a carried tensor in place when the loop yields a value that is
computed in the carried buffer itself. This pass arranges that: an elementwise result takes the
carried tensor as its destination, anything else is copied into it at the end of the body.
The analysis takes all that an `scf.if` may give for one buffer. So a branch in a loop copies a
tensor from outside of it, which the next iteration still reads, a tensor of memory that is read
alone, as then nobody could write what is carried, and a tensor by which the buffers
of two carried tensors would be taken for one, which no iteration could then write both of.
Splat constants become fills, so that no table of equal numbers reaches the object code.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from proton.dialect import isa
from proton.dialect.linalg import copy_into, dimension_map, filled, generic
from proton.dialect.mlir import (
    Block,
    Module,
    Operation,
    Value,
    arith,
    bufferization,
    ir,
    linalg,
    scf,
    tensor,
)
from proton.dialect.regions import ForLoop, If, WhileLoop, block_of, end_of, in_loop, loop_around
from proton.dialect.walk import all_ops, before, defining_op, ops_named, parent_of, replace, users
from proton.passes import Pass, register


@register
@dataclass(frozen=True)
class LoopDestinations(Pass):
    """Gives the tensors that loops carry one buffer each."""

    name: ClassVar[str] = "loop-destinations"

    def run(self, module: Module) -> None:
        for op in ops_named(module, arith.SelectOp):
            if isinstance(op.results[0].type, ir.RankedTensorType) and in_loop(op):
                _choose_elements(op)
        found = ops_named(module, arith.ConstantOp, scf.IfOp, scf.ForOp, scf.WhileOp)
        ops = [(op.name, op) for op in found]
        for name, op in ops:
            if name == arith.ConstantOp.OPERATION_NAME and isinstance(
                op.results[0].type, ir.RankedTensorType
            ):
                _splat_to_fill(op)
        branching = [op for name, op in ops if name == scf.IfOp.OPERATION_NAME]
        for op in branching:
            _copy_what_is_from_outside(op)
        if branching:
            _keep_carried_apart(module)
        for name, op in ops:
            if name == scf.ForOp.OPERATION_NAME:
                loop = ForLoop(op)
                _redirect(loop.body, loop.iter_args)
            elif name == scf.WhileOp.OPERATION_NAME:
                after = WhileLoop(op).after
                _redirect(after, list(after.arguments))


def _splat_to_fill(op: Operation) -> None:
    """A constant stands at the head of its function, and says where it was needed first: filling a
    buffer with it is no work of the scopes there."""
    attribute = op.attributes["value"]
    if attribute.is_splat:
        with ir.InsertionPoint(op), ir.Location.unknown():
            replace(op, [filled(attribute.get_splat_value(), op.results[0].type)])


def _choose_elements(op: Operation) -> None:
    """A choice of one of two tensors, which canonicalization makes of an `scf.if`, lies in the
    buffer of either. Element by element it has one of its own."""
    type_ = op.results[0].type
    rank = len(type_.shape)
    both = ir.AffineMap.get_identity(rank)
    with before(op):
        maps = [dimension_map(rank, []), both, both]
        chosen = generic(
            list(op.operands), maps, [type_], lambda ins, _: [arith.SelectOp(*ins).result]
        )
        replace(op, chosen)


def _copy_what_is_from_outside(op: Operation) -> None:
    """Gives the branches of an `scf.if` in a loop tensors of their own for those from outside."""
    loop = loop_around(op)
    if loop is None:
        return
    blocks = [block_of(op, number) for number in range(len(op.regions))]
    for terminator in [end_of(block) for block in blocks if block is not None]:
        for position, value in enumerate(terminator.operands):
            is_tensor = isinstance(value.type, ir.RankedTensorType)
            if is_tensor and not (_is_inside(value, loop) and _is_writable(value)):
                _yield_a_copy(terminator, position)


def _yield_a_copy(terminator: Operation, position: int) -> None:
    """Yields a copy in place of one of the tensors that a terminator yields."""
    value = terminator.operands[position]
    with before(terminator):
        buffer = tensor.EmptyOp(value.type.shape, value.type.element_type).result
        copy = copy_into(value, buffer)
    assert copy is not None, "the destination is a tensor"
    terminator.operands[position] = copy


def _is_inside(value: Value, loop: Operation) -> bool:
    """True if a value is computed, or carried, in a loop."""
    producer = defining_op(value)
    op = value.owner.owner if producer is None else producer.parent  # of the block that has it
    while op is not None and op.operation != loop:
        op = op.operation.parent
    return op is not None


def _is_writable(value: Value) -> bool:
    """False for a tensor, or a view of it, that was made of memory to be read alone."""
    producer = defining_op(value)
    while producer is not None and producer.name.startswith("tensor.") and len(producer.operands):
        producer = defining_op(producer.operands[0])
    if producer is None or not isa(producer, bufferization.ToTensorOp):
        return True
    return "writable" in producer.attributes


class _Buffers:
    """Sets of tensors that lie in one buffer, as far as the analysis is not free to copy."""

    def __init__(self, module: Module) -> None:
        self._next: dict[Value, Value] = {}  # of its set, for all but one of them
        self._carried: set[Value] = set()
        for op in all_ops(module):
            if isa(op, scf.ForOp):
                self._carry(zip(ForLoop(op).iter_args, op.results, strict=True))
            elif isa(op, scf.WhileOp):
                loop = WhileLoop(op)
                self._carry(zip(loop.after.arguments, loop.passed, op.results, strict=True))
            elif op.name.startswith(("linalg.", "tensor.")):
                self._write(op)

    def _carry(self, groups: Iterable[tuple[Value, ...]]) -> None:
        """Each group is what a loop carries in one place."""
        for argument, *others in groups:
            if isinstance(argument.type, ir.RankedTensorType):
                self._carried.add(self._first(argument))
                for other in others:
                    self._join(argument, other)

    def _write(self, op: Operation) -> None:
        """An op gives the buffers that it writes, or views of those that it takes."""
        given = list(op.operands)[-1:] if op.name.startswith("linalg.") else list(op.operands)
        for result in op.results:
            for value in given:
                producer = defining_op(value)
                if isinstance(value.type, ir.RankedTensorType) and (
                    not isa(producer, tensor.EmptyOp)
                ):
                    self._join(result, value)

    def join_branches(self, op: Operation, position: int) -> list[Operation]:
        """What an `scf.if` gives in one place is in one buffer. Gives the terminators whose value
        is not put there, as another loop's buffer would be one with it."""
        result, apart = op.results[position], []
        for block in If(op).blocks:
            terminator = end_of(block)
            first, other = self._first(result), self._first(terminator.operands[position])
            if first != other and first in self._carried and other in self._carried:
                apart.append(terminator)
            else:
                self._join(first, other)
        return apart

    def _first(self, value: Value) -> Value:
        while value in self._next:
            value = self._next[value]
        return value

    def _join(self, one: Value, other: Value) -> None:
        one, other = self._first(one), self._first(other)
        if one != other:
            self._next[other] = one
            if other in self._carried:
                self._carried.add(one)


def _keep_carried_apart(module: Module) -> None:
    """Copies in branches what would make one buffer of two that loops carry."""
    buffers = _Buffers(module)
    for op in reversed(ops_named(module, scf.IfOp)):  # inner ones first
        for position, result in enumerate(op.results):
            if isinstance(result.type, ir.RankedTensorType):
                for terminator in buffers.join_branches(op, position):
                    _yield_a_copy(terminator, position)


def _redirect(block: Block, arguments: list[Value]) -> None:
    """Makes the block's yielded tensors end up in its arguments' buffers.

    In place where the buffer's old contents are not needed any more; else by copies at the end,
    all of whose sources are safe from each other: `a, b = b, a` goes through a third buffer.
    """
    order = [op.operation for op in block.operations]
    terminator = order[-1]
    pending = []
    for position, argument in enumerate(arguments):
        value = terminator.operands[position]
        if not isinstance(argument.type, ir.RankedTensorType) or value == argument:
            continue
        writer = _writer_in(value, argument)
        if writer is not None and _is_last_to_read(writer, argument, order):
            continue
        producer = defining_op(value)
        if (
            producer is not None
            and _can_take_destination(producer, value, block)
            and _is_last_to_read(producer, argument, order)
        ):
            producer.operands[len(producer.operands) - 1] = argument
        else:
            pending.append(position)
    with before(terminator):
        values = {p: terminator.operands[p] for p in pending}
        for position, value in values.items():
            if len(arguments) > 1 and not _is_new(value):
                buffer = tensor.EmptyOp(value.type.shape, value.type.element_type).result
                values[position] = copy_into(value, buffer)
        for position, value in values.items():
            terminator.operands[position] = copy_into(value, arguments[position])


def _writer_in(value: Value, argument: Value) -> Operation | None:
    """The first op that writes the argument's buffer on the way to a value that is computed
    there, through destination operands; None if the value is elsewhere."""
    producer = None
    while value != argument:
        producer = defining_op(value)
        if not isa(producer, linalg.MatmulOp, linalg.CopyOp):
            return None
        value = producer.operands[len(producer.operands) - 1]
    return producer


def _is_last_to_read(writer: Operation, argument: Value, order: list[Operation]) -> bool:
    """True if nothing but what comes before `writer`, and itself, reads the argument.

    A reader that may keep the buffer under another name (a view, a branch's result, an inner
    loop) counts as reading it to the end.
    """
    if writer not in order or not _reads_where_it_writes(writer, argument):
        return False
    place = order.index(writer)
    for user in users(argument):
        if user == writer:
            continue
        if not user.name.startswith("linalg.") and not isa(user, tensor.ExtractOp):
            return False
        while user not in order:
            user = parent_of(user)
        if order.index(user) >= place:
            return False
    return True


def _is_new(value: Value) -> bool:
    """True if a value has a buffer of its own, or gets one when that is needed."""
    producer = defining_op(value)
    return producer is not None and producer.name.startswith("linalg.")


def _reads_where_it_writes(writer: Operation, argument: Value) -> bool:
    """True if an op reads each element of the argument only to write that very element."""
    inputs = list(writer.operands)[:-1]
    if argument not in inputs:
        return True
    if not isa(writer, linalg.GenericOp):
        return False
    *maps, out_map = writer.attributes["indexing_maps"]
    reads = [m for value, m in zip(inputs, maps, strict=True) if value == argument]
    return all(m == out_map for m in reads)


def _can_take_destination(producer: Operation | None, value: Value, block: Block) -> bool:
    """True if an op is a generic of this block that ignores what its destination held."""
    if not isa(producer, linalg.GenericOp) or producer.block != block:
        return False
    if len(producer.results) != 1 or len(users(value)) != 1:
        return False
    body = producer.regions[0].blocks[0]
    return not any(True for _ in list(body.arguments)[-1].uses)
