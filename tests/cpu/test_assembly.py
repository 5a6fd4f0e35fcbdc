"""tl.inline_asm_elementwise: what texts are made of, packed elements, scalars, and what kernels of
public libraries have. Each instruction is in test_assembly_instructions.py."""

from typing import Any

import numpy as np
import pytest

import proton
import proton.language as tl
from tests.cpu.harness import assert_number, ordinary

pytestmark = pytest.mark.interpreted

N = 256
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


@pytest.mark.parametrize("n", [4, 64, 512])  # of a GPU's thread fewer than 4, and as many
def test_bytes_share_registers(rng: np.random.Generator, n: int) -> None:
    x, low, high = ordinary(rng, "uint8", n), np.zeros(n, np.uint8), np.zeros(n, np.int8)
    nibbles[(1,)](x, low, high, ASM=NIBBLES, N=n)
    assert (low == x & 15).all()
    assert (high == x >> 4).all()


# Four bytes as four floats of 32 bits in registers of their own, and their larger halves.
FLOATS = """{
    .reg .b8 part<4>;
    .reg .f32 other;
    mov.b32 {part0, part1, part2, part3}, $8;
    cvt.rn.f32.s8 $0, part0;  cvt.rn.f32.s8 $1, part1;
    cvt.rn.f32.s8 $2, part2;  cvt.rn.f32.s8 $3, part3;
    { .reg .pred %p<2>;  // what only this block has
      mul.f32 other, $0, 0f40000000;  setp.gt.f32 %p1, other, $9; selp.f32 $4, other, $9, %p1; }
    { .reg .pred p; mov.f32 $5, $10; add.f32 other, $1, $1; setp.gt.f32 p, other, $5;
      @p mov.f32 $5, other; }
    add.f32 other, $2, $2; max.f32 $6, other, $11;
    fma.rn.f32 other, $3, 2.0, 0d0000000000000000; max.f32 $7, other, $12; /* the
    last */
}"""


@proton.jit
def floats(
    x_ptr, y_ptr, plain_ptr, larger_ptr, ASM: tl.constexpr, N: tl.constexpr, M: tl.constexpr
):
    rows, columns = tl.arange(0, N)[:, None], tl.arange(0, M)[None, :]
    place = rows * M + columns
    x, y = tl.load(x_ptr + place), tl.load(y_ptr + place)
    plain, larger = tl.inline_asm_elementwise(
        ASM,
        "=f,=f,=f,=f,=&f,=&f,=&f,=&f,r,f,f,f,f",
        [x, y],
        dtype=(tl.float32, tl.float32),
        is_pure=True,
        pack=4,
    )
    tl.store(plain_ptr + place, plain)
    tl.store(larger_ptr + place, larger)


@pytest.mark.parametrize(("n", "m"), [(16, 32), (64, 2), (1, 8)])
def test_results_of_several_registers(rng: np.random.Generator, n: int, m: int) -> None:
    x, y = ordinary(rng, "int8", (n, m)), rng.standard_normal((n, m)).astype(np.float32) * 99
    plain, larger = np.zeros((n, m), np.float32), np.zeros((n, m), np.float32)
    floats[(1,)](x, y, plain, larger, ASM=FLOATS, N=n, M=m)
    assert (plain == x).all()
    assert (larger == np.maximum(2 * x.astype(np.float32), y)).all()


@proton.jit
def of_two(x_ptr, y_ptr, out_ptr, ASM: tl.constexpr, CONSTRAINTS: tl.constexpr,
           DTYPE: tl.constexpr, PACK: tl.constexpr, N: tl.constexpr):  # fmt: skip
    offs = tl.arange(0, N)
    args = [tl.load(x_ptr + offs), tl.load(y_ptr + offs)]
    found = tl.inline_asm_elementwise(ASM, CONSTRAINTS, args, DTYPE, True, PACK)
    tl.store(out_ptr + offs, found)


def test_halves_of_a_register(rng: np.random.Generator) -> None:
    x, y = ordinary(rng, "float16", N), ordinary(rng, "float16", N)
    out = np.zeros(N, np.float16)
    asm = "{ .reg .b16 a, b; mov.b32 {a, b}, $1; mov.b32 $0, {a, b}; fma.rn.f16x2 $0, $0, $2, $0; }"
    of_two[(1,)](x, y, out, ASM=asm, CONSTRAINTS="=r,r,r", DTYPE=tl.float16, PACK=2, N=N)
    with np.errstate(all="ignore"):
        want = (x.astype(np.float64) * y + x).astype(np.float16)
    assert_number(out, want, "float16")


