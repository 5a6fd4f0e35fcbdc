"""Machine code by which threads share a grid without the interpreter's lock.

A job is a range of programs, of which threads take shares by an atomic addition. A desk is where
a worker is handed jobs; its state says who acts next:

| state | says | left by |
|---|---|---|
| LOOKING | the worker looks at its desk | the leader, to POSTED; the worker, to ASLEEP |
| ASLEEP | the worker sleeps in Python | the leader, to POSTED; the worker, to LOOKING |
| POSTED | a job lies there, or none: an end | the worker, to TAKEN; the leader, to what was |
| TAKEN | the worker is at it | the worker, to LOOKING; the leader, to AWAITED |
| AWAITED | as TAKEN, and the leader sleeps in Python | the worker, to LOOKING, who wakes it |

Each step is one atomic exchange, so that nobody sleeps while there is something to do. The leader
takes back what a worker has not begun, so that it never waits for one to wake up.
"""

import ctypes
import platform
import time
from typing import Any, TypeVar

from proton.backends.cpu import llvm
from proton.runtime.cpu.support_code import Once, object_of

LOOKING, ASLEEP, POSTED, TAKEN, AWAITED = range(5)
SLEEPS, TELLS, ENDS = range(3)  # what a worker does when `serve` returns
LOOK_NS = 100_000  # before a thread sleeps: longer than from one launch to the next in a loop
_TRIED_LOOKS = 2000  # of which the time is taken
_ASKS_US = 1000  # from one request to stop to the next
_LINE = 64  # bytes of a cache line
_PAUSES = {"x86_64": "pause", "AMD64": "pause", "aarch64": "isb", "arm64": "isb"}


class Job(ctypes.Structure):
    """A range of programs. What threads write has a cache line of its own."""

    _fields_ = (
        ("next", ctypes.c_int64),
        ("_line", ctypes.c_char * (_LINE - 8)),
        ("last", ctypes.c_int64),
        ("size", ctypes.c_int64),  # programs of a share
        ("caller", ctypes.c_void_p),
        ("function", ctypes.c_void_p),
        ("block", ctypes.c_void_p),
    )


class Desk(ctypes.Structure):
    """Where a worker is handed jobs."""

    _fields_ = (
        ("state", ctypes.c_int64),
        ("job", ctypes.c_void_p),
        # The state in which the last job was posted; POSTED where it was taken back.
        ("before", ctypes.c_int64),
        ("number", ctypes.c_int32),  # the worker's, from 1 on
        ("thread", ctypes.c_uint64),  # its pthread_t
        ("_line", ctypes.c_char * (_LINE - 40)),
    )


_Structure = TypeVar("_Structure", bound=ctypes.Structure)


def on_a_line(structure: type[_Structure]) -> _Structure:
    """A structure of zeros that begins with a cache line."""
    raw = (ctypes.c_char * (ctypes.sizeof(structure) + _LINE))()
    return structure.from_buffer(raw, -ctypes.addressof(raw) % _LINE)


