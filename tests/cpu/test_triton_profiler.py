"""Programs written against `triton.profiler`: sessions that end in files, hooks, the viewer."""

import json
from pathlib import Path

import pytest

import proton
from proton.viewer import Run
from proton.viewer.compare import Side, diff
from tests import processes

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
):
    try:
        wrong()
    except proton.ProtonError as problem:
        print(problem)
    else:
        raise AssertionError("no error")
"""


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
    assert "output_format must be hatchet or chrome_trace, got 'xml'" in done
