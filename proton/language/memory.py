"""The ops of the tile language that read and write memory: plain, by blocks, atomically.

What a mask selects is accessed; what it masks off is neither read nor written.
"""

from proton.language.function import Builtin, builtin, member, must_use_result


@builtin
def load(
    pointer,
    mask=None,
    other=None,
    *,
    boundary_check=(),
    padding_option="",
    cache_modifier="",
    eviction_policy="",
    volatile=False,
):
    """The values at `pointer`, a pointer or a block of pointers.

    Where `mask` is false nothing is read and the value is `other`; without `other` it is
    undefined (0 on the CPU). A block pointer has a `boundary_check` in place of the mask: the
    dimensions in which the block may reach over the tensor's ends. What lies there is 0, or NaN
    with `padding_option="nan"`.
    """


@member
def store(pointer, value, mask=None, *, boundary_check=(), cache_modifier="", eviction_policy=""):
    """Writes `value` to `pointer` where `mask` is true; to a block pointer, inside of the tensor in
    the dimensions of `boundary_check`."""


@builtin
def make_block_ptr(base, shape, strides, offsets, block_shape, order):
    """A pointer to the block of `block_shape` at `offsets` in the tensor at `base`.

    `shape` and `strides` are the tensor's, in elements; `order` lists its dimensions, the fastest
    first. `tl.advance` moves it; it is carried through loops and passed to functions as it is.
    """


@must_use_result("the pointer itself does not move: write p = tl.advance(p, offsets)")
@member
def advance(base, offsets):
    """A block pointer moved by `offsets` elements, one for each dimension."""


@member
def atomic_add(pointer, val, mask=None, sem=None, scope=None):
    """Adds atomically; returns the value before."""


@member
def atomic_max(pointer, val, mask=None, sem=None, scope=None):
    """Takes the maximum atomically; returns the value before."""


@member
def atomic_min(pointer, val, mask=None, sem=None, scope=None):
    """Takes the minimum atomically; returns the value before."""


@member
def atomic_and(pointer, val, mask=None, sem=None, scope=None):
    """Bitwise and, atomically; returns the value before."""


@member
def atomic_or(pointer, val, mask=None, sem=None, scope=None):
    """Bitwise or, atomically; returns the value before."""


@member
def atomic_xor(pointer, val, mask=None, sem=None, scope=None):
    """Bitwise exclusive or, atomically; returns the value before."""


@member
def atomic_xchg(pointer, val, mask=None, sem=None, scope=None):
    """Exchanges atomically; returns the value before."""


@member
def atomic_cas(pointer, cmp, val, sem=None, scope=None):
    """Writes `val` where the memory equals `cmp`, atomically; returns the value before."""


@member
def atomic_load(pointer, mask=None, sem=None, scope=None):
    """Reads atomically. `sem` is "acquire" (default) or "relaxed"."""


@member
def atomic_store(pointer, val, mask=None, sem=None, scope=None):
    """Writes atomically. `sem` is "release" (default) or "relaxed"."""


__all__ = [name for name, of in globals().items() if isinstance(of, Builtin)]
