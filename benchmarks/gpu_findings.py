"""What fixes of known faults gain, beside what the findings of `explain` say that they would.

    python benchmarks/gpu_findings.py [--device cuda] [--rounds 3] [--only NAME ...] [--json FILE]
                                      [--runs FOLDER]

Of each fault of findings_cases.py the kernel with it is profiled. The finding that names the fault
has a rank and an estimate, in percent of the run. Then the kernel with the fault and the one
without take turns without records (but where records are the fault): medians of the kernel's own
time by CUPTI, on the CPU of the launch. The factor is the estimate over what the fix gained.
"""

import argparse
import datetime
import functools
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from findings_cases import CASES, Arrays, Case, Side

import proton
from proton.viewer import Run

LAUNCHES = 4  # that are profiled, behind a first one
ROUND_MS = 4  # how long the launches of one measurement take
MOST_LAUNCHES = 50  # of one measurement
COMPARED = 1 << 20  # elements of results
FIRST = 5  # findings of a run that are kept
COLUMNS: tuple[tuple[str, str, int | None], ...] = (
    ("fault", "fault", None), ("rule", "rule", None), ("rank", "rank", None),
    ("faulty_us", "us", 1), ("fixed_us", "fixed", 1), ("estimated", "estimated, %", 0),
    ("measured", "measured, %", 0), ("factor", "factor", 2),
)  # fmt: skip
Launch = Callable[[], Any]


class OnCPU:
    """Arrays of numpy."""

    device = "cpu"

    def __init__(self) -> None:
        self.places = int(os.environ.get("PROTON_NUM_THREADS", len(os.sched_getaffinity(0))))
        self.numbers = np.random.default_rng(0)

    def random(self, *shape: int, dtype: str = "float32") -> Any:
        return self.numbers.random(shape, np.float32).astype(dtype)

    def of(self, values: np.ndarray) -> Any:
        return values

    def numpy(self, array: Any) -> np.ndarray:
        return np.asarray(array)

    def timer(self, case: Case, launch: Launch) -> Callable[[], float]:
        """us of a call: the median of some."""

        def once() -> float:
            begin = time.perf_counter()
            launch()
            return (time.perf_counter() - begin) * 1e6

        count = repeats(once() / 1e3)
        return lambda: statistics.median(once() for _ in range(count))

    def fixed(self, case: Case, side: Side) -> Launch:
        return side


class OnGPU:
    """Arrays of torch, on the current GPU."""

    device = "cuda"

    def __init__(self) -> None:
        import torch

        self.torch = torch
        self.places = torch.cuda.get_device_properties(0).multi_processor_count
        torch.manual_seed(0)

    def random(self, *shape: int, dtype: str = "float32") -> Any:
        return self.torch.rand(shape, device="cuda", dtype=getattr(self.torch, dtype))

    def of(self, values: np.ndarray) -> Any:
        return self.torch.from_numpy(values).cuda()

    def numpy(self, array: Any) -> np.ndarray:
        return np.asarray(array.cpu().numpy())

    def timer(self, case: Case, launch: Launch) -> Callable[[], float]:
        """us of a call: of its kernel, or with what lies between its launches."""
        import in_turns

        count = repeats(in_turns.milliseconds(launch, 2))
        measure = in_turns.mean_us if case.graph else in_turns.kernel_us
        return functools.partial(measure, launch, count)

    def fixed(self, case: Case, side: Side) -> Launch:
        """The side without the fault, as a graph where that is the fix."""
        if not case.graph:
            return side
        graph = self.torch.cuda.CUDAGraph()
        with self.torch.cuda.graph(graph):
            side()
        return graph.replay


def repeats(ms: float) -> int:
    """How many calls one measurement is of."""
    return max(3, min(MOST_LAUNCHES, round(ROUND_MS / max(ms, 1e-3))))


def said(run: Run, case: Case) -> dict[str, Any]:
    """What a run's findings say of a fault: the rank of the one that names it, its estimate in
    percent, and the first of all. A slow first launch is no fault of a kernel's."""
    found = run.findings
    ranked = [finding for finding in found if not finding.happens_once]
    first = [f"{finding.rule} {found.share(finding):.0f} %" for finding in ranked[:FIRST]]
    for rank, each in enumerate(ranked, 1):
        if each.rule == case.rule and case.says in each.sentence:
            return {"findings": first, "rank": rank, "estimated": found.share(each),
                    "sentence": each.sentence}  # fmt: skip
    return {"findings": first}


def profiled(case: Case, side: Side) -> Run:
    """A run of the side with the fault."""
    session = proton.start("findings", **case.session)
    for _ in range(LAUNCHES + 1):
        side()
    return proton.finalize(session)


