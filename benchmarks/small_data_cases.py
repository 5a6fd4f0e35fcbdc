"""Cases of small libraries: images, points, optical flow, clusters, transport, random numbers and
codes of quantum computers."""

import math

import numpy as np
import torch
import torch.nn.functional as F
from library_case import Size, normal
from small_case import BOTH, FULL, HALF, call, case

# isort: split
from flash_kmeans import assign_euclid_triton, centroid_update_triton
from flash_sinkhorn.kernels import (
    apply_flash,
    c_transform_sqeuclid,
    sinkhorn_flashstyle_sqeuclid,
    sinkhorn_splitn_sqeuclid,
)
from lanczos_triton import resize
from localcorr import blocks
from localcorr.triton import pyramid_corr, spatial_corr
from torch_fps import _triton as fps
from tridec.backends import bp_triton
from triton_augment import functional as images
from triton_csprng import ChaCha20Rng, chacha20, sampling

blocks._TRITON_KERNELS = pyramid_corr.LocalCorrTriton, pyramid_corr.LocalCorrTritonFused

# Images

PHOTOS = Size((2, 40, 56), (32, 1080, 1920), (1, 4320, 7680))
PATCHES = Size((3, 40, 56), (256, 256, 256), (64, 512, 512))


def _lanczos(count, out, reach=3):
    """(out, count) weights of numbers, of which there are fewer behind."""
    scale = max(count / out, 1.0)
    centre = (torch.arange(out).double() + 0.5) * count / out - 0.5
    apart = (torch.arange(count).double() - centre[:, None]) / scale
    weights = torch.sinc(apart) * torch.sinc(apart / reach)
    weights = weights.masked_fill(apart.abs() >= reach, 0)
    return weights / weights.sum(1, keepdim=True)


def _resized(height, width):
    def pair(dtype, count, rows, columns):
        image = torch.rand(count, 3, rows, columns, dtype=dtype)
        size = (int(rows * height), int(columns * width))

        def op():
            across, down = (
                resize._table(before, after, 3, True, image.device)
                for before, after in zip(image.shape[:1:-1], size[::-1], strict=True)
            )
            return resize._execute(image, size, across, down)

        def reference():
            return _lanczos(rows, size[0]) @ image.double() @ _lanczos(columns, size[1]).T

        return op, reference

    return pair


@call(PHOTOS, dtypes=HALF, timed=BOTH)
def smaller_images(dtype, *dims):
    return _resized(1 / 4, 1 / 4)(dtype, *dims)


@call(PHOTOS, dtypes=FULL)
def thumbnails(dtype, *dims):
    """So many numbers to a pixel that they come in blocks."""
    return _resized(1 / 16, 1 / 16)(dtype, *dims)


@call(PATCHES, dtypes=HALF)
def larger_images(dtype, *dims):
    return _resized(2, 2)(dtype, *dims)


MEAN, DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def _grey(x):
    return (x * x.new_tensor((0.2989, 0.587, 0.114))[:, None, None]).sum(1, keepdim=True)


def _normalised(x):
    mean, deviation = (x.new_tensor(n)[:, None, None] for n in (MEAN, DEVIATION))
    return (x - mean) / deviation


@call(PATCHES, dtypes=FULL)
def colours(dtype, *dims):
    """One kernel each."""
    x = torch.rand(dims[0], 3, *dims[1:], dtype=dtype)
    one = x.double()
    return (
        lambda: [
            images.adjust_brightness(x, 1.3),
            images.adjust_contrast(x, 0.6),
            images.adjust_saturation(x, 1.4),
            images.normalize(x, MEAN, DEVIATION),
            images.rgb_to_grayscale(x, 3),
        ],
        lambda: [
            (one * 1.3).clamp(0, 1),
            (0.6 * one + 0.4 * _grey(one).mean((1, 2, 3), keepdim=True)).clamp(0, 1),
            (1.4 * one - 0.4 * _grey(one)).clamp(0, 1),
            _normalised(one),
            _grey(one).expand_as(one),
        ],
    )


