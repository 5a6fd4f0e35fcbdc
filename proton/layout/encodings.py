"""The layouts of Triton's encodings as linear ones: what a `.ttgir` names, and Gluon's classes do.

    blocked, slices, tensor cores' results and operands    which thread holds what
    swizzled, nvmma, padded memory                          which byte of shared memory does

Which thread holds which element depends on the tensor's shape, too. Where an encoding has no such
layout for a shape the functions raise ValueError.
"""

from collections.abc import Mapping, Sequence
from math import prod

from proton.layout.linear import Basis, LinearLayout
from proton.layout.named import (
    blocked,
    dim,
    fit,
    mma_operand,
    mma_results,
    mma_v2,
    shared_nvmma,
    shared_row_major,
    shared_swizzled,
    wgmma_operand_a,
)

REGISTER_BITS = 32
AMPERE, HOPPER = 2, 3  # generations of tensor cores
_ORDERS = {2: (0, 1), 3: (1, 2, 0)}  # in which Hopper's warps go along the dimensions
_MATRIX = 2  # dimensions


def of_bases(ins: Mapping[str, Sequence[Sequence[int]]], shape: Sequence[int]) -> LinearLayout:
    """Bases as they stand, for a tensor of their own size; else cut or repeated as other layouts
    are."""
    bases = [basis for of in ins.values() for basis in of]
    for basis in bases:
        if len(basis) != len(shape):
            raise ValueError(f"basis {list(basis)} is not of {len(shape)} dimensions")
    own = [
        1 << max((basis[axis].bit_length() for basis in bases), default=0)
        for axis, _ in enumerate(shape)
    ]
    layout = LinearLayout.of(ins, {dim(axis): size for axis, size in enumerate(own)})
    return layout if own == list(shape) else fit(layout, shape)


def is_tensor_core(shape: Sequence[int], version: int, warps: Sequence[int]) -> bool:
    """Whether there are results of so many dimensions on tensor cores of a generation."""
    rank = len(shape)
    return rank in _ORDERS and len(warps) == rank and version in (AMPERE, HOPPER)


def tensor_core_result(
    shape: Sequence[int], version: int, warps: Sequence[int], n: int
) -> LinearLayout:
    """The result of a dot on tensor cores of a generation, of `n` columns an instruction."""
    rank = len(shape)
    if not is_tensor_core(shape, version, warps):
        raise ValueError(f"there are no results of {rank} dimensions of version {version}")
    if version == AMPERE:
        return mma_v2(shape, warps)
    if n % 8 or not 8 <= n <= 256:
        raise ValueError(f"n is a multiple of 8 up to 256, got {n}")
    return mma_results(shape, n, warps, _ORDERS[rank])


def tensor_core_operand(
    shape: Sequence[int], side: int, version: int, warps: Sequence[int], k_width: int
) -> LinearLayout:
    """The left (0) or right (1) operand of such a dot in registers, each of which holds
    `k_width` elements side by side, of whatever type: conversions of types keep the layout."""
    rank = len(shape)
    if rank not in _ORDERS or len(warps) != rank or not 1 <= k_width <= REGISTER_BITS:
        raise ValueError(f"there are no operands of {rank} dimensions of version {version}")
    bits = REGISTER_BITS // k_width
    if version == HOPPER and side == 0:
        if rank == _MATRIX:
            return wgmma_operand_a(shape, bits, warps)
        return mma_operand(shape, side, bits, warps, _ORDERS[rank])
    if version != AMPERE:
        raise ValueError(f"operand {side} of version {version} is in shared memory")
    return mma_operand(shape, side, bits, warps, tuple(reversed(range(rank))))


def blocked_operand(
    shape: Sequence[int],
    side: int,
    size_per_thread: Sequence[int],
    threads_per_warp: Sequence[int],
    warps_per_cta: Sequence[int],
    order: Sequence[int],
) -> LinearLayout:
    """An operand of a dot by multiply-adds: each thread has all of the inner dimension, for the
    rows or columns that are its results."""
    rank = len(shape)
    inner = rank - 1 if side == 0 else rank - 2
    per_thread = list(size_per_thread)
    per_thread[inner] = shape[inner]
    covered = list(shape)
    covered[inner] *= threads_per_warp[inner] * warps_per_cta[inner]
    layout = blocked(covered, per_thread, threads_per_warp, warps_per_cta, order)
    return fit(layout, shape)


# Shared memory


def swizzled_memory(
    shape: Sequence[int], vec: int, per_phase: int, max_phase: int, order: Sequence[int]
) -> LinearLayout:
    """Memory in which vectors of the fastest dimension are exchanged by the next one."""
    if max_phase == 1 or len(shape) == 1:
        return shared_row_major(shape, order)
    return shared_swizzled(shape, vec, per_phase, max_phase, order)


def nvmma_memory(
    shape: Sequence[int], element_bytes: int, swizzle: int, is_transposed: bool
) -> LinearLayout:
    """Memory that tensor cores and TMA read. Of more than two dimensions all but the fastest are
    rows."""
    rank = len(shape)
    order = [0, *reversed(range(1, rank))] if is_transposed else list(reversed(range(rank)))
    if not swizzle or rank == 1:
        return shared_row_major(shape, order)
    fast = order[0]
    rows, columns = prod(shape) // shape[fast], shape[fast]
    flat = shared_nvmma((rows, columns), element_bytes, swizzle)
    # Rows are the other dimensions, the next faster one first.
    sizes: dict[str, int] = {dim(axis): shape[axis] for axis in order[1:]}

    def spread(basis: Basis) -> list[int]:
        found, row = [0] * rank, basis[0]
        found[fast] = basis[1]
        for name, size in sizes.items():
            found[int(name[3:])] = row % size
            row //= size
        return found

    bases = [spread(basis) for basis in flat.bases("offset")]
    return LinearLayout.of({"offset": bases}, {dim(a): size for a, size in enumerate(shape)})
