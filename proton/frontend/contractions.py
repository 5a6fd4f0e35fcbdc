"""The rules of matrix products."""

import math

from proton.base.words import shown
from proton.dialect import tt
from proton.dialect.builtin import i32_attr, string_attr
from proton.frontend.builder import as_tensor, constant, error, to_ir, warn, wrap
from proton.frontend.interface import CodeGenerator
from proton.frontend.promotion import bitcast
from proton.frontend.rules import generator_rule
from proton.frontend.shapes import reshape
from proton.language import core, scaled
from proton.language import types as ty
from proton.language.value import tensor


@generator_rule(core.dot)
def _dot(
    g: CodeGenerator,
    input: object,
    other: object,
    acc: object = None,
    input_precision: str | None = None,
    allow_tf32: bool | None = None,
    max_num_imprecise_acc: int | None = None,
    out_dtype: ty.dtype | None = None,
) -> tensor:
    a, b = as_tensor(input), as_tensor(other)
    if a.dtype.is_fp8e4b15() or b.dtype.is_fp8e4b15():
        warn(
            "products of fp8e4b15 are deprecated, as in Triton on Hopper: no tensor core takes it, "
            "use float8e4nv"
        )
    precision = _input_precision(g, input_precision, allow_tf32)
    if out_dtype is not None and not isinstance(out_dtype, ty.dtype):
        raise error(
            f"tl.dot: out_dtype must be a dtype, got {shown(out_dtype)}",
            "pass tl.float32 or the like",
        )
    shape = _dot_shape(a, b)
    given = acc.dtype if isinstance(acc, tensor) else None
    type_ = ty.block_type(dot_type("tl.dot", a.dtype, b.dtype, given, out_dtype), shape)
    if acc is None:
        acc = constant(0, type_)
    elif not isinstance(acc, tensor) or acc.shape != shape:
        found = acc.type if isinstance(acc, tensor) else shown(acc)
        raise error(
            f"tl.dot: acc must have shape {list(shape)}, got {found}",
            f"start from tl.zeros({shape}, dtype={type_.scalar.name})",
        )
    imprecise = _imprecise_acc(max_num_imprecise_acc, a.dtype, b.dtype, a.shape[-1])
    sides = [_one_batch(side) for side in (a, b, acc)]
    flat = ty.block_type(type_.scalar, sides[2].shape)
    op = tt.DotOp(
        *(side.handle for side in sides),
        string_attr(precision),
        i32_attr(imprecise),
        to_ir(flat),
    )
    return reshape(wrap(op, flat), shape)


def _one_batch(side: tensor) -> tensor:
    """An operand with at most one dimension ahead of the matrices."""
    if len(side.shape) <= 3:
        return side
    return reshape(side, (math.prod(side.shape[:-2]), *side.shape[-2:]))


def _input_precision(g: CodeGenerator, asked: object, allow_tf32: bool | None) -> str:
    """The precision of fp32 operands, as Triton spells it: any case is taken."""
    if asked is None and allow_tf32 is None:
        asked = g.dot_precision
    elif asked is None:
        return "tf32" if allow_tf32 else "ieee"
    elif allow_tf32 is not None:
        raise error(
            "tl.dot takes input_precision or allow_tf32, and got both",
            "leave allow_tf32 out: it is the older of the two",
        )
    name = asked.lower() if isinstance(asked, str) else asked
    if name not in tt.INPUT_PRECISIONS:
        raise error(
            f"input_precision must be one of {', '.join(tt.INPUT_PRECISIONS)}, got {shown(asked)}",
            'leave it out; the CPU computes as "ieee"',
        )
    return str(name)


def _imprecise_acc(asked: object, a: ty.dtype, b: ty.dtype, depth: int) -> int:
    """How many products of 8-bit floats may be added up in less than fp32: any number where
    nothing is asked for, as Triton has it; of other operands none."""
    if not (a.is_fp8() and b.is_fp8()):
        return 0
    if asked is None:
        return tt.ANY_IMPRECISE_ACC
    if not isinstance(asked, int) or not 0 <= asked <= depth:
        is_large = isinstance(asked, int) and asked > depth
        raise error(
            f"max_num_imprecise_acc ({shown(asked)}) must be "
            f"{f'<= K ({depth})' if is_large else 'a number that is not negative'}",
            "leave it out for the fastest, pass 0 for sums in fp32",
        )
    return asked


