"""Loops of random dots whose copies a producer begins, and the same loops without: right on the
machine for PTX, where warp groups run apart from each other, and right to the checker of barriers.
"""

from typing import Any

import numpy as np
import pytest

import proton
import proton.language as tl
from proton.tools.tensor_descriptor import TensorDescriptor
from tests.compile.ptx.emulation import Emulation
from tests.draws import times


@proton.jit
def loop(
    x_desc, y_desc, z_desc, row_desc, out_desc, turned_desc, sums_desc, y_ptr, z_ptr, row_ptr, n,
    M: tl.constexpr, N: tl.constexpr, D: tl.constexpr, SECOND: tl.constexpr, ROWS: tl.constexpr,
    SPECIAL: tl.constexpr, CHAIN: tl.constexpr, TURNED: tl.constexpr, ADDED: tl.constexpr,
    AGAIN: tl.constexpr, LATE: tl.constexpr, CARRIED: tl.constexpr, SPLIT: tl.constexpr,
    POINTERS: tl.constexpr, MASKED: tl.constexpr, ROLES: tl.constexpr,
):  # fmt: skip
    """Weights of x (M x D) and blocks of y (N x D), and what is made of them: `CHAIN`, sums over
    all blocks, `TURNED`, sums by the row of a block, `ADDED`, rows that TMA adds. `POINTERS`: which
    of y, z and the rows threads copy."""
    x = x_desc.load([0, 0])
    out = tl.zeros((M, D), tl.float32)
    again = tl.zeros((M, D), tl.float32)
    turned = tl.zeros((N, D), tl.float32)
    total = tl.zeros((M,), tl.float32)
    place = 0
    block_rows, columns = tl.arange(0, N), tl.arange(0, D)
    y_ptrs = y_ptr + block_rows[:, None] * D + columns[None, :]
    for part in tl.static_range(2 if SPLIT else 1):
        first = part * (n // 2 // N * N)
        last = n // 2 // N * N if SPLIT and part == 0 else n
        for at in tl.range(first, last, N, warp_specialize=ROLES):
            if "y" in POINTERS and CARRIED:
                y = tl.load(y_ptrs)
            elif "y" in POINTERS:
                places = (at + block_rows)[:, None]
                mask = (places < n) & (columns[None, :] < D) if MASKED else None
                y = tl.load(y_ptr + places * D + columns[None, :], mask=mask)
            else:
                y = y_desc.load([place if CARRIED else at, 0])
            scores = tl.dot(x, y.T)
            if SECOND:
                if "z" in POINTERS:
                    z = tl.load(z_ptr + (at + block_rows)[:, None] * D + columns[None, :])
                else:
                    z = z_desc.load([at, 0])
                other = tl.dot(x, z.T)
            if SPECIAL:
                scores = tl.exp2(scores)
            if ROWS:
                if "r" in POINTERS:
                    mask = at + block_rows < n if MASKED else None
                    scores += tl.load(row_ptr + at + block_rows, mask=mask)[None, :]
                else:
                    scores += row_desc.load([0, at]).reshape(N)[None, :]
            if SECOND:
                scores *= other
            p = scores.to(tl.float16)
            if LATE:
                total += tl.sum(scores, 1)
            if ADDED:
                block = tl.dot(p.T, x)
                if AGAIN:
                    again = tl.dot(p, y, again)
                sums_desc.atomic_add([at, 0], block)
            elif AGAIN:
                again = tl.dot(p, y, again)
            if TURNED:
                turned = tl.dot(p.T, x, turned)
            if CHAIN:
                out = tl.dot(p, z if SECOND else y, out)
            place += N
            y_ptrs += N * D
    out_desc.store([0, 0], out + again + total[:, None])
    turned_desc.store([0, 0], turned)


FLAGS = (
    "SECOND",
    "ROWS",
    "SPECIAL",
    "CHAIN",
    "TURNED",
    "ADDED",
    "AGAIN",
    "LATE",
    "CARRIED",
    "SPLIT",
    "MASKED",
)


def reference(
    x: np.ndarray, y: np.ndarray, z: np.ndarray, rows: np.ndarray, block: int, on: dict[str, bool]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(the sums over all blocks, by the row of a block, and by row)."""
    x, y, z = (array.astype(np.float64) for array in (x, y, z))
    scores = x @ y.T
    if on["SPECIAL"]:
        scores = np.exp2(scores)
    if on["ROWS"]:
        scores = scores + rows
    if on["SECOND"]:
        scores = scores * (x @ z.T)
    out = np.zeros_like(x)
    if on["CHAIN"]:
        out = out + scores @ (z if on["SECOND"] else y)
    if on["AGAIN"]:
        out = out + scores @ y
    if on["LATE"]:
        out = out + scores.sum(1)[:, None]
    added = scores.T @ x
    turned = added.reshape(-1, block, x.shape[1]).sum(0)
    return out, turned * on["TURNED"], added * on["ADDED"]


@pytest.mark.filterwarnings("ignore:ptxas serialises")  # where registers are few
@pytest.mark.parametrize("number", range(times(4)))
def test_random_loops(session_seed: int, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    monkeypatch.setenv("PROTON_VERIFY_EACH", "1")
    rng = np.random.default_rng([session_seed, number])
    print(f"rerun with PROTON_TEST_SEED={session_seed}")
    on = {name: bool(rng.integers(2)) for name in FLAGS}
    warps = int(rng.choice([4, 8]))
    m, n, d = (
        16 * warps * int(rng.choice([1, 2]) if warps == 4 else 1),
        int(rng.choice([32, 64])),
        64,
    )
    pointers = "".join(name for name in "yzr" if rng.integers(2))
    stages, count = int(rng.choice([2, 3])), int(rng.choice([1, 2, 5]))
    new: Any = lambda *shape: (rng.standard_normal(shape) / 8).astype(np.float16)  # noqa: E731
    x, y, z = new(m, d), new(n * count, d), new(n * count, d)
    rows = (rng.standard_normal((1, n * count)) / 8).astype(np.float32)
    for roles in (True, False):
        out, turned, sums = (
            np.full((m, d), np.nan, np.float32),
            np.full((n, d), np.nan, np.float32),
            np.zeros((n * count, d), np.float32),
        )
        blocks = ((m, d), (n, d), (n, d), (1, n), (m, d), (n, d), (n, d))
        arrays = (x, y, z, rows, out, turned, sums)
        given = [
            TensorDescriptor.from_tensor(array, list(block))
            for array, block in zip(arrays, blocks, strict=True)
        ]
        with Emulation(warps, rng, checks_races=False, apart=128).installed():
            loop[(1,)](
                *given, y, z, rows, n * count, m, n, d, **on, POINTERS=pointers, ROLES=roles,
                num_warps=warps, num_stages=stages,
            )  # fmt: skip
        want = reference(x, y, z, rows, n, on)
        for name, mine, expected in zip(
            ("out", "turned", "sums"), (out, turned, sums), want, strict=True
        ):
            error = np.abs(mine - expected).max()
            assert error <= 4e-3 * max(1, np.abs(expected).max()), (
                name,
                roles,
                on,
                m,
                n,
                warps,
                stages,
                count,
                pointers,
            )
