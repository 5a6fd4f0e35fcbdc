"""Which small loads are made in the layout that wants them, and what masks and spills become."""

import re
from typing import Any

import numpy as np
import pytest

import proton
import proton.language as tl
from proton.base.targets import ARCHITECTURES, WARP_SIZE
from tests.compile.ptx.machine import run_on_arrays
from tests.cpu.test_small_loads import elsewhere, in_place, normal, product, scaled

TARGET = proton.GPUTarget("cuda", 90)


def compiled(kernel: Any, *values: Any, **options: Any) -> Any:
    return kernel.warmup(*values, target=TARGET, **options)


def moves(kernel: Any) -> int:
    return str(kernel.asm["ttgir"]).count("ttg.convert_layout")


def loads(kernel: Any) -> int:
    return str(kernel.asm["ttgir"]).count('"tt.load"')


def test_rows_and_columns_are_loaded_where_the_block_wants_them() -> None:
    kernel = compiled(scaled, tl.float32, tl.float16, tl.float32, tl.float32, 32, M=32, N=64)
    assert moves(kernel) == 0
    assert loads(kernel) == 3  # the loads in other layouts are gone
    assert kernel.shared == 0


def test_a_row_of_as_many_elements_as_threads_is_moved() -> None:
    values = (tl.float32, tl.float16, tl.float32, tl.float32, 32)
    assert moves(compiled(scaled, *values, M=32, N=128)) > 0
    assert moves(compiled(scaled, *values, M=32, N=128, num_warps=8)) == 0


def test_what_may_be_written_meanwhile_is_moved() -> None:
    assert moves(compiled(in_place, tl.float32, tl.float32, M=32, N=64)) > 0
    assert moves(compiled(elsewhere, tl.float32, tl.float32, tl.float32, M=32, N=64)) > 0


