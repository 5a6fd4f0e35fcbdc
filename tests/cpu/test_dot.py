"""Matrix products of every dtype and shape, against numpy in higher precision."""

import itertools
from typing import Any

import numpy as np
import pytest

import proton
import proton.language as tl
from proton.base.errors import CompilationError
from tests.cpu.harness import FLOATS, WIDE_FLOATS, decode, encode, ordinary, pointer, storage
from tests.draws import IS_FUZZ
from tests.pairs import covering
from tests.tables import check_rows

SIZES = (1, 2, 4, 8, 16, 32, 64, 128)
TYPES: dict[str, Any] = {"int8": tl.int32, "float64": tl.float64}  # the others give fp32


@proton.jit
def product(a_ptr, b_ptr, c_ptr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    a = tl.load(a_ptr + m[:, None] * K + k[None, :])
    b = tl.load(b_ptr + k[:, None] * N + n[None, :])
    tl.store(c_ptr + m[:, None] * N + n[None, :], tl.dot(a, b, input_precision="ieee"))


@proton.jit
def product_plus(
    a_ptr, b_ptr, c_ptr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, OUT: tl.constexpr
):
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    a = tl.load(a_ptr + m[:, None] * K + k[None, :])
    b = tl.load(b_ptr + k[:, None] * N + n[None, :])
    c = c_ptr + m[:, None] * N + n[None, :]
    tl.store(c, tl.dot(a, b, acc=tl.load(c), input_precision="ieee", out_dtype=OUT))


def exact(a: np.ndarray, b: np.ndarray, dtype: str) -> np.ndarray:
    wide = np.int64 if dtype == "int8" else np.float64
    return decode(a, dtype).astype(wide) @ decode(b, dtype).astype(wide)


def result_type(dtype: str) -> str:
    return {"int8": "int32", "float64": "float64"}.get(dtype, "float32")


def assert_close(got: np.ndarray, want: np.ndarray, depth: int) -> None:
    if got.dtype == np.int32:
        assert (got == want).all()
        return
    bound = 4 * depth * float(np.finfo(got.dtype).eps) * 16
    np.testing.assert_allclose(got, want, rtol=0, atol=bound)


@pytest.mark.parametrize("dtype", ["int8", *FLOATS])
@pytest.mark.parametrize("size", [1, 4, 16, 64])
def test_every_dtype(rng: np.random.Generator, size: int, dtype: str) -> None:
    a, b = (ordinary(rng, dtype, (size, size)) for _ in range(2))
    c = np.zeros((size, size), result_type(dtype))
    product[(1,)](pointer(a, dtype), pointer(b, dtype), c, M=size, N=size, K=size)
    assert_close(c, exact(a, b, dtype), size)


@pytest.mark.interpreted
def test_int8_takes_all_values(rng: np.random.Generator) -> None:
    a, b = (rng.integers(-128, 128, (64, 64)).astype(np.int8) for _ in range(2))
    a[0], b[:, 0] = -128, -128
    c = np.zeros((64, 64), np.int32)
    product[(1,)](a, b, c, M=64, N=64, K=64)
    assert (c == exact(a, b, "int8")).all()


def test_sampled_shapes(rng: np.random.Generator) -> None:
    shapes = list(itertools.product(SIZES, repeat=3))
    for index in rng.choice(len(shapes), 60 if IS_FUZZ else 30, replace=False):
        m, n, k = shapes[index]
        dtype = ("float32", "float64", "int8", "float16", "bfloat16")[index % 5]
        a, b = ordinary(rng, dtype, (m, k)), ordinary(rng, dtype, (k, n))
        c = ordinary(rng, result_type(dtype), (m, n))
        want = exact(a, b, dtype) + c
        arguments = pointer(a, dtype), pointer(b, dtype), c
        product_plus[(1,)](*arguments, M=m, N=n, K=k, OUT=None)
        assert_close(c, want, k)


@proton.jit
def typed_products(a_ptr, c_ptr, N: tl.constexpr, OUTS: tl.constexpr, WANTS: tl.constexpr):
    place = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    for n in tl.static_range(len(OUTS)):
        a = tl.load(a_ptr + place)
        c = tl.dot(a, a, input_precision="ieee", out_dtype=OUTS[n])
        tl.static_assert(c.dtype == WANTS[n])
        tl.store(c_ptr + n * N * N + place, c)


@proton.jit
def typed_product(
    a_ptr, c_ptr, N: tl.constexpr, OUT: tl.constexpr, ACC: tl.constexpr, WANT: tl.constexpr
):
    place = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    a = tl.load(a_ptr + place)
    if ACC is None:
        c = tl.dot(a, a, input_precision="ieee", out_dtype=OUT)
    else:
        c = tl.dot(a, a, tl.zeros((N, N), ACC), "ieee", out_dtype=OUT)
    tl.static_assert(c.dtype == WANT)
    tl.store(c_ptr + place, c)


# What a dot gives whatever `out_dtype` says; the others give what it says.
FIXED = {"int8": tl.int32, "float32": tl.float32, "bfloat16": tl.float32, "float64": tl.float64}


OUTS = (None, tl.float16, tl.float32, tl.float64, tl.int8, tl.int32)


@pytest.mark.interpreted
@pytest.mark.parametrize("dtype", ["int8", *FLOATS])
def test_types_of_results(rng: np.random.Generator, dtype: str) -> None:
    outs = OUTS[:3] if dtype == "float16" else OUTS
    wants = tuple(FIXED.get(dtype, out or tl.float32) for out in outs)
    a = ordinary(rng, dtype, (16, 16))
    found = np.zeros((len(outs), 16, 16), np.int64 if dtype == "int8" else np.float64)
    typed_products[(1,)](pointer(a, dtype), found, N=16, OUTS=outs, WANTS=wants)

    def check(number: int, out: Any) -> None:
        eps = 2.0**-10 if wants[number] == tl.float16 else 2.0**-20
        np.testing.assert_allclose(found[number], exact(a, a, dtype), rtol=eps, atol=eps * 16)

    check_rows(check, enumerate(outs))
    for out in OUTS[len(outs) :]:
        options = {"N": 16, "OUT": out, "ACC": None, "WANT": out}
        with pytest.raises(CompilationError, match=f"gives float32 or float16, not {out}"):
            typed_product[(1,)](pointer(a, dtype), found, **options)


@pytest.mark.parametrize("dtype", ["int8", *FLOATS])
def test_the_accumulator_has_the_type_of_the_result(dtype: str) -> None:
    a, c = np.ones((16, 16), storage(dtype)), np.zeros((16, 16))
    for acc in (tl.int8, tl.int32, tl.float16, tl.bfloat16, tl.float32, tl.float64):
        options = {"N": 16, "OUT": None, "ACC": acc, "WANT": acc}
        right = (tl.float16, tl.float32) if dtype == "float16" else (FIXED[dtype],)
        if acc in right:
            typed_product[(1,)](pointer(a, dtype), c, **options)
        else:
            with pytest.raises(CompilationError, match="gives"):
                typed_product[(1,)](pointer(a, dtype), c, **options)


def test_types_that_dot_refuses() -> None:
    for dtype, out, why in (
        ("uint8", None, "takes int8 among integers, got u8"),
        ("int16", None, "takes int8 among integers, got i16"),
        ("float32", tl.bfloat16, "out_dtype cannot be bfloat16"),
    ):
        a, c = np.ones((16, 16), dtype), np.zeros((16, 16))
        with pytest.raises(CompilationError, match=why):
            typed_product[(1,)](a, c, N=16, OUT=out, ACC=None, WANT=None)


@proton.jit
def chained(a_ptr, b_ptr, c_ptr, out_ptr, N: tl.constexpr, FLIP: tl.constexpr, RIGHT: tl.constexpr):
    r, c = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :]
    a, b = tl.load(a_ptr + r * N + c), tl.load(b_ptr + r * N + c)
    third = tl.load(c_ptr + r * N + c)
    if FLIP:
        a = tl.trans(a)
    first = tl.dot(a, b)
    result = tl.dot(third, first) if RIGHT else tl.dot(first, third)
    tl.store(out_ptr + r * N + c, result + first.T)


