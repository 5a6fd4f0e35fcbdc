"""Atomics: their results, the values they return, and contention between threads."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import proton
import proton.language as tl
from proton import CompilationError, knobs
from tests.cpu.harness import (
    FLOATS,
    decode,
    encode,
    kernels_of,
    ordinary,
    pointer,
    sample,
    storage,
)

ATOMIC_INTEGERS = ("int32", "int64", "uint32", "uint64")
REFERENCE: dict[str, Callable[..., Any]] = {
    "add": np.add,
    "max": np.maximum,
    "min": np.minimum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "xchg": lambda old, new: new,
}
OF_FLOATS = ("add", "max", "min", "xchg")


def atomic_kernel(names: Sequence[str], stride: int) -> Any:
    """Atomic i of the memory that begins at i * stride."""
    accesses = "".join(
        f"    old = tl.atomic_{name}(target_ptr + {n * stride} + offs, x, mask=mask)\n"
        f"    tl.store(old_ptr + {n * stride} + offs, old, mask=mask)\n"
        for n, name in enumerate(names)
    )
    return kernels_of(
        f"""
@proton.jit
def kernel(x_ptr, target_ptr, old_ptr, n, k, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < n)
    mask = (offs < n) & (offs >= k)
{accesses}"""
    ).kernel


@pytest.mark.parametrize("dtype", [*ATOMIC_INTEGERS, *FLOATS])
def test_each_atomic_on_places_of_their_own(rng: np.random.Generator, dtype: str) -> None:
    names = OF_FLOATS if dtype in FLOATS else tuple(REFERENCE)
    draw, shape = ordinary if dtype in FLOATS else sample, (len(names), 150)
    for n in (0, 100, 150, 1)[: 3 + (dtype in ("int32", "float32"))]:  # 1 is a constant
        x, target = draw(rng, dtype, 150), draw(rng, dtype, len(names) * 150).reshape(shape)
        before, old = target.copy(), np.zeros(shape, storage(dtype))
        arguments = [pointer(a, dtype) for a in (x, target, old)]
        atomic_kernel(names, 150)[(3,)](*arguments, n, 10, BLOCK=64)
        want, taken = before.copy(), slice(10, max(n, 10))
        for row, name in enumerate(names):
            result = REFERENCE[name](decode(before[row], dtype)[taken], decode(x, dtype)[taken])
            want[row, taken] = encode(np.asarray(result), dtype)
            assert (target[row] == want[row]).all(), (name, n)
            assert (old[row, taken] == before[row, taken]).all(), (name, n)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ["max", "min"])
def test_maxima_and_minima_of_special_floats(name: str, dtype: str) -> None:
    """Zeros have signs, infinities count, and what is no number changes nothing."""
    some = [0.0, -0.0, 1.5, -1.5, 1e-40, -1e-40, np.inf, -np.inf, 3e38, -3e38]
    target, x = (a.ravel().astype(dtype) for a in np.meshgrid(some, [*some, np.nan, -np.nan]))
    before, old = target.copy(), np.zeros_like(target)
    n = target.size
    atomic_kernel([name], n)[(proton.cdiv(n, 64),)](x, target, old, n, 0, BLOCK=64)
    number = np.where(np.isnan(x), before, x)
    np.testing.assert_array_equal(target, REFERENCE[name](before, number))
    assert old.tobytes() == before.tobytes()


SEMS = ("relaxed", "acquire", "release", "acq_rel")


@proton.jit
def side_by_side(
    x_ptr, target_ptr, old_ptr, n, SEMS: tl.constexpr, SIZE: tl.constexpr, BLOCK: tl.constexpr
):
    """By each ordering two sums of memories of SIZE; what the second one returns is stored."""
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    x = tl.load(x_ptr + offs, mask=mask)
    for i in tl.static_range(len(SEMS)):
        tl.atomic_add(target_ptr + 2 * i * SIZE + offs, x, mask=mask, sem=SEMS[i])
        kept = target_ptr + (2 * i + 1) * SIZE + offs
        old = tl.atomic_add(kept, x, mask=mask, sem=SEMS[i])
        tl.store(old_ptr + i * SIZE + offs, old, mask=mask)


@pytest.mark.parametrize("dtype", [*FLOATS, "int32", "int64"])
def test_sums_of_elements_side_by_side(rng: np.random.Generator, dtype: str) -> None:
    """Sizes that 16 divides: on a GPU an instruction takes several elements."""
    most = 2048
    for n in (0, 16, 1008, 1024, 2000):
        # Numbers whose sums are exact in all types.
        x = encode(rng.integers(-8, 8, most), dtype)
        target = encode(rng.integers(-8, 8, (len(SEMS), 2, most)), dtype)
        before, old = target.copy(), np.zeros((len(SEMS), most), storage(dtype))
        arguments = [pointer(a, dtype) for a in (x, target, old)]
        side_by_side[(2,)](*arguments, n, SEMS=SEMS, SIZE=most, BLOCK=1024)
        want = decode(before, dtype).astype(np.float64)
        want[..., :n] += decode(x, dtype)[:n].astype(np.float64)
        is_right = decode(target, dtype).astype(np.float64) == want
        for i, sem in enumerate(SEMS):
            assert is_right[i].all(), (sem, n)
            assert (old[i, :n] == before[i, 1, :n]).all(), (sem, n)
            assert not old[i, n:].any(), (sem, n)


@proton.jit
def count(counter_ptr, old_ptr, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    old = tl.atomic_add(counter_ptr + tl.zeros((BLOCK,), tl.int32), 1)
    tl.store(old_ptr + pid * BLOCK + tl.arange(0, BLOCK), old)


@pytest.mark.parametrize("threads", [1, 2, 4])
@pytest.mark.parametrize("dtype", ATOMIC_INTEGERS)
def test_returned_values_of_a_counter_are_a_permutation(dtype: str, threads: int) -> None:
    counter, old = np.zeros(1, dtype), np.zeros(4000 * 16, dtype)
    with knobs.scope(num_threads=threads):
        count[(4000,)](counter, old, BLOCK=16)
    assert counter[0] == old.size
    assert (np.sort(old) == np.arange(old.size)).all()


@proton.jit
def accumulate(x_ptr, out_ptr, n, BINS: tl.constexpr):
    pid = tl.program_id(0)
    x = tl.load(x_ptr + pid)
    tl.atomic_add(out_ptr + pid % BINS, x)
    tl.atomic_max(out_ptr + BINS, x)
    tl.atomic_min(out_ptr + BINS + 1, x)


@pytest.mark.parametrize("dtype", ["int32", "int64", "float32", "float64"])
def test_contention_of_scalar_atomics(rng: np.random.Generator, dtype: str) -> None:
    x, out = rng.integers(-100, 100, 20_000).astype(dtype), np.zeros(5, dtype)
    with knobs.scope(num_threads=4):
        accumulate[(x.size,)](x, out, x.size, BINS=3)
    assert out.tolist() == [x[b::3].sum() for b in range(3)] + [x.max(), x.min()]


@proton.jit
def locked(lock_ptr, data_ptr, ROUNDS: tl.constexpr):
    for _ in range(ROUNDS):
        while tl.atomic_cas(lock_ptr, 0, 1) == 1:
            pass
        tl.store(data_ptr, tl.load(data_ptr) + 1)  # neither is atomic
        tl.store(data_ptr + 1, tl.load(data_ptr + 1) + tl.load(data_ptr))
        tl.debug_barrier()
        tl.atomic_xchg(lock_ptr, 0)


def test_a_lock_made_of_compare_and_swap() -> None:
    lock, data = np.zeros(1, np.int32), np.zeros(2, np.int64)
    with knobs.scope(num_threads=2):
        locked[(2000,)](lock, data, ROUNDS=2)
    assert data.tolist() == [4000, 4000 * 4001 // 2]
    assert lock[0] == 0


@proton.jit
def exchange_if(x_ptr, expected_ptr, new_ptr, old_ptr, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    expected, new = tl.load(expected_ptr + offs), tl.load(new_ptr + offs)
    tl.store(old_ptr + offs, tl.atomic_cas(x_ptr + offs, expected, new))


@pytest.mark.interpreted
@pytest.mark.parametrize("dtype", ["int16", *ATOMIC_INTEGERS, "float16", "float32", "float64"])
def test_compare_and_swap(rng: np.random.Generator, dtype: str) -> None:
    x, new, old = ordinary(rng, dtype, 64), ordinary(rng, dtype, 64), np.zeros(64, dtype)
    before = x.copy()
    expected = np.where(rng.random(64) < 0.5, x, x + 1).astype(dtype)
    exchange_if[(1,)](x, expected, new, old, BLOCK=64)
    assert (x == np.where(before == expected, new, before)).all()
    assert (old == before).all()


@proton.jit
def histogram(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < n, other=0)
    tl.atomic_add(out_ptr + x, 1, mask=offs < n)


@pytest.mark.interpreted
@pytest.mark.parametrize("threads", [1, 3])
def test_scattered_atomics(rng: np.random.Generator, threads: int) -> None:
    x, out = rng.integers(0, 17, 50_001).astype(np.int32), np.zeros(17, np.int32)
    with knobs.scope(num_threads=threads):
        histogram[(proton.cdiv(x.size, 256),)](x, out, x.size, BLOCK=256)
    assert (out == np.bincount(x, minlength=17)).all()


@pytest.mark.interpreted
@pytest.mark.parametrize("sem", ["acquire", "release", "acq_rel", "relaxed"])
@pytest.mark.parametrize("scope", ["gpu", "cta", "sys"])
def test_orderings_and_scopes(sem: str, scope: str) -> None:
    source = f"""
