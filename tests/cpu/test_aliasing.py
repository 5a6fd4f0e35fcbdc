"""Memory that a kernel reaches in more than one way, and blocks too large for the stack."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import proton
import proton.language as tl
from proton import knobs
from tests.cpu.harness import ordinary


@proton.jit
def through_a_table(table_ptr, out_ptr):
    hidden = tl.load(table_ptr).to(tl.pointer_type(tl.float32))
    before = tl.load(hidden)
    tl.store(out_ptr, before + 1)
    tl.store(out_ptr + 1, tl.load(hidden))
    tl.store(hidden + 2, 7.0)
    tl.store(out_ptr + 3, tl.load(out_ptr + 2))


@proton.jit
def blocks_through_a_table(table_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    hidden = tl.load(table_ptr).to(tl.pointer_type(tl.float32))
    before = tl.load(hidden + offs)
    tl.store(out_ptr + offs, before + 1)
    after = tl.load(hidden + offs)
    tl.store(hidden + N + offs, after + before)
    tl.store(out_ptr + 2 * N + offs, tl.load(out_ptr + N + offs))


def test_an_address_in_memory_may_point_into_an_argument(rng: np.random.Generator) -> None:
    out = np.array([5, 0, 0, 0], np.float32)
    through_a_table[(1,)](np.array([out.ctypes.data]), out)
    assert out.tolist() == [6, 6, 7, 7]
    out = ordinary(rng, "float32", 3 * 64)
    x = out[:64].copy()
    blocks_through_a_table[(1,)](np.array([out.ctypes.data]), out, N=64)
    assert (out == np.concatenate([x + 1, x + 1 + x, x + 1 + x])).all()


def test_what_no_comparison_of_arguments_can_tell_is_compiled_once(cache_dir: Path) -> None:
    through_a_table.device_caches.clear()
    out = np.array([5, 0, 0, 0], np.float32)
    kernel = through_a_table[(1,)](np.array([out.ctypes.data]), out)
    assert not kernel.metadata["disjoint"]
    assert len([*cache_dir.glob("*/llvm.mlir")]) == 1


@proton.jit
def add_pair(pair, out_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out_ptr + i, tl.load(pair[0] + i) + tl.load(pair[1] + i))


@proton.jit
def add(x_ptr, y_ptr, out_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out_ptr + i, tl.load(x_ptr + i) + tl.load(y_ptr + i))


def test_a_kernel_in_place_is_compiled_once(cache_dir: Path) -> None:
    """Not for arguments that are apart as well, until a launch has such."""
    x = np.arange(64, dtype=np.float32)
    in_place = add[(1,)](x, x[16:], x[8:], N=16)
    assert [in_place.metadata["disjoint"], len(list(cache_dir.glob("?" * 52)))] == [False, 1]
    np.testing.assert_array_equal(x[8:24], np.arange(16) * 2 + 16)
    out = np.zeros(16, np.float32)
    twice = add[(1,)](x, x, out, N=16)
    assert twice.metadata["disjoint"]
    np.testing.assert_array_equal(out, x[:16] * 2)
    assert add[(1,)](x, x[1:], x[2:], N=16).key == in_place.key
    assert add[(1,)](x, out, np.zeros_like(out), N=16).key == twice.key
    assert len(list(cache_dir.glob("?" * 52))) == 2


def test_arguments_in_a_tuple_overlap_others() -> None:
    x = np.arange(64, dtype=np.float32)
    assert not add_pair[(1,)]((x, x[1:]), x[2:], N=16).metadata["disjoint"]
    assert add_pair[(1,)]((x, x), np.zeros_like(x), N=16).metadata["disjoint"]


@proton.jit
def store_then_load_elsewhere(x_ptr, y_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    before = tl.load(y_ptr + offs)
    tl.store(x_ptr + offs, offs * 10)
    after = tl.load(y_ptr + offs)
    tl.store(x_ptr + (N - 1 - offs), before)
    tl.store(out_ptr + offs, after)
    tl.store(out_ptr + N + offs, tl.load(y_ptr + offs))


@pytest.mark.parametrize("shift", [-64, -63, -5, 0, 1, 30, 63, 64, 70])
def test_a_load_sees_stores_through_another_argument(rng: np.random.Generator, shift: int) -> None:
    memory, out = ordinary(rng, "int32", 300), np.zeros((2, 64), np.int32)
    want = memory.copy()
    store_then_load_elsewhere[(1,)](memory[100:], memory[100 + shift :], out, N=64)
    x, y = want[100:164], want[100 + shift : 164 + shift]
    before = y.copy()
    x[:] = np.arange(64) * 10
    first = y.copy()
    x[::-1] = before
    assert (out == np.array([first, y])).all()
    assert (memory == want).all()


@proton.jit
def branch_of_pointers(x_ptr, y_ptr, flag, N: tl.constexpr):
    offs = tl.arange(0, N)
    if flag > 0:
        source, target = x_ptr + offs, y_ptr + offs
    else:
        source, target = y_ptr + offs, x_ptr + offs
    value = tl.load(source)
    tl.store(target, value + 1)
    tl.store(source, tl.load(target) * 2 + value)


@pytest.mark.parametrize("flag", [0, 1, 2])
@pytest.mark.parametrize("shift", [0, 3, 64])
def test_a_branch_may_write_either_argument(
    rng: np.random.Generator, shift: int, flag: int
) -> None:
    memory = ordinary(rng, "int32", 200)
    want = memory.copy()
    branch_of_pointers[(1,)](memory, memory[shift:], flag, N=64)
    x, y = want[:64], want[shift : shift + 64]
    source, target = (x, y) if flag else (y, x)
    value = source.copy()
    target[:] = value + 1
    source[:] = target.copy() * 2 + value
    assert (memory == want).all()


@proton.jit
def prefix_in_place(x_ptr, n, N: tl.constexpr):
    offs = tl.arange(0, N)
    for i in range(1, n):
        row = tl.load(x_ptr + (i - 1) * N + offs)
        tl.store(x_ptr + i * N + offs, tl.load(x_ptr + i * N + offs) + row)


def test_iterations_read_what_earlier_ones_wrote(rng: np.random.Generator) -> None:
    x = ordinary(rng, "int64", (20, 32))
    want = x.cumsum(0)
    prefix_in_place[(1,)](x, 20, N=32)
    assert (x == want).all()


# Large blocks


@proton.jit
def reverse_rows(x_ptr, out_ptr, n, N: tl.constexpr):
    row, offs = tl.program_id(0), tl.arange(0, N)
    index = n - 1 - (offs ^ 1 ^ 1)
    x = tl.load(x_ptr + row * n + index, mask=offs < n, other=0)
    shifted = tl.load(x_ptr + row * n + (offs + 1) % n, mask=offs < n, other=0)
    tl.store(out_ptr + row * n + offs, x - shifted + tl.max(shifted, 0), mask=offs < n)


@pytest.mark.parametrize("threads", [1, 2, 4])
@pytest.mark.parametrize("log_size", [12, 15, 17])
def test_blocks_beyond_the_stack(rng: np.random.Generator, log_size: int, threads: int) -> None:
    n = (1 << log_size) - 77
    x, out = ordinary(rng, "float64", (9, n)), np.zeros((9, n))
    with knobs.scope(num_threads=threads):
        for _ in range(2):
            reverse_rows[(9,)](x, out, n, N=1 << log_size)
    for given, mine in zip(x, out, strict=True):
        shifted = np.roll(given, -1)
        assert (mine == given[::-1] - shifted + shifted.max()).all()


@proton.jit
def powers(x_ptr, out_ptr, steps, N: tl.constexpr):
    r, c = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :]
    x = tl.load(x_ptr + r * N + c)
    total = x
    for _ in range(steps):
        total = tl.dot(total, x)
    tl.store(out_ptr + r * N + c, total)


@pytest.mark.parametrize("size", [64, 128, 256])
def test_large_products_in_a_loop(rng: np.random.Generator, size: int) -> None:
    x: Any = rng.standard_normal((size, size)) / size**0.5
    out = np.zeros_like(x)
    powers[(1,)](x, out, 5, N=size)
    np.testing.assert_allclose(out, np.linalg.matrix_power(x, 6), rtol=1e-9, atol=1e-9)
