"""Attention, forward, on a GPU: the same source by Proton and by Triton, and torch's own (SDPA).

    python benchmarks/gpu_attention.py [--only fp16] [--causal 0 1] [--rounds 10] [--json FILE]

Each compiler has the best of the same configurations; then the three take turns, and medians of the
rounds count. TFLOP/s count 4 x batch x heads x length^2 x D operations, half of them where the
attention is causal. Results are checked against torch in fp32. With fp8 (e4m3) v lies transposed
in memory and results are fp16; torch, which has no attention of fp8, has the same numbers as fp16.
"""

import argparse
import functools
import json
import math
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from gpu_matmul import Launch, milliseconds
from peers import triton_module
from rich.console import Console
from rich.table import Table

import proton
from proton.kernels import attention

DTYPES = {"fp16": torch.float16, "bf16": torch.bfloat16, "fp8": torch.float8_e4m3fn}
SHAPES = [(4, 32, 4096, 128), (4, 32, 4096, 64), (1, 32, 16384, 128), (4, 16, 8192, 64),
          (8, 16, 1000, 128)]  # fmt: skip
ROUND_MS = 30
CONFIGURATIONS = [
    {"BLOCK_M": m, "BLOCK_N": n, "num_warps": w, "num_stages": s, "OVERLAP": overlap}
    for m, n, w, s in (
        (128, 128, 8, 2),
        (128, 64, 8, 3),
        (128, 64, 8, 2),
        (64, 64, 4, 3),
        (64, 128, 4, 2),
    )
    for overlap in (False, True)
]


def launcher(
    kernel: Any, tensors: tuple[torch.Tensor, ...], causal: bool, configuration: dict[str, Any]
) -> Launch:
    q = tensors[0]
    batch, heads, length, head = q.shape
    grid = (proton.cdiv(length, configuration["BLOCK_M"]), batch * heads)
    strides = [x.stride(axis) for x in tensors[:4] for axis in range(3)]
    scale = 1 / math.sqrt(head)
    return lambda: kernel[grid](
        *tensors, *strides, heads, length, scale, HEAD=head, CAUSAL=causal,
        stride_vd=tensors[2].stride(3), **configuration,
    )  # fmt: skip


def best(
    launches: Callable[[dict[str, Any]], Launch], configurations: list[dict[str, Any]]
) -> tuple[dict[str, Any], Launch]:
    """The fastest of the configurations that fit, and its launch."""
    found = []
    for configuration in configurations:
        launch = launches(configuration)
        try:
            milliseconds(launch, 2)
        except Exception as error:
            if "resource" not in str(type(error)).lower() + str(error).lower():
                raise
            continue
        time = statistics.median(milliseconds(launch, 4) for _ in range(3))
        found.append((time, configuration, launch))
    _, configuration, launch = min(found, key=lambda entry: entry[0])
    return configuration, launch


def inputs(shape: tuple[int, ...], dtype: str) -> list[torch.Tensor]:
    """q, k and v; of 8-bit floats v is transposed in memory."""
    q, k, v = (torch.randn(shape, device="cuda").to(DTYPES[dtype]) for _ in range(3))
    if v.itemsize == 1:
        v = v.transpose(2, 3).contiguous().transpose(2, 3)
    return [q, k, v]


def measure(
    shape: tuple[int, ...], dtype: str, causal: bool, rounds: int, peer: Any
) -> dict[str, Any]:
    q, k, v = inputs(shape, dtype)
    wide = [x.half() if x.itemsize == 1 else x for x in (q, k, v)]
    batch, heads, length, head = shape
    row: dict[str, Any] = {"shape": shape, "dtype": dtype, "causal": causal}
    launches: dict[str, Launch] = {}
    want = torch.nn.functional.scaled_dot_product_attention(
        *(x[:1, :2].float() for x in (q, k, v)), is_causal=causal
    )
    for name, kernel in (("proton", attention.attention_kernel), ("triton", peer)):
        out = torch.full_like(wide[0], math.nan)
        lse = torch.empty(batch * heads, length, device="cuda")
        launches_of = functools.partial(launcher, kernel, (q, k, v, out, lse), causal)
        configuration, launches[name] = best(launches_of, CONFIGURATIONS)
        out.fill_(math.nan)
        launches[name]()
        row[f"{name}_error"] = float((out[:1, :2].float() - want).abs().max())
        row[f"{name}_nan"] = bool(out.isnan().any())
        row[f"{name}_configuration"] = configuration
    launches["torch"] = lambda: torch.nn.functional.scaled_dot_product_attention(
        *wide, is_causal=causal
    )
    times: dict[str, list[float]] = {name: [] for name in launches}
    for launch in launches.values():
        milliseconds(launch, 2)
    counts = {n: max(1, round(ROUND_MS / milliseconds(f, 3))) for n, f in launches.items()}
    for _ in range(rounds):
        for name, launch in launches.items():
            times[name].append(milliseconds(launch, counts[name]))
    work = 4 * batch * heads * length * length * head / (2 if causal else 1)
    for name, taken in times.items():
        row[name] = work / statistics.median(taken) / 1e9
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", default=list(DTYPES), choices=list(DTYPES))
    parser.add_argument("--causal", nargs="*", type=int, default=[0, 1])
    parser.add_argument("--shapes", type=int, default=len(SHAPES), help="the first so many")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    peer = triton_module(attention).attention_kernel
    table = Table("shape", "dtype", "causal", "Proton", "Triton", "torch", "/ Triton", "/ torch",
                  "error", "configurations", title="TFLOP/s")  # fmt: skip
    rows = []
    for dtype in arguments.only:
        for shape in SHAPES[: arguments.shapes]:
            for causal in map(bool, arguments.causal):
                row = measure(shape, dtype, causal, arguments.rounds, peer)
                rows.append(row)
                print(json.dumps(row), flush=True)
                table.add_row(
                    " x ".join(map(str, shape)),
                    dtype,
                    "yes" if causal else "no",
                    *(f"{row[name]:.0f}" for name in ("proton", "triton", "torch")),
                    f"{row['proton'] / row['triton']:.3f}",
                    f"{row['proton'] / row['torch']:.3f}",
                    f"{row['proton_error']:.1e}",
                    "; ".join(
                        " ".join(str(int(x)) for x in row[f"{name}_configuration"].values())
                        for name in ("proton", "triton")
                    ),
                )
    Console(width=180).print(table)
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
