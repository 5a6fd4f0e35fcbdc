"""Launches whose last wave of programs leaves most places without work."""

from __future__ import annotations

import numpy as np

from proton.viewer.explain.balance import balance
from proton.viewer.explain.finding import LEAST_PART, Finding, Said
from proton.viewer.explain.rule import Rule
from proton.viewer.explain.subject import Subject
from proton.viewer.tables.first_view import typical

LEAST = 0.1  # of a launch


def find(subject: Subject) -> Said:
    """Kernels of equal programs that do not come in whole waves."""
    for kernel in subject.kernels:
        found = balance(kernel)
        times = subject.launch_ns[found.launch].astype(np.float64)
        tails: list[tuple[float, np.ndarray]] = []  # lost time, launches
        for size in found.by_size():
            some = size[found.waves[size] > 1]
            part = float(np.median(found.tail[some])) if some.size else 0.0
            if part >= LEAST:
                tails.append((part * float(found.span_ns[some].sum()), some))
        lost = sum(each for each, _ in tails) / max(float(times.sum()), 1.0)
        if lost < LEAST_PART:
            continue
        some = max(tails, key=lambda each: each[0])[1]
        part = float(np.median(found.tail[some] * found.span_ns[some] / np.maximum(times[some], 1)))
        waves = float(np.median(found.waves[some]))
        count, most = (int(np.median(column[some])) for column in (found.programs, found.most))
        places = int(np.median(found.places[some]))
        where = "SMs" if kernel.on_gpu else "threads"
        yield Finding(
            rule=RULE.name,
            kernel=kernel.label,
            sentence=f"{count} programs on {places} {where} x {most} are {waves:.2f} waves: in the "
            f"last one {100 * (1 - waves % 1):.0f} % of the places are idle, "
            f"{100 * part:.0f} % of a launch",
            gain_ns=kernel.time_ns * lost,
            advice=f"blocks of another size, for a whole number of {places * most} programs a "
            f"wave; or {places * most} persistent programs that share the tiles",
            visits=int(sum(found.programs[each].sum() for _, each in tails)),
            numbers={"waves": waves, "idle_percent": 100 * part, "programs": count,
                     "places": places, "at_once": most},
            slices=kernel.open_launch(int(found.launch[some[typical(times[some])]])),
        )  # fmt: skip


RULE = Rule(name="tail", about="a last wave that leaves places idle", find=find)
