"""Every kernel and copy of the process, by CUPTI: needs the package cupti-python."""

import numpy as np
import pytest

import proton
import proton.language as tl
from proton.runtime.nvidia import cuda

pytest.importorskip("cupti.cupti")


@proton.jit
def fill(out, BLOCK: tl.constexpr):
    with proton.scope("store"):
        tl.store(out + tl.arange(0, BLOCK), 1)


def test_cuptis_kernels_lie_where_ours_do() -> None:
    """Of a launch with records CUPTI's kernel lies around what its programs say."""
    torch = pytest.importorskip("torch")
    x = torch.zeros(1 << 20, device="cuda")
    fill[(64,)](x, BLOCK=1024)
    torch.cuda.synchronize()
    with proton.profile("all", activities="all") as run:
        for _ in range(3):
            fill[(64,)](x, BLOCK=1024)
        y = torch.sort(x).values
        back = y.cpu()
        torch.cuda.synchronize()
    assert back.shape == x.shape
    frame = run.frame
    kernels = frame[frame["kind"] == "kernel"]
    ours = kernels[kernels["name"].str.startswith("fill")]
    launches = run.launches.reset_index(drop=True)
    assert len(ours) == len(launches) == 3
    assert len(kernels) > 3, "torch's sort has kernels of its own"
    assert "memcpy DTOH" in set(frame["name"])
    slack = 50_000  # ns: how well the clocks of CUPTI, the GPU and the host are paired
    for (_, seen), (_, launch) in zip(ours.iterrows(), launches.iterrows(), strict=True):
        assert seen["start_ns"] <= launch["start_ns"] + slack
        end = launch["start_ns"] + launch["dur_ns"]
        assert seen["start_ns"] + seen["dur_ns"] >= end - slack
    assert np.isin(kernels["device"], range(cuda.device_count())).all()
