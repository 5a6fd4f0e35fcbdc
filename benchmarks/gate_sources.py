"""Where the noise between processes comes from, and which way takes it out: a kernel that moves
memory, measured in fresh processes of unchanged code.

    python benchmarks/gate_sources.py [--processes 40]

A row is a way to measure, a column a quantile of a process's slices: the standard deviation, in
percent, of the ratio of two processes that ran one after the other, as a round of
`proton-tile measure` has them. In `one process` both versions are launched in turns on the same
arrays, and the ratio is of these two.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

import proton
import proton.language as tl
from proton.viewer import Run

ELEMENTS, BLOCK, LAUNCHES = 1 << 20, 16384, 64
MOST_PADDING = 1 << 18  # bytes between arrays, so that each process has them elsewhere
QUANTILES = (1, 10, 50, 90)
SCOPES = ("load", "store")


@dataclass(frozen=True, kw_only=True)
class Way:
    """How a process measures; `beside` divides by the kernel that is launched in turns."""

    placements: int = 1
    pinned: bool = False
    beside: bool = False
    both: bool = False


WAYS = {
    "as it is": Way(),
    "8 placements of the arrays": Way(placements=8),
    "pinned to one core": Way(pinned=True),
    "a kernel beside": Way(beside=True),
    "one process": Way(both=True),
}


@proton.jit
def add(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr, VERSION: tl.constexpr):
    """Two scopes that move memory."""
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    with proton.scope("load"):
        x = tl.load(x_ptr + offs, mask=mask)
        y = tl.load(y_ptr + offs, mask=mask)
    with proton.scope("store"):
        tl.store(out_ptr + offs, x + y, mask=mask)


def sample(out: str, placements: int) -> None:
    """One process: both versions, which are the same code, in turns."""
    rng, sets = np.random.default_rng(), []
    for _ in range(placements):
        padding = np.ones(int(rng.integers(1, MOST_PADDING)), np.uint8)
        sets.append((padding, *(np.ones(ELEMENTS, np.float32) for _ in range(3))))
    with proton.profile("sources", placement="program") as run:
        for number in range(LAUNCHES):
            _, *arrays = sets[number % placements]
            for version in (0, 1):
                add[(ELEMENTS // BLOCK,)](*arrays, ELEMENTS, BLOCK=BLOCK, VERSION=version)
    run.save(out)


def measured(way: Way, folder: Path) -> np.ndarray:
    """Of one fresh process the logarithms of what it says, by scope and quantile."""
    file = folder / "run.proton"
    words = [sys.executable, __file__, "--sample", str(file), str(way.placements)]
    environment = dict(os.environ)
    if way.pinned:
        words = ["taskset", "-c", "0", *words]
        environment["PROTON_NUM_THREADS"] = "1"
    subprocess.run(words, check=True, env=environment)
    frame = Run.load(file).frame
    one, other = (
        np.log([
            np.percentile(own.loc[own["name"] == scope, "corrected_ns"], QUANTILES)
            for scope in SCOPES
        ])
        for own in (frame[frame["variant"] == version] for version in (1, 2))
    )  # fmt: skip
    return other - one if way.both or way.beside else one


def noise(way: Way, found: list[np.ndarray]) -> np.ndarray:
    """Percent, the mean of both scopes."""
    values = np.stack(found)
    ratios = values if way.both else values[1::2] - values[: len(values) // 2 * 2 : 2]
    return np.asarray(100 * ratios.std(axis=0, ddof=1).mean(axis=0))


def main() -> None:
    """Measures all ways in turns, and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--processes", type=int, default=40, help="of each way")
    parser.add_argument("--sample", nargs=2, metavar=("RUN", "PLACEMENTS"), help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.sample:
        sample(asked.sample[0], int(asked.sample[1]))
        return
    found: dict[str, list[np.ndarray]] = {name: [] for name in WAYS}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(asked.processes):
            for name, way in WAYS.items():
                found[name].append(measured(way, Path(folder)))
    title = f"load {os.getloadavg()[1]:.1f}, {asked.processes} processes of each"
    table = Table("way", *(f"p{q} %" for q in QUANTILES), title=title)
    for name, way in WAYS.items():
        table.add_row(name, *(f"{value:.1f}" for value in noise(way, found[name])))
    Console().print(table)


if __name__ == "__main__":
    main()
