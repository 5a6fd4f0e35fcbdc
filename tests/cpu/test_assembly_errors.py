"""Inline assembly that a CPU does not take: the error names the instruction and the line."""

import contextlib
import random
import re

import numpy as np
import pytest

import proton
import proton.language as tl
from proton import CompilationError
from proton.conversion.triton_arith_to_linalg.assembly.constraints import read_constraints
from proton.conversion.triton_arith_to_linalg.assembly.text import Untranslatable, parse

N = 8

# (text, constraints, what the error says)
REFUSED = (
    ("ld.global.f32 $0, [$1];", "=r,r", "ld.global.f32 is not translated for the CPU"),
    ("bar.sync 0;", "=r,r", "bar.sync is not translated"),
    ("atom.global.add.u32 $0, [$1+4], 1;", "=r,r", "atom.global.add.u32 is not translated"),
    ("mov.u32 $0, %laneid;", "=r,r", "mov.u32: %laneid is a register of a GPU"),
    ("mov.u32 $0, %tid.x;", "=r,r", "%tid.x is a register of a GPU"),
    ("isspacep.global p, $1;", "=r,r", "isspacep.global is not translated"),
    ("add.sat.u32 $0, $1, $1;", "=r,r", "add.sat.u32 is no form of add that is translated"),
    ("add.s32 $0, $1, $1, $1;", "=r,r", "add.s32 takes 3 operands, its result among them, got 4"),
    ("add.s32 $0, $1;", "=r,r", "add.s32 takes 3 operands"),
    ("add.s32;", "=r,r", "add.s32 has no operands"),
    ("add.s32 $0, $1, t;", "=r,r", "add.s32: t was not declared"),
    ("add.s32 $0, $1, $2;", "=r,r", re.escape("$2: the call has 2 operands")),
    ("add.s32 $0, $1, [$1];", "=r,r", "add.s32 does not take [$1]"),
    ("add.s32 1, $1, $1;", "=r,r", "add.s32 does not take 1"),
    ("add.s64 $0, $1, $1;", "=r,r", "$1 has 32 bits, .s64 has 64"),
    ("add.s32 $0, $0, $1;", "=r,r", "add.s32: $0 is read before it is written"),
    ("add.f32 $0, $1, 1;", "=r,r", "add.f32: 1 is no f32"),
    ("add.s32 $0, $1, 1.5;", "=r,r", "add.s32: 1.5 is no s32"),
    ("add.s32 $0, $1, 0x1FFFFFFFF;", "=r,r", "has no room in 32 bits"),
    ("add.s32 $0, $1, !$1;", "=r,r", "!$1 is no s32"),
    ("add.s32 $0|$0, $1, $1;", "=r,r", "add.s32 does not write $0|$0"),
    ("lop3.b32 $0, $1, $1, $1, $1;", "=r,r", "its table must be a number from 0 to 255"),
    ("mov.b32 $0, {$1, $1, $1};", "=r,r", "mov.b32 has no 3 parts"),
    ("add.s32 $0, $1, $1", "=r,r", "';' expected behind add.s32, got the end"),
    ("{ mov.b32 $0, $1;", "=r,r", "the assembly ends inside of { }"),
    ("mov.b32 $0, $1; }", "=r,r", "a } without its {"),
    ("here: mov.b32 $0, $1;", "=r,r", "here: there are no labels"),
    (".reg .b128 t; mov.b32 $0, $1;", "=r,r", ".b128 is no type of a register"),
    (".reg .b32 t, t; mov.b32 $0, $1;", "=r,r", "t is declared twice"),
    (".reg .b32 t<9999>;", "=r,r", "too many registers"),
    (".shared .b32 t;", "=r,r", ".shared is not translated"),
    ("mov.b32 $0, $x;", "=r,r", "'$x' is neither an operand"),
    ("mov.b32 $0, #;", "=r,r", "'#;' is no PTX"),
    ("mov.b32 $0, (1+2);", "=r,r", "an operand expected behind mov.b32, got ("),
    ("@5 mov.b32 $0, $1;", "=r,r", "5 is no predicate"),
    ("mov.b32 $0, $1; é", "=r,r", "characters that are not ASCII"),
    ("", "=r,r", "the result $0 is never written"),
    ("mov.b32 $0, $1;", "=r,=r,r", "there are 1 registers of results, and 2 constraints"),
    ("mov.b32 $0, $1;", "=r", "constraints of arguments and the arguments' registers"),
    ("mov.b32 $0, $1;", "=r,r,r", "constraints of arguments and the arguments' registers"),
    ("mov.b32 $0, $1;", "=r,*m", "the constraint '*m' is not translated"),
    ("mov.b32 $0, $1;", "=r,4", "the constraint '4' names no result"),
    ("mov.b32 $0, $1;", "r,=r", "the constraint '=r' of a result is behind"),
    ("mov.b32 $0, $1;", "=r,h", "an argument of 32 bits has a constraint for 16"),
    ("mov.b16 $0, 1;", "=h,r", "a result of 32 bits has a constraint for 16"),
)  # fmt: skip


