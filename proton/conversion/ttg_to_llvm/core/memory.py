"""Loads and stores: up to 16 bytes an access.

Consecutive registers whose elements lie side by side go in one access. Without a mask that is an
`llvm.load` of a vector; with one it is a predicated access of the target's primitives: registers
that are masked off keep `other`.
"""

from collections.abc import Callable, Sequence

from proton.conversion.ttg_to_llvm.core import values as v
from proton.conversion.ttg_to_llvm.core.lowering import Lowering, Site, is_float8, lowers
from proton.conversion.ttg_to_llvm.core.scalars import picked
from proton.dialect import tt
from proton.dialect.attributes import RECOMPUTED
from proton.dialect.mlir import Type, Value, ir, llvm
from proton.dialect.tt_memory import is_volatile
from proton.dialect.ttg import is_tensor, layout_of


def _registers(value: Value) -> Value:
    """A scalar as a vector of one register."""
    if v.is_vector(value.type):
        return value
    return v.insert(v.poison(v.vector(1, value.type)), value, 0)


def _optional(site: Site, place: int) -> Value | None:
    """The registers of an optional operand; None where it is not there."""
    value = site.optional(place)
    return None if value is None else _registers(value)


def _like_source(value: Value, type_: Type) -> Value:
    """The vector as it was asked for: a scalar where the op had no tensor."""
    return value if is_tensor(type_) else v.extract(value, 0)


