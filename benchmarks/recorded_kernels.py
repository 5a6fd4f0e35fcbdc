"""Kernels with three scopes each, of the kinds on which scopes cost differently.

Attention by pointers and by tensor descriptors (TMA), causal or not; a product by descriptors; a
gather of rows. Sizes are multiples of the blocks, so nothing is masked but the diagonal.
"""

# mypy: allow-untyped-defs, as the arguments of a kernel have no Python type
import proton
import proton.language as tl


@proton.jit
def attention(
    q_ptr, k_ptr, v_ptr, out_ptr, length, scale,
    M: tl.constexpr, N: tl.constexpr, D: tl.constexpr, CAUSAL: tl.constexpr,
):  # fmt: skip
    """A program for each block of M rows of each head; arrays are (heads, length, D)."""
    block, head = tl.num_programs(0) - 1 - tl.program_id(0), tl.program_id(1)
    rows, columns, depth = block * M + tl.arange(0, M), tl.arange(0, N), tl.arange(0, D)
    around = head.to(tl.int64) * length * D
    q = tl.load(q_ptr + around + rows[:, None] * D + depth[None, :])
    k_ptrs = k_ptr + around + columns[None, :] * D + depth[:, None]
    v_ptrs = v_ptr + around + columns[:, None] * D + depth[None, :]
    acc = tl.zeros((M, D), tl.float32)
    most, total = tl.full((M,), float("-inf"), tl.float32), tl.zeros((M,), tl.float32)
    last = (block + 1) * M if CAUSAL else length
    for start in range(0, last, N):
        with proton.scope("qk"):
            scores = tl.dot(q, tl.load(k_ptrs + start * D)) * scale
        with proton.scope("softmax"):
            if CAUSAL:
                visible = rows[:, None] >= start + columns[None, :]
                scores = tl.where(visible, scores, float("-inf"))
            new = tl.maximum(most, tl.max(scores, 1))
            weights = tl.exp2(scores - new[:, None])
            decay = tl.exp2(most - new)
            total = total * decay + tl.sum(weights, 1)
            acc, most = acc * decay[:, None], new
        with proton.scope("pv"):
            acc = tl.dot(weights.to(tl.float16), tl.load(v_ptrs + start * D), acc)
    out = (acc / total[:, None]).to(tl.float16)
    tl.store(out_ptr + around + rows[:, None] * D + depth[None, :], out)


@proton.jit
def attention_by_tma(
    q_rows, k_rows, v_rows, out_rows, length, scale,
    M: tl.constexpr, N: tl.constexpr, D: tl.constexpr,
):  # fmt: skip
    """The same, not causal, by descriptors of all rows of all heads."""
    first = tl.program_id(1) * length
    row = first + tl.program_id(0) * M
    q = q_rows.load([row, 0])
    acc = tl.zeros((M, D), tl.float32)
    most, total = tl.full((M,), float("-inf"), tl.float32), tl.zeros((M,), tl.float32)
    for start in range(0, length, N):
        with proton.scope("qk"):
            scores = tl.dot(q, k_rows.load([first + start, 0]).T) * scale
        with proton.scope("softmax"):
            new = tl.maximum(most, tl.max(scores, 1))
            weights = tl.exp2(scores - new[:, None])
            decay = tl.exp2(most - new)
            total = total * decay + tl.sum(weights, 1)
            acc, most = acc * decay[:, None], new
        with proton.scope("pv"):
            acc = tl.dot(weights.to(tl.float16), v_rows.load([first + start, 0]), acc)
    out_rows.store([row, 0], (acc / total[:, None]).to(tl.float16))


@proton.jit
def product_by_tma(a_rows, b_rows, c_rows, size, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    """A program for each block of M x N."""
    row, column = tl.program_id(0) * M, tl.program_id(1) * N
    acc = tl.zeros((M, N), tl.float32)
    for k in range(0, size, K):
        with proton.scope("load"):
            a, b = a_rows.load([row, k]), b_rows.load([k, column])
        with proton.scope("dot"):
            acc = tl.dot(a, b, acc)
    with proton.scope("store"):
        c_rows.store([row, column], acc.to(tl.float16))


@proton.jit
def gather(rows_ptr, index_ptr, out_ptr, D: tl.constexpr, N: tl.constexpr, TIMES: tl.constexpr):
    """The sum of TIMES blocks of N rows of D that an index names."""
    depth, lanes = tl.arange(0, D), tl.arange(0, N)
    block = tl.program_id(0)
    acc = tl.zeros((N, D), tl.float32)
    for time in range(TIMES):
        with proton.scope("index"):
            index = tl.load(index_ptr + (block * TIMES + time) * N + lanes)
        with proton.scope("load"):
            row = tl.load(rows_ptr + index[:, None].to(tl.int64) * D + depth[None, :])
        acc += row
    with proton.scope("store"):
        tl.store(out_ptr + (block * N + lanes[:, None]).to(tl.int64) * D + depth[None, :], acc)
