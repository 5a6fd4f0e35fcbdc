"""Products of matrices on a GPU: the same source by Proton and by Triton, and cuBLAS, in one run.

    python benchmarks/gpu_matmul.py [--only fp16] [--sizes 8192x8192x8192 ...] [--rounds 10]
                                    [--descriptors] [--json FILE]

With `--descriptors` the kernels are persistent ones that take tensor descriptors of the host.
Each compiler has the best of the same configurations (in_turns.py); all take turns, and medians of
the rounds count. A round is as many launches as take about 30 ms, between two CUDA events. TFLOP/s
are 2 M N K over the time of one. Inputs are random; results are checked against torch in fp32.
"""

import argparse
import json
import math
import statistics
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from in_turns import Candidate, Launch, fastest, finalists
from peers import triton_module
from rich.console import Console
from rich.table import Table

import proton
from kernels import matmul, matmul_persistent
from proton.tools.tensor_descriptor import TensorDescriptor

Shape = tuple[int, int, int]

SHAPES: list[Shape] = [
    (512, 512, 512),
    (1024, 1024, 1024),
    (2048, 2048, 2048),
    (4096, 4096, 4096),
    (8192, 8192, 8192),
    (16384, 16384, 16384),
    (128, 8192, 8192),
    (8192, 128, 8192),
    (8192, 8192, 128),
    (64, 8192, 8192),
    (8191, 8191, 8191),
]
# fp8 is added up in fp32, and given as fp16; int8 needs `--descriptors`.
OUTPUTS = {"fp16": torch.float16, "bf16": torch.bfloat16, "fp8": torch.float16, "int8": torch.int32}
DTYPES = {
    "fp16": torch.float16,
    "bf16": torch.bfloat16,
    "fp8": torch.float8_e4m3fn,
    "int8": torch.int8,
}
ONE_BYTE = "fp8", "int8"
NAMES = ("Proton", "Triton", "cuBLAS")


@dataclass(frozen=True)
class Configuration:
    """Blocks and options of a launch."""

    m: int
    n: int
    k: int
    warps: int
    stages: int

    @property
    def options(self) -> dict[str, int]:
        return {
            "BLOCK_M": self.m,
            "BLOCK_N": self.n,
            "BLOCK_K": self.k,
            "GROUP_M": 8,
            "num_warps": self.warps,
            "num_stages": self.stages,
        }

    def __str__(self) -> str:
        return f"{self.m}x{self.n}x{self.k}, {self.warps} warps, {self.stages} stages"


CONFIGURATIONS = [
    Configuration(128, 256, 64, 8, 3),
    Configuration(256, 128, 64, 8, 3),
    Configuration(128, 256, 64, 8, 4),
    Configuration(128, 128, 64, 8, 4),
    Configuration(128, 128, 64, 4, 3),
    Configuration(64, 256, 64, 4, 4),
    Configuration(64, 128, 64, 4, 4),
    Configuration(64, 64, 64, 4, 5),
    # Of few rows or columns: many copies under way.
    Configuration(128, 64, 64, 4, 7),
    Configuration(64, 128, 64, 4, 7),
]
ONE_BYTE_CONFIGURATIONS = [
    Configuration(128, 256, 128, 8, 3),
    Configuration(256, 128, 128, 8, 3),
    Configuration(128, 128, 128, 8, 4),
    Configuration(128, 128, 128, 4, 3),
    Configuration(64, 128, 128, 4, 4),
    Configuration(128, 64, 128, 4, 7),
    Configuration(64, 128, 128, 4, 7),
]


