"""What a launch may be given, and what the compiled code gets of it.

A pointer argument is a numpy array, a CPU torch tensor, anything with DLPack on the CPU, or a
`TensorWrapper`. Its address goes to the code; its extent decides whether two arguments overlap.
Arrays on a GPU are nvidia/arguments.py's.
"""

import array
import ctypes
import decimal
import numbers
from typing import Any, NamedTuple

import numpy as np

from proton.base.errors import LaunchError
from proton.base.words import shown
from proton.language import types as ty
from proton.language.surroundings import describe, is_mutable

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
    "float32": ty.float32,
    "float64": ty.float64,
}
# Types that numpy lacks, by the names that torch has for them, and a package (ml_dtypes) that
# teaches them to numpy.
_OTHER_TYPES = {
    "bfloat16": ty.bfloat16,
    "float8_e5m2": ty.float8e5,
    "float8_e4m3fn": ty.float8e4nv,
}
ELEMENT_TYPES = _NUMPY_TYPES | _OTHER_TYPES  # by name: what arrays of any library may hold
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


class GPUArgument(LaunchError):
    """An argument is on a GPU: the launch belongs there."""


class Memory(NamedTuple):
    """A pointer argument: its address, the bytes [low, high) it lives in, its element type."""

    address: int
    low: int
    high: int
    writeable: bool
    element: ty.dtype


class TensorWrapper:
    """An array whose elements are to be read as another type of the same size.

    numpy has no bfloat16: `proton.reinterpret(bits, tl.bfloat16)` passes its bits (uint16).
    """

    def __init__(self, base: Any, dtype: Any) -> None:
        self.base, self.dtype = base, dtype
        if not isinstance(dtype, ty.dtype) or dtype.is_block() or dtype == ty.void:
            raise LaunchError(
                f"reinterpret takes a dtype of tl, such as tl.float32, got {shown(dtype)}"
            )
        size = _element_bytes(base)
        if size != dtype.itemsize:
            raise LaunchError(
                f"reinterpret keeps the size of an element: the array's have {size} bytes, "
                f"{dtype} has {dtype.itemsize}"
            )


def _element_bytes(base: Any) -> int:
    """The size of an array's elements, wherever it lies."""
    if hasattr(base, "__cuda_array_interface__"):
        return int(np.dtype(base.__cuda_array_interface__["typestr"]).itemsize)
    return memory_of("base", base).element.itemsize


def reinterpret(tensor: Any, dtype: ty.dtype) -> Any:
    """`tensor` passed to kernels as a pointer to `dtype`, which has elements of the same size."""
    base = tensor.base if isinstance(tensor, TensorWrapper) else tensor
    return TensorWrapper(base, dtype)


_ELEMENTS = {np.dtype(name): element for name, element in _NUMPY_TYPES.items()}


def memory_of(name: str, value: Any) -> Memory:
    """A pointer argument's memory; raises LaunchError where it has none that the CPU can use."""
    if isinstance(value, np.ndarray):
        return _array_memory(name, value)
    if isinstance(value, TensorWrapper):
        inner = memory_of(name, value.base)
        return inner._replace(element=value.dtype)
    if type(value).__module__.partition(".")[0] == "torch":
        return _torch_memory(name, value)
    if hasattr(value, "__cuda_array_interface__"):
        raise GPUArgument(f"argument {name} is in GPU memory")
    if hasattr(value, "__dlpack__"):
        try:
            return _array_memory(name, np.from_dlpack(value))
        except (BufferError, RuntimeError, TypeError, ValueError) as problem:
            raise LaunchError(f"argument {name}: {problem}") from None
    raise LaunchError(
        f"argument {name} must be an array, a number, a bool or None, got {type(value).__name__}"
        f"{_instead(value)}"
    )


def _instead(value: Any) -> str:
    """What to pass in the place of a value that a kernel cannot take."""
    if isinstance(value, str):
        return ": text is for constexprs (annotate the parameter with tl.constexpr)"
    if isinstance(value, list | range | bytes | bytearray | memoryview | array.array):
        return ": pass an array of it, as of np.asarray"
    if isinstance(value, complex | np.complexfloating):
        return ": kernels have no complex numbers, pass two real ones"
    if isinstance(value, numbers.Number | decimal.Decimal) and not isinstance(value, int | float):
        return ": pass float(...) or int(...) of it"
    if isinstance(value, ty.dtype | type | np.dtype):
        return ": a dtype of tl stands for an array in warmup only"
    if callable(value):
        return ": functions are for constexprs (annotate the parameter with tl.constexpr)"
    return ""


