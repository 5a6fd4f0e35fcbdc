"""Adds two vectors; the kernel is in proton/kernels/vector_add.py.

python kernels/vector_add.py [--device cuda] [--benchmark] [--profile trace.pftrace]
"""

from _harness import main

from proton.kernels import VECTOR_ADD

UGLY = [(1,), (3,), (1000,), (16384,), (16385,), (1_000_003,)]
BENCHMARK = [(1 << 12,), (1 << 16,), (1 << 20,), (1 << 24,)]

if __name__ == "__main__":
    main(VECTOR_ADD, UGLY, BENCHMARK)
