"""Kernels of the program in compiled functions, each against the same in torch's own ops: what they
are given, where they are launched, and what they write."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
import torch._dynamo.config
import torch._dynamo.utils
import triton
import triton.language as tl
from torch import Tensor
from torch._higher_order_ops.while_loop import while_loop
from torch._inductor.utils import run_and_get_code
from torch.fx.experimental.proxy_tensor import make_fx
from torch.library import triton_op, wrap_triton
from torch.testing._internal.two_tensor import TwoTensor
from triton.tools.tensor_descriptor import TensorDescriptor

import proton
from proton.runtime.nvidia import fast_path
from proton.runtime.nvidia.arguments import OTHER, TORCH
from tests.torch_compile.conftest import needs_torch
from tests.torch_compile.kernels import (
    add,
    add_blocks,
    add_if_there,
    converted,
    counted,
    double,
    hooked,
    integers,
    pruned,
    rotated,
    seen,
    strided,
    summed,
    through_pointers,
    tuned_add,
    with_helpers,
)

N = 100


def _add(x: Tensor, y: Tensor, out: Tensor | None = None) -> Tensor:
    out, n = torch.empty_like(x) if out is None else out, x.numel()
    add[(triton.cdiv(n, 32),)](x, y, out, n, BLOCK=32)
    return out


def _double_(x: Tensor) -> Tensor:
    double[(triton.cdiv(x.numel(), 32),)](x, x.numel(), BLOCK=32)
    return x


def _to_blocks(meta: dict[str, int]) -> tuple[int]:
    return (triton.cdiv(N, meta["BLOCK"]),)


def _into(kernel: Any, *arguments: Any, like: Tensor, **options: Any) -> Tensor:
    out = torch.zeros_like(like)
    kernel[_to_blocks](*arguments[:1], out, *arguments[1:], **options)
    return out


class Row(NamedTuple):
    """A function, the same in torch's ops, and the arguments, which both may change."""

    of: Callable[..., Any]
    wanted: Callable[..., Any]
    args: tuple[Any, ...]


X, Y, WORDS = torch.randn(N), torch.randn(N), torch.randint(-(1 << 31), 1 << 31, (N,)).int()
GRID = torch.randn(32, 64)


def _views(x: Tensor, y: Tensor) -> Any:
    out = torch.zeros(2, N)
    _add(x, y, out[1])
    _double_(out.view(-1))
    return out, out.t().sum(0), out.view(4, 50)


def _wanted_views(x: Tensor, y: Tensor) -> Any:
    out = torch.stack([torch.zeros(N), 2 * (x + y)])
    return out, out.sum(1), out.view(4, 50)


def _inputs(x: Tensor, y: Tensor) -> Any:
    _double_(x[10:60])
    x.mul_(3)
    _add(x, y, y)
    return _double_(y.view(10, 10)), y + x


def _wanted_inputs(x: Tensor, y: Tensor) -> Any:
    x[10:60] *= 2
    x.mul_(3)
    y.add_(x).mul_(2)
    return y.view(10, 10), y + x


def _repeated(x: Tensor) -> Tensor:
    out = torch.zeros_like(x)
    for _ in range(3):
        out = _add(out, x)
    return _double_(out) if out.dim() == 1 else _add(out, out)


def _orders(x: Tensor, y: Tensor) -> Any:
    outs = [torch.empty_like(x) for _ in range(3)]
    add[(4,)](n=N, out=outs[0], BLOCK=32, b=y, a=x)
    add[(4, 1)](x, y, outs[1], BLOCK=32, n=N)
    add[(4, 1, 1)](x, y, outs[2], N, 32, num_warps=8, num_stages=2)
    return outs


def _none(x: Tensor, y: Tensor) -> Any:
    outs = torch.empty_like(x), torch.empty_like(x)
    add_if_there[(4,)](x, None, outs[0], N, BLOCK=32)
    add_if_there[(4,)](x, y, outs[1], N, BLOCK=32)
    return outs


def _strides(x: Tensor) -> Any:
    outs = [torch.zeros(30) for _ in range(3)]
    view = torch.as_strided(x, (30,), (3,), 7)
    for out, stride, by in zip(outs, (view.stride(0), 1, 2), (1.0, 2.5, -1.0), strict=True):
        strided[(1,)](view, out, stride, by, 30, BLOCK=32)
    return outs


def _integers(x: Tensor, wide: tuple[int, int]) -> Tensor:
    out = torch.zeros(48, dtype=torch.int64)
    integers[(1,)](out, wide[0], -5, 1, True, BLOCK=32)
    integers[(1,)](out[32:], wide[1], 16, 16, False, BLOCK=16)
    return out + x.long()[:1] * 0


