"""Launches, sessions and tuning, a folder each, and a folder for each back end. The names and the
modules that Triton has here are attributes."""

import importlib
from typing import Any

_HOME = {  # what Triton has here -> its module
    "JITFunction": "proton.runtime.launch.jit",
    "KernelInterface": "proton.runtime.launch.interface",
    "Autotuner": "proton.runtime.tuning.autotuner",
    "autotune": "proton.runtime.tuning.autotuner",
    "Heuristics": "proton.runtime.tuning.heuristics",
    "heuristics": "proton.runtime.tuning.heuristics",
    "Config": "proton.runtime.tuning.configurations",
    "MockTensor": "proton.runtime.launch.reinterpret",
    "TensorWrapper": "proton.runtime.launch.reinterpret",
    "reinterpret": "proton.runtime.launch.reinterpret",
    "OutOfResources": "proton.base.errors",
    "AutotunerError": "proton.base.errors",
    "InterpreterError": "proton.runtime.errors",
}
_MODULES = {
    "autotuner": "proton.runtime.tuning.autotuner",
    "cache": "proton.runtime.cache",
    "driver": "proton.runtime.driver",
    "errors": "proton.runtime.errors",
    "jit": "proton.runtime.launch.jit",
}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(_MODULES[name])
    if name in _HOME:
        return getattr(importlib.import_module(_HOME[name]), name)
    raise AttributeError(f"module 'proton.runtime' has no attribute {name!r}")
