"""What a launch on a GPU may be given: torch tensors, and arrays with `__cuda_array_interface__`.

Each kind of argument is a class, and says its three facts once: which values are of it
(`accepts`), what the kernel is compiled for (`describe`), and how generated code reads such a
value and makes its part of the key (`reading`). The first kind that accepts a value is its kind.
"""

import functools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from proton.base.errors import LaunchError
from proton.language import types as ty
from proton.language.signature import TupleForm
from proton.runtime.backend import owner_of
from proton.runtime.launch.arguments import (
    ELEMENT_TYPES,
    Argument,
    ArrayArgument,
    Constant,
    Parameter,
    TupleKey,
    addressed_element,
    check_torch,
    is_addressed,
    is_torch,
    refused,
    torch_element,
)
from proton.runtime.launch.reinterpret import TensorWrapper
from proton.runtime.launch.tensor_descriptor import TensorDescriptor, descriptor_key
from proton.runtime.nvidia import cuda

_DLPACK_CUDA = 2  # kDLCUDA of dlpack.h


@dataclass(frozen=True)
class Reading:
    """How generated code reads an argument. Its own names begin with a "$"; `$p3` is the fourth
    parameter, and others may end in such a number."""

    passed: str  # what the kernel is given
    key: tuple[str, ...] = ()  # parts of the key that its machine code is filed under
    statements: tuple[str, ...] = ()  # they raise TypeError for a value of another kind
    unexpected: str = ""  # where this holds the launch takes the slow path


class ArgumentKind(ABC):
    """One kind of argument."""

    @abstractmethod
    def accepts(self, parameter: Parameter, value: object) -> bool:
        """True if a value is of this kind; the kinds before this one did not accept it."""

    @abstractmethod
    def describe(self, parameter: Parameter, value: object) -> "Given":
        """The type the kernel is compiled for; raises LaunchError where a GPU cannot take it."""

    @abstractmethod
    def reading(self, name: str, number: int | str) -> Reading:
        """How generated code reads the argument of a name, which is the one of that number."""

    def names(self, parameter: Parameter, number: int | str) -> dict[str, object]:
        """What generated code knows of the argument."""
        return {f"p{number}": parameter}


class Given(NamedTuple):
    """One argument: its kind, what the kernel is compiled for, the device of an array, and whether
    it may be a factor of a stride of what TMA copies: an integer that is 0 or negative may not."""

    kind: ArgumentKind
    argument: Argument
    device: int | None = None
    may_be_stride: bool = True


def given(parameter: Parameter, value: object) -> Given:
    """Describes an argument; raises LaunchError where a kernel on a GPU cannot take it."""
    kind = next(kind for kind in KINDS if kind.accepts(parameter, value))
    return kind.describe(parameter, value)


def stand_in(parameter: Parameter, value: object) -> Given:
    """Describes an argument, where nothing is launched: a dtype stands for an array of it, which
    is aligned."""
    if parameter.is_tuple(value):
        return _Tuple.of(parameter, value, stand_in)
    key = parameter.stand_in(value)
    if key is None:
        return given(parameter, value)
    is_divisible = not isinstance(value, TensorDescriptor) or _is_row_divisible(value)
    return Given(OTHER, Argument.of(key, is_divisible))


def _is_row_divisible(descriptor: TensorDescriptor) -> bool:
    return descriptor.shape[-1] % 16 == 0


