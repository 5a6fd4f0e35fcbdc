"""tests/cpu/test_small_loads.py, on the GPU."""

from tests.cpu.test_small_loads import *  # noqa: F403

STAGED = True
