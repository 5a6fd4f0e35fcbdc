"""What a launch on the CPU may be given, and what the compiled code gets of it.

A pointer argument is a numpy array, a CPU torch tensor, anything with DLPack on the CPU, or a
`TensorWrapper`. Its address goes to the code; its extent decides whether two arguments overlap.
"""

import ctypes
from typing import Any, NamedTuple

import numpy as np

from proton.base.errors import LaunchError
from proton.language import types as ty
from proton.runtime.backend import HOST, owner_of
from proton.runtime.launch.arguments import (
    ELEMENT_TYPES,
    NUMPY_TYPES,
    OTHER_TYPES,
    ArrayArgument,
    Parameter,
    TupleKey,
    addressed_element,
    check_torch,
    is_addressed,
    refused,
    torch_element,
)
from proton.runtime.launch.reinterpret import TensorWrapper
from proton.runtime.launch.tensor_descriptor import TensorDescriptor

CTYPES: dict[str, object] = {
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
# The key of an array in other memory: no code is filed under it.
ELSEWHERE = object()
_END = (1 << 63) - 1  # of memory


class PointerArgument(NamedTuple):
    """A pointer argument, or a tensor descriptor: its address, the bytes [low, high) it lives in,
    its element type."""

    address: int
    low: int
    high: int
    writeable: bool
    element: ty.dtype
    described: tuple[int, ...] = ()  # what code takes in the place of a descriptor's address


def classify(parameter: Parameter, value: Any) -> tuple[Any, Any]:
    """(key, what the code is given) of an argument: a number, or the Memory of an array."""
    if isinstance(value, np.ndarray) and not parameter.constexpr:
        memory: PointerArgument | None = _array_memory(parameter.name, value)
    else:
        scalar = parameter.scalar(value)
        if scalar is not None:
            key, number = scalar
            if key.__class__ is not str or key[0] != "*":
                return scalar
            # An address, which the kernel of a file of IR takes.
            return key, PointerArgument(number, 0, _END, True, ty.str_to_ty(key.lstrip("*k")))
        if parameter.is_tuple(value):
            pairs = [classify(*pair) for pair in zip(parameter.elements(value), value, strict=True)]
            keys, given = zip(*pairs, strict=True) if pairs else ((), ())
            return TupleKey(type(value), keys), given
        memory = memory_of(parameter.name, value)
    if memory is None:
        return ELSEWHERE, None
    if isinstance(value, TensorDescriptor):
        passed = value.passed(parameter.name, memory.address)
        return value.key(parameter, memory.element), memory._replace(described=passed)
    return parameter.pointer(memory.element), memory


def memory_of(name: str, value: Any) -> PointerArgument | None:
    """A pointer argument's memory; None where another back end owns it. Raises LaunchError for
    what is no array."""
    if isinstance(value, np.ndarray):
        return _array_memory(name, value)
    if isinstance(value, ArrayArgument):
        inner = memory_of(name, value.base)
        if inner is not None and isinstance(value, TensorWrapper):
            inner = inner._replace(element=value.dtype)
        return inner
    if _is_of_torch(value):
        return _torch_memory(name, value)
    owner = owner_of(value)
    if owner is None:
        raise refused(name, value)
    if owner.name != HOST:
        return None
    if is_addressed(value):
        return _addressed_memory(name, value)
    try:
        return _array_memory(name, np.from_dlpack(value))
    except (BufferError, RuntimeError, TypeError, ValueError) as problem:
        raise LaunchError(f"argument {name}: {problem}") from None


def is_array(value: object) -> bool:
    """True if a value is an array that the CPU can read, or says that it is one."""
    if isinstance(value, ArrayArgument):
        return is_array(value.base)
    if _is_of_torch(value):
        device = getattr(value, "device", None)
        return device is None or device.type == "cpu"
    if is_addressed(value):
        device = getattr(value, "device", "cpu")
        return str(getattr(device, "type", device)).startswith("cpu")
    return isinstance(value, np.ndarray) or hasattr(value, "__dlpack__")


def _is_of_torch(value: object) -> bool:
    """True if a value is a tensor, or something else that torch has."""
    return type(value).__module__.partition(".")[0] == "torch"


_ELEMENTS = {np.dtype(name): element for name, element in NUMPY_TYPES.items()}
address_of, no_bytes = ctypes.addressof, (ctypes.c_char * 0).from_buffer


def _array_memory(name: str, array: np.ndarray) -> PointerArgument:
    element = _ELEMENTS.get(array.dtype)
    flags = array.flags
    is_plain = array.base is None and flags.c_contiguous and flags.writeable and array.size
    if is_plain and element is not None:  # a fifth of the time of what follows
        address = address_of(no_bytes(array.data))
        return PointerArgument(address, address, address + array.nbytes, True, element)
    if element is None:
        element = OTHER_TYPES.get(array.dtype.name)
    if element is None:
        raise LaunchError(
            f"argument {name} has dtype {array.dtype}, which kernels cannot point to; there are "
            f"{', '.join(ELEMENT_TYPES)} in native byte order"
        )
    if isinstance(array, np.ma.MaskedArray):
        raise LaunchError(
            f"argument {name} is a masked array, and a kernel sees no mask: pass its .data, and "
            "the mask as an array of its own"
        )
    address, read_only = array.__array_interface__["data"]
    owner = array
    while isinstance(owner.base, np.ndarray):
        owner = owner.base
    if owner.flags.c_contiguous:
        low = address if owner is array else owner.__array_interface__["data"][0]
        high = low + owner.nbytes
    else:
        low, high = map(int, np.lib.array_utils.byte_bounds(owner))
    return PointerArgument(address, low, high, not read_only, element)


def _torch_memory(name: str, tensor: Any) -> PointerArgument | None:
    device = getattr(tensor, "device", None)
    if device is None or device.type != "cpu":
        check_torch(name, tensor)
        return None
    element = torch_element(name, tensor.dtype)
    try:
        is_negated, storage = tensor.is_neg(), tensor.untyped_storage()
        low = storage.data_ptr()
        memory = PointerArgument(tensor.data_ptr(), low, low + storage.nbytes(), True, element)
    except (RuntimeError, NotImplementedError) as problem:  # torch's own, of odd tensors
        check_torch(name, tensor)
        reason = str(problem).partition("\n")[0]
        raise LaunchError(f"argument {name} has no memory to point to: {reason}") from None
    if is_negated:
        check_torch(name, tensor)
    if not memory.address and tensor.numel():
        raise LaunchError(
            f"argument {name} has no memory to point to: it is a {type(tensor).__name__} of shape "
            f"{tuple(tensor.shape)} whose storage is gone, or never was"
        )
    return memory


def _addressed_memory(name: str, value: Any) -> PointerArgument:
    """Of an object that says its address: it may reach anywhere, unless it says its size."""
    address, size = int(value.data_ptr()), getattr(value, "nbytes", None)
    element = addressed_element(name, value)
    low, high = (0, _END) if size is None else (address, address + int(size))
    return PointerArgument(address, low, high, True, element)


def extent_of(name: str, value: Any) -> tuple[int, int]:
    """The bytes [low, high) from the first to the last element of a pointer argument's own
    array, which may be a view of a larger one."""
    if isinstance(value, ArrayArgument):
        return extent_of(name, value.base)
    if isinstance(value, int):  # an address, from which it reaches anywhere
        return 0, _END
    if is_addressed(value) and not _is_of_torch(value):
        memory = _addressed_memory(name, value)
        return memory.low, memory.high
    if _is_of_torch(value):
        address, size = value.data_ptr(), value.element_size()
    else:
        value = value if isinstance(value, np.ndarray) else np.from_dlpack(value)
        address, size = value.__array_interface__["data"][0], value.itemsize
    shape, strides = _layout(value, size)
    if 0 in shape:
        return address, address
    ends = [(length - 1) * stride for length, stride in zip(shape, strides, strict=True)]
    low = address + sum(end for end in ends if end < 0)
    return low, address + sum(end for end in ends if end > 0) + size


def _layout(value: Any, size: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The shape, and the strides in bytes, of a numpy array or a tensor of torch."""
    if isinstance(value, np.ndarray):
        return value.shape, value.strides
    return tuple(value.shape), tuple(stride * size for stride in value.stride())


def layout_of(value: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The shape, and the strides in elements, of an array that the CPU can read."""
    if not isinstance(value, np.ndarray) and not _is_of_torch(value):
        value = np.from_dlpack(value)
    size = value.itemsize if isinstance(value, np.ndarray) else value.element_size()
    shape, strides = _layout(value, size)
    return shape, tuple(stride // size for stride in strides)


def ctype_of(type_: ty.dtype) -> Any:
    """The ctypes type in which code takes an argument."""
    if isinstance(type_, ty.pointer_type):
        return ctypes.c_void_p
    if type_.name not in CTYPES:
        raise LaunchError(f"a scalar argument cannot be {type_}; pass it as fp32")
    return CTYPES[type_.name]
