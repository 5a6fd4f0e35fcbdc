"""A place in a text of MLIR: tokens, one ahead, and errors that say where."""

import re
from dataclasses import dataclass
from typing import NoReturn

from proton.base.errors import CompilationError, SourceSpan, UnsupportedLanguageConstruct

_SUFFIX = r"[A-Za-z0-9_$.-]+"
_TOKENS = re.compile(
    "|".join(
        (
            rf"(?P<value>%{_SUFFIX}(?:\#\d+)?)",
            rf'(?P<symbol>@(?:{_SUFFIX}|"(?:[^"\\]|\\.)*"))',
            rf"(?P<block>\^{_SUFFIX})",
            r"(?P<alias>[#!][A-Za-z_][A-Za-z0-9_$.]*)",
            r'(?P<string>"(?:[^"\\]|\\.)*")',
            r"(?P<number>-?(?:0x[0-9A-Fa-f]+|\d+(?:\.\d*(?:[eE][-+]?\d+)?)?))",
            r"(?P<word>[A-Za-z_][A-Za-z0-9_$.]*)",
            r"(?P<punctuation>->|::|.)",
        )
    ),
    re.DOTALL,
)
_BLANK = re.compile(r"(?:\s+|//[^\n]*)*")
_SIZES = re.compile(r"(?:\d+x)*")
_CLOSING = {"(": ")", "{": "}", "[": "]", "<": ">"}


@dataclass(frozen=True, slots=True)
class Token:
    """A word of the text, from `start` on; `end` of the text has the kind "end"."""

    kind: str
    text: str
    start: int

    @property
    def end(self) -> int:
        """The place behind it."""
        return self.start + len(self.text)


class Cursor:
    """Goes over the text of a file."""

    def __init__(self, text: str, file: str) -> None:
        self.text, self.file, self.place = text, file, 0
        self._ahead: Token | None = None

    def peek(self) -> Token:
        """The next token, which stays the next one."""
        if self._ahead is None:
            blank = _BLANK.match(self.text, self.place)
            assert blank is not None
            found = _TOKENS.match(self.text, blank.end())
            kind, text = ("end", "") if found is None else (str(found.lastgroup), found[0])
            self._ahead = Token(kind, text, blank.end())
        return self._ahead

    def next(self) -> Token:
        """The next token, and goes behind it."""
        token = self.peek()
        self.place, self._ahead = token.end, None
        return token

    def back_to(self, token: Token) -> None:
        """Makes a token that was read the next one again."""
        self.place, self._ahead = token.start, token

    def at(self, *texts: str) -> bool:
        """True if the next token is one of these."""
        return self.peek().text in texts

    def accept(self, text: str) -> bool:
        """Goes behind the next token if it is this one."""
        if self.peek().text != text:
            return False
        self.next()
        return True

    def expect(self, text: str) -> Token:
        """Goes behind the next token, which must be this one."""
        token = self.next()
        if token.text != text:
            self.refuse(f"expected {text!r}, got {token.text or 'the end'!r}", token)
        return token

    def of_kind(self, kind: str, what: str) -> str:
        """The text of the next token, which must be of a kind."""
        token = self.next()
        if token.kind != kind:
            self.refuse(f"expected {what}, got {token.text or 'the end'!r}", token)
        return token.text

    def sizes(self) -> tuple[int, ...]:
        """The sizes of `64x32x`, which are no tokens: `x32xf16` would be one word."""
        found = _SIZES.match(self.text, self.peek().start)
        assert found is not None
        self.place, self._ahead = found.end(), None
        return tuple(int(size) for size in found[0].split("x")[:-1])

    def balanced(self) -> str:
        """The text from the next token, a bracket, to the one that closes it."""
        first = self.next()
        if first.text not in _CLOSING:
            self.refuse(f"expected a bracket, got {first.text or 'the end'!r}", first)
        pending = [_CLOSING[first.text]]
        while pending:
            token = self.next()
            if token.kind == "end":
                self.refuse(f"{first.text!r} is not closed", first)
            if token.text in _CLOSING:
                pending.append(_CLOSING[token.text])
            elif token.text == pending[-1]:
                pending.pop()
        return self.text[first.start : self.place]

    def values(self) -> list[str]:
        """Values, with commas between them; none where the next token is no value."""
        if self.peek().kind != "value":
            return []
        found = [self.next().text]
        while self.accept(","):
            found.append(self.of_kind("value", "a value"))
        return found

    def place_of(self, offset: int) -> tuple[int, int]:
        """The line of a place, from 1, and the column, from 0."""
        line = self.text.count("\n", 0, offset) + 1
        return line, offset - (self.text.rfind("\n", 0, offset) + 1)

    def refuse(self, rule: str, token: Token, hint: str = "") -> NoReturn:
        """Raises CompilationError: the text breaks a rule of its language."""
        raise CompilationError(rule, self._span(token), hint)

    def unsupported(self, rule: str, token: Token, hint: str) -> NoReturn:
        """Raises UnsupportedLanguageConstruct: Triton has it, and we have not."""
        raise UnsupportedLanguageConstruct(rule, self._span(token), hint)

    def _span(self, token: Token) -> SourceSpan:
        line, column = self.place_of(token.start)
        return SourceSpan(
            file=self.file,
            line=line,
            column=column,
            end_line=line,
            end_column=column + max(1, len(token.text)),
            lines=self.text.splitlines(),
        )
