"""Grids on several threads, and launches from several threads at once."""

import ctypes
import dis
import itertools
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import numpy as np
import pytest

import proton
import proton.language as tl
from proton import knobs
from proton.base.errors import ProtonError
from proton.runtime.cpu import team
from proton.runtime.cpu.arguments import CTYPES
from proton.runtime.cpu.grid import LEAST_NS, MAX_THREADS, WorkEstimate, run_grid
from proton.runtime.cpu.guard import Entry
from proton.runtime.cpu.team import TeamCall
from tests.cpu.harness import kernels_of, ordinary


@proton.jit
def row_softmax(x_ptr, out_ptr, n, N: tl.constexpr):
    row = tl.program_id(0)
    offs = tl.arange(0, N)
    x = tl.load(x_ptr + row * n + offs, mask=offs < n, other=-float("inf"))
    tl.store(out_ptr + row * n + offs, tl.softmax(x), mask=offs < n)


@proton.jit
def uneven(x_ptr, out_ptr, N: tl.constexpr):
    """Programs of very different lengths."""
    pid = tl.program_id(0)
    total = tl.zeros((N,), tl.int64)
    for i in range(pid % 97):
        total += tl.load(x_ptr + tl.arange(0, N)) * i
    tl.store(out_ptr + pid * N + tl.arange(0, N), total)


@pytest.mark.parametrize("threads", [1, 2, 4])
@pytest.mark.parametrize("programs", [0, 1, 2, 3, 1000])
def test_results_do_not_depend_on_the_number_of_threads(
    rng: np.random.Generator, programs: int, threads: int
) -> None:
    x, y = rng.standard_normal((programs, 100)).astype(np.float32), ordinary(rng, "int64", 64)
    results: list[Any] = []
    for count in (1, threads):
        out, sums = np.zeros_like(x), np.zeros((programs, 64), np.int64)
        with knobs.scope(num_threads=count):
            for _ in range(3):  # the first launch measures, later ones go parallel
                row_softmax[(programs,)](x, out, 100, N=128)
                uneven[(programs,)](y, sums, N=64)
        results.append((out, sums))
    assert (results[0][0] == results[1][0]).all()
    assert (results[0][1] == results[1][1]).all()
    rounds = np.arange(programs) % 97
    assert (sums == (rounds * (rounds - 1) // 2)[:, None] * y).all()


def launch_rows(seed: int) -> bool:
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((50, 40)).astype(np.float32)
    out = np.zeros_like(x)
    for _ in range(20):
        row_softmax[(50,)](x, out, 40, N=64)
    return bool(np.allclose(out.sum(1), 1, atol=1e-5))


@pytest.mark.parametrize("threads", [1, 2])
def test_one_kernel_from_several_threads(rng: np.random.Generator, threads: int) -> None:
    seeds = rng.integers(0, 1 << 30, 40).tolist()
    with knobs.scope(num_threads=threads), ThreadPoolExecutor(8) as pool:
        assert all(pool.map(launch_rows, seeds))


SCALE = """
@proton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < n)
    tl.store(out_ptr + offs, x * {factor} + n, mask=offs < n)
"""


def test_many_kernels_compiled_and_run_from_several_threads(rng: np.random.Generator) -> None:
    x = rng.integers(0, 100, 1000)

    def run(factor: int) -> bool:
        kernel = kernels_of(SCALE.format(factor=factor)).kernel
        out = np.zeros_like(x)
        for n in (1000, 999):
            kernel[(proton.cdiv(n, 128),)](x, out, n, BLOCK=128)
        return bool((out[:999] == x[:999] * factor + 999).all())

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(run, [*range(2, 14)] * 2))


def test_a_launch_inside_of_a_grid_function() -> None:
    x, out = np.ones((4, 8), np.float32), np.zeros((4, 8), np.float32)

    def grid(arguments: dict[str, Any]) -> tuple[int]:
        row_softmax[(1,)](x, out, 8, N=8)
        return (4,)

    row_softmax[grid](x, out, 8, N=8)
    assert (out == 0.125).all()


Run = Callable[[int, int, int], object]


def entry(callback: Any) -> Entry:
    """A function (first, last, thread) in the place of machine code."""
    address = ctypes.cast(callback, ctypes.c_void_p).value
    assert address is not None
    return Entry("callback", address, [], [ctypes.c_int32])


def run_grid_of(programs: int, run: Run, ns_per_program: float = 1e9) -> None:
    """A grid whose machine code calls `run(first, last, thread)`."""
    prototype = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64, ctypes.c_int32)
    callback = prototype(run)
    run_grid(programs, TeamCall(entry(callback), [], [None]), WorkEstimate(ns_per_program))


