"""tests/cpu/test_memory.py, on the GPU."""

from tests.cpu.test_memory import *  # noqa: F403

STAGED = True
