"""Emitting the small things every lowering needs: constants, branches, loops.

Each function emits at the current insertion point and location.
"""

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import overload

from proton.dialect import Kind, isa, name_of
from proton.dialect.builtin import integer, is_pointer, string_attr
from proton.dialect.mlir import Attribute, Block, CmpIPredicate, Operation, Type, Value, ir
from proton.dialect.regions import ForLoop, If, yield_values
from proton.dialect.upstream import arith, func, llvm
from proton.dialect.walk import defining_op


def create(kind: Kind, type_: Type, /, *operands: Value, **attributes: Attribute) -> Value:
    """An op with one result."""
    return ir.Operation.create(
        name_of(kind), results=[type_], operands=list(operands), attributes=attributes
    ).result


def intrinsic(name: str, type_: Type, *operands: Value) -> Value:
    """A call of an intrinsic of LLVM that MLIR has no op for; of an overloaded one the types of
    operands and result say which."""
    return llvm.CallIntrinsicOp(type_, name, operands, [], []).operation.result


def remade(
    op: Operation, types: Iterable[Type], operands: Iterable[Value], **changed: Attribute
) -> Operation:
    """The same op of other operands, with results of `types`; its regions are still to be moved."""
    attributes = {name: op.attributes[name] for name in op.attributes} | changed
    return ir.Operation.create(
        op.name, list(types), list(operands), attributes, regions=len(op.regions)
    )


def again(op: Operation, type_: Type, operands: Sequence[Value]) -> Value:
    """Right behind an op the same of other operands, whose result has another type: that result."""
    changed = {}
    if isa(op, arith.ConstantOp):
        splat = ir.DenseElementsAttr(op.attributes["value"]).get_splat_value()
        changed["value"] = ir.DenseElementsAttr.get_splat(type_, splat)
    with ir.InsertionPoint.after(op), op.location:
        return remade(op, [type_], operands, **changed).result


def effect(kind: Kind, /, *operands: Value, **attributes: Attribute) -> None:
    """An op without results."""
    ir.Operation.create(name_of(kind), operands=list(operands), attributes=attributes)


def constant(value: float | Attribute, type_: Type) -> Value:
    """A constant: a number of a scalar type, or an attribute with the elements of a tensor."""
    return arith.ConstantOp(type_, value).result


def index_constant(value: int) -> Value:
    """A constant of `index`."""
    return constant(value, ir.IndexType.get())


def _number_attr(type_: Type, value: float | int) -> Attribute:
    if isinstance(type_, ir.FloatType):
        return ir.FloatAttr.get(type_, value)
    assert isinstance(value, int), f"{value} of type {type_}"
    return ir.IntegerAttr.get(type_, value)


def filled(type_: Type, value: float | int) -> Value:
    """A constant: a number, or a tensor or vector in which every element is one."""
    is_shaped = isinstance(type_, ir.ShapedType)
    attribute = _number_attr(type_.element_type if is_shaped else type_, value)
    if is_shaped:
        attribute = ir.DenseElementsAttr.get_splat(type_, attribute)
    return create(arith.ConstantOp, type_, value=attribute)


def number_of(value: Value) -> int | None:
    """The number that an integer constant is; None for the rest."""
    op = defining_op(value)
    if not isa(op, arith.ConstantOp):
        return None
    return int(ir.IntegerAttr(op.attributes["value"]).value)


def predicate_of(op: Operation) -> CmpIPredicate:
    """How an `arith.cmpi` compares."""
    return CmpIPredicate(ir.IntegerAttr(op.attributes["predicate"]).value)


def is_zeros(value: Value) -> bool:
    """True if a tensor, or a thread's vector, is a constant filled with zero."""
    op = defining_op(value)
    if not isa(op, arith.ConstantOp, llvm.ConstantOp):
        return False
    attribute = op.attributes["value"]
    if not isinstance(attribute, ir.DenseElementsAttr) or not attribute.is_splat:
        return False
    return bool(attribute.get_splat_value().value == 0)


def zero_of(type_: Type) -> Value:
    """The zero of a scalar type; null for a pointer."""
    if is_pointer(type_):
        return create(llvm.ZeroOp, type_)
    return constant(0.0 if isinstance(type_, ir.FloatType) else 0, type_)


def emit_if(
    condition: Value,
    types: list[Type],
    then: Callable[[], list[Value]],
    other: Callable[[], list[Value]],
) -> list[Value]:
    """An `scf.if` whose branches yield values of `types`."""
    made = If.create(condition, types)
    for number, branch in enumerate((then, other)):
        with ir.InsertionPoint(made.add_block(number)):
            yield_values(branch())
    return list(made.op.results)


