"""CUDA graphs of pipelined kernels on tensor cores: replays give right results, and each launch of
each replay its records."""

from collections.abc import Callable
from typing import Any

import pytest

import proton
import proton.language as tl
from kernels import attention, matmul, matmul_persistent

SIZE, REPLAYS = 512, 5
BLOCKS = {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64, "GROUP_M": 8, "num_warps": 8}
PROGRAMS, TURNS = 16, SIZE // 64


@proton.jit
def behind(x_ptr, count_ptr, BLOCK: tl.constexpr):
    """What a second kernel on the same stream reads of the one ahead of it."""
    with proton.scope("behind"):
        x = tl.load(x_ptr + tl.arange(0, BLOCK))
        tl.atomic_add(count_ptr, tl.sum((x != 0).to(tl.int32), 0))


def pointers(a: Any, b: Any, out: Any) -> None:
    matmul.matmul(a, b, out, num_stages=3, **BLOCKS)


def descriptors(a: Any, b: Any, out: Any) -> None:
    matmul_persistent.matmul_persistent(a, b, out, num_stages=3, programs=PROGRAMS, **BLOCKS)


def heads(a: Any, b: Any, out: Any) -> None:
    """Attention of 16 heads of 256 x 64 that lie in the arrays: 16 x 4 programs."""
    q, k, of = (x.view(1, 8, 512, 64) for x in (a, b, out))
    lse = of.new_empty(1, 8, 512, dtype=pytest.importorskip("torch").float32)
    attention.attention(q, k, k, out=(of, lse), BLOCK_M=64, BLOCK_N=64, num_warps=4, num_stages=2,
                        OVERLAP=False)  # fmt: skip


def by_torch(kernel: Callable[..., None], a: Any, b: Any) -> Any:
    torch = pytest.importorskip("torch")
    if kernel is not heads:
        return a.float() @ b.float()
    q, k = (x.view(1, 8, 512, 64).float() for x in (a, b))
    found = torch.nn.functional.scaled_dot_product_attention(q, k, k)
    return found.reshape(SIZE, SIZE)


@pytest.mark.parametrize("strategy", ["circular", "flush"])
@pytest.mark.parametrize("kernel", [pointers, descriptors, heads], ids=lambda f: f.__name__)
def test_each_launch_of_each_replay_has_its_records(
    kernel: Callable[..., None], strategy: str
) -> None:
    torch = pytest.importorskip("torch")
    a, b, out = (torch.randn(SIZE, SIZE, device="cuda").half() for _ in range(3))
    count = torch.zeros(1, device="cuda", dtype=torch.int32)

    def both() -> None:
        kernel(a, b, out)
        behind[(1,)](out, count, BLOCK=1024)

    both()
    graph = torch.cuda.CUDAGraph()
    memory = proton.knobs.scope(profile_flush_memory=4 << 20)
    with memory, proton.profile("graph", strategy=strategy, capacity=64) as run:
        both()  # the same launches, not in a graph
        with torch.cuda.graph(graph):
            both()
            both()
        for _ in range(REPLAYS):
            a.normal_()
            out.zero_()
            count.zero_()
            graph.replay()
            torch.testing.assert_close(out.float(), by_torch(kernel, a, b), rtol=2e-2, atol=0.1)
            assert count.item() == 2 * (out.view(-1)[:1024] != 0).sum().item()
    assert run.totals.lost == run.totals.dropped_launches == 0
    assert run.totals.launches == 2 + 4 * REPLAYS
    scopes = run.frame[run.frame.kind == "scope"]
    of = ["name", "program", "warp", "iteration"]
    counted = scopes.groupby(["launch", *of], dropna=False).size()
    launches = [counted[number] for number in run.launches.index]
    for number, found in enumerate(launches):
        assert found.equals(launches[number % 2]), f"launch {number}"
    assert set(scopes[scopes.launch == 1].name) == {"behind"}
    if kernel is not heads:
        dots = scopes[(scopes.launch == 0) & (scopes.name == "dot")]
        # The last product is waited for behind the loop.
        assert len(dots) == PROGRAMS * 8 * (TURNS + 1)
    # Launches of one stream, one behind the other, as the graph has them.
    spans = scopes.assign(end_ns=scopes.start_ns + scopes.dur_ns).groupby("launch")
    begins, ends = spans.start_ns.min().to_numpy(), spans.end_ns.max().to_numpy()
    error = 2 * scopes.error_ns.max()
    assert (begins[1:] > ends[:-1] - error).all()


