"""Sums up a vector; the kernel is in proton/kernels/reduction.py.

python kernels/vector_sum.py [--device cuda] [--benchmark] [--profile trace.pftrace]
"""

from _harness import main

from proton.kernels import VECTOR_SUM

UGLY = [(1,), (3,), (1000,), (16384,), (16385,), (1_000_003,)]
BENCHMARK = [(1 << 12,), (1 << 16,), (1 << 20,), (1 << 24,)]

if __name__ == "__main__":
    main(VECTOR_SUM, UGLY, BENCHMARK)
