"""Sorting, and ops that only move elements, against numpy."""

from typing import Any

import numpy as np
import pytest

import proton
import proton.language as tl
from tests.cpu.harness import (
    NUMBERS,
    assert_number,
    assert_same,
    decode,
    encode,
    of_block,
    sample,
    storage,
)
from tests.tables import check_rows

Shape = tuple[int, ...]


def moved_all(shapes: dict[str, Shape], x: np.ndarray, dtype: str) -> list[np.ndarray]:
    """What expressions of a block x give, which have these shapes and its dtype, by one kernel."""
    outs = [np.zeros(shape, storage(dtype)) for shape in shapes.values()]
    typed = [f"of_type({expression}, x.dtype)" for expression in shapes]
    of_block(x, dtype, {e: (out, dtype) for e, out in zip(typed, outs, strict=True)})
    return outs


def moved(expression: str, x: np.ndarray, dtype: str, shape: Shape) -> np.ndarray:
    (out,) = moved_all({expression: shape}, x, dtype)
    return out


def in_order(x: np.ndarray, dtype: str, axis: int = -1, down: bool = False) -> np.ndarray:
    """numpy's sort, which puts NaN behind all numbers."""
    found = encode(np.sort(decode(x, dtype), axis=axis), dtype)
    return np.flip(found, axis) if down else found


@pytest.mark.parametrize("dtype", ["bool", *NUMBERS])
def test_sort_of_every_dtype(rng: np.random.Generator, dtype: str) -> None:
    x = sample(rng, dtype, 32).reshape(4, 8)
    expression = "tl.join(tl.join(tl.sort(x), x.sort(descending=True)), tl.join(tl.flip(x), x))"
    top_4 = "tl.topk(x, 4).to(x.dtype)"
    out, top = moved_all({expression: (4, 8, 2, 2), top_4: (4, 4)}, x, dtype)
    assert_number(out[..., 0, 0], in_order(x, dtype), dtype)
    assert_number(out[..., 1, 0], in_order(x, dtype, down=True), dtype)
    assert_same(out[..., 0, 1].copy(), np.flip(x, 1).copy(), dtype)
    assert_number(top, in_order(x, dtype, down=True)[:, :4].copy(), dtype)


def test_the_type_of_what_topk_chooses() -> None:
    """As Triton 3.9's front end has it."""
    wide = {"float16": "float32", "bfloat16": "float32", "float8e5": "float32"}
    wide |= dict.fromkeys(("int1", "int8", "int16", "uint8", "uint16"), "int32")

    @proton.jit
    def chosen(x_ptr, K: tl.constexpr, WANT: tl.constexpr):
        tl.static_assert(tl.topk(tl.load(x_ptr + tl.arange(0, 16)), K).dtype == WANT)

    for name in (*wide, "int32", "uint32", "int64", "uint64", "float32", "float64"):
        dtype = getattr(tl, name)
        chosen.warmup(dtype, K=4, WANT=getattr(tl, wide.get(name, name)))
        chosen.warmup(dtype, K=16, WANT=dtype)


@pytest.mark.interpreted
@pytest.mark.parametrize("axis", [0, 1, 2, -2])
def test_sort_along_every_axis(rng: np.random.Generator, axis: int) -> None:
    x = sample(rng, "float32", 128).reshape(4, 8, 4)
    want = in_order(x, "float32", axis)
    largest = np.flip(want, axis).take(range(2), axis)
    shapes = {f"tl.sort(x, {axis})": x.shape, f"tl.topk(x, 2, dim={axis})": largest.shape}
    in_turn, top, flipped = moved_all({**shapes, f"x.flip({axis})": x.shape}, x, "float32")
    assert_number(in_turn, want, "float32")
    assert_number(top, largest, "float32")
    assert_same(flipped, np.flip(x, axis).copy(), "float32")


