"""Several GPUs in one process: whose memory, which context, one timeline."""

import threading
from typing import Any

import pytest

import proton
import proton.language as tl
from proton.runtime.nvidia import buffers as gpu_buffers
from proton.runtime.nvidia import cuda
from proton.runtime.nvidia import profile as gpu_profile

pytestmark = pytest.mark.skipif(cuda.device_count() < 2, reason="needs two NVIDIA GPUs")


@proton.jit
def scale(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    with proton.scope("load"):
        x = tl.load(x_ptr + offsets, mask=offsets < n)
    with proton.scope("store"):
        tl.store(out_ptr + offsets, x * 2.0, mask=offsets < n)


@proton.jit
def nothing():
    pass


def torch() -> Any:
    return pytest.importorskip("torch")


def pair(device: int, n: int = 1000) -> tuple[Any, Any]:
    x = torch().randn(n, device=f"cuda:{device}")
    return x, torch().zeros_like(x)


def launch(device: int, x: Any, out: Any) -> None:
    with torch().cuda.device(device):
        scale[(4,)](x, out, x.numel(), BLOCK=256)


def test_each_gpu_runs_what_has_its_arrays() -> None:
    for device in (1, 0, 1, 0, 0, 1):
        x, out = pair(device)
        launch(device, x, out)
        assert out.device.index == device
        assert torch().equal(out, 2 * x)


def test_an_array_of_another_gpu_is_an_error() -> None:
    (x, _), (y, out) = pair(0), pair(1)
    for _ in range(2):  # before there is a fast path, and after
        with pytest.raises(proton.LaunchError, match=r"out_ptr is on GPU 1.* is GPU 0"):
            scale[(4,)](x, out, 1000, BLOCK=256)
        with pytest.raises(proton.LaunchError, match=r"x_ptr is on GPU 1.* is GPU 0"):
            scale[(4,)](y, out, 1000, BLOCK=256)
        launch(0, *pair(0))
        launch(1, *pair(1))


def test_cupy_arrays_of_another_gpu() -> None:
    cupy = pytest.importorskip("cupy")
    torch().cuda.init()
    with cupy.cuda.Device(1):
        x, out = cupy.arange(1000, dtype=cupy.float32), cupy.zeros(1000, cupy.float32)
    torch().cuda.set_device(0)
    with pytest.raises(proton.LaunchError, match=r"x_ptr is on GPU 1"):
        scale[(4,)](x, out, 1000, BLOCK=256)
    for _ in range(2):
        with cupy.cuda.Device(1):
            out[:] = 0
            scale[(4,)](x, out, 1000, BLOCK=256)
            assert (out == 2 * x).all()


def test_kernels_without_arrays_run_on_the_current_gpu() -> None:
    for device in (1, 0, 1):
        with torch().cuda.device(device):
            for _ in range(2):
                nothing[(3,)]()
            torch().cuda.synchronize()
            assert cuda.current_device() == device


def test_threads_with_a_gpu_each() -> None:
    wrong: list[Any] = []

    def work(device: int) -> None:
        try:
            with torch().cuda.device(device):
                for _ in range(50):
                    x, out = pair(device)
                    scale[(4,)](x, out, 1000, BLOCK=256)
                    if not torch().equal(out, 2 * x):
                        wrong.append(device)
        except BaseException as problem:
            wrong.append(problem)

    threads = [threading.Thread(target=work, args=(n % 2,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.parametrize("ending_on", [0, 1])
@pytest.mark.parametrize("options", [{}, {"strategy": "flush"}, {"buffer": "global"}], ids=str)
def test_one_run_has_the_launches_of_two_gpus(ending_on: int, options: dict[str, Any]) -> None:
    pairs = [pair(0), pair(1)]
    order = [0, 1, 1, 0, 1, 0]
    with torch().cuda.device(ending_on), proton.profile("two", **options) as run:
        for device in order:
            launch(device, *pairs[device])
            torch().cuda.synchronize(device)
    assert list(run.launches.device) == order
    assert run.totals.slices == len(order) * 4 * 4 * 2
    assert run.totals.lost == 0
    slices = run.frame[run.frame.kind == "scope"]
    slices = slices.assign(end_ns=slices.start_ns + slices.dur_ns).groupby("launch")
    assert list(slices.device.first()) == order
    # Each launch was over before the next one began: so say the clocks of both GPUs, too.
    begins, ends = slices.start_ns.min().to_numpy(), slices.end_ns.max().to_numpy()
    error = max(gpu.error_ns for gpu in run.raw.gpus)
    assert (begins[1:] > ends[:-1] - 2 * error).all()
    for x, out in pairs:
        assert torch().equal(out, 2 * x)


def test_run_times_on_two_gpus() -> None:
    pairs = [pair(0), pair(1)]
    with proton.profile("times", compare_run_time=True) as run:
        for device in (0, 1) * 6:
            launch(device, *pairs[device])
    assert run.totals.launches == 6
    assert run.kernels[0].options["run_ns"] > 0
    assert run.kernels[0].options["run_ns_off"] > 0


def test_a_graph_of_another_gpu() -> None:
    x, out = pair(1)
    launch(1, x, out)
    with proton.profile("graph") as run:
        with torch().cuda.device(1):
            scale[(4,)](x, out, 1000, BLOCK=256)
            graph = torch().cuda.CUDAGraph()
            # torch's own stream for captures is one for the process, of the GPU that came first.
            with torch().cuda.graph(graph, stream=torch().cuda.Stream()):
                scale[(4,)](x, out, 1000, BLOCK=256)
            out.zero_()
            for _ in range(3):
                graph.replay()
    assert torch().equal(out, 2 * x)
    assert list(run.launches.device) == [1] * 4
    assert run.totals.slices == 4 * 4 * 4 * 2


def test_both_rings_are_emptied(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each by a thread of its own, while launches go on."""
    for module in (gpu_profile, gpu_buffers):
        monkeypatch.setattr(module, "STEP_BYTES", 2 << 20)  # pages of the driver
    monkeypatch.setattr(gpu_profile, "MOST_BYTES", 2 << 20)
    pairs = [pair(0), pair(1)]
    with proton.profile("many") as run:
        for number in range(600):
            launch(number % 2, *pairs[number % 2])
            if number % 20 == 19:
                torch().cuda.synchronize(0)
                torch().cuda.synchronize(1)
    assert run.totals.launches == 600
    assert run.totals.slices == 600 * 4 * 4 * 2
    assert run.totals.lost == run.totals.dropped_launches == 0
    assert dict(run.launches.device.value_counts()) == {0: 300, 1: 300}
