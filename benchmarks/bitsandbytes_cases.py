"""bitsandbytes' Triton kernels: numbers in blocks of 8 and 4 bits, and optimizers.

The package's `__init__` wants its CUDA library; the kernels do not.
"""

from typing import Any

import torch
from libraries import bare
from library_case import Size, calls_in

bare("bitsandbytes", "bitsandbytes.backends", "bitsandbytes.backends.triton")

from bitsandbytes.backends.triton import (  # noqa: E402
    kernels_4bit,
    kernels_8bit_quant,
    kernels_optim,
)

CASES: dict[str, Any] = {}
case = calls_in(CASES)
BOTH = (torch.float32, torch.bfloat16)
NUMBERS = Size(3000, 1 << 25, 1 << 20)  # weights of a layer of 4096 x 8192
QUANTISED, BLOCK = 256, 64  # numbers that have a scale
NF4 = (
    *(-1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635),
    *(-0.18477343022823334, -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725),
    *(0.24611230194568634, 0.33791524171829224, 0.44070982933044434, 0.5626170039176941),
    *(0.7229568362236023, 1.0),
)
FP4 = (0.0, 0.0052083333, 2 / 3, 1.0, 1 / 3, 0.5, 1 / 6, 0.25)
TABLES = {"nf4": NF4, "fp4": FP4 + tuple(-x for x in FP4)}


def code() -> torch.Tensor:
    """256 numbers in order, dense about 0, as those of the library are."""
    positive = torch.logspace(-5, 0, 128, base=2.0) ** 3
    return torch.cat((-positive.flip(0)[:127], torch.zeros(1), positive))


def scales(x: torch.Tensor, block: int) -> torch.Tensor:
    """The largest number of each block."""
    blocks = torch.nn.functional.pad(x.float().flatten(), (0, -x.numel() % block))
    return blocks.view(-1, block).abs().amax(1)


def nearest(x: torch.Tensor, table: torch.Tensor, block: int) -> torch.Tensor:
    """Numbers rounded to those of a table times the scale of their block."""
    scale = scales(x, block).repeat_interleave(block)[: x.numel()]
    order = table.sort().values
    between = (order[1:] + order[:-1]) / 2
    return order[torch.bucketize(x.float() / scale, between)] * scale


@case(NUMBERS, dtypes=BOTH)
def quantize_8bit(dtype, n):
    x, table = torch.randn(n, dtype=dtype), code()

    def op():
        codes, absmax = kernels_8bit_quant.quantize_blockwise_triton(x, table, QUANTISED)
        return table[codes.long()] * absmax.float().repeat_interleave(QUANTISED)[:n]

    return op, lambda: nearest(x, table, QUANTISED)


