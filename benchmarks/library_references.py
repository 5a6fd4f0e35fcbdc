"""What ops of several libraries compute, in torch and fp64."""

import itertools
from collections.abc import Iterable, Iterator
from typing import Any

import torch
import torch.nn.functional as F
from library_case import HEAD, SHARED

PAGE = 16
EXPERTS, TOP, GROUP = 8, 2, 128
STATE, GROUPS = 128, 2  # of Mamba
WIDTH = 4  # of convolutions


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


class Pages:
    """Keys and values of sequences, one behind the other, and where each of their tokens lies."""

    def __init__(
        self,
        dtype: torch.dtype,
        count: int,
        keys: int,
        heads: int = SHARED,
        head: int = HEAD,
        page: int = PAGE,
    ) -> None:
        self.page = page
        self.sizes = lengths(count, keys)
        self.k, self.v = (torch.randn(sum(self.sizes), heads, head, dtype=dtype) for _ in range(2))
        self.length = torch.tensor(self.sizes, dtype=torch.int32)
        pages = -(-keys // page)
        self.table = torch.randperm(count * pages, dtype=torch.int32).view(count, pages)
        every = (self.table[:, :, None] * page + torch.arange(page)).flatten(1).long()
        self.slots = torch.cat([row[:n] for row, n in zip(every, self.sizes, strict=True)])
        self.longest = keys

    def beside(self, queries: Iterable[Any]) -> Iterator[tuple[Any, ...]]:
        """Of each sequence the queries, keys and values."""
        return zip(queries, self.k.split(self.sizes), self.v.split(self.sizes), strict=True)

    def of_each(self, queries: Iterable[torch.Tensor], **how: Any) -> torch.Tensor:
        """Attention of the last tokens of each sequence."""
        return torch.cat([attention(*part, **how) for part in self.beside(queries)])

    def last(self, counts: list[int]) -> list[torch.Tensor]:
        """Keys and values of so many last tokens of each sequence."""
        parts = [(k[-n:], v[-n:]) for n, k, v in self.beside(counts)]
        return [torch.cat(x) for x in zip(*parts, strict=True)]

    def flat(self, x: torch.Tensor) -> torch.Tensor:
        """A cache (pages, tokens, heads, dims)."""
        cache = torch.zeros(self.table.numel() * self.page, *x.shape[1:], dtype=x.dtype)
        cache[self.slots] = x
        return cache.view(-1, self.page, *x.shape[1:])

    def head_major(self, group: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Caches (pages, heads, dims / group, tokens, group) and (pages, heads, dims, tokens)."""
        k, v = self.flat(self.k), self.flat(self.v)
        k = k.unflatten(-1, (-1, group)).permute(0, 2, 3, 1, 4)
        return k.contiguous(), v.permute(0, 2, 3, 1).contiguous()


def starts(sizes: Iterable[int]) -> torch.Tensor:
    return torch.tensor([0, *itertools.accumulate(sizes)], dtype=torch.int32)


def routes(tokens: int) -> tuple[torch.Tensor, torch.Tensor]:
    weights, ids = torch.rand(tokens, EXPERTS).topk(TOP)
    return weights / weights.sum(-1, keepdim=True), ids.int()


def weights_of(hidden: int, inner: int) -> tuple[torch.Tensor, torch.Tensor]:
    return (
        torch.randn(EXPERTS, 2 * inner, hidden) / hidden**0.5,
        torch.randn(EXPERTS, hidden, inner) / inner**0.5,
    )


def aligned(ids: torch.Tensor, block: int) -> tuple[torch.Tensor, ...]:
    """Routes by expert, of whose blocks each has one expert; a number that is none fills them."""
    order, rows, numbers = ids.flatten().argsort(stable=True), [], []
    for number, part in enumerate(order.split(ids.flatten().bincount(minlength=EXPERTS).tolist())):
        blocks = -(-len(part) // block)
        rows.append(
            torch.nn.functional.pad(part, (0, blocks * block - len(part)), value=len(order))
        )
        numbers += [number] * blocks
    rows = torch.cat(rows).int()
    return rows, torch.tensor(numbers, dtype=torch.int32), torch.tensor([len(rows)]).int()


def scanned(
    state: torch.Tensor,
    x: torch.Tensor,
    dt: torch.Tensor,
    decay: torch.Tensor,
    b: torch.Tensor,
    c: torch.Tensor,
    skip: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Mamba of one sequence: (heads, dims, numbers) after its tokens, and what each gives."""
    outs = []
    for token in range(len(x)):
        state = state * (decay * dt[token])[:, None, None].exp()
        state = state + (dt[token, :, None] * x[token])[..., None] * b[token][:, None]
        outs.append((state * c[token][:, None]).sum(-1) + skip[:, None] * x[token])
    return state, torch.stack(outs)


def scan_inputs(dtype: torch.dtype, tokens: int, heads: int, dims: int) -> list[torch.Tensor]:
    """x, dt, A, B, C, D, and the bias of dt."""
    b, c = torch.randn(2, tokens, GROUPS, STATE, dtype=dtype) / STATE**0.25
    x, dt = torch.randn(tokens, heads, dims, dtype=dtype), torch.randn(tokens, heads, dtype=dtype)
    return [x, dt, -torch.rand(heads) - 0.5, b, c, torch.randn(heads), torch.randn(heads)]


def scan_numbers(given: list[torch.Tensor]) -> list[torch.Tensor]:
    x, dt, a, b, c, d, bias = given
    each = (n.double().repeat_interleave(x.shape[1] // GROUPS, 1) for n in (b, c))
    return [x.double(), F.softplus(dt.double() + bias), a.double(), *each, d.double()]


def convolved(
    x: torch.Tensor, before: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Of one sequence (channels, tokens): what it gives, and its last tokens."""
    x = torch.cat((before, x), 1).double()
    out = F.conv1d(x[None], weight.double()[:, None], bias.double(), groups=len(x))[0]
    return F.silu(out), x[:, 1 - WIDTH :]
