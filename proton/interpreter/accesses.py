"""What the ops of `tt` that access memory are in numpy."""

import numpy as np

from proton.dialect import tt
from proton.dialect.builtin import segments_of
from proton.dialect.mlir import Operation
from proton.interpreter.descriptors import load_block, store_block
from proton.interpreter.formats import Array, format_of
from proton.interpreter.interface import Places, RunningProgram
from proton.interpreter.memory import combining, load_elements, store_elements, update_elements
from proton.interpreter.plan import Function, evaluates


@evaluates(tt.LoadOp)
def _load(op: Operation) -> Function:
    form = format_of(op.results[0].type)
    if tt.is_block_pointer(op.operands[0].type):
        return load_block(op, form)
    _, has_mask, has_other = segments_of(op)

    def load(program: RunningProgram, pointer: Array, *rest: Array) -> Array:
        mask = rest[0] if has_mask else np.asarray(True)
        found = load_elements(program, pointer, mask, form)
        return np.where(mask, found, rest[-1]) if has_other else found

    return load


@evaluates(tt.StoreOp)
def _store(op: Operation) -> Function:
    if tt.is_block_pointer(op.operands[0].type):
        return store_block(op)
    return lambda program, pointer, value, mask=True: store_elements(program, pointer, mask, value)


@evaluates(tt.AtomicRMWOp)
def _rmw(op: Operation) -> Function:
    combine = combining(op.attributes["rmw_op"].value, format_of(op.results[0].type))
    return lambda program, pointer, value, mask=True: update_elements(
        program, pointer, mask, value, combine
    )


@evaluates(tt.AtomicCASOp)
def _cas(op: Operation) -> Function:
    """Compares bits, as compiled code does."""

    def cas(program: RunningProgram, pointer: Array, expected: Array, value: Array) -> Array:
        block, wanted, new = (np.atleast_1d(x) for x in (pointer, expected, value))

        def change(old: Array, places: Places) -> Array:
            bits = f"u{old.dtype.itemsize}"
            same = old.view(bits) == np.ascontiguousarray(wanted[places]).view(bits)
            return np.where(same, new[places], old)

        found = program.memory.update(program, block, np.ones(1, bool), change, new.dtype)
        return found.reshape(np.shape(pointer))

    return cas
