"""Loops whose buffers are fewer than stages: shared memory has room for one alone. A copy begins
behind all reads of its iteration. On the machine for PTX, which finds races."""

import dataclasses
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import proton
import proton.language as tl
from proton.base.targets import CHIPS
from proton.schedule.planning import Planner
from tests.compile.ptx.emulation import Emulation
from tests.compile.test_gpu_records import compiled
from tests.draws import kernels, times

M, N, K = 16, 32, 64


@proton.jit
def block(ptr, rows, M: tl.constexpr, K: tl.constexpr):
    """The rows, those beyond the end of which are zeros."""
    at = tl.arange(0, M)
    return tl.load(
        ptr + at[:, None] * K + tl.arange(0, K)[None, :], mask=(at < rows)[:, None], other=0.0
    )


@proton.jit
def read_twice(
    a_ptr, b_ptr, out_ptr, rows, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr,
):  # fmt: skip
    """A block of rows is an operand of two dots, once transposed."""
    a = block(a_ptr, M, M, K)
    acc = tl.zeros((M, K), tl.float32)
    for first in range(0, rows, N):
        b = block(b_ptr + first * K, rows - first, N, K)
        scores = tl.dot(a, b.T)
        acc = tl.dot(tl.minimum(scores, 8).to(tl.float16), b, acc)
    tl.store(out_ptr + tl.arange(0, M)[:, None] * K + tl.arange(0, K)[None, :], acc)


