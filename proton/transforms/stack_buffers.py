"""Gives every local buffer of a kernel a fixed place: small ones on the stack, large in scratch.

Loops do not return what they allocate (see `loop-destinations`), so a buffer's contents never
outlive one iteration and one place per `memref.alloc` is enough. Scratch is memory that the
grid loop allocates once per range of programs; a kernel that needs it gets an argument.
"""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from proton.dialect.abi import Argument, add_argument
from proton.dialect.attributes import SCRATCH_BYTES
from proton.dialect.builtin import i64_attr
from proton.dialect.memory import BUFFER_ALIGNMENT, byte_pointer, memref_at, pointer_type
from proton.dialect.mlir import Module, Operation, Type, ir, memref
from proton.dialect.walk import kernel_functions, ops_named, replace
from proton.passes import Pass, register

# A thread's stack is 8 MiB by default; half a MiB leaves room for everything else, and a
# buffer above 64 KiB gains nothing from being there.
STACK_BUFFER_BYTES = 64 << 10
STACK_TOTAL_BYTES = 512 << 10


@register
@dataclass(frozen=True)
class StackBuffers(Pass):
    """Places local buffers on the stack or in scratch."""

    name: ClassVar[str] = "stack-buffers"

    def run(self, module: Module) -> None:
        for function in kernel_functions(module):
            _place(function)


def _bytes(type_: Type) -> int:
    element = type_.element_type
    width = 64 if isinstance(element, ir.IndexType) else element.width
    size = math.prod(type_.shape) * max(1, width // 8)
    return -(-size // BUFFER_ALIGNMENT) * BUFFER_ALIGNMENT


def _place(function: Operation) -> None:
    stack = scratch = 0
    base: Any = None
    entry = function.regions[0].blocks[0]
    for op in ops_named(function, "memref.alloc"):
        type_ = op.results[0].type
        size = _bytes(type_)
        small = size <= STACK_BUFFER_BYTES and stack + size <= STACK_TOTAL_BYTES
        if not small and base is None:
            base = add_argument(function, Argument.SCRATCH, pointer_type())
        with ir.InsertionPoint.at_block_begin(entry), op.location:
            if small:
                stack += size
                place = memref.AllocaOp(type_, [], [], alignment=BUFFER_ALIGNMENT).result
            else:
                address = byte_pointer(base, scratch)
                place = memref_at(address, tuple(type_.shape), type_.element_type)
                scratch += size
        replace(op, [place])
    if scratch:
        function.attributes[SCRATCH_BYTES] = i64_attr(scratch)
