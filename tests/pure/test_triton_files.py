"""Files that Triton's Proton wrote (scripts/triton_files.py says where and when): what the viewer
says of them against plain sums of their JSON, Triton's own viewer, and Perfetto's trace processor.
"""

import ctypes
import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from test_cli import call

from proton.base import symbols
from proton.base.symbols import demangled, shortened, within
from proton.viewer import Run
from tests.perfetto_equality import read_back
from tests.trace_processor import TraceProcessor

TREE, TRACE = (Path(__file__).parent / "data" / f"triton.{s}" for s in ("hatchet", "chrome_trace"))
Viewer = Callable[..., tuple[int, str, str]]
Entry = dict[str, Any]
# What `proton-viewer -m METRIC` of Triton 3.8, with llnl-hatchet 2026.2.0, prints of the tree: the
# root, and of each layer itself and three kernels. None is what it prints as nan.
TRITON = {
    "util": (None, (None, 1.138, 0.146, 0.0), (None, 1.093, 0.142, 0.0)),
    "time/us": (150.529, (75.360, 9.184, 1.120, 8.256), (75.169, 9.568, 1.151, 8.192)),
    "avg_time/us": (7.526, (7.536, 9.184, 1.120, 8.256), (7.517, 9.568, 1.151, 8.192)),
    "time/%": (100.0, (50.063, 6.101, 0.744, 5.485), (49.937, 6.356, 0.765, 5.442)),
    "tflop32/s": (0.057, (0.057, 0.457, 0.059, None), (0.057, 0.438, 0.057, None)),
    "gbyte/s": (679.179, (678.318, 5480.362, 702.171, None), (680.042, 5260.415, 683.260, None)),
    "count": (20.0, (10.0, 1.0, 1.0, 1.0), (10.0, 1.0, 1.0, 1.0)),
    "bytes": (102236160.0, (51118080.0, 50331648.0, 786432.0, None)) + 1 * (
        (51118080.0, 50331648.0, 786432.0, None),),
    "tokens": (4096.0, (None,) * 4, (None,) * 4),
}  # fmt: skip
KERNELS = ("add_4194304", "add_65536", "mm")
NO_WORK = "mm"  # of which the file says no work: its util is not 0, but not known


@pytest.fixture
def viewer(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Viewer:
    monkeypatch.setenv("COLUMNS", "80")
    return lambda *words: call(monkeypatch, capsys, *words)


def entries(node: Entry, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Entry]]:
    """The frames of a tree with the names around and of each."""
    here = (*path, node["frame"]["name"])
    yield here, node["metrics"]
    for inner in node["children"]:
        yield from entries(inner, here)


@pytest.fixture(scope="module")
def frames() -> list[tuple[tuple[str, ...], Entry]]:
    return list(entries(json.loads(TREE.read_text())[0]))


@pytest.fixture(scope="module")
def events() -> list[Entry]:
    return json.loads(TRACE.read_text())["traceEvents"]


def test_metrics_are_those_of_tritons_viewer(viewer: Viewer) -> None:
    status, out, err = viewer("-m", ",".join(TRITON), TREE, "--json")
    assert (status, err) == (0, "")
    found: dict[tuple[str, str], Entry] = {}
    layer = ""
    for row in json.loads(out):
        layer = row["name"] if row["name"].startswith("layer") else layer
        found[layer, row["name"]] = row
    for metric, (root, *layers) in TRITON.items():
        assert found["", "ROOT"][metric] == pytest.approx(root, abs=5e-4), metric
        for number, wanted in enumerate(layers):
            name = f"layer{number}"
            for frame, value in zip((name, *KERNELS), wanted, strict=True):
                is_known = (metric, frame) != ("util", NO_WORK)
                value = pytest.approx(value, abs=5e-4) if is_known else None
                assert found[name, frame][metric] == value, (metric, name, frame)


