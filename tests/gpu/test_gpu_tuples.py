"""tests/cpu/test_tuples.py, on the GPU."""

from tests.cpu.test_tuples import *  # noqa: F403

STAGED = True
# On a GPU such an address is none of the driver's, and a read-only array is copied.
del test_an_object_with_an_address_and_a_dtype_is_a_pointer  # noqa: F821
del test_what_a_tuple_must_not_hold_is_named  # noqa: F821
