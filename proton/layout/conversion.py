"""How a tensor gets from one distributed layout to another: the plan that code is made from.

`plan` answers with the cheapest of three ways:

- `Permutation`: each thread renames its own registers,
- `Shuffle`: each register is read from another lane of the warp, one shuffle a register,
- `Exchange`: through shared memory, in a layout chosen so that neither the stores nor the loads
  of a warp meet in a bank.

The layout of an exchange follows section 5.4 of Zhou et al., "Linear Layouts" (optimal
swizzling). Write A for the span of what the lanes of one phase of a store address and B for that
of a load, both beyond the common vector V. Two lanes conflict if they differ in the *segment*
bits of an offset but not in its *bank* bits. So the segment bits must select a subspace that meets
neither V + A nor V + B: sums a + b of a vector of A \\ B and one of B \\ A are in neither, nor is
anything outside of A + B. Banks take the rest.
"""

import functools
from dataclasses import dataclass

from proton.layout.linear import LinearLayout, _insert, log2
from proton.layout.named import WARP_SIZE

BANK_BYTES = 4
ROW_BYTES = 128  # all banks
MAX_ACCESS_BYTES = 16


@dataclass(frozen=True)
class Permutation:
    """Target register r takes source register `sources[r]` of the same thread."""

    sources: tuple[int, ...]


@dataclass(frozen=True)
class Shuffle:
    """Target register r takes source register `sources[r]` of the lane `lanes`(lane) XOR
    `warps`(warp) XOR `flips[r]`.

    `lanes` and `warps` hold the source lane of each power of two of the target's lane and warp.
    """

    sources: tuple[int, ...]
    flips: tuple[int, ...]
    lanes: tuple[int, ...]
    warps: tuple[int, ...]


@dataclass(frozen=True)
class Exchange:
    """Through shared memory: `shared` maps offsets (elements) to indices; a store and a load take
    `vector` elements, which are consecutive offsets."""

    shared: LinearLayout
    vector: int

    @property
    def elements(self) -> int:
        """The size of the scratch memory."""
        return 1 << self.shared.total_in_bits


Plan = Permutation | Shuffle | Exchange


def route(source: LinearLayout, target: LinearLayout) -> LinearLayout:
    """The place in `source` that each place of `target` takes its element from.

    Where the source holds copies, a thread takes its own, or its warp's.
    """
    needed = target.invert_and_compose(source)
    columns = {name: needed.out_names.index(name) for name in needed.out_names}
    free = source.free_bits()
    ins = {}
    for name, bases in needed.ins:
        fixed = []
        for bit, basis in enumerate(bases):
            values = list(basis)
            if name in columns and name != "register" and free.get(name, 0) >> bit & 1:
                own = source.bases(name)[bit]
                if not any(own):  # a copy: any value of this bit names the same element
                    values[columns[name]] |= 1 << bit
            fixed.append(tuple(values))
        ins[name] = fixed
    return LinearLayout.of(ins, dict(needed.outs))


@functools.cache
def plan(source: LinearLayout, target: LinearLayout, element_bytes: int) -> Plan:
    """The cheapest way from `source` to `target`, two layouts of one tensor."""
    needed = route(source, target)
    if all(_is_own(needed, target, level) for level in ("block", "warp")):
        registers = 1 << target.in_bits("register")
        places = [needed.apply(register=register) for register in range(registers)]
        sources = tuple(place["register"] for place in places)
        if _is_own(needed, target, "lane") and _registers_alike(needed):
            return Permutation(sources)
        if _registers_alike(needed):
            column = needed.out_names.index("lane")
            lanes, warps = (
                tuple(basis[column] for basis in needed.bases(name)) for name in ("lane", "warp")
            )
            return Shuffle(sources, tuple(place["lane"] for place in places), lanes, warps)
    return exchange(source, target, element_bytes)


