"""What instructions of PTX compute on floats.

Approximate ones are computed as the exact ones are: in the type where MLIR has the function, by C's
math library elsewhere, narrow types in fp32. What the names' other words say of every instruction
(`.ftz`, `.sat`, `.relu`) is not here, but in `instructions.py`.
"""

from collections.abc import Callable
from typing import Any

from proton.conversion.triton_arith_to_linalg import directed
from proton.conversion.triton_arith_to_linalg.assembly.integers import Op
from proton.conversion.triton_arith_to_linalg.assembly.values import (
    FRACTION,
    Int,
    bits_of,
    float_type,
    number_of,
)
from proton.dialect.emit import call_c, constant, create
from proton.dialect.mlir import Value, arith, math

# PTX's words for directions of rounding, by libdevice's
DIRECTIONS = {"rz": "rz", "rm": "rd", "rp": "ru"}
Float = Value


def converted(x: Float, type_: str) -> Float:
    """In another float type, rounded to nearest."""
    target = float_type(type_)
    if x.type == target:
        return x
    if x.type.width == target.width:  # fp16 and bf16
        x = arith.ExtFOp(float_type("f32"), x).result
    return (arith.ExtFOp if x.type.width < target.width else arith.TruncFOp)(target, x).result


def compare(predicate: str, x: Float, y: Float) -> Int:
    """`arith.cmpf`."""
    return Int(arith.CmpFOp(getattr(arith.CmpFPredicate, predicate), x, y).result)


def select(chosen: Int, x: Float, y: Float) -> Float:
    return arith.SelectOp(chosen.value, x, y).result


def not_a_number(x: Float, type_: str) -> tuple[Int, Float]:
    """Whether a float is none, and the NaN that NVIDIA's processors give."""
    width = int(x.type.width)
    quiet = number_of((1 << (width - 1)) - 1, width).as_float(type_)
    return compare("UNO", x, x), quiet


# What the words of a name do to each number


def flushed(x: Float, type_: str) -> Float:
    """0 of its sign for a denormal number."""
    bits = bits_of(x)
    exponent = (1 << (bits.bits - 1)) - (1 << FRACTION[type_])
    is_tiny = (bits & exponent).compare("eq", 0)
    return is_tiny.select(bits & (1 << (bits.bits - 1)), bits).as_float(type_)


def saturated(x: Float) -> Float:
    """Between 0 and 1; 0 for NaN."""
    zero, one = constant(0.0, x.type), constant(1.0, x.type)
    x = select(compare("OGT", x, zero), x, zero)
    return select(compare("OLT", x, one), x, one)


def positive(x: Float, type_: str) -> Float:
    """0 for what is negative."""
    zero = constant(0.0, x.type)
    is_none, quiet = not_a_number(x, type_)
    return select(is_none, quiet, select(compare("OGT", x, zero), x, zero))


# Arithmetic

_OPS = {"add": arith.AddFOp, "sub": arith.SubFOp, "mul": arith.MulFOp, "div": arith.DivFOp}


def _way(op: Op) -> str | None:
    """The direction of rounding; None for to nearest."""
    return next((DIRECTIONS[part] for part in op.parts if part in DIRECTIONS), None)


def arithmetic(op: Op, *x: Float) -> Float:
    """Sums, differences, products, quotients, and what is fused or one over it."""
    name = {"mad": "fma"}.get(op.parts[0], op.parts[0])
    way = _way(op)
    if way is not None:
        return directed.RULES[f"{name}_{way}"](*x, type_=x[0].type)
    if name == "fma":
        return create(math.FmaOp, x[0].type, *x)
    if name == "rcp":
        return create(arith.DivFOp, x[0].type, constant(1.0, x[0].type), *x)
    if name == "sqrt":
        return create(math.SqrtOp, x[0].type, *x)
    return create(_OPS[name], x[0].type, *x)


_FUNCTIONS = {"ex2": "exp2", "lg2": "log2", "sin": "sin", "cos": "cos", "rsqrt": "rsqrt"}


def function(op: Op, x: Float) -> Float:
    """A function of `math`, or of C's library; of narrow floats in fp32."""
    wide = x if op.type in ("f32", "f64") else converted(x, "f32")
    name = op.parts[0]
    if name == "tanh":
        found = call_c("tanhf", [wide], wide.type)
    else:
        found = create(f"math.{_FUNCTIONS[name]}", wide.type, wide)
    return converted(found, op.type)


def neg(op: Op, x: Float) -> Float:
    bits = bits_of(x)
    return (bits ^ (1 << (bits.bits - 1))).as_float(op.type)


