"""tests/cpu/test_dot.py, on the GPU."""

from tests.cpu.test_dot import *  # noqa: F403

STAGED = True
