"""Records that the compiler places by itself, in kernels without scopes."""

import inspect
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import proton
import proton.language as tl
from proton import knobs
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


def test_work_in_the_order_of_the_program(rng: np.random.Generator) -> None:
    """Each op has its record, in the scopes that it is in."""
    a, b = rng.standard_normal((2, 64, 64), dtype=np.float32)
    out, sums_of = np.empty_like(a), np.empty(128, np.float32)
    options = {"auto": ("dots", "loads", "loops"), "placement": "program"}
    with proton.profile("ordered", **options) as run:
        product[(1,)](a, b, out, BLOCK=64)
        sums[(1,)](rng.standard_normal(7 * 128, np.float32), sums_of, 7, BLOCK=128)
    np.testing.assert_allclose(out, a @ b, rtol=1e-3, atol=1e-3)
    table = run.placed.set_index(["kernel", "name"])["records"].to_dict()
    dot, load, loop = (line_of(product, "tl.dot"), line_of(sums, "tl.load"), line_of(sums, "for i"))
    assert table["product", f"dot {dot}"] == 1
    assert table["sums", f"load {load}"] == table["sums", f"iteration {loop}"] == 7
    loads = [key for key in table if key[0] == "product" and key[1].startswith("load ")]
    assert sum(table[key] for key in loads) == 2


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


@proton.jit
def held(lock_ptr, data_ptr, n):
    with proton.scope("own"):
        own = tl.program_id(0) * 1.0
        for k in range(n):
            own = own * 0.5 + k
    while tl.atomic_cas(lock_ptr, 0, 1) == 1:
        pass
    with proton.scope("together"):
        value = tl.load(data_ptr)
        for _ in range(n):
            value = value * 0.5 + own
        tl.store(data_ptr, value)
    tl.debug_barrier()
    tl.atomic_xchg(lock_ptr, 0)


@pytest.mark.parametrize("placement", ["schedule", "program"])
def test_a_lock_is_waited_for_until_it_is_released(placement: str) -> None:
    """The path of the launch goes from who waits to who held the lock."""
    lock, data, n = np.zeros(1, np.int32), np.zeros(1, np.float32), 100_000
    with (
        knobs.scope(num_threads=2),
        proton.profile("lock", auto="barriers", placement=placement) as run,
    ):
        held[(4,)](lock, data, n)
    assert lock[0] == 0
    table = run.placed.set_index("name")
    line = line_of(held, "tl.atomic_xchg")
    assert table["work"].to_dict() == dict.fromkeys(
        (f"wait release {line}", f"issue release {line}"), "locks"
    )
    scopes = run.frame[run.frame["kind"] == "scope"].set_index("scope")
    scopes["end_ns"] = scopes["start_ns"] + scopes["dur_ns"]
    together, issues = scopes.loc["together"], scopes.loc[f"issue release {line}"]
    waits = scopes.loc[f"wait release {line}"]
    assert [len(each) for each in (together, issues, waits)] == [4, 4, 4]
    held_by = together.sort_values("start_ns")
    assert (held_by["end_ns"].values[:-1] <= held_by["start_ns"].values[1:]).all()
    # Who waited while another program held it was let in by the program before.
    order, wait = held_by["program"].tolist(), waits.set_index("program")
    freed = issues.set_index("program")["end_ns"]
    held_up = [
        before for before, program in pairwise(order) if wait["start_ns"][program] < freed[before]
    ]
    assert run.flights.sort_values("start_ns")["program"].tolist() == held_up
    path = run.critical_path(0, whole=True)
    steps = list(zip(path["program"], path["kind"], strict=True))
    for number, (program, kind) in enumerate(steps):
        if kind == "flight":
            before = next(p for p, k in reversed(steps[:number]) if k == "work")
            assert order.index(program) == order.index(before) + 1
