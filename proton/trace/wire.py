"""The profile buffer on the wire: the only place that knows its offsets.

A launch leaves one buffer: `programs` blocks of equal size, block p belonging to the program
with linear id p (x fastest, then y, then z). All integers are little-endian. One block is

    header     HEADER_BYTES, `HEADER`
    table      units x u64: records written by each unit, never wrapped, so losses are exact
    segments   from the next multiple of 16 bytes: units x capacity records of
               `RecordSchema.bytes`

A *unit* is what records: a warp or several of a GPU's program, on the CPU the program. Its
*segment* is its ring buffer in the block. A *chunk* is as many of a unit's records that lie
elsewhere, with a head that says which they are. Of records these words mean nothing else.
A record is written once, when its slice ends; marks and the edges of events are instants. Record
number k of a unit (k counts from 0) lies in slot k mod capacity, so after a wrap the segment holds
the newest `capacity` records.
Under the flush strategy full segments leave the block while the kernel runs, as chunks:
(program, unit, first record number, records); what is still in the segment at the end are the
newest `written mod capacity` records (all `capacity` of them when that is 0 and the last
segment was not flushed; the runtime says which by the chunks it kept).

On a GPU the units take chunks from a slab that launches share: a head of u32 bytes taken so far and
u32 bytes there are, both divided by RECORD_ALIGNMENT and without the head, padded to 16 bytes, then
chunks of

    program    u32, its linear id
    unit       u32
    first      u64, the number of its first record
    launch     u32, an argument of the launch
    size       u32, bytes of the chunk with its head
    padding    u64
    records    capacity of them

A unit takes a chunk for each `capacity` records; where there is no room left it writes into its own
segment, over and over. The runtime makes of them what the first paragraphs say, so no file has a
slab.

Clocks of a record have 64 bits, or are the low 32 bits of a GPU's cycle counter; those of the
header always have 64.

Who writes or reads a buffer asks `RecordSchema` for the fields of a record, `Block` for the parts
of a block, and the functions below for those of a slab. Changing anything that a file has changes
`VERSION` and docs/buffer-format.md.
"""

import enum
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

MAGIC = 0x4E545250  # "PRTN" read as little-endian bytes
VERSION = 3


class ProgramState(enum.IntEnum):
    """How far a program got; a killed kernel leaves STARTED blocks behind."""

    UNTOUCHED = 0
    STARTED = 1
    FINISHED = 2


class RecordKind(enum.IntEnum):
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
COUNT_BYTES = 8  # of an entry of the table
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


def tag(kind: RecordKind, scope_id: int) -> int:
    """The tag of a record: its kind and the index of its scope in the kernel's scope table."""
    if not 0 <= scope_id <= MAX_SCOPE_ID:
        raise ValueError(f"scope_id must lie in [0, {MAX_SCOPE_ID}], got {scope_id}")
    return kind << KIND_SHIFT | scope_id


@dataclass(frozen=True)
class Field:
    """One value of a record, `bits` wide: 32 or 64."""

    name: str
    bits: int


PAYLOAD = "payload"  # the name of the payload in dtypes
WORD = 8  # bytes of what a record is gathered by


def payload_field(slot: int) -> str:
    """The name of one payload value."""
    return f"{PAYLOAD}{slot}"


