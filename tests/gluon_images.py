"""Kernels in Gluon that copy pixels of images (im2col), and what numpy says of them: more of the
checks of `gluon_kernels.py`."""

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

import proton
from proton import gluon
from proton.gluon import language as gl
from proton.gluon.language.nvidia.hopper import (
    CachePolicy,
    FractionalEvictionPolicy,
    mbarrier,
    tma,
    warpgroup_mma,
)
from proton.gluon.nvidia.hopper import TensorDescriptor, TensorDescriptorIm2Col
from tests.draws import times
from tests.tf32 import nearest_tf32

FIRST = gl.constexpr(CachePolicy(l2=FractionalEvictionPolicy("evict_first", 0.5)))
CHECKS: dict[str, Callable[[np.random.Generator], None]] = {}


def check(function: Callable[[np.random.Generator], None]) -> None:
    """Adds a check to the list, by its name."""
    CHECKS[function.__name__] = function


# Copies


@gluon.jit
def copied(desc, y, at, offsets: gl.constexpr, moves, P: gl.constexpr, C: gl.constexpr):
    """Pixels by constant offsets, and behind them by others that are computed."""
    first = gl.allocate_shared_memory(desc.dtype, [P, C], desc.layout)
    second = gl.allocate_shared_memory(desc.dtype, [P, C], desc.layout)
    bar = mbarrier.allocate_mbarrier()
    mbarrier.init(bar, count=1)
    mbarrier.expect(bar, 2 * desc.block_type.nbytes)
    tma.async_load_im2col(desc, at, offsets, bar, first)
    computed = ()
    for move in gl.static_range(len(moves)):
        computed += (moves[move].to(gl.int16),)
    tma.async_load_im2col(desc, at, computed, bar, second)
    mbarrier.wait(bar, 0)
    layout: gl.constexpr = gl.BlockedLayout([1, 4], [4, 8], [4, 1], [1, 0])
    i = gl.arange(0, P, layout=gl.SliceLayout(1, layout))[:, None]
    j = gl.arange(0, C, layout=gl.SliceLayout(0, layout))[None, :]
    gl.store(y + i * C + j, first.load(layout))
    gl.store(y + (P + i) * C + j, second.load(layout))


Pixel = tuple[int, ...]


def walked(first: Pixel, ends: Sequence[tuple[int, int]], steps: Sequence[int]) -> Iterator[Pixel]:
    """The pixels (n, d, h, w) from `first` on, W fastest; both ends are in the bounding box."""
    for _ in itertools.count():
        yield first
        moved = list(first)
        for axis in reversed(range(1, len(first))):
            moved[axis] += steps[axis - 1]
            if moved[axis] <= ends[axis - 1][1]:
                break
            moved[axis] = ends[axis - 1][0]
        else:
            moved[0] += 1
        first = tuple(moved)


def gathered(
    x: np.ndarray, pixels: Sequence[Pixel], offsets: Sequence[int], channel: int, count: int
) -> tuple[np.ndarray, np.ndarray]:
    """The channels of pixels of `x`, and which of them the images have."""
    found, inside = np.zeros((len(pixels), count), x.dtype), np.zeros((len(pixels), count), bool)
    begin, end = max(0, channel), min(channel + count, x.shape[-1])
    for row, (number, *place) in enumerate(pixels):
        at = (number, *(a + b for a, b in zip(place, offsets, strict=True)))
        if begin < end and all(0 <= a < n for a, n in zip(at, x.shape, strict=False)):
            found[row, begin - channel : end - channel] = x[at][begin:end]
            inside[row, begin - channel : end - channel] = True
    return found, inside


_BITS = {"float16": 16, "bfloat16": 16, "float32": 32, "int8": 8, "int16": 16, "int32": 32,
         "float8e4nv": 8, "uint8": 8, "float64": 64}  # fmt: skip


