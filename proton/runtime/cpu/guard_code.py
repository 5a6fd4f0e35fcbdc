"""Machine code around what launches run: Ctrl-C ends it, and a wild access says where it was.

A thread that runs a kernel holds a slot, which says which kernel, and where to go on when it is
left. Handlers of signals look for the slot of the thread that they interrupt:

| signal | in a kernel's own code | elsewhere within a launch |
|---|---|---|
| SIGINT, main thread | Python's handlers run; if one raises, the kernel is left | again in 1 ms |
| SIGINT, a worker who shall stop | the kernel is left | nothing: who stops it asks again |
| SIGSEGV, SIGBUS | the first thread writes a line; then what was there before | the same |

A kernel's own code holds no lock of the C library or of Python, so anything may be called there,
and nothing needs it to come to an end; what it allocated is lost. The handler that was there before
is called first (Python's notes the signal), so handlers of programs run as they always did.
"""

import ctypes
import platform
import sys
from dataclasses import dataclass
from typing import Any

from proton.backends.cpu import llvm
from proton.runtime.cpu.support_code import Once, object_of

SLOTS = 512  # threads that run kernels at once, a power of 2; further ones run without
# What this file knows of the system: the layouts of ucontext_t, siginfo_t and struct sigaction,
# and numbers of system calls.
IS_KNOWN = sys.platform == "linux" and platform.machine() == "x86_64"

# A slot: its thread (0: free), who may leave (1: its kernel runs), whether it shall stop, whether
# Python runs in its handler, the stack, the record, the grid, and a jmp_buf. A record: the
# function, where its code begins and ends, its name.
TYPES = """
%slot = type { i64, i64, i64, i64, i64, ptr, i32, i32, i32, i32, [512 x i8] }
%record = type { ptr, i64, i64, ptr }
"""

