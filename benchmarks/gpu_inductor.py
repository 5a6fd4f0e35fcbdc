"""Kernels that Inductor writes for models, on a GPU: Proton's times against Triton's, in turns.

    python benchmarks/gpu_inductor.py [--seconds 110] [--rounds 3] [--model "gpt block"]
        [--configurations]

Each compiler has a process. Of each model of tests/torch_compile/models.py both compile the steps
at once, and then take steps in turns. What is not measured after so many seconds is left out of the
table, and the table says so.
Times of kernels are torch's profiler's (CUPTI), by the kernels' names; those of compiling the sum
of the calls of `triton.compile`, with caches off.
Inductor chooses between configurations (XBLOCK, warps) by events around a launch, which for kernels
of a few microseconds is the host's time as much as theirs, so each side may choose another. A line
says what each chose, and last the ratio of each side's fastest configuration, by CUPTI as well:
where that is 1 and the ratio is not, the choice differs and not the code. `--configurations` prints
all of them: microseconds by CUPTI, by Inductor's events, and registers.
"""

import argparse
import contextlib
import fcntl
import multiprocessing
import os
import statistics
import sys
import tempfile
import time
import traceback
from collections import defaultdict
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
SIDES = ("proton", "triton")
STEPS = 20
WIDER = 64  # by which batches are larger than in the tests
Kernels = dict[str, list[float]]  # microseconds of each round, by name
Configuration = tuple[str, float, float, int]  # what it is, us by CUPTI and by events, registers


class Late(Exception):
    """There is no time left, or nobody to ask."""


# A compiler's process


def serve(side: str, lock: str, asked: Connection) -> None:
    """Answers `("models",)` with their names, `("compile", model)` with milliseconds, `("tried",)`
    with the configurations of its kernels, the chosen one first, and `("measure", model)` with each
    kernel's microseconds; with a text where that fails."""
    sys.path.insert(0, str(ROOT))
    if side == "proton":
        import proton

        proton.install_as_triton()
    import torch
    import torch._inductor.config
    from torch._inductor.runtime.triton_heuristics import CachingAutotuner

    from tests.torch_compile.models import MODELS

    torch.set_default_device("cuda")
    torch._inductor.config.compile_threads = 1
    torch._inductor.config.force_disable_caches = True
    spent, steps = _timed(), {}
    tried: dict[str, list[Configuration]] = {}
    CachingAutotuner.benchmark_all_configs = _noted(
        CachingAutotuner.benchmark_all_configs, lock, tried
    )
    while True:
        what, *names = asked.recv()
        model = "".join(names)
        try:
            if what == "models":
                asked.send([*MODELS])
            elif what == "tried":
                asked.send({**tried})
            elif what == "compile":
                spent[0] = 0.0
                tried.clear()
                steps[model] = _step_of(model)
                for _ in range(3):
                    steps[model]()
                torch.cuda.synchronize()
                asked.send(spent[0])
            else:
                asked.send(_kernel_times(steps[model]))
        except Exception:
            asked.send(traceback.format_exc(limit=-3))


def _timed() -> list[float]:
    """The milliseconds in `triton.compile`, which goes on."""
    import triton

    spent, compile_one = [0.0], triton.compile

    def timed(*args: Any, **kwargs: Any) -> Any:
        start = time.perf_counter()
        try:
            return compile_one(*args, **kwargs)
        finally:
            spent[0] += (time.perf_counter() - start) * 1e3

    triton.compile = timed
    return spent


def _noted(
    of: Callable[..., Any], lock: str, tried: dict[str, list[Configuration]]
) -> Callable[..., Any]:
    """Inductor's measurement of a kernel's configurations, by one process at a time; these are
    measured by CUPTI, too, and noted."""

    def call(tuner: Any, *args: Any, **kwargs: Any) -> Any:
        with open(lock) as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            timings = of(tuner, *args, **kwargs)
            launchers = sorted(timings, key=timings.__getitem__)
            times = _launch_times(launchers, *tuner.clone_args(*args, **kwargs))
        tried[tuner.fn.__name__.rstrip("$")] = [
            (_configuration(one.config), time, timings[one] * 1e3, int(one.n_regs or 0))
            for one, time in zip(launchers, times, strict=True)
        ]
        return timings

    return call


def _configuration(config: Any) -> str:
    sizes = (f"{name}={size}" for name, size in config.kwargs.items())
    return " ".join([*sizes, f"w{config.num_warps}"])


