"""Kernels as serving engines and training loops write them on a GPU, by Proton and by Triton.

    python benchmarks/gpu_engine.py [--only REGEX] [--rounds 4] [--check]

Nobody tuned for any of them. Each has the configuration that stands beside it here under both
compilers; results are compared with torch's. Times are those that CUPTI gives torch's profiler, the
second-level cache is flushed ahead of each launch, and compilers take turns. `--check` compares
small inputs alone, on the CPU where there is no GPU.
"""

import argparse
import re
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import engine_kernels as kernels
import torch
import torch.nn.functional as F
from peers import triton_module

LAUNCHES, FLUSH_BYTES, TOLERANCE = 12, 256 << 20, 2e-2
BF16, BYTES, INTEGERS, LONG = torch.bfloat16, torch.uint8, torch.int32, torch.int64
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


@dataclass
class Case:
    """A launch: `out` is what it writes, `before` (zeros) there ahead of it, and `expected` what
    has to be there then."""

    name: str
    grid: tuple[int, ...]
    args: tuple[Any, ...]
    out: torch.Tensor
    expected: Callable[[], torch.Tensor]
    warps: int = 4
    before: torch.Tensor | None = None

    def launch(self, module: Any) -> None:
        getattr(module, self.name)[self.grid](*self.args, num_warps=self.warps)


def _normal(*shape: int, dtype: torch.dtype = BF16) -> torch.Tensor:
    return torch.randn(shape).to(dtype)


def _below(end: int, *shape: int) -> torch.Tensor:
    return torch.randint(0, end, shape, dtype=INTEGERS)


def _zeros(*shape: int, dtype: torch.dtype = BF16) -> torch.Tensor:
    return torch.zeros(shape, dtype=dtype)


