"""Tensor maps: 128 bytes that describe a tensor to TMA, made by the driver before a launch.

A kernel's metadata says what each of its maps is made of (proton/analysis/tensor_maps.py). A map
depends on addresses, sizes and strides alone, so those of the last launches are kept.
"""

import functools
import struct
from collections.abc import Callable

from proton.base.errors import LaunchError
from proton.layout.tensor_map import TENSOR_MAP_BYTES, Formula, TensorMapPlan
from proton.runtime.nvidia import cuda

_KEPT = 1024  # maps of a kernel
# By the element of an MLIR type, as the driver calls them; 8-bit floats are bytes to it. It is told
# of a sign where numbers are compared.
_ELEMENTS = {
    "f16": "FLOAT16",
    "bf16": "BFLOAT16",
    "f32": "FLOAT32",
    "tf32": "TFLOAT32",
    "f64": "FLOAT64",
    "i16": "UINT16",
    "i32": "UINT32",
    "i64": "UINT64",
    "si32": "INT32",
    "si64": "INT64",
}
_EMPTY = 16  # bytes in the place of a tensor without elements


def arguments_of(plan: TensorMapPlan) -> list[int]:
    """The numbers of the kernel's arguments that a map is made of, in order."""
    found = {plan["base"]}

    def visit(formula: str | Formula) -> None:
        match formula:
            case ["argument", int(number)]:
                found.add(number)
            case [_, *sides]:
                for side in sides:
                    visit(side)

    for formula in (*plan["sizes"], *plan["strides"], *plan.get("pixels", ())):
        visit(formula)
    return sorted(found)


def map_maker(plan: TensorMapPlan, kernel: str, device: int) -> Callable[..., bytes]:
    """A function of the arguments of `arguments_of` that gives the map; it raises LaunchError where
    the driver says that TMA cannot take the tensor."""
    names = {number: f"a{number}" for number in arguments_of(plan)}
    source = (
        f"lambda {', '.join(names.values())}: encode({names[plan['base']]}, "
        f"{_listed(plan['sizes'])}, {_listed(plan['strides'])}, {_listed(plan.get('pixels', []))})"
    )
    # A map's own: a kernel that stores to a tensor without elements stores there.
    outside = functools.cache(functools.partial(_outside, device, plan["padding"] == "nan"))
    encode = functools.partial(_encode, plan, kernel, outside)
    make: Callable[..., bytes] = eval(source, {"encode": encode})
    return functools.lru_cache(_KEPT)(make)


def _listed(formulas: list[Formula]) -> str:
    return f"[{', '.join(map(_source, formulas))}]"


def _source(formula: Formula) -> str:
    """A formula as Python has it."""
    match formula:
        case int(number):
            return str(number)
        case ["argument", int(number)]:
            return f"a{number}"
        case ["low", int(bits), int() | list() as kept]:
            half = 1 << bits - 1
            return f"(({_source(kept)} + {half}) % {2 * half} - {half})"
        case [operator, int() | list() as left, int() | list() as right]:
            return f"({_source(left)} {operator} {_source(right)})"
    raise ValueError(f"{formula} is no formula of a tensor map")


def _encode(
    plan: TensorMapPlan,
    kernel: str,
    outside: Callable[[], int],
    base: int,
    sizes: list[int],
    strides: list[int],
    pixels: list[int],
) -> bytes:
    if not base or min(sizes) <= 0:  # the driver refuses it
        base, sizes, strides = outside(), [1] * len(sizes), [_EMPTY] * len(sizes)
        corners = 2 * len(pixels) // 3
        pixels = [0] * corners + [1] * (corners // 2)
    size = plan["bytes"]
    # The driver has the fastest dimension first, whose stride it does not ask for. Of one dimension
    # it asks for none, and does not look at what is there.
    steps = [stride * size for stride in strides[-2::-1]] or [_EMPTY]
    try:
        words = cuda.encode_tensor_map(
            _ELEMENTS.get(plan["element"], "UINT8"),
            base,
            sizes[::-1],
            steps,
            plan["box"][::-1],
            plan["swizzle"],
            is_nan=plan["padding"] == "nan",
            pixels=_pixels(pixels),
        )
    except RuntimeError as problem:
        raise LaunchError(
            f"{kernel}: TMA cannot take a tensor of sizes {sizes}, strides {strides} and {size} "
            f"bytes an element at {base:#x} ({problem}): addresses and strides are multiples of 16 "
            "bytes, strides are positive; copy the tensor, or use pointers"
        ) from None
    return struct.pack(f"<{TENSOR_MAP_BYTES // 8}Q", *words)


def _pixels(numbers: list[int]) -> tuple[list[int], ...]:
    """The lower corners, the upper ones and the steps, W first; of tiles nothing."""
    rank = len(numbers) // 3
    return tuple(numbers[n : n + rank][::-1] for n in range(0, len(numbers), rank or 1))


def _outside(device: int, is_nan: bool) -> int:
    """The address of what is outside of a tensor: zeros, or NaNs of any type, for good."""
    with cuda.on_device(device), cuda.capture_aside():
        return cuda.allocate_device(_EMPTY, 0xFF if is_nan else 0)