TEXTS: dict[str, tuple[str, str, Any]] = {
    "tied": ("add.s32 $0, $0, $2;", "=r,0,r", lambda x, y: x + y),
    "dollars": (
        "{ .reg .b32 $$t; mov.b32 $$t, $1; sub.s32 ${0}, $$t, $2; }", "=r,r,r", np.subtract,
    ),
    "clobber": ("and.b32 $0, $1, $2;", "=r, r,r,~{memory}", np.bitwise_and),
    "opposite": (
        "{.reg .pred p;setp.lt.s32 p,$1,$2;@p mov.b32 $0,$1;@!p mov.b32 $0,$2;}", "=r,r,r",
        np.minimum,
    ),
    "pair": (
        "{ .reg .pred p, q; setp.lt.s32 p|q, $1, $2; selp.b32 $0, $2, $1, p;"
        " @q add.s32 $0, $0, 1; }",
        "=r,r,r", lambda x, y: np.where(x < y, y, x + 1),
    ),
    "negated": (
        "{ .reg .pred p, q; setp.lt.s32 p, $1, $2; setp.gt.and.s32 q, $1, -5, !p;"
        " selp.b32 $0, 1, 0, q; }",
        "=r,r,r", lambda x, y: ((x > -5) & ~(x < y)).astype(np.int32),
    ),
    "numbers": (
        "{ .reg .u32 a; mov.u32 a, 0x1FU; add.u32 a, a, 017; add.u32 a, a, 0b101; add.s32 a, a, -7;"
        " add.s32 a, a, WARP_SZ; xor.b32 $0, $1, a; }", "=r,r,r",
        lambda x, y: x ^ np.int32(31 + 15 + 5 - 7 + 32),
    ),
    "none": (
        "{ .reg .f32 f; mov.f32 f, 0fFFF12345; mov.b32 $0, f; xor.b32 $0, $0, 0f7FFFFFFF; }",
        "=r,r,r", lambda x, y: np.full_like(x, np.uint32(0x800EDCBA).astype(np.int32)),
    ),
    "hidden": (
        "{ .reg .b32 t; mov.b32 t, $1; { .reg .b32 t; mov.b32 t, $2; } mov.b32 $0, t; }",
        "=r,r,r", lambda x, y: x,
    ),
    "sink": (
        "{ .reg .b16 h; mov.b32 {_, h}, $1; cvt.s32.s16 $0, h; }", "=r,r,r", lambda x, y: x >> 16,
    ),
    "wide": (
        "{ .reg .b64 d; mul.wide.s32 d, $1, $2; mov.b64 {_, $0}, d; }", "=r,r,r",
        lambda x, y: (x.astype(np.int64) * y >> 32).astype(np.int32),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", TEXTS)
def test_texts(rng: np.random.Generator, name: str) -> None:
    asm, constraints, function = TEXTS[name]
    x, y, out = ordinary(rng, "int32", N), ordinary(rng, "int32", N), np.zeros(N, np.int32)
    of_two[(1,)](x, y, out, ASM=asm, CONSTRAINTS=constraints, DTYPE=tl.int32, PACK=1, N=N)
    assert (out == function(x, y)).all()


# What libraries have: Mamba-3 of mamba-ssm, a sigmoid, and the n-th bit that is set of adasplash.
APPROXIMATE: dict[str, tuple[str, Any]] = {
    "cosine": ("cos.approx.f32 $0, $1;", np.cos),
    "sine": ("sin.approx.ftz.f32 $0, $1;", np.sin),
    "tanh": ("tanh.approx.f32 $0, $1;", np.tanh),
    "sigmoid": (
        "{ .reg .f32 t; mul.f32 t, $1, 0.5; tanh.approx.f32 t, t; fma.rn.f32 $0, t, 0.5, 0.5; }",
        lambda x: 1 / (1 + np.exp(-x)),
    ),
    "exp": (
        "{ .reg .f32 t; mul.f32 t, $1, 0f3FB8AA3B; ex2.approx.f32 $0, t; }", np.exp,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", APPROXIMATE)
def test_functions_that_a_gpu_approximates(rng: np.random.Generator, name: str) -> None:
    asm, function = APPROXIMATE[name]
    x = rng.uniform(-8, 8, N).astype(np.float32)
    out = np.zeros(N, np.float32)
    of_two[(1,)](x, x, out, ASM=asm, CONSTRAINTS="=f,f,f", DTYPE=tl.float32, PACK=1, N=N)
    np.testing.assert_allclose(out, function(x.astype(np.float64)), rtol=2e-3, atol=1e-3)


def test_the_nth_bit_that_is_set(rng: np.random.Generator) -> None:
    x, y, out = ordinary(rng, "int32", N), rng.integers(1, 33, N, np.int32), np.zeros(N, np.int32)
    asm = "fns.b32 $0, $1, 0, $2;"
    of_two[(1,)](x, y, out, ASM=asm, CONSTRAINTS="=r,r,r", DTYPE=tl.int32, PACK=1, N=N)
    places = [[n for n in range(32) if int(v) >> n & 1] for v in x]
    assert out.tolist() == [p[n - 1] if n <= len(p) else -1 for p, n in zip(places, y, strict=True)]


@proton.jit
def of_bools(x_ptr, y_ptr, out_ptr, PACK: tl.constexpr, N: tl.constexpr):
    offs = tl.arange(0, N)
    args = [tl.load(x_ptr + offs) > 0, tl.load(y_ptr + offs) > 0]
    found = tl.inline_asm_elementwise("xor.b32 $0, $1, $2;", "=r,r,r", args, tl.int1, True, PACK)
    tl.store(out_ptr + offs, found)


@pytest.mark.parametrize("pack", [1, 4])
def test_bools(rng: np.random.Generator, pack: int) -> None:
    x, y, out = ordinary(rng, "int32", N), ordinary(rng, "int32", N), np.zeros(N, bool)
    of_bools[(1,)](x, y, out, PACK=pack, N=N)
    assert (out == ((x > 0) ^ (y > 0))).all()


@proton.jit
def scalars(x_ptr, out_ptr):
    x = tl.inline_asm_elementwise(
        "add.s32 $0, $1, $2;", "=r,r,r", [tl.load(x_ptr), 5], tl.int32, True, 1
    )
    three = tl.inline_asm_elementwise("mov.b32 $0, 3;", "=r", [], tl.int32, False, 1)
    tl.store(out_ptr, x * three)


def test_scalars_and_no_operands() -> None:
    x, out = np.array([7], np.int32), np.zeros(1, np.int32)
    scalars[(1,)](x, out)
    assert out[0] == 36
