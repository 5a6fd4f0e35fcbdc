"""Text that was made of another one, and where each piece of it comes from."""

import bisect
from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True, slots=True)
class Piece:
    """Some text, and the place that it is about. Where it was `copied`, the places in it are those
    that follow."""

    text: str
    origin: int
    copied: bool = False


@dataclass(frozen=True)
class Translation:
    """What `pieces` of `source` say together."""

    source: str
    pieces: tuple[Piece, ...]

    @cached_property
    def text(self) -> str:
        """The whole text."""
        return "".join(piece.text for piece in self.pieces)

    def origin(self, line: int, column: int) -> tuple[int, int]:
        """The place in the source of one in the text. Lines and columns are from 1, as MLIR's."""
        offset = (self._ends[line - 2] if line > 1 else 0) + column - 1
        number = max(0, bisect.bisect_right(self._starts, offset) - 1)
        piece = self.pieces[number]
        place = piece.origin + (offset - self._starts[number] if piece.copied else 0)
        lines = self._source_ends
        row = bisect.bisect_right(lines, place)
        return row + 1, place - (lines[row - 1] if row else 0) + 1

    @cached_property
    def _starts(self) -> list[int]:
        starts, place = [], 0
        for piece in self.pieces:
            starts.append(place)
            place += len(piece.text)
        return starts

    @cached_property
    def _source_ends(self) -> list[int]:
        return _line_ends(self.source)

    @cached_property
    def _ends(self) -> list[int]:
        return _line_ends(self.text)


def _line_ends(text: str) -> list[int]:
    """The places behind each line's end."""
    ends, place = [], text.find("\n")
    while place >= 0:
        ends.append(place + 1)
        place = text.find("\n", place + 1)
    return ends