@dataclass(frozen=True)
class RecordSchema:
    """The fields of a record, in order: what is recorded at both edges of a slice, which slice it
    is, then the payload, raw 8-byte values, each an i64 or f64 as the scope table says.

    A counter other than the clock is one more entry of `fields`; layout, lowerings and decoder
    follow from these.
    """

    payload_slots: int = 0
    clock_bits: int = 64

    @cached_property
    def fields(self) -> tuple[Field, ...]:
        """What a record has in front of its payload."""
        clock = self.clock_bits
        return Field("start", clock), Field("end", clock), Field("tag", 32), Field("iteration", 32)

    @cached_property
    def all_fields(self) -> tuple[Field, ...]:
        """The fields, then each value of the payload."""
        payload = (Field(payload_field(slot), 64) for slot in range(self.payload_slots))
        return *self.fields, *payload

    @cached_property
    def offsets(self) -> dict[str, int]:
        """Where each field begins, bytes."""
        found, end = {}, 0
        for field in self.all_fields:
            found[field.name] = end
            end += field.bits // 8
        return found

    @cached_property
    def dtype(self) -> np.dtype:
        """One record for numpy, its payload an array of u64."""
        fixed = [(field.name, f"<u{field.bits // 8}") for field in self.fields]
        return np.dtype([*fixed, (PAYLOAD, "<u8", (self.payload_slots,))])

    @property
    def bytes(self) -> int:
        """Of one record."""
        return sum(field.bits for field in self.all_fields) // 8

    @property
    def words(self) -> int:
        """Of one record, 8 bytes each."""
        return self.bytes // WORD

    @property
    def stores(self) -> list[tuple[int, tuple[str, ...]]]:
        """How a GPU writes a record: (offset, names of fields) of what is stored at once.
        Neighbours of 32 bits share a store of up to 16 bytes, or 8 where not all records are
        aligned to 16."""
        width = RECORD_ALIGNMENT if self.bytes % RECORD_ALIGNMENT == 0 else WORD
        found: list[tuple[int, tuple[str, ...]]] = []
        narrow = False  # whether the last store is of fields of 32 bits
        for field in self.all_fields:
            offset = self.offsets[field.name]
            if field.bits == 32 and narrow and offset % width:
                found[-1] = found[-1][0], (*found[-1][1], field.name)
            else:
                found.append((offset, (field.name,)))
            narrow = field.bits == 32
        return found

    def columns(self, words: np.ndarray, index: np.ndarray) -> dict[str, np.ndarray]:
        """The fields of the records that begin at these words of a buffer; the payload as rows."""
        found, gathered = {}, dict[int, np.ndarray]()
        for field in self.fields:
            word, shift = divmod(self.offsets[field.name], WORD)
            if word not in gathered:
                gathered[word] = words[index + word] if word else words[index]
            value = gathered[word]
            if field.bits == 32:
                value = (value >> np.uint64(8 * shift) if shift else value).astype(np.uint32)
            found[field.name] = value
        return found

    def payload(self, words: np.ndarray, index: np.ndarray) -> np.ndarray:
        """The payload of these records, raw; (records, slots)."""
        first = self.words - self.payload_slots
        return np.asarray(words[index[:, None] + np.arange(first, self.words)])


def offset_of(dtype: np.dtype, field: str) -> int:
    """Offset of a field of a structured dtype."""
    assert dtype.fields is not None
    return dtype.fields[field][1]


