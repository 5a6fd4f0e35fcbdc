"""Every kernel and copy of the process, by CUPTI: needs the package cupti-python, and torch.

Ours, torch's and copies lie on one axis: in the order in which one stream ran them, one after the
other, and within the times of the host around them.
"""

import time
from typing import Any

import numpy as np
import pandas as pd
import pytest

import proton
import proton.language as tl
from proton.runtime.nvidia import cuda, cupti

SLACK = 50_000  # ns: how well the clocks of CUPTI, the GPU and the host are paired
LAUNCHES = 3


@proton.jit
def fill(out, BLOCK: tl.constexpr):
    with proton.scope("store"):
        tl.store(out + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK), 1)


@pytest.fixture
def torch() -> Any:
    """torch, where CUPTI can be used."""
    pytest.importorskip("cupti.cupti")
    cupti.load()  # the package is there: it must work
    return pytest.importorskip("torch")


def between(frame: pd.DataFrame, *kinds: str) -> pd.DataFrame:
    """The slices of some kinds, with their ends."""
    found = frame[frame["kind"].isin(kinds)].sort_values("start_ns")
    return found.assign(end_ns=found["start_ns"] + found["dur_ns"])


def test_ours_torchs_and_copies_are_on_one_axis(torch: Any) -> None:
    x = torch.zeros(1 << 20, device="cuda")
    host = torch.zeros(1 << 20, pin_memory=True)
    fill[(1024,)](x, BLOCK=1024)
    torch.sort(x)
    torch.cuda.synchronize()
    with proton.profile("all", activities="all") as run:
        began = time.perf_counter_ns()
        for _ in range(LAUNCHES):
            fill[(1024,)](x, BLOCK=1024)
        y = torch.sort(x).values
        host.copy_(y, non_blocking=True)
        torch.cuda.synchronize()
        ended = time.perf_counter_ns()
    assert host.sum().item() == 1 << 20
    frame = run.frame
    kernels, copies = between(frame, "kernel"), between(frame, "memcpy")
    copies = copies[copies["name"] == "memcpy DTOH"]
    copy = copies[[p["bytes"] == host.numel() * 4 for p in copies["payload"]]].iloc[-1]
    ours = kernels[kernels["name"] == "fill"]
    theirs = kernels[~kernels.index.isin(ours.index)]
    theirs = theirs[theirs["thread"] == copy["thread"]]
    assert len(ours) == LAUNCHES
    assert len(theirs) > 0, "torch's sort has kernels of its own"
    # One stream does one thing after the other: ours, then torch's, then the copy.
    stream = between(frame, "kernel", "memcpy")
    stream = stream[stream["thread"] == copy["thread"]]
    assert (stream["start_ns"].to_numpy()[1:] >= stream["end_ns"].to_numpy()[:-1]).all()
    assert ours["end_ns"].max() <= theirs["start_ns"].min()
    assert theirs["end_ns"].max() <= copy["start_ns"]
    inside = [part - run.raw.origin_ns for part in (began, ended)]
    assert inside[0] - SLACK <= ours["start_ns"].min()
    assert copy["end_ns"] <= inside[1] + SLACK
    assert copy["dur_ns"] >= host.numel() * 4 / 128, "PCIe has no 128 GB/s"
    assert np.isin(kernels["device"], range(cuda.device_count())).all()
    # CUPTI's kernel lies around what the programs of the launch say themselves.
    launches = run.launches.reset_index(drop=True)
    assert len(launches) == LAUNCHES
    for (_, seen), (_, launch) in zip(ours.iterrows(), launches.iterrows(), strict=True):
        assert seen["start_ns"] <= launch["start_ns"] + SLACK
        assert seen["end_ns"] >= launch["start_ns"] + launch["dur_ns"] - SLACK
        assert seen["payload"]["grid_x"] == 1024


def test_the_end_of_a_session_waits_for_the_gpu(torch: Any) -> None:
    x = torch.zeros(1 << 24, device="cuda")
    torch.sort(x)
    torch.cuda.synchronize()
    with proton.profile("all", activities="all") as run:
        for _ in range(20):
            torch.sort(x)
    alone = between(run.frame, "kernel")
    with proton.profile("again", activities="all") as run:
        for _ in range(20):
            torch.sort(x)
        torch.cuda.synchronize()
    assert len(alone) == len(between(run.frame, "kernel")) > 0


def test_a_copy_on_another_stream_overlaps_kernels(torch: Any) -> None:
    a = torch.randn(4096, 4096, device="cuda", dtype=torch.float16)
    near, far = torch.zeros(1 << 26, pin_memory=True), torch.zeros(1 << 26, device="cuda")
    side = torch.cuda.Stream()
    a @ a
    torch.cuda.synchronize()
    with proton.profile("all", activities="all") as run:
        with torch.cuda.stream(side):
            far.copy_(near, non_blocking=True)  # 256 MB: some ms
        for _ in range(20):
            a = (a @ a) * 0.001
    kernels, copies = between(run.frame, "kernel"), between(run.frame, "memcpy")
    copy = copies[[p["bytes"] == near.numel() * 4 for p in copies["payload"]]].iloc[-1]
    assert copy["name"] == "memcpy HTOD"
    beside = kernels[
        (kernels["start_ns"] < copy["end_ns"]) & (kernels["end_ns"] > copy["start_ns"])
    ]
    assert len(beside) > 0
    assert copy["thread"] not in set(beside["thread"])
    assert run.frame["name"].str.contains("::").any(), "C++'s names are readable"
