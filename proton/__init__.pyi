"""What an editor and mypy see of `proton`, whose names load on first use."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, ParamSpec, overload

from proton import compiler as compiler
from proton import language as language
from proton import profiler as profiler
from proton import runtime as runtime
from proton import testing as testing
from proton import tools as tools
from proton._profiling import activate as activate
from proton._profiling import deactivate as deactivate
from proton._profiling import finalize as finalize
from proton._profiling import monitor as monitor
from proton._profiling import start as start
from proton.base.errors import AutotunerError as AutotunerError
from proton.base.errors import BoundsError as BoundsError
from proton.base.errors import CompilationError as CompilationError
from proton.base.errors import CompileTimeAssertionFailure as CompileTimeAssertionFailure
from proton.base.errors import LaunchError as LaunchError
from proton.base.errors import OutOfResources as OutOfResources
from proton.base.errors import ProfileError as ProfileError
from proton.base.errors import ProtonError as ProtonError
from proton.base.errors import UnsupportedLanguageConstruct as UnsupportedLanguageConstruct
from proton.base.knobs import knobs as knobs
from proton.base.targets import GPUTarget as GPUTarget
from proton.compat.triton import install_as_triton as install_as_triton
from proton.language.aggregate import aggregate as aggregate
from proton.language.function import constexpr_function as constexpr_function
from proton.language.function import must_use_result as must_use_result
from proton.language.profiling import allocate_event as allocate_event
from proton.language.profiling import cpu_timed_scope as cpu_timed_scope
from proton.language.profiling import end_event as end_event
from proton.language.profiling import enter_scope as enter_scope
from proton.language.profiling import enter_state as enter_state
from proton.language.profiling import exit_scope as exit_scope
from proton.language.profiling import exit_state as exit_state
from proton.language.profiling import mark as mark
from proton.language.profiling import scope as scope
from proton.language.profiling import start_event as start_event
from proton.language.profiling import state as state
from proton.language.standard import next_power_of_2 as next_power_of_2
from proton.profiler import mode as mode
from proton.runtime.driver import compile as compile
from proton.runtime.launch.allocation import set_allocator as set_allocator
from proton.runtime.launch.interface import KernelInterface as KernelInterface
from proton.runtime.launch.jit import JITFunction as JITFunction
from proton.runtime.launch.reinterpret import MockTensor as MockTensor
from proton.runtime.launch.reinterpret import TensorWrapper as TensorWrapper
from proton.runtime.launch.reinterpret import reinterpret as reinterpret
from proton.runtime.tuning.async_compile import AsyncCompileMode as AsyncCompileMode
from proton.runtime.tuning.async_compile import FutureKernel as FutureKernel
from proton.runtime.tuning.autotuner import autotune as autotune
from proton.runtime.tuning.configurations import Config as Config
from proton.runtime.tuning.heuristics import heuristics as heuristics
from proton.viewer import Run as Run

__version__: str
TritonError = ProtonError
InterpreterError = ProtonError

def cdiv(x: int, y: int) -> int: ...
@overload
def jit(fn: Callable[..., Any]) -> JITFunction: ...
@overload
def jit(
    *,
    noinline: bool = ...,
    do_not_specialize: tuple[str | int, ...] = ...,
    debug: bool | None = ...,
    repr: Callable[..., str] | None = ...,
    interpret: bool | None = ...,
) -> Callable[[Callable[..., Any]], JITFunction]: ...

_P = ParamSpec("_P")

def _recording(start: Callable[_P, int | None]) -> Callable[_P, AbstractContextManager[Run]]: ...

# The run is complete when the block ends. Its options are those of `start`.
profile = _recording(start)