@call(PATCHES, dtypes=(torch.float32, torch.float16))
def augmented(dtype, count, rows, columns):
    """Cropped, mirrored, brightened, saturated and normalised by one kernel."""
    x = torch.rand(count, 3, rows, columns, dtype=dtype)
    height, width = rows * 7 // 8, columns * 7 // 8
    top = torch.randint(0, rows - height, (count,), dtype=torch.int32)
    left = torch.randint(0, columns - width, (count,), dtype=torch.int32)
    mirrored = torch.arange(count) % 2 == 0
    brightness, saturation = torch.rand(2, count, dtype=dtype) + 0.5

    def op():
        return images.fused_augment(
            *(x, top, left, height, width, mirrored),
            brightness_factor=brightness,
            saturation_factor=saturation,
            mean=MEAN,
            std=DEVIATION,
        )

    def reference():
        parts = []
        for image, y, z, turned in zip(x, top.tolist(), left.tolist(), mirrored, strict=True):
            part = image[:, y : y + height, z : z + width].double()
            parts.append(part.flip(-1) if turned else part)
        part = (torch.stack(parts) * brightness.double()[:, None, None, None]).clamp(0, 1)
        share = saturation.double()[:, None, None, None]
        return _normalised((share * part + (1 - share) * _grey(part)).clamp(0, 1))

    return op, reference


@call(PATCHES, dtypes=FULL)
def turned_images(dtype, count, rows, columns):
    x, degrees = torch.rand(count, 3, rows, columns, dtype=dtype), torch.rand(count) * 60 - 30

    def reference():
        angle = degrees.double() * math.pi / 180
        ratio = rows / columns
        zero, cos, sin = torch.zeros_like(angle), angle.cos(), angle.sin()
        turns = torch.stack((cos, -sin * ratio, zero, sin / ratio, cos, zero), 1)
        grid = F.affine_grid(turns.view(-1, 2, 3), [*x.shape], align_corners=False)
        return F.grid_sample(x.double(), grid, align_corners=False)

    return lambda: images.rotate(x, degrees, "bilinear"), reference


# Points and clusters


def _furthest(points, count):
    """Numbers of points, each of which is the furthest from those before."""
    chosen, nearest = [0], torch.full((len(points),), torch.inf)
    for _ in range(count - 1):
        apart = (points - points[chosen[-1]]).square().sum(-1)
        nearest = torch.minimum(nearest, apart)
        chosen.append(int(nearest.argmax()))
    return torch.tensor(chosen)


def _clouds(dtype, count, points):
    places = torch.randn(count, points, 3, dtype=dtype)
    return places, torch.ones(count, points, dtype=torch.bool), torch.zeros(count).long()


@call(Size((3, 150, 20), (32, 8192, 1024), (16, 65536, 256)), dtypes=FULL, timed=BOTH)
def furthest_points(dtype, count, points, chosen):
    places, *others = _clouds(dtype, count, points)
    return (
        lambda: fps.fps(places, *others, chosen),
        lambda: torch.stack([_furthest(one, chosen) for one in places]),
    )


@call(Size((3, 150, 20), (32, 4096, 512), (16, 32768, 128)), dtypes=FULL, timed=BOTH)
def furthest_points_and_neighbours(dtype, count, points, chosen):
    places, *others = _clouds(dtype, count, points)

    def reference():
        centres = torch.stack([_furthest(one, chosen) for one in places])
        at = places.gather(1, centres[..., None].expand(-1, -1, 3))
        return centres, torch.cdist(at, places).topk(8, largest=False).indices.sort().values

    def op():
        centres, neighbours = fps.fps_knn(places, *others, chosen, 8)
        return centres, neighbours.sort().values

    return op, reference


@call(Size((3, 150, 20), (32, 8192, 256), (4, 65536, 256)), dtypes=FULL)
def nearest_points(dtype, count, points, chosen):
    places, centres = torch.randn(count * points, 3), torch.randn(count, chosen, 3)
    starts = torch.arange(count) * points
    counts = torch.full((count,), points)

    def reference():
        return torch.cdist(places.view(count, points, 3), centres).argmin(-1).flatten()

    return (
        lambda: fps.nearest_assign(places, centres.view(-1, 3), starts, counts, points, chosen),
        reference,
    )