def _dot_shape(a: tensor, b: tensor) -> tuple[int, ...]:
    is_alike = len(a.shape) == len(b.shape) and a.shape[:-2] == b.shape[:-2]
    if len(a.shape) < 2 or not is_alike:
        raise error(
            "tl.dot takes blocks of two dimensions or more, the same ones ahead of the last two, "
            f"got {list(a.shape)} and {list(b.shape)}",
            "add a dimension with x[:, None], or broadcast one side with tl.broadcast_to",
        )
    if a.shape[-1] != b.shape[-2]:
        raise error(
            f"tl.dot: inner sizes must agree, got {list(a.shape)} and {list(b.shape)}",
            "transpose one side with tl.trans",
        )
    return *a.shape[:-1], b.shape[-1]


def dot_type(
    what: str, a: ty.dtype, b: ty.dtype, acc: ty.dtype | None, out: ty.dtype | None = None
) -> ty.dtype:
    """The type of the result, by Triton's rule: `out` and the accumulator choose where fp16 or
    fp8 leave a choice."""
    if a != b and not (a.is_fp8() and b.is_fp8()):
        raise error(f"{what}: both sides must have one dtype, got {a} and {b}", "cast one side")
    if a.is_int() and a != ty.int8:
        raise error(f"{what} takes int8 among integers, got {a}", "convert with .to(tl.float32)")
    if out == ty.bfloat16 and not a.is_int():
        raise error(
            f"{what}: out_dtype cannot be bfloat16",
            "leave it out, and convert the result with .to(tl.bfloat16)",
        )
    if a.is_fp16() or a.is_fp8():
        result = out or acc or ty.float32
        if result not in (ty.float16, ty.float32):
            raise error(
                f"{what} of {a} gives float32 or float16, not {result}", "convert the result"
            )
    else:
        result = ty.int32 if a.is_int() else ty.float64 if a.is_fp64() else ty.float32
    if acc is not None and acc != result:
        raise error(
            f"{what} of {a} gives {result}, and acc is {acc}",
            f"accumulate in {result}, and convert the result",
        )
    return result


# Products of scaled operands

_SCALE_BLOCKS = (32, 16)  # elements along K that may share a scale
_SCALES = (ty.uint8, ty.int8, ty.float8e4nv, ty.float8e5)
_FORMATS: dict[str, tuple[ty.dtype, ty.dtype | None]] = {  # -> (the dtype, its bits as integers)
    "e2m1": (ty.uint8, None),
    "e4m3": (ty.float8e4nv, ty.uint8),
    "e5m2": (ty.float8e5, ty.uint8),
    "bf16": (ty.bfloat16, ty.uint16),
    "fp16": (ty.float16, ty.uint16),
}


@generator_rule(core.dot_scaled)
def _dot_scaled(
    g: CodeGenerator,
    lhs: object,
    lhs_scale: object,
    lhs_format: object,
    rhs: object,
    rhs_scale: object,
    rhs_format: object,
    acc: object = None,
    fast_math: bool = False,
    lhs_k_pack: bool = True,
    rhs_k_pack: bool = True,
    out_dtype: ty.dtype = ty.float32,
) -> tensor:
    left = _scaled_operand("lhs", lhs, lhs_format, lhs_k_pack)
    right = _scaled_operand("rhs", rhs, rhs_format, rhs_k_pack)
    packed = lhs_format == "e2m1", rhs_format == "e2m1"
    # The axis along which two elements lie in a byte, counted from the end.
    axes = -1 if lhs_k_pack else -2, -2 if rhs_k_pack else -1
    depths = [
        side.shape[place] * (2 if is_packed and axis == place else 1)
        for side, is_packed, axis, place in zip((left, right), packed, axes, (-1, -2), strict=True)
    ]
    if depths[0] != depths[1]:
        raise error(
            f"tl.dot_scaled: inner sizes must agree, got {depths[0]} and {depths[1]} elements",
            'two elements of "e2m1" lie in a byte, along K unless k_pack is False',
        )
    rows = left.shape[-2] * (2 if packed[0] and not lhs_k_pack else 1)
    columns = right.shape[-1] * (2 if packed[1] and not rhs_k_pack else 1)
    for name, scale, size in (("lhs", lhs_scale, rows), ("rhs", rhs_scale, columns)):
        _check_scale(name, scale, (*left.shape[:-2], size), depths[0])
    _check_groups(lhs_scale, rhs_scale, depths[0])
    is_fp16 = "fp16" in (lhs_format, rhs_format)
    arguments = [
        *(left, lhs_scale, packed[0], right, rhs_scale, packed[1], acc),
        *(*axes, ty.float16 if is_fp16 else ty.bfloat16, out_dtype),
    ]
    result: tensor = g.call(scaled.dot_scaled, arguments, {})
    return result


