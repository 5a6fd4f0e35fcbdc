"""The tensor memory accelerator: copies of blocks of a tensor that go on by themselves."""

from proton.language.descriptor import tensor_descriptor as tensor_descriptor
from proton.language.function import builtin
from proton.language.gluon.core import absent
from proton.language.gluon.core import tensor_descriptor_im2col as tensor_descriptor_im2col
from proton.language.gluon.types import im2col_descriptor_type as tensor_descriptor_im2col_type
from proton.language.gluon.types import layout_descriptor_type as tensor_descriptor_type

__all__ = [
    "tensor_descriptor",
    "tensor_descriptor_im2col",
    "tensor_descriptor_im2col_type",
    "tensor_descriptor_type",
]


@builtin
def make_tensor_descriptor(base, shape, strides, block_shape, layout, padding_option="zero"):
    """A descriptor of the tensor at `base`, of which blocks are copied to memory of `layout`, an
    NVMMASharedLayout."""


@builtin
def async_load(tensor_desc, coord, barrier, result, pred=True, multicast=False, cache_policy=None):
    """Begins to copy the block at `coord` to shared memory, if `pred` holds; its bytes arrive at
    the barrier."""


@builtin
def async_load_im2col(
    tensor_desc, coord, offsets, barrier, result, pred=True, multicast=False, cache_policy=None
):
    """Begins to copy pixels of images, and their channels, as `async_load` does. `coord` is where
    the first one is; the others follow in the bounding box, W fastest. `offsets`, 16-bit integers
    without a sign, are added to the D, H and W of each."""


@builtin
def async_store(tensor_desc, coord, src, cache_policy=None):
    """Begins to copy a block of shared memory to `coord`."""


@builtin
def async_atomic_add(tensor_desc, coord, src):
    """Begins to add a block of shared memory to what is at `coord`."""


@builtin
def async_atomic_min(tensor_desc, coord, src):
    """Takes minima; see `async_atomic_add`."""


@builtin
def async_atomic_max(tensor_desc, coord, src):
    """Takes maxima; see `async_atomic_add`."""


@builtin
def async_atomic_and(tensor_desc, coord, src):
    """Bitwise and; see `async_atomic_add`."""


@builtin
def async_atomic_or(tensor_desc, coord, src):
    """Bitwise or; see `async_atomic_add`."""


@builtin
def async_atomic_xor(tensor_desc, coord, src):
    """Bitwise exclusive or; see `async_atomic_add`."""


@builtin
def store_wait(pendings, read_only=True):
    """Until all but so many of the copies to global memory have read their source, or, with
    `read_only=False`, have been written."""


_REMOVED = "a name that Triton has removed"
async_copy_global_to_shared = absent("async_copy_global_to_shared", _REMOVED, "call async_load")
async_copy_shared_to_global = absent("async_copy_shared_to_global", _REMOVED, "call async_store")
async_copy_global_to_shared_im2col = absent(
    "async_copy_global_to_shared_im2col", _REMOVED, "call async_load_im2col"
)
