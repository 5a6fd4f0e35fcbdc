"""Copies that go on while threads do: `cp.async`, TMA, and the `mbarrier` objects that say when.

A copy into shared memory leaves garbage there until it is waited for. What a copy out of it, or
`wgmma`, is to read may not change until it has, and threads that wrote it have executed
`fence.proxy.async` before.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from tests.compile.ptx.memory import Memory, any_of
from tests.compile.ptx.text import inside
from tests.tf32 import nearest_tf32

_PARAMETERS = 1 << 40  # where parameters have addresses
_PARAMETER = 1 << 12  # how far they are apart: no launch copies more bytes
_WORD = 4
_WORDS = 16  # of a tensor map
_MARK = 0x70746D6170  # the first word of one


def parameter_address(number: int) -> int:
    """Where a parameter begins."""
    return _PARAMETERS + _PARAMETER * number


@dataclass
class TensorMap:
    """A tensor as `cuTensorMapEncodeTiled` is told of it, the fastest dimension first, or
    `cuTensorMapEncodeIm2col`."""

    element: str
    base: int
    sizes: list[int]
    steps: list[int]  # bytes, of the dimensions behind the first
    box: list[int]
    swizzle: int  # bytes
    is_nan: bool
    pixels: tuple[list[int], ...]  # lower corners, upper ones, steps; of tiles none

    known: ClassVar[list["TensorMap"]] = []

    @classmethod
    def encoded(
        cls, element: str, *described: Any, is_nan: bool, pixels: tuple[list[int], ...]
    ) -> list[int]:
        """In the place of the driver's function: the words of a map."""
        found = cls(element, *described, is_nan, pixels)
        steps = found.steps[: len(found.sizes) - 1]
        assert not any(number % 16 for number in (found.base, *steps)), f"{found} is not aligned"
        assert all(0 < size <= 1 << 32 for size in found.sizes), f"{found} has no such sizes"
        assert all(0 <= step < 1 << 40 for step in steps), f"{found} has no such strides"
        row = found.box[0] * found.size
        most = (256, 1024) if pixels else (256,) * len(found.box)
        assert all(0 < n <= m for n, m in zip(found.box, most, strict=True)), f"{found}: its box"
        if pixels:
            end = {3: 1 << 15, 4: 1 << 7, 5: 1 << 4}[len(found.sizes)]
            for low, high, step, size in zip(*pixels, found.sizes[1:-1], strict=True):
                assert all(-end <= n < end for n in (low, high)), f"{found} has no such corners"
                assert low <= size - 1 + high, f"{found} has no pixels"
                assert 1 <= step <= 8, f"{found} has no such steps"
        assert not row % 16, f"{found} has rows of boxes of {row} bytes"
        assert not found.swizzle or row <= found.swizzle, f"{found}: rows beyond the swizzle"
        cls.known.append(found)
        return [_MARK, len(cls.known) - 1] + [0] * (_WORDS - 2)

    @classmethod
    def read(cls, words: np.ndarray) -> "TensorMap":
        assert words[0] == _MARK, "no tensor map"
        return cls.known[int(words[1])]

    @cached_property
    def size(self) -> int:
        """Bytes of an element."""
        return int("".join(c for c in self.element if c.isdigit())) // 8

    def places(self, corner: list[int]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Of each element of a box: its address, whether the tensor has it, and its bytes' distance
        from where the box begins in shared memory."""
        first = corner[0] * self.size
        assert not first % 16, f"rows begin at byte {first}: an illegal instruction on an H200"
        axes = np.meshgrid(*(np.arange(n) for n in reversed(self.box)), indexing="ij")[::-1]
        steps = [self.size, *self.steps]
        address, is_inside = np.full(axes[0].shape, self.base), np.full(axes[0].shape, True)
        for axis, first, size, step in zip(axes, corner, self.sizes, steps, strict=False):
            index = axis + first
            is_inside &= (index >= 0) & (index < size)
            address = address + index * step
        order = np.arange(address.size) * self.size
        return address.reshape(-1), is_inside.reshape(-1), order

    def places_of_pixels(
        self, corner: list[int], offsets: list[int]
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The same in im2col mode: pixel by pixel, W fastest, within the bounding box."""
        at, (channels, pixels), rank = list(corner), self.box, len(self.sizes)
        first = corner[0] * self.size
        assert not first % 16, f"channels begin at byte {first}: an illegal instruction on an H200"
        limit = {3: 1 << 16, 4: 1 << 8, 5: 1 << 5}[rank]
        assert all(0 <= offset < limit for offset in offsets), f"there are no offsets {offsets}"
        lower, corners, steps = self.pixels
        upper = [size - 1 + end for size, end in zip(self.sizes[1:], corners, strict=False)]
        for index, low, high in zip(at[1:], lower, upper, strict=False):
            assert low <= index <= high, f"{corner} is no pixel of the bounding box"
        address, is_inside = [], []
        for _ in range(pixels):
            moved = [a + b for a, b in zip(at, [0, *offsets, 0], strict=True)]
            bounds = zip(moved[1:], self.sizes[1:], strict=True)
            is_pixel = all(0 <= index < size for index, size in bounds)
            begin = self.base + sum(
                a * b for a, b in zip(moved, [self.size, *self.steps], strict=False)
            )
            for channel in range(channels):
                address.append(begin + channel * self.size)
                is_inside.append(is_pixel and 0 <= moved[0] + channel < self.sizes[0])
            for axis in range(1, rank):
                at[axis] += 1 if axis == rank - 1 else steps[axis - 1]
                if axis == rank - 1 or at[axis] <= upper[axis - 1]:
                    break
                at[axis] = lower[axis - 1]
        order = np.arange(len(address)) * self.size
        return np.array(address), np.array(is_inside), order

    def swizzled(self, place: np.ndarray) -> np.ndarray:
        """Where shared memory has what would lie at a place; both from its beginning."""
        return place ^ ((place >> 7 & max(1, self.swizzle // 16) - 1) << 4)


@dataclass
class _Barrier:
    """An `mbarrier`: arrivals that a phase needs, and is without, bytes that it waits for."""

    count: int
    missing: int
    bytes: int = 0
    phase: int = 0
    copies: list["_Copy"] = field(default_factory=list)

    def check(self) -> None:
        if not self.missing and not self.bytes:
            self.phase ^= 1
            self.missing = self.count


@dataclass
class _Copy:
    """One copy: places in `memory` that get `data`."""

    threads: np.ndarray
    places: np.ndarray  # [thread, byte]
    data: np.ndarray
    source: np.ndarray | None = None  # places in shared memory that a copy out of it reads
    function: str = ""  # add, min and the like, of elements


class Copies:
    """What a machine does with copies."""

    shared: Memory
    globals: Memory
    rng: np.random.Generator
    program_of: np.ndarray
    pc: np.ndarray
    parameters: dict[str, bytes]

    def start_copies(self) -> None:
        self.open: list[_Copy] = []
        self.committed: list[tuple[np.ndarray, list[_Copy]]] = []
        self.barriers_of: dict[tuple[int, int], _Barrier] = {}
        self.bulk_open: dict[int, list[_Copy]] = {}
        self.bulk: dict[int, list[list[_Copy]]] = {}
        # What the last copy by threads brought, or will, to each byte: several may bring the same.
        self.brought = np.full(len(self.shared.data), -1, np.int16)
        self.landed: list[tuple[np.ndarray, np.ndarray]] = []  # (threads, places) of such copies
        self.unfenced = np.full(len(self.shared.data) // _WORD + 1, -1, np.int32)

    # Proxies

    def stored(self, space: str, place: np.ndarray, size: int, threads: np.ndarray) -> None:
        """Threads have stored; copies do not see it before a fence."""
        if space == "shared":
            for word in range(-(-size // _WORD)):
                self.unfenced[place // _WORD + word] = threads

    def fence(self, op: Any, mask: np.ndarray) -> None:
        if op.parts[1:3] == ("proxy", "async"):
            by = self.unfenced >= 0
            by[by] = mask[self.unfenced[by]]
            self.unfenced[by] = -1

    def check_visible(self, places: np.ndarray, size: int) -> None:
        """What the asynchronous proxy reads was fenced by those who wrote it."""
        writers = self.unfenced[places.reshape(-1) // _WORD]
        if any_of(writers >= 0):
            writer = writers[writers >= 0][0]
            raise AssertionError(f"no fence.proxy.async by thread {writer} after what it stored")

    # cp.async

    def cp(self, op: Any, mask: np.ndarray) -> None:
        if not any_of(mask):
            return
        match op.parts[:4]:
            case ("cp", "async", "commit_group"):
                every = [(copy, mask[copy.threads]) for copy in self.open]
                self.open = _left((copy, done) for copy, done in every)
                self.committed.append((mask.copy(), _left((copy, ~done) for copy, done in every)))
            case ("cp", "async", "wait_group" | "wait_all"):
                count = int(op.operands[0]) if op.operands else 0
                self._wait(mask, count)
            case ("cp", "async", "mbarrier", "arrive"):
                self._arrive_behind_copies(op, mask, "noinc" in op.parts)
            case ("cp", "async", "bulk", "commit_group"):
                for thread in np.flatnonzero(mask).tolist():
                    group = self.bulk_open.pop(thread, [])
                    self.bulk.setdefault(thread, []).append(group)
            case ("cp", "async", "bulk", "wait_group"):
                self._wait_bulk(op, mask)
            case ("cp", "async", "bulk", "tensor") if "mbarrier:complete_tx:bytes" in op.parts:
                self._tensor_load(op, mask)
            case ("cp", "async", "bulk", "tensor"):
                self._tensor_store(op, mask, "")
            case ("cp", "reduce", "async", "bulk") if "tensor" in op.parts:
                self._tensor_store(op, mask, next(p for p in op.parts if p in _FUNCTIONS))
            case ("cp", "async", "ca" | "cg", *_):
                self._copy(op, mask)
            case _:
                raise AssertionError(f"no rule for {op.text}")

    def _copy(self, op: Any, mask: np.ndarray) -> None:
        threads, size = np.flatnonzero(mask), int(op.operands[2])
        to = self.shared.places(op.address(op.operands[0])[threads], size, threads)
        taken = np.full(len(threads), size)
        if len(op.operands) > 3:
            last = op.operands[3]
            if op.operands[3].lstrip("!").startswith("%p"):
                taken = np.where(op.array(last, "pred")[threads], 0, size)
            else:
                taken = op.array(last, "u32")[threads].astype(np.int64)
        data = np.zeros((len(threads), size), np.uint8)
        reads = np.flatnonzero(taken > 0)
        if len(reads):
            address = op.address(op.operands[1])[threads[reads]]
            assert (taken[reads] == size).all(), f"{op.text}: a part of {size} bytes"
            of = self.globals.places(address, size, threads[reads])
            data[reads] = self.globals.data.reshape(-1, size)[of // size]
        brought, rows = self.brought.reshape(-1, size), to // size
        is_same = (brought[rows] == data).all(1)
        brought[rows] = data
        assert (brought[rows] == data).all(), f"{op.text}: different numbers for one place"
        units = (-(-size // self.shared.unit), len(threads))
        self.shared.note_write(to, size, threads, np.broadcast_to(is_same, units))
        garbage = self.rng.integers(0, 256, data.shape, np.uint8)
        self.shared.data.reshape(-1, size)[rows] = garbage
        places = to[:, None] + np.arange(size)
        self.open.append(_Copy(threads, places, data))

    def _wait(self, mask: np.ndarray, count: int) -> None:
        later = np.zeros(len(mask), np.int64)  # groups that were committed behind
        for number in range(len(self.committed) - 1, -1, -1):
            of, copies = self.committed[number]
            is_ready = of & mask & (later >= count)
            later[of & mask] += 1
            if not any_of(is_ready):
                continue
            every = [(copy, is_ready[copy.threads]) for copy in copies]
            for copy, done in every:
                if any_of(done):
                    threads, places = copy.threads[done], copy.places[done]
                    self.shared.data[places] = copy.data[done]
                    is_same = (self.brought[places] == copy.data[done]).all(1)
                    self.shared.note_landing(places[:, 0], places.shape[1], threads, is_same)
                    self.stored("shared", places[:, 0], places.shape[1], threads)
                    self.landed.append((threads, places))
            self.committed[number] = of & ~is_ready, _left(every)
        self.committed = [group for group in self.committed if any_of(group[0])]

    def _arrive_behind_copies(self, op: Any, mask: np.ndarray, is_counted: bool) -> None:
        """The thread's copies end here, the earliest that they may; an arrival that the barrier
        does not count makes no difference then."""
        every = [(copy, mask[copy.threads]) for copy in self.open]
        self.open = _left((copy, done) for copy, done in every)
        self.committed.append((mask.copy(), _left((copy, ~done) for copy, done in every)))
        self._wait(mask, 0)
        address = op.address(op.operands[0])
        for thread in np.flatnonzero(mask).tolist() if is_counted else ():
            barrier = self.barriers_of[int(self.program_of[thread]), int(address[thread])]
            assert barrier.missing > 0, f"{op.text}: more arrivals than the phase has"
            barrier.missing -= 1
            barrier.check()

    # mbarrier

    def mbarrier(self, op: Any, mask: np.ndarray) -> None:
        is_second = op.operands[0] == "_" or op.parts[1] in _WITH_RESULT
        address = op.address(op.operands[1 if is_second else 0])
        for thread in np.flatnonzero(mask).tolist():
            key = int(self.program_of[thread]), int(address[thread])
            match op.parts[1:3]:
                case ("init", _):
                    count = int(op.array(op.operands[1], "u32")[thread])
                    assert not key[1] % 8, f"{op.text}: a barrier at {key[1]:#x}"
                    assert 0 < count < 1 << 20, f"{op.text}: {count} arrivals"
                    self.barriers_of[key] = _Barrier(count, count)
                case ("inval", _):
                    del self.barriers_of[key]
                case ("try_wait" | "test_wait", _):
                    pass  # who is here need not wait
                case ("arrive", *_):
                    assert key in self.barriers_of, f"{op.text}: no barrier is there"
                    barrier = self.barriers_of[key]
                    if "expect_tx" in op.parts:
                        barrier.bytes += int(op.array(op.operands[2], "u32")[thread])
                    count = 1
                    if "expect_tx" not in op.parts and len(op.operands) > 2:
                        count = int(op.array(op.operands[2], "u32")[thread])
                    assert barrier.missing >= count, f"{op.text}: more arrivals than the phase has"
                    barrier.missing -= count
                    barrier.check()
                    self._hand_over(thread)
                case ("complete_tx", *_):
                    self.barriers_of[key].bytes -= int(op.array(op.operands[1], "u32")[thread])
                    self.barriers_of[key].check()
                    self._hand_over(thread)
                case ("expect_tx", _):
                    self.barriers_of[key].bytes += int(op.array(op.operands[1], "u32")[thread])
                case _:
                    raise AssertionError(f"no rule for {op.text}")
        if op.parts[1] in ("try_wait", "test_wait"):
            op.register(op.operands[0])[mask] = True

    def _hand_over(self, thread: int) -> None:
        """A thread arrives: what its warp has copied, and has read of such copies, is for others
        from here on."""
        warp, left = self.shared.clock.warp_of[thread], []
        self.shared.give_back(warp)
        for threads, places in self.landed:
            is_own = self.shared.clock.warp_of[threads] == warp
            self.shared.hand_over(places[is_own], threads[is_own])
            left.append((threads[~is_own], places[~is_own]))
        self.landed = [(threads, places) for threads, places in left if len(threads)]

    def completed_phases(self, op: Any, here: np.ndarray) -> np.ndarray:
        """Which threads at a `try_wait` need not wait. Copies that the barrier is without come now,
        where nobody else can do anything."""
        address, parity = op.address(op.operands[1]), op.array(op.operands[2], "u32")
        found = np.zeros_like(here)
        for thread in np.flatnonzero(here).tolist():
            barrier = self.barriers_of[int(self.program_of[thread]), int(address[thread])]
            if barrier.phase == int(parity[thread]) & 1 and not barrier.missing:
                for copy in barrier.copies:
                    self.shared.data[copy.places] = copy.data
                    barrier.bytes -= copy.data.size
                barrier.copies = []
                barrier.check()
            found[thread] = barrier.phase != int(parity[thread]) & 1
        return found

    # TMA

    def _box(self, op: Any, operand: str, thread: int) -> tuple[TensorMap, list[int]]:
        """The map and the corner of `[map, {coordinates}]`."""
        name, _, rest = operand.strip("[]").partition(",")
        address = int(op.array(name.strip(), "u64")[thread])
        corner = [int(op.array(text, "s32")[thread]) for text in inside(rest.strip())]
        return TensorMap.read(self.map_words(address)), corner

    def parameter_at(self, address: int) -> bytes:
        """An argument's bytes, from an address in it on."""
        number, offset = divmod(address - _PARAMETERS, _PARAMETER)
        return [*self.parameters.values()][number][offset:]

    def map_words(self, address: int) -> np.ndarray:
        """The words of a tensor map that is a parameter, or in global memory."""
        if address >= _PARAMETERS:
            return np.frombuffer(self.parameter_at(address), np.uint64)
        place = self.globals.places(np.array([address]), 64, np.array([0]))[0]
        return self.globals.data[place : place + 8 * _WORDS].view(np.uint64)

    def _shared_box(
        self, tensor_map: TensorMap, address: int, order: np.ndarray, thread: int
    ) -> np.ndarray:
        """Places of a box's elements in shared memory."""
        assert address % 128 == 0, f"TMA at shared {address:#x}"
        own = tensor_map.swizzled(address + order)
        return self.shared.places(own, tensor_map.size, np.full(len(own), thread))

    def _tensor_load(self, op: Any, mask: np.ndarray) -> None:
        for thread in np.flatnonzero(mask).tolist():
            tensor_map, corner = self._box(op, op.operands[1], thread)
            assert bool(tensor_map.pixels) == ("im2col" in op.parts), f"{op.text}: the other mode"
            if tensor_map.pixels:
                names = inside(op.operands[3])
                offsets = [int(op.array(name, "u16")[thread]) for name in names]
                address, is_inside, order = tensor_map.places_of_pixels(corner, offsets)
            else:
                address, is_inside, order = tensor_map.places(corner)
            size = tensor_map.size
            base = int(op.address(op.operands[0])[thread])
            to = self._shared_box(tensor_map, base, order, thread)
            data = np.zeros((len(to), size), np.uint8)
            if tensor_map.is_nan:
                bits = {2: 0x7FFF, 4: 0x7FFFFFFF, 8: 0x7FFFFFFFFFFFFFFF}[size]
                data[:] = np.frombuffer(bits.to_bytes(size, "little"), np.uint8)
            own = np.full(int(is_inside.sum()), thread)
            of = self.globals.places(address[is_inside], size, own)
            data[is_inside] = self.globals.data[of[:, None] + np.arange(size)]
            if tensor_map.element == "TFLOAT32":
                data = nearest_tf32(data.view(np.float32)).view(np.uint8)
            places = to[:, None] + np.arange(size)
            self.shared.data[places] = self.rng.integers(0, 256, places.shape, np.uint8)
            key = int(self.program_of[thread]), int(op.address(op.operands[2])[thread])
            self.barriers_of[key].copies.append(_Copy(own[:0], places, data))

    def _tensor_store(self, op: Any, mask: np.ndarray, function: str) -> None:
        for thread in np.flatnonzero(mask).tolist():
            tensor_map, corner = self._box(op, op.operands[0], thread)
            address, is_inside, order = tensor_map.places(corner)
            size = tensor_map.size
            base = int(op.address(op.operands[1])[thread])
            source = self._shared_box(tensor_map, base, order, thread)
            self.check_visible(source, size)
            self.shared.check_read(source, size, np.full(len(source), thread))
            source = (source[:, None] + np.arange(size))[is_inside]
            own = np.full(len(source), thread)
            to = self.globals.places(address[is_inside], size, own)[:, None] + np.arange(size)
            data = self.shared.data[source]
            name = f"{function} {tensor_map.element}" if function else ""
            self.bulk_open.setdefault(thread, []).append(_Copy(own, to, data, source, name))

    def _wait_bulk(self, op: Any, mask: np.ndarray) -> None:
        for thread in np.flatnonzero(mask).tolist():
            groups = self.bulk.get(thread, [])
            count = max(0, len(groups) - int(op.operands[-1]))
            for copy in [copy for group in groups[:count] for copy in group]:
                self._finish(copy)
            del groups[:count]

    def _finish(self, copy: _Copy) -> None:
        """A copy out of shared memory ends."""
        if not len(copy.data):
            return
        assert (self.shared.data[copy.source] == copy.data).all(), "shared memory changed under TMA"
        if copy.function:
            function, element = copy.function.split(" ")
            dtype = _DTYPES[element]
            was = np.ascontiguousarray(self.globals.data[copy.places]).view(dtype)
            given = np.ascontiguousarray(copy.data).view(dtype)
            found = _FUNCTIONS[function](was, given).astype(dtype)
            self.globals.data[copy.places] = found.view(np.uint8)
        else:
            self.globals.data[copy.places] = copy.data

    def finish_copies(self) -> None:
        """What is under way when all threads have ended."""
        left = [copy for copy in self.open if len(copy.threads)]
        left += [copy for _, copies in self.committed for copy in copies]
        assert not left, f"cp.async of thread {left[0].threads[0]} is under way at the end"
        for groups in self.bulk.values():
            for copy in [copy for group in groups for copy in group]:
                self._finish(copy)
        assert not any(self.bulk_open.values()), "a copy was not committed"


def _left(copies: Iterable[tuple[_Copy, np.ndarray]]) -> list[_Copy]:
    """The copies of those of their threads that are not done."""
    kept = ((copy, ~done) for copy, done in copies if not done.all())
    return [_Copy(c.threads[of], c.places[of], c.data[of]) for c, of in kept]


_WITH_RESULT = ("try_wait", "test_wait")
_DTYPES = {"FLOAT16": "f2", "FLOAT32": "f4", "FLOAT64": "f8", "INT32": "i4", "INT64": "i8",
           "UINT32": "u4", "UINT64": "u8", "UINT16": "u2"}  # fmt: skip
_FUNCTIONS = {"add": np.add, "min": np.minimum, "max": np.maximum, "and": np.bitwise_and,
              "or": np.bitwise_or, "xor": np.bitwise_xor}  # fmt: skip
