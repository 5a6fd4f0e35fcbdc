"""What the host passes to kernels in Gluon: descriptors of tensors, with the layout of the memory
that TMA copies blocks to. `hopper` is where Triton has them."""

import functools
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from proton.base.errors import InvalidDescriptor
from proton.base.words import shown
from proton.language import types as ty
from proton.language.gluon.layouts import NVMMASharedLayout
from proton.language.gluon.types import im2col_descriptor_type, layout_descriptor_type
from proton.layout.tensor_map import (
    CORNER_BITS,
    IM2COL_RANKS,
    MAX_BOX,
    MAX_ELEMENT_STRIDE,
    MAX_PIXELS,
)
from proton.runtime.launch.arguments import Parameter
from proton.runtime.launch.tensor_descriptor import TensorDescriptor as PlainDescriptor
from proton.runtime.launch.tensor_descriptor import whole_of

hopper = blackwell = sys.modules[__name__]
sys.modules |= {f"{__name__}.{name}": hopper for name in ("hopper", "blackwell")}


@dataclass(init=False)
class LayoutDescriptor(PlainDescriptor):
    """A tensor of which TMA copies blocks of `block_shape` to shared memory of `layout`."""

    layout: NVMMASharedLayout = field(default_factory=lambda: NVMMASharedLayout(0, 8))

    def __init__(
        self,
        base: Any,
        shape: Sequence[int],
        strides: Sequence[int],
        block_shape: Sequence[int],
        layout: NVMMASharedLayout,
        padding: str = "zero",
        round_f32_to_tf32: bool = False,
    ) -> None:
        self.layout = layout
        super().__init__(base, shape, strides, block_shape, padding, round_f32_to_tf32)
        if not isinstance(layout, NVMMASharedLayout):
            raise InvalidDescriptor(f"Layout must be NVMMASharedLayout, got {shown(layout)}")
        if layout.rank != len(block_shape):
            raise InvalidDescriptor(
                f"layout rank must match block shape rank: {layout.rank} and {len(block_shape)}"
            )
        bits = layout.element_bitwidth
        least = layout.swizzle_byte_width * 8 // bits
        if block_shape[-1] < least:
            raise InvalidDescriptor(
                f"Expected block_shape[-1] to be at least {least} but got {block_shape[-1]}"
            )
        if layout.fp4_padded:
            raise InvalidDescriptor(
                "fp4_padded requires blackwell or newer, which are not supported"
            )

    @property
    def mode(self) -> str:
        """How blocks are taken: as tiles."""
        return "tiled"

    @staticmethod
    def from_tensor(  # type: ignore[override]
        tensor: object,
        block_shape: Sequence[int],
        layout: NVMMASharedLayout,
        padding: str = "zero",
        round_f32_to_tf32: bool = False,
    ) -> "LayoutDescriptor":
        """A descriptor of all of an array, wherever it lies."""
        return LayoutDescriptor(*whole_of(tensor), block_shape, layout, padding, round_f32_to_tf32)

    def key(self, parameter: Parameter, element: ty.dtype) -> str:
        """The short name of its type."""
        super().key(parameter, element)  # which checks the block
        return parameter.described(self._type(element))

    def _type(self, element: ty.dtype) -> layout_descriptor_type:
        return _type(element, tuple(self.block_shape), self.layout, self.loads)


