"""Kernels on a GPU: the same source by Proton, by Triton, and torch's own, in one run.

    python benchmarks/gpu_kernels.py [--only softmax] [--repeats 30] [--json FILE]

Times are of CUDA events around one launch, with the L2 cache flushed before each; medians. Each
compiler gets the best of the same few configurations. Bandwidth counts each input once and each
output once. `ratio` is Proton's bandwidth over Triton's. Inputs are random, results are checked
against torch.
"""

import argparse
import json
import statistics
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import widening_kernels
from peers import triton_module
from rich.console import Console
from rich.table import Table

import proton
from kernels import layer_norm, softmax, vector_add

FLUSH_BYTES = 256 << 20
EPSILON = 1e-5
Launch = Callable[[], Any]


@dataclass(frozen=True, kw_only=True)
class Problem:
    """One size of one kernel. `launch(module, configuration)` makes a call of the kernel."""

    name: str
    size: str
    bytes: int
    module: Any
    launch: Callable[[Any, dict[str, int]], Launch]
    configurations: list[dict[str, int]]
    torch: Launch
    outputs: Callable[[], torch.Tensor]
    tolerance: float


def vector_add_problem(n: int) -> Problem:
    x, y = (torch.randn(n, device="cuda") for _ in range(2))
    out = torch.empty_like(x)

    def launch(module: Any, configuration: dict[str, int]) -> Launch:
        kernel, grid = module.add_kernel, (proton.cdiv(n, configuration["BLOCK"]),)
        return lambda: kernel[grid](x, y, out, n, **configuration)

    return Problem(
        name="vector add",
        size=f"{n}",
        bytes=3 * 4 * n,
        module=vector_add,
        launch=launch,
        configurations=[{"BLOCK": b, "num_warps": w} for b in (1024, 2048, 4096) for w in (4, 8)],
        torch=lambda: torch.add(x, y, out=out),
        outputs=lambda: out,
        tolerance=0.0,
    )


def shares(rows: int) -> list[int]:
    """Rows of a program, for about 132 * k programs."""
    return sorted({max(1, proton.cdiv(rows, 132 * k)) for k in (2, 4, 8, 16)} | {1})


def softmax_problem(rows: int, columns: int) -> Problem:
    x = torch.randn(rows, columns, device="cuda")
    out = torch.empty_like(x)
    block = proton.next_power_of_2(columns)

    def launch(module: Any, configuration: dict[str, int]) -> Launch:
        options = dict(configuration)
        share = options.pop("share")
        kernel, grid = module.softmax_kernel, (proton.cdiv(rows, share),)
        return lambda: kernel[grid](
            x, out, columns, columns, rows, columns, share, BLOCK=block, **options
        )

    return Problem(
        name="softmax",
        size=f"{rows} x {columns}",
        bytes=2 * 4 * rows * columns,
        module=softmax,
        launch=launch,
        configurations=[
            {"share": s, "num_warps": w, "STAGES": stages}
            for s in shares(rows)
            for w in warps(columns)
            for stages in ((1, 2, 3) if s > 1 else (1,))
        ],
        torch=lambda: torch.softmax(x, 1, out=out),
        outputs=lambda: out,
        tolerance=1e-5,
    )


def warps(columns: int) -> list[int]:
    """Warps worth trying for rows of a length."""
    return [4, 8] if columns <= 2048 else [8, 16, 32]


def layer_norm_problem(rows: int, columns: int) -> Problem:
    x = torch.randn(rows, columns, device="cuda", dtype=torch.float16)
    weight, bias = (torch.randn(columns, device="cuda", dtype=torch.float16) for _ in range(2))
    out = torch.empty_like(x)
    mean, rstd = (torch.empty(rows, device="cuda") for _ in range(2))
    block = proton.next_power_of_2(columns)

    def launch(module: Any, configuration: dict[str, int]) -> Launch:
        options = dict(configuration)
        share = options.pop("share")
        kernel, grid = module.layer_norm_kernel, (proton.cdiv(rows, share),)
        return lambda: kernel[grid](
            x, weight, bias, out, mean, rstd, columns, rows, columns, share, EPSILON,
            BLOCK=block, **options,
        )  # fmt: skip

    def by_torch() -> Any:
        return out.copy_(torch.layer_norm(x, (columns,), weight, bias, EPSILON))

    return Problem(
        name="layer norm",
        size=f"{rows} x {columns}",
        bytes=2 * 2 * rows * columns,
        module=layer_norm,
        launch=launch,
        configurations=[{"share": s, "num_warps": w} for s in shares(rows) for w in warps(columns)],
        torch=by_torch,
        outputs=lambda: out,
        tolerance=1e-2,
    )


def cast_problem(n: int) -> Problem:
    x = torch.randn(n, device="cuda", dtype=torch.bfloat16)
    out = torch.empty(n, device="cuda")

    def launch(module: Any, configuration: dict[str, int]) -> Launch:
        kernel, grid = module.cast_kernel, (proton.cdiv(n, configuration["BLOCK"]),)
        return lambda: kernel[grid](x, out, n, **configuration)

    return Problem(
        name="bf16 to fp32",
        size=f"{n}",
        bytes=(2 + 4) * n,
        module=widening_kernels,
        launch=launch,
        configurations=[{"BLOCK": b, "num_warps": w} for b, w in ((1024, 4), (2048, 8), (4096, 8))],
        torch=lambda: out.copy_(x),
        outputs=lambda: out,
        tolerance=0.0,
    )


