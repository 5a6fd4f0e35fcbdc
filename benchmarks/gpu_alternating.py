"""What schedules of loops with two dots are worth: kernels that compute something between them, by
the schedule that the compiler chooses, by one without roles (warp groups alternate), by a plain
one, by Triton and, where it has the function, by torch, in turns on one GPU.

    python benchmarks/gpu_alternating.py [--rounds 7] [--loads tma pointers] [--only attention]
        [--blocks 128x128 256x64] [--heads 64] [--length 4096] [--dtype float16]

Medians of rounds, by events (in_turns.py). Results are compared with torch's, in fp32. A time of a
compiler is that of the best of its numbers of stages.
"""

import argparse
import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import alternating_kernels
import torch
from in_turns import medians, milliseconds
from peers import triton_module

import proton
import proton.schedule.planning
from proton.runtime.launch.jit import JITFunction

LAUNCHES = 10  # of a round
STAGES = 3, 2
BLOCKS = "256x64", "128x128", "128x64", "64x128", "64x64"  # the size of a head, and of columns
SCHEDULES = "chosen", "no roles", "plain"
Weights = Callable[[torch.Tensor], torch.Tensor]


@dataclass(frozen=True)
class Data:
    """What the arrays are of: heads of rows, each row of `size` elements."""

    heads: int
    length: int
    size: int
    dtype: torch.dtype


def _decayed(scores: torch.Tensor, scale: float) -> torch.Tensor:
    rows = torch.arange(scores.shape[-1], device=scores.device)
    return scores * torch.exp2(-(rows[:, None] - rows).abs() * scale)


def _causal(scores: torch.Tensor) -> torch.Tensor:
    rows = torch.arange(scores.shape[-1], device=scores.device)
    return scores.masked_fill(rows[:, None] < rows, float("-inf"))


def weights_of(name: str, scale: float) -> Weights:
    """What a kernel makes of the products of its first dot, times `scale`."""
    natural = 0.6931471805599453
    return {
        "attention": lambda s: torch.softmax(s * natural, -1),
        "causal_attention": lambda s: torch.softmax(_causal(s * natural), -1),
        "gated_scores": torch.sigmoid,
        "decaying_scores": lambda s: _decayed(s, scale),
        "two_layers": torch.nn.functional.gelu,
        "plain_scores": lambda s: s,
    }[name]


NAMES = (
    "attention",
    "causal_attention",
    "gated_scores",
    "decaying_scores",
    "two_layers",
    "plain_scores",
)


def tensors(data: Data) -> list[torch.Tensor]:
    """q, k, v of all heads, and the array of the result."""
    generator = torch.Generator("cuda").manual_seed(0)
    new = functools.partial(torch.randn, device="cuda", generator=generator)
    q, k, v = (new((data.heads, data.length, data.size)).to(data.dtype) for _ in range(3))
    return [q, k, v, torch.full_like(q, float("nan"))]


def arguments(arrays: list[torch.Tensor], m: int, n: int, tma: bool, peer: bool) -> list[Any]:
    """What a kernel takes of these arrays."""
    if not tma:
        return list(arrays)
    if peer:
        from triton.tools.tensor_descriptor import TensorDescriptor
    else:
        from proton.tools.tensor_descriptor import TensorDescriptor
    return [
        TensorDescriptor.from_tensor(array.reshape(-1, array.shape[-1]), [block, array.shape[-1]])
        for array, block in zip(arrays, (m, n, n, m), strict=True)
    ]


def reference(name: str, data: Data, scale: float) -> torch.Tensor:
    """The result for the first head."""
    q, k, v = (array[:1].float() for array in tensors(data)[:3])
    return weights_of(name, scale)(q @ k.transpose(1, 2) * scale) @ v


def torch_launch(name: str, data: Data, scale: float) -> Callable[[], Any] | None:
    """torch's own attention, by its fastest back end; None where it has none."""
    from torch.nn.attention import SDPBackend, sdpa_kernel

    if "attention" not in name:
        return None
    q, k, v = (array[None] for array in tensors(data)[:3])
    attention = functools.partial(
        torch.nn.functional.scaled_dot_product_attention,
        q, k, v, is_causal=name.startswith("causal"), scale=scale * 0.6931471805599453,
    )  # fmt: skip

    def by(backend: SDPBackend) -> Callable[[], Any]:
        def launch() -> None:
            with sdpa_kernel(backend):
                attention()

        return launch

    found = []
    for backend in (SDPBackend.FLASH_ATTENTION, SDPBackend.CUDNN_ATTENTION):
        try:
            by(backend)()
        except RuntimeError:  # it has none for this head
            continue
        found.append(by(backend))
    return min(found, key=lambda launch: milliseconds(launch, 3), default=None)


