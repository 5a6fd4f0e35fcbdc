"""The source text of a function, as it was when the function was made a kernel.

Python does not keep the text of what it runs, and a file may change while a program runs. So the
lines are taken at once, which costs some microseconds, and what is expensive (cutting the function
out of them, parsing) waits for its first use. Where the file, or what a notebook keeps in its
place, may have changed before that, the text is compiled and compared with the code that runs.
"""

import __future__

import ast
import copy
import functools
import inspect
import os
import re
import textwrap
import time
import types
from collections.abc import Callable
from typing import Any

from proton.base.errors import (
    CompilationError,
    SourceSpan,
    UnsupportedLanguageConstruct,
)
from proton.base.text import encodable
from proton.base.words import shown

_FUTURE = functools.reduce(
    lambda flags, name: flags | getattr(__future__, name).compiler_flag,
    __future__.all_feature_names,
    0,
)


def _process_start() -> float:
    """When this process began, in seconds of `time.time()`; 0 where that is not known."""
    try:
        with open("/proc/self/stat", encoding="utf-8", errors="replace") as file:
            ticks = int(file.read().rpartition(")")[2].split()[19])
        since_boot = ticks / os.sysconf("SC_CLK_TCK")
        return time.time() - time.clock_gettime(time.CLOCK_BOOTTIME) + since_boot
    except (OSError, ValueError, IndexError, AttributeError):
        return 0.0


_STARTED = _process_start()


def _is_older_than_process(file: str) -> bool:
    """True if a file is as it was when the process began."""
    try:
        status = os.stat(file)
    except OSError:
        return False
    return max(status.st_mtime, status.st_ctime) < _STARTED


_HEADER = re.compile(r"\s*def\b")
_KINDS: tuple[tuple[Callable[[object], bool], str, str], ...] = (
    (lambda fn: hasattr(fn, "source_key"), "a kernel already", "decorate a function once"),
    (inspect.isclass, "a class", "decorate functions that stand outside of it"),
    (inspect.ismethod, "a method", "write a function outside of the class"),
    (
        lambda fn: isinstance(fn, staticmethod | classmethod | property),
        "a method",
        "write a function outside of the class, or put @staticmethod above @proton.jit",
    ),
    (
        lambda fn: isinstance(fn, functools.partial),
        "a functools.partial",
        "decorate the function itself, and give what is bound as arguments or constexprs",
    ),
    (inspect.isbuiltin, "a function of C, which has no source", "write a def"),
    (inspect.iscoroutinefunction, "a coroutine", "leave async out"),
    (inspect.isasyncgenfunction, "an asynchronous generator", "leave async and yield out"),
    (inspect.isgeneratorfunction, "a generator", "store results through pointers, without yield"),
)


def _place(fn: object) -> SourceSpan | None:
    """Where a function is written, if it is one of Python's."""
    code = getattr(fn, "__code__", None)
    return code and SourceSpan(file=code.co_filename, line=code.co_firstlineno)


def check_function(fn: object) -> None:
    """Raises UnsupportedLanguageConstruct unless a kernel can be made of it: a function that was
    written with `def`."""
    for holds, kind, hint in _KINDS:
        if holds(fn):
            name = getattr(fn, "__name__", "") or shown(fn)
            raise UnsupportedLanguageConstruct(
                f"a kernel is a function, written with def: {name} is {kind}",
                _place(fn),
                hint,
            )
    if not isinstance(fn, types.FunctionType):
        raise UnsupportedLanguageConstruct(
            f"a kernel is a function, written with def: got {shown(fn)}, of type "
            f"{type(fn).__name__}",
            hint="decorate a plain function",
        )