def _wanted_integers(x: Tensor, wide: tuple[int, int]) -> Tensor:
    first = wide[0] - 5 * torch.arange(32) + 2
    return torch.cat([first, wide[1] + 16 * torch.arange(16) + 16])


def _pointers(x: Tensor, y: Tensor) -> Any:
    out = torch.zeros_like(x)
    through_pointers[(1,)](x, y, out, 30, True, BLOCK=32)
    through_pointers[(1,)](y, x, out, 30, False, BLOCK=32)
    return out, y + x


def _wanted_pointers(x: Tensor, y: Tensor) -> Any:
    y[:30] = x[2:32]
    out = torch.zeros_like(x)
    out[:30] = y[2:32]
    return out, y + x


def _with_helpers(x: Tensor) -> Tensor:
    return _into(with_helpers, x, N, like=x, BLOCK=32).sin()


def _wanted_with_helpers(x: Tensor) -> Tensor:
    found = (3 * x + x.tanh()).sin()
    x += 1
    return found


def _blocks(x: Tensor, y: Tensor) -> Tensor:
    out = torch.empty_like(x)
    pair = (TensorDescriptor.from_tensor(of, [16, 16]) for of in (x, out))
    of = dict(zip(("a", "out"), pair, strict=True))
    add_blocks[(2, 4)](b=y, m=32, n=64, M=16, N=16, **of)
    return out * 2


def _counted(x: Tensor) -> Tensor:
    copy = x * 1
    counted[_to_blocks](copy, N)
    counted[_to_blocks](x, N)
    return copy + x


def _summed(x: Tensor) -> Tensor:
    out = torch.zeros(1)
    summed[_to_blocks](x, out, N)
    return out * 2


def _views_of_dtypes(x: Tensor) -> Any:
    bits, halves = x.view(torch.int32), x.half().view(torch.bfloat16)
    return _add(bits, bits), _add(halves, halves)


def _cond(x: Tensor, y: Tensor) -> Tensor:
    return torch.cond(x.sum() > 0, _add, lambda x, y: _add(x, x), (x, y))


def _while(x: Tensor) -> Any:
    return while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, _add(x, x)), (torch.tensor(0), x))[1]


def _broken(x: Tensor, y: Tensor) -> Tensor:
    out = _add(x, y)
    torch._dynamo.graph_break()
    return _add(out, y)


ROWS = {
    "views that are written": Row(_views, _wanted_views, (X, Y)),
    "arguments that are written, and given back": Row(_inputs, _wanted_inputs, (X, Y)),
    "loops, one kernel for another": Row(_repeated, lambda x: 6 * x, (X,)),
    "arguments by name and by position": Row(_orders, lambda x, y: [x + y] * 3, (X, Y)),
    "no argument": Row(_none, lambda x, y: (x.clone(), x + y), (X, Y)),
    "strides, and numbers that are 1": Row(
        _strides, lambda x: [x[7:97:3], x[7:37] * 2.5, -x[7:67:2]], (X,)
    ),
    "fp16": Row(
        lambda x: _into(converted, x, N, tl.float16, like=x, BLOCK=32), lambda x: x.half().float(),
        (X,),
    ),
    "int8": Row(
        lambda x: _into(converted, x, N, DTYPE=tl.int8, like=x, BLOCK=32),
        lambda x: x.to(torch.int8).float(), (X,),
    ),
    "helpers, globals, names of imports": Row(_with_helpers, _wanted_with_helpers, (X,)),
    "assembly": Row(
        lambda x: _into(rotated, x, N, like=x, BLOCK=32), lambda x: (x << 8) | ((x >> 24) & 255),
        (WORDS,),
    ),
    "integers, also of one bit": Row(
        lambda x: _integers(x, (3, 7)),
        lambda x: _wanted_integers(x, (3, 7)), (X,),
    ),
    "integers of 64 bits": Row(
        lambda x: _integers(x, (2**40 + 3, 2**31)),
        lambda x: _wanted_integers(x, (2**40 + 3, 2**31)), (X,),
    ),
    "pointers that loops and branches choose": Row(_pointers, _wanted_pointers, (X, Y)),
    "descriptors of both kinds": Row(_blocks, lambda x, y: (x + y) * 2, (GRID, GRID + 1)),
    "reset_to_zero": Row(_summed, lambda x: x.sum()[None] * 2, (X,)),
    "restore_value": Row(_counted, lambda x: 2 * x.add_(1), (X,)),
    "views of other dtypes": Row(
        _views_of_dtypes,
        lambda x: (x.view(torch.int32) * 2, x.half().view(torch.bfloat16) * 2), (X,),
    ),
    "a condition": Row(_cond, lambda x, y: x + y if x.sum() > 0 else 2 * x, (X, Y)),
    "the other side of it": Row(_cond, lambda x, y: x + y if x.sum() > 0 else 2 * x, (-X, Y)),
    "a loop of the run time": Row(_while, lambda x: 8 * x, (X,)),
    "bfloat16": Row(_add, lambda x, y: x + y, (X.bfloat16(), Y.bfloat16())),
    "double": Row(_add, lambda x, y: x + y, (X.double(), Y.double())),
    "uint8 wraps": Row(_add, lambda x, y: x + y, (WORDS.to(torch.uint8), WORDS.to(torch.uint8))),
}  # fmt: skip


