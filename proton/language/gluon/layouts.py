"""The layouts of Gluon: which thread holds which element, and where one lies in shared memory.

A layout is a value of the host's Python and of kernels, known while compiling; names and fields are
Triton's. `linear` of one is what it is for a tensor of a shape (proton/layout/linear.py): layouts
with other names may be the same one there.

`cga_layout` and `block_bases` say what each block of a cluster has. A program runs in one block of
threads, which has it all: its threads, and its memory, hold the parts of the others beside theirs.
"""

import functools
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from math import prod
from typing import Any

from proton.language.composite import constexpr_type
from proton.language.constants import unwrap
from proton.language.function import constexpr_function
from proton.layout import LinearLayout, encodings, named

Bases = list[list[int]]
_CHUNK = 16  # bytes that are not torn by a swizzle


def plain(value: Any) -> Any:
    """A value without constexprs in it, tuples as lists."""
    value = unwrap(value)
    return [plain(part) for part in value] if isinstance(value, list | tuple) else value


class _Layout:
    """What layouts have in common: fields without constexprs, a hash, a text for keys."""

    def __post_init__(self) -> None:
        for entry in fields(self):  # type: ignore[arg-type]  # of each subclass, a dataclass
            object.__setattr__(self, entry.name, plain(getattr(self, entry.name)))
        self._check()

    def _check(self) -> None:
        """Raises AssertionError where fields do not fit."""

    def __hash__(self) -> int:
        return hash(repr(self))

    @property
    def type(self) -> constexpr_type:
        """What Triton calls it: that of a constexpr."""
        return constexpr_type(self)

    def mangle(self) -> str:
        """A text that tells it from others."""
        return repr(self)

    def format_tensor_view(self, shape: Sequence[int]) -> str:
        """Of each element of a tensor of a shape the place that holds it, as text. Raises
        ValueError of a layout that is no linear one."""
        return "\n".join(f"{index}: {place}" for index, place in _places(self, shape))

    def format_hardware_view(self, shape: Sequence[int]) -> str:
        """Of each place the element that it holds, as text."""
        return "\n".join(f"{place}: {index}" for index, place in _places(self, shape))


@functools.lru_cache(1024)
def _linear(layout: Any, *of: Any) -> LinearLayout:
    """Each op of a kernel asks for those of its values."""
    found: LinearLayout = layout._linear(*of)
    return found


class DistributedLayout(_Layout):
    """Which thread of which warp holds which element of a tensor."""

    @property
    def rank(self) -> int:
        """The dimensions of tensors that have it."""
        raise NotImplementedError

    @property
    def is_known(self) -> bool:
        """False of one that is still to be chosen."""
        return True

    def linear(self, shape: Sequence[int]) -> LinearLayout:
        """The layout of a tensor of a shape; raises ValueError where it has none."""
        return _linear(self, tuple(shape))

    def warps(self) -> int:
        """For how many warps it is."""
        return self.linear((1,) * self.rank).in_size("warp")


class SharedLayout(_Layout):
    """Where in shared memory the elements of a tensor lie."""

    @property
    def order_rank(self) -> int:
        """The dimensions that it is of: of memory with more the last ones."""
        raise NotImplementedError

    @property
    def paddings(self) -> tuple[tuple[int, int], ...]:
        """(interval, padding): so many elements are left out behind each interval."""
        return ()

    def linear(self, shape: Sequence[int], element_bits: int) -> LinearLayout:
        """Offset, in elements, to index; raises ValueError where it is none of a shape."""
        return _linear(self, tuple(shape), element_bits)


@dataclass(frozen=True, eq=True)
class _Chosen(DistributedLayout):
    @property
    def rank(self) -> int:
        raise ValueError(f"{type(self).__name__} has no rank")

    @property
    def is_known(self) -> bool:
        return False


@dataclass(frozen=True, eq=True)
class AutoLayout(_Chosen):
    """The layout that what the tensor meets has; `set_auto_layout` says it."""

    __hash__ = _Layout.__hash__


@dataclass(frozen=True, eq=True)
class CoalescedLayout(_Chosen):
    """The layout in which the memory that the tensor says, or that it came from, is accessed
    widest."""

    __hash__ = _Layout.__hash__


