"""Which launches a monitor records, against simulated kernels: no clock is read."""

import itertools
import math
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
import pytest

from proton.base.errors import ProfileError
from proton.runtime.session import launch_budget
from proton.runtime.session.launch_budget import (
    LEAST_EVERY,
    MOST_EVERY,
    WINDOW,
    KernelBudget,
    KernelGate,
    LaunchBudget,
    bounds,
    size_of,
)
from proton.trace.monitor_options import MonitorOptions
from tests.draws import times
from tests.tables import check_rows


@dataclass
class Simulation:
    """Launches of a kernel, ns: what each takes plainly, with records, and besides of the host."""

    part: float
    plain: Callable[[], float]
    cost: float
    host: float
    poll: int = 5000  # launches between updates
    time: float = 0.0  # of all launches without what recording takes
    spent: float = 0.0
    recorded: int = 0
    left: int = 0
    kernels: LaunchBudget = field(init=False)

    def __post_init__(self) -> None:
        self.kernels = LaunchBudget(self.part)

    @property
    def budget(self) -> KernelBudget:
        (found,) = self.kernels.kernels.values()
        return found

    def launch(self, count: int) -> None:
        for _ in range(count):
            took, times = self.plain(), self.kernels.choose("k", (8, 2))
            self.time += took
            if times is not None:
                self.spent += launch_budget.TIMING_NS
                if times.is_recorded:
                    self.spent += self.cost + self.host
                    self.recorded += 1
                    self.budget.charge(self.host)
                times.add(round(took + self.cost * times.is_recorded))
            self.left -= 1
            if self.left <= 0:
                self.left = self.poll
                self.kernels.update()

    @property
    def share(self) -> float:
        return self.spent / self.time


def noise(rng: np.random.Generator, mean: float, part: float) -> Callable[[], float]:
    """Times around a mean: a skewed noise, and now and then the program is interrupted."""
    drawn = iter(rng.gamma(1 / part**2, mean * part**2, 1 << 20) if part else [])
    stops = iter(rng.random(1 << 20) < 1e-4)
    return lambda: (next(drawn) if part else mean) + 50 * mean * bool(next(stops))


def simulations(rng: np.random.Generator) -> Iterator[tuple[float, float, float, float, float]]:
    for _ in range(times(12)):
        plain = 10 ** rng.uniform(3.7, 6)  # 5 us to 1 ms
        yield (
            float(rng.choice([0.001, 0.005, 0.01, 0.05])),
            plain,
            float(plain * rng.choice([0, 0.001, 0.03, 0.5, 8])),
            float(10 ** rng.uniform(3, 5.5)),
            float(rng.choice([0, 0.01, 0.1, 0.4])),
        )


def test_the_budget_is_kept_whatever_recording_costs(rng: np.random.Generator) -> None:
    def check(budget: float, plain: float, cost: float, host: float, part: float) -> None:
        of = Simulation(budget, noise(rng, plain, part), cost, host)
        of.launch(150_000)
        assert of.share <= budget, (of.recorded, of.budget.every)
        # And it is used, once what recording takes is known: no more is left than the noise needs.
        if of.recorded < 2 * WINDOW:
            return
        least = cost + host + launch_budget.TIMING_NS
        assert of.budget.every <= max(
            LEAST_EVERY, math.ceil(8 * (least + part * plain) / (budget * plain))
        )
        assert of.budget.share <= budget + launch_budget.GATE_NS / of.budget.plain_ns

    check_rows(check, simulations(rng))


def test_it_converges_to_what_the_budget_allows() -> None:
    """Without noise: one of cost / (budget * time)."""
    of = Simulation(0.01, lambda: 100_000, cost=30_000, host=45_000)
    of.launch(200_000)
    wanted = 77_000 / (0.75 * (0.01 * 100_000 - launch_budget.GATE_NS))
    assert of.budget.every == pytest.approx(wanted * (1 + 0.4 / WINDOW), rel=0.03)
    seen, before = of.budget.every, of.recorded
    of.launch(200_000)
    assert of.budget.every == seen
    assert of.recorded - before == pytest.approx(200_000 / seen, rel=0.1)


