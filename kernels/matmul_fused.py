"""activation(a @ b + bias), in one pass over memory: bias and activation are in the epilogue."""

# mypy: allow-untyped-defs, as the arguments of a kernel have no Python type
import math

import numpy as np

import proton
import proton.language as tl
from kernels import arrays
from kernels.arrays import Array
from kernels.harness import Case, main

TWICE_SQRT_2_OVER_PI = tl.constexpr(1.5957691216057308)  # of gelu, and tanh(x) = 2 sigmoid(2x) - 1


@proton.jit
def _activated(x, ACTIVATION: tl.constexpr):
    """An activation by its name, of fp32; "gelu" is the form with tanh."""
    if ACTIVATION == "relu":
        y = tl.maximum(x, 0.0)
    elif ACTIVATION == "gelu":
        y = x * tl.sigmoid(TWICE_SQRT_2_OVER_PI * (x + 0.044715 * x * x * x))
    elif ACTIVATION == "silu":
        y = x * tl.sigmoid(x)
    else:
        tl.static_assert(ACTIVATION == "none", "ACTIVATION is none, relu, gelu or silu")
        y = x
    return y


@proton.jit
def matmul_fused_kernel(
    a_ptr, b_ptr, bias_ptr, c_ptr, M, N, K,
    stride_am, stride_ak, stride_bk, stride_bn, stride_cm, stride_cn,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
    ACTIVATION: tl.constexpr, PRECISION: tl.constexpr = "tf32",
):  # fmt: skip
    """Each program makes one block of c, in the order of `matmul_kernel`. `bias_ptr` is of N
    numbers, or None. PRECISION is that of fp32, as `tl.dot` takes it."""
    blocks_n = tl.cdiv(N, BLOCK_N)
    group, place = tl.program_id(0) // (GROUP_M * blocks_n), tl.program_id(0) % (GROUP_M * blocks_n)
    group_rows = min(tl.cdiv(M, BLOCK_M) - group * GROUP_M, GROUP_M)
    rows = (group * GROUP_M + place % group_rows) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = (place // group_rows) * BLOCK_N + tl.arange(0, BLOCK_N)
    depth = tl.arange(0, BLOCK_K)
    # Rows and columns beyond the edge wrap around: what they give is not stored.
    a_ptrs = a_ptr + (rows % M)[:, None] * stride_am + depth[None, :] * stride_ak
    b_ptrs = b_ptr + depth[:, None] * stride_bk + (columns % N)[None, :] * stride_bn
    c = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, K, BLOCK_K):
        with proton.scope("load"):
            a = tl.load(a_ptrs, mask=depth[None, :] < K - k, other=0.0)
            b = tl.load(b_ptrs, mask=depth[:, None] < K - k, other=0.0)
        with proton.scope("dot"):
            c = tl.dot(a, b, c, input_precision=PRECISION)
        a_ptrs += BLOCK_K * stride_ak
        b_ptrs += BLOCK_K * stride_bk
    with proton.scope("epilogue"):
        if bias_ptr is not None:
            c += tl.load(bias_ptr + columns, mask=columns < N, other=0.0).to(tl.float32)[None, :]
        c = _activated(c, ACTIVATION)
    with proton.scope("store"):
        mask = (rows[:, None] < M) & (columns[None, :] < N)
        c_ptrs = c_ptr + rows[:, None] * stride_cm + columns[None, :] * stride_cn
        tl.store(c_ptrs, c.to(c_ptr.dtype.element_ty), mask=mask)


def configuration(a: Array) -> dict[str, int]:
    """The options of `matmul_fused` that suit a's device and dtype."""
    if not arrays.on_gpu(a):
        return {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 128, "GROUP_M": 4}
    if a.itemsize > 2:
        return {"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 32, "GROUP_M": 8, "num_warps": 4}
    return {
        "BLOCK_M": 128, "BLOCK_N": 256, "BLOCK_K": 64, "GROUP_M": 8, "num_warps": 8,
        "num_stages": 3,
    }  # fmt: skip


def matmul_fused(
    a: Array,
    b: Array,
    bias: Array | None = None,
    activation: str = "none",
    out: Array | None = None,
    **options: object,
) -> Array:
    """activation(a @ b + bias) in the dtype of `out`, else of a; in fp32 until then. Any strides,
    but that bias is contiguous.

    `activation`: "none", "relu", "gelu" (with tanh) or "silu". `options`: the kernel's blocks
    (BLOCK_M, ...), its PRECISION (of fp32 arrays on a GPU: "ieee", or "tf32" for tensor cores),
    and those of the launch (num_warps, ...).
    """
    m, n, k = arrays.product_sizes(a, b)
    out = arrays.empty(a, (m, n)) if out is None else out
    options = {"PRECISION": "ieee"} | configuration(a) | options
    strides = [arrays.stride(x, axis) for x in (a, b, out) for axis in (0, 1)]
    grid = (proton.cdiv(m, options["BLOCK_M"]) * proton.cdiv(n, options["BLOCK_N"]),)
    matmul_fused_kernel[grid](
        a, b, bias, out, m, n, k, *strides, ACTIVATION=activation, **options
    )  # fmt: skip
    return out


def reference(
    a: np.ndarray, b: np.ndarray, bias: np.ndarray | None = None, activation: str = "none"
) -> np.ndarray:
    """The same by numpy."""
    x = a @ b
    if bias is not None:
        x = x + bias
    if activation == "relu":
        return np.maximum(x, 0)
    exact = x.astype(np.float64)  # of a tail 1 + tanh(x) leaves few bits of fp32
    if activation == "gelu":
        tanh = np.tanh(math.sqrt(2 / math.pi) * (exact + 0.044715 * exact**3))
        return (0.5 * exact * (1 + tanh)).astype(x.dtype)
    return (exact / (1 + np.exp(-exact))).astype(x.dtype) if activation == "silu" else x


CASE = Case(
    name="matmul with bias and GELU",
    shapes=lambda m, n, k: [(m, k), (k, n), (n,)],
    launch=lambda a, b, bias, out=None: matmul_fused(a, b, bias, "gelu", out),
    reference=lambda a, b, bias, out=None: reference(a, b, bias, "gelu"),
    torch=lambda torch, out, a, b, bias: torch.nn.functional.gelu(
        torch.addmm(bias, a, b), approximate="tanh"
    ),
    tolerance=1e-5,
    approximation=1e-5,  # of tanh
    ugly=((1, 1, 1), (7, 5, 3), (128, 128, 64), (129, 127, 65), (300, 200, 1000)),
    benchmark=((128, 128, 128), (512, 512, 512), (1024, 1024, 1024), (1000, 1000, 1000)),
)

if __name__ == "__main__":
    main(CASE)
