"""Branches, loops and calls, against the same control flow in Python."""

from typing import Any

import numpy as np
import pytest

import proton
import proton.language as tl
from proton import CompilationError
from tests.cpu.harness import kernels_of, ordinary

pytestmark = pytest.mark.interpreted
N = 32


@proton.jit
def branches(x_ptr, out_ptr, which, N: tl.constexpr):
    offs = tl.arange(0, N)
    x = tl.load(x_ptr + offs)
    target = out_ptr + offs
    if which == 0:
        x = x + 1
    elif which < 5:
        x, target = x * which, target + N
    else:
        if which > 100:
            x = -x
        target += 2 * N
    tl.store(target, x)


@pytest.mark.parametrize("which", [0, 1, 3, 5, 100, 101])
def test_branches_carry_tensors_and_pointers(rng: np.random.Generator, which: int) -> None:
    x, out = ordinary(rng, "int32", N), np.zeros((3, N), np.int32)
    branches[(1,)](x, out, which, N=N)
    want = np.zeros_like(out)
    if which == 0:
        want[0] = x + 1
    elif which < 5:
        want[1] = x * which
    else:
        want[2] = -x if which > 100 else x
    assert (out == want).all()


@proton.jit
def pointer_of_a_branch(a_ptr, b_ptr, out_ptr, flag, N: tl.constexpr):
    offs = tl.arange(0, N)
    if flag:
        source = a_ptr + offs
    else:
        source = b_ptr + (N - 1 - offs)
    tl.store(out_ptr + offs, tl.load(source))


@pytest.mark.parametrize("flag", [False, True])
def test_a_branch_chooses_between_arguments(rng: np.random.Generator, flag: bool) -> None:
    a, b, out = (ordinary(rng, "int32", N) for _ in range(3))
    pointer_of_a_branch[(1,)](a, b, out, flag, N=N)
    assert (out == (a if flag else b[::-1])).all()


@proton.jit
def nested_loops(x_ptr, out_ptr, rows, columns, N: tl.constexpr):
    offs = tl.arange(0, N)
    total = tl.zeros((N,), tl.float64)
    for r in range(rows):
        row = tl.zeros((N,), tl.float64)
        for c in range(columns):
            row += tl.load(x_ptr + (r * columns + c) * N + offs)
        if r % 2 == 0:
            total += row
        else:
            total = total * 0.5 - row
    tl.store(out_ptr + offs, total)


@pytest.mark.parametrize("rows", [0, 1, 5])
@pytest.mark.parametrize("columns", [0, 1, 4])
def test_nested_loops_with_accumulators(rng: np.random.Generator, rows: int, columns: int) -> None:
    x, out = rng.standard_normal((rows, columns, N)), np.full(N, 9.0)
    nested_loops[(1,)](x, out, rows, columns, N=N)
    want = np.zeros(N)
    for r in range(rows):
        row = np.zeros(N)
        for c in range(columns):
            row += x[r, c]
        want = want + row if r % 2 == 0 else want * 0.5 - row
    assert (out == want).all()


@proton.jit
def swapped(x_ptr, y_ptr, steps, N: tl.constexpr):
    offs = tl.arange(0, N)
    a, b = tl.load(x_ptr + offs), tl.load(y_ptr + offs)
    for i in range(steps):
        a, b = b, a + i
    tl.store(x_ptr + offs, a)
    tl.store(y_ptr + offs, b)


@proton.jit
def fibonacci(out_ptr, steps, N: tl.constexpr):
    a = tl.arange(0, N)
    b = a + 1
    c = b + a
    for _ in range(steps):
        a, b, c = b, c, a + b + c
    offs = tl.arange(0, N)
    tl.store(out_ptr + offs, a)
    tl.store(out_ptr + N + offs, b)
    tl.store(out_ptr + 2 * N + offs, c)


