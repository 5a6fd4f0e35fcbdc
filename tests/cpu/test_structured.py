"""Accesses that are structured where triton-shared's are, and beyond: against numpy, with a look at
the IR, so that none of them falls back to a loop over addresses (`tts` of the level `ttsir`)."""

from typing import Any

import numpy as np
import pytest

import proton
import proton.language as tl
from tests.cpu.harness import ordinary
from tests.pairs import covering

SIZES = [(1, 1), (1, 40), (13, 1), (29, 70), (32, 64)]


def structured(kernel: Any) -> tuple[int, int]:
    """How many loads and stores are structured; no tensor of addresses is left."""
    text = kernel.asm["ttsir"]
    assert "llvm.inttoptr" not in text, "an access goes element by element"
    return text.count('"tts.load"'), text.count('"tts.store"')


@proton.jit
def gather_rows(x_ptr, index_ptr, out_ptr, n, columns, row, column, R: tl.constexpr, C: tl.constexpr):  # noqa: E501 # fmt: skip
    r = tl.program_id(0) * R + tl.arange(0, R)
    c = tl.arange(0, C)
    index = tl.load(index_ptr + r, mask=r < n, other=-1)
    inside = (index >= 0)[:, None] & (c < columns)[None, :]
    x = tl.load(x_ptr + index[:, None] * row + c[None, :] * column, mask=inside, other=-7)
    tl.store(out_ptr + r[:, None] * columns + c[None, :], x, mask=(r[:, None] < n) & (c < columns))


@pytest.mark.parametrize(
    "size, dtype, backwards",
    covering(
        {"size": SIZES, "dtype": ["float32", "int8", "float64"], "backwards": [False, True]},
        "size dtype",
        "size backwards",
        "dtype backwards",
    ),
    ids=str,
)
def test_rows_from_an_index(
    rng: np.random.Generator, size: tuple[int, int], dtype: str, backwards: bool
) -> None:
    n, columns = size
    table = ordinary(rng, dtype, (50, columns + 3))
    index = rng.integers(-1, 50, n).astype(np.int32)
    out = np.zeros((n, columns), dtype)
    first, strides = table, (columns + 3, 1)
    if backwards:  # both dimensions run from the end
        first, strides = table.ravel()[table.size - 1 :], (-columns - 3, -1)
    kernel = gather_rows[(proton.cdiv(n, 16),)](
        first, index, out, n, columns, *strides, R=16, C=64 if columns < 65 else 128
    )
    assert structured(kernel) == (2, 1)
    if backwards:
        table = table.ravel()[::-1].reshape(table.shape)
    want = np.where(index[:, None] < 0, np.array(-7, dtype), table[index, :columns])
    assert (out == want).all()


@proton.jit
def one_row(x_ptr, index_ptr, out_ptr, row, R: tl.constexpr, C: tl.constexpr):
    index, c = tl.load(index_ptr + tl.arange(0, 1)), tl.arange(0, C)[None, :]
    pointers = tl.broadcast_to((x_ptr + index * row)[:, None], (R, C)) + c
    tl.store(out_ptr + tl.arange(0, R)[:, None] * C + c, tl.load(pointers))


def test_a_row_from_an_index_is_repeated(rng: np.random.Generator) -> None:
    x, out = rng.standard_normal((50, 16), np.float32), np.zeros((4, 16), np.float32)
    one_row[(1,)](x, np.array([37], np.int32), out, 16, R=4, C=16)
    assert (out == x[37]).all()


@proton.jit
def scatter_blocks(x_ptr, a_ptr, b_ptr, out_ptr, step, K: tl.constexpr, N: tl.constexpr):
    i, j, k = tl.arange(0, N)[:, None, None], tl.arange(0, K)[None, :, None], tl.arange(0, N)
    a, b = tl.load(a_ptr + i), tl.load(b_ptr + k)[None, None, :]
    x = tl.load(x_ptr + i * K * N + j * N + k[None, None, :], mask=(i + j) % 3 != 0, other=5)
    tl.store(out_ptr + a * (K * N) + (j + step) % K * N + b, x)


@pytest.mark.parametrize("step", [0, 1, 5])
def test_two_dimensions_from_indices_around_one_that_wraps(
    rng: np.random.Generator, step: int
) -> None:
    n, k = 4, 8
    x, out = ordinary(rng, "float32", (n, k, n)), np.zeros((n, k, n), np.float32)
    a, b = (rng.permutation(n).astype(np.int64) for _ in range(2))
    kernel = scatter_blocks[(1,)](x, a, b, out, step, K=k, N=n)
    loads, stores = structured(kernel)
    assert (loads, stores) == (3, 1)
    kept = np.add.outer(np.arange(n), np.arange(k))[:, :, None] % 3 != 0
    want = np.zeros_like(out)
    want[a[:, None, None], (np.arange(k) + step)[None, :, None] % k, b] = np.where(kept, x, 5)
    assert (out == want).all()


