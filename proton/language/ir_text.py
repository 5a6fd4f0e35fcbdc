"""IR in a file: what a kernel is compiled from in the place of Python."""

import hashlib
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple, Self

from proton.base.errors import ProtonError
from proton.base.words import shown
from proton.language.types import dtype

_TRITON = re.compile(r'^[ \t]*(?:module\b[^\n]*\{[ \t]*)?(?:tt\.func\b|"tt\.func"\()', re.MULTILINE)
_LEVELS = {"glir": "ttir"}  # what Triton calls what the front end of Gluon makes


@dataclass(frozen=True)
class IRText:
    """The text of a file, as it was read. `level` is the file's suffix, which says which passes the
    text has behind it: `ttir`, `ttgir`."""

    file: str
    level: str
    text: str

    @classmethod
    def read(cls, path: object) -> Self:
        """That of a path; raises ProtonError where there is no text. What was read stays as it
        is."""
        if isinstance(path, cls):
            return path
        if not isinstance(path, str | Path):
            raise TypeError(f"IR is in a file, whose path is a str or a Path, got {shown(path)}")
        try:
            text = Path(path).read_text(encoding="utf-8")
        except (OSError, ValueError) as problem:
            raise ProtonError(f"cannot read IR from {path}: {problem}") from None
        level = Path(path).suffix.removeprefix(".")
        return cls(str(path), _LEVELS.get(level, level), text)

    @cached_property
    def is_triton(self) -> bool:
        """True if it is as Triton prints it: its functions are `tt.func`."""
        return _TRITON.search(self.text) is not None

    @cached_property
    def hash(self) -> str:
        """Of all that code depends on: line information names the file."""
        return hashlib.sha256(f"{self.level}\n{self.file}\n{self.text}".encode()).hexdigest()

    def __repr__(self) -> str:
        return f"<IR of {self.file}, {self.hash}>"


class IRArgument(NamedTuple):
    """An argument of a file's kernel: its type, what divides its values, and whether these are 0 or
    above."""

    type: dtype
    divisor: int
    non_negative: bool
