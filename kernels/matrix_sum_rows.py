"""Sums up the rows of a matrix (axis 0); the kernel is in proton/kernels/reduction.py.

python kernels/matrix_sum_rows.py [--device cuda] [--benchmark] [--profile trace.pftrace]
"""

from _harness import main

from proton.kernels import MATRIX_SUM_ROWS

UGLY = [(1, 1), (1, 5), (7, 1), (65, 127), (1000, 1000), (129, 4097)]
BENCHMARK = [(4096, 256), (4096, 1024), (1024, 4096), (256, 16384)]

if __name__ == "__main__":
    main(MATRIX_SUM_ROWS, UGLY, BENCHMARK)