CLUSTERED = Size((2, 150, 20, 64), (32, 32768, 1000, 128), (1, 262144, 4096, 512))


def _near(numbers, centres, x):
    """The distance of each row from its centre, which is the least."""
    at = centres.double().gather(1, numbers.long()[..., None].expand(-1, -1, x.shape[-1]))
    return (x.double() - at).square().sum(-1)


@call(CLUSTERED, dtypes=(torch.float16, torch.float32), timed=BOTH)
def clusters(dtype, count, rows, centres, dims):
    x, at = torch.randn(count, rows, dims, dtype=dtype), torch.randn(count, centres, dims).to(dtype)
    squares = x.float().square().sum(-1)

    def op():
        return _near(assign_euclid_triton.euclid_assign_triton(x, at, squares), at, x)

    return op, lambda: torch.cdist(x.double(), at.double()).min(-1).values.square()


@call(CLUSTERED, dtypes=HALF)
def clusters_by_angle(dtype, count, rows, centres, dims):
    x, at = (F.normalize(torch.randn(count, n, dims), dim=-1).to(dtype) for n in (rows, centres))
    return (
        lambda: _near(assign_euclid_triton.cosine_assign_triton(x, at), at, x),
        lambda: torch.cdist(x.double(), at.double()).min(-1).values.square(),
    )


@call(CLUSTERED, dtypes=HALF)
def centres_of_clusters(dtype, count, rows, centres, dims):
    """Row by row, and sorted by cluster."""
    x, before = torch.randn(count, rows, dims, dtype=dtype), torch.zeros(count, centres, dims)
    numbers = torch.randint(0, centres, (count, rows), dtype=torch.int32)

    def reference():
        own = F.one_hot(numbers.long(), centres).double()
        mean = torch.einsum("bnk,bnd->bkd", own, x.double()) / own.sum(1)[..., None].clamp(min=1)
        return mean, mean

    return (
        lambda: (
            centroid_update_triton.triton_centroid_update_euclid(x, numbers, before),
            centroid_update_triton.triton_centroid_update_sorted_euclid(x, numbers, before),
        ),
        reference,
    )


# Transport: Sinkhorn's iterations without a matrix of costs

MASSES = Size((150, 70, 24), (16384, 16384, 64), (65536, 8192, 256))
EPSILON = 0.5


def _masses(dtype, rows, columns, dims):
    x, y = (torch.rand(n, dims, dtype=dtype) / dims**0.5 for n in (rows, columns))
    return x, y, torch.randn(rows) / 8, torch.randn(columns) / 8


def _scores(x, y):
    return 2 * x.double() @ y.double().T


@call(MASSES, dtypes=FULL, timed=BOTH)
def transport_step(dtype, *dims):
    x, y, _, bias = _masses(dtype, *dims)
    kernels = sinkhorn_flashstyle_sqeuclid
    split = sinkhorn_splitn_sqeuclid.flashsinkhorn_lse_splitn

    def reference():
        out = -EPSILON * (_scores(x, y) / EPSILON + bias).logsumexp(1)
        return out, out

    return (
        lambda: (
            kernels.flashsinkhorn_lse(x, y, bias, EPSILON),
            split(x, y, bias, EPSILON, num_splits=4),
        ),
        reference,
    )


@call(MASSES, dtypes=FULL)
def transport_both_ways(dtype, rows, columns, dims):
    x, y, f, g = _masses(dtype, rows, columns, dims)
    log_a, log_b = (torch.full((n,), -math.log(n)) for n in (rows, columns))

    def reference():
        scores = _scores(x, y) / EPSILON
        one = -EPSILON * (scores + g / EPSILON + log_b).logsumexp(1)
        two = -EPSILON * (scores + (f / EPSILON + log_a)[:, None]).logsumexp(0)
        alpha, beta = (n.double().square().sum(1) for n in (x, y))
        return (f + one) / 2, (g + two) / 2, alpha, beta

    def op():
        step = sinkhorn_flashstyle_sqeuclid.flashsinkhorn_symmetric_step
        alpha, beta = (n.square().sum(1) for n in (x, y))
        return *step(x, y, f, g, log_a, log_b, EPSILON), alpha, beta

    return op, reference


