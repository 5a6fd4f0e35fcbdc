"""Kernels that torch makes of templates, and ways to launch them: products, flex attention, CUDA
graphs, files of AOTInductor.

Torch takes the templates of flex attention and of products by TMA on GPUs only. Without one these
tests have it take them on the CPU.
"""

import contextvars
import inspect
import multiprocessing
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch
import torch._inductor.kernel.flex.flex_attention as lowering
import torch._inductor.kernel.flex.flex_decoding as decoding
import torch._inductor.kernel.mm as products
import torch._inductor.lowering
import torch.nn.attention.flex_attention as flex
import triton
import triton.language as tl
from torch import Tensor
from torch._inductor import config
from torch._inductor.runtime import triton_heuristics
from triton.backends.compiler import GPUTarget

from tests.torch_compile.conftest import DEVICE, check_on_gpu, needs_torch

ON_GPU = DEVICE == "cuda"
_ON_ANY_DEVICE = inspect.getsource(lowering.flex_attention).replace('.type == "cpu"', '.type == ""')
needs_gpu = pytest.mark.skipif(not ON_GPU, reason="needs a GPU")


def _equal(found: Tensor, wanted: Tensor) -> None:
    torch.testing.assert_close(found, wanted, rtol=2e-3, atol=2e-3)


