"""Launches like one before: the same kernel with the same arrays and numbers.

What a launch finds out of its arguments takes a microsecond for each, and more for each view of an
array. A loop launches with the same arguments, so what they came to is kept by what they are: of an
array its memory, not the object, which may change in place.
"""

from typing import TypeVar

import numpy as np

from proton.runtime.cpu.arguments import address_of, no_bytes

_Kept = TypeVar("_Kept")
MOST = 256  # launches kept of a kernel


def signature(values: tuple[object, ...]) -> tuple[object, ...] | None:
    """What says of arguments all that a launch asks; None where one is neither a number, a text
    nor a contiguous array that may be written."""
    found: list[object] = []
    add = found.append
    for value in values:
        kind = value.__class__
        if kind is np.ndarray:
            try:
                add(address_of(no_bytes(value.data)))  # type: ignore[attr-defined]
                add(value.nbytes)  # type: ignore[attr-defined]
                add(value.dtype)  # type: ignore[attr-defined]
                owner = value.base  # type: ignore[attr-defined]
                if owner is not None:
                    while owner.__class__ is np.ndarray and owner.base is not None:
                        owner = owner.base
                    if owner.__class__ is not np.ndarray:
                        return None
                    add(address_of(no_bytes(owner.data)))
                    add(owner.nbytes)
            except (BufferError, TypeError, ValueError):  # strided, read-only, empty
                return None
        elif kind is int or kind is bool or kind is str or value is None:
            add(kind)
            add(value)
        elif kind is float:
            add(kind)
            add(value or str(value))  # the zeros are equal
        else:
            return None
    return tuple(found)


class Lately(dict[object, _Kept]):
    """What the last launches of a kernel came to, by what they were given."""

    def keep(self, key: object, kept: _Kept) -> None:
        if len(self) >= MOST:
            self.clear()
        self[key] = kept
