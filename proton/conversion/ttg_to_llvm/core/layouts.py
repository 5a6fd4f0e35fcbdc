"""Ops that choose, rename or move registers: creation, shapes, layout conversions."""

import functools
import operator
from collections.abc import Sequence

import numpy as np

from proton.analysis.scratch import stored_bytes
from proton.conversion.ttg_to_llvm.core import values as v
from proton.conversion.ttg_to_llvm.core.lowering import Lowering, Site, llvm_type, lowers
from proton.dialect import tt, ttg
from proton.dialect.attributes import EXCHANGE_PARTS
from proton.dialect.mlir import Type, Value, llvm
from proton.layout import LinearLayout, shapes
from proton.layout.banks import BANK_BYTES, apart, exchanges
from proton.layout.conversion import Exchange, Parts, Permutation, Shuffle, in_parts, plan
from proton.layout.conversion import exchange as plan_exchange
from proton.layout.linear import log2
from proton.layout.matrix_access import MatrixAccess, matrix_access
from proton.layout.shared_view import SharedView

MATRIX_ROW_BYTES = 16  # that an instruction for matrices takes at an address


@lowers(tt.GetProgramIdOp)
def _program_id(ctx: Lowering, site: Site) -> list[Value]:
    return [ctx.primitives.program_id(site.number("axis"))]


@lowers(tt.GetNumProgramsOp)
def _num_programs(ctx: Lowering, site: Site) -> list[Value]:
    return [ctx.primitives.program_count(site.number("axis"))]


@lowers(tt.MakeRangeOp)
def _make_range(ctx: Lowering, site: Site) -> list[Value]:
    indices = ctx.threads.indices(ttg.layout_of(site.result_type), 0)
    start = site.number("start")
    return [v.add(indices, v.constant(start, indices.type)) if start else indices]


@lowers(tt.SplatOp)
def _splat(ctx: Lowering, site: Site) -> list[Value]:
    return [v.splat(site.operands[0], v.count_of_type(llvm_type(site.result_type)))]


@lowers(tt.UnsplatOp)
def _unsplat(ctx: Lowering, site: Site) -> list[Value]:
    return [v.extract(site.operands[0], 0)]


@lowers(tt.ExpandDimsOp, tt.ReshapeOp, tt.TransOp)
def _same_registers(ctx: Lowering, site: Site) -> list[Value]:
    """Only the index of an element changes, and not its place."""
    return site.operands


@lowers(tt.BroadcastOp)
def _broadcast(ctx: Lowering, site: Site) -> list[Value]:
    source, target = ttg.layout_of(site.operand_types[0]), ttg.layout_of(site.result_type)
    narrow = shapes.broadcast_source(target, tuple(size for _, size in source.outs))
    picks = _narrow_registers(target, narrow)
    return [v.shuffle(site.operands[0], picks)]


def _narrow_registers(target: LinearLayout, narrow: LinearLayout) -> list[int]:
    """For each register of a broadcast's result the register of its source."""
    sizes = np.array([size for _, size in narrow.outs])
    wide = target.table("register").reshape(-1, len(sizes)) % sizes
    rows = narrow.table("register").reshape(-1, len(sizes))
    known = {tuple(row): number for number, row in enumerate(rows)}
    return [known[tuple(row)] for row in wide]


@lowers(tt.JoinOp)
def _join(ctx: Lowering, site: Site) -> list[Value]:
    left, right = site.operands
    count = v.count_of(left)
    picks = [number + side * count for number in range(count) for side in (0, 1)]
    return [v.shuffle(left, picks, right)]


@lowers(tt.SplitOp)
def _split(ctx: Lowering, site: Site) -> list[Value]:
    bit = shapes.split_bit(ttg.layout_of(site.operand_types[0]))
    assert bit is not None, "the verifier of the pipeline converts the operand of a split"
    (value,) = site.operands
    registers = range(v.count_of(value))
    return [v.shuffle(value, [r for r in registers if r >> bit & 1 == side]) for side in (0, 1)]


# Conversions


