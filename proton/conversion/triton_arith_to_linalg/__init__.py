"""`tt` ops on tensors become `linalg` on tensors; `arith` and `math` on tensors follow.

Every elementwise or shape-changing op is one `linalg.generic`, so that upstream fusion can
merge chains of them into one loop. A reduction is a generic with a reduction iterator; scans,
histograms and gathers are loops. A `tt.dot` stays one, on operands of the accumulator's type, until
chains are merged: upstream's fusion would make a loop of a `linalg.matmul` whose operand was
reshaped, and compute the operand anew in each of its iterations (`triton_dot_to_linalg.py`).
"""

import array
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from proton.base.errors import CompilationError
from proton.conversion.triton_arith_to_linalg.assembly import lower_assembly
from proton.conversion.triton_arith_to_linalg.extern import lower_extern
from proton.conversion.triton_arith_to_linalg.reduce import clone_payload, lower_reduce
from proton.conversion.triton_arith_to_linalg.scan import (
    lower_gather,
    lower_histogram,
    lower_scan,
)
from proton.dialect import OpRules, isa, names_of, tt
from proton.dialect.builtin import integer
from proton.dialect.diagnostics import element_of, shape_of
from proton.dialect.emit import constant, create, index_constant, remade
from proton.dialect.linalg import (
    convert_elements,
    dimension_map,
    generic,
    index_of,
    reshaped,
)
from proton.dialect.mlir import Module, Operation, OpView, Type, Value, arith, ir, math, tensor
from proton.dialect.traits import Combines, has
from proton.dialect.walk import all_ops, before, replace, source_span, users
from proton.passes import Pass, Upstream, register

# Producers of indices are copied to each of their users, so that each copy fuses; this bounds the
# copies, as a chain of ops with two uses each would double at every step.
MAX_CLONES = 512

# A range that is compared, as in a mask, is a table of so many elements at most. A loop's index
# is no good there: LLVM compares it in its 64 bits, which takes five instructions for a vector
# of 16 elements; one compares it with a vector of the table.
MAX_TABLE = 4096


RULES = OpRules[Callable[[Operation], None]]()


@register
@dataclass(frozen=True)
class TritonArithToLinalg(Pass):
    """Turns tensor arithmetic into `linalg.generic`."""

    name: ClassVar[str] = "triton-arith-to-linalg"

    def run(self, module: Module) -> None:
        _copy_index_producers(module)
        ops = _outer_ops(module)
        for op in ops:
            if has(op, Combines):
                _apply_rules(all_ops(op))  # before its function is copied
        _apply_rules(ops)
        Upstream("convert-elementwise-to-linalg").run(module)


def _outer_ops(module: Module) -> list[Operation]:
    """Every op that is in no function of a reduction, a scan or of elements."""
    found: list[Operation] = []

    def visit(op: Operation) -> ir.WalkResult:
        found.append(op)
        return ir.WalkResult.SKIP if has(op, Combines) else ir.WalkResult.ADVANCE

    module.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found[1:]


def _apply_rules(ops: list[Operation]) -> None:
    for op in ops:
        if op.name in RULES:
            with before(op):
                RULES[op.name](op)


def _first(inputs: list[Value], outputs: list[Value]) -> list[Value]:
    return inputs[:1]


# Rules: the insertion point is before the op


@RULES.of(tt.MakeRangeOp)
def _make_range(op: Operation) -> None:
    type_, start = op.results[0].type, op.attributes["start"].value
    size = type_.shape[0]
    if size <= MAX_TABLE and _is_compared(op.results[0]):
        numbers = array.array("i", range(start, start + size))
        table = ir.DenseElementsAttr.get(numbers, type=type_)
        replace(op, [constant(table, type_)])
        return

    def body(inputs: list[Value], outputs: list[Value]) -> list[Value]:
        value = arith.IndexCastOp(type_.element_type, index_of(0)).result
        if start:
            value = arith.AddIOp(value, constant(start, type_.element_type)).result
        return [value]

    replace(op, generic([], [], [type_], body))


