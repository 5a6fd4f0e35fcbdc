"""PTX to machine code by nvJitLink, in this process; and machine code back to text."""

import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from proton.base.errors import PassError, ProtonError
from proton.base.knobs import knobs
from proton.base.targets import GPUTarget

_REGISTERS = re.compile(r"Used (\d+) registers")
_SPILLS = re.compile(r"(\d+) bytes spill stores, (\d+) bytes spill loads")
_ENTRY = re.compile(r"Compiling entry function '(?P<name>[^']+)'")
# Serialised tensor-core instructions: not what the compiler meant (gpu.md).
_SERIOUS = ("C7517", "C7519")


@dataclass(frozen=True)
class Cubin:
    """Machine code and what the assembler says of it; `spills` in bytes, stored and loaded."""

    code: bytes
    registers: int
    spills: int
    log: str


def assemble(ptx: str, target: GPUTarget, name: str) -> Cubin:
    """Assembles PTX for a target; raises PassError with the assembler's words."""
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
    return _cubin(bytes(code), _text(log), name)


def _text(log: bytearray) -> str:
    return log.decode(errors="replace").rstrip("\0\n ")


def _cubin(code: bytes, log: str, name: str) -> Cubin:
    for warning in _SERIOUS:
        if warning in log:
            raise PassError(f"the assembler serialises tensor-core instructions of {name}: {log}")
    entry = next((m for m in _ENTRY.finditer(log) if m["name"] == name), None)
    about = log[entry.end() :] if entry else log
    registers, spills = _REGISTERS.search(about), _SPILLS.search(about)
    if registers is None or spills is None:
        raise PassError(f"the assembler says nothing about the registers of {name}: {log}")
    return Cubin(code, int(registers[1]), int(spills[1]) + int(spills[2]), log)


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
