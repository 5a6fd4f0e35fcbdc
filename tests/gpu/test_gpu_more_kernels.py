"""The wrappers of kernels for tensor cores, on tensors of a GPU, against torch in float64."""

import math
from typing import Any

import pytest

from kernels.attention import attention
from kernels.attention_backward import attention_backward
from kernels.attention_backward_fused import attention_backward_fused
from kernels.grouped_gemm import grouped_gemm
from kernels.matmul_fused import matmul_fused
from kernels.matmul_persistent import matmul_persistent

EPSILON = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-20}
SUMS = 2.0**-19  # of what is added up: the error of sums in fp32


def normal(dtype: str, *shape: int) -> Any:
    torch = pytest.importorskip("torch")
    return torch.randn(shape, device="cuda").to(getattr(torch, dtype))


def assert_close(got: Any, want: Any, size: Any) -> None:
    epsilon = EPSILON[str(got.dtype).removeprefix("torch.")]
    assert ((got.double() - want).abs() <= want.abs() * epsilon + size * SUMS).all()


@pytest.mark.parametrize("host", [True, False], ids=["host", "kernel"])
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("dtype", EPSILON)
def test_matmul_persistent(dtype: str, transposed: bool, host: bool) -> None:
    for m, n, k in [(1, 8, 8), (1000, 520, 264), (2049, 1336, 72)]:
        a = normal(dtype, m, k)
        b = normal(dtype, n, k).T if transposed else normal(dtype, k, n)
        size = a.double().abs() @ b.double().abs()
        out = normal(dtype, m, n).fill_(math.nan)
        assert_close(
            matmul_persistent(a, b, out=out, host=host), a.double() @ b.double(), size
        )  # fmt: skip


@pytest.mark.parametrize("activation", ["none", "relu", "gelu", "silu"])
@pytest.mark.parametrize("dtype", EPSILON)
def test_matmul_fused(dtype: str, activation: str) -> None:
    torch = pytest.importorskip("torch")
    functional = torch.nn.functional
    of = {
        "none": lambda x: x,
        "relu": functional.relu,
        "gelu": lambda x: functional.gelu(x, approximate="tanh"),
        "silu": functional.silu,
    }[activation]
    for m, n, k in [(1, 1, 1), (257, 129, 65), (1000, 520, 264)]:
        a, b, bias = normal(dtype, m, k), normal(dtype, k, n), normal(dtype, n)
        size = a.double().abs() @ b.double().abs() + bias.double().abs()
        for added in (bias, None):
            want = a.double() @ b.double() + (0 if added is None else added.double())
            assert_close(matmul_fused(a, b, added, activation), of(want), 2 * size)


@pytest.mark.parametrize("dtype", EPSILON)
def test_grouped_gemm(dtype: str) -> None:
    ugly = [(1, 1, 1), (257, 129, 65), (0, 5, 3), (1000, 511, 264), (3, 4, 0)]
    for sizes in (ugly, [(1024, 512, 256), (77, 48, 16), (300, 1024, 64)]):
        a = [normal(dtype, m, k) for m, n, k in sizes]
        b = [normal(dtype, k, n) for m, n, k in sizes]
        for got, x, y in zip(grouped_gemm(a, b), a, b, strict=True):
            assert_close(got, x.double() @ y.double(), x.double().abs() @ y.double().abs())
    # Rows that lie multiples of 16 bytes apart, for descriptors.
    a = [normal(dtype, m, -(-k // 16) * 16 + 16)[:, :k] for m, n, k in ugly]
    b = [normal(dtype, k, -(-n // 16) * 16 + 16)[:, :n] for m, n, k in ugly]
    wide = [normal(dtype, m, -(-n // 16) * 16 + 16) for m, n, k in ugly]
    before = [x.clone() for x in wide]
    out = [x[:, :n] for x, (_, n, _) in zip(wide, ugly, strict=True)]
    grouped_gemm(a, b, out, descriptors=True)
    for got, x, y, whole, old in zip(out, a, b, wide, before, strict=True):
        assert_close(got, x.double() @ y.double(), x.double().abs() @ y.double().abs())
        assert (whole[:, got.shape[1] :] == old[:, got.shape[1] :]).all()


# The thread in which torch computes gradients has no context before its first product.
@pytest.mark.filterwarnings("ignore:Attempting to run cuBLAS")
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("head", [32, 64, 128])
def test_attention_and_its_gradients(head: int, dtype: str, causal: bool) -> None:
    torch = pytest.importorskip("torch")
    for length in (1, 64, 200, 513):
        # (batch, length, heads, size) in memory, as projections give it
        q, k, v, dout = (normal(dtype, 2, length, 3, head).transpose(1, 2) for _ in range(4))
        out, lse = attention(q, k, v, causal)
        given = (q, k, v, out, dout, lse, causal)
        got = (out, *attention_backward(*given), *attention_backward_fused(*given))
        inputs = [x.double().requires_grad_() for x in (q, k, v)]
        of = torch.nn.functional.scaled_dot_product_attention(*inputs, is_causal=causal)
        grads = torch.autograd.grad(of, inputs, dout.double())
        names = ("out", "dq", "dk", "dv", *(f"{name} at once" for name in ("dq", "dk", "dv")))
        for name, mine, expected in zip(names, got, (of, *grads, *grads), strict=True):
            error = (mine.double() - expected).abs().max() / expected.abs().max().clamp(min=1)
            assert error <= 8 * EPSILON[dtype], (name, length, float(error))
