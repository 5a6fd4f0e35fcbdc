"""Warp groups that take turns at the tensor cores: attention, and a loop whose groups are held up
at random, so that each is ahead of the other by as much as their order lets it be."""

import math
from typing import Any

import numpy as np
import pytest

import proton
import proton.language as tl
from kernels.attention import attention

BOUNDS = {"float16": 2e-3, "bfloat16": 2e-2}


@pytest.mark.parametrize("blocks", [(128, 3), (64, 3), (64, 4), (32, 4)], ids=str)
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("head", [64, 128])
def test_attention(
    torch: Any, rng: np.random.Generator, head: int, dtype: str, causal: bool, blocks: Any
) -> None:
    columns, stages = blocks
    for length in (1, 127, 128, int(rng.integers(129, 1500)), 2048):
        shape = (2, 3, length, head)
        q, k, v = (torch.randn(shape, device="cuda").to(getattr(torch, dtype)) for _ in range(3))
        out = torch.full_like(q, math.nan), torch.full(shape[:3], math.nan, device="cuda")
        attention(
            q, k, v, causal, out=out, BLOCK_M=128, BLOCK_N=columns, num_warps=8, num_stages=stages,
            OVERLAP=False,
        )  # fmt: skip
        want = torch.nn.functional.scaled_dot_product_attention(
            *(x.double() for x in (q, k, v)), is_causal=causal
        )
        assert (out[0] - want).abs().max() < BOUNDS[dtype], length


@proton.jit
def zeros_late(scores, rows, step, steps, seed):
    """Zeros for each row of scores. In half of the steps a group of warps sleeps for up to 4 us."""
    number = (tl.program_id(0) * steps + step) * 2 + rows // 64
    number = (number ^ seed) * -1640531535
    number = (number ^ (number >> 15)) * 739982445
    delay = tl.where(number & 1 == 1, number >> 8 & 4095, 0)
    return tl.inline_asm_elementwise(
        "nanosleep.u32 $2; mov.u32 $0, 0;", "=r,r,r", [tl.max(scores, 1), delay],
        dtype=tl.float32, is_pure=True, pack=1,
    )  # fmt: skip


@proton.jit
def weighted_sums(
    q_ptr, k_ptr, v_ptr, out_ptr, seed, steps, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
    DEPTH: tl.constexpr,
):  # fmt: skip
    """Sums of exp2(q @ k) @ v."""
    rows, columns = tl.arange(0, ROWS), tl.arange(0, COLUMNS)
    depth = tl.arange(0, DEPTH)
    q_ptr += tl.program_id(0) * ROWS * DEPTH
    out_ptr += tl.program_id(0) * ROWS * DEPTH
    q = tl.load(q_ptr + rows[:, None] * DEPTH + depth[None, :])
    sums = tl.zeros((ROWS, DEPTH), tl.float32)
    for step in range(steps):
        k = tl.load(k_ptr + (step * COLUMNS + columns[None, :]) * DEPTH + depth[:, None])
        scores = tl.dot(q, k)
        weights = tl.exp2(scores + zeros_late(scores, rows, step, steps, seed)[:, None])
        v = tl.load(v_ptr + (step * COLUMNS + columns[:, None]) * DEPTH + depth[None, :])
        sums = tl.dot(weights.to(v.dtype), v, sums)
    tl.store(out_ptr + rows[:, None] * DEPTH + depth[None, :], sums)


@pytest.mark.parametrize("columns, stages", [(64, 3), (32, 4), (128, 3)])
def test_groups_that_are_held_up(
    torch: Any, rng: np.random.Generator, columns: int, stages: int
) -> None:
    programs, depth = 300, 64
    for steps in (0, 1, 2, 3, 40):
        q, k, v = (
            torch.randn(n, depth, device="cuda").half() * 0.2
            for n in (programs * 128, steps * columns, steps * columns)
        )
        out = torch.full((programs * 128, depth), math.nan, device="cuda")
        kernel = weighted_sums[programs,](
            q, k, v, out, int(rng.integers(1 << 30)), steps, ROWS=128, COLUMNS=columns,
            DEPTH=depth, num_warps=8, num_stages=stages,
        )  # fmt: skip
        assert steps < 2 or "order_wait" in kernel.asm["ttgir"]
        weights = torch.exp2(q.double() @ k.double().T)
        want = weights @ v.double()
        bound = 2.0**-10 * (weights @ v.double().abs()) + 1e-6
        assert ((out - want).abs() <= bound).all()
