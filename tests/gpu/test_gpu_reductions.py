"""tests/cpu/test_reductions.py, on the GPU."""

from tests.cpu.test_reductions import *  # noqa: F403

STAGED = True
del test_softmax  # noqa: F821 - the exponential is approximate: test_gpu_approximations.py
