"""Counters of a GPU's hardware, with a stand-in for CUPTI's package: what is asked of it, on which
clock samples are, what is refused, and what files and the viewer make of them."""

import ctypes
import enum
import functools
import json
import re
import sys
import time
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import proton
from proton.base.errors import ProfileError
from proton.runtime.nvidia import counters as gpu_counters
from proton.runtime.nvidia import pm_sampling
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


class CuptiError(Exception):
    pass


class Mode(enum.IntEnum):
    GPU_TIME_INTERVAL = 1
    KEEP_OLDEST = 0
    PM_SAMPLING = 2


class Stop(enum.IntEnum):
    COUNTER_DATA_FULL = 1
    END_OF_RECORDS = 2


class Params:
    """A structure of the bindings: `ptr` is where it lies."""

    made: ClassVar[dict[int, "Params"]] = {}

    def __init__(self) -> None:
        self.struct_size = 0
        self.ptr = id(self)
        Params.made[self.ptr] = self


class Package(types.ModuleType):
    """What the bindings of CUPTI would do: each sample has its number and the number of its metric
    as value, the first no begin and the last no end. It has `metrics`, of which one pass takes
    `together`; `clock` is the one of its samples. What an image has no room for is there at the
    next call, or `drops`; the buffer of the GPU keeps `most` samples. Why a call stopped says
    nothing: it is the end of records also where more come."""

    PmSamplingTriggerMode = PmSamplingHardwareBufferAppendMode = ProfilerType = Mode
    PmSamplingDecodeStopReason = Stop

    def __init__(self) -> None:
        super().__init__("cupti.cupti")
        self.metrics = {names[0] for names in gpu_counters.METRICS.values()}
        self.together = len(COUNTERS)
        self.apart = {"two", "that need", "a pass each"}
        self.clock = "cupti"
        self.refuses: dict[str, Exception] = {}  # by what is called
        self.enabled: dict[int, Any] = {}  # by GPU
        self.is_initialized = False
        self.batches: list[int] = []
        self.drops, self.most = False, 1 << 30

    def __getattr__(self, name: str) -> Any:
        if name.endswith("_STRUCT_SIZE"):
            return len(name)
        if name.endswith("Params"):
            return Params
        if name.startswith("__"):
            raise AttributeError(name)
        function = getattr(type(self), f"do_{name}")
        size = len(f"{name}_PARAMS_STRUCT_SIZE")

        def call(address: int) -> None:
            if name in self.refuses:
                raise self.refuses[name]
            params = Params.made.pop(address)
            assert params.struct_size == size
            function(self, params)

        return call

    def of(self, clock: str, host_ns: int) -> int:
        return host_ns + {"timer": TIMER, "cupti": AHEAD, "neither": 5}[clock]

    def get_timestamp(self) -> int:
        return self.of("cupti", time.perf_counter_ns())

    def install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        host = types.ModuleType("cupti.profiler_host")
        vars(host).update(
            ProfilerHost=functools.partial(FakeHost, self),
            ProfilerType=Mode,
            get_num_of_passes=lambda image: int(image[0]),
        )
        for module in (types.ModuleType("cupti"), self, host):
            monkeypatch.setitem(sys.modules, module.__name__, module)

    # CUPTI's functions

    def do_profiler_initialize(self, params: Any) -> None:
        self.is_initialized = True

    def do_device_get_chip_name(self, params: Any) -> None:
        params.p_chip_name = "GH100"

    def do_pm_sampling_enable(self, params: Any) -> None:
        assert self.is_initialized
        assert params.device_index not in self.enabled
        params.p_pm_sampling_object = 0x100 + params.device_index
        self.enabled[params.device_index] = types.SimpleNamespace(left=[], config=0)

    def _sampling(self, params: Any) -> Any:
        return self.enabled[params.p_pm_sampling_object - 0x100]

    def do_pm_sampling_disable(self, params: Any) -> None:
        sampling = self._sampling(params)
        if sampling.config:  # CUPTI still reads it
            assert read(*sampling.config) == sampling.said
        del self.enabled[params.p_pm_sampling_object - 0x100]

    def do_pm_sampling_set_config(self, params: Any) -> None:
        assert params.trigger_mode is Mode.GPU_TIME_INTERVAL
        assert params.hw_buffer_append_mode is Mode.KEEP_OLDEST
        assert params.hardware_buffer_size > 0
        sampling = self._sampling(params)
        assert not sampling.config, "an object is configured once"
        sampling.interval, sampling.config = (
            params.sampling_interval,
            (params.p_config, params.config_size),
        )
        sampling.said = read(*sampling.config)

    def do_pm_sampling_get_counter_data_size(self, params: Any) -> None:
        names = (ctypes.c_char_p * params.num_metrics).from_address(params.p_metric_names)
        self._sampling(params).metrics = [(name or b"").decode() for name in names]
        params.counter_data_size = self._sampling(params).room = params.max_samples

    def do_pm_sampling_counter_data_image_initialize(self, params: Any) -> None:
        sampling = self._sampling(params)
        sampling.image, sampling.room = params.p_counter_data, params.counter_data_size
        ctypes.memset(params.p_counter_data, 1, params.counter_data_size)

    def do_pm_sampling_start(self, params: Any) -> None:
        self._sampling(params).begin = time.perf_counter_ns()

    def do_pm_sampling_stop(self, params: Any) -> None:
        sampling, end = self._sampling(params), time.perf_counter_ns()
        times = np.arange(sampling.begin, end, sampling.interval)[:-1]
        starts = [self.of(self.clock, int(first)) for first in times]
        sampling.left = [
            (start if number else 0, start + sampling.interval, number)
            for number, start in enumerate(starts[: self.most])
        ]
        if len(sampling.left) > 1:
            sampling.left.append((starts[-1], 0, len(starts)))

    def do_pm_sampling_decode_data(self, params: Any) -> None:
        sampling = self._sampling(params)
        image = read(params.p_counter_data_image, params.counter_data_image_size)
        assert set(image) == {1}, "initialized anew"
        ctypes.memset(params.p_counter_data_image, 2, 1)
        sampling.decoded, behind = (sampling.left[: sampling.room], sampling.left[sampling.room :])
        sampling.left = [] if self.drops else behind
        self.batches.append(len(sampling.decoded))
        params.overflow = len(sampling.decoded) > self.most
        params.decode_stop_reason = Stop.END_OF_RECORDS

    def do_pm_sampling_get_counter_data_info(self, params: Any) -> None:
        (sampling,) = [s for s in self.enabled.values() if s.image == params.p_counter_data_image]
        params.num_completed_samples = len(sampling.decoded)

    def do_pm_sampling_counter_data_get_sample_info(self, params: Any) -> None:
        sample = self._sampling(params).decoded[params.sample_index]
        params.start_timestamp, params.end_timestamp, _ = sample