@proton.jit
def applied(x_ptr, ASM: tl.constexpr, CONSTRAINTS: tl.constexpr, N: tl.constexpr):
    offs = tl.arange(0, N)
    x = tl.load(x_ptr + offs)
    x = tl.inline_asm_elementwise(ASM, CONSTRAINTS, [x], tl.int32, True, 1)
    tl.store(x_ptr + offs, x)


@pytest.mark.interpreted
@pytest.mark.parametrize("case", REFUSED, ids=range(len(REFUSED)))
def test_what_is_refused_is_named(case: tuple[str, str, str]) -> None:
    asm, constraints, rule = case
    with pytest.raises(CompilationError) as caught:
        applied[(1,)](np.zeros(N, np.int32), ASM=asm, CONSTRAINTS=constraints, N=N)
    assert "tl.inline_asm_elementwise: " in str(caught.value)
    assert re.sub(r"\\(.)", r"\1", rule) in str(caught.value)
    assert "x = tl.inline_asm_elementwise(ASM, CONSTRAINTS, [x], tl.int32, True, 1)" in str(
        caught.value
    )
    assert caught.value.hint


@proton.jit
def of_pointers(x_ptr, N: tl.constexpr):
    offs = x_ptr + tl.arange(0, N)
    tl.store(
        offs, tl.inline_asm_elementwise("cvt.u32.u64 $0, $1;", "=r,l", [offs], tl.int32, True, 1)
    )


@proton.jit
def of_six(x_ptr, N: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, 2))
    tl.store(
        x_ptr, tl.sum(tl.inline_asm_elementwise("mov.b32 $0, $1;", "=r,r", [x], tl.int8, True, 4))
    )


def test_interpreted_pointers_have_no_bits() -> None:
    with (
        proton.knobs.scope(interpret=True),
        pytest.raises(CompilationError, match="may not be pointers"),
    ):
        of_pointers[(1,)](np.zeros(N, np.int32), N=N)


@pytest.mark.interpreted
def test_blocks_that_no_assembly_takes() -> None:
    with pytest.raises(CompilationError, match=r"2 elements.*are not a multiple of pack=4"):
        of_six[(1,)](np.zeros(N, np.int8), N=N)


# Any text is parsed, or refused by name.

WORDS = ["\n", " ", "\0"]
WORDS += (
    "add.s32 mov.b32 { } ; , $0 $1 $$ $ t .reg .b32 .pred @ ! | [ ] < > ( - + 0x1F 0f3F800000 1.5 9"
    " 08 // /* */ %p _ :: . 0d 1e5 ~ : = & WARP_SZ"
).split()
GOOD = (
    "{ .reg .b32 t<3>; @!p add.s32 t0, $1, {a, b}; mov.b64 {_, t1}, 0x1F;"
    " setp.lt.u32 p|q, [a+4], -1.5; }"
)


def test_any_text_is_read_or_refused(session_seed: int) -> None:
    print(f"rerun with PROTON_TEST_SEED={session_seed}")
    rng = random.Random(session_seed)
    read = 0
    for number in range(4000):
        if number % 2:
            text = " ".join(rng.choices(WORDS, k=rng.randrange(1, 14)))
        else:
            place = rng.randrange(len(GOOD))
            text = (
                GOOD[:place]
                + rng.choice(WORDS) * rng.randrange(2)
                + GOOD[place + rng.randrange(6) :]
            )
        with contextlib.suppress(Untranslatable):
            parse(text)
            read += 1
    assert read > 20
    for text in (
        "{" * 5000,
        "!" * 5000,
        "mov.b32 " + "{" * 5000,
        "9" * 9000,
        "$" + "9" * 5000,
        "(" * 99,
    ):
        try:
            parse(text)
        except Untranslatable:
            continue
        raise AssertionError(text[:20])


def test_any_constraints_are_read_or_refused(session_seed: int) -> None:
    rng = random.Random(session_seed)
    for _ in range(2000):
        text = "".join(rng.choices("=&rhfldbc,0129~{}memory* +", k=rng.randrange(12)))
        with contextlib.suppress(Untranslatable):
            read_constraints(text)