@dataclass(frozen=True)
class _Tuple(ArgumentKind):
    """A tuple, by its class and the kinds of its elements; without these, any tuple."""

    form: type = tuple
    kinds: tuple[ArgumentKind, ...] = ()

    def accepts(self, parameter: Parameter, value: object) -> bool:
        return parameter.is_tuple(value)

    def describe(self, parameter: Parameter, value: object) -> Given:
        return self.of(parameter, value, given)

    @staticmethod
    def of(parameter: Parameter, value: object, describe: Callable[..., Given]) -> Given:
        """The kind of a tuple whose elements are described by `describe`."""
        assert isinstance(value, tuple)
        found = list(map(describe, parameter.elements(value), value))
        group = TupleKey(type(value), tuple(element.argument for element in found))
        devices = {element.device for element in found} - {None}
        if len(devices) > 1:  # one of them is wrong
            devices.discard(cuda.current_device())
        kind = _Tuple(type(value), tuple(element.kind for element in found))
        may_be_stride = all(element.may_be_stride for element in found)
        return Given(kind, Argument(None, group=group), next(iter(devices), None), may_be_stride)

    def reading(self, name: str, number: int | str) -> Reading:
        elements = [f"$e{number}_{place}" for place in range(len(self.kinds))]
        reads = [
            kind.reading(element, f"{number}_{place}")
            for place, (kind, element) in enumerate(zip(self.kinds, elements, strict=True))
        ]
        test = f"if {name}.__class__ is not $c{number} or len({name}) != {len(self.kinds)}"
        return Reading(
            ", ".join(read.passed for read in reads) or "*()",
            key=tuple(part for read in reads for part in read.key),
            statements=(
                f"{test}: raise TypeError",
                f"[{', '.join(elements)}] = {name}",
                *(line for read in reads for line in read.statements),
            ),
            unexpected=" or ".join(read.unexpected for read in reads if read.unexpected),
        )

    def names(self, parameter: Parameter, number: int | str) -> dict[str, object]:
        """What the reading names: the class, and the parameters of elements."""
        found: dict[str, object] = {f"c{number}": self.form}
        form = TupleForm(self.form, len(self.kinds))
        for place, element in enumerate(parameter.elements_of(form)):
            found |= self.kinds[place].names(element, f"{number}_{place}")
        return found


class _Constexpr(ArgumentKind):
    """The properties the code is specialized on."""

    def accepts(self, parameter: Parameter, value: object) -> bool:
        return parameter.constexpr

    def describe(self, parameter: Parameter, value: object) -> Given:
        return Given(self, Argument.of(parameter.constant(value)))

    def reading(self, name: str, number: int | str) -> Reading:
        part = f"{name} if {name}.__class__ is int else $constant($p{number}, {name})"
        return Reading(name, key=(part,))


class _Pointer(ArgumentKind):
    """An array on a GPU, or what says that it is one."""

    def accepts(self, parameter: Parameter, value: object) -> bool:
        return is_pointer(value)

    def describe(self, parameter: Parameter, value: object) -> Given:
        address, element, device = memory_of(parameter.name, value)
        is_multiple = parameter.align and address % 16 == 0
        return Given(self, Argument.of(parameter.pointer(element), is_multiple), device)

    def reading(self, name: str, number: int | str) -> Reading:
        address, short, device = f"$a{number}", f"$t{number}", f"$d{number}"
        return Reading(
            address,
            key=(short, f"{address} & 15"),
            statements=(f"{address}, {short}, {device} = $pointer($p{number}, {name})",),
            unexpected=f"{device} != $device",
        )


class _Descriptor(ArgumentKind):
    """A tensor descriptor of an array on a GPU: several values for one argument, which counts as
    divisible where the last size is a multiple of 16: masks of accesses of 16 bytes are then."""

    def accepts(self, parameter: Parameter, value: object) -> bool:
        return isinstance(value, TensorDescriptor)

    def describe(self, parameter: Parameter, value: object) -> Given:
        assert isinstance(value, TensorDescriptor)
        if not is_pointer(value):
            raise _not_here(parameter.name, value.base)
        _, short, device = read_descriptor(parameter, value)
        return Given(self, Argument.of(short, _is_row_divisible(value)), device)

    def reading(self, name: str, number: int | str) -> Reading:
        passed, short, device = f"$n{number}", f"$t{number}", f"$d{number}"
        return Reading(
            f"*{passed}",
            key=(short, f"{name}.shape[-1] & 15 == 0"),
            statements=(f"{passed}, {short}, {device} = $descriptor($p{number}, {name})",),
            unexpected=f"{device} != $device",
        )


class _Torch(_Pointer):
    """A torch tensor: it says its address and its device quickly, its dtype is an object of its
    own, and all of that is true."""

    def accepts(self, parameter: Parameter, value: object) -> bool:
        return is_torch(value) and parameter.type is None

    def reading(self, name: str, number: int | str) -> Reading:
        address = f"$a{number}"
        return Reading(
            address,
            key=(f"{name}.dtype", f"{address} & 15"),
            statements=(f"{address} = {name}.data_ptr()",),
            # Without memory it is empty, or was freed: who has the time finds out.
            unexpected=f"{name}.get_device() != $device or not {address}",
        )


