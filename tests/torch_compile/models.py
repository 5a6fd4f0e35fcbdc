"""Ten models, each with the inputs that it takes: what programs compile."""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class MLP(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up, self.down, self.norm = nn.Linear(40, 96), nn.Linear(96, 10), nn.LayerNorm(96)

    def forward(self, x: Tensor) -> Tensor:
        return self.down(self.norm(F.gelu(self.up(x))))


class ViTBlock(nn.Module):
    """Patches, attention with all of them, a mean over them."""

    def __init__(self, width: int = 32, heads: int = 4) -> None:
        super().__init__()
        self.heads = heads
        self.patches = nn.Conv2d(3, width, 4, stride=4)
        self.place = nn.Parameter(torch.randn(1, 16, width) * 0.02)
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(
            nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width)
        )

    def forward(self, x: Tensor) -> Tensor:
        x = self.patches(x).flatten(2).transpose(1, 2) + self.place
        batch, length, width = x.shape
        parts = self.qkv(self.first(x)).reshape(batch, length, 3, self.heads, -1)
        q, k, v = parts.permute(2, 0, 3, 1, 4)
        weights = torch.softmax(q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5, -1)
        x = x + self.out((weights @ v).transpose(1, 2).reshape(batch, length, width))
        return (x + self.mlp(self.second(x))).mean(1)


class GPTBlock(nn.Module):
    """Tokens to a loss: embeddings, causal attention, an MLP, cross entropy."""

    def __init__(self, words: int = 61, width: int = 32, heads: int = 4, length: int = 24) -> None:
        super().__init__()
        self.heads = heads
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(length, width)
        self.first, self.second, self.last = (nn.LayerNorm(width) for _ in range(3))
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.head = nn.Linear(width, words, bias=False)

    def forward(self, tokens: Tensor, targets: Tensor) -> Tensor:
        batch, length = tokens.shape
        x = self.words(tokens) + self.places(torch.arange(length, device=tokens.device))
        parts = self.qkv(self.first(x)).reshape(batch, length, 3, self.heads, -1)
        q, k, v = parts.permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
        hidden = torch.ones(length, length, device=tokens.device).triu(1) > 0
        weights = torch.softmax(scores.masked_fill(hidden, -torch.inf), -1)
        x = x + self.out((weights @ v).transpose(1, 2).reshape(x.shape))
        x = x + self.down(F.gelu(self.up(self.second(x)), approximate="tanh"))
        return F.cross_entropy(self.head(self.last(x)).flatten(0, 1), targets.flatten())


class MoE(nn.Module):
    """Two of four experts for each token, by a softmax of scores."""

    def __init__(self, width: int = 24, experts: int = 4) -> None:
        super().__init__()
        self.gate = nn.Linear(width, experts)
        self.up = nn.Parameter(torch.randn(experts, width, 48) * 0.1)
        self.down = nn.Parameter(torch.randn(experts, 48, width) * 0.1)

    def forward(self, x: Tensor) -> Tensor:
        weights, chosen = torch.topk(torch.softmax(self.gate(x), -1), 2)
        weights = weights / weights.sum(-1, keepdim=True)
        outs = torch.einsum("tw,ewh->teh", x, self.up)
        outs = torch.einsum("teh,ehw->tew", F.silu(outs), self.down)
        picked = outs.gather(1, chosen[..., None].expand(-1, -1, x.shape[-1]))
        return (picked * weights[..., None]).sum(1)


class ConvNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 16, 3, padding=1)
        self.norms = nn.ModuleList([nn.BatchNorm2d(8), nn.BatchNorm2d(16)])
        self.head = nn.Linear(16, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = F.max_pool2d(F.relu(self.norms[0](self.first(x))), 2)
        x = F.relu(self.norms[1](self.second(x)))
        return self.head(F.adaptive_avg_pool2d(x, 1).flatten(1))


class RNNCell(nn.Module):
    """A GRU's cell, five steps."""

    def __init__(self, width: int = 20) -> None:
        super().__init__()
        self.of_input, self.of_state = nn.Linear(12, 3 * width), nn.Linear(width, 3 * width)

    def forward(self, x: Tensor, state: Tensor) -> Tensor:
        for step in x.unbind(1):
            reset, update, new = self.of_input(step).chunk(3, -1)
            of_reset, of_update, of_new = self.of_state(state).chunk(3, -1)
            kept = torch.sigmoid(update + of_update)
            new = torch.tanh(new + torch.sigmoid(reset + of_reset) * of_new)
            state = kept * state + (1 - kept) * new
        return state


class DiffusionBlock(nn.Module):
    """A residual block with group norms, moved by an embedding of the time."""

    def __init__(self, channels: int = 16) -> None:
        super().__init__()
        self.norms = nn.ModuleList([nn.GroupNorm(4, channels) for _ in range(2)])
        self.convs = nn.ModuleList([nn.Conv2d(channels, channels, 3, padding=1) for _ in range(2)])
        self.time = nn.Linear(32, 2 * channels)

    def forward(self, x: Tensor, t: Tensor) -> Tensor:
        frequencies = torch.exp(-torch.arange(16, device=x.device) * 0.4)
        angles = t[:, None] * frequencies
        scale, shift = self.time(torch.cat([angles.sin(), angles.cos()], 1)).chunk(2, 1)
        y = self.convs[0](F.silu(self.norms[0](x)))
        y = self.norms[1](y) * (1 + scale[..., None, None]) + shift[..., None, None]
        return x + self.convs[1](F.silu(y))


class Flex(nn.Module):
    """What flex attention computes, by its functions of an index: a window, and distance as a
    penalty. The operator itself torch makes a kernel of in C++ where there is no GPU."""

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        places = [torch.arange(size, device=q.device) for size in (*q.shape[:3], k.shape[2])]
        scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
        scores = _over_all(self.score)(scores, *places)
        kept = _over_all(self.mask)(scores, *places)
        return torch.softmax(torch.where(kept, scores, -torch.inf), -1) @ v

    @staticmethod
    def score(score: Tensor, b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
        return torch.tanh(score / 5) * 5 - 0.1 * (h + 1) * (i - j)

    @staticmethod
    def mask(score: Tensor, b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
        return (i >= j) & (i - j < 100)


def _over_all(of: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """A function of one score and its indices, of all."""
    for axes in (
        (0, None, None, None, 0),
        (0, None, None, 0, None),
        (0, None, 0, None, None),
        (0, 0, None, None, None),
    ):
        of = torch.vmap(of, in_dims=axes)
    return of


class QuantisedLinear(nn.Module):
    """Weights in int8 with a scale for each row, of which the input's are made each time."""

    def __init__(self, width: int = 40, out: int = 24) -> None:
        super().__init__()
        weight = torch.randn(out, width)
        scale = weight.abs().amax(1, keepdim=True) / 127
        self.register_buffer("scale", scale)
        self.register_buffer("weight", torch.round(weight / scale).to(torch.int8))

    def forward(self, x: Tensor) -> Tensor:
        scale = x.abs().amax(-1, keepdim=True) / 127
        quantised = torch.clamp(torch.round(x / scale), -128, 127).to(torch.int8)
        sums = (quantised.int()[:, None] * self.weight.int()[None]).sum(-1)
        return sums * scale * self.scale[:, 0]


class SparseGather(nn.Module):
    """Sums of neighbours' rows by lists of edges, as a graph network's."""

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        self.update = nn.Linear(2 * width, width)

    def forward(self, x: Tensor, sources: Tensor, targets: Tensor) -> Tensor:
        sums = torch.zeros_like(x).index_add(0, targets, x[sources])
        count = torch.zeros(x.shape[0]).index_add(0, targets, torch.ones(targets.shape[0]))
        return F.relu(self.update(torch.cat([x, sums / count.clamp(min=1)[:, None]], 1)))


def _ints(high: int, *shape: int) -> Tensor:
    return torch.randint(0, high, shape)


# Name -> (the model, its inputs, whether gradients are compared).
MODELS: dict[str, tuple[type[nn.Module], Callable[[], tuple[Tensor, ...]], bool]] = {
    "mlp": (MLP, lambda: (torch.randn(7, 40),), True),
    "vit block": (ViTBlock, lambda: (torch.randn(2, 3, 16, 16),), True),
    "gpt block": (GPTBlock, lambda: (_ints(61, 2, 23), _ints(61, 2, 23)), True),
    "mixture of experts": (MoE, lambda: (torch.randn(19, 24),), True),
    "convolution net": (ConvNet, lambda: (torch.randn(4, 3, 14, 14),), True),
    "rnn cell": (RNNCell, lambda: (torch.randn(3, 5, 12), torch.randn(3, 20)), True),
    "diffusion block": (DiffusionBlock, lambda: (torch.randn(2, 16, 9, 9), torch.rand(2)), True),
    "flex attention": (Flex, lambda: tuple(torch.randn(2, 3, 41, 16) for _ in range(3)), False),
    "quantised linear": (QuantisedLinear, lambda: (torch.randn(9, 40),), False),
    "sparse gather": (
        SparseGather,
        lambda: (torch.randn(30, 16), _ints(30, 77), _ints(30, 77)),
        True,
    ),
}
