"""Rules of loads, stores and atomics."""

from typing import Any

from proton.base.words import shown
from proton.dialect import tt_block, tt_memory
from proton.dialect.attributes import READS
from proton.dialect.builtin import string_attr
from proton.dialect.mlir import Attribute, Operation, Value, ir
from proton.dialect.walk import producer_of
from proton.frontend.builder import (
    agreed,
    broadcast_all,
    broadcast_to,
    error,
    memory_type,
    to_ir,
    wrap,
)
from proton.frontend.promotion import bitcast, cast, to_bool
from proton.frontend.rules import rule
from proton.language import memory
from proton.language import types as ty
from proton.language.function import Builtin
from proton.language.value import tensor

# The cache modifiers that Triton takes.
_LOAD_CACHE = ("", ".ca", ".cg", ".cs", ".cv")
_STORE_CACHE = ("", ".wb", ".cg", ".cs", ".wt")


def _pointer(value: Any, what: str, *, writes: bool = False, blocks: bool = False) -> tensor:
    """The pointers of an access; `blocks` says that one to a block will do."""
    type_ = value.dtype if isinstance(value, tensor) else None
    if not isinstance(type_, ty.pointer_type):
        found = value.type if isinstance(value, tensor) else shown(value)
        raise error(
            f"{what}: the first argument must be a pointer or a block of pointers, got {found}",
            "add offsets to a pointer argument",
        )
    if writes and type_.const:
        raise error(
            f"{what}: Cannot store to a constant pointer ({value.type})",
            "leave tl.const out of the parameter's annotation",
        )
    if type_.block is not None and not blocks:
        raise error(
            f"{what} takes no block pointer ({value.type})",
            "make pointers with tl.arange, or a tensor descriptor",
        )
    assert isinstance(value, tensor)
    return value


def _choice(value: object, choices: tuple[str, ...], what: str, hint: str) -> Attribute:
    if value not in choices:
        known = ", ".join(map(repr, choices))
        raise error(f"{what} must be one of {known}, got {shown(value)}", hint)
    return string_attr(value)


def _cache(value: object, choices: tuple[str, ...]) -> Attribute:
    hint = "leave it out: caching changes the speed only, and nothing on the CPU"
    return _choice(value or "", choices, "cache_modifier", hint)


def _eviction(value: object) -> Attribute:
    hint = "leave it out: eviction changes the speed only, and nothing on the CPU"
    return _choice(value or "", tt_memory.EVICTION_POLICIES, "eviction_policy", hint)


def load_caching(cache_modifier: object, eviction_policy: object) -> tuple[Attribute, Attribute]:
    """The attributes of a load that say how it is cached."""
    return _cache(cache_modifier, _LOAD_CACHE), _eviction(eviction_policy)


def _mask(pointer: tensor, mask: object, what: str) -> tensor | None:
    if mask is None:
        return None
    return broadcast_to(_mask_of(pointer, mask, what), pointer.type)


def _mask_of(pointer: tensor, mask: object, what: str) -> tensor:
    """A mask as it is given, if the pointer may have one of its rank."""
    if isinstance(mask, tensor) and not mask.dtype.is_bool():
        raise error(f"{what}: a mask is of int1, got {mask.type}", "write mask != 0")
    mask = to_bool(mask)
    if mask.is_block() and not pointer.is_block():
        raise error(
            f"{what}: a scalar pointer takes a scalar mask, got {mask.type}",
            "add tl.arange to the pointer to make a block of pointers",
        )
    return mask


def _saturated(other: Any, type_: ty.dtype) -> Any:
    """What stands for elements that a mask leaves out: of a float beyond an integer type what a
    conversion gives, as -inf is written for each type."""
    if not isinstance(other, float) or not type_.is_int():
        return other
    if other != other:
        return 0
    low, high = type_.get_int_min_value(), type_.get_int_max_value()
    return low if other <= low else high if other >= high else int(other)


