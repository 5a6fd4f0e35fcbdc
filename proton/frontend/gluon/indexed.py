"""Rules of shared memory whose elements are named by indices."""

from typing import Any

from proton.base.words import shown
from proton.dialect import ttg
from proton.dialect.builtin import i32_attr, string_attr
from proton.dialect.mlir import Value
from proton.frontend.builder import as_tensor, broadcast_all, error, to_ir, wrap
from proton.frontend.gluon.memory import accessed, held, type_of
from proton.frontend.gluon.tensors import laid_out
from proton.frontend.memory import check_atomic_element
from proton.frontend.promotion import cast
from proton.frontend.rules import rule
from proton.language import types as ty
from proton.language.gluon.core import shared_memory_descriptor
from proton.language.value import tensor


def _indexed(self: object, indices: object, axis: Any, what: str) -> tuple[tensor, tensor]:
    source, found = accessed(self, what), laid_out(indices, what)
    own = type_of(source)
    if len(found.shape) != len(own.shape):
        raise error(
            f"indices rank must match memdesc rank: got {len(found.shape)} and {len(own.shape)}",
            "add dimensions with x[:, None]",
        )
    if not isinstance(axis, int) or not 0 <= axis < len(own.shape):
        raise error(
            f"axis {shown(axis)} is out of bounds for memdesc rank {len(own.shape)}", "count from 0"
        )
    if not found.dtype.is_int():
        raise error(f"indices must have integer dtype, got {found.dtype}", "add .to(gl.int32)")
    return source, cast(found, ty.int32)


@rule(shared_memory_descriptor.gather)
def _gather(self: object, indices: object, axis: int) -> tensor:
    source, found = _indexed(self, indices, axis, "gather")
    element = type_of(source).element_ty
    type_ = ty.with_scalar(found.type, held(element))
    op = ttg.LocalGatherOp(source.handle, found.handle, i32_attr(axis), to_ir(type_))
    return cast(wrap(op, type_), element)


def _scattered(
    self: object, values: object, indices: object, axis: Any, mask: object, what: str
) -> tuple[tensor, tensor, tensor, Value | None]:
    target, found = _indexed(self, indices, axis, what)
    written, element = laid_out(values, what), type_of(target).element_ty
    if written.dtype != element:
        raise error(
            "values element type must match destination element type: got "
            f"{written.dtype} and {element}",
            f"convert it with .to({element!s})",
        )
    if mask is None:
        written, found = broadcast_all(written, found)
        return target, written, found, None
    chosen = as_tensor(mask)
    if not chosen.dtype.is_bool():
        raise error(f"mask must have boolean dtype, got {chosen.dtype}", "write mask != 0")
    written, found, chosen = broadcast_all(written, found, chosen)
    return target, written, found, chosen.handle


@rule(shared_memory_descriptor.scatter)
def _scatter(self: object, values: object, indices: object, axis: int) -> None:
    target, written, found, _ = _scattered(self, values, indices, axis, None, "scatter")
    stored = cast(written, held(written.dtype))
    ttg.LocalScatterOp(target.handle, stored.handle, found.handle, i32_attr(axis))


def _define_atomic(kind: str, op: Any) -> None:
    what = f"atomic_scatter_{kind}"

    @rule(op)
    def _atomic(
        self: object, values: object, indices: object, axis: int, mask: object = None
    ) -> tensor:
        target, written, found, chosen = _scattered(self, values, indices, axis, mask, what)
        element = written.dtype
        takes_floats = kind in ("add", "xchg")
        check_atomic_element(element, what, takes_floats)
        name = "fadd" if kind == "add" and element.is_floating() else kind
        if kind in ("max", "min") and element.is_int_unsigned():
            name = f"u{kind}"
        made = ttg.LocalAtomicScatterOp(
            target.handle,
            written.handle,
            found.handle,
            string_attr(name),
            i32_attr(axis),
            to_ir(written.type),
            mask=chosen,
        )
        return wrap(made, written.type)


for _kind in ("add", "max", "min", "and", "or", "xor", "xchg"):
    _define_atomic(_kind, getattr(shared_memory_descriptor, f"atomic_scatter_{_kind}"))
