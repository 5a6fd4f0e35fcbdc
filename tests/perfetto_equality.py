"""A run's Perfetto trace against its tables, by Perfetto's own trace processor."""

import itertools
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from proton.trace.wire import RecordKind
from proton.viewer import Run
from proton.viewer.tables.labels import gpu_name, program_name, sm_name
from tests.trace_processor import TraceProcessor

SLICES = """
    select s.id, s.ts, s.dur, s.name, s.category, s.depth, s.parent_id, s.arg_set_id,
           t.id as track, t.name as track_name, p.name as place
    from slice s join track t on s.track_id = t.id left join track p on t.parent_id = p.id
    order by s.id
"""
TRACKS = "select id, name, parent_id from track"
FLOWS = """
    select a.category as source, b.category as target, a.name as source_name, b.name as target_name,
           a.ts as source_ts, b.ts as target_ts
    from flow join slice a on a.id = flow.slice_out join slice b on b.id = flow.slice_in
"""
COUNTERS = """
    select p.name as unit, t.name as name, c.ts as ts, c.value as value
    from counter c join track t on c.track_id = t.id join track p on t.parent_id = p.id
"""
ARGS = """
    select arg_set_id, key, int_value, real_value, string_value from args where key glob 'debug.*'
"""


def read_back(path: Path) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The slices of a trace, each with its args and the names of its track and of what that lies
    below, and the importer's complaints."""
    with TraceProcessor(path) as processor:
        slices = processor.query(SLICES)
        args: dict[int, dict[str, Any]] = {}
        for row in processor.query(ARGS):
            values = (row[f"{kind}_value"] for kind in ("int", "real", "string"))
            value = next(value for value in values if value is not None)
            args.setdefault(row["arg_set_id"], {})[row["key"].removeprefix("debug.")] = value
        tracks = {row["id"]: row for row in processor.query(TRACKS)}
        complaints = processor.complaints()
    for row in slices:
        row["args"] = args.get(row["arg_set_id"], {})
        row["path"] = ()
        track = row["track"]
        while track is not None:
            row["path"] = (tracks[track]["name"], *row["path"])
            track = tracks[track]["parent_id"]
    return slices, complaints


def places(run: Run) -> dict[tuple[int, int], tuple[str, ...]]:
    """The path of the place of each program, by launch and program."""
    found = {}
    for row in run.programs.to_dict("records"):
        place: tuple[str, ...] = (f"thread {row['thread']}",)
        if row["device"] >= 0:
            gpu = gpu_name(run.raw, row["device"])
            place = gpu, sm_name(row["sm"]), f"slot {row['slot']}"
        found[row["launch"], row["program"]] = place
    return found


def unit_of(run: Run, row: dict[str, Any], unit: int) -> tuple[str, ...]:
    """What the path of a unit has beyond its program's."""
    kernel = run.kernels[run.raw.launches[row["launch"]].kernel]
    if row["device"] < 0:
        return ()
    first, count = unit * kernel.unit_warps, kernel.unit_warps
    warps = f"warp {first}" if count == 1 else f"warps {first}-{first + count - 1}"
    return (f"{kernel.roles[unit]}: {warps}" if kernel.roles else warps,)


def numbers(row: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: row[name] for name in names if row[name] >= 0}


def host_name(run: Run, ident: int) -> str:
    """A host thread by its place in the order of what threads did first, or by a small ident."""
    did = [(launch.host_start, launch.thread) for launch in run.raw.launches]
    did += [(s.start, s.thread) for s in run.raw.host if s.device < 0]
    order = list(dict.fromkeys(thread for _, thread in sorted(did)))
    return f"host thread {ident if ident < 1 << 32 else order.index(ident)}"


