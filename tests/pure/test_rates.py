"""Rates against SQL over the exported trace, and against Python, slice by slice."""

import json
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from synthetic import ORIGIN_NS, Record, Written, gpu_run, kernel, pack_launch, random_run, run
from synthetic import ticks as at
from typer.testing import CliRunner

from proton.base.errors import ProtonError
from proton.trace.model import HostSlice, PayloadField, RawRun, Scope
from proton.viewer import Run, stats
from proton.viewer.cli.app import app
from proton.viewer.cli.commands import stats as _adds_itself  # noqa: F401
from proton.viewer.tables import rates as peaks
from proton.viewer.tables.rates import parse_peaks
from tests.trace_processor import TraceProcessor

NAMES = {"value0": "bytes", "value1": "flops16"}
SQL = """
    with scopes as (
      select ts, ts + dur as done, {column} as key,
        extract_arg(arg_set_id, 'debug.bytes') as bytes,
        extract_arg(arg_set_id, 'debug.flops16') as flops
      from slice
      where extract_arg(arg_set_id, 'debug.cycles') is not null and category is not 'program'
    ), earlier as (
      select *, max(done) over (partition by key order by ts, done
                                rows between unbounded preceding and 1 preceding) as before
      from scopes
    )
    select key, sum(max(done - max(ts, coalesce(before, ts)), 0)) as busy,
      sum(bytes) as bytes, sum(flops) as flops
    from earlier where key is not null group by 1
"""


def with_work(raw: RawRun) -> RawRun:
    """The run with payload values that are work."""

    def renamed(scope: Scope) -> Scope:
        fields = (replace(field, name=NAMES.get(field.name, field.name)) for field in scope.payload)
        return replace(scope, payload=tuple(fields))

    raw.kernels = [replace(k, scopes=tuple(map(renamed, k.scopes))) for k in raw.kernels]
    return raw


