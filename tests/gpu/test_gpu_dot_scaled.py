"""tests/cpu/test_dot_scaled.py, on the GPU."""

from tests.cpu.test_dot_scaled import *  # noqa: F403

STAGED = True