@pytest.mark.parametrize("steps", [0, 1, 2, 7])
def test_loops_that_exchange_what_they_carry(rng: np.random.Generator, steps: int) -> None:
    x, y = ordinary(rng, "int32", N), ordinary(rng, "int32", N)
    a, b = x.copy(), y.copy()
    swapped[(1,)](x, y, steps, N=N)
    for i in range(steps):
        a, b = b, a + i
    assert (x == a).all()
    assert (y == b).all()
    out = np.zeros((3, N), np.int32)
    fibonacci[(1,)](out, steps, N=N)
    a = np.arange(N)
    b, c = a + 1, a + a + 1
    for _ in range(steps):
        a, b, c = b, c, a + b + c
    assert (out == np.array([a, b, c])).all()


@proton.jit
def collatz(x_ptr, out_ptr):
    value = tl.load(x_ptr + tl.program_id(0))
    steps = 0
    while value != 1:
        if value % 2 == 0:
            value = value // 2
        else:
            value = value * 3 + 1
        steps += 1
    tl.store(out_ptr + tl.program_id(0), steps)


def test_while_loops() -> None:
    def steps(value: int) -> int:
        return 0 if value == 1 else 1 + steps(value // 2 if value % 2 == 0 else value * 3 + 1)

    x = np.arange(1, 60, dtype=np.int64)
    out = np.zeros(59, np.int32)
    collatz[(59,)](x, out)
    assert out.tolist() == [steps(value) for value in x.tolist()]


@proton.jit
def while_with_tensors(x_ptr, out_ptr, limit, N: tl.constexpr):
    offs = tl.arange(0, N)
    x = tl.load(x_ptr + offs)
    rounds = 0
    while (tl.max(x, 0) < limit) and (rounds < 100):
        x = x * 2 + 1
        rounds += 1
    tl.store(out_ptr + offs, x + rounds)


@pytest.mark.parametrize("limit", [-1000, 0, 10, 12345])
def test_while_loops_carry_tensors(rng: np.random.Generator, limit: int) -> None:
    x, out = np.abs(ordinary(rng, "int64", N)), np.zeros(N, np.int64)
    while_with_tensors[(1,)](x, out, limit, N=N)
    rounds = 0
    while x.max() < limit and rounds < 100:
        x = x * 2 + 1
        rounds += 1
    assert (out == x + rounds).all()


@proton.jit
def early_return(x_ptr, out_ptr, n, N: tl.constexpr):
    offs = tl.program_id(0) * N + tl.arange(0, N)
    if tl.program_id(0) * N >= n:
        return
    tl.store(out_ptr + offs, tl.load(x_ptr + offs), mask=offs < n)


def test_early_return(rng: np.random.Generator) -> None:
    x, out = ordinary(rng, "float32", 200), np.full(200, -1, np.float32)
    early_return[(50,)](x, out, 75, N=N)
    assert (out[:75] == x[:75]).all()
    assert (out[75:] == -1).all()


@proton.jit
def sign_of(x):
    if x > 0:
        return 1
    elif x < 0:
        return -1
    return 0


@proton.jit
def signs(x_ptr, out_ptr):
    pid = tl.program_id(0)
    tl.store(out_ptr + pid, sign_of(tl.load(x_ptr + pid)))


def test_functions_with_several_returns() -> None:
    x, out = np.array([5.0, -2.0, 0.0, -0.0, np.inf]), np.zeros(5, np.int32)
    signs[(5,)](x, out)
    assert out.tolist() == [1, -1, 0, 0, 1]


@proton.jit
def ranges(out_ptr, start, stop, STEP: tl.constexpr):
    position = 0
    for i in range(start, stop, STEP):
        tl.store(out_ptr + position, i)
        position += 1
    tl.store(out_ptr + 50, position)


@proton.jit
def steps_of_the_run_time(out_ptr, start, stop, step):
    count = 0
    for _ in range(start, stop, step):
        count += 1
    tl.store(out_ptr, count)


def test_a_step_of_the_run_time() -> None:
    out = np.zeros(1, np.int32)
    steps_of_the_run_time[(1,)](out, 3, 40, 7, debug=True)
    assert out[0] == len(range(3, 40, 7))


@proton.jit
def hints_by_position(out_ptr, n):
    count = 0
    for i in tl.range(2, n, None, 3, 1, False, False, False, True):
        count += i
    for i in tl.range(n, 2, -2, 2):
        count += i
    tl.store(out_ptr, count)


def test_hints_of_a_range_come_by_position_too() -> None:
    out = np.zeros(1, np.int32)
    hints_by_position[(1,)](out, 20)
    assert out[0] == sum(range(2, 20)) + sum(range(20, 2, -2))
    for text, problem in (
        ("tl.range(0, n, 1, -3)", "num_stages must be a constexpr integer"),
        ("tl.range(0, n, 1, 3, n)", "loop_unroll_factor must be"),
        (
            "tl.range(0, n, 1, 2, 1, False, False, False, False, 7)",
            "takes 1 to 9 arguments, got 10",
        ),
        ("range(0, n, 1, 2)", "takes 1 to 3 arguments, got 4"),
    ):
        wrong = kernels_of(f"@proton.jit\ndef kernel(n):\n    for i in {text}:\n        pass\n")
        with pytest.raises(CompilationError, match=problem):
            wrong.kernel[(1,)](20)


@pytest.mark.parametrize("step", [1, 2, 7, -1, -3])
@pytest.mark.parametrize("start, stop", [(0, 0), (0, 10), (10, 0), (-5, 8), (3, 4), (8, -8)])
def test_ranges(start: int, stop: int, step: int) -> None:
    out = np.full(51, -99, np.int32)
    ranges[(1,)](out, start, stop, STEP=step)
    want = list(range(start, stop, step))
    assert out[50] == len(want)
    assert out[: len(want)].tolist() == want


@proton.jit
def unrolled(x_ptr, out_ptr, n, COUNT: tl.constexpr, FACTOR: tl.constexpr, N: tl.constexpr):
    offs = tl.arange(0, N)
    total = tl.zeros((N,), tl.int32)
    for i in tl.static_range(COUNT):
        total += tl.load(x_ptr + i * N + offs) * (i + 1)
    for i in tl.range(0, n, loop_unroll_factor=FACTOR):
        total = total * 3 + i
    for i in tl.static_range(COUNT, 0, -2):
        total -= i
    tl.store(out_ptr + offs, total)


@pytest.mark.parametrize("n", [0, 1, 4, 7])
@pytest.mark.parametrize("count, factor", [(0, 1), (1, 2), (3, 4), (5, 8)])
def test_unrolled_loops(rng: np.random.Generator, count: int, factor: int, n: int) -> None:
    x, out = ordinary(rng, "int32", (8, N)), np.zeros(N, np.int32)
    unrolled[(1,)](x, out, n, COUNT=count, FACTOR=factor, N=N)
    want = (x[:count] * np.arange(1, count + 1)[:, None]).sum(0)
    for i in range(n):
        want = want * 3 + i
    assert (out == (want - sum(range(count, 0, -2))).astype(np.int32)).all()


@proton.jit
def expressions(x_ptr, out_ptr, n, MODE: tl.constexpr, N: tl.constexpr):
    offs = tl.arange(0, N)
    x = tl.load(x_ptr + offs)
    factor = 2 if n > 10 else 3
    offset = 100 if MODE == "add" else 0
    ok = n > 3 and n < 20
    shift = 1 if ok or n == 0 else 5
    tl.store(out_ptr + offs, x * factor + offset + shift if not ok else x)


@pytest.mark.parametrize("mode", ["add", "none"])
@pytest.mark.parametrize("n", [0, 2, 4, 15, 50])
def test_conditional_expressions(rng: np.random.Generator, n: int, mode: str) -> None:
    x, out = ordinary(rng, "int32", N), np.zeros(N, np.int32)
    expressions[(1,)](x, out, n, MODE=mode, N=N)
    ok = 3 < n < 20
    shift = 1 if ok or n == 0 else 5
    want = x if ok else x * (2 if n > 10 else 3) + (100 if mode == "add" else 0) + shift
    assert (out == want).all()


@proton.jit
def divide(a, b):
    return a // b, a % b


@proton.jit
def apply_to_pair(pair, FN: tl.constexpr):
    quotient, remainder = FN(pair[0], pair[1])
    return (quotient + remainder, (quotient, remainder))


@proton.jit
def calls(x_ptr, y_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    pair = (tl.load(x_ptr + offs), tl.load(y_ptr + offs))
    both, parts = apply_to_pair(pair, divide)
    tl.store(out_ptr + offs, both)
    tl.store(out_ptr + N + offs, parts[1])


def test_calls_with_tuples_and_functions(rng: np.random.Generator) -> None:
    x, y = rng.integers(0, 1000, N, np.int32), rng.integers(1, 30, N, np.int32)
    out = np.zeros((2, N), np.int32)
    calls[(1,)](x, y, out, N=N)
    assert (out == np.array([x // y + x % y, x % y])).all()


@proton.jit
def endless(x):
    return endless(x) + 1


@proton.jit
def calls_endless(out_ptr):
    tl.store(out_ptr, endless(tl.program_id(0)))


def test_recursion_is_refused() -> None:
    with pytest.raises(CompilationError, match="recurs"):
        calls_endless[(1,)](np.zeros(1, np.int32))


@proton.jit
def conditional_store(x_ptr, out_ptr, n, N: tl.constexpr):
    offs = tl.arange(0, N)
    for i in range(n):
        row = tl.load(x_ptr + i * N + offs)
        if tl.sum(row, 0) > 0:
            tl.store(out_ptr + i * N + offs, row)
        elif i == 2:
            tl.store(out_ptr + i * N + offs, -row)


def test_stores_inside_branches_inside_loops(rng: np.random.Generator) -> None:
    x, out = ordinary(rng, "int32", (9, N)), np.zeros((9, N), np.int32)
    conditional_store[(1,)](x, out, 9, N=N)
    want: Any = np.where(x.sum(1, keepdims=True) > 0, x, 0)
    if x[2].sum() <= 0:
        want[2] = -x[2]
    assert (out == want).all()


@proton.jit
def read_after_update(x_ptr, out_ptr, steps, N: tl.constexpr):
    offs = tl.arange(0, N)
    a = tl.load(x_ptr + offs)
    b, c, d = a + 1, a + 2, a - a
    for i in range(steps):
        new = a * 3 + i
        b = b + a  # the old one
        kept = c
        if i % 2 == 0:
            c = a
        else:
            c = b
        d = d + kept + tl.sum(a, 0)
        a = new
    tl.store(out_ptr + offs, a)
    tl.store(out_ptr + N + offs, b)
    tl.store(out_ptr + 2 * N + offs, c)
    tl.store(out_ptr + 3 * N + offs, d)


@pytest.mark.parametrize("steps", [0, 1, 2, 5])
def test_old_values_of_what_a_loop_carries(rng: np.random.Generator, steps: int) -> None:
    x, out = ordinary(rng, "int64", N), np.zeros((4, N), np.int64)
    read_after_update[(1,)](x, out, steps, N=N)
    a, b, c, d = x, x + 1, x + 2, x - x
    for i in range(steps):
        new, b, kept = a * 3 + i, b + a, c
        c = a if i % 2 == 0 else b
        d = d + kept + a.sum()
        a = new
    assert (out == np.array([a, b, c, d])).all()


@proton.jit
def rotate_shapes(x_ptr, out_ptr, steps, N: tl.constexpr):
    r, c = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :]
    a = tl.load(x_ptr + r * N + c)
    b = a + 1
    i = 0
    while i < steps:
        a, b = tl.trans(b), tl.dot(a, b)
        i += 1
    tl.store(out_ptr + r * N + c, a)
    tl.store(out_ptr + N * N + r * N + c, b)


@pytest.mark.parametrize("steps", [0, 1, 2, 3])
def test_views_and_products_of_what_a_loop_carries(rng: np.random.Generator, steps: int) -> None:
    x, out = rng.integers(-1, 2, (16, 16)).astype(np.float32), np.zeros((2, 16, 16), np.float32)
    rotate_shapes[(1,)](x, out, steps, N=16)
    a, b = x, x + 1
    for _ in range(steps):
        a, b = b.T, a @ b
    assert (out == np.array([a, b])).all()


# Leaving loops


@proton.jit
def exits(x_ptr, out_ptr, n, N: tl.constexpr):
    offs = tl.arange(0, N)
    i = 0
    while True:  # its only end is the break
        if tl.load(x_ptr + i) > 50:
            break
        i += 1
    tl.store(out_ptr, i)
    found, block = -1, tl.zeros((N,), tl.int64)
    for j in range(n, 0, -3):
        if j == 2:
            continue
        block += offs * j
        if tl.sum(block) > 4000:
            found = j
            break
    tl.store(out_ptr + 1, found)
    tl.store(out_ptr + 2 + offs, block)
    total = 0
    for k in tl.static_range(10):
        if k == 2:
            continue
        if k == 5:
            break
        total += k
    for value in (100, n, 300):
        total += value
    # What ends the loop is not read again.
    last = 0
    while tl.load(x_ptr + last * (N + 1000)) < 1000:
        last += 1
        if last > 0:
            break
    tl.store(out_ptr + 2 + N, total + last)


@pytest.mark.parametrize("n", [0, 5, 21, 60])
def test_loops_are_left(rng: np.random.Generator, n: int) -> None:
    x, out = rng.integers(0, 50, N, dtype=np.int32), np.zeros(N + 3, np.int64)
    place = int(rng.integers(0, N))
    x[place] = 51
    exits[(1,)](x, out, n, N=N)
    found, block = -1, np.zeros(N, np.int64)
    for j in range(n, 0, -3):
        if j == 2:
            continue
        block += np.arange(N) * j
        if block.sum() > 4000:
            found = j
            break
    assert out.tolist() == [place, found, *block, 1 + 3 + 4 + 400 + n + 1]


@proton.jit
def first_of_each_row(x_ptr, out_ptr, rows, columns):
    for r in range(rows):
        for c in range(columns):
            if tl.load(x_ptr + r * columns + c) > 0:
                tl.store(out_ptr + r, c)
                break


def test_a_break_leaves_the_innermost_loop(rng: np.random.Generator) -> None:
    x, out = rng.integers(-5, 2, (9, 13), dtype=np.int32), np.full(9, -1, np.int32)
    first_of_each_row[(1,)](x, out, 9, 13)
    assert out.tolist() == [next((c for c in range(13) if row[c] > 0), -1) for row in x]


@proton.jit
def behind_loops(out, lower, upper, step, limit):
    for i in range(lower, upper, step):
        tl.store(out, i)
    tl.store(out + 1, i)
    for j in range(upper, lower, -3):
        tl.store(out + 2, j)
    if upper > 2:
        tl.store(out + 3, j)
    for k in range(lower, upper, step):
        tl.store(out + 4, k)
        if k >= limit:
            break
    tl.store(out + 5, k)
    for _ in range(2):
        for i in range(step):
            tl.store(out + 6, i)
        tl.store(out + 7, i)


@pytest.mark.interpreted
def test_the_variable_of_a_loop_has_its_last_value_behind_it(rng: np.random.Generator) -> None:
    """As in Python; in Triton it is there, with any value."""
    for _ in range(20):
        lower, step = int(rng.integers(-9, 9)), int(rng.integers(1, 7))
        upper, limit = lower + int(rng.integers(1, 40)), lower + int(rng.integers(0, 40))
        out = np.zeros(8, np.int32)
        behind_loops[(1,)](out, lower, upper, step, limit)
        for stored, behind in ((0, 1), (4, 5), (6, 7)):
            assert out[stored] == out[behind], (lower, upper, step, limit)
        assert out[0] == range(lower, upper, step)[-1]
        assert out[3] == (out[2] if upper > 2 else 0)


@pytest.mark.parametrize(
    ("loops", "why"),
    [
        ("    if n > 2:\n        for i in range(n):\n            pass\n", "branch"),
        ("    for _ in range(n):\n        for i in range(n):\n            pass\n", "inside a loop"),
        (
            "    for i in range(n):\n        pass\n    for _ in range(2):\n"
            "        tl.store(out, i)\n        for i in range(n):\n            pass\n",
            "a loop inside a loop",
        ),
    ],
)
def test_the_variable_of_a_loop_that_may_not_have_been_is_undefined(loops: str, why: str) -> None:
    source = "@proton.jit\ndef kernel(out, n):\n" + loops + "    tl.store(out, i)\n"
    with pytest.raises(CompilationError, match=f"i may be undefined here: .*{why}"):
        kernels_of(source).kernel[(1,)](np.zeros(1, np.int32), 5)