def test_the_finding_has_the_part_of_a_peak_by_scope(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(peaks._KNOWN, "fast", {"gbytes/s": 1e9})
    raw = with_work(gpu_run(0))
    raw.gpus = [replace(gpu, name="fast") for gpu in raw.gpus]
    whole = Run(raw)
    found = {f.kernel: f for f in whole.findings if f.rule == "utilization"}
    table = whole.stats(("kernel", "scope"), "dur_ns", rates=True)
    wanted = table[table["%peak"].notna() & table["kernel"].isin(list(found))]
    assert len(wanted) == 2
    for row in wanted.to_dict("records"):
        finding = found[row["kernel"]]
        assert finding.numbers[f"{row['scope']}_percent"] == pytest.approx(row["%peak"])
        assert f"{row['scope']} {row['%peak']:.0f} %" in finding.sentence.partition("scopes")[2]


def same(found: float, wanted: float | None) -> bool:
    return bool(np.isnan(found)) if wanted is None else found == pytest.approx(wanted, rel=1e-9)


@pytest.mark.parametrize(
    ("by", "column"),
    [("name", "name"), ("launch", "extract_arg(arg_set_id, 'debug.launch')")],
)
def test_rates_are_those_of_sql_over_the_trace(
    tmp_path: Path, by: str, column: str, session_seed: int
) -> None:
    whole = Run(with_work(random_run(session_seed)))
    with TraceProcessor(whole.save(tmp_path / "run.pftrace")) as processor:
        wanted = {row["key"]: row for row in processor.query(SQL.format(column=column))}
    table = whole.stats(by, rates={"gbytes/s": 50, "tflop16/s": 2})
    assert set(table[by]) == set(wanted)
    assert any(row["bytes"] is not None for row in wanted.values())
    for row in table.to_dict("records"):
        of = wanted[row[by]]
        seconds = of["busy"] / 1e9
        rates = [
            None if work is None or not seconds else work / seconds / scale
            for work, scale in ((of["bytes"], 1e9), (of["flops"], 1e12))
        ]
        assert same(row["gbytes/s"], rates[0]), row
        assert same(row["tflop16/s"], rates[1]), row
        part = max(100 * (rate or 0) / peak for rate, peak in zip(rates, (50, 2), strict=True))
        assert same(row.get("%peak", np.nan), part if part > 0 else None), row


def test_a_value_that_all_warps_record_counts_once_and_devices_are_added_up(
    session_seed: int,
) -> None:
    whole = Run(with_work(gpu_run(session_seed)))
    rows = whole.frame[whole.frame["kind"] == "scope"].to_dict("records")
    units: dict[Any, set[int]] = defaultdict(set)
    for row in rows:
        units[row["launch"], row["program"], row["scope"]].add(row["unit"])
    work: dict[Any, float] = defaultdict(float)
    spans: dict[Any, list[tuple[int, int]]] = defaultdict(list)
    for row in rows:
        key, payload = row["kernel"], row["payload"] or {}
        number = len(units[row["launch"], row["program"], row["scope"]])
        if "bytes" in payload:
            work[key] += payload["bytes"] / number
        spans[key, row["device"]].append((row["start_ns"], row["start_ns"] + row["dur_ns"]))
    busy: dict[Any, int] = defaultdict(int)
    for (key, _), found in spans.items():
        latest = 0
        for start, end in sorted(found):
            busy[key] += max(end - max(start, latest), 0)
            latest = max(latest, end)
    by_kernel = ["kernel"]
    table = whole.stats(by_kernel, rates=True)
    assert max(map(len, units.values())) > 1
    assert "variant" not in table
    for row in table.to_dict("records"):
        wanted = work[row["kernel"]] / busy[row["kernel"]] if row["kernel"] in work else None
        assert same(row["gbytes/s"], wanted), row


def loading(work: tuple[str, ...] = ("bytes",)) -> Run:
    """Two programs that load 6000 bytes each, in 20 ns, of which 10 ns together."""
    fields = tuple(PayloadField(name=name, kind="int") for name in work)
    table = (Scope(name="load", path="load", payload=fields), Scope(name="rest", path="rest"))
    owner = kernel(table=table, slots=len(work))
    values = (6000,) * len(work)
    programs = [
        Written([[Record(at(start), at(start + 20), 0, payload=values), Record(at(40), at(50), 1)]])
        for start in (0, 10)
    ]
    return Run(run([owner], [pack_launch(owner, (2, 1, 1), 8, programs)]))


def test_columns_are_there_where_there_is_work_and_a_peak() -> None:
    table = loading().stats("scope", rates=True).set_index("scope")
    assert table["gbytes/s"]["load"] == pytest.approx(12000 / 30)
    assert np.isnan(table["gbytes/s"]["rest"])
    assert "%peak" not in table
    assert "gbytes/s" not in loading().stats("scope")
    known = loading().stats("scope", rates={"gbytes/s": 800}).set_index("scope")
    assert known["%peak"]["load"] == pytest.approx(50)
    assert not [c for c in Run(random_run(3)).stats("scope", rates=True) if "/s" in c]
    both = loading(("flops8", "flops")).stats("scope", rates={"tflop8/s": 1, "tflop/s": 2})
    assert both["tflop8/s"][0] == both["tflop/s"][0] == pytest.approx(0.4)
    assert both["%peak"][0] == pytest.approx(100 * (0.4 / 1 + 0.4 / 2)), "one after the other"


def test_metrics_of_host_scopes_are_the_work_of_the_launches_in_them() -> None:
    raw = loading().raw
    first = raw.launches[0]
    second = replace(first, host_start=ORIGIN_NS + 5000, host_end=ORIGIN_NS + 8000)
    first.host_start, first.host_end = ORIGIN_NS + 1000, ORIGIN_NS + 2000
    raw.launches = [first, second]

    def scope(name: str, start: int, end: int, thread: int, **payload: int) -> HostSlice:
        times = {"start": ORIGIN_NS + start, "end": ORIGIN_NS + end}
        return HostSlice(name=name, path=name, thread=thread, payload=payload, **times)

    raw.host = [
        scope("both", 0, 9000, first.thread, flops=8_000_000),
        scope("one", 500, 2500, first.thread, flops=1_000_000, bytes=50),
        scope("elsewhere", 0, 9000, first.thread + 1, flops=10**12),
    ]
    table = Run(raw).stats("launch", "dur_ns", "launch", rates=True).set_index("launch")
    assert table["total"].to_dict() == {0: 1000, 1: 3000}
    assert table["tflop/s"][0] == pytest.approx((2e6 + 1e6) / 1000 / 1e3)
    assert table["tflop/s"][1] == pytest.approx(6e6 / 3000 / 1e3)
    assert table["gbytes/s"][0] == pytest.approx(50 / 1000)
    whole = Run(raw).stats("kernel", "dur_ns", "launch", rates=True)
    assert whole["tflop/s"][0] == pytest.approx(9e6 / 4000 / 1e3), "nothing is lost"


def test_metrics_of_tasks_that_take_turns_are_the_work_of_their_own_launches() -> None:
    raw = loading().raw
    launch = raw.launches[0]
    raw.launches, raw.host = [], []
    for number, name in enumerate(("first", "second")):
        start, end = ORIGIN_NS + 100 * number, ORIGIN_NS + 9000 + 100 * number
        scope = HostSlice(
            name=name, path=name, thread=launch.thread, start=start, end=end,
            payload={"bytes": 3000 * (number + 1)},
        )  # fmt: skip
        raw.host.append(scope)
        times = {"host_start": start + 2000, "host_end": start + 3000}
        raw.launches.append(replace(launch, path=name, **times))
    table = Run(raw).stats("launch", "dur_ns", "launch", rates=True).set_index("launch")
    assert table["gbytes/s"].to_dict() == {0: 3, 1: 6}


def test_a_launch_of_a_gpu_whose_call_alone_was_timed_has_no_rate() -> None:
    raw = loading().raw
    raw.kernels = [replace(raw.kernels[0], target="cuda:90", strategy=None, scopes=())]
    raw.launches[0].buffer, raw.launches[0].capacity = np.zeros(0, np.uint8), 0
    thread = raw.launches[0].thread
    raw.host = [
        HostSlice(name="s", path="s", thread=thread, start=0, end=1 << 60, payload={"bytes": 9})
    ]
    table = Run(raw).stats("kernel", kind="launch", rates=True)
    assert len(table) == 1
    assert "gbytes/s" not in table


@pytest.mark.parametrize(
    ("name", "gbytes"),
    [
        ("NVIDIA H200", 4800),
        ("rank1.proton: NVIDIA H100 PCIe", 2000),  # of a merged run
        ("NVIDIA H100 80GB HBM3 MIG 1g.10gb", None),  # a part of one
        ("NVIDIA X1", None),
    ],
)
def test_a_known_gpu_has_its_peak(name: str, gbytes: float | None) -> None:
    raw = with_work(gpu_run(7))
    raw.gpus = [replace(gpu, name=name) for gpu in raw.gpus]
    table = Run(raw).stats("scope", rates=True)
    if gbytes is None:
        assert "%peak" not in table
        return
    some = table[table["gbytes/s"] > 0]
    assert len(some)
    assert some["%peak"].to_numpy() == pytest.approx(100 * some["gbytes/s"].to_numpy() / gbytes)


def test_the_command_prints_sorts_and_exports_them(tmp_path: Path) -> None:
    path = str(loading().save(tmp_path / "run.proton"))

    def call(*options: str) -> Any:
        words = ["stats", path, "--by", "scope", *options]
        return CliRunner(env={"COLUMNS": "200"}).invoke(app, words)

    shown = call("--peak", "gbytes/s=800", "--sort", "%peak")
    assert shown.exit_code == 0, shown.output
    load, rest = (
        line for line in shown.output.splitlines() if line.strip()[:4] in ("load", "rest")
    )
    assert load.split()[-2:] == ["400", "50"]
    assert "nan" not in rest
    rows = json.loads(call("--format", "json").output)["rows"]
    assert [row["gbytes/s"] for row in rows] == [pytest.approx(400), None]
    csv = call("--format", "csv", "--tree").output.splitlines()
    assert csv[0].endswith(",gbytes/s")
    wrong = call("--sort", "tflop16/s")
    assert (wrong.exit_code, "flops16" in wrong.output) == (2, True)
    assert call("--kind", "launch", "--tree").exit_code == 2
    assert call("--peak", "gbyte/s=1").exit_code == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("gbyte/s=3", r"got 'gbyte/s'; did you mean gbytes/s\?"),
        ("gbytes/s", "the peak of gbytes/s is a number above 0, got ''"),
        ("gbytes/s=0", "got '0'"),
        ("tflop16/s=nan", "got 'nan'"),
    ],
)
def test_a_peak_that_is_none_is_refused(text: str, message: str) -> None:
    with pytest.raises(ProtonError, match=message):
        parse_peaks(text)
    assert parse_peaks("gbytes/s=4.8e3, tflop16/s=989,") == {"gbytes/s": 4800, "tflop16/s": 989}


def test_records_and_frame_have_the_same_rates() -> None:
    whole = Run(with_work(gpu_run(8, mixed=True)))
    by = ["launch", "scope"]
    ours = whole.stats(by, rates=True).drop(columns="%peak", errors="ignore")
    ours = ours.sort_values(by, ignore_index=True)
    theirs = stats(whole.frame, by, peaks={}).sort_values(by, ignore_index=True)
    assert "gbytes/s" in ours
    pd.testing.assert_frame_equal(ours, theirs, check_dtype=False, check_categorical=False)
