"""The schedule of a loop: what it says of kernels (`kernel.asm["schedule"]`), and that those whose
dots go on while other work is done compute the same, on the machine of tests/compile/ptx. Its rules
one by one: tests/ir/lit/passes/tritongpu-schedule-loops*.mlir; of warp groups that alternate:
test_warp_group_order.py."""

import re
from typing import Any

import numpy as np
import pytest

import proton
import proton.language as tl
from tests.compile.ptx.emulation import Emulation
from tests.compile.test_gpu_records import compiled


@proton.jit
def product(a_ptr, b_ptr, c_ptr, K, stride_a, B: tl.constexpr):
    m, n, d = tl.arange(0, B), tl.arange(0, B), tl.arange(0, B)
    acc = tl.zeros((B, B), tl.float32)
    for start in range(0, K, B):
        a = tl.load(a_ptr + m[:, None] * stride_a + start + d[None, :])
        b = tl.load(b_ptr + (start + d)[:, None] * B + n[None, :])
        acc = tl.dot(a, b, acc)
    tl.store(c_ptr + m[:, None] * B + n[None, :], acc)


@proton.jit
def gated(a_ptr, b_ptr, c_ptr, K, stride_a, B: tl.constexpr):
    """Two products of the same left factor."""
    m, n, d = tl.arange(0, B), tl.arange(0, B), tl.arange(0, B)
    x = tl.zeros((B, B), tl.float32)
    y = tl.zeros((B, B), tl.float32)
    for start in range(0, K, B):
        a = tl.load(a_ptr + m[:, None] * stride_a + start + d[None, :])
        b = tl.load(b_ptr + (start + d)[:, None] * B + n[None, :])
        x = tl.dot(a, b, x)
        y = tl.dot(a, tl.trans(b), y)
    tl.store(c_ptr + m[:, None] * B + n[None, :], x - y)


@proton.jit
def threefold(a_ptr, b_ptr, c_ptr, K, stride_a, B: tl.constexpr):
    """Three products: one wait is for all that go on."""
    m, n, d = tl.arange(0, B), tl.arange(0, B), tl.arange(0, B)
    x = tl.zeros((B, B), tl.float32)
    y = tl.zeros((B, B), tl.float32)
    z = tl.zeros((B, B), tl.float32)
    for start in range(0, K, B):
        a = tl.load(a_ptr + m[:, None] * stride_a + start + d[None, :])
        b = tl.load(b_ptr + (start + d)[:, None] * B + n[None, :])
        x = tl.dot(a, b, x)
        y = tl.dot(a, tl.trans(b), y)
        z = tl.dot(b, a, z)
    tl.store(c_ptr + m[:, None] * B + n[None, :], x - y + z)


@proton.jit
def partial_sums(a_ptr, b_ptr, c_ptr, K, stride_a, B: tl.constexpr):
    """An accumulator that is stored in each iteration."""
    m, n, d = tl.arange(0, B), tl.arange(0, B), tl.arange(0, B)
    acc = tl.zeros((B, B), tl.float32)
    for start in range(0, K, B):
        a = tl.load(a_ptr + m[:, None] * stride_a + start + d[None, :])
        b = tl.load(b_ptr + (start + d)[:, None] * B + n[None, :])
        tl.store(c_ptr + start * B + m[:, None] * B + n[None, :], acc)
        acc = tl.dot(a, b, acc)
    tl.store(c_ptr + K * B + m[:, None] * B + n[None, :], acc)


BLOCK = 64
# (kernel, elements of a row of a: where it is odd, threads copy a element by element) and what the
# schedule says of the loop: its stages, and of each wait for a dot the stage and what is under way.
CASES: dict[tuple[Any, int], tuple[int, list[tuple[int, int]]]] = {
    (product, 256): (3, [(3, 1)]),
    (product, 257): (3, [(3, 0)]),  # b alone has buffers
    (gated, 256): (3, [(3, 1)]),  # one wait for both, which ends the first of this iteration
    (gated, 257): (3, [(3, 1), (3, 0)]),
    (threefold, 256): (3, [(3, 2)]),
    (partial_sums, 256): (3, [(2, 0)]),
    (partial_sums, 257): (3, [(2, 0)]),
}


