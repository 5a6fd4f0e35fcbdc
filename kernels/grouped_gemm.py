"""Products of many pairs of matrices of different sizes, in one launch.

What there is to do is in arrays on the device: addresses, sizes and strides, one row a product.
Where TMA can copy the matrices the kernel makes tensor descriptors of that
(`grouped_gemm_descriptors_kernel`), and else loads by pointers (`grouped_gemm_kernel`).
"""

# mypy: allow-untyped-defs, as the arguments of a kernel have no Python type
from collections.abc import Sequence
from typing import Any

import numpy as np

import proton
import proton.language as tl
from kernels import arrays
from kernels.arrays import Array
from kernels.harness import Case, main

ALIGNMENT = 16  # bytes, and elements, of which loads of 16 bytes need multiples; bytes for TMA


@proton.jit
def _block(
    a_ptr, b_ptr, c_ptr, M, N, K, stride_a, stride_b, stride_c, block_m, block_n,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """One block of one product."""
    rows = block_m * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = block_n * BLOCK_N + tl.arange(0, BLOCK_N)
    depth = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + rows[:, None] * stride_a + depth[None, :]
    b_ptrs = b_ptr + depth[:, None] * stride_b + columns[None, :]
    c = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, K, BLOCK_K):
        with proton.scope("load"):
            inside = depth < K - k
            a = tl.load(a_ptrs, mask=(rows[:, None] < M) & inside[None, :], other=0.0)
            b = tl.load(b_ptrs, mask=inside[:, None] & (columns[None, :] < N), other=0.0)
        with proton.scope("dot"):
            c = tl.dot(a, b, c, input_precision=PRECISION)
        a_ptrs += BLOCK_K
        b_ptrs += BLOCK_K * stride_b
    with proton.scope("store"):
        mask = (rows[:, None] < M) & (columns[None, :] < N)
        c_ptrs = c_ptr + rows[:, None] * stride_c + columns[None, :]
        tl.store(c_ptrs, c.to(c_ptr.dtype.element_ty), mask=mask)


@proton.jit
def grouped_gemm_kernel(
    addresses_ptr, sizes_ptr, strides_ptr, groups,
    DTYPE: tl.constexpr, OUT_DTYPE: tl.constexpr, MULTIPLE: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
    PRECISION: tl.constexpr = "tf32",
):  # fmt: skip
    """Each program makes every `num_programs`-th block, counted through all products. A row of the
    three arrays has the addresses of a, b and c, M, N and K, and the strides of rows of a, b and c;
    addresses, N, K and strides are multiples of MULTIPLE."""
    before = 0  # blocks of the products so far
    programs = tl.num_programs(0)
    for group in range(groups):
        M = tl.load(sizes_ptr + 3 * group)
        N = tl.multiple_of(tl.load(sizes_ptr + 3 * group + 1), MULTIPLE)
        K = tl.multiple_of(tl.load(sizes_ptr + 3 * group + 2), MULTIPLE)
        a_ptr = tl.multiple_of(tl.load(addresses_ptr + 3 * group), MULTIPLE)
        b_ptr = tl.multiple_of(tl.load(addresses_ptr + 3 * group + 1), MULTIPLE)
        c_ptr = tl.multiple_of(tl.load(addresses_ptr + 3 * group + 2), MULTIPLE)
        stride_a = tl.multiple_of(tl.load(strides_ptr + 3 * group), MULTIPLE)
        stride_b = tl.multiple_of(tl.load(strides_ptr + 3 * group + 1), MULTIPLE)
        stride_c = tl.multiple_of(tl.load(strides_ptr + 3 * group + 2), MULTIPLE)
        blocks_m, blocks_n = tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N)
        first = (tl.program_id(0) + programs - before % programs) % programs
        for block in range(first, blocks_m * blocks_n, programs):
            _block(
                a_ptr.to(tl.pointer_type(DTYPE)),
                b_ptr.to(tl.pointer_type(DTYPE)),
                c_ptr.to(tl.pointer_type(OUT_DTYPE)),
                M, N, K, stride_a, stride_b, stride_c, block // blocks_n, block % blocks_n,
                BLOCK_M, BLOCK_N, BLOCK_K, PRECISION,
            )  # fmt: skip
        before += blocks_m * blocks_n


