"""A monitor: what it samples, keeps, writes and tells, and how it ends."""

import errno
import importlib.util
import itertools
import os
import shutil
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import proton
import proton.language as tl
from proton.base.packages import MissingPackage
from proton.monitoring import Monitor, exporters, monitor, rotation, statistics
from proton.monitoring.sketch import RELATIVE_ERROR
from proton.monitoring.statistics import HOST, KERNEL, OTHERS, SCOPE
from proton.runtime.session import open_sessions
from proton.runtime.session import session as sessions
from proton.runtime.session.launch_budget import LaunchBudget
from tests import processes
from tests.chosen_launches import each_second

FOREVER = 1e6  # s
ROUNDING = 1e-9


@proton.jit
def double(x, y, n, BLOCK: tl.constexpr):
    for i in range(n):
        place = i * BLOCK + tl.arange(0, BLOCK)
        with proton.scope("load"):
            v = tl.load(x + place)
        with proton.scope("sums"):
            v = v + tl.sum(v, 0)
        tl.store(y + place, v)


@proton.jit
def without_scopes(x):
    tl.store(x, 1.0)


def launch(times: int = 1, programs: int = 2) -> None:
    x, y = np.ones((2, 64), np.float32)
    for _ in range(times):
        double[(programs,)](x, y, 4, BLOCK=16)


