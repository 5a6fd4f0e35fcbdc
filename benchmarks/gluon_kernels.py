"""Kernels in Gluon for gpu_gluon.py, in what Triton 3.6 and later ones have in common."""

# ruff: noqa: RUF005 (Triton 3.6 takes no [S, *shape])

from proton import gluon
from proton.gluon import language as gl
from proton.gluon.language.nvidia.ampere import async_copy
from proton.gluon.language.nvidia.hopper import (
    fence_async_shared,
    mbarrier,
    tma,
    warpgroup_mma,
    warpgroup_mma_init,
    warpgroup_mma_wait,
)


@gluon.jit
def scaled_async_copy(x, y, steps, B: gl.constexpr, S: gl.constexpr, WARPS: gl.constexpr):
    """Blocks of B elements, a program `steps` of them, each copied S - 1 ahead."""
    layout: gl.constexpr = gl.BlockedLayout([4], [32], [WARPS], [0])
    flat: gl.constexpr = gl.SwizzledSharedLayout(1, 1, 1, [0])
    buffers = gl.allocate_shared_memory(gl.float32, [S, B], flat)
    at = gl.program_id(0) * steps * B + gl.arange(0, B, layout=layout)
    for k in gl.static_range(S - 1):
        async_copy.async_load(buffers.index(k), x + at + k * B)
        async_copy.commit_group()
    for k in range(steps):
        ahead = k + S - 1
        gl.barrier()
        if ahead < steps:
            async_copy.async_load(buffers.index(ahead % S), x + at + ahead * B)
        async_copy.commit_group()
        async_copy.wait_group(S - 1)
        gl.barrier()
        gl.store(y + at + k * B, buffers.index(k % S).load(layout) * 2)


