"""The profile buffer on the wire: the only place that knows its offsets.

A launch leaves one buffer: `programs` blocks of equal size, block p belonging to the program
with linear id p (x fastest, then y, then z). All integers are little-endian. One block is

    header     HEADER_BYTES, `HEADER`
    table      units x u64: records written by each unit, never wrapped, so losses are exact
    segments   from the next multiple of 16 bytes: units x capacity records of
               `record_bytes(payload_slots, clock_bits)`

A record is written once, when its slice ends; marks and the edges of events are instants. Record
number k of a unit (k counts from 0) lies in slot k mod capacity, so after a wrap the segment holds
the newest `capacity` records.
Under the flush strategy full segments leave the block while the kernel runs, as chunks of
(program, unit, first record number, records); what is still in the segment at the end are the
newest `written mod capacity` records (all `capacity` of them when that is 0 and the last
segment was not flushed; the runtime says which by the chunks it kept).

On a GPU that strategy takes its segments from a heap that launches share: a head of u32 bytes
taken so far and u32 bytes there are, both in units of RECORD_ALIGNMENT and without the head, padded
to 16 bytes, then chunks of

    program    u32, its linear id
    unit       u32
    first      u64, the number of its first record
    launch     u32, an argument of the launch
    size       u32, bytes of the chunk with its head
    padding    u64
    records    capacity of them

A unit takes a chunk for each `capacity` records; where there is no room left it writes into its own
segment, over and over. The runtime makes of them what the first paragraphs say, so no file has a
heap.

Clocks of a record have 64 bits, or are the low 32 bits of a GPU's cycle counter; those of the
header always have 64.

Changing anything that a file has changes `VERSION` and docs/buffer-format.md.
"""

import enum
import functools

import numpy as np

MAGIC = 0x4E545250  # "PRTN" read as little-endian bytes
VERSION = 3


class State(enum.IntEnum):
    """How far a program got; a killed kernel leaves STARTED blocks behind."""

    UNTOUCHED = 0
    STARTED = 1
    FINISHED = 2


class Kind(enum.IntEnum):
    """What a record is; bits 28 to 31 of its tag."""

    SLICE = 0
    MARK = 1
    EVENT_START = 2
    EVENT_END = 3


HEADER = np.dtype(
    [
        ("magic", "<u4"),
        ("version", "<u2"),
        ("state", "<u2"),
        ("program_x", "<u4"),
        ("program_y", "<u4"),
        ("program_z", "<u4"),
        ("hardware", "<u4"),  # SM on a GPU, core on a CPU; NO_HARDWARE_ID where unknown
        ("thread", "<u4"),  # host thread that ran the program (CPU); 0 on a GPU
        ("units", "<u4"),
        ("capacity", "<u4"),  # records a segment holds; 0 under the counting strategy
        ("payload_slots", "<u4"),  # 8-byte values that follow each record's fixed part
        ("clock_start", "<u8"),  # clock at init
        ("timer_start", "<u8"),  # global timer at init, ns; 0 where the clock needs no timer
        ("clock_end", "<u8"),
        ("timer_end", "<u8"),
        ("clock_bits", "<u4"),  # of the clocks in records: 32 or 64
    ]
)
HEADER_BYTES = 128  # padded to two cache lines; a block starts on a line of its own
BLOCK_ALIGNMENT = 64
NO_HARDWARE_ID = 0xFFFFFFFF

CLOCK_BITS = (32, 64)
RECORD_ALIGNMENT = 16
NO_ITERATION = 0xFFFFFFFF  # the slice is not in a loop

MAX_SCOPE_ID = (1 << 28) - 1
KIND_SHIFT = 28

MAX_PAYLOAD_SLOTS = 16
MAX_UNITS = 64  # warps of a GPU program at most; 1 on the CPU
MAX_CAPACITY = 1 << 24


def tag(kind: Kind, scope_id: int) -> int:
    """The tag of a record: its kind and the index of its scope in the kernel's scope table."""
    if not 0 <= scope_id <= MAX_SCOPE_ID:
        raise ValueError(f"scope_id must lie in [0, {MAX_SCOPE_ID}], got {scope_id}")
    return kind << KIND_SHIFT | scope_id


def record_bytes(payload_slots: int, clock_bits: int = 64) -> int:
    """Bytes of one record: the two clocks, tag and iteration, then the payload."""
    return record_dtype(payload_slots, clock_bits).itemsize


@functools.cache
def record_dtype(payload_slots: int, clock_bits: int = 64) -> np.dtype:
    """The numpy dtype of one record; `payload` holds raw 8-byte values as u64, each an i64 or f64
    as the scope table of the kernel says."""
    clock = f"<u{clock_bits // 8}"
    return np.dtype(
        [
            ("start", clock),
            ("end", clock),
            ("tag", "<u4"),
            ("iteration", "<u4"),
            ("payload", "<u8", (payload_slots,)),
        ]
    )


def offset_of(dtype: np.dtype, field: str) -> int:
    """Offset of a field of a structured dtype."""
    assert dtype.fields is not None
    return dtype.fields[field][1]


def record_offset(field: str, clock_bits: int = 64) -> int:
    """Offset of a field in a record."""
    return offset_of(record_dtype(0, clock_bits), field)


def header_offset(field: str) -> int:
    """Offset of a header field in a block."""
    return offset_of(HEADER, field)


def table_offset() -> int:
    """Offset of the table in a block."""
    return HEADER_BYTES


def segments_offset(units: int) -> int:
    """Offset of the first segment in a block: a GPU stores 16 bytes at once, aligned."""
    return -(-(HEADER_BYTES + 8 * units) // RECORD_ALIGNMENT) * RECORD_ALIGNMENT


HEAP_HEAD = np.dtype([("taken", "<u4"), ("room", "<u4"), ("padding", "<u8")])
CHUNK_HEAD = np.dtype(
    [
        ("program", "<u4"),
        ("unit", "<u4"),
        ("first", "<u8"),
        ("launch", "<u4"),
        ("size", "<u4"),
        ("padding", "<u8"),
    ]
)


def aligned(size: int, alignment: int) -> int:
    """The least multiple of an alignment that is not below a size."""
    return -(-size // alignment) * alignment


def chunk_bytes(capacity: int, payload_slots: int, clock_bits: int) -> int:
    """Bytes of one chunk of a heap, padded to RECORD_ALIGNMENT."""
    end = CHUNK_HEAD.itemsize + capacity * record_bytes(payload_slots, clock_bits)
    return aligned(end, RECORD_ALIGNMENT)


def block_bytes(units: int, capacity: int, payload_slots: int, clock_bits: int = 64) -> int:
    """Bytes of one program's block, padded to BLOCK_ALIGNMENT."""
    end = segments_offset(units) + units * capacity * record_bytes(payload_slots, clock_bits)
    return aligned(end, BLOCK_ALIGNMENT)