def read(address: int, size: int) -> bytes:
    return bytes((ctypes.c_ubyte * size).from_address(address))


class FakeHost:
    """The package's `ProfilerHost`: an image of a configuration is the number of its passes."""

    def __init__(self, package: Package, chip: str, kind: Mode) -> None:
        assert (chip, kind) == ("GH100", Mode.PM_SAMPLING)
        self.package, self.is_ready = package, False

    def initialize(self) -> None:
        self.is_ready = True

    def deinitialize(self) -> None:
        self.is_ready = False

    def create_config_image(self, metrics: list[str]) -> np.ndarray:
        assert self.is_ready
        known, bare = self.package.metrics, {metric.removesuffix(PEAK) for metric in metrics}
        if not bare <= known:
            raise ValueError("invalid metric name")
        is_one = len(metrics) <= self.package.together and not self.package.apart <= bare
        return np.array([1 if is_one else 2, len(metrics)], np.uint8)

    def evaluate_metric_values(
        self, counter_data_image: np.ndarray, metrics: list[str], index: int
    ) -> np.ndarray:
        assert self.is_ready
        (sampling,) = self.package.enabled.values()
        assert sampling.image == counter_data_image.ctypes.data
        assert sampling.metrics == metrics
        return sampling.decoded[index][2] + np.arange(len(metrics)) / 8


@pytest.fixture
def package(monkeypatch: pytest.MonkeyPatch) -> Iterator[Package]:
    found = Package()
    found.install(monkeypatch)
    yield found
    assert not found.enabled, "each sampling was disabled"


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


@pytest.mark.parametrize(("clock", "room"), [("cupti", None), ("cupti", 7), ("timer", 7)])
def test_samples_are_on_the_runs_axis(
    driver: ProfilingDriver,
    package: Package,
    monkeypatch: pytest.MonkeyPatch,
    clock: str,
    room: int | None,
) -> None:
    """With room for all at once, whatever follows is lost; and with many small images."""
    if room is not None:
        monkeypatch.setattr(pm_sampling, "IMAGE_BYTES", room)
    package.clock, package.drops = clock, room is None
    before = time.perf_counter_ns()
    run = profiled(driver, counters="dram,sm", counter_interval_ns=100_000)
    after = time.perf_counter_ns()
    (samples,) = run.raw.counters
    assert samples.names == ("sm", "dram"), "in the order of the option's words"
    assert samples.metrics == (f"sm__cycles_active{PEAK}", f"dram__throughput{PEAK}")
    given = [batch for batch in package.batches if batch]
    assert set(given[:-1]) == ({7} if room else set())
    count = len(samples.values)
    assert count == sum(given) - 2 >= 30, "nobody knows when the first began and the last ended"
    assert "counters of GPU 0, lost" not in run.raw.machine
    assert samples.values[:, 0].tolist() == list(range(1, count + 1))
    assert np.abs(samples.end_ns - samples.start_ns - 100_000).max() <= 50
    slack = samples.error_ns + 1
    assert before - slack <= samples.start_ns[0]
    assert samples.end_ns[-1] <= after + slack
    assert set(run.counters["counter"]) == {"sm", "dram"}
    line = run.summary().facts["counters of GPU 0"]
    (length,) = re.findall(rf"\b{count} samples of (\d+) ns", line)
    assert abs(int(length) - 100_000) <= 50, "by the run's clock, which is measured"


