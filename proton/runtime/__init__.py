"""Launching: arguments, grids, threads, sessions, tuning; and `driver`, as Triton has it."""

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
_MODULES = ("driver", "errors", "cache")


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"proton.runtime.{name}")
    if name in _HOME:
        return getattr(importlib.import_module(_HOME[name]), name)
    raise AttributeError(f"module 'proton.runtime' has no attribute {name!r}")
