"""tests/cpu/test_block_pointers.py, on the GPU."""

from tests.cpu.test_block_pointers import *  # noqa: F403

STAGED = True
del test_blocks_are_read_in_rows  # noqa: F821 - of the CPU's own levels
