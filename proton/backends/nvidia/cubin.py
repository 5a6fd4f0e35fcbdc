"""PTX to machine code by nvJitLink, in this process; and machine code back to text."""

import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from proton.base.errors import PassError, ProtonError
from proton.base.knobs import knobs
from proton.base.targets import REGISTER_UNIT, RESERVED_SHARED, SM_REGISTERS, GPUTarget

# The linker's own report, which all versions write; that of ptxas comes only with some.
_USED = re.compile(
    r"Function properties for '(?P<name>[^']+)':\s*"
    r"info\s*: used (?P<registers>\d+) registers.*?(?P<stack>\d+) stack"
)
# Local memory that the PTX itself asks for (the arguments of a print).
_DEPOT = re.compile(r"\.local \.align \d+ \.b8\s+__local_depot\d+\[(\d+)\]")
# Serialised tensor-core instructions: not what the compiler meant (gpu.md).
_SERIOUS = ("C7517", "C7519")


@dataclass(frozen=True)
class Cubin:
    """Machine code and what the assembler says of it.

    `spills`: the bytes of local memory of a thread that the assembler added to what the PTX has.
    """

    code: bytes
    registers: int
    spills: int
    log: str


# Registers are given up for another program on the SM as long as they are few.
_WORTH = 0.7


def assemble(ptx: str, target: GPUTarget, name: str, threads: int, shared: int) -> Cubin:
    """Assembles PTX of a kernel with so many threads and bytes of shared memory.

    nvJitLink assembles relocatable code, and then the assembler does not weigh registers against
    the programs that fit on an SM, as it does for a whole program (decisions.md, 20). So where
    registers bound that number, and a few less would let in one more program, it is asked for:
    the result is taken if nothing is spilled for it. Raises PassError with the assembler's words.
    """
    first = _assemble(ptx, target, name)
    fitting = _programs(first.registers, threads)
    others = min(
        target.facts.sm_threads // threads,
        (target.facts.shared_bytes + RESERVED_SHARED) // (shared + RESERVED_SHARED),
    )
    fewer = SM_REGISTERS // (threads * (fitting + 1)) // REGISTER_UNIT * REGISTER_UNIT
    if ".maxnreg" in ptx or fitting >= others or fewer < _WORTH * first.registers:
        return first
    bound = re.sub(r"(\.maxntid [\d, ]+)", rf"\1\n.minnctapersm {fitting + 1}", ptx, count=1)
    second = _assemble(bound, target, name)
    return second if second.spills <= first.spills else first


def _programs(registers: int, threads: int) -> int:
    """Programs that the registers of an SM are enough for."""
    units = -(-registers // REGISTER_UNIT) * REGISTER_UNIT
    return SM_REGISTERS // (units * threads)


def _assemble(ptx: str, target: GPUTarget, name: str) -> Cubin:
    from cuda.bindings import nvjitlink

    options = [f"-arch={target.facts.chip}", "-O3", "-verbose", "-lineinfo"]
    handle = nvjitlink.create(len(options), options)
    try:
        data = ptx.encode()
        try:
            nvjitlink.add_data(handle, nvjitlink.InputType.PTX, data, len(data), name)
            nvjitlink.complete(handle)
        except nvjitlink.nvJitLinkError as problem:
            log = bytearray(nvjitlink.get_error_log_size(handle))
            nvjitlink.get_error_log(handle, log)
            raise PassError(f"the assembler refused {name}: {_text(log) or problem}") from None
        code = bytearray(nvjitlink.get_linked_cubin_size(handle))
        nvjitlink.get_linked_cubin(handle, code)
        log = bytearray(nvjitlink.get_info_log_size(handle))
        nvjitlink.get_info_log(handle, log)
    finally:
        nvjitlink.destroy(handle)
    return _cubin(bytes(code), _text(log), ptx, name)


def _text(log: bytearray) -> str:
    return log.decode(errors="replace").rstrip("\0\n ")


def _cubin(code: bytes, log: str, ptx: str, name: str) -> Cubin:
    for warning in _SERIOUS:
        if warning in log:
            raise PassError(f"the assembler serialises tensor-core instructions of {name}: {log}")
    used = next((m for m in _USED.finditer(log) if m["name"] == name), None)
    if used is None:
        raise PassError(f"the assembler says nothing about the registers of {name}: {log}")
    declared = sum(int(size) for size in _DEPOT.findall(ptx))
    return Cubin(code, int(used["registers"]), max(0, int(used["stack"]) - declared), log)


def disassemble(code: bytes) -> str:
    """SASS with source lines; raises ProtonError where `nvdisasm` is not to be found."""
    tool = shutil.which("nvdisasm")
    if tool is None and knobs.cuda_home is not None:
        tool = shutil.which("nvdisasm", path=str(Path(knobs.cuda_home) / "bin"))
    if tool is None:
        raise ProtonError(
            "SASS needs nvdisasm of the CUDA toolkit: put it on the path, or set CUDA_HOME"
        )
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(code)
        file.flush()
        run = subprocess.run(
            [tool, "-g", "-c", file.name], capture_output=True, text=True, check=False
        )
    if run.returncode:
        raise ProtonError(f"nvdisasm failed: {run.stderr.strip()}")
    return run.stdout
