"""What scopes cost pipelined kernels on tensor cores: Proton, and Triton's Proton beside it.

    python benchmarks/gpu_scope_cost.py [--only ours default clock32] [--kernels attention_kernel]
        [--rounds 10] [--triton-rounds 3] [--seconds 55]

Products of fp16 matrices of 4096 with the scopes kernel, load, dot, store, by pointers and by
tensor descriptors (TMA), persistent and not, in blocks of 128 x 256 x 64; attention over 32 heads
of 4096 x 128 with a scope around its scores, softmax and values, in each iteration. Nsight Compute
(`ncu --clock-control none`) times the kernels, without records and with them; medians. The table
has the bars of Proton.

Proton's kernels are launched in turns in one process. Each of Triton's has a process of its own,
which launches it without records first and then with them; `--seconds` is what all of them have in
one mode, and one kernel has KERNEL_SECONDS at most. What was refused, or had no time, is said.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from typing import Any

import nsight
import scoped_kernels
import torch
from gpu_subjects import PRODUCTS, Launch, attention, product
from peers import triton_module
from rich.console import Console
from rich.table import Table

import proton
from kernels import attention as attention_module
from proton.tools.tensor_descriptor import TensorDescriptor

SIZE, HEADS, LENGTH = 4096, 32, 4096
BARS = {f"product_{name}": 1.0 for name in PRODUCTS} | {"attention_kernel": 2.0}  # %
NAMES = "product_|attention_kernel"
MODES: dict[str, dict[str, Any]] = {"default": {}, "clock32": {"optimizations": "clock32"}}
ATTENTION = {"BLOCK_M": 128, "num_warps": 8, "num_stages": 3, "OVERLAP": False}
# Each compiler's fastest, of those of gpu_attention.py.
ATTENTIONS = {"ours": ATTENTION | {"BLOCK_N": 128}, "triton": ATTENTION | {"BLOCK_N": 64}}
REFUSED, COUNTS = "refused: ", "launches:"
# Of a process of Triton's: what it has at most, what it takes to begin, and to end with its table.
KERNEL_SECONDS, STARTING_SECONDS, ENDING_SECONDS = 25, 8, 4


def launches(kernels: Any, descriptor: Any, attention_kernel: Any, whose: str) -> dict[str, Launch]:
    found = {
        f"product_{name}": product(kernels, descriptor, name, SIZE) for name in PRODUCTS
    }  # fmt: skip
    options = ATTENTIONS[whose]
    return found | {
        "attention_kernel": attention(attention_kernel, HEADS, LENGTH, **options)
    }  # fmt: skip


def inner_ours(kernels: list[str], rounds: int) -> None:
    """What runs under Nsight Compute: each kernel without and with records in turns."""
    attention_kernel = attention_module.attention_kernel
    known = launches(scoped_kernels, TensorDescriptor, attention_kernel, "ours")
    for launch in (known[kernel] for kernel in kernels):
        with proton.knobs.scope(profile_memory=2 << 30):
            session = proton.start("cost")
            for _ in range(1 + rounds):
                proton.deactivate(session)
                launch()
                proton.activate(session)
                launch()
            torch.cuda.synchronize()
            run = proton.finalize(session)
        # A launch that found no memory would run without records.
        assert run.raw.dropped_launches == 0
        assert len(run.raw.launches) == 1 + rounds


def inner_triton(name: str, kernel: str, rounds: int, until: float) -> None:
    """The same of one kernel under Triton's Proton in one mode, as long as there is time. It ends
    before Triton writes its trace, which takes a minute."""
    import triton.profiler as profiler
    from triton.profiler import mode
    from triton.tools.tensor_descriptor import TensorDescriptor as TritonDescriptor

    kernels = triton_module(scoped_kernels, has_scopes=True)
    theirs = triton_module(attention_module, has_scopes=True).attention_kernel
    launch = launches(kernels, TritonDescriptor, theirs, "triton")[kernel]
    counts = [0, 0]  # without and with records
    with tempfile.TemporaryDirectory() as folder:
        for is_recorded in (False, True):
            if is_recorded:
                chosen = mode.Default(**MODES[name])
                profiler.start(
                    f"{folder}/trace", data="trace", backend="instrumentation", mode=chosen
                )
            try:
                while counts[is_recorded] <= rounds and time.time() < until:
                    launch()
                    torch.cuda.synchronize()
                    counts[is_recorded] += 1
            except Exception as error:  # whatever it says of a kernel that it cannot record
                said = str(error).strip().splitlines() or [type(error).__name__]
                print(f"{REFUSED}{said[0][:100]}")
    print(COUNTS, *counts)
    sys.stdout.flush()
    os._exit(0)


def cells(off: float, on: float, bar: float | None) -> list[str]:
    """A row of the table, from the time without records."""
    percent = 100 * (on / off - 1)
    verdict = "" if bar is None else "met" if percent <= bar else "MISSED"
    return [
        f"{off:.1f}",
        f"{on:.1f}",
        f"{percent:.2f}",
        "" if bar is None else f"{bar:.1f}",
        verdict,
    ]


def our_rows(kernels: list[str], rounds: int) -> Iterator[list[str]]:
    """Those of Proton: the launches of a kernel are without and with records in turns."""
    found, _ = nsight.kernel_times(
        __file__, "--inner", "ours", "--rounds", str(rounds), "--kernels", *kernels, names=NAMES
    )
    for kernel in kernels:
        values = found.get(kernel, [])
        if len(values) != 2 * (1 + rounds):
            yield [kernel, "Proton", f"{len(values)} of {2 * (1 + rounds)} launches"]
            continue
        off, on = (statistics.median(values[first::2]) for first in (2, 3))
        yield [kernel, "Proton", *cells(off, on, BARS[kernel])]


def triton_rows(name: str, kernels: list[str], rounds: int, seconds: float) -> Iterator[list[str]]:
    """Those of Triton's Proton in one mode, each from a process of its own."""
    end = time.time() + seconds
    for kernel in kernels:
        yield [kernel, f"Triton's, {name}", *_triton_cells(name, kernel, rounds, end)]