LARGE_INTEGERS = needs_torch("2.12", "finds no type for an integer from 2**31 on")
MARKS = {"integers of 64 bits": LARGE_INTEGERS}


@pytest.mark.parametrize("name", [pytest.param(row, marks=MARKS.get(row, ())) for row in ROWS])
def test_a_kernel_of_the_program_in_a_graph(name: str, request: pytest.FixtureRequest) -> None:
    row = ROWS[name]
    if row.of == _blocks:
        request.getfixturevalue("host_descriptors")
    given, wanted = ([x.clone() for x in row.args] for _ in range(2))
    found = torch.compile(row.of, fullgraph=True)(*given)
    torch.testing.assert_close(found, row.wanted(*wanted))
    torch.testing.assert_close(given, wanted)


def test_two_graphs_and_no_gradients() -> None:
    torch.testing.assert_close(torch.compile(_broken)(X, Y), X + 2 * Y)
    with torch.inference_mode():
        torch.testing.assert_close(torch.compile(_add, fullgraph=True)(X, Y), X + Y)
    call = lambda kernel, x: _into(kernel, x, N, like=x, BLOCK=32)  # noqa: E731
    torch.testing.assert_close(
        torch.compile(call, fullgraph=True)(rotated, WORDS), call(rotated, WORDS)
    )


def test_options_of_launches_and_configurations_that_are_left(compiled: Any) -> None:
    seen.clear()
    found = torch.compile(_orders, fullgraph=True)(X, Y)
    torch.testing.assert_close(found, [X + Y] * 3)
    assert [o["num_warps"] for source, o in compiled if source.name.startswith("add")] == [4, 8]
    out = torch.zeros(N)

    def of(x: Tensor) -> Tensor:
        pruned[_to_blocks](x, out, N)
        return out * 1

    torch.testing.assert_close(torch.compile(of, fullgraph=True)(X), X + 32)
    assert seen[0].startswith("2 ['n', 'out', 'x'")


def test_what_torch_refuses_is_an_error() -> None:
    def with_hook(x: Tensor) -> Tensor:
        return _into(hooked, x, N, like=x)

    def with_list(x: Tensor) -> Tensor:
        add[[4]](x, x, x, N, BLOCK=32)
        return x

    for of, said in ((with_hook, "pre_hook"), (with_list, "Only tuple grids")):
        with pytest.raises(Exception, match=said):
            torch.compile(of, fullgraph=True)(X.clone())


def test_a_written_result_is_not_copied() -> None:
    found, (code,) = run_and_get_code(
        torch.compile(lambda x, y: _double_(_add(x, y)), fullgraph=True), X, Y
    )
    torch.testing.assert_close(found, 2 * (X + Y))
    assert code.count(".run(") == 2


@pytest.mark.parametrize("dynamic", [True, None])
def test_sizes_that_change_and_none(dynamic: bool | None) -> None:
    compiled = torch.compile(lambda x, y: _add(x, y) + 1, fullgraph=True, dynamic=dynamic)
    for n in (100, 64, 0, 1, 37):
        torch.testing.assert_close(compiled(X[:n], Y[:n]), X[:n] + Y[:n] + 1)


@torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True, capture_scalar_outputs=True)
def test_sizes_that_data_says() -> None:
    def of(x: Tensor, count: Tensor) -> Any:
        places, n = x.nonzero().squeeze(-1), count.item()
        out = torch.zeros_like(x)
        add[(triton.cdiv(n, 32),)](x, x, out, n, BLOCK=32)
        return _add(places, places), out

    found = torch.compile(of, fullgraph=True)(X, torch.tensor(70))
    wanted = torch.cat([2 * X[:70], torch.zeros(30)])
    torch.testing.assert_close(found, (2 * X.nonzero().squeeze(-1), wanted))


class _Sum(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, y: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return _add(x, y)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor]:
        return _add(grad, grad), _add(grad, *ctx.saved_tensors)


def test_gradients_by_kernels() -> None:
    x, y = X.clone().requires_grad_(), Y.clone().requires_grad_()
    torch.compile(lambda x, y: _Sum.apply(x, y.sin()).square().sum(), fullgraph=True)(
        x, y
    ).backward()
    grad = 2 * (X + Y.sin())
    torch.testing.assert_close(x.grad, 2 * grad)
    torch.testing.assert_close(y.grad, (grad + X) * Y.cos())


