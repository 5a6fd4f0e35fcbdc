"""Reading values out of untrusted JSON: each has the type and range it must have, or an error."""

import math
from collections.abc import Sequence
from typing import Any

from proton.trace.check import require

Json = Any  # what json.loads returns

MIN_INT, MAX_INT = -(1 << 63), (1 << 63) - 1
NOT_FINITE = ("nan", "inf", "-inf")  # JSON has no words for these floats


class Fields:
    """One JSON object, read field by field; `done` refuses those that nobody asked for."""

    def __init__(self, value: Json, where: str) -> None:
        require(isinstance(value, dict), where, "must be an object", _kind(value))
        self.values, self.where, self.read = value, where, set[str]()

    def take(self, name: str) -> Json:
        require(name in self.values, self.where, f"field {name!r} must be there", "none")
        self.read.add(name)
        return self.values[name]

    def integer(self, name: str) -> int:
        return integer(self.take(name), f"{self.where}, {name}")

    def number(self, name: str) -> float:
        value = self.take(name)
        where = f"{self.where}, {name}"
        good = isinstance(value, int | float) and not isinstance(value, bool)
        require(good and math.isfinite(value), where, "must be a finite number", _kind(value))
        return float(value)

    def boolean(self, name: str) -> bool:
        value = self.take(name)
        require(isinstance(value, bool), f"{self.where}, {name}", "must be a boolean", _kind(value))
        return bool(value)

    def text(self, name: str) -> str:
        return text(self.take(name), f"{self.where}, {name}")

    def items(self, name: str) -> list[Json]:
        value = self.take(name)
        require(isinstance(value, list), f"{self.where}, {name}", "must be a list", _kind(value))
        return list(value)

    def object(self, name: str) -> dict[str, Json]:
        value = self.take(name)
        where = f"{self.where}, {name}"
        require(isinstance(value, dict), where, "must be an object", _kind(value))
        return dict(value)

    def done(self) -> None:
        unknown = sorted(set(self.values) - self.read)
        require(not unknown, self.where, "fields must be known", unknown[:3])


def integer(value: Json, where: str) -> int:
    good = isinstance(value, int) and not isinstance(value, bool)
    require(good, where, "must be an integer", _kind(value))
    require(MIN_INT <= value <= MAX_INT, where, "must fit in 64 bits", "a larger one")
    return int(value)


def scalar_to_json(value: int | float) -> Json:
    """A payload value as JSON has it; `scalar` reads it back."""
    is_word = isinstance(value, float) and not math.isfinite(value)
    return str(value) if is_word else value


def scalar(value: Json, where: str) -> int | float:
    """An integer or a float; one that is not finite is a word."""
    if isinstance(value, float) and math.isfinite(value):
        return value
    if value in NOT_FINITE:
        return float(value)
    good = isinstance(value, int) and not isinstance(value, bool)
    require(good, where, f"must be a finite number, or one of {NOT_FINITE}", _kind(value))
    return integer(value, where)


def text(value: Json, where: str) -> str:
    require(isinstance(value, str), where, "must be a string", _kind(value))
    # a lone surrogate is a legal JSON string that no file or terminal takes
    legal = not any("\ud800" <= letter <= "\udfff" for letter in value)
    require(legal, where, "must be Unicode text", "a lone surrogate")
    return str(value)


def texts(values: Sequence[Json], where: str) -> tuple[str, ...]:
    return tuple(text(value, where) for value in values)


def _kind(value: Json) -> str:
    return type(value).__name__
