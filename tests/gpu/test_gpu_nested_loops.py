"""tests/cpu/test_nested_loops.py, on the GPU."""

from tests.cpu.test_nested_loops import *  # noqa: F403

STAGED = True
