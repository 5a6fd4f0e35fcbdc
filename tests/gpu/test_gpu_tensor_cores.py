"""Products on tensor cores, by random shapes, types, layouts and configurations, against float64.

Outputs are NaN before. The bounds are of the sum of the products' sizes: fp16 and bf16 are added up
in fp32, tf32 has 10 bits of each factor, fp8 is added up in registers of about 13 bits.
"""

import math
import os
from typing import Any

import numpy as np
import pytest

import proton
import proton.language as tl
from kernels.attention import attention_kernel
from kernels.matmul import matmul_kernel
from tests.cpu.test_attention import reference

CASES = int(os.environ.get("PROTON_TEST_PRODUCTS", "60"))
BOUNDS = {
    "float16": 2.0**-19,
    "bfloat16": 2.0**-19,
    "float32": 2.0**-9,
    "float8_e4m3fn": 2.0**-10,
    "float8_e5m2": 2.0**-10,
    "float64": 2.0**-44,
}
BLOCKS = [
    (128, 256, 64, 8),
    (256, 128, 64, 8),
    (128, 128, 64, 4),
    (64, 256, 32, 4),
    (64, 64, 32, 4),
    (64, 128, 16, 8),
    (128, 16, 64, 4),
    (64, 8, 64, 4),
    (64, 64, 128, 1),
    (32, 64, 32, 2),
    (16, 32, 64, 4),
    (32, 8, 32, 1),
    (64, 64, 32, 16),
]
LONG_BLOCKS = [  # of fp64, whose sums take two registers each
    (64, 64, 16, 4),
    (128, 64, 16, 8),
    (64, 128, 8, 4),
    (32, 64, 32, 2),
    (16, 8, 64, 1),
    (64, 32, 4, 4),
    (16, 16, 16, 8),
]


def cuda() -> Any:
    return pytest.importorskip("torch")


def random_matrix(rng: np.random.Generator, shape: tuple[int, int], dtype: str) -> Any:
    """Side by side along either dimension, or every other element."""
    torch = cuda()
    rows, columns = shape
    kind = rng.integers(3)
    if kind == 0:
        x = torch.randn(rows, columns, device="cuda")
    elif kind == 1:
        x = torch.randn(columns, rows, device="cuda").t()
    else:
        x = torch.randn(rows, 2 * columns, device="cuda")[:, ::2]
    made = x.to(getattr(torch, dtype))
    return made if kind < 2 else torch.empty_strided(shape, (2 * columns, 2), dtype=made.dtype,
                                                     device="cuda").copy_(made)  # fmt: skip


