"""Budgets of a timeline's structure: measured by hand on made kernels, and held."""

import json
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
from faults import (
    COPY,
    COPY_WAIT,
    MMA,
    REDUCE,
    SOFTMAX,
    barriers,
    cpu,
    gpu,
    loop,
    pieces,
    roles,
    tiles,
)
from sides import raw_run
from synthetic import Record, Written, kernel, pack_launch, run, ticks
from test_cli import call

from proton.base.symbols import shortened
from proton.pytest_plugin import _rules
from proton.trace.model import ROLES, PayloadField, RawRun, Scope
from proton.viewer import Run
from proton.viewer.compare import Budgets, Side, Status, check
from proton.viewer.compare.budget import Budget, BudgetError, budgets_of, parse
from proton.viewer.compare.measure import until_sure
from proton.viewer.compare.report import finding_table, junit, report_json
from proton.viewer.compare.structure import MEASURES, Asked, unknown
from proton.viewer.explain.subject import Subject
from proton.viewer.tables.critical import shares


def answer(name: str, raw: RawRun, **asked: object) -> float | str:
    (view,) = Subject(Run(raw)).kernels
    return MEASURES[name].worst(view, Asked(**asked))  # type: ignore[arg-type]


def measured(name: str, raw: RawRun, **asked: object) -> float | None:
    found = answer(name, raw, **asked)
    return None if isinstance(found, str) else found


def test_how_much_of_a_scope_others_hide() -> None:
    """Softmax runs while copies are under way, and never while a dot is."""
    raw = gpu(loop(stages=4, softmax=200, copy=5000))
    assert measured("min_overlap", raw, scope="softmax", hidden_by="dots") == 0
    copies = measured("min_overlap", raw, scope="softmax", hidden_by="copies")
    assert copies is not None
    assert 37 / 40 <= copies < 1  # the last three iterations have none under way
    assert measured("min_overlap", raw, scope="wait dot", hidden_by="dots") == 1
    assert measured("min_overlap", raw, scope="nothing", hidden_by="dots") is None


def test_work_that_was_not_recorded_hides_nothing_that_is_known() -> None:
    raw = gpu([[(SOFTMAX, 0, 100)]], auto=[])
    for work in ("copies", "dots"):
        found = answer("min_overlap", raw, scope="softmax", hidden_by=work)
        assert found == f'have no {work} on record (auto="{work}")'
    for auto in ("copies", "loads"):
        raw = gpu([[(SOFTMAX, 0, 100)]], auto=[auto])
        assert measured("min_overlap", raw, scope="softmax", hidden_by="copies") == 0


def test_what_hides_a_role_is_of_any_unit() -> None:
    raw = roles(4)
    for role in ("", "produce"):
        found = measured("min_overlap", raw, scope="softmax", hidden_by="reduce", role=role)
        assert found == 0.9
    copies = {"scope": "copies", "hidden_by": "reduce"}
    assert measured("min_overlap", raw, **copies, role="consume") is None
    assert measured("min_overlap", raw, **copies, role="produce") == measured(
        "min_overlap", raw, **copies)  # fmt: skip


def test_dots_that_a_unit_does_itself_hide_copies() -> None:
    raw = gpu([[(COPY, 0, 5), (MMA, 10, 100), (COPY_WAIT, 110, 10)]])
    assert measured("min_overlap", raw, scope="copies", hidden_by="dots") == pytest.approx(
        100 / 120
    )
    assert Run(raw).overlap["hidden"].tolist() == [pytest.approx(100 * 100 / 120)]


def test_warps_that_have_no_records_are_not_idle() -> None:
    """Of other roles, or since they were not sampled."""
    assert measured("max_imbalance", roles(4), scope="reduce") == pytest.approx(430 / 415)
    some = [unit if n < 2 else [] for n, unit in enumerate(barriers())]
    assert measured("max_imbalance", gpu(some), scope="reduce") == pytest.approx(1, abs=0.01)


def test_the_order_of_phases() -> None:
    raw = gpu(pieces(100), body=3)
    assert measured("order", raw, order=("scores", "softmax")) == 0
    assert measured("order", raw, order=("softmax", "scores")) == 20 * 8 * 5
    assert measured("order", raw, order=("no", "such")) is None


