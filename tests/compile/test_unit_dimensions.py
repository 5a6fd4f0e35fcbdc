"""Blocks of descriptors with leading dimensions of one element, without which dots take them: they
lie in memory as the dots read them. Run on the machine for PTX."""

from typing import Any

import numpy as np
import pytest

import proton
import proton.language as tl
from proton.tools.tensor_descriptor import TensorDescriptor
from tests.compile.ptx.emulation import Emulation
from tests.compile.test_roles import ROLES


@proton.jit
def attention(
    q_desc, k_desc, v_desc, out_desc, heads, n, scale,
    M: tl.constexpr, N: tl.constexpr, D: tl.constexpr, HOW: tl.constexpr,
):  # fmt: skip
    batch, head = tl.program_id(1) // heads, tl.program_id(1) % heads
    own = tl.program_id(0) * M
    q = q_desc.load([batch, head, own, 0]).reshape(M, D)
    out = tl.zeros((M, D), tl.float32)
    total = tl.zeros((M,), tl.float32)
    top = tl.full((M,), -1.0e30, tl.float32)
    for start in range(0, n, N):
        k = k_desc.load([batch, head, start, 0]).reshape(N, D)
        scores = tl.dot(q, tl.trans(k)) * scale
        scores = tl.where((start + tl.arange(0, N))[None, :] < n, scores, -1.0e30)
        new = tl.maximum(top, tl.max(scores, 1))
        weights = tl.exp2(scores - new[:, None])
        shrink = tl.exp2(top - new)
        total = total * shrink + tl.sum(weights, 1)
        block = v_desc.load([batch, head, start, 0])
        out = tl.dot(weights.to(q.dtype), block.reshape(N, D), out * shrink[:, None])
        if HOW == "taken twice":
            out += tl.max(tl.max(block.to(tl.float32), 3), 2) * 0
        top = new
    out = (out / total[:, None]).to(q.dtype)
    out_desc.store([batch, head, own, 0], out.reshape(1, 1, M, D))


@pytest.mark.usefixtures("no_assembler")
@pytest.mark.parametrize(
    ("shape", "block", "warps", "how"),
    [
        ((2, 2, 100), (128, 64, 64), 8, ""),
        ((1, 1, 256), (128, 128, 128), 8, ""),  # by a producer and a consumer
        ((1, 1, 70), (64, 32, 64), 4, ""),
        ((1, 1, 40), (16, 16, 32), 1, ""),  # by `mma`
        ((1, 2, 70), (64, 32, 64), 4, "taken twice"),
    ],
)
def test_attention(
    rng: np.random.Generator,
    shape: tuple[int, int, int],
    block: tuple[int, int, int],
    warps: int,
    how: str,
) -> None:
    """A head's last block ends within the next head's, of which nothing is read."""
    batches, heads, length = shape
    m, n, d = block
    q, k, v = (rng.standard_normal((*shape, d)).astype(np.float16) for _ in range(3))
    out = np.full_like(q, 7)
    given = [
        TensorDescriptor.from_tensor(array, [1, 1, rows, d])
        for array, rows in zip((q, k, v, out), (m, n, n, m), strict=True)
    ]
    options: dict[str, Any] = {"M": m, "N": n, "D": d, "HOW": how}
    seen: list[str] = []
    edit = lambda ptx: seen.append(ptx) or ptx  # noqa: E731
    with Emulation(warps, rng, edit, checks_races=False).installed():
        kernel = attention[proton.cdiv(length, m), batches * heads](
            *given, heads, length, 1.4426950408889634 * d**-0.5, **options, num_warps=warps,
            num_stages=2,
        )  # fmt: skip
    x, y, z = (array.astype(np.float32) for array in (q, k, v))
    weights = np.exp(x @ y.swapaxes(-1, -2) * d**-0.5)
    want = weights / weights.sum(-1, keepdims=True) @ z
    assert np.abs(out - want).max() < 4e-3
    assert (ROLES in seen[0]) == (d == 128)
    if warps >= 4:  # only the result is given dimensions, and what dots cannot take as it is
        left = 1 + (how == "taken twice")
        assert kernel.asm["ttgir"].count('"tt.reshape"') == left
