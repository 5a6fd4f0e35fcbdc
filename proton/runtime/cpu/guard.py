"""A kernel's machine code as launches call it, guarded (guard_code.py).

A launch that Ctrl-C ends raises what the program's handler of SIGINT raises, KeyboardInterrupt
unless there is another one, and says which launch that was. Handlers run in the main thread, as
Python has it: launches of other threads go on.
"""

import ctypes
import os
import time
from dataclasses import dataclass
from typing import Any

from proton.backends.cpu import llvm
from proton.runtime.cpu.guard_code import TYPES, guard_code
from proton.runtime.cpu.support_code import Once, object_of

_LLVM_TYPES: dict[Any, str] = {
    ctypes.c_bool: "i8",
    ctypes.c_int8: "i8",
    ctypes.c_int16: "i16",
    ctypes.c_int32: "i32",
    ctypes.c_int64: "i64",
    ctypes.c_uint8: "i8",
    ctypes.c_uint16: "i16",
    ctypes.c_uint32: "i32",
    ctypes.c_uint64: "i64",
    ctypes.c_float: "float",
    ctypes.c_double: "double",
    ctypes.c_void_p: "ptr",
}
_CLAIM = "proton_claim"  # in the code that enters a kernel: the guard's function that gives a slot
_Restore = ctypes.PYFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)


# A program that sets a handler of SIGINT takes the place of ours, which nobody tells us.
_ARMED_NS = 1_000_000
armed_until = 0  # ns of time.perf_counter_ns


class _Record(ctypes.Structure):
    """The state of a kernel for handlers of signals."""

    _fields_ = (
        ("function", ctypes.c_void_p),
        ("low", ctypes.c_int64),  # where its own code begins and ends; both 0 where nobody knows
        ("high", ctypes.c_int64),
        ("name", ctypes.c_char_p),
    )


@dataclass(frozen=True)
class _Shape:
    """Code that calls functions of one signature; `block` is a structure of their arguments."""

    enter: llvm.LinkedCode
    call: llvm.LinkedCode
    block: type[ctypes.Structure]
    prototype: Any


class Entry:
    """A function (given..., i64 first, i64 last, extras...) of machine code, to be called.

    `run(address, given..., first, last, extras...)` is not 0 where the kernel was left.
    """

    def __init__(
        self,
        name: str,
        address: int,
        types: list[Any],
        extras: list[Any],
        extent: tuple[int, int] = (0, 0),
    ) -> None:
        """`types` and `extras` are ctypes types, c_int32 among the extras the thread's number;
        the last three of `types` are the grid."""
        self.name = name
        self._record = _Record(address, *extent, name.encode())
        self.address = ctypes.c_void_p(ctypes.addressof(self._record))  # quicker than an int
        shape = _shape(tuple(types), tuple(extras))
        self.run = shape.prototype(shape.enter.address)
        self.block, self.call = shape.block, shape.call.address

    def __call__(self, *given: object) -> None:
        """Calls it, on this thread."""
        if self.run(self.address, *given):
            raise_caught()


def arm() -> int:
    """Has Ctrl-C end kernels from now on, also where the program has set a handler since; what
    time it is then. Launches after `armed_until` ask for that again: it is a system call."""
    global armed_until
    if code := guard_code():
        code.arm()
    now = time.perf_counter_ns()
    armed_until = now + _ARMED_NS
    return now


def stops() -> tuple[int | None, int | None]:
    """Addresses of functions: () that arms, and (thread) that has a thread leave its kernel, if it
    is in the kernel's own code now; None where there are none."""
    guard = guard_code()
    return (guard.arm_at, guard.stop_at) if guard else (None, None)


def raise_caught() -> None:
    """Raises what a handler of SIGINT raised while a kernel ran."""
    guard = guard_code()
    assert guard is not None
    values = list(guard.caught)
    guard.caught[:] = [None] * 3
    _Restore(("PyErr_Restore", ctypes.pythonapi))(*values)


def say_what_was_stopped(problem: BaseException, name: str, grid: list[Any]) -> None:
    """Has an exception name the launch that it ended."""
    text = f"kernel {name}, launched with grid ({', '.join(map(str, grid))}), was stopped"
    text += "; what it writes is incomplete"
    if isinstance(problem, KeyboardInterrupt) and not problem.args:
        problem.args = (text,)
    else:
        problem.add_note(text)


