"""What a change makes of the code of kernels: compiles the same ones at two commits and compares.

    python scripts/replay.py BASE [--tests tests/compile ...] [--specimens FILE ...] [--show 40]

The kernels are those that tests compile, and those of files that benchmarks/library_specimens.py
wrote. Each is known by its source, its signature and its options, instrumentation included; each
level of its IR, its PTX and its object code are compared byte for byte. Both commits are checked
out in the same folder, one after the other, so that paths in the code are the same; what is not
committed counts as part of the newer one.
"""

import argparse
import collections
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
Digests = dict[str, str]  # of each level
Kernels = dict[str, Digests]


def git(*command: str, cwd: Path = ROOT) -> str:
    done = subprocess.run(["git", *command], cwd=cwd, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def compiled(tree: Path, tests: list[str], specimens: list[Path], to: Path) -> Kernels:
    """The digests of all kernels that a tree compiles."""
    to.mkdir()
    variables = os.environ | {
        "PROTON_REPLAY_TO": str(to),
        "PYTHONPATH": os.pathsep.join([str(tree), str(ROOT / "scripts")]),
        "PROTON_TEST_SEED": "0",
        "PYTHONHASHSEED": "0",  # texts of sets are in the keys of kernels
        "PROTON_ALWAYS_COMPILE": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    python = [sys.executable, "-m"]
    if tests:
        command = [*python, "pytest", "-q", "-p", "replay_recorder", "-n", "2", *tests]
        done = subprocess.run(command, cwd=tree, env=variables, capture_output=True, text=True)
        print(f"  tests: {done.stdout.strip().splitlines()[-1:]}", file=sys.stderr)
    for file in specimens:
        command = [*python, "replay_recorder", str(file)]
        subprocess.run(command, cwd=tree, env=variables, check=True)
    found: Kernels = {}
    for part in to.iterdir():
        for line in part.read_text().splitlines():
            one = json.loads(line)
            found[one["kernel"]] = one["levels"]
    return found


def table(base: Kernels, head: Kernels, show: int) -> str:
    """What differs: how many kernels at each level, and which of them."""
    both = sorted(base.keys() & head.keys())
    changed = collections.Counter[str]()
    first = collections.defaultdict[str, list[str]](list)
    for kernel in both:
        levels = [n for n, of in base[kernel].items() if head[kernel].get(n) != of]
        changed.update(levels)
        if levels:
            first[levels[0]].append(kernel)
    lines = [
        f"{len(both)} kernels at both commits, {len(base.keys() - head.keys())} at the base alone, "
        f"{len(head.keys() - base.keys())} at the head alone",
        "",
        "| level | kernels that differ |",
        "|---|---|",
        *(f"| {level} | {count} |" for level, count in changed.items()),
    ]
    for level, kernels in first.items():
        lines += ["", f"first different in {level}: {len(kernels)}"]
        lines += [f"  {kernel}" for kernel in kernels[:show]]
        lines += [f"  and {len(kernels) - show} more"] * (len(kernels) > show)
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("base")
    parser.add_argument("--tests", nargs="*", default=["tests/compile"])
    parser.add_argument("--specimens", nargs="*", type=Path, default=[])
    parser.add_argument("--show", type=int, default=40, help="kernels of each level")
    given = parser.parse_args()
    base, head = git("rev-parse", given.base), git("stash", "create") or git("rev-parse", "HEAD")
    specimens = [file.resolve() for file in given.specimens]
    with tempfile.TemporaryDirectory() as folder:
        tree, found = Path(folder, "tree"), []
        git("worktree", "add", "--quiet", "--detach", str(tree), base)
        try:
            for number, commit in enumerate((base, head)):
                git("checkout", "--quiet", "--detach", commit, cwd=tree)
                print(f"{commit}: {git('log', '-1', '--format=%s', commit)}", file=sys.stderr)
                found.append(compiled(tree, given.tests, specimens, Path(folder, str(number))))
        finally:
            git("worktree", "remove", "--force", str(tree))
    print(table(*found, given.show))
    return int(found[0] != {key: found[1].get(key) for key in found[0]})


if __name__ == "__main__":
    sys.exit(main())
