"""Tuples and named tuples: as arguments of kernels, through control flow, from callees."""

import ctypes
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest

import proton
import proton.language as tl
from proton import CompilationError
from tests.cpu.harness import ordinary

pytestmark = pytest.mark.interpreted

N = 32


class Matrix(NamedTuple):
    ptr: Any
    shape: Any
    scale: Any = 1


class Closure(NamedTuple):
    fn: Any
    captured: tuple[Any, ...]


@proton.jit
def add_both(x, a, b):
    return x + a * b


# Arguments


@proton.jit
def sum_of(out, parts, nothing, weights, BLOCK: tl.constexpr):
    tl.static_assert(nothing is None)
    tl.static_assert(parts[1][1] is None)
    tl.static_assert(parts[1][2] == 4)
    tl.static_assert(len(parts) == 2 and len(parts[1]) == 3)
    offs = tl.arange(0, BLOCK)
    x = tl.load(parts[0] + offs) * weights[0] + tl.load(parts[1][0] + offs) * weights[1]
    tl.store(out + offs, x + parts[1][2])


def test_nested_tuples_of_arrays_numbers_and_constants(rng: np.random.Generator) -> None:
    x, y = ordinary(rng, "int64", N), ordinary(rng, "int64", N)
    out = np.zeros(N, np.int64)
    for weights in ((3, 5), (1, 16), (2**40, 1)):  # 1 is a constant, of others the type matters
        parts = (x, (y, None, tl.constexpr(4)))
        sum_of[(1,)](out, parts, None, weights, BLOCK=N)
        assert (out == x * weights[0] + y * weights[1] + 4).all()


