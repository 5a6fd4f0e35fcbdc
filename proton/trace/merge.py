"""One run out of those of several processes: ranks of a job, on one machine or several.

All times move onto the axis of the first run. Processes of one boot of one machine share the
monotonic clock, so their times are kept, and their GPUs agree as well as each does with that clock
(`GPUTimes.alignment_ns`); others are moved by their wall clocks, whose error nobody knows. GPUs and
threads get new numbers, for each process counts them from 0.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from proton.trace.errors import TraceFormatError
from proton.trace.join import join
from proton.trace.model import (
    BOOT,
    NO_PEER,
    UNCALLED,
    WALL_CLOCKED,
    Clock,
    GPUClock,
    HostSlice,
    Launch,
    RawRun,
)
from proton.trace.records import read

# Of runs that do not say which boot they are of. Two wall clocks less their monotonic ones, read in
# one boot, differ by how far the wall clock was set in between; in different boots by days.
SAME_BOOT_NS = 1_000_000_000
THREADS = 1000  # a process's threads are numbered from a multiple of this


def merge(runs: Sequence[RawRun], names: Sequence[str]) -> RawRun:
    """The runs as one; `names` say which is which, in the names of its GPUs and its machine.

    Raises TraceFormatError where programs ran on CPUs of two machines: their clocks have nothing to
    do with each other, and a run has one.
    """
    shifts = [_shift(runs[0], run) for run in runs]
    timed = [n for n, run in enumerate(runs) if _has_cpu_programs(run)]
    if len({shifts[n] for n in timed}) > 1:
        told = ", ".join(names[n] for n in timed)
        raise TraceFormatError(
            f"{told}: programs of CPUs of several machines cannot be on one axis; merge runs of "
            "GPUs, or of one machine"
        )
    moved, devices = [], 0
    for number, (run, shift) in enumerate(zip(runs, shifts, strict=True)):
        moved.append(_moved(run, shift, number, devices, names[number]))
        seen = [slice_.device for slice_ in run.host]  # by CUPTI, which needs no clock of ours
        seen += [samples.device for samples in run.counters]
        devices += 1 + max([-1, *seen, *(gpu.device for gpu in run.gpus)])
    joined = join(moved)
    machine: dict[str, object] = {f"process {n}": name for n, name in enumerate(names)}
    by_wall = [str(run.machine[WALL_CLOCKED]) for run in runs if WALL_CLOCKED in run.machine]
    pairs = zip(names, runs, strict=True)
    by_wall += [name for name, run in pairs if not _share_a_clock(runs[0], run)]
    if by_wall:
        machine[WALL_CLOCKED] = ", ".join(by_wall)
    machine[BOOT] = runs[0].machine.get(BOOT, "")  # whose axis it is
    clock = _clock(joined.clock, [moved[n].clock for n in timed or [0]])
    return replace(joined, clock=clock, machine={**joined.machine, **machine})


def process_of(run: RawRun, launch: Launch) -> int:
    """The number of a launch's process in a merged run; 0 in another."""
    return launch.thread // THREADS if "process 0" in run.machine else 0


def _shift(first: RawRun, run: RawRun) -> int:
    """What is added to the times of a run, to be on the axis of the first."""
    return 0 if _share_a_clock(first, run) else _wall_ns(run) - _wall_ns(first)


def _share_a_clock(first: RawRun, run: RawRun) -> bool:
    """Whether both are of one boot of one machine."""
    boots = [r.machine.get(BOOT) for r in (first, run)]
    if all(boots):
        return boots[0] == boots[1]
    return abs(_wall_ns(run) - _wall_ns(first)) < SAME_BOOT_NS


def _wall_ns(run: RawRun) -> int:
    """The wall clock when the monotonic one says 0."""
    return run.origin_unix_ns - run.origin_ns


def _clock(joined: Clock, clocks: Sequence[Clock]) -> Clock:
    """The pairs of these clocks, which count the same ticks, in order of time."""
    ticks = np.concatenate([clock.ticks for clock in clocks])
    order = np.argsort(ticks, kind="stable")
    host = np.concatenate([clock.host_ns for clock in clocks])[order]
    return replace(joined, ticks=ticks[order], host_ns=np.maximum.accumulate(host))


def _has_cpu_programs(run: RawRun) -> bool:
    return read(run).clock is not None


def _moved(run: RawRun, shift: int, number: int, devices: int, name: str) -> RawRun:
    """A run whose times, threads and devices are those of the whole."""
    idents = dict.fromkeys(
        [*(launch.thread for launch in run.launches), *(s.thread for s in run.host if s.device < 0)]
    )
    threads = {ident: THREADS * number + place for place, ident in enumerate(idents)}
    threads[UNCALLED] = UNCALLED
    return replace(
        run,
        origin_ns=run.origin_ns + shift,
        clock=replace(run.clock, host_ns=run.clock.host_ns + shift),
        gpus=[_moved_gpu(gpu, shift, devices, name) for gpu in run.gpus],
        launches=[
            replace(
                launch,
                host_start=launch.host_start + shift,
                host_end=launch.host_end + shift,
                thread=threads[launch.thread],
                device=launch.device + devices,
                buffer=_with_threads(run, launch, THREADS * number),
            )
            for launch in run.launches
        ],
        host=[_moved_slice(s, shift, threads, devices) for s in run.host],
        counters=[
            replace(
                samples,
                device=samples.device + devices,
                start_ns=samples.start_ns + shift,
                end_ns=samples.end_ns + shift,
            )
            for samples in run.counters
        ],
    )


def _moved_slice(slice_: HostSlice, shift: int, threads: dict[int, int], devices: int) -> HostSlice:
    moved = replace(slice_, start=slice_.start + shift, end=slice_.end + shift)
    if slice_.device >= 0:  # streams are numbered by GPU
        issuer = threads.get(slice_.issuer, 0)
        issued = slice_.issued + shift if slice_.issued and slice_.issuer in threads else 0
        return replace(moved, device=slice_.device + devices, issuer=issuer, issued=issued)
    return replace(moved, thread=threads[slice_.thread])


def _moved_gpu(gpu: GPUClock, shift: int, devices: int, name: str) -> GPUClock:
    shown = f"{name}: {gpu.name}" if gpu.name else name
    peer = gpu.peer if gpu.peer == NO_PEER else gpu.peer + devices
    moved = replace(gpu, device=gpu.device + devices, peer=peer, name=shown)
    return replace(moved, host_ns=gpu.host_ns + shift)


def _with_threads(run: RawRun, launch: Launch, first: int) -> np.ndarray:
    """The buffer of a launch whose programs of the CPU say other threads."""
    kernel = run.kernels[launch.kernel]
    if kernel.strategy is None or kernel.on_gpu or not first:
        return launch.buffer
    buffer = launch.buffer.copy()
    header = kernel.block(launch.capacity).headers(buffer)
    began = header["magic"] != 0
    header["thread"][began] += first
    return buffer