@pytest.mark.parametrize("number", range(CASES))
def test_products(rng: np.random.Generator, number: int) -> None:
    torch = cuda()
    torch.manual_seed(int(rng.integers(1 << 31)))
    dtype = list(BOUNDS)[number % len(BOUNDS)]
    blocks = LONG_BLOCKS if dtype == "float64" else BLOCKS
    block_m, block_n, block_k, warps = blocks[rng.integers(len(blocks))]
    stages = int(rng.integers(1, 6))
    m, n = (int(rng.integers(1, 3 * b)) for b in (block_m, block_n))
    k = int(rng.choice([1, 7, 16, 64, 100, 257, 512]))
    if rng.integers(2):
        m, n, k = ((x + 15) // 16 * 16 for x in (m, n, k))
    a, b = random_matrix(rng, (m, k), dtype), random_matrix(rng, (k, n), dtype)
    sums = torch.float64 if dtype == "float64" else torch.float32
    out = torch.full((m, n), math.nan, device="cuda", dtype=sums)
    strides = [x.stride(axis) for x in (a, b, out) for axis in (0, 1)]
    grid = (proton.cdiv(m, block_m) * proton.cdiv(n, block_n),)
    try:
        matmul_kernel[grid](
            a, b, out, m, n, k, *strides, BLOCK_M=block_m, BLOCK_N=block_n, BLOCK_K=block_k,
            GROUP_M=4, num_warps=warps, num_stages=stages,
        )  # fmt: skip
    except proton.OutOfResources:
        pytest.skip("the epilogue needs more shared memory than there is")
    a, b = a.double(), b.double()
    error, bound = (out.double() - a @ b).abs(), (a.abs() @ b.abs()) * BOUNDS[dtype]
    where = f"{dtype} {m} x {n} x {k}, {block_m} x {block_n} x {block_k}, {warps}, {stages}"
    assert (error <= bound + 1e-30).all(), where


@proton.jit
def typed(
    a_ptr, b_ptr, c_ptr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, OUT: tl.constexpr,
    PRECISION: tl.constexpr, IMPRECISE: tl.constexpr, TRANS: tl.constexpr,
):  # fmt: skip
    i, j, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    a = tl.load(a_ptr + i[:, None] * K + k[None, :])
    if TRANS:
        b = tl.trans(tl.load(b_ptr + j[:, None] * K + k[None, :]))
    else:
        b = tl.load(b_ptr + k[:, None] * N + j[None, :])
    c = tl.dot(a, b, input_precision=PRECISION, max_num_imprecise_acc=IMPRECISE, out_dtype=OUT)
    tl.store(c_ptr + i[:, None] * N + j[None, :], c)


def run(a: Any, b: Any, out: Any, trans: bool = False, precision: str = "tf32",
        imprecise: int | None = None, warps: int = 4) -> Any:  # fmt: skip
    torch = cuda()
    (m, k), n = a.shape, b.shape[0] if trans else b.shape[1]
    c = torch.zeros(m, n, device="cuda", dtype=getattr(torch, out.name.replace("fp", "float")))
    typed[(1,)](a, b, c, M=m, N=n, K=k, OUT=out, PRECISION=precision, IMPRECISE=imprecise,
                TRANS=trans, num_warps=warps)  # fmt: skip
    return c


@pytest.mark.parametrize("warps", [1, 4, 8])
@pytest.mark.parametrize("trans", [False, True])
def test_integers_are_exact(warps: int, trans: bool) -> None:
    torch = cuda()
    a, b = (torch.randint(-128, 128, (64, 64), device="cuda", dtype=torch.int8) for _ in range(2))
    c = torch.zeros(64, 64, device="cuda", dtype=torch.int32)
    typed[(1,)](a, b, c, M=64, N=64, K=64, OUT=None, PRECISION="ieee", IMPRECISE=None,
                TRANS=trans, num_warps=warps)  # fmt: skip
    right = b.t() if trans else b
    assert torch.equal(c.long().cpu(), a.cpu().long() @ right.cpu().long())


@pytest.mark.parametrize("warps", [1, 2, 8])
@pytest.mark.parametrize("trans", [False, True])
@pytest.mark.parametrize("m, n, k, bits", [(64, 64, 64, 23), (16, 32, 4, 25), (32, 8, 8, 25)])
def test_fp64_loses_no_bit(m: int, n: int, k: int, bits: int, trans: bool, warps: int) -> None:
    """Integers of so many bits: no sum has more than 53."""
    torch = cuda()
    shapes = (m, k), (n, k) if trans else (k, n)
    a, b = (torch.randint(-(1 << bits), 1 << bits, shape, device="cuda") for shape in shapes)
    c = run(a.double(), b.double(), tl.float64, trans=trans, warps=warps)
    right = b.t() if trans else b
    assert torch.equal(c.long().cpu(), a.cpu() @ right.cpu())


@pytest.mark.parametrize("warps", [1, 4])
def test_sums_in_fp16(warps: int) -> None:
    torch = cuda()
    a, b = (torch.randn(64, 64, device="cuda").half() for _ in range(2))
    c = run(a, b, tl.float16, warps=warps)
    error = (c.double() - a.double() @ b.double()).abs()
    assert (error <= (a.double().abs() @ b.double().abs()) * 2.0**-8).all()


@pytest.mark.parametrize("warps", [2, 4])
@pytest.mark.parametrize("precision, digits", [
    ("tf32", 9), ("tf32x3", 19), ("bf16x3", 15), ("bf16x6", 21), ("ieee", 21),
])  # fmt: skip
def test_precisions_of_fp32(precision: str, digits: int, warps: int) -> None:
    torch = cuda()
    a, b = (torch.randn(64, 64, device="cuda") for _ in range(2))
    c = run(a, b, tl.float32, precision=precision, warps=warps)
    error = (c.double() - a.double() @ b.double()).abs()
    assert (error <= (a.double().abs() @ b.double().abs()) * 2.0**-digits).all()


@pytest.mark.parametrize("precision", ["tf32", "tf32x3", "bf16x3", "bf16x6"])
def test_infinity_and_nan(precision: str) -> None:
    torch = cuda()
    a, b = torch.ones(64, 64, device="cuda"), torch.ones(64, 64, device="cuda")
    a[2, 3], a[4, 5] = math.nan, math.inf
    c = run(a, b, tl.float32, precision=precision)
    assert c[2].isnan().all()
    assert c[4].isposinf().all()
    rest = [row for row in range(64) if row not in (2, 4)]
    assert (c[rest] == 64).all()


def test_fp8_that_is_added_up_exactly() -> None:
    """2048 + 1 + 1 + ...: the ones are lost where sums have few bits."""
    torch = cuda()
    a = torch.ones(64, 256, device="cuda")
    b = torch.ones(64, 256, device="cuda")
    a[:, 0], b[:, 0] = 256.0, 256.0  # 65536
    a[:, 1:], b[:, 1:] = 0.5, 0.5
    a8, b8 = (x.to(torch.float8_e4m3fn) for x in (a, b))
    want = a8.double() @ b8.double().t()
    exact = run(a8, b8, tl.float32, trans=True, imprecise=32).double()
    rough = run(a8, b8, tl.float32, trans=True).double()
    assert (exact - want).abs().max() <= (rough - want).abs().max()
    assert (exact - want).abs().max() <= 65536 * 2.0**-12


@pytest.mark.parametrize("overlap", [False, True])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("head, blocks", [(64, (128, 64, 8, 3)), (128, (64, 64, 4, 2)),
                                          (32, (64, 32, 1, 2))])  # fmt: skip
def test_attention(
    head: int, blocks: tuple[int, int, int, int], dtype: str, causal: bool, overlap: bool
) -> None:
    torch = cuda()
    block_m, block_n, warps, stages = blocks
    for length in (1, 64, 200, 257):
        shape = (2, 3, length, head)
        q, k, v = (torch.randn(shape, device="cuda").to(getattr(torch, dtype)) for _ in range(3))
        out = torch.full_like(q, math.nan)
        lse = torch.full(shape[:3], math.nan, device="cuda")
        strides = [x.stride(axis) for x in (q, k, v, out) for axis in range(3)]
        attention_kernel[(proton.cdiv(length, block_m), 6)](
            q, k, v, out, lse, *strides, 3, length, 1 / math.sqrt(head), HEAD=head,
            BLOCK_M=block_m, BLOCK_N=block_n, CAUSAL=causal, OVERLAP=overlap, num_warps=warps,
            num_stages=stages,
        )  # fmt: skip
        want, sums = reference(*(x.float().cpu().numpy() for x in (q, k, v)), causal)
        eps = {"float16": 2.0**-9, "bfloat16": 2.0**-6}[dtype]
        np.testing.assert_allclose(out.float().cpu().numpy(), want, rtol=0, atol=2 * eps)
        np.testing.assert_allclose(lse.cpu().numpy(), sums, rtol=0, atol=2.0**-9)
