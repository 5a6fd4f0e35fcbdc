"""Programs written against `triton.profiler`: sessions that end in files, hooks, the viewer."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import proton
from proton.compat.triton import profiler_tree
from proton.trace.model import Clock, HostSlice, RawRun
from proton.viewer import Run
from proton.viewer.compare import Side, diff
from tests import processes

THREAD = 0x7F12_3456_7890  # an ident of Linux, of which CUPTI has the low half

PROGRAM = """
import json
import os

import numpy as np

import proton

proton.install_as_triton()
import triton
import triton.language as tl
import triton.profiler as tp
import triton.profiler.viewer as viewer
from triton.profiler.hooks import Hook


def described(grid, kernel, args):
    return {"name": f"add_{args['n']}", "flops32": args["n"], "bytes": 12 * args["n"]}


@triton.jit(launch_metadata=described)
def add(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, mask=at < n) + tl.load(y + at, mask=at < n), mask=at < n)


def launch(n):
    x = np.ones(n, np.float32)
    add[(triton.cdiv(n, 64),)](x, x, np.empty_like(x), n, BLOCK=64)


class Counted(Hook):
    seen = 0

    def enter(self, metadata):
        Counted.seen += 1


session = tp.start("tree", hook="triton")
with tp.scope("outer", {"weight": 5.0}):
    launch(100)
    launch(100)
tp.deactivate(session)
launch(300)
tp.activate(session)
launch(200)
tp.finalize(session)

session = tp.start("trace.of.mine", data="trace", hook=Counted())
launch(100)
assert tp.finalize() is not None
launch(100)
assert Counted.seen == 1
assert tp.finalize() is None

gf, metrics = viewer.parse(["count", "flop32/s", "weight"], "tree.hatchet")
assert metrics == ["count (inc)", "flop32/s (inc)", "weight (inc)"]
viewer.print_tree(gf, ["count (inc)", "weight (inc)"], print_sorted=True)
frames = gf.dataframe.set_index("name")
json.dump(frames["count (inc)"].groupby(level=0).sum().to_dict(), open("counts.json", "w"))
assert frames.loc["ROOT", "flop32/s (inc)"] > 0
only = viewer.parse(["count"], "tree.hatchet", include="add_200")[0].dataframe
assert list(only["name"]) == ["ROOT", "add_200", "add"], only
without = viewer.parse(["count"], "tree.hatchet", exclude="outer")[0].dataframe
assert list(without["name"]) == ["ROOT", "add_200", "add"], without
much = viewer.parse(["count"], "tree.hatchet", threshold=2)[0].dataframe
assert list(much["name"]) == ["ROOT", "outer", "add_100", "add"], much
less = viewer.apply_diff_profile(gf, metrics, "tree.hatchet", ["count", "flop32/s", "weight"])
assert not less.dataframe["count (inc)"].any()
for wrong in (
    lambda: viewer.parse(["util"], "tree.hatchet"),
    lambda: tp.start("x", hook="other"),
    lambda: tp.finalize(output_format="xml"),
    lambda: viewer.print_tree(gf, ["count"], format="short"),
):
    try:
        wrong()
    except proton.ProtonError as problem:
        print(problem)
    else:
        raise AssertionError("no error")
"""


WORDS = """
import json

import numpy as np

import proton

proton.install_as_triton()
import triton
import triton.language as tl
import triton.profiler as tp
from triton.profiler.profile import start
from triton.profiler.scope import scope
import triton.profiler.viewer as viewer
from triton.profiler.hooks import LaunchHook

assert tp.scope is scope and tp.start is start and not isinstance(tp.profile, type(json))


class Tensor:  # what torch's have of one number
    def __init__(self, value):
        self.value = value

    def data_ptr(self):
        return 8

    def numel(self):
        return 1

    def item(self):
        return self.value


def described(grid, kernel, args):
    n = args["n"]
    return {"name": f"ones/{n}", "tokens": Tensor(n), "other": "text"} if n != 7 else {}


@triton.jit(launch_metadata=described)
def ones(out, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out + at, 1.0, mask=at < n)


def launch(n):
    ones[(1,)](np.empty(64, np.float32), n, BLOCK=64)


@tp.profile
def bare():
    launch(5)


@tp.profile(name="named", context="python", backend="cupti")
def named():
    launch(5)
    return 7


bare()
launch(6)
tp.finalize()
assert named() == 7
tp.finalize()
viewer.print_tree(viewer.parse(["count"], "named.hatchet")[0], ["count"], format="function_line")

LaunchHook().configure(include="ones", exclude="ones.*9")
assert tp.start("words", hook="triton") is not None
tp.enter_state("warm-up")
launch(7)
tp.exit_state()
outer, inner = tp.enter_scope("step 1/2", metrics={"loss": Tensor(2.5)}), tp.enter_scope("inner")
launch(8)
launch(9)
assert tp.exit_scope() == inner != outer == tp.exit_scope("step 1/2", metrics={"more": 1})


@tp.scope("decorated", {"calls": Tensor(1)})
def decorated():
    launch(10)


decorated()
decorated()
tp.enter_scope("opened")
try:
    tp.exit_scope("other")
except ValueError as problem:
    print(problem)
tp.exit_scope()
try:
    tp.exit_scope()
except ValueError as problem:
    print(problem)
