"""Descriptors of which the kernel makes the tensor maps: tensors whose addresses and sizes lie in
memory, against slices of numpy."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import proton
import proton.language as tl
from proton.layout.tensor_map import box_of
from proton.runtime.nvidia import cuda
from proton.tools.tensor_descriptor import TensorDescriptor
from tests.cpu.test_block_pointers import block_of
from tests.gpu.test_gpu_launch import run
from tests.gpu.test_gpu_tma import DTYPES, bits_of, combine, random_bits, used

BLOCKS = [(8, 16), (64, 64), (16, 256), (4, 64), (1, 128), (128, 16)]


def table_of(tensors: Sequence[Sequence[Any]], *numbers: Sequence[int]) -> tuple[Any, Any]:
    """Addresses of tensors, and numbers, on the GPU; row by row."""
    torch = pytest.importorskip("torch")
    addresses = [[t.data_ptr() for t in row] for row in tensors]
    return (
        torch.tensor(addresses, dtype=torch.int64, device="cuda"),
        torch.tensor([list(row) for row in numbers], dtype=torch.int32, device="cuda"),
    )


@proton.jit
def copy_all(
    addresses, sizes, groups, DTYPE: tl.constexpr, M: tl.constexpr, N: tl.constexpr,
    PADDING: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """Copies one tensor after the other to others, block by block; programs take blocks in turn."""
    for group in range(groups):
        m, n = tl.load(sizes + 4 * group), tl.load(sizes + 4 * group + 1)
        x = tl.make_tensor_descriptor(
            tl.load(addresses + 2 * group).to(tl.pointer_type(DTYPE)),
            [m, n], [tl.load(sizes + 4 * group + 2), 1], [M, N], PADDING,
        )  # fmt: skip
        y = tl.make_tensor_descriptor(
            tl.load(addresses + 2 * group + 1).to(tl.pointer_type(DTYPE)),
            [m, n], [tl.load(sizes + 4 * group + 3), 1], [M, N],
        )  # fmt: skip
        across = tl.cdiv(n, N)
        for tile in tl.range(
            tl.program_id(0), tl.cdiv(m, M) * across, tl.num_programs(0), num_stages=STAGES
        ):
            row, column = tile // across * M, tile % across * N
            y.store([row, column], x.load([row, column]))


def part_of(rng: np.random.Generator, dtype: str, m: int, n: int) -> tuple[Any, Any]:
    """A tensor of random bits, and its first m rows and n columns, which may be none."""
    whole = random_bits(rng, dtype, (m + 2, n + 1))
    return whole, whole[:m, :n]


@pytest.mark.parametrize("stages", [1, 3])
@pytest.mark.parametrize("dtype", DTYPES)
def test_tensors_by_their_addresses(rng: np.random.Generator, dtype: str, stages: int) -> None:
    """Many small ones, so that a map is made while others still store; some have no elements."""
    for _ in range(3):
        block = BLOCKS[int(rng.integers(len(BLOCKS)))]
        if block[1] * np.dtype(DTYPES[dtype]).itemsize < 16:
            continue
        shapes = [(int(m), int(n)) for m, n in rng.integers(0, [200, 300], (40, 2))]
        shapes[3], shapes[7], shapes[39] = (0, 17), (5, 0), (0, 0)
        xs, ys = ([part_of(rng, dtype, m, n) for m, n in shapes] for _ in range(2))
        pairs = list(zip(xs, ys, strict=True))
        wanted = []
        for (m, n), ((x, _), (y, _)) in zip(shapes, pairs, strict=True):
            wanted.append(bits_of(y, dtype).copy())
            wanted[-1][:m, :n] = bits_of(x, dtype)[:m, :n]
        kernel = copy_all[(int(rng.integers(1, 9)),)](
            *table_of(
                [(x, y) for (_, x), (_, y) in pairs],
                *(
                    (*shape, x.stride(0), y.stride(0))
                    for shape, ((x, _), (y, _)) in zip(shapes, pairs, strict=True)
                ),
            ),
            len(shapes),
            DTYPE=getattr(tl, ALIASES.get(dtype, dtype)),
            M=block[0],
            N=block[1],
            PADDING="zero",
            STAGES=stages,
        )
        used(kernel, loads=True, stores=True)
        assert kernel.metadata["global_scratch_size"] == 384
        for (y, _), want in zip(ys, wanted, strict=True):
            np.testing.assert_array_equal(bits_of(y, dtype), want)


ALIASES = {"float8_e5m2": "float8e5"}


@proton.jit
def edges(
    addresses, sizes, out, groups, DTYPE: tl.constexpr, M: tl.constexpr, N: tl.constexpr,
    PADDING: tl.constexpr, SHIFT: tl.constexpr,
):  # fmt: skip
    """The four blocks around each corner of tensors."""
    rows, columns = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :]
    for group in range(groups):
        m, n = tl.load(sizes + 3 * group), tl.load(sizes + 3 * group + 1)
        x = tl.make_tensor_descriptor(
            tl.load(addresses + group).to(tl.pointer_type(DTYPE)),
            [m, n], [tl.load(sizes + 3 * group + 2), 1], [M, N], PADDING,
        )  # fmt: skip
        for corner in tl.range(4, num_stages=2):
            down, right = (corner // 2) * M - SHIFT, (corner % 2) * N - 16
            place = ((group * 4 + corner) * M + rows) * N + columns
            tl.store(out + place, x.load([down, right]))


@pytest.mark.parametrize("padding", ["zero", "nan"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_what_lies_outside(rng: np.random.Generator, dtype: str, padding: str) -> None:
    torch = pytest.importorskip("torch")
    shapes = [(int(m), int(n)) for m, n in rng.integers(0, [40, 80], (12, 2))]
    shapes[2], shapes[5] = (0, 0), (3, 0)
    wholes, xs = zip(*(part_of(rng, dtype, m, n) for m, n in shapes), strict=True)
    out = torch.full((12, 4, 16, 32), 7.0, device="cuda", dtype=xs[0].dtype)
    numbers = [(*shape, x.stride(0)) for shape, x in zip(shapes, wholes, strict=True)]
    kernel = edges[(1,)](
        *table_of([[x] for x in xs], *numbers), out, 12,
        DTYPE=getattr(tl, dtype), M=16, N=32, PADDING=padding, SHIFT=3,
    )  # fmt: skip
    used(kernel, loads=True, stores=False)
    fill = math.nan if padding == "nan" else 0.0
    for x, got in zip(xs, out.double().cpu().numpy(), strict=True):
        for corner in range(4):
            place = corner // 2 * 16 - 3, corner % 2 * 32 - 16
            want = block_of(x.double().cpu().numpy(), place, (16, 32), fill)
            np.testing.assert_array_equal(got[corner], want)


@proton.jit
def of_rank(addresses, out, sizes: tl.constexpr, block: tl.constexpr, times):
    """The sum of a tensor's blocks side by side in its last dimension."""
    strides: tl.constexpr = _strides_of(sizes)
    base = tl.load(addresses).to(tl.pointer_type(tl.float32))
    x = tl.make_tensor_descriptor(base, sizes, strides, block)
    y = tl.make_tensor_descriptor(out, block, _strides_of(block), block)
    total = tl.zeros(block, tl.float32)
    for i in tl.range(times, num_stages=2):
        total += x.load([0] * (len(block) - 1) + [i * block[len(block) - 1]])
    y.store([0] * len(block), total)


