"""Triton's `tt` ops on memory: how each is written, and what it is here."""

from dataclasses import replace

from proton.compat.triton.text.made import (
    Context,
    Made,
    Rule,
    Step,
    Value,
    described,
    segments,
    string,
)
from proton.compat.triton.text.syntax import ParsedOp
from proton.compat.triton.text.types import (
    Descriptor,
    Pointer,
    Scalar,
    Type,
    element_of,
    like,
    pointee,
)
from proton.dialect.tt_block import BOUNDARY_CHECK, PADDING

_I32, _I64, _I1 = Scalar("i32"), Scalar("i64"), Scalar("i1")
_RMW = {"exch": "xchg"}  # others have one name
_PADDINGS = {1: "zero", 2: "nan"}
# As older versions number them in a dictionary.
_CACHES = {1: "", 2: ".ca", 3: ".cg", 4: ".wb", 5: ".cs", 6: ".wt", 7: ".cv"}
_EVICTIONS = {1: "", 2: "evict_first", 3: "evict_last"}


def _caching(op: ParsedOp) -> dict[str, str]:
    """`cache` and `evict` of an access: from its policy, or from words of older versions."""
    words = dict(op.words)
    policy = op.attributes.get("cachePolicy", "")
    if "<" in policy:
        inner = policy[policy.index("<") + 1 : policy.rindex(">")]
        pairs = (entry.split("=") for entry in inner.split(","))
        words |= {name.strip(): value.strip() for name, value in pairs}
    cache = words.get("cache_modifier", "none")
    evict = words.get("eviction_policy", "evict_normal")
    cache = "" if cache == "none" else f".{cache}"
    evict = "" if evict == "evict_normal" else evict
    if "cache" in op.attributes:
        cache = _CACHES[op.number("cache")]
    if "evict" in op.attributes:
        evict = _EVICTIONS[op.number("evict")]
    return {"cache": string(cache), "evict": string(evict)}


def _boundary(op: ParsedOp) -> dict[str, str]:
    """Of an access by a block pointer the dimensions in which to look for the tensor's end."""
    dims = op.numbers("boundaryCheck") if "boundaryCheck" in op.attributes else []
    said = {BOUNDARY_CHECK: f"array<i32: {', '.join(map(str, dims))}>"} if dims else {}
    if dims and "padding" in op.attributes:
        said[PADDING] = string(padding_of(op))
    return said


def _load(context: Context, op: ParsedOp) -> list[Step | Made]:
    type_ = op.type_of("ptr")
    result = pointee(type_)
    masks, others = op.values.get("mask", []), op.values.get("other", [])
    values: list[Value] = [(op.value("ptr"), type_)]
    values += [(mask, like(type_, _I1)) for mask in masks]
    values += [(other, result) for other in others]
    said = {
        **_caching(op),
        **_boundary(op),
        "volatile": op.attributes.get("isVolatile", "false"),
        "operandSegmentSizes": segments([1, len(masks), len(others)]),
    }
    return [Made("tt.load", values, [result], said)]


def _store(context: Context, op: ParsedOp) -> list[Step | Made]:
    type_ = op.type_of("ptr")
    masks = op.values.get("mask", [])
    values: list[Value] = [(op.value("ptr"), type_), (op.value("value"), pointee(type_))]
    values += [(mask, like(type_, _I1)) for mask in masks]
    counts = segments([1, 1, len(masks)])
    said = {**_caching(op), **_boundary(op), "operandSegmentSizes": counts}
    return [Made("tt.store", values, [], said)]


def _atomic_rmw(context: Context, op: ParsedOp) -> list[Step | Made]:
    names = [op.value("ptr"), op.value("value"), *op.values.get("mask", [])]
    values = list(zip(names, op.types["operands"], strict=True))
    kind = op.words["rmw"]
    said = {
        "rmw_op": string(_RMW.get(kind, kind)),
        "sem": string(op.words["sem"]),
        "scope": string(op.words["scope"]),
        "operandSegmentSizes": segments([1, 1, len(names) - 2]),
    }
    return [Made("tt.atomic_rmw", values, op.types["results"], said)]


def _atomic_cas(context: Context, op: ParsedOp) -> list[Step | Made]:
    names = [op.value(name) for name in ("ptr", "cmp", "value")]
    values = list(zip(names, op.types["operands"], strict=True))
    said = {name: string(op.words[name]) for name in ("sem", "scope")}
    return [Made("tt.atomic_cas", values, op.types["results"], said)]


def _unsupported(hint: str) -> Rule:
    def rule(context: Context, op: ParsedOp) -> list[Step | Made]:
        context.unsupported(op, "is not supported", hint)

    return rule


# Blocks of tensors


def _make_block_pointer(context: Context, op: ParsedOp) -> list[Step | Made]:
    shape, strides, offsets = (op.values[name] for name in ("shape", "strides", "offsets"))
    block = op.of("result", Pointer).pointee
    values: list[Value] = [(op.value("base"), Pointer(Scalar(element_of(block).text)))]
    values += [(number, _I64) for number in (*shape, *strides)]
    values += [(offset, _I32) for offset in offsets]
    said = {
        "order": f"array<i32: {', '.join(map(str, op.numbers('order')))}>",
        "operandSegmentSizes": segments([1, len(shape), len(strides), len(offsets)]),
    }
    return [Made("tt.make_tensor_ptr", values, [op.type_of("result")], said)]


