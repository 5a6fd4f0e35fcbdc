"""The options of a compile that change the code for the CPU."""

from dataclasses import dataclass

from proton.trace.instrumentation import Instrumentation


@dataclass(frozen=True)
class CPUOptions:
    """What changes the code of a kernel besides its signature.

    `disjoint` says that the arguments the kernel writes overlap no other argument; the
    launcher checks it. GPU options (num_warps, num_stages, ...) mean nothing here.
    """

    disjoint: bool = True
    debug: bool = False
    instrumentation: Instrumentation | None = None
    check_bounds: bool = False