@pytest.mark.usefixtures("no_assembler")
@pytest.mark.parametrize(("kernel", "row"), CASES, ids=str)
def test_dots_go_on(rng: np.random.Generator, kernel: Any, row: int) -> None:
    """And are waited for where the next iteration needs what they read, or their result."""
    length = int(rng.integers(2, 5)) * BLOCK
    a = rng.standard_normal((BLOCK, row), np.float32).astype(np.float16)
    b = rng.standard_normal((length, BLOCK), np.float32).astype(np.float16)
    x, y = a.astype(np.float64), b.astype(np.float64)
    blocks = [slice(start, start + BLOCK) for start in range(0, length, BLOCK)]
    want = sum(x[:, part] @ y[part] for part in blocks)
    count = 1
    if kernel in (gated, threefold):
        want = want - sum(x[:, part] @ y[part].T for part in blocks)
    if kernel is threefold:
        want = want + sum(y[part] @ x[:, part] for part in blocks)
    if kernel is partial_sums:
        want = np.cumsum([0 * want, *(x[:, part] @ y[part] for part in blocks)], axis=0)
        count = len(blocks) + 1
    out = np.full((count, BLOCK, BLOCK), np.nan, np.float32)
    with Emulation(4, rng).installed():
        kernel[1](a, b, out, length, row, B=BLOCK)
    np.testing.assert_allclose(out, np.reshape(want, out.shape), rtol=1e-4, atol=1e-3)
    with proton.knobs.scope(verify_each=True, always_compile=True):
        found = compiled(kernel, a, b, out, length, row, B=BLOCK, num_warps=4)
    text = found.asm["schedule"]
    stages = int(re.findall(r"stages (\d+)", text)[0])
    waits = re.findall(r"^  (\d+)  ttng\.warp_group_dot_wait .*  (\d+) under way", text, re.M)
    assert (stages, [tuple(map(int, wait)) for wait in waits]) == CASES[kernel, row]


def test_the_schedule_of_a_loop_without_dots_says_what_begins_early() -> None:
    @proton.jit
    def moved(x_ptr, out_ptr, n, B: tl.constexpr):
        i = tl.arange(0, B)
        total = tl.zeros((B,), tl.float32)
        for start in tl.range(0, n, B, num_stages=4):
            total += tl.load(x_ptr + start + i)
        tl.store(out_ptr + i, total)

    x = np.zeros(1024, np.float32)
    lines = compiled(moved, x, x, 1024, B=128, num_warps=1).asm["schedule"].splitlines()
    assert lines[0].endswith(": stages 4, groups 1")
    assert [line.split()[0] for line in lines if "tt.load" in line or "addf" in line] == ["0", "3"]
    assert sum("begin copies" in line for line in lines) == 1


@pytest.mark.usefixtures("no_assembler")
def test_a_load_has_what_another_one_copies_where_it_is_cut(rng: np.random.Generator) -> None:
    """Its operand is another one when it gives way to its own buffer."""

    @proton.jit
    def filled(x_ptr, y_ptr, out_ptr, n, cut, B: tl.constexpr):
        i = tl.arange(0, B)
        total = tl.zeros((B,), tl.float32)
        for start in tl.range(0, n, B, num_stages=3):
            x = tl.load(x_ptr + start + i)
            total += tl.load(y_ptr + start + i, mask=start + i < cut, other=x)
        tl.store(out_ptr + i, total)

    cut = int(rng.integers(1, 1024))
    x, y = rng.integers(-9, 9, (2, 1024)).astype(np.float32)
    out = np.full(128, np.nan, np.float32)
    with Emulation(1, rng).installed():
        filled[1](x, y, out, 1024, cut, B=128)
    np.testing.assert_equal(out, np.append(y[:cut], x[cut:]).reshape(-1, 128).sum(0))
    lines = compiled(filled, x, y, out, 1024, cut, B=128, num_warps=1).asm["schedule"].splitlines()
    assert [line.split()[0] for line in lines if "tt.load" in line] == ["0", "0"]


def test_a_kernel_without_a_loop_has_no_schedule() -> None:
    @proton.jit
    def copied(x_ptr, out_ptr, B: tl.constexpr):
        i = tl.arange(0, B)
        tl.store(out_ptr + i, tl.load(x_ptr + i))

    x = np.zeros(128, np.float32)
    assert compiled(copied, x, x, B=128, num_warps=1).asm["schedule"] == ""
