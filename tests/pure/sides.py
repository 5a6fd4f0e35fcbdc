"""Sides of a comparison from chosen durations: a run a process, a launch, some slices a scope."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import synthetic
from synthetic import ORIGIN_NS, Record, Written, pack_launch, ticks

from proton.trace.model import Kernel, RawRun, Scope
from proton.viewer import Run

SECOND = 1_000_000_000
ROOM_NS = 1_000_000  # for each slice

Scopes = Mapping[str, Sequence[int]]  # durations in ns of a scope's slices


def kernel(name: str, scopes: Scopes, signature: str, **options: object) -> Kernel:
    """A kernel that has these scopes."""
    table = tuple(Scope(name=s, path=s, file=f"{name}.py", line=i) for i, s in enumerate(scopes, 1))
    made = synthetic.kernel(name=name, table=table, **options)
    return replace(made, key=f"{name} {signature}", options={"signature": signature})


def raw_run(
    kernels: Mapping[tuple[str, str], Scopes],
    began: int = 0,
    written: int | None = None,
    state: int = 2,
) -> RawRun:
    """A run of one launch a kernel, which (name, signature) tells; its slices follow each other.

    `written` is how many records each program says that it wrote, if not as many as it kept.
    """
    made, launches = [], []
    for number, ((name, signature), scopes) in enumerate(kernels.items()):
        made.append(kernel(name, scopes, signature))
        times = [(s, ns) for s, all_ in enumerate(scopes.values()) for ns in all_]
        records = [
            Record(ticks(i * ROOM_NS), ticks(i * ROOM_NS + ns), scope)
            for i, (scope, ns) in enumerate(times)
        ]
        table = [] if written is None else [written]
        program = Written([records], state=state, table=table)
        host = (ORIGIN_NS, ORIGIN_NS + 1000)
        launch = pack_launch(made[-1], (1, 1, 1), max(len(records), 1), [program], host=host)
        launches.append(replace(launch, kernel=number))
    raw = synthetic.run(made, launches)
    raw.clock = synthetic.clock()  # without costs, so that durations are as chosen
    raw.origin_unix_ns += began * SECOND
    return raw


def folder(path: Path, runs: Sequence[RawRun]) -> Path:
    """The runs as files."""
    path.mkdir(parents=True)
    for number, raw in enumerate(runs):
        Run(raw).save(path / f"{number:04}.proton")
    return path
