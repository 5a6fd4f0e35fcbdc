"""Kernels that Inductor writes for models, on a GPU: Proton's times against Triton's, in turns.

    python benchmarks/gpu_inductor.py [--rounds 3] [--model "gpt block"]

Each round is a process of each compiler, in which every model of tests/torch_compile/models.py
takes steps.
Times of kernels are torch's profiler's (CUPTI), by the kernels' names; those of compiling the sum
of the calls of `triton.compile`, with caches off.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
STEPS = 20
WIDER = 64  # by which batches are larger than in the tests


def measured(model: str | None) -> dict[str, Any]:
    """Of each model the microseconds of each kernel, and the milliseconds of compiling them."""
    import torch
    import triton
    from torch.profiler import ProfilerActivity, profile

    torch.set_default_device("cuda")
    torch._inductor.config.compile_threads = 1
    torch._inductor.config.force_disable_caches = True
    sys.path.insert(0, str(ROOT))
    from tests.torch_compile.models import MODELS

    spent, compile_one = [0.0], triton.compile

    def timed(*args: Any, **kwargs: Any) -> Any:
        start = time.perf_counter()
        try:
            return compile_one(*args, **kwargs)
        finally:
            spent[0] += (time.perf_counter() - start) * 1e3

    triton.compile = timed
    found = {}
    for name, (kind, make, has_gradients) in MODELS.items():
        if model not in (None, name):
            continue
        torch._dynamo.reset()
        torch.manual_seed(0)
        spent[0] = 0.0
        inputs = tuple(torch.cat([x] * WIDER) for x in make())
        run = torch.compile(kind(), fullgraph=True, dynamic=False)

        def step(run: Any = run, inputs: Any = inputs, grad: bool = has_gradients) -> None:
            out = run(*inputs)
            if grad:
                out.square().mean().backward()

        for _ in range(3):
            step()
        torch.cuda.synchronize()
        with profile(activities=[ProfilerActivity.CUDA]) as profiler:
            for _ in range(STEPS):
                step()
            torch.cuda.synchronize()
        times: dict[str, list[float]] = defaultdict(list)
        for event in profiler.events():
            if event.name.startswith("triton_"):
                times[event.name.rstrip("$")].append(event.device_time)
        kernels = {kernel: statistics.median(of) for kernel, of in times.items()}
        found[name] = {"kernels": kernels, "compile_ms": spent[0]}
    return found


def in_turns(rounds: int, model: str | None) -> None:
    """Prints the ratios of the medians of the rounds."""
    runs: dict[str, list[dict[str, Any]]] = {"proton": [], "triton": []}
    for _ in range(rounds):
        for side, results in runs.items():
            command = [
                sys.executable,
                __file__,
                "--side",
                side,
                *(["--model", model] if model else []),
            ]
            path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
            environment = os.environ | {"PYTHONPATH": path, "PROTON_ALWAYS_COMPILE": "1"}
            environment |= {"TRITON_ALWAYS_COMPILE": "1"}
            done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True)
            results.append(json.loads(done.stdout.splitlines()[-1]))
    ratios = []
    for name in runs["proton"][0]:
        compiles = {
            side: statistics.median(of[name]["compile_ms"] for of in results)
            for side, results in runs.items()
        }
        print(f"{name}: compile {compiles['proton'] / compiles['triton']:.2f}x of Triton's")
        for kernel in runs["proton"][0][name]["kernels"]:
            sides = [
                [of[name]["kernels"][kernel] for of in results if kernel in of[name]["kernels"]]
                for results in runs.values()
            ]
            if all(sides):
                ours, theirs = map(statistics.median, sides)
                ratios.append(ours / theirs)
                print(f"  {kernel:90} {ours:9.2f} us {theirs:9.2f} us {ratios[-1]:6.2f}")
    print(f"{len(ratios)} kernels: geometric mean {statistics.geometric_mean(ratios):.3f}, "
          f"worst {max(ratios):.2f}")  # fmt: skip


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--model")
    parser.add_argument("--side", choices=("proton", "triton"))
    chosen = parser.parse_args()
    if chosen.side is None:
        in_turns(chosen.rounds, chosen.model)
    else:
        if chosen.side == "proton":
            import proton

            proton.install_as_triton()
        print(json.dumps(measured(chosen.model)))