@pytest.mark.parametrize("threads", [1, 2, 3, 8])
def test_each_program_runs_once_whoever_sleeps(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch, threads: int
) -> None:
    """Grids one after the other, at once and after pauses in which threads fall asleep; shares so
    long that the leader falls asleep, too."""
    monkeypatch.setenv("PROTON_NUM_THREADS", str(threads))
    seen: list[tuple[int, int]] = []
    naps = rng.choice([0.0, 0.0, 0.00005, 0.0003, 0.002], 200)

    def run(first: int, last: int, thread: int) -> None:
        if thread == naps.size % threads:
            time.sleep(pause)
        seen.append((first, last))

    for number, nap in enumerate(naps):
        pause = float(rng.choice([0, 0, 0.001]))
        programs = int(rng.integers(1, 70))
        seen.clear()
        run_grid_of(programs, run)
        edges = sorted(seen)
        assert edges[0][0] == 0
        assert edges[-1][1] == programs
        assert all(a[1] == b[0] for a, b in itertools.pairwise(edges)), (number, edges)
        time.sleep(nap)


def test_arguments_of_all_types_reach_all_threads(rng: np.random.Generator) -> None:
    """Code is called through a block of memory, not by ctypes, on several threads."""
    types = [ctype for ctype in CTYPES.values() for _ in range(2)]
    rng.shuffle(types)
    types.insert(3, ctypes.c_void_p)
    types += [ctypes.c_int32] * 3  # the grid
    given = [type_(int(rng.integers(0, 100))).value for type_ in types]
    got: list[tuple[object, ...]] = []
    prototype = ctypes.CFUNCTYPE(
        None, *types, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p, ctypes.c_int32
    )
    callback = prototype(lambda *found: got.append(found))
    with knobs.scope(num_threads=3):
        extras = [ctypes.c_void_p, ctypes.c_int32]
        address = ctypes.cast(callback, ctypes.c_void_p).value or 0
        code = Entry("callback", address, types, extras)
        run_grid(64, TeamCall(code, given, [12345, None]), WorkEstimate(1e9))
    assert len(got) > 3
    for found in got:
        assert list(found[: len(given)]) == given
        assert found[-2] == 12345
    assert {found[-1] for found in got} <= {0, 1, 2}


