"""Counters of a real GPU's hardware, sampled by CUPTI: they rise where our kernels run, on the same
axis. Needs the package cupti-python, and the driver's permission (`-s` prints the figures)."""

import time
from typing import Any

import numpy as np
import pytest

import proton
import proton.language as tl
from kernels.matmul import matmul
from proton.base.errors import ProfileError
from proton.trace.instrumentation import COUNTERS
from proton.viewer import Run

pytest.importorskip("cupti.profiler_host")

INTERVAL_NS, WAIT_NS, LAUNCHES = 5_000, 400_000, 5


@proton.jit
def spin(out_ptr, ns):
    begin = tl.extra.cuda.globaltimer()
    with proton.scope("spin"):
        now = begin
        while now - begin < ns:
            now = tl.extra.cuda.globaltimer()
    tl.store(out_ptr + tl.program_id(0), now)


def sampled(work: Any, counters: Any, interval_ns: int = INTERVAL_NS) -> Run:
    """The run of some work, which was recorded once before; skipped where the driver forbids it."""
    torch = pytest.importorskip("torch")
    with proton.profile("warm"):  # compiles what the session launches
        work()
        torch.cuda.synchronize()
    try:
        with proton.profile("run", counters=counters, counter_interval_ns=interval_ns) as run:
            time.sleep(0.002)
            work()
            torch.cuda.synchronize()
            time.sleep(0.002)
    except ProfileError as error:
        if "ERR_NVGPUCTRPERM" in str(error):
            pytest.skip(str(error))
        raise
    assert run.raw.counters, run.raw.machine
    print(f"\n{run.summary().facts['counters of GPU 0']}; {run.raw.counters[0].metrics}")
    return run


def test_sms_are_busy_while_a_kernel_runs_and_idle_between() -> None:
    torch = pytest.importorskip("torch")
    sms = torch.cuda.get_device_properties(0).multi_processor_count
    out = torch.zeros(sms, dtype=torch.int64, device="cuda")

    def work() -> None:
        for _ in range(LAUNCHES):
            spin[(sms,)](out, WAIT_NS, num_warps=4)
            torch.cuda.synchronize()
            time.sleep(0.001)

    run = sampled(work, "sm")
    (samples,) = run.raw.counters
    start, end = (t - run.raw.origin_ns for t in (samples.start_ns, samples.end_ns))
    busy = samples.values[:, 0]
    launches = run.launches[run.launches.kernel == "spin"]
    assert len(launches) == LAUNCHES
    # A margin of a sample on either side, and how well both are on the axis.
    margin = 2 * INTERVAL_NS + samples.error_ns + run.records.gpu.host_error_ns(0)
    first, last = launches.start_ns.to_numpy(), (launches.start_ns + launches.dur_ns).to_numpy()
    inside, near = (np.zeros(len(busy), bool) for _ in range(2))
    for begin, finish in zip(first, last, strict=True):
        inside |= (start >= begin + margin) & (end <= finish - margin)
        near |= (end >= begin - margin) & (start <= finish + margin)
    rises = start[1:][(busy[1:] > 50) & (busy[:-1] <= 50)]
    print(f"rises begin {[int(np.abs(first - rise).min()) for rise in rises]} ns from launches")
    print(
        f"margin {margin:.0f} ns; inside {inside.sum()} samples, least {busy[inside].min():.1f} %; "
        f"outside {(~near).sum()}, most {busy[~near].max():.1f} %, mean {busy[~near].mean():.2f} %"
    )
    assert inside.sum() > 100
    assert np.median(busy[inside]) > 90
    assert np.median(busy[~near]) < 5


def test_products_load_the_tensor_pipe_and_copies_the_memory() -> None:
    torch = pytest.importorskip("torch")
    a, b = (torch.randn(4096, 4096, device="cuda").half() for _ in range(2))
    c = torch.empty(4096, 4096, device="cuda").half()
    large = torch.zeros(1 << 28, device="cuda", dtype=torch.uint8)
    other = torch.empty_like(large)

    def work() -> None:
        for _ in range(LAUNCHES):
            matmul(a, b, c)
        other.copy_(large)

    run = sampled(work, COUNTERS)
    table = run.counter_stats.set_index("counter")
    print(table.to_string())
    means = table["mean"]
    assert set(table.index) == set(COUNTERS)
    assert means["tensor"] > 30
    assert means["sm"] > 80
    assert 0 < means["dram"] < means["tensor"]
    values = run.counters.groupby("counter").value
    assert values.max()["dram"] > 40, "the copy"
    assert (values.min() >= 0).all()
    assert (values.max() <= 110).all()