def _is_own(needed: LinearLayout, target: LinearLayout, level: str) -> bool:
    """Whether every thread finds its elements at its own coordinate of `level`.

    A bit of the target whose basis is zero may have any: it holds a copy.
    """
    column = needed.out_names.index(level)
    for name, bases in needed.ins:
        for bit, (basis, element) in enumerate(zip(bases, target.bases(name), strict=True)):
            own = 1 << bit if name == level else 0
            is_copy = name == level and not any(element)
            if basis[column] != own and not (is_copy and basis[column] == 0):
                return False
    return True


def _registers_alike(needed: LinearLayout) -> bool:
    """Whether the source register depends on the target register alone."""
    column = needed.out_names.index("register")
    return all(
        basis[column] == 0 for name, bases in needed.ins if name != "register" for basis in bases
    )


# Exchanges


@functools.cache
def exchange(source: LinearLayout, target: LinearLayout, element_bytes: int) -> Exchange:
    """Shared memory between two layouts, free of bank conflicts where lanes hold no copies."""
    names = target.out_names
    source = source.reordered(source.in_names, names)
    bits = target.total_out_bits
    vector = _common(source, target, log2(MAX_ACCESS_BYTES // element_bytes))
    access = (1 << len(vector)) * element_bytes
    word_bits = max(0, log2(BANK_BYTES) - log2(access))  # elements that share a bank's word
    bank_bits = log2(ROW_BYTES // max(BANK_BYTES, access))
    stores = _phase(source, access)
    loads = _phase(target, access)
    anything = [*stores, *loads, *(1 << bit for bit in range(bits))]
    word = _extend(vector, [c for c in stores if c in loads] + anything)[:word_bits]
    inner = [*vector, *word]  # the bits below those that choose a bank
    segments = _segments(inner, stores, loads, bits, bits - len(inner) - bank_bits)
    order = [*inner, *_extend([*inner, *segments], anything), *segments]
    shared = LinearLayout.of({"offset": [target._unflatten(c) for c in order]}, dict(target.outs))
    size = 1 << len(vector)
    whole = all(_is_whole(layout.invert_and_compose(shared), size) for layout in (source, target))
    return Exchange(shared, size if whole else 1)


def _is_whole(places: LinearLayout, vector: int) -> bool:
    """Whether no lane or warp permutes the elements of a vector."""
    return all(
        basis[0] % vector == 0
        for name, bases in places.ins
        if name != "register"
        for basis in bases
    )


def _extend(basis: list[int], candidates: list[int]) -> list[int]:
    """The candidates that are independent of the basis and of those before them."""
    pivots: dict[int, int] = {}
    for column in basis:
        _insert(pivots, column)
    return [column for column in candidates if _insert(pivots, column)]


def _flat(layout: LinearLayout, in_dim: str) -> list[int]:
    return [layout._flatten(basis) for basis in layout.bases(in_dim)]


def _common(source: LinearLayout, target: LinearLayout, most: int) -> list[int]:
    """Bases that are register bases on both sides, at most so many: the vector of an access."""
    theirs = set(_flat(target, "register"))
    return _extend([], [c for c in _flat(source, "register") if c in theirs])[:most]


def _phase(layout: LinearLayout, access_bytes: int) -> list[int]:
    """What the lanes add that are served together: a warp's, a half's, a quarter's."""
    lanes = _flat(layout, "lane")
    served = log2(min(WARP_SIZE, ROW_BYTES // max(BANK_BYTES, access_bytes)))
    return [column for column in lanes[:served] if column]


def _segments(
    vector: list[int], stores: list[int], loads: list[int], bits: int, count: int
) -> list[int]:
    """`count` vectors whose span meets neither span(vector, stores) nor span(vector, loads), as
    long as there are so many."""
    first = _extend([*vector, *loads], stores)  # of A, modulo V + B
    second = _extend([*vector, *stores], loads)  # of B, modulo V + A
    outside = _extend([*vector, *stores, *loads], [1 << bit for bit in reversed(range(bits))])
    pairs = [a ^ b for a, b in zip(first, second, strict=False)]
    return (outside + pairs)[: max(0, count)]
