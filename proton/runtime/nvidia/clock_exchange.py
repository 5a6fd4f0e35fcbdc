"""How a GPU's global timer lies to the host's clock, within bounds that hold.

A kernel of one thread and the host exchange numbers through pinned memory: the host reads its clock
and asks, the kernel sees the question and answers with its timer, the host sees the answer and
reads its clock. So the timer was read not before the first reading and not after the second. The
two sides are bounded apart, each by the tightest of many exchanges: what is left between them is
the shortest way there and the shortest way back, less what any way takes. Processes of one machine
share the host's clock, so this also says how the GPUs of several processes lie to each other.
"""

import ctypes
import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from proton.backends.cpu import llvm
from proton.backends.nvidia.cubin import Assembler
from proton.base.errors import ProfileError
from proton.runtime.nvidia import cuda
from proton.trace.gpu_clock import MAX_DRIFT, MAX_RESOLUTION

EXCHANGES = 300
# Nothing that an SM and the host tell each other over the bus takes less, whichever way: it is some
# 400 ns on PCIe.
LEAST_WAY_NS = 100
PATIENCE_NS = 10_000_000_000  # after which the kernel ends, if the host asks nothing
# At the answer, before it is seen whether the kernel runs, or waits for its turn: others may have
# the GPU for as long as they like.
_LOOKS = 1_000_000
_SILENT = (
    "GPU {device} did not tell its global timer: this process was stopped for "
    f"{PATIENCE_NS // 1_000_000_000} s while it was asked; start the session again"
)
_ANSWER = 128  # bytes from the question to the answer: another cache line
_NUMBER_BITS = 2  # of an answer, below the timer, so that no two in a row are alike

# The host's side, as machine code: Python's own steps would be 0.4 us of each exchange. It asks,
# unless the number is 0, looks for another answer than the last, and leaves the three readings.
# clock_gettime(1) is the clock of `time.perf_counter_ns`.
_HOST_IR = """
declare i32 @clock_gettime(i32, ptr)
define i64 @proton_exchange(ptr %question, ptr %answer, i64 %number, i64 %last, ptr %out,
                            i64 %looks) {
entry:
  %time = alloca [2 x i64]
  %nanoseconds = getelementptr i64, ptr %time, i64 1
  %asks = icmp ne i64 %number, 0
  br i1 %asks, label %ask, label %look
ask:
  %status = call i32 @clock_gettime(i32 1, ptr %time)
  store volatile i64 %number, ptr %question
  %s0 = load i64, ptr %time
  %n0 = load i64, ptr %nanoseconds
  %w0 = mul i64 %s0, 1000000000
  %t0 = add i64 %w0, %n0
  store i64 %t0, ptr %out
  br label %look
look:
  %n = phi i64 [ 0, %entry ], [ 0, %ask ], [ %next, %again ]
  %said = load volatile i64, ptr %answer
  %is = icmp ne i64 %said, %last
  br i1 %is, label %done, label %again
again:
  %next = add i64 %n, 1
  %goes = icmp ult i64 %next, %looks
  br i1 %goes, label %look, label %late
late:
  ret i64 0
done:
  %status1 = call i32 @clock_gettime(i32 1, ptr %time)
  %s1 = load i64, ptr %time
  %n1 = load i64, ptr %nanoseconds
  %w1 = mul i64 %s1, 1000000000
  %t1 = add i64 %w1, %n1
  %said_at = getelementptr i64, ptr %out, i64 1
  %answered_at = getelementptr i64, ptr %out, i64 2
  store i64 %said, ptr %said_at
  store i64 %t1, ptr %answered_at
  ret i64 1
}
"""

# The timer is read behind the branch that depends on the question, so not before it came.
_PTX = """
.version {version}
.target {chip}
.address_size 64
.visible .entry exchange(.param .u64 cell, .param .u64 count, .param .u64 patience)
{{
    .reg .b64 %rd<12>;
    .reg .pred %p<4>;
    ld.param.u64 %rd1, [cell];
    ld.param.u64 %rd2, [count];
    ld.param.u64 %rd3, [patience];
    mov.u64 %rd4, %globaltimer;
    mov.u64 %rd5, 0;
next:
    add.u64 %rd5, %rd5, 1;
wait:
    ld.volatile.global.u64 %rd6, [%rd1];
    setp.eq.u64 %p1, %rd6, %rd5;
    @%p1 bra asked;
    mov.u64 %rd7, %globaltimer;
    sub.u64 %rd7, %rd7, %rd4;
    setp.gt.u64 %p2, %rd7, %rd3;
    @%p2 ret;
    bra wait;
asked:
    mov.u64 %rd8, %globaltimer;
    shl.b64 %rd9, %rd8, {bits};
    and.b64 %rd10, %rd5, {mask};
    or.b64 %rd9, %rd9, %rd10;
    st.volatile.global.u64 [%rd1+{answer}], %rd9;
    setp.lt.u64 %p3, %rd5, %rd2;
    @%p3 bra next;
    ret;
}}
"""


