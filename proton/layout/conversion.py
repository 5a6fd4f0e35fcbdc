"""How a tensor gets from one distributed layout to another: the plan that code is made from.

`plan` answers with the cheapest of three ways:

- `Permutation`: each thread renames its own registers,
- `Shuffle`: each register is read from another lane of the warp, one shuffle a register; which of
  two registers of that lane it is may depend on the lane that reads, if elements are bytes, of
  which a shuffle brings both, or a word or two, of which two shuffles do,
- `Exchange`: through shared memory, in a layout chosen so that neither the stores nor the loads
  of a warp meet in a bank.

The layout of an exchange follows section 5.4 of Zhou et al., "Linear Layouts" (optimal
swizzling). Its lowest bits are a vector V: what both sides have in registers, and beyond that what
one side has, up to 16 bytes. That side moves all of V by one access, the other what is common.
Write A for the span of what the lanes of one phase of a store address and B for that of a load,
both beyond V. Two lanes conflict if they differ in the *segment* bits of an offset but not in its
*bank* bits. So the segment bits must select a subspace that meets neither V + A nor V + B: sums
a + b of a vector of A \\ B and one of B \\ A are in neither, nor is anything outside of A + B.
Banks take the rest.

Of the choices of V the one is taken whose accesses occupy shared memory for the least time, and
then the one with the fewest. If V is the run of 16 bytes that one side has, and the other uses no
more than a word of what is common, matrices may take the place of the narrow accesses of that side
(`matrix_access.py`). Where lanes of one side have rows of 16 bytes that are columns of the other's,
V is such a row, and both move matrices, one side transposed.
"""

import functools
import operator
from dataclasses import dataclass

from proton.base.chips.chip import ACCESS_BYTES
from proton.layout.banks import BANK_BYTES, ROW_BYTES, extend, flat, served
from proton.layout.linear import LinearLayout, log2
from proton.layout.matrix_access import TRANSPOSED_BYTES
from proton.layout.thread_memory import access_cost

# Bytes of a thread that are each shuffled twice, and one of the two selected: four instructions for
# a word, where memory takes a store, a barrier and a load, with their addresses. Not timed.
_MOST_CHOSEN = 8


@dataclass(frozen=True)
class Permutation:
    """Target register r takes source register `sources[r]` of the same thread."""

    sources: tuple[int, ...]


@dataclass(frozen=True)
class Shuffle:
    """Target register r takes source register `sources[r]` of the lane `lanes`(lane) XOR
    `warps`(warp) XOR `flips[r]`.

    `lanes` and `warps` hold the source lane of each power of two of the target's lane and warp.
    Where a lane's number has an odd count of the bits `choosers`, it takes register `sources[r]`
    XOR `choice` instead.
    """

    sources: tuple[int, ...]
    flips: tuple[int, ...]
    lanes: tuple[int, ...]
    warps: tuple[int, ...]
    choice: int = 0
    choosers: int = 0

    def shared_words(self) -> tuple[int, int] | None:
        """Where halves of a word of bytes come from two lanes, with a choice: what lies between the
        lanes, and a bit of it that no lane's or warp's number changes. If lanes that take the other
        choice begin with the other half, each lane is asked by one other at a time, and that bit of
        its own number tells which half by. None where halves do not lie so."""
        words = [
            slice(first, first + BANK_BYTES) for first in range(0, len(self.sources), BANK_BYTES)
        ]
        between = {self.flips[word][0] ^ self.flips[word][2] for word in words}
        same = all(self.sources[word][:2] == self.sources[word][2:] for word in words)
        moved = functools.reduce(operator.or_, self.lanes + self.warps, 0)
        (flip, *others) = between
        free = flip & ~moved
        return (flip, free & -free) if same and free and not others else None


@dataclass(frozen=True)
class Exchange:
    """Through shared memory: `shared` maps offsets (elements) to indices; a store takes
    `store_vector` elements and a load `load_vector`, which are consecutive offsets."""

    shared: LinearLayout
    store_vector: int
    load_vector: int

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
def plan(
    source: LinearLayout, target: LinearLayout, element_bytes: int, has_stmatrix: bool = False
) -> Plan:
    """The cheapest way from `source` to `target`, two layouts of one tensor. Where an exchange puts
    elements depends on `has_stmatrix`; how much memory it takes does not."""
    needed = route(source, target)
    if all(_is_own(needed, target, level) for level in ("block", "warp")):
        registers = 1 << target.in_bits("register")
        places = [needed.apply(register=register) for register in range(registers)]
        sources = tuple(place["register"] for place in places)
        choice, choosers = _choice(needed)
        if _is_own(needed, target, "lane") and not choosers:
            return Permutation(sources)
        is_byte = element_bytes == 1 and registers >= BANK_BYTES
        is_little = registers * element_bytes <= _MOST_CHOSEN and not is_byte
        if not choosers or (choice and (is_little or _are_halves(needed, element_bytes))):
            column = needed.out_names.index("lane")
            lanes, warps = (
                tuple(basis[column] for basis in needed.bases(name)) for name in ("lane", "warp")
            )
            flips = tuple(place["lane"] for place in places)
            return Shuffle(sources, flips, lanes, warps, choice, choosers)
    return exchange(source, target, element_bytes, has_stmatrix)


