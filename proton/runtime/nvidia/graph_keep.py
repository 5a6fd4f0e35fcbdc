"""The kernel that keeps what a launch in a CUDA graph left, written in PTX.

It copies a profile buffer into the next slot of a log (graph.py), and counts. Of the buffer it
copies what was written, not what there is room for: the heads of the programs' blocks, of each
unit's segment as many records as the block's table says, and of a slab what was taken. Nothing is
cleared for the next replay, but for the slab's word of how much is taken: each program writes its
head and its table anew, and what lies behind a unit's records, or behind what is taken, nobody
reads.

The work is *rows*: up to ROW_BYTES of a head, or what a unit wrote. LANES threads copy a row, each
16 bytes at a time; a thread has a part of ROWS rows on its way at once, as what takes time is
memory's latency: first the counts of all, then the records of all. Segments that begin at a
multiple of 32 bytes are copied by 32, which is what memory reads and writes at once. No thread
needs to know which replay this is before it has loaded what it will store.
"""

import ctypes
import functools
from typing import Any

from proton.runtime.nvidia import cuda
from proton.runtime.nvidia.hand_written import loaded
from proton.trace import wire

HEAD_BYTES = 64  # of a log: the number of replays, u32, and how many programs of `keep` have come
COME = 4  # where that is
THREADS = 256
PIECE_BYTES = 16  # that a thread loads at once
LANES = 4
ROW_BYTES = LANES * PIECE_BYTES
ROWS = 6
MOST_ROWS = 1 << 31  # as their numbers have 32 bits

