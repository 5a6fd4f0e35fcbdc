"""The kernel that keeps what a launch in a CUDA graph left, written in PTX.

It copies a profile buffer into the next slot of a log (graph.py), and counts. Of the buffer it
copies what was written, not what there is room for: the heads of the programs' blocks, of each
unit's segment as many records as the block's table says, and of a slab what was taken. Nothing is
cleared for the next replay, but for the slab's word of how much is taken: each program writes its
head and its table anew, and what lies behind a unit's records, or behind what is taken, nobody
reads.

The work is *rows*: up to ROW_BYTES of a head, or what a unit wrote. LANES threads copy a row, 16
bytes at a time; a thread has SPAN such pieces of ROWS rows on their way at once, as what takes time
is memory's latency: first the counts of all, then the records of all. Whole sectors are copied: to
write a part of one takes longer. No thread needs to know which replay this is before it has loaded
what it will store.

The assembler would load a count, wait for it, and then load the next one: that takes fewer
registers. It does not where the threads of a warp meet behind the loads, so these go through the
loop together.
"""

import ctypes
import functools

from proton.runtime.nvidia import cuda
from proton.runtime.nvidia.hand_written import loaded
from proton.trace import wire

HEAD_BYTES = 64  # of a log: the number of replays, u32, and how many programs of `keep` have come
COME = 4  # where that is
THREADS = 256
PIECE_BYTES = 16  # that a thread loads at once
SECTOR_BYTES = 2 * PIECE_BYTES  # that memory reads and writes at once
LANES = 2
SPAN = 2  # pieces of a row that each of its threads has on their way at once
ROW_BYTES = LANES * SPAN * PIECE_BYTES
ROWS = 3
MOST_ROWS = 1 << 31  # as their numbers have 32 bits

# Parameters: the buffer, the log, bytes of a slot, bytes of all blocks (behind them lies the slab,
# if there is one) and of one; of a unit's segment, slots, rows in all and of a program, rows of a
# head and its bytes, bytes of a record, records of a segment.
_LONG = ("buffer", "log", "size", "blocks", "block")
_SHORT = ("segment", "slots", "rows", "each", "head_rows", "head", "record", "capacity")
_PTX = """
.visible .entry keep(
{parameters}
)
{{
    .reg .b32 %r<32>, %n<{rows}>, %j<{rows}>, %u<{rows}>, %c<{rows}>, %v<{words}>;
    .reg .b64 %rd<32>, %at<{rows}>;
    .reg .b64 %from<{quads}>;
    .reg .pred %p<16>, %in<{rows}>, %moves<{quads}>;
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
    div.u32 %r19, %r9, %each;
    mul.lo.u32 %r20, %r19, %each;
    sub.u32 %r20, %r9, %r20;
    cvt.u64.u32 %rd20, %r19;
    mad.lo.u64 %rd20, %rd20, %block, %buffer;
    div.u32 %r19, %r10, %each;
    mul.lo.u32 %r22, %r19, %each;
    sub.u32 %r22, %r10, %r22;
    cvt.u64.u32 %rd22, %r19;
    mul.lo.u64 %rd22, %rd22, %block;
    and.b32 %r29, %r4, 31;
    shr.u32 %r29, %r29, {lane_bits};
batch:
    sub.u32 %r30, %r9, %r29;
    setp.ge.u32 %p0, %r30, %rows;
    @%p0 bra slab;
{counts}
    bar.warp.sync -1;
{places}
    mov.u32 %r12, %r8;
pieces:
{loads}
    rem.u32 %r11, %r1, %slots;
    cvt.u64.u32 %rd2, %r11;
    mad.lo.u64 %rd2, %rd2, %size, %log;
    sub.u64 %rd2, %rd2, %buffer;
{stores}
    add.u32 %r12, %r12, {at_once};
    setp.lt.u32 %p2, %r12, %r13;
    @%p2 bra pieces;
    bra batch;
slab:
    setp.ge.u64 %p3, %blocks, %size;
    @%p3 bra copied;
    rem.u32 %r11, %r1, %slots;
    cvt.u64.u32 %rd2, %r11;
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
# Of the next row: its number in its program, and where the block of that lies; a unit's count, of
# which a GPU writes no more than the low word.
_COUNT = """
    setp.lt.u32 %in{n}, %r9, %rows;
    mov.u32 %j{n}, %r20;
    mov.u64 %at{n}, %rd20;
    sub.u32 %u{n}, %j{n}, %head_rows;
    mad.wide.u32 %rd21, %u{n}, {count}, %at{n};
    setp.ge.and.u32 %moves{n}, %j{n}, %head_rows, %in{n};
    mov.u32 %c{n}, 0;
    @%moves{n} ld.global.u32 %c{n}, [%rd21+{table}];
    add.u32 %r9, %r9, %r10;
    add.u32 %r20, %r20, %r22;
    add.u64 %rd20, %rd20, %rd22;
    setp.ge.u32 %p10, %r20, %each;
    @%p10 sub.u32 %r20, %r20, %each;
    @%p10 add.u64 %rd20, %rd20, %block;
