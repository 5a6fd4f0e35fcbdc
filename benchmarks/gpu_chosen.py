"""What the compiler's own choice of warps and stages costs on a GPU, against the best of all.

    python benchmarks/gpu_chosen.py [--only REGEX] [--json FILE]

Each kernel is launched without `num_warps` and `num_stages`, and with each pair of them that is
worth a try: those with dots with 4 to 16 warps and 2 to 5 stages, the others with 1 to 32 warps.
Times are those that CUPTI gives torch's profiler, medians, with a cold second-level cache.
"""

import argparse
import itertools
import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import combining_kernels
import engine_kernels
import faulty_kernels
import gpu_engine
import in_turns
import recorded_kernels
import torch

import kernels.layer_norm
import kernels.layer_norm_backward
import kernels.reduction
import kernels.softmax
import kernels.transpose
import kernels.vector_add
from proton.base.errors import ProtonError
from proton.tools.tensor_descriptor import TensorDescriptor

PROCESSES, LAUNCHES, FLUSH_BYTES = 15, 8, 256 << 20
WARPS, WARPS_OF_DOTS, STAGES = (1, 2, 4, 8, 16, 32), (4, 8, 16), (2, 3, 4, 5)
HALF, FLOAT = torch.float16, torch.float32
Options = dict[str, int]


@dataclass
class Case:
    """A launch whose warps, and with dots whose stages, are to be chosen."""

    name: str
    kernel: Any
    grid: tuple[int, ...]
    args: tuple[Any, ...]
    has_dots: bool = False

    def launch(self, options: Options) -> None:
        self.kernel[self.grid](*self.args, **options)

    @property
    def options(self) -> list[Options]:
        if not self.has_dots:
            return [{"num_warps": warps} for warps in WARPS]
        pairs = itertools.product(WARPS_OF_DOTS, STAGES)
        return [{"num_warps": warps, "num_stages": stages} for warps, stages in pairs]


def _rows(array: torch.Tensor, *block: int) -> TensorDescriptor:
    return TensorDescriptor(array, list(array.shape), [array.shape[1], 1], list(block))


