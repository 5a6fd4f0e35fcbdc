"""Operators of torch in a run, with stand-ins for torch and for CUPTI; then with torch itself."""

import contextlib
import functools
import importlib
import importlib.util
import io
import json
import os
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

import proton
import proton.language as tl
from proton import _report
from proton.runtime.session import import_watch, operator_callbacks, operators
from proton.runtime.session.operator_callbacks import NAME_BYTES, Callbacks, declared
from proton.trace.merge import merge
from proton.trace.model import HostSlice
from proton.trace.operators import NO_ONE, Operators
from tests.compile.fake_cupti import (
    ActivityKind,
    DriverApiTraceCbid,
    RuntimeApiTraceCbid,
    Standin,
    standin,
)
from tests.compile.fake_torch import HEADER, Torch
from tests.perfetto_equality import FLOWS, assert_trace_equals_tables
from tests.trace_processor import TraceProcessor

__all__ = ("standin",)  # the fixture
LAUNCH, COPY = RuntimeApiTraceCbid.cudaLaunchKernel_v7000, RuntimeApiTraceCbid.cudaMemcpyAsync_v3020


@proton.jit
def fill(out, BLOCK: tl.constexpr):
    with proton.scope("store"):
        tl.store(out + tl.arange(0, BLOCK), 1)


