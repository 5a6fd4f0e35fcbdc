"""How often the gate is wrong: real runs of a CPU kernel, in fresh processes, on this machine.

    python benchmarks/gate.py pairs.jsonl --pairs 20 [--minutes 30] [--plain]
    python benchmarks/gate.py --report pairs.jsonl [more.jsonl ...]

Each pair is what a CI job does: two versions of a kernel, measured in turns, checked as the runs
come in, until the check can tell or there are MOST rounds. For each pair of equal code there is one
whose candidate has one scope 10 % slower; both have the same baseline processes. The budget is 5 %
for p50 and p90 of both scopes. Without `--plain`, relative to a kernel that is measured beside.

The file gets a line a pair: how both checks ended after how many rounds, the machine's load, and
what each process measured. A file that has lines already is gone on with.
"""

import argparse
import json
import math
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from gate_kernels import STEPS

from proton.viewer.compare import Budget, Budgets, Side, Status, check
from proton.viewer.compare.measure import MeasuredProgram, gather, sizes, warm_up

SLOWER = 110  # steps, of STEPS
LEAST, MOST = 10, 40
SCOPES, STATS, BESIDE = ("iterate", "tail"), ("p50", "p90"), "beside"


def program(steps: int) -> MeasuredProgram:
    """A process of that many steps."""
    workload = Path(__file__).with_name("gate_kernels.py")
    words = [sys.executable, str(workload), str(steps), "{run}"]
    return MeasuredProgram(words=words, folder=Path.cwd())


def budgets(plain: bool) -> Budgets:
    """5 % for each scope and statistic."""
    reference = "" if plain else f"reference/{BESIDE}"
    rules = [
        Budget(kernel="work", scope=scope, stat=stat, max_regression=0.05, reference=reference)
        for scope in SCOPES
        for stat in STATS
    ]
    return Budgets(budgets=rules)


@dataclass(frozen=True, kw_only=True)
class Pair:
    """How the check of one kind of pair ended, and after how many rounds."""

    status: Status
    rounds: int


KINDS = ("same", "slower")


def one_pair(out: Path, rules: Budgets) -> tuple[dict[str, Pair], dict[str, Side]]:
    """Measures until both checks can tell, or there are no more rounds; gives the sides as well."""
    programs = {
        "baseline": program(STEPS),
        "same": program(STEPS),
        "slower": program(SLOWER),
    }
    sides: dict[str, Side] = {}
    ends: dict[str, Pair] = {}
    begun, looks = 0, sizes(LEAST, MOST)
    for rounds in looks:
        gather(programs, out, range(begun, rounds))
        begun = rounds
        for name in programs:
            sides[name] = Side.load([out / name], known=sides.get(name))
        for kind in [kind for kind in KINDS if kind not in ends]:
            status = check(sides[kind], sides["baseline"], rules, looks=len(looks)).status
            if status is not Status.INCONCLUSIVE or rounds == MOST:
                ends[kind] = Pair(status=status, rounds=rounds)
                del programs[kind]
        if len(ends) == len(KINDS):
            break
    return ends, sides


def measured(sides: Mapping[str, Side]) -> dict[str, object]:
    """What each process of a pair measured: ns by side, scope and statistic."""
    return {
        name: {
            f"{group.scope} {stat}": side.values(group, stat).tolist()
            for group in side.groups
            if group.scope in (*SCOPES, BESIDE)
            for stat in STATS
        }
        for name, side in sides.items()
    }


def measure(file: Path, *, pairs: int, minutes: float, plain: bool) -> None:
    """Adds pairs to the file until it has as many."""
    began, rules = time.monotonic(), budgets(plain)
    there = len(file.read_text().splitlines()) if file.exists() else 0
    with tempfile.TemporaryDirectory() as folder:  # once: the cache of the disk outlives a pair
        warm_up({str(steps): program(steps) for steps in (STEPS, SLOWER)}, Path(folder))
    for number in range(there, pairs):
        if time.monotonic() - began > 60 * minutes:
            break
        with tempfile.TemporaryDirectory() as folder:
            ends, sides = one_pair(Path(folder), rules)
        line = {
            "pair": number,
            "unix": round(time.time()),
            "load": os.getloadavg()[0],
            **{kind: [pair.status.word, pair.rounds] for kind, pair in ends.items()},
            "measured": measured(sides),
        }
        with open(file, "a") as out:
            out.write(json.dumps(line) + "\n")


def report(files: Sequence[Path]) -> None:
    """What the pairs of some files say."""
    pairs = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    loads = sorted(pair["load"] for pair in pairs)
    print(f"load average {loads[0]:.1f} to {loads[-1]:.1f}, median {loads[len(loads) // 2]:.1f}")
    for kind in KINDS:
        ends = Counter(pair[kind][0] for pair in pairs)
        rounds = sum(pair[kind][1] for pair in pairs) / len(pairs)
        print(f"{kind}: {len(pairs)} pairs, {rounds:.1f} rounds a pair")
        for status in (Status.PASS, Status.REGRESSION, Status.INCONCLUSIVE):
            count = ends[status.word]
            low, high = binomial(count, len(pairs))
            print(f"  {status.word:13} {count:4}  {100 * count / len(pairs):5.1f} %  "
                  f"({100 * low:.1f} to {100 * high:.1f} %)")  # fmt: skip


def binomial(count: int, total: int) -> tuple[float, float]:
    """Wilson's 95 % interval of a probability."""
    if not total:
        return 0.0, 1.0
    z, part = 1.96, count / total
    middle = part + z * z / (2 * total)
    reach = z * math.sqrt(part * (1 - part) / total + z * z / (4 * total * total))
    scale = 1 + z * z / total
    return max(0.0, (middle - reach) / scale), min(1.0, (middle + reach) / scale)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", type=Path, nargs="+", help="where the pairs are kept")
    parser.add_argument("--pairs", type=int, default=20, help="of either kind, in the file")
    parser.add_argument("--minutes", type=float, default=math.inf, help="begin no pair after these")
    parser.add_argument("--plain", action="store_true", help="without the kernel beside")
    parser.add_argument("--report", action="store_true", help="measure nothing, read all files")
    options = parser.parse_args()
    if not options.report:
        measure(options.file[0], pairs=options.pairs, minutes=options.minutes, plain=options.plain)
    report(options.file)


if __name__ == "__main__":
    main()