def _is_own(needed: LinearLayout, target: LinearLayout, level: str) -> bool:
    """True if every thread finds its elements at its own coordinate of `level`.

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


def _choice(needed: LinearLayout) -> tuple[int, int]:
    """What a thread's place changes of the source register, and the bits of lanes that do; (0, all)
    where it is not one change, or warps make it."""
    column = needed.out_names.index("register")
    changes = [basis[column] for basis in needed.bases("lane")]
    others = [b[column] for n, bases in needed.ins if n not in ("register", "lane") for b in bases]
    found = {change for change in changes if change}
    if len(found) > 1 or any(others):
        return 0, (1 << len(changes)) - 1
    return max(found, default=0), sum(1 << bit for bit, change in enumerate(changes) if change)


def _are_halves(needed: LinearLayout, element_bytes: int) -> bool:
    """True if elements are bytes, and those of half a word come from one lane."""
    registers = needed.bases("register")
    column = needed.out_names.index("lane")
    return element_bytes == 1 and len(registers) >= log2(BANK_BYTES) and not registers[0][column]


# Exchanges


@functools.cache
def exchange(
    source: LinearLayout, target: LinearLayout, element_bytes: int, has_stmatrix: bool = False
) -> Exchange:
    """Shared memory between two layouts, free of bank conflicts where lanes hold no copies."""
    ways = _ways(source.reordered(source.in_names, target.out_names), target, element_bytes)
    return min(ways, key=lambda way: way.cost(element_bytes, has_stmatrix)).exchange


@functools.cache
def exchange_cost(
    source: LinearLayout, target: LinearLayout, element_bytes: int
) -> tuple[int, int]:
    """(wavefronts of shared memory that a warp's accesses take, the accesses of a thread)."""
    ways = _ways(source.reordered(source.in_names, target.out_names), target, element_bytes)
    return min(way.cost(element_bytes, True) for way in ways)


@dataclass(frozen=True)
class Parts:
    """An exchange one part of the tensor after the other, through the same memory: the layouts of a
    part, and for each the registers of the source and of the target that have it."""

    source: LinearLayout
    target: LinearLayout
    registers: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]


@functools.cache
def in_parts(source: LinearLayout, target: LinearLayout, count: int) -> Parts | None:
    """An exchange in `count` parts, a power of 2. A part is what both sides have in registers of
    their own: what differs in a bit of the element's number that is one of the register's on either
    side, and nothing else's. None where there are not so many such bits."""
    source = source.reordered(source.in_names, target.out_names)
    bits = _separate(source, target)[-log2(count) :] if count > 1 else []
    if 1 << len(bits) != count:
        return None
    mine, theirs = _registers_by_part(source, bits), _registers_by_part(target, bits)
    return Parts(_part(source, bits), _part(target, bits), tuple(zip(mine, theirs, strict=True)))


def _separate(source: LinearLayout, target: LinearLayout) -> list[int]:
    """The bits of which each is a register's on both sides, and nothing else's; lowest first."""
    shared = set(flat(source, "register")) & set(flat(target, "register"))
    return sorted(
        column
        for column in shared
        if column.bit_count() == 1
        and all(sum(c & column != 0 for c in side.columns) == 1 for side in (source, target))
    )


def _part(layout: LinearLayout, bits: list[int]) -> LinearLayout:
    """A layout without some bits of the element's number, which is the only dimension left."""
    kept = [bit for bit in range(layout.total_out_bits) if 1 << bit not in bits]
    ins = {
        name: [
            (sum((column >> bit & 1) << place for place, bit in enumerate(kept)),)
            for column in flat(layout, name)
            if column not in bits
        ]
        for name in layout.in_names
    }
    return LinearLayout.of(ins, {"element": 1 << len(kept)})


def _registers_by_part(layout: LinearLayout, bits: list[int]) -> list[tuple[int, ...]]:
    """The registers that have each part, in the order of the part's layout."""
    columns = flat(layout, "register")
    found: list[list[int]] = [[] for _ in range(1 << len(bits))]
    for register in range(1 << len(columns)):
        own = [column for bit, column in enumerate(columns) if register >> bit & 1]
        found[sum(1 << number for number, bit in enumerate(bits) if bit in own)].append(register)
    return list(map(tuple, found))


@dataclass(frozen=True)
class _Way:
    """An exchange, and the offsets of what each side has."""

    exchange: Exchange
    stores: LinearLayout
    loads: LinearLayout

    def cost(self, element_bytes: int, has_stmatrix: bool) -> tuple[int, int]:
        """(wavefronts of shared memory that a warp's accesses take, the accesses of a thread)."""
        vectors = self.exchange.store_vector, self.exchange.load_vector
        stores = access_cost(self.stores, element_bytes, vectors[0], has_stmatrix)
        loads = access_cost(self.loads, element_bytes, vectors[1])
        return stores[0] + loads[0], stores[1] + loads[1]


