"""The `.proton` file: exact both ways, and no altered file gets further than TraceFormatError."""

import dataclasses
import io
import json
import struct
import tracemalloc
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from faults import sampled
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from synthetic import (
    ORIGIN_NS,
    Record,
    Written,
    as_schema,
    gpu_run,
    kernel,
    pack_launch,
    random_run,
    run,
)

from proton.base.errors import ProtonError
from proton.trace.archive import SCHEMA
from proton.trace.model import Kernel, Launch, RawRun
from proton.viewer import Run, TraceFormatError
from tests.perfetto_equality import read_back

QUIET = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


def plain(value: Any) -> Any:
    """A value that compares by content."""
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.tolist()
    if dataclasses.is_dataclass(value):
        return {f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, list | tuple):
        return type(value), [plain(entry) for entry in value]
    return value


@pytest.mark.parametrize(
    "raw", [random_run(3), gpu_run(3), gpu_run(4, mixed=True), run([], []), run([kernel()], [])]
)
def test_every_field_comes_back(tmp_path: Path, raw: RawRun) -> None:
    path = Run(raw).save(tmp_path / "run.proton")
    assert plain(Run.load(path).raw) == plain(raw)


def test_a_launch_of_no_programs_comes_back(tmp_path: Path) -> None:
    launch = pack_launch(kernel(), (0, 1, 1), 8, [])
    loaded = Run.load(Run(run([kernel()], [launch])).save(tmp_path / "run.proton"))
    assert loaded.launches[["programs", "written", "lost"]].values.tolist() == [[0, 0, 0]]
    assert loaded.frame["kind"].tolist() == ["launch"]
    loaded.save(tmp_path / "run.pftrace")


def test_equal_runs_are_equal_files_and_a_failed_save_leaves_the_old_one(tmp_path: Path) -> None:
    raw = random_run(4)
    path = Run(raw).save(tmp_path / "run.proton")
    before = path.read_bytes()
    assert Run(raw).save(tmp_path / "again.proton").read_bytes() == before
    raw.machine["bad"] = object()
    with pytest.raises(ProtonError, match="options and machine must be JSON values"):
        Run(raw).save(path)
    assert path.read_bytes() == before
    with pytest.raises(ProtonError, match="the suffix must be one of"):
        Run(raw).save(tmp_path / "run.zip")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["again.proton", "run.proton"]


