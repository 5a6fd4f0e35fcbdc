"""A group of warps that copies, and one that multiplies what has come: IR written by hand."""

from pathlib import Path

import numpy as np
import pytest

import proton
from tests.compile.edited import edited
from tests.compile.test_warp_groups import PRODUCER_AND_CONSUMER, product, sums, sums_by_groups


@pytest.mark.parametrize("k", [16, 64, 128, 192, 1000 * 16])
@pytest.mark.parametrize(("m", "n"), [(64, 128), (1024, 512), (80, 144)])
def test_a_producer_and_a_consumer(
    m: int, n: int, k: int, tmp_path: Path, rng: np.random.Generator
) -> None:
    torch = pytest.importorskip("torch")
    if torch.cuda.get_device_capability()[0] != 9:
        pytest.skip("wgmma is of compute capability 9.0")
    torch.manual_seed(int(rng.integers(1 << 31)))
    a = torch.randn(m, k, device="cuda", dtype=torch.float16)
    b = torch.randn(k, n, device="cuda", dtype=torch.float16)
    out = torch.full((m, n), float("nan"), device="cuda", dtype=torch.float16)
    values = a, b, out, m, n, k
    with edited(product, PRODUCER_AND_CONSUMER, tmp_path, *values, num_warps=8) as kernel:
        grid = proton.cdiv(m, 64), proton.cdiv(n, 128)
        for _ in range(3):
            kernel[grid](*values, num_warps=8)
    want = a.double() @ b.double()
    error = (out.double() - want).abs() - want.abs() / 2048  # as it is rounded to fp16
    assert error.max().item() <= 1e-3 * k**0.5


@pytest.mark.parametrize("warps", [(4, 4, 2, 1), (4, 1), (1, 2, 4, 8), (8, 4, 4)])
def test_groups_of_triton_s_text(
    warps: tuple[int, ...], tmp_path: Path, rng: np.random.Generator
) -> None:
    torch = pytest.importorskip("torch")
    path = tmp_path / "sums.ttgir"
    path.write_text(sums_by_groups(warps))
    x = rng.integers(-1000, 1000, 256 * len(warps), dtype=np.int32)
    given, out = torch.tensor(x, device="cuda"), torch.zeros(len(warps), dtype=torch.int32).cuda()
    whole = 1 << (sum(warps) - 1).bit_length()
    sums[(1,)](given, out, ir_override=path, num_warps=whole)
    np.testing.assert_array_equal(out.cpu().numpy(), x.reshape(-1, 256).sum(1))
