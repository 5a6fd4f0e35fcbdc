"""Functions of torch's ops, by name: what torch.compile makes kernels of."""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor


class Row(NamedTuple):
    """A function and its arguments: shapes of fp32, or tensors. `grad` compares gradients, too."""

    of: Callable[..., Any]
    args: tuple[Any, ...]
    grad: bool = False
    tolerance: float | None = None  # relative and absolute, where torch's own is too narrow
    is_random: bool = False  # compared by its moments


def ints(*shape: int, low: int = -9, high: int = 9, dtype: torch.dtype = torch.int64) -> Tensor:
    return torch.randint(low, high, shape, dtype=dtype)


def bools(*shape: int) -> Tensor:
    return torch.rand(shape) < 0.5


def halves(*shape: int) -> Tensor:
    return torch.randn(shape).half()


def brains(*shape: int) -> Tensor:
    return torch.randn(shape).bfloat16()


def doubles(*shape: int) -> Tensor:
    return torch.randn(shape).double()


def positive(*shape: int) -> Tensor:
    return torch.rand(shape) + 0.1


def inside(*shape: int) -> Tensor:
    """Numbers between -1 and 1."""
    return torch.rand(shape) * 1.9 - 0.95


X, Y = (33, 65), (33, 65)
ONE_SHAPE = {
    "abs sqrt": lambda x: torch.sqrt(torch.abs(x)),
    "sin cos": lambda x: torch.sin(x) * torch.cos(x),
    "tan": lambda x: torch.tan(x * 0.3),
    "sinh cosh": lambda x: torch.sinh(x) - torch.cosh(x),
    "exp exp2 expm1": lambda x: torch.exp(x) + torch.exp2(x) + torch.expm1(x),
    "sigmoid": torch.sigmoid,
    "logsigmoid": F.logsigmoid,
    "tanh": torch.tanh,
    "atan asinh": lambda x: torch.atan(x) + torch.asinh(x),
    "erf erfc": lambda x: torch.erf(x) + torch.erfc(x),
    "relu relu6": lambda x: F.relu(x) + F.relu6(3 * x),
    "gelu": F.gelu,
    "gelu tanh": lambda x: F.gelu(x, approximate="tanh"),
    "silu": F.silu,
    "mish": F.mish,
    "elu": F.elu,
    "celu": lambda x: F.celu(x, 0.7),
    "selu": F.selu,
    "leaky relu": lambda x: F.leaky_relu(x, 0.2),
    "softplus": F.softplus,
    "softsign": F.softsign,
    "hardtanh": F.hardtanh,
    "hardswish": F.hardswish,
    "hardsigmoid": F.hardsigmoid,
    "softshrink": F.softshrink,
    "hardshrink": F.hardshrink,
    "tanhshrink": F.tanhshrink,
    "threshold": lambda x: F.threshold(x, 0.1, 20.0),
    "square reciprocal": lambda x: torch.square(x) + torch.reciprocal(x + 7),
    "rsqrt": lambda x: torch.rsqrt(torch.abs(x) + 1),
    "pow 3": lambda x: x**3,
    "pow half": lambda x: (x.abs() + 0.1) ** 1.5,
    "floor ceil": lambda x: torch.floor(x) + torch.ceil(x),
    "round trunc": lambda x: torch.round(2 * x) + torch.trunc(3 * x),
    "frac": torch.frac,
    "sign": torch.sign,
    "clamp": lambda x: torch.clamp(x, -0.5, 0.7),
    "clamp min": lambda x: torch.clamp(x, min=0.2),
    "nan_to_num": lambda x: torch.nan_to_num(x / (x > 0), nan=1.0, posinf=2.0, neginf=-2.0),
    "where": lambda x: torch.where(x > 0, x, 3 * x),
    "masked_fill": lambda x: x.masked_fill(x < 0.1, -4.0),
    "isnan isinf": lambda x: torch.isnan(x / (x > 0)) | torch.isinf(1 / (x > 0)),
    "lgamma digamma": lambda x: torch.lgamma(x.abs() + 1) + torch.digamma(x.abs() + 1),
    "sinc": torch.sinc,
    "i0": torch.special.i0,
    "bessel_j0": torch.special.bessel_j0,
    "erfinv": lambda x: torch.erfinv(torch.tanh(x) * 0.9),
    "ndtr": torch.special.ndtr,
    "deg2rad": torch.deg2rad,
    "log1p": lambda x: torch.log1p(x.abs()),
    "neg": torch.neg,
    "positive zero": lambda x: torch.signbit(x * 0.0),
    # reductions
    "sum all": torch.sum,
    "sum rows": lambda x: x.sum(-1),
    "sum columns": lambda x: x.sum(0),
    "sum keepdim": lambda x: x - x.sum(1, keepdim=True),
    "mean": lambda x: x.mean(0),
    "var": lambda x: x.var(1),
    "var all": lambda x: x.var(),
    "std": lambda x: x.std(0, unbiased=False),
    "var_mean": lambda x: torch.var_mean(x, 1),
    "amax amin": lambda x: x.amax(1) + x.amin(1),
    "max with index": lambda x: torch.max(x, 1),
    "min with index": lambda x: torch.min(x, 0),
    "argmax": lambda x: x.argmax(-1),
    "argmin all": lambda x: x.argmin(),
    "prod": lambda x: (1 + 0.1 * x).prod(1),
    "any all": lambda x: (x > 2).any(1) | (x > -2).all(1),
    "any of all": lambda x: (x > 4).any(),
    "norm 2": lambda x: torch.linalg.vector_norm(x, dim=1),
    "norm 1": lambda x: torch.linalg.vector_norm(x, 1, dim=0),
    "norm inf": lambda x: torch.linalg.vector_norm(x, float("inf"), dim=0),
    "count_nonzero": lambda x: torch.count_nonzero(x > 0.3, dim=1),
    "logsumexp": lambda x: torch.logsumexp(x, 1),
    "softmax": lambda x: torch.softmax(x, -1),
    "softmax columns": lambda x: torch.softmax(x, 0),
    "log_softmax": lambda x: torch.log_softmax(x, -1),
    "softmin": lambda x: F.softmin(x, dim=-1),
    "aminmax": lambda x: torch.aminmax(x, dim=1),
    "two reductions": lambda x: (x.sum(1), x.amax(1), (x * x).sum(1)),
    "rows of two maxima": lambda x: x.amax(1) - (x - 1).amax(1),
    # scans and order
    "cumsum": lambda x: x.cumsum(1),
    "cumsum columns": lambda x: x.cumsum(0),
    "cumprod": lambda x: (1 + 0.1 * x).cumprod(1),
    "cummax": lambda x: torch.cummax(x, 1),
    "cummin": lambda x: torch.cummin(x, 1),
    "logcumsumexp": lambda x: torch.logcumsumexp(x, 1),
    "sort": lambda x: torch.sort(x, 1),
    "sort descending": lambda x: torch.sort(x, stable=True, dim=1, descending=True),
    "argsort": lambda x: torch.argsort(x, 1),
    "topk": lambda x: torch.topk(x, 5, dim=1),
    "median": lambda x: torch.median(x, 1).values,
    "kthvalue": lambda x: torch.kthvalue(x, 3, dim=1).values,
    "diff": lambda x: torch.diff(x, dim=1),
    # views and movement
    "transpose": lambda x: x.t().contiguous() + 1,
    "permute": lambda x: x.reshape(3, 11, 65).permute(2, 0, 1) * 2,
    "slice": lambda x: x[3:30:2, 1:-1] + 1,
    "flip": lambda x: torch.flip(x, (0, 1)) * 2,
    "roll": lambda x: torch.roll(x, (3, -7), (0, 1)),
    "repeat": lambda x: x.repeat(2, 3) + 1,
    "repeat_interleave": lambda x: x.repeat_interleave(3, dim=1) + 1,
    "tile expand": lambda x: x[:1].expand(7, -1) * 2,
    "unfold": lambda x: x.unfold(1, 5, 3) * 2,
    "pad constant": lambda x: F.pad(x, (2, 3, 1, 0), value=7.0),
    "pad reflect": lambda x: F.pad(x[None], (2, 3, 1, 4), mode="reflect"),
    "pad replicate": lambda x: F.pad(x[None], (2, 3, 1, 4), mode="replicate"),
    "tril triu": lambda x: torch.tril(x) - torch.triu(x, 2),
    "diagonal": lambda x: torch.diagonal(x) * 3,
    "diag_embed": lambda x: torch.diag_embed(x[:4]) + 1,
    "squeeze": lambda x: (x[None, :, None] * 2).squeeze(0).squeeze(1),
    "split": lambda x: [part * (n + 1) for n, part in enumerate(torch.split(x, 10, dim=1))],
    "chunk": lambda x: sum(part.sum() for part in torch.chunk(x, 4, dim=0)),
    "unbind": lambda x: torch.stack([row * 2 for row in x[:5].unbind(0)], 1),
    "cat with itself": lambda x: torch.cat([x, 2 * x, x[:, :7]], 1) + 1,
    "stack": lambda x: torch.stack([x, x + 1, x * 2], -1),
    "meshgrid": lambda x: sum(torch.meshgrid(x[0], x[1], indexing="ij")),
    "movedim": lambda x: x.reshape(3, 11, 65).movedim(0, 2).contiguous() + 1,
    "as_strided": lambda x: torch.as_strided(x, (5, 4), (7, 3), 2) * 2,
    "view as bits": lambda x: x.view(torch.int32) & 0x7FFFFFFF,
    "select_scatter": lambda x: torch.select_scatter(x, x[:, 0] * 2, 1, 5),
    "slice_scatter": lambda x: torch.slice_scatter(x, x[:4] * 2, 0, 3, 7),
    # conversions
    "to int": lambda x: (x * 10).to(torch.int32) // 3,
    "to double": lambda x: x.double().sin(),
    "to bool": lambda x: (x > 0).float() + (x > 0.1).int(),
    "to uint8": lambda x: (x.abs() * 9).to(torch.uint8) + 3,
    # creation
    "arange": lambda x: x + torch.arange(65, device=x.device),
    "full like": lambda x: torch.full_like(x, 3.5) * x + torch.ones_like(x),
    "eye linspace": lambda x: (
        x[:, :33] * torch.eye(33, device=x.device) + torch.linspace(-1, 1, 33, device=x.device)
    ),
    "zeros then add": lambda x: torch.zeros(65).add_(x.sum(0)),
    "one_hot": lambda x: F.one_hot(x[:, 0].abs().long(), 9),
    "bucketize": lambda x: torch.bucketize(x, torch.tensor([-1.0, 0.0, 0.5, 2.0], device=x.device)),
    "searchsorted": lambda x: torch.searchsorted(torch.linspace(-2, 2, 17, device=x.device), x),
    "histc like": lambda x: torch.zeros(9).index_add(0, x[0].abs().long(), x[0]),
    # in place
    "add_": lambda x: (x + 0).add_(2).mul_(3),
    "index in place": lambda x: _set(x + 0, (slice(2, 5), slice(None)), 1.5),
    "mask in place": lambda x: _set(x + 0, x > 0, 0.25),
    "copy_": lambda x: torch.empty_like(x).copy_(x.flip(0)),
    # shapes of networks
    "normalize": lambda x: F.normalize(x, dim=1),
    "cosine similarity": lambda x: F.cosine_similarity(x[:16], x[16:32], dim=1),
    "cdist": lambda x: torch.cdist(x[:7], x[7:17]),
    "pairwise distance": lambda x: F.pairwise_distance(x[:7], x[7:14]),
    "glu": lambda x: F.glu(x[:, :64], dim=1),
    "pixel_shuffle": lambda x: F.pixel_shuffle(x[:32, :64].reshape(2, 16, 8, 8), 2) + 1,
    "layer_norm": lambda x: F.layer_norm(x, (65,)),
    "rms_norm": lambda x: F.rms_norm(x, (65,)),
    "group_norm": lambda x: F.group_norm(x[:, :64].reshape(3, 8, 88), 4),
    "instance_norm": lambda x: F.instance_norm(x.reshape(3, 11, 65)),
    "batch_norm": lambda x: F.batch_norm(x, None, None, training=True),
    "local_response_norm": lambda x: F.local_response_norm(x.reshape(3, 11, 65), 3),
    "rotary": lambda x: _rotated(x[:, :64]),
    "alibi": lambda x: torch.softmax(
        x[:, :33]
        - (torch.arange(33, device=x.device) - torch.arange(33, device=x.device)[:, None]).abs()
        * 0.1,
        -1,
    ),
    "causal softmax": lambda x: torch.softmax(
        x[:, :33].masked_fill(torch.ones(33, 33, device=x.device).triu(1) > 0, -torch.inf), -1
    ),
    "avg_pool2d": lambda x: F.avg_pool2d(x.reshape(1, 3, 11, 65), 3, stride=2, padding=1),
    "max_pool2d": lambda x: F.max_pool2d(x.reshape(1, 3, 11, 65), 3, stride=2, padding=1),
    "adaptive_avg_pool": lambda x: F.adaptive_avg_pool2d(x.reshape(1, 3, 11, 65), (4, 5)),
    "upsample nearest": lambda x: F.interpolate(x.reshape(1, 3, 11, 65), scale_factor=2.0),
    "upsample bilinear": lambda x: F.interpolate(
        x.reshape(1, 3, 11, 65), size=(17, 40), mode="bilinear"
    ),
    "grid_sample": lambda x: F.grid_sample(
        x.reshape(1, 3, 11, 65),
        F.affine_grid(
            torch.eye(2, 3, device=x.device)[None] * 0.7, [1, 3, 9, 9], align_corners=False
        ),
        align_corners=False,
    ),
}