def _loaded(
    pointer: Any, mask: object, other: object
) -> tuple[tensor, tensor | None, tensor | None]:
    """A load's pointers, its mask and what stands for elements that it leaves out, in their common
    shape: each element is read as often as it is asked for."""
    what, element = "tl.load", pointer.dtype.element_ty
    if mask is None:
        if other is not None:
            raise error(f"{what}: other needs a mask", "pass mask=..., or leave other out")
        return pointer, None, None
    chosen = _mask_of(pointer, mask, what)
    if other is None:
        pointer, chosen = broadcast_all(pointer, chosen)
        return pointer, chosen, None
    instead = cast(_saturated(other, memory_type(element)), memory_type(element))
    if instead.is_block() and not pointer.is_block():
        raise error(
            f"{what}: a scalar pointer takes a scalar other, got {instead.type}",
            "add tl.arange to the pointer to make a block of pointers",
        )
    pointer, chosen, instead = broadcast_all(pointer, chosen, instead)
    return pointer, chosen, instead


def _handle(value: tensor | None) -> Value | None:
    return None if value is None else value.handle


@rule(memory.load)
def load(
    pointer: Any,
    mask: object = None,
    other: object = None,
    boundary_check: object = (),
    padding_option: Any = "",
    cache_modifier: str = "",
    eviction_policy: str = "",
    volatile: bool = False,
) -> tensor:
    """Reads memory."""
    pointer = _pointer(pointer, "tl.load", blocks=True)
    caching = *load_caching(cache_modifier, eviction_policy), ir.BoolAttr.get(bool(volatile))
    if (block := _block_of(pointer)) is not None:
        options = boundary_check, padding_option, caching
        return _load_block(pointer, block, mask, other, *options)
    _refuse_block_options("tl.load", boundary_check=boundary_check, padding_option=padding_option)
    pointer, chosen, instead = _loaded(pointer, mask, other)
    element = pointer.dtype.element_ty
    type_ = ty.with_scalar(pointer.type, memory_type(element))
    op = tt_memory.LoadOp(
        pointer.handle,
        *caching,
        to_ir(type_),
        mask=_handle(chosen),
        other=_handle(instead),
    )
    value = wrap(op, type_)
    return cast(value, element) if element.is_bool() else value


@rule(memory.store)
def store(
    pointer: Any,
    value: Any,
    mask: object = None,
    boundary_check: object = (),
    cache_modifier: str = "",
    eviction_policy: str = "",
) -> None:
    """Writes memory."""
    pointer = _pointer(pointer, "tl.store", writes=True, blocks=True)
    caching = _cache(cache_modifier, _STORE_CACHE), _eviction(eviction_policy)
    if (block := _block_of(pointer)) is not None:
        _store_block(pointer, block, value, mask, boundary_check, caching)
        return
    _refuse_block_options("tl.store", boundary_check=boundary_check)
    element = pointer.dtype.element_ty
    pointer, value, mask = agreed(pointer, value, mask)
    value = _stored(pointer.type, value, element, "tl.store")
    mask = _mask(pointer, mask, "tl.store")
    tt_memory.StoreOp(
        pointer.handle,
        value.handle,
        *caching,
        mask=_handle(mask),
    )


# Block pointers


def _block_of(pointer: tensor) -> ty.block_type | None:
    return pointer.type.block if isinstance(pointer.type, ty.pointer_type) else None


def _load_block(
    pointer: tensor,
    block: ty.block_type,
    mask: object,
    other: object,
    boundary_check: object,
    padding: object,
    caching: tuple[Attribute, ...],
) -> tensor:
    """tl.load of a block pointer."""
    if mask is not None or other is not None:
        raise error(
            "tl.load: a block pointer takes neither mask nor other",
            'pass boundary_check=(0, 1) and padding_option="zero"',
        )
    if padding not in ("", None, *tt_block.PADDINGS):
        raise error(
            f'padding_option must be "zero" or "nan", got {shown(padding)}',
            "leave it out where boundary_check is",
        )
    if padding == "nan" and not block.scalar.is_floating():
        raise error(f'padding_option="nan" needs floats, got {block}', 'pass "zero"')
    in_memory = memory_type(block)
    op = tt_memory.LoadOp(pointer.handle, *caching, to_ir(in_memory))
    _set_boundary_check(op, boundary_check, len(block.shape))
    if padding:
        op.operation.attributes[tt_block.PADDING] = string_attr(padding)
    return cast(wrap(op, in_memory), block.scalar)


