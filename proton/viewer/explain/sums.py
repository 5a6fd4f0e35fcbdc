"""Findings from a Hatchet file of Triton's Proton, which has a kernel's launches as sums: their
number, their time, and the bytes and operations that scopes and launch hooks say.

    ROOT > layer > matmul    40 launches, 4 ms, 1e12 flops16, 4e9 bytes

It holds neither when launches ran nor what is inside of them: what rules need of that is said.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from proton.base.symbols import shortened
from proton.base.units import duration
from proton.viewer.explain.explanation import TOP, Explanation, KernelTime
from proton.viewer.explain.finding import ALL, LEAST_PART, OF_TRITON, Finding, Unrecorded
from proton.viewer.explain.rules import launch_gaps, utilization
from proton.viewer.explain.rules.utilization import GOOD, LEAST_NS, LOW
from proton.viewer.tables.metrics import COUNT, TIME, HatchetFile, MetricNode
from proton.viewer.tables.rates import RATES, most

HOST_NS = 10_000.0  # of Triton's host for a launch: 10.5 us (benchmarks/results, an H200)
LEAST_LAUNCHES = 10  # that repeat
OF_WORK = 'hook="triton" with launch_metadata, or scope(name, {"bytes": ..., "flops16": ...})'


@dataclass
class _Kernel:
    """The frames of one name: those above them, with the time of each, too."""

    name: str
    launches: float = 0.0
    time_ns: float = 0.0
    above: dict[str, float] = field(default_factory=dict)


@dataclass
class _Work:
    """What the frames of one name did on a device."""

    name: str
    device: str
    launches: float = 0.0
    time_ns: float = 0.0
    of: dict[str, float] = field(default_factory=dict)  # by metric


def explain_sums(file: HatchetFile) -> Explanation:
    """What a file says of its kernels."""
    kernels = sorted(_kernels(file.root), key=lambda kernel: -kernel.time_ns)
    time_ns = sum(kernel.time_ns for kernel in kernels)
    findings, unrecorded, warnings = [], [], []
    work = _work(file.root)
    for each in work:
        used, unknown = _used(each, file.devices.get(each.device, {}))
        warnings += [f"{shortened(each.name)}: the most that {each.device or 'its device'} does of "
                     f"{', '.join(unknown)} is not known"] if unknown else []  # fmt: skip
        is_long = each.time_ns >= LEAST_NS * max(each.launches, 1.0)
        if used and is_long and max(used.values()) < LOW:
            findings.append(_idle(each, used))
    for kernel in kernels:
        if (
            kernel.launches >= LEAST_LAUNCHES
            and kernel.time_ns < HOST_NS * kernel.launches
            and kernel.time_ns >= LEAST_PART * time_ns
        ):
            findings.append(_short(kernel))
    if kernels:
        unrecorded = list(OF_TRITON)
        if not work:
            needs = "how busy the chip is"
            unrecorded.append(Unrecorded(rule=utilization.RULE.name, kernel=ALL, needs=needs,
                                         option=OF_WORK))  # fmt: skip
    elif others := sorted(file.root.recorded() - {COUNT}):
        warnings.append(f"no frame has {TIME}; there is {', '.join(others)}")
    return Explanation(
        run=file.name,
        time_ns=time_ns,
        kernels=tuple(map(_time, kernels)),
        findings=tuple(sorted(findings, key=lambda f: -f.gain_ns)),
        unrecorded=tuple(unrecorded),
        warnings=tuple(warnings),
    )


def _kernels(root: MetricNode) -> list[_Kernel]:
    found: dict[str, _Kernel] = {}
    for path, node in _frames(root, ()):
        if node.is_kernel:
            kernel = found.setdefault(node.name, _Kernel(node.name))
            kernel.launches += node.metrics[COUNT]
            kernel.time_ns += node.metrics[TIME]
            above = "/".join(path)
            kernel.above[above] = kernel.above.get(above, 0.0) + node.metrics[TIME]
    return list(found.values())


def _frames(
    node: MetricNode, path: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], MetricNode]]:
    """Each frame with the names above it, without the root's."""
    for inner in node.inner:
        yield path, inner
        yield from _frames(inner, (*path, inner.name))


def _work(root: MetricNode) -> list[_Work]:
    """Work, beside the time in which it was done: of a kernel its own, of a scope that of all the
    kernels inside."""
    found: dict[tuple[str, str], _Work] = {}
    for _, node in _frames(root, ()):
        metrics = {name: node.metrics[name] for name in RATES if node.metrics.get(name)}
        inside = [node] if node.is_kernel else [each for each in node.all() if each.is_kernel]
        devices = {kernel.device for kernel in inside}
        if not metrics or len(devices) != 1:  # of several the parts of each are not known
            continue
        device = devices.pop()
        of = found.setdefault((node.name, device), _Work(node.name, device))
        of.launches += sum(kernel.metrics[COUNT] for kernel in inside)
        of.time_ns += sum(kernel.metrics[TIME] for kernel in inside)
        for name, value in metrics.items():
            of.of[name] = of.of.get(name, 0.0) + value
    return list(found.values())


def _used(work: _Work, device: Mapping[str, float]) -> tuple[dict[str, float], list[str]]:
    """Percents of what the device does at most, by the rate's name; metrics of which that is not
    known."""
    used, unknown = {}, []
    for metric, value in work.of.items():
        limit = most(metric, device)
        if limit:
            used[RATES[metric][0]] = 100 * value / (work.time_ns / 1e9) / limit
        else:
            unknown.append(metric)
    return used, unknown


def _idle(work: _Work, used: dict[str, float]) -> Finding:
    return Finding(
        rule=utilization.RULE.name,
        kernel=work.name,
        sentence=utilization.sentence(used),
        gain_ns=work.time_ns * max(0.0, 1 - max(used.values()) / GOOD),
        advice=utilization.ADVICE,
        record="scopes inside of the kernel, which say what it waits for",
        visits=int(work.launches),
        numbers=utilization.numbers(used),
    )


def _short(kernel: _Kernel) -> Finding:
    mean = kernel.time_ns / kernel.launches
    return Finding(
        rule=launch_gaps.RULE.name,
        kernel=kernel.name,
        sentence=f"{kernel.launches:.0f} launches take {duration(mean)} each, less than the "
        f"{duration(HOST_NS)} of the host for one: the GPU may wait for the host",
        gain_ns=0.0,
        advice="a CUDA graph, or fewer launches with more work",
        record='data="trace", which has the pauses between launches',
        visits=int(kernel.launches),
        between_launches=True,
        numbers={"launch_ns": mean, "host_ns": HOST_NS},
    )


def _time(kernel: _Kernel) -> KernelTime:
    order = sorted(kernel.above.items(), key=lambda item: -item[1])[:TOP]
    return KernelTime(
        kernel=kernel.name,
        launches=int(kernel.launches),
        time_ns=kernel.time_ns,
        scopes=tuple((f"in {path}", 100 * ns / kernel.time_ns) for path, ns in order if path),
    )