@gluon.jit
def scaled_tma(x_desc, y_desc, steps, B: gl.constexpr, S: gl.constexpr, WARPS: gl.constexpr):
    """Blocks of B rows, a program `steps` of them, each copied S - 1 ahead."""
    layout: gl.constexpr = gl.BlockedLayout([1, 4], [2, 16], [WARPS, 1], [1, 0])
    x = gl.allocate_shared_memory(x_desc.dtype, [S] + x_desc.block_type.shape, x_desc.layout)
    y = gl.allocate_shared_memory(y_desc.dtype, y_desc.block_type.shape, y_desc.layout)
    bars = gl.allocate_shared_memory(gl.int64, [S, 1], mbarrier.MBarrierLayout())
    for slot in gl.static_range(S):
        mbarrier.init(bars.index(slot), count=1)
    first = gl.program_id(0) * steps
    column = gl.program_id(1) * x_desc.block_type.shape[1]
    for k in range(steps + S - 1):
        if k < steps:
            bar = bars.index(k % S)
            mbarrier.expect(bar, x_desc.block_type.nbytes)
            tma.async_load(x_desc, [(first + k) * B, column], bar, x.index(k % S))
        i = k - S + 1
        if i >= 0:
            mbarrier.wait(bars.index(i % S), i // S & 1)
            value = x.index(i % S).load(layout) * 2
            tma.store_wait(0)
            y.store(value)
            fence_async_shared()
            tma.async_store(y_desc, [(first + i) * B, column], y)
    tma.store_wait(0)


@gluon.jit
def fetch(a_desc, b_desc, row, column, k, bars, a, b, BK: gl.constexpr, S: gl.constexpr):
    bar = bars.index(k % S)
    mbarrier.expect(bar, a_desc.block_type.nbytes + b_desc.block_type.nbytes)
    tma.async_load(a_desc, [row, k * BK], bar, a.index(k % S))
    tma.async_load(b_desc, [k * BK, column], bar, b.index(k % S))


@gluon.jit
def matmul_pipelined(
    a_desc, b_desc, c_desc, n_tiles, BM: gl.constexpr, BN: gl.constexpr, BK: gl.constexpr,
    S: gl.constexpr, WARPS: gl.constexpr,
):  # fmt: skip
    """A program a tile; copies are S - 2 iterations ahead of products, one of which goes on."""
    a = gl.allocate_shared_memory(a_desc.dtype, [S] + a_desc.block_type.shape, a_desc.layout)
    b = gl.allocate_shared_memory(b_desc.dtype, [S] + b_desc.block_type.shape, b_desc.layout)
    bars = gl.allocate_shared_memory(gl.int64, [S, 1], mbarrier.MBarrierLayout())
    for slot in gl.static_range(S):
        mbarrier.init(bars.index(slot), count=1)
    row, column = gl.program_id(0) // n_tiles * BM, gl.program_id(0) % n_tiles * BN
    steps = gl.cdiv(a_desc.shape[1], BK)
    layout: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [WARPS, 1], [16, BN, 16])
    acc = warpgroup_mma_init(gl.zeros((BM, BN), gl.float32, layout))
    for k in gl.static_range(S - 2):
        fetch(a_desc, b_desc, row, column, k, bars, a, b, BK, S)
    for k in range(steps):
        ahead = k + S - 2
        if ahead < steps:
            fetch(a_desc, b_desc, row, column, ahead, bars, a, b, BK, S)
        mbarrier.wait(bars.index(k % S), k // S & 1)
        total = warpgroup_mma_wait(0, deps=(acc,))
        acc = warpgroup_mma(a.index(k % S), b.index(k % S), total, is_async=True)
    total = warpgroup_mma_wait(0, deps=(acc,))
    out = gl.allocate_shared_memory(c_desc.dtype, c_desc.block_type.shape, c_desc.layout)
    out.store(total.to(c_desc.dtype))
    fence_async_shared()
    tma.async_store(c_desc, [row, column], out)
    tma.store_wait(0)


@gluon.jit
def matmul_persistent(
    a_desc, b_desc, c_desc, n_tiles, BM: gl.constexpr, BN: gl.constexpr, BK: gl.constexpr,
    S: gl.constexpr, WARPS: gl.constexpr,
):  # fmt: skip
    """A program takes each so many-th tile; the store of one goes on while the next begins."""
    a = gl.allocate_shared_memory(a_desc.dtype, [S] + a_desc.block_type.shape, a_desc.layout)
    b = gl.allocate_shared_memory(b_desc.dtype, [S] + b_desc.block_type.shape, b_desc.layout)
    out = gl.allocate_shared_memory(c_desc.dtype, c_desc.block_type.shape, c_desc.layout)
    bars = gl.allocate_shared_memory(gl.int64, [S, 1], mbarrier.MBarrierLayout())
    for slot in gl.static_range(S):
        mbarrier.init(bars.index(slot), count=1)
    steps = gl.cdiv(a_desc.shape[1], BK)
    tiles = gl.cdiv(c_desc.shape[0], BM) * n_tiles
    layout: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [WARPS, 1], [16, BN, 16])
    done = 0
    for tile in range(gl.program_id(0), tiles, gl.num_programs(0)):
        row, column = tile // n_tiles * BM, tile % n_tiles * BN
        acc = warpgroup_mma_init(gl.zeros((BM, BN), gl.float32, layout))
        for k in range(steps + S - 2):
            if k < steps:
                to = (done + k) % S
                bar = bars.index(to)
                mbarrier.expect(bar, a_desc.block_type.nbytes + b_desc.block_type.nbytes)
                tma.async_load(a_desc, [row, k * BK], bar, a.index(to))
                tma.async_load(b_desc, [k * BK, column], bar, b.index(to))
            if k >= S - 2:
                at = done + k - (S - 2)
                mbarrier.wait(bars.index(at % S), at // S & 1)
                total = warpgroup_mma_wait(0, deps=(acc,))
                acc = warpgroup_mma(a.index(at % S), b.index(at % S), total, is_async=True)
        done += steps
        total = warpgroup_mma_wait(0, deps=(acc,))
        tma.store_wait(0)
        out.store(total.to(c_desc.dtype))
        fence_async_shared()
        tma.async_store(c_desc, [row, column], out)
    tma.store_wait(0)


@gluon.jit
def produce(a_desc, b_desc, row, column, a, b, ready, empty, BK: gl.constexpr, S: gl.constexpr):
    for k in range(gl.cdiv(a_desc.shape[1], BK)):
        mbarrier.wait(empty.index(k % S), (k // S & 1) ^ 1)
        fetch(a_desc, b_desc, row, column, k, ready, a, b, BK, S)


@gluon.jit
def consume(
    c_desc, row, column, steps, a, b, ready, empty, BM: gl.constexpr, BN: gl.constexpr,
    S: gl.constexpr, WARPS: gl.constexpr,
):  # fmt: skip
    layout: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [WARPS, 1], [16, BN, 16])
    acc = gl.zeros((BM, BN), gl.float32, layout)
    for k in range(steps):
        mbarrier.wait(ready.index(k % S), k // S & 1)
        acc = warpgroup_mma(a.index(k % S), b.index(k % S), acc, is_async=True)
        acc = warpgroup_mma_wait(0, deps=(acc,))
        mbarrier.arrive(empty.index(k % S), count=1)
    out = gl.allocate_shared_memory(c_desc.dtype, c_desc.block_type.shape, c_desc.layout)
    out.store(acc.to(c_desc.dtype))
    fence_async_shared()
    tma.async_store(c_desc, [row, column], out)
    tma.store_wait(0)


@gluon.jit
def matmul_specialized(
    a_desc, b_desc, c_desc, n_tiles, BM: gl.constexpr, BN: gl.constexpr, BK: gl.constexpr,
    S: gl.constexpr, WARPS: gl.constexpr,
):  # fmt: skip
    """A program a tile: one warp copies, the others multiply."""
    a = gl.allocate_shared_memory(a_desc.dtype, [S] + a_desc.block_type.shape, a_desc.layout)
    b = gl.allocate_shared_memory(b_desc.dtype, [S] + b_desc.block_type.shape, b_desc.layout)
    ready = gl.allocate_shared_memory(gl.int64, [S, 1], mbarrier.MBarrierLayout())
    empty = gl.allocate_shared_memory(gl.int64, [S, 1], mbarrier.MBarrierLayout())
    for k in gl.static_range(S):
        mbarrier.init(ready.index(k), count=1)
        mbarrier.init(empty.index(k), count=1)
    row, column = gl.program_id(0) // n_tiles * BM, gl.program_id(0) % n_tiles * BN
    steps = gl.cdiv(a_desc.shape[1], BK)
    gl.warp_specialize(
        [
            (consume, (c_desc, row, column, steps, a, b, ready, empty, BM, BN, S, WARPS)),
            (produce, (a_desc, b_desc, row, column, a, b, ready, empty, BK, S)),
        ],
        [1],
        [24],
    )
