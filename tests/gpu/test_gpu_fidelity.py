"""Flights against copies that are instrumented by hand in PTX, with clock reads and global stores
of their own at the instructions that issue and that wait (`-s` prints the figures)."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import proton
from tests.compile.hand_instrumented import LOG_BYTES, by_hand, flights
from tests.compile.test_gpu_auto import WGMMA, by_descriptors, matmul

K, BLOCK_K, LAUNCHES = 1024, 64, 7
TURNS = K // BLOCK_K
# What a record costs in a body with loads and barriers, and so do the clock and store by hand: 25.5
# were measured.
RECORD_CYCLES = 35
OPTIONS = {"auto": ("copies",), "capacity": 256}


@dataclass(frozen=True)
class Case:
    """A product of one program; `extra` is how many copies begin beyond the loop's end."""

    kernel: Any
    arguments: Callable[[Any], tuple[Any, ...]]
    options: dict[str, Any]
    stages: int
    extra: int

    def launch(self, torch: Any, kernel: Any) -> None:
        kernel[(1,)](*self.arguments(torch), num_stages=self.stages, **self.options)


def by_pointers(torch: Any) -> tuple[Any, ...]:
    a, b, c = (torch.ones(n, K, device="cuda", dtype=torch.half) for n in (128, K, 128))
    return a, b, c.float(), K


def by_tma(torch: Any) -> tuple[Any, ...]:
    shapes = (128, K), (K, 128), (128, 128)
    return *(torch.ones(*shape, device="cuda", dtype=torch.half) for shape in shapes), K, 1


COPIES = {"STRIDE": K, **WGMMA}
CASES = [
    pytest.param(case, id=f"{name}-{case.stages}")
    for stages in (2, 3, 4)
    for name, case in (
        ("cp.async", Case(matmul, by_pointers, COPIES, stages, stages - 1)),
        ("tma", Case(by_descriptors, by_tma, {"FLATTEN": False, "num_warps": 8}, stages, 0)),
    )
]


@pytest.fixture
def log() -> Any:
    torch = pytest.importorskip("torch")
    if torch.cuda.get_device_capability()[0] != 9:
        pytest.skip("TMA and wgmma of compute capability 9.0")
    return torch.zeros(LOG_BYTES, dtype=torch.uint8, device="cuda")


def by_unit(run: Any, launch: int) -> list[Any]:
    """The flights of each unit of a launch, in order."""
    found = run.flights
    found = found[(found["launch"] == launch) & (found["queue"] == "copies")]
    found = found.sort_values("start_ns", kind="stable")
    return [own for _, own in found.groupby("start_unit")]


@pytest.mark.parametrize("case", CASES)
def test_each_flight_is_that_of_the_hand_in_the_same_launch(
    case: Case, log: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch = pytest.importorskip("torch")
    with by_hand(monkeypatch, log.data_ptr()), proton.profile("both", **OPTIONS) as run:
        kernel = proton.jit(case.kernel.fn)
        case.launch(torch, kernel)
        log.zero_()
        case.launch(torch, kernel)
    hand, recorded = flights(log.cpu().numpy()), by_unit(run, 1)
    rate = run.records.gpu.launches[1].rate
    cost = rate * RECORD_CYCLES
    assert len(recorded) == 8
    assert len(hand) in (1, 8), "by TMA the first warp begins each group"
    apart = []
    for by_records, own in zip(recorded, hand, strict=False):
        assert by_records["iteration"].tolist() == list(range(TURNS + case.extra))
        assert len(own) == len(by_records)
        times = np.array([flight.cycles for flight in own]) * rate
        difference = by_records["dur_ns"].to_numpy() - times
        # Between the clock of a record and that by hand lies what one of them costs, at each end;
        # more in iterations whose code is not in the caches yet. One may have been cut by another
        # process that had the GPU meanwhile.
        stated = by_records["error_ns"]
        assert np.median(np.abs(difference)) <= stated.max() + 2 * cost
        assert (np.abs(difference) > stated + 4 * cost).sum() <= 1
        apart.append(difference)
    print(
        f"\nflights of {np.mean(times):.0f} ns: recorded less by hand {np.mean(apart):.1f} ns, "
        f"{np.min(apart):.1f} to {np.max(apart):.1f}; stated {by_records['error_ns'].max():.0f}, "
        f"a record {cost:.1f} ns"
    )


@pytest.mark.parametrize("case", CASES)
def test_as_many_are_under_way_as_in_a_kernel_that_has_no_records(
    case: Case, log: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same schedule by hand alone: as many flights in the same order, and as many of them at a
    time, in the mean: their sum over the time from the first to the last. Both times are longer
    where records cost something."""
    torch = pytest.importorskip("torch")
    with by_hand(monkeypatch, log.data_ptr()):
        plain, hand = proton.jit(case.kernel.fn), []
        for _ in range(LAUNCHES):
            log.zero_()
            case.launch(torch, plain)
            hand.append(flights(log.cpu().numpy())[0])
    with proton.profile("records", **OPTIONS) as run:
        kernel = proton.jit(case.kernel.fn)
        for _ in range(LAUNCHES):
            case.launch(torch, kernel)
    rate = float(np.median([clock.rate for clock in run.records.gpu.launches.values()]))
    times: list[list[tuple[float, float]]] = [[], []]  # the sum, and first to last
    for launch, own in enumerate(hand[1:], 1):
        recorded = by_unit(run, launch)[0]
        assert len(own) == len(recorded) == TURNS + case.extra
        begins = np.cumsum([0, *np.diff(np.array([f.begin for f in own], np.uint32))])
        assert (np.diff(begins.astype(np.int64)) > 0).all()
        last = rate * (int(begins[-1]) + own[-1].cycles)
        times[0].append((rate * sum(flight.cycles for flight in own), last))
        ends = recorded["start_ns"] + recorded["dur_ns"]
        times[1].append((recorded["dur_ns"].sum(), ends.max() - recorded["start_ns"].min()))
    (sums, lasts), (of_records, last) = (np.median(np.array(of), axis=0) for of in times)
    allowed = len(recorded) * (recorded["error_ns"].max() + 2 * rate * RECORD_CYCLES) / last
    print(
        f"\nunder way in the mean: by hand {sums / lasts:.3f}, recorded {of_records / last:.3f}, "
        f"allowed {allowed:.3f}; from first to last {lasts:.0f} and {last:.0f} ns"
    )
    assert abs(of_records / last - sums / lasts) <= allowed