def test_util_is_the_least_time_over_the_time(viewer: Viewer, tmp_path: Path) -> None:
    """By hand: of bytes both edges of the memory's clock; of operations what Triton says of each
    architecture."""
    of_90 = 1513e12 * 132 / 114 * 1.98 / 1.755
    cases = (
        ({"arch": "90"}, {"flops8": 1e9}, 1e9 / of_90),
        ({"arch": "90"}, {"flops16": 1e9, "bytes": 1e6}, 2e9 / of_90),
        ({"arch": "80"}, {"flops64": 1e9, "flops8": 2e9}, 1e10 / 624e12),
        ({"arch": "89"}, {"flops32": 1e9}, 4e9 / 330.3e12),
        ({"arch": "100"}, {"flops16": 1e9}, 2e9 / (132 * 16384 * 1.98e9)),
        ({"arch": "100"}, {"flops16": 1.0, "bytes": 1e6}, 1e6 / (2 * 3.201e9 * 6144 / 8)),
        ({"arch": "120"}, {"bytes": 1e6}, 1e6 / (2 * 3.201e9 * 6144 / 8)),
    )  # fmt: skip
    chip = {"bus_width": 6144, "clock_rate": 1980000, "memory_clock_rate": 3201000, "num_sms": 132}

    def ask(facts: Entry, work: Entry) -> tuple[int, str, str]:
        place = {"device_id": "0", "device_type": "CUDA", "time (ns)": 10_000, "count": 2}
        inner = {"frame": {"name": "k"}, "metrics": {**place, **work}, "children": []}
        root = {"frame": {"name": "ROOT"}, "metrics": {}, "children": [inner]}
        file = tmp_path / "a.hatchet"
        file.write_text(json.dumps([root, {"CUDA": {"0": {**chip, **facts}}}]))
        return viewer("-m", "util", file, "--json")

    for facts, work, seconds in cases:
        rows = json.loads(ask(facts, work)[1])
        assert [row["util"] for row in rows] == [None, pytest.approx(seconds / 1e-5)], (facts, work)
    status, _, err = ask({"arch": "120"}, {"flops16": 1e9})
    assert (status, "not flops16 of CUDA 0" in err) == (2, True)
    status, _, err = ask({"memory_clock_rate": 0}, {"bytes": 1e6})
    assert (status, "not bytes of CUDA 0" in err) == (2, True)
    assert "util" in viewer("-l", tmp_path / "a.hatchet")[1].split()
    ask({}, {})
    assert "util" not in viewer("-l", tmp_path / "a.hatchet")[1].split()


def test_filters_are_those_of_tritons_viewer(viewer: Viewer) -> None:
    def names(*words: str) -> list[str]:
        return [row["name"] for row in json.loads(viewer("-m", "time", *words, TREE, "--json")[1])]

    inside = [name for name in names() if not name.startswith(("ROOT", "model", "layer"))]
    assert len(inside) == 14
    assert names("-i", "layer0") == ["ROOT", "model", "layer0", *inside[:7]]
    assert names("-e", "layer0") == ["ROOT", "model", "layer1", *inside[7:]]
    assert names("-d", "1") == ["ROOT"]
    assert names("-d", "3") == ["ROOT", "model", "layer0", "layer1"]
    hold = "kernel=*reduce*#3e18ef, stat=count, max_ns=1"
    assert viewer("check", TREE, "--hold", hold)[0] == 3  # one process: too few
    status, _, err = viewer("check", TREE, "--hold", hold.replace("3e18ef", "3e18ee"))
    assert (status, "*reduce*#3e18ee" in err) == (2, True)
    (mark,) = {shortened(name)[-7:] for name in inside if "normal_and_transform<c10::Half" in name}
    assert len(names("-i", mark)) == 6
    assert len(names("-i", "c10::Half")) == 6


def test_sums_are_of_whole_names(
    viewer: Viewer, frames: list[tuple[tuple[str, ...], Entry]], events: list[Entry]
) -> None:
    wanted: Counter[str] = Counter()
    for path, metrics in frames:
        if metrics.get("count"):
            wanted[demangled(path[-1])] += metrics["time (ns)"]
    assert len(wanted) == 7
    document = json.loads(viewer("explain", TREE, "--json")[1])
    assert {each["kernel"]: each["time_ns"] for each in document["kernels"]} == wanted
    of_trace: Counter[str] = Counter()
    for event in events:
        of_trace[demangled(event["name"])] += round(1000 * event["dur"])
    document = json.loads(viewer("summary", TRACE, "--json")[1])
    rows = {row["kernel"]: row["total"] for row in document["launches"]["rows"]}
    assert rows == of_trace
    assert of_trace.keys() == wanted.keys()