def emit_when(condition: Value, then: Callable[[], object]) -> None:
    """An `scf.if` without results and without another branch."""
    made = If.create(condition)
    with ir.InsertionPoint(made.add_block(0)):
        then()
        yield_values()


def cloned(op: Operation, operands: Sequence[Value]) -> Operation:
    """A copy of an op that takes other operands."""
    copy = op.clone().operation
    for position, operand in enumerate(operands):
        copy.operands[position] = operand
    return copy


@contextlib.contextmanager
def loop(lower: Value, upper: Value, step: Value) -> Iterator[Value]:
    """An `scf.for` that carries nothing; gives its variable, and emits into its body inside."""
    made = ForLoop.create((lower, upper, step))
    with ir.InsertionPoint(made.body):
        yield made.induction_var
        yield_values()


def index_loop(
    upper: int | Value, step: int = 1, *, start: int | Value = 0
) -> contextlib.AbstractContextManager[Value]:
    """A `loop` from `start` over `index`; that and `upper` are values or numbers."""
    limit, lower = (
        index_constant(bound) if isinstance(bound, int) else bound for bound in (upper, start)
    )
    return loop(lower, limit, index_constant(step))


def for_each_element(shape: tuple[int, ...], body: Callable[[list[Value]], object]) -> None:
    """A nest of loops over `shape`; `body` emits what is inside, given the indices."""

    def nest(indices: list[Value]) -> None:
        if len(indices) == len(shape):
            body(indices)
            return
        with index_loop(shape[len(indices)]) as variable:
            nest([*indices, variable])

    nest([])


def iteration_number(loop: Operation, bits: int) -> Value:
    """Inside an `scf.for`: the number of its iteration, counted from 0, in so many bits."""
    view = ForLoop(loop)
    lower, _, step = view.bounds
    return number_of_iteration(view.induction_var, lower, step, bits)


def iteration_count(loop: Operation, bits: int) -> Value:
    """How many iterations an `scf.for` has whose bounds are less than a step out of order, in so
    many bits."""
    lower, upper, step = ForLoop(loop).bounds
    end = arith.AddIOp(upper, arith.SubIOp(step, constant(1, step.type)).result).result
    return number_of_iteration(end, lower, step, bits)


def number_of_iteration(index: Value, lower: Value, step: Value, bits: int) -> Value:
    """The number of the iteration with this index of a loop, in so many bits."""
    number = arith.DivSIOp(arith.SubIOp(index, lower).result, step).result
    type_ = integer(bits)
    if isinstance(number.type, ir.IndexType):
        return arith.IndexCastOp(type_, number).result
    if number.type.width > bits:
        return arith.TruncIOp(type_, number).result
    return number if number.type == type_ else arith.ExtSIOp(type_, number).result


def is_multiple(number: Value, factor: int) -> Value:
    """Whether an i32, which is not negative, is a multiple of a factor, as i1."""
    rest = arith.RemUIOp(number, constant(factor, integer(32))).result
    return arith.CmpIOp(arith.CmpIPredicate.eq, rest, constant(0, integer(32))).result


def module_block() -> Block:
    """The body of the module around the current insertion point."""
    op = ir.InsertionPoint.current.block.owner.operation
    while op.parent is not None:
        op = op.parent.operation
    return op.regions[0].blocks[0]


def symbol(name: str) -> Operation | None:
    """The op of the module that has this name; None where there is none."""
    for view in module_block().operations:
        attributes = view.operation.attributes
        if "sym_name" in attributes and attributes["sym_name"].value == name:
            return view.operation
    return None


@overload
def call_c(name: str, operands: list[Value], result: Type) -> Value: ...
@overload
def call_c(name: str, operands: list[Value], result: None) -> None: ...
def call_c(name: str, operands: list[Value], result: Type | None) -> Value | None:
    """A call of a C function, declared in the module on first use; None if `result` is None."""
    results = [] if result is None else [result]
    if symbol(name) is None:
        with ir.InsertionPoint.at_block_begin(module_block()):
            declaration = func.FuncOp(name, ([v.type for v in operands], results))
            declaration.attributes["sym_visibility"] = string_attr("private")
    call = func.CallOp(results, ir.FlatSymbolRefAttr.get(name), operands)
    return call.operation.results[0] if results else None