# Parameters: the buffer, the log, bytes of a slot, bytes of all blocks (behind them lies the slab,
# if there is one), of a block and of a unit's segment; slots, rows in all and of a program, rows of
# a head and its bytes, bytes of a record, records of a segment.
_LONG = ("buffer", "log", "size", "blocks", "block", "segment")
_SHORT = ("slots", "rows", "each", "head_rows", "head", "record", "capacity")
_PTX = """
.visible .entry keep(
{parameters}
)
{{
    .reg .b32 %r<32>, %n<{rows}>, %j<{rows}>, %v<{words}>;
    .reg .b64 %rd<32>, %at<{rows}>, %c<{rows}>;
    .reg .pred %p<16>, %in<{rows}>, %of_unit<{rows}>, %moves<{rows}>;
{load_parameters}
    ld.volatile.global.u32 %r1, [%log];
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %ntid.x;
    mov.u32 %r4, %tid.x;
    mov.u32 %r5, %nctaid.x;
    mad.lo.u32 %r6, %r2, %r3, %r4;
    mul.lo.u32 %r7, %r5, %r3;
    and.b32 %r8, %r6, {last_lane};
    mul.wide.u32 %rd1, %r8, {piece};
    shr.u32 %r9, %r6, {lane_bits};
    shr.u32 %r10, %r7, {lane_bits};
batch:
    setp.ge.u32 %p0, %r9, %rows;
    @%p0 bra slab;
{counts}
{places}
    mov.u32 %r12, %r8;
pieces:
{loads}
    setp.ge.u32 %p1, %r1, %slots;
    @%p1 bra copied;
    cvt.u64.u32 %rd2, %r1;
    mad.lo.u64 %rd2, %rd2, %size, %log;
    sub.u64 %rd2, %rd2, %buffer;
{stores}
    add.u32 %r12, %r12, {lanes};
    setp.lt.u32 %p2, %r12, %r13;
    @%p2 bra pieces;
    bra batch;
slab:
    setp.ge.u32 %p1, %r1, %slots;
    @%p1 bra copied;
    setp.ge.u64 %p3, %blocks, %size;
    @%p3 bra copied;
    cvt.u64.u32 %rd2, %r1;
    mad.lo.u64 %rd2, %rd2, %size, %log;
    sub.u64 %rd2, %rd2, %buffer;
    add.u64 %rd3, %buffer, %blocks;
    ld.global.v2.u32 {{%r14, %r15}}, [%rd3];
    min.u32 %r14, %r14, %r15;
    add.u32 %r14, %r14, 1;
    mul.wide.u32 %rd5, %r7, {piece};
chunks:
    setp.ge.u32 %p4, %r6, %r14;
    @%p4 bra copied;
    mul.wide.u32 %rd4, %r6, {piece};
    add.u64 %rd4, %rd4, %rd3;
{slab_loads}
{slab_stores}
    bra chunks;
copied:
    bar.sync 0;
    setp.ne.u32 %p5, %r4, 0;
    @%p5 ret;
    membar.gl;
    atom.global.add.u32 %r16, [%log+{come}], 1;
    add.u32 %r16, %r16, 1;
    setp.ne.u32 %p6, %r16, %r5;
    @%p6 ret;
    mov.u32 %r17, 0;
    add.u64 %rd3, %buffer, %blocks;
    setp.lt.u64 %p7, %blocks, %size;
    @%p7 st.global.u32 [%rd3], %r17;
    st.global.u32 [%log+{come}], %r17;
    add.u32 %r18, %r1, 1;
    st.global.u32 [%log], %r18;
    ret;
}}
"""
# Of row {n} from %r9 on: which program's it is, and which of its rows; the count of a unit.
_COUNT = """
    setp.lt.u32 %in{n}, %r9, %rows;
    div.u32 %r20, %r9, %each;
    mul.lo.u32 %r21, %r20, %each;
    sub.u32 %j{n}, %r9, %r21;
    cvt.u64.u32 %rd20, %r20;
    mad.lo.u64 %at{n}, %rd20, %block, %buffer;
    setp.ge.u32 %of_unit{n}, %j{n}, %head_rows;
    and.pred %moves{n}, %of_unit{n}, %in{n};
    sub.u32 %r22, %j{n}, %head_rows;
    mad.wide.u32 %rd21, %r22, {count}, %at{n};
    mov.u64 %c{n}, 0;
    @%moves{n} ld.global.u64 %c{n}, [%rd21+{table}];
    add.u32 %r9, %r9, %r10;
"""
# Its pieces, %n, and where the thread's first one lies.
_PLACE = """
    cvt.u64.u32 %rd22, %capacity;
    min.u64 %c{n}, %c{n}, %rd22;
    cvt.u32.u64 %r23, %c{n};
    mul.lo.u32 %r23, %r23, %record;
    sub.u32 %r24, %j{n}, %head_rows;
    cvt.u64.u32 %rd23, %r24;
    cvt.u64.u32 %rd24, %head;
    mad.lo.u64 %rd23, %rd23, %segment, %rd24;
    cvt.u32.u64 %r25, %rd23;
    and.b32 %r25, %r25, {last_of_sector};
    cvt.u64.u32 %rd24, %r25;
    sub.u64 %rd23, %rd23, %rd24;
    setp.ne.u32 %p10, %r23, 0;
    add.u32 %r23, %r23, %r25;
    add.u32 %r23, %r23, {last_of_sector};
    shr.u32 %r23, %r23, {sector_bits};
    shl.b32 %r23, %r23, 1;
    selp.u32 %r23, %r23, 0, %p10;
    mul.lo.u32 %r26, %j{n}, {row};
    cvt.u64.u32 %rd25, %r26;
    sub.u32 %r27, %head, %r26;
    min.u32 %r27, %r27, {row};
    shr.u32 %r27, %r27, {piece_bits};
    selp.u32 %n{n}, %r23, %r27, %of_unit{n};
    selp.u32 %n{n}, %n{n}, 0, %in{n};
    selp.b64 %rd26, %rd23, %rd25, %of_unit{n};
    add.u64 %at{n}, %at{n}, %rd26;
    add.u64 %at{n}, %at{n}, %rd1;
    max.u32 %r13, %r13, %n{n};
"""
_LOAD = """
    setp.lt.u32 %moves{n}, %r12, %n{n};
    @%moves{n} ld.global.v4.b32 {words}, [%at{n}];
"""
_STORE = """
    add.u64 %rd10, %at{n}, %rd2;
    @%moves{n} st.global.v4.b32 [%rd10+{log_head}], {words};
    add.u64 %at{n}, %at{n}, {row};
"""
_SLAB_LOAD = """
    setp.lt.u32 %moves{n}, %r6, %r14;
    mov.u64 %at{n}, %rd4;
    @%moves{n} ld.global.v4.b32 {words}, [%at{n}];
    add.u64 %rd4, %rd4, %rd5;
    add.u32 %r6, %r6, %r7;
"""
_SLAB_STORE = """
    add.u64 %rd10, %at{n}, %rd2;
    @%moves{n} st.global.v4.b32 [%rd10+{log_head}], {words};
"""
_FACTS: dict[str, int | str] = {
    "come": COME,
    "log_head": HEAD_BYTES,
    "piece": PIECE_BYTES,
    "piece_bits": PIECE_BYTES.bit_length() - 1,
    "lanes": LANES,
    "last_lane": LANES - 1,
    "lane_bits": LANES.bit_length() - 1,
    "row": ROW_BYTES,
    "rows": ROWS,
    "words": 4 * ROWS,
    "last_of_sector": 2 * PIECE_BYTES - 1,
    "sector_bits": (2 * PIECE_BYTES).bit_length() - 1,
    "table": wire.HEADER_BYTES,
    "count": wire.COUNT_BYTES,
}


