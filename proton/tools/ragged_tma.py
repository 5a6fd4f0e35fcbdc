"""Blocks of a slice of a tensor's rows: what lies outside of the slice is neither read nor written.

A tensor holds several arrays, one behind the other along one dimension, and a kernel finds out at
run time where each begins and how long it is. The names are those of `triton.tools.ragged_tma`.

A descriptor checks indices against its tensor's ends alone, so the slice's end has to fall on one.
Rows are counted such that row ROWS - size is the slice's first, and the dimension has ROWS rows:
what is behind the slice is behind the tensor. Two more dimensions move the address to where the
slice lies in truth. With a stride s from row to row, the index (ROWS, start + size, ROWS - size +
row) and the strides (2**34 - s, s, s) are 2**64 + (start + row) * s elements, as ROWS is 2**30, and
addresses are computed modulo 2**64.
"""

from proton.base.errors import LaunchError
from proton.base.words import shown
from proton.language import core as tl
from proton.language import types as ty
from proton.language.core import static_assert
from proton.runtime.backend import owner_of
from proton.runtime.launch.jit import jit
from proton.runtime.launch.tensor_descriptor import TensorDescriptor

ROWS = ty.constexpr(1 << 30)
_WRAP = 1 << 34  # a stride that leads ROWS elements further to where it began
_ENDLESS = (1 << 31) - 1  # the size of a dimension that is not checked
_MAX_RANK = 3  # a descriptor has up to five dimensions


def create_ragged_descriptor(
    T: object, block_shape: list[int] | tuple[int, ...], ragged_dim: int = 0
) -> TensorDescriptor:
    """A descriptor of an array of two or three dimensions for `load_ragged` and `store_ragged`, in
    blocks of `block_shape`. Slices are of dimension `ragged_dim`, which cannot be the last.

    Raises LaunchError for what a descriptor cannot be of.
    """
    owner = owner_of(T)
    if owner is None:
        raise LaunchError(
            f"create_ragged_descriptor takes an array, got {shown(T)}",
        )
    shape, strides = owner.layout(T)
    rank, block = len(shape), list(block_shape)
    axis = ragged_dim + rank if ragged_dim < 0 else ragged_dim
    if not 2 <= rank <= _MAX_RANK or len(block) != rank:
        raise LaunchError(
            f"create_ragged_descriptor takes an array of 2 or {_MAX_RANK} dimensions and a block "
            f"of as many, got {list(shape)} and {block}"
        )
    if not 0 <= axis < rank - 1:
        raise LaunchError(
            f"create_ragged_descriptor: ragged_dim must be a dimension but the last of {rank}, got "
            f"{ragged_dim}"
        )
    if shape[axis] > ROWS.value:
        raise LaunchError(f"create_ragged_descriptor: at most {ROWS.value} rows, got {shape[axis]}")
    sizes = [*shape[:axis], ROWS.value, *shape[axis + 1 :]]
    step = strides[axis]
    return TensorDescriptor(
        T, [_ENDLESS, _ENDLESS, *sizes], [_WRAP - step, step, *strides], [1, 1, *block]
    )


@jit
def to_ragged_indices(slice_off, slice_size, row):
    """The index of a slice's row: of both dimensions ahead, and of the slice's own."""
    return ROWS, slice_off + slice_size, ROWS - slice_size + row


@jit
def _indices(desc, slice_off, slice_size, coords, ragged_dim: ty.constexpr):
    static_assert(
        len(desc.shape) == len(coords) + 2,
        "TMA must be one of create_ragged_descriptor, and coords have each dimension of its array",
    )
    x, y, z = to_ragged_indices(slice_off, slice_size, coords[ragged_dim])
    return (x, y, *coords[:ragged_dim], z, *coords[ragged_dim + 1 :])


@jit
def load_ragged(TMA, slice_off, slice_size, coords, ragged_dim: ty.constexpr = 0):
    """The block at `coords` of rows slice_off to slice_off + slice_size, with zeros outside."""
    block = TMA.load(_indices(TMA, slice_off, slice_size, coords, ragged_dim))
    return tl.reshape(block, block.shape[2:])


@jit
def store_ragged(TMA, slice_off, slice_size, coords, data, ragged_dim: ty.constexpr = 0):
    """Writes what of a block at `coords` lies in rows slice_off to slice_off + slice_size."""
    block = tl.reshape(data, (1, 1, *data.shape))
    TMA.store(_indices(TMA, slice_off, slice_size, coords, ragged_dim), block)


@jit
def atomic_add_ragged(TMA, slice_off, slice_size, coords, data, ragged_dim: ty.constexpr = 0):
    """Adds what of a block at `coords` lies in rows slice_off to slice_off + slice_size to what is
    there, each element atomically."""
    block = tl.reshape(data, (1, 1, *data.shape))
    TMA.atomic_add(_indices(TMA, slice_off, slice_size, coords, ragged_dim), block)