def test_a_buffer_of_zeros_does_not_look_like_a_bomb(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("proton.trace.archive.RATIO_FLOOR", 1 << 17)
    programs = [Written([[]], state=0)] * 100
    launch = pack_launch(kernel(), (100, 1, 1), 500, programs)
    whole = Run(run([kernel()], [launch]))
    assert launch.buffer.size > 8 << 17
    assert Run.load(whole.save(tmp_path / "run.proton")).totals.programs == 100


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    raw = gpu_run(5, mixed=True)
    return Run(raw).save(tmp_path_factory.mktemp("saved") / "run.proton").read_bytes()


def members(data: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def repacked(path: Path, contents: dict[str, bytes], method: int = zipfile.ZIP_STORED) -> Path:
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, data in contents.items():
            archive.writestr(name, data)
    return path


@pytest.mark.parametrize("schema", range(2, SCHEMA))
def test_older_schemas_are_read(tmp_path: Path, schema: int) -> None:
    raw = sampled(random_run(6), "wait", 80) if schema >= 11 else random_run(6)
    contents = members(Run(raw).save(tmp_path / "run.proton").read_bytes())
    document = json.loads(contents["run.json"])
    as_schema(document, schema)
    contents["run.json"] = json.dumps(document).encode()
    assert plain(Run.load(repacked(tmp_path / "old.proton", contents)).raw) == plain(raw)


def test_code_and_source_are_kept(tmp_path: Path) -> None:
    raw = random_run(6)
    raw.sources = {"/a é.py": "x = 1\n", "<cell>": ""}
    raw.kernels[1] = dataclasses.replace(
        raw.kernels[1], code={"ttir": "module {\n}\n", "cubin": "AAEC"}
    )
    saved = Run(raw).save(tmp_path / "run.proton")
    assert plain(Run.load(saved).raw) == plain(raw)
    contents = members(saved.read_bytes())
    document = json.loads(contents["run.json"])
    document["kernels"][1]["code"]["ttir"] = ["module"]
    contents["run.json"] = json.dumps(document).encode()
    assert refused(repacked(tmp_path / "bad.proton", contents)).endswith(
        "kernel 1, code: must be a string, got list"
    )


def test_a_kernel_without_scopes_has_launches_that_leave_nothing(tmp_path: Path) -> None:
    for target in ("cpu", "cuda:90"):
        owner = Kernel(name="add", key="k", target=target, strategy=None, scopes=())
        launch = Launch(
            kernel=0,
            grid=(5, 2, 1),
            capacity=0,
            host_start=ORIGIN_NS + 10,
            host_end=ORIGIN_NS + 40,
            buffer=np.zeros(0, np.uint8),
        )
        loaded = Run.load(Run(run([owner], [launch])).save(tmp_path / "run.proton"))
        columns = ["start_ns", "dur_ns", "clock", "programs", "untouched", "lost", "strategy"]
        assert loaded.launches[columns].values.tolist() == [[10, 30, "host", 10, 0, 0, "none"]]
        assert loaded.summary().warnings == ()
        slices, complaints = read_back(loaded.save(tmp_path / "run.pftrace"))
        assert complaints == []
        assert [(s["path"], s["dur"]) for s in slices if s["category"] == "launch"] == [
            (("host thread 0",), 30)
        ]
        launch.buffer = np.zeros(64, np.uint8)
        with pytest.raises(TraceFormatError, match="buffer must be 0 blocks"):
            Run(loaded.raw.__class__(**{**vars(loaded.raw), "launches": [launch]})).records


def refused(path: Path) -> str:
    with pytest.raises(TraceFormatError) as caught:
        Run.load(path)
    return str(caught.value)


def test_each_wrong_archive_is_refused_with_its_reason(tmp_path: Path, saved: bytes) -> None:
    path, good = tmp_path / "bad.proton", members(saved)
    assert "cannot be read: No such file" in refused(path)
    for content, reason in (
        (b"", "is no .proton file: it is empty"),
        (b"no zip", "is no .proton file, which is a zip archive"),
        (b' [{"frame": {}}]', 'a trace of it (data="trace") has more'),
    ):
        path.write_bytes(content)
        assert refused(path).endswith(reason)
    assert "a zip archive, but without run.json" in refused(repacked(path, {"x": b""}))
    path.write_bytes(saved[:-30])
    assert "not a whole .proton archive" in refused(path)
    less = {name: data for name, data in good.items() if name != "chunks.npy"}
    assert "members must be" in refused(repacked(path, less))
    assert "members must be" in refused(repacked(path, {**good, "more": b""}))
    repacked(path, good)
    with zipfile.ZipFile(path, "a") as archive, pytest.warns(UserWarning, match="Duplicate"):
        archive.writestr("run.json", good["run.json"])
    assert "members must be" in refused(path)
    assert "must be stored or deflated, got method 14" in refused(
        repacked(path, good, zipfile.ZIP_LZMA)
    )


def npy(array: np.ndarray, **options: Any) -> bytes:
    out = io.BytesIO()
    np.save(out, array, **options)
    return out.getvalue()


@pytest.mark.parametrize(
    ("member", "data", "message"),
    [
        ("buffers.npy", b"", "must be npy version 1.0"),
        ("buffers.npy", npy(np.array([{}]), allow_pickle=True), "header must say one dimension"),
        ("buffers.npy", npy(np.zeros((2, 2), np.uint8)), "header must say one dimension"),
        ("buffers.npy", npy(np.zeros(2, np.uint64)), "dtype must be"),
        ("buffers.npy", npy(np.zeros(9, np.uint8))[:-1], "must hold 9 items, 9 bytes, got 8"),
        ("launches.npy", npy(np.zeros(5, np.int64)), "must be rows of 12"),
        ("launches.npy", npy(np.full(12, -1)), "a part must be of 0 to"),
        ("chunks.npy", npy(np.zeros(0, np.int64)), "parts must sum to"),
        ("clock_ticks.npy", npy(np.zeros(1, np.uint64)), "ticks and host_ns must pair"),
        ("clock_ticks.npy", npy(np.zeros(4, np.uint64)), "the pairs must differ in ticks"),
        ("run.json", b"{", "not JSON"),
        ("run.json", b"[" * 100_000, "not JSON"),
        ("run.json", b"[]", "must be an object, got list"),
        ("run.json", b'{"schema": 1}', "schema must be 2 to 12, got 1"),
        ("run.json", b'{"schema": 13}', "12, got 13; a newer Proton wrote it: update this one"),
        ("run.json", b'{"schema": true}', "schema: must be an integer, got bool"),
    ],
)
def test_each_wrong_member_is_refused_with_its_reason(
    tmp_path: Path, saved: bytes, member: str, data: bytes, message: str
) -> None:
    contents = {**members(saved), member: data}
    assert message in refused(repacked(tmp_path / "bad.proton", contents))


def gpu(**change: Any) -> dict[str, Any]:
    """One entry of run.json's gpus."""
    costs = {"error_ns": 1.0, "slice_cost_cycles": 1.0, "edge_cost_cycles": 1.0}
    pairs = {"timer_ns": [10, 20], "host_ns": [10, 20]}
    peer = {"peer": -1, "peer_error_ns": 0.0}
    return {"device": 0, "name": "H200", **pairs, **costs, **peer, **change}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"name": 3}, "name: must be a string, got int"),
        ({"name": "\ud800"}, "must be Unicode text"),
        ({"origin_ns": 1 << 70}, "must fit in 64 bits"),
        ({"origin_ns": -1}, "origin_ns must be a time in ns"),
        ({"more": 1}, "fields must be known, got ['more']"),
        ({"kernels": []}, "launch 0: kernel must be < 0"),
        ({"paths": []}, "path must be < 0"),
        ({"clock": {"error_ns": float("nan")}}, "must be a finite number"),
        ({"gpus": []}, "clock of GPU 0: a pair (timer, host time) is needed, got 0"),
        ({"gpus": [{}]}, "gpu 0: field 'device' must be there"),
        ({"gpus": [gpu()] * 2}, "gpus: devices must differ, got [0, 0]"),
        ({"gpus": [gpu(more=1)]}, "gpu 0: fields must be known"),
        ({"gpus": [gpu(device=-1)]}, "clock of GPU -1: device must lie in [0, "),
        ({"gpus": [gpu(device=1.5)]}, "gpu 0, device: must be an integer, got float"),
        ({"gpus": [gpu(name=None)]}, "gpu 0, name: must be a string"),
        ({"gpus": [gpu(timer_ns=7)]}, "gpu 0, timer_ns: must be a list"),
        ({"gpus": [gpu(timer_ns=[1, "2"])]}, "gpu 0, timer_ns: must be an integer, got str"),
        ({"gpus": [gpu(timer_ns=[1 << 63, 0])]}, "gpu 0, timer_ns: must fit in 64 bits"),
        ({"gpus": [gpu(timer_ns=[1])]}, "timer_ns and host_ns must pair, got 1 timers, 2 host"),
        ({"gpus": [gpu(host_ns=[5, 4])]}, "host_ns must not fall"),
        ({"gpus": [gpu(host_ns=[-5, 4])]}, "host_ns must be times in ns"),
        ({"gpus": [gpu(error_ns=float("inf"))]}, "gpu 0, error_ns: must be a finite number"),
        ({"gpus": [gpu(peer=0)]}, "peer must be another GPU of the run, or -1, got 0"),
        ({"gpus": [gpu(peer=3)]}, "peer must be another GPU of the run, or -1, got 3"),
        ({"gpus": [gpu(edge_cost_cycles=-1)]}, "edge_cost_cycles must be finite and not below 0"),
        ({"host": [["a", "a", 1, 5, 4, {}]]}, "start and end must be times in ns, in order"),
    ],
)
def test_each_wrong_field_is_refused_with_its_reason(
    tmp_path: Path, saved: bytes, change: dict[str, Any], message: str
) -> None:
    contents = members(saved)
    document = {**json.loads(contents["run.json"]), **change}
    contents["run.json"] = json.dumps(document).encode()
    assert message in refused(repacked(tmp_path / "bad.proton", contents))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"clock_bits": 16}, "clock_bits must be one of (32, 64), got 16"),
        ({"clock_bits": 64}, "buffer must be 6 blocks of"),
        ({"unit_warps": 0}, "unit_warps must lie in [1, 64], got 0"),
        ({"clock_bits": True}, "clock_bits: must be an integer, got bool"),
    ],
)
def test_each_wrong_field_of_a_kernel_is_refused_with_its_reason(
    tmp_path: Path, saved: bytes, change: dict[str, Any], message: str
) -> None:
    contents = members(saved)
    document = json.loads(contents["run.json"])
    (narrow,) = [entry for entry in document["kernels"] if entry["clock_bits"] == 32]
    narrow.update(change)
    contents["run.json"] = json.dumps(document).encode()
    assert message in refused(repacked(tmp_path / "bad.proton", contents))