@pytest.fixture
def torch(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Torch:
    """The stand-in, as if it had been imported."""
    module = Torch(tmp_path)
    monkeypatch.setitem(sys.modules, "torch", module)
    monkeypatch.setattr(operator_callbacks, "_loaded", lambda path: module.library)
    monkeypatch.setattr(operators, "_source", operators._Source())
    return module


def of(run: Any) -> pd.DataFrame:
    """The operators of a run, in order of time."""
    frame = run.frame
    return frame[frame["kind"] == "operator"].sort_values("start_ns", kind="stable")


def test_operators_nest_in_each_other_and_in_scopes_of_the_host(
    torch: Torch, tmp_path: Path
) -> None:
    with torch.operator("before"), proton.profile("ops", activities="all") as run:
        with proton.scope("step"):
            with torch.operator("aten::linear"):
                time.sleep(0.002)
                with torch.operator("aten::addmm"), proton.scope("inner"):
                    with torch.operator("a/b"):
                        time.sleep(0.001)
            with torch.operator("aten::sum"):
                pass
        with torch.operator("x" * 300), torch.operator("größe"):
            out = np.zeros(8, np.int32)
            fill[(1,)](out, BLOCK=8)
    assert not torch.callbacks
    with torch.operator("after"):
        pass
    frame = of(run)
    cut = "x" * (NAME_BYTES - 1) + "..."
    assert list(frame["scope"]) == [
        "step/aten::linear",
        "step/aten::linear/aten::addmm",
        "step/inner/a|b",
        "step/aten::sum",
        cut,
        f"{cut}/größe",
    ]
    assert set(frame["thread"]) == {threading.get_ident()}
    durations = dict(zip(frame["name"], frame["dur_ns"], strict=True))
    assert durations["aten::linear"] >= 2_000_000 + durations["aten::addmm"]
    assert durations["a|b"] >= 1_000_000
    # What is nested is counted once: the selfs add up to what the outermost take.
    table = run.stats("name", "dur_ns", "operator")
    outer = frame[frame["name"].isin(["aten::linear", "aten::sum", cut])]
    assert table["self"].sum() == outer["dur_ns"].sum()
    launched = run.frame[run.frame["kind"].isin(["launch", "scope"])]
    assert launched["operator"].tolist() == [f"{cut}/größe"] * 2
    by_operator = run.stats("operator", "dur_ns")
    assert by_operator["operator"].tolist() == [f"{cut}/größe"]
    assert run.summary().facts["torch"] == "6 calls of 6 operators and ranges"
    shown = io.StringIO()
    _report.show(run, Console(file=shown, width=100))
    assert "torch: 6 calls of 6 operators and ranges" in shown.getvalue()
    loaded = proton.Run.load(run.save(tmp_path / "ops.proton"))
    assert loaded.raw.host == run.raw.host
    assert_trace_equals_tables(loaded, tmp_path / "ops.pftrace")


def test_each_thread_has_its_own_operators(torch: Torch, rng: np.random.Generator) -> None:
    wanted: dict[int, list[str]] = {}
    together = threading.Barrier(4)

    def work(depths: list[int]) -> None:
        names = wanted.setdefault(threading.get_ident(), [])
        together.wait()
        for number, depth in enumerate(depths):
            with inside_of_each_other(torch, [f"op{number}.{level}" for level in range(depth)]):
                pass
            for level in range(depth):
                names.append("/".join(f"op{number}.{inner}" for inner in range(level + 1)))
        together.wait()  # an ident is used again when its thread has ended

    with proton.profile("threads", activities="all") as run:
        threads = [
            threading.Thread(target=work, args=(rng.integers(1, 5, 200).tolist(),))
            for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    frame = of(run)
    found = {ident: rows["scope"].tolist() for ident, rows in frame.groupby("thread")}
    assert found == wanted


def inside_of_each_other(torch: Torch, names: list[str]) -> Any:
    """Operators inside of each other."""
    stack = contextlib.ExitStack()
    for name in names:
        stack.enter_context(torch.operator(name))
    return stack


def test_what_does_not_fit_is_counted_and_said(
    torch: Torch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(operators, "Callbacks", functools.partial(Callbacks, capacity=5))
    for round_ in range(2):
        with proton.profile("full", activities="all") as run:
            for number in range(12 if round_ else 3):
                with torch.operator(f"op{number}"):
                    pass
        assert list(of(run)["name"]) == [f"op{n}" for n in range(5 if round_ else 3)]
        line = "7 operators of torch were not recorded: they did not fit"
        assert (line in run.loss_warnings()) == bool(round_)
        assert (line in run.summary().warnings) == bool(round_)


def test_an_operator_whose_end_did_not_fit_is_lost(
    torch: Torch, monkeypatch: pytest.MonkeyPatch
) -> None:
    """... and not one that lasted to the session's end."""
    monkeypatch.setattr(operators, "Callbacks", functools.partial(Callbacks, capacity=3))
    with proton.profile("full", activities="all") as run:
        with torch.operator("outer"):
            for number in range(9):
                with torch.operator(f"op{number}"):
                    pass
        time.sleep(0.001)
    assert list(of(run)["name"]) == ["op0", "op1"]
    assert "8 operators of torch were not recorded: they did not fit" in run.loss_warnings()


def test_begins_are_paired_with_ends_at_their_address(rng: np.random.Generator) -> None:
    """... of random threads of operators, some of whose ends are gone, in any order of rows."""
    begins, ends, wanted = [], [], {}
    for address in rng.permutation(40).tolist():
        now = int(rng.integers(1, 1000))
        for number in range(int(rng.integers(1, 6))):
            start, end = now, now + int(rng.integers(1, 50))
            now = end + int(rng.integers(1, 50))
            begins.append((start, address, 1, f"{address}.{number}".encode()))
            is_kept = rng.random() < 0.8
            if is_kept:
                ends.append((end, address))
            for later in [name for name in wanted if wanted[name] == 0]:
                if later.startswith(f"{address}."):
                    wanted[later] = operators.LOST  # another one has its address now
            wanted[f"{address}.{number}"] = end if is_kept else 0
    rows = np.array(begins, operator_callbacks.BEGIN), np.array(ends, operator_callbacks.END)
    found = operators.calls(*(rng.permutation(part) for part in rows))
    assert dict(zip((n.decode() for n in found.name), found.end.tolist(), strict=True)) == wanted


def test_sessions_have_the_operators_of_their_windows(torch: Torch) -> None:
    first = proton.start("first", activities="all")
    with torch.operator("alone"):
        pass
    second = proton.start("second", activities="all")
    with torch.operator("both"):
        pass
    proton.deactivate(first)
    with torch.operator("other"):
        pass
    assert list(of(proton.finalize(second))["name"]) == ["both", "other"]
    with torch.operator("paused"):
        pass
    assert list(of(proton.finalize(first))["name"]) == ["alone", "both"]
    assert not torch.callbacks
    with proton.profile("own"):
        assert not torch.callbacks


def test_what_is_under_way_ends_with_the_session(torch: Torch) -> None:
    session = proton.start("open", activities="all")
    with torch.operator("outer"):
        with torch.operator("inner"):
            pass
        run = proton.finalize(session)
        ended = time.perf_counter_ns() - run.raw.origin_ns
    outer, inner = of(run).to_dict("records")
    assert (outer["name"], inner["scope"]) == ("outer", "outer/inner")
    assert inner["start_ns"] + inner["dur_ns"] <= outer["start_ns"] + outer["dur_ns"] <= ended


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_operators_of_forked_processes_are_theirs(torch: Torch) -> None:
    with proton.profile("forks", activities="all") as run:
        with torch.operator("parent"):
            pass
        child = os.fork()
        if not child:
            with torch.operator("child"):
                os._exit(0)
        os.waitpid(child, 0)
    assert list(of(run)["name"]) == ["parent"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("bool needs_ids_", "bool needs_more_"), "the data of class RecordFunctionCallback"),
        (("double sampling_prob_", "float sampling_prob_"), "the data of class RecordFunction"),
        (("USER_SCOPE", "MY_SCOPE"), "enum class RecordScope"),
        (("const char* name() const", "StringView name() const"), "const char* name() const;"),
        (("uint64_t CallbackHandle", "Handle CallbackHandle"), "typedef uint64_t CallbackHandle;"),
    ],
)
def test_another_torch_is_left_alone(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    change: tuple[str, str],
    message: str,
) -> None:
    module = Torch(tmp_path, HEADER.replace(*change))
    monkeypatch.setitem(sys.modules, "torch", module)
    monkeypatch.setattr(operators, "_source", operators._Source())
    for _ in range(2):
        with proton.profile("other", activities="all") as run, module.operator("one"):
            pass
        assert not len(of(run))
        assert message in run.summary().facts["operators that are missing"]
    said = [line for line in capsys.readouterr().err.splitlines() if "operators" in line]
    assert len(said) == 1, "once a process"
    assert said[0].startswith("proton: no operators are recorded: torch 2.99 cannot be listened to")
    assert not module.callbacks


def test_a_module_that_is_imported_later_is_seen(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "proton_late.py").write_text("ready = True")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "proton_late", raising=False)
    seen: list[Any] = []
    watch = import_watch.ImportWatch("proton_late", seen.append)
    assert importlib.util.find_spec("proton_late") is not None  # looks, and imports nothing
    assert not seen
    module = importlib.import_module("proton_late")
    assert seen == [module]
    assert module.ready
    assert type(module.__loader__).__name__ == "SourceFileLoader"
    watch.stop()
    assert watch not in sys.meta_path


