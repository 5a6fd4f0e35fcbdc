"""Left operands of warp-group dots that are computed: in shared memory where threads would pass
them on by way of it, else in registers; right either way."""

import re
from collections.abc import Callable

import numpy as np
import pytest

import proton
import proton.language as tl
from tests.compile.ptx.emulation import Emulation


@proton.jit
def _block(ptr, rows, columns, N: tl.constexpr):
    return tl.load(ptr + rows[:, None] * N + columns[None, :])


@proton.jit
def chain(x_ptr, y_ptr, out_ptr, n, M: tl.constexpr, N: tl.constexpr, D: tl.constexpr):
    """out = sum over blocks of y of (x @ y.T) @ y."""
    m, j, d = tl.arange(0, M), tl.arange(0, N), tl.arange(0, D)
    x = _block(x_ptr, m, d, D)
    out = tl.zeros((M, D), tl.float32)
    for start in range(0, n, N):
        y = _block(y_ptr, start + j, d, D)
        out = tl.dot(tl.dot(x, y.T).to(y.dtype), y, out)
    tl.store(out_ptr + m[:, None] * D + d[None, :], out)


@proton.jit
def transposed(x_ptr, y_ptr, out_ptr, n, M: tl.constexpr, N: tl.constexpr, D: tl.constexpr):
    """out = sum over blocks of y of (x @ y.T).T @ x, for each row of a block."""
    m, j, d = tl.arange(0, M), tl.arange(0, N), tl.arange(0, D)
    x = _block(x_ptr, m, d, D)
    out = tl.zeros((N, D), tl.float32)
    for start in range(0, n, N):
        y = _block(y_ptr, start + j, d, D)
        p = tl.dot(x, y.T).to(y.dtype)
        out = tl.dot(p.T, x, out)
    tl.store(out_ptr + j[:, None] * D + d[None, :], out)


@proton.jit
def both_ways(x_ptr, y_ptr, out_ptr, n, M: tl.constexpr, N: tl.constexpr, D: tl.constexpr):
    """The sum of both, of square blocks: two dots take one value."""
    m, j, d = tl.arange(0, M), tl.arange(0, N), tl.arange(0, D)
    x = _block(x_ptr, m, d, D)
    out = tl.zeros((M, D), tl.float32)
    other = tl.zeros((N, D), tl.float32)
    for start in range(0, n, N):
        y = _block(y_ptr, start + j, d, D)
        p = tl.dot(x, y.T).to(y.dtype)
        other = tl.dot(p.T, x, other)
        out = tl.dot(p, y, out)
    tl.store(out_ptr + m[:, None] * D + d[None, :], out + other)


Reference = Callable[[np.ndarray, np.ndarray], np.ndarray]


def _chain(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return (x @ y.T) @ y


def _transposed(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return (x @ y.T).T @ x


REFERENCES: dict[object, Reference] = {
    chain: _chain,
    transposed: _transposed,
    both_ways: lambda x, y: _chain(x, y) + _transposed(x, y),
}


@pytest.mark.usefixtures("no_assembler")
@pytest.mark.parametrize(
    ("kernel", "dtype", "blocks", "warps", "in_registers"),
    [
        (chain, "float16", (128, 64, 64), 8, True),  # an accumulator is the next one's operand
        (chain, "float16", (64, 64, 64), 4, True),
        (chain, "float16", (64, 64, 128), 8, False),  # each group has half of the columns
        (transposed, "float16", (64, 64, 64), 4, False),
        (transposed, "float16", (128, 64, 64), 8, False),
        (both_ways, "float16", (64, 64, 64), 4, False),
        (both_ways, "float32", (64, 64, 32), 4, True),  # it would have to lie along K
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_where_left_operands_are(
    rng: np.random.Generator,
    kernel: object,
    dtype: str,
    blocks: tuple[int, int, int],
    warps: int,
    in_registers: bool,
) -> None:
    m, n, d = blocks
    x = (rng.standard_normal((m, d)) / 8).astype(dtype)
    y = (rng.standard_normal((2 * n, d)) / 8).astype(dtype)
    out = np.full((n if kernel is transposed else m, d), np.nan, np.float32)
    seen: list[str] = []
    with Emulation(warps, rng, lambda ptx: seen.append(ptx) or ptx).installed():
        kernel[(1,)](x, y, out, 2 * n, *blocks, num_warps=warps, num_stages=2)  # type: ignore[index]
    want = sum(REFERENCES[kernel](*map(np.float64, (x, part))) for part in (y[:n], y[n:]))
    np.testing.assert_allclose(out, want, atol=5e-3)
    dots = re.findall(r"wgmma\.mma_async\S* \{[^}]*\}, (\S)", seen[0])
    assert dots
    assert ("{" in dots) == in_registers