@dataclass(frozen=True, eq=True)
class BlockedLayout(DistributedLayout):
    """Registers, then lanes, then warps tile the tensor; `order` names the dimensions, the fastest
    first. The tile comes again where the tensor is larger."""

    size_per_thread: list[int]
    threads_per_warp: list[int]
    warps_per_cta: list[int]
    order: list[int]
    cga_layout: Bases = field(default_factory=list)
    __hash__ = _Layout.__hash__

    def _check(self) -> None:
        rank = len(self.size_per_thread)
        parts = (self.threads_per_warp, self.warps_per_cta, self.order)
        assert all(len(part) == rank for part in parts), f"fields of {self} differ in their rank"
        is_one = sorted(self.order) == list(range(rank))
        assert is_one, f"order must be a permutation of 0..(rank-1), but was {self.order}"

    @property
    def rank(self) -> int:
        return len(self.order)

    def _linear(self, shape: Sequence[int]) -> LinearLayout:
        return named.blocked(
            shape, self.size_per_thread, self.threads_per_warp, self.warps_per_cta, self.order
        )


@dataclass(frozen=True, eq=True)
class SliceLayout(DistributedLayout):
    """What a tensor has that lacks dimension `dim` of one in the layout `parent`."""

    dim: int
    parent: Any
    __hash__ = _Layout.__hash__

    def _check(self) -> None:
        if self.parent.is_known:
            rank = self.parent.rank
            assert 0 <= self.dim < rank, f"dim of {self} is not one of {rank} dimensions"

    @property
    def rank(self) -> int:
        return int(self.parent.rank) - 1

    @property
    def cga_layout(self) -> Bases:
        """Of the parent, without the dimension."""
        bases = getattr(self.parent, "cga_layout", [])
        return [[*basis[: self.dim], *basis[self.dim + 1 :]] for basis in bases]

    def _linear(self, shape: Sequence[int]) -> LinearLayout:
        whole = [*shape[: self.dim], 1, *shape[self.dim :]]
        return named.sliced(self.parent.linear(whole), self.dim)


@dataclass(frozen=True, eq=True)
class DistributedLinearLayout(DistributedLayout):
    """The bases of each power of two of a register's, a lane's, a warp's and a block's number."""

    reg_bases: Bases
    lane_bases: Bases
    warp_bases: Bases
    block_bases: Bases
    shape: list[int]
    __hash__ = _Layout.__hash__

    def _check(self) -> None:
        for basis in (*self.reg_bases, *self.lane_bases, *self.warp_bases, *self.block_bases):
            assert len(basis) == len(self.shape), f"{basis} is not of {len(self.shape)} dimensions"

    @property
    def rank(self) -> int:
        return len(self.shape)

    def _linear(self, shape: Sequence[int]) -> LinearLayout:
        registers = [*self.reg_bases, *self.block_bases]
        none: Bases = []
        parts = (registers, self.lane_bases, self.warp_bases, none)
        return encodings.of_bases(dict(zip(named.DISTRIBUTED, parts, strict=True)), shape)

    @classmethod
    def of(cls, layout: LinearLayout) -> "DistributedLinearLayout":
        """The class for a linear layout."""
        register, lane, warp, block = (
            [list(basis) for basis in layout.bases(name)] for name in named.DISTRIBUTED
        )
        return cls(register, lane, warp, block, [size for _, size in layout.outs])


@dataclass(frozen=True, eq=True)
class NVMMADistributedLayout(DistributedLayout):
    """The result of a dot on tensor cores of `version` ([2, 0]: `mma`, [3, 0]: `wgmma`)."""

    version: list[int]
    warps_per_cta: list[int]
    instr_shape: list[int]
    cga_layout: Bases = field(default_factory=list)
    __hash__ = _Layout.__hash__

    @property
    def rank(self) -> int:
        return len(self.warps_per_cta)

    def _linear(self, shape: Sequence[int]) -> LinearLayout:
        # [16, 8] or [1, 16, 8] of `mma`, [16, n, k] of `wgmma`.
        n = self.instr_shape[1] if len(self.instr_shape) > 1 else 0
        return encodings.tensor_core_result(shape, self.version[0], self.warps_per_cta, n)


@dataclass(frozen=True, eq=True)
class DotOperandLayout(DistributedLayout):
    """The left (0) or right (1) operand of a dot whose result has the layout `parent`, with
    `k_width` elements side by side."""

    operand_index: int
    parent: Any
    k_width: int
    __hash__ = _Layout.__hash__

    @property
    def rank(self) -> int:
        return int(self.parent.rank)

    @property
    def cga_layout(self) -> Bases:
        """Of the parent, without the inner dimension."""
        inner = self.rank - 1 - self.operand_index
        bases = getattr(self.parent, "cga_layout", [])
        return [[0 if axis == inner else v for axis, v in enumerate(basis)] for basis in bases]

    def _linear(self, shape: Sequence[int]) -> LinearLayout:
        side, parent = self.operand_index, self.parent
        if isinstance(parent, BlockedLayout):
            parts = (parent.size_per_thread, parent.threads_per_warp, parent.warps_per_cta)
            return encodings.blocked_operand(shape, side, *parts, parent.order)
        if not isinstance(parent, NVMMADistributedLayout):
            raise ValueError(f"{type(parent).__name__} has no operands")
        version, warps = parent.version[0], parent.warps_per_cta
        return encodings.tensor_core_operand(shape, side, version, warps, self.k_width)


