"""The decoder against a slow reading of the same bytes, and against bytes that break a rule."""

import contextlib
import random
import struct
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from synthetic import (
    RECORD_BYTES,
    Record,
    Written,
    clock,
    kernel,
    nested_records,
    pack_launch,
    run,
    scopes,
    segments_at,
    ticks,
)

from proton.trace.decode import Decoded, decode
from proton.trace.model import Kernel, Launch, Strategy
from proton.viewer import Run, TraceFormatError

# One block: units 1, capacity 2, no payload, 5 records written into 2 slots.
BLOCK = bytes.fromhex(
    "5052544e"  # magic, "PRTN"
    + "0300"  # version 3
    + "0200"  # state: finished
    + "00000000 00000000 00000000"  # program x, y, z
    + "07000000"  # hardware: core 7
    + "39300000"  # thread 12345
    + "01000000"  # units
    + "02000000"  # capacity
    + "00000000"  # payload slots
    + "0a00000000000000"  # clock at init: 10
    + "0000000000000000"  # no timer
    + "6400000000000000"  # clock at the end: 100
    + "0000000000000000"
    + "40000000"  # clocks of 64 bits
    + "00" * (128 - 76)  # padding of the header
    + "0500000000000000"  # table: unit 0 wrote 5 records
    + "00" * 8  # up to a multiple of 16 bytes
    + "5000000000000000"  # slot 0 holds record 4: start 80
    + "5a00000000000000"  # end 90
    + "01000000"  # tag: slice, scope 1
    + "ffffffff"  # in no loop
    + "3c00000000000000"  # slot 1 holds record 3: start 60
    + "4600000000000000"  # end 70
    + "00000000"  # tag: slice, scope 0
    + "03000000"  # iteration 3
)

# The same with clocks of 32 bits, a program of cycles 0x3_ffff_fff0 to 0x4_0000_0050.
NARROW_BLOCK = BLOCK[:40] + bytes.fromhex(
    "f0ffffff03000000"  # clock at init
    + "0000000000000000"
    + "5000000004000000"  # clock at the end
    + "0000000000000000"
    + "20000000"  # clocks of 32 bits
    + "00" * (128 - 76)
    + "0500000000000000"
    + "00" * 8
    + "20000000"  # slot 0 holds record 4: start 0x20
    + "30000000"  # end 0x30
    + "01000000"  # tag
    + "ffffffff"  # in no loop
    + "f8ffffff"  # slot 1 holds record 3: start 0xfffffff8, before the wrap
    + "10000000"  # end 0x10, after it
    + "00000000"
    + "03000000"
    + "00" * 16  # up to a multiple of 64 bytes
)


def a_launch(data: bytes, capacity: int = 2) -> Launch:
    return Launch(
        kernel=0,
        grid=(1, 1, 1),
        capacity=capacity,
        host_start=0,
        host_end=1,
        buffer=np.frombuffer(data, np.uint8),
    )


def test_literal_bytes_mean_what_their_comments_say() -> None:
    found = decode(kernel(), a_launch(BLOCK))
    assert found.written.tolist() == [5]
    assert found.kept.tolist() == [2]
    assert found.start.tolist() == [60, 80]
    assert found.end.tolist() == [70, 90]
    assert found.scope.tolist() == [0, 1]
    assert found.iteration.tolist() == [3, 0xFFFFFFFF]
    assert found.hardware.tolist() == [7]
    assert found.thread.tolist() == [12345]
    narrow = decode(kernel(clock_bits=32), a_launch(NARROW_BLOCK))
    assert narrow.start.tolist() == [0x3_FFFF_FFF8, 0x4_0000_0020]
    assert narrow.end.tolist() == [0x4_0000_0010, 0x4_0000_0030]
    for name in ("written", "kept", "scope", "iteration", "hardware", "thread"):
        assert getattr(narrow, name).tolist() == getattr(found, name).tolist()


@pytest.mark.parametrize(
    ("offset", "data", "message"),
    [
        (0, b"\0", "program 0: magic must be"),
        (4, b"\x02", "version must be 3, got 2"),
        (6, b"\x03", "state must be at most"),
        (8, b"\x01", "program_x must be 0, got 1"),
        (28, b"\x02", "units must be 1, got 2"),
        (32, b"\x03", "capacity must be 2, got 3"),
        (36, b"\x01", "payload_slots must be 0, got 1"),
        (56, b"\x01", "clock_end must not lie before clock_start, got 1"),
        (72, b"\x20", "clock_bits must be 64, got 32"),
        (135, b"\xff", "unit 0: records written must be at most"),
        (144 + 16, b"\x09", "unit 0, kept record 1: scope must be < 3, got 9"),
        (144 + 19, b"\x10", "kept record 1: kind must be slice"),
        (144 + 8, b"\x01", "kept record 1: end must not lie before start, got 1"),
    ],
)
def test_a_broken_block_is_refused_with_place_rule_and_value(
    offset: int, data: bytes, message: str
) -> None:
    broken = BLOCK[:offset] + data + BLOCK[offset + len(data) :]
    with pytest.raises(TraceFormatError, match=message):
        decode(kernel(), a_launch(broken), "launch 0")


