"""tests/cpu/test_elementwise.py, on the GPU."""

from tests.cpu.test_elementwise import *  # noqa: F403

STAGED = True
# Division is approximate on a GPU: test_gpu_approximations.py.
del test_true_division_of_narrow_floats_and_integers_is_done_in_fp32  # noqa: F821
del test_named_divisions  # noqa: F821
