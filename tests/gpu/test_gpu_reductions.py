"""tests/cpu/test_reductions.py, on the GPU."""

from tests.cpu.test_reductions import *  # noqa: F403

STAGED = True
