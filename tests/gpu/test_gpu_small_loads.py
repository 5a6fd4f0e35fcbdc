"""tests/cpu/test_small_loads.py, on the GPU."""

from tests.cpu.test_small_loads import *  # noqa: F403

STAGED = True
RACES = {
    "test_a_row_that_another_argument_writes_is_the_one_that_was_read",
    "test_a_row_that_is_written_is_the_one_that_was_read",
}