# In text, as all LLVM IR here; {{ and }} are braces.
_TEAM_IR = """
%job = type {{ i64, [56 x i8], i64, i64, ptr, ptr, ptr }}
%desk = type {{ i64, ptr, i64, i32, i64 }}
declare i32 @usleep(i32)

define internal i32 @run(ptr %job, i32 %thread) {{
entry:
  %last_at = getelementptr %job, ptr %job, i32 0, i32 2
  %last = load i64, ptr %last_at
  %size_at = getelementptr %job, ptr %job, i32 0, i32 3
  %size = load i64, ptr %size_at
  %caller_at = getelementptr %job, ptr %job, i32 0, i32 4
  %caller = load ptr, ptr %caller_at
  %function_at = getelementptr %job, ptr %job, i32 0, i32 5
  %function = load ptr, ptr %function_at
  %block_at = getelementptr %job, ptr %job, i32 0, i32 6
  %block = load ptr, ptr %block_at
  br label %take
take:
  %first = atomicrmw add ptr %job, i64 %size monotonic
  %over = icmp sge i64 %first, %last
  br i1 %over, label %out, label %share
share:
  %behind = add i64 %first, %size
  %cut = icmp slt i64 %behind, %last
  %end = select i1 %cut, i64 %behind, i64 %last
  %left = call i32 %caller(ptr %function, ptr %block, i64 %first, i64 %end, i32 %thread)
  %goes_on = icmp eq i32 %left, 0
  br i1 %goes_on, label %take, label %out
out:
  %status = phi i32 [ 0, %take ], [ %left, %share ]
  ret i32 %status
}}

define i64 @proton_serve(ptr %desk, i64 %looks) {{
entry:
  %number_at = getelementptr %desk, ptr %desk, i32 0, i32 3
  %number = load i32, ptr %number_at
  %job_at = getelementptr %desk, ptr %desk, i32 0, i32 1
  cmpxchg ptr %desk, i64 {asleep}, i64 {looking} acq_rel acquire
  br label %look
look:
  %count = phi i64 [ 0, %entry ], [ %next, %again ], [ 0, %withdrawn ], [ 0, %unawaited ]
  %state = load atomic i64, ptr %desk acquire, align 8
  %is_posted = icmp eq i64 %state, {posted}
  br i1 %is_posted, label %take, label %again
take:
  %taking = cmpxchg ptr %desk, i64 {posted}, i64 {taken} acq_rel acquire
  %is_taken = extractvalue {{ i64, i1 }} %taking, 1
  br i1 %is_taken, label %work, label %withdrawn
withdrawn:
  br label %look
again:
  call void asm sideeffect "{pause}", "~{{memory}}"()
  %next = add i64 %count, 1
  %more = icmp ult i64 %next, %looks
  br i1 %more, label %look, label %sleep
sleep:
  %resting = cmpxchg ptr %desk, i64 {looking}, i64 {asleep} acq_rel acquire
  %found = extractvalue {{ i64, i1 }} %resting, 0
  %rests = icmp ule i64 %found, {asleep}
  br i1 %rests, label %sleeps, label %withdrawn
sleeps:
  ret i64 {sleeps}
work:
  %job = load ptr, ptr %job_at
  %none = icmp eq ptr %job, null
  br i1 %none, label %ends, label %run
run:
  call i32 @run(ptr %job, i32 %number)
  %before = atomicrmw xchg ptr %desk, i64 {looking} acq_rel
  %awaited = icmp eq i64 %before, {awaited}
  br i1 %awaited, label %tells, label %unawaited
unawaited:
  br label %look
tells:
  ret i64 {tells}
ends:
  ret i64 {ends}
}}

define i64 @proton_post(ptr %desks, i64 %count, ptr %job) {{
entry:
  br label %each
each:
  %number = phi i64 [ 0, %entry ], [ %next, %post ]
  %sleepers = phi i64 [ 0, %entry ], [ %sum, %post ]
  %any = icmp ult i64 %number, %count
  br i1 %any, label %post, label %out
post:
  %desk_at = getelementptr ptr, ptr %desks, i64 %number
  %desk = load ptr, ptr %desk_at
  %job_at = getelementptr %desk, ptr %desk, i32 0, i32 1
  store ptr %job, ptr %job_at
  %before = atomicrmw xchg ptr %desk, i64 {posted} acq_rel
  %before_at = getelementptr %desk, ptr %desk, i32 0, i32 2
  store i64 %before, ptr %before_at
  %slept = icmp eq i64 %before, {asleep}
  %one = zext i1 %slept to i64
  %sum = add i64 %sleepers, %one
  %next = add i64 %number, 1
  br label %each
out:
  ret i64 %sleepers
}}

define i64 @proton_finish(ptr %desks, i64 %from, i64 %count, i64 %looks) {{
entry:
  br label %each
each:
  %number = phi i64 [ %from, %entry ], [ %following, %done ]
  %any = icmp ult i64 %number, %count
  br i1 %any, label %begin, label %out
begin:
  %desk_at = getelementptr ptr, ptr %desks, i64 %number
  %desk = load ptr, ptr %desk_at
  %withdrawing = cmpxchg ptr %desk, i64 {posted}, i64 {looking} acq_rel acquire
  %withdrawn = extractvalue {{ i64, i1 }} %withdrawing, 1
  br i1 %withdrawn, label %note, label %look
note:
  %before_at = getelementptr %desk, ptr %desk, i32 0, i32 2
  store i64 {posted}, ptr %before_at
  br label %done
look:
  %iteration = phi i64 [ 0, %begin ], [ %next, %again ]
  %state = load atomic i64, ptr %desk acquire, align 8
  %busy = icmp uge i64 %state, {taken}
  br i1 %busy, label %again, label %done
again:
  call void asm sideeffect "{pause}", "~{{memory}}"()
  %next = add i64 %iteration, 1
  %more = icmp ult i64 %next, %looks
  br i1 %more, label %look, label %ask
ask:
  %exchanged = cmpxchg ptr %desk, i64 {taken}, i64 {awaited} acq_rel acquire
  %found = extractvalue {{ i64, i1 }} %exchanged, 0
  %waits = icmp uge i64 %found, {taken}
  br i1 %waits, label %out, label %done
done:
  %following = add i64 %number, 1
  br label %each
out:
  ret i64 %number
}}

define void @proton_end(ptr %desks, i64 %count, ptr %arm, ptr %stop) {{
entry:
  br label %each
each:
  %number = phi i64 [ 0, %entry ], [ %following, %done ]
  %any = icmp ult i64 %number, %count
  br i1 %any, label %begin, label %out
begin:
  %desk_at = getelementptr ptr, ptr %desks, i64 %number
  %desk = load ptr, ptr %desk_at
  %before_at = getelementptr %desk, ptr %desk, i32 0, i32 2
  %before = load i64, ptr %before_at
  %withdrawing = cmpxchg ptr %desk, i64 {posted}, i64 %before acq_rel acquire
  %withdrawn = extractvalue {{ i64, i1 }} %withdrawing, 1
  br i1 %withdrawn, label %done, label %look
look:
  %state = load atomic i64, ptr %desk acquire, align 8
  %busy = icmp uge i64 %state, {taken}
  br i1 %busy, label %ask, label %done
ask:
  %stops = icmp ne ptr %stop, null
  br i1 %stops, label %stopping, label %wait
stopping:
  %thread_at = getelementptr %desk, ptr %desk, i32 0, i32 4
  %thread = load i64, ptr %thread_at
  call void %arm()
  call void %stop(i64 %thread)
  br label %wait
wait:
  call i32 @usleep(i32 {asks_us})
  br label %look
done:
  %following = add i64 %number, 1
  br label %each
out:
  ret void
}}

define i32 @proton_lead(ptr %job) {{
  %status = call i32 @run(ptr %job, i32 0)
  ret i32 %status
}}
"""