def test_the_order_of_phases_in_a_loop_that_begins_again() -> None:
    """The fourth of four iterations, the last of the second run, is the wrong way round."""
    unit = [(SOFTMAX, 0, 10), (REDUCE, 20, 10)]
    units = tiles([unit], 4)
    units[0][-2:] = [(REDUCE, 90, 5), (SOFTMAX, 95, 5)]
    for trips in (0, 2):
        raw = gpu(units, body=2, trips=trips)
        assert measured("order", raw, order=("softmax", "reduce")) == 8 * 5
    raw = gpu(tiles([unit], 4), body=2, trips=2)
    assert measured("order", raw, order=("softmax", "reduce")) == 0


def test_visits_are_counted_and_not_pieces() -> None:
    raw = gpu(pieces(100), body=3, launches=3)
    assert measured("max_visits", raw, scope="scores") == 20 * 8
    assert measured("min_visits", raw, scope="gone") == 0


def test_visits_that_may_be_lost_are_not_counted() -> None:
    raw = gpu(pieces(100), body=3, launches=3, capacity=6)
    assert measured("max_visits", raw, scope="scores") is None
    assert measured("min_visits", raw, scope="scores") is None


def test_a_name_with_brackets_is_the_scope_of_that_name() -> None:
    raw = cpu([4000] * 4)
    raw.kernels[0] = replace(raw.kernels[0], scopes=(Scope(name="x[0]", path="x[0]"),))
    assert measured("max_visits", raw, scope="x[0]") == 16
    (view,) = Subject(Run(raw)).kernels
    assert unknown(view, Asked(scope="x[0]", order=("x[0]",))) == ""


def test_a_program_of_a_cpu_has_no_warps_to_balance() -> None:
    raw = cpu([4000] * 4)
    assert measured("max_imbalance", raw, scope="step") is None
    assert measured("max_imbalance", raw) == pytest.approx(1.0)


def test_shares_imbalance_and_resources() -> None:
    raw = gpu(pieces(100), body=3, spills=3, blocks_per_sm=4)
    share = measured("max_share", raw, scope="softmax")
    assert share == pytest.approx(280 / 400, abs=0.01)
    assert measured("max_imbalance", raw) == pytest.approx(1.0)
    late = gpu(barriers(1000))
    found = measured("max_imbalance", late, scope="reduce")
    assert found == pytest.approx(2030 / ((3 * 1030 + 2030) / 4), rel=0.02)
    assert measured("max_imbalance", gpu([[]], lengths=[2000, 1000, 1000, 1000])) == 1.6
    assert measured("max_spills", raw) == 3
    assert measured("max_registers", raw) == 128
    assert measured("max_shared_bytes", raw) == 96 * 1024
    assert measured("min_occupancy", raw) == 4 * 32 / 2048
    assert measured("max_lost", raw) == 0


