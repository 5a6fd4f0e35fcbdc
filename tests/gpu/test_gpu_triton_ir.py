"""Kernels from IR as Triton prints it, launched on a real GPU."""

from typing import Any

import numpy as np
import pytest

from tests import triton_samples as samples


@pytest.mark.parametrize("n", [0, 1, 200])
def test_a_masked_sum(torch: Any, rng: Any, compiled: Any, n: int) -> None:
    x, y = torch.from_numpy(rng.standard_normal((2, 256)).astype(np.float32)).cuda()
    out = torch.zeros_like(x)
    compiled(samples.ADD, "ttir")[(4, 1, 1)](x, y, out, n)
    torch.testing.assert_close(out, torch.where(torch.arange(256, device="cuda") < n, x + y, 0))


@pytest.mark.parametrize("columns", [1, 5, 64])
def test_a_loop_with_reductions(torch: Any, rng: Any, compiled: Any, columns: int) -> None:
    x = torch.from_numpy(rng.standard_normal((7, 80)).astype(np.float32)).cuda()
    out = torch.zeros_like(x)
    compiled(samples.SOFTMAX, "ttir")[(3, 1, 1)](out, x, 80, 7, columns)
    torch.testing.assert_close(out[:, :columns], torch.softmax(x[:, :columns], 1))


@pytest.mark.parametrize("k", [0, 16, 80])
def test_products_in_a_loop(torch: Any, rng: Any, compiled: Any, k: int) -> None:
    a = torch.from_numpy(rng.standard_normal((16, k)).astype(np.float32)).cuda()
    b = torch.from_numpy(rng.standard_normal((k, 16)).astype(np.float32)).cuda()
    c = torch.full((16, 16), float("nan"), device="cuda")
    compiled(samples.MATMUL, "ttir")[(1, 1, 1)](a, b, c, k)
    torch.testing.assert_close(c, a @ b, rtol=1e-4, atol=1e-4)


def test_branches_and_calls(torch: Any, rng: Any, compiled: Any) -> None:
    x = torch.zeros(3, device="cuda")
    compiled(samples.RETURNS, "ttir")[(3, 1, 1)](x, 2)
    assert x.tolist() == [2, 2, 0]
    x = torch.from_numpy(rng.standard_normal(16).astype(np.float32)).cuda()
    wanted = 5 * 5 - (5 + 5) + x.sum()
    compiled(samples.CALLS, "ttir")[(1, 1, 1)](x, 5)
    torch.testing.assert_close(x[0], wanted)


def test_rows_in_the_layouts_of_the_text(torch: Any, rng: Any, compiled: Any) -> None:
    x = torch.from_numpy(rng.standard_normal((32, 64)).astype(np.float32)).cuda()
    out = torch.zeros(32, device="cuda")
    for layout in ("[1, 4], threadsPerWarp = [4, 8]", "[2, 1], threadsPerWarp = [1, 32]"):
        text = samples.ROW_SUMS.replace("[1, 4], threadsPerWarp = [4, 8]", layout)
        compiled(text, "ttgir")[(1, 1, 1)](x, out.zero_())
        torch.testing.assert_close(out, x.sum(1), rtol=1e-4, atol=1e-4)


def test_a_product_by_wgmma(torch: Any, rng: Any, compiled: Any) -> None:
    if torch.cuda.get_device_capability()[0] != 9:
        pytest.skip("wgmma is Hopper's")
    a, b = torch.from_numpy(rng.standard_normal((2, 64, 64)).astype(np.float16)).cuda()
    c = torch.zeros((64, 64), device="cuda")
    compiled(samples.PRODUCT, "ttgir")[(1, 1, 1)](a, b, c)
    torch.testing.assert_close(c, a.float() @ b.float(), rtol=1e-2, atol=1e-2)


def test_a_block_by_tma(torch: Any, rng: Any, compiled: Any) -> None:
    if torch.cuda.get_device_capability()[0] != 9:
        pytest.skip("the text is for Hopper")
    x = torch.from_numpy(rng.standard_normal((24, 20)).astype(np.float32)).cuda()
    wanted = x.clone()
    wanted[12:] *= 2
    compiled(samples.TWICE, "ttgir")[(1, 1, 1)](x, 24, 20, 20, 12)
    torch.testing.assert_close(x, wanted, rtol=0, atol=0)
