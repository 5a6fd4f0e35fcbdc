"""Which operator of torch asked for which kernel, by CUPTI's correlation ids: needs the package
cupti-python, and torch. What torch's own profiler says of the same work is the reference; it runs
in a process of its own, for it listens to CUPTI, too.
"""

import json
import re
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import proton
import proton.language as tl
from proton.runtime.nvidia import cupti

WORK = """
import torch


def prepare():
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Linear(96, 200), torch.nn.GELU(), torch.nn.LayerNorm(200), torch.nn.Linear(200, 7)
    ).cuda()
    x = torch.randn(33, 96, device="cuda")
    return model, torch.optim.SGD(model.parameters(), lr=0.1), x


def step(model, optimizer, x):
    with torch.profiler.record_function("my step"):
        optimizer.zero_grad()
        loss = torch.softmax(model(x), -1).square().sum()
        loss.backward()
        optimizer.step()
    torch.cuda.synchronize()
"""
REFERENCE = """
import json, sys
from work import prepare, step
import torch

work = prepare()
step(*work)
with torch.profiler.profile() as profile:
    step(*work)
profile.export_chrome_trace("theirs.json")
"""


@pytest.fixture
def torch() -> Any:
    """torch, where CUPTI can be used."""
    pytest.importorskip("cupti.cupti")
    cupti.load()  # the package is there: it must work
    return pytest.importorskip("torch")


@proton.jit
def fill(out, BLOCK: tl.constexpr):
    with proton.scope("store"):
        tl.store(out + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK), 1)


def base(name: str) -> str:
    """A kernel's name without its types."""
    return re.split(r"[<(]", name.removeprefix("void "))[0].strip()


def theirs(folder: Path) -> Counter[tuple[str, str]]:
    """(operator, kernel) of each kernel, as torch's profiler links them."""
    (folder / "reference.py").write_text(REFERENCE)
    subprocess.run([sys.executable, "reference.py"], check=True, cwd=folder, timeout=300)
    events = json.loads((folder / "theirs.json").read_text())["traceEvents"]
    named = {
        e["args"]["External id"]: e["name"]
        for e in events
        if e.get("cat") == "cpu_op" and "External id" in e.get("args", {})
    }
    kernels = [e for e in events if e.get("cat") == "kernel"]
    assert kernels
    return Counter((named.get(e["args"].get("External id"), ""), base(e["name"])) for e in kernels)


def test_each_kernel_is_linked_to_the_operator_that_asked_for_it(
    torch: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "work.py").write_text(WORK)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "work", raising=False)
    work = __import__("work")
    prepared = work.prepare()
    work.step(*prepared)
    with proton.profile("operators", activities="all") as run:
        work.step(*prepared)
    frame = run.frame
    assert "operators that are missing" not in run.raw.machine, run.raw.machine
    kernels = frame[frame["kind"] == "kernel"]
    assert len(kernels) > 10
    unlinked = kernels[kernels["operator"] == ""]
    assert not len(unlinked), unlinked["name"].tolist()
    # Forward in this thread, backward in another one.
    operators = frame[frame["kind"] == "operator"]
    assert threading.get_ident() in set(operators["thread"])
    assert operators["thread"].nunique() >= 2
    backward = kernels[kernels["operator"].str.contains("Backward0")]
    forward = kernels[kernels["operator"].str.startswith("my step")]
    assert len(backward) > 3
    assert len(forward) > 3
    last = [operator.rpartition("/")[2] for operator in kernels["operator"]]
    found = Counter(zip(last, map(base, kernels["name"]), strict=True))
    assert found == theirs(tmp_path)
    # What a GPU did was asked for within the operator, and no earlier than it began to run.
    calls = [(s.path, s.start, s.end) for s in run.raw.host if s.kind == "operator"]
    slices = [s for s in run.raw.host if s.kind == "kernel"]
    for slice_, path in zip(slices, kernels["operator"], strict=True):
        assert any(p == path and start <= slice_.issued <= end for p, start, end in calls)
        assert slice_.issued <= slice_.end
    table = run.stats("operator", "dur_ns", "kernel")
    assert table["count"].sum() == len(kernels)
    assert table["total"].sum() == kernels["dur_ns"].sum()


def test_ours_and_copies_are_linked_too(torch: Any) -> None:
    x = torch.zeros(1 << 16, device="cuda")
    host = torch.zeros(1 << 16, pin_memory=True)

    @torch.library.custom_op("proton_test::fill", mutates_args=("out",))
    def filled(out: torch.Tensor) -> None:
        fill[(64,)](out, BLOCK=1024)

    filled(x)
    torch.cuda.synchronize()
    with proton.profile("ours", activities="all") as run:
        filled(x)
        host.copy_(x, non_blocking=True)
        fill[(64,)](x, BLOCK=1024)
        torch.cuda.synchronize()
    assert host.sum().item() == 1 << 16
    frame = run.frame.sort_values("start_ns")
    own = frame[(frame["kind"] == "kernel") & (frame["name"] == "fill")]["operator"].tolist()
    assert own == ["proton_test::fill", ""]
    assert frame[frame["kind"] == "launch"]["operator"].tolist() == ["proton_test::fill", ""]
    copies = frame[(frame["kind"] == "memcpy") & (frame["operator"] != "")]
    assert [path.rpartition("/")[2] for path in copies["operator"]] == ["aten::copy_"]


def test_what_it_costs(torch: Any, record_property: Any) -> None:
    """Nothing is asserted of times: they are printed, for docs/gpu-results.md."""
    x = torch.ones(16, device="cuda")
    calls = 2000

    def per_call() -> float:
        torch.cuda.synchronize()
        began = time.perf_counter_ns()
        for _ in range(calls):
            x.add_(1)
        issued = (time.perf_counter_ns() - began) / calls
        torch.cuda.synchronize()
        return issued

    per_call()
    rows = []
    for _ in range(5):
        row = {"alone": per_call()}
        for name in ("own", "all"):
            with proton.profile(name, activities=name) as run:
                row[name] = per_call()
            seen = run.frame["kind"].value_counts()
        rows.append(row)
    assert seen["kernel"] == seen["operator"] == calls
    medians = pd.DataFrame(rows).median().round().astype(int).to_dict()
    record_property("ns a call of an operator", medians)
    print(f"ns a call of aten::add_: {medians}")
