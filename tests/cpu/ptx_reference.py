"""What instructions of PTX give, number by number, as NVIDIA's manual has it: integers of Python's,
and fractions that are rounded once.

Registers are integers with so many bits as the type has. Results are bits, or None for any NaN.
"""

import math
from collections.abc import Callable
from fractions import Fraction

BITS = {"pred": 1, "f16": 16, "bf16": 16, "f32": 32, "f64": 64, "f16x2": 32, "bf16x2": 32}
BITS |= {f"{kind}{bits}": bits for kind in "bus" for bits in (8, 16, 32, 64)}
BITS |= {"u16x2": 32, "s16x2": 32, "tf32": 32, "e4m3x2": 16, "e5m2x2": 16, "e4m3": 8, "e5m2": 8}
# Bits of the fraction, and the exponents of the least normal and of the largest number.
FLOATS = {"f16": (10, -14, 15), "bf16": (7, -126, 127), "f32": (23, -126, 127)}
FLOATS |= {"f64": (52, -1022, 1023)}
FLOATS |= {"tf32": (10, -126, 127), "e4m3": (3, -6, 8), "e5m2": (2, -14, 15)}
WAYS = ("rn", "rz", "rm", "rp")


def signed(x: int, bits: int) -> int:
    return x - (1 << bits) if x >> (bits - 1) else x


def number(x: int, type_: str) -> int:
    return signed(x, BITS[type_]) if type_[0] == "s" else x


# Floats: every number of each format is one of Python's


def decoded(bits: int, type_: str) -> float:
    fraction, least, _ = FLOATS[type_]
    width = BITS[type_]
    sign = -1.0 if bits >> (width - 1) else 1.0
    exponent = bits >> fraction & (1 << (width - 1 - fraction)) - 1
    rest = bits & (1 << fraction) - 1
    if type_ == "e4m3" and bits & 0x7F == 0x7F:
        return math.nan
    if type_ != "e4m3" and exponent == (1 << (width - 1 - fraction)) - 1:
        return math.copysign(math.nan, sign) if rest else sign * math.inf
    if not exponent:
        return sign * math.ldexp(rest, least - fraction)
    return sign * math.ldexp(rest + (1 << fraction), exponent - 1 + least - fraction)


def encoded(x: float, type_: str) -> int | None:
    """The bits of a number that the format has."""
    fraction, least, most = FLOATS[type_]
    width = BITS[type_]
    if math.isnan(x):
        return None
    sign = (1 << (width - 1)) if math.copysign(1, x) < 0 else 0
    if math.isinf(x):
        return sign | (1 << (width - 1)) - (1 << fraction)
    size = abs(Fraction(x)) / Fraction(2) ** (least - fraction)
    exponent = max(0, math.floor(size).bit_length() - (fraction + 1))
    size /= 1 << exponent
    assert size.denominator == 1, (x, type_)
    found = int(size) + (exponent << fraction)
    assert exponent <= most - least, (x, type_)
    return sign | found


def rounded(x: Fraction, type_: str, way: str, zero: float = 0.0) -> float:
    """To nearest even (`rn`), to nearest and away from zero in the middle (`rna`), towards zero,
    down or up. `zero` has the sign of a result that is 0 exactly."""
    fraction, least, most = FLOATS[type_]
    if not x:
        return math.copysign(0.0, zero)
    size = abs(x)
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    exponent -= Fraction(2) ** exponent > size
    unit = Fraction(2) ** (max(exponent, least) - fraction)
    below = math.floor(x / unit)
    rest = x / unit - below
    up = {"rm": False, "rp": True, "rz": x < 0}.get(way, rest > Fraction(1, 2))
    if rest == Fraction(1, 2):
        up = {"rn": below % 2 == 1, "rna": x > 0}.get(way, up)
    found = (below + (up and rest > 0)) * unit
    largest = (2 - Fraction(1, 1 << fraction)) * Fraction(2) ** most
    if abs(found) > largest:
        stays = way == "rz" or (way == "rm" and x > 0) or (way == "rp" and x < 0)
        return (-1.0 if x < 0 else 1.0) * (float(largest) if stays else math.inf)
    return math.copysign(float(found), -1.0 if x < 0 else 1.0)