@lowers(ttg.ConvertLayoutOp)
def _convert_layout(ctx: Lowering, site: Site) -> list[Value]:
    source, target = ttg.layout_of(site.operand_types[0]), ttg.layout_of(site.result_type)
    (value,) = site.operands
    way = plan(source, target, stored_bytes(v.element(value)), ctx.chip.has_matrix_stores)
    match way:
        case Permutation(sources):
            return [v.shuffle(value, sources)]
        case Shuffle():
            return [_shuffled(ctx, value, way)]
        case Exchange():
            if EXCHANGE_PARTS in site.op.attributes:
                parts = in_parts(source, target, site.number(EXCHANGE_PARTS))
                assert parts is not None, "allocate-shared-memory has asked"
                return [_exchanged_in_parts(ctx, value, parts, ctx.scratch(site))]
            return exchange(ctx, [value], [way], source, target, [ctx.scratch(site)])


def _exchanged_in_parts(ctx: Lowering, value: Value, parts: Parts, offset: int) -> Value:
    """A value through shared memory at `offset`, a part after the other."""
    bytes_ = stored_bytes(v.element(value))
    way = plan_exchange(parts.source, parts.target, bytes_, ctx.chip.has_matrix_stores)
    pieces: list[Value] = []
    order: list[int] = []
    for number, (own, theirs) in enumerate(parts.registers):
        if number:
            ctx.threads.barrier()  # the last part has been read
        piece = v.shuffle(value, own)
        pieces += exchange(ctx, [piece], [way], parts.source, parts.target, [offset])
        order += theirs
    place = {register: number for number, register in enumerate(order)}
    return v.shuffle(v.concatenate(pieces), [place[register] for register in range(len(order))])


def _shuffled(ctx: Lowering, value: Value, way: Shuffle) -> Value:
    """Every target register from one register of another lane, or one of two."""
    is_byte = stored_bytes(v.element(value)) == 1
    if way.choosers and is_byte and len(way.sources) >= BANK_BYTES:
        return _halves_shuffled(ctx, value, way)
    moved = _moved_by_lanes(ctx, value, way, way.sources)
    if not way.choosers:
        return moved
    takes_other = v.compare("ne", _by_choice(ctx, way, 1), v.i32(0))
    other = _moved_by_lanes(ctx, value, way, _others(way, way.sources))
    return v.select(takes_other, other, moved)


def _moved_by_lanes(ctx: Lowering, value: Value, way: Shuffle, sources: Sequence[int]) -> Value:
    """Each of `sources` from the lane that has it."""
    base = ctx.threads.bits(way.lanes + way.warps)
    by_flip: dict[int, list[int]] = {}
    for register, flip in enumerate(way.flips):
        by_flip.setdefault(flip, []).append(register)
    parts, order = [], []
    for flip, registers in by_flip.items():
        lane = v.binary(llvm.XOrOp, base, v.i32(flip)) if flip else base
        chosen = v.shuffle(value, [sources[r] for r in registers])
        parts += v.to_elements(ctx.primitives.shuffle_lanes("idx", chosen, lane))
        order += registers
    return v.from_elements([parts[order.index(r)] for r in range(len(way.flips))])


# Of the bytes of two words, for `prmt`: the low halves of both, the high ones; what is changed in
# these to take the other half of each word, and to take one word for the other.
_LOW_HALVES, _HIGH_HALVES, _OTHER_HALF, _OTHER_WORD = 0x5410, 0x7632, 0x2222, 0x4444


def _halves_shuffled(ctx: Lowering, value: Value, way: Shuffle) -> Value:
    """Bytes, two of which come from one lane, each shuffle moving four."""
    element, bytes_ = v.element(value), v.like(value, v.integer(8))
    is_bits = v.bits_of(element) == 1
    value = v.create(llvm.ZExtOp, bytes_, value) if is_bits else v.bitcast(value, bytes_)
    by_flip: dict[int, list[int]] = {}
    for first in range(0, len(way.sources), BANK_BYTES):
        by_flip.setdefault(way.flips[first], []).append(first)
    shared = way.shared_words()
    words: dict[int, Value] = {}
    for flip, firsts in by_flip.items():
        if shared is not None and len(firsts) % 2 == 0:
            words |= _words_in_pairs(ctx, value, way, firsts, flip, *shared)
        else:
            words |= _words_alone(ctx, value, way, firsts)
    joined = v.from_elements([words[first] for first in sorted(words)])
    moved = v.from_words(joined, v.vector(len(way.sources), v.integer(8)))
    target = v.vector(len(way.sources), element)
    return v.create(llvm.TruncOp, target, moved) if is_bits else v.bitcast(moved, target)