class _Other(ArgumentKind):
    """What generated code does not look into."""

    def accepts(self, parameter: Parameter, value: object) -> bool:
        return True

    def describe(self, parameter: Parameter, value: object) -> Given:
        scalar = parameter.scalar(value)
        if scalar is None:
            raise _not_here(parameter.name, value)
        argument = _number(parameter, *scalar)
        return Given(self, argument, may_be_stride=_may_be_stride(scalar[1]))

    def reading(self, name: str, number: int | str) -> Reading:
        return Reading(name, key=(f"$other($p{number}, {name})",))


class _Int(_Other):
    """An integer of 32 bits, of a parameter that is specialized on 1, on multiples of 16 and on
    its sign; not one of a fixed type, which may be too narrow for it."""

    def accepts(self, parameter: Parameter, value: object) -> bool:
        is_fixed = parameter.type is not None or not parameter.specialize
        return type(value) is int and not is_fixed and -(1 << 31) <= value < 1 << 31

    def reading(self, name: str, number: int | str) -> Reading:
        test = f"{name}.__class__ is not int or not -0x80000000 <= {name} <= 0x7FFFFFFF"
        sign = f"(1 if {name} > 0 else -1 if {name} else 0)"
        part = f"1 if {name} == 1 else (3 if {name} & 15 else 16) * {sign}"
        return Reading(name, key=(part,), statements=(f"if {test}: raise TypeError",))


class _Number(_Other):
    """A float."""

    def accepts(self, parameter: Parameter, value: object) -> bool:
        return type(value) is float and parameter.type is None

    def reading(self, name: str, number: int | str) -> Reading:
        test = f"if {name}.__class__ is not float: raise TypeError"
        return Reading(name, statements=(test,))


TORCH = _Torch()
OTHER = _Other()
KINDS: tuple[ArgumentKind, ...] = (
    *(_Constexpr(), _Tuple(), TORCH, _Descriptor(), _Pointer()),
    *(_Int(), _Number(), OTHER),
)


def _number(parameter: Parameter, key: Any, number: Any) -> Argument:
    """What the kernel is compiled for in the place of a number or a constant."""
    if key.__class__ is Constant:
        return Argument(None, key)
    is_address = key.startswith("*")
    is_int = parameter.specialize and key != "i1" and isinstance(number, int)
    is_multiple = (is_int or is_address) and parameter.align and number % 16 == 0
    return Argument(key, None, is_multiple, is_int and key.startswith("i") and number >= 0)


def _may_be_stride(number: Any) -> bool:
    return not isinstance(number, int) or number > 0


# What the generated code of readings calls


def read_pointer(parameter: Parameter, value: object) -> tuple[int, str, int]:
    """(address, type, device) of an array."""
    if not is_pointer(value):
        raise TypeError
    address, element, device = memory_of(parameter.name, value)
    return address, parameter.pointer(element), device


def read_descriptor(parameter: Parameter, value: object) -> tuple[tuple[int, ...], str, int]:
    """(what the kernel takes, type, device) of a tensor descriptor. Of torch's tensors the dtype
    says the type; what is empty, freed, or on the CPU takes its time."""
    if value.__class__ is TensorDescriptor and is_torch(base := value.base):
        address, device = base.data_ptr(), base.get_device()
        if address and device >= 0:
            short = _torch_key(parameter, base.dtype, tuple(value.block_shape), value.loads)
            return value.passed(parameter.name, address), short, device
    if not isinstance(value, TensorDescriptor) or not is_pointer(value):
        raise TypeError
    address, element, device = memory_of(parameter.name, value.base)
    return value.passed(parameter.name, address), value.key(parameter, element), device


@functools.lru_cache(1024)
def _torch_key(
    parameter: Parameter, dtype: object, block_shape: tuple[int, ...], padding: str
) -> str:
    element = torch_element(parameter.name, dtype)
    return descriptor_key(parameter, element, block_shape, padding)


def read_other(parameter: Parameter, value: object) -> tuple[Argument, bool]:
    """The key of an argument that generated code does not look into."""
    scalar = parameter.scalar(value)
    if scalar is None:
        raise TypeError
    argument = _number(parameter, *scalar)
    return argument, _may_be_stride(scalar[1])


def read_constant(parameter: Parameter, value: object) -> Constant:
    """The key of a constexpr."""
    return parameter.constant(value)


# Memory of a GPU


def is_pointer(value: object) -> bool:
    """True if a value is an array of a library for GPUs, or says that it is on one."""
    if isinstance(value, ArrayArgument):
        return is_pointer(value.base)
    has_interface = is_torch(value) or hasattr(value, "__cuda_array_interface__")
    return has_interface or _is_addressed_here(value)