def _launch_times(launchers: list[Any], args: list[Any], kwargs: dict[str, Any]) -> list[float]:
    """The median of some launches of each."""
    import torch
    from torch.profiler import ProfilerActivity, profile

    stream = torch.cuda.current_stream().cuda_stream
    with profile(activities=[ProfilerActivity.CUDA]) as profiler:
        for launcher in launchers:
            for _ in range(STEPS):
                launcher(*args, **kwargs, stream=stream)
        torch.cuda.synchronize()
    events = [event for event in profiler.events() if event.name.startswith("triton_")]
    events.sort(key=lambda event: event.time_range.start)
    if len(events) != STEPS * len(launchers):
        raise RuntimeError(f"{len(events)} of {STEPS * len(launchers)} launches were seen")
    times = [event.device_time for event in events]
    return [statistics.median(times[n : n + STEPS]) for n in range(0, len(times), STEPS)]


def _step_of(model: str) -> Callable[[], None]:
    import torch

    from tests.torch_compile.models import MODELS

    kind, make, has_gradients = MODELS[model]
    torch.manual_seed(0)
    inputs = tuple(torch.cat([x] * WIDER) for x in make())
    run = torch.compile(kind(), fullgraph=True, dynamic=False)

    def step() -> None:
        out = run(*inputs)
        if has_gradients:
            out.square().mean().backward()

    return step


def _kernel_times(step: Callable[[], None]) -> dict[str, float]:
    """The median of each kernel in some steps."""
    import torch
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CUDA]) as profiler:
        for _ in range(STEPS):
            step()
        torch.cuda.synchronize()
    times: Kernels = defaultdict(list)
    for event in profiler.events():
        if event.name.startswith("triton_"):
            times[event.name.rstrip("$")].append(event.device_time)
    return {kernel: statistics.median(of) for kernel, of in times.items()}


# Who asks them


class Sides:
    """The two processes, and the time there is."""

    def __init__(self, seconds: float) -> None:
        self._end = time.monotonic() + seconds
        context = multiprocessing.get_context("spawn")
        handle, self._lock = tempfile.mkstemp()
        os.close(handle)
        self._of: dict[str, Connection] = {}
        self._processes = []
        for side in SIDES:
            self._of[side], theirs = context.Pipe()
            process = context.Process(target=serve, args=(side, self._lock, theirs))
            process.start()
            theirs.close()
            self._processes.append(process)

    def ask(self, side: str, *question: str) -> None:
        self._of[side].send(question)

    def answer(self, side: str) -> Any:
        if not self._of[side].poll(max(self._end - time.monotonic(), 0)):
            raise Late
        try:
            found = self._of[side].recv()
        except EOFError:
            raise Late(f"the process of {side} has died") from None
        if isinstance(found, str):
            raise RuntimeError(f"{side}: {found}")
        return found

    def both(self, *question: str) -> dict[str, Any]:
        """What both answer, who work at once. Both have answered when one has failed."""
        for side in SIDES:
            self.ask(side, *question)
        found, failed = {}, []
        for side in SIDES:
            try:
                found[side] = self.answer(side)
            except RuntimeError as problem:
                failed.append(str(problem))
        if failed:
            raise RuntimeError("\n".join(failed))
        return found

    def end(self) -> None:
        for process in self._processes:
            process.kill()
            process.join()
        Path(self._lock).unlink()


@contextlib.contextmanager
def _sides(seconds: float) -> Iterator[Sides]:
    sides = Sides(seconds)
    try:
        yield sides
    finally:
        sides.end()


@contextlib.contextmanager
def _late() -> Iterator[None]:
    """Ends what it is around when there is no time left, and says so."""
    try:
        yield
    except Late as problem:
        print(f"ended early: {problem or 'the seconds are over'}")


def in_turns(seconds: float, rounds: int, models: list[str], show_all: bool) -> None:
    """Measures model by model, and prints the ratios of the medians of the rounds."""
    compiles: dict[str, dict[str, float]] = {}
    kernels: dict[str, dict[str, Kernels]] = {}
    tried: dict[str, dict[str, dict[str, list[Configuration]]]] = {}
    failed: dict[str, str] = {}
    with _sides(seconds) as sides, _late():
        models = models or sides.both("models")[SIDES[0]]
        for model in models:
            try:
                compiles[model] = sides.both("compile", model)
                tried[model] = sides.both("tried")
                kernels[model] = {side: defaultdict(list) for side in SIDES}
                for _ in range(rounds):
                    for side in SIDES:
                        sides.ask(side, "measure", model)
                        for kernel, of in sides.answer(side).items():
                            kernels[model][side][kernel].append(of)
            except RuntimeError as problem:
                failed[model] = str(problem)
    for model, problem in failed.items():
        print(f"{model}: {problem}")
    _print_table(models, compiles, kernels, tried, failed)
    if show_all:
        _print_configurations(tried)


