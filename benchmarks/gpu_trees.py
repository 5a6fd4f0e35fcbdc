"""Kernel times of liger-kernel's ops on a GPU by two versions of Proton.

    python benchmarks/gpu_trees.py OTHER [--only REGEX] [--repeats 3] [--processes 8]
                                         [--seconds 100] [--json FILE]

OTHER is another checkout of this repository. Cases, checks and times are those of gpu_liger.py: the
processes of a version compile and compare with torch, and then one runs all cases under Nsight
Compute, for `--seconds` at most. The rows are kernels that differ by more than 3 %, us; the last
line is the geometric mean of this version's time over the other's.
"""

import argparse
import json
import os
import statistics
import subprocess
import time
from pathlib import Path

import gpu_liger
from gpu_liger import CHECK, PROTON, RIGHT, Times

ROOT = Path(__file__).parents[1]
SHOWN = 0.03


def measured(tree: Path, given: argparse.Namespace) -> Times:
    """us of the launches of a version."""
    os.environ["PROTON_CACHE_DIR"] = f"/tmp/trees-{tree.name}"
    inherited = os.environ.get("PYTHONPATH", "")
    os.environ["PYTHONPATH"] = os.pathsep.join([str(tree), inherited])
    work, parts = gpu_liger.keys(given.only, ["large", "wide"]), given.processes
    until = time.time() + given.seconds
    started = [
        subprocess.Popen(
            gpu_liger.command(PROTON, CHECK, work[part::parts], 1, until),
            stdout=subprocess.PIPE,
            text=True,
        )
        for part in range(parts)
    ]
    right, names = [], set[str]()
    for process in started:
        for key, verdict, launched in gpu_liger.reports(process.communicate()[0]):
            names.update(launched)
            if verdict == RIGHT:
                right.append(key)
    print(f"{tree}: {len(right)} of {len(work)} right", flush=True)
    until = time.time() + given.seconds
    found = gpu_liger.timed(PROTON, sorted(right), names, given.repeats, until)
    os.environ["PYTHONPATH"] = inherited
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("other", type=Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=100)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    this, other = (measured(tree, given) for tree in (ROOT, given.other.resolve()))
    rows = {
        " ".join(row): (statistics.median(this[row]), statistics.median(other[row]))
        for row in sorted(this.keys() & other.keys())
    }
    if given.json:
        given.json.write_text(json.dumps(rows, indent=1))
    for row, (ours, theirs) in sorted(rows.items(), key=lambda item: item[1][0] / item[1][1]):
        if abs(ours / theirs - 1) > SHOWN:
            print(f"{ours / theirs:6.3f} {ours:9.1f} {theirs:9.1f}  {row}")
    mean = statistics.geometric_mean(ours / theirs for ours, theirs in rows.values())
    print(f"{len(rows)} kernels: {mean:.4f} of the other's time in the mean")


if __name__ == "__main__":
    main()