@pytest.mark.parametrize("words", [
    ("summary", TRACE), ("list", TRACE), ("launches", TRACE), ("stats", TRACE),
    ("stats", TRACE, "--kind", "launch"), ("stats", TRACE, "--tree"), ("explain", TRACE),
    ("explain", TREE), ("diff", TRACE, TRACE), ("diff", TREE, TREE, "--stat", "mean"),
    ("history", TREE, "--stat", "mean"), ("flame", TRACE), ("timeline", TRACE),
    ("-m", "util", TREE),
    ("-m", "time/us,bytes", "--print-sorted", TREE), ("explain", TRACE, "--against", TRACE),
    ("occupancy", TRACE), ("hist", TRACE), ("heatmap", TRACE), ("analyze", TRACE),
    ("source", TRACE),
], ids=lambda words: " ".join(str(getattr(word, "name", word)) for word in words))  # fmt: skip
def test_every_command_says_short_names(viewer: Viewer, words: tuple[Any, ...]) -> None:
    status, out, err = viewer(*words)
    assert (status, err) == (0, "")
    assert not [line for line in out.splitlines() if len(line) > 80]
    assert "_ZN" not in out
    assert "anonymous" not in out
    if "distribution_el" in out:  # two of them, which are told apart
        assert "#44acaf" in out
        assert "#eb17fc" in out


@pytest.mark.parametrize("words", [
    ("check", TREE, "--hold", "kernel=zz, stat=count, max_ns=1"),
    ("timeline", TRACE, "--kernel", "zz"),
], ids=lambda words: words[0])  # fmt: skip
def test_messages_say_short_names(viewer: Viewer, words: tuple[Any, ...]) -> None:
    status, out, err = viewer(*words)
    assert (status, out) == (2, "")
    assert "#44acaf" in err
    assert "anonymous" not in err


def test_a_trace_comes_back_from_perfetto(tmp_path: Path, events: list[Entry]) -> None:
    """Also through a file of ours, and of Chrome's format by us."""
    wanted = sorted(
        (demangled(e["name"]), round(1000 * e["ts"]), round(1000 * e["dur"])) for e in events
    )
    run = Run.load(TRACE)
    origin = run.raw.origin_ns
    slices, complaints = read_back(run.save(tmp_path / "a.pftrace"))
    assert complaints == []
    found = [row for row in slices if row["category"] == "launch"]
    assert sorted((row["name"], row["ts"] - origin, row["dur"]) for row in found) == wanted
    assert {row["path"] for row in found} == {("GPU 0",)}
    assert Counter(row["args"]["scope"] for row in found) == {
        "model/layer0": 10,
        "model/layer1": 10,
    }
    with TraceProcessor(TRACE) as processor:  # what Perfetto reads of Triton's own
        rows = processor.query("select name, ts, dur from slice")
        assert sorted((demangled(row["name"]), row["ts"], row["dur"]) for row in rows) == wanted
    for suffix, format in ((".chrome_trace", "chrome"), (".proton", "proton")):
        again = Run.load(run.save(tmp_path / f"a{suffix}", format=format))
        table = again.launches
        assert (
            sorted(zip(table["kernel"], table["start_ns"], table["dur_ns"], strict=True)) == wanted
        )
        assert set(table["scope"]) == {"model/layer0", "model/layer1"}
        assert set(table["clock"]) == {"gpu"}


def test_what_nobody_saw_is_not_said(viewer: Viewer) -> None:
    """A trace of kernels has no calls, no grids, no programs, and no options of ours."""
    _, out, _ = viewer("explain", TRACE, "--json")
    document = json.loads(out)
    assert [f["rule"] for f in document["findings"]] == ["launch-gaps"] * 2
    assert not ["call" for f in document["findings"] if "call" in f["sentence"]]
    assert {u["option"] for u in document["unrecorded"]} == {
        'backend="instrumentation", data="trace"',
        "python -m proton --as-triton SCRIPT",
    }
    assert "host thread" not in viewer("timeline", TRACE)[1]
    assert ", grid" not in viewer("launches", TRACE)[1]
    assert Run.load(TRACE).totals.programs == 0
    assert "there is --kind launch" in viewer("stats", TRACE)[1]
    assert "proton-tile source" not in viewer("explain", TREE)[1]


def test_a_long_pause_is_said(viewer: Viewer, events: list[Entry]) -> None:
    """35.7 of 36.7 ms lie between the first kernel and the second: shares of the wall are small."""
    found = Run.load(TRACE).summary()
    assert found.facts["longest pause"] == "35.7 ms of 36.7 ms, before launch 1"
    whole = sum(event["dur"] for event in events)
    (mm,) = found.kernels[found.kernels["kernel"] == "mm"].to_dict("records")
    own = sum(event["dur"] for event in events if event["name"] == "mm")
    assert mm["share"] == pytest.approx(100 * own / whole)
    assert f"{100 * own / whole:.1f}%" in viewer("summary", TRACE)[1]