def tiled() -> RawRun:
    """Two tiles, of which the second is stored in its third iteration before it is loaded; between
    tiles something is loaded."""
    tile = (PayloadField(name="tile", kind="int"),)
    table = (Scope(name="tile", path="tile", payload=tile), Scope(name="load", path="tile/load"),
             Scope(name="store", path="tile/store"))  # fmt: skip
    records, now = list[Record](), 0
    for number, order in ((7, (1, 2, 1, 2)), (9, (2, 1, 2))):
        start = now
        for iteration, scope in enumerate(order):
            records.append(Record(ticks(now), ticks(now + 5), scope, 0, iteration // 2))
            now += 10
        records.append(Record(ticks(start), ticks(now), 0, 0, None, (number,)))
        records.append(Record(ticks(now + 1), ticks(now + 2), 1))
        now += 10
    owner = kernel(table=table, slots=1)
    return run([owner], [pack_launch(owner, (1, 1, 1), 32, [Written([records])])])


def test_the_order_of_phases_of_a_tile() -> None:
    raw = tiled()
    assert measured("order", raw, order=("tile/load", "tile/store"), per="tile") == 1
    assert measured("order", raw, order=("tile/store", "tile/load"), per="tile") == 1
    assert measured("order", raw, order=("tile", "tile/load"), per="tile") == 0
    assert measured("order", gpu(pieces(9)), order=("scores", "softmax"), per="tile") is None


def test_the_critical_path_through_a_scope() -> None:
    """Of a barrier with one late warp the path is that warp's sum, and never the barrier."""
    raw = gpu(barriers(1000))
    through = measured("max_critical", raw, scope="reduce")
    path = shares(Run(raw).critical_path(whole=True)).set_index("scope")["share"]
    assert through is not None
    assert through > 0.95
    assert measured("max_critical", raw, scope="nothing") == 0
    parts = [measured("max_critical", raw, scope=name) for name in set(path.index)]
    assert sum(part or 0 for part in parts) == pytest.approx(1)


def test_sampled_iterations_stand_for_all() -> None:
    """Of 12 iterations of 10 ns each fourth is on record, of what follows all of 30 ns."""
    table = (Scope(name="step", path="step"), Scope(name="end", path="end"))
    records = [Record(ticks(10 * i), ticks(10 * i + 10), 0, 0, i) for i in (0, 4, 8)]
    records.append(Record(ticks(120), ticks(150), 1))
    owner = kernel(table=table)
    owner = replace(owner, options={**owner.options, "every": 4})
    raw = run([owner], [pack_launch(owner, (1, 1, 1), 8, [Written([records])])])
    raw.clock = replace(raw.clock, slice_cost_ns=0.0, edge_cost_ns=0.0)
    (view,) = Subject(Run(raw)).kernels
    assert view.subject.weight.tolist() == [4, 4, 2.5, 1]
    assert view.subject.written.tolist() == [1, 1, 1, 1]
    parts = dict(Run(raw).findings.kernels[0].scopes)
    assert parts["step"] == pytest.approx(100 * 105 / 135)


def test_the_share_of_a_role() -> None:
    raw = gpu(barriers(1000))
    raw.kernels[0].options[ROLES] = ["load", "load", "late", "load"]
    late = measured("max_share", raw, scope="barrier", role="late")
    others = measured("max_share", raw, scope="barrier", role="load")
    whole = measured("max_share", raw, scope="barrier")
    assert late is not None
    assert others is not None
    assert late < 0.02 < 0.4 < others
    assert whole == pytest.approx((late + 3 * others) / 4)
    assert measured("max_share", raw, scope="barrier", role="none") is None


def verdicts(raws: list[RawRun], **values: object) -> list[tuple[Status, str]]:
    for number, raw in enumerate(raws):
        raw.origin_unix_ns += number
    budgets = budgets_of({"budget": [values]}, "test")
    report = check(Side.of([Run(raw) for raw in raws]), None, budgets)
    assert json.loads(report_json(report))["status"] == report.status.word
    return [(verdict.status, verdict.reason) for verdict in report.findings]


EXACT: list[tuple[dict[str, object], dict[str, object]]] = [
    ({"max_spills": 3}, {"max_spills": 2}),
    ({"max_registers": 128}, {"max_registers": 127}),
    ({"max_shared_bytes": 98304}, {"max_shared_bytes": 98303}),
    ({"min_occupancy": "1%"}, {"min_occupancy": 0.5}),
    ({"scope": "scores", "max_visits": 160, "min_visits": 160},
     {"scope": "scores", "max_visits": 159, "min_visits": 160}),
    ({"order": ["scores", "softmax"]}, {"order": ["softmax", "scores"]}),
    ({"max_lost": 0}, {"scope": "scores", "min_visits": 161}),
]  # fmt: skip


@pytest.mark.parametrize(("kept", "broken"), EXACT, ids=[str(k) for k, _ in EXACT])
def test_what_is_exact_is_answered_by_one_run(
    kept: dict[str, object], broken: dict[str, object]
) -> None:
    raw = gpu(pieces(100), body=3, spills=3)
    assert {status for status, _ in verdicts([raw], **kept)} == {Status.PASS}
    assert Status.REGRESSION in {status for status, _ in verdicts([raw], **broken)}


def test_what_varies_takes_processes() -> None:
    def made(count: int) -> list[RawRun]:
        return [gpu(pieces(100 + n), body=3) for n in range(count)]

    limits = {"scope": "softmax", "max_share": "80%"}
    ((status, reason),) = verdicts(made(3), **limits)
    assert (status, "broken by 0 of 3 processes:" in reason) == (Status.INCONCLUSIVE, True)
    assert [s for s, _ in verdicts(made(8), **limits)] == [Status.PASS]
    assert [s for s, _ in verdicts(made(8), **{**limits, "max_share": "50%"})] == [
        Status.REGRESSION
    ]


def test_counts_are_counts_in_the_table() -> None:
    raws = [gpu(pieces(100), body=3) for _ in range(6)]
    for number, raw in enumerate(raws):
        raw.origin_unix_ns += number
    rules = [{"scope": "scores", "stat": "count", "max_ns": 900}, {"max_shared_bytes": 1}]
    report = check(Side.of([Run(raw) for raw in raws]), None, budgets_of({"budget": rules}, "t"))
    rows = {row[1]: row for row in finding_table(report)[1]}
    assert rows["matmul/scores count"][2:] == ["800", "800 to 800", "800, allowed 900"]
    assert rows["matmul shared memory"][2] == "98304 bytes"


def test_what_was_not_recorded_is_inconclusive() -> None:
    raw = gpu(pieces(9))
    raw.kernels[0].options.pop("spills")
    ((status, reason),) = verdicts([raw], max_spills=0)
    assert (status, "nothing of the kind" in reason) == (Status.INCONCLUSIVE, True)


def test_what_no_run_has_asks_for_no_more_of_them() -> None:
    """... but a wait that varies does."""
    sides = Side.of([Run(cpu([4000] * 4))]), None
    for limit, looks in ({"max_registers": 8}, 1), ({"scope": "step", "max_share": 0.5}, 3):
        rules = Budgets(budgets=(Budget(**limit),))
        more = list[range]()
        reports = list(until_sure(rules, [1, 2, 3], more.append, lambda: sides))
        assert [report.status for _, report in reports] == [Status.INCONCLUSIVE] * looks
        assert len(more) == looks


@pytest.mark.parametrize(
    ("asked", "lacks"),
    [
        ({"scope": "softmx"}, "no scope is softmx; .*did you mean softmax"),
        ({"scope": "softmax", "hidden_by": "dot"}, "no scope is dot; .*did you mean dots"),
        ({"order": ["softmax", "scor"]}, "no scope is scor; .*did you mean scores"),
        ({"scope": "softmax", "role": "producer"}, "no role is producer; there is none"),
        ({"scope": "softmax", "warp": 9}, "no warp is 9; there is 0"),
    ],
)
def test_a_name_that_nothing_has_is_refused(asked: dict[str, object], lacks: str) -> None:
    """By whatever limit: none passes because there was nothing to hold to it."""
    limits = {"min_overlap": 0.1} if "hidden_by" in asked else {"max_visits": 9, "max_share": 0.9}
    if "order" in asked:
        limits = {}
    with pytest.raises(BudgetError, match=f"budget [^ ]*(, warp 9)?: {lacks}"):
        verdicts([gpu(pieces(100), auto=[], body=3)], **limits, **asked)


def test_kernels_without_the_scope_are_not_held_to_it() -> None:
    raw = raw_run({("add", ""): {"load": [5, 5]}, ("copy", ""): {"all": [9]}})
    held = [reason for _, reason in verdicts([raw], scope="load", max_visits=2)]
    assert held == ["2, allowed at most 2"]
    assert len(verdicts([raw], scope="*", max_visits=2)) == 2


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"min_overlap": 0.6, "scope": "a"}, "min_overlap and hidden_by go together"),
        ({"hidden_by": "dots", "scope": "a", "max_visits": 1}, "go together"),
        ({"max_visits": 3}, "max_visits needs a scope"),
        ({"order": ["load"]}, "two phases or more"),
        ({"order": ["load", "dot", "load"]}, "order must name each phase once"),
        ({"order": "load"}, "order must be a list of scopes"),
        ({"max_share": 1.5, "scope": "a"}, "must be a part such as"),
        ({"max_share": 60, "scope": "a"}, 'got 60: write 0.6 or "60%"'),
        ({"max_regression": 5}, 'got 5: write 0.05 or "5%", or "500%" if'),
        ({"max_regression": 1.05}, 'got 1.05: write 0.0105 or "1.05%", or "105%" if'),
        ({"max_regression": "5"}, "must be a part such as .*, got '5'$"),
        ({"max_spils": 0}, "did you mean max_spills"),
        ({"max_spills": 0, "warp": "each"}, "of one warp or of all"),
        ({"max_spills": 0, "per": "tile"}, 'per is "tile", of an order'),
        ({"order": ["a", "b"], "per": "warp"}, 'per is "tile", of an order'),
        ({"max_ns": 3, "role": "load"}, "role is of limits of structure"),
        ({"kernel": "add"}, "a budget needs one of max_ns, max_regression, min_overlap"),
    ],
)
def test_budgets_that_make_no_sense(values: dict[str, object], words: str) -> None:
    with pytest.raises(BudgetError, match=words):
        budgets_of({"budget": [values]}, "budgets.toml")


