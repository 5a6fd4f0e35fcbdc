"""Kernels in Gluon on a GPU of 9.0, against numpy."""

from typing import Any

import numpy as np
import pytest

import proton
from proton.gluon import language as gl
from proton.gluon.nvidia.hopper import TensorDescriptor, TensorDescriptorIm2Col
from tests.gluon_images import convolved_by_roles
from tests.gluon_kernels import CHECKS
from tests.gpu.staging import Staging


@pytest.mark.parametrize("name", CHECKS)
def test_kernels_in_gluon(name: str, rng: np.random.Generator) -> None:
    with Staging(4).installed():
        CHECKS[name](rng)


@pytest.mark.parametrize(
    "options",
    [{}, {"auto": ("barriers", "copies", "dots")}, {"granularity": "warp_group"}],
    ids=str,
)
def test_each_group_of_warps_has_its_scopes(
    options: dict[str, Any], rng: np.random.Generator
) -> None:
    with Staging(4).installed(), proton.profile("roles", capacity=1024, **options) as run:
        CHECKS["a_matmul_by_roles"](rng)
    frame = run.frame
    by_warps = {
        name: set(frame[(frame.kind == "scope") & (frame.name == name)].warp)
        for name in ("ready", "multiply", "store", "empty", "fill")
    }
    is_group = "granularity" in options
    consumers, producers = ({0}, {4}) if is_group else ({0, 1, 2, 3}, {4})
    assert by_warps["ready"] == by_warps["multiply"] == by_warps["store"] == consumers
    assert by_warps["empty"] == by_warps["fill"] == producers
    assert run.totals.lost == 0


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float8_e4m3fn"])
def test_the_library_that_benchmarks_compare_with(dtype: str) -> None:
    torch = pytest.importorskip("torch")
    a, b = (torch.randn(s, device="cuda").to(getattr(torch, dtype)) for s in ((64, 32), (48, 32)))
    c = torch.empty((64, 48), device="cuda", dtype=torch.float16 if "8" in dtype else a.dtype)
    proton.testing.cublas().matmul(a, b, c)
    torch.testing.assert_close(c.float(), a.float() @ b.float().T, rtol=2e-2, atol=2e-1)


def test_a_convolution_of_torchs_tensors() -> None:
    torch = pytest.importorskip("torch")
    for stride, pad in ((1, 1), (2, 0), (2, 1)):
        x = torch.randn((3, 29, 23, 72), device="cuda").half()
        w = torch.randn((3, 3, 72, 96), device="cuda").half() / 16
        images, filters = x.permute(0, 3, 1, 2), w.permute(3, 2, 0, 1)
        wanted = torch.nn.functional.conv2d(images, filters, stride=stride, padding=pad)
        wanted = wanted.permute(0, 2, 3, 1)
        height, width = wanted.shape[1:3]
        high = [(n - 1) * stride + 1 - of - pad for n, of in ((height, 29), (width, 23))]
        x_desc = TensorDescriptorIm2Col.from_tensor(
            x, [64, 64], gl.NVMMASharedLayout(128, 16, 2), element_strides=[1, stride, stride, 1],
            pixel_box_lower_corner=[-pad, -pad], pixel_box_upper_corner=high,
        )  # fmt: skip
        layout = gl.NVMMASharedLayout(128, 16, 2)
        w_desc = TensorDescriptor.from_tensor(w.reshape(9 * 72, 96), [64, 64], layout)
        y = torch.empty((3, height, width, 96), device="cuda")
        grid = -(-3 * height * width // 64), 2
        numbers = height, width, 96, stride, pad, 3, 3, 64, 64, 64
        with proton.profile("convolution", strategy="flush", auto=("copies", "dots")) as run:
            convolved_by_roles[grid](x_desc, w_desc, y, *numbers, 3, num_warps=4)
        torch.testing.assert_close(y, wanted.float(), rtol=1e-2, atol=2e-2)
        assert "copies" in set(run.flights["queue"])