def flushed(x: float, type_: str) -> float:
    return math.copysign(0.0, x) if abs(x) < 2.0 ** FLOATS[type_][1] else x


def _sum(x: float, y: float, type_: str, way: str) -> float:
    if not (math.isfinite(x) and math.isfinite(y)):
        return x + y
    return rounded(Fraction(x) + Fraction(y), type_, way, _zero(x, y, way))


def _zero(x: float, y: float, way: str) -> float:
    """The zero that a sum of these is, if it is one."""
    if math.copysign(1, x) == math.copysign(1, y):
        return x
    return -0.0 if way == "rm" else 0.0


def _product(x: float, y: float, type_: str, way: str) -> float:
    if not (math.isfinite(x) and math.isfinite(y)):
        return x * y
    return rounded(Fraction(x) * Fraction(y), type_, way, math.copysign(1, x) * math.copysign(1, y))


def _fused(x: float, y: float, z: float, type_: str, way: str) -> float:
    if not (math.isfinite(x) and math.isfinite(y)):
        return x * y + z
    if not math.isfinite(z):
        return z
    sign = math.copysign(1, x) * math.copysign(1, y)
    return rounded(Fraction(x) * Fraction(y) + Fraction(z), type_, way, _zero(sign, z, way))


def _quotient(x: float, y: float, type_: str, way: str) -> float:
    sign = math.copysign(1, x) * math.copysign(1, y)
    if math.isnan(x) or math.isnan(y):
        return math.nan
    if math.isinf(x) or y == 0:
        return math.nan if math.isinf(y) or (x == 0 and y == 0) else sign * math.inf
    if math.isinf(y):
        return sign * 0.0
    return rounded(Fraction(x) / Fraction(y), type_, way, sign)


