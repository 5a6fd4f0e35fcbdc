"""Code for a GPU of 9.0, run without one (tests/compile/ptx): what it computes, and that each
barrier, fence and wait in it is needed.

tests/gpu run there too: `PROTON_TEST_EMULATED=4 python -m pytest tests/gpu/test_gpu_dot.py`.
"""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given

import proton
import proton.language as tl
from kernels.attention import attention_kernel
from kernels.matmul import matmul_kernel
from proton.tools.tensor_descriptor import TensorDescriptor
from tests.compile.ptx.emulation import Emulation
from tests.compile.ptx.memory import Race
from tests.cpu.harness import decode, encode, kernels_of, pointer
from tests.cpu.random_programs import Drawn, programs
from tests.cpu.test_random_programs import run as check_program
from tests.draws import PROGRAMS, kernels

Edit = Callable[[str], str]
SYNCHRONIZATION = (
    r"bar\.sync[^;]*;", r"fence\.proxy\.async[^;]*;", r"wgmma\.(?:wait|commit)_group[^;]*;",
    r"cp\.async\.(?:wait|commit)_group[^;]*;",
)  # fmt: skip


@proton.jit
def softmax(x, y, n, BLOCK: tl.constexpr):
    row, place = tl.program_id(0), tl.arange(0, BLOCK)
    values = tl.load(x + row * n + place, mask=place < n, other=-float("inf"))
    powers = tl.exp(values - tl.max(values, 0))
    tl.store(y + row * n + place, powers / tl.sum(powers, 0), mask=place < n)


@proton.jit
def transposed_sums(x, y, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    i, j = tl.arange(0, ROWS), tl.arange(0, COLUMNS)
    block = tl.load(x + i[:, None] * COLUMNS + j[None, :])
    tl.store(y + j[:, None] * ROWS + i[None, :], tl.trans(block) + tl.sum(block, 0)[:, None])


@proton.jit
def product_by_descriptors(a, b, c, K, BLOCK: tl.constexpr, DEPTH: tl.constexpr):
    row, column = tl.program_id(0) * BLOCK, tl.program_id(1) * BLOCK
    sums = tl.zeros((BLOCK, BLOCK), tl.float32)
    for k in range(0, K, DEPTH):
        sums = tl.dot(a.load([row, k]), b.load([k, column]), sums)
    c.store([row, column], sums.to(c.dtype))


def run_softmax(rng: np.random.Generator, edit: Edit = str) -> None:
    n = int(rng.integers(1, 700))
    x, y = rng.standard_normal((3, n), np.float32), np.zeros((3, n), np.float32)
    with Emulation(4, rng, edit).installed():
        softmax[(3,)](x, y, n, BLOCK=1024)
    powers = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    np.testing.assert_allclose(y, powers / powers.sum(1, keepdims=True), rtol=1e-5, atol=1e-7)


def run_sums(rng: np.random.Generator, edit: Edit = str) -> None:
    x, y = rng.integers(-99, 99, (32, 64), np.int32), np.zeros((64, 32), np.int32)
    with Emulation(4, rng, edit).installed():
        transposed_sums[(1,)](x, y, 32, 64)
    assert (y == x.T + x.sum(0)[:, None]).all()


def run_product(
    rng: np.random.Generator,
    edit: Edit = str,
    *,
    dtype: str = "float16",
    size: tuple[int, int, int] = (128, 128, 192),
    blocks: tuple[int, int, int] = (128, 128, 64),
    warps: int = 4,
    stages: int = 3,
) -> None:
    """A product by pointers against one of 64 bits."""
    m, n, k = size
    a, b = (encode(rng.standard_normal(s, np.float32), dtype) for s in ((m, k), (k, n)))
    c = np.full((m, n), 77, a.dtype)
    grid = (proton.cdiv(m, blocks[0]) * proton.cdiv(n, blocks[1]),)
    options = dict(zip(("BLOCK_M", "BLOCK_N", "BLOCK_K"), blocks, strict=True), GROUP_M=8)
    arrays = [pointer(array, dtype) for array in (a, b, c)]
    with Emulation(warps, rng, edit).installed():
        matmul_kernel[grid](*arrays, m, n, k, k, 1, n, 1, n, 1, num_stages=stages, **options)
    assert_product(decode(c, dtype), decode(a, dtype), decode(b, dtype), dtype)


def assert_product(c: np.ndarray, a: np.ndarray, b: np.ndarray, dtype: str) -> None:
    a, b = a.astype(np.float64), b.astype(np.float64)
    ulp = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-9}[dtype]
    bound = ulp * np.abs(a @ b) + 2.0**-20 * (np.abs(a) @ np.abs(b))
    if dtype == "float32":  # its factors are of tf32
        bound = ulp * (np.abs(a) @ np.abs(b))
    with np.errstate(invalid="ignore"):
        assert (np.abs(c - a @ b) <= bound).all()


