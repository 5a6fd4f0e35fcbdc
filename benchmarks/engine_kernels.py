"""Kernels as serving engines and training loops write them, which nobody tuned for: scalars that go
through memory, searches, pages, packed numbers, sampling, small products."""

# mypy: allow-untyped-defs, as the arguments of a kernel have no Python type

import proton
import proton.language as tl

# Scalars


@proton.jit
def count_experts(ids, counts, n, E: tl.constexpr):
    """How many of `n` tokens go to each expert, by one thread."""
    program = tl.program_id(0)
    for i in range(n):
        at = counts + program * E + tl.load(ids + program * n + i)
        tl.store(at, tl.load(at) + 1)


@proton.jit
def padded_sums(counts, sums, E: tl.constexpr, BLOCK: tl.constexpr):
    total = 0
    for i in range(E):
        total += tl.cdiv(tl.load(counts + i), BLOCK) * BLOCK
        tl.store(sums + i, total)


@proton.jit
def column_sums(counts, ROWS: tl.constexpr, E: tl.constexpr):
    """Running sums down a column, in place."""
    total = 0
    for row in range(ROWS):
        at = counts + row * E + tl.program_id(0)
        total += tl.load(at)
        tl.store(at, total)


@proton.jit
def search_one(keys, wanted, found, n):
    x = tl.load(wanted + tl.program_id(0))
    low, high = 0, n
    while low < high:
        middle = (low + high) // 2
        if tl.load(keys + middle) < x:
            low = middle + 1
        else:
            high = middle
    tl.store(found + tl.program_id(0), low)


