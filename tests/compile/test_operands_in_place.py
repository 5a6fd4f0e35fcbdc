"""Operands that are computed from copied blocks are computed where they are multiplied
(transforms/layout/hoist_operand_conversions.py): which are, by the ttgir, and that they are right,
on the machine of tests/compile/ptx."""

import re
from typing import Any

import numpy as np
import pytest

import proton
import proton.language as tl
from tests.compile.ptx.emulation import Emulation
from tests.compile.test_gpu_records import compiled

M, N, D = 32, 16, 64


@proton.jit
def decayed(x_ptr, g_ptr, y_ptr, o_ptr, K, M: tl.constexpr, N: tl.constexpr, D: tl.constexpr):
    """Decays by special functions, of a block and of a row of it, both transposed."""
    m, n, d = tl.arange(0, M), tl.arange(0, N), tl.arange(0, D)
    acc = tl.zeros((M, N), tl.float32)
    for k in range(0, K, D):
        x = tl.load(x_ptr + m[:, None] + (k + d)[None, :] * M)
        g = tl.load(g_ptr + m[:, None] + (k + d)[None, :] * M)
        last = tl.load(g_ptr + (k + D - 1) * M + m)
        y = tl.load(y_ptr + (k + d)[:, None] * N + n[None, :])
        acc = tl.dot(x * tl.exp2(last[:, None] - g), y, acc)
    tl.store(o_ptr + m[:, None] * N + n[None, :], acc)


@proton.jit
def widened(x_ptr, g_ptr, y_ptr, o_ptr, K, M: tl.constexpr, N: tl.constexpr, D: tl.constexpr):
    """Bytes that become halves."""
    m, n, d = tl.arange(0, M), tl.arange(0, N), tl.arange(0, D)
    acc = tl.zeros((M, N), tl.float32)
    for k in range(0, K, D):
        x = tl.load(x_ptr + m[:, None] * K + (k + d)[None, :])
        y = tl.load(y_ptr + (k + d)[:, None] * N + n[None, :])
        acc = tl.dot(x.to(tl.float16), y, acc)
    tl.store(o_ptr + m[:, None] * N + n[None, :], acc)


@proton.jit
def gated(x_ptr, g_ptr, y_ptr, o_ptr, K, M: tl.constexpr, N: tl.constexpr, D: tl.constexpr):
    """Two blocks of rows, masked, combined by multiplication and a maximum."""
    m, n, d = tl.arange(0, M), tl.arange(0, N), tl.arange(0, D)
    acc = tl.zeros((M, N), tl.float32)
    for k in range(0, K, D):
        inside = (k + d < K - 8)[None, :]
        x = tl.load(x_ptr + m[:, None] * K + (k + d)[None, :], mask=inside, other=0)
        g = tl.load(g_ptr + m[:, None] * K + (k + d)[None, :], mask=inside, other=0)
        y = tl.load(y_ptr + (k + d)[:, None] * N + n[None, :])
        acc = tl.dot(x * tl.maximum(g, 0), y, acc)
    tl.store(o_ptr + m[:, None] * N + n[None, :], acc)


@proton.jit
def of_a_dot(x_ptr, g_ptr, y_ptr, o_ptr, K, M: tl.constexpr, N: tl.constexpr, D: tl.constexpr):
    """What is computed from an accumulator lies where that does: of a row a number."""
    m, n, d = tl.arange(0, M), tl.arange(0, N), tl.arange(0, D)
    acc = tl.zeros((M, N), tl.float32)
    for k in range(0, K, D):
        x = tl.load(x_ptr + m[:, None] * K + (k + d)[None, :])
        y = tl.load(y_ptr + (k + d)[:, None] * N + n[None, :])
        acc = tl.dot(x + tl.sum(acc, axis=1)[:, None].to(tl.float16), y, acc)
    tl.store(o_ptr + m[:, None] * N + n[None, :], acc)


@proton.jit
def filled(x_ptr, g_ptr, y_ptr, o_ptr, K, M: tl.constexpr, N: tl.constexpr, D: tl.constexpr):
    """A copy leaves zeros where the mask is false, so that others are chosen in registers."""
    m, n, d = tl.arange(0, M), tl.arange(0, N), tl.arange(0, D)
    acc = tl.zeros((M, N), tl.float32)
    for k in range(0, K, D):
        inside = (k + d < K - 8)[None, :]
        x = tl.load(x_ptr + m[:, None] * K + (k + d)[None, :], mask=inside, other=2)
        y = tl.load(y_ptr + (k + d)[:, None] * N + n[None, :])
        acc = tl.dot(x * x, y, acc)
    tl.store(o_ptr + m[:, None] * N + n[None, :], acc)