PRODUCTS: list[dict[str, Any]] = [
    {},
    {"size": (130, 72, 200), "stages": 4},
    {"size": (64, 64, 33), "blocks": (64, 64, 32), "stages": 2},
    {"dtype": "bfloat16", "size": (128, 256, 128), "blocks": (128, 256, 64), "warps": 8},
    {"dtype": "float32", "size": (64, 64, 64), "blocks": (64, 64, 32)},
    {"size": (32, 32, 64), "blocks": (32, 32, 32), "stages": 1},  # mma.sync
]


@pytest.mark.usefixtures("no_assembler")
@pytest.mark.parametrize("options", PRODUCTS, ids=lambda o: "-".join(map(str, o.values())))
def test_products(rng: np.random.Generator, options: dict[str, Any]) -> None:
    run_product(rng, **options)


@proton.jit
def same_product_of_each_tile(a, b, c, tiles, K, BLOCK: tl.constexpr):
    """Loads need nothing of the tile, as where one tile has all rows and columns."""
    for tile in tl.range(tl.program_id(0), tiles, tl.num_programs(0), flatten=True):
        acc = tl.zeros((BLOCK, BLOCK), tl.float32)
        for k in range(0, K, BLOCK):
            acc = tl.dot(a.load([0, k]), b.load([k, 0]), acc)
        c.store([tile * BLOCK, 0], (acc * (tile + 1)).to(tl.float16))


def test_tiles_that_load_the_same(rng: np.random.Generator) -> None:
    a, b = (rng.standard_normal(size).astype(np.float16) for size in ((64, 200), (200, 64)))
    c = np.zeros((5 * 64, 64), np.float16)
    given = [TensorDescriptor.from_tensor(array, [64, 64]) for array in (a, b, c)]
    with Emulation(4, rng).installed():
        same_product_of_each_tile[(2,)](*given, 5, 200, BLOCK=64, num_stages=3)
    exact = a.astype(np.float32) @ b.astype(np.float32)
    for tile, found in enumerate(c.reshape(5, 64, 64), 1):
        np.testing.assert_allclose(found, exact * tile, rtol=2e-3, atol=2e-2 * tile)


@pytest.mark.parametrize("stages", [1, 3])
def test_products_by_descriptors(rng: np.random.Generator, stages: int) -> None:
    m, n, k = 136, 72, 168
    a, b = (rng.standard_normal(size).astype(np.float16) for size in ((m, k), (k, n)))
    c = np.full((m, n), 77, np.float16)
    blocks = ((a, [64, 64]), (b, [64, 64]), (c, [64, 64]))
    descriptors = [TensorDescriptor.from_tensor(array, block) for array, block in blocks]
    with Emulation(4, rng).installed():
        product_by_descriptors[(3, 2)](*descriptors, k, BLOCK=64, DEPTH=64, num_stages=stages)
    assert_product(c, a, b, "float16")


