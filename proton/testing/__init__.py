"""What tests and benchmarks of kernels need: times, comparisons, tables over sizes."""

from proton.runtime.benchmark import do_bench as do_bench
from proton.runtime.nvidia.graph_benchmark import do_bench_cudagraph as do_bench_cudagraph
from proton.testing.comparison import assert_close as assert_close
from proton.testing.report import Benchmark as Benchmark
from proton.testing.report import Mark as Mark
from proton.testing.report import perf_report as perf_report

__all__ = ["Benchmark", "Mark", "assert_close", "do_bench", "do_bench_cudagraph", "perf_report"]
