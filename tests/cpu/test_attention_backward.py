"""The gradients of attention against numpy in float64, and that against differences."""

from typing import Any

import numpy as np
import pytest

from kernels.attention import attention
from kernels.attention_backward import attention_backward
from kernels.attention_backward import reference as gradients
from kernels.attention_backward_fused import attention_backward_fused
from tests.cpu.test_attention import reference

NAMES = ("dq", "dk", "dv")


def check(
    rng: np.random.Generator, shape: tuple[int, ...], causal: bool, dtype: str = "float32",
    scale: float | None = None, backward: Any = attention_backward, forward: Any = attention,
    **options: int,
) -> None:  # fmt: skip
    """Heads that are not side by side in memory, as projections give them."""
    batch, heads, length, head = shape
    q, k, v, dout = (
        rng.standard_normal((batch, length, heads, head)).astype(dtype).swapaxes(1, 2)
        for _ in range(4)
    )
    out, lse = forward(q, k, v, causal, scale)
    got = backward(q, k, v, out, dout, lse, causal, scale, **options)
    want = gradients(*(x.astype(np.float64) for x in (q, k, v, dout)), causal, scale)
    bound = {"float16": 1e-2, "float32": 1e-4}[dtype]
    for name, mine, expected in zip(NAMES, got, want, strict=True):
        assert mine.dtype == dtype
        np.testing.assert_allclose(mine, expected, rtol=bound, atol=bound, err_msg=name)


def by_numpy(
    q: np.ndarray, k: np.ndarray, v: np.ndarray, causal: bool, scale: float | None
) -> tuple[np.ndarray, np.ndarray]:
    """What `attention` gives, without its kernels: those have tests of their own."""
    out, lse = reference(q, k, v, causal, scale)
    along = np.empty_like(q)
    along[...] = out
    return along, lse.astype(np.float32)


@pytest.mark.parametrize(
    "block, step, lengths, causal",
    [
        (32, 16, (33, 48, 100), False),
        (32, 16, (1, 33, 48, 100), True),
        (16, 32, (33, 100), False),
        (16, 32, (33, 100), True),
    ],
)
def test_gradients(
    rng: np.random.Generator, block: int, step: int, lengths: tuple[int, ...], causal: bool
) -> None:
    for length in lengths:
        check(rng, (2, 3, length, 16), causal, forward=by_numpy, BLOCK=block, STEP=step)


def test_dtypes_and_scales(rng: np.random.Generator) -> None:
    check(rng, (1, 2, 70, 64), True, dtype="float16")
    check(rng, (1, 2, 70, 32), False, scale=0.5)


@pytest.mark.parametrize("causal, lengths", [(False, (1, 33, 100)), (True, (33, 100))])
def test_one_kernel_for_all_gradients(
    rng: np.random.Generator, causal: bool, lengths: tuple[int, ...]
) -> None:
    for length in lengths:
        given = rng, (2, 3, length, 16), causal, "float16", 0.5, attention_backward_fused, by_numpy
        check(*given, block=32, step=16)
    if causal:
        check(rng, (1, 2, 70, 64), causal, "float16", None, attention_backward_fused)


def test_sums_that_are_far_from_one(rng: np.random.Generator) -> None:
    """Keys beyond the end would have weights that no fp32 holds, if they were not left out."""
    q, k, v, dout = (rng.standard_normal((1, 1, 21, 16), dtype=np.float32) for _ in range(4))
    q[..., 0] = 24
    k[..., 0] = -24
    out, lse = attention(q, k, v)
    assert lse.max() < -128  # 2**128 is infinite
    want = gradients(*(x.astype(np.float64) for x in (q, k, v, dout)))
    for got in (
        attention_backward(q, k, v, out, dout, lse, BLOCK=16, STEP=16),
        attention_backward_fused(q, k, v, out, dout, lse, block=16, step=16),
    ):
        for mine, expected in zip(got, want, strict=True):
            np.testing.assert_allclose(mine, expected, rtol=0, atol=1e-3 * np.abs(expected).max())


@pytest.mark.parametrize("causal", [False, True])
def test_the_reference_agrees_with_differences(rng: np.random.Generator, causal: bool) -> None:
    inputs = [rng.standard_normal((2, 2, 9, 8)) for _ in range(3)]
    dout, step = rng.standard_normal((2, 2, 9, 8)), 1e-5
    for place, gradient in enumerate(gradients(*inputs, dout, causal)):
        direction = rng.standard_normal(gradient.shape)
        moved = [[*inputs], [*inputs]]
        moved[0][place] = inputs[place] - step * direction
        moved[1][place] = inputs[place] + step * direction
        low, high = ((reference(*x, causal)[0] * dout).sum() for x in moved)
        assert (high - low) / (2 * step) == pytest.approx((gradient * direction).sum(), abs=1e-6)


@pytest.mark.parametrize("shape", [(0, 2, 5, 16), (2, 0, 5, 16), (2, 3, 0, 16)])
def test_nothing(rng: np.random.Generator, shape: tuple[int, ...]) -> None:
    check(rng, shape, True, BLOCK=16, STEP=16)
    check(rng, shape, True, backward=attention_backward_fused)


def test_shapes_are_those_of_q(rng: np.random.Generator) -> None:
    x = rng.standard_normal((1, 2, 16, 16), dtype=np.float32)
    out, lse = by_numpy(x, x, x, False, None)
    with pytest.raises(ValueError, match=r"dout \(1, 2, 8, 16\)"):
        attention_backward(x, x, x, out, x[:, :, :8], lse)
