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
SLICE_CYCLES = 35  # of a slice in a body with loads and barriers: 25.5 there (docs/gpu-results.md)
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


CASES = [
    pytest.param(case, id=f"{name}-{case.stages}")
    for stages in (2, 3, 4)
    for name, case in (
        ("cp.async", Case(matmul, by_pointers, {"STRIDE": K, **WGMMA}, stages, stages - 1)),
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
    gpu = run.records.gpu
    rate, cost = gpu.launches[1].rate, gpu.launches[1].rate * run.raw.gpus[0].slice_cost_cycles
    assert len(recorded) == 8
    assert len(hand) in (1, 8), "by TMA the first warp begins each group"
    apart = []
    for by_records, own in zip(recorded, hand, strict=False):
        assert by_records["iteration"].tolist() == list(range(TURNS + case.extra))
        assert len(own) == len(by_records)
        times = np.array([flight.cycles for flight in own]) * rate
        difference = by_records["dur_ns"].to_numpy() - times
        # Between the clock of a record and that by hand lies what either of them costs.
        assert (np.abs(difference) <= by_records["error_ns"] + 3 * cost + 1).all()
        assert np.median(difference) <= by_records["error_ns"].median()
        apart.append(difference)
    print(
        f"\nflights of {np.mean(times):.0f} ns: recorded less by hand {np.mean(apart):.1f} ns, "
        f"{np.min(apart):.1f} to {np.max(apart):.1f}; stated {by_records['error_ns'].max():.0f} "
        f"and {cost:.1f} a slice"
    )


@pytest.mark.parametrize("case", CASES)
def test_flights_take_as_long_as_in_a_kernel_that_has_no_records(
    case: Case, log: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same schedule by hand alone: as many flights in the same order, whose sum is the same but
    for the error that is stated and what the slices within a flight cost in a body like that."""
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
    gpu = run.records.gpu
    rate = float(np.median([clock.rate for clock in gpu.launches.values()]))
    recorded = [by_unit(run, launch)[0] for launch in range(LAUNCHES)]
    for of_hand, of_records in zip(hand[1:], recorded[1:], strict=True):
        assert len(of_hand) == len(of_records) == TURNS + case.extra
        begins = np.array([flight.begin for flight in of_hand], np.uint32)
        assert (np.diff(begins).astype(np.int32) > 0).all()
    sums = [
        float(np.median([sum(flight.cycles for flight in own) * rate for own in hand[1:]])),
        float(np.median([own["dur_ns"].sum() for own in recorded[1:]])),
    ]
    # Each turn within a flight has an issue and a wait on record.
    cost = rate * SLICE_CYCLES * 2 * case.stages
    allowed = float(recorded[-1]["error_ns"].sum()) + cost * len(recorded[-1])
    print(
        f"\nsums by hand {sums[0]:.0f} ns, recorded {sums[1]:.0f} ns, "
        f"{100 * (sums[1] / sums[0] - 1):.1f} %; allowed {allowed:.0f} ns"
    )
    assert abs(sums[1] - sums[0]) <= allowed
