"""How long 18 configurations of a matmul take to compile for an H200, by one process and by two.

    python benchmarks/parallel_compile.py [--rounds 9]

Needs no GPU. It is what autotuning does with an empty disk cache (`compile_ahead`), and with one
that has them all. Times are of the clock: meant for two quiet cores.
"""

import argparse
import contextlib
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import proton
import proton.language as tl
from kernels.matmul import matmul_kernel
from proton.compiler import Request, compile_function
from proton.compiling.ahead import compile_ahead
from proton.runtime.nvidia import launch

TARGET = proton.GPUTarget("cuda", 90)
BLOCKS = [  # (BLOCK_M, BLOCK_N, num_warps)
    *((64, 64, 4), (64, 128, 4), (128, 64, 4), (128, 128, 4), (128, 128, 8)),
    *((128, 256, 8), (256, 128, 8), (64, 256, 4), (256, 64, 4)),
]


class _Seen(Exception):
    """What was asked for is known."""


def requests() -> list[Request]:
    """Of each block with three stages and with four."""
    found: list[Request] = []

    def see(*request: Any) -> None:
        found.append(Request(*request))
        raise _Seen

    values = [*[tl.float16] * 3, 8192, 8192, 8192, *(8192, 1) * 3]
    with mock.patch.object(launch, "compile_function", see):
        for (m, n, warps), stages in ((b, s) for b in BLOCKS for s in (3, 4)):
            k = 32 if m * n >= 256 * 128 and stages == 4 else 64
            with contextlib.suppress(_Seen):
                matmul_kernel.warmup(
                    *values, BLOCK_M=m, BLOCK_N=n, BLOCK_K=k, GROUP_M=8,
                    num_warps=warps, num_stages=stages, target=TARGET,
                )  # fmt: skip
    return found


@contextlib.contextmanager
def empty_cache(processes: int) -> Iterator[None]:
    with (
        tempfile.TemporaryDirectory() as folder,
        proton.knobs.scope(cache_dir=Path(folder), compile_processes=processes),
    ):
        yield


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=9)
    rounds = parser.parse_args().rounds
    wanted = requests()
    compile_function(*wanted[0])  # what a process does once
    ratios = []
    for _ in range(rounds):
        with empty_cache(1):
            begin = time.perf_counter()
            for request in wanted:
                compile_function(*request)
            one = time.perf_counter() - begin
        with empty_cache(2):
            begin = time.perf_counter()
            compile_ahead(wanted)
            two = time.perf_counter() - begin
            begin = time.perf_counter()
            compile_ahead(wanted)
            assert all(compile_function(*request).from_cache for request in wanted)
            again = time.perf_counter() - begin
        ratios.append(one / two)
        print(f"one {one:.2f} s, two {two:.2f} s: {one / two:.2f}x; again {again * 1e3:.0f} ms")
    print(f"median {statistics.median(ratios):.2f}x")


if __name__ == "__main__":
    main()
