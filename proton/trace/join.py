"""One run out of several of one process."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from proton.trace.model import (
    FORKED,
    LOST_OPERATORS,
    NO_PEER,
    UNFETCHED,
    UNFINISHED,
    Clock,
    GPUClock,
    Kernel,
    Launch,
    RawRun,
)


def join(runs: Sequence[RawRun]) -> RawRun:
    """The runs as one, which has the first one's name and time zero.

    A kernel that several runs have is one where it was compiled and instrumented alike; they come
    as they were first launched. The pairs of their clocks are one longer series; what recording
    costs is that of the run which says most.
    """
    first = runs[0]
    if len(runs) == 1:
        return first
    kernels: list[Kernel] = []
    numbers: dict[str, int] = {}
    launches = []
    for run in runs:
        of = []
        for kernel in run.kernels:
            of.append(numbers.setdefault(kernel.key, len(kernels)))
            if of[-1] == len(kernels):
                kernels.append(kernel)
            elif kernel.pc_samples is not None:
                known = kernels[of[-1]]
                first_, more = known.pc_samples, kernel.pc_samples
                both = more if first_ is None else first_ + more
                kernels[of[-1]] = replace(known, pc_samples=both)
        launches += [replace(launch, kernel=of[launch.kernel]) for launch in run.launches]
    launches.sort(key=lambda launch: launch.host_start)
    kernels, launches = _as_launched(kernels, launches)
    earliest = min(runs, key=lambda run: run.origin_ns)
    return RawRun(
        name=first.name,
        origin_ns=earliest.origin_ns,
        origin_unix_ns=earliest.origin_unix_ns,
        clock=_clock([run.clock for run in runs]),
        gpus=_gpus(runs),
        kernels=kernels,
        launches=launches,
        host=[slice_ for run in runs for slice_ in run.host],
        counters=[samples for run in runs for samples in run.counters],
        dropped_launches=sum(run.dropped_launches for run in runs),
        machine=_machine(runs),
        sources={file: text for run in runs for file, text in run.sources.items()},
    )


def _as_launched(
    kernels: Sequence[Kernel], launches: Sequence[Launch]
) -> tuple[list[Kernel], list[Launch]]:
    """Kernels in the order of their first launches, and the launches with their new numbers."""
    order = dict.fromkeys([launch.kernel for launch in launches])
    order |= dict.fromkeys(range(len(kernels)))
    number = {old: new for new, old in enumerate(order)}
    renumbered = [replace(launch, kernel=number[launch.kernel]) for launch in launches]
    return [kernels[old] for old in order], renumbered


def _clock(clocks: Sequence[Clock]) -> Clock:
    """All pairs, oldest first; the largest of the other numbers."""
    host_ns = np.concatenate([clock.host_ns for clock in clocks])
    order = np.argsort(host_ns, kind="stable")
    return Clock(
        ticks=np.concatenate([clock.ticks for clock in clocks])[order],
        host_ns=host_ns[order],
        error_ns=max(clock.error_ns for clock in clocks),
        slice_cost_ns=max(clock.slice_cost_ns for clock in clocks),
        edge_cost_ns=max(clock.edge_cost_ns for clock in clocks),
    )


def _gpus(runs: Sequence[RawRun]) -> list[GPUClock]:
    """A clock for each device of any run."""
    devices: dict[int, list[GPUClock]] = {}
    for run in runs:
        for gpu in run.gpus:
            devices.setdefault(gpu.device, []).append(gpu)
    return [_gpu(gpus) for gpus in devices.values()]


def _gpu(gpus: Sequence[GPUClock]) -> GPUClock:
    host_ns = np.concatenate([gpu.host_ns for gpu in gpus])
    order = np.argsort(host_ns, kind="stable")
    if len(gpus) == 1:
        return gpus[0]
    return replace(
        gpus[0],
        peer=NO_PEER,
        peer_error_ns=0.0,
        timer_ns=np.concatenate([gpu.timer_ns for gpu in gpus])[order],
        host_ns=host_ns[order],
        error_ns=max(gpu.error_ns for gpu in gpus),
        slice_cost_cycles=max(gpu.slice_cost_cycles for gpu in gpus),
        edge_cost_cycles=max(gpu.edge_cost_cycles for gpu in gpus),
    )


def _machine(runs: Sequence[RawRun]) -> dict[str, object]:
    """What the last run that says it says; counts are summed."""
    machine = {name: value for run in runs for name, value in run.machine.items()}
    for name in (FORKED, UNFINISHED, UNFETCHED, LOST_OPERATORS):
        counts = [run.machine.get(name, 0) for run in runs]
        total = sum(count for count in counts if isinstance(count, int))
        if total:
            machine[name] = total
    return machine