@dataclass(init=False)
class TensorDescriptorIm2Col(LayoutDescriptor):
    """Images, NWC to NDHWC, of which TMA copies pixels and their channels: `block_shape` says how
    many of each. Along D, H and W pixels are those from `pixel_box_lower_corner` to the tensor's
    last one and `pixel_box_upper_corner` behind it, by steps of `element_strides`."""

    element_strides: Sequence[int] = ()
    pixel_box_lower_corner: Sequence[int] = ()
    pixel_box_upper_corner: Sequence[int] = ()

    def __init__(
        self,
        base: Any,
        shape: Sequence[int],
        strides: Sequence[int],
        block_shape: Sequence[int],
        layout: NVMMASharedLayout,
        padding: str = "zero",
        round_f32_to_tf32: bool = False,
        element_strides: Sequence[int] | None = None,
        pixel_box_lower_corner: Sequence[int] | None = None,
        pixel_box_upper_corner: Sequence[int] | None = None,
    ) -> None:
        rank = len(shape)
        if rank not in IM2COL_RANKS:
            raise InvalidDescriptor(f"im2col mode requires rank 3, 4, or 5, got {rank}")
        self.element_strides = [1] * rank if element_strides is None else element_strides
        self.pixel_box_lower_corner = pixel_box_lower_corner or ()
        self.pixel_box_upper_corner = pixel_box_upper_corner or ()
        super().__init__(base, shape, strides, block_shape, layout, padding, round_f32_to_tf32)
        pixels, channels = block_shape
        if pixels > MAX_PIXELS:
            raise InvalidDescriptor(f"im2col: at most {MAX_PIXELS} pixels at once, got {pixels}")
        if not layout.swizzle_byte_width and channels > MAX_BOX:
            raise InvalidDescriptor(
                f"im2col: at most {MAX_BOX} channels without a swizzle, got {channels}: give the "
                "layout a swizzle_byte_width"
            )
        self._walk()

    def _lengths(self, rank: int) -> dict[str, int]:
        corners = "pixel_box_lower_corner", "pixel_box_upper_corner"
        return {"block_shape": 2, "element_strides": rank, **dict.fromkeys(corners, rank - 2)}

    def _walk(self) -> tuple[int, ...]:
        """What kernels take of the pixels, which must be some."""
        lower, upper = self.pixel_box_lower_corner, self.pixel_box_upper_corner
        half = 1 << CORNER_BITS[len(lower)] - 1
        for corner, name in ((lower, "lower"), (upper, "upper")):
            for axis, number in enumerate(corner):
                if not -half <= number < half:
                    raise InvalidDescriptor(
                        f"im2col: pixel_box_{name}_corner[{axis}] must be in [{-half}, "
                        f"{half - 1}], got {number}"
                    )
        for axis, number in enumerate(self.element_strides):
            most = 1 if axis in (0, len(lower) + 1) else MAX_ELEMENT_STRIDE  # N and C
            if not 0 < number <= most:
                raise InvalidDescriptor(
                    f"im2col: element_strides[{axis}] must be in [1, {most}], got {number}"
                )
        for size, low, high in zip(self.shape[1:-1], lower, upper, strict=True):
            if size - 1 + high < low:
                raise InvalidDescriptor(
                    f"im2col: a bounding box from {low} to {size} - 1 + {high} is empty"
                )
        return (*lower, *upper, *self.element_strides[1:-1])

    @property
    def mode(self) -> str:
        return "im2col"

    @staticmethod
    def from_tensor(  # type: ignore[override]
        tensor: object,
        block_shape: Sequence[int],
        layout: NVMMASharedLayout,
        padding: str = "zero",
        round_f32_to_tf32: bool = False,
        element_strides: Sequence[int] | None = None,
        pixel_box_lower_corner: Sequence[int] | None = None,
        pixel_box_upper_corner: Sequence[int] | None = None,
    ) -> "TensorDescriptorIm2Col":
        """A descriptor of all of an array, wherever it lies."""
        walk = element_strides, pixel_box_lower_corner, pixel_box_upper_corner
        return TensorDescriptorIm2Col(
            *whole_of(tensor), block_shape, layout, padding, round_f32_to_tf32, *walk
        )

    def _type(self, element: ty.dtype) -> layout_descriptor_type:
        return _im2col_type(super()._type(element), len(self.shape))

    def passed(self, name: str, address: int) -> tuple[int, ...]:
        return (*super().passed(name, address), *self._walk())


TensorDescriptor = LayoutDescriptor


@functools.cache
def _type(
    element: ty.dtype, block: tuple[int, ...], layout: NVMMASharedLayout, padding: str
) -> layout_descriptor_type:
    return layout_descriptor_type(ty.block_type(element, block), layout, padding)


@functools.cache
def _im2col_type(of: layout_descriptor_type, rank: int) -> im2col_descriptor_type:
    return im2col_descriptor_type(of.block_type, of.layout, of.padding, rank)
