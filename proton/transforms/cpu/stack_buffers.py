"""Gives every local buffer of a kernel a fixed place: small ones on the stack, large in scratch.

Loops do not return what they allocate (see `loop-destinations`), so a buffer's contents never
outlive one iteration and one place per `memref.alloc` is enough. Scratch is memory that the
grid loop allocates once per range of programs; a kernel that needs it gets an argument. A function
that it calls takes what lies behind the caller's.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

from proton.analysis.call_graph import call_graph, callee_name, function_name
from proton.dialect.abi import AddedArgument, argument, pass_arguments
from proton.dialect.attributes import KERNEL, PARTITION, SCRATCH_BYTES
from proton.dialect.builtin import bits_of, i64_attr
from proton.dialect.memory import BUFFER_ALIGNMENT, byte_pointer, memref_at, pointer_type
from proton.dialect.mlir import Module, Operation, Type, func, ir, memref
from proton.dialect.walk import before, called_functions, kernel_functions, ops_named, replace
from proton.passes import Pass, register

# A thread's stack is 8 MiB by default; half a MiB leaves room for everything else, and a
# buffer above 64 KiB gains nothing from being there.
STACK_BUFFER_BYTES = 64 << 10
STACK_TOTAL_BYTES = 512 << 10
# Calls nest (MAX_CALL_DEPTH of the front end): each of their frames is small.
CALLEE_STACK_BYTES = 64 << 10


@register
@dataclass(frozen=True)
class StackBuffers(Pass):
    """Places local buffers on the stack or in scratch."""

    name: ClassVar[str] = "stack-buffers"

    def run(self, module: Module) -> None:
        functions = call_graph(module).callees_first()
        plans = {function_name(function): _Plan.of(function) for function in functions}
        for kernel in kernel_functions(module):
            used = [plans[function_name(f)] for f in (kernel, *called_functions(kernel))]
            if any(plan.large for plan in used):
                pass_arguments(kernel, {AddedArgument.SCRATCH: pointer_type()})
        partitions = {function_name(f) for f in functions if PARTITION in f.attributes}
        scratch: dict[str, int] = {}  # bytes that a function takes, with all that it calls
        for function in functions:
            own = _place(function, plans[function_name(function)])
            scratch[function_name(function)] = own + _behind(function, own, scratch, partitions)
        for kernel in kernel_functions(module):
            if size := scratch[function_name(kernel)]:
                kernel.attributes[SCRATCH_BYTES] = i64_attr(size)


def _bytes(type_: Type) -> int:
    size = math.prod(type_.shape) * max(1, bits_of(type_.element_type) // 8)
    return -(-size // BUFFER_ALIGNMENT) * BUFFER_ALIGNMENT


@dataclass
class _Plan:
    """Which buffers of a function are on the stack, and which in scratch."""

    small: list[Operation]
    large: list[Operation]

    @classmethod
    def of(cls, function: Operation) -> "_Plan":
        limit = STACK_TOTAL_BYTES if KERNEL in function.attributes else CALLEE_STACK_BYTES
        plan, stack = cls([], []), 0
        for op in ops_named(function, memref.AllocOp):
            size = _bytes(op.results[0].type)
            is_small = size <= STACK_BUFFER_BYTES and stack + size <= limit
            stack += size if is_small else 0
            (plan.small if is_small else plan.large).append(op)
        return plan


def _place(function: Operation, plan: _Plan) -> int:
    """Gives each buffer its place; the bytes of those in scratch."""
    entry, scratch = function.regions[0].blocks[0], 0
    for op in plan.small:
        with ir.InsertionPoint.at_block_begin(entry), op.location:
            place = memref.AllocaOp(op.results[0].type, [], [], alignment=BUFFER_ALIGNMENT).result
        replace(op, [place])
    for op in plan.large:
        type_ = op.results[0].type
        with ir.InsertionPoint.at_block_begin(entry), op.location:
            address = byte_pointer(argument(function, AddedArgument.SCRATCH), scratch)
            place = memref_at(address, tuple(type_.shape), type_.element_type)
        scratch += _bytes(type_)
        replace(op, [place])
    return scratch


def _behind(function: Operation, own: int, scratch: dict[str, int], partitions: set[str]) -> int:
    """Has the callees take scratch behind the function's own; how much they do at most."""
    if not scratch:  # none is known, so there is none
        return 0
    calls = [call for call in ops_named(function, func.CallOp) if callee_name(call) in scratch]
    most = first = 0
    # Partitions run at once, and while others are called: theirs lies in front.
    for call in sorted(calls, key=lambda call: callee_name(call) not in partitions):
        offset, used = own + first, scratch[callee_name(call)]
        most = max(most, first + used)
        first += used if callee_name(call) in partitions else 0
        if offset:
            base = argument(function, AddedArgument.SCRATCH)
            with before(call):
                behind = byte_pointer(base, offset)
            for place, operand in enumerate(call.operands):
                if operand == base:
                    call.operands[place] = behind
    return most
