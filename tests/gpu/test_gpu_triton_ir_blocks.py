"""Blocks of tensors and scaled products in IR as Triton prints it, launched on a real GPU."""

from typing import Any

import numpy as np
import pytest

import proton
import proton.language as tl
from tests import triton_block_samples as samples
from tests.cpu.test_dot_scaled import SUMS, packed, scaled, stored


@pytest.mark.parametrize(("m", "n"), [(1, 1), (17, 95), (40, 33)])
def test_block_pointers(torch: Any, rng: Any, compiled: Any, m: int, n: int) -> None:
    x = torch.from_numpy(rng.standard_normal((m, n)).astype(np.float32)).cuda()
    y = torch.from_numpy(rng.standard_normal((n, m)).astype(np.float32)).cuda()
    wanted = y + x.T * 2
    compiled(samples.MOVE, "ttir")[(proton.cdiv(m, 16), 1, 1)](x, y, m, n, n)
    torch.testing.assert_close(y, wanted)


def test_scaled_products(torch: Any, rng: Any, compiled: Any) -> None:
    a, a_numbers = stored(rng, "e2m1", (32, 64))
    b, b_numbers = stored(rng, "e5m2", (64, 32))
    a_scale, b_scale = (stored(rng, "e4m3", (32, 4))[0] for _ in range(2))
    left, right = scaled(a_numbers, a_scale, 1, "e4m3"), scaled(b_numbers, b_scale, 0, "e4m3")
    c = torch.zeros((32, 32), device="cuda")
    codes = [torch.from_numpy(x).cuda() for x in (packed(a, 1), a_scale, b, b_scale)]
    types = (tl.float8e4nv, tl.float8e5, tl.float8e4nv)
    floats = [proton.reinterpret(x, of) for x, of in zip(codes[1:], types, strict=True)]
    compiled(samples.SCALED, "ttir")[(1, 1, 1)](codes[0], *floats, c)
    wanted = left @ right + left @ a_numbers.T
    bound = np.abs(left) @ np.abs(right) + np.abs(left) @ np.abs(a_numbers).T
    assert (np.abs(c.cpu().numpy() - wanted) <= bound * SUMS).all()


@pytest.mark.parametrize(("m", "n"), [(32, 32), (20, 36), (7, 4)])
def test_maps_that_the_kernel_makes(torch: Any, rng: Any, compiled: Any, m: int, n: int) -> None:
    """NaN outside of what is loaded, and nothing is stored outside."""
    if torch.cuda.get_device_capability()[0] != 9:
        pytest.skip("the text is of Hopper")
    parts = [
        torch.from_numpy(rng.standard_normal((m, n)).astype(np.float32)).cuda() for _ in range(5)
    ]
    addresses = torch.tensor([part.data_ptr() for part in parts], device="cuda")
    out = torch.full((40, n), 3.0, device="cuda")
    compiled(samples.TOTAL, "ttgir")[(1, 1, 1)](addresses, out, 5, m, n)
    wanted = torch.full_like(out, 3.0)
    wanted[:m, :32] = sum(parts)[:, :32]
    torch.testing.assert_close(out, wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("k", [64, 128, 320, 1024])
def test_groups_of_warps(torch: Any, rng: Any, compiled: Any, k: int) -> None:
    if torch.cuda.get_device_capability()[0] != 9:
        pytest.skip("the text is of Hopper")
    a = torch.from_numpy(rng.standard_normal((64, k)).astype(np.float16)).cuda()
    b = torch.from_numpy(rng.standard_normal((k, 64)).astype(np.float16)).cuda()
    c = torch.zeros((64, 64), dtype=torch.float16, device="cuda")
    compiled(samples.GROUPS, "ttgir")[(1, 1, 1)](a, 64, k, k, b, k, 64, 64, c, 64, 64, 64, k)
    torch.testing.assert_close(c.float(), a.float() @ b.float(), rtol=1e-2, atol=2e-2)
