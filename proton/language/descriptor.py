"""Tensor descriptors: a tensor in memory, of which a kernel loads and stores blocks."""

from proton.language.function import builtin
from proton.language.types import tensor_descriptor_type
from proton.language.value import tensor


class _ByType(type):
    """An object is of the class if the type of the value that it stands for is a descriptor's."""

    def __instancecheck__(cls, value: object) -> bool:
        if isinstance(value, tensor):
            return isinstance(value.type, tensor_descriptor_type)
        return issubclass(type(value), cls)


class tensor_descriptor(metaclass=_ByType):
    """What `tl.make_tensor_descriptor` gives, or the host passes as a `TensorDescriptor`.

    Its attributes are `shape`, `strides`, `block_shape` and `dtype`; a block may reach over the
    tensor's ends: what lies there is padding in loads, and is not written.
    """

    @builtin
    def load(self, offsets, cache_modifier="", eviction_policy=""):
        """The block at `offsets`."""

    @builtin
    def store(self, offsets, value):
        """Writes a block at `offsets`."""

    @builtin
    def gather(self, x_offsets, y_offset, cache_modifier="", eviction_policy=""):
        """The rows `x_offsets`, each from column `y_offset` on; the descriptor's block is one."""

    @builtin
    def scatter(self, value, x_offsets, y_offset):
        """Writes each row of `value` to one of the rows `x_offsets`, from `y_offset` on."""

    @builtin
    def atomic_add(self, offsets, value):
        """Adds a block to what lies at `offsets`, atomically element by element."""

    @builtin
    def atomic_min(self, offsets, value):
        """Takes the minimum with what lies at `offsets`; see `atomic_add`."""

    @builtin
    def atomic_max(self, offsets, value):
        """Takes the maximum with what lies at `offsets`; see `atomic_add`."""

    @builtin
    def atomic_and(self, offsets, value):
        """Bitwise and with what lies at `offsets`; see `atomic_add`."""

    @builtin
    def atomic_or(self, offsets, value):
        """Bitwise or with what lies at `offsets`; see `atomic_add`."""

    @builtin
    def atomic_xor(self, offsets, value):
        """Bitwise exclusive or with what lies at `offsets`; see `atomic_add`."""


# Of the same names as Triton's base class, for annotations and isinstance.
tensor_descriptor_base = tensor_descriptor


@builtin
def make_tensor_descriptor(base, shape, strides, block_shape, padding_option="zero"):
    """A descriptor of the tensor at `base`, of which blocks of `block_shape` are accessed.

    `base` is a multiple of 16 bytes, and so are the strides, but for the last one, which is 1.
    What a block has outside of the tensor is 0 where it is loaded, or NaN ("nan").
    """


@builtin
def load_tensor_descriptor(desc, offsets, cache_modifier="", eviction_policy=""):
    """`desc.load(offsets)`"""


@builtin
def store_tensor_descriptor(desc, offsets, value):
    """`desc.store(offsets, value)`"""
