"""Kernel times of liger-kernel's ops on a GPU, forward and backward: by Proton and by Triton.

    python benchmarks/gpu_liger.py [--only REGEX] [--sizes large wide] [--repeats 4] [--rounds 1]
                                   [--processes 8] [--seconds 110] [--json FILE]

Needs torch, Triton, Nsight Compute (`ncu`), and liger-kernel without its dependencies
(`pip install --no-deps liger-kernel`, or its folder on PYTHONPATH).

The cases are those of liger_cases.py, at sizes of 128 MiB of fp32: rows of 4096 (`large`) and rows
of 16384 or 32000 (`wide`). First each case runs under both compilers, in several processes at once,
and its results and gradients are compared with torch's; what is not right is not timed. Then one
process under Proton, with Proton under Triton's name, and one under Triton run all cases under
Nsight Compute, whose times are of a kernel alone with cold caches. Both compile the same source
with the configuration that the library asks for; of a list to choose from, the middle one.

A row is a kernel: medians of all launches, us, and Proton's time over Triton's, below 1 where
Proton is faster. `#2` is the second launch of a kernel in one run of a case.
"""

import argparse
import importlib
import json
import math
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nsight
from rich.console import Console
from rich.table import Table

PROTON, TRITON = "proton", "triton"
CHECK, TIME = "check", "time"
RIGHT, LAUNCHED = "right", "launched:"
BAR, MEAN_BAR = 1.05, 0.97
ENDING_SECONDS = 10  # of a process under Nsight Compute, beyond the time when it begins no case
Times = dict[tuple[str, str], list[float]]  # us of launches by case and kernel


def keys(only: str, sizes: list[str]) -> list[str]:
    """The work, as words: a case, a dtype, sizes."""
    from liger_cases import CASES

    found = [
        f"{case.name} {str(dtype).removeprefix('torch.')} {size}"
        for size in sizes
        for case in CASES.values()
        for dtype in case.dtypes
        if size in case.timed
    ]
    return [key for key in found if re.search(only, key)]


def inner(compiler: str, step: str, work: list[str], repeats: int, until: float) -> None:
    """What a process does under one compiler; it prints what it found as it goes."""
    if compiler == PROTON:
        import proton

        proton.install_as_triton()
    import torch
    from liger_cases import CASES

    torch.set_default_device("cuda")
    torch.backends.cudnn.allow_tf32 = False
    _choose_configurations()
    launched = _note_launches()
    for key in work:
        name, dtype, sizes = key.split()
        if time.time() > until:
            break
        if step == CHECK:
            verdict = _checked(CASES[name], getattr(torch, dtype), sizes)
        else:
            verdict = _repeated(CASES[name], getattr(torch, dtype), sizes, repeats)
        print(f"\n{LAUNCHED}", json.dumps([key, verdict, launched]), flush=True)
        launched.clear()
        torch.cuda.empty_cache()


def _checked(case: Any, dtype: Any, sizes: str) -> str:
    try:
        case.compare(dtype, sizes)
    except Exception as problem:
        return f"{type(problem).__name__}: {problem}"
    return RIGHT


def _repeated(case: Any, dtype: Any, sizes: str, repeats: int) -> str:
    import torch
    from library_case import run

    op, _, leaves = case.made(dtype, sizes)
    for _ in range(repeats):
        run(op, leaves)
    torch.cuda.synchronize()
    return RIGHT


