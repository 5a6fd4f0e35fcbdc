"""`import proton.profiler`: the names of `triton.profiler`, for scripts that were written for it.

Each is the one of `proton`; `proton.profiler.language` and `proton.profiler.mode` are modules.
"""

from proton._profiling import activate as activate
from proton._profiling import deactivate as deactivate
from proton._profiling import finalize as finalize
from proton._profiling import profile as profile
from proton._profiling import start as start
from proton.language.profiling import cpu_timed_scope as cpu_timed_scope
from proton.language.profiling import enter_scope as enter_scope
from proton.language.profiling import enter_state as enter_state
from proton.language.profiling import exit_scope as exit_scope
from proton.language.profiling import exit_state as exit_state
from proton.language.profiling import mark as mark
from proton.language.profiling import scope as scope
from proton.language.profiling import state as state
from proton.profiler import language as language
from proton.profiler import mode as mode