def _advance(context: Context, op: ParsedOp) -> list[Step | Made]:
    type_, offsets = op.type_of("result"), op.values["offsets"]
    values: list[Value] = [(op.value("ptr"), type_), *((offset, _I32) for offset in offsets)]
    said = {"operandSegmentSizes": segments([1, len(offsets)])}
    return [Made("tt.advance", values, [type_], said)]


def _make_descriptor(context: Context, op: ParsedOp) -> list[Step | Made]:
    base = op.type_of("base")
    result = replace(op.of("result", Descriptor), padding=padding_of(op))
    (name,) = op.result_names()
    context.paddings[name] = result.padding
    shape, strides = op.values["shape"], op.values["strides"]
    values = [(op.value("base"), base)]
    values += [(size, _I32) for size in shape]
    values += [(stride, _I64) for stride in strides]
    said = {"operandSegmentSizes": segments([1, len(shape), len(strides)])}
    return [Made("tt.make_tensor_descriptor", values, [result], said)]


def padding_of(op: ParsedOp) -> str:
    """What a descriptor's blocks have outside, by the op that makes it."""
    return _PADDINGS[op.number("padding", 1)]


def _descriptor_load(context: Context, op: ParsedOp) -> list[Step | Made]:
    indices = op.values["indices"]
    values: list[Value] = [(op.value("desc"), described(context, op))]
    values += [(index, _I32) for index in indices]
    said = _caching(op) | {"operandSegmentSizes": segments([1, len(indices)])}
    return [Made("tt.descriptor_load", values, [op.type_of("result")], said)]


def _descriptor_store(context: Context, op: ParsedOp) -> list[Step | Made]:
    indices = op.values["indices"]
    values: list[Value] = [
        (op.value("desc"), described(context, op)),
        (op.value("src"), op.type_of("src")),
    ]
    values += [(index, _I32) for index in indices]
    said = {"operandSegmentSizes": segments([1, 1, len(indices)])}
    if op.name == "tt.descriptor_store":
        return [Made(op.name, values, [], said)]
    # Text does not say signs: integers are signed.
    said |= {"kind": string(op.words["kind"]), "is_unsigned": "false"}
    return [Made(op.name, values, [], said)]


def _descriptor_gather(context: Context, op: ParsedOp) -> list[Step | Made]:
    op.types["desc"] = op.types["operands"][:1]
    _, offsets, column = op.types["operands"]
    values, wide = _rows(context, op, offsets, column)
    return [*wide, Made("tt.descriptor_gather", values, op.types["results"])]


def _descriptor_scatter(context: Context, op: ParsedOp) -> list[Step | Made]:
    op.types["desc"] = op.types["types"][:1]
    _, offsets, column, source = op.types["types"]
    values, wide = _rows(context, op, offsets, column)
    return [*wide, Made("tt.descriptor_scatter", [*values, (op.value("src"), source)])]


def _rows(
    context: Context, op: ParsedOp, offsets: Type, column: Type
) -> tuple[list[Value], list[Step | Made]]:
    """The descriptor, the rows' numbers as i32, and the first column."""
    rows: Value = op.value("x"), offsets
    steps: list[Step | Made] = []
    if element_of(offsets) != _I32:
        wide = like(offsets, _I32)
        name = context.name()
        steps = [(name, Made("arith.extsi", [rows], [wide]))]
        rows = name, wide
    desc = op.value("desc"), described(context, op)
    return [desc, rows, (op.value("y"), column)], steps


_CACHING = "(cacheModifier = @cache_modifier)? (evictionPolicy = @eviction_policy)?"

FORMS: dict[str, tuple[str, Rule]] = {
    "tt.load": (f"$ptr (, $mask)? (, $other)? {_CACHING} {{}} : <ptr>", _load),
    "tt.store": (f"$ptr , $value (, $mask)? {_CACHING} {{}} : <ptr>", _store),
    "tt.atomic_rmw": (
        "@rmw , @sem , @scope , $ptr , $value (, $mask)? {} : <->",
        _atomic_rmw,
    ),
    "tt.atomic_cas": ("@sem , @scope , $ptr , $cmp , $value {} : <->", _atomic_cas),
    "tt.atomic_load": ("", _unsupported("use tl.atomic_add of 0, or a volatile tl.load")),
    "tt.atomic_store": ("", _unsupported("use tl.atomic_xchg")),
    "tt.atomic_poll": ("", _unsupported("loop over a volatile tl.load")),
    "tt.make_tensor_ptr": (
        "$base , [ $shape* ] , [ $strides* ] , [ $offsets* ] {} : <result:!tt.ptr>",
        _make_block_pointer,
    ),
    "tt.advance": ("$ptr , [ $offsets* ] {} : <result:!tt.ptr>", _advance),
    "tt.make_tensor_descriptor": (
        "$base , [ $shape* ] , [ $strides* ] {} : <base:!tt.ptr> , <result:!tt.tensordesc>",
        _make_descriptor,
    ),
    "tt.descriptor_load": (
        f"$desc [ $indices* ] {_CACHING} {{}} : <desc> -> <result>",
        _descriptor_load,
    ),
    "tt.descriptor_store": (
        "$desc [ $indices* ] , $src {} : <desc> , <src>",
        _descriptor_store,
    ),
    "tt.descriptor_reduce": (
        "@kind , $desc [ $indices* ] , $src {} : <desc> , <src>",
        _descriptor_store,
    ),
    "tt.descriptor_gather": ("$desc [ $x , $y ] {} : <->", _descriptor_gather),
    "tt.descriptor_scatter": (
        "$desc [ $x , $y ] , $src {} : <types*>",
        _descriptor_scatter,
    ),
}
