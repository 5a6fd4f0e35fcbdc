"""What Inductor writes otherwise by its options: the same functions are right with each."""

import math
from typing import Any

import pytest
import torch
import torch._inductor.config as inductor
import torch.nn.functional as F
from torch import Tensor
from torch._inductor.utils import run_and_get_code

from tests.torch_compile.conftest import needs_torch

# Options -> what the code has then, of the file or of a kernel; "" where that depends.
OPTIONS: list[Any] = [
    ({"triton.multi_kernel": 3}, "multi_kernel"),
    ({"triton.use_block_ptr": True}, "tl.make_block_ptr"),
    ({"triton.use_tensor_descriptor": True, "assume_aligned_inputs": True}, ""),
    ({"triton.prefer_nd_tiling": True, "triton.max_tiles": 3, "triton.tile_reductions": True}, ""),
    ({"triton.persistent_reductions": False}, "reduction("),
    ({"triton.dense_indexing": True}, ""),
    ({"triton.mix_order_reduction": True}, ""),
    ({"triton.native_matmul": True}, ""),
    ({"triton.codegen_upcast_to_fp32": False, "emulate_precision_casts": True}, ""),
    pytest.param(
        {"combo_kernels": True, "benchmark_combo_kernel": False},
        "",
        marks=needs_torch("2.10", "leaves the functions of scans out of combined kernels"),
    ),
    ({"coordinate_descent_tuning": True}, "coordinate_descent_tuning': True"),
    ({"memory_planning": True, "memory_pool": "combined"}, ""),
    ({"nan_asserts": True, "size_asserts": True, "debug_index_asserts": True}, ""),
    ({"split_reductions": False}, ""),
]


def _of_all_kinds(a: Tensor, b: Tensor, w: Tensor) -> tuple[Tensor, ...]:
    return (
        F.layer_norm(a @ w + b, (64,)).softmax(-1),
        torch.relu(a.sum(0)) + b,
        torch.cumsum(a, 1).argmax(1),
        (a.T.contiguous() + 1).mean(1),
        F.gelu(b),
        a[::2].var(0),
        torch.cat([a, a * 2], 1)[:, 3:].amax(0),
        a.double().sum(1),
    )


@pytest.mark.parametrize(("options", "text"), OPTIONS, ids=lambda of: str(of)[:60])
def test_options(options: dict[str, Any], text: str) -> None:
    missing = options.keys() - inductor.get_config_copy().keys()
    if missing:
        pytest.skip(f"this torch has no {', '.join(missing)}")
    arguments = torch.randn(100, 64), torch.randn(64), torch.randn(64, 64) / math.sqrt(64)
    compiled = torch.compile(_of_all_kinds, options=options)
    found, code = run_and_get_code(compiled, *arguments)
    torch.testing.assert_close(found, _of_all_kinds(*arguments), rtol=1e-3, atol=1e-3)
    assert text in "".join(code)
