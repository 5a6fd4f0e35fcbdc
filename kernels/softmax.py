"""Softmax of each row of a matrix; the kernel is in proton/kernels/softmax.py.

python kernels/softmax.py [--device cuda] [--benchmark] [--profile trace.pftrace]
"""

from _harness import main

from proton.kernels import SOFTMAX

UGLY = [(1, 1), (1, 5), (7, 1), (65, 127), (1000, 1000), (129, 4097)]
BENCHMARK = [(4096, 256), (4096, 1024), (1024, 4096), (256, 16384)]

if __name__ == "__main__":
    main(SOFTMAX, UGLY, BENCHMARK)
