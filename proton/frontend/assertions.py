"""Assertions in functions of elements: what reductions and scans combine by, `map_elementwise`.

How often such a function runs, and in which thread, is not said, so its region may only compute.
In debug mode a number goes along with the elements: 0 while every assertion held, else which one
failed first. Behind the op each assertion is one of these numbers:

    tt.reduce %x              ->  %sum, %failed = tt.reduce %x, %zeros
      tt.assert %fits, "..."        %number = select %fits, %failed, 1
                                  tt.assert %failed != 1, "..."
"""

from proton.dialect import isa, tt
from proton.dialect.builtin import integer
from proton.dialect.emit import constant
from proton.dialect.mlir import Attribute, Block, Operation, Value, arith, ir, scf
from proton.dialect.regions import If, end_of, yield_values
from proton.dialect.walk import all_ops
from proton.frontend.arithmetic import binary
from proton.language import types as ty
from proton.language.value import tensor

NUMBER = ty.int32


def asserts(block: Block) -> bool:
    """True if there is an assertion in a region's block."""
    return any(_assertions(view.operation) for view in block.operations)


def _assertions(op: Operation) -> list[Operation]:
    return [inner for inner in (op, *all_ops(op)) if isa(inner, tt.AssertOp)]


def first_failed(left: Value, right: Value) -> Value:
    """Of what two elements bring along what their combination starts from."""
    return arith.SelectOp(_is_zero(left), right, left).result


def collected(block: Block, start: Value, messages: list[Attribute]) -> list[Value]:
    """Takes the assertions out of a block, and its end: what that gave, and behind it the number at
    the end, where `start` is the one at the begin. `messages` gets those of the assertions, the
    first one that of number 1.

    Assertions in loops stay: who checks the region refuses them.
    """
    number = start
    for op in [view.operation for view in block.operations]:
        if isa(op, tt.AssertOp):
            messages.append(op.attributes["message"])
            with ir.InsertionPoint(op), op.location:
                number = _checked(op.operands[0], number, len(messages))
            op.erase()
        elif isa(op, scf.IfOp) and _assertions(op):
            number = _through_branches(op, number, messages)
    end = end_of(block)
    values = list(end.operands)
    end.erase()
    return [*values, number]


def assert_all(numbers: tensor, messages: list[Attribute]) -> None:
    """The assertions behind the op, of the numbers that came with its results."""
    for number, message in enumerate(messages, 1):
        tt.AssertOp(binary("!=", numbers, number).handle, message)


def _checked(holds: Value, before: Value, number: int) -> Value:
    """The number behind an assertion: the first one that failed is kept."""
    failed = arith.SelectOp(_is_zero(before), constant(number, before.type), before).result
    return arith.SelectOp(holds, before, failed).result


def _is_zero(number: Value) -> Value:
    return arith.CmpIOp(arith.CmpIPredicate.eq, number, constant(0, number.type)).result


def _through_branches(op: Operation, before: Value, messages: list[Attribute]) -> Value:
    """Replaces an `scf.if` by one that also gives the number; that."""
    old, types = If(op), [result.type for result in op.results]
    with ir.InsertionPoint(op), op.location:
        made = If.create(op.operands[0], [*types, integer(NUMBER.primitive_bitwidth)])
    for region in range(2):
        body = list(op.regions[region].blocks)
        values = collected(body[0], before, messages) if body else [before]
        with ir.InsertionPoint(made.add_block(region)), op.location:
            end = yield_values(values)
        for view in list(body[0].operations) if body else ():
            view.operation.move_before(end)
    for result, new in zip(old.op.results, made.op.results, strict=False):
        result.replace_all_uses_with(new)
    op.erase()
    found: Value = made.op.results[len(types)]
    return found