_address_of, _no_bytes = ctypes.addressof, (ctypes.c_char * 0).from_buffer


def _array_memory(name: str, array: np.ndarray) -> Memory:
    element = _ELEMENTS.get(array.dtype)
    flags = array.flags
    is_plain = array.base is None and flags.c_contiguous and flags.writeable and array.size
    if is_plain and element is not None:  # a fifth of the time of what follows
        address = _address_of(_no_bytes(array.data))
        return Memory(address, address, address + array.nbytes, True, element)
    if element is None:
        element = _OTHER_TYPES.get(array.dtype.name)
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
    return Memory(address, low, high, not read_only, element)


def _torch_memory(name: str, tensor: Any) -> Memory:
    device = getattr(tensor, "device", None)
    if device is None or device.type != "cpu":
        check_torch(name, tensor)
        if device is not None and device.type == "cuda":
            raise GPUArgument(f"argument {name} is on {device}")
        raise LaunchError(f"argument {name} is on {device}, which is not supported")
    dtype = str(tensor.dtype).removeprefix("torch.")
    element = ELEMENT_TYPES.get(dtype)
    if element is None:
        raise LaunchError(f"argument {name} has dtype {tensor.dtype}, which is not supported")
    try:
        is_negated, storage = tensor.is_neg(), tensor.untyped_storage()
        low = storage.data_ptr()
        memory = Memory(tensor.data_ptr(), low, low + storage.nbytes(), True, element)
    except (RuntimeError, NotImplementedError) as problem:  # torch's own, of odd tensors
        check_torch(name, tensor)
        reason = str(problem).partition("\n")[0]
        raise LaunchError(f"argument {name} has no memory to point to: {reason}") from None
    if is_negated:
        check_torch(name, tensor)
    return memory


def check_torch(name: str, tensor: Any) -> None:
    """Raises LaunchError for what torch has besides tensors, and for tensors whose elements do not
    lie in memory as they are."""
    if not hasattr(tensor, "data_ptr"):
        kind = f"{type(tensor).__module__}.{type(tensor).__name__}"
        raise LaunchError(
            f"argument {name} must be an array, a number, a bool or None, got {kind}"
        )
    layout = str(tensor.layout).removeprefix("torch.")
    if layout != "strided":
        raise LaunchError(
            f"argument {name} is a tensor of layout {layout}: pass its .to_dense(), or its values "
            "and indices as arguments of their own"
        )
    if tensor.is_neg():
        raise LaunchError(
            f"argument {name} is a view whose elements torch negates when it reads them: pass its "
            ".resolve_neg()"
        )


def extent_of(name: str, value: Any) -> tuple[int, int]:
    """The bytes [low, high) from the first to the last element of a pointer argument's own
    array, which may be a view of a larger one."""
    if isinstance(value, TensorWrapper):
        return extent_of(name, value.base)
    if type(value).__module__.partition(".")[0] == "torch":
        shape, strides = tuple(value.shape), tuple(value.stride())
        address, size = value.data_ptr(), value.element_size()
        strides = tuple(stride * size for stride in strides)
    else:
        array = value if isinstance(value, np.ndarray) else np.from_dlpack(value)
        shape, strides, size = array.shape, array.strides, array.itemsize
        address = array.__array_interface__["data"][0]
    if 0 in shape:
        return address, address
    ends = [(length - 1) * stride for length, stride in zip(shape, strides, strict=True)]
    low = address + sum(end for end in ends if end < 0)
    return low, address + sum(end for end in ends if end > 0) + size


def integer_type(name: str, value: int) -> str:
    """i32 where it fits, else i64, else u64."""
    if -(1 << 31) <= value < 1 << 31:
        return "i32"
    if -(1 << 63) <= value < 1 << 63:
        return "i64"
    if 0 <= value < 1 << 64:
        return "u64"
    raise LaunchError(f"argument {name} = {shown(value)} does not fit in 64 bits")