def _is_addressed_here(value: Any) -> bool:
    """True if an object that says its address is on a GPU: it may say so, or the driver knows."""
    if not is_addressed(value):
        return False
    device = getattr(value, "device", None)
    if device is not None:
        return str(getattr(device, "type", device)).startswith("cuda")
    if not cuda.device_count():
        return False
    cuda.current_device()  # asking for an address needs a context
    return cuda.pointer_device(value.data_ptr()) is not None


def is_on_gpu(value: Any) -> bool:
    """True if a value is an array on a GPU, or says that it is one."""
    if isinstance(value, ArrayArgument):
        return is_on_gpu(value.base)
    return bool(value.is_cuda) if is_torch(value) else is_pointer(value)


def _not_here(name: str, value: object) -> LaunchError:
    """The error of what is neither a number nor an array on a GPU."""
    if owner_of(value) is None:
        return refused(name, value)
    return LaunchError(
        f"argument {name} is in CPU memory, and others are on a GPU; move it there, "
        "or the others to the CPU; warmup takes a dtype in its place"
    )


def memory_of(name: str, value: Any) -> tuple[int, ty.dtype, int]:
    """(address, element type, device) of an array on a GPU; raises LaunchError for others."""
    if isinstance(value, TensorWrapper):
        address, _, device = memory_of(name, value.base)
        return address, value.dtype, device
    if is_torch(value):
        return _torch_memory(name, value)
    if not hasattr(value, "__cuda_array_interface__"):
        return int(value.data_ptr()), addressed_element(name, value), cuda.current_device()
    return _interface_memory(name, value)


def layout_of(value: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The shape, and the strides in elements, of an array on a GPU."""
    if is_torch(value):
        return tuple(value.shape), tuple(value.stride())
    interface = value.__cuda_array_interface__
    shape, size = tuple(interface["shape"]), np.dtype(interface["typestr"]).itemsize
    if interface.get("strides") is not None:
        return shape, tuple(stride // size for stride in interface["strides"])
    return shape, tuple(math.prod(shape[axis + 1 :]) for axis in range(len(shape)))


def _torch_memory(name: str, tensor: Any) -> tuple[int, ty.dtype, int]:
    check_torch(name, tensor)
    if not tensor.is_cuda:
        raise LaunchError(
            f"argument {name} is on {tensor.device}, and others are on a GPU; move it there; "
            "warmup takes a dtype in its place"
        )
    element = torch_element(name, tensor.dtype)
    address = tensor.data_ptr()
    if not address and tensor.numel():
        raise LaunchError(f"argument {name} has no memory: its storage was freed")
    return address, element, tensor.get_device()


def _interface_memory(name: str, value: Any) -> tuple[int, ty.dtype, int]:
    """By the CUDA Array Interface, version 3."""
    try:
        interface = value.__cuda_array_interface__
        address = int(interface["data"][0] or 0)
        dtype = np.dtype(interface["typestr"])
    except (AttributeError, LookupError, TypeError, ValueError) as problem:
        raise LaunchError(
            f"argument {name} is no array on a GPU: its __cuda_array_interface__ is not what it "
            f"must be ({type(problem).__name__}: {problem})"
        ) from None
    element = ELEMENT_TYPES.get(dtype.name)
    if element is None or not dtype.isnative:
        raise LaunchError(f"argument {name} has dtype {dtype}, which kernels cannot point to")
    if not address:
        if 0 not in interface.get("shape", (1,)):
            raise LaunchError(f"argument {name} has no memory: its pointer is null")
        return address, element, cuda.current_device()
    cuda.current_device()  # asking for an address needs a context
    device = cuda.pointer_device(address)
    if device is None:
        raise LaunchError(
            f"argument {name} points to {address:#x}, which is no memory of a GPU (freed, or on "
            "the CPU)"
        )
    stated = _stated_device(value)
    return address, element, device if stated is None else stated


def _stated_device(value: Any) -> int | None:
    """The GPU that an array says it is on, by DLPack, if it does: of CuPy's memory of a second GPU
    the driver named the first one (two H200s, driver 580)."""
    ask = getattr(value, "__dlpack_device__", None)
    if ask is None:
        return None
    kind, device = ask()
    return int(device) if int(kind) == _DLPACK_CUDA else None