@call(MASSES, dtypes=FULL)
def transported(dtype, rows, columns, dims):
    """The plan by a matrix and by vectors, which is not written, and the nearest by cost."""
    x, y, f, g = _masses(dtype, rows, columns, dims)
    log_a, log_b = (torch.full((n,), -math.log(n)) for n in (rows, columns))
    values, one, two = torch.randn(columns, dims), torch.randn(columns), torch.randn(rows)

    def op():
        given = x, y, f, g, log_a, log_b
        return (
            apply_flash.apply_plan_mat_flashstyle(*given, values, eps=EPSILON, axis=1),
            apply_flash.apply_plan_vec_flashstyle(*given, one, eps=EPSILON, axis=1),
            apply_flash.apply_plan_vec_flashstyle(*given, two, eps=EPSILON, axis=0),
            c_transform_sqeuclid.c_transform_kernel(x, y, g)[0],
        )

    def reference():
        scores = _scores(x, y)
        plan = ((scores + f[:, None] + g) / EPSILON + log_a[:, None] + log_b).exp()
        return (
            plan @ values.double(),
            plan @ one.double(),
            two.double() @ plan,
            (g - scores).amin(1),
        )

    return op, reference


# Optical flow: products with what is around a place

MAPS = Size((2, 20, 9, 11), (4, 256, 54, 96), (1, 256, 108, 192))


def _around(first, second, places, radius):
    """Products of each pixel with those of another image around its place, which lies between
    pixels."""
    steps = torch.arange(-radius, radius + 1).double()
    down, across = torch.meshgrid(steps, steps, indexing="ij")
    shift = torch.stack((down, across), -1).view(-1, 1, 1, 2)  # along rows first
    size = first.new_tensor((second.shape[-1], second.shape[-2])).double()
    found = []
    for one, other, at in zip(first, second, places, strict=True):
        grid = (at.double() + shift) * 2 / (size - 1) - 1
        near = F.grid_sample(other.double().expand(len(grid), -1, -1, -1), grid, align_corners=True)
        found.append((one.double() * near).sum(1))
    return torch.stack(found)


@case(normal(MAPS), normal(MAPS), dtypes=FULL)
def flow_pyramid(first, _):
    count, channels, height, width = first.shape
    down, across = torch.meshgrid(torch.arange(height), torch.arange(width), indexing="ij")
    places = torch.stack((across, down)).float() + torch.randn(count, 2, height, width) * 2

    def op(one, other):
        return blocks.LocalCorrTritonFusedBlock(one, other, 3, 4)(places)

    def reference(one, other):
        found = []
        for level in range(3):
            at = places.permute(0, 2, 3, 1) / 2**level
            found.append(_around(one, other, at, 4))
            other = F.avg_pool2d(other, 2, stride=2)
        return (torch.cat(found, 1) / channels**0.5).to(one.dtype)

    return op, reference


@case(normal(MAPS), normal(MAPS), dtypes=FULL)
def flow_of_neighbours(first, _):
    far = 4

    def reference(one, other):
        other = F.pad(other, [far] * 4)
        height, width = one.shape[-2:]
        rows = [
            [(one * other[..., y : y + height, x : x + width]).sum(1) for x in range(2 * far + 1)]
            for y in range(2 * far + 1)
        ]
        return torch.stack([torch.stack(row, 1) for row in rows], 1)

    return (
        lambda one, other: spatial_corr.TritonSpatialCorrelationFunction.apply(one, other, far),
        reference,
    )


# Random numbers of a cipher