def _drawn(rng: np.random.Generator, number: int, *, on_steps: bool) -> None:
    """Random images, and pixels from a random one on, which the steps from the corner lead to, or
    (not `on_steps`) need not."""
    name, rank = [*_BITS][number % len(_BITS)], 3 + number % 3
    size, spatial = _BITS[name] // 8, rank - 2
    swizzle = int(rng.choice([0, 32, 64, 128]))
    row = max(16, swizzle) // size
    channels = row << int(rng.integers(0, 3))
    pixels = 1 << int(rng.integers(0 if channels == row else 3, 8))
    end = {1: 60, 2: 20, 3: 9}[spatial]
    sizes = [int(n) for n in rng.integers(1, end, spatial)]
    limit = {1: 40, 2: 12, 3: 7}[spatial]
    low = [int(n) for n in rng.integers(-limit, limit, spatial)]
    high = [
        int(rng.integers(a - n + 1, a - n + 2 + limit)) for a, n in zip(low, sizes, strict=True)
    ]
    ends = [(a, n - 1 + b) for a, b, n in zip(low, high, sizes, strict=True)]
    steps = [int(n) for n in rng.integers(1, 9 if on_steps else 4, spatial)]
    images, depth = int(rng.integers(1, 4)), int(rng.integers(1, 3 * row))
    pad = -depth % (16 // size)
    dtype = {"bfloat16": "uint16", "float8e4nv": "uint8"}.get(name, name)
    whole = rng.integers(1, 100, (images, *sizes, depth + pad)).astype(dtype)
    if name == "float32":
        whole *= 1 + rng.random(whole.shape).astype(dtype)
    x = whole[..., :depth]
    padding = "nan" if name in ("float16", "float32") and rng.random() < 0.5 else "zero"
    rounds = name == "float32" and rng.random() < 0.5
    first = [int(rng.integers(a, b + 1)) for a, b in ends]
    if on_steps:
        first = [a + (f - a) // s * s for f, (a, _), s in zip(first, ends, steps, strict=True)]
    at = (int(rng.integers(0, images)), *first)
    channel = int(rng.integers(-1, 3)) * (16 // size)
    most = {1: 100, 2: 30, 3: 31}[spatial]
    offsets, moves = (tuple(int(n) for n in rng.integers(0, most + 1, spatial)) for _ in range(2))
    y = np.full((2, pixels, channels), 7, dtype)
    base, out = whole, y
    if dtype != name:
        base, out = (proton.reinterpret(array, getattr(gl, name)) for array in (whole, y))
    desc = TensorDescriptorIm2Col(
        base, list(x.shape), [stride // size for stride in x.strides], [pixels, channels],
        gl.NVMMASharedLayout(swizzle, size * 8, 2), padding, rounds,
        element_strides=[1, *steps, 1], pixel_box_lower_corner=low, pixel_box_upper_corner=high,
    )  # fmt: skip
    copied[(1,)](desc, out, (*at, channel), offsets, moves, pixels, channels, num_warps=4)
    places = list(itertools.islice(walked(at, ends, steps), pixels))
    x = nearest_tf32(x) if rounds else x
    for found, moved in zip(y, (offsets, moves), strict=True):
        wanted, inside = gathered(x, places, moved, channel, channels)
        said = number, name, x.shape, desc, at, channel, moved
        assert (found[inside] == wanted[inside]).all(), said
        outside = found[~inside]
        assert np.isnan(outside).all() if padding == "nan" else not outside.any(), said


@check
def pixels_by_tma(rng: np.random.Generator) -> None:
    for number in range(times(18)):  # 9 have each type, and each rank
        _drawn(rng, number, on_steps=True)


@check
def pixels_from_between_the_steps(rng: np.random.Generator) -> None:
    for number in range(times(18)):
        _drawn(rng, number, on_steps=False)


@check
def as_many_pixels_as_there_may_be(rng: np.random.Generator) -> None:
    x = rng.integers(0, 99, (3, 19, 21, 16), np.int8)
    for swizzle, channels in ((0, 16), (32, 32)):
        layout, y = gl.NVMMASharedLayout(swizzle, 8, 2), np.full((2, 1024, channels), 7, np.int8)
        desc = TensorDescriptorIm2Col.from_tensor(
            x, [1024, channels], layout,
            pixel_box_lower_corner=[-128, 0], pixel_box_upper_corner=[127, -20],
        )  # fmt: skip
        offsets, moves = (255, 20), (130, 3)
        copied[(1,)](desc, y, (1, -100, 0, 0), offsets, moves, 1024, channels, num_warps=4)
        places = list(itertools.islice(walked((1, -100, 0), [(-128, 145), (0, 0)], (1, 1)), 1024))
        for found, moved in zip(y, (offsets, moves), strict=True):
            assert (found == gathered(x, places, moved, 0, channels)[0]).all()
    x = rng.integers(0, 99, (2, 3, 16), np.int8)  # offsets of 16 bits
    y = np.full((2, 64, 16), 7, np.int8)
    desc = TensorDescriptorIm2Col.from_tensor(
        x, [64, 16], gl.NVMMASharedLayout(0, 8, 2),
        pixel_box_lower_corner=[-32766], pixel_box_upper_corner=[-32768],
    )  # fmt: skip
    offsets, moves = (32768,), (32766,)
    copied[(1,)](desc, y, (0, -32766, 0), offsets, moves, 64, 16, num_warps=4)
    places = list(itertools.islice(walked((0, -32766), [(-32766, -32766)], (1,)), 64))
    for found, moved in zip(y, (offsets, moves), strict=True):
        assert (found == gathered(x, places, moved, 0, 16)[0]).all()


@gluon.jit
def in_turns(desc, y, n, P: gl.constexpr, C: gl.constexpr, width: gl.constexpr):
    """Blocks one behind the other, by a copy that does not always begin."""
    buffer = gl.allocate_shared_memory(desc.dtype, [P, C], desc.layout)
    bar = mbarrier.allocate_mbarrier()
    mbarrier.init(bar, count=1)
    layout: gl.constexpr = gl.BlockedLayout([1, 4], [4, 8], [4, 1], [1, 0])
    i = gl.arange(0, P, layout=gl.SliceLayout(1, layout))[:, None]
    j = gl.arange(0, C, layout=gl.SliceLayout(0, layout))[None, :]
    buffer.store(gl.zeros([P, C], desc.dtype, layout))
    gl.barrier()
    for k in range(n):
        begins = k % 3 != 1
        mbarrier.expect(bar, desc.block_type.nbytes, pred=begins)
        first = k * P
        at = [first // width, first % width, 0]
        tma.async_load_im2col(desc, at, [0], bar, buffer, pred=begins, cache_policy=FIRST)
        if begins:
            mbarrier.wait(bar, (k - (k + 1) // 3) & 1)
        gl.store(y + (k * P + i) * C + j, buffer.load(layout))
        gl.barrier()


@check
def pixels_in_a_loop(rng: np.random.Generator) -> None:
    x = rng.standard_normal((5, 13, 32), np.float32)
    y = np.ones((64, 32), np.float32)
    desc = TensorDescriptorIm2Col.from_tensor(
        x, [16, 32], gl.NVMMASharedLayout(128, 32, 2),
        pixel_box_lower_corner=[0], pixel_box_upper_corner=[0],
    )  # fmt: skip
    assert desc.mode == "im2col"
    in_turns[(1,)](desc, y, 4, 16, 32, 13, num_warps=4)
    wanted = x.reshape(65, 32)[:64].copy()
    wanted[16:32] = wanted[:16]
    assert (y == wanted).all()


# Convolutions


@gluon.jit
def fetched(x_desc, w_desc, bar, x, w, k, blocks, S: gl.constexpr, first, column, BK: gl.constexpr):
    """One step along K: a tap of the filter, and a block of channels."""
    tap, block = k // blocks, k % blocks
    number, row, left = first
    mbarrier.expect(bar, x_desc.block_type.nbytes + w_desc.block_type.nbytes)
    tma.async_load_im2col(
        x_desc, [number, row, left, block * BK],
        [(tap // S).to(gl.int16), (tap % S).to(gl.int16)], bar, x,
    )  # fmt: skip
    tma.async_load(w_desc, [tap * x_desc.shape[3] + block * BK, column], bar, w)


@gluon.jit
def first_of(block, height, width, stride, pad, BM: gl.constexpr):
    number, rest = block * BM // (height * width), block * BM % (height * width)
    return number, rest // width * stride - pad, rest % width * stride - pad


@gluon.jit
def stored(y, acc, height, width, count, columns, BM: gl.constexpr, BN: gl.constexpr):
    layout: gl.constexpr = acc.type.layout
    i = gl.program_id(0) * BM + gl.arange(0, BM, layout=gl.SliceLayout(1, layout))[:, None]
    j = gl.program_id(1) * BN + gl.arange(0, BN, layout=gl.SliceLayout(0, layout))[None, :]
    inside = (i < count * height * width) & (j < columns)
    gl.store(y + i * columns + j, acc.to(y.dtype.element_ty), inside)


@gluon.jit
def convolved(
    x_desc, w_desc, y, height, width, columns, stride, pad,
    R: gl.constexpr, S: gl.constexpr, BM: gl.constexpr, BN: gl.constexpr, BK: gl.constexpr,
    N: gl.constexpr,
):  # fmt: skip
    """A convolution as a product of what each tap of the filter reads, in a pipeline."""
    x = gl.allocate_shared_memory(x_desc.dtype, [N, *x_desc.block_shape], x_desc.layout)
    w = gl.allocate_shared_memory(w_desc.dtype, [N, *w_desc.block_shape], w_desc.layout)
    ready = mbarrier.allocate_mbarrier(batch=N)
    for k in gl.static_range(N):
        mbarrier.init(ready.index(k), count=1)
    first = first_of(gl.program_id(0), height, width, stride, pad, BM)
    blocks, column = gl.cdiv(x_desc.shape[3], BK), gl.program_id(1) * BN
    steps = R * S * blocks
    layout: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, BN, 16])
    acc = gl.zeros((BM, BN), gl.float32, layout)
    for k in range(steps + N - 1):
        if k < steps:
            s = k % N
            fetched(x_desc, w_desc, ready.index(s), x.index(s), w.index(s), k, blocks, S, first,
                    column, BK)  # fmt: skip
        done = k - N + 1
        if done >= 0:
            mbarrier.wait(ready.index(done % N), done // N & 1)
            acc = warpgroup_mma(x.index(done % N), w.index(done % N), acc)
    stored(y, acc, height, width, x_desc.shape[0], columns, BM, BN)


@gluon.jit
def taps(x_desc, w_desc, x, w, bars, steps, first, column, S: gl.constexpr, BK: gl.constexpr,
         N: gl.constexpr):  # fmt: skip
    ready, empty = bars
    blocks = gl.cdiv(x_desc.shape[3], BK)
    for k in range(steps):
        slot = k % N
        mbarrier.wait(empty.index(slot), (k // N & 1) ^ 1)
        with proton.scope("fill"):
            fetched(x_desc, w_desc, ready.index(slot), x.index(slot), w.index(slot), k, blocks, S,
                    first, column, BK)  # fmt: skip


@gluon.jit
def products(x, w, bars, steps, BM: gl.constexpr, BN: gl.constexpr, N: gl.constexpr):
    ready, empty = bars
    layout: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, BN, 16])
    acc = gl.zeros((BM, BN), gl.float32, layout)
    for k in range(steps):
        slot = k % N
        with proton.scope("ready"):
            mbarrier.wait(ready.index(slot), k // N & 1)
        acc = warpgroup_mma(x.index(slot), w.index(slot), acc)
        mbarrier.arrive(empty.index(slot), count=1)
    return acc


@gluon.jit
def convolved_by_roles(
    x_desc, w_desc, y, height, width, columns, stride, pad,
    R: gl.constexpr, S: gl.constexpr, BM: gl.constexpr, BN: gl.constexpr, BK: gl.constexpr,
    N: gl.constexpr,
):  # fmt: skip
    x = gl.allocate_shared_memory(x_desc.dtype, [N, *x_desc.block_shape], x_desc.layout)
    w = gl.allocate_shared_memory(w_desc.dtype, [N, *w_desc.block_shape], w_desc.layout)
    bars = mbarrier.allocate_mbarrier(batch=N), mbarrier.allocate_mbarrier(batch=N)
    for k in gl.static_range(N):
        mbarrier.init(bars[0].index(k), count=1)
        mbarrier.init(bars[1].index(k), count=1)
    first = first_of(gl.program_id(0), height, width, stride, pad, BM)
    steps, column = R * S * gl.cdiv(x_desc.shape[3], BK), gl.program_id(1) * BN
    acc = gl.warp_specialize(
        [
            (products, (x, w, bars, steps, BM, BN, N)),
            (taps, (x_desc, w_desc, x, w, bars, steps, first, column, S, BK, N)),
        ],
        [1],
        [24],
    )
    stored(y, acc, height, width, x_desc.shape[0], columns, BM, BN)


def convolution(x: np.ndarray, w: np.ndarray, stride: int, pad: int) -> np.ndarray:
    """What numpy says: N, H, W, C and R, S, C, K give N, H, W, K."""
    r, s = w.shape[:2]
    whole = np.pad(x.astype(np.float32), ((0, 0), (pad, pad), (pad, pad), (0, 0)))
    windows = np.lib.stride_tricks.sliding_window_view(whole, (r, s), (1, 2))
    windows = windows[:, ::stride, ::stride]
    return np.einsum("nhwcrs,rsck->nhwk", windows, w.astype(np.float32))


def _check_convolution(rng: np.random.Generator, kernel: Any) -> None:
    for n, h, w, c, k, r, s, stride, pad in (
        (2, 9, 7, 24, 40, 3, 3, 1, 1),
        (3, 11, 10, 64, 32, 3, 2, 2, 0),
        (1, 17, 6, 40, 8, 1, 4, 3, 2),
    ):
        x = rng.integers(-4, 5, (n, h, w, c)).astype(np.float16)
        weights = rng.integers(-4, 5, (r, s, c, k)).astype(np.float16)
        wanted = convolution(x, weights, stride, pad)
        height, width = wanted.shape[1:3]
        y = np.zeros(wanted.shape, np.float32)
        bm, bn, bk = 64, 32, 32
        # As many steps as the result has rows and columns.
        high = [(a - 1) * stride + 1 - b - pad for a, b in ((height, h), (width, w))]
        x_desc = TensorDescriptorIm2Col.from_tensor(
            x, [bm, bk], gl.NVMMASharedLayout.get_default_for([bm, bk], gl.float16),
            element_strides=[1, stride, stride, 1],
            pixel_box_lower_corner=[-pad, -pad], pixel_box_upper_corner=high,
        )  # fmt: skip
        w_desc = TensorDescriptor.from_tensor(
            weights.reshape(r * s * c, k), [bk, bn],
            gl.NVMMASharedLayout.get_default_for([bk, bn], gl.float16),
        )  # fmt: skip
        grid = -(-n * height * width // bm), -(-k // bn)
        numbers = height, width, k, stride, pad, r, s, bm, bn, bk
        kernel[grid](x_desc, w_desc, y, *numbers, 2, num_warps=4)
        assert (y == wanted).all(), (n, h, w, c, k, r, s, stride, pad)


@check
def a_convolution(rng: np.random.Generator) -> None:
    _check_convolution(rng, convolved)


@check
def a_convolution_by_roles(rng: np.random.Generator) -> None:
    _check_convolution(rng, convolved_by_roles)