def products() -> Iterator[Case]:
    size = 4096
    a, b, c = (torch.randn(size, size, dtype=HALF) for _ in range(3))
    for m, n, k in ((128, 256, 64), (128, 128, 64), (64, 128, 64), (64, 64, 64), (256, 128, 64)):
        given = _rows(a, m, k), _rows(b, k, n), _rows(c, m, n), size, m, n, k
        grid = size // m, size // n
        yield Case(f"product_tma {m}x{n}", recorded_kernels.product_by_tma, grid, given, True)
    for m, n, k in ((128, 256, 64), (128, 128, 32), (64, 64, 32), (16, 128, 128), (32, 32, 64)):
        grid, given = (size // m, size // n), (a, b, c, size, m, n, k)
        yield Case(f"product {m}x{n}", faulty_kernels.product, grid, given, True)


def attentions() -> Iterator[Case]:
    heads, length = 32, 4096
    for depth, blocks in ((128, ((128, 128), (64, 128), (128, 64))), (64, ((64, 64), (128, 64)))):
        q, k, v, out = (torch.randn(heads, length, depth, dtype=HALF) for _ in range(4))
        flat = [array.view(-1, depth) for array in (q, k, v, out)]
        for m, n in blocks:
            grid = length // m, heads
            for causal in (False, True):
                given = q, k, v, out, length, 0.1, m, n, depth, causal
                name = f"attention {m}x{n}x{depth}" + " causal" * causal
                yield Case(name, recorded_kernels.attention, grid, given, True)
            sizes = m, n, n, m
            rows = [_rows(array, size, depth) for array, size in zip(flat, sizes, strict=True)]
            given = *rows, length, 0.1, m, n, depth
            name = f"attention_tma {m}x{n}x{depth}"
            yield Case(name, recorded_kernels.attention_by_tma, grid, given, True)


def rows() -> Iterator[Case]:
    for columns in (256, 1024, 4096, 8192, 32768, 65536):
        count = (1 << 26) // columns
        x, out, dy = (torch.randn(count, columns, dtype=HALF) for _ in range(3))
        one, sums = torch.randn(columns, dtype=HALF), torch.zeros(count)
        softmax = x, out, columns, columns, count, columns, 8, columns
        yield Case(f"softmax {columns}", kernels.softmax.softmax_kernel, (count // 8,), softmax)
        norm = x, one, one, out, sums, sums, columns, count, columns, 1, 1e-5, columns
        yield Case(f"layer_norm {columns}", kernels.layer_norm.layer_norm_kernel, (count,), norm)
        parts = torch.zeros(512, columns)
        back = dy, x, one, sums, sums, out, parts, parts, columns, count, columns, count // 512
        yield Case(f"layer_norm_backward {columns}",
                   kernels.layer_norm_backward.layer_norm_backward_kernel, (512,),
                   (*back, columns))  # fmt: skip


def elements() -> Iterator[Case]:
    size, side = 1 << 26, 8192
    x, y, out = torch.randn(3, size)
    for block in (64, 256, 1024, 8192, 32768):
        given = x, y, out, size, block
        yield Case(f"add {block}", kernels.vector_add.add_kernel, (size // block,), given)
        share = max(1, size // block // 528)
        given = x, out, size, share, block
        yield Case(f"sum {block}", kernels.reduction.sum_kernel, (size // block // share,), given)
    for block in (16, 32, 64, 128):
        grid, given = (side // block, side // block), (x, out, side, side, side, side, block)
        yield Case(f"transpose {block}", kernels.transpose.transpose_kernel, grid, given)


def combined() -> Iterator[Case]:
    k, tokens = 4096, 8192
    x, weights = torch.randn(tokens, k, dtype=HALF), torch.randn(64, k, dtype=HALF)
    best, share = torch.zeros(1 << 20, dtype=torch.int32), torch.zeros(1 << 20)
    for experts, block in ((8, 4096), (4, 4096), (16, 4096), (2, 4096)):
        given = x, weights, best, share, k, experts, block
        yield Case(f"routed {experts}x{block}", combining_kernels.routed, (tokens,), given)
    for rows, block in ((8, 4096), (4, 1024), (64, 128), (128, 256), (16, 512), (16, 2048)):
        given = x, weights.float(), share, k, rows, block
        grid = (tokens // rows,)
        yield Case(f"times_vector {rows}x{block}", combining_kernels.times_vector, grid, given)
    for rows, depth in ((256, 128), (128, 64), (64, 128), (512, 64)):
        count = (1 << 25) // depth
        ids, order = torch.arange(count) * 2048 // count, torch.randperm(count)
        sums = torch.zeros(2048, depth)
        given = x, ids.int(), order.int(), sums, rows, depth
        yield Case(f"clusters {rows}x{depth}", combining_kernels.clusters, (count // rows,), given)
    for rows, block in ((64, 512), (8, 4096), (16, 1024), (128, 128)):
        given, grid = (x, best, block, rows, block), ((1 << 25) // block // rows,)
        yield Case(f"best_of_rows {rows}x{block}", combining_kernels.best_of_rows, grid, given)
    flat, out = x.view(-1), torch.empty_like(x)
    for rows, block in ((16, 4096), (4, 2048), (64, 128), (2, 16384), (8, 4096), (4, 256)):
        given, grid = (flat, share, out, rows, block), ((1 << 25) // block // rows,)
        yield Case(f"norms_of_rows {rows}x{block}", combining_kernels.norms_of_rows, grid, given)
    small = torch.empty_like(x, dtype=torch.int8)
    for rows, columns in ((128, 128), (64, 64), (128, 64), (16, 128)):
        for of in (tokens, 1024):
            grid, given = (of // rows, k // columns), (x, small, share, k, rows, columns)
            name = f"of_8_bits {rows}x{columns}" + f" of {of}"
            yield Case(name, combining_kernels.of_8_bits, grid, given)
    targets = torch.zeros(1024, dtype=torch.int32)
    for block in (4096, 8192, 16384, 32768):
        given = flat, targets, share, 32000, block
        yield Case(f"losses {block}", combining_kernels.losses, (1024,), given)
    numbers, sums = torch.randn(2, 1 << 24)
    for rows, columns, axis in ((256, 64, 0), (128, 128, 0), (16, 2048, 1), (64, 64, 1)):
        grid, given = ((1 << 24) // rows // columns,), (numbers, sums, rows, columns, axis)
        name = f"running_sums {rows}x{columns} {axis}"
        yield Case(name, combining_kernels.running_sums, grid, given)


def engines() -> Iterator[Case]:
    for of in gpu_engine.KINDS:
        for number, case in enumerate(of(1)):
            kernel, has_dots = getattr(engine_kernels, case.name), case.name == "nearest"
            yield Case(f"{case.name} {number}", kernel, case.grid, case.args, has_dots)


def all_cases(only: str) -> list[Case]:
    torch.manual_seed(0)
    torch.set_default_device(gpu_engine.DEVICE)
    found = [
        case for of in (products, attentions, rows, elements, combined, engines) for case in of()
    ]
    return [case for case in found if re.search(only, case.name)]


def warm(cases: list[Case], part: int) -> None:
    """Compiles a part of all launches, into the cache that processes share."""
    asked = [(case, options) for case in cases for options in (*case.options, {})]
    for case, options in asked[part::PROCESSES]:
        quietly(lambda case=case, options=options: case.kernel.warmup(*case.args, **options))


def quietly(make: Callable[[], Any]) -> Any:
    """What a call returns; None where the kernel needs more than there is."""
    try:
        return make()
    except ProtonError:
        return None


def measured(case: Case, flush: torch.Tensor) -> dict[str, float]:
    """us by the options, as text; of the launch without any by ''."""
    found = {}
    for options in (*case.options, {}):

        def launch(options: Options = options) -> None:
            flush.zero_()
            case.launch(options)

        if quietly(lambda options=options: (case.launch(options), True)) is None:
            continue
        name = case.kernel.warmup(*case.args, **options).metadata["symbol"]
        text = " ".join(f"{value}" for value in options.values())
        found[text] = in_turns.kernel_us(launch, LAUNCHES, name)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--only", default="")
    parser.add_argument("--json", default="")
    parser.add_argument("--part", type=int, default=-1, help=argparse.SUPPRESS)
    given = parser.parse_args()
    cases = all_cases(given.only)
    if given.part >= 0:
        warm(cases, given.part)
        return
    words = [sys.executable, __file__, "--only", given.only, "--part"]
    started = [subprocess.Popen([*words, str(part)]) for part in range(PROCESSES)]
    for process in started:
        process.wait()
    flush, times = torch.empty(FLUSH_BYTES, dtype=torch.uint8), {}
    print(f"{'kernel':32}{'chosen us':>11}{'best us':>10}  {'of best':>8}  best")
    for case in cases:
        times[case.name] = found = measured(case, flush)
        chosen = found.pop("")
        best = min(found, key=lambda text: found[text])
        print(f"{case.name:32}{chosen:11.2f}{found[best]:10.2f}  {chosen / found[best]:8.3f}  "
              f"{best}", flush=True)  # fmt: skip
        found[""] = chosen
    if given.json:
        with open(given.json, "w", encoding="utf-8") as file:
            json.dump(times, file, indent=1)


if __name__ == "__main__":
    main()
