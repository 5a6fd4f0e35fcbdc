"""Rules of ops along an axis: reductions, scans, histograms, gathers."""

from typing import Any

from proton.base.words import shown
from proton.dialect import tt_collective as tc
from proton.dialect.builtin import i32_attr
from proton.dialect.emit import effect
from proton.dialect.mlir import Attribute, Block, Operation, Value, ir
from proton.dialect.traits import Pure, Reads, Records, Writes, has
from proton.dialect.walk import all_ops, source_span
from proton.frontend import assertions
from proton.frontend.builder import (
    as_tensor,
    broadcast_all,
    broadcast_to,
    changed,
    constant,
    error,
    to_ir,
    wrap,
)
from proton.frontend.interface import CodeGenerator
from proton.frontend.numbers import untyped
from proton.frontend.promotion import cast, to_bool
from proton.frontend.rules import generator_rule, rule
from proton.frontend.shapes import check_shape, expand_dims, normalize_axis, reshape
from proton.language import core
from proton.language import types as ty
from proton.language.function import DeviceFunction
from proton.language.value import tensor


@generator_rule(core.reduce)
def _reduce(
    generator: CodeGenerator, input: Any, axis: Any, combine_fn: Any, keep_dims: bool = False
) -> Any:
    sources = _sources("tl.reduce", "reduced", input, combine_fn)
    rank = len(sources[0].shape)
    if axis is None:
        sources = [reshape(source, (source.numel,)) for source in sources]
        position = 0
    else:
        position = normalize_axis(axis, rank, "tl.reduce")
    types = [changed(source, "reduced", position) for source in sources]
    results = _combined(generator, "reduce", combine_fn, sources, types, {"axis": position})
    if keep_dims:
        if axis is None:
            results = [broadcast_to(r, (1,) * rank) for r in results]
        else:
            results = [expand_dims(r, position) for r in results]
    return tuple(results) if isinstance(input, tuple | list) else results[0]


@generator_rule(core.associative_scan)
def _scan(
    generator: CodeGenerator, input: Any, axis: Any, combine_fn: Any, reverse: bool = False
) -> Any:
    what = "tl.associative_scan"
    reverse = untyped(reverse)
    if not isinstance(reverse, bool):
        found = reverse.type if isinstance(reverse, tensor) else shown(reverse)
        raise error(f"{what}: reverse must be a constexpr bool, got {found}", "pass True or False")
    sources = _sources(what, "scanned", input, combine_fn)
    position = normalize_axis(axis, len(sources[0].shape), what)
    attributes = {"axis": position, "reverse": reverse}
    types = [source.type for source in sources]
    results = _combined(generator, "scan", combine_fn, sources, types, attributes)
    return tuple(results) if isinstance(input, tuple | list) else results[0]


def _sources(what: str, done: str, input: object, combine_fn: object) -> list[tensor]:
    """The blocks to combine, in one shape."""
    if not isinstance(combine_fn, DeviceFunction):
        raise error(
            f"{what}: combine_fn must be a @proton.jit function, got {shown(combine_fn)}",
            "decorate a function of two elements that returns one",
        )
    inputs = input if isinstance(input, tuple | list) else [input]
    if not 1 <= len(inputs) <= tc.MAX_REDUCED:
        raise error(
            f"{what} takes 1 to {tc.MAX_REDUCED} blocks at once, got {len(inputs)}",
            "do it in several steps",
        )
    sources = broadcast_all(*[as_tensor(value) for value in inputs])
    if not sources[0].is_block():
        raise error(f"{what}: a scalar cannot be {done}", "use the scalar as it is")
    return sources


def _combined(
    generator: CodeGenerator,
    name: str,
    fn: DeviceFunction,
    sources: list[tensor],
    types: list[ty.dtype],
    attributes: dict[str, int],
) -> list[tensor]:
    """The results of a `tt.reduce` or `tt.scan` with `fn` compiled into its region."""
    op, _ = _compiled(generator, name, fn, sources, types, attributes, None)
    if assertions.asserts(op.regions[0].blocks[0]):
        op.erase()
        if len(sources) == tc.MAX_REDUCED:
            raise error(
                f"{fn.__name__} asserts, and combines {len(sources)} blocks: one less is possible",
                "assert before or after, or combine in several steps",
            )
        zeros = constant(0, ty.with_scalar(sources[0].type, assertions.NUMBER))
        sources = [*sources, zeros]
        types = [*types, ty.with_scalar(types[0], assertions.NUMBER)]
        messages: list[Attribute] = []
        op, numbers = _compiled(generator, name, fn, sources, types, attributes, messages)
        assertions.assert_all(numbers, messages)
        types = types[:-1]
    return [tensor(result, type_) for result, type_ in zip(op.results, types, strict=False)]


def _compiled(
    generator: CodeGenerator,
    name: str,
    fn: DeviceFunction,
    sources: list[tensor],
    types: list[ty.dtype],
    attributes: dict[str, int],
    messages: list[Attribute] | None,
) -> tuple[Operation, tensor]:
    """The op, and its last result."""
    op = ir.Operation.create(
        f"tt.{name}",
        results=[to_ir(type_) for type_ in types],
        operands=[source.handle for source in sources],
        attributes={
            key: ir.BoolAttr.get(value) if isinstance(value, bool) else i32_attr(value)
            for key, value in attributes.items()
        }
        | {
            "operandSegmentSizes": tc.segments(len(sources)),
            "resultSegmentSizes": tc.segments(len(sources)),
        },
        regions=1,
    )
    _combine_region(generator, op, fn, [source.dtype for source in sources], messages)
    return op, tensor(op.results[len(types) - 1], types[-1])