@pytest.mark.usefixtures("no_assembler")
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("overlap", [False, True])
def test_attention(rng: np.random.Generator, causal: bool, overlap: bool) -> None:
    length, depth = 136, 64
    q, k, v = (rng.standard_normal((1, 1, length, depth)).astype(np.float16) for _ in range(3))
    out, sums = np.zeros_like(q), np.zeros((1, 1, length), np.float32)
    strides = [length * depth, length * depth, depth] * 4
    with Emulation(4, rng).installed():
        attention_kernel[(3, 1)](
            q, k, v, out, sums, *strides, 1, length, depth**-0.5, HEAD=depth, BLOCK_M=64,
            BLOCK_N=64, CAUSAL=causal, OVERLAP=overlap, num_stages=3,
        )  # fmt: skip
    scores = q[0, 0].astype(np.float64) @ k[0, 0].astype(np.float64).T * depth**-0.5
    if causal:
        scores = np.where(np.tril(np.ones(scores.shape, bool)), scores, -np.inf)
    powers = np.exp(scores - scores.max(1, keepdims=True))
    want = powers / powers.sum(1, keepdims=True) @ v[0, 0].astype(np.float64)
    assert np.abs(out[0, 0] - want).max() < 4e-3


def without(pattern: str, number: int) -> Edit:
    """Takes one instruction out."""

    def edit(ptx: str) -> str:
        found = list(re.finditer(pattern, ptx))[number]
        return ptx[: found.start()] + ptx[found.end() :]

    return edit


@pytest.mark.usefixtures("no_assembler")
@pytest.mark.parametrize("check", [run_softmax, run_sums, run_product], ids=lambda c: c.__name__)
def test_all_synchronization_is_needed(rng: np.random.Generator, check: Any) -> None:
    """Without any one of its barriers, fences, commits and waits a kernel has a race, reads what an
    unfinished copy leaves, or is wrong: there is none too many."""
    seen: list[str] = []
    check(rng, lambda ptx: seen.append(ptx) or ptx)
    count = 0
    for pattern in SYNCHRONIZATION:
        for number in range(len(re.findall(pattern, seen[0]))):
            with pytest.raises(AssertionError):
                check(rng, without(pattern, number))
            count += 1
    assert count >= {run_softmax: 2, run_sums: 2, run_product: 10}[check]


def test_a_race_names_the_threads(rng: np.random.Generator) -> None:
    with pytest.raises(Race, match=r"shared byte \d+ by thread \d+: .*thread.* there"):
        run_sums(rng, without(SYNCHRONIZATION[0], 0))


