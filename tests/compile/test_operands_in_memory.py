"""Operands of `mma` that a loop does not change: in registers where they fit, else in shared
memory; right either way."""

import re

import numpy as np
import pytest

import proton
import proton.language as tl
from proton import GPUTarget
from proton.backends.nvidia.target import GPUKernel
from tests.compile.ptx.emulation import Emulation
from tests.compile.ptx.machine import run_on_arrays


@proton.jit
def attention_like(q_ptr, k_ptr, out_ptr, n, M: tl.constexpr, N: tl.constexpr, D: tl.constexpr):
    """out = sum over blocks of (q @ k.T) @ k: q is on the left in each iteration."""
    m, d, j = tl.arange(0, M), tl.arange(0, D), tl.arange(0, N)
    q = tl.load(q_ptr + m[:, None] * D + d[None, :])
    out = tl.zeros((M, D), tl.float32)
    for start in range(0, n, N):
        k = tl.load(k_ptr + (start + j)[:, None] * D + d[None, :])
        out = tl.dot(tl.dot(q, tl.trans(k)).to(q.dtype), k, out)
    tl.store(out_ptr + m[:, None] * D + d[None, :], out)


@proton.jit
def right_factor(x_ptr, w_ptr, out_ptr, n, M: tl.constexpr, K: tl.constexpr, N: tl.constexpr):
    """Blocks of rows times one matrix, which is on the right in each iteration."""
    m, k, j = tl.arange(0, M), tl.arange(0, K), tl.arange(0, N)
    w = tl.load(w_ptr + k[:, None] * N + j[None, :])
    for start in range(0, n, M):
        x = tl.load(x_ptr + (start + m)[:, None] * K + k[None, :])
        tl.store(out_ptr + (start + m)[:, None] * N + j[None, :], tl.dot(x, w))


@proton.jit
def in_two_loops(x_ptr, w_ptr, out_ptr, n, M: tl.constexpr, K: tl.constexpr, N: tl.constexpr):
    """The same, transposed, in a loop in a loop: out = x @ w.T, half of the rows after half."""
    m, k, j = tl.arange(0, M), tl.arange(0, K), tl.arange(0, N)
    w = tl.load(w_ptr + j[:, None] * K + k[None, :])
    for half in range(2):
        for start in range(half * n, half * n + n, M):
            x = tl.load(x_ptr + (start + m)[:, None] * K + k[None, :])
            tl.store(out_ptr + (start + m)[:, None] * N + j[None, :], tl.dot(x, tl.trans(w)))


@proton.jit
def both_changed(x_ptr, y_ptr, out_ptr, n, M: tl.constexpr, K: tl.constexpr, N: tl.constexpr):
    """An ordinary product, of whose operands none stays."""
    m, k, j = tl.arange(0, M), tl.arange(0, K), tl.arange(0, N)
    out = tl.zeros((M, N), tl.float32)
    for start in range(0, n, K):
        x = tl.load(x_ptr + m[:, None] * n + (start + k)[None, :])
        y = tl.load(y_ptr + (start + k)[:, None] * N + j[None, :])
        out = tl.dot(x, y, out)
    tl.store(out_ptr + m[:, None] * N + j[None, :], out)


def compiled(kernel: object, *blocks: int, warps: int, arch: int = 80) -> GPUKernel:
    pointers = [tl.float16, tl.float16, tl.float32, 256]
    target = GPUTarget("cuda", arch)
    return kernel.warmup(*pointers, *blocks, num_warps=warps, target=target)  # type: ignore[attr-defined]


def stays_in_memory(kernel: GPUKernel) -> bool:
    """Whether a block from before the loop is read from shared memory in it."""
    before, loop = kernel.asm["ttgir"].split("scf.for", 1)
    held = re.findall(r"(%\w+) = \"ttg.local_alloc\"", before)
    return any(re.search(rf'"ttg.local_load"\({name}\)', loop) for name in held)