def absolute(op: Op, x: Float) -> Float:
    bits = bits_of(x)
    return (bits & ((1 << (bits.bits - 1)) - 1)).as_float(op.type)


def extremum(op: Op, x: Float, y: Float) -> Float:
    """-0 is less than 0; a number wins over NaN, unless the name says `.NaN`."""
    is_min = op.parts[0] == "min"
    x_none, quiet = not_a_number(x, op.type)
    y_none, _ = not_a_number(y, op.type)
    sign = 1 << (bits_of(x).bits - 1)
    signs = (bits_of(x) ^ bits_of(y)) & sign
    if "xorsign" in op.parts:
        x, y = absolute(op, x), absolute(op, y)
    found = select(compare("OLT" if is_min else "OGT", x, y), x, y)
    both = bits_of(x) | bits_of(y) if is_min else bits_of(x) & bits_of(y)
    found = select(compare("OEQ", x, y), both.as_float(op.type), found)
    if "xorsign" in op.parts:
        found = (bits_of(found) | signs).as_float(op.type)
        x, y = (((bits_of(v) & (sign - 1)) | signs).as_float(op.type) for v in (x, y))
    if "NaN" in op.parts:
        return select(x_none | y_none, quiet, found)
    found = select(x_none, y, select(y_none, x, found))
    return select(x_none & y_none, quiet, found)


def copysign(op: Op, x: Float, y: Float) -> Float:
    """`y` with the sign of `x`."""
    sign = 1 << (bits_of(x).bits - 1)
    return ((bits_of(y) & (sign - 1)) | (bits_of(x) & sign)).as_float(op.type)


def testp(op: Op, x: Float) -> Int:
    """Zeros are normal, as the manual of PTX has it."""
    bits = bits_of(x)
    magnitude = bits & ((1 << (bits.bits - 1)) - 1)
    fraction = 1 << FRACTION[op.type]
    infinity = (1 << (bits.bits - 1)) - fraction
    tests: dict[str, Callable[[], Int]] = {
        "finite": lambda: magnitude.compare("ult", infinity),
        "infinite": lambda: magnitude.compare("eq", infinity),
        "number": lambda: magnitude.compare("ule", infinity),
        "notanumber": lambda: magnitude.compare("ugt", infinity),
        "normal": lambda: (
            (magnitude - fraction).compare("ult", infinity - fraction) | magnitude.compare("eq", 0)
        ),
        "subnormal": lambda: (magnitude - 1).compare("ult", fraction - 1),
    }
    return tests[op.parts[1]]()


def slct(op: Op, a: Int, b: Int, c: Float) -> Int:
    """`a` where the float is not negative: -0 is not, and of NaN it is `b`."""
    return compare("OGE", c, constant(0.0, c.type)).select(a, b)


# Comparisons: of integers, of floats where both are numbers, and of floats where one may be none
_INTEGERS = {"eq": "eq", "ne": "ne", "lt": "lt", "le": "le", "gt": "gt", "ge": "ge"}
_INTEGERS |= {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}
_FLOATS = {name: f"O{name.upper()}" for name in ("eq", "ne", "lt", "le", "gt", "ge")}
_FLOATS |= {f"{name}u": f"U{name.upper()}" for name in ("eq", "ne", "lt", "le", "gt", "ge")}
_FLOATS |= {"num": "ORD", "nan": "UNO"}


def _compared(op: Op, a: Any, b: Any) -> Int:
    name = op.parts[1]
    if not isinstance(a, Int) or not isinstance(b, Int):
        return compare(_FLOATS[name], a, b)
    predicate = _INTEGERS[name]
    if predicate in ("eq", "ne"):
        return a.compare(predicate, b)
    return a.compare(("s" if op.type.startswith("s") else "u") + predicate, b)


def setp(op: Op, a: Int | Float, b: Int | Float, c: Int | None = None) -> tuple[Int, Int]:
    """A comparison, and its opposite; each combined with another predicate where there is one."""
    found = _compared(op, a, b)
    return _combined(op, found, c), _combined(op, ~found, c)


def _combined(op: Op, found: Int, c: Int | None) -> Int:
    if c is None:
        return found
    if "and" in op.parts:
        return found & c
    return found | c if "or" in op.parts else found ^ c


def set_(op: Op, a: Int | Float, b: Int | Float, c: Int | None = None) -> Int | Float:
    """A comparison as a number: all bits of an integer, or 1.0."""
    found = _combined(op, _compared(op, a, b), c)
    target = op.parts[-2].removesuffix("x2")
    if target in FRACTION:
        type_ = float_type(target)
        return select(found, constant(1.0, type_), constant(0.0, type_))
    return found.to(int(target[1:]), signed=True)
