"""How a GPU's global timer lies to the host's clock, within bounds that hold.

A kernel of one thread and the host tell each other their clocks through pinned memory, in two ways:

    exchanges   the host reads its clock and asks, the kernel sees the question and answers with its
                timer, the host sees the answer and reads its clock: the timer was read not before
                the first reading and not after the second
    readings    the host writes its clock into a cell, over and over; the kernel reads its timer,
                the cell, and its timer: what it found was written before the second of these, and
                what was written next was not yet there at the first

The two sides are bounded apart, each by the tightest of many of either kind: what is left between
them is the shortest way there and the shortest way back, less what any way takes. Processes of one
machine share the host's clock, so this also says how the GPUs of several processes lie to each
other. Those of one process tell each other more directly (peer_exchange.py).
"""

import ctypes
import functools
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from proton.backends.cpu import llvm
from proton.base.errors import ProfileError
from proton.runtime.cpu.support_code import Once, object_of
from proton.runtime.nvidia import cuda
from proton.runtime.nvidia.hand_written import loaded
from proton.trace.gpu_clock import MAX_DRIFT, MAX_RESOLUTION

EXCHANGES = 300
READINGS = 500  # of the host's clock by the kernel
# Nothing that an SM tells the host, or the SM of another GPU, takes less, whichever way (decision
# 121): there and back takes 1,200 ns on PCIe 5 and 1,070 ns by NVLink (H200).
LEAST_WAY_NS = 200
PATIENCE_NS = 10_000_000_000  # after which the kernel ends, if the host asks nothing
# At the answer, before it is seen whether the kernel runs, or waits for its turn: others may have
# the GPU for as long as they like.
_LOOKS = 1_000_000
_SILENT = (
    "GPU {device} did not tell its global timer: this process was stopped for "
    f"{PATIENCE_NS // 1_000_000_000} s while it was asked; start the session again"
)
# Bytes from the question to the answer, to the host's clock, and to what the kernel read of it:
# each in a cache line of its own.
_ANSWER, _CLOCK, _READINGS = 128, 256, 384
_READING = 24  # bytes: the timer, the host's clock, the timer
_PUBLISHED = 1 << 16  # times that the host writes its clock, at most
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

# Writes the clock into a cell until the kernel has read it often enough, which its answer says, and
# leaves each value. A fence ends each iteration: the next value is read when this one is there.
_PUBLISH_IR = """
declare i32 @clock_gettime(i32, ptr)
define i64 @proton_publish(ptr %cell, ptr %answer, i64 %last, ptr %out, i64 %most) {
entry:
  %time = alloca [2 x i64]
  %nanoseconds = getelementptr i64, ptr %time, i64 1
  br label %again
again:
  %n = phi i64 [ 0, %entry ], [ %next, %again ]
  %status = call i32 @clock_gettime(i32 1, ptr %time)
  %s = load i64, ptr %time
  %ns = load i64, ptr %nanoseconds
  %w = mul i64 %s, 1000000000
  %t = add i64 %w, %ns
  store volatile i64 %t, ptr %cell
  fence seq_cst
  %place = getelementptr i64, ptr %out, i64 %n
  store i64 %t, ptr %place
  %next = add i64 %n, 1
  %said = load volatile i64, ptr %answer
  %is = icmp eq i64 %said, %last
  %goes = icmp ult i64 %next, %most
  %both = and i1 %is, %goes
  br i1 %both, label %again, label %done
done:
  ret i64 %next
}
"""

