"""Dropout with a seed; the kernel is in proton/kernels/dropout.py.

python kernels/dropout.py [--device cuda] [--benchmark] [--profile trace.pftrace]
"""

from _harness import main

from proton.kernels import DROPOUT

UGLY = [(1,), (3,), (1000,), (16384,), (16385,), (1_000_003,)]
BENCHMARK = [(1 << 12,), (1 << 16,), (1 << 20,), (1 << 24,)]

if __name__ == "__main__":
    main(DROPOUT, UGLY, BENCHMARK)