# Who asked for what a GPU did


def asked(standin: Standin, torch: Torch, thread: int) -> None:
    """Operators that launch kernels, of which CUPTI tells later."""
    place = {"device_id": 0, "stream_id": 7}
    called: list[tuple[int, int, int]] = []

    def call(correlation: int) -> None:
        called.append((correlation, time.perf_counter_ns(), 0))
        time.sleep(0.002)
        called[-1] = (*called[-1][:2], time.perf_counter_ns())

    call(90)
    with torch.operator("aten::softmax"):
        call(91)
        with torch.operator("aten::_softmax"):
            call(92)
            call(93)
    with torch.operator("aten::copy_"):
        call(94)
    later = time.perf_counter_ns()
    functions = [LAUNCH, LAUNCH, DriverApiTraceCbid.cuLaunchKernelEx, LAUNCH, COPY]
    for function, (correlation, begin, end) in zip(functions, called, strict=True):
        standin.called(RuntimeApiTraceCbid.cudaGetDevice_v3020, begin, end, thread, 1)
        standin.called(function, begin, end, thread, correlation)
        kind = ActivityKind.MEMCPY if function == COPY else ActivityKind.CONCURRENT_KERNEL
        more = {"copy_kind": 1, "bytes": 8} if function == COPY else {"name": f"k{correlation}"}
        start = later + (correlation - 90) * 1000
        standin.ran(kind, start, start + 500, correlation_id=correlation, **more, **place)