class Constant:
    """The key of an argument that the code is specialised on: equal where type and value are,
    inside of tuples, too (1, 1.0 and True compare equal in Python, and 0.0 and -0.0). An object
    that may change is what its attributes are now."""

    __slots__ = ("hash", "key", "value")

    def __init__(self, value: Any) -> None:
        self.value, self.key = value, _typed(value)
        self.hash = hash(self.key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Constant) and self.key == other.key

    def __hash__(self) -> int:
        return self.hash


def _typed(value: Any) -> tuple[Any, ...]:
    if type(value) in (int, str, bool):  # most are
        return type(value), value
    if isinstance(value, tuple):
        return tuple, tuple(map(_typed, value))
    if isinstance(value, float):
        return type(value), repr(value)
    if is_mutable(value):
        hash(value)  # raises TypeError for lists and the like
        return type(value), describe(value)
    return type(value), value


_ONE, _NONE = Constant(1), Constant(None)


class Parameter:
    """One parameter of a kernel, and how its values are classified.

    `annotation` is a fixed type, if the source gives one; `specialize` makes a constant of an
    integer 1.
    """

    def __init__(
        self,
        name: str,
        *,
        constexpr: bool,
        annotation: ty.dtype | None,
        const_pointer: bool,
        specialize: bool,
    ) -> None:
        self.name, self.constexpr, self.annotation = name, constexpr, annotation
        self.prefix = "*k" if const_pointer else "*"
        self.specialize = specialize and annotation is None

    def classify(self, value: Any) -> tuple[Any, Any]:
        """(key, what the code is given): the key is a type's short name, or a `Constant`."""
        if self.constexpr or value is None or isinstance(value, ty.constexpr):
            return self._constant(value), None
        if isinstance(value, np.ndarray) and self.annotation is None:
            memory = _array_memory(self.name, value)
            return self.prefix + memory.element.short, memory
        if isinstance(value, bool | np.bool_):
            return self._number("i1", bool(value))
        if isinstance(value, int | np.integer):
            number = int(value)
            if number == 1 and self.specialize:
                return _ONE, None
            return self._number(None, number)
        if isinstance(value, float | np.floating):
            return self._number("fp32", float(value))
        if isinstance(value, tuple):
            raise LaunchError(
                f"argument {self.name} is a tuple, which is supported for constexprs only"
            )
        return self._pointer(memory_of(self.name, value))

    def _number(self, type_: str | None, number: Any) -> tuple[str, Any]:
        annotation = self.annotation
        if annotation is None:
            return type_ or integer_type(self.name, number), number
        if annotation.is_ptr():
            raise LaunchError(f"argument {self.name} must be {annotation}, got {number!r}")
        if annotation.is_int():
            low, high = annotation.get_int_min_value(), annotation.get_int_max_value()
            if not isinstance(number, int) or not low <= number <= high:
                raise LaunchError(
                    f"argument {self.name} = {shown(number)} does not fit in {annotation}"
                )
        return annotation.short, number

    def _pointer(self, memory: Memory) -> tuple[str, Memory]:
        annotation = self.annotation
        if annotation is None:
            return self.prefix + memory.element.short, memory
        if not isinstance(annotation, ty.pointer_type) or annotation.element_ty != memory.element:
            raise LaunchError(
                f"argument {self.name} must be {annotation}, got an array of {memory.element}"
            )
        return annotation.short, memory

    def _constant(self, value: Any) -> Constant:
        value = ty.unwrap(value)
        if value is None:
            return _NONE
        if isinstance(value, np.generic):
            value = value.item()
        try:
            return Constant(value)
        except TypeError:
            raise LaunchError(
                f"constexpr {self.name} must be hashable, as a tuple is, got {type(value).__name__}"
            ) from None


def ctype_of(type_: ty.dtype) -> Any:
    """The ctypes type in which code takes an argument."""
    if isinstance(type_, ty.pointer_type):
        return ctypes.c_void_p
    if type_.name not in CTYPES:
        raise LaunchError(f"a scalar argument cannot be {type_}; pass it as fp32")
    return CTYPES[type_.name]
