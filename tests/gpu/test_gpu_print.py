"""tests/cpu/test_print.py, on the GPU."""

from tests.cpu.test_print import *  # noqa: F403

STAGED = True
del test_addresses  # noqa: F821 - those of the CPU
