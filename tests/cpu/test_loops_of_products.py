"""Loops of products, whose turns copy for the next one and whose last one stores, against numpy."""

import re

import numpy as np
import pytest

import proton
import proton.language as tl
from kernels.matmul import matmul, matmul_kernel
from proton.backends.cpu import compiler
from tests.cpu.harness import decode, ordinary, pointer
from tests.draws import IS_FUZZ

DTYPES = ("float32", "float64", "float16", "bfloat16", "int8")

BLOCKS = {"BLOCK_M": 64, "BLOCK_N": 128, "BLOCK_K": 64}
EXACT = {"int8": np.int64}  # else in fp64
RESULTS = {"int8": np.int32, "float64": np.float64}  # else fp32


@proton.jit
def turns(
    a_ptr,
    b_ptr,
    c_ptr,
    M,
    N,
    K,
    start,
    stop,
    step,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    SUMS: tl.constexpr,
    ADD: tl.constexpr,
):
    """c (+)= the sum over turns of a[:, k : k + BLOCK_K] @ b[k : k + BLOCK_K], k from 0 on."""
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    depth = tl.arange(0, BLOCK_K)
    c_ptrs = c_ptr + rows[:, None] * N + columns[None, :]
    mask = (rows[:, None] < M) & (columns[None, :] < N)
    c = tl.load(c_ptrs, mask=mask, other=0) if ADD else tl.zeros((BLOCK_M, BLOCK_N), dtype=SUMS)
    for i in range(start, stop, step):
        k = i - start + depth
        a_mask = (rows[:, None] < M) & (k[None, :] < K)
        b_mask = (k[:, None] < K) & (columns[None, :] < N)
        a = tl.load(a_ptr + rows[:, None] * K + k[None, :], mask=a_mask, other=0)
        b = tl.load(b_ptr + k[:, None] * N + columns[None, :], mask=b_mask, other=0)
        c = tl.dot(a, b, c, input_precision="ieee", out_dtype=SUMS)
    tl.store(c_ptrs, c, mask=mask)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("add", [False, True])