@proton.constexpr_function
def _strides_of(sizes: Any) -> list[int]:
    return [math.prod(sizes[axis + 1 :]) for axis in range(len(sizes))]


@pytest.mark.parametrize("rank", [1, 2, 3, 4, 5])
def test_ranks(rank: int) -> None:
    torch = pytest.importorskip("torch")
    sizes, block = (3, 5, 3, 37, 64)[-rank:], (2, 4, 2, 4, 16)[-rank:]
    if rank == 1:
        block = (32,)
    x, out = torch.randn(sizes, device="cuda"), torch.zeros(block, device="cuda")
    addresses, _ = table_of([[x]])
    times = 64 // block[-1]
    kernel = of_rank[(1,)](addresses, out, sizes=sizes, block=block, times=times)
    assert "UTMALDG" in kernel.asm["sass"]
    part = x.cpu().numpy()[tuple(slice(0, size) for size in block[:-1])]
    want = part.reshape(*block[:-1], times, block[-1]).sum(-2)
    np.testing.assert_allclose(out.cpu().numpy(), want, rtol=1e-5, atol=1e-5)


@proton.jit
def chosen(addresses, x, out, turns, M: tl.constexpr, N: tl.constexpr):
    """A descriptor that is another one in every third iteration, and one of two in each."""
    rows, columns = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :]
    first = tl.load(addresses).to(tl.pointer_type(tl.float32))
    current = tl.make_tensor_descriptor(first, [M, 4 * N], [4 * N, 1], [M, N])
    for i in range(turns):
        if i % 3 == 0:
            base = tl.load(addresses + i // 3).to(tl.pointer_type(tl.float32))
            current = tl.make_tensor_descriptor(base, [M, 4 * N], [4 * N, 1], [M, N])
        either = current
        if i % 2:
            either = x
        total = tl.zeros((M, N), tl.float32)
        for k in tl.range(4, num_stages=2):
            total += either.load([0, k * N])
        tl.store(out + (i * M + rows) * N + columns, total)


@pytest.mark.parametrize("turns", [1, 2, 7, 12])
def test_descriptors_that_loops_carry(turns: int) -> None:
    torch = pytest.importorskip("torch")
    xs = [torch.randn(16, 128, device="cuda") for _ in range(4)]
    y, out = torch.randn(16, 128, device="cuda"), torch.zeros(turns, 16, 32, device="cuda")
    addresses, _ = table_of([[x] for x in xs])
    given = TensorDescriptor.from_tensor(y, [16, 32])
    kernel = chosen[(1,)](addresses, given, out, turns, M=16, N=32)
    assert "UTMALDG" in kernel.asm["sass"]
    for i in range(turns):
        of = y if i % 2 else xs[i // 3]
        want = of.cpu().numpy().reshape(16, 4, 32).sum(1)
        np.testing.assert_allclose(out[i].cpu().numpy(), want, rtol=1e-5, atol=1e-5)


@proton.jit
def combined(addresses, values, groups, times, KIND: tl.constexpr, M: tl.constexpr):
    """Each program combines its number with each tensor, so many times."""
    rows, columns = tl.arange(0, M)[:, None], tl.arange(0, M)[None, :]
    for group in range(groups):
        base = tl.load(addresses + group).to(tl.pointer_type(tl.int32))
        y = tl.make_tensor_descriptor(base, [M - 3, M], [M, 1], [M, M])
        block = tl.load(values + (tl.program_id(0) * M + rows) * M + columns)
        for _ in range(times):
            combine(y, block, [0, 0], KIND)


@pytest.mark.parametrize("kind", ["add", "min", "max", "xor"])
def test_reductions(rng: np.random.Generator, kind: str) -> None:
    torch = pytest.importorskip("torch")
    ys = [torch.zeros(64, 64, dtype=torch.int32, device="cuda") for _ in range(9)]
    values = rng.integers(-100, 100, (5, 64, 64)).astype(np.int32)
    addresses, _ = table_of([[y] for y in ys])
    on_gpu = torch.from_numpy(values).cuda()
    kernel = combined[(5,)](addresses, on_gpu, 9, 3, KIND=kind, M=64)
    assert "UTMAREDG" in kernel.asm["sass"]
    want = {
        "add": 3 * values.sum(0),
        "min": np.minimum(values.min(0), 0),
        "max": np.maximum(values.max(0), 0),
        "xor": np.bitwise_xor.reduce(values, 0),
    }[kind]
    want[61:] = 0  # outside of the tensor
    for y in ys:
        np.testing.assert_array_equal(y.cpu().numpy(), want)


def doubling(torch: Any, groups: int) -> tuple[list[Any], list[Any], tuple[Any, ...]]:
    """Tensors, others of their sizes, and what `copy_all` takes."""
    xs = [torch.randn(100, 64 + 16 * g, device="cuda").half() for g in range(groups)]
    ys = [torch.zeros_like(x) for x in xs]
    numbers = [(*x.shape, x.stride(0), y.stride(0)) for x, y in zip(xs, ys, strict=True)]
    given = *table_of(list(zip(xs, ys, strict=True)), *numbers), groups
    return xs, ys, given


OPTIONS = {"DTYPE": tl.float16, "M": 32, "N": 64, "PADDING": "zero", "STAGES": 3}


def test_streams_have_memory_of_their_own() -> None:
    torch = pytest.importorskip("torch")
    made = [doubling(torch, 12) for _ in range(6)]
    copy_all[(7,)](*made[0][2], **OPTIONS)
    torch.cuda.synchronize()
    streams = [torch.cuda.Stream() for _ in made]
    for turn in range(20):
        for _, ys, _ in made:
            for y in ys:
                y.zero_()
        torch.cuda.synchronize()
        for stream, (_, _, given) in zip(streams, made, strict=True):
            with torch.cuda.stream(stream):
                copy_all[(7 + turn,)](*given, **OPTIONS)
        torch.cuda.synchronize()
        for xs, ys, _ in made:
            assert all(torch.equal(x, y) for x, y in zip(xs, ys, strict=True))


def test_graphs_keep_their_memory() -> None:
    """Replays of two graphs at once, and launches beside them; tables change between replays."""
    torch = pytest.importorskip("torch")
    made = [doubling(torch, 12) for _ in range(3)]
    copy_all[(7,)](*made[0][2], **OPTIONS)
    graphs = []
    for _, _, given in made[:2]:
        graphs.append(torch.cuda.CUDAGraph())
        with torch.cuda.graph(graphs[-1]):
            copy_all[(7,)](*given, **OPTIONS)
            copy_all[(5,)](*given, **OPTIONS)
    streams = [torch.cuda.Stream() for _ in graphs]
    for _ in range(10):
        for xs, ys, (addresses, sizes, _) in made:
            for x, y in zip(xs, ys, strict=True):
                x.normal_()
                y.zero_()
            # Another order of the same pairs, whose sizes go with them.
            order = torch.randperm(12, device="cuda")
            addresses.copy_(addresses[order])
            sizes.copy_(sizes[order])
        torch.cuda.synchronize()
        for stream, graph in zip(streams, graphs, strict=True):
            with torch.cuda.stream(stream):
                graph.replay()
        copy_all[(9,)](*made[2][2], **OPTIONS)
        torch.cuda.synchronize()
        for xs, ys, _ in made:
            assert all(torch.equal(x, y) for x, y in zip(xs, ys, strict=True))


@pytest.mark.parametrize("strategy", ["circular", "flush"])
def test_records_beside_them(strategy: str) -> None:
    """The instrumented kernel takes the memory and the buffer of records."""
    torch = pytest.importorskip("torch")
    xs, ys, given = doubling(torch, 5)
    auto = ("copies", "barriers", "loops")
    with proton.profile("maps", auto=auto, strategy=strategy) as run:
        for _ in range(3):
            copy_all[(3,)](*given, **OPTIONS)
    assert run.totals.launches == 3
    assert len(run.frame)
    assert all(torch.equal(x, y) for x, y in zip(xs, ys, strict=True))


def test_an_allocator_is_asked() -> None:
    torch = pytest.importorskip("torch")
    asked: list[tuple[int, int, Any]] = []

    def allocate(size: int, alignment: int, stream: Any) -> Any:
        asked.append((size, alignment, stream))
        return torch.empty(size, dtype=torch.int8, device="cuda")

    xs, ys, given = doubling(torch, 5)
    proton.set_allocator(allocate)
    try:
        copy_all[(3, 2)](*given, **OPTIONS)
        copy_all[(4,)](*given, **OPTIONS)
    finally:
        proton.set_allocator(None)
    stream = torch.cuda.current_stream().cuda_stream
    assert asked == [(6 * 384, 128, stream), (4 * 384, 128, stream)]
    assert all(torch.equal(x, y) for x, y in zip(xs, ys, strict=True))


@pytest.mark.parametrize("dtype", ["float16", "float32", "int8"])
def test_a_map_is_the_one_that_the_driver_makes(dtype: str) -> None:
    """Bit by bit, but for what no instruction sets."""
    torch = pytest.importorskip("torch")
    kept: list[Any] = []

    def allocate(size: int, alignment: int, stream: Any) -> Any:
        kept.append(torch.zeros(size, dtype=torch.int8, device="cuda"))
        return kept[-1]

    element = getattr(tl, dtype)
    x, y = (torch.zeros(100, 160, device="cuda").to(getattr(torch, dtype)) for _ in range(2))
    numbers = (100, 150, 160, 160)
    given = *table_of([[x, y]], numbers), 1
    proton.set_allocator(allocate)
    try:
        copy_all[(1,)](*given, **OPTIONS | {"DTYPE": element})
    finally:
        proton.set_allocator(None)
    found = kept[0].cpu().numpy().view(np.uint64)[:32].reshape(2, 16)
    box = box_of((32, 64), x.element_size())
    assert box is not None
    names = {"float16": "FLOAT16", "float32": "FLOAT32", "int8": "UINT8"}
    for address, words in zip((x.data_ptr(), y.data_ptr()), found, strict=True):
        made = cuda.encode_tensor_map(
            names[dtype], address, [150, 100], [160 * x.element_size()], list(box.sizes[::-1]),
            box.swizzle, is_nan=False,
        )  # fmt: skip
        made[1] &= ~_L2_PROMOTION
        assert [int(word) for word in words][:_SET_WORDS] == made[:_SET_WORDS]


_L2_PROMOTION = 3 << 17  # of 128 bytes, which the driver is asked for; of the second word
_SET_WORDS = 8  # behind them the driver notes the bytes of a box


WRONG = """
import numpy as np, torch, proton, proton.language as tl
from tests.gpu.test_gpu_made_descriptors import copy_all, doubling, OPTIONS
xs, ys, (addresses, sizes, groups) = doubling(torch, 3)
{what}
try:
    copy_all[(2,)](addresses, sizes, groups, **OPTIONS)
    torch.cuda.synchronize()
except RuntimeError as problem:
    print("refused", problem)
else:
    print("ran")
"""


@pytest.mark.parametrize(
    "what, said",
    [
        ("addresses[1, 0] += 2", "refused"),
        ("sizes[2, 2] += 1", "refused"),
        ("sizes[2, 3] = -64", "refused"),
        ("addresses[1, 0] += 16", "ran"),
        ("sizes[1, 0] = 0; addresses[1, 0] += 2", "ran"),
    ],
)
def test_what_tma_cannot_take_ends_the_kernel(what: str, said: str) -> None:
    """In a process of its own: nothing of a GPU is left after that."""
    assert said in run(WRONG.format(what=what)).stdout
