"""How often the gate is wrong, by simulation from the noise of recorded runs.

    python benchmarks/gate_noise.py noise.npz --record [--device cuda] [--processes 40]
    python benchmarks/gate_noise.py noise.npz [--slower 3] [--pairs 200] [--warps]

With `--record` fresh processes of the same code run one after the other: softmax, a matrix product
and a kernel beside, in turns. The file keeps the duration of each slice, by process, scope, warp
and launch. On a GPU nothing but Proton and its driver is needed, no torch.

The simulation, on any machine, makes pairs as benchmarks/gate.py measures them. A round is two
processes that ran one after the other, one for each side; of each the launches are drawn anew, but
for the first one, which is cold. So pairs have the noise within processes, between them, and its
drift. In every second pair one scope of the candidate is slower. The budget, half of that, is for
p50 and p90 of each scope of LEAST_TYPICAL_NS or more: of all its slices, or with `--warps`, which
takes long, of each warp of a GPU by itself.
"""

import argparse
import itertools
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from gate import BESIDE, LEAST, MOST, STATS, binomial
from gate_kernels import STEPS, reference
from rich.console import Console
from rich.table import Table

import proton
from kernels.matmul import matmul_kernel
from kernels.softmax import softmax_kernel
from proton.viewer import Run
from proton.viewer.compare import Budget, Budgets, Side, Status, check
from proton.viewer.compare.measure import sizes
from proton.viewer.compare.samples import ALL_WARPS, Group, Process, Variant

LAUNCHES = 20  # of each kernel in a process
LEAST_PROCESSES = 10  # before the time that is given ends the recording
LEAST_TYPICAL_NS = 100.0  # a few percent of less are below the clock's resolution
DRAWS = 25  # of the launches of each process
PROGRAMS, COLUMNS, ELEMENTS, BLOCK = 132, 4096, 512, 64
CPU_BLOCK = 128
LOOKS = sizes(LEAST, MOST)
PATIENCE = 300  # seconds for a process


# One process


def on_gpu(values: np.ndarray) -> Any:
    """The array in a GPU's memory, until the process ends."""
    from cuda.bindings import driver

    from proton.runtime.nvidia import cuda

    cuda.enter_primary_context(0)
    address = cuda.allocate_device(values.nbytes)
    (status,) = driver.cuMemcpyHtoD(address, values.ctypes.data, values.nbytes)
    assert int(status) == 0, status
    return OnGPU(values, address)


class OnGPU:
    """What a kernel takes as an array."""

    def __init__(self, values: np.ndarray, address: int) -> None:
        self.__cuda_array_interface__ = {
            "shape": values.shape,
            "typestr": values.dtype.str,
            "data": (address, False),
            "version": 3,
        }