def _words(bits: int) -> tuple[int, int]:
    """(words, bits of a word) of an access of so many bits."""
    if bits <= 16:
        return 1, bits
    return max(1, bits // 32), 32


class _Access:
    """The shape of one access: how many elements, in which words."""

    def __init__(self, site: Site, pointer_type: Type) -> None:
        element = tt.pointee_of_type(pointer_type)
        self.element = v.integer(8) if is_float8(element) else element
        if isinstance(element, tt.PointerType):
            self.element = v.pointer(v.GLOBAL)
        self.count = site.access
        self.bits = v.bits_of(self.element) * self.count
        self.words, self.word_bits = _words(self.bits)
        is_word = isinstance(self.element, ir.F32Type)
        self.in_memory = self.element if is_word else v.integer(self.word_bits)
        self.word = v.integer(16) if self.word_bits == 8 else self.in_memory
        self.vector = v.vector(self.count, self.element)
        self.alignment = self.bits // 8
        self.adjacent = max(site.adjacent, self.count)
        cache, evict = site.text("cache"), site.text("evict")
        # An instruction takes one of the two: an eviction priority is but a hint.
        self.modifiers = cache or evict
        self.plain = not self.modifiers and not is_volatile(site.op)

    def address(self, ctx: Lowering, pointers: Value, start: int) -> tuple[Value, int]:
        """A pointer, and how many bytes behind it the access of a register is: of registers that
        are adjacent all have the pointer of the first."""
        ahead = start % self.adjacent
        return ctx.scalars.element(pointers, start - ahead), ahead * self.alignment // self.count

    def to_words(self, registers: Value) -> list[Value]:
        """The words of registers, those of one access after those of the other."""
        count = v.count_of(registers)
        if v.is_pointer(self.element):
            registers = v.create(llvm.PtrToIntOp, v.vector(count, v.integer(64)), registers)
        words = v.vector(count // self.count * self.words, self.in_memory)
        found = v.to_elements(v.bitcast(registers, words))
        if self.word_bits == 8:
            return [v.create(llvm.ZExtOp, self.word, byte) for byte in found]
        return found

    def from_words(self, words: list[Value]) -> Value:
        """The registers that the words of accesses are."""
        count = len(words) // self.words * self.count
        if self.word_bits == 8:
            words = [v.create(llvm.TruncOp, self.in_memory, word) for word in words]
        packed, type_ = v.from_elements(words), v.vector(count, self.element)
        if v.is_pointer(self.element):
            packed = v.bitcast(packed, v.vector(count, v.integer(64)))
            return v.create(llvm.IntToPtrOp, type_, packed)
        return v.bitcast(packed, type_)


def group(value: Value, start: int, count: int) -> Value:
    """Some registers that follow each other."""
    return v.shuffle(value, range(start, start + count))


def each(value: Value, width: int) -> Value:
    """The first of every `width` registers."""
    return value if width == 1 else v.shuffle(value, range(0, v.count_of(value), width))


@lowers(tt.LoadOp)
def _load(ctx: Lowering, site: Site) -> list[Value]:
    """Registers with equal addresses are loaded once."""
    pointers = each(_registers(site.operands[0]), site.width)
    mask, other = (
        value and each(value, site.width) for value in (_optional(site, 1), _optional(site, 2))
    )
    access = _Access(site, site.operand_types[0])
    count = v.count_of(pointers)
    first = [_first(site, start, access.count) for start in range(0, count, access.count)]
    starts = sorted(set(first))
    places = ((start, *access.address(ctx, pointers, start)) for start in starts)
    if mask is None and access.plain:
        groups = [
            v.load(v.bytes_behind(address, offset), access.vector, access.alignment)
            for _, address, offset in places
        ]
        loaded = v.concatenate(groups)
    else:
        loaded = _predicated(ctx, site, access, list(places), mask, other)
    picks = [
        starts.index(start) * access.count + ahead
        for start in first
        for ahead in range(access.count)
        for _ in range(site.width)
    ]
    return [_like_source(v.shuffle(loaded, picks), site.result_type)]


def _first(site: Site, start: int, count: int) -> int:
    """The first register of the first access with the addresses of one that begins at `start`."""
    return site.equal[start] & -count if site.equal else start


def _predicated(
    ctx: Lowering,
    site: Site,
    access: _Access,
    places: Sequence[tuple[int, Value, int]],
    mask: Value | None,
    other: Value | None,
) -> Value:
    """The registers that accesses load, one behind the other."""
    condition = conditions(ctx, mask, [start for start, _, _ in places])
    modifiers = "volatile" if is_volatile(site.op) else access.modifiers
    kept = access.to_words(other) if mask is not None and other is not None else None
    words: list[Value] = []
    for start, address, offset in places:
        at = start // access.count * access.words
        words += ctx.primitives.load(
            address,
            access.word,
            access.words,
            bits=access.word_bits,
            modifiers=modifiers,
            predicate=condition(start),
            otherwise=_kept(access, mask, kept, at),
            offset=offset,
        )
    return access.from_words(words)


def _kept(
    access: _Access, mask: Value | None, words: Sequence[Value] | None, start: int
) -> Sequence[Value]:
    """The words that the registers of an access keep where they are masked off."""
    if mask is None:
        return []
    if words is None:
        return [v.constant(0, access.word)] * access.words
    return words[start : start + access.words]


def conditions(
    ctx: Lowering, mask: Value | None, starts: Sequence[int]
) -> Callable[[int], Value | None]:
    """What gives the element of a mask for each access. Where these are more than a thread has
    predicates, each is computed where it is asked for: by the first op that does, whose conditions
    are bits of words for the others."""
    if mask is None:
        return lambda start: None
    picks = {start: picked(mask, start) for start in starts}
    if len(set(picks.values())) <= ctx.primitives.PREDICATES:
        return lambda start: v.extract(mask, start)
    conditions = ctx.scalars.conditions(tuple(picks.values()), ctx.primitives.bit)
    return lambda start: conditions(picks[start])


@lowers(tt.StoreOp)
def _store(ctx: Lowering, site: Site) -> list[Value]:
    pointers, stored = map(_registers, site.operands[:2])
    mask = _optional(site, 2)
    access = _Access(site, site.operand_types[0])
    type_ = site.operand_types[0]
    owner = ctx.threads.owns(layout_of(type_)) if is_tensor(type_) else first_thread(ctx)
    starts = range(0, v.count_of(pointers), access.count)
    places = ((start, *access.address(ctx, pointers, start)) for start in starts)
    if mask is None and owner is None and access.plain:
        for start, address, offset in places:
            part = group(stored, start, access.count)
            v.store(v.bytes_behind(address, offset), part, access.alignment)
        return []
    condition = conditions(ctx, mask, starts)
    words = access.to_words(stored)
    for number, (start, address, offset) in enumerate(places):
        ctx.primitives.store(
            address,
            words[number * access.words : (number + 1) * access.words],
            bits=access.word_bits,
            modifiers=access.modifiers,
            predicate=both(condition(start), owner),
            offset=offset,
        )
    return []


def first_thread(ctx: Lowering) -> Value:
    """Whether this is the program's first thread: it does what is done once."""
    return v.compare("eq", ctx.threads.number, v.i32(0))


def both(left: Value | None, right: Value | None) -> Value | None:
    """The conjunction of two conditions; None is true."""
    if left is None or right is None:
        return right if left is None else left
    return v.binary(llvm.AndOp, left, right)


@lowers(tt.AddPtrOp)
def _addptr(ctx: Lowering, site: Site) -> list[Value]:
    base, offset = site.operands
    element = tt.pointee_of_type(site.operand_types[0])
    if isinstance(element, tt.PointerType):
        element = v.integer(64)
    elif is_float8(element):
        element = v.integer(8)
    if RECOMPUTED in site.op.attributes:
        return [_recomputed(ctx, base, offset, max(1, v.bits_of(element) // 8))]
    return [v.offset_pointer(base, offset, element)]


def _recomputed(ctx: Lowering, base: Value, offset: Value, size: int) -> Value:
    """Pointers by an instruction each, which LLVM takes for what it is: of the sums it would have
    the loop carry each by itself, or keep each offset in 64 bits."""
    made: dict[tuple[Value, Value], Value] = {}
    found = []
    for index in range(v.count_of(base)):
        start, ahead = ctx.scalars.constant_apart(ctx.scalars.element(base, index))
        place, more = ctx.scalars.constant_apart(ctx.scalars.element(offset, index))
        if (start, place) not in made:
            is_narrow = v.bits_of(place.type) < 32
            wide = v.create(llvm.SExtOp, v.integer(32), place) if is_narrow else place
            made[start, place] = ctx.primitives.address(start, wide, size)
        found.append(made[start, place])
        found[-1] = v.bytes_behind(found[-1], ahead + more * size)
    return v.from_elements(found)


@lowers(tt.BitcastOp)
def _bitcast(ctx: Lowering, site: Site) -> list[Value]:
    return site.operands


@lowers(tt.IntToPtrOp)
def _int_to_ptr(ctx: Lowering, site: Site) -> list[Value]:
    (value,) = site.operands
    return [v.create(llvm.IntToPtrOp, v.like(value, v.pointer(v.GLOBAL)), value)]


@lowers(tt.PtrToIntOp)
def _ptr_to_int(ctx: Lowering, site: Site) -> list[Value]:
    (value,) = site.operands
    return [v.create(llvm.PtrToIntOp, v.like(value, v.integer(64)), value)]
