"""Kernels of very many statements: the work that compiling them takes grows with their number.

Counted, not timed: a pass or LLVM is quadratic at worst in the loops of one function, and no
function has more than a bounded number of them.
"""

import functools
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given

import proton
import proton.language as tl
from kernels.cases import CASES
from proton.backends.cpu import pipeline
from proton.transforms.cpu.outline_loops import LOOPS, OutlineLoops
from tests.cpu.random_programs import Drawn, programs
from tests.cpu.test_random_programs import run
from tests.draws import PROGRAMS, kernels


@proton.jit
def masked_turns(x_ptr, o_ptr, n, TURNS: tl.constexpr, B: tl.constexpr):
    i = tl.arange(0, B)
    for j in tl.static_range(TURNS):
        tl.store(o_ptr + j * B + i, tl.load(x_ptr + i, mask=i < n) + j, mask=i < n)


@proton.jit
def masked_turns_in_a_loop(x_ptr, o_ptr, n, TURNS: tl.constexpr, B: tl.constexpr):
    i = tl.arange(0, B)
    total = tl.zeros((B,), tl.float32)
    for k in range(1, 3):
        for j in tl.static_range(TURNS):
            total += tl.load(x_ptr + i, mask=i < n) * k
            tl.store(o_ptr + j * B + i, total + j, mask=i < n)


def functions(kernel: Any) -> list[str]:
    """The bodies of the functions that LLVM is given."""
    return re.split(r"^  llvm\.func ", kernel.asm["llvm"], flags=re.M)[1:]


def loops(body: str) -> int:
    """A loop is a block with an argument that a later block branches back to."""
    blocks = [int(n) for n in re.findall(r"^  \^bb(\d+)", body, re.M)]
    jumps = re.split(r"^  \^bb(\d+).*$", body, flags=re.M)[1:]
    found = set()
    for number, text in zip(map(int, jumps[::2]), jumps[1::2], strict=True):
        targets = {int(n) for n in re.findall(r"\^bb(\d+)", text)}
        found |= {target for target in targets if target <= number}
    assert found <= set(blocks)
    return len(found)


def expected(kernel: Any, x: np.ndarray, n: int, turns: int) -> np.ndarray:
    out = np.zeros((turns, x.size), np.float32)
    if kernel is masked_turns:
        out[:, :n] = x[:n] + np.arange(turns)[:, None]
    else:  # the second time around
        count = turns + 2 * np.arange(1, turns + 1)
        out[:, :n] = x[:n] * count[:, None] + np.arange(turns)[:, None]
    return out


@pytest.mark.parametrize("kernel", [masked_turns, masked_turns_in_a_loop], ids=lambda k: k.__name__)
def test_work_grows_with_the_number_of_turns(kernel: Any, rng: np.random.Generator) -> None:
    sizes = []
    for turns in (24, 48):
        # An n of 1 is a constant of the compiled code, which is smaller.
        x, n = rng.integers(-8, 8, 64).astype(np.float32), int(rng.integers(2, 64))
        out = np.zeros((turns, 64), np.float32)
        compiled = kernel[(1,)](x, out, n, TURNS=turns, B=64)
        assert (out == expected(kernel, x, n, turns)).all()
        bodies = functions(compiled)
        # What is left of a block is at most one stretch, and what chooses views.
        assert max(map(loops, bodies)) < 2 * LOOPS
        copies = compiled.asm["llvm"].count("llvm.intr.memcpy")
        assert sum(map(loops, bodies)) + copies >= 2 * turns
        sizes.append([len(compiled.asm[level]) for level in ("ttir", "memref", "llvm", "obj")])
    for small, large in zip(*sizes, strict=True):
        assert large < 2.3 * small, sizes


def test_a_kernel_of_ordinary_size_stays_in_one_piece(rng: np.random.Generator) -> None:
    x, out = np.zeros(64, np.float32), np.zeros((4, 64), np.float32)
    compiled = masked_turns[(1,)](x, out, 5, TURNS=4, B=64)
    assert "__loops" not in compiled.asm["llvm"]


# Everything in pieces


@pytest.fixture
def in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each statement with loops in it is a function of its own."""
    smallest = functools.partial(OutlineLoops, loops=1)
    monkeypatch.setattr(pipeline, "OutlineLoops", smallest)
    monkeypatch.setenv("PROTON_ALWAYS_COMPILE", "1")


@kernels(PROGRAMS // 12)
@given(drawn=programs())
def test_random_programs_in_pieces(in_pieces: None, drawn: Drawn) -> None:
    run(drawn)  # interpreted they are in no pieces


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_kernels_in_pieces(case: Any, in_pieces: None, rng: np.random.Generator) -> None:
    ranks = len(case.shapes.__code__.co_varnames)
    with proton.profile("pieces") as run:
        inputs = case.inputs(rng, *((3000,) if case.name == "vector add" else (70, 50, 60)[:ranks]))
        for code in case.launch.__globals__.values():
            if isinstance(code, proton.JITFunction):
                code._host._variants.clear()
        assert case.check(inputs) <= case.tolerance
    assert len(run.frame)
