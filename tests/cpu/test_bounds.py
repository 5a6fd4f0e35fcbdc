"""`PROTON_CHECK_BOUNDS`: what lies outside of the array is not accessed, and is an error that says
which access, argument, element and program."""

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import proton
import proton.language as tl
from kernels.cases import CASES, MORE_CASES
from tests.cpu.harness import kernels_of

SENTINEL = 99
SMALL = {"vector add": (3000,), "dropout": (3000,), "vector sum": (3000,), "histogram": (3000,)}


@pytest.fixture(autouse=True)
def checked() -> Iterator[None]:
    with proton.knobs.scope(check_bounds=True):
        yield


@proton.jit
def _callee(ptr, place):
    return tl.load(ptr + place)


@proton.jit(noinline=True)
def _kept_callee(ptr, place):
    return tl.load(ptr + place)


# Each accesses x once at the places given by `i` (a block, or with N = 1 a scalar), and writes
# what it got to out.
BODIES = {
    "load": "v = tl.load(x + i)",
    "masked load": "v = tl.load(x + i, mask=i != 1000, other=3)",
    "scalar load": "v = tl.load(x + tl.max(i, 0)) + 0 * i",
    "store": "tl.store(x + i, i); v = i",
    "scalar store": "tl.store(x + tl.max(i, 0), 5); v = i",
    "atomic_add": "v = tl.atomic_add(x + i, 1)",
    "masked atomic_xchg": "v = tl.atomic_xchg(x + i, 1, mask=i != 1000)",
    "atomic_cas": "v = tl.atomic_cas(x + i, 0, 1)",
    "callee": "v = _callee(x, i)",
    "kept callee": "v = _kept_callee(x, i)",
    "where": "v = tl.load(tl.where(i > -5000, x + i, out + i))",
    "loop": "p = x + i - 3; for k in range(4):\n        v = tl.load(p, mask=i + k >= i + 3)"
    "\n        p += 1",
    "if": "p = x + i\n    if other:\n        p = x + i + 1\n    v = tl.load(p)",
    "2-D": "j = i[:, None] + tl.zeros((1, 2), tl.int32)\n    v = tl.max(tl.load(x + j), 1)",
}


def kernel_of(body: str) -> Any:
    body = re.sub(r"; ", "\n    ", body)
    source = (
        "from tests.cpu.test_bounds import _callee, _kept_callee\n"
        "@proton.jit\n"
        "def kernel(x, places, out, other, N: tl.constexpr):\n"
        "    first = tl.program_id(0) * N\n"
        "    i = tl.load(places + first + tl.arange(0, N))\n"
        "    v = i\n"
        f"    {body}\n"
        "    tl.store(out + first + tl.arange(0, N), v)\n"
    )
    return kernels_of(source).kernel


