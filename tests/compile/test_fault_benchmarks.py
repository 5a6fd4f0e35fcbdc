"""The faults that benchmarks/gpu_findings.py times: each compiles for an H200 as it is meant to be,
and the script's path runs on the CPU."""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import proton.language as tl
from proton.base.targets import GPUTarget
from proton.viewer.explain.rule import rules

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
HOPPER = GPUTarget("cuda", 90)
REGISTERS = 65536  # of an SM


class OfTypes:
    """Types in place of arrays, of a GPU that is not there."""

    device, places = "cuda", 132

    def random(self, *shape: int, dtype: str = "float32") -> Any:
        return getattr(tl, dtype)

    def of(self, values: np.ndarray) -> Any:
        return getattr(tl, values.dtype.name)


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    for name in ("faulty_kernels", "recorded_kernels", "findings_cases", "gpu_findings"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    import gpu_findings

    return gpu_findings


def compiled(side: Any, **more: Any) -> Any:
    _, given = side.calls[0]
    return side.kernel.warmup(*given, **side.options, **more, target=HOPPER)


@pytest.mark.filterwarnings("ignore::proton.base.errors.PerformanceWarning")
def test_faults_compile_and_are_faults(script: Any) -> None:
    cases = script.CASES
    assert {case.rule for case in cases.values()} <= set(rules())
    assert len({case.rule for case in cases.values()}) >= 6
    sides = {name: case.sides(OfTypes()) for name, case in cases.items()}
    kernels = {name: [compiled(side) for side in both] for name, both in sides.items()}
    for name, (faulty, fixed) in kernels.items():
        assert bool(faulty.n_spills) == (cases[name].rule == "spills"), name
        assert not fixed.n_spills, name
    # One program of a tile fits on an SM, so that a half wave is one of programs.
    (wave,) = (n for n, case in cases.items() if case.rule == "tail")
    assert 2 * kernels[wave][0].n_regs * 16 * 32 > REGISTERS
    # The slow part of the sines is the first warp's, and then an equal part of each warp's.
    (late,) = (n for n, case in cases.items() if case.rule == "late-warp")
    layout = "[[1], [2], [512], [1024]], [[4], [8], [16], [32], [64]], [[128], [256]]"
    assert all(layout in kernel.asm["ttgir"] for kernel in kernels[late])


@pytest.mark.usefixtures("no_ptx")
def test_sessions_record_what_rules_need(script: Any) -> None:
    """The work that `auto` asks for is in the kernel with the fault, and of a scope that waits its
    wait, whatever views and numbers it takes beside it."""
    for name, case in script.CASES.items():
        if case.rule == "waits":
            kernel = compiled(case.sides(OfTypes())[0], profile=case.session)
            assert any(scope.waits for scope in kernel.profile.table.scopes if scope.name == "load")
        if words := case.session.get("auto"):
            kernel = compiled(case.sides(OfTypes())[0], profile=case.session)
            found = {scope.work for scope in kernel.profile.table.scopes}
            assert set(words.split(",")) <= found, name


def test_a_fault_is_profiled_timed_and_shown(
    script: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    file = tmp_path / "found.json"
    words = "gpu_findings", "--device", "cpu", "--rounds", "1", "--json", str(file)
    monkeypatch.setattr(sys, "argv", [*words, "--only", "scopes too fine"])
    assert script.main() == 0
    lines = capsys.readouterr().out.splitlines()
    assert [len(line) <= 80 for line in lines] == [True, True]
    document = json.loads(file.read_text())
    (row,) = document["rows"]
    assert row["rule"] == "fine-scopes"
    assert row["rank"] >= 1
    assert row["measured"] == pytest.approx(100 * (1 - row["fixed_us"] / row["faulty_us"]))
    assert {column["key"] for column in document["columns"]} <= set(row)
    assert row["source"] in document["sources"]
    assert f" {row['faulty_us']:.1f} " in lines[1]