@pytest.mark.parametrize("change", [{"origin_ns": -5}, {"origin_unix_ns": -5}, {"kernels": []}])
def test_each_error_of_a_file_names_it(
    tmp_path: Path, saved: bytes, change: dict[str, Any]
) -> None:
    contents = members(saved)
    contents["run.json"] = json.dumps({**json.loads(contents["run.json"]), **change}).encode()
    path = repacked(tmp_path / "bad.proton", contents)
    assert refused(path).startswith(f"{path}: ")


def test_a_device_that_no_gpu_has_is_refused(tmp_path: Path, saved: bytes) -> None:
    contents = members(saved)
    table = np.load(io.BytesIO(contents["launches.npy"])).reshape(-1, 12).copy()
    table[3, 11] = -1
    contents["launches.npy"] = npy(table.ravel())
    assert "launch 3 (add): device must lie in" in refused(repacked(tmp_path / "bad", contents))


def test_a_bomb_is_refused_before_it_is_unpacked(tmp_path: Path, saved: bytes) -> None:
    contents = {**members(saved), "buffers.npy": bytes(200 << 20)}
    path = repacked(tmp_path / "bad.proton", contents, zipfile.ZIP_DEFLATED)
    del contents
    tracemalloc.start()
    assert "content must be at most" in refused(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 << 20


@QUIET
@given(data=st.data())
def test_altered_files_load_or_are_refused(
    tmp_path: Path, saved: bytes, data: st.DataObject
) -> None:
    altered = bytearray(saved)
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(altered) - 1))
        altered[place] = data.draw(st.integers(0, 255))
    length = data.draw(st.one_of(st.just(len(altered)), st.integers(0, len(altered))))
    load(tmp_path / "bad.proton", bytes(altered[:length]))


