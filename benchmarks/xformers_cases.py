"""xformers' Triton kernels: attention of few queries over long keys, and ops along rows.

Keys of 4 bits are not there: Triton 3.9 refuses what they are indexed by, and so does Proton.
"""

from typing import Any

import torch
import xformers
from library_case import Size, calls_in, cases_in, normal
from library_references import attention, lengths, rms

xformers._is_triton_available = lambda: True  # it asks for a GPU

from xformers import ops  # noqa: E402
from xformers.ops import rmsnorm  # noqa: E402
from xformers.ops._triton import tiled_matmul_kernels  # noqa: E402
from xformers.ops.fmha import attn_bias, triton_splitk  # noqa: E402
from xformers.ops.tiled_matmul import tiled_matmul_out  # noqa: E402

CASES: dict[str, Any] = {}
case, call = cases_in(CASES), calls_in(CASES)
BOTH = (torch.float32, torch.bfloat16)
HALVES = (torch.float16, torch.bfloat16)
ROWS, HIDDEN = Size((5, 3), 8192, 2048), Size(40, 4096, 16384)
BATCH, KEYS = Size(3, 16, 1), Size(150, 4096, 32768)
HEADS, SHARED, HEAD = 32, 8, 128
PAGE = 64


# Attention


def padded(count, keys, queries=1):
    """Lengths of sequences, and what says where they are in a cache."""
    sizes = lengths(count, keys)
    mask = attn_bias.BlockDiagonalCausalWithOffsetPaddedKeysMask.from_seqlens(
        q_seqlen=[queries] * count, kv_padding=keys, kv_seqlen=sizes
    )
    return sizes, mask


def expected(q, k, v, sizes, queries):
    """Of keys (sequences, keys, heads, dims)."""
    parts = zip(q[0].split(queries), k, v, sizes, strict=True)
    return torch.cat([attention(q, k[:size], v[:size]) for q, k, v, size in parts])[None]


def cache_of(dtype, count, keys, queries=1):
    q = torch.randn(1, count * queries, HEADS, HEAD, dtype=dtype)
    return q, *(torch.randn(count, keys, SHARED, HEAD, dtype=dtype) for _ in range(2))


