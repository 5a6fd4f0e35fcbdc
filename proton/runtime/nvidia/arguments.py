"""What a launch on a GPU may be given: torch tensors, and arrays with `__cuda_array_interface__`.

An argument is described by a `Given`: the kind of code that reads it, the type that the kernel is
compiled for, and whether it is a multiple of 16.
"""

import sys
from dataclasses import dataclass
from typing import Any

import numpy as np

from proton.base.errors import LaunchError
from proton.language import types as ty
from proton.runtime.arguments import (
    ELEMENT_TYPES,
    Constant,
    Memory,
    Parameter,
    TensorWrapper,
    check_torch,
)
from proton.runtime.nvidia import cuda


@dataclass(frozen=True)
class Given:
    """One argument. `type` is a short name, or None for a constant of the compiled code.

    `kind` says how generated code reads it: "torch" (a tensor), "pointer" (other arrays), "int"
    (of 32 bits, of a parameter that is specialised), "number" (a float), "constexpr", "other".
    """

    kind: str
    type: str | None
    constant: Constant | None = None
    divisible: bool = False
    device: int | None = None
    address: int = 0


def is_torch(value: Any) -> bool:
    """Whether a value is a torch tensor."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def given(parameter: Parameter, value: Any) -> Given:
    """Describes an argument; raises LaunchError where a kernel on a GPU cannot take it."""
    if parameter.constexpr:
        return Given("constexpr", None, parameter.classify(value)[0])
    if isinstance(value, ty.dtype) or is_torch_dtype(value):
        return _stand_in(parameter, value)
    if is_pointer(value):
        return _pointer(parameter, value)
    key, number = parameter.classify(value)
    if isinstance(number, Memory):
        raise LaunchError(
            f"argument {parameter.name} is in CPU memory, and others are on a GPU; move it there, "
            "or the others to the CPU"
        )
    is_plain = type(value) is int and parameter.specialize and -(1 << 31) <= value < 1 << 31
    if isinstance(key, Constant):
        return Given("int" if is_plain else "other", None, key)
    if key == "fp32" and type(value) is float and parameter.annotation is None:
        return Given("number", key)
    is_int = parameter.specialize and key != "i1" and isinstance(number, int)
    return Given("int" if is_plain else "other", key, divisible=is_int and number % 16 == 0)


def is_torch_dtype(value: Any) -> bool:
    """Whether a value is a dtype of torch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.dtype)


def _stand_in(parameter: Parameter, value: Any) -> Given:
    """A dtype in the place of an array of it, or a pointer type; such arrays are aligned."""
    if not isinstance(value, ty.dtype):
        value = _torch_type(parameter.name, value)
    short = value.short if value.is_ptr() else parameter.prefix + value.short
    return Given("other", short, divisible=True)


def _torch_type(name: str, dtype: Any) -> ty.dtype:
    element = ELEMENT_TYPES.get(str(dtype).removeprefix("torch."))
    if element is None:
        raise LaunchError(f"argument {name} has dtype {dtype}, which is not supported")
    return element


def is_pointer(value: Any) -> bool:
    """Whether a value is an array on a GPU, or says that it is one."""
    if isinstance(value, TensorWrapper):
        return is_pointer(value.base)
    return is_torch(value) or hasattr(value, "__cuda_array_interface__")


def _pointer(parameter: Parameter, value: Any) -> Given:
    address, element, device = memory_of(parameter.name, value)
    annotation = parameter.annotation
    if annotation is None:
        short = parameter.prefix + element.short
    elif not isinstance(annotation, ty.pointer_type) or annotation.element_ty != element:
        raise LaunchError(
            f"argument {parameter.name} must be {annotation}, got an array of {element}"
        )
    else:
        short = annotation.short
    kind = "torch" if is_torch(value) and annotation is None else "pointer"
    return Given(kind, short, divisible=address % 16 == 0, device=device, address=address)


def memory_of(name: str, value: Any) -> tuple[int, ty.dtype, int]:
    """(address, element type, device) of an array on a GPU; raises LaunchError for others."""
    if isinstance(value, TensorWrapper):
        address, _, device = memory_of(name, value.base)
        return address, value.dtype, device
    if is_torch(value):
        return _torch_memory(name, value)
    return _interface_memory(name, value)


def _torch_memory(name: str, tensor: Any) -> tuple[int, ty.dtype, int]:
    check_torch(name, tensor)
    if not tensor.is_cuda:
        raise LaunchError(
            f"argument {name} is on {tensor.device}, and others are on a GPU; move it there"
        )
    element = _torch_type(name, tensor.dtype)
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
    return address, element, device