# Shared memory


@dataclass(frozen=True, eq=True)
class NVMMASharedLayout(SharedLayout):
    """Memory that TMA copies and `wgmma` reads: rows of `swizzle_byte_width` bytes, in which pieces
    of 16 are exchanged by the row. `transposed`: the first dimension is the fastest."""

    swizzle_byte_width: int
    element_bitwidth: int
    rank: int = 2
    transposed: bool = False
    fp4_padded: bool = False
    cga_layout: Bases = field(default_factory=list)
    __hash__ = _Layout.__hash__

    def _check(self) -> None:
        object.__setattr__(self, "cga_layout", self.cga_layout or [])
        assert self.element_bitwidth in (8, 16, 32, 64), "element_bitwidth must be 8, 16, 32 or 64"
        assert self.swizzle_byte_width in (0, 32, 64, 128), "swizzle_byte_width: 0, 32, 64 or 128"
        if self.fp4_padded:
            is_sound = self.swizzle_byte_width == 128 and self.element_bitwidth == 8
            assert is_sound, "fp4_padded is for bytes, with a swizzle of 128"
        if self.cga_layout:
            assert len(self.cga_layout[0]) == self.rank, "cga_layout is of another rank"

    @property
    def order_rank(self) -> int:
        return self.rank

    def _linear(self, shape: Sequence[int], element_bits: int) -> LinearLayout:
        if self.fp4_padded:
            raise ValueError("fp4_padded memory is of Blackwell's tensor cores")
        size = self.element_bitwidth // 8  # of the elements that it is made for
        return encodings.nvmma_memory(shape, size, self.swizzle_byte_width, self.transposed)

    @staticmethod
    @constexpr_function
    def get_default_for(
        block_shape: Any,
        dtype: Any,
        transposed: bool = False,
        fp4_padded: bool = False,
        cga_layout: Any = None,
    ) -> "NVMMASharedLayout":
        """The widest swizzle that a block's rows have room for."""
        shape = _shape_per_cta(plain(block_shape), plain(cga_layout) or [])
        rows_first = [*shape[1:], shape[0]] if transposed else shape
        size = rows_first[-1] * (2 if fp4_padded else 1) * dtype.primitive_bitwidth // 8
        swizzle = next((s for s in named.SWIZZLES if size >= s and size % s == 0), 0)
        if len(shape) < 2 or prod(shape[:-1]) < 8:
            swizzle = 0
        bits = dtype.primitive_bitwidth
        rank = len(shape)
        return NVMMASharedLayout(swizzle, bits, rank, transposed, fp4_padded, cga_layout or [])


@dataclass(frozen=True, eq=True)
class SwizzledSharedLayout(SharedLayout):
    """Memory in which vectors of `vec` elements of the fastest dimension are exchanged by the next
    one: that of row r by r / `per_phase` mod `max_phase`."""

    vec: int
    per_phase: int
    max_phase: int
    order: list[int]
    cga_layout: Bases = field(default_factory=list)
    __hash__ = _Layout.__hash__

    @property
    def order_rank(self) -> int:
        return len(self.order)

    def _linear(self, shape: Sequence[int], element_bits: int) -> LinearLayout:
        swizzle = (self.vec, self.per_phase, self.max_phase)
        return encodings.swizzled_memory(shape, *swizzle, self.order)


@dataclass(frozen=True, eq=True)
class PaddedSharedLayout(SharedLayout):
    """Memory in which room is left behind intervals of so many elements: of each pair `[interval,
    padding]`. `offset_bases` say which element comes at an offset, paddings left out."""

    interval_padding_pairs: Bases
    offset_bases: Bases
    cga_layout: Bases
    shape: list[int]
    __hash__ = _Layout.__hash__

    def _check(self) -> None:
        pairs = self.interval_padding_pairs
        assert pairs, "there must be a pair of an interval and a padding"
        assert all(len(pair) == 2 for pair in pairs), "pairs of an interval and a padding"
        powers = all(n > 0 and not n & (n - 1) for pair in pairs for n in pair)
        assert powers, "intervals and paddings must be powers of two"
        assert len({interval for interval, _ in pairs}) == len(pairs), "an interval comes twice"
        assert self.shape, "the shape must not be empty"

    @property
    def order_rank(self) -> int:
        return len(self.shape)

    @property
    def paddings(self) -> tuple[tuple[int, int], ...]:
        return tuple((interval, padding) for interval, padding in self.interval_padding_pairs)

    def _linear(self, shape: Sequence[int], element_bits: int) -> LinearLayout:
        part = _shape_per_cta(list(shape), self.cga_layout)
        steps = [[n * size for n, size in zip(b, part, strict=True)] for b in self.cga_layout]
        return _of_offsets([*self.offset_bases, *filter(any, steps)], shape)  # no copies

    @staticmethod
    @constexpr_function
    def with_identity_for(
        interval_padding_pairs: Any, shape: Any, order: Any, cga_layout: Any = ()
    ) -> "PaddedSharedLayout":
        """Elements in the order of the dimensions `order`, the fastest first."""
        sizes = _shape_per_cta(plain(shape), plain(cga_layout))
        layout = named.shared_row_major(sizes, plain(order))
        bases = [list(basis) for basis in layout.bases("offset")]
        return PaddedSharedLayout(interval_padding_pairs, bases, cga_layout, shape)


