"""How many warps a program has where a launch does not say, without a GPU."""

# mypy: allow-untyped-defs, as the arguments of a kernel have no Python type
from typing import Any

import pytest
from fake_cuda import FakeDriver

import proton
import proton.language as tl
from benchmarks.engine_kernels import ranks_of
from proton.base.knobs import knobs
from proton.base.targets import GPUTarget

HOPPER = GPUTarget("cuda", 90)


@proton.jit
def softmax(x, y, BLOCK: tl.constexpr):
    """Of rows: what is combined lies in the loop that loads it."""
    for row in range(8):
        at = row * BLOCK + tl.arange(0, BLOCK)
        powers = tl.exp(tl.load(x + at))
        tl.store(y + at, powers / tl.sum(powers))


@proton.jit
def sums(x, y, BLOCK: tl.constexpr):
    """The loop adds up blocks; only their sum is combined."""
    total = tl.zeros((BLOCK,), tl.float32)
    for block in range(8):
        total += tl.load(x + block * BLOCK + tl.arange(0, BLOCK))
    tl.store(y, tl.sum(total))


@proton.jit
def scan(x, y, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(y + at, tl.cumsum(tl.load(x + at)))


@proton.jit
def doubled(x, y, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, 2 * tl.load(x + at))


@proton.jit
def search(x, y, n):
    """Of scalars alone."""
    low, high = 0, n
    while low < high:
        middle = (low + high) // 2
        if tl.load(x + middle) < 1:
            low = middle + 1
        else:
            high = middle
    tl.store(y, low)


@proton.jit
def barrier(x, y, n):
    """Of scalars, and it waits for other programs."""
    tl.atomic_add(x, 1)
    while tl.atomic_cas(x, n, n) != n:
        pass
    tl.store(y, 1)


@proton.jit
def looks(x, y, BLOCK: tl.constexpr):
    """Waits by loads."""
    while tl.load(x, volatile=True) == 0:
        pass
    tl.store(y + tl.arange(0, BLOCK), 1)


@proton.jit
def own(x, y, F: tl.constexpr):
    """What it is given asks."""
    tl.store(y, F())


@proton.jit
def asked():
    return tl.extra.cuda.num_threads()


@proton.jit
def weighed(x, y, M: tl.constexpr, N: tl.constexpr, AXIS: tl.constexpr = 1):
    """A block that is only summed up, and what comes of it."""
    block = tl.load(x + tl.arange(0, M)[:, None] * N + tl.arange(0, N))
    sums = tl.sum(block * tl.load(y + tl.arange(0, N)), AXIS)
    tl.store(y, tl.max(sums))


@proton.jit
def centred(x, y, M: tl.constexpr, N: tl.constexpr):
    """A block whose sums it needs first."""
    at = tl.arange(0, M)[:, None] * N + tl.arange(0, N)
    block = tl.load(x + at)
    tl.store(y + at, block - tl.sum(block, 1)[:, None])


@proton.jit
def largest(x, y, M: tl.constexpr, N: tl.constexpr):
    """A loop carries a block around what is only summed up."""
    at, most = tl.arange(0, M)[:, None] * N + tl.arange(0, N), tl.zeros((M, N), tl.float32)
    for block in range(8):
        value = tl.load(x + block * M * N + at)
        most = tl.maximum(most, value)
        tl.store(y + block, tl.sum(value))
    tl.store(y + at, most)


@proton.jit
def sorted_beside(x, y, BLOCK: tl.constexpr):
    """A small dot, and much that threads exchange."""
    at, rows = tl.arange(0, BLOCK), tl.arange(0, 16)
    tl.store(y + at, tl.sort(tl.load(x + at)))
    square = tl.load(x + rows[:, None] * 16 + rows[None, :])
    tl.store(y + BLOCK + rows[:, None] * 16 + rows[None, :], tl.dot(square, square))


@proton.jit
def product(a, b, c, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    rows, columns, depth = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :], tl.arange(0, K)
    acc = tl.zeros((M, N), tl.float32)
    for k in range(0, 512, K):
        left = tl.load(a + rows * 512 + k + depth[None, :])
        acc = tl.dot(left, tl.load(b + (k + depth)[:, None] * 512 + columns), acc)
    tl.store(c + rows * N + columns, acc)


@proton.jit
def scores(x, y, M: tl.constexpr, N: tl.constexpr, D: tl.constexpr):
    """Two dots an iteration, as in attention, and two that add to one accumulator."""
    rows, columns = tl.arange(0, M)[:, None], tl.arange(0, N)
    depth = tl.arange(0, D)[None, :]
    query, acc = tl.load(x + rows * D + depth), tl.zeros((M, D), tl.float32)
    for block in range(8):
        key = tl.load(x + (block * N + columns)[:, None] * D + depth)
        weights = tl.exp(tl.dot(query, key.T)).to(tl.float16)
        acc = tl.dot(weights, key, tl.dot(weights, key, acc))
    tl.store(y + rows * D + depth, acc)


@proton.jit
def counted(x, y, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at) + tl.extra.cuda.num_warps())


@proton.jit
def transposed(x_ptr, M: tl.constexpr, N: tl.constexpr):
    i, j = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :]
    with proton.scope("load"):
        x = tl.load(x_ptr + i * N + j)
    tl.store(x_ptr + j * M + i, tl.exp(x))


def warps(kernel: Any, *sizes: int, **options: Any) -> int:
    halves = product, scores, sorted_beside
    dtype = tl.float16 if kernel in halves else tl.float32
    dtype = tl.int32 if kernel in (search, barrier, looks) else dtype
    given = [dtype] * (3 if kernel is product else 2)
    made = kernel.warmup(*given, *sizes, target=HOPPER, **options)
    return int(made.metadata["num_warps"])


