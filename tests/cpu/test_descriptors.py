"""Tensor descriptors, made in kernels and by the host, against slices of numpy."""

import itertools
from typing import Any

import numpy as np
import pytest

import proton
import proton.language as tl
from proton.base.errors import BoundsError, LaunchError
from proton.base.knobs import knobs
from proton.tools.tensor_descriptor import TensorDescriptor
from tests.cpu.harness import (
    DTYPES,
    FLOATS,
    NUMBERS,
    assert_same,
    decode,
    encode,
    ordinary,
    pointer,
    sample,
    storage,
)
from tests.cpu.test_block_pointers import block_of
from tests.pairs import chosen
from tests.tf32 import hard_numbers, nearest_tf32


def aligned(rng: np.random.Generator, dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    """Stored values of a dtype whose rows are apart by multiples of 16 bytes."""
    lane = 16 // storage(dtype).itemsize
    padded = *shape[:-1], -(-shape[-1] // lane) * lane
    return sample(rng, dtype, int(np.prod(padded))).reshape(padded)[..., : shape[-1]]


def strides_of(x: np.ndarray) -> tuple[int, ...]:
    return tuple(stride // x.itemsize for stride in x.strides)


@proton.jit
def of_wide_shape(x_ptr, y_ptr, m, n, M: tl.constexpr, N: tl.constexpr):
    """As moe-ops writes: rows are counted in 64 bits."""
    m, n = m.to(tl.int64), n.to(tl.int64)
    x = tl.make_tensor_descriptor(x_ptr, [m, n], [n, 1], [M, N])
    y = tl.make_tensor_descriptor(y_ptr, [m - 1 + (1 << 32), n], [n, 1], [M, N])
    y.store([0, 0], x.load([0, 0]))


@pytest.mark.interpreted
def test_the_low_half_of_a_shape_counts(rng: np.random.Generator) -> None:
    x = rng.standard_normal((5, 12)).astype(np.float32)
    y, want = np.zeros_like(x), np.zeros_like(x)
    of_wide_shape[(1,)](x, y, 5, 12, M=8, N=16)
    want[:4] = x[:4]
    np.testing.assert_array_equal(y, want)


@proton.jit
def made(
    x_ptr, got_ptr, y_ptr, m, n, xm, ym, i, j, down, right,
    M: tl.constexpr, N: tl.constexpr, PADDING: tl.constexpr,
):  # fmt: skip
    x = tl.make_tensor_descriptor(x_ptr, [m, n], [xm, 1], [M, N], padding_option=PADDING)
    y = tl.make_tensor_descriptor(y_ptr, shape=[m, n], strides=[ym, 1], block_shape=(M, N))
    block = x.load([i, j])
    tl.store(got_ptr + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :], block)
    y.store([down, right], block)


@proton.jit
def passed(x: tl.tensor_descriptor, got_ptr, y: "tl.tensor_descriptor", i, j, down, right):
    block = tl.load_tensor_descriptor(x, (i, j))
    M: tl.constexpr = x.block_shape[0]
    N: tl.constexpr = x.block_shape[1]
    tl.static_assert(x.dtype == block.dtype)
    tl.store(got_ptr + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :], block)
    tl.store_tensor_descriptor(y, (down, right), block)


@pytest.mark.interpreted
@pytest.mark.parametrize("dtype, host", chosen({"dtype": DTYPES, "host": [False, True]}, least=1))
def test_blocks_over_the_ends(rng: np.random.Generator, dtype: str, host: bool) -> None:
    shape = 8, 16
    for trial in range(6):
        m, n = (int(s) for s in rng.integers(1, 40, 2))
        x, y = aligned(rng, dtype, (m, n)), aligned(rng, dtype, (m, n))
        i, down = (int(o) for o in rng.integers(-9, m + 9, 2))
        j, right = (int(o) for o in rng.integers(-17, n + 9, 2))
        padding = "nan" if dtype in FLOATS and trial % 2 else "zero"
        fill: Any = False if dtype == "bool" else 0
        if padding == "nan":
            fill = encode(np.array([np.nan], np.float32), dtype)[0]
        got, before = np.zeros(shape, storage(dtype)), y.copy()
        places = i, j, down, right
        args = [pointer(a, dtype) for a in (x, got, y)]
        if host:
            of = [TensorDescriptor.from_tensor(a, list(shape), padding) for a in (args[0], args[2])]
            passed[(1,)](of[0], args[1], of[1], *places)
        else:
            made[(1,)](
                *args, m, n, strides_of(x)[0], strides_of(y)[0], *places, M=8, N=16, PADDING=padding
            )
        want = block_of(x, (i, j), shape, fill)
        assert_same(got, want, dtype)
        stored = block_of(want, (-down, -right), (m, n), fill)
        hit = block_of(np.ones(shape, bool), (-down, -right), (m, n), False)
        assert_same(np.ascontiguousarray(y), np.where(hit, stored, before), dtype)


@proton.jit
def of_rank(x, y, offsets: tl.constexpr):
    y.store([0] * len(offsets), x.load(offsets))


@pytest.mark.interpreted
def test_ranks_1_to_5(rng: np.random.Generator) -> None:
    for rank in range(1, 6):
        shape, block = (3, 5, 2, 7, 12)[-rank:], (2, 4, 1, 4, 8)[-rank:]
        x, y = rng.standard_normal(shape), np.zeros(block)
        offsets = tuple(int(o) for o in rng.integers(-2, 5, rank))
        descriptors = [TensorDescriptor.from_tensor(a, block) for a in (x, y)]
        of_rank[(1,)](*descriptors, offsets=offsets)
        np.testing.assert_array_equal(y, block_of(x, offsets, block, 0))


# Gather and scatter


@proton.jit
def rows(x, rows_ptr, column, out_ptr, y, R: tl.constexpr, C: tl.constexpr):
    which = tl.load(rows_ptr + tl.arange(0, R))
    block = x.gather(which, column)
    tl.store(out_ptr + tl.arange(0, R)[:, None] * C + tl.arange(0, C)[None, :], block)
    y.scatter(block, which, column)


@pytest.mark.interpreted
@pytest.mark.parametrize("dtype", ["float32", "float16", "int8"])
def test_gather_and_scatter(rng: np.random.Generator, dtype: str) -> None:
    """Rows and columns that are not there are padding, and are not written."""
    m, n, count, columns = 11, 48, 16, 32
    x, y = ordinary(rng, dtype, (m, n)), ordinary(rng, dtype, (m, n))
    which = np.concatenate([rng.permutation(m)[:9], [-1, m, m + 5, -7, -2, m, 99]]).astype(np.int32)
    rng.shuffle(which)
    column = int(rng.integers(-9, n - 5))
    out, want = np.ones((count, columns), dtype), y.copy()
    descriptors = [TensorDescriptor.from_tensor(a, [1, columns]) for a in (x, y)]
    rows[(1,)](descriptors[0], which, column, out, descriptors[1], R=count, C=columns)
    for number, row in enumerate(which):
        line = block_of(x, (int(row), column), (1, columns), 0)[0]
        np.testing.assert_array_equal(out[number], line)
        if 0 <= row < m:
            low, high = max(column, 0), min(column + columns, n)
            want[row, low:high] = x[row, low:high]
    np.testing.assert_array_equal(y, want)


# Atomics

_KINDS = {
    "add": np.add, "min": np.minimum, "max": np.maximum,
    "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
}  # fmt: skip


@proton.jit
def combine(x, y, i, j, KIND: tl.constexpr):
    block = x.load([0, 0])
    if KIND == "add":
        y.atomic_add([i, j], block)
    elif KIND == "min":
        y.atomic_min([i, j], block)
    elif KIND == "max":
        y.atomic_max([i, j], block)
    elif KIND == "and":
        y.atomic_and([i, j], block)
    elif KIND == "or":
        y.atomic_or([i, j], block)
    else:
        y.atomic_xor([i, j], block)


@pytest.mark.interpreted
@pytest.mark.parametrize("kind", _KINDS)
def test_atomics(rng: np.random.Generator, kind: str) -> None:
    floats = ["float32", "float64"] if kind == "add" else []
    for dtype in ["int32", "uint32", "int64", "uint64", *floats]:
        m, n, shape = 13, 20, (8, 16)
        x = ordinary(rng, dtype, shape) if dtype in floats else sample(rng, dtype, 128)
        x, y = x.reshape(shape), ordinary(rng, dtype, (m, n))
        i, j = int(rng.integers(-7, m)), int(rng.integers(-15, n))
        hit = block_of(np.ones(shape, bool), (-i, -j), (m, n), False)
        want = np.where(hit, _KINDS[kind](y, block_of(x, (-i, -j), (m, n), 0)), y)
        descriptors = [TensorDescriptor.from_tensor(a, shape) for a in (x, y)]
        combine[(1,)](*descriptors, i, j, KIND=kind)
        np.testing.assert_array_equal(y, want)


# Descriptors as values


@proton.jit
def column_sum(x, count, N: tl.constexpr):
    total = tl.zeros((N,), tl.float32)
    for row in range(count):
        total += tl.sum(x.load([row, 0]).to(tl.float32), axis=0)
    return total


@proton.jit(noinline=True)
def either(which, x, y):
    if which > 0:
        chosen = x
    else:
        chosen = y
    return chosen


@proton.jit
def carried(x, y, z_ptr, out, which, n, N: tl.constexpr):
    """Through loops, branches, functions, and in the place of what is loaded."""
    z = tl.make_tensor_descriptor(z_ptr, [n, N], [N, 1], [1, N])
    chosen = either(which, x, y)
    for turn in range(n):
        if turn == 1:
            chosen = z if which > 1 else chosen
    total = column_sum(chosen, chosen.shape[0], N)
    total += (chosen.strides[0] + chosen.shape[1]).to(tl.float32)
    tl.static_assert(isinstance(chosen, tl.tensor_descriptor))
    tl.static_assert(not isinstance(chosen, tl.tensor))
    tl.static_assert(not isinstance(total, tl.tensor_descriptor))
    tl.static_assert(hasattr(chosen, "gather"))
    out.store([0], total)


@pytest.mark.interpreted
def test_descriptors_go_where_values_go(rng: np.random.Generator) -> None:
    n, size = int(rng.integers(2, 9)), 16
    x, y, z = (rng.standard_normal((k, size)).astype(np.float32) for k in (n + 3, n + 1, n))
    for which, of in ((0, y), (1, x), (2, z)):
        out = np.zeros(size, np.float32)
        args = [TensorDescriptor.from_tensor(a, [1, size]) for a in (x, y)]
        carried[(1,)](*args, z, TensorDescriptor.from_tensor(out, [size]), which, n, N=size)
        np.testing.assert_allclose(out, of.sum(0) + 2 * size, rtol=1e-5)


@proton.jit
def matmul(a, b, c, k):
    """Persistent: each program computes several blocks of the result."""
    M: tl.constexpr = c.block_shape[0]
    N: tl.constexpr = c.block_shape[1]
    K: tl.constexpr = a.block_shape[1]
    columns = tl.cdiv(c.shape[1], N)
    for tile in tl.range(
        tl.program_id(0), tl.cdiv(c.shape[0], M) * columns, tl.num_programs(0), flatten=True
    ):
        row, column = tile // columns * M, tile % columns * N
        total = tl.zeros((M, N), tl.float32)
        for start in tl.range(0, k, K, num_stages=3):
            total = tl.dot(a.load([row, start]), b.load([column, start]).T, total)
        c.store([row, column], total.to(c.dtype))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_matmul(rng: np.random.Generator, dtype: str) -> None:
    for m, n, k in [(1, 8, 8), (33, 72, 56), (64, 64, 64), (5, 136, 40)]:
        a, b = ordinary(rng, dtype, (m, k)), ordinary(rng, dtype, (n, k))
        c = np.zeros((m, n), storage(dtype))
        blocks = (16, 32), (64, 32), (16, 64)
        arrays = [pointer(x, dtype) for x in (a, b, c)]
        matmul[(3,)](*map(TensorDescriptor.from_tensor, arrays, blocks), k)
        want = decode(a, dtype).astype(np.float64) @ decode(b, dtype).astype(np.float64).T
        bound = 0.1 if dtype == "bfloat16" else 0.02
        np.testing.assert_allclose(decode(c, dtype), want, rtol=0.01, atol=bound)


# Rounding to tf32


@proton.jit
def passed_on(x, y, rows, M: tl.constexpr):
    for i in range(0, rows, M):
        y.store([i, 0], x.load([i, 0]))


@proton.jit
def picked(x, y, rows, K: tl.constexpr, N: tl.constexpr):
    which = tl.load(rows + tl.arange(0, K))
    places = y + tl.arange(0, K)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(places, x.gather(which, 0))


@pytest.mark.interpreted
@pytest.mark.parametrize("padding", ["zero", "nan"])
def test_loads_round_to_tf32_and_stores_do_not(rng: np.random.Generator, padding: str) -> None:
    x = hard_numbers(rng, (56, 20))
    for rounds, stores in itertools.product((True, False), repeat=2):
        y = np.zeros((64, 32), np.float32)
        source = TensorDescriptor.from_tensor(x, [16, 32], padding, rounds)
        target = TensorDescriptor.from_tensor(y, [16, 32], padding, stores)
        passed_on[(1,)](source, target, 64, M=16)
        want = np.full_like(y, np.nan if padding == "nan" else 0)
        want[:56, :20] = nearest_tf32(x) if rounds else x
        assert_same(y, want, "float32")


@pytest.mark.interpreted
def test_gathered_rows_round_to_tf32(rng: np.random.Generator) -> None:
    x, y = hard_numbers(rng, (20, 32)), np.zeros((16, 32), np.float32)
    rows = rng.integers(0, 20, 16).astype(np.int32)
    picked[(1,)](TensorDescriptor.from_tensor(x, [1, 32], "zero", True), y, rows, K=16, N=32)
    assert_same(y, nearest_tf32(x)[rows], "float32")


# The host's side


@proton.jit
def doubled(x, y, i):
    y.store([i], x.load([i]) * 2)


def test_what_stands_for_an_array_can_be_described() -> None:
    array = proton.MockTensor(tl.float64, [64])
    one = TensorDescriptor(array, [64], array.stride(), [16])
    assert one == TensorDescriptor.from_tensor(array, [16])
    assert doubled.warmup(one, one, 0, grid=(1,)).key


def test_a_descriptor_may_be_changed_between_launches(rng: np.random.Generator) -> None:
    x, y = rng.standard_normal(64), np.zeros(64)
    source, target = (TensorDescriptor(a, [64], [1], [1]) for a in (x, y))
    for size, limit in itertools.product((16, 32), (64, 20)):
        y[:] = 0
        source.block_shape = target.block_shape = [size]
        target.shape = [limit]
        doubled[(1,)](source, target, 16)
        want = np.zeros(64)
        want[16 : min(16 + size, limit)] = 2 * x[16 : min(16 + size, limit)]
        np.testing.assert_array_equal(y, want)


def test_descriptors_of_one_array(rng: np.random.Generator) -> None:
    """What overlaps is read before it is written, as where pointers do."""
    x = rng.standard_normal(64)
    want = x.copy()
    want[2:34] = 2 * x[:32]
    doubled[(1,)](TensorDescriptor(x, [64], [1], [32]), TensorDescriptor(x[2:], [62], [1], [32]), 0)
    np.testing.assert_array_equal(x, want)


def test_what_a_launch_refuses(rng: np.random.Generator) -> None:
    x, y = rng.standard_normal(64), np.zeros(64)
    good = TensorDescriptor.from_tensor(x, [16])
    y.flags.writeable = False
    for source, target, why in (
        (good, TensorDescriptor.from_tensor(y, [16]), "argument y is read-only"),
        (
            TensorDescriptor.from_tensor(x, [1]),
            good,
            "argument x: Descriptor block shape must",
        ),
        (TensorDescriptor.from_tensor(x[1:], [16]), good, "must be aligned to 16 bytes"),
        (TensorDescriptor.from_tensor(x.view(np.int64), [16], "nan"), good, '"nan" needs floats'),
        (
            TensorDescriptor.from_tensor(x, [16], round_f32_to_tf32=True),
            good,
            "argument x: round_f32_to_tf32=True needs float32, got fp64",
        ),
    ):
        with pytest.raises(LaunchError, match=why):
            doubled[(1,)](source, target, 0)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"strides": [8]}, "strides must have 2 entries"),
        ({"block_shape": [4, 3]}, r"block_shape \[4, 3\]: Shape element 1 must be a power of 2"),
        ({"shape": [0, 8]}, "sizes must be from 1 to"),
        ({"shape": [16 / 2, 8]}, r"shape must have integers, got \[8\.0, 8\]"),
        ({"shape": ["8", 8]}, "shape must have integers"),
        ({"strides": [8.0, 1]}, "strides must have integers"),
        ({"strides": [None, 1]}, "strides must have integers"),
        ({"strides": [8, 2]}, "the last stride must be 1, got 2"),
        ({"strides": [7, 1]}, "multiples of 16 bytes, got 7 x 4 bytes"),
        ({"padding": "one"}, 'padding must be "zero" or "nan", got \'one\''),
        ({"base": [1, 2]}, "base must be an array, got list"),
    ],
)
def test_what_a_descriptor_cannot_be(change: dict[str, Any], why: str) -> None:
    array = np.zeros((8, 8), np.float32)
    with pytest.raises(LaunchError, match=why):
        TensorDescriptor(
            **{"base": array, "shape": [8, 8], "strides": [8, 1], "block_shape": [4, 4]} | change
        )


