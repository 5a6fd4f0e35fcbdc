"""Kernels that are slow with some arguments and not with others, for gpu_findings.py."""

# mypy: allow-untyped-defs, as the arguments of a kernel have no Python type
import proton
import proton.language as tl


@proton.jit
def product(a_ptr, b_ptr, c_ptr, size, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    """A program for each block of M x N; no scope is in the loop."""
    rows, columns = tl.program_id(0) * M + tl.arange(0, M), tl.program_id(1) * N + tl.arange(0, N)
    inner = tl.arange(0, K)
    acc = tl.zeros((M, N), tl.float32)
    for k in range(0, size, K):
        a = tl.load(a_ptr + rows[:, None] * size + (k + inner)[None, :])
        b = tl.load(b_ptr + (k + inner)[:, None] * size + columns[None, :])
        acc = tl.dot(a, b, acc)
    with proton.scope("store"):
        tl.store(c_ptr + rows[:, None] * size + columns[None, :], acc.to(tl.float16))


@proton.jit
def prefix_sums(x_ptr, out_ptr, apart, step, count, BLOCK: tl.constexpr):
    """Sum r is of r + 1 blocks. A program has `count` sums, `step` apart; its first one is `apart`
    behind that of the program before it."""
    for n in range(count):
        row = tl.program_id(0) * apart + n * step
        total = tl.zeros((BLOCK,), tl.float32)
        with proton.scope("add"):
            for block in range(row + 1):
                total += tl.load(x_ptr + block * BLOCK + tl.arange(0, BLOCK))
        with proton.scope("store"):
            tl.store(out_ptr + row, tl.sum(total))


@proton.jit
def split_sums(x_ptr, out_ptr, columns, part, BLOCK: tl.constexpr):
    """A program adds up a part of a row."""
    row, first = tl.program_id(0), tl.program_id(1) * part
    total = tl.zeros((BLOCK,), tl.float32)
    with proton.scope("add"):
        for start in range(first, first + part, BLOCK):
            total += tl.load(x_ptr + row * columns + start + tl.arange(0, BLOCK))
    with proton.scope("store"):
        tl.atomic_add(out_ptr + row, tl.sum(total))


@proton.jit
def iterated(x_ptr, out_ptr, tiles, steps, BLOCK: tl.constexpr):
    """y = y * y + x, so many steps, of `tiles` blocks a program."""
    for n in range(tiles):
        places = (tl.program_id(0) * tiles + n) * BLOCK + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + places) * 0.25
        y = x
        with proton.scope("iterate"):
            for _ in range(steps):
                y = y * y + x
        with proton.scope("store"):
            tl.store(out_ptr + places, y)


@proton.jit
def column_sums(x_ptr, out_ptr, rows, columns, R: tl.constexpr, C: tl.constexpr):
    """A program adds up `rows` rows of C columns, R at a time."""
    own = tl.program_id(0) * C + tl.arange(0, C)
    first = tl.program_id(1) * rows
    total = tl.zeros((R, C), tl.float32)
    for start in range(first, first + rows, R):
        with proton.scope("load", bytes=4 * R * C):
            x = tl.load(x_ptr + (start + tl.arange(0, R))[:, None] * columns + own[None, :])
        total += x
    with proton.scope("store"):
        tl.atomic_add(out_ptr + own, tl.sum(total, 0))


@proton.jit(do_not_specialize=["first"])
def row_sums(x_ptr, out_ptr, first, columns, BLOCK: tl.constexpr):
    row, places = first + tl.program_id(0), tl.arange(0, BLOCK)
    with proton.scope("sum"):
        x = tl.load(x_ptr + row * columns + places, mask=places < columns, other=0.0)
        tl.store(out_ptr + row, tl.sum(x))


@proton.jit
def recurrence(x_ptr, out_ptr, steps, FINE: tl.constexpr):
    """Steps of scalars, with two scopes in each, or with one around all."""
    program = tl.program_id(0)
    value = 0.0
    if FINE:
        for step in range(steps):
            with proton.scope("load"):
                x = tl.load(x_ptr + program * steps + step)
            with proton.scope("multiply"):
                value = value * 0.5 + x
    else:
        with proton.scope("steps"):
            for step in range(steps):
                value = value * 0.5 + tl.load(x_ptr + program * steps + step)
    tl.store(out_ptr + program, value)


@proton.jit
def sines(x_ptr, out_ptr, turns, BLOCK: tl.constexpr):
    """A sine of a large number takes several times as long, each by itself: warps meet at each
    sum."""
    x = tl.load(x_ptr + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK))
    total = 0.0
    for turn in range(turns):
        with proton.scope("sine"):
            found = tl.sin(x + turn)
        with proton.scope("sum"):
            total += tl.sum(found)
    tl.store(out_ptr + tl.program_id(0), total)
