"""Kernels in functions that torch.compile compiles, as docs/torch.md says."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import proton
import proton.language as tl

torch = pytest.importorskip("torch")


@proton.jit
def scale_kernel(x_ptr, out_ptr, n, factor, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.load(x_ptr + at, mask=at < n) * factor, mask=at < n)


def launch(x, factor):
    out = torch.empty_like(x)
    scale_kernel[(proton.cdiv(x.numel(), 128),)](x, out, x.numel(), factor, BLOCK=128)
    return out


@pytest.fixture(scope="module")
def scale():
    """The launch as an operator of torch."""
    operator = torch.library.custom_op(
        "proton_tests::scale", launch, mutates_args=(), schema=SCHEMA
    )
    operator.register_fake(lambda x, factor: torch.empty_like(x))
    operator.register_autograd(
        lambda ctx, grad: (operator(grad, ctx.factor), None),
        setup_context=lambda ctx, inputs, output: setattr(ctx, "factor", inputs[1]),
    )
    return operator


SCHEMA = "(Tensor x, float factor) -> Tensor"


def test_an_operator_around_a_kernel_is_compiled_without_a_break(scale) -> None:
    x = torch.randn(1000, requires_grad=True)
    compiled = torch.compile(
        lambda x: torch.sin(scale(x, 3.0)) + 1, fullgraph=True, backend="aot_eager"
    )
    out = compiled(x)
    out.sum().backward()
    torch.testing.assert_close(out, torch.sin(3 * x) + 1)
    torch.testing.assert_close(x.grad, 3 * torch.cos(3 * x.detach()))
    torch.library.opcheck(scale, (torch.randn(10), 2.0))


def test_the_operator_of_the_page_is_right_for_any_gradient() -> None:
    """Of a sum the gradient is one number, expanded."""
    page = (Path(__file__).parents[2] / "docs/torch.md").read_text()
    (block,) = re.findall(r"```python\n(@torch\.library\.custom_op.*?)```", page, re.DOTALL)
    found = {"torch": torch, "proton": proton, "scale_kernel": scale_kernel}
    exec(block, found)
    x = torch.randn(7, 40, requires_grad=True)
    found["scale"](x.T[::2], 3.0).sum().backward()
    expected = torch.zeros(7, 40)
    expected[:, ::2] = 3.0
    torch.testing.assert_close(x.grad, expected)
    torch.library.opcheck(found["scale"], (torch.randn(10, requires_grad=True), 2.0))


def test_a_launch_that_is_disabled_breaks_the_graph_and_works() -> None:
    disabled = torch.compiler.disable(launch)
    compiled = torch.compile(lambda x: disabled(x + 1, 2.0) + 1, backend="aot_eager")
    x = torch.randn(300)
    torch.testing.assert_close(compiled(x), 2 * (x + 1) + 1)


UNDER_THE_NAME = """
import proton
proton.install_as_triton()
import torch
from torch.utils._triton import has_triton
assert has_triton()  # on the CPU, too
compiled = torch.compile(lambda x: (x * 2).sin(), fullgraph=True, backend="aot_eager")
x = torch.randn(7)
torch.testing.assert_close(compiled(x), (x * 2).sin())
"""


def test_torch_compiles_other_functions_where_proton_stands_for_triton() -> None:
    """torch asks which plug-ins there are, to know whether to make kernels for the CPU."""
    done = subprocess.run([sys.executable, "-c", UNDER_THE_NAME], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


TRITON_OP = """
import proton
proton.install_as_triton()
import torch
import triton
import triton.language as tl

@triton.autotune([triton.Config({"BLOCK": 32}), triton.Config({"BLOCK": 64})], key=["n"])
@triton.jit
def double_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, 2 * tl.load(x_ptr + at, mask=at < n), mask=at < n)

@torch.library.triton_op("proton_tests::double", mutates_args={})
def double(x: torch.Tensor) -> torch.Tensor:
    out, n = torch.empty_like(x), x.numel()
    grid = lambda meta: (triton.cdiv(n, meta["BLOCK"]),)
    torch.library.wrap_triton(double_kernel)[grid](x, out, n)
    return out

double.register_autograd(lambda ctx, grad: double(grad.contiguous()))
x = torch.randn(100, requires_grad=True)
out = double(x)
out.sin().sum().backward()
torch.testing.assert_close(out, 2 * x)
torch.testing.assert_close(x.grad, 2 * torch.cos(2 * x.detach()))
print("right")
"""


def test_a_triton_op_runs_where_torch_runs_op_by_op(tmp_path) -> None:
    program = tmp_path / "program.py"
    program.write_text(TRITON_OP)
    done = subprocess.run([sys.executable, program], capture_output=True, text=True)
    assert done.stdout == "right\n", done.stderr
