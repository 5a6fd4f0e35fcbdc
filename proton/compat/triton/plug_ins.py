"""`triton.backends.backends`: the back ends by the names under which Triton's plug-ins are known.

Programs ask it whether Triton can run here. Of all drivers the one is active whose device launches
take by default.
"""

from dataclasses import dataclass
from typing import Any

from proton.backends.compiler import Compiler
from proton.runtime import backend as registry
from proton.runtime.backend import Backend, default_backend
from proton.runtime.driver import Driver


class PlugInDriver(Driver):
    """The driver of one back end, whether it is active or not."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    @property
    def backend(self) -> Backend:
        return self._backend

    def is_active(self) -> bool:
        """Whether launches without arrays run here."""
        return default_backend() is self._backend


@dataclass(frozen=True)
class PlugIn:
    """A back end, as Triton has its parts."""

    compiler: Compiler[Any, Any]
    driver: PlugInDriver


def __getattr__(name: str) -> Any:
    if name == "backends":  # those that are there now
        return {
            backend.plug_in or backend.name: PlugIn(backend.compiler, PlugInDriver(backend))
            for backend in registry.backends()
        }
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
