"""Rows that a kernel loads twice: which of the loads have which eviction priority, and the results.

What the hints are worth is in docs/decisions.md, 165.
"""

import re
from typing import Any

import numpy as np
import pytest

import proton
import proton.language as tl
from proton.backends.nvidia import compiler
from proton.base.targets import GPUTarget
from proton.trace.instrumentation import Instrumentation
from tests.compile.ptx.emulation import Emulation
from tests.compile.test_gpu_records import compiled

LOAD = re.compile(r"ld\.global((?:\.\w+|::\w+)*)\.v4\.b32")
KEPT, LEFT = ".L1::evict_last", ".L1::evict_first"


@proton.jit
def normalized(x, y, n, BLOCK: tl.constexpr, POLICY: tl.constexpr, MODIFIER: tl.constexpr):
    """A row less its mean, the row in blocks; its weights are those of all rows."""
    row, place = tl.program_id(0) * n, tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n, BLOCK):
        inside = start + place < n
        total += tl.load(x + row + start + place, inside, other=0.0, cache_modifier=MODIFIER)
    mean = tl.sum(total, 0) / n
    for start in range(0, n, BLOCK):
        inside = start + place < n
        values = tl.load(x + row + start + place, inside, other=0.0, eviction_policy=POLICY)
        tl.store(y + row + start + place, values - mean, inside)


@proton.jit
def elsewhere(x, y, n, BLOCK: tl.constexpr):
    """The first half of a row, and then all of it; weights that all programs load twice."""
    row, place = tl.program_id(0) * n, tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n // 2, BLOCK):
        total += tl.load(x + row + start + place) + tl.load(y + start + place)
    for start in range(0, n, BLOCK):
        total += tl.load(x + row + start + place) + tl.load(y + start + place)
    tl.store(y + row + place, total)


@proton.jit
def channels(x, y, n, TURNS: tl.constexpr, BLOCK: tl.constexpr):
    """A program's channels less their mean."""
    program, place = tl.program_id(0), tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for channel in range(program * TURNS, (program + 1) * TURNS):
        total += tl.load(x + channel * BLOCK + place)
    mean = tl.sum(total, 0) / (TURNS * BLOCK)
    for channel in range(program * TURNS, (program + 1) * TURNS):
        tl.store(y + channel * BLOCK + place, tl.load(x + channel * BLOCK + place) - mean)


@pytest.fixture(autouse=True)
def only_shared_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Registers limit no programs for the sake of loads."""
    monkeypatch.setattr(compiler, "_more_loads", lambda fn, ptx, cubin, *_: (ptx, cubin))


def resident(kernel: Any, *constants: Any, arch: int = 90, **options: Any) -> int:
    """How many programs an SM holds by their shared memory."""
    target = GPUTarget("cuda", arch)
    types = tl.float32, tl.float32, 4096
    found = kernel.warmup(*types, *constants, target=target, **options)
    return target.facts.programs_per_sm(32 * options.get("num_warps", 4), found.shared)


def modifiers(kernel: Any, *constants: Any) -> list[str]:
    """Of the loads of four elements, in order."""
    target = GPUTarget("cuda", 90)
    found = kernel.warmup(tl.float32, tl.float32, 4096, 512, *constants, target=target)
    return LOAD.findall(found.asm["ptx"])


@pytest.mark.parametrize("modifier", ["", ".ca"])
def test_a_row_stays_until_it_is_loaded_again(modifier: str) -> None:
    assert modifiers(normalized, "", modifier) == [KEPT, LEFT]


@pytest.mark.parametrize(
    ("constants", "expected"),
    [(("evict_last", ""), ["", f"{KEPT}.L2::cache_hint"]), (("", ".cg"), [".cg", ""])],
)
def test_what_the_source_says_of_a_load_stays(
    constants: tuple[str, str], expected: list[str]
) -> None:
    assert modifiers(normalized, *constants) == expected


def test_other_places_and_what_all_programs_load_have_no_priority() -> None:
    assert set(modifiers(elsewhere)) == {""}


@pytest.mark.parametrize(("turns", "programs"), [(4, 16), (6, 10), (8, 8), (9, 7), (500, 6)])
def test_no_more_programs_run_than_the_cache_has_room_for(turns: int, programs: int) -> None:
    """Of 50 MiB for 132 SMs two thirds are for the programs' channels, of 4 KiB a turn; half of the
    12 that there are registers for run in any case."""
    assert resident(channels, turns, 1024) == programs


def test_other_programs_run_as_they_may() -> None:
    assert resident(channels, 8, 1024, arch=80) == 16  # nobody has measured it there
    assert resident(channels, 8, 1024, num_warps=16) == 4  # there is no room for more
    assert resident(channels, 8, 1024, launch_cooperative_grid=True) == 16  # all at once
    assert resident(normalized, 512, "", "") == 16  # of turns that are not known one counts
    assert resident(normalized, 512, "", ".cg") == 16
    assert resident(elsewhere, 512) == 16


@pytest.mark.parametrize("auto", [(), ("loads", "loops")])
@pytest.mark.parametrize("strategy", ["circular", "flush"])
def test_as_many_programs_run_with_records(strategy: Any, auto: tuple[str, ...]) -> None:
    options = Instrumentation(auto=auto, strategy=strategy, capacity=256)
    types = tl.float32, tl.float32, 4096
    found = compiled(channels, *types, 8, 1024, instrumentation=options)
    assert GPUTarget("cuda", 90).facts.programs_per_sm(128, found.shared) == 8


@pytest.mark.parametrize("n", [1, 512, 1000, 1900])
def test_the_rows_are_right(n: int, rng: np.random.Generator) -> None:
    x, y = rng.standard_normal((3, n), np.float32), np.zeros((3, n), np.float32)
    with Emulation(4, rng).installed():
        normalized[(3,)](x, y, n, BLOCK=512, POLICY="", MODIFIER="")
    np.testing.assert_allclose(y, x - x.mean(1, keepdims=True, dtype=np.float64), atol=1e-5)
