"""Softmax over the rows of a matrix, in one pass over memory."""

# mypy: allow-untyped-defs, as the arguments of a kernel have no Python type

import numpy as np

import proton
import proton.language as tl
from kernels import arrays
from kernels.arrays import Array
from kernels.harness import Case, main


@proton.jit
def softmax_kernel(
    x_ptr,
    out_ptr,
    x_stride,
    out_stride,
    rows,
    columns,
    share,
    BLOCK: tl.constexpr,
    STAGES: tl.constexpr = 1,
):
    """Each program takes `share` rows, one after another; a row is one block. With STAGES the next
    STAGES - 1 rows are on their way while one is worked on."""
    first = tl.program_id(0) * share
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    for row in tl.range(first, min(first + share, rows), num_stages=STAGES):
        with proton.scope("load"):
            x = tl.load(x_ptr + row * x_stride + offsets, mask=mask, other=-float("inf"))
        with proton.scope("max"):
            highest = tl.max(x, axis=0)
        with proton.scope("exp"):
            powers = tl.exp(x - highest)
        with proton.scope("sum"):
            total = tl.sum(powers, axis=0)
        with proton.scope("store"):
            tl.store(out_ptr + row * out_stride + offsets, powers * (1.0 / total), mask=mask)


def configuration(x: Array) -> dict[str, int]:
    """The options of `softmax` that suit x's device.

    A program takes a run of neighbouring rows. Every 64th row instead reads memory in jumps: 1.4
    times the time on the CPU.
    """
    if arrays.on_gpu(x):
        return {"programs": 8 * arrays.SMS, "num_warps": arrays.warps_of_row(x.shape[1])}
    return {"programs": 64}


def softmax(x: Array, out: Array | None = None, **options: object) -> Array:
    """exp(x) / sum(exp(x)) of each row of a matrix whose rows are contiguous.

    `options`: `programs`, and those of the launch (num_warps, ...).
    """
    rows, columns = x.shape
    out = arrays.empty(x, (rows, columns)) if out is None else out
    options = configuration(x) | options
    share = max(1, proton.cdiv(rows, options.pop("programs")))
    softmax_kernel[(proton.cdiv(rows, share),)](
        x,
        out,
        arrays.stride(x, 0),
        arrays.stride(out, 0),
        rows,
        columns,
        share,
        BLOCK=proton.next_power_of_2(columns),
        **options,
    )
    return out


def reference(x: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    """The same by numpy."""
    powers = np.subtract(x, x.max(axis=1, keepdims=True), out=out)
    np.exp(powers, out=powers)
    powers /= powers.sum(axis=1, keepdims=True)
    return powers


CASE = Case(
    name="softmax",
    shapes=lambda rows, columns: [(rows, columns)],
    launch=softmax,
    reference=reference,
    torch=lambda torch, out, x: torch.softmax(x, 1, out=out[0]),
    tolerance=1e-6,
    approximation=1e-6,  # of exp and of the division
    ugly=((1, 1), (1, 5), (7, 1), (65, 127), (1000, 1000), (129, 4097)),
    benchmark=((4096, 256), (4096, 1024), (1024, 4096), (256, 16384)),
)

if __name__ == "__main__":
    main(CASE)
