"""PTX to machine code by `ptxas`.

`ptxas` compiles a whole program, which nvJitLink does not: only then does it weigh registers
against the programs that fit on an SM (docs/decisions.md, 22).
"""

import contextlib
import fcntl
import os
import re
import signal
from dataclasses import dataclass

from proton.base import nvidia_tools as tools
from proton.base.errors import PassError, PTXASError
from proton.base.knobs import environment
from proton.base.targets import GPUTarget

_REGISTERS = re.compile(r"Used (\d+) registers")
_SPILLS = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
# Its heap in huge pages, 64 MiB at a time: 5,000 faults fewer of 6,600 in a product of matrices,
# which are a tenth of its time. Where the C library or the kernel knows none, it changes nothing.
_HEAP = {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1:glibc.malloc.top_pad=67108864"}
_RESULT = 3  # the descriptor of the machine code, in the assembler
_SERIALISED = re.compile(r"\(C75\d\d\) Potential Performance Loss")


@dataclass(frozen=True)
class Cubin:
    """Machine code and what the assembler says of it. `spills`: bytes that a thread's registers
    take in local memory, stored and loaded, as the instructions say; `frame`: bytes of local memory
    that a thread has."""

    code: bytes
    registers: int
    spills: int
    frame: int
    log: str

    def facts(self) -> dict[str, int]:
        """What a kernel's metadata has of it."""
        return {"n_regs": self.registers, "n_spills": self.spills, "frame": self.frame}

    @property
    def is_serialised(self) -> bool:
        """True if each of its products on tensor cores is waited for before the next one, which
        the assembler does where it cannot follow their registers, or has too few."""
        return _SERIALISED.search(self.log) is not None

    def threads(self, target: GPUTarget, program: int) -> int:
        """Threads of programs of so many that an SM has registers for."""
        by_registers = target.facts.programs_by_registers(self.registers, program)
        return min(by_registers, target.facts.sm_threads // program) * program


class Assembler:
    """A `ptxas` that starts before there is PTX: half of its time is its own start, which passes
    while the PTX is made. A context: leaving it ends the process, whatever has happened.

    `name` is the kernel's in errors, `symbol` in the PTX, if that is another one.

    >>> with Assembler(target, "add", "add$") as assembler:
    ...     assembler.feed(ptx)
    ...     cubin = assembler.finish()
    """

    def __init__(self, target: GPUTarget, name: str, symbol: str = "") -> None:
        self.name, self.symbol = name, symbol or name
        # Memory, and no folder or pipes: there is nothing to remove, and nobody has to read along.
        self.result, self.log = (_above_standard(os.memfd_create(n)) for n in ("cubin", "log"))
        read, self.input = map(_above_standard, os.pipe())
        command = [str(tools.ptxas(target)), f"-arch={target.facts.name}", "-v", "-lineinfo"]
        ends = ((read, 0), (self.log, 1), (self.log, 2), (self.result, _RESULT))
        self.process: int | None = os.posix_spawn(
            command[0],
            [*command, "/dev/stdin", "-o", f"/dev/fd/{_RESULT}"],
            environment(**_HEAP),
            file_actions=[(os.POSIX_SPAWN_DUP2, own, its) for own, its in ends],
            setsigdef=[signal.SIGPIPE, signal.SIGXFSZ],  # which Python ignores
        )
        os.close(read)

    def __enter__(self) -> "Assembler":
        return self

    def __exit__(self, *_: object) -> None:
        if self.process is not None:
            with contextlib.suppress(ProcessLookupError):  # it ended, and nobody has to wait
                os.kill(self.process, signal.SIGKILL)
            self._ended()
        self._close_input()
        os.close(self.log)
        os.close(self.result)

    def feed(self, ptx: str) -> None:
        """Hands over the PTX: from here on the assembler works."""
        left = memoryview(ptx.encode())
        with contextlib.suppress(BrokenPipeError):  # it has given up: `finish` says why
            while left:
                left = left[os.write(self.input, left) :]
        self._close_input()

    def _close_input(self) -> None:
        if self.input >= 0:
            os.close(self.input)
            self.input = -1

    def _ended(self) -> int:
        """Waits for the process; its exit status, or minus the signal that ended it."""
        assert self.process is not None
        try:
            _, status = os.waitpid(self.process, 0)
        except ChildProcessError:  # the program lets nobody wait: what is there says enough
            status = 0
        self.process = None
        return os.waitstatus_to_exitcode(status)

    def finish(self) -> Cubin:
        """The machine code; raises PTXASError with the assembler's words, PassError for code that
        is not what was meant."""
        status, log = self._ended(), _content(self.log).decode(errors="replace")
        if status < 0:
            raise PTXASError(
                f"ptxas crashed on {self.name} (signal {-status}), which is its fault: try other "
                f"num_warps, num_stages or blocks, or another ptxas (PROTON_PTXAS). {log.strip()}"
            )
        if status:
            raise PTXASError(f"ptxas refused {self.name}: {log.strip()}")
        about = log[log.find(f"Compiling entry function '{self.symbol}'") :]
        registers, spills = _REGISTERS.search(about), _SPILLS.search(about)
        if registers is None or spills is None:
            raise PassError(f"ptxas says nothing about the registers of {self.name}: {log}")
        frame, stored, read = map(int, spills.groups())
        return Cubin(_content(self.result), int(registers[1]), stored + read, frame, log)


def _above_standard(file: int) -> int:
    """A descriptor that is none of those that the assembler's files get."""
    if file > _RESULT:
        return file
    other = fcntl.fcntl(file, fcntl.F_DUPFD_CLOEXEC, _RESULT + 1)
    os.close(file)
    return other


def _content(file: int) -> bytes:
    """What is in a file in memory."""
    return os.pread(file, os.fstat(file).st_size, 0)
