"""What FBGEMM's cases have in common. Its packages would load the library's CUDA extensions."""

from typing import Any

import torch
from libraries import bare, cpu_as_cuda
from library_case import LARGE, WIDE, Size, calls_in

bare("fbgemm_gpu", "fbgemm_gpu.sll", "fbgemm_gpu.experimental", "fbgemm_gpu.experimental.gemm")
bare("fbgemm_gpu.experimental.gen_ai", "fbgemm_gpu.experimental.gen_ai.moe")

from fbgemm_gpu.experimental.gemm.triton_gemm import fp8_gemm  # noqa: E402

cpu_as_cuda(fp8_gemm)

CASES: dict[str, Any] = {}
call = calls_in(CASES)
FULL, BOTH = (torch.float32,), (LARGE, WIDE)
TOKENS, HIDDEN = Size(40, 8192, 16), Size(1024, 4096, 4096)
EXPERTS = 6


def groups(tokens):
    """Tokens of each expert, of which one has none."""
    parts = torch.rand(EXPERTS - 1).softmax(0) * tokens
    sizes = parts.long().tolist()
    return [*sizes[:2], 0, *sizes[2:-1], tokens - sum(sizes[:-1])]


def of_rows(codes, scale):
    return codes.float() * scale[..., None]