def test_an_interrupted_launch_waits_for_its_threads() -> None:
    """Ctrl-C while the launching thread waits: they still use what the launch gave them."""
    script = """
import ctypes, os, signal, threading, time
from proton import knobs
from proton.runtime.cpu.grid import WorkEstimate, run_grid
from proton.runtime.cpu.guard import Entry
from proton.runtime.cpu.team import TeamCall

begun, asked, ended = threading.Event(), threading.Event(), []

def run(first, last, thread):
    if thread and not begun.is_set():
        begun.set()
        asked.wait()
        time.sleep(0.1)  # launches look each millisecond who handles SIGINT
        ended.append(first)
    begun.wait()

callback = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64, ctypes.c_int32)(run)
address = ctypes.cast(callback, ctypes.c_void_p).value
call = TeamCall(Entry("callback", address, [], [ctypes.c_int32]), [], [None])

def interrupt():
    begun.wait()
    time.sleep(0.1)  # the launching thread has only to wait
    os.kill(os.getpid(), signal.SIGINT)
    asked.set()

with knobs.scope(num_threads=2):
    threading.Thread(target=interrupt).start()
    try:
        run_grid(17, call, WorkEstimate(1e9))
        raise SystemExit("not interrupted")
    except KeyboardInterrupt:
        assert ended, "the worker was left behind"
    begun.clear(), ended.clear()
    run_grid(17, call, WorkEstimate(1e9))  # and the team goes on
    assert ended
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)


class Interrupted(BaseException):
    """What a handler of a signal raises."""


SIGNAL = partial(getattr(ctypes.PyDLL(None), "raise"), signal.SIGUSR1)
SIGNAL.func.restype = None  # type: ignore[attr-defined]


class InterruptedTwice(Interrupted):
    """As one is raised comes the next signal, for which Python looks in the next such place."""

    __init__ = SIGNAL  # type: ignore[assignment]


def interrupt_team(_: int, frame: FrameType | None) -> None:
    """A handler of signals that raises within team.py alone."""
    while frame is not None:
        if frame.f_code.co_filename == team.__file__:
            raise Interrupted
        frame = frame.f_back


def handler_at(code: CodeType, offset: int) -> int | None:
    """Where the code goes on that catches what an instruction raises."""
    entries = dis.Bytecode(code).exception_entries  # type: ignore[attr-defined]
    return next((of.target for of in entries if of.start <= offset < of.end), None)


def raise_at(step: int, problem: type[BaseException]) -> Callable[[FrameType, str, object], Any]:
    """A trace function that raises in the step-th place of team.py where Python looks for signals:
    where a function begins, in a call that is over, and where a loop goes back."""
    left, before = step, dict[FrameType, int]()

    def is_place(frame: FrameType, event: str, last: int | None) -> bool:
        code, offset = frame.f_code, frame.f_lasti
        if event == "call" or dis.opname[code.co_code[offset]] == "JUMP_BACKWARD":
            return True
        called = last is not None and dis.opname[code.co_code[last]].startswith("CALL")
        return called and handler_at(code, last or 0) == handler_at(code, offset)

    def trace(frame: FrameType, event: str, _: object) -> Any:
        nonlocal left
        if frame.f_code.co_filename != team.__file__:
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        left -= is_place(frame, event, before.get(frame))
        before[frame] = frame.f_lasti
        if left == 0:
            raise problem
        return trace

    return trace


@pytest.mark.parametrize("problem", [Interrupted, InterruptedTwice])
def test_interruptions_at_any_step_leave_no_worker_behind(
    problem: type[Interrupted], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a worker has begun ends with the launch, and the next launch has all workers."""
    monkeypatch.setenv("PROTON_NUM_THREADS", "3")
    under_way: set[int] = set()
    seen: set[int] = set()

    def run(first: int, last: int, thread: int) -> None:
        under_way.add(thread)
        time.sleep(0.0002)
        seen.add(thread)
        under_way.discard(thread)

    run_grid_of(8, run)
    steps = itertools.count(1)
    old, handler = sys.gettrace(), signal.signal(signal.SIGUSR1, interrupt_team)
    for step in steps:
        try:
            sys.settrace(raise_at(step, problem))
            run_grid_of(8, run)
            break
        except Interrupted:
            assert not under_way, step
        finally:
            sys.settrace(old)
        seen.clear()
        for _ in range(1000):  # who sleeps long may find nothing left to do
            run_grid_of(8, run)
            if len(seen) == 3:
                break
        assert len(seen) == 3, step
    signal.signal(signal.SIGUSR1, handler)
    assert step > 20


def test_first_launches_of_many_threads_at_once(tmp_path: Path) -> None:
    """The runtime's machine code is made once, and lives as long as a thread may run it."""
    script = """
import threading, time
from proton import knobs
from proton.runtime.cpu.grid import WorkEstimate, run_grid
from proton.runtime.cpu.guard import Entry
from proton.runtime.cpu.team import TeamCall
import ctypes
callback = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64, ctypes.c_int32)(lambda *_: None)
address = ctypes.cast(callback, ctypes.c_void_p).value
def launch():
    call = TeamCall(Entry("callback", address, [], [ctypes.c_int32]), [], [None])
    for _ in range(5):
        run_grid(20, call, WorkEstimate(1e9))
threads = [threading.Thread(target=launch) for _ in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
launch()
"""
    given = os.environ | {"PROTON_NUM_THREADS": "2", "PROTON_CACHE_DIR": str(tmp_path)}
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60, env=given)


