"""Kernels of the wrappers for tensor cores, in the configurations that they choose for a GPU of
compute capability 9.0: compiled, and not launched."""

import itertools

import numpy as np
import pytest

import proton.language as tl
from kernels.attention import attention
from kernels.attention_backward import attention_backward
from kernels.attention_backward import reference as gradients
from kernels.attention_backward_fused import attention_backward_fused
from kernels.grouped_gemm import grouped_gemm
from kernels.matmul_fused import matmul_fused
from kernels.matmul_persistent import matmul_descriptors_kernel, matmul_persistent
from proton.backends.nvidia import compiler
from proton.backends.nvidia.target import GPUKernel
from proton.base.targets import GPUTarget
from proton.tools.tensor_descriptor import TensorDescriptor
from tests.compile.ptx.emulation import Emulation

Launches = list[tuple[tuple[int, ...], GPUKernel]]


def matrices(*sizes: int, dtype: str = "float16") -> list[np.ndarray]:
    return [np.empty(shape, dtype) for shape in itertools.pairwise(sizes)]


def assert_good(kernel: GPUKernel) -> None:
    """Products of warp groups, of which the loop's copies to shared memory are of 16 bytes."""
    assert kernel.n_spills <= compiler._FEW_SPILLS, "for a second program"
    assert "wgmma.mma_async" in kernel.asm["ptx"]
    assert "cp.async" in kernel.asm["ptx"]


@pytest.mark.parametrize("transposed", [False, True])
def test_matmul_persistent(launched: Launches, transposed: bool) -> None:
    a, b = matrices(4096, 4096, 4096)
    matmul_persistent(a, b.T if transposed else b, host=False)
    ((grid, kernel),) = launched
    assert grid == (132,)
    assert_good(kernel)


def test_descriptors_of_the_host() -> None:
    arrays = [
        TensorDescriptor(tl.float16, [4096, 4096], [4096, 1], block)
        for block in ((128, 64), (64, 128), (128, 128))
    ]
    kernel = matmul_descriptors_kernel.warmup(
        *arrays, GROUP_M=8, TRANSPOSED=False, num_warps=8, target=GPUTarget("cuda", 90)
    )
    assert isinstance(kernel, GPUKernel)
    assert_good(kernel)


@pytest.mark.parametrize("activation", ["none", "relu", "gelu", "silu"])
def test_matmul_fused(launched: Launches, activation: str) -> None:
    a, b = matrices(4096, 4096, 4096)
    matmul_fused(a, b, b[0], activation)
    ((_, kernel),) = launched
    assert_good(kernel)


def test_grouped_gemm_by_descriptors(launched: Launches) -> None:
    """Of matrices of any size that begin at multiples of 16 bytes; copies begin ahead of a tile."""
    a, b = zip(*(matrices(rows, 249, 511) for rows in (1024, 77)), strict=True)
    grouped_gemm(a, b, descriptors=True)
    ((_, kernel),) = launched
    assert_good(kernel)
    ptx = kernel.asm["ptx"]
    assert ptx.count("tensormap.cp_fenceproxy") == 3
    assert ptx.count("cp.async.bulk.tensor.2d.shared::cluster.global") == 2 * 4
    assert ptx.count("cp.async.bulk.tensor.2d.global.shared::cta") == 1
    assert "cp.async.cg" not in ptx
    assert kernel.metadata["global_scratch_size"] == 512


@pytest.mark.parametrize("columns, is_aligned", [(512, True), (511, False)])
def test_grouped_gemm(launched: Launches, columns: int, is_aligned: bool) -> None:
    a, b = zip(*(matrices(rows, 256, columns) for rows in (1024, 77)), strict=True)
    grouped_gemm(a, b)
    ((_, kernel),) = launched
    assert kernel.n_spills == 0
    assert "wgmma.mma_async" in kernel.asm["ptx"]
    assert ("cp.async" in kernel.asm["ptx"]) == is_aligned


@pytest.mark.parametrize(("head", "causal"), [(64, True), (128, False), (128, True)])
def test_attention(launched: Launches, head: int, causal: bool) -> None:
    q, k, v, dout = np.empty((4, 2, 3, 1000, head), "float16")
    out, lse = attention(q, k, v, causal)
    attention_backward(q, k, v, out, dout, lse, causal)
    (_, forward), (_, delta), (_, dkdv), (_, dq) = launched
    for kernel in (forward, dkdv, dq):
        assert_good(kernel)
    assert delta.n_spills == 0


@pytest.mark.usefixtures("no_assembler")
@pytest.mark.parametrize(("head", "length", "causal"), [(64, 100, False), (128, 70, True)])
def test_all_gradients_at_once(
    rng: np.random.Generator, head: int, length: int, causal: bool
) -> None:
    """Of heads of 128 a producer copies; what its consumers spill are addresses."""
    q, k, v, dout = (rng.standard_normal((1, 1, length, head)).astype("float16") for _ in range(4))
    seen: list[str] = []
    out, lse = attention(q, k, v, causal)
    warps = 8 if head == 128 else 4
    options = {"block": 16 * warps, "step": 64, "ROLES": head == 128, "num_warps": warps}
    edit = lambda ptx: seen.append(ptx) or ptx  # noqa: E731
    with Emulation(warps, rng, edit, checks_races=False, apart=128).installed():
        got = attention_backward_fused(q, k, v, out, dout, lse, causal, **options)
    want = gradients(*(x.astype(np.float64) for x in (q, k, v, dout)), causal)
    for mine, expected in zip(got, want, strict=True):
        np.testing.assert_allclose(mine, expected, atol=1e-2)
    (ptx,) = (text for text in seen if "cp.reduce.async.bulk" in text)
    assert ptx.count("setmaxnreg") == (2 if head == 128 else 0)
