"""Strategies: what happens to records when a segment is full.

A strategy is one class here, with what the compiler's passes, the runtime and the decoder ask, and
one of the same name in proton/conversion/strategies.py, with the code that it becomes.
"""

import enum
from typing import Any, ClassVar

import numpy as np

Interval = tuple[np.ndarray, np.ndarray]  # of each unit: the first slot, and how many follow


class Rules:
    """What there is to know of a strategy without a compiler."""

    name: ClassVar[str]
    stores: ClassVar[bool] = True  # records are kept, not only counted
    moves: ClassVar[bool] = False  # full segments leave the block while the kernel runs

    @staticmethod
    def intervals(written: np.ndarray, capacity: int, moved: np.ndarray) -> list[Interval]:
        """The slots of the units' segments that hold records when a program has ended, oldest
        first, given the records that each unit has written, and how many of them had `moved`."""
        raise NotImplementedError


class Circular(Rules):
    """The newest records stay."""

    name = "circular"

    @staticmethod
    def intervals(written: np.ndarray, capacity: int, moved: np.ndarray) -> list[Interval]:
        wrapped = written > capacity
        oldest = np.where(wrapped, written % capacity, 0)
        tail = oldest, np.where(wrapped, capacity, written) - oldest
        return [tail, (np.zeros_like(oldest), oldest)] if wrapped.any() else [tail]


class Flush(Rules):
    """The full segment moves to host memory; nothing is lost."""

    name = "flush"
    moves = True

    @staticmethod
    def intervals(written: np.ndarray, capacity: int, moved: np.ndarray) -> list[Interval]:
        rest = written % capacity
        is_whole = (rest == 0) & (written > 0) & (moved < written)
        return [(np.zeros_like(rest), np.where(is_whole, capacity, rest))]


class Counting(Rules):
    """Nothing is stored, records are only counted (a dry run)."""

    name = "counting"
    stores = False

    @staticmethod
    def intervals(written: np.ndarray, capacity: int, moved: np.ndarray) -> list[Interval]:
        return []


class Strategy(enum.Enum):
    """The strategies, by name."""

    CIRCULAR = Circular
    FLUSH = Flush
    COUNTING = Counting

    _value_: str
    rules: type[Rules]

    def __new__(cls, rules: Any) -> "Strategy":
        member = object.__new__(cls)
        member._value_ = rules.name
        member.rules = rules
        return member

    @property
    def stores(self) -> bool:
        """Whether records are kept."""
        return self.rules.stores

    @property
    def moves(self) -> bool:
        """Whether full segments leave the block while the kernel runs."""
        return self.rules.moves

    @property
    def is_ring(self) -> bool:
        """Whether a segment is written over and over, and all of it is read at the end."""
        return self.stores and not self.moves