def test_a_cost_below_the_noise_is_no_reason_to_stop(rng: np.random.Generator) -> None:
    of = Simulation(0.005, noise(rng, 1e6, 0.05), cost=0, host=100)
    of.launch(100_000)
    assert of.budget.every < 64


@pytest.mark.parametrize("factor", [0.05, 20])
def test_a_kernel_that_changes_is_followed(rng: np.random.Generator, factor: float) -> None:
    """Its time, and what recording takes; as much is spent meanwhile as the window is long."""
    times = noise(rng, 1.0, 0.05)
    now = [200_000.0]
    of = Simulation(0.01, lambda: now[0] * times(), cost=20_000, host=5_000)
    of.launch(150_000)
    before = of.budget.every
    now[0] *= factor
    of.launch(100_000)
    of.time = of.spent = 0.0
    of.launch(200_000)
    assert of.share <= 0.01
    assert (of.budget.every > before) == (factor < 1)
    of.cost = 30 * now[0]
    rises = of.budget.every
    of.launch(200 * rises + 20_000)
    of.time = of.spent = 0.0
    of.launch(100_000)
    assert of.budget.every > 3 * rises
    assert of.share <= 0.01


def test_a_kernel_that_is_launched_once_costs_nothing() -> None:
    budget = LaunchBudget(0.01)
    assert budget.choose("k", (1,)) is None
    assert budget.update() == []
    assert budget.gates["k"].launches == 1
    assert not budget.kernels


def test_nothing_is_recorded_before_its_time_is_known() -> None:
    budget = LaunchBudget(0.5)
    chosen = [times for _ in range(10_000) if (times := budget.choose("k", (1,))) is not None]
    assert chosen
    assert not any(times.is_recorded for times in chosen)
    assert len(chosen) == pytest.approx(10_000 / launch_budget.FIRST_PLAIN_EVERY, rel=0.2)
    assert budget.gates["k"].launches == 10_000


def test_it_begins_cautiously() -> None:
    """As if a recorded launch took as much as the kernel, and falls by halves."""
    budget = KernelBudget("k", 0.01)
    for _ in range(launch_budget.LEAST_PLAIN):
        budget.plain.add(1_000_000)
    assert budget.update() == [1_000_000] * launch_budget.LEAST_PLAIN
    first = budget.every
    cost = 1_000_000 + launch_budget.FIRST_HOST_NS + launch_budget.TIMING_NS
    assert first == math.ceil(cost / (0.75 * (10_000 - launch_budget.GATE_NS)))
    budget.charge(0)
    for number in range(5):
        budget.recorded.add(1_000_000)
        budget.update()
        assert budget.every == max(first >> number, LEAST_EVERY)


def test_it_never_rises_beyond_its_bound() -> None:
    budget = KernelBudget("k", 1e-9)
    for _ in range(launch_budget.LEAST_PLAIN):
        budget.plain.add(1)
    budget.update()
    assert budget.every == MOST_EVERY


def test_no_period_of_launches_meets_one_kind_alone(rng: np.random.Generator) -> None:
    """Launches that come in turns, short ones and long ones: of each as many are recorded."""
    for period in (2, 3, 8, 13, 21, 64, int(rng.integers(2, 100))):
        kernels = LaunchBudget(0.1)
        of = kernels.of("k", (1,))
        assert of is not None
        of.every, of.plain_every = rng.integers(2, 40, 2).tolist()
        kernels.gates["k"] = gate = KernelGate()
        gate.gap = of.widest_gap
        of.set_gap(gate.gap)
        found = np.zeros((period, 2))
        rounds = 6000
        for number in itertools.islice(itertools.cycle(range(period)), rounds * period):
            if (times := kernels.choose("k", (1,))) is not None:
                found[number, int(times.is_recorded)] += 1
        wanted = np.array([1 / of.plain_every, 1 / of.every])
        # As a random choice would, or better; both are as often as is asked for.
        spread = 5 * np.sqrt(wanted / rounds)
        assert (np.abs(found / rounds - wanted) < spread).all()
        assert found.sum(0) / (rounds * period) == pytest.approx(wanted, rel=0.05)
        assert gate.launches == rounds * period


