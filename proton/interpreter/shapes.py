"""What the ops of `tt` that make blocks, give them shapes and move pointers are in numpy."""

import time

import numpy as np

from proton.dialect import tt
from proton.dialect.mlir import Operation, ir
from proton.interpreter.formats import NOBODY, Array, format_of, pointers, signed
from proton.interpreter.interface import RunningProgram
from proton.interpreter.plan import Function, evaluates


def number(op: Operation, name: str) -> int:
    """An integer attribute."""
    return int(ir.IntegerAttr(op.attributes[name]).value)


def shape_of_result(op: Operation) -> tuple[int, ...]:
    """The shape of the first result; () of a scalar."""
    type_ = op.results[0].type
    return tuple(type_.shape) if isinstance(type_, ir.RankedTensorType) else ()


@evaluates(tt.GetProgramIdOp)
def _program_id(op: Operation) -> Function:
    axis = number(op, "axis")
    return lambda program: np.int32(program.place[axis])


@evaluates(tt.GetNumProgramsOp)
def _num_programs(op: Operation) -> Function:
    axis = number(op, "axis")
    return lambda program: np.int32(program.grid[axis])


@evaluates(tt.MakeRangeOp)
def _range(op: Operation) -> Function:
    value = np.arange(number(op, "start"), number(op, "end"), dtype=np.int32)
    value.flags.writeable = False
    return lambda program: value


@evaluates(tt.SplatOp)
def _splat(op: Operation) -> Function:
    """A view of the scalar; `np.broadcast_to` takes ten times as long to make it."""
    shape = shape_of_result(op)
    strides = (0,) * len(shape)

    def splat(program: RunningProgram, x: Array) -> Array:
        x = np.asarray(x)
        return np.ndarray(shape, x.dtype, x, 0, strides)

    return splat


@evaluates(tt.BroadcastOp)
def _broadcast(op: Operation) -> Function:
    shape = shape_of_result(op)
    return lambda program, x: np.broadcast_to(x, shape)


@evaluates(tt.UnsplatOp, tt.ReshapeOp, tt.ExpandDimsOp)
def _reshape(op: Operation) -> Function:
    shape = shape_of_result(op)
    return lambda program, x: np.reshape(x, shape)


@evaluates(tt.TransOp)
def _transpose(op: Operation) -> Function:
    order = list(ir.DenseI64ArrayAttr(op.attributes["order"]))
    return lambda program, x: np.transpose(x, order)


@evaluates(tt.JoinOp)
def _join(op: Operation) -> Function:
    return lambda program, a, b: np.stack([a, b], -1)


@evaluates(tt.SplitOp)
def _split(op: Operation) -> Function:
    return lambda program, x: (x[..., 0], x[..., 1])


# Pointers


@evaluates(tt.AddPtrOp)
def _add_pointer(op: Operation) -> Function:
    size = format_of(tt.pointee_of(op.operands[0])).itemsize
    return lambda program, pointer, offset: pointers(
        pointer["address"] + np.asarray(offset).astype(np.int64) * size, pointer["owner"]
    )


@evaluates(tt.IntToPtrOp)
def _to_pointer(op: Operation) -> Function:
    return lambda program, x: pointers(x, NOBODY)


@evaluates(tt.PtrToIntOp)
def _from_pointer(op: Operation) -> Function:
    return lambda program, x: np.array(x["address"])


@evaluates(tt.BitcastOp)
def _cast_pointer(op: Operation) -> Function:
    return lambda program, x: x


# What is along an axis, and needs no function


@evaluates(tt.HistogramOp)
def _histogram(op: Operation) -> Function:
    (bins,) = shape_of_result(op)

    def histogram(program: RunningProgram, x: Array, mask: Array | bool = True) -> Array:
        counted = x[np.broadcast_to(mask, x.shape) & (x >= 0) & (x < bins)]
        return np.bincount(counted, minlength=bins).astype(np.int32)

    return histogram


@evaluates(tt.GatherOp)
def _gather(op: Operation) -> Function:
    axis = number(op, "axis")

    def gather(program: RunningProgram, source: Array, index: Array) -> Array:
        size = source.shape[axis]
        outside = (index < 0) | (index >= size)
        if outside.any():
            found = index[outside].flat[0]
            raise program.bounds_error(
                f"tl.gather: index {found} is outside of axis {axis}, which has {size} elements"
            )
        return np.take_along_axis(source, index.astype(np.int64), axis)

    return gather


@evaluates(tt.DotOp)
def _dot(op: Operation) -> Function:
    left, right = (format_of(op.operands[n].type) for n in (0, 1))
    form = format_of(op.results[0].type)
    if left.storage.kind == "i":  # exact in fp64
        return lambda program, a, b, acc: (
            acc
            + np.matmul(a.astype(np.float64), b.astype(np.float64))
            .astype(np.int64)
            .astype(form.storage)
        )
    wide = np.float64 if form.bits == 64 else np.float32
    return lambda program, a, b, acc: form.narrow(
        np.matmul(left.widen(a).astype(wide), right.widen(b).astype(wide)) + form.widen(acc)
    )


# What is not there in numpy


@evaluates(tt.DebugBarrierOp, tt.GridDependencyOp)
def _barrier(op: Operation) -> Function:
    return lambda program: None


@evaluates(tt.SpecialRegisterOp)
def _register(op: Operation) -> Function:
    if op.attributes["register"].value == "globaltimer":
        return lambda program: signed(np.uint64(time.time_ns()))
    return lambda program: np.int32(0)
