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
from proton.language.gluon.types import layout_descriptor_type
from proton.runtime.launch.arguments import Parameter
from proton.runtime.launch.tensor_descriptor import TensorDescriptor as PlainDescriptor

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
        super().__init__(base, shape, strides, block_shape, padding, round_f32_to_tf32)
        self.layout = layout
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
        plain = PlainDescriptor.from_tensor(tensor, block_shape, padding, round_f32_to_tf32)
        return LayoutDescriptor(
            plain.base, plain.shape, plain.strides, block_shape, layout, padding
        )

    def key(self, parameter: Parameter, element: ty.dtype) -> str:
        """The short name of its type."""
        super().key(parameter, element)  # which checks the block
        type_ = _type(element, tuple(self.block_shape), self.layout, self.padding)
        return parameter.described(type_)


TensorDescriptor = LayoutDescriptor


@functools.cache
def _type(
    element: ty.dtype, block: tuple[int, ...], layout: NVMMASharedLayout, padding: str
) -> layout_descriptor_type:
    return layout_descriptor_type(ty.block_type(element, block), layout, padding)
