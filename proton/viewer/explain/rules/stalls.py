"""The line at which warps of a kernel wait most, by samples of program counters.

The time at stake is that of the samples there which wait for the line's main reason: with other
programs on an SM less of it is idle. Where a unit is full, they wait for it as well. Where that is
the queue of accesses, so does what waits for those that the line issued.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from proton.base.errors import ProtonError
from proton.viewer.explain.finding import LEAST_PART, Finding, Said, Unrecorded
from proton.viewer.explain.rule import Rule
from proton.viewer.explain.subject import KernelView, Subject
from proton.viewer.tables.labels import variant_numbers
from proton.viewer.tables.pc_samples import BARRIER

if TYPE_CHECKING:
    import pandas as pd

# What a reason waits for, and what to try. Others are of warps that could issue, or hardly wait.
REASONS = {
    "long_scoreboard": (
        "data of global or local memory",
        "load earlier (more num_stages, or other work in between), wider, or with more programs "
        "on an SM",
    ),
    "short_scoreboard": (
        "results of shared memory or special functions",
        "fewer exchanges between threads, or other work between them and what needs them",
    ),
    "lg_throttle": (
        "room for more accesses of global memory",
        "wider accesses, fewer of them, and blocks whose last dimension lies in a row in memory: "
        "a warp whose lanes are far apart takes a piece of memory for each",
    ),
    "mio_throttle": (
        "room for more accesses of shared memory and special functions",
        "wider accesses, fewer exchanges between threads",
    ),
    "tex_throttle": ("room for more bulk accesses", "fewer and larger ones"),
    "math_pipe_throttle": ("a busy arithmetic pipe", "fewer operations of that kind"),
    "barrier": (
        "the other warps of the program",
        "fewer warps, or fewer barriers: fewer exchanges between warps",
    ),
    "warpgroup_arrive": ("the other warps of its group", "equal work in the warps of a group"),
    "gmma": ("tensor cores", "larger blocks, or work of another warp group beside its dots"),
    "membar": ("its writes to be seen", "fewer atomics and fences"),
    "no_instructions": ("instructions to arrive", "a smaller loop: fewer unrolled iterations"),
    "sleeping": ("the end of its sleep", "shorter waits for what other programs write"),
}
_FULL = "_throttle"  # how reasons of a full unit end
_QUEUES = ("lg_throttle", "mio_throttle")  # accesses of global memory pass both
_GLOBAL = re.compile(r"(@!?U?P\w+ +)?(LD|ST|RED|ATOM)(G\w*|L)?[. ]")  # ... and of local memory
BARRIERS = (
    "an mbarrier",
    "more slots between the groups of warps, or copies that begin earlier (more num_stages)",
)


def find(subject: Subject) -> Said:
    """The line of each sampled kernel that waits most."""
    variants = variant_numbers(subject.tables.kernels)
    for kernel in subject.kernels:
        if kernel.kernel.pc_samples is not None:
            variant = variants[subject.tables.kernels.index(kernel.kernel)]
            yield from _of(kernel, variant)
        elif kernel.on_gpu:
            needs = "which instructions wait, and for what"
            yield Unrecorded(
                rule=RULE.name, kernel=kernel.label, needs=needs, option="pc_sampling=1024"
            )


def _of(kernel: KernelView, variant: int) -> Said:
    tables = kernel.subject.tables
    assert kernel.kernel.pc_samples is not None, "asked before"
    if not kernel.kernel.pc_samples.rows:
        # As where another profiler's CUPTI, such as torch.profiler's, has the hardware.
        option, needs = "pc_sampling where no other profiler ran", "samples: CUPTI gave none"
        yield Unrecorded(rule=RULE.name, kernel=kernel.label, needs=needs, option=option)
        return
    try:
        table = tables.pc_samples("line,reason,awaited")
    except ProtonError as error:  # no disassembler
        # The samples are there; their lines are not without it.
        option, needs = "pc_sampling with a disassembler", f"lines that wait: {error}"
        yield Unrecorded(rule=RULE.name, kernel=kernel.label, needs=needs, option=option)
        return
    own = table[(table["kernel"] == kernel.kernel.name) & (table["variant"] == variant)]
    # Where groups of warps do different things, those that are done wait at a barrier.
    known = REASONS.keys() - ({"barrier"} if kernel.has_roles else set())
    waits = own[[reason in known for reason in own["reason"]]]
    if not len(waits) or waits["share"].iloc[0] < 100 * LEAST_PART:
        return
    top = waits.iloc[0]
    at = own[(own["file"] == top["file"]) & (own["line"] == top["line"])]
    main = top["reason"]
    same = at[at["reason"].isin(_QUEUES if main in _QUEUES else [main])]
    part = same["share"].sum() if main in _QUEUES else top["share"]
    queued = _of_accesses(own, top)["share"].sum() if main in _QUEUES else 0.0
    is_full = main.endswith(_FULL)
    gain = kernel.time_ns * (part + queued) / 100 if is_full else kernel.gain(part / 100)
    if gain < LEAST_PART * kernel.time_ns:
        return  # other programs of an SM go on meanwhile
    is_global = main in _QUEUES and _are_global(tables.pc_samples("line,reason,instruction"), same)
    what, advice = REASONS["lg_throttle" if is_global else main]
    if top["awaited"] == BARRIER:
        what, advice = BARRIERS
    made = f", made in {top['awaited']}" if top["awaited"] not in ("", BARRIER) else ""
    text = tables.raw.sources.get(top["file"], "").splitlines()
    code = text[top["line"] - 1].strip() if 1 <= top["line"] <= len(text) else "this line"
    yield Finding(
        rule=RULE.name,
        kernel=kernel.label,
        sentence=f"{at['share'].sum():.0f} % of samples are at {code}, and "
        f"{100 * part / at['share'].sum():.0f} % of these wait for {what}{made} "
        f"({', '.join(sorted(set(same['reason'])))})",
        gain_ns=gain,
        advice=advice,
        visits=int(own["samples"].sum()),
        numbers={
            "line_percent": float(at["share"].sum()),
            "reason_percent": float(part),
            "samples": float(at["samples"].sum()),
        },
        slices=kernel.open_launch(kernel.typical_launch),
        file=top["file"],
        line=int(top["line"]),
    )


def _of_accesses(samples: pd.DataFrame, top: pd.Series) -> pd.DataFrame:
    """The samples of a kernel that wait for accesses of a line: there, or for what it made."""
    file, line = samples["file"] == top["file"], top["line"]
    near, far = f"line {line}", f"{top['file'].rpartition('/')[2]}:{line}"
    made = (file & (samples["awaited"] == near)) | (~file & (samples["awaited"] == far))
    is_one = (file & (samples["line"] == line)) | made
    return samples[is_one & (samples["reason"] == "long_scoreboard")]


def _are_global(instructions: pd.DataFrame, rows: pd.DataFrame) -> bool:
    """True if most samples of rows, of one kernel and line, are of accesses of global memory."""
    found = instructions.merge(rows[["kernel", "variant", "file", "line", "reason"]])
    is_one = found["sass"].str.match(_GLOBAL)
    return bool(2 * found["samples"][is_one].sum() > found["samples"].sum())


RULE = Rule(name="stalls", about="the line at which warps wait most, by PC sampling", find=find)
