"""tests/cpu/test_print.py, on the GPU."""

from tests.cpu.test_print import *  # noqa: F403

STAGED = True
del test_addresses  # noqa: F821 - those of the CPU
del test_a_kernel_with_the_name_of_a_c_function_is_told_to_change_it  # noqa: F821