def _is_compared(value: Value) -> bool:
    """True if a comparison is all that uses a range."""
    while len(found := users(value)) == 1 and isa(found[0], tt.ExpandDimsOp, tt.BroadcastOp):
        value = found[0].results[0]
    return bool(found) and all(isa(user, arith.CmpIOp) for user in found)


@RULES.of(tt.SplatOp)
def _splat(op: Operation) -> None:
    type_ = op.results[0].type
    replace(op, generic([op.operands[0]], [dimension_map(len(type_.shape), [])], [type_], _first))


@RULES.of(tt.ExpandDimsOp)
def _expand_dims(op: Operation) -> None:
    type_, axis = op.results[0].type, op.attributes["axis"].value
    rank = len(type_.shape)
    in_map = dimension_map(rank, [d for d in range(rank) if d != axis])
    replace(op, generic([op.operands[0]], [in_map], [type_], _first))


@RULES.of(tt.BroadcastOp)
def _broadcast(op: Operation) -> None:
    type_, source = op.results[0].type, shape_of(op.operands[0])
    pairs = enumerate(zip(source, type_.shape, strict=True))
    in_map = dimension_map(len(source), [d if a == b else None for d, (a, b) in pairs])
    replace(op, generic([op.operands[0]], [in_map], [type_], _first))


@RULES.of(tt.TransOp)
def _trans(op: Operation) -> None:
    order = list(op.attributes["order"])
    in_map = dimension_map(len(order), [order.index(d) for d in range(len(order))])
    replace(op, generic([op.operands[0]], [in_map], [op.results[0].type], _first))


@RULES.of(tt.ReshapeOp)
def _reshape(op: Operation) -> None:
    replace(op, [reshaped(op.operands[0], list(op.results[0].type.shape))])


@RULES.of(tt.JoinOp)
def _join(op: Operation) -> None:
    type_ = op.results[0].type
    rank = len(type_.shape)
    in_map = dimension_map(rank, list(range(rank - 1)))

    def body(inputs: list[Value], outputs: list[Value]) -> list[Value]:
        zero = index_constant(0)
        is_left = arith.CmpIOp(arith.CmpIPredicate.eq, index_of(rank - 1), zero).result
        return [arith.SelectOp(is_left, *inputs).result]

    replace(op, generic(list(op.operands), [in_map] * 2, [type_], body))


@RULES.of(tt.SplitOp)
def _split(op: Operation) -> None:
    halves = []
    for position, result in enumerate(op.results):
        rank = len(result.type.shape)
        dims = [ir.AffineDimExpr.get(d) for d in range(rank)]
        in_map = ir.AffineMap.get(rank, 0, [*dims, ir.AffineConstantExpr.get(position)])
        halves += generic([op.operands[0]], [in_map], [result.type], _first)
    replace(op, halves)


@RULES.of(tt.UnsplatOp)
def _unsplat(op: Operation) -> None:
    zero = index_constant(0)
    source = op.operands[0]
    replace(op, [tensor.ExtractOp(source, [zero] * len(shape_of(source))).result])


@RULES.of(tt.DotOp)
def _dot(op: Operation) -> None:
    """A product in the accumulator's type; narrow accumulators are widened to f32."""
    a, b, acc = op.operands[:3]
    result = element_of(acc)
    wide = result
    if isinstance(result, ir.FloatType) and result.width < 32:
        wide = ir.F32Type.get()
    sides = [convert_elements(operand, wide) for operand in (a, b, acc)]
    replace(op, [convert_elements(remade(op, [sides[2].type], sides).result, result)])


def _in_place_of(kind: type[OpView]) -> Callable[[Operation], None]:
    def lower(op: Operation) -> None:
        new = create(kind, op.results[0].type, *op.operands)
        replace(op, [new])

    return lower


