"""Rules of ops that apply what the kernel's author wrote to each element: a device function,
assembly, or a function of a library by a table of the author's own."""

import math
from typing import Any

from proton.base.words import shown
from proton.dialect import Kind, name_of, tt, ttg
from proton.dialect.builtin import i32_attr, string_attr
from proton.dialect.emit import effect
from proton.dialect.mlir import Attribute, Block, Value, ir
from proton.dialect.tt_collective import segments
from proton.dialect.tt_elementwise import MAX_ELEMENTWISE
from proton.frontend import assertions
from proton.frontend.builder import as_tensor, broadcast_all, constant, error, to_ir
from proton.frontend.collectives import check_pure
from proton.frontend.externs import call_extern
from proton.frontend.interface import CodeGenerator
from proton.frontend.rules import generator_rule, rule
from proton.language import core
from proton.language import types as ty
from proton.language.function import DeviceFunction, ExternFunction
from proton.language.gluon.types import shared_memory_descriptor_type
from proton.language.value import tensor


def _sources(what: str, args: object, least: int = 1) -> list[tensor]:
    """The operands in one shape."""
    values = tuple(args) if isinstance(args, tuple | list) else (args,)
    if not least <= len(values) <= MAX_ELEMENTWISE:
        raise error(
            f"{what} takes {least} to {tt.MAX_ELEMENTWISE} blocks, got {len(values)}",
            "do it in steps",
        )
    given = [as_tensor(value, f"an argument of {what}") for value in values]
    return broadcast_all(*given) if given else []


def _create(
    kind: Kind,
    sources: list[tensor],
    types: list[ty.dtype],
    attributes: dict[str, Attribute],
    regions: int = 0,
) -> Any:
    return ir.Operation.create(
        name_of(kind),
        results=[to_ir(type_) for type_ in types],
        operands=[source.handle for source in sources],
        attributes={
            **attributes,
            "operandSegmentSizes": segments(len(sources), MAX_ELEMENTWISE),
            "resultSegmentSizes": segments(len(types), MAX_ELEMENTWISE),
        },
        regions=regions,
    )


def _count(what: str, value: object) -> int:
    if not isinstance(value, int) or value < 1:
        raise error(f"{what} must be a constexpr integer from 1 on, got {shown(value)}", "pass 1")
    return value


# A device function


@generator_rule(core.map_elementwise)
def _map_elementwise(g: CodeGenerator, scalar_fn: object, *args: object, pack: object = 1) -> Any:
    what = "tl.map_elementwise"
    if not isinstance(scalar_fn, DeviceFunction):
        raise error(
            f"{what}: scalar_fn must be a @proton.jit function, got {shown(scalar_fn)}",
            "decorate a function of one element of each block",
        )
    pack = _count(f"{what}: pack", pack)
    sources = _sources(what, args)
    holder = _create(tt.MapElementwiseOp, sources, [], {}, regions=1)
    here = ir.Location.current
    types = [to_ir(source.dtype) for source in sources]
    block = ir.Block.create_at_start(holder.regions[0], types, [here] * len(types))
    with ir.InsertionPoint(block):
        values = _call(g, scalar_fn, sources, block, pack)
        results = [value.handle for value in values]
        _end(results)
    types_ = [value.dtype for value in values]
    messages: list[Attribute] = []
    if assertions.asserts(block):
        if len(values) == MAX_ELEMENTWISE:
            raise error(
                f"{what}: {scalar_fn.__name__} asserts, and returns {len(values)} values: one less "
                "is possible",
                "assert before or after",
            )
        with ir.InsertionPoint.at_block_begin(block):
            start = constant(0, assertions.NUMBER).handle
        results = assertions.collected(block, start, messages)
        with ir.InsertionPoint(block):
            _end(results)
        types_.append(assertions.NUMBER)
    check_pure(g, scalar_fn, block, "scalar_fn")
    shaped = [ty.with_scalar(sources[0].type, type_) for type_ in types_]
    op = _create(tt.MapElementwiseOp, sources, shaped, {}, regions=1)
    block.append_to(op.regions[0])
    holder.erase()
    found = tuple(tensor(r, t) for r, t in zip(op.results, shaped, strict=True))
    if messages:
        found, numbers = found[:-1], found[-1]
        assertions.assert_all(numbers, messages)
    return found if len(found) != 1 else found[0]


def _end(results: list[Value]) -> None:
    sizes = segments(len(results), MAX_ELEMENTWISE)
    effect(tt.MapElementwiseReturnOp, *results, operandSegmentSizes=sizes)


