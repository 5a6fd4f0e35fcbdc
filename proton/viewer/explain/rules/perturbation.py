"""Recording that changed the kernel: fewer programs fit on an SM, or registers spill."""

from __future__ import annotations

from proton.viewer.explain.finding import Finding, Said
from proton.viewer.explain.rule import Rule
from proton.viewer.explain.subject import Subject
from proton.viewer.tables.recording_cost import OFF

LEAST_SPILLS = 8  # more than without instrumentation


def find(subject: Subject) -> Said:
    """Kernels that are others with records than without."""
    for kernel in subject.kernels:
        options = kernel.kernel.options
        pairs = {name: (options.get(name), options.get(name + OFF))
                 for name in ("blocks_per_sm", "spills", "registers")}  # fmt: skip
        known = {name: (int(a), int(b)) for name, (a, b) in pairs.items()
                 if isinstance(a, int) and isinstance(b, int)}  # fmt: skip
        fit, fit_off = known.get("blocks_per_sm", (0, 0))
        spills, spills_off = known.get("spills", (0, 0))
        said = []
        if fit < fit_off:
            said.append(f"an SM has room for {fit} of its programs, for {fit_off} without it")
        if spills >= spills_off + LEAST_SPILLS:
            said.append(f"{spills} registers spill, {spills_off} without it")
        if said:
            yield Finding(
                rule=RULE.name,
                kernel=kernel.label,
                sentence=f"recording changed this kernel, so its times are not those of the plain "
                f"one: {'; '.join(said)}",
                gain_ns=0.0,
                advice="fewer or coarser scopes, granularity='warp_group', or sample_warps",
                record="compare_run_time=True times the kernel with records and without",
                visits=len(kernel.launches),
                numbers={f"{name}{end}": pair[k] for name, pair in known.items()
                         for k, end in enumerate(("", OFF))},
            )  # fmt: skip


RULE = Rule(name="perturbation", about="recording that changed occupancy or spills", find=find)
