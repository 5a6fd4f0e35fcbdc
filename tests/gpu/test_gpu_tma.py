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


def used(kernel: Any, maps: int) -> None:
    assert len(kernel.metadata["tensor_maps"]) == maps
    assert ("UTMALDG" in kernel.asm["sass"]) == bool(maps)


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
        x, y = random_bits(rng, dtype, (m, n)), random_bits(rng, dtype, (m, n))
        # 8-bit floats are bytes to TMA, which has no NaN for them: these are pointers.
        is_nan = dtype in ("float16", "bfloat16", "float32", "float64") and trial % 2
        padding = "nan" if is_nan else "zero"
        before = bits_of(y, dtype)
        width = block[0], block[1] * steps
        inside = block_of(np.ones(width, bool), (-down, -right), (m, n), False)
        want = np.where(inside, bits_of(x, dtype), before)
        descriptors = [TensorDescriptor.from_tensor(t, list(block), padding) for t in (x, y)]
        kernel = through[(1,)](*descriptors, steps, down, right, STAGES=stages, num_warps=4)
        np.testing.assert_array_equal(bits_of(y, dtype), want)
        used(kernel, 2)


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
            x = random_bits(rng, dtype, (m, n))
            out = torch.zeros((3 * block[0], block[1]), dtype=x.dtype, device="cuda")
            descriptor = TensorDescriptor.from_tensor(x, list(block), padding)
            used(loaded[(1,)](descriptor, out, i, j, STAGES=stages), 1)
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
        used(kernel, 2 if math.prod(part) * 4 >= 128 else 0)
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
        used(kernel, 2)
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
