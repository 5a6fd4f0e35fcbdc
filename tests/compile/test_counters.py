"""Counters of a GPU's hardware, with a stand-in for CUPTI's package: what is asked of it, on which
clock samples are, what is refused, and what files and the viewer make of them."""

import enum
import json
import sys
import time
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import proton
from proton.base.errors import ProfileError
from proton.runtime.nvidia import counters as gpu_counters
from proton.trace.instrumentation import COUNTERS
from proton.trace.merge import merge
from proton.trace.model import CounterSamples
from proton.viewer import Run
from proton.viewer.tables.labels import gpu_name
from tests.compile.test_gpu_sessions import TIMER, ProfilingDriver, kernels
from tests.perfetto_equality import assert_trace_equals_tables
from tests.pure.synthetic import gpu_run
from tests.trace_processor import TraceProcessor

AHEAD = 1_700_000_000_000_000_000  # ns: by how much CUPTI's clock is ahead of the host's
PEAK = ".avg.pct_of_peak_sustained_elapsed"


class Mode(enum.IntEnum):
    GPU_TIME_INTERVAL = 1
    KEEP_OLDEST = 0


class CuptiError(Exception):
    pass


class Package:
    """What the package would do: each sample has its number and the number of its metric as value.
    It has `metrics`, of which one pass takes `together`; `clock` is the one of its samples."""

    def __init__(self) -> None:
        self.metrics = {names[0] for names in gpu_counters.METRICS.values()}
        self.together = len(COUNTERS)
        self.apart = {"two", "that need", "a pass each"}
        self.clock = "timer"
        self.refuses: dict[str, Exception] = {}  # by what is called
        self.enabled: set[int] = set()
        self.batches: list[int] = []

    def of(self, clock: str, host_ns: int) -> int:
        return host_ns + {"timer": TIMER, "cupti": AHEAD, "neither": 5}[clock]

    def install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        package, sampling, base = (
            types.ModuleType(name) for name in ("cupti", "cupti.pm_sampling", "cupti.cupti")
        )
        package_of = self

        class Collector(FakeCollector):
            package = package_of

        vars(sampling).update(Collector=Collector, TriggerMode=Mode, HardwareBufferAppendMode=Mode)
        vars(base)["get_timestamp"] = lambda: self.of("cupti", time.perf_counter_ns())
        for module in (package, sampling, base):
            monkeypatch.setitem(sys.modules, module.__name__, module)


class FakeCollector:
    package: Package

    def __init__(self, device_index: int) -> None:
        self.device = device_index
        self.chosen: list[str] = []
        self.left: list[Any] = []

    def _called(self, name: str) -> None:
        if name in self.package.refuses:
            raise self.package.refuses[name]

    def enable(self) -> None:
        self._called("enable")
        assert self.device not in self.package.enabled
        self.package.enabled.add(self.device)

    def disable(self) -> None:
        self.package.enabled.remove(self.device)

    def configure(
        self, *, metrics: list[str], hardware_buffer_size: int, sampling_interval: int,
        trigger_mode: Mode, hw_buffer_append_mode: Mode,
    ) -> None:  # fmt: skip
        self._called("configure")
        assert trigger_mode is Mode.GPU_TIME_INTERVAL
        assert hw_buffer_append_mode is Mode.KEEP_OLDEST
        assert hardware_buffer_size > 0
        if not all(metric.removesuffix(PEAK) in self.package.metrics for metric in metrics):
            raise ValueError("invalid metric name")
        bare = {metric.removesuffix(PEAK) for metric in metrics}
        if len(metrics) > self.package.together or self.package.apart <= bare:
            raise CuptiError("ERROR_INVALID_PARAMETER (1)")
        self.chosen, self.interval = list(metrics), sampling_interval

    def start(self) -> None:
        self._called("start")
        self.begin = time.perf_counter_ns()

    def stop(self) -> None:
        self._called("stop")
        end = time.perf_counter_ns()
        times = np.arange(self.begin, end, self.interval)
        self.left = [
            types.SimpleNamespace(
                start_timestamp=self.package.of(self.package.clock, int(first)),
                end_timestamp=self.package.of(self.package.clock, int(first)) + self.interval,
                metric_values=[number + column / 8 for column in range(len(self.chosen))],
            )
            for number, first in enumerate(times[:-1])
        ]

    def decode(self, max_samples: int) -> list[Any]:
        self._called("decode")
        found, self.left = self.left[:max_samples], self.left[max_samples:]
        self.package.batches.append(len(found))
        return found


