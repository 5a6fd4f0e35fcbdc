"""Turns of loops in a GPU's buffer, and the records that they stand for.

Where a turn of a loop makes the same records in the same order, and no more than four readings of
32 bits tell them apart, a unit writes the readings of its turns instead: 16 bytes a turn. A *batch*
of T turns of S records takes the S T slots of its records in the ring buffer, and of these it
writes the last T + 1:

    slot, from the batch's first    what lies there
    0 to S T - T - 2                nothing: what was there before
    S T - T - 1 to S T - 2          the readings of turns 0 to T - 1, in order
    S T - 1                         the last record, whole, but that its tag says `batch_tag`, and
                                    its iteration the number of the last turn in the loop

So what tells of a record is never overwritten before the record's own slot would be: the readings
of turn j lie behind all of its records (of the last turn's, all but the last, which is whole). A
batch may have more records than the ring buffer; T + 1 slots it has.

`expand` writes the records into their slots, and a buffer then has what wire.py says. The runtime
calls it for each launch that has ended, so no file has a batch.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from proton.trace import wire
from proton.trace.wire import KIND_SHIFT, Block, State

BATCH = 4  # in the place of a kind, of which none has this number
MOST_READINGS = 4  # of a turn
MOST_LOOPS, MOST_TURNS = 1 << 12, 1 << 16
_WORDS = wire.RECORD_ALIGNMENT // 4  # of a slot
_START, _END, _TAG, _ITERATION = range(_WORDS)


@dataclass(frozen=True)
class Slot:
    """A record of a turn: its tag, the numbers of the readings at its edges, and its iteration,
    `step` times the number of the turn and `ahead`."""

    tag: int
    start: int
    end: int
    step: int
    ahead: int


Turn = tuple[Slot, ...]


def turn_to_plain(turn: Turn) -> list[list[int]]:
    """A turn as numbers."""
    return [[slot.tag, slot.start, slot.end, slot.step, slot.ahead] for slot in turn]


def turn_from_plain(plain: list[list[int]]) -> Turn:
    """The turn that `turn_to_plain` gave."""
    return tuple(Slot(*numbers) for numbers in plain)


def batch_tag(loop: int) -> int:
    """The tag of the last record of a batch of the kernel's loop with this number, without the
    number of turns, which its low 16 bits are."""
    assert loop < MOST_LOOPS
    return BATCH << KIND_SHIFT | loop * MOST_TURNS


def expand(buffer: np.ndarray, block: Block, loops: Sequence[Turn]) -> None:
    """Writes the records of all batches in a buffer of whole blocks into their slots, in place.

    `loops` says what the turns of the kernel's loops are. A program that did not finish has not
    said how many records it wrote, so its batches stay as they are.
    """
    if not (block.capacity and loops and buffer.size):
        return
    slots = buffer.view(f"V{wire.RECORD_ALIGNMENT}")
    batches = _batches(slots, buffer, block, loops)
    for number, turn in enumerate(loops):
        _write(slots, batches.of_loop(number), turn, block.capacity)


@dataclass(frozen=True)
class _Batches:
    """By batch: the first slot of its unit's segment, the record behind its last one, its turns,
    the number of its last turn, its loop, and the first record that the ring buffer still has."""

    first: np.ndarray
    behind: np.ndarray
    turns: np.ndarray
    turn: np.ndarray
    loop: np.ndarray
    oldest: np.ndarray

    def of_loop(self, number: int) -> "_Batches":
        """Those of one loop."""
        return self.only(self.loop == number)

    def only(self, chosen: np.ndarray) -> "_Batches":
        """Some of them."""
        columns: Any = (getattr(self, name)[chosen] for name in self.__dataclass_fields__)
        return _Batches(*columns)


def _batches(
    slots: np.ndarray, buffer: np.ndarray, block: Block, loops: Sequence[Turn]
) -> _Batches:
    """The batches whose last record the ring buffers still have."""
    capacity = block.capacity
    finished = block.headers(buffer)["state"] == State.FINISHED
    written = np.where(finished[:, None], block.tables(buffer), 0).astype(np.int64).ravel()
    first = block.segment_words(np.arange(written.size)) * wire.WORD // wire.RECORD_ALIGNMENT
    shape = finished.size, block.units, capacity
    strides = block.bytes, block.segment_bytes, block.schema.bytes
    tags = np.ndarray(shape, "<u4", buffer, block.segments + 4 * _TAG, strides)
    program, unit, slot = np.nonzero(tags >> np.uint32(KIND_SHIFT) == BATCH)
    tag = tags[program, unit, slot].astype(np.int64)
    track = program * block.units + unit
    loop, turns = tag % (BATCH << KIND_SHIFT) // MOST_TURNS, tag % MOST_TURNS
    count = written[track]
    last = count - 1 - (count - 1 - slot) % capacity
    sizes = np.array([len(turn) for turn in loops], np.int64)
    is_known = (last >= 0) & (loop < len(loops))
    size = np.where(is_known, turns * sizes[np.minimum(loop, len(loops) - 1)], 0)
    found = _Batches(
        first=first[track],
        behind=last + 1,
        turns=turns,
        turn=_fields(slots[first[track] + slot])[:, _ITERATION].astype(np.int64),
        loop=loop,
        oldest=np.maximum(count - capacity, 0),
    )
    # What no unit can have written is none: more turns than slots, or records than were made.
    is_possible = (size > 0) & (size <= last + 1) & (turns < capacity)
    return found.only(_outermost(track, last, size, is_known & is_possible))


def _outermost(
    track: np.ndarray, last: np.ndarray, size: np.ndarray, chosen: np.ndarray
) -> np.ndarray:
    """Those of the chosen that do not lie in another one: a reading may look like a tag. From the
    newest backwards nothing but a record can lie where a batch may end."""
    numbers = np.flatnonzero(chosen)
    numbers = numbers[np.lexsort((-last[numbers], track[numbers]))]
    while True:
        own, newer = numbers[1:], numbers[:-1]
        inside = (track[own] == track[newer]) & (last[own] > last[newer] - size[newer])
        found = np.flatnonzero(inside) + 1
        if not found.size:
            break
        # The newest of a unit's lies in a batch. What the older ones lie in may be none.
        _, first = np.unique(track[numbers[found]], return_index=True)
        numbers = np.delete(numbers, found[first])
    return numbers


def _write(slots: np.ndarray, batches: _Batches, turn: Turn, capacity: int) -> None:
    """Writes the records of some batches of one loop that the ring buffers still have."""
    turns = batches.turns
    number = np.repeat(np.arange(turns.size), turns)
    first, end, oldest = batches.first[number], batches.behind[number], batches.oldest[number]
    # How many turns follow, with this one.
    behind = np.repeat(np.cumsum(turns), turns) - np.arange(number.size)
    readings = _fields(slots[first + (end - 1 - behind) % capacity])
    last = np.flatnonzero(behind == 1)
    wholes = _fields(slots[first[last] + (end[last] - 1) % capacity])
    of_turn = batches.turn[number] - (behind - 1)
    for place, slot in enumerate(turn):
        record = end - behind * len(turn) + place
        own = np.empty_like(readings)
        own[:, _START], own[:, _END] = readings[:, slot.start], readings[:, slot.end]
        if place == len(turn) - 1:
            own[last, _START], own[last, _END] = wholes[:, _START], wholes[:, _END]
        own[:, _TAG] = slot.tag
        own[:, _ITERATION] = slot.step * of_turn + slot.ahead & 0xFFFFFFFF
        is_kept = record >= oldest
        slots[(first + record % capacity)[is_kept]] = own.view(slots.dtype)[is_kept, 0]


def _fields(slots: np.ndarray) -> np.ndarray:
    """What is in some slots, (slots, 4) of u32."""
    return slots.view("<u4").reshape(-1, _WORDS)
