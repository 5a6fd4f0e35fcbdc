"""What CUPTI sees, with a stand-in for its package: records in, slices out, in all files."""

import sys
import time
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import proton
import proton.language as tl
from proton.base import symbols
from proton.runtime.nvidia import cuda
from proton.trace.merge import merge
from proton.viewer.pictures.selection import Selection
from tests.compile.fake_cupti import ActivityKind, Standin, standin
from tests.perfetto_equality import assert_trace_equals_tables, read_back

__all__ = ("standin",)  # the fixture


@proton.jit
def fill(out, BLOCK: tl.constexpr):
    with proton.scope("store"):
        tl.store(out + tl.arange(0, BLOCK), 1)


def works(standin: Standin, since: int, stream: int = 7, device: int = 1) -> None:
    """A kernel of somebody else, a copy within it on another stream, and what is none of ours."""
    place = {"device_id": device, "stream_id": stream}
    grid = {"grid_x": 5, "grid_y": 2, "grid_z": 1, "registers_per_thread": 40}
    kernel, copy = ActivityKind.CONCURRENT_KERNEL, ActivityKind.MEMCPY
    standin.ran(kernel, since, since + 9000, name="void gemm<a / b + c>()", **place, **grid)
    other = {"device_id": device, "stream_id": stream + 1}
    standin.ran(copy, since + 1000, since + 3000, bytes=4096, copy_kind=1, **other)
    standin.ran(ActivityKind.MEMSET, since + 3000, since + 3500, bytes=8, **other)
    standin.ran(ActivityKind.OVERHEAD, since, since + 10, name="overhead")
    standin.ran(kernel, since - 10**12, since, name="before the session", **place)


def test_records_become_slices_of_streams_on_the_hosts_axis(
    standin: Standin, tmp_path: Path, rng: np.random.Generator
) -> None:
    with proton.profile("all", activities="all") as run:
        fill[(1,)](np.zeros(8, np.int32), BLOCK=8)
        began = time.perf_counter_ns() + int(rng.integers(1000))
        works(standin, began)
        time.sleep(0.01)
    frame = run.frame
    frame = frame[frame["kind"].isin(["kernel", "memcpy", "memset"])]
    assert frame["name"].tolist() == ["void gemm<a | b+c>()", "memcpy HTOD", "memset"]
    assert frame["kind"].tolist() == ["kernel", "memcpy", "memset"]
    assert frame["thread"].tolist() == [7, 8, 8]
    assert set(frame["device"]) == {1}
    wanted = np.array([began, began + 1000, began + 3000]) - run.raw.origin_ns
    # Readings of two clocks by Python: some us, on a machine with other work more.
    assert np.abs(frame["start_ns"].to_numpy() - wanted).max() < 1_000_000
    assert np.abs(frame["dur_ns"].to_numpy() - [9000, 2000, 500]).max() <= 10
    kernel, copy, _ = frame["payload"]
    assert kernel == {"grid_x": 5, "grid_y": 2, "grid_z": 1, "registers": 40}
    assert copy == {"bytes": 4096}
    assert "1 kernel, 1 memcpy, 1 memset" in run.summary().facts["seen by CUPTI"]
    rates = run.stats("name", kind="memcpy", rates=True)
    assert rates["gbytes/s"][0] == pytest.approx(4096 / 2000, rel=0.01)
    loaded = proton.Run.load(run.save(tmp_path / "all.proton"))
    assert loaded.raw.host == run.raw.host
    assert_trace_equals_tables(loaded, tmp_path / "equal.pftrace")
    slices, _ = read_back(loaded.save(tmp_path / "all.pftrace"))
    (found,) = (s for s in slices if s["category"] == "kernel")
    assert found["path"] == ("all", "GPU 1", "stream 7")[-len(found["path"]) :]
    for suffix in ("json", "svg", "html", "speedscope.json", "csv"):
        all_of_it = {"where": Selection(start_ns=0)} if suffix == "svg" else {}
        text = loaded.save(tmp_path / f"all.{suffix}", **all_of_it).read_text()
        assert "gemm" in text or suffix == "html"


