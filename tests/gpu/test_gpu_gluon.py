"""Kernels in Gluon on a GPU of 9.0, against numpy."""

from typing import Any

import numpy as np
import pytest

import proton
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