def scalars(share: int) -> Iterator[Case]:
    """`share` is what small inputs are a part of."""
    experts, tokens = 64, 256
    ids, counts = _below(experts, 64, tokens), _zeros(64, experts, dtype=INTEGERS)
    yield Case("count_experts", (64,), (ids, counts, tokens, experts), counts,
               lambda: F.one_hot(ids.long(), experts).sum(1))  # fmt: skip
    given, sums = _below(300, 256), _zeros(256, dtype=INTEGERS)
    yield Case("padded_sums", (1,), (given, sums, 256, 64), sums,
               lambda: ((given + 63) // 64 * 64).cumsum(0))  # fmt: skip
    for rows in (16, 64):
        held = _zeros(rows, 256, dtype=INTEGERS)
        first = _below(50, rows, 256)
        yield Case("column_sums", (256,), (held, rows, 256), held,
                   lambda first=first: first.cumsum(0), before=first)  # fmt: skip
    keys, size = _below(1 << 30, (1 << 20) // share).sort()[0], 4096 // share
    wanted, found = _below(1 << 30, size), _zeros(size, dtype=INTEGERS)
    yield Case("search_one", (size,), (keys, wanted, found, len(keys)), found,
               lambda: torch.searchsorted(keys, wanted))  # fmt: skip
    yield Case("search_block", (size // 256,), (keys, wanted, found, len(keys), 256), found,
               lambda: torch.searchsorted(keys, wanted))  # fmt: skip
    starts, first = torch.arange(257, dtype=INTEGERS) * 37, _zeros(512, dtype=INTEGERS)
    yield Case("sequence_of", (512,), (starts, first, 256, 16), first,
               lambda: (torch.arange(512) * 16 // 37).clamp(max=255))  # fmt: skip


def rows(share: int) -> Iterator[Case]:
    count, width = 4096 // share, 1024
    source, target = _normal(count, width), _zeros(count, width)
    table, weights = _below(count, count), torch.rand(count, 8)
    yield Case("copy_pages", (count // 32,), (source, target, table, 32, width), target,
               lambda: source[table.long()])  # fmt: skip
    picked = _below(count, count, 8)
    yield Case("weighted_rows", (count,), (source, picked, weights, target, 8, width), target,
               lambda: (source[picked.long()].float() * weights[..., None]).sum(1))  # fmt: skip
    x, states = _normal(256 // share, 128, 256), _zeros(256 // share, 128, 256, dtype=torch.float32)

    def decayed() -> torch.Tensor:
        state, found = torch.zeros_like(states[:, 0]), []
        for t in range(128):
            state = state * 0.9 + x[:, t].float()
            found.append(state)
        return torch.stack(found, 1)

    yield Case("decaying_sums", (len(x),), (x, states, 128, 256), states, decayed)
    batch, pages, page, kv, heads, width = 64 // share, 128 // share, 16, 8, 16, 128
    keys, values = (_normal(64 * pages, page, kv, width) for _ in range(2))
    places, lengths = _below(64 * pages, batch, pages), 1 + _below(pages * page, batch)
    query, out = _normal(batch, kv * heads, width), _zeros(batch, kv * heads, width)

    def attention() -> torch.Tensor:
        found = []
        for row, length in enumerate(lengths.tolist()):
            key, value = (t[places[row].long()].flatten(0, 1)[:length] for t in (keys, values))
            scores = torch.einsum(
                "khd,nkd->khn", query[row].view(kv, heads, width).float(), key.float()
            )
            weights = (scores * width**-0.5).softmax(-1)
            found.append(torch.einsum("khn,nkd->khd", weights, value.float()).flatten(0, 1))
        return torch.stack(found)

    args = (query, keys, values, places, lengths, out, pages, width**-0.5, heads, width, page, kv)
    yield Case("decode_pages", (batch, kv), args, out, attention)


def numbers(share: int) -> Iterator[Case]:
    size = (1 << 24) // share**2
    x, codes, scales = (
        _normal(size),
        _zeros(size, dtype=torch.float8_e4m3fn),
        torch.zeros(size // 128),
    )

    def quantised() -> torch.Tensor:
        groups = x.float().view(-1, 128)
        scale = (groups.abs().amax(1, keepdim=True) / 448).clamp(min=1e-8)
        return (groups / scale).to(torch.float8_e4m3fn).flatten()

    args = x, codes, scales, 128, 2048
    yield Case("quantised_groups", (size // 2048,), args, codes, quantised)
    half = _zeros(size // 2)
    yield Case("gated_pairs", (size // 2048,), (x, half, 1024), half,
               lambda: F.silu(x[::2].float()) * x[1::2].float())  # fmt: skip
    packed, per_row = torch.randint(0, 256, (size // 256, 64), dtype=BYTES), _normal(size // 256)
    wide = _zeros(size // 256, 128)
    yield Case("unpacked", (size // 8192,), (packed, per_row, wide, 64, 32), wide,
               lambda: (torch.stack([packed & 15, packed >> 4], 2).flatten(1).float() - 8)
               * per_row.float()[:, None])  # fmt: skip
    y = _zeros(size, dtype=torch.float32)
    ones = torch.ones_like(y)
    # The numbers are random: as many are left as are to be, in the mean.
    yield Case("dropped", (size // 1024,), (ones, y, 7, 0.5, 1024), y,
               lambda: torch.where(y > 0, 2.0, 0.0) * (abs(y.mean() - 1) < 0.01))  # fmt: skip
    count = 4096 // share
    chances = (_normal(count, 1024, dtype=torch.float32) * 3).softmax(1)
    kept = torch.zeros_like(chances)

    def likely() -> torch.Tensor:
        ordered = chances.sort(1, descending=True)[0]
        is_in = ordered.cumsum(1) - ordered < 0.8
        least = torch.where(is_in, ordered, 2.0).amin(1, keepdim=True)
        return torch.where(chances >= least, chances, 0.0)

    yield Case("likely", (count,), (chances, kept, 0.8, 1024), kept, likely)
    drawn, bins = _below(256, 1024 * count), _zeros(256, dtype=INTEGERS)
    yield Case("counted", (count,), (drawn, bins, 1024, 256), bins,
               lambda: drawn.long().bincount(minlength=256))  # fmt: skip
    points, centres = _normal(128 * count, 128), _normal(1024 // share, 128)
    place = _zeros(len(points), dtype=INTEGERS)
    yield Case("nearest", (count,), (points, centres, place, 128, len(centres), 128), place,
               lambda: (points.float() @ centres.float().T).argmax(1))  # fmt: skip
    keys, largest = _below(1 << 30, count, 256), _zeros(count, 8, dtype=LONG)
    yield Case("top_of_row", (count,), (keys, largest, 256, 8), largest,
               lambda: ((keys.long() << 32) | torch.arange(256)).topk(8)[0], 1)  # fmt: skip
    decay, added = torch.rand(count, 128, 32), _normal(count, 128, 32, dtype=torch.float32)
    states = torch.zeros_like(added)

    def scanned() -> torch.Tensor:
        state, found = torch.zeros_like(added[:, 0]), []
        for t in range(added.shape[1]):
            state = state * decay[:, t] + added[:, t]
            found.append(state)
        return torch.stack(found, 1)

    yield Case("linear_states", (count,), (decay, added, states, 128, 32), states, scanned)
    signal, taps, smooth = _normal(16 * count, 128), _normal(128, 4), _zeros(16 * count, 128)

    def convolved() -> torch.Tensor:
        before = F.pad(signal.float().T, (3, 0))
        return F.conv1d(before, taps.float()[:, None], groups=128).T

    args = signal, taps, smooth, len(signal), 128, 4, 32
    yield Case("convolved", (count // 2,), args, smooth, convolved)


def pairs(share: int) -> Iterator[Case]:
    count = 16384 // share
    for size, warps in ((32, 1), (128, 4), (256, 8)):
        given, ranks = _below(1 << 20, count, size), _zeros(count, size, dtype=INTEGERS)
        yield Case("ranks_of", (count,), (given, ranks, size), ranks,
                   lambda x=given: x.argsort(stable=True, dim=1).argsort(1), warps)  # fmt: skip
        bins, counts = _below(size, count, 128), _zeros(count, size, dtype=INTEGERS)
        yield Case("equal_to", (count,), (bins, counts, 128, size), counts,
                   lambda bins=bins, size=size: F.one_hot(bins.long(), size).sum(1))  # fmt: skip
    points, total = 8192 // share, torch.zeros(8192 // share)
    x, y = torch.rand(2, points)

    def potentials() -> torch.Tensor:
        squares = (x[:, None] - x) ** 2 + (y[:, None] - y) ** 2
        return (squares + 1e-3).rsqrt().sum(1)

    for rows, columns in ((32, 256), (128, 32), (128, 128)):
        args = x, y, total, points, rows, columns
        yield Case("potentials", (points // rows,), args, total, potentials)
    size = (1 << 22) // share
    numbers, levels, codes = torch.randn(size), torch.randn(64), _zeros(size, dtype=INTEGERS)
    yield Case("nearest_level", (size // 256,), (numbers, levels, codes, 256, 64), codes,
               lambda: (numbers[:, None] - levels).abs().argmin(1))  # fmt: skip
    for size in (64, 128):
        own, mean = torch.randn(count, size), torch.zeros(count, size)

        def smoothed(own: torch.Tensor = own) -> torch.Tensor:
            weights = (-(own[:, :, None] - own[:, None, :]).abs()).exp()
            return (weights * own[:, None, :]).sum(2) / weights.sum(2)

        yield Case("smoothed", (count,), (own, mean, size), mean, smoothed)


KINDS = scalars, rows, numbers, pairs


def checked(case: Case, module: Any) -> None:
    """Compares what a launch writes; raises AssertionError."""
    case.out.copy_(torch.zeros(()) if case.before is None else case.before)
    case.launch(module)
    found, wanted = case.out.double(), case.expected().double()
    error = (found - wanted).norm() / wanted.norm().clamp(min=1e-6)
    assert error < TOLERANCE, f"{case.name}: off by {error:.3f} of the norm"


def times(case: Case, module: Any, flush: torch.Tensor) -> list[float]:
    """us of launches with cold caches."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as run:
        for _ in range(LAUNCHES):
            flush.zero_()
            case.launch(module)
        torch.cuda.synchronize()
    return [event.device_time for event in run.events() if event.name.startswith(case.name)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--only", default="")
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--check", action="store_true")
    given = parser.parse_args()
    torch.manual_seed(0)
    torch.set_default_device(DEVICE)
    share = 8 if given.check else 1
    found = [case for of in KINDS for case in of(share)]
    found = [case for case in found if re.search(given.only, case.name)]
    if given.check:
        for case in found:
            checked(case, kernels)
        print(f"{len(found)} kernels are right")
        return
    sides = {"Proton": kernels, "Triton": triton_module(kernels)}
    flush = torch.empty(FLUSH_BYTES, dtype=BYTES)
    ratios = []
    print(f"{torch.cuda.get_device_name()}\n{'kernel':18}{'Proton us':>11}{'Triton us':>11}   time")
    for case in found:
        measured = defaultdict[str, list[float]](list)
        for module in sides.values():
            checked(case, module)
        for _ in range(given.rounds):
            for side, module in sides.items():
                measured[side] += times(case, module, flush)
        ours, theirs = (statistics.median(measured[side]) for side in sides)
        ratios.append(ours / theirs)
        print(f"{case.name:18}{ours:11.2f}{theirs:11.2f}{ratios[-1]:7.3f}", flush=True)
    print(f"{len(ratios)} kernels, geometric mean {statistics.geometric_mean(ratios):.3f}")


if __name__ == "__main__":
    main()
