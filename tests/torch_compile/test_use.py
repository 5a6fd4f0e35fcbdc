"""How programs use torch.compile: kernels of their own, changing sizes, other processes, modes."""

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
import triton
import triton.language as tl
from torch._higher_order_ops import triton_kernel_wrap
from triton.language.extra.libdevice import fast_dividef
from triton.tools.tensor_descriptor import TensorDescriptor

import proton
from proton.runtime.cpu import interpreted
from proton.runtime.nvidia import cuda
from tests.torch_compile.conftest import DEVICE, needs_torch


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    sums = tl.load(x_ptr + at, mask=at < n) + tl.load(y_ptr + at, mask=at < n)
    tl.store(out_ptr + at, sums, mask=at < n)


@triton.autotune([triton.Config({"BLOCK": 32}), triton.Config({"BLOCK": 64})], key=["n"])
@triton.jit
def scale_kernel(x_ptr, out_ptr, n, by, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.load(x_ptr + at, mask=at < n) * by, mask=at < n)


@triton.heuristics({"BLOCK": lambda args: triton.next_power_of_2(args["n"])})
@triton.heuristics({"EVEN": lambda args: args["n"] == args["BLOCK"]})
@triton.jit
def sized_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.load(x_ptr + at, mask=at < n) + EVEN, mask=at < n)


@triton.heuristics({"by": lambda args: args["n"] / 2})
@triton.autotune([triton.Config({"BLOCK": 32}), triton.Config({"BLOCK": 64})], key=["n"])
@triton.heuristics({"EVEN": lambda args: args["n"] % args["BLOCK"] == 0})
@triton.jit
def halved_kernel(x_ptr, out_ptr, n, by, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.load(x_ptr + at, mask=EVEN | (at < n)) * by, mask=at < n)


