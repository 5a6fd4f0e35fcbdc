"""Few programs on an SM, while each of them waits: what limits their number.

A program that waits a part w of its time leaves its SM to the others; r of them keep it busy for
1 - w ** r of the time. So another program is worth the difference, as far as tensor cores are not
busy with dots meanwhile.
"""

from __future__ import annotations

import numpy as np

from proton.viewer.explain.dots import iteration_and_dots
from proton.viewer.explain.finding import LEAST_PART, Finding, Said, Unrecorded
from proton.viewer.explain.rule import Rule
from proton.viewer.explain.subject import KernelView, Subject

WAITING = ("loads", "copies")  # work in whose slices a program waits for memory
ENOUGH = 0.5  # of an SM's threads, from which more programs hide little more


def find(subject: Subject) -> Said:
    """Kernels that wait, and of which few programs fit."""
    for kernel in subject.kernels:
        fit = kernel.number("blocks_per_sm")
        chip = kernel.architecture
        if not fit or chip is None or not kernel.rows.size:
            continue
        if fit * kernel.threads >= ENOUGH * chip.sm_threads:
            continue
        waits = _waits(subject)
        if not waits.any():
            yield Unrecorded(rule=RULE.name, kernel=kernel.label, needs="what loads wait",
                             option='auto="loads"')  # fmt: skip
            continue
        said = _finding(kernel, fit, kernel.rows_where(waits))
        if said is not None:
            yield said


def _waits(subject: Subject) -> np.ndarray:
    """The scopes in which a program waits for memory."""
    of = [(s.work in WAITING and s.kind in ("slice", "wait")) or s.waits for s in subject.scopes]
    return np.array(of, bool)


def limits(kernel: KernelView) -> dict[str, int]:
    """How many programs fit on an SM by each resource."""
    chip, shared = kernel.architecture, kernel.number("shared") or 0
    registers = kernel.number("registers")
    assert chip is not None
    found = {
        "shared memory": chip.programs_per_sm(1, shared),
        "threads": chip.sm_threads // kernel.threads,
        "programs": chip.sm_programs,
    }
    if registers:
        found["registers"] = chip.programs_by_registers(registers, kernel.threads)
    return found


def _finding(kernel: KernelView, fit: int, rows: np.ndarray) -> Finding | None:
    subject = kernel.subject
    waited = subject.total(rows, subject.self_ns[rows]) / max(kernel.unit_ns(), 1.0)
    places = max(np.unique(kernel.programs.place).size, 1)
    programs = kernel.programs.row.size / max(len(kernel.launches), 1) / places  # of an SM
    busy = 1 - waited**fit
    gain = kernel.time_ns * (1 - busy / (1 - waited ** (fit + 1))) if waited < 1 else 0.0
    if gain < LEAST_PART * kernel.time_ns or programs <= fit:
        return None
    iteration, dots = iteration_and_dots(kernel, rows)
    gain = min(gain, kernel.time_ns * (1 - dots / iteration)) if dots else gain
    if gain < LEAST_PART * kernel.time_ns:
        return None
    found = limits(kernel)
    least = min(found, key=lambda name: found[name])
    chip = kernel.architecture
    assert chip is not None
    allowed = {
        "registers": f"registers: {kernel.number('registers')} a thread; {_registers(kernel, fit)} "
        "would let one more in",
        "shared memory": f"shared memory: {(kernel.number('shared') or 0) / 1024:.0f} KB a "
        f"program; {chip.most_shared(fit + 1) / 1024:.0f} would let one more in",
    }
    advice = {
        "registers": "fewer registers: smaller blocks, or maxnreg",
        "shared memory": "less shared memory: smaller blocks, or fewer num_stages",
    }
    limited = f"limited by {allowed.get(least, least)}"
    if found[least] > fit:  # the driver, which counts them, knows more
        least, limited = "", "no resource that is on record limits them"
    return Finding(
        rule=RULE.name,
        kernel=kernel.label,
        sentence=f"an SM has room for {fit} of its programs, which wait {100 * waited:.0f} % of "
        f"their time for memory; {limited}",
        gain_ns=gain,
        advice=advice.get(least, "fewer warps a program (num_warps)"),
        visits=int(rows.size),
        error_ns=kernel.error_ns(rows),
        numbers={"programs_per_sm": fit, "wait_percent": 100 * waited,
                 **{f"{name.replace(' ', '_')}_allow": most for name, most in found.items()}},
        slices=kernel.open(kernel.nearest(rows, float(subject.dur_ns[rows].mean()))),
    )  # fmt: skip


def _registers(kernel: KernelView, fit: int) -> int:
    chip = kernel.architecture
    assert chip is not None
    return chip.most_registers(fit + 1, kernel.threads)


RULE = Rule(name="occupancy", about="too few programs on an SM to hide what each waits", find=find)
