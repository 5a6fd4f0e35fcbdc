"""What scopes cost kernels that differ in kind, in each mode of recording.

    python benchmarks/gpu_modes.py [--rounds 5] [--only NAME ...] [--modes NAME ...] [--json FILE]

Each row is a kernel of recorded_kernels.py, each column a way to record it: its time over that of
the same launches in a session that is not active, in one process: off, on, on, off, ... since the
first of two runs cooler. A time is the kernel's own, by CUPTI, so that no host shows in it. Between
two measurements the records of the one before are fetched, and the clocks go up again. The median
of the ratios of neighbours. Below each row stand registers, spills and programs per SM, without
records and with them.
"""

import argparse
import functools
import json
import statistics
import time
from collections.abc import Callable
from typing import Any

import gpu_gluon
import recorded_kernels as kernels
import torch
from in_turns import kernel_us, milliseconds

import proton
from proton.tools.tensor_descriptor import TensorDescriptor

HEADS, LENGTH, SIZE = 32, 4096, 8192
ROUND_MS = 5  # how long the launches of one measurement take
FETCH_S = 0.15  # in which the records of one measurement are fetched
MODES: dict[str, dict[str, Any]] = {
    "default": {},
    "auto": {"auto": ("loads", "dots")},
    "capacity 16": {"capacity": 16},
    "warp 0": {"sample_warps": (0,)},
    "program 16": {"sample_programs": 16},
    "every 8": {"every": 8},
    "flush": {"strategy": "flush"},
}
Launch = Callable[[], Any]


def _heads(d: int) -> list[torch.Tensor]:
    return [torch.randn(HEADS, LENGTH, d, device="cuda").half() for _ in range(4)]


def attention(d: int, n: int, warps: int, *, causal: bool = False) -> Launch:
    m, options = n, {"D": d, "num_warps": warps, "num_stages": 3}
    grid, scale = (LENGTH // m, HEADS), 0.1
    launch = kernels.attention[grid]
    return functools.partial(launch, *_heads(d), LENGTH, scale, M=m, N=n, CAUSAL=causal, **options)


def attention_by_tma() -> Launch:
    rows = [TensorDescriptor.from_tensor(x.reshape(-1, 128), [128, 128]) for x in _heads(128)]
    launch = kernels.attention_by_tma[LENGTH // 128, HEADS]
    return functools.partial(launch, *rows, LENGTH, 0.1, M=128, N=128, D=128, num_warps=8)


def product(m: int, n: int, warps: int) -> Launch:
    arrays = [torch.randn(SIZE, SIZE, device="cuda").half() for _ in range(3)]
    pairs = zip(arrays, ((m, 64), (64, n), (m, n)), strict=True)
    rows = [TensorDescriptor.from_tensor(x, list(shape)) for x, shape in pairs]
    launch = kernels.product_by_tma[SIZE // m, SIZE // n]
    return functools.partial(launch, *rows, SIZE, M=m, N=n, K=64, num_warps=warps, num_stages=3)


def attention_in_gluon() -> Launch:
    """Scopes are in a producer and two consumers."""
    q, k, v, _ = _heads(128)
    launch, _ = gpu_gluon.attention(gpu_gluon.proton_side(), {"q": q, "k": k, "v": v})
    return launch


def gather() -> Launch:
    programs, times, n, d = 4096, 8, 32, 256
    rows = torch.randn(1 << 18, d, device="cuda")
    index = torch.randint(0, rows.shape[0], (programs * times * n,), device="cuda").int()
    out = torch.empty(programs * n, d, device="cuda")
    return functools.partial(kernels.gather[programs,], rows, index, out, D=d, N=n, TIMES=times)


CASES: dict[str, Callable[[], Launch]] = {
    "attention TMA 128": attention_by_tma,
    "attention 128": lambda: attention(128, 128, 8),
    "attention 128 causal": lambda: attention(128, 128, 8, causal=True),
    "attention 64": lambda: attention(64, 64, 4),
    "attention 64 causal": lambda: attention(64, 64, 4, causal=True),
    "product 128 x 256": lambda: product(128, 256, 8),
    "product 128 x 128": lambda: product(128, 128, 4),
    "gather": gather,
    "Gluon attention": attention_in_gluon,
}


def measured(launch: Launch, mode: dict[str, Any], rounds: int) -> tuple[float, dict[str, Any]]:
    """The cost of a mode, and what a run says of the kernel."""
    session = proton.start("modes", **mode)
    launch()
    proton.deactivate(session)
    launch()
    count = max(4, round(ROUND_MS / milliseconds(launch, 3)))
    ratios = []
    for number in range(rounds):
        times = {}
        for is_on in (number % 2 == 1, number % 2 == 0):
            time.sleep(FETCH_S)
            milliseconds(launch, count)
            if is_on:
                proton.activate(session)
            times[is_on] = kernel_us(launch, count)
            if is_on:
                proton.deactivate(session)
        ratios.append(times[True] / times[False])
    torch.cuda.synchronize()
    run = proton.finalize(session)
    return statistics.median(ratios), dict(run.kernels[0].options)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", nargs="*", default=list(CASES), choices=CASES)
    parser.add_argument("--modes", nargs="*", default=list(MODES), choices=MODES)
    parser.add_argument("--json", default="")
    given = parser.parse_args()
    print(f"{'':22}" + "".join(f"{mode:>12}" for mode in given.modes))
    found: dict[str, dict[str, float]] = {}
    for name in given.only:
        launch, resources = CASES[name](), []
        found[name] = {}
        with proton.knobs.scope(profile_memory=8 << 30):
            for mode in given.modes:
                cost, facts = measured(launch, MODES[mode], given.rounds)
                found[name][mode] = round(cost, 4)
                known = ("registers", "spills", "blocks_per_sm")
                resources.append("/".join(str(facts.get(f"{of}")) for of in known))
                off = "/".join(str(facts.get(f"{of}_off")) for of in known)
        print(f"{name:22}" + "".join(f"{cost:12.3f}" for cost in found[name].values()), flush=True)
        print(f"{off:>22}" + "".join(f"{text:>12}" for text in resources), flush=True)
    if given.json:
        with open(given.json, "w", encoding="utf-8") as file:
            json.dump(found, file, indent=1)


if __name__ == "__main__":
    main()