def test_a_part_above_1_says_its_percents() -> None:
    (rule,) = budgets_of({"budget": [{"max_regression": "500%"}]}, "budgets.toml").budgets
    assert rule.max_regression == 5
    with pytest.raises(BudgetError, match=r'max_regression.*"500%"'):
        budgets_of({"budget": [parse("max_regression=5")]}, "--hold")
    with pytest.raises(BudgetError, match=r'false_alarms.*write 0.02 or "2%"'):
        budgets_of({"budget": [{"max_spills": 0}], "false_alarms": 2}, "budgets.toml")
    with pytest.raises(BudgetError, match=r'max_regression.*write 0.05 or "5%"'):
        _rules(pytest.mark.proton(scope="load", max_regression=5).mark)


def test_a_kernel_that_is_not_there_is_bad_usage() -> None:
    with pytest.raises(BudgetError, match="no kernel has that name; there is matmul"):
        check(Side.of([Run(gpu(loop()))]), None,
              Budgets(budgets=(Budget(kernel="add", max_spills=0),)))  # fmt: skip


@pytest.mark.parametrize("limit", [{"max_spills": 0}, {"max_ns": 5}])
def test_a_run_without_launches_says_so(limit: dict[str, object]) -> None:
    with pytest.raises(BudgetError, match="no launch was recorded"):
        verdicts([run([], [])], **limit)