@dataclass(frozen=True, eq=True)
class SharedLinearLayout(SharedLayout):
    """The index of each power of two of an offset, in elements."""

    offset_bases: Bases
    block_bases: Bases = field(default_factory=list)
    alignment: int = 16
    __hash__ = _Layout.__hash__

    def _check(self) -> None:
        assert self.offset_bases, "offset_bases must not be empty"
        assert self.offset_bases[0], "offset_bases must have a dimension"
        rank = len(self.offset_bases[0])
        assert all(len(basis) == rank for basis in (*self.offset_bases, *self.block_bases))
        power = self.alignment > 0 and not self.alignment & (self.alignment - 1)
        assert power, "alignment must be a positive power of two"

    @property
    def order_rank(self) -> int:
        return len(self.offset_bases[0])

    @property
    def shape(self) -> list[int]:
        """The sizes that the bases reach."""
        bases = (*self.offset_bases, *self.block_bases)
        return [1 << max(basis[axis] for basis in bases).bit_length() for axis in range(self.rank)]

    @property
    def rank(self) -> int:
        """The dimensions."""
        return self.order_rank

    def _linear(self, shape: Sequence[int], element_bits: int) -> LinearLayout:
        others = [basis for basis in self.block_bases if any(basis)]  # no copies
        return _of_offsets([*self.offset_bases, *others], shape)

    @classmethod
    def of(cls, layout: LinearLayout) -> "SharedLinearLayout":
        """The class for a linear layout of memory."""
        return cls([list(basis) for basis in layout.bases("offset")])


def warps_per_cta(layout: Any, shape: Sequence[int]) -> list[int]:
    """For how many warps along each dimension a layout of a tensor is; warps that hold copies do
    not count."""
    if isinstance(layout, DistributedLinearLayout):
        counts = [1] * len(shape)
        for axis in (
            next((a for a, step in enumerate(b) if step), None) for b in layout.warp_bases
        ):
            if axis is not None:
                counts[axis] *= 2
        return counts
    if isinstance(layout, SliceLayout | DotOperandLayout):
        return warps_per_cta(layout.parent, shape)
    return [int(warps) for warps in layout.warps_per_cta]


def _of_offsets(bases: Bases, shape: Sequence[int]) -> LinearLayout:
    outs = {named.dim(axis): size for axis, size in enumerate(shape)}
    layout = LinearLayout.of({"offset": bases}, outs)
    if not layout.is_invertible:
        raise ValueError(f"{bases} give not each element of {list(shape)} a place of its own")
    return layout


def _shape_per_cta(shape: list[int], bases: Bases) -> list[int]:
    """The part of a tensor that a block of a cluster has."""
    sizes = list(shape)
    for axis in range(len(shape)):
        sizes[axis] //= 2 * max((basis[axis] for basis in bases), default=0) or 1
    return sizes


def _places(layout: Any, shape: Sequence[int]) -> list[tuple[tuple[int, ...], str]]:
    """(index, place) of each element of a tensor, by index."""
    if isinstance(layout, _Chosen | PaddedSharedLayout):
        raise ValueError(f"{type(layout).__name__} cannot be visualized: it is no linear layout")
    is_shared = isinstance(layout, SharedLayout)
    linear = layout.linear(plain(shape), 8) if is_shared else layout.linear(plain(shape))
    found: dict[tuple[int, ...], list[str]] = {}
    names = linear.in_names
    for number in range(1 << linear.total_in_bits):
        place, left = {}, number
        for name in names:
            place[name] = left % linear.in_size(name)
            left //= linear.in_size(name)
        index = tuple(linear.apply(**place)[named.dim(axis)] for axis in range(len(shape)))
        text = ", ".join(f"{name}={value}" for name, value in place.items() if name != "block")
        found.setdefault(index, []).append(text)
    return [(index, " | ".join(places)) for index, places in sorted(found.items())]