def _by_choice(ctx: Lowering, way: Shuffle, change: int) -> Value:
    """`change` in lanes that take the other choice, else 0, i32."""
    bits = range(log2(ctx.threads.lanes))
    return ctx.threads.bits(tuple(change if way.choosers >> bit & 1 else 0 for bit in bits))


def _words_alone(ctx: Lowering, value: Value, way: Shuffle, firsts: list[int]) -> dict[int, Value]:
    """The words that begin at registers `firsts`. A shuffle moves half of one, with what another
    lane takes of it in its place; the lane that reads knows which is its own."""
    base = ctx.threads.bits(way.lanes + way.warps)
    halves = v.binary(llvm.XOrOp, _by_choice(ctx, way, _OTHER_HALF), v.i32(_LOW_HALVES))

    def half(register: int) -> Value:
        pair, flip = way.sources[register : register + 2], way.flips[register]
        lane = v.binary(llvm.XOrOp, base, v.i32(flip)) if flip else base
        word = ctx.primitives.shuffle_lanes("idx", _word(value, [*pair, *_others(way, pair)]), lane)
        return v.extract(word, 0)

    return {
        first: ctx.primitives.permuted_bytes(half(first), half(first + BANK_BYTES // 2), halves)
        for first in firsts
    }


def _words_in_pairs(
    ctx: Lowering,
    value: Value,
    way: Shuffle,
    firsts: list[int],
    flip: int,
    between: int,
    bit: int,
) -> dict[int, Value]:
    """The same, where a shuffle moves halves of two words to each lane. It reads two lanes, one
    after the other, and a lane that takes the other choice in the other order: so either lane is
    read by one alone, and by `bit` of its number it knows by which."""
    base = ctx.threads.bits(way.lanes + way.warps)
    start = v.binary(llvm.XOrOp, base, _by_choice(ctx, way, between))
    lanes = [v.binary(llvm.XOrOp, start, v.i32(change)) for change in (flip, flip ^ between)]
    own = v.binary(llvm.AndOp, ctx.threads.number, v.i32(bit))
    is_second = v.compare("ne", own, v.i32(flip & bit))
    order = _by_choice(ctx, way, _OTHER_WORD)
    low, high = (v.binary(llvm.XOrOp, order, v.i32(h)) for h in (_LOW_HALVES, _HIGH_HALVES))
    words = {}
    for pair in zip(firsts[::2], firsts[1::2], strict=True):
        registers = [r for first in pair for r in way.sources[first : first + 2]]
        one, other = (_word(value, chosen) for chosen in (registers, _others(way, registers)))
        asked = v.select(is_second, other, one), v.select(is_second, one, other)
        first, second = (
            v.extract(ctx.primitives.shuffle_lanes("idx", word, lane), 0)
            for word, lane in zip(asked, lanes, strict=True)
        )
        for register, halves in zip(pair, (low, high), strict=True):
            words[register] = ctx.primitives.permuted_bytes(first, second, halves)
    return words


def _word(value: Value, registers: Sequence[int]) -> Value:
    return v.to_words(v.shuffle(value, registers))


def _others(way: Shuffle, registers: Sequence[int]) -> list[int]:
    """What lanes of the other choice take."""
    return [register ^ way.choice for register in registers]


def exchange(
    ctx: Lowering,
    values: list[Value],
    ways: list[Exchange],
    source: LinearLayout,
    target: LinearLayout,
    offsets: list[int],
) -> list[Value]:
    """Values in the layout `target`, through shared memory at `offsets`, with one barrier."""
    for value, way, offset in zip(values, ways, offsets, strict=True):
        places = source.invert_and_compose(way.shared)
        warps_write_shared(ctx, value, places, way.store_vector, ctx.shared(offset))
    ctx.threads.barrier()
    return [
        warps_read_shared(
            ctx,
            v.element(value),
            target.invert_and_compose(way.shared),
            way.load_vector,
            ctx.shared(offset),
        )
        for value, way, offset in zip(values, ways, offsets, strict=True)
    ]


def stored_type(element: Type) -> Type:
    """The type of an element in shared memory: bits are bytes."""
    return v.integer(8) if v.bits_of(element) == 1 else element


def addresses(
    ctx: Lowering,
    places: LinearLayout,
    registers: list[int],
    base: Value,
    element: Type,
    view: SharedView | None = None,
) -> list[Value]:
    """The address of the first element of each access, given the offsets of all places, from the
    start of a view on. Of an access's own offset the bits that lanes and warps have, too, are
    flipped in theirs; the others are a constant beside it, which the instruction adds. Offsets are
    in bytes before the base is added: an access of shared memory adds a uniform register, too, but
    shifts nothing."""
    size = stored_bytes(element)
    bases = [b[0] * size for name in ("lane", "warp") for b in places.bases(name)]
    thread = ctx.threads.bits(tuple(bases))
    own = [places.apply(register=register)["offset"] for register in registers]
    own = [(offset ^ view.start if view is not None else offset) * size for offset in own]
    if view is not None and view.paddings:
        return _padded_addresses(thread, own, base, size, view)
    common = functools.reduce(operator.or_, bases, 0)
    starts: dict[int, Value] = {}
    found = []
    for offset in own:
        flip, beside = offset & common, offset & ~common
        if flip not in starts:
            flipped = v.binary(llvm.XOrOp, thread, v.i32(flip)) if flip else thread
            starts[flip] = v.offset_pointer(base, flipped, v.integer(8))
        found.append(v.bytes_behind(starts[flip], beside))
    return found


def _padded_addresses(
    thread: Value, own: list[int], base: Value, size: int, view: SharedView
) -> list[Value]:
    """The same where room is left between the offsets; `own` are in bytes."""
    found = []
    for offset in own:
        place = v.binary(llvm.XOrOp, thread, v.i32(offset)) if offset else thread
        padded = place
        for interval, padding in view.paddings:
            count = v.binary(llvm.LShrOp, place, v.i32(log2(interval * size)))
            padded = v.add(padded, v.binary(llvm.ShlOp, count, v.i32(log2(padding * size))))
        found.append(v.offset_pointer(base, padded, v.integer(8)))
    return found


def groups(places: LinearLayout, vector: int) -> list[list[int]]:
    """Registers by access: those of one access have consecutive offsets; copies are left out."""
    offsets: dict[int, int] = {}
    for register in range(places.in_size("register")):
        offsets.setdefault(places.apply(register=register)["offset"], register)
    starts = [offset for offset in offsets if offset % vector == 0]
    return [[offsets[start + n] for n in range(vector)] for start in starts]


def write_shared(
    ctx: Lowering,
    value: Value,
    places: LinearLayout,
    vector: int,
    base: Value,
    view: SharedView | None = None,
) -> None:
    """Stores a thread's registers at their offsets."""
    element = v.element(value)
    stored = stored_type(element)
    if stored != element:
        value = v.create(llvm.ZExtOp, v.vector(v.count_of(value), stored), value)
    parts = groups(places, vector)
    pieces = [v.shuffle(value, group) for group in parts]
    ways = _exchanges(places, vector, view, stored)
    pieces = _exchanged(ctx, pieces, places, parts, ways)
    starts = addresses(ctx, apart(places, ways), [part[0] for part in parts], base, stored, view)
    for piece, address in zip(pieces, starts, strict=True):
        v.store(address, piece, vector * stored_bytes(stored))


def read_shared(
    ctx: Lowering,
    element: Type,
    places: LinearLayout,
    vector: int,
    base: Value,
    view: SharedView | None = None,
) -> Value:
    """The registers of such offsets, of type `element`, from shared memory."""
    stored = stored_type(element)
    parts = groups(places, vector)
    ways = _exchanges(places, vector, view, stored)
    moved = apart(places, ways)
    starts = addresses(ctx, moved, [part[0] for part in parts], base, stored, view)
    type_ = v.vector(vector, stored)
    loaded = [v.load(a, type_, vector * stored_bytes(stored)) for a in starts]
    loaded = _exchanged(ctx, loaded, places, parts, ways)
    whole = v.concatenate(loaded)
    position = {register: n for n, register in enumerate(r for part in parts for r in part)}
    first: dict[int, int] = {}  # offset -> the register that has it
    picks = []
    for register in range(places.in_size("register")):
        offset = places.apply(register=register)["offset"]
        picks.append(position[first.setdefault(offset, register)])
    whole = v.shuffle(whole, picks)
    if stored != element:
        whole = v.create(llvm.TruncOp, v.vector(v.count_of(whole), element), whole)
    return whole


def _exchanges(
    places: LinearLayout, vector: int, view: SharedView | None, element: Type
) -> tuple[tuple[int, int], ...]:
    """(lane bit, register bit) of what keeps lanes apart; padding does it by itself."""
    if view is not None and view.paddings:
        return ()
    return exchanges(places, vector, stored_bytes(element))


def _exchanged(
    ctx: Lowering,
    pieces: list[Value],
    places: LinearLayout,
    parts: list[list[int]],
    ways: tuple[tuple[int, int], ...],
) -> list[Value]:
    """What is accessed at once, where lanes with a bit set take that of another register."""
    offsets = [places.apply(register=part[0])["offset"] for part in parts]
    type_ = pieces[0].type
    for lane, register in ways:
        (flip,) = places.bases("register")[register]
        others = [offsets.index(offset ^ flip) for offset in offsets]
        bit = v.binary(llvm.AndOp, ctx.threads.number, v.i32(1 << lane))
        is_set, words = v.compare("ne", bit, v.i32(0)), [v.to_words(piece) for piece in pieces]
        pieces = [
            v.from_words(v.select(is_set, words[other], word), type_)
            for word, other in zip(words, others, strict=True)
        ]
    return pieces


def warps_write_shared(
    ctx: Lowering,
    value: Value,
    places: LinearLayout,
    vector: int,
    base: Value,
    view: SharedView | None = None,
) -> None:
    """`write_shared` where no thread of a warp is left out: by matrices, if they lie so."""
    element = v.element(value)
    way = _matrices(places, view, element) if ctx.chip.has_matrix_stores else None
    if way is None:
        write_shared(ctx, value, places, vector, base, view)
        return
    words = v.to_elements(v.to_words(v.shuffle(value, way.registers)))
    starts = addresses(ctx, way.rows, list(range(way.instructions)), base, element, view)
    for number, address in enumerate(starts):
        chosen = words[number * way.matrices : (number + 1) * way.matrices]
        ctx.primitives.store_matrices(address, chosen, way.is_transposed)


def _matrices(places: LinearLayout, view: SharedView | None, element: Type) -> MatrixAccess | None:
    bytes_ = stored_bytes(element)
    if stored_type(element) != element:
        return None
    if view is not None and (view.paddings or view.start * bytes_ % MATRIX_ROW_BYTES):
        return None
    return matrix_access(places, bytes_)


def warps_read_shared(
    ctx: Lowering,
    element: Type,
    places: LinearLayout,
    vector: int,
    base: Value,
    view: SharedView | None = None,
) -> Value:
    """`read_shared` where no thread of a warp is left out: by matrices, if they lie so."""
    way = _matrices(places, view, element) if ctx.chip.has_matrix_loads else None
    if way is None:
        return read_shared(ctx, element, places, vector, base, view)
    words: list[Value] = []
    rows = list(range(way.instructions))
    for address in addresses(ctx, way.rows, rows, base, element, view):
        words += ctx.primitives.load_matrices(address, way.matrices, way.is_transposed)
    found = v.from_words(v.from_elements(words), v.vector(len(way.registers), element))
    place = {register: number for number, register in enumerate(way.registers)}
    return v.shuffle(found, [place[register] for register in range(len(place))])
