"""Kernels to start from, a file each: the kernel, what launches it, the same in numpy and in torch,
its check and its benchmark.

`python kernels/softmax.py [--device cuda] [--benchmark] [--profile trace.pftrace]`

A copy of a file needs `arrays.py` (arrays of numpy or of torch) and `harness.py` (the command line)
in a folder `kernels` beside it.
"""
