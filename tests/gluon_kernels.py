"""Kernels in Gluon, and what numpy says of them: run on a GPU (tests/gpu), and without one on the
machine for PTX (tests/compile). Each check launches its kernels itself."""

from collections.abc import Callable
from typing import Any

import numpy as np

import proton
from benchmarks.gluon_kernels import attention_specialized
from proton import gluon
from proton.gluon import language as gl
from proton.gluon.language.nvidia.ampere import async_copy, mma_v2
from proton.gluon.language.nvidia.hopper import (
    async_store,
    fence_async_shared,
    mbarrier,
    tma,
    warpgroup_mma,
    warpgroup_mma_accumulator,
    warpgroup_mma_init,
    warpgroup_mma_wait,
)
from proton.gluon.nvidia.hopper import TensorDescriptor
from tests import gluon_images
from tests.draws import TIMES
from tests.tf32 import nearest_tf32

Check = Callable[[np.random.Generator], None]
CHECKS: dict[str, Check] = {**gluon_images.CHECKS}
LAYOUTS_SAY_NOTHING = False  # set by tests of a CPU


def check(function: Check) -> Check:
    """Adds a check to the list, by its name."""
    CHECKS[function.__name__] = function
    return function


def some(cases: list[Any]) -> list[Any]:
    """Cases that differ in their layouts, of which two do where these say nothing."""
    return [cases[0], cases[-1]] if LAYOUTS_SAY_NOTHING else cases


def described(array: np.ndarray, block: list[int], dtype: Any = gl.float16) -> TensorDescriptor:
    """A descriptor of an array for blocks in the layout that they have by default."""
    layout = gl.NVMMASharedLayout.get_default_for(block, dtype)
    return TensorDescriptor.from_tensor(array, block, layout)


# Tensors and layouts


@gluon.jit
def copied(x, y, n, BLOCK: gl.constexpr, layout: gl.constexpr):
    offsets = gl.program_id(0) * BLOCK + gl.arange(0, BLOCK, layout=layout)
    gl.store(y + offsets, gl.load(x + offsets, offsets < n), offsets < n)


@check
def copies_in_layouts(rng: np.random.Generator) -> None:
    linear = gl.DistributedLinearLayout(
        [[4], [1]], [[2], [8], [16], [32], [64]], [[128], [256]], [], [512]
    )
    layouts = [
        *(gl.BlockedLayout([n], [32], [4], [0]) for n in (1, 2, 8)),
        gl.SliceLayout(0, gl.BlockedLayout([1, 4], [2, 16], [2, 2], [1, 0])),
        linear,
        gl.AutoLayout(),
        gl.CoalescedLayout(),
    ]
    x = rng.standard_normal(1000, np.float32)
    for layout in some(layouts):
        y = np.zeros_like(x)
        copied[(2,)](x, y, 1000, 512, layout, num_warps=4)
        assert (x == y).all(), layout


@gluon.jit
def converted(x, y, M: gl.constexpr, N: gl.constexpr, before: gl.constexpr, after: gl.constexpr):
    i = gl.arange(0, M, layout=gl.SliceLayout(1, before))[:, None]
    j = gl.arange(0, N, layout=gl.SliceLayout(0, before))[None, :]
    value = gl.convert_layout(gl.load(x + i * N + j), after)
    i = gl.arange(0, M, layout=gl.SliceLayout(1, after))
    j = gl.arange(0, N, layout=gl.SliceLayout(0, after))
    gl.store(y + i[:, None] * N + j[None, :], value)


@check
def conversions_of_layouts(rng: np.random.Generator) -> None:
    rows = gl.BlockedLayout([1, 4], [4, 8], [4, 1], [1, 0])
    columns = gl.BlockedLayout([4, 1], [8, 4], [1, 4], [0, 1])
    mma = gl.NVMMADistributedLayout([2, 0], [2, 2], [16, 8])
    group = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, 32, 16])
    whole = gl.BlockedLayout([1, 2, 2], [1, 4, 8], [1, 2, 2], [2, 1, 0])
    others = [
        columns, mma, group, gl.DotOperandLayout(0, mma, 2), gl.DotOperandLayout(1, mma, 2),
        gl.DotOperandLayout(0, group, 2), gl.SliceLayout(0, whole),
    ]  # fmt: skip
    x = rng.integers(-99, 99, (64, 64)).astype(np.float16)
    for layout in some(others):
        for before, after in ((rows, layout), (layout, rows)):
            y = np.zeros_like(x)
            converted[(1,)](x, y, 64, 64, before, after, num_warps=4)
            assert (x == y).all(), (before, after)


@gluon.jit
def largest(a, b):
    return gl.maximum(a, b)


@gluon.jit
def reduced(x, places, out, total, M: gl.constexpr, N: gl.constexpr, layout: gl.constexpr):
    i = gl.arange(0, M, layout=gl.SliceLayout(1, layout))
    j = gl.arange(0, N, layout=gl.SliceLayout(0, layout))
    at = i[:, None] * N + j[None, :]
    value = gl.load(x + at)
    mean = gl.sum(value, axis=1) / N
    value = value - mean[:, None]
    value = gl.where(value > 0, value, value * gl.max(value, axis=0)[None, :])
    gl.store(out + at, gl.associative_scan(value, 1, largest))
    gl.store(out + M * N + at, gl.gather(value, gl.load(places + at), 1))
    pairs = gl.join(value, value + 1)
    low, high = gl.split(pairs.reshape([M, N, 2]))
    gl.store(out + 2 * M * N + at, gl.convert_layout(low * high, layout))
    flat: gl.constexpr = gl.BlockedLayout([2], [32], [4], [0])
    row = gl.convert_layout(value.reshape([M * N]), flat)
    gl.store(out + 3 * M * N + gl.arange(0, M * N, layout=flat), row)
    turned = gl.permute(value, [1, 0])
    ji = gl.arange(0, N)[:, None] * M + gl.arange(0, M)[None, :]
    gl.store(out + 4 * M * N + ji, turned)
    gl.atomic_add(total + i % 2, gl.sum(value, axis=1))
    counts = gl.histogram(gl.load(places + gl.arange(0, N, layout=flat)), N, layout=flat)
    gl.store(out + 5 * M * N + gl.arange(0, N, layout=flat), counts.to(gl.float32))


@check
def tensors_by_ops(rng: np.random.Generator) -> None:
    m, n = 16, 32
    x = rng.standard_normal((m, n), np.float32)
    places = rng.integers(0, n, (m, n), np.int32)
    for layout in (
        gl.BlockedLayout([1, 2], [2, 16], [4, 1], [1, 0]),
        gl.BlockedLayout([2, 4], [4, 8], [1, 4], [0, 1]),
    ):
        out, total = np.zeros(5 * m * n + n, np.float32), np.zeros(2, np.float32)
        reduced[(1,)](x, places, out, total, m, n, layout, num_warps=4)
        value = x - x.mean(1, keepdims=True)
        value = np.where(value > 0, value, value * value.max(0)[None, :])
        wanted = [
            np.maximum.accumulate(value, 1), np.take_along_axis(value, places, 1),
            value * (value + 1), value, value.T,
        ]  # fmt: skip
        for found, want in zip(out[: 5 * m * n].reshape(5, -1), wanted, strict=True):
            np.testing.assert_allclose(found, want.ravel(), rtol=1e-4, atol=1e-5)
        sums = value.sum(1)
        np.testing.assert_allclose(total, [sums[::2].sum(), sums[1::2].sum()], rtol=1e-3, atol=1e-4)
        assert (out[5 * m * n :] == np.bincount(places[0], minlength=n)).all()


# Shared memory


