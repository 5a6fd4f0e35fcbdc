"""tests/cpu/test_atomics.py, on the GPU."""

from tests.cpu.test_atomics import *  # noqa: F403

STAGED = True