DRAWN = Size(64 * 40, 1 << 24, 1 << 24)
KEY, NONCE = list(range(3, 11)), [5, 7]


def _cipher(device="cpu"):
    return ChaCha20Rng(key=KEY, nonce=NONCE, counter=9, device=device)


@call(DRAWN, dtypes=FULL)
def cipher(dtype, numbers):
    def op():
        return chacha20.chacha20_blocks(states.clone()).long()

    states = chacha20.make_chacha20_state(
        num_blocks=numbers // 16, key=KEY, nonce=NONCE, counter=9, device="cpu"
    ).to(torch.get_default_device())
    return op, lambda: _cipher().blocks(numbers // 16).long()


def _drawn(kernel, *given):
    """What a kernel writes that asks the cipher itself; `given` is what it takes ahead of the
    output, and behind the number of blocks."""

    def op(numbers, words):
        ahead, behind = given
        device = torch.get_default_device()
        state = torch.tensor([*KEY, *NONCE], dtype=torch.uint32, device=device)
        out = torch.empty(numbers, dtype=torch.int64)
        blocks = numbers * words // 16
        kernel[(-(-blocks // 128),)](
            *ahead, out, numbers, blocks, *behind, state, 9, 0, BLOCK=128, num_warps=4
        )
        return out

    return op


@call(DRAWN, dtypes=FULL)
def drawn_below(dtype, numbers):
    bounds = [3 * 10**9 + 7 * n for n in range(8)]
    there = torch.tensor(bounds, dtype=torch.uint64)
    op = _drawn(sampling._fused_bounded_uint64_kernel, [there], [numbers // 8])
    return (
        lambda: op(numbers, 4),
        lambda: sampling.bounded_uint64(_cipher(), bounds, (8, numbers // 8)).flatten(),
    )


@call(DRAWN, dtypes=FULL)
def drawn_by_gauss(dtype, numbers):
    low, high, depth = sampling._device_cdt_thresholds(3.2, str(torch.get_default_device()))
    op = _drawn(sampling._fused_discrete_gaussian_kernel, [low, high], [depth])
    return lambda: op(numbers, 4), lambda: sampling.discrete_gaussian(_cipher(), numbers)


@call(DRAWN, dtypes=FULL)
def rounded_by_chance(dtype, numbers):
    x = torch.randn(numbers, dtype=dtype) * 50
    op = _drawn(sampling._fused_stochastic_round_kernel, [x], [])
    return lambda: op(numbers, 1), lambda: sampling.stochastic_round(_cipher(), x)


# Codes


@call(Size((12, 30, 40), (288, 1008, 8192), (936, 8784, 1024)), dtypes=FULL, timed=BOTH)
def beliefs(dtype, checks, bits, shots):
    """Three rounds of messages between the bits and the checks of a code."""
    matrix = np.zeros((checks, bits), np.uint8)
    for bit in range(bits):
        matrix[[(bit * 7 + n * n * 5 + n) % checks for n in range(3)], bit] = 1
    device = torch.get_default_device()
    code = bp_triton.BpTriton(matrix, [0.01 + 0.2 * n / bits for n in range(bits)])
    said = torch.rand(shots, checks) < 0.3

    def reference():
        scale, at = code.ms, torch.from_numpy(matrix).bool()
        prior = code.lam.double()
        sign = 1 - 2 * said.double().to("cpu")
        sent = torch.where(at, prior, torch.inf).expand(shots, -1, -1)
        for _ in range(3):
            less = sent.abs().sort(-1).values
            least = torch.where(sent.abs() == less[..., :1], less[..., 1:2], less[..., :1])
            signs = torch.where(sent < 0, -1.0, 1.0).double()
            of_others = signs.prod(-1, keepdim=True) * signs * sign[..., None]
            back = torch.where(at, scale * of_others * least, 0.0)
            total = prior + back.sum(1)
            sent = torch.where(at, total[:, None] - back, torch.inf)
        return total

    def op():
        return torch.from_numpy(code.run_iterations_batch(said, 3, device=device))

    return op, reference
