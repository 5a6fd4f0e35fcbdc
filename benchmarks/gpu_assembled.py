"""What it is worth to have ptxas order otherwise: kernels as Proton compiles them, without what
proton/backends/nvidia/ptx.py does for it, and by Triton, alternating on one GPU.

    python benchmarks/gpu_assembled.py [--rounds 9]

Products by pointers have uniform registers for bases beside products, or not, and go on with the
next tile (`flatten=True`), or not; states in place have their loads ahead of the stores. Medians of
rounds, by CUPTI (in_turns.py). Results are compared with torch's.
"""

import argparse
import functools
from typing import Any
from unittest import mock

import assembled_kernels
import torch
from in_turns import kernel_us, medians
from peers import triton_module

import proton
from proton.backends.nvidia import compiler
from proton.runtime.launch.jit import JITFunction

SIZE, SMS, LAUNCHES = 4096, 132, 6
HEADS, STEPS, HEAD = 32, 32, 128
Case = tuple[str, str, tuple[int, ...], list[Any], dict[str, Any], torch.Tensor, int]


def cases() -> list[Case]:
    """Name, kernel, grid, arguments, options, what comes out, and in which argument."""
    found: list[Case] = []
    for dtype, blocks, warps in (
        (torch.float16, (128, 256, 64), 8), (torch.bfloat16, (128, 128, 128), 4),
    ):  # fmt: skip
        a, b = torch.randn(2, SIZE, SIZE, device="cuda", dtype=dtype)
        sizes = dict(zip("MNK", blocks, strict=True))
        for flatten in (True, False):
            options = sizes | {"FLATTEN": flatten, "num_warps": warps, "num_stages": 3}
            name = f"product {str(dtype).removeprefix('torch.')}{', flat' * flatten}"
            given = [a, b, torch.empty_like(a), SIZE]
            found.append((name, "product", (SMS,), given, options, a @ b.T, 2))
    x = torch.randn(HEADS, STEPS, HEAD, HEAD, device="cuda")
    first = torch.zeros(HEADS, HEAD, HEAD, device="cuda")
    options = {"M": HEAD, "N": HEAD, "num_warps": 4}
    ahead = torch.zeros_like(x)
    for step in range(1, STEPS):
        ahead[:, step] = ahead[:, step - 1] / 2 + x[:, step - 1]
    found.append(("states", "states", (HEADS,), [x, first, STEPS, 0.5], options, ahead, 0))
    return found


def measured(case: Case, peer: Any, rounds: int) -> str:
    """The row of a case: us with, without, and of Triton."""
    name, function, grid, arguments, options, expected, place = case
    launches = []
    for which in ("with", "without", "Triton"):
        kernel: Any = getattr(peer, function)
        if which != "Triton":
            kernel = JITFunction(getattr(assembled_kernels, function).fn)
        given = [a.clone() if isinstance(a, torch.Tensor) else a for a in arguments]
        texts = ("with_bases_beside_dots", "with_stores_behind_loads")
        as_it_is = {text: (lambda ptx: ptx) if which == "without" else getattr(compiler, text)
                    for text in texts}  # fmt: skip
        with proton.knobs.scope(always_compile=True), mock.patch.multiple(compiler, **as_it_is):
            kernel[grid](*given, **options)
        torch.testing.assert_close(given[place], expected, rtol=2e-2, atol=2e-1)
        launches.append(functools.partial(kernel[grid], *given, **options))
    us = medians(launches, rounds, LAUNCHES, kernel_us)
    shown = "".join(f"{time:9.1f}" for time in us)
    return f"{name:24}{shown}{us[0] / us[1]:9.3f}{us[0] / us[2]:10.3f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--rounds", type=int, default=9)
    rounds = parser.parse_args().rounds
    peer = triton_module(assembled_kernels)
    titles = ("with, us", "without", "Triton", "of w/o", "of Triton")
    print(f"{'':24}{''.join(f'{title:>9}' for title in titles[:4])}{titles[4]:>10}")
    for case in cases():
        print(measured(case, peer, rounds), flush=True)


if __name__ == "__main__":
    main()