def test_loops_of_any_number_of_turns(rng: np.random.Generator, dtype: str, add: bool) -> None:
    """Steps that are no block, blocks that the edge cuts, and bounds at the ends of 32 bits. Blocks
    meet a bound each, which is another one with the next type; all of them under `make fuzz`."""
    every = [(64, 64, 64), (16, 128, 32), (128, 32, 16)]
    turn = DTYPES.index(dtype) + add
    for number, blocks in enumerate(every):
        for bound, start in enumerate((0, -(2**31), 2**31 - 700)):
            if (number + bound + turn) % 3 and not IS_FUZZ:
                continue
            m, n = (int(block * rng.integers(1, 3) + rng.choice([0, 0, 3])) for block in blocks[:2])
            k, step = int(rng.choice([1, 128, 192, 200])), int(rng.choice([1, 2]) * blocks[2] // 2)
            stop = start + int(rng.choice([0, 1, step, k, k]))
            a, b = ordinary(rng, dtype, (m, k)), ordinary(rng, dtype, (k, n))
            wide = [decode(x, dtype).astype(EXACT.get(dtype, np.float64)) for x in (a, b)]
            c = rng.integers(-9, 9, (m, n)).astype(RESULTS.get(dtype, np.float32))
            want = c.astype(wide[0].dtype) if add else np.zeros((m, n), wide[0].dtype)
            size = np.abs(want)
            for at in range(0, stop - start, step):
                part = wide[0][:, at : at + blocks[2]], wide[1][at : at + blocks[2]]
                want, size = want + part[0] @ part[1], size + np.abs(part[0]) @ np.abs(part[1])
            grid = proton.cdiv(m, blocks[0]), proton.cdiv(n, blocks[1])
            sums = {"int8": tl.int32, "float64": tl.float64}.get(dtype, tl.float32)
            turns[grid](pointer(a, dtype), pointer(b, dtype), c, m, n, k, start, stop, step,
                        *blocks, SUMS=sums, ADD=add)  # fmt: skip
            error = 0 if dtype == "int8" else 64 * np.finfo(c.dtype).eps
            case = f"{blocks} {(m, n, k)} from {start} to {stop} by {step}"
            assert (np.abs(c - want) <= error * size).all(), case


@pytest.mark.parametrize("depth", [64, 128, 200])
def test_the_result_lies_where_a_factor_does(rng: np.random.Generator, depth: int) -> None:
    """One program reads all of its factors before it stores."""
    blocks = {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64}
    for place in (0, 1, 64):
        memory = rng.standard_normal(1 << 16, dtype=np.float32)
        other = rng.standard_normal((depth, 128), dtype=np.float32)
        a = memory[: 128 * depth].reshape(128, depth)
        out = memory[place : place + (1 << 14)].reshape(128, 128)
        want = a.astype(np.float64) @ other
        np.testing.assert_allclose(matmul(a, other, out, **blocks), want, atol=1e-3)
        b = memory[: 128 * depth].reshape(depth, 128)
        want = other.T.astype(np.float64) @ b
        left = np.ascontiguousarray(other.T)
        np.testing.assert_allclose(matmul(left, b, out, **blocks), want, atol=1e-3)


def test_a_large_result_is_streamed_where_its_rows_are_lines(rng: np.random.Generator) -> None:
    """Rows that begin with a line, and that do not, and rows with a gap between them, of which
    nothing is written."""
    blocks = {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64, "GROUP_M": 2, "PRECISION": "ieee"}
    shapes = [(512, 512, 128, 512), (640, 512, 64, 528), (520, 512, 100, 513), (128, 128, 64, 128)]
    for m, n, k, width in shapes:
        a = rng.standard_normal((m, k), dtype=np.float32)
        b = rng.standard_normal((k, n), dtype=np.float32)
        memory = np.empty(m * width + 64, np.float32)
        start = -memory.ctypes.data % 64 // 4
        for place in (start, start + 4):
            memory[:] = np.nan
            rows = memory[place : place + m * width].reshape(m, width)
            grid = (proton.cdiv(m, 128) * proton.cdiv(n, 128),)
            made = matmul_kernel[grid](a, b, rows, m, n, k, k, 1, n, 1, width, 1, **blocks)
            np.testing.assert_allclose(rows[:, :n], a.astype(np.float64) @ b, atol=1e-3)
            assert np.isnan(rows[:, n:]).all()
            assert np.isnan(memory[place + m * width :]).all()
            assert re.search("store .*nontemporal", made.asm["llir"])
            assert "sfence" in made.asm["llir"]


def test_blocks_that_wrap_around_many_times(rng: np.random.Generator) -> None:
    for m, n in [(1, 1), (1, 129), (3, 7), (65, 127), (64, 256), (130, 128)]:
        for k in (0, 1, 64, 130, 256):
            a = rng.standard_normal((m, k), dtype=np.float32)
            b = rng.standard_normal((k, n), dtype=np.float32)
            for x, y in [(a, b), (a[::-1], b[::-1]), (a, np.asfortranarray(b))]:
                out = np.full((m, n), np.nan, np.float32)
                want = x.astype(np.float64) @ y
                np.testing.assert_allclose(matmul(x, y, out, **BLOCKS), want, atol=1e-3)


def test_blocks_that_are_read_in_place_are_copied_ahead_as_well(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As for processors with a large first-level cache, and as for the others."""
    objects = []
    for is_large in (False, True):
        monkeypatch.setattr(compiler, "has_large_first_level", lambda is_large=is_large: is_large)
        product = proton.jit(matmul_kernel.fn)
        for m, n, k in [(1, 1, 1), (64, 128, 256), (130, 300, 320), (65, 127, 129)]:
            # Contiguous rows, rows with gaps, rows that lie 8 KiB apart.
            for columns, step in ((k, 1), (2 * k, 2), (2048, 1)):
                a = rng.standard_normal((m, columns), dtype=np.float32)[:, : k * step : step]
                b = rng.standard_normal((k, n), dtype=np.float32)
                c = np.full((m, n), np.nan, np.float32)
                strides = [s // 4 for x in (a, b, c) for s in x.strides]
                grid = (proton.cdiv(m, 64) * proton.cdiv(n, 128),)
                with proton.knobs.scope(always_compile=True):
                    made = product[grid](a, b, c, m, n, k, *strides, **BLOCKS, GROUP_M=2,
                                         PRECISION="ieee")  # fmt: skip
                np.testing.assert_allclose(c, a.astype(np.float64) @ b, atol=1e-3)
        objects.append(made.asm["llvm"])
    assert objects[0] != objects[1]


@proton.jit
def written_for_the_next(a_ptr, b_ptr, out_ptr, N, D: tl.constexpr):
    """b[i + 1] += a @ b[i], by two names of one array."""
    places = tl.arange(0, D)[:, None] * D + tl.arange(0, D)[None, :]
    a = tl.load(a_ptr + places)
    sums = tl.zeros((D, D), dtype=tl.float32)
    for i in range(N):
        b = tl.load(b_ptr + i * D * D + places)
        sums = tl.dot(a, b, sums, input_precision="ieee")
        tl.store(out_ptr + (i + 1) * D * D + places, sums)
    tl.store(out_ptr + places, sums)


def test_a_turn_reads_what_the_turn_before_wrote(rng: np.random.Generator) -> None:
    for count in (0, 1, 2, 5):
        a = rng.standard_normal((64, 64), dtype=np.float32) / 16
        b = rng.standard_normal((count + 1, 64, 64), dtype=np.float32)
        want, sums = b.astype(np.float64), np.zeros((64, 64))
        for i in range(count):
            sums = sums + a @ want[i]
            want[i + 1] = sums
        want[0] = sums
        written_for_the_next[(1,)](a, b, b, count, D=64)
        np.testing.assert_allclose(b, want, atol=1e-4)


@proton.jit
def one_array(x_ptr, N, D: tl.constexpr):
    """x[0] = the sum of x[i] @ x[N - 1 - i]."""
    places = tl.arange(0, D)[:, None] * D + tl.arange(0, D)[None, :]
    sums = tl.zeros((D, D), dtype=tl.float32)
    for i in range(N):
        a = tl.load(x_ptr + i * D * D + places)
        b = tl.load(x_ptr + (N - 1 - i) * D * D + places)
        sums = tl.dot(a, b, sums, input_precision="ieee")
    tl.store(x_ptr + places, sums)


def test_factors_and_result_in_one_array(rng: np.random.Generator) -> None:
    for count in (1, 2, 3):
        x = rng.standard_normal((count, 64, 64), dtype=np.float32)
        want = x.astype(np.float64)
        want[0] = sum(want[i] @ want[count - 1 - i] for i in range(count))
        one_array[(1,)](x, count, D=64)
        np.testing.assert_allclose(x, want, atol=1e-3)


@proton.jit
def gathered(a_ptr, b_ptr, at_ptr, c_ptr, N, K, D: tl.constexpr):
    """c = the sum over i of a[i] @ b[at[i]], its rows in the order of at[i]'s memory."""
    lane = tl.arange(0, D)
    sums = tl.zeros((D, D), dtype=tl.float32)
    for i in range(N):
        a = tl.load(a_ptr + i * D * D + lane[:, None] * D + lane[None, :])
        rows = tl.load(at_ptr + i * D + lane)
        b = tl.load(b_ptr + rows[:, None] * D + lane[None, :], mask=rows[:, None] < K, other=0)
        sums = tl.dot(a, b, sums, input_precision="ieee")
    tl.store(c_ptr + lane[:, None] * D + lane[None, :], sums)


def test_rows_from_memory(rng: np.random.Generator) -> None:
    for count in (1, 3):
        a = rng.standard_normal((count, 64, 64), dtype=np.float32)
        b = rng.standard_normal((100, 64), dtype=np.float32)
        rows, c = rng.integers(0, 120, (count, 64)), np.full((64, 64), np.nan, np.float32)
        padded = np.concatenate([b, np.zeros((20, 64))])
        gathered[(1,)](a, b, rows, c, count, 100, D=64)
        want = sum(x @ padded[at] for x, at in zip(a.astype(np.float64), rows, strict=True))
        np.testing.assert_allclose(c, want, atol=1e-3)


@proton.jit
def through_a_table(table_ptr, b_ptr, c_ptr, N, D: tl.constexpr):
    """c = the sum over i of a[i] @ b[i], where a's address is in memory."""
    places = tl.arange(0, D)[:, None] * D + tl.arange(0, D)[None, :]
    a_ptr = tl.load(table_ptr).to(tl.pointer_type(tl.float32))
    sums = tl.zeros((D, D), dtype=tl.float32)
    for i in range(N):
        a = tl.load(a_ptr + i * D * D + places)
        b = tl.load(b_ptr + i * D * D + places)
        sums = tl.dot(a, b, sums, input_precision="ieee")
    tl.store(c_ptr + places, sums)


def test_an_address_in_memory_may_be_that_of_the_result(rng: np.random.Generator) -> None:
    for count in (1, 2, 3):
        for place in range(count):
            a, b = (rng.standard_normal((count, 64, 64), dtype=np.float32) for _ in range(2))
            want = (a.astype(np.float64) @ b).sum(0)
            through_a_table[(1,)](np.array([a.ctypes.data]), b, a[place], count, D=64)
            np.testing.assert_allclose(a[place], want, atol=1e-3)


@pytest.mark.parametrize("dtype", ["float64", "float16", "bfloat16", "int8"])
def test_rows_that_lie_8_kib_apart_of_any_type(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch, dtype: str
) -> None:
    monkeypatch.setattr(compiler, "has_large_first_level", lambda: True)
    columns = (8 << 10) // (2 if dtype == "bfloat16" else np.dtype(dtype).itemsize)
    sums = {"int8": tl.int32, "float64": tl.float64}.get(dtype, tl.float32)
    for m, n, k in [(64, 64, 256), (70, 100, 200), (1, 3, 129)]:
        wide = ordinary(rng, dtype, (m, columns))
        a, b = wide[:, :k], ordinary(rng, dtype, (k, n))
        c = np.zeros((m, n), RESULTS.get(dtype, np.float32))
        with proton.knobs.scope(always_compile=True):
            apart[proton.cdiv(m, 64), proton.cdiv(n, 64)](
                pointer(wide, dtype), pointer(b, dtype), c, m, n, k, columns, D=64, SUMS=sums
            )
        exact = [decode(x, dtype).astype(EXACT.get(dtype, np.float64)) for x in (a, b)]
        bound = 0 if dtype == "int8" else 64 * np.finfo(c.dtype).eps
        assert (np.abs(c - exact[0] @ exact[1]) <= bound * (abs(exact[0]) @ abs(exact[1]))).all()


@proton.jit
def apart(a_ptr, b_ptr, c_ptr, M, N, K, stride, D: tl.constexpr, SUMS: tl.constexpr):
    """c = a @ b, where a's rows lie `stride` elements apart."""
    rows, columns = tl.program_id(0) * D + tl.arange(0, D), tl.program_id(1) * D + tl.arange(0, D)
    mask = (rows[:, None] < M) & (columns[None, :] < N)
    sums = tl.zeros((D, D), dtype=SUMS)
    for start in range(0, K, D):
        k = start + tl.arange(0, D)
        a_mask, b_mask = (rows[:, None] < M) & (k < K), (k[:, None] < K) & (columns < N)
        a = tl.load(a_ptr + rows[:, None] * stride + k[None, :], mask=a_mask, other=0)
        b = tl.load(b_ptr + k[:, None] * N + columns[None, :], mask=b_mask, other=0)
        sums = tl.dot(a, b, sums, input_precision="ieee", out_dtype=SUMS)
    tl.store(c_ptr + rows[:, None] * N + columns[None, :], sums, mask=mask)


@proton.jit
def shared_factors(x_ptr, w_ptr, out_ptr, K, SAME: tl.constexpr, B: tl.constexpr):
    """x @ w[0] and x @ w[1] in one loop, or x.T @ x: a mask on K cuts a factor of two products."""
    i = tl.arange(0, B)
    first = tl.zeros((B, B), tl.float32)
    second = tl.zeros((B, B), tl.float32)
    for k in range(0, K, B):
        rows = (k + i)[:, None] < K
        x = tl.load(x_ptr + i[:, None] * K + (k + i)[None, :], mask=(k + i)[None, :] < K, other=0)
        w = tl.load(w_ptr + (k + i)[:, None] * B + i[None, :], mask=rows, other=0)
        if SAME:
            first = tl.dot(x, w, first, input_precision="ieee")
            second = tl.dot(x, w, second, input_precision="ieee")
        else:
            v = tl.load(w_ptr + (K + k + i)[:, None] * B + i[None, :], mask=rows, other=0)
            first = tl.dot(x, w, first, input_precision="ieee")
            second = tl.dot(x, v, second, input_precision="ieee")
    tl.store(out_ptr + i[:, None] * B + i[None, :], first)
    tl.store(out_ptr + B * B + i[:, None] * B + i[None, :], second)


@pytest.mark.parametrize("same", [False, True])
@pytest.mark.parametrize("k", [0, 1, 16, 40, 64])
def test_products_that_share_a_masked_factor(rng: np.random.Generator, same: bool, k: int) -> None:
    x, w = rng.standard_normal((16, k), np.float32), rng.standard_normal((2, k, 16), np.float32)
    out = np.full((2, 16, 16), np.nan, np.float32)
    shared_factors[(1,)](x, w, out, k, same, 16)
    want = np.stack([x @ w[0], x @ w[0 if same else 1]])
    np.testing.assert_allclose(out, want, rtol=1e-5, atol=1e-5)
