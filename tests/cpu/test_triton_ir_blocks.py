"""Block pointers, tensor descriptors and scaled products in IR as Triton prints it: results are
those of the same kernel from Python, and numpy's."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import proton
import proton.language as tl
from proton.base.targets import CPUTarget
from tests import triton_block_samples as samples
from tests.cpu.test_dot_scaled import SUMS, packed, scaled, stored

CPU = CPUTarget()


@pytest.fixture
def compiled(tmp_path: Path) -> Any:
    """A kernel of text in a file."""

    def compile_text(text: str) -> Any:
        path = tmp_path / "kernel.ttir"
        path.write_text(text)
        return proton.compile(str(path), target=CPU)

    return compile_text


def floats(rng: Any, *shape: int) -> Any:
    return rng.standard_normal(shape).astype(np.float32)


@proton.jit
def move(x_ptr, y_ptr, M, N, K):
    at = tl.program_id(0) * 16
    x = tl.make_block_ptr(x_ptr, (M, N), (N, 1), (at, 0), (16, 32), (1, 0))
    y = tl.make_block_ptr(y_ptr, (N, M), (M, 1), (0, at), (32, 16), (0, 1))
    for _ in range(0, K, 32):
        a = tl.load(x, boundary_check=(0, 1), padding_option="zero")
        b = tl.load(y, boundary_check=(1, 0), padding_option="nan", cache_modifier=".cg")
        tl.store(y, tl.trans(a) * 2 + b, boundary_check=(0, 1), eviction_policy="evict_first")
        x = tl.advance(x, (0, 32))
        y = tl.advance(y, (32, 0))


@pytest.mark.parametrize(("m", "n"), [(1, 1), (16, 32), (17, 95), (40, 33)])
def test_block_pointers(compiled: Any, rng: Any, m: int, n: int) -> None:
    kernel = compiled(samples.MOVE)
    x, y = floats(rng, m, n), floats(rng, n, m)
    wanted, again = y + x.T * np.float32(2), y.copy()
    grid = (proton.cdiv(m, 16), 1, 1)
    kernel[grid](x, y, m, n, n)
    np.testing.assert_array_equal(y, wanted)
    move[grid](x, again, m, n, n)
    np.testing.assert_array_equal(y, again)


def test_what_a_block_pointer_finds_outside(compiled: Any, rng: Any) -> None:
    """What is checked and lies outside is padded as the load says; what is not checked is there."""
    text = samples.MOVE.replace(
        "%y_16 = arith.extsi %M : i32 to i64", "%y_16 = arith.constant 10 : i64"
    )
    assert text != samples.MOVE
    store = "evict_first {boundaryCheck = array<i32: 0, 1>}"
    assert store in text
    x, y = floats(rng, 16, 32), floats(rng, 32, 16)
    wanted = y + x.T * np.float32(2)
    wanted[:, 10:] = np.nan
    compiled(text.replace(store, "evict_first"))[(1, 1, 1)](x, y, 16, 32, 32)
    np.testing.assert_array_equal(y, wanted)


@proton.jit
def describe(x_ptr, y_ptr, rows_ptr, M, N):
    x = tl.make_tensor_descriptor(x_ptr, [M, N], [N, 1], [16, 32])
    y = tl.make_tensor_descriptor(y_ptr, [M, N], [N, 1], [16, 32], padding_option="nan")
    row = tl.make_tensor_descriptor(y_ptr, [M, N], [N, 1], [1, 32])
    a = x.load([tl.program_id(0) * 16, 4])
    b = y.load([tl.program_id(0) * 16, 8])
    rows = tl.load(rows_ptr + tl.arange(0, 8))
    c = row.gather(rows, 4)
    x.store([0, 0], a + b)
    x.atomic_add([4, 4], a)
    row.scatter(c * 2, rows, 8)


def block(x: Any, row: int, column: int, height: int, width: int, outside: float) -> Any:
    wide = np.full((x.shape[0] + 64, x.shape[1] + 64), outside, np.float32)
    wide[: x.shape[0], : x.shape[1]] = x
    return wide[row : row + height, column : column + width]


@pytest.mark.parametrize(("m", "n"), [(16, 40), (19, 36), (13, 20)])
def test_descriptors_that_the_kernel_makes(compiled: Any, rng: Any, m: int, n: int) -> None:
    """Two for blocks of one shape are padded each in its way."""
    kernel = compiled(samples.DESCRIBE)
    (x, y), rows = floats(rng, 2, m, n), rng.permutation(m)[:8].astype(np.int32)
    own = x.copy(), y.copy()
    wanted_x, wanted_y = x.copy(), y.copy()
    a, b = block(x, 0, 4, 16, 32, 0), block(y, 0, 8, 16, 32, np.nan)
    c = np.concatenate([block(y, row, 4, 1, 32, 0) for row in rows])
    height, width = min(m, 16), min(n, 32)
    wanted_x[:height, :width] = (a + b)[:height, :width]
    height, width = min(m - 4, 16), min(n - 4, 32)
    wanted_x[4 : 4 + height, 4 : 4 + width] += a[:height, :width]
    width = min(n - 8, 32)
    wanted_y[rows, 8 : 8 + width] = (c * 2)[:, :width]
    kernel[(1, 1, 1)](x, y, rows, m, n)
    np.testing.assert_array_equal(x, wanted_x)
    np.testing.assert_array_equal(y, wanted_y)
    describe[(1,)](*own, rows, m, n)
    np.testing.assert_array_equal(x, own[0])
    np.testing.assert_array_equal(y, own[1])
    assert np.isnan(x).any() == (n < 40)


def test_a_loop_takes_descriptors_that_are_padded_as_the_first_one(compiled: Any) -> None:
    """What MLIR's text says of a value has one padding for each type."""
    for at, wanted in (("%x_0", None), ("%y", "add: expects different type|prior use")):
        text = samples.DESCRIBE.replace(
            "    tt.return",
            f"    %l = scf.for %i = %c0_i32 to %c8_i32 step %c4_i32 iter_args(%d = {at}) -> "
            "(!tt.tensordesc<16x32xf32>) : i32 {\n      scf.yield %d : "
            "!tt.tensordesc<16x32xf32>\n    }\n    tt.return",
        )
        if wanted is None:
            assert compiled(text) is not None
            continue
        line = text[: text.index("%l = ")].count("\n") + 1
        with pytest.raises(proton.CompilationError, match=rf"kernel\.ttir:{line}:.*({wanted})"):
            compiled(text)