def aligned(size: int, alignment: int) -> int:
    """The least multiple of an alignment that is not below a size."""
    return -(-size // alignment) * alignment


def header_offset(field: str) -> int:
    """Offset of a header field in a block."""
    return offset_of(HEADER, field)


@dataclass(frozen=True)
class Block:
    """One program's block: its header, the table, and a segment of `capacity` records per unit."""

    units: int
    capacity: int
    schema: RecordSchema

    @property
    def table(self) -> int:
        """Offset of the table."""
        return HEADER_BYTES

    @property
    def segments(self) -> int:
        """Offset of the first segment: a GPU stores 16 bytes at once, aligned."""
        return aligned(HEADER_BYTES + COUNT_BYTES * self.units, RECORD_ALIGNMENT)

    @property
    def segment_bytes(self) -> int:
        """Of one unit's segment."""
        return self.capacity * self.schema.bytes

    @property
    def bytes(self) -> int:
        """Of the block, padded to BLOCK_ALIGNMENT."""
        return aligned(self.segments + self.units * self.segment_bytes, BLOCK_ALIGNMENT)

    def segment(self, unit: int) -> int:
        """Offset of a unit's segment."""
        return self.segments + unit * self.segment_bytes

    def segment_words(self, track: np.ndarray) -> np.ndarray:
        """The word of a buffer at which the segment of each track begins; track number t is unit
        t mod units of program t / units."""
        program, unit = np.divmod(track, self.units)
        return (program * self.bytes + self.segments) // WORD + unit * self.segment_bytes // WORD

    def headers(self, buffer: np.ndarray) -> np.ndarray:
        """The headers in a buffer of whole blocks, a view."""
        stride = self.bytes
        return np.ndarray((buffer.size // stride,), HEADER, buffer, strides=(stride,))

    def tables(self, buffer: np.ndarray) -> np.ndarray:
        """Records written, (programs, units), a view."""
        stride, offset = self.bytes, min(self.table, buffer.size)  # an empty buffer has none
        shape = buffer.size // stride, self.units
        return np.ndarray(shape, "<u8", buffer, offset, (stride, COUNT_BYTES))


def header_column(heads: np.ndarray, field: str) -> np.ndarray:
    """A header field of rows of bytes that begin as blocks do; a copy."""
    dtype, place = HEADER[field], header_offset(field)
    return np.ascontiguousarray(heads[:, place : place + dtype.itemsize]).view(dtype)[:, 0]


def set_header(heads: np.ndarray, rows: np.ndarray, field: str, value: int) -> None:
    """Writes a header field of some rows of bytes that begin as blocks do."""
    dtype, place = HEADER[field], header_offset(field)
    heads[rows, place : place + dtype.itemsize] = np.array([value], dtype).view(np.uint8)


def table_columns(heads: np.ndarray, units: int) -> np.ndarray:
    """The tables of rows of bytes that begin as blocks do, (rows, units); a copy."""
    end = HEADER_BYTES + COUNT_BYTES * units
    return np.ascontiguousarray(heads[:, HEADER_BYTES:end]).view("<u8")


SLAB_HEAD = np.dtype([("taken", "<u4"), ("room", "<u4"), ("padding", "<u8")])
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
SLAB_HEAD_BYTES, CHUNK_HEAD_BYTES = SLAB_HEAD.itemsize, CHUNK_HEAD.itemsize


def chunk_bytes(block: Block) -> int:
    """Bytes of one chunk of a slab, for segments of such blocks, padded to RECORD_ALIGNMENT."""
    return aligned(CHUNK_HEAD_BYTES + block.segment_bytes, RECORD_ALIGNMENT)


def slab_bytes(size: int) -> int:
    """Bytes of a slab with its head, with room for `size` bytes of chunks."""
    return SLAB_HEAD_BYTES + aligned(size, RECORD_ALIGNMENT)


def slab_room(size: int) -> int:
    """What the head of a slab of so many bytes says of its room."""
    return (size - SLAB_HEAD_BYTES) // RECORD_ALIGNMENT


def slab_room_offset() -> int:
    """Where the head of a slab says its room, a u32."""
    return offset_of(SLAB_HEAD, "room")


def taken_bytes(head: np.ndarray) -> int:
    """Bytes of chunks that units asked a slab for, by its head; more than there are, maybe."""
    return int(head[:SLAB_HEAD_BYTES].view(SLAB_HEAD)["taken"][0]) * RECORD_ALIGNMENT


def used_bytes(head: np.ndarray, size: int) -> int:
    """Bytes of a slab of so many bytes that are in use, its head among them."""
    return min(size, SLAB_HEAD_BYTES + taken_bytes(head))


def chunks(slab: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """The chunks in a slab's bytes, head included, in runs of one size: their heads, of
    `CHUNK_HEAD`, and their records, (chunks, bytes)."""
    room = int(slab[:SLAB_HEAD_BYTES].view(SLAB_HEAD)["room"][0])
    end = used_bytes(slab, SLAB_HEAD_BYTES + RECORD_ALIGNMENT * room)
    place = SLAB_HEAD_BYTES
    while place + CHUNK_HEAD_BYTES <= end:
        size = int(_chunk_heads(slab, place, 1, CHUNK_HEAD_BYTES)["size"][0])
        if not size or place + size > end:
            break  # nobody got this one: there was less room than it needs
        heads = _chunk_heads(slab, place, (end - place) // size, size)
        others = np.flatnonzero(heads["size"] != size)
        count = int(others[0]) if others.size else len(heads)
        rows = slab[place : place + count * size].reshape(count, size)
        yield heads[:count], rows[:, CHUNK_HEAD_BYTES:]
        place += count * size


def _chunk_heads(slab: np.ndarray, place: int, count: int, stride: int) -> np.ndarray:
    return np.ndarray((count,), CHUNK_HEAD, slab, place, (stride,))
