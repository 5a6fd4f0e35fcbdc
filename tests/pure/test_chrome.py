"""The Chrome JSON holds the run's slices and marks, exactly."""

import json
from decimal import Decimal
from pathlib import Path

import pytest
from synthetic import Record, Written, kernel, pack_launch, random_run, run, scopes, ticks

from proton.viewer import Run
from proton.viewer.chrome import microseconds


def nanoseconds(us: Decimal) -> int:
    return int(us * 1000)


def test_slices_and_marks_come_back(tmp_path: Path) -> None:
    whole = Run(random_run(31))
    text = whole.save(tmp_path / "run.json").read_text()
    events = json.loads(text, parse_float=Decimal)["traceEvents"]
    slices = [e for e in events if e["ph"] == "X"]
    assert [(e["name"], nanoseconds(e["ts"]), nanoseconds(e["dur"])) for e in slices] == list(
        whole.frame[["name", "start_ns", "dur_ns"]].itertuples(index=False, name=None)
    )
    for event, payload in zip(slices, whole.frame["payload"], strict=True):
        args = {key: value for key, value in event.get("args", {}).items() if key != "iteration"}
        assert {key: float(value) for key, value in args.items()} == (payload or {})
    marks = [e for e in events if e["ph"] == "i"]
    assert [nanoseconds(e["ts"]) for e in marks] == whole.marks["start_ns"].tolist()
    threads = {(e["pid"], e["tid"]) for e in events if e.get("name") == "thread_name"}
    assert {(e["pid"], e["tid"]) for e in slices + marks} == threads


def test_a_run_of_nothing_is_json(tmp_path: Path) -> None:
    text = Run(run([], [])).save(tmp_path / "run.json").read_text()
    assert json.loads(text)["traceEvents"] == []


def test_values_that_json_lacks_are_text(tmp_path: Path) -> None:
    owner = kernel(slots=2, table=scopes(2, 2))
    record = Record(ticks(1), ticks(2), 1, payload=(1, float("nan")))
    whole = Run(run([owner], [pack_launch(owner, (1, 1, 1), 2, [Written([[record]])])]))
    text = whole.save(tmp_path / "run.json").read_text()
    assert '"args":{"value0": 1, "value1": "nan"}' in text


@pytest.mark.parametrize(("ns", "text"), [(0, "0.000"), (1_234_567, "1234.567"), (-5, "-0.005")])
def test_nanoseconds_are_exact_decimals(ns: int, text: str) -> None:
    assert microseconds(ns) == text
