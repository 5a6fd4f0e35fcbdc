"""Kernels that torch's own tests launch (`torch.testing._internal.triton_utils`), in graphs."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
import triton
import triton.language as tl
from torch import Tensor
from torch._higher_order_ops import triton_kernel_wrap
from triton.tools.tensor_descriptor import TensorDescriptor

pytest.importorskip("expecttest", reason="torch's own kernels need expecttest")

from torch.testing._internal import triton_utils as theirs

Grids = Callable[[int], Any]
SIZES = "BLOCK_SIZE"
GRIDS: dict[str, Grids] = {
    "tuple": lambda n: (triton.cdiv(n, 16),),
    "three": lambda n: (triton.cdiv(n, 16), 1, 1),
    "lambda": lambda n: lambda meta: (triton.cdiv(n, meta[SIZES]),),
}


def _kernel(name: str) -> Any:
    if not hasattr(theirs, name):
        pytest.skip(f"this torch has no {name}")
    return getattr(theirs, name)


def _same(of: Callable[..., Any], *arguments: Any, **options: Any) -> None:
    """Compiled as written in Python, which launches by itself."""
    copies = [x.clone() if isinstance(x, Tensor) else x for x in arguments]
    found = torch.compile(of, fullgraph=True, **options)(*arguments)
    torch.testing.assert_close(found, of(*copies))


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("grid", GRIDS)
def test_grids(grid: str, dynamic: bool, backend: str) -> None:
    def added(x: Tensor, y: Tensor) -> Tensor:
        out = torch.zeros_like(x)
        theirs.add_kernel[GRIDS[grid](x.numel())](x, y, out, x.numel(), BLOCK_SIZE=16)
        return out + 1

    for n in (37, 64, 1):
        x, y = torch.rand(n), torch.rand(n)
        found = torch.compile(added, backend=backend, fullgraph=True, dynamic=dynamic)(x, y)
        torch.testing.assert_close(found, x + y + 1)


# name -> what the kernel gives for two arrays of 60 floats
PAIRS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "add_kernel_with_block_ptr": torch.add,
    "add_kernel_with_import": torch.add,
    "add_4_times_kernel": torch.add,
    "add_kernel_autotuned": torch.add,
    "sub_kernel_autotuned": torch.sub,
    "atomic_add_kernel": torch.add,
    "cond_op_kernel": lambda x, y: torch.cat([(x + y)[:16], (x * y)[16:]]),
}


@pytest.mark.parametrize("name", PAIRS)
def test_pairs(name: str) -> None:
    kernel = _kernel(name)
    sizes = {} if "autotuned" in name else {SIZES: 16}

    def launched(x: Tensor, y: Tensor) -> Tensor:
        out = torch.zeros_like(x)
        kernel[GRIDS["lambda"](x.numel())](x, y, out, x.numel(), **sizes)
        return out

    x, y = torch.rand(60), torch.rand(60)
    torch.testing.assert_close(torch.compile(launched, fullgraph=True)(x, y), PAIRS[name](x, y))


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("name", ["add_kernel_with_optional_param", "none_and_1"])
def test_arguments_that_are_none_or_1(name: str, dynamic: bool) -> None:
    is_first = name == "add_kernel_with_optional_param"
    kernel = _kernel(name if is_first else "add_kernel_with_none_param_and_equal_to_1_arg")

    def launched(x: Tensor, y: Tensor | None) -> Tensor:
        out, passed = torch.zeros_like(x), "one" if y is None else "two"
        strides = () if is_first else (x.stride(0),)
        kernel[(3,)](x, y, out, x.numel(), *strides, ARGS_PASSED=passed, BLOCK_SIZE=16)
        return out

    x, y = torch.rand(40), torch.rand(40)
    compiled = torch.compile(launched, fullgraph=True, dynamic=dynamic)
    torch.testing.assert_close(compiled(x, y), x + y)
    torch.testing.assert_close(compiled(x, None), x)


@pytest.mark.usefixtures("host_descriptors")
@pytest.mark.parametrize("dynamic", [False, True])
def test_descriptors(dynamic: bool) -> None:
    one, two = _kernel("add_kernel_with_tma_1d_new_api"), _kernel("add_kernel_with_tma_2d_new_api")
    on_device = _kernel("add_kernel_on_device_tma_new_api")

    def launched(a: Tensor, b: Tensor, m: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        sums, sums2, sums3 = torch.zeros_like(a), torch.zeros_like(m), torch.zeros_like(m)
        one[(triton.cdiv(a.size(0), 64),)](
            *[TensorDescriptor.from_tensor(x, [64]) for x in (a, b, sums)], BLOCK_SIZE=64
        )
        grid = triton.cdiv(m.size(0), 16), triton.cdiv(m.size(1), 32)
        blocks = [TensorDescriptor.from_tensor(x, [16, 32]) for x in (m, m, sums2)]
        two[grid](*blocks, BLOCK_SIZE_X=16, BLOCK_SIZE_Y=32)
        on_device[(3, 2)](m, m, sums3, m.size(0), m.size(1), None, BLOCK_SIZE=32)
        return sums, sums2, sums3

    _same(launched, torch.rand(300), torch.rand(300), torch.rand(72, 64), dynamic=dynamic)


@pytest.mark.parametrize("name", ["double_quotes", "single_quotes"])
def test_text_in_kernels(name: str) -> None:
    """torch writes the kernel's text into a text of its own."""
    ones, through = _kernel(f"kernel_with_docstring_{name}"), _kernel(f"kernel_inline_asm_{name}")

    def launched(x: Tensor) -> tuple[Tensor, Tensor]:
        one, out = torch.zeros_like(x), torch.zeros_like(x)
        ones[(4,)](one, x.numel(), BLOCK_SIZE=16)
        through[(4,)](x, out, x.numel(), BLOCK_SIZE=16)
        return one, out

    x = torch.rand(60)
    one, out = torch.compile(launched, fullgraph=True)(x)
    torch.testing.assert_close(one, torch.ones(60))
    torch.testing.assert_close(out, torch.exp2(torch.cos(x)), rtol=1e-5, atol=1e-5)