def _combine_region(
    generator: CodeGenerator,
    op: Operation,
    fn: DeviceFunction,
    types: list[ty.dtype],
    messages: list[Attribute] | None,
) -> None:
    """Compiles `fn` on scalars into the op's region, everything that it calls in place. Given
    `messages`, the last of each side's elements is the number of its assertions."""
    arguments = [to_ir(type_) for type_ in types] * 2
    block = ir.Block.create_at_start(
        op.regions[0], arguments, [ir.Location.current] * len(arguments)
    )
    values = [tensor(v, t) for v, t in zip(block.arguments, types * 2, strict=True)]
    numbers: list[Value] = []
    if messages is not None:
        types = types[:-1]
        numbers = [values.pop(position).handle for position in (-1, len(types))]
    with ir.InsertionPoint(block):
        combined = generator.call(fn, values, {}, in_place=True)
        combined = combined if isinstance(combined, tuple) else (combined,)
        if len(combined) != len(types):
            raise error(
                f"combine_fn {fn.__name__} must return {len(types)} values, got {len(combined)}",
                "return one value for each block that is combined",
            )
        results = [cast(as_tensor(c), t).handle for c, t in zip(combined, types, strict=True)]
        effect(f"{op.name}_return", *results, operandSegmentSizes=tc.segments(len(results)))
    if messages is not None:
        with ir.InsertionPoint.at_block_begin(block):
            start = assertions.first_failed(*reversed(numbers))
        results = assertions.collected(block, start, messages)
        with ir.InsertionPoint(block):
            effect(f"{op.name}_return", *results, operandSegmentSizes=tc.segments(len(results)))
    elif assertions.asserts(block):
        return  # it is compiled once more, with their numbers
    _drop_unused(block)
    check_pure(generator, fn, block, "combine_fn")


def _drop_unused(block: Block) -> None:
    """Takes away what only told a type: `(x + tl.zeros((1,), tl.int1)).dtype`."""
    for view in reversed(list(block.operations)):
        op = view.operation
        if op.results and has(op, Pure) and not any(list(r.uses) for r in op.results):
            op.erase()


def check_pure(generator: CodeGenerator, fn: DeviceFunction, block: Block, what: str) -> None:
    """A function of elements computes scalars: how often it runs, and in which thread, is not
    said."""
    for op in (op for view in block.operations for op in [view.operation, *all_ops(view)]):
        makes_blocks = any(isinstance(result.type, ir.RankedTensorType) for result in op.results)
        if makes_blocks:
            problem = error(
                f"{what} {fn.__name__} works on scalars: it cannot make a block ({op.name})",
                "it gets elements, and returns one",
            )
        elif has(op, Writes, Reads, Records):
            problem = error(
                f"{what} {fn.__name__} may only compute: it cannot print, assert in a loop, record "
                f"or touch memory ({op.name})",
                "do it before or after",
            )
        else:
            continue
        problem.span = source_span(op.location)
        problem.trace = (generator.span(), *generator.call_trace())
        raise problem


@rule(core.histogram)
def _histogram(input: object, num_bins: object, mask: object = None) -> tensor:
    value = as_tensor(input)
    if len(value.shape) != 1 or not value.dtype.is_int() or value.dtype.is_bool():
        raise error(
            f"tl.histogram takes a row of integers, got {value.type}",
            "flatten it with .ravel(), or convert with .to(tl.int32)",
        )
    if value.dtype.primitive_bitwidth != 32:
        raise error(
            f"tl.histogram takes integers of 32 bits, got {value.type}",
            "convert with .to(tl.int32)",
        )
    (bins,) = check_shape(num_bins)
    if mask is not None:
        mask = broadcast_to(to_bool(mask), value.type).handle
    type_ = ty.block_type(ty.int32, (bins,))
    return wrap(tc.HistogramOp(value.handle, to_ir(type_), mask=mask), type_)


@rule(core.gather)
def _gather(src: object, index: object, axis: object) -> tensor:
    source, places = as_tensor(src), as_tensor(index)
    if not places.dtype.is_int() or places.dtype.is_bool():
        raise error(
            f"tl.gather: index must be integers, got {places.type}", "convert with .to(tl.int32)"
        )
    rank = len(source.shape)
    if rank == 0 or len(places.shape) != rank:
        raise error(
            f"tl.gather: src and index must be blocks of one rank, got {source.type} and "
            f"{places.type}",
            "add dimensions with x[:, None]",
        )
    position = normalize_axis(axis, rank, "tl.gather")
    expected = (*source.shape[:position], places.shape[position], *source.shape[position + 1 :])
    if places.shape != expected:
        raise error(
            f"tl.gather: only sizes along axis {position} may differ, got {list(source.shape)} "
            f"and {list(places.shape)}",
            "broadcast the index to the other sizes of src",
        )
    type_ = ty.with_scalar(places.type, source.dtype)
    op = tc.GatherOp(source.handle, places.handle, i32_attr(position), to_ir(type_))
    return wrap(op, type_)
