"""Loops over tiles that ask to be flattened, where threads copy: the copies of the next tile begin
while this one ends."""

import re
from collections import Counter
from typing import Any

import numpy as np
import pytest

import proton
import proton.language as tl
from proton.backends.nvidia import compiler
from proton.backends.nvidia.cubin import Cubin
from proton.backends.nvidia.ptx import with_bases_beside_dots
from proton.base.targets import GPUTarget
from proton.runtime.launch.tensor_descriptor import TensorDescriptor
from proton.trace.instrumentation import AUTO, Instrumentation
from tests.compile.conftest import NoAssembler
from tests.compile.ptx.emulation import Emulation
from tests.compile.ptx_order import work
from tests.compile.test_gpu_records import compiled


@proton.jit
def product(
    a_ptr, b_ptr, c_ptr, M, N, K, a_stride, b_stride, c_stride,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, FLATTEN: tl.constexpr,
    CARRIED: tl.constexpr,
):  # fmt: skip
    across = tl.cdiv(N, BN)
    at = tl.arange(0, BK)
    for tile in tl.range(
        tl.program_id(0), tl.cdiv(M, BM) * across, tl.num_programs(0), flatten=FLATTEN
    ):
        row = tile // across * BM + tl.arange(0, BM)
        column = tile % across * BN + tl.arange(0, BN)
        a_row, b_column = tl.where(row < M, row, 0), tl.where(column < N, column, 0)
        acc = tl.zeros((BM, BN), tl.float32)
        a_ptrs = a_ptr + a_row[:, None] * a_stride + at[None, :]
        b_ptrs = b_ptr + at[:, None] * b_stride + b_column[None, :]
        for k in range(tl.cdiv(K, BK)):
            inside = at < K - k * BK
            if CARRIED:
                a = tl.load(a_ptrs, inside[None, :], 0.0)
                b = tl.load(b_ptrs, inside[:, None], 0.0)
                a_ptrs += BK
                b_ptrs += BK * b_stride
            else:
                depth = k * BK + at
                a_at = a_row[:, None] * a_stride + depth[None, :]
                b_at = depth[:, None] * b_stride + b_column[None, :]
                a = tl.load(a_ptr + a_at, inside[None, :], 0.0)
                b = tl.load(b_ptr + b_at, inside[:, None], 0.0)
            acc = tl.dot(a, b, acc)
        c_ptrs = c_ptr + row[:, None] * c_stride + column[None, :]
        tl.store(c_ptrs, acc.to(tl.float16), (row < M)[:, None] & (column < N)[None, :])


SIZES = [  # m, n, k in blocks, and numbers more; programs
    ((2, 3, 3), (8, 8, 8), 3),
    ((1, 1, 0), (0, 0, 0), 2),
    ((0, 0, 0), (1, 8, 24), 3),
    ((3, 1, 1), (8, 8, 0), 1),
    ((2, 2, 5), (2, 8, 8), 5),
]


@pytest.mark.usefixtures("no_assembler")
@pytest.mark.parametrize(  # blocks by wgmma, and by mma; any two of the values together
    "stages, block, carried", [(2, 64, False), (2, 32, True), (3, 64, True), (3, 32, False)]
)
def test_products_over_tiles(
    rng: np.random.Generator, stages: int, block: int, carried: bool
) -> None:
    """Programs without a tile, tiles without an iteration, and with fewer than there are stages."""
    for blocks, more, programs in SIZES:
        m, n, k = (block * count + rest for count, rest in zip(blocks, more, strict=True))
        a, b = (rng.standard_normal(size).astype(np.float16) for size in ((m, k), (k, n)))
        c = np.full((m, n), 77, np.float16)
        with Emulation(4, rng).installed():
            product[(programs,)](
                a, b, c, m, n, k, k, n, n, block, block, block, True, carried, num_stages=stages
            )
        exact = a.astype(np.float64) @ b.astype(np.float64)
        np.testing.assert_allclose(c, exact, rtol=2e-3, atol=4e-2)


