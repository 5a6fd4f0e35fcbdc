"""tl.map_elementwise: functions that branch and loop, of each element, against Python's."""

from typing import Any

import numpy as np
import pytest

import proton
import proton.language as tl
from proton import CompilationError
from tests.cpu.harness import ordinary

pytestmark = pytest.mark.interpreted

N = 64


@proton.jit
def collatz(n):
    steps = 0
    while n > 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
        if steps == 20:
            break
    return steps


@proton.jit
def compared(a, b):
    if a < b:
        return -1, b - a
    elif a == b:
        return 0, 0
    return 1, a - b


@proton.jit
def divided(a0, a1, b0, b1):
    return a0 // b0, a1 // b1, a0 % b0, a1 % b1


@proton.jit
def each(x_ptr, y_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    x, y = tl.load(x_ptr + offs), tl.load(y_ptr + offs)
    order, distance = tl.map_elementwise(compared, x, y)
    quotient, rest = tl.map_elementwise(divided, x, y, pack=2)
    steps = tl.map_elementwise(collatz, x[:, None] & 15)
    tl.store(out_ptr + offs, order)
    tl.store(out_ptr + N + offs, distance)
    tl.store(out_ptr + 2 * N + offs, quotient)
    tl.store(out_ptr + 3 * N + offs, rest)
    tl.store(out_ptr + 4 * N + offs[:, None], steps)
    tl.store(out_ptr + 5 * N, tl.map_elementwise(collatz, 7))


def collatz_steps(n: int) -> int:
    steps = 0
    while n > 1 and steps < 20:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    return steps


def test_functions_of_elements(rng: np.random.Generator) -> None:
    x, y = (rng.integers(1, 40, N, dtype=np.int32) for _ in range(2))
    out = np.zeros(5 * N + 1, np.int32)
    each[(1,)](x, y, out, N=N)
    want = [np.sign(x - y), abs(x - y), x // y, x % y, [collatz_steps(n & 15) for n in x]]
    assert (out[:-1].reshape(5, N) == want).all()
    assert out[-1] == collatz_steps(7)


@proton.jit
def halved(x):
    return x * 0.5 if x > 0 else 0.0


@proton.jit
def half_of(x_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    tl.store(out_ptr + offs, tl.map_elementwise(halved, tl.load(x_ptr + offs).to(tl.float32)))


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_the_result_may_be_of_another_type(rng: np.random.Generator, dtype: str) -> None:
    x, out = ordinary(rng, dtype, N), np.zeros(N, np.float64)
    half_of[(1,)](x, out, N=N)
    assert (out == np.maximum(x, 0).astype(np.float32) * np.float32(0.5)).all()


@proton.jit
def loads(x):
    return tl.load(x)


@proton.jit
def nothing(x):
    pass


@proton.jit
def applies(x_ptr, F: tl.constexpr, N: tl.constexpr):
    tl.map_elementwise(F, x_ptr + tl.arange(0, N))


@pytest.mark.parametrize(
    ("function", "rule"),
    [
        (loads, "scalar_fn loads may only compute"),
        (nothing, "nothing must return 1 values for each block"),
        (3, "scalar_fn must be a @proton.jit function, got 3"),
    ],
    ids=["loads", "nothing", "number"],
)
def test_mistakes_are_named(function: Any, rule: str) -> None:
    with pytest.raises(CompilationError, match=rule):
        applies[(1,)](np.zeros(N, np.int32), F=function, N=N)