@proton.jit
def search_block(keys, wanted, found, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(wanted + at)
    low, high = tl.zeros((BLOCK,), tl.int32), tl.zeros((BLOCK,), tl.int32) + n
    for _ in range(21):
        middle = (low + high) // 2
        is_less = tl.load(keys + middle, mask=middle < n, other=2147483647) < x
        low, high = tl.where(is_less, middle + 1, low), tl.where(is_less, high, middle)
    tl.store(found + at, low)


@proton.jit
def sequence_of(starts, found, sequences, BLOCK: tl.constexpr):
    """The sequence that a block of tokens begins in."""
    program, i = tl.program_id(0), 0
    while i < sequences - 1 and tl.load(starts + i + 1) <= program * BLOCK:
        i += 1
    tl.store(found + program, i)


# Pages and rows


@proton.jit
def copy_pages(source, target, table, pages, D: tl.constexpr):
    row, columns = tl.program_id(0), tl.arange(0, D)
    for i in range(pages):
        page = tl.load(table + row * pages + i).to(tl.int64)
        tl.store(target + (row * pages + i) * D + columns, tl.load(source + page * D + columns))


@proton.jit
def weighted_rows(source, table, weights, target, K: tl.constexpr, D: tl.constexpr):
    row, columns = tl.program_id(0), tl.arange(0, D)
    total = tl.zeros((D,), tl.float32)
    for i in range(K):
        index = tl.load(table + row * K + i).to(tl.int64)
        value = tl.load(source + index * D + columns).to(tl.float32)
        total += value * tl.load(weights + row * K + i)
    tl.store(target + row * D + columns, total.to(target.dtype.element_ty))


@proton.jit
def decaying_sums(x, y, length, D: tl.constexpr):
    at = x + tl.program_id(0) * length * D + tl.arange(0, D)
    state = tl.zeros((D,), tl.float32)
    for t in range(length):
        state = state * 0.9 + tl.load(at + t * D).to(tl.float32)
        tl.store(y + (tl.program_id(0) * length + t) * D + tl.arange(0, D), state)


@proton.jit
def decode_pages(
    q,
    keys,
    values,
    table,
    lengths,
    out,
    pages,
    scale,
    HEADS: tl.constexpr,
    D: tl.constexpr,
    PAGE: tl.constexpr,
    KV: tl.constexpr,
):
    """Attention of one token's heads that share keys, over pages of [PAGE, KV, D]."""
    row, kv = tl.program_id(0), tl.program_id(1)
    heads, places = tl.arange(0, HEADS)[:, None], tl.arange(0, PAGE)
    columns = tl.arange(0, D)
    at = (row * KV + kv) * HEADS * D + heads * D + columns[None, :]
    query, length = tl.load(q + at), tl.load(lengths + row)
    best = tl.full((HEADS,), float("-inf"), tl.float32)
    total, acc = tl.zeros((HEADS,), tl.float32), tl.zeros((HEADS, D), tl.float32)
    for i in range(tl.cdiv(length, PAGE)):
        page = tl.load(table + row * pages + i).to(tl.int64) * (PAGE * KV * D) + kv * D
        is_there = i * PAGE + places < length
        key = tl.load(keys + page + places[None, :] * (KV * D) + columns[:, None],
                      mask=is_there[None, :], other=0.0)  # fmt: skip
        scores = tl.where(is_there[None, :], tl.dot(query, key) * scale, float("-inf"))
        new = tl.maximum(best, tl.max(scores, 1))
        weights, kept = tl.exp(scores - new[:, None]), tl.exp(best - new)
        value = tl.load(values + page + places[:, None] * (KV * D) + columns[None, :],
                        mask=is_there[:, None], other=0.0)  # fmt: skip
        acc = acc * kept[:, None] + tl.dot(weights.to(value.dtype), value)
        total, best = total * kept + tl.sum(weights, 1), new
    tl.store(out + at, (acc / total[:, None]).to(out.dtype.element_ty))


# Numbers


@proton.jit
def quantised_groups(x, codes, scales, GROUP: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.reshape(tl.load(x + at).to(tl.float32), (BLOCK // GROUP, GROUP))
    scale = tl.maximum(tl.max(tl.abs(value), 1) / 448.0, 1e-8)
    code = tl.clamp(value / scale[:, None], -448.0, 448.0).to(tl.float8e4nv)
    tl.store(codes + at, tl.reshape(code, (BLOCK,)))
    group = tl.program_id(0) * (BLOCK // GROUP) + tl.arange(0, BLOCK // GROUP)
    tl.store(scales + group, scale)


@proton.jit
def unpacked(codes, scales, y, COLUMNS: tl.constexpr, ROWS: tl.constexpr):
    """Rows of two 4-bit numbers a byte, the lower one first."""
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    code = tl.load(codes + rows[:, None] * COLUMNS + tl.arange(0, COLUMNS)[None, :])
    low, high = (code & 15).to(tl.int8) - 8, (code >> 4).to(tl.int8) - 8
    value = tl.interleave(low, high).to(tl.float32) * tl.load(scales + rows)[:, None]
    columns = tl.arange(0, 2 * COLUMNS)[None, :]
    tl.store(y + rows[:, None] * (2 * COLUMNS) + columns, value.to(y.dtype.element_ty))


@proton.jit
def gated_pairs(x, y, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK
    gate, value = tl.split(tl.reshape(tl.load(x + 2 * at + tl.arange(0, 2 * BLOCK)), (BLOCK, 2)))
    gate = gate.to(tl.float32)
    result = gate * tl.sigmoid(gate) * value.to(tl.float32)
    tl.store(y + at + tl.arange(0, BLOCK), result.to(y.dtype.element_ty))


@proton.jit
def dropped(x, y, seed, share, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    kept = tl.rand(seed, at) > share
    tl.store(y + at, tl.where(kept, tl.load(x + at) / (1 - share), 0.0))


@proton.jit
def likely(p, y, share, COLUMNS: tl.constexpr):
    """The most probable numbers of a row that come to a share of it, the others zero."""
    at = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    value = tl.load(p + at)
    ordered = tl.sort(value, descending=True)
    before = tl.cumsum(ordered, 0) - ordered
    least = tl.min(tl.where(before < share, ordered, 2.0))
    tl.store(y + at, tl.where(value >= least, value, 0.0))


@proton.jit
def counted(x, counts, BLOCK: tl.constexpr, BINS: tl.constexpr):
    value = tl.load(x + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK))
    tl.atomic_add(counts + tl.arange(0, BINS), tl.histogram(value, BINS))


@proton.jit
def nearest(x, centres, found, N: tl.constexpr, K: tl.constexpr, D: tl.constexpr):
    """The centre of the largest product with each of N rows."""
    rows, columns = tl.program_id(0) * N + tl.arange(0, N), tl.arange(0, D)
    query = tl.load(x + rows[:, None] * D + columns[None, :])
    best = tl.full((N,), float("-inf"), tl.float32)
    place = tl.zeros((N,), tl.int32)
    for start in range(0, K, 32):
        centre = start + tl.arange(0, 32)
        score = tl.dot(query, tl.load(centres + centre[None, :] * D + columns[:, None]))
        new, index = tl.max(score, 1), tl.argmax(score, 1)
        place = tl.where(new > best, start + index, place)
        best = tl.maximum(best, new)
    tl.store(found + rows, place)


@proton.jit
def top_of_row(x, y, COLUMNS: tl.constexpr, K: tl.constexpr):
    """The largest of a row, with their places packed below them."""
    at = tl.arange(0, COLUMNS)
    value = tl.load(x + tl.program_id(0) * COLUMNS + at).to(tl.int64)
    tl.store(y + tl.program_id(0) * K + tl.arange(0, K), tl.topk((value << 32) | at, K))


@proton.jit
def recurrence(a1, b1, a2, b2):
    return a1 * a2, b1 * a2 + b2


@proton.jit
def linear_states(a, b, y, LENGTH: tl.constexpr, D: tl.constexpr):
    at = tl.arange(0, LENGTH)[:, None] * D + tl.arange(0, D)[None, :]
    at += tl.program_id(0) * LENGTH * D
    _, state = tl.associative_scan((tl.load(a + at), tl.load(b + at)), 0, recurrence)
    tl.store(y + at, state)


@proton.jit
def convolved(x, weights, y, length, D: tl.constexpr, WIDTH: tl.constexpr, BLOCK: tl.constexpr):
    """A causal convolution of each column."""
    columns = tl.arange(0, D)
    times = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK, D), tl.float32)
    for k in tl.static_range(WIDTH):
        at = times - (WIDTH - 1) + k
        value = tl.load(x + at[:, None] * D + columns[None, :],
                        mask=(at >= 0)[:, None], other=0.0)  # fmt: skip
        total += value.to(tl.float32) * tl.load(weights + columns * WIDTH + k).to(tl.float32)
    tl.store(y + times[:, None] * D + columns[None, :], total.to(y.dtype.element_ty))


# Pairs: blocks made of a row and a column


@proton.jit
def ranks_of(x, ranks, N: tl.constexpr):
    """How many of N numbers are less, or equal and earlier."""
    at = tl.arange(0, N)
    value = tl.load(x + tl.program_id(0) * N + at)
    is_same, is_earlier = value[None, :] == value[:, None], at[None, :] < at[:, None]
    is_less = (value[None, :] < value[:, None]) | (is_same & is_earlier)
    tl.store(ranks + tl.program_id(0) * N + at, tl.sum(is_less.to(tl.int32), 1))


@proton.jit
def potentials(x, y, out, n, N: tl.constexpr, M: tl.constexpr):
    """The sum of inverse distances of each point to all."""
    at = tl.program_id(0) * N + tl.arange(0, N)
    x_here, y_here = tl.load(x + at), tl.load(y + at)
    total = tl.zeros((N,), tl.float32)
    for start in range(0, n, M):
        others = start + tl.arange(0, M)
        dx = x_here[:, None] - tl.load(x + others)[None, :]
        dy = y_here[:, None] - tl.load(y + others)[None, :]
        total += tl.sum(tl.rsqrt(dx * dx + dy * dy + 1e-3), 1)
    tl.store(out + at, total)


@proton.jit
def equal_to(x, counts, N: tl.constexpr, BINS: tl.constexpr):
    """How many of N numbers are each bin's."""
    at, bins = tl.program_id(0) * N + tl.arange(0, N), tl.arange(0, BINS)
    is_bin = tl.load(x + at)[:, None] == bins[None, :]
    tl.store(counts + tl.program_id(0) * BINS + bins, tl.sum(is_bin.to(tl.int32), 0))


@proton.jit
def nearest_level(x, levels, codes, N: tl.constexpr, LEVELS: tl.constexpr):
    at = tl.program_id(0) * N + tl.arange(0, N)
    level = tl.load(levels + tl.arange(0, LEVELS))
    far = tl.abs(tl.load(x + at)[:, None] - level[None, :])
    tl.store(codes + at, tl.argmin(far, 1))


@proton.jit
def smoothed(x, y, N: tl.constexpr):
    """Each of N numbers as the mean of all, weighted by how near they are."""
    at = tl.program_id(0) * N + tl.arange(0, N)
    value = tl.load(x + at)
    weight = tl.exp(-tl.abs(value[:, None] - value[None, :]))
    tl.store(y + at, tl.sum(weight * value[None, :], 1) / tl.sum(weight, 1))
