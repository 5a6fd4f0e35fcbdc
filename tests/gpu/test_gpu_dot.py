"""tests/cpu/test_dot.py, on the GPU."""

from tests.cpu.test_dot import *  # noqa: F403

STAGED = True
del test_sampled_shapes  # noqa: F821 - some need more shared memory than there is
