"""The gradients of layer normalisation, from what the forward pass left."""

# mypy: allow-untyped-defs, as the arguments of a kernel have no Python type

from typing import Any

import numpy as np

import proton
import proton.language as tl
from kernels import arrays
from kernels.arrays import Array
from kernels.harness import Arrays, Case, main


@proton.jit
def layer_norm_backward_kernel(
    dy_ptr,
    x_ptr,
    weight_ptr,
    mean_ptr,
    rstd_ptr,
    dx_ptr,
    dweight_parts_ptr,
    dbias_parts_ptr,
    stride,
    rows,
    columns,
    share,
    BLOCK: tl.constexpr,
):
    """Each program takes `share` rows, and sums up what they give to the weight's and the bias's
    gradients; no two programs write to one place, so the result is the same in every run."""
    program = tl.program_id(0)
    first = program * share
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    weight = tl.load(weight_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    dweight = tl.zeros((BLOCK,), dtype=tl.float32)
    dbias = tl.zeros((BLOCK,), dtype=tl.float32)
    for row in range(first, min(first + share, rows)):
        with proton.scope("load"):
            x = tl.load(x_ptr + row * stride + offsets, mask=mask, other=0.0).to(tl.float32)
            dy = tl.load(dy_ptr + row * stride + offsets, mask=mask, other=0.0).to(tl.float32)
            mean = tl.load(mean_ptr + row)
            rstd = tl.load(rstd_ptr + row)
        with proton.scope("sums"):
            normal = tl.where(mask, (x - mean) * rstd, 0.0)
            scaled = weight * dy
            along = tl.sum(normal * scaled, axis=0) / columns
            level = tl.sum(scaled, axis=0) / columns
        with proton.scope("store"):
            dx = (scaled - (normal * along + level)) * rstd
            tl.store(dx_ptr + row * stride + offsets, dx, mask=mask)
        with proton.scope("accumulate"):
            dweight += dy * normal
            dbias += dy
    tl.store(dweight_parts_ptr + program * columns + offsets, dweight, mask=mask)
    tl.store(dbias_parts_ptr + program * columns + offsets, dbias, mask=mask)


@proton.jit
def add_parts_kernel(
    dweight_parts_ptr,
    dbias_parts_ptr,
    dweight_ptr,
    dbias_ptr,
    parts,
    columns,
    BLOCK_ROWS: tl.constexpr,
    BLOCK_COLUMNS: tl.constexpr,
):
    """Each program sums up some columns of the partial sums."""
    at = tl.program_id(0) * BLOCK_COLUMNS + tl.arange(0, BLOCK_COLUMNS)
    dweight = tl.zeros((BLOCK_ROWS, BLOCK_COLUMNS), dtype=tl.float32)
    dbias = tl.zeros((BLOCK_ROWS, BLOCK_COLUMNS), dtype=tl.float32)
    with proton.scope("add parts"):
        for start in range(0, parts, BLOCK_ROWS):
            row = start + tl.arange(0, BLOCK_ROWS)
            mask = (row[:, None] < parts) & (at[None, :] < columns)
            place = row[:, None] * columns + at[None, :]
            dweight += tl.load(dweight_parts_ptr + place, mask=mask, other=0.0)
            dbias += tl.load(dbias_parts_ptr + place, mask=mask, other=0.0)
        tl.store(dweight_ptr + at, tl.sum(dweight, axis=0), mask=at < columns)
        tl.store(dbias_ptr + at, tl.sum(dbias, axis=0), mask=at < columns)


def configuration(x: Array) -> dict[str, int]:
    """The options of `layer_norm_backward` that suit x's device.

    A program takes a run of neighbouring rows, as in the forward pass; `block` is of the partial
    sums, of which there are as many as programs.
    """
    if arrays.on_gpu(x):
        warps = arrays.warps_of_row(x.shape[1])
        return {"programs": 2 * arrays.SMS, "block": (64, 32), "num_warps": warps}
    return {"programs": 64, "block": (16, 128)}


def layer_norm_backward(
    dy: Array,
    x: Array,
    weight: Array,
    mean: Array,
    rstd: Array,
    out: tuple[Array, Array, Array] | None = None,
    **options: object,
) -> tuple[Array, Array, Array]:
    """(dx, dweight, dbias) for the gradient `dy` of the result; dy and x are contiguous matrices,
    mean and rstd what `layer_norm` returned.

    `options`: `programs`, `block`, and those of the launches (num_warps, ...).
    """
    rows, columns = x.shape
    if out is None:
        out = arrays.empty_like(x), arrays.empty_like(weight), arrays.empty_like(weight)
    options = configuration(x) | options
    share = max(1, proton.cdiv(rows, options.pop("programs")))
    parts = proton.cdiv(rows, share)
    block_rows, block_columns = options.pop("block")
    dweight_parts, dbias_parts = arrays.empty(x, (2, parts, columns), "float32")
    layer_norm_backward_kernel[(parts,)](
        dy,
        x,
        weight,
        mean,
        rstd,
        out[0],
        dweight_parts,
        dbias_parts,
        columns,
        rows,
        columns,
        share,
        BLOCK=proton.next_power_of_2(columns),
        **options,
    )
    add_parts_kernel[(proton.cdiv(columns, block_columns),)](
        dweight_parts,
        dbias_parts,
        out[1],
        out[2],
        parts,
        columns,
        BLOCK_ROWS=block_rows,
        BLOCK_COLUMNS=block_columns,
        **options,
    )
    return out


def reference(
    dy: np.ndarray,
    x: np.ndarray,
    weight: np.ndarray,
    mean: np.ndarray,
    rstd: np.ndarray,
    out: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The same by numpy; of `out` it uses the first."""
    normal = (x - mean[:, None]) * rstd[:, None]
    scaled = dy * weight
    columns = x.dtype.type(x.shape[1])
    along = np.vecdot(normal, scaled)[:, None] / columns
    level = scaled.sum(axis=1, keepdims=True) / columns
    dx = np.subtract(scaled, normal * along + level, out=None if out is None else out[0])
    dx *= rstd[:, None]
    return dx, (dy * normal).sum(axis=0), dy.sum(axis=0)


def _after_forward(dy: np.ndarray, x: np.ndarray, weight: np.ndarray) -> Arrays:
    """The inputs of a backward pass: what the forward pass had, and what it left."""
    return dy, x, weight, x.mean(axis=1), 1 / np.sqrt(x.var(axis=1) + np.float32(1e-5))


def _torch(torch: Any, out: Any, *inputs: Any) -> Any:
    dy, x, weight, mean, rstd = inputs
    shape, wanted = list(weight.shape), [True, True, True]
    return torch.ops.aten.native_layer_norm_backward(
        dy, x, shape, mean[:, None], rstd[:, None], weight, weight, wanted
    )


CASE = Case(
    name="layer norm backward",
    shapes=lambda rows, columns: [(rows, columns), (rows, columns), (columns,)],
    prepare=_after_forward,
    launch=layer_norm_backward,
    reference=reference,
    torch=_torch,
    tolerance=1e-5,
    ugly=((1, 1), (9, 5), (65, 127), (1000, 1000), (129, 4097)),
    benchmark=((4096, 256), (4096, 1024), (1024, 4096), (256, 16384)),
)

if __name__ == "__main__":
    main(CASE)
