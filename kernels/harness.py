"""A kernel beside its peers, and the command line of each file here: check, benchmark, profile."""

import argparse
import importlib.util
import inspect
import math
import secrets
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import proton
from kernels import arrays
from kernels.arrays import Array

Arrays = tuple[np.ndarray, ...]
Sizes = tuple[int, ...]
Place = Callable[[np.ndarray], Array]
REPEATS = 9
GPU_REPEATS = 30
FLUSH_BYTES = 256 << 20  # more than the L2 cache of a GPU
LAUNCHES = 5  # of a profile: the first one meets cold caches


@dataclass(frozen=True, kw_only=True)
class Case:
    """A kernel, the same in numpy and in torch, and inputs for all three.

    `launch` and `reference` take the inputs and, by name, `out`: what they returned before.
    `torch` takes the module, the outputs and the inputs. `tolerance` bounds `error`; what a GPU
    approximates may add `approximation` to it (docs/math.md). `prepare` makes the inputs from
    normally distributed arrays of `shapes`. The script checks the sizes `ugly`, and times those of
    `benchmark`.
    """

    name: str
    shapes: Callable[..., list[Sizes]]
    launch: Callable[..., Any]
    reference: Callable[..., Any]
    torch: Callable[..., Any]
    tolerance: float
    approximation: float = 0.0
    prepare: Callable[..., Arrays] | None = None
    ugly: tuple[Sizes, ...]
    benchmark: tuple[Sizes, ...]

    def inputs(self, rng: np.random.Generator, *sizes: int) -> Arrays:
        """Random inputs of a problem's sizes."""
        arrays = tuple(rng.standard_normal(s, dtype=np.float32) for s in self.shapes(*sizes))
        return arrays if self.prepare is None else self.prepare(*arrays)

    def check(self, inputs: Arrays, out: Any = None, place: Place = np.asarray) -> float:
        """Launches on the inputs where `place` puts them; the largest error of any output."""
        got = outputs(self.launch(*map(place, inputs), out=out))
        want = outputs(self.reference(*inputs))
        return max(error(arrays.to_numpy(g), w) for g, w in zip(got, want, strict=True))


def outputs(result: Array | tuple[Array, ...]) -> tuple[Array, ...]:
    """What a launch or reference returned, as a tuple."""
    return result if isinstance(result, tuple) else (result,)


def error(got: np.ndarray, want: np.ndarray) -> float:
    """The largest difference over the largest number that was wanted; infinite where NaN and
    infinities are not where they should be."""
    finite = np.isfinite(want)
    if not np.array_equal(got[~finite], want[~finite], equal_nan=True):
        return math.inf
    if not np.isfinite(got[finite]).all():
        return math.inf
    differences = np.abs(got[finite].astype(np.float64) - want[finite])
    scale = np.abs(want[finite]).max(initial=0.0) or 1.0
    return float(differences.max(initial=0.0) / scale)


def main(*cases: Case) -> None:
    """Checks kernels against numpy, and does what the options ask for besides."""
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
    parser.add_argument("--small", action="store_true", help="of the benchmark's smallest size")
    parser.add_argument("--seed", type=int, default=None, help="of the random inputs")
    options = parser.parse_args()
    on_gpu = options.device == "cuda"
    if on_gpu and (missing := missing_for_gpu()):
        parser.error(f"--device cuda needs {missing}")
    place: Place = to_gpu if on_gpu else np.asarray
    seed = secrets.randbits(32) if options.seed is None else options.seed
    rng = np.random.default_rng(seed)
    for case in cases:
        print(f"{case.name}, seed {seed}")
        if not check(case, rng, place, case.tolerance + case.approximation * on_gpu):
            sys.exit(1)
        if options.benchmark:
            (compare_on_gpu if on_gpu else compare)(case, rng, case.benchmark)
    if options.profile:
        profile(cases, rng, place, options.profile, which=0 if options.small else -1)


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


def check(case: Case, rng: np.random.Generator, place: Place, tolerance: float) -> bool:
    """Prints the error at each size; True if all are small enough."""
    errors = []
    for size in case.ugly:
        errors.append(case.check(case.inputs(rng, *size), place=place))
        verdict = "PASS" if errors[-1] <= tolerance else "FAIL"
        print(f"  {verdict}  {' x '.join(map(str, size)):20} error {errors[-1]:.1e}")
    return all(error <= tolerance for error in errors)


def compare(case: Case, rng: np.random.Generator, sizes: Sequence[Sizes]) -> None:
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


def compare_on_gpu(case: Case, rng: np.random.Generator, sizes: Sequence[Sizes]) -> None:
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


def profile(
    cases: Sequence[Case], rng: np.random.Generator, place: Place, path: Path, which: int
) -> None:
    """Writes a run of some launches of each kernel, at one of its benchmark's sizes."""
    with proton.profile(cases[0].name) as run:
        for case in cases:
            inputs = [place(array) for array in case.inputs(rng, *case.benchmark[which])]
            out = case.launch(*inputs)
            for _ in range(LAUNCHES - 1):
                case.launch(*inputs, out=out)
    print(f"wrote {run.save(path)}: {run!r}")
