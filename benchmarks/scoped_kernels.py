"""Products of matrices whose kernels have four scopes: kernel, load, dot, store.

By pointers or by tensor descriptors (TMA), a program for each block of the result or as many
programs as run at once. Sizes are multiples of the blocks, so nothing is masked. Proton compiles
this file as it is, and Triton what `peers.triton_module` makes of it.
"""

# mypy: allow-untyped-defs, as the arguments of a kernel have no Python type
import proton
import proton.language as tl


@proton.jit
def _place(tile, blocks_m, blocks_n, GROUP_M: tl.constexpr):
    """The row and column of the blocks with this number, GROUP_M rows of blocks together."""
    group, place = tile // (GROUP_M * blocks_n), tile % (GROUP_M * blocks_n)
    group_rows = min(blocks_m - group * GROUP_M, GROUP_M)
    return group * GROUP_M + place % group_rows, place // group_rows


@proton.jit
def _tile(
    a_ptr, b_ptr, c_ptr, tile, M, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
):  # fmt: skip
    """One block of c, by pointers."""
    block_m, block_n = _place(tile, M // BLOCK_M, N // BLOCK_N, GROUP_M)
    rows = block_m * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = block_n * BLOCK_N + tl.arange(0, BLOCK_N)
    depth = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + rows[:, None] * K + depth[None, :]
    b_ptrs = b_ptr + depth[:, None] * N + columns[None, :]
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for _ in range(0, K, BLOCK_K):
        with proton.scope("load"):
            a = tl.load(a_ptrs)
            b = tl.load(b_ptrs)
        with proton.scope("dot"):
            total = tl.dot(a, b, total)
        a_ptrs += BLOCK_K
        b_ptrs += BLOCK_K * N
    with proton.scope("store"):
        c_ptrs = c_ptr + rows[:, None] * N + columns[None, :]
        tl.store(c_ptrs, total.to(c_ptr.dtype.element_ty))


@proton.jit
def product_pointers(
    a_ptr, b_ptr, c_ptr, M, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
):  # fmt: skip
    with proton.scope("kernel"):
        tile = tl.program_id(0)
        _tile(a_ptr, b_ptr, c_ptr, tile, M, N, K, BLOCK_M, BLOCK_N, BLOCK_K, GROUP_M)


@proton.jit
def product_pointers_persistent(
    a_ptr, b_ptr, c_ptr, M, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
):  # fmt: skip
    with proton.scope("kernel"):
        tiles = (M // BLOCK_M) * (N // BLOCK_N)
        for tile in range(tl.program_id(0), tiles, tl.num_programs(0)):
            _tile(a_ptr, b_ptr, c_ptr, tile, M, N, K, BLOCK_M, BLOCK_N, BLOCK_K, GROUP_M)


@proton.jit
def product_descriptors(
    a, b, c, M, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
):  # fmt: skip
    with proton.scope("kernel"):
        block_m, block_n = _place(tl.program_id(0), M // BLOCK_M, N // BLOCK_N, GROUP_M)
        total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
        for k in range(0, K, BLOCK_K):
            with proton.scope("load"):
                left = a.load([block_m * BLOCK_M, k])
                right = b.load([k, block_n * BLOCK_N])
            with proton.scope("dot"):
                total = tl.dot(left, right, total)
        with proton.scope("store"):
            c.store([block_m * BLOCK_M, block_n * BLOCK_N], total.to(tl.float16))


@proton.jit
def product_descriptors_persistent(
    a, b, c, M, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
):  # fmt: skip
    with proton.scope("kernel"):
        blocks_m, blocks_n = M // BLOCK_M, N // BLOCK_N
        tiles = blocks_m * blocks_n
        for tile in tl.range(tl.program_id(0), tiles, tl.num_programs(0), flatten=True):
            block_m, block_n = _place(tile, blocks_m, blocks_n, GROUP_M)
            total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
            for k in range(0, K, BLOCK_K):
                with proton.scope("load"):
                    left = a.load([block_m * BLOCK_M, k])
                    right = b.load([k, block_n * BLOCK_N])
                with proton.scope("dot"):
                    total = tl.dot(left, right, total)
            with proton.scope("store"):
                c.store([block_m * BLOCK_M, block_n * BLOCK_N], total.to(tl.float16))