@proton.jit
def carried_rows(x_ptr, index_ptr, out_ptr, columns, steps, R: tl.constexpr, C: tl.constexpr):
    r, c = tl.arange(0, R), tl.arange(0, C)
    ptrs = x_ptr + tl.load(index_ptr + r)[:, None] * columns + c[None, :]
    total = tl.zeros((R, C), tl.float32)
    for _ in range(steps):
        total += tl.load(ptrs)
        ptrs += C
    tl.store(out_ptr + r[:, None] * C + c[None, :], total)


@pytest.mark.parametrize("steps", [0, 1, 4])
def test_a_loop_moves_along_rows_from_an_index(rng: np.random.Generator, steps: int) -> None:
    x, index = ordinary(rng, "float32", (9, 4 * 8)), rng.integers(0, 9, 4).astype(np.int32)
    out = np.zeros((4, 8), np.float32)
    kernel = carried_rows[(1,)](x, index, out, 32, steps, R=4, C=8)
    assert structured(kernel) == (2, 1)
    want = sum((x[index, k * 8 : k * 8 + 8] for k in range(steps)), np.zeros((4, 8), np.float32))
    assert np.allclose(out, want)


@proton.jit
def chosen(x_ptr, y_ptr, out_ptr, n, flag, HOW: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, N)
    if HOW == "if":
        if flag > 0:
            ptrs = x_ptr + i
        else:
            ptrs = y_ptr + 2 * i + 1
    elif HOW == "nested":
        ptrs = x_ptr + i
        if flag != 0:
            ptrs += 3
            if flag < 0:
                ptrs = y_ptr + 2 * i + 1
            else:
                ptrs -= 3
    elif HOW == "select":
        ptrs = tl.where(flag > 0, x_ptr + i, y_ptr + 2 * i + 1)
    else:  # pointers of one element
        ptr = x_ptr if flag > 0 else y_ptr + 1
        ptrs = ptr + i * (1 if flag > 0 else 2)
    tl.store(out_ptr + i, tl.load(ptrs, mask=i < n, other=0), mask=i < n)


@pytest.mark.parametrize("how", ["if", "nested", "select", "scalars"])
@pytest.mark.parametrize("flag", [3, -2])
@pytest.mark.parametrize("n", [0, 1, 30])
def test_pointers_that_a_condition_chooses(
    rng: np.random.Generator, how: str, flag: int, n: int
) -> None:
    x, y = ordinary(rng, "int32", 32), ordinary(rng, "int32", 65)
    out = np.full(32, 9, np.int32)
    kernel = chosen[(1,)](x, y, out, n, flag, HOW=how, N=32)
    assert structured(kernel) == (1, 1)
    want = np.full(32, 9, np.int32)
    want[:n] = (x if flag > 0 else y[1::2])[:n]
    assert (out == want).all()


@proton.jit
def while_loop(x_ptr, out_ptr, n, step, B: tl.constexpr):
    source, target = x_ptr + tl.arange(0, B), out_ptr + tl.arange(0, B)
    place = tl.arange(0, B)
    done = 0
    while done < n:
        tl.store(target, tl.load(source, mask=place < n, other=0) * 2, mask=place < n)
        source += step
        target += B
        place += B
        done += B