@pytest.mark.usefixtures("no_ptx")
@pytest.mark.parametrize("arch", [80, 90])
def test_an_operand_that_does_not_fit_waits_in_shared_memory(arch: int) -> None:
    large = compiled(attention_like, 64, 32, 128, warps=1, arch=arch)
    assert stays_in_memory(large)
    assert stays_in_memory(compiled(right_factor, 64, 128, 64, warps=1, arch=arch))
    nested = compiled(in_two_loops, 64, 128, 64, warps=1, arch=arch)  # outside of both loops
    assert stays_in_memory(nested)
    assert '"tt.trans"' not in nested.asm["ttgir"].split("scf.for", 1)[0]


@proton.jit
def weight_gradients(q_ptr, k_ptr, out_ptr, n, M: tl.constexpr, N: tl.constexpr, D: tl.constexpr):
    """Of two scores, by k and by v: both stay, and so do two accumulators as large."""
    m, d, j = tl.arange(0, M), tl.arange(0, D), tl.arange(0, N)
    k = tl.load(k_ptr + j[:, None] * D + d[None, :])
    v = tl.load(k_ptr + (N + j)[:, None] * D + d[None, :])
    dk = tl.zeros((N, D), tl.float32)
    dv = tl.zeros((N, D), tl.float32)
    for start in range(0, n, M):
        q = tl.load(q_ptr + (start + m)[:, None] * D + d[None, :])
        s, p = tl.dot(q, tl.trans(k)), tl.dot(q, tl.trans(v))
        dv = tl.dot(tl.trans(s.to(q.dtype)), q, dv)
        dk = tl.dot(tl.trans((s * p).to(q.dtype)), q, dk)
    tl.store(out_ptr + j[:, None] * D + d[None, :], dk)
    tl.store(out_ptr + (N + j)[:, None] * D + d[None, :], dv)


def test_operands_take_the_memory_of_programs_that_lack_registers() -> None:
    """Accumulators and an operand of the loop alone have more than half of an SM's registers."""
    kernel = compiled(weight_gradients, 32, 32, 512, warps=8, arch=90)
    assert kernel.asm["ttgir"].split("scf.for", 1)[0].count('"ttg.local_alloc"') == 2
    assert kernel.n_spills == 0


@proton.jit
def columns_first(q_ptr, k_ptr, out_ptr, n, M: tl.constexpr, N: tl.constexpr, D: tl.constexpr):
    """Rows that are loaded are first the right operand as they lie, then the left one."""
    m, d, j = tl.arange(0, M), tl.arange(0, D), tl.arange(0, N)
    k = tl.load(k_ptr + j[:, None] * D + d[None, :])
    weights = tl.load(k_ptr + j[:, None] * D + m[None, :])
    out = tl.zeros((N, D), tl.float32)
    for start in range(0, n, M):
        q = tl.load(q_ptr + (start + m)[:, None] * D + d[None, :])
        out = tl.dot(weights, q, out)
        scores = tl.dot(q, tl.trans(k))
        out = tl.dot(tl.trans(scores.to(q.dtype)), q, out)
    tl.store(out_ptr + j[:, None] * D + d[None, :], out)


@pytest.mark.usefixtures("no_assembler")
def test_shared_operands_are_stored_as_threads_have_them(rng: np.random.Generator) -> None:
    """16 bytes at a time, though the first dot has columns side by side."""
    types = [tl.float16, tl.float16, tl.float32, 64]
    options = {"num_warps": 2, "num_stages": 1, "target": GPUTarget("cuda", 90)}
    kernel = columns_first.warmup(*types, 32, 32, 128, **options)
    assert memories_of_loop(kernel) == 1
    assert not re.findall(r"st\.shared\.[bu]16", kernel.asm["ptx"])
    q, k = (rng.standard_normal((rows, 128)).astype(np.float16) for rows in (64, 32))
    out = np.full((32, 128), np.nan, np.float32)
    run_on_arrays(kernel.asm["ptx"], (1, 1, 1), 64, kernel.shared, [q, k, out, 64], rng)
    want = np.zeros((32, 128))
    for x in (q[:32].astype(np.float64), q[32:].astype(np.float64)):
        want += k[:, :32].astype(np.float64) @ x + (x @ k.T).astype(np.float16).T @ x
    np.testing.assert_allclose(out, want, rtol=1e-2, atol=0.5)