def test_a_title_has_the_short_form_of_a_long_name() -> None:
    raw, long = gpu(pieces(9)), f"at::native::reduce_kernel<512, 1, {'ReduceOp<float>, ' * 9}>"
    raw.kernels[0] = replace(raw.kernels[0], name=long)
    report = check(Side.of([Run(raw)]), None, budgets_of({"budget": [{"max_lost": 0}]}, "t"))
    assert [f.title for f in report.findings] == [f"{shortened(long)} lost records"]


def lossy() -> RawRun:
    return gpu(pieces(100), body=3, launches=3, capacity=6)


@pytest.mark.parametrize(
    "limits",
    [
        {"order": ["scores", "softmax"]},
        {"scope": "scores", "max_visits": 1000},
        {"scope": "scores", "min_visits": 1},
        {"scope": "softmax", "hidden_by": "scores", "min_overlap": 0.0},
        {"scope": "softmax", "max_critical": 1.0},
        {"scope": "softmax", "max_imbalance": 9.0},
    ],
)
def test_lost_records_leave_what_needs_them_inconclusive(limits: dict[str, object]) -> None:
    budgets = budgets_of({"budget": [limits], "allow_losses": True}, "test")
    runs = [Run(replace(lossy(), origin_unix_ns=n)) for n in range(8)]
    (finding,) = check(Side.of(runs), None, budgets).findings
    assert finding.status is Status.INCONCLUSIVE
    assert finding.reason == "8 of 8 runs lost records of each launch"


def test_launches_that_lost_nothing_answer_for_the_others() -> None:
    raw, whole = lossy(), gpu(pieces(100), body=3, launches=3)
    raw.launches[1] = whole.launches[1]
    assert answer("max_visits", raw, scope="scores") == 20 * 8
    assert answer("order", raw, order=("softmax", "scores")) == 20 * 8
    assert answer("max_imbalance", lossy()) == pytest.approx(1.0)  # of programs
    assert answer("max_registers", lossy()) == 128


def test_visits_that_every_left_out_are_not_counted() -> None:
    raw = cpu([4000] * 4, steps=32, every=8)
    assert answer("max_visits", raw, scope="step") == 32 * 4
    for launch in raw.launches:
        launch.buffer = cpu([4000] * 4, steps=1, launches=1).launches[0].buffer
        launch.capacity = 1
    for name in ("max_visits", "min_visits"):
        assert answer(name, raw, scope="step") == "have some visits alone (every)"
    raw = gpu(pieces(100), body=3, sample_programs=2)
    assert answer("max_visits", raw, scope="scores") == "have some visits alone (sample_programs)"
    raw = gpu(pieces(100), body=3, sample_warps=[0])
    assert answer("max_visits", raw, scope="scores") == "have some visits alone (sample_warps)"
    assert answer("max_visits", raw, scope="scores", warp=0) == 20 * 8


def test_a_trace_of_triton_does_not_say_what_was_lost() -> None:
    found = Run.load(Path(__file__).parent / "data/triton.chrome_trace")
    budgets = budgets_of({"budget": [{"max_lost": 0}]}, "test")
    report = check(Side.of([found]), None, budgets)
    assert {(f.status, f.reason) for f in report.findings} == {
        (Status.INCONCLUSIVE, "1 of 1 runs do not say what was lost")
    }


