"""Linear layouts: maps from bits of a place to bits of a tensor index, by exclusive or.

A distributed tensor is spread over registers, lanes, warps and blocks; a tensor in shared
memory over offsets. In both cases where an element lies is a function of the bits of its place,
and for every layout that hardware uses that function is linear over GF(2): the index of the
place 0b101 is the index of 0b100 XOR the index of 0b001. So a layout is fixed by its *bases*,
the indices of the places with a single bit set. For example the 4 x 4 tile

            columns
             0   1   2   3
    row 0   t0  t1  t4  t5        place = thread, element (row, column)
    row 1   t2  t3  t6  t7        bases of thread: t1 -> (0, 1), t2 -> (1, 0), t4 -> (0, 2),
    row 2   t8  t9  t12 t13                        t8 -> (2, 0)
    row 3   t10 t11 t14 t15

puts thread 0b0110 = t2 XOR t4 at (1, 0) XOR (0, 2) = (1, 2), as the picture says. Composition,
inversion, slicing and bank conflicts become products, inverses and ranks of small 0/1 matrices.

Source: Zhou et al., "Linear Layouts: Robust Code Generation of Efficient Tensor Computation
Using F2". Sizes are powers of two throughout.
"""

import functools
import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

Basis = tuple[int, ...]


class NotDivisible(ValueError):
    """`divide_left` found no quotient; the message says which basis stands in the way."""


def log2(size: int) -> int:
    """The exponent of a power of two; raises ValueError for anything else."""
    if size < 1 or size & (size - 1):
        raise ValueError(f"sizes are powers of two, got {size}")
    return size.bit_length() - 1


def _combined(columns: Sequence[int], number: int) -> int:
    """The columns of the bits that are set in a number, combined."""
    flat = 0
    while number:
        bit = number.bit_length() - 1
        flat ^= columns[bit]
        number ^= 1 << bit
    return flat


