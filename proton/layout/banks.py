"""Banks of shared memory: what an access of a warp costs, and how its lanes keep apart.

Shared memory serves 128 bytes at a time, 4 from each of 32 banks: a warp's access of 4 bytes a
lane at once, of 8 the halves of the warp one after the other, of 16 its quarters (the lanes of one
*phase*). Lanes of one phase that ask one bank for different words wait for each other.

Where the offsets are linear over the bits of a lane's number, so are the banks, and the lanes meet
as often as the rank of the banks falls short of that of the offsets. Then *exchanges* keep them
apart: lanes with bit l set take register i XOR 2^r where the others take i, and 2^r is an offset
that brings them to banks of their own. An exchange is a select for each word: a multiprocessor has
four units for these, and one for shared memory.
"""

from proton.layout.linear import LinearLayout, _insert, log2

BANK_BYTES = 4
ROW_BYTES = 128  # all banks


def served(access_bytes: int) -> int:
    """Bits of a lane's number in which those differ that are served together: a warp's, a half's,
    a quarter's."""
    return log2(ROW_BYTES // max(BANK_BYTES, access_bytes))


def wavefronts(lanes: list[int], access_bytes: int, element_bytes: int) -> int:
    """How often all banks are asked for one access of a warp, whose lanes add these offsets."""
    width = max(BANK_BYTES, access_bytes)
    phase = lanes[: served(access_bytes)]
    numbers = [offset * element_bytes // width for offset in phase]
    conflicts = len(extend([], numbers)) - len(extend([], _banks(numbers, width)))
    return 1 << (max(0, len(lanes) - served(access_bytes)) + conflicts)


def exchanges(places: LinearLayout, vector: int, element_bytes: int) -> tuple[tuple[int, int], ...]:
    """(lane bit, register bit) of all exchanges that keep lanes apart. `places`: the offsets of
    registers, lanes and warps; an access takes `vector` consecutive ones."""
    width = max(BANK_BYTES, vector * element_bytes)
    lanes, registers = (
        [offset * element_bytes // width for offset in flat(places, name)]
        for name in ("lane", "register")
    )
    phase = lanes[: served(width)]
    taken = extend([], _banks(phase, width))
    apart: dict[int, int] = {}
    without: dict[int, int] = {}
    found = []
    for lane, number in enumerate(phase):
        if not _insert(apart, number) or _insert(without, *_banks([number], width)):
            continue
        for bit, other in enumerate(registers):
            moved = extend(taken, _banks([number ^ other], width))
            if moved:
                found.append((lane, bit))
                taken += moved
                break
    return tuple(found)


def apart(places: LinearLayout, ways: tuple[tuple[int, int], ...]) -> LinearLayout:
    """The offsets after exchanges."""
    registers, lanes = places.bases("register"), list(places.bases("lane"))
    for lane, register in ways:
        lanes[lane] = (lanes[lane][0] ^ registers[register][0],)
    return LinearLayout.of(dict(places.ins) | {"lane": lanes}, dict(places.outs))


def flat(layout: LinearLayout, in_dim: str) -> list[int]:
    return [layout._flatten(basis) for basis in layout.bases(in_dim)]


def extend(basis: list[int], candidates: list[int]) -> list[int]:
    """The candidates that are independent of the basis and of those before them."""
    pivots: dict[int, int] = {}
    for column in basis:
        _insert(pivots, column)
    return [column for column in candidates if _insert(pivots, column)]


def _banks(numbers: list[int], width: int) -> list[int]:
    return [number % (ROW_BYTES // width) for number in numbers]