# The timer is read behind the branch that depends on the question, so not before it came; and each
# read of the host's clock stands behind a branch that depends on the timer, and before one that
# depends on what was read.
_PTX = """
.visible .entry exchange(.param .u64 cell, .param .u64 count, .param .u64 patience,
                         .param .u64 readings)
{{
    .reg .b64 %rd<16>;
    .reg .pred %p<8>;
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

    ld.param.u64 %rd2, [readings];
    mov.u64 %rd5, 0;
    mov.u64 %rd11, %rd1;
read:
    mov.u64 %rd12, %globaltimer;
    sub.u64 %rd7, %rd12, %rd4;
    setp.gt.u64 %p4, %rd7, %rd3;
    @%p4 ret;
    ld.mmio.relaxed.sys.global.u64 %rd13, [%rd1+{clock}];
    setp.eq.u64 %p5, %rd13, 0;
    @%p5 bra read;
    mov.u64 %rd14, %globaltimer;
    st.volatile.global.u64 [%rd11+{readings}], %rd12;
    st.volatile.global.u64 [%rd11+{readings}+8], %rd13;
    st.volatile.global.u64 [%rd11+{readings}+16], %rd14;
    add.u64 %rd11, %rd11, {reading};
    add.u64 %rd5, %rd5, 1;
    setp.lt.u64 %p6, %rd5, %rd2;
    @%p6 bra read;
    fence.acq_rel.sys;
    st.volatile.global.u64 [%rd1+{answer}], 0;
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
class ClockExchange:
    """The host's clock before it asked, the timer, and the host's clock when it had the answer."""

    asked_ns: int
    timer_ns: int
    answered_ns: int


@dataclass(frozen=True)
class TimerReading:
    """The timer before the kernel read the host's clock, and behind; what it found, and the host's
    clock when the value that followed was there."""

    before_ns: int
    found_ns: int
    next_ns: int
    after_ns: int


@dataclass(frozen=True)
class _Link:
    """The kernel, its stream, and the memory through which it and the host talk."""

    function: int
    stream: int
    address: int


@functools.cache
def _link(device: int) -> _Link:
    places = {"answer": _ANSWER, "clock": _CLOCK, "readings": _READINGS, "reading": _READING}
    numbers = places | {"bits": _NUMBER_BITS, "mask": (1 << _NUMBER_BITS) - 1}
    function = loaded(device, "exchange", _PTX, **numbers)
    address = cuda.allocate_host(_READINGS + READINGS * _READING)
    return _Link(function, cuda.new_stream(), address)


def timer_pair(device: int) -> TimerPair:
    """A pair, as sure as exchanges over the bus can make it."""
    with cuda.on_device(device):
        return tightest(*_told(device))


def tightest(
    exchanges: Sequence[ClockExchange], readings: Sequence[TimerReading] = ()
) -> TimerPair:
    """The pair in the middle of what all of them allow, at the quickest exchange or reading.

    The clocks drift apart by less than MAX_DRIFT allows, so what one of them says of that moment is
    the less sure the farther away it is; the timer counts in steps, and what it says may be up to a
    step old.
    """
    # (host's clock, timer): the timer was read later than the host's clock, or earlier.
    later = [(e.asked_ns, e.timer_ns) for e in exchanges]
    earlier = [(e.answered_ns, e.timer_ns) for e in exchanges]
    later += [(r.found_ns, r.after_ns) for r in readings]
    earlier += [(r.next_ns, r.before_ns) for r in readings]
    took = [e.answered_ns - e.asked_ns for e in exchanges]
    took += [r.next_ns - r.found_ns + r.after_ns - r.before_ns for r in readings]
    places = [int(np.argmin(took[: len(exchanges)]))]
    places += [len(exchanges) + int(np.argmin(took[len(exchanges) :]))] if readings else []
    pairs = [_middle(later, earlier, *later[place]) for place in places]
    return min(pairs, key=lambda pair: pair.error_ns)


def _middle(
    later: list[tuple[int, int]], earlier: list[tuple[int, int]], host: int, now: int
) -> TimerPair:
    """The pair at the moment when the timer says `now`, which is that of the host, about."""
    (asked, saw), (answered, said) = (
        np.array([(h - host, t - now) for h, t in of], np.int64).T for of in (later, earlier)
    )
    timers = np.concatenate([saw, said])
    step = min(int(np.gcd.reduce(np.diff(timers))), MAX_RESOLUTION) if len(timers) > 1 else 0
    least = float((asked - saw - MAX_DRIFT * np.abs(saw)).max()) - step + LEAST_WAY_NS
    most = float((answered - said + MAX_DRIFT * np.abs(said)).min()) - LEAST_WAY_NS
    behind = round((least + most) / 2)
    return TimerPair(now, host + behind, abs(most - least) / 2 + 0.5)


@Once
def _host_side(text: str, name: str, words: str) -> Callable[..., int]:
    """The function of that text, whose arguments are pointers and numbers. Other threads of Python
    go on meanwhile."""
    code = llvm.linker().link(object_of(text), name)
    kinds = {"p": ctypes.c_void_p, "n": ctypes.c_uint64}
    function: Any = ctypes.CFUNCTYPE(ctypes.c_uint64, *(kinds[word] for word in words))
    function = function(code.address)
    function.code = code  # which lives as long
    return function


def _told(device: int) -> tuple[list[ClockExchange], list[TimerReading]]:
    """What a launch of the kernel and the host tell each other."""
    link = _link(device)
    host_bytes = (ctypes.c_ubyte * _READINGS).from_address(link.address)
    ctypes.memset(host_bytes, 0, _READINGS)
    pointer, number = ctypes.c_void_p, ctypes.c_uint64
    taken: list[tuple[int, cuda.CType]] = [(link.address, pointer)]
    taken += [(value, number) for value in (EXCHANGES, PATIENCE_NS, READINGS)]
    cuda.launch_once(link.function, 1, 1, link.stream, taken)
    exchanges = _exchanges(device, link)
    return exchanges, _readings(device, link)


def _exchanges(device: int, link: _Link) -> list[ClockExchange]:
    exchange = _host_side(_HOST_IR, "proton_exchange", "ppnnpn")
    question, answer = link.address, link.address + _ANSWER
    cell, last = ctypes.c_uint64.from_address(answer), 0
    readings, found = (ctypes.c_uint64 * 3)(), []
    for place in range(1, EXCHANGES + 1):
        asked = place
        while not exchange(question, answer, asked, last, readings, _LOOKS):
            asked = 0  # once is enough
            if cuda.is_idle(link.stream) and cell.value == last:
                raise ProfileError(_SILENT.format(device=device))
        first, last, answered = readings
        found.append(ClockExchange(first, last >> _NUMBER_BITS, answered))
    return found


def _readings(device: int, link: _Link) -> list[TimerReading]:
    """What the kernel read while the host published its clock; of what came last it is not known
    what followed."""
    publish = _host_side(_PUBLISH_IR, "proton_publish", "ppnpn")
    answer = ctypes.c_uint64.from_address(link.address + _ANSWER)
    last, cell = answer.value, link.address + _CLOCK
    out = np.ones(_PUBLISHED, np.uint64)  # whose pages are there
    count = publish(cell, link.address + _ANSWER, last, out.ctypes.data, _PUBLISHED)
    while answer.value and not cuda.is_idle(link.stream):
        time.sleep(0)
    if answer.value:
        raise ProfileError(_SILENT.format(device=device))
    words = (ctypes.c_uint64 * (3 * READINGS)).from_address(link.address + _READINGS)
    rows = np.ctypeslib.as_array(words).reshape(READINGS, 3).astype(np.int64)
    published = out[:count].astype(np.int64)
    following = np.searchsorted(published, rows[:, 1], "right")
    known = following + 1 < count
    # When a value is there the one behind it is read.
    behind = published[following[known] + 1]
    return [
        TimerReading(before, found, latest, after)
        for (before, found, after), latest in zip(
            rows[known].tolist(), behind.tolist(), strict=True
        )
    ]
