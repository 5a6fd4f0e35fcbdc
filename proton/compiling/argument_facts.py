"""What code counts on of an argument besides its type, and how others say it.

A launch sees in a value that 16 divides it, and that a signed integer is not negative, and compiles
for both (`Signature`). A binder says it in letters, as Triton's does (`"D"`); `attrs` of
`ASTSource` and the arguments of a kernel in IR say it in attributes.
"""

from collections.abc import Mapping
from typing import Any

from proton.base.errors import ProtonError
from proton.dialect.attributes import DIVISIBILITY, NON_NEGATIVE
from proton.language.signature import Signature

DIVISOR = 16
_DIVISIBLE, _NON_NEGATIVE = "D", "N"
_ATTRIBUTES = {_DIVISIBLE: (DIVISIBILITY, DIVISOR), _NON_NEGATIVE: (NON_NEGATIVE, 1)}


def letters_of(signature: Signature, name: str) -> str:
    """What a kernel for a signature counts on of one of its arguments."""
    sets = {_DIVISIBLE: signature.divisible, _NON_NEGATIVE: signature.non_negative}
    return "".join(letter for letter, names in sets.items() if name in names)


def letters_of_value(value: object) -> str:
    """The same, of an integer, or of an object with an address."""
    if not isinstance(value, int):
        return _DIVISIBLE * (getattr(value, "data_ptr", lambda: 1)() % DIVISOR == 0)
    is_signed = 0 <= value < 1 << 63 and not isinstance(value, bool)  # else it is u64, or i1
    return _DIVISIBLE * (value % DIVISOR == 0) + _NON_NEGATIVE * is_signed


def attributes_of(letters: str) -> list[list[object]]:
    """The attributes, by name, that letters stand for; others stand for none."""
    return [[*_ATTRIBUTES[letter]] for letter in letters if letter in _ATTRIBUTES]


def sets_of(attributes: Mapping[str, Any]) -> tuple[frozenset[str], frozenset[str]]:
    """`divisible` and `non_negative` of a signature, from the attributes of its arguments; raises
    ProtonError for one that nobody knows."""
    known = {name for name, _ in _ATTRIBUTES.values()}
    values = {argument: dict(given) for argument, given in attributes.items()}
    if others := {name for given in values.values() for name in given} - known:
        names = ", ".join(sorted(known)), ", ".join(sorted(others))
        raise ProtonError("attrs: only {} are known, got {}".format(*names))
    return (
        frozenset(
            a for a, given in values.items() if int(given.get(DIVISIBILITY, 1)) % DIVISOR == 0
        ),
        frozenset(a for a, given in values.items() if given.get(NON_NEGATIVE)),
    )