def _store_block(
    pointer: tensor,
    block: ty.block_type,
    value: Any,
    mask: object,
    boundary_check: object,
    caching: tuple[Attribute, ...],
) -> None:
    """tl.store to a block pointer."""
    if mask is not None:
        raise error(
            "tl.store: a block pointer takes no mask", "pass boundary_check=(0, 1), or tl.where"
        )
    stored = _stored(block, value, block.scalar, "tl.store")
    op = tt_memory.StoreOp(pointer.handle, stored.handle, *caching)
    _set_boundary_check(op, boundary_check, len(block.shape))


def _set_boundary_check(op: Operation, dims: object, rank: int) -> None:
    dims = tuple(dims) if isinstance(dims, tuple | list) else (dims,)
    fits = all(isinstance(d, int) and 0 <= d < rank for d in dims)
    if not fits or len(set(dims)) != len(dims):
        raise error(
            f"boundary_check must list some of the dimensions 0 to {rank - 1}, got {shown(dims)}",
            "for example boundary_check=(0,)",
        )
    if dims:
        op.operation.attributes[tt_block.BOUNDARY_CHECK] = ir.DenseI32ArrayAttr.get(sorted(dims))


def _refuse_block_options(what: str, **options: object) -> None:
    for name, value in options.items():
        if value not in (None, "", ()):
            raise error(
                f"{what}: {name} is for block pointers", "pass a mask, or use tl.make_block_ptr"
            )


def _stored(like: ty.dtype, value: object, element: ty.dtype, what: str) -> tensor:
    """What is written: as memory has it, in the shape of the pointers."""
    if isinstance(value, tensor) and value.is_block() and not like.shape:
        raise error(
            f"{what}: a scalar pointer takes a scalar, got {value.type}",
            "reduce the value, or add tl.arange to the pointer",
        )
    stored = cast(value, element)
    if element.is_bool():
        stored = cast(stored, ty.int8)
    return broadcast_to(stored, like)


def _sem(value: object) -> Attribute:
    hint = 'leave it out for "acq_rel", the strongest'
    return _choice(value or "acq_rel", tt_memory.MEMORY_SEMANTICS, "sem", hint)


def _scope(value: object) -> Attribute:
    hint = 'leave it out for "gpu", all programs of a launch'
    return _choice(value or "gpu", tt_memory.MEMORY_SCOPES, "scope", hint)


def _rmw(
    name: str,
    pointer: Any,
    val: Any,
    mask: Any,
    sem: Any,
    scope: Any,
    *,
    floats: str | None,
    least_bits: int = 32,
) -> tensor:
    what = f"tl.atomic_{name}"
    pointer = _pointer(pointer, what, writes=True)
    element = pointer.dtype.element_ty
    value = cast(val, element)
    pointer, value, mask = agreed(pointer, value, mask)
    pointer, value = broadcast_all(pointer, value)
    check_atomic_element(element, what, floats is not None, least_bits)
    kind = name
    if element.is_floating() and floats:
        kind = floats
    elif element.is_int_unsigned() and name in ("max", "min"):
        kind = f"u{name}"
    op = tt_memory.AtomicRMWOp(
        pointer.handle,
        value.handle,
        string_attr(kind),
        _sem(sem),
        _scope(scope),
        to_ir(value.type),
        mask=_handle(_mask(pointer, mask, what)),
    )
    return wrap(op, value.type)