def test_kernels_are_called_as_they_are_written(standin: Standin) -> None:
    """... not by their symbols: ours, those of C++, and what is no symbol of either."""
    sort = "_ZN14at_cuda_detail3cub6detail10radix_sort30DeviceRadixSortHistogramKernelEv"
    names = {
        symbols.mangled("größe"): "größe",
        symbols.mangled("fill"): "fill",
        sort: "at_cuda_detail::cub::detail::radix_sort::DeviceRadixSortHistogramKernel()",
        "_Z_is_none": "_Z_is_none",
        "triton_poi_fused_0": "triton_poi_fused_0",
    }
    with proton.profile("all", activities="all") as run:
        now = time.perf_counter_ns()
        for name in names:
            place = {"device_id": 0, "stream_id": 1}
            standin.ran(ActivityKind.CONCURRENT_KERNEL, now, now + 100, name=name, **place)
        time.sleep(0.01)
    assert list(run.frame["name"]) == list(names.values())


def test_self_time_is_by_stream(standin: Standin) -> None:
    with proton.profile("all", activities="all") as run:
        now = time.perf_counter_ns()
        for stream in (1, 2):
            place = {"device_id": 0, "stream_id": stream}
            standin.ran(ActivityKind.CONCURRENT_KERNEL, now, now + 10**6, name="k", **place)
    table = run.stats("kernel", "dur_ns", "kernel")
    assert table["count"].tolist() == [2]
    assert table["self"][0] == table["total"][0] == pytest.approx(2e6, rel=1e-3)


def test_only_what_began_in_a_sessions_windows_is_its(standin: Standin) -> None:
    def ran(name: str) -> None:
        now = time.perf_counter_ns()
        place = {"device_id": 0, "stream_id": 1}
        standin.ran(ActivityKind.CONCURRENT_KERNEL, now, now + 100, name=name, **place)
        time.sleep(0.002)

    mine = proton.start("mine", activities="all")
    ran("first")
    other = proton.start("other", activities="all")
    ran("both")
    proton.deactivate(mine)
    ran("paused")
    proton.activate(mine)
    run = proton.finalize(other)
    assert list(run.frame["name"]) == ["both", "paused"]
    ran("last")
    assert list(proton.finalize(mine).frame["name"]) == ["first", "both", "last"]


def test_devices_of_processes_stay_apart(standin: Standin) -> None:
    runs = []
    for _ in range(2):
        with proton.profile("one", activities="all") as run:
            works(standin, time.perf_counter_ns())
        runs.append(run.raw)
    whole = merge(runs, ["a", "b"])
    assert {(s.device, s.thread) for s in whole.host} == {(1, 7), (1, 8), (3, 7), (3, 8)}


def test_nothing_listens_unless_it_is_asked_for(standin: Standin) -> None:
    with proton.profile("own"):
        assert not standin.enabled
    with pytest.raises(proton.ProfileError, match="activities must be one of own, all, got 'a'"):
        proton.start("x", activities="a")


def refuse(*_: Any) -> None:
    raise RuntimeError("ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED")


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        ("", "pip install 'proton-tile[cupti]'"),
        # The package is imported without a driver: its first call says that there is none.
        ("get_timestamp", "CUPTI cannot be used: ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED"),
        ("activity_register_callbacks", "CUPTI cannot be used: ERROR_MULTIPLE_SUBSCRIBERS_NOT"),
    ],
)
def test_without_cupti_a_run_has_ours_and_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], broken: str, message: str
) -> None:
    monkeypatch.setattr(cuda, "device_count", lambda: 1)
    module = None
    if broken:
        module = Standin()
        monkeypatch.setattr(module, broken, refuse, raising=False)
    monkeypatch.setitem(sys.modules, "cupti", module and types.ModuleType("cupti"))
    monkeypatch.setitem(sys.modules, "cupti.cupti", module)
    with proton.profile("ours", activities="all") as run:
        fill[(1,)](np.zeros(8, np.int32), BLOCK=8)
    assert len(run.launches) == 1
    said = capsys.readouterr().err
    assert said.startswith("proton: only Proton's own launches are recorded: ")
    assert message in said
    assert message in run.summary().facts["activities that are missing"]
