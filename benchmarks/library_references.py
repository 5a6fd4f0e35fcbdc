"""What ops of several libraries compute, in torch and fp64."""

import torch
import torch.nn.functional as F


def rms(x: torch.Tensor, weight: torch.Tensor, eps: float = 1e-6) -> torch.Tensor:
    x = x.double()
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps) * weight


def attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool = True, window: int = 0
) -> torch.Tensor:
    """Of one sequence, whose tensors are (tokens, heads, dims): queries are those of the last
    tokens; `window` is how many keys each sees, 0 for all. Heads of keys are shared."""
    heads, shared = q.shape[1], k.shape[1]
    q, k, v = (x.double() for x in (q, k, v))
    k, v = (x.repeat_interleave(heads // shared, 1) for x in (k, v))
    scores = torch.einsum("qhd,khd->hqk", q, k) * q.shape[-1] ** -0.5
    apart = torch.arange(len(k) - len(q), len(k))[:, None] - torch.arange(len(k))
    hidden = apart < 0 if causal else torch.zeros_like(apart, dtype=torch.bool)
    if window:
        hidden |= apart >= window
    return torch.einsum("hqk,khd->qhd", scores.masked_fill(hidden, -torch.inf).softmax(-1), v)


def rotated(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """Pairs of numbers of the first and the second half, turned. The last dimension of the angles
    is half of that of `x`."""
    first, second = x.double().chunk(2, -1)
    return torch.cat((first * cos - second * sin, second * cos + first * sin), -1)


def gated(x: torch.Tensor) -> torch.Tensor:
    gate, up = x.double().chunk(2, -1)
    return F.silu(gate) * up


def lengths(count: int, longest: int) -> list[int]:
    """Of sequences: one is of the longest, the others are shorter."""
    return [longest - (5 * n * longest) // (8 * count) for n in range(count)]


def experts(
    x: torch.Tensor, up: torch.Tensor, down: torch.Tensor, weights: torch.Tensor, ids: torch.Tensor
) -> torch.Tensor:
    """A mixture of experts: (tokens, hidden) through (experts, 2 inner, hidden) and (experts,
    hidden, inner); of each token the weights and numbers of its experts."""
    out = torch.zeros(len(x), down.shape[1], dtype=torch.float64)
    for number in range(len(up)):
        token, rank = (ids == number).nonzero(as_tuple=True)
        inner = gated(x[token].double() @ up[number].double().T)
        one = inner @ down[number].double().T * weights[token, rank, None].double()
        out.index_add_(0, token, one)
    return out


FP8 = torch.float8_e4m3fn


def by_row(x: torch.Tensor, dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    """Numbers of 8 bits, and a scale for each row."""
    most = torch.finfo(dtype).max if dtype.is_floating_point else torch.iinfo(dtype).max
    scale = x.float().abs().amax(-1, keepdim=True) / most
    codes = x.float() / scale
    return (codes if dtype.is_floating_point else codes.round()).to(dtype), scale


def by_block(x: torch.Tensor, block: int, rows: int = 1) -> tuple[torch.Tensor, torch.Tensor]:
    """Numbers of fp8, and a scale for each block of so many columns and rows."""
    *first, height, width = x.shape
    parts = x.float().reshape(*first, height // rows, rows, width // block, block)
    scale = parts.abs().amax((-3, -1)) / torch.finfo(FP8).max
    return (parts / scale[..., :, None, :, None]).reshape(x.shape).to(FP8), scale


def whole(codes: torch.Tensor, scale: torch.Tensor, block: int = 0, rows: int = 1) -> torch.Tensor:
    """The numbers that codes stand for."""
    if block:
        scale = scale.repeat_interleave(rows, -2).repeat_interleave(block, -1)
    return codes.double() * scale
