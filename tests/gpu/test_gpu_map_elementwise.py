"""tests/cpu/test_map_elementwise.py and test_assembly.py on the GPU, and assembly that only GPUs
have."""

import numpy as np

import proton
import proton.language as tl
from tests.cpu.harness import ordinary
from tests.cpu.test_assembly import *  # noqa: F403
from tests.cpu.test_map_elementwise import *  # noqa: F403

STAGED = True


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