"""
# Its pieces, %n, and where the thread's first one lies. What a row of the head is to the block, a
# unit's row is to the segments: only what lies there is another size.
_PLACE = """
    setp.ge.u32 %p10, %j{n}, %head_rows;
    min.u32 %r23, %c{n}, %capacity;
    mul.lo.u32 %r23, %r23, %record;
    mul.lo.u32 %r24, %j{n}, {row};
    sub.u32 %r24, %head, %r24;
    min.u32 %r24, %r24, {row};
    selp.u32 %r23, %r23, %r24, %p10;
    selp.u32 %r25, %u{n}, %j{n}, %p10;
    selp.u32 %r26, %segment, {row}, %p10;
    selp.u32 %r27, %head, 0, %p10;
    mad.wide.u32 %at{n}, %r25, %r26, %at{n};
    cvt.u64.u32 %rd23, %r27;
    add.u64 %at{n}, %at{n}, %rd23;
    cvt.u32.u64 %r28, %at{n};
    and.b32 %r28, %r28, {last_of_sector};
    and.b64 %at{n}, %at{n}, -{sector};
    add.u64 %at{n}, %at{n}, %rd1;
    setp.ne.and.u32 %p10, %r23, 0, %in{n};
    add.u32 %r23, %r23, %r28;
    add.u32 %r23, %r23, {last_of_sector};
    shr.u32 %r23, %r23, {sector_bits};
    shl.b32 %r23, %r23, 1;
    selp.u32 %n{n}, %r23, 0, %p10;
    max.u32 %r13, %r13, %n{n};
"""
_LOAD = """
    add.u32 %r31, %r12, {ahead};
    setp.lt.u32 %moves{q}, %r31, %n{n};
    @%moves{q} ld.global.v4.b32 {words}, [%at{n}+{ahead_bytes}];
"""
_STORE = """
    add.u64 %rd10, %at{n}, %rd2;
    @%moves{q} st.global.v4.b32 [%rd10+{log_place}], {words};
"""
_ON = """
    add.u64 %at{n}, %at{n}, {row};
"""
_SLAB_LOAD = """
    setp.lt.u32 %moves{q}, %r6, %r14;
    mov.u64 %from{q}, %rd4;
    @%moves{q} ld.global.v4.b32 {words}, [%from{q}];
    add.u64 %rd4, %rd4, %rd5;
    add.u32 %r6, %r6, %r7;
"""
_SLAB_STORE = """
    add.u64 %rd10, %from{q}, %rd2;
    @%moves{q} st.global.v4.b32 [%rd10+{log_head}], {words};
"""
_FACTS: dict[str, int | str] = {
    "come": COME,
    "log_head": HEAD_BYTES,
    "piece": PIECE_BYTES,
    "at_once": LANES * SPAN,
    "last_lane": LANES - 1,
    "lane_bits": LANES.bit_length() - 1,
    "row": ROW_BYTES,
    "rows": ROWS,
    "quads": ROWS * SPAN,
    "words": 4 * ROWS * SPAN,
    "sector": SECTOR_BYTES,
    "last_of_sector": SECTOR_BYTES - 1,
    "sector_bits": SECTOR_BYTES.bit_length() - 1,
    "table": wire.HEADER_BYTES,
    "count": wire.COUNT_BYTES,
}


def _of_rows(text: str) -> str:
    """The code for each of the rows that are on their way at once."""
    return "".join(text.format(n=n, **_FACTS) for n in range(ROWS))


def _of_pieces(text: str) -> str:
    """The code for each of the pieces that are on their way at once."""
    found = []
    for q in range(ROWS * SPAN):
        row, number = divmod(q, SPAN)
        ahead = number * LANES
        place = ahead * PIECE_BYTES
        parts: dict[str, int | str] = {
            "n": row,
            "q": q,
            "ahead": ahead,
            "ahead_bytes": place,
            "log_place": HEAD_BYTES + place,
            "words": "{" + ", ".join(f"%v{4 * q + k}" for k in range(4)) + "}",
        }
        found.append(text.format(**(_FACTS | parts)))
    return "".join(found)


_TYPES = {**dict.fromkeys(_LONG, "u64"), **dict.fromkeys(_SHORT, "u32")}
PARTS = _FACTS | {
    "parameters": ",\n".join(f"    .param .{kind} {name}" for name, kind in _TYPES.items()),
    "load_parameters": "".join(
        f"    .reg .{kind} %{name};\n    ld.param.{kind} %{name}, [{name}];\n"
        for name, kind in _TYPES.items()
    ),
    "counts": _of_rows(_COUNT),
    "places": "    mov.u32 %r13, 0;\n" + _of_rows(_PLACE),
    "loads": _of_pieces(_LOAD),
    "stores": _of_pieces(_STORE) + _of_rows(_ON),
    "slab_loads": _of_pieces(_SLAB_LOAD),
    "slab_stores": _of_pieces(_SLAB_STORE),
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
) -> list[tuple[int, cuda.CType]]:
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
    kinds: dict[str, cuda.CType] = {"u64": ctypes.c_uint64, "u32": ctypes.c_uint32}
    return [(values[name], kinds[kind]) for name, kind in _TYPES.items()]


def programs_for(device: int, programs: int, block: wire.Block, has_slab: bool) -> int:
    """How many programs of the kernel keep a launch of so many: one on each SM at most."""
    most = cuda.attribute(device, "MULTIPROCESSOR_COUNT")
    needed = -(-programs * rows_of(block)[0] * LANES // THREADS)
    return most if has_slab else min(most, needed)
