"""tests/cpu/test_libdevice_special.py, on the GPU."""

from tests.cpu.test_libdevice_special import *  # noqa: F403

STAGED = True