@proton.jit
def paired(x_ptr, g_ptr, y_ptr, o_ptr, K, M: tl.constexpr, N: tl.constexpr, D: tl.constexpr):
    """A byte has numbers of both halves of a block, which assembly takes apart two bytes at a
    time; rows have scales."""
    m, n, d, half = tl.arange(0, M), tl.arange(0, N), tl.arange(0, D), tl.arange(0, D // 2)
    acc = tl.zeros((M, N), tl.float32)
    for k in range(0, K, D):
        x = tl.load(x_ptr + m[:, None] * K + k // 2 + half[None, :])
        scale = tl.load(g_ptr + m * K + k)
        y = tl.load(y_ptr + (k + d)[:, None] * N + n[None, :])
        low, high = tl.inline_asm_elementwise(
            "{ and.b32 $0, $2, 0x0f0f0f0f; shr.u32 $1, $2, 4; and.b32 $1, $1, 0x0f0f0f0f; }",
            "=r,=r,r",
            [x],
            dtype=(tl.int8, tl.int8),
            is_pure=True,
            pack=2,
        )
        both = tl.reshape(tl.permute(tl.join(low, high), (0, 2, 1)), (M, D))
        acc = tl.dot(both.to(tl.float16) * scale[:, None], y, acc)
    tl.store(o_ptr + m[:, None] * N + n[None, :], acc)


def operands(kernel: Any, rng: np.random.Generator, length: int) -> list[np.ndarray]:
    """x, g and y of a kernel."""
    kind = np.float32 if kernel is decayed else np.float16
    shape = (length, M) if kernel is decayed else (M, length)
    x = rng.standard_normal(shape, np.float32).astype(kind)
    if kernel in (widened, paired):
        x = rng.integers(-128, 128, shape, np.int8)
    g = rng.standard_normal(shape, np.float32).astype(kind)
    return [x, g, rng.standard_normal((length, N), np.float32).astype(kind)]


def expected(kernel: Any, x: np.ndarray, g: np.ndarray, y: np.ndarray) -> np.ndarray:
    length = len(y)
    if kernel is paired:
        scale = g[:, ::D].astype(np.float64)
        bytes_ = x.view(np.uint8)[:, : length // 2].reshape(M, -1, D // 2)
        numbers = np.concatenate([bytes_ & 15, bytes_ >> 4], 2) * scale[:, :, None]
        return numbers.reshape(M, length).astype(np.float16).astype(np.float64) @ y
    x, g, y = (v.astype(np.float64) for v in (x, g, y))
    if kernel is decayed:
        last = np.repeat(g[D - 1 :: D], D, axis=0)
        return (x * np.exp2(last - g)).T @ y
    if kernel is widened:
        return x @ y
    if kernel is of_a_dot:
        acc = np.zeros((M, N))
        for k in range(0, length, D):
            sums = acc.sum(1, keepdims=True).astype(np.float16).astype(np.float64)
            left = (x[:, k : k + D] + sums).astype(np.float16).astype(np.float64)
            acc = left @ y[k : k + D] + acc
        return acc
    inside = np.arange(length) < length - 8
    x = np.where(inside, x, 2 if kernel is filled else 0)
    left = x * x if kernel is filled else x * np.maximum(np.where(inside, g, 0), 0)
    return left.astype(np.float16).astype(np.float64) @ y


def exchanged(ttgir: str) -> int:
    """How many operands of dots threads of the loop exchange with each other."""
    (loop,) = re.findall(r"scf\.for.*?scf\.yield", ttgir, re.DOTALL)
    moved = set(re.findall(r'(%\S+) = "ttg\.convert_layout"', loop))
    found = [
        re.findall(r"%\w+", text)[:2] for text in re.findall(r'"ttng\.mma_sync"\((.*?)\)', loop)
    ]
    assert found, "tensor cores multiply it"
    return sum(operand in moved for pair in found for operand in pair)


# kernel, warps, and operands that are exchanged
CASES = [
    (decayed, 1, 0),
    (widened, 1, 0),
    (gated, 1, 0),
    (gated, 4, 0),  # two warps compute the same: less than an exchange
    (decayed, 4, 1),  # exponentials twice: more
    (of_a_dot, 1, 0),  # a number for each row is exchanged, no operand
    (filled, 1, 1),
    (paired, 1, 0),
    (paired, 4, 1),
]


@pytest.mark.usefixtures("no_assembler")
@pytest.mark.parametrize(("kernel", "warps", "count"), CASES, ids=str)
def test_operands_are_computed_in_place(
    kernel: Any, warps: int, count: int, rng: np.random.Generator
) -> None:
    length = D * int(rng.integers(2, 5))
    x, g, y = operands(kernel, rng, length)
    out = np.zeros((M, N), np.float32)
    arguments = (x, g, y, out, length, M, N, D)
    with Emulation(warps, rng).installed():
        kernel[1](*arguments, num_warps=warps)
    want = expected(kernel, x, g, y)
    np.testing.assert_allclose(out, want, rtol=2e-2, atol=2e-2 * np.abs(want).max())
    assert exchanged(compiled(kernel, *arguments, num_warps=warps).asm["ttgir"]) == count
