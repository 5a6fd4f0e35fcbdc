"""Kernels in Gluon for gpu_gluon.py, in what Triton 3.6 and later ones have in common."""

# ruff: noqa: RUF005 (Triton 3.6 takes no [S, *shape])

import proton
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


@gluon.jit
def fetch_heads(
    q_desc, k_desc, v_desc, row, first, steps, q, k, v, q_ready, k_ready, k_empty, v_ready,
    v_empty, N: gl.constexpr, S: gl.constexpr,
):  # fmt: skip
    half: gl.constexpr = q_desc.block_type.shape[0]
    proton.enter_scope("queries")
    mbarrier.expect(q_ready.index(0), 2 * q_desc.block_type.nbytes)
    for part in gl.static_range(2):
        tma.async_load(q_desc, [row + part * half, 0], q_ready.index(0), q.index(part))
    proton.exit_scope("queries")
    for i in range(steps):
        slot, phase = i % S, (i // S & 1) ^ 1
        proton.enter_scope("keys")
        mbarrier.wait(k_empty.index(slot), phase)
        mbarrier.expect(k_ready.index(slot), k_desc.block_type.nbytes)
        tma.async_load(k_desc, [first + i * N, 0], k_ready.index(slot), k.index(slot))
        proton.exit_scope("keys")
        proton.enter_scope("values")
        mbarrier.wait(v_empty.index(slot), phase)
        mbarrier.expect(v_ready.index(slot), v_desc.block_type.nbytes)
        tma.async_load(v_desc, [first + i * N, 0], v_ready.index(slot), v.index(slot))
        proton.exit_scope("values")


@gluon.jit
def attend(
    out_desc, row, steps, scale, q, k, v, q_ready, k_ready, k_empty, v_ready, v_empty,
    PART: gl.constexpr, N: gl.constexpr, S: gl.constexpr, WEIGHTS: gl.constexpr,
):  # fmt: skip
    """Rows of a half; `scale` is of scores in powers of two."""
    M: gl.constexpr = out_desc.block_type.shape[0]
    D: gl.constexpr = out_desc.block_type.shape[1]
    scored: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, N, 16])
    summed: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, D, 16])
    most = gl.full((M,), float("-inf"), gl.float32, gl.SliceLayout(1, scored))
    total = gl.zeros((M,), gl.float32, gl.SliceLayout(1, scored))
    acc = gl.zeros((M, D), gl.float32, summed)
    zeros = gl.zeros((M, N), gl.float32, scored)
    mbarrier.wait(q_ready.index(0), 0)
    for i in range(steps):
        slot, phase = i % S, i // S & 1
        proton.enter_scope("scores")
        mbarrier.wait(k_ready.index(slot), phase)
        keys = k.index(slot).permute((1, 0))
        scores = warpgroup_mma(q.index(PART), keys, zeros, use_acc=False, is_async=True)
        scores = warpgroup_mma_wait(0, deps=(scores,))
        mbarrier.arrive(k_empty.index(slot), count=1)
        proton.exit_scope("scores")
        proton.enter_scope("softmax")
        if WEIGHTS == "softmax":
            now = gl.maximum(most, gl.max(scores, 1) * scale)
            weights = gl.exp2(scores * scale - now[:, None])
            shrink = gl.exp2(most - now)
            total = total * shrink + gl.sum(weights, 1)
            most = now
            acc = acc * gl.convert_layout(shrink, gl.SliceLayout(1, summed))[:, None]
        elif WEIGHTS == "exp":
            weights = gl.exp2(scores * scale)
            total = total + gl.sum(weights, 1)
        elif WEIGHTS == "sigmoid":
            weights = 1.0 / (1.0 + gl.exp2(scores * -scale))
            total = total + 1.0 / N
        else:
            weights = scores * gl.maximum(scores, 0.0) * scale
            total = total + 1.0 / N
        weights = gl.convert_layout(weights.to(gl.float16), gl.DotOperandLayout(0, summed, 2))
        proton.exit_scope("softmax")
        proton.enter_scope("weighted sums")
        mbarrier.wait(v_ready.index(slot), phase)
        acc = warpgroup_mma(weights, v.index(slot), acc, is_async=True)
        acc = warpgroup_mma_wait(0, deps=(acc,))
        mbarrier.arrive(v_empty.index(slot), count=1)
        proton.exit_scope("weighted sums")
    proton.enter_scope("store")
    out = acc / gl.convert_layout(total, gl.SliceLayout(1, summed))[:, None]
    q.index(PART).store(out.to(gl.float16))
    fence_async_shared()
    tma.async_store(out_desc, [row + PART * M, 0], q.index(PART))
    tma.store_wait(0)
    proton.exit_scope("store")


@gluon.jit
def attention_specialized(
    q_desc, k_desc, v_desc, out_desc, length, scale, N: gl.constexpr, S: gl.constexpr,
    WEIGHTS: gl.constexpr = "softmax",
):  # fmt: skip
    """Attention forward: a program takes two blocks of rows of a head, each by four warps, and one
    warp copies. Descriptors have all heads below each other. WEIGHTS are made of scores by softmax,
    "exp", "sigmoid", or as products with themselves ("square")."""
    heads: gl.constexpr = q_desc.block_type.shape
    q = gl.allocate_shared_memory(q_desc.dtype, [2] + heads, q_desc.layout)
    k = gl.allocate_shared_memory(k_desc.dtype, [S] + k_desc.block_type.shape, k_desc.layout)
    v = gl.allocate_shared_memory(v_desc.dtype, [S] + v_desc.block_type.shape, v_desc.layout)
    q_ready = gl.allocate_shared_memory(gl.int64, [1, 1], mbarrier.MBarrierLayout())
    k_ready = gl.allocate_shared_memory(gl.int64, [S, 1], mbarrier.MBarrierLayout())
    k_empty = gl.allocate_shared_memory(gl.int64, [S, 1], mbarrier.MBarrierLayout())
    v_ready = gl.allocate_shared_memory(gl.int64, [S, 1], mbarrier.MBarrierLayout())
    v_empty = gl.allocate_shared_memory(gl.int64, [S, 1], mbarrier.MBarrierLayout())
    mbarrier.init(q_ready.index(0), count=1)
    for i in gl.static_range(S):
        mbarrier.init(k_ready.index(i), count=1)
        mbarrier.init(k_empty.index(i), count=2)
        mbarrier.init(v_ready.index(i), count=1)
        mbarrier.init(v_empty.index(i), count=2)
    first = gl.program_id(1) * length
    row, steps = first + gl.program_id(0) * 2 * heads[0], gl.cdiv(length, N)
    gl.warp_specialize(
        [
            (attend, (out_desc, row, steps, scale, q, k, v, q_ready, k_ready, k_empty, v_ready,
                      v_empty, 0, N, S, WEIGHTS)),
            (attend, (out_desc, row, steps, scale, q, k, v, q_ready, k_ready, k_empty, v_ready,
                      v_empty, 1, N, S, WEIGHTS)),
            (fetch_heads, (q_desc, k_desc, v_desc, row, first, steps, q, k, v, q_ready, k_ready,
                           k_empty, v_ready, v_empty, N, S)),
        ],
        [4, 1],
        [240, 24],
    )  # fmt: skip
