"""Profiled launches in CUDA graphs: every replay is kept apart.

A graph replays what was captured, with the same addresses. So a captured launch has a profile
buffer of its own, which is cleared ahead of the kernel, and a *log* on the device with room for
some replays; two kernels behind it copy the buffer into the log's next slot and count the replay.
No host is involved while the graph runs. When the session ends it reads the log; replays that
found no room are in its count. The memory is never given back: a graph may be replayed for as long
as the process lives.
"""

import ctypes
import functools
from dataclasses import dataclass

import numpy as np

from proton.backends.nvidia.cubin import Assembler
from proton.runtime.nvidia import cuda
from proton.runtime.nvidia.queue import Queue

LOG_BYTES = 64 << 20  # of the log of one captured launch, at most
HEAD_BYTES = 64  # of a log: the number of replays, u32
THREADS = 256
MOST_PROGRAMS = 512  # of the kernel that copies

_PTX = """
.version {version}
.target {chip}
.address_size 64
.visible .entry keep(.param .u64 buffer, .param .u64 log, .param .u64 bytes, .param .u32 slots)
{{
    .reg .b32 %r<9>;
    .reg .b64 %rd<9>;
    .reg .pred %p<3>;
    ld.param.u64 %rd1, [buffer];
    ld.param.u64 %rd2, [log];
    ld.param.u64 %rd3, [bytes];
    ld.param.u32 %r1, [slots];
    ld.global.u32 %r2, [%rd2];
    setp.ge.u32 %p1, %r2, %r1;
    @%p1 ret;
    cvt.u64.u32 %rd4, %r2;
    mad.lo.s64 %rd4, %rd4, %rd3, %rd2;
    add.s64 %rd4, %rd4, {head};
    mov.u32 %r3, %ctaid.x;
    mov.u32 %r4, %ntid.x;
    mov.u32 %r5, %tid.x;
    mov.u32 %r6, %nctaid.x;
    mad.lo.s32 %r7, %r3, %r4, %r5;
    mul.lo.s32 %r8, %r6, %r4;
    mul.wide.u32 %rd5, %r7, 16;
    mul.wide.u32 %rd6, %r8, 16;
copy:
    setp.ge.u64 %p2, %rd5, %rd3;
    @%p2 ret;
    add.s64 %rd7, %rd1, %rd5;
    add.s64 %rd8, %rd4, %rd5;
    ld.global.v4.b32 {{%r1, %r2, %r3, %r4}}, [%rd7];
    st.global.v4.b32 [%rd8], {{%r1, %r2, %r3, %r4}};
    add.s64 %rd5, %rd5, %rd6;
    bra copy;
}}
.visible .entry count(.param .u64 log)
{{
    .reg .b32 %r<2>;
    .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [log];
    ld.global.u32 %r1, [%rd1];
    add.u32 %r1, %r1, 1;
    st.global.u32 [%rd1], %r1;
    ret;
}}
"""


@functools.cache
def _functions(device: int) -> tuple[int, int]:
    """The kernels `keep` and `count`."""
    target = cuda.target_of(device)
    version = "{}.{}".format(*divmod(target.facts.ptx, 10))
    with Assembler(target, "keep") as assembler:
        assembler.feed(_PTX.format(version=version, chip=target.facts.chip, head=HEAD_BYTES))
        code = assembler.finish().code
    return cuda.load(code, "keep", 0), cuda.load(code, "count", 0)


@dataclass(frozen=True)
class CapturedLaunch:
    """A launch in a graph: its buffer of `size` bytes (a multiple of 16), and its log."""

    device: int
    buffer: int
    log: int
    size: int
    slots: int

    @property
    def bytes(self) -> int:
        """Of the buffer and of the log."""
        return HEAD_BYTES + (1 + self.slots) * self.size

    def keep(self, stream: int) -> None:
        """Queues the copying and counting behind the kernel."""
        keep, count = _functions(self.device)
        pointer = ctypes.c_void_p
        programs = min(MOST_PROGRAMS, -(-self.size // (16 * THREADS)))
        taken = [
            (self.buffer, pointer),
            (self.log, pointer),
            (self.size, ctypes.c_uint64),
            (self.slots, ctypes.c_uint32),
        ]
        cuda.launch_once(keep, programs, THREADS, stream, taken)
        cuda.launch_once(count, 1, 1, stream, [(self.log, pointer)])

    def replays(self) -> tuple[int, list[np.ndarray]]:
        """How often the graph ran, and the buffers of the replays that found room."""
        head = cuda.read_device(self.log, HEAD_BYTES)
        count = int(head[:4].view("<u4")[0])
        kept = min(count, self.slots)
        data = cuda.read_device(self.log + HEAD_BYTES, kept * self.size) if kept else head[:0]
        return count, list(data.reshape(kept, self.size))


def capture(
    queue: Queue, device: int, stream: int, size: int, memory_left: int
) -> CapturedLaunch | None:
    """Memory for a launch that is captured next, and the clearing of its buffer; None where
    `memory_left` (bytes) has no room for the buffer and one replay."""
    slots = min(max(LOG_BYTES, size), memory_left - HEAD_BYTES - size) // size
    if slots < 1:
        return None
    with cuda.capture_aside():
        _functions(device)
        log = cuda.allocate_device(HEAD_BYTES + (1 + slots) * size)
    buffer = log + HEAD_BYTES + slots * size
    queue.clear(buffer, size, stream)
    return CapturedLaunch(device, buffer, log, size, slots)