@Once
def _shape(given: tuple[Any, ...], extras: tuple[Any, ...]) -> _Shape:
    thread = ctypes.c_int32
    kept = [*given, *[type_ for type_ in extras if type_ is not thread]]
    word = [ctypes.c_int64] * 2
    prototype = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, *given, *word, *extras)
    fields = {"_fields_": [(f"v{n}", type_) for n, type_ in enumerate(kept)]}
    guard = guard_code()
    text = _enter_text(given, extras, bool(guard)) + _call_text(kept, given, extras)
    # Loads, stores and calls: passes leave them as they are, and take a third of the time.
    code = object_of(text, llvm.object_as_written)
    imports = {_CLAIM: guard.claim} if guard else {}
    return _Shape(
        llvm.linker().link(code, "proton_enter", imports),
        llvm.linker().link(code, "proton_call", imports),
        type("Block", (ctypes.Structure,), fields),
        prototype,
    )


def _enter_text(given: tuple[Any, ...], extras: tuple[Any, ...], is_guarded: bool) -> str:
    """Calls the function, with a slot for handlers where there is one."""
    types = [*given, ctypes.c_int64, ctypes.c_int64, *extras]
    passed = ", ".join(f"{_LLVM_TYPES[type_]} %a{n}" for n, type_ in enumerate(types))
    grid = range(len(given) - 3, len(given)) if len(given) >= 3 else ()
    lines = [
        f"  %g{n} = getelementptr %slot, ptr %slot, i64 0, i32 {6 + n}\n"
        f"  store i32 %a{place}, ptr %g{n}"
        for n, place in enumerate(grid)
    ]
    claim = f"call ptr @{_CLAIM}()" if is_guarded else "select i1 true, ptr null, ptr null"
    return f"""{TYPES}
declare ptr @{_CLAIM}()
declare i32 @_setjmp(ptr) returns_twice
define i32 @proton_enter(ptr %record, {passed}) returns_twice noinline {{
entry:
  %here = alloca i64
  %function = load ptr, ptr %record
  %slot = {claim}
  %none = icmp eq ptr %slot, null
  br i1 %none, label %bare, label %guarded
bare:
  call void %function({passed})
  ret i32 0
guarded:
  %stop_at = getelementptr %slot, ptr %slot, i64 0, i32 2
  store volatile i64 0, ptr %stop_at
  %busy_at = getelementptr %slot, ptr %slot, i64 0, i32 3
  store volatile i64 0, ptr %busy_at
  %stack = ptrtoint ptr %here to i64
  %stack_at = getelementptr %slot, ptr %slot, i64 0, i32 4
  store volatile i64 %stack, ptr %stack_at
  %record_at = getelementptr %slot, ptr %slot, i64 0, i32 5
  store ptr %record, ptr %record_at
{chr(10).join(lines)}
  %runs_at = getelementptr %slot, ptr %slot, i64 0, i32 1
  %buffer = getelementptr %slot, ptr %slot, i64 0, i32 10
  %back = call i32 @_setjmp(ptr %buffer) returns_twice
  %first_time = icmp eq i32 %back, 0
  br i1 %first_time, label %run, label %over
run:
  store volatile i64 1, ptr %runs_at
  call void %function({passed})
  br label %over
over:
  store volatile i64 0, ptr %runs_at
  store atomic i64 0, ptr %slot release, align 8
  ret i32 %back
}}
"""


def _call_text(kept: list[Any], given: tuple[Any, ...], extras: tuple[Any, ...]) -> str:
    """Calls `proton_enter` with what lies in a block, and a range of programs."""
    types = [_LLVM_TYPES[type_] for type_ in kept]
    lines = [
        f"  %at{n} = getelementptr %block, ptr %block, i32 0, i32 {n}\n"
        f"  %v{n} = load {type_}, ptr %at{n}"
        for n, type_ in enumerate(types)
    ]
    passed = [f"{type_} %v{n}" for n, type_ in enumerate(types)]
    behind = iter(passed[len(given) :])
    thread = ctypes.c_int32
    passed[len(given) :] = [
        "i64 %first",
        "i64 %last",
        *["i32 %thread" if type_ is thread else next(behind) for type_ in extras],
    ]
    return "\n".join(
        [
            f"%block = type {{ {', '.join(types)} }}",
            "define i32 @proton_call"
            "(ptr %record, ptr %block, i64 %first, i64 %last, i32 %thread) {",
            *lines,
            f"  %left = call i32 @proton_enter(ptr %record, {', '.join(passed)})",
            "  ret i32 %left",
            "}",
        ]
    )


def _forget_threads() -> None:
    if guard_code.made and (guard := guard_code()):
        guard.forked()


os.register_at_fork(after_in_child=_forget_threads)
