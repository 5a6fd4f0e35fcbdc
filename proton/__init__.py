"""Proton: a tile-kernel compiler with a profiler inside the kernel.

`import proton` carries what `triton` and `triton.profiler` do; the tile language is
`proton.language`. Names load on first use, so that a process pays for what it uses.

PYTEST_DONT_REWRITE: pytest warns where a package that has a plugin was imported before pytest, as
it cannot rewrite the assertions any more; this one's are not for it.
"""

import importlib
from typing import Any

__version__ = "0.1.0"

_HOME = {  # public name -> (module, name there)
    "jit": ("proton.runtime.launch.jit", "jit"),
    "JITFunction": ("proton.runtime.launch.jit", "JITFunction"),
    "AsyncCompileMode": ("proton.runtime.tuning.async_compile", "AsyncCompileMode"),
    "FutureKernel": ("proton.runtime.tuning.async_compile", "FutureKernel"),
    "KernelInterface": ("proton.runtime.launch.interface", "KernelInterface"),
    "autotune": ("proton.runtime.tuning.autotuner", "autotune"),
    "Config": ("proton.runtime.tuning.configurations", "Config"),
    "heuristics": ("proton.runtime.tuning.heuristics", "heuristics"),
    "compile": ("proton.runtime.driver", "compile"),
    "reinterpret": ("proton.runtime.launch.reinterpret", "reinterpret"),
    "set_allocator": ("proton.runtime.launch.allocation", "set_allocator"),
    "MockTensor": ("proton.runtime.launch.reinterpret", "MockTensor"),
    "TensorWrapper": ("proton.runtime.launch.reinterpret", "TensorWrapper"),
    "constexpr_function": ("proton.language.function", "constexpr_function"),
    "cdiv": ("proton.language.standard", "constexpr_cdiv"),
    "must_use_result": ("proton.language.function", "must_use_result"),
    "aggregate": ("proton.language.aggregate", "aggregate"),
    "next_power_of_2": ("proton.language.standard", "next_power_of_2"),
    "scope": ("proton.language.profiling", "scope"),
    "enter_scope": ("proton.language.profiling", "enter_scope"),
    "exit_scope": ("proton.language.profiling", "exit_scope"),
    "cpu_timed_scope": ("proton.language.profiling", "cpu_timed_scope"),
    "state": ("proton.language.profiling", "state"),
    "enter_state": ("proton.language.profiling", "enter_state"),
    "exit_state": ("proton.language.profiling", "exit_state"),
    "mark": ("proton.language.profiling", "mark"),
    "allocate_event": ("proton.language.profiling", "allocate_event"),
    "start_event": ("proton.language.profiling", "start_event"),
    "end_event": ("proton.language.profiling", "end_event"),
    "profile": ("proton._profiling", "profile"),
    "start": ("proton._profiling", "start"),
    "activate": ("proton._profiling", "activate"),
    "deactivate": ("proton._profiling", "deactivate"),
    "finalize": ("proton._profiling", "finalize"),
    "monitor": ("proton._profiling", "monitor"),
    "Run": ("proton.viewer", "Run"),
    "install_as_triton": ("proton.compat.triton", "install_as_triton"),
    "knobs": ("proton.base.knobs", "knobs"),
    "GPUTarget": ("proton.base.targets", "GPUTarget"),
    "TritonError": ("proton.base.errors", "TritonError"),
    "InterpreterError": ("proton.base.errors", "ProtonError"),
    "ProtonError": ("proton.base.errors", "ProtonError"),
    "CompilationError": ("proton.base.errors", "CompilationError"),
    "UnsupportedLanguageConstruct": ("proton.base.errors", "UnsupportedLanguageConstruct"),
    "CompileTimeAssertionFailure": ("proton.base.errors", "CompileTimeAssertionFailure"),
    "LaunchError": ("proton.base.errors", "LaunchError"),
    "BoundsError": ("proton.base.errors", "BoundsError"),
    "OutOfResources": ("proton.base.errors", "OutOfResources"),
    "AutotunerError": ("proton.base.errors", "AutotunerError"),
    "ProfileError": ("proton.base.errors", "ProfileError"),
}
_MODULES = {  # public name -> module
    "language": "proton.language",
    "profiler": "proton.profiler",
    "mode": "proton.profiler.mode",
    "tools": "proton.tools",
    "testing": "proton.testing",
    "compiler": "proton.compiler",
    "runtime": "proton.runtime",
}
# Names of triton that are not here yet.
_NOT_YET: frozenset[str] = frozenset()

__all__ = sorted([*_HOME, *_MODULES, "__version__"])


def __getattr__(name: str) -> Any:
    if name in _HOME:
        module, attribute = _HOME[name]
        value = getattr(importlib.import_module(module), attribute)
    elif name in _MODULES:
        value = importlib.import_module(_MODULES[name])
    elif name in _NOT_YET:
        raise AttributeError(
            f"proton.{name} of Triton is not there yet; what is: {', '.join(__all__)}"
        )
    else:
        from proton.base.words import did_you_mean  # which a process may never need

        guess = "" if name.startswith("__") else did_you_mean(name, __all__)
        raise AttributeError(f"module 'proton' has no attribute {name!r}{guess}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
