"""Mean and variance of each column of a matrix, as batch normalisation needs them."""

import numpy as np

import proton
import proton.language as tl

ROWS, COLUMNS, LAUNCHES = 4096, 1024, 5


@proton.jit
def column_stats(x_ptr, mean_ptr, var_ptr, rows, columns, BLOCK: tl.constexpr):
    """A program takes one column."""
    column = tl.program_id(0)
    total = tl.zeros((BLOCK,), tl.float32)
    squares = tl.zeros((BLOCK,), tl.float32)
    for first in range(0, rows, BLOCK):
        offsets = first + tl.arange(0, BLOCK)
        with proton.scope("load"):
            x = tl.load(x_ptr + offsets * columns + column, mask=offsets < rows, other=0.0)
        with proton.scope("add"):
            total += x
            squares += x * x
    with proton.scope("store"):
        mean = tl.sum(total) / rows
        tl.store(mean_ptr + column, mean)
        tl.store(var_ptr + column, tl.sum(squares) / rows - mean * mean)


def launch(x: np.ndarray, mean: np.ndarray, var: np.ndarray) -> None:
    rows, columns = x.shape
    column_stats[(columns,)](x, mean, var, rows, columns, BLOCK=512)


if __name__ == "__main__":
    x = np.random.default_rng(0).standard_normal((ROWS, COLUMNS), dtype=np.float32)
    mean, var = np.empty((2, COLUMNS), np.float32)
    for _ in range(LAUNCHES):
        launch(x, mean, var)
    np.testing.assert_allclose(mean, x.mean(axis=0), atol=1e-5)
    np.testing.assert_allclose(var, x.var(axis=0), rtol=1e-4)