def _root(x: float, type_: str, way: str) -> float:
    if math.isnan(x) or x < 0:
        return math.nan
    if x == 0 or math.isinf(x):
        return x
    scaled = Fraction(x) * 4**700
    root = math.isqrt(scaled.numerator // scaled.denominator)
    exact = root * root == scaled
    return rounded(Fraction(2 * root + (not exact), 2) / Fraction(2) ** 700, type_, way)


def _extremum(parts: tuple[str, ...], x: float, y: float) -> float:
    if "NaN" in parts and (math.isnan(x) or math.isnan(y)):
        return math.nan
    sign = math.copysign(1, x) * math.copysign(1, y)
    if "xorsign" in parts:
        x, y = math.copysign(x, sign), math.copysign(y, sign)
    if math.isnan(x) or math.isnan(y):
        return y if math.isnan(x) else x
    keys = [(abs(v) if "xorsign" in parts else v, math.copysign(1, v)) for v in (x, y)]
    found = min(keys) if parts[0] == "min" else max(keys)
    return x if found == keys[0] else y


def _approximate(name: str, x: float) -> float:
    if math.isnan(x):
        return x
    try:
        match name:
            case "ex2":
                return 2.0**x
            case "lg2":
                return -math.inf if x == 0 else math.log2(x)
            case "rsqrt":
                return math.copysign(math.inf, x) if x == 0 else 1 / math.sqrt(x)
            case "sin" | "cos" | "tanh":
                return float(getattr(math, name)(x))
    except OverflowError:
        return math.inf
    except ValueError:
        return math.nan
    raise AssertionError(name)


def _float_result(parts: tuple[str, ...], x: tuple[float, ...], type_: str) -> float:
    way = next((part for part in parts if part in WAYS), "rn")
    match parts[0]:
        case "add":
            return _sum(x[0], x[1], type_, way)
        case "sub":
            return _sum(x[0], -x[1], type_, way)
        case "mul":
            return _product(x[0], x[1], type_, way)
        case "fma" | "mad":
            return _fused(x[0], x[1], x[2], type_, way)
        case "div":
            return _quotient(x[0], x[1], type_, way)
        case "rcp":
            return _quotient(1.0, x[0], type_, way)
        case "sqrt":
            return _root(x[0], type_, way)
        case "min" | "max":
            return _extremum(parts, x[0], x[1])
        case "neg":
            return -x[0]
        case "abs":
            return abs(x[0])
        case "copysign":
            return math.copysign(x[1], x[0])
    found = _approximate(parts[0], x[0])
    return rounded(Fraction(found), type_, "rn", found) if math.isfinite(found) else found


def after(x: float, parts: tuple[str, ...], type_: str) -> float:
    """What the words of a name do to a result."""
    if "relu" in parts and not math.isnan(x):
        x = max(x, 0.0) if x > 0 else 0.0
    if "sat" in parts:
        x = 0.0 if math.isnan(x) or x <= 0 else min(x, 1.0)
    return flushed(x, type_) if "ftz" in parts else x


def _floats(parts: tuple[str, ...], values: list[int]) -> int | None:
    type_ = parts[-1]
    numbers = [decoded(value, type_) for value in values]
    if "ftz" in parts:
        numbers = [flushed(x, type_) for x in numbers]
    if parts[0] == "testp":
        return int(_tested(parts[1], numbers[0], type_))
    return encoded(after(_float_result(parts, tuple(numbers), type_), parts, type_), type_)


def _tested(name: str, x: float, type_: str) -> bool:
    is_normal = math.isfinite(x) and (x == 0 or abs(x) >= 2.0 ** FLOATS[type_][1])
    return {
        "finite": math.isfinite(x), "infinite": math.isinf(x), "number": not math.isnan(x),
        "notanumber": math.isnan(x), "normal": is_normal,
        "subnormal": math.isfinite(x) and not is_normal,
    }[name]  # fmt: skip


# Comparisons


def _compare(name: str, x: float, y: float) -> bool:
    none = math.isnan(x) or math.isnan(y)
    if name in ("num", "nan"):
        return none == (name == "nan")
    if name in ("equ", "neu", "ltu", "leu", "gtu", "geu"):
        return none or _compare(name[:2], x, y)
    name = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}.get(name, name)
    found = {"eq": x == y, "ne": x != y, "lt": x < y, "le": x <= y, "gt": x > y, "ge": x >= y}
    return found[name] and not none


def compared(parts: tuple[str, ...], values: list[int]) -> list[bool]:
    """A comparison, combined with a predicate, and the opposite, too."""
    type_ = parts[-1]
    x, y = (decoded(v, type_) if type_ in FLOATS else number(v, type_) for v in values[:2])
    if "ftz" in parts:
        x, y = flushed(x, type_), flushed(y, type_)
    found = _compare(parts[1], x, y)
    both = []
    for one in (found, not found):
        if len(values) > 2:
            other = bool(values[2])
            one = (
                one and other if "and" in parts else one or other if "or" in parts else one ^ other
            )
        both.append(one)
    return both


def _set(parts: tuple[str, ...], values: list[int]) -> int | None:
    found = compared(parts, values)[0]
    if parts[-2] in FLOATS:
        return encoded(float(found), parts[-2])
    return (1 << 32) - 1 if found else 0


# Integers


def _bfe(a: int, b: int, c: int, type_: str) -> int:
    last, start, length = BITS[type_] - 1, b & 255, c & 255
    sign = 0 if type_[0] == "u" or not length else a >> min(start + length - 1, last) & 1
    bits = [
        a >> start + i & 1 if i < length and start + i <= last else sign for i in range(last + 1)
    ]
    return sum(bit << place for place, bit in enumerate(bits))


def _bfi(a: int, b: int, c: int, d: int, type_: str) -> int:
    last, start, length = BITS[type_] - 1, c & 255, d & 255
    for i in range(length):
        if start + i > last:
            break
        b = b & ~(1 << start + i) | (a >> i & 1) << start + i
    return b


def _bfind(parts: tuple[str, ...], a: int, type_: str) -> int:
    last = BITS[type_] - 1
    if type_[0] == "s" and a >> last:
        a = ~a & (1 << last + 1) - 1
    place = a.bit_length() - 1
    return last - place if "shiftamt" in parts and place >= 0 else place


