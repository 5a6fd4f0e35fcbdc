"""Arrays of numpy and of torch: what wrappers of kernels ask of them, and allocate like them."""

import math
from typing import Any

import numpy as np

import proton

Array = Any  # of numpy, or of torch on the CPU or a GPU
SMS = 132  # multiprocessors of an H100 or H200; numbers of programs are multiples of it


def on_gpu(array: Array) -> bool:
    """Whether kernels that take the array run on a GPU."""
    return not isinstance(array, np.ndarray) and array.is_cuda


def has_tma(array: Array) -> bool:
    """Whether the array is on a GPU that has the tensor memory accelerator."""
    if isinstance(array, np.ndarray) or not array.is_cuda:
        return False
    import torch

    return torch.cuda.get_device_capability(array.device) >= (9, 0)


def size(array: Array) -> int:
    """The number of elements."""
    return math.prod(array.shape)


def stride(array: Array, axis: int) -> int:
    """From one element to the next along an axis, in elements."""
    if isinstance(array, np.ndarray):
        return array.strides[axis] // array.itemsize
    return array.stride(axis)


def product_sizes(a: Array, b: Array) -> tuple[int, int, int]:
    """(M, N, K) of a @ b."""
    (m, k), (rows, n) = a.shape, b.shape
    if k != rows:
        raise ValueError(f"a @ b: a has {k} columns, and b has {rows} rows")
    return m, n, k


def empty(like: Array, shape: tuple[int, ...], dtype: str | None = None) -> Array:
    """An array of another one's kind and device, and of its dtype unless one is named."""
    if isinstance(like, np.ndarray):
        return np.empty(shape, dtype or like.dtype)
    import torch

    return like.new_empty(shape, dtype=getattr(torch, dtype) if dtype else None)


def empty_like(array: Array) -> Array:
    """An array of another one's kind, device, shape and dtype."""
    if isinstance(array, np.ndarray):
        return np.empty_like(array)
    import torch

    return torch.empty_like(array)


def like(array: Array, values: np.ndarray) -> Array:
    """numpy's values in an array of another one's kind and device."""
    if isinstance(array, np.ndarray):
        return values
    import torch

    return torch.from_numpy(values).to(array.device)


def address(array: Array) -> int:
    """Where the first element lies."""
    return array.ctypes.data if isinstance(array, np.ndarray) else array.data_ptr()


def dtype_name(array: Array) -> str:
    """The dtype's name, which the tile language shares with numpy and torch."""
    return str(array.dtype).removeprefix("torch.")


def to_numpy(array: Array) -> np.ndarray:
    """The array, or a copy of it on the CPU."""
    return array if isinstance(array, np.ndarray) else array.cpu().numpy()


def warps_of_row(columns: int) -> int:
    """Warps of a program on a GPU that has a row in its registers: 16 elements per thread."""
    return min(max(4, proton.next_power_of_2(columns) // 512), 32)
