"""Launches with the arguments of one before, which are not looked at again: what looks the same and
is not must still be seen."""

import re
import sys

import numpy as np
import pytest

import proton
import proton.language as tl
from proton import knobs
from proton.base.errors import LaunchError
from proton.runtime.cpu.prepared import MOST, signature

FACTOR = tl.constexpr(2)


@proton.jit
def scaled_sum(x_ptr, y_ptr, out_ptr, n, scale, negative: tl.constexpr, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < n).to(tl.float64)
    y = tl.load(y_ptr + offs, mask=offs < n).to(tl.float64)
    total = x + y * scale
    if negative:
        total = -total
    tl.store(out_ptr + offs, total, mask=offs < n)


def test_any_order_of_arrays_and_numbers(rng: np.random.Generator) -> None:
    """Arrays, views, strided and read-only arrays of one block of memory, in several types, with
    numbers that are equal and not the same; results overlap what is read, or not."""
    memory = rng.integers(-50, 50, 4000).astype(np.float32)
    owned = [rng.integers(-50, 50, 300).astype(kind) for kind in ("f4", "i8")]
    read_only = owned[0].copy()
    read_only.flags.writeable = False
    views = [memory[start:][:300] for start in (0, 7, 300, 1000, 3000)]
    sources = [*owned, *views, read_only, memory[100:700].view(np.float64)]
    scales = (0.0, -0.0, 1, True, 1.0)
    for number in range(400):
        x = sources[int(rng.integers(0, len(sources)))]
        y = [owned[0], *views][int(rng.integers(0, 1 + len(views)))]
        out = views[int(rng.integers(0, len(views)))]
        scale, negative = scales[int(rng.integers(0, len(scales)))], bool(rng.integers(0, 2))
        n = int(rng.choice([0, 1, 2, 299, 300]))
        wanted = out.copy()
        with np.errstate(all="ignore"):
            total = x[:n].astype("f8") + y[:n].astype("f8") * float(scale)
            wanted[:n] = (-total if negative else total).astype("f4")
        scaled_sum[(1,)](x, y, out, n, scale, negative, BLOCK=512)
        assert np.array_equal(out, wanted, equal_nan=True), (number, x.dtype, y.dtype, n, scale)
        assert (np.signbit(out) == np.signbit(wanted))[~np.isnan(wanted)].all()
        memory[rng.integers(0, memory.size, 900)] = rng.integers(-50, 50, 900)


def test_an_array_that_changes_in_place() -> None:
    x, out = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)

    def launch() -> None:
        scaled_sum[(1,)](x, x, out, min(x.size, 64), 1, False, BLOCK=64)

    for _ in range(3):
        launch()
    assert (out == 2 * np.arange(64)).all()
    x.dtype = np.int32  # type: ignore[misc]
    x[:] = 5
    launch()
    assert (out == 10).all()
    x.resize(1000, refcheck=False)
    x[:] = 7
    launch()
    assert (out == 14).all()
    out.flags.writeable = False
    with pytest.raises(LaunchError, match="out_ptr is read-only"):
        launch()
    out.flags.writeable = True
    launch()
    with knobs.scope(check_bounds=True), pytest.raises(proton.base.errors.ProtonError):
        scaled_sum[(2,)](x, x, out, 128, 1, False, BLOCK=64)


def test_a_constant_that_changes_is_told() -> None:
    module = sys.modules[__name__]

    @proton.jit
    def kernel(out_ptr):
        tl.store(out_ptr, FACTOR)

    out = np.zeros(1, np.int32)
    for _ in range(3):
        kernel[(1,)](out)
    assert out[0] == 2
    before = module.FACTOR
    try:
        module.FACTOR = tl.constexpr(3)
        with pytest.raises(LaunchError, match=re.escape("FACTOR has changed")):
            kernel[(1,)](out)
    finally:
        module.FACTOR = before


def test_a_session_sees_launches_like_those_before() -> None:
    x, out = np.ones(64, np.float32), np.zeros(64, np.float32)
    for _ in range(3):
        scaled_sum[(1,)](x, x, out, 64, 1, False, BLOCK=64)
    with proton.profile("repeated") as run:
        for _ in range(3):
            scaled_sum[(1,)](x, x, out, 64, 1, False, BLOCK=64)
    assert len(run.launches) == 3
    with pytest.raises(LaunchError):
        scaled_sum[(1, 2, 3, 4)](x, x, out, 64, 1, False, BLOCK=64)


def test_what_says_too_little_is_looked_at_again(rng: np.random.Generator) -> None:
    plain = rng.standard_normal((4, 6))
    assert signature((plain, 1)) is not None
    for value in (plain.T, plain[:, ::2], np.float32(1), object(), (1, 2), memoryview(b"a"), b"a"):
        assert signature((value,)) is None
    assert signature((np.frombuffer(bytearray(16), np.int8),)) is None
    pairs = [(0.0, -0.0), (1, True), (1, 1.0), (None, False), ("1", 1), (plain, plain[:3])]
    for a, b in pairs:
        assert signature((a,)) != signature((b,))


def test_few_launches_are_kept() -> None:
    out = np.zeros(1, np.float32)
    for n in range(2 * MOST):
        scaled_sum[(1,)](out, out, out, 0, n, False, BLOCK=1)
    assert len(scaled_sum._host._prepared) <= MOST
