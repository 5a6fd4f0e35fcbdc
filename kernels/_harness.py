"""The command line that the scripts of this folder share: check, benchmark, profile."""

import argparse
import importlib.util
import inspect
import secrets
import statistics
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
from proton.kernels.arrays import Array
from proton.kernels.cases import outputs

Sizes = tuple[int, ...]
Place = Callable[[np.ndarray], Array]
REPEATS = 9
GPU_REPEATS = 30
FLUSH_BYTES = 256 << 20  # more than the L2 cache of a GPU
LAUNCHES = 5  # of a profile: the first one meets cold caches


def main(case: Case, ugly: list[Sizes], benchmark: list[Sizes]) -> None:
    """Checks the kernel against numpy, and does what the options ask for besides."""
    caller = inspect.stack()[1].frame.f_globals["__doc__"]
    parser = argparse.ArgumentParser(
        description=caller, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu", help="where it runs")
    parser.add_argument(
        "--benchmark",
        action="store_true",
        help="compare times: with numpy and torch, on a GPU with torch",
    )
    parser.add_argument("--profile", type=Path, metavar="FILE", help="write a trace of launches")
    parser.add_argument("--seed", type=int, default=None, help="of the random inputs")
    options = parser.parse_args()
    on_gpu = options.device == "cuda"
    if on_gpu and (missing := missing_for_gpu()):
        parser.error(f"--device cuda needs {missing}")
    place, tolerance = np.asarray, case.tolerance
    if on_gpu:
        place, tolerance = to_gpu, case.tolerance + case.approximation
    seed = secrets.randbits(32) if options.seed is None else options.seed
    print(f"{case.name}, seed {seed}")
    rng = np.random.default_rng(seed)
    if not check(case, rng, ugly, place, tolerance):
        sys.exit(1)
    if options.benchmark:
        (compare_on_gpu if on_gpu else compare)(case, rng, benchmark)
    if options.profile:
        profile(case, rng, benchmark[-1], place, options.profile)


def missing_for_gpu() -> str:
    """What a GPU's arrays need and is not here; empty where all is."""
    if importlib.util.find_spec("torch") is None:
        return "torch, which is not installed"
    import torch

    return "" if torch.cuda.is_available() else "an NVIDIA GPU, and torch sees none"


def to_gpu(array: np.ndarray) -> Array:
    """The array as a torch tensor on the current GPU."""
    import torch

    return torch.from_numpy(array).cuda()


def check(
    case: Case, rng: np.random.Generator, sizes: list[Sizes], place: Place, tolerance: float
) -> bool:
    """Prints the error at each size; whether all are small enough."""
    errors = []
    for size in sizes:
        errors.append(case.check(case.inputs(rng, *size), place=place))
        verdict = "PASS" if errors[-1] <= tolerance else "FAIL"
        print(f"  {verdict}  {' x '.join(map(str, size)):20} error {errors[-1]:.1e}")
    return all(error <= tolerance for error in errors)


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

    tensors, targets = ([torch.from_numpy(a) for a in arrays] for arrays in (inputs, outputs(out)))
    return lambda: case.torch(torch, targets, *tensors)


def best(action: Callable[[], object]) -> float:
    """Seconds of the fastest of some runs."""
    times = []
    for _ in range(REPEATS):
        begin = time.perf_counter()
        action()
        times.append(time.perf_counter() - begin)
    return min(times)


def compare_on_gpu(case: Case, rng: np.random.Generator, sizes: list[Sizes]) -> None:
    """A table of times on the GPU; each is a median, with a cold L2 cache."""
    import torch

    flush = torch.empty(FLUSH_BYTES, dtype=torch.uint8, device="cuda")
    table = Table("size", "proton, ms", "torch, ms", title=torch.cuda.get_device_name())
    for size in sizes:
        inputs = [to_gpu(array) for array in case.inputs(rng, *size)]
        out = case.launch(*inputs)
        targets = [torch.empty_like(tensor) for tensor in outputs(out)]
        ours = median(lambda i=inputs, o=out: case.launch(*i, out=o), flush)
        theirs = median(lambda i=inputs, t=targets: case.torch(torch, t, *i), flush)
        table.add_row(" x ".join(map(str, size)), f"{ours:.4f}", f"{theirs:.4f}")
    Console().print(table)


def median(action: Callable[[], object], flush: Any) -> float:
    """Milliseconds that an action takes on the GPU, by CUDA events around it."""
    import torch

    for _ in range(2):
        action()
    events = [[torch.cuda.Event(enable_timing=True) for _ in range(2)] for _ in range(GPU_REPEATS)]
    for begin, end in events:
        flush.zero_()
        begin.record()
        action()
        end.record()
    torch.cuda.synchronize()
    return statistics.median(begin.elapsed_time(end) for begin, end in events)


def profile(case: Case, rng: np.random.Generator, size: Sizes, place: Place, path: Path) -> None:
    """Writes a run of some launches."""
    inputs = [place(array) for array in case.inputs(rng, *size)]
    with proton.profile(case.name) as run:
        out = case.launch(*inputs)
        for _ in range(LAUNCHES - 1):
            case.launch(*inputs, out=out)
    print(f"wrote {run.save(path)}: {run!r}")