@pytest.mark.parametrize("n", [0, 1, 8, 29])
@pytest.mark.parametrize("step", [8, -8, 0])
def test_pointers_that_a_while_loop_moves(rng: np.random.Generator, n: int, step: int) -> None:
    x = ordinary(rng, "int32", 200)
    out = np.full(64, -1, np.int32)
    kernel = while_loop[(1,)](x[80:], out, n, step, B=8)
    assert structured(kernel) == (1, 1)
    want = np.full(64, -1, np.int32)
    places = np.arange(n)
    want[:n] = x[80 + places % 8 + places // 8 * step] * 2
    assert (out == want).all()


@proton.jit
def swaps(a_ptr, b_ptr, steps, stride_a, stride_b, N: tl.constexpr):
    source, target = a_ptr + tl.arange(0, N) * stride_a, b_ptr + tl.arange(0, N) * stride_b
    k = 0
    while k < steps:
        for _ in range(1):
            tl.store(target, tl.load(source) + 1)
        source, target = target, source
        k += 1


@pytest.mark.parametrize("steps", [0, 1, 5])
@pytest.mark.parametrize("strides", [(1, 1), (3, -2)])
def test_arrays_and_strides_that_a_loop_swaps(steps: int, strides: tuple[int, int]) -> None:
    arrays = [np.zeros(64, np.int32), np.full(64, -5, np.int32)]
    firsts = [arrays[0][5:], arrays[1][40:]]
    kernel = swaps[(1,)](*firsts, steps, *strides, N=16)
    assert structured(kernel) == (1, 1)
    places = [np.arange(16) * strides[0] + 5, np.arange(16) * strides[1] + 40]
    want = [np.zeros(64, np.int32), np.full(64, -5, np.int32)]
    for step in range(steps):
        one, other = step % 2, (step + 1) % 2
        want[other][places[other]] = want[one][places[one]] + 1
    assert all((a == b).all() for a, b in zip(arrays, want, strict=True))


@proton.jit
def odd_masks(x_ptr, out_ptr, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    x = tl.load(x_ptr + i, mask=(i < n) & ((i % 3 == 1) | (i > n - 2)), other=4)
    tl.store(out_ptr + i, x + 1, mask=(x > 3) & (i < n))


@pytest.mark.parametrize("n", [1, 7, 64, 100])
def test_masks_that_are_no_boxes(rng: np.random.Generator, n: int) -> None:
    x, out = rng.integers(0, 9, n).astype(np.int16), np.full(n, -3, np.int16)
    kernel = odd_masks[(proton.cdiv(n, 32),)](x, out, n, B=32)
    assert structured(kernel) == (1, 1)
    i = np.arange(n)
    read = np.where((i % 3 == 1) | (i > n - 2), x, 4)
    assert (out == np.where(read > 3, read + 1, -3)).all()


@proton.jit
def through_table(table_ptr, out_ptr, n, rows, R: tl.constexpr, N: tl.constexpr):
    """A table of pointers, read a block at a time, and rows behind each of them."""
    i, c = tl.arange(0, R), tl.arange(0, N)
    table = table_ptr.to(tl.pointer_type(tl.pointer_type(tl.float32)))
    tl.store((out_ptr + i * n).to(tl.pointer_type(tl.float32)), tl.load(tl.load(table + i, mask=i < rows), mask=i < rows), mask=i < rows)  # noqa: E501 # fmt: skip
    for row in range(rows):
        x_ptr = tl.load(table + row)
        tl.store(out_ptr + row * n + c + 1, tl.load(x_ptr + c + 1, mask=c < n - 1), mask=c < n - 1)


@pytest.mark.parametrize("rows, n", [(1, 1), (3, 20)])
def test_pointers_that_are_loaded(rng: np.random.Generator, rows: int, n: int) -> None:
    arrays = [ordinary(rng, "float32", n) for _ in range(rows)]
    table = np.array([array.ctypes.data for array in arrays], np.int64)
    out = np.zeros((rows, n), np.float32)
    kernel = through_table[(1,)](table, out, n, rows, R=4, N=32)
    text = kernel.asm["ttsir"]
    # The table is a block, and each row; what its pointers point to is anywhere.
    assert text.count('"tts.load"') == 2
    assert (out == np.array(arrays)).all()


@proton.jit
def narrow_rows(x_ptr, index_ptr, out_ptr, row, step, N: tl.constexpr):
    r, c = tl.arange(0, N), tl.arange(0, N)
    index = tl.load(index_ptr + r) * 3 + step.to(tl.int8)
    place = index.to(tl.int32) * row
    tl.store(out_ptr + r[:, None] * N + c[None, :], tl.load(x_ptr + place[:, None] + c[None, :]))


@pytest.mark.parametrize("step", [0, 100])
def test_an_index_of_8_bits_wraps_in_8_bits(rng: np.random.Generator, step: int) -> None:
    x, out = ordinary(rng, "int32", (256, 8)), np.zeros((8, 8), np.int32)
    index = rng.integers(-128, 128, 8).astype(np.int8)
    kernel = narrow_rows[(1,)](x[128:], index, out, 8, step, N=8)
    assert structured(kernel) == (2, 1)
    place = (index.astype(int) * 3 + step + 128) % 256 - 128
    assert (out == x[128 + place]).all()


@proton.jit
def gathered_factors(a_ptr, b_ptr, index_ptr, out_ptr, N: tl.constexpr, K: tl.constexpr):
    i, k = tl.arange(0, N), tl.arange(0, K)
    page = tl.load(index_ptr + k)
    a = tl.load(a_ptr + i[:, None] * K + page[None, :])
    b = tl.load(b_ptr + page[:, None] * N + i[None, :], mask=(page > 3)[:, None], other=0.0)
    tl.store(out_ptr + i[:, None] * N + i[None, :], tl.dot(a, b, input_precision="ieee"))


def test_both_factors_of_a_product_from_an_index(rng: np.random.Generator) -> None:
    n, k = 16, 32
    a, b = ordinary(rng, "float32", (n, k)), ordinary(rng, "float32", (k, n))
    index, out = rng.permutation(k).astype(np.int32), np.zeros((n, n), np.float32)
    assert structured(gathered_factors[(1,)](a, b, index, out, N=n, K=k)) == (3, 1)
    want = a[:, 4:].astype(np.float64) @ b[4:]
    assert np.allclose(out, want, rtol=1e-4, atol=1e-4 * np.abs(want).max())


@proton.jit(do_not_specialize=("offset", "n", "valid"))
def around(x_ptr, out_ptr, back_ptr, offset, n, valid, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """Columns that wrap around, read as a product's right factor and stored where they were."""
    rows, columns = tl.arange(0, ROWS), (offset + tl.arange(0, COLUMNS)) % n
    mask = (rows < valid)[:, None]
    block = tl.load(x_ptr + rows[:, None] * 100 + columns[None, :], mask=mask, other=7)
    ones = tl.full((ROWS, ROWS), 1, tl.float32)
    sums = tl.dot(ones, block, input_precision="ieee")
    tl.store(out_ptr + rows[:, None] * COLUMNS + tl.arange(0, COLUMNS)[None, :], sums)
    tl.store(back_ptr + rows[:, None] * 100 + columns[None, :], block, mask=mask)


@pytest.mark.parametrize("n", [1, 2, 15, 16, 17, 31, 32, 40, -1, -7, -16, -31, -40])
def test_indices_wrap_around_any_number_of_times_on_either_side_of_zero(
    rng: np.random.Generator, n: int
) -> None:
    rows, columns, base = 16, 32, 200
    memory = rng.integers(-9, 9, 4000).astype(np.float32)
    for offset in (0, 1, -1, -31, -32, -33, n, -n, 1 - n, 3 * n + 5, *rng.integers(-99, 99, 4)):
        for valid in (0, 5, rows):
            out, back = np.full((rows, columns), np.nan, np.float32), np.zeros_like(memory)
            around[(1,)](memory[base:], out, back[base:], int(offset), n, valid, rows, columns)
            lanes = np.fmod(offset + np.arange(columns), n)
            places = base + np.arange(rows)[:, None] * 100 + lanes[None, :]
            block = np.where(np.arange(rows)[:, None] < valid, memory[places], 7)
            case = f"offset {offset}, {valid} rows"
            np.testing.assert_array_equal(out, np.tile(block.sum(0), (rows, 1)), case)
            want = np.zeros_like(memory)
            want[places[:valid]] = memory[places[:valid]]
            np.testing.assert_array_equal(back, want, case)


@proton.jit(do_not_specialize=("columns",))
def pixels(x_ptr, out_ptr, n, columns, row, column, plane, B: tl.constexpr, C: tl.constexpr):
    number, c = tl.program_id(0) * B + tl.arange(0, B), tl.arange(0, C)
    place = number // columns * row + number % columns * column
    places = place[:, None] + c[None, :] * plane
    x = tl.load(x_ptr + places, mask=(number < n)[:, None], other=0)
    tl.store(out_ptr + places, x * 1000 + number[:, None], mask=(number < n)[:, None])


@pytest.mark.parametrize("column", [1, 3])
@pytest.mark.parametrize("rows, columns", [(1, 1), (1, 40), (13, 1), (5, 7), (3, 16), (2, 17)])
def test_a_dimension_that_wraps_around_and_has_an_index(
    rng: np.random.Generator, rows: int, columns: int, column: int
) -> None:
    x = rng.integers(-99, 99, (2, rows, columns + 2, column)).astype(np.int32)
    out = np.full_like(x, -1)
    n, row = rows * columns, (columns + 2) * column
    kernel = pixels[(proton.cdiv(n, 16),)](x, out, n, columns, row, column, rows * row, B=16, C=2)
    assert structured(kernel) == (1, 1)
    want = np.full_like(x, -1)
    number = np.arange(n, dtype=np.int32).reshape(rows, columns)
    want[:, :, :columns, 0] = x[:, :, :columns, 0] * 1000 + number
    assert (out == want).all()