@proton.jit
def skinny(
    a_ptr, b_ptr, out_ptr, rows, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr,
):  # fmt: skip
    """Of each block of rows the product with one of two blocks of others, summed up."""
    acc = tl.zeros((N, M), tl.float32)
    for first in range(0, rows, N):
        b = block(b_ptr + first * K, rows - first, N, K)
        a = block(a_ptr + first // N % 2 * M * K, M, M, K)
        acc = tl.dot(b, a.T, acc)
    tl.store(out_ptr + tl.arange(0, N)[:, None] * M + tl.arange(0, M)[None, :], acc)


@proton.jit
def with_another(
    a_ptr, b_ptr, out_ptr, rows, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr,
):  # fmt: skip
    """What is masked off is one, and numbers are changed ahead of the dot."""
    a, at = block(a_ptr, M, M, K), tl.arange(0, N)
    acc = tl.zeros((N, M), tl.float32)
    for first in range(0, rows, N):
        b_ptrs = b_ptr + (first + at)[:, None] * K + tl.arange(0, K)[None, :]
        b = tl.load(b_ptrs, mask=(first + at < rows)[:, None], other=1.0)
        acc = tl.dot(b - 1, a.T, acc)
    tl.store(out_ptr + tl.arange(0, N)[:, None] * M + tl.arange(0, M)[None, :], acc)


@proton.jit
def one_ahead(
    a_ptr, b_ptr, out_ptr, rows, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr,
):  # fmt: skip
    """A block is read in the iteration behind that of its load: refused."""
    a = block(a_ptr, M, M, K)
    acc, last = tl.zeros((N, M), tl.float32), tl.zeros((N, K), tl.float16)
    for first in range(0, rows, N):
        acc = tl.dot(last, a.T, acc)
        last = block(b_ptr + first * K, rows - first, N, K)
    tl.store(out_ptr + tl.arange(0, N)[:, None] * M + tl.arange(0, M)[None, :], acc)


def _blocks(b: np.ndarray, n: int) -> np.ndarray:
    """Blocks of n rows, the last one filled up with zeros."""
    count = -(-len(b) // n)
    filled = np.zeros((count * n, b.shape[1]), np.float32)
    filled[: len(b)] = b
    return filled.reshape(count, n, -1)


def _products(b: np.ndarray, a: np.ndarray) -> np.ndarray:
    blocks = _blocks(b, N)
    return sum(block @ a[n % 2].T for n, block in enumerate(blocks))


# What is expected of two blocks of rows, and others; all but one kernel take the first block alone.
CASES: dict[Any, Any] = {
    read_twice: lambda a, b: np.minimum(a[0] @ b.T, 8) @ b,
    skinny: lambda a, b: _products(b, a),
    with_another: lambda a, b: _products(b - 1, a[[0, 0]]),
    one_ahead: lambda a, b: (_blocks(b, N)[:-1] @ a[0].T).sum(0),
}


@pytest.fixture
def room(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Sets the bytes of shared memory that a program may have."""

    def set_room(shared: int) -> None:
        chip = dataclasses.replace(CHIPS["cuda", 90], shared_bytes=shared)
        monkeypatch.setitem(CHIPS, ("cuda", 90), chip)

    return set_room


def buffers(kernel: Any, m: int, n: int, k: int, warps: int) -> list[int]:
    """How many each load has that is copied; none without a copy."""
    rows, out = np.zeros((m, k), np.float16), np.zeros((n, k), np.float32)
    options = {"num_warps": warps, "num_stages": 3}
    with proton.knobs.scope(always_compile=True):
        found = compiled(kernel, rows, rows, out, 1000, M=m, N=n, K=k, **options)
    text = found.asm["ttgir"]
    if "async_copy" not in text:
        return []
    sizes = re.findall(r"!ttg.mutable_memdesc<\[(\d+), \d+, \d+\]", text)
    return [int(number) for number in dict.fromkeys(sizes)]


@pytest.mark.usefixtures("no_ptx")
@pytest.mark.parametrize(
    ("kernel", "shared", "count"),
    [
        (read_twice, 8192, 1), (read_twice, 1 << 16, 3), (skinny, 10240, 1),
        (with_another, 8192, 1), (with_another, 12288, 2), (one_ahead, 8192, 0),
    ],
)  # fmt: skip
def test_one_buffer_where_there_is_room_for_no_more(
    kernel: Any, shared: int, count: int, room: Any
) -> None:
    room(shared)
    assert buffers(kernel, M, N, K, 4) == [count] * bool(count)


@pytest.mark.usefixtures("no_ptx")
def test_dots_of_warp_groups_have_two_buffers_or_none(room: Any) -> None:
    """They read a block until the next iteration."""
    for shared, count in ((1 << 16, 3), (20480, 0)):
        room(shared)
        assert buffers(skinny, 64, 64, 64, 4) == [count] * bool(count)


@proton.jit
def of_bytes(a_ptr, b_ptr, out_ptr, rows, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    """int8, of which threads transpose an operand by way of shared memory."""
    acc = tl.zeros((M, N), tl.int32)
    for first in range(0, rows, N):
        a = block(a_ptr + first // N * M * K, M, M, K)
        b = block(b_ptr + first * K, N, N, K)
        acc += tl.dot(a, b.T)
    tl.store(out_ptr + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :], acc)


@pytest.mark.usefixtures("no_ptx")
@pytest.mark.parametrize("kernel", [of_bytes, read_twice], ids=lambda kernel: str(kernel.__name__))
def test_what_fits_without_a_buffer_fits(
    kernel: Any, room: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rest of the kernel may need the room that a single buffer takes."""

    def fits(shared: int) -> bool:
        room(shared)
        rows, out = np.zeros((M, 32), np.int8), np.zeros((M, 16), np.int32)
        given = (rows, rows, out) if kernel is of_bytes else (rows.astype(np.float16),) * 2 + (out,)
        options = {"num_warps": 2, "num_stages": 2}
        try:
            with proton.knobs.scope(always_compile=True):
                compiled(kernel, *given, 1000, M=M, N=16, K=32, **options)
        except proton.OutOfResources:
            return False
        return True

    sizes = range(512, 4096, 512)
    found = [fits(size) for size in sizes]
    own = Planner._copies

    def without(*given: Any) -> Any:
        copies = own(*given)
        return None if copies is not None and copies.is_tight else copies

    monkeypatch.setattr(Planner, "_copies", without)
    assert found == [fits(size) for size in sizes]
    assert any(found)


@pytest.mark.usefixtures("no_assembler")
@kernels(times(12))
@given(
    kernel=st.sampled_from(list(CASES)), rows=st.integers(1, 4 * N), stages=st.integers(2, 4),
    warps=st.sampled_from([1, 2, 4, 8]), shared=st.sampled_from([8192, 10240, 1 << 16]),
    seed=st.integers(0, 2**32 - 1),
)  # fmt: skip
def test_results(kernel: Any, rows: int, stages: int, warps: int, shared: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, b = (rng.integers(-2, 3, (n, K)).astype(np.float16) for n in (2 * M, rows))
    wanted = CASES[kernel](a.reshape(2, M, K).astype(np.float32), b.astype(np.float32))
    out = np.full(wanted.shape, 7, np.float32)
    chip = CHIPS["cuda", 90]
    with pytest.MonkeyPatch.context() as patched, Emulation(warps, rng).installed():
        patched.setitem(CHIPS, ("cuda", 90), dataclasses.replace(chip, shared_bytes=shared))
        with proton.knobs.scope(always_compile=True):
            kernel[(1,)](a, b, out, rows, M, N, K, num_warps=warps, num_stages=stages)
    np.testing.assert_array_equal(out, wanted)


@proton.jit
def last_one(x_ptr, out_ptr, n, K: tl.constexpr, LOADS_AHEAD: tl.constexpr):
    """Nothing in an iteration takes what it loads: the next one does, or who comes behind."""
    at = tl.arange(0, K)
    last, sums, place = tl.zeros((K,), tl.int32), tl.zeros((K,), tl.int32), at
    for _ in tl.range(n, num_stages=3):
        if LOADS_AHEAD:
            sums += last
        last = tl.load(x_ptr + place)
        place += K
    tl.store(out_ptr + at, sums + last)


@pytest.mark.usefixtures("no_assembler")
@pytest.mark.parametrize("n", [0, 1, 2, 7])
@pytest.mark.parametrize("ahead", [False, True])
def test_what_the_next_iteration_takes_is_copied(
    n: int, ahead: bool, rng: np.random.Generator
) -> None:
    x, out = rng.integers(-9, 9, (max(n, 1), 512), np.int32), np.full(512, 77, np.int32)
    with Emulation(4, rng).installed():
        made = last_one[(1,)](x, out, n, 512, ahead)
    assert n == 1 or "cp.async" in made.asm["ptx"]  # 1 is a constant: there is no loop
    np.testing.assert_array_equal(out, (x[:n] if ahead else x[:n][-1:]).sum(0))
