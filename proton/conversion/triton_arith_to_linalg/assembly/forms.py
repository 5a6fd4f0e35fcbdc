"""The instructions of PTX that are translated: every form of their names, the types of their
operands, and what computes them.

In a name `(a|b)` is one of several words, and `[a|b]` one of them or none. Types are the result's,
then those of the operands: `t` is the last word of the name, `d` the one before it, `2t` a number
of twice the bits; `pred?` an operand that may be left out. Where a type is two numbers (`f16x2`)
and `t` stands for operands, the rule computes each. A `loose` instruction takes registers that are
wider than its types, as `cvt` does.
"""

import functools
import itertools
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from proton.conversion.triton_arith_to_linalg.assembly import conversions, floats, integers

_WAY = "(rn|rz|rm|rp)"
_WORD = "u16|u32|u64|s16|s32|s64"
_COMPARISON = "(eq|ne|lt|le|gt|ge)"
_UNORDERED = "(eq|ne|lt|le|gt|ge|equ|neu|ltu|leu|gtu|geu|num|nan)"
_NARROW = "f16|f16x2|bf16|bf16x2"
_BYTES = "(u8|u16|u32|u64|s8|s16|s32|s64)"

# (names, types of the result and of the operands, rule)
_INTEGERS: tuple[tuple[str, str, Callable[..., Any]], ...] = (
    (f"(add|sub).({_WORD})", "t = t t", integers.add),
    ("add.(u16x2|s16x2)", "t = t t", integers.add),
    ("(add|sub).sat.s32", "t = t t", integers.add),
    (f"mul.(lo|hi).({_WORD})", "t = t t", integers.mul),
    ("mul.wide.(u16|u32|s16|s32)", "2t = t t", integers.mul),
    (f"mad.(lo|hi).({_WORD})", "t = t t t", integers.mad),
    ("mad.wide.(u16|u32|s16|s32)", "2t = t t 2t", integers.mad),
    ("mad.hi.sat.s32", "t = t t t", integers.mad),
    ("mul24.(lo|hi).(u32|s32)", "t = t t", integers.mul24),
    ("mad24.(lo|hi).(u32|s32)", "t = t t t", integers.mad24),
    ("mad24.hi.sat.s32", "t = t t t", integers.mad24),
    (f"sad.({_WORD})", "t = t t t", integers.sad),
    (f"div.({_WORD})", "t = t t", integers.div),
    (f"rem.({_WORD})", "t = t t", integers.rem),
    ("abs.(s16|s32|s64)", "t = t", integers.absolute),
    ("neg.(s16|s32|s64)", "t = t", integers.neg),
    (f"(min|max).({_WORD}|u16x2|s16x2)", "t = t t", integers.extremum),
    ("(min|max).relu.(s32|s16x2)", "t = t t", integers.extremum),
    ("dp4a.(u32|s32).(u32|s32)", "u32 = u32 u32 u32", integers.dp4a),
    ("dp2a.(lo|hi).(u32|s32).(u32|s32)", "u32 = u32 u32 u32", integers.dp2a),
    ("(and|or|xor).(pred|b16|b32|b64)", "t = t t", integers.logic),
    ("not.(pred|b16|b32|b64)", "t = t", integers.invert),
    ("cnot.(b16|b32|b64)", "t = t", integers.cnot),
    ("lop3.b32", "t = t t t u32", integers.lop3),
    ("shl.(b16|b32|b64)", "t = t u32", integers.shl),
    (f"shr.(b16|b32|b64|{_WORD})", "t = t u32", integers.shr),
    ("shf.(l|r).(clamp|wrap).b32", "t = t t u32", integers.shf),
    ("prmt.b32[.f4e|.b4e|.rc8|.ecl|.ecr|.rc16]", "b32 = b32 b32 b32", integers.prmt),
    ("bfe.(u32|s32|u64|s64)", "t = t u32 u32", integers.bfe),
    ("bfi.(b32|b64)", "t = t t u32 u32", integers.bfi),
    ("bfind[.shiftamt].(u32|s32|u64|s64)", "u32 = t", integers.bfind),
    ("brev.(b32|b64)", "t = t", integers.brev),
    ("(clz|popc).(b32|b64)", "u32 = t", integers.count),
    ("bmsk.(clamp|wrap).b32", "t = u32 u32", integers.bmsk),
    ("szext.(clamp|wrap).(u32|s32)", "t = t u32", integers.szext),
    ("fns.b32", "u32 = t u32 s32", integers.fns),
    (f"selp.(b16|b32|b64|{_WORD}|f32|f64)", "t = t t pred", integers.selp),
    (f"slct.(b16|b32|b64|{_WORD}|f32|f64).s32", "d = d d t", integers.slct),
    (f"mov.(pred|b16|b32|b64|{_WORD}|f32|f64)", "t = t", integers.mov),
)
_FLOATS: tuple[tuple[str, str, Callable[..., Any]], ...] = (
    ("(add|sub|mul)[.rn|.rz|.rm|.rp][.ftz][.sat].f32", "t = t t", floats.arithmetic),
    ("(add|sub|mul)[.rn|.rz|.rm|.rp].f64", "t = t t", floats.arithmetic),
    ("(add|sub|mul)[.rn][.ftz][.sat].(f16|f16x2)", "t = t t", floats.arithmetic),
    ("(add|sub|mul)[.rn].(bf16|bf16x2)", "t = t t", floats.arithmetic),
    (f"(fma|mad).{_WAY}[.ftz][.sat].f32", "t = t t t", floats.arithmetic),
    (f"(fma|mad).{_WAY}.f64", "t = t t t", floats.arithmetic),
    ("fma.rn[.ftz][.sat|.relu].(f16|f16x2)", "t = t t t", floats.arithmetic),
    ("fma.rn[.relu].(bf16|bf16x2)", "t = t t t", floats.arithmetic),
    ("div.(approx|full|rn|rz|rm|rp)[.ftz].f32", "t = t t", floats.arithmetic),
    (f"div.{_WAY}.f64", "t = t t", floats.arithmetic),
    ("(rcp|sqrt).(approx|rn|rz|rm|rp)[.ftz].f32", "t = t", floats.arithmetic),
    (f"(rcp|sqrt).{_WAY}.f64", "t = t", floats.arithmetic),
    ("rcp.approx.ftz.f64", "t = t", floats.arithmetic),
    ("(sin|cos|lg2|ex2|rsqrt).approx[.ftz].f32", "t = t", floats.function),
    ("rsqrt.approx[.ftz].f64", "t = t", floats.function),
    ("ex2.approx.(f16|f16x2)", "t = t", floats.function),
    ("ex2.approx.ftz.(bf16|bf16x2)", "t = t", floats.function),
    (f"tanh.approx.(f32|{_NARROW})", "t = t", floats.function),
    ("neg[.ftz].(f32|f16|f16x2)", "t = t", floats.neg),
    ("neg.(f64|bf16|bf16x2)", "t = t", floats.neg),
    ("abs[.ftz].(f32|f16|f16x2)", "t = t", floats.absolute),
    ("abs.(f64|bf16|bf16x2)", "t = t", floats.absolute),
    ("(min|max)[.ftz][.NaN][.xorsign.abs].(f32|f16|f16x2)", "t = t t", floats.extremum),
    ("(min|max)[.NaN][.xorsign.abs].(bf16|bf16x2)", "t = t t", floats.extremum),
    ("(min|max).f64", "t = t t", floats.extremum),
    ("copysign.(f32|f64)", "t = t t", floats.copysign),
    (
        "testp.(finite|infinite|number|notanumber|normal|subnormal).(f32|f64)",
        "pred = t",
        floats.testp,
    ),
    (f"slct[.ftz].(b16|b32|b64|{_WORD}|f32|f64).f32", "d = d d t", floats.slct),
)
_COMBINED = "[.and|.or|.xor]"
_COMPARISONS: tuple[tuple[str, str, Callable[..., Any]], ...] = (
    (f"setp.(eq|ne){_COMBINED}.(b16|b32|b64)", "pred|pred = t t pred?", floats.setp),
    (f"setp.{_COMPARISON}{_COMBINED}.({_WORD})", "pred|pred = t t pred?", floats.setp),
    (f"setp.(lo|ls|hi|hs){_COMBINED}.(u16|u32|u64)", "pred|pred = t t pred?", floats.setp),
    (f"setp.{_UNORDERED}{_COMBINED}[.ftz].(f32|f16x2)", "pred|pred = t t pred?", floats.setp),
    (f"setp.{_UNORDERED}{_COMBINED}.(f64|bf16x2)", "pred|pred = t t pred?", floats.setp),
    (f"setp.{_UNORDERED}{_COMBINED}[.ftz].f16", "pred = t t pred?", floats.setp),
    (f"setp.{_UNORDERED}{_COMBINED}.bf16", "pred = t t pred?", floats.setp),
    (f"set.(eq|ne){_COMBINED}.(u32|s32|f32).(b16|b32|b64)", "d = t t pred?", floats.set_),
    (f"set.{_COMPARISON}{_COMBINED}.(u32|s32|f32).({_WORD})", "d = t t pred?", floats.set_),
    (f"set.(lo|ls|hi|hs){_COMBINED}.(u32|s32|f32).(u16|u32|u64)", "d = t t pred?", floats.set_),
    (f"set.{_UNORDERED}{_COMBINED}[.ftz].(u32|s32|f32).f32", "d = t t pred?", floats.set_),
    (f"set.{_UNORDERED}{_COMBINED}.(u32|s32|f32).f64", "d = t t pred?", floats.set_),
    (f"set.{_UNORDERED}{_COMBINED}[.ftz].f16.f16", "d = t t pred?", floats.set_),
    (f"set.{_UNORDERED}{_COMBINED}[.ftz].f16x2.f16x2", "t = t t pred?", floats.set_),
    (f"set.{_UNORDERED}{_COMBINED}.bf16.bf16", "d = t t pred?", floats.set_),
    (f"set.{_UNORDERED}{_COMBINED}.bf16x2.bf16x2", "t = t t pred?", floats.set_),
)
_CONVERSIONS: tuple[tuple[str, str, Callable[..., Any]], ...] = (
    (f"cvt.{_BYTES}.{_BYTES}", "d = t", conversions.of_integer),
    # Where every number has room there is no `.sat`.
    ("cvt.sat.u8.(u16|u32|u64|s8|s16|s32|s64)", "d = t", conversions.of_integer),
    ("cvt.sat.u16.(u32|u64|s8|s16|s32|s64)", "d = t", conversions.of_integer),
    ("cvt.sat.u32.(u64|s8|s16|s32|s64)", "d = t", conversions.of_integer),
    ("cvt.sat.u64.(s8|s16|s32|s64)", "d = t", conversions.of_integer),
    ("cvt.sat.s8.(u8|u16|u32|u64|s16|s32|s64)", "d = t", conversions.of_integer),
    ("cvt.sat.s16.(u16|u32|u64|s32|s64)", "d = t", conversions.of_integer),
    ("cvt.sat.s32.(u32|u64|s64)", "d = t", conversions.of_integer),
    ("cvt.sat.s64.u64", "d = t", conversions.of_integer),
    (f"cvt.{_WAY}[.sat].(f16|f32|f64).{_BYTES}", "d = t", conversions.to_float),
    (f"cvt.{_WAY}.bf16.({_WORD})", "d = t", conversions.to_float),
    (f"cvt.(rni|rzi|rmi|rpi)[.ftz][.sat].{_BYTES}.f32", "d = t", conversions.to_integer),
    (f"cvt.(rni|rzi|rmi|rpi)[.sat].{_BYTES}.(f16|f64)", "d = t", conversions.to_integer),
    (f"cvt.(rni|rzi|rmi|rpi).({_WORD}).bf16", "d = t", conversions.to_integer),
    ("cvt.(rni|rzi|rmi|rpi)[.ftz][.sat].f32.f32", "d = t", conversions.of_float),
    ("cvt.(rni|rzi|rmi|rpi)[.sat].(f16.f16|f64.f64)", "d = t", conversions.of_float),
    ("cvt[.ftz][.sat].(f32.f16|f32.f32)", "d = t", conversions.of_float),
    ("cvt[.sat].(f64.f16|f64.f64|f16.f16)", "d = t", conversions.of_float),
    ("cvt[.ftz][.sat].f64.f32", "d = t", conversions.of_float),
    ("cvt.(f32|f64).bf16", "d = t", conversions.of_float),
    ("cvt.(rni|rzi|rmi|rpi).bf16.bf16", "d = t", conversions.of_float),
    (f"cvt.{_WAY}[.ftz].bf16.f32", "d = t", conversions.of_float),
    (f"cvt.{_WAY}.(bf16.f16|bf16.f64|f16.bf16)", "d = t", conversions.of_float),
    (f"cvt.{_WAY}[.ftz][.sat].(f32.f64|f16.f32)", "d = t", conversions.of_float),
    (f"cvt.{_WAY}[.sat].f16.f64", "d = t", conversions.of_float),
    ("cvt.(rn|rz)[.relu].(bf16|f16).f32", "d = t", conversions.of_float),
    ("cvt.(rn|rz)[.relu].(f16x2|bf16x2).f32", "d = t t", conversions.two_floats),
    (
        "cvt.rn(.relu.satfinite|.satfinite.relu|.satfinite).(e4m3x2|e5m2x2).f32",
        "d = t t",
        conversions.two_floats,
    ),
    (
        "cvt.rn(.relu.satfinite|.satfinite.relu|.satfinite).(e4m3x2|e5m2x2).f16x2",
        "d = t",
        conversions.two_float8_of_halves,
    ),
    ("cvt.rn[.relu].f16x2.(e4m3x2|e5m2x2)", "d = t", conversions.halves_of_float8),
    ("cvt.rna.tf32.f32", "b32 = t", conversions.tf32),
    ("cvt.(rn|rz)[.relu].tf32.f32", "b32 = t", conversions.tf32),
    ("cvt.pack.sat.(u16|s16).s32", "u32 = t t", conversions.packed_integers),
    ("cvt.pack.sat.(u8|s8).s32.b32", "u32 = s32 s32 b32", conversions.packed_integers),
)


