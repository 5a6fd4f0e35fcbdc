"""Cases of small libraries: what mixtures of experts need, and what finds things in pictures and in
clouds of points."""

import torch
import torch.nn.functional as F
from libraries import middle
from library_case import Size
from small_case import BF16, FULL, call, gradients

# isort: split
from conch.ops.vision import bev_pool, nms, voxelization
from megablocks.backend import kernels as megablocks
from moe_ops import (
    fused_topk_softmax_ops,
    grouped_gemm_ops,
    grouped_gemm_ops_sm90,
    permute_ops,
    unpermute_ops,
)

middle(megablocks, fused_topk_softmax_ops, grouped_gemm_ops, grouped_gemm_ops_sm90, unpermute_ops)
grouped_gemm_ops_sm90.supports_tma = lambda *_: True
EXPERTS, TOP = 8, 2
TOKENS, HIDDEN = Size(40, 4096, 256), Size(128, 4096, 7168)

# Rows to experts and back


def _routes(tokens):
    ids = torch.rand(tokens, EXPERTS).topk(TOP).indices
    order = ids.flatten().argsort(stable=True)
    return ids, order, ids.flatten().bincount(minlength=EXPERTS)


@call(TOKENS, HIDDEN, dtypes=BF16)
def rows_to_experts(dtype, tokens, hidden):
    """In groups that are filled up to 128 rows, and back, with the gradients of weights."""
    ids, order, sizes = _routes(tokens)
    x = torch.randn(tokens, hidden, dtype=dtype)
    weights = torch.rand(tokens * TOP, dtype=dtype)
    bins, wide = sizes.cumsum(0), (sizes + 127) // 128 * 128
    given = order.int(), ids.flatten()[order].int()
    ends = bins.int(), wide.cumsum(0).int()
    rows = torch.randn(int(wide.sum()), hidden, dtype=dtype)
    of = ids.flatten()[order]
    start = bins - sizes
    at = (wide.cumsum(0) - wide)[of] + torch.arange(len(order)) - start[of]

    def op():
        return (
            megablocks.padded_gather(x, *given, None, *ends, TOP),
            megablocks.padded_scatter(rows, *given, weights, *ends, TOP),
            megablocks.padded_scatter_wgrad(rows, x, *given, *ends, TOP),
        )

    def reference():
        padded = torch.zeros(len(rows), hidden, dtype=torch.float64)
        padded[at] = x.double()[order // TOP]
        back = torch.zeros(tokens * TOP, hidden, dtype=torch.float64)
        back[order] = rows.double()[at]
        grads = (back * x.double().repeat_interleave(TOP, 0)).sum(1)
        return padded, (back * weights[:, None]).unflatten(0, (-1, TOP)).sum(1), grads

    return op, reference


@call(TOKENS, HIDDEN, dtypes=BF16)
def rows_by_counting(dtype, tokens, hidden):
    """Sorted by counting them, and back."""
    ids = _routes(tokens)[0]
    x = torch.randn(tokens, hidden, dtype=dtype)
    shares = torch.rand(tokens, TOP)

    def op(x):
        rows, places, _ = permute_ops.PermuteAutograd.apply(x, ids.int(), 0, EXPERTS)
        return unpermute_ops.unpermute(rows, places, shares, tokens, TOP)

    return gradients(op, lambda x: x * shares.sum(1, keepdim=True), x)


@call(Size(40, 16384, 1024), Size(16, 128, 256), dtypes=FULL)
def best_experts(dtype, tokens, experts):
    x = torch.randn(tokens, experts, dtype=dtype)
    return gradients(
        lambda x: fused_topk_softmax_ops.fused_topk_softmax(x, 8)[0],
        lambda x: x.topk(8).values.softmax(-1),
        x,
    )


@call(TOKENS, HIDDEN, Size(256, 2048, 2048), dtypes=BF16)
def grouped_products(dtype, tokens, hidden, inner):
    """With gradients, and one by descriptors."""
    sizes = _routes(tokens)[-1]
    ends = F.pad(sizes.cumsum(0), (1, 0)).int()
    x = torch.randn(tokens * TOP, hidden, dtype=dtype)
    w = torch.randn(EXPERTS, inner, hidden, dtype=dtype) / hidden**0.5

    def reference(x, w):
        parts = zip(x.split(sizes.tolist()), w, strict=True)
        return torch.cat([part @ expert.T for part, expert in parts])

    op, expected = gradients(
        lambda x, w: grouped_gemm_ops.grouped_gemm(x, w, ends), reference, x, w
    )
    return (
        lambda: (*op(), grouped_gemm_ops_sm90.group_gemm_tma_fn(x, w, ends)),
        lambda: (*expected(), reference(x.double(), w.double())),
    )


# Pictures and points


@call(Size(150, 4096, 1024), dtypes=FULL)
def suppressed_boxes(dtype, boxes):
    corners = torch.rand(boxes, 2, dtype=dtype) * 100
    box = torch.cat((corners, corners + torch.rand(boxes, 2) * 30 + 1), 1)
    scores = torch.rand(boxes)

    def reference():
        order, kept = scores.argsort(descending=True).tolist(), []
        low = torch.maximum(box[:, None, :2], box[:, :2])
        high = torch.minimum(box[:, None, 2:], box[:, 2:])
        common = (high - low).clamp(min=0).prod(-1)
        area = (box[:, 2:] - box[:, :2]).prod(-1)
        share = common / (area[:, None] + area - common)
        for number in order:
            if not kept or bool((share[number, kept] <= 0.5).all()):
                kept.append(number)
        return torch.tensor(kept)

    return lambda: nms.nms(box, scores, 0.5), reference


@call(Size((70, 40), (262144, 80), (65536, 256)), dtypes=FULL)
def seen_from_above(dtype, points, channels):
    """Sums of the points of a cell, and their gradients."""
    cells, lengths = points // 5, 5
    x = torch.randn(points, channels, dtype=dtype)
    width = 1 << max(1, (cells - 1).bit_length() // 2)
    height = -(-cells // width)
    cell = torch.arange(points) // lengths
    where = torch.stack((cell // width, cell % width, 0 * cell, 0 * cell), 1).int()
    starts = torch.arange(cells).int() * lengths
    counts = torch.full((cells,), lengths, dtype=torch.int32)
    back = torch.randn(1, 1, height, width, channels)

    def op():
        return (
            bev_pool.bev_pool(x, where, starts, counts, 1, 1, height, width),
            bev_pool.bev_pool_backward(back, where, starts, counts),
        )

    def reference():
        sums = torch.zeros(height * width, channels, dtype=torch.float64)
        sums.index_add_(0, cell, x.double())
        return sums.view_as(back), back.view(-1, channels)[cell].double()

    return op, reference


@call(Size(500, 200000, 50000), dtypes=FULL)
def voxels(dtype, points):
    """How many points each cell has, which come in any order."""
    cloud = torch.rand(points, 4, dtype=dtype) * torch.tensor([40.0, 40.0, 4.0, 1.0])
    most = 8 * 32 + points // 50
    param = voxelization.VoxelizationParameter((0, 0, 0), (40, 40, 4), (5, 5, 4), most)

    def op():
        filled, _, _, counts = voxelization.generate_voxels(cloud, param)
        return filled, counts[: int(filled)].sort().values

    def reference():
        at = (cloud[:, :2] / 5).long()
        counts = torch.bincount(at[:, 0] * 8 + at[:, 1], minlength=64)
        counts = counts[counts > 0].clamp(max=most).sort().values
        return torch.tensor([len(counts)]), counts

    return op, reference
