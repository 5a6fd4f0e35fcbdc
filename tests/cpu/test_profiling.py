"""Scopes of CPU kernels: records, strategies, placements, losses, and the traces they become."""

import html
import re
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import proton
import proton.language as tl
from proton.runtime.cpu.recorder import HostSlab
from proton.trace.model import RECORDER_MEAN_NS, RECORDER_NS
from proton.viewer import Run
from tests.perfetto_equality import assert_trace_equals_tables


@proton.jit
def annotated_add(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    with proton.scope("load", n=n):
        x = tl.load(x_ptr + offs, mask=mask)
        y = tl.load(y_ptr + offs, mask=mask)
    with proton.scope("store"):
        tl.store(out_ptr + offs, x + y, mask=mask)


@proton.jit(do_not_specialize=("n",))  # a loop of one iteration would be no loop
def ring(out_ptr, n):
    for i in range(n):
        with proton.scope("step", i=i, half=i * 0.5):
            tl.store(out_ptr + i, i)


@proton.jit
def nested(x_ptr, out_ptr, rows, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    with proton.scope("outer"):
        for row in range(rows):
            with proton.scope("row"):
                with proton.scope("load"):
                    x = tl.load(x_ptr + row * BLOCK + offs)
                with proton.scope("sum"):
                    total += tl.sum(x, axis=0) * x
            proton.mark("done", row)
        with proton.scope("nothing"):
            index = rows * 2
    with proton.scope("store"):
        tl.store(out_ptr + offs, total + index)


@proton.jit
def softmax(out_ptr, x_ptr, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offs = tl.arange(0, BLOCK)
    mask = offs < cols
    with proton.scope("load"):
        x = tl.load(x_ptr + row * cols + offs, mask=mask, other=-float("inf"))
    with proton.scope("exp"):
        e = tl.exp(x - tl.max(x, axis=0))
    with proton.scope("normalize"):
        out = e / tl.sum(e, axis=0)
    with proton.scope("store"):
        tl.store(out_ptr + row * cols + offs, out, mask=mask)


def run_ring(n: int, programs: int = 1, **options: object) -> Run:
    out = np.zeros(max(n, 1), np.int32)
    with proton.profile("ring", **options) as run:
        ring[(programs,)](out, n)
    assert (out[:n] == np.arange(n)).all()
    return run


def steps(run: Run, program: int = 0):
    frame = run.frame
    return frame[(frame["kind"] == "scope") & (frame["program"] == program)]


@pytest.mark.parametrize("n", [0, 1, 2, 63, 64, 65, 128, 10_000])
def test_a_ring_keeps_the_newest_and_counts_the_rest(n: int) -> None:
    run = run_ring(n, programs=3, capacity=64)
    for program in range(3):
        kept = steps(run, program)
        first = max(0, n - 64)
        assert list(kept["iteration"]) == list(range(first, n))
        assert [p["i"] for p in kept["payload"]] == list(range(first, n))
        assert [p["half"] for p in kept["payload"]] == [i * 0.5 for i in range(first, n)]
        assert kept["start_ns"].is_monotonic_increasing
    assert run.totals.lost == 3 * max(0, n - 64)
    if n > 64:
        assert list(run.losses["lost"]) == [n - 64] * 3


@pytest.mark.parametrize("n", [0, 1, 15, 16, 17, 10_000])
def test_flush_loses_nothing(n: int) -> None:
    run = run_ring(n, programs=2, strategy="flush", capacity=16)
    for program in range(2):
        assert list(steps(run, program)["iteration"]) == list(range(n))
    assert run.totals.lost == 0


def test_counting_stores_nothing_and_knows_how_much_there_was() -> None:
    run = run_ring(1234, programs=2, strategy="counting")
    assert run.totals.slices == 0
    assert list(run.launches["written"]) == [2 * 1234]


def test_a_capacity_that_is_no_power_of_two_wraps_too() -> None:
    run = run_ring(1000, capacity=7)
    assert list(steps(run)["iteration"]) == list(range(993, 1000))


def test_run_times_with_records_and_without(rng: np.random.Generator) -> None:
    """Each second launch of a kernel runs without records, and is in no table."""
    x, out, steps = rng.random(100).astype(np.float32), *np.zeros((2, 100), np.float32)
    with proton.profile("times", compare_run_time=True) as run:
        for _ in range(7):
            annotated_add[(1,)](x, x, out, 100, BLOCK=128)
        nested[(1,)](x, steps, 2, BLOCK=32)
    np.testing.assert_array_equal(out, x + x)
    assert run.launches["kernel"].tolist() == ["annotated_add"] * 4 + ["nested"]
    assert run.totals.dropped_launches == 0
    times = {entry["kernel"]: (entry["recorded"], entry["plain"]) for entry in run.recording_cost()}
    assert min(side["run_ns"] for side in times["annotated_add"]) > 0
    assert times["nested"] == ({}, {})  # one launch, which may have compiled
    assert any("run_ns" in fact for fact in run.summary().facts.values())


def test_a_run_says_what_the_recorder_took_of_the_host(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is a part of the pauses between launches, which are the host's but for that."""
    x, out = rng.random(100).astype(np.float32), np.zeros(100, np.float32)
    take, slow_ns = HostSlab.take, 2_000_000

    def slow(slab: HostSlab, size: int) -> np.ndarray:
        end = time.perf_counter_ns() + slow_ns
        while time.perf_counter_ns() < end:
            pass
        return take(slab, size)

    monkeypatch.setattr(HostSlab, "take", slow)
    with proton.profile("times") as run:
        for _ in range(9):
            annotated_add[(1,)](x, x, out, 100, BLOCK=128)
    (kernel,) = run.kernels
    ends = run.launches["start_ns"] + run.launches["dur_ns"]
    pauses = run.launches["start_ns"].to_numpy()[1:] - ends.to_numpy()[:-1]
    assert slow_ns <= kernel.options[RECORDER_NS] <= np.max(pauses)
    assert slow_ns <= kernel.options[RECORDER_MEAN_NS] <= np.mean(pauses)


def test_of_each_kernel_one_launch_of_so_many_is_recorded(rng: np.random.Generator) -> None:
    x, out, steps = rng.random(100).astype(np.float32), *np.zeros((2, 100), np.float32)
    with proton.profile("some", every_launch=4) as run:
        for number in range(10):
            annotated_add[(1,)](x, x, out, 100, BLOCK=128)
            if number % 2 == 0:
                nested[(1,)](x, steps, 2, BLOCK=32)
    np.testing.assert_array_equal(out, x + x)
    assert run.launches["kernel"].tolist() == ["annotated_add", "nested", "annotated_add"]
    frame = run.frame[run.frame["kernel"] == "annotated_add"]
    assert frame["scope"].astype(str).str.endswith("store").sum() == 2
    assert {kernel.options["every_launch"] for kernel in run.kernels} == {4}
    with pytest.raises(proton.ProfileError, match="every_launch must be an integer"):
        proton.start("none", every_launch=0)


def test_fused_work_is_one_slice_with_both_names(rng: np.random.Generator) -> None:
    n = 5000
    x, y = rng.standard_normal((2, n), np.float32)
    out = np.empty_like(x)
    with proton.profile("add") as run:
        annotated_add[(5,)](x, y, out, n, BLOCK=1024)
    assert (out == x + y).all()
    rows = steps(run, 2)
    assert list(rows["name"]) == ["load + store"]
    assert list(rows["fused"]) == [True]
    assert list(rows["payload"]) == [{"n": n}]
    assert run.totals.programs == 5


def test_program_placement_keeps_the_scopes_of_the_source(rng: np.random.Generator) -> None:
    n = 5000
    x, y = rng.standard_normal((2, n), np.float32)
    out = np.empty_like(x)
    with proton.profile("add", placement="program") as run:
        annotated_add[(5,)](x, y, out, n, BLOCK=1024)
    assert (out == x + y).all()
    rows = steps(run, 4).sort_values("start_ns")
    assert list(rows["name"]) == ["load", "store"]
    assert rows["start_ns"].iloc[1] >= rows["start_ns"].iloc[0] + rows["dur_ns"].iloc[0]


def test_nesting_iterations_marks_and_optimized_out_scopes(rng: np.random.Generator) -> None:
    rows, block = 6, 256
    x = rng.standard_normal((rows, block), np.float32)
    out = np.empty(block, np.float32)
    with proton.profile("nested") as run:
        nested[(1,)](x, out, rows, BLOCK=block)
    np.testing.assert_allclose(
        out, (x.sum(1, keepdims=True) * x).sum(0) + 2 * rows, rtol=1e-4, atol=1e-3
    )
    frame = steps(run)
    outer = frame[frame["scope"] == "outer"].iloc[0]
    inner = frame[frame["scope"] == "outer/row"]
    assert list(inner["iteration"]) == list(range(rows))
    assert (inner["start_ns"] >= outer["start_ns"]).all()
    assert (inner["start_ns"] + inner["dur_ns"] <= outer["start_ns"] + outer["dur_ns"]).all()
    assert all(path.startswith(("outer", "store")) for path in frame["scope"].astype(str))
    marks = run.marks
    assert [p["value"] for p in marks["payload"]] == list(range(rows))
    assert set(marks["name"]) == {"done"}
    assert list(run.optimized_out["scope"]) == ["outer/nothing"]


def test_runs_and_kernels_show_themselves_in_notebooks(rng: np.random.Generator) -> None:
    x, out = rng.standard_normal((6, 256), np.float32), np.empty(256, np.float32)
    with proton.profile("<nested>") as run:
        assert isinstance(run, proton.Run)
        assert run._repr_html_() == "&lt;profile in progress&gt;"
        kernel = nested[(1,)](x, out, 6, BLOCK=256)
    assert "outer/row" in run._repr_html_()
    assert "<nested>" not in run._repr_html_()
    shown = kernel._repr_html_()
    for level in kernel.asm:
        assert f"<summary>{level}</summary>" in shown
    listed = re.findall("<pre>(.*?)</pre>", kernel.asm._repr_html_(), re.DOTALL)
    plain = re.sub("</?span[^>]*>", "", listed[list(kernel.asm).index("ttir")])
    assert html.unescape(plain) == kernel.asm["ttir"]
    alone = kernel.asm["ttir"]._repr_html_()
    assert alone.startswith("<details open><summary>ttir</summary>")
    assert re.search('<span style="color:#[0-9a-f]{6}">%0</span>', alone)
    assert "<i32>" not in shown  # types of the IR are text


OPTIONS = [
    {},
    {"capacity": 3},
    {"strategy": "flush", "capacity": 2},
    {"strategy": "counting"},
    {"placement": "program"},
]


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("cols", [1, 100, 128])
def test_results_are_bit_identical_with_and_without_records(
    rng: np.random.Generator, options: dict[str, object], cols: int
) -> None:
    x = rng.standard_normal((9, cols), np.float32) * 10
    off, on = np.full_like(x, np.nan), np.full_like(x, np.nan)
    softmax[(9,)](off, x, cols, BLOCK=128)
    with proton.profile("softmax", **options):
        softmax[(9,)](on, x, cols, BLOCK=128)
    assert off.tobytes() == on.tobytes()


SOURCE = """
import proton
import proton.language as tl

@proton.jit
def kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
{body}
"""
ANNOTATED = """
    with proton.scope("load", n=n * 3):
        x = tl.load(x_ptr + offs, mask=offs < n)
        with proton.scope("inner"):
            y = tl.exp(x)
    proton.mark("m", n)
    proton.enter_scope("store")
    tl.store(out_ptr + offs, y, mask=offs < n)
    proton.exit_scope("store")
"""
PLAIN = """
    x = tl.load(x_ptr + offs, mask=offs < n)
    y = tl.exp(x)
    tl.store(out_ptr + offs, y, mask=offs < n)
"""


def compiled(folder: Path, name: str, body: str, **options: object) -> bytes:
    import importlib.util

    folder.mkdir(exist_ok=True)
    path = folder / f"{name}.py"
    path.write_text(SOURCE.format(body=body))
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    x, out = np.ones(100, np.float32), np.zeros(100, np.float32)
    if not options:
        return module.kernel[(1,)](x, out, 100, BLOCK=128).asm["obj"]
    with proton.profile("p", **options):
        return module.kernel[(1,)](x, out, 100, BLOCK=128).asm["obj"]


def test_without_profiling_the_object_code_is_that_of_the_kernel_without_annotations(
    tmp_path: Path,
) -> None:
    annotated = compiled(tmp_path, "annotated", ANNOTATED)
    plain = compiled(tmp_path, "plain", PLAIN)
    assert annotated == plain
    instrumented = compiled(tmp_path, "instrumented", ANNOTATED, strategy="circular")
    assert instrumented != plain
    # A kernel without scopes is not touched by profiling either.
    assert compiled(tmp_path, "unannotated", PLAIN, strategy="circular") == plain


def test_one_kernel_under_several_modes_keeps_them_apart() -> None:
    runs = [run_ring(100, **options) for options in ({"capacity": 8}, {"capacity": 16}, {})]
    assert [run.totals.kept for run in runs] == [8, 16, 100]
    assert len({run.kernels[0].key for run in runs}) == 3


def test_several_kernels_and_launches_in_one_run(rng: np.random.Generator, tmp_path: Path) -> None:
    x = rng.standard_normal((4, 128), np.float32)
    out = np.empty_like(x)
    with proton.profile("several") as run:
        for _ in range(3):
            with proton.scope("softmax", size=128):
                softmax[(4,)](out, x, 128, BLOCK=128)
        annotated_add[(1,)](x, x, out, 512, BLOCK=512)
        proton.mark("between")
        ring[(2,)](np.zeros(5, np.int32), 5)
    assert [kernel.name for kernel in run.kernels] == ["softmax", "annotated_add", "ring"]
    launches = run.launches
    assert list(launches["kernel"]) == ["softmax"] * 3 + ["annotated_add", "ring"]
    frame = run.frame
    host = frame[frame["kind"] == "host"]
    assert list(host["name"]) == ["softmax"] * 3 + ["between"]  # a host mark has no length
    assert list(host["payload"])[:3] == [{"size": 128}] * 3
    assert frame[frame["kind"] == "launch"]["scope"].iloc[0] == "softmax/softmax"
    # Every slice of a kernel lies inside its launch: one clock for host and kernels, up to
    # the stated error.
    scopes = frame[frame["kind"] == "scope"]
    for number, launch in launches.iterrows():
        mine = scopes[scopes["launch"] == number]
        error = mine["error_ns"].max() + 1
        assert (mine["start_ns"] >= launch["start_ns"] - error).all()
        assert (
            mine["start_ns"] + mine["dur_ns"] <= launch["start_ns"] + launch["dur_ns"] + error
        ).all()
    assert_trace_equals_tables(run, tmp_path / "several.pftrace")


@pytest.mark.parametrize("options", OPTIONS)
def test_real_traces_equal_their_tables_in_the_trace_processor(
    rng: np.random.Generator, tmp_path: Path, options: dict[str, object]
) -> None:
    x = rng.standard_normal((37, 200), np.float32)
    out = np.empty_like(x)
    with proton.profile("traces", **options) as run:
        with proton.scope("all"):
            softmax[(37,)](out, x, 200, BLOCK=256)
            nested[(1,)](x, out, 6, BLOCK=256)
            ring[(3, 2)](np.zeros(40, np.int32), 40)
    assert_trace_equals_tables(run, tmp_path / "run.pftrace")
    loaded = Run.load(run.save(tmp_path / "run.proton"))
    assert loaded.frame.equals(run.frame)


def test_programs_of_several_threads_are_recorded_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROTON_NUM_THREADS", "3")
    run = run_ring(400, programs=64, capacity=512)
    again = run_ring(400, programs=64, capacity=512)  # the work is known by now: all threads run
    for one in (run, again):
        assert one.totals.kept == 64 * 400
        assert one.totals.lost == 0
        for program in (0, 17, 63):
            assert list(steps(one, program)["iteration"]) == list(range(400))


def test_threads_nest_their_own_host_scopes() -> None:
    def work(name: str) -> None:
        with proton.scope(name), proton.scope("inside"):
            ring[(1,)](np.zeros(3, np.int32), 3)

    with proton.profile("threads") as run:
        threads = [threading.Thread(target=work, args=(f"t{i}",)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    frame = run.frame
    assert sorted(frame[frame["kind"] == "host"]["scope"].astype(str)) == sorted(
        [f"t{i}" for i in range(4)] + [f"t{i}/inside" for i in range(4)]
    )
    assert len(run.launches) == 4


def test_launches_beyond_the_memory_limit_run_and_are_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PROTON_PROFILE_MEMORY", str(40_000))
    out = np.zeros(10, np.int32)
    with proton.profile("small", capacity=64) as run:
        for _ in range(10):
            out[:] = 0
            ring[(4,)](out, 10)
            assert (out == np.arange(10)).all()
    assert 0 < len(run.launches) < 10
    assert run.raw.dropped_launches == 10 - len(run.launches)
    assert run.totals.dropped_launches == run.raw.dropped_launches


def test_records_without_room_are_not_allocated() -> None:
    """Those of one launch are 400 TiB: more than a process can ask for."""
    out = np.zeros(4, np.int32)
    with proton.profile("large", capacity=1 << 24) as run:
        for _ in range(2):
            ring[(1 << 20,)](out, 4)
    assert (out == np.arange(4)).all()
    assert run.raw.dropped_launches == 2
    assert not len(run.launches)


def test_a_slice_is_as_long_as_the_work_in_it_to_the_clocks_error() -> None:
    """The host sees the launch from outside: its slices cannot be longer than that."""
    run = run_ring(5000, capacity=8192)
    frame = run.frame
    launch = frame[frame["kind"] == "launch"].iloc[0]
    inside = steps(run)
    assert len(inside) == 5000
    assert inside["dur_ns"].sum() <= launch["dur_ns"]
    assert (inside["corrected_ns"] <= inside["dur_ns"]).all()
    assert run.raw.clock.slice_cost_ns > 0


def test_mistakes_are_told() -> None:
    with pytest.raises(proton.ProfileError, match="strategy must be one of"):
        proton.start("x", strategy="linear")
    with pytest.raises(proton.ProfileError, match="capacity must lie in"):
        proton.start("x", capacity=-1)
    with pytest.raises(proton.ProfileError, match="placement must be one of"):
        proton.start("x", placement="anywhere")
    with pytest.raises(proton.ProfileError, match="no session is running"):
        proton.finalize()
    with proton.profile("one") as run:
        with pytest.raises(proton.ProfileError, match="'one' is active, with every=1; sessions"):
            proton.start("two", every=2)
        with pytest.raises(proton.ProfileError, match=r"session 77 is not open.*\('one'\)"):
            proton.deactivate(77)
        with pytest.raises(proton.ProfileError, match="complete when the block ends"):
            run.frame
        with pytest.raises(proton.ProfileError, match="innermost open host scope is none"):
            proton.exit_scope("never")
    with pytest.raises(ValueError, match="a scope's name"):
        proton.scope("a/b")


def test_a_run_is_complete_even_if_the_block_raises() -> None:
    def work() -> None:
        proton.enter_scope("open")
        ring[(1,)](np.zeros(4, np.int32), 4)
        raise ZeroDivisionError

    runs = []

    def profiled() -> None:
        with proton.profile("raises") as run:
            runs.append(run)
            work()

    with pytest.raises(ZeroDivisionError):
        profiled()
    (run,) = runs
    assert run.totals.kept == 4
    assert list(run.frame[run.frame["kind"] == "host"]["name"]) == ["open"]
    with proton.profile("next") as following:
        pass
    assert len(following.frame) == 0


def test_profiling_can_be_switched_off_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROTON_PROFILE_DISABLE", "1")
    proton.start("off")
    ring[(1,)](np.zeros(4, np.int32), 4)
    assert len(proton.finalize().frame) == 0
    with proton.profile("off") as run:
        ring[(1,)](np.zeros(4, np.int32), 4)
    assert len(run.frame) == 0


@proton.jit
def returns_early(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    if pid >= n:
        return
    offs = pid * BLOCK + tl.arange(0, BLOCK)
    with proton.scope("load"):
        x = tl.load(x_ptr + offs)
    if tl.sum(x) < 0.0:
        proton.mark("negative")
        return
    with proton.scope("store"):
        tl.store(out_ptr + offs, tl.exp(x))


@pytest.mark.parametrize("placement", ["schedule", "program"])
def test_early_returns(rng: np.random.Generator, placement: str, tmp_path: Path) -> None:
    x = rng.uniform(0.0, 1.0, (6, 64)).astype(np.float32)
    x[1] = -x[1]
    out = np.zeros_like(x)
    with proton.profile("early", placement=placement) as run:
        returns_early[(6,)](x, out, 5, BLOCK=64)
    np.testing.assert_allclose(out[[0, 2, 3, 4]], np.exp(x[[0, 2, 3, 4]]), rtol=1e-5)
    assert not out[[1, 5]].any()
    scopes = run.frame[run.frame.kind == "scope"]
    # Where the schedule fuses them, a slice has both names.
    assert set(scopes.program[scopes.name == "load"]) == {0, 1, 2, 3, 4}
    stores = scopes[scopes.name.astype(str).str.contains("store")]
    assert sorted(stores.program) == [0, 2, 3, 4]
    assert list(run.marks.program) == [1]
    assert len(run.optimized_out) == 0
    assert_trace_equals_tables(run, tmp_path / "early.pftrace")


@proton.jit(do_not_specialize=["first", "last"])
def unrolled(x_ptr, first, last, STEP: tl.constexpr, FACTOR: tl.constexpr):
    lane = tl.arange(0, 16)
    x = tl.load(x_ptr + lane)
    for i in tl.range(first, last, STEP, loop_unroll_factor=FACTOR):
        with proton.scope("turn", i=i):
            x = x * 0.5 + 1.0
        tl.store(x_ptr + lane, x)  # or else the turns of a group become one pass
        proton.mark("end", i)


@pytest.mark.parametrize("placement", ["schedule", "program"])
@pytest.mark.parametrize("factor", [1, 2, 3, 8])
def test_iterations_of_unrolled_loops(
    rng: np.random.Generator, placement: str, factor: int
) -> None:
    """Whole groups, what is left over, and loops that are shorter than a group."""
    step = 1 + (factor + (placement == "program")) % 3  # a constant
    for trips in (0, 1, factor, 3 * factor, int(rng.integers(2, 40))):
        first = int(rng.integers(-5, 6))
        last = first + trips * step - int(rng.integers(0, step)) * (trips > 0)
        x = np.zeros(16, np.float32)
        with proton.profile("unrolled", placement=placement) as run:
            unrolled[(1,)](x, first, last, step, factor)
        values = list(range(first, last, step))
        assert len(values) == trips
        scopes = run.frame[run.frame.kind == "scope"]
        assert list(scopes.iteration) == list(range(trips))
        assert [p["i"] for p in scopes.payload] == values
        assert [p["value"] for p in run.marks.payload] == values
        assert list(run.marks.iteration) == list(range(trips))


def test_every_counts_iterations_of_unrolled_loops() -> None:
    with proton.profile("unrolled", every=3) as run:
        unrolled[(1,)](np.zeros(16, np.float32), 0, 10, 1, 4)
    scopes = run.frame[run.frame.kind == "scope"]
    assert list(scopes.iteration) == [0, 3, 6, 9]