def _fns(mask: int, base: int, offset: int) -> int:
    if offset == 0:
        return base if mask >> base & 1 else -1
    place, count, step = base, abs(offset) - 1, 1 if offset > 0 else -1
    while 0 <= place < 32:
        if mask >> place & 1:
            if not count:
                return place
            count -= 1
        place += step
    return -1


def _szext(mode: str, a: int, count: int, type_: str) -> int:
    count = count & 31 if mode == "wrap" else min(count, 32)
    a &= (1 << count) - 1
    return signed(a, count) if type_[0] == "s" and count else a


def _bmsk(mode: str, start: int, count: int) -> int:
    start, count = (x & 31 if mode == "wrap" else min(x, 32) for x in (start, count))
    return ((1 << count) - 1) << start


_MODES = {
    "f4e": lambda c, n: c + n, "b4e": lambda c, n: (c - n) % 8, "rc8": lambda c, n: c,
    "ecl": lambda c, n: max(c, n), "ecr": lambda c, n: min(c, n),
    "rc16": lambda c, n: 2 * (c & 1) + n % 2,
}  # fmt: skip


def _prmt(mode: str, a: int, b: int, c: int) -> int:
    """The modes as formulas; in the manual they are tables."""
    both, found = a | b << 32, 0
    for n in range(4):
        chosen = _MODES[mode](c & 3, n) if mode in _MODES else c >> 4 * n & 15
        byte = both >> 8 * (chosen & 7) & 255
        if chosen & 8 and mode not in _MODES:
            byte = 255 if byte & 128 else 0
        found |= byte << 8 * n
    return found


def _lop3(a: int, b: int, c: int, table: int) -> int:
    rows = [(a >> i & 1) << 2 | (b >> i & 1) << 1 | c >> i & 1 for i in range(32)]
    return sum((table >> row & 1) << i for i, row in enumerate(rows))


def _shf(parts: tuple[str, ...], a: int, b: int, c: int) -> int:
    c = c & 31 if parts[2] == "wrap" else min(c, 32)
    both = b << 32 | a
    return (both << c) >> 32 if parts[1] == "l" else both >> c


def _divided(a: int, b: int, type_: str) -> int:
    if b == 0:
        return -1
    found = abs(a) // abs(b)
    return -found if (a < 0) != (b < 0) else found


def clamped(x: int, type_: str) -> int:
    low = -(1 << BITS[type_] - 1) if type_[0] == "s" else 0
    return max(low, min(x, (1 << BITS[type_] - (type_[0] == "s")) - 1))


def _24(x: int, type_: str) -> int:
    return signed(x & 0xFFFFFF, 24) if type_[0] == "s" else x & 0xFFFFFF


def _dot(parts: tuple[str, ...], a: int, b: int, c: int) -> int:
    kinds = parts[-2], parts[-1]
    bits = (8, 8) if parts[0] == "dp4a" else (16, 8)
    first = 2 if parts[1] == "hi" else 0
    for n in range(4 if parts[0] == "dp4a" else 2):
        x, y = a >> bits[0] * n & (1 << bits[0]) - 1, b >> 8 * (n + first) & 255
        x = signed(x, bits[0]) if kinds[0][0] == "s" else x
        c += x * (signed(y, 8) if kinds[1][0] == "s" else y)
    return c


def _product_of(parts: tuple[str, ...], a: int, b: int, type_: str) -> int:
    if parts[0] in ("mul24", "mad24"):
        product = _24(a, type_) * _24(b, type_)
        return product >> 16 if "hi" in parts else product
    return a * b >> BITS[type_] if "hi" in parts else a * b