@pytest.mark.parametrize("flip", [False, True])
@pytest.mark.parametrize("right", [False, True])
@pytest.mark.parametrize("size", [4, 32, 64])
def test_chained_products(rng: np.random.Generator, size: int, right: bool, flip: bool) -> None:
    a, b, c = (rng.standard_normal((size, size)) for _ in range(3))
    out = np.zeros_like(a)
    chained[(1,)](a, b, c, out, N=size, FLIP=flip, RIGHT=right)
    first = (a.T if flip else a) @ b
    np.testing.assert_allclose(
        out, (c @ first if right else first @ c) + first.T, rtol=1e-9, atol=1e-9
    )


@proton.jit
def matmul(
    a_ptr, b_ptr, c_ptr, m, n, k, am, ak, bk, bn,
    M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, WRAP: tl.constexpr,
):  # fmt: skip
    rows, columns = tl.program_id(0) * M + tl.arange(0, M), tl.program_id(1) * N + tl.arange(0, N)
    depth = tl.arange(0, K)
    if WRAP:
        a_ptrs = a_ptr + (rows % m)[:, None] * am + depth[None, :] * ak
        b_ptrs = b_ptr + depth[:, None] * bk + (columns % n)[None, :] * bn
    else:
        a_ptrs = a_ptr + rows[:, None] * am + depth[None, :] * ak
        b_ptrs = b_ptr + depth[:, None] * bk + columns[None, :] * bn
    total = tl.zeros((M, N), tl.float32)
    for start in range(0, k, K):
        a_mask, b_mask = depth[None, :] < k - start, depth[:, None] < k - start
        if not WRAP:
            a_mask, b_mask = a_mask & (rows[:, None] < m), b_mask & (columns[None, :] < n)
        a = tl.load(a_ptrs, mask=a_mask, other=0.0)
        b = tl.load(b_ptrs, mask=b_mask, other=0.0)
        total = tl.dot(a, b, total, input_precision="ieee")
        a_ptrs += K * ak
        b_ptrs += K * bk
    inside = (rows[:, None] < m) & (columns[None, :] < n)
    tl.store(c_ptr + rows[:, None] * n + columns[None, :], total, mask=inside)