@dataclass(frozen=True)
class TimerPair:
    """A GPU's global timer and `time.perf_counter_ns()` at one moment, and how sure that is."""

    timer_ns: int
    host_ns: int
    error_ns: float


@dataclass(frozen=True)
class Exchange:
    """The host's clock before it asked, the timer, and the host's clock when it had the answer."""

    asked_ns: int
    timer_ns: int
    answered_ns: int


@dataclass(frozen=True)
class _Link:
    """The kernel, its stream, and the memory through which it and the host talk."""

    function: int
    stream: int
    address: int


@functools.cache
def _link(device: int) -> _Link:
    target = cuda.target_of(device)
    with Assembler(target, "exchange") as assembler:
        version = "{}.{}".format(*divmod(target.facts.ptx, 10))
        mask = (1 << _NUMBER_BITS) - 1
        names = {"version": version, "chip": target.facts.chip, "answer": _ANSWER}
        assembler.feed(_PTX.format(**names, bits=_NUMBER_BITS, mask=mask))
        code = assembler.finish().code
    address = cuda.allocate_host(2 * _ANSWER)
    return _Link(cuda.load(code, "exchange", 0), cuda.new_stream(), address)


def timer_pair(device: int) -> TimerPair:
    """A pair, as sure as exchanges over the bus can make it."""
    with cuda.on_device(device):
        return tightest(_exchanges(device))


def tightest(exchanges: Sequence[Exchange]) -> TimerPair:
    """The pair in the middle of what all exchanges allow, at the quickest of them.

    The clocks drift apart by less than MAX_DRIFT allows, so what an exchange says of that moment is
    the less sure the farther away it is; the timer counts in steps, and what it says may be up to a
    step old.
    """
    quickest = min(exchanges, key=lambda e: e.answered_ns - e.asked_ns)
    host, now = quickest.asked_ns, quickest.timer_ns
    asked, timer, answered = np.array(
        [(e.asked_ns - host, e.timer_ns - now, e.answered_ns - host) for e in exchanges], np.int64
    ).T
    step = min(int(np.gcd.reduce(np.diff(timer))), MAX_RESOLUTION) if len(timer) > 1 else 0
    drift = MAX_DRIFT * np.abs(timer)
    least = float((asked - timer - drift).max()) - step + LEAST_WAY_NS
    most = float((answered - timer + drift).min()) - LEAST_WAY_NS
    behind = round((least + most) / 2)
    return TimerPair(now, host + behind, abs(most - least) / 2 + 0.5)


@functools.cache
def _host_side() -> Any:
    """The function of `_HOST_IR`. Other threads of Python go on meanwhile."""
    code = llvm.linker().link(llvm.emit_object(_HOST_IR)[0], "proton_exchange")
    pointer, word = ctypes.c_void_p, ctypes.c_uint64
    function: Any = ctypes.CFUNCTYPE(word, pointer, pointer, word, word, pointer, word)
    function = function(code.address)
    function.code = code  # which lives as long
    return function


def _exchanges(device: int) -> list[Exchange]:
    link, exchange = _link(device), _host_side()
    question, answer = link.address, link.address + _ANSWER
    cells = [ctypes.c_uint64.from_address(place) for place in (question, answer)]
    cells[0].value = cells[1].value = last = 0
    pointer, number = ctypes.c_void_p, ctypes.c_uint64
    taken = [(link.address, pointer), (EXCHANGES, number), (PATIENCE_NS, number)]
    cuda.launch_once(link.function, 1, 1, link.stream, taken)
    readings, found = (ctypes.c_uint64 * 3)(), []
    for place in range(1, EXCHANGES + 1):
        asked = place
        while not exchange(question, answer, asked, last, readings, _LOOKS):
            asked = 0  # once is enough
            if cuda.is_idle(link.stream) and cells[1].value == last:
                raise ProfileError(_SILENT.format(device=device))
        first, last, answered = readings
        found.append(Exchange(first, last >> _NUMBER_BITS, answered))
    return found