@proton.jit
def in_a_row(x_ptr):
    place = tl.program_id(0) * 256 + tl.arange(0, 256)
    with proton.scope("load"):
        x = tl.load(x_ptr + place)
    with proton.scope("store"):
        tl.store(x_ptr + place, x + 1)


@pytest.mark.parametrize("strategy", ["circular", "flush"])
@pytest.mark.parametrize("programs", [1, 131, 4097])
def test_replays_of_many_short_programs_are_kept_whole(programs: int, strategy: str) -> None:
    """More than what keeps them loads at once, and pieces that end within that; without a loop
    nothing is flushed, so each record of each replay is there under both strategies."""
    torch = pytest.importorskip("torch")
    x = torch.zeros(programs * 256, device="cuda")
    graph = torch.cuda.CUDAGraph()
    in_a_row[(programs,)](x, num_warps=8)
    with proton.profile("graph", strategy=strategy) as run:
        in_a_row[(programs,)](x, num_warps=8)
        with torch.cuda.graph(graph):
            for _ in range(3):
                in_a_row[(programs,)](x, num_warps=8)
        for _ in range(REPLAYS):
            graph.replay()
        torch.cuda.synchronize()
    assert (x == 2 + 3 * REPLAYS).all()
    assert run.totals.lost == run.totals.dropped_launches == 0
    assert run.totals.launches == 1 + 3 * REPLAYS
    scopes = run.frame[run.frame.kind == "scope"]
    found = scopes.groupby(["launch", "program", "warp", "name"], observed=True).size()
    assert len(found) == run.totals.launches * programs * 8 * 2
    assert (found == 1).all()


@proton.jit
def as_often_as_told(count_ptr, out_ptr):
    program = tl.program_id(0)
    count = tl.load(count_ptr + program)
    for i in range(count):
        with proton.scope("turn", i=i):
            tl.atomic_add(out_ptr + program, i)


@pytest.mark.parametrize("options", [
    {"capacity": 4}, {"capacity": 2}, {"strategy": "flush", "capacity": 4},
    {"capacity": 64, "sample_warps": (1,)}, {"capacity": 8, "granularity": "cta"},
], ids=str)  # fmt: skip
@pytest.mark.parametrize("num_warps", [2, 8])
def test_a_replay_has_nothing_of_the_one_before(num_warps: int, options: dict[str, Any]) -> None:
    """How many records there are is another number in each replay, and for each program."""
    torch = pytest.importorskip("torch")
    programs, capacity = 300, options["capacity"]
    counts = torch.zeros(programs, device="cuda", dtype=torch.int32)
    out = torch.zeros(programs, device="cuda", dtype=torch.int32)
    graph = torch.cuda.CUDAGraph()
    as_often_as_told[(programs,)](counts, out, num_warps=num_warps)
    every = []
    memory = proton.knobs.scope(profile_flush_memory=8 << 20)
    with memory, proton.profile("graph", **options) as run:
        as_often_as_told[(programs,)](counts, out, num_warps=num_warps)
        with torch.cuda.graph(graph):
            as_often_as_told[(programs,)](counts, out, num_warps=num_warps)
        for most in (30, 0, 3, 9, 1, 20):
            counts.random_(0, most + 1)
            every.append(counts.cpu().numpy())
            graph.replay()
    units = 1 if "granularity" in options or "sample_warps" in options else num_warps
    assert run.totals.launches == 1 + len(every)
    assert run.totals.written == units * sum(count.sum() for count in every)
    is_ring = "strategy" not in options
    scopes = run.frame[run.frame.kind == "scope"]
    found = {key: list(group.iteration) for key, group in scopes.groupby(
        ["launch", "program", "warp"], observed=True)}  # fmt: skip
    expected = 0
    for launch, count in enumerate(every, 1):
        for program, last in enumerate(count.tolist()):
            first = max(0, last - capacity) if is_ring else 0
            rows = [key for key in found if key[:2] == (launch, program)]
            assert len(rows) == (units if last else 0)
            assert all(found[key] == list(range(first, last)) for key in rows)
            expected += len(rows)
    assert expected == len(found)
