"""The product of two matrices, in blocks."""

# mypy: allow-untyped-defs, as the arguments of a kernel have no Python type

import numpy as np

import proton
import proton.language as tl
from kernels import arrays
from kernels.arrays import Array
from kernels.harness import Case, main
from proton.runtime.cpu.grid import thread_count

# On the CPU. A block of a or b is copied once for each block of c, so large ones copy less; of a
# small matrix they reach further beyond the edge, and leave threads without work.
BLOCK, SMALL_BLOCK, BLOCK_K, GROUP_M = 256, 128, 128, 4
GAIN = 1.05  # of large blocks
GPU_BLOCKS = 100  # likewise: most multiprocessors have one


@proton.jit
def matmul_kernel(
    a_ptr,
    b_ptr,
    c_ptr,
    M,
    N,
    K,
    stride_am,
    stride_ak,
    stride_bk,
    stride_bn,
    stride_cm,
    stride_cn,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP_M: tl.constexpr,
    PRECISION: tl.constexpr = "tf32",
):
    """Each program makes one block of c. GROUP_M rows of blocks are made together, column by
    column, so that the blocks of b that they read are still in the cache. PRECISION is that of
    fp32, as `tl.dot` takes it."""
    blocks_n = tl.cdiv(N, BLOCK_N)
    group, place = tl.program_id(0) // (GROUP_M * blocks_n), tl.program_id(0) % (GROUP_M * blocks_n)
    group_rows = min(tl.cdiv(M, BLOCK_M) - group * GROUP_M, GROUP_M)
    rows = (group * GROUP_M + place % group_rows) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = (place // group_rows) * BLOCK_N + tl.arange(0, BLOCK_N)
    depth = tl.arange(0, BLOCK_K)
    # Rows and columns beyond the edge wrap around: what they give is not stored.
    a_ptrs = a_ptr + (rows % M)[:, None] * stride_am + depth[None, :] * stride_ak
    b_ptrs = b_ptr + depth[:, None] * stride_bk + (columns % N)[None, :] * stride_bn
    SUMS: tl.constexpr = tl.float64 if a_ptr.dtype.element_ty == tl.float64 else tl.float32
    c = tl.zeros((BLOCK_M, BLOCK_N), dtype=SUMS)
    for k in range(0, K, BLOCK_K):
        with proton.scope("load"):
            a = tl.load(a_ptrs, mask=depth[None, :] < K - k, other=0.0)
            b = tl.load(b_ptrs, mask=depth[:, None] < K - k, other=0.0)
        with proton.scope("dot"):
            c = tl.dot(a, b, c, input_precision=PRECISION)
        a_ptrs += BLOCK_K * stride_ak
        b_ptrs += BLOCK_K * stride_bk
    with proton.scope("store"):
        mask = (rows[:, None] < M) & (columns[None, :] < N)
        tl.store(c_ptr + rows[:, None] * stride_cm + columns[None, :] * stride_cn, c, mask=mask)


def configuration(a: Array, b: Array) -> dict[str, int]:
    """The options of `matmul` that suit the arrays' device and shapes."""
    if arrays.on_gpu(a) and "float16" in str(a.dtype):  # bfloat16, too: for tensor cores
        if a.shape[0] * b.shape[1] >= GPU_BLOCKS * 128 * 256:
            return {"BLOCK_M": 128, "BLOCK_N": 256, "BLOCK_K": 64, "GROUP_M": 8, "num_warps": 8}
        return {"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 64, "GROUP_M": 8, "num_warps": 4}
    if arrays.on_gpu(a):
        depth = 16 if arrays.dtype_name(a) == "float64" else 32
        return {"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": depth, "GROUP_M": GROUP_M, "num_warps": 4}
    large, small = (_work(a.shape[0], b.shape[1], block) for block in (BLOCK, SMALL_BLOCK))
    block = BLOCK if large <= GAIN * small else SMALL_BLOCK
    return {"BLOCK_M": block, "BLOCK_N": block, "BLOCK_K": BLOCK_K, "GROUP_M": GROUP_M}


def _work(rows: int, columns: int, block: int) -> int:
    """Elements that the busiest thread computes of a result, on the CPU."""
    blocks = proton.cdiv(rows, block) * proton.cdiv(columns, block)
    return proton.cdiv(blocks, thread_count(max(1, blocks))) * block**2


def matmul(a: Array, b: Array, out: Array | None = None, **options: object) -> Array:
    """a @ b in fp32, of fp64 in fp64; any strides.

    `options`: the kernel's blocks (BLOCK_M, ...), its PRECISION (of fp32 arrays on a GPU: "ieee",
    or "tf32" for tensor cores), and those of the launch (num_warps, ...).
    """
    (m, k), n = a.shape, b.shape[1]
    sums = "float64" if arrays.dtype_name(a) == "float64" else "float32"
    out = arrays.empty(a, (m, n), sums) if out is None else out
    options = {"PRECISION": "ieee"} | configuration(a, b) | options
    strides = [arrays.stride(x, axis) for x in (a, b, out) for axis in (0, 1)]
    grid = (proton.cdiv(m, options["BLOCK_M"]) * proton.cdiv(n, options["BLOCK_N"]),)
    matmul_kernel[grid](a, b, out, m, n, k, *strides, **options)
    return out


def reference(a: np.ndarray, b: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    """The same by numpy."""
    return np.matmul(a, b, out=out)


CASE = Case(
    name="matmul",
    shapes=lambda m, n, k: [(m, k), (k, n)],
    launch=matmul,
    reference=reference,
    torch=lambda torch, out, a, b: torch.mm(a, b, out=out[0]),
    tolerance=1e-5,
    ugly=((1, 1, 1), (7, 5, 3), (128, 128, 64), (129, 127, 65), (300, 200, 1000)),
    benchmark=((128, 128, 128), (512, 512, 512), (1024, 1024, 1024), (1000, 1000, 1000)),
)

if __name__ == "__main__":
    main(CASE)