def inputs(shape: Shape, dtype: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Random matrices. Of one byte the right one is transposed, as the hardware takes it."""
    m, n, k = shape
    if dtype == "int8":
        a, b = (
            torch.randint(-128, 128, s, device="cuda", dtype=torch.int8) for s in ((m, k), (n, k))
        )
        return a, b.t()
    a = torch.randn(m, k, device="cuda", dtype=torch.float16)
    if dtype == "fp8":
        b = torch.randn(n, k, device="cuda", dtype=torch.float16).t()
    else:
        b = torch.randn(k, n, device="cuda", dtype=torch.float16)
    return a.to(DTYPES[dtype]), b.to(DTYPES[dtype])


@dataclass(frozen=True)
class Kernel:
    """One compiler's kernel; `descriptor` is its class of tensor descriptors, if it takes such."""

    function: Any
    descriptor: Any = None


def launcher(
    kernel: Kernel, tensors: tuple[torch.Tensor, ...], shape: Shape, configuration: Configuration
) -> Launch:
    m, n, k = shape
    blocks = proton.cdiv(m, configuration.m) * proton.cdiv(n, configuration.n)
    options = configuration.options
    if kernel.descriptor is None:
        strides = [x.stride(axis) for x in tensors for axis in (0, 1)]
        return lambda: kernel.function[(blocks,)](*tensors, m, n, k, *strides, **options)
    of = {name: options.pop(f"BLOCK_{name}") for name in "MNK"}
    a, b, out = tensors
    options["TRANSPOSED"] = is_transposed = b.stride(1) != 1
    right = (b.t(), [of["N"], of["K"]]) if is_transposed else (b, [of["K"], of["N"]])
    given = ((a, [of["M"], of["K"]]), right, (out, [of["M"], of["N"]]))
    descriptors = [kernel.descriptor.from_tensor(x, block) for x, block in given]
    grid = (min(blocks, torch.cuda.get_device_properties(0).multi_processor_count),)
    return lambda: kernel.function[grid](*descriptors, **options)


def kernels(descriptors: bool) -> dict[str, Kernel]:
    """Of both compilers."""
    if not descriptors:
        return {
            "proton": Kernel(matmul.matmul_kernel),
            "triton": Kernel(triton_module(matmul).matmul_kernel),
        }
    from triton.tools.tensor_descriptor import TensorDescriptor as TritonDescriptor

    theirs = triton_module(matmul_persistent).matmul_descriptors_kernel
    return {
        "proton": Kernel(matmul_persistent.matmul_descriptors_kernel, TensorDescriptor),
        "triton": Kernel(theirs, TritonDescriptor),
    }


def by_torch(a: torch.Tensor, b: torch.Tensor, out: torch.Tensor, dtype: str) -> Launch:
    if dtype == "int8":
        return lambda: torch._int_mm(a, b, out=out)
    if dtype != "fp8":
        return lambda: torch.matmul(a, b, out=out)
    one = torch.ones((), device="cuda")
    return lambda: torch._scaled_mm(a, b, one, one, out_dtype=torch.float16, use_fast_accum=True)


def check(kernel: Kernel, shape: Shape, dtype: str, configuration: Configuration) -> float:
    """The largest error of an element, over the product's root mean square."""
    a, b = inputs(shape, dtype)
    out = torch.empty(shape[:2], device="cuda", dtype=OUTPUTS[dtype])
    out.view(torch.uint8).fill_(255)  # NaN, or -1
    launcher(kernel, (a, b, out), shape, configuration)()
    exact = torch.float64 if dtype == "int8" else torch.float32
    want = a.to(exact) @ b.to(exact)
    return float((out.to(exact) - want).abs().max() / want.square().mean().sqrt())


def measure(shape: Shape, dtype: str, rounds: int, compared: dict[str, Kernel]) -> dict[str, Any]:
    m, n, k = shape
    a, b = inputs(shape, dtype)
    out = torch.empty(m, n, device="cuda", dtype=OUTPUTS[dtype])
    known = ONE_BYTE_CONFIGURATIONS if dtype in ONE_BYTE else CONFIGURATIONS
    contenders = {
        name: finalists((one, launcher(kernel, (a, b, out), shape, one)) for one in known)
        for name, kernel in compared.items()
    }
    if dtype not in ONE_BYTE or all(size % 16 == 0 for size in shape):
        contenders["cublas"] = [Candidate(None, by_torch(a, b, out, dtype))]
    row: dict[str, Any] = {"dtype": dtype, "shape": shape}
    for name, (candidate, ms) in fastest(contenders, rounds).items():
        row[name] = 2 * m * n * k / ms / 1e9
        if isinstance(candidate.configuration, Configuration):
            row[f"{name}_configuration"] = str(candidate.configuration)
            row[f"{name}_first_s"] = candidate.first_s
            row[f"{name}_error"] = check(compared[name], shape, dtype, candidate.configuration)
    return row


def shape_of(text: str) -> Shape:
    m, n, k = map(int, text.split("x"))
    return m, n, k


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", default=list(DTYPES), choices=list(DTYPES))
    parser.add_argument("--sizes", nargs="*", default=None, help="MxNxK")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--descriptors", action="store_true")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    shapes = SHAPES
    if arguments.sizes:
        shapes = [shape_of(text) for text in arguments.sizes]
    compared = kernels(arguments.descriptors)
    if "int8" in arguments.only and not arguments.descriptors:
        arguments.only.remove("int8")  # the kernel by pointers adds up in fp32
    table = Table("dtype", "M x N x K", *NAMES, "/ Triton", "/ cuBLAS", "error", "configurations")
    table.title = "TFLOP/s"
    rows = []
    for dtype in arguments.only:
        for shape in shapes:
            needs_aligned = dtype in ONE_BYTE or arguments.descriptors
            if needs_aligned and any(size % 16 for size in shape):
                continue
            row = measure(shape, dtype, arguments.rounds, compared)
            rows.append(row)
            print(json.dumps(row), flush=True)
            cublas = row.get("cublas")
            table.add_row(
                dtype,
                " x ".join(map(str, shape)),
                f"{row['proton']:.0f}",
                f"{row['triton']:.0f}",
                f"{cublas:.0f}" if cublas else "",
                f"{row['proton'] / row['triton']:.3f}",
                f"{row['proton'] / cublas:.3f}" if cublas else "",
                f"{row['proton_error']:.1e}",
                f"{row['proton_configuration']}; {row['triton_configuration']}",
            )
    console = Console(width=200)
    console.print(table)
    for dtype in arguments.only:
        for peer in ("triton", "cublas"):
            of = [
                row["proton"] / row[peer] for row in rows if row["dtype"] == dtype and peer in row
            ]
            if of:
                mean = math.exp(statistics.fmean(map(math.log, of)))
                console.print(
                    f"{dtype}: {mean:.3f} of {peer} (geometric mean), least {min(of):.3f}"
                )
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
