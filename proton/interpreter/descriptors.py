"""Block pointers and tensor descriptors: a tensor in memory, of which blocks are accessed."""

import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from proton.dialect import isa, tt
from proton.dialect.builtin import segments_of
from proton.dialect.mlir import Operation, ir
from proton.interpreter.formats import Array, Format, format_of, pointers
from proton.interpreter.interface import RunningProgram
from proton.interpreter.memory import (
    combining,
    load_elements,
    store_elements,
    update_elements,
)
from proton.interpreter.plan import Function, evaluates
from proton.interpreter.shapes import number
from proton.layout.tensor_map import TF32


@dataclass(frozen=True)
class TensorInMemory:
    """A block pointer, with offsets, or a tensor descriptor, without. Sizes are in elements."""

    base: Array
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    itemsize: int
    offsets: tuple[int, ...] = ()

    def elements(
        self, offsets: tuple[object, ...], block: tuple[int, ...], checked: tuple[int, ...]
    ) -> tuple[np.ndarray, np.ndarray]:
        """(pointers, mask) of a block; the mask is false outside of the tensor in the dimensions
        `checked`. An offset may be an index of its own for each place of its dimension."""
        address, inside = np.zeros(block, np.int64), np.ones(block, bool)
        for axis, size in enumerate(block):
            shape = [size if axis == n else 1 for n in range(len(block))]
            start = np.asarray(offsets[axis], np.int64)
            index = (start if start.ndim else start + np.arange(size)).reshape(shape)
            address = address + index * self.strides[axis] * self.itemsize
            if axis in checked:
                inside = inside & (index >= 0) & (index < self.sizes[axis])
        return pointers(self.base["address"] + address, self.base["owner"]), inside


def _groups(segments: list[int], operands: tuple[object, ...]) -> list[tuple[Any, ...]]:
    ends = np.cumsum([0, *segments])
    return [operands[a:b] for a, b in itertools.pairwise(ends)]


def _ints(values: tuple[Any, ...]) -> tuple[int, ...]:
    return tuple(int(value) for value in values)


@evaluates(tt.MakeTensorPtrOp, tt.MakeTensorDescOp)
def _make(op: Operation) -> Function:
    segments, block = segments_of(op), op.results[0].type.target
    itemsize = format_of(block).itemsize

    def make(program: RunningProgram, *operands: object) -> TensorInMemory:
        (base,), sizes, strides, *offsets = _groups(segments, operands)
        where = [_ints(group) for group in (sizes, strides, *offsets)]
        return TensorInMemory(base, where[0], where[1], itemsize, *where[2:])

    return make


@evaluates(tt.AdvanceOp)
def _advance(op: Operation) -> Function:
    def advance(program: RunningProgram, pointer: TensorInMemory, *moves: object) -> TensorInMemory:
        moved = zip(pointer.offsets, _ints(moves), strict=True)
        return replace(pointer, offsets=tuple(offset + move for offset, move in moved))

    return advance


def _checked(op: Operation) -> tuple[int, ...]:
    """The dimensions in which a block pointer may reach over the tensor's ends."""
    attributes = op.attributes
    return tuple(attributes[tt.BOUNDARY_CHECK]) if tt.BOUNDARY_CHECK in attributes else ()


def _outside(form: Format, padding: str) -> Array:
    """What a block has outside of its tensor."""
    return form.narrow(np.float32(np.nan)) if padding == "nan" else np.zeros((), form.storage)


def load_block(op: Operation, form: Format) -> Function:
    """A load of a block pointer."""
    shape, checked = tuple(op.results[0].type.shape), _checked(op)
    padding = op.attributes[tt.PADDING].value if tt.PADDING in op.attributes else "zero"
    other = _outside(form, padding)

    def load(program: RunningProgram, pointer: TensorInMemory) -> Array:
        elements, inside = pointer.elements(pointer.offsets, shape, checked)
        return np.where(inside, load_elements(program, elements, inside, form), other)

    return load


def store_block(op: Operation) -> Function:
    """A store to a block pointer."""
    checked = _checked(op)

    def store(program: RunningProgram, pointer: TensorInMemory, value: Array) -> None:
        elements, inside = pointer.elements(pointer.offsets, value.shape, checked)
        store_elements(program, elements, inside, value)

    return store


# Tensor descriptors


def _described(
    desc: TensorInMemory, offsets: tuple[object, ...], shape: tuple[int, ...]
) -> tuple[np.ndarray, np.ndarray]:
    return desc.elements(offsets, shape, tuple(range(len(shape))))


@evaluates(tt.DescriptorSizeOp, tt.DescriptorStrideOp)
def _fact(op: Operation) -> Function:
    axis, form = number(op, "axis"), format_of(op.results[0].type)
    if isa(op, tt.DescriptorSizeOp):
        return lambda program, desc: form.storage.type(desc.sizes[axis])
    return lambda program, desc: form.storage.type(desc.strides[axis])


def _loads(op: Operation) -> Callable[..., Array]:
    """(program, descriptor, offsets) -> a block of the result's shape."""
    shape, form = tuple(op.results[0].type.shape), format_of(op.results[0].type)
    type_ = op.operands[0].type
    other, rounds = _outside(form, type_.outside), type_.loaded == TF32

    def load(program: RunningProgram, desc: TensorInMemory, offsets: tuple[object, ...]) -> Array:
        elements, inside = _described(desc, offsets, shape)
        loaded = np.where(inside, load_elements(program, elements, inside, form), other)
        return _rounded(loaded) if rounds else loaded

    return load


def _rounded(values: Array) -> Array:
    """fp32 to the nearest tf32, ties to even; what is not finite stays."""
    bits = values.view(np.uint32)
    nearest = (bits + (bits >> 13 & 1) + np.uint32(0xFFF)) & np.uint32(0xFFFFE000)
    return np.where(np.isfinite(values), nearest.view(np.float32), values)


@evaluates(tt.DescriptorLoadOp)
def _load(op: Operation) -> Function:
    load = _loads(op)
    return lambda program, desc, *offsets: load(program, desc, offsets)


@evaluates(tt.DescriptorGatherOp)
def _gather(op: Operation) -> Function:
    load = _loads(op)
    return lambda program, desc, rows, column: load(program, desc, (rows, column))


@evaluates(tt.DescriptorStoreOp)
def _store(op: Operation) -> Function:
    def store(
        program: RunningProgram, desc: TensorInMemory, value: Array, *offsets: object
    ) -> None:
        elements, inside = _described(desc, offsets, value.shape)
        store_elements(program, elements, inside, value)

    return store


@evaluates(tt.DescriptorScatterOp)
def _scatter(op: Operation) -> Function:
    def scatter(
        program: RunningProgram, desc: TensorInMemory, rows: Array, column: object, value: Array
    ) -> None:
        elements, inside = _described(desc, (rows, column), value.shape)
        store_elements(program, elements, inside, value)

    return scatter


@evaluates(tt.DescriptorReduceOp)
def _reduce(op: Operation) -> Function:
    form, kind = format_of(op.operands[1].type), op.attributes["kind"].value
    if kind in ("min", "max") and ir.BoolAttr(op.attributes["is_unsigned"]).value:
        kind = f"u{kind}"
    elif kind in ("add", "min", "max") and form.storage.kind != "i":
        kind = f"f{kind}"
    combine = combining(kind, form)

    def reduce(
        program: RunningProgram, desc: TensorInMemory, value: Array, *offsets: object
    ) -> None:
        elements, inside = _described(desc, offsets, value.shape)
        update_elements(program, elements, inside, value, combine)

    return reduce