@QUIET
@given(data=st.data())
def test_altered_members_load_or_are_refused(
    tmp_path: Path, saved: bytes, data: st.DataObject
) -> None:
    contents = members(saved)
    name = data.draw(st.sampled_from(sorted(contents)))
    member = bytearray(contents[name])
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(member) - 1))
        if data.draw(st.booleans()) and place + 8 <= len(member):
            extreme = data.draw(st.sampled_from([0, 1, (1 << 62), (1 << 63) - 1, (1 << 64) - 1]))
            struct.pack_into("<Q", member, place // 8 * 8, extreme)
        else:
            member[place] = data.draw(st.integers(0, 255))
    path = repacked(tmp_path / "bad.proton", {**contents, name: bytes(member)})
    load(path, path.read_bytes())


def load(path: Path, data: bytes) -> None:
    """Loads a file and builds all of its tables, or is told why not, of which file."""
    path.write_bytes(data)
    try:
        whole = Run.load(path)
        repr(whole), whole.frame, whole.marks, whole.losses, whole.launches, whole.summary()
    except TraceFormatError as error:
        said = str(error)
    else:
        said = str(whole.save(path.with_suffix(".pftrace")).with_suffix(path.suffix))
    assert said.startswith(str(path))


def test_a_record_written_by_hand_is_a_row(tmp_path: Path) -> None:
    record = Record(7_000_000_000_300, 7_000_000_000_600)
    launch = pack_launch(kernel(), (1, 1, 1), 2, [Written([[record]])])
    loaded = Run.load(Run(run([kernel()], [launch])).save(tmp_path / "run.proton"))
    assert loaded.frame.iloc[1][["start_ns", "dur_ns"]].tolist() == [100, 100]
