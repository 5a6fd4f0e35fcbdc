"""`triton.profiler`: phases of sessions that go on, their files, and what metrics scopes have."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import proton
import proton.language as tl
from proton.compat.triton import profiler, profiler_viewer
from proton.compat.triton.profiler_scopes import COMPUTE_METADATA_SCOPE_NAME
from proton.runtime.session import open_sessions
from proton.viewer import Run
from proton.viewer.tables.metrics import of_hatchet
from proton.viewer.tables.msgpack import unpacked

data = profiler.data


@proton.jit
def fill(out, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    with proton.scope("store"):
        tl.store(out + at, at.to(tl.float32), mask=at < n)


def launch() -> None:
    fill[(1,)](np.empty(50, np.float32), 50, BLOCK=64)


class Tensor:
    """What torch's have."""

    def __init__(self, *values: float) -> None:
        self.values = values

    def data_ptr(self) -> int:
        return 8

    def numel(self) -> int:
        return len(self.values)

    def item(self) -> float:
        return self.values[0]

    def flatten(self) -> "Tensor":
        return self

    def tolist(self) -> list[float]:
        return list(self.values)


@pytest.fixture(autouse=True)
def _none_open() -> Iterator[None]:
    yield
    profiler.finalize()


def metrics(root: dict[str, Any], path: str = "") -> dict[str, Any]:
    """The metrics of frames, but for the time of kernels, by their paths."""
    found = {path: {k: v for k, v in root["metrics"].items() if k != "time (ns)"}}
    for child in root["children"]:
        found |= metrics(child, f"{path}/{child['frame']['name']}".lstrip("/"))
    return found


def step(name: str, **more: float) -> None:
    with profiler.scope(name, {"loss": 2.0, **more}):
        launch()


def tree(name: str, loss: float = 2.0, count: int = 1) -> dict[str, Any]:
    return {"": {"count": 0}, name: {"loss": loss}, f"{name}/fill": {"count": count}}


def test_a_session_that_goes_on_says_what_it_has(tmp_path: Path) -> None:
    session = profiler.start(str(tmp_path / "run"))
    step("a")
    profiler.deactivate(session, flushing=True)
    first = data.get(session)
    assert metrics(first[0]) == tree("a")
    assert first[0]["children"][0]["children"][0]["metrics"]["time (ns)"] > 0
    assert unpacked(data.get_msgpack(session)) == first
    frame, names, _, _ = profiler_viewer.get_raw_metrics(first)
    assert "loss" in names
    assert list(frame.dataframe["name"]) == ["ROOT", "a", "fill"]
    step("unseen")
    profiler.activate(session)
    step("a")
    assert metrics(data.get(session)[0]) == tree("a", 4.0, 2)
    with profiler.scope("a", {"loss": 1.0}):
        assert metrics(data.get(session)[0])["a"] == {"loss": 5.0}, "an open scope"
    run = profiler.finalize(session)
    assert len(run.launches) == 2
    assert len(run.frame[run.frame["name"] == "store"]) == 2, "records of all parts"
    assert metrics(json.loads((tmp_path / "run.hatchet").read_text())[0]) == tree("a", 5.0, 2)
    assert data.get(None) is data.get_msgpack(None) is data.advance_phase(None) is None
    assert not data.is_phase_complete(None)
    with pytest.raises(proton.ProtonError, match=rf"session {session} is not open"):
        data.get(session)


def test_phases_of_a_session(tmp_path: Path) -> None:
    session = profiler.start(str(tmp_path / "run"))
    step("a")
    assert not data.is_phase_complete(session, 0)
    with profiler.scope("across", {"loss": 8.0}):
        assert data.advance_phase(session) == 1
    step("b")
    assert data.is_phase_complete(session, 0)
    assert not data.is_phase_complete(session, 1)
    zero = tree("a") | {"across": {"loss": 8.0}}
    one = tree("b")
    assert metrics(data.get(session, 0)[0]) == zero
    assert metrics(data.get(session, 1)[0]) == one
    assert data.advance_phase(session) == 2
    assert metrics(data.get(session, 2)[0]) == {"": {"count": 0}}
    with pytest.raises(RuntimeError, match=r"phase 3 of .* has no data: there are 0, 1, 2"):
        data.get(session, 3)
    assert len(profiler.finalize(session).launches) == 2
    for phase, wanted in enumerate([zero, one]):
        part = json.loads((tmp_path / f"run.part_{phase}.hatchet").read_text())
        assert metrics(part[0]) == wanted
    assert not (tmp_path / "run.hatchet").exists()


