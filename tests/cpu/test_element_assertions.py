"""Assertions in functions that combine or map elements: they fail where what is combined does."""

import numpy as np
import pytest

import proton
import proton.language as tl

N = 64


@proton.jit
def checked(x):
    """Of branches each has assertions of its own; the first that fails is the one that is said."""
    if x > 100:
        tl.device_assert(x < 200, "too large")
        y = x * 2
    else:
        if x == 13:
            tl.device_assert(x < 0, "thirteen")
        y = x
    assert y != 7, "seven"
    return y


@proton.jit
def larger(a, b):
    return tl.maximum(checked(a), checked(b))


@proton.jit
def larger_pair(a, i, b, j):
    tl.device_assert((a >= 0) & (b >= 0), "negative")
    first = (a > b) | ((a == b) & (i < j))
    return tl.where(first, a, b), tl.where(first, i, j)


@proton.jit
def reduces(x_ptr, out_ptr, N: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, N)[:, None] * 4 + tl.arange(0, 4)[None, :])
    tl.store(out_ptr + tl.arange(0, 4), tl.reduce(x, 0, larger))


@proton.jit
def leads(x_ptr, out_ptr, N: tl.constexpr):
    at = tl.arange(0, N * 4)
    x, place = tl.reduce((tl.load(x_ptr + at), at), 0, larger_pair)
    tl.store(out_ptr, x)
    tl.store(out_ptr + 1, place)


@proton.jit
def scans(x_ptr, out_ptr, N: tl.constexpr):
    at = tl.arange(0, N * 4)
    tl.store(out_ptr + at, tl.associative_scan(tl.load(x_ptr + at), 0, larger))


@proton.jit
def maps(x_ptr, out_ptr, N: tl.constexpr):
    at = tl.arange(0, N * 4)
    tl.store(out_ptr + at, tl.map_elementwise(checked, tl.load(x_ptr + at)))


def _led(x: np.ndarray) -> np.ndarray:
    return np.array([x.max(), x.argmax()], np.int32)


KERNELS = {
    "reduces": (reduces, lambda x: x.max(0)),
    "scans": (scans, lambda x: np.maximum.accumulate(x.ravel())),
    "maps": (maps, lambda x: x.ravel()),
}


@pytest.mark.interpreted
@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("value, message", [(250, "too large"), (13, "thirteen"), (7, "seven")])
def test_an_assertion_of_a_function_of_elements(
    rng: np.random.Generator, name: str, value: int, message: str
) -> None:
    kernel, of = KERNELS[name]
    x = rng.integers(14, 100, (N, 4), dtype=np.int32)
    out = np.zeros(of(x).shape, np.int32)
    kernel[(1,)](x, out, N, debug=True)
    np.testing.assert_array_equal(out, of(x))
    x[rng.integers(0, N), rng.integers(0, 4)] = value
    if name != "maps" and value < 14:
        x[:] = value  # or a larger one hides it in the partial results
    with pytest.raises(AssertionError, match=f"in checked: assertion failed: {message}"):
        kernel[(1,)](x, out, N, debug=True)
    kernel[(1,)](x, out, N)  # means nothing without debug mode


@pytest.mark.interpreted
def test_several_blocks_with_an_assertion(rng: np.random.Generator) -> None:
    x, out = rng.integers(0, 50, N * 4, dtype=np.int32), np.zeros(2, np.int32)
    leads[(1,)](x, out, N, debug=True)
    np.testing.assert_array_equal(out, _led(x))
    x[rng.integers(0, N * 4)] = -1
    with pytest.raises(AssertionError, match="negative"):
        leads[(1,)](x, out, N, debug=True)


@proton.jit
def loops(a, b):
    for i in range(a):
        tl.device_assert(i < b)
    return a + b


@proton.jit
def reduces_by_a_loop(x_ptr, N: tl.constexpr):
    tl.store(x_ptr, tl.reduce(tl.load(x_ptr + tl.arange(0, N)), 0, loops))


@proton.jit
def eight(a, b, c, d, e, f, g, h, a_, b_, c_, d_, e_, f_, g_, h_):
    tl.device_assert(a > 0)
    return a, b, c, d, e, f, g, h


@proton.jit
def reduces_eight(x_ptr, N: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, N))
    tl.store(x_ptr, tl.reduce((x, x, x, x, x, x, x, x), 0, eight)[0])


@pytest.mark.parametrize(
    "kernel, text",
    [
        (reduces_by_a_loop, "cannot print, assert in a loop"),
        (reduces_eight, "eight asserts, and combines 8 blocks: one less is possible"),
    ],
)
def test_assertions_that_are_refused(kernel, text: str) -> None:
    x = np.ones(16, np.int32)
    kernel[(1,)](x, 16)  # without debug mode there are none
    with pytest.raises(proton.CompilationError, match=text):
        kernel[(1,)](x, 16, debug=True)


@pytest.mark.parametrize("kernel", [reduces, leads, scans, maps])
def test_assertions_of_elements_compile_for_gpus(kernel) -> None:
    target = proton.GPUTarget("cuda", 90)
    code = kernel.warmup(tl.int32, tl.int32, N, debug=True, target=target).asm["ptx"]
    assert "__assertfail" in code
    assert "__assertfail" not in kernel.warmup(tl.int32, tl.int32, N, target=target).asm["ptx"]
