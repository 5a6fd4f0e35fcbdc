"""tests/cpu/test_math.py, on the GPU."""

from tests.cpu.test_math import *  # noqa: F403

STAGED = True