def _scaled_operand(side: str, value: object, format_: object, k_pack: object) -> tensor:
    """An operand in the dtype that its format says; "e2m1" as bytes."""
    if format_ not in _FORMATS:
        raise error(
            f"tl.dot_scaled: {side}_format must be one of {', '.join(_FORMATS)}, got "
            f"{shown(format_)}",
            "convert the operand to one of these",
        )
    dtype, bits = _FORMATS[format_]
    block = as_tensor(value)
    if len(block.shape) < 2:
        raise error(
            f"tl.dot_scaled: {side} must have two dimensions or more, got {block.type}",
            "add a dimension with x[:, None]",
        )
    if not k_pack and format_ != "e2m1":
        raise error(
            f'tl.dot_scaled: {side}_k_pack=False is for "e2m1", got {format_}', "leave it out"
        )
    if block.dtype == dtype:
        return block
    if bits is None or block.dtype not in (bits, _SIGNED[bits]):
        raise error(
            f"tl.dot_scaled: {side} in the format {format_} must be {dtype}"
            f"{'' if bits is None else f' or {bits}'}, got {block.dtype}",
            "convert it, or name its own format",
        )
    return bitcast(block, dtype)


_SIGNED = {ty.uint8: ty.int8, ty.uint16: ty.int16}


def _check_groups(lhs_scale: object, rhs_scale: object, depth: int) -> None:
    """A scale of either side is for as many elements."""
    if isinstance(lhs_scale, tensor) and isinstance(rhs_scale, tensor):
        sizes = [depth // scale.shape[-1] for scale in (lhs_scale, rhs_scale)]
        if sizes[0] != sizes[1]:
            raise error(
                f"tl.dot_scaled: lhs_scale is for {sizes[0]} elements each, rhs_scale for "
                f"{sizes[1]}",
                "repeat the scales of one side for one of the sizes",
            )


def _check_scale(side: str, scale: object, rows: tuple[int, ...], depth: int) -> None:
    """The scale has one number for each of `rows` and each 32 or 16 of `depth` elements."""
    if scale is None:
        return
    found = scale.type if isinstance(scale, tensor) else shown(scale)
    if not isinstance(scale, tensor) or scale.dtype not in _SCALES:
        raise error(
            f"tl.dot_scaled: {side}_scale must be a block of uint8 (powers of two), float8e4nv or "
            f"float8e5, got {found}",
            "other scales are not supported: multiply the operand by them, and use tl.dot",
        )
    if depth < min(_SCALE_BLOCKS):
        raise error(
            f"tl.dot_scaled: the inner size must be {min(_SCALE_BLOCKS)} elements or more with "
            f"{side}_scale",
            "leave the scales out, or load more of K",
        )
    shapes = [[*rows, depth // block] for block in _SCALE_BLOCKS if depth >= block]
    if list(scale.shape) not in shapes:
        raise error(
            f"tl.dot_scaled: {side}_scale must have shape {' or '.join(map(str, shapes))}, got "
            f"{found}",
            "one scale for 32 or 16 elements along K, also of rhs: (N, K / 32) or (N, K / 16)",
        )