@pytest.mark.parametrize("size", [1, 2, 32, 256])
def test_sort_of_every_size(rng: np.random.Generator, size: int) -> None:
    x = rng.integers(-9, 9, size).astype(np.int32)  # many are equal
    counts = {1, size // 2 or 1, size}
    shapes = {f"tl.topk(x, {k})": (k,) for k in counts} | {"tl.sort(x, descending=True)": (size,)}
    for k, out in zip((*counts, size), moved_all(shapes, x, "int32"), strict=True):
        assert_same(out, np.sort(x)[::-1][:k].copy(), "int32")


def test_a_bitonic_block_is_merged(rng: np.random.Generator) -> None:
    x = rng.standard_normal((4, 32)).astype(np.float32)
    turn = int(rng.integers(1, 31))
    x = np.concatenate([np.sort(x[:, :turn]), np.sort(x[:, turn:])[:, ::-1]], 1)
    both = {f"tl.bitonic_merge(x, descending={down})": x.shape for down in (False, True)}
    for down, out in enumerate(moved_all(both, x, "float32")):
        assert_same(out, in_order(x, "float32", 1, bool(down)).copy(), "float32")


@proton.jit
def sort_float8(x_ptr, out_ptr, SIZE: tl.constexpr):
    offs = tl.arange(0, SIZE)
    tl.store(out_ptr + offs, tl.sort(tl.load(x_ptr + offs)))


@pytest.mark.parametrize("dtype", [tl.float8e5, tl.float8e4nv])
def test_sort_of_float8(rng: np.random.Generator, dtype: Any) -> None:
    """All bytes: the numbers in order, -0 below 0, and NaNs behind them."""
    bits = rng.permutation(256).astype(np.uint8)
    out = np.zeros_like(bits)
    sort_float8[(1,)](proton.reinterpret(bits, dtype), proton.reinterpret(out, dtype), 256)
    magnitude = np.arange(0x7D if dtype == tl.float8e5 else 0x7F, dtype=np.uint8)
    numbers = np.concatenate([(0x80 | magnitude)[::-1], magnitude])
    np.testing.assert_array_equal(out[: numbers.size], numbers)
    assert set(out[numbers.size :]) == {0x7F}


# Blocks put together


@pytest.mark.filterwarnings("ignore:can_reorder")
@pytest.mark.interpreted
@pytest.mark.parametrize("dtype", ["bool", "uint8", "bfloat16", "float32", "int64"])
def test_interleave_and_cat(rng: np.random.Generator, dtype: str) -> None:
    x = sample(rng, dtype, 64).reshape(2, 8, 4)
    other = np.flip(x, 1)
    wants = {
        f"tl.cat(x, tl.flip(x, 1), dim={dim})": np.concatenate([x, other], dim)
        for dim in (0, 1, 2, -1)
    }
    wants["tl.interleave(x, tl.flip(x, 1))"] = np.stack([x, other], -1).reshape(2, 8, 8)
    wants["tl.cat(x, x, can_reorder=True)"] = np.concatenate([x, x])
    outs = moved_all({expression: want.shape for expression, want in wants.items()}, x, dtype)
    rows = [(expression, out) for expression, out in zip(wants, outs, strict=True)]
    check_rows(lambda expression, out: assert_same(out, wants[expression], dtype), rows)


@proton.jit
def swizzled(out_ptr, rows, columns, GROUP: tl.constexpr):
    i, j = tl.swizzle2d(tl.program_id(0), tl.program_id(1), rows, columns, GROUP)
    tl.store(out_ptr + tl.program_id(0) * columns + tl.program_id(1), i * columns + j)


@proton.jit
def pair_of_scalars(out_ptr, a, b):
    pair = tl.interleave(a, b)
    tl.store(out_ptr + tl.arange(0, 2), pair)


@pytest.mark.interpreted
def test_swizzle2d(rng: np.random.Generator) -> None:
    for group in (1, 3, 4):
        rows, columns = (int(n) for n in rng.integers(1, 12, 2))
        print(rows, columns, group)
        out = np.full((rows, columns), -1, np.int32)
        swizzled[(rows, columns)](out, rows, columns, group)
        bands = [range(first, min(first + group, rows)) for first in range(0, rows, group)]
        order = [i * columns + j for band in bands for j in range(columns) for i in band]
        np.testing.assert_array_equal(out.ravel(), order)


def test_interleave_of_scalars() -> None:
    out = np.zeros(2, np.float32)
    pair_of_scalars[(1,)](out, 2.5, -1.0)
    np.testing.assert_array_equal(out, [2.5, -1.0])


# Errors


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("tl.sort(x, 2)", "dim must be one of the block's"),
        ("tl.sort(tl.max(x))", "a scalar cannot be sorted"),
        ("tl.topk(x, 3)", "k must be a power of two"),
        ("tl.topk(x, 32)", "no more than there are elements"),
        ("tl.cat(x, x, dim=-3)", "dim must be one of the blocks'"),
        ("tl.cat(tl.max(x), tl.max(x))", "use tl.join"),
        ("tl.flip(x, -3)", "dim must be one of the block's"),
        ("tl.interleave(x, x.to(tl.int32))", "dtypes must agree"),
    ],
)
def test_what_cannot_be_is_an_error(expression: str, words: str) -> None:
    with pytest.raises(proton.CompilationError, match=words) as raised:
        moved(expression, np.zeros((4, 16), np.float32), "float32", (4, 16))
    assert expression in str(raised.value)  # the place in the kernel
