"""The memories of a grid: bytes, and who accessed which since the last barrier.

What two threads of a program do to one unit of memory with no barrier between them, of which one
writes, is a `Race`, unless both write the same. An access that is not aligned, or reaches beyond
the arrays, is an error.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.compile.ptx.numbers import unsigned

WARP = 32
GLOBAL = 1 << 36  # where global memory begins
SHARED = 1 << 10  # and shared memory: there are 1,024 bytes of the system's before it
_GAP = 256  # bytes between arrays, which nobody may access
# In the place of a thread's number and one: most of the memory is never touched, and takes none.
_NOBODY, _SEVERAL = 0, -1


# Whether any number is not 0: of the few that threads have in a quarter of the time of `any`.
any_of = np.count_nonzero


class Race(AssertionError):
    """Two threads accessed one place with no barrier in between."""


@dataclass
class Clock:
    """Which barrier each thread has passed last, of its program and of its warp, by a number that
    no other has; and its warp's number in the program."""

    program: np.ndarray
    warp: np.ndarray
    warp_of: np.ndarray


class Memory:
    """One space; `base` is the address of its first byte, `unit` the bytes that races are about.
    `shift` of a thread is where in `data` the memory begins that it sees."""

    def __init__(
        self, name: str, base: int, data: np.ndarray, shift: np.ndarray, unit: int, clock: Clock
    ) -> None:
        self.name, self.base, self.data, self.shift, self.unit = name, base, data, shift, unit
        self.size = len(data)  # of what a thread sees
        self.clock = clock
        self.allowed: np.ndarray | None = None
        self.checks_races = True
        warps, units = int(clock.warp_of.max()) + 1, len(data) // unit + 1
        self.writer = np.zeros(units, np.int32)
        self.handed = np.zeros(units, bool)  # from thread to thread by a barrier
        self.written = np.zeros((2, units), np.int32)  # when: the program's time, the warp's
        self.reader = np.zeros((units, warps), np.int32)
        self.read_at = np.zeros((2, units, warps), np.int32)  # of units that have a reader

    def places(self, address: np.ndarray, size: int, threads: np.ndarray) -> np.ndarray:
        """Where in `data` the accesses of some threads begin."""
        place = address.astype(np.int64) - self.base
        if any_of(place % size):
            self._refuse("an access that is not aligned", place % size != 0, place, size, threads)
        is_outside = (place < 0) | (place > self.size - size)
        if any_of(is_outside):
            self._refuse("an access outside", is_outside, place, size, threads)
        place = place + self.shift[threads]
        if self.allowed is not None:
            is_outside = ~(self.allowed[place] & self.allowed[place + size - 1])
            if any_of(is_outside):
                self._refuse("an access outside", is_outside, place, size, threads)
        return place

    def _refuse(
        self, what: str, where: np.ndarray, place: np.ndarray, size: int, threads: np.ndarray
    ) -> None:
        first = int(np.flatnonzero(where)[0])
        raise AssertionError(
            f"{what}: {size} bytes at {self.name} {place[first]} by thread {threads[first]}"
        )

    def load(self, place: np.ndarray, size: int, count: int, threads: np.ndarray) -> np.ndarray:
        """Numbers of `size` bytes, `count` by thread, in an array [count, thread]."""
        self.note_read(place, size * count, threads)
        return self.numbers(place, size, count)

    def numbers(self, place: np.ndarray, size: int, count: int) -> np.ndarray:
        """As `load`, noted nowhere."""
        data = self.data.view(unsigned(8 * size))
        found: np.ndarray = data[place // size + np.arange(count)[:, None]]
        return found

    def store(
        self, place: np.ndarray, size: int, values: Sequence[np.ndarray], threads: np.ndarray
    ) -> None:
        """Stores an array by element of a vector; of what several store the last one's stays."""
        data = self.data.view(unsigned(8 * size))
        every = place // size + np.arange(len(values))[:, None]
        numbers = np.stack(list(values))
        is_same = data[every] == numbers
        data[every] = numbers
        if any_of(data[every] != numbers):
            raise Race(f"threads store different numbers at {self.name} {int(place[0])}")
        self.note_write(
            place, size * len(values), threads, np.repeat(is_same, size // self.unit, 0)
        )

    def _units(self, place: np.ndarray, size: int) -> np.ndarray:
        """Which units accesses touch: [unit, thread]."""
        count = -(-size // self.unit)
        found: np.ndarray = place // self.unit + np.arange(count)[:, None]
        return found

    def note_read(self, place: np.ndarray, size: int, threads: np.ndarray) -> None:
        """Threads read; raises Race where another wrote."""
        if not self.checks_races:
            return
        units, clock = self._units(place, size), self.clock
        warp, now, warp_now = clock.warp_of[threads], clock.program[threads], clock.warp[threads]
        self._check_writer(units, threads, "a read")
        # One number for both: numpy looks for places by one index in half the time.
        of_warp = units * self.reader.shape[1] + warp
        reader, (at, warp_at) = self.reader.reshape(-1), self.read_at.reshape(2, -1)
        known, own = reader.take(of_warp), threads + 1
        is_other = (known != own) & (known != _NOBODY)
        if any_of(is_other):
            is_other &= (at.take(of_warp) == now) & (warp_at.take(of_warp) == warp_now)
        reader[of_warp] = own
        # Of several that read in this instruction one is noted: were there more?
        is_other |= reader.take(of_warp) != own
        if any_of(is_other):
            reader[of_warp[is_other]] = _SEVERAL
        at[of_warp], warp_at[of_warp] = now, warp_now

    def note_write(
        self, place: np.ndarray, size: int, threads: np.ndarray, is_same: Any = False
    ) -> None:
        """Threads write; raises Race where another wrote something else, or read."""
        if not self.checks_races:
            return
        units, clock = self._units(place, size), self.clock
        self._check_writer(units, threads, "a write", is_same)
        now, warp_now = clock.program[threads], clock.warp[threads]
        bad = self.read_at[0].take(units, axis=0) == now[:, None]  # [unit, thread, warp]
        if any_of(bad):
            readers, each = self.reader[units], threads[:, None]
            bad &= (readers != _NOBODY) & (readers != each + 1)
            is_own = clock.warp_of[each] == np.arange(readers.shape[-1])
            bad &= ~(is_own & (self.read_at[1, units] != warp_now[:, None]))
            for warp in np.flatnonzero(bad.any(axis=(0, 1))).tolist():
                self._check(bad[..., warp], units, threads, readers[..., warp], "a write")
        self.writer[units] = threads + 1
        self.written[0, units], self.written[1, units] = now, warp_now

    def note_landing(
        self, place: np.ndarray, size: int, threads: np.ndarray, is_same: np.ndarray
    ) -> None:
        """Copies of threads arrive; of those that are the same another's may have arrived."""
        units = self._units(place, size).shape
        self.note_write(place, size, threads, np.broadcast_to(is_same, units))

    def hand_over(self, places: np.ndarray, threads: np.ndarray) -> None:
        """Who waits for a barrier may read bytes [thread, byte] that threads have copied."""
        units = places // self.unit
        own = units[self.writer[units] == threads[:, None] + 1]
        self.writer[own] = _NOBODY
        self.handed[own] = True

    def give_back(self, warp: int) -> None:
        """A warp has read what it was handed: who waits for a barrier may write it."""
        self.reader[self.handed, warp] = _NOBODY

    def check_read(self, place: np.ndarray, size: int, threads: np.ndarray) -> None:
        """Raises Race where another wrote what a thread has read on its behalf, later."""
        self._check_writer(self._units(place, size), threads, "a read")

    def _check_writer(
        self, units: np.ndarray, threads: np.ndarray, what: str, is_same: Any = False
    ) -> None:
        writer, clock = self.writer.take(units), self.clock
        bad = (writer != _NOBODY) & (writer != threads + 1)
        bad &= self.written[0].take(units) == clock.program[threads]
        if not any_of(bad):
            return
        bad &= ~np.asarray(is_same)
        is_own_warp = clock.warp_of[np.maximum(writer - 1, 0)] == clock.warp_of[threads]
        bad &= ~(is_own_warp & (self.written[1, units] != clock.warp[threads]))
        self._check(bad, units, threads, writer, what)

    def _check(
        self, bad: np.ndarray, units: np.ndarray, threads: np.ndarray, other: np.ndarray, what: str
    ) -> None:
        if any_of(bad):
            unit, thread = (int(n) for n in np.argwhere(bad)[0])
            place = int(units[unit, thread]) * self.unit
            who = int(other[unit, thread])  # and one
            raise Race(
                f"{what} of {self.name} byte {place} by thread {int(threads[thread])}: "
                f"{'several threads were' if who == _SEVERAL else f'thread {who - 1} was'} there"
            )


class Heap:
    """Global memory: blocks of bytes with gaps between them."""

    def __init__(self) -> None:
        self.data, self.allowed = np.zeros(_GAP, np.uint8), np.zeros(_GAP, bool)

    def allocate(self, size: int) -> int:
        """The address of a block, which begins at a multiple of 256 bytes."""
        place = len(self.data)
        more = -(-size // _GAP) * _GAP + _GAP
        self.data = np.concatenate([self.data, np.zeros(more, np.uint8)])
        self.allowed = np.concatenate([self.allowed, np.arange(more) < size])
        return GLOBAL + place

    def forbid(self, address: int, size: int) -> None:
        """Nobody may access the bytes that are there."""
        self.allowed[address - GLOBAL : address - GLOBAL + size] = False

    def bytes(self, address: int, size: int) -> np.ndarray:
        """What is there; a view."""
        place = address - GLOBAL
        assert 0 <= place <= len(self.data) - size
        return self.data[place : place + size]


class Arrays:
    """Arrays of numpy in global memory; a view points into the array that it is of."""

    def __init__(self, heap: Heap) -> None:
        self.heap = heap
        self.whole: dict[int, tuple[np.ndarray, int]] = {}

    def address(self, view: np.ndarray) -> int:
        """That of a view's first element."""
        array = view
        while isinstance(array.base, np.ndarray):
            array = array.base
        assert array.flags.c_contiguous, "arrays own contiguous memory"
        if id(array) not in self.whole:
            address = self.heap.allocate(array.nbytes)
            self.whole[id(array)] = array, address
            self.heap.bytes(address, array.nbytes)[:] = array.reshape(-1).view(np.uint8)
        return self.whole[id(array)][1] + view.ctypes.data - array.ctypes.data

    def copy_back(self) -> None:
        """Gives the arrays what the memory has."""
        for array, address in self.whole.values():
            array.reshape(-1).view(np.uint8)[:] = self.heap.bytes(address, array.nbytes)
