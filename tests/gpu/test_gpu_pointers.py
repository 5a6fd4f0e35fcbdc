"""tests/cpu/test_pointers.py, on the GPU."""

from tests.cpu.test_pointers import *  # noqa: F403

STAGED = True
