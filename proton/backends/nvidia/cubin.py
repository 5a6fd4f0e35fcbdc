"""PTX to machine code by `ptxas`, and machine code back to text by `nvdisasm`.

`ptxas` compiles a whole program, which nvJitLink does not: only then does it weigh registers
against the programs that fit on an SM (docs/decisions.md, 22).
"""

import re
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from proton.backends.nvidia import tools
from proton.base.errors import PassError, ProtonError
from proton.base.targets import GPUTarget

_REGISTERS = re.compile(r"Used (\d+) registers")
_SPILLS = re.compile(r"(\d+) bytes spill stores, (\d+) bytes spill loads")
# Serialised tensor-core instructions: not what the compiler meant.
_SERIOUS = ("C7517", "C7519")


@dataclass(frozen=True)
class Cubin:
    """Machine code and what the assembler says of it. `spills`: bytes that a thread's registers
    take in local memory, stored and loaded, as the instructions say."""

    code: bytes
    registers: int
    spills: int
    log: str


def assemble(ptx: str, target: GPUTarget, name: str) -> Cubin:
    """Assembles PTX for a target; raises PassError with the assembler's words."""
    with tempfile.TemporaryDirectory(prefix="proton-") as folder:
        source, result = Path(folder, f"{name}.ptx"), Path(folder, f"{name}.cubin")
        source.write_text(ptx)
        command = [str(tools.ptxas()), f"-arch={target.facts.chip}", "-v", "-lineinfo"]
        run = subprocess.run(
            [*command, str(source), "-o", str(result)], capture_output=True, text=True, check=False
        )
        log = run.stderr + run.stdout
        if run.returncode:
            raise PassError(f"ptxas refused {name}: {log.strip()}")
        code = result.read_bytes()
    for warning in _SERIOUS:
        if warning in log:
            raise PassError(f"ptxas serialises tensor-core instructions of {name}: {log}")
    about = log[log.find(f"Compiling entry function '{name}'") :]
    registers, spills = _REGISTERS.search(about), _SPILLS.search(about)
    if registers is None or spills is None:
        raise PassError(f"ptxas says nothing about the registers of {name}: {log}")
    return Cubin(code, int(registers[1]), int(spills[1]) + int(spills[2]), log)


def disassemble(code: bytes) -> str:
    """SASS with source lines; raises ProtonError where `nvdisasm` is not to be found."""
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(code)
        file.flush()
        run = subprocess.run(
            [str(tools.nvdisasm()), "-g", "-c", file.name],
            capture_output=True,
            text=True,
            check=False,
        )
    if run.returncode:
        raise ProtonError(f"nvdisasm failed: {run.stderr.strip()}")
    return run.stdout
