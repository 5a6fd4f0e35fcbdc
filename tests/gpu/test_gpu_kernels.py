"""tests/cpu/test_kernels.py, on the GPU."""

from tests.cpu.test_kernels import *  # noqa: F403

STAGED = True
