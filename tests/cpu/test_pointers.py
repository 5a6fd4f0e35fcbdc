"""Pointers: carried by loops, in place, overlapping, made of integers, scalar, scattered."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import proton
import proton.language as tl
from proton import LaunchError
from tests.cpu.harness import DTYPES, ordinary, pointer


@proton.jit
def copy_by_carried_pointers(x_ptr, out_ptr, n, step, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    source, target = x_ptr + offs * step, out_ptr + offs
    for start in range(0, n, BLOCK):
        mask = offs < n - start
        tl.store(target, tl.load(source, mask=mask), mask=mask)
        source += BLOCK * step
        target += BLOCK


@proton.jit
def copy_by_a_while_loop(x_ptr, out_ptr, n, step, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    source, target = x_ptr + offs * step, out_ptr + offs
    left = n
    while left > 0:
        tl.store(target, tl.load(source, mask=offs < left), mask=offs < left)
        source += BLOCK * step
        target += BLOCK
        left -= BLOCK


@proton.jit
def copy_by_unstructured_pointers(x_ptr, out_ptr, n, step, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    source, target = x_ptr + (offs ^ 1) * step, out_ptr + (offs ^ 1)
    for start in range(0, n, BLOCK):
        mask = (offs ^ 1) < n - start
        tl.store(target, tl.load(source, mask=mask), mask=mask)
        source += (BLOCK + 0 * offs) * step
        target += BLOCK + 0 * offs


@proton.jit
def copy_by_scalar_pointers(x_ptr, out_ptr, n, step, BLOCK: tl.constexpr):
    source, target = x_ptr, out_ptr
    for _ in range(n):
        tl.store(target, tl.load(source))
        source += step
        target += 1


@pytest.mark.parametrize("n", [0, 1, 31, 32, 33, 200])
@pytest.mark.parametrize("step", [1, 3])
@pytest.mark.parametrize(
    "kernel",
    [
        copy_by_carried_pointers,
        copy_by_a_while_loop,
        copy_by_unstructured_pointers,
        copy_by_scalar_pointers,
    ],
    ids=lambda kernel: kernel.__name__,
)
def test_pointers_carried_by_loops(
    rng: np.random.Generator, kernel: Any, step: int, n: int
) -> None:
    x, out = ordinary(rng, "int32", (n + 1) * step), np.full(n + 40, 77, np.int32)
    kernel[(1,)](x, out, n, step, BLOCK=32)
    assert (out[:n] == x[: n * step : step]).all()
    assert (out[n:] == 77).all()


@proton.jit
def transpose_tiles(x_ptr, out_ptr, rows, columns, T: tl.constexpr):
    r, c = tl.program_id(0) * T + tl.arange(0, T), tl.arange(0, T)
    source = x_ptr + r[:, None] * columns + c[None, :]
    target = out_ptr + c[:, None] * rows + r[None, :]
    for start in range(0, columns, T):
        inside = (r[:, None] < rows) & (start + c[None, :] < columns)
        tile = tl.load(source, mask=inside)
        tl.store(target, tile.T, mask=inside.T)
        source += T
        target += T * rows


@pytest.mark.parametrize("shape", [(1, 1), (8, 8), (13, 29), (40, 7)])
def test_transpose_with_carried_tiles(rng: np.random.Generator, shape: tuple[int, int]) -> None:
    x = ordinary(rng, "float32", shape)
    out = np.zeros(shape[::-1], np.float32)
    transpose_tiles[(proton.cdiv(shape[0], 8),)](x, out, *shape, T=8)
    assert (out == x.T).all()


@proton.jit
def swap_pointers(a_ptr, b_ptr, steps, N: tl.constexpr):
    source, target = a_ptr + tl.arange(0, N), b_ptr + tl.arange(0, N)
    for _ in range(steps):
        tl.store(target, tl.load(source) + 1)
        source, target = target, source


@pytest.mark.interpreted
@pytest.mark.parametrize("steps", [0, 1, 2, 5])
def test_pointers_that_a_loop_swaps(steps: int) -> None:
    a, b = np.zeros(16, np.int32), np.full(16, -5, np.int32)
    swap_pointers[(1,)](a, b, steps, N=16)
    arrays = [np.zeros(16, np.int32), np.full(16, -5, np.int32)]
    for step in range(steps):
        arrays[(step + 1) % 2] = arrays[step % 2] + 1
    assert (a == arrays[0]).all()
    assert (b == arrays[1]).all()


# One array for source and target


@proton.jit
def add_in_place(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < n)
    tl.store(y_ptr + offs, x + 1, mask=offs < n)


@proton.jit
def move(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    tl.store(y_ptr + offs, tl.load(x_ptr + offs, mask=offs < n), mask=offs < n)


@proton.jit
def move_sum(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < n)
    y = tl.load(y_ptr + offs, mask=offs < n)
    tl.store(y_ptr + offs, x * 2 + y, mask=offs < n)
    tl.store(x_ptr + offs, x - y, mask=offs < n)


@proton.jit
def reverse_in_place(x_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    tl.store(x_ptr + (N - 1 - offs), tl.load(x_ptr + offs))


@proton.jit
def transpose_in_place(x_ptr, N: tl.constexpr):
    r, c = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :]
    tl.store(x_ptr + c * N + r, tl.load(x_ptr + r * N + c))


@proton.jit
def rotate_in_place(x_ptr, n, k, N: tl.constexpr):
    offs = tl.arange(0, N)
    values = tl.load(x_ptr + (offs + k) % n, mask=offs < n)
    tl.store(x_ptr + offs, values, mask=offs < n)


@pytest.mark.parametrize("n", [0, 1, 100, 128, 300])
def test_in_place(rng: np.random.Generator, n: int) -> None:
    x = ordinary(rng, "float32", 300)
    want = x.copy()
    want[:n] += 1
    add_in_place[(proton.cdiv(n, 128),)](x, x, n, BLOCK=128)
    assert (x == want).all()


@pytest.mark.parametrize("n", [1, 63, 100, 128])
@pytest.mark.parametrize("shift", [-100, -17, -1, 0, 1, 5, 64, 100])
@pytest.mark.parametrize("kernel", [move, move_sum], ids=lambda kernel: kernel.__name__)
def test_overlapping_views_are_read_before_they_are_written(
    rng: np.random.Generator, kernel: Any, shift: int, n: int
) -> None:
    memory = ordinary(rng, "int32", 400)
    want = memory.copy()
    x, y = slice(150, 150 + n), slice(150 + shift, 150 + shift + n)
    a, b = want[x].copy(), want[y].copy()
    if kernel is move:
        want[y] = a
    else:
        want[y] = a * 2 + b
        want[x] = a - b
    kernel[(1,)](memory[150:], memory[150 + shift :], n, BLOCK=128)
    assert (memory == want).all()


def test_permutations_in_place(rng: np.random.Generator) -> None:
    x = ordinary(rng, "int16", 64)
    want = x[::-1].copy()
    reverse_in_place[(1,)](x, N=64)
    assert (x == want).all()
    square = ordinary(rng, "int16", (16, 16))
    want = square.T.copy()
    transpose_in_place[(1,)](square, N=16)
    assert (square == want).all()
    for k in (0, 1, 49, 1000):
        ring = ordinary(rng, "int16", 50)
        want = ring[(np.arange(50) + k) % 50]
        rotate_in_place[(1,)](ring, 50, k, N=64)
        assert (ring == want).all()


@proton.jit
def store_then_load(x_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    before = tl.load(x_ptr + offs)
    tl.store(x_ptr + offs, before * 2)
    after = tl.load(x_ptr + offs)
    tl.store(x_ptr + offs, after + 1)
    tl.store(out_ptr + offs, before + after)


def test_loads_see_the_stores_before_them_and_not_those_after(rng: np.random.Generator) -> None:
    x = ordinary(rng, "int64", 64)
    first, out = x.copy(), np.zeros(64, np.int64)
    store_then_load[(1,)](x, out, N=64)
    assert (x == first * 2 + 1).all()
    assert (out == first * 3).all()


@proton.jit
def several_stores(out_ptr, n, N: tl.constexpr):
    offs = tl.arange(0, N)
    tl.store(out_ptr + offs, offs)
    tl.store(out_ptr + offs, -offs, mask=offs < n)
    tl.store(out_ptr + N - 1 - offs, offs * 10, mask=offs < n // 2)
    tl.store(out_ptr, 1000)


def test_several_stores_to_one_array_happen_in_order() -> None:
    out, n = np.zeros(64, np.int32), 21
    several_stores[(1,)](out, n, N=64)
    want = np.arange(64, dtype=np.int32)
    want[:n] *= -1
    want[63 - np.arange(n // 2)] = np.arange(n // 2) * 10
    want[0] = 1000
    assert (out == want).all()


# Index arrays


@proton.jit
def gather_and_scatter(x_ptr, index_ptr, out_ptr, back_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    index = tl.load(index_ptr + offs, mask=offs < n, other=0)
    tl.store(out_ptr + offs, tl.load(x_ptr + index, mask=offs < n), mask=offs < n)
    tl.store(back_ptr + index, tl.load(x_ptr + offs, mask=offs < n), mask=offs < n)


@pytest.mark.parametrize("n", [0, 1, 100, 256, 1000])
@pytest.mark.parametrize(
    "dtype, index_type",
    [
        *((dtype, "int32") for dtype in DTYPES),
        *(("float32", t) for t in ("int64", "uint32", "uint8")),
    ],
)
def test_gather_and_scatter(rng: np.random.Generator, dtype: str, index_type: str, n: int) -> None:
    x = ordinary(rng, dtype, max(n, 1))
    if index_type == "uint8":
        n = min(n, 256)
    index = rng.permutation(n).astype(index_type)
    out, back = np.zeros_like(x), np.zeros_like(x)
    given = pointer(x, dtype), index, pointer(out, dtype), pointer(back, dtype)
    gather_and_scatter[(proton.cdiv(n, 128),)](*given, n, BLOCK=128)
    assert (out[:n] == x[index]).all()
    assert (back[index] == x[:n]).all()


@proton.jit
def through_addresses(table_ptr, out_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    x_ptr = tl.load(table_ptr + row).to(tl.pointer_type(tl.float32))
    offs = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < n)
    tl.store(out_ptr + row * n + offs, x, mask=offs < n)


@proton.jit
def gather_through_addresses(table_ptr, out_ptr, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    x_ptrs = tl.load(table_ptr + offs).to(tl.pointer_type(tl.float32))
    tl.store(x_ptrs, tl.load(x_ptrs) + 1)
    tl.store(out_ptr + offs, tl.load(x_ptrs))


@pytest.mark.interpreted
def test_addresses_from_memory(rng: np.random.Generator) -> None:
    arrays = [ordinary(rng, "float32", 50) for _ in range(8)]
    table = np.array([array.ctypes.data for array in arrays], np.int64)
    out = np.zeros((8, 50), np.float32)
    through_addresses[(8,)](table, out, 50, BLOCK=64)
    assert (out == np.array(arrays)).all()
    firsts, got = np.array(arrays)[:, 0], np.zeros(8, np.float32)
    gather_through_addresses[(1,)](table, got, BLOCK=8)
    assert (got == firsts + 1).all()
    assert (np.array(arrays)[:, 0] == firsts + 1).all()


@proton.jit
def count_true(x_ptr, out_ptr, not_ptr, n, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < n, other=False)
    tl.store(not_ptr + offs, ~x, mask=offs < n)
    tl.store(out_ptr, tl.sum(x.to(tl.int32)))
    tl.store(out_ptr + 1, tl.load(x_ptr))


@pytest.mark.parametrize("n", [1, 50, 64])
def test_bool_arrays(rng: np.random.Generator, n: int) -> None:
    x, inverse = ordinary(rng, "bool", 64), np.zeros(64, bool)
    out = np.zeros(2, np.int32)
    count_true[(1,)](x, out, inverse, n, BLOCK=64)
    assert out.tolist() == [x[:n].sum(), x[0]]
    assert (inverse[:n] == ~x[:n]).all()
    assert not inverse[n:].any()


@proton.jit
def scalar_access(x_ptr, out_ptr, place, flag):
    value = tl.load(x_ptr + place)
    tl.store(out_ptr, value)
    tl.store(out_ptr + 1, value + 1, mask=flag)
    other = tl.load(x_ptr + place + 1, mask=flag, other=-3)
    tl.store(out_ptr + 2, other)


@pytest.mark.interpreted
@pytest.mark.parametrize("dtype", ["int8", "int64", "float16", "float64"])
@pytest.mark.parametrize("flag", [False, True])
def test_scalar_loads_and_stores(rng: np.random.Generator, flag: bool, dtype: str) -> None:
    x, out = ordinary(rng, dtype, 10), np.zeros(3, dtype)
    scalar_access[(1,)](x, out, 4, flag)
    want = np.array([x[4], x[4] + 1 if flag else 0, x[5] if flag else -3], dtype)
    assert (out == want).all()


@pytest.mark.parametrize("make", [np.ascontiguousarray, np.asfortranarray])
def test_strides_of_views_are_arguments(
    rng: np.random.Generator, make: Callable[[np.ndarray], np.ndarray]
) -> None:
    x, out = make(ordinary(rng, "float32", (8, 30))), np.zeros((30, 8), np.float32)
    transpose_tiles[(1,)](np.ascontiguousarray(x), out, 8, 30, T=8)
    assert (out == x.T).all()


def test_read_only_arrays_can_be_read_and_not_written() -> None:
    x, y = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    x.flags.writeable = False
    add_in_place[(1,)](x, y, 64, BLOCK=64)
    assert (y == x + 1).all()
    with pytest.raises(LaunchError, match="read-only"):
        add_in_place[(1,)](y, x, 64, BLOCK=64)
    with pytest.raises(LaunchError, match="read-only"):
        add_in_place[(1,)](y, np.broadcast_to(np.float32(1), 64), 64, BLOCK=64)


@pytest.mark.parametrize("dtype", ["complex64", "datetime64[s]", "U4", ">f4", "O", "longdouble"])
def test_dtypes_that_kernels_do_not_know_are_refused(dtype: str) -> None:
    with pytest.raises(LaunchError, match="dtype"):
        add_in_place[(1,)](np.zeros(64, dtype), np.zeros(64, np.float32), 64, BLOCK=64)


@proton.jit
def wrapped(x_ptr, out_ptr, n, STRIDE: tl.constexpr):
    """A wrapped index whose stride may be 0: all elements are one then."""
    i = tl.arange(0, 16)
    tl.store(out_ptr + i, tl.load(x_ptr + (i * STRIDE + 126) % n))
    tl.store(out_ptr + 16 + i, tl.load(x_ptr + (tl.full((16,), 77, tl.int32) % n)))


@pytest.mark.parametrize("stride", [0, 1, 3])
@pytest.mark.parametrize("n", [1, 33, 200])
def test_a_wrapped_index_of_any_stride(stride: int, n: int) -> None:
    x, out = np.arange(256, dtype=np.int32), np.zeros(32, np.int32)
    wrapped[(1,)](x, out, n, stride)
    i = np.arange(16)
    assert (out == x[np.concatenate([(i * stride + 126) % n, np.full(16, 77 % n)])]).all()
