"""MX formats on the host, against numbers that are computed one by one, and `tl.dot_scaled`."""

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import proton
import proton.language as tl
from proton.tools.mxfp import MXFP4Tensor, MXScaleTensor, fp8e8m0_to_float32

torch = pytest.importorskip("torch")


def decoded(code: int) -> float:
    """A number of E2M1 by the formula of its format."""
    exponent, mantissa = code >> 1 & 3, code & 1
    magnitude = mantissa / 2 if exponent == 0 else (1 + mantissa / 2) * 2.0 ** (exponent - 1)
    return math.copysign(magnitude, -1 if code >> 3 else 1)


def encoded(value: float) -> int:
    """The code next to a number; of two that are as near the even one."""
    sign = 8 if math.copysign(1, value) < 0 else 0
    if not math.isfinite(value):
        return sign | 7
    far = [
        (abs(Fraction(decoded(code)) - Fraction(abs(value))), code % 2, code) for code in range(8)
    ]
    return sign | min(far)[2]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_fp4_from_floats(rng: np.random.Generator, dtype: str) -> None:
    exact = [decoded(code) for code in range(16)]
    middles = [s * (a + b) / 2 for a, b in itertools.pairwise(exact[:8]) for s in (1, -1)]
    near = [math.nextafter(m, to) for m in middles for to in (-math.inf, math.inf)]
    odd = [0.0, -0.0, 5.0, 7.0, -1e30, math.inf, -math.inf, math.nan, -math.nan, 1e-40]
    numbers = [*exact, *middles, *near, *odd, *rng.normal(0, 3, 500)]
    values = torch.tensor(numbers, dtype=torch.float64).to(getattr(torch, dtype))
    found = MXFP4Tensor(data=values).data
    assert found.dtype == torch.uint8
    assert found.tolist() == [encoded(value) for value in values.double().tolist()]


def test_fp4_to_floats() -> None:
    fp4 = MXFP4Tensor(size=(3, 700)).random()
    assert fp4.data.shape == (3, 700)
    assert set(fp4.data.unique().tolist()) == set(range(16))
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        numbers = fp4.to(dtype)
        assert numbers.dtype == dtype
        want = [decoded(code) for code in fp4.data.flatten().tolist()]
        assert numbers.flatten().tolist() == want
        assert torch.equal(torch.signbit(numbers), fp4.data >= 8)
    assert torch.equal(MXFP4Tensor(data=fp4.to(torch.float32)).data, fp4.data)


@pytest.mark.parametrize("shape", [(1,), (7,), (8,), (0, 4), (4, 0), (5, 6), (3, 5, 7)])
def test_packing(shape: tuple[int, ...]) -> None:
    fp4 = MXFP4Tensor(size=shape).random()
    for dim in range(len(shape)):
        packed = fp4.to_packed_tensor(dim)
        padded = np.moveaxis(fp4.data.numpy(), dim, 0)
        padded = np.concatenate([padded, np.zeros_like(padded[:1])])[: (shape[dim] + 1) // 2 * 2]
        want = np.moveaxis(padded[::2] + 16 * padded[1::2], 0, dim)
        assert (packed.numpy() == want).all()
        assert torch.equal(fp4.unpack_packed_tensor(packed, dim, shape), fp4.data)
    for dim in (-1, len(shape)):
        with pytest.raises(AssertionError, match="dim must be from 0 to"):
            fp4.to_packed_tensor(dim)


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
def test_scales(rng: np.random.Generator, dtype: str) -> None:
    powers = [2.0**k for k in range(-126, 128)]
    below = [math.nextafter(p, 0) for p in powers[:-1]] if dtype == "float64" else []
    odd = [0.0, -1.0, -0.0, math.inf, -math.inf, math.nan, 3e38, 1e-45, 2.0**-127, 2.0**-130]
    numbers = [*powers, *below, *odd, *np.exp(rng.normal(0, 20, 300))]
    values = torch.tensor(numbers, dtype=torch.float64).to(getattr(torch, dtype))
    found = MXScaleTensor(data=values).data.tolist()
    for value, code in zip(values.double().tolist(), found, strict=True):
        if not (math.isfinite(value) and value > 0):
            assert code == 255, value
        elif 0 < code < 254:
            power = Fraction(2) ** (code - 127)
            assert power <= Fraction(value) < 2 * power
        else:
            assert value < 2.0**-126 if code == 0 else value >= 2.0**127
    back = fp8e8m0_to_float32(torch.arange(256, dtype=torch.uint8)).tolist()
    assert back[:255] == [2.0 ** (code - 127) for code in range(255)]
    assert math.isnan(back[255])


def test_random_scales() -> None:
    scales = MXScaleTensor(size=4000).random(low=1 / 4, high=4)
    assert set(scales.to(torch.float32).tolist()) == {0.25, 0.5, 1.0, 2.0, 4.0}
    assert not MXScaleTensor(size=(100, 100)).random().to(torch.float32).isnan().any()
    with pytest.raises(ValueError, match=r"no power of two of E8M0 lies between 5 and 7"):
        MXScaleTensor(size=1).random(5, 7)


@pytest.mark.parametrize("kind", [MXFP4Tensor, MXScaleTensor])
def test_what_is_refused(kind: Any) -> None:
    with pytest.raises(TypeError, match="data must be a tensor of torch, got a list"):
        kind(data=[1.0])
    with pytest.raises(ValueError, match="needs data or size"):
        kind()


@proton.jit
def product(a_ptr, a_scale_ptr, b_ptr, b_scale_ptr, out_ptr, M: tl.constexpr, K: tl.constexpr):
    m, k, scale = tl.arange(0, M), tl.arange(0, K // 2), tl.arange(0, K // 32)
    a = tl.load(a_ptr + m[:, None] * (K // 2) + k[None, :])
    b = tl.load(b_ptr + k[:, None] * M + m[None, :])
    a_scale = tl.load(a_scale_ptr + m[:, None] * (K // 32) + scale[None, :])
    b_scale = tl.load(b_scale_ptr + m[:, None] * (K // 32) + scale[None, :])
    out = tl.dot_scaled(a, a_scale, "e2m1", b, b_scale, "e2m1")
    tl.store(out_ptr + m[:, None] * M + m[None, :], out)


def test_operands_of_scaled_products() -> None:
    M, K = 16, 64
    a, b = MXFP4Tensor(size=(M, K)).random(), MXFP4Tensor(size=(K, M)).random()
    a_scale, b_scale = (MXScaleTensor(size=(M, K // 32)).random(1 / 8, 8) for _ in range(2))
    out = torch.zeros(M, M)
    operands = a.to_packed_tensor(1), a_scale.data, b.to_packed_tensor(0), b_scale.data
    product[(1,)](*operands, out, M, K)
    left = a.to(torch.float32) * a_scale.to(torch.float32).repeat_interleave(32, 1)
    right = b.to(torch.float32) * b_scale.to(torch.float32).repeat_interleave(32, 1).T
    torch.testing.assert_close(out, left @ right)