@proton.jit
def two_loops(
    a, b, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, BY_TMA: tl.constexpr
):  # fmt: skip
    across = tl.cdiv(N, BN)
    at = tl.arange(0, BK)
    for tile in tl.range(
        tl.program_id(0), tl.cdiv(M, BM) * across, tl.num_programs(0), flatten=True
    ):
        first_row, first_column = tile // across * BM, tile % across * BN
        row, column = first_row + tl.arange(0, BM), first_column + tl.arange(0, BN)
        acc, other = tl.zeros((BM, BN), tl.float32), tl.zeros((BM, BN), tl.float32)
        if BY_TMA:
            for k in range(tl.cdiv(K, BK)):
                acc = tl.dot(a.load([first_row, k * BK]), b.load([k * BK, first_column]), acc)
            for k in range(tl.cdiv(K, BK)):
                other = tl.dot(a.load([first_row, k * BK]), b.load([k * BK, first_column]), other)
        else:
            a_ptrs = a + row[:, None] * K + at[None, :]
            b_ptrs = b + at[:, None] * N + column[None, :]
            for k in range(tl.cdiv(K, BK)):
                acc = tl.dot(tl.load(a_ptrs + k * BK), tl.load(b_ptrs + k * BK * N), acc)
            for k in range(tl.cdiv(K, BK)):
                other = tl.dot(tl.load(a_ptrs + k * BK), tl.load(b_ptrs + k * BK * N), other)
        c_ptrs = c_ptr + row[:, None] * N + column[None, :]
        tl.store(c_ptrs, (acc + 2 * other).to(tl.float16))


@pytest.mark.usefixtures("no_assembler")
@pytest.mark.parametrize("by_tma", [False, True])
def test_two_loops_of_a_tile(rng: np.random.Generator, by_tma: bool) -> None:
    """Neither goes on with the next tile: buffers of both would lie beside each other."""
    m, n, k, blocks = 192, 128, 96, (64, 64, 32)
    a, b = (rng.integers(-3, 4, size).astype(np.float16) for size in ((m, k), (k, n)))
    c = np.zeros((m, n), np.float16)
    given: list[Any] = [a, b]
    if by_tma:
        given = [
            TensorDescriptor(array, list(array.shape), [array.shape[1], 1], block)
            for array, block in ((a, [64, 32]), (b, [32, 64]))
        ]
    with Emulation(4, rng).installed():
        two_loops[(2,)](*given, c, m, n, k, *blocks, by_tma, num_stages=2)
    np.testing.assert_array_equal(c, 3 * (a.astype(np.float32) @ b.astype(np.float32)))


@proton.jit
def chain(a_ptr, b_ptr, c_ptr, tiles, DEPTH: tl.constexpr, BLOCK: tl.constexpr):
    """Each block of rows of `a` begins with the product of the one before it."""
    place = tl.arange(0, BLOCK)
    for tile in tl.range(0, tiles, flatten=True):
        acc = tl.zeros((BLOCK, BLOCK), tl.float32)
        row = tile * BLOCK + place
        for k in range(0, DEPTH, BLOCK):
            a = tl.load(a_ptr + row[:, None] * DEPTH + (k + place)[None, :])
            b = tl.load(b_ptr + (k + place)[:, None] * BLOCK + place[None, :])
            acc = tl.dot(a, b, acc)
        tl.store(c_ptr + (row + BLOCK)[:, None] * DEPTH + place[None, :], acc.to(tl.float16))
        tl.debug_barrier()


@pytest.mark.usefixtures("no_assembler")
@pytest.mark.parametrize("stages", [2, 4])
@pytest.mark.parametrize("block", [32, 64])
def test_a_tile_loads_what_the_one_before_it_has_stored(
    rng: np.random.Generator, block: int, stages: int
) -> None:
    """So its copies do not begin before that is stored."""
    tiles, depth = 4, 2 * block
    a = rng.integers(-1, 2, ((tiles + 1) * block, depth)).astype(np.float16)
    b = (rng.integers(-1, 2, (depth, block)) * (rng.random((depth, block)) < 0.1)).astype(a.dtype)
    exact = a.astype(np.float32)
    for tile in range(tiles):
        rows = slice(tile * block, (tile + 1) * block)
        exact[(tile + 1) * block : (tile + 2) * block, :block] = exact[rows] @ b.astype(np.float32)
    with Emulation(4, rng).installed():
        chain[(1,)](a, b, a, tiles, depth, block, num_stages=stages)
    np.testing.assert_array_equal(a, exact.astype(np.float16))


def of_tiles(flatten: bool, words: tuple[str, ...] = (), **options: Any) -> Any:
    return compiled(
        product, *[tl.float16] * 3, 4096, 4096, 4096, 4096, 4096, 4096, 128, 128, 64, flatten,
        False, num_warps=8, num_stages=3,
        instrumentation=Instrumentation(auto=words) if words else None,
        **options,
    )  # fmt: skip


