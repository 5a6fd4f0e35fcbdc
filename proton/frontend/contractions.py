"""The rule of matrix products."""

from typing import Any

from proton.base.words import shown
from proton.dialect import tt
from proton.dialect.builtin import i32_attr, string_attr
from proton.frontend.builder import as_tensor, constant, error, to_ir, wrap
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
    precision = _input_precision(input_precision, allow_tf32)
    if out_dtype is not None and not isinstance(out_dtype, ty.dtype):
        raise error(
            f"tl.dot: out_dtype must be a dtype, got {shown(out_dtype)}",
            "pass tl.float32 or the like",
        )
    shape = _dot_shape(a, b)
    type_ = ty.block_type(_dot_type(a.dtype, b.dtype, out_dtype, acc), shape)
    if acc is None:
        acc = constant(0, type_)
    elif not isinstance(acc, tensor) or acc.shape != shape:
        found = acc.type if isinstance(acc, tensor) else shown(acc)
        raise error(
            f"tl.dot: acc must have shape {list(shape)}, got {found}",
            f"start from tl.zeros({shape}, dtype={type_.scalar.name})",
        )
    imprecise = _imprecise_acc(max_num_imprecise_acc, a.dtype, b.dtype, a.shape[-1])
    op = tt.DotOp(
        *(side.handle for side in (a, b, acc)),
        string_attr(precision),
        i32_attr(imprecise),
        to_ir(type_),
    )
    return wrap(op, type_)


def _input_precision(asked: Any, allow_tf32: bool | None) -> str:
    """The precision of fp32 operands, as Triton spells it: any case is taken."""
    if asked is None:
        return "ieee" if allow_tf32 is False else "tf32"
    if allow_tf32 is not None:
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


def _imprecise_acc(asked: Any, a: ty.dtype, b: ty.dtype, depth: int) -> int:
    """How many products of 8-bit floats may be added up in less than fp32: any number where
    nothing is asked for, as Triton has it; of other operands none."""
    if not (a.is_fp8() and b.is_fp8()):
        return 0
    if asked is None:
        return tt.ANY_IMPRECISE_ACC
    if not isinstance(asked, int) or not 0 <= asked <= depth:
        raise error(
            f"max_num_imprecise_acc must be from 0 to {depth}, the inner size, got {shown(asked)}",
            "leave it out for the fastest, pass 0 for sums in fp32",
        )
    return asked


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
    """The type of the result, by Triton's rule: `out` and the accumulator choose where fp16 or
    fp8 leave a choice."""
    if a != b and not (a.is_fp8() and b.is_fp8()):
        raise error(f"tl.dot: both sides must have one dtype, got {a} and {b}", "cast one side")
    if a.is_int() and a != ty.int8:
        raise error(f"tl.dot takes int8 among integers, got {a}", "convert with .to(tl.float32)")
    if out == ty.bfloat16 and not a.is_int():
        raise error(
            "tl.dot: out_dtype cannot be bfloat16",
            "leave it out, and convert the result with .to(tl.bfloat16)",
        )
    found = acc.dtype if isinstance(acc, tensor) else None
    if a.is_fp16() or a.is_fp8():
        result = out or found or ty.float32
        if result not in (ty.float16, ty.float32):
            raise error(
                f"tl.dot of {a} gives float32 or float16, not {result}", "convert the result"
            )
    else:
        result = ty.int32 if a.is_int() else ty.float64 if a.is_fp64() else ty.float32
    if found is not None and found != result:
        raise error(
            f"tl.dot of {a} gives {result}, and acc is {found}",
            f"accumulate in {result}, and convert the result",
        )
    return result