def _integers(parts: tuple[str, ...], raw: list[int]) -> int:
    """Unsigned bits in, any integer out."""
    type_ = parts[-1]
    bits, name = BITS[type_], parts[0]
    x = [number(value, type_) for value in raw]
    simple: dict[str, Callable[[], int]] = {
        "add": lambda: x[0] + x[1], "sub": lambda: x[0] - x[1], "and": lambda: raw[0] & raw[1],
        "or": lambda: raw[0] | raw[1], "xor": lambda: raw[0] ^ raw[1], "not": lambda: ~raw[0],
        "cnot": lambda: int(not raw[0]), "neg": lambda: -x[0], "abs": lambda: abs(x[0]),
        "min": lambda: min(x[:2]), "max": lambda: max(x[:2]), "mov": lambda: raw[0],
        "sad": lambda: abs(x[0] - x[1]) + x[2], "div": lambda: _divided(x[0], x[1], type_),
        "rem": lambda: x[0] - _divided(x[0], x[1], type_) * x[1],
        "shl": lambda: raw[0] << min(raw[1], bits), "shr": lambda: x[0] >> min(raw[1], bits),
        "lop3": lambda: _lop3(*raw), "shf": lambda: _shf(parts, *raw),
        "prmt": lambda: _prmt(parts[-1], *raw), "bfe": lambda: _bfe(*raw, type_),
        "bfi": lambda: _bfi(*raw, type_), "bfind": lambda: _bfind(parts, raw[0], type_),
        "brev": lambda: int(f"{raw[0]:0{bits}b}"[::-1], 2), "popc": lambda: raw[0].bit_count(),
        "clz": lambda: bits - raw[0].bit_length(), "bmsk": lambda: _bmsk(parts[1], *raw),
        "szext": lambda: _szext(parts[1], *raw, type_),
        "fns": lambda: _fns(raw[0], raw[1], signed(raw[2], 32)),
        "dp4a": lambda: _dot(parts, *raw), "dp2a": lambda: _dot(parts, *raw),
        "mul": lambda: _product_of(parts, x[0], x[1], type_),
        "mul24": lambda: _product_of(parts, x[0], x[1], type_),
        "mad24": lambda: _product_of(parts, x[0], x[1], type_) + x[2],
        "selp": lambda: raw[0] if raw[2] else raw[1],
    }  # fmt: skip
    if name == "mad":
        wide = signed(raw[2], 2 * bits) if type_[0] == "s" else raw[2]
        third = wide if "wide" in parts else x[2]
        found = _product_of(parts, x[0], x[1], type_) + third
    elif name == "slct":
        found = raw[0] if x[2] >= 0 else raw[1]
    else:
        found = simple[name]()
    if "sat" in parts:
        found = clamped(found, "s32")
    return max(found, 0) if "relu" in parts else found


# Conversions


def _to_integer(x: float, parts: tuple[str, ...]) -> int:
    to, of = parts[-2:]
    if math.isnan(x):
        return 1 << BITS[to] - 1 if of == "f64" or BITS[to] == 64 else 0
    if math.isinf(x):
        return clamped(10**30 if x > 0 else -(10**30), to)
    way = next(part for part in parts if part in ("rni", "rzi", "rmi", "rpi"))
    functions = {"rni": round, "rzi": math.trunc, "rmi": math.floor, "rpi": math.ceil}
    return clamped(functions[way](x), to)


def _whole(x: float, parts: tuple[str, ...]) -> float:
    way = next((part for part in parts if part in ("rni", "rzi", "rmi", "rpi")), None)
    if way is None or not math.isfinite(x):
        return x
    functions = {"rni": round, "rzi": math.trunc, "rmi": math.floor, "rpi": math.ceil}
    return math.copysign(float(functions[way](x)), x)


def _float8(x: float, kind: str, relu: bool) -> int:
    """The code of the nearest number that is there, of the largest one beyond; 0x7F for NaN."""
    if math.isnan(x):
        return 0x7F
    x = 0.0 if relu and x <= 0 else x
    codes = [c for c in range(128) if math.isfinite(decoded(c, kind))]
    size = min(abs(x), decoded(codes[-1], kind))
    best = min(codes, key=lambda c: (abs(Fraction(decoded(c, kind)) - Fraction(size)), c & 1))
    return best | (0x80 if math.copysign(1, x) < 0 else 0)


