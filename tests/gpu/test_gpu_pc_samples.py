"""PC sampling on a real GPU tells the story that scopes tell, for kernels of known stalls. Needs
CUPTI, and the driver's permission (`-s` prints the figures)."""

from collections.abc import Callable

import numpy as np
import pytest

import proton
import proton.language as tl
from proton.base.errors import ProfileError
from proton.runtime.nvidia import pc_sampling
from proton.viewer import Run

CYCLES = 512
PROGRAMS, BLOCK = 132 * 4, 256


@proton.jit
def stalls(x_ptr, out_ptr, n, LOADS: tl.constexpr, SINES: tl.constexpr):
    offs = tl.program_id(0) * 256 + tl.arange(0, 256)
    at = offs % n
    with proton.scope("chase"):
        for _ in range(LOADS):
            at = tl.load(x_ptr + at)
    y = at.to(tl.float32)
    with proton.scope("math"):
        for _ in range(SINES):
            y = tl.exp2(y * 0.001) + y
    tl.store(out_ptr + offs, y)


@proton.jit
def plain(x_ptr, out_ptr, n):
    offs = tl.program_id(0) * 256 + tl.arange(0, 256)
    at = offs % n
    for _ in range(32):
        at = tl.load(x_ptr + at)
    tl.store(out_ptr + offs, at.to(tl.float32))


@proton.jit(noinline=True)
def callee(y):
    for _ in range(200):
        y = tl.exp2(y * 0.001) + y
    return y


@proton.jit
def calls(x_ptr, out_ptr, n):
    offs = tl.program_id(0) * 256 + tl.arange(0, 256)
    y = tl.load(x_ptr + offs % n).to(tl.float32)
    for _ in range(n // n + 7):
        y = callee(y) - callee(y + 1)
    tl.store(out_ptr + offs, y)


def sampled(launch: Callable[[], object], times: int) -> Run:
    """The run of so many launches; skipped where the driver forbids it."""
    torch = pytest.importorskip("torch")
    try:
        with proton.profile("run", pc_sampling=CYCLES) as run:
            for _ in range(times):
                launch()
            torch.cuda.synchronize()
    except ProfileError as error:
        if "ERR_NVGPUCTRPERM" in str(error) or "needs CUPTI" in str(error):
            pytest.skip(str(error))
        raise
    return run


@pytest.fixture
def arrays():
    torch = pytest.importorskip("torch")
    n = 1 << 24
    x = torch.randint(0, n, (n,), dtype=torch.int32, device="cuda")
    return x, torch.zeros(PROGRAMS * BLOCK, device="cuda"), n


@pytest.mark.parametrize(("loads", "sines"), [(32, 200), (8, 3000), (40, 8)])
def test_samples_and_scopes_tell_one_story(arrays, loads: int, sines: int) -> None:
    def launch() -> None:
        stalls[(PROGRAMS,)](*arrays, LOADS=loads, SINES=sines, num_warps=8)

    for _ in range(3):  # launches that are sampled and those that record may meet other processes
        run = sampled(launch, 6)
        table = run.pc_samples("scope,reason")
        total = table["samples"].sum()
        by_scope = table.groupby("scope")["samples"].sum() / total
        times = run.stats(by="scope").set_index("scope")["self"]
        of_time = times / times.sum()
        print(by_scope.to_dict(), of_time.to_dict(), total)
        # What is outside of both scopes has samples, too.
        off = [abs(by_scope[scope] - of_time[scope]) for scope in ("chase", "math")]
        if max(off) < 0.1:
            break
    assert len(run.launches) == 3
    assert total > 1000
    assert max(off) < 0.1
    chased = table[table["scope"] == "chase"].set_index("reason")["samples"]
    assert chased.idxmax() == "long_scoreboard"
    assert chased["long_scoreboard"] > chased.sum() / 2
    assert "long_scoreboard" not in table[table["scope"] == "math"].head(1)["reason"].tolist()
    assert (run.pc_samples("instruction")["sass"] != "").all()
    (kernel,) = run.kernels
    assert kernel.pc_samples.launches == 3
    assert kernel.pc_samples.cycles == CYCLES


def test_a_kernel_without_scopes_is_sampled_in_each_launch(arrays) -> None:
    plain[(PROGRAMS,)](*arrays)  # loaded before CUPTI samples
    run = sampled(lambda: plain[(PROGRAMS,)](*arrays), 3)
    (kernel,) = run.kernels
    lines = run.pc_samples("line")
    assert kernel.pc_samples.launches == 3
    assert len(run.launches) == 3
    source = run.raw.sources[lines["file"][0]].splitlines()
    assert "at = tl.load(x_ptr + at)" in source[lines["line"][0] - 1]


def test_functions_that_are_called_are_sampled(arrays) -> None:
    run = sampled(lambda: calls[(PROGRAMS,)](*arrays), 2)
    table = run.pc_samples("instruction")
    print(table.head(3).to_string(), set(table["function"]))
    assert (table["sass"] != "").all()
    lines = run.pc_samples("line")
    top = run.raw.sources[lines["file"][0]].splitlines()[lines["line"][0] - 1]
    assert "tl.exp2" in top or "for _ in range(200)" in top


def test_more_instructions_than_a_call_gives(arrays, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pc_sampling, "MOST_PCS", 4)
    run = sampled(lambda: stalls[(PROGRAMS,)](*arrays, LOADS=8, SINES=100), 4)
    assert len(run.pc_samples("instruction")) > 8


def test_results_are_those_of_launches_without(arrays) -> None:
    torch = pytest.importorskip("torch")
    x, out, n = arrays
    stalls[(PROGRAMS,)](x, out, n, LOADS=3, SINES=5)
    wanted = out.cpu().numpy().copy()
    for times in (1, 2):
        out.zero_()
        sampled(lambda: stalls[(PROGRAMS,)](x, out, n, LOADS=3, SINES=5), times)
        np.testing.assert_array_equal(out.cpu().numpy(), wanted)
    stream = torch.cuda.Stream()
    graph = torch.cuda.CUDAGraph()
    with proton.profile("graph", pc_sampling=CYCLES) as run:
        with torch.cuda.stream(stream), torch.cuda.graph(graph, stream=stream):
            plain[(PROGRAMS,)](x, out, n)
        graph.replay()
        torch.cuda.synchronize()
    assert all(kernel.pc_samples is None for kernel in run.kernels)