_GUARD_IR = (
    TYPES
    + """
%action = type { ptr, [128 x i8], i32, ptr }
@slots = internal global [SLOTS x %slot] zeroinitializer, align 64
@before_interrupt = internal global %action zeroinitializer
@before_segv = internal global %action zeroinitializer
@before_bus = internal global %action zeroinitializer
@caught = internal global [3 x ptr] zeroinitializer
@timer = internal global i32 0
@timer_of = internal global i64 0
@is_said = internal global i64 0
@said = internal constant [TEXT_SIZE x i8] c"TEXT"
@segv = internal constant [8 x i8] c"SIGSEGV\\00"
@bus = internal constant [7 x i8] c"SIGBUS\\00"

declare i64 @pthread_self()
declare i32 @pthread_sigqueue(i64, i32, ptr)
declare i32 @pthread_sigmask(i32, ptr, ptr)
declare i32 @sigaction(i32, ptr, ptr)
declare i32 @raise(i32)
declare void @longjmp(ptr, i32)
declare i32 @dprintf(i32, ptr, ...)
declare i64 @syscall(i64, ...)
declare i32 @PyGILState_Ensure()
declare void @PyGILState_Release(i32)
declare i32 @PyErr_CheckSignals()
declare void @PyErr_Fetch(ptr, ptr, ptr)

define internal ptr @claim() {
entry:
  %self = call i64 @pthread_self()
  %page = lshr i64 %self, 12
  br label %look
look:
  %count = phi i64 [ 0, %entry ], [ %next, %again ]
  %sum = add i64 %page, %count
  %number = and i64 %sum, LAST_SLOT
  %slot = getelementptr [SLOTS x %slot], ptr @slots, i64 0, i64 %number
  %exchanged = cmpxchg ptr %slot, i64 0, i64 %self acquire monotonic
  %is_mine = extractvalue { i64, i1 } %exchanged, 1
  br i1 %is_mine, label %found, label %again
again:
  %next = add i64 %count, 1
  %more = icmp ult i64 %next, SLOTS
  br i1 %more, label %look, label %none
found:
  ret ptr %slot
none:
  ret ptr null
}

; The slot of a thread whose kernel runs: the innermost, whose stack is the lowest.
define internal ptr @slot_of(i64 %thread) {
entry:
  br label %look
look:
  %number = phi i64 [ 0, %entry ], [ %next, %again ]
  %best = phi ptr [ null, %entry ], [ %chosen, %again ]
  %lowest = phi i64 [ -1, %entry ], [ %low, %again ]
  %slot = getelementptr [SLOTS x %slot], ptr @slots, i64 0, i64 %number
  %holder = load atomic i64, ptr %slot acquire, align 8
  %is_its = icmp eq i64 %holder, %thread
  %runs_at = getelementptr %slot, ptr %slot, i64 0, i32 1
  %runs = load volatile i64, ptr %runs_at
  %does_run = icmp ne i64 %runs, 0
  %stack_at = getelementptr %slot, ptr %slot, i64 0, i32 4
  %stack = load volatile i64, ptr %stack_at
  %is_lower = icmp ult i64 %stack, %lowest
  %both = and i1 %is_its, %does_run
  %better = and i1 %both, %is_lower
  %chosen = select i1 %better, ptr %slot, ptr %best
  %low = select i1 %better, i64 %stack, i64 %lowest
  br label %again
again:
  %next = add i64 %number, 1
  %more = icmp ult i64 %next, SLOTS
  br i1 %more, label %look, label %out
out:
  ret ptr %chosen
}

define internal i1 @in_kernel(ptr %slot, ptr %context) {
  %pc_at = getelementptr i8, ptr %context, i64 168
  %pc = load i64, ptr %pc_at
  %record_at = getelementptr %slot, ptr %slot, i64 0, i32 5
  %record = load ptr, ptr %record_at
  %low_at = getelementptr %record, ptr %record, i64 0, i32 1
  %low = load i64, ptr %low_at
  %high_at = getelementptr %record, ptr %record, i64 0, i32 2
  %high = load i64, ptr %high_at
  %above = icmp uge i64 %pc, %low
  %below = icmp ult i64 %pc, %high
  %inside = and i1 %above, %below
  ret i1 %inside
}

define internal void @go(ptr %buffer) {
  call void @longjmp(ptr %buffer, i32 1)
  unreachable
}

; When the handler returns, the thread is in `go`, on its stack beyond what the kernel may use.
define internal void @leave(ptr %slot, ptr %context) {
  %buffer = getelementptr %slot, ptr %slot, i64 0, i32 10
  %rdi_at = getelementptr i8, ptr %context, i64 104
  store ptr %buffer, ptr %rdi_at
  %rsp_at = getelementptr i8, ptr %context, i64 160
  %rsp = load i64, ptr %rsp_at
  %beyond = sub i64 %rsp, 256
  %even = and i64 %beyond, -16
  %entered = sub i64 %even, 8
  store i64 %entered, ptr %rsp_at
  %rip_at = getelementptr i8, ptr %context, i64 168
  store ptr @go, ptr %rip_at
  ret void
}

; SIGINT for the main thread, in a millisecond.
define internal void @once_more() {
entry:
  %event = alloca [64 x i8], align 8
  %spec = alloca [4 x i64], align 8
  %process = call i64 (i64, ...) @syscall(i64 39)
  %made_by = load i64, ptr @timer_of
  %is_made = icmp eq i64 %made_by, %process
  br i1 %is_made, label %set, label %make
make:
  store [64 x i8] zeroinitializer, ptr %event
  store ptr @slots, ptr %event
  %signal_at = getelementptr i8, ptr %event, i64 8
  store i32 2, ptr %signal_at
  %way_at = getelementptr i8, ptr %event, i64 12
  store i32 4, ptr %way_at
  %thread_at = getelementptr i8, ptr %event, i64 16
  %thread = trunc i64 %process to i32
  store i32 %thread, ptr %thread_at
  %failed = call i64 (i64, ...) @syscall(i64 222, i64 1, ptr %event, ptr @timer)
  %is_there = icmp eq i64 %failed, 0
  br i1 %is_there, label %note, label %out
note:
  store i64 %process, ptr @timer_of
  br label %set
set:
  store [4 x i64] [i64 0, i64 0, i64 0, i64 1000000], ptr %spec
  %timer = load i32, ptr @timer
  %number = sext i32 %timer to i64
  call i64 (i64, ...) @syscall(i64 223, i64 %number, i64 0, ptr %spec, ptr null)
  br label %out
out:
  ret void
}

define internal void @before(i32 %signal, ptr %info, ptr %context) {
entry:
  %handler = load ptr, ptr @before_interrupt
  %flags_at = getelementptr %action, ptr @before_interrupt, i64 0, i32 2
  %flags = load i32, ptr %flags_at
  %wants = and i32 %flags, 4
  %takes_info = icmp ne i32 %wants, 0
  br i1 %takes_info, label %long, label %short
long:
  call void %handler(i32 %signal, ptr %info, ptr %context)
  ret void
short:
  call void %handler(i32 %signal)
  ret void
}

define internal void @on_interrupt(i32 %signal, ptr %info, ptr %context) {
entry:
  %set = alloca [16 x i64], align 8
  %self = call i64 @pthread_self()
  %slot = call ptr @slot_of(i64 %self)
  %runs = icmp ne ptr %slot, null
  %code_at = getelementptr i8, ptr %info, i64 8
  %code = load i32, ptr %code_at
  %value_of = getelementptr i8, ptr %info, i64 24
  %value = load ptr, ptr %value_of
  %sent = icmp eq ptr %value, @slots
  %queued = icmp eq i32 %code, -1
  %asks = and i1 %queued, %sent
  br i1 %asks, label %asked, label %chain
asked:
  br i1 %runs, label %stopping, label %out
stopping:
  %stop_at = getelementptr %slot, ptr %slot, i64 0, i32 2
  %stop = load volatile i64, ptr %stop_at
  %shall = icmp ne i64 %stop, 0
  %may = call i1 @in_kernel(ptr %slot, ptr %context)
  %leaves = and i1 %shall, %may
  br i1 %leaves, label %go, label %out
chain:
  %ticked = icmp eq i32 %code, -2
  %again = and i1 %ticked, %sent
  br i1 %again, label %look, label %first
first:
  call void @before(i32 %signal, ptr %info, ptr %context)
  br label %look
look:
  br i1 %runs, label %whose, label %out
whose:
  %thread = call i64 (i64, ...) @syscall(i64 186)
  %process = call i64 (i64, ...) @syscall(i64 39)
  %is_main = icmp eq i64 %thread, %process
  br i1 %is_main, label %idle, label %out
idle:
  %busy_at = getelementptr %slot, ptr %slot, i64 0, i32 3
  %busy = load volatile i64, ptr %busy_at
  %is_busy = icmp ne i64 %busy, 0
  br i1 %is_busy, label %out, label %where
where:
  %inside = call i1 @in_kernel(ptr %slot, ptr %context)
  br i1 %inside, label %python, label %later
later:
  call void @once_more()
  br label %out
python:
  store volatile i64 1, ptr %busy_at
  store [16 x i64] zeroinitializer, ptr %set
  store i64 2, ptr %set
  call i32 @pthread_sigmask(i32 1, ptr %set, ptr null)
  %state = call i32 @PyGILState_Ensure()
  %result = call i32 @PyErr_CheckSignals()
  %raised = icmp slt i32 %result, 0
  br i1 %raised, label %fetch, label %on
fetch:
  %value_at = getelementptr ptr, ptr @caught, i64 1
  %trace_at = getelementptr ptr, ptr @caught, i64 2
  call void @PyErr_Fetch(ptr @caught, ptr %value_at, ptr %trace_at)
  br label %on
on:
  call void @PyGILState_Release(i32 %state)
  br i1 %raised, label %go, label %resume
resume:
  store volatile i64 0, ptr %busy_at
  br label %out
go:
  call void @leave(ptr %slot, ptr %context)
  br label %out
out:
  ret void
}

define internal void @on_fault(i32 %signal, ptr %info, ptr %context) {
entry:
  %is_segv = icmp eq i32 %signal, 11
  %self = call i64 @pthread_self()
  %slot = call ptr @slot_of(i64 %self)
  %runs = icmp ne ptr %slot, null
  br i1 %runs, label %once, label %over
once:
  %said_before = atomicrmw xchg ptr @is_said, i64 1 acq_rel
  %is_first = icmp eq i64 %said_before, 0
  br i1 %is_first, label %say, label %over
say:
  %record_at = getelementptr %slot, ptr %slot, i64 0, i32 5
  %record = load ptr, ptr %record_at
  %name_at = getelementptr %record, ptr %record, i64 0, i32 3
  %name = load ptr, ptr %name_at
  %x_at = getelementptr %slot, ptr %slot, i64 0, i32 6
  %x = load i32, ptr %x_at
  %y_at = getelementptr %slot, ptr %slot, i64 0, i32 7
  %y = load i32, ptr %y_at
  %z_at = getelementptr %slot, ptr %slot, i64 0, i32 8
  %z = load i32, ptr %z_at
  %what = select i1 %is_segv, ptr @segv, ptr @bus
  call i32 (i32, ptr, ...) @dprintf(i32 2, ptr @said, ptr %what, ptr %name, i32 %x, i32 %y, i32 %z)
  br label %over
over:
  %old = select i1 %is_segv, ptr @before_segv, ptr @before_bus
  call i32 @sigaction(i32 %signal, ptr %old, ptr null)
  %code_at = getelementptr i8, ptr %info, i64 8
  %code = load i32, ptr %code_at
  %was_sent = icmp sle i32 %code, 0
  br i1 %was_sent, label %send, label %out
send:
  call i32 @raise(i32 %signal)
  br label %out
out:
  ret void
}

define internal void @arm() {
entry:
  %current = alloca %action, align 8
  %new = alloca %action, align 8
  call i32 @sigaction(i32 2, ptr null, ptr %current)
  %handler = load i64, ptr %current
  %is_code = icmp ugt i64 %handler, 1
  %is_ours = icmp eq i64 %handler, ptrtoint (ptr @on_interrupt to i64)
  %not_ours = xor i1 %is_ours, true
  %install = and i1 %is_code, %not_ours
  br i1 %install, label %put, label %out
put:
  %value = load %action, ptr %current
  store %action %value, ptr @before_interrupt
  store %action %value, ptr %new
  store ptr @on_interrupt, ptr %new
  %flags_at = getelementptr %action, ptr %new, i64 0, i32 2
  %flags = load i32, ptr %flags_at
  %with_info = or i32 %flags, 4
  store i32 %with_info, ptr %flags_at
  call i32 @sigaction(i32 2, ptr %new, ptr null)
  br label %out
out:
  ret void
}

define internal void @stop(i64 %thread) {
entry:
  %slot = call ptr @slot_of(i64 %thread)
  %runs = icmp ne ptr %slot, null
  br i1 %runs, label %ask, label %out
ask:
  %stop_at = getelementptr %slot, ptr %slot, i64 0, i32 2
  store volatile i64 1, ptr %stop_at
  call i32 @pthread_sigqueue(i64 %thread, i32 2, ptr @slots)
  br label %out
out:
  ret void
}

; A forked child has one thread.
define internal void @forked() {
entry:
  %self = call i64 @pthread_self()
  br label %look
look:
  %number = phi i64 [ 0, %entry ], [ %next, %again ]
  %slot = getelementptr [SLOTS x %slot], ptr @slots, i64 0, i64 %number
  %holder = load i64, ptr %slot
  %is_its = icmp eq i64 %holder, %self
  br i1 %is_its, label %again, label %free
free:
  store i64 0, ptr %slot
  br label %again
again:
  %next = add i64 %number, 1
  %more = icmp ult i64 %next, SLOTS
  br i1 %more, label %look, label %out
out:
  ret void
}

define void @proton_guard(ptr %table) {
  %new = alloca %action, align 8
  store %action zeroinitializer, ptr %new
  store ptr @on_fault, ptr %new
  %flags_at = getelementptr %action, ptr %new, i64 0, i32 2
  store i32 FAULT_FLAGS, ptr %flags_at
  call i32 @sigaction(i32 11, ptr %new, ptr @before_segv)
  call i32 @sigaction(i32 7, ptr %new, ptr @before_bus)
  %arm_at = getelementptr ptr, ptr %table, i64 1
  %stop_at = getelementptr ptr, ptr %table, i64 2
  %forked_at = getelementptr ptr, ptr %table, i64 3
  %caught_at = getelementptr ptr, ptr %table, i64 4
  store ptr @claim, ptr %table
  store ptr @arm, ptr %arm_at
  store ptr @stop, ptr %stop_at
  store ptr @forked, ptr %forked_at
  store ptr @caught, ptr %caught_at
  ret void
}
"""
)
_FAULT_FLAGS = 0x4 | 0x08000000  # SA_SIGINFO | SA_ONSTACK
_SAID = (
    "proton: %s in kernel %s, launched with grid (%d, %d, %d). PROTON_CHECK_BOUNDS=1 names the line"
    " and the index of an access outside of its array.\n"
)


