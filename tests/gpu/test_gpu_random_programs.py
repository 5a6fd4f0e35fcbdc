"""tests/cpu/test_random_programs.py, on the GPU."""

from tests.cpu.test_random_programs import *  # noqa: F403

STAGED = True