def test_bounds_are_those_of_the_array(rng: np.random.Generator) -> None:
    """A shape that is larger than the array is found out where accesses are checked."""
    x, y = rng.standard_normal(16), np.zeros(32)
    with knobs.scope(check_bounds=True):
        doubled[(1,)](TensorDescriptor(x, [16], [1], [32]), TensorDescriptor(y, [32], [1], [32]), 0)
        np.testing.assert_array_equal(y[:16], 2 * x)
        with pytest.raises(BoundsError, match="load outside of the array, at x"):
            doubled[(1,)](
                TensorDescriptor(x, [17], [1], [32]), TensorDescriptor(y, [32], [1], [32]), 0
            )


def test_an_allocator_is_accepted_and_never_called(rng: np.random.Generator) -> None:
    """Not for a descriptor that the kernel makes, for which Triton calls it, nor for records."""
    asked: list[int] = []
    proton.set_allocator(lambda size, alignment, stream: asked.append(size))
    x = rng.standard_normal((16, 32))
    got, y = np.zeros_like(x), np.zeros_like(x)
    with proton.profile("allocator"):
        made[(1,)](x, got, y, 16, 32, 32, 32, 0, 0, 0, 0, M=16, N=32, PADDING="zero")
    np.testing.assert_array_equal(y, x)
    assert not asked
    proton.set_allocator(None)
    with pytest.raises(LaunchError, match="takes a function of size, alignment and stream"):
        proton.set_allocator(3)


def test_numbers_are_all_there() -> None:
    """Each dtype has a short name that its descriptor is filed under, and comes back from."""
    for dtype in NUMBERS:
        type_ = tl.tensor_descriptor_type(tl.block_type(tl.dtype(dtype), (4, 16)))
        assert tl.str_to_ty(type_.mangle()) == type_
