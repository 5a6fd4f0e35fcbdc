"""What tests and benchmarks of kernels need: times, comparisons, tables over sizes."""

from typing import NoReturn

from proton.runtime.nvidia.graph_benchmark import do_bench_cudagraph as do_bench_cudagraph
from proton.runtime.tuning.benchmark import do_bench as do_bench
from proton.runtime.tuning.benchmark import summary as _summarize_statistics  # noqa: F401  # Triton's name
from proton.testing.blas import cublas as cublas
from proton.testing.comparison import assert_close as assert_close
from proton.testing.peaks import get_dram_gbps as get_dram_gbps
from proton.testing.peaks import get_max_simd_tflops as get_max_simd_tflops
from proton.testing.peaks import get_max_tensorcore_tflops as get_max_tensorcore_tflops
from proton.testing.peaks import nvsmi as nvsmi
from proton.testing.report import Benchmark as Benchmark
from proton.testing.report import Mark as Mark
from proton.testing.report import perf_report as perf_report

__all__ = [
    "Benchmark",
    "Mark",
    "assert_close",
    "cublas",
    "do_bench",
    "do_bench_cudagraph",
    "get_dram_gbps",
    "get_max_simd_tflops",
    "get_max_tensorcore_tflops",
    "nvsmi",
    "perf_report",
]

_INSTEAD = {  # what Triton has here, and is not -> what to do
    "do_bench_proton": "a session has the times of kernels: proton.profile",
    "do_bench_cudagraph_proton": "do_bench_cudagraph measures, and a session shows it",
    "set_gpu_clock": "nvidia-smi does it from a shell",
    "cuda_memcheck": "PROTON_CHECK_BOUNDS=1 on the CPU, NVIDIA's compute-sanitizer on a GPU",
}


def __getattr__(name: str) -> NoReturn:
    instead = f": {_INSTEAD[name]}" if name in _INSTEAD else ""
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}{instead}")
