"""Where NVIDIA's programs and files lie: the pinned wheels', the toolkit's, or the path's."""

import base64
import functools
import importlib.util
import re
import shutil
import subprocess
import tempfile
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

from proton.base.errors import ProtonError
from proton.base.knobs import knobs
from proton.base.targets import GPUTarget

PTXAS_WHEEL = "nvidia-cuda-nvcc"
NVDISASM_WHEEL = "nvidia-cuda-nvdisasm"
SOUND_PTXAS = (13, 4)  # where chips have a maximum of three integers (docs/decisions.md, 44)


def find(knob: str, relative: str, package: str) -> Path:
    """A file of NVIDIA's: the one that a knob names, the wheel's, the toolkit's, the path's.

    `relative` is its place in a toolkit. Raises ProtonError where it is nowhere.
    """
    override = getattr(knobs, knob)
    if override is not None:
        if not Path(override).is_file():
            raise ProtonError(f"{knob} names {override}, which is no file")
        return Path(override)
    if (found_in_wheel := in_wheels(relative)) is not None:
        return found_in_wheel
    candidates = []
    if knobs.cuda_home is not None:
        candidates.append(Path(knobs.cuda_home) / relative)
    if found := shutil.which(Path(relative).name):
        candidates.append(Path(found))
        candidates.append(Path(found).resolve().parents[1] / relative)
    for toolkit in ("ptxas", "nvcc"):  # a toolkit on the path has the file, too
        if found := shutil.which(toolkit):
            candidates.append(Path(found).resolve().parents[1] / relative)
    for candidate in candidates:
        if candidate.exists():
            return candidate
    raise ProtonError(
        f"{Path(relative).name} is not to be found: install {package} (pip install "
        "'proton-tile[cuda]' does), set CUDA_HOME, or put the CUDA toolkit on the path"
    )


@functools.cache
def _wheels() -> list[Path]:
    """The folders that NVIDIA's wheels for a CUDA version share."""
    spec = importlib.util.find_spec("nvidia")
    if spec is None or spec.submodule_search_locations is None:
        return []
    return [Path(root, "cu13") for root in spec.submodule_search_locations]


@functools.cache
def in_wheels(relative: str) -> Path | None:
    files = (Path(folder, relative) for folder in _wheels())
    return next((file for file in files if file.exists()), None)


def _is_of_wheels(path: Path) -> bool:
    return any(root in path.parents for root in _wheels())


_version = functools.cache(metadata.version)


def ptxas(target: GPUTarget) -> Path:
    """The assembler; raises ProtonError where it assembles wrong code for the target."""
    path = find("ptxas", "bin/ptxas", PTXAS_WHEEL)
    has_maximum = target.facts.has_maximum_of_three
    if has_maximum and (found := _ptxas_version(path)) < SOUND_PTXAS:
        raise ProtonError(
            f"{path} is of version {found[0]}.{found[1]}, which assembles wrong code for {target}: "
            "it drops the sign of an integer in max(max(a, -b), c); install "
            f'"{PTXAS_WHEEL}>={SOUND_PTXAS[0]}.{SOUND_PTXAS[1]}", and leave PROTON_PTXAS unset'
        )
    return path


class Tool(NamedTuple):
    """A program of NVIDIA's, as host code of Triton's asks for it."""

    path: str
    version: str  # "13.4"


def get_ptxas(arch: int) -> Tool:
    """The assembler for a compute capability (90), as Triton's host code asks for it."""
    path = ptxas(GPUTarget("cuda", arch))
    return Tool(str(path), ".".join(map(str, _ptxas_version(path))))


def tool(name: str) -> Tool:
    """`ptxas` or `nvdisasm`: the one that its knob names, or that is found. Raises ProtonError."""
    if name == "nvdisasm":
        path, wheel = nvdisasm(), NVDISASM_WHEEL
    else:
        path, wheel = find("ptxas", "bin/ptxas", PTXAS_WHEEL), PTXAS_WHEEL
    return Tool(str(path), ".".join(map(str, _version_of(path, wheel))))


def _ptxas_version(path: Path) -> tuple[int, int]:
    return _version_of(path, PTXAS_WHEEL)


@functools.cache
def _version_of(path: Path, wheel: str) -> tuple[int, int]:
    """The release of a program, which is its wheel's if it is of one."""
    if _is_of_wheels(path):
        text = _version(wheel)
    else:
        run = subprocess.run([path, "--version"], capture_output=True, text=True, check=False)
        text = run.stdout.rpartition("release ")[2]
    numbers = re.match(r"(\d+)\.(\d+)", text)
    if numbers is None:
        raise ProtonError(f"{path} does not say its version, as ptxas does")
    return int(numbers[1]), int(numbers[2])


def include_folders() -> list[str]:
    """Where `cuda.h` lies: in a wheel, or in the toolkit of CUDA_HOME."""
    found = [in_wheels("include/cuda.h")]
    if knobs.cuda_home is not None:
        found.append(Path(knobs.cuda_home, "include", "cuda.h"))
    return [str(file.parent) for file in found if file is not None and file.exists()]


def library_folders() -> list[str]:
    """Where the driver's library lies, `libcuda.so.1`, as the linker's cache says."""
    command = shutil.which("ldconfig") or "/sbin/ldconfig"
    run = subprocess.run([command, "-p"], capture_output=True, text=True, check=False)
    lines = [line.split() for line in run.stdout.splitlines() if "libcuda.so.1" in line]
    return list(dict.fromkeys(str(Path(words[-1]).parent) for words in lines))


def nvdisasm() -> Path:
    """The disassembler."""
    return find("nvdisasm", "bin/nvdisasm", NVDISASM_WHEEL)


def disassemble(code: bytes) -> str:
    """SASS with source lines; raises ProtonError where `nvdisasm` is not to be found, or takes the
    code for none."""
    return _disassembled(nvdisasm(), code)


@functools.lru_cache(8)  # samples, their lines and the page ask for the same, for 0.3 s each
def _disassembled(program: Path, code: bytes) -> str:
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(code)
        file.flush()
        run = subprocess.run(
            [str(program), "-g", "-c", file.name],
            capture_output=True,
            encoding="utf-8",
            errors="replace",  # the name of a file may be any bytes
            check=False,
        )
    if run.returncode:
        raise ProtonError(f"nvdisasm failed: {run.stderr.strip()}")
    return run.stdout


def disassemble_text(code: str) -> str:
    """The same of code in base 64, as runs keep it."""
    try:
        return disassemble(base64.b64decode(code))
    except ValueError as error:
        raise ProtonError(f"this code is not in base 64: {error}") from None


def libdevice() -> Path:
    """The bitcode of NVIDIA's math functions."""
    return find("libdevice", "nvvm/libdevice/libdevice.10.bc", "nvidia-nvvm")


def identity(path: Path, package: str) -> str:
    """What tells one version of a file from another, for the cache's key."""
    if _is_of_wheels(path):
        return f"{package} {_version(package)}"
    status = path.stat()
    return f"{path} {status.st_size} {status.st_mtime_ns}"
