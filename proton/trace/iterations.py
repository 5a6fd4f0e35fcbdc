"""Iterations of loops in a GPU's buffer, and the records that they stand for.

Where an iteration of a loop makes the same records in the same order, and no more than four
readings of 32 bits tell them apart, a unit writes the readings of its iterations instead: 16 bytes
an iteration. A *batch* of T iterations of S records takes the S T slots of its records in the ring
buffer, and of these it writes the last T + 1:

    slot, from the batch's first    what lies there
    0 to S T - T - 2                nothing: what was there before
    S T - T - 1 to S T - 2          the readings of iterations 0 to T - 1, in order
    S T - 1                         the last record, whole, but that its tag says `batch_tag`, and
                                    its iteration the number of the last iteration in the loop

So what tells of a record is never overwritten before the record's own slot would be: the readings
of iteration j lie behind all of its records (of the last iteration's, all but the last, which is
whole). A batch may have more records than the ring buffer; T + 1 slots it has.

`expand` writes the records into their slots, and a buffer then has what wire.py says. The runtime
calls it for each launch that has ended, so no file has a batch.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from proton.trace import wire
from proton.trace.wire import KIND_SHIFT, Block, ProgramState

BATCH = 4  # in the place of a kind, of which none has this number
MOST_READINGS = 4  # of an iteration
MOST_LOOPS, MOST_ITERATIONS = 1 << 12, 1 << 16
_WORDS = wire.RECORD_ALIGNMENT // 4  # of a slot
_START, _END, _TAG, _ITERATION = range(_WORDS)


@dataclass(frozen=True)
class Slot:
    """A record of an iteration: its tag, the numbers of the readings at its edges, and its
    iteration, `step` times the number of the iteration and `ahead`."""

    tag: int
    start: int
    end: int
    step: int
    ahead: int


IterationRecords = tuple[Slot, ...]


def iteration_to_plain(iteration: IterationRecords) -> list[list[int]]:
    """An iteration as numbers."""
    return [[slot.tag, slot.start, slot.end, slot.step, slot.ahead] for slot in iteration]


def iteration_from_plain(plain: list[list[int]]) -> IterationRecords:
    """The iteration that `iteration_to_plain` gave."""
    return tuple(Slot(*numbers) for numbers in plain)


def batch_tag(loop: int) -> int:
    """The tag of the last record of a batch of the kernel's loop with this number, without the
    number of iterations, which its low 16 bits are."""
    assert loop < MOST_LOOPS
    return BATCH << KIND_SHIFT | loop * MOST_ITERATIONS


def expand(buffer: np.ndarray, block: Block, loops: Sequence[IterationRecords]) -> None:
    """Writes the records of all batches in a buffer of whole blocks into their slots, in place.

    `loops` says what the iterations of the kernel's loops are. A program that did not finish has
    not said how many records it wrote, so its batches stay as they are.
    """
    if not (block.capacity and loops and buffer.size):
        return
    slots = buffer.view(f"V{wire.RECORD_ALIGNMENT}")
    batches = _batches(slots, buffer, block, loops)
    for number, iteration in enumerate(loops):
        _write(slots, batches.of_loop(number), iteration, block.capacity)


@dataclass(frozen=True)
class _Batches:
    """By batch: the first slot of its unit's segment, the record behind its last one, its
    iterations, the number of its last iteration, its loop, and the first record that the ring
    buffer still has."""

    first: np.ndarray
    behind: np.ndarray
    iterations: np.ndarray
    iteration: np.ndarray
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
    slots: np.ndarray, buffer: np.ndarray, block: Block, loops: Sequence[IterationRecords]
) -> _Batches:
    """The batches whose last record the ring buffers still have."""
    capacity = block.capacity
    finished = block.headers(buffer)["state"] == ProgramState.FINISHED
    written = np.where(finished[:, None], block.tables(buffer), 0).astype(np.int64).ravel()
    first = block.segment_words(np.arange(written.size)) * wire.WORD // wire.RECORD_ALIGNMENT
    shape = finished.size, block.units, capacity
    strides = block.bytes, block.segment_bytes, block.schema.bytes
    tags = np.ndarray(shape, "<u4", buffer, block.segments + 4 * _TAG, strides)
    program, unit, slot = np.nonzero(tags >> np.uint32(KIND_SHIFT) == BATCH)
    tag = tags[program, unit, slot].astype(np.int64)
    track = program * block.units + unit
    loop, iterations = tag % (BATCH << KIND_SHIFT) // MOST_ITERATIONS, tag % MOST_ITERATIONS
    count = written[track]
    last = count - 1 - (count - 1 - slot) % capacity
    sizes = np.array([len(iteration) for iteration in loops], np.int64)
    is_known = (last >= 0) & (loop < len(loops))
    size = np.where(is_known, iterations * sizes[np.minimum(loop, len(loops) - 1)], 0)
    found = _Batches(
        first=first[track],
        behind=last + 1,
        iterations=iterations,
        iteration=_fields(slots[first[track] + slot])[:, _ITERATION].astype(np.int64),
        loop=loop,
        oldest=np.maximum(count - capacity, 0),
    )
    # What no unit can have written is none: more iterations than slots, or records than were made.
    is_possible = (size > 0) & (size <= last + 1) & (iterations < capacity)
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


def _write(
    slots: np.ndarray, batches: _Batches, iteration: IterationRecords, capacity: int
) -> None:
    """Writes the records of some batches of one loop that the ring buffers still have."""
    iterations = batches.iterations
    number = np.repeat(np.arange(iterations.size), iterations)
    first, end, oldest = batches.first[number], batches.behind[number], batches.oldest[number]
    # How many iterations follow, with this one.
    behind = np.repeat(np.cumsum(iterations), iterations) - np.arange(number.size)
    readings = _fields(slots[first + (end - 1 - behind) % capacity])
    last = np.flatnonzero(behind == 1)
    wholes = _fields(slots[first[last] + (end[last] - 1) % capacity])
    of_iteration = batches.iteration[number] - (behind - 1)
    for place, slot in enumerate(iteration):
        record = end - behind * len(iteration) + place
        own = np.empty_like(readings)
        own[:, _START], own[:, _END] = readings[:, slot.start], readings[:, slot.end]
        if place == len(iteration) - 1:
            own[last, _START], own[last, _END] = wholes[:, _START], wholes[:, _END]
        own[:, _TAG] = slot.tag
        own[:, _ITERATION] = slot.step * of_iteration + slot.ahead & 0xFFFFFFFF
        is_kept = record >= oldest
        slots[(first + record % capacity)[is_kept]] = own.view(slots.dtype)[is_kept, 0]


def _fields(slots: np.ndarray) -> np.ndarray:
    """What is in some slots, (slots, 4) of u32."""
    return slots.view("<u4").reshape(-1, _WORDS)