@pytest.mark.usefixtures("no_ptx")
@pytest.mark.parametrize("warps", [1, 2])
def test_what_fits_stays_in_registers(warps: int) -> None:
    assert not stays_in_memory(compiled(attention_like, 16, 16, 64, warps=warps))
    assert not stays_in_memory(compiled(right_factor, 16, 32, 32, warps=warps))
    assert not stays_in_memory(compiled(right_factor, 16, 128, 64, warps=warps))
    assert not stays_in_memory(compiled(both_changed, 64, 64, 128, warps=warps))


@pytest.mark.usefixtures("no_assembler")
def test_what_waits_in_shared_memory_is_right(rng: np.random.Generator) -> None:
    q, k = (rng.standard_normal((64, 128)).astype(np.float16) for _ in range(2))
    out = np.full((64, 128), np.nan, np.float32)
    w, x = rng.standard_normal((128, 64)).astype(np.float16), np.concatenate([k, q])
    product, nested = (np.full((128, 64), np.nan, np.float32) for _ in range(2))
    with Emulation(1, rng).installed():
        attention_like[(1,)](q, k, out, 64, 64, 32, 128, num_warps=1)
        right_factor[(1,)](x, w, product, 128, 64, 128, 64, num_warps=1)
        in_two_loops[(1,)](x, w.T.copy(), nested, 64, 64, 128, 64, num_warps=1)
    scores = (q.astype(np.float32) @ k.T.astype(np.float32)).astype(np.float16)
    want = scores.astype(np.float32) @ k.astype(np.float32)
    np.testing.assert_allclose(out, want, rtol=2e-3, atol=1e-1)
    for rows in (product, nested):
        np.testing.assert_allclose(rows, x.astype(np.float32) @ w.astype(np.float32), atol=1e-2)


@proton.jit
def outside_of_loops(q_ptr, k_ptr, out_ptr, n, M: tl.constexpr, N: tl.constexpr, D: tl.constexpr):
    """A product in a loop, and one behind it."""
    m, d, j = tl.arange(0, M), tl.arange(0, D), tl.arange(0, N)
    q = tl.load(q_ptr + m[:, None] * D + d[None, :])
    out = tl.zeros((M, N), tl.float32)
    for start in range(0, n, N):
        k = tl.load(k_ptr + (start + j)[:, None] * D + d[None, :])
        out = tl.dot(q, tl.trans(k), out)
    last = tl.load(k_ptr + j[:, None] * D + d[None, :])
    tl.store(out_ptr + m[:, None] * N + j[None, :], tl.dot(q, tl.trans(last), out))


@pytest.mark.usefixtures("no_ptx")
def test_a_product_outside_of_loops_takes_registers() -> None:
    assert not stays_in_memory(compiled(outside_of_loops, 16, 16, 64, warps=1))
    assert stays_in_memory(compiled(outside_of_loops, 64, 64, 128, warps=1))


# Values that are converted to several operands


@proton.jit
def gradients(q_ptr, k_ptr, out_ptr, n, M: tl.constexpr, N: tl.constexpr, D: tl.constexpr):
    """Of scores that are added up: q, scaled, is on the right of both dots, transposed in one."""
    m, d, j = tl.arange(0, M), tl.arange(0, D), tl.arange(0, N)
    k = tl.load(k_ptr + j[:, None] * D + d[None, :])
    out = tl.zeros((N, D), tl.float32)
    for start in range(0, n, M):
        q = tl.load(q_ptr + (start + m)[:, None] * D + d[None, :]) * 2
        scores = tl.dot(k, tl.trans(q))
        out = tl.dot(scores.to(q.dtype), q, out)
    tl.store(out_ptr + j[:, None] * D + d[None, :], out)


