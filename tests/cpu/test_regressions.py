"""What a review with fresh eyes broke: each test is one finding."""

import os
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import proton
import proton.language as tl
from proton.viewer import Run


class Settings:
    SCALE = 2


n = 1  # a global that shares its name with a parameter


@proton.jit
def shadowing(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + offs, tl.load(x_ptr + offs, mask=offs < n) * 2, mask=offs < n)


def test_a_parameter_may_share_a_globals_name(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.arange(3000, dtype=np.float32)
    for size in (1000, 2000):
        monkeypatch.setitem(globals(), "n", size)
        out = np.zeros_like(x)
        shadowing[(proton.cdiv(size, 256),)](x, out, size, BLOCK=256)
        assert (out[:size] == 2 * x[:size]).all()
    keys = set()
    for size in (5, 6):
        monkeypatch.setitem(globals(), "n", size)
        keys.add(shadowing.source_key())
    assert len(keys) == 1


@proton.jit
def scaled(x_ptr, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    tl.store(x_ptr + offs, tl.load(x_ptr + offs) * Settings.SCALE)


@proton.jit
def one_more(x):
    return x + 1


@proton.jit
def calls(x_ptr):
    tl.store(x_ptr, one_more(tl.load(x_ptr)))


def test_what_compiled_code_holds_must_not_change(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.ones(4, np.float32)
    scaled[(1,)](x, BLOCK=4)
    assert (x == 2).all()
    monkeypatch.setattr(Settings, "SCALE", 3)
    with pytest.raises(proton.LaunchError, match=r"variable SCALE has .*, from 2 to"):
        scaled[(1,)](x, BLOCK=4)
    calls[(1,)](x)
    monkeypatch.setitem(globals(), "one_more", scaled)
    with pytest.raises(proton.LaunchError, match="one_more has changed"):
        calls[(1,)](x)


@proton.jit
def two_payloads(x_ptr, out_ptr, count, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    for k in range(count):
        with proton.scope("load", k=k):
            x = tl.load(x_ptr + k * BLOCK + offs)
        with proton.scope("store", k=k * 10, m=k):
            tl.store(out_ptr + k * BLOCK + offs, x + 1)


def test_fused_scopes_keep_payloads_of_one_name_apart(tmp_path: Path) -> None:
    x = np.arange(96, dtype=np.float32)
    out = np.empty_like(x)
    with proton.profile("fused") as run:
        two_payloads[(1,)](x, out, 3, BLOCK=32)
    assert (out == x + 1).all()
    frame = run.frame
    rows = frame[frame["kind"] == "scope"]
    assert list(rows["name"]) == ["load + store"] * 3
    assert list(rows["payload"]) == [{"k": k, "store.k": 10 * k, "m": k} for k in range(3)]
    assert Run.load(run.save(tmp_path / "fused.proton")).frame.equals(frame)


@proton.jit
def rotate(a_ptr, b_ptr, c_ptr, count, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    before = tl.load(a_ptr + offs)
    p, q, r = a_ptr + offs, b_ptr + offs, c_ptr + offs
    for i in range(count):
        tl.store(p, tl.load(q) + i)
        p, q, r = q, r, p
    tl.store(c_ptr + offs, before)


def test_rotated_pointers_may_write_any_of_their_arrays(rng: np.random.Generator) -> None:
    for count in range(5):
        arrays = [rng.integers(-99, 99, 8).astype(np.int32) for _ in range(3)]
        expected = [array.copy() for array in arrays]
        before = expected[0].copy()
        for i in range(count):
            expected[i % 3][:] = expected[(i + 1) % 3] + i
        expected[2][:] = before
        rotate[(1,)](*arrays, count, BLOCK=8)
        for array, wanted in zip(arrays, expected, strict=True):
            assert (array == wanted).all()
    arrays[1].flags.writeable = False
    with pytest.raises(proton.LaunchError, match="read-only"):
        rotate[(1,)](*arrays, 3, BLOCK=8)


@proton.jit
def carried_transpose(x_ptr, out_ptr, count, MODE: tl.constexpr, N: tl.constexpr):
    place = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    a = tl.load(x_ptr + place)
    for _ in range(count):
        if MODE == 0:
            a = tl.trans(a)
        elif MODE == 1:
            a = a + tl.trans(a) * 0.5
        else:
            a = tl.dot(a, tl.trans(a), a) * 0.125
    tl.store(out_ptr + place, a)


@pytest.mark.parametrize("mode", [0, 1, 2])
@pytest.mark.parametrize("count", [0, 1, 2, 3])
def test_loops_may_carry_a_transpose(rng: np.random.Generator, mode: int, count: int) -> None:
    x = rng.integers(-3, 3, (16, 16)).astype(np.float32)
    out, a = np.empty_like(x), x.copy()
    for _ in range(count):
        a = [a.T, a + a.T * np.float32(0.5), (a @ a.T + a) * np.float32(0.125)][mode].copy()
    carried_transpose[(1,)](x, out, count, MODE=mode, N=16)
    np.testing.assert_allclose(out, a, rtol=1e-5)


@proton.jit
def descending_wrap(x_ptr, out_ptr, size, start, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    tl.store(out_ptr + offs, tl.load(x_ptr + (size + start - offs) % size))


def test_a_wrap_that_runs_backwards(rng: np.random.Generator) -> None:
    size = 20
    whole = rng.standard_normal(3 * size).astype(np.float32)
    x = whole[size : 2 * size]
    for start in (0, 3, 15, 19):
        out = np.empty(16, np.float32)
        descending_wrap[(1,)](x, out, size, start, BLOCK=16)
        assert (out == x[(size + start - np.arange(16)) % size]).all()


@proton.jit
def constant(out_ptr, VALUE: tl.constexpr):
    tl.store(out_ptr, VALUE[0] / VALUE[1])


@proton.jit
def signed_zero(out_ptr, VALUE: tl.constexpr):
    tl.store(out_ptr, VALUE)


def test_constants_that_compare_equal_are_told_apart() -> None:
    out = np.zeros(1, np.float32)
    kernels = [constant[(1,)](out, VALUE=v) for v in ((1, 2), (1.0, 2.0), (True, 2), (1, 2))]
    assert len({id(kernel) for kernel in kernels}) == 3
    for value in (0.0, -0.0):
        signed_zero[(1,)](out, VALUE=value)
        assert np.signbit(out[0]) == np.signbit(value)
    nans = {id(signed_zero[(1,)](out, VALUE=float("nan"))) for _ in range(3)}
    assert len(nans) == 1


@proton.jit
def named_grid(out_ptr, grid):
    tl.store(out_ptr, grid)


def test_a_parameter_may_be_named_grid() -> None:
    out = np.zeros(1, np.int32)
    named_grid[(1,)](out, grid=7)
    assert out[0] == 7


def test_a_session_may_start_inside_a_host_scope() -> None:
    out = np.zeros(1, np.int32)
    with proton.scope("outside"):
        proton.start("inside")
        named_grid[(1,)](out, 3)
    with proton.scope("open at the end"):
        run = proton.finalize()
    assert set(run.frame["kind"]) <= {"host", "launch", "compile"}


def test_an_ended_thread_leaves_no_open_scope_to_the_next() -> None:
    def leave_open(name: str) -> None:
        proton.enter_scope(name)
        named_grid[(1,)](np.zeros(1, np.int32), 3)

    with proton.profile("threads") as run:
        for name in ("a", "b", "c"):
            thread = threading.Thread(target=leave_open, args=(name,))
            thread.start()
            thread.join()
    host = run.frame[run.frame["kind"] == "host"]
    assert sorted(host["scope"].astype(str)) == ["a", "b", "c"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_fork_while_another_thread_compiles() -> None:
    stop = threading.Event()

    def compile_for_ever() -> None:
        size = 0
        with proton.knobs.scope(always_compile=True):
            while not stop.is_set():
                size += 1
                scaled_by[(1,)](np.zeros(4, np.float32), FACTOR=size, BLOCK=4)

    thread = threading.Thread(target=compile_for_ever)
    thread.start()
    try:
        for factor in range(4):
            assert child(factor) == 0
    finally:
        stop.set()
        thread.join()


@proton.jit
def scaled_by(x_ptr, FACTOR: tl.constexpr, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    tl.store(x_ptr + offs, tl.load(x_ptr + offs) * FACTOR)


def child(factor: int) -> Any:
    """The exit status of a forked child that compiles and runs a kernel."""
    process = os.fork()
    if process == 0:
        import signal

        signal.alarm(60)  # a child that hangs dies, and fails the test
        x = np.ones(4, np.float32)
        scaled_by[(1,)](x, FACTOR=factor + 1000, BLOCK=4)
        os._exit(0 if (x == factor + 1000).all() else 1)
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
