"""How long it takes until code runs: cold starts, compile stages, the disk cache, launches.

    python benchmarks/compile_time.py [--repeats 9]

A cold start is a fresh process (files already in the system's cache) from its creation to its
first checked result of vector add. Warm compiles are in this process, past the disk cache. A
disk hit is loading and linking a kernel that this process has not seen. Launches are of one
program of a kernel that stores one number. Medians.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import proton
import proton.language as tl
from kernels import layer_norm, matmul, softmax, vector_add

ROOT = Path(__file__).resolve().parents[1]
COLD_STARTS = 7
LAUNCHES = 2000
FIRST_RESULT = """
import numpy as np
from kernels.vector_add import vector_add
x = np.arange(100_000, dtype=np.float32)
assert (vector_add(x, x) == x + x).all()
print("done", flush=True)
"""


def specimens() -> dict[str, tuple[Any, tuple[Any, ...], dict[str, int]]]:
    """Kernel by name, with arguments to compile it for."""
    m, v = np.zeros((1024, 1024), np.float32), np.zeros(1024, np.float32)
    blocks = matmul.configuration(m, m)
    strides = (1024, 1) * 3
    rows = (1024, 1024, 16)  # rows, columns, share
    norm = (m, v, v, m, v, v, 1024, *rows, 1e-5)
    return {
        "vector add": (vector_add.add_kernel, (v, v, v, 1024), {"BLOCK": vector_add.BLOCK}),
        "softmax": (softmax.softmax_kernel, (m, m, 1024, 1024, *rows), {"BLOCK": 1024}),
        "layer norm": (layer_norm.layer_norm_kernel, norm, {"BLOCK": 1024}),
        "matmul": (matmul.matmul_kernel, (m, m, m, 1024, 1024, 1024, *strides), blocks),
    }


@proton.jit
def no_arguments():
    pass


@proton.jit
def five_arguments(p, a, b, c, d):
    tl.store(p, a + b + c + d)


@proton.jit
def nineteen_arguments(p0, p1, p2, p3, p4, p5, p6, p7, p8, a, b, c, d, e, f, g, h, i, j):
    tl.store(p0, a + b + c + d + e + f + g + h + i + j)


def cold_start(folder: str) -> float:
    """ms from the creation of a process to its first result."""
    environment = {**os.environ, "PROTON_CACHE_DIR": folder, "PYTHONPATH": str(ROOT)}
    begin = time.perf_counter()
    command = [sys.executable, "-c", FIRST_RESULT]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"done\n"
        return (time.perf_counter() - begin) * 1e3


def cold_starts() -> tuple[list[float], list[float]]:
    """With an empty and with a full cache."""
    empty, full = [], []
    for _ in range(COLD_STARTS):
        with tempfile.TemporaryDirectory() as folder:
            empty.append(cold_start(folder))
            full.append(cold_start(folder))
    return empty, full


def compiled(kernel: Any, arguments: tuple[Any, ...], constants: dict[str, int]) -> Any:
    """(ms, kernel): compiled or loaded by a function that never was before, and linked."""
    fresh = proton.jit(kernel.fn)
    begin = time.perf_counter()
    result = fresh.warmup(*arguments, **constants)
    assert result.code.address
    return (time.perf_counter() - begin) * 1e3, result


def launch_us(action: Callable[[], object]) -> float:
    """Microseconds a launch."""
    action()
    begin = time.perf_counter()
    for _ in range(LAUNCHES):
        action()
    return (time.perf_counter() - begin) / LAUNCHES * 1e6


def spread(values: list[float]) -> tuple[str, str, str]:
    """Median, least and most."""
    return (*(f"{f(values):.1f}" for f in (statistics.median, min, max)),)


def compile_table(repeats: int) -> tuple[Table, Table]:
    """Warm compiles by stage, and disk hits."""
    compiles, hits = Table(title="warm compile, ms"), Table("disk hit, ms", "median", "min", "max")
    for number, (name, specimen) in enumerate(specimens().items()):
        with proton.knobs.scope(always_compile=True):
            compiled(*specimen)
            runs = [compiled(*specimen) for _ in range(repeats)]
        stages = list(runs[0][1].times)
        if number == 0:
            for column in ("kernel", *stages, "total with linking", "min", "max"):
                compiles.add_column(column)
        medians = [statistics.median(kernel.times[stage] for _, kernel in runs) for stage in stages]
        shown = (f"{median:.1f}" for median in medians)
        compiles.add_row(name, *shown, *spread([ms for ms, _ in runs]))
        loads = [compiled(*specimen) for _ in range(repeats)]
        assert all(kernel.from_cache for _, kernel in loads)
        hits.add_row(name, *spread([ms for ms, _ in loads]))
    return compiles, hits


def launch_table(repeats: int) -> Table:
    """Launches of one program, by how many arguments there are."""
    table = Table("launch, us", "median", "min", "max")
    p = np.zeros(8, np.int32)
    others = [np.zeros(8, np.int32) for _ in range(8)]
    actions = {
        "no arguments": lambda: no_arguments[(1,)](),
        "5 arguments, 1 an array": lambda: five_arguments[(1,)](p, 2, 3, 4, 5),
        "19 arguments, 9 arrays": lambda: nineteen_arguments[(1,)](p, *others, *range(2, 12)),
    }
    for name, action in actions.items():
        table.add_row(name, *spread([launch_us(action) for _ in range(repeats)]))
    return table


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=9)
    repeats = parser.parse_args().repeats
    console = Console(width=120)
    table = Table("process to first result, ms", "median", "min", "max")
    for name, values in zip(("empty cache", "full cache"), cold_starts(), strict=True):
        table.add_row(name, *spread(values))
    console.print(table)
    with tempfile.TemporaryDirectory() as folder, proton.knobs.scope(cache_dir=Path(folder)):
        for result in compile_table(repeats):
            console.print(result)
        console.print(launch_table(repeats))


if __name__ == "__main__":
    main()