@RULES.of(tt.FpToFpOp)
def _fp_to_fp(op: Operation) -> None:
    """Round towards zero: to nearest, and where that is further from zero, one bit back.

    The neighbour of a float of the same sign has the neighbouring integer for its bits; the one
    before infinity is the greatest number.
    """
    value, type_ = op.operands[0], op.results[0].type
    shape, width = shape_of(value), type_.element_type.width if shape_of(value) else type_.width

    def typed(element: Type) -> Type:
        return ir.RankedTensorType.get(shape, element) if shape else element

    def magnitude(x: Value) -> object:
        return create(math.AbsFOp, x.type, x)

    nearest = arith.TruncFOp(type_, value).result
    if op.attributes["rounding"].value == "rtne":
        replace(op, [nearest])
        return
    back = arith.ExtFOp(value.type, nearest).result
    too_far = arith.CmpFOp(arith.CmpFPredicate.OGT, magnitude(back), magnitude(value)).result
    bits = typed(integer(width))
    raw = arith.BitcastOp(bits, nearest).result
    raw = arith.SubIOp(raw, arith.ExtUIOp(bits, too_far).result).result
    replace(op, [arith.BitcastOp(type_, raw).result])


def _in_arith(op: Operation) -> None:
    replace(op, [tt.IN_ARITH[op.name](*op.operands)])


@RULES.of(tt.DebugBarrierOp, tt.GridDependencyOp)
def _erase(op: Operation) -> None:
    """Nothing to do: the threads of a CPU program are one."""
    op.erase()


@RULES.of(tt.MapElementwiseOp)
def _map_elementwise(op: Operation) -> None:
    """The region as the body of a generic; of scalars in the place of the op."""
    block, sources = op.regions[0].blocks[0], list(op.operands)
    shape = shape_of(sources[0])
    if not shape:
        replace(op, clone_payload(block, sources))
        return
    maps = [ir.AffineMap.get_identity(len(shape))] * len(sources)
    types = [result.type for result in op.results]
    replace(op, generic(sources, maps, types, lambda inputs, _: clone_payload(block, inputs)))


@RULES.of(tt.SpecialRegisterOp)
def _refuse_register(op: Operation) -> None:
    name = op.attributes["register"].value
    raise CompilationError(
        f"tl.extra.cuda.{name} is a register of a GPU, and the kernel is compiled for the CPU",
        source_span(op.location),
        "launch the kernel on arrays of a GPU",
    )


RULES.of(tt.ReduceOp)(lower_reduce)
RULES.of(tt.ScanOp)(lower_scan)
RULES.of(tt.HistogramOp)(lower_histogram)
RULES.of(tt.GatherOp)(lower_gather)
RULES.of(tt.ExternElementwiseOp)(lower_extern)
RULES.of(*tt.ASSEMBLY)(lower_assembly)
RULES.of(*tt.IN_ARITH)(_in_arith)
RULES.of(tt.PreciseSqrtOp)(_in_place_of(math.SqrtOp))
RULES.of(tt.PreciseDivFOp)(_in_place_of(arith.DivFOp))


# Producers of indices


_COPIED = names_of(  # what makes indices and masks
    *(tt.MakeRangeOp, tt.SplatOp, tt.BroadcastOp, tt.ExpandDimsOp, arith.ConstantOp, arith.AddIOp),
    *(arith.SubIOp, arith.MulIOp, arith.CmpIOp, arith.AndIOp, arith.OrIOp, arith.XOrIOp),
    *(arith.ExtSIOp, arith.ExtUIOp, arith.TruncIOp),
)


def _copy_index_producers(module: Module) -> None:
    """Gives each user of an index-like tensor its own copy of what makes it."""
    copied: set[Value] = set()
    ops = all_ops(module)
    for op in ops:
        is_tensor = len(op.results) == 1 and bool(shape_of(op.results[0]))
        if is_tensor and op.name in _COPIED:
            sources = [value for value in op.operands if shape_of(value)]
            if all(value in copied for value in sources):
                copied.add(op.results[0])
    clones = 0
    for op in reversed(ops):
        if len(op.results) != 1 or op.results[0] not in copied:
            continue
        for user in users(op.results[0])[1:]:
            if clones == MAX_CLONES:
                return
            clones += 1
            with before(user):
                copy = op.clone()
            for position, value in enumerate(user.operands):
                if value == op.results[0]:
                    user.operands[position] = copy.result
                    break
