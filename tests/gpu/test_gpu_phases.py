"""Phases of a session of `triton.profiler`, on a GPU: what reads one waits for the device."""

import json
from pathlib import Path
from typing import Any

import pytest

import proton
import proton.language as tl
from proton.compat.triton import profiler


@proton.jit
def counts(x_ptr, turns, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at)
    for _ in range(turns):
        with proton.scope("turn"):
            x += 1
    tl.store(x_ptr + at, x)


def launches(tree: dict[str, Any]) -> float:
    here = tree["metrics"].get("count", 0) if tree["frame"]["name"] == "counts" else 0
    return here + sum(launches(child) for child in tree["children"])


@pytest.mark.parametrize("strategy", ["circular", "flush"])
def test_phases_have_the_launches_that_begin_in_them(tmp_path: Path, strategy: str) -> None:
    torch = pytest.importorskip("torch")
    x = torch.zeros(128, device="cuda")
    session = profiler.start(str(tmp_path / "run"), strategy=strategy)
    for phase in range(3):
        for _ in range(phase + 1):
            counts[(1,)](x, 5, BLOCK=128)
        found = profiler.data.get(session, phase)
        assert found is not None
        assert launches(found[0]) == phase + 1
        assert profiler.data.advance_phase(session) == phase + 1
    profiler.data.clear(session, 0)
    run = profiler.finalize(session)
    assert run is not None
    assert len(run.launches) == 5
    assert set(run.frame.loc[run.frame["name"] == "turn", "iteration"]) == set(range(5))
    parts = [json.loads((tmp_path / f"run.part_{n}.hatchet").read_text()) for n in (1, 2, 3)]
    assert [launches(part[0]) for part in parts] == [2, 3, 0]
    assert not (tmp_path / "run.part_0.hatchet").exists()
    assert float(x[0]) == 6 * 5
