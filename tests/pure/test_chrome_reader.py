"""Chrome traces as runs: ours against the run that they were written from, and Triton's against
what a writer of its format was given."""

import json
import os
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import faults
import pytest
from test_cli import call

from proton.trace.errors import TraceFormatError
from proton.trace.model import RawRun
from proton.viewer import Run

Event = dict[str, Any]
COLUMNS = ["kernel", "program", "sm", "warp", "scope", "iteration", "start_ns", "dur_ns"]


def slices(run: Run) -> list[tuple[object, ...]]:
    """The slices of kernels, in one order."""
    frame = run.frame[run.frame["kind"] == "scope"]
    return sorted(frame[COLUMNS].astype(object).itertuples(index=False, name=None), key=str)


@pytest.mark.parametrize(
    "raw",
    [
        faults.gpu(faults.loop(stages=2, softmax=30), auto=[]),
        faults.gpu(faults.barriers(200), lengths=[5000] * 5 + [9000], auto=[]),
        faults.gpu(faults.ring(2), signature="x: *fp32, BLOCK=7"),
        faults.cpu([90_000, 40_000, 7_000], launches=3),
    ],
    ids=["loop", "barriers", "roles", "cpu"],
)
def test_our_own_traces_come_back(raw: RawRun, tmp_path: Path) -> None:
    run = Run(raw)
    found = Run.load(run.save(tmp_path / "run.chrome_trace", format="chrome"))
    assert slices(found) == slices(run)
    for name in ("kernel", "start_ns", "dur_ns", "programs"):
        assert found.launches[name].tolist() == run.launches[name].tolist(), name
    signatures = [kernel.options.get("signature", "") for kernel in run.kernels]
    assert [k.options.get("signature", "") for k in found.kernels] == signatures