def _choices(of: list[list[Configuration]]) -> tuple[str, float | None]:
    """What the sides chose, and the ratio of the fastest of each; nothing where there was no
    choice."""
    if not all(of):
        return "", None
    ours, theirs = of
    chosen = ours[0][0] if ours[0][0] == theirs[0][0] else f"{ours[0][0]} | {theirs[0][0]}"
    return chosen, min(one[1] for one in ours) / min(one[1] for one in theirs)


def _print_configurations(tried: dict[str, dict[str, dict[str, list[Configuration]]]]) -> None:
    print("\nConfigurations, the chosen one first: us by CUPTI, by events, registers")
    for model, of in tried.items():
        for kernel in sorted(of[SIDES[0]].keys() & of[SIDES[1]].keys()):
            print(f"{model}: {kernel}")
            for side in SIDES:
                for name, us, by_events, registers in of[side][kernel]:
                    print(f"  {side} {name:28} {us:8.2f} {by_events:8.2f} {registers:4}")


def _print_table(
    models: list[str],
    compiles: dict[str, dict[str, float]],
    kernels: dict[str, dict[str, Kernels]],
    tried: dict[str, dict[str, dict[str, list[Configuration]]]],
    failed: dict[str, str],
) -> None:
    every: dict[str, float] = {}
    every_best: list[float] = []
    rows = []
    for model in models:
        if model in failed or model not in compiles:
            rows.append(f"{model:20} {'failed' if model in failed else 'no time left'}")
            continue
        of_proton, of_triton = (kernels[model][side] for side in SIDES)
        ratios = {
            kernel: statistics.median(of_proton[kernel]) / statistics.median(of_triton[kernel])
            for kernel in of_proton.keys() & of_triton.keys()
        }
        bests: list[float] = []
        for kernel in sorted(ratios, key=ratios.__getitem__):
            us = (statistics.median(of[kernel]) for of in (of_proton, of_triton))
            chosen, fastest = _choices([tried[model][side].get(kernel, []) for side in SIDES])
            bests.append(ratios[kernel] if fastest is None else fastest)
            print("  {:90} {:9.2f} us {:9.2f} us".format(kernel, *us), f"{ratios[kernel]:6.2f}",
                  f"{bests[-1]:6.2f} {chosen}")  # fmt: skip
        every |= {f"{model}: {kernel}": ratio for kernel, ratio in ratios.items()}
        every_best += bests
        took = compiles[model]
        mean = f"{statistics.geometric_mean(ratios.values()):.3f}" if ratios else "-"
        worst = f"{max(ratios.values()):.2f}" if ratios else "-"
        best = f"{statistics.geometric_mean(bests):.3f}" if bests else "-"
        ratio = took["proton"] / max(took["triton"], 1e-3)
        rows.append(f"{model:20} {len(ratios):7} {mean:>8} {worst:>7} {best:>8} {ratio:14.2f}")
    print(f"\nProton / Triton\n{'model':20} {'kernels':>7} {'geomean':>8} {'worst':>7} "
          f"{'fastest':>8} {'time of compile':>14}")  # fmt: skip
    print("\n".join(rows))
    if every:
        worst = max(every, key=every.__getitem__)
        ours, theirs = (sum(of[side] for of in compiles.values()) for side in SIDES)
        above = sum(ratio > 1.10 for ratio in every.values())
        print(f"{len(every)} kernels: {statistics.geometric_mean(every.values()):.3f}, "
              f"{above} above 1.10, worst {every[worst]:.2f} ({worst}); "
              f"compile {ours / theirs:.2f} ({ours:.0f} ms, {theirs:.0f} ms)")  # fmt: skip
        above = sum(ratio > 1.10 for ratio in every_best)
        print(f"the fastest configuration of each: {statistics.geometric_mean(every_best):.3f}, "
              f"{above} above 1.10, worst {max(every_best):.2f}")  # fmt: skip


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=110)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--model", action="append", default=[], help="one of the models; may be repeated"
    )
    parser.add_argument(
        "--configurations", action="store_true", help="print all that Inductor chose from"
    )
    chosen = parser.parse_args()
    os.environ |= {"PROTON_ALWAYS_COMPILE": "1", "TRITON_ALWAYS_COMPILE": "1"}
    in_turns(chosen.seconds, chosen.rounds, chosen.model, chosen.configurations)
