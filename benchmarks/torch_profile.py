"""What a profile adds to a training step of a compiled GPT block, on the CPU.

    python benchmarks/torch_profile.py [--width 256] [--rounds 15]

Inductor's kernels are compiled by Proton. Rounds of steps on one thread, each way in turns in each
round: without a session, with one, with `auto=` records, with those of some launches. CPU time of a
step, and the median of the quotients to the round's steps without a session. Besides: the launches
in the run, and how many of them have their op and line. Needs torch.
"""

import argparse
import contextlib
import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))
os.environ["INDUCTOR_PROVENANCE"] = "1"

import proton  # of this checkout

proton.install_as_triton()

import torch  # noqa: E402  # asks for triton
import torch._inductor.config  # noqa: E402

from tests.torch_compile.models import GPTBlock  # noqa: E402

STEPS, EVERY = 10, 5
AUTO = ("loads", "dots")
WAYS: dict[str, Callable[[], Any]] = {
    "no session": contextlib.nullcontext,
    "session": lambda: proton.profile("step"),
    "auto": lambda: proton.profile("step", auto=AUTO),
    f"auto, every_launch={EVERY}": lambda: proton.profile("step", auto=AUTO, every_launch=EVERY),
}


def training_step(width: int, length: int, batch: int) -> Callable[[], None]:
    """A step of a block with so many tokens."""
    model = GPTBlock(words=512, width=width, heads=width // 32, length=length)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    run = torch.compile(model, fullgraph=True, dynamic=False)
    tokens, targets = torch.randint(0, 512, (2, batch, length)).unbind()

    def step() -> None:
        optimizer.zero_grad()
        run(tokens, targets).backward()
        optimizer.step()

    return step


def ms_per_step(step: Callable[[], None]) -> float:
    began = time.thread_time()
    for _ in range(STEPS):
        step()
    return (time.thread_time() - began) / STEPS * 1e3


def described(run: Any) -> str:
    """How many launches are in a run, and which have their op and line."""
    if run is None:
        return ""
    launches = run.launches
    operators = run.frame[run.frame["kind"] == "launch"]["operator"].astype(str)
    named = operators.str.contains(r"\.py:\d+(?:-\d+)? \w", regex=True)
    return f"{len(launches):8} {int(named.sum()):8} {launches['kernel'].nunique():8}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--length", type=int, default=128)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    torch.set_num_threads(1)
    proton.knobs.num_threads = 1
    torch._inductor.config.cpu_backend = "triton"
    torch._inductor.config.compile_threads = 1
    torch.manual_seed(0)
    step = training_step(options.width, options.length, options.batch)
    times: dict[str, list[float]] = {name: [] for name in WAYS}
    about = dict.fromkeys(WAYS, "")
    for number in range(options.rounds + 1):
        for name, way in WAYS.items():
            with way() as run:
                found = ms_per_step(step)
            if number:  # the first compiles
                times[name].append(found)
            about[name] = described(run)
    print(f"torch {torch.__version__}, load {os.getloadavg()[0]:.1f}")
    print(f"{'way':24} {'ms':>8} {'added':>8} {'launches':>8} {'with op':>8} {'kernels':>8}")
    for name, of in times.items():
        pairs = zip(of, times["no session"], strict=True)
        added = statistics.median(one / other for one, other in pairs) - 1
        print(f"{name:24} {statistics.median(of):8.2f} {added:8.1%} {about[name]}")


if __name__ == "__main__":
    main()
