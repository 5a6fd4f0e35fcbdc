"""The tool that instruments copies by hand: what it writes is PTX, and stands where copies are."""

import re
from typing import Any

import numpy as np
import pytest

import proton.language as tl
from tests.compile.hand_instrumented import EVENTS, OLDEST, WARPS, Flight, by_hand, flights
from tests.compile.test_gpu_auto import WGMMA, by_descriptors, matmul
from tests.compile.test_gpu_records import compiled

PRODUCT = (matmul, (tl.float16, tl.float16, tl.float32, 512), {"STRIDE": 512, **WGMMA})
TMA = (by_descriptors, (*[tl.float16] * 3, 512, 1), {"FLATTEN": False, "num_warps": 8})


@pytest.mark.parametrize("case", [PRODUCT, TMA], ids=["cp.async", "tma"])
def test_clocks_stand_around_what_copies_and_waits(
    case: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel, types, options = case
    with by_hand(monkeypatch, 0x7F00_0000_1000):
        found = compiled(kernel, *types, **options, num_stages=3)
    ptx = re.sub(r"[ \t]*\.loc.*\n|//.*\n", "", found.asm["ptx"])
    assert found.asm["cubin"][:4] == b"\x7fELF"
    # Two groups ahead of the loop and one in it; the wait of the loop, and what is behind it.
    assert len(re.findall(r"add.u64 %hand_issues", ptx)) == 3
    assert len(re.findall(r"add.u64 %hand_waits, %hand_waits", ptx)) in (1, 2)
    assert len(re.findall(r"add.u64 %hand_issues.*\s+@?\S* ?cp\.async", ptx)) == 3


def test_waits_end_the_oldest() -> None:
    log = np.zeros((WARPS, 2, EVENTS, 2), np.uint32)
    log[2, 0, :3] = [(0, 10), (0, 20), (0, 50)]
    log[2, 1, :3] = [(1, 40), (1, 70), (0, 90)]
    log[5, 0, :2] = [(0, 10), (0, 20)]
    log[5, 1, :2] = log[6, 1, :2] = [(OLDEST, 40), (OLDEST, 70)]
    assert flights(log.view(np.uint8).ravel()) == [
        [Flight(10, 30), Flight(20, 50), Flight(50, 40)],
        [Flight(10, 30), Flight(20, 50)],
    ]
