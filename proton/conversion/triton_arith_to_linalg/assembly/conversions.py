"""`cvt`: numbers of one type of PTX as those of another."""

from proton.base.float8 import BY_NAME
from proton.conversion.float8 import narrow, widen
from proton.conversion.triton_arith_to_linalg import directed, extern
from proton.conversion.triton_arith_to_linalg.assembly import floats
from proton.conversion.triton_arith_to_linalg.assembly.floats import Float
from proton.conversion.triton_arith_to_linalg.assembly.integers import Op, saturated
from proton.conversion.triton_arith_to_linalg.assembly.values import (
    BITS,
    Int,
    bits_of,
    float_type,
    joined,
    parted,
)
from proton.dialect.builtin import integer
from proton.dialect.emit import create
from proton.dialect.mlir import arith

# Rounding to whole numbers, as libdevice and as MLIR call it
_WHOLE = {"rni": "rn", "rzi": "rz", "rmi": "rd", "rpi": "ru"}
_WHOLE_OPS = {"rn": "roundeven", "rz": "trunc", "rd": "floor", "ru": "ceil"}
_FLOAT8 = {"e4m3x2": "float8e4nv", "e5m2x2": "float8e5"}


def _types(op: Op) -> tuple[str, str]:
    return op.parts[-2], op.parts[-1]


def of_integer(op: Op, x: Int) -> Int:
    """An integer as another: cut off, or within its range where the name says `.sat`."""
    to, of = _types(op)
    signed = of[0] == "s"
    if "sat" not in op.parts:
        return x.to(BITS[to], signed=signed)
    return saturated(x, BITS[to], of_signed=signed, to_signed=to[0] == "s")


def packed_integers(op: Op, a: Int, b: Int, c: Int | None = None) -> Int:
    """`cvt.pack`: two integers in fewer bits, the second one below, and the lower ones of `c`
    above them."""
    to = op.parts[3]
    bits = int(to[1:])
    low, high = (saturated(x, bits, to_signed=to[0] == "s") for x in (b, a))
    both = joined([low, high]).to(32)
    return both if c is None else both | c << 2 * bits


def to_float(op: Op, x: Int) -> Float:
    """An integer as a float."""
    to, of = _types(op)
    signed, type_ = of[0] == "s", float_type(to)
    way = next((floats.DIRECTIONS[p] for p in op.parts if p in floats.DIRECTIONS), None)
    if way is not None:
        x = x.to(max(x.bits, 32), signed=signed)
        kind = {32: "int", 64: "ll"}[x.bits]
        return directed.RULES[f"{'' if signed else 'u'}{kind}2float_{way}"](x.value, type_=type_)
    name = arith.SIToFPOp if signed else arith.UIToFPOp
    if to in ("f32", "f64"):
        return create(name, type_, x.value)
    if x.bits == 64:
        x = _fewer_bits(x, signed=signed)
    return floats.converted(create(name, float_type("f64"), x.value), to)


def _fewer_bits(x: Int, *, signed: bool) -> Int:
    """64 bits as a number that fp64 has, and that a narrower float rounds to the same: with the
    last bits of a large one as one."""
    size = x.compare("slt", 0).select(-x, x) if signed else x
    low = (1 << 11) - 1
    odd = (x & ~low) | (x & low).compare("ne", 0).to(64) << 11
    return size.compare("ugt", 1 << 53).select(odd, x)


def to_integer(op: Op, x: Float) -> Int:
    """A float as an integer, within its range. NaN is 0, or, where one side has 64 bits, the
    number of which only the highest bit is set."""
    to, of = _types(op)
    way = next(_WHOLE[part] for part in op.parts if part in _WHOLE)
    kind = "int" if to[0] == "s" else "uint"
    wide = x if of == "f64" else floats.converted(x, "f32")
    rule = extern.RULES[f"float2{kind}_{way}"]
    found = Int(rule(wide, type_=integer(max(16, BITS[to]))))
    if BITS[to] == 8:  # of which `arith` gives the low byte here
        found = saturated(found, 8, of_signed=to[0] == "s", to_signed=to[0] == "s")
    if "f64" in (to, of) or BITS[to] == 64:
        is_none, _ = floats.not_a_number(x, of)
        found = is_none.select(found.of(1 << (BITS[to] - 1)), found)
    return found


def of_float(op: Op, x: Float) -> Float:
    """A float as another, rounded as the name says; or as a whole number of its own type."""
    to, of = _types(op)
    whole = next((_WHOLE[part] for part in op.parts if part in _WHOLE), None)
    if whole is not None:
        wide = x if of == "f64" else floats.converted(x, "f32")
        x = floats.converted(create(f"math.{_WHOLE_OPS[whole]}", wide.type, wide), of)
    return _narrowed(op, x, to)


def _narrowed(op: Op, x: Float, to: str) -> Float:
    way = next((floats.DIRECTIONS[p] for p in op.parts if p in floats.DIRECTIONS), None)
    if way is None or x.type == float_type(to) or x.type.width < BITS[to]:
        return floats.converted(x, to)
    return directed.RULES[f"double2float_{way}"](floats.converted(x, "f64"), type_=float_type(to))


def two_floats(op: Op, a: Float, b: Float) -> Int:
    """Two floats in one register, the second one below."""
    to = op.parts[-2]
    halves = []
    for x in (b, a):
        if to in _FLOAT8:
            halves.append(_float8(op, x, to))
            continue
        half = _narrowed(op, x, to.removesuffix("x2"))
        if "relu" in op.parts:
            half = floats.positive(half, to.removesuffix("x2"))
        halves.append(bits_of(half))
    return joined(halves)


def _float8(op: Op, x: Float, to: str) -> Int:
    if "relu" in op.parts:
        x = floats.positive(x, "f32")
    is_none, _ = floats.not_a_number(x, "f32")
    code = Int(narrow(x, BY_NAME[_FLOAT8[to]], "rtne"))
    return is_none.select(code.of(_NAN_8), code)


_NAN_8 = 0x7F


def two_float8_of_halves(op: Op, x: Int) -> Int:
    """Two 8-bit floats of two of fp16."""
    halves = [floats.converted(half.as_float("f16"), "f32") for half in parted(x, 2)]
    return joined([_float8(op, half, op.parts[-2]) for half in halves])


def halves_of_float8(op: Op, x: Int) -> Int:
    """Two floats of fp16 of two 8-bit ones."""
    kind = BY_NAME[_FLOAT8[op.parts[-1]]]
    halves = []
    for code in parted(x, 2):
        half = floats.converted(widen(code.value, kind), "f16")
        halves.append(bits_of(floats.positive(half, "f16") if "relu" in op.parts else half))
    return joined(halves)


# fp32 with the last 13 bits of its fraction cut off
_TF32 = 13


def tf32(op: Op, x: Float) -> Int:
    """fp32 rounded to tf32: to nearest, ties away from zero (`.rna`) or to even (`.rn`), or
    towards zero."""
    is_none, quiet = floats.not_a_number(x, "f32")
    bits = bits_of(x)
    if "rna" in op.parts:
        bits = bits + (1 << (_TF32 - 1))
    elif "rn" in op.parts:
        bits = bits + ((bits >> _TF32 & 1) + ((1 << (_TF32 - 1)) - 1))
    bits = bits & ~((1 << _TF32) - 1)
    found = bits.as_float("f32")
    if "relu" in op.parts:
        found = floats.positive(found, "f32")
    return is_none.select(bits_of(quiet), bits_of(found))
