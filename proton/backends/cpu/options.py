"""The options of a compile that change the code for the CPU."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Instrumentation:
    """How a kernel is instrumented: part of its compile options.

    `capacity` is in records per program; 0 lets the compiler choose. `placement` is "schedule"
    (records bracket the work where it ended up) or "program" (where they were written). Of the
    scopes in a loop each `every`-th iteration is kept.
    """

    strategy: str = "circular"
    capacity: int = 0
    placement: str = "schedule"
    every: int = 1


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
