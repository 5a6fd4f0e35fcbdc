"""Launches of the kernels that benchmarks of profiling are about: pipelined, on tensor cores."""

import math
from collections.abc import Callable
from types import ModuleType
from typing import Any

import torch

import proton

Launch = Callable[[], Any]
PRODUCTS = ("pointers", "pointers_persistent", "descriptors", "descriptors_persistent")


def product(
    module: ModuleType, descriptor: Any, name: str, size: int, blocks: tuple[int, int] = (128, 256)
) -> Launch:
    """A launch of the product of fp16 matrices of `size` by a kernel of `scoped_kernels`, as Proton
    or Triton compiles it; `descriptor` is the class of tensor descriptors."""
    m, n, k = *blocks, 64
    a, b, c = (torch.randn(size, size, device="cuda").half() for _ in range(3))
    kernel = getattr(module, f"product_{name}")
    tiles = (size // m) * (size // n)
    sms = torch.cuda.get_device_properties(0).multi_processor_count
    grid = (min(tiles, sms) if name.endswith("persistent") else tiles,)
    options = {"BLOCK_M": m, "BLOCK_N": n, "BLOCK_K": k, "GROUP_M": 8}
    options |= {"num_warps": 8, "num_stages": 3}
    arguments: list[Any] = [a, b, c]
    if name.startswith("descriptors"):
        shapes = ((m, k), (k, n), (m, n))
        pairs = zip(arguments, shapes, strict=True)
        arguments = [descriptor.from_tensor(x, list(shape)) for x, shape in pairs]
    return lambda: kernel[grid](*arguments, size, size, size, **options)


def attention(kernel: Any, heads: int, length: int, **options: Any) -> Launch:
    """A launch of `attention_kernel` over fp16 heads of 128, not causal; `options` are its blocks,
    and those of the launch."""
    q, k, v, out = (torch.randn(1, heads, length, 128, device="cuda").half() for _ in range(4))
    lse = torch.empty(heads, length, device="cuda")
    grid = (proton.cdiv(length, options["BLOCK_M"]), heads)
    strides = [x.stride(axis) for x in (q, k, v, out) for axis in range(3)]
    numbers = (heads, length, 1 / math.sqrt(128))
    return lambda: kernel[grid](
        q, k, v, out, lse, *strides, *numbers, HEAD=128, CAUSAL=False, **options
    )
