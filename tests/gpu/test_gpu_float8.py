"""tests/cpu/test_float8.py, on the GPU."""

from tests.cpu.test_float8 import *  # noqa: F403

STAGED = True
