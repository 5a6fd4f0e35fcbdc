"""Loops whose dots take rows that data names: pages, experts, lists. What is gathered is copied
ahead, and the indices are loaded ahead of the copies."""

from typing import Any

import numpy as np
import pytest

import proton
import proton.language as tl
from proton.tools.tensor_descriptor import TensorDescriptor
from tests.compile.ptx.emulation import Emulation
from tests.pairs import covering


@proton.jit
def gathered(
    a_ptr, b_ptr, index_ptr, next_ptr, out_ptr, depth,
    M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, HOW: tl.constexpr,
):  # fmt: skip
    """a @ b[rows], whose rows HOW says: those of an index each, of an index of an index, of a page
    for each block, or of pages in a list. "written" changes an index behind its use."""
    rows, columns, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    acc = tl.zeros((M, N), tl.float32)
    page = tl.load(index_ptr)
    for start in range(0, depth, K):
        inside = start + k < depth
        if HOW == "page":
            found = tl.load(index_ptr + start // K) * K + k
        elif HOW == "list":
            found = page * K + k
            page = tl.load(next_ptr + page)
        else:
            found = tl.load(index_ptr + start + k, mask=inside, other=0)
            if HOW == "chain":
                found = tl.load(next_ptr + found, mask=inside, other=0)
        a = tl.load(a_ptr + rows[:, None] * 256 + (start + k)[None, :], inside[None, :], other=0)
        b = tl.load(b_ptr + found[:, None] * N + columns[None, :], inside[:, None], other=0)
        acc = tl.dot(a, b, acc)
        if HOW == "written":
            tl.store(index_ptr + start + k, found + 1, mask=inside)
    tl.store(out_ptr + rows[:, None] * N + columns[None, :], acc)


@proton.jit
def paged(
    a_desc, b_desc, index_ptr, out_desc, depth,
    M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, ASKS: tl.constexpr,
):  # fmt: skip
    """The same by TMA, of pages."""
    acc = tl.zeros((M, N), tl.float32)
    for start in tl.range(0, depth, K, warp_specialize=ASKS):
        page = tl.load(index_ptr + start // K)
        acc = tl.dot(a_desc.load([0, start]), b_desc.load([page * K, 0]), acc)
    out_desc.store([0, 0], acc)


def of_launch(how: str, depth: int, block: int, rng: np.random.Generator) -> Any:
    """(index, next, the rows that are meant), where a list's last page has no next one."""
    blocks = -(-depth // block)
    if how == "list":
        order = rng.permutation(blocks).astype(np.int32)
        following = np.full(max(1, blocks), 1 << 20, np.int32)
        following[order[:-1]] = order[1:]
        index = order[:1] if blocks else np.zeros(1, np.int32)
        return index, following, (order[:, None] * block + np.arange(block)).ravel()[:depth]
    if how == "page":
        index = rng.integers(0, max(1, blocks), max(1, blocks)).astype(np.int32)
        pages = index[:blocks, None] * block + np.arange(block)
        return index, np.zeros(1, np.int32), pages.ravel()[:depth]
    index = rng.integers(0, max(1, depth), max(1, depth)).astype(np.int32)
    following = rng.integers(0, max(1, depth), max(1, depth)).astype(np.int32)
    return index, following, following[index[:depth]] if how == "chain" else index[:depth].copy()


WAYS = {
    "how": ["each", "page", "chain", "list", "written"],
    "m": [32, 64],  # by `mma`, and by `wgmma`
    "stages": [2, 3, 4],
}


@pytest.mark.usefixtures("no_assembler")
@pytest.mark.parametrize(
    "how, m, stages", covering(WAYS, "how m", "how stages", "m stages"), ids=str
)
def test_rows_that_data_names(how: str, m: int, stages: int, rng: np.random.Generator) -> None:
    n, block, warps = 32, 32, 4
    emulation = Emulation(warps, rng)
    for depth in (0, 5, 70, 32 * int(rng.integers(1, 8))):
        index, following, rows = of_launch(how, depth, block, rng)
        a = rng.integers(-3, 4, (m, 256)).astype(np.float16)
        b = rng.integers(-3, 4, (-(-max(depth, 1) // block) * block, n)).astype(np.float16)
        out = np.full((m, n), np.nan, np.float32)
        meant = index.copy()
        with emulation.installed():
            kernel = gathered[(1,)](
                a, b, index, following, out, depth, M=m, N=n, K=block, HOW=how,
                num_warps=warps, num_stages=stages,
            )  # fmt: skip
        want = a[:, :depth].astype(np.float32) @ b[rows].astype(np.float32)
        np.testing.assert_array_equal(out, want)
        if how == "written":
            np.testing.assert_array_equal(index[:depth], meant[:depth] + 1)
        if depth and depth % block == 0:  # else a's rows end within a copy
            buffers = kernel.asm["schedule"].count("buffers")
            assert buffers == (1 if how == "written" else 2)


@pytest.mark.usefixtures("no_assembler")
@pytest.mark.parametrize("asks", [False, True])
def test_pages_by_tma(asks: bool, rng: np.random.Generator) -> None:
    """Where the loop asks for it, its producer loads their numbers."""
    m, n, block = 64, 64, 32
    emulation = Emulation(4, rng)
    new = TensorDescriptor.from_tensor
    for stages in (2, 3):
        for depth in (0, 32, 64, 32 * int(rng.integers(4, 8))):
            index, _, rows = of_launch("page", depth, block, rng)
            a = rng.integers(-3, 4, (m, 256)).astype(np.float16)
            b = rng.integers(-3, 4, (max(depth, block), n)).astype(np.float16)
            out = np.full((m, n), np.nan, np.float32)
            given = new(a, [m, block]), new(b, [block, n]), index, new(out, [m, n])
            with emulation.installed():
                kernel = paged[(1,)](
                    *given, depth, M=m, N=n, K=block, ASKS=asks, num_warps=4, num_stages=stages
                )
            want = a[:, :depth].astype(np.float32) @ b[rows].astype(np.float32)
            np.testing.assert_array_equal(out, want)
            assert ("producer and consumer" in kernel.asm["schedule"]) == asks
            assert kernel.asm["schedule"].count("buffers") == 2
