"""Several sessions at once, and pauses: each run has what lay in its session's own times."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import proton
import proton.language as tl
import proton.profiler as triton_profiler
import proton.profiler.language as pl
from proton.runtime.session import open_sessions, session
from tests import processes
from tests.tables import check_rows


@proton.jit
def fill(out, BLOCK: tl.constexpr):
    with pl.scope("store", k=BLOCK):
        tl.store(out + tl.arange(0, BLOCK), 1)


@pytest.fixture(autouse=True)
def _nothing_stays_open() -> Iterator[None]:
    yield
    if open_sessions.any_open():  # what failed, failed in the test
        proton.finalize()


def launch(block: int) -> None:
    fill[(1,)](np.zeros(block, np.int32), BLOCK=block)


def blocks(run: Any) -> list[int]:
    """The payload of each launch's slice, in order of time."""
    frame = run.frame[run.frame["kind"] == "scope"].sort_values("start_ns")
    return [payload["k"] for payload in frame["payload"]]


def names(run: Any) -> list[str]:
    frame = run.frame[run.frame["kind"] == "host"].sort_values(["start_ns", "dur_ns"])
    return list(frame["name"])


def test_random_starts_pauses_and_ends_against_a_model(rng: np.random.Generator) -> None:
    """Each launch has a number; the model notes who was active."""
    for _ in range(12):
        wanted: dict[int, list[int]] = {}
        active: set[int] = set()
        number = 0
        for _ in range(40):
            open_ = sorted(wanted)
            one = int(rng.choice(open_)) if open_ else None
            match rng.integers(6):
                case 0 if len(open_) < 3:
                    new = proton.start(f"session {number}", capacity=8)
                    assert new is not None
                    wanted[new] = []
                    active.add(new)
                case 1 if one is not None:
                    proton.deactivate(one)
                    active.discard(one)
                case 2 if one is not None:
                    proton.activate(one)
                    active.add(one)
                case 3 if one is not None:
                    run = proton.finalize(one)
                    assert blocks(run) == wanted.pop(one)
                    assert len(run.kernels) == len({k.key for k in run.kernels})
                    active.discard(one)
                case _:
                    number += 1
                    block = 1 << int(rng.integers(6))
                    launch(block)
                    for s in active:
                        wanted[s].append(block)
            assert (session.current() is not None) == bool(active)
        for one in list(wanted):
            assert blocks(proton.finalize(one)) == wanted.pop(one)


def test_a_pause_leaves_kernels_without_records_and_cuts_host_scopes() -> None:
    mine = proton.start("mine")
    with proton.scope("around"):
        launch(4)
        proton.deactivate(mine)
        assert session.current() is None
        with proton.scope("unseen"):
            launch(8)
        with proton.scope("resumed"):
            proton.activate(mine)
            launch(16)
    run = proton.finalize(mine)
    assert blocks(run) == [4, 16]
    assert sorted(names(run)) == ["around", "around", "resumed"]
    assert list(run.launches["scope"]) == ["around", "around/resumed"]
    around = run.frame[run.frame["name"] == "around"].sort_values("start_ns")
    first, second = (
        around["start_ns"].to_numpy(),
        (around["start_ns"] + around["dur_ns"]).to_numpy(),
    )
    assert first[1] > second[0], "two pieces"


def test_a_session_that_ends_leaves_the_others_whole() -> None:
    outer = proton.start("outer")
    with proton.scope("whole"):
        launch(4)
        with proton.profile("inner") as inner:
            launch(8)
        launch(16)
    run = proton.finalize(outer)
    assert blocks(run) == [4, 8, 16]
    assert blocks(inner) == [8]
    assert (run.name, inner.name) == ("outer", "inner")
    assert names(run) == ["whole"], "one slice, though the recorder changed within"
    assert names(inner) == ["whole"], "the part of it that lay in the session"
    assert inner.frame["start_ns"].min() >= 0
    assert run.totals.dropped_launches == inner.totals.dropped_launches == 0


