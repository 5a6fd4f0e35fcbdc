"""What programs and the places they ran on are called, in every output."""

from collections import Counter
from collections.abc import Sequence

from proton.trace.model import Kernel, Launch, RawRun

LAUNCHES = "launches"  # of a GPU
EVENTS = "events"  # of a unit


def variant_numbers(kernels: Sequence[Kernel]) -> list[int]:
    """The number of each kernel among those of its name, from 1: they differ in the types and
    constants that they were compiled for."""
    seen: dict[str, int] = {}
    numbers = []
    for kernel in kernels:
        seen[kernel.name] = seen.get(kernel.name, 0) + 1
        numbers.append(seen[kernel.name])
    return numbers


def kernel_labels(kernels: Sequence[Kernel]) -> list[str]:
    """`add`, or `add #2` where several kernels have that name."""
    count = Counter(kernel.name for kernel in kernels)
    return [
        f"{kernel.name} #{number}" if count[kernel.name] > 1 else kernel.name
        for kernel, number in zip(kernels, variant_numbers(kernels), strict=True)
    ]


def program_name(kernel: Kernel, launch: Launch, program: int) -> str:
    """`add 3`; with coordinates where the grid has more than one dimension."""
    x, y, z = launch.grid
    if y == z == 1:
        place = str(program)
    else:
        place = f"({program % x}, {program // x % y}, {program // (x * y)})"
    return f"{kernel.name} {place}"


def unit_name(kernel: Kernel, unit: int) -> str:
    """`warp 1` of a GPU's program, `warps 4-7` of a unit of several; elsewhere a name only where
    programs have several units."""
    if kernel.on_gpu:
        first, count = unit * kernel.unit_warps, kernel.unit_warps
        return f"warp {first}" if count == 1 else f"warps {first}-{first + count - 1}"
    return f"unit {unit}" if kernel.units > 1 else ""


def thread_name(thread: int) -> str:
    """What ran a program of the host."""
    return f"thread {thread}"


def sm_name(sm: int) -> str:
    """What ran a program of a GPU."""
    return f"SM {sm}" if sm >= 0 else "SM unknown"


def gpu_name(raw: RawRun, device: int) -> str:
    """`GPU 0 (NVIDIA H200)`."""
    model = next((gpu.name for gpu in raw.gpus if gpu.device == device), "")
    return f"GPU {device} ({model})" if model else f"GPU {device}"