@pytest.fixture
def every_second(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of each kernel's launches each second is recorded, and the others are timed."""
    monkeypatch.setattr(LaunchBudget, "choose", each_second)


@pytest.fixture
def start(
    every_second: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[Callable[..., Monitor]]:
    """A monitor that looks when it is told to."""
    monkeypatch.setattr(monitor, "POLL_S", FOREVER)
    made: list[Monitor] = []

    def begin(folder: str = "runs", **options: Any) -> Monitor:
        made.append(proton.monitor(tmp_path / folder, **{"period_s": FOREVER, **options}))
        return made[-1]

    yield begin
    for each in made:
        each.stop()
    assert sessions.current() is None


def look(of: Monitor) -> None:
    of._keep(*open_sessions.take_program())


def period(of: Monitor) -> Any:
    look(of)
    of._publish()
    assert of.snapshot is not None
    return of.snapshot


def frames(folder: Path) -> pd.DataFrame:
    """The slices of all runs in a folder."""
    return pd.concat([proton.Run.load(path).frame for path in sorted(folder.glob("*.proton"))])


def of_scopes(frame: pd.DataFrame) -> dict[str, np.ndarray]:
    of = frame[frame["kind"] == "scope"]
    return {
        str(name): g["corrected_ns"].to_numpy() for name, g in of.groupby("name", observed=True)
    }


def assert_quantiles(quantiles: Any, values: np.ndarray, scale: float = 1.0) -> None:
    values = np.where(values < 1, 0, values)
    assert set(quantiles) == {0.5, 0.9, 0.99}
    for part, found in quantiles.items():
        wanted = np.quantile(values, part, method="lower") * scale
        assert found == pytest.approx(wanted, rel=RELATIVE_ERROR + ROUNDING)


def test_figures_are_those_of_the_slices_in_the_files(
    start: Callable[..., Monitor], tmp_path: Path
) -> None:
    """Against numpy over the same slices: counts, sums, quantiles of each period."""
    of = start()
    seen = 0
    for times in (30, 7, 0):
        with proton.scope("step"):
            launch(times)
        before = set((tmp_path / "runs").glob("*"))
        found = period(of)
        new = [proton.Run.load(p).frame for p in (tmp_path / "runs").glob("*") if p not in before]
        (frame,) = new  # each period one file
        seen += times
        assert found.kernels["double"].launches == seen
        assert found.kernels["double"].recorded == (seen + 1) // 2
        both = of_scopes(frames(tmp_path / "runs"))
        assert both.keys() == {"load", "sums"}
        for name, values in both.items():
            durations = found.durations[SCOPE, "double", name]
            assert durations.count == values.size
            assert durations.total_ns == pytest.approx(values.sum())
            own = of_scopes(frame).get(name)
            if own is None:
                assert not durations.quantiles
            else:
                assert_quantiles(durations.quantiles, own)
        host = frame[frame["kind"] == "host"]
        assert_quantiles(found.durations[HOST, "", "step"].quantiles, host["dur_ns"].to_numpy())
        assert found.durations[KERNEL, "double", ""].count == seen // 2
        assert (found.dropped, found.files_lost) == (0, 0)
        assert found.bytes_written == sum(p.stat().st_size for p in (tmp_path / "runs").glob("*"))
    assert set(frames(tmp_path / "runs")["kernel"]) - {""} == {"double"}


def test_prometheus_reads_them(start: Callable[..., Monitor], tmp_path: Path) -> None:
    """By its own parser, over HTTP."""
    from prometheus_client.parser import text_string_to_metric_families

    of = start(metrics="prometheus:0", budget="2%")
    (exporter,) = of.exporters
    url = f"http://127.0.0.1:{exporter.port}/metrics"  # type: ignore[attr-defined]

    def read() -> dict[str, Any]:
        with urllib.request.urlopen(url) as answer:
            text = answer.read().decode()
        families = text_string_to_metric_families(text)
        return {
            sample.name: {
                tuple(sorted(s.labels.items())): s.value for s in f.samples if s.name == sample.name
            }
            for f in families
            for sample in f.samples
        }

    assert read() == {}
    launch(21)
    with proton.scope('a "step"\n'):
        without_scopes[(1,)](np.zeros(1, np.float32))
    period(of)
    found = read()
    double, other = (("kernel", "double"),), (("kernel", "without_scopes"),)
    assert found["proton_kernel_launches_total"] == {double: 21, other: 1}
    assert found["proton_kernel_launches_recorded_total"] == {double: 11, other: 1}
    assert found["proton_recording_budget_ratio"] == {(): 0.02}
    assert found["proton_launches_dropped_total"] == {(): 0}
    assert found["proton_files_lost_total"] == {(): 0}
    (path,) = (tmp_path / "runs").glob("*")
    assert found["proton_files_written_bytes_total"] == {(): path.stat().st_size}
    for name, values in of_scopes(frames(tmp_path / "runs")).items():
        labels = (("kernel", "double"), ("scope", name))
        count = found["proton_scope_duration_seconds_count"][labels]
        total = found["proton_scope_duration_seconds_sum"][labels]
        assert (count, total) == (values.size, pytest.approx(values.sum() / 1e9))
        quantiles = {
            part: found["proton_scope_duration_seconds"][
                (labels[0], ("quantile", str(part)), labels[1])
            ]
            for part in (0.5, 0.9, 0.99)
        }
        assert_quantiles(quantiles, values, 1e-9)
    assert (("scope", 'a "step"\n'),) in found["proton_host_scope_duration_seconds_count"]
    of.stop()
    with pytest.raises(OSError):
        urllib.request.urlopen(url)


def test_opentelemetry_reads_them(start: Callable[..., Monitor]) -> None:
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import InMemoryMetricReader

    reader = InMemoryMetricReader()
    of = start(metrics=(MeterProvider([reader]),))

    def read() -> dict[str, Any]:
        data = reader.get_metrics_data()
        return {
            metric.name: (
                metric.unit,
                {tuple(sorted(p.attributes.items())): p.value for p in points},
            )
            for resource in (data.resource_metrics if data else [])
            for scope in resource.scope_metrics
            for metric in scope.metrics
            if (points := metric.data.data_points)
        }

    assert read() == {}
    launch(9)
    snapshot = period(of)
    found = read()
    double = (("kernel", "double"),)
    assert found["proton.kernel.launches"] == ("1", {double: 9})
    assert found["proton.recording.budget"] == ("1", {(): 0.005})
    assert found["proton.files.written"] == ("By", {(): snapshot.bytes_written})
    for name in ("load", "sums"):
        durations = snapshot.durations[SCOPE, "double", name]
        labels = (("kernel", "double"), ("scope", name))
        assert found["proton.scope.duration.count"][1][labels] == durations.count
        assert found["proton.scope.duration.sum"][1][labels] == durations.total_ns * 1e-9
        for part, ns in durations.quantiles.items():
            point = (labels[0], ("quantile", str(part)), labels[1])
            assert found["proton.scope.duration"] == ("s", found["proton.scope.duration"][1])
            assert found["proton.scope.duration"][1][point] == ns * 1e-9
    of.stop()
    assert read() == {}


def test_clients_registries_and_what_metrics_may_be(
    start: Callable[..., Monitor], monkeypatch: pytest.MonkeyPatch
) -> None:
    from prometheus_client import REGISTRY, CollectorRegistry, generate_latest

    registry = CollectorRegistry()
    of = start(metrics=("prometheus", registry, "opentelemetry"))
    launch(3)
    period(of)
    texts = [generate_latest(each).decode() for each in (registry, REGISTRY)]
    assert all('proton_kernel_launches_total{kernel="double"} 3.0' in text for text in texts)
    of.stop()
    assert "proton_kernel" not in generate_latest(registry).decode()
    for wrong, said in (
        ("statsd", "metrics takes prometheus"),
        ("prometheus:many", "a port is a number below 65536"),
        ("prometheus:70000", "a port is a number below 65536"),
        ("opentelemetry:1", "metrics takes prometheus"),
        (object(), "metrics takes prometheus"),
        ("prometheus:300.1.1.1:0", "Prometheus at 300.1.1.1:0"),
    ):
        with pytest.raises(proton.ProfileError, match=said):
            start(metrics=(wrong,))
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    for word in ("prometheus", "prometheus:0", "opentelemetry"):
        with pytest.raises(MissingPackage, match=r"pip install 'proton-tile\[metrics\]'"):
            start(metrics=word)
    assert exporters.EXTRA == "metrics"


def test_what_a_session_keeps_does_not_grow(start: Callable[..., Monitor]) -> None:
    of = start()
    session = sessions.current()
    assert session is not None
    recorder: Any = session.recorders["cpu"]
    left = session.memory_left

    def sizes() -> list[int]:
        kernels = of.budget.kernels.values()
        kept = [len(k.plain.fresh) + len(k.recorded.fresh) for k in kernels]
        host = session.host
        return [
            len(recorder.launches), len(recorder.pairs), len(host.slices), len(host.open),
            len(session.kernels), len(of.parts), len(of.statistics.series), session.memory_left,
            len(of.rotation.parts), *kept,
        ]  # fmt: skip

    seen = []
    for _ in range(3):
        for _ in range(20):
            with proton.scope("step"):
                launch(5)
        period(of)
        seen.append(sizes())
    assert seen[0] == seen[1] == seen[2]
    assert seen[0][0] == 0
    assert session.memory_left == left


def test_the_folder_keeps_the_newest_and_no_more(
    start: Callable[..., Monitor], tmp_path: Path
) -> None:
    folder, most = tmp_path / "runs", 160_000
    of = start(folder_mb=most / 1e6)
    (folder / "monitor-old.proton").write_bytes(bytes(130_000))
    os.utime(folder / "monitor-old.proton", (1, 1))
    (folder / "own.proton").write_bytes(bytes(130_000))
    written = 0
    for number in range(25):
        launch(7)
        written = period(of).files_written
        assert written > number
        sizes = [path.stat().st_size for path in folder.glob("monitor-*")]
        assert sum(sizes) <= most
        assert max(sizes) <= most / rotation.PARTS or number == 0
    paths = sorted(folder.glob("monitor-*"))
    assert not (folder / "monitor-old.proton").exists()
    assert (folder / "own.proton").exists(), "of another's making"
    numbers = [int(path.stem.rsplit("-", 1)[1]) for path in paths]
    assert numbers == list(range(written - len(paths), written))
    for path in paths:
        assert proton.Run.load(path).totals.launches


def test_a_period_with_much_is_several_files(start: Callable[..., Monitor], tmp_path: Path) -> None:
    of = start(folder_mb=1)
    launch(401)
    found = period(of)
    runs = [proton.Run.load(path) for path in sorted((tmp_path / "runs").glob("*"))]
    assert len(runs) == found.files_written > 2
    assert sum(run.totals.launches for run in runs) == 201


def test_a_full_disk_costs_files_alone(
    start: Callable[..., Monitor], monkeypatch: pytest.MonkeyPatch, capfd: Any
) -> None:
    of = start()
    with monkeypatch.context() as patched:
        full = OSError(errno.ENOSPC, "No space left on device")
        patched.setattr(rotation.archive, "save", lambda *_: (_ for _ in ()).throw(full))
        for number in range(3):
            launch(4)
            found = period(of)
            assert (found.files_lost, found.files_written) == (number + 1, 0)
    assert found.kernels["double"].launches == 12
    assert found.durations[SCOPE, "double", "load"].quantiles
    launch(4)
    assert period(of).files_written == 1
    said = capfd.readouterr().err
    assert said.count("a run is lost") == 1
    assert "No space left on device" in said


def test_a_folder_that_is_gone_is_a_lost_run(
    start: Callable[..., Monitor], tmp_path: Path, capfd: Any
) -> None:
    of = start()
    shutil.rmtree(tmp_path / "runs")
    launch(3)
    assert period(of).files_lost == 1
    assert "a run is lost" in capfd.readouterr().err


def test_what_stops_a_monitor_from_starting(start: Callable[..., Monitor], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(proton.ProfileError, match="file/runs"):
        start("file/runs")
    with pytest.raises(proton.ProfileError, match="a session's name is a str"):
        start(name=3)
    with pytest.raises(proton.ProfileError, match="no option 'budge'; did you mean budget"):
        start(budge=3)
    assert sessions.current() is None
    of = start()
    with pytest.raises(proton.ProfileError, match="recorded already, by 'monitor'"):
        start("more", metrics="prometheus:0")
    launch(3)
    of.stop()
    of.stop()
    assert of.snapshot is not None
    assert of.snapshot.kernels["double"].launches == 3
    start("again").stop()


def test_sessions_of_its_own_meanwhile(start: Callable[..., Monitor], tmp_path: Path) -> None:
    """A session records all that it is asked for, and the monitor has it, too."""
    of = start()
    launch(4)
    with proton.scope("outer"):
        with proton.profile("own", capacity=32) as run:
            with proton.scope("inner"):
                launch(6)
    launch(2)
    assert run.totals.launches == 6
    assert "inner" in set(run.frame["name"])
    found = period(of)
    assert found.kernels["double"].launches == 6
    assert found.kernels["double"].recorded == 6 + 3
    assert found.durations[HOST, "", "outer/inner"].count == 1
    assert found.durations[HOST, "", "outer"].count == 1
    assert proton.Run.load(next((tmp_path / "runs").glob("*"))).totals.launches == 9


def test_a_look_that_fails_is_said_and_the_next_one_works(
    every_second: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: Any
) -> None:
    failures = iter([ValueError("the first"), RuntimeError("the second")])
    take, looks = open_sessions.take_program, itertools.count()

    def failing() -> Any:
        next(looks)
        for failure in failures:
            raise failure
        return take()

    monkeypatch.setattr(open_sessions, "take_program", failing)
    with proton.monitor(tmp_path, period_s=0.01) as of:
        launch(3)
        while of.snapshot is None or "double" not in of.snapshot.kernels:
            assert of.thread.is_alive()
    assert capfd.readouterr().err.count("a look at the session failed") == 1


def test_many_series_are_one(
    start: Callable[..., Monitor], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(statistics, "MOST_SERIES", 3)
    of = start()
    for number in range(10):
        with proton.scope(f"request {number}"):
            pass
    found = period(of).durations
    assert len(found) == 4
    assert found[HOST, "", OTHERS].count == 7


def test_records_that_have_no_room_are_counted(start: Callable[..., Monitor]) -> None:
    with proton.knobs.scope(profile_memory=1):
        of = start()
    launch(8)
    found = period(of)
    assert found.dropped == 4
    assert found.kernels["double"].recorded == 0


def test_nothing_happens_where_profiling_is_disabled(
    start: Callable[..., Monitor], tmp_path: Path
) -> None:
    with proton.knobs.scope(profile_disable=True):
        of = start()
        launch(3)
        of.stop()
    assert of.snapshot is None
    assert not (tmp_path / "runs").exists()


SCRIPT = """
import os, sys
import numpy as np
import proton, proton.language as tl
from proton.runtime.session import launch_budget

launch_budget.LEAST_PLAIN = 1

@proton.jit
def work(x):
    with proton.scope("work"):
        tl.store(x, 1.0)

def launch(times):
    x = np.zeros(1, np.float32)
    for _ in range(times):
        with proton.scope("step"):
            work[(1,)](x)
"""


def script(tmp_path: Path, text: str, *arguments: str) -> Any:
    path = tmp_path / "script.py"
    path.write_text(SCRIPT + text)
    return processes.python(*arguments, path, cwd=tmp_path)


@pytest.mark.parametrize(
    "end, status", [("", 0), ("sys.exit(3)", 3), ("raise KeyboardInterrupt", 130)]
)
def test_the_end_of_a_process_is_that_of_its_monitor(tmp_path: Path, end: str, status: int) -> None:
    text = f"m = proton.monitor('runs')\nlaunch(5)\n{end}\n"
    done = script(tmp_path, text)
    assert done.returncode in (status, -2)
    assert "proton:" not in done.stderr
    steps = frames(tmp_path / "runs")["name"]
    assert (steps == "step").sum() == 5


def test_a_forked_process_leaves_it_alone(tmp_path: Path) -> None:
    done = script(
        tmp_path,
        "m = proton.monitor('runs')\n"
        "launch(2)\n"
        "child = os.fork()\n"
        "if not child:\n"
        "    launch(3)\n"
        "    m.stop()\n"
        "    sys.exit(7)\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
        "launch(2)\n"
        "m.stop()\n"
        "print(m.snapshot.kernels['work'].launches)\n",
    )
    assert done.stdout.split() == ["7", "4"], done.stderr
    assert len(list((tmp_path / "runs").glob("*"))) == 1


def test_the_command_monitors_a_program(tmp_path: Path) -> None:
    done = script(tmp_path, "launch(4)\nsys.exit(3)", "-m", "proton", "--monitor", "runs")
    assert done.returncode == 3, done.stderr
    assert (frames(tmp_path / "runs")["name"] == "step").sum() == 4
    assert not list(tmp_path.glob("*.proton"))
    for options, said in (
        (("--budget", "1%"), "--budget goes with --monitor FOLDER"),
        (("--monitor", "runs", "--budget", "0%"), "budget is a part"),
        (("--monitor", "runs", "-o", "a.proton"), "leave --output out"),
        (("--monitor", "runs", "--strategy", "flush"), "takes no strategy='flush'"),
    ):
        done = script(tmp_path, "print('ran')", "-m", "proton", *options)
        assert done.returncode == 2
        assert said in " ".join(done.stderr.replace("│", " ").split())
        assert "ran" not in done.stdout
