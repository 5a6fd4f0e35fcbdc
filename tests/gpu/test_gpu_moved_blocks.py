"""tests/cpu/test_moved_blocks.py, on the GPU."""

from tests.cpu.test_moved_blocks import *  # noqa: F403

STAGED = True
