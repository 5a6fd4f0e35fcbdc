"""One variant: machine code in a context, and the generated function that launches it.

The function writes the arguments into a block of memory that is laid out once, and calls the
driver.
"""

import ctypes
import functools
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from proton.backends.nvidia.target import GPUKernel
from proton.base.errors import LaunchError
from proton.base.targets import WARP_SIZE
from proton.layout.tensor_map import TENSOR_MAP_BYTES
from proton.runtime.nvidia import cuda
from proton.runtime.nvidia.global_scratch import scratch_for
from proton.runtime.nvidia.tensor_maps import arguments_of, map_maker
from proton.trace.instrumentation import Instrumentation

_LAUNCH_ATTRIBUTES = {  # of cuda.h, by the option that asks for them; each is 1
    "launch_cooperative_grid": 2,  # CU_LAUNCH_ATTRIBUTE_COOPERATIVE
    "launch_pdl": 6,  # CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
}
_ATTRIBUTE_BYTES = 72  # an id and a value of 64 bytes, each at a multiple of 8
_attributes: list[object] = []  # memory that the driver is told of
_INVALID_CONTEXT = 201  # CUDA_ERROR_INVALID_CONTEXT
_CONFIG = "IIIIIIIxxxxQQIxxxx"  # CUlaunchConfig: grid, block, shared bytes, stream, attributes
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
class GPUVariant:
    """Machine code in a context, ready to be launched."""

    kernel: GPUKernel
    launch: Callable[..., None]  # as `variant_launch` makes it
    function: int  # the driver's handle
    load_again: Callable[[], Callable[..., None]]  # what launches the same code, loaded once more
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
    """The instrumented kernel of a variant, and what runs say of it."""

    key: Instrumentation
    variant: GPUVariant
    facts: dict[str, object]

    def __post_init__(self) -> None:
        self.launch = self.variant.launch
        self.has_scopes = self.variant.kernel.profile is not None


class _Block:
    """Memory of a launch: the configuration, the arguments, their addresses. `sizes` are the bytes
    of the arguments, in the order in which they lie; the kernel takes them in that of `order`."""

    def __init__(self, sizes: list[int], order: list[int]) -> None:
        count = len(sizes)
        places = [_CONFIG_BYTES + sum(sizes[:number]) for number in range(count + 1)]
        self.memory = (ctypes.c_char * (places[-1] + 8 * count))()
        self.config = ctypes.addressof(self.memory)
        self.parameters = self.config + places[-1]
        addresses = [self.config + places[number] for number in order]
        struct.pack_into(f"<{count}Q", self.memory, places[-1], *addresses)


def variant_launch(
    kernel: GPUKernel, function: int, device: int, types: list[str | None], added: list[str]
) -> Callable[..., None]:
    """The generated function of a variant: of (grid x, y, z, stream, *values of all parameters), or
    where a kernel that records takes what is `added`, of (grid, stream, values, added values).
    `types` are of what the values of the parameters become; a kernel takes its tensor maps behind
    these, and the address of its global scratch memory next. A block of memory belongs to one call
    at a time; the driver has copied what is in it when it returns."""
    passed = [(n, short) for n, short in enumerate([*types, *added]) if short is not None]
    plans, scratch_bytes = kernel.metadata["tensor_maps"], kernel.metadata["global_scratch_size"]
    sizes = [8] * len(passed) + [TENSOR_MAP_BYTES] * len(plans) + [8] * bool(scratch_bytes)
    numbers, first_added = list(range(len(sizes))), len(passed) - len(added)
    ours = numbers[len(passed) :]
    order = [*numbers[:first_added], *ours, *numbers[first_added : len(passed)]]
    formats = [*(_format(short) for _, short in passed), *[f"{TENSOR_MAP_BYTES}s"] * len(plans)]
    formats += ["Q"] * bool(scratch_bytes)
    free: list[_Block] = []

    def again(block: _Block, status: int) -> None:
        """After a failure: a thread that is new to CUDA has no context yet."""
        if status == _INVALID_CONTEXT:
            cuda.enter_primary_context(device)
            status = cuda.launch_function()(block.config, function, block.parameters, None)
        if status:
            cuda.raise_error(status, f"launch of {kernel.name}")

    own: dict[str, Any] = {
        "function": function,
        **_configuration(kernel),
        "pop": free.pop,
        "push": free.append,
        "new": lambda: _Block(sizes, order),
        "pack": struct.Struct("<" + _CONFIG + "".join(formats)).pack_into,
        "call": cuda.launch_function(),
        "again": again,
        "scratch": functools.partial(scratch_for, device, scratch_bytes),
        "single": lambda value: ctypes.c_float(value).value,
        **{f"map{n}": map_maker(plan, kernel.name, device) for n, plan in enumerate(plans)},
    }
    return _maker(_source(kernel, len(types), len(added), passed), tuple(own))(**own)


