"""What the front end makes of control flow and compile-time values, with no back end.

Integer kernels are run by `scalar_interpreter` and compared with the same function in Python.
"""

import random
from collections.abc import Callable
from typing import Any

import pytest

import proton.language as tl
from proton.dialect.context import mlir_context
from proton.language.function import DeviceFunction
from tests.ir.building import build, see
from tests.ir.scalar_interpreter import stored_values

# Kernels that store to `out`, and what they mean: a Python function that gives the values stored.

SEMANTICS: list[tuple[DeviceFunction, Callable[..., list[int]]]] = []


def means(python: Callable[..., list[int]]) -> Callable[[Any], DeviceFunction]:
    """Puts the kernel below into the table, with its meaning."""

    def add(fn: Any) -> DeviceFunction:
        kernel = DeviceFunction(fn)
        SEMANTICS.append((kernel, python))
        return kernel

    return add


@means(lambda a, b: [max(a, b)])
def if_else(out, a, b):
    if a > b:
        c = a
    else:
        c = b
    tl.store(out, c)


@means(lambda a, b: [a + 1 if a > b else a])
def if_without_else(out, a, b):
    if a > b:
        a += 1
    tl.store(out, a)


@means(lambda a, b: [1 if a > b else 2 if a == b else 3])
def elif_chain(out, a, b):
    if a > b:
        c = 1
    elif a == b:
        c = 2
    else:
        c = 3
    tl.store(out, c)


@means(lambda a, b: [a * 2, b] if a > 0 else [b, b])
def store_in_a_branch(out, a, b):
    if a > 0:
        tl.store(out, a * 2)
    else:
        tl.store(out, b)
    tl.store(out, b)


@means(lambda a, b: [] if a > b else [b])
def early_return(out, a, b):
    if a > b:
        return
    tl.store(out, b)


@means(lambda a, b: [a] if a > b else [b] if b > 3 else [0])
def nested_returns(out, a, b):
    if a > b:
        tl.store(out, a)
        return
    else:
        if b > 3:
            tl.store(out, b)
            return
    tl.store(out, 0)


@means(lambda a, b: [a if a > b else b - a])
def conditional_expression(out, a, b):
    tl.store(out, a if a > b else b - a)


@means(lambda a, b: [int(a > 0 and b > 0), int(a > 0 or b > 0), int(not a > 0)])
def boolean_operators(out, a, b):
    tl.store(out, (a > 0 and b > 0).to(tl.int32))
    tl.store(out, (a > 0 or b > 0).to(tl.int32))
    tl.store(out, (not a > 0).to(tl.int32))


@means(lambda a, b: [int(a < b < 5)])
def chained_comparison(out, a, b):
    tl.store(out, (a < b < 5).to(tl.int32))


@means(lambda a, b: [sum(range(a, b))])
def loop_with_a_carried_sum(out, a, b):
    total = 0
    for i in range(a, b):
        total += i
    tl.store(out, total)


@means(lambda a, b: list(range(b, a, -1)))
def loop_downwards(out, a, b):
    for i in range(b, a, -1):
        tl.store(out, i)


@means(lambda a, b: list(range(b, a, -3)))
def loop_downwards_in_steps(out, a, b):
    for i in tl.range(b, a, -3):
        tl.store(out, i)


@means(lambda a, b: list(range(0, b, 4)))
def loop_in_steps(out, a, b):
    for i in range(0, b, 4):
        tl.store(out, i)


@means(lambda a, b: [i * j for i in range(a) for j in range(i, b)])
def nested_loops(out, a, b):
    for i in range(a):
        for j in range(i, b):
            tl.store(out, i * j)


@means(lambda a, b: [x for i in range(b) if i > a for x in (i,)] + [b])
def if_in_a_loop(out, a, b):
    for i in range(b):
        if i > a:
            tl.store(out, i)
    tl.store(out, b)


def fibonacci(a: int, b: int) -> list[int]:
    x, y = 0, 1
    for _ in range(b):
        x, y = y, x + y
    return [x, y]


@means(fibonacci)
def two_carried_values_swap(out, a, b):
    x, y = 0, 1
    for _i in range(b):
        x, y = y, x + y
    tl.store(out, x)
    tl.store(out, y)


def halve(a: int, b: int) -> list[int]:
    steps = 0
    while b > 0:
        b, steps = b - 2, steps + 1
    return [steps, b]


@means(halve)
def while_loop(out, a, b):
    steps = 0
    while b > 0:
        b -= 2
        steps += 1
    tl.store(out, steps)
    tl.store(out, b)


@means(lambda a, b: [0, 1, 4, a])
def static_loop(out, a, b):
    for i in tl.static_range(3):
        tl.store(out, i * i)
    tl.store(out, a)


@means(lambda a, b: [a + b, a - b, 7])
def tuples(out, a, b):
    pair = (a + b, a - b)
    (first, second), third = pair, 7
    tl.store(out, first)
    tl.store(out, pair[1])
    tl.store(out, third)
    see(second.dtype)


@DeviceFunction
def smaller(x, y):
    if x < y:
        return x
    return y


@DeviceFunction
def divmod_by_two(x):
    return x // 2, smaller(x, 1)


@DeviceFunction
def sorted_pair(x, y, descending: tl.constexpr = False):
    if descending:
        return x + y - smaller(x, y), smaller(x, y)
    return smaller(x, y), x + y - smaller(x, y)


@means(lambda a, b: [min(a, b), max(a, b), max(a, b), min(a, b)])
def nested_calls(out, a, b):
    low, high = sorted_pair(a, b)
    tl.store(out, low)
    tl.store(out, high)
    first, second = sorted_pair(y=a, x=b, descending=True)
    tl.store(out, first)
    tl.store(out, second)


@means(lambda a, b: [a + (2 * b if b > 1 else b)])
def walrus(out, a, b):
    total = a + (c := (2 * b if b > 1 else b))
    see(c.dtype)
    tl.store(out, total)


@pytest.mark.parametrize("kernel, python", SEMANTICS, ids=lambda p: getattr(p, "__name__", ""))
def test_control_flow_means_what_the_source_says(
    kernel: DeviceFunction, python: Callable[..., list[int]]
) -> None:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    rng = random.Random(seed)
    inputs = [
        (0, 0),
        (0, 6),
        (6, 0),
        *[(rng.randint(-5, 9), rng.randint(-5, 9)) for _ in range(20)],
    ]
    with mlir_context():
        module = build(kernel)
        for a, b in inputs:
            assert stored_values(module, [a, b]) == python(a, b), (
                f"a={a} b={b} seed={seed}\n{module}"
            )
