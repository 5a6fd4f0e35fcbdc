"""Who emptied a buffer: arrivals of threads at mbarriers, and the waits that they end, from the
kernel's code to the critical path. The machine for PTX runs it, by one clock for all warps."""

import inspect
import itertools
from typing import Any
from unittest import mock

import numpy as np
import pytest

import proton
import proton.language as tl
from proton import gluon
from proton.gluon import language as gl
from proton.gluon.language.nvidia.ampere import async_copy
from proton.gluon.language.nvidia.hopper import mbarrier, tma
from proton.runtime.session.described import kernel_model
from proton.trace.instrumentation import Instrumentation
from proton.trace.iterations import expand
from proton.trace.model import LOCKS, Clock, GPUClock, Launch, RawRun
from proton.viewer import Run
from tests.compile.ptx import emulation, machine
from tests.compile.ptx.emulation import Emulation
from tests.compile.ptx.machine import Machine, run_on_arrays
from tests.compile.ptx.text import parsed
from tests.compile.test_gluon_records import consume, produce, summed
from tests.compile.test_gpu_records import compiled
from tests.cpu.test_atomics import locked
from tests.gluon_kernels import described, doubled, fetch, put, specialized, three_roles
from tests.gpu.staging import _Copies


def recorded(n: int, slots: int, words: tuple[str, ...], rng: np.random.Generator) -> Run:
    """`summed` on one program, as a run."""
    options = Instrumentation(capacity=128, auto=words)
    kernel = compiled(summed, gl.int32, n, slots, num_warps=4, instrumentation=options)
    profile = kernel.profile
    assert profile is not None
    buffer, out = np.zeros(profile.block.bytes, np.uint8), np.zeros(32, np.int32)
    given = [out, n, buffer]
    run_on_arrays(kernel.asm["ptx"], (1, 1, 1), 256, kernel.shared, given, rng, unit=32)
    assert (out == n * (n - 1) // 2).all()
    return as_run(kernel, options, buffer)


def one_clock() -> Any:
    """What reads a clock that all warps share."""
    now = itertools.count(0, 100)

    def read(machine: Machine, mask: np.ndarray) -> np.ndarray:
        return np.full(len(mask), next(now), np.uint64)

    return read


def preferring(role: str) -> Any:
    """What runs a machine on which a role goes on as soon as it can."""
    run_machine = Machine.run

    def prefer(machine: Machine) -> None:
        roles = [slice(128, len(machine.pc)), slice(0, 128)]
        machine.take_turns(roles if role == "produce" else roles[::-1])
        run_machine(machine)

    return prefer


def as_run(kernel: Any, options: Instrumentation, buffer: np.ndarray) -> Run:
    """What one program left in its ring buffers."""
    block, loops = kernel.profile.block, kernel.profile.loops
    expand(buffer, block, loops)
    model = kernel_model(kernel, options.noted())
    launch = Launch(kernel=0, grid=(1, 1, 1), capacity=block.capacity, host_start=10**6,
                    host_end=2 * 10**6, buffer=buffer)  # fmt: skip
    none, pair = np.zeros(0, np.int64), np.array([0, 10**9], np.int64)
    gpu = GPUClock(device=0, name="machine", timer_ns=pair, host_ns=pair + 1)
    clock = Clock(ticks=none.astype(np.uint64), host_ns=none)
    return Run(RawRun(name="r", origin_ns=1, origin_unix_ns=1, clock=clock, gpus=[gpu],
                      kernels=[model], launches=[launch]))  # fmt: skip


def recorded_copies(
    kernel: Any, args: tuple[Any, ...], words: tuple[str, ...], rng: np.random.Generator
) -> Run:
    """A kernel that takes descriptors, with four warps, on one program, as a run: a launch gives
    the kernel without records its arguments, and the one with records runs in its stead."""
    options, emulated = {"auto": words, "capacity": 128}, Emulation(4, rng)
    buffers: list[np.ndarray] = []
    with emulated.installed():
        given = [_Copies(emulated.emulated).argument(arg) for arg in args]
        recording = kernel.warmup(*given, num_warps=4, grid=(1,), profile=options)

        def instead(ptx: str, grid: Any, threads: int, shared: int, given: list[bytes], heap: Any,
                    *rest: Any, **changed: Any) -> None:  # fmt: skip
            size = recording.profile.block.bytes
            place, ptx = heap.allocate(size), recording.asm["ptx"]
            given = [*given[: len(parsed(ptx).parameters) - 1], place.to_bytes(8, "little")]
            machine.run(ptx, grid, threads, recording.shared, given, heap, rng, unit=32,
                        checks_races=False)  # fmt: skip
            buffers.append(heap.bytes(place, size).copy())

        clock = mock.patch.object(Machine, "read_clock", one_clock())
        with clock, mock.patch.object(emulation, "run", instead):
            kernel[(1,)](*args, num_warps=4)
    return as_run(recording, Instrumentation(capacity=128, auto=words), buffers[0])


def line_of(function: Any) -> str:
    """Where a role arrives."""
    lines, first = inspect.getsourcelines(function.fn)
    (line,) = [number for number, text in enumerate(lines, first) if "mbarrier.arrive" in text]
    return f"arrival test_gluon_records.py:{line}"


@pytest.mark.parametrize("first", ["produce", "consume"])
def test_a_wait_ends_with_the_arrival_of_the_other_role(
    first: str, monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator
) -> None:
    """The role that goes on as soon as it can waits for the other. Samples have one order."""
    steps, warps = 5, (0, 1, 2, 3)
    monkeypatch.setattr(Machine, "read_clock", one_clock())
    monkeypatch.setattr(Machine, "run", preferring(first))
    run = recorded(steps, 1, ("barriers",), rng)
    filled, emptied = line_of(produce), line_of(consume)
    flights = run.flights
    found = [*zip(flights.name, flights.start_warp, flights.end_warp, strict=True)]
    if first == "consume":
        assert found == [(filled, 4, warp) for _ in range(steps) for warp in warps]
    else:  # the first slot is empty; of four warps that meet and arrive one is named
        assert [(name, end) for name, _, end in found] == [(emptied, 4)] * (steps - 1)
        assert set(flights.start_warp) <= set(warps)
    # An arrival is no wait, and a wait for arrivals is none for copies.
    assert set(run.stalls["work"]) == {"barriers"}
    waits = {scope.name for scope in run.kernels[0].scopes if scope.kind == "wait" and scope.queue}
    assert waits == {f"wait {filled}", f"wait {emptied}"}
    assert len({scope.queue for scope in run.kernels[0].scopes if scope.queue}) == 2


def test_waits_for_threads_are_recorded_with_barriers_alone(rng: np.random.Generator) -> None:
    run = recorded(3, 2, ("copies",), rng)
    assert {scope.kind for scope in run.kernels[0].scopes} == {"slice"}


def test_rings_in_one_allocation_are_queues_of_their_own(rng: np.random.Generator) -> None:
    """Of `three_roles` one is filled by copies, and three by threads."""
    x = np.zeros((32, 64), np.float32)
    emulated = Emulation(8, rng)
    with emulated.installed():
        array = _Copies(emulated.emulated).argument(described(x, [32, 64], gl.float32))
        kernel = three_roles.warmup(array, array, 5, 64, 2, num_warps=8, maxnreg=128, grid=(1,),
                                    profile={"auto": ("copies", "barriers")})  # fmt: skip
    ends: dict[str, set[str]] = {}
    for scope in kernel.profile.table.scopes:
        if scope.queue and scope.work == "barriers":
            ends.setdefault(scope.queue, set()).add(f"{scope.kind} {kernel_of(scope.line)}")
    assert sorted(map(sorted, ends.values())) == [
        ["issue doubled", "wait fetch"],
        ["issue doubled", "wait put"],
        ["issue put", "wait doubled"],
    ]
    copies = [kernel_of(s.line) for s in kernel.profile.table.scopes if s.queue == "copies"]
    assert sorted(copies) == ["doubled", "fetch"]  # the wait, the issue


def kernel_of(line: int) -> str:
    """The role of `three_roles` that a line is in."""
    for role in (doubled, fetch, put):
        lines, first = inspect.getsourcelines(role.fn)
        if first <= line < first + len(lines):
            return str(role.fn.__name__)
    raise AssertionError(line)


@gluon.jit
def send(x_desc, y_desc, x, y, x_ready, y_ready, n):
    for k in range(n):
        mbarrier.expect(x_ready.index(k), x_desc.block_type.nbytes)
        tma.async_load(x_desc, [0, k * 32], x_ready.index(k), x.index(k))
        is_odd = k % 2 == 1
        mbarrier.expect(y_ready.index(k // 2), y_desc.block_type.nbytes, pred=is_odd)
        tma.async_load(
            y_desc, [0, k // 2 * 32], y_ready.index(k // 2), y.index(k // 2), pred=is_odd
        )


@gluon.jit
def receive(x, y, x_ready, y_ready, n):
    layout: gl.constexpr = gl.BlockedLayout([1, 1], [1, 32], [gl.num_warps(), 1], [1, 0])
    total = gl.zeros([16, 32], gl.float32, layout)
    for k in range(n // 2):
        mbarrier.wait(y_ready.index(k), 0)
        total += y.index(k).load(layout)
    for k in range(n):
        mbarrier.wait(x_ready.index(k), 0)
        total += x.index(k).load(layout)
    return total


@gluon.jit
def received(x_desc, y_desc, out, n: gl.constexpr):
    x = gl.allocate_shared_memory(gl.float32, [n, *x_desc.block_type.shape], x_desc.layout)
    y = gl.allocate_shared_memory(gl.float32, [n, *y_desc.block_type.shape], y_desc.layout)
    bars = gl.allocate_shared_memory(gl.int64, [2 * n, 1], mbarrier.MBarrierLayout())
    for k in gl.static_range(2 * n):
        mbarrier.init(bars.index(k), count=1)
    x_ready, y_ready = bars.slice(0, n), bars.slice(n, n)
    total = gl.warp_specialize(
        [
            (receive, (x, y, x_ready, y_ready, n)),
            (send, (x_desc, y_desc, x, y, x_ready, y_ready, n)),
        ],
        [1],
    )
    gl.store(out + gl.arange(0, 32), gl.sum(total, 0))


def test_copies_of_a_ring_end_with_its_waits(rng: np.random.Generator) -> None:
    """The order of issues is another than that of waits; of some nothing is issued."""
    x, y = (rng.standard_normal((16, 32 * 4), np.float32) for _ in range(2))
    out = np.zeros(32, np.float32)
    given = (described(x, [16, 32], gl.float32), described(y, [16, 32], gl.float32), out, 4)
    run = recorded_copies(received, given, ("copies",), rng)
    scopes = run.kernels[0].scopes
    assert len({scope.queue for scope in scopes if scope.queue}) == 2
    assert len({scope.name for scope in scopes if scope.kind == "wait"}) == 2
    flights = run.flights
    lines, first = inspect.getsourcelines(send.fn)
    x_copy, y_copy = (n for n, line in enumerate(lines, first) if "async_load" in line)
    found = [*zip(flights.name, flights.start_warp, flights.end_warp, strict=True)]
    for warp in range(4):
        of = [name for name, start, end in found if (start, end) == (4, warp)]
        assert sorted(of) == sorted(
            f"copy test_handovers.py:{line}" for line in [x_copy] * 4 + [y_copy] * 2
        )
    assert len(found) == 4 * 6


@gluon.jit
def load_ahead(x, buffers, ready, n, layout: gl.constexpr):
    for k in range(n):
        async_copy.async_load(buffers.index(k), x + k * 128 + gl.arange(0, 128, layout))
        async_copy.mbarrier_arrive(ready.index(k), increment_count=False)


@gluon.jit
def add_up(buffers, ready, n, layout: gl.constexpr):
    total = gl.zeros([128], gl.int32, layout)
    for k in range(n):
        mbarrier.wait(ready.index(k), 0)
        total += buffers.index(k).load(layout)
    return total


@gluon.jit
def added_up(x, out, n: gl.constexpr):
    one: gl.constexpr = gl.BlockedLayout([4], [32], [1], [0])
    layout: gl.constexpr = gl.BlockedLayout([1], [32], [gl.num_warps()], [0])
    buffers = gl.allocate_shared_memory(gl.int32, [n, 128], gl.SwizzledSharedLayout(1, 1, 1, [0]))
    ready = mbarrier.allocate_mbarrier(batch=n)
    for k in gl.static_range(n):
        mbarrier.init(ready.index(k), count=32)
    total = gl.warp_specialize(
        [
            (add_up, (buffers, ready, n, layout)),
            (load_ahead, (x, buffers, ready, n, one)),
        ],
        [1],
    )
    gl.store(out + gl.arange(0, 128, layout), total)


def test_copies_by_threads_of_another_role(rng: np.random.Generator) -> None:
    x, out = rng.integers(-9, 9, (3, 128)).astype(np.int32), np.zeros(128, np.int32)
    run = recorded_copies(added_up, (x, out, 3), ("copies",), rng)
    flights = run.flights
    found = sorted(zip(flights.start_warp, flights.end_warp, strict=True))
    assert found == [(4, warp) for warp in range(4) for _ in range(3)]
    assert len(set(flights.name)) == 1


def test_a_matmul_by_roles_from_copy_to_product_and_back(
    monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator
) -> None:
    monkeypatch.setattr(Machine, "run", preferring("produce"))
    a, b = (rng.standard_normal((64, 64), np.float32).astype(np.float16) for _ in range(2))
    c = np.zeros((64, 64), np.float16)
    given = described(a, [64, 32]), described(b, [32, 64]), described(c, [64, 64]), 64, 64, 32, 1
    run = recorded_copies(specialized, given, ("copies", "barriers", "dots"), rng)
    flights = run.flights
    found = {*zip((str(name).split()[0] for name in flights.name), flights.start_warp,
                  flights.end_warp, strict=True)}  # fmt: skip
    assert {("copy", 4, warp) for warp in range(4)} <= found  # the producer's to each consumer's
    assert {("dot", warp, warp) for warp in range(4)} <= found
    assert [(start < 4, end) for name, start, end in found if name == "arrival"] == [(True, 4)]


@proton.jit
def flagged(flag_ptr, x_ptr, out_ptr, n):
    i = tl.program_id(0)
    while tl.load(flag_ptr, volatile=True) < i:
        pass
    tl.store(out_ptr + i, tl.load(x_ptr + i) + n)
    tl.debug_barrier()
    tl.store(flag_ptr, i + 1)


@pytest.mark.parametrize(
    ("kernel", "types", "given", "ends"),
    [
        (locked, (tl.int32, tl.int64), {"ROUNDS": 2}, ("atomic_cas", "atomic_xchg")),
        (flagged, (tl.int32, tl.float32, tl.float32, 3), {}, ("volatile=True", "flag_ptr, i + 1")),
    ],
)
def test_a_loop_that_waits_for_another_program_is_one_wait(
    kernel: Any, types: tuple[Any, ...], given: dict[str, Any], ends: tuple[str, str]
) -> None:
    options = Instrumentation(auto=("barriers", "loops"))
    found = compiled(kernel, *types, **given, instrumentation=options).profile.table.scopes
    lines, first = inspect.getsourcelines(kernel.fn)
    wait, release = (next(n for n, line in enumerate(lines, first) if end in line) for end in ends)
    (queue,) = {scope.queue for scope in found if scope.queue}
    assert {(s.kind, s.line) for s in found if s.queue} == {("wait", wait), ("issue", release)}
    assert queue.endswith(f":{wait}")
    loops = compiled(kernel, *types, **given, instrumentation=Instrumentation(auto=("loops",)))
    assert wait in {s.line for s in loops.profile.table.scopes if s.name.startswith("loop ")}
    # Neither its iterations nor the barriers inside of it are recorded.
    assert all(scope.queue for scope in found if scope.line == wait)


@proton.jit
def taken(lock_ptr, out_ptr, ROUNDS: tl.constexpr):
    for i in range(ROUNDS):
        while tl.atomic_cas(lock_ptr, 0, 1) == 1:
            pass
        tl.store(out_ptr + tl.program_id(0), i + 1)
        tl.debug_barrier()
        tl.atomic_xchg(lock_ptr, 0)


def test_a_recorded_lock_works(monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator) -> None:
    """Two programs, which go on in turns, take a lock twice each: each take is one wait a warp."""
    options = Instrumentation(capacity=32, auto=("barriers",))
    kernel = compiled(taken, tl.int32, tl.int32, ROUNDS=2, instrumentation=options)
    profile, step = kernel.profile, Machine._step
    assert profile is not None
    programs, warps = 2, 4

    def in_turns(machine: Machine, live: np.ndarray) -> bool:
        both = [slice(0, 32 * warps), slice(32 * warps, len(live))]
        machine.take_turns(both[::-1] if machine.turns[0] == both[0] else both)
        return step(machine, live)

    monkeypatch.setattr(Machine, "_step", in_turns)
    monkeypatch.setattr(machine, "_STEPS", 5000)
    buffer = np.zeros(programs * profile.block.bytes, np.uint8)
    lock, data = np.zeros(1, np.int32), np.zeros(2, np.int32)
    given = [lock, data, buffer]
    shape = (programs, 1, 1), 32 * warps, kernel.shared
    run_on_arrays(kernel.asm["ptx"], *shape, given, rng, unit=32)
    assert (lock[0], data.tolist()) == (0, [2, 2])
    expand(buffer, profile.block, profile.loops)
    assert profile.block.tables(buffer).tolist() == [[2 * 3] * warps] * programs


@proton.jit
def summed_by_tickets(next_ptr, x_ptr, sum_ptr, n):  # type: ignore[no-untyped-def]
    total = tl.zeros((128,), tl.float32)
    ticket = tl.atomic_add(next_ptr, 1)
    while ticket < n:
        total += tl.load(x_ptr + ticket * 128 + tl.arange(0, 128))
        ticket = tl.atomic_add(next_ptr, 1)
    tl.store(sum_ptr + tl.program_id(0) * 128 + tl.arange(0, 128), total)


def test_a_loop_that_takes_work_by_an_atomic_does_not_wait() -> None:
    options = Instrumentation(capacity=32, auto=("barriers",))
    kernel = compiled(summed_by_tickets, tl.int32, tl.float32, tl.float32, 9,
                      instrumentation=options)  # fmt: skip
    assert LOCKS not in {scope.work for scope in kernel_model(kernel, options.noted()).scopes}
