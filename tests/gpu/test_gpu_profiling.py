"""Profiling kernels on a real GPU: what is recorded, when, and what it does not change."""

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import proton
import proton.language as tl
from kernels import layer_norm, softmax
from proton.trace.model import Strategy
from proton.viewer import Run
from tests.compile.test_gpu_records import calls


@proton.jit
def turns(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    with proton.scope("load"):
        x = tl.load(x_ptr + offsets)
    for i in range(n):
        with proton.scope("turn", i=i, third=i / 3):
            x = x * 0.5 + 1.0
    proton.mark("done", n)
    with proton.scope("store"):
        tl.store(out_ptr + offsets, x)


@proton.jit
def body(x_ptr, n):
    lane = tl.arange(0, 128)
    x = tl.load(x_ptr + lane)
    for _i in range(n):
        with proton.scope("body"):
            x = x * 0.5 + 1.0
    tl.store(x_ptr + lane, x)


@proton.jit
def spin(out_ptr, ns):
    """Begins at a tick of the global timer, and waits until it has gone on by `ns` or more."""
    first = tl.extra.cuda.globaltimer()
    begin = first
    while begin == first:
        begin = tl.extra.cuda.globaltimer()
    now = begin
    with proton.scope("spin"):
        while now - begin < ns:
            now = tl.extra.cuda.globaltimer()
    tl.store(out_ptr + tl.program_id(0), now - begin)


@proton.jit
def ping_pong(ball_ptr, rounds):
    """Two programs hit a ball to each other: each waits for its turn."""
    side = tl.program_id(0)
    for i in range(rounds):
        while tl.atomic_add(ball_ptr, 0) != 2 * i + side:
            pass
        with proton.scope("hit"):
            tl.atomic_add(ball_ptr, 1)


def torch() -> Any:
    return pytest.importorskip("torch")


def slices(run: Any, name: str) -> Any:
    frame = run.frame
    return frame[(frame.kind == "scope") & (frame.name == name)]


@pytest.mark.parametrize("warps", [1, 4, 8])
@pytest.mark.parametrize("options", [{}, {"placement": "program"}, {"clock_bits": 64}], ids=str)
def test_every_warp_records_its_slices(warps: int, options: dict[str, Any]) -> None:
    x = torch().rand(5 * 256, device="cuda")
    off, on = torch().empty_like(x), torch().empty_like(x)
    turns[(5,)](x, off, 7, BLOCK=256, num_warps=warps)
    with proton.profile("turns", **options) as run:
        turns[(5,)](x, on, 7, BLOCK=256, num_warps=warps)
    assert (off == on).all(), "results change with records"
    frame = run.frame
    inner = frame[frame.kind == "scope"]
    assert sorted(set(inner.warp)) == list(range(warps))
    assert len(slices(run, "load")) == len(slices(run, "store")) == 5 * warps
    turn = slices(run, "turn")
    for _, group in turn.groupby(["program", "warp"]):
        assert list(group.iteration) == list(range(7))
        assert [p["i"] for p in group.payload] == list(range(7))
        np.testing.assert_allclose([p["third"] for p in group.payload], np.arange(7) / 3, rtol=1e-6)
        assert (np.diff(group.start_ns) >= 0).all()
    assert len(run.marks) == 5 * warps
    assert {p["value"] for p in run.marks.payload} == {7}
    assert (inner.sm >= 0).all()
    assert (inner.dur_ns >= 0).all()
    launch = frame[frame.kind == "launch"].iloc[0]
    assert (inner.start_ns >= launch.start_ns - 1000).all()
    assert (inner.start_ns + inner.dur_ns <= launch.start_ns + launch.dur_ns + 1000).all()
    assert run.totals.lost == 0


@pytest.mark.parametrize("granularity", ["warp_2", "warp_group", "cta"])
@pytest.mark.parametrize("buffer", ["shared", "global"])
def test_a_unit_of_several_warps_has_one_ring(granularity: str, buffer: str) -> None:
    x, warps = torch().zeros(128, device="cuda"), {"warp_2": 2, "warp_group": 4, "cta": 8}
    with proton.profile("units", capacity=64, granularity=granularity, buffer=buffer) as run:
        body[(3,)](x, 100, num_warps=8)
    groups = slices(run, "body").groupby(["program", "unit"])
    assert len(groups) == 3 * 8 // warps[granularity]
    for _, group in groups:
        assert list(group.iteration) == list(range(36, 100))


@pytest.mark.parametrize("strategy", ["circular", "flush", "counting"])
@pytest.mark.parametrize("buffer", ["auto", "global"])
def test_samples(strategy: str, buffer: str) -> None:
    x = torch().zeros(128, device="cuda")
    sampling = {"sample_warps": (1, 2), "sample_programs": 3}
    with proton.profile("some", strategy=strategy, buffer=buffer, **sampling) as run:
        body[(8,)](x, 20)
    assert run.totals.written == 3 * 2 * 20
    assert run.totals.lost == 0
    assert run.totals.programs == 8
    if strategy != "counting":
        found = slices(run, "body").groupby(["program", "warp"]).size()
        assert dict(found) == {(p, w): 20 for p in (0, 3, 6) for w in (1, 2)}


@proton.jit
def some_turns(x_ptr, n, k):
    lane = tl.program_id(0) * 128 + tl.arange(0, 128)
    x = tl.load(x_ptr + lane)
    for i in range(n):
        with proton.scope("kept", when=i % k == 1, i=i):
            x = x * 0.5 + 1.0
        with proton.scope("all"):
            x = x * 0.25 + 1.0
        proton.mark("late", i, when=i >= n - 2)
    tl.store(x_ptr + lane, x)


@pytest.mark.parametrize("options", [{}, {"strategy": "flush", "capacity": 4}, {"clock_bits": 64}])
@pytest.mark.parametrize("every", [1, 3])
def test_conditions_and_sampled_iterations(options: dict[str, Any], every: int) -> None:
    x = torch().rand(2 * 128, device="cuda")
    off, on = x.clone(), x.clone()
    some_turns[(2,)](off, 40, 4)
    with proton.profile("some", every=every, **options) as run:
        some_turns[(2,)](on, 40, 4)
    assert (off == on).all()
    turns = [i for i in range(40) if i % every == 0]
    expected = {"kept": [i for i in turns if i % 4 == 1], "all": turns}
    for name, kept in expected.items():
        found = slices(run, name).groupby(["program", "warp"])
        assert len(found) == 8
        for _, group in found:
            assert list(group.iteration) == kept
    assert {p["i"] for p in slices(run, "kept").payload} == set(expected["kept"])
    late = [i for i in turns if i >= 38]
    assert [p["value"] for p in run.marks.payload] == late * 8
    assert run.totals.lost == 0
    assert run.totals.written == 8 * (len(expected["kept"]) + len(turns) + len(late))


@proton.jit(noinline=True)
def finish_tile(x, event):
    proton.end_event(event)
    return x * 2.0


@proton.jit
def tiles(x_ptr, n):
    """Each tile's event begins in one loop and ends in a function that another calls."""
    lane = tl.program_id(0) * 128 + tl.arange(0, 128)
    event = proton.allocate_event("tile")
    x = tl.load(x_ptr + lane)
    for _ in range(n):
        proton.start_event(event)
        x = x * 0.5 + 1.0
    for _ in range(n):
        x = finish_tile(x, event)
    tl.store(x_ptr + lane, x)


def test_events_cross_loops_and_functions(tmp_path: Path) -> None:
    x = torch().rand(3 * 128, device="cuda")
    off, on = x.clone(), x.clone()
    tiles[(3,)](off, 5)
    with proton.profile("tiles") as run:
        tiles[(3,)](on, 5)
    assert (off == on).all()
    events = run.events
    assert len(events) == 3 * 4 * 5
    assert (events.dur_ns > 0).all()
    run.save(tmp_path / "tiles.pftrace")


@proton.jit
def nested(x_ptr, n):
    """Slices that end at one reading of the clock, in and out of loops."""
    lane = tl.arange(0, 128)
    for i in range(n):
        with proton.scope("outer", i=i):
            x = tl.load(x_ptr + lane)
            with proton.scope("middle"):
                y = x * 2.0
                with proton.scope("inner"):
                    x = tl.exp(y)
        proton.mark("turn", i)
        tl.store(x_ptr + lane, x)
    proton.mark("end", n)
    proton.mark("very end", n)


@pytest.mark.parametrize("options", [{}, {"strategy": "flush", "capacity": 4}, {"clock_bits": 64}])
def test_records_that_share_a_reading_are_all_kept(options: dict[str, Any]) -> None:
    x = torch().zeros(128, device="cuda")
    with proton.profile("nested", **options) as run:
        nested[(2,)](x, 7)
    for name in ("outer", "middle", "inner"):
        for _, group in slices(run, name).groupby(["program", "warp"]):
            assert list(group.iteration) == list(range(7))
    ends = slices(run, "outer").groupby(["program", "warp", "iteration"]).agg("first")
    inner = slices(run, "inner").groupby(["program", "warp", "iteration"]).agg("first")
    assert (ends.start_ns + ends.dur_ns == inner.start_ns + inner.dur_ns).all()
    assert dict(run.marks.name.astype(str).value_counts()) == {"turn": 56, "end": 8, "very end": 8}
    assert run.totals.lost == 0


@pytest.mark.parametrize("strategy", ["circular", "flush"])
def test_functions_that_are_called_record_where_their_caller_does(strategy: str) -> None:
    x = torch().rand(256, device="cuda") * 1e-3
    off, on = torch().empty_like(x), torch().empty_like(x)
    calls[(3,)](x, off, 5, num_warps=4)
    with proton.profile("calls", strategy=strategy) as run:
        calls[(3,)](x, on, 5, num_warps=4)
    assert (off == on).all()
    for _, group in slices(run, "turn").groupby(["program", "warp"]):
        assert list(group.iteration) == [p["i"] for p in group.payload] == list(range(5))
    assert len(slices(run, "scaled")) == 3 * 4
    around = slices(run, "calls").set_index(["program", "warp"])
    for _, inner in slices(run, "turn").iterrows():
        outer = around.loc[(inner.program, inner.warp)]
        assert outer.start_ns <= inner.start_ns
        assert inner.start_ns + inner.dur_ns <= outer.start_ns + outer.dur_ns


@pytest.mark.parametrize(
    "options",
    [
        {"buffer": "shared"},
        {"buffer": "global"},
        {"clock_bits": 64},
        {"clock_bits": 64, "buffer": "global"},
        {"granularity": "warp"},
    ],
    ids=str,
)
def test_a_ring_keeps_the_newest_and_counts_the_others(options: dict[str, Any]) -> None:
    x = torch().zeros(128, device="cuda")
    with proton.profile("ring", capacity=64, **options) as run:
        body[(3,)](x, 10_000)
    kept = slices(run, "body")
    for _, group in kept.groupby(["program", "warp"]):
        assert list(group.iteration) == list(range(10_000 - 64, 10_000))
    assert len(run.losses) == 3 * 4
    assert set(run.losses.lost) == {9_936}
    assert set(run.losses.written) == {10_000}


def test_counting_stores_nothing_and_counts_all() -> None:
    x = torch().zeros(128, device="cuda")
    with proton.profile("count", strategy="counting") as run:
        body[(3,)](x, 777)
    assert run.kernels[0].strategy is Strategy.COUNTING
    assert run.totals.written == 3 * 4 * 777
    assert run.totals.slices == run.totals.lost == 0


@pytest.mark.parametrize("microseconds", [1, 10, 100, 1000])
def test_durations_are_those_of_the_global_timer(microseconds: int) -> None:
    """On every SM, after a first launch that warms the caches."""
    sms = torch().cuda.get_device_properties(0).multi_processor_count
    out = torch().zeros(5, sms, dtype=torch().int64, device="cuda")
    spin[(sms,)](out[0], 1000, num_warps=1)
    with proton.profile("spin") as run:
        for row in out:
            spin[(sms,)](row, 1000 * microseconds, num_warps=1)
    found = slices(run, "spin")
    assert len(set(found.sm)) > sms // 2
    true = out.cpu().numpy()[found.launch, found.program]
    resolution = 32  # of the global timer, which the truth is read from
    off = np.abs(found.corrected_ns.to_numpy() - true)
    assert np.median(off) <= max(0.01 * 1000 * microseconds, resolution)
    assert (off <= found.error_ns + resolution).mean() >= 0.95


def test_events_on_two_sms_are_in_their_order() -> None:
    ball = torch().zeros(1, dtype=torch().int32, device="cuda")
    with proton.profile("ping pong", capacity=256) as run:
        ping_pong[(2,)](ball, 100, num_warps=1)
    hits = slices(run, "hit").sort_values("start_ns")
    order = (2 * hits.iteration + hits.program).to_numpy()
    start, end = hits.start_ns.to_numpy(), (hits.start_ns + hits.dur_ns).to_numpy()
    error = hits.error_ns.to_numpy()
    apart = start[1:] - end[:-1] > error[1:] + error[:-1]
    assert len(order) == 200
    assert (np.diff(order)[apart] > 0).all()


def test_softmax_and_layer_norm_are_the_same_with_records() -> None:
    x = torch().randn(64, 1000, device="cuda")
    weight = torch().rand(1000, device="cuda")
    plain = softmax.softmax(x), *layer_norm.layer_norm(x, weight, weight)
    with proton.profile("both") as run:
        recorded = softmax.softmax(x), *layer_norm.layer_norm(x, weight, weight)
    for a, b in zip(plain, recorded, strict=True):
        assert (a == b).all()
    names = set(run.frame.name)
    assert {"load", "max", "exp", "sum", "store", "mean", "variance", "scale"} <= names
    for kernel in run.kernels:
        assert kernel.target.startswith("cuda:")
        assert kernel.options["spills"] == kernel.options["spills_off"] == 0
        assert min(kernel.options[name] for name in ("registers", "registers_off")) > 0


def test_launches_on_several_streams_and_threads() -> None:
    x = [torch().zeros(128, device="cuda") for _ in range(4)]
    torch().cuda.synchronize()
    are_there = threading.Barrier(4)  # one that begins behind another one's end may have its ident

    def work(number: int) -> None:
        are_there.wait()
        stream = torch().cuda.Stream()
        with torch().cuda.stream(stream):
            for _ in range(10):
                body[(2,)](x[number], 50)

    with proton.profile("streams") as run:
        threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert run.totals.launches == 40
    assert run.totals.slices == 40 * 2 * 4 * 50
    assert len(set(run.launches.thread)) == 4


def test_threads_that_are_new_to_cuda_record_and_end_sessions() -> None:
    x, runs = torch().zeros(128, device="cuda"), []
    with proton.profile("known"):  # the fast path is there, and code that is loaded
        body[(2,)](x, 50)

    def in_a_new_thread(do: Callable[[], Any]) -> None:
        thread = threading.Thread(target=lambda: runs.append(do()))
        thread.start()
        thread.join()

    proton.start("launched there")
    in_a_new_thread(lambda: body[(2,)](x, 50))
    runs.append(proton.finalize())
    proton.start("ended there")
    body[(2,)](x, 50)
    in_a_new_thread(proton.finalize)
    assert [run.totals.slices for run in runs[1:]] == [2 * 4 * 50] * 2


def test_kernels_of_the_cpu_and_of_a_gpu_in_one_run(tmp_path: Path) -> None:
    x, y = np.ones(256, np.float32), torch().ones(256, device="cuda")
    with proton.profile("both") as run, proton.scope("host"):
        turns[(1,)](x, np.empty_like(x), 3, BLOCK=256)
        turns[(1,)](y, torch().empty_like(y), 3, BLOCK=256)
    assert [kernel.target.partition(":")[0] for kernel in run.kernels] == ["cpu", "cuda"]
    run.save(tmp_path / "run.proton")
    run.save(tmp_path / "run.pftrace")
    again = Run.load(tmp_path / "run.proton")
    assert again.frame.equals(run.frame)


def test_one_kernel_under_several_modes_is_compiled_for_each() -> None:
    x = torch().zeros(128, device="cuda")
    kernels = []
    for options in ({}, {"clock_bits": 64}, {"capacity": 16}, {}):
        with proton.profile("modes", **options):
            kernels.append(body[(1,)](x, 5))
    assert len({kernel.key for kernel in kernels}) == 3
    assert kernels[0].key == kernels[3].key
    assert body[(1,)](x, 5).metadata["profile"] is None


def test_run_times_with_and_without_records() -> None:
    x = torch().zeros(128, device="cuda")
    with proton.profile("times", compare_run_time=True, placement="program") as run:
        for _ in range(10):
            body[(132,)](x, 5000)
    assert run.totals.launches == 5
    options = run.kernels[0].options
    assert options["run_ns_off"] > 10_000
    assert options["run_ns"] > options["run_ns_off"] // 2  # other processes use the GPU, too


def test_memory_is_bounded_and_what_does_not_fit_is_counted() -> None:
    x = torch().zeros(128, device="cuda")
    with proton.knobs.scope(profile_memory=3 * 4288), proton.profile("small", capacity=64) as run:
        for _ in range(5):
            body[(1,)](x, 5)
    assert run.totals.launches == 3
    assert run.totals.dropped_launches == 2


def test_flush_keeps_all_in_order() -> None:
    x = torch().zeros(128, device="cuda")
    with proton.profile("flush", strategy="flush", capacity=64) as run:
        body[(3,)](x, 10_000)
    for _, group in slices(run, "body").groupby(["program", "warp"]):
        assert list(group.iteration) == list(range(10_000))
    assert run.totals.slices == 3 * 4 * 10_000
    assert run.totals.lost == 0


@pytest.mark.parametrize(("memory", "most"), [(1 << 16, 14), (1 << 20, 14), (32 << 20, 60)])
def test_flush_keeps_all_of_launches_in_quick_succession(memory: int, most: int) -> None:
    """Of kernels and grids that take much and little, on two streams, while slabs are emptied.
    Where slabs are small they may be full, and then a segment has room for all."""
    x = torch().zeros(7 * 128, device="cuda")
    streams, expected = [torch().cuda.current_stream(), torch().cuda.Stream()], []
    limit = proton.knobs.scope(profile_flush_memory=memory)
    with limit, proton.profile("flush", strategy="flush", capacity=16) as run:
        for number in range(600):
            grid, count = 1 + number % 7, max(2, (number * 37) % most) * (number % 5 > 0)
            with torch().cuda.stream(streams[number % 2]):
                if number % 3:
                    body[(grid,)](x, count)
                else:
                    turns[(grid,)](x, x, count, BLOCK=128)
            expected.append((grid, count + (2 if number % 3 == 0 else 0)))
    assert run.totals.dropped_launches == 0
    assert run.totals.lost == 0
    scopes = run.frame[run.frame.kind == "scope"]
    found = scopes.groupby("launch").size().reindex(range(600), fill_value=0)
    assert list(found) == [4 * grid * count for grid, count in expected]


def test_flush_counts_what_its_memory_had_no_room_for() -> None:
    x = torch().zeros(128, device="cuda")
    with proton.knobs.scope(profile_flush_memory=20 * (32 + 64 * 16)):
        with proton.profile("flush", strategy="flush", capacity=64) as run:
            body[(1,)](x, 1000)
    assert run.totals.written == 4 * 1000
    # 20 chunks of 64, and what each warp's segment has at the end: 1000 mod 64 records.
    assert run.totals.kept == 20 * 64 + 4 * (1000 % 64)
    assert run.totals.lost == run.totals.written - run.totals.kept


@pytest.mark.parametrize("options", [{}, {"strategy": "flush"}], ids=str)
def test_every_replay_of_a_graph_is_kept_apart(options: dict[str, Any]) -> None:
    x, y = (torch().zeros(128, device="cuda") for _ in range(2))
    plain, profiled = torch().cuda.CUDAGraph(), torch().cuda.CUDAGraph()
    body[(2,)](x, 300)
    with torch().cuda.graph(plain):
        body[(2,)](x, 300)
        body[(3,)](x, 5)
    memory = proton.knobs.scope(profile_flush_memory=1 << 20)
    with memory, proton.profile("graph", **options) as run:
        with torch().cuda.graph(profiled):
            body[(2,)](y, 300)
            body[(3,)](y, 5)
        body[(1,)](y, 2)
        for _ in range(4):
            profiled.replay()
    for _ in range(4):
        plain.replay()
    profiled.replay()  # after the session: as before, and nobody looks at its records
    torch().cuda.synchronize()
    launches = run.launches
    programs = run.frame[run.frame.kind == "scope"].groupby("launch").program.nunique()
    assert sorted(programs) == [1, *[2] * 4, *[3] * 4]
    assert list(launches.start_ns) == sorted(launches.start_ns)
    assert list(programs[1:]) == [2, 3] * 4
    turns = run.frame[run.frame.kind == "scope"].groupby(["launch", "program", "warp"])
    kept = 300 if options else 128
    for (launch, _, _), group in turns:
        last = {1: 2, 2: 300, 3: 5}[programs[launch]]
        assert list(group.iteration) == list(range(max(0, last - kept), last))
        assert (np.diff(group.start_ns) > 0).all()
    assert run.totals.lost == (0 if options else 4 * 2 * 4 * (300 - 128))


def test_replays_beyond_the_log_are_counted() -> None:
    x, graph = torch().zeros(128, device="cuda"), torch().cuda.CUDAGraph()
    body[(1,)](x, 5)
    # A launch takes 4288 bytes: one in the buffer, two in the log.
    memory = proton.knobs.scope(profile_memory=3 * 4288 + 100)
    with memory, proton.profile("small", capacity=64) as run:
        with torch().cuda.graph(graph):
            body[(1,)](x, 5)
        for _ in range(5):
            graph.replay()
    assert run.totals.launches == 2
    assert run.totals.dropped_launches == 3


FAULT = """
import numpy as np
import torch
import proton
import proton.language as tl


@proton.jit
def copy(x_ptr, out_ptr, far):
    lane = tl.arange(0, 128)
    with proton.scope("load"):
        x = tl.load(x_ptr + lane)
    with proton.scope("store"):
        tl.store(out_ptr + lane + far, x)


x = torch.zeros(128, device="cuda")
recording = proton.profile("fault")
try:
    with recording as run:
        copy[(1,)](x, x, 0)
        torch.cuda.synchronize()
        copy[(1,)](x, x, 1 << 40)
        torch.cuda.synchronize()
except Exception as error:
    assert "illegal memory access" in str(error), error
assert "CUDA_ERROR_ILLEGAL_ADDRESS" in run.raw.machine["cuda_error"]
print(run.totals.launches, run.totals.slices, run.totals.dropped_launches)
"""


def test_a_kernel_that_faults_leaves_the_run_up_to_it(tmp_path: Path) -> None:
    script = tmp_path / "fault.py"
    script.write_text(FAULT)
    root = Path(__file__).parents[2]
    path = os.pathsep.join([str(root), *sys.path])
    done = subprocess.run(
        [sys.executable, str(script)],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PYTHONPATH": path},
        timeout=100,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["1", "8", "1"]