def run(body: str, x: Any, places: list[int], programs: int = 1) -> np.ndarray:
    given = np.array(places, np.int32)
    out = np.zeros_like(given)
    kernel_of(body)[(programs,)](x, given, out, 0, N=len(places) // programs)
    return out


@pytest.mark.parametrize("name", BODIES)
def test_each_kind_of_access_is_checked_to_the_element(name: str, rng: np.random.Generator) -> None:
    size = int(rng.integers(2, 50))
    memory = np.full(size + 2 * 64, SENTINEL, np.int32)
    x = memory[64 : 64 + size]
    x[:] = 0
    run(BODIES[name], x, [0, size - 1])
    for outside in (size, -1, size + int(rng.integers(0, 60)), -int(rng.integers(1, 60))):
        places = [0, 0, outside, 0] if outside > 0 else [outside] * 4
        with pytest.raises(proton.BoundsError) as problem:
            run(BODIES[name], x, places)
        text = str(problem.value)
        assert f"x[{outside}]" in text
        assert f"x has elements 0 to {size - 1}" in text
        assert "in program (0, 0, 0)" in text
        assert "kernel kernel:" in text
        assert (memory[:64] == SENTINEL).all()
        assert (memory[64 + size :] == SENTINEL).all()


def test_the_error_says_where(rng: np.random.Generator) -> None:
    with pytest.raises(proton.BoundsError) as problem:
        run(BODIES["store"], np.zeros(10, np.int32), [3, 4, 5, 6, 7, 10, 8, 9], programs=4)
    text = str(problem.value)
    assert re.search(r"kernels_\w+\.py:10:5: kernel kernel: store outside of the array", text), text
    assert "tl.store(x + i, i)" in text
    assert "in program (2, 0, 0)" in text
    with pytest.raises(proton.BoundsError, match=r"test_bounds\.py:\d+:12: kernel kernel: load"):
        run(BODIES["callee"], np.zeros(10, np.int32), [0, 10])


def test_random_gathers_and_scatters(rng: np.random.Generator) -> None:
    """What is inside is done, what is outside is not, and the first of these is reported."""
    for _ in range(30):
        size, programs = int(rng.integers(1, 40)), int(rng.integers(1, 5))
        places = rng.integers(-1, size + 1, 8 * programs)
        if rng.random() < 0.3:
            places = places.clip(0, size - 1)
        masked = places != 1000
        body = BODIES[str(rng.choice(["store", "masked load", "atomic_add"]))]
        memory = np.full(size + 2, SENTINEL, np.int32)
        outside = np.flatnonzero(((places < 0) | (places >= size)) & masked)
        before = memory.copy()
        if outside.size:
            with pytest.raises(proton.BoundsError) as problem:
                run(body, memory[1:-1], list(places), programs)
            first = outside[0]
            assert f"x[{places[first]}]" in str(problem.value)
            assert f"in program ({first // 8}, 0, 0)" in str(problem.value)
        else:
            run(body, memory[1:-1], list(places), programs)
        want, inside = before, places[(places >= 0) & (places < size)]
        if "store" in body:
            want[1 + inside] = inside
        elif "atomic" in body:
            np.add.at(want, 1 + inside, 1)
        assert (memory == want).all()


@proton.jit
def copy(x, out, stride, n, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + i, tl.load(x + i * stride, mask=i < n), mask=i < n)


@pytest.mark.parametrize("dtype", ["bool", "int8", "float16", "float32", "int64"])
@pytest.mark.parametrize("step", [1, -1, 3, -2])
def test_views_end_where_their_elements_do(dtype: str, step: int, rng: np.random.Generator) -> None:
    big = rng.integers(0, 2, 200).astype(dtype)
    x = big[50:150][::step]
    out, size = np.zeros(128, dtype), x.size
    copy[(1,)](x, out, step, size, N=128)
    assert (out[:size] == x).all()
    with pytest.raises(proton.BoundsError) as problem:
        copy[(1,)](x, out, step, size + 1, N=128)
    low, high = sorted([0, (size - 1) * step])
    assert f"x[{size * step}] (x has elements {low} to {high})" in str(problem.value)
    with pytest.raises(proton.BoundsError, match=r"x\[0\] \(x has no elements\)"):
        copy[(1,)](x[:0], out, step, 2, N=128)  # 1 would be a constant of another kernel
    with pytest.raises(proton.BoundsError, match="out has elements 0 to 9"):
        copy[(1,)](x, out[:10], step, 11, N=128)


def test_masked_elements_are_not_checked() -> None:
    x, out = np.arange(10, dtype=np.int32), np.zeros(128, np.int32)
    copy[(1,)](x, out, 1, 10, N=128)
    copy[(1,)](x[:0], out[:0], 1, 0, N=128)
    assert (out[:10] == x).all()


@proton.jit
def wide(x, out, place):
    pointer = x.to(tl.pointer_type(tl.int64))
    tl.store(out, tl.load(pointer + place))


@pytest.mark.parametrize("interpret", [False, True])
def test_every_byte_of_an_element_counts(interpret: bool) -> None:
    out = np.zeros(1, np.int64)
    wide[(1,)](np.arange(7, dtype=np.int32), out, 2)
    assert out[0] == 4 + (5 << 32)
    beyond = r"x\[6\] and beyond \(x has elements 0 to 6\)"
    with proton.knobs.scope(interpret=interpret), pytest.raises(proton.BoundsError, match=beyond):
        wide[(1,)](np.arange(7, dtype=np.int32), out, 3)


@proton.jit
def either(a, b, out, flag, N: tl.constexpr):
    i = tl.arange(0, N)
    if flag:
        source = a
    else:
        source = b
    tl.store(out + i, tl.load(source + i))


@pytest.mark.parametrize("flag", [True, False])
def test_a_chosen_pointer_may_point_into_either_array(flag: bool) -> None:
    a, b, out = np.ones(8, np.int32), np.zeros(9, np.int32), np.full(16, SENTINEL, np.int32)
    either[(1,)](a, b, out, flag, N=8)
    assert (out[:8] == flag).all()
    with pytest.raises(proton.BoundsError, match=r"at a\[-?\d+\] or b\[-?\d+\] \(a has ele"):
        either[(1,)](a, b, out, flag, N=16)


@proton.jit
def indirect(addresses, out):
    pointer = tl.load(addresses).to(tl.pointer_type(tl.int32))
    tl.store(out, tl.load(pointer + 5))


def test_pointers_out_of_nowhere_are_not_checked() -> None:
    x, out = np.arange(10, dtype=np.int32), np.zeros(1, np.int32)
    indirect[(1,)](np.array([x.ctypes.data], np.int64), out)
    assert out[0] == 5


@proton.jit
def scattered_store(out, n):
    tl.store(out + tl.program_id(0) * 2, 1)


def test_threads_report_one_access(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROTON_NUM_THREADS", "4")
    out = np.zeros(1000, np.int32)
    for _ in range(5):
        with pytest.raises(proton.BoundsError) as problem:
            scattered_store[(100_000,)](out, 0)
        found = re.search(r"out\[(\d+)\].*in program \((\d+), 0, 0\)", str(problem.value))
        assert found is not None
        assert int(found[1]) == 2 * int(found[2]) >= 1000
    assert out[::2].all()
    assert not out[1::2].any()


def test_a_profiled_launch_is_checked_and_recorded() -> None:
    with proton.profile("run") as run_:
        with pytest.raises(proton.BoundsError, match=r"out\[1000\]"):
            scattered_store[(501,)](np.zeros(1000, np.int32), 0)
        copy[(1,)](np.zeros(4, np.int32), np.zeros(4, np.int32), 1, 4, N=8)
    assert run_.totals.slices == 0  # neither has scopes
    assert list(run_.launches.kernel) == ["scattered_store", "copy"]


@pytest.mark.parametrize("case", [*CASES, *MORE_CASES], ids=lambda case: case.name)
def test_the_kernels_are_right_and_stay_inside(case: Any, rng: np.random.Generator) -> None:
    ranks = len(case.shapes.__code__.co_varnames)
    inputs = case.inputs(rng, *SMALL.get(case.name, (40, 50, 60)[:ranks]))
    assert case.check(inputs) <= case.tolerance


def test_without_the_knob_nothing_is_checked() -> None:
    x, out = np.zeros(8, np.int32), np.zeros(8, np.int32)
    checked = copy[(1,)](x, out, 1, 8, N=8)
    with proton.knobs.scope(check_bounds=False):
        plain = copy[(1,)](x, out, 1, 8, N=8)
    assert checked.metadata["extras"] == ["bounds"]
    assert plain.metadata["extras"] == plain.metadata["bounds"] == []
    assert "cmpxchg" in checked.asm["llir"]
    assert "cmpxchg" not in plain.asm["llir"]