def test_sessions_with_other_options_take_turns() -> None:
    first = proton.start("first")
    launch(4)
    with pytest.raises(proton.ProfileError, match=r"'first' is active, with strategy='circular';"):
        proton.start("second", strategy="flush")
    proton.deactivate(first)
    second = proton.start("second", strategy="flush")
    launch(8)
    with pytest.raises(proton.ProfileError, match="'second' is active"):
        proton.activate(first)
    proton.deactivate(second)
    proton.activate(first)
    launch(16)
    assert blocks(proton.finalize(second)) == [8]
    assert blocks(proton.finalize(first)) == [4, 16]


def test_without_a_number_all_sessions_are_meant() -> None:
    first = proton.start("first")
    launch(4)
    proton.start("second")
    launch(8)
    proton.deactivate()
    launch(16)
    proton.activate()
    launch(32)
    run = proton.finalize()
    assert blocks(run) == [4, 8, 32]
    assert run.name == "first"
    for call in (proton.finalize, proton.activate, proton.deactivate):
        with pytest.raises(proton.ProfileError, match="no session is running"):
            call(first)


def test_threads_nest_scopes_of_their_own_in_two_sessions() -> None:
    one, two = proton.start("one"), proton.start("two")

    def work() -> None:
        with proton.scope("inside"):
            launch(2)

    threads = [threading.Thread(target=work) for _ in range(4)]
    with proton.scope("main"):
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    for number in (one, two):
        run = proton.finalize(number)
        assert sorted(names(run)) == ["inside"] * 4 + ["main"]
        assert set(run.launches["scope"]) == {"inside"}


def test_scopes_as_decorators_with_metrics_and_states() -> None:
    @proton.scope("step", {"flops": 1e9}, bytes=64)
    def step(n: int) -> int:
        """Calls itself."""
        launch(2)
        return n if n == 0 else step(n - 1) + 1

    mine = proton.start("mine")
    assert step(2) == 2
    assert (step.__name__, step.__doc__) == ("step", "Calls itself.")
    with proton.state("outer"), proton.cpu_timed_scope("timed"), proton.state("forward"):
        launch(2)
    proton.enter_state("free")
    launch(2)
    proton.exit_state("free")
    proton.enter_scope("late", metrics={"flops": 2})
    proton.exit_scope("late", metrics={"bytes": 3})
    run = proton.finalize(mine)
    paths = ["step", "step/step", "step/step/step", "timed/forward", "free"]
    assert list(run.launches["scope"]) == paths
    host = run.frame[run.frame["kind"] == "host"].sort_values("start_ns")
    payloads = dict(zip(host["scope"], host["payload"], strict=True))
    assert payloads["step/step"] == {"flops": 1e9, "bytes": 64}
    assert payloads["late"] == {"flops": 2, "bytes": 3}
    assert [p for p in payloads if "outer" in p] == ["outer"]


def test_mistakes_in_metrics() -> None:
    def fails(call: Any, message: str) -> None:
        with pytest.raises(ValueError, match=message):
            call()

    check_rows(
        fails,
        [
            (lambda: proton.scope("a", 3), "metrics are a dict of names and numbers, got 3"),
            (lambda: proton.scope("a", {"k": 1}, k=2), "k is given twice"),
            (lambda: proton.scope("a", {"k": "x"}), "payload k must be a number"),
            (lambda: proton.enter_scope("a", metrics={1: 2}), "payload's name is a str"),
        ],
    )