@dataclass(frozen=True)
class Form:
    """An instruction: its name, the types of what it gives and takes, and its rule."""

    name: str
    results: tuple[str, ...]
    operands: tuple[str, ...]
    optional: bool  # the last operand may be left out
    rule: Callable[..., Any]

    @functools.cached_property
    def parts(self) -> tuple[str, ...]:
        """The words of the name."""
        return tuple(self.name.split("."))

    @property
    def is_loose(self) -> bool:
        """True if registers may be wider than the types."""
        return self.parts[0] == "cvt" and self.parts[1] != "pack"


def names_of(pattern: str) -> Iterator[str]:
    """Every name that a pattern stands for."""
    pieces = re.findall(r"\(([^)]*)\)|\[([^\]]*)\]|([^(\[]+)", pattern)
    choices = [
        one.split("|") if one else ["", *optional.split("|")] if optional else [text]
        for one, optional, text in pieces
    ]
    return map("".join, itertools.product(*choices))


@functools.cache
def forms() -> dict[str, Form]:
    """Every instruction that is translated, by its name."""
    found: dict[str, Form] = {}
    for pattern, types, rule in (*_INTEGERS, *_FLOATS, *_COMPARISONS, *_CONVERSIONS):
        for name in names_of(pattern):
            if name not in found:  # the same conversion may be a form of two kinds
                found[name] = _form(name, types, rule)
    return found


def _form(name: str, types: str, rule: Callable[..., Any]) -> Form:
    words = name.split(".")
    results, _, operands = types.partition(" = ")
    taken = [_type(one.removesuffix("?"), words) for one in operands.split()]
    given = tuple(_type(one, words) for one in results.split("|"))
    return Form(name, given, tuple(taken), operands.endswith("?"), rule)


def _type(text: str, words: list[str]) -> str:
    match text:
        case "t":
            return words[-1]
        case "d":
            return words[-2]
        case "2t":
            return f"{words[-1][0]}{2 * int(words[-1][1:])}"
    return text
