"""tests/cpu/test_memory.py, on the GPU."""

from tests.cpu.test_memory import *  # noqa: F403

STAGED = True
RACES = {"test_each_program_of_a_grid_runs_once"}