class Source:
    """The text of a function; `file` is as Python names it, in text that can be encoded."""

    def __init__(self, fn: Callable[..., Any]) -> None:
        plain = inspect.unwrap(fn)
        self.name = fn.__name__
        self.code: types.CodeType = plain.__code__
        self.file = encodable(self.code.co_filename)
        self._problem = ""
        self._lines: list[str] = []
        self._start = 0
        try:
            self._lines, self._start = inspect.findsource(plain)
        except (OSError, TypeError, SyntaxError) as problem:
            self._lines = _executed_text(self.code)
            self._start = self.code.co_firstlineno - 1
            self._problem = "" if self._lines else str(problem)
        self._is_trusted = _is_older_than_process(self.code.co_filename)

    def with_text(self, text: str) -> "Source":
        """This source with another text in the place of the function's own."""
        lines = [f"{line}\n" for line in text.rstrip().splitlines()]
        return self._of([*self._lines[: self._start], *lines])  # what follows is of another indent

    def moved(self, file: str, line: int) -> "Source":
        """This source at another place: its `def` is on a line of a file, for locations in IR, in
        records and in errors."""
        start = max(0, line - 1 - (self.tree.lineno - self.first_line))
        new = self._of(["\n"] * start + self.block)
        new.file, new._start = file, start
        return new

    def _of(self, lines: list[str]) -> "Source":
        """The same function, of a file with other lines."""
        new = copy.copy(self)
        for name in ("block", "_block", "text"):
            new.__dict__.pop(name, None)
        new._lines, new._problem, new._is_trusted = lines, "", True
        return new

    @functools.cached_property
    def _block(self) -> tuple[str, int, int]:
        """Dedented text, its first line number, the columns that dedenting took away."""
        if self._problem:
            raise UnsupportedLanguageConstruct(
                f"the source of {self.name} cannot be read ({self._problem})",
                hint="define the kernel in a file, or keep the text that exec runs in a variable",
            )
        lines = self.block
        indent = len(lines[0]) - len(lines[0].lstrip())
        return textwrap.dedent("".join(lines)), self._start + 1, indent

    @property
    def first_line(self) -> int:
        """The number of its first line: that of a decorator, if it has any."""
        return self._block[1]

    @functools.cached_property
    def block(self) -> list[str]:
        """Its lines, with decorators, as they are in the file."""
        return _cut(self)[0]

    @property
    def lines(self) -> list[str]:
        """All lines of the file."""
        return self._lines

    @functools.cached_property
    def text(self) -> str:
        """The text from `def` on, dedented; decorators are no part of it."""
        block, first, _ = self._block
        return "".join(block.splitlines(keepends=True)[self.tree.lineno - first :])

    @property
    def tree(self) -> ast.FunctionDef:
        """The AST, with line and column numbers as in the file."""
        return _tree(self)

    def parsed(self) -> ast.FunctionDef:
        """A new AST."""
        text, first, indent = self._block
        span = SourceSpan(file=self.file, line=first, lines=self._lines)
        try:
            self._check(span)
        except RecursionError:
            raise CompilationError(
                f"the source of {self.name} nests too deeply for the compiler",
                span,
                "give parts of its expressions names of their own",
            ) from None
        if self.code.co_name == "<lambda>":
            raise UnsupportedLanguageConstruct(
                "a kernel is a function, written with def: this one is a lambda",
                span,
                "write it as a def",
            )
        if (cut := _cut(self)[1]) is not None:
            return cut
        try:
            tree = ast.parse("\n" * (first - 1) + text).body[0]
        except (SyntaxError, IndexError) as error:
            raise UnsupportedLanguageConstruct(
                f"the source of {self.name} does not stand alone "
                f"({getattr(error, 'msg', 'it is empty')})",
                span,
                hint="write the kernel as a plain def",
            ) from None
        if not isinstance(tree, ast.FunctionDef):
            raise UnsupportedLanguageConstruct(
                f"a kernel is a def, got {type(tree).__name__.lower()}",
                span,
                hint="write the kernel as a plain def",
            )
        _indent(tree, indent)
        return tree

    def _check(self, span: SourceSpan) -> None:
        """Raises CompilationError where the text is not that of the code that Python runs."""
        if self._is_trusted:
            return
        known = _definitions(self.file, tuple(self._lines), self.code.co_flags & _FUTURE)
        if (self.code.co_firstlineno, code_text(self.code)) not in known:
            raise CompilationError(
                f"the source of {self.name} is not what Python read: {self.file} was changed "
                "before the kernel was made",
                span,
                "start the program again",
            )
        self._is_trusted = True


# Functions whose ASTs are kept, for what is compiled next: one takes some hundred KB, and a program
# may have thousands.
_TREES = 64


@functools.lru_cache(_TREES)
def _tree(source: Source) -> ast.FunctionDef:
    return source.parsed()