@proton.jit
def grouped_gemm_descriptors_kernel(
    addresses_ptr, sizes_ptr, strides_ptr, groups,
    DTYPE: tl.constexpr, OUT_DTYPE: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
    PRECISION: tl.constexpr = "tf32",
):  # fmt: skip
    """`grouped_gemm_kernel` by descriptors, which each program makes of the products that it has
    blocks of. Addresses, and rows of each matrix, lie multiples of 16 bytes apart."""
    before = 0  # blocks of the products so far
    programs = tl.num_programs(0)
    for group in range(groups):
        M = tl.load(sizes_ptr + 3 * group)
        N = tl.load(sizes_ptr + 3 * group + 1)
        K = tl.load(sizes_ptr + 3 * group + 2)
        blocks_n = tl.cdiv(N, BLOCK_N)
        blocks = tl.cdiv(M, BLOCK_M) * blocks_n
        first = (tl.program_id(0) + programs - before % programs) % programs
        if first < blocks:
            a_ptr = tl.load(addresses_ptr + 3 * group).to(tl.pointer_type(DTYPE))
            b_ptr = tl.load(addresses_ptr + 3 * group + 1).to(tl.pointer_type(DTYPE))
            c_ptr = tl.load(addresses_ptr + 3 * group + 2).to(tl.pointer_type(OUT_DTYPE))
            stride_a = tl.load(strides_ptr + 3 * group)
            stride_b = tl.load(strides_ptr + 3 * group + 1)
            stride_c = tl.load(strides_ptr + 3 * group + 2)
            a = tl.make_tensor_descriptor(a_ptr, [M, K], [stride_a, 1], [BLOCK_M, BLOCK_K])
            b = tl.make_tensor_descriptor(b_ptr, [K, N], [stride_b, 1], [BLOCK_K, BLOCK_N])
            c = tl.make_tensor_descriptor(c_ptr, [M, N], [stride_c, 1], [BLOCK_M, BLOCK_N])
            for block in tl.range(first, blocks, programs, flatten=True):
                row, column = block // blocks_n * BLOCK_M, block % blocks_n * BLOCK_N
                total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
                for k in range(0, K, BLOCK_K):
                    with proton.scope("load"):
                        left, right = a.load([row, k]), b.load([k, column])
                    with proton.scope("dot"):
                        total = tl.dot(left, right, total, input_precision=PRECISION)
                with proton.scope("store"):
                    c.store([row, column], total.to(OUT_DTYPE))
        before += blocks


