"""tests/cpu/test_random_numbers.py, on the GPU."""

from tests.cpu.test_random_numbers import *  # noqa: F403

STAGED = True