@dataclass(frozen=True)
class GuardCode:
    """Functions of _GUARD_IR.

    claim: the address of one that gives a slot, or null. arm(): puts the handler of SIGINT in the
    place of what handles it now, unless that is the system; arm_at is its address. stop_at: that of
    stop(thread), which asks a thread to leave its kernel. forked(): of a child. caught: where the
    handler leaves type, value and traceback.
    """

    claim: int
    arm: Any
    arm_at: int
    stop_at: int
    forked: Any
    caught: Any
    kept: llvm.LinkedCode


@Once
def guard_code() -> GuardCode | None:
    """Linked, and SIGSEGV and SIGBUS handled; None on other systems."""
    if not IS_KNOWN:
        return None
    said = "".join(c if c.isprintable() else f"\\{ord(c):02X}" for c in _SAID) + "\\00"
    names = {
        "LAST_SLOT": SLOTS - 1,
        "SLOTS": SLOTS,
        "TEXT_SIZE": len(_SAID) + 1,
        "TEXT": said,
        "FAULT_FLAGS": _FAULT_FLAGS,
    }
    text = _GUARD_IR
    for name, value in names.items():
        text = text.replace(name, str(value))
    code = llvm.linker().link(object_of(text), "proton_guard")
    table = (ctypes.c_void_p * 5)()
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(code.address)(ctypes.addressof(table))
    claim, arm, stop, forked, caught = (address or 0 for address in table)
    act = ctypes.PYFUNCTYPE(None)
    return GuardCode(
        claim,
        act(arm),
        arm,
        stop,
        act(forked),
        (ctypes.c_void_p * 3).from_address(caught),
        code,
    )