def test_bounds_hold_the_median(rng: np.random.Generator) -> None:
    """In 95 % of cases, whatever the distribution; a little more, as ranks are whole."""
    draws = 10 ** rng.normal(3, 0.5, (2000, WINDOW))
    inside = [low <= 1000 <= high for low, high in map(bounds, draws.astype(np.int64).tolist())]
    assert 0.93 < np.mean(inside) < 0.99
    assert bounds([5]) == (5, 5)
    assert bounds([9, 5]) == (5, 9)


def test_launches_of_a_kernel_are_told_apart_by_their_size() -> None:
    budget = LaunchBudget(0.1)
    grids: list[object] = [(1, 1, 1), (2,), (2, 3, 1), (4, 1, 1), 7, [64, 64]]
    assert [size_of(grid) for grid in grids] == [1, 2, 3, 3, 3, 13]
    assert [size_of(grid) for grid in (None, ("a",), (1.5,), (None, 2))] == [0, 0, 1, 0]
    for _ in range(2000):
        for grid in grids:
            budget.choose("k", grid)
    assert set(budget.kernels) == {("k", 1), ("k", 2), ("k", 3), ("k", 13)}
    assert budget.gates["k"].launches == 12_000
    about = {size: of.launches for (_, size), of in budget.kernels.items()}
    assert about[3] == pytest.approx(6000, rel=0.2)
    assert sum(about.values()) == pytest.approx(12_000, rel=0.05)


def test_there_are_no_more_kernels_than_memory_is_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch_budget, "MOST_KERNELS", 3)
    budget = LaunchBudget(0.1)
    for _ in range(3):
        for number in range(9):
            budget.choose(f"k{number}", (1,))
    assert len(budget.kernels) == len(budget.gates) == 3
    for _ in range(10 * launch_budget.FRESH):
        budget.kernels["k0", 1].plain.add(1)
    assert len(budget.kernels["k0", 1].plain.fresh) == launch_budget.FRESH


def test_launches_of_many_threads_are_all_counted() -> None:
    budget = LaunchBudget(0.1)
    chosen: list[object] = []

    def launch() -> None:
        chosen.extend(budget.choose("k", (1,)) for _ in range(3000))

    threads = [threading.Thread(target=launch) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(chosen) == 12_000
    assert budget.gates["k"].launches == 12_000


def test_what_a_budget_may_be() -> None:
    texts = {"0.5%": 0.005, "5 %": 0.05, 0.01: 0.01, "0.01": 0.01, "99.9%": 0.999}
    for given, part in texts.items():
        assert MonitorOptions("runs", budget=given).budget == pytest.approx(part)
    for wrong in ("0%", 0, "100%", 1, -0.1, "x", "", "%", None, True, float("nan"), [0.1]):
        with pytest.raises(ProfileError, match="budget is a part of a kernel's time"):
            MonitorOptions("runs", budget=wrong)  # type: ignore[arg-type]


def test_what_a_monitor_refuses() -> None:
    refused: list[tuple[dict[str, object], str]] = [
        ({"folder": ""}, "folder is the path"),
        ({"period_s": 0}, "period_s must be a number above 0"),
        ({"folder_mb": float("inf")}, "folder_mb must be a number above 0"),
        ({"every_launch": 3}, "takes no every_launch=3: budget chooses"),
        ({"compare_run_time": True}, "takes no compare_run_time=True"),
        ({"activities": "all"}, "takes no activities='all'"),
        ({"counters": "sm"}, "takes no counters="),
        ({"strategy": "flush"}, "takes no strategy='flush'"),
    ]
    for options, said in refused:
        with pytest.raises(ProfileError, match=said):
            MonitorOptions(**{"folder": "runs", **options})  # type: ignore[arg-type]
    assert MonitorOptions("runs", auto="loads", sample_programs=4, capacity=8).auto == ("loads",)