def grouped(q, *keys):
    """As the op wants them: each head of keys beside the heads of queries that share it."""
    shape = (1, -1, SHARED, HEADS // SHARED)
    yield q.view(*shape, q.shape[-1])
    for k in keys:
        yield k.reshape(1, -1, SHARED, 1, k.shape[-1]).expand(-1, -1, -1, shape[-1], -1)


def decoded(q, k, v, mask):
    given = triton_splitk.Inputs(*grouped(q, k, v), mask)
    return triton_splitk.FwOp.apply(given, False)[0].reshape(q.shape)


@call(BATCH, KEYS, dtypes=HALVES, timed=("large", "wide"))
def split_keys(dtype, count, keys):
    q, k, v = cache_of(dtype, count, keys)
    sizes, mask = padded(count, keys)
    return lambda: decoded(q, k, v, mask), lambda: expected(q, k, v, sizes, 1)


@call(BATCH, KEYS)
def split_keys_of_some_queries(dtype, count, keys):
    q, k, v = cache_of(dtype, count, keys, 4)
    sizes, mask = padded(count, keys, 4)
    return lambda: decoded(q, k, v, mask), lambda: expected(q, k, v, sizes, 4)


@call(BATCH, KEYS)
def split_keys_of_pages(dtype, count, keys):
    pages = -(-keys // PAGE)
    q, k, v = cache_of(dtype, count, pages * PAGE)
    sizes, mask = padded(count, keys)
    table = torch.randperm(count * pages).view(count, pages).int()
    kind = attn_bias.PagedBlockDiagonalCausalWithOffsetPaddedKeysMask
    mask = mask.make_paged(table, PAGE, kind)

    def paged(x):
        pages = x.view(-1, PAGE, *x.shape[2:])
        return torch.empty_like(pages).index_copy_(0, table.flatten().long(), pages)

    caches = paged(k), paged(v)
    return lambda: decoded(q, *caches, mask), lambda: expected(q, k, v, sizes, 1)


# Rows


@call(ROWS, HIDDEN, dtypes=BOTH, timed=("large", "wide"))
def rms_norm(dtype, *shape):
    x, w = torch.randn(shape, dtype=dtype), torch.randn(shape[-1], dtype=dtype)
    return lambda: rmsnorm.rms_norm(x, w), lambda: rms(x, w)


@call(ROWS, HIDDEN, dtypes=BOTH)
def rms_norm_add(dtype, *shape):
    x, y = (torch.randn(shape, dtype=dtype) for _ in range(2))
    w = torch.randn(shape[-1], dtype=dtype)

    def op():
        total = x.clone()
        return rmsnorm.rms_norm_add(total, y, w), total

    return op, lambda: (rms(x + y, w), x + y)


@call(BATCH, KEYS)
def rope_padded(dtype, count, keys):
    queries = min(keys // 4, 128)
    q = torch.randn(1, count * queries, HEADS, HEAD, dtype=dtype)
    k, v = (torch.randn(1, count * queries, SHARED, HEAD, dtype=dtype) for _ in range(2))
    sizes, mask = padded(count, keys, queries)

    def op():
        caches = [torch.zeros(1, count * keys, SHARED, HEAD, dtype=dtype) for _ in range(2)]
        return ops.rope_padded(q, k, v, *caches, mask), *caches

    def turned(x):
        places = torch.cat([torch.arange(size - queries, size) for size in sizes])
        powers = 10000.0 ** (torch.arange(0, HEAD, 2).double() / -HEAD)
        angles = places[:, None, None] * powers
        pairs = torch.view_as_complex(x[0].double().unflatten(-1, (-1, 2)))
        return torch.view_as_real(pairs * torch.polar(torch.ones(()).double(), angles)).flatten(-2)

    def cached(x):
        out = torch.zeros(count, keys, SHARED, HEAD, dtype=torch.float64)
        for row, part, size in zip(out, x.split(queries), sizes, strict=True):
            row[size - queries : size] = part
        return out.view(1, -1, SHARED, HEAD)

    return op, lambda: (turned(q)[None], cached(turned(k)), cached(v[0]))


IMAGES = Size((9, 4, 40), (512, 256, 1024), (64, 256, 4096))


@case(normal(IMAGES), dtypes=BOTH, timed=("large",))
def index_select_cat(x):
    index = torch.randperm(len(x))[: len(x) // 2]
    return (
        lambda x: ops.index_select_cat([x.flatten(1)], [index]),
        lambda x: x[index].flatten(),
    )


@case(normal(IMAGES), normal(Size(40, 1024, 4096)), dtypes=BOTH, timed=("large",))
def scaled_index_add(x, _):
    index = torch.randperm(len(x))[: len(x) // 2]
    added = torch.randn(len(index), *x.shape[1:], dtype=x.dtype)
    return (
        lambda x, w: ops.scaled_index_add(x.clone(), index, x[: len(index)] + added, w, 0.5),
        lambda x, w: x.index_add(0, index, (x[: len(index)] + added) * w, alpha=0.5),
    )


# To choose among more of them, it asks NVML for clock rates.
tiled_matmul_kernels._xformers_tiled_matmul_kernel.configs = (
    tiled_matmul_kernels.BASIC_MATMUL_CONFIGS[4:5]
)


@call(Size((70, 96), (4096, 4096), (4096, 4096)))
def tiled_matmul(dtype, rows, columns):
    """The three products of an attention layer's input as one."""
    a = [[torch.randn(rows, columns, dtype=dtype)]]
    b = [[torch.randn(columns, n, dtype=dtype) for n in (columns, columns // 4, columns // 4)]]

    def op():
        out = [[torch.empty(rows, one.shape[1], dtype=dtype) for one in b[0]]]
        tiled_matmul_out(a, b, out)
        return out[0]

    return op, lambda: [a[0][0].double() @ one.double() for one in b[0]]
