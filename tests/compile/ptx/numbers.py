"""What arithmetic instructions of PTX compute, on arrays with an element per thread.

`value_of` writes an instruction as an expression in Python of its operands, which `Operands` names;
the functions that such expressions call are in `SCOPE`. Floats of 32 bits are fused and rounded by
way of 64; approximate functions give the nearest number.
"""

import functools
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from proton.base.float8 import BY_NAME
from tests.cpu.harness import decode, encode

BITS = {"b8": 8, "b16": 16, "b32": 32, "b64": 64}
BITS |= {f"{kind}{bits}": bits for kind in "us" for bits in (8, 16, 32, 64)}
BITS |= {"f16": 16, "bf16": 16, "f32": 32, "f64": 64, "f16x2": 32, "bf16x2": 32, "pred": 1}
BITS |= {"s16x2": 32, "u16x2": 32, "tf32": 32, "e4m3x2": 16, "e5m2x2": 16}
FLOATS = ("f16", "bf16", "f32", "f64", "f16x2", "bf16x2", "tf32")
Rule = Callable[[tuple[str, ...], list[str], "Operands"], str]


class Operands(Protocol):
    """What names operands in Python."""

    def read(self, operand: str, type_: str) -> str:
        """An array of numbers of a type: signed, unsigned, floats, or booleans."""


@functools.cache
def unsigned(bits: int) -> Any:
    return np.dtype(f"u{max(1, bits // 8)}")


def as_bits(values: np.ndarray) -> np.ndarray:
    """Floats as their bits; integers as they are, which a wider register extends by their sign."""
    return values.view(unsigned(8 * values.itemsize)) if values.dtype.kind == "f" else values


def from_bf16(bits: np.ndarray) -> np.ndarray:
    return decode(bits, "bfloat16")


def to_bf16(values: np.ndarray) -> np.ndarray:
    return encode(np.asarray(values), "bfloat16")


def cut_bf16(values: np.ndarray) -> np.ndarray:
    """Rounded towards zero."""
    numbers = values.astype(np.float32)
    assert (numbers.astype(values.dtype) == values)[~np.isnan(values)].all(), "cut twice"
    return np.where(np.isnan(numbers), 0x7FFF, numbers.view("u4") >> 16).astype("u2")


@functools.cache
def float8_numbers(type_: str) -> np.ndarray:
    """The number of each code of `e4m3` or `e5m2`."""
    format_ = BY_NAME[{"e4m3": "float8e4nv", "e5m2": "float8e5"}[type_]]
    return np.array([format_.decode(code) for code in range(256)])


def to_float8(values: np.ndarray, type_: str) -> np.ndarray:
    """The codes of numbers, rounded to the nearest even one; beyond the largest it is that."""
    numbers = float8_numbers(type_)
    finite = np.flatnonzero(np.isfinite(numbers[:128]))
    size = np.abs(values.astype(np.float64))
    above = np.clip(np.searchsorted(numbers[finite], size), 1, finite[-1])
    low, high = numbers[above - 1], numbers[above]
    is_low = (size - low < high - size) | ((size - low == high - size) & (above % 2 == 1))
    code = np.where(is_low, above - 1, above)
    code = np.where(np.isnan(values), 0x7F, np.where(size >= high, above, code))
    return (code | np.where(np.signbit(values) & ~np.isnan(values), 0x80, 0)).astype(np.uint8)


