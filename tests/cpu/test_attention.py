"""Attention of the wrappers' kernel against numpy in float64."""

import math
from typing import Any

import numpy as np
import pytest

import proton
import proton.language as tl
from kernels.attention import attention, attention_kernel, by_descriptors
from tests.cpu.test_float8 import rounded, values
from tests.pairs import chosen


def reference(
    q: np.ndarray, k: np.ndarray, v: np.ndarray, causal: bool, scale: float | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """(weighted values, logarithm of the sums to base 2)."""
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    scores = q @ k.swapaxes(-1, -2) * (scale or 1 / math.sqrt(q.shape[-1]))
    if causal:
        scores = np.where(np.tri(q.shape[-2], dtype=bool), scores, -np.inf)
    highest = scores.max(-1, keepdims=True)
    weights = np.exp(scores - highest)
    total = weights.sum(-1, keepdims=True)
    return weights / total @ v, ((highest + np.log(total)) / math.log(2))[..., 0]


def launch(q: Any, k: Any, v: Any, out: Any, lse: Any, causal: bool, **options: Any) -> None:
    batch, heads, length, head = q.shape
    strides = [s // q.itemsize for x in (q, k, v, out) for s in x.strides[:3]]
    blocks = {"BLOCK_M": 32, "BLOCK_N": 16, "OVERLAP": False} | options
    grid = (proton.cdiv(length, blocks["BLOCK_M"]), batch * heads)
    attention_kernel[grid](
        q, k, v, out, lse, *strides, heads, length, 1 / math.sqrt(head), HEAD=head,
        CAUSAL=causal, **blocks,
    )  # fmt: skip


@pytest.mark.parametrize(
    "length, causal, overlap",
    chosen(
        {"length": [1, 16, 33, 100], "causal": [False, True], "overlap": [False, True]},
        "length causal",
        "causal overlap",
        "length overlap",
    ),
)
def test_attention(rng: np.random.Generator, length: int, causal: bool, overlap: bool) -> None:
    shape = (2, 3, length, 16)
    q, k, v = (rng.standard_normal(shape, dtype=np.float32) for _ in range(3))
    out, lse = np.full(shape, np.nan, np.float32), np.full(shape[:3], np.nan, np.float32)
    launch(q, k, v, out, lse, causal, OVERLAP=overlap)
    want, sums = reference(q, k, v, causal)
    np.testing.assert_allclose(out, want, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(lse, sums, rtol=1e-4, atol=1e-4)


def test_heads_that_are_not_side_by_side(rng: np.random.Generator) -> None:
    """(batch, length, heads, size) in memory, as projections give it."""
    q, k, v, out = (
        rng.standard_normal((2, 40, 3, 16), dtype=np.float32).transpose(0, 2, 1, 3)
        for _ in range(4)
    )
    lse = np.zeros((2, 3, 40), np.float32)
    launch(q, k, v, out, lse, True, OVERLAP=True)
    np.testing.assert_allclose(out, reference(q, k, v, True)[0], rtol=1e-4, atol=1e-4)


# Of a weight, relative to it, and of those too small for the format, relative to the row's largest.
WEIGHT_ERRORS = {"float8e4nv": (2.0**-4, 2.0**-10), "float8e5": (2.0**-3, 2.0**-17)}


def float8_bound(
    q: np.ndarray, k: np.ndarray, v: np.ndarray, causal: bool, dtype: str
) -> np.ndarray:
    """What rounding the weights to 8 bits changes at most, and a fourth of it for all else: sums of
    13 bits, and the result as fp16."""
    relative, least = WEIGHT_ERRORS[dtype]
    scores = q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])
    visible = np.tri(q.shape[-2], dtype=bool) if causal else np.ones_like(scores, bool)
    scores = np.where(visible, scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    errors = weights * relative * 1.25 + least * visible
    return errors / weights.sum(-1, keepdims=True) @ np.abs(v)


@pytest.mark.parametrize("dtype, length, causal, overlap, transposed", [
    ("float8e4nv", 257, False, False, True), ("float8e4nv", 100, True, True, False),
    ("float8e4nv", 257, True, True, True), ("float8e5", 257, True, False, True),
    ("float8e5", 100, False, True, True), ("float8e5", 1, False, False, False),
])  # fmt: skip
def test_float8(
    rng: np.random.Generator, dtype: str, length: int, causal: bool, overlap: bool, transposed: bool
) -> None:
    """v as it is, and transposed in memory."""
    shape = (1, 2, length, 64)
    codes = [rounded(rng.standard_normal(shape), dtype) for _ in range(3)]
    numbers = [values(dtype)[code] for code in codes]
    if transposed:
        codes[2] = np.ascontiguousarray(codes[2].swapaxes(2, 3)).swapaxes(2, 3)
    out, lse = np.full(shape, np.nan, np.float16), np.full(shape[:3], np.nan, np.float32)
    strides = [s // x.itemsize for x in (*codes, out) for s in x.strides[:3]]
    attention_kernel[proton.cdiv(length, 64), 2](
        *(proton.reinterpret(code, getattr(tl, dtype)) for code in codes), out, lse, *strides, 2,
        length, 1 / math.sqrt(64), HEAD=64, BLOCK_M=64, BLOCK_N=32, CAUSAL=causal, OVERLAP=overlap,
        stride_vd=codes[2].strides[3],
    )  # fmt: skip
    want, sums = reference(*numbers, causal)
    error = np.abs(out - want)
    assert (error <= float8_bound(*numbers, causal, dtype)).all(), f"{error.max()}"
    np.testing.assert_allclose(lse, sums, rtol=0, atol=2.0**-7)


@pytest.mark.parametrize(
    "dtype, bound, causal", [("float16", 2e-3, False), ("float32", 1e-4, True)]
)
def test_the_wrapper(rng: np.random.Generator, dtype: str, bound: float, causal: bool) -> None:
    """What it allocates, what it is given, and the scale."""
    shape = (2, 2, 130, 32)
    q, k, v = (rng.standard_normal(shape).astype(dtype) for _ in range(3))
    given = np.full(shape, np.nan, dtype), np.full(shape[:3], np.nan, np.float32)
    for out, scale in ((None, None), (given, 0.3)):
        got, lse = attention(q, k, v, causal, scale, out, BLOCK_N=32)
        want, sums = reference(q, k, v, causal, scale)
        assert got.dtype == dtype
        np.testing.assert_allclose(got, want, rtol=bound, atol=bound)
        np.testing.assert_allclose(lse, sums, rtol=bound, atol=bound)
    assert (got is given[0], lse is given[1]) == (True, True)


def test_what_the_wrapper_refuses(rng: np.random.Generator) -> None:
    x = rng.standard_normal((1, 2, 16, 16), dtype=np.float32)
    with pytest.raises(ValueError, match=r"one shape of 4 dimensions, got .*v \(1, 1, 16, 16\)"):
        attention(x, x, x[:, :1])
    with pytest.raises(ValueError, match="last dimension of k must be contiguous, got stride 16"):
        attention(x, x.swapaxes(2, 3), x)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("length", [1, 33, 100])
def test_attention_by_descriptors(rng: np.random.Generator, length: int, causal: bool) -> None:
    """Of heads that are not side by side; blocks are larger than the sequence, or end beyond it."""
    q, k, v, out = (
        rng.standard_normal((2, length, 3, 16), dtype=np.float32).transpose(0, 2, 1, 3)
        for _ in range(4)
    )
    lse = np.full((2, 3, length), np.nan, np.float32)
    by_descriptors(q, k, v, (out, lse), causal, 0.3, block_m=32, block_n=16)
    want, sums = reference(q, k, v, causal, 0.3)
    np.testing.assert_allclose(out, want, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(lse, sums, rtol=1e-4, atol=1e-4)
