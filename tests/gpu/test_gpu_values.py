"""tests/cpu/test_values.py, on the GPU."""

from tests.cpu.test_values import *  # noqa: F403

STAGED = True
RACES = {"test_a_pointer_is_a_condition"}
del test_an_assertion_that_is_known_to_fail_fails_where_the_program_gets_there  # noqa: F821 - a fault ends the context