@proton.jit
def squares(q_ptr, k_ptr, out_ptr, n, M: tl.constexpr, N: tl.constexpr, D: tl.constexpr):
    """A square block times itself: the left and the right operand of one dot."""
    m, d = tl.arange(0, M), tl.arange(0, D)
    out = tl.zeros((M, D), tl.float32)
    for start in range(0, n, M):
        q = tl.load(q_ptr + (start + m)[:, None] * D + d[None, :]) * 2
        out = tl.dot(q, q, out)
    tl.store(out_ptr + m[:, None] * D + d[None, :], out)


@proton.jit
def alone(q_ptr, k_ptr, out_ptr, n, M: tl.constexpr, N: tl.constexpr, D: tl.constexpr):
    """One operand of one dot."""
    m, d, j = tl.arange(0, M), tl.arange(0, D), tl.arange(0, N)
    k = tl.load(k_ptr + j[:, None] * D + d[None, :])
    out = tl.zeros((N, M), tl.float32)
    for start in range(0, n, M):
        q = tl.load(q_ptr + (start + m)[:, None] * D + d[None, :]) * 2
        out = tl.dot(k, tl.trans(q), out)
    tl.store(out_ptr + j[:, None] * M + m[None, :], out)


def memories_of_loop(kernel: GPUKernel) -> int:
    return kernel.asm["ttgir"].split("scf.for", 1)[1].count('"ttg.local_alloc"')


@pytest.mark.usefixtures("no_assembler")
@pytest.mark.parametrize(
    ("kernel", "blocks", "memories"),
    [(gradients, (16, 32, 64), 1), (squares, (32, 32, 32), 1), (alone, (16, 32, 64), 0)],
    ids=["gradients", "squares", "alone"],
)
def test_a_value_of_several_operands_is_read_from_one_memory(
    kernel: object, blocks: tuple[int, ...], memories: int, rng: np.random.Generator
) -> None:
    options = {"num_warps": 2, "num_stages": 1, "target": GPUTarget("cuda", 90)}
    given = [tl.float16, tl.float16, tl.float32, 64]
    made = kernel.warmup(*given, *blocks, **options)  # type: ignore[attr-defined]
    assert memories_of_loop(made) == memories
    m, _, d = blocks
    q, k = (rng.standard_normal((rows, d)).astype(np.float16) for rows in (64, 32))
    parts = [(2 * q[start : start + m]).astype(np.float64) for start in range(0, 64, m)]
    if kernel is gradients:
        want = sum((k.astype(np.float64) @ x.T).astype(np.float16) @ x for x in parts)
    else:
        want = sum(x @ x if kernel is squares else k @ x.T for x in parts)
    out = np.zeros(np.shape(want), np.float32)
    run_on_arrays(made.asm["ptx"], (1, 1, 1), 64, made.shared, [q, k, out, 64], rng)
    np.testing.assert_allclose(out, want, rtol=1e-2, atol=0.5)


def test_operands_wait_in_memory_where_more_programs_fit_then() -> None:
    """64 registers of a thread: with them an SM has room for two programs of four warps."""
    types = [tl.float32, tl.float32, tl.float32, 256]
    options = {"num_warps": 4, "num_stages": 1, "target": GPUTarget("cuda", 90)}
    kernel = attention_like.warmup(*types, 16, 32, 128, **options)
    assert stays_in_memory(kernel)
    facts = options["target"].facts
    assert facts.programs_by_registers(kernel.n_regs, 128) >= 3
    assert facts.programs_per_sm(128, kernel.shared) >= 3