def test_a_buffer_of_the_wrong_length_is_refused() -> None:
    for data in (b"", BLOCK[:-64], BLOCK + BLOCK):
        with pytest.raises(TraceFormatError, match="buffer must be 1 blocks of 192 bytes"):
            decode(kernel(), a_launch(data))


def test_a_record_of_a_mark_must_name_a_mark() -> None:
    owner = kernel(table=scopes(1, marks=1))
    records = [Record(5, 5, 1, kind=1), Record(5, 9, 1, kind=0)]
    with pytest.raises(TraceFormatError, match="kind must be its scope's, got 0"):
        decode(owner, pack_launch(owner, (1, 1, 1), 4, [Written([records])]))


def reference(owner: Kernel, launch: Launch) -> Iterator[tuple[int, ...]]:
    """Every kept record, read one field at a time."""
    slots, units, capacity = owner.payload_slots, owner.units, launch.capacity
    bits = owner.clock_bits
    size = RECORD_BYTES[bits] + 8 * slots
    block = -(-(segments_at(units) + units * capacity * size) // 64) * 64
    data = launch.buffer.tobytes()
    for program in range(len(data) // block):
        for unit in range(units):
            base = program * block
            (count,) = struct.unpack_from("<Q", data, base + 128 + 8 * unit)
            segment = base + segments_at(units) + unit * capacity * size
            mine = [c for c in launch.chunks if (c.program, c.unit) == (program, unit)]
            for chunk in sorted(mine, key=lambda c: c.first):
                raw = chunk.data.tobytes()
                for at in range(0, len(raw), size):
                    yield (program * units + unit, *one_record(raw, at, slots, bits))
            first = max(0, count - capacity) if capacity else count
            if owner.strategy is Strategy.FLUSH:
                first = max([0, *(c.first + c.data.size // size for c in mine)])
            for number in range(first, count):
                at = segment + number % capacity * size
                yield (program * units + unit, *one_record(data, at, slots, bits))


def one_record(data: bytes, at: int, slots: int, bits: int) -> tuple[int, ...]:
    clocks = "QQ" if bits == 64 else "II"
    start, end, tag, iteration = struct.unpack_from(f"<{clocks}II", data, at)
    payload = struct.unpack_from(f"<{slots}Q", data, at + RECORD_BYTES[bits])
    return start, end, tag >> 28, tag & 0xFFFFFFF, iteration, *payload


def rows(found: Decoded) -> list[tuple[int, ...]]:
    columns = (found.track, found.start, found.end, found.kind, found.scope, found.iteration)
    payload = found.payload.tolist()
    fixed = zip(*(column.tolist() for column in columns), strict=True)
    return [(*row, *values) for row, values in zip(fixed, payload, strict=True)]


@given(
    seed=st.integers(0, 1 << 32),
    units=st.integers(1, 4),
    slots=st.integers(0, 3),
    capacity=st.integers(1, 9),
    grid=st.tuples(st.integers(0, 3), st.integers(1, 2), st.integers(1, 2)),
    strategy=st.sampled_from(Strategy),
    counts=st.lists(st.integers(0, 30), min_size=1, max_size=8),
)
def test_any_launch_decodes_as_the_slow_reading_does(
    seed: int,
    units: int,
    slots: int,
    capacity: int,
    grid: tuple[int, int, int],
    strategy: Strategy,
    counts: list[int],
) -> None:
    random_ = random.Random(seed)
    owner = kernel(strategy, units=units, slots=slots, table=scopes(3, slots, 1))
    programs = [
        Written([nested_records(random_, owner.scopes, counts[(p + u) % len(counts)], 0)
                 for u in range(units)])
        for p in range(grid[0] * grid[1] * grid[2])
    ]  # fmt: skip
    held = 0 if strategy is Strategy.COUNTING else capacity
    launch = pack_launch(owner, grid, held, programs, flush=strategy is Strategy.FLUSH)
    random_.shuffle(launch.chunks)
    found = decode(owner, launch)
    expected = [] if strategy is Strategy.COUNTING else list(reference(owner, launch))
    assert rows(found) == expected
    written = [len(unit) for program in programs for unit in program.units]
    assert found.written.tolist() == written
    if strategy is Strategy.FLUSH:
        assert found.kept.tolist() == written
    if strategy is Strategy.CIRCULAR:
        assert found.kept.tolist() == [min(n, capacity) for n in written]


@pytest.mark.parametrize("count", [0, 1, 63, 64, 65, 128, 10_000])
def test_the_newest_records_of_a_ring_are_kept_oldest_first(count: int) -> None:
    owner = kernel()
    records = [Record(i * 10 + 1, i * 10 + 5) for i in range(count)]
    found = decode(owner, pack_launch(owner, (1, 1, 1), 64, [Written([records])]))
    assert found.start.tolist() == [r.start for r in records[-64:]]
    assert (found.written - found.kept).tolist() == [max(0, count - 64)]


def test_a_flush_that_lost_a_chunk_counts_its_records_as_lost() -> None:
    owner = kernel(Strategy.FLUSH)
    records = [Record(i * 10 + 1, i * 10 + 5) for i in range(20)]
    launch = pack_launch(owner, (1, 1, 1), 8, [Written([records])], flush=True)
    del launch.chunks[0]
    found = decode(owner, launch)
    assert found.start.tolist() == [r.start for r in records[8:]]
    assert (found.written - found.kept).tolist() == [8]


def test_a_last_segment_that_was_not_flushed_is_read_where_it_is() -> None:
    owner = kernel(Strategy.FLUSH)
    records = [Record(i * 10 + 1, i * 10 + 5) for i in range(16)]
    launch = pack_launch(owner, (1, 1, 1), 8, [Written([records])], flush=True)
    del launch.chunks[1]
    assert decode(owner, launch).start.tolist() == [r.start for r in records]


def test_chunks_that_overlap_or_do_not_fit_are_refused() -> None:
    owner = kernel(Strategy.FLUSH)
    records = [Record(i * 10 + 1, i * 10 + 5) for i in range(20)]
    launch = pack_launch(owner, (1, 1, 1), 8, [Written([records])], flush=True)
    launch.chunks.append(launch.chunks[0])
    with pytest.raises(TraceFormatError, match="chunk 2: records must not be in an earlier chunk"):
        decode(owner, launch)
    launch.chunks = [launch.chunks[0]]
    circular = kernel()
    with pytest.raises(TraceFormatError, match="only the flush strategy leaves chunks"):
        decode(circular, launch)


def test_a_killed_program_gives_what_can_be_trusted() -> None:
    owner = kernel()
    good = [Record(ticks(10), ticks(20)), Record(ticks(30), ticks(45), 1)]
    torn = Record(ticks(50), 0)  # its end had not been stored
    stale = Record(ticks(0), ticks(5))  # of an earlier launch, before this program began
    launch = pack_launch(
        owner,
        (3, 1, 1),
        8,
        [
            Written([[*good, torn]], state=1, table=[0]),
            Written([good]),
            Written([[]], state=0),
        ],
    )
    launch.buffer = launch.buffer.copy()
    block = launch.buffer.size // 3
    struct.pack_into("<Q", launch.buffer, 40, ticks(8))
    start = segments_at(1) + 3 * 24
    struct.pack_into("<QQII", launch.buffer, start, stale.start, stale.end, 0, 0)
    found = decode(owner, launch)
    assert found.state.tolist() == [1, 2, 0]
    assert found.kept.tolist() == [2, 2, 0]
    assert found.start.tolist() == [r.start for r in good * 2]
    table = Run(run([owner], [launch])).launches
    assert table[["finished", "partial", "untouched"]].values.tolist() == [[1, 1, 1]]
    assert block == 384


@given(data=st.data())
def test_altered_bytes_decode_or_are_refused(data: st.DataObject) -> None:
    owner = kernel(Strategy.FLUSH, units=2, slots=1, table=scopes(2, 1, 1))
    random_ = random.Random(1)
    programs = [Written([nested_records(random_, owner.scopes, 9, 0)] * 2) for _ in range(2)]
    launch = pack_launch(owner, (2, 1, 1), 4, programs, flush=True)
    buffer = launch.buffer.copy()
    for _ in range(data.draw(st.integers(1, 6))):
        place = data.draw(st.integers(0, buffer.size - 1))
        buffer[place] = data.draw(st.integers(0, 255))
    launch.buffer = buffer[: data.draw(st.sampled_from([buffer.size] * 9 + [buffer.size - 1]))]
    whole = run([owner], [launch])
    whole.clock = clock()
    with contextlib.suppress(TraceFormatError):
        Run(whole).frame
