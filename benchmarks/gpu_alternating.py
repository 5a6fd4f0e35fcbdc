"""What it is worth that warp groups alternate: kernels that compute something between two dots, by
a schedule in which they do, by one in which they do not, and by Triton, in turns on one GPU.

    python benchmarks/gpu_alternating.py [--rounds 7]

Medians of rounds, by events (in_turns.py): alternating, all at once, Triton, and again. Results are
compared with torch's, in fp32.
"""

import argparse
import functools
from collections.abc import Callable
from typing import Any

import alternating_kernels
import torch
from in_turns import medians
from peers import triton_module

import proton
import proton.schedule.planning
from proton.runtime.launch.jit import JITFunction

HEADS, LENGTH = 64, 4096
LAUNCHES = 10  # of a round
NAMES = (
    "attention",
    "attention_by_tma",
    "gated_scores",
    "decaying_scores",
    "two_layers",
    "plain_scores",
)
Weights = Callable[[torch.Tensor], torch.Tensor]


def _decayed(scores: torch.Tensor, scale: float) -> torch.Tensor:
    rows = torch.arange(scores.shape[-1], device=scores.device)
    return scores * torch.exp2(-(rows[:, None] - rows).abs() * scale)


def weights_of(name: str, scale: float) -> Weights:
    """What a kernel makes of the products of its first dot, times `scale`."""
    return {
        "attention": lambda s: torch.softmax(s * 0.6931471805599453, -1),
        "attention_by_tma": lambda s: torch.softmax(s * 0.6931471805599453, -1),
        "gated_scores": torch.sigmoid,
        "decaying_scores": lambda s: _decayed(s, scale),
        "two_layers": torch.nn.functional.gelu,
        "plain_scores": lambda s: s,
    }[name]


def arguments(name: str, head: int, m: int, n: int, peer: bool) -> tuple[list[Any], torch.Tensor]:
    """Arguments, and the array of the result."""
    generator = torch.Generator("cuda").manual_seed(0)
    shape = (HEADS, LENGTH, head)
    new = functools.partial(torch.randn, device="cuda", generator=generator)
    q, k, v = (new(shape).to(torch.float16) for _ in range(3))
    out = torch.full_like(q, float("nan"))
    arrays: list[Any] = [q, k, v, out]
    if name == "attention_by_tma":
        if peer:
            from triton.tools.tensor_descriptor import TensorDescriptor
        else:
            from proton.tools.tensor_descriptor import TensorDescriptor
        arrays = [
            TensorDescriptor.from_tensor(array.reshape(-1, head), [block, head])
            for array, block in zip(arrays, (m, n, n, m), strict=True)
        ]
    return arrays, out


def reference(name: str, head: int, scale: float) -> torch.Tensor:
    """The result for the first two heads."""
    (q, k, v, _), _ = arguments("", head, 0, 0, peer=False)
    q, k, v = (array[:2].float() for array in (q, k, v))
    if name == "two_layers":
        k, v = k[:1], v[:1]
    return weights_of(name, scale)(q @ k.transpose(1, 2) * scale) @ v


def measured(name: str, head: int, n: int, peer: Any, rounds: int) -> str:
    """The row of a case."""
    m, scale = 128, 0.05
    want = reference(name, head, scale)
    options = {"M": m, "N": n, "D": head, "num_warps": 8, "num_stages": 3}
    launches: list[Callable[[], Any]] = []
    spills: list[int] = []
    alternate = proton.schedule.planning.alternate
    for which in ("alternating", "at once", "Triton"):
        kernel: Any = getattr(peer, name)
        if which != "Triton":
            kernel = JITFunction(getattr(alternating_kernels, name).fn)
        given, out = arguments(name, head, m, n, which == "Triton")
        if which == "at once":
            proton.schedule.planning.alternate = lambda schedule, chip: None
        launch = functools.partial(kernel[LENGTH // m, HEADS], *given, LENGTH, scale)
        try:
            with proton.knobs.scope(always_compile=True):
                found = launch(**options)
        except Exception as error:  # Triton takes what it asks for, or nothing
            if which != "Triton" or "shared memory" not in str(error):
                raise
            options = options | {"num_stages": 2}
            found = launch(**options)
        proton.schedule.planning.alternate = alternate
        bound = 4e-3 * max(1.0, float(want.abs().max()))
        wrong = float((out[:2].float() - want).abs().max())
        if not wrong < bound:
            return f"{name} {head} {n} {which}: WRONG by {wrong}"
        spills.append(found.n_spills)
        launches.append(functools.partial(launch, **options))
    us = medians(launches, rounds, LAUNCHES)
    shown = "".join(f"{time:11.1f}" for time in us)
    label = f"{name}, D {head}, 128 x {n}"
    return f"{label:36}{shown}{us[0] / us[1]:9.3f}{us[0] / us[2]:9.3f}   {spills}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", nargs="*", default=NAMES, choices=NAMES)
    given = parser.parse_args()
    peer = triton_module(alternating_kernels)
    titles = ("alternating", "at once", "Triton")
    heads = "".join(f"{title:>11}" for title in titles)
    print(f"{'us':36}{heads}{'of once':>9}{'of Triton':>10}   bytes of spills")
    for name in given.only:
        for head, n in ((256, 64), (128, 128), (128, 64), (64, 128), (64, 64)):
            print(measured(name, head, n, peer, given.rounds), flush=True)


if __name__ == "__main__":
    main()
