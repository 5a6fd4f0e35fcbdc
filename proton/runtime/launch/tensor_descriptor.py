"""Tensor descriptors that the host passes to kernels."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from proton.base.errors import InvalidDescriptor, LaunchError
from proton.base.words import shown
from proton.language import types as ty
from proton.layout.tensor_map import TF32
from proton.runtime.backend import owner_of
from proton.runtime.launch.arguments import ArrayArgument, Parameter
from proton.runtime.launch.reinterpret import MockTensor, TensorWrapper

_PADDINGS = ("zero", "nan")
_MAX_SIZE = (1 << 31) - 1  # of a dimension: kernels count in 32 bits


@dataclass
class TensorDescriptor(ArrayArgument):
    """A tensor of which a kernel loads and stores blocks of `block_shape`.

    `shape` and `strides`, in elements, are the tensor's; the last stride is 1, the others and the
    address of `base` are multiples of 16 bytes. Where a block reaches over the tensor's ends it
    has zeros, or NaN (`padding="nan"`). With `round_f32_to_tf32` loads give the nearest tf32, ties
    to even. Attributes may be changed between launches.
    """

    base: Any
    shape: Sequence[int]
    strides: Sequence[int]
    block_shape: Sequence[int]
    padding: str = "zero"
    round_f32_to_tf32: bool = False

    def __post_init__(self) -> None:
        if isinstance(self.base, MockTensor):
            self.base = self.base.base
        rank = len(self.shape)
        for name, wanted in {"strides": rank, **self._lengths(rank)}.items():
            if len(getattr(self, name)) != wanted:
                raise InvalidDescriptor(
                    f"TensorDescriptor: {name} must have {wanted} entries, and shape has {rank}, "
                    f"got {shown(getattr(self, name))}"
                )
        try:
            ty.check_block_shape(tuple(self.block_shape))
        except ValueError as problem:
            raise InvalidDescriptor(
                f"TensorDescriptor: block_shape {shown(self.block_shape)}: {problem}"
            ) from None
        for name in ("shape", "strides"):
            numbers = getattr(self, name)
            if not all(hasattr(number, "__index__") for number in numbers):
                raise InvalidDescriptor(
                    f"TensorDescriptor: {name} must have integers, got {shown(numbers)}"
                )
        for size in self.shape:
            if not 0 < size <= _MAX_SIZE:
                raise InvalidDescriptor(
                    f"TensorDescriptor: sizes must be from 1 to {_MAX_SIZE}, got {shown(size)}"
                )
        if self.padding not in _PADDINGS:
            raise InvalidDescriptor(
                f'TensorDescriptor: padding must be "zero" or "nan", got {shown(self.padding)}'
            )
        self._check_strides(_element_bytes(self.base))

    def _lengths(self, rank: int) -> dict[str, int]:
        """How many entries attributes have for a tensor of so many dimensions."""
        return {"block_shape": rank}

    def _check_strides(self, size: int) -> None:
        if self.strides[-1] != 1:
            raise InvalidDescriptor(
                f"TensorDescriptor: the last stride must be 1, got {shown(self.strides[-1])}: pass "
                "a contiguous tensor, or a transposed view and transpose blocks"
            )
        for stride in self.strides[:-1]:
            if stride * size % ty.DESCRIPTOR_ROW_BYTES:
                raise InvalidDescriptor(
                    f"TensorDescriptor: strides must be multiples of {ty.DESCRIPTOR_ROW_BYTES} "
                    f"bytes, got {stride} x {size} bytes: pad the rows, or pass a pointer"
                )

    @staticmethod
    def from_tensor(
        tensor: object,
        block_shape: Sequence[int],
        padding: str = "zero",
        round_f32_to_tf32: bool = False,
    ) -> "TensorDescriptor":
        """A descriptor of all of an array, wherever it lies."""
        return TensorDescriptor(*whole_of(tensor), block_shape, padding, round_f32_to_tf32)

    def key(self, parameter: Parameter, element: ty.dtype) -> str:
        """The short name of its type, of which the code depends on the block and on what loads
        give."""
        return descriptor_key(parameter, element, tuple(self.block_shape), self.loads)

    @property
    def loads(self) -> str:
        """The padding, behind it whether loads round, as types of descriptors have it."""
        return f"{self.padding} {TF32}" if self.round_f32_to_tf32 else self.padding

    def stand_in(self, parameter: Parameter, element: ty.dtype) -> str:
        return self.key(parameter, element)

    def passed(self, name: str, address: int) -> tuple[int, ...]:
        """What compiled code takes, as `ty.tensor_descriptor_type.parts` has it."""
        if address % ty.DESCRIPTOR_ROW_BYTES:
            raise LaunchError(
                f"argument {name}: the base of a tensor descriptor must be aligned to "
                f"{ty.DESCRIPTOR_ROW_BYTES} bytes, got {address:#x}: copy the tensor"
            )
        return (address, *self.shape, *self.strides[:-1])


def whole_of(tensor: object) -> tuple[object, Sequence[int], Sequence[int]]:
    """(base, shape, strides) of a descriptor of all of an array."""
    if isinstance(tensor, MockTensor):
        return tensor, tensor.shape, tensor.stride()
    array = tensor.base if isinstance(tensor, TensorWrapper) else tensor
    owner = owner_of(array)
    if owner is None:
        raise LaunchError(
            f"TensorDescriptor.from_tensor takes an array, got {type(tensor).__name__}"
        )
    return tensor, *owner.layout(array)


def descriptor_key(
    parameter: Parameter, element: ty.dtype, block_shape: tuple[int, ...], padding: str
) -> str:
    """The short name of a descriptor's type."""
    if padding.endswith(TF32) and element != ty.float32:
        raise LaunchError(
            f"argument {parameter.name}: round_f32_to_tf32=True needs float32, got {element}: "
            "leave it out"
        )
    if padding == "nan" and not element.is_floating():
        raise LaunchError(f'argument {parameter.name}: padding "nan" needs floats, got {element}')
    return parameter.descriptor(element, block_shape, padding)


def _element_bytes(base: Any) -> int:
    if isinstance(base, ty.dtype):  # stands for an array of it where nothing is launched
        return base.itemsize
    if isinstance(base, TensorWrapper):
        return int(base.dtype.itemsize)
    owner = owner_of(base)
    if owner is None:
        raise LaunchError(f"TensorDescriptor: base must be an array, got {type(base).__name__}")
    return owner.element_bytes(base)
