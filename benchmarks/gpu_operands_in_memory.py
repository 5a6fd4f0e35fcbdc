"""What `keep-operands-in-memory` is worth: kernels whose loop does not change an operand, with the
pass and without it, and by Triton, in turns on one GPU.

    python benchmarks/gpu_operands_in_memory.py [--rounds 9]

Medians of rounds, by events (in_turns.py): with, without, Triton, and again. Results are compared.
"""

import argparse
import functools
from collections.abc import Callable
from typing import Any

import operand_kernels
import torch
from in_turns import medians
from peers import triton_module

import proton
from proton.runtime.launch.jit import JITFunction
from proton.transforms.layout.keep_operands_in_memory import KeepOperandsInMemory

HEAD, LENGTH, BATCH = 128, 2048, 32
ROWS, SMS = 4096, 132
LAUNCHES = 20  # of a round
Case = tuple[str, str, tuple[int, ...], list[Any], dict[str, int]]


def cases() -> list[Case]:
    """Name, kernel, grid, arguments with the result in front of the last one, and options."""
    new = functools.partial(torch.randn, dtype=torch.float16, device="cuda")
    attended = [new(BATCH, LENGTH, HEAD) for _ in range(4)]
    multiplied = [new(SMS * ROWS, HEAD), new(HEAD, HEAD), new(SMS * ROWS, HEAD)]
    scored = [new(8192, HEAD), new(ROWS, HEAD), torch.empty(8192, device="cuda")]
    found: list[Case] = []
    for warps, m, n in ((2, 128, 32), (2, 64, 64), (1, 64, 32), (4, 128, 64)):
        options = {"M": m, "N": n, "D": HEAD, "num_warps": warps}
        grid = (LENGTH // m, BATCH)
        found.append((f"{m} x {n}", "attention", grid, [*attended, LENGTH], options))
    for warps, m in ((1, 16), (2, 32), (4, 64)):
        options = {"M": m, "K": HEAD, "N": HEAD, "num_warps": warps}
        found.append((f"rows of {m}", "weights", (SMS,), [*multiplied, ROWS], options))
    for warps, m, n in ((1, 64, 64), (2, 128, 64)):
        options = {"M": m, "N": n, "D": HEAD, "num_warps": warps}
        found.append((f"{m} x {n}", "scores", (8192 // m,), [*scored, ROWS], options))
    return found


def compiled(kernel: Any, grid: tuple[int, ...], arguments: list[Any], options: Any) -> Any:
    """The kernel that a first launch gives, and its result."""
    arguments[-2].fill_(float("nan"))
    found = kernel[grid](*arguments, **options)
    return found, arguments[-2].clone()


def measured(case: Case, peer: Any, rounds: int) -> str:
    """The row of a case."""
    name, function, grid, arguments, options = case
    run = KeepOperandsInMemory.run
    launches: list[Callable[[], Any]] = []
    results, spills = [], []
    for which in ("with", "without", "Triton"):
        kernel: Any = getattr(peer, function)
        if which != "Triton":
            kernel = JITFunction(getattr(operand_kernels, function).fn)
        if which == "without":
            KeepOperandsInMemory.run = lambda self, module: None  # type: ignore[method-assign]
        with proton.knobs.scope(always_compile=True):
            found, result = compiled(kernel, grid, arguments, options)
        KeepOperandsInMemory.run = run  # type: ignore[method-assign]
        results.append(result)
        spills.append(found.n_spills)
        launches.append(functools.partial(kernel[grid], *arguments, **options))
    for other in results[1:]:
        torch.testing.assert_close(results[0], other, rtol=2e-2, atol=2e-2)
    us = medians(launches, rounds, LAUNCHES)
    shown = "".join(f"{time:9.1f}" for time in us)
    label = f"{function}, {name}, {options['num_warps']} warps"
    return f"{label:34}{shown}{us[0] / us[1]:9.3f}{us[0] / us[2]:9.3f}   {spills}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--rounds", type=int, default=9)
    rounds = parser.parse_args().rounds
    peer = triton_module(operand_kernels)
    titles = ("with us", "without", "Triton", "of w/o", "of Triton")
    print(f"{'':34}{''.join(f'{title:>9}' for title in titles)}   bytes of spills")
    for case in cases():
        print(measured(case, peer, rounds), flush=True)


if __name__ == "__main__":
    main()