def times(case: Case, arrays: Any, sides: list[Launch], rounds: int) -> list[float]:
    """us of each side, in turns: the median of rounds."""
    session = proton.start("times") if case.recorded else None
    for side in sides:
        side()
    timers = [arrays.timer(case, side) for side in sides]
    taken: list[list[float]] = [[] for _ in sides]
    for number in range(rounds):
        for which in (0, 1) if number % 2 == 0 else (1, 0):
            taken[which].append(timers[which]())
    if session is not None:
        proton.finalize(session)
    return [statistics.median(each) for each in taken]


def measured(name: str, arrays: Arrays | Any, rounds: int, runs: str) -> dict[str, Any]:
    """The row of a fault; the run of the kernel with it is kept in a folder, if one is named."""
    case = CASES[name]
    faulty, fixed = case.sides(arrays)
    faulty(), fixed()
    results = [arrays.numpy(side.out.ravel()[:COMPARED]) for side in (faulty, fixed)]
    results = [result.astype(np.float64) for result in results]
    assert np.isfinite(results[0]).all()
    np.testing.assert_allclose(*results, rtol=1e-2, atol=1e-2 * np.abs(results[0]).max())
    run = profiled(case, faulty)
    if runs:
        run.save(Path(runs, re.sub(r"\W+", "_", name) + ".proton"))
    row = {"fault": name, "rule": case.rule} | said(run, case)
    before, after = times(case, arrays, [faulty, arrays.fixed(case, fixed)], rounds)
    row |= {"faulty_us": before, "fixed_us": after, "measured": 100 * (1 - after / before)}
    if "estimated" in row and row["measured"] > 0:
        row["factor"] = row["estimated"] / row["measured"]
    return row


def line(cells: Sequence[str]) -> str:
    """Cells at 80 columns."""
    widths = (24, 17, 4, 9, 9, 5, 5, 7)
    aligned = zip(cells, "<<>>>>>>", widths, strict=True)
    return "".join(f"{cell:{align}{width}}" for cell, align, width in aligned)


def shown(row: dict[str, Any]) -> str:
    """A row of the table."""
    cells = []
    for key, _, digits in COLUMNS:
        value = row.get(key, "-")
        cells.append(value if isinstance(value, str) else f"{value:.{digits or 0}f}")
    return line(cells)


def document(rows: list[dict[str, Any]], given: argparse.Namespace) -> dict[str, Any]:
    """The rows in the form of benchmarks/results (scripts/docs_results.py)."""
    words = ["git", "rev-parse", "--short=8", "HEAD"]
    has_git = shutil.which("git") is not None
    commit = subprocess.run(words, capture_output=True, text=True).stdout if has_git else ""
    machine = "one NVIDIA H200" if given.device == "cuda" else "a CPU"
    if given.device == "cuda":
        import torch

        machine = f"one {torch.cuda.get_device_name()}"
    command = f"python benchmarks/gpu_findings.py --rounds {given.rounds}"
    columns = [{"key": key, "name": name} | ({} if digits is None else {"digits": digits})
               for key, name, digits in COLUMNS]  # fmt: skip
    source = {"command": command, "commit": commit.strip() or None,
              "date": datetime.date.today().isoformat(), "note": ""}  # fmt: skip
    return {
        "question": "What do fixes gain, and what do findings say that they would?",
        "machine": machine,
        "columns": columns,
        "sources": {"findings": source},
        "rows": [{"source": "findings"} | row for row in rows],
    }


def main() -> int:
    """Prints the table; the exit status says whether all cases ran."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--device", default="cuda", choices=["cuda", "cpu"])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", nargs="*", default=list(CASES), choices=CASES)
    parser.add_argument("--json", default="")
    parser.add_argument("--runs", default="", help="where profiled runs are kept")
    given = parser.parse_args()
    if given.runs:
        Path(given.runs).mkdir(parents=True, exist_ok=True)
    arrays = OnGPU() if given.device == "cuda" else OnCPU()
    print(line(("fault", "rule", "rank", "us", "fixed", "est%", "gain", "factor")))
    rows, failed = [], False
    for name in given.only:
        if given.device not in CASES[name].devices:
            continue
        try:
            rows.append(measured(name, arrays, given.rounds, given.runs))
        except Exception:  # the other cases are worth the GPU's time
            failed = True
            print(f"{name:24}failed", flush=True)
            traceback.print_exc()
            continue
        print(shown(rows[-1]), flush=True)
    if given.json:
        with open(given.json, "w", encoding="utf-8") as file:
            json.dump(document(rows, given), file, indent=1)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
