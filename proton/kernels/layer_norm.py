"""Layer normalisation over the rows of a matrix, forward, with what a backward pass needs."""

import numpy as np

import proton
import proton.language as tl

EPSILON = 1e-5
PROGRAMS = 64


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
    epsilon,
    BLOCK: tl.constexpr,
):
    """Each program takes every num_programs-th row; a row is one block, read once."""
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    for row in range(tl.program_id(0), rows, tl.num_programs(0)):
        with proton.scope("load"):
            x = tl.load(x_ptr + row * stride + offsets, mask=mask, other=0.0)
        with proton.scope("mean"):
            mean = tl.sum(x, axis=0) / columns
        with proton.scope("variance"):
            centred = tl.where(mask, x - mean, 0.0)
            rstd = 1 / tl.sqrt(tl.sum(centred * centred, axis=0) / columns + epsilon)
        with proton.scope("scale"):
            weight = tl.load(weight_ptr + offsets, mask=mask)
            bias = tl.load(bias_ptr + offsets, mask=mask)
            y = centred * rstd * weight + bias
        with proton.scope("store"):
            tl.store(y_ptr + row * stride + offsets, y, mask=mask)
            tl.store(mean_ptr + row, mean)
            tl.store(rstd_ptr + row, rstd)


def layer_norm(
    x: np.ndarray,
    weight: np.ndarray,
    bias: np.ndarray,
    out: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None,
    epsilon: float = EPSILON,
    programs: int = PROGRAMS,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(y, mean, 1 / standard deviation) of each row of a contiguous matrix."""
    rows, columns = x.shape
    if out is None:
        out = np.empty_like(x), np.empty(rows, np.float32), np.empty(rows, np.float32)
    layer_norm_kernel[(min(rows, programs),)](
        x,
        weight,
        bias,
        *out,
        columns,
        rows,
        columns,
        epsilon,
        BLOCK=proton.next_power_of_2(columns),
    )
    return out


def reference(
    x: np.ndarray, weight: np.ndarray, bias: np.ndarray, epsilon: float = EPSILON
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The same by numpy."""
    mean = x.mean(axis=1)
    centred = x - mean[:, None]
    rstd = 1 / np.sqrt((centred * centred).mean(axis=1) + np.float32(epsilon))
    return centred * rstd[:, None] * weight + bias, mean, rstd