@proton.jit
def scale(a_ptr, a_scale_ptr, b_ptr, b_scale_ptr, c_ptr):
    i, j, k = tl.arange(0, 32), tl.arange(0, 64), tl.arange(0, 4)
    a = tl.load(a_ptr + i[:, None] * 32 + i[None, :])
    b = tl.load(b_ptr + j[:, None] * 32 + i[None, :])
    a_scale = tl.load(a_scale_ptr + i[:, None] * 4 + k[None, :])
    b_scale = tl.load(b_scale_ptr + i[:, None] * 4 + k[None, :])
    c = tl.dot_scaled(a, a_scale, "e2m1", b, b_scale, "e5m2")
    d = tl.dot_scaled(a, a_scale, "e2m1", tl.trans(a), None, "e2m1", c, rhs_k_pack=True)
    tl.store(c_ptr + i[:, None] * 32 + i[None, :], d)


def test_scaled_products(compiled: Any, rng: Any) -> None:
    a, a_numbers = stored(rng, "e2m1", (32, 64))
    b, b_numbers = stored(rng, "e5m2", (64, 32))
    a_scale, b_scale = (stored(rng, "e4m3", (32, 4))[0] for _ in range(2))
    left, right = scaled(a_numbers, a_scale, 1, "e4m3"), scaled(b_numbers, b_scale, 0, "e4m3")
    c, again = np.zeros((2, 32, 32), np.float32)
    given = [
        packed(a, 1),
        proton.reinterpret(a_scale, tl.float8e4nv),
        proton.reinterpret(b, tl.float8e5),
        proton.reinterpret(b_scale, tl.float8e4nv),
    ]
    compiled(samples.SCALED)[(1, 1, 1)](*given, c)
    wanted = left @ right + left @ a_numbers.T
    bound = np.abs(left) @ np.abs(right) + np.abs(left) @ np.abs(a_numbers).T
    assert (np.abs(c - wanted) <= bound * SUMS).all()
    scale[(1,)](*given, again)
    np.testing.assert_array_equal(c, again)


def test_scaled_products_packed_along_other_dimensions(compiled: Any) -> None:
    """Ones, each times 2, by threes."""
    text = samples.SCALED
    start, end = text.index("    %c_28 = "), text.index("    %3 = ")
    product = """\
    %exponents = arith.constant dense<128> : tensor<32x2xi8>
    %ones = arith.constant dense<0x22> : tensor<16x64xi8>
    %threes = arith.constant dense<0x55> : tensor<64x16xi8>
    %d_29 = tt.dot_scaled %ones scale %exponents, %threes, %c lhs = e2m1 rhs = e2m1 {fastMath = \
false, lhs_k_pack = false, rhs_k_pack = false} : tensor<16x64xi8>, tensor<32x2xi8> * \
tensor<64x16xi8> -> tensor<32x32xf32>
"""
    c, spare = np.zeros((32, 32), np.float32), np.zeros((64, 32), np.uint8)
    given = [
        spare,
        proton.reinterpret(spare, tl.float8e4nv),
        proton.reinterpret(spare, tl.float8e5),
        proton.reinterpret(spare, tl.float8e4nv),
    ]
    compiled(text[:start] + product + text[end:])[(1, 1, 1)](*given, c)
    np.testing.assert_array_equal(c, 1 * 2 * 3 * 64)


def test_scaled_products_that_are_none(compiled: Any) -> None:
    line = samples.SCALED[: samples.SCALED.index("%d_29 = ")].count("\n") + 1
    end = "tensor<32x4xf8E4M3FN> * tensor<32x32xi8> ->"
    for before, after, said in (
        ("lhs = e2m1 rhs = e2m1", "lhs = e3m2 rhs = e2m1", "lhs_format must be one of e2m1"),
        (end, end.replace("4xf8E4M3FN", "4xi16"), "expects different type|prior use"),
        ("%d, %c_28 lhs", "%a_8, %c_28 lhs", None),
        ("rhs = e2m1 {fastMath = false}", "rhs = e2m1 {rhs_k_pack = false}", "inner sizes must"),
    ):
        assert before in samples.SCALED
        text = samples.SCALED.replace(before, after)
        if said is None:
            assert compiled(text) is not None
            continue
        with pytest.raises(proton.CompilationError, match=rf"kernel\.ttir:{line}:.*({said})"):
            compiled(text)
