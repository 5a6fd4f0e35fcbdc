"""tests/cpu/test_random_returns.py, on the GPU."""

from tests.cpu.test_random_returns import *  # noqa: F403

STAGED = True