@pytest.fixture
def package(monkeypatch: pytest.MonkeyPatch) -> Iterator[Package]:
    found = Package()
    found.install(monkeypatch)
    yield found
    assert not found.enabled, "each collector was disabled"


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> ProfilingDriver:
    found = ProfilingDriver(in_use=0)
    found.install(monkeypatch)
    monkeypatch.setattr(gpu_counters, "timer_pair", found._timer_pair)
    return found


def profiled(driver: ProfilingDriver, **options: Any) -> Run:
    rounds, _ = kernels()
    x = driver.array("float32")
    with proton.profile("counted", **options) as run:
        time.sleep(0.002)
        rounds[3,](x, 5)
        time.sleep(0.002)
    return run


@pytest.mark.parametrize("clock", ["timer", "cupti"])
def test_samples_are_on_the_runs_axis(
    driver: ProfilingDriver, package: Package, monkeypatch: pytest.MonkeyPatch, clock: str
) -> None:
    monkeypatch.setattr(gpu_counters, "BATCH", 7)
    package.clock = clock
    before = time.perf_counter_ns()
    run = profiled(driver, counters="dram,sm", counter_interval_ns=100_000)
    after = time.perf_counter_ns()
    (samples,) = run.raw.counters
    assert samples.names == ("sm", "dram"), "in the order of the option's words"
    assert samples.metrics == (f"sm__cycles_active{PEAK}", f"dram__throughput{PEAK}")
    assert set(package.batches[:-1]) == {7}
    count = len(samples.values)
    assert count == sum(package.batches) >= 30
    assert samples.values[:, 0].tolist() == list(range(count))
    assert np.abs(samples.end_ns - samples.start_ns - 100_000).max() <= 50
    slack = samples.error_ns + 1
    assert before - slack <= samples.start_ns[0]
    assert samples.end_ns[-1] <= after + slack
    assert set(run.counters["counter"]) == {"sm", "dram"}
    line = run.summary().facts["counters of GPU 0"]
    assert f"{count} samples of 100000 ns" in line


def test_a_metric_that_a_chip_lacks_gives_way(driver: ProfilingDriver, package: Package) -> None:
    package.metrics -= {"lts__throughput"}
    package.metrics |= {"lts__d_sectors"}
    run = profiled(driver, counters=("l2", "tensor"))
    assert run.raw.counters[0].metrics == (
        f"sm__pipe_tensor_cycles_active_realtime{PEAK}",
        f"lts__d_sectors{PEAK}",
    )


def test_a_metric_gives_way_to_a_counter_behind_it(
    driver: ProfilingDriver, package: Package
) -> None:
    package.apart = {"lts__throughput", "dram__throughput"}
    package.metrics |= {"lts__t_sectors"}
    run = profiled(driver, counters=COUNTERS)
    assert run.raw.counters[0].metrics[-2:] == (f"lts__t_sectors{PEAK}", f"dram__throughput{PEAK}")


def test_what_cannot_be_sampled_is_an_error_that_says_what_to_do(
    driver: ProfilingDriver, package: Package, monkeypatch: pytest.MonkeyPatch
) -> None:
    package.together = 1
    with pytest.raises(ProfileError, match=r"cannot sample 'dram' beside sm .*ask for fewer"):
        profiled(driver, counters="sm,dram")
    for call in ("enable", "configure", "start"):
        package.refuses = {call: PermissionError("Insufficient privileges")}
        with pytest.raises(ProfileError, match=r"ERR_NVGPUCTRPERM.*run as root.*NVreg_R"):
            profiled(driver, counters="sm")
        package.refuses = {call: CuptiError("ERROR_INSUFFICIENT_PRIVILEGES (35)")}
        with pytest.raises(ProfileError, match="ERR_NVGPUCTRPERM"):
            profiled(driver, counters="sm")
    package.refuses = {"enable": RuntimeError("PM sampling is already enabled on this device.")}
    with pytest.raises(ProfileError, match="cannot sample GPU 0: PM sampling is already enabled"):
        profiled(driver, counters="sm")
    monkeypatch.setitem(sys.modules, "cupti.pm_sampling", None)
    with pytest.raises(ProfileError, match=r"pip install 'proton-tile\[cupti\]'"):
        profiled(driver, counters="sm")
    with pytest.raises(ProfileError, match=r"counters takes words of sm, .*did you mean dram"):
        proton.start("run", counters="drma")
    with pytest.raises(ProfileError, match=r"counter_interval_ns must be an integer in \[1000"):
        proton.start("run", counters="sm", counter_interval_ns=10)
    assert len(profiled(driver).raw.counters) == 0, "nothing is asked of the package unasked"


def test_a_gpu_is_needed(package: Package) -> None:
    with pytest.raises(ProfileError, match="those of NVIDIA GPUs"):
        proton.start("run", counters="sm")


