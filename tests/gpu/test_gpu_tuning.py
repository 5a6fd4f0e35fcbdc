"""Autotuning and `do_bench` on a GPU: choices depend on times, what is computed does not."""

import pytest

import proton
import proton.language as tl
from proton import testing
from proton.runtime import driver
from proton.runtime.backend import backend_named

torch = pytest.importorskip("torch")


@proton.jit
def accumulate(x_ptr, sum_ptr, n, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = (offs < n) | EVEN
    total = tl.load(sum_ptr + offs, mask=mask) + tl.load(x_ptr + offs, mask=mask)
    tl.store(sum_ptr + offs, total, mask=mask)


CONFIGS = [
    proton.Config({"BLOCK": block}, num_warps=warps) for block in (128, 1024) for warps in (1, 4)
]


def grid(meta):
    return (proton.cdiv(meta["n"], meta["BLOCK"]),)


@pytest.mark.parametrize("option", ["restore_value", "reset_to_zero"])
def test_a_kernel_is_tuned(option, rng):
    even = proton.heuristics({"EVEN": lambda args: args["n"] % args["BLOCK"] == 0})(accumulate)
    options = {option: ["sum_ptr"], "warmup": 1, "rep": 2}
    tuned = proton.autotune(CONFIGS, ["n"], **options)(even)
    for n in (1000, 4096):
        x = torch.from_numpy(rng.standard_normal(n).astype("f4")).cuda()
        total = torch.from_numpy(rng.standard_normal(n).astype("f4")).cuda()
        start = total.clone() if option == "restore_value" else torch.zeros_like(total)
        kernel = tuned[grid](x, total, n)
        testing.assert_close(total, start + x, atol=0)
        assert tuned.best_config in CONFIGS
        assert kernel.metadata["num_warps"] == tuned.best_config.num_warps
        assert all(0 < times[0] < float("inf") for times in tuned.configs_timings.values())
    assert len(tuned.cache) == 2


def test_what_is_wrong_with_a_configuration_is_told():
    def bench(call, quantiles):
        call()
        return [1.0] * 3

    wrong = [proton.Config({"BLOCK": 1024}, maxnreg=256), *CONFIGS[:2]]
    even = proton.heuristics({"EVEN": lambda args: False})(accumulate)
    x = torch.ones(100, device="cuda")
    with pytest.raises(proton.CompilationError, match="maxnreg"):
        proton.autotune(wrong, ["n"], do_bench=bench)(even)[grid](x, x.clone(), 100)


def test_do_bench_takes_events():
    x = torch.zeros(1 << 24, device="cuda")
    calls = []

    def work():
        calls.append(x.add_(1))

    times = testing.do_bench(work, 1, 5, return_mode="all", backend=backend_named("cuda"))
    assert len(times) >= 1
    assert all(ms > 0 for ms in times)
    assert float(x[0]) == len(calls) > len(times)


def test_the_active_driver_describes_the_gpu():
    active = driver.active
    properties = active.utils.get_device_properties(active.get_current_device())
    facts = torch.cuda.get_device_properties(0)
    assert properties["multiprocessor_count"] == facts.multi_processor_count
    assert properties["name"] == facts.name
    assert properties["warpSize"] == 32
    assert properties["max_shared_mem"] == active.get_current_target().facts.shared_bytes
    assert active.get_current_stream() == torch.cuda.current_stream().cuda_stream


def test_calls_in_a_cuda_graph_are_measured() -> None:
    x, total = torch.ones(1 << 20, device="cuda"), torch.zeros(1 << 20, device="cuda")

    def call() -> None:
        accumulate[(1024,)](x, total, 1 << 20, BLOCK=1024, EVEN=True)

    times = testing.do_bench_cudagraph(call, rep=5, return_mode="all")
    assert len(times) == 10
    assert all(time > 0 for time in times)
    before = float(total[0])
    testing.do_bench_cudagraph(call, rep=1)
    assert float(total[0]) > before
