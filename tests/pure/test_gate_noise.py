"""The simulation of the gate from recorded runs: what it draws is what runs measured."""

import sys
from pathlib import Path

import numpy as np
import pytest
from synthetic import gpu_run

from proton.viewer import Run
from proton.viewer.compare import Side, Status
from proton.viewer.compare.samples import ALL_WARPS, Group, Variant

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def gate_noise(monkeypatch: pytest.MonkeyPatch):
    pytest.importorskip("numba_cuda_mlir", reason="the kernels that are recorded are compiled")
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    for name in ("gate", "gate_kernels", "gate_noise"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    import gate_noise

    return gate_noise


class Each:
    """Draws each launch once."""

    def integers(self, low: int, high: int, size: int) -> np.ndarray:
        return np.arange(low, high)


def test_what_is_recorded_has_the_statistics_of_a_check(
    gate_noise, rng: np.random.Generator
) -> None:
    """With each launch drawn once, all scopes and warps are as `Side` reads them."""
    run = Run(gpu_run(int(rng.integers(1 << 30))))
    side = Side.of([run], warps=True)
    (process,) = side.processes
    wanted = {group._replace(variant=group.variant._replace(signature="")): row
              for group, row in process.rows.items() if group.scope}  # fmt: skip
    found = gate_noise.redrawn(gate_noise.durations(run, 0), Each())
    assert set(found) == set(wanted)
    assert {group.warp for group in found} > {ALL_WARPS, 0}
    for group, row in found.items():
        for stat, ns in row.items():
            assert ns == pytest.approx(wanted[group][stat]), (group, stat)


def test_pairs_of_a_file_end_as_they_must(
    gate_noise, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of processes with noise of 0.5 %: equal code passes, and 3 % in one scope is found."""
    rng = np.random.default_rng(0)

    def run(command: list[str], **_: object) -> None:
        """A process that leaves no run."""

    def measured(_: Run, process: int) -> list:
        return [
            gate_noise.Recorded(
                process=process,
                group=Group(Variant("k", ""), scope, warp),
                durations=rng.normal(20_000 * (1 + 0.005 * rng.normal()), 200, 40).astype("u4"),
                launch=np.arange(0, 40, 8),
            )
            for scope in ("a", "b")
            for warp in (0, 1)
        ]

    monkeypatch.setattr(gate_noise.subprocess, "run", run)
    monkeypatch.setattr(gate_noise.Run, "load", lambda path: path)
    monkeypatch.setattr(gate_noise, "durations", measured)
    gate_noise.record(tmp_path / "noise.npz", "cuda", 12, 60.0)
    pool = gate_noise.Pool(tmp_path / "noise.npz", rng)
    rules = gate_noise.budgets(pool, 0.015, warps=False, beside=False)
    assert gate_noise.end(pool.rounds(None, 1.0), rules)[0] is Status.PASS
    assert gate_noise.end(pool.rounds(pool.scopes[0], 1.03), rules)[0] is Status.REGRESSION


def test_noise_is_that_of_neighbours_or_of_two_versions(
    gate_noise, rng: np.random.Generator
) -> None:
    """Of processes that vary by 2 %, and drift, the ratio of neighbours varies by sqrt(2) as much;
    one that is taken within a process has its own noise alone."""
    import gate_sources

    shape = (400, len(gate_sources.SCOPES), len(gate_sources.QUANTILES))
    drift = np.linspace(0, 0.5, shape[0])[:, None, None]
    varied = rng.normal(0, 0.02, shape)
    apart = gate_sources.noise(gate_sources.Way(), [*(varied + drift)])
    within = gate_sources.noise(gate_sources.Way(both=True), [*varied])
    assert apart == pytest.approx(2 * 2**0.5, rel=0.15)
    assert within == pytest.approx(2, rel=0.15)
