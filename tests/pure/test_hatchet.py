"""Hatchet files of Triton's Proton: findings from sums, and comparisons of them."""

import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from test_cli import call
from test_documents import SCHEMAS, faults

from proton.viewer.tables.msgpack import packed

H200 = {"arch": "90", "bus_width": 6144, "clock_rate": 1980000, "memory_clock_rate": 3201000,
        "num_sms": 132}  # fmt: skip
ADA = {"arch": "89", "bus_width": 384, "clock_rate": 2625000, "memory_clock_rate": 10501000,
       "num_sms": 128}  # fmt: skip
Viewer = Callable[..., tuple[int, str, str]]


@pytest.fixture
def viewer(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Viewer:
    monkeypatch.setenv("COLUMNS", "400")
    return lambda *words: call(monkeypatch, capsys, *words)


def frame(name: str, inner: Sequence[object] = (), **metrics: float) -> dict[str, object]:
    shown = {"name": name, "type": "function"}
    return {"frame": shown, "metrics": metrics, "children": list(inner)}


def kernel(name: str, us: float, launches: int, device: str = "0", **work: float) -> Any:
    made: Any = frame(name, (), **{"time (ns)": round(1000 * us), "count": launches}, **work)
    made["metrics"] |= {"device_id": device, "device_type": "CUDA"}
    return made


def written(path: Path, *inner: object) -> Path:
    path.write_text(json.dumps([frame("ROOT", inner), {"CUDA": {"0": H200, "1": ADA}}]))
    return path


@pytest.mark.parametrize("value", [math.nan, math.inf, -5.0])
def test_what_is_no_time_is_none(viewer: Viewer, tmp_path: Path, value: float) -> None:
    odd = kernel("odd", 10, 4, loss=value)
    odd["metrics"]["time (ns)"] = value
    file = written(tmp_path / "a.hatchet", frame("model", [odd, kernel("copy", 1000, 20)]))
    status, out, err = viewer("explain", file, "--json")
    document = json.loads(out)
    assert (status, err, [each["kernel"] for each in document["kernels"]]) == (0, "", ["copy"])
    assert document["time_ns"] == 1e6
    status, out, _ = viewer("metrics", file, "--json")
    assert (status, "NaN" in out, "Infinity" in out) == (0, False, False)
    status, out, err = viewer("history", file, "--stat", "mean")
    assert (status, err, "odd" in out, "copy" in out) == (0, "", False, True)


def test_findings_of_sums(viewer: Viewer, tmp_path: Path) -> None:
    """The peaks by hand: 2 x 3.201 GHz x 768 bytes = 4,917 GB/s; 132 SMs x 4,096 operations of
    16 bits x 1.98 GHz = 1,070.5 TFLOP/s, twice that of 8 bits, a 16th of fp32 without tensor
    cores."""
    file = written(
        tmp_path / "a.hatchet",
        frame("model", [
            kernel("matmul", 4000, 40, flops16=1e12, bytes=4e9),
            frame("mlp", [kernel("gelu", 900, 30), kernel("up", 100, 1)], bytes=2e9, flops8=2e11),
            kernel("copy", 1000, 20, bytes=4.5e9),
            kernel("add", 5000, 2500, flops32=1e9),
        ]),
        frame("again", [kernel("matmul", 4000, 40, flops16=1e12)]),
        kernel("rare", 8, 4),
    )  # fmt: skip
    status, out, err = viewer("explain", file, "--json")
    document = json.loads(out)
    assert (status, err, list(faults(document, SCHEMAS))) == (0, "", [])
    found = {f["kernel"]: f for f in document["findings"]}
    assert [(f["kernel"], f["rule"]) for f in document["findings"]] == [
        ("matmul", "utilization"), ("mlp", "utilization"), ("add", "launch-gaps"),
    ]  # fmt: skip
    matmul = found["matmul"]
    used = matmul["numbers"]
    assert used["tflop16_per_s_percent"] == pytest.approx(100 * 250 / 1070.5, rel=1e-3)
    assert used["gbytes_per_s_percent"] == pytest.approx(100 * 500 / 4917, rel=1e-3)
    assert matmul["gain_ns"] == pytest.approx(8e6 * (1 - 250 / 1070.5 / 0.8), rel=1e-3)
    assert matmul["visits"] == 80
    mlp = found["mlp"]["numbers"]
    assert mlp["gbytes_per_s_percent"] == pytest.approx(100 * 2000 / 4917, rel=1e-3)
    assert mlp["tflop8_per_s_percent"] == pytest.approx(100 * 200 / 2141, rel=1e-3)
    assert "2500 launches take 2 us each" in found["add"]["sentence"]
    assert (found["add"]["gain_ns"], found["add"]["between_launches"]) == (0, True)
    kernels = {each["kernel"]: each for each in document["kernels"]}
    assert kernels["matmul"]["launches"] == 80
    assert kernels["matmul"]["scopes"] == [["in model", 50.0], ["in again", 50.0]]
    assert document["time_ns"] == sum(each["time_ns"] for each in document["kernels"]) == 15_008_000
    needs = {each["option"] for each in document["unrecorded"]}
    assert {'data="trace"', 'backend="instrumentation", data="trace"'} <= needs
    status, out, _ = viewer("explain", file)
    assert out.startswith("1. matmul: nothing of the chip is busy")
    assert "80 launches, 8 ms; in model 50 %, in again 50 %" in out


def test_what_a_file_cannot_say_is_said(viewer: Viewer, tmp_path: Path) -> None:
    file = written(tmp_path / "none.hatchet", kernel("matmul", 4000, 40))
    assert 'hook="triton" with launch_metadata' in viewer("explain", file)[1]
    # Peaks of operations are known of one chip, those of memory from the file's clocks.
    file = written(tmp_path / "ada.hatchet", kernel("mm", 4000, 4, "1", flops16=1e12, bytes=1e9))
    status, out, err = viewer("explain", file)
    assert (status, "mm: the most that CUDA 1 does of flops16 is not known" in err) == (0, True)
    assert "gbytes/s 25 %" in out  # 250 of 2 x 10.501 GHz x 48 bytes = 1,008
    # Of work of several devices the part of each is not known; of one without facts no peak is.
    both = frame("both", [kernel("a", 900, 1), kernel("b", 900, 1, "1")], bytes=1e6)
    file = written(tmp_path / "both.hatchet", both, kernel("c", 900, 1, "7", bytes=1e6))
    _, out, err = viewer("explain", file)
    assert "no finding" in out
    assert "c: the most that CUDA 7 does of bytes is not known" in err
    file.write_text(json.dumps([frame("ROOT", [frame("k", cycles=4, count=1)])]))
    status, out, err = viewer("explain", file)
    assert status == 0
    assert "no finding: no launch was recorded" in out
    assert "no frame has time (ns); there is cycles" in err
    for content in ("[]", "[1, 2]", '[{"frame": {"name": "a"}, "metrics": {}}, 3]', "[nothing"):
        file.write_text(content)
        status, _, err = viewer("explain", file)
        assert (status, "is no Hatchet file" in err) == (2, True), content
    assert "diff says what differs" in viewer("explain", file, "--against", file)[2]


def test_files_of_messagepack_are_read_alike(viewer: Viewer, tmp_path: Path) -> None:
    file = written(tmp_path / "a.hatchet", frame("model", [kernel("matmul", 4000, 40, bytes=4e9)]))
    other = tmp_path / "b.hatchet_msgpack"
    other.write_bytes(packed(json.loads(file.read_text())))
    for words in (("-m", "time/us,count,gbyte/s"), ("explain",)):
        shown = viewer(*words, file)
        assert shown[0] == 0
        assert "matmul" in shown[1]
        assert viewer(*words, other) == (0, shown[1].replace("a: ", "b: "), shown[2])
    status, out, _ = viewer("diff", file, other, "--stat", "mean")
    assert status == 0
    assert "matmul" in out
    other.write_bytes(b"\x92\x80")
    status, _, err = viewer("-m", "count", other)
    assert status == 2
    assert "b.hatchet_msgpack: is no Hatchet file: Unpack failed: incomplete input" in err


def test_files_are_compared_and_gated(viewer: Viewer, tmp_path: Path) -> None:
    sides = [tmp_path / "was", tmp_path / "is"]
    for slower, folder in zip((1.0, 1.2), sides, strict=True):
        folder.mkdir()
        for n in range(6):
            made = (kernel("matmul", slower * 4000 + n, 40), kernel("add", 100 + n, 9))
            written(folder / f"{n}.hatchet", *made)
    mean = "stat=mean, max_regression=5%"
    words = ("check", sides[1], "--baseline", sides[0], "--json", "--hold")
    status, out, _ = viewer(*words, f"kernel=matmul, {mean}")
    (finding,) = json.loads(out)["findings"]
    assert (status, finding["status"]) == (1, "regression")
    assert viewer(*words, f"kernel=add, {mean}")[0] == 0
    assert viewer(*words, "kernel=add, stat=count, max_ns=9")[0] == 0
    assert viewer(*words, "kernel=add, stat=count, max_ns=8")[0] == 1
    status, out, _ = viewer("diff", *sides, "--stat", "mean", "--json")
    assert json.loads(out)["changes"][0]["ratio"]["value"] == pytest.approx(1.2, rel=0.01)
    # What sums cannot answer is an error that says so.
    for hold in ("max_lost=0", "kernel=matmul, max_spills=0", "scope=x, max_visits=3"):
        status, _, err = viewer(*words, hold)
        assert (status, "limits of structure need a run" in err) == (2, True)
    assert "choose count, total, self, mean, not p50" in viewer(*words, "max_regression=5%")[2]
