"""Operands that are loaded early wait in shared memory where registers lack room; right either
way."""

import re

import numpy as np
import pytest

import proton
import proton.language as tl
from proton import GPUTarget
from proton.backends.nvidia.cubin import Assembler, Cubin
from proton.backends.nvidia.target import GPUKernel
from tests.compile.ptx.machine import run_on_arrays

HOPPER = GPUTarget("cuda", 90)


@proton.jit
def chained(a_ptr, b_ptr, c_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr):
    """out = ((a @ b.T) @ b + c) @ c.T, whose blocks are all loaded first, without a loop."""
    m, n = tl.arange(0, M), tl.arange(0, N)
    a = tl.load(a_ptr + m[:, None] * N + n[None, :])
    b = tl.load(b_ptr + m[:, None] * N + n[None, :])
    c = tl.load(c_ptr + m[:, None] * N + n[None, :])
    s = tl.dot(a, tl.trans(b)).to(a.dtype)
    t = (tl.dot(s, b) + c).to(a.dtype)
    tl.store(out_ptr + m[:, None] * M + m[None, :], tl.dot(t, tl.trans(c)))


@proton.jit
def three_products(a_ptr, b_ptr, c_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr):
    """out = a @ a.T * sum + b @ b.T, and that times its sum, + c @ c.T."""
    m, n = tl.arange(0, M), tl.arange(0, N)
    a = tl.load(a_ptr + m[:, None] * N + n[None, :])
    b = tl.load(b_ptr + m[:, None] * N + n[None, :])
    c = tl.load(c_ptr + m[:, None] * N + n[None, :])
    s = tl.dot(a, tl.trans(a))
    s = tl.dot(b, tl.trans(b), s * tl.sum(tl.abs(s)))
    s = tl.dot(c, tl.trans(c), s * tl.sum(tl.abs(s)))
    tl.store(out_ptr + m[:, None] * M + m[None, :], s)


def compiled(kernel: object, element: tl.dtype, m: int, n: int, warps: int) -> GPUKernel:
    types = [element] * 3 + [tl.float32]
    return kernel.warmup(*types, m, n, num_warps=warps, target=HOPPER)  # type: ignore[attr-defined]


def order(kernel: GPUKernel) -> str:
    """Of a kernel's ops: Loads, Stores to shared memory, products as "."."""
    letters = {"tt.load": "L", "ttg.local_alloc": "S", "mma_sync": ".", "warp_group_dot": "."}
    ops = re.findall(
        r'"(tt\.load|ttg\.local_alloc|ttng\.(?:mma_sync|warp_group_dot))"', kernel.asm["ttgir"]
    )
    return "".join(letters[name.removeprefix("ttng.")] for name in ops)


@pytest.mark.usefixtures("no_ptx")
def test_operands_of_a_warp_group_are_stored_before_others_are_loaded() -> None:
    """Three blocks of 128 registers each: the first ones are stored."""
    assert order(compiled(chained, tl.float32, 64, 256, 4)).startswith("LS")
    assert order(compiled(three_products, tl.float32, 128, 128, 4)).startswith("LSLL.")


@pytest.mark.parametrize(("kernel", "element", "warps"), [
    (chained, tl.float16, 1),
    (chained, tl.float32, 2),
    (three_products, tl.float16, 1),
    (three_products, tl.float32, 1),
])  # fmt: skip
def test_operands_of_a_warp_are_read_where_they_are_multiplied(
    kernel: object, element: tl.dtype, warps: int
) -> None:
    """Which spilled 248 bytes of a thread and more."""
    found = compiled(kernel, element, 32, 128, warps)
    assert order(found).startswith("LSLSLS.")
    assert found.n_spills == 0


@pytest.mark.usefixtures("no_ptx")
def test_blocks_that_fit_wait_in_registers() -> None:
    assert order(compiled(three_products, tl.float16, 32, 128, 2)).startswith("LLL")
    assert order(compiled(chained, tl.float16, 64, 64, 2)).startswith("LLL")
    assert order(compiled(three_products, tl.float32, 64, 128, 4)).startswith("LLL")


@pytest.mark.usefixtures("no_assembler")
@pytest.mark.parametrize("element", [np.float16, np.float32])
def test_what_waits_in_shared_memory_is_right(
    rng: np.random.Generator, element: type[np.floating]
) -> None:
    """What is loaded has the bits of fp16, so that tf32 has them, too."""
    a, b, c = (rng.normal(0, 1 / 8, (32, 128)).astype(np.float16).astype(element) for _ in range(3))
    x, y, z = (block.astype(np.float64) for block in (a, b, c))
    first = (x @ y.T).astype(element).astype(np.float64)
    s = x @ x.T
    s = s * np.abs(s).sum() + y @ y.T
    wants = {chained: (first @ y + z).astype(element).astype(np.float64) @ z.T,
             three_products: s * np.abs(s).sum() + z @ z.T}  # fmt: skip
    for kernel, want in wants.items():
        found = compiled(kernel, getattr(tl, element.__name__), 32, 128, 1)
        out = np.full((32, 32), np.nan, np.float32)
        run_on_arrays(found.asm["ptx"], (1, 1, 1), 32, found.shared, [a, b, c, out], rng)
        assert np.linalg.norm(out - want) < 4e-3 * np.linalg.norm(want)


def test_no_fewer_programs_are_tried_where_a_thread_has_all_registers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """ptxas makes room for more programs than shared memory does, whose threads may have all."""
    assembled = []
    finish = Assembler.finish

    def noted(assembler: Assembler) -> Cubin:
        assembled.append(finish(assembler))
        return assembled[-1]

    monkeypatch.setattr(Assembler, "finish", noted)
    kernel = compiled(three_products, tl.float32, 128, 16, 1)
    assert kernel.n_regs == HOPPER.facts.max_registers
    assert kernel.n_spills
    assert [cubin.registers < kernel.n_regs for cubin in assembled] == [True, False]


@proton.jit
def products_of_blocks(a_ptr, b_ptr, out_ptr, n, M: tl.constexpr):
    """What is multiplied comes by way of registers: nothing is copied ahead."""
    m = tl.arange(0, M)
    total = tl.zeros((M, M), tl.float32)
    for start in range(0, n, M):
        a = tl.load(a_ptr + m[:, None] * n + start + m[None, :])
        b = tl.load(b_ptr + m[None, :] * n + start + m[:, None])
        total = tl.dot(a, b, total)
    tl.store(out_ptr + m[:, None] * M + m[None, :], total)


@pytest.mark.parametrize("element", [tl.float16, tl.float32], ids=str)
def test_threads_meet_for_both_operands_at_once(
    element: tl.dtype, rng: np.random.Generator
) -> None:
    of = {"M": 32, "target": HOPPER, "num_warps": 4, "num_stages": 1}
    kernel = products_of_blocks.warmup(element, element, tl.float32, 96, **of)
    assert order(kernel) == "LSLS."
    loop = str(kernel.asm["llir"]).split("mma.sync", 1)[0]
    assert loop.count("nvvm.barrier") == 2
    type_ = np.float16 if element == tl.float16 else np.float32
    a, b = (rng.integers(-4, 5, (32, 96)).astype(type_) for _ in range(2))
    out = np.zeros((32, 32), np.float32)
    given = [a, b, out, 96]
    run_on_arrays(kernel.asm["ptx"], (1, 1, 1), 128, kernel.shared, given, rng)
    np.testing.assert_array_equal(out, a.astype(np.float32) @ b.T.astype(np.float32))
