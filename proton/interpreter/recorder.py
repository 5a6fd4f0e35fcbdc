"""What a program of an interpreted launch records, in the profile buffer's own format."""

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from proton.trace import wire
from proton.trace.model import Chunk
from proton.trace.profile import KernelProfile
from proton.trace.wire import RecordKind

Fields = tuple[tuple[str, str], ...]  # name and kind of each payload value


class ProgramRecorder(Protocol):
    """What the ops that record do in a program."""

    iteration: int

    def start(self, path: str, fields: Fields, payload: list[int], when: bool) -> None: ...
    def end(self, path: str, fields: Fields, payload: list[int], when: bool) -> None: ...
    def mark(self, path: str, fields: Fields, payload: list[int], when: bool) -> None: ...
    def event(self, name: str, is_start: bool) -> None: ...


class NoRecorder:
    """Records nothing."""

    iteration = wire.NO_ITERATION

    def start(self, path: str, fields: Fields, payload: list[int], when: bool) -> None:
        pass

    end = mark = start

    def event(self, name: str, is_start: bool) -> None:
        pass


class BlockRecorder:
    """Writes the records of one program after the other into the launch's blocks."""

    def __init__(
        self,
        profile: KernelProfile,
        buffer: np.ndarray,
        chunks: list[Chunk],
        clock: Callable[[], int],
        every: int,
    ) -> None:
        self.profile, self.buffer, self.chunks, self.clock = profile, buffer, chunks, clock
        self.every = every
        scopes = profile.table.scopes
        self.ids = {
            (scope.path, scope.kind, tuple((f.name, f.kind) for f in scope.payload)): number
            for number, scope in enumerate(scopes)
        }
        self.iteration = wire.NO_ITERATION
        self.open: list[tuple[str, Fields, list[int], bool, int, int]] = []
        self.records: list[tuple[object, ...]] = []
        self.begun = 0

    def begin(self) -> None:
        """A program begins."""
        self.open, self.records, self.iteration = [], [], wire.NO_ITERATION
        self.begun = self.clock()

    def start(self, path: str, fields: Fields, payload: list[int], when: bool) -> None:
        self.open.append((path, fields, payload, when, self.iteration, self.clock()))

    def end(self, path: str, fields: Fields, payload: list[int], when: bool) -> None:
        now = self.clock()
        path, fields, payload, when, iteration, start = self.open.pop()
        if when and self._is_sampled(iteration):
            self._keep(RecordKind.SLICE, (path, "slice", fields), start, now, iteration, payload)

    def mark(self, path: str, fields: Fields, payload: list[int], when: bool) -> None:
        now = self.clock()
        if when and self._is_sampled(self.iteration):
            self._keep(RecordKind.MARK, (path, "mark", fields), now, now, self.iteration, payload)

    def event(self, name: str, is_start: bool) -> None:
        now, kind = self.clock(), RecordKind.EVENT_START if is_start else RecordKind.EVENT_END
        self._keep(kind, (name, "event", ()), now, now, self.iteration, [])

    def _is_sampled(self, iteration: int) -> bool:
        return iteration == wire.NO_ITERATION or iteration % self.every == 0

    def _keep(
        self, kind: RecordKind, scope: Any, start: int, end: int, iteration: int, payload: list[int]
    ) -> None:
        mask = (1 << 64) - 1
        slots = [value & mask for value in payload]
        slots += [0] * (self.profile.schema.payload_slots - len(slots))
        self.records.append((start, end, wire.tag(kind, self.ids[scope]), iteration, slots))

    def finish(self, number: int, place: tuple[int, int, int]) -> None:
        """The program of this number has ended."""
        profile, block = self.profile, self.profile.block
        own = self.buffer[number * block.bytes : (number + 1) * block.bytes]
        (header,) = block.headers(own)[:1].reshape(1, 1)
        for name, value in self._header(place).items():
            header[name] = value
        written = len(self.records)
        block.tables(own)[0, 0] = written
        if not profile.strategy.stores:
            return
        records = np.array(self.records, profile.schema.dtype)
        if profile.strategy.moves and written:
            records = self._move(records, number)
        kept = records[-block.capacity :]
        places = (np.arange(written - len(kept), written)) % block.capacity
        first = block.segments
        segment = own[first : first + block.segment_bytes].view(profile.schema.dtype)
        segment[places] = kept

    def _move(self, records: np.ndarray, number: int) -> np.ndarray:
        """Moves full segments out of the block; what is left."""
        capacity = self.profile.capacity
        full = len(records) // capacity * capacity
        for first in range(0, full, capacity):
            data = records[first : first + capacity].copy().view(np.uint8).reshape(-1)
            self.chunks.append(Chunk(program=number, unit=0, first=first, data=data))
        return records[full:]

    def _header(self, place: tuple[int, int, int]) -> dict[str, int]:
        profile, (x, y, z) = self.profile, place
        return {
            "magic": wire.MAGIC,
            "version": wire.VERSION,
            "state": wire.ProgramState.FINISHED,
            "program_x": x,
            "program_y": y,
            "program_z": z,
            "hardware": wire.NO_HARDWARE_ID,
            "units": profile.units,
            "capacity": profile.capacity if profile.strategy.stores else 0,
            "payload_slots": profile.schema.payload_slots,
            "clock_start": self.begun,
            "clock_end": self.clock(),
            "clock_bits": profile.schema.clock_bits,
        }
