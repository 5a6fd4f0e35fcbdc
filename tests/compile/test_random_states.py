"""Loops of random steps on states that they carry: products that add to them, sums of their rows,
stores in rows and columns. Right on the machine for PTX, against numpy."""

import textwrap
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import proton
import proton.language as tl
from tests.compile.ptx.emulation import Emulation
from tests.cpu.harness import kernels_of
from tests.draws import TIMES, kernels

BEGINS = {
    "zero": "tl.zeros((M, N), tl.float32)",
    "load": "tl.load(out_ptr + {number} * M * N + at)",
    "sum": "tl.zeros((M, N), tl.float32) + tl.load(out_ptr + {number} * M * N + at)",
}
# What a kernel does to states a and b, and what numpy does; `half` rounds to the type of x.
STEPS = {
    "add": ("{a} = tl.dot(x, half({b}), {a})", "{a} = {a} + x @ half({b})"),
    "chain": (
        "{a} += tl.dot(x, half(tl.dot(w, half({b}))))",
        "{a} = {a} + x @ half(w @ half({b}))",
    ),
    "rows": ("tl.store(rows_ptr + i * M * N + at, half({a}))", "rows[i] = half({a})"),
    "columns": (
        "tl.store(columns_ptr + i * M * N + j[None, :] * M + m[:, None], half({a}))",
        "columns[i] = half({a}).T",
    ),
    "scale": ("{a} = {a} * s[:, None]", "{a} = {a} * s[:, None]"),
    "mix": ("{a} = {a} * 0.5 + {b} * 0.25", "{a} = {a} * 0.5 + {b} * 0.25"),
    "size": (
        "size = tl.sum({a} * {a}, 1) * 0.01; {b} = {b} * 0.5 + size[:, None]",
        "size = ({a} * {a}).sum(1) * 0.01; {b} = {b} * 0.5 + size[:, None]",
    ),
    "last": ("size = tl.sum({a}, 1) * 0.01", "size = {a}.sum(1) * 0.01"),
    "choose": (
        "{a} = tl.where(s[:, None] > 0.5, {a}, {b})",
        "{a} = np.where(s[:, None] > 0.5, {a}, {b})",
    ),
}
KERNEL = """
@proton.jit
def kernel(
    x_ptr, w_ptr, s_ptr, rows_ptr, columns_ptr, out_ptr, n, M: tl.constexpr, N: tl.constexpr
):
    m, j = tl.arange(0, M), tl.arange(0, N)
    at, square = m[:, None] * N + j[None, :], m[:, None] * M + m[None, :]
    size = tl.zeros((M,), tl.float32)
{begin}
    for i in range(n):
        x = tl.load(x_ptr + i * M * M + square)
        w = tl.load(w_ptr + i * M * M + square)
        s = tl.load(s_ptr + i * M + m)
{steps}
{end}
"""


@st.composite
def programs(draw: st.DrawFn) -> tuple[str, str, int]:
    """(the kernel, what numpy does, the number of states)."""
    states = [f"h{number}" for number in range(draw(st.integers(1, 3)))]
    begins = [BEGINS[draw(st.sampled_from(sorted(BEGINS)))] for _ in states]
    drawn = [
        (
            STEPS[draw(st.sampled_from(sorted(STEPS)))],
            *(draw(st.sampled_from(states)) for _ in "ab"),
        )
        for _ in range(draw(st.integers(2, 6)))
    ]
    first, second = ([step[side].format(a=a, b=b) for step, a, b in drawn] for side in (0, 1))
    begin = [
        f"{h} = {b.format(number=n)}" for n, (h, b) in enumerate(zip(states, begins, strict=True))
    ]
    end = [
        f"tl.store(out_ptr + {n} * M * N + at, {h} + size[:, None])" for n, h in enumerate(states)
    ]
    source = KERNEL.format(
        begin=textwrap.indent("\n".join(begin), " " * 4),
        steps=textwrap.indent("\n".join(first), " " * 8),
        end=textwrap.indent("\n".join(end), " " * 4),
    )
    zeros = [f"{h} = 0 * {h}" for h, b in zip(states, begins, strict=True) if b == BEGINS["zero"]]
    return f"{HALF}\n{source}", "\n".join([*zeros, "# the loop", *second]), len(states)


HALF = """
@proton.jit
def half(value):
    return value.to(tl.{element})
"""