class TeamCode:
    """The functions of _TEAM_IR.

    serve(desk, looks): a worker's; takes jobs until nothing has come for so many looks (SLEEPS),
    the leader sleeps (TELLS), or there is no job any more (ENDS).
    post(desks, count, job): hands a job to so many workers; how many of them sleep.
    lead(job): runs shares of it, too; not 0 where it left the kernel (guard.py).
    finish(desks, from, count, looks): returns when all are done, who have begun; less than `count`
    is the number of a worker whom the leader must wait for asleep.
    end(desks, count, arm, stop): asks all to leave their kernels, by the guard's functions or null,
    and returns when they have.
    """

    def __init__(self) -> None:
        text = _TEAM_IR.format(
            looking=LOOKING,
            asleep=ASLEEP,
            posted=POSTED,
            taken=TAKEN,
            awaited=AWAITED,
            sleeps=SLEEPS,
            tells=TELLS,
            ends=ENDS,
            asks_us=_ASKS_US,
            pause=_PAUSES.get(platform.machine(), ""),
        )
        word, pointer = ctypes.c_int64, ctypes.c_void_p
        code = object_of(text)
        self._kept: list[llvm.LinkedCode] = []

        def function(prototype: Any, symbol: str) -> Any:
            linked = llvm.linker().link(code, symbol)
            self._kept.append(linked)
            return prototype(linked.address)

        self.serve = function(ctypes.CFUNCTYPE(word, pointer, word), "proton_serve")
        self.post = function(ctypes.PYFUNCTYPE(word, pointer, word, pointer), "proton_post")
        self.finish = function(ctypes.CFUNCTYPE(word, pointer, word, word, word), "proton_finish")
        end = ctypes.CFUNCTYPE(None, pointer, word, pointer, pointer)
        self.end = function(end, "proton_end")
        self.lead = function(ctypes.CFUNCTYPE(ctypes.c_int32, pointer), "proton_lead")
        desk = on_a_line(Desk)
        start = time.perf_counter_ns()
        self.serve(ctypes.addressof(desk), _TRIED_LOOKS)
        spent = max(1, time.perf_counter_ns() - start)
        self.looks = max(1, _TRIED_LOOKS * LOOK_NS // spent)


team_code = Once(TeamCode)