@dataclass(frozen=True)
class LinearLayout:
    """A linear map from named input dimensions to named output dimensions.

    `ins` is a tuple of (name, bases), the bases lowest bit first, each with one coordinate for
    every output dimension; `outs` a tuple of (name, size). Dimensions are ordered, the first
    one being the minor in `flat` views and matrices.
    """

    ins: tuple[tuple[str, tuple[Basis, ...]], ...]
    outs: tuple[tuple[str, int], ...]

    def __post_init__(self) -> None:
        sizes = [size for _, size in self.outs]
        for size in sizes:
            log2(size)
        for name, bases in self.ins:
            for basis in bases:
                if len(basis) != len(sizes):
                    raise ValueError(f"a basis of {name} has {len(basis)} of {len(sizes)} values")
                for value, (out, size) in zip(basis, self.outs, strict=True):
                    if not 0 <= value < size:
                        raise ValueError(f"basis {basis} of {name} leaves {out} of size {size}")

    @functools.cached_property
    def _hash(self) -> int:
        return hash((self.ins, self.outs))

    def __hash__(self) -> int:
        """Computed once: layouts are what most results are remembered by."""
        return self._hash

    # Making

    @staticmethod
    def of(ins: Mapping[str, Sequence[Sequence[int]]], outs: Mapping[str, int]) -> "LinearLayout":
        """A layout from mappings."""
        return LinearLayout(
            tuple((name, tuple(tuple(b) for b in bases)) for name, bases in ins.items()),
            tuple(outs.items()),
        )

    @staticmethod
    def identity(size: int, in_dim: str, out_dim: str) -> "LinearLayout":
        """in_dim i -> out_dim i, for i < size."""
        bases = tuple((1 << bit,) for bit in range(log2(size)))
        return LinearLayout(((in_dim, bases),), ((out_dim, size),))

    @staticmethod
    def zeros(size: int, in_dim: str, out_dim: str, out_size: int = 1) -> "LinearLayout":
        """in_dim i -> 0: `size` copies of one element."""
        return LinearLayout(((in_dim, ((0,),) * log2(size)),), ((out_dim, out_size),))

    @staticmethod
    def empty() -> "LinearLayout":
        """The unit of `*`."""
        return LinearLayout((), ())

    # Asking

    @functools.cached_property
    def in_names(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.ins)

    @functools.cached_property
    def out_names(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.outs)

    def bases(self, in_dim: str) -> tuple[Basis, ...]:
        """The bases of an input dimension; none where it is absent."""
        return dict(self.ins).get(in_dim, ())

    def in_bits(self, in_dim: str) -> int:
        return len(self.bases(in_dim))

    def in_size(self, in_dim: str) -> int:
        return 1 << self.in_bits(in_dim)

    def out_size(self, out_dim: str) -> int:
        return dict(self.outs).get(out_dim, 1)

    @property
    def total_in_bits(self) -> int:
        return sum(len(bases) for _, bases in self.ins)

    @property
    def total_out_bits(self) -> int:
        return sum(log2(size) for _, size in self.outs)

    def apply(self, **place: int) -> dict[str, int]:
        """The output coordinates of a place; dimensions left out are 0."""
        columns, flat = self._columns_of, 0
        for name, value in place.items():
            if name not in columns:
                unknown = min(set(place) - set(columns))
                raise ValueError(
                    f"no input dimension is named {unknown}; there are {self.in_names}"
                )
            own = columns[name]
            if not 0 <= value < 1 << len(own):
                raise ValueError(f"{name} must lie in [0, {1 << len(own)}), got {value}")
            flat ^= _combined(own, value)
        return dict(zip(self.out_names, self._unflatten(flat), strict=True))

    def table(self, *in_dims: str) -> np.ndarray:
        """All values at once: shape (*sizes of in_dims, number of outputs), int64; input
        dimensions that are not named are 0."""
        shape = [self.in_size(name) for name in in_dims]
        result = np.zeros((*shape, len(self.outs)), np.int64)
        for axis, name in enumerate(in_dims):
            along = [-1 if d == axis else 1 for d in range(len(shape))]
            index = np.arange(shape[axis]).reshape(along)
            for bit, basis in enumerate(self.bases(name)):
                on = (index >> bit & 1).astype(bool)[..., None]
                result ^= np.where(on, np.array(basis, np.int64), 0)
        return result

    # Matrices: columns are flat output bits of each input bit, as Python ints

    def _flatten(self, basis: Basis) -> int:
        flat = 0
        for value, (shift, _) in zip(basis, self._fields, strict=True):
            flat |= value << shift
        return flat

    def _unflatten(self, flat: int) -> Basis:
        return tuple([flat >> shift & mask for shift, mask in self._fields])

    @functools.cached_property
    def _fields(self) -> tuple[tuple[int, int], ...]:
        """Where each output dimension lies in flat bits: (shift, mask)."""
        found, shift = [], 0
        for _, size in self.outs:
            found.append((shift, size - 1))
            shift += log2(size)
        return tuple(found)

    @functools.cached_property
    def _columns_of(self) -> dict[str, tuple[int, ...]]:
        """The columns of each input dimension."""
        return {name: tuple(map(self._flatten, bases)) for name, bases in self.ins}

    @functools.cached_property
    def columns(self) -> tuple[int, ...]:
        """One int for each input bit: its output bits, the first output dimension lowest."""
        return tuple(self._flatten(basis) for _, bases in self.ins for basis in bases)

    @functools.cached_property
    def rank(self) -> int:
        """The rank of the matrix."""
        return len(_echelon(self.columns))

    @property
    def is_surjective(self) -> bool:
        """True if every element has a place."""
        return self.rank == self.total_out_bits

    @property
    def is_injective(self) -> bool:
        """True if no element has two places."""
        return self.rank == self.total_in_bits

    @property
    def is_invertible(self) -> bool:
        return self.is_surjective and self.is_injective

    def free_bits(self) -> dict[str, int]:
        """For each input dimension the mask of bits that add nothing to the bits before them:
        places that differ only there hold copies (for zero bases) or are spanned by others."""
        masks: dict[str, int] = {}
        pivots: dict[int, int] = {}
        for name, bases in self.ins:
            masks[name] = 0
            for bit, basis in enumerate(bases):
                if not _insert(pivots, self._flatten(basis)):
                    masks[name] |= 1 << bit
        return masks

    # Combining

    def __mul__(self, other: "LinearLayout") -> "LinearLayout":
        """The product: `other` repeats the tile of `self`.

        Bits of an input dimension of `other` come above those of `self`; so do those of an
        output dimension. Sizes multiply. For example identity(4, "lane", "x") *
        identity(2, "warp", "x") has lane bits 0 and 1 of x, and warp bit 2.
        """
        outs = dict(self.outs)
        for name, size in other.outs:
            outs[name] = outs.get(name, 1) * size
        names = list(outs)

        def lift(layout: LinearLayout, basis: Basis, shifts: Mapping[str, int]) -> Basis:
            values = dict(zip(layout.out_names, basis, strict=True))
            return tuple(values.get(name, 0) << shifts.get(name, 0) for name in names)

        above = {name: log2(size) for name, size in self.outs}
        ins: dict[str, list[Basis]] = {}
        for name, bases in self.ins:
            ins.setdefault(name, []).extend(lift(self, basis, {}) for basis in bases)
        for name, bases in other.ins:
            ins.setdefault(name, []).extend(lift(other, basis, above) for basis in bases)
        return LinearLayout.of(ins, outs)

    def compose(self, outer: "LinearLayout") -> "LinearLayout":
        """x -> outer(self(x)); the output dimensions of self are the inputs of `outer`."""
        if set(self.out_names) != set(outer.in_names):
            raise ValueError(f"cannot feed {self.out_names} into {outer.in_names}")
        for name, size in self.outs:
            if size > outer.in_size(name):
                raise ValueError(f"{name} of size {size} does not fit in {outer.in_size(name)}")
        columns = [outer._columns_of[name] for name in self.out_names]

        def through(basis: Basis) -> Basis:
            parts = map(_combined, columns, basis)
            return outer._unflatten(functools.reduce(operator.xor, parts, 0))

        ins = tuple((name, tuple(map(through, bases))) for name, bases in self.ins)
        return LinearLayout(ins, outer.outs)

    def invert(self) -> "LinearLayout":
        """The map from elements to places; raises ValueError unless there is exactly one."""
        if not self.is_invertible:
            raise ValueError(
                f"only a bijection has an inverse: rank {self.rank}, {self.total_in_bits} input "
                f"bits, {self.total_out_bits} output bits"
            )
        return self.pseudo_invert()

    def pseudo_invert(self) -> "LinearLayout":
        """A map from elements to one of their places, for surjective layouts.

        Of several places the one with the least bits set in the order of the input dimensions
        is taken: copies (zero bases) are never chosen.
        """
        return _pseudo_inverse(self)

    def invert_and_compose(self, other: "LinearLayout") -> "LinearLayout":
        """x -> a place of `other` that holds the element at place x of self.

        This is how data is moved: self says what a thread has, the result where in `other` it
        belongs. `other` must be surjective onto the same output dimensions.
        """
        if dict(self.outs) != dict(other.outs):
            raise ValueError(f"outputs differ: {self.outs} and {other.outs}")
        return self.compose(other.pseudo_invert())

    def divide_left(self, tile: "LinearLayout") -> "LinearLayout":
        """The quotient q with self == tile * q; raises NotDivisible where there is none.

        If a layout divides by what an instruction handles, the instruction applies, and q says
        how often and where.
        """
        for name in tile.in_names:
            if tile.in_bits(name) and name not in self.in_names:
                raise NotDivisible(f"the tile's input {name} is not in the layout")
        for name, size in tile.outs:
            if (own := self.out_size(name)) < size:
                raise NotDivisible(f"{name} of size {own} is smaller than the tile's")
        shifts = {name: log2(size) for name, size in tile.outs}
        outs = {name: size >> shifts.get(name, 0) for name, size in self.outs}
        ins: dict[str, list[Basis]] = {}
        for name, bases in self.ins:
            count = tile.in_bits(name)
            self._check_tile(tile, name, bases[:count], count)
            ins[name] = [self._above_tile(name, basis, shifts) for basis in bases[count:]]
        return LinearLayout.of(ins, outs)

    def _check_tile(
        self, tile: "LinearLayout", name: str, bases: tuple[Basis, ...], count: int
    ) -> None:
        """The low bases of a dimension must be the tile's."""
        if len(bases) < count:
            raise NotDivisible(f"{name} has {len(bases)} bits, the tile {count}")
        for bit, (basis, expected) in enumerate(zip(bases, tile.bases(name), strict=True)):
            wanted = dict(zip(tile.out_names, expected, strict=True))
            if any(v != wanted.get(out, 0) for out, v in zip(self.out_names, basis, strict=True)):
                raise NotDivisible(f"bit {bit} of {name} is {basis}, in the tile {expected}")

    def _above_tile(self, name: str, basis: Basis, shifts: Mapping[str, int]) -> Basis:
        """A basis beyond the tile, in units of the tile."""
        for out, value in zip(self.out_names, basis, strict=True):
            if value & ((1 << shifts.get(out, 0)) - 1):
                raise NotDivisible(f"basis {basis} of {name} reaches into the tile")
        return tuple(v >> shifts.get(o, 0) for o, v in zip(self.out_names, basis, strict=True))

    # Reshaping

    def sublayout(self, in_dims: Sequence[str], out_dims: Sequence[str]) -> "LinearLayout":
        """The part of the map from some inputs (others 0) to some outputs (others dropped)."""
        keep = [self.out_names.index(name) for name in out_dims]
        ins = {name: [tuple(b[k] for k in keep) for b in self.bases(name)] for name in in_dims}
        return LinearLayout.of(ins, {name: self.out_size(name) for name in out_dims})

    def sliced(self, out_dim: str) -> "LinearLayout":
        """Without an output dimension: places that differed only there hold copies."""
        return self.sublayout(self.in_names, [name for name in self.out_names if name != out_dim])

    def reordered(self, ins: Sequence[str], outs: Sequence[str]) -> "LinearLayout":
        """The same map with its dimensions in another order."""
        if sorted(ins) != sorted(self.in_names) or sorted(outs) != sorted(self.out_names):
            raise ValueError(f"must reorder {self.in_names} and {self.out_names}")
        return self.sublayout(ins, outs)

    def renamed(self, names: Mapping[str, str]) -> "LinearLayout":
        """The same map with dimensions renamed."""
        return LinearLayout(
            tuple((names.get(name, name), bases) for name, bases in self.ins),
            tuple((names.get(name, name), size) for name, size in self.outs),
        )

    def reshaped(self, outs: Mapping[str, int]) -> "LinearLayout":
        """The same flat output in other dimensions, the first being the minor one."""
        target = LinearLayout((), tuple(outs.items()))
        if target.total_out_bits != self.total_out_bits:
            raise ValueError(f"cannot reshape {self.outs} to {tuple(outs.items())}")
        ins = {
            name: [target._unflatten(self._flatten(basis)) for basis in bases]
            for name, bases in self.ins
        }
        return LinearLayout.of(ins, outs)

    def without_free_bits(self, in_dim: str) -> "LinearLayout":
        """Without the zero bases of an input dimension: each copy once."""
        ins = {name: [b for b in bases if name != in_dim or any(b)] for name, bases in self.ins}
        return LinearLayout.of(ins, dict(self.outs))

    def first_registers(self) -> list[int]:
        """Of each of a thread's registers the first that holds the same element."""
        copies = self.free_bits().get("register", 0)
        return [register & ~copies for register in range(self.in_size("register"))]

    def __str__(self) -> str:
        lines = [f"-> {', '.join(f'{name}[{size}]' for name, size in self.outs)}"]
        for name, bases in self.ins:
            shown = ", ".join(f"{1 << bit} -> {basis}" for bit, basis in enumerate(bases))
            lines.append(f"  {name}: {shown or 'one place'}")
        return "\n".join(lines)