@triton.jit
def add_one_kernel(x_ptr, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(x_ptr + at, tl.load(x_ptr + at, mask=at < n) + 1, mask=at < n)


@pytest.mark.parametrize(("option", "expected"), [("reset_to_zero", 1.0), ("restore_value", 6.0)])
def test_tuning_restores_parameters_of_a_model(option: str, expected: float) -> None:
    """Launches take them; torch has them not written in place."""
    configs = [triton.Config({"BLOCK": 16}), triton.Config({"BLOCK": 32})]
    tuned = triton.autotune(configs, key=[], warmup=1, rep=1, **{option: ["x_ptr"]})(add_one_kernel)
    x = torch.nn.Parameter(torch.full((10,), 5.0))
    tuned[(1,)](x, 10)
    assert x.tolist() == [expected] * 10


@triton.jit
def _stored(where, value, mask):
    tl.store(where, value, mask=mask)


@triton.jit
def in_place_kernel(x_ptr, seen_ptr, n, BLOCK: tl.constexpr):
    """Writes through a helper, reads through a block pointer, counts by an atomic."""
    at = tl.arange(0, BLOCK)
    block = tl.make_block_ptr(x_ptr, (n,), (1,), (0,), (BLOCK,), (0,))
    x = tl.load(block, boundary_check=(0,))
    _stored(x_ptr + at, x * 2, at < n)
    tl.atomic_add(seen_ptr, 1)


@triton.jit
def chosen_kernel(a_ptr, b_ptr, out_ptr, n, take, BLOCK: tl.constexpr):
    """Writes through one pointer of two, which only the run time knows."""
    at = tl.arange(0, BLOCK)
    if take > 0:
        source = a_ptr
    else:
        source = b_ptr
    tl.store(source + at, at.to(tl.float32), mask=at < n)
    tl.store(out_ptr + at, tl.load(source + at, mask=at < n), mask=at < n)


@triton.jit
def blocks_kernel(x_desc, out_desc, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK
    out_desc.store([at], x_desc.load([at]) * 2)


HALF: tl.constexpr = tl.constexpr(0.5)
integer_of = triton.constexpr_function(tl.core.get_int_dtype)


@triton.constexpr_function
def next_of(number):
    return number + 1


@triton.jit
def names_kernel(x_ptr, out_ptr, n, dtype: tl.constexpr, BLOCK: tl.constexpr):
    """Names that torch has to bring along into the file that it writes."""
    at = tl.arange(0, BLOCK)
    x = fast_dividef(tl.load(x_ptr + at, mask=at < n), 2.0) * HALF * next_of(1)
    tl.store(out_ptr + at, x.to(dtype), mask=at < n)


@triton.jit
def bits_kernel(x_ptr, out_ptr, n, dtype: tl.constexpr, BLOCK: tl.constexpr):
    """A function of Triton's, and dtypes that it names."""
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    bits = x.to(integer_of(bitwidth=x.dtype.primitive_bitwidth, signed=True), bitcast=True)
    tl.store(out_ptr + at, bits.to(dtype, bitcast=True), mask=at < n)


def _accesses(
    kernel: Any, told: dict[str, Any] | None = None, /, **arguments: Any
) -> tuple[set[str], set[str]]:
    identify = getattr(triton_kernel_wrap, "identify_accessed_tensors", None)
    if identify is None:
        pytest.skip("this torch does not ask what a kernel reads")
    found = identify(kernel, arguments, told or {}).read_writes
    return {dep.name for dep in found.reads}, {dep.name for dep in found.writes}


def test_torch_learns_which_arguments_a_kernel_reads_and_writes() -> None:
    x, count = torch.randn(40), torch.zeros(1, dtype=torch.int32)
    pair = {"x_ptr": x, "out_ptr": x, "n": 40, "by": 2.0}
    assert _accesses(add_kernel, x_ptr=x, y_ptr=x, out_ptr=x, n=40, BLOCK=64) == (
        {"x_ptr", "y_ptr"},
        {"out_ptr"},
    )
    assert _accesses(scale_kernel, **pair) == ({"x_ptr"}, {"out_ptr"})
    assert _accesses(in_place_kernel, x_ptr=x, seen_ptr=count, n=40, BLOCK=64) == (
        {"x_ptr", "seen_ptr"},
        {"x_ptr", "seen_ptr"},
    )
    many = {"a_ptr": x, "b_ptr": x, "out_ptr": x, "n": 40, "take": 3, "BLOCK": 64}
    assert _accesses(chosen_kernel, **many) == ({"a_ptr", "b_ptr"}, {"a_ptr", "b_ptr", "out_ptr"})


@pytest.mark.usefixtures("host_descriptors")
def test_torch_learns_which_descriptors_a_kernel_stores_through() -> None:
    describe = triton_kernel_wrap.create_tma_stable_metadata
    x = torch.randn(64)
    told = {name: describe([16]) for name in ("x_desc", "out_desc")}
    given = {"x_desc": x, "out_desc": x, "BLOCK": 16}
    assert _accesses(blocks_kernel, told, **given) == ({"x_desc"}, {"out_desc"})
    made, _ = triton_kernel_wrap.generate_ttir(blocks_kernel, given, told)
    assert "out_desc" in str(made)
    assert "BLOCK" not in str(made)


@pytest.mark.usefixtures("host_descriptors")
def test_descriptors_of_the_program_are_in_one_graph_with_torchs() -> None:
    def of(x: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(x)
        pair = (TensorDescriptor.from_tensor(t, [16]) for t in (x, out))
        blocks_kernel[(4,)](*pair, BLOCK=16)
        return out + 1

    x = torch.randn(64)
    torch.testing.assert_close(torch.compile(of, fullgraph=True)(x), 2 * x + 1)


_NAMES_DTYPES = pytest.param(
    bits_kernel, 1.0, marks=needs_torch("2.12", "asks a dtype for its __name__")
)


@pytest.mark.parametrize(("kernel", "factor"), [(names_kernel, 0.5), _NAMES_DTYPES])
def test_names_of_the_program_are_in_one_graph_with_torchs(kernel: Any, factor: float) -> None:
    def of(x: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(x)
        kernel[(1,)](x * 1, out, out.numel(), tl.float32, BLOCK=64)
        return out + 1

    x = torch.randn(64)
    torch.testing.assert_close(torch.compile(of, fullgraph=True)(x), factor * x + 1)


def test_kernels_of_the_program_are_in_one_graph_with_torchs() -> None:
    def of(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        sums, out, n = torch.empty_like(x), torch.empty_like(x), x.numel()
        add_kernel[(triton.cdiv(n, 64),)](x, y, sums, n, BLOCK=64)
        scale_kernel[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](sums, out, n, 2.5)
        return out.sin() + sums

    x, y = torch.randn(100), torch.randn(100)
    wanted = ((x + y) * 2.5).sin() + x + y
    torch.testing.assert_close(torch.compile(of, fullgraph=True)(x, y), wanted)
    torch.testing.assert_close(torch.compile(of, fullgraph=True, dynamic=True)(x, y), wanted)


def test_heuristics_around_kernels_and_around_autotune_are_in_the_graph() -> None:
    def of(x: torch.Tensor) -> torch.Tensor:
        out, last, n = torch.empty_like(x), torch.empty_like(x), x.numel()
        sized_kernel[(1,)](x, out, n)
        halved_kernel[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](out, last, n)
        return last * 2

    compiled = torch.compile(of, fullgraph=True)
    for n in (64, 90):
        x = torch.randn(n)
        torch.testing.assert_close(compiled(x), (x + (n == 64)) * n)
        torch._dynamo.reset()  # a constant of a heuristic is no symbol, in torch


def test_a_kernel_that_writes_its_input_changes_it_once() -> None:
    def of(x: torch.Tensor, count: torch.Tensor) -> torch.Tensor:
        y = x * 1.0
        in_place_kernel[(1,)](y, count, y.numel(), BLOCK=64)
        in_place_kernel[(1,)](x, count, x.numel(), BLOCK=64)
        return y + x

    x, count = torch.randn(50), torch.zeros(1, dtype=torch.int32)
    before = x.clone()
    torch.testing.assert_close(torch.compile(of, fullgraph=True)(x, count), 4 * before)
    torch.testing.assert_close(x, 2 * before)
    assert count.item() == 2


def test_a_triton_op_is_compiled_with_its_gradient() -> None:
    @torch.library.triton_op("proton_torch::double", mutates_args={})
    def double(x: torch.Tensor) -> torch.Tensor:
        out, n = torch.empty_like(x), x.numel()
        grid = lambda meta: (triton.cdiv(n, meta["BLOCK"]),)  # noqa: E731
        torch.library.wrap_triton(scale_kernel)[grid](x, out, n, 2.0)
        return out

    double.register_autograd(lambda ctx, grad: double(grad.contiguous()))
    x = torch.randn(100, requires_grad=True)
    out = torch.compile(lambda x: double(x.sin()), fullgraph=True)(x)
    out.cos().sum().backward()
    torch.testing.assert_close(out, 2 * x.sin())
    torch.testing.assert_close(x.grad, -torch.sin(2 * x.sin()) * 2 * x.cos())


SIZES = (1, 7, 64, 65, 1000)


@pytest.mark.parametrize("name", ["pointwise", "softmax", "norm", "views", "scatter"])
def test_one_graph_is_right_for_many_sizes(name: str) -> None:
    of = {
        "pointwise": lambda x: (x * 2).sin() + x.shape[0],
        "softmax": lambda x: torch.softmax(x, 0).sum(1),
        "norm": lambda x: torch.nn.functional.layer_norm(x, x.shape[1:]) + x.mean(0),
        "views": lambda x: torch.cat([x.t().reshape(-1), x[::2].reshape(-1)]) * 2,
        "scatter": lambda x: torch.zeros_like(x).index_add(
            0, torch.arange(x.shape[0]).flip(0), x.exp()
        ),
    }[name]
    compiled = torch.compile(of, fullgraph=True, dynamic=True)
    for size in SIZES:
        x = torch.randn(size, 33)
        torch.testing.assert_close(compiled(x), of(x), rtol=1e-5, atol=1e-4)


def test_arguments_that_are_changed_and_share_memory() -> None:
    def of(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        x.add_(y.sum(0))
        y[1:] = y[:-1] * 2
        return x.t() * 3

    whole, copy = torch.randn(20, 20), None
    copy = whole.clone()
    found = torch.compile(of, fullgraph=True)(whole[:10, :10], whole[10:, 10:])
    torch.testing.assert_close(found, of(copy[:10, :10], copy[10:, 10:]))
    torch.testing.assert_close(whole, copy)


def test_a_condition_of_the_run_time() -> None:
    def of(x: torch.Tensor) -> torch.Tensor:
        return torch.cond(x.sum() > 0, lambda x: x.sin() * 2, lambda x: x.cos() - 1, (x,))

    compiled = torch.compile(of, fullgraph=True)
    for x in (torch.ones(33), -torch.ones(33)):
        torch.testing.assert_close(compiled(x), of(x))


def test_configurations_that_torch_tries_itself() -> None:
    def of(x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x * 2, -1).sum(0)

    x = torch.randn(65, 130)
    compiled = torch.compile(of, options={"max_autotune": True, "coordinate_descent_tuning": True})
    torch.testing.assert_close(compiled(x), of(x))


def test_hooks_hear_of_launches_of_compiled_functions() -> None:
    heard: list[str] = []
    hook = lambda facts: heard.append(facts.get()["name"])  # noqa: E731
    triton.knobs.runtime.launch_enter_hook.add(hook)
    try:
        torch.compile(lambda x: x.sin() + 1)(torch.randn(40))
    finally:
        triton.knobs.runtime.launch_enter_hook.remove(hook)
    assert any("sin" in name for name in heard), heard


class _Announced:
    """torch's bindings of NVTX, which those for the CPU have not."""

    def __init__(self) -> None:
        self.depth = 0

    def rangePushA(self, message: str) -> int:
        self.depth += 1
        return self.depth - 1

    def rangePop(self) -> int:
        self.depth -= 1
        return self.depth

    def markA(self, message: str) -> None:
        pass


def test_ranges_of_nvtx_are_scopes_of_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nested, or across scopes of the program; those begun before the session are none."""
    nvtx, x = torch.cuda.nvtx, torch.randn(64)
    monkeypatch.setattr(nvtx, "_nvtx", _Announced())

    def launch() -> None:
        add_kernel[(1,)](x, x, torch.empty_like(x), 64, BLOCK=64)

    nvtx.range_push("before")
    with proton.profile("ranges") as run:
        with nvtx.range("step/{}", 7):
            assert nvtx.range_push("") == 2
            launch()
            assert nvtx.range_pop() == 2
        nvtx.range_pop()
        with proton.scope("mine"):
            nvtx.range_push("across")
        launch()
        nvtx.range_pop()
        nvtx.mark("here")
        monkeypatch.setenv("TRITON_ENABLE_NVTX", "0")
        with nvtx.range("off"):
            launch()
    assert list(run.launches["scope"]) == ["step|7/range", "mine/across", ""]
    assert "here" in set(run.frame["name"])


PROGRAM = """
import sys
import proton
from proton.backends.cpu import llvm

emitted, emit = [], llvm.emit_object
llvm.emit_object = lambda text: emitted.append(text) or emit(text)
proton.install_as_triton()
import torch
from torch._inductor.async_compile import AsyncCompile
from torch._inductor.runtime.triton_heuristics import CachingAutotuner

if sys.argv[2] == "cpu":
    torch._inductor.config.cpu_backend = "triton"
torch._inductor.config.compile_threads = int(sys.argv[1])
if sys.argv[1] != "1":
    AsyncCompile.use_process_pool()  # starts it
    AsyncCompile._ready_future.result()
    assert AsyncCompile.use_process_pool()
kinds = []
run = CachingAutotuner.run
def noted(self, *args, **kwargs):
    kinds.append(type(self.fn).__name__)
    return run(self, *args, **kwargs)
CachingAutotuner.run = noted
x = torch.randn(40, 33, device=sys.argv[2])
of = lambda x: torch.softmax(x * 3, -1).sum(0)
torch.testing.assert_close(torch.compile(of, fullgraph=True)(x), of(x))
print(sorted(set(kinds)), any("triton_" in text for text in emitted))
"""


def test_processes_that_compile_and_caches_on_disk(tmp_path: Path) -> None:
    """The first program has its kernels compiled by other processes, the second finds them, the
    third in torch's cache of graphs."""
    (tmp_path / "program.py").write_text(PROGRAM)
    more = {"TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "inductor"), "TORCH_WARM_POOL": "1"}
    path = os.pathsep.join(
        [str(Path(proton.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    )
    environment = os.environ | more | {"PYTHONPATH": path}
    del environment["PROTON_CACHE_DIR"]  # kernels lie where torch looks for them
    for threads, kind in (("2", "LateFunction"), ("1", "JITFunction"), ("1", "JITFunction")):
        command = [sys.executable, str(tmp_path / "program.py"), threads, DEVICE]
        done = subprocess.run(command, capture_output=True, text=True, env=environment)
        assert done.returncode == 0, done.stderr[-3000:]
        assert done.stdout.strip() == f"['{kind}'] False"
        (kernels,) = (tmp_path / "inductor" / "triton").iterdir()
        moved = kernels.rename(tmp_path / f"{len(list(tmp_path.iterdir()))}")
        if threads == "2":
            moved.rename(kernels)


OF_GPU = """
import triton
import triton.language as tl
from torch._inductor.runtime import triton_helpers, triton_heuristics
from torch._inductor.runtime.hints import DeviceProperties

triton_helpers.set_driver_to_gpu()
device = DeviceProperties(
    type="cuda", index=0, multi_processor_count=132, cc=90, major=9, warp_size=32,
    regs_per_multiprocessor=65536, max_threads_per_multi_processor=2048,
)

@triton_heuristics.pointwise(
    size_hints={"x": 4096},
    filename=__file__,
    triton_meta={
        "signature": {"x": "*fp32", "y": "*fp32", "xnumel": "i32", "XBLOCK": "constexpr"},
        "device": device,
        "constants": {},
        "configs": [{(0,): [["tt.divisibility", 16]], (1,): [["tt.divisibility", 16]]}],
    },
    inductor_meta={"grid_type": "Grid1D", "kernel_name": "added", "mutated_arg_names": []},
    min_elem_per_thread=0,
)
@triton.jit
def added(x, y, xnumel, XBLOCK: tl.constexpr):
    i = tl.program_id(0) * XBLOCK + tl.arange(0, XBLOCK)
    tl.store(y + i, tl.load(x + i, i < xnumel) + 1.0, i < xnumel)
"""


def test_processes_that_compile_for_a_gpu_that_they_cannot_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are forked from one that torch has asked for the GPU's properties."""
    from torch._inductor.runtime.compile_tasks import _reload_python_module

    monkeypatch.setattr(cuda, "_devices", lambda: (cuda._NOT_INITIALIZED, 0))
    file = tmp_path / "added.py"
    file.write_text(OF_GPU)
    before = triton.runtime.driver.active
    try:
        kernel = _reload_python_module("added_of_gpu", str(file)).added
        kernel.precompile(warm_cache_only=True)
    finally:
        triton.runtime.driver.set_active(before)
    assert kernel.compile_results
    assert all(b".nv.info" in found.kernel.asm["cubin"] for found in kernel.compile_results)


def test_tritonparse_follows_compilations_and_launches(tmp_path: Path) -> None:
    """Of kernels of the program and of torch's."""
    tracing = pytest.importorskip("tritonparse.structured_logging")
    from tritonparse.parse.utils import unified_parse

    tracing.init(str(tmp_path / "raw"), enable_trace_launch=True)
    try:
        x, sums = torch.randn(100), torch.empty(100)
        add_kernel[(2,)](x, x, sums, 100, BLOCK=64)
        torch.compile(lambda x: x.sin() + 1)(x)
    finally:
        tracing.clear_logging_config()
    unified_parse(source=str(tmp_path / "raw"), out=str(tmp_path / "parsed"), overwrite=True)
    events = [
        json.loads(line)
        for path in (tmp_path / "parsed").glob("*.gz")
        for line in gzip.decompress(path.read_bytes()).splitlines()
    ]
    files = {
        event["payload"]["metadata"]["hash"]: set(event["payload"]["file_content"])
        for event in events
        if event["event_type"] == "compilation"
    }
    launches = [event for event in events if event["event_type"] == "launch"]
    assert {"add_kernel"} < {event["name"] for event in launches}
    for event in launches:
        assert f"{event['name']}.ttir" in files[event["compilation_metadata"]["hash"]]
        assert event["extracted_args"]["xnumel" if "sin" in event["name"] else "n"]["value"] == 100


@pytest.mark.parametrize("persistent", [False, True])
def test_cooperative_reductions(
    persistent: bool, compiled: list[tuple[Any, dict[str, Any]]]
) -> None:
    """Programs of one reduction wait for each other."""
    options = {
        "triton.force_cooperative_reductions": True,
        "triton.persistent_reductions": persistent,
    }

    def reduced(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return x.sum(-1), torch.var(y, -1), x.argmax(-1), torch.softmax(x - y, -1), x.amin() + 1

    x, y = torch.randn(1, 5003), torch.randn(1, 5003)
    found = torch.compile(reduced, options=options)(x, y)
    torch.testing.assert_close(found, reduced(x, y))
    assert any("x_grid_barrier" in source.fn.src for source, _ in compiled)


@triton.jit(interpret=True)
def swapped_rows(x_ptr, pair, block, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    first = tl.load(x_ptr + at) + block.load([0])
    tl.store(x_ptr + at, tl.load(pair[0] + at))
    tl.store(pair[0] + at, first)
    tl.store(pair[1] + at, first * 2)


def test_interpreted_kernels_take_tensors_of_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """By copies, one of memory that several share. Without a GPU those of the host are copied."""
    if DEVICE == "cpu":
        monkeypatch.setattr(interpreted, "_is_elsewhere", interpreted.is_torch)
    x, other, more = torch.randn(2, 16), torch.randn(16, requires_grad=True), torch.randn(16)
    block = TensorDescriptor.from_tensor(more, [16])
    first, second = x.clone()
    swapped_rows[(1,)](x[0], (x[1], other), block, BLOCK=16)
    torch.testing.assert_close(x, torch.stack([second, first + more]))
    torch.testing.assert_close(other.detach(), 2 * (first + more))
