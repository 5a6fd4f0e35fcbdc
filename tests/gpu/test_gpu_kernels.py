"""tests/cpu/test_kernels.py, on the GPU."""

from tests.cpu.test_kernels import *  # noqa: F403

STAGED = True
del test_profiling_changes_no_bit  # noqa: F821 - kernels on a GPU cannot be profiled yet
del test_the_scripts_check_and_profile  # noqa: F821 - in processes of their own, on the CPU
