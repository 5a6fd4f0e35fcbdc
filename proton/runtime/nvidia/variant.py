"""One variant: machine code in a context, and the generated function that launches it.

The function writes the arguments into a block of memory that is laid out once, and calls the
driver.
"""

import ctypes
import struct
from collections.abc import Callable
from dataclasses import dataclass, field

from proton.backends.nvidia.target import GPUKernel
from proton.base.errors import LaunchError
from proton.base.targets import WARP_SIZE
from proton.runtime.nvidia import cuda
from proton.trace.instrumentation import Instrumentation

_INVALID_CONTEXT = 201  # CUDA_ERROR_INVALID_CONTEXT
_CONFIG = "IIIIIIIxxxxQQIxxxx"  # CUlaunchConfig: grid, block, shared bytes, stream, no attributes
_CONFIG_BYTES = struct.calcsize("<" + _CONFIG)
_FORMATS = {  # how an argument lies in its 8 bytes
    "i1": "?7x",
    "i8": "b7x",
    "i16": "h6x",
    "i32": "i4x",
    "i64": "q",
    "u8": "B7x",
    "u16": "H6x",
    "u32": "I4x",
    "u64": "Q",
    "fp32": "f4x",
    "fp64": "d",
}


@dataclass
class Variant:
    """Machine code in a context, ready to be launched."""

    kernel: GPUKernel
    launch: Callable[..., None]  # as `variant_launch` makes it
    function: int  # the driver's handle
    instrumented: dict[Instrumentation, "InstrumentedVariant"] = field(default_factory=dict)
    last_instrumented: "InstrumentedVariant | None" = None  # the last of them that was launched

    def find_instrumented(self, key: Instrumentation) -> "InstrumentedVariant | None":
        """The one for a session's options, whose comparison takes its time: once per session."""
        found = self.instrumented.get(key)
        if found is not None:
            found.key, self.last_instrumented = key, found
        return found


@dataclass(eq=False)
class InstrumentedVariant:
    """The instrumented kernel of a variant, and what instrumentation did to it."""

    key: Instrumentation
    variant: Variant
    perturbation: dict[str, int]

    def __post_init__(self) -> None:
        self.launch = self.variant.launch
        self.has_scopes = self.variant.kernel.profile is not None


class _Block:
    """Memory of a launch: the configuration, the arguments (8 bytes each), their addresses."""

    def __init__(self, count: int) -> None:
        size = _CONFIG_BYTES + 8 * count
        self.memory = (ctypes.c_char * (size + 8 * count))()
        self.config = ctypes.addressof(self.memory)
        self.parameters = self.config + size
        addresses = [self.config + _CONFIG_BYTES + 8 * number for number in range(count)]
        struct.pack_into(f"<{count}Q", self.memory, size, *addresses)


def variant_launch(
    kernel: GPUKernel, function: int, device: int, types: list[str | None], added: list[str]
) -> Callable[..., None]:
    """The generated function of a variant: of (grid x, y, z, stream, *values of all parameters), or
    where a kernel that records takes what is `added`, of (grid, stream, values, added values). A
    block of memory belongs to one call at a time; the driver has copied what is in it when it
    returns."""
    values = len(types)
    types = [*types, *added]
    passed = [(number, short) for number, short in enumerate(types) if short is not None]
    pack = struct.Struct("<" + _CONFIG + "".join(_format(short) for _, short in passed))
    free: list[_Block] = []

    def again(block: _Block, status: int) -> None:
        """After a failure: a thread that is new to CUDA has no context yet."""
        if status == _INVALID_CONTEXT:
            cuda.enter_primary_context(device)
            status = cuda.launch_function()(block.config, function, block.parameters, None)
        if status:
            cuda.raise_error(status, f"launch of {kernel.name}")

    namespace = {
        "pop": free.pop,
        "push": free.append,
        "new": lambda: _Block(len(passed)),
        "pack": pack.pack_into,
        "call": cuda.launch_function(),
        "again": again,
        "single": lambda value: ctypes.c_float(value).value,
    }
    threads = WARP_SIZE * int(kernel.metadata["num_warps"])
    names = [f"a{number}" for number in range(len(types))]
    taken, unpacked = ", ".join(["x, y, z, stream", *names]), ""
    if added:
        taken = "grid, stream, passed, added"
        unpacked = f"x, y, z = grid; {_tuple(names[:values])} = passed; "
        unpacked += f"{_tuple(names[values:])} = added"
    packed = "".join(f", a{number}" for number, _ in passed)
    # Where a number is too large for fp32 it is infinite.
    rounded = "".join(f", single(a{n})" if s == "fp32" else f", a{n}" for n, s in passed)
    head = f"block.memory, 0, x, y, z, {threads}, 1, 1, {kernel.shared}, stream, 0, 0"
    source = f"""
def launch({taken}):
    {unpacked}
    try:
        block = pop()
    except IndexError:
        block = new()
    try:
        pack({head}{packed})
    except OverflowError:
        pack({head}{rounded})
    status = call(block.config, {function}, block.parameters, None)
    if status:
        again(block, status)
    push(block)
"""
    exec(source, namespace)
    launch: Callable[..., None] = namespace["launch"]
    return launch


def _tuple(names: list[str]) -> str:
    return f"({''.join(f'{name}, ' for name in names)})"


def _format(short: str) -> str:
    if short.startswith("*"):
        return "Q"
    if short not in _FORMATS:
        raise LaunchError(f"a scalar argument cannot be {short}; pass it as fp32")
    return _FORMATS[short]