@functools.lru_cache(64)  # 17 KB each, of which `exchange` and `exchange_cost` keep what matters
def _ways(source: LinearLayout, target: LinearLayout, element_bytes: int) -> list[_Way]:
    """An exchange for each choice of the vector that may be the best."""
    most = log2(ACCESS_BYTES // element_bytes)
    both = _common(source, target, most)
    choices = {(tuple(both), len(both)): None}
    if len(both) < most:
        word = log2(max(1, BANK_BYTES // element_bytes))
        for wide, narrow in ((target, source), (source, target)):
            for common in (both, both[:word], []):
                vector = (common + extend(common, flat(wide, "register")))[:most]
                if common == both or _are_rows(vector, narrow, len(common)):
                    choices[tuple(vector), len(common)] = None
    for straight, turned in ((source, target), (target, source)):
        row = _row(straight)
        is_column = row == tuple(flat(turned, "lane")[2:]) and len(extend([], [*row])) == len(row)
        if element_bytes == TRANSPOSED_BYTES and is_column:
            choices[row, 0] = None
    return [_arranged(source, target, *choice, element_bytes) for choice in choices]


def _are_rows(vector: list[int], layout: LinearLayout, common: int) -> bool:
    """True if a vector, beyond what a thread has of it, is what lanes of a matrix have in a row."""
    lanes = flat(layout, "lane")
    return vector[common:] == lanes[:2] or vector[common:] == lanes[2:]


def _row(layout: LinearLayout) -> tuple[int, ...]:
    """What the lanes of a straight matrix of 16-bit elements have in a row."""
    return *flat(layout, "register")[:1], *flat(layout, "lane")[:2]


def _arranged(
    source: LinearLayout,
    target: LinearLayout,
    vector: tuple[int, ...],
    common: int,
    element_bytes: int,
) -> _Way:
    """The exchange whose lowest bits are `vector`, the first `common` of them those of both."""
    bits = target.total_out_bits
    sizes = [1 << (len(vector) if _has(side, vector) else common) for side in (source, target)]
    stores, loads = (
        _phase(side, vector, size * element_bytes)
        for side, size in zip((source, target), sizes, strict=True)
    )
    width = (1 << len(vector)) * element_bytes
    word_bits = max(0, log2(BANK_BYTES) - log2(width))  # elements that share a bank's word
    bank_bits = log2(ROW_BYTES // max(BANK_BYTES, width))
    anything = [*stores, *loads, *(1 << bit for bit in range(bits))]
    word = extend([*vector], [c for c in stores if c in loads] + anything)[:word_bits]
    inner = [*vector, *word]  # the bits below those that choose a bank
    segments = _segments(inner, stores, loads, bits, bits - len(inner) - bank_bits)
    order = [*inner, *extend([*inner, *segments], anything), *segments]
    shared = LinearLayout.of({"offset": [target._unflatten(c) for c in order]}, dict(target.outs))
    offsets = shared.invert()
    places = source.compose(offsets), target.compose(offsets)
    store, load = (
        size if _is_whole(side, size) else 1 for side, size in zip(places, sizes, strict=True)
    )
    return _Way(Exchange(shared, store, load), *places)


def _has(layout: LinearLayout, vector: tuple[int, ...]) -> bool:
    """True if each thread has all of a vector in registers."""
    return set(vector) <= set(flat(layout, "register"))


def _is_whole(places: LinearLayout, vector: int) -> bool:
    """True if no lane or warp permutes the elements of a vector."""
    return all(
        basis[0] % vector == 0
        for name, bases in places.ins
        if name != "register"
        for basis in bases
    )


def _common(source: LinearLayout, target: LinearLayout, most: int) -> list[int]:
    """Bases that are register bases on both sides, at most so many: the vector of an access."""
    theirs = set(flat(target, "register"))
    return extend([], [c for c in flat(source, "register") if c in theirs])[:most]


def _phase(layout: LinearLayout, vector: tuple[int, ...], access_bytes: int) -> list[int]:
    """What the lanes add that are served together."""
    lanes, registers = flat(layout, "lane"), flat(layout, "register")
    if tuple(lanes[2:]) == vector and registers:  # the rows of transposed matrices
        return [*registers[:1], *lanes[:2]]
    if _row(layout) == vector:  # of straight ones
        return lanes[2:]
    return [column for column in lanes[: served(access_bytes)] if column]


def _segments(
    vector: list[int], stores: list[int], loads: list[int], bits: int, count: int
) -> list[int]:
    """`count` vectors whose span meets neither span(vector, stores) nor span(vector, loads), as
    long as there are so many."""
    first = extend([*vector, *loads], stores)  # of A, modulo V + B
    second = extend([*vector, *stores], loads)  # of B, modulo V + A
    outside = extend([*vector, *stores, *loads], [1 << bit for bit in reversed(range(bits))])
    pairs = [a ^ b for a, b in zip(first, second, strict=False)]
    return (outside + pairs)[: max(0, count)]
