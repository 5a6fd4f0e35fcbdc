"""What programs and the places they ran on are called, in every output."""

import itertools
from collections import Counter
from collections.abc import Sequence

import numpy as np

from proton.base.targets import WARP_SIZE, GPUTarget
from proton.trace.model import Kernel, Launch, RawRun

SIGNATURE = "signature"  # in Kernel.options: the types and constants that it was compiled for
EVENTS = "events"  # of a unit
COMPILATIONS = "compilations"  # of a host thread
LEAST_ADDRESS = 1 << 32  # of a thread; less is a number that somebody gave
UNDER_WAY = "under way"  # of a queue of asynchronous work


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


def program_name(kernel: Kernel, grid: tuple[int, int, int], program: int) -> str:
    """`add (3)`, `softmax (17, 0)`: as many coordinates as the grid has dimensions."""
    x, y, z = grid
    place = (program % x, program // x % y, program // (x * y))
    dimensions = 3 if z > 1 else 2 if y > 1 else 1
    return f"{kernel.name} ({', '.join(map(str, place[:dimensions]))})"


def warps_name(first: int, count: int) -> str:
    """`warp 1`, or `warps 4-7` for a unit of several."""
    return f"warp {first}" if count == 1 else f"warps {first}-{first + count - 1}"


def unit_roles(raw: RawRun, launch: np.ndarray, unit: np.ndarray) -> tuple[list[str], np.ndarray]:
    """The roles of all kernels, and which each of these units of launches has; "" for none."""
    roles = [kernel.roles or ("",) for kernel in raw.kernels]
    sizes = np.array([len(names) for names in roles], np.int64)
    kernel = np.array([launch_.kernel for launch_ in raw.launches], np.int64)[launch]
    first = (np.cumsum(sizes) - sizes)[kernel]
    return [name for names in roles for name in names], first + unit * (sizes[kernel] > 1)


def thread_name(thread: int) -> str:
    """What ran a program of the host."""
    return f"thread {thread}"


def host_thread_names(raw: RawRun) -> dict[int, str]:
    """What host threads are called, by their idents: `host thread 0` for the one that did something
    first, and so on. An ident is an address; those of merged runs are small numbers, and stay."""
    moments = [(launch.host_start, launch.thread) for launch in raw.launches if launch.is_called]
    moments += [(slice_.start, slice_.thread) for slice_ in raw.host if slice_.device < 0]
    idents = dict.fromkeys(ident for _, ident in sorted(moments))
    free = (number for number in itertools.count() if number not in idents)
    numbers = {ident: ident if ident < LEAST_ADDRESS else next(free) for ident in idents}
    return {ident: f"host {thread_name(number)}" for ident, number in numbers.items()}


def stream_name(stream: int) -> str:
    """What a GPU worked on, as CUPTI numbers it."""
    return f"stream {stream}"


def sm_name(sm: int) -> str:
    """What ran a program of a GPU."""
    return f"SM {sm}" if sm >= 0 else "SM unknown"


def gpu_name(raw: RawRun, device: int) -> str:
    """`GPU 0 (NVIDIA H200)`."""
    model = next((gpu.name for gpu in raw.gpus if gpu.device == device), "")
    return f"GPU {device} ({model})" if model else f"GPU {device}"


def slot_name(slot: int) -> str:
    """One of the places that programs have on an SM at once."""
    return f"slot {slot}"


def launch_facts(kernel: Kernel, launch: Launch) -> dict[str, int | float | str]:
    """What a launch ran with: its grid, what its kernel was compiled for, and what that takes."""
    facts: dict[str, int | float | str] = {"grid": str(launch.grid), "target": kernel.target}
    signature, blocks = kernel.options.get(SIGNATURE), kernel.options.get("blocks_per_sm")
    if signature:
        facts[SIGNATURE] = str(signature)
    for name in ("registers", "spills", "shared", "blocks_per_sm"):
        value = kernel.options.get(name)
        if isinstance(value, int):
            facts[name] = value
    if not launch.is_called and launch.path:  # no call lies in it on a track
        facts["scope"] = launch.path
    if kernel.on_gpu and isinstance(blocks, int):
        threads = kernel.units * kernel.unit_warps * WARP_SIZE * blocks
        facts["occupancy"] = threads / GPUTarget.parse(kernel.target).facts.sm_threads
    return facts
