"""What scopes cost pipelined kernels on tensor cores: Proton, and Triton's Proton beside it.

    python benchmarks/gpu_scope_cost.py [--only ours default clock32] [--rounds 10]

Products of fp16 matrices of 4096 with the scopes kernel, load, dot, store, by pointers and by
tensor descriptors (TMA), persistent and not, in blocks of 128 x 256 x 64; attention over 32 heads
of 4096 x 128 with a scope around its scores, softmax and values, in each iteration. Nsight Compute
(`ncu --clock-control none`) times the kernels, without records and with them in turns, in one
process (Triton's Proton: first without, then with them); medians. The table has the bars of Proton.
"""

import argparse
import os
import statistics
import sys
import tempfile
from typing import Any

import nsight
import scoped_kernels
import torch
from gpu_subjects import PRODUCTS, Launch, attention, product
from peers import triton_module
from rich.console import Console
from rich.table import Table

import proton
from proton.kernels import attention as attention_module
from proton.tools.tensor_descriptor import TensorDescriptor

SIZE, HEADS, LENGTH = 4096, 32, 4096
BARS = {"attention_kernel": 2.0} | {f"product_{name}": 1.0 for name in PRODUCTS}  # %
NAMES = "product_|attention_kernel"
MODES: dict[str, dict[str, Any]] = {"default": {}, "clock32": {"optimizations": "clock32"}}
ATTENTION = {"BLOCK_M": 128, "BLOCK_N": 64, "num_warps": 8}
# Each compiler's fastest, of those of gpu_attention.py.
ATTENTIONS = {
    "ours": ATTENTION | {"OVERLAP": True, "num_stages": 2},
    "triton": ATTENTION | {"OVERLAP": False, "num_stages": 3},
}
REFUSED = "refused: "


def launches(kernels: Any, descriptor: Any, attention_kernel: Any, whose: str) -> dict[str, Launch]:
    found = {
        f"product_{name}": product(kernels, descriptor, name, SIZE) for name in PRODUCTS
    }  # fmt: skip
    options = ATTENTIONS[whose]
    return found | {
        "attention_kernel": attention(attention_kernel, HEADS, LENGTH, **options)
    }  # fmt: skip


def inner_ours(rounds: int) -> None:
    """What runs under Nsight Compute: each kernel without and with records in turns."""
    attention_kernel = attention_module.attention_kernel
    for launch in launches(scoped_kernels, TensorDescriptor, attention_kernel, "ours").values():
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


def inner_triton(name: str, rounds: int) -> None:
    """The same of Triton's Proton in one mode. It ends before Triton writes its trace, which takes
    a minute."""
    import triton.profiler as profiler
    from triton.profiler import mode
    from triton.tools.tensor_descriptor import TensorDescriptor as TritonDescriptor

    kernels = triton_module(scoped_kernels, has_scopes=True)
    theirs = triton_module(attention_module, has_scopes=True).attention_kernel
    known = launches(kernels, TritonDescriptor, theirs, "triton")
    refused = set()
    with tempfile.TemporaryDirectory() as folder:
        for is_recorded in (False, True):
            if is_recorded:
                chosen = mode.Default(**MODES[name])
                profiler.start(
                    f"{folder}/trace", data="trace", backend="instrumentation", mode=chosen
                )
            for kernel, launch in known.items():
                try:
                    for _ in range(1 + rounds):
                        launch()
                    torch.cuda.synchronize()
                except Exception as error:  # whatever it says of a kernel it cannot record
                    refused.add(kernel)
                    said = str(error).strip().splitlines() or [type(error).__name__]
                    print(f"{REFUSED}{kernel}: {said[0][:100]}")
    sys.stdout.flush()
    os._exit(0)


def row(kernel: str, whose: str, values: list[float], rounds: int) -> list[str]:
    """A row of the table: of us in the order in which they were taken."""
    count = 1 + rounds
    if len(values) != 2 * count:
        return [kernel, whose, f"{len(values)} of {2 * count} launches", "", "", ""]
    if whose == "Proton":
        pairs = list(zip(values[2::2], values[3::2], strict=True))
    else:
        pairs = list(zip(values[1:count], values[count + 1 :], strict=True))
    off, on = (statistics.median(of) for of in zip(*pairs, strict=True))
    percent = 100 * (on / off - 1)
    bar = f"{BARS[kernel]:.1f}" if whose == "Proton" else ""
    verdict = ("met" if percent <= BARS[kernel] else "MISSED") if bar else ""
    return [kernel, whose, f"{off:.1f}", f"{on:.1f}", f"{percent:.2f}", bar, verdict]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    known = ["ours", *MODES]
    parser.add_argument("--only", nargs="+", choices=known, default=known)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--inner", default=None, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inner == "ours":
        return inner_ours(options.rounds)
    if options.inner:
        return inner_triton(options.inner, options.rounds)
    table = Table("kernel", "profiler", "off, us", "on, us", "slower, %", "bar, %", "",
                  title="cost of scopes")  # fmt: skip
    for name in options.only:
        arguments = ("--inner", name, "--rounds", str(options.rounds))
        found, printed = nsight.kernel_times(__file__, *arguments, names=NAMES)
        whose = "Proton" if name == "ours" else f"Triton's, {name}"
        for kernel, values in found.items():
            table.add_row(*row(kernel, whose, values, options.rounds))
        for line in printed.splitlines():
            if line.startswith(REFUSED):
                print(f"{whose} {line}")
    Console(width=130).print(table)


if __name__ == "__main__":
    main()
