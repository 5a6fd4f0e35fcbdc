"""Tensor maps that the kernel makes, as Triton's text has them: four ops for one of ours.

    %p = ttg.global_scratch_alloc {nbytes = 128, ...}            where the map lies
    ttng.tensormap_create %p, %base, [box], [sizes], [strides], [...] {fill_mode = 0, ...}
    ttng.tensormap_fenceproxy_acquire %p
    %d = ttng.reinterpret_tensor_descriptor %p
becomes
    %d = ttng.tensor_map %base, sizes, strides

with a tensor's slowest dimension first, and its strides in elements. Whether the host makes the map
is found out later, and so are its box and its swizzle.
"""

from dataclasses import replace

from proton.compat.triton.text.made import Context, Made, Rule, Step, Value, segments
from proton.compat.triton.text.syntax import ParsedOp
from proton.compat.triton.text.types import Descriptor, Scalar
from proton.layout.tensor_map import TENSOR_MAP_BYTES

_I32, _I64 = Scalar("i32"), Scalar("i64")
_FILLS = ("zero", "nan")
_BYTE = 8
_HINT = "compile the .ttir of the kernel"


def _scratch(context: Context, op: ParsedOp) -> list[Step | Made]:
    size = op.number("nbytes")
    if size != TENSOR_MAP_BYTES:
        context.unsupported(
            op,
            f"of {size} bytes, for more than one tensor map, is not supported",
            f"{_HINT}, or make the descriptor outside of the loop",
        )
    return []


def _create(context: Context, op: ParsedOp) -> list[Step | Made]:
    context.maps[op.value("desc_ptr")] = op
    return []


def _acquire(context: Context, op: ParsedOp) -> list[Step | Made]:
    return []


def _descriptor(context: Context, op: ParsedOp) -> list[Step | Made]:
    made = context.maps.get(op.value("rawDesc"))
    if made is None:
        context.unsupported(op, "of a map that is not made in the kernel is not supported", _HINT)
    padding = _FILLS[made.number("fill_mode")]
    type_ = replace(op.of("result", Descriptor), padding=padding)
    (name,) = op.result_names()
    context.paddings[name] = padding
    sizes, steps = (list(reversed(made.values[part])) for part in ("sizes", "steps"))
    strides: list[str] = []
    before: list[Step | Made] = []
    for step in steps:
        stride, ops = _in_elements(context, step, type_.element.bits // _BYTE)
        strides.append(stride)
        before += ops
    values: list[Value] = [(made.value("base"), made.types["operands"][1])]
    values += [(size, _I32) for size in sizes]
    values += [(stride, _I64) for stride in strides]
    said = {"operandSegmentSizes": segments([1, len(sizes), len(strides), 0])}
    return [*before, Made("ttng.tensor_map", values, [type_], said)]


def _in_elements(context: Context, step: str, size: int) -> tuple[str, list[Step | Made]]:
    """A stride in elements of so many bytes, of one in bytes: what is multiplied, where that is
    known, as the host can follow no quotient."""
    factors = context.products.get(step, ())
    for factor, whole in zip(factors, reversed(factors), strict=True):
        if context.integers.get(factor) == size:
            return whole, []
    known = context.integers.get(step)
    number = size if known is None else known // size
    name = context.name()
    constant = Made("arith.constant", [], [_I64], {"value": f"{number} : i64"})
    if known is not None:
        return name, [(name, constant)]
    quotient = context.name()
    divided = Made("arith.divsi", [(step, _I64), (name, _I64)], [_I64])
    return quotient, [(name, constant), (quotient, divided)]


FORMS: dict[str, tuple[str, Rule]] = {
    "ttg.global_scratch_alloc": ("{} : <result>", _scratch),
    "ttng.tensormap_create": (
        "$desc_ptr , $base , [ $box* ] , [ $sizes* ] , [ $steps* ] , [ $every* ] {} : <->",
        _create,
    ),
    "ttng.tensormap_fenceproxy_acquire": ("$desc_ptr {} : <src>", _acquire),
    "ttng.reinterpret_tensor_descriptor": (
        "$rawDesc {} : <src> to <result>",
        _descriptor,
    ),
}
