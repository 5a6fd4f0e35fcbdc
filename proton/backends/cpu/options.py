"""The options of a compile that change the code for the CPU."""

from dataclasses import dataclass
from pathlib import Path

from proton.language.ir_text import IRText
from proton.trace.instrumentation import Instrumentation


@dataclass(frozen=True)
class CPUOptions:
    """What changes the code of a kernel besides its signature.

    `disjoint` says that the arguments the kernel writes overlap no other argument. None: the
    launcher finds that out, which nobody can where the kernel writes memory that is no argument's.
    With `debug`, overflows of integers are asserted against, too, unless `sanitize_overflow` is
    False. GPU options (num_warps, num_stages, ...) mean nothing here, but that a kernel hears of
    their `warps`, which its layouts must be for, and of `num_ctas`; 0: it does not ask.
    `ir_override`, a file of IR, is compiled in the place of the kernel; it is read at once.
    """

    disjoint: bool | None = None
    debug: bool = False
    instrumentation: Instrumentation | None = None
    check_bounds: bool = False
    ir_override: IRText | str | Path | None = None
    sanitize_overflow: bool = True
    warps: int = 0
    num_ctas: int = 1

    @property
    def num_warps(self) -> int:
        """What a kernel hears of them; 1 of one that does not ask: one thread runs a program."""
        return self.warps or 1

    @property
    def num_stages(self) -> int:
        """1: a loop waits for what it loads."""
        return 1

    def __post_init__(self) -> None:
        if self.ir_override is not None:
            object.__setattr__(self, "ir_override", IRText.read(self.ir_override))

    @property
    def text(self) -> IRText | None:
        """What `ir_override` has."""
        return self.ir_override if isinstance(self.ir_override, IRText) else None
