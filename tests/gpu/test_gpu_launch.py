"""Launching on a real GPU: whose memory, which stream, what goes wrong."""

import subprocess
import sys
import textwrap
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import proton
import proton.language as tl
from proton.runtime.nvidia import cuda

ROOT = Path(__file__).parents[2]


@proton.jit
def add(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x + y, mask=mask)


@proton.jit
def spin_then_store(out_ptr, rounds, value):
    total = 0
    for i in range(rounds):
        total = (total * 3 + i) % 1000003
    tl.store(out_ptr, tl.where(total < 0, 0.0, value))


@proton.jit(noinline=True)
def column_sum(x):
    return tl.sum(x, axis=0)


@proton.jit(noinline=True)
def deeper(x):
    return column_sum(x * 2.0) + tl.max(x, axis=0)


@proton.jit
def calls(x_ptr, out_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(x_ptr + i)
    total = column_sum(x)
    tl.store(out_ptr + i, tl.gather(x, N - 1 - i, 0) * total + deeper(x + total))


@proton.jit
def nothing():
    pass


def torch() -> Any:
    return pytest.importorskip("torch")


@pytest.mark.parametrize("n", [0, 1, 31, 1000, 1024, 100_001])
def test_torch_tensors(n: int) -> None:
    t = torch()
    x, y = (t.randn(n, device="cuda") for _ in range(2))
    out = t.empty_like(x)
    for _ in range(3):  # the slow path, then the fast one
        out.fill_(float("nan"))
        kernel = add[(proton.cdiv(n, 256),)](x, y, out, n, BLOCK=256)
        assert t.equal(out, x + y)
    assert kernel.n_spills == 0
    assert kernel.n_regs > 0


def test_unaligned_and_strided_tensors_are_seen_as_they_are() -> None:
    t = torch()
    base = t.randn(4096, device="cuda")
    for shift in (0, 1, 2, 3, 4):
        x, out = base[shift : shift + 1000], t.empty(1001, device="cuda")[1:]
        add[(4,)](x, x, out, 1000, BLOCK=256)
        assert t.equal(out, x + x)


def test_cupy_and_the_array_interface() -> None:
    cupy = pytest.importorskip("cupy")
    x = cupy.arange(1000, dtype=cupy.float32)
    out = cupy.empty_like(x)
    add[(4,)](x, x, out, 1000, BLOCK=256)
    assert (out == 2 * x).all()


def test_launches_go_to_torch_s_current_stream() -> None:
    t = torch()
    out = t.zeros(1, device="cuda")
    spin_then_store[(1,)](out, 10, 1.0)
    stream = t.cuda.Stream()
    t.cuda.synchronize()
    with t.cuda.stream(stream):
        spin_then_store[(1,)](out, 3_000_000, 7.0)
    assert not stream.query(), "the launch runs on the stream, and takes a while"
    assert t.cuda.default_stream().query()
    stream.synchronize()
    assert out.item() == 7.0


def test_cuda_graphs_capture_and_replay() -> None:
    t = torch()
    x, out = t.randn(1000, device="cuda"), t.zeros(1000, device="cuda")
    add[(4,)](x, x, out, 1000, BLOCK=256)
    graph = t.cuda.CUDAGraph()
    with t.cuda.graph(graph):
        add[(4,)](x, x, out, 1000, BLOCK=256)
    x.normal_()
    graph.replay()
    t.cuda.synchronize()
    assert t.equal(out, x + x)


def test_threads_that_are_new_to_cuda_can_launch() -> None:
    t = torch()
    x = t.randn(1000, device="cuda")
    outs = [t.zeros(1000, device="cuda") for _ in range(8)]
    add[(4,)](x, x, outs[0], 1000, BLOCK=256)
    failures: list[BaseException] = []

    def work(out: Any) -> None:
        try:
            for _ in range(100):
                add[(4,)](x, x, out, 1000, BLOCK=256)
        except BaseException as problem:
            failures.append(problem)

    threads = [threading.Thread(target=work, args=(out,)) for out in outs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    t.cuda.synchronize()
    assert not failures
    assert all(t.equal(out, x + x) for out in outs)


def test_a_kernel_without_arguments_runs_on_the_gpu() -> None:
    assert nothing[(3,)]().metadata["target"] == str(cuda.target_of(cuda.current_device()))


@proton.jit
def meet(count_ptr, seen_ptr):
    """Each program waits for all others: they run at once, or for ever."""
    tl.atomic_add(count_ptr, 1)
    while tl.atomic_add(count_ptr, 0) < tl.num_programs(0):
        pass
    tl.store(seen_ptr + tl.program_id(0), tl.atomic_add(count_ptr, 0))


@pytest.mark.parametrize("num_ctas", [1, 2])
def test_a_cooperative_launch_runs_all_programs_at_once_or_none(num_ctas: int) -> None:
    programs = cuda.attribute(cuda.current_device(), "MULTIPROCESSOR_COUNT")
    count = torch().zeros(1, dtype=torch().int32, device="cuda")
    seen = torch().zeros(programs, dtype=torch().int32, device="cuda")
    options: dict[str, Any] = {"launch_cooperative_grid": True, "num_ctas": num_ctas}
    for launches in (1, 2):
        count.zero_()
        meet[(programs,)](count, seen, **options)
        assert (seen == programs).all(), launches
    with pytest.raises(proton.ProtonError, match=r"(?i)cooperative"):
        nothing[(1_000_000,)](**options)


@pytest.mark.parametrize("num_warps", [1, 2, 4, 8, 16, 32])
def test_called_functions_share_memory_safely(num_warps: int) -> None:
    t = torch()
    for n in (32, 1024):
        x, out = t.randn(n, device="cuda"), t.empty(n, device="cuda")
        for _ in range(20):
            kernel = calls[(1,)](x, out, N=n, num_warps=num_warps)
        total = x.sum()
        shifted = x + total
        want = x.flip(0) * total + (2 * shifted).sum() + shifted.max()
        assert t.allclose(out, want, rtol=1e-3, atol=1e-2)
        assert "call" in kernel.asm["ptx"]


def test_sass_has_wide_accesses_and_source_lines() -> None:
    t = torch()
    x = t.randn(4096, device="cuda")
    kernel = add[(4,)](x, x, x, 4096, BLOCK=1024)
    sass = kernel.asm["sass"]
    assert "LDG.E.128" in sass
    assert "STG.E.128" in sass
    assert Path(__file__).name in sass


def test_memory_of_the_cpu_among_that_of_the_gpu_is_an_error() -> None:
    t = torch()
    x = t.randn(10, device="cuda")
    with pytest.raises(proton.LaunchError, match="y_ptr is on cpu"):
        add[(1,)](x, t.randn(10), x, 10, BLOCK=16)
    with pytest.raises(proton.LaunchError, match="y_ptr is in CPU memory"):
        add[(1,)](x, np.zeros(10, np.float32), x, 10, BLOCK=16)


def test_freed_storage_is_an_error() -> None:
    t = torch()
    x, y = t.randn(10, device="cuda"), t.randn(10, device="cuda")
    add[(1,)](x, y, x, 10, BLOCK=16)
    y.untyped_storage().resize_(0)
    with pytest.raises(proton.LaunchError, match="y_ptr has no memory"):
        add[(1,)](x, y, x, 10, BLOCK=16)


def run(source: str) -> subprocess.CompletedProcess[str]:
    """Runs a program in a process of its own: a fault ends a CUDA context for good."""
    path = ROOT / f".fault-{threading.get_ident()}.py"
    path.write_text(textwrap.dedent(source))
    try:
        return subprocess.run(
            [sys.executable, str(path)], capture_output=True, text=True, timeout=300, check=False
        )
    finally:
        path.unlink()


HEADER = """
    import torch, proton, proton.language as tl

    @proton.jit(debug=True)
    def kernel(p, n, LIMIT: tl.constexpr):
        i = tl.arange(0, 32)
        x = tl.load(p + i * n)
        tl.device_assert(x < LIMIT, "too large")
        tl.store(p + i, x)
"""


def test_an_assertion_on_the_device_names_its_line() -> None:
    done = run(
        HEADER
        + """
    x = torch.arange(32, device="cuda", dtype=torch.int32)
    kernel[(1,)](x, 1, LIMIT=100)
    torch.cuda.synchronize()
    print("first is fine", flush=True)
    kernel[(1,)](x, 1, LIMIT=5)
    try:
        torch.cuda.synchronize()
    except Exception as problem:
        print("raised", flush=True)
    """
    )
    assert "first is fine" in done.stdout
    assert "raised" in done.stdout
    assert "too large" in done.stderr
    assert ".py:8" in done.stderr


def test_a_fault_is_an_error_of_the_next_launch_and_no_crash() -> None:
    done = run(
        HEADER
        + """
    x = torch.zeros(32, device="cuda", dtype=torch.int32)
    kernel[(1,)](x, 1 << 29, LIMIT=100)
    try:
        torch.cuda.synchronize()
    except Exception:
        pass
    try:
        kernel[(1,)](x, 1, LIMIT=100)
        torch.cuda.synchronize()
    except Exception as problem:
        print(type(problem).__name__, problem, flush=True)
    """
    )
    assert done.returncode == 0, done.stderr
    assert "CUDAError" in done.stdout
    assert "CUDA_ERROR_" in done.stdout


@proton.jit
def turned(x_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr):
    i, j = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :]
    tl.store(out_ptr + j * M + i, tl.load(x_ptr + i * N + j))


@pytest.mark.parametrize("dtype, shape, warps", [("int32", (256, 256), 4),
                                                 ("int64", (256, 256), 4),
                                                 ("float16", (256, 512), 8)])  # fmt: skip
def test_a_block_that_shared_memory_has_no_room_for(
    torch: Any, dtype: str, shape: tuple[int, int], warps: int
) -> None:
    """It is turned part after part."""
    x = torch.randint(-1000, 1000, shape, device="cuda").to(getattr(torch, dtype))
    out = torch.zeros(shape[::-1], dtype=x.dtype, device="cuda")
    kernel = turned[(1,)](x, out, *shape, num_warps=warps)
    assert kernel.shared < x.nbytes
    assert torch.equal(out, x.T)