def expected(run: Run) -> Iterator[tuple[Any, ...]]:
    """What the trace must hold, out of the run's tables."""
    where, origin, clocks = places(run), run.raw.origin_ns, run.launches["clock"]
    pieces = run.frame["visit"].value_counts()
    for table, instant in ((run.frame, False), (run.marks, True)):
        for row in table.to_dict("records"):
            args, category = dict(row["payload"] or {}), row.get("kind")
            track: tuple[str, ...] = ()
            if row["program"] >= 0:
                track = where[row["launch"], row["program"]] + unit_of(run, row, row["unit"])
                timed = () if instant else ("cycles",)
                own = numbers(row, "launch", "program", *timed)
                own |= {"error_ns": math.ceil(row["error_ns"])} | numbers(row, "iteration")
                if not instant and pieces[row["visit"]] > 1:
                    own["visit"] = row["visit"]
                args = own | args
                category = "mark" if instant else "fused" if row["fused"] else None
            elif row["launch"] < 0 and row["device"] >= 0:
                track = gpu_name(run.raw, row["device"]), f"stream {row['thread']}"
            elif row["launch"] >= 0 and clocks[row["launch"]] == "gpu":
                track = (gpu_name(run.raw, row["device"]),)
            else:
                track = (host_name(run, row["thread"]),)
                track += ("compilations",) * (category == "compile")
            duration = 0 if instant else row["dur_ns"]
            items = () if category == "launch" else tuple(args.items())
            yield track, row["start_ns"] + origin, duration, row["name"], category, items


def expected_programs(run: Run) -> Iterator[tuple[Any, ...]]:
    """The slices of programs; one a unit on the CPU, where they lie around its records."""
    where = places(run)
    for row in run.programs.to_dict("records"):
        launch = run.raw.launches[row["launch"]]
        kernel = run.kernels[launch.kernel]
        name = program_name(kernel, launch.grid, row["program"])
        start = row["start_ns"] + run.raw.origin_ns
        for _ in range(kernel.units if row["device"] < 0 else 1):
            place = where[row["launch"], row["program"]]
            yield place, start, row["dur_ns"], name, "program", ()


def expected_events(run: Run) -> Iterator[tuple[Any, ...]]:
    """The slices of events that the trace must hold, out of the run's table."""
    where = places(run)
    for row in run.events.to_dict("records"):
        track = where[row["launch"], row["program"]] + unit_of(run, row, row["start_unit"])
        track = (*track[:-1], f"{track[-1]} events")
        start = row["start_ns"] + run.raw.origin_ns
        yield track, start, row["dur_ns"], row["name"], "event", ()


def expected_flights(run: Run) -> Iterator[tuple[Any, ...]]:
    """The slices of asynchronous work that the trace must hold."""
    where = places(run)
    for row in run.flights.to_dict("records"):
        track = where[row["launch"], row["program"]] + unit_of(run, row, row["start_unit"])
        track = (*track[:-1], f"{track[-1]} {row['queue']}")
        start = row["start_ns"] + run.raw.origin_ns
        args = numbers(row, "iteration") | {"wait_ns": row["wait_ns"]}
        yield track, start, row["dur_ns"], row["name"], "flight", tuple(args.items())


def expected_asked(run: Run) -> Iterator[tuple[str, str, int, int]]:
    """A flow to each thing that an operator asked a GPU for: from the shortest that was under way
    on the thread when it was asked for."""
    for slice_ in run.raw.host:
        around = [
            s
            for s in run.raw.host
            if s.kind == "operator"
            and s.thread == slice_.issuer
            and s.start <= slice_.issued <= s.end
        ]
        if around:
            asker = min(around, key=lambda s: s.end - s.start)
            yield asker.kind, slice_.kind, asker.start, slice_.start


def found(slices: list[dict[str, Any]]) -> Iterator[tuple[Any, ...]]:
    """What the trace holds, in the same shape."""
    for row in slices:
        if row["category"] in ("run", "loss", "call", "edge"):
            continue
        args = {} if row["category"] in ("launch", "program") else row["args"]
        yield (
            row["path"],
            row["ts"],
            row["dur"],
            row["name"],
            row["category"],
            tuple(args.items()),
        )


def order(row: tuple[Any, ...]) -> tuple[str, ...]:
    return tuple(map(repr, row))


