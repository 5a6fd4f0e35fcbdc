"""Turns the profile buffer of a launch into columns, for all programs and units at once.

Records lie in *runs*: intervals of a ring buffer, or of a flushed chunk, that are already in order.
A segment that did not wrap is one run, a wrapped one is two (oldest slot to the end, then the
beginning). Decoding is finding the runs, numbering the words they start at, and gathering.

Clocks of 32 bits are the low halves of ticks whose high halves follow from the header and from
the order of records (`_ticks`).
"""

from dataclasses import dataclass, fields

import numpy as np

from proton.trace.check import (
    check_chunks,
    check_headers,
    check_launch,
    check_records,
    kind_fits,
    scope_kinds,
)
from proton.trace.errors import TraceFormatError
from proton.trace.model import Kernel, Launch
from proton.trace.wire import (
    KIND_SHIFT,
    MAX_SCOPE_ID,
    WORD,
    Block,
    ProgramState,
    RecordSchema,
)

EARLY = 1 << 16  # cycles by which the warps of a program begin apart, at most
MAX_WRITTEN = 1 << 62  # a count beyond this cannot be summed in 64 bits, nor happen


@dataclass(frozen=True, kw_only=True)
class Decoded:
    """One launch in columns.

    `state`, `hardware`, `thread`, the clocks and the timers have a row per program; `written` and
    `kept` a row per track, where track = program * units + unit; the others a row per record,
    grouped by track, oldest first.
    """

    state: np.ndarray
    hardware: np.ndarray
    thread: np.ndarray
    clock_start: np.ndarray
    clock_end: np.ndarray
    timer_start: np.ndarray
    timer_end: np.ndarray
    written: np.ndarray
    kept: np.ndarray
    track: np.ndarray
    scope: np.ndarray
    kind: np.ndarray  # a wire Kind
    iteration: np.ndarray
    start: np.ndarray
    end: np.ndarray
    payload: np.ndarray  # records x payload_slots, raw 8-byte values


@dataclass(frozen=True, kw_only=True)
class _Runs:
    """Intervals of records in order: the track of each, its first word, and its length."""

    track: np.ndarray
    word: np.ndarray
    count: np.ndarray


@dataclass(frozen=True, kw_only=True)
class _Columns:
    """The fixed part of gathered records; start and end are u32 where clocks have 32 bits."""

    start: np.ndarray
    end: np.ndarray
    tag: np.ndarray
    iteration: np.ndarray


def decode(kernel: Kernel, launch: Launch, where: str = "launch") -> Decoded:
    """The records of one launch; raises TraceFormatError for bytes that break the format.

    The kernel must have passed `check_kernel`.
    """
    check_launch(kernel, launch, where)
    buffer = _aligned(launch.buffer)
    block = kernel.block(launch.capacity)
    header = block.headers(buffer)
    check_headers(kernel, launch, header, where)
    written = _written(block, buffer, where)
    finished = np.repeat(header["state"] == ProgramState.FINISHED, kernel.units)

    words, chunk_runs = _with_chunks(kernel, launch, buffer, written, finished, where)
    runs = _ring_runs(kernel, block, np.where(finished, written, 0), chunk_runs[1])
    track, index = _flatten(_merge(runs, chunk_runs[0]), block.schema.words)
    partial = header["state"] == ProgramState.STARTED
    if partial.any() and launch.capacity:
        rest = _salvage(kernel, block, words, header, (track, index))
        track, index = _by_track(np.append(track, rest[0]), np.append(index, rest[1]))

    columns = _gather(block.schema, words, index)
    start, end = _ticks(columns, track, kernel.units, header)
    kind = check_records(kernel, start, end, columns.tag, track, where)
    kept = np.bincount(track, minlength=written.size)
    return Decoded(
        state=header["state"].astype(np.int8),
        hardware=header["hardware"].astype(np.int64),
        thread=header["thread"].astype(np.int64),
        clock_start=header["clock_start"].astype(np.uint64),
        clock_end=header["clock_end"].astype(np.uint64),
        timer_start=header["timer_start"].astype(np.uint64),
        timer_end=header["timer_end"].astype(np.uint64),
        written=np.maximum(written, kept),  # a killed program may not have left its count
        kept=kept,
        track=track,
        scope=(columns.tag & np.uint32(MAX_SCOPE_ID)).astype(np.int32),
        kind=kind,
        iteration=columns.iteration,
        start=start,
        end=end,
        payload=block.schema.payload(words, index),
    )