def test_what_a_gpu_did_is_linked_to_the_operator_that_asked(
    standin: Standin, torch: Torch, tmp_path: Path
) -> None:
    with proton.profile("asked", activities="all") as run:
        asked(standin, torch, threading.get_ident())
        pending = [record.kind for record in standin.pending]
        assert pending.count(ActivityKind.RUNTIME) == 4, "only calls that ask for something"
        time.sleep(0.01)
    frame = run.frame[run.frame["device"] >= 0]
    nested = "aten::softmax/aten::_softmax"
    wanted = ["", "aten::softmax", nested, nested, "aten::copy_"]
    assert frame.sort_values("start_ns")["operator"].tolist() == wanted
    told = "3 calls of 3 operators and ranges, which asked for 4 of 5 kernels, copies and fills"
    assert run.summary().facts["torch"] == told
    table = run.stats("operator", "dur_ns", "kernel").set_index("operator")
    assert table["count"].to_dict() == {"": 1, "aten::softmax": 1, nested: 2}
    loaded = proton.Run.load(run.save(tmp_path / "asked.proton"))
    assert loaded.raw.host == run.raw.host
    with TraceProcessor(loaded.save(tmp_path / "asked.pftrace")) as processor:
        flows = processor.query(FLOWS)
    pairs = {(f["source_name"], f["source"], f["target_name"], f["target"]) for f in flows}
    assert pairs == {
        ("aten::softmax", "operator", "k91", "kernel"),
        ("aten::_softmax", "operator", "k92", "kernel"),
        ("aten::_softmax", "operator", "k93", "kernel"),
        ("aten::copy_", "operator", "memcpy HTOD", "memcpy"),
    }
    assert len(flows) == len(pairs)
    assert_trace_equals_tables(loaded, tmp_path / "equal.pftrace")
    events = json.loads(loaded.save(tmp_path / "asked.json").read_text())["traceEvents"]
    ends = {
        phase: [(e["pid"], e["tid"]) for e in events if e["ph"] == phase and "id" in e]
        for phase in "sf"
    }
    assert len(ends["s"]) == len(ends["f"]) == 4
    named = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
    assert {named[place] for place in ends["s"]} == {"host thread 0"}
    assert {named[place] for place in ends["f"]} == {"stream 7"}


def test_links_of_several_processes_stay_apart(standin: Standin, torch: Torch) -> None:
    runs = []
    for _ in range(2):
        with proton.profile("one", activities="all") as run:
            asked(standin, torch, threading.get_ident())
            time.sleep(0.01)
        runs.append(run.raw)
    whole = merge(runs, ["a", "b"])
    linked = Operators(whole)
    rows = [s for s in whole.host if s.device >= 0]
    who = [linked.at(s.issuer, s.issued) for s in rows]
    for slice_, row in zip(rows, who, strict=True):
        assert row == NO_ONE or (whole.host[row].thread >= 1000) == (slice_.device > 0)
    assert sum(row == NO_ONE for row in who) == 2


def test_a_thread_that_recorded_nothing_has_no_operators(standin: Standin, torch: Torch) -> None:
    with proton.profile("asked", activities="all") as run:
        asked(standin, torch, threading.get_ident() + 8)
        time.sleep(0.01)
    assert set(run.frame["operator"]) == {""}


def test_the_innermost_operator_is_found(rng: np.random.Generator) -> None:
    """... among random ones that nest, against a search through all."""
    host: list[HostSlice] = []

    def grow(start: int, end: int, depth: int) -> None:
        host.append(HostSlice(name="o", path="o", thread=1, start=start, end=end, kind="operator"))
        cuts = sorted(rng.integers(start, end + 1, 2 * int(rng.integers(0, 4))).tolist())
        for begin, stop in zip(cuts[::2], cuts[1::2], strict=True):
            if depth and begin < stop:
                grow(begin, stop, depth - 1)

    grow(100, 5000, 6)
    linked = Operators(type("Raw", (), {"host": host})())  # type: ignore[arg-type]
    for moment in rng.integers(0, 5200, 500).tolist():
        around = [s for s in host if s.start <= moment <= s.end]
        found = linked.at(1, moment)
        if not around:
            assert found == NO_ONE
        else:
            # Where one ends as the next one begins, that has begun.
            innermost = max(around, key=lambda s: (s.start, -s.end))
            assert (host[found].start, host[found].end) == (innermost.start, innermost.end)
    assert linked.at(2, 1000) == NO_ONE