def configuration(a: Array, is_aligned: bool, by_descriptors: bool = False) -> dict[str, int]:
    """The options of `grouped_gemm` that suit a's device and dtype; without alignment, elements
    are loaded one by one, and addresses take many registers."""
    if not arrays.on_gpu(a):
        return {"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 64, "programs": 64}
    if by_descriptors:
        blocks = {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 128 // a.itemsize, "num_warps": 8}
        return blocks | {"num_stages": 4, "programs": arrays.SMS}
    if a.itemsize > 2 or not is_aligned:
        blocks = {"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 32, "num_warps": 4 if is_aligned else 8}
    else:
        blocks = {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64, "num_warps": 8}
    return blocks | {"num_stages": 3, "programs": 2 * arrays.SMS}


def grouped_gemm(
    a: Sequence[Array],
    b: Sequence[Array],
    out: Sequence[Array] | None = None,
    *,
    descriptors: bool | None = None,
    **options: object,
) -> Sequence[Array]:
    """[x @ y for x, y in zip(a, b)] in the dtype of `out`, else of a; added up in fp32.

    All of `a` and `b` are of one dtype, all of `out` of one, and all rows are contiguous.
    `descriptors`: whether the kernel makes tensor descriptors, for which all rows have to begin at
    multiples of 16 bytes; None: where TMA copies by them, and feeds tensor cores. `options`: the
    kernel's blocks (BLOCK_M, ...), its PRECISION (of fp32 arrays on a GPU: "ieee", or "tf32" for
    tensor cores), `programs`, and those of the launch (num_warps, ...).
    """
    mnk = [arrays.product_sizes(x, y) for x, y in zip(a, b, strict=True)]
    if out is None:
        out = [arrays.empty(x, (m, n)) for x, (m, n, _) in zip(a, mnk, strict=True)]
    if not out:
        return out
    triples = list(zip(a, b, out, strict=True))
    dtype = _only({arrays.dtype_name(x) for x in (*a, *b)}, "a and b")
    out_dtype = _only({arrays.dtype_name(x) for x in out}, "out")
    addresses = np.array([[arrays.address(x) for x in each] for each in triples], np.int64)
    sizes = np.array(mnk, np.int32)
    strides = np.array([[_row_stride(x) for x in each] for each in triples], np.int32)
    is_aligned = all((x % ALIGNMENT == 0).all() for x in (addresses, sizes[:, 1:], strides))
    if descriptors is None:
        steps = strides * np.array([x.itemsize for x in triples[0]])
        on_tensor_cores = a[0].itemsize <= 2 or options.get("PRECISION") == "tf32"
        descriptors = on_tensor_cores and arrays.has_tma(a[0])
        descriptors = descriptors and not (addresses % ALIGNMENT).any() | (steps % ALIGNMENT).any()
    options = {"PRECISION": "ieee"} | configuration(a[0], is_aligned, descriptors) | options
    kernel = grouped_gemm_descriptors_kernel if descriptors else grouped_gemm_kernel
    if not descriptors:
        options["MULTIPLE"] = ALIGNMENT if is_aligned else 1
    kernel[(options.pop("programs"),)](
        *(arrays.like(a[0], x) for x in (addresses, sizes, strides)),
        len(triples),
        DTYPE=getattr(tl, dtype),
        OUT_DTYPE=getattr(tl, out_dtype),
        **options,
    )
    return out


def _only(dtypes: set[str], whose: str) -> str:
    if len(dtypes) != 1:
        raise ValueError(f"grouped_gemm: {whose} must be of one dtype, got {sorted(dtypes)}")
    return dtypes.pop()


def _row_stride(x: Array) -> int:
    if arrays.size(x) > x.shape[0] and arrays.stride(x, 1) != 1:
        raise ValueError(
            f"grouped_gemm: rows must be contiguous, got strides {arrays.stride(x, 0)} and "
            f"{arrays.stride(x, 1)}: pass a contiguous copy"
        )
    return arrays.stride(x, 0)


def reference(a: Sequence[np.ndarray], b: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The same by numpy."""
    return [x @ y for x, y in zip(a, b, strict=True)]


def _together(*inputs: Array, out: Any = None) -> tuple[Array, ...]:
    half = len(inputs) // 2
    return tuple(grouped_gemm(inputs[:half], inputs[half:], out))


CASE = Case(
    name="grouped gemm",
    shapes=lambda m, n, k: [(m, k), (2 * m, k), (k, n), (k, n)],  # two products
    launch=_together,
    reference=lambda *x, out=None: tuple(reference(x[:2], x[2:])),
    torch=lambda torch, out, a, b, c, d: (torch.mm(a, c, out=out[0]), torch.mm(b, d, out=out[1])),
    tolerance=1e-5,
    ugly=((1, 1, 1), (7, 5, 3), (128, 128, 64), (129, 127, 65), (300, 200, 1000)),
    benchmark=((128, 128, 128), (512, 512, 512), (1000, 1000, 1000)),
)

if __name__ == "__main__":
    main(CASE)