def test_workers_end_with_the_thread_that_launched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROTON_NUM_THREADS", "3")
    threads: set[int] = set()

    def launch() -> None:
        run_grid_of(64, lambda first, last, thread: (time.sleep(0.002), threads.add(thread)))

    before = {thread.ident for thread in threading.enumerate()}
    launcher = threading.Thread(target=launch)
    launcher.start()
    launcher.join()
    assert threads == {0, 1, 2}
    for thread in threading.enumerate():
        if thread.ident not in before:
            thread.join(timeout=30)
            assert not thread.is_alive()


def test_threads_are_no_more_than_programs_and_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: set[int] = set()

    def launch(programs: int) -> None:
        seen.clear()
        run_grid_of(programs, lambda first, last, thread: seen.add(thread))

    monkeypatch.setenv("PROTON_NUM_THREADS", "100000")
    with ThreadPoolExecutor(1) as pool:  # whose workers end with it
        before = threading.active_count()
        pool.submit(launch, 5).result()
        assert threading.active_count() - before <= 5
        assert seen <= set(range(5))
        pool.submit(launch, 100_000).result()
        assert threading.active_count() - before <= MAX_THREADS
        assert max(seen) < MAX_THREADS


@pytest.mark.parametrize("most", [1, 2, 3, 5])
def test_little_work_asks_few_threads(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    """To wake a thread costs time: of a hundred cores a short grid takes two."""
    monkeypatch.setenv("PROTON_NUM_THREADS", "100")
    asked: list[int] = []
    monkeypatch.setattr(
        "proton.runtime.cpu.grid.team.run", lambda *args: asked.append(args[-1]) or args[-1]
    )
    run_grid_of(640, lambda *_: None, (most + 0.5) * LEAST_NS / 640)
    assert asked == ([] if most == 1 else [most])


def test_a_system_without_more_threads_runs_with_those_there_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As at the end of a process, or where a container allows no more."""
    monkeypatch.setenv("PROTON_NUM_THREADS", "8")
    x = np.ones((640, 100), np.float32)
    out = np.zeros_like(x)
    started = threading.Thread.start
    count = 0

    def start(thread: threading.Thread) -> None:
        nonlocal count
        count += 1
        if count > 2:
            raise RuntimeError("can't start new thread")
        started(thread)

    def launch() -> None:
        monkeypatch.setattr(threading.Thread, "start", start)
        run_grid_of(
            640,
            lambda first, last, thread: out[first:last].__setitem__(slice(None), x[first:last]),
        )

    launcher = threading.Thread(target=launch)
    launcher.start()
    launcher.join()
    assert (out == 1).all()
    assert count > 2


@pytest.mark.parametrize("text", ["0", "-3", "many", "2.5"])
def test_a_count_of_threads_that_is_none(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("PROTON_NUM_THREADS", text)
    rule = f"PROTON_NUM_THREADS='{re.escape(text)}': expected an integer of at least 1"
    with pytest.raises(ProtonError, match=rule):
        run_grid_of(10, lambda *_: None)


@proton.jit
def await_number(flags, out, most, N: tl.constexpr):
    places = tl.arange(0, N)
    first, turns = tl.load(flags, volatile=True), tl.zeros((), tl.int64)
    while (first == 0) & (turns < most):
        first = tl.load(flags, volatile=True)
        turns += 1
    row = tl.load(flags + places, volatile=True)
    while (tl.sum(row, 0) < N) & (turns < most):
        row = tl.load(flags + places, volatile=True)
        turns += 1
    tl.store(out, first + tl.sum(row, 0))


def test_a_volatile_load_sees_what_another_thread_writes() -> None:
    """A kernel looks at most so often as takes a second, if nobody writes."""
    flags, out = np.ones(8, np.int32), np.zeros(1, np.int32)
    await_number[(1,)](flags, out, 1, N=8)
    flags[:] = 0

    def write() -> None:
        flags[0] = 1
        flags[1:] = 1

    timer = threading.Timer(0.02, write)
    timer.start()
    await_number[(1,)](flags, out, 1 << 31, N=8)
    timer.join()
    assert out[0] == 9