@functools.lru_cache(_TREES)
def _cut(source: Source) -> tuple[list[str], ast.FunctionDef | None]:
    """The lines of a function, and the AST that looking for them gave."""
    block, tree = function_lines(source._lines, source._start)
    if tree is not None:
        _indent(tree, _indent_of(block[0]))
    return block, tree


def _executed_text(code: types.CodeType) -> list[str]:
    """The lines of a text that `exec` is running, in which a function is defined: no file has them,
    and who called `exec` mostly has them in a variable. Empty where they are not found."""
    frame = inspect.currentframe()
    while frame is not None and frame.f_code.co_filename != code.co_filename:
        frame = frame.f_back
    while frame is not None and frame.f_code.co_filename == code.co_filename:
        frame = frame.f_back
    if frame is None:
        return []
    for text in [*frame.f_locals.values(), *frame.f_globals.values()]:
        if not isinstance(text, str) or code.co_name not in text:
            continue
        lines = text.splitlines(keepends=True)
        known = _definitions(code.co_filename, tuple(lines), code.co_flags & _FUTURE)
        if (code.co_firstlineno, code_text(code)) in known:
            return lines
    return []


def function_lines(lines: list[str], start: int) -> tuple[list[str], ast.FunctionDef | None]:
    """The lines of the function that begins at `start`, its decorators among them, and the AST of
    these, dedented, where they are a `def`. `inspect.getblock` gives the same lines, and cuts the
    text into tokens for that. Here the next line ends it that is indented no further than its
    `def`, if Python can parse what is ahead of that."""
    indent = _indent_of(lines[start])
    header = next((n for n in range(start, len(lines)) if _HEADER.match(lines[n])), len(lines))
    end, comments = header + 1, list[int]()
    for number in range(end, len(lines)):
        text = lines[number].lstrip()
        if text.startswith("#"):
            comments.append(number)
        elif text and text[0] not in ")]}" and _indent_of(lines[number]) <= indent:
            break
        elif text:
            end = number + 1
    try:
        (tree,) = ast.parse("\n" * start + textwrap.dedent("".join(lines[start:end]))).body
    except (SyntaxError, ValueError):
        return inspect.getblock(lines[start:]), None
    if not isinstance(tree, ast.FunctionDef):
        return inspect.getblock(lines[start:]), None
    if tree.body[0].lineno > tree.lineno:  # comments behind it are its own, if they are indented so
        column = indent + tree.body[0].col_offset
        end = max([end, *(n + 1 for n in comments if n >= end and _indent_of(lines[n]) >= column)])
    return lines[start:end], tree


def _indent_of(line: str) -> int:
    return len(line) - len(line.lstrip())


@functools.lru_cache(maxsize=16)
def _definitions(file: str, lines: tuple[str, ...], flags: int) -> frozenset[tuple[int, str]]:
    """(line, code) of all functions in a text. It is compiled as a whole, because what a method
    call becomes depends on the imports around it, and statement by statement, as notebooks do."""
    flags |= ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    try:
        tree = ast.parse("".join(lines))
        units = [tree, *(ast.Module([statement], type_ignores=[]) for statement in tree.body)]
        open_ = [compile(u, file, "exec", flags=flags, dont_inherit=True) for u in units]
    except (SyntaxError, ValueError):
        return frozenset()
    found = set()
    while open_:
        code = open_.pop()
        found.add((code.co_firstlineno, code_text(code)))
        open_ += [part for part in code.co_consts if isinstance(part, types.CodeType)]
    return frozenset(found)


def code_text(code: types.CodeType) -> str:
    """What a code object does, as text: equal for equal code, wherever it was defined."""
    parts = [
        code.co_code.hex(),
        repr((code.co_name, code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)),
        repr((code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount)),
        *map(_constant_text, code.co_consts),
    ]
    return "\n".join(parts)


def _constant_text(value: object) -> str:
    if isinstance(value, types.CodeType):
        return code_text(value)
    if isinstance(value, tuple):
        return f"({', '.join(map(_constant_text, value))})"
    if isinstance(value, frozenset):  # whose order is another one in each process
        return f"{{{', '.join(sorted(map(_constant_text, value)))}}}"
    return repr(value)


def _indent(tree: ast.AST, by: int) -> None:
    """Moves all columns to the right."""
    if by == 0:
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.expr | ast.stmt | ast.arg | ast.keyword):
            node.col_offset += by
            if node.end_col_offset is not None:
                node.end_col_offset += by