@pytest.mark.parametrize(
    "dtype, wrap, layout",
    covering(
        {
            "dtype": ["float32", "float16", "bfloat16"],
            "wrap": [False, True],
            "layout": ["nn", "nt", "tn", "tt", "strided"],
        },
        "dtype layout",
        "dtype wrap",
        "wrap layout",
    ),
)
def test_matmul(rng: np.random.Generator, dtype: str, wrap: bool, layout: str) -> None:
    for m, n, k in [(1, 1, 1), (33, 17, 50), (64, 64, 64), (70, 100, 0), (5, 130, 31)]:
        a, b = ordinary(rng, dtype, (m, k)), ordinary(rng, dtype, (k, n))
        if layout == "strided":
            a, b = a.repeat(2, 1)[:, ::2], b.repeat(3, 0)[::3]
        elif layout != "nn":
            a = np.asfortranarray(a) if layout[0] == "t" else a
            b = np.asfortranarray(b) if layout[1] == "t" else b
        c = np.full((m, n), -1, np.float32)
        size = a.itemsize
        strides = [x // size for x in (*a.strides, *b.strides)]
        matmul[(proton.cdiv(m, 32), proton.cdiv(n, 64))](
            pointer(a, dtype), pointer(b, dtype), c, m, n, k, *strides, M=32, N=64, K=16, WRAP=wrap
        )
        assert_close(c, exact(a, b, dtype), max(k, 1))


@proton.jit
def of_computed(x_ptr, out_ptr, N: tl.constexpr):
    r, c = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :]
    x = tl.load(x_ptr + r * N + c)
    causal = tl.where(r >= c, x, 0)
    weights = causal / (tl.sum(tl.abs(causal), 1, keep_dims=True) + 1)
    inner = tl.dot(x * 2, causal.T, input_precision="ieee")
    tl.store(out_ptr + r * N + c, tl.dot(weights, inner, input_precision="ieee") - weights)