# With torch


@pytest.fixture
def real(monkeypatch: pytest.MonkeyPatch) -> Any:
    """torch itself."""
    module = pytest.importorskip("torch")
    monkeypatch.setattr(operators, "_source", operators._Source())
    return module


def train(torch: Any, x: Any) -> None:
    with torch.profiler.record_function("my range"):
        hidden = torch.nn.functional.softmax(x @ x, dim=-1)
    (hidden * 2).sum().backward()
    with pytest.raises(RuntimeError):
        torch.ones(2) @ torch.ones(3)


def test_torchs_header_is_read(real: Any) -> None:
    header = Path(real.__file__).parent / "include/ATen/record_function.h"
    scopes = declared(header.read_text())
    assert scopes[:3] == ["FUNCTION", "BACKWARD_FUNCTION", "TORCHSCRIPT_FUNCTION"]


def test_operators_are_those_that_torchs_profiler_sees(real: Any, tmp_path: Path) -> None:
    """... in forward and backward passes, in user ranges, and where an operator raises; and that
    profiler runs in the session as it does without."""
    x = real.randn(32, 32, requires_grad=True)
    with proton.profile("torch", activities="all") as run:
        cpu = real.profiler.ProfilerActivity.CPU
        x.cos()
        with real.profiler.profile(activities=[cpu]) as theirs:
            train(real, x)
        x.grad = None  # nothing to accumulate, as before
        x.cos()
        train(real, x)
        x.cos()
    theirs.export_chrome_trace(str(tmp_path / "theirs.json"))
    events = json.loads((tmp_path / "theirs.json").read_text())["traceEvents"]
    kinds = "cpu_op", "user_annotation"
    wanted = Counter(e["name"] for e in events if e.get("cat") in kinds and e["ph"] == "X")
    assert wanted["MmBackward0"] == 1
    assert wanted["my range"] == 1
    frame = of(run)
    marked = frame.reset_index(drop=True)
    begin, middle, end = marked.index[marked["name"] == "aten::cos"]
    assert Counter(marked["name"][begin + 1 : middle]) == wanted
    assert Counter(marked["name"][middle + 1 : end]) == wanted
    assert set(frame["thread"]) == {threading.get_ident()}
    backward = frame[frame["name"] == "MmBackward0"]["scope"].iloc[0]
    assert backward == "autograd::engine::evaluate_function: MmBackward0/MmBackward0"
    first = next(event for event in theirs.events() if event.name == "aten::mm")
    mine = frame[frame["name"] == "aten::mm"].iloc[0]
    assert mine["scope"] == "my range/aten::matmul/aten::mm"
    assert mine["dur_ns"] <= 10 * 1000 * first.time_range.elapsed_us() + 1_000_000


def test_operators_of_threads_and_of_inference_are_seen(real: Any) -> None:
    idents = []

    def work() -> None:
        idents.append(threading.get_ident())
        with real.inference_mode():
            real.ones(8).cos()

    with proton.profile("torch", activities="all") as run:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    frame = of(run)
    assert "aten::cos" in set(frame["name"])
    assert set(frame["thread"]) == set(idents)


SCRIPT = """
import proton, importlib.util
assert importlib.util.find_spec("torch")
import torch
with proton.scope("step"):
    torch.ones(4).sum()
"""


def test_a_script_that_imports_torch_is_recorded_as_it_is(real: Any, tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    out = tmp_path / "script.proton"
    command = [sys.executable, "-m", "proton", "--activities", "all", "-o", out, "script.py"]
    subprocess.run(command, check=True, cwd=tmp_path, timeout=300, capture_output=True)
    paths = set(of(proton.Run.load(out))["scope"])
    assert {"step/aten::ones", "step/aten::sum"} <= paths


def test_nobody_imports_torch_for_it(tmp_path: Path) -> None:
    code = (
        "import sys, proton\n"
        "with proton.profile('x', activities='all'): pass\n"
        "assert 'torch' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=tmp_path, timeout=300)
