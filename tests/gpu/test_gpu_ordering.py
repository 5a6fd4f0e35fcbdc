"""tests/cpu/test_ordering.py, on the GPU."""

from tests.cpu.test_ordering import *  # noqa: F403

STAGED = True
