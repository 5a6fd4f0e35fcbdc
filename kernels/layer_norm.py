"""Layer normalisation over the rows of a matrix, forward, with what a backward pass needs."""

# mypy: allow-untyped-defs, as the arguments of a kernel have no Python type

import numpy as np

import proton
import proton.language as tl
from kernels import arrays
from kernels.arrays import Array
from kernels.harness import Case, main

EPSILON = 1e-5


@proton.jit
def layer_norm_kernel(
    x_ptr,
    weight_ptr,
    bias_ptr,
    y_ptr,
    mean_ptr,
    rstd_ptr,
    stride,
    rows,
    columns,
    share,
    epsilon,
    BLOCK: tl.constexpr,
):
    """Each program takes `share` rows, one after another; a row is one block, read once."""
    first = tl.program_id(0) * share
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    for row in range(first, min(first + share, rows)):
        with proton.scope("load"):
            x = tl.load(x_ptr + row * stride + offsets, mask=mask, other=0.0).to(tl.float32)
        with proton.scope("mean"):
            mean = tl.sum(x, axis=0) / columns
        with proton.scope("variance"):
            centred = tl.where(mask, x - mean, 0.0)
            rstd = 1 / tl.sqrt(tl.sum(centred * centred, axis=0) / columns + epsilon)
        with proton.scope("scale"):
            weight = tl.load(weight_ptr + offsets, mask=mask).to(tl.float32)
            bias = tl.load(bias_ptr + offsets, mask=mask).to(tl.float32)
            y = centred * rstd * weight + bias
        with proton.scope("store"):
            tl.store(y_ptr + row * stride + offsets, y, mask=mask)
            tl.store(mean_ptr + row, mean)
            tl.store(rstd_ptr + row, rstd)


def configuration(x: Array) -> dict[str, int]:
    """The options of `layer_norm` that suit x's device; runs of rows as for softmax."""
    if arrays.on_gpu(x):
        return {"programs": 8 * arrays.SMS, "num_warps": arrays.warps_of_row(x.shape[1])}
    return {"programs": 64}


def layer_norm(
    x: Array,
    weight: Array,
    bias: Array,
    out: tuple[Array, Array, Array] | None = None,
    epsilon: float = EPSILON,
    **options: object,
) -> tuple[Array, Array, Array]:
    """(y, mean, 1 / standard deviation) of each row of a contiguous matrix.

    `options`: `programs`, and those of the launch (num_warps, ...).
    """
    rows, columns = x.shape
    if out is None:
        mean, rstd = (arrays.empty(x, (rows,), "float32") for _ in range(2))
        out = arrays.empty_like(x), mean, rstd
    options = configuration(x) | options
    share = max(1, proton.cdiv(rows, options.pop("programs")))
    layer_norm_kernel[(proton.cdiv(rows, share),)](
        x,
        weight,
        bias,
        *out,
        columns,
        rows,
        columns,
        share,
        epsilon,
        BLOCK=proton.next_power_of_2(columns),
        **options,
    )
    return out


def reference(
    x: np.ndarray,
    weight: np.ndarray,
    bias: np.ndarray,
    out: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None,
    epsilon: float = EPSILON,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The same by numpy; of `out` it uses the first."""
    mean = x.mean(axis=1)
    y = np.subtract(x, mean[:, None], out=None if out is None else out[0])
    rstd = 1 / np.sqrt(np.vecdot(y, y) / x.dtype.type(x.shape[1]) + x.dtype.type(epsilon))
    y *= rstd[:, None]
    y *= weight
    y += bias
    return y, mean, rstd


CASE = Case(
    name="layer norm",
    shapes=lambda rows, columns: [(rows, columns), (columns,), (columns,)],
    launch=layer_norm,
    reference=reference,
    # Without outputs: torch's own form of this operator with them is slower.
    torch=lambda torch, out, x, weight, bias: torch.native_layer_norm(
        x, weight.shape, weight, bias, EPSILON
    ),
    tolerance=1e-5,
    ugly=((1, 1), (9, 5), (65, 127), (1000, 1000), (129, 4097)),
    benchmark=((4096, 256), (4096, 1024), (1024, 4096), (256, 16384)),
)

if __name__ == "__main__":
    main(CASE)
