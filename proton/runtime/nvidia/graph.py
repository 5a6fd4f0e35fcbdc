"""Profiled launches in CUDA graphs: every replay is kept apart.

A graph replays what was captured, with the same addresses. So a captured launch has a profile
buffer of its own, and a *log* on the device with room for some replays; a kernel copies what the
buffer holds into the log's next slot, clears it for the next replay, and counts. It follows the
launch in the graph, and nothing follows it: what the stream runs next does not wait for it. No host
is involved while the graph runs. When the session ends it reads the log; replays that found no room
are in its count. The memory is never given back: a graph may be replayed for as long as the process
lives.
"""

import ctypes
import functools
from dataclasses import dataclass

import numpy as np

from proton.runtime.nvidia import cuda
from proton.runtime.nvidia.hand_written import loaded
from proton.trace import wire

LOG_BYTES = 64 << 20  # of the log of one captured launch, at most
HEAD_BYTES = 64  # of a log: the number of replays, u32, and how many programs of `keep` have come
COME = 4  # where that is
NO_SLAB = (1 << 64) - 1
THREADS = 256
PIECE_BYTES = 16  # that a thread loads at once
PIECES = 8  # that a thread has on their way at once

# A thread loads PIECES before it looks at one, and loads them before it knows which replay this is:
# what takes time is memory's latency, and that is once for all of them. A few threads with much on
# its way leave the SMs to the kernels that run meanwhile. The last program to come counts, when all
# have read which replay it is. Of a buffer much is zero: room that no record took. Such pieces are
# read, and not written: they are clear, and so is their place in the log, which is written once.
_PTX = """
.visible .entry keep(
    .param .u64 buffer, .param .u64 log, .param .u64 bytes, .param .u32 slots,
    .param .u64 slab, .param .u32 room)
{{
    .reg .b32 %r<22>;
    .reg .b32 %v<{words}>;
    .reg .b64 %rd<14>;
    .reg .pred %p<8>;
    ld.param.u64 %rd1, [buffer];
    ld.param.u64 %rd2, [log];
    ld.param.u64 %rd3, [bytes];
    ld.param.u32 %r1, [slots];
    ld.param.u64 %rd9, [slab];
    ld.param.u32 %r16, [room];
    ld.volatile.global.u32 %r2, [%rd2];
    mov.u32 %r3, %ctaid.x;
    mov.u32 %r4, %ntid.x;
    mov.u32 %r5, %tid.x;
    mov.u32 %r6, %nctaid.x;
    mad.lo.s32 %r7, %r3, %r4, %r5;
    mul.lo.s32 %r8, %r6, %r4;
    mul.wide.u32 %rd5, %r7, {piece};
    mul.wide.u32 %rd6, %r8, {piece};
    mov.u32 %r9, 0;
copy:
    setp.ge.u64 %p2, %rd5, %rd3;
    @%p2 bra copied;
    mov.u64 %rd10, %rd5;
{loads}
    setp.lt.u32 %p1, %r2, %r1;
    cvt.u64.u32 %rd4, %r2;
    mad.lo.s64 %rd4, %rd4, %rd3, %rd2;
    add.s64 %rd4, %rd4, {head};
{stores}
    bra copy;
copied:
    bar.sync 0;
    setp.ne.u32 %p4, %r5, 0;
    @%p4 ret;
    membar.gl;
    atom.global.add.u32 %r15, [%rd2+{come}], 1;
    add.u32 %r17, %r15, 1;
    setp.ne.u32 %p5, %r17, %r6;
    @%p5 ret;
    st.global.u32 [%rd2+{come}], %r9;
    add.u32 %r18, %r2, 1;
    st.global.u32 [%rd2], %r18;
    ret;
}}
"""
# Behind the buffer's end nothing is loaded, so it is zero there.
_LOAD = """
    mov.u32 {a}, 0;
    mov.u32 {b}, 0;
    mov.u32 {c}, 0;
    mov.u32 {d}, 0;
    setp.lt.u64 %p3, %rd10, %rd3;
    add.s64 %rd7, %rd1, %rd10;
    @%p3 ld.global.v4.b32 {{{a}, {b}, {c}, {d}}}, [%rd7];
    add.s64 %rd10, %rd10, %rd6;
"""
_STORE = """
    add.s64 %rd7, %rd1, %rd5;
    add.s64 %rd8, %rd4, %rd5;
    or.b32 %r19, {a}, {b};
    or.b32 %r20, {c}, {d};
    or.b32 %r21, %r19, %r20;
    setp.ne.u32 %p6, %r21, 0;
    and.pred %p7, %p6, %p1;
    @%p7 st.global.v4.b32 [%rd8], {{{a}, {b}, {c}, {d}}};
    setp.eq.u64 %p3, %rd5, %rd9;
    selp.b32 %r14, %r16, 0, %p3;
    @%p6 st.global.v4.b32 [%rd7], {{%r9, %r14, %r9, %r9}};
    add.s64 %rd5, %rd5, %rd6;
"""


