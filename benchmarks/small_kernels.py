"""Kernels of a microsecond, as Inductor writes them."""

# mypy: allow-untyped-defs, as the arguments of a kernel have no Python type
import proton
import proton.language as tl


@proton.jit
def numbers(out_ptr, n, BLOCK: tl.constexpr):
    """Each element's number."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, i.to(tl.int64), i < n)


@proton.jit
def added(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """Sums of two arrays."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, i < n) + tl.load(y_ptr + i, i < n), i < n)


@proton.jit
def embedded(index_ptr, table_ptr, out_ptr, WIDTH: tl.constexpr, BLOCK: tl.constexpr):
    """Rows of a table; the indices, which all columns read, are to stay in the caches."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    row = tl.load(index_ptr + i // WIDTH, eviction_policy="evict_last")
    tl.store(out_ptr + i, tl.load(table_ptr + row * WIDTH + i % WIDTH))


@proton.jit
def transposed(x_ptr, out_ptr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, BLOCK: tl.constexpr):
    """A matrix of ROWS x COLUMNS, in squares."""
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)[None, :]
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)[:, None]
    x = tl.load(x_ptr + rows * COLUMNS + columns, eviction_policy="evict_last")
    tl.store(out_ptr + columns * ROWS + rows, x)