@pytest.mark.parametrize("dtype", WIDE_FLOATS)
def test_products_of_computed_operands(rng: np.random.Generator, dtype: str) -> None:
    x = rng.standard_normal((32, 32)).astype(dtype)
    out = np.zeros_like(x)
    of_computed[(1,)](x, out, N=32)
    causal = np.tril(x)
    weights = causal / (np.abs(causal).sum(1, keepdims=True) + 1)
    want = weights @ ((x * 2) @ causal.T) - weights
    np.testing.assert_allclose(out, want, rtol=0, atol=2000 * np.finfo(dtype).eps)


@proton.jit
def one_operand_twice(x_ptr, out_ptr, N: tl.constexpr):
    r, c = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :]
    x = tl.load(x_ptr + r * N + c)
    square = tl.dot(x, x)
    tl.store(out_ptr + r * N + c, tl.dot(square, square, square) + x)


def test_a_block_that_is_both_operands_and_the_accumulator(rng: np.random.Generator) -> None:
    x = rng.standard_normal((16, 16))
    out = np.zeros_like(x)
    one_operand_twice[(1,)](x, out, N=16)
    np.testing.assert_allclose(out, (x @ x) @ (x @ x) + x @ x + x, rtol=1e-9, atol=1e-9)


@pytest.mark.interpreted
def test_nan_and_infinity_pass_through() -> None:
    a, b = np.ones((16, 16), np.float32), np.ones((16, 16), np.float32)
    a[2, 3], a[4, 5], b[6, 7] = np.nan, np.inf, 0
    c = np.zeros((16, 16), np.float32)
    product[(1,)](a, b, c, M=16, N=16, K=16)
    assert np.isnan(c[2]).all()
    assert np.isposinf(c[4]).all()
    assert np.isfinite(np.delete(c, [2, 4], 0)).all()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_products_of_halves_are_summed_in_fp32(dtype: str) -> None:
    ones = encode(np.ones((1, 128), np.float32), dtype)
    tiny = encode(np.full((128, 1), 2.0**-12, np.float32), dtype)
    tiny[0] = encode(np.float32([1.0]), dtype)[0]
    c = np.zeros((1, 1), np.float32)
    product[(1,)](pointer(ones, dtype), pointer(tiny, dtype), c, M=1, N=1, K=128)
    assert c[0, 0] == np.float32(1 + 127 * 2.0**-12)


@proton.jit
def batched(
    a_ptr, b_ptr, c_ptr, BATCH: tl.constexpr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr,
    OUT: tl.constexpr,
):  # fmt: skip
    """Of blocks with any dimensions ahead of the matrices, added to what is there."""
    count: tl.constexpr = product_of(BATCH)
    i = tl.arange(0, count)[:, None, None]
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    a = tl.load(a_ptr + i * M * K + m[None, :, None] * K + k[None, None, :]).reshape((*BATCH, M, K))
    b = tl.load(b_ptr + i * K * N + k[None, :, None] * N + n[None, None, :]).reshape((*BATCH, K, N))
    c = c_ptr + i * M * N + m[None, :, None] * N + n[None, None, :]
    acc = tl.load(c).reshape((*BATCH, M, N))
    tl.store(c, tl.dot(a, b, acc, "ieee", out_dtype=OUT).reshape(count, M, N))


@tl.constexpr_function
def product_of(sizes: tuple[int, ...]) -> int:
    return int(np.prod(sizes))


@pytest.mark.interpreted
@pytest.mark.parametrize("dtype", [*FLOATS, "int8"])
def test_batched_products(rng: np.random.Generator, dtype: str) -> None:
    out = TYPES.get(dtype, tl.float32)
    for batch, (m, n, k) in zip(
        [(1,), (4,), (2, 4), (8,)], [(4, 8, 16), (16, 16, 32), (8, 32, 4), (1, 2, 2)], strict=True
    ):
        a = ordinary(rng, dtype, (*batch, m, k))
        b = ordinary(rng, dtype, (*batch, k, n))
        c = rng.integers(-9, 9, (*batch, m, n)).astype(result_type(dtype))
        want = c + exact(a, b, dtype)
        batched[(1,)](pointer(a, dtype), pointer(b, dtype), c, BATCH=batch, M=m, N=n, K=k, OUT=out)
        assert_close(c, want, k)