def _triton_cells(name: str, kernel: str, rounds: int, end: float) -> list[str]:
    until = min(end, time.time() + KERNEL_SECONDS)
    if until - time.time() < STARTING_SECONDS:
        return ["not run: no time is left"]
    chosen = ("--kernels", kernel, "--rounds", str(rounds), "--until", str(until - ENDING_SECONDS))
    try:
        found, printed = nsight.kernel_times(
            __file__, "--inner", name, *chosen, names=NAMES, seconds=until - time.time()
        )
    except subprocess.TimeoutExpired as late:
        return [f"killed after {late.timeout:.0f} s"]
    lines = printed.splitlines()
    refused = [line for line in lines if line.startswith(REFUSED)]
    counts = next((line.split()[1:] for line in lines if line.startswith(COUNTS)), ["0", "0"])
    off, on = map(int, counts)
    values = found.get(kernel, [])
    if len(values) != off + on or min(off, on) < 2:
        said = refused[0] if refused else f"{off} launches without records, {on} with them"
        return [f"{said} ({len(values)} seen)"]
    # The first of each compiles.
    return cells(statistics.median(values[1:off]), statistics.median(values[off + 1 :]), None)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    known = ["ours", *MODES]
    parser.add_argument("--only", nargs="+", choices=known, default=known)
    parser.add_argument("--kernels", nargs="+", choices=BARS, default=list(BARS))
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--triton-rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=55, help="for Triton's, in one mode")
    parser.add_argument("--inner", default=None, help=argparse.SUPPRESS)
    parser.add_argument("--until", type=float, default=0, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inner == "ours":
        return inner_ours(options.kernels, options.rounds)
    if options.inner:
        return inner_triton(options.inner, options.kernels[0], options.rounds, options.until)
    table = Table("kernel", "profiler", "off, us", "on, us", "slower, %", "bar, %", "",
                  title="cost of scopes")  # fmt: skip
    for name in options.only:
        if name == "ours":
            rows = our_rows(options.kernels, options.rounds)
        else:
            rows = triton_rows(name, options.kernels, options.triton_rounds, options.seconds)
        for row in rows:
            print(*row, flush=True)  # should this process be killed
            table.add_row(*row)
    Console(width=130).print(table)


if __name__ == "__main__":
    main()
