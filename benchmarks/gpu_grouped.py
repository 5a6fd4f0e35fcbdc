"""Grouped products on a GPU, whose descriptors the kernel makes: the same source by Proton and by
Triton, and Proton's kernel that takes pointers, in one run.

    python benchmarks/gpu_grouped.py [--rounds 20] [--json FILE]

Each has the best of the same configurations (in_turns.py); all take turns, and medians of the
rounds count. A round is as many launches as take about 30 ms, between two CUDA events. TFLOP/s are
2 M N K of all products over the time of one launch. Matrices are random fp16; results are checked
against torch in fp32.
"""

import argparse
import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from in_turns import Candidate, Launch, fastest, finalists
from peers import triton_module
from rich.console import Console
from rich.table import Table

import proton.language as tl
from kernels import grouped_gemm

Sizes = list[tuple[int, int, int]]

CASES: dict[str, Sizes] = {
    "4 of 512": [(512,) * 3] * 4,
    "16 of 1024": [(1024,) * 3] * 16,
    "8 of 4096 x 4096 x 1024": [(4096, 4096, 1024)] * 8,
    "32 of 64 to 2048 x 2048 x 2048": [(64 * (1 + 7 * i % 32), 2048, 2048) for i in range(32)],
    "64 of 1 to 200 x 1024 x 2048": [(1 + 53 * i % 200, 1024, 2048) for i in range(64)],
}
CONFIGURATIONS = [
    {"BLOCK_M": m, "BLOCK_N": n, "BLOCK_K": 64, "num_warps": warps, "num_stages": stages}
    for m, n, warps, stages in (
        (128, 128, 8, 3),
        (128, 128, 8, 4),
        (128, 256, 8, 3),
        (128, 128, 4, 3),
        (64, 128, 4, 4),
    )
]


@dataclass(frozen=True)
class Kernel:
    """A compiler's kernel, with what only that one takes."""

    function: Any
    language: Any
    options: dict[str, Any]
    programs_per_sm: int = 1


def kernels() -> dict[str, Kernel]:
    import triton
    import triton.language

    triton.set_allocator(lambda size, *_: torch.empty(size, dtype=torch.int8, device="cuda"))
    theirs = triton_module(grouped_gemm)
    return {
        "proton": Kernel(grouped_gemm.grouped_gemm_descriptors_kernel, tl, {}),
        "triton": Kernel(theirs.grouped_gemm_descriptors_kernel, triton.language, {}),
        "pointers": Kernel(
            grouped_gemm.grouped_gemm_kernel, tl, {"MULTIPLE": grouped_gemm.ALIGNMENT}, 2
        ),
    }


def launcher(
    kernel: Kernel, triples: list[list[torch.Tensor]], sizes: Sizes, options: dict[str, int]
) -> Launch:
    sms = torch.cuda.get_device_properties(0).multi_processor_count
    addresses = torch.tensor([[x.data_ptr() for x in each] for each in triples], device="cuda")
    strides = [[x.stride(0) for x in each] for each in triples]
    numbers = [torch.tensor(x, dtype=torch.int32, device="cuda") for x in (sizes, strides)]
    given = addresses, *numbers, len(sizes)
    types = {"DTYPE": kernel.language.float16, "OUT_DTYPE": kernel.language.float16}
    grid = (sms * kernel.programs_per_sm,)
    return lambda: kernel.function[grid](*given, **types, **kernel.options, **options)


def error_of(triples: list[list[torch.Tensor]]) -> float:
    """The largest error of an element, over its product's root mean square."""
    errors = []
    for a, b, c in triples:
        want = a.float() @ b.float()
        errors.append(float((c.float() - want).abs().max() / want.square().mean().sqrt()))
    return float(torch.tensor(errors).max())  # NaN, which Python's `max` may pass over, is the most


def measure(sizes: Sizes, rounds: int, compared: dict[str, Kernel]) -> dict[str, Any]:
    pairs = [
        (torch.randn(m, k, device="cuda").half(), torch.randn(k, n, device="cuda").half())
        for m, n, k in sizes
    ]
    row: dict[str, Any] = {}
    contenders: dict[str, list[Candidate]] = {}
    made: dict[str, list[list[torch.Tensor]]] = {}
    for name, kernel in compared.items():
        made[name] = triples = [
            [a, b, torch.full((a.shape[0], b.shape[1]), math.nan, device="cuda").half()]
            for a, b in pairs
        ]
        contenders[name] = finalists(
            (one, launcher(kernel, triples, sizes, one)) for one in CONFIGURATIONS
        )
    operations = sum(2 * m * n * k for m, n, k in sizes)
    for name, (candidate, ms) in fastest(contenders, rounds).items():
        row[f"{name}_us"], row[name] = 1000 * ms, operations / ms / 1e9
        row[f"{name}_configuration"] = candidate.configuration
        for _, _, c in made[name]:
            c.fill_(math.nan)
        candidate.launch()
        row[f"{name}_error"] = error_of(made[name])
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    compared = kernels()
    table = Table("products", "Proton us", "Triton us", "pointers us", "/ Triton", "/ pointers",
                  "TFLOP/s", "error", title="grouped products, fp16")  # fmt: skip
    rows = []
    for name, sizes in CASES.items():
        row = {"case": name} | measure(sizes, arguments.rounds, compared)
        rows.append(row)
        print(json.dumps(row), flush=True)
        table.add_row(
            name,
            *(f"{row[f'{who}_us']:.1f}" for who in compared),
            f"{row['proton'] / row['triton']:.3f}",
            f"{row['proton'] / row['pointers']:.3f}",
            f"{row['proton']:.0f}",
            f"{row['proton_error']:.1e}",
        )
    Console(width=160).print(table)
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