_WORDS = [{name: f"%v{4 * n + k}" for k, name in enumerate("abcd")} for n in range(PIECES)]
_PARTS: dict[str, int | str] = {
    "head": HEAD_BYTES,
    "come": COME,
    "piece": PIECE_BYTES,
    "words": 4 * PIECES,
    "loads": "".join(_LOAD.format(**words) for words in _WORDS),
    "stores": "".join(_STORE.format(**words) for words in _WORDS),
}


@functools.cache
def _keep(device: int) -> int:
    """The kernel that copies, clears and counts."""
    return loaded(device, "keep", _PTX, **_PARTS)


@dataclass(frozen=True)
class CapturedLaunch:
    """A launch in a graph: its buffer of `size` bytes (a multiple of 16), and its log. Where the
    kernel takes chunks of a slab, that lies at `slab` in the buffer and has so much `room`."""

    device: int
    buffer: int
    log: int
    size: int
    slots: int
    slab: int = NO_SLAB
    room: int = 0

    @property
    def bytes(self) -> int:
        """Of the buffer and of the log."""
        return HEAD_BYTES + (1 + self.slots) * self.size

    def keep(self, stream: int) -> None:
        """Captures the copying, clearing and counting behind the kernel."""
        most = cuda.attribute(self.device, "MULTIPROCESSOR_COUNT")  # one on each SM
        programs = min(most, -(-self.size // (PIECE_BYTES * THREADS)))
        pointer, long, word = ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint32
        taken = [(self.buffer, pointer), (self.log, pointer), (self.size, long)]
        taken += [(self.slots, word), (self.slab, long), (self.room, word)]
        cuda.capture_beside(_keep(self.device), programs, THREADS, stream, taken)

    def replays(self) -> tuple[int, list[np.ndarray]]:
        """How often the graph ran, and the buffers of the replays that found room."""
        head = cuda.read_device(self.log, HEAD_BYTES)
        count = int(head[:4].view("<u4")[0])
        kept = min(count, self.slots)
        data = cuda.read_device(self.log + HEAD_BYTES, kept * self.size) if kept else head[:0]
        return count, list(data.reshape(kept, self.size))


def capture(
    device: int, size: int, memory_left: int, slab: tuple[int, int] | None
) -> CapturedLaunch | None:
    """Memory for a launch that is captured next, all zeros but for the head of its slab (its place
    in the buffer, and its room), if it takes one; None where `memory_left` (bytes) has no room for
    the buffer and one replay."""
    slots = min(max(LOG_BYTES, size), memory_left - HEAD_BYTES - size) // size
    if slots < 1:
        return None
    with cuda.capture_aside():
        _keep(device)
        log = cuda.allocate_device(HEAD_BYTES + (1 + slots) * size)
        buffer = log + HEAD_BYTES + slots * size
        if slab is not None:
            cuda.write_word(buffer + slab[0] + wire.slab_room_offset(), slab[1])
    return CapturedLaunch(device, buffer, log, size, slots, *(slab or ()))
