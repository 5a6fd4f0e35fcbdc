"""What TMA copies, against slices of torch: random shapes, types, offsets, blocks and pipelines."""

import math
from typing import Any

import numpy as np
import pytest

import proton
import proton.language as tl
from proton.tools.tensor_descriptor import TensorDescriptor
from tests.cpu.test_block_pointers import block_of

DTYPES = {  # and one of as many bytes that numpy has, which compares bits
    "float16": "uint16",
    "bfloat16": "uint16",
    "float32": "uint32",
    "float64": "uint64",
    "int8": "uint8",
    "int16": "uint16",
    "int32": "uint32",
    "int64": "uint64",
    "uint8": "uint8",
    "float8_e5m2": "uint8",
}
BLOCKS = [
    (8, 16),
    (64, 64),
    (16, 256),
    (256, 32),
    (512, 16),
    (4, 64),
    (2, 512),
    (1, 128),
    (128, 16),
]


@proton.jit
def through(x, y, steps, down, right, STAGES: tl.constexpr):
    """Copies blocks side by side from x to y, which lie elsewhere."""
    COLUMNS: tl.constexpr = x.block_shape[1]
    for step in tl.range(0, steps, num_stages=STAGES):
        block = x.load([down, right + step * COLUMNS])
        y.store([down, right + step * COLUMNS], block)


@proton.jit
def over_tiles(x, y, out, ks, FLATTEN: tl.constexpr, STAGES: tl.constexpr):
    """For each tile the sum of blocks that follow each other, of as many as `ks` says by the tile's
    row; one program after another has them."""
    M: tl.constexpr = x.block_shape[0]
    N: tl.constexpr = x.block_shape[1]
    across = tl.cdiv(x.shape[1], N)
    tiles = tl.cdiv(x.shape[0], M) * across
    for tile in tl.range(tl.program_id(0), tiles, tl.num_programs(0), flatten=FLATTEN):
        row, column = tile // across * M, tile % across * N
        total = tl.zeros((M, N), tl.float32)
        for k in tl.range(0, (tile * 5) % ks, num_stages=STAGES):
            total += x.load([row + k, column]) * y.load([row, column + 4 * k])
        out.store([row, column], total)


