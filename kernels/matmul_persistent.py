"""The product of two matrices by tensor descriptors, by as many programs as run at once.

Each program makes one block of the result after another. The descriptors are the host's
(`matmul_descriptors_kernel`) or made in the kernel (`matmul_persistent_kernel`).
"""

# mypy: allow-untyped-defs, as the arguments of a kernel have no Python type

import numpy as np

import proton
import proton.language as tl
from kernels import arrays
from kernels.arrays import Array
from kernels.harness import Case, main
from proton.tools.tensor_descriptor import TensorDescriptor


@proton.jit
def _place(tile, blocks_m, blocks_n, GROUP_M: tl.constexpr):
    """The row and column of the blocks with this number. GROUP_M rows of blocks are made together,
    column by column, so that the blocks of b that they read are still in the cache."""
    group, place = tile // (GROUP_M * blocks_n), tile % (GROUP_M * blocks_n)
    group_rows = min(blocks_m - group * GROUP_M, GROUP_M)
    return group * GROUP_M + place % group_rows, place // group_rows


@proton.jit
def matmul_descriptors_kernel(
    a, b, c, GROUP_M: tl.constexpr, TRANSPOSED: tl.constexpr, PRECISION: tl.constexpr = "tf32"
):
    """c = a @ b, or a @ b.T where b is TRANSPOSED, all of them descriptors. Sizes and blocks are
    theirs, beyond the edge they have zeros. PRECISION is that of fp32, as `tl.dot` takes it."""
    BLOCK_M: tl.constexpr = c.block_shape[0]
    BLOCK_N: tl.constexpr = c.block_shape[1]
    BLOCK_K: tl.constexpr = a.block_shape[1]
    if a.dtype == tl.int8:
        SUMS: tl.constexpr = tl.int32
    else:
        SUMS: tl.constexpr = tl.float64 if a.dtype == tl.float64 else tl.float32
    blocks_m, blocks_n = tl.cdiv(c.shape[0], BLOCK_M), tl.cdiv(c.shape[1], BLOCK_N)
    for tile in tl.range(tl.program_id(0), blocks_m * blocks_n, tl.num_programs(0), flatten=True):
        block_m, block_n = _place(tile, blocks_m, blocks_n, GROUP_M)
        row, column = block_m * BLOCK_M, block_n * BLOCK_N
        total = tl.zeros((BLOCK_M, BLOCK_N), dtype=SUMS)
        for k in range(0, a.shape[1], BLOCK_K):
            with proton.scope("load"):
                left = a.load([row, k])
                if TRANSPOSED:
                    right = b.load([column, k]).T
                else:
                    right = b.load([k, column])
            with proton.scope("dot"):
                total = tl.dot(left, right, total, input_precision=PRECISION, out_dtype=SUMS)
        with proton.scope("store"):
            c.store([row, column], total.to(c.dtype))


@proton.jit
def matmul_persistent_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K, stride_a, stride_b, stride_c,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
    GROUP_M: tl.constexpr, TRANSPOSED: tl.constexpr, PRECISION: tl.constexpr = "tf32",
):  # fmt: skip
    """`matmul_descriptors_kernel` of descriptors that it makes itself. The strides are those of
    rows, multiples of 16 bytes; b is (N, K) where it is TRANSPOSED."""
    a = tl.make_tensor_descriptor(a_ptr, [M, K], [stride_a, 1], [BLOCK_M, BLOCK_K])
    if TRANSPOSED:
        b = tl.make_tensor_descriptor(b_ptr, [N, K], [stride_b, 1], [BLOCK_N, BLOCK_K])
    else:
        b = tl.make_tensor_descriptor(b_ptr, [K, N], [stride_b, 1], [BLOCK_K, BLOCK_N])
    c = tl.make_tensor_descriptor(c_ptr, [M, N], [stride_c, 1], [BLOCK_M, BLOCK_N])
    matmul_descriptors_kernel(a, b, c, GROUP_M, TRANSPOSED, PRECISION)


def configuration(a: Array) -> dict[str, int]:
    """The options of `matmul_persistent` that suit a's device and dtype."""
    if not arrays.on_gpu(a):
        return {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 128, "GROUP_M": 4, "programs": 64}
    if a.itemsize > 2:
        blocks = {"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 32, "num_warps": 4}
    else:
        blocks = {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 128 // a.itemsize, "num_warps": 8}
    return blocks | {"GROUP_M": 8, "num_stages": 3, "programs": arrays.SMS}


def matmul_persistent(
    a: Array, b: Array, out: Array | None = None, *, host: bool = True, **options: object
) -> Array:
    """a @ b in the dtype of `out`, else of a; added up in fp32, int8 in int32.

    The rows of a and out are contiguous, and those of b or its columns; all of these lie multiples
    of 16 bytes apart. `host`: whether descriptors are the host's. `options`: the kernel's blocks
    (BLOCK_M, ...), its PRECISION (of fp32 arrays on a GPU: "ieee", or "tf32" for tensor cores),
    `programs`, and those of the launch (num_warps, ...).
    """
    m, n, k = arrays.product_sizes(a, b)
    out = arrays.empty(a, (m, n)) if out is None else out
    options = {"PRECISION": "ieee"} | configuration(a) | options
    options["TRANSPOSED"] = arrays.stride(b, 1) != 1
    stored = b.T if options["TRANSPOSED"] else b
    block_m, block_n, block_k = (options[f"BLOCK_{dim}"] for dim in "MNK")
    blocks = (block_m, block_k), (block_k, block_n), (block_m, block_n)
    if options["TRANSPOSED"]:
        blocks = blocks[0], blocks[1][::-1], blocks[2]
    # The host's descriptors say what is wrong with an array.
    descriptors = [
        TensorDescriptor.from_tensor(x, block)
        for x, block in zip((a, stored, out), blocks, strict=True)
    ]
    grid = (min(options.pop("programs"), proton.cdiv(m, block_m) * proton.cdiv(n, block_n)),)
    if host:
        for dim in "MNK":
            del options[f"BLOCK_{dim}"]
        matmul_descriptors_kernel[grid](*descriptors, **options)
    else:
        strides = [arrays.stride(x, 0) for x in (a, stored, out)]
        matmul_persistent_kernel[grid](a, stored, out, m, n, k, *strides, **options)
    return out


def reference(a: np.ndarray, b: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    """The same by numpy."""
    return np.matmul(a, b, out=out)


CASE = Case(
    name="persistent matmul",
    shapes=lambda m, n, k: [(m, k), (k, n)],
    launch=matmul_persistent,
    reference=reference,
    torch=lambda torch, out, a, b: torch.mm(a, b, out=out[0]),
    tolerance=1e-5,
    # n and k: rows lie multiples of 16 bytes apart
    ugly=((1, 4, 4), (7, 8, 12), (128, 128, 64), (129, 124, 68), (300, 200, 1000)),
    benchmark=((128, 128, 128), (512, 512, 512), (1024, 1024, 1024), (1000, 1000, 1000)),
)

if __name__ == "__main__":
    main(CASE)
