"""How messages say values and names: short, and with the name that was meant."""

import difflib
from collections.abc import Iterable

MAX_SHOWN = 80  # characters of a value's repr
MAX_NAMES = 8  # that a message lists
MAX_BITS = 256  # of an integer that is shown by its digits


def shown(value: object) -> str:
    """The repr of a value, cut where it is long; what kind of value it is where it has no repr."""
    if isinstance(value, int) and value.bit_length() > MAX_BITS:
        return f"an integer of {value.bit_length()} bits"
    try:
        text = repr(value)
    except Exception as problem:  # an object's own
        return f"a {type(value).__name__} ({problem})"
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}..."


def did_you_mean(name: object, known: Iterable[str]) -> str:
    """`; did you mean scope?` where one of the known names is close, to end an error with; else
    nothing."""
    if str(name).startswith("_"):  # asked for by whoever looks at all objects, as pytest does
        return ""
    names = {str(other).lower(): str(other) for other in known}
    close = difflib.get_close_matches(str(name).lower(), names, n=1)
    return f"; did you mean {names[close[0]]}?" if close else ""


def known_names(name: object, known: Iterable[str]) -> str:
    """The first MAX_NAMES of the names that there are, and the one that was meant."""
    names = list(known)
    more = ", ..." * (len(names) > MAX_NAMES)
    return f"{', '.join(names[:MAX_NAMES])}{more}{did_you_mean(name, names)}"


def index_widths(shape: Iterable[int]) -> list[int]:
    """The digits of the largest index in each dimension: what is printed of blocks lines up."""
    return [len(str(max(size - 1, 0))) for size in shape]


def number_format(bits: int, *, is_float: bool, is_signed: bool, in_hex: bool) -> str:
    """How C's printf shows a number that a kernel prints. Integers of up to 32 bits are passed
    to it as 32, wider ones as 64, floats as fp64."""
    if is_float:
        return "%a" if in_hex else "%f"
    length = "ll" if bits > 32 else ""
    if in_hex:
        return f"0x%0{max(1, bits // 4)}{length}x"
    return f"%{length}{'d' if is_signed else 'u'}"


def counted(number: int, one: str, many: str = "") -> str:
    """`1 launch`, `2 launches`; many are called `one` with an s, unless it is said."""
    return f"{number} {one if number == 1 else many or one + 's'}"


_TRUE, _FALSE = ("1", "true", "on", "yes", "y"), ("0", "false", "off", "no", "n", "")


def switch(text: str) -> bool:
    """What a variable of the environment says that is on or off. Raises ValueError for others."""
    if text.lower() in _TRUE:
        return True
    if text.lower() in _FALSE:
        return False
    raise ValueError(f"expected one of {_TRUE + _FALSE[:-1]}")
