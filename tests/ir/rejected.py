"""The table of kernels that break a rule; `rejected_*.py` fill it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from proton.base.errors import CompilationError, UnsupportedLanguageConstruct
from proton.language.function import DeviceFunction


@dataclass(frozen=True)
class Case:
    """A bad kernel; `at` is the source text the caret underlines, `hint` a part of the hint.

    Every error says what to do instead, so no hint is empty.
    """

    kernel: DeviceFunction
    rule: str
    at: str
    hint: str
    kind: type[CompilationError]


CASES: list[Case] = []


def rejected(
    rule: str, at: str, hint: str, kind: type[CompilationError] = CompilationError
) -> Callable[[Any], DeviceFunction]:
    """Puts the kernel below into the table, with what its error must say."""

    def add(fn: Any) -> DeviceFunction:
        kernel = DeviceFunction(fn)
        CASES.append(Case(kernel, rule, at, hint, kind))
        return kernel

    return add


def unsupported(rule: str, at: str, hint: str) -> Callable[[Any], DeviceFunction]:
    """A construct that is not part of the language."""
    return rejected(rule, at, hint, UnsupportedLanguageConstruct)