def _configuration(kernel: GPUKernel) -> dict[str, int]:
    """What is the same in all launches of a kernel."""
    kinds = tuple(kind for name, kind in _LAUNCH_ATTRIBUTES.items() if kernel.metadata[name])
    return {
        "threads": WARP_SIZE * int(kernel.metadata["num_warps"]),
        "shared": kernel.shared,
        "attributes": _listed_attributes(kinds) if kinds else 0,
        "count": len(kinds),
    }


def run_generated(source: str, namespace: dict[str, Any]) -> None:
    """Runs code that defines functions. They are of this folder to who asks where they are from,
    as torch's Dynamo does, which leaves what lies there as it is."""
    exec(compile(source, f"{__file__}: generated", "exec"), namespace)


@functools.cache
def _maker(source: str, names: tuple[str, ...]) -> Callable[..., Callable[..., None]]:
    """The function that makes a launch from what a kernel has of its own, by name: Python compiles
    the code once for all kernels that take arguments of the same kinds."""
    namespace: dict[str, Any] = {}
    lines = source.strip().replace("\n", "\n    ")
    run_generated(f"def make({', '.join(names)}):\n    {lines}\n    return launch", namespace)
    maker: Callable[..., Callable[..., None]] = namespace["make"]
    return maker


@functools.cache
def _listed_attributes(kinds: tuple[int, ...]) -> int:
    """The address of an array of CUlaunchAttribute, for good."""
    memory = ctypes.create_string_buffer(_ATTRIBUTE_BYTES * len(kinds))
    for number, kind in enumerate(kinds):
        struct.pack_into("<i4xi", memory, number * _ATTRIBUTE_BYTES, kind, 1)
    _attributes.append(memory)
    return ctypes.addressof(memory)


def _source(kernel: GPUKernel, values: int, added: int, passed: list[tuple[int, str]]) -> str:
    """The code of a launch with so many values, of which the kernel is passed some."""
    names = [f"a{number}" for number in range(values + added)]
    taken, unpacked = ", ".join(["x, y, z, stream", *names]), ""
    if added:
        taken = "grid, stream, passed, added"
        unpacked = f"x, y, z = grid; {_tuple(names[:values])} = passed; "
        unpacked += f"{_tuple(names[values:])} = added"
    packed = "".join(f", a{number}" for number, _ in passed)
    # Where a number is too large for fp32 it is infinite.
    rounded = "".join(f", single(a{n})" if s == "fp32" else f", a{n}" for n, s in passed)
    head = "block.memory, 0, x, y, z, threads, 1, 1, shared, stream, attributes, count"
    maps = ""
    for number, plan in enumerate(kernel.metadata["tensor_maps"]):
        # The kernel's arguments are those that are passed: constants are none.
        of = ", ".join(f"a{passed[argument][0]}" for argument in arguments_of(plan))
        maps += f", map{number}({of})"
    taken_memory = ""
    if kernel.metadata["global_scratch_size"]:
        taken_memory, maps = "memory, held = scratch(x * y * z, stream)", f"{maps}, memory"
    return f"""
def launch({taken}):
    {unpacked}
    {taken_memory}
    try:
        block = pop()
    except IndexError:
        block = new()
    try:
        pack({head}{packed}{maps})
    except OverflowError:
        pack({head}{rounded}{maps})
    status = call(block.config, function, block.parameters, None)
    if status:
        again(block, status)
    push(block)
"""


def _tuple(names: list[str]) -> str:
    return f"({''.join(f'{name}, ' for name in names)})"


def _format(short: str) -> str:
    if short.startswith("*"):
        return "Q"
    if short not in _FORMATS:
        raise LaunchError(f"a scalar argument cannot be {short}; pass it as fp32")
    return _FORMATS[short]
