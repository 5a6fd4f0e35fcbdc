"""The ops of Gluon that the tile language has not, or has with fewer parameters: those that a
layout is said to, and those on shared memory. The rules are in `proton/frontend/gluon`."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, ClassVar

from proton.language.constants import unwrap
from proton.language.function import Builtin, builtin
from proton.language.gluon.layouts import plain
from proton.language.gluon.types import (
    im2col_descriptor_type,
    shared_memory_descriptor_type,
    warpgroup_mma_accumulator_type,
)
from proton.language.value import tensor

CACHE_MODIFIERS = ("ca", "cg", "wb", "cs", "wt", "cv")


@dataclass(frozen=True)
class CachePolicy:
    """How an access is cached: what `cache_modifier` and `eviction_policy` of it say."""

    cache_modifier: str = "none"
    eviction_policy: str = "evict_normal"

    def __post_init__(self) -> None:
        modifier = (plain(self.cache_modifier) or "none").removeprefix(".")
        eviction = plain(self.eviction_policy) or "evict_normal"
        if modifier not in ("none", *CACHE_MODIFIERS):
            raise ValueError(f"Unsupported cache modifier {modifier!r}")
        if eviction not in ("evict_normal", "evict_first", "evict_last"):
            raise ValueError(f"Unsupported eviction policy {eviction!r}")
        object.__setattr__(self, "cache_modifier", modifier)
        object.__setattr__(self, "eviction_policy", eviction)


@builtin
def arange(start, end, layout=None):
    """The i32 block [start, end) in `layout`, by default in one that is still to be chosen."""


@builtin
def full(shape, value, dtype, layout=None):
    """A block of `shape` filled with `value`, of type `dtype`, in `layout`."""


@builtin
def zeros(shape, dtype, layout=None):
    """A block of zeros in `layout`."""


@builtin
def full_like(input, value, shape=None, dtype=None, layout=None):
    """A block filled with `value`; what is not said of it is as in `input`."""


@builtin
def zeros_like(input, shape=None, dtype=None, layout=None):
    """A block of zeros; what is not said of it is as in `input`."""


@builtin
def convert_layout(value, layout, assert_trivial=False):
    """`value` in another layout; with `assert_trivial` an error where data would move between
    threads."""


@builtin
def set_auto_layout(value, layout):
    """`value`, whose layout is still to be chosen, in `layout`."""


@builtin
def histogram(input, num_bins, mask=None, layout=None):
    """How often each of 0 to num_bins - 1 is in a row of integers, as i32, in `layout`."""


@builtin
def load(
    pointer,
    mask=None,
    other=None,
    *,
    cache_modifier=None,
    eviction_policy=None,
    volatile=False,
    cache_policy=None,
):
    """The values at a block of pointers, in its layout; see `proton.language.load`."""


@builtin
def store(
    pointer, value, mask=None, *, cache_modifier=None, eviction_policy=None, cache_policy=None
):
    """Writes `value` where `mask` is true; operands have one layout."""


@builtin
def dot_fma(a, b, acc):
    """The dot of `a` and `b` by multiply-adds, added to `acc`, which has a blocked layout, and
    whose operands' layouts are of that."""


@builtin
def fp4_to_fp(src, elem_type, axis):
    """Bytes of two floats of 4 bits (e2m1) each, as floats; twice as many along `axis`."""


@builtin
def num_warps():
    """How many warps run this: those of the partition, a constexpr."""


@builtin
def num_ctas():
    """How many blocks of threads a program has, a constexpr."""


@builtin
def barrier(*, cluster=False):
    """All threads that run this arrive before any goes on."""


@builtin
def to_linear_layout(layout, shape):
    """The bases of a layout for a tensor of a shape: a DistributedLinearLayout, or a
    SharedLinearLayout."""


@builtin
def bank_conflicts(distr_ty, shared_ty):
    """How many more wavefronts than it needs an access of such a tensor to such memory has."""


@builtin
def inline_asm(asm, constraints="", args=(), result_types=(), is_pure=False):
    """A piece of assembly for each thread, whose operands are all registers of its tensors."""


@builtin
def expect_zero(x, mask):
    """`x`, of which the author knows that it is zero where `mask` holds: a hint."""


@builtin
def warp_specialize(functions_and_args, worker_num_warps, worker_num_regs=None):
    """Runs functions at once, each by a group of warps: the first by those that run this, the
    others by `worker_num_warps` more each, which have `worker_num_regs` registers a thread. What
    the first returns."""


@builtin
def allocate_shared_memory(element_ty, shape, layout, value=None):
    """Shared memory for a block, with `value` in it if that is given."""


class _ByType(type):
    """A value is of the class if its type is `of_type`."""

    def __new__(cls, name: str, bases: tuple[type, ...], members: dict[str, object], of_type: type):
        return super().__new__(cls, name, bases, members)

    def __init__(
        cls, name: str, bases: tuple[type, ...], members: dict[str, object], of_type: type
    ) -> None:
        super().__init__(name, bases, members)
        cls.of_type = of_type

    def __instancecheck__(cls, value: object) -> bool:
        if isinstance(value, tensor):
            return isinstance(value.type, cls.of_type)
        return issubclass(type(value), cls)


