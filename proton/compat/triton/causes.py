"""What an error of a kernel was raised from, as programs that catch Triton's ask: the same error
within the function that was called, and so on; at last the rule alone, where an op refuses it.

Printed tracebacks would say an error as often, so only programs for Triton have it.
"""

from typing import Any

from proton.base.errors import (
    CompileTimeAssertionFailure,
    LocatedError,
    ProtonError,
    UnsupportedLanguageConstruct,
)

_OF_NO_OP = UnsupportedLanguageConstruct, CompileTimeAssertionFailure
_SLOT: Any = vars(BaseException)["__cause__"]


def cause_of(error: LocatedError) -> BaseException | None:
    """What it was raised from; where nothing was said, what Triton would have raised it from."""
    raised_from: BaseException | None = _SLOT.__get__(error)
    if raised_from is not None or error.span is None:
        return raised_from
    if error.trace:
        return type(error)(error.rule, error.span, error.hint, error.trace[:-1])
    return None if isinstance(error, _OF_NO_OP) else ProtonError(error.rule)


def install() -> None:
    """Has `error.__cause__` say it."""
    LocatedError.__cause__ = property(cause_of, _SLOT.__set__)  # type: ignore[assignment]