def check_nesting(slices: list[dict[str, Any]]) -> None:
    """A parent holds its child, and no two siblings or strangers of a track overlap."""
    by_id = {row["id"]: row for row in slices}
    for row in slices:
        parent = by_id.get(row["parent_id"])
        assert row["depth"] == (0 if parent is None else parent["depth"] + 1)
        if parent is not None:
            assert parent["track"] == row["track"]
            assert parent["ts"] <= row["ts"]
            assert row["ts"] + row["dur"] <= parent["ts"] + parent["dur"]
    siblings: dict[Any, list[tuple[int, int]]] = {}
    for row in slices:
        key = row["track"], row["parent_id"]
        siblings.setdefault(key, []).append((row["ts"], row["ts"] + row["dur"]))
    for edges in siblings.values():
        edges.sort()
        assert all(a[1] <= b[0] for a, b in itertools.pairwise(edges))


def check_edges(whole: Run, trace: Path, slices: list[dict[str, Any]]) -> None:
    """An instant at each edge of an event, and a flow between those of one that has a length."""
    records, origin = whole.records, whole.raw.origin_ns
    edges = records.kind >= RecordKind.EVENT_START
    names = [records.scopes[scope].name for scope in records.scope[edges].tolist()]
    times = (records.start_ns[edges] + origin).tolist()
    instants = [row for row in slices if row["category"] == "edge"]
    assert all(row["dur"] == 0 for row in instants)
    found_ = sorted((row["name"], row["ts"]) for row in instants)
    assert found_ == sorted(zip(names, times, strict=True))
    if not found_:
        return
    with TraceProcessor(trace) as processor:
        flows = [row for row in processor.query(FLOWS) if row["source"] == "edge"]
    events = whole.events[whole.events["dur_ns"] > 0]
    starts = events["start_ns"] + origin
    wanted = zip(events["name"], starts, starts + events["dur_ns"], strict=True)
    shown = ((row["source_name"], row["source_ts"], row["target_ts"]) for row in flows)
    assert sorted(shown) == sorted(wanted)
    assert all(row["target"] == "edge" for row in flows)


def check_flights(whole: Run, trace: Path) -> None:
    """A flow from each issue to each wait that retires it, and from piece to piece of a visit."""
    pieces = joined_pieces(whole)
    if not len(whole.flights) and not pieces:
        return
    with TraceProcessor(trace) as processor:
        flows = [row for row in processor.query(FLOWS) if row["source"] is None]
    table, origin = whole.flights, whole.raw.origin_ns
    waits = table["start_ns"] + table["dur_ns"] - table["wait_ns"]
    wanted = [*zip(table["start_ns"] + origin, waits + origin, strict=True), *pieces]
    # A flow leads from the earlier one: a wait of another unit may begin before the issue.
    shown = (sorted((row["source_ts"], row["target_ts"])) for row in flows)
    assert sorted(shown) == sorted(map(sorted, wanted))


def joined_pieces(whole: Run) -> list[tuple[int, int]]:
    """When each piece of a visit began, and the next one."""
    frame = whole.frame[whole.frame["kind"] == "scope"].sort_values("start_ns")
    return [
        (one + whole.raw.origin_ns, other + whole.raw.origin_ns)
        for _, starts in frame.groupby("visit")["start_ns"]
        for one, other in itertools.pairwise(starts.tolist())
    ]


def check_counters(whole: Run, trace: Path) -> None:
    """A counter has each payload value from where its slice or mark begins, one track a place."""
    wanted = []
    where = places(whole)
    for table, is_mark in ((whole.frame, False), (whole.marks, True)):
        for row in table[table["program"] >= 0].to_dict("records"):
            for field, value in (row["payload"] or {}).items():
                name = row["name"] if is_mark and field == "value" else f"{row['name']}.{field}"
                place = where[row["launch"], row["program"]] + unit_of(whole, row, row["unit"])
                start = row["start_ns"] + whole.raw.origin_ns
                wanted.append((place[-1], name, start, float(value)))
    wanted += expected_depths(whole)
    for row in whole.counters.to_dict("records"):
        start = row["start_ns"] + whole.raw.origin_ns
        wanted.append((gpu_name(whole.raw, row["device"]), row["counter"], start, row["value"]))
    with TraceProcessor(trace) as processor:
        rows = processor.query(COUNTERS)
    found_ = [(row["unit"], row["name"], row["ts"], row["value"]) for row in rows]
    assert sorted(map(repr, found_)) == sorted(map(repr, wanted))


