"""tests/cpu/test_descriptors.py, on the GPU."""

from tests.cpu.test_descriptors import *  # noqa: F403

STAGED = True
# Arrays that only the host can tell apart, and the order of accesses that no GPU keeps.
del test_bounds_are_those_of_the_array  # noqa: F821
del test_descriptors_of_one_array  # noqa: F821
del test_what_a_launch_refuses  # noqa: F821
