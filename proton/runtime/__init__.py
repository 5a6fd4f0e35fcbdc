"""Launching: arguments, grids, threads, sessions, tuning; and `driver`, as Triton has it."""

import importlib
from typing import Any

_HOME = {  # what Triton has here -> its module
    "JITFunction": "proton.runtime.jit",
    "KernelInterface": "proton.runtime.interface",
    "Autotuner": "proton.runtime.autotuner",
    "autotune": "proton.runtime.autotuner",
    "Heuristics": "proton.runtime.heuristics",
    "heuristics": "proton.runtime.heuristics",
    "Config": "proton.runtime.tuning",
    "MockTensor": "proton.runtime.reinterpret",
    "TensorWrapper": "proton.runtime.reinterpret",
    "reinterpret": "proton.runtime.reinterpret",
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
