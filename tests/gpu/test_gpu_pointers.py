"""tests/cpu/test_pointers.py, on the GPU."""

from tests.cpu.test_pointers import *  # noqa: F403

STAGED = True
del test_read_only_arrays_can_be_read_and_not_written  # noqa: F821 - staging makes copies
del test_addresses_from_memory  # noqa: F821 - the CPU's addresses
del test_overlapping_views_are_read_before_they_are_written  # noqa: F821 - warps race