@proton.jit
def apply(closure, source, target, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    x = tl.load(source.ptr + offs, mask=offs < source.shape[0], other=0)
    y = closure.fn(x, *closure.captured) * source.scale
    copy = Matrix(target.ptr, shape=target.shape)
    tl.store(copy.ptr + offs, y, mask=offs < copy.shape[0] * copy.scale)


def test_named_tuples_have_fields_and_functions(rng: np.random.Generator) -> None:
    x, out = ordinary(rng, "int32", N), np.full(N, -1, np.int32)
    apply[(1,)](Closure(add_both, (2, 7)), Matrix(x, (20,), 3), Matrix(out, (25,)), BLOCK=N)
    want = np.where(np.arange(N) < 20, x, 0) * 3 + 42
    assert (out == np.where(np.arange(N) < 25, want, -1)).all()


@proton.jit
def add_rest(out, first, *rest):
    total = first
    for value in rest:
        total += value
    tl.store(out, total)


@pytest.mark.parametrize("values", [(), (7,), (7, 1, 2**33)])
def test_any_number_of_arguments(values: tuple[int, ...]) -> None:
    out = np.zeros(1, np.int64)
    add_rest[(1,)](out, 5, *values)
    assert out[0] == 5 + sum(values)


@proton.jit
def copy_through(pair, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    x = tl.load(pair[0] + offs)
    tl.debug_barrier()
    tl.store(pair[1] + offs, x)
    tl.debug_barrier()
    tl.store(pair[1] + offs + 1, x)


def test_arrays_in_a_tuple_may_overlap(rng: np.random.Generator) -> None:
    data = ordinary(rng, "int32", N + 1)
    want, x = data.copy(), data[:N].copy()
    want[:N] = x
    want[1:] = x
    copy_through[(1,)]((data[:N], data), BLOCK=N)
    assert (data == want).all()


def test_what_a_tuple_must_not_hold_is_named() -> None:
    out = np.zeros(N, np.int32)
    with pytest.raises(proton.LaunchError, match=r"argument pair\[1\] must be an array"):
        copy_through[(1,)]((out, "text"), BLOCK=N)
    out.flags.writeable = False
    with pytest.raises(proton.LaunchError, match=r"argument pair\[1\] is read-only"):
        copy_through[(1,)]((np.zeros(N, np.int32), out), BLOCK=N)


# Control flow


@proton.jit
def fibonacci(out, n):
    pair = (0, (1, 16))
    for _ in range(n):
        tl.static_assert(pair[1][1] == 16)  # what does not change stays known
        pair = (pair[1][0], (pair[0] + pair[1][0], pair[1][1]))
    state = (pair[0], n)
    while state[1] > 0:
        state = (state[0] + 1, state[1] - 1)
    tl.store(out + tl.arange(0, pair[1][1]), state[0])


@pytest.mark.parametrize("n", [0, 1, 10])
def test_loops_carry_tuples(n: int) -> None:
    out = np.zeros(16, np.int32)
    fibonacci[(1,)](out, n)
    a, b = 0, 1
    for _ in range(n):
        a, b = b, a + b
    assert (out == a + n).all()


@proton.jit(noinline=True)
def swapped(m):
    if m.scale > 3:
        return Matrix(m.ptr, (m.shape[1], m.shape[0]), m.scale)
    return m


@proton.jit
def branches(out, a, b):
    m = Matrix(out, (a, b), a)
    n = swapped(m)
    pair = (n.shape[0], 1) if b > 0 else (n.shape[1], 2)
    if a > 10:
        n = Matrix(n.ptr + 1, n.shape, 100)
    tl.store(n.ptr, pair[0] * 10 + pair[1] + n.scale)


@pytest.mark.parametrize(("a", "b"), [(2, 3), (5, 7), (11, -2), (5, -3)])
def test_branches_and_calls_give_tuples(a: int, b: int) -> None:
    out = np.zeros(2, np.int32)
    branches[(1,)](out, a, b)
    shape = (b, a) if a > 3 else (a, b)
    pair = (shape[0], 1) if b > 0 else (shape[1], 2)
    want = [0, 0]
    want[a > 10] = pair[0] * 10 + pair[1] + (100 if a > 10 else a)
    assert out.tolist() == want


@proton.jit
def changes_form(out, n):
    pair = (1, 2)
    for i in range(n):
        pair = (i, 2, 3)
    tl.store(out, pair[0])


@proton.jit
def changes_type(out, n):
    pair = (n, 2)
    for _ in range(n):
        pair = (pair[0] * 0.5, 2)
    tl.store(out, pair[0])


def test_a_loop_keeps_a_tuples_form() -> None:
    out = np.zeros(1, np.int32)
    with pytest.raises(CompilationError, match=r"the loop changes pair, which was \(1, 2\)"):
        changes_form[(1,)](out, 3)
    with pytest.raises(
        CompilationError, match=r"Loop-carried variable pair has initial type i32, .* fp32"
    ):
        changes_type[(1,)](out, 3)


# Objects that are no arrays


@proton.jit
def fill(ptr, value):
    tl.store(ptr + tl.arange(0, 16), value)


@pytest.mark.parametrize("dtype", [tl.int32, np.dtype("int32"), "int32"])
def test_an_object_with_an_address_and_a_dtype_is_a_pointer(dtype: Any) -> None:
    memory = (ctypes.c_int32 * 16)()
    address = ctypes.addressof(memory)
    fill[(1,)](SimpleNamespace(data_ptr=lambda: address, dtype=dtype, device="cpu"), 7)
    assert list(memory) == [7] * 16


@tl.core.builtin
def halves(values, factor, _semantic=None):
    """An op of a program's own: it is told what is known while compiling."""
    known = [isinstance(value, tl.constexpr) for value in values]
    assert isinstance(factor, tl.constexpr)
    assert factor.value == 2
    return [tl.mul(values[0], factor, _semantic=_semantic), *known]


def marked(fn):
    """As torch marks its own, whatever `builtin` is."""

    def wrapper(*args, _semantic, **kwargs):
        return fn(*args, **kwargs)

    wrapper.__triton_builtin__ = True
    return wrapper


@marked
def power_from(n):
    return tl.constexpr(proton.next_power_of_2(n.value))


@proton.jit
def calls_an_op_of_its_own(x_ptr, n, SIZE: tl.constexpr):
    POWER: tl.constexpr = power_from(SIZE - 3)
    tl.static_assert(POWER == 16)
    number = 5
    doubled, runs, known, written, variable = halves((n, SIZE, 7, number), 2)
    tl.static_assert(not runs and not variable)
    tl.static_assert(known and written)
    tl.store(x_ptr, doubled)


def test_an_op_of_the_program_s_own() -> None:
    assert tl.core.is_builtin(halves)
    assert tl.core.is_builtin(power_from)
    assert not tl.core.is_builtin(marked)
    x = np.zeros(1, np.int32)
    calls_an_op_of_its_own[(1,)](x, 21, 16)
    assert x.tolist() == [42]
    with pytest.raises(RuntimeError, match="halves can only be called inside a kernel"):
        halves((1,), 2)