def rms_norm_problem(rows: int, columns: int) -> Problem:
    x = torch.randn(rows, columns, device="cuda", dtype=torch.bfloat16)
    out = torch.empty(rows, columns, device="cuda")
    block = proton.next_power_of_2(columns)

    def launch(module: Any, configuration: dict[str, int]) -> Launch:
        kernel = module.rms_norm_kernel
        return lambda: kernel[rows,](x, out, columns, EPSILON, BLOCK=block, **configuration)

    return Problem(
        name="rms norm, bf16 to fp32",
        size=f"{rows} x {columns}",
        bytes=(2 + 4) * rows * columns,
        module=widening_kernels,
        launch=launch,
        configurations=[{"num_warps": w} for w in warps(columns)],
        torch=lambda: out.copy_(torch.rms_norm(x.float(), (columns,), None, EPSILON)),
        outputs=lambda: out,
        tolerance=1e-2,
    )


PROBLEMS: dict[str, list[Callable[[], Problem]]] = {
    "vector add": [lambda n=n: vector_add_problem(n) for n in (1 << 20, 1 << 24, 1 << 28)],
    "softmax": [
        lambda s=s: softmax_problem(*s) for s in ((16384, 1024), (16384, 4096), (16384, 8192))
    ],
    "layer norm": [
        lambda s=s: layer_norm_problem(*s) for s in ((16384, 1024), (16384, 4096), (16384, 8192))
    ],
    "cast": [lambda n=n: cast_problem(n) for n in (1 << 24, 1 << 26)],
    "rms norm": [lambda s=s: rms_norm_problem(*s) for s in ((16384, 4096), (8192, 8192))],
}


def time_of(launch: Launch, flush: torch.Tensor, repeats: int) -> float:
    """Seconds of a launch on the GPU: the median, with a cold cache."""
    launch()
    launch()
    events = [[torch.cuda.Event(enable_timing=True) for _ in range(2)] for _ in range(repeats)]
    for begin, end in events:
        flush.zero_()
        begin.record()
        launch()
        end.record()
    torch.cuda.synchronize()
    return statistics.median(begin.elapsed_time(end) for begin, end in events) / 1e3


def best(
    problem: Problem, module: Any, flush: torch.Tensor, repeats: int
) -> tuple[float, dict[str, int], Any]:
    """(seconds, configuration, compiled kernel) of the fastest configuration."""
    found = []
    for number, configuration in enumerate(problem.configurations):
        launch = problem.launch(module, configuration)
        found.append((time_of(launch, flush, max(5, repeats // 4)), number, launch))
    _, number, launch = min(found, key=lambda entry: entry[:2])
    kernel = launch()
    return time_of(launch, flush, repeats), problem.configurations[number], kernel


def check(problem: Problem, launch: Launch) -> float:
    """The largest error of a launch against torch; the output is poisoned first."""
    out = problem.outputs()
    problem.torch()
    want = out.clone()
    out.fill_(float("nan"))
    launch()
    torch.cuda.synchronize()
    error = (out.float() - want.float()).abs().max().item()
    scale = max(1.0, want.float().abs().max().item())
    if not error / scale <= problem.tolerance:
        raise SystemExit(f"{problem.name} {problem.size}: wrong by {error}")
    return error


def compare(problem: Problem, flush: torch.Tensor, repeats: int) -> dict[str, Any]:
    """One row: bandwidths, registers and spills of both."""
    translated = triton_module(problem.module)
    ours, chosen, kernel = best(problem, problem.module, flush, repeats)
    check(problem, problem.launch(problem.module, chosen))
    theirs, their_choice, _ = best(problem, translated, flush, repeats)
    # Again, in turn: what drifts from one to the other is not a difference between them.
    ours = min(ours, time_of(problem.launch(problem.module, chosen), flush, repeats))
    theirs = min(theirs, time_of(problem.launch(translated, their_choice), flush, repeats))
    # Registers are compared at one configuration.
    same = problem.launch(translated, chosen)()
    by_torch = time_of(problem.torch, flush, repeats)
    sass = kernel.asm["sass"]
    return {
        "kernel": problem.name,
        "size": problem.size,
        "proton TB/s": problem.bytes / ours / 1e12,
        "triton TB/s": problem.bytes / theirs / 1e12,
        "torch TB/s": problem.bytes / by_torch / 1e12,
        "ratio": theirs / ours,
        "registers": f"{kernel.n_regs}/{same.n_regs}",
        "spills": f"{kernel.n_spills}/{same.n_spills}",
        "128-bit": f"{sass.count('LDG.E.128')}+{sass.count('STG.E.128')}",
        "proton's": text_of(chosen),
        "triton's": text_of(their_choice),
    }


def text_of(configuration: dict[str, int]) -> str:
    return " ".join(f"{name.removeprefix('num_')}={n}" for name, n in configuration.items())


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", action="append", choices=list(PROBLEMS), default=None)
    parser.add_argument("--repeats", type=int, default=30)
    parser.add_argument("--json", type=Path, default=None, help="write the rows there, too")
    options = parser.parse_args()
    flush = torch.empty(FLUSH_BYTES, dtype=torch.uint8, device="cuda")
    rows = [
        compare(make(), flush, options.repeats)
        for name in options.only or PROBLEMS
        for make in PROBLEMS[name]
    ]
    table = Table(*rows[0], title=torch.cuda.get_device_name())
    for row in rows:
        table.add_row(*(f"{v:.3f}" if isinstance(v, float) else v for v in row.values()))
    Console(width=170).print(table)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
