"""The layouts that have names: those of Triton's encodings and of NVIDIA's instructions.

Inputs are "register", "lane", "warp" and "block" (a distributed tensor) or "offset" (shared
memory, in elements); outputs are "dim0", "dim1", ... of the tensor. Register tables are those
of the PTX ISA, sections on `mma.m16n8k16`, `ldmatrix` and the asynchronous `wgmma`.
"""

from collections.abc import Sequence
from math import prod

from proton.base.chips.chip import WARP_SIZE
from proton.layout.linear import LinearLayout, log2

DISTRIBUTED = ("register", "lane", "warp", "block")
CHUNK_BYTES = 16  # what swizzles permute: the widest access of a thread
SWIZZLES = (128, 64, 32)  # bytes of a row of memory that `wgmma` and TMA swizzle


def dim(axis: int) -> str:
    """The name of an output dimension."""
    return f"dim{axis}"


def standard(layout: LinearLayout, rank: int) -> LinearLayout:
    """With all four input dimensions and `rank` outputs, in their usual order."""
    ins = {name: layout.bases(name) for name in DISTRIBUTED}
    names = [dim(axis) for axis in range(rank)]
    outs = {name: layout.out_size(name) for name in names}
    positions = [layout.out_names.index(n) if n in layout.out_names else None for n in names]

    def complete(basis: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(0 if p is None else basis[p] for p in positions)

    return LinearLayout.of({n: [complete(b) for b in bases] for n, bases in ins.items()}, outs)


def _spread(sizes: Sequence[int], in_dim: str, order: Sequence[int]) -> LinearLayout:
    """Bits of one input dimension over the tensor's dimensions, the fastest first."""
    result = LinearLayout.empty()
    for axis in order:
        result = result * LinearLayout.identity(sizes[axis], in_dim, dim(axis))
    return result


def fit(layout: LinearLayout, shape: Sequence[int]) -> LinearLayout:
    """A tile made to cover exactly `shape`: repeated in registers where the tensor is larger,
    and with places that would lie beyond it holding copies where it is smaller."""
    ins: dict[str, list[tuple[int, ...]]] = {}
    for name, bases in layout.ins:
        ins[name] = [
            tuple(
                value if value < shape[int(out[3:])] else 0
                for out, value in zip(layout.out_names, basis, strict=True)
            )
            for basis in bases
        ]
    sizes = {out: min(size, shape[int(out[3:])]) for out, size in layout.outs}
    result = LinearLayout.of(ins, sizes).without_free_bits("register")
    for axis, size in enumerate(shape):
        repeat = size // result.out_size(dim(axis))
        result = result * LinearLayout.identity(repeat, "register", dim(axis))
    return standard(result, len(shape))


def blocked(
    shape: Sequence[int],
    size_per_thread: Sequence[int],
    threads_per_warp: Sequence[int],
    warps_per_cta: Sequence[int],
    order: Sequence[int],
    lanes: int = WARP_SIZE,
) -> LinearLayout:
    """Triton's blocked encoding: registers, then lanes, then warps tile the tensor; `order`
    names the dimensions, fastest first."""
    if prod(threads_per_warp) != lanes:
        raise ValueError(f"a warp has {lanes} threads, got {list(threads_per_warp)}")
    tile = (
        _spread(size_per_thread, "register", order)
        * _spread(threads_per_warp, "lane", order)
        * _spread(warps_per_cta, "warp", order)
    )
    return fit(tile, shape)


def spread(
    shape: Sequence[int],
    per_thread: Sequence[int],
    order: Sequence[int],
    num_warps: int,
    repeats: int = 1,
    lanes: int = WARP_SIZE,
) -> LinearLayout:
    """A blocked layout in which lanes, then warps cover the tensor, the fastest dimension first;
    threads that are left over hold copies. Along that dimension warps leave room for each thread to
    come `repeats` times."""
    left_lanes, warps = lanes, num_warps
    threads, groups = [1] * len(shape), [1] * len(shape)
    for axis in order:
        left = max(1, shape[axis] // per_thread[axis])
        threads[axis] = min(left_lanes, left)
        left_lanes //= threads[axis]
        left //= threads[axis] * (repeats if axis == order[0] else 1)
        groups[axis] = min(warps, max(1, left))
        warps //= groups[axis]
    threads[order[-1]] *= left_lanes
    groups[order[-1]] *= warps
    return blocked(shape, per_thread, threads, groups, order, lanes)


def sliced(parent: LinearLayout, axis: int) -> LinearLayout:
    """The layout of a tensor that lacks one dimension of `parent`'s: Triton's slice encoding."""
    rank = len(parent.outs)
    left = parent.sliced(dim(axis))
    names = {dim(a): dim(a - (a > axis)) for a in range(rank) if a != axis}
    return left.renamed(names).without_free_bits("register")


# Tensor cores. A warp's 8 x 4 grid of threads, four neighbours in a row, is in all of them.


def _thread_grid(per_thread: int) -> LinearLayout:
    """8 rows of four threads, each with `per_thread` consecutive columns."""
    return (
        LinearLayout.identity(per_thread, "register", "dim1")
        * LinearLayout.identity(4, "lane", "dim1")
        * LinearLayout.identity(8, "lane", "dim0")
    )


def _register(size: int, axis: int) -> LinearLayout:
    return LinearLayout.identity(size, "register", dim(axis))


MMA_ACCUMULATOR = standard(_thread_grid(2) * _register(2, 0), 2)
"""16 x 8 result of `mma.m16n8`: c0, c1 in the thread's row, c2, c3 eight rows below."""


def _mma_row(bits: int) -> tuple[LinearLayout, LinearLayout]:
    """Eight rows of 256 bits: the grid of threads with a register each, and how often it lies along
    the row. Registers have 32 bits, or one element of 64."""
    return _thread_grid(max(1, 32 // bits)), _register(min(2, 64 // bits), 1)


def mma_operand_a(bits: int) -> LinearLayout:
    """16 x (256 / bits) left operand of `mma.m16n8`: registers over row, then column."""
    grid, along = _mma_row(bits)
    return standard(grid * _register(2, 0) * along, 2)


def mma_operand_b(bits: int) -> LinearLayout:
    """(256 / bits) x 8 right operand of `mma.m16n8`: the transpose of half of the left one."""
    grid, along = _mma_row(bits)
    swapped = (grid * along).renamed({"dim0": "dim1", "dim1": "dim0"})
    return standard(swapped, 2)


LDMATRIX_TILE = standard(_thread_grid(2), 2)
"""8 x 8 matrix of 16-bit elements as one register of `ldmatrix` and `stmatrix` holds it."""


def mma_v2(shape: Sequence[int], warps_per_cta: Sequence[int]) -> LinearLayout:
    """A result of Ampere's `mma`, tiled over warps (the last dimension fastest) and registers."""
    rank = len(shape)
    return mma_results(shape, 8, warps_per_cta, tuple(reversed(range(rank))))


def mma_results(
    shape: Sequence[int], n: int, warps_per_cta: Sequence[int], order: Sequence[int]
) -> LinearLayout:
    """Results of 16 x n for each warp in the last two dimensions, tiled over warps (`order` names
    the dimensions, fastest first) and registers."""
    tile = _in_last_dims(MMA_ACCUMULATOR * _register(n // 8, 1), len(shape))
    return fit(tile * _spread(warps_per_cta, "warp", order), shape)


def mma_operand(
    shape: Sequence[int],
    side: int,
    bits: int,
    warps_per_cta: Sequence[int],
    order: Sequence[int],
) -> LinearLayout:
    """The left (0) or right (1) operand of such results: warps of one row have one left operand,
    those of one column one right one."""
    rank = len(shape)
    tile = _in_last_dims(mma_operand_a(bits) if side == 0 else mma_operand_b(bits), rank)
    inner = rank - 1 - side
    for axis in order:
        make = LinearLayout.zeros if axis == inner else LinearLayout.identity
        tile = tile * make(warps_per_cta[axis], "warp", dim(axis))
    return fit(tile, shape)


def _in_last_dims(matrix: LinearLayout, rank: int) -> LinearLayout:
    """A layout of two dimensions, for the last two of more."""
    return matrix.renamed({"dim0": dim(rank - 2), "dim1": dim(rank - 1)})


def wgmma_accumulator(shape: Sequence[int], n: int, warps_per_cta: Sequence[int]) -> LinearLayout:
    """A result of `wgmma.m64nNk*`: a warp group of four warps has 64 rows, each warp 16 of them,
    and each thread 8 columns apart in registers."""
    if n % 8 or not 8 <= n <= 256:
        raise ValueError(f"n is a multiple of 8 up to 256, got {n}")
    if warps_per_cta[0] % 4:
        raise ValueError(f"a warp group has four warps along dim0, got {list(warps_per_cta)}")
    tile = MMA_ACCUMULATOR * _register(n // 8, 1) * _spread(warps_per_cta, "warp", (0, 1))
    return fit(tile, shape)


def wgmma_operand_a(shape: Sequence[int], bits: int, warps_per_cta: Sequence[int]) -> LinearLayout:
    """A left operand of `wgmma` in registers: each warp has 16 rows, as in `mma`."""
    if warps_per_cta[0] % 4:
        raise ValueError(f"a warp group has four warps along dim0, got {list(warps_per_cta)}")
    tile = mma_operand_a(bits) * LinearLayout.identity(warps_per_cta[0], "warp", "dim0")
    return fit(tile * LinearLayout.zeros(warps_per_cta[1], "warp", "dim1"), shape)


# Shared memory


def shared_row_major(shape: Sequence[int], order: Sequence[int]) -> LinearLayout:
    """Unswizzled shared memory; `order` names the dimensions, fastest first."""
    layout = _spread(shape, "offset", order)
    return layout.reordered(["offset"], [dim(axis) for axis in range(len(shape))])


def shared_swizzled(
    shape: Sequence[int], vec: int, per_phase: int, max_phase: int, order: Sequence[int] = (1, 0)
) -> LinearLayout:
    """Triton's swizzled encoding: in row r of a matrix in the two fastest dimensions, the vector of
    `vec` elements number v lies at place v XOR (r / per_phase mod max_phase). Matrices follow each
    other."""
    fast, slow = order[0], order[1]
    bases: list[list[int]] = []
    for axis in order:
        for bit in range(log2(shape[axis])):
            basis = [0] * len(shape)
            basis[axis] = 1 << bit
            if axis == slow:
                basis[fast] = vec * ((1 << bit) // per_phase % max_phase) % shape[fast]
            bases.append(basis)
    return LinearLayout.of({"offset": bases}, {dim(a): size for a, size in enumerate(shape)})


def shared_nvmma(
    shape: Sequence[int],
    element_bytes: int,
    swizzle_bytes: int,
    order: Sequence[int] = (1, 0),
) -> LinearLayout:
    """Shared memory as `wgmma` and TMA read it: rows of `swizzle_bytes` (32, 64 or 128), in which
    16-byte chunks are permuted by the row; wider matrices are split into such blocks of columns.
    A row runs along dimension `order[0]`.

    The pattern repeats after 8 rows: chunk c of row r lies at c XOR (r * swizzle_bytes / 128
    mod (swizzle_bytes / 16)).
    """
    if swizzle_bytes not in SWIZZLES:
        raise ValueError(f"swizzle_bytes must be 32, 64 or 128, got {swizzle_bytes}")
    fast, slow = order
    width = swizzle_bytes // element_bytes
    if shape[fast] < width:
        raise ValueError(f"rows of {shape[fast]} elements are shorter than the swizzle, {width}")
    block = [0, 0]
    block[fast], block[slow] = width, shape[slow]
    tile = shared_swizzled(
        block,
        vec=CHUNK_BYTES // element_bytes,
        per_phase=128 // swizzle_bytes,
        max_phase=swizzle_bytes // CHUNK_BYTES,
        order=order,
    )
    return tile * LinearLayout.identity(shape[fast] // width, "offset", dim(fast))