@gluon.jit
def viewed(x, y, M: gl.constexpr, N: gl.constexpr, memory: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([1, 4], [4, 8], [4, 1], [1, 0])
    flat: gl.constexpr = gl.BlockedLayout([1], [32], [4], [0])
    i = gl.arange(0, M, layout=gl.SliceLayout(1, layout))
    j = gl.arange(0, N, layout=gl.SliceLayout(0, layout))
    at = i[:, None] * N + j[None, :]
    buffers = gl.allocate_shared_memory(x.dtype.element_ty, [3, M, N], memory)
    for k in range(3):
        buffers.index(k).store(gl.load(x + at) + k)
    part = buffers.slice(1, 2).index(1)  # + 2
    gl.store(y + at, part.load(layout))
    ji = gl.arange(0, N, layout=gl.SliceLayout(1, layout))[:, None] * M
    ji += gl.arange(0, M, layout=gl.SliceLayout(0, layout))[None, :]
    gl.store(y + M * N + ji, part.permute([1, 0]).load(layout))
    gl.store(y + 2 * M * N + gl.arange(0, M * N, layout=flat), part.reshape([M * N]).load(flat))
    half = part.slice(N // 2, N // 2, dim=1)
    jh = gl.arange(0, N // 2, layout=gl.SliceLayout(0, layout))
    to = i[:, None] * (N // 2) + jh[None, :]
    gl.store(y + 3 * M * N + to, half.load(layout))
    low = part.slice(M // 2, M // 2)
    low.store(gl.zeros([M // 2, N], x.dtype.element_ty, layout))
    gl.store(y + 4 * M * N + at, part.load(layout))
    bits = part.reinterpret(gl.int16)
    gl.store(y + 5 * M * N + at, bits.load(layout).to(gl.float16, bitcast=True))


@check
def views_of_memory(rng: np.random.Generator) -> None:
    m, n = 32, 64
    x = rng.integers(-99, 99, (m, n)).astype(np.float16)
    memories = [
        gl.SwizzledSharedLayout(1, 1, 1, [1, 0]),
        gl.SwizzledSharedLayout(8, 2, 4, [1, 0]),
        gl.SwizzledSharedLayout(4, 1, 8, [0, 1]),
        gl.NVMMASharedLayout(128, 16),
        gl.NVMMASharedLayout(32, 16),
        gl.NVMMASharedLayout(64, 16, transposed=True),
        gl.PaddedSharedLayout.with_identity_for([[64, 8], [256, 16]], [m, n], [1, 0]),
        gl.SharedLinearLayout([[0, 1 << b] for b in range(6)] + [[1 << b, b] for b in range(5)]),
    ]
    for memory in some(memories):
        y = np.zeros((6, m * n), np.float16)
        viewed[(1,)](x, y, m, n, memory, num_warps=4)
        z = x + np.float16(2)
        assert (y[0] == z.ravel()).all(), memory
        assert (y[1] == z.T.ravel()).all(), memory
        assert (y[2] == z.ravel()).all(), memory
        assert (y[3, : m * n // 2] == z[:, n // 2 :].ravel()).all(), memory
        z[m // 2 :] = 0
        assert (y[4] == z.ravel()).all(), memory
        assert (y[5] == z.ravel()).all(), memory


@gluon.jit
def through_memory(
    x, y, M: gl.constexpr, N: gl.constexpr, AXIS: gl.constexpr, before: gl.constexpr,
    memory: gl.constexpr, after: gl.constexpr,
):  # fmt: skip
    """Elements, the sum and the place of the maximum along an axis of what memory has in another
    shape."""
    i = gl.arange(0, M, layout=gl.SliceLayout(1, before))[:, None]
    j = gl.arange(0, N, layout=gl.SliceLayout(0, before))[None, :]
    whole = gl.allocate_shared_memory(x.dtype.element_ty, [M, N], memory)
    whole.store(gl.load(x + i * N + j))
    value = whole.permute([1, 0]).reshape([M, N]).load(after)
    i = gl.arange(0, M, layout=gl.SliceLayout(1, after))
    j = gl.arange(0, N, layout=gl.SliceLayout(0, after))
    gl.store(y + i[:, None] * N + j[None, :], value)
    most, place = gl.max(value, AXIS, return_indices=True)
    at = y + M * N + (i if AXIS else j)
    length: gl.constexpr = M if AXIS else N
    gl.store(at, gl.sum(value, AXIS))
    gl.store(at + length, most)
    gl.store(at + 2 * length, place)


def drawn_bases(rng: np.random.Generator, shape: tuple[int, ...]) -> list[list[int]]:
    """Bases that reach each element once: one element on, and others, most of which move along
    several dimensions."""
    units = [
        [(1 << bit) * (axis == other) for other in range(len(shape))]
        for axis, size in enumerate(shape)
        for bit in range(size.bit_length() - 1)
    ]
    first = units.index([0] * (len(shape) - 1) + [1])
    bases = np.array([units.pop(first), *rng.permutation(units)])
    for one in range(1, len(bases)):
        bases[one] ^= bases[rng.integers(one)]
    return [[int(value) for value in basis] for basis in bases]


def drawn_layout(rng: np.random.Generator, shape: tuple[int, ...]) -> gl.DistributedLinearLayout:
    """A layout for four warps, of which two threads hold each element."""
    bases = drawn_bases(rng, shape)
    registers, threads = bases[:-6], bases[-6:]
    threads.insert(rng.integers(7), [[0] * len(shape), threads[0]][rng.integers(2)])
    return gl.DistributedLinearLayout(registers, threads[:5], threads[5:], [], list(shape))


@check
def drawn_layouts(rng: np.random.Generator) -> None:
    shape = m, n = 16, 64
    for number in range((1 if LAYOUTS_SAY_NOTHING else 3) * TIMES):
        memory = gl.SharedLinearLayout(drawn_bases(rng, shape))
        layouts = drawn_layout(rng, shape), drawn_layout(rng, shape)
        x, axis = rng.integers(-99, 99, shape, np.int32), number % 2
        y = np.zeros(m * n + 3 * shape[1 - axis], np.int32)
        through_memory[(1,)](x, y, m, n, axis, layouts[0], memory, layouts[1], num_warps=4)
        value = x.T.reshape(shape)
        wanted = [value.ravel(), value.sum(axis), value.max(axis), value.argmax(axis)]
        assert (y == np.concatenate(wanted)).all(), (layouts, memory)


@gluon.jit
def through_memories(x, y, M: gl.constexpr, N: gl.constexpr, memories: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([1, 1], [4, 8], [4, 1], [1, 0])
    i = gl.arange(0, M, layout=gl.SliceLayout(1, layout))[:, None]
    j = gl.arange(0, N, layout=gl.SliceLayout(0, layout))[None, :]
    value = gl.load(x + i * N + j)
    for n in gl.static_range(len(memories)):
        memory = gl.allocate_shared_memory(x.dtype.element_ty, [M, N], memories[n], value)
        turned = memory.permute([1, 0]).reshape([M, N])
        gl.store(y + n * M * N + i * N + j, turned.load(layout))


@check
def drawn_memories(rng: np.random.Generator) -> None:
    """Small ones, in which bases of one dimension are easily sums of another's."""
    shape = m, n = 4, 8
    x = rng.integers(-99, 99, shape, np.int32)
    for _ in range(TIMES):
        memories = tuple(gl.SharedLinearLayout(drawn_bases(rng, shape)) for _ in range(16))
        y = np.zeros((16, m, n), np.int32)
        through_memories[(1,)](x, y, m, n, memories, num_warps=4)
        assert (y == x.T.reshape(shape)).all(), memories


@gluon.jit
def row_of_matrix(x, y, row, M: gl.constexpr, N: gl.constexpr, memory: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([1, 1], [1, 32], [4, 1], [1, 0])
    line: gl.constexpr = gl.BlockedLayout([1], [32], [4], [0])
    i = gl.arange(0, M, layout=gl.SliceLayout(1, layout))[:, None]
    j = gl.arange(0, N, layout=gl.SliceLayout(0, layout))[None, :]
    matrix = gl.allocate_shared_memory(gl.int32, [M, N], memory)
    matrix.store(gl.load(x + i * N + j))
    at = gl.arange(0, N, layout=line)
    gl.store(y + at, matrix.index(row).load(line))
    gl.store(y + N + at, matrix.index(1).load(line))


@check
def rows_of_memory_of_two_dimensions(rng: np.random.Generator) -> None:
    x = rng.integers(-1000, 1000, (4, 128), dtype=np.int32)
    for memory in (gl.SwizzledSharedLayout(1, 1, 1, [1, 0]), gl.NVMMASharedLayout(0, 32, 2)):
        for row in (0, 3):
            y = np.zeros((2, 128), np.int32)
            row_of_matrix[(1,)](x, y, row, 4, 128, memory, num_warps=4)
            assert (y == x[[row, 1]]).all(), memory


@gluon.jit
def gathered(
    x, places, y, M: gl.constexpr, N: gl.constexpr, AXIS: gl.constexpr, source: gl.constexpr,
    target: gl.constexpr,
):  # fmt: skip
    i = gl.arange(0, M, layout=gl.SliceLayout(1, source))[:, None]
    j = gl.arange(0, N, layout=gl.SliceLayout(0, source))[None, :]
    k = gl.arange(0, M, layout=gl.SliceLayout(1, target))[:, None]
    m = gl.arange(0, N, layout=gl.SliceLayout(0, target))[None, :]
    found = gl.gather(gl.load(x + i * N + j), gl.load(places + k * N + m), AXIS)
    gl.store(y + k * N + m, found)


@check
def gathers_within_warps(rng: np.random.Generator) -> None:
    m, n = 32, 16
    columns = gl.BlockedLayout([1, 1], [32, 1], [1, 4], [0, 1])
    spread = gl.DistributedLinearLayout(
        [[0, 4], [8, 0]], [[1, 0], [16, 0], [0, 1], [4, 0], [2, 0]], [[0, 2], [0, 8]], [], [m, n]
    )
    moved = gl.DistributedLinearLayout(
        [[2, 0], [0, 4]], [[8, 0], [4, 0], [0, 1], [16, 0], [1, 0]], [[0, 2], [0, 8]], [], [m, n]
    )
    rows = gl.BlockedLayout([1, 2], [4, 8], [4, 1], [1, 0])
    for source, target, axis, dtype in (
        (columns, columns, 0, np.float32),
        (spread, spread, 0, np.float16),
        (spread, moved, 0, np.int8),
        (moved, spread, 0, np.int64),
        (moved, spread, 1, np.float32),
        (rows, rows, 1, np.int16),
        (rows, rows, 0, np.float32),
    ):
        x = rng.integers(-99, 99, (m, n)).astype(dtype)
        places = rng.integers(0, x.shape[axis], (m, n), np.int32)
        y = np.zeros_like(x)
        gathered[(1,)](x, places, y, m, n, axis, source, target, num_warps=4)
        assert (y == np.take_along_axis(x, places, axis)).all(), (source, target, axis)


@gluon.jit
def picked(x, places, y, M: gl.constexpr, N: gl.constexpr, memory: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([1, 1], [2, 16], [4, 1], [1, 0])
    i = gl.arange(0, M, layout=gl.SliceLayout(1, layout))
    j = gl.arange(0, N, layout=gl.SliceLayout(0, layout))
    at = i[:, None] * N + j[None, :]
    value, index = gl.load(x + at), gl.load(places + at)
    buffer = gl.allocate_shared_memory(gl.float32, [M, N], memory, value)
    gl.store(y + at, buffer.gather(index, 1))
    gl.barrier()
    buffer.scatter(value, index, axis=1)
    gl.store(y + M * N + at, buffer.load(layout))


@check
def elements_of_memory_by_index(rng: np.random.Generator) -> None:
    m, n = 16, 32
    x = rng.standard_normal((m, n), np.float32)
    places = np.stack([rng.permutation(n) for _ in range(m)]).astype(np.int32)
    for memory in (
        gl.SwizzledSharedLayout(4, 1, 4, [1, 0]),
        gl.PaddedSharedLayout.with_identity_for([[16, 4]], [m, n], [1, 0]),
    ):
        y = np.zeros((2, m, n), np.float32)
        picked[(1,)](x, places, y, m, n, memory, num_warps=4)
        assert (y[0] == np.take_along_axis(x, places, 1)).all()
        wanted = np.zeros_like(x)
        np.put_along_axis(wanted, places, x, 1)
        assert (y[1] == wanted).all()


@gluon.jit
def summed(x, y, M: gl.constexpr, N: gl.constexpr, AXIS: gl.constexpr, layout: gl.constexpr):
    i = gl.arange(0, M, layout=gl.SliceLayout(1, layout))
    j = gl.arange(0, N, layout=gl.SliceLayout(0, layout))
    value = gl.load(x + i[:, None] * N + j[None, :])
    gl.atomic_add(y + (i if AXIS else j), gl.sum(value, axis=AXIS))


@gluon.jit
def counted_once(x, y, N: gl.constexpr, layout: gl.constexpr, out: gl.constexpr):
    i = gl.arange(0, N, layout=layout)
    value = gl.load(x + i)
    gl.store(y + N + i, gl.atomic_add(y + i, value))
    gl.store(y + 2 * N + gl.arange(0, 32, out), gl.histogram(value, 32, layout=out))


@check
def copies_within_a_thread(rng: np.random.Generator) -> None:
    """A layout whose threads hold elements twice."""
    layout = gl.DistributedLinearLayout(
        [[0, 8], [1, 0], [0, 0], [2, 0], [4, 0], [8, 0], [16, 0]],
        [[0, 1], [0, 0], [64, 0], [0, 2], [0, 4]],
        [[32, 0], [0, 16]],
        [],
        [128, 32],
    )
    x = rng.integers(-9, 9, (128, 32)).astype(np.float32)
    for axis in (0, 1):
        y = np.zeros((32, 128)[axis], np.float32)
        summed[(1,)](x, y, 128, 32, axis, layout, num_warps=4)
        assert (y == x.sum(axis)).all(), axis
    layout = gl.DistributedLinearLayout(
        [[32], [0], [64]], [[1], [2], [4], [8], [16]], [[128], [0]], [], [256]
    )
    x, y = rng.integers(0, 32, 256).astype(np.int32), np.zeros(2 * 256 + 32, np.int32)
    counted_once[(1,)](x, y, 256, layout, gl.BlockedLayout([1], [32], [4], [0]), num_warps=4)
    assert (y[:256] == x).all()
    assert not y[256:512].any()
    assert (y[512:] == np.bincount(x, minlength=32)).all()


@gluon.jit
def bounded(x, y, rows, columns, M: gl.constexpr, N: gl.constexpr):
    i = gl.program_id(0) * M + gl.arange(0, M, gl.AutoLayout())[:, None]
    j = gl.arange(0, N, gl.AutoLayout())[None, :]
    inside = (i < rows) & (j < columns)
    value = gl.load(gl.set_auto_layout(x + i * columns + j, gl.CoalescedLayout()), mask=inside)
    to = gl.set_auto_layout(y + i * columns + j, gl.CoalescedLayout())
    gl.store(to, value * 2, mask=gl.set_auto_layout(inside, gl.CoalescedLayout()))


@check
def layouts_that_are_chosen(rng: np.random.Generator) -> None:
    x = rng.standard_normal((50, 100), np.float32)
    y = np.zeros_like(x)
    bounded[(2,)](x, y, 50, 100, 32, 128, num_warps=4)
    assert (y == 2 * x).all()


PLAIN = gl.BlockedLayout([1], [32], [4], [0])  # no constexpr, and no parameter


def through(memory: Any) -> Any:
    """A kernel that copies through memory in a layout, which it finds around it."""

    @gluon.jit
    def kernel(x, y):
        at = gl.arange(0, 256, PLAIN)
        buffer = gl.allocate_shared_memory(gl.float32, [256], memory, gl.load(x + at))
        value = buffer.load(gl.BlockedLayout([8], [32], [4], [0]))
        gl.store(y + gl.arange(0, 256, value.type.layout), value)

    return kernel


@check
def layouts_that_a_kernel_names(rng: np.random.Generator) -> None:
    x = rng.standard_normal(256, np.float32)
    for memory in (gl.SwizzledSharedLayout(1, 1, 1, [0]), gl.NVMMASharedLayout(0, 32, rank=1)):
        y = np.zeros_like(x)
        through(memory)[(1,)](x, y, num_warps=4)
        assert (x == y).all(), memory


@gluon.jit
def widened(x, y, M: gl.constexpr, N: gl.constexpr, AXIS: gl.constexpr, dtype: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([1, 2], [8, 4], [4, 1], [1, 0])
    i = gl.arange(0, M, layout=gl.SliceLayout(1, layout))
    j = gl.arange(0, N, layout=gl.SliceLayout(0, layout))
    wide = gl.fp4_to_fp(gl.load(x + i[:, None] * N + j[None, :]), dtype, AXIS)
    rows = gl.arange(0, wide.shape[0], layout=gl.SliceLayout(1, wide.type.layout))
    columns = gl.arange(0, wide.shape[1], layout=gl.SliceLayout(0, wide.type.layout))
    gl.store(y + rows[:, None] * wide.shape[1] + columns[None, :], wide.to(gl.float32))


@check
def numbers_of_four_bits(rng: np.random.Generator) -> None:
    positive = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6], np.float32)
    numbers = np.concatenate([positive, -positive])
    x = rng.integers(0, 256, (32, 16), np.uint8)
    for axis in (0, 1):
        wanted = np.stack([numbers[x & 15], numbers[x >> 4]], axis + 1)
        for dtype in (gl.float16, gl.bfloat16):
            y = np.zeros((64, 16) if axis == 0 else (32, 32), np.float32)
            widened[(1,)](x, y, 32, 16, axis, dtype, num_warps=4)
            assert (y == wanted.reshape(y.shape)).all()


@gluon.jit
def by_addresses(x, places, y, N: gl.constexpr, GATHERS: gl.constexpr, SCATTERS: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([2], [32], [4], [0])
    i = gl.arange(0, N, layout=layout)
    place = gl.load(places + i)
    memory = gl.allocate_shared_memory(x.dtype, [N], gl.SwizzledSharedLayout(1, 1, 1, [0]), x + i)
    if SCATTERS:
        memory.scatter(x + i, place, axis=0)
    found = memory.gather(place, axis=0) if GATHERS else memory.load(layout)
    gl.store(y + i, gl.load(found))


@check
def pointers_in_memory(rng: np.random.Generator) -> None:
    x, places = rng.standard_normal(256, np.float32), rng.permutation(256).astype(np.int32)
    for gathers in (False, True):
        for scatters in (False, True):
            y, held = np.zeros_like(x), x.copy()
            if scatters:
                held[places] = x
            by_addresses[(1,)](x, places, y, 256, gathers, scatters, num_warps=4)
            assert (y == (held[places] if gathers else held)).all(), (gathers, scatters)


@gluon.jit
def in_memory_of_others(x, y, M: gl.constexpr, N: gl.constexpr, memory: gl.constexpr):
    """Bytes in a layout that is made for words of two: a chunk has as many elements."""
    rows: gl.constexpr = gl.BlockedLayout([1, 4], [4, 8], [4, 1], [1, 0])
    columns: gl.constexpr = gl.BlockedLayout([4, 1], [8, 4], [1, 4], [0, 1])
    i = gl.arange(0, M, layout=gl.SliceLayout(1, rows))[:, None]
    j = gl.arange(0, N, layout=gl.SliceLayout(0, rows))[None, :]
    held = gl.allocate_shared_memory(gl.int8, [M, N], memory, gl.load(x + i * N + j))
    value = held.load(columns)
    i = gl.arange(0, M, layout=gl.SliceLayout(1, columns))[:, None]
    j = gl.arange(0, N, layout=gl.SliceLayout(0, columns))[None, :]
    gl.store(y + i * N + j, value)


@check
def memory_made_for_other_elements(rng: np.random.Generator) -> None:
    x = rng.integers(-99, 99, (32, 32)).astype(np.int8)
    for swizzle, bits in ((32, 16), (64, 16), (128, 32)):
        y = np.zeros_like(x)
        memory = gl.NVMMASharedLayout(swizzle, bits, 2)
        in_memory_of_others[(1,)](x, y, 32, 32, memory, num_warps=4)
        assert (x == y).all(), (swizzle, bits)


@gluon.jit
def read_by_assembly(x, y, M: gl.constexpr, N: gl.constexpr, PACK: gl.constexpr, ASM: gl.constexpr,
                     CONSTRAINTS: gl.constexpr):  # fmt: skip
    layout: gl.constexpr = gl.BlockedLayout([1, 4], [4, 8], [4, 1], [1, 0])
    i = gl.arange(0, M, layout=gl.SliceLayout(1, layout))[:, None]
    j = gl.arange(0, N, layout=gl.SliceLayout(0, layout))[None, :]
    linear: gl.constexpr = gl.SwizzledSharedLayout(1, 1, 1, [1, 0])
    memory = gl.allocate_shared_memory(gl.float32, [M, N], linear, gl.load(x + i * N + j))
    half = memory.slice(N // 2, N // 2, dim=1)
    j = gl.arange(0, N // 2, layout=gl.SliceLayout(0, layout))[None, :]
    offsets = ((M - 1 - i) * N + j) * 4
    found = gl.inline_asm_elementwise(ASM, CONSTRAINTS, [half, offsets], gl.float32, False, PACK)
    gl.store(y + i * (N // 2) + j, found)


@check
def assembly_of_elements_and_memory(rng: np.random.Generator) -> None:
    x = rng.standard_normal((64, 64), np.float32)
    for pack in (1, 2, 4):
        read = [
            f"add.u32 at, ${pack}, ${pack + 1 + n}; ld.shared.f32 ${n}, [at];" for n in range(pack)
        ]
        text = f"{{ .reg .u32 at; {' '.join(read)} }}"
        constraints = ",".join(["=&f"] * pack + ["r"] * (pack + 1))
        y = np.zeros((64, 32), np.float32)
        read_by_assembly[(1,)](x, y, 64, 64, pack, text, constraints, num_warps=4)
        assert (y == x[::-1, 32:]).all(), pack


@gluon.constexpr_function
def biased(outputs, inputs):
    (out,), (x, bias) = outputs, inputs
    return " ".join(f"add.f32 {y}, {of}, {bias[0]};" for y, of in zip(out, x, strict=True))


@gluon.jit
def assembled(x, bias, y, words, N: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([4], [32], [4], [0])
    at = gl.arange(0, N, layout=layout)
    value = gl.load(x + at)
    sums = gl.inline_asm(biased, ("=&f", "f", "f"), [value, bias], value.type, is_pure=True)
    gl.store(y + at, sums)
    memory = gl.allocate_shared_memory(gl.int32, [32], gl.SwizzledSharedLayout(1, 1, 1, [0]))
    memory.store(gl.zeros([32], gl.int32, gl.BlockedLayout([1], [32], [4], [0])))
    gl.barrier()
    gl.inline_asm("st.shared.b32 [$0], $1;", ("r", "r"), [memory.slice(4, 4), 7])
    gl.barrier()
    gl.store(
        words + gl.arange(0, 32, layout=gl.BlockedLayout([1], [32], [4], [0])),
        memory.load(gl.BlockedLayout([1], [32], [4], [0])),
    )
    types: gl.constexpr = (gl.int32, gl.int32)
    one, two = gl.inline_asm("add.s32 $0, $2, 1; add.s32 $1, $2, 2;", "=r,=r,r", [N], types)
    gl.store(words + 32, one)
    gl.store(words + 33, two)


@check
def assembly_of_threads(rng: np.random.Generator) -> None:
    x = rng.standard_normal(1024, np.float32)
    y, words = np.zeros_like(x), np.zeros(34, np.int32)
    assembled[(1,)](x, 0.5, y, words, 1024, num_warps=4)
    assert (y == x + np.float32(0.5)).all()
    assert words[4] == 7
    assert np.count_nonzero(words[:32]) == 1
    assert (words[32:] == (1025, 1026)).all()


@gluon.jit
def counted(places, counts, before, largest, M: gl.constexpr, N: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([1, 1], [2, 16], [4, 1], [1, 0])
    memory: gl.constexpr = gl.SwizzledSharedLayout(1, 1, 1, [1, 0])
    i = gl.arange(0, M, layout=gl.SliceLayout(1, layout))
    j = gl.arange(0, N, layout=gl.SliceLayout(0, layout))
    at = i[:, None] * N + j[None, :]
    index = gl.load(places + at)
    zeros = gl.zeros([M, N], gl.float32, layout)
    bins = gl.allocate_shared_memory(gl.float32, [M, N], memory, zeros)
    gl.barrier()
    old = bins.atomic_scatter_add(zeros + 1.0, index, axis=1, mask=index > 0)
    gl.barrier()
    gl.store(before + at, old)
    gl.store(counts + at, bins.load(layout))
    tops = gl.allocate_shared_memory(gl.int32, [M, N], memory, gl.zeros([M, N], gl.int32, layout))
    gl.barrier()
    tops.atomic_scatter_max(j[None, :], index, axis=1)
    gl.barrier()
    gl.store(largest + at, tops.load(layout))


@check
def memory_that_threads_add_to(rng: np.random.Generator) -> None:
    for m, n in ((16, 32), (2, 16)):  # the second has copies of each element
        places = rng.integers(0, n // 4, (m, n), np.int32)
        counts, before = (np.zeros((m, n), np.float32) for _ in range(2))
        largest = np.zeros((m, n), np.int32)
        counted[(1,)](places, counts, before, largest, m, n, num_warps=4)
        for row in range(m):
            wanted = np.bincount(places[row], minlength=n)
            wanted[0] = 0
            assert (counts[row] == wanted).all()
            for place in range(1, n):
                found = np.sort(before[row][places[row] == place])
                assert (found == np.arange(wanted[place])).all()
            tops = [np.flatnonzero(places[row] == place).max(initial=0) for place in range(n)]
            assert (largest[row] == tops).all()


# Copies


@gluon.jit
def pipelined(x, y, n, M: gl.constexpr, N: gl.constexpr, S: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([1, 4], [4, 8], [4, 1], [1, 0])
    i = gl.arange(0, M, layout=gl.SliceLayout(1, layout))
    j = gl.arange(0, N, layout=gl.SliceLayout(0, layout))
    at = i[:, None] * N + j[None, :]
    buffers = gl.allocate_shared_memory(
        gl.float32, [S, M, N], gl.SwizzledSharedLayout(4, 1, 8, [1, 0])
    )
    for k in gl.static_range(S - 1):
        async_copy.async_load(buffers.index(k), x + k * M * N + at, i[:, None] + k * M < n * M)
        async_copy.commit_group()
    for k in range(n):
        ahead = k + S - 1
        inside = (i[:, None] >= 0) & (ahead < n)
        async_copy.async_load(buffers.index(ahead % S), x + ahead * M * N + at, inside)
        async_copy.commit_group()
        async_copy.wait_group(S - 1)
        gl.store(y + k * M * N + at, buffers.index(k % S).load(layout) * 2)
    async_copy.wait_group(0)


@gluon.jit
def arriving(x, y, M: gl.constexpr, N: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([1, 4], [4, 8], [4, 1], [1, 0])
    i = gl.arange(0, M, layout=gl.SliceLayout(1, layout))
    j = gl.arange(0, N, layout=gl.SliceLayout(0, layout))
    at = i[:, None] * N + j[None, :]
    buffer = gl.allocate_shared_memory(gl.float32, [M, N], gl.SwizzledSharedLayout(1, 1, 1, [1, 0]))
    bar = mbarrier.allocate_mbarrier()
    mbarrier.init(bar, count=1)
    async_copy.async_load(buffer, x + at, i[:, None] < M // 2)
    async_copy.mbarrier_arrive(bar)
    mbarrier.arrive(bar, count=1)
    mbarrier.wait(bar, 0)
    gl.store(y + at, buffer.load(layout))


@check
def copies_that_go_on(rng: np.random.Generator) -> None:
    x = rng.standard_normal((5, 32, 32), np.float32)
    for stages in (2, 3):
        y = np.zeros_like(x)
        pipelined[(1,)](x, y, 5, 32, 32, stages, num_warps=4)
        assert (y == 2 * x).all()
    y = np.ones_like(x[0])
    arriving[(1,)](x, y, 32, 32, num_warps=4)
    assert (y[:16] == x[0, :16]).all()
    assert not y[16:].any()


@gluon.jit
def moved(a, b, total):
    buffer = gl.allocate_shared_memory(a.dtype, a.block_shape, a.layout)
    bar = mbarrier.allocate_mbarrier()
    mbarrier.init(bar, count=1)
    row = gl.program_id(0) * a.block_shape[0]
    mbarrier.expect(bar, a.nbytes_per_cta)
    tma.async_load(a, [row, 8], bar, buffer)
    mbarrier.wait(bar, 0, deps=[buffer])
    mbarrier.invalidate(bar)
    tma.async_store(b, [row, 8], buffer)
    tma.async_atomic_add(total, [0, 0], buffer)
    tma.store_wait(0)


@gluon.jit
def made_and_moved(x, y, m, n, BLOCK: gl.constexpr, layout: gl.constexpr):
    a = tma.make_tensor_descriptor(x, [m, n], [n, 1], [BLOCK, BLOCK], layout)
    rows = m.to(gl.int64) + (1 << 32)  # its low half counts
    b = tma.make_tensor_descriptor(y, [rows, n], [n, 1], [BLOCK, BLOCK], layout)
    buffer = gl.allocate_shared_memory(a.dtype, a.block_shape, layout)
    bars = mbarrier.allocate_mbarrier(batch=2)
    for k in gl.static_range(2):
        mbarrier.init(bars.index(k), count=1)
    for k in range(2):
        bar = bars.index(k)
        mbarrier.expect(bar, a.block_type.nbytes)
        tma.async_load(a, [k * BLOCK, 0], bar, buffer)
        mbarrier.wait(bar, 0)
        tma.async_store(b, [k * BLOCK, 0], buffer)
        tma.store_wait(pendings=0)


@check
def blocks_by_tma(rng: np.random.Generator) -> None:
    cases = [(128, np.float16), (32, np.float16), (0, np.float16), (64, np.float32)]
    for swizzle, dtype in some(cases):
        layout = gl.NVMMASharedLayout(swizzle, 8 * np.dtype(dtype).itemsize)
        a = rng.integers(-9, 9, (100, 72)).astype(dtype)
        b, total = np.zeros_like(a), np.zeros((32, 64), dtype)
        arrays = (TensorDescriptor.from_tensor(x, [32, 64], layout) for x in (a, b, total))
        moved[(4,)](*arrays, num_warps=4)
        assert (b[:, 8:] == a[:, 8:]).all()
        assert not b[:, :8].any()
        blocks = np.zeros((128, 64), dtype)
        blocks[:100] = a[:, 8:]
        assert (total == blocks.reshape(4, 32, 64).sum(0)).all()
        y = np.zeros((64, 32), dtype)
        x = rng.integers(-9, 9, y.shape).astype(dtype)
        made_and_moved[(1,)](x, y, 64, 32, 32, gl.NVMMASharedLayout(32, layout.element_bitwidth),
                             num_warps=4)  # fmt: skip
        assert (x == y).all()


@check
def blocks_rounded_to_tf32(rng: np.random.Generator) -> None:
    layout = gl.NVMMASharedLayout(128, 32)
    a = rng.standard_normal((100, 72), np.float32)
    b, total = np.zeros_like(a), np.zeros((128, 64), np.float32)
    given = (
        TensorDescriptor.from_tensor(x, [128, 64], layout, "zero", x is a) for x in (a, b, total)
    )
    moved[(1,)](*given, num_warps=4)
    assert (b[:, 8:] == nearest_tf32(a[:, 8:])).all()
    assert (total[:100] == b[:, 8:]).all()
    assert not total[100:].any()


@gluon.jit
def signalled(x, y, n, M: gl.constexpr, N: gl.constexpr, layout: gl.constexpr):
    """Blocks go by memory to threads that hold them otherwise."""
    own: gl.constexpr = gl.BlockedLayout([1, 4], [4, 8], [4, 1], [1, 0])
    other: gl.constexpr = gl.BlockedLayout([2, 1], [8, 4], [1, 4], [0, 1])
    i = gl.arange(0, M, layout=gl.SliceLayout(1, own))[:, None]
    j = gl.arange(0, N, layout=gl.SliceLayout(0, own))[None, :]
    p = gl.arange(0, M, layout=gl.SliceLayout(1, other))[:, None]
    q = gl.arange(0, N, layout=gl.SliceLayout(0, other))[None, :]
    memory = gl.allocate_shared_memory(gl.float32, [M, N], layout)
    bar = mbarrier.allocate_mbarrier()
    mbarrier.init(bar, count=1)
    for k in range(n):
        mbarrier.expect(bar, memory.nbytes_per_cta)
        async_store(memory, gl.load(x + (k * M + i) * N + j), bar)
        mbarrier.wait(bar, k & 1)
        gl.store(y + (k * M + p) * N + q, memory.load(other))


@gluon.jit
def signals(x, ready, empty, memory, n):
    layout: gl.constexpr = gl.BlockedLayout([1], [32], [2], [0])
    for k in range(n):
        mbarrier.wait(empty, k & 1 ^ 1)
        mbarrier.expect(ready, memory.nbytes_per_cta)
        at = k * memory.shape[0] + gl.arange(0, memory.shape[0], layout=layout)
        async_store(memory, gl.load(x + at), ready)


@gluon.jit
def hears(y, ready, empty, memory, n):
    layout: gl.constexpr = gl.BlockedLayout([2], [32], [4], [0])
    for k in range(n):
        mbarrier.wait(ready, k & 1)
        at = k * memory.shape[0] + gl.arange(0, memory.shape[0], layout=layout)
        gl.store(y + at, memory.load(layout) * 2)
        mbarrier.arrive(empty)


@gluon.jit
def signalled_by_roles(x, y, n, N: gl.constexpr):
    memory = gl.allocate_shared_memory(gl.int32, [N], gl.SwizzledSharedLayout(1, 1, 1, [0]))
    ready, empty = mbarrier.allocate_mbarrier(), mbarrier.allocate_mbarrier()
    mbarrier.init(ready, count=1)
    mbarrier.init(empty, count=1)
    gl.warp_specialize(
        [(hears, (y, ready, empty, memory, n)), (signals, (x, ready, empty, memory, n))], [2], [40]
    )


@check
def stores_that_signal(rng: np.random.Generator) -> None:
    """In one block of threads, which has all of a cluster."""
    layouts = [gl.NVMMASharedLayout(64, 32), gl.SwizzledSharedLayout(1, 1, 1, [1, 0])]
    for layout, num_ctas in some([(layout, n) for layout in layouts for n in (1, 2)]):
        x = rng.standard_normal((3 * 32, 64), np.float32)
        y = np.zeros_like(x)
        signalled[(1,)](x, y, 3, 32, 64, layout, num_warps=4, num_ctas=num_ctas)
        assert (x == y).all()
        x = rng.integers(-99, 99, (5, 256), np.int32)
        y = np.zeros_like(x)
        signalled_by_roles[(1,)](x, y, 5, 256, num_warps=4, num_ctas=num_ctas)
        assert (y == 2 * x).all()


@gluon.jit
def extrema(low, high, x, N: gl.constexpr):
    at = gl.arange(0, N, layout=gl.BlockedLayout([1], [32], [4], [0]))
    buffer = gl.allocate_shared_memory(low.dtype, [N], low.layout, gl.load(x + at))
    fence_async_shared()
    tma.async_atomic_min(low, [0], buffer)
    tma.async_atomic_max(high, [0], buffer)
    tma.store_wait(0)


@check
def extrema_by_tma(rng: np.random.Generator) -> None:
    for dtype in (np.int32, np.uint32):
        x, low, high = rng.integers(0, 1 << 32, (3, 128)).astype(dtype)
        wanted = np.minimum(low, x), np.maximum(high, x)
        layout = gl.NVMMASharedLayout(0, 32, 1)
        arrays = (TensorDescriptor.from_tensor(array, [128], layout) for array in (low, high))
        extrema[(1,)](*arrays, x, 128, num_warps=4)
        assert (low == wanted[0]).all()
        assert (high == wanted[1]).all()


@gluon.jit
def brought(x_desc, y, places: gl.constexpr, S: gl.constexpr, N: gl.constexpr):
    flat = gl.arange(0, N, layout=gl.BlockedLayout([1], [32], [4], [0]))
    buffers = gl.allocate_shared_memory(x_desc.dtype, [S, *x_desc.block_type.shape], x_desc.layout)
    bars = mbarrier.allocate_mbarrier(batch=S)
    for k in gl.static_range(S):
        mbarrier.init(bars.index(k), count=1)
    for k in gl.static_range(len(places)):
        buffer, bar = buffers.index(k % S), bars.index(k % S)
        mbarrier.expect(bar, x_desc.block_type.nbytes)
        tma.async_load(x_desc, places[k], bar, buffer)
        mbarrier.wait(bar, k // S & 1)
        gl.store(y + k * N + flat, buffer.reshape([N]).load(flat.type.layout))
        fence_async_shared()


@check
def rows_by_tma(rng: np.random.Generator) -> None:
    """Blocks of one row, of several boxes; others whose swizzle leaves rows where they are."""
    cases = [((256,), 0), ((512,), 0), ((1, 64), 0), ((2, 64), 0), ((4, 16), 32), ((1, 2, 64), 0)]
    for block, swizzle in some(cases):
        shape = [3 * size - 1 for size in block[:-1]] + [2 * block[-1] + 8]
        x = rng.integers(-99, 99, shape).astype(np.float16)
        layout = gl.NVMMASharedLayout(swizzle, 16, len(block))
        firsts = rng.integers(0, block, (3, len(block)))
        firsts[:, -1] &= -8  # rows begin at multiples of 16 bytes
        places = tuple(map(tuple, firsts.tolist()))
        y = np.zeros((3, *block), np.float16)
        brought[(1,)](
            TensorDescriptor.from_tensor(x, list(block), layout), y, places, 2, y[0].size,
            num_warps=4,
        )  # fmt: skip
        for place, found in zip(places, y, strict=True):
            part = tuple(slice(a, a + size) for a, size in zip(place, block, strict=True))
            assert (found == x[part]).all(), (block, swizzle, place)


@gluon.jit
def turned(x_desc, y_desc, shape: gl.constexpr):
    """The parts of a matrix, the last first: each is a block of several boxes."""
    M: gl.constexpr = x_desc.block_type.shape[0]
    N: gl.constexpr = x_desc.block_type.shape[1]
    whole = gl.allocate_shared_memory(x_desc.dtype, shape, x_desc.layout)
    bar = mbarrier.allocate_mbarrier()
    mbarrier.init(bar, count=1)
    mbarrier.expect(bar, whole.type.nbytes_per_cta)
    for i in gl.static_range(shape[0] // M):
        for j in gl.static_range(shape[1] // N):
            part = whole.slice(i * M, M).slice(j * N, N, dim=1)
            tma.async_load(x_desc, [shape[0] - (i + 1) * M, shape[1] - (j + 1) * N], bar, part)
    mbarrier.wait(bar, 0)
    for i in gl.static_range(shape[0] // M):
        for j in gl.static_range(shape[1] // N):
            part = whole.slice(i * M, M).slice(j * N, N, dim=1)
            tma.async_store(y_desc, [i * M, j * N], part)
    tma.store_wait(0)


@check
def parts_of_memory_by_tma(rng: np.random.Generator) -> None:
    layout = gl.NVMMASharedLayout(128, 32, rank=2)
    for shape, block in some([([64, 64], [32, 64]), ([32, 128], [16, 64]), ([32, 64], [8, 32])]):
        x = rng.standard_normal(shape, np.float32)
        y = np.zeros_like(x)
        descs = (TensorDescriptor.from_tensor(array, block, layout) for array in (x, y))
        turned[(1,)](*descs, tuple(shape), num_warps=4)
        (m, n), (rows, columns) = block, shape
        parts = x.reshape(rows // m, m, columns // n, n)[::-1, :, ::-1]
        assert (y == parts.reshape(shape)).all(), (shape, block)


# Dots


@gluon.jit
def multiplied(
    a, b, c, M: gl.constexpr, N: gl.constexpr, K: gl.constexpr, acc_layout: gl.constexpr,
    a_memory: gl.constexpr, b_memory: gl.constexpr, acc_dtype: gl.constexpr,
    IN_REGISTERS: gl.constexpr, ASYNC: gl.constexpr, MOST: gl.constexpr = None,
):  # fmt: skip
    warps: gl.constexpr = gl.num_warps()
    layout: gl.constexpr = gl.BlockedLayout([1, 4], [4, 8], [warps, 1], [1, 0])
    dtype: gl.constexpr = a.dtype.element_ty
    at = gl.arange(0, M)[:, None] * K + gl.arange(0, K)[None, :]
    bt = gl.arange(0, K)[:, None] * N + gl.arange(0, N)[None, :]
    left = gl.load(gl.set_auto_layout(a + at, layout))
    right = gl.load(gl.set_auto_layout(b + bt, layout))
    b_smem = gl.allocate_shared_memory(dtype, [K, N], b_memory, right)
    if IN_REGISTERS:
        width: gl.constexpr = 32 // dtype.primitive_bitwidth
        a_side = gl.convert_layout(left, gl.DotOperandLayout(0, acc_layout, width))
    else:
        a_side = gl.allocate_shared_memory(dtype, [M, K], a_memory, left)
    fence_async_shared()
    acc = gl.full([M, N], 64, acc_dtype, acc_layout)
    acc = warpgroup_mma(
        a_side, b_smem, acc, use_acc=gl.num_programs(0) > 1, max_num_imprecise_acc=MOST,
        is_async=ASYNC,
    )  # fmt: skip
    if ASYNC:
        acc = warpgroup_mma_wait(0, deps=[acc])
    acc = warpgroup_mma(a_side, b_smem, acc)
    ct = gl.arange(0, M)[:, None] * N + gl.arange(0, N)[None, :]
    gl.store(c + ct, acc)


def _core_matrices(rows: int, columns: int, bits: int, axis: int | None = None) -> Any:
    """Memory without a swizzle, as `wgmma` takes it: 16 bytes, all rows, then the next 16 bytes. In
    that of two blocks of a cluster the second one has the other half along `axis`."""
    if axis is not None:
        half = [rows >> (axis == 0), columns >> (axis == 1)]
        other = [size if a == axis else 0 for a, size in enumerate(half)]
        return gl.SharedLinearLayout(_core_matrices(*half, bits).offset_bases, [other])
    chunk = 128 // bits
    inner = [[0, 1 << b] for b in range(chunk.bit_length() - 1)]
    down = [[1 << b, 0] for b in range(rows.bit_length() - 1)]
    across = [[0, chunk << b] for b in range((columns // chunk).bit_length() - 1)]
    return gl.SharedLinearLayout(inner + down + across)


def _numbers(rng: np.random.Generator, shape: tuple[int, int], dtype: Any) -> tuple[Any, Any]:
    """(an argument, its numbers)."""
    if dtype == gl.float8e4nv:  # 0 to 1.875, the steps of one exponent
        bits = rng.integers(56, 64, shape, np.uint8)
        return proton.reinterpret(bits, dtype), 1 + (bits - 56) / 8
    if dtype == gl.bfloat16:
        bits = rng.integers(0x3F80, 0x4080, shape, np.uint16)
        return proton.reinterpret(bits, dtype), (bits.astype(np.uint32) << 16).view(np.float32)
    kinds = {gl.float16: np.float16, gl.float32: np.float32, gl.int8: np.int8}
    array = rng.integers(-8, 8, shape).astype(kinds[dtype])
    return array, array


@check
def dots_of_warp_groups(rng: np.random.Generator) -> None:
    f16, f32 = gl.float16, gl.float32
    rows: list[tuple[Any, ...]] = [  # dtype, of sums, (m, n, k), warps, swizzles, registers, async
        (f16, f32, (64, 64, 64), [4, 1], (128, 128), False, False),
        (f16, f32, (128, 64, 32), [8, 1], (32, 64), True, True),
        (f16, f32, (64, 128, 64), [4, 2], (128, 32), False, False),
        (f16, f32, (128, 32, 32), [4, 1], (0, 0), False, False),
        (f16, f32, (128, 128, 32), [4, 1], None, False, False),
        (f16, f32, (64, 64, 32), [8, 1], (64, 128), False, True),  # two groups hold one result
        (f16, f32, (64, 32, 32), [8, 1], (64, 64), True, False),
    ]
    others: list[tuple[Any, ...]] = [
        (f16, f16, (64, 32, 32), [4, 1], (64, 64), False, True),
        (gl.bfloat16, f32, (64, 64, 32), [4, 1], (64, 128), True, False),
        (f32, f32, (64, 32, 32), [4, 1], (128, 64), False, False),
        (gl.int8, gl.int32, (64, 32, 64), [4, 1], (64, 64), False, False),
        (gl.float8e4nv, f32, (64, 64, 128), [4, 1], (128, 128), False, True),
        (gl.float8e4nv, f32, (64, 64, 128), [4, 1], (128, 128), False, False, 64),
    ]
    for dtype, acc, (m, n, k), warps, swizzles, *how in [*some(rows), *others]:
        bits = dtype.primitive_bitwidth
        result = gl.NVMMADistributedLayout([3, 0], warps, [16, min(n // warps[1], 64), 256 // bits])
        k_major = bits != 16  # other elements lie along the inner dimension
        if swizzles is None:
            memories = [_core_matrices(m, k, bits, 0), _core_matrices(k, n, bits, 1)]
        elif not swizzles[0]:
            memories = [_core_matrices(m, k, bits), _core_matrices(k, n, bits)]
        else:
            memories = [gl.NVMMASharedLayout(swizzles[0], bits),
                        gl.NVMMASharedLayout(swizzles[1], bits, transposed=k_major)]  # fmt: skip
        a, left = _numbers(rng, (m, k), dtype)
        b, right = _numbers(rng, (k, n), dtype)
        kind = {gl.float16: np.float16, gl.int32: np.int32}.get(acc, np.float32)
        for grid in (1, 2):
            c = np.zeros((m, n), kind)
            multiplied[(grid,)](a, b, c, m, n, k, result, *memories, acc, *how,
                                num_warps=warps[0] * warps[1])  # fmt: skip
            wanted = 2 * (left.astype(np.float64) @ right.astype(np.float64)) + 64 * (grid > 1)
            np.testing.assert_allclose(c, wanted, rtol=1e-2, atol=1e-3)


@gluon.jit
def summed_halves(
    a, b, c, M: gl.constexpr, N: gl.constexpr, K: gl.constexpr, memory: gl.constexpr,
    b_memory: gl.constexpr,
):  # fmt: skip
    result: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, N, 16])
    layout: gl.constexpr = gl.BlockedLayout([1, 4], [4, 8], [4, 1], [1, 0])
    at = gl.arange(0, 2 * M)[:, None] * K + gl.arange(0, K)[None, :]
    bt = gl.arange(0, K)[:, None] * N + gl.arange(0, N)[None, :]
    left = gl.load(gl.set_auto_layout(a + at, layout))
    right = gl.load(gl.set_auto_layout(b + bt, layout))
    whole = gl.allocate_shared_memory(gl.float16, [2 * M, K], memory, left)
    b_smem = gl.allocate_shared_memory(gl.float16, [K, N], b_memory, right)
    fence_async_shared()
    acc = gl.zeros([M, N], gl.float32, result)
    for half in gl.static_range(2):
        acc = warpgroup_mma(whole.slice(half * M, M), b_smem, acc)
    gl.store(c + gl.arange(0, M)[:, None] * N + gl.arange(0, N)[None, :], acc)


@check
def dots_of_parts_of_memory(rng: np.random.Generator) -> None:
    m, n, k = 64, 32, 32
    a, b = (rng.integers(-8, 8, shape).astype(np.float16) for shape in ((2 * m, k), (k, n)))
    b_memory = gl.NVMMASharedLayout(64, 16)
    for memory in (gl.NVMMASharedLayout(64, 16), _core_matrices(2 * m, k, 16)):
        c = np.zeros((m, n), np.float32)
        summed_halves[(1,)](a, b, c, m, n, k, memory, b_memory, num_warps=4)
        assert (c == (a[:m] + a[m:]).astype(np.float32) @ b.astype(np.float32)).all(), memory


@gluon.jit
def in_turns(a, c, before, D: gl.constexpr, steps):
    """A matrix in one of two buffers that are no matrices, behind 16400 bytes of others."""
    result: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, D, 16])
    rows: gl.constexpr = gl.BlockedLayout([1, 4], [4, 8], [4, 1], [1, 0])
    row: gl.constexpr = gl.BlockedLayout([1], [32], [4], [0])
    flat: gl.constexpr = gl.SwizzledSharedLayout(1, 1, 1, [0])
    at = gl.arange(0, D)[:, None] * D + gl.arange(0, D)[None, :]
    first = gl.allocate_shared_memory(gl.int32, [1025, 4], flat)
    first.index(1).store(gl.full([4], 7, gl.int32, row))
    one = gl.allocate_shared_memory(gl.float16, [D * D], flat)
    other = gl.allocate_shared_memory(gl.float16, [D * D], flat)
    acc = gl.zeros([D, D], gl.float32, result)
    for _ in range(steps):
        matrix = one.reinterpret(gl.float16, [D, D], gl.NVMMASharedLayout(128, 16))
        matrix.store(gl.load(gl.set_auto_layout(a + at, rows)))
        fence_async_shared()
        acc = warpgroup_mma(matrix, matrix, acc)
        one, other = other, one
    gl.store(c + at, acc)
    gl.store(before + gl.arange(0, 4, layout=row), first.index(1).load(row))


@check
def dots_of_buffers_that_loops_carry(rng: np.random.Generator) -> None:
    a = rng.integers(-4, 4, (64, 64)).astype(np.float16)
    c, before = np.zeros((64, 64), np.float32), np.zeros(4, np.int32)
    in_turns[(1,)](a, c, before, 64, 3, num_warps=4)
    assert (c == 3 * (a.astype(np.float32) @ a.astype(np.float32))).all()
    assert (before == 7).all()


@gluon.jit
def by_each_warp(a, b, c, M: gl.constexpr, N: gl.constexpr, K: gl.constexpr, layout: gl.constexpr,
                 WIDTH: gl.constexpr, BY_THREADS: gl.constexpr):  # fmt: skip
    at = gl.arange(0, M)[:, None] * K + gl.arange(0, K)[None, :]
    bt = gl.arange(0, K)[:, None] * N + gl.arange(0, N)[None, :]
    left = gl.load(gl.set_auto_layout(a + at, gl.DotOperandLayout(0, layout, WIDTH)))
    right = gl.load(gl.set_auto_layout(b + bt, gl.DotOperandLayout(1, layout, WIDTH)))
    acc = gl.full([M, N], 3, gl.float32, layout)
    acc = gl.dot_fma(left, right, acc) if BY_THREADS else mma_v2(left, right, acc)
    gl.store(c + gl.arange(0, M)[:, None] * N + gl.arange(0, N)[None, :], acc)


@check
def dots_of_warps_and_threads(rng: np.random.Generator) -> None:
    mma = [gl.NVMMADistributedLayout([2, 0], warps, [16, 8]) for warps in ([2, 2], [4, 1], [1, 4])]
    blocked = gl.BlockedLayout([2, 2], [4, 8], [2, 2], [1, 0])
    for layout, dtype, width, by_threads in (
        (mma[0], np.float16, 2, False), (mma[1], np.float16, 8, False),
        (mma[2], np.float32, 1, False), (blocked, np.float32, 0, True),
    ):  # fmt: skip
        a, b = (rng.integers(-8, 8, s).astype(dtype) for s in ((32, 32), (32, 32)))
        c = np.zeros((32, 32), np.float32)
        by_each_warp[(1,)](a, b, c, 32, 32, 32, layout, width, by_threads, num_warps=4)
        assert (c == 3 + a.astype(np.float32) @ b.astype(np.float32)).all()


@gluon.jit
def written_by_a_group(c, N: gl.constexpr, who: gl.constexpr):
    layout: gl.constexpr = gl.NVMMADistributedLayout([2, 0], [gl.num_warps(), 1], [16, 8])
    rows = who * N + gl.arange(0, N)[:, None]  # of the same numbers as the columns
    gl.store(c + rows * N + gl.arange(0, N)[None, :], gl.full([N, N], who, gl.int32, layout))


@gluon.jit
def written_by_groups(c, N: gl.constexpr):
    calls = [(written_by_a_group, (c, N, who)) for who in (0, 1, 2)]
    gl.warp_specialize(calls, [4, 8], [24, 24])  # none is idle


@check
def addresses_of_groups_of_other_sizes(rng: np.random.Generator) -> None:
    c = np.full((3, 64, 64), -1, np.int32)
    written_by_groups[(1,)](c, 64, num_warps=4)
    assert (c == np.arange(3)[:, None, None]).all()


@gluon.jit
def by_threads_in_batches(a, b, c, N: gl.constexpr, K: gl.constexpr, layout: gl.constexpr):
    batch = gl.arange(0, 4)[:, None, None]
    m, n, k = gl.arange(0, 16), gl.arange(0, N), gl.arange(0, K)
    at = batch * 16 * K + m[None, :, None] * K + k[None, None, :]
    bt = batch * K * N + k[None, :, None] * N + n[None, None, :]
    left = gl.load(gl.set_auto_layout(a + at, gl.DotOperandLayout(0, layout, 0)))
    right = gl.load(gl.set_auto_layout(b + bt, gl.DotOperandLayout(1, layout, 0)))
    acc = gl.dot_fma(left, right, gl.full([4, 16, N], 2, gl.float32, layout))
    gl.store(c + batch * 16 * N + m[None, :, None] * N + n[None, None, :], acc)


@check
def dots_in_batches(rng: np.random.Generator) -> None:
    layout = gl.BlockedLayout([1, 2, 2], [1, 4, 8], [2, 2, 1], [2, 1, 0])
    a, b = (rng.integers(-8, 8, s).astype(np.float32) for s in ((4, 16, 8), (4, 8, 32)))
    c = np.zeros((4, 16, 32), np.float32)
    by_threads_in_batches[(1,)](a, b, c, 32, 8, layout, num_warps=4)
    assert (c == 2 + a @ b).all()


@gluon.jit
def copied_for_two_groups(a, b, c, D: gl.constexpr, steps: gl.constexpr):
    layout: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [8, 1], [16, 64, 16])
    rows: gl.constexpr = gl.BlockedLayout([1, 8], [4, 8], [8, 1], [1, 0])
    left: gl.constexpr = gl.NVMMASharedLayout.get_default_for([2 * D, D], gl.float16)
    a_memory = gl.allocate_shared_memory(gl.float16, [2 * D, D], left)
    b_memory = gl.allocate_shared_memory(gl.float16, [D, D], left)
    i = gl.arange(0, 2 * D, layout=gl.SliceLayout(1, rows))[:, None]
    k = gl.arange(0, D, layout=gl.SliceLayout(1, rows))[:, None]
    j = gl.arange(0, D, layout=gl.SliceLayout(0, rows))[None, :]
    async_copy.async_load(a_memory, a + i * D + j)
    acc = gl.zeros([2 * D, D], gl.float32, layout)
    for step in range(steps):
        async_copy.async_load(b_memory, b + step * D * D + k * D + j)
        async_copy.commit_group()
        async_copy.wait_group(0)
        acc = warpgroup_mma(a_memory, b_memory, acc, is_async=True)
        acc = warpgroup_mma_wait(0, (acc,))
    gl.store(c + gl.arange(0, 2 * D)[:, None] * D + gl.arange(0, D)[None, :], acc)


@check
def copies_that_two_warp_groups_read(rng: np.random.Generator) -> None:
    a = rng.integers(-4, 4, (128, 64)).astype(np.float16)
    b = rng.integers(-4, 4, (3, 64, 64)).astype(np.float16)
    c = np.zeros((128, 64), np.float32)
    copied_for_two_groups[(1,)](a, b, c, 64, 3, num_warps=8)
    assert (c == (a.astype(np.float32) @ b).sum(0)).all()


@gluon.jit
def multiplied_at_times(a, b, c, steps, M: gl.constexpr, N: gl.constexpr):
    layout: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, N, 16])
    rows: gl.constexpr = gl.BlockedLayout([1, 8], [4, 8], [4, 1], [1, 0])
    i = gl.arange(0, M, layout=gl.SliceLayout(1, rows))[:, None]
    j = gl.arange(0, N, layout=gl.SliceLayout(0, rows))[None, :]
    k = gl.arange(0, M, layout=gl.SliceLayout(0, rows))[None, :]
    square: gl.constexpr = gl.NVMMASharedLayout.get_default_for([M, M], gl.float16)
    wide: gl.constexpr = gl.NVMMASharedLayout.get_default_for([M, N], gl.float16)
    a_memory = gl.allocate_shared_memory(gl.float16, [M, M], square, gl.load(a + i * M + k))
    b_memory = gl.allocate_shared_memory(gl.float16, [M, N], wide, gl.load(b + i * N + j))
    fence_async_shared()
    often = gl.zeros([M, N], gl.float32, layout)
    seldom = gl.zeros([M, N], gl.float32, layout)
    for step in range(steps):
        if step > 0:
            often = warpgroup_mma(a_memory, b_memory, often)
            if step % 3 == 1:
                seldom = warpgroup_mma(a_memory, b_memory, seldom)
    at = gl.arange(0, M)[:, None] * N + gl.arange(0, N)[None, :]
    gl.store(c + at, often)
    gl.store(c + M * N + at, seldom)


@check
def sums_under_conditions(rng: np.random.Generator) -> None:
    a = rng.integers(-4, 4, (64, 64)).astype(np.float16)
    b = rng.integers(-4, 4, (64, 128)).astype(np.float16)
    product = a.astype(np.float32) @ b
    for steps, often, seldom in ((0, 0, 0), (2, 1, 1), (6, 5, 2)):
        c = np.full((2, 64, 128), np.nan, np.float32)
        kernel = multiplied_at_times[(1,)](a, b, c, steps, 64, 128)
        assert (c == np.stack([often * product, seldom * product])).all()
        # Neither product is there twice, for a first iteration that LLVM took out of the loop.
        if "ptx" in kernel.asm:
            assert kernel.asm["ptx"].count("wgmma.mma_async") == 2 * 4


# Pipelines and partitions


@gluon.jit
def matmul(
    a_desc, b_desc, c_desc, BM: gl.constexpr, BN: gl.constexpr, BK: gl.constexpr, S: gl.constexpr
):
    a_buffers = gl.allocate_shared_memory(
        a_desc.dtype, [S, *a_desc.block_type.shape], a_desc.layout
    )
    b_buffers = gl.allocate_shared_memory(
        b_desc.dtype, [S, *b_desc.block_type.shape], b_desc.layout
    )
    ready = mbarrier.allocate_mbarrier(batch=S)
    for k in gl.static_range(S):
        mbarrier.init(ready.index(k), count=1)
    row, column = gl.program_id(0) * BM, gl.program_id(1) * BN
    K = a_desc.shape[1]
    layout: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, BN, 16])
    acc = warpgroup_mma_init(gl.zeros((BM, BN), gl.float32, layout))
    for k in gl.static_range(S - 2):
        _load(a_desc, b_desc, row, column, k, ready, a_buffers, b_buffers, BK, S)
    for k in range(gl.cdiv(K, BK)):
        ahead = k + S - 2
        if ahead * BK < K:
            _load(a_desc, b_desc, row, column, ahead, ready, a_buffers, b_buffers, BK, S)
        mbarrier.wait(ready.index(k % S), k // S & 1)
        total = warpgroup_mma_wait(0, deps=(acc,))
        acc = warpgroup_mma(a_buffers.index(k % S), b_buffers.index(k % S), total, is_async=True)
    total = warpgroup_mma_wait(0, deps=(acc,))
    out = gl.allocate_shared_memory(c_desc.dtype, c_desc.block_type.shape, c_desc.layout)
    out.store(total.to(c_desc.dtype))
    fence_async_shared()
    tma.async_store(c_desc, [row, column], out)
    tma.store_wait(0)


@gluon.jit
def _load(
    a_desc, b_desc, row, column, k, ready, a_buffers, b_buffers, BK: gl.constexpr, S: gl.constexpr
):
    bar = ready.index(k % S)
    mbarrier.expect(bar, a_desc.block_type.nbytes + b_desc.block_type.nbytes)
    tma.async_load(a_desc, [row, k * BK], bar, a_buffers.index(k % S))
    tma.async_load(b_desc, [k * BK, column], bar, b_buffers.index(k % S))


@check
def a_pipelined_matmul(rng: np.random.Generator) -> None:
    _check_matmul(rng, lambda *arrays: matmul[(2, 2)](*arrays, 64, 64, 32, 3, num_warps=4))


def _check_matmul(rng: np.random.Generator, launch: Callable[..., object]) -> None:
    m, n, k = 128, 128, 160
    a, b = (rng.standard_normal(s, np.float32).astype(np.float16) for s in ((m, k), (k, n)))
    c = np.zeros((m, n), np.float16)
    launch(described(a, [64, 32]), described(b, [32, 64]), described(c, [64, 64]))
    wanted = a.astype(np.float32) @ b.astype(np.float32)
    np.testing.assert_allclose(c, wanted, rtol=1e-2, atol=3e-2)


@gluon.aggregate
class Channel:
    """Buffers of two operands, and the barriers of their slots."""

    a: gl.shared_memory_descriptor
    b: gl.shared_memory_descriptor
    ready: gl.shared_memory_descriptor
    empty: gl.shared_memory_descriptor
    slots: gl.constexpr

    @gluon.constexpr_function
    def __init__(self, a, b, ready, empty, slots):
        self.a, self.b, self.ready, self.empty = a, b, ready, empty
        self.slots = gl.constexpr(slots)

    @gluon.jit
    def slot(self, k):
        return k % self.slots, k // self.slots & 1


@gluon.jit
def produce(channel, a_desc, b_desc, row, column, BK: gl.constexpr):
    for k in range(gl.cdiv(a_desc.shape[1], BK)):
        slot, phase = channel.slot(k)
        with proton.scope("empty"):
            mbarrier.wait(channel.empty.index(slot), phase ^ 1)
        with proton.scope("fill"):
            bar = channel.ready.index(slot)
            mbarrier.expect(bar, a_desc.block_type.nbytes + b_desc.block_type.nbytes)
            tma.async_load(a_desc, [row, k * BK], bar, channel.a.index(slot))
            tma.async_load(b_desc, [k * BK, column], bar, channel.b.index(slot))


@gluon.jit
def consume(channel, steps, BM: gl.constexpr, BN: gl.constexpr):
    layout: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [gl.num_warps(), 1], [16, BN, 16])
    acc = gl.zeros((BM, BN), gl.float32, layout)
    for k in range(steps):
        slot, phase = channel.slot(k)
        with proton.scope("ready"):
            mbarrier.wait(channel.ready.index(slot), phase)
        with proton.scope("multiply"):
            acc = warpgroup_mma(channel.a.index(slot), channel.b.index(slot), acc)
        mbarrier.arrive(channel.empty.index(slot), count=1)
    return acc


@gluon.jit
def specialized(
    a_desc, b_desc, c_desc, BM: gl.constexpr, BN: gl.constexpr, BK: gl.constexpr, S: gl.constexpr
):
    a = gl.allocate_shared_memory(a_desc.dtype, [S, *a_desc.block_type.shape], a_desc.layout)
    b = gl.allocate_shared_memory(b_desc.dtype, [S, *b_desc.block_type.shape], b_desc.layout)
    channel = Channel(
        a, b, mbarrier.allocate_mbarrier(batch=S), mbarrier.allocate_mbarrier(batch=S), S
    )
    for k in gl.static_range(S):
        mbarrier.init(channel.ready.index(k), count=1)
        mbarrier.init(channel.empty.index(k), count=1)
    row, column = gl.program_id(0) * BM, gl.program_id(1) * BN
    steps = gl.cdiv(a_desc.shape[1], BK)
    acc = gl.warp_specialize(
        [
            (consume, (channel, steps, BM, BN)),
            (produce, (channel, a_desc, b_desc, row, column, BK)),
        ],
        [1],
        [24],
    )
    with proton.scope("store"):
        out = gl.allocate_shared_memory(c_desc.dtype, c_desc.block_type.shape, c_desc.layout)
        out.store(acc.to(c_desc.dtype))
        fence_async_shared()
        tma.async_store(c_desc, [row, column], out)
        tma.store_wait(0)


@check
def a_matmul_by_roles(rng: np.random.Generator) -> None:
    _check_matmul(rng, lambda *arrays: specialized[(2, 2)](*arrays, 64, 64, 32, 2, num_warps=4))


@gluon.jit
def fetch(x_desc, x_buffers, ready, empty, n, B: gl.constexpr, S: gl.constexpr):
    for k in range(n):
        mbarrier.wait(empty.index(k % S), (k // S & 1) ^ 1)
        mbarrier.expect(ready.index(k % S), x_desc.block_type.nbytes)
        tma.async_load(x_desc, [0, k * B], ready.index(k % S), x_buffers.index(k % S))


@gluon.jit
def put(y_desc, y_buffers, ready, empty, n, B: gl.constexpr, S: gl.constexpr):
    for k in range(n):
        mbarrier.wait(ready.index(k % S), k // S & 1)
        tma.async_store(y_desc, [0, k * B], y_buffers.index(k % S))
        tma.store_wait(S - 1)
        mbarrier.arrive(empty.index((k - S + 1) % S), count=1, pred=k >= S - 1)
    tma.store_wait(0)


@gluon.jit
def doubled(x_buffers, y_buffers, bars, n, S: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([1, 1], [1, 32], [1, gl.num_warps()], [1, 0])
    x_ready, x_empty, y_ready, y_empty = bars
    for k in range(n):
        slot, phase = k % S, k // S & 1
        mbarrier.wait(x_ready.index(slot), phase)
        value = x_buffers.index(slot).load(layout)
        fence_async_shared()
        mbarrier.arrive(x_empty.index(slot), count=1)
        mbarrier.wait(y_empty.index(slot), phase ^ 1)
        y_buffers.index(slot).store(value * 2)
        fence_async_shared()
        mbarrier.arrive(y_ready.index(slot), count=1)


@gluon.jit
def three_roles(x_desc, y_desc, n, B: gl.constexpr, S: gl.constexpr):
    x_buffers = gl.allocate_shared_memory(
        x_desc.dtype, [S, *x_desc.block_type.shape], x_desc.layout
    )
    y_buffers = gl.allocate_shared_memory(
        y_desc.dtype, [S, *y_desc.block_type.shape], y_desc.layout
    )
    bars = gl.allocate_shared_memory(gl.int64, [4 * S, 1], mbarrier.MBarrierLayout())
    for k in gl.static_range(4 * S):
        mbarrier.init(bars.index(k), count=1)
    own = (bars.slice(0, S), bars.slice(S, S), bars.slice(2 * S, S), bars.slice(3 * S, S))
    gl.warp_specialize(
        [
            (doubled, (x_buffers, y_buffers, own, n, S)),
            (fetch, (x_desc, x_buffers, own[0], own[1], n, B, S)),
            (put, (y_desc, y_buffers, own[2], own[3], n, B, S)),
        ],
        [1, 1],
        [24, 24],
    )


@check
def three_roles_in_a_row(rng: np.random.Generator) -> None:
    x = rng.standard_normal((32, 64 * 5), np.float32)
    for slots, warps in ((1, 4), (2, 8)):
        y = np.zeros_like(x)
        arrays = (described(array, [32, 64], gl.float32) for array in (x, y))
        three_roles[(1,)](*arrays, 5, 64, slots, num_warps=warps, maxnreg=128)
        assert (y == 2 * x).all()


@gluon.jit
def attention(
    q_desc, k_desc, v_desc, out, n, scale, BM: gl.constexpr, BN: gl.constexpr, D: gl.constexpr
):
    q = gl.allocate_shared_memory(q_desc.dtype, q_desc.block_type.shape, q_desc.layout)
    k = gl.allocate_shared_memory(k_desc.dtype, k_desc.block_type.shape, k_desc.layout)
    v = gl.allocate_shared_memory(v_desc.dtype, v_desc.block_type.shape, v_desc.layout)
    bar = mbarrier.allocate_mbarrier()
    mbarrier.init(bar, count=1)
    s_layout: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, BN, 16])
    o_layout: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, D, 16])
    row = gl.program_id(0) * BM
    mbarrier.expect(bar, q_desc.block_type.nbytes)
    tma.async_load(q_desc, [row, 0], bar, q)
    mbarrier.wait(bar, 0)
    most = gl.full([BM], -float("inf"), gl.float32, gl.SliceLayout(1, s_layout))
    total = gl.zeros([BM], gl.float32, gl.SliceLayout(1, s_layout))
    acc = gl.zeros([BM, D], gl.float32, o_layout)
    phase = 1
    for start in range(0, n, BN):
        mbarrier.expect(bar, k_desc.block_type.nbytes + v_desc.block_type.nbytes)
        tma.async_load(k_desc, [start, 0], bar, k)
        tma.async_load(v_desc, [start, 0], bar, v)
        mbarrier.wait(bar, phase)
        phase ^= 1
        scores = warpgroup_mma(q, k.permute([1, 0]), gl.zeros([BM, BN], gl.float32, s_layout))
        scores = scores * scale
        larger = gl.maximum(most, gl.max(scores, 1))
        shrink = gl.exp2(most - larger)
        powers = gl.exp2(scores - larger[:, None])
        total = total * shrink + gl.sum(powers, 1)
        acc = acc * gl.convert_layout(shrink, gl.SliceLayout(1, o_layout))[:, None]
        left = gl.convert_layout(powers.to(v_desc.dtype), gl.DotOperandLayout(0, o_layout, 2))
        acc = warpgroup_mma(left, v, acc)
        most = larger
    acc = acc / gl.convert_layout(total, gl.SliceLayout(1, o_layout))[:, None]
    at = (row + gl.arange(0, BM)[:, None]) * D + gl.arange(0, D)[None, :]
    gl.store(out + at, acc)


@check
def a_small_attention(rng: np.random.Generator) -> None:
    m, n, d = 128, 96, 64
    q, k, v = (
        (rng.standard_normal((size, d), np.float32)).astype(np.float16) for size in (m, n, n)
    )
    out = np.zeros((m, d), np.float32)
    scale = 1.4426950408889634 / d**0.5
    arrays = [described(q, [64, d]), described(k, [32, d]), described(v, [32, d])]
    attention[(2,)](*arrays, out, n, scale, 64, 32, d, num_warps=4)
    powers = np.exp2(q.astype(np.float64) @ k.astype(np.float64).T * scale)
    wanted = powers @ v.astype(np.float64) / powers.sum(1, keepdims=True)
    np.testing.assert_allclose(out, wanted, rtol=2e-2, atol=2e-3)


# Persistent programs, and the state of dots in an aggregate


@gluon.constexpr_function
def layout_for(dtype, m, n, warps):
    return gl.NVMMADistributedLayout(
        version=[3, 0],
        warps_per_cta=[warps, 1],
        instr_shape=[16, min(n, 256), 256 // dtype.primitive_bitwidth],
    )


@gluon.aggregate
class Dots:
    acc: warpgroup_mma_accumulator | gl.tensor
    use_acc: gl.tensor

    @gluon.constexpr_function
    def __init__(self, acc, use_acc):
        self.acc = acc
        self.use_acc = use_acc

    @gluon.jit
    def begin(dtype: gl.constexpr, M: gl.constexpr, N: gl.constexpr, num_warps: gl.constexpr):
        layout: gl.constexpr = layout_for(dtype, M, N, num_warps)
        return Dots(gl.zeros((M, N), dtype=gl.float32, layout=layout), gl.to_tensor(False))

    @gluon.jit
    def issue(self, a, b):
        acc = warpgroup_mma(a, b, self.acc, is_async=True, use_acc=self.use_acc)
        return Dots(acc, gl.to_tensor(True))

    @gluon.jit
    def wait(self, n: gl.constexpr):
        return Dots(warpgroup_mma_wait(n, (self.acc,)), self.use_acc)

    @gluon.jit
    def take(self):
        return self.acc, Dots(self.acc, gl.to_tensor(False))


def grouped(size):
    G = gl.constexpr(size)

    @gluon.aggregate
    class Impl:
        start: gl.tensor
        tiles_m: gl.tensor
        in_group: gl.tensor
        tiles: gl.tensor

        @gluon.constexpr_function
        def __init__(self, start, tiles_m, in_group, tiles):
            self.start = start
            self.tiles_m = tiles_m
            self.in_group = in_group
            self.tiles = tiles

        @gluon.jit
        def begin(M, N, BM: gl.constexpr, BN: gl.constexpr):
            tm = gl.cdiv(M, BM)
            tn = gl.cdiv(N, BN)
            return Impl(gl.program_id(axis=0), tm, G * tn, tm * tn)

        @gluon.jit
        def count(self):
            return gl.cdiv(self.tiles - self.start, gl.num_programs(axis=0))

        @gluon.jit
        def tile(self, i):
            t = self.start + i * gl.num_programs(axis=0)
            group = t // self.in_group
            first = group * G
            size = min(self.tiles_m - first, G)
            return first + t % size, t % self.in_group // size

    Impl.__name__ = f"grouped({G.value})"
    return Impl


@gluon.jit
def fetched(
    producer,
    a_desc,
    b_desc,
    row,
    column,
    k,
    bars,
    a,
    b,
    steal: gl.constexpr,
    S: gl.constexpr,
    pred=True,
):
    i = producer % S
    j = producer % (S + steal)
    producer += 1
    bar = bars.index(i)
    mbarrier.expect(bar, a_desc.block_type.nbytes + b_desc.block_type.nbytes, pred=pred)
    tma.async_load(a_desc, [row, k], bar, a.index(i), pred)
    tma.async_load(b_desc, [k, column], bar, b.index(j), pred)
    return producer


@gluon.jit
def one_behind(consumer, mma, bars, a, b, steal: gl.constexpr, S: gl.constexpr):
    i = consumer % S
    j = consumer % (S + steal)
    phase = consumer // S & 1
    consumer += 1
    mbarrier.wait(bars.index(i), phase)
    mma = mma.wait(0)
    mma = mma.issue(a.index(i), b.index(j))
    return consumer, mma


@gluon.jit
def one_tile_after_another(
    a_desc,
    b_desc,
    c_desc,
    MMA: gl.constexpr,
    Tiles: gl.constexpr,
    S: gl.constexpr,
    num_warps: gl.constexpr,
):
    BM: gl.constexpr = c_desc.block_type.shape[0]
    BN: gl.constexpr = c_desc.block_type.shape[1]
    BK: gl.constexpr = a_desc.block_type.shape[1]
    dtype: gl.constexpr = a_desc.dtype
    K = a_desc.shape[1]
    bars = gl.allocate_shared_memory(gl.int64, [S, 1], mbarrier.MBarrierLayout())
    for i in gl.static_range(S):
        mbarrier.init(bars.index(i), count=1)
    producer = 0
    consumer = 0
    mma = MMA.begin(dtype, BM, BN, num_warps)
    tiles = Tiles.begin(c_desc.shape[0], c_desc.shape[1], BM, BN)
    for idx in range(tiles.count()):
        pm, pn = tiles.tile(idx)
        row = pm * BM
        column = pn * BN
        a = gl.allocate_shared_memory(dtype, [S, *a_desc.block_type.shape], a_desc.layout)
        b = gl.allocate_shared_memory(dtype, [S, *b_desc.block_type.shape], b_desc.layout)
        for k in gl.static_range(0, BK * (S - 2), BK):
            producer = fetched(producer, a_desc, b_desc, row, column, k, bars, a, b, 0, S)
        for k in range(BK * (S - 2), K, BK):
            producer = fetched(producer, a_desc, b_desc, row, column, k, bars, a, b, 0, S)
            consumer, mma = one_behind(consumer, mma, bars, a, b, 0, S)
        for _ in gl.static_range(S - 2):
            consumer, mma = one_behind(consumer, mma, bars, a, b, 0, S)
        mma = mma.wait(0)
        out = gl.allocate_shared_memory(dtype, c_desc.block_type.shape, c_desc.layout)
        c, mma = mma.take()
        out.store(c.to(dtype))
        fence_async_shared()
        tma.async_store(c_desc, [row, column], out)
        tma.store_wait(pendings=0)


@gluon.jit
def tiles_that_overlap(
    a_desc,
    b_desc,
    c_desc,
    MMA: gl.constexpr,
    Tiles: gl.constexpr,
    S: gl.constexpr,
    STEAL: gl.constexpr,
    num_warps: gl.constexpr,
):
    BM: gl.constexpr = c_desc.block_type.shape[0]
    BN: gl.constexpr = c_desc.block_type.shape[1]
    BK: gl.constexpr = a_desc.block_type.shape[1]
    dtype: gl.constexpr = a_desc.dtype
    K = a_desc.shape[1]
    a = gl.allocate_shared_memory(dtype, [S, *a_desc.block_type.shape], a_desc.layout)
    b = gl.allocate_shared_memory(dtype, [S + STEAL, *b_desc.block_type.shape], b_desc.layout)
    if not STEAL:
        out = gl.allocate_shared_memory(dtype, c_desc.block_type.shape, c_desc.layout)
    else:
        gl.static_assert(2 * BN * BK >= BM * BN, "too small")
    bars = gl.allocate_shared_memory(gl.int64, [S, 1], mbarrier.MBarrierLayout())
    for i in gl.static_range(S):
        mbarrier.init(bars.index(i), count=1)
    producer = 0
    consumer = 0
    mma = MMA.begin(dtype, BM, BN, num_warps)
    tiles = Tiles.begin(c_desc.shape[0], c_desc.shape[1], BM, BN)
    count = tiles.count()
    idx = 0
    pm, pn = tiles.tile(idx)
    row = pm * BM
    column = pn * BN
    for k in gl.static_range(0, BK * (S - 1), BK):
        producer = fetched(producer, a_desc, b_desc, row, column, k, bars, a, b, STEAL, S)
    for _ in range(count):
        consumer, mma = one_behind(consumer, mma, bars, a, b, STEAL, S)
        if STEAL:
            tma.store_wait(pendings=0)
        for k in range(BK * (S - 1), K, BK):
            producer = fetched(producer, a_desc, b_desc, row, column, k, bars, a, b, STEAL, S)
            consumer, mma = one_behind(consumer, mma, bars, a, b, STEAL, S)
        old_row = row
        old_column = column
        idx += 1
        pm, pn = tiles.tile(idx)
        row = pm * BM
        column = pn * BN
        pred = idx < count
        for k in gl.static_range(0, BK * (S - 2), BK):
            producer = fetched(producer, a_desc, b_desc, row, column, k, bars, a, b, STEAL, S, pred)
            consumer, mma = one_behind(consumer, mma, bars, a, b, STEAL, S)
        k = BK * (S - 2)
        producer = fetched(producer, a_desc, b_desc, row, column, k, bars, a, b, STEAL, S, pred)
        mma = mma.wait(0)
        c, mma = mma.take()
        c = c.to(dtype)
        if not STEAL:
            buf = out
            tma.store_wait(pendings=0)
        else:
            buf = b.index(producer % (S + STEAL)).reinterpret(
                dtype, c_desc.block_type.shape, c_desc.layout
            )
        buf.store(c)
        fence_async_shared()
        tma.async_store(c_desc, [old_row, old_column], buf)
    tma.store_wait(pendings=0)


@check
def tiles_one_after_another(rng: np.random.Generator) -> None:
    _check_matmul(
        rng,
        lambda *arrays: one_tile_after_another[(3,)](*arrays, Dots, grouped(2), 3, num_warps=4),
    )
    _check_matmul(  # the result lies in two buffers of b
        rng,
        lambda *arrays: tiles_that_overlap[(3,)](*arrays, Dots, grouped(8), 4, 1, num_warps=4),
    )


@check
def attention_by_three_roles(rng: np.random.Generator) -> None:
    heads, depth, columns = 2, 64, 64
    for length in (128, 256):
        shape = heads, length, depth
        q, k, v = (rng.standard_normal(shape).astype(np.float16) for _ in range(3))
        out = np.full_like(q, np.nan)
        blocks = zip((q, k, v, out), (64, columns, columns, 64), strict=True)
        given = [described(x.reshape(-1, depth), [rows, depth]) for x, rows in blocks]
        scale = np.log2(np.e) * depth**-0.5
        grid = length // 128, heads
        attention_specialized[grid](*given, length, scale, columns, 2, num_warps=4)
        scores = q.astype(np.float64) @ k.astype(np.float64).transpose(0, 2, 1) * depth**-0.5
        weights = np.exp(scores - scores.max(2, keepdims=True))
        want = weights / weights.sum(2, keepdims=True) @ v.astype(np.float64)
        np.testing.assert_allclose(out, want, atol=2e-3)
