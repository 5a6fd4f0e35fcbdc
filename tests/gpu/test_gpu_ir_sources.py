"""Kernels from files of IR, launched on a real GPU."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import proton
import proton.language as tl
from proton.runtime import driver


@proton.jit(do_not_specialize=["n"])
def axpy(x_ptr, y_ptr, out_ptr, n, a, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, a * x + y, mask=mask)


@proton.jit
def product(a_desc, b_desc, out_ptr, N: tl.constexpr):
    total = tl.zeros((N, N), tl.float32)
    for k in range(0, 4 * N, N):
        total = tl.dot(a_desc.load([0, k]), b_desc.load([k, 0]), total)
    i, j = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :]
    tl.store(out_ptr + i * N + j, total)


@pytest.fixture
def torch() -> Any:
    return pytest.importorskip("torch")


@pytest.mark.parametrize("level", ["ttir", "ttgir"])
@pytest.mark.parametrize("n", [0, 1, 1000])
def test_a_kernel_of_its_own_ir(torch: Any, rng: Any, tmp_path: Path, level: str, n: int) -> None:
    data = rng.standard_normal((2, 1024)).astype(np.float32)
    x, y = torch.from_numpy(data).cuda()
    out = torch.zeros_like(x)
    compiled = axpy.warmup(x, y, out, n, 0.5, BLOCK=256)
    path = tmp_path / f"axpy.{level}"
    path.write_text(compiled.asm[level])
    kernel = proton.compile(str(path), target=driver.active.get_current_target())
    wanted = np.where(np.arange(1024) < n, np.float32(0.5) * data[0] + data[1], 0)
    for args in ((x, y, out), (x.data_ptr(), y.data_ptr(), out.data_ptr())):
        for _ in range(2):  # the second goes by generated code
            out.zero_()
            kernel[(4, 1, 1)](*args, n, 0.5)
            np.testing.assert_allclose(out.cpu().numpy(), wanted, rtol=1e-6, atol=1e-6)
    with pytest.raises(proton.LaunchError, match="argument x_ptr must lie at a multiple of 16"):
        kernel[(4,)](x[1:], y, out, n, 0.5)
    with pytest.raises(proton.LaunchError, match=r"argument x_ptr must be \*fp32"):
        kernel[(4,)](x.double(), y, out, n, 0.5)
    axpy[(4,)](x, y, out, n, 0.5, BLOCK=256, ir_override=path)
    np.testing.assert_allclose(out.cpu().numpy(), wanted, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("level", ["ttir", "ttgir"])
def test_tensor_maps_and_products(torch: Any, rng: Any, tmp_path: Path, level: str) -> None:
    descriptor = proton.tools.tensor_descriptor.TensorDescriptor
    a = torch.from_numpy(rng.standard_normal((64, 256)).astype(np.float16)).cuda()
    b = torch.from_numpy(rng.standard_normal((256, 64)).astype(np.float16)).cuda()
    out = torch.zeros((64, 64), device="cuda")
    blocks = [descriptor.from_tensor(m, [64, 64]) for m in (a, b)]
    path = tmp_path / f"product.{level}"
    path.write_text(product.warmup(*blocks, out, N=64).asm[level])
    kernel = proton.compile(path)
    kernel[(1,)](a, 64, 256, 256, b, 256, 64, 64, out)
    torch.testing.assert_close(out, a.float() @ b.float(), rtol=1e-2, atol=1e-2)
    with pytest.raises(proton.LaunchError, match="must be a multiple of"):
        kernel[(1,)](a, 64, 256, 255, b, 256, 64, 64, out)