def test_what_is_cleared_is_gone_for_one_session_alone(tmp_path: Path) -> None:
    session = profiler.start(str(tmp_path / "run"))
    other = profiler.start(str(tmp_path / "other"))
    step("a")
    data.clear(session)  # of the phase that goes on
    assert metrics(data.get(session)[0]) == {"": {"count": 0}}
    step("b")
    assert metrics(data.get(session)[0]) == tree("b")
    for name in "cd":
        data.advance_phase(session)
        step(name)
    data.clear(session, 1)
    with pytest.raises(RuntimeError, match=r"phase 1 of .* has no data: there are 0, 2"):
        data.get(session, 1)
    assert metrics(data.get(session, 0)[0]) == tree("b")
    data.clear(session, 2, clear_up_to_phase=True)
    assert metrics(data.get(session, 2)[0]) == {"": {"count": 0}}
    step("e")
    run = profiler.finalize(session)
    assert [slice_.name for slice_ in run.raw.host if slice_.kind == "host"] == ["e"]
    assert len(run.launches) == 1
    assert [file.name for file in tmp_path.iterdir()] == ["run.part_2.hatchet"]
    assert len(profiler.finalize(other).launches) == 5
    assert set(metrics(json.loads((tmp_path / "other.hatchet").read_text())[0])) > set("abcde")


@pytest.mark.parametrize("format", ["hatchet", "hatchet_msgpack", "chrome_trace"])
def test_each_phase_is_written_when_it_is_over(tmp_path: Path, format: str) -> None:
    mode = f"periodic_flushing:format={format}"
    session = profiler.start(str(tmp_path / "run"), mode=mode)
    for phase in range(3):
        if phase:
            assert data.advance_phase(session) == phase
            assert (tmp_path / f"run.part_{phase - 1}.{format}").exists()
        assert not (tmp_path / f"run.part_{phase}.{format}").exists()
        step("abc"[phase])
    held = open_sessions._sessions
    assert [len(part.launches) for part in held.open[session].parts] == [0]
    assert {slice_.name for slice_ in held.host.slices} <= {"c", "compile fill"}
    profiler.finalize(session)
    files = sorted(tmp_path.iterdir())
    assert [file.name for file in files] == [f"run.part_{n}.{format}" for n in range(3)]
    for name, file in zip("abc", files, strict=True):
        if format == "chrome_trace":
            assert list(Run.load(file).launches["scope"]) == [name]
        else:
            kernel = [node for node in of_hatchet(file).all() if node.name == "fill"]
            assert [node.metrics["count"] for node in kernel] == [1]


def test_a_format_that_is_not_there(tmp_path: Path) -> None:
    for wrong in ("periodic_flushing:format=xml", profiler.mode.PeriodicFlushing("xml")):
        with pytest.raises(proton.ProtonError, match="must be hatchet, hatchet_msgpack or chrome_"):
            profiler.start(str(tmp_path / "run"), mode=wrong)


