"""What FBGEMM's cases are in. Its packages would load the library's CUDA extensions."""

from typing import Any

from libraries import bare
from library_case import calls_in

bare("fbgemm_gpu", "fbgemm_gpu.sll", "fbgemm_gpu.experimental", "fbgemm_gpu.experimental.gemm")
bare("fbgemm_gpu.experimental.gen_ai", "fbgemm_gpu.experimental.gen_ai.moe")

CASES: dict[str, Any] = {}
call = calls_in(CASES)
