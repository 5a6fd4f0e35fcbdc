"""Kernels that combine blocks of two dimensions: what is combined is read once, or kept for what
comes behind it."""

# mypy: allow-untyped-defs, as the arguments of a kernel have no Python type

import proton
import proton.language as tl

# Blocks that are combined as they are read


@proton.jit
def routed(x, weights, best, share, K, EXPERTS: tl.constexpr, BLOCK: tl.constexpr):
    """Each token's expert, which has the largest product with it, and its share."""
    token = tl.program_id(0)
    experts, at = tl.arange(0, EXPERTS), tl.arange(0, BLOCK)
    block = tl.load(weights + experts[:, None] * K + at, mask=at < K, other=0.0)
    row = tl.load(x + token * K + at, mask=at < K, other=0.0)
    scores = tl.sum(block.to(tl.float32) * row.to(tl.float32), 1)
    most = tl.max(scores, 0)
    tl.store(best + token, tl.argmax(scores, 0))
    tl.store(share + token, 1 / tl.sum(tl.exp(scores - most), 0))


@proton.jit
def times_vector(a, x, y, K, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """A matrix times a vector, ROWS rows a program."""
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    sums = tl.zeros((ROWS,), tl.float32)
    for start in range(0, K, BLOCK):
        at = start + tl.arange(0, BLOCK)
        block = tl.load(a + rows[:, None] * K + at)
        sums += tl.sum(block.to(tl.float32) * tl.load(x + at), 1)
    tl.store(y + rows, sums)


@proton.jit
def clusters(x, ids, order, sums, ROWS: tl.constexpr, DEPTH: tl.constexpr):
    """Sums of the rows of each cluster; `ids` are sorted, row `order[i]` has the id `ids[i]`."""
    at, columns = tl.program_id(0) * ROWS + tl.arange(0, ROWS), tl.arange(0, DEPTH)
    mine, rows = tl.load(ids + at), tl.load(order + at)
    for cluster in range(tl.min(mine, 0), tl.max(mine, 0) + 1):
        is_in = mine == cluster
        block = tl.load(x + rows[:, None] * DEPTH + columns, mask=is_in[:, None], other=0.0)
        tl.atomic_add(sums + cluster * DEPTH + columns, tl.sum(block.to(tl.float32), 0))


@proton.jit
def best_of_rows(x, best, N, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    rows, at = tl.program_id(0) * ROWS + tl.arange(0, ROWS), tl.arange(0, BLOCK)
    block = tl.load(x + rows[:, None] * N + at, mask=at < N, other=-float("inf"))
    tl.store(best + rows, tl.argmax(block, 1))


# Blocks that are kept


@proton.jit
def norms_of_rows(x, weight, out, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    rows, at = tl.program_id(0) * ROWS + tl.arange(0, ROWS), tl.arange(0, BLOCK)
    block = tl.load(x + rows[:, None] * BLOCK + at).to(tl.float32)
    scale = tl.rsqrt(tl.sum(block * block, 1) / BLOCK + 1e-6)
    scaled = block * scale[:, None] * tl.load(weight + at)
    tl.store(out + rows[:, None] * BLOCK + at, scaled)


@proton.jit
def of_8_bits(x, out, scales, N, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """Blocks as int8, with a scale for each."""
    down, right = tl.program_id(0), tl.program_id(1)
    rows, at = down * ROWS + tl.arange(0, ROWS), right * COLUMNS + tl.arange(0, COLUMNS)
    block = tl.load(x + rows[:, None] * N + at).to(tl.float32)
    scale = tl.max(tl.abs(block)) / 127
    tl.store(scales + down * tl.num_programs(1) + right, scale)
    tl.store(out + rows[:, None] * N + at, (block / scale).to(tl.int8))


@proton.jit
def losses(logits, targets, out, N, BLOCK: tl.constexpr):
    """Cross entropy of a row, a chunk of BLOCK logits at a time."""
    row = tl.program_id(0)
    most, sums = -float("inf"), 0.0
    for start in range(0, N, BLOCK):
        at = start + tl.arange(0, BLOCK)
        chunk = tl.load(logits + row * N + at, mask=at < N, other=-float("inf")).to(tl.float32)
        now = tl.maximum(most, tl.max(chunk, 0))
        sums = sums * tl.exp(most - now) + tl.sum(tl.exp(chunk - now), 0)
        most = now
    target = tl.load(logits + row * N + tl.load(targets + row)).to(tl.float32)
    tl.store(out + row, most + tl.log(sums) - target)


@proton.jit
def running_sums(x, out, ROWS: tl.constexpr, COLUMNS: tl.constexpr, AXIS: tl.constexpr):
    at = tl.arange(0, ROWS)[:, None] * COLUMNS + tl.arange(0, COLUMNS)
    at += tl.program_id(0) * ROWS * COLUMNS
    tl.store(out + at, tl.cumsum(tl.load(x + at), AXIS))
