"""How often the gate is wrong: real runs of a CPU kernel, in fresh processes, on this machine.

    python benchmarks/gate.py --pairs 20 [--minutes 30] [--plain]

Each pair is what a CI job does: two versions of a kernel, measured in turns, checked as the runs
come in, until the check can tell or there are MOST rounds. For each pair of equal code there is one
whose candidate has one scope 10 % slower; both have the same baseline processes. The budget is 5 %
for p50 and p90 of both scopes. Without `--plain`, relative to a kernel that is measured beside.
"""

import argparse
import math
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from proton.viewer.compare import Budget, Budgets, Side, Status, check
from proton.viewer.compare.measure import Program, gather, sizes, warm_up

STEPS, SLOWER = 100, 110
LEAST, MOST = 10, 40
SCOPES, STATS = ("iterate", "tail"), ("p50", "p90")
LAUNCHES, ELEMENTS, BLOCK = 50, 32 * 1024, 1024


def workload(steps: int, out: str) -> None:
    """What one process measures: a kernel with two scopes of work, and another one beside."""
    import numpy as np
    from gate_kernels import reference, work

    import proton

    x = np.random.default_rng(0).random(ELEMENTS, np.float32)
    y = np.empty_like(x)
    grid = (ELEMENTS // BLOCK,)
    with proton.profile("gate", placement="program") as run:
        for _ in range(LAUNCHES):
            work[grid](x, y, steps, STEPS, BLOCK=BLOCK)
            reference[grid](x, y, STEPS, BLOCK=BLOCK)
    run.save(out)


def program(steps: int) -> Program:
    """A process of that many steps."""
    words = [sys.executable, __file__, "--workload", str(steps), "{run}"]
    return Program(words=words, folder=Path.cwd())


def budgets(plain: bool) -> Budgets:
    """5 % for each scope and statistic."""
    reference = "" if plain else "reference/beside"
    rules = [
        Budget(kernel="work", scope=scope, stat=stat, max_regression=0.05, reference=reference)
        for scope in SCOPES
        for stat in STATS
    ]
    return Budgets(budgets=rules)


class Pairs:
    """The pairs of one kind, and how their checks ended."""

    def __init__(self, name: str) -> None:
        self.name, self.ends, self.rounds = name, Counter[Status](), 0

    def show(self) -> None:
        """A line of what was seen."""
        total = sum(self.ends.values())
        print(f"{self.name}: {total} pairs, {self.rounds / max(total, 1):.1f} rounds a pair")
        for status in (Status.PASS, Status.REGRESSION, Status.INCONCLUSIVE):
            low, high = binomial(self.ends[status], total)
            part = 100 * self.ends[status] / max(total, 1)
            print(f"  {status.word:13} {self.ends[status]:4}  {part:5.1f} %  "
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


def one_pair(out: Path, rules: Budgets, same: Pairs, slower: Pairs) -> None:
    """Measures until both checks can tell, or there are no more rounds."""
    programs = {
        "baseline": program(STEPS),
        "same": program(STEPS),
        "slower": program(SLOWER),
    }
    warm_up(programs, out)
    begun, open_, looks = 0, [same, slower], sizes(LEAST, MOST)
    for rounds in looks:
        gather(programs, out, range(begun, rounds))
        begun = rounds
        for pairs in list(open_):
            candidate, baseline = Side.load([out / pairs.name]), Side.load([out / "baseline"])
            status = check(candidate, baseline, rules, looks=len(looks)).status
            if status is not Status.INCONCLUSIVE or rounds == MOST:
                pairs.ends[status] += 1
                pairs.rounds += rounds
                open_.remove(pairs)
                del programs[pairs.name]
        if not open_:
            return


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=20, help="of either kind")
    parser.add_argument("--minutes", type=float, default=math.inf, help="begin no pair after these")
    parser.add_argument("--plain", action="store_true", help="without the kernel beside")
    parser.add_argument("--workload", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.workload:
        workload(int(options.workload[0]), options.workload[1])
        return
    same, slower, rules = Pairs("same"), Pairs("slower"), budgets(options.plain)
    began = time.monotonic()
    for number in range(options.pairs):
        if time.monotonic() - began > 60 * options.minutes:
            break
        with tempfile.TemporaryDirectory() as folder:
            one_pair(Path(folder), rules, same, slower)
        ends = [{s.word: n for s, n in pairs.ends.items()} for pairs in (same, slower)]
        print(f"pair {number}: same {ends[0]}, slower {ends[1]}", flush=True)
    same.show()
    slower.show()


if __name__ == "__main__":
    main()
