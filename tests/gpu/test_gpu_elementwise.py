"""tests/cpu/test_elementwise.py, on the GPU."""

from tests.cpu.test_elementwise import *  # noqa: F403

STAGED = True