def test_times_of_a_trace_are_as_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It does not say what recording cost, so nothing is subtracted."""
    raw = faults.gpu(faults.loop(stages=2))
    gpus = [replace(gpu, slice_cost_cycles=9.0, edge_cost_cycles=4.0) for gpu in raw.gpus]
    run = Run(replace(raw, gpus=gpus))
    trace = run.save(tmp_path / "run.chrome_trace", format="chrome")
    own = run.save(tmp_path / "run.proton")
    for file, said in ((own, "less the cost of recording"), (trace, "as measured")):
        assert f"durations {said}" in call(monkeypatch, capsys, "stats", file)[1]
        assert f"scopes, {said}" in call(monkeypatch, capsys, "summary", file)[1]
        assert f"scopes, {said}" in Run.load(file).summary()._repr_html_()


def of_ctas(launches: list[tuple[str, dict[tuple[int, int], dict[int, list[Any]]]]]) -> Event:
    """What Triton's Proton writes of scopes in kernels: by SM, CTA and warp; of each launch
    `{(sm, cta): {warp: [(name, start, end), ...]}}`."""
    events = []
    for kernel, ctas in launches:
        for (sm, cta), warps in sorted(ctas.items()):
            for warp, work in sorted(warps.items()):
                for name, start, end in work:
                    events.append({
                        "cname": "good", "name": name, "cat": kernel, "ph": "X",
                        "pid": f"{kernel} Core{sm} CTA{cta}", "tid": f"warp {warp} (line 0)",
                        "ts": start / 1000, "dur": (end - start) / 1000,
                        "args": {"Finalization Time (ns)": 90, "Frequency (MHz)": 1000.0,
                                 "call_stack": ["ROOT", "step", kernel]},
                    })  # fmt: skip
    return {"displayTimeUnit": "ns", "traceEvents": events}


def drawn(seed: int, slow: int = 0) -> list[Any]:
    """Two launches of a kernel, one of another, and one more of the first; CTA 0 is `slow`."""
    draws, now, found = random.Random(seed), 1000, []
    for kernel in ("matmul", "matmul", "add", "matmul"):
        ctas: dict[tuple[int, int], dict[int, list[Any]]] = {}
        for cta in range(6):
            for warp in (0, 1):
                at, work = now, []
                for _ in range(4):
                    inner = draws.randrange(100, 200) + slow * (cta == 0)
                    work += [("outer", at, at + inner + 40), ("load", at + 10, at + inner)]
                    at += inner + 40 + draws.randrange(20)
                ctas.setdefault((cta % 4, cta), {})[warp] = work
        found.append((kernel, ctas))
        now += 50_000
    return found


def write(path: Path, *documents: Event) -> Path:
    path.write_text("\n".join(map(json.dumps, documents)) + "\n")
    return path


def test_scopes_in_kernels_of_triton(tmp_path: Path) -> None:
    launches = drawn(1)
    run = Run.load(write(tmp_path / "matmul.chrome_trace", of_ctas(launches)))
    wanted = sorted(
        (
            kernel,
            cta,
            sm,
            warp,
            "outer" if name == "outer" else "outer/load",
            -1,
            start,
            end - start,
        )
        for kernel, ctas in launches
        for (sm, cta), warps in ctas.items()
        for warp, work in warps.items()
        for name, start, end in work
    )
    assert sorted(slices(run)) == wanted
    assert run.launches["kernel"].tolist() == ["matmul", "matmul", "add", "matmul"]
    assert run.launches["programs"].tolist() == [6] * 4
    assert set(run.launches["scope"]) == {"step"}
    assert "cycles" in run.summary().facts["times in kernels"]
    assert (run.frame["error_ns"] <= 2).all()


def test_other_versions_of_triton_say_more(tmp_path: Path) -> None:
    """The unit behind the name of a CTA, and asynchronous events behind its warps."""
    launches = drawn(3)
    plain = of_ctas(launches)
    with_unit, with_events = (json.loads(json.dumps(plain)) for _ in range(2))
    for event in with_unit["traceEvents"]:
        event["pid"] += " [measure in clock cycle (assume 1GHz)]"
    added: list[Event] = []
    for number, event in enumerate(with_events["traceEvents"]):
        added.append(event)
        later = with_events["traceEvents"][number + 1 :]
        if not later or later[0]["pid"] != event["pid"]:  # the last of a CTA
            added.append({**event, "name": "copy", "cat": "async", "tid": "warp 0 (line 1)"})
            added.append({**event, "name": "full", "cat": "flow", "dur": 0})
    wanted = slices(Run.load(write(tmp_path / "a.chrome_trace", plain)))
    assert slices(Run.load(write(tmp_path / "b.chrome_trace", with_unit))) == wanted
    run = Run.load(write(tmp_path / "c.chrome_trace", {**plain, "traceEvents": added}))
    assert slices(run) == wanted
    assert run.summary().facts["asynchronous events"] == f"{4 * 6 * 2} left out"
    assert run.launches["programs"].tolist() == [6] * 4


def test_findings_and_the_gate_take_them(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    long = write(tmp_path / "long.chrome_trace", of_ctas(drawn(1, slow=3000)))
    status, out, _ = call(monkeypatch, capsys, "explain", long)
    assert status == 0
    assert "programs are unequal" in out
    sides = []
    for name, slow in (("was", 0), ("is", 100)):
        side = tmp_path / name
        side.mkdir()
        for number in range(6):
            file = write(side / f"{number}.chrome_trace", of_ctas(drawn(number, slow * 6)))
            os.utime(file, (10**9, 10**9))  # as an archive may leave them
        sides.append(side)
    rule = ("--hold", "kernel=matmul,scope=outer/load,stat=max,max_regression=5%")
    status, out, err = call(monkeypatch, capsys, "check", sides[1], "--baseline", sides[0], *rule)
    assert (status, "regression" in out) == (1, True), err
    status, out, _ = call(monkeypatch, capsys, "check", sides[0], "--baseline", sides[0], *rule)
    assert status == 0


STREAM = {
    "displayTimeUnit": "us",
    "traceEvents": [
        {"ph": "M", "pid": 0, "tid": 0, "name": "process_name", "args": {"name": "Trace"}},
        {"ph": "M", "pid": 0, "tid": 9, "name": "thread_name", "args": {"name": "CPU Thread 77"}},
        {"ph": "M", "pid": 0, "tid": 7, "name": "thread_name", "args": {"name": "GPU Stream 3"}},
        {"name": "step", "cat": "scope", "ph": "X", "pid": 0, "tid": 9, "ts": 0.0, "dur": 9.0,
         "args": {"call_stack": ["ROOT", "step"]}},
        {"name": "step: <loss>", "cat": "metric", "ph": "X", "pid": 0, "tid": 9, "ts": 1.0,
         "dur": 0.0, "args": {"call_stack": ["ROOT", "step"], "metrics": {"loss": 0.5}}},
        {"name": "add", "cat": "kernel", "ph": "X", "pid": 0, "tid": 7, "ts": 2.5, "dur": 1.25,
         "args": {"call_stack": ["ROOT", "step", "add"]}},
        {"name": "launch->kernel", "cat": "flow", "ph": "s", "pid": 0, "tid": 9, "ts": 1, "id": 4},
    ],
}  # fmt: skip


def test_kernels_of_triton(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """As 3.8 writes them, and as before: an object a stream, behind each other."""
    file = write(tmp_path / "new.chrome_trace", STREAM)
    run = Run.load(file)
    (launch,) = run.launches.to_dict("records")
    assert [launch[name] for name in ("kernel", "scope", "start_ns", "dur_ns")] == [
        "add", "step", 2500, 1250,
    ]  # fmt: skip
    host = run.frame[run.frame["kind"] == "host"]
    assert host[["scope", "thread", "dur_ns"]].values.tolist() == [
        ["step", 77, 9000], ["step: <loss>", 77, 0],
    ]  # fmt: skip
    assert host["payload"].tolist()[1] == {"loss": 0.5}
    kernels = [
        {"name": "add", "cat": "kernel", "ph": "X", "ts": at, "dur": 2.0, "tid": 1,
         "args": {"call_stack": ["ROOT", "add"]}} for at in (0.0, 8.0, 16.0)
    ]  # fmt: skip
    older = [{"displayTimeUnit": "us", "traceEvents": part} for part in (kernels[:2], kernels[2:])]
    run = Run.load(write(tmp_path / "old.chrome_trace", *older))
    assert run.launches["start_ns"].tolist() == [0, 8000, 16000]
    for words in (("summary",), ("explain",), ("launches",), ("stats", "--kind", "launch")):
        assert call(monkeypatch, capsys, words[0], file, *words[1:])[0] == 0, words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"traceEvents": []}', "has no kernel and no scope"),
        ('{"events": []}', "is no Chrome trace: no 'traceEvents'"),
        ('{"traceEvents": [{"ph": "X", "cat": "kernel", "name": "a"}]}', ": no 'ts'"),
        ('{"traceEvents": [1]}', "is no Chrome trace"),
        ('{"traceEvents": [', "is no Chrome trace"),
        ('{"traceEvents": [{"ph": "X", "name": "a (0)", "cat": "program", "pid": 1, "tid": 2, '
         '"ts": 0, "dur": 1, "args": {"launch": 7}}]}', "is no Chrome trace"),
    ],
)  # fmt: skip
def test_other_files_are_refused(text: str, words: str, tmp_path: Path) -> None:
    file = tmp_path / "x.chrome_trace"
    file.write_text(text)
    with pytest.raises(TraceFormatError, match=words):
        Run.load(file)
