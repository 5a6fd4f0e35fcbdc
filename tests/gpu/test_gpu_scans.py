"""tests/cpu/test_scans.py, on the GPU."""

from tests.cpu.test_scans import *  # noqa: F403

STAGED = True
