"""What a run says of registers in local memory is what the machine code does."""

import re
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

import proton
import proton.language as tl
from proton.base.targets import GPUTarget
from proton.compat.triton.compiler import TritonCompiledKernel
from proton.runtime.nvidia import launch
from proton.viewer import Run
from tests.pure.faults import gpu, loop

HOPPER = GPUTarget("cuda", 90)
ITERATIONS, SMS, PROGRAMS, LAUNCHES = 40, 4, 8, 5
ACCESS_NS = 3  # of a warp; the clocks of `gpu` have a cycle a nanosecond


@proton.jit
def product(a_ptr, b_ptr, c_ptr, depth, BLOCK: tl.constexpr, DEPTH: tl.constexpr):
    rows, inner = tl.arange(0, BLOCK), tl.arange(0, DEPTH)
    total = tl.zeros((BLOCK, BLOCK), tl.float32)
    for first in range(0, depth, DEPTH):
        a = tl.load(a_ptr + rows[:, None] * depth + (first + inner)[None, :])
        b = tl.load(b_ptr + (first + inner)[:, None] * BLOCK + rows[None, :])
        total += tl.dot(a, b)
    tl.store(c_ptr + rows[:, None] * BLOCK + rows[None, :], total)


@proton.jit
def recurrence(x_ptr, y_ptr, steps, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    first = tl.zeros((BLOCK,), tl.float32)
    second = tl.load(y_ptr + offsets)
    for step in range(steps):
        x = tl.load(x_ptr + step * BLOCK + offsets)
        first = first * x + second
        second = second * first + x
    tl.store(y_ptr + offsets, first + second)


def compiled(name: str, registers: int | None) -> Any:
    options: dict[str, Any] = {"target": HOPPER, "maxnreg": registers}
    if name == "product":
        types = (tl.float16, tl.float16, tl.float32, 1024)
        return product.warmup(*types, BLOCK=128, DEPTH=64, num_warps=4, **options)
    return recurrence.warmup(tl.float32, tl.float32, 100, BLOCK=4096, num_warps=2, **options)


def accesses(sass: str) -> tuple[int, int]:
    """How many registers the code stores to and loads from local memory: all, and in loops."""
    lines = sass.splitlines()
    labels = {found[1]: n for n, line in enumerate(lines)
              if (found := re.match(r"\s*(\.L\w+):", line))}  # fmt: skip
    inside = set[int]()
    for n, line in enumerate(lines):
        jump = re.search(r"BRA.*?`\((\.L\w+)\)", line)
        inside |= set(range(labels[jump[1]], n)) if jump else set()
    found = {}
    for n, line in enumerate(lines):
        if access := re.search(r"\b(?:STL|LDL)(\S*)", line):
            found[n] = 4 if ".128" in access[1] else 2 if ".64" in access[1] else 1
    return sum(found.values()), sum(count for n, count in found.items() if n in inside)


@pytest.mark.filterwarnings("ignore::proton.base.errors.PerformanceWarning")
@pytest.mark.parametrize(("name", "registers"), [
    ("product", None), ("product", 128), ("product", 96), ("recurrence", 128), ("recurrence", 96),
])  # fmt: skip
def test_spills_are_registers(
    name: str, registers: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel = compiled(name, registers)
    sass = kernel.asm["sass"]
    all_, in_loops = accesses(sass)
    assert ("SpillRefill" in sass) == bool(all_)  # as nvdisasm marks them
    assert kernel.n_spills == 4 * all_
    assert bool(all_) == (registers is not None)
    monkeypatch.setattr(launch.cuda, "programs_per_sm", lambda *words: 1)
    variant: Any = SimpleNamespace(kernel=kernel, function=None)
    facts = launch._facts(variant, variant)
    spilled = facts["spills"]
    assert spilled == TritonCompiledKernel.n_spills.fget(SimpleNamespace(compiled=kernel))  # type: ignore[attr-defined]
    assert 2 * spilled == pytest.approx(in_loops, rel=0.2)
    if not spilled:
        return
    # The estimate, beside what the loop's code does in a fixed number of cycles an access.
    raw = gpu(loop(iterations=ITERATIONS, dot=4000), sms=SMS, body=4, launches=LAUNCHES, **facts)
    warps = int(kernel.metadata["num_warps"])
    raw.kernels = [replace(raw.kernels[0], unit_warps=warps)]
    found = next(f for f in Run(raw).findings if f.rule == "spills")
    taken = in_loops * warps * ITERATIONS * ACCESS_NS
    waves = PROGRAMS // SMS
    assert found.gain_ns == pytest.approx(taken * waves * LAUNCHES, rel=0.2)
    assert f"{spilled} registers of a limit of {registers}" in found.sentence
