"""`tl.target_info`: what a kernel is compiled for, known while compiling; outside of kernels, what
the current device is."""

import importlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

from proton.base.errors import ProtonError
from proton.base.targets import GPUTarget, Target
from proton.language.function import builtin
from proton.language.types import unwrap


class _Thread(threading.local):
    """What Python in the calling thread is run for: a target while a kernel is compiled."""

    target: Target | None = None


_thread = _Thread()


@contextmanager
def compiling_for(target: Target) -> Iterator[None]:
    """Python that runs while a kernel is compiled (`constexpr_function`) asks for its target."""
    before, _thread.target = _thread.target, target
    try:
        yield
    finally:
        _thread.target = before


def _target() -> Target | None:
    """The target of the kernel that is being compiled, or that of the current device; None where
    that is none which kernels are compiled for."""
    if _thread.target is not None:
        return _thread.target
    # Imports point down: only who asks on the host has the runtime.
    active: Any = importlib.import_module("proton.runtime.driver").active
    try:
        return cast(Target, active.get_current_target())
    except ProtonError:
        return None


@builtin
def current_target():
    """The target: `backend` ("cuda", "hip" or "cpu") and `arch`, the compute capability times ten,
    or the name of AMD's chip."""


@builtin
def is_cuda():
    """Whether it is an NVIDIA GPU."""


@builtin
def cuda_capability_geq(major, minor=0):
    """Whether it is an NVIDIA GPU of at least this compute capability."""


@builtin
def is_hip():
    """Whether it is a GPU of AMD."""


@builtin
def is_hip_cdna3():
    """Whether it is a CDNA3 of AMD."""


@builtin
def is_hip_cdna4():
    """Whether it is a CDNA4 of AMD."""


@builtin
def is_hip_gfx1250():
    """Whether it is a GFX1250 of AMD."""


def is_gpu_of(target: Target | None, major: int = 0, minor: int = 0) -> bool:
    """True if a target is an NVIDIA GPU of at least this compute capability."""
    return (
        isinstance(target, GPUTarget)
        and target.backend == "cuda"
        and target.capability >= 10 * major + minor
    )


def is_chip_of_amd(target: Target | None, chips: tuple[str, ...]) -> bool:
    """True if a target is a GPU of AMD, and one of these chips where there are some."""
    if not isinstance(target, GPUTarget) or target.backend != "hip":
        return False
    return not chips or target.arch in chips


current_target.on_host = _target
is_cuda.on_host = lambda: is_gpu_of(_target())
cuda_capability_geq.on_host = lambda major, minor=0: is_gpu_of(
    _target(), unwrap(major), unwrap(minor)
)
OF_AMD = (
    (is_hip, ()),
    (is_hip_cdna3, ("gfx942",)),
    (is_hip_cdna4, ("gfx950",)),
    (is_hip_gfx1250, ("gfx1250",)),
)
for _op, _chips in OF_AMD:
    _op.on_host = lambda chips=_chips: is_chip_of_amd(_target(), chips)