@proton.jit
def attention(q_ptr, k_ptr, v_ptr, out_ptr, H: tl.constexpr, N: tl.constexpr, D: tl.constexpr):
    """Two products in a chain, of transposed and of computed operands, in a loop."""
    h = tl.arange(0, H)[:, None, None] * N * D
    places = h + tl.arange(0, N)[None, :, None] * D + tl.arange(0, D)[None, None, :]
    q = tl.load(q_ptr + places)
    total = tl.zeros((H, N, D), tl.float32)
    for turn in range(2):
        k, v = tl.load(k_ptr + turn * H * N * D + places), tl.load(v_ptr + places)
        weights = tl.dot(q, tl.permute(k, (0, 2, 1)), input_precision="ieee")
        total = tl.dot(tl.maximum(weights, 0.0), v, total, input_precision="ieee")
    tl.store(out_ptr + places, total)


def test_batched_products_of_computed_operands(rng: np.random.Generator) -> None:
    heads, rows, columns = 4, 16, 8
    shapes = [(n * heads, rows, columns) for n in (1, 2, 1)]
    q, k, v = (rng.standard_normal(shape).astype(np.float32) for shape in shapes)
    out = np.zeros_like(q)
    attention[(1,)](q, k, v, out, H=heads, N=rows, D=columns)
    want = sum(
        np.maximum(q @ part.transpose(0, 2, 1).astype(np.float64), 0) @ v
        for part in (k[:heads], k[heads:])
    )
    np.testing.assert_allclose(out, want, rtol=1e-4, atol=1e-4)


@proton.jit
def precise(a_ptr, b_ptr, c_ptr, N: tl.constexpr, PRECISION: tl.constexpr):
    r, c = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :]
    a, b = tl.load(a_ptr + r * N + c), tl.load(b_ptr + r * N + c)
    tl.store(c_ptr + r * N + c, tl.dot(a, b, input_precision=PRECISION))


@pytest.mark.parametrize("precision", [None, "tf32", "TF32x3", "ieee", "bf16x3", "bf16x6"])
def test_a_product_has_at_least_the_precision_that_is_asked_for(
    rng: np.random.Generator, precision: str | None
) -> None:
    a, b = (rng.standard_normal((32, 32)).astype(np.float32) for _ in range(2))
    c = np.zeros_like(a)
    precise[(1,)](a, b, c, N=32, PRECISION=precision)
    digits = {"ieee": 2.0**-22, "TF32x3": 2.0**-20, "bf16x6": 2.0**-20, "bf16x3": 2.0**-14}
    bound = (np.abs(a) @ np.abs(b)) * digits.get(precision or "tf32", 2.0**-9)
    assert (np.abs(c - a.astype(np.float64) @ b) <= bound).all()


@proton.jit
def loaded_before(
    a_ptr, b_ptr, c_ptr, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, STAGES: tl.constexpr
):
    m, n, at = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    a_ptrs, b_ptrs = a_ptr + m[:, None] * k + at, b_ptr + at[:, None] * N + n
    b = tl.load(b_ptrs)
    acc = tl.zeros((M, N), tl.float32)
    for start in tl.range(0, k, K, num_stages=STAGES):
        half = (b * 0.5).to(b.dtype)
        a = tl.load(a_ptrs)
        b_ptrs += K * N
        b = tl.load(b_ptrs, mask=start + K < k, other=0)
        acc = tl.dot(a, half, acc)
        a_ptrs += K
    tl.store(c_ptr + m[:, None] * N + n, acc)


@pytest.mark.parametrize(("stages", "steps"), [(2, 1), (2, 5), (3, 2), (4, 7)])
def test_an_operand_that_the_iteration_before_loads(
    rng: np.random.Generator, stages: int, steps: int
) -> None:
    a, b = (ordinary(rng, "float16", shape) for shape in ((64, 64 * steps), (64 * steps, 32)))
    c = np.zeros((64, 32), np.float32)
    loaded_before[(1,)](a, b, c, 64 * steps, M=64, N=32, K=64, STAGES=stages)
    assert_close(c, exact(a, b, "float16").astype(np.float32) / 2, 64 * steps)
