"""The gradients of layer normalisation; the kernel is in proton/kernels/layer_norm_backward.py.

python kernels/layer_norm_backward.py [--benchmark] [--profile layer_norm_backward.pftrace]
"""

from _harness import main

from proton.kernels import LAYER_NORM_BACKWARD

UGLY = [(1, 2), (1, 5), (7, 3), (65, 127), (1000, 1000), (129, 4097)]
BENCHMARK = [(4096, 256), (4096, 1024), (1024, 4096), (256, 16384)]

if __name__ == "__main__":
    main(LAYER_NORM_BACKWARD, UGLY, BENCHMARK)
