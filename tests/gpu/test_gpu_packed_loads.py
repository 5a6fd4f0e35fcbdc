"""tests/cpu/test_packed_loads.py, on the GPU."""

from tests.cpu.test_packed_loads import *  # noqa: F403

STAGED = True
