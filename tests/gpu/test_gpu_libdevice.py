"""tests/cpu/test_libdevice.py, on the GPU, where every function is there."""

from tests.cpu.test_libdevice import *  # noqa: F403

STAGED = True
del test_a_function_that_the_cpu_lacks_is_an_error_that_names_it  # noqa: F821
# The chip converts a NaN of fp64 to the least integer, and its fast functions are less exact:
# test_gpu_approximations.py.
del test_floats_to_integers_saturate  # noqa: F821
del test_saturation_and_fast_functions  # noqa: F821
