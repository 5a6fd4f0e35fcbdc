"""Which atomics GPUs have as one instruction, and of how many elements at once."""

from proton.base.chips.chip import Chip
from proton.dialect import isa, tt
from proton.dialect.attributes import READS
from proton.dialect.diagnostics import element_of
from proton.dialect.mlir import Operation, Type

_PACKED = ("f16", "bf16", "f32")  # elements of which one atomic adds to several


def is_native(kind: str, element: Type, chip: Chip) -> bool:
    """True if there is an instruction for what `tt` calls `kind`."""
    return (str(element), kind) in chip.atomics


def is_store(op: Operation) -> bool:
    """True of an exchange that is a store: nobody asks what was there, and nothing behind it waits
    for it."""
    is_exchange = str(op.attributes["rmw_op"].value) == "xchg" and not list(op.results[0].uses)
    return is_exchange and str(op.attributes["sem"].value) in ("relaxed", "release")


def atomic_elements(op: Operation, chip: Chip) -> int:
    """How many elements side by side one instruction of a `tt.atomic_*` takes at most."""
    if not isa(op, tt.AtomicRMWOp):
        return 1
    if READS in op.attributes or is_store(op):
        return max(1, chip.atomic_access_bytes * 8 // int(element_of(op.operands[1]).width))
    kind, element = str(op.attributes["rmw_op"].value), element_of(op.operands[1])
    if not is_native(kind, element, chip) or str(element) not in _PACKED:
        return 1
    return chip.atomic_bytes * 8 // int(element.width)
