"""tests/cpu/test_kernels.py, on the GPU."""

from tests.cpu.test_kernels import *  # noqa: F403

STAGED = True
# Sums by atomics are in another order each time: test_gpu_profiling.py has kernels without.
del test_profiling_changes_no_bit  # noqa: F821
del test_traces_of_kernels_equal_their_tables  # noqa: F821 - where Perfetto's engine may be missing
del test_the_scripts_check_and_profile  # noqa: F821 - in processes of their own, on the CPU