def compiled(kernel: Any, schedule: str, given: list[Any], scale: float, **options: Any) -> Any:
    """(a launch, bytes of spills) of a kernel by one schedule; None where it does not fit."""
    planning = proton.schedule.planning
    kept = planning.alternate, planning.may_be_specialized
    if schedule == "plain":
        planning.alternate = lambda schedule, chip: None
    if schedule in SCHEDULES[1:]:
        planning.may_be_specialized = lambda *_: False
    launch = functools.partial(kernel, *given, scale)
    try:
        with proton.knobs.scope(always_compile=True):
            found = launch(**options)
    except Exception as error:
        if "shared memory" not in str(error):
            raise
        return None
    finally:
        planning.alternate, planning.may_be_specialized = kept
    return functools.partial(launch, **options), found.n_spills


def measured(name: str, data: Data, n: int, tma: bool, peer: Any, rounds: int) -> str:
    """The row of a case."""
    m, scale = 128, 0.05
    want, arrays = reference(name, data, scale), tensors(data)
    # Weights are rounded to the dtype, and so is the result.
    bound = (4e-3 if data.dtype == torch.float16 else 3e-2) * max(1.0, float(want.abs().max()))
    launches: list[Callable[[], Any]] = []
    notes: list[str] = []
    for which in (*SCHEDULES, "Triton"):
        found = []
        for stages in STAGES:
            kernel = getattr(peer, name)
            if which != "Triton":
                kernel = JITFunction(getattr(alternating_kernels, name).fn)
            kernel = kernel[data.length // m, data.heads]
            given = [*arguments(arrays, m, n, tma, which == "Triton"), data.length]
            options = {"M": m, "N": n, "D": data.size, "TMA": tma, "num_warps": 8}
            arrays[3].fill_(float("nan"))
            made = compiled(kernel, which, given, scale, **options, num_stages=stages)
            if made is None:
                continue
            wrong = float((arrays[3][:1].float() - want).abs().max())
            if not wrong < bound:
                return f"{name} {data} {n} {which}: WRONG by {wrong}"
            found.append((milliseconds(made[0], 5), stages, *made))
        _, stages, launch, spills = min(found, key=lambda entry: entry[0])
        launches.append(launch)
        notes.append(f"{stages}/{spills}")
    own = torch_launch(name, data, scale)
    us = medians([*launches, *([own] if own is not None else [])], rounds, LAUNCHES)
    times = [*us, float("nan")][:5]
    label = f"{name}{' by tma' if tma else ''}, D {data.size}, 128 x {n}"
    ratios = "".join(f"{us[0] / other:9.3f}" for other in times[1:])
    return f"{label:36}{us[0]:9.1f}{ratios}   {' '.join(notes)}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", nargs="*", default=NAMES, choices=NAMES)
    parser.add_argument("--loads", nargs="*", default=["tma"], choices=["tma", "pointers"])
    parser.add_argument("--blocks", nargs="*", default=BLOCKS, choices=BLOCKS)
    parser.add_argument("--heads", type=int, default=64)
    parser.add_argument("--length", type=int, default=4096)
    parser.add_argument("--dtype", default="float16", choices=["float16", "bfloat16"])
    given = parser.parse_args()
    peer = triton_module(alternating_kernels)
    titles = "".join(f"{title:>9}" for title in (*SCHEDULES[1:], "Triton", "torch"))
    print(f"{'time (us), and of that of':36}{'us':>9}{titles}   stages/bytes of spills")
    for tma in (loads == "tma" for loads in given.loads):
        for name in given.only:
            for block in given.blocks:
                size, n = map(int, block.split("x"))
                data = Data(given.heads, given.length, size, getattr(torch, given.dtype))
                print(measured(name, data, n, tma, peer, given.rounds), flush=True)


if __name__ == "__main__":
    main()
