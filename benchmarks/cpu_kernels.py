"""The kernels against numpy and, where it is installed, torch, on the same threads.

    python benchmarks/cpu_kernels.py [--rounds 5] [--threads 1 2] [--only softmax]

Each row is checked against numpy first. Inputs are normally distributed, aligned to 64 bytes;
outputs are filled with NaN before the check. In a round each library runs its best of 7, in
turn, when the machine has come to rest: OpenMP's threads spin for a while after their work, and
other programs disturb. Times are the best of all rounds; a ratio is the median over the rounds
of peer time / Proton time (and the least and most), so above 1 Proton is faster. numpy has one
thread for elementwise work: with more threads it gets the rows split over as many Python
threads, which run in parallel. Its matmul has the threads of its BLAS, which is told that the
CPU has AVX-512. Needs Linux.
"""

import argparse
import importlib.util
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

REPEATS = 7
PAUSE, PAUSES = 0.1, 5  # s; how many at most before a turn
TURNS = 2  # taken at most, where other programs disturb
IDLE = 0.9  # share of all cores' time in a pause, for the machine to count as quiet
ALIGNMENT = 64
SIZES = {
    "vector add": (1 << 24,),
    "softmax": (4096, 1024),
    "layer norm": (4096, 1024),
    "matmul": (1024, 1024, 1024),
}
# How many of the inputs have the rows that numpy's threads share; matmul's are its own.
SPLIT = {"vector add": 2, "softmax": 1, "layer norm": 1, "matmul": 0}
THREAD_VARIABLES = "PROTON_NUM_THREADS OMP_NUM_THREADS OPENBLAS_NUM_THREADS MKL_NUM_THREADS".split()
Action = Callable[[], object]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--only", choices=SIZES, nargs="+", default=list(SIZES))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.here:
        measure(options)
        return
    for threads in options.threads:  # libraries read their thread counts once, when loaded
        variables = dict.fromkeys(THREAD_VARIABLES, str(threads)) | best_blas()
        command = [sys.executable, __file__, *sys.argv[1:], "--threads", str(threads), "--here"]
        subprocess.run(command, env={**os.environ, **variables}, check=True)


def best_blas() -> dict[str, str]:
    """OpenBLAS takes its AVX2 kernels on CPUs that it does not know, at half the speed."""
    text = Path("/proc/cpuinfo").read_text()
    return {"OPENBLAS_CORETYPE": "SKYLAKEX"} if "avx512vl" in text else {}


def measure(options: argparse.Namespace) -> None:
    """Prints the table for one number of threads, which the environment has already."""
    import numpy as np
    from rich.console import Console
    from rich.table import Table

    from kernels.cases import CASES

    threads = options.threads[0]
    names = ["numpy", "torch"] if importlib.util.find_spec("torch") else ["numpy"]
    title = f"{threads} thread{'s'[: threads > 1]}, seed {options.seed}"
    columns = ["proton ms", *(f"{n} {x}" for n in names for x in ("ms", "ratio"))]
    table = Table("kernel", *columns, "error", title=title)
    check_special_rows()
    for case in CASES:
        if case.name not in options.only:
            continue
        rng = np.random.default_rng(options.seed)
        inputs = tuple(aligned(a) for a in case.inputs(rng, *SIZES[case.name]))
        actions, error = prepare(case, inputs, names, threads)
        assert error <= case.tolerance, f"{case.name}: error {error}"
        rounds = [{name: best(run) for name, run in actions.items()} for _ in range(options.rounds)]
        row = [f"{min(r['proton'] for r in rounds) * 1e3:.2f}"]
        for name in names:
            row.append(f"{min(r[name] for r in rounds) * 1e3:.2f}")
            ratios = sorted(r[name] / r["proton"] for r in rounds)
            row.append(f"{statistics.median(ratios):.2f} ({ratios[0]:.2f}..{ratios[-1]:.2f})")
        table.add_row(case.name, *row, f"{error:.0e}")
    Console(width=120).print(table)


