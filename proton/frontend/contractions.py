"""The rule of matrix products."""

from typing import Any

from proton.dialect import tt
from proton.frontend.builder import (
    as_tensor,
    constant,
    error,
    string_attr,
    to_ir,
    wrap,
)
from proton.frontend.rules import rule
from proton.language import core
from proton.language import types as ty
from proton.language.value import tensor


@rule(core.dot)
def _dot(
    input: Any,
    other: Any,
    acc: Any = None,
    input_precision: str | None = None,
    allow_tf32: bool | None = None,
    max_num_imprecise_acc: int | None = None,
    out_dtype: ty.dtype | None = None,
) -> tensor:
    a, b = as_tensor(input), as_tensor(other)
    if input_precision is None:
        input_precision = "ieee" if allow_tf32 is False else "tf32"
    if input_precision not in tt.INPUT_PRECISIONS:
        raise error(
            f"input_precision must be one of {', '.join(tt.INPUT_PRECISIONS)}, "
            f"got {input_precision!r}",
            'leave it out; the CPU computes as "ieee"',
        )
    if out_dtype is not None and not isinstance(out_dtype, ty.dtype):
        raise error(
            f"tl.dot: out_dtype must be a dtype, got {out_dtype!r}", "pass tl.float32 or the like"
        )
    shape = _dot_shape(a, b)
    type_ = ty.block_type(_dot_type(a.dtype, b.dtype, out_dtype, acc), shape)
    if acc is None:
        acc = constant(0, type_)
    elif not isinstance(acc, tensor) or acc.shape != shape:
        found = acc.type if isinstance(acc, tensor) else repr(acc)
        raise error(
            f"tl.dot: acc must have shape {list(shape)}, got {found}",
            f"start from tl.zeros({shape}, dtype={type_.scalar.name})",
        )
    op = tt.DotOp(a.handle, b.handle, acc.handle, string_attr(input_precision), to_ir(type_))
    return wrap(op, type_)


def _dot_shape(a: tensor, b: tensor) -> tuple[int, int]:
    if len(a.shape) != 2 or len(b.shape) != 2:
        raise error(
            f"tl.dot takes two-dimensional blocks, got {list(a.shape)} and {list(b.shape)}",
            "batched products are not supported yet: loop over the batch, or use the grid",
        )
    if a.shape[1] != b.shape[0]:
        raise error(
            f"tl.dot: inner sizes must agree, got {list(a.shape)} and {list(b.shape)}",
            "transpose one side with tl.trans",
        )
    return a.shape[0], b.shape[1]


def _dot_type(a: ty.dtype, b: ty.dtype, out: ty.dtype | None, acc: Any) -> ty.dtype:
    if a != b and not (a.is_fp8() and b.is_fp8()):
        raise error(f"tl.dot: both sides must have one dtype, got {a} and {b}", "cast one side")
    if a.is_int():
        if a.primitive_bitwidth != 8:
            raise error(
                f"tl.dot takes int8 among integers, got {a}", "convert with .to(tl.float32)"
            )
        default = ty.int32
    else:
        default = ty.float64 if a.is_fp64() else ty.float32
    result = acc.dtype if isinstance(acc, tensor) else out or default
    if out is not None and out != result:
        raise error(f"tl.dot: acc is {result} and out_dtype {out}", "leave out_dtype out")
    if result.is_floating() != a.is_floating():
        raise error(
            f"tl.dot of {a} cannot give {result}",
            "floats give floats and int8 gives int32: convert the result",
        )
    return result
