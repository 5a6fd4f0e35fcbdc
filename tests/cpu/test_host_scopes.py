"""What host scopes and sessions take comes back from every file; all else is refused at entry."""

import csv
import gzip
import json
import math
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as pb

import proton

KEPT = (
    True,
    np.bool_(False),
    0,
    -(1 << 63),
    (1 << 63) - 1,
    np.int8(-3),
    np.uint64((1 << 63) - 1),
    np.array(7),
    0.1,
    -0.0,
    5e-324,
    math.nan,
    math.inf,
    -math.inf,
    np.float16(2.5),
    np.float32(0.1),
    np.float64(1e308),
)
REFUSED = (None, "train", b"x", 1 << 63, -(1 << 63) - 1, np.uint64(1 << 63), 1j, [1], np.ones(1))


def plain(value: Any) -> int | float:
    return float(value) if isinstance(value, float | np.floating) else int(value)


def same(found: Any, wanted: int | float) -> bool:
    """Equal in type and value, NaN and the sign of 0 included."""
    return type(found) is type(wanted) and repr(found) == repr(wanted)


def annotations(path: Path) -> list[dict[str, Any]]:
    """Those of the host's slices, read as protobuf: SQL has no NaN."""
    trace = pb.Trace.FromString(gzip.decompress(path.read_bytes()))
    names = {e.iid: e.name for e in trace.packet[0].interned_data.debug_annotation_names}
    found = [
        {
            names[n.name_iid]: getattr(n, n.WhichOneof("value"))
            for n in p.track_event.debug_annotations
        }
        for p in trace.packet
        if p.track_event.type == pb.TrackEvent.TYPE_SLICE_BEGIN
    ]
    return [payload for payload in found if payload]


def test_every_payload_that_is_accepted_comes_back(
    tmp_path: Path, rng: np.random.Generator
) -> None:
    values = [*KEPT, *rng.integers(-(1 << 63), 1 << 63, 8), *rng.normal(size=8)]
    wanted = [plain(value) for value in values]
    with proton.profile("payloads") as run:
        for value in values:
            with proton.scope("epoch", **{"a b": 1, "v": value}):
                proton.mark("here", value)
            proton.enter_scope("step", v=value)
            proton.exit_scope("step")
    payloads = [{"value": w} for w in wanted] + [{"a b": 1, "v": w} for w in wanted]
    payloads += [{"v": w} for w in wanted]

    def check(found: list[dict[str, Any]]) -> None:
        key = lambda payload: (len(payload), "v" in payload)  # noqa: E731
        for group in ((1, False), (2, True), (1, True)):
            ours = [p for p in found if key(p) == group]
            theirs = [p for p in payloads if key(p) == group]
            assert len(ours) == len(theirs)
            for a, b in zip(ours, theirs, strict=True):
                assert all(same(a[name], b[name]) for name in b), (a, b)

    check(list(run.frame["payload"]))
    again = proton.Run.load(run.save(tmp_path / "a.proton"))
    check(list(again.frame["payload"]))
    check(annotations(again.save(tmp_path / "a.pftrace.gz")))
    events = json.loads(again.save(tmp_path / "a.json").read_text())["traceEvents"]
    words = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
    check(
        [{name: words.get(v, v) for name, v in e["args"].items()} for e in events if e["ph"] == "X"]
    )
    with open(again.save(tmp_path / "a.csv")) as file:
        check(
            [
                eval(row["payload"], {"nan": math.nan, "inf": math.inf})
                for row in csv.DictReader(file)
            ]
        )


@pytest.mark.parametrize("recording", [False, True])
@pytest.mark.parametrize("value", [*REFUSED, Decimal(1)], ids=repr)
def test_other_payloads_are_refused_at_entry(value: Any, recording: bool) -> None:
    message = (
        r"(scope epoch|mark epoch), payload value must (be a number|fit in).*(float|int)\(\.\.\.\)"
    )
    if recording:
        proton.start()
    try:
        for call in (proton.scope, proton.enter_scope):
            with pytest.raises(ValueError, match=message):
                call("epoch", value=value)
        if value is not None:  # a mark without a value
            with pytest.raises(ValueError, match=message):
                proton.mark("epoch", value)
    finally:
        found = proton.finalize() if recording else None
    assert found is None or not len(found.frame)


@pytest.mark.parametrize("call", [proton.scope, proton.enter_scope, proton.exit_scope, proton.mark])
@pytest.mark.parametrize("name", [None, b"x", "", "a/b", "a + b", "\ud800"])
def test_names_of_scopes_that_no_file_holds_are_refused(call: Any, name: Any) -> None:
    with pytest.raises(ValueError, match="a scope's name is"):
        call(name)
    with pytest.raises(ValueError, match="a payload's name is Unicode text"):
        proton.scope("a", **{"\udfff": 1})


@pytest.mark.parametrize("name", [None, b"x", 3, "\ud800"])
def test_names_of_sessions_that_no_file_holds_are_refused(name: Any) -> None:
    with pytest.raises(proton.ProfileError, match="a session's name is"):
        proton.start(name)
    with pytest.raises(proton.ProfileError, match="no session is running"):
        proton.finalize()


@pytest.mark.parametrize("name", ["", "a/b", "\0 \n\x1b[31m", "Bücher 本 🙂", "x" * 5000])
def test_other_names_of_sessions_come_back(tmp_path: Path, name: str) -> None:
    with proton.profile(name) as run:
        pass
    for suffix in ("pftrace", "json", "csv"):
        run.save(tmp_path / f"a.{suffix}")
    assert proton.Run.load(run.save(tmp_path / "a.proton")).name == name
