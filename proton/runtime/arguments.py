"""What a launch may be given, and what the compiled code gets of it.

A pointer argument is a numpy array, a CPU torch tensor, anything with DLPack on the CPU, or a
`TensorWrapper`. Its address goes to the code; its extent decides whether two arguments overlap.
"""

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from proton.base.errors import LaunchError
from proton.language import types as ty

_NUMPY_TYPES = {
    "bool": ty.int1,
    "int8": ty.int8,
    "int16": ty.int16,
    "int32": ty.int32,
    "int64": ty.int64,
    "uint8": ty.uint8,
    "uint16": ty.uint16,
    "uint32": ty.uint32,
    "uint64": ty.uint64,
    "float16": ty.float16,
    "bfloat16": ty.bfloat16,
    "float32": ty.float32,
    "float64": ty.float64,
}
CTYPES: dict[str, Any] = {
    "int1": ctypes.c_bool,
    "int8": ctypes.c_int8,
    "int16": ctypes.c_int16,
    "int32": ctypes.c_int32,
    "int64": ctypes.c_int64,
    "uint8": ctypes.c_uint8,
    "uint16": ctypes.c_uint16,
    "uint32": ctypes.c_uint32,
    "uint64": ctypes.c_uint64,
    "float32": ctypes.c_float,
    "float64": ctypes.c_double,
}


@dataclass(frozen=True)
class Memory:
    """A pointer argument: its element type, address, and the bytes [low, high) it lives in."""

    element: ty.dtype
    address: int
    low: int
    high: int
    writeable: bool


class TensorWrapper:
    """An array whose elements are to be read as another type of the same size.

    numpy has no bfloat16: `proton.reinterpret(bits, tl.bfloat16)` passes its bits (uint16).
    """

    def __init__(self, base: Any, dtype: ty.dtype) -> None:
        self.base, self.dtype = base, dtype
        element = memory_of("base", base).element
        if element.itemsize != dtype.itemsize:
            raise LaunchError(
                f"reinterpret keeps the size of an element: {element} has {element.itemsize} "
                f"bytes, {dtype} has {dtype.itemsize}"
            )


def reinterpret(tensor: Any, dtype: ty.dtype) -> Any:
    """`tensor` passed to kernels as a pointer to `dtype`, which has elements of the same size."""
    base = tensor.base if isinstance(tensor, TensorWrapper) else tensor
    return TensorWrapper(base, dtype)


_POINTERS = {name: ty.pointer_type(element) for name, element in _NUMPY_TYPES.items()}


def memory_of(name: str, value: Any) -> Memory:
    """A pointer argument's memory; raises LaunchError where it has none that the CPU can use."""
    if isinstance(value, np.ndarray):
        return _array_memory(name, value)
    if isinstance(value, TensorWrapper):
        inner = memory_of(name, value.base)
        return Memory(value.dtype, inner.address, inner.low, inner.high, inner.writeable)
    if type(value).__module__.partition(".")[0] == "torch":
        return _torch_memory(name, value)
    if hasattr(value, "__cuda_array_interface__"):
        raise LaunchError(
            f"argument {name} is in GPU memory, and GPUs are not supported yet; pass a numpy array"
        )
    if hasattr(value, "__dlpack__"):
        try:
            return _array_memory(name, np.from_dlpack(value))
        except (BufferError, RuntimeError, TypeError, ValueError) as problem:
            raise LaunchError(f"argument {name}: {problem}") from None
    raise LaunchError(
        f"argument {name} must be an array, a number, a bool or None, got {type(value).__name__}"
    )


def _array_memory(name: str, array: np.ndarray) -> Memory:
    element = _NUMPY_TYPES.get(array.dtype.name)
    if element is None or not array.dtype.isnative:
        raise LaunchError(
            f"argument {name} has dtype {array.dtype}, which kernels cannot point to; there are "
            f"{', '.join(_NUMPY_TYPES)} in native byte order"
        )
    address = array.__array_interface__["data"][0]
    owner = array
    while isinstance(owner.base, np.ndarray):
        owner = owner.base
    low, high = np.lib.array_utils.byte_bounds(owner) if owner.size else (address, address)
    return Memory(element, address, int(low), int(high), bool(array.flags.writeable))


