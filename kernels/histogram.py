"""Counts the values of a vector of integers; the kernel is in proton/kernels/histogram.py.

python kernels/histogram.py [--device cuda] [--benchmark] [--profile trace.pftrace]
"""

from _harness import main

from proton.kernels import HISTOGRAM

UGLY = [(1,), (3,), (1000,), (16384,), (16385,), (1_000_003,)]
BENCHMARK = [(1 << 12,), (1 << 16,), (1 << 20,), (1 << 24,)]

if __name__ == "__main__":
    main(HISTOGRAM, UGLY, BENCHMARK)
