"""What programs and the places they ran on are called, in every output."""

from proton.trace.model import Kernel, Launch, RawRun

LAUNCHES = "launches"  # of a GPU
EVENTS = "events"  # of a unit


def on_gpu(kernel: Kernel) -> bool:
    """Whether a GPU runs the kernel's programs."""
    return kernel.target.startswith("cuda")


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
    if on_gpu(kernel):
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
