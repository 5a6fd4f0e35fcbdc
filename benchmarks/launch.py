"""The host's time for a launch on a GPU: Proton against Triton, at 0, 5 and 19 arguments.

    python benchmarks/launch.py [--launches 2000] [--rounds 9]

Kernels that do nothing, launched in a loop; the queue is emptied before each round. The median
of rounds, in us per launch. The two take turns within a round.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from types import ModuleType
from typing import Any

import torch
from peers import triton_module
from rich.console import Console
from rich.table import Table

import proton
import proton.language as tl


@proton.jit
def no_arguments():
    pass


@proton.jit
def five_arguments(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    pass


@proton.jit
def nineteen_arguments(
    p0, p1, p2, p3, p4, i0, i1, i2, i3, i4, i5, i6, i7, i8, c0: tl.constexpr, c1: tl.constexpr,
    c2: tl.constexpr, c3: tl.constexpr, c4: tl.constexpr,
):  # fmt: skip
    pass


def calls(module: ModuleType) -> dict[str, Callable[[], Any]]:
    """A launch of each kernel of a module."""
    t = [torch.zeros(1024, device="cuda") for _ in range(5)]
    integers = (1024, 17, 3, 16, 4096, 2, 5, 1 << 20, 7)
    return {
        "0": lambda: module.no_arguments[(1,)](),
        "5": lambda: module.five_arguments[(1,)](t[0], t[1], t[2], 1024, BLOCK=128),
        "19": lambda: module.nineteen_arguments[(1,)](*t, *integers, 32, 64, 128, 256, 1),
    }


def rate(call: Callable[[], Any], launches: int) -> float:
    """us per launch."""
    torch.cuda.synchronize()
    begin = time.perf_counter()
    for _ in range(launches):
        call()
    return (time.perf_counter() - begin) / launches * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--launches", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=25)
    options = parser.parse_args()
    here = sys.modules[__name__]
    ours, theirs = calls(here), calls(triton_module(here))
    table = Table("arguments", "proton, us", "triton, us", "ratio", title=f"{proton.__version__}")
    for name in ours:
        times: dict[str, list[float]] = {"ours": [], "theirs": []}
        for call in (ours[name], theirs[name]):
            for _ in range(50):
                call()
        for _ in range(options.rounds):
            times["ours"].append(rate(ours[name], options.launches))
            times["theirs"].append(rate(theirs[name], options.launches))
        a, b = (statistics.median(values) for values in times.values())
        table.add_row(name, f"{a:.2f}", f"{b:.2f}", f"{a / b:.2f}")
    Console().print(table)


if __name__ == "__main__":
    main()