@proton.jit
def kernel(x_ptr):
    tl.atomic_add(x_ptr, 2, sem="{sem}", scope="{scope}")
    tl.atomic_cas(x_ptr, 2, 7, sem="{sem}", scope="{scope}")
"""
    x = np.zeros(1, np.int32)
    kernels_of(source).kernel[(1,)](x)
    assert x[0] == 7


@pytest.mark.parametrize(
    "call", ["tl.atomic_and(x_ptr, 1)", "tl.atomic_add(x_ptr, 1, sem='strong')"]
)
def test_what_atomics_refuse(call: str) -> None:
    kernel = kernels_of(f"\n@proton.jit\ndef kernel(x_ptr):\n    {call}\n").kernel
    with pytest.raises(CompilationError):
        kernel[(1,)](np.zeros(1, np.float32))


# Loads, stores and waiting


@proton.jit
def moved(x_ptr, out_ptr, seen_ptr, n, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    x = tl.atomic_load(x_ptr + offs, mask=offs < n, sem="relaxed")
    tl.atomic_store(out_ptr + offs, x, mask=offs < n, scope="sys")
    tl.atomic_store(out_ptr + BLOCK, (x_ptr + 1).atomic_load())
    tl.debug_barrier()
    for i in tl.static_range(2):
        tl.store(seen_ptr + i, (out_ptr + i).atomic_poll(tl.atomic_load(x_ptr + i)))
    tl.store(seen_ptr + 2, tl.atomic_poll(out_ptr + BLOCK, tl.load(x_ptr + 1), sem="acquire"))
    first = tl.arange(0, 16)
    tl.store(seen_ptr + 3 + first, tl.atomic_poll(out_ptr + first, tl.load(x_ptr + first)))


@pytest.mark.parametrize("dtype", ["int32", "uint64", "float32", "float64"])
def test_atomic_loads_and_stores(rng: np.random.Generator, dtype: str) -> None:
    x, out, seen = ordinary(rng, dtype, 64), np.zeros(65, dtype), np.zeros(19, np.int32)
    x[5] = -0.0 if dtype.startswith("float") else 5
    before = x.copy()
    moved[(1,)](x, out, seen, 50, BLOCK=64)
    assert x.tobytes() == before.tobytes()
    assert out.tobytes() == np.concatenate([x[:50], np.zeros(14, dtype), x[1:2]]).tobytes()
    assert seen.tolist() == [1] * 19


@proton.jit
def moved_bits(x_ptr, out_ptr, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    x = tl.atomic_load(x_ptr + offs, mask=offs > 1)
    tl.static_assert(x.dtype == x_ptr.dtype.element_ty)
    tl.atomic_store(out_ptr + 1 + offs, x, mask=offs < BLOCK - 3)
    tl.atomic_store(out_ptr + BLOCK, tl.atomic_load(x_ptr + 2, sem="relaxed", scope="cta"))
    tl.atomic_store(out_ptr + BLOCK - 1, 1, sem="relaxed", scope="sys")


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int16", "uint16", "float16"])
def test_narrow_atomic_loads_and_stores(rng: np.random.Generator, dtype: str) -> None:
    """What lies beside an element stays as it is."""
    x = rng.integers(0, 2 if dtype == "bool" else 100, 32).astype(dtype)
    out = rng.integers(0, 2, 36).astype(dtype)  # whole words: a GPU swaps those
    want = out.copy()
    want[1:30] = [0, 0, *x[2:29]]
    want[31:33] = [1, x[2]]
    moved_bits[(1,)](x, out, BLOCK=32)
    assert (out == want).all()


@proton.jit
def refused(x_ptr, KIND: tl.constexpr):
    if KIND == "add":
        tl.atomic_add(x_ptr, 1)
    elif KIND == "cas":
        tl.atomic_cas(x_ptr, 1, 2)
    else:
        tl.atomic_load(x_ptr, sem="release")


@pytest.mark.parametrize(
    ("dtype", "kind", "rule"),
    [
        ("int8", "add", "tl.atomic_add is not defined on i8"),
        ("uint16", "add", "tl.atomic_add is not defined on u16"),
        ("int8", "cas", "tl.atomic_cas is not defined on i8"),
        ("int32", "load", 'sem must be "acquire" or "relaxed", got \'release\''),
    ],
)
def test_what_atomics_do_not_take(dtype: str, kind: str, rule: str) -> None:
    with pytest.raises(CompilationError, match=rule):
        refused[(1,)](np.zeros(1, dtype), KIND=kind)
