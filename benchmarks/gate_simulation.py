"""How often the gate is wrong, by simulation: processes whose noise is known.

    python benchmarks/gate_simulation.py [--slower 10 3] [--noise 1 3 5] [--pairs 200]
                                         [--reference 3 [--shared 3]]

A pair is what benchmarks/gate.py measures: two scopes, budgets for p50 and p90 of both, looks at 10
processes a side and then at more; one of the scopes may be slower. The budget is half of what the
candidate is slower by. `noise` is the standard deviation, in percent, of the ratio of the two sides
of a round, after what a reference takes out; all four values have their own. With `--reference`
budgets have a reference whose own noise is that; `--shared` is the noise of processes, which it
takes out of the scopes.
"""

import argparse
import math
from collections import Counter

import numpy as np
from gate import LEAST, MOST, SCOPES, STATS, binomial
from rich.console import Console
from rich.table import Table

from proton.viewer.compare import Budget, Budgets, Side, Status, check
from proton.viewer.compare.measure import sizes
from proton.viewer.compare.samples import Group, Process, Variant

TYPICAL_NS = 10_000.0
LOOKS = sizes(LEAST, MOST)
REFERENCE = Group(Variant("beside", ""), "")


def sides(
    rng: np.random.Generator, noise: float, factor: float, reference: float, shared: float
) -> list[Side]:
    """A baseline and a candidate whose first scope takes `factor` as long. The last row of each
    process is its reference's."""
    logs = rng.normal(0, noise / math.sqrt(2), (2, MOST, len(SCOPES) + 1, len(STATS)))
    logs[:, :, -1] *= reference / noise
    logs += rng.normal(0, shared / math.sqrt(2), (2, MOST, 1, 1))
    logs[1, :, 0] += math.log(factor)
    return [
        Side(processes=[_process(2 * n + side, ns) for n, ns in enumerate(TYPICAL_NS * values)])
        for side, values in enumerate(np.exp(logs))
    ]


def _process(began: int, values: np.ndarray) -> Process:
    groups = [*(Group(Variant("work", ""), scope) for scope in SCOPES), REFERENCE]
    rows = {
        group: dict(zip(STATS, stats, strict=True))
        for group, stats in zip(groups, values.tolist(), strict=True)
    }
    return Process(
        path="", began_unix_ns=began, machine={}, missing=(), lost=False, partial=False,
        targets={}, rows=rows, batches={},
    )  # fmt: skip


def end(before: Side, after: Side, rules: Budgets) -> tuple[Status, int]:
    """How `measure --budget` ends, and after how many rounds."""
    for rounds in LOOKS:
        some = [Side(processes=side.processes[:rounds]) for side in (after, before)]
        status = check(*some, rules, looks=len(LOOKS)).status
        if status is not Status.INCONCLUSIVE:
            break
    return status, rounds


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--slower", type=float, nargs="+", default=[10.0, 3.0], help="percent")
    parser.add_argument("--noise", type=float, nargs="+", default=[1.0, 3.0, 5.0], help="percent")
    parser.add_argument("--reference", type=float, default=0.0, help="percent; 0: there is none")
    parser.add_argument("--shared", type=float, default=0.0, help="percent")
    parser.add_argument("--pairs", type=int, default=200, help="of either kind")
    options = parser.parse_args()
    beside = (options.reference / 100, options.shared / 100)
    reference = str(REFERENCE) if options.reference else ""
    table = Table("slower by", "noise", "kind", "rounds", "pass", "regression", "inconclusive")
    rng = np.random.default_rng(0)
    for slower in options.slower:
        rules = Budgets(
            budgets=[
                Budget(scope=scope, stat=stat, max_regression=slower / 200, reference=reference)
                for scope in SCOPES
                for stat in STATS
            ]
        )
        for noise in options.noise:
            for kind, factor in (("same", 1.0), ("slower", 1 + slower / 100)):
                both = (sides(rng, noise / 100, factor, *beside) for _ in range(options.pairs))
                found = [end(*pair, rules) for pair in both]
                ends = Counter(status for status, _ in found)
                rounds = sum(rounds for _, rounds in found) / len(found)
                table.add_row(
                    f"{slower:g} %", f"{noise:g} %", kind, f"{rounds:.1f}",
                    *(_part(ends[status], len(found))
                      for status in (Status.PASS, Status.REGRESSION, Status.INCONCLUSIVE)),
                )  # fmt: skip
    Console(width=130).print(table)


def _part(count: int, total: int) -> str:
    """A part with the 95 % interval of its probability."""
    low, high = binomial(count, total)
    return f"{100 * count / total:.1f} % ({100 * low:.1f} to {100 * high:.1f})"


if __name__ == "__main__":
    main()