@pytest.mark.parametrize("what", ["overflow", "image"])
def test_what_is_lost_is_counted_and_said(
    driver: ProfilingDriver,
    package: Package,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    what: str,
) -> None:
    """The GPU's buffer was full, or the rest of a full image is nowhere."""
    if what == "overflow":
        package.most, why = 20, "CUPTI's buffer overflowed"
    else:
        monkeypatch.setattr(pm_sampling, "IMAGE_BYTES", 20)
        package.drops, why = True, "what its buffers hold"
    before = time.perf_counter_ns()
    run = profiled(driver, counters="sm", counter_interval_ns=100_000)
    most = (time.perf_counter_ns() - before) // 100_000
    (samples,) = run.raw.counters
    told = run.raw.machine["counters of GPU 0, lost"]
    lost = int(str(told).split()[0])
    assert len(samples.values) == 20 - 1
    assert 15 <= lost <= most - 19
    assert why in str(told)
    assert str(told) in capsys.readouterr().err
    assert run.summary().facts["counters of GPU 0, lost"] == told


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
    for call in ("pm_sampling_enable", "pm_sampling_set_config", "pm_sampling_start"):
        package.refuses = {call: PermissionError("Insufficient privileges")}
        with pytest.raises(ProfileError, match=r"ERR_NVGPUCTRPERM.*run as root.*NVreg_R"):
            profiled(driver, counters="sm")
        package.refuses = {call: CuptiError("ERROR_INSUFFICIENT_PRIVILEGES (35)")}
        with pytest.raises(ProfileError, match="ERR_NVGPUCTRPERM"):
            profiled(driver, counters="sm")
    package.refuses = {"pm_sampling_enable": CuptiError("ERROR_INVALID_OPERATION (5)")}
    with pytest.raises(ProfileError, match=r"cannot sample 'sm' \(somebody samples it already"):
        profiled(driver, counters="sm")
    monkeypatch.setitem(sys.modules, "cupti.profiler_host", None)
    with pytest.raises(ProfileError, match=r"pip install 'proton-tile\[cupti\]'"):
        profiled(driver, counters="sm")
    with pytest.raises(ProfileError, match=r"counters takes words of sm, .*did you mean dram"):
        proton.start("run", counters="drma")
    with pytest.raises(ProfileError, match=r"counter_interval_ns must be an integer in \[1000"):
        proton.start("run", counters="sm", counter_interval_ns=10)
    assert len(profiled(driver).raw.counters) == 0, "nothing is asked of the package unasked"


def test_an_older_library_than_the_package_is_named(
    driver: ProfilingDriver, package: Package, monkeypatch: pytest.MonkeyPatch
) -> None:
    refusal = CuptiError("ERROR_INVALID_PARAMETER (1)")
    package.refuses = {"pm_sampling_set_config": refusal}
    monkeypatch.setattr(pm_sampling, "_package_version", lambda: "13.4.0")
    for version, is_older in ((130_000, True), (28, True), (130_400, False), (0, False)):
        path = Path("/usr/lib/libcupti.so.13") if version else None
        monkeypatch.setattr(pm_sampling, "loaded_library", lambda path=path: path)
        monkeypatch.setattr(pm_sampling, "_version_of", lambda _, version=version: version)
        with pytest.raises(ProfileError, match="cannot sample 'sm'") as raised:
            profiled(driver, counters="sm")
        said = f"libcupti.so.13 (cuptiGetVersion says {version}), which is older than"
        assert (said in str(raised.value)) == is_older
        assert ("pip install 'nvidia-cuda-cupti==13.4.*'" in str(raised.value)) == is_older


def test_sessions_one_after_the_other(
    driver: ProfilingDriver, package: Package, tmp_path: Path
) -> None:
    for interval_ns, is_sampled in ((10_000, True), (10**9, False), (20_000, True)):
        run = profiled(driver, counters=COUNTERS, counter_interval_ns=interval_ns)
        (samples,) = run.raw.counters
        assert samples.values.shape == (len(samples.start_ns), len(COUNTERS))
        assert bool(samples.values.size) == is_sampled
        assert Run.load(run.save(tmp_path / "run.proton")).counters.equals(run.counters)
        assert len(run.summary().facts["counters of GPU 0"])


def test_a_gpu_is_needed(package: Package) -> None:
    with pytest.raises(ProfileError, match="those of NVIDIA GPUs"):
        proton.start("run", counters="sm")


@pytest.mark.parametrize("what", ["decode", "clock"])
def test_the_rest_of_the_run_is_kept(
    driver: ProfilingDriver, package: Package, capsys: pytest.CaptureFixture[str], what: str
) -> None:
    if what == "decode":
        package.refuses = {"pm_sampling_decode_data": CuptiError("ERROR_OUT_OF_MEMORY (8)")}
        said = "cannot sample GPU 0: its buffer for samples overflowed"
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
