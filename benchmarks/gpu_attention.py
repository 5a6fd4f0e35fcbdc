"""Attention, forward, on a GPU: the same source by Proton and by Triton, and torch's own (SDPA).

    python benchmarks/gpu_attention.py [--only fp16] [--causal 0 1] [--descriptors] [--rounds 10]
        [--json FILE]

Each compiler has the best of the same configurations (in_turns.py); all take turns, and medians of
the rounds count. TFLOP/s count 4 x batch x heads x length^2 x D operations, half of them where the
attention is causal. Results are checked against torch in fp32. With fp8 (e4m3) v lies transposed
in memory and results are fp16; torch, which has no attention of fp8, has the same numbers as fp16.
"""

import argparse
import functools
import json
import math
from pathlib import Path
from typing import Any

import torch
from in_turns import Candidate, Launch, fastest, finalists
from peers import triton_module
from rich.console import Console
from rich.table import Table

import proton
from kernels import attention

DTYPES = {"fp16": torch.float16, "bf16": torch.bfloat16, "fp8": torch.float8_e4m3fn}
SHAPES = [(4, 32, 4096, 128), (4, 32, 4096, 64), (1, 32, 16384, 128), (4, 16, 8192, 64),
          (8, 16, 1000, 128)]  # fmt: skip
CONFIGURATIONS = [
    {"BLOCK_M": m, "BLOCK_N": n, "num_warps": w, "num_stages": s, "OVERLAP": overlap}
    for m, n, w, s in (
        (128, 128, 8, 3),
        (128, 128, 8, 2),
        (128, 64, 8, 3),
        (128, 64, 8, 2),
        (64, 64, 4, 3),
        (64, 128, 4, 2),
    )
    for overlap in (False, True)
]


DESCRIPTORS = [
    {"block_m": 128, "block_n": n, "num_warps": 8, "num_stages": s}
    for n in (128, 64)
    for s in (2, 3)
]


def launcher_of_descriptors(
    compiler: str,
    kernel: Any,
    tensors: tuple[torch.Tensor, ...],
    causal: bool,
    given: dict[str, int],
) -> Launch:
    """A launch of `attention_descriptors_kernel` by a compiler."""
    if compiler == "triton":
        from triton.tools.tensor_descriptor import TensorDescriptor
    else:
        from proton.tools.tensor_descriptor import TensorDescriptor
    q, k, v, out, lse = tensors
    batch, heads, length, head = q.shape
    options = dict(given)
    m, n = options.pop("block_m"), options.pop("block_n")
    blocks = [
        TensorDescriptor.from_tensor(x, [1, 1, rows, head])
        for x, rows in zip((q, k, v, out), (m, n, n, m), strict=True)
    ]
    grid, scale = (proton.cdiv(length, m), batch * heads), 1 / math.sqrt(head)
    return lambda: kernel[grid](*blocks, lse, heads, length, scale, CAUSAL=causal, **options)


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


def inputs(shape: tuple[int, ...], dtype: str) -> list[torch.Tensor]:
    """q, k and v; of 8-bit floats v is transposed in memory."""
    q, k, v = (torch.randn(shape, device="cuda").to(DTYPES[dtype]) for _ in range(3))
    if v.itemsize == 1:
        v = v.transpose(2, 3).contiguous().transpose(2, 3)
    return [q, k, v]


def measure(
    shape: tuple[int, ...], dtype: str, causal: bool, rounds: int, peer: Any, descriptors: bool
) -> dict[str, Any]:
    q, k, v = inputs(shape, dtype)
    wide = [x.half() if x.itemsize == 1 else x for x in (q, k, v)]
    batch, heads, length, head = shape
    row: dict[str, Any] = {"shape": shape, "dtype": dtype, "causal": causal}
    want = torch.nn.functional.scaled_dot_product_attention(
        *(x[:1, :2].float() for x in (q, k, v)), is_causal=causal
    )
    out = torch.empty_like(wide[0])
    lse = torch.empty(batch * heads, length, device="cuda")
    tensors = (q, k, v, out, lse)
    contenders = {}
    for name, module in (("proton", attention), ("triton", peer)):
        if descriptors:
            made = functools.partial(
                launcher_of_descriptors, name, module.attention_descriptors_kernel
            )
        else:
            made = functools.partial(launcher, module.attention_kernel)
        configurations = DESCRIPTORS if descriptors else CONFIGURATIONS
        contenders[name] = finalists((one, made(tensors, causal, one)) for one in configurations)
    by_torch = torch.nn.functional.scaled_dot_product_attention
    contenders["torch"] = [Candidate(None, lambda: by_torch(*wide, is_causal=causal))]
    work = 4 * batch * heads * length * length * head / (2 if causal else 1)
    for name, (candidate, ms) in fastest(contenders, rounds).items():
        row[name] = work / ms / 1e9
        if name == "torch":
            continue
        out.fill_(math.nan)
        candidate.launch()
        row[f"{name}_error"] = float((out[:1, :2].float() - want).abs().max())
        row[f"{name}_nan"] = bool(out.isnan().any())
        row[f"{name}_configuration"] = candidate.configuration
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", default=list(DTYPES), choices=list(DTYPES))
    parser.add_argument("--causal", nargs="*", type=int, default=[0, 1])
    parser.add_argument("--shapes", type=int, default=len(SHAPES), help="the first so many")
    parser.add_argument("--descriptors", action="store_true", help="by TMA; not fp8")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    peer = triton_module(attention)
    table = Table("shape", "dtype", "causal", "Proton", "Triton", "torch", "/ Triton", "/ torch",
                  "error", "configurations", title="TFLOP/s")  # fmt: skip
    rows = []
    for dtype in arguments.only:
        for shape in SHAPES[: arguments.shapes]:
            for causal in map(bool, arguments.causal):
                row = measure(shape, dtype, causal, arguments.rounds, peer, arguments.descriptors)
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
