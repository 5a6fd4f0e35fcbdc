"""The command line that the scripts of this folder share: check, benchmark, profile."""

import argparse
import importlib.util
import inspect
import secrets
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import proton
from proton.kernels import Case

Sizes = tuple[int, ...]
REPEATS = 9
LAUNCHES = 5  # of a profile: the first one meets cold caches


def main(case: Case, ugly: list[Sizes], benchmark: list[Sizes]) -> None:
    """Checks the kernel against numpy, and does what the options ask for besides."""
    caller = inspect.stack()[1].frame.f_globals["__doc__"]
    parser = argparse.ArgumentParser(
        description=caller, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--benchmark", action="store_true", help="compare with numpy and torch")
    parser.add_argument("--profile", type=Path, metavar="FILE", help="write a trace of launches")
    parser.add_argument("--seed", type=int, default=None, help="of the random inputs")
    options = parser.parse_args()
    seed = secrets.randbits(32) if options.seed is None else options.seed
    print(f"{case.name}, seed {seed}")
    rng = np.random.default_rng(seed)
    if not check(case, rng, ugly):
        sys.exit(1)
    if options.benchmark:
        compare(case, rng, benchmark)
    if options.profile:
        profile(case, rng, benchmark[-1], options.profile)


def check(case: Case, rng: np.random.Generator, sizes: list[Sizes]) -> bool:
    """Prints the error at each size; whether all are small enough."""
    errors = []
    for size in sizes:
        errors.append(case.check(case.inputs(rng, *size)))
        verdict = "PASS" if errors[-1] <= case.tolerance else "FAIL"
        print(f"  {verdict}  {' x '.join(map(str, size)):20} error {errors[-1]:.1e}")
    return all(error <= case.tolerance for error in errors)


def compare(case: Case, rng: np.random.Generator, sizes: list[Sizes]) -> None:
    """A table of times; each is the best of some runs, with all threads that a library takes."""
    peers = ["numpy", "torch"] if importlib.util.find_spec("torch") else ["numpy"]
    table = Table("size", *(f"{name}, ms" for name in ("proton", *peers)))
    for size in sizes:
        inputs = case.inputs(rng, *size)
        ours, theirs = case.launch(*inputs), case.reference(*inputs)
        times = [best(lambda i=inputs, o=ours: case.launch(*i, out=o))]
        times.append(best(lambda i=inputs, o=theirs: case.reference(*i, out=o)))
        if "torch" in peers:
            times.append(best(torch_run(case, inputs, theirs)))
        table.add_row(" x ".join(map(str, size)), *(f"{t * 1e3:.3f}" for t in times))
    Console().print(table)


def torch_run(case: Case, inputs: tuple[np.ndarray, ...], out: Any) -> Callable[[], object]:
    """A call of the torch peer on the same memory."""
    import torch

    results = out if isinstance(out, tuple) else (out,)
    tensors, targets = ([torch.from_numpy(a) for a in arrays] for arrays in (inputs, results))
    return lambda: case.torch(torch, targets, *tensors)


def best(action: Callable[[], object]) -> float:
    """Seconds of the fastest of some runs."""
    times = []
    for _ in range(REPEATS):
        begin = time.perf_counter()
        action()
        times.append(time.perf_counter() - begin)
    return min(times)


def profile(case: Case, rng: np.random.Generator, size: Sizes, path: Path) -> None:
    """Writes a run of some launches."""
    inputs = case.inputs(rng, *size)
    with proton.profile(case.name) as run:
        out = case.launch(*inputs)
        for _ in range(LAUNCHES - 1):
            case.launch(*inputs, out=out)
    print(f"wrote {run.save(path)}: {run!r}")