def test_cases_of_junit_have_names_of_their_own() -> None:
    limits = {"scope": "scores", "min_visits": 1, "max_visits": 999}
    timed = {"scope": "scores", "max_ns": 5, "max_regression": "5%"}
    budgets = budgets_of({"budget": [limits, limits, timed, timed]}, "test")
    side = Side.of([Run(gpu(pieces(100), body=3))])
    cases = ElementTree.fromstring(junit(check(side, side, budgets), "check")).iter("testcase")
    names = [case.get("name") for case in cases]
    assert len(names) == len(set(names)) == 8
    assert {"matmul/scores fewest visits", "matmul/scores most visits"} < set(names)
    assert {"matmul/scores p50", "matmul/scores p50 by itself"} < set(names)


def test_limits_on_the_command_line(monkeypatch, capsys, tmp_path: Path) -> None:
    assert parse("scope=load, max_visits=8, order=a > b, max_share=60%, max_imbalance=1.5") == {
        "scope": "load", "max_visits": 8, "order": ["a", "b"], "max_share": "60%",
        "max_imbalance": 1.5,
    }  # fmt: skip
    file = Run(gpu(pieces(100), body=3)).save(tmp_path / "m.proton")

    def held(*words: str) -> tuple[int, str, str]:
        return call(monkeypatch, capsys, "check", file, *words)

    assert held("--hold", "max_spills=0", "--hold", "scope=scores, max_visits=160")[0] == 0
    status, out, _ = held("--hold", "scope=scores, max_visits=100")
    assert status == 1
    assert "160, allowed at most 100" in " ".join(out.split())
    assert held()[0] == 2
    assert "NAME=VALUE" in held("--hold", "spills")[2]


def test_a_marker_takes_them() -> None:
    marker = pytest.mark.proton(scope="load", p90_ns=50, max_visits=8, max_spills=0).mark
    structure, timed = _rules(marker)
    assert (structure.structure, structure.max_ns) == ({"max_visits": 8, "max_spills": 0}, None)
    assert (timed.structure, timed.max_ns, timed.stat) == ({}, 50, "p90")
    assert Budgets(budgets=[structure]).is_exact
    assert not Budgets(budgets=[structure, timed]).is_exact


def test_messages_name_what_there_is(monkeypatch, capsys, tmp_path: Path) -> None:
    file = Run(gpu(pieces(100), body=3)).save(tmp_path / "m.proton")
    for command in ("timeline", "heatmap", "hist", "occupancy", "analyze"):
        said = call(monkeypatch, capsys, command, file, "--launch", "99")
        assert said == (2, "", "proton-tile: no launch 99: there are 0 to 4\n"), command
    for command, option, last in (("timeline", "--sm", 3), ("heatmap", "--warp", 0)):
        status, out, err = call(monkeypatch, capsys, command, file, option, "0", option, "99")
        assert (status, out) == (2, "")
        assert err == f"proton-tile: no records of {option} 0 99: there are 0 to {last}\n"
    for command in ("stats", "flame"):
        status, out, err = call(monkeypatch, capsys, command, file, "--include", "matmul/softmx")
        assert (status, out) == (2, "")
        assert "there is matmul/barrier" in err
        assert "did you mean matmul/softmax?" in err
        status, out, err = call(monkeypatch, capsys, command, file, "--start", "5", "--end", "2")
        assert (status, out, "must be after --start" in err) == (2, "", True)
    said = call(monkeypatch, capsys, "launches", file, "--kernel", "matmull")
    wanted = "no launch is of --kernel matmull: there is matmul; did you mean matmul?"
    assert said == (2, "", f"proton-tile: {wanted}\n")
    _, out, _ = call(monkeypatch, capsys, "analyze", file, "--launch", "1", "--program", "99")
    assert "as no slices of launch 1, program 99 are on record" in " ".join(out.split())
    for option, name in (("--kernel", "matmull"), ("--scope", "softmx")):
        status, out, err = call(monkeypatch, capsys, "heatmap", file, option, name)
        assert (status, out) == (2, "")
        assert f"nothing matches {option} {name}" in err
        assert "did you mean" in err
    bare = Run(gpu(pieces(100), auto=[])).save(tmp_path / "bare.proton")
    _, out, _ = call(monkeypatch, capsys, "analyze", bare)
    assert 'auto="copies,dots,barriers" records it' in " ".join(out.split())
