"""Kernels of a microsecond on a GPU, by Proton and by Triton: what prologues and hints cost.

    python benchmarks/gpu_small.py [--rounds 6]

Times are those that CUPTI gives torch's profiler, which come in steps of 32 ns; the second-level
cache is flushed ahead of each launch, and compilers take turns. Means of 40 launches a round.
Results are compared with torch's.
"""

import argparse
import functools
import statistics
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import small_kernels
import torch
from peers import triton_module

SIZE, WIDTH, BLOCK, SQUARE = 1 << 16, 256, 256, 32
LAUNCHES, FLUSH_BYTES = 40, 256 << 20
Case = tuple[Callable[[Any], Callable[[], object]], torch.Tensor, Callable[[], torch.Tensor]]


def cases() -> dict[str, Case]:
    """By the kernel's name its launch of a module, what it writes, and what that has to be."""
    x, y = torch.randn(2, SIZE, device="cuda")
    index = torch.randint(0, WIDTH, (SIZE // WIDTH,), device="cuda")
    table, matrix = x.view(-1, WIDTH), y.view(-1, WIDTH)
    rows, columns = matrix.shape
    whole, out, wide = (SIZE // BLOCK,), torch.empty_like(x), torch.empty_like(x, dtype=torch.int64)
    squares = (rows // SQUARE, columns // SQUARE)

    def of(
        name: str, grid: tuple[int, ...], *args: object
    ) -> Callable[[Any], Callable[[], object]]:
        return lambda module: functools.partial(getattr(module, name)[grid], *args)

    return {
        "numbers": (of("numbers", whole, wide, SIZE, BLOCK), wide,
                    lambda: torch.arange(SIZE, device="cuda")),
        "added": (of("added", whole, x, y, out, SIZE, BLOCK), out, lambda: x + y),
        "embedded": (of("embedded", whole, index, table, out, WIDTH, BLOCK), out,
                     lambda: table[index].flatten()),
        "transposed": (of("transposed", squares, matrix, out, rows, columns, SQUARE), out,
                       lambda: matrix.T.flatten()),
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--rounds", type=int, default=6)
    rounds = parser.parse_args().rounds
    sides = {"Proton": small_kernels, "Triton": triton_module(small_kernels)}
    flush = torch.empty(FLUSH_BYTES, dtype=torch.uint8, device="cuda")
    print(f"{torch.cuda.get_device_name()}\n{'kernel':12}{'Proton us':>11}{'Triton us':>11}   time")
    for name, (make, out, expected) in cases().items():
        launches = {side: make(module) for side, module in sides.items()}
        for side, launch in launches.items():
            out.zero_()
            launch()
            torch.testing.assert_close(out, expected().to(out.dtype), msg=f"{name} by {side}")
        times = defaultdict[str, list[float]](list)
        for _ in range(rounds):
            for side, launch in launches.items():
                with torch.profiler.profile(
                    activities=[torch.profiler.ProfilerActivity.CUDA]
                ) as run:
                    for _ in range(LAUNCHES):
                        flush.zero_()
                        launch()
                    torch.cuda.synchronize()
                times[side] += [e.device_time for e in run.events() if e.name.startswith(name)]
        ours, theirs = (statistics.mean(times[side]) for side in sides)
        print(f"{name:12}{ours:11.3f}{theirs:11.3f}{ours / theirs:7.3f}", flush=True)


if __name__ == "__main__":
    main()