def test_metrics_of_scopes(tmp_path: Path) -> None:
    """Rows, properties, what is of a scope alone, states, the time of the host."""
    profiler.start(str(tmp_path / "run"))
    for factor in (1, 2):
        row = {"bar": [1, 2, 3], "baz": (1.5, 2.5), "t": Tensor(7.0), "u": Tensor(1.0, factor)}
        with profiler.scope("rows", row):
            pass
        profiler.enter_scope("kinds", metrics={"a (pty)": factor, "b (exc)": 4, "c": 5})
        profiler.exit_scope(metrics={"d (pty)": 6})
    with profiler.cpu_timed_scope("outer"), profiler.cpu_timed_scope("inner", {"n": 1}):
        launch()
    profiler.enter_scope("x")
    profiler.enter_state("state")
    profiler.enter_scope("y", metrics={"a": 1.0})
    profiler.exit_scope(metrics={"b": 1.0})
    with profiler.state("inside"), profiler.scope("z", {"a": 2}):
        pass
    profiler.exit_state()
    profiler.exit_scope(metrics={"c": 1.0})
    with pytest.raises(ValueError, match="cpu_time"):
        profiler.cpu_timed_scope("t", {"cpu_time": 1})
    with pytest.raises(ValueError, match="must be a number"), profiler.scope("t", {"a (pty)": "1"}):
        pass
    run = profiler.finalize()
    found = metrics(json.loads((tmp_path / "run.hatchet").read_text())[0])
    times = [found[path].pop("cpu_time (ns)") for path in ("outer", "outer/inner")]
    assert times[0] > times[1] > 0
    assert found == {
        "": {"count": 0},
        "rows": {"bar": [2, 4, 6], "baz": [3, 5], "t": 14, "u": [2, 3]},
        "kinds": {"a": 2, "b": 8, "c": 10, "d": 6},
        "outer": {},
        "outer/inner": {"n": 1},
        "outer/inner/fill": {"count": 1},
        "x": {"c": 1},
        "x/y": {},
        "x/y/state": {"a": 1, "b": 1},
        "x/z": {},
        "x/z/inside": {"a": 2},
    }
    assert run.frame[run.frame["name"] == "rows"]["payload"].iloc[1]["u[1]"] == 2
    frame, names = profiler_viewer.parse(
        ["cpu_time/ns", "avg_cpu_time/us"], str(tmp_path / "run.hatchet")
    )
    row = frame.dataframe.set_index("name").loc["ROOT"]
    assert row[names[0]] == sum(times)
    assert row[names[1]] == pytest.approx(sum(times) / 1000)


def test_the_depth_of_the_context(tmp_path: Path) -> None:
    depth = profiler.context.depth
    assert depth() is None
    session = profiler.start(str(tmp_path / "run"))
    assert depth(session) == 0
    profiler.enter_scope("a")
    with profiler.scope("b"), profiler.state("s"), profiler.scope("off", when=False):
        assert depth(session) == 2
    assert depth(session) == 1
    profiler.exit_scope()
    assert depth(session) == 0


def test_launches_that_compute_metrics_are_in_a_state_of_their_own(tmp_path: Path) -> None:
    def described(grid: Any, kernel: Any, args: dict[str, Any]) -> dict[str, Any]:
        launch()
        return {"name": "one", "tokens": [1, 2], "other": "text"}

    @proton.jit(launch_metadata=described)
    def ones(out, BLOCK: tl.constexpr):
        tl.store(out + tl.arange(0, BLOCK), 1.0)

    profiler.start(str(tmp_path / "run"), hook="triton")
    with profiler.scope("a"):
        ones[(1,)](np.empty(64, np.float32), BLOCK=64)
    with profiler.metadata_state():
        launch()
    profiler.finalize()
    found = metrics(json.loads((tmp_path / "run.hatchet").read_text())[0])
    name = COMPUTE_METADATA_SCOPE_NAME
    assert found[f"a/{name}:ones/fill"] == found[f"fill/{name}/fill"] == {"count": 1}
    assert found["a/one"] == {"tokens": [1, 2]}
    assert found["a/one/ones"] == {"count": 1}
    assert "a/fill" not in found, "no scope of the hook"
    frame, _ = profiler_viewer.parse(["count"], str(tmp_path / "run.hatchet"))
    assert list(frame.dataframe["name"]) == ["ROOT", "a", "one", "ones", "fill"]


def test_what_a_device_does_at_most() -> None:
    flops, bps = profiler.specs.max_flops, profiler.specs.max_bps
    # An H200's data sheet: 989.5e12 operations of 16 bits at 1830 MHz, 4.8e12 bytes.
    assert flops("CUDA", "90", 16, 132, 1_830_000) == pytest.approx(989.5e12, rel=1e-3)
    assert flops("CUDA", "90", 8, 132, 1_830_000) == 2 * flops("CUDA", "90", 16, 132, 1_830_000)
    assert bps("CUDA", "90", 6144, 3_125_000) == pytest.approx(4.8e12)
    for of in (("CUDA", "75", 16), ("HIP", "gfx942", 16), ("CUDA", "90", 4)):
        with pytest.raises(proton.ProtonError, match=f"{of[0]} {of[1]} .* are not known"):
            flops(*of, 132, 1_830_000)