@proton.jit
def reversed_in_place(x, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(x + N - 1 - i, tl.load(x + i))


def test_warps_run_one_after_the_other_where_races_are_no_error(rng: np.random.Generator) -> None:
    x = rng.permutation(256).astype(np.int32)
    changed = x.copy()
    with Emulation(8, rng, checks_races=False).installed():
        reversed_in_place[(1,)](changed, N=256)
    blocks = x.reshape(8, 32)[::-1, ::-1]
    found = changed.reshape(8, 32)
    first = [(found[warp] == blocks[warp]).all() for warp in range(8)]
    # Of two warps that swap their elements the second finds what the first has stored.
    assert sum(first) == 4
    assert all(a != b for a, b in zip(first, first[::-1], strict=True))


@proton.jit
def chosen(x, y, out, is_first, N: tl.constexpr):
    i = tl.arange(0, N)
    if is_first:
        source = x
    else:
        source = y
    tl.store(out + i, tl.load(source + i).to(tl.bfloat16, fp_downcast_rounding="rtz"))


@pytest.mark.parametrize("is_first", [False, True])
def test_a_parameter_that_a_branch_chooses(rng: np.random.Generator, is_first: bool) -> None:
    x, y = rng.standard_normal((2, 64), np.float32)
    out = np.zeros(64, np.uint16)
    with Emulation(4, rng).installed():
        chosen[(1,)](x, y, pointer(out, "bfloat16"), is_first, N=64)
    assert (out == (x if is_first else y).view(np.uint32) >> 16).all()


@proton.jit
def sines(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + i, tl.sin(tl.load(x + i)))


def test_arrays_in_local_memory(rng: np.random.Generator) -> None:
    x, out = (10 ** rng.uniform(5, 30, 64)).astype(np.float32), np.zeros(64, np.float32)
    with Emulation(4, rng).installed():
        sines[(1,)](x, out, N=64)
    assert (np.abs(out) <= 1).all()
    near = x < 1e15
    assert np.abs(out - np.sin(x.astype(np.float64)))[near].max() < 1e-6


@proton.jit
def exponentials(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + i, tl.extra.libdevice.exp(tl.load(x + i)))


def test_sums_between_0_and_1(rng: np.random.Generator) -> None:
    x = np.array([np.inf, -np.inf, np.nan, 1, 0, -0.0, 200, -200], np.float32)
    out = np.zeros(8, np.float32)
    with Emulation(1, rng).installed():
        exponentials[(1,)](x, out, N=8)
    with np.errstate(over="ignore"):
        np.testing.assert_allclose(out, np.exp(x), rtol=1e-6)


def test_an_access_outside_is_an_error(rng: np.random.Generator) -> None:
    x, y = rng.integers(-99, 99, (32, 64), np.int32), np.zeros((64, 31), np.int32)
    with Emulation(4, rng).installed():
        with pytest.raises(AssertionError, match="an access outside: 16 bytes at global"):
            transposed_sums[(1,)](x, y, 32, 64)


def test_threads_that_wait_for_ever_are_named(rng: np.random.Generator) -> None:
    """The first warp waits at a barrier of its own."""
    apart = r"\1\n.reg .pred %q;\nsetp.lt.u32 %q, \2, 32;\n@!%q bra ON;\nbar.sync 1, 64;\nON:\n"

    def edit(ptx: str) -> str:
        return re.sub(r"(mov\.u32\s+(%r\d+), %tid\.x;)", apart, ptx, count=1)

    with pytest.raises(AssertionError, match="wait for ever: 32 threads, 0 the first, at 'bar"):
        run_sums(rng, edit)


@kernels(PROGRAMS // 12)
@given(programs())
def test_random_programs(drawn: Drawn) -> None:
    with Emulation(4, np.random.default_rng(0)).installed():
        check_program(drawn)


def test_numbers_of_programs(rng: np.random.Generator) -> None:
    source = """
@proton.jit
def kernel(x, BLOCK: tl.constexpr):
    number = tl.program_id(0) + 3 * tl.program_id(1) + 6 * tl.program_id(2)
    tl.store(x + number * BLOCK + tl.arange(0, BLOCK), number)
    tl.atomic_add(x + 12 * BLOCK, number)
"""
    x = np.zeros(12 * 64 + 1, np.int32)
    with Emulation(2, rng).installed():
        kernels_of(source).kernel[(3, 2, 2)](x, BLOCK=64)
    assert (x[:-1] == np.repeat(np.arange(12), 64)).all()
    assert x[-1] == sum(range(12))


@proton.jit
def many_ways(x_ptr, out_ptr, counts, n):
    """A way for each program, which LLVM chooses by a table."""
    i = tl.arange(0, 32)
    x = tl.load(x_ptr + i)
    way = tl.program_id(0)
    if way == 0:
        x = tl.flip(x, 0)
    elif way == 1:
        tl.atomic_add(counts + i, x)
    elif way == 2:
        x = tl.cumsum(x, 0)
    elif way == 3:
        tl.atomic_max(counts + i, -x)
    elif way == 4:
        x = x * n
    elif way == 5:
        x = tl.load(x_ptr + (x & 31))
    tl.store(out_ptr + 32 * way + i, x)


def test_a_table_of_ways(rng: np.random.Generator) -> None:
    x = rng.integers(0, 32, 32, np.int32)
    out, counts = np.zeros((7, 32), np.int32), np.zeros(32, np.int32)
    with Emulation(4, rng).installed():
        kernel = many_ways[(7,)](x, out, counts, 3)
    assert "brx.idx" in kernel.asm["ptx"]
    np.testing.assert_array_equal(out, [x[::-1], x, np.cumsum(x), x, 3 * x, x[x], x])
    np.testing.assert_array_equal(counts, x)