@pytest.fixture
def templates(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """On a CPU torch takes the templates that it takes on a GPU."""
    if ON_GPU:
        yield
        return
    known = dict(torch._inductor.lowering.lowerings)
    exec(_ON_ANY_DEVICE, dict(vars(lowering)))  # registers it
    monkeypatch.setattr(flex, "_validate_device", lambda *_: None)
    monkeypatch.setattr(lowering, "can_use_tma", lambda *_, **__: True)
    monkeypatch.setattr(decoding, "get_split_k", lambda *_: 4)
    monkeypatch.setattr(
        products,
        "use_triton_tma_template",
        lambda *_, **__: config.triton.enable_persistent_tma_matmul,
    )
    yield
    torch._inductor.lowering.lowerings.update(known)


_TEMPLATES = {
    "max_autotune": True,
    "max_autotune_gemm_backends": "TRITON",
    "max_autotune_conv_backends": "TRITON",
    "benchmark_epilogue_fusion": ON_GPU,  # torch measures it on GPUs only
    "test_configs.max_mm_configs": 3,
}
PRODUCTS: dict[str, tuple[Callable[..., Tensor], tuple[tuple[int, ...], ...]]] = {
    "product with what follows": (lambda a, b: torch.relu(a @ b) + 1, ((65, 70), (70, 90))),
    "with a bias": (torch.addmm, ((90,), (65, 70), (70, 90))),
    "batched": (lambda a, b: torch.bmm(a, b).sin(), ((3, 20, 33), (3, 33, 18))),
    "convolution": (
        lambda x, w: torch.conv2d(x, w, padding=1),
        ((2, 16, 20, 20), (24, 16, 3, 3)),
    ),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_products_of_templates(name: str, templates: None, compiled: Any) -> None:
    of, shapes = PRODUCTS[name]
    inputs = [torch.randn(shape) for shape in shapes]
    # As they are cuDNN takes TF32 for fp32, and torch's template for convolutions does not.
    as_the_template = torch.backends.cudnn.flags(enabled=True, allow_tf32=False)
    with config.patch(_TEMPLATES), as_the_template:
        _equal(torch.compile(of, fullgraph=True)(*inputs), of(*inputs))
    check_on_gpu(compiled)


def test_a_product_by_tma(templates: None, compiled: Any) -> None:
    a, b = torch.randn(128, 64).half(), torch.randn(64, 128).half()
    with config.patch(_TEMPLATES | {"triton.enable_persistent_tma_matmul": True}):
        _equal(torch.compile(lambda a, b: a @ b, fullgraph=True)(a, b), a @ b)
    check_on_gpu(compiled)


def _score(score: Tensor, b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
    return torch.tanh(score / 5) * 5 - 0.1 * (h + 1) * (i - j)


def _window(b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
    return (i >= j) & (i - j < 100)


FLEX = ("plain", "functions", "groups of heads", "TMA", "one query")


@pytest.mark.parametrize("name", FLEX)
def test_flex_attention_and_its_gradients(name: str, templates: None, compiled: Any) -> None:
    """Forward and backward; one query is the decoding template, forward."""
    length = 256 if name == "TMA" else 200
    q, k, v = (torch.randn(2, 4, length, 32) for _ in range(3))
    options: dict[str, object] = {}
    if name == "functions":
        mask = flex.create_block_mask(_window, None, None, length, length, device=q.device)
        options = {"score_mod": _score, "block_mask": mask}
    elif name == "groups of heads":
        k, v, options = k[:, :2], v[:, :2], {"enable_gqa": True}
    elif name == "TMA":
        options = {"kernel_options": {"USE_TMA": True}}
    elif name == "one query":
        q = q[:, :, :1]

    def of(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        # On a CPU torch's forward writes the logarithms of the sums, which the backward pass
        # reads, only if the program wants them.
        return flex.flex_attention(q, k, v, return_aux=flex.AuxRequest(lse=True), **options)[0]

    inputs = [x.detach().requires_grad_(name != "one query") for x in (q, k, v)]
    found, wanted = torch.compile(of, fullgraph=True)(*inputs), of(*inputs)
    _equal(found, wanted)
    if name != "one query":
        grad = torch.randn_like(wanted)
        pairs = (torch.autograd.grad(out, inputs, grad) for out in (found, wanted))
        for one, expected in zip(*pairs, strict=True):
            _equal(one, expected)
    check_on_gpu(compiled)


class Layer(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(64, 48)

    def forward(self, x: Tensor) -> Tensor:
        return torch.softmax(torch.nn.functional.gelu(self.linear(x)) * 2, -1).cumsum(-1)


def test_launches_of_cuda_graphs() -> None:
    """Without a GPU torch leaves the graphs out."""
    layer = Layer()
    run = torch.compile(layer, mode="reduce-overhead", fullgraph=True)
    for _ in range(4):  # warm-up, the capture, replays
        x = torch.randn(33, 64)
        out = run(x)
        _equal(out.clone(), layer(x))
    x = torch.randn(33, 64)
    run(x).square().sum().backward()
    found = layer.linear.weight.grad.clone()
    layer.zero_grad()
    layer(x).square().sum().backward()
    _equal(found, layer.linear.weight.grad)


@pytest.fixture
def kept_for_torch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels lie where torch's static launcher looks for them."""
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv("PROTON_CACHE_DIR")


@needs_gpu
def test_launches_by_torchs_static_launcher(kept_for_torch: None) -> None:
    kind = "triton" if hasattr(config, "use_static_triton_launcher") else "cuda"
    layer, x = Layer(), torch.randn(33, 64)
    with config.patch({f"use_static_{kind}_launcher": True}):
        _equal(torch.compile(layer)(x), layer(x))
        torch._dynamo.reset()
        with config.patch({f"strict_static_{kind}_launcher": True}):
            _equal(torch.compile(layer)(x), layer(x))


@triton.jit
def doubled_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.load(x_ptr + at, mask=at < n) * 2, mask=at < n)


@triton.jit
def by_maps_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    x = tl.make_tensor_descriptor(x_ptr, [n, 64], [64, 1], [BLOCK, 64])
    out = tl.make_tensor_descriptor(out_ptr, [n, 64], [64, 1], [BLOCK, 64])
    out.store([tl.program_id(0) * BLOCK, 0], x.load([tl.program_id(0) * BLOCK, 0]))


def _launched_statically(kernel: Any, block: int) -> Any:
    """What torch launches a kernel for a GPU by, as it asks for it where it has compiled it."""
    types = {"x_ptr": "*fp16", "out_ptr": "*fp16", "n": "i32", "BLOCK": "constexpr"}
    aligned = {(number,): [["tt.divisibility", 16]] for number in range(3)}
    source = triton.compiler.ASTSource(kernel, types, {"BLOCK": block}, aligned)
    made = triton.compile(source, target=GPUTarget("cuda", 90, 32))
    meta, kind = {"device_type": "cuda", "device": 0}, triton_heuristics.HeuristicType.POINTWISE
    return triton_heuristics.StaticTritonCompileResult.can_statically_launch(made, {}, meta, kind)


def _types_in_a_worker(asked: dict[str, bool]) -> str | None:
    """Of what is compiled in one of torch's processes, which is told the options so."""
    with config.patch(asked):
        launcher = _launched_statically(doubled_kernel, 4096)
        return None if launcher is None else launcher.arg_tys


def test_processes_that_compile_are_told_whose_launcher_is_wanted(kept_for_torch: None) -> None:
    if not hasattr(triton_heuristics.StaticTritonCompileResult, "can_statically_launch"):
        pytest.skip("this torch has another one")
    forked = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(1, mp_context=forked) as pool:
        for wanted, types in ((config.use_static_cuda_launcher, None), (True, "OOi")):
            told = {"use_static_cuda_launcher": wanted}
            assert pool.submit(_types_in_a_worker, told).result() == types


def test_the_static_launcher_finds_kernels_where_the_program_asks_for_it(
    kept_for_torch: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By torch's own test of a kernel for a GPU, which needs none."""
    if not hasattr(triton_heuristics.StaticTritonCompileResult, "can_statically_launch"):
        pytest.skip("this torch has another one")
    block = iter(2**n for n in range(4, 12))

    def found(kernel: Any = doubled_kernel) -> Any:
        return _launched_statically(kernel, next(block))

    def check() -> None:
        assert found() is None
        with config.patch(use_static_cuda_launcher=False):
            assert found() is None
        with config.patch(use_static_cuda_launcher=True):
            kernel = found()
            assert kernel.arg_tys == "OOi"
            assert b"doubled_kernel\0" in Path(kernel.cubin_path).read_bytes()
            assert found(by_maps_kernel) is None  # takes tensor maps, which torch does not give
            with config.patch(strict_static_cuda_launcher=True):
                assert found(doubled_kernel) is not None
                # Torch has a folder for each graph, where it keeps none of them.
                monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "another"))
                assert _launched_statically(doubled_kernel, 64) is not None

    contextvars.Context().run(check)  # in which no option is set


def _packaged(tmp_path: Path, *, dynamic: bool) -> None:
    layer, x = Layer().eval(), torch.randn(33, 64)
    sizes = {"x": {0: torch.export.Dim("rows", min=2, max=500)}} if dynamic else None
    with torch.no_grad():
        program = torch.export.export(layer, (x,), dynamic_shapes=sizes)
        path = str(tmp_path / "layer.pt2")
        torch._inductor.aoti_compile_and_package(program, package_path=path)
        run = torch._inductor.aoti_load_package(path)
        for rows in (33, 100) if dynamic else (33,):
            x = torch.randn(rows, 64)
            _equal(run(x), layer(x))


@pytest.mark.skip(reason="torch 2.11 crashes when it loads the file, with Triton's code, too")
@pytest.mark.parametrize("dynamic", [False, True])
def test_files_of_aotinductor(tmp_path: Path, dynamic: bool) -> None:
    _packaged(tmp_path, dynamic=dynamic)


@needs_gpu
def test_the_wrapper_in_cpp() -> None:
    layer, x = Layer(), torch.randn(33, 64)
    with config.patch(cpp_wrapper=True):
        _equal(torch.compile(layer)(x), layer(x))


@needs_torch("2.13", "writes a CPU's kernel as Python into the file in C++")
@pytest.mark.skipif(ON_GPU, reason="of the CPU")
def test_aotinductor_is_refused_on_the_cpu(tmp_path: Path) -> None:
    with pytest.raises(Exception, match=r'config\.cpu_backend = "cpp"'):
        _packaged(tmp_path, dynamic=False)