def expected(
    text: str, states: int, element: Any, x: Any, w: Any, s: Any, out: Any, n: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """What numpy makes of the drawn lines in float64: (rows, columns, out)."""
    _, m, size_n = out.shape
    names: dict[str, Any] = {f"h{k}": out[k].astype(np.float64) for k in range(states)}
    names |= {"np": np, "half": lambda value: value.astype(element).astype(np.float64)}
    names |= {"rows": np.zeros((n, m, size_n)), "columns": np.zeros((n, size_n, m))}
    names["size"] = np.zeros(m)
    begin, loop = text.split("# the loop")
    exec(begin, names)
    for i in range(n):
        names |= {"i": i, "x": x[i].astype(np.float64), "w": w[i].astype(np.float64)}
        names["s"] = s[i].astype(np.float64)
        exec(loop, names)
    ends = np.array([names[f"h{k}"] + names["size"][:, None] for k in range(states)])
    return names["rows"], names["columns"], ends


@kernels(12 * TIMES)
@given(
    program=programs(),
    element=st.sampled_from(["float16", "float32"]),
    sizes=st.tuples(st.sampled_from([16, 32, 64]), st.sampled_from([16, 32, 64])),
    warps=st.sampled_from([1, 2, 4, 8]),
    stages=st.integers(1, 3),
    n=st.sampled_from([0, 1, 2, 3, 5]),
    seed=st.integers(0, 2**32 - 1),
)
def test_states_of_random_loops(
    program: tuple[str, str, int], element: str, sizes: tuple[int, int], warps: int, stages: int,
    n: int, seed: int,
) -> None:  # fmt: skip
    """Numbers have the bits of fp16, so that tf32 has them, too."""
    source, text, states = program
    rng, (m, size_n) = np.random.default_rng(seed), sizes
    shape = max(n, 1), m, m
    x, w = (rng.normal(0, 0.5 / m**0.5, shape).astype(np.float16).astype(element) for _ in "xw")
    s = rng.random((max(n, 1), m)).astype(np.float16).astype(np.float32)
    out = rng.standard_normal((states, m, size_n)).astype(np.float16).astype(np.float32)
    rows, columns = (np.zeros((max(n, 1), *shape), element) for shape in (sizes, sizes[::-1]))
    wants = expected(text, states, np.dtype(element), x, w, s, out, n)
    kernel = kernels_of(source.replace("{element}", element)).kernel
    with Emulation(warps, rng).installed():
        kernel[(1,)](x, w, s, rows, columns, out, n, m, size_n, num_warps=warps, num_stages=stages)
    for found, want in zip((rows[:n], columns[:n], out), wants, strict=True):
        scale = max(1.0, np.abs(want).max(initial=0))
        np.testing.assert_allclose(found, want, rtol=0, atol=2e-2 * scale)


@proton.jit
def last_size(x_ptr, out_ptr, sizes_ptr, n, M: tl.constexpr):
    """Each iteration makes a size anew; the last one is taken behind the loop."""
    m = tl.arange(0, M)
    at = m[:, None] * M + m[None, :]
    total = tl.zeros((M, M), tl.float32)
    size = m * 0.5
    for i in range(n):
        x = tl.load(x_ptr + i * M * M + at)
        total = tl.dot(x, x, total)
        size = tl.sum(total, 1)
    tl.store(out_ptr + at, total)
    tl.store(sizes_ptr + m, size)


@pytest.mark.parametrize("stages", [1, 2, 3])
@pytest.mark.parametrize("n", [0, 1, 2, 4])
def test_what_only_the_last_iteration_gives(rng: np.random.Generator, stages: int, n: int) -> None:
    """A pipeline gave what was there ahead of the loop."""
    x = rng.integers(-2, 3, (max(n, 1), 16, 16)).astype(np.float16)
    out, sizes = np.full((16, 16), np.nan, np.float32), np.full(16, np.nan, np.float32)
    with Emulation(1, rng).installed():
        last_size[(1,)](x, out, sizes, n, 16, num_warps=1, num_stages=stages)
    want = sum((a @ a for a in x[:n].astype(np.float32)), np.zeros((16, 16), np.float32))
    np.testing.assert_array_equal(out, want)
    np.testing.assert_array_equal(sizes, want.sum(1) if n else np.arange(16) * 0.5)
