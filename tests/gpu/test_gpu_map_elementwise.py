"""tests/cpu/test_map_elementwise.py on the GPU, and inline assembly, which only GPUs have."""

import numpy as np
import pytest

import proton
import proton.language as tl
from tests.cpu.harness import ordinary
from tests.cpu.test_map_elementwise import *  # noqa: F403

STAGED = True
del test_assembly_is_for_gpus  # noqa: F821

SHIFT = "shf.l.wrap.b32 $0, $1, $2, 5;"
# Four bytes of a word: the lower and the upper half of each.
NIBBLES = """
    and.b32 $0, $2, 0x0F0F0F0F;
    shr.u32 $1, $2, 4;
    and.b32 $1, $1, 0x0F0F0F0F;
"""


@proton.jit
def rotated(x_ptr, y_ptr, out_ptr, ASM: tl.constexpr, N: tl.constexpr):
    offs = tl.arange(0, N)
    x, y = tl.load(x_ptr + offs), tl.load(y_ptr + offs)
    args = [x, y]
    tl.store(out_ptr + offs, tl.inline_asm_elementwise(ASM, "=r,r,r", args, tl.uint32, True, 1))


@pytest.mark.parametrize("n", [1, 32, 1024])
def test_assembly_of_each_element(rng: np.random.Generator, n: int) -> None:
    x, y, out = ordinary(rng, "uint32", n), ordinary(rng, "uint32", n), np.zeros(n, np.uint32)
    rotated[(1,)](x, y, out, ASM=SHIFT, N=n)
    assert (out == (y << np.uint32(5)) | (x >> np.uint32(27))).all()


@proton.jit
def nibbles(x_ptr, low_ptr, high_ptr, ASM: tl.constexpr, N: tl.constexpr):
    offs = tl.arange(0, N)
    x = tl.load(x_ptr + offs)
    low, high = tl.inline_asm_elementwise(
        ASM, "=r,=r,r", [x], dtype=(tl.uint8, tl.int8), is_pure=True, pack=4
    )
    tl.store(low_ptr + offs, low)
    tl.store(high_ptr + offs, high)


@pytest.mark.parametrize("n", [64, 512])  # 64: fewer than 4 elements of a thread
def test_bytes_share_registers(rng: np.random.Generator, n: int) -> None:
    x, low, high = ordinary(rng, "uint8", n), np.zeros(n, np.uint8), np.zeros(n, np.int8)
    nibbles[(1,)](x, low, high, ASM=NIBBLES, N=n)
    assert (low == x & 15).all()
    assert (high == x >> 4).all()


@proton.jit
def halves(x_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    x = tl.load(x_ptr + offs)
    y = tl.inline_asm_elementwise("add.rn.f16 $0, $1, $1;", "=h,h", [x], tl.float16, True, 1)
    z = tl.inline_asm_elementwise(
        "mov.u32 $0, %laneid;\n add.s32 $0, $0, $1;", "=r,r", [0], tl.int32, False, 1
    )
    tl.store(out_ptr + offs, y, mask=z >= 0)


@proton.jit
def reversed_by_barrier(x_ptr, y_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    tl.store(y_ptr + offs, tl.load(x_ptr + offs))
    tl.inline_asm_elementwise("bar.sync 0;", "=r", [], dtype=tl.int32, is_pure=False, pack=1)
    y = tl.load(y_ptr + N - 1 - offs)
    three = tl.inline_asm_elementwise("mov.b32 $0, 3;", "=r", [], tl.int32, True, 1)
    tl.store(x_ptr + offs, y * three)


def test_assembly_without_operands(rng: np.random.Generator) -> None:
    x, y = ordinary(rng, "int32", 512), np.zeros(512, np.int32)
    before = x.copy()
    reversed_by_barrier[(1,)](x, y, N=512)
    assert (x == before[::-1] * np.int32(3)).all()


def test_halves_and_scalars(rng: np.random.Generator) -> None:
    x, out = ordinary(rng, "float16", 64), np.zeros(64, np.float16)
    halves[(1,)](x, out, N=64)
    assert np.array_equal(out, x + x, equal_nan=True)
