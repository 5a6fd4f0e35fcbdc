"""One run out of several of one process that followed each other."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from proton.trace.model import FORKED, UNFINISHED, Clock, GPUClock, Kernel, RawRun


def join(runs: Sequence[RawRun]) -> RawRun:
    """The runs as one, which has the first one's name and time zero.

    A kernel that several runs have is one where it was compiled and instrumented alike. The pairs
    of their clocks are one longer series; what recording costs is that of the run which says most.
    """
    first = runs[0]
    kernels: list[Kernel] = []
    numbers: dict[str, int] = {}
    launches = []
    for run in runs:
        of = []
        for kernel in run.kernels:
            of.append(numbers.setdefault(kernel.key, len(kernels)))
            if of[-1] == len(kernels):
                kernels.append(kernel)
        launches += [replace(launch, kernel=of[launch.kernel]) for launch in run.launches]
    return RawRun(
        name=first.name,
        origin_ns=first.origin_ns,
        origin_unix_ns=first.origin_unix_ns,
        clock=_clock([run.clock for run in runs]),
        gpus=_gpus(runs),
        kernels=kernels,
        launches=sorted(launches, key=lambda launch: launch.host_start),
        host=[slice_ for run in runs for slice_ in run.host],
        dropped_launches=sum(run.dropped_launches for run in runs),
        machine=_machine(runs),
    )


def _clock(clocks: Sequence[Clock]) -> Clock:
    """All pairs; the largest of the other numbers."""
    return Clock(
        ticks=np.concatenate([clock.ticks for clock in clocks]),
        host_ns=np.concatenate([clock.host_ns for clock in clocks]),
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
    return [
        replace(
            gpus[0],
            timer_ns=np.concatenate([gpu.timer_ns for gpu in gpus]),
            host_ns=np.concatenate([gpu.host_ns for gpu in gpus]),
            error_ns=max(gpu.error_ns for gpu in gpus),
            slice_cost_cycles=max(gpu.slice_cost_cycles for gpu in gpus),
            edge_cost_cycles=max(gpu.edge_cost_cycles for gpu in gpus),
        )
        for gpus in devices.values()
    ]


def _machine(runs: Sequence[RawRun]) -> dict[str, object]:
    """What the last run that says it says; counts of launches are summed."""
    machine = {name: value for run in runs for name, value in run.machine.items()}
    for name in (FORKED, UNFINISHED):
        counts = [run.machine.get(name, 0) for run in runs]
        total = sum(count for count in counts if isinstance(count, int))
        if total:
            machine[name] = total
    return machine