# Linear algebra over GF(2); vectors are ints


def _insert(pivots: dict[int, int], vector: int) -> bool:
    """Reduces a vector by the pivots; keeps it if something is left."""
    while vector:
        top = vector.bit_length() - 1
        if top not in pivots:
            pivots[top] = vector
            return True
        vector ^= pivots[top]
    return False


def _echelon(columns: Sequence[int]) -> dict[int, int]:
    """Pivots of the span, by their highest bit."""
    pivots: dict[int, int] = {}
    for column in columns:
        _insert(pivots, column)
    return pivots


def _solve(columns: Sequence[int], count: int) -> list[int]:
    """For each unit vector e_i, i < count, a combination of columns (as a bit mask) that sums to
    it. The columns must span all of them; earlier columns are preferred."""
    pivots: dict[int, tuple[int, int]] = {}  # highest bit -> (vector, mask of columns)
    for position, column in enumerate(columns):
        vector, mask = column, 1 << position
        while vector:
            top = vector.bit_length() - 1
            if top not in pivots:
                pivots[top] = vector, mask
                break
            vector, mask = vector ^ pivots[top][0], mask ^ pivots[top][1]
    solutions = []
    for bit in range(count):
        vector, mask = 1 << bit, 0
        while vector:
            pivot, combination = pivots[vector.bit_length() - 1]
            vector, mask = vector ^ pivot, mask ^ combination
        solutions.append(mask)
    return solutions


@functools.lru_cache(1024)
def _pseudo_inverse(layout: LinearLayout) -> LinearLayout:
    """Each view of memory asks for that of its layout."""
    if not layout.is_surjective:
        raise ValueError(f"rank {layout.rank} covers {layout.total_out_bits} output bits not")
    solutions = _solve(layout.columns, layout.total_out_bits)
    sizes = {name: 1 << len(bases) for name, bases in layout.ins}
    places = LinearLayout((), tuple(sizes.items()))
    ins: dict[str, list[Basis]] = {}
    bit = 0
    for name, size in layout.outs:
        count = log2(size)
        ins[name] = [places._unflatten(flat) for flat in solutions[bit : bit + count]]
        bit += count
    return LinearLayout.of(ins, sizes)