def _choose_configurations() -> None:
    """Has each kernel that is tuned take the middle of its configurations."""
    from triton.runtime.autotuner import Autotuner

    for name in [name for name in sys.modules if name.startswith("liger_kernel.ops")]:
        for kernel in vars(importlib.import_module(name)).values():
            if isinstance(kernel, Autotuner) and len(kernel.configs) > 1:
                kernel.configs = [kernel.configs[len(kernel.configs) // 2]]


def _note_launches() -> list[str]:
    """The names of kernels, in the order in which they will be launched."""
    import triton

    names: list[str] = []
    triton.knobs.runtime.launch_enter_hook.add(lambda facts: names.append(facts.get()["name"]))
    return names


def reports(printed: str) -> Iterator[tuple[str, str, list[str]]]:
    """What a process of `inner` said: work, verdict, names of kernels in order."""
    for line in printed.splitlines():
        if line.startswith(LAUNCHED):
            yield tuple(json.loads(line.removeprefix(LAUNCHED)))


def checked(
    work: list[str], processes: int, until: float
) -> tuple[dict[str, dict[str, str]], set[str]]:
    """By work and compiler what became of it, and the names of kernels. Fills the disk caches."""
    started = {
        (compiler, part): subprocess.Popen(
            command(compiler, CHECK, work[part::processes], 1, until),
            stdout=subprocess.PIPE,
            text=True,
        )
        for part in range(processes)
        for compiler in (PROTON, TRITON)
    }
    verdicts: dict[str, dict[str, str]] = {key: {} for key in work}
    names = set[str]()
    for (compiler, _), process in started.items():
        for key, verdict, launched in reports(process.communicate()[0]):
            verdicts[key][compiler] = verdict
            names.update(launched)
    return verdicts, names


def command(compiler: str, step: str, work: list[str], repeats: int, until: float) -> list[str]:
    return [sys.executable, __file__, *_arguments(compiler, step, work, repeats, until)]


def _arguments(compiler: str, step: str, work: list[str], repeats: int, until: float) -> list[str]:
    return ["--inner", json.dumps([compiler, step, work, repeats, until])]


def timed(compiler: str, work: list[str], names: set[str], repeats: int, until: float) -> Times:
    """us of each launch, in a process of its own."""
    by_kernel, printed = nsight.kernel_times(
        __file__,
        *_arguments(compiler, TIME, work, repeats, until),
        names="|".join(sorted(names)),
        seconds=max(until - time.time(), 0) + ENDING_SECONDS,
    )
    left = {name: iter(times) for name, times in by_kernel.items()}
    found: Times = {}
    for key, _, launched in reports(printed):
        each = len(launched) // repeats
        for number, name in enumerate(launched):
            before = launched[number - number % each : number].count(name)
            row = (key, name + (f" #{before + 1}" if before else ""))
            found.setdefault(row, []).append(next(left.get(name, iter(())), math.nan))
    return found


def comparison(times: dict[str, Times]) -> list[dict[str, Any]]:
    """A row for each kernel that both have run, and have times of."""
    rows = []
    for row, launches in times[PROTON].items():
        if any(map(math.isnan, [*launches, *times[TRITON].get(row, [math.nan])])):
            continue
        ours, theirs = (statistics.median(times[compiler][row]) for compiler in (PROTON, TRITON))
        rows.append({"work": row[0], "kernel": row[1], PROTON: ours, TRITON: theirs})
    return rows


def mean(rows: list[dict[str, Any]]) -> float:
    """The geometric mean of the ratios."""
    return statistics.geometric_mean(row[PROTON] / row[TRITON] for row in rows)


def shown(rows: list[dict[str, Any]], console: Console) -> None:
    table = Table("case", "kernel", "Proton, us", "Triton, us", "ratio")
    for row in rows:
        ratio = row[PROTON] / row[TRITON]
        mark = " *" if ratio > BAR else ""
        cells = (f"{row[PROTON]:.1f}", f"{row[TRITON]:.1f}", f"{ratio:.3f}{mark}")
        table.add_row(row["work"], row["kernel"], *cells)
    console.print(table)
    for words in sorted({tuple(row["work"].split()[1:]) for row in rows}):
        some = [row for row in rows if tuple(row["work"].split()[1:]) == words]
        console.print(f"{' '.join(words)}: geometric mean {mean(some):.3f} of {len(some)}")
    above = sum(row[PROTON] / row[TRITON] > BAR for row in rows)
    console.print(
        f"all: geometric mean {mean(rows):.3f} of {len(rows)} (bar {MEAN_BAR}), "
        f"{above} above {BAR} (bar 0)"
    )


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default="", help="work whose words match, as 'norm|large'")
    parser.add_argument("--sizes", nargs="+", default=["large", "wide"])
    parser.add_argument("--repeats", type=int, default=4, help="runs of a case in a process")
    parser.add_argument(
        "--rounds", type=int, default=1, help="processes of each compiler, in turns"
    )
    parser.add_argument("--processes", type=int, default=8, help="of each compiler, for the checks")
    parser.add_argument("--seconds", type=float, default=110, help="what is late is left out")
    parser.add_argument("--json", type=Path, default=None)
    parser.add_argument("--inner", type=json.loads, default=None, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.inner:
        inner(*given.inner)
        return 0
    console = Console(width=130)
    begin = time.time()
    end = begin + given.seconds
    with tempfile.TemporaryDirectory() as cache:
        os.environ |= {"PROTON_CACHE_DIR": cache, "TRITON_CACHE_DIR": f"{cache}/triton"}
        work = keys(given.only, given.sizes)
        verdicts, names = checked(work, given.processes, begin + 0.5 * given.seconds)
        right = [key for key in work if set(verdicts[key].values()) == {RIGHT}]
        right = [key for key in right if len(verdicts[key]) == len((PROTON, TRITON))]
        for key in work:
            for compiler in () if key in right else (PROTON, TRITON):
                console.print(
                    f"{key}, {compiler}: {verdicts[key].get(compiler, 'no answer')}"[:400]
                )
        console.print(f"{len(right)} of {len(work)} right, {time.time() - begin:.0f} s")
        times: dict[str, Times] = {PROTON: {}, TRITON: {}}
        turns = [TRITON, PROTON] * given.rounds
        for turn, compiler in enumerate(turns):
            until = time.time() + (end - ENDING_SECONDS - time.time()) / (len(turns) - turn)
            found = timed(compiler, right, names, given.repeats, until)
            for row, launches in found.items():
                times[compiler].setdefault(row, []).extend(launches)
            console.print(f"{compiler}: {len(found)} kernels, {time.time() - begin:.0f} s")
    rows = comparison(times)
    lacking = len(times[PROTON].keys() | times[TRITON].keys()) - len(rows)
    console.print(f"{lacking} kernels lack times of one or both; {len(right)} cases were to be run")
    shown(rows, console)
    if given.json:
        given.json.write_text(json.dumps({"rows": rows, "verdicts": verdicts}, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
