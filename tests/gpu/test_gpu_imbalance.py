"""A kernel of known imbalance: the analysis names the warp, the barrier and how long it waits more
than the others (`-s` prints the figures)."""

import inspect
from pathlib import Path
from typing import Any

import pytest

import proton
import proton.language as tl
from proton.trace.instrumentation import AUTO

WARPS, TURNS, LATE_NS = 4, 50, 2000

# The warps of a mask look at the timer until `LATE_NS` are over; the others go on at once.
SPIN = tl.constexpr(f"""{{
    .reg .pred %p;
    .reg .b32 %warp;
    .reg .b64 %begin, %now;
    mov.u32 %warp, %tid.x;
    shr.u32 %warp, %warp, 5;
    shr.u32 %warp, $2, %warp;
    and.b32 %warp, %warp, 1;
    setp.eq.u32 %p, %warp, 0;
    @%p bra done;
    mov.u64 %begin, %globaltimer;
again:
    mov.u64 %now, %globaltimer;
    sub.u64 %now, %now, %begin;
    setp.lt.u64 %p, %now, {LATE_NS};
    @%p bra again;
done:
    mov.b32 $0, $1;
}}""")


@proton.jit
def uneven(x_ptr, turns, spinning, THREADS: tl.constexpr):
    lane = tl.arange(0, THREADS)
    x = tl.load(x_ptr + lane)
    mask = tl.full((THREADS,), spinning, tl.int32)
    for _ in range(turns):
        x = tl.inline_asm_elementwise(
            SPIN, "=r,r,r", [x, mask], dtype=tl.int32, is_pure=False, pack=1
        )
        tl.debug_barrier()
    tl.store(x_ptr + lane, x)


def barrier() -> str:
    """How records name the barrier of `uneven`: by its line."""
    lines, first = inspect.getsourcelines(uneven.fn)
    (line,) = [n for n, text in enumerate(lines, first) if "debug_barrier" in text]
    return f"barrier {Path(__file__).name}:{line}"


def recorded(spinning: int, **options: Any) -> Any:
    torch = pytest.importorskip("torch")
    x = torch.arange(32 * WARPS, dtype=torch.int32, device="cuda")
    with proton.profile("uneven", **options) as run:
        uneven[(1,)](x, TURNS, spinning, THREADS=32 * WARPS, num_warps=WARPS)
    assert x.tolist() == list(range(32 * WARPS))
    assert run.totals.lost == 0
    return run


@pytest.mark.parametrize("words", [("barriers",), AUTO])
@pytest.mark.parametrize("warp", range(WARPS))
def test_the_warp_that_waits_longer_is_named_with_its_barrier(
    warp: int, words: tuple[str, ...]
) -> None:
    """All others are late by 2 us, so it waits 2 us more, at each barrier of the loop."""
    run = recorded(((1 << WARPS) - 1) ^ (1 << warp), auto=words)
    first = run.imbalance.iloc[0]
    print(f"\n{first['wait']}: warp {first['warp']} waits {first['more_ns']:.0f} ns more")
    assert first["wait"].rpartition("/")[2] == barrier()
    assert (first["warp"], first["count"]) == (warp, TURNS)
    assert first["more_ns"] == pytest.approx(LATE_NS, rel=0.05)


def test_the_warp_that_the_others_wait_for_is_on_the_critical_path() -> None:
    """One warp is late: it waits 2 us less, and the path of the program is its own."""
    late = 1
    run = recorded(1 << late, auto=("barriers", "loops"))
    first = run.imbalance.iloc[0]
    assert (first["wait"].rpartition("/")[2], first["warp"]) == (barrier(), late)
    assert first["more_ns"] == pytest.approx(-LATE_NS, rel=0.05)
    path = run.critical_path()
    shares = path.groupby("unit")["dur_ns"].sum() / path["dur_ns"].sum()
    print(f"\nshares of the critical path: {shares.round(3).to_dict()}")
    assert shares[late] > 0.8
