"""tests/cpu/test_divided_offsets.py, on the GPU."""

from tests.cpu.test_divided_offsets import *  # noqa: F403

STAGED = True
