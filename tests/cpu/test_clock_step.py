"""The steps of a CPU's clock: found where there are some, and said by a run."""

import numpy as np
import pytest

import proton
import proton.language as tl
from proton.runtime.cpu import calibration
from proton.trace.model import CLOCK_STEP


def times(rng: np.random.Generator, step: float, typical: float, spread: float) -> np.ndarray:
    """Reads, some `typical` ticks from each other, of a clock in whole ticks that goes in steps."""
    exact = np.cumsum(rng.normal(typical, spread, calibration.READS).clip(1))
    return (1_000_003 + np.floor(np.floor(exact / step) * step)).astype(np.uint64)


@pytest.mark.parametrize("typical", [60, 250, 900])
@pytest.mark.parametrize("step", [8.7, 16, 25.96, 26, 100, 333.3])
def test_a_step_is_found(session_seed: int, step: float, typical: float) -> None:
    rng = np.random.default_rng(session_seed)
    found = calibration.step_of(times(rng, step, typical, max(step, 0.3 * typical)), 8, 400)
    assert found == pytest.approx(step, rel=0.03)


@pytest.mark.parametrize("step", [1, 2, 4])
@pytest.mark.parametrize("spread", [1, 30, 300])
def test_a_fine_clock_has_none(session_seed: int, step: float, spread: float) -> None:
    rng = np.random.default_rng(session_seed)
    assert calibration.step_of(times(rng, step, 250, spread), 8, 400) == 0


def test_clocks_that_tell_nothing_have_none() -> None:
    regular = 250 * np.arange(99, dtype=np.uint64)
    for same in (regular, np.zeros(9, np.uint64), regular[:1], np.array([0, 1 << 40], np.uint64)):
        assert calibration.step_of(same, 8, 400) == 0


@pytest.mark.parametrize("step", [0.0, 9.98])
def test_a_run_says_the_step(monkeypatch: pytest.MonkeyPatch, step: float) -> None:
    @proton.jit
    def add_one(x, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
        at = tl.arange(0, BLOCK)
        with proton.scope("all"):
            tl.store(x + at, tl.load(x + at) + 1)

    found = calibration.Calibration(9.0, 5.0, step)
    monkeypatch.setattr("proton.runtime.cpu.recorder.calibrate", lambda: found)
    with proton.profile("step") as run:
        add_one[(1,)](np.zeros(16, np.float32), 16)
    assert run.raw.machine.get(CLOCK_STEP, 0.0) == pytest.approx(step, abs=0.05)