def _set(x: Tensor, place: Any, value: float) -> Tensor:
    x[place] = value
    return x


def _rotated(x: Tensor) -> Tensor:
    angles = torch.arange(x.shape[0], device=x.device)[:, None] * (
        10000.0 ** (-torch.arange(0, 32, device=x.device) / 32)
    )
    even, odd = x[:, 0::2], x[:, 1::2]
    cos, sin = angles.cos(), angles.sin()
    return torch.stack([even * cos - odd * sin, even * sin + odd * cos], -1).flatten(1)


def _with(of: Callable[..., Any], *args: Any, **more: Any) -> Row:
    return Row(of, args, **more)


ROWS: dict[str, Row] = {name: Row(of, (X,)) for name, of in ONE_SHAPE.items()} | {
    # domains
    "log log2 log10": _with(lambda x: x.log() + x.log2() + x.log10(), positive(*X)),
    "asin acos atanh": _with(lambda x: x.asin() + x.acos() + x.atanh(), inside(*X)),
    "acosh": _with(lambda x: torch.acosh(x + 1), positive(*X)),
    "logit": _with(lambda x: torch.logit(x / 2), positive(7, 40)),
    "xlogy entr": _with(lambda x: torch.xlogy(x, x) + torch.special.entr(x), positive(*X)),
    "polygamma": _with(lambda x: torch.polygamma(1, x + 1), positive(*X), tolerance=1e-4),
    "zeta": _with(lambda x: torch.special.zeta(x + 1.5, x), positive(9, 9), tolerance=1e-4),
    # two operands
    "add mul": _with(lambda x, y: (x + 2 * y) * (x - y), X, Y),
    "div modes": _with(
        lambda x, y: (
            torch.div(x, y, rounding_mode="floor") + torch.div(x, y, rounding_mode="trunc")
        ),
        X,
        positive(*Y),
    ),
    "fmod remainder": _with(
        lambda x, y: torch.fmod(3 * x, y) + torch.remainder(3 * x, y), X, positive(*Y)
    ),
    "atan2 hypot": _with(lambda x, y: torch.atan2(x, y) + torch.hypot(x, y), X, Y),
    "maximum minimum": _with(lambda x, y: torch.maximum(x, y) - torch.minimum(x, 2 * y), X, Y),
    "fmax fmin": _with(lambda x, y: torch.fmax(x, y / (y > 0)) + torch.fmin(x, y), X, Y),
    "copysign": _with(torch.copysign, X, Y),
    "nextafter": _with(torch.nextafter, X, Y),
    "ldexp": _with(lambda x, y: torch.ldexp(x, y.int()), X, Y),
    "pow of two": _with(lambda x, y: torch.pow(x, y), positive(*X), Y),
    "lerp": _with(lambda x, y: torch.lerp(x, y, 0.3), X, Y),
    "addcmul addcdiv": _with(
        lambda x, y: torch.addcmul(x, y, y, value=0.3) + torch.addcdiv(x, y, y * y + 1), X, Y
    ),
    "comparisons": _with(lambda x, y: (x < y) ^ (x >= 0.1) | (x == y) & (x != 2 * y), X, Y),
    "broadcast": _with(lambda x, y: x[:, None] * y[None] + 1, (33,), (65,)),
    "broadcast 3": _with(lambda x, y: (x + y).sum((0, 2)), (5, 1, 13), (7, 1)),
    "logaddexp": _with(torch.logaddexp, X, Y),
    "outer": _with(lambda x, y: torch.outer(x, y).relu(), (33,), (65,)),
    "heaviside": _with(torch.heaviside, X, Y),
    "dist": _with(torch.dist, X, Y),
    "cross": _with(lambda x, y: torch.linalg.cross(x, y), (17, 3), (17, 3)),
    "kron": _with(torch.kron, (3, 5), (4, 7)),
    "mm and bias": _with(lambda x, y, z: torch.relu(x @ y + z), (33, 20), (20, 17), (17,)),
    "bmm then softmax": _with(lambda x, y: torch.softmax(x @ y, -1), (3, 9, 8), (3, 8, 21)),
    "einsum": _with(lambda x, y: torch.einsum("bik,bjk->ij", x, y) * 2, (3, 9, 8), (3, 7, 8)),
    # integers and booleans
    "int arithmetic": _with(lambda x, y: x * y - x + 3, ints(9, 40), ints(9, 40)),
    "int floor division": _with(lambda x, y: x // y + x % y, ints(9, 40), ints(9, 40, low=1)),
    "int trunc division": _with(
        lambda x, y: torch.div(x, y, rounding_mode="trunc"), ints(99), ints(99, low=1)
    ),
    "int32 fmod": _with(
        lambda x, y: torch.fmod(x, y), ints(99, dtype=torch.int32), ints(99, low=1).int()
    ),
    "int8 wraps": _with(lambda x: x * 37 + 5, ints(300, dtype=torch.int8)),
    "int16": _with(lambda x: (x * 300) >> 3, ints(77, dtype=torch.int16)),
    "uint8": _with(lambda x: 255 - x * 3, ints(77, low=0, dtype=torch.uint8)),
    "scales of MX": _with(
        lambda x: (x.float(), x.view(torch.uint8) + 1),
        torch.arange(1, 250, dtype=torch.uint8).view(torch.float8_e8m0fnu),
    ),
    "bit operations": _with(lambda x, y: (x & y) | (x ^ ~y), ints(99), ints(99)),
    "shifts": _with(lambda x: (x << 3) + (x >> 1), ints(99)),
    "int sums": _with(lambda x: x.sum(1), ints(9, 40, dtype=torch.int32)),
    "int8 sums": _with(lambda x: x.sum(0), ints(9, 40, dtype=torch.int8)),
    "int maximum": _with(lambda x: x.max(1), ints(9, 40)),
    "int prod": _with(lambda x: x.prod(1), ints(9, 6)),
    "cumsum over many programs": _with(lambda x: x.cumsum(0), (70_000,), tolerance=2e-3),
    "logarithms of sums over many programs": _with(
        lambda x: torch.logcumsumexp(x, 0), (70_000,), tolerance=2e-3
    ),
    "int cumsum": _with(lambda x: x.cumsum(0), ints(9, 40)),
    "int mean": _with(lambda x: x.float().mean(), ints(9, 40)),
    "int clamp": _with(lambda x: x.clamp(-3, 5), ints(77)),
    "int abs sign": _with(lambda x: x.abs() * x.sign(), ints(77)),
    "int and float": _with(lambda x, y: x * y + 1, ints(77), (77,)),
    "int gcd": _with(lambda x, y: torch.gcd(x, y), ints(33, low=1), ints(33, low=1)),
    "int pow": _with(lambda x: x**3, ints(77)),
    "bool logic": _with(lambda x, y: (x & ~y) | (x ^ y), bools(9, 40), bools(9, 40)),
    "bool sums": _with(lambda x: x.sum(1), bools(9, 40)),
    "bool any": _with(lambda x: x.any(0) & x.all(1).any(), bools(9, 40)),
    "bool where": _with(lambda x, y: torch.where(x, y, -y), bools(9, 40), (9, 40)),
    "bool cumsum": _with(lambda x: x.cumsum(1), bools(9, 40)),
    "bool argmax": _with(lambda x: x.int().argmax(1), bools(9, 40)),
    # other floats
    "half softmax": _with(lambda x: torch.softmax(x, -1), halves(9, 65)),
    "half layer norm": _with(lambda x: F.layer_norm(x, (65,)), halves(9, 65)),
    "half sums": _with(lambda x: x.sum(1), halves(9, 65)),
    "half gelu": _with(F.gelu, halves(9, 65)),
    "bfloat16 softmax": _with(lambda x: torch.softmax(x, -1), brains(9, 65)),
    "bfloat16 rms norm": _with(lambda x: F.rms_norm(x, (65,)), brains(9, 65)),
    "bfloat16 sums": _with(lambda x: x.sum(0), brains(9, 65)),
    "bfloat16 silu": _with(lambda x, y: F.silu(x) * y, brains(9, 65), brains(9, 65)),
    # Between two ops that are fused Inductor does not round.
    "to half and back": _with(lambda x: (x.half() * 2).float() + 1, X, tolerance=4e-3),
    "to bfloat16 and back": _with(lambda x: (x.bfloat16() * 3).float(), X, tolerance=6e-2),
    "half and float": _with(lambda x, y: x + y, halves(9, 65), (9, 65)),
    "double functions": _with(lambda x: x.sin() + x.exp() + x.erf(), doubles(9, 65)),
    "double softmax": _with(lambda x: torch.softmax(x, -1), doubles(9, 65)),
    "double var": _with(lambda x: x.var(0), doubles(9, 65)),
    "complex product": _with(
        lambda x, y: torch.view_as_real(torch.complex(x, y) * torch.complex(y, x)), X, Y
    ),
    # losses
    "mse": _with(F.mse_loss, X, Y, grad=True),
    "l1": _with(F.l1_loss, X, Y, grad=True),
    "smooth l1": _with(F.smooth_l1_loss, X, Y, grad=True),
    "huber": _with(F.huber_loss, X, Y, grad=True),
    "cross entropy": _with(F.cross_entropy, (33, 65), ints(33, low=0, high=65), grad=True),
    "cross entropy ignore": _with(
        lambda x, y: F.cross_entropy(x, y, ignore_index=3, label_smoothing=0.1),
        (33, 9),
        ints(33, low=0, high=9),
        grad=True,
    ),
    "nll": _with(F.nll_loss, (33, 65), ints(33, low=0, high=65), grad=True),
    "bce": _with(
        lambda x, y: F.binary_cross_entropy(torch.sigmoid(x), y), X, positive(*Y) / 2, grad=True
    ),
    "bce logits": _with(F.binary_cross_entropy_with_logits, X, positive(*Y), grad=True),
    "kl": _with(
        lambda x, y: F.kl_div(x.log_softmax(1), y.softmax(1), reduction="batchmean"),
        X,
        Y,
        grad=True,
    ),
    "hinge": _with(lambda x: F.relu(1 - x).mean(), X, grad=True),
    "margin ranking": _with(
        lambda x, y: F.margin_ranking_loss(x, y, torch.ones(65)), (65,), (65,), grad=True
    ),
    "triplet": _with(F.triplet_margin_loss, (9, 40), (9, 40), (9, 40), grad=True),
    "cosine embedding": _with(
        lambda x, y: F.cosine_embedding_loss(x, y, torch.ones(9)), (9, 40), (9, 40), grad=True
    ),
    "poisson": _with(F.poisson_nll_loss, X, positive(*Y), grad=True),
    # indexing
    "embedding": _with(lambda i, w: F.embedding(i, w), ints(7, 9, low=0, high=20), (20, 33)),
    "embedding grad": _with(
        lambda w, i: F.embedding(i, w).square(), (20, 33), ints(7, 9, low=0, high=20), grad=True
    ),
    "embedding_bag": _with(
        lambda w, i: F.embedding(i, w).mean(1), (20, 33), ints(7, 9, low=0, high=20), grad=True
    ),
    "index": _with(lambda x, i: x[i] + 1, (20, 33), ints(9, low=-20, high=20)),
    "index two": _with(lambda x, i, j: x[i, j] * 2, (20, 33), ints(9, low=0), ints(9, low=0)),
    "index_select": _with(lambda x, i: x.index_select(1, i), (20, 33), ints(9, low=0), grad=True),
    "gather": _with(lambda x, i: x.gather(1, i), (20, 33), ints(20, 7, low=0, high=33), grad=True),
    "take_along_dim": _with(
        lambda x, i: torch.take_along_dim(x, i, 0), (20, 33), ints(5, 33, low=0, high=20)
    ),
    "scatter": _with(
        lambda x, y: x.scatter(
            1, torch.arange(33, device=x.device).flip(0)[None].expand(20, -1), y
        ),
        (20, 33),
        (20, 33),
    ),
    "scatter_add": _with(
        lambda x, i, y: x.scatter_add(1, i, y), (20, 33), ints(20, 33, low=0, high=33), (20, 33)
    ),
    "scatter_reduce amax": _with(
        lambda x, i, y: x.scatter_reduce(1, i, y, "amax"),
        (20, 33),
        ints(20, 33, low=0, high=33),
        (20, 33),
    ),
    "index_add": _with(
        lambda x, i, y: x.index_add(0, i, y), (20, 33), ints(50, low=0, high=20), (50, 33)
    ),
    "index_put accumulate": _with(
        lambda x, i, y: x.index_put((i,), y, accumulate=True),
        (20, 33),
        ints(50, low=0, high=20),
        (50, 33),
    ),
    "index_copy": _with(
        lambda x, y: x.index_copy(0, torch.tensor([3, 1, 7], device=x.device), y), (20, 33), (3, 33)
    ),
    "index_fill": _with(
        lambda x: x.index_fill(0, torch.tensor([3, 1], device=x.device), 4.0), (20, 33)
    ),
    "masked_scatter like": _with(
        lambda x, m: torch.where(m, x.cumsum(0), x), (20, 33), bools(20, 33)
    ),
    "put into zeros": _with(
        lambda i: torch.zeros(40).index_put((i,), torch.tensor(2.0)), ints(9, low=0)
    ),
    "bincount like": _with(
        lambda i: torch.zeros(9, dtype=torch.int64).scatter_add(0, i, torch.ones_like(i)),
        ints(200, low=0),
    ),
    # gradients
    "grad of sin": _with(lambda x: (x.sin() * x).sum(), X, grad=True),
    "grad of softmax": _with(lambda x: torch.softmax(x, -1).square(), X, grad=True),
    "grad of layer norm": _with(
        lambda x, w, b: F.layer_norm(x, (65,), w, b), X, (65,), (65,), grad=True
    ),
    "grad of rms norm": _with(lambda x, w: F.rms_norm(x, (65,), w), X, (65,), grad=True),
    "grad of batch norm": _with(
        lambda x, w, b: F.batch_norm(x, None, None, w, b, training=True),
        X,
        (65,),
        (65,),
        grad=True,
        tolerance=1e-4,
    ),
    "grad of group norm": _with(lambda x, w: F.group_norm(x, 4, w), (3, 8, 40), (8,), grad=True),
    "grad of gelu": _with(F.gelu, X, grad=True),
    "grad of silu": _with(lambda x, y: F.silu(x) * y, X, Y, grad=True),
    "grad of max": _with(lambda x: x.amax(1), X, grad=True),
    "grad of cumsum": _with(lambda x: x.cumsum(1).square(), X, grad=True, tolerance=1e-3),
    "grad of product": _with(lambda x, y: (x @ y).relu(), (9, 20), (20, 17), grad=True),
    "grad of views": _with(lambda x: x[3:20, ::2].t().reshape(-1).exp(), X, grad=True),
    "grad of cat": _with(lambda x, y: torch.cat([x, y * 2], 1).sin(), X, Y, grad=True),
    "grad of pad": _with(lambda x: F.pad(x, (1, 2)).square(), X, grad=True),
    "grad of where": _with(lambda x, y: torch.where(x > y, x * y, y), X, Y, grad=True),
    "grad of norm": _with(lambda x: torch.linalg.vector_norm(x, dim=1), X, grad=True),
    "grad of logsumexp": _with(lambda x: torch.logsumexp(x, 0), X, grad=True),
    "grad of pools": _with(
        lambda x: F.max_pool2d(x, 2) + F.avg_pool2d(x, 2), (2, 3, 8, 10), grad=True
    ),
    "grad of upsampling": _with(
        lambda x: F.interpolate(x, scale_factor=2.0), (2, 3, 8, 10), grad=True
    ),
    "grad of attention": _with(
        lambda q, k, v: torch.softmax(torch.tanh(q @ k.transpose(-1, -2)), -1) @ v,
        (2, 3, 9, 16),
        (2, 3, 11, 16),
        (2, 3, 11, 16),
        grad=True,
    ),
    "grad in half": _with(lambda x: F.gelu(x).sum(1), halves(9, 65), grad=True),
    "grad in bfloat16": _with(lambda x: F.silu(x) * x, brains(9, 65), grad=True, tolerance=3e-2),
    # random numbers
    "rand": Row(lambda x: torch.rand_like(x), ((50, 400),), is_random=True),
    "randn": Row(lambda x: torch.randn_like(x), ((50, 400),), is_random=True),
    "dropout": Row(lambda x: F.dropout(x * 0 + 1, 0.3), ((50, 400),), is_random=True),
    "bernoulli": Row(lambda x: torch.bernoulli(x * 0 + 0.3), ((50, 400),), is_random=True),
    "randint": Row(lambda x: torch.randint_like(x, 3, 17), ((50, 400),), is_random=True),
    # sizes
    "one element": _with(lambda x: x.sin() + 1, (1,)),
    "no elements": _with(lambda x: x.sin() + 1, (0, 7)),
    "scalar tensor": _with(lambda x, y: x * y, (), (33,)),
    "long row": _with(lambda x: torch.softmax(x, -1), (3, 20001)),
    "long column": _with(lambda x: x.sum(0), (5003, 3), tolerance=1e-4),
    "long sum": _with(lambda x: x.sum(), (300_007,), tolerance=1e-3),
    "many rows": _with(lambda x: x.amax(1), (5003, 3)),
    "five dimensions": _with(lambda x: x.permute(4, 2, 0, 1, 3).sum((1, 3)), (2, 3, 5, 4, 7)),
    "strided input": _with(lambda x: x.sum(1) * 2, torch.randn(65, 33).t()),
    "expanded input": _with(lambda x: x.sin().sum(0), torch.randn(1, 33).expand(9, 33)),
    "offset input": _with(lambda x: x * 2 + 1, torch.randn(99)[3:78]),
}
# torch computes these itself.
WITHOUT_KERNELS = (
    *("topk", "median", "kthvalue", "cdist", "adaptive_avg_pool", "int gcd", "complex product"),
    "no elements",
)
