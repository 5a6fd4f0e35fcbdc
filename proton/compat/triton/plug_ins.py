"""`triton.backends.backends`: the back ends by the names under which Triton's plug-ins are known.

Programs ask it whether Triton can run here, and for drivers. A driver is a class of its own, as
Triton's are: `driver.set_active(backends["cpu"].driver())`.
"""

import functools
from dataclasses import dataclass
from typing import Any, ClassVar

from proton.backends.compiler import BaseBackend as BaseBackend
from proton.backends.compiler import Compiler
from proton.runtime import backend as registry
from proton.runtime.backend import Backend, default_backend
from proton.runtime.driver import Driver as DriverBase


class PlugInDriver(DriverBase):
    """The driver of one back end, whether it is active or not."""

    _backend: ClassVar[Backend]

    @property
    def backend(self) -> Backend:
        return self._backend

    @classmethod
    def is_active(cls) -> bool:
        """True if launches without arrays run here."""
        return default_backend() is cls._backend


@dataclass(frozen=True)
class PlugIn:
    """A back end, as Triton has its parts."""

    compiler: Compiler[Any, Any]
    driver: type[PlugInDriver]


@functools.cache
def _driver_class(backend: Backend) -> type[PlugInDriver]:
    return type(f"{type(backend).__name__}Driver", (PlugInDriver,), {"_backend": backend})


def __getattr__(name: str) -> Any:
    if name == "backends":  # those that are there now
        return {
            backend.plug_in or backend.name: PlugIn(backend.compiler, _driver_class(backend))
            for backend in registry.backends()
        }
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
