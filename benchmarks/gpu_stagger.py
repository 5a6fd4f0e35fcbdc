"""What it is worth that partitions which share tensor cores begin one after the other: kernels in
Gluon with two of them, with delays and without, in turns on one GPU.

    python benchmarks/gpu_stagger.py [--rounds 6] [--heads 128] [--length 4096]

Medians of rounds, by events (in_turns.py). Results are those without delays, bit by bit. Without
special functions between the dots ("square") there are no delays.
"""

import argparse
import math
from collections.abc import Callable
from typing import Any

import gpu_gluon
import torch
from in_turns import medians

import proton
from proton.dialect.mlir import Module
from proton.transforms.schedule.stagger_partitions import StaggerPartitions

ROWS = 64  # of a partition
LAUNCHES = 6
CASES = [  # weights, the size of a head, columns
    ("softmax", 128, 128), ("softmax", 128, 64), ("softmax", 64, 128), ("softmax", 256, 64),
    ("exp", 128, 128), ("exp", 64, 128), ("sigmoid", 128, 128), ("sigmoid", 64, 128),
    ("square", 128, 128),
]  # fmt: skip


def launcher(arrays: list[torch.Tensor], columns: int, weights: str) -> Callable[[], Any]:
    """A launch of a kernel that nobody has compiled yet."""
    side = gpu_gluon.proton_side()
    heads, length, depth = arrays[0].shape
    blocks = (ROWS, columns, columns, ROWS)
    given = [
        side.described(x.view(-1, depth), [n, depth]) for x, n in zip(arrays, blocks, strict=True)
    ]
    kernel = side.kernels.attention_specialized
    fresh = type(kernel)(kernel.fn)[length // (2 * ROWS), heads]
    scale = math.log2(math.e) * depth**-0.5
    return lambda: fresh(*given, length, scale, columns, 2, weights, num_warps=4)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--heads", type=int, default=128)
    parser.add_argument("--length", type=int, default=4096)
    chosen = parser.parse_args()
    print(f"{'weights, head, columns':26}{'us without':>12}{'us':>9}{'time':>7}  delays")
    for weights, depth, columns in CASES:
        shape = chosen.heads, chosen.length, depth
        arrays = [torch.randn(shape, device="cuda").half() for _ in range(4)]
        launches, results, delays = [], [], 0
        for run in (_nothing, StaggerPartitions.run):
            kept, StaggerPartitions.run = StaggerPartitions.run, run  # type: ignore[method-assign]
            with proton.knobs.scope(always_compile=True):
                launches.append(launcher(arrays, columns, weights))
                kernel = launches[-1]()
            StaggerPartitions.run = kept  # type: ignore[method-assign]
            torch.cuda.synchronize()
            results.append(arrays[-1].clone())
            delays = str(kernel.asm["ttgir"]).count("ttng.delay")
        assert torch.equal(*results), f"{weights}: delays change the result"
        without, us = medians(launches, chosen.rounds, LAUNCHES)
        name = f"{weights}, {depth}, {columns}"
        print(f"{name:26}{without:12.1f}{us:9.1f}{us / without:7.3f}  {delays}", flush=True)


def _nothing(self: StaggerPartitions, module: Module) -> None:
    """No delays."""


if __name__ == "__main__":
    main()
