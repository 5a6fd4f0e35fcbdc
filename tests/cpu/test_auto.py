"""Records that the compiler places by itself, in kernels without scopes."""

import inspect
from pathlib import Path

import numpy as np
import pytest

import proton
import proton.language as tl
from proton.base.errors import ProfileError


@proton.jit
def sums(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    lane = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for i in range(n):
        total += tl.load(x_ptr + i * BLOCK + lane)
    tl.store(out_ptr + lane, total)


@proton.jit
def product(a_ptr, b_ptr, out_ptr, BLOCK: tl.constexpr):
    row = tl.arange(0, BLOCK)
    place = row[:, None] * BLOCK + row[None, :]
    a, b = tl.load(a_ptr + place), tl.load(b_ptr + place)
    tl.store(out_ptr + place, tl.dot(a, b))


def line_of(kernel: object, text: str) -> str:
    """`test_auto.py:N` of the first line of a kernel that has this text."""
    lines, first = inspect.getsourcelines(kernel.fn)  # type: ignore[attr-defined]
    number = next(number for number, line in enumerate(lines, first) if text in line)
    return f"{Path(__file__).name}:{number}"


def test_loops_and_loads_are_found_by_line(rng: np.random.Generator) -> None:
    x = rng.standard_normal(7 * 128, dtype=np.float32)
    plain, recorded = np.empty((2, 128), np.float32)
    sums[(1,)](x, plain, 7, BLOCK=128)
    with proton.profile("auto", auto="loads,loops") as run:
        sums[(1,)](x, recorded, 7, BLOCK=128)
    assert plain.tobytes() == recorded.tobytes()
    table = run.placed.set_index("name")
    loop, load = line_of(sums, "for i"), line_of(sums, "tl.load")
    counts = {f"loop {loop}": 1, f"iteration {loop}": 7, f"load {load}": 7}
    assert table["records"].to_dict() == counts
    assert table["work"].to_dict() == {
        f"loop {loop}": "loops", f"iteration {loop}": "loops", f"load {load}": "loads"
    }  # fmt: skip
    per_iteration = {f"loop {loop}": 0, f"iteration {loop}": 1, f"load {load}": 1}
    assert table["per_iteration"].to_dict() == per_iteration
    scopes = run.frame[run.frame["kind"] == "scope"]
    turns = scopes[scopes["name"] == f"iteration {loop}"]
    assert turns["iteration"].tolist() == list(range(7))
    assert "at most 2 an iteration" in run.summary().facts["placed by the compiler"]


def test_work_that_is_fused_has_all_names(rng: np.random.Generator) -> None:
    a, b = rng.standard_normal((2, 64, 64), dtype=np.float32)
    out = np.empty_like(a)
    with proton.profile("auto", auto=("dots", "loads", "copies", "barriers", "stages")) as run:
        product[(1,)](a, b, out, BLOCK=64)
    np.testing.assert_allclose(out, a @ b, rtol=1e-3, atol=1e-3)
    names = " + ".join(run.frame["name"][run.frame["kind"] == "scope"])
    for what, text in (("load", "tl.load"), ("dot", "tl.dot")):
        assert f"{what} {line_of(product, text)}" in names
    assert run.summary().warnings == ()


@proton.jit
def scoped(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    with proton.scope("fetch"):
        x = tl.load(x_ptr + at, mask=at < n)
    with proton.scope("store"):
        tl.store(out_ptr + at, x + 1, mask=at < n)


def test_names_of_the_program_stay_in_those_of_the_compiler(rng: np.random.Generator) -> None:
    """Fused or not, the scope around what was found is in its name."""
    x = rng.random(16384, np.float32)
    out = np.empty_like(x)
    with proton.profile("fused", auto="loads") as run:
        scoped[(16,)](x, out, x.size, BLOCK=1024)
    load = f"load {line_of(scoped, 'tl.load')}"
    names = set(run.frame[run.frame["kind"] == "scope"]["scope"])
    assert names == {f"store + fetch: {load}"}
    np.testing.assert_array_equal(out, x + 1)
    options = {"auto": "loads", "placement": "program"}
    gpu = proton.GPUTarget("cuda", 90)
    made = scoped.warmup(tl.float32, tl.float32, 200, BLOCK=256, target=gpu, profile=options)
    assert f"fetch/{load}" in {scope["path"] for scope in made.metadata.profile["scopes"]}


def test_a_kernel_with_nothing_of_the_kind_runs_plain(rng: np.random.Generator) -> None:
    x = rng.standard_normal(256, dtype=np.float32)
    out = np.empty(128, np.float32)
    with proton.profile("auto", auto="dots") as run:
        sums[(1,)](x, out, 2, BLOCK=128)
    np.testing.assert_allclose(out, x.reshape(2, 128).sum(0), rtol=1e-6)
    assert len(run.placed) == 0
    assert run.launches["strategy"].tolist() == ["none"]


def test_words_that_there_are_not() -> None:
    with pytest.raises(ProfileError, match=r"auto takes words of .*'barrier'; did you mean barri"):
        proton.start("auto", auto=["barrier"])
