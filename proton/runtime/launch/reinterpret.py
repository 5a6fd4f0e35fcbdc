"""Arrays whose elements are to be read as another type: numpy, for one, has no bfloat16."""

from typing import Any

from proton.base.errors import LaunchError
from proton.base.words import shown
from proton.language import types as ty
from proton.runtime.backend import owner_of
from proton.runtime.launch.arguments import (
    ArrayArgument,
    Parameter,
    is_torch_dtype,
    refused,
    torch_element,
)


class TensorWrapper(ArrayArgument):
    """An array whose elements are to be read as another type of the same size.

    `proton.reinterpret(bits, tl.bfloat16)` passes the bits of bfloat16 (uint16).
    """

    def __init__(self, base: Any, dtype: Any) -> None:
        if is_torch_dtype(dtype):
            dtype = torch_element("dtype", dtype)
        self.base, self.dtype = base, dtype
        self._data: Any = None
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

    @property
    def shape(self) -> Any:
        """The array's."""
        return self.base.shape

    @property
    def device(self) -> Any:
        """Where a torch tensor lies."""
        return self.base.device

    def stride(self, *axis: int) -> Any:
        """A torch tensor's strides, in elements, or that of one axis."""
        return self.base.stride(*axis)

    def element_size(self) -> int:
        """Bytes of an element."""
        return int(self.dtype.itemsize)

    # What follows is that of a torch tensor.

    @property
    def data(self) -> Any:
        """The tensor's, or what it was set to, which changes nothing else, as in Triton."""
        return self.base.data if self._data is None else self._data

    @data.setter
    def data(self, data: Any) -> None:
        self._data = data

    def data_ptr(self) -> int:
        """Where the tensor lies."""
        return int(self.base.data_ptr())

    def cpu(self) -> "TensorWrapper":
        """This, in the host's memory."""
        return TensorWrapper(self.base.cpu(), self.dtype)

    def to(self, device: Any) -> "TensorWrapper":
        """This, on a device."""
        return TensorWrapper(self.base.to(device), self.dtype)

    def clone(self) -> "TensorWrapper":
        """A copy."""
        return TensorWrapper(self.base.clone(), self.dtype)

    def new_empty(self, sizes: Any) -> "TensorWrapper":
        """Another one of the same dtype and device."""
        return TensorWrapper(self.base.new_empty(sizes), self.dtype)

    def copy_(self, other: "TensorWrapper") -> None:
        """Takes the elements of another one."""
        self.base.copy_(other.base)

    def __str__(self) -> str:
        return f"TensorWrapper[{self.dtype}]({self.base})"


class MockTensor(ArrayArgument):
    """Stands for an array of a dtype where a kernel is compiled and nothing is launched; its
    address, 0, is as aligned as may be."""

    def __init__(self, dtype: Any, shape: Any = None) -> None:
        self.base = torch_element("dtype", dtype) if is_torch_dtype(dtype) else dtype
        self.dtype, self.shape = dtype, [1] if shape is None else shape

    @staticmethod
    def wrap_dtype(arg: object) -> Any:
        """A dtype as such an array; other values as they are."""
        is_dtype = isinstance(arg, ty.dtype) or is_torch_dtype(arg)
        return MockTensor(arg) if is_dtype else arg

    @staticmethod
    def data_ptr() -> int:
        """The address."""
        return 0

    @staticmethod
    def ptr_range() -> int:
        """How many bytes there are."""
        return 0

    def stride(self) -> tuple[int, ...]:
        """The strides of a contiguous array, in elements."""
        strides = [1]
        for size in reversed(self.shape[1:]):
            strides.append(strides[-1] * size)
        return tuple(reversed(strides))

    def stand_in(self, parameter: Parameter, element: ty.dtype) -> str | None:
        return parameter.prefix + element.short


def _element_bytes(base: Any) -> int:
    """The size of an array's elements, wherever it lies."""
    if isinstance(base, TensorWrapper):
        return int(base.dtype.itemsize)
    owner = owner_of(base)
    if owner is None:
        raise refused("base", base)
    return owner.element_bytes(base)


def reinterpret(tensor: object, dtype: ty.dtype) -> Any:
    """`tensor` passed to kernels as a pointer to `dtype`, which has elements of the same size."""
    base = tensor.base if isinstance(tensor, TensorWrapper) else tensor
    return TensorWrapper(base, dtype)