class warpgroup_mma_accumulator(metaclass=_ByType, of_type=warpgroup_mma_accumulator_type):
    """The accumulator of an asynchronous dot: `warpgroup_mma_wait` gives the tensor."""


class tensor_descriptor_im2col(metaclass=_ByType, of_type=im2col_descriptor_type):
    """What the host passes as a `TensorDescriptorIm2Col`: it has the attributes of a descriptor,
    and `tma.async_load_im2col` takes it."""


class shared_memory_descriptor(metaclass=_ByType, of_type=shared_memory_descriptor_type):
    """Shared memory, or a view of it: `dtype`, `shape`, `rank`, `numel`, `layout`,
    `nbytes_per_cta`, and the methods here."""

    @builtin
    def load(self, layout):
        """What lies there, in `layout`."""

    @builtin
    def store(self, value):
        """Writes a block of this shape and type."""

    @builtin
    def slice(self, start, length, dim=0):
        """The part from `start` on along a dimension; bounds are constexprs."""

    @builtin
    def index(self, index):
        """The part at an index of the first dimension, which it lacks."""

    @builtin
    def permute(self, order):
        """The view with dimensions in another order."""

    @builtin
    def reshape(self, shape):
        """The view of the same elements, row-major, in another shape."""

    @builtin
    def reinterpret(self, dtype=None, shape=None, layout=None):
        """The same bytes as something else."""

    @builtin
    def gather(self, indices, axis):
        """Of each element of `indices` what lies at that index along `axis`, and else at its
        own."""

    @builtin
    def scatter(self, values, indices, axis):
        """Writes each of `values` to that index along `axis`, and else to its own."""

    @builtin
    def _keep_alive(self):
        """Keeps the memory from being used again before here."""

    @builtin
    def atomic_scatter_add(self, values, indices, axis, mask=None):
        """Adds where `scatter` writes, atomically; what was there before."""

    @builtin
    def atomic_scatter_max(self, values, indices, axis, mask=None):
        """Takes the maximum; see `atomic_scatter_add`."""

    @builtin
    def atomic_scatter_min(self, values, indices, axis, mask=None):
        """Takes the minimum; see `atomic_scatter_add`."""

    @builtin
    def atomic_scatter_and(self, values, indices, axis, mask=None):
        """Bitwise and; see `atomic_scatter_add`."""

    @builtin
    def atomic_scatter_or(self, values, indices, axis, mask=None):
        """Bitwise or; see `atomic_scatter_add`."""

    @builtin
    def atomic_scatter_xor(self, values, indices, axis, mask=None):
        """Bitwise exclusive or; see `atomic_scatter_add`."""

    @builtin
    def atomic_scatter_xchg(self, values, indices, axis, mask=None):
        """Exchanges; see `atomic_scatter_add`."""


METHODS: dict[str, Builtin] = {
    name: value
    for name, value in vars(shared_memory_descriptor).items()
    if isinstance(value, Builtin)
}


# Ops that are not supported: what they are of, and what to do instead.
ABSENT: dict[Builtin, tuple[str, str]] = {}


def absent(name: str, what: str, instead: str) -> Any:
    """An op that is there by name: calling it is an error that says what it is of."""

    def op(*args, **kwargs):
        raise NotImplementedError

    op.__name__ = op.__qualname__ = name
    op.__doc__ = f"{what}, which is not supported: {instead}."
    found = builtin(op)
    ABSENT[found] = (what, instead)
    return found


class OfOtherChip:
    """A layout of a chip that is not supported: the host may make one and ask for its fields,
    `FIELDS` with their defaults, and no op takes it."""

    FIELDS: ClassVar[Mapping[str, object]] = {}

    def __init__(self, *args: object, **kwargs: object) -> None:
        self.args, self.kwargs = tuple(map(unwrap, args)), {n: unwrap(v) for n, v in kwargs.items()}
        unknown = next((name for name in kwargs if self.FIELDS and name not in self.FIELDS), None)
        if unknown is not None:
            raise TypeError(f"{type(self).__name__} has no {unknown!r}")
        vars(self).update({**self.FIELDS, **dict(zip(self.FIELDS, self.args, strict=False))})
        vars(self).update(self.kwargs)

    def __repr__(self) -> str:
        said = [*map(repr, self.args), *(f"{name}={v!r}" for name, v in self.kwargs.items())]
        return f"{type(self).__name__}({', '.join(said)})"


class ForeignModule(ModuleType):
    """A module of ops that are not supported: each name that it is asked for is one, but for those
    of `parts`. It is registered as a module, to be imported."""

    def __init__(
        self, name: str, what: str, instead: str, parts: Mapping[str, object] | None = None
    ) -> None:
        super().__init__(name)
        self.__spec__ = ModuleSpec(name, None)
        self.__path__: list[str] = []
        self._what, self._instead = what, instead
        vars(self).update(parts or {})
        sys.modules[name] = self

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        found: Any = OfOtherChip
        if not name[:1].isupper():
            found = absent(name, self._what, self._instead)
        setattr(self, name, found)
        return found
