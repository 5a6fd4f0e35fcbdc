"""tests/cpu/test_libdevice.py, on the GPU, where every function is there."""

from tests.cpu.test_libdevice import *  # noqa: F403

STAGED = True
del test_a_function_that_the_cpu_lacks_is_an_error_that_names_it  # noqa: F821