def prepare(
    case: Any, inputs: tuple[Any, ...], names: list[str], threads: int
) -> tuple[dict[str, Action], float]:
    """What each library runs, and Proton's error."""
    import numpy as np

    def buffers() -> Any:
        made = case.reference(*inputs)
        fresh = [aligned(np.full_like(a, np.nan)) for a in as_tuple(made)]
        return tuple(fresh) if isinstance(made, tuple) else fresh[0]

    out, numpy_out, torch_out = buffers(), buffers(), buffers()
    error = case.check(inputs, out)
    actions: dict[str, Action] = {"proton": lambda: case.launch(*inputs, out=out)}
    actions["numpy"] = numpy_action(case, inputs, numpy_out, threads)
    if "torch" in names:
        import torch

        torch.set_num_threads(threads)
        tensors = [torch.from_numpy(a) for a in inputs]
        targets = [torch.from_numpy(a) for a in as_tuple(torch_out)]
        actions["torch"] = lambda: case.torch(torch, targets, *tensors)
    return actions, error


def numpy_action(case: Any, inputs: tuple[Any, ...], out: Any, threads: int) -> Action:
    """The numpy peer; the rows are split over Python threads where numpy has only one."""
    shared = SPLIT[case.name]
    if threads == 1 or not shared:
        return lambda: case.reference(*inputs, out=out)
    pool = ThreadPoolExecutor(threads)
    edges = [len(inputs[0]) * part // threads for part in range(threads + 1)]

    def part(number: int) -> None:
        rows = slice(edges[number], edges[number + 1])
        given = [a[rows] if place < shared else a for place, a in enumerate(inputs)]
        target = tuple(a[rows] for a in out) if isinstance(out, tuple) else out[rows]
        case.reference(*given, out=target)

    return lambda: list(pool.map(part, range(threads)))


def check_special_rows() -> None:
    """NaN, infinities, denormals and huge numbers: as numpy."""
    import numpy as np

    from kernels.cases import SOFTMAX, VECTOR_ADD

    specials = [np.nan, np.inf, -np.inf, 1e-40, -1e-40, 3e38, -3e38, 0.0, -0.0]
    rows = np.random.default_rng(1).standard_normal((len(specials) + 2, 1024), dtype=np.float32)
    for row, special in enumerate(specials):
        rows[row, 10 * row : 10 * row + 3] = special
    rows[-1], rows[-2] = -np.inf, 1e-41
    with np.errstate(all="ignore"):
        assert SOFTMAX.check((rows,)) <= SOFTMAX.tolerance
        assert VECTOR_ADD.check((rows.ravel(), rows[::-1].ravel())) == 0


def aligned(array: Any) -> Any:
    """A copy that begins at a multiple of 64 bytes, its pages touched."""
    import numpy as np

    raw = np.empty(array.nbytes + ALIGNMENT, np.uint8)
    start = -raw.ctypes.data % ALIGNMENT
    copy = raw[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


def as_tuple(result: Any) -> tuple[Any, ...]:
    return result if isinstance(result, tuple) else (result,)


def best(action: Action) -> float:
    """Seconds of the fastest of some runs, with the machine quiet before and after them."""
    for _ in range(TURNS):
        wait_until_quiet()
        action()
        times = []
        for _ in range(REPEATS):
            begin = time.perf_counter()
            action()
            times.append(time.perf_counter() - begin)
        if is_quiet():
            break
    return min(times)


def wait_until_quiet() -> None:
    """Returns when nothing else runs, or after too long a wait."""
    for _ in range(PAUSES):
        if is_quiet():
            return


def is_quiet() -> bool:
    """Whether all cores are idle for a moment (as Linux counts)."""
    before = core_times()
    time.sleep(PAUSE)
    spent = [after - b for after, b in zip(core_times(), before, strict=True)]
    return spent[3] >= IDLE * sum(spent)


def core_times() -> list[int]:
    """The kernel's count of ticks by kind, over all cores; the fourth is idle."""
    first = Path("/proc/stat").read_text().partition("\n")[0]
    return [int(number) for number in first.split()[1:9]]


if __name__ == "__main__":
    main()
