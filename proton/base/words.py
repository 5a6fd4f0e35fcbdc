"""How messages say values and names: short, printable, and with the name that was meant."""

import difflib
from collections.abc import Iterable
from typing import Any

MAX_SHOWN = 80  # characters of a value's repr
MAX_BITS = 256  # of an integer that is shown by its digits


def shown(value: Any) -> str:
    """The repr of a value, cut where it is long; what kind of value it is where it has no repr."""
    if isinstance(value, int) and value.bit_length() > MAX_BITS:
        return f"an integer of {value.bit_length()} bits"
    try:
        text = repr(value)
    except Exception:
        text = f"<{type(value).__name__}>"
    return text if len(text) <= MAX_SHOWN else f"{text[: MAX_SHOWN - 3]}..."


def meant(name: str, choices: Iterable[str]) -> str:
    """` (did you mean 'load'?)` where one of the choices is close to the name, else nothing."""
    close = difflib.get_close_matches(name, [str(choice) for choice in choices], n=1, cutoff=0.7)
    return f" (did you mean {close[0]!r}?)" if close else ""