@pytest.mark.usefixtures("no_assembler")
def test_copies_go_on_with_the_next_tile() -> None:
    """Ahead of the loop over tiles the first ones begin, and behind it the last wait is; the loop
    inside begins as many copies as it waits for."""
    plain, flat = (of_tiles(flatten).asm["ttgir"] for flatten in (False, True))
    assert plain.count("async_commit_group") == flat.count("async_commit_group") == 3
    for text, ahead in ((plain, 0), (flat, 2)):
        assert text[: text.index("scf.for")].count("async_commit_group") == ahead
    assert flat.rindex("async_wait") > flat.index("{tt.flatten}")


@pytest.mark.usefixtures("no_assembler")
@pytest.mark.parametrize("flatten", [False, True])
@pytest.mark.parametrize("words", [("copies",), ("loads", "dots"), AUTO], ids="-".join)
def test_records_have_both_ends(words: tuple[str, ...], flatten: bool) -> None:
    plain, recorded = of_tiles(flatten), of_tiles(flatten, words)
    expected, found = work(plain.asm["ptx"]), work(recorded.asm["ptx"])
    assert Counter(found) == Counter(expected)
    groups = [line for line in recorded.asm["ttgir"].splitlines() if "async_commit_group" in line]
    # Where the next tile's copies begin in this one's loop their number is known only there.
    assert [", 1>" in line for line in groups] == [flatten] * 3


def addresses(ptx: str) -> list[str]:
    """How the addresses of the copies behind the products are computed: the last op of each."""
    copied = re.findall(r"cp\.async\.cg\.shared\.global \[%r\d+\], \[(%rd\d+)\]", ptx)
    return [re.findall(rf"(\S+) \t{register},", ptx)[-1] for register in copied[-4:]]


def test_addresses_beside_products_begin_at_uniform_registers() -> None:
    """One instruction of PTX, of which ptxas makes LEA and no IMAD.WIDE."""
    ptx = of_tiles(True).asm["ptx"]
    assert addresses(ptx) == ["mad.wide.s32"] * 4


def test_without_products_of_warp_groups_the_text_stays() -> None:
    plain = product.warmup(
        *[tl.float16] * 3, *[4096] * 6, 32, 32, 32, False, False, num_warps=4,
        target=GPUTarget("cuda", 90),
    ).asm["ptx"]  # fmt: skip
    assert "wgmma" not in plain
    assert with_bases_beside_dots(plain) == plain


@proton.jit
def product_with_assembly(a_ptr, b_ptr, c_ptr, K, BLOCK: tl.constexpr):
    place = tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK, BLOCK), tl.float32)
    for k in range(0, K, BLOCK):
        a = tl.load(a_ptr + place[:, None] * K + (k + place)[None, :])
        b = tl.load(b_ptr + (k + place)[:, None] * BLOCK + place[None, :])
        acc = tl.dot(a, b, acc)
    acc = tl.inline_asm_elementwise(
        """{ .reg .pred p; setp.ne.b32 p, $1, 0; mov.b32 $0, $1;
        @p bra $$skip;
        mov.b32 $0, 1;
        $$skip: }""", "=r,r", [acc], tl.float32, is_pure=True, pack=1,
    )  # fmt: skip
    tl.store(c_ptr + place[:, None] * BLOCK + place[None, :], acc)


@pytest.mark.usefixtures("no_assembler")
def test_labels_of_a_kernels_own_assembly_stand_anywhere() -> None:
    kernel = product_with_assembly.warmup(
        tl.float16, tl.float16, tl.float32, 256, 64, num_warps=4, target=GPUTarget("cuda", 90)
    )
    ptx = kernel.asm["ptx"]
    assert "wgmma" in ptx
    assert " $skip: }" in ptx


@pytest.mark.parametrize(("spills", "is_kept"), [(0, False), (16, True), (32, True)])
def test_what_spills_more_with_them_goes_without(
    spills: int, is_kept: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first code spills 16 bytes, that without them `spills`."""
    texts: list[str] = []

    class Fake(NoAssembler):
        def feed(self, ptx: str) -> None:
            texts.append(ptx)

        def finish(self) -> Cubin:
            return Cubin(b"", 255, spills if len(texts) > 1 else 16, 0, "")

    monkeypatch.setattr(compiler, "Assembler", Fake)
    with proton.knobs.scope(always_compile=True):
        kernel = of_tiles(True, maxnreg=255)
    assert "mad.wide.s32" in addresses(texts[0])
    assert "mad.wide.s32" not in addresses(texts[1])
    assert kernel.asm["ptx"] == texts[0 if is_kept else 1]
