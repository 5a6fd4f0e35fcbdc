"""Integers that overflow: an error in debug mode, as Triton has it, and wrapped without."""

import numpy as np
import pytest

from tests.cpu.harness import kernels_of

KERNELS = """
@proton.jit
def plus(x_ptr, y_ptr, out_ptr, N: tl.constexpr):
    at = tl.arange(0, N)
    tl.store(out_ptr + at, tl.load(x_ptr + at) + tl.load(y_ptr + at))

@proton.jit
def minus(x_ptr, y_ptr, out_ptr, N: tl.constexpr):
    at = tl.arange(0, N)
    x = tl.load(x_ptr + at)
    x -= tl.load(y_ptr + at)
    tl.store(out_ptr + at, x)

@proton.jit
def times(x_ptr, y_ptr, out_ptr, N: tl.constexpr):
    at = tl.arange(0, N)
    tl.store(out_ptr + at, tl.mul(tl.load(x_ptr + at), tl.load(y_ptr + at)))

@proton.jit
def wraps(x_ptr, y_ptr, out_ptr, N: tl.constexpr):
    at = tl.arange(0, N)
    x, y = tl.load(x_ptr + at), tl.load(y_ptr + at)
    tl.store(out_ptr + at, tl.mul(x, tl.add(x, y, sanitize_overflow=False), False))

@proton.jit
def drawn(seed, x_ptr, N: tl.constexpr):
    at = tl.arange(0, N)
    tl.store(x_ptr + at, tl.rand(seed, at) + tl.max(tl.randint(seed, at), 0) * 0.0)
"""
OPERATIONS = {"plus": np.add, "minus": np.subtract, "times": np.multiply}
NAMES = {"plus": "add", "minus": "sub", "times": "mul"}
N = 8


@pytest.mark.interpreted
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "uint32"])
@pytest.mark.parametrize("name", OPERATIONS)
def test_debug_mode_finds_overflows(rng: np.random.Generator, name: str, dtype: str) -> None:
    kernel, info, of = getattr(kernels_of(KERNELS), name), np.iinfo(dtype), OPERATIONS[name]
    x = rng.integers(info.min, info.max, N, dtype=dtype, endpoint=True)
    y = rng.integers(1, 3, N, dtype=dtype)
    exact = of(x.astype(object), y.astype(object))
    y[(exact < info.min) | (exact > info.max)] = name == "times"  # 0, or 1: nothing changes
    out = np.zeros_like(x)
    kernel[(1,)](x, y, out, N=N, debug=True)
    assert (out == of(x, y)).all()
    place = rng.integers(N)
    x[place], y[place] = {"plus": (info.max, 1), "minus": (info.min, 1), "times": (info.max, 2)}[
        name
    ]
    kernel[(1,)](x, y, out, N=N)
    with np.errstate(over="ignore"):
        assert (out == of(x, y)).all()
    with pytest.raises(AssertionError, match=f"{dtype} overflow detected for .* {NAMES[name]}"):
        kernel[(1,)](x, y, out, N=N, debug=True)


@pytest.mark.interpreted
@pytest.mark.parametrize("name", OPERATIONS)
def test_debug_mode_without_overflows(name: str) -> None:
    """One kernel with and without, so each has code of its own; other assertions stay."""
    source = "tl.device_assert(tl.load(x_ptr) != 7)\n    at = tl.arange(0, N)"
    kernel = getattr(kernels_of(KERNELS.replace("at = tl.arange(0, N)", source)), name)
    x, out = np.full(N, -(2**31) + (name == "plus"), np.int32), np.zeros(N, np.int32)
    y = np.full(N, 2 if name != "plus" else -2, np.int32)
    with np.errstate(over="ignore"):
        wrapped = OPERATIONS[name](x, y)
    for sanitize in (False, True, None, False):
        options = {} if sanitize is None else {"sanitize_overflow": sanitize}
        if sanitize is False:
            kernel[(1,)](x, y, out, N=N, debug=True, **options)
            assert (out == wrapped).all()
        else:
            with pytest.raises(AssertionError, match="int32 overflow detected"):
                kernel[(1,)](x, y, out, N=N, debug=True, **options)
            kernel[(1,)](x, y, out, N=N, **options)  # means nothing without
    x[0] = 7
    with pytest.raises(RuntimeError, match=r"assertion failed: .* \(device-side assertion\)"):
        kernel[(1,)](x, y, out, N=N, debug=True, sanitize_overflow=False)


@pytest.mark.interpreted
def test_what_is_meant_to_wrap_is_not_checked() -> None:
    x, out = np.full(N, 2**31 - 1, np.int32), np.zeros(N, np.int32)
    kernels_of(KERNELS).wraps[(1,)](x, x, out, N=N, debug=True)
    assert (out == 2).all()  # the largest times -2
    numbers = np.zeros(N, np.float32)
    kernels_of(KERNELS).drawn[(1,)](2**40 + 7, numbers, N=N, debug=True)
    assert ((numbers >= 0) & (numbers < 1)).all()


ALONG = """
@proton.jit
def kernel(x_ptr, out_ptr, N: tl.constexpr):
    at = tl.arange(0, N)
    x = tl.load(x_ptr + at[:, None] * 4 + tl.arange(0, 4)[None, :])
    tl.store(out_ptr + at[:, None] * 4 + tl.arange(0, 4)[None, :], {expression} + tl.zeros_like(x))

@proton.jit
def scaled(x):
    return x * 3 if x > 0 else x
"""


@pytest.mark.interpreted
@pytest.mark.parametrize(
    "expression, of",
    [
        ("tl.sum(x, 0)[None, :]", lambda x: x.sum(0)[None, :]),
        ("tl.sum(x, 1, keep_dims=True)", lambda x: x.sum(1)[:, None]),
        ("tl.sum(x)", np.sum),
        ("tl.cumsum(x, 0)", lambda x: x.cumsum(0)),
        ("tl.cumsum(x, 1, reverse=True)", lambda x: x[:, ::-1].cumsum(1)[:, ::-1]),
        ("tl.cumprod(x, 1)", lambda x: x.cumprod(1)),
        ("tl.map_elementwise(scaled, x)", lambda x: np.where(x > 0, 3 * x, x)),
    ],
)
def test_debug_mode_finds_overflows_along_axes(expression, of, rng: np.random.Generator) -> None:
    """All numbers have one sign, so an overflow is one in whatever order they are combined."""
    kernel = kernels_of(ALONG.format(expression=expression)).kernel
    x = rng.integers(1, 30, (N, 4), dtype=np.int32)
    out = np.zeros_like(x)
    kernel[(1,)](x, out, N=N, debug=True)
    np.testing.assert_array_equal(out, np.broadcast_to(of(x), x.shape))
    x[rng.integers(0, N)] = 2**31 - 2
    x[:, rng.integers(0, 4)] = 2**31 - 2
    with pytest.raises(AssertionError, match="int32 overflow detected"):
        kernel[(1,)](x, out, N=N, debug=True)
    kernel[(1,)](x, out, N=N, debug=True, sanitize_overflow=False)
    kernel[(1,)](x, out, N=N)
    with np.errstate(all="ignore"):
        want = of(x.astype(np.int64)).astype(np.int32)
    np.testing.assert_array_equal(out, np.broadcast_to(want, x.shape))
