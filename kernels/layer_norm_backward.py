"""The gradients of layer normalisation; the kernel is in proton/kernels/layer_norm_backward.py.

python kernels/layer_norm_backward.py [--device cuda] [--benchmark] [--profile trace.pftrace]
"""

from _harness import main

from proton.kernels import LAYER_NORM_BACKWARD

UGLY = [(1, 1), (9, 5), (65, 127), (1000, 1000), (129, 4097)]
BENCHMARK = [(4096, 256), (4096, 1024), (1024, 4096), (256, 16384)]

if __name__ == "__main__":
    main(LAYER_NORM_BACKWARD, UGLY, BENCHMARK)