def test_short_names() -> None:
    args = "at::native::CUDAFunctor_add<float>, std::array<char*, 3ul> "
    long = f"at::native::{'long_' * 20}"
    names = {
        "add": "add",
        f"void at::native::elementwise<4, {args}>(int, {args})":
            "at::native::elementwise<4, CUDAFunctor_add<float>, array<char*, 3ul>>",
        f"void at::native::elementwise<{long}, int>(int)": "at::native::elementwise<...>",
        "void (anonymous namespace)::softmax_warp_forward<float, float, 10, false>(float*, float "
        "const*, int, int, int, bool const*)": "softmax_warp_forward<float, float, 10, false>",
        "void ns::f<ns::g<4>(ns::Iterator&)::{lambda(float, float)#1}>(" + "char, " * 9 + "int)":
            "ns::f<g<4>(Iterator&)::{lambda(float, float)#1}>",
        "sort::Histogram(" + "unsigned int*, float const*, " * 4 + "int)":
            "sort::Histogram(unsigned int*, float const*, unsigned int*, float const*, ...)",
        "matmul" * 20: "matmul" * 20,  # nothing of it is in brackets
        "_ZN" + "4name" * 30: ("_ZN" + "4name" * 30)[:88] + "...",
    }  # fmt: skip
    for name, short in names.items():
        found = shortened(name)
        assert found.rpartition("#")[0] == short if "#" in found[-7:] else found == short, name
        assert (len(found) < len(name)) == (found != name)
    long = next(name for name in names if "softmax" in name)
    assert shortened(f"{long} #2") == f"{shortened(long)} #2"
    assert shortened(long) != shortened(long.replace("bool const*", "bool*"))
    assert within(shortened(long), 12) == shortened(long)  # which is cut from its end
    assert within(shortened(long), 24) == f"softmax_warp_fo..{shortened(long)[-7:]}"
    assert (
        within("at::native::reduce_kernel<4, Op<...>>#3e18ef", 33)
        == "reduce_kernel<4, Op<...>>#3e18ef"
    )


def test_any_text_has_a_short_form(rng: Any) -> None:
    """Brackets that do not fit are no error, and no two of these look alike."""
    letters = list("<>(){}[],: ab#_")
    texts = {"".join(rng.choice(letters, 120).tolist()) for _ in range(300)}
    assert len({shortened(text) for text in texts}) == len(texts)


def test_without_a_runtime_of_cpp_names_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: object) -> ctypes.CDLL:
        raise OSError("no such library")

    symbol = "_ZN5torch4thisEv"
    monkeypatch.setattr(symbols.ctypes, "CDLL", missing)
    demangled.cache_clear()
    assert demangled(symbol) == symbol
    demangled.cache_clear()
    monkeypatch.undo()
    assert demangled(symbol) == "torch::this()"


@pytest.mark.parametrize("name", [
    "_Zfoo\ud800", "_Z3fooi\0<", "_Z" + "N" * 10_000,
    "a" * 10_000 + "<b>", "a " * 5_000 + "(b", "<" * 10_000, "(" * 10_000,
    "a::" * 4_000 + "f<" + "b, " * 4_000 + "c>(d)",
])  # fmt: skip
def test_names_that_are_none(name: str) -> None:
    """What is no symbol stays, and its short form is short."""
    assert demangled(name) == name
    assert len(shortened(name)) < 100


@pytest.mark.parametrize("name", ["f$110000$", "f$ffffffffff$"])
def test_what_is_no_character_stays(name: str) -> None:
    assert symbols.written(name + symbols.END) == name


def test_a_tree_of_names_that_are_none(tmp_path: Path, viewer: Viewer) -> None:
    file = tmp_path / "a.hatchet"
    leaf = {"frame": {"name": "_Z\ud800"}, "metrics": {"count": 1, "time (ns)": 2}, "children": []}
    root = {"frame": {"name": "ROOT"}, "metrics": {}, "children": [leaf]}
    file.write_text(json.dumps([root, {}]))
    status, out, _ = viewer("metrics", file)
    assert status == 0
    assert "_Z" in out
