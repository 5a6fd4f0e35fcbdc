"""tests/cpu/test_libdevice.py, on the GPU, where every function is there."""

from tests.cpu.test_libdevice import *  # noqa: F403

STAGED = True
# The chip converts a NaN of fp64 to the least integer, and its fast functions are less exact:
# test_gpu_approximations.py.
del test_floats_to_integers_saturate  # noqa: F821
del test_saturation_and_fast_functions  # noqa: F821
