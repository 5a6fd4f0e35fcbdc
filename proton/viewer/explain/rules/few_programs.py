"""Launches with fewer programs than the device has places."""

from __future__ import annotations

import numpy as np

from proton.base.words import counted
from proton.viewer.explain.balance import balance
from proton.viewer.explain.finding import LEAST_PART, Finding, Said
from proton.viewer.explain.rule import Rule
from proton.viewer.explain.subject import KernelView, Subject
from proton.viewer.tables.first_view import typical

LEAST = 0.25  # of the places without a program
LEAST_NS = 100_000.0  # of a launch on the CPU: a shorter one is not worth a second thread
# Streaming multiprocessors, from NVIDIA's data sheets, by the name of the whole GPU.
SMS = {
    "NVIDIA H200": 132,
    "NVIDIA H200 NVL": 132,
    "NVIDIA H100 80GB HBM3": 132,
    "NVIDIA H100 PCIe": 114,
    "NVIDIA A100-SXM4-80GB": 108,
    "NVIDIA A100 80GB PCIe": 108,
    "NVIDIA A100-SXM4-40GB": 108,
    "NVIDIA A100-PCIE-40GB": 108,
}


def places(kernel: KernelView, device: int) -> int:
    """How many SMs the kernel's device has, at least as many as the run used; threads of a process
    on the CPU, where programs that wait for each other may have had more."""
    raw = kernel.subject.tables.raw
    used = kernel.subject.places_of(device)
    if not kernel.on_gpu:
        return kernel.subject.threads or used
    model = next((gpu.name for gpu in raw.gpus if gpu.device == device), "")
    return max(used, SMS.get(model.rpartition(": ")[2], 0))


def find(subject: Subject) -> Said:
    """Kernels with too few programs."""
    for kernel in subject.kernels:
        found = balance(kernel)
        if not found.launch.size:
            continue
        device = subject.tables.raw.launches[kernel.typical_launch].device
        there = places(kernel, device if kernel.on_gpu else -1)
        times, spans = subject.launch_ns[found.launch].astype(np.float64), found.span_ns
        few: list[tuple[float, float, np.ndarray]] = []  # lost time, idle part, launches
        for some in found.by_size():
            is_short = not kernel.on_gpu and float(np.median(spans[some])) < LEAST_NS
            idle = 1 - int(found.programs[some[0]]) / there
            if idle >= LEAST and not is_short:
                few.append((idle * float(spans[some].sum()), idle, some))
        part = sum(lost for lost, _, _ in few) / max(float(times.sum()), 1.0)
        if part < LEAST_PART:
            continue
        _, idle, most = max(few, key=lambda each: each[0])
        count = int(found.programs[most[0]])
        where = "SMs" if kernel.on_gpu else "threads"
        yield Finding(
            rule=RULE.name,
            kernel=kernel.label,
            sentence=f"a launch has {counted(count, 'program')} for {there} {where}: "
            f"{100 * idle:.0f} % of them have nothing to do",
            gain_ns=kernel.time_ns * part,
            advice=f"smaller blocks, for at least {there} programs; or split the sum of each "
            "program over several (split-K) and add their results",
            visits=sum(some.size for _, _, some in few),
            numbers={"programs": count, "places": there, "idle_percent": 100 * idle},
            slices=kernel.open_launch(int(found.launch[most[typical(times[most])]])),
        )


RULE = Rule(name="few-programs", about="fewer programs than SMs or threads", find=find)
