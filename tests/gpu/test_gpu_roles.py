"""Loops whose copies a producer begins: attention, loops that ask for it, and consumers that are
held up at random, so that roles are ahead of each other by as much as their buffers let them be."""

import math
from typing import Any

import numpy as np
import pytest

import proton
import proton.language as tl
from benchmarks.alternating_kernels import attention, causal_attention
from proton.tools.tensor_descriptor import TensorDescriptor
from tests.compile.test_roles import by_threads, persistent, product
from tests.compile.test_unit_dimensions import attention as attention_of_heads
from tests.gpu.test_gpu_warp_group_order import zeros_late

ROLES = "producer and consumer"


@pytest.mark.parametrize("kernel", [attention, causal_attention], ids=["all", "causal"])
@pytest.mark.parametrize(("head", "columns"), [(128, 128), (256, 64)])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_attention(torch: Any, kernel: Any, head: int, columns: int, dtype: str) -> None:
    heads = 5
    for length in (128, 256, 1024, 3968):
        shape = (heads, length, head)
        q, k, v = (torch.randn(shape, device="cuda").to(getattr(torch, dtype)) for _ in range(3))
        out = torch.full_like(q, math.nan)
        given = [
            TensorDescriptor.from_tensor(x.reshape(-1, head), [rows, head])
            for x, rows in zip((q, k, v, out), (128, columns, columns, 128), strict=True)
        ]
        made = kernel[length // 128, heads](
            *given, length, 1.4426950408889634 * head**-0.5, M=128, N=columns, D=head, TMA=True,
            num_warps=8, num_stages=2,
        )  # fmt: skip
        assert ROLES in made.asm["schedule"]
        want = torch.nn.functional.scaled_dot_product_attention(
            *(x.double() for x in (q, k, v)), is_causal=kernel is causal_attention
        )
        assert (out - want).abs().max() < {"float16": 2e-3, "bfloat16": 2e-2}[dtype], length


@pytest.mark.parametrize("kernel", [product, persistent, by_threads], ids=lambda k: k.__name__)
@pytest.mark.parametrize("warps", [4, 8])
@pytest.mark.parametrize("stages", [2, 4])
def test_loops_that_ask_for_it(torch: Any, kernel: Any, warps: int, stages: int) -> None:
    """Nothing of them is a multiple of a block; several programs run on an SM."""
    for m, n, k in ((16 * warps, 64, 32), (1000, 520, 1000), (2048, 1024, 160), (500, 72, 40)):
        a, b = torch.randn(m, k, device="cuda").half(), torch.randn(k, n, device="cuda").half()
        c = torch.full((m, n), math.nan, device="cuda").half()
        blocks = {"M": 16 * warps, "N": 64, "K": 32}
        sizes = (("M", "K"), ("K", "N"), ("M", "N"))
        given = [
            TensorDescriptor.from_tensor(x, [blocks[y], blocks[z]])
            for x, (y, z) in zip((a, b, c), sizes, strict=True)
        ]
        grid = (proton.cdiv(m, blocks["M"]), proton.cdiv(n, 64))
        for _ in range(20):
            made = kernel[(2,) if kernel is persistent else grid](
                *given, m, n, k, **blocks, num_warps=warps, num_stages=stages
            )
        assert ROLES in made.asm["schedule"]
        x, y = a.float(), b.float()
        want = x.sum(1)[:, None] + y.sum(0) if kernel is by_threads else x @ y
        assert (c - want).abs().max() <= 2e-3 * max(1, float(want.abs().max()))


@proton.jit
def by_own_maps(
    q_ptr, k_ptr, v_ptr, out_ptr, n, scale, M: tl.constexpr, N: tl.constexpr, D: tl.constexpr
):
    """Attention whose descriptors are of one head, so that the kernel makes their maps."""
    head = tl.program_id(1).to(tl.int64) * n * D
    rows, depth = tl.program_id(0) * M + tl.arange(0, M), tl.arange(0, D)
    inside = rows[:, None] < n
    q = tl.load(q_ptr + head + rows[:, None] * D + depth[None, :], mask=inside, other=0.0)
    keys = tl.make_tensor_descriptor(k_ptr + head, [n, D], [D, 1], [N, D])
    values = tl.make_tensor_descriptor(v_ptr + head, [n, D], [D, 1], [N, D])
    out = tl.zeros((M, D), tl.float32)
    total = tl.zeros((M,), tl.float32)
    top = tl.full((M,), -1.0e30, tl.float32)
    for start in range(0, n, N):
        scores = tl.dot(q, tl.trans(keys.load([start, 0]))) * scale
        scores = tl.where((start + tl.arange(0, N))[None, :] < n, scores, -1.0e30)
        new = tl.maximum(top, tl.max(scores, 1))
        weights = tl.exp2(scores - new[:, None])
        shrink = tl.exp2(top - new)
        total = total * shrink + tl.sum(weights, 1)
        out = tl.dot(weights.to(q.dtype), values.load([start, 0]), out * shrink[:, None])
        top = new
    out = (out / total[:, None]).to(q.dtype)
    tl.store(out_ptr + head + rows[:, None] * D + depth[None, :], out, mask=inside)