@proton.jit
def weighted_sums(x_ptr, scale_ptr, out_ptr, n, K: tl.constexpr, N: tl.constexpr):
    """Columns with a scale a block of rows, and a row of as many results."""
    k, j = tl.arange(0, K), tl.arange(0, N)
    total = tl.zeros((K, N), tl.float32)
    for start in range(0, n, K):
        x = tl.load(x_ptr + (start + k)[:, None] * N + j[None, :])
        total += x * tl.load(scale_ptr + start // K * N + j)[None, :]
    tl.store(out_ptr + j, tl.sum(total, 0))


def test_a_row_that_each_warp_loads_does_not_wait_for_what_the_kernel_writes(
    rng: np.random.Generator,
) -> None:
    kernel = compiled(weighted_sums, tl.float32, tl.float32, tl.float32, 384, K=128, N=4)
    loop = str(kernel.asm["ttgir"]).split("scf.for", 1)[1].split("scf.yield", 1)[0]
    assert "ttg.convert_layout" not in loop
    x, scales, out = normal(rng, 384, 4), normal(rng, 3, 4), np.zeros(4, np.float32)
    run_on_arrays(kernel.asm["ptx"], (1, 1, 1), 128, kernel.shared, [x, scales, out, 384], rng)
    want = (x.reshape(3, 128, 4) * scales[:, None]).sum((0, 1))
    np.testing.assert_allclose(out, want, rtol=1e-4, atol=1e-4)


@proton.jit
def volatile(x_ptr, row_ptr, M: tl.constexpr, N: tl.constexpr):
    i, j = tl.arange(0, M), tl.arange(0, N)
    row = tl.load(row_ptr + j, volatile=True)
    tl.store(x_ptr + i[:, None] * N + j[None, :], tl.broadcast_to(row[None, :], (M, N)))


def test_a_volatile_load_is_one() -> None:
    kernel = compiled(volatile, tl.float32, tl.float32, M=32, N=64)
    assert moves(kernel) > 0
    assert loads(kernel) == 1


@proton.jit
def looked_up(x_ptr, index_ptr, table_ptr, M: tl.constexpr, N: tl.constexpr):
    """The row's places come from memory, too."""
    i, j = tl.arange(0, M), tl.arange(0, N)
    row = tl.load(table_ptr + tl.load(index_ptr + j))
    places = i[:, None] * N + j[None, :]
    tl.store(x_ptr + places, tl.load(x_ptr + places) + row[None, :])


def test_a_small_gather_is_loaded_with_its_places() -> None:
    kernel = compiled(looked_up, tl.float32, tl.int32, tl.float32, M=32, N=64)
    assert moves(kernel) == 0
    assert loads(kernel) == 3


def test_a_product_of_a_column_and_a_row_is_computed_where_it_is_stored() -> None:
    kernel = compiled(product, tl.float32, tl.float32, tl.float32, M=32, N=64)
    assert moves(kernel) == 0
    assert kernel.shared == 0


@proton.jit
def negated(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    for start in range(0, n, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + offsets, mask=offsets < n, other=0.0)
        tl.store(out_ptr + offsets, -x, mask=offsets < n)


def test_a_mask_is_computed_once_for_an_access() -> None:
    """32 elements of a thread are 8 accesses: 8 comparisons, and the loop's."""
    kernel = compiled(negated, tl.float32, tl.float32, 32000, BLOCK=16384, num_warps=16)
    code = str(kernel.asm["sass"])
    assert len(re.findall(r"\bLDG\S*\.128", code)) == 8
    assert len(re.findall(r"\bISETP", code)) <= 12


@proton.jit
def sums(x_ptr, y_ptr, w_ptr, a_ptr, b_ptr, rows, N: tl.constexpr):
    """Two sums of rows of 32 elements a thread, beside three rows: more than its registers."""
    j = tl.arange(0, N)
    a = b = tl.zeros((N,), tl.float32)
    w = tl.load(w_ptr + j)
    for row in range(rows):
        x, y = tl.load(x_ptr + row * N + j), tl.load(y_ptr + row * N + j)
        z = y * w
        first, second = tl.sum(z, 0) / N, tl.sum(z * x, 0) / N
        tl.store(x_ptr + row * N + j, z - x * second - first)
        a += x * y
        b += y
    tl.store(a_ptr + j, a)
    tl.store(b_ptr + j, b)


def test_a_program_that_spills_has_all_registers() -> None:
    values = [tl.float32] * 5
    kernel = compiled(sums, *values, 100, N=16384, num_warps=16)
    assert kernel.n_spills
    assert kernel.n_regs == ARCHITECTURES[90].most_registers(1, 16 * WARP_SIZE) == 128
    assert ".minnctapersm 1" in kernel.asm["ptx"]
    assert ".minnctapersm" not in compiled(sums, *values, 100, N=4096, num_warps=16).asm["ptx"]


def test_the_registers_of_a_thread_are_those_of_the_chip_at_most() -> None:
    found = [ARCHITECTURES[90].most_registers(1, warps * WARP_SIZE) for warps in (1, 8, 16, 32)]
    assert found == [255, 255, 128, 64]


@proton.jit
def offsets(out_ptr, STRIDE: tl.constexpr):
    at = tl.program_id(0) * STRIDE + tl.arange(0, 128)
    tl.store(out_ptr + at, tl.num_programs(1))


def test_llvm_knows_how_large_numbers_of_programs_are() -> None:
    code = str(compiled(offsets, tl.int32, 128).asm["llir"])
    assert "ctaid.x range <i32, 0, 2147483647>" in code
    assert "nctaid.y range <i32, 1, 65536>" in code
    assert "tid.x range <i32, 0, 128>" in code


@proton.jit
def scaled_products(
    x_ptr, y_ptr, s_ptr, out_ptr, n, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr
):
    """A product whose blocks of K have a scale a row, by pointers that the loop moves."""
    m, j, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    x_ptrs, y_ptrs = x_ptr + m[:, None] * n + k[None, :], y_ptr + k[:, None] * N + j[None, :]
    s_ptrs = s_ptr + m * (n // K)
    out = tl.zeros((M, N), tl.float32)
    for _ in range(0, n, K):
        out += tl.dot(tl.load(x_ptrs), tl.load(y_ptrs)) * tl.load(s_ptrs)[:, None]
        x_ptrs += K
        y_ptrs += K * N
        s_ptrs += 1
    tl.store(out_ptr + m[:, None] * N + j[None, :], out)


@pytest.mark.usefixtures("no_assembler")
@pytest.mark.parametrize("arch", [80, 90], ids=["mma", "wgmma"])
def test_scales_of_products_are_loaded_where_the_product_is(
    arch: int, rng: np.random.Generator
) -> None:
    types = [tl.float16, tl.float16, tl.float32, tl.float32, 128]
    sizes = {"M": 64, "N": 32, "K": 32}
    kernel = scaled_products.warmup(*types, **sizes, target=proton.GPUTarget("cuda", arch))
    loop = str(kernel.asm["ttgir"]).split("scf.for", 1)[1].split("scf.yield", 1)[0]
    assert "ttg.convert_layout" not in loop
    x, y = (rng.standard_normal(shape).astype(np.float16) for shape in ((64, 128), (128, 32)))
    scales, out = normal(rng, 64, 4), np.full((64, 32), np.nan, np.float32)
    run_on_arrays(kernel.asm["ptx"], (1, 1, 1), 128, kernel.shared, [x, y, scales, out, 128], rng)
    parts = [x[:, at : at + 32].astype(np.float64) @ y[at : at + 32] for at in range(0, 128, 32)]
    want = sum(part * scales[:, n, None] for n, part in enumerate(parts))
    np.testing.assert_allclose(out, want, rtol=1e-4, atol=1e-3)


@proton.jit
def counted_products(x_ptr, s_ptr, out_ptr, n, M: tl.constexpr):
    """The scales of an iteration are what the one before wrote."""
    m = tl.arange(0, M)
    x = tl.load(x_ptr + m[:, None] * M + m[None, :])
    out = tl.zeros((M, M), tl.float32)
    s_ptrs = s_ptr + m
    for _ in range(n):
        scales = tl.load(s_ptrs)
        out += tl.dot(x, x) * scales[:, None]
        tl.store(s_ptrs + M, scales + 1)
        s_ptrs += M
    tl.store(out_ptr + m[:, None] * M + m[None, :], out)


def test_scales_that_the_loop_writes_are_loaded_once() -> None:
    kernel = compiled(counted_products, tl.float16, tl.float32, tl.float32, 4, M=64)
    loop = str(kernel.asm["ttgir"]).split("scf.for", 1)[1].split("scf.yield", 1)[0]
    assert loop.count('"tt.load"') == 1
    assert "ttg.convert_layout" in loop


@proton.jit
def gathered_products(x_ptr, index_ptr, y_ptr, out_ptr, n, M: tl.constexpr, K: tl.constexpr):
    """Rows that an index names, those before row 8 left out: an operand, and a mask of it."""
    m, k = tl.arange(0, M), tl.arange(0, K)
    y = tl.load(y_ptr + m[:, None] * K + k[None, :])
    out = tl.zeros((M, K), tl.float32)
    for start in range(0, n, M):
        rows = tl.load(index_ptr + start + m)
        x = tl.load(x_ptr + rows[:, None] * K + k[None, :])
        weights = tl.where(rows[None, :] >= 8, tl.dot(y, tl.trans(x)), 0.0)
        out = tl.dot(weights, x, out)
    tl.store(out_ptr + m[:, None] * K + k[None, :], out)


@pytest.mark.usefixtures("no_assembler")
@pytest.mark.parametrize("num_stages", [1, 3])
def test_indices_of_rows_are_loaded_wherever_they_are_taken(
    num_stages: int, rng: np.random.Generator
) -> None:
    """Where stages copy what an operand is computed from, only once."""
    types = [tl.float32, tl.int32, tl.float32, tl.float32, 64]
    kernel = compiled(gathered_products, *types, M=32, K=32, num_stages=num_stages)
    loop = str(kernel.asm["ttgir"]).split("scf.for", 1)[1].split("scf.yield", 1)[0]
    is_moved = re.search(r'"ttg.convert_layout".*(?:i32|ptr)', loop) is not None
    assert is_moved == (num_stages > 1)
    x, y = normal(rng, 40, 32), normal(rng, 32, 32)
    index, out = rng.permutation(40)[:32].astype(np.int32), np.full((32, 32), np.nan, np.float32)
    indices = np.concatenate([index, index[::-1]])
    args = [x, indices, y, out, 64]
    run_on_arrays(kernel.asm["ptx"], (1, 1, 1), 128, kernel.shared, args, rng)
    rows = x[indices].astype(np.float64)
    weights = np.where(indices >= 8, y @ rows.T, 0)
    np.testing.assert_allclose(out, weights @ rows, rtol=2e-2, atol=0.3)


@proton.jit
def scaled_rows(x_ptr, index_ptr, scale_ptr, out_ptr, n, K: tl.constexpr, N: tl.constexpr):
    """Sums of columns by scales that an index of each row names, if it does."""
    k, j = tl.arange(0, K), tl.arange(0, N)
    total = tl.zeros((K, N), tl.float32)
    for start in range(0, n, K):
        group = tl.load(index_ptr + start + k)
        there = (group >= 0)[:, None] & (group < 4)[:, None]
        x = tl.load(x_ptr + (start + k)[:, None] * N + j[None, :], mask=there, other=0.0)
        total += x * tl.load(scale_ptr + group[:, None] * N + j[None, :], mask=there, other=0.0)
    tl.store(out_ptr + j, tl.sum(total, 0))


def test_an_index_is_moved_once_for_masks_and_addresses(rng: np.random.Generator) -> None:
    kernel = compiled(scaled_rows, *[tl.float32, tl.int32, tl.float32, tl.float32], 512, K=256, N=4)
    loop = str(kernel.asm["ttgir"]).split("scf.for", 1)[1].split("scf.yield", 1)[0]
    assert loop.count("ttg.convert_layout") == 1
    x, scales, out = normal(rng, 512, 4), normal(rng, 4, 4), np.zeros(4, np.float32)
    index = rng.integers(-1, 5, 512).astype(np.int32)
    args = [x, index, scales, out, 512]
    run_on_arrays(kernel.asm["ptx"], (1, 1, 1), 128, kernel.shared, args, rng)
    there = (index >= 0) & (index < 4)
    want = (x[there] * scales[index[there]]).sum(0)
    np.testing.assert_allclose(out, want, rtol=1e-4, atol=1e-4)
