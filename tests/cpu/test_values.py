"""Values as Triton has them: numbers, dtypes, pointers and one-element blocks where they meet."""

from typing import Any

import numpy as np
import pytest

import proton
import proton.language as tl
from tests.cpu.harness import SIGNED, UNSIGNED, encode, pointer, storage

pytestmark = pytest.mark.interpreted


@proton.jit
def if_pointer(x_ptr, w_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    v = tl.load(x_ptr + i)
    if w_ptr:
        v = v * tl.load(w_ptr + i)
    tl.store(x_ptr + i, v)


def test_a_pointer_is_a_condition() -> None:
    x = np.ones(8, np.float32)
    if_pointer[(1,)](x, np.full(8, 3.0, np.float32), N=8)
    assert (x == 3).all()
    if_pointer[(1,)](x, None, N=8)
    assert (x == 3).all()


@proton.jit
def one_element_condition(x_ptr, out_ptr):
    if tl.load(x_ptr + tl.arange(0, 1)) == 0.0:
        tl.store(out_ptr, 1.0)
    else:
        tl.store(out_ptr, 2.0)


@pytest.mark.filterwarnings("ignore:a block as a condition")
def test_a_block_of_one_element_is_a_condition() -> None:
    for value in (0.0, 5.0):
        out = np.zeros(1, np.float32)
        one_element_condition[(1,)](np.array([value], np.float32), out)
        assert out[0] == (1 if value == 0 else 2)


@proton.jit
def needs_constexpr(offs: tl.constexpr, N: tl.constexpr):
    T: tl.constexpr = offs + N
    a: tl.constexpr
    a, b = T, 1
    return a + b


@proton.jit
def passes_run_time_values(out_ptr, n, N: tl.constexpr):
    tl.store(out_ptr + tl.arange(0, N), needs_constexpr(tl.arange(0, N) + n, N))


def test_a_constexpr_annotation_takes_what_is_known_at_run_time() -> None:
    out = np.zeros(4, np.int32)
    passes_run_time_values[(1,)](out, 5, N=4)
    assert out.tolist() == [10, 11, 12, 13]


@proton.jit
def numbers_are_scalars(out_ptr, N: tl.constexpr):
    value = 1
    acc = 0
    acc = acc.to(tl.int64) + value.to(tl.int64)
    tl.static_assert(acc.dtype.is_int64() and not acc.dtype.is_uint64())
    tl.static_assert(acc.dtype.int_bitwidth == 64 and acc.dtype.value == tl.int64)
    tl.store(out_ptr + tl.arange(0, N), tl.full([N], value=value, dtype=value.dtype) + acc)


def test_numbers_have_what_scalars_have() -> None:
    out = np.zeros(4, np.int32)
    numbers_are_scalars[(1,)](out, N=4)
    assert (out == 2).all()


@proton.jit
def chooses_what_is_done(x_ptr, out_ptr):
    tl.store(out_ptr, 1.0) if tl.load(x_ptr) > 0 else tl.store(out_ptr, 2.0)
    tl.store(out_ptr[None, None, :] + 1, tl.full([1, 1], 3.0, tl.float32))
    at = tl.program_id(0) + 2
    tl.static_assert(at[:, None, None].shape == (1, 1))
    tl.store(out_ptr + (at[:, None] + at[None, :] - 2), 4.0, mask=(at[:, None] < 3) & (at[:] > 0))


def test_a_ternary_of_calls_and_a_scalar_with_dimensions() -> None:
    for value in (1, 0):
        out = np.zeros(3, np.float32)
        chooses_what_is_done[(1,)](np.array([value], np.int32), out)
        assert out.tolist() == [1 if value else 2, 3, 4]


@proton.jit
def logic(x_ptr, y_ptr, out_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    x, y = tl.load(x_ptr + i), tl.load(y_ptr + i)
    tl.store(out_ptr + i, x.logical_or(y).to(tl.int32) * 2 + x.logical_and(y))


def test_logical_methods(rng: np.random.Generator) -> None:
    x, y = (rng.integers(-1, 2, 64).astype(np.int32) for _ in range(2))
    out = np.zeros(64, np.int32)
    logic[(1,)](x, y, out, N=64)
    assert (out == ((x != 0) | (y != 0)) * 2 + ((x != 0) & (y != 0))).all()


@proton.jit(debug=True)
def asserts_what_is_false(x_ptr, out_ptr):
    if tl.load(x_ptr) > 10:
        tl.device_assert(False, "must not be reached")
    tl.store(out_ptr, 1)


def test_an_assertion_that_is_known_to_fail_fails_where_the_program_gets_there() -> None:
    out = np.zeros(1, np.int32)
    asserts_what_is_false[(1,)](np.zeros(1, np.int32), out)
    assert out[0] == 1
    with pytest.raises(Exception, match="must not be reached"):
        asserts_what_is_false[(1,)](np.full(1, 11, np.int32), out)


@proton.jit
def typed_extremum(x_ptr, out_ptr, N: tl.constexpr, NAME: tl.constexpr, WANT: tl.constexpr):
    found = NAME(tl.load(x_ptr + tl.arange(0, N)), axis=0)
    tl.static_assert(found.dtype == WANT)
    tl.store(out_ptr, found)


@pytest.mark.parametrize("name", ["max", "min"])
@pytest.mark.parametrize("dtype", [*SIGNED, *UNSIGNED, "float16", "bfloat16", "float32"])
def test_extrema_of_narrow_types_are_wider(rng: np.random.Generator, dtype: str, name: str) -> None:
    is_float = dtype.startswith(("float", "bfloat"))
    values = rng.integers(-100 if dtype in SIGNED or is_float else 0, 100, 64)
    x: Any = encode(values.astype(np.float32), dtype) if is_float else values.astype(dtype)
    narrow = np.dtype(storage(dtype)).itemsize < 4
    want = getattr(tl, ("float32" if is_float else "int32") if narrow else dtype)
    out = np.zeros(1, np.float64)
    function = tl.max if name == "max" else tl.min
    typed_extremum[(1,)](pointer(x, dtype), out, N=64, NAME=function, WANT=want)
    assert out[0] == getattr(values, name)()


@proton.jit
def as_constants(stored, filled, converted, T: tl.constexpr, VALUES: tl.constexpr):
    for i in tl.static_range(len(VALUES)):
        tl.store(stored + i, VALUES[i])
        tl.store(filled + i, tl.full((), VALUES[i], T))
        tl.store(converted + i, tl.cast(VALUES[i], T))


@proton.jit
def stores(out, VALUE: tl.constexpr):
    tl.store(out, VALUE)


@pytest.mark.parametrize("dtype", ["int1", *SIGNED, *UNSIGNED])
def test_constants_become_what_numbers_of_the_run_time_do(dtype: str) -> None:
    """2 became False in an array of bools, and 3e9 a negative int32. What a type has no place for
    is an error; integers are modulo its width."""
    kind, is_signed = getattr(tl, dtype), dtype in SIGNED
    bits = kind.primitive_bitwidth
    least, most = (-(1 << bits - 1), (1 << bits - 1) - 1) if is_signed else (0, (1 << bits) - 1)
    if dtype == "int1":
        least, most = -(1 << 63), (1 << 64) - 1
    values = (0, 1, 2, -1, True, False, 300, 1 << 31, 1 << 63, (1 << 64) - 1, -(1 << 63))
    values += (0.0, -0.0, 0.5, 2.0, 2.75, 100.0, -0.75, *((-1.0, -100.5) if least else ()))
    found = [np.zeros(len(values), "bool" if dtype == "int1" else dtype) for _ in range(3)]
    as_constants[(1,)](*found, kind, values)
    for each in found:
        assert each.tolist() == found[-1].tolist()
    if dtype == "int1":
        assert found[0].tolist() == list(map(bool, values))
        beyond = []
    else:
        np.testing.assert_array_equal(found[0][:2], [0, 1])
        past = 2.0 * max(most, (1 << 16) - 1)
        beyond = [1 << 64, -(1 << 63) - 1, past, -past, float("inf"), float("nan")]
    for value in beyond:
        with pytest.raises(proton.CompilationError, match=r" (does not fit in|as) "):
            stores[(1,)](found[0], value)


@proton.jit
def asks_for_its_target(out):
    tl.static_assert(not tl.target_info.is_hip())
    if tl.target_info.cuda_capability_geq(9):
        tl.store(out, 9)
    elif tl.target_info.is_cuda():
        tl.store(out, tl.target_info.current_target().arch)
    else:
        tl.static_assert(tl.target_info.current_target().backend == "cpu")
        tl.store(out, -1)


def test_a_kernel_knows_its_target() -> None:
    out = np.zeros(1, np.int32)
    asks_for_its_target[(1,)](out)
    assert out[0] in (-1, 9)
    for arch, text in ((80, "80"), (90, "9")):
        target = proton.GPUTarget("cuda", arch)
        ttir = asks_for_its_target.warmup(tl.int32, target=target).asm["ttir"]
        assert f"constant {text} : i32" in ttir