def test_modes_are_options_by_other_names() -> None:
    """A session by Triton's words and one by ours record together: their options are equal."""
    text = (
        "default:metric_type=cycle:buffer_type=shared:sampling_strategy=selective"
        ":sampling_options=0,1:granularity=warp_2:optimizations=clock32,time_shift"
    )
    mode = proton.mode.Default(
        sampling_strategy="selective",
        sampling_options="1,0",
        granularity="warp_2",
        buffer_type="shared",
        optimizations=["clock32"],
    )
    given = {"sample_warps": (0, 1), "granularity": "warp_2", "buffer": "shared"}
    tritons = {"backend": "instrumentation", "data": "trace", "context": "shadow", "hook": None}
    proton.start("ours", **given)
    proton.start("text", mode=text, **tritons)
    triton_profiler.start("object", mode=mode, granularity="warp_2")
    launch(4)
    assert blocks(proton.finalize()) == [4]


def test_what_is_not_served_is_an_error() -> None:
    default = proton.mode.Default

    def fails(options: dict[str, Any], message: str) -> None:
        with pytest.raises(proton.ProfileError, match=message):
            proton.start(**{"name": "x", **options})

    check_rows(
        fails,
        [
            ({"name": launch}, "call it in `with proton.profile"),
            ({"backend": "cupti"}, "backend must be None or 'instrumentation', got 'cupti'"),
            ({"context": "python"}, "Python's call stacks are not kept"),
            ({"data": "graph"}, "data must be 'tree' or 'trace'"),
            ({"hook": "triton"}, "launch_metadata is not called"),
            ({"mode": "defualt"}, "got 'defualt'; did you mean default?"),
            ({"mode": "default:granularty=cta"}, "did you mean granularity?"),
            ({"mode": "default:buffer_size=many"}, "buffer_size is a number"),
            ({"mode": default(buffer_size=4096)}, "capacity=64"),
            ({"mode": default(granularity="lane")}, "granularity must be one of warp"),
            ({"mode": default(metric_type="ns")}, "metric_type must be one of cycle, got 'ns'"),
            ({"mode": default(buffer_type="stack")}, "must be one of shared, global, got 'stack'"),
            ({"mode": default(optimizations="clock64")}, "optimizations must be one of time_shift"),
            ({"mode": "default:sampling_options=0"}, "'selective' goes with sampling_options"),
            (
                {"mode": "default:sampling_strategy=selective:sampling_options=a"},
                "numbers of warps",
            ),
            ({"mode": "mma"}, "put a proton.scope around each tl.dot"),
            ({"mode": proton.mode.PCSampling(10)}, "pc_sampling is of NVIDIA GPUs"),
            ({"mode": proton.mode.PCSampling(0)}, "interval is a number of cycles, 1 or more"),
            ({"mode": "periodic_flushing"}, "proton.monitor"),
            ({"mode": 3}, "mode is one of proton.mode"),
            ({"mode": default(granularity="cta"), "granularity": "warp_2"}, "mode says 'cta'"),
        ],
    )
    with pytest.raises(proton.ProfileError, match="got 'gluon'; there is no other"):
        pl.enable_semantic("gluon")
    pl.enable_semantic("triton")


def test_switched_off_sessions_have_no_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROTON_PROFILE_DISABLE", "1")
    assert proton.start("off") is None
    proton.deactivate()
    proton.activate(None)
    assert len(proton.finalize(None).frame) == 0


def test_a_program_has_what_its_paused_sessions_do_not(tmp_path: Path) -> None:
    text = (
        "import numpy as np, proton, proton.language as tl\n"
        "@proton.jit\n"
        "def fill(out, BLOCK: tl.constexpr):\n"
        "    with proton.scope('store', k=BLOCK):\n"
        "        tl.store(out + tl.arange(0, BLOCK), 1)\n"
        "launch = lambda n: fill[(1,)](np.zeros(64, np.int32), BLOCK=n)\n"
        "own = proton.start('own', every=2)\n"
        "launch(4); proton.deactivate(own); launch(8); proton.activate(own); launch(16)\n"
        "assert len(proton.finalize(own).launches) == 2\n"
        "launch(32)\n"
    )
    (tmp_path / "own.py").write_text(text)
    done = processes.python("-m", "proton", "-q", "own.py", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert blocks(proton.Run.load(tmp_path / "own.proton")) == [4, 8, 16, 32]
