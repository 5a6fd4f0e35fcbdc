"""Which atomics GPUs have as one instruction, and of how many elements at once."""

from proton.dialect import isa, tt
from proton.dialect.diagnostics import element_of
from proton.dialect.mlir import Operation, Type

WIDE = 90  # the first architecture whose atomics take 16 bytes
_WIDE_BYTES = 16
_INTEGERS = frozenset(["add", "max", "umax", "min", "umin", "and", "or", "xor", "xchg"])
# Of each type: the kinds, and the first architecture.
_NATIVE = {
    "i32": (_INTEGERS, 80),
    "i64": (_INTEGERS, 80),
    "f32": (frozenset(["fadd"]), 80),
    "f64": (frozenset(["fadd"]), 80),
    "f16": (frozenset(["fadd"]), 80),
    "bf16": (frozenset(["fadd"]), 90),
}


def is_native(kind: str, element: Type, arch: int) -> bool:
    """True if there is an instruction for what `tt` calls `kind`."""
    kinds, first = _NATIVE.get(str(element), (frozenset(), 0))
    return kind in kinds and arch >= first


def atomic_elements(op: Operation, arch: int) -> int:
    """How many elements side by side one instruction of a `tt.atomic_*` takes at most."""
    if not isa(op, tt.AtomicRMWOp):
        return 1
    kind, element = str(op.attributes["rmw_op"].value), element_of(op.operands[1])
    if not is_native(kind, element, arch) or str(element) not in ("f16", "bf16", "f32"):
        return 1
    if arch >= WIDE:
        return _WIDE_BYTES * 8 // int(element.width)
    return 2 if str(element) == "f16" else 1