@triton_op("proton_kernels::add", mutates_args={})
def add_op(x: Tensor, y: Tensor) -> Tensor:
    out, n = torch.empty_like(x), x.shape[0]
    wrap_triton(add)[(triton.cdiv(n, 32),)](x, y, out, n, BLOCK=32)
    return out


@triton_op("proton_kernels::double_", mutates_args={"x"})
def double_op(x: Tensor) -> None:
    wrap_triton(double)[(triton.cdiv(x.numel(), 32),)](x, x.numel(), BLOCK=32)


@torch.library.custom_op("proton_kernels::custom", mutates_args=())
def custom_op(x: Tensor, y: Tensor) -> Tensor:
    return _add(x, y)


custom_op.register_fake(lambda x, y: torch.empty_like(x))


def test_operators_of_kernels() -> None:
    def of(x: Tensor, y: Tensor) -> Tensor:
        out = add_op(x, custom_op(x, y))
        double_op(out)
        double_op(y)
        return out.cos()

    y = Y.clone()
    found = torch.compile(of, fullgraph=True)(X, y)
    torch.testing.assert_close(found, (2 * (2 * X + Y)).cos())
    torch.testing.assert_close(y, 2 * Y)
    torch.library.opcheck(add_op, (X, Y))
    torch.library.opcheck(double_op, (X.clone(),))
    both = add_op(TwoTensor(X, Y), TwoTensor(X, Y))
    torch.testing.assert_close((both.a, both.b), (2 * X, 2 * Y))


class _Module(torch.nn.Module):
    def __init__(self, of: Callable[..., Tensor]) -> None:
        super().__init__()
        self.of = of

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return self.of(x, y) * 2


def _tuned_add(x: Tensor, y: Tensor) -> Tensor:
    out, n = torch.empty_like(x), x.numel()
    tuned_add[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](x, y, out, n)
    return out


def _exported(of: Callable[..., Tensor], strict: bool) -> Any:
    size = {0: torch.export.Dim("n", min=2, max=4096)}
    sizes = {"x": size, "y": size}
    return torch.export.export(_Module(of), (X, Y), dynamic_shapes=sizes, strict=strict).module()


@pytest.mark.parametrize("of, strict", [(_add, True), (_tuned_add, True), (add_op, False)])
def test_exported_programs(of: Callable[..., Tensor], strict: bool) -> None:
    run = _exported(of, strict)
    for n in (100, 37):
        for each in (run, torch.compile(run)):
            torch.testing.assert_close(each(X[:n], Y[:n]), 2 * (X[:n] + Y[:n]))


@pytest.mark.parametrize("generated", [False, True])
def test_dynamo_leaves_launches_as_they_are(generated: bool, tmp_path: Path) -> None:
    """And the compiler, which a launch calls. On a GPU launches are generated; such a launch hands
    tensors of the CPU over to the slow path, which needs no GPU."""

    @triton.jit
    def kernel(a, b, out, n, BLOCK: tl.constexpr):
        at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        sums = tl.load(a + at, mask=at < n) + tl.load(b + at, mask=at < n)
        tl.store(out + at, sums, mask=at < n)

    def of(x: Tensor, y: Tensor) -> Tensor:
        out = torch.empty_like(x)
        tuned[(4,)](x, y, out, x.numel())
        return out

    tuned = triton.autotune([triton.Config({"BLOCK": 32})], key=[])(kernel)
    run = _exported(of, True)
    if generated:
        kernel.fast_path = fast_path.generated(kernel, {}, (*[TORCH] * 3, OTHER, OTHER))[1]
    torch._dynamo.utils.clear_compilation_metrics()
    with proton.knobs.cache.scope():
        proton.knobs.cache.dir = str(tmp_path)  # so that there is something to compile
        for n in (100, 37):
            found = torch.compile(run)(X[:n], Y[:n])
            torch.testing.assert_close(found, 2 * (X[:n] + Y[:n]))
    seen = {each.co_filename for each in torch._dynamo.utils.get_compilation_metrics()}
    assert seen
    assert not [file for file in seen if str(Path(proton.__file__).parent) in file]


def test_graphs_of_fx() -> None:
    def of(x: Tensor, y: Tensor) -> Tensor:
        out = torch.zeros_like(x)
        wrap_triton(add)[(4,)](x, y, out, N, BLOCK=32)
        return out

    for traced, name in ((of, "mutation"), (torch.func.functionalize(of), "functional")):
        graph = make_fx(traced)(X, Y)
        assert f"triton_kernel_wrapper_{name}" in graph.code
        torch.testing.assert_close(graph(X, Y), X + Y)