def test_maps_that_the_kernel_makes(torch: Any) -> None:
    """A head's last block of keys ends within the next head's."""
    for length in (1, 128, 200, 1000, 2048):
        q, k, v = (torch.randn((7, length, 128), device="cuda").half() for _ in range(3))
        out = torch.full_like(q, math.nan)
        made = by_own_maps[proton.cdiv(length, 128), 7](
            q, k, v, out, length, 1.4426950408889634 * 128**-0.5, M=128, N=128, D=128, num_warps=8,
            num_stages=2,
        )  # fmt: skip
        assert length == 1 or ROLES in made.asm["schedule"]
        assert length == 1 or "tensormap.replace" in made.asm["ptx"]
        want = torch.nn.functional.scaled_dot_product_attention(*(x.double() for x in (q, k, v)))
        assert (out - want).abs().max() < 2e-3, length


def test_descriptors_of_batches_and_heads(torch: Any) -> None:
    """Of arrays whose heads lie between rows."""
    for length in (1, 100, 128, 1111, 2048):
        q, k, v = (torch.randn((2, length, 3, 128), device="cuda").half() for _ in range(3))
        q, k, v = (x.transpose(1, 2) for x in (q, k, v))
        out = torch.full((2, 3, length, 128), math.nan, device="cuda").half()
        given = [
            TensorDescriptor(x, list(x.shape), list(x.stride()), [1, 1, 128, 128])
            for x in (q, k, v, out)
        ]
        made = attention_of_heads[proton.cdiv(length, 128), 6](
            *given, 3, length, 1.4426950408889634 * 128**-0.5, M=128, N=128, D=128, HOW="",
            num_warps=8, num_stages=2,
        )  # fmt: skip
        assert length == 1 or ROLES in made.asm["schedule"]
        want = torch.nn.functional.scaled_dot_product_attention(*(x.double() for x in (q, k, v)))
        assert (out - want).abs().max() < 2e-3, length


@proton.jit
def weighted_sums(
    q_ptr, k_desc, v_desc, out_ptr, seed, steps, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
    DEPTH: tl.constexpr,
):  # fmt: skip
    """Sums of exp2(q @ k.T) @ v."""
    rows, depth = tl.arange(0, ROWS), tl.arange(0, DEPTH)
    offsets = (tl.program_id(0) * ROWS + rows[:, None]) * DEPTH + depth[None, :]
    q = tl.load(q_ptr + offsets)
    sums = tl.zeros((ROWS, DEPTH), tl.float32)
    for step in tl.range(steps, warp_specialize=True):
        scores = tl.dot(q, tl.trans(k_desc.load([step * COLUMNS, 0])))
        weights = tl.exp2(scores + zeros_late(scores, rows, step, steps, seed)[:, None])
        sums = tl.dot(weights.to(tl.float16), v_desc.load([step * COLUMNS, 0]), sums)
    tl.store(out_ptr + offsets, sums)


@pytest.mark.parametrize(("columns", "stages"), [(64, 2), (64, 3), (32, 4), (128, 2)])
def test_consumers_that_are_held_up(
    torch: Any, rng: np.random.Generator, columns: int, stages: int
) -> None:
    programs, depth = 300, 64
    for steps in (0, 1, 2, 3, 40):
        q, k, v = (
            torch.randn(n, depth, device="cuda").half() * 0.2
            for n in (programs * 128, max(1, steps) * columns, max(1, steps) * columns)
        )
        out = torch.full((programs * 128, depth), math.nan, device="cuda")
        given = [TensorDescriptor.from_tensor(x, [columns, depth]) for x in (k, v)]
        made = weighted_sums[programs,](
            q, *given, out, int(rng.integers(1 << 30)), steps, ROWS=128, COLUMNS=columns,
            DEPTH=depth, num_warps=8, num_stages=stages,
        )  # fmt: skip
        assert steps < 2 or ROLES in made.asm["schedule"]
        weights = torch.exp2(q.double() @ k[: steps * columns].double().T)
        values = v[: steps * columns].double()
        bound = 2.0**-10 * (weights @ values.abs()) + 1e-6
        assert ((out - weights @ values).abs() <= bound).all()