def pairs(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Two numbers in one, the first operand of PTX above."""
    half = 8 * low.itemsize
    wide = unsigned(2 * half)
    return low.astype(wide) | (high.astype(wide) << np.array(half, wide))


def fused(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    wide = np.longdouble if a.dtype == np.float64 else np.float64
    return (a.astype(wide) * b.astype(wide) + c.astype(wide)).astype(a.dtype)


def wide(values: np.ndarray) -> np.ndarray:
    """Integers of twice the bits."""
    return values.astype(f"{values.dtype.kind}{2 * values.itemsize}")


def high(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The upper half of a product."""
    bits = 8 * a.itemsize
    product = a.astype(object) * b.astype(object)
    found: list[int] = [(int(x) >> bits) & ((1 << bits) - 1) for x in product]
    return np.array(found, unsigned(bits))


def quotient(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Rounded towards zero; by zero all bits are set, as on a GPU."""
    divisor = np.where(b == 0, b.dtype.type(1), b)
    found = a // divisor
    if a.dtype.kind == "i":
        found += ((a % divisor != 0) & ((a < 0) != (b < 0))).astype(a.dtype)
    return np.where(b == 0, ~np.zeros_like(a), found).astype(a.dtype)


def remainder(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a - quotient(a, b) * b


def left(a: np.ndarray, by: np.ndarray) -> np.ndarray:
    bits = 8 * a.itemsize
    return np.where(by >= bits, 0, a << np.minimum(by, bits - 1).astype(a.dtype)).astype(a.dtype)


def right(a: np.ndarray, by: np.ndarray) -> np.ndarray:
    bits = 8 * a.itemsize
    shifted = a >> np.minimum(by, bits - 1).astype(a.dtype)
    return shifted if a.dtype.kind == "i" else np.where(by >= bits, 0, shifted).astype(a.dtype)


def field_of(a: np.ndarray, first: np.ndarray, length: np.ndarray) -> np.ndarray:
    """`bfe`: bits of a number, extended by the last one's sign where it is signed."""
    first, length = first.astype(np.int64) & 255, length.astype(np.int64) & 255
    found = (a.astype(np.int64) >> np.minimum(first, 63)) & ((np.int64(1) << length) - 1)
    if a.dtype.kind == "i":
        sign = (found >> np.maximum(length - 1, 0)) & 1
        found = np.where((sign == 1) & (length > 0), found - (np.int64(1) << length), found)
    return found.astype(a.dtype)


def inserted(a: np.ndarray, b: np.ndarray, first: np.ndarray, length: np.ndarray) -> np.ndarray:
    """`bfi`: bits of `a` put into `b`."""
    mask = (((np.uint64(1) << length.astype(np.uint64)) - 1) << first.astype(np.uint64)).astype(
        b.dtype
    )
    return (b & ~mask) | (left(a, first) & mask)


def permuted(a: np.ndarray, b: np.ndarray, selector: np.ndarray) -> np.ndarray:
    """`prmt`: four bytes of eight, or their signs."""
    both, found = pairs(a, b), np.zeros_like(a)
    for place in range(4):
        chosen = (selector >> np.uint32(4 * place)) & np.uint32(15)
        byte = (both >> ((chosen & 7).astype(np.uint64) * np.uint64(8))) & np.uint64(255)
        byte = np.where(chosen & 8, np.where(byte & 128, 255, 0), byte).astype(np.uint32)
        found |= byte << np.uint32(8 * place)
    return found


def looked_up(a: np.ndarray, b: np.ndarray, c: np.ndarray, table: np.ndarray) -> np.ndarray:
    """`lop3`."""
    found = np.zeros_like(a)
    for case in range(8):
        parts = [x if case & bit else ~x for x, bit in ((a, 4), (b, 2), (c, 1))]
        found |= np.where((table >> np.uint32(case)) & 1, parts[0] & parts[1] & parts[2], 0).astype(
            a.dtype
        )
    return found


def funnel(low: np.ndarray, high: np.ndarray, by: np.ndarray, to: str, mode: str) -> np.ndarray:
    """`shf`."""
    by = by & 31 if mode == "wrap" else np.minimum(by, 32)
    both = pairs(low, high)
    if to == "l":
        return ((both << by.astype(np.uint64)) >> np.uint64(32)).astype(np.uint32)
    return (both >> by.astype(np.uint64)).astype(np.uint32)


def whole(values: np.ndarray, how: str) -> np.ndarray:
    """Rounded to a whole number."""
    rounding = {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}
    found: np.ndarray = rounding[how](values)
    return found


def narrowed(values: np.ndarray, dtype: str, how: str) -> np.ndarray:
    """A float as one of fewer bits, rounded towards zero, up or down."""
    near = values.astype(dtype)
    back = near.astype(values.dtype)
    is_above, is_below = back > values, back < values
    if how == "rz":
        is_above, is_below = is_above & (values > 0), is_below & (values < 0)
    down, up = np.array(-np.inf, dtype), np.array(np.inf, dtype)
    if how != "rp":
        near = np.where(is_above, np.nextafter(near, down), near)
    return near if how == "rm" else np.where(is_below, np.nextafter(near, up), near)


def to_integer(values: np.ndarray, type_: str, how: str) -> np.ndarray:
    """A float as an integer within the type's range; NaN is 0 on the way from fp32 to at most 32
    bits, else the upper bit (an H200)."""
    bits, is_signed = BITS[type_], type_[0] == "s"
    info = np.iinfo(f"{'i' if is_signed else 'u'}{bits // 8}")
    numbers = whole(values.astype(np.float64), how)
    inside = (numbers >= float(info.min)) & (numbers < float(info.max) + 1)
    found = np.where(inside, numbers, 0).astype(info.dtype)
    of_nan = 0 if bits <= 32 and values.dtype.itemsize <= 4 else 1 << bits - 1
    ends = np.array([info.max, info.min, info.min if is_signed and of_nan else of_nan], info.dtype)
    kind = np.where(np.isnan(numbers), 2, (numbers < 0).astype(int))
    return np.where(inside, found, ends[kind])


def approximate(function: Callable[..., Any], *values: np.ndarray) -> np.ndarray:
    found: np.ndarray = function(*(x.astype(np.float64) for x in values)).astype(values[0].dtype)
    return found


def extremum(a: np.ndarray, b: np.ndarray, name: str, is_nan: bool) -> np.ndarray:
    """Of floats; -0 is less than 0."""
    functions = {"min": (np.fmin, np.minimum), "max": (np.fmax, np.maximum)}
    found = functions[name][is_nan](a, b)
    both = np.where(np.signbit(a) == (name == "min"), a, b)
    return np.where((a == 0) & (b == 0), both, found)


def flushed(values: np.ndarray) -> np.ndarray:
    """`ftz`: without denormal numbers."""
    tiny = np.abs(values) < np.finfo(values.dtype).smallest_normal
    return np.where(tiny, np.copysign(values.dtype.type(0), values), values)


def count(values: np.ndarray) -> np.ndarray:
    return np.bitwise_count(values).astype(np.uint32)


def leading(values: np.ndarray) -> np.ndarray:
    """How many zeros there are above the first bit."""
    bits = 8 * values.itemsize
    return np.array([bits - int(x).bit_length() for x in values], np.uint32)


def last_bit(values: np.ndarray) -> np.ndarray:
    """`bfind`: the highest bit that is not as the sign; all bits set where there is none."""
    numbers = np.where(values < 0, ~values, values).view(unsigned(8 * values.itemsize))
    return np.uint32(8 * values.itemsize - 1) - leading(numbers)


def nth_set(mask: np.ndarray, base: np.ndarray, offset: np.ndarray) -> np.ndarray:
    """`fns`: the place of the n-th bit that is set, from `base` on, upwards or downwards."""
    found = []
    for bits, first, count in zip(mask.tolist(), base.tolist(), offset.tolist(), strict=True):
        places = range(first, 32) if count > 0 else range(first, -1, -1)
        there = [place for place in places if bits >> place & 1]
        if count == 0:
            there = [first] if there[:1] == [first] else []
        number = max(abs(count), 1) - 1
        found.append(there[number] if number < len(there) else 0xFFFFFFFF)
    return np.array(found, np.uint32)


def shift_of(values: np.ndarray) -> np.ndarray:
    """How far the bit that `last_bit` finds is from the highest one; all bits set without one."""
    bits = last_bit(values)
    none = np.uint32(0xFFFFFFFF)
    return np.where(bits == none, none, np.uint32(8 * values.itemsize - 1) - bits)


def turned(values: np.ndarray) -> np.ndarray:
    bits = 8 * values.itemsize
    return np.array([int(f"{int(x):0{bits}b}"[::-1], 2) for x in values], values.dtype)


_FUNCTIONS = {
    "ex2": "np.exp2", "lg2": "np.log2", "sin": "np.sin", "cos": "np.cos", "tanh": "np.tanh",
    "sqrt": "np.sqrt", "rsqrt": "lambda x: 1 / np.sqrt(x)", "rcp": "lambda x: 1 / x",
}  # fmt: skip
_WAYS = ("rz", "rm", "rp")  # of rounding, besides to the nearest
_COMPARED = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_COMPARED |= {"lo": "<", "ls": "<=", "hi": ">", "hs": ">="}
_SYMBOLS = {"add": "+", "sub": "-", "mul": "*", "and": "&", "or": "|", "xor": "^"}
SCOPE: dict[str, Any] = {"np": np} | {
    f.__name__: f
    for f in (
        as_bits, from_bf16, to_bf16, cut_bf16, float8_numbers, to_float8, pairs, fused, wide, high,
        quotient, remainder, left, right, field_of, inserted, permuted, looked_up, funnel, whole,
        narrowed, to_integer, approximate, extremum, flushed, count, leading, last_bit, shift_of,
        turned, nth_set,
    )
}  # fmt: skip


def value_of(parts: tuple[str, ...], given: list[str], operands: Operands) -> str:
    """An instruction's result: numbers of the instruction's type, in an array."""
    name, type_ = parts[0], parts[-1]
    way = next((part for part in parts if part in _WAYS), None)
    if way is not None and name != "cvt":
        return _directed(parts, given, operands, way)
    if parts[:2] == ("bfind", "shiftamt"):
        return f"shift_of({operands.read(given[0], type_)})"
    rule = _RULES.get(name)
    if rule is not None:
        return rule(parts, given, operands)
    values = [operands.read(text, type_) for text in given]
    if type_ in ("bf16", "bf16x2"):
        values = [f"from_bf16({value})" for value in values]
    if name in _FUNCTIONS:
        found = f"approximate({_FUNCTIONS[name]}, *[{values[0]}])"
    elif name in _SYMBOLS:
        found = f"({values[0]} {_SYMBOLS[name]} {values[1]})"
    elif name == "div" and type_ in FLOATS:
        found = f"approximate(np.divide, {values[0]}, {values[1]})"
    elif name in ("min", "max"):
        found = _extremum(parts, values)
    elif name in ("fma", "mad") and type_ in FLOATS:
        found = f"fused({', '.join(values)})"
    elif name == "copysign":
        found = f"np.copysign({values[1]}, {values[0]})"
    else:
        found = _SIMPLE[name].format(*values)
    return _stored(_clipped(found, parts), type_)


def _clipped(found: str, parts: tuple[str, ...]) -> str:
    """Without denormal numbers, between 0 and 1, where the instruction says so."""
    if "ftz" in parts:
        found = f"flushed({found})"
    return f"np.clip(np.nan_to_num({found}), 0, 1)" if "sat" in parts else found


def _directed(parts: tuple[str, ...], given: list[str], operands: Operands, way: str) -> str:
    """Arithmetic that is not rounded to the nearest: in more bits first."""
    type_ = parts[-1]
    assert "sat" not in parts, parts
    more = "'f8'" if type_ == "f32" else "np.longdouble"
    values = [f"{operands.read(text, type_)}.astype({more})" for text in given]
    match parts[0]:
        case "fma":
            found = "{} * {} + {}".format(*values)
        case "div":
            found = "{} / {}".format(*values)
        case "sqrt":
            found = f"np.sqrt({values[0]})"
        case "rcp":
            found = f"1 / {values[0]}"
        case name:
            found = f"{values[0]} {_SYMBOLS[name]} {values[1]}"
    return f"narrowed({found}, 'f{BITS[type_] // 8}', {way!r})"


def _stored(found: str, type_: str) -> str:
    """Results of bfloat16 as bits, and two numbers as those of one register."""
    if type_ in ("bf16", "bf16x2"):
        found = f"to_bf16({found})"
    return f"as_bits({found}).view('u4')" if type_.endswith("x2") else found


_SIMPLE = {
    "div": "quotient({}, {})", "rem": "remainder({}, {})", "abs": "np.abs({})", "neg": "(-{})",
    "not": "(~{})", "prmt": "permuted({}, {}, {})", "lop3": "looked_up({}, {}, {}, {})",
    "popc": "count({})", "bfind": "last_bit({})",
    "sad": "({2} + np.where({0} > {1}, {0} - {1}, {1} - {0}))",
    "clz": "leading({})", "brev": "turned({})",
}  # fmt: skip


def _extremum(parts: tuple[str, ...], values: list[str]) -> str:
    name = parts[0] + "imum"
    if "xorsign" in parts:  # ... of absolute values
        signs = f"np.signbit({values[0]}) ^ np.signbit({values[1]})"
        found = f"np.f{parts[0]}(np.abs({values[0]}), np.abs({values[1]}))"
        return f"np.where({signs}, -{found}, {found})"
    if parts[-1] in FLOATS:
        found = f"extremum({values[0]}, {values[1]}, {parts[0]!r}, {'NaN' in parts})"
    else:
        found = f"np.{name}({values[0]}, {values[1]})"
    return f"np.maximum({found}, 0)" if "relu" in parts else found


def _shift(parts: tuple[str, ...], given: list[str], operands: Operands) -> str:
    by = operands.read(given[1], "u32")
    name = "left" if parts[0] == "shl" else "right"
    type_ = parts[-1].replace("b", "u")
    return f"{name}({operands.read(given[0], type_)}, {by})"


def _mul(parts: tuple[str, ...], given: list[str], operands: Operands) -> str:
    type_ = parts[-1]
    a, b = (operands.read(text, type_) for text in given[:2])
    if type_ in FLOATS:
        if type_ in ("bf16", "bf16x2"):
            a, b = f"from_bf16({a})", f"from_bf16({b})"
        return _stored(_clipped(f"({a} * {b})", parts), type_)
    if parts[1] == "wide":
        return f"(wide({a}) * wide({b}))"
    return f"high({a}, {b})" if parts[1] == "hi" else f"({a} * {b})"


def _mad(parts: tuple[str, ...], given: list[str], operands: Operands) -> str:
    type_ = parts[-1]
    if type_ in FLOATS:
        values = [operands.read(text, type_) for text in given]
        if type_ in ("bf16", "bf16x2"):
            values = [f"from_bf16({value})" for value in values]
        return _stored(_clipped(f"fused({', '.join(values)})", parts), type_)
    sum_type = f"{type_[0]}{2 * BITS[type_]}" if parts[1] == "wide" else type_
    return f"({_mul(parts, given, operands)} + {operands.read(given[2], sum_type)})"


def _bfe(parts: tuple[str, ...], given: list[str], operands: Operands) -> str:
    places = [operands.read(text, "u32") for text in given[1:]]
    return f"field_of({operands.read(given[0], parts[-1])}, {', '.join(places)})"


def _bfi(parts: tuple[str, ...], given: list[str], operands: Operands) -> str:
    values = [operands.read(text, parts[-1].replace("b", "u")) for text in given[:2]]
    return f"inserted({', '.join(values + [operands.read(text, 'u32') for text in given[2:]])})"


def _fns(parts: tuple[str, ...], given: list[str], operands: Operands) -> str:
    types = ("u32", "u32", "s32")
    return f"nth_set({', '.join(map(operands.read, given, types))})"


def _shf(parts: tuple[str, ...], given: list[str], operands: Operands) -> str:
    values = [operands.read(text, "u32") for text in given]
    return f"funnel({', '.join(values)}, {parts[1]!r}, {parts[2]!r})"


def _mov(parts: tuple[str, ...], given: list[str], operands: Operands) -> str:
    return operands.read(given[0], parts[-1])


def _selp(parts: tuple[str, ...], given: list[str], operands: Operands) -> str:
    a, b = (operands.read(text, parts[-1].replace("f", "b")) for text in given[:2])
    return f"np.where({operands.read(given[2], 'pred')}, {a}, {b})"


def _setp(parts: tuple[str, ...], given: list[str], operands: Operands) -> str:
    comparison, type_ = parts[1], parts[-1]
    a, b = (operands.read(text, type_) for text in given[:2])
    if type_ in ("bf16", "bf16x2"):
        a, b = f"from_bf16({a})", f"from_bf16({b})"
    if type_ not in FLOATS:
        found = f"({a} {_COMPARED[comparison]} {b})"
    else:
        is_nan = f"(np.isnan({a}) | np.isnan({b}))"
        if comparison in ("nan", "num"):
            found = is_nan if comparison == "nan" else f"~{is_nan}"
        elif comparison[-1] == "u" and len(comparison) == 3:
            found = f"({is_nan} | ({a} {_COMPARED[comparison[:2]]} {b}))"
        else:
            found = f"(~{is_nan} & ({a} {_COMPARED[comparison]} {b}))"
    if len(given) == 3:
        symbol = _SYMBOLS[parts[2]]
        return f"({found} {symbol} {operands.read(given[2], 'pred')})"
    return found


def _cvt(parts: tuple[str, ...], given: list[str], operands: Operands) -> str:
    to, of = parts[-2], parts[-1]
    how = next((part for part in parts[1:-2] if part in ("rni", "rzi", "rmi", "rpi")), None)
    if of in ("e4m3x2", "e5m2x2"):
        codes = f"{operands.read(given[0], 'u16')}.view('u1')"
        return f"float8_numbers({of[:4]!r})[{codes}].astype('f2').view('u4')"
    if to.endswith("x2"):
        low, high = operands.read(given[1], of), operands.read(given[0], of)
        if to in ("e4m3x2", "e5m2x2"):
            return f"pairs(to_float8({low}, {to[:4]!r}), to_float8({high}, {to[:4]!r}))"
        if to == "bf16x2":
            return f"pairs(to_bf16({low}), to_bf16({high}))"
        assert to == "f16x2", f"no rule for {parts}"
        return f"pairs(as_bits({low}.astype('f2')), as_bits({high}.astype('f2')))"
    value = operands.read(given[0], of)
    if of == "bf16":
        value = f"from_bf16({value})"
    if to in FLOATS:
        if BITS[to] < BITS[of] and (way := next((p for p in parts if p in _WAYS), None)):
            if to == "bf16":
                assert way == "rz", f"no rule for {parts}"
                return f"cut_bf16({value})"
            return f"narrowed({value}, 'f{BITS[to] // 8}', {way!r})"
        if how is not None:
            value = f"whole({value}, {how!r})"
        if "sat" in parts:
            value = _clipped(value, ("sat",))
        if to == "bf16":
            return f"to_bf16({value})"
        assert to != "tf32", parts
        return f"{value}.astype('f{BITS[to] // 8}')"
    if of in FLOATS:
        return f"to_integer({value}, {to!r}, {how!r})"
    assert "sat" not in parts, parts
    return f"{value}.astype('{'i' if to[0] == 's' else 'u'}{BITS[to] // 8}')"


_RULES: dict[str, Rule] = {
    "shl": _shift, "shr": _shift, "mul": _mul, "mad": _mad, "fma": _mad, "bfe": _bfe, "bfi": _bfi,
    "shf": _shf, "mov": _mov, "selp": _selp, "setp": _setp, "cvt": _cvt, "fns": _fns,
}  # fmt: skip
