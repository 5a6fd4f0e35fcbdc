"""tests/cpu/test_pointers.py, on the GPU."""

from tests.cpu.test_pointers import *  # noqa: F403

STAGED = True
RACES = {
    "test_in_place",
    "test_loads_see_the_stores_before_them_and_not_those_after",
    "test_pointers_that_a_loop_swaps",
}
del test_read_only_arrays_can_be_read_and_not_written  # noqa: F821 - staging makes copies
del test_addresses_from_memory  # noqa: F821 - the CPU's addresses
del test_overlapping_views_are_read_before_they_are_written  # noqa: F821 - warps race
del test_permutations_in_place  # noqa: F821 - warps race
del test_several_stores_to_one_array_happen_in_order  # noqa: F821 - warps race
