"""Loops that keep only the readings of their records while they run (`compact-iterations`): what
the ring buffer holds at the end is what it would hold without that."""

import itertools
from typing import Any

import numpy as np
import pytest

import proton
import proton.language as tl
from proton.trace.instrumentation import Instrumentation
from tests.compile.test_gpu_records import compiled

UNITS = {"warp": 1, "warp_2": 2, "cta": 4}  # warps


# A loop that is known to run once is none.
@proton.jit(do_not_specialize=["lower", "n", "m", "is_third"])
def loops(x_ptr, lower, n, m, is_third):
    lane = tl.program_id(0) * 128 + tl.arange(0, 128)
    with proton.scope("load"):
        x = tl.load(x_ptr + lane)
    for i in range(lower, n, 3):
        with proton.scope("first"):
            x = x * 0.5 + 1.0
        with proton.scope("second"):
            x = x * 0.25 + tl.exp(-x) + i
        proton.mark("turn")
    with proton.scope("between"):
        x = x + 2.0
    for _j in range(m):
        with proton.scope("other"):
            x = x * 0.5 + 1.0
    with proton.scope("ahead"):
        x = x * 0.5
    if is_third:
        for _k in range(5):
            with proton.scope("third"):
                x = x * 0.5 + 3.0
    with proton.scope("store"):
        tl.store(x_ptr + lane, x)


def expected(lower: int, n: int, m: int, is_third: bool) -> list[tuple[str, int]]:
    """(name, iteration) of the records of a warp, in order; -1 outside of loops."""
    found = [("load", -1)]
    for i in range(len(range(lower, n, 3))):
        found += [("first", i), ("second", i), ("turn", i)]
    found += [("between", -1), *(("other", j) for j in range(m)), ("ahead", -1)]
    found += [("third", k) for k in range(5)] if is_third else []
    return [*found, ("store", -1)]


def test_the_loops_are_such() -> None:
    """Or else the tests below say nothing."""
    profile = compiled(loops, tl.float32, 0, 10, 10, 1, instrumentation=Instrumentation()).profile
    assert profile is not None
    assert profile.ring is None
    assert profile.iterations is not None


@pytest.mark.parametrize("options", [
    {}, {"capacity": 16}, {"capacity": 64}, {"capacity": 1}, {"clock_bits": 64},
    {"clock_bits": 64, "capacity": 32}, {"granularity": "warp_2", "capacity": 16},
    {"granularity": "cta"}, {"sample_warps": (1, 3), "capacity": 8}, {"buffer": "shared"},
    {"buffer": "global", "capacity": 32}, {"buffer": "global"}, {"buffer": "global", "capacity": 2},
    {"buffer": "global", "clock_bits": 64, "sample_warps": (0, 2)},
    {"buffer": "global", "granularity": "warp_2"}, {"strategy": "flush", "capacity": 16},
], ids=str)  # fmt: skip
def test_a_ring_has_the_newest_records(options: dict[str, Any], rng: np.random.Generator) -> None:
    torch = pytest.importorskip("torch")
    sizes = [(0, 0, 0, 0), (0, 1, 1, 1), (7, 3, 100, 0), (-5, 40, 0, 1), (0, 3000, 2, 1)]
    sizes += [(*rng.integers(0, 400, 3).tolist(), 1) for _ in range(4)]
    for lower, n, m, is_third in sizes:
        x = torch.rand(3 * 128, device="cuda")
        off, on = x.clone(), x.clone()
        loops[(3,)](off, lower, n, m, is_third)
        with proton.profile("turns", **options) as run:
            loops[(3,)](on, lower, n, m, is_third)
        assert torch.equal(off, on)
        every = expected(lower, n, m, bool(is_third))
        warps = options.get("sample_warps", range(0, 4, UNITS[options.get("granularity", "warp")]))
        assert run.totals.written == 3 * len(warps) * len(every)
        kept = check(run, every, list(warps))
        assert run.totals.lost == 3 * len(warps) * (len(every) - kept)
        if "capacity" in options and options.get("strategy") != "flush":
            assert kept == min(len(every), options["capacity"])
        else:
            assert kept == len(every) or options.get("strategy") != "flush"
            assert kept >= min(len(every), 16)


def check(run: Any, every: list[tuple[str, int]], warps: list[int]) -> int:
    """Each of 3 programs has the newest records of each of these warps, in the order in which they
    were made; how many."""
    records, kept = run.records, set[int]()
    tracks = records.tracks
    recorded = [t for t in range(tracks.kept.size) if tracks.written[t]]
    assert [(tracks.program[t], tracks.warp[t]) for t in recorded] == [
        (program, warp) for program in range(3) for warp in warps
    ]
    for track in recorded:
        own = records.track == track
        names = [records.scopes[scope].name for scope in records.scope[own]]
        newest = every[len(every) - len(names) :]
        assert list(zip(names, records.iteration[own].tolist(), strict=True)) == newest
        starts, ends = records.start_ticks[own], records.end_ticks[own]
        assert (starts <= ends).all()
        assert (ends[1:] >= ends[:-1]).all()
        kept.add(len(names))
    (found,) = kept
    return found


@proton.jit(do_not_specialize=["n", "c"])
def followed(x_ptr, n, c):
    lane = tl.program_id(0) * 128 + tl.arange(0, 128)
    with proton.scope("begin"):
        x = tl.load(x_ptr + lane)
    for _i in range(n):
        with proton.scope("one"):
            x = x * 0.5 + 1.0
        with proton.scope("two"):
            x = x * 0.25 + 2.0
    with proton.scope("condition", when=c % 2 == 1):
        x = x * 0.5
    if c >= 2:
        with proton.scope("branch"):
            x = x + 3.0
    with proton.scope("payload", c=c):
        x = x + 4.0
    with proton.scope("end"):
        tl.store(x_ptr + lane, x)