def expected_depths(whole: Run) -> list[tuple[str, str, int, float]]:
    """How many flights of each queue of a unit are under way, wherever that changes."""
    where, found_ = places(whole), []
    keys = ["launch", "program", "start_unit", "queue"]
    for (launch, program, unit, queue), group in whole.flights.groupby(keys, observed=True):
        row = group.iloc[0]
        place = where[launch, program] + unit_of(whole, row, unit)
        begun, ended = group["start_ns"], group["start_ns"] + group["dur_ns"]
        for now in sorted({*begun, *ended}):
            depth = float(((begun <= now) & (ended > now)).sum())
            found_.append((place[-1], f"{queue} under way", now + whole.raw.origin_ns, depth))
    return found_


def check_flows(whole: Run, trace: Path) -> None:
    """From a launch of the CPU to the first program of it on each thread, from a call to a GPU's
    launch."""
    origin, table = whole.raw.origin_ns, whole.launches
    wanted = [
        ("call", "launch", row["host_start_ns"] + origin, row["start_ns"] + origin)
        for row in table[table["clock"] == "gpu"].to_dict("records")
    ]
    programs = whole.programs[whole.programs["device"] < 0]
    for (launch, _), group in programs.groupby(["launch", "thread"]):
        first = group["start_ns"].min() + origin
        wanted.append(("launch", "program", whole.raw.launches[launch].host_start, first))
    wanted += expected_asked(whole)
    with TraceProcessor(trace) as processor:
        flows = [row for row in processor.query(FLOWS) if row["source"] not in ("edge", None)]
    # a flow leads from the earlier one; random programs may begin before their launch
    found_ = [
        {(row["source"], row["source_ts"]), (row["target"], row["target_ts"])} for row in flows
    ]
    pairs = [{(source, a), (target, b)} for source, target, a, b in wanted]
    assert sorted(map(sorted, found_)) == sorted(map(sorted, pairs))


def assert_trace_equals_tables(whole: Run, trace: Path) -> None:
    """Writes `trace`; it loads without complaint and holds exactly the tables' slices: tracks,
    names, starts, durations, nesting, payloads and losses."""
    slices, complaints = read_back(whole.save(trace, counters=True))
    assert complaints == []
    wanted = [*expected(whole), *expected_programs(whole), *expected_events(whole)]
    wanted += expected_flights(whole)
    assert sorted(found(slices), key=order) == sorted(wanted, key=order)
    check_edges(whole, trace, slices)
    check_flights(whole, trace)
    check_counters(whole, trace)
    check_flows(whole, trace)
    check_nesting(slices)
    lost = [row for row in slices if row["category"] == "loss"]
    assert sum(row["args"]["lost"] for row in lost) == whole.totals.lost
    assert len(lost) == len(whole.losses)
    (summary,) = [row for row in slices if row["category"] == "run"]
    assert summary["name"] == whole.name
    assert summary["args"]["records_lost"] == whole.totals.lost
    calls = [(row["path"], row["ts"], row["dur"]) for row in slices if row["category"] == "call"]
    assert sorted(calls) == sorted(
        ((host_name(whole, x.thread),), x.host_start, x.host_end - x.host_start)
        for x, clock in zip(whole.raw.launches, whole.launches["clock"], strict=True)
        if clock == "gpu"
    )
    launched = [row["args"] for row in slices if row["category"] == "launch"]
    assert sorted(a["written"] for a in launched) == sorted(whole.launches["written"])