@pytest.mark.parametrize(("kernel", "sizes", "expected"), [
    (softmax, (256,), 2), (softmax, (1024,), 4), (softmax, (4096,), 4), (softmax, (8192,), 8),
    (softmax, (32768,), 16), (softmax, (65536,), 16), (scan, (128,), 2), (scan, (2048,), 4),
    (sums, (256,), 4), (sums, (16384,), 4), (sums, (32768,), 8), (doubled, (64,), 4),
    (doubled, (32768,), 8), (doubled, (131072,), 32), (search, (99,), 1), (barrier, (99,), 4),
    (counted, (32768,), 4), (looks, (32768,), 4), (own, (asked,), 4),
    (weighed, (8, 4096), 4), (weighed, (2, 64), 2), (centred, (8, 4096), 16),
    (centred, (8, 256), 4), (largest, (8, 4096), 16),
    (weighed, (64, 512), 16), (weighed, (8, 1024), 8), (weighed, (16, 1024), 4),
    (weighed, (1, 32768), 16), (weighed, (256, 128, 0), 4), (weighed, (8, 4096, 0), 16),
    (own, (tl.extra.cuda.num_warps,), 4), (sorted_beside, (16,), 2), (sorted_beside, (1024,), 4),
    (product, (128, 128, 64), 4), (product, (128, 256, 32), 8),
    (product, (256, 128, 32), 8), (product, (16, 64, 32), 4), (product, (16, 16, 32), 2),
    (product, (4, 32, 32), 4), (product, (16, 16, 512), 4), (product, (16, 8, 256), 2),
    (ranks_of, (32,), 4), (ranks_of, (128,), 4), (ranks_of, (16,), 2), (ranks_of, (256,), 16),
    (scores, (64, 64, 64), 4), (scores, (128, 128, 128), 8), (scores, (64, 128, 128), 4),
])  # fmt: skip
def test_warps_are_chosen_by_what_a_program_does(
    kernel: Any, sizes: tuple[int, ...], expected: int
) -> None:
    assert warps(kernel, *sizes) == expected


@pytest.mark.parametrize("number", [1, 4, 16])
def test_a_number_that_is_given_is_taken(number: int) -> None:
    assert warps(softmax, 8192, num_warps=number) == number
    assert warps(softmax, 8192, num_warps=None) == 8


def test_where_programs_or_registers_are_counted_there_are_four() -> None:
    assert warps(softmax, 8192, maxnreg=64) == 4
    assert warps(softmax, 8192, launch_cooperative_grid=True) == 4


@pytest.mark.parametrize("dtype", [tl.float16, tl.float32])
def test_less_than_four_multiply_on_tensor_cores(dtype: Any) -> None:
    made = product.warmup(dtype, dtype, tl.float32, 16, 16, 32, target=HOPPER)
    assert (
        made.metadata.num_warps == made.metadata["num_warps"] == (2 if dtype == tl.float16 else 4)
    )


def test_a_kernel_with_records_has_those_of_the_plain_one() -> None:
    """... where the records leave too little shared memory for what it exchanges, too."""
    asked = {"buffer": "shared", "capacity": 1024}
    plain = transposed.warmup(tl.float32, 128, 256, target=HOPPER)
    assert plain.metadata["num_warps"] == 8
    with pytest.raises(proton.OutOfResources):
        transposed.warmup(tl.float32, 128, 256, target=HOPPER, profile=asked)


def test_records_do_not_change_it() -> None:
    @proton.jit
    def recorded(x, y, BLOCK: tl.constexpr):
        at = tl.arange(0, BLOCK)
        with proton.scope("load", bytes=4 * BLOCK):
            value = tl.load(x + at)
        with proton.scope("sum"):
            tl.store(y, tl.sum(value))

    for size in (256, 8192):
        plain = warps(recorded, size)
        assert warps(recorded, size, profile={"auto": "loads"}) == plain
        assert warps(recorded, size, profile={"sample_programs": 4}) == plain


def test_a_text_has_those_that_it_says_or_four(tmp_path: Any) -> None:
    made = softmax.warmup(tl.float32, tl.float32, 8192, target=HOPPER)
    for level, expected in (("ttir", 4), ("ttgir", 8)):
        path = tmp_path / f"kernel.{level}"
        path.write_text(str(made.asm[level]))
        assert int(proton.compile(path, target=HOPPER).metadata["num_warps"]) == expected


def test_a_kernel_with_chosen_warps_is_preloaded(monkeypatch: pytest.MonkeyPatch) -> None:
    driver, told = FakeDriver(), list[Any]()
    driver.install(monkeypatch)
    monkeypatch.setattr(knobs.runtime, "jit_cache_hook", lambda **facts: told.append(facts))
    x, y = driver.array("float32"), driver.array("float32", 0x20000)
    after = list[Any]()
    monkeypatch.setattr(knobs.runtime, "jit_post_compile_hook", lambda **facts: after.append(facts))
    found = softmax.warmup(x, y, 8192)
    facts = told.pop()["compile"]
    assert facts["num_warps"] is None
    assert after.pop()["compile"]["num_warps"] == 8
    assert softmax.preload(facts["specialization_data"]).key == found.key
    told.clear()
    found[(1,)](x, y, 8192)
    assert {facts["key"] for facts in told} <= {found.key}, "the same one is launched"
    assert driver.launches[-1][0].block == (256, 1, 1)
