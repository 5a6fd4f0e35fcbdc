"""Dots that go on into the next iteration beside dots that do not, on the machine for PTX, which
sees memory change under a dot."""

from typing import Any

import numpy as np
import pytest

import proton
import proton.language as tl
from proton.tools.tensor_descriptor import TensorDescriptor
from tests.compile.ptx.emulation import Emulation


@proton.jit
def two_takers(
    q_desc, k_desc, v_desc, out_desc, n, M: tl.constexpr, N: tl.constexpr, SUMS: tl.constexpr
):
    """Two dots take k the other way round, and one of them goes on."""
    q = q_desc.load([0, 0])
    out = tl.zeros((M, 64), tl.float32)
    scores = tl.zeros((M, N), tl.float32)
    total = tl.zeros((M,), tl.float32)
    for at in range(0, n, N):
        k = k_desc.load([at, 0])
        weights = tl.exp2(tl.dot(q, tl.trans(k)))
        if SUMS and at > N:
            total += tl.sum(out, 1)
        v = v_desc.load([at, 0])
        out = tl.dot(weights.to(tl.float16), v, out)
        scores = tl.dot(q, tl.trans(k), scores)
    out += total[:, None]  # of another layout: scratch memory lies where buffers were
    out += tl.sum(scores, 1)[:, None]
    out_desc.store([0, 0], out.to(tl.float16))


@pytest.mark.usefixtures("no_assembler")
@pytest.mark.parametrize(
    ("m", "n", "sums", "stages"),
    [
        (64, 64, True, 2),
        (64, 64, False, 3),
        (64, 32, False, 1),  # without a pipeline the loop keeps k, and a view of it
    ],
)
def test_of_two_takers(
    rng: np.random.Generator,
    monkeypatch: pytest.MonkeyPatch,
    m: int,
    n: int,
    sums: bool,
    stages: int,
) -> None:
    """One iteration, and more."""
    monkeypatch.setenv("PROTON_VERIFY_EACH", "1")
    q, k, v = (
        (rng.standard_normal((rows, 64)) / 8).astype(np.float16) for rows in (m, 4 * n, 4 * n)
    )
    out = np.full_like(q, np.nan)
    given: list[Any] = [
        TensorDescriptor.from_tensor(array, [rows, 64])
        for array, rows in ((q, m), (k, n), (v, n), (out, m))
    ]
    for length in (n, 4 * n):
        with Emulation(m // 16, rng, checks_races=False).installed():
            two_takers[1,](
                *given, length, M=m, N=n, SUMS=sums, num_warps=m // 16, num_stages=stages
            )
        want, total = np.zeros((m, 64), np.float32), np.zeros((m, 1), np.float32)
        for at in range(0, length, n):
            scores = q.astype(np.float32) @ k[at : at + n].T.astype(np.float32)
            if sums and at > n:
                total += want.sum(1, keepdims=True)
            want += np.exp2(scores).astype(np.float16) @ v[at : at + n].astype(np.float32)
        want += total + (q.astype(np.float32) @ k[:length].T.astype(np.float32)).sum(1)[:, None]
        assert np.abs(out - want).max() <= 3e-3 * np.abs(want).max()