def _cvt(parts: tuple[str, ...], raw: list[int]) -> int | None:
    to, of = parts[-2:]
    relu = "relu" in parts
    if parts[1] == "pack":
        kind = parts[3]
        high, low = (clamped(signed(x, 32), kind) & (1 << BITS[kind]) - 1 for x in raw[:2])
        return (high << BITS[kind] | low) | (raw[2] << 2 * BITS[kind] if len(raw) > 2 else 0)
    if of in ("e4m3x2", "e5m2x2"):
        halves = [decoded(raw[0] >> 8 * n & 255, of[:4]) for n in (0, 1)]
        found = [encoded(after(x, ("relu",) if relu else (), "f16"), "f16") for x in halves]
        return _joined(found, 16)
    if to in ("e4m3x2", "e5m2x2"):
        pair = (
            [decoded(raw[0] >> 16 * n & 0xFFFF, "f16") for n in (0, 1)]
            if of == "f16x2"
            else [decoded(raw[1], of), decoded(raw[0], of)]
        )
        return _joined([_float8(x, to[:4], relu) for x in pair], 8)
    way = next((part for part in parts if part in (*WAYS, "rna")), "rn")
    if to.endswith("x2"):
        kind = to[:-2]
        pair = [_narrowed(decoded(raw[n], of), kind, way) for n in (1, 0)]
        return _joined([encoded(after(x, ("relu",) if relu else (), kind), kind) for x in pair], 16)
    if of not in FLOATS:
        x = number(raw[0], of)
        if to not in FLOATS:
            return _in_register(clamped(x, to) if "sat" in parts else x, to)
        return encoded(after(rounded(Fraction(x), to, way), parts, to), to)
    value = decoded(raw[0], of)
    if "ftz" in parts and of == "f32":
        value = flushed(value, of)
    if to not in FLOATS:
        return _in_register(_to_integer(value, parts), to)
    found = _narrowed(_whole(value, parts), to, way)
    words = tuple(part for part in parts if part != "ftz" or to == "f32")
    return encoded(after(found, words, to), "f32" if to == "tf32" else to)


def _in_register(x: int, type_: str) -> int:
    """A number of a type, of which wider registers have the sign."""
    x &= (1 << BITS[type_]) - 1
    return signed(x, BITS[type_]) if type_[0] == "s" else x


def _joined(parts: list[int | None], bits: int) -> int | None:
    """None where one is NaN; the other one is compared by inputs of its own."""
    return None if None in parts else sum((x or 0) << bits * n for n, x in enumerate(parts))


def _narrowed(x: float, type_: str, way: str) -> float:
    return rounded(Fraction(x), type_, way, x) if math.isfinite(x) else x


def result(parts: tuple[str, ...], raw: list[int]) -> list[int | None]:
    """What an instruction gives: bits, or None for NaN."""
    type_ = parts[-1]
    if parts[0] == "cvt":
        return [_cvt(parts, raw)]
    if type_ in ("f16x2", "bf16x2", "u16x2", "s16x2"):
        words = tuple(part[:-2] if part in BITS and part.endswith("x2") else part for part in parts)
        halves = []
        for n in (0, 1):
            values = [x >> 16 * n & 0xFFFF for x in raw[: 3 if parts[0] == "fma" else 2]]
            halves.append(result(words, values + raw[len(values) :])[0])
        if parts[0] == "setp":
            return halves
        return [_joined([x if x is None else x & 0xFFFF for x in halves], 16)]
    if parts[0] == "setp":
        return [int(x) for x in compared(parts, raw)]
    if parts[0] == "set":
        return [_set(parts, raw)]
    if parts[0] == "slct" and type_ == "f32":
        value = decoded(raw[2], "f32")
        value = flushed(value, "f32") if "ftz" in parts else value
        return [raw[0] if value >= 0 else raw[1]]
    if type_ in FLOATS and parts[0] not in ("selp", "mov"):
        return [_floats(parts, raw)]
    if parts[0] == "prmt":
        return [_prmt(type_, *raw)]
    return [_integers(parts, raw)]
