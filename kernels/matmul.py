"""Multiplies two matrices; the kernel is in proton/kernels/matmul.py.

python kernels/matmul.py [--device cuda] [--benchmark] [--profile trace.pftrace]
"""

from _harness import main

from proton.kernels import MATMUL

UGLY = [(1, 1, 1), (7, 5, 3), (128, 128, 64), (129, 127, 65), (300, 200, 1000)]
BENCHMARK = [(128, 128, 128), (512, 512, 512), (1024, 1024, 1024), (1000, 1000, 1000)]

if __name__ == "__main__":
    main(MATMUL, UGLY, BENCHMARK)
