"""What tests and benchmarks of kernels need: times, comparisons, tables over sizes."""

from typing import Any

from proton.runtime.benchmark import do_bench as do_bench
from proton.runtime.nvidia.graph_benchmark import do_bench_cudagraph as do_bench_cudagraph
from proton.testing.comparison import assert_close as assert_close
from proton.testing.report import Benchmark as Benchmark
from proton.testing.report import Mark as Mark
from proton.testing.report import perf_report as perf_report

__all__ = ["Benchmark", "Mark", "assert_close", "do_bench", "do_bench_cudagraph", "perf_report"]

_NVIDIA_SMI = "nvidia-smi does it from a shell"
_NO_PEAKS = "no table of what chips can do at most is kept: NVIDIA's data sheets have them"
_INSTEAD = {  # what Triton has here, and is not -> what to do
    "do_bench_proton": "a session has the times of kernels: proton.profile",
    "do_bench_cudagraph_proton": "do_bench_cudagraph measures, and a session shows it",
    "get_dram_gbps": _NO_PEAKS,
    "get_max_tensorcore_tflops": _NO_PEAKS,
    "get_max_simd_tflops": _NO_PEAKS,
    "nvsmi": _NVIDIA_SMI,
    "set_gpu_clock": _NVIDIA_SMI,
    "cuda_memcheck": "PROTON_CHECK_BOUNDS=1 on the CPU, NVIDIA's compute-sanitizer on a GPU",
    "cublas": "torch has NVIDIA's products",
}


def __getattr__(name: str) -> Any:
    instead = f": {_INSTEAD[name]}" if name in _INSTEAD else ""
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}{instead}")
