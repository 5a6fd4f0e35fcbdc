"""tests/cpu/test_ragged_tma.py, on the GPU."""

from tests.cpu.test_ragged_tma import *  # noqa: F403

STAGED = True
