"""Loops whose dots take rows that data names, on a real GPU: copies and indices run ahead."""

from typing import Any

import numpy as np
import pytest

from tests.compile.test_gathered_rows import WAYS, gathered, of_launch
from tests.pairs import covering


@pytest.mark.parametrize(
    "how, m, stages",
    covering(WAYS | {"m": [32, 64, 128]}, "how m", "how stages", "m stages"),
)
def test_rows_that_data_names(
    torch: Any, how: str, m: int, stages: int, rng: np.random.Generator
) -> None:
    """Indices are as long as they are read, so that one more is outside of what was allocated, or
    names a page that is not there."""
    n, block = 64, 64
    for depth in (0, 5, 64, 70, 192, 256):
        index, following, rows = of_launch(how, depth, block, rng)
        a = torch.randn(m, 256, device="cuda").half()
        b = torch.randn(-(-max(depth, 1) // block) * block, n, device="cuda").half()
        out = torch.full((m, n), torch.nan, device="cuda")
        given = [torch.from_numpy(x).cuda() for x in (index, following)]
        for _ in range(3 if how != "written" else 1):
            gathered[(1,)](
                a, b, *given, out, depth, M=m, N=n, K=block, HOW=how, num_warps=4,
                num_stages=stages,
            )  # fmt: skip
        want = a[:, :depth].float() @ b[torch.from_numpy(rows).cuda().long()].float()
        assert (out - want).abs().max() <= 1e-2, depth
