"""Asynchronous work of a real GPU's matrix product: every copy and product has both of its ends."""

from collections.abc import Sequence
from typing import Any

import pytest

import proton
from kernels.matmul import matmul_kernel
from proton.trace.instrumentation import AUTO
from tests.compile.test_gpu_auto import by_descriptors

M = N = 256
K, BLOCK_K, WARPS = 1024, 64, 8
TURNS = K // BLOCK_K


def product(stages: int, words: Sequence[str]) -> tuple[Any, Any, Any]:
    """(without records, with records, the run) of one product."""
    torch = pytest.importorskip("torch")
    a, b = (torch.randn(M, K, device="cuda").half(), torch.randn(K, N, device="cuda").half())
    plain, recorded = (torch.empty(M, N, device="cuda", dtype=torch.half) for _ in range(2))

    def launch(out: Any) -> None:
        matmul_kernel[(4,)](
            a, b, out, M, N, K, K, 1, N, 1, N, 1, BLOCK_M=128, BLOCK_N=128, BLOCK_K=BLOCK_K,
            GROUP_M=8, num_warps=WARPS, num_stages=stages,
        )  # fmt: skip

    launch(plain)
    with proton.profile("flights", auto=words, strategy="flush") as run:
        launch(recorded)
    return plain, recorded, run


@pytest.mark.parametrize("stages", [2, 3, 4])
def test_every_iteration_has_its_copies_and_its_product(stages: int) -> None:
    plain, recorded, run = product(stages, AUTO)
    assert bool((plain == recorded).all()), "bit for bit"
    flights = run.flights
    assert run.totals.lost == 0
    for (_, unit), group in flights.groupby(["program", "start_unit"]):
        copies = group[group["queue"] == "copies"].sort_values("start_ns")
        # Those that begin beyond the loop's end copy nothing, and have their numbers.
        assert copies["iteration"].tolist() == list(range(TURNS + stages - 1)), unit
        dots = group[group["work"] == "dots"]
        assert len(dots) in (0, TURNS)
    assert (flights["dur_ns"] >= flights["issue_ns"] + flights["wait_ns"]).all()
    assert len(flights) > 0


def test_the_path_is_as_long_as_its_program() -> None:
    _, _, run = product(3, ("copies", "dots", "barriers"))
    path = run.critical_path()
    ends = (path["start_ns"] + path["dur_ns"]).tolist()
    assert path["start_ns"].tolist()[1:] == ends[:-1]
    assert set(run.stalls["work"]) >= {"copies", "barriers"}
    assert (run.overlap["hidden"] <= 100).all()


@pytest.mark.parametrize("flatten", [False, True])
@pytest.mark.parametrize("stages", [2, 3, 4])
def test_copies_by_tma_fly_until_their_barrier_ends(stages: int, flatten: bool) -> None:
    """Programs with several tiles: each copy that was issued is waited for once, in order."""
    torch = pytest.importorskip("torch")
    if torch.cuda.get_device_capability()[0] < 9:
        pytest.skip("TMA is of compute capability 9.0")
    tiles, programs = 7, 3
    a = torch.randn(tiles * 128, K, device="cuda").half()
    b, c = (
        torch.randn(K, 128, device="cuda").half(),
        torch.empty(tiles * 128, 128, device="cuda").half(),
    )
    options = {"FLATTEN": flatten, "num_stages": stages, "num_warps": WARPS}
    with proton.profile("flights", auto=("copies", "dots"), strategy="flush") as run:
        by_descriptors[(programs,)](a, b, c, K, tiles, **options)
    torch.testing.assert_close(c.float(), a.float() @ b.float(), rtol=2e-2, atol=0.2)
    flights = run.flights
    assert run.totals.lost == 0
    for program in range(programs):
        turns = TURNS * len(range(program, tiles, programs))
        for _, group in flights[flights["program"] == program].groupby("start_unit"):
            copies = group[group["queue"] == "copies"].sort_values("start_ns")
            assert len(copies) == turns
            ends = copies["start_ns"] + copies["dur_ns"]
            assert ends.is_monotonic_increasing
            numbers = copies["iteration"].tolist()
            assert numbers == [number % TURNS for number in range(turns)]
            # A tile's store is under way until its memory may be written again: by the next tile
            # where it goes on beside that.
            stores = group[group["queue"] == "stores"].sort_values("start_ns")
            assert stores["iteration"].tolist() == list(range(turns // TURNS))
            under_way = (ends.shift(stages) <= copies["start_ns"]).iloc[stages:]
            assert under_way.all(), "no more than there are buffers"
