"""Random layouts of distributed tensors, and where they put every element."""

import numpy as np
from hypothesis import strategies as st

from proton.layout import LinearLayout
from proton.layout.linear import log2
from proton.layout.named import DISTRIBUTED, blocked, dim

Shape = tuple[int, ...]


@st.composite
def shapes_of_rank(draw: st.DrawFn, rank: int, most: int = 10) -> Shape:
    """Powers of two, together at most 2^most elements."""
    bits: list[int] = []
    for _ in range(rank):
        bits.append(draw(st.integers(0, min(6, most - sum(bits)))))
    return tuple(1 << b for b in bits)


def _split(draw: st.DrawFn, rank: int, bits: int) -> list[int]:
    sizes = [1] * rank
    for _ in range(bits):
        sizes[draw(st.integers(0, rank - 1))] *= 2
    return sizes


@st.composite
def blocked_layouts(draw: st.DrawFn, shape: Shape, warps: int, lanes: int = 32) -> LinearLayout:
    """What a load has, or the default: registers, lanes and warps tile the tensor."""
    rank = len(shape)
    per_thread = _split(draw, rank, draw(st.integers(0, 4)))
    threads, groups = _split(draw, rank, log2(lanes)), _split(draw, rank, warps.bit_length() - 1)
    order = draw(st.permutations(range(rank)))
    return blocked(shape, per_thread, threads, groups, order, lanes)


@st.composite
def permuted_layouts(draw: st.DrawFn, shape: Shape, warps: int, lanes: int = 32) -> LinearLayout:
    """Each bit of the index is some bit of register, lane or warp; those left over are copies."""
    bits = [
        tuple((1 << b) * (a == axis) for a in range(len(shape)))
        for axis, size in enumerate(shape)
        for b in range(size.bit_length() - 1)
    ]
    bits = draw(st.permutations(bits))
    zero = (0,) * len(shape)
    count = log2(lanes)
    threads = [bits.pop() if bits and draw(st.integers(0, 7)) else zero for _ in range(count)]
    groups = [bits.pop() if bits and draw(st.integers(0, 3)) else zero for _ in range(warps >> 1)]
    groups = groups[: warps.bit_length() - 1]
    groups += [zero] * (warps.bit_length() - 1 - len(groups))
    used = [b for b in threads + groups if any(b)]
    registers = [
        b
        for axis, size in enumerate(shape)
        for bit in range(size.bit_length() - 1)
        if (b := tuple((1 << bit) * (a == axis) for a in range(len(shape)))) not in used
    ]
    registers = draw(st.permutations(registers))
    ins = {"register": registers, "lane": threads, "warp": groups, "block": []}
    return LinearLayout.of(ins, {dim(a): size for a, size in enumerate(shape)})


def distributed(shape: Shape, warps: int, lanes: int = 32) -> st.SearchStrategy[LinearLayout]:
    """Any of them."""
    return st.one_of(blocked_layouts(shape, warps, lanes), permuted_layouts(shape, warps, lanes))


def indices(layout: LinearLayout) -> np.ndarray:
    """The index at each place: shape (registers, lanes, warps, rank)."""
    return layout.table(*DISTRIBUTED[:3])


def flat(layout: LinearLayout, order: tuple[int, ...] | None = None) -> np.ndarray:
    """The row-major number of the element at each place; `order` names dimensions, fastest
    first, for another numbering."""
    shape = [size for _, size in layout.outs]
    order = tuple(reversed(range(len(shape)))) if order is None else order
    where, number, stride = indices(layout), 0, 1
    for axis in order:
        number = number + where[..., axis] * stride
        stride *= shape[axis]
    return np.broadcast_to(number, where.shape[:-1])