def measured(device: str, out: Path) -> None:
    """Runs the kernels in turns, with records."""
    rng = np.random.default_rng(0)
    place = on_gpu if device == "cuda" else np.asarray
    block = BLOCK if device == "cuda" else CPU_BLOCK
    rows = rng.random((PROGRAMS, COLUMNS), np.float32)
    a, b = (rng.random((ELEMENTS, ELEMENTS), np.float32).astype(np.float16) for _ in range(2))
    c = np.zeros((ELEMENTS, ELEMENTS), np.float32)
    flat = rng.random(PROGRAMS * 1024, np.float32)
    x, x_out, y, y_out, z = (place(v) for v in (rows, rows.copy(), flat, flat.copy(), c))
    a, b = place(a), place(b)
    blocks = {"BLOCK_M": block, "BLOCK_N": block, "BLOCK_K": 64, "GROUP_M": 8}
    strides = [ELEMENTS, 1] * 3
    grid = ((ELEMENTS // block) ** 2,)
    with proton.profile("noise") as run:
        for _ in range(LAUNCHES):
            softmax_kernel[(PROGRAMS,)](
                x, x_out, COLUMNS, COLUMNS, PROGRAMS, COLUMNS, 1, BLOCK=COLUMNS, num_warps=8
            )
            matmul_kernel[grid](a, b, z, *[ELEMENTS] * 3, *strides, **blocks, num_warps=4)
            reference[(PROGRAMS,)](y, y_out, STEPS, BLOCK=1024)
    run.save(out)


# The file


@dataclass(frozen=True, kw_only=True)
class Recorded:
    """The durations of one group of slices of one process; `launch` says where launches begin."""

    process: int
    group: Group
    durations: np.ndarray
    launch: np.ndarray


def record(file: Path, device: str, processes: int, seconds: float) -> None:
    """Runs fresh processes, and keeps what they measured."""
    began, kept = time.monotonic(), []
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "noise.proton"
        command = [sys.executable, __file__, str(run), "--one", "--device", device]
        for number in range(-1, processes):  # the first one, which compiles, for nothing
            late = time.monotonic() - began > seconds
            if late and number >= LEAST_PROCESSES:
                break
            subprocess.run(command, check=True, timeout=PATIENCE)
            if number >= 0:
                kept += durations(Run.load(run), number)
    groups = [[r.process, r.group.variant.kernel, r.group.scope, r.group.warp] for r in kept]
    np.savez_compressed(
        file,
        groups=np.array(json.dumps(groups)),
        **{f"durations{i}": r.durations for i, r in enumerate(kept)},
        **{f"launch{i}": r.launch for i, r in enumerate(kept)},
    )
    count = len({r.process for r in kept})
    slices = sum(r.durations.size for r in kept)
    print(f"{count} processes, {slices} slices, {time.monotonic() - began:.0f} s: {file}")


def durations(run: Run, process: int) -> list[Recorded]:
    """What the statistics of a check are of, by scope and warp."""
    frame = run.frame
    frame = frame[frame["kind"] == "scope"].sort_values("launch", kind="stable")
    found = []
    for (kernel, scope, warp), rows in frame.groupby(["kernel", "scope", "warp"], observed=True):
        group = Group(Variant(str(kernel), ""), str(scope), int(warp))
        ns = rows["corrected_ns"].to_numpy().astype(np.uint32)
        launch = np.flatnonzero(np.diff(rows["launch"], prepend=-1)).astype(np.uint32)
        found.append(Recorded(process=process, group=group, durations=ns, launch=launch))
    return found


def load(file: Path) -> list[list[Recorded]]:
    """What each process measured, in the order in which they ran."""
    with np.load(file) as arrays:
        found = [
            Recorded(
                process=process,
                group=Group(Variant(kernel, ""), scope, warp),
                durations=arrays[f"durations{i}"],
                launch=arrays[f"launch{i}"],
            )
            for i, (process, kernel, scope, warp) in enumerate(json.loads(str(arrays["groups"])))
        ]
    return [list(group) for _, group in itertools.groupby(found, key=lambda r: r.process)]


# The simulation

Rows = dict[Group, dict[str, float]]


def redrawn(process: Sequence[Recorded], rng: np.random.Generator) -> Rows:
    """The statistics of a process with as many of its launches, drawn with replacement: but for the
    first one, which meets cold caches as that of each process does."""
    of_scope: dict[Group, list[np.ndarray]] = {}
    draws: dict[str, Sequence[int]] = {}
    for recorded in process:
        group = recorded.group
        parts = np.split(recorded.durations, recorded.launch[1:])
        warm = len(parts) - 1
        if group.variant.kernel not in draws:
            draws[group.variant.kernel] = rng.integers(1, len(parts), warm) if warm else []
        drawn = [parts[i] for i in (0, *draws[group.variant.kernel]) if i < len(parts)]
        of_scope.setdefault(group, []).extend(drawn)
        of_scope.setdefault(group._replace(warp=ALL_WARPS), []).extend(drawn)
    return {group: _statistics(np.concatenate(parts)) for group, parts in of_scope.items()}


def _statistics(values: np.ndarray) -> dict[str, float]:
    found = np.percentile(values, [float(stat[1:]) for stat in STATS])
    return dict(zip(STATS, found.tolist(), strict=True))


class Pool:
    """All that pairs are drawn from."""

    def __init__(self, file: Path, rng: np.random.Generator) -> None:
        self.rng = rng
        processes = load(file)
        self.rows = [[redrawn(process, rng) for _ in range(DRAWS)] for process in processes]
        typical = {
            group: np.median([rows[0][group]["p50"] for rows in self.rows])
            for group in self.rows[0][0]
        }
        self.scopes = sorted(
            group
            for group, ns in typical.items()
            if group.warp == ALL_WARPS and ns >= LEAST_TYPICAL_NS and group.scope != BESIDE
        )

    def noise(self, group: Group, stat: str) -> float:
        """The standard deviation of the logarithm of the ratio of neighbours, in percent."""
        logs = np.log([rows[0][group][stat] for rows in self.rows])
        return 100 * float(np.std(np.diff(logs)))

    def rounds(self, slower: Group | None, factor: float) -> Iterator[tuple[Process, Process]]:
        """A baseline and a candidate, again and again; a scope of the candidate is slower."""
        for number in itertools.count():
            first = int(self.rng.integers(len(self.rows) - 1))
            both = self.rng.permutation([first, first + 1])
            before, after = (self.rows[i][self.rng.integers(DRAWS)] for i in both)
            if slower is not None:
                after = {
                    group: {stat: ns * factor for stat, ns in row.items()}
                    if group._replace(warp=ALL_WARPS) == slower
                    else row
                    for group, row in after.items()
                }
            yield _process(2 * number, before), _process(2 * number + 1, after)


def _process(began: int, rows: Rows) -> Process:
    return Process(
        path="", began_unix_ns=began, machine={}, missing=(), lost=False, partial=False,
        targets={}, rows=rows, batches={},
    )  # fmt: skip


def budgets(pool: Pool, allowed: float, *, warps: bool, beside: bool) -> Budgets:
    """The same for each scope and statistic."""
    rules = [
        Budget(
            kernel=group.variant.kernel,
            scope=group.scope,
            stat=stat,
            max_regression=allowed,
            warp="each" if warps else None,
            reference=f"reference/{BESIDE}" if beside else "",
        )
        for group in pool.scopes
        for stat in STATS
    ]
    return Budgets(budgets=rules)


def end(rounds: Iterator[tuple[Process, Process]], rules: Budgets) -> tuple[Status, int]:
    """How `measure --budget` ends, and after how many rounds."""
    before: list[Process] = []
    after: list[Process] = []
    for count in LOOKS:
        for baseline, candidate in itertools.islice(rounds, count - len(before)):
            before.append(baseline)
            after.append(candidate)
        sides = Side(processes=after), Side(processes=before)
        status = check(*sides, rules, looks=len(LOOKS)).status
        if status is not Status.INCONCLUSIVE:
            break
    return status, count


def simulate(file: Path, slower: float, pairs: int, warps: bool) -> None:
    """Prints how pairs end."""
    rng = np.random.default_rng(0)
    pool = Pool(file, rng)
    print(f"{len(pool.rows)} processes; a round's noise (standard deviation of p50, p90):")
    for group in pool.scopes:
        name, noise = str(group), [f"{pool.noise(group, stat):.2f} %" for stat in STATS]
        print(f"  {name:26} {' '.join(noise)}")
    table = Table("beside", "kind", "pairs", "rounds", "pass", "regression", "inconclusive")
    for beside in (False, True):
        rules = budgets(pool, slower / 200, warps=warps, beside=beside)
        for kind in ("same", "slower"):
            found = []
            for _ in range(pairs):
                chosen = pool.scopes[rng.integers(len(pool.scopes))] if kind == "slower" else None
                found.append(end(pool.rounds(chosen, 1 + slower / 100), rules))
            ends = Counter(status for status, _ in found)
            count = sum(rounds for _, rounds in found) / len(found)
            table.add_row(
                "yes" if beside else "no", kind, str(pairs), f"{count:.1f}",
                *(_part(ends[status], pairs)
                  for status in (Status.PASS, Status.REGRESSION, Status.INCONCLUSIVE)),
            )  # fmt: skip
    Console(width=130).print(table)


def _part(count: int, total: int) -> str:
    """A part with the 95 % interval of its probability."""
    low, high = binomial(count, total)
    return f"{100 * count / total:.1f} % ({100 * low:.1f} to {100 * high:.1f})"


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", type=Path, help="what was recorded")
    parser.add_argument("--record", action="store_true", help="record it now")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu", help="where to record")
    parser.add_argument("--processes", type=int, default=40, help="to record")
    parser.add_argument("--seconds", type=float, default=120, help="begin no process after these")
    parser.add_argument("--slower", type=float, default=3.0, help="percent")
    parser.add_argument("--pairs", type=int, default=200, help="of either kind")
    parser.add_argument("--warps", action="store_true", help="a budget for each warp of a GPU")
    options = parser.parse_args()
    if options.one:
        measured(options.device, options.file)
    elif options.record:
        record(options.file, options.device, options.processes, options.seconds)
    else:
        simulate(options.file, options.slower, options.pairs, options.warps)


if __name__ == "__main__":
    main()
