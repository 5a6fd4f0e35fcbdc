"""What functions of Python that run while compiling see of tensors: types, not values."""

from typing import Any, NoReturn

from proton.base.words import shown
from proton.frontend.builder import error
from proton.language import types as ty
from proton.language.descriptor import tensor_descriptor
from proton.language.value import tensor


class SeenTensor(tensor):
    """A tensor whose value nobody may ask for."""

    __slots__ = ()

    def _unknown(self, *_: object) -> NoReturn:
        raise TypeError(f"the value of {self!r} is not known while compiling, its type is")

    __bool__ = __int__ = __float__ = __index__ = __len__ = __iter__ = _unknown
    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _unknown
    __hash__ = tensor.__hash__


class SeenDescriptor(tensor_descriptor):
    """A tensor descriptor, which is no tensor to Python: what its type says."""

    def __init__(self, type: ty.tensor_descriptor_type) -> None:
        self.type, self.block_type = type, type.block_type
        self.block_shape, self.dtype = list(type.block_type.shape), type.block_type.scalar


def seen(value: Any) -> Any:
    """An argument as such a function gets it."""
    if not isinstance(value, tensor):
        return value
    if isinstance(value.type, ty.tensor_descriptor_type):
        return SeenDescriptor(value.type)
    return SeenTensor(value.handle, value.type)


def check_known(name: str, value: Any) -> Any:
    """What such a function returns; raises CompilationError for a tensor."""
    parts = value if isinstance(value, tuple | list) else (value,)
    if any(isinstance(part, SeenTensor | SeenDescriptor) for part in parts):
        raise error(
            f"{name} runs while compiling, and returned {shown(value)}",
            "return what is known then, as a dtype or a shape, or write a @proton.jit function",
        )
    return value