tp.finalize()
assert tp.enter_scope("none runs") is tp.exit_scope() is None
"""


def _paths(file: Path) -> dict[str, dict[str, float]]:
    """The metrics of a Hatchet file's frames by their paths."""

    def below(node: dict[str, Any], path: str) -> Iterator[tuple[str, dict[str, float]]]:
        yield path, {k: v for k, v in node["metrics"].items() if k != "time (ns)"}
        for child in node["children"]:
            yield from below(child, f"{path}/{child['frame']['name']}".lstrip("/"))

    return dict(below(json.loads(file.read_text())[0], ""))


def test_the_words_of_tritons_profiler(tmp_path: Path) -> None:
    """Decorators, tensors as metrics, names with a slash, states, filters, calls of Python."""
    (tmp_path / "words.py").write_text(WORDS)
    ended = processes.python("words.py", cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert _paths(tmp_path / "proton.hatchet") == {"": {"count": 0}, "ones": {"count": 1}}
    *_, stack = _paths(tmp_path / "named.hatchet")
    lines = {text: number for number, text in enumerate(WORDS.splitlines(), 1)}
    called, body = lines["assert named() == 7"], lines["    return 7"] - 1
    launched = lines["def launch(n):"] + 1
    names = f"words.py:{called}@<module>", f"words.py:{body}@named", f"words.py:{launched}@launch"
    assert stack.endswith("/".join([*names, "ones"]))
    assert f" 1.000 launch@{launched}\n" in ended.stdout
    assert _paths(tmp_path / "words.hatchet") == {
        "": {"count": 0},
        "ones": {},  # a launch that gives itself no name
        "ones/warm-up": {},
        "ones/warm-up/ones": {"count": 1},
        "step 1|2": {"loss": 2.5, "more": 1},
        "step 1|2/inner": {},
        "step 1|2/inner/ones|8": {"tokens": 8},
        "step 1|2/inner/ones|8/ones": {"count": 1},
        "step 1|2/inner/ones": {"count": 1},  # left out by the hook
        "decorated": {"calls": 2},
        "decorated/ones|10": {"tokens": 20},
        "decorated/ones|10/ones": {"count": 2},
    }
    assert "exit_scope: the scope that was opened last is 'opened', got 'other'" in ended.stdout
    assert "exit_scope: no scope is open" in ended.stdout


def test_a_tree_has_the_kernels_of_other_libraries_in_the_scopes_that_asked_for_them() -> None:
    def of(name: str, start: int, end: int, **more: Any) -> HostSlice:
        return HostSlice(name=name, path=name, thread=THREAD, start=start, end=end, **more)

    def kernel(name: str, end: int, issued: int, issuer: int = THREAD) -> HostSlice:
        asked = {"issued": issued, "issuer": issuer & 0xFFFFFFFF}
        return of(name, 1000, 1000 + end, kind="kernel", device=0, **asked)

    inner = replace(of("inner", 20, 30), path="outer/inner")
    other = replace(of("other", 0, 90), thread=THREAD + 1)
    host = [of("outer", 10, 40), inner, other, of("aten::mm", 21, 29, kind="operator")]
    host += [kernel("gemm", 7, 25), kernel("gemm", 9, 35), kernel("fill", 3, 50)]
    host += [kernel("add", 5, 25), kernel("gemm", 1, 25, THREAD + 1)]
    clock = Clock(ticks=np.zeros(0, np.uint64), host_ns=np.zeros(0, np.int64))
    raw = RawRun(name="x", origin_ns=0, origin_unix_ns=0, clock=clock, host=host)
    found = list(profiler_tree._others(raw))
    assert found == [
        ("outer/inner", "gemm", 7),
        ("outer", "gemm", 9),
        ("", "fill", 3),
        ("outer/inner", "add", 5),
        ("other", "gemm", 1),
    ]


def test_a_program_for_tritons_profiler(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    ended = processes.python("program.py", cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
    done = ended.stdout
    tree = json.loads((tmp_path / "tree.hatchet").read_text())[0]
    outer, alone = tree["children"]
    assert outer["frame"]["name"] == "outer"
    assert outer["metrics"] == {"weight": 5.0}
    (hundred,) = outer["children"]
    assert hundred["frame"]["name"] == "add_100"
    assert hundred["metrics"] == {"flops32": 200.0, "bytes": 2400.0}
    (kernel,) = hundred["children"]
    assert kernel["frame"]["name"] == "add"
    assert kernel["metrics"]["count"] == 2
    assert kernel["metrics"]["time (ns)"] > 0
    assert alone["metrics"] == {"flops32": 200.0, "bytes": 2400.0}
    assert json.loads((tmp_path / "counts.json").read_text())["ROOT"] == 3
    trace = json.loads((tmp_path / "trace.of.mine.chrome_trace").read_text())
    assert any(event.get("name") == "add" for event in trace["traceEvents"])
    run = Run.load(tmp_path / "trace.of.mine.chrome_trace")
    assert set(run.launches["kernel"]) == {"add"}
    sides = [Side.load([tmp_path / "tree.hatchet"])] * 2
    (change,) = diff(*sides, stat="mean")
    assert (str(change.group), change.before.size) == ("add", 1)
    with pytest.raises(proton.ProtonError, match="has sums alone: choose count, total, self, mean"):
        diff(*sides)
    lines = done.splitlines()
    assert lines[0] == "3.000 5.000 ROOT"
    assert lines[1] == "└─ 2.000 5.000 outer"
    assert "Sorted kernels by metric count (inc)" in lines
    assert "metric must be one of" in done
    assert "hook must be None, 'triton' or a Hook, got 'other'" in done
    assert "output_format must be hatchet, hatchet_msgpack or chrome_trace, got 'xml'" in done
