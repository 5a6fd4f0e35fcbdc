"""Errors that say where, which rule, which value, and what to do instead."""

import linecache
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any


class ProtonError(Exception):
    """Base of every error that Proton raises on purpose."""


TritonError = ProtonError  # as Triton's modules call it


def reason(error: Exception) -> str:
    """What is wrong, in a line; of the system's errors without their number."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror if error.filename is None else f"{error.filename}: {error.strerror}"
    return str(error)


@dataclass(frozen=True, kw_only=True)
class SourceSpan:
    """A piece of a source file; lines count from 1, columns from 0 (as Python's ast does).

    `lines` are those of the file when the kernel was made, where they are known: it may have
    changed since.
    """

    file: str
    line: int
    column: int = 0
    end_line: int = 0
    end_column: int = 0
    function: str = ""
    start: tuple[int, int] | None = None  # line and column of the function's `def`
    lines: Sequence[str] | None = field(default=None, repr=False, compare=False)

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column + 1}"

    def within(self) -> str:
        """The place within its function, as Triton counts; empty where that is not known."""
        if self.start is None:
            return ""
        line, column = self.line - self.start[0] + 1, self.column - self.start[1]
        return f"    at {line}:{column}: of {self.function}"

    def excerpt(self) -> str:
        """The source line with a caret under the piece; empty where the source is not to be had."""
        if self.lines is None:
            text = linecache.getline(self.file, self.line).rstrip("\n")
        else:
            text = "".join(self.lines[self.line - 1 : self.line]).rstrip("\n")
        if not text:
            return ""
        end = self.end_column if self.end_line == self.line else len(text)
        width = max(1, min(end, len(text)) - self.column)
        return f"    {text}\n    {' ' * self.column}{'^' * width}"


class LocatedError(ProtonError):
    """An error about one place of a kernel's source.

    `rule` says what was expected and what was found, `hint` what to do instead; `trace` holds
    the call sites that led there, innermost first.
    """

    def __init__(
        self,
        rule: str,
        span: SourceSpan | None = None,
        hint: str = "",
        trace: tuple[SourceSpan, ...] = (),
    ) -> None:
        super().__init__(rule)
        self.rule, self.span, self.hint, self.trace = rule, span, hint, trace

    def __str__(self) -> str:
        if self.span is None:
            return self.rule + (f"\nhint: {self.hint}" if self.hint else "")
        lines = [f"{self.span}: {self.rule}", self.span.excerpt(), self.span.within()]
        for call in self.trace:
            lines += [f"called from {call}:", call.excerpt(), call.within()]
        if self.hint:
            lines.append(f"hint: {self.hint}")
        return "\n".join(line for line in lines if line)


class CompilationError(LocatedError):
    """The kernel breaks a rule of the language."""

    @property
    def error_message(self) -> str:
        """The rule, by the name that Triton has for it."""
        return self.rule


class InvalidOption(CompilationError, AssertionError):
    """An option of a launch has a value that it cannot have; Triton asserts it."""


class UnsupportedLanguageConstruct(CompilationError):
    """The construct is not supported; the message names it, and what to write in its place."""


class CompileTimeAssertionFailure(CompilationError):
    """A `tl.static_assert` does not hold."""


class PassError(ProtonError):
    """A pass failed, or left invalid IR; the message names the pass and the reproducer."""


class PerformanceWarning(UserWarning):
    """The kernel is right, and slower than it looks; the message says what to change."""


class PTXASError(PassError):
    """NVIDIA's assembler refused a kernel."""


class OutOfResources(CompilationError):
    """The kernel needs more of something than a program on the target has: `required` of `name`
    ("shared memory", in bytes, "threads", or "elements" of a block), of which there are `limit`."""

    def __init__(
        self,
        required: int,
        limit: int,
        name: str,
        what: str = "",
        hint: str = "reduce the block sizes, or num_stages",
        span: SourceSpan | None = None,
    ) -> None:
        numbers = f"Required: {required}, Hardware limit: {limit}"
        rule = f"out of resource: {name}, {numbers}" + (f"; {what}" if what else "")
        super().__init__(rule, span, hint)  # it begins as Triton's does
        self.required, self.limit, self.name, self.what = required, limit, name, what

    def __reduce__(self) -> tuple[Any, ...]:
        given = self.required, self.limit, self.name, self.what, self.hint, self.span
        return type(self), given, {"trace": self.trace}


class DeviceAssertionError(ProtonError, AssertionError, RuntimeError):
    """An assertion of a kernel does not hold, on the CPU or interpreted. On a GPU the driver says
    so, at a later call, as a RuntimeError of torch's."""

    def __str__(self) -> str:
        return f"{super().__str__()} (device-side assertion)"


class LaunchError(ProtonError, RuntimeError):
    """A launch was given an argument, grid or option it cannot take."""


class InvalidDescriptor(LaunchError, AssertionError):
    """A tensor descriptor has a shape, a block or a layout that it cannot have; Triton asserts
    it."""


class ArgumentOverflow(LaunchError, OverflowError):
    """An integer argument has more than 64 bits."""


class BadArguments(LaunchError, TypeError):
    """A launch was given too few or too many arguments, or one of a type that no kernel takes."""


class UnknownKeyword(LaunchError, KeyError):
    """A launch was given a keyword that is neither a parameter nor an option."""

    __str__ = Exception.__str__  # a KeyError shows the repr of its text


class NotAKernel(TypeError, AttributeError):
    """What is no kernel was decorated as one."""


class AutotunerError(ProtonError):
    """There is no configuration that autotuning could take."""


class BoundsError(LocatedError):
    """A kernel accessed memory outside of the array that it was given (PROTON_CHECK_BOUNDS)."""


class ProfileError(ProtonError):
    """The profiler was used in a way that it cannot serve."""


class UnknownOption(ProfileError, TypeError):
    """A session was given an option that it does not have."""