@pytest.mark.parametrize("flatten", [False, True])
@pytest.mark.parametrize("stages", [2, 3, 4])
def test_loops_over_tiles(rng: np.random.Generator, flatten: bool, stages: int) -> None:
    """Some tiles have nothing to load, and some programs no tile."""
    torch = pytest.importorskip("torch")
    for ks, programs in ((2, 3), (7, 1), (4, 5), (3, 200)):
        m, n = int(rng.integers(1, 150)), 4 * int(rng.integers(1, 60))
        x, y = (torch.randn(m, n, device="cuda") for _ in range(2))
        out = torch.full((m, n), math.nan, device="cuda")
        kernel = over_tiles[(programs,)](
            *(TensorDescriptor.from_tensor(t, [16, 32]) for t in (x, y, out)),
            ks,
            FLATTEN=flatten,
            STAGES=stages,
        )
        used(kernel, loads=True, stores=True)
        want, across = np.zeros((m, n)), -(-n // 32)
        a, b = x.cpu().double().numpy(), y.cpu().double().numpy()
        for tile in range(-(-m // 16) * across):
            row, column = tile // across * 16, tile % across * 32
            part = np.zeros((16, 32))
            for k in range(tile * 5 % ks):
                one, other = (row + k, column), (row, column + 4 * k)
                part += block_of(a, one, (16, 32), 0) * block_of(b, other, (16, 32), 0)
            place = want[row : row + 16, column : column + 32]
            place[:] = part[: place.shape[0], : place.shape[1]]
        np.testing.assert_allclose(out.cpu().numpy(), want, rtol=1e-5, atol=1e-5)


def random_bits(rng: np.random.Generator, dtype: str, shape: tuple[int, ...]) -> Any:
    """A tensor of a GPU with rows that lie multiples of 16 bytes apart."""
    torch = pytest.importorskip("torch")
    size = np.dtype(DTYPES[dtype]).itemsize
    lane = 16 // size
    padded = *shape[:-1], -(-shape[-1] // lane) * lane + lane
    bits = rng.integers(0, 256, (*padded[:-1], padded[-1] * size), np.uint8)
    made = torch.from_numpy(bits).cuda().view(getattr(torch, dtype)).reshape(padded)
    return made[..., : shape[-1]]


def bits_of(tensor: Any, dtype: str) -> np.ndarray:
    torch = pytest.importorskip("torch")
    flat = tensor.contiguous().view(torch.uint8).cpu().numpy()
    return flat.view(DTYPES[dtype])


def used(kernel: Any, loads: bool, stores: bool) -> None:
    """Whether TMA does."""
    sass = kernel.asm["sass"]
    assert ("UTMALDG" in sass) == loads
    assert ("UTMASTG" in sass) == stores


@pytest.mark.parametrize("stages", [1, 2, 4])
@pytest.mark.parametrize("dtype", DTYPES)
def test_blocks(rng: np.random.Generator, dtype: str, stages: int) -> None:
    for trial in range(8):
        block = BLOCKS[int(rng.integers(len(BLOCKS)))]
        if block[1] * np.dtype(DTYPES[dtype]).itemsize < 16:
            continue
        m, n = (int(s) for s in rng.integers(1, [700, 1300]))
        steps, down = int(rng.integers(0, 6)), int(rng.integers(-block[0], m + 5))
        right = int(rng.integers(-block[1], n + 5))
        if trial < 5:
            right -= right % 16
        x, y = random_bits(rng, dtype, (m, n)), random_bits(rng, dtype, (m, n))
        # 8-bit floats are bytes to TMA, which has no NaN for them: these are pointers.
        is_nan = dtype in ("float16", "bfloat16", "float32", "float64") and trial % 2
        padding = "nan" if is_nan else "zero"
        before = bits_of(y, dtype)
        rows = y.as_strided((m, y.stride(0)), y.stride())  # the tensor ends before its rows do
        beyond = bits_of(rows, dtype)[:, n:].copy()
        width = block[0], block[1] * steps
        inside = block_of(np.ones(width, bool), (-down, -right), (m, n), False)
        want = np.where(inside, bits_of(x, dtype), before)
        descriptors = [TensorDescriptor.from_tensor(t, list(block), padding) for t in (x, y)]
        kernel = through[(1,)](*descriptors, steps, down, right, STAGES=stages, num_warps=4)
        np.testing.assert_array_equal(bits_of(y, dtype), want)
        np.testing.assert_array_equal(bits_of(rows, dtype)[:, n:], beyond)
        # A load that may begin anywhere is by pointers; a store where that is known: 1 is.
        used(kernel, loads=not right % 16, stores=right != 1)


@proton.jit
def loaded(x, out, i, j, STAGES: tl.constexpr):
    M: tl.constexpr = x.block_shape[0]
    N: tl.constexpr = x.block_shape[1]
    rows, columns = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :]
    for step in tl.range(0, 3, num_stages=STAGES):
        tl.store(out + (step * M + rows) * N + columns, x.load([i + step * M, j]))


@pytest.mark.parametrize("stages", [1, 3])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "int32", "int8"])
def test_padding(rng: np.random.Generator, dtype: str, stages: int) -> None:
    torch = pytest.importorskip("torch")
    for padding in ("zero", "nan"):
        if padding == "nan" and "int" in dtype:
            continue
        for block in ((16, 64), (8, 32), (64, 128)):
            m, n = (int(s) for s in rng.integers(1, 200, 2))
            i, j = int(rng.integers(-20, m)), int(rng.integers(-40, n))
            j -= j % 16 if rng.integers(4) else 0
            x = random_bits(rng, dtype, (m, n))
            out = torch.zeros((3 * block[0], block[1]), dtype=x.dtype, device="cuda")
            descriptor = TensorDescriptor.from_tensor(x, list(block), padding)
            kernel = loaded[(1,)](descriptor, out, i, j, STAGES=stages)
            used(kernel, loads=not j % 16, stores=False)
            fill: Any = math.nan if padding == "nan" else 0
            values = x.double().cpu().numpy() if "int" not in dtype else x.cpu().numpy()
            want = block_of(values, (i, j), (3 * block[0], block[1]), fill)
            got = out.double().cpu().numpy() if "int" not in dtype else out.cpu().numpy()
            np.testing.assert_array_equal(got, want)


@proton.jit
def of_rank(x, y, offsets: tl.constexpr):
    y.store([0] * len(offsets), x.load(offsets))


@pytest.mark.parametrize("rank", [1, 2, 3, 4, 5])
def test_ranks(rng: np.random.Generator, rank: int) -> None:
    torch = pytest.importorskip("torch")
    for block in ((2, 4, 2, 4, 8), (1, 1, 8, 32, 64), (1, 1, 1, 2, 1024)):
        shape = (3, 5, 9, 37, 1040)[-rank:]
        part = block[-rank:]
        x = torch.randn(shape, device="cuda")
        y = torch.zeros(part, device="cuda")
        offsets = tuple(int(o) for o in rng.integers(-2, 5, rank))
        kernel = of_rank[(1,)](
            *(TensorDescriptor.from_tensor(t, list(part)) for t in (x, y)), offsets=offsets
        )
        is_large = math.prod(part) * 4 >= 128
        used(kernel, loads=is_large and not offsets[-1] % 4, stores=is_large)
        np.testing.assert_array_equal(y.cpu().numpy(), block_of(x.cpu().numpy(), offsets, part, 0))


@proton.jit
def flattened(x_ptr, y_ptr, batches, rows, stride, M: tl.constexpr, N: tl.constexpr):
    """Descriptors of sizes that the kernel computes of its arguments."""
    x = tl.make_tensor_descriptor(x_ptr, [batches * rows, N], [stride, 1], [M, N])
    y = tl.make_tensor_descriptor(y_ptr, [batches * rows, N], [N, 1], [M, N])
    place = tl.program_id(0) * M
    y.store([place, 0], x.load([place, 0]) * 2)


def test_sizes_that_are_computed() -> None:
    torch = pytest.importorskip("torch")
    for batches, rows in ((3, 50), (1, 1), (7, 64), (0, 5)):
        x = torch.randn(batches * rows, 80, device="cuda")[:, :64]
        y = torch.full((batches * rows, 64), math.nan, device="cuda")
        kernel = flattened[(5,)](x, y, batches, rows, x.stride(0), M=32, N=64)
        used(kernel, loads=True, stores=True)
        wanted = x.clone() * 2
        wanted[160:] = math.nan
        torch.testing.assert_close(y, wanted, rtol=0, atol=0, equal_nan=True)


def test_what_the_kernel_orders_goes_by_pointers() -> None:
    """It reads what it wrote, or waits for others: TMA would not see it."""
    torch = pytest.importorskip("torch")

    @proton.jit
    def again(x, y, flag):
        x.store([0, 0], y.load([0, 0]) + 1)
        tl.debug_barrier()
        y.store([0, 0], x.load([0, 0]) + 1)

    x, y = torch.zeros(16, 64, device="cuda"), torch.ones(16, 64, device="cuda")
    flag = torch.zeros(1, dtype=torch.int32, device="cuda")
    kernel = again[(1,)](*(TensorDescriptor.from_tensor(t, [16, 64]) for t in (x, y)), flag)
    assert not kernel.metadata["tensor_maps"]
    assert float(y.min()) == float(y.max()) == 3


def test_a_map_follows_its_arguments() -> None:
    """Other addresses, sizes and strides of one variant; the map is made anew in each launch."""
    torch = pytest.importorskip("torch")
    for columns in (64, 96, 128, 64):
        for _ in range(3):
            x = torch.randn(48, columns, device="cuda")
            y = torch.zeros_like(x)
            through[(1,)](
                *(TensorDescriptor.from_tensor(t, [16, 32]) for t in (x, y)),
                *(columns // 32, 16, 0),
                STAGES=3,
            )
            torch.testing.assert_close(y[16:32], x[16:32])
            assert not y[:16].any()
            assert not y[32:].any()


@proton.jit
def combine(y, block, place, KIND: tl.constexpr):
    if KIND == "add":
        y.atomic_add(place, block)
    elif KIND == "min":
        y.atomic_min(place, block)
    elif KIND == "max":
        y.atomic_max(place, block)
    elif KIND == "and":
        y.atomic_and(place, block)
    elif KIND == "or":
        y.atomic_or(place, block)
    else:
        y.atomic_xor(place, block)


@proton.jit
def combined(x, y, down, right, KIND: tl.constexpr):
    """Program p combines the block p of x with the one of y, which is the same for all."""
    block = x.load([tl.program_id(0) * x.block_shape[0], 0])
    combine(y, block, [down, right], KIND)


REDUCTIONS = {
    "add": np.add,
    "min": np.minimum,
    "max": np.maximum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}
INTEGERS = ("int32", "uint32", "int64", "uint64")
REDUCED = [
    *((dtype, kind) for dtype in INTEGERS for kind in REDUCTIONS),
    *((dtype, kind) for dtype in ("float16", "bfloat16") for kind in ("add", "min", "max")),
    ("float32", "add"),
    ("float64", "add"),
]


def small_numbers(rng: np.random.Generator, dtype: str, rows: int, columns: int) -> Any:
    """Random bits as a signed integer; of floats integers whose sums are exact. Rows are multiples
    of 16 elements, and lie 16 further apart."""
    torch = pytest.importorskip("torch")
    shape = rows, columns + 16
    if dtype in INTEGERS:
        numbers = rng.integers(-(1 << 63), 1 << 63, shape, np.int64).astype(dtype.removeprefix("u"))
        return torch.from_numpy(numbers).cuda()[:, :columns]
    numbers = torch.from_numpy(rng.integers(-4, 5, shape))
    return numbers.to(getattr(torch, dtype)).cuda()[:, :columns]


def numbers_of(tensor: Any, dtype: str) -> np.ndarray:
    if dtype in INTEGERS:
        return np.ascontiguousarray(tensor.cpu().numpy()).view(dtype)
    return tensor.double().cpu().numpy()


@pytest.mark.parametrize("dtype, kind", REDUCED)
def test_reductions(rng: np.random.Generator, dtype: str, kind: str) -> None:
    """Blocks that begin before the tensor, or end behind it, or not at a multiple of 16 bytes; what
    lies beside the tensor stays."""
    torch = pytest.importorskip("torch")
    for trial, (height, width) in enumerate(((16, 32), (64, 64), (8, 128), (256, 16))):
        m, n, programs = (int(s) for s in rng.integers(1, [300, 300, 9]))
        down, right = int(rng.integers(-height, m + 5)), int(rng.integers(-width, n + 5))
        right -= right % 16 if trial % 2 else 0
        if trial == 1:  # a whole block that TMA may begin, but for the edge of the tensor
            down, right = 0, n // 16 * 16
        x = small_numbers(rng, dtype, programs * height, width)
        y = small_numbers(rng, dtype, m, -(-n // 16) * 16)
        want = numbers_of(y, dtype).copy()
        kernel = combined[(programs,)](
            *(
                TensorDescriptor.from_tensor(t.view(getattr(torch, dtype)), [height, width])
                for t in (x, y[:, :n])
            ),
            *(down, right),
            KIND=kind,
        )
        by_tma = (dtype, kind) != ("float64", "add")
        assert ("UTMAREDG" in kernel.asm["sass"]) == (by_tma and right != 1)
        top, left = max(0, down), max(0, right)
        place = want[top : max(0, down + height), left : max(0, min(n, right + width))]
        for part in numbers_of(x, dtype).reshape(programs, height, width):
            mine = part[top - down :, left - right :][: place.shape[0], : place.shape[1]]
            place[:] = REDUCTIONS[kind](place, mine)
        np.testing.assert_array_equal(numbers_of(y, dtype), want)


@proton.jit
def sums_of_rows(x, out, FLATTEN: tl.constexpr):
    """Blocks of rows of x, added up; each program has some, and adds each to the whole."""
    M: tl.constexpr = x.block_shape[0]
    N: tl.constexpr = x.block_shape[1]
    tiles = tl.cdiv(x.shape[0], M)
    for tile in tl.range(tl.program_id(0), tiles, tl.num_programs(0), flatten=FLATTEN):
        total = tl.zeros((M, N), tl.float32)
        for k in tl.range(0, x.shape[1], N, num_stages=3):
            total += x.load([tile * M, k])
        out.atomic_add([0, 0], total)


@proton.jit
def stored_and_added(x, y):
    place = [tl.program_id(0) * x.block_shape[0], 0]
    block = x.load(place)
    for _ in range(3):
        y.store(place, block)
        y.atomic_add(place, block)
    y.atomic_add(place, block)


@pytest.mark.parametrize("flatten", [False, True])
def test_reductions_follow_each_other(rng: np.random.Generator, flatten: bool) -> None:
    torch = pytest.importorskip("torch")
    x = torch.from_numpy(rng.integers(-8, 9, (32 * 37, 64 * 3))).float().cuda()
    out = torch.zeros(32, 64, device="cuda")
    given = [TensorDescriptor.from_tensor(t, [32, 64]) for t in (x, out)]
    kernel = sums_of_rows[(9,)](*given, FLATTEN=flatten)
    assert "UTMAREDG" in kernel.asm["sass"]
    assert torch.equal(out, x.reshape(37, 32, 3, 64).sum((0, 2)))
    y = torch.full_like(x[:, :64], -1.0).contiguous()
    given = [TensorDescriptor.from_tensor(t, [32, 64]) for t in (x, y)]
    stored_and_added[(37,)](*given)
    assert torch.equal(y, 3 * x[:, :64])
