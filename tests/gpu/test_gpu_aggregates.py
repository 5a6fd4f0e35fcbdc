"""tests/cpu/test_aggregates.py, on the GPU."""

from tests.cpu.test_aggregates import *  # noqa: F403

STAGED = True