def _call(
    g: CodeGenerator, fn: DeviceFunction, sources: list[tensor], block: Block, pack: int
) -> list[tensor]:
    """The function's values on scalars. One that takes `pack` elements of each block at once gets
    as many times the same: which are taken together is not said."""
    elements = [tensor(v, s.dtype) for v, s in zip(block.arguments, sources, strict=True)]
    values = g.call(fn, [element for element in elements for _ in range(pack)], {}, in_place=True)
    values = values if isinstance(values, tuple) else (values,)
    if None in values or not values or len(values) % pack or len(values) // pack > MAX_ELEMENTWISE:
        raise error(
            f"{fn.__name__} must return {pack} values for each block that is made, got "
            f"{0 if None in values else len(values)}",
            f"return one value, or a tuple of up to {tt.MAX_ELEMENTWISE}",
        )
    return [as_tensor(value, f"what {fn.__name__} returns") for value in values[::pack]]


# Assembly


@rule(core.inline_asm_elementwise)
def _inline_asm(asm: Any, constraints: Any, args: Any, dtype: Any, is_pure: Any, pack: Any) -> Any:
    what = "tl.inline_asm_elementwise"
    for name, text in (("asm", asm), ("constraints", constraints)):
        if not isinstance(text, str):
            raise error(f"{what}: {name} must be a constexpr str, got {shown(text)}", 'write "..."')
    dtypes = tuple(dtype) if isinstance(dtype, tuple | list) else (dtype,)
    if not dtypes or not all(isinstance(one, ty.dtype) for one in dtypes):
        raise error(
            f"{what}: dtype must be a dtype or a tuple of them, got {shown(dtype)}", "tl.int32"
        )
    pack = _count(f"{what}: pack", pack)
    if any(map(_is_memory, args if isinstance(args, tuple | list) else (args,))):
        return _asm_on_memory(asm, constraints, args, dtype, is_pure, pack)
    sources = _sources(what, args, least=0)
    if pack > 1 and not any(source.is_block() for source in sources):
        raise error(f"{what}: pack must be 1 for scalars, got {pack}", "pass blocks")
    elements = math.prod(sources[0].shape) if sources else 1
    if elements % pack:
        raise error(
            f"{what}: the blocks' {elements} elements are not a multiple of pack={pack}",
            "pass a smaller pack",
        )
    types = [ty.with_scalar(sources[0].type, one) if sources else one for one in dtypes]
    attributes = {
        "asm_string": string_attr(asm),
        "constraints": string_attr(constraints),
        "packed_element": i32_attr(pack),
    }
    kind: Kind = tt.InlineAsmOp if is_pure else tt.InlineAsmWithEffectsOp
    op = _create(kind, sources, types, attributes)
    found = tuple(tensor(r, t) for r, t in zip(op.results, types, strict=True))
    return found if isinstance(dtype, tuple | list) else found[0]


def _is_memory(value: object) -> bool:
    return isinstance(value, tensor) and isinstance(value.type, shared_memory_descriptor_type)


def _asm_on_memory(
    asm: str, constraints: str, args: Any, dtype: Any, is_pure: Any, pack: int
) -> Any:
    """Assembly that takes shared memory, too, as one address."""
    if is_pure:
        raise error("inline_asm_elementwise: memory needs is_pure=False", "the assembly uses it")
    dtypes = tuple(dtype) if isinstance(dtype, tuple | list) else (dtype,)
    blocks = _sources("tl.inline_asm_elementwise", [x for x in args if not _is_memory(x)], least=0)
    rest = iter(blocks)
    sources = [value if _is_memory(value) else next(rest) for value in args]
    types = [ty.with_scalar(blocks[0].type, one) if blocks else one for one in dtypes]
    op = ttg.ThreadAssemblyOp(
        string_attr(asm),
        string_attr(constraints),
        **{f"result{n}": to_ir(type_) for n, type_ in enumerate(types)},
        **{f"src{n}": source.handle for n, source in enumerate(sources)},
    )
    op.attributes[ttg.PACKED] = i32_attr(pack)
    results = op.operation.results
    found = tuple(tensor(r, t) for r, t in zip(results, types, strict=True))
    return found if isinstance(dtype, tuple | list) else found[0]


# A function of a library


@rule(core.extern_elementwise)
def _extern_elementwise(
    lib_name: Any, lib_path: Any, args: Any, arg_type_symbol_dict: Any, is_pure: Any
) -> tensor:
    if lib_path:
        raise error(
            f"tl.extern_elementwise: libraries of one's own ({shown(lib_path)}) are not supported",
            "functions of libdevice are there: leave lib_path empty",
        )
    if not is_pure:
        raise error("tl.extern_elementwise: is_pure must be True", "its functions only compute")
    table = dict(arg_type_symbol_dict)
    name = next(iter(table.values()))[0] if table else "no function"
    return call_extern(ExternFunction(name, table, library=lib_name or "libdevice"), args)
