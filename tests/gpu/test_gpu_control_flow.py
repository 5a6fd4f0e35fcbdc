"""tests/cpu/test_control_flow.py, on the GPU."""

from tests.cpu.test_control_flow import *  # noqa: F403

STAGED = True
RACES = {"test_loops_that_exchange_what_they_carry"}