def _repeated(text: str) -> str:
    """The code for each of the rows that are on their way at once."""
    quads = ["{" + ", ".join(f"%v{4 * n + k}" for k in range(4)) + "}" for n in range(ROWS)]
    return "".join(text.format(n=n, words=quads[n], **_RULES) for n in range(ROWS))


_RULES = {name: value for name, value in _FACTS.items() if name not in ("rows", "words")}
_TYPES = {**dict.fromkeys(_LONG, "u64"), **dict.fromkeys(_SHORT, "u32")}
PARTS = _FACTS | {
    "parameters": ",\n".join(f"    .param .{kind} {name}" for name, kind in _TYPES.items()),
    "load_parameters": "".join(
        f"    .reg .{kind} %{name};\n    ld.param.{kind} %{name}, [{name}];\n"
        for name, kind in _TYPES.items()
    ),
    "counts": _repeated(_COUNT),
    "places": "    mov.u32 %r13, 0;\n" + _repeated(_PLACE),
    "loads": _repeated(_LOAD),
    "stores": _repeated(_STORE),
    "slab_loads": _repeated(_SLAB_LOAD),
    "slab_stores": _repeated(_SLAB_STORE),
}


@functools.cache
def keep(device: int) -> int:
    """The kernel's function on a device; in its context."""
    return loaded(device, "keep", _PTX, **PARTS)


def rows_of(block: wire.Block) -> tuple[int, int]:
    """Of a program: rows in all, and those of its head."""
    head = -(-block.segments // ROW_BYTES)
    return head + block.units * (block.capacity > 0), head


def arguments(
    buffer: int, log: int, size: int, slots: int, programs: int, block: wire.Block
) -> list[tuple[int, Any]]:
    """What the kernel takes, (value, ctypes type) each: a buffer of `size` bytes that begins with
    the blocks of so many programs, and a log with so many slots."""
    each, head_rows = rows_of(block)
    values = {
        "buffer": buffer,
        "log": log,
        "size": size,
        "blocks": programs * block.bytes,
        "block": block.bytes,
        "segment": block.segment_bytes,
        "slots": slots,
        "rows": programs * each,
        "each": each,
        "head_rows": head_rows,
        "head": block.segments,
        "record": block.schema.bytes,
        "capacity": block.capacity,
    }
    kinds = {"u64": ctypes.c_uint64, "u32": ctypes.c_uint32}
    return [(values[name], kinds[kind]) for name, kind in _TYPES.items()]


def programs_for(device: int, programs: int, block: wire.Block, has_slab: bool) -> int:
    """How many programs of the kernel keep a launch of so many: one on each SM at most."""
    most = cuda.attribute(device, "MULTIPROCESSOR_COUNT")
    needed = -(-programs * rows_of(block)[0] * LANES // THREADS)
    return most if has_slab else min(most, needed)
