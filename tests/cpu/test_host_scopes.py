"""What host scopes and sessions take comes back from every file; all else is refused at entry."""

import asyncio
import csv
import gzip
import json
import math
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as pb

import proton
import proton.language as tl

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


@proton.jit
def twice(x_ptr, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    with proton.scope("double"):
        tl.store(x_ptr + lanes, tl.load(x_ptr + lanes) * 2)


def launch() -> None:
    twice[(1,)](np.ones(64, np.float32), BLOCK=64)


def paths(run: Any, kind: str) -> list[str]:
    frame = run.frame
    return sorted(frame[frame["kind"] == kind]["scope"])


@pytest.mark.parametrize("recording", [False, True])
def test_tasks_that_take_turns_have_scopes_of_their_own(
    tmp_path: Path, rng: np.random.Generator, recording: bool
) -> None:
    turns = rng.integers(0, 4, (6, 3)).tolist()

    async def task(number: int) -> None:
        with proton.scope(f"task{number}", number=number):
            for step, waits in enumerate(turns[number]):
                proton.enter_scope(f"step{step}")
                for _ in range(waits):
                    await asyncio.sleep(0)
                launch()
                proton.exit_scope(f"step{step}")
            await asyncio.to_thread(launch)

    async def all_tasks() -> None:
        with proton.scope("all"):
            await asyncio.gather(*(task(number) for number in range(len(turns))))

    if not recording:
        asyncio.run(all_tasks())
        return
    launch()
    with proton.profile("tasks") as run:
        asyncio.run(all_tasks())
    steps = [f"all/task{n}/step{step}" for n in range(len(turns)) for step in range(3)]
    tasks = [f"all/task{n}" for n in range(len(turns))]
    assert paths(run, "host") == sorted(["all", *tasks, *steps])
    assert paths(run, "launch") == sorted(f"{path}/twice" for path in (*tasks, *steps))
    slices = {s.path: s for s in run.raw.host}
    for of in run.raw.launches:
        around = slices[of.path]
        assert around.start <= of.host_start <= of.host_end <= around.end
    assert slices["all/task3"].payload == {"number": 3}
    trace = pb.Trace.FromString(gzip.decompress(run.save(tmp_path / "a.pftrace.gz").read_bytes()))
    names = {e.iid: e.name for e in trace.packet[0].interned_data.event_names}
    edges: dict[int, list[str]] = {}  # of each track; those of a host nest on each
    begun = []
    for packet in sorted(trace.packet, key=lambda p: p.timestamp):
        event = packet.track_event
        if event.type == pb.TrackEvent.TYPE_SLICE_BEGIN:
            begun.append(event.name or names[event.name_iid])
            edges.setdefault(event.track_uuid, []).append(begun[-1])
        elif event.type == pb.TrackEvent.TYPE_SLICE_END:
            edges[event.track_uuid].pop()
    assert not any(edges.values())
    assert {f"task{n}" for n in range(len(turns))} <= set(begun)


def test_generators_that_take_turns_end_their_scopes_in_any_order() -> None:
    def batches(name: str, count: int) -> Iterator[int]:
        with proton.scope(name):
            for number in range(count):
                launch()
                yield number

    with proton.profile("generators") as run:
        for _ in zip(batches("long", 4), batches("short", 2), strict=False):
            with proton.scope("step"):
                launch()
        launch()
    assert [path for path in paths(run, "host") if path.endswith("step")] == ["long/short/step"] * 2
    assert paths(run, "launch")[-1] == "twice"
    assert {s.name for s in run.raw.host} >= {"long", "short", "step"}


def test_an_exception_leaves_the_scopes_that_statements_opened() -> None:
    @proton.scope("block")
    def opens(name: str, *, fails: bool) -> None:
        proton.enter_scope(name)
        if fails:
            raise KeyError

    with proton.profile("left") as run:
        with pytest.raises(KeyError):
            opens("statement", fails=True)
        launch()
        with pytest.raises(proton.ProfileError, match="the innermost open host scope is 'open'"):
            opens("open", fails=False)
    assert paths(run, "host") == ["block", "block", "block/open", "block/statement"]
    assert paths(run, "launch") == ["twice"]


def test_a_scope_may_be_a_coroutines_that_another_task_ends() -> None:
    async def waits() -> Any:
        with proton.scope("waits"):
            yield 1
            launch()

    async def main() -> None:
        generator = waits()
        await asyncio.create_task(anext(generator))
        proton.enter_scope("main")
        with pytest.raises(StopAsyncIteration):
            await asyncio.create_task(anext(generator))
        proton.exit_scope("main")

    with proton.profile("ends") as run:
        asyncio.run(main())
    assert paths(run, "host") == ["main", "waits"]


def test_a_decorated_coroutine_or_generator_is_in_its_scope_until_it_ends() -> None:
    @proton.scope("awaits", turns=2)
    async def awaits() -> int:
        await asyncio.sleep(0)
        launch()
        return 3

    @proton.scope("yields")
    def yields() -> Iterator[int]:
        launch()
        assert (yield 4) is None
        launch()

    with proton.profile("decorated") as run:
        assert asyncio.run(awaits()) == 3
        assert list(yields()) == [4]
    assert awaits.__name__ == "awaits"
    assert paths(run, "host") == ["awaits", "yields"]
    assert paths(run, "launch") == ["awaits/twice", "yields/twice", "yields/twice"]
    with pytest.raises(TypeError, match=r"asynchronous generator .*ticks: write `with .*'s'"):

        @proton.scope("s")
        async def ticks() -> Any:
            yield 1