def _torch_memory(name: str, tensor: Any) -> Memory:
    device = getattr(tensor, "device", None)
    if device is None or device.type != "cpu":
        raise LaunchError(
            f"argument {name} is on {device}, and GPUs are not supported yet; move it to the CPU"
        )
    element = _NUMPY_TYPES.get(str(tensor.dtype).removeprefix("torch."))
    if element is None:
        raise LaunchError(f"argument {name} has dtype {tensor.dtype}, which is not supported")
    storage = tensor.untyped_storage()
    low = storage.data_ptr()
    return Memory(element, tensor.data_ptr(), low, low + storage.nbytes(), True)


def integer_type(name: str, value: int) -> ty.dtype:
    """i32 where it fits, else i64, else u64."""
    if -(1 << 31) <= value < 1 << 31:
        return ty.int32
    if -(1 << 63) <= value < 1 << 63:
        return ty.int64
    if 0 <= value < 1 << 64:
        return ty.uint64
    raise LaunchError(f"argument {name} = {value} does not fit in 64 bits")


@dataclass(frozen=True)
class Parameter:
    """One parameter of a kernel, and how its values are classified.

    `annotation` is a fixed type, if the source gives one; `specialize` makes a constant of an
    integer 1.
    """

    name: str
    constexpr: bool
    annotation: ty.dtype | None
    const_pointer: bool
    specialize: bool

    def classify(self, value: Any) -> tuple[Any, Any]:
        """(key, what the code is given): key is a type, or ("constant", value)."""
        if self.constexpr:
            return ("constant", _constant(value)), None
        if isinstance(value, bool | np.bool_):
            return self.annotation or ty.int1, bool(value)
        if isinstance(value, int | np.integer):
            number = int(value)
            if number == 1 and self.specialize and self.annotation is None:
                return ("constant", 1), None
            return self.annotation or integer_type(self.name, number), number
        if isinstance(value, float | np.floating):
            return self.annotation or ty.float32, float(value)
        if value is None:
            return ("constant", None), None
        if isinstance(value, ty.constexpr):
            return ("constant", value.value), None
        if isinstance(value, tuple):
            raise LaunchError(
                f"argument {self.name} is a tuple, which is supported for constexprs only"
            )
        memory = memory_of(self.name, value)
        if self.annotation is not None:
            if not isinstance(self.annotation, ty.pointer_type):
                raise LaunchError(f"argument {self.name} must be {self.annotation}, got an array")
            if self.annotation.element_ty != memory.element:
                raise LaunchError(
                    f"argument {self.name} must be {self.annotation}, got an array of "
                    f"{memory.element}"
                )
            return self.annotation, memory
        if self.const_pointer:
            return ty.pointer_type(memory.element, const=True), memory
        return _POINTERS.get(memory.element.name) or ty.pointer_type(memory.element), memory


def _constant(value: Any) -> Any:
    value = ty.unwrap(value)
    if isinstance(value, np.generic):
        value = value.item()
    try:
        hash(value)
    except TypeError:
        raise LaunchError(f"a constexpr must be hashable, got {type(value).__name__}") from None
    return value


def check_range(name: str, type_: ty.dtype, value: Any) -> None:
    """Numbers must fit the type that an annotation gives them."""
    if type_.is_int() and not type_.get_int_min_value() <= value <= type_.get_int_max_value():
        raise LaunchError(f"argument {name} = {value} does not fit in {type_}")


def converter(type_: ty.dtype) -> tuple[Any, Callable[[Any], Any]]:
    """(ctypes type, function from a classified value to what ctypes takes)."""
    if isinstance(type_, ty.pointer_type):
        return ctypes.c_void_p, lambda memory: memory.address
    if type_.name not in CTYPES:
        raise LaunchError(f"a scalar argument cannot be {type_}; pass it as fp32")
    return CTYPES[type_.name], lambda value: value