def _aligned(buffer: np.ndarray) -> np.ndarray:
    """The buffer itself, or a copy of it where its 8-byte words would straddle alignment."""
    if buffer.flags.c_contiguous and buffer.ctypes.data % WORD == 0:
        return buffer
    return np.frombuffer(buffer.tobytes(), np.uint8)


def _written(block: Block, buffer: np.ndarray, where: str) -> np.ndarray:
    """Records written by each track, as int64."""
    table = block.tables(buffer)
    if table.size and table.max() > MAX_WRITTEN:
        track = int(table.argmax())
        raise TraceFormatError(
            f"{where}, program {track // block.units}, unit {track % block.units}: "
            f"records written must be at most {MAX_WRITTEN}, got {table.max()}"
        )
    return table.astype(np.int64).ravel()


def _with_chunks(
    kernel: Kernel,
    launch: Launch,
    buffer: np.ndarray,
    written: np.ndarray,
    finished: np.ndarray,
    where: str,
) -> tuple[np.ndarray, tuple[_Runs, np.ndarray]]:
    """The words of the buffer and, behind them, of the chunks; the chunks' runs, and where each
    track's chunks end (the number of the first record after them; 0 without chunks)."""
    flushed = np.zeros(written.size, np.int64)
    words = buffer.view("<u8")
    if not launch.chunks:
        none = np.zeros(0, np.int64)
        return words, (_Runs(track=none, word=none, count=none), flushed)
    track, first, count = check_chunks(kernel, launch, written, finished, where)
    data = np.concatenate([chunk.data for chunk in launch.chunks])
    word = words.size + (np.cumsum(count) - count) * kernel.schema.words
    order = np.lexsort((first, track))
    np.maximum.at(flushed, track, first + count)
    runs = _Runs(track=track[order], word=word[order], count=count[order])
    return np.concatenate([words, data.view("<u8")]), (runs, flushed)


def _ring_runs(kernel: Kernel, block: Block, written: np.ndarray, moved: np.ndarray) -> _Runs:
    """The runs that are still in the segments; `moved` is where each track's chunks end."""
    track = np.arange(written.size)
    if kernel.strategy is None or not kernel.strategy.stores:
        return _Runs(track=track[:0], word=track[:0], count=track[:0])
    base = block.segment_words(track)
    intervals = kernel.strategy.rules.intervals(written, block.capacity, moved)
    words = [base + first * block.schema.words for first, _ in intervals]
    counts = [count for _, count in intervals]
    return _Runs(
        track=np.repeat(track, len(intervals)),
        word=np.stack(words, axis=1).ravel(),
        count=np.stack(counts, axis=1).ravel(),
    )


def _merge(ring: _Runs, flushed: _Runs) -> _Runs:
    """All runs in order: a track's chunks are older than what is left in its segment."""
    if not flushed.track.size:
        return ring
    track = np.append(flushed.track, ring.track)
    order = np.argsort(track, kind="stable")
    word, count = np.append(flushed.word, ring.word), np.append(flushed.count, ring.count)
    return _Runs(track=track[order], word=word[order], count=count[order])


def _flatten(runs: _Runs, record_words: int) -> tuple[np.ndarray, np.ndarray]:
    """The track and the first word of each record of the runs."""
    total = int(runs.count.sum())
    before = np.cumsum(runs.count) - runs.count
    index = np.repeat(runs.word - before * record_words, runs.count)
    index += np.arange(0, total * record_words, record_words)
    return np.repeat(runs.track, runs.count), index