@triton.jit
def _pair(x, y):
    return y, x


@triton.jit
def swapped(a, b, out, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    target, source = _pair(a, out)
    tl.store(target + at, tl.load(source + at) + tl.load(b + at))


@triton.jit
def advanced(x, out, n, BLOCK: tl.constexpr):
    source = tl.make_block_ptr(x, (n,), (1,), (0,), (BLOCK,), (0,))
    for _ in range(n):
        out += 1
        tl.store(out, tl.sum(tl.load(source), 0))
        source = tl.advance(source, (BLOCK,))


@triton.jit
def chosen(a, b, out, flag, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    if tl.load(flag):
        a, b, out = a + 1, b + 1, out + 1
    tl.store(out + at, tl.load(a + at) + tl.load(b + at))


@triton.jit
def exchanged(a, b, c):
    tl.atomic_cas(a, 0, 1)
    tl.atomic_xchg(b, tl.load(c))


def _arguments(kernel: Any) -> dict[str, Any]:
    """Arrays for what is no number."""
    numbers = {"n": 4, "n_elements": 4, "BLOCK": 4, SIZES: 4, "m": 64}
    arrays = torch.int32 if kernel in (exchanged, _asm()) else torch.float32
    return {name: numbers.get(name, torch.zeros(4, dtype=arrays)) for name in kernel.arg_names}


def _asm() -> Any:
    return theirs.inline_asm_kernel_is_pure_false


@pytest.mark.parametrize(
    ("kernel", "written"),
    [
        (theirs.add_kernel, "out_ptr"),
        (theirs.add_kernel_out_of_order_fn2, "out_ptr"),
        (theirs.atomic_add_kernel, "out_ptr"),
        (theirs.mul2_inplace_kernel, "ptr"),
        (theirs.add_kernel_autotuned.fn, "out_ptr"),
        (theirs.inline_asm_kernel_is_pure_true, "Z"),
        (_asm(), "X Y Z"),  # it may write anywhere
        (swapped, "out"),
        (advanced, "out"),
        (chosen, "out"),
        (exchanged, "a b"),
    ],
    ids=lambda of: getattr(of, "__name__", ""),
)
def test_what_kernels_write(kernel: Any, written: str) -> None:
    identify = getattr(triton_kernel_wrap, "identify_accessed_tensors", None)
    if identify is None:
        pytest.skip("this torch does not ask what a kernel reads")
    found = identify(kernel, _arguments(kernel), {}).read_writes.writes
    assert sorted(dep.name for dep in found) == written.split()