@pytest.mark.parametrize("options", [
    {}, {"capacity": 4}, {"capacity": 16, "clock_bits": 64}, {"buffer": "global"},
    {"buffer": "global", "capacity": 2}, {"granularity": "cta", "capacity": 8},
], ids=str)  # fmt: skip
def test_records_behind_a_loop_that_may_not_be(options: dict[str, Any]) -> None:
    """The record before such a one was stored, and is not stored once more."""
    torch = pytest.importorskip("torch")
    for n, c in itertools.product((0, 1, 50), range(4)):
        x = torch.rand(3 * 128, device="cuda")
        with proton.profile("followed", **options) as run:
            followed[(3,)](x, n, c)
        every = [("begin", -1)] + [(name, i) for i in range(n) for name in ("one", "two")]
        every += [("condition", -1)] * (c % 2) + [("branch", -1)] * (c >= 2)
        every += [("payload", -1), ("end", -1)]
        warps = list(range(0, 4, UNITS[options.get("granularity", "warp")]))
        kept = check(run, every, warps)
        assert run.totals.written == 3 * len(warps) * len(every)
        if "capacity" in options:
            assert kept == min(len(every), options["capacity"])
        slices = run.frame[(run.frame.kind == "scope") & (run.frame.name == "payload")]
        assert list(slices.payload) == [{"c": c}] * 3 * len(warps)


@proton.jit(do_not_specialize=["tiles", "depth"])
def products(a_ptr, out_ptr, tiles, depth, STAGES: tl.constexpr):
    """Its turns are long: each so many of them write their records."""
    i, j = tl.arange(0, 64)[:, None], tl.arange(0, 64)[None, :]
    with proton.scope("begin"):
        a = tl.load(a_ptr + i * 64 + j)
    for tile in range(tiles):
        total = tl.zeros((64, 64), tl.float32)
        for k in tl.range(depth, num_stages=STAGES):
            with proton.scope("load"):
                b = tl.load(a_ptr + k * 64 + i * 64 + j)
            with proton.scope("dot"):
                total = tl.dot(a, b, total)
        place = out_ptr + (tl.program_id(0) * tiles + tile) * 4096 + i * 64 + j
        if tile % 2:
            with proton.scope("store"):
                tl.store(place, total)
        else:
            tl.store(place, total)
    total = tl.zeros((64, 64), tl.float32)
    for k in tl.range(depth, num_stages=STAGES):
        with proton.scope("last"):
            b = tl.load(a_ptr + k * 64 + i * 64 + j)
            total = tl.dot(a, b, total)
    with proton.scope("end"):
        tl.store(out_ptr + (3 * tiles + tl.program_id(0)) * 4096 + i * 64 + j, total)


@pytest.mark.parametrize("stages", [1, 3])
@pytest.mark.parametrize("options", [
    {}, {"capacity": 1}, {"capacity": 4}, {"capacity": 16}, {"capacity": 64, "clock_bits": 64},
    {"granularity": "warp_2", "capacity": 32}, {"granularity": "cta"},
    {"sample_warps": (1, 3), "capacity": 8}, {"buffer": "shared", "capacity": 32},
    {"buffer": "global", "capacity": 32},
], ids=str)  # fmt: skip
def test_long_turns(options: dict[str, Any], stages: int, rng: np.random.Generator) -> None:
    """The reference is strategy flush with chunks of one record, each of which is written alone."""
    torch = pytest.importorskip("torch")
    a = torch.rand(64 * 200, device="cuda").half()
    sizes = [(0, 0), (1, 1), (2, 0), (0, 3), (3, 2), (1, 100), tuple(rng.integers(0, 12, 2))]
    for tiles, depth in (tuple(map(int, size)) for size in sizes):
        outs = [torch.zeros(3 * (tiles + 1) * 4096, device="cuda") for _ in range(3)]
        products[(3,)](a, outs[0], tiles, depth, STAGES=stages)
        same = {name: options[name] for name in ("granularity", "sample_warps") if name in options}
        with proton.profile("alone", strategy="flush", capacity=1, **same) as alone:
            products[(3,)](a, outs[1], tiles, depth, STAGES=stages)
        with proton.profile("long", **options) as run:
            products[(3,)](a, outs[2], tiles, depth, STAGES=stages)
        assert torch.equal(outs[0], outs[1])
        assert torch.equal(outs[0], outs[2])
        assert alone.totals.lost == 0
        records = alone.records
        first = records.track == records.track[0]
        names = [records.scopes[scope].name for scope in records.scope[first]]
        every = list(zip(names, records.iteration[first].tolist(), strict=True))
        warps = options.get("sample_warps", range(0, 4, UNITS[options.get("granularity", "warp")]))
        kept = check(run, every, list(warps))
        assert run.totals.lost == 3 * len(warps) * (len(every) - kept)
        if "capacity" in options:
            assert kept == min(len(every), options["capacity"])


@pytest.mark.parametrize("stages", [1, 3])
def test_turns_are_long_there(stages: int) -> None:
    """Or else the test above says nothing. A ring buffer of one record has no room for a turn's."""
    args = tl.float16, tl.float32, 3, 3, stages
    for capacity, is_long in ((1, False), (16, True)):
        how = Instrumentation(capacity=capacity, buffer="global")
        profile = compiled(products, *args, instrumentation=how).profile
        assert profile is not None
        # No more records than a ring buffer holds, of 8 bytes each; a chunk would have 64.
        keeps_few = profile.iterations is not None and profile.iteration_bytes <= 8 * 16
        assert keeps_few == is_long