@case(NUMBERS, dtypes=BOTH)
def dequantize_8bit(dtype, n):
    codes, table = torch.randint(0, 256, (n,), dtype=torch.uint8), code()
    absmax = torch.rand(-(-n // QUANTISED))
    return (
        lambda: kernels_8bit_quant.dequant_8bit_blockwise(codes, absmax, table, QUANTISED, dtype),
        lambda: table[codes.long()] * absmax.repeat_interleave(QUANTISED)[:n],
    )


def packed(n):
    """Codes of 4 bits, their bytes, and the scales."""
    codes = torch.randint(0, 16, (n,), dtype=torch.uint8)
    return codes, (codes[::2] << 4) | codes[1::2], torch.rand(-(-n // BLOCK))


def _quantize_4bit(kind, dtype, n):
    x, table = torch.randn(n, dtype=dtype), torch.tensor(TABLES[kind])
    blocks = -(n // -(2 * BLOCK))

    def op():
        absmax = torch.empty(2 * blocks, dtype=dtype)
        out = torch.empty(n - n // 2, 1, dtype=torch.uint8)
        kernels_4bit.quantize_4bit_blockwise_triton(x, BLOCK, kind, blocks, absmax, n, out)
        codes = torch.stack((out >> 4, out & 15), -1).flatten()[:n].long()
        return table[codes] * absmax.float().repeat_interleave(BLOCK)[:n]

    return op, lambda: nearest(x, table, BLOCK)


@case(NUMBERS, dtypes=BOTH)
def quantize_nf4(dtype, n):
    return _quantize_4bit("nf4", dtype, n)


@case(NUMBERS, dtypes=BOTH)
def quantize_fp4(dtype, n):
    return _quantize_4bit("fp4", dtype, n)


def _dequantize_4bit(kind, dtype, n):
    codes, given, absmax = packed(n)
    table = torch.tensor(TABLES[kind])

    def op():
        out = torch.empty(n, dtype=dtype)
        kernels_4bit.dequantize_4bit_impl(given, absmax, BLOCK, kind, dtype, out)
        return out

    return op, lambda: table[codes.long()] * absmax.repeat_interleave(BLOCK)[:n]


@case(NUMBERS, dtypes=BOTH)
def dequantize_nf4(dtype, n):
    return _dequantize_4bit("nf4", dtype, n)


@case(NUMBERS, dtypes=BOTH)
def dequantize_fp4(dtype, n):
    return _dequantize_4bit("fp4", dtype, n)


@case(NUMBERS)
def dequantize_4bit_by_table(dtype, n):
    codes, given, absmax = packed(n)
    table = torch.tensor(NF4)

    def op():
        out = torch.empty(n, dtype=dtype)
        kernels_4bit.dequantize_4bit_impl_passing_code(given, absmax, BLOCK, table, dtype, out)
        return out

    return op, lambda: table[codes.long()] * absmax.repeat_interleave(BLOCK)[:n]


# Optimizers: a step changes parameters and states in place.

# An update is as large as what it changes.
BETAS, RATE, EPS, DECAY, STEP = (0.9, 0.95, 0.99), 0.5, 1e-6, 0.1, 3


def stepped(name, p, g, first, second):
    """Parameters and states after a step, in fp64."""
    p, g, first, second = (x.double() for x in (p, g, first, second))
    one, two, _ = BETAS
    if name == "adam":
        first, second = first * one + (1 - one) * g, second * two + (1 - two) * g * g
        corrected = (1 - two**STEP) ** 0.5
        step = RATE * corrected / (1 - one**STEP)
        p = p * (1 - RATE * DECAY) - step * first / (second.sqrt() + EPS * corrected)
        return p, first, second
    if name == "lion":
        p = p * (1 - RATE * DECAY) - RATE * (first * one + (1 - one) * g).sign()
        return p, first * two + (1 - two) * g, second
    g = g + p * DECAY
    if name == "momentum":
        first = first * one + g
        return p - RATE * first, first, second
    first = first * one + (1 - one) * g * g
    return p - RATE * g / (first.sqrt() + EPS), first, second


def _optimizer_32bit(name, dtype, n):
    p, g = torch.randn(n, dtype=dtype), torch.randn(n, dtype=dtype)
    first, second = torch.rand(n), torch.rand(n)

    def op():
        new = [x.clone() for x in (p, first, second)]
        kernels_optim.optimizer_update_32bit_impl(
            *(name, g, *new, None, 0.0, 0.0, *BETAS, 5.0, EPS, DECAY, STEP, RATE)
        )
        return new

    return op, lambda: stepped(name, p, g, first, second)


def _optimizer_8bit(name, dtype, n):
    p, g, table = torch.randn(n, dtype=dtype), torch.randn(n, dtype=dtype), code()
    codes = [torch.randint(128, 256, (n,), dtype=torch.uint8) for _ in range(2)]
    absmax = [torch.rand(-(-n // QUANTISED)) + 0.5 for _ in range(2)]

    def state(code, absmax):
        return table[code.long()] * absmax.repeat_interleave(QUANTISED)[:n]

    def op():
        new, c, a = p.clone(), [x.clone() for x in codes], [x.clone() for x in absmax]
        kernels_optim.optimizer_update_8bit_blockwise_impl(
            *(name, g, new, *c, *BETAS, 5.0, EPS, STEP, RATE, table, table, *a, DECAY)
        )
        return new, state(c[0], a[0])

    def reference():
        new, first, _ = stepped(name, p, g, *map(state, codes, absmax))
        return new, nearest(first, table, QUANTISED)

    return op, reference


@case(NUMBERS, dtypes=BOTH)
def adam(dtype, n):
    return _optimizer_32bit("adam", dtype, n)


@case(NUMBERS)
def lion(dtype, n):
    return _optimizer_32bit("lion", dtype, n)


@case(NUMBERS)
def momentum(dtype, n):
    return _optimizer_32bit("momentum", dtype, n)


@case(NUMBERS)
def rmsprop(dtype, n):
    return _optimizer_32bit("rmsprop", dtype, n)


@case(NUMBERS, dtypes=BOTH)
def adam_8bit(dtype, n):
    return _optimizer_8bit("adam", dtype, n)


@case(NUMBERS)
def momentum_8bit(dtype, n):
    return _optimizer_8bit("momentum", dtype, n)