@pytest.mark.parametrize("what", ["decode", "clock"])
def test_the_rest_of_the_run_is_kept(
    driver: ProfilingDriver, package: Package, capsys: pytest.CaptureFixture[str], what: str
) -> None:
    if what == "decode":
        package.refuses = {"decode": MemoryError("Record overflow in the hardware buffer.")}
        said = "cannot sample GPU 0: Record overflow"
    else:
        package.clock = "neither"
        said = "lie outside of the time of the session"
    run = profiled(driver, counters="sm")
    assert run.totals.launches == 1
    assert not run.raw.counters
    assert said in run.raw.machine["counters of GPU 0"]
    assert said in capsys.readouterr().err


def sampled(seed: int) -> Run:
    """A run of GPUs with samples of 1 us around its launches, as random numbers."""
    raw = gpu_run(seed)
    of = np.random.default_rng(seed)
    for device in {launch.device for launch in raw.launches}:
        starts = raw.origin_ns + np.arange(0, 3_000_000, 1000)
        values = of.random((starts.size, 2)) * 100
        raw.counters.append(
            CounterSamples(
                device=device, start_ns=starts, end_ns=starts + 1000, names=("sm", "dram"),
                metrics=("a", "b"), units=("%", "%"), values=values, error_ns=70.0,
            )
        )  # fmt: skip
    return Run(raw)


def test_counters_come_back_from_a_file_and_move_when_runs_are_merged(tmp_path: Path) -> None:
    run = sampled(3)
    loaded = Run.load(run.save(tmp_path / "run.proton"))
    assert loaded.counters.equals(run.counters)
    assert [s.metrics for s in loaded.raw.counters] == [("a", "b")] * len(run.raw.counters)
    whole = Run(merge([run.raw, loaded.raw], ["x", "y"]))
    first, second = (len(run.raw.counters),) * 2
    assert len(whole.raw.counters) == first + second
    devices = [samples.device for samples in whole.raw.counters]
    assert len(set(devices)) == len(devices)
    assert set(devices) <= {gpu.device for gpu in whole.raw.gpus}


def test_means_of_kernels_weigh_samples_by_time() -> None:
    run = sampled(5)
    launches, table = run.launches, run.counter_stats
    assert len(table)
    for row in table.to_dict("records"):
        own = launches[
            (launches.kernel == row["kernel"])
            & (launches.device == row["device"])
            & (launches.clock == "gpu")
        ]
        (samples,) = [s for s in run.raw.counters if s.device == row["device"]]
        column = samples.values[:, samples.names.index(row["counter"])]
        covered = np.zeros(column.size)
        for launch in own.to_dict("records"):
            for number in range(column.size):
                begin = int(samples.start_ns[number]) - run.raw.origin_ns
                end = min(begin + 1000, launch["start_ns"] + launch["dur_ns"])
                covered[number] += max(0, end - max(begin, launch["start_ns"]))
        assert row["mean"] == pytest.approx(np.average(column, weights=covered))
        assert row["max"] == column[covered > 0].max()


def test_chromes_json_has_each_sample(tmp_path: Path) -> None:
    run = sampled(9)
    events = json.loads(run.save(tmp_path / "run.json").read_text())["traceEvents"]
    processes = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
    found = [
        (processes[e["pid"]], e["name"], round(e["ts"] * 1000), *e["args"].values())
        for e in events
        if e["ph"] == "C"
    ]
    table = run.counters
    names = [gpu_name(run.raw, device) for device in table.device]
    wanted = zip(names, table.counter + ", %", table.start_ns, table.value, strict=True)
    assert sorted(found) == sorted(wanted)


def test_perfetto_has_a_track_with_a_unit_for_each_counter(tmp_path: Path) -> None:
    run = sampled(7)
    path = run.save(tmp_path / "run.pftrace")
    assert_trace_equals_tables(run, path)
    with TraceProcessor(path) as processor:
        rows = processor.query(
            "select p.name as gpu, t.name, c.ts, c.value from counter c "
            "join counter_track u on c.track_id = u.id join track t on t.id = u.id "
            "join track p on t.parent_id = p.id where u.unit = '%'"
        )
        assert not processor.complaints()
    wanted = []
    for samples in run.raw.counters:
        for place, name in enumerate(samples.names):
            for start, value in zip(samples.start_ns, samples.values[:, place], strict=True):
                wanted.append((samples.device, name, int(start), float(value)))
    found = [(row["name"], row["ts"], row["value"]) for row in rows]
    assert sorted(found) == sorted(entry[1:] for entry in wanted)
    assert len({row["gpu"] for row in rows}) == len(run.raw.counters)