def _gather(schema: RecordSchema, words: np.ndarray, index: np.ndarray) -> _Columns:
    found = schema.columns(words, index)
    return _Columns(**{of.name: found[of.name] for of in fields(_Columns)})


def _ticks(
    columns: _Columns, track: np.ndarray, units: int, header: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Start and end of each record in ticks of 64 bits; records are grouped by track, in order.

    Where clocks have 32 bits: ends never fall in the order of writing, and the newest is not
    after the program's own end. So going back from there, each end lies less than 2^32 ticks
    before the next, and a start less than 2^32 before its end. A program that was killed has no
    end to go back from: its clocks lie less than 2^32 after its start.
    """
    start, end = columns.start, columns.end
    if end.dtype == np.uint64:
        return start, end
    if not track.size:
        return start.astype(np.uint64), end.astype(np.uint64)
    program = track // units
    until = header["clock_end"][program]
    newest = np.diff(track, append=-1) != 0
    following = np.where(newest, until.astype(np.uint32), np.append(end[1:], end[:1]))
    back = np.cumsum((following - end)[::-1], dtype=np.uint64)[::-1]
    last = np.flatnonzero(newest)
    beyond = np.append(back[last[:-1] + 1], np.uint64(0))  # what `back` counts of later tracks
    ends = until - (back - np.repeat(beyond, np.diff(last, prepend=-1)))
    starts = ends - (end - start)
    killed = np.flatnonzero(header["state"][program] == ProgramState.STARTED)
    if killed.size:
        since = _begun(header, units)[program[killed]]
        starts[killed], ends[killed] = _after(since, start[killed]), _after(since, end[killed])
    return starts, ends


def _begun(header: np.ndarray, units: int) -> np.ndarray:
    """Ticks that no record of a program comes before. The first unit reads the clock at init, and
    another may have begun a little earlier."""
    since = header["clock_start"]
    return since - np.minimum(since, np.uint64(EARLY if units > 1 else 0))


def _after(since: np.ndarray, clock: np.ndarray) -> np.ndarray:
    """The first ticks at or after `since` whose low half is `clock`; `clock` if it is whole."""
    if clock.dtype == np.uint64:
        return clock
    return since + (clock - since.astype(np.uint32))


def _by_track(track: np.ndarray, index: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    order = np.argsort(track, kind="stable")
    return track[order], index[order]


def _salvage(
    kernel: Kernel,
    block: Block,
    words: np.ndarray,
    header: np.ndarray,
    chunked: tuple[np.ndarray, np.ndarray],
) -> tuple[np.ndarray, np.ndarray]:
    """What can be trusted in the segments of killed programs, oldest first by end.

    Their counts may not have reached memory, so every slot is looked at, and taken when it holds
    a well-formed record that began after the program did and is not in a chunk already. A clock
    of 0 is one that was never stored.
    """
    since, partial = _begun(header, kernel.units), header["state"] == ProgramState.STARTED
    track = np.flatnonzero(np.repeat(partial, kernel.units))
    count = np.full(track.size, block.capacity)
    base = block.segment_words(track)
    track, index = _flatten(_Runs(track=track, word=base, count=count), block.schema.words)
    columns = _gather(block.schema, words, index)
    newest = np.zeros(partial.size * kernel.units, np.uint64)
    flushed = _gather(block.schema, words, chunked[1]).end
    np.maximum.at(newest, chunked[0], _after(since[chunked[0] // kernel.units], flushed))
    kinds = scope_kinds(kernel)
    scope = columns.tag & np.uint32(MAX_SCOPE_ID)
    known = scope < len(kernel.scopes)
    known[known] = kind_fits(columns.tag[known] >> np.uint32(KIND_SHIFT), kinds[scope[known]])
    begun = since[track // kernel.units]
    start, end = _after(begun, columns.start), _after(begun, columns.end)
    good = known & (columns.start > 0) & (columns.end > 0)
    good &= (start >= begun) & (end >= start) & (end > newest[track])
    order = np.lexsort((end[good], track[good]))
    return track[good][order], index[good][order]