def check_atomic_element(element: ty.dtype, what: str, floats: bool, least_bits: int = 32) -> None:
    """Raises CompilationError where an atomic is not defined on elements; `floats`: on such."""
    if element.is_floating() and not floats:
        raise error(f"{what} is not defined on {element}", "it takes integers")
    is_narrow = element.is_int() and element.primitive_bitwidth < least_bits
    if is_narrow or element.is_fp8() or element.is_ptr():
        raise error(
            f"{what} is not defined on {element}",
            f"use integers of {least_bits} to 64 bits, or floats of 16 to 64",
        )


_BYTE = 8  # bits
# op -> (its name, its name on floats; None where it takes integers only)
_RMW: dict[Builtin, tuple[str, str | None]] = {
    memory.atomic_add: ("add", "fadd"),
    memory.atomic_max: ("max", "fmax"),
    memory.atomic_min: ("min", "fmin"),
    memory.atomic_and: ("and", None),
    memory.atomic_or: ("or", None),
    memory.atomic_xor: ("xor", None),
    memory.atomic_xchg: ("xchg", "xchg"),
}


def _define_rmw(op: Builtin, name: str, floats: str | None) -> None:
    @rule(op)
    def _(
        pointer: object, val: object, mask: object = None, sem: object = None, scope: object = None
    ) -> tensor:
        return _rmw(name, pointer, val, mask, sem, scope, floats=floats)


for _op, (_name, _floats) in _RMW.items():
    _define_rmw(_op, _name, _floats)


@rule(memory.atomic_cas)
def _atomic_cas(pointer: Any, cmp: Any, val: Any, sem: Any = None, scope: Any = None) -> tensor:
    what = "tl.atomic_cas"
    pointer = _pointer(pointer, what, writes=True)
    element = pointer.dtype.element_ty
    check_atomic_element(element, what, True, least_bits=16)
    pointer, cmp, val = agreed(pointer, cmp, val)
    expected = broadcast_to(cast(cmp, element), pointer.type)
    value = broadcast_to(cast(val, element), pointer.type)
    op = tt_memory.AtomicCASOp(
        pointer.handle, expected.handle, value.handle, _sem(sem), _scope(scope), to_ir(value.type)
    )
    return wrap(op, value.type)


@rule(memory.atomic_load)
def _atomic_load(pointer: Any, mask: Any = None, sem: Any = None, scope: Any = None) -> tensor:
    """As `or` with 0, on the bits, which is a load where the chip has such."""
    what = "tl.atomic_load"
    pointer = _pointer(pointer, what)
    element = pointer.dtype.element_ty
    check_atomic_element(element, what, True, least_bits=1)
    words = _words(pointer)
    sem = _one_of(sem, "acquire", what)
    found = _rmw("or", words, 0, mask, sem, scope, floats=None, least_bits=_BYTE)
    producer_of(found.handle).attributes[READS] = ir.UnitAttr.get()
    return cast(found, element) if element.is_bool() else bitcast(found, element)


@rule(memory.atomic_store)
def _atomic_store(
    pointer: Any, val: object, mask: object = None, sem: object = None, scope: object = None
) -> None:
    what = "tl.atomic_store"
    pointer = _pointer(pointer, what, writes=True)
    element = pointer.dtype.element_ty
    check_atomic_element(element, what, True, least_bits=1)
    value = cast(val, element)
    words = _words(pointer)
    bits = words.dtype.element_ty
    value = cast(value, bits) if element.is_bool() else bitcast(value, bits)
    sem = _one_of(sem, "release", what)
    _rmw("xchg", words, value, mask, sem, scope, floats=None, least_bits=_BYTE)


def _words(pointer: Any) -> Any:
    """Pointers to the bits of elements: integers of a byte or more."""
    width = max(_BYTE, pointer.dtype.element_ty.primitive_bitwidth)
    return cast(pointer, ty.pointer_type(ty.str_to_ty(f"u{width}")))


def _one_of(sem: object, strongest: str, what: str) -> object:
    """The memory semantics of an access in one direction."""
    if sem not in (None, strongest, "relaxed"):
        raise error(
            f'{what}: sem must be "{strongest}" or "relaxed", got {shown(sem)}',
            f'leave it out for "{strongest}"',
        )
    return sem or strongest
